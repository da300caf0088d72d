"""Where every quad comes from: loads record it in ``graph/prov``, `why_iri` and `why_triple` read it back.

A `Run` is one invocation of a loader. It hands `Store.commit` a function that says, of each graph the commit changes,
which run wrote it and which rows of which file it was read from; that is committed in the same atomic step as the
graph itself. What a replaced graph said before goes, and with the last graph that a run, a snapshot or an agent
explains, its description goes too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, NotFoundError
from kg.sparql.terms import bind
from kg.store.protocol import GraphChange, Patch, Result, Rows, Store, Term
from kg.vocabulary import BASE, KG, PROV, PROV_GRAPH, RDF, RDFS, SCHEMA, XSD, curie, mint, sha256

Query = Callable[[str], Result]
"""Runs a query and returns its finished result: `Store.query`, or the same in a worker."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Agent:
    """A piece of software, by name and version."""

    name: str
    version: str

    @property
    def iri(self) -> NamedNode:
        """Its identifier: one for each version."""
        return mint("agent", f"{self.name}@{self.version}")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was when it was read. `location` is the path or URL as given by whoever loads."""

    sha256: str
    location: str
    revision: str | None = None
    """Revision of the dataset that the file belongs to, if it has one."""

    @property
    def iri(self) -> NamedNode:
        """The identifier of these bytes, wherever they lie."""
        return mint("snapshot", f"sha256-{self.sha256}")


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Rows of one file. `rows` are 1-based data rows, one for each text unit, in unit order."""

    file: SourceFile
    rows: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """What one graph was read from. When it spans files, the rows of its parts together follow the order of units."""

    source_sha256: str
    """Hash over what was read for the record; with the loader's version it decides whether anything changed."""
    parts: Sequence[RowsOf]


@dataclass(slots=True)
class Run:
    """One invocation of a loader over its sources. It is recorded with the first graph that it changes."""

    agent: Agent
    config: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[SourceFile] = ()
    """What is known at the start to be read; files of the records described later are added by themselves."""
    clock: Callable[[], datetime] = _now
    started: datetime = field(init=False)
    iri: NamedNode = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()
        key = json.dumps(
            [
                self.agent.name,
                self.agent.version,
                sorted(self.config.items()),
                sorted(file.sha256 for file in self.sources),
                self.started.isoformat(),
            ]
        )
        self.iri = mint("run", sha256(key)[:24])

    def describe(
        self, store: Store, records: Mapping[NamedNode, RecordOrigin]
    ) -> Callable[[Sequence[GraphChange]], Patch]:
        """Return what `Store.commit` asks for: the change to ``graph/prov`` that goes with the changes to graphs.

        `records` gives the origin of each graph in the commit. A changed graph that is not in it is described by its
        run alone. A graph that becomes empty loses its description; a run that only removes is not recorded.
        """

        def patch(changes: Sequence[GraphChange]) -> Patch:
            return _Revision(store, self, records, changes).patch()

        return patch


DESCRIPTIONS: Final = """
SELECT ?s ?p ?o WHERE { VALUES ?s { $subjects } GRAPH $prov { ?s ?p ?o } }"""

EXPLAINED_BY: Final = """
SELECT ?s WHERE { GRAPH $prov { ?s $relation $node } } LIMIT $enough"""

SNAPSHOTS_OF: Final = """
SELECT ?snapshot ?source WHERE {
  VALUES ?known { $sources }
  GRAPH $prov {
    ?snapshot prov:specializationOf ?known , ?source
    FILTER NOT EXISTS { ?snapshot prov:invalidatedAtTime ?t }
  }
}"""


