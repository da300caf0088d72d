"""Queries for one result. They are recorded, so that the result can show them."""

from __future__ import annotations

import threading
import time
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import is_
from typing import Any, Final, Generic, Protocol, TypeVar

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.provenance.reader import find_changed_graphs
from kg.retrieval.results import MOST_RESULTS, MOST_SKIPPED, Completeness, Meta, Result, Statement
from kg.sparql.graph_exclusion import find_reads
from kg.store.ownership import find_described
from kg.store.protocol import Rows, Term, term_text
from kg.text import quoted, to_number

R = TypeVar("R", bound=Result)
T = TypeVar("T")

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""Categories of Unicode of control and format characters and separators."""
_RAN: Final[ContextVar[list[Statement] | None]] = ContextVar("ran", default=None)

USER_GRAPHS: Final = 3
"""Maximum number of user graphs that a note names."""
SMALL: Final = 500
"""Rows of a small result. These have a cache of their own: a large result would displace hundreds of them."""
KEPT_SMALL: Final = 100_000
"""Maximum number of rows of cached small results, some 300 bytes each."""
KEPT_ROWS: Final = 200_000
"""Maximum number of rows of cached large results."""
SHORT: Final = 4_000
"""Characters of a query whose properties are cached."""
SHARE: Final = 20
"""A value that many calls share is built again once its age is this multiple of the time that it took (`share`)."""
LEAST_ROWS: Final = 20
"""Rows that a result counts for at least: its query is kept too."""
NUMBERS: Final = frozenset({"position", "start", "end"})
"""Variables that are whole numbers in every query that has them."""


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    """A value that was computed from query results of generation `since`, and what these depend on."""

    value: T
    since: int
    rows: int
    reads: frozenset[str] | None
    """The properties that the queries read, or None for any."""
    users: bool = False
    """Whether they read user graphs too."""
    graphs: frozenset[str] = frozenset()


@contextmanager
def recording() -> Iterator[list[Statement]]:
    """Yield a list that receives the queries of each result that is finished in the block."""
    ran: list[Statement] = []
    token = _RAN.set(ran)
    try:
        yield ran
    finally:
        _RAN.reset(token)


class Reader:
    """Runs the queries of one result, on the state that the call reads (`KnowledgeGraph.reading`)."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg = kg
        self.ran: list[Statement] = []
        self._lookups: list[Statement] = []
        """The queries that resolved the arguments."""
        self.truncated = False
        self._declares = False
        """Whether rows that user graphs take part in were read."""

    def rows(
        self, purpose: str, query: str, *, declared: Sequence[str] = (), all_graphs: bool = False
    ) -> list[dict[str, Term]]:
        """Run a SELECT and return its rows; `purpose` describes it in a few words.

        It reads the statements of sources, not those in graphs that people write (`KnowledgeGraph.query`), except with
        `all_graphs`, for results that show the graph of each statement. Variables in `declared` name nodes that people
        may declare: rows follow that user graphs take part in, where no source describes any of these nodes.
        """
        with self.kg.reading() as lease:
            found = list(self._selected(purpose, query, all_graphs=all_graphs))
            if declared:
                exclude = lease.get().visibility.exclude
                # Without a user graph that the query could read, nothing is declared.
                if exclude(query) != (with_users := exclude(query, users=False)):
                    found += self._declared(purpose, query, with_users, found, declared)
        return found

    def _declared(
        self, purpose: str, query: str, with_users: str, found: Sequence[dict[str, Term]], names: Sequence[str]
    ) -> list[dict[str, Term]]:
        """Run a SELECT in the form `with_users`; return the further rows about nodes that no source describes."""
        known = {frozenset(row.items()) for row in found}
        everything = self._run(with_users, all_graphs=True)
        self.note(purpose, query)
        rows = [row for row in everything if frozenset(row.items()) not in known]
        rows = [row for row in rows if _is_valid(row, names)]
        self._declares = self._declares or bool(rows)
        described = self.find_described({node for row in rows for name in names if (node := _get_node(row, name))})
        return [row for row in rows if not any(row.get(name) in described for name in names)]

    def find_described(self, nodes: Collection[NamedNode]) -> set[NamedNode]:
        """Find those of `nodes` that a source describes."""
        return find_described(lambda query: self._selected("nodes that sources describe", query), nodes)

    def tuples(self, purpose: str, query: str) -> Sequence[tuple[Term | None, ...]]:
        """Run a SELECT and return its rows as tuples in the order of the variables, for thousands of rows."""
        return self._selected(purpose, query).rows

    def _selected(self, purpose: str, query: str, *, all_graphs: bool = False) -> Rows:
        rows = self._run(query, all_graphs=all_graphs)
        self.note(purpose, query)
        return rows

    def _run(self, query: str, *, all_graphs: bool) -> Rows:
        answer = self.kg.query(query, all_graphs=all_graphs)
        rows = _rows_of(answer.result)
        self.truncated = self.truncated or answer.truncated
        return rows

    def kept(
        self, purpose: str, query: str, read: Callable[[list[dict[str, Term]]], T], *, declared: Sequence[str] = ()
    ) -> T:
        """Run a SELECT and return `read` of its rows, cached until a commit changes statements with its properties.

        `read` depends on the rows alone. Do not modify the value. `declared` is that of `rows`.
        """
        key = (query, *declared)
        with self.kg.reading():
            known: _Kept[T] | None = self._get_kept(key)
            if known is not None and self._is_valid(known):
                self.note(purpose, query)
                return known.value
            with self._loading():
                rows = self.rows(purpose, query, declared=declared)
                value = read(rows)
                since = self.kg.generation
                self._keep(key, _Kept(value, since, len(rows), self._reads_of(query), bool(declared)))
        return value

    def kept_in_graphs(
        self,
        purpose: str,
        query: str,
        graphs: str,
        read: Callable[[list[dict[str, Term]]], T],
        *,
        also: str | None = None,
    ) -> T:
        """Run a SELECT and return `read` of its rows, cached until a commit touches the graphs that it reads.

        `graphs` is a SELECT of these as ?graph: those that can change the result of `query`, and that of `also`: a
        query whose result `read` uses too.
        """
        with self.kg.reading():
            known: _Kept[T] | None = self._get_kept((query, graphs))
            current, held = self.kg.generation, None
            if known is not None:
                is_valid = self._is_valid(known)
                if not is_valid:
                    touched = find_changed_graphs(self.kg.ask_sources, known.since, current)
                    held = None if touched is None else self._find_graphs(graphs)
                    is_valid = held == known.graphs and touched is not None and known.graphs.isdisjoint(touched)
                if is_valid:
                    if known.since < current:
                        self._keep((query, graphs), replace(known, since=current))
                    self.note(purpose, query)
                    return known.value
            with self._loading():
                held = self._find_graphs(graphs) if held is None else held
                rows = self.rows(purpose, query)
                value = read(rows)
                reads = [find_reads(each) for each in (query, graphs, also or query)]
                names = None if None in reads else frozenset().union(*filter(None, reads))
                self._keep((query, graphs), _Kept(value, current, len(rows), names, graphs=held))
        return value

    def derived(self, kind: Hashable, build: Callable[..., T], *inputs: object) -> T:
        """Get ``build(*inputs)``, cached by `kind` for as long as the inputs are the same objects, such as kept values.

        Do not modify the value.
        """
        memory = self.kg.memory
        known: tuple[tuple[object, ...], T] | None = memory.get(("derived", kind))
        if known is not None and len(known[0]) == len(inputs) and all(map(is_, known[0], inputs)):
            return known[1]
        return memory.keep(("derived", kind), (inputs, build(*inputs)))[1]

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """Keep the outcome of the queries in the block apart from that of earlier ones: truncation, users."""
        before, self.truncated = self.truncated, False
        declared, self._declares = self._declares, False
        try:
            yield
        finally:
            self._declares = self._declares or declared
            self.truncated = self.truncated or before

    def _get_kept(self, key: Hashable) -> Any:
        return next((known for memory in self._get_memories() if (known := memory.get(key)) is not None), None)

    def _keep(self, key: Hashable, found: _Kept[Any]) -> None:
        """Keep a value, unless rows are missing, or a commit has changed it since."""
        if self.truncated or not self._is_valid(found):
            return
        small, large = self._get_memories()
        memory, other = (small, large) if found.rows <= SMALL else (large, small)
        other.drop(key)  # of another number of rows, before a commit
        memory.keep(key, found, max(LEAST_ROWS, found.rows))

    def _is_valid(self, known: _Kept[Any]) -> bool:
        """Whether no commit between the state of the value and that of the call has changed what it depends on."""
        return self.kg.store.find_last_change(known.reads, users=known.users) <= min(known.since, self.kg.generation)

    def _get_memories(self) -> tuple[Memory, Memory]:
        """Get the caches of small and of large results."""
        found: tuple[Memory, Memory] | None = self.kg.memory.get("answers")
        return found or self.kg.memory.keep("answers", (Memory(KEPT_SMALL), Memory(KEPT_ROWS)))

    def _find_graphs(self, query: str) -> frozenset[str]:
        """Run a SELECT of ?graph; return the graphs."""
        return frozenset(iri_of(row["graph"]) for row in _rows_of(self.kg.query(query).result))

    def start(self, name: str, work: Callable[[Reader], T]) -> Callable[[], T]:
        """Start `work` in a thread, with a reader of its own; return a function that waits for its result.

        That function adds its queries to those of this reader.
        """
        other = Reader(self.kg)
        started = start(name, partial(work, other))

        def wait() -> T:
            result = started.result()
            self.ran += other.ran
            self.truncated = self.truncated or other.truncated
            self._declares = self._declares or other._declares
            return result

        return wait

    def note(self, purpose: str, query: str) -> None:
        """Record a query whose answer was cached."""
        self.ran.append(Statement(purpose=purpose, sparql=query.strip()))

    def start_selection(self) -> None:
        """Take the queries so far as those that resolved the arguments: the next one selects the results."""
        self._lookups, self.ran = self.ran, []

    def kept_by_iri(
        self,
        kind: str,
        iris: Iterable[str],
        load: Callable[[list[str]], Mapping[str, T]],
        *,
        most: int | None = None,
        query: str = "",
        declared: Sequence[str] = (),
        subjects: Callable[[str, T], Iterable[str]] | None = None,
    ) -> dict[str, T]:
        """Get a value of each IRI, cached, and `load` those that are missing. Do not modify them.

        `kind` distinguishes the values of different callers. For large values, `most` is how many of them are kept.
        They are cached until the next commit, or if `load` runs only `query`, until one changes statements with its
        properties. `declared` is that of its `rows`. If a value depends only on the statements about some nodes,
        `subjects` returns these for its IRI and the value: it then outlives commits about other nodes.
        """
        memory, store = self.kg.memory, self.kg.store
        if most is not None:
            memory = memory.get(kind) or memory.keep(kind, Memory(most))
        wanted = list(dict.fromkeys(iris))
        with self.kg.reading():
            current = self.kg.generation
            reads = _find_reads(query) if query else None
            users = bool(declared)
            changed, changed_any = store.find_last_change(reads, users=users), store.find_last_change(None)
            found: dict[str, T] = {}
            missing = []
            for iri in wanted:
                known: tuple[int, T, bool] | None = memory.get((kind, iri))
                if known is None:
                    missing.append(iri)
                    continue
                since, value, declares = known
                since = min(since, current)
                if since >= (changed_any if declares else changed):
                    found[iri] = value
                elif subjects and all(store.find_last_change_of(node) <= since for node in subjects(iri, value)):
                    found[iri] = value
                    memory.keep((kind, iri), (current, value, declares))
                else:
                    missing.append(iri)
            if missing:
                with self._loading():
                    loaded = load(sorted(missing))
                    # Values of a state that a commit has changed since are not kept.
                    read = None if self._declares else reads
                    if store.find_last_change(read, users=users) <= current and not self.truncated:
                        for iri, value in loaded.items():
                            memory.keep((kind, iri), (current, value, self._declares))
                found.update(loaded)
        return {iri: found[iri] for iri in wanted if found.get(iri) is not None}

    def _reads_of(self, query: str) -> frozenset[str] | None:
        """Find the properties that the rows of a query depend on; None for any."""
        # Rows that user graphs take part in also depend on all that sources say about their nodes.
        return None if self._declares else _find_reads(query) if len(query) < SHORT else find_reads(query)

    def finish(
        self,
        result: R,
        *,
        total: int | None = None,
        next_offset: int | None = None,
        completeness: Completeness = "complete",
    ) -> R:
        """Add the metadata to `result`, with the query that selected the results: the first since `start_selection`.

        If none has run since, since nothing meets the arguments, it is the first that resolved them.
        """
        with self.kg.reading() as lease:
            snapshot, remarks = self.kg.generation, lease.remarks
        result.notes += remarks
        if remarks and completeness == "complete":
            completeness = "approximate"
        if self.truncated:
            completeness = "truncated"
            result.notes.append("The result was truncated at a row limit of the query engine. Narrow the request.")
        result.next_offset = next_offset
        if (ran := _RAN.get()) is not None:
            ran += self.ran
        result.meta = Meta(
            snapshot=snapshot,
            completeness=completeness,
            total=total,
            next_offset=next_offset,
            sparql=(self.ran or self._lookups)[:1],
        )
        return result


