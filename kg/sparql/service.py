"""SERVICE clauses: find them in a query, and replace them by their results.

A clause is accepted only if every reading of the text agrees on it (`kg.sparql.lexer.tokens_of_all_readings`) and if it
has the form of the grammar, ``SERVICE [SILENT] <iri> { ... }``, with no other clause inside
(https://www.w3.org/TR/sparql11-federated-query/#grammar). The query after replacement goes through the guard like any
other query: this module does not decide which queries may run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode, RdfFormat, parse

from kg.errors import InvalidInputError, QueryForbiddenError, QuerySyntaxError
from kg.sparql.guard import find_service_keywords, line_and_column
from kg.sparql.lexer import Token, find_other_end, significant_tokens
from kg.vocabulary import PREFIXES

MAX_CLAUSES: Final = 20
"""Maximum number of SERVICE clauses in one query."""
FORM: Final = "SERVICE <endpoint> { ... }"
_ESCAPED: Final = re.compile(r"\\([_~.\-!$&'()*+,;=/?#@%])")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a query. `endpoint` is None if it is a variable; offsets are in characters.

    `tokens` are the significant tokens between its braces.
    """

    endpoint: str | None
    silent: bool
    start: int
    end: int
    inner: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Prologue:
    """The declarations at the start of a query: `text` is their text, `prefixes` those that `PREFIXES` lacks."""

    text: str
    base: str | None
    prefixes: Mapping[str, str]

    def resolve(self, token: Token) -> str | None:
        """Return the absolute IRI of `token` (kind ``iri`` or ``name``), or None if it has none."""
        if token.kind == "iri":
            return _absolute(token.text, self.base)
        prefix, _, local = token.text.partition(":")
        namespace = self.prefixes.get(prefix, PREFIXES.get(prefix))
        return None if namespace is None else namespace + _ESCAPED.sub(r"\1", local)


def find_clauses(query: str) -> list[Clause]:
    """Find the SERVICE clauses of `query`, in order.

    Raises InvalidInputError for more than `MAX_CLAUSES`, and QueryForbiddenError, with line and column, for a clause
    that is ambiguous, inside another one, or not in the form of the grammar.
    """
    called: dict[int, Token] = {}
    for token in find_service_keywords(query):
        called[token.start] = token
        if len(called) > MAX_CLAUSES:
            line, column = line_and_column(query, token.start)
            raise InvalidInputError(f"Line {line}, column {column}: too many SERVICE clauses. Maximum: {MAX_CLAUSES}.")
    if not called:
        return []
    significant = list(significant_tokens(query))
    prologue = parse_prologue(query)
    found: list[Clause] = []
    index = 0
    while index < len(significant):
        if significant[index].start in called:
            clause, index = _clause(query, significant, index, prologue)
            found.append(clause)
        else:
            index += 1
    places = {clause.start for clause in found}
    for start, token in sorted(called.items()):
        inside = next((clause for clause in found if clause.start < start < clause.end), None)
        if inside is not None:
            line, column = line_and_column(query, inside.start)
            raise _refused(query, start, f"It is inside the SERVICE clause of line {line}, column {column}.")
        if start not in places:
            raise _refused(query, start, f"{token.text!r} is ambiguous. Write a space after each <.")
    return found


def replace_clauses(query: str, results: Sequence[tuple[Clause, str]]) -> str:
    """Replace each clause by its text; line and column of all other text stay the same."""
    parts: list[str] = []
    offset = 0
    for clause, text in sorted(results, key=lambda result: result[0].start):
        parts += [query[offset : clause.start], f" {text} "]
        if lines := query.count("\n", clause.start, clause.end):
            parts.append("\n" * lines + " " * (clause.end - query.rfind("\n", clause.start, clause.end) - 1))
        offset = clause.end
    return "".join([*parts, query[offset:]])


def parse_prologue(query: str) -> Prologue:
    """Parse the declarations at the start of `query`, up to the first invalid one."""
    base: str | None = None
    prefixes: dict[str, str] = {}
    end = 0
    rest = significant_tokens(query)
    for token in rest:
        keyword = token.text.upper()
        if keyword == "PREFIX":
            name, iri = next(rest, None), next(rest, None)
            if name is None or iri is None or iri.kind != "iri" or not name.text.endswith(":"):
                break
            namespace = _absolute(iri.text, base)
            if namespace is not None:
                prefixes[name.text[:-1]] = namespace
            end = iri.end
        elif keyword in ("BASE", "VERSION"):
            value = next(rest, None)
            if value is None:
                break
            if keyword == "BASE" and value.kind == "iri":
                base = _absolute(value.text, base)
            end = value.end
        else:
            break
    return Prologue(query[:end], base, prefixes)


def _clause(query: str, significant: Sequence[Token], index: int, prologue: Prologue) -> tuple[Clause, int]:
    """Parse the clause whose keyword is at `index`; also return the index of the token after it."""
    keyword = significant[index]
    start = keyword.start
    if keyword.text.upper() != "SERVICE":
        raise _refused(query, start, f"Write it as {FORM}, with a space before and after SERVICE.")
    silent = index + 1 < len(significant) and significant[index + 1].text.upper() == "SILENT"
    at = index + 1 + silent
    name, opening = (significant[at], at + 1) if at + 1 < len(significant) else (keyword, index)
    glued = name.text.upper().startswith("SILENT")
    if name.kind not in ("iri", "name", "variable") or glued or significant[opening].text != "{":
        raise _refused(query, start, f"Write it as {FORM}.")
    closing = _closing(query, significant, opening, start)
    endpoint = None
    if name.kind != "variable":
        endpoint = prologue.resolve(name)
        if endpoint is None:
            raise _refused(query, name.start, f"{name.text} is not an absolute IRI. Declare its prefix or a BASE.")
    text = query[significant[opening].end : significant[closing].start]
    inner = tuple(significant[opening + 1 : closing])
    return Clause(endpoint, silent, start, significant[closing].end, text, inner), closing + 1


def _closing(query: str, significant: Sequence[Token], opening: int, start: int) -> int:
    """Return the index of the brace that closes the one at `opening`. Raises QueryForbiddenError for ambiguous text."""
    depth = 0
    for index in range(opening, len(significant)):
        token = significant[index]
        if find_other_end(token, significant[index - 1]) is not None:
            raise _refused(query, token.start, "The text inside it is ambiguous. Write a space after each <.")
        if token.text in ("{", "{|"):
            depth += 1
        elif token.text in ("}", "|}"):
            depth -= 1
            if depth == 0:
                return index
    line, column = line_and_column(query, start)
    raise QuerySyntaxError(f"Invalid SPARQL: line {line}, column {column}: unclosed braces of a SERVICE clause")


def _absolute(text: str, base: str | None) -> str | None:
    """Return the IRI of `text` (in angle brackets), resolved as by Oxigraph, or None if it is invalid."""
    try:
        quad = next(parse(f"{text} <a:a> <a:a> .", format=RdfFormat.TURTLE, base_iri=base))
    except (SyntaxError, ValueError):
        return None
    return quad.subject.value if isinstance(quad.subject, NamedNode) else None


def _refused(query: str, offset: int, reason: str) -> QueryForbiddenError:
    line, column = line_and_column(query, offset)
    return QueryForbiddenError(f"Unsupported SERVICE clause at line {line}, column {column}. {reason}")
