"""Diagnoses empty query results: finds a minimal set of patterns and filters without solutions.

Parts of the query run in the workers until a set is found that has no solution while each smaller one has. Every claim
has been tested: the reported patterns have no solution together.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from kg.errors import QuadciteError, QueryLimitError
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.algebra import Element, Query
from kg.sparql.guard import line_and_column
from kg.sparql.lint import WITHOUT_DATA, Hint, check
from kg.sparql.measured_schema import Schema
from kg.sparql.parser import parse
from kg.store.protocol import Result, Rows
from kg.text import quoted
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.sparql.suggestions import Suggestions

TIMEOUT_S: Final = 4.0
"""Maximum seconds of a diagnosis, for all its probes together."""
MOST_PROBES: Final = 40
_MOST_UNITS: Final = 30
_MOST_PAIRS: Final = 30
_PROBE_S: Final = 1.5
_LONG: Final = 200
_BINDING: Final = frozenset({"triple", "values", "group", "graph", "union", "select"})
_EXTENDING: Final = frozenset({"optional", "bind"})
_AGGREGATES: Final = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"})


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause of an empty result. `patterns` are in the spelling and order of the query.

    `complete`: the set is minimal. If False, time or probes ran out before that was known.
    """

    patterns: tuple[str, ...]
    message: str
    hints: tuple[Hint, ...]
    probes: int
    complete: bool
    looked_for: tuple[str, ...] = ()
    """For each of the sets, the query for it, which has no rows."""


class Probes:
    """Runs parts of one query, with limits of number and time."""

    def __init__(self, kg: KnowledgeGraph, query: Query, timeout_s: float) -> None:
        self.kg, self.query = kg, query
        self.count = 0
        self.exhausted = False
        self._end = time.monotonic() + timeout_s

    def rows(self, head: str, body: str, tail: str = "", limit: int = 200) -> Rows | None:
        """Run ``head { body } tail``. Returns None at a limit."""
        result = self._run(f"{self.query.prologue}{head} {self.query.dataset}WHERE {{ {body} }} {tail}", limit)
        return result if isinstance(result, Rows) else None

    def any(self, body: str) -> bool | None:
        """Check whether `body` has a solution. Returns None at a limit."""
        result = self._run(f"{self.query.prologue}ASK {self.query.dataset}{{ {body} }}", 1)
        return result if isinstance(result, bool) else None

    def each(self, bodies: Sequence[str]) -> list[bool | None]:
        """Check for each of `bodies` whether it has a solution, in one query if possible."""
        columns = " ".join(f"(EXISTS {{ {body} }} AS ?probe{index})" for index, body in enumerate(bodies))
        rows = self.rows(f"SELECT {columns}", "", limit=1) if bodies else None
        if rows is None or len(rows) != 1:
            return [self.any(body) for body in bodies]
        return [getattr(value, "value", None) == "true" for value in rows.rows[0]]

    def _run(self, query: str, limit: int) -> Result | None:
        left = self._end - time.monotonic()
        if left <= 0 or self.count >= MOST_PROBES:
            self.exhausted = True
            return None
        self.count += 1
        try:
            return self.kg.query(query, limit=limit, timeout_s=min(left, _PROBE_S), raw=True).result
        except QueryLimitError:
            self.exhausted = True
            return None


_ABSENT: Final = {
    "unused_class": "?s a {}",
    "unknown_class": "?s a {}",
    "unused_property": "?s {} ?o",
    "unknown_property": "?s {} ?o",
}
"""For each code of a hint that a term is not in use: the pattern that proves it."""


def find_hints(kg: KnowledgeGraph, query: str, schema: Schema) -> list[Hint]:
    """Find likely mistakes in `query` by `schema`, which may be older than the store.

    A term that was unused when the schema was measured may be in use now. So with an older schema, each such hint is
    tested on the store, and other hints about the data are omitted.
    """
    hints = check(query, schema)
    if schema.generation == kg.generation:
        return hints
    parsed = parse(query)
    if parsed is None:
        return hints
    probes = Probes(kg, parsed, _PROBE_S)
    patterns = {hint: _ABSENT[hint.code].format(hint.found) for hint in hints if hint.code in _ABSENT}
    absent = _find_absent(probes, list(patterns.values()))
    return [hint for hint in hints if hint.code in WITHOUT_DATA or patterns.get(hint) in absent]


def _find_absent(probes: Probes, patterns: Sequence[str]) -> set[str]:
    """Find those of `patterns` without a solution: by one query, or one each if one of them is not valid."""
    found: list[bool | None] = []
    try:
        found = probes.each(patterns)
    except QuadciteError:  # such as an undeclared prefix
        for pattern in patterns:
            try:
                found.append(probes.any(pattern))
            except QuadciteError:
                found.append(None)
    return {pattern for pattern, has in zip(patterns, found, strict=True) if has is False}


