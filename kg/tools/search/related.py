"""The tool `related`: texts of other domains on the concepts and laws of a text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.evidence import build_evidence, load_units
from kg.retrieval.filters import Scope, compile_scope
from kg.retrieval.reader import Reader, bounded, iri_of
from kg.retrieval.results import Evidence, Identifier, Layout, PlaceName, Result, SearchFilters
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.text import quoted
from kg.tools.search.identifiers import complete_ids, explain_missing, parse_id, resolve_ids
from kg.vocabulary import KG, iri_prefix

DOMAINS: Final[Mapping[str, NamedNode]] = {
    "climate": KG.Passage,
    "parliament": KG.SpeechChunk,
    "zoning": KG.CodeSection,
    "files": KG.Chunk,
}
"""The domains with the class of their text units."""

MOST_PER_DOMAIN: Final = 20
UNITS_READ: Final = 2_000
"""Maximum number of text units of the given id whose concepts and laws are read. Truncation is reported."""
LINKS_READ: Final = 20_000
"""Maximum number of links to text units that are ranked. Links to the most frequent concepts are left out first."""
_LAWS: Final = iri_prefix("law")
_CONCEPT: Final = "concept"
_LAW: Final = "law"

# The concepts of the text itself are those that it mentions; texts are related by these and narrower ones (kg:about).
# The laws are found by their class, so that every kind of citation counts (eli:cites and its subproperties).
TOPICS: Final = """
SELECT DISTINCT ?unit ?kind ?topic WHERE {
  { VALUES ?unit { $units } ?unit kg:mentions ?topic . ?topic a skos:Concept BIND("concept" AS ?kind) }
  UNION { VALUES ?unit { $units } ?unit ?cites ?topic . ?topic a kg:ExternalLaw BIND("law" AS ?kind) }
  UNION { VALUES ?unit { $units } ?unit eli:cites ?topic . ?topic a kg:PolicyFamily BIND("law" AS ?kind) }
  UNION {
    VALUES ?unit { $units } ?unit dcterms:isPartOf ?document . ?document eli:is_member_of|kg:isLaw ?topic
    BIND("law" AS ?kind)
  }
  UNION {
    VALUES ?unit { $units } ?unit dcterms:isPartOf ?document . ?document eli:is_member_of ?family .
    ?family kg:isLaw ?topic BIND("law" AS ?kind)
  }
}"""

# Texts cite a family by its title, and the law that it is: one topic.
FAMILIES_THAT_ARE_LAWS: Final = """
SELECT DISTINCT ?family ?law WHERE {
  { VALUES ?law { $laws } ?family kg:isLaw ?law . ?family a kg:PolicyFamily }
  UNION { VALUES ?family { $laws } ?family kg:isLaw ?law . ?family a kg:PolicyFamily }
}"""

COUNTS: Final = """
SELECT ?topic (COUNT(DISTINCT ?unit) AS ?units) WHERE {
  VALUES ?topic { $topics } ?unit kg:about|eli:cites ?topic
} GROUP BY ?topic"""

# Sections of a code that are part of nothing are their own documents.
LINKED: Final = """
SELECT DISTINCT ?topic ?unit ?document ?class WHERE {
  {
    { VALUES ?topic { $concepts } ?unit kg:about ?topic }
    UNION { VALUES ?topic { $laws } ?unit ?cites ?topic }
    UNION { VALUES ?topic { $laws } ?member eli:is_member_of|kg:isLaw ?topic . ?unit dcterms:isPartOf ?member }
  }
  VALUES ?class { $classes } ?unit a ?class
  OPTIONAL { ?unit dcterms:isPartOf ?whole } BIND(COALESCE(?whole, ?unit) AS ?document)
  #DOCUMENT
} LIMIT $most"""

LAW_NAMES: Final = """
SELECT ?law (MIN(?name) AS ?label) WHERE {
  VALUES ?law { $laws } ?law dcterms:identifier|dcterms:title ?name
} GROUP BY ?law"""


class SharedTopic(BaseModel):
    """A concept or law that the text shares with texts of other domains."""

    id: str
    kind: str = Field(description="concept or law")
    label: str
    units: dict[str, int] = Field(description="Number of text units by domain")


class RelatedText(Evidence):
    """A text unit that shares a concept or law."""

    domain: str


class RelatedResult(Result):
    """Texts of other domains on the same concepts and laws."""

    layout: ClassVar[Layout] = Layout(paged=("evidence", "shared"))

    totals: dict[str, int] = Field(description="Number of text units that share a concept or law, by domain")
    evidence: list[RelatedText]
    shared: list[SharedTopic]


@dataclass(slots=True)
class _Topics:
    """The concepts and laws of the given text, with the number of its text units that have each."""

    concepts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    laws: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    law_of: dict[str, str] = field(default_factory=dict)
    """The law that a family is. Both are among `laws`, and are one topic."""

    def __len__(self) -> int:
        return len(self.concepts) + len(self.laws)


@dataclass(slots=True)
class _Linked:
    """The text units that share a topic."""

    topics: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The shared topics of each unit."""
    domains: dict[str, str] = field(default_factory=dict)
    cut: bool = False


