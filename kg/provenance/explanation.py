"""Explain why a quad exists: its graph, the run that wrote it, and the source file and row.

A quad that a rule computed is explained by the rule and its inputs. One that follows from claims is explained by each
claim, with the words that it rests on, compared with the stored text.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Triple

from kg.errors import NotFoundError
from kg.provenance.claims import (
    Claim,
    Review,
    Words,
    build_claims_query,
    build_queries,
    expect_claims,
    load_claim,
    load_claims_of,
    load_reviews,
    load_words,
)
from kg.provenance.load_records import NAMED, RULES, find_row, format_rows, parse_rows
from kg.provenance.promotion import PROMOTED
from kg.provenance.reader import Records, first_text, load_description, load_descriptions, load_run
from kg.provenance.shipped import find_shipped_files
from kg.provenance.superclasses import SUPERCLASS, load_premises
from kg.provenance.topics import ABOUT, load_premises_of_topic
from kg.sparql.terms import bind
from kg.store.ownership import is_shared_graph, is_user_graph
from kg.store.protocol import Query, Term, named_node, select, term_text
from kg.vocabulary import (
    ABOUT_GRAPH,
    BASE,
    CATALOG_GRAPH,
    EXTRACTED,
    KG,
    PROV,
    PROV_GRAPH,
    RDF,
    RDFS,
    SCHEMA,
    SHIPPED_GRAPHS,
    SOURCED,
    SUPERCLASS_GRAPH,
    curie,
    iri_prefix,
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that a graph was read from."""

    sha256: str
    locations: tuple[str, ...]
    revision: str | None
    retrieved_at: str | None
    superseded_at: str | None
    """Time at which a later load found different content at this location; None while it is current."""
    rows: str | None
    """The data rows (1-based) of the whole record, each once, as in ``1-57,60``."""
    row: int | None = None
    """The data row of the requested text unit."""
    lines: str | None = None
    """First and last line in the file, if the graph records them."""
    pages: str | None = None
    """First and last page in a PDF, counted from 1."""
    sent_by: str | None = None
    """The sender, if it is the payload of a request."""
    origin: tuple[Source, ...] = ()
    """If this source is a graph: its own sources."""

    def lines_of_text(self, indent: str = "") -> list[str]:
        """Describe it for people, line by line, with its origin."""
        verb = "computed from" if self.locations and self.locations[0].startswith(_GRAPHS) else "read from"
        lines = [f"  {verb:<11} {' = '.join(self.locations) or 'a file at an unknown location'}"]
        if self.row is not None:
            lines.append(f"    row       {self.row}")
        elif self.lines is not None:
            lines.append(f"    lines     {self.lines}")
        elif self.pages is not None:
            lines.append(f"    pages     {self.pages}")
        elif self.rows is not None:
            lines.append(f"    rows      {self.rows}")
        lines.append(f"    sha256    {self.sha256}")
        if self.sent_by is not None:
            lines.append(f"    sent by   {self.sent_by}, {self.retrieved_at}")
        if self.revision is not None:
            lines.append(f"    revision  {self.revision}")
        if self.superseded_at is not None:
            lines.append(f"    replaced  different content since {self.superseded_at}")
        return [indent + line for line in lines] + [
            line for each in self.origin for line in each.lines_of_text(indent + "  ")
        ]


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """The rule that computed a graph."""

    iri: str
    label: str | None
    threshold: str | None
    """Minimum confidence of the claims that it accepts."""

    def __str__(self) -> str:
        name = self.iri.rpartition("/")[2]
        least = f" (at a confidence of {self.threshold})" if self.threshold is not None else ""
        return f"{name}: {self.label}{least}" if self.label else name


