"""What was found, for people: by shape and cause, the most frequent first, with a few examples of each.

What is kept while results come is bounded by the shapes, not by the results: a message of its own for each node, or a
path of its own, makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode

from kg.shacl.property_paths import Path, shown
from kg.shacl.report import Violation
from kg.shacl.sarif import Location
from kg.store.protocol import Term
from kg.vocabulary import SH, curie

EXAMPLES: Final = 3
"""How many results of one cause are shown."""

MESSAGES: Final = 10
"""How many messages or paths of one shape and component are shown, where results have their own."""

KEPT: Final = 200
"""Among how many of them, those that were found first, the most frequent are chosen."""

CAUSES: Final = 100
"""How many causes are shown in all."""

RULES: Final = 10_000
"""How many shapes and components are told apart."""

SHOWN_CHARACTERS: Final = 120
"""How much of a term is shown."""

MESSAGE_CHARACTERS: Final = 1_000
"""How much of a message is shown."""

Rule = tuple[str, Term | None, NamedNode | None]
"""Severity, shape and component."""


@dataclass(slots=True)
class _Alike:
    """Results that say the same of different nodes."""

    path: Path | None
    message: str
    count: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Broken:
    """The results of one rule."""

    alike: dict[tuple[Path | None, str], _Alike] = field(default_factory=dict)
    others: int = 0


class Summary:
    """Takes results one by one and words them together. `locate` is asked about examples alone."""

    def __init__(self, locate: Callable[[Violation], Location | None]) -> None:
        self._locate = locate
        self._rules: dict[Rule, _Broken] = {}
        self._beyond = 0

    def add(self, violation: Violation) -> None:
        """Count a result, and keep its words if it is among the first of its cause."""
        rule = violation.severity, violation.shape, violation.component
        broken = self._rules.get(rule)
        if broken is None:
            if len(self._rules) >= RULES:
                self._beyond += 1
                return
            broken = self._rules[rule] = _Broken()
        message = cut(violation.message, MESSAGE_CHARACTERS)
        alike = broken.alike.get((violation.path, message))
        if alike is None:
            if len(broken.alike) >= KEPT:
                broken.others += 1
                return
            alike = broken.alike[violation.path, message] = _Alike(violation.path, message)
        alike.count += 1
        if len(alike.examples) < EXAMPLES:
            alike.examples.append(self._example(violation))

    def lines(self) -> Iterator[str]:
        """Yield the text: what makes the data unfit first, then by how often it was found."""
        listed: list[tuple[Rule, _Alike]] = []
        left_out: list[tuple[Rule, int, int]] = []
        for rule, broken in self._rules.items():
            ranked = sorted(broken.alike.values(), key=lambda alike: -alike.count)
            listed += ((rule, alike) for alike in ranked[:MESSAGES])
            if more := broken.others + sum(alike.count for alike in ranked[MESSAGES:]):
                kinds = len(ranked) - MESSAGES
                left_out.append((rule, more, kinds if not broken.others else 0))
        listed.sort(key=lambda each: (each[0][0] != "Violation", -each[1].count))
        for rule, alike in listed[:CAUSES]:
            yield from _worded(rule, alike)
        for (severity, shape, component), count, kinds in left_out[:CAUSES]:
            told = "many other messages or paths" if not kinds else f"{kinds:,} other messages or paths"
            told = "another message or path" if kinds == 1 else told
            about = f" of {named(shape, component)}" if shape is not None else ""
            yield f"{count:,} more x {severity_name(severity)}{about}, with {told}"
        if left_out:
            yield ""
        unlisted = sum(alike.count for _, alike in listed[CAUSES:]) + sum(each[1] for each in left_out[CAUSES:])
        if unlisted := unlisted + self._beyond:
            yield f"{unlisted:,} more results of less frequent causes; the other forms of report have them all"

    def _example(self, violation: Violation) -> str:
        told = (
            violation.focus is None and violation.source is not None and violation.message.startswith(violation.source)
        )
        where = "" if told else place(self._locate(violation), violation.source)
        about = [where] if where else []
        if violation.focus is not None:
            about.append(f"node   {cut(str(violation.focus))}")
        if violation.value is not None and violation.value != violation.focus:
            about.append(f"value  {cut(str(violation.value))}")
        if violation.graph is not None:
            about.append(f"graph  {violation.graph.value}")
        return "\n    ".join(about)


def _worded(rule: Rule, alike: _Alike) -> Iterator[str]:
    severity, shape, component = rule
    times = f"{alike.count:,} x " if alike.count > 1 else ""
    yield f"{times}{severity_name(severity)}: {alike.message}"
    if shape is not None:
        yield f"  shape  {named(shape, component)}"
    if alike.path is not None:
        yield f"  path   {shown(alike.path)}"
    yield from (f"  - {example}" for example in alike.examples if example)
    if alike.count > len(alike.examples):
        yield f"  - and {alike.count - len(alike.examples):,} more"
    yield ""


def verdict(checked: str, counts: Mapping[str, int]) -> str:
    """Return the last line: what was checked, whether it conforms, and how much was found of each severity."""
    found = ", ".join(
        f"{count:,} {severity.lower()}{'s' * (count != 1)}"
        if ":" not in severity
        else f"{count:,} of severity {curie(severity)}"
        for severity, count in sorted(Counter(counts).items(), key=lambda item: _RANK.get(item[0], len(_RANK)))
    )
    return f"{checked}: {'does not conform' if counts.get('Violation') else 'conforms'} ({found or 'nothing found'})"


_RANK: Final = {"Violation": 0, "Warning": 1, "Info": 2}


def severity_name(severity: str) -> str:
    """Return a severity as people read it."""
    return curie(severity) if ":" in severity else severity


def place(location: Location | None, source: str | None) -> str:
    """Return where a result stands, as editors and terminals write it: ``file:line``."""
    if location is None:
        return source or ""
    if location.line is not None:
        return f"{location.document}:{location.line}"
    return f"{location.document}, row {location.row}" if location.row is not None else location.document


def named(shape: Term, component: NamedNode | None) -> str:
    """Return a shape as people read it; one without a name by the property that constrains."""
    if isinstance(shape, NamedNode):
        return curie(shape.value)
    if component is None:
        return "one without a name"
    constraint = component.value.removeprefix(SH.iri).removesuffix("ConstraintComponent")
    if component.value == f"{SH.iri}{constraint}ConstraintComponent":
        property_ = "sparql" if constraint == "SPARQL" else constraint[:1].lower() + constraint[1:]
        return f"one without a name, its sh:{property_}"
    return f"one without a name, its {curie(component.value)}"


def cut(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """Return the beginning of `text`, and its length where that is not all."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"
