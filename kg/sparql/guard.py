"""Checks of a query or update before it runs: it only reads, and sends no request to another server.

The checks work on tokens and not on a syntax tree, because they run before any parser sees the text, and because a tree
of another parser than Oxigraph's would prove nothing about what Oxigraph does.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import islice, pairwise
from typing import Final, Literal, NamedTuple

from kg.errors import QueryForbiddenError, QuerySyntaxError
from kg.sparql.lexer import (
    Token,
    find_inner_dots,
    find_other_end,
    may_compare,
    may_have_inner_dots,
    significant_tokens,
    token_at,
    tokens,
    tokens_of_all_readings,
)
from kg.sparql.prefixes import nearest_prefix, undeclared_message
from kg.text import quoted
from kg.vocabulary import PREFIXES

Form = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]

_FORMS: Final[tuple[Form, ...]] = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_UPDATES: Final = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
_SILENT: Final = "SILENT"
_DATASET: Final = ("FROM", "FROMNAMED")
_FROM: Final = re.compile(r"FROM", re.IGNORECASE)
_BEFORE: Final = re.compile(r":\w{0,63}\Z", re.ASCII)
"""The text before FROM at the end of the local part of a prefixed name, such as ``prov:wasDerivedFrom``."""
_GRAPH_NAME_FOLLOWS: Final = frozenset({"GRAPH", "FROM", "NAMED", "DESCRIBE"})
_MAX_DEPTH: Final = 256
_POSITION: Final = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
_EXPECTED_KEYWORD: Final = re.compile(r"(?<![\w\[\"'])([A-Z][A-Z_0-9]{2,})(?![\w\"'])")
_CHARACTER_CLASS: Final = re.compile(r"\[(?:'[^']*+(?:'|\Z)|[^\]'])*+(?:\]|\Z)(?:, \[(?:'[^']*+'|[^\]'])*+\])*+")
_UNGROUPED: Final = "The SELECT contains a variable that is unbound"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_EXPLAINED: Final = 100_000
"""Length of a query up to which a syntax error names the token and undeclared prefixes."""
CHEAP_CHARS: Final = 2_000
"""Length up to which any text, even a hostile one, is tokenized in negligible time."""
_EARLY: Final = 200
_MAX_COLUMNS: Final = 10_000
_NODES: Final = ("variable", "iri", "name", "blank")
_VARIABLE: Final = re.compile(r"[?$](\w+)")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LINE_END: Final = re.compile(r"[\r\n]")
_LENIENT_IRI: Final = re.compile(r"<[^<>]*>")
_LOAD: Final = re.compile(r"LOAD(SILENT)?$", re.IGNORECASE)
_OPENING: Final = ("(", "[", "{", "<<")
_CLOSING: Final = (")", "]", "}", ">>")
# The usual start of a query, matched at once: PREFIX declarations and a form that is a word of its own.
_PLAIN: Final = re.compile(
    r"\s*(?:PREFIX\s+(?:[A-Z][A-Z0-9_\-]*)?:\s*<[^<>\s]*>\s*)*(SELECT|ASK|CONSTRUCT|DESCRIBE)(?=[\s{*?$])",
    re.IGNORECASE | re.ASCII,
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*+:")
_IRI_CHARACTERS: Final = 2_000
"""Characters after a ``<`` in which the end of an IRI is looked for."""
_NOT_IN_IRI: Final = re.compile(r"""[\x00-\x20"{}|^`\\]""")
_SERVICE: Final = re.compile(r"SERVICE(SILENT)?$", re.IGNORECASE)


class Star(NamedTuple):
    """The ``*`` of the outermost SELECT: its offset, and all variables of the query in order of appearance."""

    offset: int
    names: tuple[str, ...]


def is_cheap_to_check(query: str) -> bool:
    """Return whether the checks of `query` need no scan over all of its tokens."""
    if len(query) < CHEAP_CHARS:
        return True
    if not is_plain(query) or _is_deep(query) or may_have_inner_dots(query):
        return False
    upper = query.upper()
    if "SERVICE" in upper:
        return False
    # FROM usually precedes the pattern, so a few tokens are enough.
    return "FROM" not in upper or any(map(_is_dataset_keyword, islice(tokens(query), _EARLY)))


def is_plain(query: str) -> bool:
    """Return whether `query_form` needs no scan over all tokens of `query`."""
    return len(query) < CHEAP_CHARS or _PLAIN.match(query) is not None


