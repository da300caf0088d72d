"""Statements of one graph in a file: a mapping like that of `kg.store.difference`, too large to be in memory."""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_left
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

END: Final = " .\n"
"""What follows a statement in its file. The lines are sorted and differ."""


class StatementFile(Mapping[str, Quad]):
    """The quads of `graph` by their statements. Each iteration reads the file again."""

    def __init__(self, path: Path, graph: NamedNode, size: int) -> None:
        self._path, self._graph, self._size = path, graph, size
        self._lines: _Lines | None = None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        with self._path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[: -len(END)]

    def __contains__(self, statement: object) -> bool:
        if not self._size or not isinstance(statement, str):
            return False
        if self._lines is None:
            self._lines = _Lines(self._path)
        return statement in self._lines

    def __getitem__(self, statement: str) -> Quad:
        if statement not in self:
            raise KeyError(statement)
        [quad] = parse(statement + END, RdfFormat.N_TRIPLES)
        return Quad(quad.subject, quad.predicate, quad.object, self._graph)

    def items(self) -> ItemsView[str, Quad]:
        """Return the statements with their quads, reading the file once."""
        return _Items(self)

    def values(self) -> ValuesView[Quad]:
        """Return the quads, reading the file once."""
        return _Values(self)

    def quads(self) -> Iterator[Quad]:
        """Yield the quads."""
        graph = self._graph
        for quad in parse(path=self._path, format=RdfFormat.N_TRIPLES):
            yield Quad(quad.subject, quad.predicate, quad.object, graph)

    def as_set(self) -> AbstractSet[Quad]:
        """Return the quads as a set that reads the file."""
        return _QuadSet(self)

    def to_statement(self, quad: Quad) -> str | None:
        """Return the statement of a quad of this graph; None for a quad of another one."""
        return str(quad)[: -len(f" {self._graph}")] if quad.graph_name == self._graph else None


class _Items(ItemsView[str, Quad]):
    def __init__(self, statements: StatementFile) -> None:
        super().__init__(statements)
        self._statements = statements

    def __iter__(self) -> Iterator[tuple[str, Quad]]:
        return zip(self._statements, self._statements.quads(), strict=True)


class _Values(ValuesView[Quad]):
    def __init__(self, statements: StatementFile) -> None:
        super().__init__(statements)
        self._statements = statements

    def __iter__(self) -> Iterator[Quad]:
        return self._statements.quads()


class _QuadSet(AbstractSet[Quad]):
    def __init__(self, statements: StatementFile) -> None:
        self._statements = statements

    @classmethod
    def _from_iterable(cls, it: Iterable[Quad]) -> AbstractSet[Quad]:  # type: ignore[override]  # a set in memory
        return frozenset(it)

    def __len__(self) -> int:
        return len(self._statements)

    def __iter__(self) -> Iterator[Quad]:
        return self._statements.quads()

    def __contains__(self, quad: object) -> bool:
        return isinstance(quad, Quad) and self._statements.to_statement(quad) in self._statements


class _Lines:
    """The sorted lines of a file, found by bisection."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._starts = array("Q", [0])
        while end := self._data.find(b"\n", self._starts[-1]) + 1:
            self._starts.append(end)

    def __contains__(self, statement: str) -> bool:
        wanted = statement.encode()
        places = range(len(self._starts) - 1)
        place = bisect_left(places, wanted, key=self._get)
        return place in places and self._get(place) == wanted

    def _get(self, place: int) -> bytes:
        """Get a statement without its end, which could change the order."""
        return self._data[self._starts[place] : self._starts[place + 1] - len(END)]


def write_statements(path: Path, statements: Iterable[str]) -> int:
    """Write sorted statements to a file and return their number."""
    written = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for statement in statements:
            file.write(statement + END)
            written += 1
    return written
