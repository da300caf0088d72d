"""Who may write which graph: one table for requests of graphs (PUT, POST, DELETE, SPARQL Update) and calls of tools.

Graphs that a call of a tool writes without the scope ``admin`` are attributed to its caller in ``graph/prov``::

    <graph/src/...> prov:wasAttributedTo <id/agent/{actor}>

Such calls may replace it. All other records were loaded from files, or written with the scope ``admin``, and need it.
A load by the operator takes over the records that it finds equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Quad

from kg.access.actors import ADMIN, AUTHOR, TOKEN_HINT, Actor
from kg.access.policies import Policies, Resource
from kg.errors import ForbiddenError
from kg.sparql.terms import bind
from kg.store.ownership import CURATED, USER
from kg.store.protocol import Describe, GraphChange, Patch, Store, named_node, select
from kg.vocabulary import BASE, GENERATED, PROV, PROV_GRAPH, SOURCED

Method = Literal["PUT", "POST", "DELETE", "UPDATE"]
Right = Literal["write", "curate", "admin", "own", "rules", "nobody"]
"""A scope, or for tools ``own``: new graphs, and those that calls without the scope ``admin`` wrote; with it all.
``rules``: what follows from the other graphs, after each change of these."""

_REQUESTABLE: Final = ("write", "curate", "admin")


@dataclass(frozen=True, slots=True)
class Family:
    """The graphs below an IRI, and who may write them by each kind of request."""

    prefix: str
    contents: str
    put: Right
    post: Right
    delete: Right
    update: Right
    tools: Right

    def get_right(self, method: Method) -> Right:
        """Get the right to a request."""
        rights: dict[Method, Right] = {
            "PUT": self.put, "POST": self.post, "DELETE": self.delete, "UPDATE": self.update,
        }  # fmt: skip
        return rights[method]

    @property
    def resource(self) -> Resource:
        """The resource that policies decide about, with the scope that each request requires by default."""
        rights = {"put": self.put, "post": self.post, "delete": self.delete, "update": self.update}
        scopes = {method: right for method, right in rights.items() if right in _REQUESTABLE}
        return Resource("Family", self.name, scopes)

    @property
    def name(self) -> str:
        """The name that policies call it by, such as ``graph/user/``."""
        return self.prefix.removeprefix(BASE)


ALL: Final = BASE + "graph/"
SHARED: Final = ALL + "ref/"

FAMILIES: Final = (
    Family(USER, "graphs of users", "write", "write", "write", "admin", "nobody"),
    Family(CURATED, "reviews, decisions for all readers", "nobody", "curate", "curate", "curate", "curate"),
    Family(SOURCED, "records of sources", "nobody", "nobody", "nobody", "nobody", "own"),
    Family(SHARED, "what records share: places, districts, people", "nobody", "nobody", "nobody", "nobody", "own"),
    Family(GENERATED, "summaries", "nobody", "nobody", "nobody", "nobody", "own"),
    Family(ALL, "all others: extracted, computed, provenance", "nobody", "nobody", "nobody", "nobody", "rules"),
)
"""The first family with the prefix of a graph decides. A graph of no family is nobody's to write."""
_OTHERS: Final = FAMILIES[-1]

_OWNED: Final = tuple(family.prefix for family in FAMILIES if family.tools == "own")
RECORDS: Final = (SOURCED, GENERATED)
"""The families of which no computed graph is one."""
_DOTS: Final = frozenset({".", ".."})
_SHOWN: Final = 3

ATTRIBUTED: Final = """
SELECT ?graph WHERE {
  GRAPH $prov { ?graph prov:wasAttributedTo ?caller } FILTER(STRSTARTS(STR(?graph), $graphs))
}"""

ATTRIBUTED_OF: Final = """
SELECT ?graph ?caller WHERE { VALUES ?graph { $graphs } GRAPH $prov { ?graph prov:wasAttributedTo ?caller } }"""


def get_family(graph: NamedNode | None) -> Family:
    """Get the family of a graph; None is the default graph, which is nobody's to write."""
    name = graph.value if graph is not None else ""
    return next((each for each in FAMILIES if name.startswith(each.prefix) and name != each.prefix), _OTHERS)


