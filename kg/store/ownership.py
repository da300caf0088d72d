"""Ownership of triples: which graph has a triple that two graphs state, and until when shared graphs exist.

Each triple is in one content graph only (invariant I1), and shared graphs exist only while referenced.

The engine counts a triple once per graph of the union, so copies would falsify counts. Graphs that people write
(``graph/user/...``, ``graph/cur/...``) therefore *cede*: they may not copy a triple of another graph, and when a loader
asserts one of their triples, the same commit removes it from them. ``graph/prov`` records each cession, with the
payloads and the run of the user graph. The commit that removes the triple from the other graph returns it::

    <id/cession/...> a kg:Cession ; rdf:subject s ; rdf:predicate p ; rdf:object o ;
      kg:cededBy <graph/user/...> ; kg:cededTo <graph/src/...> ; prov:wasGeneratedBy <id/commit/{generation}> ;
      prov:wasDerivedFrom <id/snapshot/...> ; prov:wasInfluencedBy <id/run/...>
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, cast

from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from kg.errors import ConflictError
from kg.sparql.graph_exclusion import exclude_graphs
from kg.sparql.terms import bind
from kg.store import difference
from kg.store.commits import build_time
from kg.store.difference import Delta, Statements
from kg.store.protocol import GraphChange, Patch, Query, named_node, select
from kg.vocabulary import (
    ABOUT_GRAPH,
    BASE,
    CODES_GRAPH,
    DERIVED,
    EXTRACTED,
    KG,
    PROV,
    PROV_GRAPH,
    RDF,
    SCHEMA,
    commit_iri,
    iri_prefix,
    mint,
    sha256,
)

_SHARED: Final = BASE + "graph/ref/"


def is_shared_graph(graph: object) -> bool:
    """Return whether `graph` is shared: it exists only while another graph refers to it."""
    return isinstance(graph, NamedNode) and graph.value.startswith(_SHARED) and graph != CODES_GRAPH


def find_orphans(
    store: Store, changes: Sequence[GraphChange], kept: Collection[NamedNode], since: int = 0
) -> list[NamedNode]:
    """Find the shared graphs that lose their last reference by `changes`, which are not written yet.

    Only graphs that a removed quad referred to, directly or through other shared graphs, can be orphans. Graphs that
    only refer to each other are orphans too. The graphs in `kept`, which the commit writes, never are. The first
    `since` changes were searched before, without the others.
    """
    after = _After(store, changes)
    suspects: dict[NamedNode, set[NamedNode]] = {}  # graph -> the suspects that refer to it
    queue = deque(after.shared_graphs_of(quad.object for change in changes[since:] for quad in change.removed))
    alive: set[NamedNode] = set()
    while queue:
        graph = queue.popleft()
        if graph in suspects or graph in alive:
            continue
        if graph in kept:
            alive.add(graph)
            continue
        referrers: set[NamedNode] = set()
        for referrer in after.referrers(graph):
            if not is_shared_graph(referrer):
                alive.add(graph)
                break
            referrers.add(referrer)
        else:
            suspects[graph] = referrers
            queue.extend(after.shared_graphs_of(quad.object for quad in after.quads(graph)))
    referred: dict[NamedNode, list[NamedNode]] = defaultdict(list)
    for graph, referrers in suspects.items():
        for referrer in referrers:
            referred[referrer].append(graph)
    live = deque(graph for graph, referrers in suspects.items() if not referrers <= suspects.keys())
    while live:
        graph = live.popleft()
        if suspects.pop(graph, None) is not None:
            live.extend(referred.get(graph, ()))
    return sorted(suspects, key=lambda graph: graph.value)


def load_provenance(store: Store, graphs: Iterable[NamedNode]) -> frozenset[Quad]:
    """Load the descriptions of `graphs` in ``graph/prov``, including their derivation nodes."""
    found: set[Quad] = set()
    for graph in graphs:
        for quad in store.quads_for_pattern(graph, None, None, PROV_GRAPH):
            found.add(quad)
            if quad.predicate == PROV.qualifiedDerivation and isinstance(quad.object, NamedNode):
                found.update(store.quads_for_pattern(quad.object, None, None, PROV_GRAPH))
    return frozenset(found)


class _After:
    """The content of the store after the changes."""

    def __init__(self, store: Store, changes: Sequence[GraphChange]) -> None:
        self._store = store
        self._removed = {change.graph: change.removed for change in changes}
        self._added = {change.graph: change.added for change in changes}
        self._gone = {PROV_GRAPH, *(change.graph for change in changes if change.content_sha256 is None)}
        """Graphs whose references do not count: those that are removed as a whole, and provenance."""
        self._adding: dict[object, set[NamedNode]] | None = None
        self._sought: set[object] = set()

    def quads(self, graph: NamedNode) -> Iterator[Quad]:
        if graph not in self._gone:
            removed = self._removed.get(graph)
            held = self._store.quads_for_pattern(None, None, None, graph)
            yield from held if not removed else (quad for quad in held if quad not in removed)
        yield from self._added.get(graph, ())

    def shared_graphs_of(self, terms: Iterable[object]) -> Iterator[NamedNode]:
        """Yield the shared graphs that have one of `terms` as a subject, for each term once."""
        for term in {term for term in terms if isinstance(term, NamedNode)} - self._sought:
            self._sought.add(term)
            for quad in self._store.quads_for_pattern(term, None, None, None):
                graph = quad.graph_name
                if isinstance(graph, NamedNode) and is_shared_graph(graph):
                    yield graph

    def referrers(self, graph: NamedNode) -> Iterator[NamedNode]:
        """Yield the graphs, other than itself and ``graph/prov``, that refer to a subject of `graph`."""
        for subject in {quad.subject for quad in self.quads(graph)}:
            for quad in self._store.quads_for_pattern(None, None, subject, None):
                referrer = quad.graph_name
                if (
                    isinstance(referrer, NamedNode)
                    and referrer not in self._gone
                    and referrer != graph
                    and quad not in self._removed.get(referrer, ())
                ):
                    yield referrer
            yield from self._adders(subject) - {graph}

    def _adders(self, term: object) -> set[NamedNode]:
        """Return the graphs to which a quad with the object `term` is added."""
        if self._adding is None:
            self._adding = {}
            for graph, quads in self._added.items():
                for quad in quads:
                    if isinstance(quad.object, NamedNode):
                        self._adding.setdefault(quad.object, set()).add(graph)
        return self._adding.get(term, set())


USER: Final = BASE + "graph/user/"
CURATED: Final = BASE + "graph/cur/"
_MAX_REPORTED: Final = 3


def is_user_graph(graph: object) -> bool:
    """Return whether people write `graph`, so that it cedes triples to the graphs of loaders."""
    return isinstance(graph, NamedNode) and graph.value.startswith((USER, CURATED))


DESCRIBING: Final = """
SELECT DISTINCT ?node ?graph WHERE { VALUES ?node { $nodes } GRAPH ?graph { ?node ?property ?value } }"""

_FROM_TEXTS: Final = tuple(
    f"{root}{family}/"
    for root in (f"{EXTRACTED}mentions/", f"{DERIVED}language/detected/", f"{DERIVED}language/jurisdiction/")
    for family in ("user", "cur")
)
"""IRI prefixes of the graphs of mentions in texts of users, and of the languages of these texts."""


def find_described(query: Query, nodes: Collection[NamedNode]) -> set[NamedNode]:
    """Find those of `nodes` that a source describes. `query` reads no graphs that people write.

    Graphs that are extracted from texts of users, and the topics that follow, do not count.
    """
    rows = select(query, bind(DESCRIBING, nodes=sorted(nodes, key=str))) if nodes else ()
    return {
        named_node(row["node"])
        for row in rows
        if row["graph"] not in (PROV_GRAPH, ABOUT_GRAPH) and not named_node(row["graph"]).value.startswith(_FROM_TEXTS)
    }


def reject_copies(store: Store, deltas: Sequence[Delta]) -> None:
    """Raise ConflictError if a user graph would get a triple of another content graph, or a second text of a unit."""
    written = [delta for delta in deltas if is_user_graph(delta.graph)]
    found = [
        conflict for delta in written for conflict in islice(_find_copies(store, delta, deltas), _MAX_REPORTED + 1)
    ]
    if found:
        listed = ", ".join(f"{line} is in {graph}" for line, graph in found[:_MAX_REPORTED])
        more = " and more" if len(found) > _MAX_REPORTED else ""
        raise ConflictError(
            f"Duplicate triples: {listed}{more}. A triple, and the text of a unit (schema:text), can be in one graph "
            "only. Omit it here."
        )


def _find_copies(store: Store, delta: Delta, deltas: Sequence[Delta]) -> Iterator[tuple[str, NamedNode]]:
    others = {other.graph: other for other in deltas if other is not delta}
    if not delta.is_repeated:
        yield from ((line, graph) for graph, other in others.items() for line in other.added if line in delta.added)
        return
    for line, quad in delta.added.items():
        for held in store.quads_for_pattern(*_key(quad), None):
            graph = held.graph_name
            if not isinstance(graph, NamedNode) or graph in (delta.graph, PROV_GRAPH):
                continue
            if graph in others and _statement(held) in others[graph].removed:
                continue
            yield (line if held.object == quad.object else f"another text of {held.subject}"), graph
            break
        else:
            yield from ((line, graph) for graph, other in others.items() if line in other.added)


def is_repeated(store: Store, quads: Iterable[Quad], home: NamedNode) -> bool:
    """Return whether a content graph other than `home` may contain any of `quads`, or a text of the same unit."""
    elsewhere = False
    last: object = None
    for quad in quads:
        if quad.subject != last:  # sorted, and most subjects are only here
            last = quad.subject
            elsewhere = any(_is_other(held, home) for held in store.quads_for_pattern(last, None, None, None))
        if elsewhere and any(_is_other(held, home) for held in store.quads_for_pattern(*_key(quad), None)):
            return True
    return False


def _is_other(held: Quad, home: NamedNode) -> bool:
    return held.graph_name not in (home, PROV_GRAPH)


def find_ceded_graphs(store: Store, wanted: Mapping[NamedNode, Statements]) -> list[Delta]:
    """Find the user graphs to remove whose statements are all in other graphs, each with an empty change.

    Their records of cessions are removed with the change, so that the statements do not return.
    """
    return [
        Delta(graph, {}, {}, None)
        for graph, statements in wanted.items()
        if not statements
        and is_user_graph(graph)
        and not store.contains_named_graph(graph)
        and any(True for _ in store.quads_for_pattern(None, KG.cededBy, graph, PROV_GRAPH))
    ]


@dataclass(frozen=True, slots=True)
class Cession:
    """The change of one user graph: what it loses, with the graph that now contains each statement; what it regains."""

    delta: Delta
    takers: Mapping[str, NamedNode]


@dataclass(slots=True)
class Returns:
    """Ceded statements that return to their user graphs, and the changes of the records of cessions."""

    statements: dict[NamedNode, dict[str, Quad]] = field(default_factory=lambda: defaultdict(dict))
    descriptions: dict[NamedNode, set[Quad]] = field(default_factory=lambda: defaultdict(set))
    """The description of each graph that regains statements, for one that has lost its own."""
    remove: set[Quad] = field(default_factory=set)
    add: set[Quad] = field(default_factory=set)


PROPERTIES_IN: Final = "SELECT DISTINCT ?property WHERE { GRAPH $graph { ?subject ?property ?value } }"

_GRAPHS: Final = iri_prefix("graph")
_FILTER_BITS: Final = 1 << 23
"""With a million subjects one lookup of eight is for nothing."""
_MOST_PROPERTIES: Final = 256
"""Maximum number of properties that are known of a user graph."""
_MOST_NAMED: Final = 64
"""Maximum number of user graphs that a query excludes by name. It excludes more of them by the start of their names,
which the engine has to read for each row."""
_NOT_OF_USERS: Final = (
    f'!STRSTARTS(STR(%s), "{USER}") && !STRSTARTS(STR(%s), "{CURATED}") && !sameTerm(%s, {PROV_GRAPH})'
)
VERDICTS: Final = frozenset({KG.accepts.value, KG.rejects.value})
"""The properties of reviews, which trusted queries read in ``graph/cur/``."""
_CEDED: Final = frozenset({RDF.subject.value, RDF.predicate.value, RDF.object.value})


def find_invalidated_graphs(store: Store) -> list[NamedNode]:
    """Find the invalidated graphs (`kg.store.protocol.Patch`) that no commit has removed yet."""
    found = (quad.subject for quad in store.quads_for_pattern(None, PROV.invalidatedAtTime, None, PROV_GRAPH))
    # Snapshots of sources have the property too.
    return [node for node in found if isinstance(node, NamedNode) and node.value.startswith(_GRAPHS)]


class _BloomFilter:
    """A set of any number of terms in constant memory. It may seem to contain others, and none is removed."""

    def __init__(self) -> None:
        self._bits = bytearray(_FILTER_BITS >> 3)

    def add(self, term: object) -> None:
        at = hash(term) % _FILTER_BITS
        self._bits[at >> 3] |= 1 << (at & 7)

    def __contains__(self, term: object) -> bool:
        at = hash(term) % _FILTER_BITS
        return bool(self._bits[at >> 3] & 1 << (at & 7))


@dataclass(frozen=True, slots=True)
class Invalidated:
    """The graphs that a commit invalidates, and the changes of ``graph/prov``."""

    graphs: AbstractSet[NamedNode]
    remove: frozenset[Quad]
    add: frozenset[Quad]


@dataclass(slots=True)
class _Properties:
    """The properties in an invalidated graph: its content is not read any more, and does not change."""

    names: AbstractSet[str] | None = None
    """None before they are known (`HiddenGraphs.load_properties`): it counts as having all."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The graphs that trusted queries do not read in one state of the store (`kg.store.protocol.Visibility`)."""

    by_property: Mapping[str, AbstractSet[NamedNode]]
    """The user graphs with each property, without those in `various`."""
    various: AbstractSet[NamedNode]
    """The user graphs with very many properties."""
    users: AbstractSet[NamedNode]
    invalidated: Mapping[NamedNode, _Properties]

    def exclude(self, query: str, *, users: bool = True) -> str:
        """Rewrite `query` so that it reads no statements of user graphs and invalidated ones
        (`kg.sparql.graph_exclusion`).

        Reviews of claims (``kg:accepts``, ``kg:rejects``) in ``graph/cur/`` are read. Without `users` all user graphs
        are.
        """
        condition = partial(self._condition, users=users)
        return exclude_graphs(query, condition) if (users and self.users) or self.invalidated else query

    def find_graphs(self, properties: AbstractSet[str] | None) -> set[NamedNode]:
        """Find the user graphs with any of these properties; None: with any property."""
        if properties is None:
            return set(self.users)
        return {graph for name in properties for graph in self.by_property.get(name, ())} | self.various

    def _condition(self, properties: AbstractSet[str] | None, variable: str, *, users: bool) -> str | None:
        found = self.find_graphs(properties) if users else set()
        if properties is not None and properties <= VERDICTS:
            found = {graph for graph in found if not graph.value.startswith(CURATED)}
        named = {
            graph.value
            for graph, own in self.invalidated.items()
            if properties is None or own.names is None or not properties.isdisjoint(own.names)
        }
        conditions = []
        if len(found) > _MOST_NAMED:
            conditions.append(_NOT_OF_USERS % (variable, variable, variable))
        elif found:
            named |= {graph.value for graph in found}
            if properties and properties & _CEDED:
                named.add(PROV_GRAPH.value)  # contains the parts of ceded statements
        if named:
            conditions.append(f"{variable} NOT IN ({', '.join(f'<{name}>' for name in sorted(named))})")
        return " && ".join(conditions) or None


