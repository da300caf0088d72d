"""What may run as a query: reads alone, and nothing that sends a request to another server."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final, Literal

from kg.errors import QueryForbiddenError, QuerySyntaxError
from kg.sparql.lexer import Token, may_compare, other_end, readings, token_at, tokens
from kg.sparql.prefixes import nearest_prefix
from kg.vocabulary import PREFIXES

Form = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]

_FORMS: Final[tuple[Form, ...]] = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_UPDATES: Final = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
_SILENT: Final = "SILENT"
_DATASET: Final = ("FROM", "FROMNAMED")
_FROM: Final = re.compile(r"FROM", re.IGNORECASE)
_BEFORE: Final = re.compile(r":\w{0,63}\Z", re.ASCII)
"""What stands before FROM where that ends the local part of a prefixed name: ``prov:wasDerivedFrom``."""
_GRAPH_NAME_FOLLOWS: Final = frozenset({"GRAPH", "FROM", "NAMED", "DESCRIBE"})
_MAX_DEPTH: Final = 256
_POSITION: Final = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
_EXPECTED_KEYWORD: Final = re.compile(r"(?<![\w\[\"'])([A-Z][A-Z_0-9]{2,})(?![\w\"'])")
_CHARACTER_CLASS: Final = re.compile(r"\[(?:'[^']*'|[^\]'])*\](?:, \[(?:'[^']*'|[^\]'])*\])*")
_UNGROUPED: Final = "The SELECT contains a variable that is unbound"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_EXPLAINED: Final = 100_000
"""Characters of a query up to which an error names the token that stands there and a prefix that is not declared."""
CHEAP_CHARS: Final = 2_000
"""Characters of a text that takes no time to read, whatever it says."""
_EARLY: Final = 200
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LINE_END: Final = re.compile(r"[\r\n]")
_LENIENT_IRI: Final = re.compile(r"<[^<>]*>")
_LOAD: Final = re.compile(r"LOAD(SILENT)?$", re.IGNORECASE)
_OPENING: Final = ("(", "[", "{", "<<")
_CLOSING: Final = (")", "]", "}", ">>")
# What most queries begin with, read at once: declarations of prefixes alone, and a form that stands for itself.
_PLAIN: Final = re.compile(
    r"\s*(?:PREFIX\s+(?:[A-Z][A-Z0-9_\-]*)?:\s*<[^<>\s]*>\s*)*(SELECT|ASK|CONSTRUCT|DESCRIBE)(?=[\s{*?$])",
    re.IGNORECASE | re.ASCII,
)
_SERVICE: Final = re.compile(r"SERVICE(SILENT)?$", re.IGNORECASE)


def is_cheap_to_check(query: str) -> bool:
    """Return whether all that is asked here of `query` is told at a glance; else every token of it may be looked at."""
    if len(query) < CHEAP_CHARS:
        return True
    if not is_plain(query) or _is_deep(query):
        return False
    upper = query.upper()
    if "SERVICE" in upper:
        return False
    # What a query is asked of stands before its pattern, as a rule.
    return "FROM" not in upper or any(map(_says_dataset, islice(tokens(query), _EARLY)))


def is_plain(query: str) -> bool:
    """Return whether `query_form` of it is told at a glance."""
    return len(query) < CHEAP_CHARS or _PLAIN.match(query) is not None


def check_query(query: str) -> Form | None:
    """Return the form of `query`, or None where it has none that can be seen (the parser will say what is wrong).

    Raises QueryForbiddenError for updates and for SERVICE, and QuerySyntaxError for what no parser should be given:
    lone surrogates, and brackets nested so deeply that the parser's stack would not do.
    """
    _check_characters(query)
    form = query_form(query)
    if form is not None and form not in _FORMS:
        raise QueryForbiddenError(
            f"queries are read-only, and {form} is an update; send SELECT, ASK, CONSTRUCT or DESCRIBE. Updates are for "
            "/sparql alone: POST them there as update=, where the server takes any"
        )
    for token in remote_calls(query):
        raise _forbidden(query, token, "SERVICE", "queries to other servers are never run here")
    check_depth(query)
    return form


def check_update(update: str) -> None:
    """Raise what `check_query` raises for SERVICE, lone surrogates and deep nesting, and for LOAD like for SERVICE."""
    _check_characters(update)
    for token in remote_calls(update):
        raise _forbidden(update, token, "SERVICE", "queries to other servers are never run here")
    for token in _loads(update):
        raise _forbidden(update, token, "LOAD", "nothing is fetched from other servers here")
    check_depth(update)


def _check_characters(text: str) -> None:
    if not text.isascii() and (surrogate := _SURROGATE.search(text)) is not None:
        raise _error(text, surrogate.start(), f"U+{ord(surrogate[0]):04X} is half of a character (a lone surrogate)")


def _forbidden(text: str, token: Token, keyword: str, reason: str) -> QueryForbiddenError:
    line, column = position(text, token.start)
    hint = ""
    if token.kind == "name":
        hint = f" ({token.text[:40]!r} can be read as the keyword {keyword} here: give the prefix another name)"
    return QueryForbiddenError(
        f"{keyword} at line {line}, column {column}: {reason}{hint}; load the data, or query the other server yourself"
    )


def query_form(query: str) -> str | None:
    """Return the first keyword after the prologue, in capitals: SELECT, ASK, CONSTRUCT, DESCRIBE or an update's."""
    if (plain := _PLAIN.match(query)) is not None:
        return plain[1].upper()
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
    ahead = _Ahead(query)
    for previous, token in readings(query):
        if token.kind == "word":
            # What a word ends with may be a keyword; no prefixed name begins within one.
            if (keyword := _SERVICE.search(token.text)) is not None and ahead.is_clause(token.end, keyword[1]):
                yield token
        elif token.kind == "name" and "SERVICE" in token.text.partition(":")[0].upper():
            named = previous is not None and previous.kind == "word" and previous.text.upper() in _GRAPH_NAME_FOLLOWS
            if not named and ahead.opens_group(token.end):
                yield token


