"""A small graph of made-up policies behind the real protocols: an in-memory store, a pool, and an index by word counts.

All names and sentences are fictional.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, RdfFormat, Store

from kg.knowledge_graph import KnowledgeGraph
from kg.processes.leases import Leases
from kg.queries.pool import Answer, Cancellation
from kg.search.protocol import Candidate, Codes, Conditions, Counts, GraphUnits, IndexStatus, Mode, Ranking
from kg.settings import Settings
from kg.store.protocol import Commit, GraphChange, Patch, Rows, Snapshot, State, Statistics
from kg.vocabulary import (
    DCTERMS,
    ELI,
    FOAF,
    KG,
    OA,
    PREFIXES,
    PROV,
    PROV_GRAPH,
    RDF,
    RDFS,
    SCHEMA,
    SKOS,
    mint,
    mint_mention,
)
from kg.vocabulary import WIKIBASE as WB

SHA256 = "ab" * 32
WORDS = ("geothermal", "solar", "tariff", "licence", "forest", "carbon", "levy", "grid", "harbour", "rainwater")


@dataclass(frozen=True)
class Made:
    """One passage of the made-up graph, as a test's brute force sees it."""

    iri: str
    document: str
    slug: str
    title: str
    family: str
    places: tuple[str, ...]
    corpus: str
    languages: tuple[str, ...]
    language: str | None
    position: int
    text: str
    date: str | None


class Passages(Sequence[Made]):
    """All passages of the made-up graph, in the order of their rows; shown in one line."""

    def __init__(self, passages: Iterable[Made]) -> None:
        self._passages = list(passages)

    def __getitem__(self, position: Any) -> Any:
        return self._passages[position]

    def __len__(self) -> int:
        return len(self._passages)


class MemoryStore:
    """The part of the store protocol that reading needs."""

    def __init__(self) -> None:
        self.inner = Store()
        self.generation = 1
        self.problem = None
        self.damaged_logs = []

    def query(self, query: str, *, limit: int | None = None) -> Rows:
        solutions = self.inner.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
        assert isinstance(solutions, QuerySolutions)
        names = tuple(variable.value for variable in solutions.variables)
        rows = [tuple(solution[name] for name in names) for solution in solutions]
        return Rows(names, rows if limit is None else rows[:limit])

    def query_sources(self, query: str, *, limit: int | None = None) -> Rows:
        return self.query(query, limit=limit)

    def find_last_change(self, reads: Set[str] | None, *, users: bool = False) -> int:
        return self.generation

    def find_last_change_of(self, subject: str) -> int:
        return self.generation

    def find_invalidated_graphs(self) -> list[NamedNode]:
        return []

    def statistics(self) -> Statistics:
        return Statistics(self.generation, len(self.inner), len(list(self.inner.named_graphs())), 0)

    def commit(
        self,
        replace: Mapping[NamedNode, Iterable[Quad]],
        describe: Callable[[Sequence[GraphChange]], Patch] | None = None,
    ) -> Commit:
        raise NotImplementedError

    def update(self, update: str) -> Commit:
        self.inner.update(update, prefixes=PREFIXES)
        self.generation += 1
        return Commit(self.generation)

    def graph(self, graph: NamedNode) -> list[Quad]:
        return list(self.inner.quads_for_pattern(None, None, None, graph))

    def graphs(self) -> list[NamedNode]:
        return [graph for graph in self.inner.named_graphs() if isinstance(graph, NamedNode)]

    def dump(self, output: IO[bytes], media_type: RdfFormat, graph: NamedNode | None = None) -> None:
        raise NotImplementedError

    def snapshot(self, at_least: int = 0, *, exactly: int | None = None) -> Snapshot:
        return Snapshot(self.generation, Path())

    def pin(self, exactly: int | None = None) -> State:
        return State(self.generation)

    def close(self) -> None:
        pass


