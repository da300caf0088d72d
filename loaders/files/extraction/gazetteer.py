"""The names that files show: in titles and headings, in bold and code, and as terms that they define.

`mine_names` finds those of one file. `count_names` counts the candidates of a file for the gazetteer of its collection,
which `choose_names` makes of the counts of all files.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from kg.words import is_stop_word, to_word_set
from loaders.files.extraction.patterns import classify_code, is_plain
from loaders.files.extraction.plain_text import Outline, Snippet
from loaders.files.readers.text_model import Block

_MOST_WORDS: Final = 4
CODE: Final = "`"
"""Start of names that files show as code."""
_MOST_COUNTED: Final = 500
"""Maximum names of a file that count for the gazetteer of its collection."""
_LONGEST_ACRONYM: Final = 8
_SHOWN: Final = re.compile(r"(?<![\\*])\*\*(?P<bold>[^*\n]{2,80})\*\*|(?<![\\`])`(?P<code>[^`\n]{2,60})`(?!`)")
"""Bold words and code in the notation of Markdown."""
_WORD: Final = re.compile(r"[^\W_][\w'\u2019+#&./-]*")
_CAPITAL: Final = re.compile(r"[A-Z][\w'\u2019&/-]*")
ORDERS: Final = to_word_set(
    """
    add choose configure connect create deploy disable enable install integrate introduce migrate prepare recover remove
    replace restart rotate start stop troubleshoot understand uninstall upgrade use verify write
    """
)
"""Verbs that lead to a name in an order, as in "Restart Emberline", and are hardly ever the first word of one."""
_LEADING: Final = ORDERS | to_word_set(
    """
    about adding against and at before building changing checking choosing configuring connecting creating debugging
    deploying for from getting how installing integrating introducing introduction managing meet migrating moving on
    operating overview planning preparing reading recovering releasing removing replacing restarting reviewing running
    setting started starting stopping testing the to troubleshooting understanding updating upgrading using what when
    where why with working writing your our a an in of
    """
)
_LABELS: Final = to_word_set(
    """
    agenda appendix attendees actions background caution caveat changelog checklist conclusion configuration contact
    contacts contents context danger decision decisions definition definitions dependencies deployment description
    details documentation example examples faq features glossary goal goals guide history important index info
    information installation introduction issues license limits limitations links maintenance manual meeting minutes
    next note notes notice objective objectives open operation operations outcome overview owner owners participants
    policy prerequisites procedure procedures process purpose questions readme reference references release related
    requirements responsibilities result results roadmap roles scope section see setup specification specifications
    status step steps summary support table terms tip todo troubleshooting usage version versions warning warnings
    what why architecture architectures design overview components standards security testing monitoring inventory
    """
)
_LEAST: Final = 2
"""Minimum occurrences in the running text of a name that only headings or lower-case bold words show."""
_SHORT: Final = re.compile(
    r"(?<![\w'\u2019&-])(?P<before>(?:[\w'\u2019&-]+ ){1,8})"
    r"\((?:the )?[\"\u201c]?(?P<short>[A-Z][A-Za-z]?[A-Z]{1,6}s?)[\"\u201d]?\)"
)
_RUN: Final = re.compile(r"(?<=[a-z,:] )[A-Z][\w\u2019-]*(?: (?:& )?[A-Z][\w\u2019-]*)+(?!\w)")
"""Capitalized words that follow each other within a sentence."""
_SINGLE: Final = re.compile(r"(?<!\w)[A-Z][a-z]{2,}(?!\w)")
_TAIL: Final = re.compile(r"(?<!\s)\s++(?:(?:version\s++)?v?\d[\w.]*+(?:\s++or (?:later|newer))?|\([^()]*+\))\s*+$")
_COMMON: Final = to_word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december north south east west english please then when every each all any one two
    three four five first second third last present attendees action decision questions fines messages installs
    """
)
_WHOLE: Final = re.compile(r"\w+")
_PLURAL: Final = ("", "s", "es")
_WITHIN: Final = re.compile(r"[a-z,] ")
_CAPITAL_NEXT: Final = re.compile(r" [A-Z]")
_LOWER_NEXT: Final = re.compile(r" (?:[a-z]|v?\d)")
_VERSION_NEXT: Final = re.compile(r" v?\d+\.\d")
_INDEFINITE: Final = to_word_set("a an this these every each no")
_VERBS: Final = to_word_set("is are was were has have had can cannot must does did isn't aren't")
"""Words of sentences: ``Oxigraph is embedded`` names nothing."""
_DEFINED: Final = re.compile(r"\s*(?::|\u2013|\u2014| - )\s*\S")


