"""Finds the passages of a code that govern a question about its districts: the law in its own words, best first.

A section is in the scope of the districts that its heading names, else of those that the nearest heading above it
names. One without such a heading is in the scope of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from pydantic import Field

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.retrieval.reader import Reader
from kg.retrieval.token_budget import Lean, tokens_of
from kg.tools.zoning.municipalities import Place, get_section_key
from kg.tools.zoning.rule_rows import Span
from kg.tools.zoning.rule_search import RuleKind
from kg.tools.zoning.term_lookup import Named
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

FEW_TOKENS: Final = 220
"""Size of the passages of an answer that has facts."""
MOST_TOKENS: Final = 900
"""Size of those of an answer without facts."""
MOST_PASSAGES: Final = 8
_CHARACTERS: Final = 420
"""Maximum characters of a passage, if its first sentence is not longer."""
_LONGEST: Final = 1_200
"""Maximum characters of a passage."""
_MARKS: Final = 8
_TOWN: Final = 0.4
"""Factor of the score of a section that no heading gives a district, where a district was asked for."""
_DEFINING: Final = 0.5
"""Factor of the score of a section with definitions, which govern no district."""
_DEFINITIONS: Final = re.compile(r"\bdefin(?:itions?|ed)\b", re.IGNORECASE)
_KIND_WORDS: Final[Mapping[RuleKind, str]] = {
    "permission": "permitted uses conditional special prohibited",
    "standard": "regulations requirements standards bulk dimension",
}
"""Words of the headings and sentences that have the rules of a kind, and their weight next to those asked for."""
_KIND_WEIGHT: Final = 0.3
_DISTRICT_WEIGHT: Final = 0.5
_DISTRICT_WORD: Final = re.compile(r"\b(?:districts?|zones?)\b", re.IGNORECASE)
_ITEM: Final = re.compile(r"\W{0,2}(?:\(?[a-z]{1,4}|\(?[A-Z]|\(?\d{1,3})[.)]\s")
"""The label of an item of a list."""
_LEAD: Final = re.compile(r":\W*$|\b(?:following|as follows)\b", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.;:]['\")\]]*\s+|\n")


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


def has_text(reader: Reader, place: Place) -> bool:
    """Whether text of the code of a place is loaded, and not only tables."""
    try:
        tree = code_tree.cached_tree(reader.kg, place.iri)
    except NotFoundError:
        return False
    return bool(tree.heights) and any(section.text_sha256 for section in tree.sections.values())


def find_law(
    reader: Reader,
    kind: RuleKind,
    place: Place,
    districts: Mapping[str, Named] | None,
    known: Mapping[str, Named],
    asked: str | None,
    words: str | None,
    tokens: int,
) -> Law:
    """Find the passages that govern a question about `asked`, a use or a type of standard, in `districts`.

    `known` are all districts of the place.
    `districts` is None if none was asked for, or if none with these `words` is known: then all sections are in scope,
    and the words count in the ranking. The passages have at most so many `tokens`, but there is always one.
    """
    ranked = rank_governing(reader, kind, place, districts, known, asked, words)
    index = get_index(reader.kg, place.iri)
    terms = _build_terms(kind, asked)
    passages: list[Passage] = []
    size = 0
    for each in ranked[:MOST_PASSAGES]:
        passage = _quote(index, each.section, terms)
        size += tokens_of(passage)
        if passages and size > tokens:
            break
        passages.append(passage)
    return Law(passages, len(ranked))


def rank_governing(
    reader: Reader,
    kind: RuleKind,
    place: Place,
    districts: Mapping[str, Named] | None,
    known: Mapping[str, Named],
    asked: str | None,
    words: str | None,
) -> list[Ranked]:
    """Rank the sections in scope for a question; see `find_law`. Raises NotFoundError if the code has no sections."""
    tree = code_tree.cached_tree(reader.kg, place.iri)
    units = [section for section in tree.order if tree.sections[section].text_sha256 is not None]
    scope = load_scope(reader, tree, known)
    factors, own = dict.fromkeys(units, 1.0), set[str]()
    if districts is not None:
        own = {section for section in units if not scope.get(section, set()).isdisjoint(districts)}
        factors = {
            section: 1.0 if section in own else _TOWN for section in units if section in own or not scope.get(section)
        }
    elif words and (own := _find_headed(tree, words).intersection(units)):
        factors = {section: 1.0 if section in own else _TOWN for section in units}
    for section in factors:
        if _DEFINITIONS.search(build_heading_path(tree, section)) is not None:
            factors[section] *= _DEFINING
    terms = _build_terms(kind, asked)
    for term, weight in weigh_terms(words or "", _DISTRICT_WEIGHT).items():
        terms.setdefault(term, weight)
    question = " ".join(filter(None, (asked, words))) or _KIND_WORDS[kind]
    return rank_sections(reader.kg, place.iri, question, terms, factors, own)


def _build_terms(kind: RuleKind, asked: str | None) -> dict[str, float]:
    return weigh_terms(_KIND_WORDS[kind], _KIND_WEIGHT if asked else 1.0) | weigh_terms(asked or "")


def load_scope(reader: Reader, tree: CodeTree, known: Mapping[str, Named]) -> Mapping[str, Set[str]]:
    """Find the districts in whose scope each section is. A section that is not in the result is in that of all."""
    return reader.derived(("scope of sections", next(iter(tree.sections), "")), _read_headings, tree, known)


def _read_headings(tree: CodeTree, known: Mapping[str, Named]) -> Mapping[str, Set[str]]:
    by_code = {each.code: iri for iri, each in known.items()}
    longest = sorted(by_code, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?![\w-])")
    by_name: dict[str, set[str]] = {}
    for iri, each in known.items():
        if name := fold(_DISTRICT_WORD.sub("", each.name)):
            by_name.setdefault(name, set()).add(iri)
    found: dict[str, Set[str]] = {}
    for section in tree.order:
        title = tree.sections[section].title
        own = {
            by_code[match[0]]
            for match in pattern.finditer(title)
            if len(match[0]) > 1 or _DISTRICT_WORD.search(title) is not None
        }
        if not own and _DISTRICT_WORD.search(title) is not None:
            plain = f" {fold(title)} "
            own = {iri for name, several in by_name.items() if f" {name} " in plain for iri in several}
        parent = tree.sections[section].parent
        if inherited := own or found.get(parent or "", set()):
            found[section] = inherited
    return found


def _find_headed(tree: CodeTree, words: str) -> set[str]:
    """Find the sections with all words of the name of a district in their headings."""
    wanted = _to_words(words)
    found: dict[str, tuple[frozenset[str], bool]] = {}
    for section in tree.order:
        known = tree.sections[section]
        said, is_district = found.get(known.parent or "", (frozenset[str](), False))
        found[section] = said | _to_words(known.title), is_district or _DISTRICT_WORD.search(known.title) is not None
    return {section for section, (said, is_district) in found.items() if is_district and wanted and wanted <= said}


def _to_words(text: str) -> frozenset[str]:
    return frozenset(singular(word) for word in fold(_DISTRICT_WORD.sub("", text)).split())


def _quote(index: SectionIndex, section: str, terms: Mapping[str, float]) -> Passage:
    """Quote the passage of a section that has most of the words asked for, else its beginning."""
    text = index.texts[section]
    terms = {term: weight for term, weight in terms.items() if weight > _KIND_WEIGHT}
    lines = list(split_lines(text))
    found = [_weigh(index, terms, text[start:end]) for start, end in lines]
    at = max(range(len(lines)), key=lambda number: (found[number], -number)) if any(found) else 0
    start, end = lines[at]
    while at + 1 < len(lines) and lines[at + 1][1] - start <= _CHARACTERS:
        at += 1
        end = lines[at][1]
    quotes = [_to_span(text, start, end)]
    if (lead := _find_lead(text, lines, start)) is not None:
        quotes.insert(0, _to_span(text, *lead))
    marks = [
        (quote.start + word.start, quote.start + word.end)
        for quote in quotes
        for word in find_terms(quote.text)
        if word.term in terms
    ]
    return Passage(
        section_ref=get_section_key(section),
        path=build_heading_path(index.tree, section),
        iri=section,
        quotes=quotes,
        marks=sorted(set(marks))[:_MARKS] or None,
    )


def _to_span(text: str, start: int, end: int) -> Span:
    return Span(start=start, end=end, text=text[start:end])


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


def _find_lead(text: str, lines: Sequence[tuple[int, int]], start: int) -> tuple[int, int] | None:
    """Find the line that introduces the list in which a line is an item."""
    if _ITEM.match(text, start) is None:
        return None
    for first, end in reversed(lines):
        if end <= start and _LEAD.search(text, max(first, end - _CHARACTERS), end) is not None:
            return (first, end) if end - first <= _CHARACTERS else None
    return None