def is_empty(query: str, result: Result) -> bool:
    """Check whether `result` is empty: no rows, false, no triples, or one row of aggregates over nothing."""
    if not isinstance(result, Rows):
        return not result
    if len(result.rows) != 1 or result.truncated:
        return not result.rows
    values = [getattr(term, "value", None) for term in result.rows[0] if term is not None]
    if any(value not in ("0", "0.0", "", "0.0E0") for value in values):
        return False
    head = query.upper().partition("{")[0]
    return any(word in head for word in _AGGREGATES) and (not values or "0" in values or "" in values)


def diagnose(kg: KnowledgeGraph, query: str, *, timeout_s: float = TIMEOUT_S) -> Diagnosis | None:
    """Find the cause of the empty result of `query`. Returns None if it is unknown.

    Never raises for the query itself: one that cannot be parsed or split has no diagnosis.
    """
    parsed = parse(query)
    if parsed is None or not parsed.where or _remote(parsed.where):
        return None
    probes = Probes(kg, parsed, timeout_s)
    try:
        whole = probes.any(_body_of(parsed.where))
        if whole:
            return Diagnosis((), _modifiers(parsed), (), probes.count, not probes.exhausted)
        cores = _cores(probes, parsed.where)
        if not cores:
            return None
        complete = not probes.exhausted
        values = [
            hint
            for core in cores
            for hint in Suggestions(probes.rows, probes.any, [_body(e) for e in core], core, parsed).hints()
        ]
    except QuadciteError:
        return None
    parts = [element for core in cores for element in core]
    inside = [
        hint
        for hint in find_hints(kg, query, get_schema(kg, 0))
        if hint.code == "misspelt_namespace" or any(_within(query, hint, element) for element in parts)
    ]
    known = {hint.found for hint in inside}
    hints = (*inside, *(hint for hint in values if hint.found not in known))
    message = " ".join([*(_sentence(query, core) for core in cores), *(_stopped(hint.message) for hint in hints[:3])])
    queries = tuple(f"{parsed.prologue}SELECT * {parsed.dataset}WHERE {{ {_body_of(core)} }}" for core in cores)
    return Diagnosis(tuple(dict.fromkeys(map(_words, parts))), message, hints, probes.count, complete, queries)


# -- the search for a core


def _cores(probes: Probes, elements: Sequence[Element], depth: int = 0) -> list[list[Element]]:
    """Find a minimal set of `elements` without solutions, given that all together have none.

    Returns several sets for the branches of a UNION without solutions, and an empty list if none was found.
    """
    units = _flat(elements)
    if len(units) > _MOST_UNITS:
        probes.exhausted = True
        return []
    binding = [unit for unit in units if unit.kind in _BINDING]
    alone = probes.each([_body(unit) for unit in binding])
    empty = [unit for unit, found in zip(binding, alone, strict=True) if found is False]
    if empty:
        return _inside(probes, next((unit for unit in empty if unit.kind == "triple"), empty[0]), depth)
    pairs = [pair for pair in combinations(units, 2) if _fit(pair, units)]
    if 0 < len(pairs) <= _MOST_PAIRS and len(units) > 2:
        together = probes.each([_body_of(_whole(pair, units)) for pair in pairs])
        for pair, found in zip(pairs, together, strict=True):
            if found is False:
                return [_whole(pair, units)]
    return _reduced(probes, units)


def _reduced(probes: Probes, units: list[Element]) -> list[list[Element]]:
    """Remove units one by one as long as the rest has no solutions."""
    kept = [unit for unit in units if unit.kind not in _EXTENDING]
    if probes.any(_body_of(_whole(kept, units))) is not False:
        return []
    for unit in sorted(kept, key=lambda unit: unit.kind in _BINDING):
        left = _valid([other for other in kept if other is not unit], units)
        if unit in kept and left and probes.any(_body_of(_whole(left, units))) is False:
            kept = left
    return [_whole(kept, units)]


def _inside(probes: Probes, unit: Element, depth: int) -> list[list[Element]]:
    """Find the minimal sets within the group of `unit`, which has no solutions, or within each branch of a UNION."""
    if unit.kind not in ("union", "group", "select") or depth == 2:
        return [[unit]]
    found: list[list[Element]] = []
    for part in unit.parts:
        if not part or probes.any(_body_of(part)) is not False:
            return [[unit]]
        inner = _cores(probes, part, depth + 1)
        if not inner:
            return [[unit]]
        found += inner
    return found


