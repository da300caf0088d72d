"""The records of loads in ``graph/prov``: write those of the current load, and read those of earlier ones."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError
from kg.provenance.reader import DESCRIPTIONS
from kg.sparql.terms import bind
from kg.store.ownership import is_shared_graph
from kg.store.protocol import GraphChange, Patch, Query, Store, Term, named_node, select, term_text
from kg.vocabulary import (
    EXTRACTED,
    GENERATED,
    INFERRED,
    KG,
    PROV,
    PROV_GRAPH,
    RDF,
    RDFS,
    SCHEMA,
    XSD,
    iri_prefix,
    mint,
    sha256,
)


def format_rows(rows: Sequence[int]) -> str:
    """Format row numbers as ranges, in the given order: ``[1, 2, 3, 7, 5]`` is ``1-3,7,5``."""
    runs: list[list[int]] = []
    for row in rows:
        if row < 1:
            raise InvalidInputError(f"Invalid row {row}. Data rows are 1-based.")
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def parse_rows(text: str) -> list[int]:
    """Parse the output of `format_rows`."""
    rows: list[int] = []
    for run in text.split(",") if text else ():
        first, _, last = run.partition("-")
        rows.extend(range(int(first), int(last or first) + 1))
    return rows


def find_row(rank: int, parts: Iterable[Sequence[int]]) -> tuple[int, int] | None:
    """Find the part that a text unit was read from, and its row there; None if no part contains it.

    `rank` is the zero-based position of the unit in its record. `parts` are the rows of each file of the record,
    together in the order of its units.
    """
    for number, rows in enumerate(parts):
        if rank < len(rows):
            return number, rows[rank]
        rank -= len(rows)
    return None


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
    """A file as it was when it was read. `location` is its path or URL. The graph has only `name_source` of it."""

    sha256: str
    location: str
    revision: str | None = None
    """Revision of the dataset that the file belongs to, if any."""
    read_at: datetime | None = None
    """Time of reading, if in an earlier run; then the current content of the location is unknown."""
    sent_by: str | None = None
    """The sender, if it is a correction by a person and not a file of the source."""
    left: tuple[str, ...] = ()
    """Locations whose records had this content and have it no longer, as after a move."""

    @property
    def iri(self) -> NamedNode:
        """The identifier of its content, independent of the location."""
        return mint("snapshot", f"sha256-{self.sha256}")


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Rows of one file: 1-based data rows, one per text unit, in the order of the units."""

    file: SourceFile
    rows: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, in one version, that computes graphs from others."""

    name: str
    version: str
    label: str
    threshold: str | None = None
    """Minimum confidence of the claims that it accepts, a decimal."""

    @property
    def iri(self) -> NamedNode:
        """Its node in ``graph/prov``."""
        return NamedNode(f"{mint('rule', self.name).value}@{self.version}")


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """The sources of one graph. If it spans files, the rows of its parts together follow the order of the units."""

    source_sha256: str
    """Hash of the source of the record; with the version of the loader, it determines whether anything changed."""
    parts: Sequence[RowsOf]
    derived_from: Sequence[NamedNode] = ()
    """The graphs that it was computed from, if it is not a record of a source."""
    rule: Rule | None = None
    """The rule that computed it. That of a shared graph is `NAMED`."""
    said: Sequence[tuple[NamedNode, Literal]] = ()
    """Other properties of the whole graph, such as the method of extraction, or the secrets that were replaced."""
    author: str | None = None
    """The caller who wrote it by a tool without the scope ``admin`` (`kg.provenance.permissions`)."""


Derived = Mapping[NamedNode, tuple[Sequence[Quad], RecordOrigin]]
"""The quads of computed graphs, such as those below ``graph/der/``, each with its origin."""

INVALIDATED: Final[tuple[Sequence[Quad], RecordOrigin]] = (), RecordOrigin("", ())
"""In place of a graph whose removal takes long: the commit only hides it, and a later one removes it."""


@dataclass(slots=True)
class Run:
    """One invocation of a loader over its sources. It is recorded with the first graph that it changes."""

    agent: Agent
    config: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[SourceFile] = ()
    """The files known at the start; those of records described later are added automatically."""
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
        """Return the `describe` of `Store.commit`: it computes the changes of ``graph/prov`` for changed graphs.

        `records` contains the origin of each graph in the commit; other changed graphs are described by the run only.
        A graph that becomes empty loses its description. A run that only removes graphs is not recorded.
        """

        def patch(changes: Sequence[GraphChange]) -> Patch:
            return _Revision(store, self, records, changes).patch()

        return patch


def build_rule_quads(rule: Rule) -> set[Quad]:
    """Build the description of a rule in ``graph/prov``."""
    said = {
        to_quad(rule.iri, RDF.type, KG.Rule),
        to_quad(rule.iri, RDFS.label, Literal(rule.label, language="en")),
    }
    if rule.threshold is not None:
        said.add(to_quad(rule.iri, KG.threshold, Literal(rule.threshold, datatype=XSD.decimal)))
    return said


_GRAPHS: Final = iri_prefix("graph")
_COMPUTED: Final = {EXTRACTED: KG.ExtractedGraph, GENERATED: KG.GeneratedGraph, INFERRED: KG.InferredGraph}
RULES: Final = iri_prefix("rule")
"""IRI prefix of rules."""
NAMED: Final = Rule("named", "1", "what texts name is described by the names and codes that they give it")
"""The rule of the shared graphs that are computed from texts: of districts, land uses, laws and entities."""


def get_rule(graph: NamedNode, origin: RecordOrigin) -> Rule | None:
    """Return the rule that computed a graph; None for a record of a source, and for graphs of claims and summaries."""
    return NAMED if origin.derived_from and is_shared_graph(graph) else origin.rule


EXPLAINED_BY: Final = """
SELECT ?s WHERE { GRAPH $prov { ?s $relation $node } } LIMIT $enough"""

SNAPSHOTS_OF: Final = """
SELECT ?snapshot ?source ?retrieved WHERE {
  VALUES ?known { $sources }
  GRAPH $prov {
    ?snapshot prov:specializationOf ?known , ?source ; kg:retrievedAt ?retrieved
    FILTER NOT EXISTS { ?snapshot prov:invalidatedAtTime ?t }
  }
}"""


class _Revision:
    """Computes one patch of ``graph/prov``: the new descriptions of some subjects, minus the stored ones."""

    def __init__(
        self, store: Store, run: Run, records: Mapping[NamedNode, RecordOrigin], changes: Sequence[GraphChange]
    ) -> None:
        self.store = store
        self.run = run
        self.records = records
        self.changes = changes
        self.time = timestamp(run.clock())
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
            for row in select(self.store.query, bind(DESCRIPTIONS, subjects=wanted, prov=PROV_GRAPH)):
                self.old[named_node(row["s"])].add(to_quad(named_node(row["s"]), named_node(row["p"]), row["o"]))

    def _objects(self, subject: NamedNode, predicate: NamedNode) -> list[NamedNode]:
        return [named_node(quad.object) for quad in self.old.get(subject, ()) if quad.predicate == predicate]

    def _say(self, subject: NamedNode, predicate: NamedNode, value: NamedNode | Literal) -> None:
        self.new[subject].add(to_quad(subject, predicate, value))

    def _graph(self, change: GraphChange) -> None:
        graph, origin = change.graph, self.records.get(change.graph)
        derived = origin is not None and origin.derived_from
        kind = next((kind for root, kind in _COMPUTED.items() if graph.value.startswith(root)), KG.DerivedGraph)
        self._say(graph, RDF.type, kind if derived else KG.AssertedGraph)
        self._say(graph, PROV.wasGeneratedBy, self.run.iri)
        if change.content_sha256:  # an inferred graph that is maintained by changes has none
            self._say(graph, KG.contentSha256, Literal(change.content_sha256))
        if origin is None:
            return
        for predicate, value in origin.said:
            self._say(graph, predicate, value)
        if origin.author is not None and (not self.old[graph] or self._objects(graph, PROV.wasAttributedTo)):
            self._attribute(graph, origin.author)  # graphs of the operator are not given to callers
        if origin.derived_from:
            for source in origin.derived_from:
                self._say(graph, PROV.wasDerivedFrom, source)
            if (rule := get_rule(graph, origin)) is not None:
                self._say(self.run.iri, PROV.used, rule.iri)
                self.new[rule.iri] |= build_rule_quads(rule)
            return
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
        # The same content may have several locations and may have been read before, so keep the recorded ones. Unless
        # this describes an earlier read (`read_at`), the content is current again.
        snapshot = file.iri
        replayed = file.read_at is not None
        left: set[Term] = {mint_source(each) for each in file.left}
        if any(quad.object in left for quad in self.old[snapshot]):
            left |= {Literal(name_source(each)) for each in file.left}
        self.new[snapshot] |= {
            quad
            for quad in self.old[snapshot]
            if (replayed or quad.predicate != PROV.invalidatedAtTime) and quad.object not in left
        }
        if not any(quad.predicate == KG.retrievedAt for quad in self.new[snapshot]):
            read = timestamp(file.read_at or self.run.started)
            self._say(snapshot, KG.retrievedAt, read)
            if replayed and (later := self._read_later(file, read)):
                self._say(snapshot, PROV.invalidatedAtTime, Literal(later, datatype=XSD.dateTime))
        if file.sent_by is not None:
            self._attribute(snapshot, file.sent_by)
        self._say(snapshot, RDF.type, KG.Snapshot)
        self._say(snapshot, KG.sha256, Literal(file.sha256))
        self._say(snapshot, KG.location, Literal(name_source(file.location)))
        self._say(snapshot, PROV.specializationOf, mint_source(file.location))
        if file.revision is not None:
            self._say(snapshot, KG.datasetRevision, Literal(file.revision))

    def _read_later(self, file: SourceFile, read: Literal) -> str | None:
        """Return the time after `read` at which different content was first found at the location of `file`."""
        query = bind(SNAPSHOTS_OF, sources=[mint_source(file.location)], prov=PROV_GRAPH)
        found = [term_text(row["retrieved"]) for row in select(self.store.query, query)]
        return min((each for each in found if each > read.value), default=None)

    def _attribute(self, entity: NamedNode, name: str) -> None:
        sender = mint("agent", name)
        self._read([sender])
        self._keep([sender])
        self._say(entity, PROV.wasAttributedTo, sender)
        self._say(sender, RDF.type, PROV.Agent)
        self._say(sender, RDFS.label, Literal(name))

    def _run(self, snapshots: Iterable[NamedNode]) -> None:
        run, agent = self.run.iri, self.run.agent
        self.new[run] |= {quad for quad in self.old[run] if quad.predicate == PROV.used}
        self._say(run, RDF.type, PROV.Activity)
        self._say(run, PROV.startedAtTime, timestamp(self.run.started))
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
        """Mark older snapshots of the same files as superseded."""
        sources = {mint_source(file.location) for file in files if file.read_at is None}
        if not sources:
            return
        locations: dict[NamedNode, set[Term]] = defaultdict(set)
        for row in select(self.store.query, bind(SNAPSHOTS_OF, sources=list(sources), prov=PROV_GRAPH)):
            locations[named_node(row["snapshot"])].add(row["source"])
        # Content that is also at a location which was not read now is still current there.
        outdated = [snapshot for snapshot, of in locations.items() if snapshot not in self.new and of <= sources]
        self._read(outdated)
        for snapshot in outdated:
            self.new[snapshot] |= self.old[snapshot]
            self._say(snapshot, PROV.invalidatedAtTime, self.time)

    def _keep(self, nodes: Iterable[NamedNode]) -> None:
        """Keep the stored descriptions of shared nodes that are not rewritten."""
        for node in nodes:
            if node not in self.new:
                self.new[node] = set(self.old[node])

    def _prune(self, graphs: Sequence[NamedNode]) -> None:
        """Remove the runs, snapshots and agents that explain only graphs replaced by this commit."""
        replaced = set(graphs)
        runs = self._unneeded(PROV.wasGeneratedBy, graphs, replaced)
        # A source that is a graph keeps its description: it exists independently.
        explained = self._unneeded(PROV.wasDerivedFrom, graphs, replaced)
        snapshots = [node for node in explained if not node.value.startswith(_GRAPHS)]
        self._drop([*runs, *snapshots])
        self._drop(self._unneeded(PROV.wasAssociatedWith, runs, set(runs)))
        self._drop([used for used in self._unneeded(PROV.used, runs, set(runs)) if used.value.startswith(RULES)])
        senders = self._unneeded(PROV.wasAttributedTo, [*snapshots, *graphs], {*snapshots, *replaced})
        self._drop([each for each in senders if not self._explains_others(each, PROV.wasAssociatedWith, set(runs))])
        for snapshot in snapshots:
            self._forget_use(snapshot)

    def _drop(self, nodes: Sequence[NamedNode]) -> None:
        self._read(nodes)
        for node in nodes:
            self.new.pop(node, None)

    def _unneeded(self, relation: NamedNode, subjects: Iterable[NamedNode], going: set[NamedNode]) -> list[NamedNode]:
        """Return the objects of `relation` that no subject will refer to after the removal of `going`."""
        nodes = {node for subject in subjects for node in self._objects(subject, relation)}
        staying = {quad.object for quads in self.new.values() for quad in quads if quad.predicate == relation}
        return [node for node in nodes if node not in staying and not self._explains_others(node, relation, going)]

    def _explains_others(self, node: NamedNode, relation: NamedNode, going: set[NamedNode]) -> bool:
        # len(going) + 1 rows are enough to find one that stays; a run may have written 100,000 graphs.
        query = bind(EXPLAINED_BY, relation=relation, node=node, prov=PROV_GRAPH, enough=len(going) + 1)
        return any(named_node(row["s"]) not in going for row in select(self.store.query, query))

    def _forget_use(self, snapshot: NamedNode) -> None:
        query = bind(EXPLAINED_BY, relation=PROV.used, node=snapshot, prov=PROV_GRAPH, enough=1_000_000)
        for row in select(self.store.query, query):
            run = named_node(row["s"])
            used = to_quad(run, PROV.used, snapshot)
            if run in self.new:
                self.new[run].discard(used)
            self.old.setdefault(run, set()).add(used)


CURRENT: Final = """
SELECT ?graph ?source ?run WHERE {
  GRAPH $prov { ?graph kg:sourceSha256 ?source ; prov:wasGeneratedBy ?run }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

CURRENT_OF: Final = """
SELECT ?graph ?source ?version WHERE {
  VALUES ?graph { $graphs }
  GRAPH $prov {
    ?graph kg:sourceSha256 ?source ; prov:wasGeneratedBy ?run . ?run prov:wasAssociatedWith ?agent .
    ?agent schema:softwareVersion ?version
  }
}"""

RUN_VERSIONS: Final = """
SELECT ?run ?version WHERE {
  GRAPH $prov { ?run prov:wasAssociatedWith ?agent . ?agent schema:softwareVersion ?version }
}"""


def load_versions_of(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, tuple[str, str]]:
    """Load the hash of the source and the version of the loader for each of `graphs` that was loaded."""
    return {
        named_node(row["graph"]): (term_text(row["source"]), term_text(row["version"]))
        for row in select(store.query, bind(CURRENT_OF, prov=PROV_GRAPH, graphs=graphs))
    }


def load_versions(store: Store, domain: str) -> dict[NamedNode, tuple[str, str]]:
    """Load the hash of the source and the version of the loader for each graph of `domain`."""
    versions = {
        row["run"]: term_text(row["version"]) for row in select(store.query, bind(RUN_VERSIONS, prov=PROV_GRAPH))
    }
    prefix = Literal(mint("graph", "src", domain).value + "/")
    return {
        named_node(row["graph"]): (term_text(row["source"]), versions.get(row["run"], ""))
        for row in select(store.query, bind(CURRENT, prov=PROV_GRAPH, prefix=prefix))
    }


CORRECTION: Final = ", a correction of "
"""Separates, in the location of a corrected record, the correcting file from the corrected one."""
_HASH: Final = re.compile("(?:-[0-9a-f]{16})?")
_LOCAL: Final = re.compile(r"(?:file://)?(?:/|[A-Za-z]:[/\\])")


def is_local(location: str) -> bool:
    """Whether `location` is an absolute path on this machine."""
    return _LOCAL.match(location) is not None


def mint_source(location: str) -> NamedNode:
    """Return the identifier of a source. That of a file on this machine has a hash of the path, not the path."""
    if not is_local(location):
        return mint("source", location)
    return mint("source", f"{name_source(location)}-{sha256(location)[:16]}")


def name_source(location: str) -> str:
    """Return the name of a source: for a file on this machine, its folder and name without the path.

    The hash identifies the file. The path is not part of the graph, since it describes the disk of the server
    (`kg.provenance.source_paths`).
    """
    return CORRECTION.join(_name_file(part) for part in location.split(CORRECTION))


def _name_file(location: str) -> str:
    if not is_local(location):
        return location
    return "/".join(re.split(r"[/\\]+", location.rstrip("/"))[-2:]).lstrip("/")


SOURCES: Final = """
SELECT ?graph ?source ?location WHERE {
  VALUES ?graph { $graphs }
  GRAPH $prov { ?graph prov:wasDerivedFrom ?snapshot . ?snapshot prov:specializationOf ?source ; kg:location ?location }
}"""


def load_sources(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, dict[str, str]]:
    """Load the sources of each of `graphs` that was read from files: the name of each by its identifier."""
    found: dict[NamedNode, dict[str, str]] = defaultdict(dict)
    for row in select(store.query, bind(SOURCES, graphs=graphs, prov=PROV_GRAPH)):
        source, name = named_node(row["source"]).value, term_text(row["location"])
        # The same content can have several locations. The identifier of each is its name, with a hash for a file.
        if _HASH.fullmatch(source.removeprefix(mint("source", name).value)):
            found[named_node(row["graph"])][source] = name
    return found


PATHS_IN_GRAPH: Final = """
SELECT ?s ?p ?o WHERE {
  VALUES ?p { kg:location prov:specializationOf kg:configuration kg:removedNode kg:described }
  GRAPH $prov { ?s ?p ?o }
}"""
_PATH_IN_TEXT: Final = re.compile(r'(?<=")(?:file://)?(?:/|[A-Za-z]:[/\\])[^"]*')
_OLD_SOURCE: Final = re.compile(re.escape(iri_prefix("source")) + "(?:file%3A%2F%2F)?(?:%2F|[A-Za-z]%3A%(?:2F|5C)).*")


def find_stored_paths(query: Query) -> tuple[Patch, list[str]]:
    """Find the paths that earlier versions stored in ``graph/prov``: the patch that names them, and the paths."""
    paths: list[str] = []
    old: set[Quad] = set()
    new: set[Quad] = set()
    for row in select(query, bind(PATHS_IN_GRAPH, prov=PROV_GRAPH)):
        subject, predicate, value = named_node(row["s"]), named_node(row["p"]), row["o"]
        text, named = term_text(value), value
        if predicate == KG.location:
            named = Literal(name_source(text))
        elif predicate == KG.configuration:
            named = Literal(_PATH_IN_TEXT.sub(_name_paths, text))
        elif _OLD_SOURCE.fullmatch(text):
            path = unquote(text.removeprefix(iri_prefix("source")))
            paths.append(path)
            source = mint_source(path)
            named = source if isinstance(value, NamedNode) else Literal(source.value, datatype=XSD.anyURI)
        if named != value:
            if predicate == KG.location:
                paths.append(text)
            old.add(to_quad(subject, predicate, value))
            new.add(to_quad(subject, predicate, named))
    return Patch(frozenset(old), frozenset(new)), paths


def _name_paths(match: re.Match[str]) -> str:
    """Name the files of a value of a configuration: one path, or the corrected files with their hashes and rows."""
    parts = (each.partition(" (sha256") for each in match[0].split("; "))
    return "; ".join(name_source(path) + mark + rest for path, mark, rest in parts)


def to_quad(subject: NamedNode, predicate: NamedNode, value: Term) -> Quad:
    """Build a quad of ``graph/prov``."""
    return Quad(subject, predicate, value, PROV_GRAPH)


def timestamp(time: datetime) -> Literal:
    """Return `time` in canonical form (seconds, Z), so that it equals the stored literal in later comparisons."""
    return Literal(time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), datatype=XSD.dateTime)