def related(
    kg: KnowledgeGraph,
    id: Identifier,
    place: Annotated[list[PlaceName] | None, Field(max_length=300)] = None,
    limit: Annotated[int, Field(ge=1, le=MOST_PER_DOMAIN, description="Texts of each domain")] = 3,
) -> RelatedResult:
    """List texts of other domains on the concepts and laws of a text: laws, speeches and sections of codes.

    Use to get from a rule to the promise and the law behind it. `id` is of a passage, document, speech, section,
    concept or law. Returns totals, evidence{domain, ...}, shared{id, kind, label, units}.
    Example: related(id="cpr://concept/Q1009").
    Next: `fetch` the ids.
    """
    bounded("limit", limit, 1, MOST_PER_DOMAIN)
    reader = Reader(kg)
    scope, notes = compile_scope(reader, SearchFilters(place=place or []))
    units, topics = _load_topics(reader, id, notes)
    _join_families(reader, topics)
    own = _domains_of(reader, units)
    wanted = {name: node for name, node in DOMAINS.items() if name not in own}
    reader.start_selection()
    linked = _load_linked(reader, topics, wanted, scope, notes) if len(topics) else _Linked()
    if not len(topics):
        notes.append(f"{id} mentions no known concept and cites no known law. `search` finds texts by meaning.")
    elif not linked.domains:
        notes.append("No text there mentions its concepts or cites its laws.")
    return reader.finish(
        RelatedResult(
            totals={name: [*linked.domains.values()].count(name) for name in wanted},
            evidence=_rank(reader, linked, wanted, limit),
            shared=_describe(reader, topics, linked, wanted),
            notes=notes,
        ),
        completeness="truncated" if linked.cut or len(units) > UNITS_READ else "complete",
    )


def _load_topics(reader: Reader, name: str, notes: list[str]) -> tuple[list[str], _Topics]:
    """Load the text units of an id and their concepts and laws; a concept or law is its own topic.

    Raises NotFoundError for an unknown id.
    """
    topics = _Topics()
    concepts = load_concepts(reader.kg).named(name)
    if len(concepts) == 1:
        topics.concepts[concepts[0].iri] = 1
        return [], topics
    [name] = complete_ids(reader, [name])
    resolved = resolve_ids(reader, [name])
    kinds = resolved.kinds.get(name, [])
    if not kinds and name not in resolved.found:
        raise NotFoundError(f"id: Unknown id {quoted(name)}. {explain_missing(reader, name, resolved)}")
    law = parse_id(name)
    if law is not None and law.value.startswith(_LAWS):  # its own texts are among those that it is related to
        topics.laws[law.value] = 1
        return [], topics
    units = resolved.found.get(name, [])
    if len(units) > UNITS_READ:
        notes.append(f"Only the first {UNITS_READ} of its {len(units):,} texts were read. Pass the id of a part.")
    if units:
        nodes = [NamedNode(iri) for iri in units[:UNITS_READ]]
        for row in reader.rows("concepts and laws of the text", bind(TOPICS, units=nodes), declared=("unit",)):
            kept = topics.concepts if term_text(row["kind"]) == _CONCEPT else topics.laws
            kept[iri_of(row["topic"])] += 1
    return units, topics


def _join_families(reader: Reader, topics: _Topics) -> None:
    """Add the laws that the families among the topics are, and the families that are the laws among them."""
    rows = (
        reader.rows("families that are laws", bind(FAMILIES_THAT_ARE_LAWS, laws=_nodes(topics.laws)))
        if topics.laws
        else ()
    )
    for row in rows:
        family, law = iri_of(row["family"]), iri_of(row["law"])
        number = max(topics.laws.get(family, 0), topics.laws.get(law, 0))
        topics.laws[family] = topics.laws[law] = number
        topics.law_of[family] = law


