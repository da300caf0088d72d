"""Finds the passages of a code that govern a question about its districts: the law in its own words, best first.

The store has the scope of each part of a section: districts, all districts, the town, or none that is known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Lean, clipped, tokens_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.tools.zoning.name_lookup import Named, Place, get_section_key
from kg.tools.zoning.rules import RuleKind, Span
from kg.words import singular
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree
from kg.zoning_summaries.section_ranking import (
    Ranked,
    SectionIndex,
    build_heading_path,
    find_terms,
    get_index,
    rank_sections,
    weigh_terms,
)

FEW_TOKENS: Final = 190
"""Size of the passages of an answer that has facts."""
MOST_TOKENS: Final = 900
"""Size of those of an answer without facts."""
MOST_PASSAGES: Final = 8
_CHARACTERS: Final = 420
"""Maximum characters of a passage, if its first sentence is not longer."""
_LONGEST: Final = 1_200
"""Maximum characters of a passage."""
_MORE: Final = 600
"""Maximum characters of the other lines of a section that have as many of the words asked for."""
_LEADS: Final = 3
"""Maximum leads of a line: that of the list it is in, and of those that this list is in."""
_MARKS: Final = 5
_TOWN: Final = 0.4
"""Factor of the score of a section that no heading gives a district, where a district was asked for."""
_DEFINING: Final = 0.5
"""Factor of the score of a section with definitions, which govern no district; of others for a definition."""
_LISTING: Final = 1.5
"""Factor of the score of the sections of the districts with their uses: these govern a use that they do not list."""
_OF_USES: Final = re.compile(r"\buses\b", re.IGNORECASE)
_DEFINITIONS: Final = re.compile(r"\bdefin(?:itions?|ed)\b", re.IGNORECASE)
_KIND_WORDS: Final[Mapping[str, str]] = {
    "permission": "permitted uses conditional special prohibited",
    "standard": "regulations requirements standards bulk dimension",
}
"""Words of the headings and sentences that have the rules of a kind, and their weight next to those asked for."""
_KIND_WEIGHT: Final = 0.3
_DISTRICT_WEIGHT: Final = 0.5
_DISTRICT_WORD: Final = re.compile(r"\b(?:districts?|zones?)\b", re.IGNORECASE)
_ITEM: Final = re.compile(r"[^\w(]{0,2}(\(?)(?:([a-z]{1,4})|([A-Z])|(\d{1,3}))([.)])\s")
"""The label of an item of a list: its brackets and its letters or number."""
_FIRST: Final = frozenset({"a", "i", "A", "I", "1"})
"""Labels of the first item of a list."""
_SENTENCE_END: Final = re.compile(r"[.;:]['\")\]]*\s+|\n")


SCOPES: Final = """
SELECT ?section ?start ?end (GROUP_CONCAT(COALESCE(STR(?district), "")) AS ?districts) WHERE {
  ?section kg:jurisdiction $municipality . ?scope dcterms:isPartOf ?section ; a kg:SectionScope ; kg:start ?start ;
    kg:end ?end
  OPTIONAL { ?scope kg:appliesIn ?district }
} GROUP BY ?section ?start ?end ORDER BY ?section ?start"""

STATING: Final = """
SELECT DISTINCT ?section WHERE {
  VALUES ?district { $districts } ?rule kg:district ?district ; kg:definedIn ?section
}"""
"""The sections with rules of some districts, as in a table with columns for districts that no heading names."""

WHOLE_LIST: Final = """
SELECT ?section ?words WHERE {
  ?list a kg:DistrictList ; kg:jurisdiction $municipality ; kg:definedIn ?section
  OPTIONAL { ?list kg:evidence/oa:exact ?words }
}"""


class Passage(Lean):
    """A passage of a section, verbatim: its lead, if it is an item of a list, and its own words."""

    section_ref: str
    path: str = Field(description="Headings above it and its own")
    iri: str
    quotes: list[Span]
    marks: list[tuple[int, int]] | None = Field(None, description="Offsets of the words asked for")


class Law(NamedTuple):
    """The passages that govern a question, best first, and how many sections with text are in its scope."""

    passages: Sequence[Passage]
    in_scope: int


def describe_whole_list(reader: Reader, place: Place) -> str | None:
    """Quote the sentence that lists all districts of a place. None if the list is not known to be whole."""
    rows = reader.rows("the list of all districts", bind(WHOLE_LIST, municipality=NamedNode(place.iri)))
    said = sorted((get_section_key(iri_of(row["section"])), term_text(row["words"])) for row in rows if "words" in row)
    return f"{said[0][0]} lists all districts: “{clipped(said[0][1], _CHARACTERS)}”" if said else None


def has_text(reader: Reader, place: Place) -> bool:
    """Whether text of the code of a place is loaded, and not only tables."""
    try:
        return bool(code_tree.cached_tree(reader.kg, place.iri).heights)
    except NotFoundError:
        return False


@dataclass(slots=True)
class Question:
    """A question about the districts of a code."""

    reader: Reader
    kind: RuleKind | Literal["topic"]
    place: Place
    about: str | None
    """The use or the type of standard, in the words of the question."""
    district: str | None
    """The words for the district."""
    scope: Mapping[str, Named] | None
    """The districts asked for, if known. Else all sections are in scope, and the words count in the ranking."""


def find_law(question: Question, tokens: int, told: Container[str] = ()) -> Law:
    """Find the passages that govern a question. They have at most so many `tokens`, but there is always one.

    One more is of a section that standards are `told` from: the cell of a table does not show its other cases.
    """
    place, ranked = question.place, rank_governing(question)
    index = get_index(question.reader.kg, place.iri)
    terms = _build_terms(question)
    scopes = {} if question.scope is None else load_scopes(question.reader, place)

    def quote(section: str) -> Passage:
        own = [scope for scope in scopes.get(section, ()) if scope.includes(question.scope or ())]
        return _quote(index, section, terms, own, min(2 * tokens, _MORE))

    passages: list[Passage] = []
    size = 0
    source = next((each.section for each in ranked if each.section in told), None)
    for each in ranked[:MOST_PASSAGES]:
        passage = quote(each.section)
        size += tokens_of(passage)
        if passages and size > tokens:
            break
        passages.append(passage)
    if source is not None and all(each.iri != source for each in passages):
        passages.append(quote(source))
    return Law(passages, len(ranked))


def rank_governing(question: Question) -> list[Ranked]:
    """Rank the sections in scope for a question. Raises NotFoundError if the code has no sections."""
    reader, place, districts, words = question.reader, question.place, question.scope, question.district
    tree = code_tree.cached_tree(reader.kg, place.iri)
    units = [section for section in tree.order if tree.sections[section].text_sha256 is not None]
    factors, own = dict.fromkeys(units, 1.0), set[str]()
    if districts is not None:
        scopes = load_scopes(reader, place)
        own = {
            each
            for each in units
            if any(scope.districts and scope.includes(districts) for scope in scopes.get(each, ()))
        }
        rows = reader.rows("sections with rules", bind(STATING, districts=[NamedNode(each) for each in districts]))
        stating = {iri_of(row["section"]) for row in rows}
        factors = {
            each: 1.0 if each in own else _TOWN
            for each in units
            if each in own
            or each in stating
            or each not in scopes
            or any(not scope.districts for scope in scopes[each])
        }
    elif words and (own := _find_headed(tree, words).intersection(units)):
        factors = {section: 1.0 if section in own else _TOWN for section in units}
    for section in factors:
        is_listing = _OF_USES.search(tree.sections[section].title) is not None
        if question.kind == "permission" and section in own and is_listing:
            factors[section] *= _LISTING
        is_defining = _DEFINITIONS.search(build_heading_path(tree, section)) is not None
        if is_defining != (question.kind == "definition"):
            factors[section] *= _DEFINING
    terms = weigh_terms(words or "", _DISTRICT_WEIGHT) | _build_terms(question)
    asked = " ".join(filter(None, (question.about, words))) or _KIND_WORDS.get(question.kind, "")
    return rank_sections(reader.kg, place.iri, asked, terms, factors, own)


def _build_terms(question: Question) -> dict[str, float]:
    words, about = _KIND_WORDS.get(question.kind, ""), question.about or ""
    return weigh_terms(words, _KIND_WEIGHT if about else 1.0) | weigh_terms(about)


class Scope(NamedTuple):
    """Where a part of a section applies: in some districts, or in all or the town or where nothing is known."""

    start: int
    end: int
    districts: frozenset[str]

    def includes(self, districts: Container[str]) -> bool:
        """Whether it applies in one of these districts. A part that may apply anywhere does."""
        return not self.districts or any(each in districts for each in self.districts)


def load_scopes(reader: Reader, place: Place) -> Mapping[str, Sequence[Scope]]:
    """Load the scopes of the sections of a code, by IRI of the section, in the order of the text."""

    def read(rows: Sequence[Mapping[str, Term]]) -> dict[str, list[Scope]]:
        scopes: dict[str, list[Scope]] = defaultdict(list)
        for row in rows:
            start, end = int(term_text(row["start"])), int(term_text(row["end"]))
            districts = frozenset(term_text(row["districts"]).split())
            scopes[iri_of(row["section"])].append(Scope(start, end, districts))
        return scopes

    return reader.kept("scopes of the sections", bind(SCOPES, municipality=NamedNode(place.iri)), read)


def _find_headed(tree: CodeTree, words: str) -> set[str]:
    """Find the sections with all words of the name of a district in their headings."""
    wanted, headed = _to_words(words), set[str]()
    for section in tree.order:
        headings = " ".join(tree.sections[each].title for each in (section, *tree.above(section)))
        if wanted and _DISTRICT_WORD.search(headings) is not None and wanted <= _to_words(headings):
            headed.add(section)
    return headed


def _to_words(text: str) -> frozenset[str]:
    return frozenset(singular(word) for word in fold(_DISTRICT_WORD.sub("", text)).split())


def _quote(
    index: SectionIndex, section: str, terms: Mapping[str, float], scopes: Sequence[Scope], more: int
) -> Passage:
    """Quote the passage of a section, in these scopes if any, that has most of the words asked for, else the first.

    Other lines with as many of these words are quoted too, with at most `more` characters: the rule for other cases.
    """
    text = index.texts[section].text
    terms = {term: weight for term, weight in terms.items() if weight > _KIND_WEIGHT}
    lines = [
        each for each in split_lines(text) if not scopes or any(scope.start <= each[0] < scope.end for scope in scopes)
    ]
    lines = lines or list(split_lines(text))
    found = [_weigh(index, terms, text[start:end]) for start, end in lines]
    at = max(range(len(lines)), key=lambda number: (found[number], -number)) if any(found) else 0
    best = found[at]
    start, end = lines[at]
    while at + 1 < len(lines) and lines[at + 1][1] - start <= _CHARACTERS and lines[at + 1][0] - end <= 2:
        at += 1
        end = lines[at][1]
    quoted = {*_find_leads(text, lines, start), (start, end)}
    for (first, last), weight in zip(lines[at + 1 :], found[at + 1 :], strict=True):
        if best and weight >= best:
            added = {*_find_leads(text, lines, first), (first, last)} - quoted
            more -= sum(last - first for first, last in added)
            if more < 0:
                break
            quoted |= added
    places = [each for each in sorted(quoted) if each == (start, end) or not start <= each[0] < end]
    quotes = [Span(start=first, end=last, text=text[first:last]) for first, last in places]
    marks = [
        (quote.start + word.start, quote.start + word.end)
        for quote in quotes
        for word in find_terms(quote.text)
        if word.term in terms and len(word.term) > 1  # a digit is in most lines
    ]
    return Passage(
        section_ref=get_section_key(section),
        path=build_heading_path(index.tree, section),
        iri=section,
        quotes=quotes,
        marks=sorted(set(marks))[:_MARKS] or None,
    )


def split_lines(text: str) -> Iterator[tuple[int, int]]:
    """Split a text into its lines, and long lines at ends of sentences."""
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line.rstrip())
        first = start
        while end - first > _CHARACTERS:
            cuts = [match.end() for match in _SENTENCE_END.finditer(text, first + 1, min(end, first + _LONGEST))]
            cut = max(
                (each for each in cuts if each - first <= _CHARACTERS), default=min(cuts, default=first + _LONGEST)
            )
            yield first, min(cut, end)
            first = min(cut, end)
        if end > first:
            yield first, end
        start += len(line)
    if not text.strip():
        yield 0, 0


def _weigh(index: SectionIndex, terms: Mapping[str, float], words: str) -> float:
    present = {word.term for word in find_terms(words)}
    return sum(weight * index.words.get_rarity(term) for term, weight in terms.items() if term in present)


def _find_leads(text: str, lines: Sequence[tuple[int, int]], start: int) -> Iterator[tuple[int, int]]:
    """Yield the lines that introduce the list in which a line is an item, innermost first."""
    for _ in range(_LEADS):
        first, end = _find_lead(text, [each for each in lines if each[0] <= start])
        if first == end or end - first > _CHARACTERS:
            return
        yield first, end
        start = first


def _find_lead(text: str, lines: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Find the line above the first item of the list of the last of these lines. An empty span if there is none.

    A line without a label is an item if a line with a colon at its end is above it, and no item with a label between.
    """
    own, nothing = _parse_label(text, lines[-1][0]), (0, 0)
    at = len(lines) - 1
    if own is None:
        line = text[slice(*lines[-1])].rstrip()
        if " | " in line or line.endswith(":"):  # a row of a table; a lead, perhaps of a list next to that above
            return nothing
        for first, end in reversed(lines[:-1]):
            if text[first:end].rstrip().endswith(":"):
                return first, end
            if _parse_label(text, first):
                break
        return nothing
    form, label = own
    for number in range(at - 1, -1, -1):
        other = _parse_label(text, lines[number][0])
        if other is None or other[0] != form:
            continue
        if label in _FIRST and not (label in "iI" and ord(other[1][0]) == ord(label) - 1):
            break
        at, label = number, other[1]
    return lines[at - 1] if at and label in _FIRST else nothing


def _parse_label(text: str, start: int) -> tuple[tuple[str, int, str], str] | None:
    """Parse the label of an item of a list: its form, which all items of a list have, and its letters or number."""
    found = _ITEM.match(text, start)
    if found is None:
        return None
    opening, *labels, closing = found.groups()
    place = next(place for place, label in enumerate(labels) if label)
    return (opening, place, closing), labels[place]
