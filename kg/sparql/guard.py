"""What may run as a query: reads alone, and nothing that sends a request to another server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from kg.errors import QueryForbiddenError, QuerySyntaxError
from kg.sparql.lexer import Token, readings, token_at, tokens
from kg.vocabulary import PREFIXES

Form = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]

_FORMS: Final[tuple[Form, ...]] = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_UPDATES: Final = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
_SILENT: Final = "SILENT"
_DATASET: Final = ("FROM", "FROMNAMED")
_GRAPH_NAME_FOLLOWS: Final = frozenset({"GRAPH", "FROM", "NAMED", "DESCRIBE"})
_MAX_DEPTH: Final = 256
_POSITION: Final = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
_EXPECTED_KEYWORD: Final = re.compile(r"(?<![\w\[\"'])([A-Z][A-Z_0-9]{2,})(?![\w\"'])")
_CHARACTER_CLASS: Final = re.compile(r"\[(?:'[^']*'|[^\]'])*\](?:, \[(?:'[^']*'|[^\]'])*\])*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LENIENT_IRI: Final = re.compile(r"<[^<>]*>")
_SERVICE: Final = re.compile(r"SERVICE(SILENT)?$", re.IGNORECASE)


def check_query(query: str) -> Form | None:
    """Return the form of `query`, or None where it has none that can be seen (the parser will say what is wrong).

    Raises QueryForbiddenError for updates and for SERVICE, and QuerySyntaxError for what no parser should be given:
    lone surrogates, and brackets nested so deeply that the parser's stack would not do.
    """
    if (surrogate := _SURROGATE.search(query)) is not None:
        raise _error(query, surrogate.start(), f"U+{ord(surrogate[0]):04X} is half of a character (a lone surrogate)")
    form = query_form(query)
    if form is not None and form not in _FORMS:
        raise QueryForbiddenError(
            f"this endpoint is read-only: {form} is an update; send SELECT, ASK, CONSTRUCT or DESCRIBE"
        )
    for token in remote_calls(query):
        line, column = position(query, token.start)
        hint = (
            f" ({token.text!r} can be read as the keyword SERVICE here: give the prefix another name)"
            if token.kind == "name"
            else ""
        )
        raise QueryForbiddenError(
            f"SERVICE at line {line}, column {column}: queries to other servers are never run here{hint}; "
            "load the data, or query the other server yourself"
        )
    check_depth(query)
    return form


def query_form(query: str) -> str | None:
    """Return the first keyword after the prologue, in capitals: SELECT, ASK, CONSTRUCT, DESCRIBE or an update's."""
    significant = (token for token in tokens(query) if token.kind not in ("space", "comment"))
    for token in significant:
        if token.kind not in ("word", "name"):
            return None
        text = token.text.upper()
        if text.startswith("PREFIX"):
            if token.kind == "word":
                next(significant, None)  # ex:
            next(significant, None)  # <iri>
        elif text in ("BASE", "VERSION"):
            next(significant, None)
        else:
            # Oxigraph lets a keyword touch the next word: SELECTDISTINCT, ASKFROM, INSERTDATA.
            return next((form for form in (*_FORMS, *_UPDATES) if text.startswith(form)), None)
    return None


def remote_calls(query: str) -> Iterator[Token]:
    """Yield each token in which a SERVICE clause begins, in any reading that the parser could take.

    A clause is the keyword, perhaps SILENT, a variable or IRI, and ``{``; the keyword may be part of a longer word
    (``trueSERVICE``) or prefix (``SERVICE:x`` is the keyword and ``:x`` unless ``SERVICE:`` is declared).
    """
    if "SERVICE" not in query.upper():
        return
    for previous, token in readings(query):
        if token.kind == "word":
            # What a word ends with may be a keyword; no prefixed name begins within one.
            if (keyword := _SERVICE.search(token.text)) is not None and _is_clause(query, token.end, keyword[1]):
                yield token
        elif token.kind == "name" and "SERVICE" in token.text.partition(":")[0].upper():
            named = previous is not None and previous.kind == "word" and previous.text.upper() in _GRAPH_NAME_FOLLOWS
            if not named and _opens_group(query, token.end):
                yield token


def names_dataset(query: str) -> bool:
    """Return whether `query` says with FROM what it is asked of.

    No keyword or function but FROM ends so, whatever it touches (``ASKFROM<g>``); as a prefix it is the keyword unless
    the query declares it.
    """
    if "FROM" not in query.upper():
        return False
    declared: set[str] = set()
    prefixes: set[str] = set()
    previous: Token | None = None
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        if token.kind == "word" and token.text.upper().endswith(_DATASET):
            return True
        if token.kind == "name" and (prefix := token.text.partition(":")[0]).upper().endswith(_DATASET):
            after_prefix = previous is not None and previous.text.upper() == "PREFIX"
            (declared if after_prefix else prefixes).add(prefix)
        previous = token
    return not prefixes <= declared


