"""The records and files from which a graph can be loaded again.

`kg.provenance` finds them by queries, which cannot be used on a store that may be damaged: a query over a damaged block
can take memory without bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyoxigraph import Literal, NamedNode, Store

from kg.vocabulary import KG, PROV, PROV_GRAPH, SOURCED

_ORIGINS: Final = 1_000


def find_origins(store: Store, graph: NamedNode) -> tuple[list[str], list[list[str]]]:
    """Find the records that a graph is or follows from, and their files: name, and identifier of the path."""
    records: set[str] = set()
    files: set[tuple[str, str]] = set()
    try:
        pending, seen = [graph], {graph}
        while pending and len(seen) < _ORIGINS:
            each = pending.pop()
            if each.value.startswith(SOURCED):
                records.add(each.value)
            for origin in _find_sources(store, each):
                if origin in seen:
                    continue
                seen.add(origin)
                names = _values(store, origin, KG.location)
                if not names:
                    pending.append(origin)
                    continue
                files.update(
                    (name, source) for name in names for source in _values(store, origin, PROV.specializationOf)
                )
                if not records:  # a graph that several records share: all records of the file
                    records.update(
                        quad.subject.value
                        for quad in store.quads_for_pattern(None, PROV.wasDerivedFrom, origin, PROV_GRAPH)
                        if isinstance(quad.subject, NamedNode) and quad.subject.value.startswith(SOURCED)
                    )
    except (OSError, RuntimeError):  # the provenance is damaged as well
        pass
    return sorted(records), [list(file) for file in sorted(files)]


def _find_sources(store: Store, graph: NamedNode) -> Iterator[NamedNode]:
    for quad in store.quads_for_pattern(graph, PROV.wasDerivedFrom, None, PROV_GRAPH):
        if isinstance(quad.object, NamedNode):
            yield quad.object
    for quad in store.quads_for_pattern(graph, PROV.qualifiedDerivation, None, PROV_GRAPH):
        if isinstance(quad.object, NamedNode):
            for entity in store.quads_for_pattern(quad.object, PROV.entity, None, PROV_GRAPH):
                if isinstance(entity.object, NamedNode):
                    yield entity.object


def _values(store: Store, subject: NamedNode, predicate: NamedNode) -> list[str]:
    return [
        quad.object.value
        for quad in store.quads_for_pattern(subject, predicate, None, PROV_GRAPH)
        if isinstance(quad.object, NamedNode | Literal)
    ]
