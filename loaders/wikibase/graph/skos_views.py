"""Graphs derived from those of a load, in the same commit: the SKOS views of Wikibase items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.settings import Settings
from kg.sparql.terms import bind
from kg.store.protocol import Store, select
from kg.vocabulary import DERIVED, OWL, SOURCED
from loaders.wikibase.instances import Instance, with_base
from loaders.wikibase.skos import build_view, find_cycles

REDIRECTS: Final = """
SELECT ?old ?new WHERE { GRAPH ?g { ?old owl:sameAs ?new } FILTER(STRSTARTS(STR(?g), $prefix)) }"""

REFERRERS: Final = """
SELECT DISTINCT ?g WHERE { VALUES ?named { $named } GRAPH ?g { ?s ?p ?named } FILTER(STRSTARTS(STR(?g), $prefix)) }"""

BROADER: Final = """
SELECT ?below ?above WHERE {
  { GRAPH ?g { ?below skos:broader ?above } } UNION { GRAPH ?g { ?above skos:narrower ?below } }
  FILTER(STRSTARTS(STR(?g), $prefix))
}"""

REMOTE: Final = SOURCED + "wikibase-remote/"
"""The graphs of entities of Wikidata that another server answered with (`loaders.wikibase.graph.remote_entities`)."""

VIEW: Final = Rule("skos", "1", "the SKOS view of an item, from its labels and its best-ranked statements")

_SOURCES: Final = SOURCED + "wikibase/"
_VIEWS: Final = DERIVED + "skos/"


class Views:
    """The views of items, with the Wikibases `known` by the name in their graphs, and others by their IRIs."""

    def __init__(self, known: dict[str, Instance], settings: Settings) -> None:
        self.known = known
        self.settings: Final = settings
        self.changed: set[str] = set()
        """The names of the Wikibases whose views changed."""

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Return the views that change with a commit of entity graphs, each with its sources.

        If an item becomes, or is no longer, merged into another, the views of the items that link to it are derived
        again.
        """
        found: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = _replace_remote(store, replace)
        by_name: dict[str, list[tuple[str, NamedNode]]] = defaultdict(list)
        for graph in replace:
            name, _, entity_id = _local_name(graph).rpartition("/")
            if name and entity_id.startswith("Q"):
                by_name[name].append((entity_id, graph))
        for name, graphs in by_name.items():
            instance = self.known.get(name) or self._find_instance(graphs, replace)
            self.changed.add(name)
            if instance is None:  # it only loses some of its entities
                found |= {_view_of(graph): ((), _made_from(graph)) for _, graph in graphs}
                continue
            redirects = _redirects(store, name)
            quads = {graph: (entity_id, replace[graph]) for entity_id, graph in graphs}
            merged = _merged(redirects, ((instance.entity(each).value, said) for each, said in quads.values()))
            for graph in self._referrers(store, name, merged) if merged else ():
                entity_id = graph.value.rpartition("/")[2]
                if entity_id.startswith("Q"):
                    quads.setdefault(graph, (entity_id, store.graph(graph)))
            for graph, (entity_id, said) in quads.items():
                found[_view_of(graph)] = (build_view(instance, entity_id, said, redirects), _made_from(graph))
        return found

    def _find_instance(
        self, graphs: Sequence[tuple[str, NamedNode]], replace: Mapping[NamedNode, Sequence[Quad]]
    ) -> Instance | None:
        """Find the Wikibase of these items by the IRI of one of them."""
        for entity_id, graph in graphs:
            end = f"entity/{entity_id}"
            for quad in replace[graph]:
                if isinstance(quad.subject, NamedNode) and quad.subject.value.endswith(end):
                    return with_base(self.settings, quad.subject.value.removesuffix(end))
        return None

    def _referrers(self, store: Store, name: str, items: Iterable[str]) -> list[NamedNode]:
        prefix = Literal(f"{_SOURCES}{name}/")
        return [graph for (graph,) in _rows(store, bind(REFERRERS, named=[*map(NamedNode, items)], prefix=prefix))]

    def cycles(self, store: Store) -> list[str]:
        """Return warnings about cycles in the changed hierarchies: concepts that are broader than themselves."""
        told = []
        for name in sorted(self.changed):
            above: dict[str, set[str]] = defaultdict(set)
            for below, higher in _rows(store, bind(BROADER, prefix=Literal(f"{_VIEWS}{name}/"))):
                above[below.value].add(higher.value)
            for circle in find_cycles(above):
                told.append("cycle of broader: " + " -> ".join([*circle, circle[0]]))
        return told


def _replace_remote(
    store: Store, replace: Mapping[NamedNode, Sequence[Quad]]
) -> dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]]:
    """Empty the graphs of entities that another server answered with, and that are loaded from a source now."""
    local = f"{_SOURCES}wikidata/"
    found: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for graph in replace:
        remote = NamedNode(REMOTE + graph.value.removeprefix(local))
        if graph.value.startswith(local) and replace[graph] and store.graph(remote):
            found[remote] = ((), _made_from(graph))
    return found


def _redirects(store: Store, name: str) -> dict[str, str]:
    found = _rows(store, bind(REDIRECTS, prefix=Literal(f"{_SOURCES}{name}/")))
    return {old.value: new.value for old, new in found}


def _rows(store: Store, query: str) -> Iterator[tuple[NamedNode, ...]]:
    """Return the rows of a SELECT that consist of IRIs."""
    for row in select(store.query, query).rows:
        nodes = tuple(term for term in row if isinstance(term, NamedNode))
        if len(nodes) == len(row):
            yield nodes


def _made_from(graph: NamedNode) -> RecordOrigin:
    return RecordOrigin("", (), (graph,), VIEW)


def _view_of(graph: NamedNode) -> NamedNode:
    return NamedNode(_VIEWS + _local_name(graph))


def _local_name(graph: NamedNode) -> str:
    """Get the Wikibase and the id of an entity by its graph, as in ``wikidata/Q42``; "" for another graph."""
    if graph.value.startswith(REMOTE):
        return f"wikidata/{graph.value.removeprefix(REMOTE)}"
    return graph.value.removeprefix(_SOURCES) if graph.value.startswith(_SOURCES) else ""


def _merged(redirects: dict[str, str], entities: Iterable[tuple[str, Sequence[Quad]]]) -> set[str]:
    """Update `redirects` and return the items that were, or are now, merged into another, also indirectly."""
    changed = set()
    for entity, quads in entities:
        target = quads[0].object if quads and quads[0].predicate == OWL.sameAs else None
        if isinstance(target, NamedNode) and redirects.get(entity) != target.value:
            redirects[entity] = target.value
            changed.add(entity)
        elif target is None and redirects.pop(entity, None) is not None:
            changed.add(entity)
    while changed and (behind := {old for old, new in redirects.items() if new in changed} - changed):
        changed |= behind
    return changed