class _Revision:
    """Works out one patch of ``graph/prov``: what it should say of some subjects, minus what it says now."""

    def __init__(
        self, store: Store, run: Run, records: Mapping[NamedNode, RecordOrigin], changes: Sequence[GraphChange]
    ) -> None:
        self.store = store
        self.run = run
        self.records = records
        self.changes = changes
        self.time = _timestamp(run.clock())
        self.old: dict[NamedNode, set[Quad]] = {}
        self.new: dict[NamedNode, set[Quad]] = defaultdict(set)

    def patch(self) -> Patch:
        written = [change for change in self.changes if change.content_sha256 is not None]
        files = {part.file for change in written for part in self._parts(change.graph)}
        snapshots = {file.iri for file in files}
        graphs = [change.graph for change in self.changes]
        self._read([*graphs, *snapshots, self.run.iri, self.run.agent.iri])
        self._read(list({term for graph in graphs for term in self._objects(graph, PROV.qualifiedDerivation)}))

        for change in written:
            self._graph(change)
        for file in sorted(files, key=lambda file: (file.sha256, file.location)):
            self._snapshot(file)
        if written:
            self._run(snapshots)
        elif self.old[self.run.iri]:
            self._moved_end()
        self._supersede(files)
        self._keep(snapshots | {self.run.iri, self.run.agent.iri})
        self._prune(graphs)

        old = set().union(*self.old.values())
        new = set().union(*self.new.values())
        return Patch(remove=frozenset(old - new), add=frozenset(new - old))

    def _parts(self, graph: NamedNode) -> Sequence[RowsOf]:
        return self.records[graph].parts if graph in self.records else ()

    def _read(self, subjects: Sequence[NamedNode]) -> None:
        wanted = [subject for subject in subjects if subject not in self.old]
        self.old.update((subject, set()) for subject in wanted)
        if wanted:
            for row in _select(self.store.query, bind(DESCRIPTIONS, subjects=wanted, prov=PROV_GRAPH)):
                self.old[_node(row["s"])].add(_quad(_node(row["s"]), _node(row["p"]), row["o"]))

    def _objects(self, subject: NamedNode, predicate: NamedNode) -> list[NamedNode]:
        return [_node(quad.object) for quad in self.old.get(subject, ()) if quad.predicate == predicate]

    def _say(self, subject: NamedNode, predicate: NamedNode, value: NamedNode | Literal) -> None:
        self.new[subject].add(_quad(subject, predicate, value))

    def _graph(self, change: GraphChange) -> None:
        graph = change.graph
        self._say(graph, RDF.type, KG.AssertedGraph)
        self._say(graph, PROV.wasGeneratedBy, self.run.iri)
        self._say(graph, KG.contentSha256, Literal(change.content_sha256 or ""))
        if graph not in self.records:
            return
        origin = self.records[graph]
        self._say(graph, KG.sourceSha256, Literal(origin.source_sha256))
        for position, part in enumerate(origin.parts):
            self._say(graph, PROV.wasDerivedFrom, part.file.iri)
            if not part.rows:
                continue
            rows = Literal(format_rows(part.rows))
            if len(origin.parts) == 1:
                self._say(graph, KG.sourceRows, rows)
            else:
                derivation = mint("derivation", sha256(f"{graph.value} {position}")[:24])
                self._say(graph, PROV.qualifiedDerivation, derivation)
                self._say(derivation, RDF.type, PROV.Derivation)
                self._say(derivation, PROV.entity, part.file.iri)
                self._say(derivation, SCHEMA.position, Literal(position))
                self._say(derivation, KG.sourceRows, rows)

    def _snapshot(self, file: SourceFile) -> None:
        # The same bytes may lie in several places and may have been read before: add to what is known of them,
        # and they are current again.
        snapshot = file.iri
        self.new[snapshot] |= {quad for quad in self.old[snapshot] if quad.predicate != PROV.invalidatedAtTime}
        if not self.old[snapshot]:
            self._say(snapshot, KG.retrievedAt, _timestamp(self.run.started))
        self._say(snapshot, RDF.type, KG.Snapshot)
        self._say(snapshot, KG.sha256, Literal(file.sha256))
        self._say(snapshot, KG.location, Literal(file.location))
        self._say(snapshot, PROV.specializationOf, mint("source", file.location))
        if file.revision is not None:
            self._say(snapshot, KG.datasetRevision, Literal(file.revision))

    def _run(self, snapshots: Iterable[NamedNode]) -> None:
        run, agent = self.run.iri, self.run.agent
        self.new[run] |= {quad for quad in self.old[run] if quad.predicate == PROV.used}
        self._say(run, RDF.type, PROV.Activity)
        self._say(run, PROV.startedAtTime, _timestamp(self.run.started))
        self._say(run, PROV.endedAtTime, self.time)
        self._say(run, PROV.wasAssociatedWith, agent.iri)
        if self.run.config:
            self._say(run, KG.configuration, Literal(json.dumps(dict(sorted(self.run.config.items())))))
        for snapshot in snapshots:
            self._say(run, PROV.used, snapshot)
        self._say(agent.iri, RDF.type, PROV.SoftwareAgent)
        self._say(agent.iri, RDFS.label, Literal(agent.name))
        self._say(agent.iri, SCHEMA.softwareVersion, Literal(agent.version))

    def _moved_end(self) -> None:
        run = self.run.iri
        self.new[run] |= {quad for quad in self.old[run] if quad.predicate != PROV.endedAtTime}
        self._say(run, PROV.endedAtTime, self.time)

    def _supersede(self, files: Iterable[SourceFile]) -> None:
        """Mark older snapshots of the same files as no longer what lies there."""
        sources = {mint("source", file.location) for file in files}
        if not sources:
            return
        locations: dict[NamedNode, set[Term]] = defaultdict(set)
        for row in _select(self.store.query, bind(SNAPSHOTS_OF, sources=list(sources), prov=PROV_GRAPH)):
            locations[_node(row["snapshot"])].add(row["source"])
        outdated = [snapshot for snapshot, of in locations.items() if snapshot not in self.new and of <= sources]
        self._read(outdated)
        for snapshot in outdated:
            self.new[snapshot] |= self.old[snapshot]
            self._say(snapshot, PROV.invalidatedAtTime, self.time)

    def _keep(self, nodes: Iterable[NamedNode]) -> None:
        """Leave what was read about shared nodes, and not rewritten, as it is."""
        for node in nodes:
            if node not in self.new:
                self.new[node] = set(self.old[node])

    def _prune(self, graphs: Sequence[NamedNode]) -> None:
        """Drop the runs, snapshots and agents that explained only what this commit replaces."""
        replaced = set(graphs)
        runs = self._unneeded(PROV.wasGeneratedBy, graphs, replaced)
        snapshots = self._unneeded(PROV.wasDerivedFrom, graphs, replaced)
        self._drop([*runs, *snapshots])
        self._drop(self._unneeded(PROV.wasAssociatedWith, runs, set(runs)))
        for snapshot in snapshots:
            self._forget_use(snapshot)

    def _drop(self, nodes: Sequence[NamedNode]) -> None:
        self._read(nodes)
        for node in nodes:
            self.new.pop(node, None)

    def _unneeded(self, relation: NamedNode, subjects: Iterable[NamedNode], going: set[NamedNode]) -> list[NamedNode]:
        """Return what `subjects` were related to and nothing will be, once the subjects `going` are gone."""
        nodes = {node for subject in subjects for node in self._objects(subject, relation)}
        staying = {quad.object for quads in self.new.values() for quad in quads if quad.predicate == relation}
        return [node for node in nodes if node not in staying and not self._explains_others(node, relation, going)]

    def _explains_others(self, node: NamedNode, relation: NamedNode, going: set[NamedNode]) -> bool:
        # One more than could be going is enough to know: a run may have written 100,000 graphs.
        query = bind(EXPLAINED_BY, relation=relation, node=node, prov=PROV_GRAPH, enough=len(going) + 1)
        return any(_node(row["s"]) not in going for row in _select(self.store.query, query))

    def _forget_use(self, snapshot: NamedNode) -> None:
        query = bind(EXPLAINED_BY, relation=PROV.used, node=snapshot, prov=PROV_GRAPH, enough=1_000_000)
        for row in _select(self.store.query, query):
            run = _node(row["s"])
            used = _quad(run, PROV.used, snapshot)
            if run in self.new:
                self.new[run].discard(used)
            self.old.setdefault(run, set()).add(used)


