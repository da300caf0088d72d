"""Audiences: the graphs whose statements a principal may read, and the view of the graph with these alone.

Policies decide the action ``see`` on datasets of the catalog, and on families of graphs for all others: a graph of a
source is seen with its dataset, a graph that was computed from others with all of these, and any other graph with the
family that its name begins with, such as ``graph/ref/`` or ``graph/prov``. A graph that was computed from graphs of no
dataset, such as those of places, also needs its own family.

A view fails closed. Its queries get the graphs of the audience as their dataset, so that no form of SPARQL reaches
another; its index refuses every call, and so does its store, except for queries and counts. Only the actions in `AWARE`
are possible on a view: policies cannot allow the others to a principal who sees a part of the data.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final, NoReturn, Unpack, cast

from pyoxigraph import Literal, NamedNode

from kg.access.actors import Actor
from kg.access.policies import Policies, Resource
from kg.errors import ForbiddenError
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.queries.pool import UNLIMITED, Answer, Cancellation, Options, QueryPool, Streamed
from kg.search.protocol import SearchIndex
from kg.sparql.terms import bind
from kg.store.protocol import Rows, State, Statistics, Store, Visibility, term_text
from kg.vocabulary import BASE, CATALOG_GRAPH, PROV_GRAPH, SOURCED, iri_prefix

SEE: Final = "see"
"""The action on a dataset, or on a family of graphs, whose statements are read in any way."""

AWARE: Final = frozenset({"sparql", "sparql.query", "graphs.read"})
"""The actions that are possible for a principal who sees a part of the data."""

KEPT_S: Final = 60.0
"""Seconds for which an audience counts, since policies may depend on the time. A commit or a changed policy ends it."""
_KEPT: Final = "audiences"
_GRAPHS: Final = "graphs of audiences"
_MEMORY: Final = 5_000
"""Size of the memory of a view."""
_DEPTH: Final = 4
"""Steps from a computed graph to the record that it was computed from."""
_DATASETS: Final = iri_prefix("dataset")
_GRAPH: Final = BASE + "graph/"

GRAPHS: Final = "SELECT DISTINCT ?graph WHERE { GRAPH ?graph {} }"
SOURCES: Final = """
SELECT ?graph ?source WHERE {
  GRAPH $prov { ?graph prov:wasDerivedFrom ?source } FILTER(STRSTARTS(STR(?graph), $graphs))
}"""
COUNT: Final = """
SELECT (COUNT(*) AS ?quads) (COUNT(DISTINCT ?graph) AS ?graphs) WHERE { GRAPH ?graph { ?subject ?property ?value } }"""
DATASETS: Final = """
SELECT ?dataset ?loader ?title ?snapshot WHERE {
  GRAPH $catalog { ?dataset a dcat:Dataset ; kg:loader ?loader ; dcterms:title ?title ; prov:wasDerivedFrom ?snapshot }
}"""


@dataclass(frozen=True, slots=True)
class Audience:
    """The graphs that a principal sees of one generation of the store."""

    graphs: frozenset[str]
    generation: int

    @property
    def key(self) -> str:
        """The name of the set of graphs."""
        return hashlib.sha256("\n".join(sorted(self.graphs)).encode()).hexdigest()[:32]


def is_restricted(policies: Policies, actor: Actor) -> bool:
    """Return whether `actor` may see a part of the data only, or none."""
    return not policies.permits_all(actor, SEE)


def find_audience(kg: KnowledgeGraph, policies: Policies, actor: Actor) -> Audience | None:
    """Find the graphs that `actor` sees in the newest generation; None: all of them. Blocks."""
    if not is_restricted(policies, actor):
        return None
    with kg.reading():
        generation = kg.generation
        key = (_KEPT, actor, policies.current.version, generation)
        known: tuple[Audience, float] | None = kg.memory.get(key)
        if known is not None and time.monotonic() - known[1] < KEPT_S:
            return known[0]
        graphs: _Graphs | None = kg.memory.get((_GRAPHS, generation))
        if graphs is None:
            graphs = _Graphs(kg)
            kg.memory.keep((_GRAPHS, generation), graphs, graphs.weight)
        seen = {resource: policies.decide(actor, SEE, resource).allowed for resource in graphs.resources}
        found = Audience(frozenset(graphs.find_seen(seen)), generation)
        kg.memory.keep(key, (found, time.monotonic()), _weigh(len(found.graphs)))
        return found


def view(kg: KnowledgeGraph, audience: Audience | None) -> KnowledgeGraph:
    """Get the view of the graph that has the graphs of an audience alone; without one, the graph itself."""
    if audience is None:
        return kg
    key = ("view", audience.key)
    if (known := kg.memory.get(key)) is not None:
        return cast(KnowledgeGraph, known)
    pool, raw = (_Pool(each, audience.graphs) for each in (kg.pool, kg.raw_pool))
    # No file of the data directory is one of the view.
    settings = kg.settings.model_copy(update={"data_dir": kg.settings.data_dir / "no-files-of-views"})
    made = KnowledgeGraph(
        settings,
        cast(Store, _Store(kg.store, pool)),
        cast(SearchIndex, _Refusing("search index")),
        cast(QueryPool, pool),
        cast(QueryPool, raw),
        policies=kg.policies,
        memory=Memory(_MEMORY),
        audience=audience.graphs,
    )
    return kg.memory.keep(key, made, _MEMORY)


class _Graphs:
    """The graphs of one state of the store, with the resources that decide about each."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._names: Final = [term_text(row["graph"]) for row in _select(kg, GRAPHS)]
        self._sources: Final[dict[str, set[str]]] = defaultdict(set)
        for row in _select(kg, bind(SOURCES, prov=PROV_GRAPH, graphs=Literal(_GRAPH))):
            self._sources[term_text(row["graph"])].add(term_text(row["source"]))
        self._datasets: Final[dict[str, set[Resource]]] = defaultdict(set)
        for row in _select(kg, bind(DATASETS, catalog=CATALOG_GRAPH)):
            attributes = {"loader": term_text(row["loader"]), "title": term_text(row["title"])}
            name = term_text(row["dataset"]).removeprefix(_DATASETS)
            dataset = Resource("Dataset", name, attributes, (("Family", name_family(SOURCED + "x")),))
            self._datasets[term_text(row["snapshot"])].add(dataset)
        self._resources: Final[dict[str, frozenset[Resource]]] = {}
        for graph in self._names:
            self._resources[graph] = self._find_resources(graph)

    @property
    def weight(self) -> int:
        return _weigh(len(self._names))

    @property
    def resources(self) -> set[Resource]:
        return {resource for found in self._resources.values() for resource in found}

    def find_seen(self, seen: Mapping[Resource, bool]) -> list[str]:
        """Find the graphs of which all resources are seen."""
        return [graph for graph, found in self._resources.items() if all(seen[resource] for resource in found)]

    def _find_resources(self, graph: str, depth: int = 0) -> frozenset[Resource]:
        """Find what decides about a graph: the datasets that it, or the graphs it was computed from, may be of."""
        family = frozenset({Resource("Family", name_family(graph))})
        sources = self._sources.get(graph, set())
        if graph.startswith(SOURCED):
            loader = graph.removeprefix(SOURCED).partition("/")[0]
            found = {each for source in sources for each in self._datasets.get(source, ())}
            return frozenset(each for each in found if each.attributes["loader"] == loader) or family
        computed = [source for source in sources if source.startswith(_GRAPH)]
        if not computed or depth == _DEPTH:
            return family
        decisive = frozenset(each for source in computed for each in self._find_resources(source, depth + 1))
        # Such a graph can have statements about records of any dataset: the languages of texts, from their places.
        return decisive if any(each.kind == "Dataset" for each in decisive) else decisive | family


