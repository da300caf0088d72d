"""Speeches as quads and text units, for every kind of file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, XSD, mint, mint_part, mint_span, sha256
from loaders.hansard import parties
from loaders.hansard.authorities import Authorities
from loaders.hansard.offices import identifier_of
from loaders.hansard.parliaments import Parliament
from loaders.hansard.sitting_model import Speech, Talker, Utterance
from loaders.model import Property, TextUnit
from loaders.readers.cells import parse_digits
from loaders.readers.chunks import split_chunks

SENATE: Final = mint("chamber", "au-senate")

BY_FORM: Final = "the paragraph begins with a name in bold; no markup names who speaks"
"""The value of `kg:attributedByForm`."""

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LABELS: Final = {mint("chamber", code): name for code, name in parties.CHAMBERS.items()}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A speech with the context that its record gives."""

    id: str
    speech: Speech
    chamber: NamedNode
    on: date
    title: str | None = None
    """Its title, or the headings of its debates. None if the source has neither."""
    chamber_form: str | None = None
    """The chamber as recorded."""
    venue: NamedNode | None = None
    reference: str | None = None
    """The citation, if the source has one."""
    debate_type: str | None = None
    topics: Sequence[str] = ()
    quality: str | None = None
    """How close the text is to the spoken words, if the source states it."""
    source: str | None = None
    """A web address."""
    within: NamedNode | None = None
    """Its debate or sitting."""
    answers: NamedNode | None = None
    position: int | None = None
    """Its position in the sitting."""

    @property
    def iri(self) -> NamedNode:
        """Its identifier."""
        return mint("speech", self.id)


@dataclass(slots=True)
class Writer:
    """Collects the quads and text units of one graph."""

    graph: NamedNode
    shared: Authorities | Parliament
    quads: list[Quad] = field(default_factory=list)
    units: list[TextUnit] = field(default_factory=list)

    def say(self, subject: NamedNode, predicate: NamedNode, value: NamedNode | Literal | str | int | bool) -> None:
        """Add one quad."""
        term = value if isinstance(value, NamedNode | Literal) else Literal(value)
        self.quads.append(Quad(subject, predicate, term, self.graph))

    def say_all(self, subject: NamedNode, said: Iterable[Property]) -> None:
        """Add several quads about one subject."""
        graph = self.graph
        self.quads += [Quad(subject, predicate, value, graph) for predicate, value in said]

    def speech(self, recorded: Recorded) -> None:
        """Add a speech: its properties, its utterances and its chunks."""
        speech, iri = recorded.speech, recorded.iri
        self.say(iri, RDF.type, KG.Speech)
        self.say_all(iri, self._described(recorded))
        self.say_all(iri, self._spoken_by(speech.talker, iri))
        spans: list[tuple[int, int, Sequence[Property]]] = []
        for number, each in enumerate(speech.utterances):
            utterance, part = _by_turn(each, speech.talker), mint_part(iri, "utterance", number)
            other = self._is_by_another(utterance, speech.talker)
            self._utterance(iri, part, utterance, other=other)
            if utterance.end > utterance.start:
                spans.append((utterance.start, utterance.end, ((KG.otherVoice, part),) if other else ()))
        position = 0
        for low, high, said in spans or [(0, len(speech.text), ())]:
            for first, last in split_chunks(speech.text, [(low, high)]):
                where = (KG.start, Literal(first)), (KG.end, Literal(last)), *said
                text = speech.text[first:last]
                self.units.append(
                    TextUnit(mint_span(iri, first, last), KG.SpeechChunk, position, text, iri, properties=where)
                )
                position += 1

    def _described(self, recorded: Recorded) -> Iterator[Property]:
        speech = recorded.speech
        yield DCTERMS.identifier, Literal(recorded.id)
        if recorded.title:
            yield DCTERMS.title, Literal(recorded.title)
        yield DCTERMS.date, Literal(recorded.on.isoformat(), datatype=XSD.date)
        yield KG.chamber, recorded.chamber
        if recorded.chamber_form and recorded.chamber_form != _LABELS.get(recorded.chamber):
            yield KG.chamberAsRecorded, Literal(recorded.chamber_form)
        if recorded.venue is not None:
            yield KG.venue, recorded.venue
        yield KG.jurisdiction, self.shared.jurisdiction
        if recorded.reference:  # else it is derived (`loaders.hansard.graph.references`)
            yield KG.hansardReference, Literal(recorded.reference)
        yield KG.speechType, mint_code("speechType", speech.kind)
        if recorded.quality is not None:
            yield KG.transcriptQuality, mint_code("transcriptQuality", recorded.quality)
        yield KG.length, Literal(len(speech.text))
        yield KG.wordCount, Literal(len(speech.text.split()))
        yield KG.textSha256, Literal(sha256(speech.text))
        if recorded.debate_type:
            yield KG.debateType, Literal(recorded.debate_type)
        for topic in recorded.topics:
            yield DCTERMS.subject, Literal(topic)
        if recorded.source:
            yield DCTERMS.source, NamedNode(recorded.source)
        if recorded.within is not None:
            yield DCTERMS.isPartOf, recorded.within
        if recorded.answers is not None:
            yield KG.answers, recorded.answers
        if recorded.position is not None:
            yield SCHEMA.position, Literal(recorded.position)
        yield from when_and_where(speech.time, speech.page)
        if speech.lines is not None:
            yield KG.sourceLines, format_lines(speech.lines)

    def _spoken_by(self, talker: Talker, speech: NamedNode) -> Iterator[Property]:
        yield from self._name(talker)
        if talker.party:
            if (party := self.shared.party(talker.party)) is not None:
                yield KG.party, party
            if not parties.is_nothing(talker.party):
                yield KG.partyAsRecorded, Literal(talker.party)
        yield from self._seat(talker)
        if talker.role:
            yield KG.role, Literal(talker.role)
        if talker.in_government is not None:
            yield KG.inGovernment, Literal(talker.in_government)
        if talker.first_speech is not None:
            yield KG.firstSpeech, Literal(talker.first_speech)

    def _name(self, talker: Talker) -> Iterator[Property]:
        if (person := self.shared.person(talker)) is not None:
            yield KG.speaker, person
        if (office := self.shared.office(talker)) is not None:
            yield KG.office, mint_code("office", office)
        if talker.name:
            yield KG.speakerAsRecorded, Literal(talker.name)

    def _seat(self, talker: Talker) -> Iterator[Property]:
        """Add state and electorate. A recorded electorate of a senator is a state."""
        form, electorate = talker.state, talker.electorate
        if electorate and self.shared.chamber == SENATE:
            form, electorate = form or electorate, None
        if form:
            state = self.shared.state(form)
            if state is not None:
                yield KG.state, state
            if not parties.is_nothing(form) and (state is None or f"AU-{form}" not in state.value):
                yield KG.stateAsRecorded, Literal(form)
        if electorate:
            found = self.shared.electorate(electorate)
            if found is not None:
                yield KG.electorate, found[0]
            if not parties.is_nothing(electorate) and (found is None or found[1] != electorate):
                yield KG.electorateAsRecorded, Literal(electorate)

    def _is_by_another(self, utterance: Utterance, speaker: Talker) -> bool:
        """Whether an utterance is not the speaker's of the speech. As in `kg.retrieval.attribution`."""
        if utterance.kind != "continuation":
            return utterance.kind != "turn"
        talker = utterance.talker
        if talker is None:
            return False
        one, other = self.shared.person(talker), self.shared.person(speaker)
        if one is not None and other is not None:
            return one != other
        return talker.name.casefold() != speaker.name.casefold()

    def _utterance(self, speech: NamedNode, iri: NamedNode, utterance: Utterance, *, other: bool) -> None:
        self.say(iri, RDF.type, KG.Utterance)
        self.say(iri, DCTERMS.isPartOf, speech)
        self.say(iri, KG.utteranceType, mint_code("utteranceType", utterance.kind))
        self.say(iri, KG.start, utterance.start)
        self.say(iri, KG.end, utterance.end)
        talker = utterance.talker
        if talker is not None and utterance.by_form and identifier_of(talker) is None:
            self.say(iri, KG.speakerAsRecorded, talker.name)
        elif talker is not None:
            self.say_all(iri, self._name(talker))
            if other and talker.party and (party := self.shared.party(talker.party)) is not None:
                self.say(iri, KG.party, party)
        if utterance.by_form:
            self.say(iri, KG.attributedByForm, BY_FORM)
        self.say_all(iri, when_and_where(utterance.time, utterance.page))


