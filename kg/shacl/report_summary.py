"""Results grouped by shape and cause, the most frequent first, with a few examples of each: as text and as JSON.

Memory depends on the number of shapes, not of results: a message or path that differs for each node does not increase
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, TypeVar

from pyoxigraph import NamedNode

from kg.shacl import property_paths
from kg.shacl.property_paths import Path
from kg.shacl.report import Location, Violation
from kg.store.protocol import Term
from kg.vocabulary import SH, curie

EXAMPLES: Final = 3
"""Examples of each cause in the text."""

MESSAGES: Final = 10
"""Causes of one rule in the text, if messages or paths differ from result to result."""

KEPT: Final = 200
"""Causes of one rule that are counted, those found first; the text contains the most frequent of them."""

CAUSES: Final = 100
"""Causes in the text in all."""

RULES: Final = 10_000
"""Rules that are counted separately."""

JSON_GROUPS: Final = 200
"""Groups in the JSON."""

JSON_CHARACTERS: Final = 300
"""Characters of a term, message or path in the JSON."""

SHOWN_CHARACTERS: Final = 120
"""Characters of a term in the text."""

MESSAGE_CHARACTERS: Final = 1_000
"""Characters of a message in the text."""

Key = TypeVar("Key")
Example = TypeVar("Example")
Rule = tuple[str, Term | None, NamedNode | None]
"""Severity, shape and component."""
Cause = tuple[Path | None, str]
"""Path and message."""


@dataclass(slots=True)
class Group(Generic[Example]):
    """Results with one cause: the message of the first, their number, and examples of the first few."""

    message: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass(slots=True)
class Groups(Generic[Key, Example]):
    """At most `most` groups by key, with `examples` examples each. `left_out` counts the results of other keys."""

    most: int
    examples: int
    by_key: dict[Key, Group[Example]] = field(default_factory=dict)
    left_out: int = 0

    def add(self, key: Key, message: str, to_example: Callable[[Group[Example]], Example]) -> None:
        """Count a result. `to_example` is called only for the first results of a group."""
        group = self.by_key.get(key)
        if group is None:
            if len(self.by_key) >= self.most:
                self.left_out += 1
                return
            group = self.by_key[key] = Group(message)
        group.count += 1
        if len(group.examples) < self.examples:
            group.examples.append(to_example(group))


class Summary:
    """The text. Calls `locate` for examples only."""

    def __init__(self, locate: Callable[[Violation], Location | None]) -> None:
        self._locate = locate
        self._rules: dict[Rule, Groups[Cause, str]] = {}
        self._beyond = 0

    def add(self, violation: Violation) -> None:
        """Count a result."""
        rule = violation.severity, violation.shape, violation.component
        causes = self._rules.get(rule)
        if causes is None:
            if len(self._rules) >= RULES:
                self._beyond += 1
                return
            causes = self._rules[rule] = Groups(KEPT, EXAMPLES)
        message = truncate(violation.message, MESSAGE_CHARACTERS)
        causes.add((violation.path, message), message, lambda _: self._to_example(violation))

    def to_lines(self) -> Iterator[str]:
        """Yield the lines of the text: violations before other severities, then the most frequent first."""
        listed: list[tuple[Rule, Path | None, Group[str]]] = []
        left_out: list[tuple[Rule, int, int]] = []
        for rule, causes in self._rules.items():
            ranked = sorted(causes.by_key.items(), key=lambda item: -item[1].count)
            listed += ((rule, path, group) for (path, _), group in ranked[:MESSAGES])
            if more := causes.left_out + sum(group.count for _, group in ranked[MESSAGES:]):
                kinds = len(ranked) - MESSAGES
                left_out.append((rule, more, kinds if not causes.left_out else 0))
        listed.sort(key=lambda each: (each[0][0] != "Violation", -each[2].count))
        for rule, path, group in listed[:CAUSES]:
            yield from _group_lines(rule, path, group)
        for (severity, shape, component), count, kinds in left_out[:CAUSES]:
            others = "many other messages or paths" if not kinds else f"{kinds:,} other messages or paths"
            others = "another message or path" if kinds == 1 else others
            about = f" of {format_shape(shape, component)}" if shape is not None else ""
            yield f"{count:,} more x {format_severity(severity)}{about}, with {others}"
        if left_out:
            yield ""
        unlisted = sum(group.count for *_, group in listed[CAUSES:]) + sum(each[1] for each in left_out[CAUSES:])
        if unlisted := unlisted + self._beyond:
            yield f"{unlisted:,} more results of less frequent causes; the other report formats contain all results"

    def _to_example(self, violation: Violation) -> str:
        # the message of a syntax error already begins with its place
        repeated = (
            violation.focus is None and violation.source is not None and violation.message.startswith(violation.source)
        )
        where = "" if repeated else format_location(self._locate(violation), violation.source)
        lines = [where] if where else []
        if violation.focus is not None:
            lines.append(f"node   {truncate(str(violation.focus))}")
        if violation.value is not None and violation.value != violation.focus:
            lines.append(f"value  {truncate(str(violation.value))}")
        if violation.graph is not None:
            lines.append(f"graph  {violation.graph.value}")
        return "\n    ".join(lines)


def _group_lines(rule: Rule, path: Path | None, group: Group[str]) -> Iterator[str]:
    severity, shape, component = rule
    times = f"{group.count:,} x " if group.count > 1 else ""
    yield f"{times}{format_severity(severity)}: {group.message}"
    if shape is not None:
        yield f"  shape  {format_shape(shape, component)}"
    if path is not None:
        yield f"  path   {property_paths.to_text(path)}"
    yield from (f"  - {example}" for example in group.examples if example)
    if group.count > len(group.examples):
        yield f"  - and {group.count - len(group.examples):,} more"
    yield ""


def summarize(results: Iterable[Violation], examples: int) -> dict[str, Any]:
    """Group results by shape, component, path and severity, as JSON types: ``{groups, left_out}``.

    Violations come before other severities, then the largest groups. `left_out` counts results in no group.
    """
    groups: Groups[tuple[Term | None, NamedNode | None, str | None, str], dict[str, Any]]
    groups = Groups(JSON_GROUPS, examples)
    for each in results:
        path = None if each.path is None else property_paths.to_text(each.path)
        key = (each.shape, each.component, path, each.severity)
        groups.add(key, each.message[:JSON_CHARACTERS], partial(_json_example, each))
    listed = [
        {
            "shape": _to_json(shape),
            "severity": severity,
            "component": _to_json(component),
            "path": None if path is None else path[:JSON_CHARACTERS],
            "message": group.message,
            "count": group.count,
            "examples": group.examples,
        }
        for (shape, component, path, severity), group in groups.by_key.items()
    ]
    listed.sort(key=lambda group: (group["severity"] != "Violation", -group["count"]))  # type: ignore[operator]
    return {"groups": listed, "left_out": groups.left_out}


def _json_example(result: Violation, group: Group[dict[str, Any]]) -> dict[str, Any]:
    message = result.message[:JSON_CHARACTERS]
    return {
        "focus": _to_json(result.focus),
        "value": None if result.value in (None, result.focus) else str(result.value)[:JSON_CHARACTERS],
        "message": None if message == group.message else message,
    }


def _to_json(term: Term | None) -> str | None:
    if term is None:
        return None
    return term.value if isinstance(term, NamedNode) else str(term)[:JSON_CHARACTERS]


def format_verdict(checked: str, counts: Mapping[str, int]) -> str:
    """Format the last line: the checked data, whether they conform, and the number of results by severity."""
    found = ", ".join(
        f"{count:,} {severity.lower()}{'s' * (count != 1)}"
        if ":" not in severity
        else f"{count:,} of severity {curie(severity)}"
        for severity, count in sorted(Counter(counts).items(), key=lambda item: _RANK.get(item[0], len(_RANK)))
    )
    return f"{checked}: {'does not conform' if counts.get('Violation') else 'conforms'} ({found or 'no results'})"


_RANK: Final = {"Violation": 0, "Warning": 1, "Info": 2}


def format_severity(severity: str) -> str:
    """Format a severity: the name of one of SHACL's, the prefixed name of another."""
    return curie(severity) if ":" in severity else severity


def format_location(location: Location | None, source: str | None) -> str:
    """Format the place of a result as editors and terminals do: ``file:line``."""
    if location is None:
        return source or ""
    if location.line is not None:
        return f"{location.document}:{location.line}"
    return f"{location.document}, row {location.row}" if location.row is not None else location.document


def format_shape(shape: Term, component: NamedNode | None) -> str:
    """Format a shape: its prefixed name, or for a blank node the parameter of its constraint."""
    if isinstance(shape, NamedNode):
        return curie(shape.value)
    if component is None:
        return "one without a name"
    constraint = component.value.removeprefix(SH.iri).removesuffix("ConstraintComponent")
    if component.value == f"{SH.iri}{constraint}ConstraintComponent":
        property_ = "sparql" if constraint == "SPARQL" else constraint[:1].lower() + constraint[1:]
        return f"unnamed, with sh:{property_}"
    return f"unnamed, with {curie(component.value)}"


def truncate(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """Truncate `text` to `most` characters, and append its length if it was longer."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"
