"""Graphs that people write: ``graph/user/...`` (scope ``write``) and ``graph/cur/...`` (``curate``).

`kg.provenance.permissions` decides who may write which graph. A write is checked before it is committed, against the
shapes that target nodes of the resulting graph. The record shapes are closed for loaders, since a record contains only
data of its source. For users they are opened: a user who declares a policy document must give its required properties
and may add others. Triples that no shape targets are accepted. A user graph never repeats a triple of another graph
(`kg.store.ownership`), and its blank nodes become IRIs (`kg.store.skolem`). Its text units are indexed like those of a
load.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Self

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kg.access.actors import ADMIN, Actor
from kg.access.policies import Policies
from kg.errors import (
    IndexUnavailableError,
    InvalidInputError,
    NotFoundError,
    PayloadTooLargeError,
    QuotaError,
    ShapesViolatedError,
)
from kg.knowledge_graph import KnowledgeGraph, read_newest
from kg.processes.child import Limits
from kg.processes.memory import release_memory
from kg.provenance.permissions import check_request
from kg.provenance.user_writes import Write
from kg.search.index_sync import refresh
from kg.settings import Settings
from kg.shacl.process import Job, TripleFiles, validate_isolated
from kg.shacl.shapes import Shapes
from kg.sparql.terms import bind
from kg.store.difference import canonicalize
from kg.store.ownership import CURATED, USER
from kg.store.payloads import EXPANSION, Payload, hash_lines
from kg.store.protocol import Commit, Content, GraphChange, Patch, named_node, select, term_text
from kg.vocabulary import PROV_GRAPH, SCHEMA, SH, mint

SENDERS: Final = """
SELECT ?graph (MIN(?label) AS ?sender) WHERE {
  GRAPH $prov {
    VALUES ?kind { kg:UserGraph kg:CuratedGraph }
    ?graph a ?kind ; prov:wasGeneratedBy/prov:wasAssociatedWith/rdfs:label ?label
  }
} GROUP BY ?graph"""

_SHOWN: Final = 3
_REPORTED: Final = 1_000
"""Maximum number of results of a severity in the report on a large payload."""
_CHECK_LIMITS: Final = Limits(timeout_s=60.0, memory_bytes=1 << 30)
_LARGE: Final = 10_000
"""Quads of a write that other processes compare and write, and after which freed memory is returned to the system."""
_log: Final = logging.getLogger(__name__)

Describe = Callable[[Sequence[GraphChange]], Patch]


@dataclass(slots=True)
class UserGraphs:
    """Writes user graphs on behalf of an actor. `on_commit` is called after each commit. Thread-safe; calls block.

    Every method raises ForbiddenError for an actor without the scope and for a graph that users may not write,
    ShapesViolatedError, ConflictError for a triple that another graph contains, and errors of the store. In each
    case nothing has changed.
    """

    kg: KnowledgeGraph
    on_commit: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def require_writable(self) -> None:
        """Raise StoreError if the store refuses writes, before a payload is read."""
        if self.kg.store.problem is not None:
            self.kg.store.require_writable()

    def put(self, graph: NamedNode | None, triples: Sequence[Triple] | Payload, actor: Actor) -> bool:
        """Replace the content of `graph` by `triples` and return whether it is new. Without triples it is removed."""
        target = check_request(graph, "PUT", actor, self.kg.policies)
        wanted = _skolemize(target, triples)
        write = Write(actor.name, f"PUT {target.value}", wanted.sha256, replaces=True)
        if self._is_large(wanted):
            _, before = self._commit_large(wanted, write, actor)
            return bool(wanted) and not before
        _check(target, wanted)
        with self._lock:
            is_new = not self.kg.store.count(target)
            self._commit(target, wanted.quads(), write, actor)
        return is_new and bool(wanted)

    def post(self, graph: NamedNode | None, triples: Sequence[Triple] | Payload, actor: Actor) -> bool:
        """Add `triples` to `graph` and return whether it is new.

        Raises PayloadTooLargeError for a graph that would have more quads than the setting allows.
        """
        target = check_request(graph, "POST", actor, self.kg.policies)
        added = _skolemize(target, triples)
        write = Write(actor.name, f"POST {target.value}", added.sha256, replaces=False)
        store, most = self.kg.store, self.kg.settings.max_graph_quads
        if self._is_large(added):
            commit, held = self._commit_large(added, write, actor, most)
            return bool(commit.changes) and not held
        held, seen = store.count(target), store.statistics().generation
        if held + len(added) > most and (_count_new(store.graph(target), added) + held) > most:
            raise _too_large(target, most)
        _check(target, self._and_stored(target, added))

        def describe(changes: Sequence[GraphChange]) -> Patch:
            nonlocal held
            if store.statistics().generation != seen:  # another write was committed since the first check
                _check(target, self._and_stored(target, added))
                held = store.count(target)
            return self._within_quota(write.describe(store), actor)(changes)

        commit = store.extend(target, added.quads(), describe)
        self._follow(commit, actor)
        return bool(commit.changes) and not held

    def create(self, triples: Sequence[Triple] | Payload, actor: Actor) -> NamedNode:
        """Put `triples` into a new graph and return its name."""
        if not len(triples):
            raise InvalidInputError("The payload has no triples. A new graph needs at least one.")
        graph = name_new_graph()
        self.put(graph, triples, actor)
        return graph

    def delete(self, graph: NamedNode | None, actor: Actor) -> None:
        """Remove `graph`. Raises NotFoundError if it does not exist.

        Reviews in a curated graph are retracted with it: the edges of their claims follow.

        A graph whose statements are all in graphs of sources, which state the same, exists for its owner. After its
        removal they do not return to it.
        """
        target = check_request(graph, "DELETE", actor, self.kg.policies)
        write = Write(actor.name, f"DELETE {target.value}", hash_lines(()), replaces=True)
        nothing = Payload.build(target, ())
        if self._is_large(nothing):
            commit, _ = self._commit_large(nothing, write, actor)
        else:
            with self._lock:
                commit = self._commit(target, iter(()), write, actor)
        if not commit.changes:
            raise NotFoundError(f"Unknown graph {target}.")

    def update(
        self,
        text: str,
        default_graphs: Sequence[NamedNode],
        named_graphs: Sequence[NamedNode],
        actor: Actor,
    ) -> int:
        """Run a SPARQL Update over user graphs and return the generation of its commit.

        Raises QuerySyntaxError, QueryForbiddenError for SERVICE and LOAD, ForbiddenError for any other graph, a
        QueryLimitError if it was stopped, and what `OxigraphStore.update` raises.
        """
        if self.kg.policies is None:
            actor.require(ADMIN, "an update")
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        write = Write(actor.name, "UPDATE /sparql", digest, replaces=False)
        settings = self.kg.settings
        commit = self.kg.store.update(
            text,
            default_graphs=default_graphs,
            named_graphs=named_graphs,
            limits=Limits(settings.query_timeout_s, settings.query_memory_mb << 20, max_quads=settings.max_graph_quads),
            describe=_refuse_other_graphs(
                self._within_quota(write.describe(self.kg.store), actor), actor, self.kg.policies
            ),
        )
        self._follow(commit, actor)
        return commit.generation

    def _commit(self, graph: NamedNode, quads: Iterator[Quad], write: Write, actor: Actor) -> Commit:
        describe = self._within_quota(write.describe(self.kg.store), actor)
        commit = self.kg.store.commit({graph: quads}, describe)
        self._follow(commit, actor)
        return commit

    def _is_large(self, payload: Payload) -> bool:
        """Return whether the payload or its graph is too large to be compared in this process."""
        return len(payload) + Usage.get(self.kg).count(payload.graph) > _LARGE

    def _commit_large(
        self, payload: Payload, write: Write, actor: Actor, most: int | None = None
    ) -> tuple[Commit, int]:
        """Replace a graph by the payload, or add to it where it may then have `most` quads.

        Returns the commit and the former number of quads.
        """
        inner = self._within_quota(write.describe(self.kg.store), actor)
        emptied: list[str] = []

        def check(content: Content) -> None:
            if most is not None and content.after > most:
                raise _too_large(payload.graph, most)
            if most is not None and content.characters > EXPANSION * self.kg.settings.max_graph_bytes:
                raise PayloadTooLargeError(
                    f"{payload.graph.value} would have more than {EXPANSION * self.kg.settings.max_graph_bytes} bytes "
                    f"of quads, written in full: {EXPANSION} times QUADCITE_MAX_GRAPH_BYTES. Write another graph, or "
                    "load files with `kg load`."
                )
            self._check_large(payload.graph, content)

        def describe(changes: Sequence[GraphChange]) -> Patch:
            emptied[:] = _find_graphs_losing_texts(changes)  # the quads cannot be read after the commit
            return inner(changes)

        commit, before = self.kg.store.write_payload(payload, describe, check, keep=most is not None)
        self._follow(commit, actor, emptied)
        return commit, before

    def _check_large(self, graph: NamedNode, content: Content) -> None:
        """Do the same as `_check` in another process, with the first results in the report."""
        if not record_shapes().has_target_in(content):
            return
        job = Job(TripleFiles(content.files), "open-record", "application/n-triples", graph.value, most=_REPORTED)
        folder = self.kg.settings.directory.snapshots
        checked = validate_isolated(job, _CHECK_LIMITS, folder=folder if folder.is_dir() else None)
        with checked.report as file:
            report = [quad.triple for quad in parse(file.read(), RdfFormat.N_TRIPLES)]
        if not checked.conforms:
            blocking = {each.subject for each in report if each.object == SH.Violation}
            messages = [
                each.object.value
                for each in report
                if each.predicate == SH.resultMessage and each.subject in blocking and isinstance(each.object, Literal)
            ]
            raise ShapesViolatedError(_explain(graph, messages), report=report)

    def _within_quota(self, describe: Describe, actor: Actor) -> Describe:
        """Wrap `describe` so that a commit which takes its sender over a quota is refused."""

        def checked(changes: Sequence[GraphChange]) -> Patch:
            usage = Usage.get(self.kg)
            if usage.find_excess(self.kg.settings, changes, actor):
                usage = Usage.get(self.kg, anew=True)  # loads change these graphs too
                if excess := usage.find_excess(self.kg.settings, changes, actor):
                    raise QuotaError(excess)
            return describe(changes)

        return checked

    def _and_stored(self, graph: NamedNode, added: Payload) -> Iterable[Quad | Triple]:
        return [*self.kg.store.graph(graph), *added]

    def _follow(self, commit: Commit, actor: Actor, emptied: Sequence[str] | None = None) -> None:
        """Update the search index. If that fails, it is repaired in the background, or by the next start.

        `emptied` are the graphs that lost texts. It is given where the quads of the changes cannot be read any more.
        """
        if not commit.changes:
            return
        read_newest()
        Usage.get(self.kg).follow(commit, actor)
        try:
            emptied = _find_graphs_losing_texts(commit.changes) if emptied is None else emptied
            hashes = {
                change.graph.value: change.content_sha256
                for change in commit.changes
                if change.content_sha256 is not None
            }
            refresh(self.kg.store, self.kg.search, hashes, emptied)
        except IndexUnavailableError as error:
            _log.warning("Generation %d is not indexed yet: %s", commit.generation, error)
            self.kg.unindexed.set()
        self.on_commit()
        if sum(len(change.added) + len(change.removed) for change in commit.changes) > _LARGE:
            release_memory()


def name_new_graph() -> NamedNode:
    """Make the name of a user graph that does not exist."""
    return mint("graph", "user", str(uuid.uuid4()))


def _skolemize(graph: NamedNode, triples: Sequence[Triple] | Payload) -> Payload:
    return triples if isinstance(triples, Payload) else Payload.build(graph, triples)


def _find_graphs_losing_texts(changes: Iterable[GraphChange]) -> list[str]:
    """Find the graphs from which a text is removed: the index drops all their units and gets the others again."""
    return [change.graph.value for change in changes if any(quad.predicate == SCHEMA.text for quad in change.removed)]


def _too_large(graph: NamedNode, most: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(
        f"{graph.value} would have more than {most} quads (setting QUADCITE_MAX_GRAPH_QUADS). Write another graph, or "
        "load files with `kg load`."
    )


def _count_new(held: Sequence[Quad], added: Payload) -> int:
    """Count the quads of a payload that a graph does not have, in the form in which the store has them."""
    stored = set(held)
    return sum(quad not in stored for quad in canonicalize(added.quads()))


@dataclass(slots=True)
class Usage:
    """The quads of each graph that people write, and its last sender. The counts miss what loads take and return."""

    graphs: dict[str, tuple[str, int]]

    @classmethod
    def get(cls, kg: KnowledgeGraph, *, anew: bool = False) -> Self:
        """Get the usage of `kg`, counted at the first call, or again if `anew`."""
        known: Self | None = None if anew else kg.memory.get("usage")
        if known is None:
            rows = select(kg.store.query, bind(SENDERS, prov=PROV_GRAPH))
            senders = {named_node(row["graph"]): term_text(row["sender"]) for row in rows}
            counts = {graph: kg.store.count(graph) for graph in senders}
            graphs = {graph.value: (senders[graph], count) for graph, count in counts.items()}
            known = kg.memory.keep("usage", cls(graphs))
        return known

    def count(self, graph: NamedNode) -> int:
        """Count the quads of a graph."""
        return self.graphs.get(graph.value, ("", 0))[1]

    def follow(self, commit: Commit, actor: Actor) -> None:
        """Count the changes of a commit by `actor`."""
        self.graphs.update(self._changed(commit.changes, actor.name))

    def find_excess(self, settings: Settings, changes: Sequence[GraphChange], actor: Actor) -> str | None:
        """Return a message if `changes` by `actor` add quads or graphs beyond the quotas."""
        after = self.graphs | self._changed(changes, actor.name)
        for family, most_quads, setting in (
            (USER, settings.user_quads, "QUADCITE_USER_QUADS"),
            (CURATED, settings.curated_quads, "QUADCITE_CURATED_QUADS"),
        ):
            before, then = (
                [
                    count
                    for graph, (sender, count) in held.items()
                    if count > 0 and graph.startswith(family) and (sender == actor.name or family == CURATED)
                ]
                for held in (self.graphs, after)
            )
            whose = f"{actor.name!r} would have" if family == USER else "There would be"
            free = "Remove graphs that are not needed (DELETE), or raise the setting"
            if sum(then) > most_quads and sum(then) > sum(before):
                return (
                    f"{whose} {sum(then):,} quads in graphs below {family}. The maximum is {most_quads:,}. "
                    f"{free} {setting}. Large data belongs into a file for `kg load`."
                )
            if family == USER and len(then) > settings.user_graphs and len(then) > len(before):
                return (
                    f"{whose} {len(then):,} graphs below {family}. The maximum is {settings.user_graphs:,}. "
                    f"{free} QUADCITE_USER_GRAPHS."
                )
        return None

    def _changed(self, changes: Sequence[GraphChange], sender: str) -> dict[str, tuple[str, int]]:
        changed = {}
        for change in changes:
            _, count = self.graphs.get(change.graph.value, ("", 0))
            changed[change.graph.value] = (sender, max(0, count + len(change.added) - len(change.removed)))
        return changed


def _refuse_other_graphs(describe: Describe, actor: Actor, policies: Policies | None) -> Describe:
    """Wrap `describe` so that an update which changes a graph not writable by users is refused."""

    def checked(changes: Sequence[GraphChange]) -> Patch:
        for change in changes:
            check_request(change.graph, "UPDATE", actor, policies)
        return describe(changes)

    return checked


def _check(graph: NamedNode, triples: Iterable[Quad | Triple]) -> None:
    """Raise ShapesViolatedError if nodes in `triples` that the record shapes target violate them."""
    shapes = record_shapes()
    if not shapes.has_target_in(triples):
        return
    violations = shapes.check(triples)
    if any(violation.blocks for violation in violations):
        messages = [violation.message for violation in violations if violation.blocks]
        raise ShapesViolatedError(_explain(graph, messages), violations)


def _explain(graph: NamedNode, messages: Iterable[str]) -> str:
    different = list(dict.fromkeys(messages))
    more = f" (and {len(different) - _SHOWN} more)" if len(different) > _SHOWN else ""
    return f"{graph.value} violates its shapes: {' '.join(different[:_SHOWN])}{more}"


@cache
def record_shapes() -> Shapes:
    """Load the record shapes as opened for user graphs. Loading takes about a second, so they are cached."""
    return Shapes.load(opened=True)