def _by_turn(utterance: Utterance, speaker: Talker) -> Utterance:
    """Return an utterance with the id of the turn's speaker, if it continues the turn under that name.

    Records then have the id of the person who interjected just before.
    """
    talker = utterance.talker
    if utterance.kind != "continuation" or talker is None or not speaker.name_id or talker.name != speaker.name:
        return utterance
    return replace(utterance, talker=replace(talker, name_id=speaker.name_id, holder_id=speaker.holder_id))


def format_citation(chamber: NamedNode, on: date, page: str | None = None) -> str:
    """Return the official citation: ``House Hansard, 21 Oct 2024, p. 42``."""
    name = "Senate" if chamber == SENATE else "House"
    day = f"{name} Hansard, {day_of(on)}"
    return f"{day}, p. {page}" if page and _is_page(page) else day


def day_of(on: date) -> str:
    """Format a date as in ``21 Oct 2024``."""
    return f"{on.day} {_MONTHS[on.month - 1]} {on.year}"


def label_of(chamber: NamedNode) -> str:
    """Return the name of a chamber."""
    return _LABELS.get(chamber, chamber.value.rpartition("/")[2])


def when_and_where(at: time | None, page: str | None) -> Iterator[Property]:
    """Yield the time of day and the page, where they are known."""
    if at is not None:
        yield SCHEMA.startTime, Literal(at.isoformat(), datatype=XSD.time)
    if page and _is_page(page) and (number := parse_digits(page)) is not None:
        yield KG.pageNumber, Literal(number)


def format_lines(span: tuple[int, int]) -> Literal:
    """Format first and last line of a file for `kg:sourceLines`."""
    first, last = span
    return Literal(f"{first}-{last}" if last > first else str(first))


def _is_page(page: str) -> bool:
    """Whether this is a page: editions that were never printed have the page 0."""
    return bool(page.strip("0 "))


@lru_cache(maxsize=256)
def mint_code(scheme: str, code: str) -> NamedNode:
    """Return the IRI of a code of the ontology."""
    return mint("code", scheme, code)
