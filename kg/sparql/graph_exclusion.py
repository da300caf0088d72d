"""Queries that do not read some graphs.

Over the union of all graphs, a triple pattern matches statements of every graph. `exclude_graphs` adds a condition on
the graph to those patterns that need one::

    ?document dcterms:title ?title      ->  GRAPH ?_g1 { ?document dcterms:title ?title } FILTER(?_g1 NOT IN (...))

A list of allowed graphs as the dataset would be simpler, but the engine looks up each pattern in each of them.

`find_reads` returns what such a query reads, so that its result need not be computed again after other changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final, NamedTuple

from kg.sparql.lexer import Token, token_at
from kg.vocabulary import PREFIXES, RDF

Condition = Callable[[AbstractSet[str] | None, str], str | None]
"""Returns the SPARQL condition on a graph variable for patterns with these properties (None: with any property), or
None if such patterns may read all graphs."""

_VALUES: Final = re.compile(
    r"""\{(?:[^"'<{}]++|<[^<>]*>|"(?:[^"\\\r\n]|\\.)*"(?!")|'(?:[^'\\\r\n]|\\.)*'(?!'))*\}""", re.DOTALL
)
"""The data of VALUES. They can be long, so they are not split into tokens."""
_CLAUSES: Final = frozenset({"FILTER", "BIND", "VALUES", "OPTIONAL", "MINUS", "GRAPH", "LATERAL"})
_ALTERNATIVES: Final = re.compile(r"[\w-]*:[\w-]+(?:\s*\|\s*[\w-]*:[\w-]+)+")
"""A path of alternative prefixed names: ``kg:mentions|eli:cites``."""
_UNSUPPORTED: Final = frozenset({"[", "(", "<<", "<<("})

_SHORT: Final = 2_000
"""Maximum number of characters of data whose values are read."""

_Step = tuple[Token, bool]
"""A property of a path, and whether it is inverse."""


class _Part(NamedTuple):
    """A pattern as it is written into the result, and whether it has a condition on its graph."""

    text: str
    restricted: bool


def exclude_graphs(query: str, condition: Condition) -> str:
    """Rewrite `query` so that each pattern reads only the graphs that satisfy `condition`.

    It is for the queries of this project, which the engine has not parsed yet: raises TypeError for SPARQL that it does
    not support (SERVICE, blank nodes, collections, triple terms, SELECT * and paths other than sequences, where a
    condition is needed).
    """
    return _Rewriting(query, condition).rewrite()


def find_reads(query: str) -> frozenset[str] | None:
    """Find the properties that `query` reads; None for any. Other statements, in any graph, do not change its result.

    For patterns with rdf:type and a class, it is the key of that class (`type_key`).
    """
    reading = _Rewriting(query, lambda properties, variable: None)
    try:
        reading.rewrite()
    except TypeError:  # SPARQL that is not supported
        return None
    found = _known(reading.reads)
    return None if found is None else frozenset(found)


def type_key(cls: str) -> str:
    """Return the key of the statements that something is of a class."""
    return f"{RDF.type.value} {cls}"


class _Rewriting:
    """Reads the tokens of one query once. It collects replacements of parts of the text."""

    def __init__(self, query: str, condition: Condition) -> None:
        self._query = query
        self._condition = condition
        self._tokens = [*_split(query), Token("other", "", len(query))]
        self._at = 0
        self._prefixes = dict(PREFIXES)
        self._edits: list[tuple[int, int, str]] = []
        self._made = 0
        self._all = False
        """Whether a SELECT selects all variables."""
        self.reads: set[str | None] = set()
        """The properties and classes in patterns (`find_reads`); None is any property."""
        self._variables: list[set[tuple[str, bool]]] = []
        """The variable properties in each group that is being read, and the variable classes (true)."""

    def rewrite(self) -> str:
        while self._word() in ("PREFIX", "BASE"):
            if self._word() == "BASE":
                raise TypeError("a query with BASE cannot exclude graphs")
            self._at += 1
            name, iri = self._next(), self._next()
            self._prefixes[name.text[:-1]] = iri.text[1:-1]
        self._select()
        if any(token.text == "{" for token in self._tokens[self._at :]):  # EXISTS after the last group
            self.reads.add(None)
        if self._all and self._edits:
            raise TypeError(f"SELECT * cannot exclude graphs: {self._query}")
        pieces, end = [], 0
        for start, stop, text in sorted(self._edits):
            pieces += [self._query[end:start], text]
            end = stop
        return "".join((*pieces, self._query[end:]))

    # -- tokens

    def _word(self) -> str:
        """Return the text of the next token, in capitals if it is a word; empty at the end."""
        token = self._tokens[self._at]
        return token.text.upper() if token.kind == "word" else token.text

    def _next(self) -> Token:
        if not self._word():
            raise TypeError(f"the query ends too early: {self._query}")
        self._at += 1
        return self._tokens[self._at - 1]

    def _iri(self, token: Token) -> str:
        if token.kind == "iri":
            return token.text[1:-1]
        if token.text == "a":
            return RDF.type.value
        prefix, _, local = token.text.partition(":")
        return self._prefixes[prefix] + local.replace("\\", "")

    # -- groups

    def _select(self, inside: set[str | None] | None = None) -> None:
        """Read a query or a sub-SELECT, up to the end of its group. `inside` is that of `_group`."""
        while self._word() != "{":
            if self._word() == "(":
                self._brackets(inside)
                continue
            token = self._next()
            if token.text == "*":
                self._all = True
            elif token.text.upper() in ("FROM", "CONSTRUCT", "DESCRIBE"):
                raise TypeError(f"{token.text} cannot exclude graphs")
        self._group(inside)

    def _group(self, inside: set[str | None] | None, *, is_part: bool = False) -> None:
        """Read ``{ ... }``. `inside` collects the properties of patterns in GRAPH; None is any property.

        A filter of the group around it also applies to its variables, if it `is_part` of that.
        """
        self._variables.append(set())
        limits: dict[str, set[str]] = {}
        self._read_group(inside, limits)
        for name, is_class in self._variables.pop():
            if name in limits:
                self.reads.update(map(type_key, limits[name]) if is_class else limits[name])
            elif is_part:
                self._variables[-1].add((name, is_class))
            else:
                self.reads.add(RDF.type.value if is_class else None)

    def _read_group(self, inside: set[str | None] | None, limits: dict[str, set[str]]) -> None:
        """Read ``{ ... }``, and add the values that its filters and data allow of variables to `limits`."""
        if self._next().text != "{":
            raise TypeError(f"a group was expected: {self._query}")
        if self._word() == "SELECT":
            self._select(inside)
            while self._word() != "}":
                if self._word() == "(":
                    self._brackets(inside)
                else:
                    self._next()
        while (word := self._word()) != "}":
            if word == ".":
                self._at += 1
            elif word == "{":
                self._group(inside, is_part=True)
                while self._word() == "UNION":
                    self._at += 1
                    self._group(inside, is_part=True)
            elif word in _CLAUSES:
                if word == "FILTER":
                    limits |= self._find_limit()
                elif word == "VALUES":
                    limits |= self._find_values()
                self._clause(word, inside)
            elif word == "SERVICE":
                raise TypeError("SERVICE cannot exclude graphs")
            else:
                self._triples(inside)
        self._at += 1

    def _clause(self, word: str, inside: set[str | None] | None) -> None:
        self._at += 1
        if word == "GRAPH":
            self._graph()
        elif word == "VALUES":
            while self._word() in ("(", ")") or self._tokens[self._at].kind == "variable":
                self._at += 1
            self._next()  # the data, as one token
        elif word in ("FILTER", "BIND"):
            while self._word() not in ("(", "{"):
                self._next()
            if self._word() == "(":
                self._brackets(inside)
            else:
                self._group(inside)
        else:
            self._group(inside)

    def _find_limit(self) -> dict[str, set[str]]:
        """Find the values that ``FILTER(?name IN (...))`` allows, if the next clause is that; it is not read here."""
        tokens = self._tokens[self._at + 1 :]
        if len(tokens) < 6 or [each.text.upper() for each in (tokens[0], *tokens[2:4])] != ["(", "IN", "("]:
            return {}
        values: set[str] = set()
        for token, following in pairwise(tokens[4:]):
            if token.kind in ("iri", "name"):
                values.add(self._iri(token))
            elif token.text == ")" and following.text == ")":
                return {tokens[1].text[1:]: values} if tokens[1].kind == "variable" else {}
            elif token.text != ",":
                break
        return {}

    def _find_values(self) -> dict[str, set[str]]:
        """Find the values of ``VALUES ?name { ... }``, if they are few IRIs; the clause is not read here."""
        variable, data = self._tokens[self._at + 1 : self._at + 3]
        if variable.kind != "variable" or len(data.text) > _SHORT:
            return {}
        tokens = [token for token in _split(data.text[1:-1]) if token.kind != "space"]
        if any(token.kind not in ("iri", "name") for token in tokens):
            return {}
        return {variable.text[1:]: {self._iri(token) for token in tokens}}

    def _graph(self) -> None:
        name = self._next()
        properties: set[str | None] = set()
        self._group(properties, is_part=True)
        if not properties:  # the graphs themselves
            self.reads.add(None)
        if name.kind != "variable" or not properties:
            return
        if (condition := self._condition(_known(properties), name.text)) is not None:
            end = self._tokens[self._at - 1].end
            self._edits.append((end, end, f" FILTER({condition})"))

    def _brackets(self, inside: set[str | None] | None) -> None:
        """Read ``( ... )`` with the groups of EXISTS in it."""
        depth = 0
        while True:
            if self._word() == "{":
                self._group(inside)
                continue
            text = self._next().text
            depth += (text == "(") - (text == ")")
            if depth == 0:
                return

    # -- triples

    def _triples(self, inside: set[str | None] | None) -> None:
        """Read the triples of one subject."""
        start = self._tokens[self._at].start
        subject = self._term()
        found: list[tuple[list[_Step] | None, set[str | None], str, str]] = []
        while True:
            steps, properties, path = self._path()
            while True:
                found.append((steps, properties, path, self._term()))
                if self._word() != ",":
                    break
                self._at += 1
            while self._word() == ";":
                self._at += 1
            if self._word() in (".", "}", "{") or self._word() in _CLAUSES:
                break
        end = self._tokens[self._at - 1].end
        self.reads.update(*(self._find_keys(steps, names, path, value) for steps, names, path, value in found))
        if inside is not None:
            inside.update(*(properties for _, properties, _, _ in found))
            return
        parts = [part for steps, names, path, value in found for part in self._cut(subject, steps, names, path, value)]
        if any(part.restricted for part in parts):
            self._edits.append((start, end, " . ".join(part.text for part in parts)))

    def _find_keys(
        self, steps: list[_Step] | None, properties: set[str | None], path: str, value: str
    ) -> set[str | None]:
        """Find the properties in a pattern, or its class."""
        if steps is None and ("*" in path or "?" in path):
            return {None}  # a path of no step starts at any node
        is_forward = steps is not None and [inverse for _, inverse in steps] == [False]
        if is_forward and properties == {RDF.type.value}:
            if value[0] in "?$":
                self._variables[-1].add((value[1:], True))
                return set()
            return {type_key(value[1:-1] if value[0] == "<" else self._iri(Token("name", value, 0)))}
        if None in properties and steps is not None:
            self._variables[-1].update((token.text[1:], False) for token, _ in steps if token.kind == "variable")
            return properties - {None}
        return properties

    def _cut(
        self, subject: str, steps: list[_Step] | None, properties: set[str | None], path: str, value: str
    ) -> list[_Part]:
        """Split a path into patterns, each with the condition on its graph."""
        if steps is None:
            if self._condition(_known(properties), "?_g") is None:
                return [_Part(f"{subject} {path} {value}", restricted=False)]
            if not _ALTERNATIVES.fullmatch(path):
                raise TypeError(f"the path {path} cannot exclude graphs: it spans several")
            # a|b is the union of a and b
            names = [name.strip() for name in path.split("|")]
            union = [self._restrict(subject, name, value, {self._iri(Token("name", name, 0))}) for name in names]
            return [_Part(" UNION ".join(f"{{ {part.text} }}" for part in union), restricted=True)]
        found = []
        before = subject
        for number, (token, inverse) in enumerate(steps):
            after = value if number == len(steps) - 1 else f"?_p{self._made + 1}"
            ends = (after, before) if inverse else (before, after)
            known = None if token.kind == "variable" else {self._iri(token)}
            found.append(self._restrict(ends[0], token.text, ends[1], known))
            before = after
        return found

    def _restrict(self, subject: str, name: str, value: str, properties: set[str] | None) -> _Part:
        """Write one pattern, with the condition on its graph if it needs one."""
        self._made += 1
        variable = f"?_g{self._made}"
        pattern = f"{subject} {name} {value}"
        condition = self._condition(properties, variable)
        if condition is None:
            return _Part(pattern, restricted=False)
        return _Part(f"GRAPH {variable} {{ {pattern} }} FILTER({condition})", restricted=True)

    def _term(self) -> str:
        token = self._next()
        if token.text in _UNSUPPORTED or token.kind == "blank":
            raise TypeError(f"{token.text} cannot exclude graphs: {self._query}")
        start, end = token.start, token.end
        if token.text in ("+", "-"):
            end = self._next().end
        elif token.kind == "string":
            if self._tokens[self._at].kind == "language":
                end = self._next().end
            elif self._word() == "^^":
                self._at += 1
                end = self._next().end
        return self._query[start:end]

    def _path(self) -> tuple[list[_Step] | None, set[str | None], str]:
        """Read a property or path: its steps (None unless it is a sequence), its properties, and its text."""
        first = self._tokens[self._at]
        if first.kind == "variable":
            self._at += 1
            return [(first, False)], {None}, first.text
        steps: list[_Step] = []
        properties: set[str | None] = set()
        is_sequence, inverse, operand, depth = True, False, False, 0
        while True:
            token = self._tokens[self._at]
            if not operand and (token.kind in ("iri", "name") or token.text == "a"):
                steps.append((token, inverse))
                properties.add(self._iri(token))
                operand, inverse = True, False
            elif not operand and token.text in ("^", "!", "("):
                is_sequence = is_sequence and token.text == "^"
                inverse = token.text == "^"
                depth += token.text == "("
                if token.text == "!":
                    properties.add(None)
            elif operand and token.text in ("/", "|"):
                is_sequence = is_sequence and token.text == "/"
                operand = False
            elif operand and token.text in ("*", "+", "?"):
                is_sequence = False
            elif operand and token.text == ")" and depth:
                depth -= 1
            else:
                break
            self._at += 1
        if not operand or depth:
            raise TypeError(f"a property was expected: {self._query}")
        text = self._query[first.start : self._tokens[self._at - 1].end]
        return (steps if is_sequence else None), properties, text


def _known(properties: set[str | None]) -> set[str] | None:
    """Return the properties of patterns; None (any property) if one is a variable or a path like ``!kg:start``."""
    return None if None in properties else {each for each in properties if each is not None}


def _split(query: str) -> list[Token]:
    """Split a query into tokens without white space and comments; the data of VALUES are one token."""
    found: list[Token] = []
    at, in_values = 0, False
    while at < len(query):
        if in_values and query[at] == "{":
            match = _VALUES.match(query, at)
            if match is None:
                raise TypeError(f"VALUES cannot be read: {query}")
            found.append(Token("other", match[0], at))
            at, in_values = match.end(), False
            continue
        token = token_at(query, at)
        at = token.end
        if token.kind not in ("space", "comment"):
            found.append(token)
            in_values = in_values or (token.kind == "word" and token.text.upper() == "VALUES")
    return found
