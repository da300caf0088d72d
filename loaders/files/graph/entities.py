"""The entities of files as graphs: mentions, relations and definitions of each file, and the entities they share.

``graph/ext/entities/files/{collection}/{path}`` has the mentions in the text of one file, and its claims. The commit
that changes or removes the text removes it (`drop_entities`), or invalidates a large one, which goes in the next commit
(`remove_invalidated`). It is written again once the new text is searchable (`refresh`).
``graph/ref/entity/{type}/{norm}`` describes an entity by its type and its names: those in its mentions. So all graphs
follow from the texts alone, in any order in which the files are loaded.
"""

from __future__ import annotations

import json
import logging
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.files import write_file
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import promotion
from kg.provenance.load_records import Agent, Derived, RecordOrigin, Run
from kg.search.index_sync import Progress
from kg.sparql.terms import bind
from kg.store.protocol import Rows, Store, named_node, select, term_text
from kg.vocabulary import (
    DCTERMS,
    ENTITIES,
    KG,
    OA,
    PROV_GRAPH,
    RDF,
    SKOS,
    SOURCED,
    XSD,
    iri_prefix,
    mint,
    mint_claim,
    mint_mention,
    sha256,
)
from loaders.citations.graph.claims import Evidence, evidence_quads, method_quads
from loaders.files.extraction.entities import MOST_READ, Steps, extract_in_steps, run_steps
from loaders.files.extraction.entity_model import (
    Extraction,
    FoundRelation,
    Key,
    Mention,
    Relation,
    choose_label,
    to_name,
)
from loaders.files.extraction.language_pipeline import find_version, load_pipeline
from loaders.files.graph.entity_links import refresh_links
from loaders.files.graph.gazetteers import find_affected, get_collection, load_gazetteers
from loaders.files.loader import GRAPHS
from loaders.mentions.graph_words import Vocabularies

log = logging.getLogger(__name__)

VERSION: Final = "7"
"""A new version reads all files again."""


CITES: Final = NamedNode("http://purl.org/spar/cito/cites")
PREDICATES: Final[Mapping[Relation, NamedNode]] = {
    "defines": KG.defines,
    "refers_to": DCTERMS.references,
    "part_of": KG.partOf,
    "uses": KG.uses,
    "depends_on": KG.dependsOn,
    "precedes": KG.precedes,
    "owned_by": KG.ownedBy,
    "located_in": KG.within,
    "cites": CITES,
    "related_to": KG.relatesTo,
}
"""The property of each relation."""

_EXTRACTED: Final = f"{ENTITIES}files/"
_ENTITY: Final = iri_prefix("entity")
_CONFIDENCE: Final = "0.85"
_DECIMAL: Final = XSD.decimal
_MOST_SOURCES: Final = 5
"""Most graphs that provenance names for an entity: those that gave it its names last. Its mentions name all."""
_BATCH_QUADS: Final = 20_000
_AT_ONCE: Final = 200
_LARGE: Final = 2_000
"""Quads from which the removal of a graph takes so long that it is a commit of its own."""
_MOST_INVALIDATED: Final = 16
"""Maximum number of invalidated graphs, since queries leave each out by its name."""
LONG: Final = 50_000
"""Characters from which a file is a long one: its text takes seconds to read."""

TEXTS: Final = """
SELECT ?graph ?unit ?start ?end ?text WHERE {
  VALUES ?graph { $graphs } GRAPH ?graph { ?unit a kg:Chunk ; kg:start ?start ; kg:end ?end ; schema:text ?text }
}"""

DISPUTED: Final = """
SELECT ?unit WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?unit kg:disputedOrder true } }"""

FILES: Final = """
SELECT ?graph ?type ?title WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?file a kg:File ; schema:encodingFormat ?type OPTIONAL { ?file dcterms:title ?title } }
}"""