CURRENT: Final = """
SELECT ?graph ?source ?run WHERE {
  GRAPH $prov { ?graph kg:sourceSha256 ?source ; prov:wasGeneratedBy ?run }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

RUN_VERSIONS: Final = """
SELECT ?run ?version WHERE {
  GRAPH $prov { ?run prov:wasAssociatedWith ?agent . ?agent schema:softwareVersion ?version }
}"""


def current(store: Store, domain: str) -> dict[NamedNode, tuple[str, str]]:
    """Return, for each graph loaded from `domain`, the hash of its source and the version of what loaded it."""
    versions = {row["run"]: _text(row["version"]) for row in _select(store.query, bind(RUN_VERSIONS, prov=PROV_GRAPH))}
    prefix = Literal(mint("graph", "src", domain).value + "/")
    return {
        _node(row["graph"]): (_text(row["source"]), versions.get(row["run"], ""))
        for row in _select(store.query, bind(CURRENT, prov=PROV_GRAPH, prefix=prefix))
    }


LOCATIONS: Final = """
SELECT ?graph ?location WHERE {
  VALUES ?graph { $graphs }
  GRAPH $prov { ?graph prov:wasDerivedFrom ?snapshot . ?snapshot kg:location ?location }
}"""


def locations(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, set[str]]:
    """Return, for each of `graphs` that was read from files, the paths and URLs where these lay."""
    found: dict[NamedNode, set[str]] = defaultdict(set)
    for row in _select(store.query, bind(LOCATIONS, graphs=graphs, prov=PROV_GRAPH)):
        found[_node(row["graph"])].add(_text(row["location"]))
    return found


@dataclass(frozen=True, slots=True)
class Source:
    """A file that a graph was read from."""

    sha256: str
    locations: tuple[str, ...]
    revision: str | None
    retrieved_at: str | None
    superseded_at: str | None
    """When a later load found other bytes in the same place; None while these are what lies there."""
    rows: str | None
    """The data rows (1-based) of the whole record, as in ``1-57,60``."""
    row: int | None = None
    """The data row of the one text unit that was asked about."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why some quads exist: the graph that holds them, who wrote it, when, and from what."""

    about: str
    """The IRI or the triple that was asked about, as N-Triples terms."""
    graph: str
    kind: str
    """``asserted``, ``extracted``, ``generated``, ``curated``, ``derived`` or ``inferred``; ``provenance`` for
    graph/prov itself; ``undescribed`` where nothing is recorded."""
    quads: int
    """How many quads of the graph the question is about."""
    run: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    started_at: str | None = None
    loaded_at: str | None = None
    configuration: dict[str, str] = field(default_factory=dict)
    content_sha256: str | None = None
    source_sha256: str | None = None
    sources: tuple[Source, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            self.about,
            f"  stands in   {self.graph} ({self.kind}, {self.quads} quad{'' if self.quads == 1 else 's'})",
        ]
        if self.kind == "provenance":
            lines.append("  written by  the store, with every commit")
        if self.kind == "undescribed":
            lines.append("  written by  unknown: graph/prov does not describe this graph")
        if self.agent is not None:
            lines.append(f"  written by  {self.agent} {self.agent_version}, run {self.run}")
        if self.loaded_at is not None:
            lines.append(f"  loaded      {self.loaded_at} (the run started {self.started_at})")
        if self.configuration:
            lines.append("  with        " + ", ".join(f"{key}={value}" for key, value in self.configuration.items()))
        for source in self.sources:
            lines.append(f"  read from   {' = '.join(source.locations) or 'a file of unknown place'}")
            if source.row is not None:
                lines.append(f"    row       {source.row}")
            elif source.rows is not None:
                lines.append(f"    rows      {source.rows}")
            lines.append(f"    sha256    {source.sha256}")
            if source.revision is not None:
                lines.append(f"    revision  {source.revision}")
            if source.superseded_at is not None:
                lines.append(f"    replaced  other bytes have lain there since {source.superseded_at}")
        if self.content_sha256 is not None:
            lines.append(f"  graph hash  sha256 {self.content_sha256}")
        return "\n".join(lines)


