"""A component as one graph: the sitting, its sections, turns and procedural text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, XSD, mint, mint_part, mint_span, sha256
from loaders.hansard.identifiers import describe_doubtful
from loaders.hansard.parlamint_component import Component, Level, Part, Section, Turn
from loaders.hansard.parlamint_entities import Entities, person_key
from loaders.hansard.parlamint_findings import Called, Finding, Occasions, Spoke, names_another
from loaders.hansard.parlamint_lists import PARLIAMENT, Lists
from loaders.hansard.parlamint_people_records import build_memberships
from loaders.hansard.sitting_model import UtteranceKind
from loaders.hansard.speech_records import format_lines, mint_code, when_and_where
from loaders.model import Origin, Property, SourceGraph, TextUnit
from loaders.readers.cells import parse_web_address
from loaders.readers.chunks import split_chunks

CHAIR: Final = "chair"
_NUMBERS: Final[dict[Level, NamedNode]] = {
    "term": KG.parliamentNumber,
    "session": KG.sessionNumber,
    "meeting": KG.meetingNumber,
    "sitting": KG.sittingNumber,
}


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words of one person in the text of a turn: the code points [start, end)."""

    kind: UtteranceKind
    start: int
    end: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a turn: its utterances, which cover it, and its spans in one language each."""

    text: str
    utterances: Sequence[Utterance]
    spans: Sequence[tuple[int, int, str | None]]

    @property
    def language(self) -> str | None:
        """The language of most of the text."""
        lengths: dict[str | None, int] = {}
        for start, end, language in self.spans:
            lengths[language] = lengths.get(language, 0) + end - start
        return max(lengths, key=lambda each: lengths[each]) if lengths else None


def build_text(parts: Sequence[Part]) -> Text:
    """Join the parts of a turn, one paragraph each, and find the speaker of each.

    The speaker's own words are a turn at first, and a continuation after a remark or an interjection.
    """
    text = "\n".join(part.text for part in parts)
    utterances: list[Utterance] = []
    spans: list[tuple[int, int, str | None]] = []
    place, spoken = 0, False
    for part in parts:
        end = min(place + len(part.text) + 1, len(text))
        kind: UtteranceKind = "continuation" if part.kind == "turn" and spoken else part.kind
        last = utterances[-1] if utterances else None
        own = last is not None and last.kind in ("turn", "continuation") and part.kind == "turn"
        if last is not None and own:
            utterances[-1] = replace(last, end=end)
            if spans[-1][2] == part.language:
                spans[-1] = (spans[-1][0], end, part.language)
            else:
                spans.append((place, end, part.language))
        else:
            utterances.append(Utterance(kind, place, end, part.name))
            spans.append((place, end, part.language))
        spoken = spoken or part.kind == "turn"
        place = end
    return Text(text, utterances, spans)


def build_sitting_record(
    domain: str, component: Component, lists: Lists, origin: Origin
) -> tuple[SourceGraph, list[Finding]]:
    """Build the record of a component, and find what follows from the `lists`. `origin` is its row in the file."""
    sitting = _Sitting(domain, component, lists)
    sitting.write()
    findings = sitting.occasions.find_all()
    entities = sitting.entities
    for person in sorted(lists.people.keys() - lists.places.keys()):
        graph = mint("graph", "ref", "membership", person_key(component.code, person))
        if memberships := build_memberships(entities, lists.people[person], graph):
            entities.graphs[graph] = memberships
    told = sorted(entities.used, key=lambda each: each.id), findings, sitting.chamber.value
    record = SourceGraph(
        domain,
        sitting.key,
        sitting.iri,
        sitting.quads,
        (Origin(origin.snapshot),),
        sha256(repr((replace(component, warnings=()), told, sorted(sitting.doubtful)))),
        entities.graphs,
        [f"{component.id}: {warning}" for warning in (*component.warnings, *sitting.warnings())],
        (origin,),
        sitting.units,
    )
    return record, findings


@dataclass(slots=True)
class _Sitting:
    domain: str
    component: Component
    lists: Lists
    quads: list[Quad] = field(default_factory=list)
    units: list[TextUnit] = field(default_factory=list)
    unknown: dict[str, None] = field(default_factory=dict)
    doubtful: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The turns, by speaker and name in the note before them, that name another person."""
    key: tuple[str, ...] = field(init=False)
    place: tuple[str, ...] = field(init=False)
    iri: NamedNode = field(init=False)
    graph: NamedNode = field(init=False)
    entities: Entities = field(init=False)
    chamber: NamedNode = field(init=False)
    occasions: Occasions = field(init=False)

    def __post_init__(self) -> None:
        component = self.component
        self.place = (component.code, component.date.isoformat(), *filter(None, (component.number,)))
        self.key = ("parlamint", *self.place)
        self.iri = mint("sitting", *self.place)
        self.graph = mint("graph", "src", self.domain, *self.key)
        self.entities = Entities(component.code, component.country, self.lists)
        chamber = self.entities.find_chamber(component.organizations, component.house)
        self.chamber = self.entities.organization(chamber, PARLIAMENT)
        self.occasions = Occasions(self.domain, component.date, chamber, self.entities, self.lists)

    def warnings(self) -> Iterator[str]:
        """Yield a warning for the people whom no list describes."""
        if self.unknown:
            yield f"no list describes the speakers {', '.join(self.unknown)}: their names and parties are unknown"
        if self.doubtful:
            yield describe_doubtful(self.doubtful)

    def say(self, subject: NamedNode, *said: Property) -> None:
        """Add statements about one subject."""
        graph = self.graph
        self.quads += [Quad(subject, predicate, value, graph) for predicate, value in said]

    def write(self) -> None:
        component = self.component
        self.say(
            self.iri,
            (RDF.type, KG.Sitting),
            *self._dated(component.citation, component.language),
            *((_NUMBERS[level], Literal(number)) for level, number in component.numbers.items()),
        )
        if component.title:
            self.say(self.iri, (DCTERMS.title, Literal(component.title)))
        titles = {section.path: section.title for section in component.sections if section.title}
        for position, section in enumerate(component.sections, 1):
            self._section(section, position)
        for turn in component.turns:
            steps = (turn.debate[:depth] for depth in range(1, len(turn.debate) + 1))
            self._turn(turn, ": ".join(titles[step] for step in steps if step in titles))
        for number, remark in enumerate(component.remarks):
            said = [*when_and_where(None, remark.page), (KG.sourceLines, format_lines(remark.lines))]
            own = remark.language if remark.language != component.language else None
            self.units.append(
                TextUnit(
                    mint_part(self.iri, "text", number),
                    KG.ProceduralText,
                    remark.ordinal,
                    remark.text,
                    self._within(remark.debate),
                    own,
                    said,
                )
            )

    def _dated(self, citation: str, language: str | None) -> Iterator[Property]:
        yield DCTERMS.date, Literal(self.component.date.isoformat(), datatype=XSD.date)
        yield KG.chamber, self.chamber
        yield KG.jurisdiction, self.entities.jurisdiction
        yield KG.hansardReference, Literal(citation)
        if language is not None:
            yield SCHEMA.inLanguage, Literal(language)

    def _within(self, path: tuple[int, ...]) -> NamedNode:
        return mint("debate", *self.place, ".".join(map(str, path))) if path else self.iri

    def _section(self, section: Section, position: int) -> None:
        iri = self._within(section.path)
        self.say(
            iri,
            (RDF.type, KG.Debate),
            (DCTERMS.isPartOf, self._within(section.path[:-1])),
            (SCHEMA.position, Literal(position)),
            *((DCTERMS.title, Literal(title)) for title in (section.title,) if title),
            *((SCHEMA.inLanguage, Literal(language)) for language in (section.language,) if language),
            *when_and_where(None, section.page),
        )

    def _turn(self, turn: Turn, title: str) -> None:
        iri, built = mint("speech", turn.id), build_text(turn.parts)
        citation = self.component.citation + (f", p. {turn.page}" if turn.page else "")
        source = parse_web_address(turn.source or self.component.source or "")
        person = self._speaker(turn)
        self.say(
            iri,
            (RDF.type, KG.Speech),
            (DCTERMS.identifier, Literal(turn.id)),
            *self._dated(citation, built.language or self.component.language),
            (KG.speechType, mint_code("speechType", "speech")),
            (KG.length, Literal(len(built.text))),
            (KG.wordCount, Literal(len(built.text.split()))),
            (KG.textSha256, Literal(sha256(built.text))),
            (DCTERMS.isPartOf, self._within(turn.debate)),
            (SCHEMA.position, Literal(turn.ordinal)),
            (KG.sourceLines, format_lines(turn.lines)),
            *when_and_where(turn.time, turn.page),
            *self._said_by(turn, person),
        )
        if title:
            self.say(iri, (DCTERMS.title, Literal(title)))
        if source is not None:
            self.say(iri, (DCTERMS.source, NamedNode(source)))
        for number, utterance in enumerate(built.utterances):
            self._utterance(turn, iri, number, utterance, person)
        mixed = len({language for _, _, language in built.spans}) > 1
        position = 0
        others = {
            each.start: mint_part(iri, "utterance", number)
            for number, each in enumerate(built.utterances)
            if each.kind not in ("turn", "continuation") and each.end > each.start
        }
        for start, end, language in built.spans:
            other = ((KG.otherVoice, others[start]),) if start in others else ()
            for first, last in split_chunks(built.text, [(start, end)]):
                self.units.append(
                    TextUnit(
                        mint_span(iri, first, last),
                        KG.SpeechChunk,
                        position,
                        built.text[first:last],
                        iri,
                        language if mixed else None,
                        ((KG.start, Literal(first)), (KG.end, Literal(last)), *other),
                    )
                )
                position += 1

    def _speaker(self, turn: Turn) -> NamedNode | None:
        if turn.speaker is None:
            return None
        listed = self.lists.people.get(turn.speaker)
        if listed is None:
            self.unknown[turn.speaker] = None
        elif turn.name and CHAIR not in turn.roles and names_another(turn.name, listed, self.lists.people.values()):
            self.doubtful[turn.speaker, turn.name] += 1
            return None
        person = self.entities.person(turn.speaker)
        self.occasions.spoke.append(Spoke(mint("speech", turn.id), turn.speaker))
        return person

    def _said_by(self, turn: Turn, person: NamedNode | None) -> Iterator[Property]:
        if person is not None:
            yield KG.speaker, person
        if CHAIR in turn.roles:
            yield KG.office, mint_code("office", CHAIR)
        if turn.name:
            yield KG.speakerAsRecorded, Literal(turn.name)

    def _utterance(
        self, turn: Turn, speech: NamedNode, number: int, utterance: Utterance, person: NamedNode | None
    ) -> None:
        iri = mint_part(speech, "utterance", number)
        self.say(
            iri,
            (RDF.type, KG.Utterance),
            (DCTERMS.isPartOf, speech),
            (KG.utteranceType, mint_code("utteranceType", utterance.kind)),
            (KG.start, Literal(utterance.start)),
            (KG.end, Literal(utterance.end)),
        )
        if utterance.kind in ("turn", "continuation"):
            self.say(iri, *self._said_by(turn, person))
        elif utterance.name is not None:
            self.say(iri, (KG.speakerAsRecorded, Literal(utterance.name)))
            self.occasions.called.append(Called(iri, utterance.name, turn.speaker))
