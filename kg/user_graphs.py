"""What people write: ``graph/user/...`` is put, added to and removed, ``graph/cur/...`` is only ever added to.

Every other graph belongs to what wrote it. A write is checked before it is committed, against the shapes that look at
what the graph then holds. The record shapes are closed for what loaders write, since a record holds what its source
says and nothing else; for people they are taken as open: who says that something is a policy document has to say it
whole, and may say more of it. What no shape looks at passes. A graph of a person never repeats what another graph says
(`kg.store.ownership`), and its blank nodes become IRIs (`kg.store.skolem`). Text units in it are indexed like a load's.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode, Quad, Triple

from kg.errors import (
    ForbiddenError,
    IndexUnavailableError,
    InvalidInputError,
    NotFoundError,
    ShapesViolatedError,
)
from kg.knowledge_graph import KnowledgeGraph
from kg.processes.confinement import Limits
from kg.provenance.user_writes import Write
from kg.search.index_sync import refresh
from kg.shacl.shapes import Shapes
from kg.store.ownership import CURATED, USER
from kg.store.protocol import Commit, GraphChange, Patch
from kg.store.skolem import skolemize
from kg.vocabulary import PROV_GRAPH, SCHEMA, mint

MAX_CHECKED: Final = 200_000
"""Triples of a graph that shapes look at; a larger one has to be split."""

_DOTS: Final = frozenset({".", ".."})
_SHOWN: Final = 3
_log: Final = logging.getLogger(__name__)

Describe = Callable[[Sequence[GraphChange]], Patch]


@dataclass(slots=True)
class UserGraphs:
    """Writes the graphs of people. `on_commit` is called after each commit. Calls block, and are safe from any thread.

    Every method raises ForbiddenError for a graph that is not to be written so, ShapesViolatedError, ConflictError for
    a triple that stands in another graph, and what the store raises; then nothing has changed.
    """

    kg: KnowledgeGraph
    on_commit: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def put(self, graph: NamedNode | None, triples: Sequence[Triple], actor: str) -> bool:
        """Make `graph` hold exactly `triples`; return whether it is new. Without triples the graph goes."""
        target = _writable(graph, "PUT", USER)
        wanted = skolemize(target, triples)
        _check(target, wanted)
        write = Write(actor, f"PUT {target.value}", payload_sha256(wanted), replaces=True)
        with self._lock:
            is_new = not self.kg.store.graph(target)
            self._commit(target, wanted, write.describe(self.kg.store))
        return is_new and bool(wanted)

    def post(self, graph: NamedNode | None, triples: Sequence[Triple], actor: str) -> bool:
        """Add `triples` to `graph`; return whether it is new."""
        target = _writable(graph, "POST", USER, CURATED)
        added = skolemize(target, triples)
        write = Write(actor, f"POST {target.value}", payload_sha256(added), replaces=False)
        held = self._triples(target)
        _check(target, [*held, *added])

        def describe(changes: Sequence[GraphChange]) -> Patch:
            nonlocal held
            if (present := self._triples(target)) != held:  # another write came between
                _check(target, [*present, *added])
                held = present
            return write.describe(self.kg.store)(changes)

        commit = self.kg.store.extend(target, _quads(target, added), describe)
        self._follow(commit)
        return bool(commit.changes) and not held

    def create(self, triples: Sequence[Triple], actor: str) -> NamedNode:
        """Put `triples` into a graph of its own; return its name."""
        if not triples:
            raise InvalidInputError("a graph holds at least one triple, and the payload has none")
        graph = mint("graph", "user", str(uuid.uuid4()))
        self.put(graph, triples, actor)
        return graph

    def delete(self, graph: NamedNode | None, actor: str) -> None:
        """Remove `graph`. Raises NotFoundError where there is none."""
        target = _writable(graph, "DELETE", USER)
        write = Write(actor, f"DELETE {target.value}", payload_sha256(()), replaces=True)
        with self._lock:
            if not self._commit(target, (), write.describe(self.kg.store)).changes:
                raise NotFoundError(f"there is no graph {target}")

    def update(
        self,
        text: str,
        default_graphs: Sequence[NamedNode],
        named_graphs: Sequence[NamedNode],
        actor: str,
    ) -> int:
        """Run a SPARQL Update over the graphs of people; return the generation that it made.

        Raises QuerySyntaxError, QueryForbiddenError for SERVICE and LOAD, ForbiddenError for another graph and for
        removing from ``graph/cur/...``, a QueryLimitError when it was stopped, and what `OxigraphStore.update` raises.
        """
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        write = Write(actor, "UPDATE /sparql", digest, replaces=False)
        settings = self.kg.settings
        commit = self.kg.store.update(
            text,
            default_graphs=default_graphs,
            named_graphs=named_graphs,
            limits=Limits(settings.query_timeout_s, settings.query_memory_mb << 20),
            describe=_within_reach(write.describe(self.kg.store)),
        )
        self._follow(commit)
        return commit.generation

    def _commit(self, graph: NamedNode, triples: Sequence[Triple], describe: Describe) -> Commit:
        commit = self.kg.store.commit({graph: _quads(graph, triples)}, describe)
        self._follow(commit)
        return commit

    def _triples(self, graph: NamedNode) -> list[Triple]:
        return [quad.triple for quad in self.kg.store.graph(graph)]

    def _follow(self, commit: Commit) -> None:
        """Bring the index in line; where that fails, the healing of the next start makes up for it."""
        if not commit.changes:
            return
        try:
            emptied = [
                change.graph.value
                for change in commit.changes
                if any(quad.predicate == SCHEMA.text for quad in change.removed)
            ]
            hashes = {
                change.graph.value: change.content_sha256
                for change in commit.changes
                if change.content_sha256 is not None
            }
            refresh(self.kg.store, self.kg.search, hashes, emptied)
        except IndexUnavailableError as error:
            _log.warning("generation %d is not indexed yet: %s", commit.generation, error)
        self.on_commit()


def payload_sha256(triples: Sequence[Triple]) -> str:
    """Return the SHA-256 of the sorted N-Triples of a payload, whose blank nodes are IRIs already."""
    return hashlib.sha256("".join(sorted(f"{triple} .\n" for triple in triples)).encode()).hexdigest()


def _quads(graph: NamedNode, triples: Sequence[Triple]) -> list[Quad]:
    return [Quad(triple.subject, triple.predicate, triple.object, graph) for triple in triples]


def _writable(graph: NamedNode | None, method: str, *families: str) -> NamedNode:
    """Return `graph` if it is in one of `families`."""
    if graph is not None and not _DOTS.isdisjoint(unquote(graph.value).split("/")):
        raise ForbiddenError(f"{graph.value} has a dot segment, by which programs read it as the name of another graph")
    if graph is not None and any(graph.value.startswith(family) and graph.value != family for family in families):
        return graph
    raise ForbiddenError(f"{_owner(graph)}; {method} is for graphs below {' and '.join(families)}")


def _owner(graph: NamedNode | None) -> str:
    if graph is None:
        return "the default graph is the union of all graphs and is not written itself"
    if graph == PROV_GRAPH:
        return f"{graph.value} is written by the store itself, with every commit"
    if graph.value.startswith(CURATED):
        return f"{graph.value} is only ever added to: POST to it"
    return f"{graph.value} belongs to what loaded it"


def _within_reach(describe: Describe) -> Describe:
    """Return `describe` for an update: it refuses what people may not write."""

    def checked(changes: Sequence[GraphChange]) -> Patch:
        for change in changes:
            families = (USER,) if change.removed else (USER, CURATED)
            _writable(change.graph, "DELETE" if change.removed else "INSERT", *families)
        return describe(changes)

    return checked


def _check(graph: NamedNode, triples: Sequence[Triple]) -> None:
    """Raise ShapesViolatedError if what the record shapes look at in `triples` is not as they say."""
    shapes = record_shapes()
    if not shapes.targets_any(triples):
        return
    if len(triples) > MAX_CHECKED:
        raise InvalidInputError(
            f"{graph.value} would hold {len(triples)} triples and be checked by shapes, which takes {MAX_CHECKED} at "
            "most; split it"
        )
    violations = shapes.check(triples)
    if any(violation.blocks for violation in violations):
        messages = list(dict.fromkeys(violation.message for violation in violations if violation.blocks))
        more = f" (and {len(messages) - _SHOWN} more)" if len(messages) > _SHOWN else ""
        raise ShapesViolatedError(f"{graph.value} breaks its shapes: {' '.join(messages[:_SHOWN])}{more}", violations)


@cache
def record_shapes() -> Shapes:
    """Return the record shapes as they are for what people write; reading them takes a second."""
    return Shapes.load(opened=True)
