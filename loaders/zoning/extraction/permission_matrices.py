"""Uses that districts permit or prohibit, in matrices: tables of uses and districts with a letter for each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from loaders.readers.inline import to_plain_mark
from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permission_levels import (
    Level,
    UsePermission,
    find_review,
    is_conditional,
    level_of,
    prohibit_unlisted,
)
from loaders.zoning.readers.code_model import Cell, Section, Table
from loaders.zoning.readers.outline import find_label_end

_USUAL: Final[Mapping[str, Level]] = {
    "P": "byRight", "Y": "byRight", "YES": "byRight", "BR": "byRight", "PERMITTED": "byRight",
    "ALLOWED": "byRight", "✓": "byRight", "✔": "byRight", "•": "byRight", "●": "byRight", "■": "byRight",
    "C": "conditional", "CU": "conditional", "CUP": "conditional", "SU": "conditional",
    "SE": "conditional", "SP": "conditional", "SUP": "conditional", "SLU": "conditional", "CONDITIONAL": "conditional",
    "ZBA": "conditional", "BZA": "conditional",
    "P/C": "byRightOrConditional", "LIMITED": "byRightWithConditions",
    "N": "notPermitted", "NO": "notPermitted", "NP": "notPermitted", "-": "notPermitted", "–": "notPermitted",
    "—": "notPermitted", "--": "notPermitted", "PROHIBITED": "notPermitted", "NOT PERMITTED": "notPermitted",
}  # fmt: skip
"""Default meaning of letters, without a legend. X has two meanings; the other letters of the table decide."""
_MARK: Final = re.compile(
    r"(?P<letters>[A-Za-z]{1,4}-[A-Za-z]{1,4}|[A-Za-z/✓✔•●■○◯◐□☐–—-]{1,4}|\*{1,2}"
    r"|(?i:permitted|allowed|prohibited|conditional|limited|not permitted))"
    r"[ ]?(?P<notes>(?:[\[(]?[\d*†‡,]{1,5}[\])]?|\([a-z]\)(?:,? ?\([a-z]\))*)?)"
)
_LETTER: Final = re.compile(
    r"(?<![\w-])(?P<open>[“\"‘'(\[]{0,2})(?P<letter>[A-Z](?:[/-]?[A-Z]){0,6}\d?|[-–—✓✔•●■○◯◐□☐]|\*{1,2}"
    r"|(?P<word>(?i:dash|hyphen|asterisk|check ?mark|blank|empty|no (?:letter|symbol|mark|entry))))"
    r"(?!\w|-\d)[”\"’')\]]{0,2}"
)
"""A letter or symbol of a matrix, or the word for one, in the text that explains it."""
_SYMBOL_WORDS: Final = {"dash": "-–—", "hyphen": "-–—", "asterisk": "*", "checkmark": "✓✔", "check mark": "✓✔"}
_SENTENCE: Final = re.compile(r"(?:[^\n.]|\.(?! [A-Z“\"‘(✓✔•●■○◯◐□☐]|\s*$))+", re.MULTILINE)
_EXPLAINS: Final = re.compile(
    r"(?i) ?(?:=|:|\||[-–—](?= ?\w)|,? ?\b(?:means?|indicates?|denotes?|designates?|shows?|is|are|shall|stands? for"
    r"|signif\w+|represents?|appears?)\b)|, (?=that\b|an?\b|by\b|for\b|permitted\b|allowed\b|prohibited\b|not\b)",
)
"""Text between a letter and its meaning."""
_MARKED: Final = re.compile(
    r"(?i)\b(?:letters?|symbols?|marked|designated|shown|indicated|denoted|identified|appears?|by|with|as|an?|where|and|or)"
    r"(?: an?| the)?(?: letter| symbol)? ?$",
)
"""Words before a letter that is named without quotes."""
_AMONG_WORDS: Final = re.compile(
    r"(?i)\b(?:in|of|per|than|under|sections?|tables?|articles?|schedules?|districts?|zones?)(?: the)? $"
)
"""Words before a letter that is none of the table."""
_USE: Final = re.compile(r"(?i)\b(?:uses?|activit(?:y|ies))\b")
_NOTE: Final = re.compile(
    r"(?:\(?(?P<mark>\d{1,2}|[¹²³⁰⁴-⁹]{1,2}|[*†‡]{1,3})[.):]?|\((?P<letter>[a-z]{1,2})\)|(?P<plain>[a-z])[.)])"
    r" ?(?P<note>\S[^\n]*)"
)
_NOTE_START: Final = re.compile(r"\n|(?<=[.;,]) (?=[*†‡]{1,3} ?\w)")
"""Text between two notes: they may be on one line, ``* but no less than 20%. ** but no less than 30%.``"""
_KEY_TITLE: Final = re.compile(r"(?i)\b(?:key|legend|symbols?)\b")
_KEY: Final = re.compile(
    r"(?i)\b(?:symbols?|letters?|abbreviations?|designations?)\b[^.\n]{0,80}\b(?:tables?|schedules?|matrix|matrices"
    r"|charts?)\b"
    r"|\b(?:tables?|schedules?|matrix|matrices|charts?)\b[^.\n]{0,80}\b(?:symbols?|letters?|abbreviations?)\b",
)
"""Words of a section that explains the letters of a table in another section."""
_RIGHT: Final = re.compile(r"(?i)(?<!not )\b(?:by|as[- ]of|(?:as a )?matter[- ]of|of)[- ]right\b")
_CONDITION: Final = re.compile(
    r"(?i)\b(?:subject to|with|upon|after|if|provided|requiring|only(?= as| if| in| on| wh)|as (?:an )?accessory"
    r"|(?:that|which|but|and)(?: first| also)? (?:requires?|needs?))\b.*",
)
_PART: Final = re.compile(r"[;,] ?(?:and |or |but )?")
_ENDS: Final = " .,;:|/=–—-()"
"""Characters around a meaning."""
_KEY_BEFORE: Final = re.compile(r"(?i)(?:[/|;]|\b(?:key|legend|symbols?):?) ?$")
_UNLISTED: Final = re.compile(
    r"(?i)\buses? (?:(?:that|which) (?:is|are) )?not (?:\w{1,20} )?"
    r"(?:shown|listed|identified|included|enumerated|specified)\b",
)
_RULES_OUT: Final = re.compile(r"(?i)\b(?:prohibited|not (?:permitted|allowed))\b")
_LETTERS_SHARE: Final = 0.6
"""Minimum share of letters among non-empty cells in a matrix of uses."""
_GROUP: Final = 80
"""Longest heading of a group of rows, in code points."""
_AROUND: Final = 4_000
"""Code points before and after a table that are searched for its legend and notes."""


def is_legend(section: Section) -> bool:
    """Check whether a section may explain the letters of a matrix in another section."""
    return bool(_KEY_TITLE.search(section.title) or _KEY.search(section.text, 0, _AROUND))


def find_in_matrices(
    section: Section, known: Mapping[str, District], legends: Sequence[Section] = ()
) -> Iterator[UsePermission]:
    """Find the permissions in the matrices of a section.

    `known` are the districts of the code. `legends` are other sections that explain the letters of its matrices.
    """
    for table in _join_tables(section, known):
        yield from _in_matrix(section, table, known, legends)


def _join_tables(section: Section, known: Mapping[str, District]) -> Sequence[Table]:
    """Join the parts of a table that rows of one cell, such as ``Business uses``, divide."""
    joined: list[Table] = []
    for table in section.tables:
        grid = table.grid()
        goes_on = bool(joined and grid) and naming.find_column_codes(grid, known) is None
        between = section.text[joined[-1].end : table.start].strip() if goes_on else "\n"
        if "\n" not in between and len(between) <= _GROUP and len(grid[0]) == len(joined[-1].grid()[0]):
            joined[-1] = replace(joined[-1], end=table.end, rows=[*joined[-1].rows, *table.rows])
        else:
            joined.append(table)
    return joined


def parse_matrix(
    grid: Sequence[Sequence[Cell | None]], known: Mapping[str, District]
) -> tuple[Sequence[Sequence[Cell | None]], int, Mapping[int, Sequence[str]], Set[str]] | None:
    """Parse a table as one of uses and districts with a letter for each. None for any other table.

    Returns its rows, or else its columns, the last place of the header, the districts of each column, and the words of
    the cells for districts.
    """
    columns = naming.find_column_codes(grid, known)
    if columns is None:
        grid = [*zip_longest(*grid)]
        columns = naming.find_column_codes(grid, known)
    if columns is None:
        return None
    header, districts = columns
    if is_header_short(grid, header + 1):
        return None
    words = [cell.text for row in grid[header + 1 :] for cell in naming.find_filled(row[place] for place in districts)]
    titles = {naming.plain_name(each.name) for each in known.values() if each.name}
    labels = [{naming.plain_name(cell.text) for cell in row[:2] if cell is not None} for row in grid[header + 1 :]]
    if sum(not titles.isdisjoint(each - {""}) for each in labels) * 2 > len(labels):
        return None  # a list of districts
    if not words or sum(bool(_MARK.fullmatch(text.strip())) for text in words) < _LETTERS_SHARE * len(words):
        return None
    return grid, header, districts, {*words}


def _in_matrix(
    section: Section, table: Table, known: Mapping[str, District], legends: Sequence[Section]
) -> Iterator[UsePermission]:
    matrix = parse_matrix(table.grid(), known)
    if matrix is None:
        return
    grid, header, districts, marks = matrix
    legend = _parse_legend(section, table, marks, legends)
    notes = find_notes(section, table.end)
    last, names = max(districts), _names(grid, header, min(districts))
    unread: set[str] = set()
    told_of: set[str] = set()
    groups: Sequence[str] = ()
    grouped = indented = False
    for row in grid[header + 1 :]:
        use = next(iter(naming.find_filled(row[place] for place in names)), None)
        own = [cell for cell in naming.find_filled(row[place] for place in districts) if cell is not use]
        if use is None:
            continue
        if not any(_MARK.fullmatch(cell.text.strip()) for cell in own):
            groups, grouped = _enter_group(groups, strip_marks(section, use).strip(), within=grouped), True
            indented = False
        else:
            ends = indented and row[0] is use and bool(groups) and not groups[-1].isupper()
            groups = groups[:-1] if ends else groups  # a use in the first column, after those indented below a heading
            grouped, indented = False, row[0] is not use
        if not own:
            continue
        beside = [each.text.strip(" .") for each in naming.find_filled(row[last + 1 :]) if each not in own]
        told = [words for words in dict.fromkeys(beside) if any(map(str.isalnum, words)) and not _MARK.fullmatch(words)]
        for place, codes in districts.items():
            if (cell := row[place]) is not None and cell is not use:
                for code in (each for each in codes if each in known):
                    found = list(_parse_cell(section, use, cell, code, legend, notes, told))
                    if not found and cell.text.strip() and len(own) > 1:
                        unread.add(code)
                    told_of.update(each.district for each in found)
                    yield from (replace(each, group=" | ".join(groups)) for each in found)
    if (sentence := _find_prohibition(section.text)) is not None:
        yield from (prohibit_unlisted(code, section.text, *sentence) for code in sorted(told_of - unread))


def _enter_group(groups: Sequence[str], words: str, *, within: bool) -> Sequence[str]:
    """The headings above the rows below a heading, outermost first. One in capitals ends all others.

    `within` is whether the row above it is a heading too, which it may be below.
    """
    if words.isupper():
        return [*groups, words] if within and groups and groups[-1].isupper() else [words]
    return [*(groups if within or not groups or groups[-1].isupper() else groups[:-1]), words]


def _find_prohibition(text: str) -> tuple[int, int] | None:
    """Find the sentence that prohibits all uses that a matrix does not list."""
    for sentence in _SENTENCE.finditer(text):
        words = sentence[0]
        if (unlisted := _UNLISTED.search(words)) is not None and _RULES_OUT.search(words, unlisted.end()):
            start = sentence.start() + len(words) - len(words.lstrip())
            return start, start + len(words.strip())
    return None


def is_header_short(grid: Sequence[Sequence[Cell | None]], header: int) -> bool:
    """Check whether the header of a table, its first rows, has fewer columns than most rows below it.

    Its cells span columns in a way that the text does not show, so which column each is for is not known.
    """
    ends = [max((place for place, cell in enumerate(row) if cell is not None), default=-1) for row in grid]
    below = Counter(ends[header:]).most_common(1)
    return bool(below) and max(ends[:header], default=-1) < below[0][0]


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The meaning of a letter."""

    level: Level
    review: str | None = None
    """The citation of the review for a use."""
    condition: str | None = None
    """The condition of a use that is permitted by right, verbatim."""


