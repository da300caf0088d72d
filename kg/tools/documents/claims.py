"""The claims behind relations: the words of a text that state each, and their confidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.provenance.promotion import Verdicts
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.documents.nodes import FILES
from kg.tools.documents.relations import BY_PROPERTY, Edge
from kg.vocabulary import EXTRACTED, RDF

# From the end that fewer relations have, with a limit, so that a node with very many claims costs no more than others.
# With a join in place of EXISTS, the engine reads all claims of the other end (24 relations: 23 ms, against 13).
_OF_EDGE: Final = """{ SELECT ($number AS ?number) ?claim WHERE {
    { SELECT ?claim WHERE { ?claim $first $rarer } LIMIT $read } FILTER EXISTS { ?claim $second $other }
  } LIMIT $most }"""

CLAIMS: Final = """
SELECT ?claim ?graph ?property ?confidence WHERE {
  VALUES ?claim { $claims }
  GRAPH ?graph { ?claim rdf:predicate ?property ; kg:confidence ?confidence }
  FILTER(STRSTARTS(STR(?graph), $extracted))
}"""

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
        ends.sort(key=lambda end: (not end[1].startswith(FILES), counts.get(end[1], 0)))
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
    rows = reader.rows("claims of the relations", f"SELECT ?number ?claim WHERE {{ {' UNION '.join(parts)} }}")
    claims = {iri_of(row["claim"]): known[int(term_text(row["number"]))] for row in rows}
    # One that a person rejected asserts nothing; another claim of the same relation does.
    rejected = {iri_of(claim) for claim in Verdicts.load(reader.kg.store).rejected} if claims else set()
    wanted = [NamedNode(claim) for claim in sorted(claims.keys() - rejected)]
    if not wanted:
        return {}
    said: dict[str, tuple[str, str]] = {}
    for row in reader.rows("words of the claims", bind(WORDS, claims=wanted)):
        said.setdefault(iri_of(row["claim"]), (iri_of(row["unit"]), term_text(row["words"])))
    found: dict[Edge, dict[str, Stated]] = {}
    query = bind(CLAIMS, claims=wanted, extracted=Text(EXTRACTED))
    for row in reader.rows("confidence of the claims", query):
        claim = iri_of(row["claim"])
        edge = claims[claim]
        if BY_PROPERTY.get(iri_of(row["property"])) == edge.rel:
            unit, words = said.get(claim, (None, None))
            stated = Stated(claim, float(term_text(row["confidence"])), unit, words)
            found.setdefault(edge, {})[claim] = stated
    return {
        edge: sorted(stated.values(), key=lambda each: (-each.confidence, each.claim)) for edge, stated in found.items()
    }


def load_stated(
    reader: Reader, edges: Collection[Edge], degrees: Mapping[str, int] | None = None
) -> Mapping[Edge, Stated]:
    """Load the surest claim of each of `edges`; `degrees` as in `load_claims`."""
    return {edge: claims[0] for edge, claims in load_claims(reader, edges, degrees).items()}
