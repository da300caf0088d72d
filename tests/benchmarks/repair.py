"""How often a wrong query is told the right repair, by kind of mistake.

``python -m tests.benchmarks repair [-- SEED...]``. Right queries are made from the measured schema of a graph and then
broken in one way each, so the right repair is known. The fixtures' graph is measured, and the real climate data where
they are beside the project. Each seed draws other queries; the default seeds were not looked at while the checks were
written. Queries of our own making that share the schema with the checks are easy, so ``mistakes.toml`` has others,
written by hand as people and language models get them wrong; its last batch was written after the checks.
"""

from __future__ import annotations

import os
import random
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, parse

from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.sparql.lint import check
from kg.sparql.measured_schema import PropertyUse, Schema
from kg.tools.schema.schema_measurement import measure_schema
from kg.tools.sparql.empty_results import diagnose, is_empty
from kg.vocabulary import BASE, PREFIXES, RDF, XSD, curie
from loaders.sources import load
from tests.benchmarks.comparison import Comparison

Value = Literal | NamedNode

ROOT = Path(__file__).parent.parent.parent
SEEDS = (90_001, 90_002, 90_003, 90_004)
A_KIND = 15
"""Mutations of each kind that one seed draws."""
FLOOR = 0.85
LIMIT_MS = 5.0


@dataclass(frozen=True)
class Line:
    """One triple pattern as text."""

    subject: str
    predicate: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} ."


@dataclass(frozen=True)
class Right:
    """A query that asks for what the data have."""

    lines: tuple[Line, ...]
    filters: tuple[str, ...] = ()
    prologue: str = ""
    graph: str | None = None

    def __str__(self) -> str:
        body = "\n  ".join([*map(str, self.lines), *(f"FILTER({text})" for text in self.filters)])
        body = body if self.graph is None else f"GRAPH {self.graph} {{ {body} }}"
        return f"{self.prologue}SELECT * WHERE {{\n  {body}\n}}"

    def change(self, index: int, **parts: str) -> Right:
        lines = list(self.lines)
        lines[index] = replace(lines[index], **parts)
        return replace(self, lines=tuple(lines))


@dataclass(frozen=True)
class Case:
    """A wrong query of one kind, and the texts of which one has to be among what is said of it."""

    kind: str
    right: Right
    wrong: Right
    repairs: tuple[str, ...]