def _weigh(graphs: int) -> int:
    """Compute the weight of a set of graphs in the memory, which keeps it also where there are very many."""
    return 1 + graphs // 100


def name_family(graph: str) -> str:
    """Name the family of a graph for policies: ``graph/prov``, or ``graph/ref/`` for the graphs below it."""
    head, slash, _ = graph.removeprefix(_GRAPH).partition("/")
    return f"graph/{head}{slash}" if graph.startswith(_GRAPH) else "other"


class _Pool:
    """Query workers that read the graphs of an audience alone."""

    def __init__(self, pool: QueryPool, graphs: frozenset[str]) -> None:
        self._pool, self._graphs = pool, graphs

    def run(self, query: str, *, cancellation: Cancellation | None = None, **options: Unpack[Options]) -> Answer:
        """Run a query over the audience."""
        options["audience"] = self._graphs
        return self._pool.run(query, cancellation=cancellation, **options)

    def stream(
        self, query: str, *, media_type: str, cancellation: Cancellation | None = None, **options: Unpack[Options]
    ) -> Streamed:
        """Begin a query over the audience."""
        options["audience"] = self._graphs
        return self._pool.stream(query, media_type=media_type, cancellation=cancellation, **options)

    def lease(self, exactly: int | None = None) -> State:
        """Get a generation. Its visibility names no graph that the audience does not have."""
        state = self._pool.lease(exactly)
        return State(state.generation, release=state.release, visibility=_Visible(state.visibility, self._graphs))

    def __getattr__(self, name: str) -> NoReturn:
        raise _refuse(f"the queries ({name})")


