"""A sitting day as one graph: its debates, speeches, procedural text and divisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from kg.errors import RecordError
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, XSD, mint, mint_part, sha256
from loaders.hansard import parties
from loaders.hansard.authorities import AUSTRALIA, Authorities
from loaders.hansard.identifiers import Identifiers, describe_doubtful, list_talkers
from loaders.hansard.offices import identifier_of
from loaders.hansard.sitting_model import Debate, Division, Procedure, Sitting
from loaders.hansard.speech_records import (
    Recorded,
    Writer,
    format_lines,
    label_of,
    mint_code,
    when_and_where,
)
from loaders.model import Origin, Property, SourceGraph, TextUnit
from loaders.readers.cells import parse_digits, quote


def build_sitting_record(
    domain: str, sitting: Sitting, origin: Origin, identifiers: Identifiers | None = None
) -> SourceGraph:
    """Build the record of a sitting. `origin` is its row in the file; `identifiers` has the known ones.

    Raises RecordError for an unknown chamber.
    """
    chamber = parties.chamber(sitting.chamber)
    if chamber is None:
        raise RecordError(f"unknown chamber {quote(sitting.chamber)}. Available: House of Representatives, Senate.")
    identifiers = identifiers or Identifiers()
    talkers = list_talkers(sitting)
    identifiers.add(talkers)
    doubtful = Counter(
        (identifier_of(talker) or "", talker.full_name or talker.name)
        for talker in talkers
        if not identifiers.is_of(talker)
    )
    day = _Day(domain, sitting, chamber, identifiers)
    day.write()
    warnings = [*sitting.warnings, *([describe_doubtful(doubtful)] if doubtful else ())]
    return SourceGraph(
        domain,
        day.key,
        day.iri,
        day.writer.quads,
        (Origin(origin.snapshot),),
        _digest(sitting, doubtful),
        day.shared.graphs,
        [*(f"{day.name}: {warning}" for warning in (*warnings, *day.shared.warnings()))],
        (origin,),
        day.writer.units,
    )


def _digest(sitting: Sitting, doubtful: Mapping[tuple[str, str], int]) -> str:
    """Hash everything that was read, except the list of repairs, and whose identifiers do not count."""
    return sha256(repr((replace(sitting, warnings=()), sorted(doubtful))))


class _Day:
    def __init__(self, domain: str, sitting: Sitting, chamber: NamedNode, identifiers: Identifiers) -> None:
        self.sitting: Final = sitting
        self.chamber: Final = chamber
        self.key: Final = chamber.value.rpartition("/")[2].removeprefix("au-"), sitting.date.isoformat()
        self.name: Final = " ".join(self.key)
        self.iri: Final = mint("sitting", *self.key)
        self.shared: Final = Authorities(chamber, sitting.date, identifiers.is_of)
        self.writer: Final = Writer(mint("graph", "src", domain, *self.key), self.shared)
        self.debates: Final = {debate.path: debate for debate in sitting.debates}

    def write(self) -> None:
        self.writer.say(self.iri, RDF.type, KG.Sitting)
        self.writer.say_all(self.iri, self._described())
        for position, debate in enumerate(self.sitting.debates, 1):
            self._debate(debate, position)
        for speech in self.sitting.speeches:
            line = self._line(speech.debate)
            self.writer.speech(
                Recorded(
                    self._speech_id(speech.ordinal),
                    speech,
                    self.chamber,
                    self.sitting.date,
                    ": ".join(debate.title for debate in line if debate.title) or None,
                    venue=self._venue(line),
                    debate_type=next((debate.kind for debate in reversed(line) if debate.kind), None),
                    within=self._within(speech.debate),
                    answers=mint("speech", self._speech_id(speech.answers)) if speech.answers is not None else None,
                    position=speech.ordinal,
                )
            )
        for number, procedure in enumerate(self.sitting.procedures):
            self._procedure(procedure, number)
        for number, division in enumerate(self.sitting.divisions, 1):
            self._division(division, number)

    def _speech_id(self, ordinal: int) -> str:
        return f"{self.sitting.date.isoformat()}-{self.key[0]}-{ordinal}"

    def _described(self) -> list[Property]:
        sitting = self.sitting
        said: list[Property] = [
            (DCTERMS.date, Literal(sitting.date.isoformat(), datatype=XSD.date)),
            (KG.chamber, self.chamber),
            (KG.jurisdiction, AUSTRALIA),
        ]
        if sitting.chamber != label_of(self.chamber):
            said.append((KG.chamberAsRecorded, Literal(sitting.chamber)))
        for predicate, number in (
            (KG.parliamentNumber, sitting.parliament),
            (KG.sessionNumber, sitting.session),
            (KG.periodNumber, sitting.period),
        ):
            if (counted := parse_digits(number)) is not None:
                said.append((predicate, Literal(counted)))
        if sitting.proof is not None:
            said.append((KG.proof, Literal(sitting.proof)))
        if sitting.schema_version:
            said.append((KG.schemaVersion, Literal(sitting.schema_version)))
        return [*said, *when_and_where(None, sitting.page)]

    def _line(self, path: Sequence[int]) -> list[Debate]:
        """Return the debates along a path, the outermost first."""
        steps = (tuple(path[:depth]) for depth in range(1, len(path) + 1))
        return [self.debates[step] for step in steps if step in self.debates]

    def _within(self, path: Sequence[int]) -> NamedNode:
        line = self._line(path)
        return self._debate_iri(line[-1].path) if line else self.iri

    def _debate_iri(self, path: Sequence[int]) -> NamedNode:
        return mint("debate", *self.key, ".".join(map(str, path)))

    def _venue(self, line: Sequence[Debate]) -> NamedNode | None:
        form = next((debate.venue for debate in reversed(line) if debate.venue), None)
        return None if form is None else self.shared.venue(form)

    def _debate(self, debate: Debate, position: int) -> None:
        iri, writer = self._debate_iri(debate.path), self.writer
        writer.say(iri, RDF.type, KG.Debate)
        writer.say(iri, DCTERMS.isPartOf, self._within(debate.path[:-1]))
        if debate.title:
            writer.say(iri, DCTERMS.title, debate.title)
        writer.say(iri, SCHEMA.position, position)
        if debate.kind:
            writer.say(iri, KG.debateType, debate.kind)
        if (venue := self._venue([debate])) is not None:
            writer.say(iri, KG.venue, venue)
        writer.say_all(iri, when_and_where(None, debate.page))
        numbers = [*debate.bill_ids, *(None for _ in debate.bills)]
        for title, number in zip(debate.bills, numbers, strict=False):
            writer.say(iri, KG.concernsBill, self.shared.bill(title, number))
        for presenter in debate.presenters:
            if (person := self.shared.person(presenter)) is not None:
                writer.say(iri, KG.presenter, person)
        if debate.signatures is not None:
            writer.say(iri, KG.signatureCount, debate.signatures)

    def _procedure(self, procedure: Procedure, number: int) -> None:
        if not procedure.text:
            return
        said: list[Property] = [*when_and_where(None, procedure.page)]
        if procedure.venue and (venue := self.shared.venue(procedure.venue)) is not None:
            said.append((KG.venue, venue))
        if procedure.lines is not None:
            said.append((KG.sourceLines, format_lines(procedure.lines)))
        self.writer.units.append(
            TextUnit(
                mint_part(self.iri, "text", number),
                KG.ProceduralText,
                procedure.ordinal,
                procedure.text,
                self._within(procedure.debate),
                properties=said,
            )
        )

    def _division(self, division: Division, number: int) -> None:
        iri, writer = mint("division", *self.key, str(number)), self.writer
        said: list[tuple[NamedNode, Any]] = [
            (RDF.type, KG.Division),
            (DCTERMS.isPartOf, self._within(division.debate)),
            (KG.chamber, self.chamber),
            (SCHEMA.position, division.ordinal),
            (KG.ayeCount, division.ayes),
            (KG.noCount, division.noes),
            (KG.result, division.result or None),
            (DCTERMS.description, division.header or None),
        ]
        if (question := division.question) is not None:
            place = iri
            if question.speech is not None:
                place = mint("speech", self._speech_id(question.speech))
            elif question.procedure is not None:
                place = mint_part(self.iri, "text", question.procedure)
            said += [
                (KG.question, question.text),
                (KG.questionIn, place),
                (KG.start, question.start),
                (KG.end, question.end),
            ]
        for predicate, value in said:
            if value is not None:
                writer.say(iri, predicate, value)
        writer.say_all(iri, when_and_where(division.time, None))
        for row, vote in enumerate(division.votes):
            node = mint_part(iri, "vote", row)
            writer.say(node, RDF.type, KG.Vote)
            writer.say(node, DCTERMS.isPartOf, iri)
            writer.say(node, KG.voteValue, mint_code("voteValue", vote.value))
            writer.say(node, KG.voteAsRecorded, vote.name)
            if vote.teller:
                writer.say(node, KG.teller, True)
            if (voter := self.shared.voter(vote.name, vote.name_id)) is not None:
                writer.say(node, KG.voter, voter)