HASHES: Final = """
SELECT ?graph ?hash WHERE { GRAPH $prov { ?graph kg:contentSha256 ?hash } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

DONE: Final = """
SELECT ?graph ?hash WHERE { GRAPH $prov { ?graph kg:sourceSha256 ?hash } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

LENGTHS: Final = """
SELECT ?graph ?length WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?file kg:length ?length } }"""

ENTITIES_OF: Final = "SELECT ?mention WHERE { GRAPH $graph { ?mention kg:object ?entity } }"

EXISTS: Final = "ASK { GRAPH $graph { ?node kg:object ?entity } }"

MENTIONED_IN: Final = """
SELECT DISTINCT ?entity WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?mention kg:object ?entity } }"""

ANY: Final = "ASK { ?entity a kg:Entity }"

NAMES: Final = """
SELECT ?entity ?name WHERE { VALUES ?entity { $entities } ?entity skos:prefLabel|skos:altLabel ?name }"""

MENTIONED: Final = """
SELECT DISTINCT ?entity ?raw ?graph WHERE {
  VALUES ?entity { $entities }
  GRAPH ?graph { ?mention kg:object ?entity ; oa:hasSource ?unit ; kg:start ?start ; kg:end ?end ; kg:matchType ?type }
  FILTER(?type != "coreference")
  MINUS { VALUES ?graph { $dropped } }
  GRAPH ?source { ?unit schema:text ?text }
  BIND(SUBSTR(?text, ?start + 1, ?end - ?start) AS ?raw)
}"""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a file, with its offsets in the text of that."""

    iri: NamedNode
    start: int
    end: int
    text: str
    disputed: bool = False
    """Whether the order of its words is not sure."""


@dataclass(slots=True)
class Interrupted:
    """The extraction of a long text that was paused, so that changed files need not wait for it."""

    begun: tuple[NamedNode, str, Sequence[str], Steps] | None = None
    """The graph of the file, the hash to record, its gazetteer and its further steps."""

    def take(self, graph: NamedNode, wanted: str, gazetteer: Sequence[str]) -> Steps | None:
        """Take it if it is that of a file with the same text and gazetteer."""
        if self.begun is None or self.begun[:3] != (graph, wanted, gazetteer):
            return None
        steps = self.begun[3]
        self.begun = None
        return steps


INTERRUPTED: Final = Interrupted()
"""The one of this process."""


@dataclass(slots=True)
class EntityReport:
    """The outcome of an extraction. Counts are of the files that were read."""

    run: str | None = None
    files: int = 0
    mentions: int = 0
    entities_new: int = 0
    relations: int = 0
    seconds: float = 0.0
    is_done: bool = True
    """Whether all wanted files were read."""

    def to_dict(self) -> dict[str, Any]:
        """Build the object that tools return."""
        return {
            "run": self.run,
            "files": self.files,
            "mentions": self.mentions,
            "entities_new": self.entities_new,
            "relations": self.relations,
            "seconds": round(self.seconds, 3),
        }


def get_entity_graph(source: NamedNode) -> NamedNode:
    """Return the name of the graph of the entities that the file with the graph `source` mentions."""
    return NamedNode(ENTITIES + source.value.removeprefix(SOURCED))


def mint_entity(key: Key) -> NamedNode:
    """Return the node of an entity."""
    return mint("entity", *key)


def parse_entity(iri: str) -> tuple[str, str]:
    """Return the type and the normalized name of an entity."""
    type_, _, norm = iri.removeprefix(_ENTITY).partition("/")
    return unquote(type_), unquote(norm)


def build_entity(type_: str, norm: str, names: Collection[str]) -> tuple[NamedNode, list[Quad]]:
    """Build the shared graph of an entity with these names."""
    graph, entity = mint("graph", "ref", "entity", type_, norm), mint("entity", type_, norm)
    label = choose_label(sorted(names), norm)
    said: list[tuple[NamedNode, NamedNode | Literal]] = [
        (RDF.type, KG.Entity),
        (KG.entityType, mint("code", "entityType", type_)),
        (KG.norm, Literal(norm)),
        (SKOS.prefLabel, Literal(label)),
        *((SKOS.altLabel, Literal(name)) for name in sorted(names) if name != label),
    ]
    return graph, [Quad(entity, predicate, value, graph) for predicate, value in said]


def build_quads(graph: NamedNode, chunks: Sequence[Chunk], found: Extraction) -> tuple[list[Quad], dict[Key, set[str]]]:
    """Build the graph of the mentions and claims of a file, and the names of its entities."""
    quads: list[Quad] = []
    names: dict[Key, set[str]] = defaultdict(set)
    starts = [mention.start for mention in found.mentions]
    for chunk in chunks:
        first = bisect_left(starts, chunk.start)
        last = bisect_left(starts, chunk.end, first)
        within = [each for each in found.mentions[first:last] if each.end <= chunk.end]
        mentioned: dict[Key, None] = {}
        for mention in within:
            quads += _build_mention(graph, chunk, mention)
            mentioned[mention.key] = None
            if mention.method != "coreference":
                names[mention.key].add(mention.name)
            else:
                names.setdefault(mention.key, set())
        quads += (Quad(chunk.iri, KG.mentions, mint_entity(key), graph) for key in mentioned)
    known: set[NamedNode] = set()
    for relation in found.relations:
        ends = [key for key in (relation.subject, relation.object) if key is not None]
        if all(names.get(key) for key in ends):
            quads += _build_relation(graph, chunks, relation, known)
    return list(dict.fromkeys(quads)), {key: own for key, own in names.items() if own}


def _build_mention(graph: NamedNode, chunk: Chunk, mention: Mention) -> Iterator[Quad]:
    entity = mint_entity(mention.key)
    start, end = mention.start - chunk.start, mention.end - chunk.start
    node = mint_mention(chunk.iri, start, end, entity)
    yield Quad(node, OA.hasSource, chunk.iri, graph)
    yield Quad(node, KG.object, entity, graph)
    yield Quad(node, KG.start, Literal(start), graph)
    yield Quad(node, KG.end, Literal(end), graph)
    yield Quad(node, KG.matchType, Literal(mention.method), graph)


def _build_relation(
    graph: NamedNode, chunks: Sequence[Chunk], relation: FoundRelation, known: set[NamedNode]
) -> list[Quad]:
    """Build the claim of a relation. Its evidence is the sentence, in the first chunk that has all of it."""
    chunk = max(chunks, key=lambda each: min(each.end, relation.end) - max(each.start, relation.start))
    start, end = max(relation.start, chunk.start) - chunk.start, min(relation.end, chunk.end) - chunk.start
    words = chunk.text[start:end]
    start += len(words) - len(words.lstrip())
    words = words.strip()
    if not words or chunk.disputed:  # a sentence that was put together wrongly states nothing
        return []
    subject = chunk.iri if relation.subject is None else mint_entity(relation.subject)
    predicate, value = PREDICATES[relation.relation], mint_entity(relation.object)
    node = mint_claim(subject, predicate, value, graph)
    evidence = Evidence(chunk.iri, start, start + len(words), words, relation.confidence, relation.method)
    quads: list[Quad] = []
    if node not in known:
        known.add(node)
        said = [(RDF.type, KG.Statement), (RDF.type, KG.EntityRelation), (RDF.subject, subject)]
        said += [(RDF.predicate, predicate), (RDF.object, value)]
        quads += [Quad(node, name, each, graph) for name, each in said]
        quads += method_quads(node, evidence, graph)
    return quads + evidence_quads(node, evidence, graph, known)


def find_invalidated(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> list[NamedNode]:
    """Find the graphs of entities of the files in a commit that `drop_entities` has left out of it: the large ones."""
    return [graph for graph in _find_existing(store, replace) if graph not in replace]


def _find_existing(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> list[NamedNode]:
    # By queries, since the graph of a long file has a hundred thousand quads.
    graphs = [get_entity_graph(source) for source in replace if source.value.startswith(GRAPHS)]
    return [graph for graph in graphs if store.query(bind(EXISTS, graph=graph))]


def _is_large(store: Store, graph: NamedNode) -> bool:
    mentions = _LARGE // 5  # each has five quads
    found = store.query(bind(ENTITIES_OF, graph=graph), limit=mentions)
    return isinstance(found, Rows) and found.truncated


def drop_entities(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
    """Remove the mentions and claims of the files that a commit replaces or removes, except the first large ones.

    The entities keep the names that the mentions in other files have. Those that no file mentions go with the commit.
    """
    exist = _find_existing(store, replace)
    large = [graph for graph in exist if _is_large(store, graph)]
    later = set(large[: max(0, _MOST_INVALIDATED - len(store.find_invalidated_graphs()))]) if large else set()
    return _drop(store, [graph for graph in exist if graph not in later])


def remove_invalidated(store: Store) -> None:
    """Remove the graphs of entities that earlier commits have invalidated, each in a commit."""
    for graph in store.find_invalidated_graphs():
        if graph.value.startswith(_EXTRACTED):
            made = _drop(store, [graph])
            replace = {each: quads for each, (quads, _) in made.items()}
            origins = {each: origin for each, (_, origin) in made.items()}
            run = Run(Agent("loaders.files.entities", VERSION))
            store.commit(replace, promotion.build_load_patch(run, store, replace, origins))


def _drop(store: Store, dropped: Sequence[NamedNode]) -> Derived:
    """Remove graphs of mentions and claims, and the names of entities that only these have."""
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    if not dropped:
        return made
    for graph in dropped:
        made[graph] = (), RecordOrigin("", ())
    rows = select(store.query, bind(MENTIONED_IN, graphs=dropped))
    mentioned = {named_node(row["entity"]) for row in rows}
    names = {entity: own for entity, own in load_names(store, mentioned).items() if len(own) > 1}
    kept = _load_mentioned(store, names, dropped)
    for entity, own in names.items():
        if (rest := kept.get(entity)) and set(rest) != set(own):
            shared, quads = build_entity(*parse_entity(entity.value), set(rest))
            made[shared] = quads, RecordOrigin("", (), sorted(set(rest.values()), key=str))
    return made


def load_names(store: Store, entities: Iterable[NamedNode]) -> dict[NamedNode, set[str]]:
    """Load the names of entities."""
    found: dict[NamedNode, set[str]] = defaultdict(set)
    wanted = sorted(entities, key=str)
    for start in range(0, len(wanted), _AT_ONCE):
        for row in select(store.query_sources, bind(NAMES, entities=wanted[start : start + _AT_ONCE])):
            found[named_node(row["entity"])].add(term_text(row["name"]))
    return found


def _load_mentioned(
    store: Store, entities: Iterable[NamedNode], dropped: Collection[NamedNode]
) -> dict[NamedNode, dict[str, NamedNode]]:
    """Load the names by which other graphs than those in `dropped` mention entities, each with one of the graphs."""
    found: dict[NamedNode, dict[str, NamedNode]] = defaultdict(dict)
    wanted = sorted(entities, key=str)
    for start in range(0, len(wanted), _AT_ONCE):
        query = bind(MENTIONED, entities=wanted[start : start + _AT_ONCE], dropped=sorted(dropped, key=str))
        for row in select(store.query_sources, query):
            found[named_node(row["entity"])][to_name(term_text(row["raw"]))] = named_node(row["graph"])
    return found


class State:
    """The files without any entity, which have no graph to show that they were read, gazetteers, and the last links."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder / "entities"
        self._path: Final = self.folder / "state.json"
        self.read: dict[str, str] = {}
        self.gazetteers: dict[str, list[str]] = {}
        """The gazetteer of each collection when files were last searched for changes of it."""
        self.outdated: set[str] = set()
        """The graphs of files that may have a name that has entered or left their gazetteer since they were read."""
        self.counted: list[int] = []
        """Generation of the store, and the settings, when the gazetteers were built."""
        self.current: Mapping[NamedNode, str] = {}
        """The hashes to record for all stored files, as `find_pending` found them."""
        self.linked: int | None = None
        """Generation of the store after the last computation of all links."""
        self.outside: dict[str, str] = {}
        """Hashes of the candidates of entities outside of the files, as `refresh_links` returned them."""
        if self._path.exists():
            held = json.loads(self._path.read_text())
            self.read, self.linked = held["without"], held["linked"]
            self.outside = held.get("outside", {})
            self.gazetteers, self.counted = held.get("gazetteers", {}), held.get("counted", [])
            self.outdated = set(held.get("outdated", ()))

    def save(self, current: Collection[str]) -> None:
        """Save it for the graphs that still exist."""
        self.read = {graph: digest for graph, digest in self.read.items() if graph in current}
        self.outdated &= set(current)
        self.folder.mkdir(parents=True, exist_ok=True)
        held = {
            "without": self.read,
            "linked": self.linked,
            "outside": self.outside,
            "gazetteers": self.gazetteers,
            "counted": self.counted,
            "outdated": sorted(self.outdated),
        }
        write_file(self._path, json.dumps(held))

    def update_gazetteers(self, kg: KnowledgeGraph) -> None:
        """Build the gazetteers, and note the files to read again."""
        settings = kg.settings
        counted = [kg.store.statistics().generation, settings.gazetteer_min_freq, settings.gazetteer_mine_topk]
        if counted == self.counted:
            return
        before, self.counted = self.gazetteers, counted
        self.gazetteers = load_gazetteers(kg.store, settings)
        if self.gazetteers != before:
            with Vocabularies(self.folder, VERSION) as words:
                affected = find_affected(before, self.gazetteers, words, self.current)
            self.outdated |= {graph.value for graph in affected}
        self.save({graph.value for graph in self.current})

    def keep_gazetteers(self, store: Store) -> None:
        """Note that the commits since the gazetteers were built are those of entities, which do not change them."""
        self.counted[:1] = [store.statistics().generation]


def find_pending(kg: KnowledgeGraph, state: State | None = None) -> dict[NamedNode, str]:
    """Find the graphs of files whose text was not read yet by this version, with the hash to record for each.

    Those follow that were read, and have a name that has entered or left the gazetteer of their collection since.
    """
    store = kg.store
    hashes = _load_hashes(store, HASHES, GRAPHS)
    if not hashes:
        return {}
    state = state or State(kg.settings.data_dir)
    done = _load_hashes(store, DONE, _EXTRACTED)
    name = kg.settings.spacy_pipeline
    version = f"{VERSION} {name} {find_version(name)}"
    current = {graph: sha256(f"{digest} {version}") for graph, digest in sorted(hashes.items(), key=str)}
    state.current = current
    state.update_gazetteers(kg)
    pending = {
        graph: wanted
        for graph, wanted in current.items()
        if done.get(get_entity_graph(graph)) != wanted and state.read.get(graph.value) != wanted
    }
    return pending | {graph: wanted for graph, wanted in current.items() if graph.value in state.outdated}


def load_lengths(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, int]:
    """Load the number of characters in the texts of the files with these graphs."""
    found: dict[NamedNode, int] = {}
    for start in range(0, len(graphs), _AT_ONCE):
        for row in select(store.query, bind(LENGTHS, graphs=graphs[start : start + _AT_ONCE])):
            found[named_node(row["graph"])] = int(term_text(row["length"]))
    return found


def _load_hashes(store: Store, query: str, prefix: str) -> dict[NamedNode, str]:
    rows = select(store.query, bind(query, prov=PROV_GRAPH, prefix=Literal(prefix)))
    return {named_node(row["graph"]): term_text(row["hash"]) for row in rows}


def refresh(
    kg: KnowledgeGraph,
    files: Collection[NamedNode] | None = None,
    *,
    link: bool = True,
    on_progress: Progress | None = None,
    is_paused: Callable[[], bool] = lambda: False,
) -> EntityReport:
    """Extract the entities and relations of the files that changed since the last call, and commit them.

    `files` limits it to files with these IRIs. Without `link`, the next call links entities. A store without changed
    files costs two queries, and does not import spaCy. Once `is_paused` returns true, the call returns, and
    `report.is_done` is false. The next call in this process continues.

    Raises ModelError if the pipeline of the settings is not installed.
    """
    started = time.perf_counter()
    remove_invalidated(kg.store)
    state, report = State(kg.settings.data_dir), EntityReport()
    pending = find_pending(kg, state)
    if files is not None:
        wanted = {NamedNode(GRAPHS + file.value.removeprefix(iri_prefix("file"))) for file in files}
        pending = {graph: digest for graph, digest in pending.items() if graph in wanted}
    if pending:
        _Refreshing(kg, state, report, on_progress, is_paused).run(pending)
        state.save({graph.value for graph in _load_hashes(kg.store, HASHES, GRAPHS)})
    generation = kg.store.statistics().generation
    if link and report.is_done and state.linked != generation:
        state.outside = refresh_links(kg)
        state.linked = kg.store.statistics().generation
        state.save({graph.value for graph in _load_hashes(kg.store, HASHES, GRAPHS)})
    report.seconds = time.perf_counter() - started
    return report


def renew_links(kg: KnowledgeGraph, on_progress: Progress | None = None) -> None:
    """Link the entities of files to the concepts, people, places and laws that another load has added or changed."""
    if not kg.store.query(ANY):
        return
    state = State(kg.settings.data_dir)
    before, state.outside = state.outside, refresh_links(kg, state.outside)
    if state.outside != before:
        state.save({graph.value for graph in _load_hashes(kg.store, HASHES, GRAPHS)})


class _Refreshing:
    def __init__(
        self,
        kg: KnowledgeGraph,
        state: State,
        report: EntityReport,
        on_progress: Progress | None,
        is_paused: Callable[[], bool],
    ) -> None:
        self.is_paused: Final = is_paused
        self.store: Final = kg.store
        self.state: Final = state
        self.report: Final = report
        self.on_progress = on_progress
        name = kg.settings.spacy_pipeline
        self.pipeline: Final = load_pipeline(name)
        self.run_: Final = Run(Agent("loaders.files.entities", VERSION), {"pipeline": f"{name} {find_version(name)}"})
        self.replace: dict[NamedNode, Sequence[Quad]] = {}
        self.origins: dict[NamedNode, RecordOrigin] = {}
        self.names: dict[Key, set[str]] = defaultdict(set)
        self.sources: dict[Key, set[NamedNode]] = defaultdict(set)
        self.size = 0
        self.done: list[str] = []
        """The graphs of the files of the batch."""
        self.words: Final = Vocabularies(state.folder, VERSION)

    def run(self, pending: Mapping[NamedNode, str]) -> None:
        """Read the files in batches, and commit each."""
        with self.words:
            self.read(pending)
            self.commit()
            self.words.tidy(self.state.current)
        self.state.keep_gazetteers(self.store)

    def read(self, pending: Mapping[NamedNode, str]) -> None:
        """Read the files, and commit full batches."""
        graphs = list(pending)
        said = [(KG.method, Literal("entities")), (KG.confidence, Literal(_CONFIDENCE, datatype=_DECIMAL))]
        for start in range(0, len(graphs), _AT_ONCE):
            part = graphs[start : start + _AT_ONCE]
            chunks, described = self.load_texts(part), self.load_files(part)
            for done, graph in enumerate(part, start=start + 1):
                if graph in described and chunks[graph]:
                    media_type, title = described[graph]
                    text = join_chunks(chunks[graph])
                    if len(text) > MOST_READ:
                        log.warning(
                            "%s: Entities are found in its first %d characters of %d.",
                            graph.value,
                            MOST_READ,
                            len(text),
                        )
                    found = self.extract(graph, pending[graph], text, media_type, title)
                    if found is None:
                        self.report.is_done = False
                        return
                    self.words.add(graph, pending[graph], [text])
                    own = get_entity_graph(graph)
                    quads, names = build_quads(own, chunks[graph], found)
                    self.report.mentions += len(found.mentions)
                    self.report.relations += len(found.relations)
                    for key, spellings in names.items():
                        self.names[key] |= spellings
                        self.sources[key].add(own)
                    if quads:
                        self.replace[own] = quads
                        read = (KG.sourceSha256, Literal(pending[graph]))
                        self.origins[own] = RecordOrigin("", (), derived_from=[graph], said=[*said, read])
                        self.size += len(quads)
                    else:
                        self.state.read[graph.value] = pending[graph]
                        if self.store.query(bind(EXISTS, graph=own)):
                            self.replace[own], self.origins[own] = (), RecordOrigin("", ())
                self.report.files += 1
                self.done.append(graph.value)
                if self.size >= _BATCH_QUADS:
                    self.commit()
                if self.on_progress is not None:
                    self.on_progress(done, len(graphs), "finding entities")

    def extract(
        self, graph: NamedNode, wanted: str, text: str, media_type: str, title: str | None
    ) -> Extraction | None:
        """Extract the entities of a text. None if the extraction was interrupted."""
        gazetteer = self.state.gazetteers.get(get_collection(graph), [])
        steps = INTERRUPTED.take(graph, wanted, gazetteer)
        if steps is None:
            steps = extract_in_steps(text, media_type, title, self.pipeline, gazetteer)
        found = run_steps(steps, self.is_paused)
        if found is None:
            INTERRUPTED.begun = graph, wanted, gazetteer, steps
        return found

    def load_texts(self, graphs: Sequence[NamedNode]) -> dict[NamedNode, list[Chunk]]:
        """Load the chunks of files, in order."""
        found: dict[NamedNode, list[Chunk]] = {graph: [] for graph in graphs}
        disputed = {named_node(row["unit"]) for row in select(self.store.query, bind(DISPUTED, graphs=graphs))}
        for row in select(self.store.query, bind(TEXTS, graphs=graphs)):
            start, end = int(term_text(row["start"])), int(term_text(row["end"]))
            unit = named_node(row["unit"])
            chunk = Chunk(unit, start, end, term_text(row["text"]), unit in disputed)
            found[named_node(row["graph"])].append(chunk)
        for chunks in found.values():
            chunks.sort(key=lambda chunk: (chunk.start, chunk.end))
        return found

    def load_files(self, graphs: Sequence[NamedNode]) -> dict[NamedNode, tuple[str, str | None]]:
        """Load the media type and the title of files."""
        rows = select(self.store.query, bind(FILES, graphs=graphs))
        return {
            named_node(row["graph"]): (term_text(row["type"]), term_text(row["title"]) if "title" in row else None)
            for row in rows
        }

    def commit(self) -> None:
        """Commit the batch, with the entities that have a new name."""
        if self.replace:
            self.write()
        self.state.outdated.difference_update(self.done)
        self.done.clear()

    def write(self) -> None:
        """Write the batch to the store."""
        held = load_names(self.store, map(mint_entity, self.names))
        again = {graph: old for graph in self.replace if (old := self.store.graph(graph))}
        if again:  # a new version: names that only the earlier one found shall go
            going = {named_node(quad.object) for old in again.values() for quad in old if quad.predicate == KG.object}
            kept = _load_mentioned(self.store, going, again)
            held |= {entity: set(kept.get(entity, ())) for entity in going}
            for entity in going:
                self.names.setdefault(parse_entity(entity.value), set())  # type: ignore[arg-type]
        for key, spellings in self.names.items():
            before = held.get(mint_entity(key), set())
            if before | spellings and (again or not spellings <= before):
                shared, quads = build_entity(*key, before | spellings)
                self.replace[shared] = quads
                sources = self.sources.get(key) or set(again)
                self.origins[shared] = RecordOrigin("", (), sorted(sources, key=str)[:_MOST_SOURCES])
                self.report.entities_new += not before
        patch = promotion.build_load_patch(self.run_, self.store, self.replace, self.origins)
        commit = self.store.commit(self.replace, patch)
        if any(change.content_sha256 is not None for change in commit.changes):
            self.report.run = self.run_.iri.value
        self.replace, self.origins, self.size = {}, {}, 0
        self.names.clear()
        self.sources.clear()


def join_chunks(chunks: Sequence[Chunk]) -> str:
    """Join the chunks of a file, which may overlap, to its text."""
    pieces: list[str] = []
    at = 0
    for chunk in chunks:
        if chunk.end > at:
            pieces.append(chunk.text[max(0, at - chunk.start) :])
            at = chunk.end
    return "".join(pieces)
