"""The claims behind relations: the words of a text that state each, and their confidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from kg.provenance.promotion import Verdicts
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.documents.nodes import FILES
from kg.tools.documents.relations import BY_PROPERTY, MOST_EDGES, Edge
from kg.vocabulary import EXTRACTED, RDF

# From the end that fewer relations have, with a limit, so that a node with very many claims costs no more than others.
# Without the inner SELECT, the engine reads all claims of the other end. In one group, it reads the properties first.
_OF_EDGE: Final = """{ SELECT ($number AS ?number) ?graph ?claim ?property ?confidence WHERE {
    { SELECT ?graph ?claim WHERE { GRAPH ?graph { ?claim $first $rarer } } LIMIT $read }
    GRAPH ?graph { ?claim $second $other }
    GRAPH ?graph { ?claim rdf:predicate ?property } GRAPH ?graph { ?claim kg:confidence ?confidence }
  } LIMIT $most }"""

WORDS: Final = """
SELECT ?claim ?unit ?words WHERE {
  VALUES ?claim { $claims } ?claim kg:evidence ?span . ?span oa:hasSource ?unit ; oa:exact ?words
}"""

CLAIMS_OF_EDGE: Final = 5
"""Maximum number of claims that are read for a relation."""
_CLAIMS_OF_NODE: Final = 100


@dataclass(frozen=True, slots=True)
class Stated:
    """A claim with its confidence, and the words that it rests on."""

    claim: str
    confidence: float
    unit: str | None = None
    words: str | None = None


def load_claims(
    reader: Reader, edges: Collection[Edge], degrees: Mapping[str, int] | None = None
) -> Mapping[Edge, list[Stated]]:
    """Load the claims that assert each of `edges`, the surest first. An edge that a source states as data has none.

    `degrees` are the numbers of relations of nodes, as far as they are known.
    """
    known = list(edges)
    if not known:
        return {}
    counts = degrees or {}
    parts = []
    for number, edge in enumerate(known):
        ends = [(RDF.subject, edge.src), (RDF.object, edge.dst)]
        ends.sort(key=lambda end: (not end[1].startswith(FILES), counts.get(end[1], MOST_EDGES)))
        (first, rarer), (second, other) = ends
        parts.append(
            bind(
                _OF_EDGE,
                number=number,
                first=first,
                rarer=NamedNode(rarer),
                second=second,
                other=NamedNode(other),
                read=_CLAIMS_OF_NODE,
                most=CLAIMS_OF_EDGE,
            )
        )
    query = f"SELECT ?number ?graph ?claim ?property ?confidence WHERE {{ {' UNION '.join(parts)} }}"
    # One that a person rejected asserts nothing; another claim of the same relation does.
    rejected = {iri_of(claim) for claim in Verdicts.load(reader.kg.store).rejected}
    found: dict[Edge, dict[str, float]] = {}
    for row in reader.rows("claims of the relations", query):
        claim, edge = iri_of(row["claim"]), known[int(term_text(row["number"]))]
        is_valid = claim not in rejected and iri_of(row["graph"]).startswith(EXTRACTED)
        if is_valid and BY_PROPERTY.get(iri_of(row["property"])) == edge.rel:
            found.setdefault(edge, {})[claim] = float(term_text(row["confidence"]))
    said = _load_words(reader, {claim for claims in found.values() for claim in claims})
    nothing: tuple[None, None] = (None, None)
    return {
        edge: [
            Stated(claim, confidence, *said.get(claim, nothing))
            for claim, confidence in sorted(claims.items(), key=lambda each: (-each[1], each[0]))
        ]
        for edge, claims in found.items()
    }


def _load_words(reader: Reader, claims: Collection[str]) -> dict[str, tuple[str, str]]:
    """Load the texts of claims, and the words in these that state them."""
    if not claims:
        return {}
    said: dict[str, tuple[str, str]] = {}
    query = bind(WORDS, claims=[NamedNode(claim) for claim in sorted(claims)])
    for row in reader.rows("words of the claims", query):
        said.setdefault(iri_of(row["claim"]), (iri_of(row["unit"]), term_text(row["words"])))
    return said


def load_stated(
    reader: Reader, edges: Collection[Edge], degrees: Mapping[str, int] | None = None
) -> Mapping[Edge, Stated]:
    """Load the surest claim of each of `edges`; `degrees` as in `load_claims`."""
    return {edge: claims[0] for edge, claims in load_claims(reader, edges, degrees).items()}
