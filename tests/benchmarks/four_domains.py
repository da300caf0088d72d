"""Made-up records of all four domains in equal shares, with mentions of made-up concepts, for the benchmark `pages`.

Beside them are two things that grow pages: a document of many passages, and a concept that every passage mentions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import (
    DCTERMS,
    ELI,
    FOAF,
    KG,
    OA,
    RDF,
    RDFS,
    SCHEMA,
    SKOS,
    XSD,
    mint,
    mint_mention,
    mint_part,
    mint_span,
    sha256,
)
from tests.benchmarks.search import country, words

UNITS_EACH = 50
"""Passages of a document, a sitting day, a chapter of a code or a file."""
CHUNKS_EACH = 5
"""Passages of a speech."""
CONCEPTS = 500
MENTIONED = 5
"""One passage in so many mentions one of the concepts."""
EVERYWHERE = "Q100000"
"""The concept that every passage mentions."""
LONG = "made-long"
"""The slug of the long document."""
LONGEST = 20_000
PARTIES = 6
PEOPLE = 90
VOTES = 20
"""Votes by name in the division of each sitting day."""
TOWNS = 40
FAMILY = 3
"""Documents of a policy family."""

Graph = tuple[NamedNode, list[Quad]]
About = list[tuple[NamedNode, NamedNode | Literal]]


@dataclass
class _Record:
    """A graph that grows."""

    graph: NamedNode
    quads: list[Quad] = field(default_factory=list)

    def say(self, subject: NamedNode, about: About) -> None:
        self.quads += [Quad(subject, name, value, self.graph) for name, value in about]


class _Maker:
    """Makes texts out of a vocabulary, and mentions in them."""

    def __init__(self) -> None:
        self._vocabulary, self._weights = words()
        self._chance = random.Random(12)

    def text(self) -> str:
        return " ".join(self._chance.choices(self._vocabulary, cum_weights=self._weights, k=40))

    def mention(self, derived: _Record, unit: NamedNode, text: str, position: int) -> None:
        """Say that a passage mentions the concept of all passages, and one in some that it mentions another one."""
        derived.say(unit, [(KG.mentions, mint("concept", EVERYWHERE))])
        if position % MENTIONED == 0:
            concept = mint("concept", f"Q{int(CONCEPTS * self._chance.random() ** 2) + 1}")
            start, end = 0, text.index(" ")
            claim: About = [
                (OA.hasSource, unit), (KG.object, concept), (KG.start, Literal(start)), (KG.end, Literal(end)),
                (KG.matchType, Literal("label")),
            ]  # fmt: skip
            derived.say(mint_mention(unit, start, end, concept), claim)
            derived.say(unit, [(KG.mentions, concept)])


def graphs(passages: int) -> Iterator[Graph]:
    """Yield the graphs of so many passages in all, with the places, towns, parties, people and concepts."""
    maker = _Maker()
    yield from _shared()
    long = min(LONGEST, passages // 5)
    yield from _document(maker, LONG, 0, long)
    for number in range(max(4, (passages - long) // UNITS_EACH)):
        if number % 4 == 0:
            yield from _document(maker, f"made-{number}", number, UNITS_EACH)
        elif number % 4 == 1:
            yield from _sitting(maker, number)
        elif number % 4 == 2:
            yield from _chapter(maker, number)
        else:
            yield from _file(maker, number)


def _day(number: int) -> Literal:
    return Literal(f"{1990 + number % 35}-0{number % 9 + 1}-{number // 315 % 28 + 1:02}", datatype=XSD.date)


def _records(domain: str, number: int | str) -> tuple[_Record, _Record]:
    """Start the graph of a record and that of its mentions."""
    source = mint("graph", "src", domain, f"made-{number}")
    return _Record(source), _Record(mint("graph", "der", "mentions", domain, f"made-{number}"))


def _unit(document: NamedNode, kind: NamedNode, position: int, text: str) -> About:
    return [
        (RDF.type, kind), (DCTERMS.isPartOf, document), (SCHEMA.position, Literal(position)),
        (SCHEMA.text, Literal(text)), (KG.textSha256, Literal(sha256(text))),
    ]  # fmt: skip


def _done(*records: _Record) -> Iterator[Graph]:
    for each in records:
        yield each.graph, each.quads


def _document(maker: _Maker, slug: str, number: int, size: int) -> Iterator[Graph]:
    record, mentions = _records("climate", slug)
    document, family = mint("document", slug), mint("family", f"made-{number // (4 * FAMILY)}")
    about: About = [
        (RDF.type, KG.PolicyDocument), (DCTERMS.title, Literal(f"Measure {number} of {country(number)}")),
        (KG.slug, Literal(slug)), (ELI.date_document, _day(number)), (ELI.is_member_of, family),
        (KG.corpusType, mint("code", "corpusType", "Laws and Policies")),
        (KG.jurisdiction, mint("place", country(number))), (SCHEMA.inLanguage, Literal("en")),
    ]  # fmt: skip
    record.say(document, about)
    for position in range(size):
        text, unit = maker.text(), mint("passage", slug, str(position))
        block = "sectionHeading" if position % 25 == 0 else "Text"
        page: About = [
            (KG.pageNumber, Literal(position // 8 + 1)), (KG.blockType, mint("code", "blockType", block)),
        ]  # fmt: skip
        record.say(unit, [*_unit(document, KG.Passage, position, text), *page])
        maker.mention(mentions, unit, text, position)
    yield from _done(record, mentions)
    if number % (4 * FAMILY) == 0 and slug != LONG:
        shared = _Record(mint("graph", "ref", "family", family.value.rpartition("/")[2]))
        shared.say(family, [(RDF.type, KG.PolicyFamily), (DCTERMS.title, Literal(f"Measures {number}"))])
        yield from _done(shared)


def _sitting(maker: _Maker, number: int) -> Iterator[Graph]:
    record, mentions = _records("hansard", number)
    sitting, debate = mint("sitting", f"made-{number}"), mint("debate", f"made-{number}", "1")
    chamber, day = mint("chamber", "au-senate"), _day(number)
    record.say(sitting, [(RDF.type, KG.Sitting), (DCTERMS.date, day), (KG.chamber, chamber),
                         (KG.jurisdiction, mint("place", "AUS"))])  # fmt: skip
    record.say(debate, [(RDF.type, KG.Debate), (DCTERMS.isPartOf, sitting), (SCHEMA.position, Literal(0)),
                        (DCTERMS.title, Literal(f"Bill {number}"))])  # fmt: skip
    for turn in range(UNITS_EACH // CHUNKS_EACH):
        speech, person = mint("speech", f"made-{number}-{turn}"), (number + turn) % PEOPLE
        texts = [f"{maker.text()}\n" for _ in range(CHUNKS_EACH)]
        whole = "".join(texts)
        record.say(
            speech,
            [
                (RDF.type, KG.Speech), (DCTERMS.identifier, Literal(f"made-{number}-{turn}")),
                (DCTERMS.title, Literal(f"Bill {number}")), (DCTERMS.date, day), (DCTERMS.isPartOf, debate),
                (SCHEMA.position, Literal(turn)), (KG.party, mint("party", f"p{person % PARTIES}")),
                (KG.chamber, chamber), (KG.jurisdiction, mint("place", "AUS")),
                (KG.speaker, mint("person", f"p{person}")), (KG.speakerAsRecorded, Literal(f"Senator {person}")),
                (SCHEMA.inLanguage, Literal("en-AU")), (KG.length, Literal(len(whole))),
                (KG.wordCount, Literal(len(whole.split()))),
                (KG.textSha256, Literal(sha256(whole))),
            ],
        )  # fmt: skip
        at = 0
        for position, text in enumerate(texts):
            span: About = [(KG.start, Literal(at)), (KG.end, Literal(at + len(text)))]
            unit = mint_span(speech, at, at + len(text))
            record.say(unit, [*_unit(speech, KG.SpeechChunk, position, text), *span])
            kind = "interjection" if position == 2 else "turn" if position == 0 else "continuation"
            said: About = [
                (RDF.type, KG.Utterance), (DCTERMS.isPartOf, speech), *span, (SCHEMA.position, Literal(position)),
                (KG.utteranceType, mint("code", "utteranceType", kind)),
                (KG.speakerAsRecorded, Literal(f"Senator {person + (position == 2)}")),
            ]  # fmt: skip
            record.say(mint_part(speech, "utterance", position), said)
            maker.mention(mentions, unit, text, position)
            at += len(text)
    _divide(record, debate, chamber, number)
    yield from _done(record, mentions)


def _divide(record: _Record, debate: NamedNode, chamber: NamedNode, number: int) -> None:
    """Add a division of a debate, with the votes of some members."""
    division = mint("division", f"made-{number}", "1")
    about: About = [
        (RDF.type, KG.Division), (DCTERMS.isPartOf, debate), (KG.chamber, chamber), (SCHEMA.position, Literal(5)),
        (KG.ayeCount, Literal(VOTES // 2)), (KG.noCount, Literal(VOTES // 2)),
    ]  # fmt: skip
    record.say(division, about)
    for place in range(VOTES):
        person, side = (number + place) % PEOPLE, ("aye", "no")[place % 2]
        vote: About = [
            (DCTERMS.isPartOf, division), (KG.voteAsRecorded, Literal(f"Person {person}")),
            (KG.voteValue, mint("code", "voteValue", side)), (KG.voter, mint("person", f"p{person}")),
        ]  # fmt: skip
        record.say(mint_part(division, "vote", place), vote)


def _chapter(maker: _Maker, number: int) -> Iterator[Graph]:
    record, mentions = _records("zoning", number)
    key = f"us-ut-town{number // 4 % TOWNS}"
    town: About = [(RDF.type, KG.CodeSection), (KG.jurisdiction, mint("municipality", key))]
    chapter = mint("section", key, str(number))
    record.say(chapter, [*town, (DCTERMS.title, Literal(f"Chapter {number}")), (KG.sectionNumber, Literal(str(number))),
                         (KG.level, Literal(1)), (SCHEMA.position, Literal(number))])  # fmt: skip
    for position in range(UNITS_EACH):
        text, section = maker.text(), mint("section", key, f"{number}.{position}")
        named: About = [
            *town[1:], (DCTERMS.title, Literal(f"Section {number}.{position}")),
            (KG.sectionNumber, Literal(f"{number}.{position}")), (KG.level, Literal(2)),
        ]  # fmt: skip
        record.say(section, [*_unit(chapter, KG.CodeSection, position, text), *named])
        maker.mention(mentions, section, text, position)
    yield from _done(record, mentions)


def _file(maker: _Maker, number: int) -> Iterator[Graph]:
    record, mentions = _records("files", number)
    document = mint("file", "made", f"note-{number}.md")
    about: About = [
        (RDF.type, KG.File), (DCTERMS.title, Literal(f"Note {number}")), (KG.collection, Literal("made")),
        (KG.path, Literal(f"note-{number}.md")), (SCHEMA.inLanguage, Literal("en")),
    ]  # fmt: skip
    record.say(document, about)
    at = 0
    for position in range(UNITS_EACH):
        text = maker.text()
        span: About = [(KG.start, Literal(at)), (KG.end, Literal(at + len(text)))]
        unit = mint_span(document, at, at + len(text))
        record.say(unit, [*_unit(document, KG.Chunk, position, text), *span])
        maker.mention(mentions, unit, text, position)
        at += len(text) + 2
    yield from _done(record, mentions)


def _shared() -> Iterator[Graph]:
    """Yield the graphs of places, towns, parties, people and concepts."""
    about: dict[NamedNode, About] = {}
    for code in {country(number) for number in range(2_000)} | {"AUS"}:
        about[mint("place", code)] = [(RDF.type, KG.Place), (SKOS.notation, Literal(code))]
    for number in range(TOWNS):
        about[mint("municipality", f"us-ut-town{number}")] = [
            (RDF.type, KG.Municipality), (SKOS.prefLabel, Literal(f"Town {number}")),
            (KG.within, mint("place", "US-UT")),
        ]  # fmt: skip
    for number in range(PARTIES):
        label = Literal(f"Party {number}", language="en")
        about[mint("party", f"p{number}")] = [(RDF.type, KG.Party), (SKOS.prefLabel, label)]
    about[mint("chamber", "au-senate")] = [(RDF.type, KG.Chamber), (SKOS.prefLabel, Literal("Senate", language="en"))]
    for number in range(PEOPLE):
        about[mint("person", f"p{number}")] = [
            (RDF.type, FOAF.Person), (FOAF.name, Literal(f"Person {number}")),
            (KG.identityStatus, mint("code", "identityStatus", "identified")),
        ]  # fmt: skip
    for name in (*(f"Q{number}" for number in range(1, CONCEPTS + 1)), EVERYWHERE):
        label = Literal(f"concept {name[1:]}", language="en")
        about[mint("concept", name)] = [(RDF.type, SKOS.Concept), (SKOS.prefLabel, label), (RDFS.label, label)]
    for number, (node, said) in enumerate(about.items()):
        shared = _Record(mint("graph", "ref", "made", str(number)))
        shared.say(node, said)
        yield from _done(shared)
