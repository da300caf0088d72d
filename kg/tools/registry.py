"""The one list of tools, and how a tool is called with arguments from outside."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import Result, SearchFilters
from kg.tools.catalog import overview
from kg.tools.claims import review
from kg.tools.climate import jurisdictions, lineage
from kg.tools.concepts import find as concepts
from kg.tools.concepts import mentions, neighbors
from kg.tools.parliament import ingest, speakers, speeches
from kg.tools.parliament import search as speech_search
from kg.tools.schema import describe_schema as schema_levels
from kg.tools.schema import examples, find_terms
from kg.tools.search import passages, research
from kg.tools.shacl import validate
from kg.tools.sparql import query
from kg.tools.zoning import citations as zoning_relations
from kg.tools.zoning import compare as zoning_comparison
from kg.tools.zoning import ingest as zoning_ingesting
from kg.tools.zoning import provisions
from kg.tools.zoning import sections as zoning_sections
from kg.tools.zoning import summaries as zoning_summaries

CORE: Final = "core"
CLIMATE: Final = "climate"
PARLIAMENT: Final = "parliament"
ZONING: Final = "zoning"
RESEARCH: Final = "research"

Kind = Literal["own", "light", "raw"]
Scope = Literal["read", "write"]


@dataclass(frozen=True)
class Tool:
    """A function with what clients are told of it. `kind`: it runs queries of its own, is
    light (answers from memory and waits for no query), or raw (runs a query that the caller writes)."""

    function: Callable[..., Result]
    title: str
    tags: frozenset[str]
    kind: Kind = "own"
    scope: Scope = "read"
    """What whoever calls it must be allowed to do."""

    @property
    def annotations(self) -> Mapping[str, bool]:
        """What clients are told of its effects: one that writes may replace what is there."""
        reads = self.scope == "read"
        return {"readOnlyHint": reads, "idempotentHint": True, "destructiveHint": not reads, "openWorldHint": False}

    @property
    def name(self) -> str:
        """The name that clients call it by."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """Its docstring."""
        return inspect.getdoc(self.function) or ""

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model of its arguments; unknown ones are refused."""
        hints = get_type_hints(self.function, include_extras=True)
        fields: dict[str, Any] = {
            name: (hints[name], ... if parameter.default is inspect.Parameter.empty else parameter.default)
            for name, parameter in list(inspect.signature(self.function).parameters.items())[1:]
        }
        return create_model(f"{self.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def result(self) -> type[Result]:
        """The model of its result."""
        returned: type[Result] = get_type_hints(self.function)["return"]
        return returned

    def call(self, kg: KnowledgeGraph, arguments: Mapping[str, Any]) -> Result:
        """Check `arguments` and call the function. Raises InvalidInputError naming each argument that is wrong."""
        try:
            checked = self.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            raise InvalidInputError(f"{self.name}: {_explain(error, self.arguments)}") from None
        return self.function(kg, **{name: getattr(checked, name) for name in type(checked).model_fields})


def _explain(error: ValidationError, arguments: type[BaseModel]) -> str:
    """Return one sentence that names each wrong argument, what is wrong with it, and what would be valid."""
    parts = []
    names = ", ".join(arguments.model_fields) or "none"
    valid = f"arguments: {names}"
    for problem in error.errors(include_url=False)[:5]:
        where = ".".join(str(step) for step in problem["loc"])[:100]
        said = problem["msg"]
        if problem["type"] == "list_type" and _lists_objects(arguments, str(problem["loc"][0])):
            said += ' of objects, as in [{"...": "..."}]'
        elif problem["type"] == "list_type" and isinstance(problem["input"], str):
            said += f", as in [{json.dumps(problem['input'][:40], ensure_ascii=False)}]"
        if problem["type"] == "extra_forbidden" and problem["loc"][0] == "filters":
            valid = f"filters: {', '.join(SearchFilters.model_fields)}"
        parts.append(f"{where}: {said}")
    return f"{'; '.join(parts)} ({valid})".encode(errors="replace").decode()  # a lone surrogate has no UTF-8


def _lists_objects(arguments: type[BaseModel], name: str) -> bool:
    schema = arguments.model_json_schema()["properties"].get(name, {})
    return any(kind.get("items", {}).get("type") == "object" for kind in (schema, *schema.get("anyOf", ())))


def content_of(result: Result) -> dict[str, Any]:
    """Return `result` as JSON types, without what is absent: optional fields of the whole, and empty notes.

    Those that a result always shows stay, as null.
    """
    content: dict[str, Any] = result.model_dump(mode="json")
    return {
        name: value
        for name, value in content.items()
        if (value is not None or name in result.shown) and not (name in ("notes", "explain") and not value)
    }


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(passages.search, "Search passages", frozenset({CORE, CLIMATE})),
    Tool(passages.fetch, "Fetch evidence", frozenset({CORE, CLIMATE, PARLIAMENT})),
    Tool(concepts.concept_find, "Find concepts", frozenset({CORE, CLIMATE})),
    Tool(neighbors.concept_neighbors, "Linked concepts", frozenset({CLIMATE})),
    Tool(concepts.concept_properties, "Properties of concepts", frozenset({CLIMATE})),
    Tool(mentions.concept_mentions, "Mentions of concepts", frozenset({CORE, CLIMATE})),
    Tool(overview.family_overview, "Policy families", frozenset({CORE, CLIMATE})),
    Tool(jurisdictions.jurisdiction_overview, "One country", frozenset({CLIMATE})),
    Tool(jurisdictions.compare_jurisdictions, "Two countries", frozenset({CLIMATE})),
    Tool(lineage.policy_lineage, "History of a family", frozenset({CLIMATE})),
    Tool(speech_search.search_speeches, "Search speeches", frozenset({PARLIAMENT, "search", "rag", "stable"})),
    Tool(speeches.get_speech, "Read a speech", frozenset({PARLIAMENT, "retrieve", "rag", "stable"})),
    Tool(speakers.list_speakers, "Speakers", frozenset({PARLIAMENT})),
    Tool(speakers.speech_stats, "Speech statistics", frozenset({PARLIAMENT})),
    Tool(
        ingest.ingest_speech,
        "Ingest speeches",
        frozenset({PARLIAMENT, "ingestion", "admin", "stable"}),
        scope="write",
    ),
    Tool(zoning_ingesting.kg_ingest_code_section, "Ingest a section", frozenset({ZONING}), scope="write"),
    Tool(zoning_ingesting.kg_ingest_use_permissions, "Ingest permissions", frozenset({ZONING}), scope="write"),
    Tool(zoning_ingesting.kg_ingest_dimensional_standards, "Ingest standards", frozenset({ZONING}), scope="write"),
    Tool(zoning_ingesting.kg_ingest_definitions, "Ingest definitions", frozenset({ZONING}), scope="write"),
    Tool(zoning_summaries.kg_build_summaries, "Build summaries", frozenset({ZONING}), scope="write"),
    Tool(zoning_summaries.kg_rebuild_summary, "Rebuild a summary", frozenset({ZONING}), scope="write"),
    Tool(zoning_sections.kg_query_section, "Read a section", frozenset({ZONING})),
    Tool(provisions.kg_query_permissions, "Permitted uses", frozenset({ZONING})),
    Tool(provisions.kg_query_standards, "Dimensional standards", frozenset({ZONING})),
    Tool(provisions.kg_query_definition, "Defined terms", frozenset({ZONING})),
    Tool(zoning_sections.kg_traverse_hierarchy, "Walk a code", frozenset({ZONING})),
    Tool(zoning_relations.kg_find_related, "Citations", frozenset({ZONING})),
    Tool(review.review_claim, "Review a claim", frozenset({ZONING}), scope="write"),
    Tool(zoning_summaries.kg_search_by_topic, "Search by topic", frozenset({ZONING})),
    Tool(zoning_comparison.compare_zoning, "Compare zoning", frozenset({ZONING})),
    Tool(overview.list_resources, "What is here", frozenset({CORE, CLIMATE, PARLIAMENT, ZONING})),
    Tool(schema_levels.describe_schema, "Schema", frozenset({CORE})),
    Tool(find_terms.find_terms, "Find terms", frozenset({CORE})),
    Tool(examples.sparql_examples, "Example queries", frozenset({CORE})),
    Tool(query.sparql, "SPARQL", frozenset({CORE}), kind="raw"),
    Tool(validate.validate, "Validate with SHACL", frozenset({CORE}), kind="raw"),
    Tool(overview.health, "Health", frozenset({CORE, CLIMATE, PARLIAMENT}), kind="light"),
    Tool(research.search, "Search", frozenset({RESEARCH})),
    Tool(research.fetch, "Fetch", frozenset({RESEARCH})),
)