def mine_names(outline: Outline, title: str | None) -> list[str]:
    """Find the names that a file shows, without duplicates.

    Of headings and the title, these are runs of capitalized words that the text repeats as such; in bold, names of up
    to four words with a capital, or that the text repeats, and terms at the start of an item with their definition.
    """
    found: dict[str, None] = {}
    running = _build_running(outline)
    headings = [snippet.plain.text for snippet in outline.snippets if snippet.kind == "heading"]
    for heading in dict.fromkeys([*([title] if title else ()), *headings]):
        for name in _find_runs(heading):
            if (" " in name and running.count(name)) or _is_proper(running, name, 1):
                found[name] = None
    for name in dict.fromkeys(match[0].strip() for match in _RUN.finditer(running.text)):
        words = name.split()
        if len(words) <= _MOST_WORDS and _is_name(name) and not any(word.casefold() in _LABELS for word in words[-1:]):
            found[name] = None
    for name in dict.fromkeys(match[0] for match in _SINGLE.finditer(running.text)):
        if _is_name(name) and _is_proper(running, name, _LEAST):
            found[name] = None
    for snippet in outline.snippets:
        whole = _TAIL.sub("", snippet.plain.text).strip(" .;")
        if snippet.kind in ("item", "cell") and _is_whole_name(whole):
            found[whole] = None
        for name, is_defined in _find_bold(snippet):
            if (
                is_defined
                or (any(map(str.isupper, name)) and not name.isupper())
                or _is_acronym(name)
                or running.count(name) > _LEAST
            ):
                found[name] = None
    return list(found)


