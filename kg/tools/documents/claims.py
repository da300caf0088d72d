"""The claims behind relations: the words of a text that state each, and their confidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from kg.provenance.promotion import Verdicts
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.documents.nodes import FILES
from kg.tools.documents.relations import BY_PROPERTY, Edge
from kg.vocabulary import EXTRACTED, RDF

# Of each node by itself, so that one with very many claims costs no more than the limit.
_COUNT: Final = """{ SELECT ($number AS ?number) (COUNT(?claim) AS ?count) WHERE {
    { SELECT ?claim WHERE { ?claim $end $node } LIMIT $most }
  } }"""

# Of an end of some relations, with the other ends of these. Without the inner SELECTs, the engine reads all claims of
# the other ends.
_OF_END: Final = """{ SELECT ?claim ($number AS ?number) ?other WHERE {
    { SELECT ?claim ?other WHERE {
      { SELECT ?claim WHERE { ?claim $first $node } LIMIT $read } ?claim $second ?other
    } }
    VALUES ?other { $others }
  } }"""

_CLAIMS: Final = """SELECT ?number ?other ?graph ?claim ?property ?confidence WHERE {
  { SELECT ?claim ?number ?other WHERE {
    #ENDS
  } }
  GRAPH ?graph { ?claim rdf:predicate ?property } GRAPH ?graph { ?claim kg:confidence ?confidence }
}"""

_OTHER_END: Final = {RDF.subject: RDF.object, RDF.object: RDF.subject}

WORDS: Final = """
SELECT ?claim ?unit ?words WHERE {
  VALUES ?claim { $claims } ?claim kg:evidence ?span . ?span oa:hasSource ?unit ; oa:exact ?words
}"""

CLAIMS_OF_EDGE: Final = 5
"""Maximum number of claims that are read for a relation, the surest first."""
CLAIMS_OF_END: Final = 5_000
"""Maximum number of claims of the end of a relation among which those of the relation are searched."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A claim with its confidence, and the words that it rests on."""

    claim: str
    confidence: float
    unit: str | None = None
    words: str | None = None


def load_claims(reader: Reader, edges: Collection[Edge], notes: set[str] | None = None) -> Mapping[Edge, list[Stated]]:
    """Load the claims that assert each of `edges`, the surest first. An edge that a source states as data has none.

    Cached until the next commit. Adds a note if both ends of an edge have too many claims to find its own.
    """
    keys = {" ".join((edge.src, edge.rel, edge.dst)): edge for edge in edges}
    found = reader.kept_by_iri(
        "claims of a relation",
        keys,
        lambda missing: dict(zip(missing, _load_claims(reader, [keys[key] for key in missing]), strict=True)),
    )
    lost = sum(each.is_lost for each in found.values())
    if lost and notes is not None:
        notes.add(
            f"No confidence and no words are given for {lost} relations: both of their ends have more than "
            f'{CLAIMS_OF_END:,} claims. list_claims(kind="relation") lists these.'
        )
    return {keys[key]: [*each.claims] for key, each in found.items() if each.claims}


@dataclass(frozen=True, slots=True)
class _OfEdge:
    """The claims of an edge. They are lost if both of its ends have more than `CLAIMS_OF_END`."""

    claims: Sequence[Stated] = ()
    is_lost: bool = False