class _Visible:
    """The visibility of the graphs of an audience."""

    def __init__(self, visibility: Visibility, graphs: frozenset[str]) -> None:
        self._visibility, self._graphs = visibility, graphs

    def exclude(self, query: str, *, users: bool = True) -> str:
        """Rewrite a query. Graphs outside of the audience may be named in it: it does not read them anyway."""
        return self._visibility.exclude(query, users=users)

    def find_graphs(self, properties: Set[str] | None) -> set[NamedNode]:
        """Find the graphs of users in the audience."""
        return {graph for graph in self._visibility.find_graphs(properties) if graph.value in self._graphs}


class _Store:
    """The counters of a store, of the graphs of an audience; every other use of it is refused."""

    def __init__(self, store: Store, pool: _Pool) -> None:
        self._store, self._pool = store, pool

    def statistics(self) -> Statistics:
        """Count the quads and graphs of the audience."""
        answer = self._pool.run(COUNT, limit=UNLIMITED)
        assert isinstance(answer.result, Rows)  # noqa: S101 -- of a SELECT
        [row] = answer.result
        quads, graphs = (int(term_text(row[name])) for name in ("quads", "graphs"))
        return Statistics(answer.generation, quads, graphs, 0)

    def find_last_change(self, reads: Set[str] | None, *, users: bool = False) -> int:
        """Find the last generation that changed statements, in any graph."""
        return self._store.find_last_change(reads, users=users)

    def find_last_change_of(self, subject: str) -> int:
        """Find the last generation that changed statements about a node, in any graph."""
        return self._store.find_last_change_of(subject)

    def __getattr__(self, name: str) -> NoReturn:
        raise _refuse(f"the store ({name})")


class _Refusing:
    """A part of the graph that has no view: every use of it is refused."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        raise _refuse(f"the {self._name} ({name})")


def _refuse(part: str) -> ForbiddenError:
    return ForbiddenError(
        f"This needs {part}, which answers only about the whole graph. You may read a part of it: ask in SPARQL, "
        "without kg:search."
    )


def _select(kg: KnowledgeGraph, query: str) -> Rows:
    answer = kg.pool.run(query, limit=UNLIMITED, exactly=kg.state.generation)
    assert isinstance(answer.result, Rows)  # noqa: S101 -- of a SELECT
    return answer.result
