"""Reads a query into the parts of `kg.sparql.algebra`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import urljoin

from kg.sparql.algebra import Comparison, Element, ElementKind, Node, Pattern, Query, shown, variable_of
from kg.sparql.guard import LIGHT
from kg.sparql.lexer import Token, tokens
from kg.vocabulary import PREFIXES, RDF, XSD

MAX_DEPTH: Final = 48

_TYPE: Final = RDF.type.value
_XSD: Final = XSD.iri
_CLOSERS: Final = {"(": ")", "[": "]", "{": "}", "<<": ">>", "<<(": ")>>", "{|": "|}"}
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


class UnreadableError(Exception):
    """Not understood; the reader gives up."""


class Cursor:
    """Reads tokens from left to right; every step raises UnreadableError where they end."""

    def __init__(self, text: str, cut: list[Token]) -> None:
        self._tokens = cut
        self._at = 0
        self._depth = 0
        self._scope: tuple[int, ...] = ()
        self._scopes = 0
        self._graph: Node | None = None
        self._base = ""
        self._hidden: list[tuple[str, frozenset[str]]] = []
        self._query = Query(text)

    # -- tokens

    def _peek(self, ahead: int = 0) -> str:
        """Return the text of a token to come, keywords in capitals; empty at the end."""
        at = self._at + ahead
        if at >= len(self._tokens):
            return ""
        token = self._tokens[at]
        return token.text.upper() if token.kind == "word" else token.text

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise UnreadableError
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, text: str) -> Token:
        if self._peek() != text:
            raise UnreadableError
        return self._next()

    def _since(self, at: int) -> tuple[int, int, str]:
        """Return where the tokens from index `at` to the last one read begin and end, and their text."""
        start, end = self._tokens[at].start, self._tokens[self._at - 1].end
        return start, end, self._query.text[start:end]

    def _note(self, token: Token) -> None:
        """Take note of a term that stands where nothing is matched."""
        if token.kind == "name":
            self._named(token)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError

    # -- terms

    def _term(self) -> Node:
        sign = ""
        token = self._next()
        start = token.start
        if token.text in ("+", "-"):
            sign, token = token.text, self._next()
        if token.kind == "string":
            datatype, language, end = _XSD + "string", None, token.end
            following = self._tokens[self._at] if self._at < len(self._tokens) else None
            if following is not None and following.kind == "language":
                self._next()
                datatype, language, end = RDF.langString.value, following.text[1:].partition("--")[0], following.end
            elif following is not None and following.text == "^^":
                self._next()
                of = self._node(self._next())
                datatype, end = of.value, of.end
            return Node("literal", _unquoted(token.text), self._query.text[start:end], start, datatype, language)
        node = self._node(token)
        return replace(node, value=sign + node.value, text=sign + node.text, start=start) if sign else node

    def _node(self, token: Token) -> Node:
        match token.kind:
            case "iri":
                value = token.text[1:-1]
                return Node("iri", urljoin(self._base, value) if self._base else value, token.text, token.start)
            case "name":
                return self._named(token)
            case "variable":
                return Node("variable", token.text[1:], token.text, token.start)
            case "blank":
                return Node("blank", token.text, token.text, token.start)
            case "string":
                return Node("literal", _unquoted(token.text), token.text, token.start, _XSD + "string")
            case "number":
                exact = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
                return Node("literal", token.text, token.text, token.start, _XSD + exact)
        word = token.text.upper()
        if word == "A":
            return Node("iri", _TYPE, token.text, token.start)
        if word in ("TRUE", "FALSE"):
            return Node("literal", word.lower(), token.text, token.start, _XSD + "boolean")
        raise UnreadableError

    def _named(self, token: Token) -> Node:
        prefix, _, local = token.text.partition(":")
        query = self._query
        query.used.setdefault(prefix, token)
        namespace = query.declared[prefix].value if prefix in query.declared else PREFIXES.get(prefix)
        if namespace is None:
            if token not in query.undeclared:
                query.undeclared.append(token)
            return Node("unknown", token.text, token.text, token.start)
        return Node("iri", namespace + local.replace("\\", ""), token.text, token.start)

    def _skip(self) -> tuple[int, int]:
        """Pass over what is in brackets; return the indexes of its first token and of the one after its last."""
        start = self._at
        closers = [_CLOSERS[self._next().text]]
        while closers:
            token = self._next()
            if token.kind == "punctuation" and token.text in _CLOSERS:
                closers.append(_CLOSERS[token.text])
            elif token.kind == "punctuation" and token.text == closers[-1]:
                closers.pop()
            else:
                self._note(token)
        return start, self._at


def _unquoted(text: str) -> str:
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return "".join(_characters(text[width:-width]))


def _characters(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text[at] != "\\":
            yield text[at]
            at += 1
            continue
        escape = text[at + 1 : at + 2]
        width = {"u": 4, "U": 8}.get(escape, 0)
        code = int(text[at + 2 : at + 2 + width], 16) if width else 0
        yield chr(min(code, 0x10FFFF)) if width else _ESCAPES.get(escape, escape)
        at += 2 + width


_COMPARED: Final = frozenset({"=", "!=", "<", ">", "<=", ">="})
_TURNED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_AROUND: Final = frozenset({"(", ")", "&&", "||", "!", ",", "}", "{", "."})


class Expressions(Cursor):
    """Finds comparisons by what stands left and right of an operator, without reading the expression as a whole."""

    def _compare(self, at: int, end: int, spans: list[tuple[int, int]]) -> None:
        index = at
        while index < end:
            if (span := next((span for span in spans if span[0] == index), None)) is not None:
                index = span[1]
                continue
            text = self._tokens[index].text
            if text in _COMPARED:
                left, before = self._operand_before(index)
                right, after = self._operand_after(index + 1)
                if before in _AROUND and after in _AROUND:
                    self._compared(left, text, right)
                    self._compared(right, _TURNED.get(text, text), left)
            elif text.upper() == "LANGMATCHES" and self._tokens[index + 1].text == "(":
                left, after = self._operand_after(index + 2)
                if after == "," and isinstance(left, tuple):
                    comma = next(i for i in range(index + 2, end) if self._tokens[i].text == ",")
                    self._compared(left, "LANGMATCHES", self._operand_after(comma + 1)[0])
            elif text.upper() == "IN" and self._tokens[index + 1].text == "(":
                negated = self._tokens[index - 1].text.upper() == "NOT"
                left, _ = self._operand_before(index - negated)
                inside = index + 2
                while inside < end and self._tokens[inside].text != ")":
                    self._compared(left, "NOT IN" if negated else "IN", self._operand_after(inside)[0])
                    inside = self._after_comma(inside, end)
            index += 1

    def _after_comma(self, index: int, end: int) -> int:
        while index < end and self._tokens[index].text not in (",", ")"):
            index += 1
        return index + (index < end and self._tokens[index].text == ",")

    def _compared(self, left: object, operator: str, right: object) -> None:
        if isinstance(left, tuple) and isinstance(right, Node):
            self._query.comparisons.append(Comparison(left[0], left[1], operator, right, self._scope))

    def _operand_before(self, index: int) -> tuple[object, str]:
        """Return the operand that ends before token `index`, and the text before it."""
        cut = self._tokens
        token = cut[index - 1]
        if token.kind == "variable":
            return (self._node(token), ""), cut[index - 2].text
        if (
            token.text == ")"
            and index >= 5
            and cut[index - 2].kind == "variable"
            and cut[index - 3].text == "("
            and cut[index - 4].kind in ("word", "name")
        ):
            return (self._node(cut[index - 2]), cut[index - 4].text.upper()), cut[index - 5].text
        start = index - 1
        if token.kind == "language" or (start >= 2 and cut[start - 1].text == "^^"):
            start -= 1 if token.kind == "language" else 2
        elif token.text == ")" and index >= 4 and cut[index - 2].kind == "string":
            start = index - 4
        node, _ = self._operand_after(start)
        return (node if isinstance(node, Node) else None), cut[start - 1].text if start else ""

    def _operand_after(self, index: int) -> tuple[object, str]:
        """Return the operand that begins at token `index`, and the text after it."""
        cut = self._tokens
        token = cut[index]
        following = [cut[at].text if at < len(cut) else "" for at in range(index + 1, index + 5)]
        if token.kind == "variable":
            return (self._node(token), ""), following[0]
        if token.kind in ("word", "name", "iri") and following[0] == "(" and following[2] == ")":
            inner = cut[index + 2]
            if inner.kind == "variable" and token.kind != "iri":
                return (self._node(inner), token.text.upper()), following[3]
            if inner.kind == "string" and token.kind != "word":
                cast, value = self._node(token), self._node(inner)
                end = cut[index + 3].end
                text = self._query.text[token.start : end]
                return Node("literal", value.value, text, token.start, datatype=cast.value), following[3]
            return None, following[3]
        signed = token.text in ("+", "-") and index + 1 < len(cut) and cut[index + 1].kind == "number"
        if signed or token.kind in ("string", "number", "iri", "name") or token.text.upper() in ("TRUE", "FALSE"):
            kept, self._at = self._at, index
            node = self._term()
            after, self._at = self._peek(), kept
            return node, after
        return None, following[0]


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
