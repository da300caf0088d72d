"""The W3C's test manifests, read as they are: every test with its action and its expected result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from tests.conformance import suites

BASE = "https://w3c.github.io/rdf-tests/sparql/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"
HT = "http://www.w3.org/2011/http#"
CNT = "http://www.w3.org/2011/content#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"

FORMATS = {
    ".ttl": RdfFormat.TURTLE,
    ".nt": RdfFormat.N_TRIPLES,
    ".rdf": RdfFormat.RDF_XML,
    ".trig": RdfFormat.TRIG,
    ".nq": RdfFormat.N_QUADS,
}
Node = NamedNode | BlankNode
Data = tuple[tuple[NamedNode | None, Path], ...]
"""Files of a dataset, each with the graph that it belongs into; None: the default graph."""


class Description:
    """The triples of one manifest, to be asked for by subject and property."""

    def __init__(self, path: Path, base_iri: str) -> None:
        self._objects: dict[tuple[Any, str], list[Any]] = {}
        for quad in parse(path=path, format=RdfFormat.TURTLE, base_iri=base_iri):
            self._objects.setdefault((quad.subject, quad.predicate.value), []).append(quad.object)

    def all(self, subject: Any, prop: str) -> list[Any]:
        return self._objects.get((subject, prop), [])

    def one(self, subject: Any, prop: str) -> Any:
        """The only value of a property, or None."""
        found = self.all(subject, prop)
        assert len(found) <= 1, f"{subject} has {len(found)} values of {prop}"
        return found[0] if found else None

    def text(self, subject: Any, prop: str) -> str | None:
        value = self.one(subject, prop)
        return None if value is None else value.value

    def items(self, head: Any) -> Iterator[Any]:
        """The members of an RDF list."""
        while head is not None and head != NamedNode(RDF + "nil"):
            yield self.one(head, RDF + "first")
            head = self.one(head, RDF + "rest")


@dataclass(frozen=True)
class Test:
    """One test: its name, its type, and where its manifest speaks of it."""

    __test__ = False  # not a test of ours, for pytest

    iri: str
    name: str
    kind: str
    """The local name of its type: ``QueryEvaluationTest`` and its like."""
    description: Description
    node: NamedNode
    folder: Path
    base: str
    """The IRI of its folder, which the relative IRIs of its files are resolved against."""

    @property
    def id(self) -> str:
        """A short name that is unique among all suites."""
        return f"{self.folder.parent.name}/{self.folder.name}#{self.iri.rpartition('#')[2]}"

    @property
    def action(self) -> Any:
        return self.description.one(self.node, MF + "action")

    def path(self, iri: NamedNode) -> Path:
        """The file that an IRI of the manifest stands for."""
        assert iri.value.startswith(self.base), iri
        return self.folder / iri.value.removeprefix(self.base)

    def value(self, prop: str, of: str = "action") -> Path | None:
        """The file that a property of the action or result names."""
        found = self.description.one(self.description.one(self.node, MF + of), prop)
        return None if found is None else self.path(found)

    @property
    def result(self) -> Path | None:
        found = self.description.one(self.node, MF + "result")
        return self.path(found) if isinstance(found, NamedNode) else None

    def data(self, vocabulary: str = QT, of: str = "action") -> Data:
        """The dataset of a query test (`QT`), or that before (``action``) or after (``result``) an update (`UT`)."""
        node = self.description.one(self.node, MF + of)
        files: list[tuple[NamedNode | None, Path]] = []
        files += [(None, self.path(file)) for file in self.description.all(node, vocabulary + "data")]
        return (*files, *self.named(node, vocabulary))

    def named(self, node: Any, vocabulary: str) -> Data:
        """The named graphs that `node` lists: a file under its own IRI, or under the label that it is given."""
        files = []
        for graph in self.description.all(node, vocabulary + "graphData"):
            if isinstance(graph, NamedNode):
                files.append((graph, self.path(graph)))
            else:
                file = self.description.one(graph, vocabulary + "graph")
                label = self.description.text(graph, RDFS + "label")
                files.append((file if label is None else NamedNode(label), self.path(file)))
        return tuple(files)


def read(manifest: Path) -> list[Test]:
    """The tests that a manifest lists, in its order; those of the manifests that it includes come after."""
    folder = manifest.parent
    base = f"{BASE}{folder.parent.name}/{folder.name}/"
    description = Description(manifest, base + manifest.name)
    tests = []
    [head] = [node for node, prop in description._objects if prop == RDF + "type" and _is_manifest(description, node)]
    for node in description.items(description.one(head, MF + "entries")):
        kind = description.one(node, RDF + "type").value.rpartition("#")[2]
        name = next(
            (name.value for name in description.all(node, MF + "name")), ""
        )  # the suite of 2013 names one twice
        tests.append(Test(node.value, name, kind, description, node, folder, base))
    for included in description.items(description.one(head, MF + "include")):
        tests += read(folder / included.value.removeprefix(base))
    return tests


def _is_manifest(description: Description, node: Any) -> bool:
    return NamedNode(MF + "Manifest") in description.all(node, RDF + "type")


@cache
def all_tests() -> tuple[Test, ...]:
    """Every test of every suite, in the order of the folders; none where the suites are absent."""
    manifests = (path for folder in suites.sparql() for path in sorted(folder.glob("*/manifest.ttl")))
    return tuple(test for manifest in manifests for test in read(manifest))


def text_of(path: Path) -> str:
    """The text of a file with its line ends as they are."""
    return path.read_bytes().decode("utf-8")


def has_relative_iri(text: str) -> bool:
    """Whether a query names anything that only a base makes an IRI of."""
    return re.search(r"<(?![a-zA-Z][a-zA-Z0-9+.-]*:)[^<>\s\"{}|^`\\]*>", text) is not None


__all__ = ["BASE", "CNT", "FORMATS", "HT", "MF", "QT", "RDF", "RDFS", "UT", "Data", "Description", "Literal", "Test"]
