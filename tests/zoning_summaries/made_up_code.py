"""A made-up municipal code behind a real store: sections are written straight into it. All of it is fictional."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, RecordOrigin, RowsOf, Run, SourceFile
from kg.queries.pool import Answer
from kg.search.protocol import Candidate, IndexStatus, Ranking
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import State
from kg.vocabulary import BASE, DCTERMS, KG, RDF, SCHEMA, mint, sha256

TOWN = f"{BASE}id/municipality/us-ut-otter-hollow"
KEY = "us-ut-otter-hollow"


@dataclass
class Law:
    """One section: its place, and what it says."""

    number: str
    title: str
    text: str | None = None
    parent: str | None = None
    position: int = 0


def iri(number: str) -> str:
    return f"{BASE}id/section/{KEY}/{number}"


def quads(law: Law) -> Iterator[Quad]:
    graph, node = mint("graph", "src", "zoning", KEY, law.number), NamedNode(iri(law.number))
    yield Quad(node, RDF.type, KG.CodeSection, graph)
    yield Quad(node, KG.sectionNumber, Literal(law.number), graph)
    yield Quad(node, DCTERMS.title, Literal(law.title), graph)
    yield Quad(node, KG.level, Literal(law.number.count(".") + 1), graph)
    yield Quad(node, KG.jurisdiction, NamedNode(TOWN), graph)
    yield Quad(node, SCHEMA.position, Literal(law.position), graph)
    if law.parent is not None:
        yield Quad(node, DCTERMS.isPartOf, NamedNode(iri(law.parent)), graph)
    if law.text is not None:
        yield Quad(node, SCHEMA.text, Literal(law.text), graph)
        yield Quad(node, KG.textSha256, Literal(sha256(law.text)), graph)


def enact(store: OxigraphStore, laws: Sequence[Law]) -> None:
    """Write sections with their provenance, as a load does; one without title or text is repealed: its graph goes."""
    run = Run(Agent("loaders.zoning", "1"))
    file = SourceFile(sha256(repr(laws)), "otter-hollow.html")
    replace: dict[NamedNode, list[Quad]] = {}
    origins = {}
    for law in laws:
        graph = mint("graph", "src", "zoning", KEY, law.number)
        gone = not law.title and law.text is None
        replace[graph] = [] if gone else list(quads(law))
        origins[graph] = RecordOrigin(sha256(repr(law)), [RowsOf(file)])
    store.commit(replace, run.describe(store, origins))


SENTENCES = (
    "The {thing} of a {place} lot shall be at least {n} feet from the street.",
    "No person may build a {thing} on a {place} lot without a permit from the planner.",
    "The council may waive the rule on any {thing} where the {place} lot is steep.",
    "A {thing} that was lawful before this chapter may stay on a {place} lot.",
    "Every {thing} shall be kept clean, safe and free of weeds at all times.",
)
THINGS = ("fence", "sign", "garage", "driveway", "barn", "kennel", "windmill", "greenhouse", "dock", "well")
PLACES = ("corner", "hillside", "river", "orchard", "meadow")


def small_code() -> list[Law]:
    """Return a title of two chapters, of two sections, and of a division of two sections and a repealed one."""
    return [
        Law("7", "Land use", position=0),
        Law("7.1", "Fences", parent="7", position=0),
        Law("7.1.1", "Height", "A fence may be six feet high. In a front yard it may be four feet high. "
            "Fences of barbed wire are forbidden. The planner may allow a higher fence around a kennel.", "7.1", 0),
        Law("7.1.2", "Materials", "A fence shall be of wood or stone. No fence may be of plastic. "
            "Paint on a fence shall be brown. Gates shall open inwards.", "7.1", 1),
        Law("7.2", "Animals", parent="7", position=1),
        Law("7.2.1", "Bees and birds", parent="7.2", position=0),
        Law("7.2.1.1", "Bees", "Two hives of bees may stand on a lot. Hives shall face away from the street. "
            "A hive shall have water nearby. Swarms shall be caught by the keeper.", "7.2.1", 0),
        Law("7.2.1.2", "Hens", "Six hens may be kept on a lot. Roosters are forbidden.", "7.2.1", 1),
        Law("7.2.2", "Repealed", parent="7.2", position=1),
    ]  # fmt: skip


def large_code(titles: int = 4, chapters: int = 10, sections: int = 50, seed: int = 5) -> list[Law]:
    """Return a code of many sections, each about one thing in one kind of place."""
    chance = random.Random(seed)
    laws = []
    for title in range(1, titles + 1):
        laws.append(Law(f"{title}", f"Title {title}", position=title))
        for chapter in range(1, chapters + 1):
            thing = THINGS[chapter % len(THINGS)]
            laws.append(Law(f"{title}.{chapter}", f"{thing.title()}s", parent=f"{title}", position=chapter))
            for section in range(1, sections + 1):
                place = PLACES[section % len(PLACES)]
                text = " ".join(
                    sentence.format(thing=thing, place=place, n=chance.randint(3, 90))
                    for sentence in chance.sample(SENTENCES, 3)
                )
                number = f"{title}.{chapter}.{section}"
                laws.append(Law(number, f"{thing.title()} on a {place} lot", text, f"{title}.{chapter}", section))
    return laws


@dataclass
class Index:
    """Embeds by hashed words; ranks by shared words. `embedded` are the texts that it was asked to embed."""

    model: str | None = "hashed"
    embedded: list[str] = field(default_factory=list)
    units: Mapping[str, str] = field(default_factory=dict)

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        if self.model is None:
            return None
        self.embedded += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = np.full(64, 0.01)
        for word in text.casefold().split():
            vector[int(sha256(word.strip(".,"))[:8], 16) % 64] += 1
        return list(vector / np.linalg.norm(vector))

    def rank(self, query: str, *, units: Sequence[str], limit: int, mode: str = "hybrid") -> Ranking:
        known = [unit for unit in units if unit in self.units]
        if mode == "dense":
            asked = np.array(self._vector(query))
            cosines = [float(asked @ np.array(self._vector(self.units[unit]))) for unit in known] if self.model else []
            return Ranking([Candidate(*each) for each in zip(known, cosines, cosines, cosines, strict=False)], True)
        words = set(query.casefold().split())
        scored = [(len(words & set(self.units[unit].casefold().replace(".", "").split())), unit) for unit in known]
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        return Ranking([Candidate(unit, score, score, None) for score, unit in scored[:limit]], True)

    def status(self) -> IndexStatus:
        return IndexStatus(0, 0, 0, self.model or "absent")


class Pool:
    """Runs a query at once, where the real pool would hand it to a worker."""

    def __init__(self, store: OxigraphStore) -> None:
        self.store = store

    def lease(self, exactly: int | None = None) -> State:
        return self.store.pin() if exactly is None else self.store.snapshot(exactly=exactly)

    def run(self, query: str, **_: Any) -> Answer:
        return Answer(self.store.query(query), self.store.statistics().generation, False)


def open_town(folder: Path, laws: Sequence[Law] = (), **settings: Any) -> KnowledgeGraph:
    """Open a graph that holds `laws`, over a real store. Its `store` is to be closed."""
    store = OxigraphStore(folder)
    if laws:
        enact(store, laws)
    index = Index(units={iri(law.number): law.text for law in laws if law.text is not None})
    parts: dict[str, Any] = {"store": store, "search": index, "pool": Pool(store)}
    return KnowledgeGraph(Settings(data_dir=folder, _env_file=None, **settings), **parts)