def check_query(query: str) -> Form | None:
    """Return the form of `query`, or None if it has no recognizable one (the parser will report the error).

    Raises QueryForbiddenError for updates and SERVICE, and QuerySyntaxError for text that no parser should receive:
    lone surrogates, and nesting so deep that it would overflow the parser's stack.
    """
    _check_characters(query)
    form = query_form(query)
    if form is not None and form not in _FORMS:
        raise QueryForbiddenError(
            f"Queries are read-only, and {form} is an update. Send SELECT, ASK, CONSTRUCT or DESCRIBE. If the server "
            "accepts updates, POST them to /sparql as update=."
        )
    for token in find_service_keywords(query):
        raise _forbidden(query, token, "SERVICE")
    check_depth(query)
    return form


def check_update(update: str) -> None:
    """Check an update as `check_query` checks a query, with LOAD forbidden like SERVICE."""
    _check_characters(update)
    for token in find_service_keywords(update):
        raise _forbidden(update, token, "SERVICE")
    for token in _find_loads(update):
        raise _forbidden(update, token, "LOAD")
    check_depth(update)


def _check_characters(text: str) -> None:
    if not text.isascii() and (surrogate := _SURROGATE.search(text)) is not None:
        raise _error(text, surrogate.start(), f"lone surrogate U+{ord(surrogate[0]):04X} is not a character")


def _forbidden(text: str, token: Token, keyword: str) -> QueryForbiddenError:
    line, column = line_and_column(text, token.start)
    hint = ""
    if token.kind == "name":
        hint = f" {quoted(token.text)} can be parsed as the keyword {keyword}. Rename the prefix."
    return QueryForbiddenError(
        f"Forbidden {keyword} at line {line}, column {column}. Requests to other servers are not allowed. "
        f"Load the data, or query the other server directly.{hint}"
    )


def query_form(query: str) -> str | None:
    """Return the first keyword after the prologue, in capitals: of a query or of an update."""
    if (plain := _PLAIN.match(query)) is not None:
        return plain[1].upper()
    significant = significant_tokens(query)
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
            # Oxigraph accepts a keyword without a space before the next word: SELECTDISTINCT, ASKFROM, INSERTDATA.
            return next((form for form in (*_FORMS, *_UPDATES) if text.startswith(form)), None)
    return None


def find_service_keywords(query: str) -> Iterator[Token]:
    """Yield each token in which a SERVICE clause begins, in any reading that the parser could choose.

    A clause is the keyword, perhaps SILENT, a variable or IRI, and ``{``; the keyword may be part of a longer word
    (``trueSERVICE``) or prefix (``SERVICE:x`` is the keyword and ``:x`` unless ``SERVICE:`` is declared).
    """
    if "SERVICE" not in query.upper():
        return
    ahead = _Ahead(query)
    for previous, token in tokens_of_all_readings(query):
        if token.kind == "word":
            # The end of a word may be a keyword, but no prefixed name begins within a word.
            if (keyword := _SERVICE.search(token.text)) is not None and ahead.is_clause(token.end, keyword[1]):
                yield token
        elif token.kind == "name" and "SERVICE" in token.text.partition(":")[0].upper():
            named = previous is not None and previous.kind == "word" and previous.text.upper() in _GRAPH_NAME_FOLLOWS
            if not named and ahead.opens_group(token.end):
                yield token


def _find_loads(update: str) -> Iterator[Token]:
    """Yield each token in which a LOAD operation begins, in any reading that the parser could choose.

    An operation is outside all braces, at the start or after a declaration or ``;``. There, ``LOAD:x`` and ``LOADex:x``
    are the keyword and a name. In an ambiguous text the depth of braces is unknown, so LOAD within braces counts too.
    """
    if "LOAD" not in update.upper():
        return
    depth = 0
    previous: Token | None = None
    ambiguous = False
    for token in significant_tokens(update):
        if token.kind == "punctuation":
            depth += (token.text in ("{", "{|")) - (token.text in ("}", "|}"))
        ambiguous = ambiguous or find_other_end(token, previous) is not None
        if _begins_load(previous, token) and (depth <= 0 or token.kind == "word"):
            yield token
        previous = token
    if ambiguous:
        yield from (token for before, token in tokens_of_all_readings(update) if _begins_load(before, token))


def _begins_load(previous: Token | None, token: Token) -> bool:
    if token.kind == "word":
        return _LOAD.match(token.text) is not None
    if token.kind != "name" or not token.text.partition(":")[0].upper().startswith("LOAD"):
        return False
    return previous is None or previous.kind != "word"


def has_dataset_clause(query: str) -> bool:
    """Return whether `query` contains FROM or FROM NAMED.

    No other keyword or function ends in FROM, so a word that does contains the clause (``ASKFROM<g>``). A prefix that
    ends in FROM is the keyword unless the query declares that prefix.
    """
    if all(_BEFORE.search(query, max(0, each.start() - 64), each.start()) for each in _FROM.finditer(query)):
        return False
    declared: set[str] = set()
    prefixes: set[str] = set()
    previous: Token | None = None
    for token in significant_tokens(query):
        if _is_dataset_keyword(token):
            return True
        if token.kind == "name" and (prefix := token.text.partition(":")[0]).upper().endswith(_DATASET):
            after_prefix = previous is not None and previous.text.upper() == "PREFIX"
            (declared if after_prefix else prefixes).add(prefix)
        previous = token
    return not prefixes <= declared


