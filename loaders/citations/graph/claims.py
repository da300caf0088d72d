"""Claims as quads: about citations, with the words that they rest on, about names; and the laws that they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.iso3166 import find_area
from kg.vocabulary import DCTERMS, ELI, KG, OA, RDF, XSD, iri_prefix, mint, mint_claim, mint_span
from loaders.citations import jurisdictions
from loaders.citations.statutes import Law
from loaders.readers.places import build_place_graphs

LAW_TYPES: Final = {
    "usc": "federalCode",
    "cfr": "federalRegulation",
    "public-law": "publicAct",
    "public-act": "publicAct",
    "law": "publicAct",
    "act": "publicAct",
    "regulations": "regulation",
    "ordinance": "ordinance",
    "bill": "bill",
    "directive": "directive",
    "regulation": "regulation",
    "decision": "decision",
    "treaty": "treaty",
    "decree": "decree",
    "royal-decree": "decree",
    "royal-decree-law": "decree",
    "legislative-decree": "decree",
    "supreme-decree": "decree",
    "presidential-decree": "decree",
    "decree-law": "decree",
}
"""The kind of a law by its numbering scheme. All others are laws of a state."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of something found in text: the code points [start, end) of a text unit."""

    unit: NamedNode
    start: int
    end: int
    exact: str
    confidence: float
    method: str


Property = tuple[NamedNode, NamedNode | Literal | str | int | None]
"""A property of a node, with its value."""


def describe(node: NamedNode, graph: NamedNode, said: Iterable[Property]) -> list[Quad]:
    """Build the quads of a node in a graph. Other values than terms become literals; None is left out."""
    return [
        Quad(node, name, value if isinstance(value, NamedNode | Literal) else Literal(value), graph)
        for name, value in dict.fromkeys(said)
        if value is not None
    ]


@dataclass(slots=True)
class CitedNodes:
    """The nodes of a graph, each with its evidence."""

    graph: NamedNode
    quads: list[Quad] = field(default_factory=list, init=False)
    known: set[NamedNode] = field(default_factory=set, init=False)

    def add_node(self, node: NamedNode, said: Iterable[Property], evidence: Sequence[Evidence] = ()) -> bool:
        """Add a node with its evidence. Evidence without words has a method only. Returns whether the node is new."""
        is_new = node not in self.known
        if is_new:
            self.known.add(node)
            self.quads += describe(node, self.graph, said)
            for each in evidence[:1]:
                self.quads += method_quads(node, each, self.graph)
        for each in evidence:
            if each.exact:
                self.quads += evidence_quads(node, each, self.graph, self.known)
        return is_new


@dataclass(slots=True)
class Claims(CitedNodes):
    """The claims about the citations in one text unit: one per triple, however often the text repeats it."""

    text: str
    unit: NamedNode

    def add(
        self,
        evidence: Evidence,
        target: NamedNode | None,
        raw: str,
        *,
        predicate: NamedNode = ELI.cites,
        type_: str = "unknown",
        context: str | None = None,
    ) -> None:
        """Add a claim that the unit relates to `target`, or to the words `raw` of the citation if that is unknown."""
        value = Literal(raw) if target is None else target
        said: list[Property] = [
            (RDF.type, KG.CrossReference),
            (RDF.subject, self.unit),
            (RDF.predicate, predicate),
            (RDF.type, None if target is None else KG.Statement),
            (RDF.object, target),
            (KG.rawCitation, raw),
            (KG.contextSentence, context),
            (KG.relationshipType, mint("code", "relationshipType", type_)),
        ]
        self.add_node(mint_claim(self.unit, predicate, value, self.graph), said, [evidence])


def build_alignment(
    graph: NamedNode, triple: tuple[NamedNode, NamedNode, NamedNode], confidence: str, method: str
) -> tuple[NamedNode, Sequence[Quad]]:
    """Build the node and the quads of a claim that a name is that of a concept or of a law."""
    subject, predicate, named = triple
    claim = mint_claim(subject, predicate, named, graph)
    return claim, [
        Quad(claim, RDF.type, KG.Alignment, graph),
        Quad(claim, RDF.subject, subject, graph),
        Quad(claim, RDF.predicate, predicate, graph),
        Quad(claim, RDF.object, named, graph),
        Quad(claim, KG.confidence, Literal(confidence, datatype=XSD.decimal), graph),
        Quad(claim, KG.method, Literal(method), graph),
    ]


def method_quads(node: NamedNode, evidence: Evidence, graph: NamedNode) -> list[Quad]:
    """Build the quads for the method and confidence of something found in text."""
    confidence = Literal(f"{evidence.confidence:.4f}".rstrip("0").rstrip(".") or "0", datatype=XSD.decimal)
    return [
        Quad(node, KG.confidence, confidence, graph),
        Quad(node, KG.method, Literal(evidence.method), graph),
    ]


def evidence_quads(node: NamedNode, evidence: Evidence, graph: NamedNode, known: set[NamedNode]) -> list[Quad]:
    """Build the quads for the evidence of a node.

    The span is described unless it is in `known`, to which it is added.
    """
    span = mint_span(evidence.unit, evidence.start, evidence.end)
    said = [Quad(node, KG.evidence, span, graph)]
    if span not in known:
        known.add(span)
        said += [
            Quad(span, RDF.type, KG.TextSpan, graph),
            Quad(span, OA.hasSource, evidence.unit, graph),
            Quad(span, KG.start, Literal(evidence.start), graph),
            Quad(span, KG.end, Literal(evidence.end), graph),
            Quad(span, OA.exact, Literal(evidence.exact), graph),
        ]
    return said


def mint_law(law: Law) -> NamedNode:
    """Return the node of a law."""
    return mint("law", law.jurisdiction, law.scheme, law.citation)


def get_law_graph(law: Law) -> NamedNode:
    """Return the name of the shared graph that describes a law."""
    return mint("graph", "ref", "law", law.jurisdiction, law.scheme, law.citation)


def build_law(
    law: Law, title: str | None = None, *, is_sure: bool = True
) -> tuple[NamedNode, NamedNode, Sequence[Quad]]:
    """Build the node of a law, its shared graph, and the quads of that graph.

    `title` names it, else its citation. It has a jurisdiction if the citation names or implies one: not without
    `is_sure`, and not where none is known, as of treaties.
    """
    iri, graph = mint_law(law), get_law_graph(law)
    said = [
        Quad(iri, RDF.type, KG.ExternalLaw, graph),
        Quad(iri, DCTERMS.identifier, Literal(title or law.citation), graph),
        Quad(iri, KG.lawType, mint("code", "lawType", LAW_TYPES.get(law.scheme, "state")), graph),
    ]
    if is_sure and (place := _find_place(law)) is not None:
        said.append(Quad(iri, KG.jurisdiction, mint("place", place), graph))
    return iri, graph, said


def build_law_places(law: Sequence[Quad]) -> Mapping[NamedNode, Sequence[Quad]]:
    """Build the shared graphs of the jurisdiction of a law, if its quads have one."""
    places = [
        quad.object.value for quad in law if quad.predicate == KG.jurisdiction and isinstance(quad.object, NamedNode)
    ]
    return build_place_graphs(unquote(places[0].removeprefix(iri_prefix("place")))) if places else {}


def _find_place(law: Law) -> str | None:
    """Find the code of the place whose law this is."""
    if law.jurisdiction == "us" and law.scheme == "public-act":
        return None  # of a state that is unknown
    place = jurisdictions.place_of(law.jurisdiction)
    return place if place is not None and (place == "EUR" or find_area(place) is not None) else None
