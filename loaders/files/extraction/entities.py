"""Entities and relations of one file: named entities, names that the file shows, patterns, relations between them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kg.words import is_stop_word, singular, to_word_set
from loaders.files.extraction.coreference import Section as SectionSoFar
from loaders.files.extraction.entity_model import (
    SCORES,
    EntityType,
    Extraction,
    FoundRelation,
    Key,
    Mention,
    Method,
    normalize_name,
    to_name,
)
from loaders.files.extraction.gazetteer import ORDERS, find_aliases, find_collected, mine_names
from loaders.files.extraction.patterns import classify_code, find_patterns, find_type, has_year, is_plain
from loaders.files.extraction.plain_text import Outline, Snippet, build_outline
from loaders.files.extraction.sentence_relations import Spot, Stated, build_matcher, find_relations
from loaders.files.extraction.structure_relations import find_definitions, find_structural
from loaders.files.extraction.type_evidence import find_evidence
from loaders.mentions.label_variants import Label
from loaders.mentions.matcher import Matcher
from loaders.mentions.tokens import DisjointSpans

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span

_TYPES: Final[Mapping[str, EntityType]] = {
    "PERSON": "person",
    "ORG": "organization",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "PRODUCT": "product",
    "LAW": "regulation",
    "DATE": "date",
}
"""Types of the labels of OntoNotes. The others (numbers, money, times, works of art) are no entities here."""

_RUNNING: Final = ("paragraph", "item", "step")
_LEAST_WORDS: Final = 2
_PARSED_AT_ONCE: Final = 16
"""Snippets that are parsed together. The default of spaCy, 1,000, takes a gigabyte for long ones, and saves no time."""
MOST_READ: Final = 2_000_000
"""Maximum characters of a file that are read, which takes more than a minute."""
_NO_WORD: Final = re.compile(r"\S{1000,}")
"""Characters that are not parsed: the tokenizer takes the square of the length of a text without spaces."""
_EDGES: Final = " \t\n.,;:!?\"'\u201c\u201d\u2018\u2019()[]{}*_`"
_ARTICLE: Final = re.compile(r"(?:the|an?|our|its|this|your|their)\s+", re.IGNORECASE)
_FIRST_WORD: Final = re.compile(r"([A-Z][a-z]+)\s+(?=[A-Z])")
_POSSESSIVE: Final = re.compile(r"['\u2019]s?$")
Steps = Generator[None, None, Extraction]
"""An extraction that can pause between two steps."""
_Named = tuple[int, int, str, EntityType, Method]
"""Characters of a snippet with a name, its type and how it was found."""
_Match = tuple[int, int, str, bool]
"""Characters of a snippet with a normalized name, and whether the file shows it in a heading or in bold."""
_SURE: Final = 1_000
"""Votes of a pattern."""
_BY_NOUN: Final = 10
"""Votes of the last word of a name."""
_BY_PLACE: Final = 3
"""Votes of such a word of a place, which other names have too: a ``bridge`` may be software."""
_ATTENDANCE: Final = re.compile(r"(?:present|attendees|participants|apologies|attended by)\s*:", re.IGNORECASE)
_RANK: Final[Mapping[Method, int]] = {"pattern": 0, "code": 1, "gazetteer": 2, "named entity": 2, "coreference": 3}
_NO_NAMES: Final = to_word_set(
    """
    api apis cli css csv faq html http https id ids ip json ok pdf sdk sql tcp tls tsv udp ui uri url urls utc xml yaml
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december step note warning table figure section chapter appendix part yes no
    """
)
"""Words in capitals that name nothing of their own."""


@dataclass(slots=True)
class _Found:
    """Characters of a snippet that name an entity."""

    start: int
    end: int
    key: Key
    method: Method

    def to_spot(self) -> Spot:
        """Return it as a spot for relations."""
        return Spot(self.start, self.end, self.key, SCORES[self.method])


@dataclass(slots=True)
class _Names:
    """The names of a file: their types by votes, and the full names of short ones."""

    votes: dict[str, Counter[EntityType]] = field(default_factory=lambda: defaultdict(Counter))
    """Types by normalized name."""
    surfaces: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """Spellings by normalized name."""
    mined: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    """Normalized full names by normalized short ones."""

    def add(self, name: str, type_: EntityType, *, mined: bool = False, is_sure: bool = False) -> None:
        """Add a spelling, with a vote for its type: one that no other votes outweigh if it `is_sure`."""
        norm = _key_norm(name)
        shown = None if is_sure else find_type(name)
        weight = 1 if shown is None else _BY_PLACE if shown == "place" else _BY_NOUN
        self.votes[norm][shown or type_] += _SURE if is_sure else weight
        self.surfaces[norm][name] = None
        if mined:
            self.mined.add(norm)

    def get_key(self, name: str) -> Key:
        """Return the entity that a name means."""
        norm = _key_norm(name)
        return self.get_key_of(self.aliases.get(norm, norm))

    def get_key_of(self, norm: str) -> Key:
        """Return the entity with a normalized name. Its type has the most votes; ``term`` only counts alone."""
        votes = self.votes.get(norm) or Counter[EntityType](["term"])
        return min(votes, key=lambda each: (each == "term", -votes[each], each)), norm

    def is_mined(self, name: str) -> bool:
        """Whether the file shows a name in a heading or in bold."""
        return _key_norm(name) in self.mined


def _key_norm(name: str) -> str:
    """Return the normalized name with the last word in the singular, if it is a common noun."""
    words = name.split()
    if len(words) > 1 and words[-1].islower():
        return normalize_name(" ".join([*words[:-1], singular(words[-1])]))
    return normalize_name(name)


def extract_entities(
    text: str, media_type: str, title: str | None, pipeline: Language, gazetteer: Collection[str] = ()
) -> Extraction:
    """Find the entities and relations in the text of a file. The result depends on these arguments only.

    `gazetteer` has the names that other files of its collection show. Those that the text does not have change nothing.
    """
    found = run_steps(extract_in_steps(text, media_type, title, pipeline, gazetteer))
    assert found is not None  # noqa: S101 -- it is not interrupted
    return found


def run_steps(steps: Steps, is_interrupted: Callable[[], bool] = lambda: False) -> Extraction | None:
    """Run the steps of an extraction. None if it was interrupted: a later call runs the steps that are left."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Extraction = end.value
            return found
        if is_interrupted():
            return None