def _loads(update: str) -> Iterator[Token]:
    """Yield each token in which a LOAD operation begins, in any reading that the parser could take.

    An operation stands outside all braces, after nothing, a declaration or ``;``; ``LOAD:x`` and ``LOADex:x`` are the
    keyword and a name there. In a text of several readings nobody knows the braces, so inside them counts too.
    """
    if "LOAD" not in update.upper():
        return
    depth = 0
    previous: Token | None = None
    ambiguous = False
    for token in tokens(update):
        if token.kind in ("space", "comment"):
            continue
        if token.kind == "punctuation":
            depth += (token.text in ("{", "{|")) - (token.text in ("}", "|}"))
        ambiguous = ambiguous or other_end(token, previous) is not None
        if _begins_load(previous, token) and (depth <= 0 or token.kind == "word"):
            yield token
        previous = token
    if ambiguous:
        yield from (token for before, token in readings(update) if _begins_load(before, token))


def _begins_load(previous: Token | None, token: Token) -> bool:
    if token.kind == "word":
        return _LOAD.match(token.text) is not None
    if token.kind != "name" or not token.text.partition(":")[0].upper().startswith("LOAD"):
        return False
    return previous is None or previous.kind != "word"


def names_dataset(query: str) -> bool:
    """Return whether `query` says with FROM what it is asked of.

    No keyword or function but FROM ends so, whatever it touches (``ASKFROM<g>``); as a prefix it is the keyword unless
    the query declares it.
    """
    if all(_BEFORE.search(query, max(0, each.start() - 64), each.start()) for each in _FROM.finditer(query)):
        return False
    declared: set[str] = set()
    prefixes: set[str] = set()
    previous: Token | None = None
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        if _says_dataset(token):
            return True
        if token.kind == "name" and (prefix := token.text.partition(":")[0]).upper().endswith(_DATASET):
            after_prefix = previous is not None and previous.text.upper() == "PREFIX"
            (declared if after_prefix else prefixes).add(prefix)
        previous = token
    return not prefixes <= declared


def _says_dataset(token: Token) -> bool:
    return token.kind == "word" and token.text.upper().endswith(_DATASET)