class HiddenGraphs:
    """The graphs that trusted queries do not read: those that people write, and invalidated ones.

    Of user graphs it has the subjects, and the properties in each of them, in bounded memory. So a commit about other
    subjects needs no lookup for cessions, and a query for other properties needs no condition on graphs. Properties are
    removed only with their graph and subjects never, so there may be more than the graphs contain. A graph with very
    many properties counts as having all.
    """

    def __init__(self, store: Store) -> None:
        self._subjects = _BloomFilter()
        self._graphs: dict[str, set[NamedNode]] = {}
        """The graphs with each property, without those in `_various`."""
        self._sizes: Counter[NamedNode] = Counter()
        """The number of properties of each graph."""
        self._various: set[NamedNode] = set()
        self._all: set[NamedNode] = set()
        self.invalidated: Final[dict[NamedNode, _Properties]] = {}
        """The invalidated graphs (`kg.store.protocol.Patch`), with the properties in each."""
        self._takers: set[object] = {
            quad.object for quad in store.quads_for_pattern(None, KG.cededTo, None, PROV_GRAPH)
        }
        self._state: Hidden | None = None
        """The current state for readers; None after a change."""
        self._changing: Final = threading.Lock()
        for graph in store.named_graphs():
            if is_user_graph(graph) and isinstance(graph, NamedNode):
                self._add(graph, store.quads_for_pattern(None, None, None, graph))
        self.invalidated.update({graph: _Properties() for graph in find_invalidated_graphs(store)})

    def get_state(self) -> Hidden:
        """Get the hidden graphs as they are now. Later commits do not change it."""
        with self._changing:
            if self._state is None:
                by_property = {name: frozenset(graphs) for name, graphs in self._graphs.items()}
                users, various = frozenset(self._all), frozenset(self._various)
                self._state = Hidden(by_property, various, users, dict(self.invalidated))
            return self._state

    def _add(self, graph: NamedNode, quads: Iterable[Quad]) -> None:
        names: set[str] = set()
        for quad in quads:
            self._subjects.add(quad.subject)
            if len(names) <= _MOST_PROPERTIES:
                names.add(quad.predicate.value)
        self._all.add(graph)
        if graph in self._various:
            return
        new = [name for name in names if graph not in self._graphs.get(name, ())]
        self._sizes[graph] += len(new)
        if self._sizes[graph] > _MOST_PROPERTIES:
            self._various.add(graph)
            self._forget_properties(graph)
            return
        for name in new:
            self._graphs.setdefault(name, set()).add(graph)

    def _forget_properties(self, graph: NamedNode) -> None:
        if self._sizes.pop(graph, 0):
            for name, graphs in list(self._graphs.items()):
                graphs.discard(graph)
                if not graphs:
                    del self._graphs[name]

    @property
    def has_unknown_properties(self) -> bool:
        """Whether properties of invalidated graphs are not loaded yet."""
        return any(own.names is None for own in tuple(self.invalidated.values()))

    def load_properties(self, store: Store) -> None:
        """Load the properties in invalidated graphs, unless they are known, also for states that were got before.

        The commit that invalidates a graph does not wait for it: for 120,000 quads it takes 40 ms.
        """
        for graph, known in tuple(self.invalidated.items()):
            if known.names is None:
                rows = cast(QuerySolutions, store.query(bind(PROPERTIES_IN, graph=graph)))
                names = {row[0].value for row in rows if isinstance(row[0], NamedNode)}
                if self.invalidated.get(graph) is known:  # not removed in the meantime
                    known.names = names

    def follow(self, deltas: Sequence[Delta], invalidated: AbstractSet[NamedNode]) -> None:
        """Add the written statements and the invalidated graphs; forget graphs that are removed."""
        with self._changing:
            if invalidated:
                self.invalidated.update({graph: _Properties() for graph in invalidated})
                self._state = None
            for delta in deltas:
                if self.invalidated.pop(delta.graph, None) is not None:
                    self._state = None
                if not is_user_graph(delta.graph):
                    continue
                if delta.content_sha256 is None:
                    self._all.discard(delta.graph)
                    self._various.discard(delta.graph)
                    self._forget_properties(delta.graph)
                else:
                    self._add(delta.graph, delta.added.values())
                self._state = None

    def find_invalidated(self, store: Store, graphs: Iterable[NamedNode], deltas: Sequence[Delta]) -> Invalidated:
        """Determine which of `graphs` a commit invalidates: those that exist, and that `deltas` do not write."""
        written = {delta.graph for delta in deltas}
        found = {
            graph
            for graph in graphs
            if graph not in written and graph not in self.invalidated and store.contains_named_graph(graph)
        }
        now = build_time()
        return Invalidated(
            found,
            frozenset(
                quad
                for graph in written & self.invalidated.keys()
                for quad in store.quads_for_pattern(graph, PROV.invalidatedAtTime, None, PROV_GRAPH)
            ),
            frozenset(Quad(graph, PROV.invalidatedAtTime, now, PROV_GRAPH) for graph in found),
        )

    def find_restored(self, wanted: Mapping[NamedNode, Statements], deltas: Sequence[Delta]) -> list[Delta]:
        """Find the invalidated graphs that are written as they are, each with an empty change: they are valid again."""
        changed = {delta.graph for delta in deltas}
        return [
            Delta(graph, {}, {}, difference.statements_sha256(graph, statements))
            for graph, statements in wanted.items()
            if statements and graph in self.invalidated and graph not in changed
        ]

    def find_returns(self, store: Store, deltas: Sequence[Delta]) -> Returns:
        """Find the ceded statements that no graph contains after `deltas`, so that they return to their user graphs."""
        found = Returns()
        losing = [delta for delta in deltas if delta.graph in self._takers and delta.removed]
        if not losing:
            return found
        written = {delta.graph: delta for delta in deltas}
        added = {_key(quad): delta.graph for delta in deltas for quad in delta.added.values()}
        for delta in losing:
            lost = {_key(quad) for quad in delta.removed.values()}
            for record in store.quads_for_pattern(None, KG.cededTo, delta.graph, PROV_GRAPH):
                quads = list(store.quads_for_pattern(record.subject, None, None, PROV_GRAPH))
                said: dict[NamedNode, Any] = {quad.predicate: quad.object for quad in quads}
                graph = said[KG.cededBy]
                quad = Quad(said[RDF.subject], said[RDF.predicate], said[RDF.object], graph)
                if graph in written or _key(quad) not in lost:
                    continue
                holder = added.get(_key(quad)) or _find_holder(store, written, quad)
                if holder is None:
                    found.statements[graph][_statement(quad)] = quad
                    found.remove.update(quads)
                    found.descriptions[graph] |= _build_description(graph, quads)
                elif holder != delta.graph:
                    found.remove.add(record)
                    found.add.add(Quad(record.subject, KG.cededTo, holder, PROV_GRAPH))
                    self._takers.add(holder)
        return found

    def cessions(self, store: Store, deltas: Sequence[Delta], returns: Returns) -> list[Cession]:
        """Return the changes of user graphs by `deltas`: triples added elsewhere, replaced texts, and `returns`."""
        written = {delta.graph for delta in deltas}
        taken: dict[NamedNode, dict[str, NamedNode]] = defaultdict(dict)
        for taker in deltas if self._all else ():
            if is_user_graph(taker.graph):
                continue
            for quad in taker.added.values():
                if quad.subject not in self._subjects:
                    continue
                for held in store.quads_for_pattern(*_key(quad), None):
                    graph = held.graph_name
                    if isinstance(graph, NamedNode) and is_user_graph(graph) and graph not in written:
                        taken[graph][_statement(held)] = taker.graph
                        self._takers.add(taker.graph)
        found = []
        for graph in [*taken, *(each for each in returns.statements if each not in taken)]:
            takers = taken.get(graph, {})
            held_there = difference.load_statements(store, graph)
            wanted = {line: quad for line, quad in held_there.items() if line not in takers}
            wanted |= returns.statements.get(graph, {})
            if delta := difference.compare(graph, held_there, wanted):
                found.append(Cession(delta, takers))
        return found