def extract_in_steps(
    text: str, media_type: str, title: str | None, pipeline: Language, gazetteer: Collection[str] = ()
) -> Steps:
    """Extract as `extract_entities` does, with a pause after each step: a paragraph or the like."""
    text = text[:MOST_READ]
    return (yield from _Extractor(build_outline(text, media_type), text, title, pipeline, gazetteer).extract())


class _Extractor:
    def __init__(
        self, outline: Outline, text: str, title: str | None, pipeline: Language, gazetteer: Collection[str]
    ) -> None:
        self.gazetteer: Final = gazetteer
        self.outline: Final = outline
        self.text: Final = text
        self.title: Final = title
        self.pipeline: Final = pipeline
        self.names: Final = _Names()
        self.last_names: Final[dict[str, str]] = {}
        """Normalized last names of people, by their spelling."""

    def extract(self) -> Steps:
        snippets = self.outline.snippets
        docs: dict[int, Doc] = {}
        for number, doc in self.parse():
            docs[number] = doc
            yield
        direct: list[list[_Named]] = []
        for number, snippet in enumerate(snippets):
            direct.append(self.find_direct(snippet, docs.get(number)))
            yield
        self.add_shown_names()
        yield
        matcher = self.build_name_matcher()
        named: list[list[_Match]] = []
        for snippet in snippets:
            named.append(list(self.find_named(snippet, matcher)))
            yield
        self.weigh(named)
        self.add_last_names()
        found: list[list[_Found]] = []
        for snippet, own, others in zip(snippets, direct, named, strict=True):
            every = [*others, *self.find_last_names(snippet, others)]
            found.append(_keep_apart([*map(self.to_found, own), *map(self.to_named, every)]))
            yield
        references = self.resolve(found, docs)
        yield
        relations = yield from self.relate(found, references, docs)
        return Extraction(self.build_mentions(found, references), relations)

    def parse(self) -> Iterator[tuple[int, Doc]]:
        """Parse the running text. Yields the number of each snippet with its words."""
        wanted = [
            number
            for number, snippet in enumerate(self.outline.snippets)
            if snippet.kind in _RUNNING and len(snippet.plain.text.split()) >= _LEAST_WORDS
        ]
        texts = (_NO_WORD.sub(_blank, self.outline.snippets[number].plain.text) for number in wanted)
        return zip(wanted, self.pipeline.pipe(texts, batch_size=_PARSED_AT_ONCE), strict=True)

    def find_direct(self, snippet: Snippet, doc: Doc | None) -> list[_Named]:
        """Find the patterns, code and named entities of a snippet, and add their names."""
        plain = snippet.plain
        spots: list[_Named] = []
        for start, end, type_ in find_patterns(plain.text):
            spots.append((start, end, plain.text[start:end], type_, "pattern"))
        for mark in plain.marks:
            if mark.kind == "code" and (code := classify_code(plain.text[mark.start : mark.end])) is not None:
                words = plain.text[mark.start : mark.end]
                start = mark.start + len(words) - len(words.lstrip())
                spots.append((start, start + len(words.strip()), words.strip(), code, "code"))
        for _, _, name, type_, method in spots:
            if method == "pattern" or not is_plain(name):
                self.names.add(name, type_, is_sure=True)
        for named in read_entities(doc) if doc is not None else ():
            spots.append(named)
            self.names.add(named[2], named[3])
        return spots

    def to_found(self, spot: _Named) -> _Found:
        """Return a spot with the entity that its name means in this file."""
        start, end, name, type_, method = spot
        if type_ in ("date", "version"):
            return _Found(
                start, end, (type_, normalize_name(name.lstrip("vV") if type_ == "version" else name)), method
            )
        key = (type_, normalize_name(name)) if method == "code" and is_plain(name) else self.names.get_key(name)
        return _Found(start, end, key, method)

    def add_shown_names(self) -> None:
        """Add the names that the file shows, and short names in brackets."""
        for name in mine_names(self.outline, self.title):
            if _is_name(name, "term"):
                self.names.add(name, "term", mined=True)
        for name, is_code in find_collected(self.outline, self.gazetteer):
            if _key_norm(name) not in self.names.surfaces:
                self.names.add(name, "api" if is_code else "term", mined=True, is_sure=is_code)
        for snippet in self.outline.snippets:
            for full, short in find_aliases(snippet.plain.text):
                self.names.add(full, "term")
                self.names.add(short, "term")
                self.names.aliases[_key_norm(short)] = _key_norm(full)

    def weigh(self, named: Sequence[Sequence[_Match]]) -> None:
        """Add the votes of the words around each name."""
        for snippet, matches in zip(self.outline.snippets, named, strict=True):
            is_attendance = _ATTENDANCE.match(snippet.plain.text) is not None
            for start, end, norm, _ in matches:
                if find_type(snippet.plain.text[start:end]) in (None, "place"):
                    if is_attendance:
                        self.names.votes[self.names.aliases.get(norm, norm)]["person"] += _BY_NOUN
                    for type_, weight in find_evidence(snippet.plain.text, start, end):
                        self.names.votes[self.names.aliases.get(norm, norm)][type_] += weight

    def add_last_names(self) -> None:
        """Add the last names of people who are named in full."""
        people: dict[str, set[str]] = defaultdict(set)
        for norm in list(self.names.votes):
            if self.names.get_key_of(norm)[0] == "person":
                for name in self.names.surfaces[norm]:
                    if len(words := name.split()) > 1:
                        people[words[-1]].add(norm)
        for last, norms in people.items():
            short = _key_norm(last)
            if len(norms) == 1 and short not in norms and short not in self.names.mined and last[0].isupper():
                self.names.aliases[short] = next(iter(norms))
                self.last_names[last] = short

    def find_last_names(self, snippet: Snippet, found: Sequence[_Match]) -> Iterator[_Match]:
        """Find the last names of people outside of other names."""
        for last, norm in self.last_names.items():
            if last in snippet.plain.text:
                for match in re.finditer(rf"(?<!\w){re.escape(last)}(?!\w)", snippet.plain.text):
                    yield match.start(), match.end(), norm, False

    def build_name_matcher(self) -> Matcher:
        """Build the matcher of all names of the file, except dates and versions."""
        labels = []
        for norm, spellings in self.names.surfaces.items():
            type_ = self.names.get_key_of(norm)[0]
            if type_ not in ("date", "version"):
                labels += [Label(f"{norm}\n{name}", name, "en", "label") for name in spellings]
        return Matcher(labels)

    def find_named(self, snippet: Snippet, matcher: Matcher) -> Iterator[_Match]:
        """Find the names of the file in a snippet, with their capitals."""
        text = snippet.plain.text
        for match in matcher.find(text, ("en",)):
            norm, _, name = match.concept.partition("\n")
            words = text[match.start : match.end]
            if " " not in name and words[:1].isupper() != name[:1].isupper():
                continue
            if not name.islower() and words.islower():
                continue
            yield match.start, match.end, norm, norm in self.names.mined

    def to_named(self, match: _Match) -> _Found:
        """Return a match of a name with the entity that it means."""
        start, end, norm, is_mined = match
        key = self.names.get_key_of(self.names.aliases.get(norm, norm))
        return _Found(start, end, key, "gazetteer" if is_mined else "named entity")

    def resolve(self, found: Sequence[Sequence[_Found]], docs: Mapping[int, Doc]) -> dict[int, list[Spot]]:
        """Resolve the short references in each section, by number of the snippet."""
        resolved: dict[int, list[Spot]] = {}
        section = -1
        so_far = SectionSoFar()
        for number, snippet in enumerate(self.outline.snippets):
            if snippet.section != section:
                section, so_far = snippet.section, SectionSoFar()
            if (doc := docs.get(number)) is not None:
                spots = [each.to_spot() for each in found[number]]
                names = {each.key: snippet.plain.text[each.start : each.end] for each in found[number]}
                resolved[number] = so_far.resolve(doc, spots, names)
        return resolved

    def relate(
        self, found: Sequence[Sequence[_Found]], references: Mapping[int, Sequence[Spot]], docs: Mapping[int, Doc]
    ) -> Generator[None, None, list[FoundRelation]]:
        """Find the relations in sentences and by the structure of the file."""
        matcher = build_matcher(self.pipeline)
        stated: list[tuple[int, Stated]] = []
        for number, doc in docs.items():
            spots = [each.to_spot() for each in found[number]]
            every = [*spots, *references.get(number, ())]
            if len(every) > 1 and spots:
                marks = self.outline.snippets[number].plain.marks
                code = [(mark.start, mark.end) for mark in marks if mark.kind == "code"]
                stated += ((number, each) for each in find_relations(doc, every, matcher, code))
                yield
        best: dict[tuple[Key | None, str, Key, int], FoundRelation] = {}
        for number, each in stated:
            start, end = self.outline.snippets[number].plain.place(each.start, each.end)
            relation = FoundRelation(
                each.subject.key, each.relation, each.object.key, start, end, each.confidence, each.method
            )
            _keep_best(best, relation)
        spots_by_snippet = [[each.to_spot() for each in spots] for spots in found]
        for relation in (
            *find_structural(self.outline, spots_by_snippet),
            *find_definitions(self.outline, spots_by_snippet, docs),
        ):
            _keep_best(best, relation)
        return sorted(
            best.values(), key=lambda each: (each.start, each.end, str(each.subject), each.relation, each.object)
        )

    def build_mentions(
        self, found: Sequence[Sequence[_Found]], references: Mapping[int, Sequence[Spot]]
    ) -> list[Mention]:
        """Build the mentions with their offsets in the text of the file."""
        mentions: list[Mention] = []
        for number, snippet in enumerate(self.outline.snippets):
            for each in found[number]:
                start, end = snippet.plain.place(each.start, each.end)
                mentions.append(Mention(start, end, each.key, to_name(self.text[start:end]), each.method))
            for spot in references.get(number, ()):
                start, end = snippet.plain.place(spot.start, spot.end)
                mentions.append(Mention(start, end, spot.key, to_name(self.text[start:end]), "coreference"))
        return sorted(mentions, key=lambda mention: (mention.start, mention.end, mention.key))


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _keep_best(best: dict[tuple[Key | None, str, Key, int], FoundRelation], relation: FoundRelation) -> None:
    """Keep the relation with the highest confidence of those in one sentence."""
    triple = relation.subject, relation.relation, relation.object, relation.start
    known = best.get(triple)
    if relation.subject != relation.object and (known is None or relation.confidence > known.confidence):
        best[triple] = relation


