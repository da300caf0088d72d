"""The files that ship with Quadcite as graphs of the store: ontology, alignments, code lists, shapes, properties.

`write_shipped_graphs` is called when a process opens the store for writing. It commits only if the files differ from
those that the store was last opened with, so that opening stays fast. Before that, it replaces the paths of files that
earlier versions stored by their names (`kg.provenance.source_paths`)::

    <graph/tbox>       classes, properties, alignments; <graph/tbox> owl:versionInfo "{version}+sha256.{hash of files}"
    <graph/ref/vocab>  the code lists, with the labels of their codes
    <graph/shapes>     the SHACL shapes
    <graph/inf/wikidata-properties>  properties of Wikidata (`kg.wikidata_properties`), each until a source describes it

A triple is in one graph only, also if a source states it, and blank nodes become IRIs (`kg.store.skolem`).
``graph/prov`` records the files with their hashes and versions. None of these graphs is content (`UNCOUNTED_GRAPHS`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyoxigraph
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kg import __version__, bundle, wikidata_properties
from kg.provenance.catalog import CATALOG, build_catalog, find_affected_datasets
from kg.provenance.load_records import (
    Agent,
    RecordOrigin,
    RowsOf,
    Rule,
    Run,
    SourceFile,
    build_rule_quads,
    find_stored_paths,
)
from kg.provenance.source_paths import SourcePaths
from kg.provenance.superclasses import SUPERCLASS, find_affected_superclasses, infer_all, is_premise
from kg.provenance.topics import ABOUT, find_affected_topics, infer_all_topics
from kg.sparql.terms import bind
from kg.store.difference import Delta, canonical_statements, content_sha256
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import GraphChange, Patch, select, term_text
from kg.store.skolem import skolemize
from kg.vocabulary import (
    ABOUT_GRAPH,
    BASE,
    CATALOG_GRAPH,
    CODES_GRAPH,
    OWL,
    PROPERTIES_GRAPH,
    PROV,
    PROV_GRAPH,
    RDF,
    SHAPES_GRAPH,
    SHIPPED_GRAPHS,
    SKOS,
    SUPERCLASS_GRAPH,
    TBOX_GRAPH,
    WD,
    WIKIBASE,
    mint,
    sha256,
)

_FORMAT: Final = "1"
"""Version of the mapping from files to graphs."""


@dataclass(frozen=True, slots=True)
class Inference:
    """A graph that follows from others. Each commit changes it in the same transaction."""

    graph: NamedNode
    rule: Rule
    """The rule that computes it, in a version. With another version all of it is computed again."""
    follow: Callable[[pyoxigraph.Store, Sequence[Delta], Patch], tuple[Set[Quad], Set[Quad]]]
    """Finds the stored and the right quads of all that the differences of a commit may affect."""
    build: Callable[[pyoxigraph.Store], Iterator[Quad]]
    """Computes all of it from the store."""

    def infer(self, store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch) -> Delta | None:
        """Compute the change that follows from a commit that is not written yet, as `Infer`; None if there is none."""
        held, wanted = self.follow(store, deltas, patch)
        removed, added = (canonical_statements(self.graph, quads) for quads in (held - wanted, wanted - held))
        return Delta(self.graph, removed, added, None) if removed or added else None

    def compare(self, store: pyoxigraph.Store) -> Delta | None:
        """Compare the graph, which may have any size, with the quads of `build`; None if they are equal."""
        hashes: set[int] = set()
        missing: list[Quad] = []
        for quad in self.build(store):
            if hash(quad) not in hashes and quad not in store:
                missing.append(quad)
            hashes.add(hash(quad))
        stored = store.quads_for_pattern(None, None, None, self.graph)
        superfluous = [quad for quad in stored if hash(quad) not in hashes]
        if not missing and not superfluous:
            return None
        removed, added = (canonical_statements(self.graph, quads) for quads in (superfluous, missing))
        return Delta(self.graph, removed, added, "" if hashes else None)


NAMES: Final = Rule(
    "wikidata-properties", "1", "a property of Wikidata that no source describes has the names that ship with Quadcite"
)

_SUBJECT: Final = f"<{WD.iri}P"
"""Start of the statements about properties of Wikidata."""
_IS_PROPERTY: Final = f" {RDF.type} {WIKIBASE.Property}"


def find_affected_properties(
    store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch
) -> tuple[set[Quad], set[Quad]]:
    """Find the shipped quads before and after `deltas`, which are not written yet, of the properties they describe."""
    held: set[Quad] = set()
    wanted: set[Quad] = set()
    for name, (come, gone) in _find_property_changes(deltas).items():
        node = NamedNode(name[1:-1])
        wanted |= _build_property(store, node, come, gone)
        held.update(store.quads_for_pattern(node, None, None, PROPERTIES_GRAPH))
    return held, wanted


def infer_all_properties(store: pyoxigraph.Store) -> Iterator[Quad]:
    """Yield the content of `PROPERTIES_GRAPH` for the whole store."""
    for each in wikidata_properties.load_properties().values():
        if any(quad.graph_name != PROPERTIES_GRAPH for quad in store.quads_for_pattern(each.node, None, None, None)):
            yield from _build_property(store, each.node, (), ())
        else:
            yield from (Quad(each.node, predicate, value, PROPERTIES_GRAPH) for predicate, value in each.describe())


Changes = Collection[tuple[NamedNode, str]]
"""Statements about one property that are added or removed, each with its graph."""


def _find_property_changes(deltas: Sequence[Delta]) -> Mapping[str, tuple[Changes, Changes]]:
    """Find the statements about known properties that other graphs gain and lose, by the name of the property."""
    found: dict[str, tuple[set[tuple[NamedNode, str]], set[tuple[NamedNode, str]]]] = {}
    for delta in deltas:
        if delta.graph in (PROPERTIES_GRAPH, PROV_GRAPH):
            continue
        for side, lines in enumerate((delta.added, delta.removed)):
            for line in lines:
                if line.startswith(_SUBJECT):
                    name = line[: line.index(" ")]
                    if name[len(_SUBJECT) - 1 : -1] in wikidata_properties.load_properties():
                        found.setdefault(name, (set(), set()))[side].add((delta.graph, line))
    return found


def _build_property(store: pyoxigraph.Store, node: NamedNode, come: Changes, gone: Changes) -> set[Quad]:
    """Build the shipped description of a property, without what other graphs have after the changes."""
    elsewhere = set(come)
    for quad in store.quads_for_pattern(node, None, None, None):
        graph = quad.graph_name
        if isinstance(graph, NamedNode) and graph not in (PROPERTIES_GRAPH, PROV_GRAPH):
            elsewhere.add((graph, str(quad.triple)))
    elsewhere -= set(gone)
    if any(is_premise(graph) for graph, line in elsewhere if line.endswith(_IS_PROPERTY)):
        return set()
    said = wikidata_properties.load_properties()[node.value.removeprefix(WD.iri)].describe()
    quads = [Quad(node, predicate, value, PROPERTIES_GRAPH) for predicate, value in said]
    lines = {line for _, line in elsewhere}
    return {quad for quad in quads if str(quad.triple) not in lines}


INFERENCES: Final = {
    inference.graph: inference
    for inference in (
        Inference(SUPERCLASS_GRAPH, SUPERCLASS, find_affected_superclasses, infer_all),
        Inference(ABOUT_GRAPH, ABOUT, find_affected_topics, infer_all_topics),
        Inference(PROPERTIES_GRAPH, NAMES, find_affected_properties, infer_all_properties),
        Inference(CATALOG_GRAPH, CATALOG, find_affected_datasets, build_catalog),
    )
}
"""The graphs that follow from others."""
_REFILLED: Final = INFERENCES.keys() - {CATALOG_GRAPH}
"""Those of any size, which do not depend on what they were before."""
RULES_USED: Final = "SELECT ?rule WHERE { GRAPH $prov { $tbox prov:wasGeneratedBy/prov:used ?rule } }"
_CODES: Final = BASE + "vocab/"
_PROPERTIES: Final = f"ontology/{wikidata_properties.FILE}"


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """A file that ships with Quadcite. `name` is its path in the package, `version` the owl:versionInfo in it."""

    name: str
    sha256: str
    version: str | None
    triples: Mapping[NamedNode, Sequence[Triple]]
    """Its triples by graph; none for a graph in `INFERENCES`."""

    @property
    def source(self) -> SourceFile:
        """Its description in ``graph/prov``."""
        return SourceFile(self.sha256, self.name, self.version)


def write_shipped_graphs(store: OxigraphStore) -> bool:
    """Write the shipped graphs, and the superclasses, topics and catalog of all data, unless they are current.

    Returns whether it wrote.
    """
    if is_current(store):
        return False
    named, paths = find_stored_paths(store.query)
    if named.remove:
        SourcePaths(store.directory.path).add(paths)
        store.patch_provenance(named)
    for graph, inference in INFERENCES.items():
        if graph in _REFILLED:
            store.refill(graph, inference.build)
        else:
            store.infer_again(inference.compare)
    replace: dict[NamedNode, Sequence[Quad]] = {
        graph: quads for graph, quads in build_shipped_graphs().items() if graph not in INFERENCES
    }
    # A code that an earlier version did not ship has a graph of its own, written by its loader.
    described = {
        _code_graph(quad.subject)
        for quad in replace[CODES_GRAPH]
        if quad.predicate == SKOS.inScheme and isinstance(quad.subject, NamedNode)
    }
    replace |= dict.fromkeys(described.intersection(store.graphs()), ())
    files = load_shipped_files()
    records = {
        graph: RecordOrigin(
            sha256("".join(file.sha256 for file in files if graph in file.triples)),
            [RowsOf(file.source) for file in files if graph in file.triples],
        )
        for graph in SHIPPED_GRAPHS
    }
    records |= {graph: RecordOrigin("", (), (TBOX_GRAPH,), INFERENCES[graph].rule) for graph in _REFILLED}
    [table] = [file.source for file in files if PROPERTIES_GRAPH in file.triples]
    records[PROPERTIES_GRAPH] = RecordOrigin("", [RowsOf(table)], (table.iri,), NAMES)
    run = Run(Agent("quadcite", __version__), {"source": "shipped files"}, [file.source for file in files])

    def describe(changes: Sequence[GraphChange]) -> Patch:
        # All of them, so that one run explains them after an upgrade that changes a single file.
        others = records.keys() - {change.graph for change in changes} - INFERENCES.keys()
        same = [
            GraphChange(graph, frozenset(), frozenset(), _content_sha256(graph)) for graph in sorted(others, key=str)
        ]
        following = [GraphChange(graph, frozenset(), frozenset(), "") for graph in sorted(_REFILLED, key=str)]
        patch = run.describe(store, records)([*changes, *same, *following])
        rule = INFERENCES[CATALOG_GRAPH].rule
        used = {Quad(run.iri, PROV.used, rule.iri, PROV_GRAPH), *build_rule_quads(rule)}
        return Patch(patch.remove - used, patch.add | used, patch.graphs)

    store.commit(replace, describe)
    return True


def infer_graphs(store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch) -> list[Delta]:
    """Compute the changes of `INFERENCES` that follow from a commit."""
    found = (inference.infer(store, deltas, patch) for inference in INFERENCES.values())
    return [delta for delta in found if delta is not None]


def is_current(store: OxigraphStore) -> bool:
    """Whether the store was last written by this version with these files."""
    return store.contains(build_version())


def build_version() -> Quad:
    """Build the statement of a store that was last written by this version with these files."""
    return Quad(TBOX_GRAPH, OWL.versionInfo, _version(), TBOX_GRAPH)


def find_due_reason(store: OxigraphStore, rule: Rule) -> str | None:
    """Find why the graph of a rule is to be computed as a whole, None if it is not: the last run had another rule."""
    rows = select(store.query, bind(RULES_USED, prov=PROV_GRAPH, tbox=TBOX_GRAPH))
    used = {term_text(row["rule"]) for row in rows}
    if not any(name.startswith(rule.iri.value.removesuffix(rule.version)) for name in used):
        return "never derived"
    return None if rule.iri.value in used and is_current(store) else "new version"


@cache
def build_shipped_graphs() -> Mapping[NamedNode, Sequence[Quad]]:
    """Build the quads of each shipped graph, without those in `INFERENCES`.

    A triple that several graphs would have is in the first of them.
    """
    found: dict[Triple, NamedNode] = {}
    for graph in SHIPPED_GRAPHS:
        for file in load_shipped_files():
            for triple in file.triples.get(graph, ()):
                found.setdefault(triple, graph)
    found[Triple(TBOX_GRAPH, OWL.versionInfo, _version())] = TBOX_GRAPH
    graphs: dict[NamedNode, list[Quad]] = {graph: [] for graph in SHIPPED_GRAPHS if graph not in INFERENCES}
    for triple, graph in found.items():
        graphs[graph].append(Quad(triple.subject, triple.predicate, triple.object, graph))
    return graphs


@cache
def load_shipped_files() -> Sequence[ShippedFile]:
    """Load the modules of the ontology, the suites of shapes, and the table of properties, whose graph is inferred."""
    return [_load_file(name, path) for name, path in _paths().items()]


def find_shipped_files(graph: NamedNode, triple: Triple | None = None, subject: NamedNode | None = None) -> list[str]:
    """Find the hashes of the files of this version that have `triple`, or quads about `subject`, in `graph`."""
    return [
        file.sha256
        for file in load_shipped_files()
        if (graph == PROPERTIES_GRAPH and graph in file.triples)
        or any(triple == each or (triple is None and subject == each.subject) for each in file.triples.get(graph, ()))
    ]


def _load_file(name: str, path: Path) -> ShippedFile:
    content = path.read_bytes()
    if name == _PROPERTIES:
        return ShippedFile(name, sha256(content), None, {PROPERTIES_GRAPH: ()})
    triples = [quad.triple for quad in parse(content, format=RdfFormat.TURTLE)]
    version = next((each.object.value for each in triples if each.predicate == OWL.versionInfo), None)
    found: dict[NamedNode, list[Triple]] = {}
    if name.startswith("shapes/"):
        found[SHAPES_GRAPH] = skolemize(SHAPES_GRAPH, triples)
    else:
        for triple in skolemize(TBOX_GRAPH, triples):
            is_code = isinstance(triple.subject, NamedNode) and triple.subject.value.startswith(_CODES)
            found.setdefault(CODES_GRAPH if is_code else TBOX_GRAPH, []).append(triple)
    return ShippedFile(name, sha256(content), version, found)


def _paths() -> Mapping[str, Path]:
    folders = {"ontology": bundle.folder("ontology"), "shapes": bundle.folder("shapes")}
    found = {f"{name}/{path.name}": path for name, folder in folders.items() for path in sorted(folder.glob("*.ttl"))}
    return {**found, _PROPERTIES: folders["ontology"] / wikidata_properties.FILE}


def _version() -> Literal:
    """Return the version of Quadcite with a hash of the files and of the rules, without parsing them."""
    rules = " ".join(str(inference.rule.iri) for inference in INFERENCES.values())
    files = "".join(f"{name} {sha256(path.read_bytes())}\n" for name, path in _paths().items())
    return Literal(f"{__version__}+sha256.{sha256(f'{_FORMAT} {rules}{chr(10)}{files}')}")


@cache
def _content_sha256(graph: NamedNode) -> str:
    return content_sha256(build_shipped_graphs()[graph])


def _code_graph(code: NamedNode) -> NamedNode:
    """Return the graph in which a loader describes a code that the ontology does not have."""
    return mint("graph", "ref", "code", *map(unquote, code.value.removeprefix(_CODES).split("/")))
