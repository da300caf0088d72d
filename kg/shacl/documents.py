"""Documents as one data graph or one shapes graph, and the document that a result or an error is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyoxigraph import NamedNode, Quad, Triple
from rapidfuzz import process

from kg.errors import InvalidInputError, NotFoundError
from kg.shacl.data_graph import DataGraph
from kg.shacl.rdf_files import Document, MalformedError
from kg.shacl.report import Location, Violation
from kg.shacl.shape_model import TARGETS
from kg.shacl.shapes import Shapes
from kg.store.protocol import Term
from kg.vocabulary import OWL, RDF, SH, curie

SUGGESTED: Final = 5
"""Graphs that the error for an unknown graph suggests."""

_SHACL: Final = re.compile(rb"www\.w3\.org/ns/shacl#")
_SCANNED_BYTES: Final = 1 << 20
_SHAPE_CLASSES: Final = frozenset({SH.NodeShape, SH.PropertyShape})

_BLANK: Final = re.compile(r"_:\w+")


class DataDocuments:
    """`documents` as one data graph: all of their named graphs merged, or `graph` only.

    `ontology` is added to the data, but nodes that only it describes are not focus nodes. A malformed document adds no
    quads; it becomes a result of its own (`faults`), with the place of its syntax error in `places`.
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
        self.data = self._load()

    def _load(self) -> DataGraph:
        """Load all well-formed documents. A syntax error shows only after some quads, so the rest is loaded again."""
        while True:
            self.triples, known = 0, len(self._broken)
            self._subjects.clear()
            data = DataGraph.from_quads(self._quads())
            if len(self._broken) == known:
                break
        if self._graph is not None and self._graph not in self._graphs and not self.faults:
            raise missing_graph_error(self._graph, self._graphs)
        return data

    def _quads(self) -> Iterator[Quad]:
        yield from self._ontology
        several, only, has_ontology = len(self._documents) > 1, self._graph, bool(self._ontology)
        for number, each in enumerate(self._documents):
            if number in self._broken:
                continue
            try:
                for quad in each.parse():
                    if only is not None:
                        if isinstance(quad.graph_name, NamedNode):
                            self._graphs.add(quad.graph_name)
                        if quad.graph_name != only:
                            continue
                    self.triples += 1
                    if several:
                        self._subjects.setdefault(quad.subject, number)
                    if has_ontology:
                        self._of_ontology.discard(quad.subject)
                    yield quad
            except MalformedError as error:
                self._broken.add(number)
                self.faults.append(error.fault)
                self._places[error.fault] = error.place

    def results(self, shapes: Shapes) -> Iterator[Violation]:
        """Yield the syntax errors, then the results for the data; `source` is the document of each."""
        yield from self.faults
        for violation in shapes.results(self.data):
            if violation.focus not in self._of_ontology:
                yield replace(violation, source=self._find_source(violation))

    def _find_source(self, violation: Violation) -> str | None:
        """Return the document that describes the focus node, or else one that mentions it."""
        if len(self._documents) == 1:
            return self._documents[0].name
        for term in (violation.focus, violation.value):
            if (number := self._subjects.get(term)) is not None:  # type: ignore[arg-type]
                return self._documents[number].name
        number = self._load_objects().get(violation.focus)  # type: ignore[arg-type]
        return None if number is None else self._documents[number].name

    def _load_objects(self) -> dict[Term, int]:
        """Return the document of each object. Loaded on first use, since few results need it."""
        if not self._objects:
            for number, each in enumerate(self._documents):
                if number not in self._broken:
                    for quad in each.parse():
                        self._objects.setdefault(quad.object, number)
        return self._objects


def missing_graph_error(graph: NamedNode, names: set[NamedNode]) -> NotFoundError:
    """Build the error for a graph that is not among `names`, with the most similar of them."""
    if not names:
        return NotFoundError(f"Unknown graph {graph}. The data has no named graphs.")
    near = process.extract(graph.value, [name.value for name in names], limit=SUGGESTED)
    more = f", and {len(names) - len(near)} more" if len(names) > len(near) else ""
    return NotFoundError(f"Unknown graph {graph}. Available: {', '.join(f'<{name}>' for name, *_ in near)}{more}.")


def has_shapes(document: Document) -> bool:
    """Return whether a document describes a shape, as far as it can be parsed. Raises SourceError."""
    with document.open() as stream:
        before = b""
        while piece := stream.read(_SCANNED_BYTES):
            if _SHACL.search(before + piece):
                break
            before = piece[-40:]
        else:
            return False
    try:
        return any(map(_describes_shape, document.parse()))
    except MalformedError:
        return False


def _describes_shape(triple: Quad | Triple) -> bool:
    predicate = triple.predicate
    return (
        predicate in TARGETS or predicate == SH.property or (predicate == RDF.type and triple.object in _SHAPE_CLASSES)
    )


@dataclass(frozen=True, slots=True)
class ShapesDocuments:
    """The triples of a shapes graph, by document."""

    parsed: Sequence[tuple[str, Sequence[Triple]]]

    @classmethod
    def parse(cls, documents: Iterable[Document]) -> ShapesDocuments:
        """Parse the documents. Raises SourceError for one that is unreadable or malformed."""
        return cls([(each.name, [quad.triple for quad in each.parse_all()]) for each in documents])

    @property
    def imports(self) -> dict[str, str]:
        """The IRIs of ``owl:imports``, which are not fetched, each with its document."""
        return {str(t.object): name for name, triples in self.parsed for t in triples if t.predicate == OWL.imports}

    def shapes(self) -> Shapes:
        """Parse the shapes. Raises InvalidInputError, naming the file, if there are none or one is ill-formed."""
        if not any(_describes_shape(triple) for _, triples in self.parsed for triple in triples):
            raise InvalidInputError(
                f"{self.names}: no shape found. Expected an sh:NodeShape, an sh:PropertyShape or a target."
            )
        try:
            return Shapes(triple for _, triples in self.parsed for triple in triples)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self._find_faulty(str(error))}: {self._describe_blank(str(error))}") from error

    def _find_faulty(self, message: str) -> str:
        """Return the name of the document that is ill-formed by itself, or else the names of all."""
        for name, triples in self.parsed if len(self.parsed) > 1 else ():
            try:
                Shapes(triples)
            except InvalidInputError as error:
                if str(error) == message:
                    return name
        return self.names

    def _describe_blank(self, message: str) -> str:
        """Replace a blank node label in `message` by a description of the node."""
        label = _BLANK.search(message)
        everything = [triple for _, triples in self.parsed for triple in triples]
        about = [] if label is None else [each for each in everything if str(each.subject) == label[0]]
        if not about:
            return message
        paths = [
            curie(each.object.value)
            for each in about
            if isinstance(each.object, NamedNode) and each.predicate == SH.path
        ]
        owners = [each for each in everything if each.object == about[0].subject]
        where = [f"of {curie(each.subject.value)}" for each in owners if isinstance(each.subject, NamedNode)]
        return message.replace(
            str(about[0].subject), " ".join(["without a name", *where, *(f"for {each}" for each in paths)])
        )

    @property
    def names(self) -> str:
        """The names of the documents, for messages."""
        return ", ".join(name for name, _ in self.parsed)