def _keep_apart(found: Sequence[_Found]) -> list[_Found]:
    """Keep the longest of overlapping spots; of equal ones a pattern before code before a name."""
    taken = DisjointSpans()
    ordered = sorted(found, key=lambda spot: (spot.start - spot.end, _RANK[spot.method], spot.start, spot.key))
    return sorted((each for each in ordered if taken.add(each.start, each.end)), key=lambda spot: spot.start)


def read_entities(doc: Doc) -> list[_Named]:
    """Read the named entities of a text that can be names, without articles and punctuation."""
    return [named for span in doc.ents if (named := _read_entity(span)) is not None]


def _read_entity(span: Span) -> _Named | None:
    """Read a named entity without an article and punctuation. None if it is not a name."""
    type_ = _TYPES.get(span.label_)
    if type_ is None:
        return None
    text, start, end = span.doc.text, span.start_char, span.end_char
    while start < end and text[start] in _EDGES:
        start += 1
    while end > start and text[end - 1] in _EDGES:
        end -= 1
    start, end = _widen(span, start, end)
    if (order := _FIRST_WORD.match(text, start, end)) is not None and order[1].casefold() in ORDERS:
        start = order.end()
    if (article := _ARTICLE.match(text, start, end)) is not None:
        start = article.end()
    if (possessive := _POSSESSIVE.search(text[start:end])) is not None:
        end = start + possessive.start()
    if (comma := text.find(", ", start, end)) > 0:
        end = comma
    name = text[start:end]
    if type_ == "date":
        return (start, end, name, "date", "named entity") if has_year(name) else None
    return (start, end, name, type_, "named entity") if _is_name(name, type_) else None