GRAPHS_ABOUT: Final = """
SELECT ?graph (COUNT(?p) AS ?quads) WHERE { GRAPH ?graph { $iri ?p ?o } } GROUP BY ?graph"""

GRAPH_SIZE: Final = """
SELECT (COUNT(?s) AS ?quads) WHERE { GRAPH $iri { ?s ?p ?o } }"""

GRAPHS_OF_TRIPLE: Final = """
SELECT ?graph WHERE { GRAPH ?graph { $subject $predicate $object } }"""

MENTION: Final = """
SELECT ?s ?p WHERE { GRAPH ?graph { ?s ?p $iri } } LIMIT 1"""

VALUES_OF: Final = """
SELECT ?o WHERE { GRAPH ?graph { $subject $predicate ?o } } LIMIT 3"""

UNITS_OF: Final = """
SELECT (MIN(?position) AS ?first) (MAX(?position) AS ?last) WHERE {
  GRAPH ?graph { ?unit dcterms:isPartOf $document ; schema:position ?position }
}"""

RANK: Final = """
SELECT (COUNT(?unit) AS ?rank) WHERE {
  GRAPH $graph { $iri schema:position ?position . ?unit schema:position ?other FILTER(?other <= ?position) }
}"""

KINDS: Final[dict[Term, str]] = {
    KG.AssertedGraph: "asserted",
    KG.ExtractedGraph: "extracted",
    KG.GeneratedGraph: "generated",
    KG.CuratedGraph: "curated",
    KG.DerivedGraph: "derived",
    KG.InferredGraph: "inferred",
}