def _is_clause(query: str, offset: int, silent: str | None) -> bool:
    """Return whether what may follow SERVICE (and SILENT, if that was `silent`) follows at `offset`."""
    offset = _skip(query, offset)
    if not silent and query[offset : offset + len(_SILENT)].upper() == _SILENT:
        following = _skip(query, offset + len(_SILENT))
        if _names_endpoint(query, following):
            return True
    return _names_endpoint(query, offset)


def _names_endpoint(query: str, offset: int) -> bool:
    """Return whether an IRI or a variable stands at `offset`, and then a group."""
    if (iri := _LENIENT_IRI.match(query, offset)) is not None:
        return _opens_group(query, iri.end())
    if offset >= len(query):
        return False
    token = token_at(query, offset)
    return token.kind in ("variable", "name") and _opens_group(query, token.end)


def _opens_group(query: str, offset: int) -> bool:
    return query.startswith("{", _skip(query, offset))


def _skip(query: str, offset: int) -> int:
    """Return the offset of the first token at or after `offset` that is neither white space nor a comment."""
    while offset < len(query):
        token = token_at(query, offset)
        if token.kind not in ("space", "comment"):
            break
        offset = token.end
    return offset


def check_depth(query: str) -> None:
    """Raise QuerySyntaxError for brackets nested so deeply that the parser's stack would not do."""
    if sum(map(query.count, "([{")) <= _MAX_DEPTH:
        return
    depth = 0
    for token in tokens(query):
        if token.kind == "punctuation":
            depth += token.text.count("(") + token.text.count("{") + token.text.count("[")
            depth -= token.text.count(")") + token.text.count("}") + token.text.count("]")
            if depth > _MAX_DEPTH:
                raise _error(query, token.start, f"more than {_MAX_DEPTH} brackets are open")


def position(query: str, offset: int) -> tuple[int, int]:
    """Return line and column, both from 1, of the character at `offset`."""
    return query.count("\n", 0, offset) + 1, offset - query.rfind("\n", 0, offset)


def _error(query: str, offset: int, reason: str) -> QuerySyntaxError:
    line, column = position(query, offset)
    return QuerySyntaxError(f"not SPARQL: line {line}, column {column}: {reason}")


def syntax_error(query: str, message: str) -> QuerySyntaxError:
    """Return pyoxigraph's `message` about `query` as an error that points at the token in question.

    Where it expected a keyword, Oxigraph counts the characters that it compared as read; that is taken back.
    """
    match = _POSITION.match(message)
    if match is None:
        return QuerySyntaxError(f"not SPARQL: {message}")
    expected = _CHARACTER_CLASS.sub(
        lambda found: "a name" if len(found[0]) > 12 else found[0], " ".join(match[3].split())
    )
    lines = query.split("\n")
    line = min(int(match[1]), len(lines))
    offset = sum(len(text) + 1 for text in lines[: line - 1]) + int(match[2]) - 1
    keywords = _EXPECTED_KEYWORD.findall(expected)
    if keywords and not _names_characters(expected):
        offset -= min(len(keyword) for keyword in keywords)
    offset = max(0, min(offset, len(query)))
    found = next((token for token in tokens(query) if token.end > offset), None)
    if found is not None and found.kind not in ("space", "comment"):
        offset = found.start
    at = "the end" if found is None else repr(found.text if len(found.text) <= 40 else found.text[:40] + "...")
    undeclared = _undeclared_prefix(query)
    if undeclared is not None:
        name = undeclared.text.partition(":")[0]
        return _error(
            query, undeclared.start, f"the prefix {name}: is not declared; add PREFIX {name}: <...> at the top"
        )
    if query_form(query) is None:
        expected = "a query is SELECT, ASK, CONSTRUCT or DESCRIBE, after its PREFIX lines"
    return _error(query, offset, f"unexpected {at}; {expected}")


def _undeclared_prefix(query: str) -> Token | None:
    """Return the first prefixed name whose prefix neither the query nor the endpoint declares."""
    declared = set(PREFIXES)
    previous = None
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        if token.kind == "name":
            prefix = token.text.partition(":")[0]
            if previous is not None and previous.kind == "word" and previous.text.upper() == "PREFIX":
                declared.add(prefix)
            elif prefix.upper().startswith("PREFIX"):
                return None  # PREFIXex: may be two words to the parser
            elif prefix not in declared:
                return token
        previous = token
    return None


def _names_characters(expected: str) -> bool:
    """Return whether something else than keywords and "any character" was expected, so that the position is exact."""
    return "The SELECT contains" in expected or '"' in expected or "['" in expected or "[ '" in expected
