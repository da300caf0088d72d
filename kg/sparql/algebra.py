"""The parts of a query, each with its position: triple patterns, comparisons and groups.

`kg.sparql.parser` builds them, and not rdflib's parser: that one reports no positions, does not support the additions
of SPARQL 1.2 and Oxigraph (triple terms, LATERAL), and takes unbounded time on nested groups. `kg.sparql.parser` reads
each token once, and returns None for a query that is too long, too deep or not understood. The parts are for hints
only: the engine's parser decides which SPARQL is valid.
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
    """A term or variable at its position. `value`: the IRI, the lexical form, or the name without its question mark.

    A prefixed name with an undeclared prefix has the kind ``unknown`` and itself as value.
    """

    kind: NodeKind
    value: str
    text: str
    start: int
    datatype: str | None = None
    language: str | None = None

    @property
    def end(self) -> int:
        """End offset (exclusive)."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One triple pattern. A sequence path becomes several patterns, joined by blank nodes.

    `predicate` is None for any other path; `atoms` are the properties in it. `scope` numbers the groups around it that
    need no solution (OPTIONAL, UNION, MINUS, EXISTS), outermost first; empty means that the pattern has to match.
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
        """The IRI of its property, or "" for a variable or a path."""
        return self.predicate.value if self.predicate is not None and self.predicate.kind == "iri" else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A variable compared with a constant; `function` is the function applied to the variable, in capitals, or ""."""

    variable: Node
    function: str
    operator: str
    constant: Node
    scope: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a group, with its text. `parts` are the groups in it."""

    kind: ElementKind
    start: int
    end: int
    text: str
    node: Node | None = None
    parts: tuple[tuple[Element, ...], ...] = ()
    names: frozenset[str] = frozenset()
    """The variables in it."""
    pattern: Pattern | None = None
    """Only for the kind ``triple``."""
    select: Select | None = None
    """Only for the kind ``select``."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a SELECT, or a key of its groups."""

    name: str
    """The name of the variable; empty for a key without a name."""
    expression: tuple[Token, ...] = ()
    """The tokens of the expression for its values; empty for a variable that the WHERE clause binds."""


@dataclass(slots=True)
class Select:
    """The parts of a SELECT, of the whole query or within it. Of an ASK only the body."""

    columns: list[Column] = field(default_factory=list)
    star: bool = False
    keys: list[Column] | None = None
    """None without GROUP BY."""
    body: tuple[int, int] = (0, 0)
    """Start and end of the text between the brackets of its WHERE clause."""
    is_known: bool = True
    """Whether all of its columns and keys are understood."""


@dataclass(slots=True)
class Query:
    """A parsed query."""

    text: str
    form: Form = "SELECT"
    declared: dict[str, Node] = field(default_factory=dict)
    """The prefixes that it declares; each node is the IRI of the namespace."""
    used: dict[str, Token] = field(default_factory=dict)
    """The prefixes that it uses, each with its first prefixed name."""
    undeclared: list[Token] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    graphs: list[Node] = field(default_factory=list)
    """The graphs in GRAPH, FROM and FROM NAMED."""
    select: Select = field(default_factory=Select)
    selected: list[Node] = field(default_factory=list)
    """The variables in SELECT or DESCRIBE, except those of ``(expression AS ?name)``."""
    where: tuple[Element, ...] = ()
    dataset: str = ""
    """The text of its FROM clauses."""
    tail: tuple[Token, ...] = ()
    """The tokens after the WHERE clause."""
    prologue: str = ""
    """The text before its form."""


def variable_name(node: Node) -> str:
    """Return the name of a variable, or the name that `to_sparql` gives a blank node; "" for any other term."""
    if node.kind == "variable":
        return node.value.partition(" ")[0]
    return _blank_name(node) if node.kind == "blank" else ""


def _blank_name(node: Node) -> str:
    return "_" + "".join(letter if letter.isalnum() else "_" for letter in node.value)


def to_sparql(node: Node) -> str:
    """Return `node` as text for use in another query, with a blank node as a variable."""
    return f"?{_blank_name(node)}" if node.kind == "blank" else node.text