def add_cessions(store: Store, described: Patch, ceded: Sequence[Cession], returns: Returns, generation: int) -> Patch:
    """Add the records of the cessions in commit `generation` to `described`, and remove those of `returns`.

    Also updates the content hash of each graph, or removes the description of a graph that is now empty.
    """
    remove, add = {*described.remove, *returns.remove}, {*described.add, *returns.add}
    hashes: dict[NamedNode, str | None] = {}
    for cession in ceded:
        delta = cession.delta
        hashes[delta.graph] = delta.content_sha256
        origin = [
            (PROV.wasDerivedFrom if said.predicate == PROV.wasDerivedFrom else PROV.wasInfluencedBy, said.object)
            for said in store.quads_for_pattern(delta.graph, None, None, PROV_GRAPH)
            if said.predicate in (PROV.wasDerivedFrom, PROV.wasGeneratedBy)
        ]
        for line, quad in delta.removed.items():
            node = mint("cession", sha256(f"{generation} {delta.graph} {line}")[:24])
            values: tuple[tuple[NamedNode, Any], ...] = (
                (RDF.type, KG.Cession),
                (RDF.subject, quad.subject),
                (RDF.predicate, quad.predicate),
                (RDF.object, quad.object),
                (KG.cededBy, delta.graph),
                (KG.cededTo, cession.takers[line]),
                (PROV.wasGeneratedBy, commit_iri(generation)),
                *origin,
            )
            add.update(Quad(node, predicate, value, PROV_GRAPH) for predicate, value in values)
    for graph, digest in hashes.items():
        if digest is None:
            remove |= load_provenance(store, [graph])
        elif old := set(store.quads_for_pattern(graph, KG.contentSha256, None, PROV_GRAPH)):
            remove |= old
            add.add(Quad(graph, KG.contentSha256, Literal(digest), PROV_GRAPH))
        elif graph in returns.descriptions:
            add |= {*returns.descriptions[graph], Quad(graph, KG.contentSha256, Literal(digest), PROV_GRAPH)}
    return Patch(frozenset(remove), frozenset(add))


