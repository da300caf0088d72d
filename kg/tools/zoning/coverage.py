"""Finds the sentences of districts' sections that extraction did not understand: the gaps of an answer.

A sentence with words of permission is understood if a permission or definition rests on it, or if it introduces a list
of permissions. A code in a matrix is understood if a permission rests on it. A measure is understood if a standard or
definition rests on it. A sentence about several districts is understood for those of its rules only, and one that
enumerates uses only if each of them was read. The sections of a district are those with its name in their heading or in
one above it, where items of a list of uses count too, and all sections of its rules, there without the sentences that
name other districts only. In other sections, the sentences that name the district count.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple, Protocol

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.retrieval.choices import shorten
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.token_budget import Lean, clipped
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import find_sentence_ends
from kg.tools.zoning.municipalities import Place, get_section_key
from kg.tools.zoning.rule_search import RuleKind
from kg.tools.zoning.term_lookup import MEMBERS, Named, parse_use_kinds
from kg.vocabulary import KG, mint
from kg.words import singular
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree

_CHARACTERS: Final = 240
"""Maximum characters of a sentence in an answer."""
_FIGURES: Final = {"O": "0", "I": "1"}
_OF_DISTRICT: Final = re.compile(r"\b(?:districts?|zones?)\b", re.IGNORECASE)
_MEASURED: Final[Mapping[str, str]] = {
    "height": "high tall storey story stories", "storey": "story stories floor height", "area": "square acre size",
    "setback": "yard line distance back from", "yard": "setback line", "width": "wide", "depth": "deep",
    "coverage": "cover covered percent", "density": "unit acre", "frontage": "front street", "length": "long",
    "parking": "space stall", "separation": "apart between distance",
}  # fmt: skip
"""Words of sentences about a type of standard, by a word of the type."""
_INSIDE: Final = re.compile(
    r"\b[Ii]n (?:(?:the|an?|any|each|either|all) )?(?:(?:[A-Z][\w/-]*+|and|or|the|an?|districts?|zones?),? )*+$"
)
_LONGEST_INSIDE: Final = 300
"""Maximum characters of such words. A longer search would begin again at each of them."""
_USES_OF: Final = re.compile(
    r"\buses? (?:\w+ ){0,3}(?:permitted|allowed|listed|authorized)(?: \w+){0,2} *$", re.IGNORECASE
)
"""``Any use permitted`` in a district is a reference to it."""
_ENUMERATION: Final = re.compile(
    r"\b(?:including|includes?|namely|as follows:|following (?:are |shall be )?(?:prohibited|permitted|allowed):)"
    r" (?P<members>[^.;:]+)",
    re.IGNORECASE,
)
_NO_USE: Final = re.compile(
    r"\b(?:districts?|zones?|following|accessory uses|notwithstanding|in addition|elsewhere|however)\b", re.IGNORECASE
)
"""Parts of a sentence before its verb that are no uses."""
_SUBJECTS: Final = re.compile(
    r"(?:in (?:the|an?|any|each) [^,]{1,60}, )?(?!(?:they|it|such|these|this|uses?|what)\b)(?P<members>[^.;:]{3,200}?) "
    r"(?:is|are|shall be|may be) (?:\w+ )?(?:permitted|allowed|prohibited|forbidden|authorized|approved)\b",
    re.IGNORECASE,
)
_LISTED_CODE: Final = re.compile(r"(?:\(|, )\w[,)]")
"""A code of one letter in a list: ``Kiln: Q (A, B)``."""

TEXTS: Final = """
SELECT ?section ?text WHERE { VALUES ?section { $sections } ?section schema:text ?text }"""

# The kinds as a filter: with their values the engine would read all rules of the store first.
SPANS: Final = """
SELECT ?section ?kind ?start ?end ?district WHERE {
  VALUES ?section { $sections }
  ?finding kg:definedIn ?section ; a ?kind ; kg:evidence ?span . ?span kg:start ?start ; kg:end ?end
  FILTER(?kind IN (kg:UsePermission, kg:DimensionalStandard, kg:Definition))
  OPTIONAL { ?finding kg:district ?district }
}"""

# With the sections in each branch: outside of them, the engine would read all labels.
NAMES: Final = """
SELECT ?section ?name WHERE {
  {
    VALUES ?section { $sections } ?permission kg:definedIn ?section ; kg:landUse ?use . ?use skos:prefLabel ?name
  } UNION {
    VALUES ?section { $sections } ?permission kg:definedIn ?section ; kg:landUse ?use ; kg:condition ?name
  }
}"""

SECTIONS: Final = """
SELECT DISTINCT ?district ?section WHERE {
  VALUES ?district { $districts } ?rule kg:district ?district ; kg:definedIn ?section
}"""

# A prohibition in all districts, or the height of fences in all, does not show where a district has its rules.
OF_ITS_OWN: Final[Mapping[RuleKind, str]] = {
    "permission": """