def _load_claims(reader: Reader, edges: Sequence[Edge]) -> list[_OfEdge]:
    chosen, lost = _choose_ends(reader, edges)
    # One that a person rejected asserts nothing; another claim of the same relation does.
    rejected = {iri_of(claim) for claim in Verdicts.load(reader.kg.ask).rejected}
    parts = [
        bind(
            _OF_END,
            number=number,
            first=end,
            node=NamedNode(node),
            second=_OTHER_END[end],
            others=[NamedNode(other) for other in dict.fromkeys(edge.other(node) for edge in own)],
            read=CLAIMS_OF_END,
        )
        for number, ((end, node), own) in enumerate(chosen.items())
    ]
    by_ends = {
        (number, edge.other(node), edge.rel): edge
        for number, ((_, node), own) in enumerate(chosen.items())
        for edge in own
    }
    found: dict[Edge, dict[str, float]] = {}
    for row in reader.rows("claims of the relations", _CLAIMS.replace("#ENDS", " UNION ".join(parts))) if parts else ():
        claim, relation = iri_of(row["claim"]), BY_PROPERTY.get(iri_of(row["property"]))
        if relation is None or claim in rejected or not iri_of(row["graph"]).startswith(EXTRACTED):
            continue
        if edge := by_ends.get((int(term_text(row["number"])), iri_of(row["other"]), relation)):
            found.setdefault(edge, {})[claim] = float(term_text(row["confidence"]))
    surest = {
        edge: sorted(claims.items(), key=lambda each: (-each[1], each[0]))[:CLAIMS_OF_EDGE]
        for edge, claims in found.items()
    }
    said = _load_words(reader, {claim for claims in surest.values() for claim, _ in claims})
    nothing: tuple[None, None] = (None, None)
    return [
        _OfEdge(
            [Stated(claim, confidence, *said.get(claim, nothing)) for claim, confidence in surest.get(edge, ())],
            is_lost=edge in lost,
        )
        for edge in edges
    ]


def _choose_ends(
    reader: Reader, edges: Sequence[Edge]
) -> tuple[Mapping[tuple[NamedNode, str], Sequence[Edge]], Collection[Edge]]:
    """Choose from which ends the claims of `edges` are read, so that few are read; find the edges that have no such."""
    # A text has few claims, so they are not counted.
    entities = [edge for edge in edges if not edge.src.startswith(FILES)]
    counts = {
        RDF.subject: dict(_count_claims(reader, RDF.subject, {edge.src for edge in entities})),
        RDF.object: dict(_count_claims(reader, RDF.object, {edge.dst for edge in entities})),
    }
    by_end: dict[tuple[NamedNode, str], dict[Edge, None]] = {}
    for edge in edges:
        for end, node in ((RDF.subject, edge.src), (RDF.object, edge.dst)):
            if counts[end].get(node, 0 if node == edge.src else CLAIMS_OF_END + 1) <= CLAIMS_OF_END:
                by_end.setdefault((end, node), {})[edge] = None
    left = dict.fromkeys(edge for own in by_end.values() for edge in own)
    lost = set(edges) - left.keys()
    chosen: dict[tuple[NamedNode, str], Sequence[Edge]] = {}
    while left:
        best = min(by_end, key=lambda at: counts[at[0]].get(at[1], 0) / len(by_end[at]))
        chosen[best] = list(by_end[best])
        for edge in chosen[best]:
            del left[edge]
        by_end = {at: rest for at, own in by_end.items() if (rest := {edge: None for edge in own if edge in left})}
    return chosen, lost


def _count_claims(reader: Reader, end: NamedNode, nodes: Collection[str]) -> Mapping[str, int]:
    """Count the claims with each of `nodes` at one end, up to one more than `CLAIMS_OF_END`. Cached."""

    def load(missing: list[str]) -> Mapping[str, int]:
        parts = [
            bind(_COUNT, number=number, end=end, node=NamedNode(node), most=CLAIMS_OF_END + 1)
            for number, node in enumerate(missing)
        ]
        rows = reader.rows("claims about the entities", f"SELECT ?number ?count WHERE {{ {' UNION '.join(parts)} }}")
        return {missing[int(term_text(row["number"]))]: int(term_text(row["count"])) for row in rows}

    return reader.kept_by_iri(f"claims by {end.value}", nodes, load)


def _load_words(reader: Reader, claims: Collection[str]) -> dict[str, tuple[str, str]]:
    """Load the texts of claims, and the words in these that state them."""
    if not claims:
        return {}
    said: dict[str, tuple[str, str]] = {}
    query = bind(WORDS, claims=[NamedNode(claim) for claim in sorted(claims)])
    for row in reader.rows("words of the claims", query):
        said.setdefault(iri_of(row["claim"]), (iri_of(row["unit"]), term_text(row["words"])))
    return said


def load_stated(reader: Reader, edges: Collection[Edge], notes: set[str] | None = None) -> Mapping[Edge, Stated]:
    """Load the surest claim of each of `edges`; `notes` as in `load_claims`."""
    return {edge: claims[0] for edge, claims in load_claims(reader, edges, notes).items()}
