"""Reviews of claims and findings: list them by confidence, accept or reject them.

An accepted claim becomes an edge at any confidence, and a rejected one never does. The statements of a rejected finding
are withdrawn from the graph (`kg.provenance.findings`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Quad, Triple

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.provenance.claims import load_writers
from kg.provenance.findings import KINDS, PREFIXES, Finding, load_finding, parse_withdrawn
from kg.provenance.promotion import Verdicts
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, iri_of
from kg.retrieval.results import Lean, Limit, Offset, Result, clipped
from kg.sparql.terms import bind
from kg.store.ownership import CURATED
from kg.store.protocol import Term, named_node, term_text
from kg.text import name_or_quote, quoted
from kg.tools.entities.dereference import parse_iri
from kg.tools.zoning.name_lookup import find_place, load_code_names
from kg.tools.zoning.rules import Rule, Span, is_reported, load_asserted, load_rules
from kg.user_graphs import UserGraphs
from kg.vocabulary import BASE, ENTITIES, EXTRACTED, KG, PROV, PROV_GRAPH, RDF, SKOS, SOURCED, iri_prefix, mint

REVIEWS: Final = NamedNode(CURATED + "reviews")

CLAIM: Final = """
SELECT ?subject ?predicate ?object ?graph WHERE {
  GRAPH ?graph { $claim rdf:subject ?subject ; rdf:predicate ?predicate OPTIONAL { $claim rdf:object ?object } }
}"""

FINDING: Final = """
SELECT ?graph WHERE { VALUES ?kind { $kinds } GRAPH ?graph { $claim a ?kind ; kg:confidence ?confidence } }"""

STATED_IN: Final = """
SELECT ?graph WHERE {
  GRAPH ?graph { ?rule kg:district $district } FILTER(STRSTARTS(STR(?graph), $sources))
} LIMIT 1"""

SAME_USE: Final = """
SELECT ?rule WHERE { ?rule kg:district $district ; kg:landUse $use FILTER(?rule != $claim) } ORDER BY ?rule LIMIT 3"""

_FOUND: Final = """
  VALUES ?kind { $kinds }
  GRAPH ?graph { ?claim a ?kind ; kg:confidence ?confidence }
  FILTER(?confidence >= $least && ?confidence <= $most && STRSTARTS(STR(?graph), $extracted))
  FILTER(?kind != kg:RejectedFinding || STRSTARTS(STR(?claim), $prefix))
  FILTER(?kind != kg:Statement || !STRSTARTS(STR(?graph), $entities))"""
_INSIDE: Final = """
  ?claim kg:definedIn|rdf:subject ?unit . ?unit kg:jurisdiction $municipality"""
_STATUSES: Final = {
    "pending": "MINUS { ?claim kg:reviewStatus ?status } MINUS { VALUES ?claim { $reviewed } }",
    "accepted": "{ VALUES ?claim { $reviewed } } UNION { ?claim kg:reviewStatus ?status }",
    "rejected": "{ VALUES ?claim { $reviewed } } UNION { ?claim a kg:RejectedFinding }",
}

NAMES: Final = """
SELECT ?node (MIN(?name) AS ?label) WHERE {
  { VALUES ?node { $nodes } ?node skos:prefLabel|dcterms:title ?name FILTER(LANG(?name) IN ("", "en")) }
  UNION { VALUES ?node { $nodes } ?node a kg:ExternalLaw ; dcterms:identifier ?name }
  UNION { VALUES ?node { $nodes } ?node kg:sectionNumber ?name }
} GROUP BY ?node"""

REVIEWERS: Final = """
SELECT ?claim ?graph ?agent WHERE {
  VALUES ?claim { $claims } GRAPH ?graph { ?review kg:accepts|kg:rejects ?claim }
  OPTIONAL { GRAPH ?graph { ?review prov:wasAttributedTo ?agent } }
  FILTER(STRSTARTS(STR(?graph), $curated))
}"""

TEXTS: Final = """
SELECT ?unit ?text WHERE { VALUES ?unit { $units } ?unit schema:text ?text }"""

PARTS: Final = """
SELECT ?s ?p ?o WHERE {
  GRAPH $graph { ?s ?p ?o } FILTER(?s = $claim || STRSTARTS(STR(?s), CONCAT(STR($claim), "#quantity=")))
}"""

STANDS: Final = """
ASK { GRAPH ?graph { $subject $predicate $object } FILTER(?graph != $prov) }"""

Verdict = Literal["accept", "reject"]
Kind = Literal["use", "standard", "definition", "district", "citation", "alignment", "relation", "link"]
Status = Literal["pending", "accepted", "rejected"]
_PREDICATES: Final = {"accept": KG.accepts, "reject": KG.rejects}
_CLASSES: Final[Mapping[str, NamedNode]] = {
    **{name: kind for kind, name in KINDS.items()},
    "citation": KG.Statement,
    "alignment": KG.Alignment,
    "relation": KG.EntityRelation,
    "link": KG.EntityLink,
}
_EDGES: Final = frozenset({"citation", "alignment", "relation", "link"})
"""Kinds whose claim is a triple, an edge of the graph if it is promoted."""
_NAMES_OF: Final = {kind.value: name for name, kind in _CLASSES.items()}
_LAND_USES: Final = iri_prefix("landuse")
_WORDS: Final = 300
"""Maximum characters of the words of a claim in a list."""


class ListedClaim(Lean):
    """A claim or finding, with the words that it rests on."""

    id: str = Field(description="For `review_claim`")
    kind: Kind
    statement: str
    confidence: float
    method: str
    reported: bool = Field(description="Whether tools report it as law, or it is an edge")
    words: str | None = None
    context: str | None = Field(None, description="The line with the words, if it has more")
    section: str | None = Field(None, description="Text unit, for `fetch`")
    reviewed_by: list[str] | None = None
    similarity: float | None = None
    model: str | None = None


class ClaimsResult(Result):
    """Claims and findings, the least sure first."""

    status: Status
    total: int
    claims: list[ListedClaim]


class Reviewed(Result):
    """The verdict, and whether the claim holds after it."""

    claim: str
    verdict: Verdict
    kind: Kind
    statement: str | None = None
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    asserted: bool = Field(description="Whether the edge is in the graph, or the finding is reported as law")
    reviewed_by: str
    graph: str


def list_claims(
    kg: KnowledgeGraph,
    kind: Annotated[Kind | None, Field()] = None,
    municipality: Annotated[str | None, Field(max_length=200)] = None,
    state: Annotated[str | None, Field(max_length=60)] = None,
    status: Annotated[Status, Field()] = "pending",
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.0,
    max_confidence: Annotated[float, Field(ge=0, le=1)] = 1.0,
    limit: Limit = 20,
    offset: Offset = 0,
) -> ClaimsResult:
    """List claims found in texts, the least sure first.

    Use before `review_claim`. Returns claims: id, statement, confidence, words, section, reported.
    Example: list_claims(kind="use").
    Next: `review_claim`.
    """
    bounded_page(limit, offset)
    if (municipality is None) != (state is None):
        raise InvalidInputError("municipality and state: Give both or neither.")
    reader, verdicts = Reader(kg), Verdicts.load(kg.ask)
    reviewed = {
        "pending": verdicts.accepted.keys() | verdicts.rejected.keys(),
        "accepted": verdicts.accepted.keys() - verdicts.rejected.keys(),
        "rejected": verdicts.rejected.keys(),
    }[status]
    kinds = [_CLASSES[kind]] if kind is not None else list(_CLASSES.values())
    if status == "rejected":
        kinds.append(KG.RejectedFinding)
    terms: dict[str, NamedNode | Text | float | Sequence[NamedNode]] = {
        "kinds": kinds,
        "least": min_confidence,
        "most": max_confidence,
        "extracted": Text(EXTRACTED),
        "entities": Text(ENTITIES),
        "prefix": Text(BASE if kind is None else PREFIXES.get(kind, "none")),
        "reviewed": sorted((claim for claim in reviewed if isinstance(claim, NamedNode)), key=str),
    }
    where = _FOUND + _STATUSES[status]
    if municipality is not None and state is not None:
        where += _INSIDE
        terms["municipality"] = NamedNode(find_place(reader, municipality, state).iri)
        reader.start_selection()
    rows = reader.rows(
        "claims by confidence",
        bind(
            f"SELECT DISTINCT ?claim ?graph ?kind ?confidence ?similarity WHERE {{ {where}\n"
            "  OPTIONAL { ?claim kg:similarity ?similarity }\n"
            "} ORDER BY ?confidence DESC(COALESCE(?similarity, 1)) ?claim LIMIT $limit OFFSET $offset",
            **terms,
            limit=limit,
            offset=offset,
        ),
    )
    counted = reader.rows("their number", bind(f"SELECT (COUNT(DISTINCT ?claim) AS ?n) WHERE {{ {where} }}", **terms))
    total = int(term_text(counted[0]["n"]))
    result = ClaimsResult(status=status, total=total, claims=load_listed(reader, rows))
    if not total:
        result.notes.append(f"No {'claim' if kind is None else kind} is {status} in this scope.")
    return reader.finish(result, total=total, next_offset=offset + limit if total > offset + limit else None)


def load_listed(
    reader: Reader, rows: Sequence[Mapping[str, Term]], rules: Mapping[str, Rule] | None = None
) -> list[ListedClaim]:
    """Load the claims of rows with ``claim``, ``graph`` and ``kind`` (a class), in their order.

    `rules` are their properties, if the caller has loaded them.
    """
    if rules is None:
        rules = load_rules(reader, {iri_of(row["claim"]): iri_of(row["graph"]) for row in rows})
    kinds = {(iri := iri_of(row["claim"])): _find_kind(iri, iri_of(row["kind"])) for row in rows}
    names, _ = load_code_names(reader, {iri: _CLASSES[kinds[iri]].value for iri in rules}, {})
    labels = _load_labels(reader, rules.values())
    reviewers = _load_reviewers(reader, rules)
    asserted = load_asserted(reader, rules.values())
    threshold = reader.kg.settings.rule_confidence
    units = {rule.one(KG.definedIn) or rule.one(RDF.subject) or "" for rule in rules.values() if rule.spans()}
    query = bind(TEXTS, units=[NamedNode(iri) for iri in sorted(units)])
    texts = {iri_of(row["unit"]): term_text(row["text"]) for row in reader.rows("their texts", query)} if units else {}
    listed = []
    for iri, rule in rules.items():
        is_edge = kinds[iri] in _EDGES
        edge = rule.one(RDF.subject), rule.one(RDF.predicate), rule.one(RDF.object)
        rejected = rule.one(KG.withdrawn)
        spans = rule.spans()
        words = [span.text for span in spans]
        section = rule.one(KG.definedIn)
        listed.append(
            ListedClaim(
                id=iri,
                kind=kinds[iri],
                statement=_state_withdrawn(rejected, kinds[iri])
                if rejected
                else _state(rule, kinds[iri], names, labels),
                confidence=float(rule.one(KG.confidence) or 0),
                method=rule.one(KG.method) or "",
                reported=edge in asserted if is_edge else rejected is None and is_reported(rule, threshold),
                words=clipped(" … ".join(words), _WORDS) if words else rule.heading(),
                context=_find_context(texts.get(section or rule.one(RDF.subject) or "", ""), spans),
                section=section or rule.one(RDF.subject),
                reviewed_by=reviewers.get(iri),
                similarity=_number(rule.one(KG.similarity)),
                model=rule.one(KG.model),
            )
        )
    return listed


def _find_context(text: str, spans: Sequence[Span]) -> str | None:
    """Find the line of a text with the first of some spans, cut around it. None if it has no other words."""
    if not spans or text[spans[0].start : spans[0].end] != spans[0].text:
        return None
    start, end = text.rfind("\n", 0, spans[0].start) + 1, text.find("\n", spans[0].end)
    end = len(text) if end < 0 else end
    line = text[max(start, spans[0].start - _WORDS // 2) : min(end, spans[0].end + _WORDS // 2)].strip()
    return None if line == spans[0].text.strip() else clipped(line, 2 * _WORDS)


def _find_kind(claim: str, class_: str) -> Kind:
    found = next((kind for kind, prefix in PREFIXES.items() if claim.startswith(prefix)), None)
    kind: Kind = found or _NAMES_OF[class_]  # type: ignore[assignment]
    return kind


def _state(rule: Rule, kind: str, names: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """State a claim in one line."""
    if kind == "definition":
        return clipped(f"{rule.one(SKOS.prefLabel)}: {rule.one(SKOS.definition)}", _WORDS)
    if kind == "district":
        district = rule.one(KG.namesDistrict) or ""
        code, label = code_of(district), labels.get(district, "")
        return f"{code} is a district" + (f": {label}" if label not in ("", code) else "")
    if kind in _EDGES:
        subject, value = (labels.get(node, node) for node in (rule.one(RDF.subject) or "", rule.one(RDF.object) or ""))
        relation = (rule.one(RDF.predicate) or "").replace("#", "/").rpartition("/")[2]
        return f"{subject} {relation} {value}"
    return names.get(rule.iri, rule.iri)


def _state_withdrawn(text: str, kind: str) -> str:
    """State a rejected finding in one line."""
    said: dict[str, str] = {}
    for triple in parse_withdrawn(text):
        value = triple.object.value if isinstance(triple.object, NamedNode | Text) else ""
        name = triple.predicate.value
        is_use = isinstance(triple.subject, NamedNode) and triple.subject.value.startswith(_LAND_USES)
        said[f"use {name}" if is_use else name] = value
    district = code_of(said[KG.district.value]) if KG.district.value in said else None
    place = f" in {district}" if district else ""
    if kind == "use":
        level = said.get(KG.permissionLevel.value, said.get(KG.rawLevel.value, ""))
        return f"{said.get(f'use {SKOS.prefLabel.value}', '')}{place}: {code_of(level)}"
    if kind == "standard":
        bound = f"{code_of(said[KG.bound.value])} " if KG.bound.value in said else ""
        return f"{bound}{code_of(said.get(KG.standardType.value, ''))}{place}: {said.get(KG.rawValue.value, '')}"
    if kind == "district":
        return f"{code_of(said.get(KG.namesDistrict.value, ''))} is a district"
    return clipped(f"{said.get(SKOS.prefLabel.value)}: {said.get(SKOS.definition.value)}", _WORDS)


def _load_labels(reader: Reader, rules: Iterable[Rule]) -> dict[str, str]:
    """Load the names of the subjects and objects of claims, and of named districts."""
    parts = (RDF.subject, RDF.object, KG.namesDistrict)
    nodes = {node for rule in rules for part in parts if (node := rule.one(part)) is not None}
    if not nodes:
        return {}
    rows = reader.rows("their names", bind(NAMES, nodes=[NamedNode(iri) for iri in sorted(nodes)]))
    return {iri_of(row["node"]): term_text(row["label"]) for row in rows if "label" in row}


def _load_reviewers(reader: Reader, claims: Iterable[str]) -> dict[str, list[str]]:
    """Load the names of the people who reviewed each claim."""
    nodes = [NamedNode(iri) for iri in sorted(claims)]
    if not nodes:
        return {}
    query = bind(REVIEWERS, claims=nodes, curated=Text(CURATED))
    found: dict[str, set[str]] = defaultdict(set)
    for row in reader.rows("who reviewed them", query, all_graphs=True):
        if "agent" in row:
            found[iri_of(row["claim"])].add(code_of(iri_of(row["agent"])))
        else:
            found[iri_of(row["claim"])] |= set(load_writers(reader.kg.ask, NamedNode(iri_of(row["graph"]))))
    return {claim: sorted(names) for claim, names in found.items()}


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def review_claim(
    kg: KnowledgeGraph,
    claim: Annotated[str, Field(max_length=2_000, description="id")],
    verdict: Annotated[Verdict, Field()],
) -> Reviewed:
    """Accept or reject a claim found in a text: a use, standard, citation, relation and so on.

    Use after reading its words; it needs the scope `curate`. A rejection is final. Returns asserted: whether it holds.
    Example: review_claim(claim="https://w3id.org/quadcite/id/st/9f2c", verdict="reject").
    Next: `list_claims`.
    """
    node = parse_iri(claim.strip().removeprefix("<").removesuffix(">"))
    reader = Reader(kg)
    rows = reader.rows("the claim", bind(CLAIM, claim=node), all_graphs=True)
    found = next((row for row in rows if iri_of(row["graph"]).startswith(EXTRACTED)), None)
    if found is None:
        if (finding := _load_finding(reader, node)) is not None:
            return _review_finding(reader, finding, verdict)
        own = " It was written by a user, not extracted, and cannot be reviewed." if rows else ""
        raise NotFoundError(f"Unknown claim {name_or_quote(claim)}.{own} list_claims and kg_find_related return ids.")
    if "object" not in found:
        raise InvalidInputError(f"{quoted(claim)} has no resolved citation, so it has no edge to accept or reject.")
    sender = SENDER.get()
    UserGraphs(kg).post(REVIEWS, [Triple(REVIEWS, _PREDICATES[verdict], node)], sender)
    subject, predicate = NamedNode(iri_of(found["subject"])), NamedNode(iri_of(found["predicate"]))
    value = found["object"] if isinstance(found["object"], Text) else NamedNode(iri_of(found["object"]))
    stands = kg.ask_sources(bind(STANDS, subject=subject, predicate=predicate, object=value, prov=PROV_GRAPH))
    result = Reviewed(
        claim=node.value,
        verdict=verdict,
        kind=_find_edge_kind(kg, node),
        subject=subject.value,
        predicate=predicate.value,
        object=value.value,
        asserted=bool(stands),
        reviewed_by=sender.name,
        graph=REVIEWS.value,
    )
    result.notes += _note_final(kg, node, verdict)
    if verdict == "reject" and result.asserted:
        result.notes.append("Another claim or a source still asserts the edge.")
    return reader.finish(result)


def _find_edge_kind(kg: KnowledgeGraph, claim: NamedNode) -> Kind:
    kinds: tuple[Kind, ...] = ("alignment", "relation", "link")
    asked = "ASK { $claim a $kind }"
    return next((kind for kind in kinds if kg.ask(bind(asked, claim=claim, kind=_CLASSES[kind]))), "citation")


def _note_final(kg: KnowledgeGraph, claim: NamedNode, verdict: Verdict) -> list[str]:
    verdicts = Verdicts.load(kg.ask)
    if verdict != "accept" or claim not in verdicts.rejected:
        return []
    where = ", ".join(map(str, sorted(verdicts.rejected[claim], key=str)))
    return [f"The claim was rejected in {where}. A rejection is final."]


def _load_finding(reader: Reader, node: NamedNode) -> Finding | None:
    """Load the finding with this IRI, as it was before it was rejected. None if there is none."""
    query = bind(FINDING, claim=node, kinds=[*KINDS, KG.RejectedFinding])
    graphs = [iri_of(row["graph"]) for row in reader.rows("the finding", query, all_graphs=True)]
    name = next((graph for graph in graphs if graph.startswith(EXTRACTED)), None)
    if name is None:
        return None
    graph = NamedNode(name)
    rows = reader.rows("the statements of the finding", bind(PARTS, graph=graph, claim=node), all_graphs=True)
    quads = [Quad(named_node(row["s"]), named_node(row["p"]), row["o"], graph) for row in rows]
    return load_finding(quads, node)


def _review_finding(reader: Reader, finding: Finding, verdict: Verdict) -> Reviewed:
    kg, sender = reader.kg, SENDER.get()
    if finding.kind == "district" and verdict == "reject":
        query = bind(STATED_IN, district=NamedNode(finding.district or ""), sources=Text(SOURCED))
        for row in reader.rows("sources that state the district", query):
            code = name_or_quote(code_of(finding.district or ""))
            raise InvalidInputError(
                f"{code} is stated by {iri_of(row['graph'])}, not only found in text. Correct that source."
            )
    predicate = _PREDICATES[verdict]
    review = finding.review("accepts" if verdict == "accept" else "rejects")
    attributed = Triple(review, PROV.wasAttributedTo, mint("agent", sender.name))
    UserGraphs(kg).post(REVIEWS, [Triple(review, predicate, finding.node), attributed], sender)
    row = {"claim": finding.node, "graph": finding.graph, "kind": _CLASSES[finding.kind]}
    [listed] = load_listed(reader, [row])
    result = Reviewed(
        claim=finding.node.value,
        verdict=verdict,
        kind=listed.kind,
        statement=listed.statement,
        asserted=listed.reported,
        reviewed_by=sender.name,
        graph=REVIEWS.value,
    )
    result.notes += _note_final(kg, finding.node, verdict)
    if verdict == "reject" and finding.kind == "use":
        terms = {"district": NamedNode(finding.district or ""), "use": NamedNode(finding.one(KG.landUse) or "")}
        others = reader.rows("other permissions of the use", bind(SAME_USE, claim=finding.node, **terms))
        if others:
            ids = ", ".join(iri_of(row["rule"]) for row in others)
            result.notes.append(f"The district has other permissions for this use, which remain: {ids}.")
    return reader.finish(result)