class DirectPool:
    """Runs a query where the real pool would hand it to a worker. `hold` lets a test keep queries waiting."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.closed = False
        self.hold = threading.Event()
        self.hold.set()

    def lease(self, at_least: int = 0, exactly: int | None = None) -> Snapshot:
        return self.store.snapshot(at_least, exactly=exactly)

    def close_snapshots_before(self, generation: int) -> None:
        """Do nothing: it keeps no snapshots."""

    def run(
        self,
        query: str,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        at_least: int = 0,
        exactly: int | None = None,
        cancellation: Cancellation | None = None,
        client: str = "",
    ) -> Answer:
        assert self.hold.wait(60)
        if self.failure is not None:
            raise self.failure
        self.asked.append(query)
        return Answer(self.store.query(query, limit=limit), self.store.statistics().generation, False)

    def close(self) -> None:
        pass


@dataclass
class WordIndex:
    """Scores by shared words; `deep` is how it behaves when it proposes: the best `limit`, and no more."""

    units: dict[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    ranked: list[tuple[int | None, int | None, int]] = field(default_factory=list, repr=False)
    hashes: dict[str, str] = field(default_factory=dict, repr=False)
    embedder_error: str | None = None
    calls: Leases[Any] = field(default_factory=Leases, repr=False)

    def score(self, query: str, iri: str) -> float:
        words = Counter(self.units[iri][1].casefold().split())
        return float(sum(min(words[word], 3) for word in set(query.casefold().split())))

    def rank(
        self,
        query: str,
        *,
        units: Sequence[str] | None = None,
        parents: Sequence[str] | None = None,
        limit: int,
        mode: Mode = "hybrid",
        must: Sequence[str] = (),
        codes: Conditions = (),
        counted: int = 0,
    ) -> Ranking:
        self.ranked.append((None if units is None else len(units), None if parents is None else len(parents), limit))
        if units is not None:
            pool = [iri for iri in units if iri in self.units]
        else:
            allowed = None if parents is None else set(parents)
            pool = [iri for iri, (parent, _) in self.units.items() if allowed is None or parent in allowed]
        pool = [iri for iri in pool if all(self.score(word, iri) for word in must)]
        scored = sorted(((self.score(query, iri), iri) for iri in pool), key=lambda pair: (-pair[0], pair[1]))
        # The set's own best score is what scores are measured by, as in the real fusion.
        best = max((score for score, _ in scored), default=0.0) or 1.0
        candidates = [Candidate(iri, score / best, score, 0.0) for score, iri in scored[:limit]]
        first = self.load_codes([iri for _, iri in scored[:counted]])
        exhaustive = units is not None or len(scored) <= limit
        return Ranking(candidates, exhaustive, counted=first, near=len(first))

    def count(self, fields: Sequence[str], codes: Conditions = ()) -> Counts:
        return Counts(
            len(self.units), len({parent for parent, _ in self.units.values()}), {name: {} for name in fields}
        )

    def load_codes(self, units: Sequence[str]) -> dict[str, Codes]:
        return {iri: {"parent": [self.units[iri][0]]} for iri in units if iri in self.units}

    def note_missing(self, graphs: int) -> None:
        pass

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        for graph, of in graphs.items():
            self.hashes[graph] = of.content_sha256
            self.units.update({unit.iri: (unit.parent, unit.text) for unit in of.units})

    def remove(self, graphs: Iterable[str]) -> None:
        for graph in graphs:
            self.hashes.pop(graph, None)

    def state(self) -> dict[str, str]:
        return dict(self.hashes)

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        return None

    def count_units(self) -> int:
        return len(self.units)

    def status(self) -> IndexStatus:
        return IndexStatus(len(self.units), 3, 1, "words", self.embedder_error)

    def wait(self, progress: Callable[[IndexStatus], None] | None = None) -> None:
        pass

    def close(self) -> None:
        pass


def quads_of(made: Sequence[Made], row: int = 0) -> Iterator[Quad]:
    """Yield the quads of one document and its provenance; the passages stand in the source rows `row` + 1 onwards."""
    first = made[0]
    version = first.document.partition("#")[2].removeprefix("lang=")
    graph = mint("graph", "src", "climate", first.slug, *([version] if version else []))
    document = NamedNode(first.document)
    family = mint("family", first.family)

    def quad(s: NamedNode, p: NamedNode, o: NamedNode | Literal, g: NamedNode = graph) -> Quad:
        return Quad(s, p, o, g)

    yield quad(document, RDF.type, KG.PolicyDocument)
    yield quad(document, DCTERMS.title, Literal(first.title))
    yield quad(document, KG.slug, Literal(first.slug))
    yield quad(document, DCTERMS.identifier, Literal(f"MADE.{first.slug}"))
    yield quad(document, ELI.is_member_of, family)
    yield quad(document, KG.corpusType, mint("code", "corpusType", first.corpus))
    yield quad(document, FOAF.page, NamedNode(f"https://app.climatepolicyradar.org/documents/{document.value[10:]}"))
    if first.date:
        yield quad(document, ELI.date_document, Literal(first.date))
    for language in first.languages:
        yield quad(document, SCHEMA.inLanguage, Literal(language))
    for place in first.places:
        node = mint("place", place)
        yield quad(document, KG.jurisdiction, node)
        yield quad(node, RDF.type, KG.Place, mint("graph", "ref", "place", place))
        yield quad(node, SKOS.notation, Literal(place), mint("graph", "ref", "place", place))
    family_graph = mint("graph", "ref", "family", first.family)
    yield quad(family, RDF.type, KG.PolicyFamily, family_graph)
    yield quad(family, DCTERMS.title, Literal(f"Family {first.family}"), family_graph)
    for passage in made:
        node = NamedNode(passage.iri)
        yield quad(node, RDF.type, KG.Passage)
        yield quad(node, DCTERMS.isPartOf, document)
        yield quad(node, SCHEMA.position, Literal(passage.position))
        yield quad(node, SCHEMA.text, Literal(passage.text))
        yield quad(node, KG.blockType, mint("code", "blockType", "Text"))
        if passage.position % 2:
            yield quad(node, KG.pageNumber, Literal(passage.position // 2 + 1))
        if passage.language:
            yield quad(node, SCHEMA.inLanguage, Literal(passage.language))
    snapshot = mint("snapshot", f"sha256-{SHA256}")
    yield quad(graph, PROV.wasDerivedFrom, snapshot, PROV_GRAPH)
    yield quad(graph, KG.contentSha256, Literal(f"hash of {first.document}"), PROV_GRAPH)
    yield quad(graph, KG.sourceRows, Literal(f"{row + 1}-{row + len(made)}"), PROV_GRAPH)
    yield quad(snapshot, KG.sha256, Literal(SHA256), PROV_GRAPH)
    yield quad(snapshot, KG.location, Literal("made-up.parquet"), PROV_GRAPH)


def make_passages(documents: int = 24, seed: int = 7) -> list[list[Made]]:
    """Return made-up documents, each a list of passages; every third position is left out."""
    chance = random.Random(seed)
    corpus = []
    for number in range(documents):
        slug = f"act-{number}_a1"
        common = {
            "document": mint("document", slug).value,
            "slug": slug,
            "title": f"Act {number % 7}",
            "family": f"family-{number % 5}",
            "places": tuple(chance.sample(("DJI", "BRA", "ZAF", "XAA"), chance.choice((1, 1, 2)))),
            "corpus": chance.choice(("Laws and Policies", "Litigation", "Reports")),
            "languages": tuple(chance.sample(("en", "en-GB", "fr", "pt"), chance.choice((0, 1, 1, 2)))),
            "date": chance.choice((None, "2019-03-01", "2021-07-15")),
        }
        corpus.append(
            [
                Made(
                    iri=mint("passage", slug, str(position)).value,
                    language=chance.choice((None, None, "en", "fr")),
                    position=position,
                    text=" ".join(chance.choices(WORDS, k=6)),
                    **common,  # type: ignore[arg-type]
                )
                for position in range(chance.randint(4, 30))
                if position % 3 != 2
            ]
        )
    return corpus


WIKIBASE = "https://climatepolicyradar.wikibase.cloud/"
TOPICS = {
    "Q1001": ("climate", "Q1012"),  # below its own grandchild: a circle
    "Q1009": ("renewable", "Q1001"),
    "Q1010": ("solar", "Q1009"),
    "Q1012": ("geothermal", "Q1009"),
    "Q1030": ("forest", "Q1001"),
}
"""Concepts: the word that names one, and the concept above it."""


def concept_quads(corpus: Sequence[Sequence[Made]]) -> Iterator[Quad]:
    """Yield the concepts of `TOPICS`, as a load of their Wikibase leaves them, with their mentions in `corpus`."""
    broader = NamedNode(f"{WIKIBASE}prop/direct/P2")
    named = NamedNode(f"{WIKIBASE}entity/P2")
    graph = mint("graph", "src", "wikibase", "climate", "P2")
    yield Quad(named, RDF.type, WB.Property, graph)
    yield Quad(named, WB.directClaim, broader, graph)
    yield Quad(named, RDFS.label, Literal("subconcept of", language="en"), graph)
    for qid, (word, above) in TOPICS.items():
        concept, entity = mint("concept", qid), NamedNode(f"{WIKIBASE}entity/{qid}")
        graph, view = mint("graph", "src", "wikibase", "climate", qid), mint("graph", "der", "skos", "climate", qid)
        yield Quad(entity, RDF.type, WB.Item, graph)
        yield Quad(entity, broader, NamedNode(f"{WIKIBASE}entity/{above}"), graph)
        yield Quad(concept, RDF.type, SKOS.Concept, view)
        yield Quad(concept, SKOS.prefLabel, Literal(f"{word} topic", language="en"), view)
        yield Quad(concept, SKOS.altLabel, Literal(word, language="en"), view)
        yield Quad(concept, SKOS.broader, mint("concept", above), view)
        yield Quad(concept, KG.wikibaseEntity, entity, view)
        for passage in (passage for made in corpus for passage in made):
            unit = NamedNode(passage.iri)
            found = mint("graph", "ext", "mentions", "climate", passage.slug)
            places = [match.span() for match in re.finditer(rf"\b{word}\b", passage.text)]
            if places:
                yield Quad(unit, KG.mentions, concept, found)
            for start, end in places:
                mention = mint_mention(unit, start, end, concept)
                yield Quad(mention, OA.hasSource, unit, found)
                yield Quad(mention, KG.object, concept, found)
                yield Quad(mention, KG.start, Literal(start), found)
                yield Quad(mention, KG.end, Literal(end), found)
                yield Quad(mention, KG.matchType, Literal("alias"), found)


def open_graph(corpus: Sequence[Sequence[Made]], *, concepts: bool = False) -> KnowledgeGraph:
    """Return a knowledge graph over stand-ins that holds `corpus`, and with `concepts` those of `TOPICS`."""
    store, index = MemoryStore(), WordIndex()
    if concepts:
        store.inner.extend(concept_quads(corpus))
    row = 0
    for made in corpus:
        store.inner.extend(quads_of(made, row))
        row += len(made)
        index.units.update({passage.iri: (passage.document, passage.text) for passage in made})
    parts: dict[str, Any] = {"store": store, "search": index, "pool": DirectPool(store)}
    return KnowledgeGraph(Settings(data_dir=Path("unused"), _env_file=None), **parts)  # type: ignore[call-arg]
