"""Locates validation results in the source: the file and row that a node was loaded from, by ``graph/prov``.

Its `main` runs the process of a validation (`kg.shacl.child`) whose report contains these locations. It is not in
`kg.shacl`, which may not import provenance.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.provenance.load_records import find_row, parse_rows
from kg.shacl import child
from kg.shacl.report import Location, Violation
from kg.shacl.report_writers import Locate
from kg.store.protocol import Term
from kg.vocabulary import KG, PROV, PROV_GRAPH, SCHEMA

T = TypeVar("T")

_UNITS: Final = 4_000_000
"""Maximum cached positions and rows of text units, 8 bytes each. Results are not ordered by graph."""

_WHOLE: Final = re.compile("[0-9]{1,18}")

_DEPTH: Final = 5
"""Maximum derivation steps from a graph to its file."""

_LOOKED_AT: Final = 1_000
"""Maximum quads of one node that are searched for its graphs."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A file that a graph was loaded from, with the rows of its text units, in their order."""

    document: str
    rows: Sequence[int] = ()


class _Kept(Generic[T]):
    """A cache of values by graph, limited by their total size. The oldest is evicted first."""

    def __init__(self, read: Callable[[NamedNode], T], size: Callable[[T], int]) -> None:
        self._read, self._size = read, size
        self._values: OrderedDict[NamedNode, T] = OrderedDict()
        self._total = 0

    def __call__(self, graph: NamedNode) -> T:
        if graph not in self._values:
            value = self._values[graph] = self._read(graph)
            self._total += self._size(value)
            while self._total > _UNITS and len(self._values) > 1:
                self._total -= self._size(self._values.popitem(last=False)[1])
        return self._values[graph]


class Locator:
    """Finds the source of nodes of `store`, by lookups of some microseconds each."""

    def __init__(self, store: Store, find_path: Callable[[str], str | None] = lambda source: None) -> None:
        """`find_path` finds the path of a source on this machine. Without one, files have the names in the graph."""
        self._store = store
        self._find_path = find_path
        self._parts = _Kept(self._read_parts, lambda parts: 50 + sum(len(part.rows) for part in parts))
        self._positions = _Kept(self._read_positions, lambda positions: 50 + len(positions))

    def locate(self, violation: Violation) -> Location | None:
        """Find the file, and the row if any, that the triple or focus node of a result was loaded from.

        A node in several graphs is located in the first of them by name. Data written by a request has no file.
        """
        for graph in self._homes(violation):
            if parts := self._parts(graph):
                return self._place(parts, graph, violation.focus)
        return None

    def _homes(self, violation: Violation) -> Iterator[NamedNode]:
        """Yield the graphs that the result may be about, the most likely first."""
        if violation.graph is not None:
            yield violation.graph
        focus, path = violation.focus, violation.path
        if focus is None:
            return
        if isinstance(path, NamedNode) and violation.value is not None and not isinstance(focus, Literal):
            yield from self._named_by(focus, path, violation.value)
        if not isinstance(focus, Literal):
            yield from self._named_by(focus, None, None)
        yield from self._named_by(None, None, focus)

    def _named_by(self, subject: Term | None, predicate: NamedNode | None, value: Term | None) -> list[NamedNode]:
        quads = islice(self._store.quads_for_pattern(subject, predicate, value, None), _LOOKED_AT)  # type: ignore[arg-type]
        graphs = {quad.graph_name for quad in quads if isinstance(quad.graph_name, NamedNode)} - {PROV_GRAPH}
        return sorted(graphs, key=lambda graph: graph.value)

    def _place(self, parts: tuple[_Part, ...], graph: NamedNode, focus: Term | None) -> Location:
        position = None if focus is None or isinstance(focus, Literal) else self._position(focus, graph)
        if position is not None and (place := find_row(self._rank(position, graph), (part.rows for part in parts))):
            return Location(parts[place[0]].document, row=place[1])
        single = len(parts) == 1 and len(set(parts[0].rows)) == 1
        return Location(parts[0].document, row=parts[0].rows[0] if single else None)

    def _position(self, focus: Term, graph: NamedNode) -> int | None:
        for quad in self._store.quads_for_pattern(focus, SCHEMA.position, None, graph):  # type: ignore[arg-type]
            return _number(quad)
        return None

    def _rank(self, position: int, graph: NamedNode) -> int:
        """Get the rank of a position in a graph: the rows of a record are in the order of its units."""
        return bisect_left(self._positions(graph), position)

    def _read_positions(self, graph: NamedNode) -> Sequence[int]:
        found = map(_number, self._store.quads_for_pattern(None, SCHEMA.position, None, graph))
        return array("q", sorted({position for position in found if position is not None}))

    def _read_parts(self, graph: NamedNode, depth: int = 0) -> tuple[_Part, ...]:
        said = self._said(graph, PROV.qualifiedDerivation)
        derivations = sorted((node for node in said if isinstance(node, NamedNode)), key=self._order)
        if derivations:
            made_of = [(each, rows) for node in derivations for each, rows in self._derived(node, PROV.entity)]
        else:
            made_of = list(self._derived(graph, PROV.wasDerivedFrom))
        parts: list[_Part] = []
        for source, rows in made_of:
            places = self._places(source)
            if places and not self._said(source, PROV.wasAttributedTo):
                parts.append(_Part(places[0], rows))
            elif not places and depth < _DEPTH:
                parts += (_Part(part.document) for part in self._read_parts(source, depth + 1))
        return tuple(parts)

    def _places(self, snapshot: NamedNode) -> list[str]:
        """Get the paths of a snapshot, else its names."""
        sources = (term.value for term in self._said(snapshot, PROV.specializationOf) if isinstance(term, NamedNode))
        paths = sorted(filter(None, map(self._find_path, sources)))
        return paths or sorted(term.value for term in self._said(snapshot, KG.location) if isinstance(term, Literal))

    def _derived(self, node: NamedNode, relation: NamedNode) -> Iterator[tuple[NamedNode, Sequence[int]]]:
        rows = [term.value for term in self._said(node, KG.sourceRows) if isinstance(term, Literal)]
        for source in self._said(node, relation):
            if isinstance(source, NamedNode):
                yield source, array("q", parse_rows(rows[0]) if rows else ())

    def _order(self, node: Term) -> int:
        found = self._store.quads_for_pattern(node, SCHEMA.position, None, PROV_GRAPH)  # type: ignore[arg-type]
        return next((number for number in map(_number, found) if number is not None), 0)

    def _said(self, subject: Term, predicate: NamedNode) -> list[Term]:
        found = self._store.quads_for_pattern(subject, predicate, None, PROV_GRAPH)  # type: ignore[arg-type]
        return sorted((quad.object for quad in found), key=str)


def _number(quad: Quad) -> int | None:
    value = quad.object
    return int(value.value) if isinstance(value, Literal) and _WHOLE.fullmatch(value.value) else None


def build_locate(store: Store) -> Locate:
    """Build the function that locates results about `store`."""
    return Locator(store).locate


def main() -> None:
    """Run the process."""
    child.main(build_locate)