def _flat(elements: Iterable[Element]) -> list[Element]:
    """Replace groups and GRAPH clauses of triples and VALUES by their elements, which join anyway."""
    found: list[Element] = []
    for element in elements:
        inner = element.parts[0] if element.kind in ("group", "graph") and element.parts else ()
        if inner and all(one.kind in ("triple", "values") for one in inner):
            found.extend(inner)
        else:
            found.append(element)
    return found


def _bound(units: Iterable[Element]) -> frozenset[str]:
    return frozenset(name for unit in units if unit.kind in _BINDING for name in unit.names)


def _needs(unit: Element, units: Sequence[Element]) -> tuple[frozenset[str], list[Element]]:
    """Find the variables that `unit` needs bound, and the OPTIONAL and BIND elements that bind its others."""
    anywhere = _bound(units)
    names, missing, extending = set(unit.names & anywhere), set(unit.names - anywhere), []
    if unit.kind in _BINDING:
        return frozenset(), []
    for other in reversed(units):
        if other.kind in _EXTENDING and other.start < unit.start and other.names & missing:
            extending.append(other)
            names |= other.names & anywhere
            missing |= other.names - anywhere
    return frozenset(names), extending


def _valid(units: list[Element], all_units: Sequence[Element]) -> list[Element]:
    """Remove the filters whose variables are not bound in `units`."""
    bound = _bound(units)
    return [unit for unit in units if _needs(unit, all_units)[0] <= bound]


def _fit(pair: Sequence[Element], units: Sequence[Element]) -> bool:
    """Check whether two elements can be tested as a pair: they share a variable, and no variable is unbound."""
    if any(unit.kind in _EXTENDING for unit in pair) or not any(unit.kind in _BINDING for unit in pair):
        return False
    first, second = (unit.names | _needs(unit, units)[0] for unit in pair)
    return bool(first & second) and len(_valid(list(pair), units)) == 2


def _whole(chosen: Sequence[Element], units: Sequence[Element]) -> list[Element]:
    """Get `chosen` in query order, with the OPTIONAL and BIND elements that their filters need."""
    kept = {id(unit) for unit in chosen}
    kept |= {id(other) for unit in chosen for other in _needs(unit, units)[1]}
    return [unit for unit in units if id(unit) in kept]


def _body_of(elements: Iterable[Element]) -> str:
    return " ".join(map(_body, elements))


def _body(element: Element) -> str:
    """Write `element` as the content of a group."""
    if element.kind == "triple":
        text = f"{element.text} ."
        return text if element.node is None else f"GRAPH {element.node.text} {{ {text} }}"
    return f"{{ {element.text} }}" if element.kind == "select" else element.text


def _remote(elements: Iterable[Element]) -> bool:
    return any(element.kind == "service" or any(map(_remote, element.parts)) for element in elements)


# -- messages


def _words(element: Element) -> str:
    if element.pattern is None:
        text = " ".join(element.text.split())
        return text if len(text) <= _LONG else text[: _LONG - 3] + "..."
    pattern = element.pattern
    text = f"{pattern.subject.text} {pattern.path} {pattern.object.text}"
    return text if pattern.graph is None else f"GRAPH {pattern.graph.text} {{ {text} }}"


def _at(element: Element) -> int:
    """Get the offset to report for `element`: the predicate of a triple."""
    pattern = element.pattern
    return pattern.atoms[0].start if pattern is not None and pattern.atoms else element.start


def _within(query: str, hint: Hint, element: Element) -> bool:
    lines = query.split("\n")
    offset = sum(len(line) + 1 for line in lines[: hint.line - 1]) + hint.column - 1
    pattern = element.pattern
    if pattern is None:
        return element.start <= offset < element.end
    nodes = [pattern.subject, *pattern.atoms, pattern.object, *([pattern.graph] if pattern.graph else [])]
    return offset == pattern.start or any(node.start <= offset < node.end for node in nodes)


def _sentence(query: str, core: Sequence[Element]) -> str:
    def place(element: Element) -> str:
        line, column = line_and_column(query, _at(element))
        return f"{quoted(_words(element))} (line {line}, column {column})"

    if len(core) == 1:
        return f"Nothing matches {place(core[0])}, independent of the rest of the query."
    return f"Nothing matches these {len(core)} patterns together, only fewer of them: {'; '.join(map(place, core))}."


def _stopped(text: str) -> str:
    """End `text` with a period unless it has an end."""
    return text if text.endswith(("?", ".")) else f"{text}."


def _modifiers(query: Query) -> str:
    words = [token.text.upper() for token in query.tail]
    named = [word for word in ("HAVING", "OFFSET", "LIMIT") if word in words]
    if query.form == "CONSTRUCT":
        return "The WHERE clause has solutions, but none binds all variables of a triple of the template."
    if named:
        return f"The WHERE clause has solutions, but {' or '.join(named)} removes all of them."
    return "The WHERE clause has solutions."
