"""What a store offers: a SPARQL 1.1 dataset of named graphs, changed by atomic commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple

from kg.processes.child import Limits

Term = NamedNode | BlankNode | Literal | Triple


@dataclass(frozen=True, slots=True)
class Rows:
    """The finished result of a SELECT: `variables` without question marks, one tuple of terms a row.

    `truncated` says that the query had more rows than the caller's limit.
    """

    variables: tuple[str, ...]
    rows: Sequence[tuple[Term | None, ...]]
    truncated: bool = False

    def __iter__(self) -> Iterator[dict[str, Term]]:
        """Yield each row as the mapping of its bound variables."""
        for row in self.rows:
            yield {name: term for name, term in zip(self.variables, row, strict=True) if term is not None}

    def __len__(self) -> int:
        return len(self.rows)


Result = Rows | bool | list[Triple]
"""SELECT, ASK, and CONSTRUCT or DESCRIBE."""

Query = Callable[[str], Result]
"""Runs a query and returns its finished result: `Store.query`, or the same in a worker."""


def select(query: Query, text: str) -> Rows:
    """Run a SELECT. Raises TypeError when the answer is not rows."""
    result = query(text)
    if not isinstance(result, Rows):
        raise TypeError(f"a SELECT gave {type(result).__name__}, not rows")
    return result


def named_node(term: Term | None) -> NamedNode:
    """Return `term` typed as an IRI. Raises TypeError if it is anything else."""
    if not isinstance(term, NamedNode):
        raise TypeError(f"expected an IRI, got {term}")
    return term


def term_text(term: Term | None) -> str:
    """Return the lexical form of a literal, or an IRI as text. Raises TypeError for any other term."""
    if not isinstance(term, Literal | NamedNode):
        raise TypeError(f"expected a literal or an IRI, got {term}")
    return term.value


@dataclass(frozen=True, slots=True)
class GraphChange:
    """What one commit does to one named graph, in canonical terms."""

    graph: NamedNode
    added: frozenset[Quad]
    removed: frozenset[Quad]
    content_sha256: str | None
    """Hash of the graph after the commit (sorted N-Quads); None when the commit empties it."""


@dataclass(frozen=True, slots=True)
class Patch:
    """What goes with the changes of a commit: single quads of ``graph/prov`` to take out and to put in, and the graphs
    that follow from the changes, each as it is to be.
    """

    remove: frozenset[Quad] = frozenset()
    add: frozenset[Quad] = frozenset()
    graphs: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit did. Nothing changed: same generation, no changes."""

    generation: int
    changes: tuple[GraphChange, ...] = ()

    @property
    def added(self) -> int:
        """Quads added to content graphs."""
        return sum(len(change.added) for change in self.changes)

    @property
    def removed(self) -> int:
        """Quads removed from content graphs."""
        return sum(len(change.removed) for change in self.changes)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counters that the store keeps; reading them costs nothing."""

    generation: int
    quads: int
    graphs: int
    bytes_on_disk: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An immutable checkpoint of the store at `generation`, as a folder that any process may open read-only."""

    generation: int
    path: Path
    release: Callable[[], None] = field(repr=False, compare=False, default=lambda: None)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Snapshotted(Protocol):
    """What queries can be run on: a dataset of which immutable checkpoints can be had."""

    def snapshot(self, at_least: int = 0, *, exactly: int | None = None) -> Snapshot:
        """Return a checkpoint of generation `at_least` or later, or the kept one of `exactly`; the caller releases it.

        Raises GoneError for a generation of which none is kept, and InvalidInputError for one that never was.
        """
        ...


class Store(Snapshotted, Protocol):
    """A SPARQL 1.1 dataset. Calls block, are safe from any thread, and return finished results."""

    def query(self, query: str, *, limit: int | None = None) -> Result:
        """Run a trusted query in this process over the union of all graphs."""
        ...

    def commit(
        self,
        replace: Mapping[NamedNode, Iterable[Quad]],
        describe: Callable[[Sequence[GraphChange]], Patch] | None = None,
    ) -> Commit:
        """Make each graph in `replace` hold exactly the quads given (none: the graph goes), in one atomic step.

        Only the difference to the stored graph is written. `describe` is asked, under the write lock, for what
        `graph/prov` has to say of the graphs that do change, and which graphs follow from them; it is committed in the
        same step.
        """
        ...

    def extend(
        self,
        graph: NamedNode,
        quads: Iterable[Quad],
        describe: Callable[[Sequence[GraphChange]], Patch] | None = None,
    ) -> Commit:
        """Add `quads` to what `graph` holds by then, in one atomic step. Everything else is as with `commit`."""
        ...

    def update(
        self,
        update: str,
        *,
        default_graphs: Sequence[NamedNode] = (),
        named_graphs: Sequence[NamedNode] = (),
        limits: Limits | None = None,
        describe: Callable[[Sequence[GraphChange]], Patch] | None = None,
    ) -> Commit:
        """Run one SPARQL Update, atomically, within `limits`; its WHERE clauses are asked of the graphs given."""
        ...

    def graph(self, graph: NamedNode) -> list[Quad]:
        """Return the quads of one named graph."""
        ...

    def graphs(self) -> list[NamedNode]:
        """Return the names of all graphs."""
        ...

    def dump(self, output: IO[bytes], media_type: RdfFormat, graph: NamedNode | None = None) -> None:
        """Write all quads, or those of one graph."""
        ...

    def statistics(self) -> Statistics:
        """Return the kept counters."""
        ...

    def close(self) -> None:
        """Flush and let go of the data directory."""
        ...
