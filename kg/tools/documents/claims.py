"""The claims behind relations: the words of a text that state each, and their confidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.provenance.promotion import PROMOTED, Verdicts
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.documents.relations import BY_PROPERTY, Edge
from kg.vocabulary import EXTRACTED, mint_claim

ASSERTED: Final = """
SELECT ?graph ?src ?property ?dst WHERE {
  VALUES (?src ?dst) { $pairs } GRAPH ?graph { ?src ?property ?dst } FILTER(STRSTARTS(STR(?graph), $promoted))
} LIMIT $most"""

CLAIMS: Final = """
SELECT ?claim ?confidence WHERE { VALUES ?claim { $claims } ?claim kg:confidence ?confidence }"""

WORDS: Final = """
SELECT ?claim ?unit ?words WHERE {
  VALUES ?claim { $claims } ?claim kg:evidence ?span . ?span oa:hasSource ?unit ; oa:exact ?words
}"""

MOST_CLAIMS: Final = 1_000
"""Maximum number of claims that are read for the relations of an answer."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A claim with its confidence, and the words that it rests on."""

    claim: str
    confidence: float
    unit: str | None = None
    words: str | None = None


def load_claims(reader: Reader, edges: Collection[Edge]) -> Mapping[Edge, list[Stated]]:
    """Load the claims that assert each of `edges`, the surest first. An edge that a source states as data has none."""
    pairs = sorted({(edge.src, edge.dst) for edge in edges})
    if not pairs:
        return {}
    nodes = [(NamedNode(src), NamedNode(dst)) for src, dst in pairs]
    query = bind(ASSERTED, pairs=nodes, promoted=Literal(PROMOTED), most=MOST_CLAIMS)
    known = set(edges)
    claims: dict[str, Edge] = {}
    for row in reader.rows("claims of the relations", query):
        src, name, dst = (NamedNode(iri_of(row[part])) for part in ("src", "property", "dst"))
        relation = BY_PROPERTY.get(name.value)
        if relation is None or (edge := Edge(src.value, relation, dst.value)) not in known:
            continue
        extracted = NamedNode(EXTRACTED + iri_of(row["graph"]).removeprefix(PROMOTED))
        claims[mint_claim(src, name, dst, extracted).value] = edge
    # One that a person rejected asserts nothing; another claim of the same relation does.
    rejected = {iri_of(claim) for claim in Verdicts.load(reader.kg.store).rejected} if claims else set()
    wanted = [NamedNode(claim) for claim in sorted(claims.keys() - rejected)]
    if not wanted:
        return {}
    said: dict[str, tuple[str, str]] = {}
    for row in reader.rows("words of the claims", bind(WORDS, claims=wanted)):
        said.setdefault(iri_of(row["claim"]), (iri_of(row["unit"]), term_text(row["words"])))
    found: dict[Edge, dict[str, Stated]] = {}
    for row in reader.rows("confidence of the claims", bind(CLAIMS, claims=wanted)):
        claim = iri_of(row["claim"])
        unit, words = said.get(claim, (None, None))
        stated = Stated(claim, float(term_text(row["confidence"])), unit, words)
        found.setdefault(claims[claim], {})[claim] = stated
    return {
        edge: sorted(stated.values(), key=lambda each: (-each.confidence, each.claim)) for edge, stated in found.items()
    }


def load_stated(reader: Reader, edges: Collection[Edge]) -> Mapping[Edge, Stated]:
    """Load the surest claim of each of `edges`."""
    return {edge: claims[0] for edge, claims in load_claims(reader, edges).items()}
