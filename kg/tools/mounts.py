"""The mounts of tools: one table of their paths, the tags of their tools, and their purpose and guide for clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kg.errors import InvalidInputError
from kg.text import quoted

CORE: Final = "core"
CLIMATE: Final = "climate"
PARLIAMENT: Final = "parliament"
ZONING: Final = "zoning"
DOCUMENTS: Final = "documents"
WIKIDATA: Final = "wikidata"
SPARQL: Final = "sparql"
RESEARCH: Final = "research"
OPERATIONS: Final = "operations"
"""The tags of tools."""


class Mount(NamedTuple):
    """A path at which an MCP server offers some of the tools."""

    tags: frozenset[str] | None
    """The tags of its tools. None: all tools except the deep-research pair."""
    purpose: str = ""
    """What it is for, as the instructions of the other mounts name it; empty: they do not."""
    guide: str = ""
    """Which of its tools to use for what."""


MOUNTS: Final[Mapping[str, Mount]] = {
    "/mcp": Mount(
        frozenset({CORE}),
        "search, reading and SPARQL over everything",
        "`search` finds passages of every kind, `fetch` reads them. A topic is a concept: `concept_find` gives its "
        "QID, `concept_mentions` the passages that name it. `related` and `citations` lead from a text to those of "
        "other domains. `list_resources` lists the valid filter values. For counts and joins write SPARQL: "
        "`sparql_examples` and `describe_schema` show how, `sparql` runs it.",
    ),
    "/mcp/climate": Mount(
        frozenset({CLIMATE}),
        "climate laws and policies",
        "`search` (filters: place, language, corpus_type, family_slug), then `fetch`. `family_overview` lists laws "
        "with their amendments, `policy_lineage` one of them over time, `jurisdiction_overview` and "
        "`compare_jurisdictions` countries. `concept_find` gives the QID of a topic, `concept_mentions` its passages.",
    ),
    "/mcp/parliament": Mount(
        frozenset({PARLIAMENT}),
        "speeches in parliament",
        "`search_speeches` (filters: speaker, party, chamber, date_from, date_to, topics, state), then `get_speech`; "
        "cite the hansard_reference. `list_speakers` gives the names to filter by, `speech_stats` counts who spoke how "
        "often on what and when. `how_voted` finds votes in divisions.",
    ),
    "/mcp/zoning": Mount(
        frozenset({ZONING}),
        "municipal codes",
        "Name municipality and state. Themes: `kg_search_by_topic`. Facts: `kg_query_permissions`, "
        "`kg_query_standards`, `kg_query_definition`; `compare_zoning` for several places. Quote with "
        "`kg_query_section`, check exceptions with `kg_find_related`. Law that you fetched goes in by the kg_ingest "
        "tools, parents first; then `kg_build_summaries`. An unrecorded use is not a prohibited one: say so.",
    ),
    "/mcp/documents": Mount(
        frozenset({DOCUMENTS}),
        "a team's own files",
        "Files of a team: `hybrid_query` searches them and follows the relations of what they mention; `search` finds "
        "passages alone, `fetch` reads them. `entity_lookup` finds the entities that they name, and `explain_entity` "
        "the statements about one, with the words and a confidence. `related` and `citations` lead to laws, speeches "
        "and codes. `status` shows whether the files are loaded and current.",
    ),
    "/mcp/wikidata": Mount(
        frozenset({WIKIDATA}),
        "facts of Wikidata with their claims",
        "`verify_fact` answers a question or checks a statement with claims, each with its GUID, rank and references, "
        "or reports that nothing was found. `plan_facts` lists the steps: `wikidata.vector_search_items` gives "
        "QIDs, `wikidata.get_claims` their claims, `wikidata.sparql` proves one. Cite the GUID of a claim.",
    ),
    "/mcp/sparql": Mount(
        frozenset({SPARQL}),
        "writing SPARQL, validation",
        "`describe_schema` shows classes and properties, `find_terms` their IRIs and those of places, codes and "
        "concepts, `sparql_examples` tested queries, `sparql` runs one. `validate` checks data with SHACL.",
    ),
    "/mcp/operations": Mount(
        frozenset({OPERATIONS}),
        "",
        "`submit_load` adds a load to the queue of the server, `load_status` shows its progress, `cancel_load` stops "
        "it. `health` and `status` show the state of the server.",
    ),
    "/mcp/all": Mount(
        None,
        "every tool",
    ),
    "/mcp/research": Mount(
        frozenset({RESEARCH}),
        guide="`search` with a question, then `fetch` the ids worth reading; cite their url and title.",
    ),
}
NAMES: Final = {path.removeprefix("/mcp").removeprefix("/") or "core": path for path in MOUNTS}
"""The path of each mount by its name."""


def find_mount(name: str) -> str:
    """Find the path of a mount by its name. Raises InvalidInputError for an unknown one."""
    if name not in NAMES:
        raise InvalidInputError(f"Unknown mount {quoted(name)}. Available: {', '.join(NAMES)}.")
    return NAMES[name]