SELECT DISTINCT ?district ?section WHERE {
  VALUES ?district { $districts } ?rule kg:district ?district ; kg:landUse ?use ; kg:definedIn ?section
  FILTER NOT EXISTS { ?rule kg:permissionLevel $prohibited }
}""",
    "standard": """
SELECT DISTINCT ?district ?section WHERE {
  VALUES ?district { $districts } ?rule kg:district ?district ; kg:standardType ?type ; kg:definedIn ?section
  FILTER NOT EXISTS { ?rule kg:appliesTo ?subject FILTER(?subject != "") }
}""",
}

# These signs are not the patterns that extraction reads by: what extraction misses must still be noticed here, so they
# are simpler and find more.
_PERMISSION: Final = re.compile(
    r"\b(?:permitted|allowed|prohibited|forbidden|unlawful|by right|(?:conditional|special) (?:uses?|exceptions?)|"
    r"special permits?|shall not be used|"
    r"may (?:\w+ )?be (?:authorized|approved|established|granted|conducted|operated)|"
    r"(?:may|shall|must) be (?:\w+ (?:or|and) )?(?:used|erected|converted) (?:only )?(?:as|for)|no others?|"
    r"uses?,? (?:which |that )?(?:shall )?includ(?:e|ing)|accessory uses?(?=[:.])|"
    r"no [^.;:\n]{1,60} (?:shall|may|must) be (?:\w+ (?:or|and) )?used (?:as|for)|not be (?:used|established))\b",
    re.IGNORECASE,
)
_NUMBER: Final = (
    r"(?:\d[\d,.]{0,24}+(?:(?:(?<=[\d,.]\d)|[ -]\d{1,9}+)/\d++|[½¼¾⅓⅔])?|one|two|three|four|five|six|seven|eight|nine"
    r"|ten|twelve|\w{1,40}ty)"
)
_MEASURE: Final = re.compile(
    rf"(?<![\w.]){_NUMBER}[ -]*+(?:\(\s*+[^()]{{0,12}}\)[ -]*+)?"
    r"(?:feet|foot|ft\b|['’′](?!s)|acres?\b|ac\b|sq(?:uare|\.)|sf\b|percent|%|stor(?:y|ies|eys?)\b|met(?:er|re)s?\b|"
    r"inches\b|(?:parking )?spaces?\b|(?:dwelling )?units?\b)",
    re.IGNORECASE,
)
_PROHIBITED: Final = mint("code", "permissionLevel", "notPermitted")
_LEAD: Final = re.compile(r":\s*$|\b(?:following|as follows)\b[^:]*$", re.IGNORECASE)
"""A sentence that introduces a list."""
_REPEATED: Final = re.compile(r"[ \n]?\([^()]{1,40}\)")
"""The same measure in brackets: ``thirty percent (30%)``."""
_ITEM_WORDS: Final = 10
"""Maximum words of an item of a list of uses."""
_LISTED: Final = 3
"""Least number of permissions in a section with a list of uses."""
_NO_ITEM: Final = re.compile(
    r":$|\b(?:see|section|table|figure|chapter|shall|must|may|is|are|be|was|were|has|have|does|will|can|intended|purpose)\b|§|"
    r"^\W*(?:uses|standards|districts?)\W*$",
    re.IGNORECASE,
)
_DIVIDER: Final = " | "
"""Divider of the cells of a table in the text of a section."""
_CODE: Final = re.compile(
    r"(?:[A-Z]{1,5}(?:[/-][A-Z]{1,4}){0,2}\d?|[a-z]{1,2}|[✓✔•●■○◯◐□☐*]{1,2})(?: ?[(\[]?[\d,*†‡]{1,5}[)\]]?)?"
)
"""A code in a cell of a matrix: ``SPR``, ``C-2``, ``P (3)``."""
_LABEL: Final = re.compile(r"(?:(?<!\s)\s++)?(?:(?:\(\w{1,4}\)|(?:[ivxl]{1,5}|[a-zA-Z]|\d{1,2})[.)](?=\s))\s*+){1,3}")
"""Labels of an item: ``(1)``, ``iii.``, ``B. (2)``."""
_ITEM_LABEL: Final = re.compile(r"\s*(?P<label>\(?(?:[a-z]{1,4}|[A-Z]|\d{1,2})[.)])\s+\S")
"""Label of an item in brackets or with a sign after it: ``(1)``, ``iii.``"""
_WORD: Final = re.compile(r"[^\W\d_]{3}")
_INNER_END: Final = re.compile(r"[.!?;:][)\]\"”']*\s+\S")
"""A sign that a line may have several sentences."""
_HEADING_WORDS: Final = 8
"""Maximum words of a sentence that may be the heading of a list."""
_SIGNS: Final[Mapping[RuleKind, re.Pattern[str]]] = {"permission": _PERMISSION, "standard": _MEASURE}
_COVERING: Final[Mapping[RuleKind, frozenset[str]]] = {
    "permission": frozenset((KG.UsePermission.value, KG.Definition.value)),
    "standard": frozenset((KG.DimensionalStandard.value, KG.Definition.value)),
}


class NotUnderstood(Lean):
    """A sentence of a section that no rule was read from, though it has words of a rule."""

    section_ref: str
    words: str


class Gap(NamedTuple):
    """A sentence that was not understood, with the districts, by IRI, that it may be about."""

    section: str
    words: str
    districts: frozenset[str]


class Coverage(NamedTuple):
    """The gaps of an answer about some districts."""

    gaps: Sequence[Gap] = ()
    """All of them: those with words asked for first, then those under the headings of the districts."""
    lost: Sequence[str] = ()
    """The codes of the districts of which no section was found."""
    kind: RuleKind = "permission"

    @property
    def is_complete(self) -> bool:
        """Whether all sentences with words of a rule were understood."""
        return not (self.gaps or self.lost)

    def page(self, offset: int, limit: int) -> list[NotUnderstood]:
        """Get a page of the sentences, for an answer."""
        return [
            NotUnderstood(section_ref=get_section_key(gap.section), words=clipped(gap.words, _CHARACTERS))
            for gap in self.gaps[offset : offset + limit]
        ]

    @property
    def sections(self) -> list[str]:
        """The sections to read."""
        return list(dict.fromkeys(get_section_key(gap.section) for gap in self.gaps))

    @property
    def incomplete(self) -> str | None:
        """The gaps in words. None if all sentences with words of a rule were understood."""
        notes = []
        if self.lost:
            notes.append(f"No section of {shorten(self.lost)} was found.")
        if count := len(self.gaps):
            signs = "words of permission, or items of lists of uses," if self.kind == "permission" else "measures"
            several = f"{count} sentences with {signs} were" if count > 1 else f"A sentence with {signs} was"
            refs = shorten(self.sections)
            notes.append(
                f"{several} not understood: see not_understood, which offset pages through too. Read {refs} with "
                "kg_query_section."
            )
        return " ".join(notes) or None


def check_coverage(
    reader: Reader,
    kind: RuleKind,
    place: Place,
    districts: Mapping[str, Named],
    known: Mapping[str, Named],
    asked: str | None = None,
) -> Coverage:
    """Find the sentences that were not understood in the sections of `districts`, by IRI, of those `known`.

    Sentences with words of `asked`, a use or standard type, come first. A code without text is not checked.
    """
    found = find_gaps(reader, kind, place, known)
    if found is None:
        return Coverage(kind=kind)
    gaps = [gap for gap in found.gaps if not gap.districts.isdisjoint(districts)]
    gaps.sort(key=lambda gap: gap.section not in found.headed or found.headed[gap.section].isdisjoint(districts))
    gaps = found._replace(gaps=gaps).rank(asked)
    return Coverage(gaps, [each.code for iri, each in districts.items() if iri not in found.located], kind)


class Gaps(NamedTuple):
    """All sentences of a code that were not understood and that may be about a district."""

    gaps: Sequence[Gap]
    """In document order."""
    headed: Mapping[str, Set[str]]
    """The districts in the heading of each section, or in one above it."""
    located: Set[str]
    """The districts of which a section was found: by its heading, or by a rule that is not about all districts."""
    kind: RuleKind

    def rank(self, asked: str | None) -> list[Gap]:
        """Sort them: those with words of `asked`, a use or standard type, come first."""
        if asked is None:
            return list(self.gaps)
        count = rank_by_words(self.kind, asked)
        return sorted(self.gaps, key=lambda gap: -count(gap.words))


def find_gaps(reader: Reader, kind: RuleKind, place: Place, known: Mapping[str, Named]) -> Gaps | None:
    """Find all sentences of a code that were not understood. None if the code has no text."""
    try:
        tree = code_tree.cached_tree(reader.kg, place.iri)
    except NotFoundError:  # only tables of the municipality are loaded
        return None
    if not any(section.text_sha256 for section in tree.sections.values()):
        return None
    if not known:
        return Gaps([], {}, set(), kind)
    headed = find_headed(tree, known)
    ruled: dict[str, set[str]] = defaultdict(set)
    nodes = [NamedNode(iri) for iri in known]
    rows = reader.kept("sections of rules", bind(SECTIONS, districts=nodes), _to_pairs)
    for district, section in rows:
        if district not in headed.get(section, ()):
            ruled[section].add(district)
    unread = reader.kept_by_iri(
        f"not understood: {kind}", tree.order, lambda missing: _load_unread(reader, kind, missing)
    )
    find_named = compile_finder(known)
    gaps: list[Gap] = []
    for section in tree.order:
        for words, is_item, served in unread.get(section, ()):
            if served is not None:
                about = find_named(words, is_inside=True) - served
            else:
                about = set(headed.get(section, ()))
                if not is_item:
                    about |= find_named(words) or ruled[section]
            if about:
                gaps.append(Gap(section, words, frozenset(about)))
    terms = {"prohibited": _PROHIBITED} if kind == "permission" else {}
    query = bind(OF_ITS_OWN[kind], districts=nodes, **terms)
    own = reader.kept("sections of own rules", query, _to_pairs)
    located = {*(district for several in headed.values() for district in several), *(district for district, _ in own)}
    return Gaps(gaps, headed, located, kind)


class _Finder(Protocol):
    """Finds the districts that a sentence names. `is_inside`: only those that it is about: ``in the R-1 District``."""

    def __call__(self, words: str, *, is_inside: bool = False) -> set[str]: ...


def compile_finder(known: Mapping[str, Named]) -> _Finder:
    """Build a function that finds the districts that a sentence names by code, or by a name of several words.

    A code of one letter counts only next to the word district or zone, or in a list of columns. A code that differs
    from a known one by a letter that looks like a figure counts as that one, unless that is a code too.
    """
    by_code = {each.code: iri for iri, each in known.items()}
    for code in list(by_code):
        for alike in _find_alike(code):
            by_code.setdefault(alike, by_code[code])
    names = Counter(_OF_DISTRICT.sub("", each.name).strip() for each in known.values())
    for iri, each in known.items():
        name = _OF_DISTRICT.sub("", each.name).strip()
        if names[name] == 1 and " " in name:
            by_code.setdefault(name, iri)
    pattern = _compile_codes(by_code)

    def find_in(words: str, *, is_inside: bool = False) -> set[str]:
        return {
            by_code[match[0]]
            for match in pattern.finditer(words)
            if (
                len(match[0]) > 1
                or _LISTED_CODE.search(words[max(0, match.start() - 2) : match.end() + 1])
                or _OF_DISTRICT.search(words[max(0, match.start() - 10) : match.end() + 10])
            )
            and (not is_inside or _is_inside(words[: match.start()]))
        }

    return find_in


def _is_inside(before: str) -> bool:
    """Whether the words before a district say that a sentence is about the inside of it."""
    found = _INSIDE.search(before, max(0, len(before) - _LONGEST_INSIDE))
    return found is not None and _USES_OF.search(before[: found.start()]) is None


def rank_by_words(kind: RuleKind, asked: str) -> Callable[[str], int]:
    """Build a function that counts the words of a sentence that are asked for, in these or other words for the same."""
    if kind == "permission":
        meant, plain = parse_use_kinds(asked), set(_to_words(asked))
        return lambda words: 2 * len(plain & set(_to_words(words))) + len(meant & parse_use_kinds(words))
    alike = [{each, *_MEASURED.get(each, "").split()} for each in _to_words(asked)]

    def count(words: str) -> int:
        found = set(_to_words(words))
        return sum(not each.isdisjoint(found) for each in alike)

    return count


def _to_words(text: str) -> list[str]:
    return [singular(word) for word in fold(text).split() if len(word) > 2]


def _compile_codes(codes: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern of codes. Of codes with the same beginning, it finds the longest."""
    longest = sorted(codes, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?![\w-])")


