"""The interface of a store: a SPARQL 1.1 dataset of named graphs, changed by atomic commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Final, Protocol, Self, TypeVar

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kg.processes.child import Limits
from kg.sparql.terms import Bindable, bind
from kg.store.payloads import Payload

Term = NamedNode | BlankNode | Literal | Triple
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows:
    """The complete result of a SELECT: `variables` without question marks, one tuple of terms per row.

    `truncated` is true if the query has more rows than the caller's limit.
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
"""The result of SELECT, of ASK, and of CONSTRUCT or DESCRIBE."""

Query = Callable[[str], Result]
"""Runs a query and returns its complete result: `Store.query`, or the same in a worker."""


def select(query: Query, text: str) -> Rows:
    """Run a SELECT. Raises TypeError if the result is not Rows."""
    result = query(text)
    if not isinstance(result, Rows):
        raise TypeError(f"expected the rows of a SELECT, got {type(result).__name__}")
    return result


AT_ONCE: Final = 200
"""Values that a query is bound to at a time."""


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` of the values: as many as one query, commit or request takes."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def select_each(
    query: Query, text: str, name: str, values: Iterable[Bindable], **others: Bindable | Sequence[Bindable]
) -> Iterator[dict[str, Term]]:
    """Yield the rows of a SELECT about many values, of which `AT_ONCE` are bound to ``$name`` at a time."""
    for part in batched(values, AT_ONCE):
        yield from select(query, bind(text, **{name: part}, **others))


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
    """The change of one named graph by one commit, in canonical terms."""

    graph: NamedNode
    added: AbstractSet[Quad]
    removed: AbstractSet[Quad]
    content_sha256: str | None
    """Hash of the graph after the commit (sorted N-Quads); None if the commit empties it."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a graph with a payload that is not written yet.

    `before` and `after` are its numbers of quads, `characters` the size of the quads afterwards, written in full, and
    `files` the N-Triples afterwards, those of the payload as they were sent.
    """

    before: int
    after: int
    characters: int
    files: Sequence[Path]

    def __iter__(self) -> Iterator[Triple]:
        """Yield the triples in the files."""
        for path in self.files:
            yield from (quad.triple for quad in parse(path=path, format=RdfFormat.N_TRIPLES))


@dataclass(frozen=True, slots=True)
class Patch:
    """Changes that accompany a commit: quads to remove from and add to ``graph/prov``, and the new content of graphs
    derived from the committed ones.

    Derived graphs can also be *invalidated*, if their removal takes long: a later commit removes them, and until then
    trusted queries do not read them (`Visibility`). ``graph/prov`` has the time
    (prov:invalidatedAtTime).
    """

    remove: frozenset[Quad] = frozenset()
    add: frozenset[Quad] = frozenset()
    graphs: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    invalidated: Collection[NamedNode] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """The result of a commit. If nothing changed, the generation is the previous one and `changes` is empty."""

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
    """Counters of the store; reading them takes constant time."""

    generation: int
    quads: int
    graphs: int
    bytes_on_disk: int


Describe = Callable[[Sequence[GraphChange]], Patch]
"""Returns the accompanying changes of a commit with these changes."""


class Visibility(Protocol):
    """Which graphs trusted queries do not read in one state of the store: those that people write, and invalidated ones
    (`Patch`)."""

    def exclude(self, query: str, *, users: bool = True) -> str:
        """Rewrite a trusted query so that it does not read them; without `users` it does not read invalidated ones."""
        ...

    def find_graphs(self, properties: AbstractSet[str] | None) -> set[NamedNode]:
        """Find the graphs that people wrote with any of these properties; None: with any property."""
        ...


class Everything:
    """The visibility of a dataset without such graphs."""

    def exclude(self, query: str, *, users: bool = True) -> str:
        """Return the query."""
        return query

    def find_graphs(self, properties: AbstractSet[str] | None) -> set[NamedNode]:
        """Return no graph."""
        return set()


@dataclass(frozen=True, slots=True)
class State:
    """A generation of the store. Until it is released, a checkpoint of it exists or can be written."""

    generation: int
    release: Callable[[], None] = field(repr=False, compare=False, default=lambda: None, kw_only=True)
    visibility: Visibility = field(repr=False, compare=False, default=Everything(), kw_only=True)
    """Which graphs trusted queries do not read in it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(frozen=True, slots=True)
class Snapshot(State):
    """An immutable checkpoint of the store at `generation`, as a folder that any process may open read-only."""

    path: Path
    is_live: bool = False
    """Whether it is the store itself, which is not written to now, but may be later."""


class Snapshotted(Protocol):
    """A dataset that provides immutable checkpoints to run queries on."""

    def snapshot(self, at_least: int = 0, *, exactly: int | None = None) -> Snapshot:
        """Get a checkpoint of generation `at_least` or later, or the existing one of `exactly`; the caller releases it.

        Raises GoneError for a generation without a checkpoint, and InvalidInputError for one that does not exist.
        """
        ...

    def pin(self, exactly: int | None = None) -> State:
        """Get the newest generation, or that of `exactly`, without writing a checkpoint; the caller releases it.

        Raises the errors of `snapshot`.
        """
        ...


class Store(Snapshotted, Protocol):
    """A SPARQL 1.1 dataset. Calls block, are thread-safe, and return complete results."""

    def query(self, query: str, *, limit: int | None = None) -> Result:
        """Run a trusted query in this process over the union of all graphs."""
        ...

    @property
    def problem(self) -> str | None:
        """Why writes are refused, such as a full disk, or None. Reads go on."""
        ...

    @property
    def damaged_logs(self) -> list[Path]:
        """The write-ahead logs that were damaged at a start, until they are removed: commits may be lost."""
        ...

    def require_writable(self) -> None:
        """Raise StoreError if writes are refused now."""
        ...

    def query_sources(self, query: str, *, limit: int | None = None) -> Result:
        """Run a trusted query in this process over all graphs except hidden ones (`Visibility`)."""
        ...

    def find_invalidated_graphs(self) -> list[NamedNode]:
        """Find the invalidated graphs (`Patch`) that no commit has removed yet."""
        ...

    def find_last_change(self, reads: AbstractSet[str] | None, *, users: bool = False) -> int:
        """Find the last generation that changed statements with these properties (`graph_exclusion.find_reads`).

        With `users`, statements in user graphs count too. Commits before the store was opened count as changing all.
        """
        ...

    def find_last_change_of(self, subject: str) -> int:
        """Find the last generation that changed statements about the node with an IRI, in any graph."""
        ...

    def commit(
        self,
        replace: Mapping[NamedNode, Iterable[Quad]],
        describe: Describe | None = None,
    ) -> Commit:
        """Set the content of each graph in `replace` (empty: remove the graph), in one atomic step.

        Only the difference to the stored graph is written. `describe` is called under the write lock with the changes,
        and returns the accompanying changes of ``graph/prov`` and of derived graphs; they are part of the same step.
        """
        ...

    def extend(
        self,
        graph: NamedNode,
        quads: Iterable[Quad],
        describe: Describe | None = None,
    ) -> Commit:
        """Add `quads` to the current content of `graph`, in one atomic step. Otherwise like `commit`."""
        ...

    def write_payload(
        self,
        payload: Payload,
        describe: Describe | None = None,
        check: Callable[[Content], None] = lambda content: None,
        *,
        keep: bool = False,
    ) -> tuple[Commit, int]:
        """Replace the content of the payload's graph by it, or add it (`keep`), in one atomic step.

        Returns the commit and the number of quads that the graph had. Like `commit`, for payloads and graphs of any
        size: they are compared and written by other processes.
        """
        ...

    def update(
        self,
        update: str,
        *,
        default_graphs: Sequence[NamedNode] = (),
        named_graphs: Sequence[NamedNode] = (),
        limits: Limits | None = None,
        describe: Describe | None = None,
    ) -> Commit:
        """Run one SPARQL Update, atomically, within `limits`; its WHERE clauses query the given graphs."""
        ...

    def commit_provenance(self, patch: Patch) -> Commit:
        """Change ``graph/prov`` alone, as a commit."""
        ...

    def count(self, graph: NamedNode) -> int:
        """Count the quads of one named graph."""
        ...

    def graph(self, graph: NamedNode) -> list[Quad]:
        """Load the quads of one named graph."""
        ...

    def graphs(self) -> list[NamedNode]:
        """Return the names of all graphs."""
        ...

    def dump(self, output: IO[bytes], media_type: RdfFormat, graph: NamedNode | None = None) -> None:
        """Write all quads, or those of one graph."""
        ...

    def statistics(self) -> Statistics:
        """Get the counters."""
        ...

    def close(self) -> None:
        """Flush and release the data directory."""
        ...


FOREIGN: Final = 3
"""The rank of names in other languages than English (`preference`)."""


def preference(name: Literal) -> tuple[int, str, str]:
    """Sort key of names: English first, then those without a language or for all languages, then the others."""
    tag = (name.language or "").casefold()
    rank = 0 if tag == "en" else 1 if tag.startswith("en-") else 2 if tag in ("", "mul") else FOREIGN
    return rank, tag, name.value
