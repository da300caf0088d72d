"""The list of tools that agents may call, with their tags, and the lookup of tools and commands by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from kg.connectors import names
from kg.errors import NotFoundError
from kg.provenance.permissions import ALL, SHARED
from kg.retrieval.results import READING_TOKENS, Domain
from kg.store.ownership import CURATED
from kg.text import quoted
from kg.tools.calls import Command, Kind, Scope, Tool
from kg.tools.catalog.health import health
from kg.tools.catalog.resources import list_resources
from kg.tools.claims import citations, review
from kg.tools.climate import families, jurisdictions
from kg.tools.commands import COMMANDS
from kg.tools.concepts import find as concepts
from kg.tools.concepts import mentions, neighbors
from kg.tools.documents import entities, hybrid
from kg.tools.documents import ingest as files
from kg.tools.documents import status as ingestion
from kg.tools.mounts import (
    CLIMATE,
    CORE,
    DOCUMENTS,
    OPERATIONS,
    PARLIAMENT,
    RESEARCH,
    SPARQL,
    WIKIDATA,
    ZONING,
)
from kg.tools.operations import loads
from kg.tools.parliament import ingest, speakers, speeches, votes
from kg.tools.parliament import search as speech_search
from kg.tools.schema import describe_schema as schema_levels
from kg.tools.schema import examples, find_terms
from kg.tools.search import passages, related, research
from kg.tools.shacl import validate
from kg.tools.sparql import query
from kg.tools.wikidata import get_claims as wikidata_claims
from kg.tools.wikidata import plan as wikidata_plan
from kg.tools.wikidata import search as wikidata_search
from kg.tools.wikidata import verify as wikidata_facts
from kg.tools.zoning import compare as zoning_comparison
from kg.tools.zoning import ingest as zoning_ingesting
from kg.tools.zoning import provisions, reading_tasks, topic_search
from kg.tools.zoning import sections as zoning_sections
from kg.tools.zoning import summaries as zoning_summaries
from kg.vocabulary import GENERATED, SOURCED

RECORDS: Final = (SOURCED, SHARED)
"""The families of graphs that tools write which store records."""

READINGS: Final = (*RECORDS, GENERATED)
"""The same, for tools that also take the readings of sections."""

RESEARCH_TOKENS: Final = 10_000
"""Size of a text in the deep-research contract, whose clients cannot ask for more."""


_ingester: Final = partial(Tool, kind="long", scope="write", writes=RECORDS)
"""Builds a tool that stores records, which may take long."""


def _canonical(name: str, function: Callable[..., Any], title: str, kind: Kind = "own", scope: Scope = "read") -> Tool:
    """Build the tool that answers under a canonical name, with the tags and scopes of all servers that have it."""
    made = names.TOOLS[name]
    return Tool(
        function,
        title,
        frozenset(made.tags),
        kind=kind,
        scope=scope,
        published=name,
        fact_scopes=frozenset(made.scopes),
        mount=WIKIDATA,
        asks_connectors=name == names.GET_CLAIMS,
        writes=RECORDS if name == names.GET_CLAIMS else (),
    )


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(passages.search, "Search passages", frozenset({CORE, CLIMATE, DOCUMENTS}), scope="search"),
    Tool(
        passages.fetch,
        "Fetch evidence",
        frozenset({CORE, CLIMATE, PARLIAMENT, ZONING, DOCUMENTS}),
        max_tokens=READING_TOKENS,
    ),
    Tool(
        related.related,
        "Related texts of other domains",
        frozenset({CORE, CLIMATE, PARLIAMENT, ZONING, DOCUMENTS}),
        scope="search",
    ),
    Tool(concepts.concept_find, "Find concepts", frozenset({CORE, CLIMATE})),
    Tool(neighbors.concept_neighbors, "Linked concepts", frozenset({CLIMATE})),
    Tool(concepts.concept_properties, "Properties of concepts", frozenset({CLIMATE})),
    Tool(mentions.concept_mentions, "Mentions of concepts", frozenset({CORE, CLIMATE})),
    Tool(families.family_overview, "Policy families", frozenset({CLIMATE})),
    Tool(jurisdictions.jurisdiction_overview, "One country", frozenset({CLIMATE})),
    Tool(jurisdictions.compare_jurisdictions, "Two countries", frozenset({CLIMATE})),
    Tool(families.policy_lineage, "History of a family", frozenset({CLIMATE})),
    Tool(citations.citations, "Citations of laws", frozenset({CORE, CLIMATE, PARLIAMENT, ZONING, DOCUMENTS})),
    Tool(
        speech_search.search_speeches,
        "Search speeches",
        frozenset({PARLIAMENT, "search", "rag", "stable"}),
        scope="search",
    ),
    Tool(
        speeches.get_speech,
        "Read a speech",
        frozenset({PARLIAMENT, "retrieve", "rag", "stable"}),
        max_tokens=READING_TOKENS,
    ),
    Tool(speakers.list_speakers, "Speakers", frozenset({PARLIAMENT})),
    Tool(speakers.speech_stats, "Speech statistics", frozenset({PARLIAMENT})),
    Tool(votes.how_voted, "Votes by name", frozenset({PARLIAMENT})),
    _ingester(ingest.ingest_speech, "Ingest speeches", frozenset({PARLIAMENT, "ingestion", "admin", "stable"})),
    _ingester(zoning_ingesting.kg_ingest_code_section, "Ingest a section", frozenset({ZONING})),
    _ingester(zoning_ingesting.kg_ingest_use_permissions, "Ingest permissions", frozenset({ZONING}), writes=READINGS),
    _ingester(
        zoning_ingesting.kg_ingest_dimensional_standards, "Ingest standards", frozenset({ZONING}), writes=READINGS
    ),
    _ingester(zoning_ingesting.kg_ingest_definitions, "Ingest definitions", frozenset({ZONING}), writes=READINGS),
    Tool(
        zoning_summaries.kg_build_summaries,
        "Build summaries",
        frozenset({ZONING}),
        scope="write",
        writes=(GENERATED,),
        max_tokens=READING_TOKENS,
    ),
    Tool(
        zoning_summaries.kg_rebuild_summary,
        "Rebuild a summary",
        frozenset({ZONING}),
        scope="write",
        writes=(GENERATED,),
    ),
    Tool(zoning_sections.kg_query_section, "Read a section", frozenset({ZONING}), max_tokens=READING_TOKENS),
    Tool(provisions.kg_query_permissions, "Permitted uses", frozenset({ZONING})),
    Tool(provisions.kg_query_standards, "Dimensional standards", frozenset({ZONING})),
    Tool(provisions.kg_query_definition, "Defined terms", frozenset({ZONING})),
    Tool(zoning_sections.kg_traverse_hierarchy, "Walk a code", frozenset({ZONING})),
    Tool(zoning_sections.kg_find_related, "Citations", frozenset({ZONING})),
    Tool(review.list_claims, "Claims to review", frozenset({ZONING, DOCUMENTS})),
    Tool(review.review_claim, "Review a claim", frozenset({ZONING, DOCUMENTS}), scope="curate", writes=(CURATED,)),
    Tool(topic_search.kg_search_by_topic, "Search by topic", frozenset({ZONING}), scope="search"),
    Tool(reading_tasks.zoning_reading_tasks, "Sections to read", frozenset({ZONING}), max_tokens=READING_TOKENS),
    Tool(zoning_comparison.compare_zoning, "Compare zoning", frozenset({ZONING})),
    Tool(
        hybrid.hybrid_query,
        "Search files and relations",
        frozenset({DOCUMENTS}),
        max_tokens=READING_TOKENS,
        scope="search",
    ),
    Tool(entities.entity_lookup, "Entities by name", frozenset({DOCUMENTS})),
    Tool(entities.explain_entity, "Explain an entity", frozenset({DOCUMENTS})),
    _ingester(files.ingest_docs, "Ingest files", frozenset({DOCUMENTS})),
    _ingester(files.extract_and_link, "Find entities", frozenset({DOCUMENTS}), writes=(ALL,)),
    Tool(ingestion.status, "State of the files", frozenset({DOCUMENTS, OPERATIONS})),
    Tool(loads.submit_load, "Submit a load", frozenset({OPERATIONS}), scope="admin", kind="light"),
    Tool(loads.load_status, "State of loads", frozenset({OPERATIONS}), kind="long"),
    Tool(loads.cancel_load, "Cancel a load", frozenset({OPERATIONS}), scope="admin", kind="light"),
    Tool(list_resources, "Contents", frozenset({CORE, CLIMATE, PARLIAMENT, ZONING, DOCUMENTS, SPARQL})),
    Tool(schema_levels.describe_schema, "Schema", frozenset({CORE, SPARQL})),
    Tool(find_terms.find_terms, "Find terms", frozenset({SPARQL})),
    Tool(examples.sparql_examples, "Example queries", frozenset({CORE, SPARQL})),
    Tool(query.sparql, "SPARQL", frozenset({CORE, SPARQL}), kind="raw", scope="sparql"),
    Tool(validate.validate, "Validate with SHACL", frozenset({SPARQL}), kind="raw"),
    _canonical(names.SEARCH_ITEMS, wikidata_search.vector_search_items, "Search Wikidata items", scope="search"),
    _canonical(
        names.SEARCH_PROPERTIES, wikidata_search.vector_search_properties, "Search Wikidata properties", scope="search"
    ),
    _canonical(names.GET_CLAIMS, wikidata_claims.get_claims, "Claims of Wikidata entities"),
    _canonical(names.SPARQL, query.sparql, "SPARQL over Wikidata", kind="raw", scope="sparql"),
    Tool(wikidata_plan.plan_facts, "Plan a check of a fact", frozenset({WIKIDATA, "planning"}), mount=WIKIDATA),
    Tool(
        wikidata_facts.verify_fact,
        "Verify a fact",
        frozenset({WIKIDATA, "verification"}),
        mount=WIKIDATA,
        asks_connectors=True,
        writes=RECORDS,
    ),
    Tool(health, "Health", frozenset({CORE, CLIMATE, PARLIAMENT, DOCUMENTS, SPARQL, OPERATIONS}), kind="light"),
    Tool(research.search, "Search", frozenset({RESEARCH}), single=True, scope="search"),
    Tool(research.fetch, "Fetch", frozenset({RESEARCH}), single=True, max_tokens=RESEARCH_TOKENS),
)


_DOMAINS: Final[Mapping[str, Domain]] = {CLIMATE: "climate", DOCUMENTS: "files"}
# Made once: a tool keeps the model of its arguments, which takes milliseconds to build.
_OF_DOMAINS: Final = {
    frozenset({tag}): tuple(
        replace(tool, domain=domain) if tool.function is passages.search else tool for tool in TOOLS
    )
    for tag, domain in _DOMAINS.items()
}


def mounted(tags: frozenset[str] | None) -> list[Tool]:
    """Get the tools with one of `tags`; None: all except the deep-research pair.

    On the mounts of climate and documents, `search` finds texts of that domain unless its filters name domains.
    """
    tools = TOOLS if tags is None else _OF_DOMAINS.get(tags, TOOLS)
    return [tool for tool in tools if (RESEARCH not in tool.tags if tags is None else tool.is_on(tags))]


def tagged(tag: str | None) -> list[Tool]:
    """Get the tools that have `tag`, or without it the first of each name. Raises NotFoundError for an unknown tag."""
    if tag is None:
        first: dict[str, Tool] = {}
        for tool in TOOLS:
            first.setdefault(tool.name, tool)
        return list(first.values())
    if found := [tool for tool in (mounted(frozenset({tag})) or TOOLS) if tag in tool.tags]:
        return found
    tags = ", ".join(sorted({name for tool in TOOLS for name in tool.tags}))
    raise NotFoundError(f"Unknown tag {quoted(tag)}. Available: {tags}.")


@cache  # every call asks for its tool; an unknown name raises, and is not kept
def get(name: str, tag: str | None = None) -> Command:
    """Get the tool or command with a name or alias. Raises NotFoundError if there is none, which names the tools."""
    tools = tagged(tag)
    for tool in (*tools, *COMMANDS):
        if name in (tool.name, tool.alias):
            return tool
    raise NotFoundError(f"Unknown tool {quoted(name)}. Available: {', '.join(tool.alias for tool in tools)}.")