@dataclass(frozen=True, slots=True)
class Ceded:
    """Statements of a user graph that are in another graph, which states the same."""

    by: str
    """The user graph."""
    to: str
    statements: int
    sent_by: tuple[str, ...] = ()
    """The people who sent them."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why some quads exist: their graph, who wrote it, when, and from which sources."""

    about: str
    """The IRI or the triple to explain, as N-Triples terms."""
    graph: str
    kind: str
    """``asserted``, ``extracted``, ``generated``, ``curated``, ``user``, ``derived`` or ``inferred``; ``provenance``
    for graph/prov itself; ``catalog`` for graph/catalog; ``undescribed`` if nothing is recorded."""
    quads: int
    """Number of quads in the graph about the IRI."""
    run: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    started_at: str | None = None
    loaded_at: str | None = None
    configuration: dict[str, str] = field(default_factory=dict)
    content_sha256: str | None = None
    source_sha256: str | None = None
    redacted: tuple[str, ...] = ()
    """The kinds and numbers of the secrets that were replaced in the record, or ``off``."""
    sources: tuple[Source, ...] = ()
    words: tuple[Words, ...] = ()
    """The evidence in the text, if it was extracted from text and is not a claim."""
    reviews: tuple[Review, ...] = ()
    """The reviews of it, if it was found in text and is not a claim."""
    forms: tuple[str, ...] = ()
    """The forms of the text by which the speaker of its words was decided, where no markup names one."""
    rule: AppliedRule | None = None
    """The rule, if it was computed from other graphs."""
    claims: tuple[Claim, ...] = ()
    """The claims that state the triple, or the claim itself."""
    more_claims: bool = False
    """Whether there are more claims than listed."""
    also_stated: tuple[Ceded, ...] = ()
    """The people who stated the triple before this graph did (`kg.store.ownership`)."""
    ceded: tuple[Ceded, ...] = ()
    """For a user graph: its statements that other graphs state too, and contain in its place."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            self.about,
            f"  graph       {self.graph} ({self.kind}, {self.quads} quad{'' if self.quads == 1 else 's'})",
        ]
        if self.kind == "provenance":
            lines.append("  written by  the store, with every commit")
        if self.kind == "catalog":
            lines.append("  counted by  the store, with every commit")
        if self.kind == "undescribed":
            lines.append("  written by  unknown: graph/prov does not describe this graph")
        if self.agent is not None:
            lines.append(f"  written by  {_name_agent(self.agent, self.agent_version)}, run {self.run}")
        if self.loaded_at is not None:
            lines.append(f"  loaded      {self.loaded_at} (the run started {self.started_at})")
        if self.configuration:
            lines.append("  with        " + ", ".join(f"{key}={value}" for key, value in self.configuration.items()))
        lines += [f"  by form     {form}" for form in self.forms]
        if self.rule is not None:
            lines.append(f"  rule        {self.rule}")
        lines += [f"  in words    {words}" for words in self.words]
        lines += [f"  reviewed    {each}" for each in self.reviews]
        for claim in self.claims:
            lines += _describe_claim(claim)
        if self.more_claims:
            lines.append(f"  claims      more than these {len(self.claims)}")
        elif not self.claims and self.graph.startswith(PROMOTED) and self.rule is not None and self.quads == 1:
            lines.append("  claims      none of them states this triple")
        for source in self.sources:
            lines += source.lines_of_text()
        lines += [f"  also said   by {', '.join(each.sent_by) or 'a user'} in {each.by}" for each in self.also_stated]
        lines += [f"  now in      {each.to}: {each.statements} more, which it states too" for each in self.ceded]
        if self.redacted:
            lines.append(f"  redacted    {', '.join(self.redacted)}")
        if self.content_sha256 is not None:
            lines.append(f"  graph hash  sha256 {self.content_sha256}")
        return "\n".join(lines)


def _name_agent(name: str, version: str | None) -> str:
    return name if version is None else f"{name} {version}"


def _describe_claim(claim: Claim) -> list[str]:
    """Describe a claim for people, line by line."""
    facts = [
        None if claim.confidence is None else f"confidence {claim.confidence:g}",
        claim.method,
        None if claim.match_type is None else f"matches the {claim.match_type}",
        *map(str, claim.reviews),
        None if claim.live else "does not count",
    ]
    lines = [f"  claim       {claim.iri}", f"    {', '.join(fact for fact in facts if fact)}"]
    lines += [f"    in words  {words}" for words in claim.words]
    lines += [f"    since     {premise}" for premise in claim.premises]
    lines.append(f"    graph     {claim.graph}")
    if claim.agent is not None:
        agent = _name_agent(claim.agent, claim.agent_version)
        lines.append(f"    by        {agent}, {claim.extracted_at}, run {claim.run}")
    return lines + [line for source in claim.sources for line in source.lines_of_text("  ")]


_GRAPHS: Final = iri_prefix("graph")
MAX_INPUTS: Final = 10
"""Maximum graphs that a computed graph was made from whose own sources are listed."""

GRAPHS_ABOUT: Final = """
SELECT ?graph (COUNT(?p) AS ?quads) WHERE { GRAPH ?graph { $iri ?p ?o } } GROUP BY ?graph"""

GRAPH_SIZE: Final = """
SELECT (COUNT(?s) AS ?quads) WHERE { GRAPH $iri { ?s ?p ?o } }"""

GRAPHS_OF_TRIPLE: Final = """
SELECT ?graph WHERE { GRAPH ?graph { $subject $predicate $object } }"""

MENTION: Final = """
SELECT ?s ?p WHERE { GRAPH ?graph { ?s ?p $iri } } LIMIT 1"""

VALUES_OF: Final = """
SELECT ?o WHERE { GRAPH ?graph { $subject $predicate ?o } } LIMIT 3"""

UNITS_OF: Final = """
SELECT (MIN(?position) AS ?first) (MAX(?position) AS ?last) WHERE {
  GRAPH ?graph { ?unit dcterms:isPartOf $document ; schema:position ?position }
}"""

RANK: Final = """
SELECT (COUNT(?unit) AS ?rank) WHERE {
  GRAPH $graph {
    $iri schema:position ?position . ?unit schema:position ?other FILTER(?other <= ?position)
    FILTER NOT EXISTS { ?unit kg:length ?length }
  }
}"""

PLACE: Final = """
SELECT ?lines ?pages WHERE {
  GRAPH $graph {
    { $iri kg:sourceLines ?lines } UNION { $iri dcterms:isPartOf ?whole . ?whole kg:sourceLines ?lines }
    UNION { $iri schema:pagination ?pages } UNION { $iri dcterms:isPartOf ?whole . ?whole schema:pagination ?pages }
  }
} LIMIT 1"""

FORMS: Final = """
SELECT ?form (COUNT(DISTINCT ?said) AS ?count) (SAMPLE(?name) AS ?first) WHERE {
  GRAPH $graph {
    { BIND($iri AS ?said) ?said kg:attributedByForm ?form }
    UNION { $iri kg:otherVoice ?said . ?said kg:attributedByForm ?form }
    UNION { ?said dcterms:isPartOf $iri ; kg:attributedByForm ?form }
    OPTIONAL { ?said kg:speakerAsRecorded ?name }
  }
} GROUP BY ?form"""

PLACES_OF_RECORD: Final = """
SELECT DISTINCT ?lines ?pages WHERE {
  GRAPH $graph { { ?thing kg:sourceLines ?lines } UNION { ?thing schema:pagination ?pages } }
} LIMIT 2"""

STATED_BEFORE: Final = """
SELECT DISTINCT ?by ?to ?who WHERE {
  GRAPH $prov {
    ?cession rdf:object $object ; rdf:subject $subject ; rdf:predicate $predicate ; kg:cededBy ?by ; kg:cededTo ?to
    OPTIONAL { ?cession prov:wasDerivedFrom ?payload . ?payload prov:wasAttributedTo ?agent . ?agent rdfs:label ?who }
  }
}"""

CEDED_BY: Final = """
SELECT ?to (COUNT(?cession) AS ?count) WHERE {
  GRAPH $prov { ?cession kg:cededBy $graph ; kg:cededTo ?to }
} GROUP BY ?to ORDER BY ?to LIMIT 20"""

KINDS: Final[dict[Term, str]] = {
    KG.AssertedGraph: "asserted",
    KG.ExtractedGraph: "extracted",
    KG.GeneratedGraph: "generated",
    KG.CuratedGraph: "curated",
    KG.UserGraph: "user",
    KG.DerivedGraph: "derived",
    KG.InferredGraph: "inferred",
}


def explain_iri(query: Query, iri: NamedNode) -> list[Explanation]:
    """Explain every graph with `iri` as a subject, source graphs first; if `iri` is a graph, explain that graph.

    For a text unit, includes its row in the file. Raises NotFoundError if no graph has `iri` as a subject.
    """
    query = Records(query)
    query.run(
        [
            bind(GRAPHS_ABOUT, iri=iri),
            bind(GRAPH_SIZE, iri=iri),
            *([bind(CEDED_BY, graph=iri, prov=PROV_GRAPH)] if is_user_graph(iri) else ()),
        ]
    )
    found = {
        named_node(row["graph"]): int(term_text(row["quads"])) for row in select(query, bind(GRAPHS_ABOUT, iri=iri))
    }
    for inferred in (ABOUT_GRAPH, SUPERCLASS_GRAPH):  # it follows from what another graph has
        if len(found) > 1:
            found.pop(inferred, None)
    size = int(term_text(select(query, bind(GRAPH_SIZE, iri=iri)).rows[0][0]))
    ceded = _load_ceded(query, iri) if is_user_graph(iri) else ()
    if ceded and not size:
        return [Explanation(str(iri), iri.value, "user", 0, ceded=ceded)]
    if size:
        found.pop(PROV_GRAPH, None)
        found[iri] = size
    if not found:
        raise NotFoundError(f"No graph contains {iri} as a subject. {_hint_for_iri(query, iri)}")
    _expect(query, iri, found)
    return [
        replace(_explain(query, str(iri), graph, quads, iri), ceded=ceded if graph == iri else ())
        for graph, quads in sorted(
            found.items(), key=lambda item: (not item[0].value.startswith(SOURCED), str(item[0]))
        )
    ]


def explain_triple(
    query: Query, subject: NamedNode, predicate: NamedNode, object_: NamedNode | Literal
) -> list[Explanation]:
    """Explain every graph that contains this triple. Raises NotFoundError with the existing values if none does."""
    query = Records(query)
    query.run(
        [
            bind(GRAPHS_OF_TRIPLE, subject=subject, predicate=predicate, object=object_),
            bind(STATED_BEFORE, subject=subject, predicate=predicate, object=object_, prov=PROV_GRAPH),
            build_claims_query(subject, predicate, object_),
        ]
    )
    graphs = [
        named_node(row["graph"])
        for row in select(query, bind(GRAPHS_OF_TRIPLE, subject=subject, predicate=predicate, object=object_))
    ]
    about = f"{subject} {predicate} {object_}"
    if not graphs:
        values = select(query, bind(VALUES_OF, subject=subject, predicate=predicate))
        others = ", ".join(str(row["o"]) for row in values)
        hint = f"Existing values: {others}." if others else f"{subject} has no {curie(predicate.value)}."
        raise NotFoundError(f"No graph contains {about}. {hint}")
    _expect(query, subject, graphs)
    before = _load_stated_before(query, subject, predicate, object_)
    triple = Triple(subject, predicate, object_)
    found = [
        replace(
            _explain_superclass(query, subject, object_)
            if graph == SUPERCLASS_GRAPH
            else _explain_topic(query, subject, object_)
            if graph == ABOUT_GRAPH and isinstance(object_, NamedNode)
            else _explain(query, about, graph, 1, subject, triple),
            also_stated=tuple(each for each in before if each.to == graph.value),
        )
        for graph in sorted(graphs, key=lambda graph: graph.value)
    ]
    if not any(each.kind in ("derived", "extracted") for each in found):
        return found
    claims, more = load_claims_of(query, subject, predicate, object_)
    _expect_sources(query, claims)
    stated = tuple(replace(claim, sources=_load_claim_sources(query, claim)) for claim in claims)
    return [
        replace(each, words=() if stated else each.words, claims=stated, more_claims=more)
        if each.kind in ("derived", "extracted")
        else each
        for each in found
    ]


def _expect(query: Records, subject: NamedNode, graphs: Iterable[NamedNode]) -> None:
    """Load in few requests what `_explain` reads of `subject` in `graphs`, and of the graphs that these are made of."""
    described = [graph for graph in graphs if graph not in (PROV_GRAPH, CATALOG_GRAPH)]
    query.load(described)
    extracted = [(subject, graph) for graph in described if graph.value.startswith(EXTRACTED)]
    asked: list[str] = []
    for graph, description in query.describe(described).items():
        about, spans, reviews = build_queries(subject, graph)
        is_asserted = KG.AssertedGraph in description[RDF.type]
        asked += [spans, *_ask_places([(graph, subject)], *([FORMS] if is_asserted else ()))]
        asked += [about, reviews] if graph.value.startswith(EXTRACTED) else ()
    query.run(asked)
    expect_claims(query, extracted)
    claims = [load_claim(query, *pair) for pair in extracted]
    _expect_sources(query, [claim for claim in claims if claim is not None])
    _expect_inputs(query, described)


def _expect_sources(query: Query, claims: Iterable[Claim]) -> None:
    """Load in few requests what `_load_claim_sources` reads."""
    texts = {
        (NamedNode(words.graph), NamedNode(words.unit)) for claim in claims for words in claim.words if words.graph
    }
    if isinstance(query, Records):
        query.load({graph for graph, _ in texts})
        query.run(_ask_places(sorted(texts, key=str)))
        _expect_inputs(query, {graph for graph, _ in texts})


def _expect_inputs(query: Records, graphs: Iterable[NamedNode]) -> None:
    """Load in few requests what `_load_origin` reads of the graphs that `graphs` were computed from."""
    level, seen = set(graphs), set[NamedNode]()
    while level:
        seen |= level
        level = {
            term
            for description in query.describe(level).values()
            for term in description[PROV.wasDerivedFrom][:MAX_INPUTS]
            if isinstance(term, NamedNode) and term.value.startswith(_GRAPHS) and term not in seen
        }
        query.load(level)
        query.run(_ask_places([(graph, graph) for graph in sorted(level, key=str)], PLACES_OF_RECORD))


def _ask_places(pairs: Sequence[tuple[NamedNode, NamedNode]], *more: str) -> Iterator[str]:
    """Build the queries for the places of nodes in graphs, and `more` queries of a graph and a node."""
    for graph, iri in pairs:
        for template in (RANK, PLACE, *more):
            yield bind(template, graph=graph, **({"iri": iri} if "$iri" in template else {}))


def _load_stated_before(
    query: Query, subject: NamedNode, predicate: NamedNode, object_: NamedNode | Literal
) -> list[Ceded]:
    """Load the user graphs that stated a triple before the graph that now contains it, with their senders."""
    text = bind(STATED_BEFORE, subject=subject, predicate=predicate, object=object_, prov=PROV_GRAPH)
    who: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in select(query, text):
        who[term_text(row["by"]), term_text(row["to"])] |= {term_text(row["who"])} if "who" in row else set()
    return [Ceded(by, to, 1, tuple(sorted(names))) for (by, to), names in sorted(who.items())]


def _load_ceded(query: Query, graph: NamedNode) -> tuple[Ceded, ...]:
    """Load how many statements of a user graph are in other graphs."""
    rows = select(query, bind(CEDED_BY, graph=graph, prov=PROV_GRAPH))
    return tuple(Ceded(graph.value, term_text(row["to"]), int(term_text(row["count"]))) for row in rows if "to" in row)


def _explain_superclass(query: Records, subject: NamedNode, anchor: NamedNode | Literal) -> Explanation:
    """Explain that `subject` has the superclass `anchor`: the rule, the classes that it follows from, their sources."""
    found = load_premises(query, subject, anchor)
    _expect(query, subject, {graph for _, graph in found})
    premises = [_explain(query, "", graph, 1, subject) for _, graph in found]
    said = " and ".join(f"{curie(name.value)} in {graph.value}" for name, graph in found)
    above = " and ".join(f"{curie(name.value)} rdfs:subClassOf {curie(anchor.value)}" for name, _ in found)
    explained = _explain(query, f"{subject} {RDF.type} {anchor}", SUPERCLASS_GRAPH, 1, subject)
    return replace(
        explained,
        loaded_at=premises[0].loaded_at if premises else None,
        started_at=premises[0].started_at if premises else None,
        configuration={"rule": SUPERCLASS.iri.value, "class": said, "ontology": above},
        sources=tuple(source for premise in premises for source in premise.sources),
    )


def _explain_topic(query: Records, unit: NamedNode, topic: NamedNode) -> Explanation:
    """Explain that `unit` is about `topic`: the rule, the concepts that it follows from, their sources."""
    found = load_premises_of_topic(query, unit, topic)
    _expect(query, unit, {graph for _, graph in found})
    premises = [_explain(query, "", graph, 1, unit) for _, graph in found]
    said = " and ".join(f"{curie(concept.value)} in {graph.value}" for concept, graph in found)
    explained = _explain(query, f"{unit} {KG.about} {topic}", ABOUT_GRAPH, 1, unit)
    concepts = dict.fromkeys(concept for concept, _ in found)
    query.run(build_claims_query(unit, KG.mentions, concept) for concept in concepts)
    claims = [claim for concept in concepts for claim in load_claims_of(query, unit, KG.mentions, concept)[0]]
    _expect_sources(query, claims)
    return replace(
        explained,
        loaded_at=premises[0].loaded_at if premises else None,
        started_at=premises[0].started_at if premises else None,
        configuration={"rule": ABOUT.iri.value, "concepts": said},
        sources=tuple(dict.fromkeys(source for premise in premises for source in premise.sources)),
        claims=tuple(replace(claim, sources=_load_claim_sources(query, claim)) for claim in claims),
    )


def _explain(
    query: Query, about: str, graph: NamedNode, quads: int, subject: NamedNode, triple: Triple | None = None
) -> Explanation:
    if graph == PROV_GRAPH:
        return Explanation(about, graph.value, "provenance", quads)
    if graph == CATALOG_GRAPH:  # a dataset, or a part of one, names the run and the sources of its records
        dataset = NamedNode(subject.value.partition("#")[0])
        description = load_descriptions(query, [dataset], CATALOG_GRAPH)[dataset]
        kind = "catalog"
    else:
        description = load_description(query, graph)
        kind = next((KINDS[term] for term in description[RDF.type] if term in KINDS), "undescribed")
    run = load_run(query, description)
    claim = load_claim(query, subject, graph) if kind == "extracted" else None
    return Explanation(
        about=about,
        graph=graph.value,
        kind=kind,
        quads=quads,
        run=run.iri,
        agent=run.agent,
        agent_version=run.agent_version,
        started_at=first_text(run.description, PROV.startedAtTime),
        loaded_at=first_text(run.description, PROV.endedAtTime),
        configuration=json.loads(first_text(run.description, KG.configuration) or "{}"),
        content_sha256=first_text(description, KG.contentSha256),
        source_sha256=first_text(description, KG.sourceSha256),
        redacted=tuple(sorted(term_text(term) for term in description[KG.redacted])),
        sources=_load_shipped_sources(query, graph, description, subject, triple)
        if graph in SHIPPED_GRAPHS
        else _load_sources(query, graph, description, subject),
        words=load_words(query, subject, graph) if claim is None else (),
        reviews=load_reviews(query, subject) if kind == "extracted" and claim is None else (),
        forms=_load_forms(query, graph, subject) if kind == "asserted" else (),
        rule=_load_rule(query, graph, run.description) if kind in ("derived", "inferred") else None,
        claims=() if claim is None else (replace(claim, sources=_load_claim_sources(query, claim)),),
    )


def _load_forms(query: Query, graph: NamedNode, subject: NamedNode) -> tuple[str, ...]:
    """Load the forms by which the speaker of an utterance, of a chunk, or of utterances in a speech was decided."""
    found = []
    for row in select(query, bind(FORMS, graph=graph, iri=subject)):
        if "form" in row:
            count = int(term_text(row["count"]))
            name = f": {term_text(row['first'])}" if "first" in row else ""
            found.append(f"{term_text(row['form'])}{name}{f' and {count - 1} more' if count > 1 else ''}")
    return tuple(sorted(found))


def _load_rule(query: Query, graph: NamedNode, run: Mapping[NamedNode, list[Term]]) -> AppliedRule | None:
    """Load the rule that computed `graph`: of those that its run used, the one that the graph is named after.

    That of a shared graph is `NAMED`.
    """
    used = [term.value for term in run[PROV.used] if isinstance(term, NamedNode) and term.value.startswith(RULES)]
    family = [NAMED.name] if is_shared_graph(graph) else graph.value.removeprefix(_GRAPHS).split("/")[1:2]
    named = [iri for iri in used if [iri.removeprefix(RULES).partition("@")[0]] == family]
    if not named and len(used) != 1:
        return None
    iri = max(named or used)
    described = load_description(query, NamedNode(iri))
    return AppliedRule(iri, first_text(described, RDFS.label), first_text(described, KG.threshold))


def _load_claim_sources(query: Query, claim: Claim) -> tuple[Source, ...]:
    """Load the files of the text that a claim rests on, with the row or lines of the text."""
    found: dict[Source, None] = {}
    texts = {(words.graph, words.unit): None for words in claim.words if words.graph is not None}
    for graph, unit in texts:
        node = NamedNode(graph or "")
        found |= dict.fromkeys(_load_sources(query, node, load_description(query, node), NamedNode(unit)))
    return tuple(found)


def _load_shipped_sources(
    query: Query,
    graph: NamedNode,
    description: Mapping[NamedNode, list[Term]],
    subject: NamedNode,
    triple: Triple | None,
) -> tuple[Source, ...]:
    """Load the shipped files that have `triple`, or quads about `subject`; all of `graph` for the graph itself."""
    found = _load_sources(query, graph, description, subject)
    known = set(find_shipped_files(graph, triple, subject))
    return tuple(source for source in found if source.sha256 in known) or found


def _load_sources(
    query: Query, graph: NamedNode, description: Mapping[NamedNode, list[Term]], subject: NamedNode
) -> tuple[Source, ...]:
    parts: list[tuple[NamedNode, str | None]]
    if description[PROV.qualifiedDerivation]:
        nodes = [named_node(term) for term in description[PROV.qualifiedDerivation]]
        derivations = list(load_descriptions(query, nodes).values())
        derivations.sort(key=lambda derivation: int(first_text(derivation, SCHEMA.position) or 0))
        parts = [
            (named_node(derivation[PROV.entity][0]), first_text(derivation, KG.sourceRows))
            for derivation in derivations
        ]
    else:
        rows = first_text(description, KG.sourceRows)
        parts = [(named_node(term), rows) for term in description[PROV.wasDerivedFrom]]

    rank = int(term_text(select(query, bind(RANK, graph=graph, iri=subject)).rows[0][0])) - 1
    lines, pages = next(map(_to_place, select(query, bind(PLACE, graph=graph, iri=subject))), (None, None))
    numbers = [parse_rows(rows or "") for _, rows in parts]
    place = find_row(rank, numbers) if rank >= 0 else None
    # Not one by one: a graph that a rule computed may have thousands of inputs.
    files = load_descriptions(
        query, [snapshot for number, (snapshot, _) in enumerate(parts) if place is None or place[0] == number]
    )
    sources = []
    for number, (snapshot, rows) in enumerate(parts):
        if place is not None and place[0] != number:
            continue
        file = files[snapshot]
        senders = [
            first_text(load_description(query, named_node(term)), RDFS.label) for term in file[PROV.wasAttributedTo]
        ]
        source = Source(
            sha256=first_text(file, KG.sha256) or first_text(file, KG.contentSha256) or "",
            # A computed graph has another graph as its source, which has no location.
            locations=tuple(sorted(term_text(term) for term in file[KG.location]))
            or ((snapshot.value,) if snapshot.value.startswith(_GRAPHS) else ()),
            revision=first_text(file, KG.datasetRevision),
            retrieved_at=first_text(file, KG.retrievedAt),
            superseded_at=first_text(file, PROV.invalidatedAtTime),
            rows=None if rows is None else format_rows(list(dict.fromkeys(numbers[number]))),
            row=None if place is None else place[1],
            lines=lines if len(parts) == 1 else None,
            pages=pages if len(parts) == 1 else None,
            sent_by=", ".join(sorted(filter(None, senders))) or None,
            origin=_load_origin(query, snapshot, file)
            if number < MAX_INPUTS and snapshot.value.startswith(_GRAPHS)
            else (),
        )
        sources.append(source)
    return tuple(sources)


def _to_place(row: Mapping[str, Term]) -> tuple[str | None, str | None]:
    """Get the lines and the pages of a row."""
    lines, pages = (term_text(row[name]) if name in row else None for name in ("lines", "pages"))
    return lines, pages


def _load_origin(query: Query, graph: NamedNode, description: Mapping[NamedNode, list[Term]]) -> tuple[Source, ...]:
    """Load the sources of `graph`, with the lines or pages of its record if it contains only one."""
    found = _load_sources(query, graph, description, graph)
    places = [_to_place(row) for row in select(query, bind(PLACES_OF_RECORD, graph=graph))]
    if not len(places) == len(found) == 1:
        return found
    return tuple(replace(each, lines=places[0][0], pages=places[0][1]) for each in found)


def _hint_for_iri(query: Query, iri: NamedNode) -> str:
    document, _, fragment = iri.value.partition("#")
    if fragment:
        bounds = select(query, bind(UNITS_OF, document=NamedNode(document))).rows[0]
        if None not in bounds:
            return f"The positions of {document} are {term_text(bounds[0])} to {term_text(bounds[1])}."
    for row in select(query, bind(MENTION, iri=iri)):
        return f"{row['s']} refers to it by {curie(named_node(row['p']).value)}."
    return f"Expected cpr://doc/{{slug}}, a passage cpr://doc/{{slug}}#p={{index}}, or a graph {BASE}graph/... ."