_find_reads = lru_cache(maxsize=512)(find_reads)


class Dated(Protocol):
    """A value that was computed from one state of the store."""

    @property
    def generation(self) -> int:
        """The generation of that state, or a later one that gives the same value."""
        ...


D = TypeVar("D", bound=Dated)


def share(
    kg: KnowledgeGraph,
    key: str,
    build: Callable[[], D],
    is_current: Callable[[D], bool],
    *,
    what: str,
    fresh: bool = False,
) -> D:
    """Get a large value that many calls use, cached for as long as it `is_current` in the state that the call reads.

    Without `fresh`, while commits change it faster than it is built, a call may get that of another state, and its
    answer has a note: ``The names of {what} are those of generation ...``.
    """
    with kg.reading() as lease:
        kept: tuple[D, float, float] | None = kg.memory.get(key)
        if kept is not None:
            value, at, took = kept
            if is_current(value):
                return value
            if not fresh and time.monotonic() - at < SHARE * took:
                lease.remarks[f"The names of {what} are those of generation {value.generation}."] = None
                return value
        began = time.monotonic()
        value = build()
        now = time.monotonic()
        if kept is None or kept[0].generation <= value.generation:
            kg.memory.keep(key, (value, now, now - began))
        return value


def start(name: str, work: Callable[[], T]) -> Future[T]:
    """Start `work` in a thread of this name, in the context of the caller. It must end by itself."""
    started: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            started.set_result(context.run(work))
        except Exception as error:  # noqa: BLE001 raised to the caller who asks for the result
            started.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return started


