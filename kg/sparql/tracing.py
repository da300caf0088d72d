"""Queries for the evidence of a result: the rows that a count counted, and the patterns that were not found.

Each is written from the text of the query alone. Where that is not possible, the reason is given instead of a query:

- `find_counts`: for each column with an aggregate, the solutions of its group. The number of rows of
  ``COUNT(DISTINCT ?x)`` and ``COUNT(?x)`` is the count. The keys of the group come from a row of the result.
- `find_absences`: for each ``FILTER NOT EXISTS`` and ``MINUS``, its pattern joined with the solutions behind a row of
  the result. That query has no rows.
- `compile_solutions`: the solutions of the WHERE clause behind a row, with all their variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kg.errors import InvalidInputError
from kg.sparql.algebra import Column, Element, Query, Select, variable_name
from kg.sparql.lexer import Token, significant_tokens
from kg.sparql.parser import parse
from kg.sparql.terms import bind, has_blank

Row = Mapping[str, object]
"""The terms of a row by variable. A variable that is missing or None is unbound."""

MOST_CHARACTERS: Final = 20_000
"""Maximum length of a query that callers trace: its sub-SELECTs are read once for each level."""

MOST_TRACED: Final = 50
"""Maximum number of aggregates, and of absences, of a query that get a query each: it contains most of that query."""
_TOO_MANY: Final = f"Only the first {MOST_TRACED} of a query are traced."

_AGGREGATES: Final = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"})
_RANDOM: Final = frozenset({"RAND", "UUID", "STRUUID", "BNODE", "NOW"})
"""Functions with another value in each run of a query."""
_OPENING: Final = {"(": 1, "{": 1, ")": -1, "}": -1}


class _UnsupportedError(Exception):
    """The query has no known form. Its message is the reason for the user, if any."""


@dataclass(frozen=True, slots=True)
class Count:
    """An aggregate of a query: the column of its values, and its expression."""

    column: str
    expression: str
    reason: str | None = None
    """Why no query can list the counted solutions; None if one can."""
    row_reason: str | None = None
    """Why no query can be restricted to the group of a row."""
    _listing: _Listing | None = None

    def compile(self, row: Row | None = None) -> str:
        """Write the query that lists the counted solutions in the group of `row`; in all groups without a row.

        Raises InvalidInputError with the reason if that is not possible.
        """
        reason = self.reason or (self.row_reason if row is not None else None)
        if reason is not None or self._listing is None:
            raise InvalidInputError(reason or "The query is not understood.")
        return self._listing.compile(row)


@dataclass(frozen=True, slots=True)
class Absence:
    """A pattern of a query whose rows exist because it was not found."""

    pattern: str
    reason: str | None = None
    """Why no query can show that it was not found; None if one can."""
    _proof: _Proof | None = None

    def compile(self, row: Row) -> str:
        """Write the query for the pattern with the solutions behind `row`. It has no rows.

        Raises InvalidInputError with the reason if that is not possible.
        """
        if self.reason is not None or self._proof is None:
            raise InvalidInputError(self.reason or "The query is not understood.")
        return self._proof.compile(row)


def find_counts(query: str) -> list[Count]:
    """Find the aggregates in the columns of `query`, also those that a sub-SELECT computes."""
    parsed = parse(query)
    if parsed is None or parsed.form != "SELECT":
        return []
    try:
        outer = _describe(parsed, parsed.select, query)
        found = [count for item in outer.items for count in _counts_of(outer, item, outer.result_names(), "")]
        if outer.keys is None and not found:
            found = _find_inner_counts(parsed, outer)
    except _UnsupportedError:
        return []
    return [*found[:MOST_TRACED], *(replace(count, reason=_TOO_MANY) for count in found[MOST_TRACED:])]


def find_absences(query: str) -> list[Absence]:
    """Find the NOT EXISTS and MINUS clauses of the WHERE clause of `query`."""
    parsed = parse(query)
    if parsed is None or parsed.form not in ("SELECT", "ASK"):
        return []
    try:
        outer = _describe(parsed, parsed.select, query)
    except _UnsupportedError:
        outer = None
    found = [
        element
        for element in parsed.where
        if element.kind == "minus" or (element.kind == "filter" and element.parts and "NOT EXISTS" in _flat(element))
    ]
    return [
        *(_build_absence(parsed, outer, element) for element in found[:MOST_TRACED]),
        *(Absence(" ".join(element.text.split()), _TOO_MANY) for element in found[MOST_TRACED:]),
    ]


# -- the parts of a SELECT


@dataclass(frozen=True, slots=True)
class _Select:
    text: str
    """The whole query, to which the places of tokens refer."""
    prologue: str
    items: Sequence[Column]
    star: bool
    dataset: str
    body: str
    keys: Sequence[tuple[str, str]] | None
    """Name and expression of each key of GROUP BY, either of them empty; None without GROUP BY."""
    random: str
    """A function that it calls with another value in each run."""
    has_blank: bool
    """Whether it has labels of blank nodes."""
    used: frozenset[str]
    """The names of all variables in it."""

    def result_names(self) -> dict[str, str]:
        """Return the column of each variable that is selected as it is."""
        found = {item.expression[0].text[1:]: item.name for item in self.items if _is_variable(item.expression)}
        return found | {item.name: item.name for item in self.items if not item.expression}

    def is_aggregated(self) -> bool:
        """Whether its rows are groups."""
        return self.keys is not None or any(True for item in self.items for _ in _aggregates_in(item.expression))


def _is_variable(tokens: Sequence[Token]) -> bool:
    return len(tokens) == 1 and tokens[0].kind == "variable"


def _describe(parsed: Query, select: Select, text: str) -> _Select:
    """Describe a SELECT of a query, whose own text is `text`. Raises _UnsupportedError."""
    if not select.is_known:
        raise _UnsupportedError
    found = list(significant_tokens(text))
    return _Select(
        parsed.text,
        parsed.prologue,
        select.columns,
        select.star,
        parsed.dataset,
        parsed.text[slice(*select.body)],
        # Up to the last token: a comment before AS would hide what follows the expression in a listing.
        None if select.keys is None else [(key.name, _text_of(parsed, key.expression)) for key in select.keys],
        next((token.text for token in found if _word(token) in _RANDOM), ""),
        any(token.kind == "blank" for token in found),
        frozenset(token.text[1:] for token in found if token.kind == "variable"),
    )


def _text_of(parsed: Query, tokens: Sequence[Token]) -> str:
    return parsed.text[tokens[0].start : tokens[-1].end] if tokens else ""


def _word(token: Token) -> str:
    return token.text.upper() if token.kind == "word" else ""


def _closing(found: Sequence[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at index `at`."""
    depth = 0
    for index in range(at, len(found)):
        if found[index].kind == "punctuation":
            depth += _OPENING.get(found[index].text, 0)
        if depth == 0:
            return index
    raise _UnsupportedError


