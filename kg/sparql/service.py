"""SERVICE clauses: where they stand in a query, whom they ask and what, so that their results can take their place.

A clause is taken only where every reading of the text agrees on it (`kg.sparql.lexer.readings`) and where it is written
as the grammar has it, ``SERVICE [SILENT] <iri> { ... }``, with no other clause inside
(https://www.w3.org/TR/sparql11-federated-query/#grammar). What is left over after a replacement goes through the guard
like any other query: nothing here decides what is safe to run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode, RdfFormat, parse

from kg.errors import InvalidInputError, QueryForbiddenError, QuerySyntaxError
from kg.sparql.guard import position, remote_calls
from kg.sparql.lexer import Token, other_end, tokens
from kg.vocabulary import PREFIXES

MAX_CLAUSES: Final = 20
"""Clauses of one query that are answered at most."""
FORM: Final = "SERVICE <endpoint> { ... }"
_ESCAPED: Final = re.compile(r"\\([_~.\-!$&'()*+,;=/?#@%])")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a query. `endpoint` is None where a variable stands for it; offsets count characters.

    `tokens` are those between its braces, white space and comments left out.
    """

    endpoint: str | None
    silent: bool
    start: int
    end: int
    inner_start: int
    inner: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Prologue:
    """What a query declares at its beginning: `text` is all of it, `prefixes` what it adds to ours."""

    text: str
    base: str | None
    prefixes: Mapping[str, str]

    def resolve(self, token: Token) -> str | None:
        """Return the IRI that `token` (an ``iri`` or a ``name``) stands for, or None where that cannot be known."""
        if token.kind == "iri":
            return _absolute(token.text, self.base)
        prefix, _, local = token.text.partition(":")
        namespace = self.prefixes.get(prefix, PREFIXES.get(prefix))
        return None if namespace is None else namespace + _ESCAPED.sub(r"\1", local)


def clauses(query: str) -> list[Clause]:
    """Return the SERVICE clauses of `query`, in order.

    Raises InvalidInputError for more than `MAX_CLAUSES`, and QueryForbiddenError, with line and column, for one that
    another reading of the text has elsewhere, that stands inside another, or that is not written as the grammar has it.
    """
    called: dict[int, Token] = {}
    for token in remote_calls(query):
        called[token.start] = token
        if len(called) > MAX_CLAUSES:
            line, column = position(query, token.start)
            message = f"line {line}, column {column}: a query may have {MAX_CLAUSES} SERVICE clauses, and this has more"
            raise InvalidInputError(message)
    if not called:
        return []
    significant = _significant(query)
    prologue = prologue_of(query)
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
            line, column = position(query, inside.start)
            raise _refused(query, start, f"it stands inside the SERVICE clause of line {line}, column {column}")
        if start not in places:
            raise _refused(query, start, f"{token.text!r} can be read in two ways; write a space after each <")
    return found


def replace(query: str, results: Sequence[tuple[Clause, str]]) -> str:
    """Return `query` with each clause replaced by its text, and with every other line and column where it was."""
    parts: list[str] = []
    offset = 0
    for clause, text in sorted(results, key=lambda result: result[0].start):
        parts += [query[offset : clause.start], f" {text} "]
        if lines := query.count("\n", clause.start, clause.end):
            parts.append("\n" * lines + " " * (clause.end - query.rfind("\n", clause.start, clause.end) - 1))
        offset = clause.end
    return "".join([*parts, query[offset:]])


def prologue_of(query: str) -> Prologue:
    """Return the declarations that `query` begins with; what stands there and cannot be read is not among them."""
    base: str | None = None
    prefixes: dict[str, str] = {}
    end = 0
    rest = iter(_prologue_tokens(query))
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


def _prologue_tokens(query: str) -> Iterator[Token]:
    return (token for token in tokens(query) if token.kind not in ("space", "comment"))


def _significant(query: str) -> list[Token]:
    return list(_prologue_tokens(query))


def _clause(query: str, significant: Sequence[Token], index: int, prologue: Prologue) -> tuple[Clause, int]:
    """Return the clause whose keyword is at `index`, and the index of the token after it."""
    keyword = significant[index]
    start = keyword.start
    if keyword.text.upper() != "SERVICE":
        raise _refused(query, start, f"write it as {FORM}, with a space before and after SERVICE")
    silent = index + 1 < len(significant) and significant[index + 1].text.upper() == "SILENT"
    at = index + 1 + silent
    name, opening = (significant[at], at + 1) if at + 1 < len(significant) else (keyword, index)
    glued = name.text.upper().startswith("SILENT")
    if name.kind not in ("iri", "name", "variable") or glued or significant[opening].text != "{":
        raise _refused(query, start, f"write it as {FORM}")
    closing = _closing(query, significant, opening, start)
    endpoint = None
    if name.kind != "variable":
        endpoint = prologue.resolve(name)
        if endpoint is None:
            raise _refused(query, name.start, f"{name.text} is no absolute IRI, and no prefix or base makes it one")
    begin, end = significant[opening].end, significant[closing].end
    return (
        Clause(
            endpoint,
            silent,
            start,
            end,
            begin,
            query[begin : significant[closing].start],
            tuple(significant[opening + 1 : closing]),
        ),
        closing + 1,
    )


def _closing(query: str, significant: Sequence[Token], opening: int, start: int) -> int:
    """Return the index of the brace that closes the one at `opening`; the text between must have one reading only."""
    depth = 0
    for index in range(opening, len(significant)):
        token = significant[index]
        if other_end(token, significant[index - 1]) is not None:
            raise _refused(query, token.start, "what stands inside it can be read in two ways; write a space after <")
        if token.text in ("{", "{|"):
            depth += 1
        elif token.text in ("}", "|}"):
            depth -= 1
            if depth == 0:
                return index
    line, column = position(query, start)
    raise QuerySyntaxError(f"not SPARQL: line {line}, column {column}: the braces of this SERVICE clause never close")


def _absolute(text: str, base: str | None) -> str | None:
    """Return the IRI of `text` (in angle brackets), resolved as Oxigraph does it, or None where it is none."""
    try:
        quad = next(parse(f"{text} <a:a> <a:a> .", format=RdfFormat.TURTLE, base_iri=base))
    except (SyntaxError, ValueError):
        return None
    return quad.subject.value if isinstance(quad.subject, NamedNode) else None


def _refused(query: str, offset: int, reason: str) -> QueryForbiddenError:
    line, column = position(query, offset)
    return QueryForbiddenError(f"SERVICE at line {line}, column {column} is not answered: {reason}")
