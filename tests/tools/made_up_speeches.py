"""Made-up speeches behind the stand-ins of `made_up`: tables with one text each, and a day with interjections.

All names and sentences are fictional.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.vocabulary import DCTERMS, FOAF, KG, PROV, PROV_GRAPH, RDF, SCHEMA, SKOS, XSD, mint, mint_span, sha256
from loaders.hansard.parties import CHAMBERS
from tests.tools.made_up import SHA256, DirectPool, MemoryStore, WordIndex

CHUNK, OVERLAP = 160, 40

PEOPLE = {
    "aph-AAA": ("Quill, Jane, MP", ("Ms QUILL", "Jane Quill")),
    "aph-BBB": ("Quill, Harold, MP", ("Mr QUILL",)),
    "aph-CCC": ("O'Tarn, Sean, Senator", ("Senator O'TARN",)),
    "name-mara-di-fane-0a1b2c3d": ("Mara Di Fane", ()),
    "name-otto-brandl-1a2b3c4d": ("Otto Brandl", ()),
}
PARTIES = {
    "greens": ("Australian Greens", ("Greens", "AG")),
    "labor": ("Australian Labor Party", ("ALP", "Labor")),
    "liberal": ("Liberal Party of Australia", ("LP", "Liberal")),
    "lnp": ("Liberal National Party of Queensland", ("LNP",)),
}
WORDS = ("tides", "harbour", "levy", "solar", "housing", "teachers", "hospital", "ferry", "drought", "budget")


@dataclass(frozen=True)
class Said:
    """One speech, as a test's brute force sees it. `utterances`: kind, name and text of each, in order."""

    speech_id: str
    person: str | None
    recorded: str
    party: str | None
    party_recorded: str | None
    chamber: str
    state: str | None
    date: str
    topics: tuple[str, ...]
    utterances: tuple[tuple[str, str | None, str], ...]
    title: str = "Fictional business"
    position: int | None = None
    debate: NamedNode | None = None
    graph: NamedNode | None = None
    electorate: str | None = None
    url: str | None = None

    @property
    def iri(self) -> NamedNode:
        return mint("speech", self.speech_id)

    @property
    def text(self) -> str:
        return "\n".join(text for _, _, text in self.utterances)

    @property
    def reference(self) -> str:
        return f"{'Senate' if self.chamber == 'au-senate' else 'House'} Hansard, {self.date}, p. 7"

    def spans(self) -> list[tuple[str, str | None, int, int]]:
        """Kind, name, start and end of each utterance, the line break between two with the first."""
        found, at = [], 0
        for kind, name, text in self.utterances:
            end = at + len(text) + 1
            found.append((kind, name, at, min(end, len(self.text))))
            at = end
        return found

    def chunks(self) -> list[tuple[int, int]]:
        found = []
        for _, _, low, high in self.spans():
            start = low
            while True:
                end = min(high, start + CHUNK)
                found.append((start, end))
                if end == high:
                    break
                start = end - OVERLAP
        return found


@dataclass
class Speeches:
    """A knowledge graph of speeches, and what a test knows of them."""

    kg: KnowledgeGraph
    said: Sequence[Said] = field(repr=False)

    def __getitem__(self, speech_id: str) -> Said:
        return next(said for said in self.said if said.speech_id == speech_id)


