"""Steps through the tokens of a query, and makes terms of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin

from kg.sparql.algebra import Node, Query
from kg.sparql.lexer import Token
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
