"""Description of an IRI: its quads in the graphs and the ontology, its parts, references to it, and provenance."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import IndexUnavailableError, InvalidInputError, ModelError, NotFoundError
from kg.fuzzy_names import nearest
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import load_declared_terms, load_ontology
from kg.provenance.superclasses import ANCHORS
from kg.retrieval.attribution import Chunk, load_voices
from kg.retrieval.display_titles import FACTS, build_display_title
from kg.retrieval.evidence import code_of, describe, origin_of
from kg.retrieval.property_names import find_property, load_property_labels
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Provenance, Statement
from kg.sparql.terms import Bindable, bind, is_iri
from kg.store.ownership import is_user_graph
from kg.store.protocol import Term, term_text
from kg.text import escape_controls, quoted
from kg.tools.zoning.name_lookup import load_code_names
from kg.tools.zoning.sections import Table, load_section_tables
from kg.vocabulary import (
    BASE,
    DCTERMS,
    FOAF,
    KG,
    ORG,
    PREFIXES,
    PROV,
    PROV_GRAPH,
    QUDT,
    RDF,
    RDFS,
    SCHEMA,
    SHIPPED_GRAPHS,
    SKOS,
    mint,
    prefixed_name,
    segment,
    slug_of,
)
from kg.zoning_summaries.code_tree import cached_tree

QUADS: Final = 1_000
"""Maximum number of quads about one IRI."""
PAGE: Final = 50
"""Parts, references, or subjects of a graph on one page."""
COUNTED: Final = 10_000
"""Maximum count of references."""
ORIGINS: Final = 20
"""Maximum number of graphs whose provenance is looked up."""
DEPTH: Final = 3
"""Maximum steps from a computed graph to the graphs of sources: edges, claims, text."""
PREVIEW: Final = 2_000
"""Maximum characters of the text of a part."""

_SHORT: Final = 3
"""Letters of the longest words of a slug that say little about a document."""
_MOST_WORDS: Final = 8

ABOUT: Final = """
SELECT DISTINCT ?graph ?property ?value WHERE { GRAPH ?graph { $iri ?property ?value } } LIMIT $limit"""

PARTS: Final = """
SELECT DISTINCT ?graph ?subject ?position WHERE {
  GRAPH ?graph { ?subject dcterms:isPartOf $iri . ?subject schema:position ?position }
} ORDER BY ?position LIMIT $limit OFFSET $offset"""

COUNT_PARTS: Final = """
SELECT (COUNT(*) AS ?count) WHERE {
  { SELECT DISTINCT ?part WHERE { ?part dcterms:isPartOf $iri . ?part schema:position ?position } LIMIT $limit }
}"""

# A chunk can contain words of others than the speaker of the speech: `voices` has the person.
SPOKEN: Final = """
SELECT DISTINCT ?part ?name ?whole ?start ?end WHERE {
  VALUES ?part { $parts }
  { ?part kg:speakerAsRecorded ?name } UNION { ?part dcterms:isPartOf ?whole . ?part kg:start ?start ; kg:end ?end }
}"""

# Sorted within blocks of `COUNTED`: sorting a million references for each page takes too long. The sort key is one
# string, built once per row; ORDER BY on several variables looks each of them up at every comparison.
REFERENCES: Final = """
SELECT ?graph ?subject ?property WHERE {
  { SELECT ?graph ?subject ?property (CONCAT(STR(?graph), " ", STR(?subject), " ", STR(?property)) AS ?place) WHERE {
      GRAPH ?graph { ?subject ?property $iri } FILTER(?property != $apart)
    } LIMIT $block OFFSET $before }
} ORDER BY ?place LIMIT $limit OFFSET $offset"""

COUNTS: Final = """
SELECT ?property (COUNT(*) AS ?count) WHERE {
  { SELECT DISTINCT ?subject ?property WHERE { ?subject ?property $iri } LIMIT $limit }
} GROUP BY ?property"""

USES: Final = """
SELECT DISTINCT ?graph ?subject ?value WHERE { GRAPH ?graph { ?subject $iri ?value } } LIMIT $limit OFFSET $offset"""

HELD: Final = """
SELECT DISTINCT ?subject WHERE { GRAPH $iri { ?subject ?property ?value } } LIMIT $limit OFFSET $offset"""

# By FILTER, after the lookup by subject: see kg/retrieval/evidence.py.
LABELS: Final = """
SELECT DISTINCT ?thing ?property ?label WHERE {
  VALUES ?thing { $things } ?thing ?property ?value
  FILTER(?property IN (rdfs:label, skos:prefLabel, foaf:name, dcterms:title, schema:name, schema:text,
                       dcterms:description, rdf:type, kg:speakerAsRecorded, dcterms:date, kg:debateType,
                       eli:type_subdivision, kg:sectionNumber))
  BIND(IF(?property IN (schema:text, dcterms:description), SUBSTR(?value, 1, $preview), ?value) AS ?label)
}"""

MEMBERSHIPS: Final = """
SELECT ?thing ?member ?organization ?start WHERE {
  VALUES ?thing { $things } ?thing org:member ?member ; org:organization ?organization
  OPTIONAL { ?thing schema:startDate ?start }
}"""
QUANTITIES: Final = """
SELECT ?thing ?number ?unit WHERE {
  VALUES ?thing { $things } ?thing qudt:numericValue ?number OPTIONAL { ?thing qudt:hasUnit ?unit }
}"""

SLUGS_LIKE: Final = """
SELECT DISTINCT ?document WHERE {
  ?document a kg:PolicyDocument FILTER(CONTAINS(STR(?document), $fragment))
} LIMIT 5000"""
EXISTING: Final = """
SELECT ?iri WHERE {
  VALUES ?iri { $iris }
  FILTER(EXISTS { ?iri ?property ?value } || EXISTS { ?subject ?property ?iri })
}"""

_HASH: Final = re.compile("[0-9a-f]{64}")
_SPOKEN: Final = frozenset((KG.Speech.value, KG.SpeechChunk.value))
_TEXTS: Final = (SCHEMA.text, DCTERMS.description)
_NAMES: Final = (RDFS.label, SKOS.prefLabel, FOAF.name, DCTERMS.title, SCHEMA.name, *_TEXTS)
_TITLED: Final = frozenset(
    kind.value
    for kind in (KG.Speech, KG.Sitting, KG.Debate, KG.CodeSection, KG.PolicyDocument, KG.PolicyFamily, KG.File)
)
"""Classes with titles. Without one they are shown by a title for display, not by their text or description."""


@dataclass(frozen=True, slots=True)
class Dereferenced:
    """The description of `iri`. `page` counts from 1, over parts, references, uses and subjects of a graph."""

    iri: str
    generation: int
    quads: Sequence[Quad]
    """Quads about it of all graphs, also of users, each with its graph; the graph of the ontology is the module."""
    cut: bool
    """Whether the quads are truncated."""
    parts: Sequence[Quad]
    """Its parts in order, as ``part dcterms:isPartOf iri``."""
    positions: Mapping[str, str]
    """The position of each part, by its IRI; for a section of a code its number."""
    many: int
    """The number of parts, at most `COUNTED`."""
    kinds: Mapping[str, str]
    """A class of each IRI in this description that has one."""
    tops: Sequence[str]
    """For a municipality: the top sections of its code."""
    tables: Sequence[Table]
    """For a section of a code: the tables in its text."""
    voices: Mapping[str, tuple[str, str]]
    """The person who said each part, with the utterance or speech that records it."""
    references: Sequence[Quad]
    counts: Mapping[str, int]
    """The number of references by property, at most `COUNTED` in total."""
    uses: Sequence[Quad]
    """For a property: statements with it."""
    held: Sequence[str]
    """For a named graph: its subjects."""
    page: int
    more: bool
    """Whether another page follows."""
    labels: Mapping[str, str]
    known: frozenset[str]
    """The IRIs in this description that are subjects of quads."""
    origins: Sequence[Provenance]
    inputs: Mapping[str, Sequence[str]]
    """For each computed graph, the graphs that it was computed from; for those the same."""
    queries: Sequence[Statement]

    @property
    def label(self) -> str | None:
        """The label, if any."""
        return self.labels.get(self.iri)

    @property
    def stated(self) -> Sequence[Quad]:
        """The quads about it without those of users, unless only users describe it."""
        return [quad for quad in self.quads if not is_user_graph(quad.graph_name)] or self.quads

    def values(self, *properties: NamedNode) -> list[Literal]:
        """Get the literals of `properties`."""
        return [q.object for q in self.stated if q.predicate in properties and isinstance(q.object, Literal)]


def dereference(kg: KnowledgeGraph, iri: str, page: int = 1) -> Dereferenced:
    """Load the description of `iri`.

    Raises InvalidInputError for an invalid IRI, and NotFoundError if no quad has it.
    """
    node = parse_iri(iri)
    if not 1 <= page <= COUNTED:
        raise InvalidInputError(f"page is {page}. It must be from 1 to {COUNTED}.")
    reader = Reader(kg)
    about = reader.rows("quads about it", bind(ABOUT, iri=node, limit=QUADS + 1), all_graphs=True)
    said = [Quad(node, NamedNode(iri_of(row["property"])), row["value"], _graph(row)) for row in about[:QUADS]]
    # A store has the ontology's quads since it was opened for writing by a version that stores them.
    stored = any(quad.graph_name in SHIPPED_GRAPHS for quad in said)
    declared = [] if stored else list(load_ontology().get(node, ()))
    listed = _load_listed(reader, node, page)
    if not (said or declared or listed):
        raise NotFoundError(
            f"No graph has quads about {quoted(iri)} or references to it."
            if page == 1
            else f"Page {page} does not exist."
        )
    quads = sorted({*said, *declared}, key=lambda q: (str(q.predicate), str(q.object), str(q.graph_name)))
    named = {
        term.value
        for quad in (*quads, *listed.parts, *listed.references, *listed.uses)
        for term in (quad.subject, quad.predicate, quad.object)
        if isinstance(term, NamedNode)
    }
    is_place = page == 1 and any(quad.object == KG.Municipality for quad in said if not is_user_graph(quad.graph_name))
    tops: list[str] = []
    with contextlib.suppress(NotFoundError):  # a municipality without a code
        tops = cached_tree(reader.kg, iri).roots[:PAGE] if is_place else []
    sourced = {
        term.value
        for quad in (*quads, *listed.parts, *listed.references, *listed.uses)
        if not is_user_graph(quad.graph_name)
        for term in (quad.subject, quad.predicate, quad.object)
        if isinstance(term, NamedNode)
    }
    labels, kinds, known, numbers = _labels(reader, {*named, *listed.held, *tops, iri}, sourced)
    positions = {part: numbers.get(part, position) for part, position in listed.positions.items()}
    from_graphs = (graph_of(quad) for quad in (*said, *listed.parts) if quad.graph_name != PROV_GRAPH)
    graphs = list(dict.fromkeys(from_graphs))[:ORIGINS]
    inputs = _load_inputs(reader, graphs)
    return Dereferenced(
        iri=iri,
        generation=reader.kg.generation,
        quads=quads,
        cut=len(about) > QUADS or reader.truncated,
        parts=listed.parts,
        positions=positions,
        many=_count_parts(reader, node, page, listed),
        kinds=kinds,
        tops=tops,
        tables=load_section_tables(reader, node) if kinds.get(iri) == KG.CodeSection.value else [],
        voices=_load_speakers(reader, [part for part in positions if kinds.get(part) in _SPOKEN]),
        references=listed.references,
        counts={
            iri_of(row["property"]): int(term_text(row["count"]))
            for row in reader.rows("how much refers to it", bind(COUNTS, iri=node, limit=COUNTED), all_graphs=True)
            if "property" in row
        },
        uses=listed.uses,
        held=listed.held,
        page=page,
        more=listed.more,
        labels=labels,
        known=frozenset(known | {str(node.value) for node in load_ontology()}),
        origins=_origins(
            reader, quads, list(dict.fromkeys([*graphs, *inputs, *(g for of in inputs.values() for g in of)]))
        ),
        inputs=inputs,
        queries=list(reader.ran),
    )


@dataclass(frozen=True, slots=True)
class _Listed:
    """A page of the parts, references and uses of a node."""

    parts: Sequence[Quad]
    positions: Mapping[str, str]
    references: Sequence[Quad]
    uses: Sequence[Quad]
    held: Sequence[str]
    more: bool
    """Whether another page follows."""

    def __bool__(self) -> bool:
        return bool(self.parts or self.references or self.uses or self.held)


def _load_listed(reader: Reader, node: NamedNode, page: int) -> _Listed:
    """Load a page of the parts of `node`, of references to it and of its uses as a property and as a graph."""
    window: dict[str, Bindable] = {"iri": node, "limit": PAGE + 1, "offset": (page - 1) * PAGE}
    in_order = [
        row
        for row in reader.rows("its parts", bind(PARTS, **window), all_graphs=True)
        if isinstance(row["subject"], NamedNode)
    ]
    parts = [Quad(NamedNode(iri_of(row["subject"])), DCTERMS.isPartOf, node, _graph(row)) for row in in_order]
    in_parts = parts or (
        page > 1 and reader.rows("whether it has parts", bind(PARTS, iri=node, limit=1, offset=0), all_graphs=True)
    )
    apart = DCTERMS.isPartOf if in_parts else RDF.nil  # which is never a property: nothing is excluded
    references = [
        Quad(row["subject"], NamedNode(iri_of(row["property"])), node, _graph(row))
        for row in _referring(reader, node, apart, (page - 1) * PAGE)
        if isinstance(row["subject"], NamedNode)
    ]
    uses = [
        Quad(row["subject"], node, row["value"], _graph(row))
        for row in reader.rows("what has it as a property", bind(USES, **window), all_graphs=True)
        if isinstance(row["subject"], NamedNode)
    ]
    # A graph can exist without quads about it.
    held = [
        iri_of(row["subject"]) for row in reader.rows("subjects of the graph", bind(HELD, **window), all_graphs=True)
    ]
    return _Listed(
        parts=parts[:PAGE],
        positions={iri_of(row["subject"]): term_text(row["position"]) for row in in_order[:PAGE]},
        references=references[:PAGE],
        uses=uses[:PAGE],
        held=held[:PAGE],
        more=any(len(found) > PAGE for found in (parts, references, uses, held)),
    )


def _count_parts(reader: Reader, node: NamedNode, page: int, listed: _Listed) -> int:
    """Count the parts of `node`, up to `COUNTED`; without a query if this page is the last."""
    many = (page - 1) * PAGE + len(listed.parts)
    if not listed.more:
        return many
    counted = reader.rows("how many parts", bind(COUNT_PARTS, iri=node, limit=COUNTED), all_graphs=True)
    return max(many, *(int(term_text(row["count"])) for row in counted))


def _referring(reader: Reader, node: NamedNode, apart: NamedNode, offset: int) -> list[dict[str, Term]]:
    """Load a page of references to `node`, by graph and subject, and one more row if another page follows."""
    before = offset - offset % COUNTED

    def rows(before: int, offset: int, limit: int) -> list[dict[str, Term]]:
        window: dict[str, Bindable] = {"before": before, "offset": offset, "limit": limit, "block": COUNTED}
        return reader.rows("what refers to it", bind(REFERENCES, iri=node, apart=apart, **window), all_graphs=True)

    found = rows(before, offset - before, PAGE + 1)
    ends = offset - before + PAGE == COUNTED and len(found) == PAGE
    return [*found, *rows(before + COUNTED, 0, 1)] if ends else found


def names_of(kg: KnowledgeGraph, iris: Iterable[str]) -> dict[str, str]:
    """Load the labels of those of `iris` that have one."""
    reader = Reader(kg)
    return _labels(reader, set(iris))[0]


def parse_iri(iri: str) -> NamedNode:
    """Parse an IRI. Raises InvalidInputError if it is not absolute."""
    try:
        return NamedNode(iri)
    except ValueError as error:
        reason = escape_controls(str(error))[:200]  # it quotes the invalid character
        raise InvalidInputError(f"{quoted(iri)} is not an absolute IRI: {reason}.") from None


def suggestions(kg: KnowledgeGraph, iri: str) -> list[str]:
    """Suggest known IRIs for `iri`: other spellings, the whole of a part, or documents with similar words."""
    near = dict.fromkeys(_spellings(iri))
    terms = [*load_declared_terms()]
    near |= dict.fromkeys(nearest(iri, terms, 3, least=90))
    reader = Reader(kg)
    nodes = [NamedNode(text) for text in near if is_iri(text)]
    found = (
        {iri_of(row["iri"]) for row in reader.rows("near IRIs", bind(EXISTING, iris=nodes), all_graphs=True)}
        if nodes
        else set()
    )
    kept = [text for text in near if text in found or text in load_declared_terms()]
    if not kept and iri.lower().startswith("cpr://doc/"):
        kept += suggest_documents(reader, slug_of(iri))
    if not kept and iri.lower().startswith(("cpr://doc/", "cpr://family/")):
        slug = slug_of("cpr://doc/" + iri[iri.index("//") + 2 :].partition("/")[2])
        words = [word for word in re.split(r"[\W\d_]+", slug) if len(word) > _SHORT]
        if words:  # in the text: the best of all texts can have nothing in common with it
            with contextlib.suppress(IndexUnavailableError, ModelError):
                best = kg.search.rank(" ".join(words)[:300], limit=3, must=words[:_MOST_WORDS]).candidates
                kept += dict.fromkeys(candidate.iri.partition("#")[0] for candidate in best)
    return [text for text in kept if text != iri][:5]


def suggest_documents(reader: Reader, slug: str) -> list[str]:
    """Suggest at most three documents with a similar slug, the most similar first."""
    word = max(re.split(r"[^a-z0-9]+", slug.casefold()), key=len)
    rows = reader.rows("documents like it", bind(SLUGS_LIKE, fragment=Literal(word))) if word else []
    close = nearest(slug, sorted({slug_of(iri_of(row["document"])) for row in rows}), 3)
    return [mint("document", each).value for each in close]


def _spellings(iri: str) -> Iterable[str]:
    """Yield possible corrections of `iri`."""
    prefix, _, local = iri.partition(":")
    if prefix in PREFIXES:
        yield PREFIXES[prefix] + local
    if prefix == "http" and iri.startswith("http" + BASE[5:]):
        yield "https" + iri[4:]
    yield prefix.lower() + ":" + local
    yield iri.rstrip("/")
    whole = iri.partition("#")[0]
    yield iri.partition("&")[0]
    yield whole
    for root in ("cpr://doc/", "cpr://family/", BASE + "graph/", BASE + "id/", BASE + "vocab/"):
        rest = whole.removeprefix(root)
        if rest != whole and rest:
            fragment = iri[len(whole) :]
            with contextlib.suppress(InvalidInputError):
                yield root + "/".join(segment(unquote(part)) for part in rest.split("/")) + fragment
    if iri.startswith("cpr://doc/"):
        yield "cpr://family/" + whole.removeprefix("cpr://doc/")


def _graph(row: Mapping[str, Term]) -> NamedNode:
    return NamedNode(iri_of(row["graph"]))


def graph_of(quad: Quad) -> str:
    """Get the IRI of the graph of `quad`; empty for the default graph."""
    return quad.graph_name.value if isinstance(quad.graph_name, NamedNode) else ""


def _labels(
    reader: Reader, iris: set[str], sourced: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str], set[str], dict[str, str]]:
    """Load the labels and classes of `iris`, those that are subjects of quads, and the numbers of sections of codes.

    Statements of sources name those in `sourced`, so they have no labels by people.
    """
    labels: dict[str, str] = {}
    kinds: dict[str, str] = {}
    known: set[str] = set()
    facts: dict[str, dict[NamedNode, str]] = defaultdict(dict)
    ranks: dict[str, tuple[int, bool]] = {}
    own = [NamedNode(iri) for iri in sorted(iris - set(sourced))]
    others = [NamedNode(iri) for iri in sorted(iris & set(sourced))]
    rows = reader.rows("labels", bind(LABELS, things=own, preview=PREVIEW), declared=("thing",)) if own else []
    rows += reader.rows("labels of nodes of sources", bind(LABELS, things=others, preview=PREVIEW)) if others else []
    for row in rows:
        thing, name, label = iri_of(row["thing"]), NamedNode(iri_of(row["property"])), row.get("label")
        known.add(thing)
        if name in FACTS:
            facts[thing][name] = min(text := term_text(row["label"]), facts[thing].get(name, text))
            continue
        if name == RDF.type and isinstance(label, NamedNode) and label not in ANCHORS:
            kinds[thing] = min(label.value, kinds.get(thing, label.value))
        if name == RDF.type or not isinstance(label, Literal):
            continue
        rank = _NAMES.index(name), (label.language or "en") != "en"
        if thing not in ranks or rank < ranks[thing]:
            ranks[thing], labels[thing] = rank, label.value
    for iri in iris - labels.keys():
        term = load_declared_terms().get(iri)
        if term is not None:
            labels[iri] = term.label
    labels |= load_property_labels(reader, iris - labels.keys())
    untitled = {
        iri
        for iri, kind in kinds.items()
        if kind in _TITLED and (iri not in labels or (iri in ranks and _NAMES[ranks[iri][0]] in _TEXTS))
    }
    labels = {iri: label for iri, label in labels.items() if iri not in untitled}
    names, numbers = load_code_names(reader, kinds, labels)
    shown = {iri: build_display_title(iri, facts[iri].get) for iri in untitled}
    named = _name_memberships(reader, kinds) | _name_quantities(reader, kinds)
    return named | labels | names | shown, kinds, known, numbers


def _of_kind(kinds: Mapping[str, str], kind: NamedNode) -> list[NamedNode]:
    return [NamedNode(iri) for iri in sorted(kinds) if kinds[iri] == kind.value]


def _name_memberships(reader: Reader, kinds: Mapping[str, str]) -> dict[str, str]:
    """Name memberships by the member and the organization: ``Fern Ashby in the Senate, 2022-07-01``."""
    if not (things := _of_kind(kinds, ORG.Membership)):
        return {}
    rows = reader.rows("members and organizations", bind(MEMBERSHIPS, things=things))
    names = _labels(reader, {iri_of(row[key]) for row in rows for key in ("member", "organization")})[0]

    def name(term: Term) -> str:
        return names.get(iri_of(term)) or short_name(iri_of(term))

    return {
        iri_of(row["thing"]): f"{name(row['member'])} in {name(row['organization'])}"
        + (f", {term_text(row['start'])}" if "start" in row else "")
        for row in rows
    }


def _name_quantities(reader: Reader, kinds: Mapping[str, str]) -> dict[str, str]:
    """Name quantities by number and unit: ``30 FT``."""
    if not (things := _of_kind(kinds, QUDT.QuantityValue)):
        return {}
    rows = reader.rows("numbers and units", bind(QUANTITIES, things=things))
    units = {iri_of(row["unit"]) for row in rows if "unit" in row}
    names = {unit: code_of(unit) for unit in units} | (_labels(reader, units)[0] if units else {})
    return {
        iri_of(row["thing"]): term_text(row["number"]) + (f" {names[iri_of(row['unit'])]}" if "unit" in row else "")
        for row in rows
    }


def _load_speakers(reader: Reader, parts: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Load the speaker of each of `parts`, with the node that records it. Parts without a speaker are absent."""
    if not parts:
        return {}
    found: dict[str, tuple[str, str]] = {}
    chunks: list[Chunk] = []
    query = bind(SPOKEN, parts=[NamedNode(part) for part in parts])
    for row in reader.rows("who speaks", query, declared=("part",)):
        part = iri_of(row["part"])
        if "name" in row:
            found[part] = term_text(row["name"]), part
        else:
            start, end = int(term_text(row["start"])), int(term_text(row["end"]))
            chunks.append(Chunk(part, iri_of(row["whole"]), start, end))
    return found | {part: (voice.name, voice.utterance) for part, voice in load_voices(reader, chunks).items()}