def quads_of(said: Said, row: int) -> Iterator[Quad]:
    """Yield the quads of one speech as a load leaves them."""
    graph = said.graph or mint("graph", "src", "hansard", "speech", said.speech_id)

    def quad(s: NamedNode, p: NamedNode, o: NamedNode | Literal, g: NamedNode = graph) -> Quad:
        return Quad(s, p, o, g)

    speech = said.iri
    yield quad(speech, RDF.type, KG.Speech)
    yield quad(speech, DCTERMS.identifier, Literal(said.speech_id))
    yield quad(speech, DCTERMS.title, Literal(said.title))
    yield quad(speech, DCTERMS.date, Literal(said.date, datatype=XSD.date))
    yield quad(speech, KG.chamber, mint("chamber", said.chamber))
    yield quad(speech, KG.speakerAsRecorded, Literal(said.recorded))
    yield quad(speech, KG.hansardReference, Literal(said.reference))
    yield quad(speech, KG.length, Literal(len(said.text)))
    yield quad(speech, KG.wordCount, Literal(len(said.text.split())))
    yield quad(speech, KG.textSha256, Literal(sha256(said.text)))
    yield quad(speech, KG.jurisdiction, mint("place", "AUS"))
    for tag in said.topics:
        yield quad(speech, DCTERMS.subject, Literal(tag))
    if said.person:
        person, shared = mint("person", said.person), mint("graph", "ref", "person", said.person)
        yield quad(speech, KG.speaker, person)
        yield quad(person, RDF.type, FOAF.Person, shared)
        name, others = PEOPLE[said.person]
        yield quad(person, FOAF.name, Literal(name), shared)
        for other in others:
            yield quad(person, SKOS.altLabel, Literal(other), shared)
    if said.party:
        yield quad(speech, KG.party, mint("party", said.party))
        name, others = PARTIES[said.party]
        shared = mint("graph", "ref", "party", said.party)
        yield quad(mint("party", said.party), SKOS.prefLabel, Literal(name, language="en"), shared)
        for other in others:
            yield quad(mint("party", said.party), SKOS.altLabel, Literal(other), shared)
    if said.party_recorded:
        yield quad(speech, KG.partyAsRecorded, Literal(said.party_recorded))
    shared = mint("graph", "ref", "chamber", said.chamber)
    yield quad(mint("chamber", said.chamber), SKOS.prefLabel, Literal(CHAMBERS[said.chamber], language="en"), shared)
    if said.state:
        yield quad(speech, KG.state, mint("place", f"AU-{said.state}"))
    if said.electorate:
        yield quad(speech, KG.electorateAsRecorded, Literal(said.electorate))
    if said.url:
        yield quad(speech, DCTERMS.source, NamedNode(said.url))
    if said.position is not None:
        yield quad(speech, SCHEMA.position, Literal(said.position))
    if said.debate is not None:
        yield quad(speech, DCTERMS.isPartOf, said.debate)
        yield quad(said.debate, RDF.type, KG.Debate)
        yield quad(said.debate, DCTERMS.title, Literal("Fictional Ferries Bill"))
    for number, (kind, name, start, end) in enumerate(said.spans()):
        utterance = NamedNode(f"{speech.value}#utterance={number}")
        yield quad(utterance, RDF.type, KG.Utterance)
        yield quad(utterance, DCTERMS.isPartOf, speech)
        yield quad(utterance, KG.utteranceType, mint("code", "utteranceType", kind))
        yield quad(utterance, KG.start, Literal(start))
        yield quad(utterance, KG.end, Literal(end))
        if name:
            yield quad(utterance, KG.speakerAsRecorded, Literal(name))
    for position, (start, end) in enumerate(said.chunks()):
        chunk = mint_span(speech, start, end)
        yield quad(chunk, RDF.type, KG.SpeechChunk)
        yield quad(chunk, DCTERMS.isPartOf, speech)
        yield quad(chunk, SCHEMA.position, Literal(position))
        yield quad(chunk, SCHEMA.text, Literal(said.text[start:end]))
        yield quad(chunk, KG.start, Literal(start))
        yield quad(chunk, KG.end, Literal(end))
        for number, (kind, _, low, high) in enumerate(said.spans()):
            if kind not in ("turn", "continuation") and low <= start and end <= high:
                yield quad(chunk, KG.otherVoice, NamedNode(f"{speech.value}#utterance={number}"))
    snapshot = mint("snapshot", f"sha256-{SHA256}")
    yield quad(graph, PROV.wasDerivedFrom, snapshot, PROV_GRAPH)
    yield quad(graph, KG.contentSha256, Literal(f"hash of {graph.value}"), PROV_GRAPH)
    yield quad(graph, KG.sourceRows, Literal(str(row)), PROV_GRAPH)
    yield quad(snapshot, KG.sha256, Literal(SHA256), PROV_GRAPH)
    yield quad(snapshot, KG.location, Literal("made-up.csv"), PROV_GRAPH)