def _find_alike(code: str) -> Iterator[str]:
    """Yield the codes that differ by one figure that looks like the letter: ``R-0`` may be a misprint of ``R-O``."""
    for place, letter in enumerate(code):
        if (figure := _FIGURES.get(letter)) is not None:
            yield code[:place] + figure + code[place + 1 :]


def find_headed(tree: CodeTree, districts: Mapping[str, Named]) -> Mapping[str, Set[str]]:
    """Find the districts that the heading of each section names, or one above it."""
    headed: dict[str, set[str]] = defaultdict(set)
    by_code = {each.code: iri for iri, each in districts.items()}
    pattern = _compile_codes(by_code)
    names: dict[str, set[str]] = defaultdict(set)
    for iri, each in districts.items():
        if each.name != each.code and (name := fold(each.name)).replace("district", "").count(" ") > 1:
            names[name].add(iri)
    for iri, section in tree.sections.items():
        if not section.title:
            continue
        found = {by_code[match[0]] for match in pattern.finditer(section.title)}
        found = {each for each in found if len(districts[each].code) > 1 or _OF_DISTRICT.search(section.title)}
        plain = fold(section.title)
        if not found:
            found = {each for name, several in names.items() if f" {name} " in f" {plain} " for each in several}
        for part in (iri, *_below(tree, iri)) if found else ():
            headed[part] |= found
    return headed