def _parse_legend(
    section: Section, table: Table, words: Set[str], legends: Iterable[Section]
) -> Mapping[str, _Meaning | None]:
    """Parse the meaning of letters from the text around the table, or else from `legends`, with defaults.

    A letter whose explanation is not understood, or that two of the `legends` explain differently, has no meaning.
    """
    letters = {each for word in words for each in (_letters(word), word.strip().upper(), "")}
    told: dict[str, _Meaning | None] = {}
    for each in legends:
        for letter, said in _meanings(each.text[:_AROUND], letters):
            meaning = _parse_meaning(said)
            told[letter] = meaning if told.get(letter, meaning) == meaning else None
    for around in (section.text[table.end : table.end + _AROUND], section.text[: table.start][-_AROUND:]):
        meanings = [(letter, _parse_meaning(said)) for letter, said in _meanings(around, letters)]
        told |= {letter: meaning for letter, meaning in meanings if meaning is not None}
        told = dict.fromkeys((letter for letter, _ in meanings if letter == "X")) | told  # "X is impossible"
    legend = {letter: _Meaning(level) for letter, level in _USUAL.items()} | told
    if "X" in letters and "X" not in told:
        others = [legend.get(letter) for letter in letters - {"X"}]
        legend["X"] = _Meaning(
            "notPermitted" if any(each and each.level == "byRight" for each in others) else "byRight"
        )
    return legend