def table(count: int = 60, seed: int = 3) -> list[Said]:
    """Return made-up speeches of tables; every fifth has no topic tag, every seventh no party that is known."""
    chance = random.Random(seed)
    who = [
        ("aph-AAA", "Ms QUILL", "greens", "Greens", "au-representatives", "VIC"),
        ("aph-BBB", "Mr QUILL", "labor", "ALP", "au-representatives", "NSW"),
        ("aph-CCC", "Senator O'TARN", "liberal", "LP", "au-senate", "QLD"),
        ("name-mara-di-fane-0a1b2c3d", "Mara Di Fane", "lnp", "LNP", "au-senate", "QLD"),
        ("name-otto-brandl-1a2b3c4d", "Otto Brandl", None, "Tidal Reform", "au-senate", None),
        (None, "The PRESIDENT", None, None, "au-senate", None),
    ]
    speeches = []
    for number in range(count):
        person, recorded, party, form, chamber, state = chance.choice(who)
        words = chance.choices(WORDS, k=chance.randint(20, 160))
        speeches.append(
            Said(
                f"fictional-{number:04d}", person, recorded, party, form, chamber, state,
                f"202{chance.choice('34')}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
                () if number % 5 == 0 else tuple(chance.sample(("water", "renewable_energy", "schools"), 2)),
                (("turn", recorded, " ".join(words)),),
                title=f"Business {number % 9}",
                electorate="Fictional Bay" if chamber == "au-representatives" else None,
                url=f"https://example.org/{number}" if number % 2 else None,
            )
        )  # fmt: skip
    return speeches


def day() -> list[Said]:
    """Return the speeches of one debate, one of them with interjections in it."""
    debate = mint("debate", "au-senate", "2024-05-06", "1")
    graph = mint("graph", "src", "hansard", "senate", "2024-05-06")
    common: dict[str, Any] = {"debate": debate, "graph": graph, "title": "Fictional Ferries Bill"}
    long = " ".join(
        f"The {WORDS[n % 10]} of bay number {n} has waited for its {'walrus ' * (n == 15)}ferry since last winter."
        for n in range(30)
    )
    return [
        Said(
            "2024-05-06-senate-1", "aph-CCC", "Senator O'TARN", "liberal", "LP", "au-senate", "QLD", "2024-05-06", (),
            (("turn", "Senator O'TARN", "I move that the bill on ferries be read a second time."),),
            position=1, **common,
        ),
        Said(
            "2024-05-06-senate-2", "name-mara-di-fane-0a1b2c3d", "Senator DI FANE", "lnp", "LNP", "au-senate", "QLD",
            "2024-05-06", (),
            (
                ("turn", "Senator DI FANE", long),
                ("interjection", "Senator O'TARN", "Zebras do not swim across any harbour, Senator."),
                ("continuation", "Senator DI FANE", "I take that remark about animals as a compliment."),
            ),
            position=2, **common,
        ),
        Said(
            "2024-05-06-senate-3", None, "The PRESIDENT", None, None, "au-senate", None, "2024-05-06", (),
            (("turn", "The PRESIDENT", "Order! The time for this debate has expired."),),
            position=3, **common,
        ),
    ]  # fmt: skip


def open_speeches(said: Sequence[Said], more: Sequence[Quad] = ()) -> Speeches:
    """Return a knowledge graph over stand-ins that holds `said`."""
    store, index = MemoryStore(), WordIndex()
    store.inner.extend(more)
    for row, each in enumerate(said, start=1):
        store.inner.extend(quads_of(each, row))
        for start, end in each.chunks():
            index.units[mint_span(each.iri, start, end).value] = each.iri.value, each.text[start:end]
    parts: dict[str, Any] = {"store": store, "search": index, "pool": DirectPool(store)}
    kg = KnowledgeGraph(Settings(data_dir=Path("unused"), _env_file=None), **parts)  # type: ignore[call-arg]
    return Speeches(kg, said)
