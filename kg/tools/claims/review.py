"""Reviews of claims: an accepted claim becomes an edge at any confidence, and a rejected one never does."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Triple

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.provenance.promotion import Verdicts
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Result
from kg.sparql.terms import bind
from kg.store.ownership import CURATED
from kg.tools.entities.dereference import parse_iri
from kg.user_graphs import UserGraphs
from kg.vocabulary import EXTRACTED, KG, PROV_GRAPH

REVIEWS: Final = NamedNode(CURATED + "reviews")

CLAIM: Final = """
SELECT ?subject ?predicate ?object ?graph WHERE {
  GRAPH ?graph { $claim rdf:subject ?subject ; rdf:predicate ?predicate OPTIONAL { $claim rdf:object ?object } }
}"""

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
    """Accept or reject a claim: a citation, or an alignment with a concept. The edge is added or removed at once.

    Use after reading the sentence. A rejection is final. Returns asserted: whether the edge is in the graph.
    Example: review_claim(claim="https://w3id.org/quadcite/id/st/9f2c", verdict="reject").
    Next: `kg_find_related`.
    """
    node = parse_iri(claim.strip().removeprefix("<").removesuffix(">"))
    reader = Reader(kg)
    rows = list(reader.rows("the claim", bind(CLAIM, claim=node), all_graphs=True))
    found = next((row for row in rows if iri_of(row["graph"]).startswith(EXTRACTED)), None)
    if found is None:
        own = " It was written by a user, not extracted, and cannot be reviewed." if rows else ""
        raise NotFoundError(f"Unknown claim {claim[:200]}.{own} kg_find_related returns the ids of claims.")
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
