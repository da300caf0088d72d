"""Documents taken as one data graph, as SHACL has it, and which of them each result is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pyoxigraph import NamedNode, Quad
from rapidfuzz import process

from kg.errors import NotFoundError
from kg.store.protocol import Term
from kg.validation.data import Data
from kg.validation.files import Document, MalformedError
from kg.validation.report import Violation
from kg.validation.sarif import Location
from kg.validation.shapes import Shapes

SUGGESTED: Final = 5
"""Graphs that are named when one is asked for that is not there."""


class DataGraph:
    """`documents` as one graph: the graphs that quads name are taken together, or `graph` alone.

    What `ontology` says stands beside the data: its classes and individuals count, but what it alone describes is no
    focus node. A document that is not well formed adds nothing, and is a result of its own (`faults`); where its syntax
    is wrong is put into `places`.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        places: dict[Violation, Location],
        ontology: Sequence[Quad] = (),
        graph: NamedNode | None = None,
    ) -> None:
        self._documents, self._ontology, self._graph = documents, ontology, graph
        self._of_ontology: set[Term] = {quad.subject for quad in ontology}
        self._subjects: dict[Term, int] = {}
        self._objects: dict[Term, int] = {}
        self._graphs: set[NamedNode] = set()
        self._places = places
        self.triples = 0
        self.faults: list[Violation] = []
        self._broken: set[int] = set()
        self.data = self._read()

    def _read(self) -> Data:
        """Read all that is well formed; what is not shows when part of it was read, so it is read again without."""
        while True:
            self.triples, known = 0, len(self._broken)
            self._subjects.clear()
            data = Data.candidate(self._quads())
            if len(self._broken) == known:
                break
        if self._graph is not None and self._graph not in self._graphs and not self.faults:
            raise NotFoundError(no_graph(self._graph, self._graphs))
        return data

    def _quads(self) -> Iterator[Quad]:
        yield from self._ontology
        several, only, beside = len(self._documents) > 1, self._graph, bool(self._ontology)
        for number, each in enumerate(self._documents):
            if number in self._broken:
                continue
            try:
                for quad in each.quads():
                    if only is not None:
                        if isinstance(quad.graph_name, NamedNode):
                            self._graphs.add(quad.graph_name)
                        if quad.graph_name != only:
                            continue
                    self.triples += 1
                    if several:
                        self._subjects.setdefault(quad.subject, number)
                    if beside:
                        self._of_ontology.discard(quad.subject)
                    yield quad
            except MalformedError as error:
                self._broken.add(number)
                self.faults.append(error.fault)
                self._places[error.fault] = error.place

    def results(self, shapes: Shapes) -> Iterator[Violation]:
        """Yield what is wrong with the documents, and then with the data; `source` is the document it is about."""
        yield from self.faults
        for violation in shapes.results(self.data):
            if violation.focus not in self._of_ontology:
                yield replace(violation, source=self._source(violation))

    def _source(self, violation: Violation) -> str | None:
        """Return the document that describes the focus node, or else one that names it."""
        if len(self._documents) == 1:
            return self._documents[0].name
        for term in (violation.focus, violation.value):
            if (number := self._subjects.get(term)) is not None:  # type: ignore[arg-type]
                return self._documents[number].name
        number = self._named().get(violation.focus)  # type: ignore[arg-type]
        return None if number is None else self._documents[number].name

    def _named(self) -> dict[Term, int]:
        """Return what stands as an object, with its document: read only where a result asks."""
        if not self._objects:
            for number, each in enumerate(self._documents):
                if number not in self._broken:
                    for quad in each.quads():
                        self._objects.setdefault(quad.object, number)
        return self._objects


def no_graph(graph: NamedNode, names: set[NamedNode]) -> str:
    """Return what to say of a graph that is not among `names`: which are like it."""
    if not names:
        return f"there is no graph {graph}: none has a name"
    near = process.extract(graph.value, [name.value for name in names], limit=SUGGESTED)
    more = f", and {len(names) - len(near)} more" if len(names) > len(near) else ""
    return f"there is no graph {graph}; there are " + ", ".join(f"<{name}>" for name, *_ in near) + more
