"""The tools `search`, which finds passages, and `fetch`, which returns them verbatim with their provenance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import BaseModel, Field
from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import nearest
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import Concept
from kg.retrieval.evidence import (
    Unit,
    build_evidence,
    describe,
    document_of,
    lines_of,
    load_units,
    origin_of,
    speakers_of,
    title_of,
    url_of,
)
from kg.retrieval.excerpts import best_window
from kg.retrieval.filters import compile_scope, resolve_concept_filter
from kg.retrieval.hybrid_search import retrieve
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import (
    QUERY_CHARACTERS,
    Evidence,
    Explain,
    Identifier,
    Limit,
    Offset,
    Query,
    Result,
    SearchFilters,
    SearchHit,
    SearchResult,
)
from kg.retrieval.speech_records import is_speech, load_speech_text, suggest_speeches
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.vocabulary import BASE, mint, slug_of

SNIPPET_CHARACTERS: Final = 240
NAMES_ADDED: Final = 20
"""Maximum number of names of concepts that are added to a query."""
TEXT_CHARACTERS: Final = 200_000
"""Maximum characters in ``text`` when one document is fetched. Truncation is reported."""
MANY_IDS: Final = 200
MANY_HINTS: Final = 20
"""Maximum number of unknown ids for which similar ones are searched. Each takes up to two queries."""

PARTS: Final = """
SELECT DISTINCT ?unit ?document ?position WHERE {
  VALUES ?document { $documents } ?unit dcterms:isPartOf ?document ; schema:position ?position
}"""

DOCUMENTS_PRESENT: Final = """
SELECT DISTINCT ?document WHERE {
  VALUES ?document { $documents } ?document a ?kind FILTER(?kind IN (kg:PolicyDocument, kg:Speech))
}"""

MEMBERS: Final = """
SELECT DISTINCT ?family ?document WHERE { VALUES ?family { $families } ?document eli:is_member_of ?family }"""

VERSIONS: Final = """
SELECT DISTINCT ?asked WHERE {
  VALUES (?asked ?unit ?language) { $versions }
  ?unit dcterms:isPartOf ?document .
  { ?unit schema:inLanguage ?language } UNION { ?document schema:inLanguage ?language }
}"""

SLUGS_LIKE: Final = """
SELECT DISTINCT ?document WHERE {
  ?document a kg:PolicyDocument FILTER(CONTAINS(STR(?document), $fragment))
} LIMIT 200"""


class Missing(BaseModel):
    """An unknown id, with a hint at valid ones."""

    id: str
    hint: str


class FetchResult(Result):
    """Evidence in the order of the ids. With a single `id`, the other fields describe the document or passage."""

    evidence: list[Evidence]
    not_found: list[Missing] = Field(default_factory=list)
    id: str | None = None
    title: str | None = None
    text: str | None = None
    url: str | None = None
    metadata: dict[str, str] | None = None


def search(
    kg: KnowledgeGraph,
    query: Query,
    filters: SearchFilters | None = None,
    limit: Limit = 20,
    offset: Offset = 0,
    explain: Explain = False,
) -> SearchResult:
    """Find passages of laws, policies and speeches by meaning and words, best first.

    Use when you need evidence on a topic. Narrow by `filters`: iso3 (["BRA"]), language, corpus_type, family_slug,
    max_passages_per_doc; passages that mention concept_qids rank first. Each result: id, title, url, snippet, score,
    provenance (graph, source file, sha256, row).
    A result takes about 800 characters: a small limit, then next_offset, saves tokens.
    Example: search(query="geothermal exploration licences", filters={"iso3": ["DJI"]}, limit=5).
    Next: `fetch` the relevant ids for the full text; `list_resources` lists the valid filter values.
    """
    words = clean_text("query", query, QUERY_CHARACTERS)
    bounded_page(limit, offset)
    filters = filters or SearchFilters()
    reader = Reader(kg)
    scope, notes = compile_scope(reader, filters)
    concepts = resolve_concept_filter(reader, filters.concept_qids, notes)
    reader.ran.clear()
    asked = widen_query(words, concepts)
    found = retrieve(
        reader,
        asked,
        scope,
        limit=limit,
        offset=offset,
        per_document=filters.max_passages_per_doc,
        concepts=[NamedNode(concept.iri) for concept in concepts],
    )
    units = load_units(reader, [unit.iri for unit in found.units])
    descriptions = (
        describe(reader, {unit.document for unit in units.values()}, {unit.graph for unit in units.values()})
        if units
        else None
    )
    voices = speakers_of(reader, units.values())
    hits = [
        SearchHit(
            id=unit.iri,
            title=title_of(descriptions, unit.document, voices.get(unit.iri)),
            url=url_of(descriptions, unit.document),
            snippet=build_snippet(units[unit.iri].text, asked),
            score=unit.score,
            provenance=origin_of(
                reader,
                descriptions,
                units[unit.iri].graph,
                units[unit.iri].position,
                lines_of(descriptions, units[unit.iri]),
            ),
        )
        for unit in found.units
        if descriptions is not None and unit.iri in units
    ]
    if found.completeness == "truncated":
        notes.append("Too few of the passages that the index proposed pass the filters. Narrow the query or filters.")
    elif not hits:
        narrowed = filters.model_dump(exclude_defaults=True)
        notes.append(
            (f"No results from offset {offset} on. " if offset else "No passage found. ")
            + (f"Widen the filters ({', '.join(narrowed)}). " if narrowed else "Use other words. ")
            + "list_resources and family_overview list the contents of the graph."
        )
    if found.pending:
        notes.append(
            f"{found.pending} of the passages considered have no embedding yet and are ranked by keywords only. The "
            "order and the pages can change until health reports no pending vectors."
        )
    return reader.finish(
        SearchResult(results=hits, notes=notes),
        total=found.total,
        next_offset=found.next_offset,
        completeness=found.completeness,
        explain=explain,
    )


def widen_query(query: str, concepts: Sequence[Concept]) -> str:
    """Append names of `concepts` that `query` lacks, alternating between the concepts, up to the maximum length."""
    said = query.casefold()
    names = [name for turn in zip_longest(*(concept.names for concept in concepts)) for name in turn if name]
    added = [name for name in dict.fromkeys(names) if name.casefold() not in said][:NAMES_ADDED]
    return "; ".join([query, *added])[:QUERY_CHARACTERS]


def build_snippet(text: str, query: str) -> str:
    """Cut `text` to 240 characters on one line, around the window with most words of the query."""
    line = " ".join(text.split())
    if len(line) <= SNIPPET_CHARACTERS:
        return line
    width = SNIPPET_CHARACTERS - 2
    place = best_window(line, query, width)
    start = max(0, min((place[0] if place else 0) - 40, len(line) - width))
    end = min(len(line), start + width)
    return ("…" if start else "") + line[start:end].strip() + ("…" if end < len(line) else "")


Ids = Annotated[
    list[Identifier],
    Field(max_length=MANY_IDS, description="Passage, document or family ids, e.g. cpr://doc/{slug}#p=3"),
]


def fetch(
    kg: KnowledgeGraph,
    ids: Ids | None = None,
    id: Annotated[Identifier, Field(description="One id; the result then also has title, text and url")] | None = None,
    limit: Limit = 100,
    offset: Offset = 0,
    explain: Explain = False,
) -> FetchResult:
    """Read passages verbatim, with document, page and provenance.

    Use with ids from `search`. A document id (cpr://doc/{slug}) or family id (cpr://family/{slug}) returns its passages
    in order, `limit` at a time. Returns evidence: id, document, passage{index, page_number, type, text}, provenance;
    unknown ids are in not_found with similar ones. With a single `id` also title, text, url, metadata.
    Example: fetch(ids=["cpr://doc/fictional-decree-on-geothermal-exploration_d0a1#p=3"]).
    Next: cite `document.url` with `provenance`; `search` for more.
    """
    if (ids is None) == (id is None):
        raise InvalidInputError("Pass either ids (a list) or id (one), for example ids=['cpr://doc/{slug}#p=3'].")
    wanted = list(dict.fromkeys([id] if id is not None else ids or []))
    if not 1 <= len(wanted) <= MANY_IDS:
        raise InvalidInputError(f"ids has {len(wanted)} entries. Pass 1 to {MANY_IDS}.")
    bounded_page(limit, offset)
    reader = Reader(kg)
    resolved = _resolve(reader, wanted)
    order = list(dict.fromkeys(iri for iris in resolved.found.values() for iri in iris))
    page = order[offset : offset + limit]
    units = {**load_units(reader, [iri for iri in page if iri not in resolved.units]), **resolved.units}
    absent = [name for name in wanted if name not in resolved.found]
    missing = [Missing(id=name, hint=_hint(reader, name)) for name in absent[:MANY_HINTS]]
    missing += [Missing(id=name, hint="search returns valid ids.") for name in absent[MANY_HINTS:]]
    if id is not None and missing:
        raise NotFoundError(f"Unknown id {id!r}. {missing[0].hint}")
    evidence = build_evidence(reader, [units[iri] for iri in page if iri in units])
    result = FetchResult(evidence=evidence, not_found=missing, notes=list(resolved.notes))
    next_offset = page_of(order, offset, limit)
    if id is not None:
        _describe_one(reader, result, id, resolved, next_offset)
    return reader.finish(
        result,
        total=len(order),
        next_offset=next_offset,
        explain=explain,
    )


@dataclass(slots=True)
class _Resolved:
    """The passages of ids, in order, and the documents of ids that name a document or a family."""

    found: dict[str, list[str]]
    units: dict[str, Unit]
    whole: dict[str, list[str]]
    """The documents of each id that names a document or a family."""
    notes: list[str]


_DOCUMENT = re.compile(r"cpr://doc/(?P<slug>[^#]+)(?:#(?:p=(?P<index>\d{1,18}))?(?:&?lang=(?P<lang>[^&]+))?)?")
_FAMILY = re.compile(r"cpr://family/(?P<slug>[^#]+)")
_OWN = re.compile(re.escape(f"{BASE}id/") + r"[^#]+(?P<part>#.+)?")


def _node(name: str) -> tuple[str, NamedNode] | None:
    """Parse an id in any percent-encoding into its kind and IRI; None for unknown forms."""
    try:
        if match := _FAMILY.fullmatch(name.strip()):
            return "family", mint("family", slug_of(name.strip()))
        if match := _DOCUMENT.fullmatch(name.strip()):
            slug, lang = slug_of(name.strip()), match["lang"]
            if match["index"] is not None:
                return "passage", mint("passage", slug, match["index"], lang=lang)
            return "document", mint("document", slug, lang=lang)
        if match := _OWN.fullmatch(name.strip()):
            return "passage" if match["part"] else "document", NamedNode(name.strip())
    except (InvalidInputError, ValueError):
        return None
    return None


def _resolve(reader: Reader, names: Sequence[str]) -> _Resolved:
    nodes = {name: node for name in names if (node := _node(name)) is not None}
    passages = {name: node.value for name, (kind, node) in nodes.items() if kind == "passage"}
    resolved = _Resolved({}, load_units(reader, sorted(set(passages.values()))), {}, [])
    found = {name: [iri] for name, iri in passages.items() if iri in resolved.units}
    absent = {name: iri for name, iri in passages.items() if iri not in resolved.units}
    for name, iri in _other_version(reader, absent).items():
        found[name] = [iri]
        resolved.notes.append(f"{name} has the id {iri} in this graph.")
    families = {name: node for name, (kind, node) in nodes.items() if kind == "family"}
    documents = {name: node for name, (kind, node) in nodes.items() if kind == "document"}
    members = _members(reader, families)
    present = _present(reader, documents)
    parts = _parts(reader, {*present.values(), *(iri for iris in members.values() for iri in iris)})
    for name, iri in present.items():
        resolved.whole[name] = [iri]
    resolved.whole.update(members)
    for name, iris in resolved.whole.items():
        found[name] = [unit for iri in iris for unit in parts.get(iri, [])]
    resolved.found = {name: found[name] for name in names if name in found}
    return resolved


def _other_version(reader: Reader, absent: dict[str, str]) -> dict[str, str]:
    """Resolve ids with a language to the ids without, where those passages have that language."""
    versions = {}
    for iri in absent.values():
        plain, _, language = iri.partition("&lang=")
        if language:
            versions[iri] = (NamedNode(iri), NamedNode(plain), Literal(language))
    if not versions:
        return {}
    rows = reader.rows("passages by language", bind(VERSIONS, versions=list(versions.values())))
    found = {iri_of(row["asked"]) for row in rows}
    return {name: versions[iri][1].value for name, iri in absent.items() if iri in found}


def _present(reader: Reader, documents: dict[str, NamedNode]) -> dict[str, str]:
    if not documents:
        return {}
    rows = reader.rows("documents", bind(DOCUMENTS_PRESENT, documents=list(set(documents.values()))))
    present = {iri_of(row["document"]) for row in rows}
    return {name: node.value for name, node in documents.items() if node.value in present}


def _members(reader: Reader, families: dict[str, NamedNode]) -> dict[str, list[str]]:
    if not families:
        return {}
    members: dict[str, list[str]] = {}
    for row in reader.rows("documents of families", bind(MEMBERS, families=list(set(families.values())))):
        members.setdefault(iri_of(row["family"]), []).append(iri_of(row["document"]))
    return {name: sorted(members[node.value]) for name, node in families.items() if node.value in members}


def _parts(reader: Reader, documents: set[str]) -> dict[str, list[str]]:
    if not documents:
        return {}
    places: dict[str, list[tuple[int, str]]] = {}
    rows = reader.rows("passages of documents", bind(PARTS, documents=[NamedNode(iri) for iri in sorted(documents)]))
    for row in rows:
        places.setdefault(iri_of(row["document"]), []).append((int(term_text(row["position"])), iri_of(row["unit"])))
    return {iri: [unit for _, unit in sorted(units)] for iri, units in places.items()}


def _describe_one(reader: Reader, result: FetchResult, name: str, resolved: _Resolved, next_offset: int | None) -> None:
    """Fill in the fields that describe the single document, family or passage."""
    whole = resolved.whole.get(name)
    metadata: dict[str, str] = {}
    if whole is None:
        evidence = result.evidence[0]
        document, provenance = evidence.document, evidence.provenance
        result.id = evidence.id
        result.text = evidence.passage.text
        metadata["passage_index"] = str(evidence.passage.index)
        if evidence.passage.page_number is not None:
            metadata["page_number"] = str(evidence.passage.page_number)
        metadata["source"] = provenance.source or ""
        metadata["sha256"] = provenance.sha256 or ""
        metadata["row"] = "" if provenance.row is None else str(provenance.row)
        metadata["graph"] = provenance.graph
        result.title, result.url = document.title, document.url
    else:
        descriptions = describe(reader, whole, [])
        document = document_of(descriptions, whole[0])
        family = name.strip().startswith("cpr://family/")
        result.id = name.strip() if family else whole[0]
        result.title = (document.family_title or document.title) if family else document.title
        result.url = document.url
        result.text, kept = _joined([evidence.passage.text for evidence in result.evidence])
        if is_speech(whole[0]):  # its chunks overlap
            result.text = load_speech_text(reader, whole[0])
            kept = len(result.evidence) if len(result.text) <= TEXT_CHARACTERS else 0
            result.text = result.text[:TEXT_CHARACTERS]
        metadata["documents"] = " ".join(whole)
        metadata["passages"] = str(len(resolved.found[name]))
        if kept < len(result.evidence):
            held = f"the first {kept} passages of this page" if kept else f"the first {TEXT_CHARACTERS:,} characters"
            result.notes.append(f"text is truncated to {held}. evidence has all of them.")
        if next_offset is not None:
            metadata["next_offset"] = str(next_offset)
            result.notes.append(
                f"{len(resolved.found[name])} passages in total. For the rest, call fetch with offset={next_offset}."
            )
    metadata["slug"] = document.slug
    metadata["geographies"] = ", ".join(document.geographies)
    metadata["languages"] = ", ".join(document.languages)
    metadata["family_title"] = document.family_title or ""
    metadata["citation"] = document.citation or ""
    result.metadata = {key: value for key, value in metadata.items() if value}


def _joined(texts: Sequence[str]) -> tuple[str, int]:
    """Join as many whole texts as fit the maximum length, and return their number too."""
    length = kept = 0
    for text in texts:
        length += len(text) + 2
        if kept and length > TEXT_CHARACTERS:
            break
        kept += 1
    return "\n\n".join(texts[:kept])[:TEXT_CHARACTERS], kept


def _hint(reader: Reader, name: str) -> str:
    """Name valid ids for an unknown one."""
    known = _node(name)
    if known is None and name.strip().startswith("cpr://concept/"):
        return "A concept has no text. concept_find describes it, concept_mentions lists passages that mention it."
    if known is None:
        return (
            "ids have the form cpr://doc/{slug}#p={index}, cpr://doc/{slug} or cpr://family/{slug}, as search returns"
        )
    kind, node = known
    if is_speech(node.value):
        return suggest_speeches(reader, unquote(node.value.partition("#")[0].rpartition("/")[2]))
    if node.value.startswith(BASE):
        return "No passage or document has it. search returns valid ids."
    slug = slug_of(node.value)
    if kind == "passage":
        document = mint("document", slug)
        units = _parts(reader, {document.value}).get(document.value, [])
        if units:
            return f"The document has {len(units)} passages, from {units[0]} to {units[-1]}."
    if kind == "family":
        return "family_overview lists the families."
    word = max(re.split(r"[^a-z0-9]+", slug.casefold()), key=len)
    rows = reader.rows("documents like it", bind(SLUGS_LIKE, fragment=Literal(word))) if word else []
    close = nearest(slug, sorted({slug_of(iri_of(row["document"])) for row in rows}), 3)
    if close:
        return f"Similar: {', '.join(mint('document', slug).value for slug in close)}."
    return "No document has a similar slug. search returns valid ids."
