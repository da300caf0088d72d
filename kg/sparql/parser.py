"""Parse a query into the parts of `kg.sparql.algebra`."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import urljoin

from kg.sparql.algebra import (
    Column,
    Comparison,
    Element,
    ElementKind,
    Node,
    Pattern,
    Query,
    Select,
    to_sparql,
    variable_name,
)
from kg.sparql.guard import CHEAP_CHARS
from kg.sparql.lexer import Token, tokens
from kg.vocabulary import PREFIXES, RDF, XSD

P = ParamSpec("P")
T = TypeVar("T")

MAX_CHARS: Final = 100_000
MAX_TOKENS: Final = 20_000
MAX_DEPTH: Final = 48

_TYPE: Final = RDF.type.value
_XSD: Final = XSD.iri
_CLOSERS: Final = {"(": ")", "[": "]", "{": "}", "<<": ">>", "<<(": ")>>", "{|": "|}"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_CLAUSES: Final = frozenset({"FILTER", "BIND", "VALUES", "OPTIONAL", "MINUS", "GRAPH", "SERVICE", "LATERAL"})
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison operators, each with the operator that compares the operands in reverse order."""
_AFTER_KEYS: Final = frozenset({"HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES", "}", ""})
_BOUNDARIES: Final = frozenset({"(", ")", "&&", "||", "!", ",", "}", "{", "."})
"""Tokens next to a comparison. Any other token (such as ``+``) means that the operand is part of a larger one."""

_LONG_QUERIES: Final = threading.RLock()

_Operand = tuple[Node, str] | Node | None
"""A variable with the function applied to it (or ""), a constant, or None for any other expression."""


class _UnsupportedError(Exception):
    """The parser gives up."""