def _is_dataset_keyword(token: Token) -> bool:
    return token.kind == "word" and token.text.upper().endswith(_DATASET)


class _Ahead:
    """Looks ahead in a text to decide whether a word begins a clause. Each line of comments is skipped only once."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._line_ends: list[int] = []
        self._after: dict[int, int] = {}  # end of a comment line: offset of the next significant token

    def is_clause(self, offset: int, silent: str | None) -> bool:
        """Return whether an endpoint and a group follow at `offset`; `silent` is the SILENT already read, if any."""
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
        """Return whether an IRI or a variable is at `offset`, followed by a group."""
        if (iri := _LENIENT_IRI.match(self._query, offset)) is not None:
            return self.opens_group(iri.end())
        if offset >= len(self._query):
            return False
        token = token_at(self._query, offset)
        return token.kind in ("variable", "name") and self.opens_group(token.end)

    def _significant(self, offset: int) -> int:
        """Return the offset of the first significant token at or after `offset`."""
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
    """Raise QuerySyntaxError for nesting so deep that it would overflow the parser's stack."""
    if not _is_deep(query):
        return
    depth = hidden = 0
    previous: Token | None = None
    for token in significant_tokens(query):
        inside = 0
        if token.kind == "punctuation":
            depth += sum(map(token.text.count, _OPENING)) - sum(map(token.text.count, _CLOSING))
        elif token.kind == "iri" and ("(" in token.text or "[" in token.text) and may_compare(token, previous):
            # It may be *less than* and the start of an expression with brackets of its own.
            inside = token.text.count("(") + token.text.count("[")
            hidden += max(0, inside - token.text.count(")") - token.text.count("]"))
        if depth + hidden + inside > _MAX_DEPTH:
            raise _error(query, token.start, f"more than {_MAX_DEPTH} open brackets")
        previous = token


def _is_deep(query: str) -> bool:
    """Return whether there are enough opening brackets to need a check of their depth."""
    return sum(map(query.count, ("(", "[", "{", "<<"))) > _MAX_DEPTH


def find_star(query: str) -> Star | None:
    """Find the ``*`` of the outermost SELECT with the variables of the query; None without one.

    Oxigraph returns the columns of ``SELECT *`` in alphabetical order. In a long text, a name in a string or a comment
    counts too: only the order of columns depends on it.
    """
    if "*" not in query:
        return None
    words: list[str] = []
    prologue = False
    for token in islice(significant_tokens(query), _EARLY):
        if token.text == "*" and words and words[0] == "SELECT":
            break
        if token.kind == "word" and token.text.upper() in ("PREFIX", "BASE"):
            prologue = True
        elif prologue and token.kind in ("name", "iri"):
            prologue = token.kind == "name"
        elif token.kind == "word" and token.text.upper() in (("DISTINCT", "REDUCED") if words else ("SELECT",)):
            words.append(token.text.upper())
        else:
            return None
    else:
        return None
    if len(query) < CHEAP_CHARS:
        names = [each.text[1:] for each in tokens(query) if each.kind == "variable"]
    else:
        names = _VARIABLE.findall(query)
    return Star(token.start, tuple(dict.fromkeys(names))[:_MAX_COLUMNS])


def line_and_column(query: str, offset: int) -> tuple[int, int]:
    """Return line and column (one-based) of the character at `offset`."""
    return query.count("\n", 0, offset) + 1, offset - query.rfind("\n", 0, offset)


def _error(query: str, offset: int, reason: str) -> QuerySyntaxError:
    line, column = line_and_column(query, offset)
    return QuerySyntaxError(f"Invalid SPARQL: line {line}, column {column}: {reason}")