def _is_valid(row: Mapping[str, Term], names: Sequence[str]) -> bool:
    """Whether nodes are IRIs and numbers are numbers. Shapes guarantee it for sources, but not for user graphs."""
    if any(name in row and _get_node(row, name) is None for name in names):
        return False
    return all(to_number(term_text(row[name])) is not None for name in NUMBERS & row.keys())


def _get_node(row: Mapping[str, Term], name: str) -> NamedNode | None:
    term = row.get(name)
    return term if isinstance(term, NamedNode) else None


def _rows_of(result: object) -> Rows:
    if not isinstance(result, Rows):
        raise TypeError(f"a tool compiled something that is not a SELECT: its result is {type(result).__name__}")
    return result


def list_user_graphs(kg: KnowledgeGraph, properties: AbstractSet[str] | None) -> str:
    """List the user graphs with any of these properties (None: with any property) for a note; empty without any."""
    with kg.reading() as lease:
        graphs = sorted(lease.get().visibility.find_graphs(properties), key=lambda graph: graph.value)
    listed = ", ".join(quoted(graph.value) for graph in graphs[:USER_GRAPHS])
    return listed + (f" and {len(graphs) - USER_GRAPHS} more graphs" if len(graphs) > USER_GRAPHS else "")


def read_counts(name: str, number: str, rows: Iterable[Mapping[str, Term]]) -> dict[str, int]:
    """Read rows of a number for each IRI `name`."""
    return {iri_of(row[name]): int(term_text(row[number])) for row in rows if name in row}