def one_long_query_at_a_time(read: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Decorate a function of a query: calls with long queries wait for each other.

    Threads that compute at the same time share one interpreter lock: they delay every other thread, and none of them
    finishes sooner than one after the other.
    """

    @wraps(read)
    def reading(query: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with contextlib.nullcontext() if len(query) < CHEAP_CHARS else _LONG_QUERIES:
            return read(query, *args, **kwargs)

    return reading


@one_long_query_at_a_time
def parse(query: str) -> Query | None:
    """Parse `query` into its parts. Returns None if it is too long, too deep or not understood; never raises."""
    if len(query) > MAX_CHARS:
        return None
    significant = []
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        significant.append(token)
        if len(significant) > MAX_TOKENS:
            return None
    try:
        return _Parser(query, significant).query()
    except (_UnsupportedError, LookupError, ValueError):  # ValueError: an IRI that cannot be resolved
        return None


class _Parser:
    """A recursive-descent parser. Every step raises _UnsupportedError or LookupError where the tokens end."""

    def __init__(self, text: str, significant: list[Token]) -> None:
        self._tokens = significant
        self._at = 0
        self._depth = 0
        self._scope: tuple[int, ...] = ()
        self._scopes = 0
        self._graph: Node | None = None
        self._base = ""
        self._query = Query(text)

    # -- tokens

    def _peek(self, ahead: int = 0) -> str:
        """Return the text of an upcoming token, keywords in capitals; empty at the end."""
        at = self._at + ahead
        if at >= len(self._tokens):
            return ""
        token = self._tokens[at]
        return token.text.upper() if token.kind == "word" else token.text

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise _UnsupportedError
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, text: str) -> Token:
        if self._peek() != text:
            raise _UnsupportedError
        return self._next()

    def _skip_word(self, word: str) -> None:
        if self._peek() == word:
            self._next()

    def _since(self, at: int) -> tuple[int, int, str]:
        """Return start, end and text of the tokens from index `at` to the last one read."""
        start, end = self._tokens[at].start, self._tokens[self._at - 1].end
        return start, end, self._query.text[start:end]

    def _note_prefix(self, token: Token) -> None:
        """Record the prefix of a term that is part of no pattern."""
        if token.kind == "name":
            self._prefixed_name(token)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _UnsupportedError

    def _skip_brackets(self) -> tuple[int, int]:
        """Skip a bracketed part; return the index of its first token and that after its last."""
        start = self._at
        closers = [_CLOSERS[self._next().text]]
        while closers:
            token = self._next()
            if token.kind == "punctuation" and token.text in _CLOSERS:
                closers.append(_CLOSERS[token.text])
            elif token.kind == "punctuation" and token.text == closers[-1]:
                closers.pop()
            else:
                self._note_prefix(token)
        return start, self._at

    # -- the query

    def query(self) -> Query:
        query = self._query
        self._prologue()
        first = self._next()
        query.prologue = query.text[: first.start]
        form = first.text.upper()
        if form not in ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE"):
            raise _UnsupportedError
        query.form = form  # type: ignore[assignment]
        template: tuple[int, int] | None = None
        while self._peek() not in ("{", ""):
            if self._peek() == "FROM":
                self._dataset()
            elif self._peek() in ("WHERE", "LIMIT", "ORDER", "OFFSET", "GROUP", "HAVING", "VALUES"):
                break
            else:
                self._selected(query.select)
                token = self._tokens[self._at - 1]
                if token.kind == "variable":
                    query.selected.append(self._node(token))
        if form == "CONSTRUCT" and self._peek() == "{":
            template = self._skip_brackets()
            while self._peek() == "FROM":
                self._dataset()
        self._skip_word("WHERE")
        if self._peek() == "{":
            query.where = self._body(query.select)
        elif form != "DESCRIBE":
            raise _UnsupportedError
        if template is not None:
            for token in self._tokens[template[0] : template[1]]:
                self._note_prefix(token)
        start = self._at
        query.where += self._modifiers(query.select, end="")
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
                raise _UnsupportedError
            value = urljoin(self._base, iri.text[1:-1]) if self._base else iri.text[1:-1]
            if name is None:
                self._base = value
            else:
                self._query.declared[name.text[:-1]] = Node("iri", value, iri.text, iri.start)

    def _dataset(self) -> None:
        at = self._at
        self._expect("FROM")
        self._skip_word("NAMED")
        self._query.graphs.append(self._term())
        self._query.dataset += self._since(at)[2] + " "

    def _selected(self, select: Select) -> None:
        """Read a column of a SELECT, or a word before the columns."""
        if self._peek() == "*":
            select.star = True
        if self._peek() in ("*", "DISTINCT", "REDUCED"):
            self._next()
        else:
            select.columns.append(self._column())
            select.is_known = select.is_known and select.columns[-1].name != ""

    def _keys(self, select: Select) -> None:
        """Read the keys of GROUP BY."""
        self._next()
        self._skip_word("BY")
        select.keys = []
        while self._peek() not in _AFTER_KEYS:
            select.keys.append(self._column())
            select.is_known = select.is_known and (select.keys[-1].name != "" or len(select.keys[-1].expression) > 1)

    def _column(self) -> Column:
        """Read a variable, an expression in brackets with the name that it gets in them, or a call."""
        at = self._at
        if self._peek() != "(":
            self._note_prefix(self._next())
        if self._tokens[at].kind != "variable" and self._peek() == "(":
            self._expression()
        read = tuple(self._tokens[at : self._at])
        inner = read[1:-1] if read[0].text == "(" else read
        if len(inner) == 1 and inner[0].kind == "variable":
            return Column(inner[0].text[1:])
        if len(inner) > 2 and inner[-2].text.upper() == "AS":
            return Column(inner[-1].text[1:], inner[:-2])
        return Column("", read)

    def _body(self, select: Select) -> tuple[Element, ...]:
        """Read the group of a WHERE clause."""
        first = self._at
        found = self._group()
        select.body = self._tokens[first].end, self._tokens[self._at - 1].start
        return found

    def _modifiers(self, select: Select, end: str) -> tuple[Element, ...]:
        """Read what follows a WHERE clause, up to `end`; return its VALUES."""
        found: list[Element] = []
        while self._peek() != end:
            if self._peek() == "VALUES":
                found.append(self._values())
            elif self._peek() == "GROUP":
                self._keys(select)
            elif self._peek() == "(":
                self._expression()
            else:
                self._note_prefix(self._next())
        return tuple(found)

    # -- groups

    def _group(self, optional: bool = False) -> tuple[Element, ...]:
        """Read ``{ ... }``; `optional`: the rest of the query can have solutions without it."""
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
            kind = "union" if self._text_after_group() == "UNION" else "group"
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
                self._skip_word("SILENT")
                node = self._term()
                parts.append(self._graph_or_service(node, first))
            else:
                parts.append(self._group(optional=first != "LATERAL"))
        return self._element(kind, at, node=node, parts=tuple(parts))

    def _graph_or_service(self, node: Node, clause: str) -> tuple[Element, ...]:
        """Read the group of GRAPH. That of SERVICE is skipped: it queries other data."""
        if clause == "SERVICE":
            self._skip_brackets()
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

    def _text_after_group(self) -> str:
        """Return the text after the group that begins here."""
        depth = 0
        for index in range(self._at, len(self._tokens)):
            text = self._tokens[index].text
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return self._peek(index + 1 - self._at)
        raise _UnsupportedError

    def _select(self) -> Element:
        """Read a sub-SELECT; variables that it does not project are local to it."""
        at = self._at
        first_pattern, first_comparison = len(self._query.patterns), len(self._query.comparisons)
        self._expect("SELECT")
        select = Select()
        while self._peek() not in ("WHERE", "{"):
            self._selected(select)
        self._skip_word("WHERE")
        parts = (self._body(select),)
        self._modifiers(select, end="}")
        if not select.star:
            projected = {column.name for column in select.columns}
            self._rename_locals(at, projected, first_pattern, first_comparison)
        return replace(self._element("select", at, parts=parts), select=select)

    def _rename_locals(self, at: int, projected: set[str], first_pattern: int, first_comparison: int) -> None:
        def local(node: Node) -> Node:
            if node.kind != "variable" or node.value in projected:
                return node
            return replace(node, value=f"{node.value} in {at}")

        query = self._query
        query.patterns[first_pattern:] = [
            replace(one, subject=local(one.subject), object=local(one.object)) for one in query.patterns[first_pattern:]
        ]
        query.comparisons[first_comparison:] = [
            replace(one, variable=local(one.variable)) for one in query.comparisons[first_comparison:]
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
        self._expect("}")
        return self._element("values", at)

    # -- triples

    def _triples(self) -> list[Element]:
        """Read the triples of one subject."""
        first = len(self._query.patterns)
        bracketed = self._peek() in ("[", "(", "<<", "<<(")
        subject = self._object()
        if not (bracketed and self._peek() in (".", "}")):
            self._properties(subject)
        if len(self._query.patterns) == first:
            raise _UnsupportedError
        return [self._triple(pattern) for pattern in self._query.patterns[first:]]

    def _triple(self, pattern: Pattern) -> Element:
        text = f"{to_sparql(pattern.subject)} {pattern.path} {to_sparql(pattern.object)}"
        nodes = (pattern.subject, pattern.object, pattern.predicate, pattern.graph)
        names = frozenset(name for node in nodes if node is not None and (name := variable_name(node)))
        return Element("triple", pattern.start, pattern.end, text, pattern.graph, (), names, pattern)

    def _properties(self, subject: Node) -> None:
        while True:
            steps, text, atoms = self._path()
            while True:
                self._add_patterns(subject, steps, text, atoms, self._object())
                self._annotations()
                if self._peek() != ",":
                    break
                self._next()
            if self._peek() != ";":
                return
            while self._peek() == ";":
                self._next()
            if self._peek() in (".", "}", "]", "|}"):
                return

    def _annotations(self) -> None:
        """Skip the reifiers and annotations of a triple (SPARQL 1.2)."""
        while self._peek() in ("~", "{|"):
            if self._peek() == "{|":
                self._skip_brackets()
            else:
                self._next()
                if self._peek() not in (".", ",", ";", "}", "{|", "~", "]"):
                    self._term()

    def _add_patterns(
        self, subject: Node, steps: list[tuple[Node, bool]] | None, text: str, atoms: tuple[Node, ...], object_: Node
    ) -> None:
        if steps is None:
            start = min(subject.start, atoms[0].start) if atoms else subject.start
            self._query.patterns.append(
                Pattern(subject, None, object_, atoms, text, self._graph, self._scope, start, object_.end)
            )
            return
        before = subject
        for index, (predicate, inverse) in enumerate(steps):
            last = index == len(steps) - 1
            after = object_ if last else Node("blank", f"path {predicate.start}", "[]", predicate.start)
            ends = (after, before) if inverse else (before, after)
            self._query.patterns.append(
                Pattern(
                    ends[0],
                    predicate,
                    ends[1],
                    (predicate,),
                    predicate.text if len(steps) > 1 or inverse else text,
                    self._graph,
                    self._scope,
                    min(predicate.start, subject.start),
                    max(predicate.end, object_.end),
                )
            )
            before = after

    def _path(self) -> tuple[list[tuple[Node, bool]] | None, str, tuple[Node, ...]]:
        """Read a predicate or path: its steps (each with a flag for inverse; None unless a sequence), text and IRIs."""
        at = self._at
        if self._tokens[at].kind == "variable":
            node = self._term()
            return [(node, False)], node.text, (node,)
        steps: list[tuple[Node, bool]] = []
        atoms: list[Node] = []
        simple, inverse, depth, operand = True, False, 0, False
        while True:
            text = self._peek()
            token = self._tokens[self._at]
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
                raise _UnsupportedError
        return (steps if simple else None), self._since(at)[2], tuple(atoms)

    def _object(self) -> Node:
        """Read a term, or a blank node or collection with the triples in it."""
        first = self._peek()
        if first in ("<<", "<<("):
            start, _ = self._skip_brackets()
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
        link, closed = node, False
        while not closed:
            item = self._object()
            first = Node("iri", RDF.first.value, "rdf:first", item.start)
            rest = Node("iri", RDF.rest.value, "rdf:rest", item.start)
            self._add_patterns(link, [(first, False)], "rdf:first", (first,), item)
            closed = self._peek() == ")"
            following = (
                Node("iri", RDF.nil.value, "rdf:nil", item.start)
                if closed
                else Node("blank", f"after {item.start}", "[]", item.start)
            )
            self._add_patterns(link, [(rest, False)], "rdf:rest", (rest,), following)
            link = following
        self._next()

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
            return Node("literal", _unquote(token.text), self._query.text[start:end], start, datatype, language)
        node = self._node(token)
        return replace(node, value=sign + node.value, text=sign + node.text, start=start) if sign else node

    def _node(self, token: Token) -> Node:
        match token.kind:
            case "iri":
                value = token.text[1:-1]
                return Node("iri", urljoin(self._base, value) if self._base else value, token.text, token.start)
            case "name":
                return self._prefixed_name(token)
            case "variable":
                return Node("variable", token.text[1:], token.text, token.start)
            case "blank":
                return Node("blank", token.text, token.text, token.start)
            case "string":
                return Node("literal", _unquote(token.text), token.text, token.start, _XSD + "string")
            case "number":
                exact = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
                return Node("literal", token.text, token.text, token.start, _XSD + exact)
        word = token.text.upper()
        if word == "A":
            return Node("iri", _TYPE, token.text, token.start)
        if word in ("TRUE", "FALSE"):
            return Node("literal", word.lower(), token.text, token.start, _XSD + "boolean")
        raise _UnsupportedError

    def _prefixed_name(self, token: Token) -> Node:
        prefix, _, local = token.text.partition(":")
        query = self._query
        query.used.setdefault(prefix, token)
        namespace = query.declared[prefix].value if prefix in query.declared else PREFIXES.get(prefix)
        if namespace is None:
            if token not in query.undeclared:
                query.undeclared.append(token)
            return Node("unknown", token.text, token.text, token.start)
        return Node("iri", namespace + local.replace("\\", ""), token.text, token.start)

    # -- expressions: comparisons are found by the tokens next to an operator, without a tree of the expression

    def _constraint(self) -> list[tuple[Element, ...]]:
        """Read the argument of FILTER: an expression in brackets, a call, or EXISTS."""
        if self._peek() in ("NOT", "EXISTS"):
            while self._peek() in ("NOT", "EXISTS"):
                self._next()
            return [self._group(optional=True)]
        if self._peek() != "(":
            self._note_prefix(self._next())
        return self._expression(start=self._at - 1)

    def _expression(self, start: int | None = None) -> list[tuple[Element, ...]]:
        """Read ``( ... )``, record its comparisons, and return the groups of its EXISTS.

        `start` is the index of the first token, if that is the name of a function before the brackets.
        """
        at = self._at if start is None else start
        self._expect("(")
        groups: list[tuple[Element, ...]] = []
        spans: dict[int, int] = {}
        depth = 1
        while depth:
            text = self._peek()
            if text == "EXISTS":
                self._next()
                opened = self._at
                groups.append(self._group(optional=True))
                spans[opened] = self._at
                continue
            depth += (text == "(") - (text == ")")
            if text in ("{", "}"):
                raise _UnsupportedError
            self._note_prefix(self._next())
        self._find_comparisons(at, self._at, spans)
        return groups

    def _find_comparisons(self, at: int, end: int, groups: dict[int, int]) -> None:
        """Record the comparisons among the tokens `at` to `end`, except in `groups` (index of first: after last)."""
        index = at
        while index < end:
            if index in groups:
                index = groups[index]
                continue
            text = self._tokens[index].text
            if text in _MIRRORED:
                left, before = self._operand_before(index)
                right, after = self._operand_after(index + 1)
                if before in _BOUNDARIES and after in _BOUNDARIES:
                    self._add_comparison(left, text, right)
                    self._add_comparison(right, _MIRRORED[text], left)
            elif text.upper() == "LANGMATCHES" and self._tokens[index + 1].text == "(":
                left, after = self._operand_after(index + 2)
                if after == "," and isinstance(left, tuple):
                    comma = next(i for i in range(index + 2, end) if self._tokens[i].text == ",")
                    self._add_comparison(left, "LANGMATCHES", self._operand_after(comma + 1)[0])
            elif text.upper() == "IN" and self._tokens[index + 1].text == "(":
                negated = self._tokens[index - 1].text.upper() == "NOT"
                left, _ = self._operand_before(index - negated)
                inside = index + 2
                while inside < end and self._tokens[inside].text != ")":
                    self._add_comparison(left, "NOT IN" if negated else "IN", self._operand_after(inside)[0])
                    inside = self._after_comma(inside, end)
            index += 1

    def _after_comma(self, index: int, end: int) -> int:
        while index < end and self._tokens[index].text not in (",", ")"):
            index += 1
        return index + (index < end and self._tokens[index].text == ",")

    def _add_comparison(self, left: _Operand, operator: str, right: _Operand) -> None:
        if isinstance(left, tuple) and isinstance(right, Node):
            self._query.comparisons.append(Comparison(left[0], left[1], operator, right, self._scope))

    def _operand_before(self, index: int) -> tuple[_Operand, str]:
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

    def _operand_after(self, index: int) -> tuple[_Operand, str]:
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


def _unquote(text: str) -> str:
    """Return the characters of a string token."""
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return _ESCAPE.sub(_unescape, text[width:-width])


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(min(int(code, 16), 0x10FFFF)) if code else _ESCAPES.get(match[3], match[3])