def build_syntax_error(query: str, message: str) -> QuerySyntaxError:
    """Build the error for pyoxigraph's syntax error `message` about `query`, with the position of the wrong token.

    Where it expected a keyword, Oxigraph counts the characters that it compared as read; this is corrected.
    """
    match = _POSITION.match(message)
    if match is None:
        return QuerySyntaxError(f"Invalid SPARQL: {message}")
    expected = _CHARACTER_CLASS.sub(
        lambda found: "a name" if len(found[0]) > 12 else found[0], " ".join(match[3].split())
    )
    lines = query.split("\n")
    line = min(int(match[1]), len(lines))
    begin = sum(len(text) + 1 for text in lines[: line - 1])
    offset = begin + int(match[2]) - 1
    escapes = [dot for dot in find_inner_dots(query) if dot >= begin]  # the engine counts these
    offset -= sum(dot + number < offset for number, dot in enumerate(escapes))
    keywords = _EXPECTED_KEYWORD.findall(expected)
    if keywords and not _names_characters(expected):
        offset -= min(len(keyword) for keyword in keywords)
    offset = max(0, min(offset, len(query)))
    if len(query) > _EXPLAINED:
        return _error(query, offset, expected)
    found = next((token for token in tokens(query) if token.end > offset), None)
    if found is not None and found.kind not in ("space", "comment"):
        offset = found.start
    if (unreadable := _explain_iri(query, offset)) is not None:
        return _error(query, *unreadable)
    at = "end of the query" if found is None else repr(found.text if len(found.text) <= 40 else found.text[:40] + "...")
    undeclared, declared = _undeclared_prefix(query)
    if undeclared is not None:
        prefix = undeclared.text.partition(":")[0]
        return _error(query, undeclared.start, undeclared_message(prefix, nearest_prefix(prefix, sorted(declared))))
    if found is not None and (broken := _find_incomplete_triple(query, found)) is not None:
        wrong, missing = broken
        return _error(query, wrong.start, f"unexpected {wrong.text!r}: expected {missing}")
    if _UNGROUPED in expected:
        message = (
            "with an aggregate or GROUP BY, SELECT may contain only variables of GROUP BY. Group by the others too, or "
            "use them in an aggregate such as SAMPLE(?x)."
        )
        return _error(query, offset, message)
    if expected == "expected OPTIONAL":  # all that Oxigraph names where it cannot read on in a group
        expected = "is a '.', ';' or '}' missing before it, or a keyword misspelt?"
    if query_form(query) is None:
        expected = "expected SELECT, ASK, CONSTRUCT or DESCRIBE after the PREFIX lines"
    return _error(query, offset, f"unexpected {at}: {expected}")


def _explain_iri(query: str, offset: int) -> tuple[int, str] | None:
    """Find an IRI at `offset` or after it that the engine cannot read, and the reason."""
    all_tokens = list(significant_tokens(query))
    has_base = any(token.kind == "word" and token.text.upper() == "BASE" for token in all_tokens)
    for token, following in pairwise(all_tokens):
        end = query.find(">", token.end, token.end + _IRI_CHARACTERS) if token.text == "<" else token.end
        shown = repr(f"<{query[token.end : end][:60]}>")
        if token.kind == "iri" and token.end > offset and not has_base and _SCHEME.match(token.text, 1) is None:
            return token.start, f"{token.text[:60]!r} is relative, and the query has no BASE. Write the whole IRI"
        if token.text == "<" and following.kind == "name" and following.start == token.end and end >= offset:
            wrong = _NOT_IN_IRI.search(query, token.end, end)
            if wrong is not None and _SCHEME.match(query, token.end):
                return token.start, f"{shown} is not an IRI: it contains {wrong[0]!r}. Percent-encode it, as in %20"
    return None


def _find_incomplete_triple(query: str, first: Token) -> tuple[Token, str] | None:
    """Find the token at which a pattern that begins with `first` lacks a property or a value, and name what it lacks.

    Oxigraph reports the start of such a pattern, or the property after a semicolon, where it tried all other readings.
    None for a complete pattern, and for property paths, brackets and collections.
    """
    all_tokens = list(significant_tokens(query))
    at = next((number for number, token in enumerate(all_tokens) if token.start == first.start), len(all_tokens))
    before = all_tokens[at - 1].text if at else ""
    if first.kind not in _NODES or before not in ("{", "}", ".", ";"):
        return None
    state = "property"
    for token in all_tokens[at + (before != ";") :]:
        closes = token.text in ("}", ".", ";", ",") and token.kind == "punctuation"
        if closes and state in ("property", "value"):
            missing = "a value after the property" if state == "value" else "a property and a value after the subject"
            return token, missing
        if state in ("property", "more") and (token.kind in ("variable", "iri", "name") or token.text == "a"):
            state = "value"
        elif state == "value" and (token.kind in (*_NODES, "string", "number") or token.text in ("true", "false")):
            state = "end"
        elif state == "end" and token.text in (",", ";"):
            state = "value" if token.text == "," else "more"
        elif state != "end" or token.kind != "language":
            return None
    return None


def _undeclared_prefix(query: str) -> tuple[Token | None, Collection[str]]:
    """Return the first prefixed name with a prefix that neither query nor endpoint declares, and all declared ones."""
    declared = set(PREFIXES)
    previous = None
    for token in significant_tokens(query):
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
    """Return whether anything but keywords and "any character" was expected, so that the position is exact."""
    return "The SELECT contains" in expected or '"' in expected or "['" in expected or "[ '" in expected