def find_collected(outline: Outline, gazetteer: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Find the names of a gazetteer that the running text of a file has, as they are spelled.

    Yields each with whether it is code.
    """
    if not gazetteer:
        return
    running = _build_running(outline)
    for entry in gazetteer:
        name = entry.removeprefix(CODE)
        if next(running.find(name), None) is not None and (not name.isalpha() or _is_proper(running, name, 1)):
            yield name, name != entry


def _build_running(outline: Outline) -> _Running:
    return _Running(" \n".join(snippet.plain.text for snippet in outline.snippets if snippet.kind != "heading"))


def count_names(text: str, blocks: Sequence[Block], title: str | None) -> Counter[str]:
    """Count the names of one to four words in the title, the headings, the bold words and the code spans of a file.

    Of a longer name, the runs of its words count too. Of single words, those count that the text never has in lower
    case. Code begins with a backtick. Only the most frequent names are returned.
    """
    words = set(_WHOLE.findall(text))
    counts: Counter[str] = Counter()

    def add(name: str) -> None:
        if " " in name or not name.isalpha() or (name[0].isupper() and name.lower() not in words):
            counts[name] += 1

    headings = [block.title for block in blocks if block.kind == "heading"]
    for heading in dict.fromkeys([*([title] if title else ()), *headings]):
        for run in _split_runs(heading):
            for name in _find_parts(heading, run):
                add(name)
    for block in blocks:
        if block.kind in ("heading", "code"):
            continue
        for span in _SHOWN.finditer(text, block.start, block.end):
            shown = " ".join((span["bold"] or span["code"]).split())
            if span["code"] is not None:
                is_name = classify_code(shown) == "api" and not is_plain(shown)
            else:
                shown = _TAIL.sub("", shown.rstrip(":. "))
                is_name = shown[:1].isupper() and not (shown.isupper() and len(shown) > _LONGEST_ACRONYM)
            if is_name and len(shown.split()) <= _MOST_WORDS and _is_name(shown):
                add(CODE + shown if span["code"] is not None else shown)
    return Counter(dict(sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_COUNTED]))


def choose_names(counts: Mapping[str, int], least: int, most: int) -> list[str]:
    """Choose the names that files show at least `least` times, at most the `most` frequent of them.

    A run of words that occurs in one longer name only is left out.
    """
    frequent = {name: count for name, count in counts.items() if count >= least}
    parts: set[str] = set()
    for name, count in frequent.items():
        words = name.split(" ")
        for first in range(len(words)):
            for last in range(first + 1, len(words) + 1):
                part = " ".join(words[first:last])
                if part != name and frequent.get(part) == count:
                    parts.add(part)
    chosen = sorted(((-count, name) for name, count in frequent.items() if name not in parts))
    return sorted(name for _, name in chosen[:most])


def _find_parts(heading: str, run: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the names of one to four words in a run of words."""
    for first in range(len(run)):
        for last in range(first, min(first + _MOST_WORDS, len(run))):
            name = " ".join(heading[run[first].start() : run[last].end()].rstrip(".'").split())
            ends = run[first][0].casefold(), run[last][0].casefold()
            if _LABELS.isdisjoint(ends) and _LEADING.isdisjoint(ends) and _is_name(name):
                yield name


def _find_runs(heading: str) -> Iterator[str]:
    """Find the names in a heading: runs of capitalized words without words that only lead to them."""
    for run in _split_runs(heading):
        if len(run) <= _MOST_WORDS:
            name = heading[run[0].start() : run[-1].end()].rstrip(".'")
            if _is_name(name):
                yield name


def _split_runs(heading: str) -> Iterator[list[re.Match[str]]]:
    """Yield the runs of capitalized words in a heading, longest first."""
    words = list(_WORD.finditer(heading))
    runs: list[list[re.Match[str]]] = [[]]
    for word in words:
        plain = word[0].casefold()
        joined = not runs[-1] or heading[runs[-1][-1].end() : word.start()].strip() in ("", "&")
        if word[0][0].isupper() and plain not in _LABELS and (plain not in _LEADING or runs[-1]) and joined:
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
            if word[0][0].isupper() and plain not in _LABELS and plain not in _LEADING:
                runs[-1].append(word)
    for run in runs:
        while run and (run[-1][0].casefold() in _LEADING or run[-1][0].casefold() in _LABELS):
            run.pop()
        if run:
            yield run


def _find_bold(snippet: Snippet) -> Iterator[tuple[str, bool]]:
    text = snippet.plain.text
    for mark in snippet.plain.marks:
        if mark.kind != "bold":
            continue
        name = text[mark.start : mark.end].strip()
        is_label = name.endswith(":")
        name = name.rstrip(":. ")
        words = name.split()
        if not 0 < len(words) <= _MOST_WORDS or not _is_name(name):
            continue
        rest = text[mark.end :]
        is_defined = mark.start == 0 and (is_label or _DEFINED.match(rest) is not None) and len(rest.strip(" :")) > 20
        if is_label and not is_defined:
            continue
        yield name, is_defined and snippet.kind in ("item", "paragraph")


def _is_whole_name(text: str) -> bool:
    """Whether an item or a cell is a name and nothing else: two to four capitalized words."""
    words = text.split()
    return 2 <= len(words) <= _MOST_WORDS and all(_CAPITAL.fullmatch(word) for word in words) and _is_name(text)


def _is_acronym(name: str) -> bool:
    return name.isupper() and 2 <= len(name) <= _LONGEST_ACRONYM and name.isalnum()


def _is_name(name: str) -> bool:
    words = [word.casefold() for word in name.split()]
    return (
        len(name) > 1
        and words[0] not in _INDEFINITE
        and _VERBS.isdisjoint(words)
        and any(map(str.isalpha, name))
        and not (len(words) == 1 and (words[0] in _LABELS or words[0] in _LEADING))
        and not all(is_stop_word(word, "en") for word in words)
        and not all(word in _LABELS or is_stop_word(word, "en") for word in words)
    )


class _Running:
    """The running text of a file, with the places of its words: a file may have as many names as words."""

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._places: Final[dict[str, list[int]]] = defaultdict(list)
        for word in _WHOLE.finditer(text):
            self._places[word[0]].append(word.start())

    def find(self, name: str, endings: Sequence[str] = ("",)) -> Iterator[int]:
        """Yield where the text has a name with one of these endings, as whole words and in its own case."""
        first = _WHOLE.match(name)
        for ending in endings:
            whole = name + ending
            if first is not None and first.end() == len(name):
                yield from self._places.get(whole, ())
                continue
            found = self._places.get(first[0], ()) if first is not None else _find_all(self.text, whole)
            for place in found:
                if self.text.startswith(whole, place) and not _WHOLE.match(self.text, place + len(whole)):
                    yield place

    def count(self, name: str) -> int:
        """Count the occurrences of a name, in the singular and the plural."""
        return sum(1 for _ in self.find(name, _PLURAL))


def _find_all(text: str, words: str) -> Iterator[int]:
    place = text.find(words)
    while place >= 0:
        if not (place and _WHOLE.match(text[place - 1])):
            yield place
        place = text.find(words, place + 1)


def _is_proper(running: _Running, name: str, least: int) -> bool:
    """Whether a single word is a name: the text has it `least` times, and never in lower case or after an article."""
    if name.casefold() in _COMMON or is_stop_word(name.casefold(), "en"):
        return False
    lower = name.lower()
    singular = running.find(lower[:-1]) if name.endswith("s") else ()
    if next(chain(running.find(lower, _PLURAL), singular), None) is not None:
        return False
    text = running.text
    within = first = 0
    has_version = False
    for place in running.find(name):
        end = place + len(name)
        within += _WITHIN.fullmatch(text[max(0, place - 2) : place]) is not None and not _CAPITAL_NEXT.match(text, end)
        first += text[max(0, place - 1) : place] != "-" and _LOWER_NEXT.match(text, end) is not None
        has_version = has_version or _VERSION_NEXT.match(text, end) is not None
    if name.endswith(("ed", "ing")) and not within:
        return False
    return has_version or first > least or (within >= 1 and within + first >= least)


def find_aliases(text: str) -> Iterator[tuple[str, str]]:
    """Find short names in brackets, as in ``Tide Control System (TCS)``. Yields the full and the short one."""
    for match in _SHORT.finditer(text):
        letters = [letter for letter in match["short"] if letter.isupper()]
        words = match["before"].split()
        for count in range(min(len(words), len(letters) + 3), 0, -1):
            own = words[-count:]
            initials = [word[0] for word in own if word[0].isupper()]
            if own[0][0].isupper() and initials == letters and len(letters) > 1:
                yield " ".join(own), match["short"]
                break