class Mistakes:
    """Draws right queries over `schema` and breaks them."""

    def __init__(self, schema: Schema, seed: int) -> None:
        self.schema, self.chance = schema, random.Random(seed)
        self.classes = sorted(
            iri for iri, of in schema.classes.items() if iri and ":" in _short(iri) and len(of.properties) > 2
        )
        self.kinds: dict[str, Callable[[], Case | None]] = {
            "misspelt property": self.misspelt_property,
            "misspelt class": self.misspelt_class,
            "case": self.other_case,
            "plural": self.plural,
            "wrong namespace": self.wrong_namespace,
            "undeclared prefix": self.undeclared_prefix,
            "namespace IRI": self.namespace_iri,
            "direction": self.direction,
            "wrong class": self.wrong_class,
            "property of another class": self.foreign_property,
            "datatype": self.datatype,
            "language": self.language,
            "string for IRI": self.string_for_iri,
            "IRI for string": self.iri_for_string,
            "graph": self.wrong_graph,
        }

    def cases(self, of_each: int) -> Iterator[Case]:
        for draw in self.kinds.values():
            made = 0
            for _ in range(of_each * 20):
                case = draw()
                if case is not None:
                    yield case
                    made += 1
                if made == of_each:
                    break

    # -- right queries

    def right(self, least: int = 2) -> Right:
        name = self.chance.choice(self.classes)
        uses = self._uses(name)
        chosen = self.chance.sample(uses, min(len(uses), self.chance.randint(least, 4)))
        lines = [Line("?a", "a", _short(name))]
        for index, use in enumerate(chosen):
            lines.append(Line("?a", _short(use.iri), f"?v{index}"))
            linked = [c for c in use.classes if c in self.classes]
            if linked and self.chance.random() < 0.6:
                to = self.chance.choice(sorted(linked))
                lines.append(Line(f"?v{index}", "a", _short(to)))
                if further := self._uses(to):
                    lines.append(Line(f"?v{index}", _short(self.chance.choice(further).iri), f"?w{index}"))
        return Right(tuple(lines))

    def _uses(self, name: str) -> list[PropertyUse]:
        found = self.schema.classes[name].properties
        return [
            found[iri] for iri in sorted(found) if iri != RDF.type.value and ":" in _short(iri) and found[iri].triples
        ]

    def _property_line(self, right: Right) -> int:
        return self.chance.choice([i for i, line in enumerate(right.lines) if line.predicate != "a"])

    def _class_line(self, right: Right) -> int:
        return self.chance.choice([i for i, line in enumerate(right.lines) if line.predicate == "a"])

    def _slip(self, word: str) -> str:
        """Return `word` with one slip of the fingers in it."""
        at = self.chance.randrange(1, len(word))
        match self.chance.randrange(4):
            case 0 if at + 1 < len(word) and word[at] != word[at + 1]:
                return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            case 1:
                return word[:at] + word[at + 1 :]
            case 2:
                return word[:at] + word[at] + word[at:]
            case _:
                return word[:at] + self.chance.choice("aeiounrst") + word[at + 1 :]

    def _known(self, name: str) -> bool:
        prefix, _, local = name.partition(":")
        iri = PREFIXES.get(prefix, "") + local
        return iri in self.schema.properties or iri in self.schema.classes or iri in self.schema.terms

    # -- names

    def _renamed(self, kind: str, right: Right, index: int, part: str, name: str) -> Case | None:
        old = getattr(right.lines[index], part)
        if name == old or self._known(name):
            return None
        return Case(kind, right, right.change(index, **{part: name}), (old,))

    def misspelt_property(self) -> Case | None:
        right = self.right()
        index = self._property_line(right)
        prefix, _, local = right.lines[index].predicate.partition(":")
        return self._renamed("misspelt property", right, index, "predicate", f"{prefix}:{self._slip(local)}")

    def misspelt_class(self) -> Case | None:
        right = self.right()
        index = self._class_line(right)
        prefix, _, local = right.lines[index].object.partition(":")
        return self._renamed("misspelt class", right, index, "object", f"{prefix}:{self._slip(local)}")

    def _any_name(self, right: Right) -> tuple[int, str]:
        if self.chance.random() < 0.5:
            return self._class_line(right), "object"
        return self._property_line(right), "predicate"

    def other_case(self) -> Case | None:
        right = self.right()
        index, part = self._any_name(right)
        prefix, _, local = getattr(right.lines[index], part).partition(":")
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", local).lower()
        other = self.chance.choice(
            [local.lower(), local.upper(), local.swapcase(), snake, local[0].swapcase() + local[1:]]
        )
        return self._renamed("case", right, index, part, f"{prefix}:{other}")

    def plural(self) -> Case | None:
        right = self.right()
        index, part = self._any_name(right)
        name = getattr(right.lines[index], part)
        plural = name[:-1] + "ies" if name.endswith("y") else name + "s"
        return self._renamed("plural", right, index, part, plural)

    def wrong_namespace(self) -> Case | None:
        right = self.right()
        index, part = self._any_name(right)
        prefix, _, local = getattr(right.lines[index], part).partition(":")
        other = self.chance.choice(
            [name for name in ("skos", "dcterms", "schema", "kg", "rdfs", "eli") if name != prefix]
        )
        return self._renamed("wrong namespace", right, index, part, f"{other}:{local}")

    def undeclared_prefix(self) -> Case | None:
        right = self.right()
        index, part = self._any_name(right)
        prefix, _, local = getattr(right.lines[index], part).partition(":")
        aliases = {"dcterms": ["dct", "dc", "dcterm"], "schema": ["sdo", "shema", "schemaorg"], "kg": ["kgs2", "qkg"]}
        other = self.chance.choice([*aliases.get(prefix, []), self._slip(prefix)])
        if other in PREFIXES or not other:
            return None
        old = getattr(right.lines[index], part)
        return Case("undeclared prefix", right, right.change(index, **{part: f"{other}:{local}"}), (old,))

    def namespace_iri(self) -> Case | None:
        right = self.right()
        index, part = self._any_name(right)
        prefix = getattr(right.lines[index], part).partition(":")[0]
        iri = PREFIXES[prefix]
        scheme, _, rest = iri.partition("://")
        wrong = self.chance.choice(
            [
                f"{'http' if scheme == 'https' else 'https'}://{rest}",
                iri.rstrip("#/"),
                iri[:-1] + ("/" if iri.endswith("#") else "#"),
                f"{scheme}://{self._slip(rest)}",
            ]
        )
        if wrong in PREFIXES.values():
            return None
        wrong_query = replace(right, prologue=f"PREFIX {prefix}: <{wrong}>\n")
        return Case("namespace IRI", right, wrong_query, (f"<{iri}>",))

    # -- patterns

    def direction(self) -> Case | None:
        right = self.right()
        typed = {line.subject: line.object for line in right.lines if line.predicate == "a"}
        links = [
            index
            for index, line in enumerate(right.lines)
            if line.predicate != "a" and typed.get(line.object, typed.get(line.subject)) != typed.get(line.subject)
        ]
        if not links:
            return None
        index = self.chance.choice(links)
        line = right.lines[index]
        wrong = right.change(index, subject=line.object, object=line.subject)
        return Case("direction", right, wrong, (str(line)[:-2],))

    def wrong_class(self) -> Case | None:
        """The variable has properties of its class, and is said to be of another that has few of them."""
        right = self.right(least=3)
        old = right.lines[0].object
        own = {line.predicate for line in right.lines if line.subject == "?a" and line.predicate != "a"}
        others = [
            _short(name)
            for name in self.classes
            if _short(name) != old
            and len(own & {_short(iri) for iri in self.schema.classes[name].properties}) * 2 <= len(own) - 1
        ]
        if not others or len(own) < 2:
            return None
        return Case("wrong class", right, right.change(0, object=self.chance.choice(others)), (old,))

    def foreign_property(self) -> Case | None:
        """One property more, which only things of another class have: named are they, or the way to them."""
        right = self.right()
        name = self.chance.choice(self.classes)
        iri = self.chance.choice(self._uses(name)).iri
        if iri in self.schema.classes[_long(right.lines[0].object)].properties:
            return None
        holders = [c for c in self.classes if iri in self.schema.classes[c].properties]
        wrong = replace(right, lines=(*right.lines, Line("?a", _short(iri), "?more")))
        return Case("property of another class", right, wrong, tuple(map(_short, holders)))

    # -- values

    def _with_value(self, accept: Callable[[Value], bool]) -> tuple[Right, int, Value] | None:
        """Return a right query in which one property has its example as value."""
        right = self.right()
        candidates = []
        typed = {line.subject: line.object for line in right.lines if line.predicate == "a"}
        for index, line in enumerate(right.lines):
            of = self.schema.classes.get(_long(typed.get(line.subject, "x:y")))
            use = None if of is None or line.predicate == "a" else of.properties.get(_long(line.predicate))
            value = None if use is None else _example(use)
            if value is not None and line.object not in typed and accept(value):
                candidates.append((index, value))
        if not candidates:
            return None
        index, value = self.chance.choice(candidates)
        return right, index, value

    def _replaced(self, kind: str, found: tuple[Right, int, Value], wrong: str, *repairs: str) -> Case:
        """Put the value and the wrong one into the pattern, or compare the pattern's variable with them."""
        right, index, value = found
        name, old = right.lines[index].object, _written(value)
        if self.chance.random() < 0.5:
            made = right.change(index, object=old), right.change(index, object=wrong)
        else:
            made = replace(right, filters=(f"{name} = {old}",)), replace(right, filters=(f"{name} = {wrong}",))
        return Case(kind, made[0], made[1], (old, *repairs))

    def datatype(self) -> Case | None:
        kinds = (XSD.integer, XSD.date, XSD.dateTime, XSD.boolean)
        found = self._with_value(lambda value: isinstance(value, Literal) and value.datatype in kinds)
        if found is None:
            return None
        value = found[2]
        assert isinstance(value, Literal)
        wrongs = [f'"{value.value}"', f'"{value.value}"^^xsd:string']
        wrongs += [f'"{value.value}"^^xsd:decimal'] if value.datatype == XSD.date else []
        return self._replaced("datatype", found, self.chance.choice(wrongs))

    def language(self) -> Case | None:
        found = self._with_value(
            lambda value: isinstance(value, Literal) and (bool(value.language) or value.datatype == XSD.string)
        )
        if found is None:
            return None
        value = found[2]
        assert isinstance(value, Literal)
        plain = str(Literal(value.value))
        wrong = self.chance.choice([plain, f"{plain}@zz"]) if value.language else f"{plain}@en"
        return self._replaced("language", found, wrong)

    def string_for_iri(self) -> Case | None:
        found = self._with_value(
            lambda value: (isinstance(value, NamedNode) and "/vocab/" in value.value) or "/id/place/" in str(value)
        )
        if found is None:
            return None
        text = unquote(found[2].value.rpartition("/")[2])
        return self._replaced("string for IRI", found, str(Literal(text)))

    def iri_for_string(self) -> Case | None:
        found = self._with_value(
            lambda value: (
                isinstance(value, Literal)
                and value.datatype == XSD.string
                and re.fullmatch(r"[A-Za-z0-9_.-]+", value.value) is not None
            )
        )
        if found is None:
            return None
        return self._replaced("IRI for string", found, f"<{BASE}vocab/code/{found[2].value}>")

    def wrong_graph(self) -> Case | None:
        right = self.right()
        right = replace(right, lines=tuple(line for line in right.lines[:2] if line.subject == "?a"))
        line = right.lines[-1]
        holders = [name for name, held in self.schema.families.items() if _long(line.predicate) in held]
        others = [name for name in self.schema.graphs if name not in holders]
        if line.predicate == "a" or not holders:
            return None
        invented = [f"{self.chance.choice(holders)[:-1]}", self.chance.choice(("documents", "data", "default"))]
        name = self.chance.choice([*(f"{other}{'' if other == 'prov' else '/x'}" for other in others), *invented])
        wrong = replace(right, graph=f"<{BASE}graph/{name}>")
        return Case("graph", right, wrong, tuple(holders))


