"""What a query asks, in parts that can be checked one by one: patterns, filters and groups, each with its position.

Read by `kg.sparql.parser` over `kg.sparql.lexer` and not by rdflib's parser: that one gives no positions, does not know
what SPARQL 1.2 and Oxigraph add (triple terms, LATERAL), and its time on nested groups is not bounded. This one looks
at each token once, and gives up (`parse` returns None) on what is too large, too deep or not understood: what is read
is for hints alone, and the engine's parser decides what is SPARQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kg.sparql.lexer import Token

Form = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]
NodeKind = Literal["iri", "literal", "variable", "blank", "triple", "unknown"]
ElementKind = Literal["triple", "filter", "bind", "values", "group", "graph", "optional", "union", "minus", "select",
                      "service", "lateral"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """A term or variable where it stands. `value`: the IRI, the characters, or the name without its question mark.

    A prefixed name whose prefix nobody declares is of kind ``unknown``, with the name as its value.
    """

    kind: NodeKind
    value: str
    text: str
    start: int
    datatype: str | None = None
    language: str | None = None

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One triple pattern. A path that is a mere sequence has become several, joined by blank nodes.

    `predicate` is None for any other path; `atoms` are the properties in it. `scope` names the groups around it that
    may stay without solutions (OPTIONAL, UNION, MINUS, EXISTS), outermost first: none means that it has to match.
    """

    subject: Node
    predicate: Node | None
    object: Node
    atoms: tuple[Node, ...]
    path: str
    graph: Node | None
    scope: tuple[int, ...]
    start: int
    end: int

    @property
    def iri(self) -> str:
        """The property that it asks for, or nothing where that is a variable or a path."""
        return self.predicate.value if self.predicate is not None and self.predicate.kind == "iri" else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A variable compared with a constant; `function` is what is applied to the variable first, in capitals."""

    variable: Node
    function: str
    operator: str
    constant: Node
    scope: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a group, in its own words. `triples` are those that it holds itself (kind ``triple``: one)."""

    kind: ElementKind
    start: int
    end: int
    text: str
    node: Node | None = None
    parts: tuple[tuple[Element, ...], ...] = ()
    names: frozenset[str] = frozenset()
    """The variables that it mentions."""
    pattern: Pattern | None = None
    """What an element of kind ``triple`` is."""


@dataclass(slots=True)
class Query:
    """A query, read."""

    text: str
    form: Form = "SELECT"
    declared: dict[str, Node] = field(default_factory=dict)
    """The prefixes that it declares itself; each node is the namespace's IRI."""
    used: dict[str, Token] = field(default_factory=dict)
    """The prefixes that it uses, each with the first name that does."""
    undeclared: list[Token] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    graphs: list[Node] = field(default_factory=list)
    """IRIs that GRAPH, FROM and FROM NAMED name."""
    selected: list[Node] = field(default_factory=list)
    """The variables that SELECT or DESCRIBE names by themselves, not those that it gives to expressions."""
    where: tuple[Element, ...] = ()
    dataset: str = ""
    """Its FROM clauses, as written."""
    tail: tuple[Token, ...] = ()
    """What follows the WHERE clause."""
    prologue: str = ""
    """Everything before its form."""


def variable_name(node: Node) -> str:
    """Return the name of the variable that `node` is in a query, blank nodes too; empty for any other term."""
    if node.kind == "variable":
        return node.value.partition(" ")[0]
    return _hidden(node) if node.kind == "blank" else ""


def _hidden(node: Node) -> str:
    return "_" + "".join(letter if letter.isalnum() else "_" for letter in node.value)


def to_sparql(node: Node) -> str:
    """Return `node` as it can stand in another query: blank nodes as variables."""
    return f"?{_hidden(node)}" if node.kind == "blank" else node.text