def _parse_meaning(words: str) -> _Meaning | None:
    """Parse the meaning of a letter. A use by right is one even if a board reviews its plan."""
    levels = {level_of(part) for part in _PART.split(words)} - {None}
    if "notPermitted" in levels and len(levels) > 1:
        return None  # "a conditional use, and not permitted"
    level, condition = level_of(f"{words} uses"), _CONDITION.search(words)
    if (_RIGHT.search(words) or level == "byRight") and level != "notPermitted" and not is_conditional(words):
        level = "byRightWithConditions" if condition else "byRight"
    if level is None:
        return None
    review = find_review(words) if level in ("conditional", "byRightWithConditions") else None
    if level != "byRightWithConditions" or condition is None:
        return _Meaning(level, review)
    said = condition[0].strip(" .,;|")
    return _Meaning(level, review, said + ")" * (said.count("(") - said.count(")")))


def _meanings(around: str, letters: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield letters and the words of their meanings.

    The letters of a sentence divide it. Their meanings are before them, ``Prohibited uses (N)``, where the words before
    the first letter have a level, and those after the last have none. Else they are behind: ``P means permitted``.
    """
    for sentence in _SENTENCE.finditer(around):
        said = sentence[0]
        signs = list(_find_signs(said, letters))
        if not signs:
            continue
        starts = [match.end() for match, _ in signs]
        ends = [*[match.start() for match, _ in signs[1:]], len(said)]
        behind = [said[start:end] for start, end in zip(starts, ends, strict=True)]
        before = [said[: signs[0][0].start()], *behind[:-1]]
        reverse = _parse_meaning(before[0]) is not None and _parse_meaning(behind[-1]) is None
        for (_, names), meaning in zip(signs, before if reverse else behind, strict=True):
            for name in names:
                yield name, meaning.strip(_ENDS)


def _find_signs(said: str, letters: Set[str]) -> Sequence[tuple[re.Match[str], Sequence[str]]]:
    """Find the letters that a sentence explains, each with the marks that it is for.

    One of them is in quotes or brackets, next to words of an explanation, or at the start of a line. Then all others
    are explained too, but ``A`` and ``I`` may be words. So are letters of other tables, by their form or their length.
    """
    found: list[tuple[re.Match[str], Sequence[str], bool, tuple[str, str]]] = []
    explained = False
    for match in _LETTER.finditer(said):
        word = (match["word"] or "").casefold()
        names = _SYMBOL_WORDS.get(word, "") or ("",) if word else (match["letter"].upper(),)
        own = [each for each in names if each in letters]
        plain = match["letter"].isalpha() and match["letter"] not in ("A", "I")
        explains = _EXPLAINS.match(said, match.end())
        told = bool(
            match["open"]
            or word
            or explains
            or not said[: match.start()].strip()
            or (plain and _MARKED.search(said, 0, match.start()))
            or _KEY_BEFORE.search(said, 0, match.start())
        )
        explained = explained or (told and bool(own))
        short = plain and (len(names[0]) < 3 or names[0] in _USUAL) and not _AMONG_WORDS.search(said, 0, match.start())
        if (told or plain) if own else (told or short):
            found.append((match, own or names, bool(own) or short, (match["open"], explains[0] if explains else "")))
    forms = {form for _, names, _, form in found if letters >= {*names}} - {("", "")}
    return [(match, names) for match, names, sure, form in found if sure or form in forms] if explained else []


def _names(grid: Sequence[Sequence[Cell | None]], header: int, first: int) -> Sequence[int]:
    """The columns before the first district that may contain the name of a use, best first."""
    heads = [" ".join(cell.text for row in grid[: header + 1] if (cell := row[place])) for place in range(first)]
    named = [place for place, words in enumerate(heads) if _USE.search(words)]
    column = named[-1] if named else 0
    return range(column, -1, -1)


def _letters(word: str) -> str:
    match = _MARK.fullmatch(word.strip())
    return match["letters"].upper() if match else word.strip().upper()


def find_notes(section: Section, end: int) -> Mapping[str, str]:
    """Find the notes below the end of a table by mark: subsections with such labels, or lines that start with them."""
    notes: dict[str, str] = {}
    for each in section.subsections:
        if each.start >= end and len(each.path) == 1:
            notes.setdefault(each.path[0], section.text[each.start : each.end].strip())
    for line in _NOTE_START.split(section.text[end : end + _AROUND]):
        if match := _NOTE.fullmatch(line.strip()):
            mark = match["mark"] or match["letter"] or match["plain"]
            notes.setdefault(to_plain_mark(mark), match["note"])
    return notes


def _parse_cell(
    section: Section,
    use: Cell,
    cell: Cell,
    code: str,
    legend: Mapping[str, _Meaning | None],
    notes: Mapping[str, str],
    told: Sequence[str],
) -> Iterator[UsePermission]:
    name = strip_marks(section, use).strip(" .;:")
    name = name[find_label_end(name, 0, len(name)) :]
    raw = strip_marks(section, cell).strip()
    explained = raw.upper() in legend
    marks = find_marks(section, use, cell)
    if not explained and (match := _MARK.fullmatch(raw)) and (match["notes"] in notes or not match["notes"].isdigit()):
        raw = match["letters"]
        marks += re.findall(r"\d+|[*†‡]+|[a-z]+", match["notes"])
    conditions = list(dict.fromkeys(notes.get(mark, mark) for mark in marks))
    usual = None if explained else re.match(r"(SP|SE|SUP|CUP|C)(?=-[A-Z]|\d)", raw)
    meaning = legend.get(usual[1] if usual else raw.upper())
    if meaning is None:
        return
    level, told_at = meaning.level, cell if raw else use
    if level == "byRight" and conditions:
        level = "byRightWithConditions"
    conditions += [meaning.condition] if meaning.condition else []
    conditions += told if level != "notPermitted" else ()
    yield UsePermission(code, name, level, raw, conditions, meaning.review, told_at.start, told_at.end, "matrix")


def find_marks(section: Section, *cells: Cell) -> list[str]:
    """Find the raised marks of cells."""
    return [to_plain_mark(section.text[start:end]) for cell in cells for start, end in cell.superscripts]


def strip_marks(section: Section, cell: Cell) -> str:
    """Get the words of a cell without its raised marks."""
    words, at = [], cell.start
    for start, end in sorted(cell.superscripts):
        words.append(section.text[at:start])
        at = max(at, end)
    return "".join([*words, section.text[at : cell.end]])
