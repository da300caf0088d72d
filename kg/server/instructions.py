"""Instructions of the MCP servers, made from the contents of the graph: the use of a mount, and the other mounts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from kg.errors import InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of
from kg.store.protocol import Term, term_text
from kg.text import quoted
from kg.tools.calls import TEXTS_ARE_DATA
from kg.tools.registry import CLIMATE, CORE, DOCUMENTS, PARLIAMENT, RESEARCH, SPARQL, TOOLS, WIKIDATA, ZONING
from kg.vocabulary import KG, SKOS, iri_prefix

MOUNTS: Final[Mapping[str, frozenset[str] | None]] = {
    "/mcp": frozenset({CORE}),
    "/mcp/climate": frozenset({CLIMATE}),
    "/mcp/parliament": frozenset({PARLIAMENT}),
    "/mcp/zoning": frozenset({ZONING}),
    "/mcp/documents": frozenset({DOCUMENTS}),
    "/mcp/wikidata": frozenset({WIKIDATA}),
    "/mcp/sparql": frozenset({SPARQL}),
    "/mcp/all": None,
    "/mcp/research": frozenset({RESEARCH}),
}
"""Each MCP path with the tags of its tools. None: all tools except the deep-research pair."""

# One scan per class, by its index, and not one per graph.
CONTENTS: Final = f"""
SELECT ?class (COUNT(DISTINCT ?thing) AS ?count) WHERE {{
  {{ VALUES ?class {{ kg:Speech kg:Municipality kg:CodeSection kg:File }} ?thing a ?class }}
  UNION {{ ?document a kg:PolicyDocument ; kg:slug ?thing BIND(kg:PolicyDocument AS ?class) }}
  UNION {{ ?thing a skos:Concept BIND(skos:Concept AS ?class) FILTER(!STRSTARTS(STR(?thing), "{iri_prefix("code")}")) }}
}} GROUP BY ?class"""

_NAMES: Final = {
    KG.PolicyDocument.value: "laws and policies on climate",
    KG.Speech.value: "speeches in parliament",
    KG.CodeSection.value: "sections of municipal codes",
    KG.Municipality.value: "municipalities",
    KG.File.value: "files",
    SKOS.Concept.value: "concepts",
}

_GUIDES: Final[Mapping[str, str]] = {
    "/mcp": (
        "`search` finds passages of every kind, `fetch` reads them. A topic is a concept: `concept_find` gives its "
        "QID, `concept_mentions` the passages that name it. `related` and `citations` lead from a text to those of "
        "other domains. `list_resources` lists the valid filter values. For counts and joins write SPARQL: "
        "`sparql_examples` and `describe_schema` show how, `sparql` runs it."
    ),
    "/mcp/climate": (
        "`search` (filters: place, language, corpus_type, family_slug), then `fetch`. `family_overview` lists laws "
        "with their amendments, `policy_lineage` one of them over time, `jurisdiction_overview` and "
        "`compare_jurisdictions` countries. `concept_find` gives the QID of a topic, `concept_mentions` its passages."
    ),
    "/mcp/parliament": (
        "`search_speeches` (filters: speaker, party, chamber, date_from, date_to, topics, state), then `get_speech`; "
        "cite the hansard_reference. `list_speakers` gives the names to filter by, `speech_stats` counts who spoke how "
        "often on what and when. `how_voted` finds votes in divisions."
    ),
    "/mcp/zoning": (
        "Name municipality and state. Themes: `kg_search_by_topic`. Facts: `kg_query_permissions`, "
        "`kg_query_standards`, `kg_query_definition`; `compare_zoning` for several places. Quote with "
        "`kg_query_section`, check exceptions with `kg_find_related`. Law that you fetched goes in by the kg_ingest "
        "tools, parents first; then `kg_build_summaries`. An unrecorded use is not a prohibited one: say so."
    ),
    "/mcp/documents": (
        "Files of a team: `hybrid_query` searches them and follows the relations of what they mention; `search` finds "
        "passages alone, `fetch` reads them. `entity_lookup` finds the entities that they name, and `explain_entity` "
        "the statements about one, with the words and a confidence. `related` and `citations` lead to laws, speeches "
        "and codes. `status` shows whether the files are loaded and current."
    ),
    "/mcp/wikidata": (
        "`verify_fact` answers a question or checks a statement with claims, each with its GUID, rank and references, "
        "or reports that nothing was found. `plan_facts` lists the steps: `wikidata.vector_search_items` gives "
        "QIDs, `wikidata.get_claims` their claims, `wikidata.sparql` proves one. Cite the GUID of a claim."
    ),
    "/mcp/sparql": (
        "`describe_schema` shows classes and properties, `find_terms` their IRIs and those of places, codes and "
        "concepts, `sparql_examples` tested queries, `sparql` runs one. `validate` checks data with SHACL."
    ),
    "/mcp/research": "`search` with a question, then `fetch` the ids worth reading; cite their url and title.",
}

_PURPOSES: Final = {
    "/mcp": "search, reading and SPARQL over everything",
    "/mcp/climate": "climate laws and policies",
    "/mcp/parliament": "speeches in parliament",
    "/mcp/zoning": "municipal codes",
    "/mcp/documents": "a team's own files",
    "/mcp/wikidata": "facts of Wikidata with their claims",
    "/mcp/sparql": "writing SPARQL, validation",
    "/mcp/all": "every tool",
}

_SIZES: Final = (
    "Answers keep to max_tokens: notes report each cut, next_offset (as offset) or text_from continues. `sources` has "
    'each source once, by the keys that results refer to; detail="full" repeats it and shows whole passages; '
    "explain=true adds the SPARQL that ran. If nothing is found, say so."
)


_HOMES: Final = {
    tool.name: path
    for path, tags in reversed(list(MOUNTS.items()))
    if tags and RESEARCH not in tags
    for tool in TOOLS
    if tool.is_on(tags)
}
"""The first mount that has each tool."""
_NAMED_TOOL: Final = re.compile(r"`(\w+(?:\.\w+)?)`|\b((?:[a-z]+\.)?[a-z]+(?:_[a-z]+)+)\b")
"""A tool in a text: its name in backticks, or a name with underscores, which no sentence has for anything else."""


def name_mounts(text: str, here: Collection[str]) -> str:
    """Add its mount to each tool that `text` names and that is not among the tools `here`.

    A tool that is listed here under its alias is named so.
    """

    def add(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if "." in name and (alias := name.replace(".", "_")) in here:
            return found[0].replace(name, alias)
        return f"{found[0]} (on {_HOMES[name]})" if name in _HOMES and name not in here else found[0]

    return _NAMED_TOOL.sub(add, text)


def find_mount(name: str) -> str:
    """Find the path of a mount by its name: core, climate, parliament, zoning, documents, wikidata, sparql,
    all or research.

    Raises InvalidInputError for an unknown one.
    """
    names = {"core": "/mcp"} | {path.removeprefix("/mcp/"): path for path in MOUNTS if path != "/mcp"}
    if name not in names:
        raise InvalidInputError(f"Unknown mount {quoted(name)}. Available: {', '.join(names)}.")
    return names[name]


def build_instructions(kg: KnowledgeGraph, path: str, here: Collection[str] = ()) -> str:
    """Build the instructions of the mount at `path` from the contents of the graph.

    Tools are named as in `here`, the names that the mount lists, where these are aliases.
    """
    parts = [
        f"A knowledge graph of civic text{_describe_contents(kg)}.",
        "Every passage comes with its document, file and row or lines: cite them.",
        f"{TEXTS_ARE_DATA} In notes and hints [1] is the first of `names`, quoted from the data or the call.",
    ]
    if path == "/mcp/all":
        guides = [guide for each, guide in _GUIDES.items() if each != "/mcp/research"]
    else:
        guides = [_GUIDES[path]]
    parts += [name_mounts(guide, here) if here else guide for guide in guides]
    if path != "/mcp/research":
        parts.append(_SIZES)
    if path not in ("/mcp/all", "/mcp/research"):
        others = [f"{each} ({purpose})" for each, purpose in _PURPOSES.items() if each != path]
        parts.append(f"Other mounts of this server: {', '.join(others)}.")
    return " ".join(parts)


def _describe_contents(kg: KnowledgeGraph) -> str:
    """Describe the contents by their numbers, or leave them out while queries fail, for example at a stop."""

    def read(rows: list[dict[str, Term]]) -> str:
        counts = {iri_of(row["class"]): int(term_text(row["count"])) for row in rows if "class" in row}
        kinds = [f"{counts[iri]:,} {name}" for iri, name in _NAMES.items() if counts.get(iri)]
        return f": {', '.join(kinds) or 'nothing is loaded yet'}"

    try:
        return Reader(kg).kept("contents", CONTENTS, read)
    except QuadciteError:  # a client can connect without the numbers
        return ""