def iri_of(term: Term) -> str:
    """Get the IRI of `term` as a string. Raises TypeError for other terms, which the shapes exclude."""
    if not isinstance(term, NamedNode):
        raise TypeError(f"expected an IRI, got {term}")
    return term.value


def bounded(name: str, value: int, low: int, high: int) -> int:
    """Return `value` if it is from `low` to `high`, inclusive. Raises InvalidInputError for others."""
    if not low <= value <= high:
        raise InvalidInputError(f"{name} is {value}. It must be from {low} to {high}.")
    return value


def bounded_page(limit: int, offset: int) -> None:
    """Raise InvalidInputError for a page size or an offset out of range."""
    bounded("limit", limit, 1, MOST_RESULTS)
    bounded("offset", offset, 0, MOST_SKIPPED)


def clean_text(name: str, text: str, longest: int) -> str:
    """Strip `text`. Raises InvalidInputError if it is empty, longer than `longest` characters, or not valid Unicode.

    A text of invisible characters, such as U+0000 or U+200B, is empty too.
    """
    stripped = text.strip()
    if len(stripped) > longest:
        raise InvalidInputError(f"{name} has {len(stripped):,} characters. The maximum is {longest:,}.")
    if any("\ud800" <= character <= "\udfff" for character in stripped):
        raise InvalidInputError(f"{name} contains a lone surrogate, which is not a character.")
    if all(unicodedata.category(character) in _INVISIBLE for character in stripped):
        raise InvalidInputError(f"{name} is empty. Pass some words.")
    return stripped


def clean_query(name: str, text: str, longest: int) -> str:
    """Strip a query. Raises InvalidInputError as `clean_text` does, and if it has no letter and no digit."""
    stripped = clean_text(name, text, longest)
    if not any(character.isalnum() for character in stripped):
        raise InvalidInputError(f"{name}: {quoted(stripped)} has no letters or digits. Pass some words.")
    return stripped


def clean_words(must: Sequence[str]) -> list[str]:
    """Strip required words. Raises InvalidInputError as `clean_query` does."""
    return [clean_query("must", words, 200) for words in must]


def page_of(total: Sequence[object], offset: int, limit: int) -> int | None:
    """Compute the offset of the next page, or None on the last page."""
    return offset + limit if len(total) > offset + limit else None
