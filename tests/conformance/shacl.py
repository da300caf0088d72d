"""The W3C's SHACL tests, read as they are, and when two validation reports are the same.

A report is compared as a graph: its results with the properties that the suite requires, messages and source
constraints where the expected report has any, and the structure of paths. A blank node of the data or the shapes is the
same one on both sides; only the report's own may be renamed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    Triple,
    parse,
)

from tests.conformance import suites
from tests.conformance.manifest import MF, RDF

SH = "http://www.w3.org/ns/shacl#"
SHT = "http://www.w3.org/ns/shacl-test#"
BASE = "https://w3c.github.io/data-shapes/data-shapes-test-suite/tests/"

_NODES = ("focusNode", "value", "sourceShape", "sourceConstraint")
_REQUIRED = ("focusNode", "value", "sourceShape", "resultPath", "resultSeverity", "sourceConstraintComponent")
_IF_EXPECTED = ("resultMessage", "sourceConstraint")

Graph = list[Triple]

EXPECTED: dict[str, str] = {
    name: entry["reason"]
    for entry in tomllib.loads((Path(__file__).parent / "expected_failures_shacl.toml").read_text())["failure"]
    for name in entry["tests"]
}
"""Why some tests are expected to fail, by their id."""


@dataclass(frozen=True)
class ShaclTest:
    """One test. `report` is None where validation is to fail, since the shapes are ill-formed."""

    id: str
    data: Graph
    shapes: Graph
    report: Graph | None


@cache
def all_tests() -> tuple[ShaclTest, ...]:
    """Every test of the suite; none where it is absent."""
    folder = suites.shacl()
    if folder is None:
        return ()
    return tuple(test for path in sorted(folder.rglob("*.ttl")) for test in _read(path, folder))


def _read(path: Path, folder: Path) -> Iterator[ShaclTest]:
    name = path.relative_to(folder).as_posix()
    graph = _parsed(path, name)
    about = _About(graph)
    for head in about.subjects(MF + "entries"):
        for node in about.items(about.one(head, MF + "entries")):
            action, result = about.one(node, MF + "action"), about.one(node, MF + "result")
            data, shapes = (
                graph if iri.value == BASE + name else _parsed(folder / iri.value.removeprefix(BASE), name)
                for iri in (about.one(action, SHT + "dataGraph"), about.one(action, SHT + "shapesGraph"))
            )
            report = None if result == NamedNode(SHT + "Failure") else list(about.below(result))
            yield ShaclTest(f"shacl/{name.removesuffix('.ttl')}", data, shapes, report)


@cache
def _parsed(path: Path, name: str) -> Graph:
    base = BASE + Path(name).parent.as_posix() + "/" + path.name
    return [quad.triple for quad in parse(path=path, format=RdfFormat.TURTLE, base_iri=base)]


class _About:
    def __init__(self, graph: Graph) -> None:
        self._objects: dict[tuple[Any, str], list[Any]] = {}
        for triple in graph:
            self._objects.setdefault((triple.subject, triple.predicate.value), []).append(triple.object)

    def subjects(self, predicate: str) -> list[Any]:
        return [subject for subject, prop in self._objects if prop == predicate]

    def all(self, subject: Any, predicate: str) -> list[Any]:
        return self._objects.get((subject, predicate), [])

    def one(self, subject: Any, predicate: str) -> Any:
        [found] = self.all(subject, predicate)
        return found

    def items(self, head: Any) -> Iterator[Any]:
        while head != NamedNode(RDF + "nil"):
            yield self.one(head, RDF + "first")
            head = self.one(head, RDF + "rest")

    def below(self, report: Any) -> Iterator[Triple]:
        """The triples of a report, with its results and their paths."""
        for value in self.all(report, SH + "conforms"):
            yield Triple(report, NamedNode(SH + "conforms"), value)
        for result in self.all(report, SH + "result"):
            yield Triple(report, NamedNode(SH + "result"), result)
            for name in (*_REQUIRED, *_IF_EXPECTED):
                for value in self.all(result, SH + name):
                    yield Triple(result, NamedNode(SH + name), value)
                    if name == "resultPath" and isinstance(value, BlankNode):
                        yield from self._path(value, set())

    def _path(self, node: Any, seen: set[Any]) -> Iterator[Triple]:
        if node in seen:
            return
        seen.add(node)
        for (subject, predicate), values in self._objects.items():
            if subject == node and (predicate.startswith(SH) or predicate in (RDF + "first", RDF + "rest")):
                for value in values:
                    yield Triple(subject, NamedNode(predicate), value)
                    if isinstance(value, BlankNode):
                        yield from self._path(value, seen)


def same_report(actual: Iterable[Triple], wanted: Graph) -> bool:
    """Whether two validation reports are isomorphic in what the suite compares."""
    optional = {SH + name for name in _IF_EXPECTED} & {triple.predicate.value for triple in wanted}
    left_out = {SH + name for name in _IF_EXPECTED} - optional
    canonical = []
    for graph in (list(actual), wanted):
        [report] = [triple.subject for triple in graph if triple.predicate.value == SH + "conforms"]
        compared = _About(graph).below(report)
        dataset = Dataset([_fixed(triple) for triple in compared if triple.predicate.value not in left_out])
        dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
        canonical.append(set(dataset))
    return canonical[0] == canonical[1]


def _fixed(triple: Triple) -> Quad:
    """A triple in which a blank node of the data or shapes has a name, so that it is that one and no other."""
    value = triple.object
    if isinstance(value, BlankNode) and triple.predicate.value in {SH + name for name in _NODES}:
        value = NamedNode(f"urn:node:{value.value}")
    elif (
        isinstance(value, Literal) and value.value in ("true", "false", "1", "0") and "boolean" in value.datatype.value
    ):
        value = Literal(value.value in ("true", "1"))
    return Quad(triple.subject, triple.predicate, value)
