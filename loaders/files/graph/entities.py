"""The entities of files as graphs: mentions, relations and definitions of each file, and the entities they share.

``graph/ext/entities/files/{collection}/{path}`` has the mentions in the text of one file, and its claims. The commit
that changes or removes the text removes it (`drop_entities`), or invalidates a large one, which goes in the next commit
(`remove_invalidated`). It is written again once the new text is searchable (`refresh`).
``graph/ref/entity/{type}/{norm}`` describes an entity by its type and its names: those in its mentions. So all graphs
follow from the texts alone, in any order in which the files are loaded.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.engine import AfterCommit, Engine, Result, WholeEngine, commit_derived
from kg.derivations.state import State
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import promotion
from kg.provenance.load_records import INVALIDATED, Derived, RecordOrigin, Run
from kg.search.index_sync import Progress
from kg.sparql.terms import bind
from kg.store.protocol import AT_ONCE, Describe, Rows, Store, batched, named_node, select, select_each, term_text
from kg.vocabulary import (
    DCTERMS,
    KG,
    OA,
    RDF,
    SKOS,
    XSD,
    iri_prefix,
    mint,
    mint_claim,
    mint_mention,
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
from loaders.files.extraction.language_pipeline import describe_pipeline, load_pipeline
from loaders.files.graph import ENTITIES, LINKS
from loaders.files.graph.gazetteers import Gazetteers, find_affected, get_collection
from loaders.files.loader import GRAPHS
from loaders.mentions.graph_words import filter_of

log = logging.getLogger(__name__)

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

_ENTITY: Final = iri_prefix("entity")
_CONFIDENCE: Final = "0.85"
_SAID: Final = ((KG.method, Literal("entities")), (KG.confidence, Literal(_CONFIDENCE, datatype=XSD.decimal)))
_MOST_SOURCES: Final = 5
"""Most graphs that provenance names for an entity: those that gave it its names last. Its mentions name all."""
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

LENGTHS: Final = """
SELECT ?graph ?length WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?file kg:length ?length } }"""

ENTITIES_OF: Final = "SELECT ?mention WHERE { GRAPH $graph { ?mention kg:object ?entity } }"

EXISTS: Final = "ASK { GRAPH $graph { ?node kg:object ?entity } }"

MENTIONED_IN: Final = """
SELECT DISTINCT ?entity WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?mention kg:object ?entity } }"""

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


INTERRUPTED: Final[dict[tuple[NamedNode, str, Sequence[str]], Steps]] = {}
"""The further steps of a long text that this process has paused, so that changed files need not wait for it: by the
graph of the file, its text and its gazetteer."""


@dataclass(slots=True)
class EntityReport:
    """The outcome of an extraction. Counts are of the files that were read."""

    files: int = 0
    mentions: int = 0
    entities_new: int = 0
    relations: int = 0
    is_done: bool = True
    """Whether all wanted files were read."""


get_entity_graph: Final = ENTITIES.get_output
"""Returns the name of the graph of the entities that the file with a graph mentions."""


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


def _is_large(store: Store, graph: NamedNode) -> bool:
    mentions = _LARGE // 5  # each has five quads
    found = store.query(bind(ENTITIES_OF, graph=graph), limit=mentions)
    return isinstance(found, Rows) and found.truncated


def drop_entities(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
    """Remove the mentions and claims of changed or removed files. The first large graphs are `INVALIDATED`.

    The entities keep the names that the mentions in other files have. Those that no file mentions go with the commit.
    """
    # By queries, since the graph of a long file has a hundred thousand quads.
    graphs = [get_entity_graph(source) for source in replace if source.value.startswith(GRAPHS)]
    exist = [graph for graph in graphs if store.query(bind(EXISTS, graph=graph))]
    large = [graph for graph in exist if _is_large(store, graph)]
    later = set(large[: max(0, _MOST_INVALIDATED - len(store.find_invalidated_graphs()))]) if large else set()
    return {**_drop(store, [graph for graph in exist if graph not in later]), **dict.fromkeys(later, INVALIDATED)}


def remove_invalidated(store: Store) -> None:
    """Remove the graphs of entities that earlier commits have invalidated, each in a commit."""
    for graph in store.find_invalidated_graphs():
        if graph.value.startswith(ENTITIES.writes):
            commit_derived(store, ENTITIES.start({}), _drop(store, [graph]))


def _drop(store: Store, dropped: Sequence[NamedNode]) -> Derived:
    """Remove graphs of mentions and claims, and the names of entities that only these have."""
    made: Derived = {graph: ((), RecordOrigin("", ())) for graph in dropped}
    return {**made, **build_entities(store, dropped, {}, {})[0]}


def build_entities(
    store: Store,
    replaced: Sequence[NamedNode],
    names: Mapping[Key, set[str]],
    sources: Mapping[Key, Collection[NamedNode]],
) -> tuple[Derived, int]:
    """Build the shared graphs of the entities that get other names when a commit replaces graphs of mentions.

    They lose the names that only those graphs have, and get `names`, which the graphs `sources` have then. Returns them
    with the number of new entities.
    """
    rows = select(store.query, bind(MENTIONED_IN, graphs=replaced)) if replaced else ()
    going = {named_node(row["entity"]) for row in rows}
    coming = {mint_entity(key): key for key in names}
    stored = load_names(store, going | coming.keys())
    # An entity with one name keeps it, or goes with its last mention.
    kept = _load_mentioned(store, {each for each in going if each in coming or len(stored[each]) > 1}, replaced)
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for entity in dict.fromkeys([*coming, *stored]):
        own = names[coming[entity]] if entity in coming else set()
        rest = kept[entity] if entity in going else dict.fromkeys(stored[entity])
        wanted = own | rest.keys()
        if wanted and (entity in going & coming.keys() or wanted != stored[entity]):
            graph, quads = build_entity(*parse_entity(entity.value), wanted)
            of = sources[coming[entity]] if entity in coming else [each for each in rest.values() if each is not None]
            made[graph] = quads, RecordOrigin("", (), sorted(set(of), key=str)[:_MOST_SOURCES])
    return made, sum(not stored[entity] for entity in coming)


def load_names(store: Store, entities: Iterable[NamedNode]) -> dict[NamedNode, set[str]]:
    """Load the names of entities."""
    found: dict[NamedNode, set[str]] = defaultdict(set)
    for row in select_each(store.query_sources, NAMES, "entities", sorted(entities, key=str)):
        found[named_node(row["entity"])].add(term_text(row["name"]))
    return found


def _load_mentioned(
    store: Store, entities: Iterable[NamedNode], dropped: Collection[NamedNode]
) -> dict[NamedNode, dict[str, NamedNode]]:
    """Load the names by which other graphs than those in `dropped` mention entities, each with one of the graphs."""
    found: dict[NamedNode, dict[str, NamedNode]] = defaultdict(dict)
    wanted, others = sorted(entities, key=str), sorted(dropped, key=str)
    for row in select_each(store.query_sources, MENTIONED, "entities", wanted, dropped=others):
        found[named_node(row["entity"])][to_name(term_text(row["raw"]))] = named_node(row["graph"])
    return found


def find_pending(kg: KnowledgeGraph) -> dict[NamedNode, str]:
    """Find the graphs of files whose entities are due, with the hashes of their content."""
    with State(kg.settings.data_dir) as state:
        engine = Engine(kg, state, ENTITIES, Entities(kg))
        return engine.find_due().hashes if engine.is_used() else {}


def load_lengths(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, int]:
    """Load the number of characters in the texts of the files with these graphs."""
    rows = select_each(store.query, LENGTHS, "graphs", graphs)
    return {named_node(row["graph"]): int(term_text(row["length"])) for row in rows}


def refresh(
    kg: KnowledgeGraph,
    files: Collection[NamedNode] | None = None,
    *,
    link: bool = True,
    full: bool = False,
    on_progress: Progress | None = None,
    is_paused: Callable[[], bool] = lambda: False,
) -> EntityReport:
    """Extract the entities and relations of the files that changed since the last call, and commit them.

    `files` limits it to files with these IRIs; with `full`, all are read. Without `link`, the next call links entities.
    A store without changed files costs a few queries, and does not import spaCy. Once `is_paused` returns true, the
    call returns, and `report.is_done` is false. The next call in this process continues.

    Raises ModelError if the pipeline of the settings is not installed.
    """
    report = EntityReport()
    with State(kg.settings.data_dir) as state:
        engine = Engine(kg, state, ENTITIES, Entities(kg, report, is_paused))
        if engine.is_used():  # without files no pipeline is needed
            due = engine.find_due(full=full)
            if files is not None:
                wanted = {NamedNode(GRAPHS + file.value.removeprefix(iri_prefix("file"))) for file in files}
                due.hashes = {graph: digest for graph, digest in due.hashes.items() if graph in wanted}
            engine.run(due, on_progress)
        links = WholeEngine(kg, state, LINKS)
        if link and report.is_done and links.is_used():
            links.derive()
    return report


class Entities(AfterCommit[Gazetteers, None]):
    """The derivation of entities from the texts of files. Its table are the gazetteers of their collections."""

    batch_quads = 20_000

    def __init__(
        self,
        kg: KnowledgeGraph,
        report: EntityReport | None = None,
        is_paused: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(kg)
        self.settings: Final = kg.settings
        self.is_paused: Final = is_paused
        self.report: Final = report or EntityReport()
        self.names: dict[Key, set[str]] = defaultdict(set)
        """The names of the entities in the batch."""
        self.sources: dict[Key, set[NamedNode]] = defaultdict(set)

    def begin(self) -> None:
        """Remove what commits have invalidated."""
        remove_invalidated(self.store)

    def load_table(
        self, saved: bytes | None, since: int, touched: Collection[NamedNode] | None
    ) -> tuple[Gazetteers | None, Gazetteers]:
        """Load the gazetteers of the last run, and the current ones."""
        before = None if saved is None else Gazetteers.load_saved(saved)
        if before is not None and before.is_current(self.settings, touched):
            return before, before
        return before, Gazetteers.load(self.store, self.settings)

    def save_table(self, table: Gazetteers) -> bytes:
        """Write the gazetteers."""
        return table.save()

    def affected(
        self, before: Gazetteers, after: Gazetteers, finished: Iterable[tuple[NamedNode, bytes | None]]
    ) -> Mapping[NamedNode, None]:
        """Find the files that may have a name that entered or left the gazetteer of their collection."""
        return dict.fromkeys(find_affected(before, after, finished))

    def compute(self, due: Mapping[NamedNode, None], table: Gazetteers) -> Iterator[tuple[NamedNode, Result]]:
        """Extract the entities of each file, until it is paused."""
        if not due:
            return
        pipeline = load_pipeline(self.settings.spacy_pipeline)
        for part in batched(due, AT_ONCE):
            chunks, described = self.load_texts(part), self.load_files(part)
            for graph in part:
                text = join_chunks(chunks[graph])
                result = Result(())
                if graph in described and chunks[graph]:
                    if len(text) > MOST_READ:
                        log.warning(
                            "%s: Entities are found in its first %d characters of %d.",
                            graph.value,
                            MOST_READ,
                            len(text),
                        )
                    gazetteer = table.names.get(get_collection(graph), [])
                    key = graph, text, tuple(gazetteer)
                    steps = INTERRUPTED.pop(key, None) or extract_in_steps(text, *described[graph], pipeline, gazetteer)
                    found = run_steps(steps, self.is_paused)
                    if found is None:
                        INTERRUPTED.clear()
                        INTERRUPTED[key] = steps
                        self.report.is_done = False
                        return
                    result = Result(self.build(graph, chunks[graph], found), _SAID, filter_of([text]))
                self.report.files += 1
                yield graph, result

    def build(self, graph: NamedNode, chunks: Sequence[Chunk], found: Extraction) -> Sequence[Quad]:
        """Build the graph of a file, and keep the names of its entities."""
        own = get_entity_graph(graph)
        quads, names = build_quads(own, chunks, found)
        self.report.mentions += len(found.mentions)
        self.report.relations += len(found.relations)
        for key, spellings in names.items():
            self.names[key] |= spellings
            self.sources[key].add(own)
        return quads

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

    def configure(self, table: Gazetteers) -> Mapping[str, str]:
        """Return the pipeline."""
        return {"pipeline": describe_pipeline(self.settings.spacy_pipeline)}

    def describe(
        self, run: Run, replace: dict[NamedNode, Sequence[Quad]], origins: dict[NamedNode, RecordOrigin]
    ) -> Describe:
        """Add the entities that get or lose a name with a batch; return the provenance and the promoted claims."""
        shared, new = build_entities(self.store, list(replace), self.names, self.sources)
        self.report.entities_new += new
        for graph, (quads, origin) in shared.items():
            replace[graph], origins[graph] = quads, origin
        self.names.clear()
        self.sources.clear()
        return promotion.build_load_patch(run, self.store, replace, origins)


def join_chunks(chunks: Sequence[Chunk]) -> str:
    """Join the chunks of a file, which may overlap, to its text."""
    pieces: list[str] = []
    at = 0
    for chunk in chunks:
        if chunk.end > at:
            pieces.append(chunk.text[max(0, at - chunk.start) :])
            at = chunk.end
    return "".join(pieces)