def _key(quad: Quad) -> tuple[Any, Any, Any]:
    """Return the part of a quad that only one graph may contain: a triple, or any text of a unit."""
    return quad.subject, quad.predicate, None if quad.predicate == SCHEMA.text else quad.object


def _find_holder(store: Store, written: Mapping[NamedNode, Delta], quad: Quad) -> NamedNode | None:
    """Find the graph that contains the triple of `quad`, or a text of the same unit, and does not lose it."""
    for held in store.quads_for_pattern(*_key(quad), None):
        graph = held.graph_name
        if isinstance(graph, NamedNode) and graph != PROV_GRAPH:
            delta = written.get(graph)
            if delta is None or _statement(held) not in delta.removed:
                return graph
    return None


def _build_description(graph: NamedNode, record: Sequence[Quad]) -> set[Quad]:
    """Build the description of a user graph from the record of a cession."""
    kind = KG.CuratedGraph if graph.value.startswith(CURATED) else KG.UserGraph
    names = {PROV.wasDerivedFrom: PROV.wasDerivedFrom, PROV.wasInfluencedBy: PROV.wasGeneratedBy}
    said = {Quad(graph, names[quad.predicate], quad.object, PROV_GRAPH) for quad in record if quad.predicate in names}
    return {*said, Quad(graph, RDF.type, kind, PROV_GRAPH)}


def _statement(quad: Quad) -> str:
    return str(Triple(quad.subject, quad.predicate, quad.object))