def _aggregates_in(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens of each aggregate of an expression, except those in groups of EXISTS."""
    at = 0
    while at < len(tokens):
        if tokens[at].text == "{":
            at = _closing(tokens, at)
        elif _word(tokens[at]) in _AGGREGATES and tokens[at + 1 : at + 2] and tokens[at + 1].text == "(":
            end = _closing(tokens, at + 1)
            yield tokens[at : end + 1]
            at = end
        at += 1


# -- solutions


def compile_solutions(query: str, row: Row) -> str:
    """Write the query for the solutions of the WHERE clause of `query`, a SELECT, that `row` comes from.

    Raises InvalidInputError with the reason if that is not possible.
    """
    parsed = parse(query)
    if parsed is None or parsed.form != "SELECT":
        raise InvalidInputError("Only rows of a SELECT that is understood can be traced.")
    try:
        select = _describe(parsed, parsed.select, parsed.text)
    except _UnsupportedError as error:
        raise InvalidInputError(str(error) or "The query is not understood.") from None
    if select.random:
        raise InvalidInputError(f"{select.random}() has another value in each run.")
    names = {name: name for name in row} if select.star else select.result_names()
    if select.is_aggregated():
        keys = {name for name, _ in select.keys or ()}
        names = {name: column for name, column in names.items() if name in keys}
    given = {name: row[column] for name, column in names.items() if row.get(column) is not None}
    known = {name: value for name, value in given.items() if not has_blank(value)}
    # Values first, in the same group: the engine then looks them up, where a filter would compare every solution.
    values = ""
    if known:
        variables = " ".join(f"?{name}" for name in known)
        terms = bind(" ".join(f"$v{at}" for at in range(len(known))), **dict(_numbered(known.values())))
        values = f"VALUES ({variables}) {{ ({terms}) }}\n"
    lines = [_group(values + select.body)]
    lines += [f"FILTER(!BOUND(?{name}))" for name, column in names.items() if row.get(column) is None]
    body = "\n  ".join(lines)
    return f"{select.prologue}SELECT * {select.dataset}WHERE {{\n  {body}\n}}"


def _numbered(values: Iterable[object]) -> Iterator[tuple[str, Any]]:
    for at, value in enumerate(values):
        yield f"v{at}", value


# -- counts


@dataclass(frozen=True, slots=True)
class _Listing:
    """The parts of the query that lists the solutions of a group."""

    select: _Select
    distinct: bool
    counted: str
    """The expression whose values count; empty for all solutions."""
    keys: Mapping[str, str]
    """The column of the result that has the value of each key."""

    def compile(self, row: Row | None) -> str:
        select = self.select
        lines = [_group(select.body)]
        lines += [f"BIND({expression} AS ?{name})" for name, expression in select.keys or () if name and expression]
        name = self.counted.strip()[1:] if _is_variable(list(significant_tokens(self.counted))) else ""
        if self.counted and not name:
            name = _find_free_name(select.used)
            lines.append(f"BIND({self.counted} AS ?{name})")
        if name:
            lines.append(f"FILTER(BOUND(?{name}))")
        keys = [key for key, _ in select.keys or () if key]
        if row is not None:
            lines += _restrict(row, {key: self.keys[key] for key in keys})
        shown = [] if row is not None else keys
        columns = f"DISTINCT {' '.join(f'?{each}' for each in dict.fromkeys([*shown, name]))}" if self.distinct else "*"
        ordered = f" ORDER BY {' '.join(f'?{key}' for key in shown)}" if shown else ""
        body = "\n  ".join(lines)
        return f"{select.prologue}SELECT {columns} {select.dataset}WHERE {{\n  {body}\n}}{ordered}"


def _group(body: str) -> str:
    """Write a group. The line break ends a comment at the end of `body`."""
    return f"{{{body.rstrip()}\n  }}"


def _find_free_name(used: frozenset[str]) -> str:
    return next(name for number in range(len(used) + 1) if (name := f"counted{number or ''}") not in used)


def _restrict(row: Row, columns: Mapping[str, str]) -> Iterator[str]:
    """Write the filters that keep the solutions whose variables have the values of `row` in their `columns`."""
    for name, column in columns.items():
        value = row.get(column)
        if value is None:
            yield f"FILTER(!BOUND(?{name}))"
        elif has_blank(value):
            raise InvalidInputError(f"?{column} is a blank node in this row, which no query can name.")
        else:
            yield bind(f"FILTER(sameTerm(?{name}, $value))", value=value)  # type: ignore[arg-type]  # a term of a result


def _counts_of(select: _Select, item: Column, names: Mapping[str, str], outside: str) -> Iterator[Count]:
    """Yield the aggregates of a column. `names` are the columns of variables, `outside` is a reason against a row."""
    for tokens in _aggregates_in(item.expression):
        expression = select.text[tokens[0].start : tokens[-1].end]
        inner = list(tokens[2:-1])
        distinct = bool(inner) and _word(inner[0]) == "DISTINCT"
        inner = inner[distinct:]
        ends = [at for at, token in enumerate(inner) if token.text == ";" and token.kind == "punctuation"]
        inner = inner[: ends[0] if ends else None]
        if not inner:
            continue
        whole = len(inner) == 1 and inner[0].text == "*"
        counted = "" if whole else select.text[inner[0].start : inner[-1].end]
        reason = row_reason = None
        if select.random:
            reason = f"{select.random}() has another value in each run."
        elif whole and distinct:
            reason = "COUNT(DISTINCT *) counts solutions as a whole. Count a variable instead."
        keys = select.keys or ()
        if unnamed := next((text for name, text in keys if not name), None):
            named = f"GROUP BY ({unnamed.strip('()')} AS ?key)"
            row_reason = f"The group key {unnamed} has no name. Write {named} and select ?key."
        elif missing := next((name for name, _ in keys if name not in names), None):
            row_reason = f"The group key ?{missing} is not selected. Add it to SELECT."
        listing = _Listing(select, distinct, counted, names)
        yield Count(item.name, " ".join(expression.split()), reason, row_reason or outside or None, listing)


def _find_inner_counts(parsed: Query, outer: _Select) -> list[Count]:
    """Find the aggregates of the sub-SELECTs whose values are columns of `outer`."""
    names = outer.result_names()
    tokens = list(significant_tokens(parsed.text))
    found = []
    for element, plain in _sub_selects(parsed.where):
        if element.select is None or not element.select.is_known:
            continue
        inner = _describe(parsed, element.select, element.text)
        for item in inner.items:
            if not item.expression or not (outer.star or item.name in names):
                continue
            visible = _visible_names(inner, names, star=outer.star)
            outside = "" if plain else "The sub-SELECT is in a clause whose rows it does not determine alone."
            if not outside and _is_bound_elsewhere(parsed, tokens, item.name):
                outside = f"?{item.name} has values of several parts of the query."
            if not outside and (loose := _find_loose_key(element, inner)):
                outside = f"The group key ?{loose} can be unbound in the sub-SELECT."
            for count in _counts_of(inner, item, visible, outside):
                column = item.name if outer.star else names[item.name]
                found.append(Count(column, count.expression, count.reason, count.row_reason, count._listing))
    return found


def _visible_names(inner: _Select, names: Mapping[str, str], *, star: bool) -> dict[str, str]:
    """Return the columns of the result that have the values of the variables of a sub-SELECT."""
    own = inner.result_names()
    return {name: (column if star else names[column]) for name, column in own.items() if star or column in names}


def _sub_selects(elements: Iterable[Element], *, plain: bool = True) -> Iterator[tuple[Element, bool]]:
    """Yield the sub-SELECTs of a group, and whether their rows are joined as they are."""
    for element in elements:
        if element.kind == "select":
            yield element, plain
        elif element.kind in ("group", "optional", "union", "graph", "lateral"):
            for part in element.parts:
                yield from _sub_selects(part, plain=plain and element.kind in ("group", "optional"))


def _is_bound_elsewhere(parsed: Query, found: Sequence[Token], name: str) -> bool:
    """Whether `name` is bound by anything else than one ``AS ?name``."""
    given = [at for at, token in enumerate(found) if token.kind == "variable" and token.text[1:] == name]
    if sum(1 for at in given if at and _word(found[at - 1]) == "AS") != 1:
        return True
    if any(comparison.operator == "VALUES" and comparison.variable.value == name for comparison in parsed.comparisons):
        return True
    nodes = [node for pattern in parsed.patterns for node in (pattern.subject, pattern.object, *pattern.atoms)]
    nodes += [pattern.graph for pattern in parsed.patterns if pattern.graph is not None]
    if any(variable_name(node) == name for node in nodes):
        return True
    return any(name in element.names for element in _services(parsed.where))


def _services(elements: Iterable[Element]) -> Iterator[Element]:
    for element in elements:
        if element.kind == "service":
            yield element
        for part in element.parts:
            yield from _services(part)


def _find_loose_key(element: Element, inner: _Select) -> str | None:
    """Find a key of a sub-SELECT that no triple pattern of it binds always."""
    bound = _bound_names(element.parts[0]) if element.parts else frozenset()
    return next((name for name, text in inner.keys or () if name and (text or name not in bound)), None)


def _bound_names(elements: Iterable[Element]) -> frozenset[str]:
    """Return the variables that each solution of a group binds, as far as its triple patterns show."""
    found: set[str] = set()
    for element in elements:
        if element.kind == "triple" and element.pattern is not None:
            pattern = element.pattern
            nodes = [pattern.subject, pattern.object, *([pattern.predicate] if pattern.predicate is not None else [])]
            found |= {node.text[1:] for node in nodes if node.kind == "variable"}
        elif element.kind in ("group", "graph") and element.parts:
            found |= _bound_names(element.parts[0])
            if element.kind == "graph" and element.node is not None and element.node.kind == "variable":
                found.add(element.node.text[1:])
        elif element.kind == "select" and element.parts:
            found |= _bound_names(element.parts[0]) & _projected(element)
    return frozenset(found)


def _projected(element: Element) -> frozenset[str]:
    """Return the variables of its body that a sub-SELECT selects as they are."""
    select = element.select
    if select is None or not select.is_known:
        return frozenset()
    return element.names if select.star else frozenset(each.name for each in select.columns if not each.expression)


# -- absences


@dataclass(frozen=True, slots=True)
class _Proof:
    """The parts of the query for a pattern that was not found."""

    select: _Select
    shared: tuple[str, ...]
    """The variables that the pattern shares with the rest of the query."""
    pattern: str
    columns: Mapping[str, str]
    """The column of each variable of the WHERE clause that the result has."""

    def compile(self, row: Row) -> str:
        select = self.select
        filters = [*_restrict(row, self.columns if not select.star else {name: name for name in row})]
        lines = [_group(select.body)]
        lines += [f"BIND({expression} AS ?{name})" for name, expression in select.keys or () if name and expression]
        inner = "\n    ".join([*lines, *filters])
        names = " ".join(f"?{name}" for name in self.shared)
        behind = f"{{ SELECT DISTINCT {names} WHERE {{\n    {inner}\n  }} }}" if names else ""
        return f"{select.prologue}SELECT * {select.dataset}WHERE {{\n  {behind}\n  {self.pattern}\n}}"


def _build_absence(parsed: Query, outer: _Select | None, element: Element) -> Absence:
    words = " ".join(element.text.split())
    try:
        if outer is None:
            raise _UnsupportedError("The query is not understood.")
        return Absence(words, None, _build_proof(parsed, outer, element))
    except _UnsupportedError as error:
        return Absence(words, str(error) or "The clause is not understood.")


def _build_proof(parsed: Query, outer: _Select, element: Element) -> _Proof:
    """Build the parts of the query for an absence. Raises _UnsupportedError with the reason if that is not possible."""
    if outer.random:
        raise _UnsupportedError(f"{outer.random}() has another value in each run.")
    if element.kind == "filter" and len(element.parts) != 1:
        raise _UnsupportedError("The filter has several conditions.")
    inside = _inner_text(element)
    if any(not _is_plain(each) for each in element.parts[0]):
        raise _UnsupportedError("Its pattern has more than triple patterns and filters.")
    if outer.has_blank:
        raise _UnsupportedError("The query has labels of blank nodes, which one query may not repeat.")
    others = [each for each in parsed.where if each is not element]
    if element.kind == "minus":  # it compares with what comes before it, a filter with its whole group
        others = [each for each in others if each.end <= element.start]
    around = frozenset(name for each in others if each.kind != "minus" for name in each.names)
    shared = tuple(sorted(element.names & around))
    if element.kind == "minus":
        bound = _bound_names(others) & _bound_names(element.parts[0])
        if not shared:
            raise _UnsupportedError("MINUS shares no variable with the rest of the query, so it excludes nothing.")
        if loose := next((name for name in shared if name not in bound), None):
            raise _UnsupportedError(f"?{loose}, which MINUS compares, can be unbound.")
        inside = _group(inside)
    names = outer.result_names()
    if outer.is_aggregated():
        keys = [name for name, _ in outer.keys or ()]
        names = {name: column for name, column in names.items() if name in keys}
    return _Proof(outer, shared, inside.strip(), names)


def _flat(element: Element) -> str:
    return " ".join(element.text.upper().split())


def _inner_text(element: Element) -> str:
    """Return the text of the group of a MINUS, or of a filter that is one NOT EXISTS. Raises _UnsupportedError."""
    found = list(significant_tokens(element.text))
    at = next((index for index, token in enumerate(found) if token.text == "{"), None)
    if at is None:
        raise _UnsupportedError
    end = _closing(found, at)
    before = [token.text.upper() for token in found[:at] if token.text != "("]
    after = [token.text for token in found[end + 1 :] if token.text != ")"]
    if after or before not in (["MINUS"], ["FILTER", "NOT", "EXISTS"]):
        raise _UnsupportedError("The filter has several conditions.")
    return element.text[found[at].end : found[end].start]


def _is_plain(element: Element) -> bool:
    if element.kind == "graph":
        return all(map(_is_plain, element.parts[0]))
    return element.kind == "triple" or (element.kind == "filter" and not element.parts)
