"""Reviews of claims: an accepted claim becomes an edge at any confidence, and a rejected one never does."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Triple

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.provenance.promotion import THRESHOLD, Verdicts
from kg.retrieval.reader import Reader, bounded_page, iri_of
from kg.retrieval.results import Result
from kg.sparql.terms import bind
from kg.store.ownership import CURATED
from kg.store.protocol import term_text
from kg.tools.entities.dereference import parse_iri
from kg.user_graphs import UserGraphs
from kg.vocabulary import EXTRACTED, KG, PROV_GRAPH

REVIEWS: Final = NamedNode(CURATED + "reviews")

CLAIM: Final = """
SELECT ?subject ?predicate ?object ?graph WHERE {
  GRAPH ?graph { $claim rdf:subject ?subject ; rdf:predicate ?predicate OPTIONAL { $claim rdf:object ?object } }
}"""

PENDING: Final = """
SELECT ?claim ?subject ?predicate ?concept ?method ?similarity ?model WHERE {
  GRAPH ?graph {
    ?claim a kg:Alignment ; rdf:subject ?subject ; rdf:predicate ?predicate ; rdf:object ?concept ;
      kg:confidence ?confidence ; kg:method ?method
    OPTIONAL { ?claim kg:similarity ?similarity ; kg:model ?model }
  }
  FILTER(?confidence < $threshold && STRSTARTS(STR(?graph), $extracted))
}"""

NAMES: Final = """
SELECT ?node (MIN(?name) AS ?label) WHERE {
  { VALUES ?node { $nodes } ?node skos:prefLabel|dcterms:title ?name FILTER(LANG(?name) IN ("", "en")) }
  UNION { VALUES ?node { $nodes } ?node a kg:ExternalLaw ; dcterms:identifier ?name }
} GROUP BY ?node"""

STANDS: Final = """
ASK { GRAPH ?graph { $subject $predicate $object } FILTER(?graph != $prov) }"""

Verdict = Literal["accept", "reject"]
_PREDICATES: Final = {"accept": KG.accepts, "reject": KG.rejects}


class Reviewed(Result):
    """The verdict, and whether the triple of the claim is asserted after it."""

    claim: str
    verdict: Verdict
    subject: str
    predicate: str
    object: str
    asserted: bool = Field(description="Whether the edge is in the graph")
    reviewed_by: str
    graph: str


def review_claim(
    kg: KnowledgeGraph,
    claim: Annotated[str, Field(max_length=2_000, description="id from kg_find_related")],
    verdict: Annotated[Verdict, Field()],
) -> Reviewed:
    """Accept or reject a claim: a citation, or an alignment with a concept or law. Adds or removes the edge at once.

    Use after reading the sentence; it needs the local token. A rejection is final. Returns asserted: whether the edge
    is in the graph.
    Example: review_claim(claim="https://w3id.org/quadcite/id/st/9f2c", verdict="reject").
    Next: `kg_find_related`.
    """
    node = parse_iri(claim.strip().removeprefix("<").removesuffix(">"))
    reader = Reader(kg)
    rows = list(reader.rows("the claim", bind(CLAIM, claim=node), all_graphs=True))
    found = next((row for row in rows if iri_of(row["graph"]).startswith(EXTRACTED)), None)
    if found is None:
        own = " It was written by a user, not extracted, and cannot be reviewed." if rows else ""
        listed = "kg_find_related returns the ids of citations, `kg review` those of alignments."
        raise NotFoundError(f"Unknown claim {claim[:200]}.{own} {listed}")
    if "object" not in found:
        raise InvalidInputError(f"{claim[:200]} has no resolved citation, so it has no edge to accept or reject.")
    sender = SENDER.get()
    UserGraphs(kg).post(REVIEWS, [Triple(REVIEWS, _PREDICATES[verdict], node)], sender)
    subject, predicate = NamedNode(iri_of(found["subject"])), NamedNode(iri_of(found["predicate"]))
    value = found["object"] if isinstance(found["object"], Text) else NamedNode(iri_of(found["object"]))
    stands = kg.store.query(bind(STANDS, subject=subject, predicate=predicate, object=value, prov=PROV_GRAPH))
    result = Reviewed(
        claim=node.value,
        verdict=verdict,
        subject=subject.value,
        predicate=predicate.value,
        object=value.value,
        asserted=bool(stands),
        reviewed_by=sender.name,
        graph=REVIEWS.value,
    )
    verdicts = Verdicts.load(kg.store)
    if verdict == "accept" and node in verdicts.rejected:
        where = ", ".join(map(str, sorted(verdicts.rejected[node], key=str)))
        result.notes.append(f"The claim was rejected in {where}. A rejection is final.")
    if verdict == "reject" and result.asserted:
        result.notes.append("Another claim or a source still asserts the edge.")
    return reader.finish(result)


def list_pending(kg: KnowledgeGraph, limit: int, offset: int) -> dict[str, Any]:
    """List the alignments that only a review can make edges, the most similar first: ``pending`` and their ``total``.

    Each has the ``claim``, the ``name`` and ``id`` of its subject, the ``relation`` to the ``concept`` or law with that
    ``label``, and the ``method``; a proposal by vectors also has ``similarity`` and ``model``. Reviewed claims are left
    out.
    """
    bounded_page(limit, offset)
    reader, verdicts = Reader(kg), Verdicts.load(kg.store)
    reviewed = verdicts.accepted.keys() | verdicts.rejected.keys()
    query = bind(PENDING, threshold=THRESHOLD, extracted=Text(EXTRACTED))
    found = [
        {name: term_text(term) for name, term in row.items()}
        for row in reader.rows("alignments that are not promoted", query)
        if row["claim"] not in reviewed
    ]
    found.sort(key=lambda each: (-float(each.get("similarity", 1)), each["subject"], each["concept"], each["claim"]))
    page = found[offset : offset + limit]
    nodes = [NamedNode(iri) for iri in sorted({each[part] for each in page for part in ("subject", "concept")})]
    rows = reader.rows("their names", bind(NAMES, nodes=nodes)) if nodes else []
    labels = {iri_of(row["node"]): term_text(row["label"]) for row in rows if "label" in row}
    return {
        "pending": [
            {
                "claim": each["claim"],
                "name": labels.get(each["subject"], each["subject"]),
                "id": each["subject"],
                "relation": each["predicate"].rpartition("#")[2],
                "concept": each["concept"],
                "label": labels.get(each["concept"], each["concept"]),
                **{part: each[part] for part in ("similarity", "method", "model") if part in each},
            }
            for each in page
        ],
        "total": len(found),
    }
