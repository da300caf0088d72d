"""Reads a query into the parts of `kg.sparql.algebra`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import urljoin

from kg.sparql.algebra import Comparison, Element, ElementKind, Node, Pattern, Query, shown, variable_of
from kg.sparql.comparisons import Expressions
from kg.sparql.cursor import UnreadableError
from kg.sparql.guard import LIGHT
from kg.sparql.lexer import tokens
from kg.vocabulary import RDF

P = ParamSpec("P")
T = TypeVar("T")

MAX_CHARS: Final = 100_000
MAX_TOKENS: Final = 20_000

_TURN: Final = threading.RLock()
_CLAUSES: Final = frozenset({"FILTER", "BIND", "VALUES", "OPTIONAL", "MINUS", "GRAPH", "SERVICE", "LATERAL"})


def in_turn(read: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Have long texts read one at a time: threads that compute at once hold up all others, and none ends sooner."""

    @wraps(read)
    def reading(query: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with contextlib.nullcontext() if len(query) < LIGHT else _TURN:
            return read(query, *args, **kwargs)

    return reading


@in_turn
def parse(query: str) -> Query | None:
    """Return `query` as its parts, or None where it cannot be told what they are. Never raises."""
    if len(query) > MAX_CHARS:
        return None
    cut = []
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        cut.append(token)
        if len(cut) > MAX_TOKENS:
            return None
    try:
        return _Reader(query, cut).query()
    except (UnreadableError, IndexError, ValueError):  # ValueError: an IRI that cannot be resolved
        return None


class _Reader(Expressions):
    """Reads groups and what stands in them."""

    # -- the query

    def query(self) -> Query:
        query = self._query
        self._prologue()
        first = self._next()
        query.prologue = query.text[: first.start]
        form = first.text.upper()
        if form not in ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE"):
            raise UnreadableError
        query.form = form  # type: ignore[assignment]
        template: tuple[int, int] | None = None
        while self._peek() not in ("{", ""):
            if self._peek() == "FROM":
                self._dataset()
            elif self._peek() == "(":
                self._expression()
            elif self._peek() in ("WHERE", "LIMIT", "ORDER", "OFFSET", "GROUP", "HAVING", "VALUES"):
                break
            else:
                token = self._next()
                self._note(token)
                if token.kind == "variable":
                    query.selected.append(self._node(token))
        if form == "CONSTRUCT" and self._peek() == "{":
            template = self._skip()
            while self._peek() == "FROM":
                self._dataset()
        if self._peek() == "WHERE":
            self._next()
        if self._peek() == "{":
            query.where = self._group()
        elif form != "DESCRIBE":
            raise UnreadableError
        if template is not None:
            for token in self._tokens[template[0] : template[1]]:
                self._note(token)
        start = self._at
        while self._at < len(self._tokens):
            if self._peek() == "VALUES":
                query.where += (self._values(),)
            elif self._peek() == "(":
                self._expression()
            else:
                self._note(self._next())
        query.tail = tuple(self._tokens[start:])
        return query

    def _prologue(self) -> None:
        while (word := self._peek()) in ("PREFIX", "BASE", "VERSION"):
            self._next()
            if word == "VERSION":
                self._next()
                continue
            name = self._next() if word == "PREFIX" else None
            iri = self._next()
            if iri.kind != "iri" or (name is not None and not name.text.endswith(":")):
                raise UnreadableError
            value = urljoin(self._base, iri.text[1:-1]) if self._base else iri.text[1:-1]
            if name is None:
                self._base = value
            else:
                self._query.declared[name.text[:-1]] = Node("iri", value, iri.text, iri.start)

    def _dataset(self) -> None:
        at = self._at
        self._expect("FROM")
        if self._peek() == "NAMED":
            self._next()
        self._query.graphs.append(self._term())
        self._query.dataset += self._since(at)[2] + " "

    # -- groups

    def _group(self, optional: bool = False) -> tuple[Element, ...]:
        """Read ``{ ... }``; `optional`: the rest can have solutions without it."""
        self._enter()
        outer = self._scope
        if optional:
            self._scopes += 1
            self._scope = (*outer, self._scopes)
        self._expect("{")
        found: list[Element] = []
        if self._peek() == "SELECT":
            found.append(self._select())
        while self._peek() != "}":
            if self._peek() == ".":
                self._next()
            elif self._peek() in _CLAUSES or self._peek() == "{":
                found.append(self._clause())
            else:
                found.extend(self._triples())
        self._expect("}")
        self._scope = outer
        self._depth -= 1
        return tuple(found)

    def _clause(self) -> Element:
        at = self._at
        first = self._peek()
        node: Node | None = None
        parts: list[tuple[Element, ...]] = []
        kind: ElementKind
        if first == "VALUES":
            return self._values()
        if first == "{":
            kind = "group"
            following = self._after_group(self._at)
            if following == "UNION":
                kind = "union"
            parts.append(self._group(optional=kind == "union"))
            while self._peek() == "UNION":
                self._next()
                parts.append(self._group(optional=True))
        else:
            self._next()
            kind = first.lower()  # type: ignore[assignment]
            if first == "FILTER":
                parts = self._constraint()
            elif first == "BIND":
                parts = self._expression()
            elif first in ("GRAPH", "SERVICE"):
                if self._peek() == "SILENT":
                    self._next()
                node = self._term()
                parts.append(self._inside(node, first))
            else:
                parts.append(self._group(optional=first != "LATERAL"))
        return self._element(kind, at, node=node, parts=tuple(parts))

    def _inside(self, node: Node, clause: str) -> tuple[Element, ...]:
        """Read the group of GRAPH or SERVICE; what is asked of another service is not looked at."""
        if clause == "SERVICE":
            self._skip()
            return ()
        if node.kind == "iri":
            self._query.graphs.append(node)
        outer, self._graph = self._graph, node
        found = self._group()
        self._graph = outer
        return found

    def _element(
        self, kind: ElementKind, at: int, *, node: Node | None = None, parts: tuple[tuple[Element, ...], ...] = ()
    ) -> Element:
        start, end, text = self._since(at)
        names = frozenset(token.text[1:] for token in self._tokens[at : self._at] if token.kind == "variable")
        return Element(kind, start, end, text, node, parts, names)

    def _after_group(self, at: int) -> str:
        """Return the text after the group that begins at token `at`."""
        depth = 0
        for index in range(at, len(self._tokens)):
            text = self._tokens[index].text
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return self._peek(index + 1 - self._at)
        raise UnreadableError

    def _select(self) -> Element:
        """Read a sub-SELECT; variables that it does not project are its own."""
        at = self._at
        first_pattern, first_comparison = len(self._query.patterns), len(self._query.comparisons)
        self._expect("SELECT")
        shown: set[str] | None = set()
        while self._peek() not in ("WHERE", "{"):
            if self._peek() == "(":
                opened = self._at
                self._expression()
                shown = None if shown is None else shown | {self._tokens[self._at - 2].text[1:]}
                if opened + 4 > self._at:
                    raise UnreadableError
            elif self._peek() == "*":
                self._next()
                shown = None
            else:
                token = self._next()
                if shown is not None and token.kind == "variable":
                    shown.add(token.text[1:])
        if self._peek() == "WHERE":
            self._next()
        parts = (self._group(),)
        while self._peek() != "}":
            if self._peek() == "VALUES":
                self._values()
            elif self._peek() == "(":
                self._expression()
            else:
                self._note(self._next())
        if shown is not None:
            self._hide(at, shown, first_pattern, first_comparison)
        return self._element("select", at, parts=parts)

    def _hide(self, at: int, shown: set[str], first_pattern: int, first_comparison: int) -> None:
        def own(node: Node) -> Node:
            if node.kind != "variable" or node.value in shown:
                return node
            return replace(node, value=f"{node.value} in {at}")

        query = self._query
        query.patterns[first_pattern:] = [
            replace(one, subject=own(one.subject), object=own(one.object)) for one in query.patterns[first_pattern:]
        ]
        query.comparisons[first_comparison:] = [
            replace(one, variable=own(one.variable)) for one in query.comparisons[first_comparison:]
        ]

    def _values(self) -> Element:
        at = self._at
        self._expect("VALUES")
        names: list[Node] = []
        rows = self._peek() == "("
        if rows:
            self._next()
            while self._peek() != ")":
                names.append(self._term())
            self._next()
        else:
            names.append(self._term())
        self._expect("{")
        while self._peek() != "}":
            if rows:
                self._expect("(")
            for name in names:
                if self._peek() == "UNDEF":
                    self._next()
                    continue
                self._query.comparisons.append(Comparison(name, "", "VALUES", self._term(), self._scope))
            if rows:
                self._expect(")")
            elif not names:
                raise UnreadableError
        self._expect("}")
        return self._element("values", at)

    # -- expressions

    def _constraint(self) -> list[tuple[Element, ...]]:
        """Read what follows FILTER: an expression in brackets, a call, or EXISTS."""
        if self._peek() == "NOT" or self._peek() == "EXISTS":
            while self._peek() in ("NOT", "EXISTS"):
                self._next()
            return [self._group(optional=True)]
        if self._peek() != "(":
            self._note(self._next())
        return self._expression(called=self._at - 1)

    def _expression(self, called: int | None = None) -> list[tuple[Element, ...]]:
        """Read ``( ... )``, note the comparisons in it, and return the groups of its EXISTS."""
        at = self._at if called is None else called
        self._expect("(")
        groups: list[tuple[Element, ...]] = []
        spans: list[tuple[int, int]] = []
        depth = 1
        while depth:
            text = self._peek()
            if text == "EXISTS":
                self._next()
                opened = self._at
                groups.append(self._group(optional=True))
                spans.append((opened, self._at))
                continue
            depth += (text == "(") - (text == ")")
            if text in ("{", "}"):
                raise UnreadableError
            self._note(self._next())
        self._compare(at, self._at, spans)
        return groups

    # -- triples

    def _triples(self) -> list[Element]:
        """Read the triples of one subject."""
        first = len(self._query.patterns)
        bracketed = self._peek() in ("[", "(", "<<", "<<(")
        subject = self._object()
        if not (bracketed and self._peek() in (".", "}")):
            self._properties(subject)
        if len(self._query.patterns) == first:
            raise UnreadableError
        return [self._triple(pattern) for pattern in self._query.patterns[first:]]

    def _triple(self, pattern: Pattern) -> Element:
        predicate = pattern.path
        text = f"{shown(pattern.subject)} {predicate} {shown(pattern.object)}"
        names = {name for node in (pattern.subject, pattern.object) if (name := variable_of(node))}
        if pattern.predicate is not None and (name := variable_of(pattern.predicate)):
            names.add(name)
        if pattern.graph is not None and (name := variable_of(pattern.graph)):
            names.add(name)
        return Element("triple", pattern.start, pattern.end, text, pattern.graph, (), frozenset(names), pattern)

    def _properties(self, subject: Node) -> None:
        while True:
            steps, text, atoms = self._path()
            while True:
                self._add(subject, steps, text, atoms, self._object())
                while self._peek() == "~" or self._peek() == "{|":
                    if self._peek() == "{|":
                        self._skip()
                    else:
                        self._next()
                        if self._peek() not in (".", ",", ";", "}", "{|", "~", "]"):
                            self._term()
                if self._peek() != ",":
                    break
                self._next()
            if self._peek() != ";":
                return
            while self._peek() == ";":
                self._next()
            if self._peek() in (".", "}", "]", "|}"):
                return

    def _add(
        self, subject: Node, steps: list[tuple[Node, bool]] | None, text: str, atoms: tuple[Node, ...], object_: Node
    ) -> None:
        start = min(subject.start, atoms[0].start) if atoms else subject.start
        if steps is None:
            self._query.patterns.append(
                Pattern(subject, None, object_, atoms, text, self._graph, self._scope, start, object_.end)
            )
            return
        before = subject
        for index, (predicate, inverse) in enumerate(steps):
            last = index == len(steps) - 1
            after = object_ if last else Node("blank", f"path {predicate.start}", "[]", predicate.start)
            ends = (after, before) if inverse else (before, after)
            shown = predicate.text if len(steps) > 1 or inverse else text
            self._query.patterns.append(
                Pattern(
                    ends[0],
                    predicate,
                    ends[1],
                    (predicate,),
                    shown,
                    self._graph,
                    self._scope,
                    min(predicate.start, subject.start),
                    max(predicate.end, object_.end),
                )
            )
            before = after

    def _path(self) -> tuple[list[tuple[Node, bool]] | None, str, tuple[Node, ...]]:
        """Read a predicate or path: its steps with whether each is inverse (None if it is no mere sequence)."""
        at = self._at
        if self._tokens[at].kind == "variable":
            node = self._term()
            return [(node, False)], node.text, (node,)
        steps: list[tuple[Node, bool]] = []
        atoms: list[Node] = []
        simple, inverse, depth, operand = True, False, 0, False
        while True:
            text = self._peek()
            token = self._tokens[self._at] if self._at < len(self._tokens) else None
            if token is None:
                raise UnreadableError
            if not operand and (token.kind in ("iri", "name") or text == "A"):
                node = self._term()
                atoms.append(node)
                steps.append((node, inverse))
                operand, inverse = True, False
            elif not operand and text in ("^", "!", "("):
                self._next()
                depth += text == "("
                simple = simple and text == "^" and not inverse
                inverse = text == "^"
            elif operand and text in ("/", "|"):
                self._next()
                simple = simple and text == "/"
                operand = False
            elif operand and text in ("*", "+", "?"):
                self._next()
                simple = False
            elif operand and text == ")" and depth:
                self._next()
                depth -= 1
            elif operand and not depth:
                break
            else:
                raise UnreadableError
        return (steps if simple else None), self._since(at)[2], tuple(atoms)

    def _object(self) -> Node:
        """Read a term, or a blank node or collection with the triples inside."""
        first = self._peek()
        if first in ("<<", "<<("):
            start, _ = self._skip()
            offset, _, text = self._since(start)
            return Node("triple", text, text, offset)
        if first not in ("[", "("):
            return self._term()
        self._enter()
        at = self._next()
        node = Node("blank", f"at {at.start}", "[]", at.start)
        if first == "[":
            if self._peek() != "]":
                self._properties(node)
            self._expect("]")
        elif self._peek() == ")":
            self._next()
            node = Node("iri", RDF.nil.value, "()", at.start)
        else:
            self._list(node)
        self._depth -= 1
        return node

    def _list(self, node: Node) -> None:
        link = node
        while True:
            item = self._object()
            first = Node("iri", RDF.first.value, "rdf:first", item.start)
            rest = Node("iri", RDF.rest.value, "rdf:rest", item.start)
            self._add(link, [(first, False)], "rdf:first", (first,), item)
            closed = self._peek() == ")"
            following = (
                Node("iri", RDF.nil.value, "rdf:nil", item.start)
                if closed
                else Node("blank", f"after {item.start}", "[]", item.start)
            )
            self._add(link, [(rest, False)], "rdf:rest", (rest,), following)
            link = following
            if closed:
                self._next()
                return