def _short(iri: str) -> str:
    found = curie(iri)
    return "" if found.startswith("<") else found


def _long(name: str) -> str:
    prefix, _, local = name.partition(":")
    return PREFIXES.get(prefix, "") + local


def _example(use: PropertyUse) -> Value | None:
    if use.example is None or len(use.example) > 100 or "…" in use.example:
        return None
    quad = next(iter(parse(f"<a:a> <a:a> {use.example} .", format=RdfFormat.N_TRIPLES)))
    return quad.object if not isinstance(quad.object, Triple) else None


def _written(value: Value) -> str:
    if isinstance(value, Literal) and value.datatype == XSD.integer:
        return value.value
    if isinstance(value, Literal) and not value.language and value.datatype != XSD.string:
        return f'"{value.value}"^^{curie(value.datatype.value)}'
    return str(value)


def names_repair(case: Case, schema: Schema) -> bool:
    """Return whether one of the right repairs is among what is suggested for the wrong query.

    The message alone does not count: the examples of values in it are what the queries here are made of.
    """
    said = "\n".join(suggestion for hint in check(str(case.wrong), schema) for suggestion in hint.suggestions)
    return any(re.search(rf"(?<![\w:]){re.escape(repair)}(?!\w)", said) for repair in case.repairs)


def mistakes() -> list[dict[str, Any]]:
    """Return the mistakes written by hand: ``kind``, ``query`` and ``repair``."""
    found: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text())["mistake"]
    return found


