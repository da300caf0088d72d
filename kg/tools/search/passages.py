"""The tools `search`, which finds passages, and `fetch`, which returns them verbatim with their provenance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode

from kg.errors import IndexUnavailableError, InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.asked import Asked
from kg.retrieval.concept_index import Concept
from kg.retrieval.evidence import (
    Unit,
    build_evidence,
    describe,
    document_of,
    language_of,
    load_units,
    origin_of,
    place_of,
    said_by,
    speakers_of,
    title_of,
    url_of,
)
from kg.retrieval.excerpts import cut_excerpt
from kg.retrieval.facets import MOST_COUNTED, PostFilter, count_results, count_scope, count_units
from kg.retrieval.filters import Scope, compile_scope, resolve_concept_filter
from kg.retrieval.hybrid_search import (
    DEEPEST,
    Found,
    begin_ranking,
    retrieve,
)
from kg.retrieval.listing import list_scope, sort_found
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, bounded_page, clean_query, clean_words, page_of
from kg.retrieval.results import (
    FACETS,
    QUERY_CHARACTERS,
    Evidence,
    FacetName,
    Identifier,
    Layout,
    Limit,
    MinScore,
    Must,
    Offset,
    Result,
    ScoreParts,
    SearchFilters,
    SearchHit,
    SearchResult,
    find_places,
)
from kg.retrieval.search_notes import advise, describe_ranking
from kg.retrieval.speech_records import is_speech, load_speech_text
from kg.text import HEADING_SEPARATOR, quoted
from kg.tools.search.identifiers import Resolved, complete_ids, explain_missing, resolve_ids
from kg.tools.search.neighbours import Adjacent, Neighbours, Shown, find_neighbours, load_neighbours

OptionalQuery = Annotated[
    str,
    Field(
        max_length=QUERY_CHARACTERS,
        description="What to look for, in words; may be empty with facets, or a sort by date or title",
    ),
]
Sort = Annotated[
    Literal["relevance", "newest", "oldest", "title"],
    Field(description="Order: by relevance, or by the date or title of the document"),
]
PostFilters = Annotated[
    SearchFilters, Field(description="Limits the results, which are judged without it: lists what facets count")
]
FacetNames = Annotated[list[FacetName], Field(max_length=len(FACETS), description="Count the results by these")]

_UNSCOPED: Final = {"concept_qids", "max_passages_per_doc"}
"""The filters that exclude no passage."""
_BOTH_PLACES: Final = {"iso3", "place"}
NAMES_ADDED: Final = 20
"""Maximum number of names of concepts that are added to a query."""
TEXT_CHARACTERS: Final = 200_000
"""Maximum characters in ``text`` when one document is fetched. Truncation is reported."""
MANY_IDS: Final = 200
MANY_HINTS: Final = 20
"""Maximum number of unknown ids for which similar ones are searched. Each takes up to two queries."""


class Missing(BaseModel):
    """An unknown id, with a hint at valid ones."""

    id: str
    hint: NoteText


class FetchResult(Result):
    """Evidence in the order of the ids. With a single `id`, the other fields describe the document or passage."""

    layout: ClassVar[Layout] = Layout(paged=("evidence",), reads=True, repeated=frozenset({"text", "metadata"}))

    evidence: list[Evidence]
    not_found: list[Missing] = Field(default_factory=list)
    id: str | None = None
    title: str | None = None
    text: str | None = None
    url: str | None = None
    metadata: dict[str, str] | None = None


def search(
    kg: KnowledgeGraph,
    query: OptionalQuery = "",
    filters: SearchFilters | None = None,
    limit: Limit = 20,
    offset: Offset = 0,
    must: Must | None = None,
    min_score: MinScore | None = None,
    neighbours: Neighbours = 0,
    facets: FacetNames | None = None,
    sort: Sort = "relevance",
    score_parts: bool = False,
    post_filter: PostFilters | None = None,
) -> SearchResult:
    """Find passages of climate laws, speeches in parliament, municipal codes and files, by meaning and words.

    Use when you need evidence on a topic. Narrow by `filters`: place (["BRA"], ["Utah"]), domain, language,
    corpus_type, family_slug, max_passages_per_doc; passages that mention concept_qids rank first. Each result: id,
    title, url, snippet, score, answers (absent: not judged), provenance (graph, source file, sha256, row). covers:
    do they treat this subject; nearest: probably no answer.
    facets counts results by domain, place, year etc.; post_filter lists those of a value. Without a query, all that
    pass the filters are counted, and listed with sort="newest", "oldest" or "title".
    A result takes about 800 characters: a small limit, then next_offset, saves tokens.
    Example: search(query="geothermal exploration licences", filters={"iso3": ["DJI"]}, limit=5).
    Next: `fetch` the relevant ids for the full text; `list_resources` lists the valid filter values.
    """
    if not query.strip() and (facets or sort != "relevance"):
        _require_query(
            must=must, min_score=min_score, concept_qids=filters and filters.concept_qids, post_filter=post_filter
        )
        return _list_all(kg, filters or SearchFilters(), limit, offset, neighbours, facets or (), sort)
    words = clean_query("query", query, QUERY_CHARACTERS)
    bounded_page(limit, offset)
    filters = filters or SearchFilters()
    reader = Reader(kg)
    scope, notes = compile_scope(reader, filters)
    concepts = resolve_concept_filter(reader, filters.concept_qids, notes)
    reader.start_selection()
    asked = widen_query(words, concepts)
    required = clean_words(must or ())
    question = Asked(asked, required, min_score, typed=words)
    ranked = sort == "relevance"
    wanted = list(dict.fromkeys(facets or ()))
    post = None
    if post_filter is not None and post_filter != SearchFilters():
        _check_post_filter(filters, post_filter)
        own, more_notes = compile_scope(reader, post_filter)
        notes += more_notes
        both = scope.join(own)
        if wanted:
            begin_ranking(reader, question, both, MOST_COUNTED)
        try:
            results = count_units(reader, question, scope, MOST_COUNTED)
        except IndexUnavailableError as error:
            notes.append(f"post_filter: {error} The words of the query are searched among the passages that pass it.")
            wanted = []
        else:
            if min_score is not None and results.more:
                results = replace(results, more=False)
                notes.append(f"post_filter: With min_score, only the first {MOST_COUNTED:,} results are filtered.")
            post = PostFilter(own, results, results.narrow(reader, own), post_filter)
        scope = both
    found = retrieve(
        reader,
        question,
        scope,
        limit=limit if ranked else MOST_COUNTED,
        offset=offset if ranked else 0,
        per_document=filters.max_passages_per_doc,
        concepts=[NamedNode(concept.iri) for concept in concepts],
        counted=MOST_COUNTED if wanted else 0,
        judged=None if post is None else post.kept,
    )
    count = partial(count_results, names=wanted, asked=question, scope=scope, found=found, post=post)
    counting = reader.start("facets", count) if wanted else None
    if sort != "relevance":
        ordered = sort_found(reader, found.units, sort)
        if found.next_offset is not None:
            notes.append(f"Only the first {MOST_COUNTED:,} results by relevance are sorted. Narrow the query.")
        following = page_of(ordered, offset, limit)
        found = replace(found, units=ordered[offset : offset + limit], next_offset=following)
    hits = _build_hits(reader, found.units, asked, neighbours, score_parts=score_parts, answers=found.answers)
    if found.completeness == "truncated":
        compared = f"Only the {DEEPEST:,} passages nearest to the query were compared with it. Use more specific words."
        few = "Too few of the passages that the index proposed pass the filters. Narrow the query or filters."
        notes.append(compared if filters == SearchFilters() and post is None else few)
    elif not hits and offset:
        notes.append(f"No results from offset {offset} on. offset=0 returns the first ones, if there are any.")
    elif not hits and post is not None and post.results.units:
        notes.append("The results of the query do not pass post_filter. There are results without it.")
    elif not hits:
        narrowing = [name for name in filters.model_dump(exclude_defaults=True) if name not in _UNSCOPED]

        def widen(names: Collection[str]) -> Scope:
            return compile_scope(Reader(kg), SearchFilters(**filters.model_dump(exclude={*names})))[0]

        notes += advise(kg, question, found, scope, "passages", narrowing, widen)
    notes += describe_ranking(found, "passages", required)
    counts = None
    if counting is not None:
        try:
            counts = counting()
        except IndexUnavailableError as error:
            notes.append(f"facets: {error}")
    return reader.finish(
        SearchResult(
            results=hits,
            facets=counts,
            notes=notes,
            covers=found.relevance.stated,
            uncovered_reason=found.relevance.reason,
            nearest=_build_hits(reader, found.nearest, asked, 0, score_parts=score_parts),
            reranked=found.reranked,
            degraded=found.degraded,
            places=find_places((each.iri for each in found.units), (hit.id for hit in hits)),
        ),
        total=found.total,
        next_offset=found.next_offset,
        completeness=found.completeness,
    )


def _check_post_filter(filters: SearchFilters, post_filter: SearchFilters) -> None:
    """Raise InvalidInputError for what does not apply to results."""
    if post_filter.concept_qids or post_filter.max_passages_per_doc is not None:
        raise InvalidInputError("post_filter takes no concept_qids and no max_passages_per_doc. Give them in filters.")
    if filters.concept_qids:
        raise InvalidInputError(
            "post_filter does not apply to a search with concept_qids. Give all filters in filters, or the concepts as "
            "the filter concept."
        )
    for one in filters.model_dump(exclude_defaults=True):
        for other in post_filter.model_dump(exclude_defaults=True):
            if one == other:
                raise InvalidInputError(f"{one} is in filters and in post_filter. Give it in one of them.")
            if {one, other} == _BOTH_PLACES:
                raise InvalidInputError(
                    f"{one} in filters and {other} in post_filter are both filters by place. Give them in the same one."
                )


def _require_query(**given: object) -> None:
    """Raise InvalidInputError if any of these arguments has a value: they need a query."""
    named = [name for name, value in given.items() if value not in (None, [])]
    if named:
        instead = (
            " Passages that mention a concept are listed by the filter concept." if "concept_qids" in named else ""
        )
        raise InvalidInputError(f"The query is empty, and {' and '.join(named)} applies to a query.{instead}")


def _list_all(
    kg: KnowledgeGraph,
    filters: SearchFilters,
    limit: int,
    offset: int,
    neighbours: int,
    facets: Sequence[FacetName],
    sort: Sort,
) -> SearchResult:
    """Count all passages that pass filters, by facet, and list a page of them, unless they are sorted by relevance."""
    bounded_page(limit, offset)
    reader = Reader(kg)
    scope, notes = compile_scope(reader, filters)
    reader.start_selection()
    counts = None
    if facets:
        counts, partial = count_scope(reader, list(dict.fromkeys(facets)), scope)
        notes += partial
    if sort == "relevance":
        return reader.finish(
            SearchResult(results=[], facets=counts, notes=notes), total=None if counts is None else counts.passages
        )
    listed = list_scope(reader, scope, sort, limit=limit, offset=offset, per_document=filters.max_passages_per_doc)
    if not listed.units:
        notes.append(f"No results from offset {offset} on." if offset else "No passage passes the filters.")
    hits = _build_hits(reader, listed.units, "", neighbours)
    places = find_places((each.iri for each in listed.units), (hit.id for hit in hits))
    return reader.finish(
        SearchResult(results=hits, facets=counts, notes=notes, places=places),
        total=listed.total,
        next_offset=offset + limit if listed.total > offset + limit else None,
    )


def _build_hits(
    reader: Reader,
    found: Sequence[Found],
    query: str,
    neighbours: int,
    *,
    score_parts: bool = False,
    answers: Mapping[str, float] | None = None,
) -> list[SearchHit]:
    """Build the results for ranked passages, with as many `neighbours` of each, leaving out those without a text."""
    units = load_units(reader, [each.iri for each in found])
    if not units:
        return []
    descriptions = describe(reader, {unit.cited for unit in units.values()}, {unit.graph for unit in units.values()})
    voices = speakers_of(reader, units.values())
    around = load_neighbours(reader, units.values(), neighbours)
    hits = []
    for each in found:
        if (unit := units.get(each.iri)) is None:
            continue
        shown = around.get(each.iri, Shown())
        excerpt = cut_excerpt(unit.text, query, span=each.span)
        hits.append(
            SearchHit(
                id=each.iri,
                title=title_of(descriptions, unit.cited, voices.get(each.iri)),
                url=url_of(descriptions, unit.cited),
                section=build_section(unit.section, excerpt.headings),
                language=language_of(descriptions, unit),
                snippet=excerpt.words,
                start=excerpt.start,
                end=excerpt.end,
                disputed_order=unit.is_disputed or None,
                said_by=said_by(descriptions, unit, voices.get(each.iri)),
                score=each.score if query else None,
                answers=None if answers is None or unit.is_disputed else answers.get(each.iri),
                score_parts=_score_parts(each) if score_parts else None,
                provenance=origin_of(reader, descriptions, unit.graph, unit.position, *place_of(descriptions, unit)),
                before=shown.before,
                after=shown.after,
            )
        )
    return hits


def _score_parts(found: Found) -> ScoreParts | None:
    one = found.scored
    if one is None:
        return None
    return ScoreParts(words=one.bm25, meaning=one.cosine, share_of_words=one.words, share_of_pairs=one.pairs)


def widen_query(query: str, concepts: Sequence[Concept]) -> str:
    """Append names of `concepts` that `query` lacks, alternating between the concepts, up to the maximum length."""
    said = query.casefold()
    names = [name for turn in zip_longest(*(concept.names for concept in concepts)) for name in turn if name]
    added = [name for name in dict.fromkeys(names) if name.casefold() not in said][:NAMES_ADDED]
    return "; ".join([query, *added])[:QUERY_CHARACTERS]


def build_section(section: str | None, headings: Sequence[str]) -> str | None:
    """Build the section of an excerpt: that of the whole text, and further headings above the excerpt in the text."""
    above = section.split(HEADING_SEPARATOR) if section else []
    return HEADING_SEPARATOR.join([*above, *(heading for heading in headings if heading not in above)]) or None


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
    neighbours: Neighbours = 0,
) -> FetchResult:
    """Read passages verbatim, with document, page and provenance.

    Use with ids from `search`. The id of a document, family, speech, municipality (its code) or chapter returns its
    passages in order, `limit` at a time. Returns evidence: id, document, passage{index, page_number, type, text},
    provenance; not_found has the ids without text, and what reads those. With `id` also title, text, url, metadata.
    Example: fetch(ids=["cpr://doc/fictional-decree-on-geothermal-exploration_d0a1#p=3"]).
    Next: cite `document.url` with `provenance`; `search` for more.
    """
    if (ids is None) == (id is None):
        raise InvalidInputError("Pass either ids (a list) or id (one), for example ids=['cpr://doc/{slug}#p=3'].")
    given = [id] if id is not None else ids or []
    if not 1 <= len(given) <= MANY_IDS:
        raise InvalidInputError(f"ids has {len(given)} entries. Pass 1 to {MANY_IDS}.")
    bounded_page(limit, offset)
    reader = Reader(kg)
    wanted = list(dict.fromkeys(complete_ids(reader, given)))
    id = None if id is None else wanted[0]
    resolved = resolve_ids(reader, wanted)
    single = [iris[0] for name, iris in resolved.found.items() if name not in resolved.whole]
    around = find_neighbours(reader, load_units(reader, single if neighbours else []).values(), neighbours)
    order = list(dict.fromkeys(each for iris in resolved.found.values() for iri in iris for each in _with(around, iri)))
    page = order[offset : offset + limit]
    units = {**load_units(reader, [iri for iri in page if iri not in resolved.units]), **resolved.units}
    absent = [name for name in wanted if name not in resolved.found]
    missing = [Missing(id=name, hint=explain_missing(reader, name, resolved)) for name in absent[:MANY_HINTS]]
    missing += [Missing(id=name, hint="search returns valid ids.") for name in absent[MANY_HINTS:]]
    if id is not None and missing:
        problem = f"{id} cannot be read." if id in resolved.kinds else f"Unknown id {quoted(id)}."
        raise NotFoundError(f"id: {problem} {missing[0].hint}")
    own = single[:1] if id is not None else []
    built = build_evidence(reader, [units[iri] for iri in dict.fromkeys((*page, *own)) if iri in units])
    result = FetchResult(evidence=built, not_found=missing, notes=list(resolved.notes))
    if id is not None:
        _describe_one(reader, result, id, resolved, units)
        result.evidence = [each for each in built if each.id in {*page}]
    result.places = find_places(page, units)
    return reader.finish(result, total=len(order), next_offset=page_of(order, offset, limit))


def load_whole_text(reader: Reader, id: str) -> str:
    """Load the whole text of one id that `fetch` reads: of a passage, or of all passages of a document or family."""
    [name] = complete_ids(reader, [id])
    resolved = resolve_ids(reader, [name])
    whole, order = resolved.whole.get(name, ()), resolved.found[name]
    if whole and is_speech(whole[0]):
        return load_speech_text(reader, whole[0])
    units = {**load_units(reader, [iri for iri in order if iri not in resolved.units]), **resolved.units}
    return _joined([units[iri] for iri in order if iri in units], None)[0]


def _with(around: Mapping[str, Adjacent], iri: str) -> list[str]:
    """List a passage with its neighbours, in the order of the document."""
    near = around.get(iri, Adjacent())
    return [*near.before, iri, *near.after]


def _describe_one(
    reader: Reader,
    result: FetchResult,
    name: str,
    resolved: Resolved,
    units: Mapping[str, Unit],
) -> None:
    """Fill in the fields that describe the single document, family or passage."""
    whole = resolved.whole.get(name)
    metadata: dict[str, str] = {}
    if whole is None:
        [own] = resolved.found[name]
        evidence = next(each for each in result.evidence if each.id == own)
        document, provenance = evidence.document, evidence.provenance
        result.id = evidence.id
        result.text = evidence.passage.text
        metadata["said_by"] = evidence.said_by or ""
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
        result.text, kept = _joined([units[evidence.id] for evidence in result.evidence], TEXT_CHARACTERS)
        if is_speech(whole[0]):  # its chunks overlap
            result.text = load_speech_text(reader, whole[0])
            kept = len(result.evidence) if len(result.text) <= TEXT_CHARACTERS else 0
            result.text = result.text[:TEXT_CHARACTERS]
        metadata["documents"] = " ".join(whole)
        metadata["passages"] = str(len(resolved.found[name]))
        if kept < len(result.evidence):
            held = f"the first {kept} passages of this page" if kept else f"the first {TEXT_CHARACTERS:,} characters"
            result.notes.append(f"text is truncated to {held}. evidence has all of them.")
    metadata["slug"] = document.slug
    metadata["geographies"] = ", ".join(document.geographies)
    metadata["languages"] = ", ".join(document.languages)
    metadata["family_title"] = document.family_title or ""
    metadata["citation"] = document.citation or ""
    result.metadata = {key: value for key, value in metadata.items() if value}


def _joined(units: Sequence[Unit], most: int | None) -> tuple[str, int]:
    """Join as many whole texts as fit `most` characters, and return their number too.

    Chunks of one text, which may overlap, are joined as they are in it, others by a blank line.
    """
    parts: list[str] = []
    length = kept = 0
    before: Unit | None = None
    for unit in units:
        part = unit.text if before is None else f"\n\n{unit.text}"
        if before is not None and before.span and unit.span and before.document == unit.document:
            repeated = before.span[1] - unit.span[0]
            if 0 <= repeated <= len(unit.text):
                part = unit.text[repeated:]
        length += len(part)
        if kept and most is not None and length > most:
            break
        parts.append(part)
        kept += 1
        before = unit
    return "".join(parts)[:most], kept