def why_iri(query: Query, iri: NamedNode) -> list[Explanation]:
    """Explain every graph that says something of `iri`, or, if `iri` names a graph, that graph.

    For a text unit the one row that it was read from is named. Raises NotFoundError if no graph has it as subject.
    """
    found = {_node(row["graph"]): int(_text(row["quads"])) for row in _select(query, bind(GRAPHS_ABOUT, iri=iri))}
    size = int(_text(_select(query, bind(GRAPH_SIZE, iri=iri)).rows[0][0]))
    if size:
        found.pop(PROV_GRAPH, None)
        found[iri] = size
    if not found:
        raise NotFoundError(f"no graph says anything of {iri}{_hint_for_iri(query, iri)}")
    return [
        _explain(query, str(iri), graph, quads, iri)
        for graph, quads in sorted(found.items(), key=lambda item: item[0].value)
    ]


def why_triple(
    query: Query, subject: NamedNode, predicate: NamedNode, object_: NamedNode | Literal
) -> list[Explanation]:
    """Explain every graph that holds this triple. Raises NotFoundError, naming values that do exist, if none does."""
    graphs = [
        _node(row["graph"])
        for row in _select(query, bind(GRAPHS_OF_TRIPLE, subject=subject, predicate=predicate, object=object_))
    ]
    about = f"{subject} {predicate} {object_}"
    if not graphs:
        values = _select(query, bind(VALUES_OF, subject=subject, predicate=predicate))
        others = ", ".join(str(row["o"]) for row in values)
        hint = (
            f"; with this subject and predicate there is {others}"
            if others
            else f"; {subject} has no {curie(predicate.value)} at all"
        )
        raise NotFoundError(f"no graph holds {about}{hint}")
    return [_explain(query, about, graph, 1, subject) for graph in sorted(graphs, key=lambda graph: graph.value)]


def _explain(query: Query, about: str, graph: NamedNode, quads: int, subject: NamedNode) -> Explanation:
    if graph == PROV_GRAPH:
        return Explanation(about, graph.value, "provenance", quads)
    said = _describe(query, graph)
    kind = next((KINDS[term] for term in said[RDF.type] if term in KINDS), "undescribed")
    runs = [_node(term) for term in said[PROV.wasGeneratedBy]]
    run = _describe(query, runs[0]) if runs else said
    agents = [_node(term) for term in run[PROV.wasAssociatedWith]] if runs else []
    agent = _describe(query, agents[0]) if agents else said
    return Explanation(
        about=about,
        graph=graph.value,
        kind=kind,
        quads=quads,
        run=runs[0].value if runs else None,
        agent=_one(agent, RDFS.label) if agents else None,
        agent_version=_one(agent, SCHEMA.softwareVersion) if agents else None,
        started_at=_one(run, PROV.startedAtTime) if runs else None,
        loaded_at=_one(run, PROV.endedAtTime) if runs else None,
        configuration=json.loads((_one(run, KG.configuration) if runs else None) or "{}"),
        content_sha256=_one(said, KG.contentSha256),
        source_sha256=_one(said, KG.sourceSha256),
        sources=_sources(query, graph, said, subject),
    )