def told(kg: KnowledgeGraph, schema: Schema, query: str) -> str:
    """Return all that is said of `query`: hints before it runs, the parser's error, and why it has no rows."""
    hints = list(check(query, schema))
    said = []
    try:
        empty = is_empty(query, kg.query(query).result)
    except QuadciteError as error:
        said.append(str(error))
    else:
        if empty and (found := diagnose(kg, query)) is not None:
            said.append(found.message)
            hints += found.hints
    return "\n".join([*said, *(text for hint in hints for text in (hint.message, *hint.suggestions))])


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    seeds = [int(seed) for seed in arguments] or SEEDS
    shared = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "climate"
    for graph, source in (("fixtures", ROOT / "fixtures" / "climate"), ("real data", shared)):
        if not source.is_dir():
            print(f"{graph} are not measured: there is no {source}")
            continue
        with (
            tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder,
            KnowledgeGraph.open(Path(folder), Settings(data_dir=Path(folder))) as kg,
        ):
            load(kg, "climate", [str(source)])
            schema = measure_schema(kg)
            if graph == "fixtures":
                yield from by_hand(kg, schema)
            yield from rates(graph, schema, seeds)


def by_hand(kg: KnowledgeGraph, schema: Schema) -> Iterator[Comparison]:
    right, total = Counter[str](), Counter[str]()
    for mistake in mistakes():
        said = told(kg, schema, mistake["query"])
        for kind in (mistake["kind"], "all"):
            total[kind] += 1
            right[kind] += any(repair in said for repair in mistake["repair"])
    for kind, count in sorted(total.items(), key=lambda item: item[0] == "all"):
        rate = right[kind] / count
        target, met = (f">= {FLOOR}", rate >= FLOOR) if kind in ("all", "held out") else ("", None)
        yield Comparison(f"by hand: {kind} ({count})", rate, None, "share named", target, met)


def rates(graph: str, schema: Schema, seeds: Sequence[int]) -> Iterator[Comparison]:
    right, all_cases, alarms, times = Counter[str](), Counter[str](), 0, []
    for seed in seeds:
        for case in Mistakes(schema, seed).cases(A_KIND):
            all_cases[case.kind] += 1
            right[case.kind] += names_repair(case, schema)
            alarms += bool(check(str(case.right), schema))
            start = perf_counter()
            check(str(case.wrong), schema)
            times.append((perf_counter() - start) * 1000)
    total = sum(all_cases.values())
    for kind, count in all_cases.items():
        yield Comparison(f"{graph}: {kind} ({count})", right[kind] / count, None, "share named")
    rate = sum(right.values()) / total
    yield Comparison(f"{graph}: all ({total})", rate, None, "share named", f">= {FLOOR}", rate >= FLOOR)
    yield Comparison.at_most(f"{graph}: right queries with a hint", alarms, "queries", 0)
    yield Comparison.at_most(f"{graph}: one check, median", median(times), "ms", LIMIT_MS)