class _Ahead:
    """Looks ahead in a text for what makes a word the begin of a clause, at each place of a line end once."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._line_ends: list[int] = []
        self._after: dict[int, int] = {}  # line ends, and where something significant follows

    def is_clause(self, offset: int, silent: str | None) -> bool:
        """Return whether what may follow SERVICE (and SILENT, if that was `silent`) follows at `offset`."""
        offset = self._significant(offset)
        if not silent and self._query[offset : offset + len(_SILENT)].upper() == _SILENT:
            following = self._significant(offset + len(_SILENT))
            if self._names_endpoint(following):
                return True
        return self._names_endpoint(offset)

    def opens_group(self, offset: int) -> bool:
        """Return whether a brace follows at `offset`."""
        return self._query.startswith("{", self._significant(offset))

    def _names_endpoint(self, offset: int) -> bool:
        """Return whether an IRI or a variable stands at `offset`, and then a group."""
        if (iri := _LENIENT_IRI.match(self._query, offset)) is not None:
            return self.opens_group(iri.end())
        if offset >= len(self._query):
            return False
        token = token_at(self._query, offset)
        return token.kind in ("variable", "name") and self.opens_group(token.end)

    def _significant(self, offset: int) -> int:
        """Return the offset of the first token at or after `offset` that is neither white space nor a comment."""
        query = self._query
        passed: list[int] = []
        while (space := _SPACE.match(query, offset)) is not None and query.startswith("#", offset := space.end()):
            self._line_ends = self._line_ends or [match.start() for match in _LINE_END.finditer(query)] + [len(query)]
            offset = self._line_ends[bisect_left(self._line_ends, offset)]
            if offset in self._after:
                offset = self._after[offset]
                break
            passed.append(offset)
        self._after.update(dict.fromkeys(passed, offset))
        return offset


def check_depth(query: str) -> None:
    """Raise QuerySyntaxError for brackets nested so deeply that the parser's stack would not do."""
    if not _is_deep(query):
        return
    depth = hidden = 0
    previous: Token | None = None
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        inside = 0
        if token.kind == "punctuation":
            depth += sum(map(token.text.count, _OPENING)) - sum(map(token.text.count, _CLOSING))
        elif token.kind == "iri" and ("(" in token.text or "[" in token.text) and may_compare(token, previous):
            # It may be *less than* and the begin of an expression.
            inside = token.text.count("(") + token.text.count("[")
            hidden += max(0, inside - token.text.count(")") - token.text.count("]"))
        if depth + hidden + inside > _MAX_DEPTH:
            raise _error(query, token.start, f"more than {_MAX_DEPTH} brackets are open")
        previous = token


def _is_deep(query: str) -> bool:
    """Return whether so many brackets open that they have to be followed."""
    return sum(map(query.count, ("(", "[", "{", "<<"))) > _MAX_DEPTH


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
    if len(query) > _EXPLAINED:
        return _error(query, offset, expected)
    found = next((token for token in tokens(query) if token.end > offset), None)
    if found is not None and found.kind not in ("space", "comment"):
        offset = found.start
    at = "the end" if found is None else repr(found.text if len(found.text) <= 40 else found.text[:40] + "...")
    undeclared, declared = _undeclared_prefix(query)
    if undeclared is not None:
        return _error(query, undeclared.start, _undeclared(undeclared, declared))
    if _UNGROUPED in expected:
        message = (
            "where there is an aggregate or GROUP BY, SELECT can name only variables that GROUP BY names; group by the "
            "others too, or take them within an aggregate such as SAMPLE(?x)"
        )
        return _error(query, offset, message)
    if query_form(query) is None:
        expected = "a query is SELECT, ASK, CONSTRUCT or DESCRIBE, after its PREFIX lines"
    return _error(query, offset, f"unexpected {at}; {expected}")


def _undeclared(token: Token, declared: Collection[str]) -> str:
    """Return what to say of a name whose prefix is not declared, with the prefix that it is nearest to."""
    name = token.text.partition(":")[0]
    near = nearest_prefix(name, sorted(declared))
    hint = f"did you mean {near}:? Or " if near else ""
    return f"the prefix {name}: is not declared; {hint}add PREFIX {name}: <...> at the top"


def _undeclared_prefix(query: str) -> tuple[Token | None, Collection[str]]:
    """Return the first prefixed name whose prefix neither the query nor the endpoint declares, and what is declared."""
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
                return None, declared  # PREFIXex: may be two words to the parser
            elif prefix not in declared:
                return token, declared
        previous = token
    return None, declared


def _names_characters(expected: str) -> bool:
    """Return whether something else than keywords and "any character" was expected, so that the position is exact."""
    return "The SELECT contains" in expected or '"' in expected or "['" in expected or "[ '" in expected