def check_request(graph: NamedNode | None, method: Method, actor: Actor, policies: Policies | None = None) -> NamedNode:
    """Return the graph of a request that may write it. Raises ForbiddenError for any other.

    `policies` decide about the graphs that requests may write at all; None: the scope of the table does.
    """
    if graph is not None and not _DOTS.isdisjoint(unquote(graph.value).split("/")):
        raise ForbiddenError(f"Graph name {graph.value} has a dot segment, which clients resolve to another graph.")
    family = get_family(graph)
    right = family.get_right(method)
    if graph is None or right not in _REQUESTABLE:
        families = [each.prefix for each in FAMILIES if each.get_right(method) in _REQUESTABLE]
        raise ForbiddenError(f"{_describe_owner(graph)} {method} requires a graph below {' or '.join(families)}.")
    if policies is None:
        actor.require(right, f"writing to {family.prefix}")
    else:
        policies.require(actor, f"graphs.{method.lower()}", family.resource, {"graph": graph.value})
    return graph


def _describe_owner(graph: NamedNode | None) -> str:
    if graph is None:
        return "The default graph is the union of all graphs and cannot be written."
    if graph == PROV_GRAPH:
        return f"{graph.value} is written by the store with every commit."
    if graph.value.startswith(CURATED):
        return f"{graph.value} cannot be replaced. Use POST to add to it, and DELETE or an update to retract."
    return f"{graph.value} belongs to the program that loaded it."


def get_author() -> str | None:
    """Get the name of the caller whose tool call writes without the scope ``admin``; None: an operator writes."""
    actor = AUTHOR.get()
    return None if actor is None or ADMIN in actor.scopes else actor.name


def find_attributed(store: Store, graphs: Iterable[NamedNode] | None = None) -> set[NamedNode]:
    """Find those of `graphs` (None: of all) that calls without the scope ``admin`` wrote."""
    if graphs is None:
        query = bind(ATTRIBUTED, prov=PROV_GRAPH, graphs=Text(ALL))
    elif wanted := sorted(graphs, key=str):
        query = bind(ATTRIBUTED_OF, prov=PROV_GRAPH, graphs=wanted)
    else:
        return set()
    return {named_node(row["graph"]) for row in select(store.query, query)}


def take_over(store: Store, graphs: Iterable[NamedNode]) -> None:
    """Make graphs of callers the operator's, who has loaded the same."""
    if wanted := sorted(graphs, key=str):
        rows = select(store.query, bind(ATTRIBUTED_OF, prov=PROV_GRAPH, graphs=wanted))
        store.commit_provenance(
            Patch(
                frozenset(
                    Quad(named_node(row["graph"]), PROV.wasAttributedTo, named_node(row["caller"]), PROV_GRAPH)
                    for row in rows
                )
            )
        )


def check_changes(store: Store, changes: Sequence[GraphChange], prefixes: tuple[str, ...] = _OWNED) -> None:
    """Raise ForbiddenError if a tool call without the scope ``admin`` changes what it did not write.

    Call it under the lock.

    `prefixes` are those of the graphs that are checked. Shared graphs that lose their last reference may be removed.
    """
    author = get_author()
    if author is None:
        return
    held = [
        change.graph
        for change in changes
        if change.graph.value.startswith(prefixes)
        and (change.added or change.removed)
        and not (change.content_sha256 is None and change.graph.value.startswith(SHARED))
        and store.count(change.graph)
    ]
    refuse_foreign(sorted(set(held) - find_attributed(store, held), key=str), author)


def checked(store: Store, describe: Describe, prefixes: tuple[str, ...] = _OWNED) -> Describe:
    """Have the `describe` of a commit check the changes first, as `check_changes` does."""

    def check_and_describe(changes: Sequence[GraphChange]) -> Patch:
        check_changes(store, changes, prefixes)
        return describe(changes)

    return check_and_describe


def refuse_foreign(graphs: Sequence[NamedNode], author: str) -> None:
    """Raise ForbiddenError if there are `graphs`: those that a caller may not change without the scope ``admin``."""
    if graphs:
        named = ", ".join(graph.value for graph in graphs[:_SHOWN])
        more = f" and {len(graphs) - _SHOWN} more" if len(graphs) > _SHOWN else ""
        raise ForbiddenError(
            f"{named}{more}: loaded from files or written with the scope 'admin', so {author} may not replace it "
            f"without it. {TOKEN_HINT} Other calls may add records, and replace those that such calls wrote."
        )