def _to_pairs(rows: Sequence[Mapping[str, Term]]) -> list[tuple[str, str]]:
    return [(iri_of(row["district"]), iri_of(row["section"])) for row in rows]


def _below(tree: CodeTree, section: str) -> Iterator[str]:
    pending, seen = [section], {section}
    while pending:
        for part in tree.children.get(pending.pop(), ()):
            if part not in seen:
                seen.add(part)
                pending.append(part)
                yield part


_Sentence = tuple[str, bool, frozenset[str] | None]
"""A sentence, whether it is only an item of a list, and if it was understood the districts of its rules."""


def _load_unread(reader: Reader, kind: RuleKind, sections: Iterable[str]) -> dict[str, tuple[_Sentence, ...]]:
    nodes = [NamedNode(iri) for iri in sections]
    spans: dict[str, dict[tuple[int, int], set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in reader.rows("words that were understood", bind(SPANS, sections=nodes)):
        if iri_of(row["kind"]) in _COVERING[kind]:
            span = int(term_text(row["start"])), int(term_text(row["end"]))
            served = spans[iri_of(row["section"])][span]
            if "district" in row:
                served.add(iri_of(row["district"]))
    texts = {
        iri_of(row["section"]): term_text(row["text"])
        for row in reader.rows("texts of the sections", bind(TEXTS, sections=nodes))
    }
    names: dict[str, set[str]] = {}
    if kind == "permission":
        for row in reader.rows("names of uses", bind(NAMES, sections=nodes)):
            names.setdefault(iri_of(row["section"]), set()).update(_to_words(term_text(row["name"])))
    return {
        node.value: (
            *((*each, None) for each in find_unread(texts.get(node.value, ""), sorted(spans[node.value]), kind)),
            *_find_read(texts.get(node.value, ""), spans[node.value], names.get(node.value)),
        )
        for node in nodes
    }


def _find_read(text: str, spans: Mapping[tuple[int, int], Set[str]], names: Set[str] | None) -> Iterator[_Sentence]:
    """Find the sentences on which rules of districts rest, with these districts.

    `names` has the words of the uses in this text and of their conditions. A sentence was not understood if it
    enumerates others.
    """
    of_districts = sorted(span for span, served in spans.items() if served)
    if not of_districts:
        return
    for start, end in split_sentences(text):
        words = text[start:end]
        served = [spans[span] for span in of_districts if span[0] < end and span[1] > start]
        if not served or _DIVIDER in words:
            continue
        if names is not None and enumerates_others(words, names):
            yield words, False, None
        else:
            yield words, False, frozenset().union(*served)


def enumerates_others(words: str, names: Set[str]) -> bool:
    """Whether a sentence enumerates uses of which one has no word of these `names`: ``including barns and silos``."""
    found = (_ENUMERATION.search(words), _SUBJECTS.match(_LABEL.sub("", words.strip())))
    members = [each for match in found if match for each in MEMBERS.split(match["members"])]
    said = (_to_words(each) for each in members if not (_NO_ITEM.search(each) or _NO_USE.search(each)))
    return any(each and names.isdisjoint(each) for each in said)


def find_unread(text: str, spans: Sequence[tuple[int, int]], kind: RuleKind) -> Iterator[tuple[str, bool]]:
    """Find the sentences of a text with a sign of a rule on which none of the sorted `spans` rests.

    Yields each with whether it is only an item of a list.
    """
    signs, is_list = _SIGNS[kind], kind == "permission" and len(spans) >= _LISTED
    if signs.search(text) is None and not (is_list or (kind == "permission" and spans)):
        return
    rows = _find_unread_rows(text, frozenset(spans)) if is_list and _DIVIDER in text else {}
    yield from ((words, False) for several in rows.values() for words in several)
    ends = _merge([(start, _extend(text, end)) for start, end in spans] if kind == "standard" else spans)
    sentences = list(split_sentences(text))
    for number, (start, end) in enumerate(sentences):
        found = [(start + match.start(), start + match.end()) for match in signs.finditer(text[start:end])]
        if start in rows:
            continue
        if not found:
            is_item = (is_list and _is_item(text[start:end])) or _is_between_items(text, sentences, number, ends, kind)
            if is_item and not _overlaps(ends, start, end):
                yield text[start:end], True
            continue
        if kind == "standard":
            if all(_overlaps(ends, *each) for each in found):
                continue
        elif _overlaps(ends, start, end):
            continue
        else:
            sentence = text[start:end].strip()
            is_lead = _LEAD.search(sentence) or (": " not in sentence and len(sentence.split()) <= _HEADING_WORDS)
            following = sentences[number + 1 : number + 3]
            if is_lead and any(_overlaps(ends, *each) for each in following):
                continue
        yield text[start:end], False


def _find_unread_rows(text: str, spans: Set[tuple[int, int]]) -> Mapping[int, Sequence[str]]:
    """Find the codes in a matrix of permissions on which no permission rests, by start of the row.

    Each is in words with its row and its columns: ``Mill: SPR (R-1, C-2)``. Cells that are read are `spans`. A code is
    in a column that is read in some row, or after it.
    """
    rows: list[list[tuple[int, int]]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        bare, at, cells = line.rstrip("\n"), start, list[tuple[int, int]]()
        for words in bare.split(_DIVIDER):
            cells.append((at, at + len(words.rstrip())))
            at += len(words) + len(_DIVIDER)
        if len(cells) > 1:
            rows.append(cells)
        start += len(line)
    found: dict[int, list[str]] = {}
    heads: dict[int, list[list[str]]] = defaultdict(list)
    begun: set[int] = set()
    """Widths of the tables whose first row with a permission was reached."""
    first: dict[int, int] = {}
    for row in rows:
        own = [
            place for place, cell in enumerate(row) if place and cell in spans and _CODE.fullmatch(text[slice(*cell)])
        ]
        if own:
            first[len(row)] = min(own[0], first.get(len(row), own[0]))
    for row in rows:
        marks = [text[slice(*cell)] for cell in row]
        least, headers = first.get(len(row)), heads[len(row)]
        if least is None:
            continue
        if any(cell in spans for cell in row):
            begun.add(len(row))
        elif len(row) not in begun and len(set(marks)) == len(marks):
            headers.append(marks)
        if marks in headers:
            continue
        head = headers[-1] if headers else [""] * len(row)
        several: dict[str, list[str]] = defaultdict(list)
        for place in range(least, len(row)):
            if row[place] not in spans and _CODE.fullmatch(marks[place]):
                several[marks[place]].append(head[place])
        if several:
            found[row[0][0]] = [f"{marks[0]}: {code} ({', '.join(columns)})" for code, columns in several.items()]
    return found


def _is_item(sentence: str) -> bool:
    """Whether a sentence may be an item of a list of uses: a few words without a verb, a colon or a reference."""
    words = _LABEL.sub("", sentence.strip())
    return (
        len(words.split()) <= _ITEM_WORDS
        and words[:1].isupper()
        and _WORD.search(words) is not None  # not only the label of an item
        and not (_NO_ITEM.search(words) or _MEASURE.search(words))
    )


def _is_between_items(
    text: str, sentences: Sequence[tuple[int, int]], number: int, ends: Sequence[tuple[int, int]], kind: RuleKind
) -> bool:
    """Whether a sentence is labelled as the one before or after it, on which a permission rests."""
    own = _ITEM_LABEL.match(text, *sentences[number])
    if kind != "permission" or own is None or text[slice(*sentences[number])].rstrip().endswith(":"):
        return False
    for near in (number - 1, number + 1):
        if 0 <= near < len(sentences) and _overlaps(ends, *sentences[near]):
            other = _ITEM_LABEL.match(text, *sentences[near])
            if other is not None and _style(other["label"]) == _style(own["label"]):
                return True
    return False


def _style(label: str) -> str:
    """Get the form of a label. ``(1)`` and ``(12)`` have the same, ``(a)`` and ``A.`` have not."""
    return re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]", "A", re.sub(r"\d+", "1", label)))


def _extend(text: str, end: int) -> int:
    """Extend a measure over the same measure in brackets: ``thirty percent (30%)``."""
    while (match := _REPEATED.match(text, end)) is not None:
        end = match.end()
    return end


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Split a text into sentences, by offsets. A sentence ends with its line."""
    start = 0
    for line in text.splitlines(keepends=True):
        last = 0
        if _INNER_END.search(line):
            label = _LABEL.match(line)  # a line that begins with a bracket is not split
            after = label.end() if label is not None else 0
            for end in (after + inner for inner in find_sentence_ends(line[after:])):
                if line[last:end].strip():
                    yield start + last, start + end
                last = end
        if line[last:].strip():
            yield start + last, start + len(line)
        start += len(line)


def _merge(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping spans."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _overlaps(merged: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    at = bisect_left(merged, (start, -1))
    return (at < len(merged) and merged[at][0] < end) or (at > 0 and merged[at - 1][1] > start)