def _load_inputs(reader: Reader, graphs: Sequence[str]) -> dict[str, list[str]]:
    """Load the graphs that those of `graphs` were computed from, and those behind them, for each computed one."""
    inputs: dict[str, list[str]] = {}
    level = set(graphs)
    for _ in range(DEPTH):
        found = describe(reader, (), level, rows=False)
        behind = {graph: [each for each in found.all(graph, PROV.wasDerivedFrom) if _is_graph(each)] for graph in level}
        inputs |= {graph: sources for graph, sources in behind.items() if sources}
        level = {source for sources in behind.values() for source in sources[:ORIGINS]} - inputs.keys()
        if not level:
            break
    return inputs


def _is_graph(iri: str) -> bool:
    return iri.startswith(BASE + "graph/")


def _origins(reader: Reader, quads: Sequence[Quad], graphs: Sequence[str]) -> list[Provenance]:
    descriptions = describe(reader, (), graphs)
    positions: dict[str, int] = {}
    pages: dict[str, str] = {}
    for quad in quads:
        if quad.predicate == SCHEMA.pagination:
            pages[graph_of(quad)] = term_text(quad.object)
        if quad.predicate == SCHEMA.position and isinstance(quad.object, Literal) and quad.object.value.isdecimal():
            positions[graph_of(quad)] = int(quad.object.value)
    return [origin_of(reader, descriptions, graph, positions.get(graph), pages=pages.get(graph)) for graph in graphs]


def short_name(iri: str) -> str:
    """Shorten an IRI without a label to a prefixed name or its last part. Long hashes are truncated."""
    kind, _, key = iri.removeprefix(BASE + "id/").partition("/")
    if iri.startswith(BASE + "id/") and key:
        return f"{kind} {_HASH.sub(lambda found: found[0][:12] + '…', unquote(key))}"
    tail = iri.rstrip("/#").rpartition("/")[2]
    return prefixed_name(iri) or unquote(tail) or iri


def worded_name(iri: str) -> str:
    """Split the name of a term without a label into words: ``dcterms:isPartOf`` is "is part of".

    The name of a property of a Wikibase is its id.
    """
    if iri.startswith(BASE + "id/"):
        return short_name(iri)
    name = prefixed_name(iri)
    local = name.partition(":")[2] if name is not None else unquote(re.split("[/#]", iri.rstrip("/#"))[-1])
    if find_property(iri) is not None:
        return local
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", local).lower()