def _domains_of(reader: Reader, units: Sequence[str]) -> set[str]:
    """Find the domain of text units. All units of an id are of one domain."""
    if not units:
        return set()
    query = "SELECT DISTINCT ?class WHERE { VALUES ?unit { $units } ?unit a ?class }"
    rows = reader.rows("class of the text", bind(query, units=[NamedNode(units[0])]), declared=("unit",))
    classes = {iri_of(row["class"]) for row in rows}
    return {name for name, node in DOMAINS.items() if node.value in classes}


def _load_linked(
    reader: Reader, topics: _Topics, wanted: Mapping[str, NamedNode], scope: Scope, notes: list[str]
) -> _Linked:
    """Load the text units of the domains `wanted` that share a topic, rare topics before frequent ones."""
    nodes = [NamedNode(iri) for iri in sorted({*topics.concepts, *topics.laws})]
    counts = {
        iri_of(row["topic"]): int(term_text(row["units"]))
        for row in reader.rows("frequency of the topics", bind(COUNTS, topics=nodes))
        if "topic" in row
    }
    chosen, total, left_out = set[str](), 0, list[str]()
    for topic in sorted((node.value for node in nodes), key=lambda iri: (counts.get(iri, 0), iri)):
        if chosen and total + counts.get(topic, 0) > LINKS_READ:
            left_out.append(topic)
            continue
        chosen.add(topic)
        total += counts.get(topic, 0)
    names = {node.value: name for name, node in wanted.items()}
    query = scope.compile(
        LINKED,
        concepts=_nodes(chosen & topics.concepts.keys()),
        laws=_nodes(chosen & topics.laws.keys()),
        classes=list(wanted.values()),
        most=LINKS_READ + 1,
    )
    rows = reader.rows("texts that share a topic", query)
    linked = _Linked(cut=len(rows) > LINKS_READ or bool(left_out))
    for row in rows[:LINKS_READ]:
        unit = iri_of(row["unit"])
        topic = iri_of(row["topic"])
        linked.topics[unit].add(topics.law_of.get(topic, topic))
        linked.domains[unit] = names[iri_of(row["class"])]
    if linked.cut:
        notes.append(
            f"Its topics have more than {LINKS_READ} texts; the counts leave some out. Add place, or pass a part."
        )
    return linked


def _nodes(iris: Iterable[str]) -> list[NamedNode]:
    return [NamedNode(iri) for iri in sorted(iris)]


def _rank(reader: Reader, linked: _Linked, wanted: Collection[str], limit: int) -> list[RelatedText]:
    """Rank the text units of each domain by their shared topics; a rare topic weighs more (inverse frequency).

    The domains alternate, so that a result that is cut has texts of each.
    """
    frequency: dict[str, int] = defaultdict(int)
    for shared in linked.topics.values():
        for topic in shared:
            frequency[topic] += 1
    everything = len(linked.topics)
    weights = {topic: math.log(1 + everything / count) for topic, count in frequency.items()}
    scores = {unit: round(sum(weights[topic] for topic in shared), 4) for unit, shared in linked.topics.items()}
    by_domain: dict[str, list[str]] = {name: [] for name in wanted}
    for unit in sorted(scores, key=lambda unit: (-scores[unit], unit)):
        by_domain[linked.domains[unit]].append(unit)
    page = [units[rank] for rank in range(limit) for units in by_domain.values() if rank < len(units)]
    loaded = load_units(reader, page)
    found = build_evidence(reader, [loaded[unit] for unit in page if unit in loaded], scores)
    return [RelatedText(domain=linked.domains[each.id], **dict(each)) for each in found]


def _describe(reader: Reader, topics: _Topics, linked: _Linked, wanted: Collection[str]) -> list[SharedTopic]:
    """Describe the shared topics with their counts by domain, the rarest first."""
    counts: dict[str, dict[str, int]] = {}
    for unit, shared in linked.topics.items():
        for topic in shared:
            by_domain = counts.setdefault(topic, dict.fromkeys(wanted, 0))
            by_domain[linked.domains[unit]] += 1
    laws = _nodes(counts.keys() & topics.laws.keys())
    names = {
        iri_of(row["law"]): term_text(row["label"])
        for row in (reader.rows("names of the laws", bind(LAW_NAMES, laws=laws)) if laws else ())
        if "law" in row
    }
    concepts = load_concepts(reader.kg)
    return [
        SharedTopic(
            id=topic,
            kind=_CONCEPT if topic in topics.concepts else _LAW,
            label=concepts.label_of(topic) or names.get(topic, topic),
            units=counts[topic],
        )
        for topic in sorted(counts, key=lambda topic: (sum(counts[topic].values()), topic))
    ]