def _widen(span: Span, start: int, end: int) -> tuple[int, int]:
    """Widen a named entity to the capitalized words that it forms a compound with: ``Pebble OS``, not ``Pebble``."""
    doc = span.doc
    if span.label_ == "DATE":
        return start, end
    first, last = span.start, span.end - 1
    while (
        first and (before := doc[first - 1]).text[0].isupper() and before.dep_ == "compound" and before.head.i >= first
    ):
        first -= 1
        start = before.idx
    while last + 1 < len(doc) and (after := doc[last + 1]).text[0].isupper() and doc[last].is_alpha:
        if doc[last].dep_ != "compound" or doc[last].head.i <= last or not after.is_alpha:
            break
        last += 1
        end = after.idx + len(after)
    return start, end


def _is_name(name: str, type_: EntityType) -> bool:
    """Whether words can be the name of an entity of a type."""
    words = name.split()
    if not 0 < len(words) <= 8 or len(name) < 2 or len(name) > 100 or "\n" in name:
        return False
    if (
        not any(map(str.isalpha, name))
        or name.casefold() in _NO_NAMES
        or all(is_stop_word(word.casefold(), "en") for word in words)
    ):
        return False
    if type_ == "term":
        return True
    return any(word[0].isupper() for word in words) and not re.search(r"[<>=|{}#@`]| \+ |https?:", name)