def _sources(
    query: Query, graph: NamedNode, said: Mapping[NamedNode, list[Term]], subject: NamedNode
) -> tuple[Source, ...]:
    parts: list[tuple[NamedNode, str | None]]
    if said[PROV.qualifiedDerivation]:
        derivations = [_describe(query, _node(term)) for term in said[PROV.qualifiedDerivation]]
        derivations.sort(key=lambda derivation: int(_one(derivation, SCHEMA.position) or 0))
        parts = [(_node(derivation[PROV.entity][0]), _one(derivation, KG.sourceRows)) for derivation in derivations]
    else:
        parts = [(_node(term), _one(said, KG.sourceRows)) for term in said[PROV.wasDerivedFrom]]

    rank = int(_text(_select(query, bind(RANK, graph=graph, iri=subject)).rows[0][0])) - 1
    sources = []
    for snapshot, rows in parts:
        row = None
        if rank >= 0 and rows is not None:
            numbers = parse_rows(rows)
            if rank >= len(numbers):
                rank -= len(numbers)
                continue
            row, rank = numbers[rank], -1
        file = _describe(query, snapshot)
        source = Source(
            sha256=_one(file, KG.sha256) or "",
            locations=tuple(sorted(_text(term) for term in file[KG.location])),
            revision=_one(file, KG.datasetRevision),
            retrieved_at=_one(file, KG.retrievedAt),
            superseded_at=_one(file, PROV.invalidatedAtTime),
            rows=rows,
            row=row,
        )
        if row is not None:
            return (source,)
        sources.append(source)
    return tuple(sources)


def _hint_for_iri(query: Query, iri: NamedNode) -> str:
    document, _, fragment = iri.value.partition("#")
    if fragment:
        bounds = _select(query, bind(UNITS_OF, document=NamedNode(document))).rows[0]
        if None not in bounds:
            return f"; the positions of {document} run from {_text(bounds[0])} to {_text(bounds[1])}"
    for row in _select(query, bind(MENTION, iri=iri)):
        return f", though {row['s']} refers to it by {curie(_node(row['p']).value)}"
    return "; a document is cpr://doc/{slug}, a passage cpr://doc/{slug}#p={index}, a graph " + BASE + "graph/..."


def format_rows(rows: Sequence[int]) -> str:
    """Return row numbers as runs, in the order given: ``[1, 2, 3, 7, 5]`` is ``1-3,7,5``."""
    runs: list[list[int]] = []
    for row in rows:
        if row < 1:
            raise InvalidInputError(f"row {row} cannot be: data rows count from 1")
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def parse_rows(text: str) -> list[int]:
    """Return the row numbers that `format_rows` wrote."""
    rows: list[int] = []
    for run in text.split(",") if text else ():
        first, _, last = run.partition("-")
        rows.extend(range(int(first), int(last or first) + 1))
    return rows


def _describe(query: Query, subject: NamedNode) -> defaultdict[NamedNode, list[Term]]:
    said: defaultdict[NamedNode, list[Term]] = defaultdict(list)
    for row in _select(query, bind(DESCRIPTIONS, subjects=[subject], prov=PROV_GRAPH)):
        said[_node(row["p"])].append(row["o"])
    return said


def _one(said: Mapping[NamedNode, list[Term]], predicate: NamedNode) -> str | None:
    values = said[predicate]
    return _text(values[0]) if values else None


def _select(query: Query, text: str) -> Rows:
    result = query(text)
    if not isinstance(result, Rows):
        raise TypeError(f"a SELECT gave {type(result).__name__}, not rows")
    return result


def _node(term: Term | None) -> NamedNode:
    if not isinstance(term, NamedNode):
        raise TypeError(f"graph/prov holds {term} where only an IRI can stand")
    return term


def _text(term: Term | None) -> str:
    if not isinstance(term, Literal | NamedNode):
        raise TypeError(f"graph/prov holds {term} where a literal or an IRI stands")
    return term.value


def _quad(subject: NamedNode, predicate: NamedNode, value: Term) -> Quad:
    return Quad(subject, predicate, value, PROV_GRAPH)


def _timestamp(time: datetime) -> Literal:
    # To the second and with Z: the store would rewrite any other form, and the next difference would not find it.
    return Literal(time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), datatype=XSD.dateTime)
