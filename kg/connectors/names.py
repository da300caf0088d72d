"""Names of tools and arguments on Wikidata MCP servers: one canonical name each, and the variants of known servers.

A server may call `wikidata.get_claims` ``get_statements`` and its argument ``entity_id``. Calls are translated to the
names of the server, and the names of the server to the canonical ones, by the tables of this module alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SEARCH_ITEMS: Final = "wikidata.vector_search_items"
SEARCH_PROPERTIES: Final = "wikidata.vector_search_properties"
GET_CLAIMS: Final = "wikidata.get_claims"
SPARQL: Final = "wikidata.sparql"

ArgumentNames = Mapping[str, Sequence[str]]
"""The names of servers for each canonical argument, the usual one first."""

_SEARCH: Final[ArgumentNames] = {
    "query": ("query", "q", "search", "text"),
    "language": ("lang", "language"),
    "limit": ("limit", "k", "K", "top_k"),
}


def list_name(name: str, form: str) -> str:
    """Return the name by which clients see a tool: in the form ``dotted``, or without dots.

    Most providers of models refuse a name with a dot.
    """
    return name if form == "dotted" else name.replace(".", "_")


@dataclass(frozen=True, slots=True)
class CanonicalTool:
    """A tool that agents know: its name, its tags and scopes, and what known servers call it and its arguments."""

    name: str
    tags: Sequence[str]
    scopes: Sequence[str]
    variants: Sequence[str]
    """The best first: a server may have several."""
    arguments: ArgumentNames
    needed: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Variants that need an argument which the others do not take."""


TOOLS: Final[Mapping[str, CanonicalTool]] = {
    tool.name: tool
    for tool in (
        CanonicalTool(
            SEARCH_ITEMS,
            ("vector", "wikidata", "items"),
            ("facts", "entities"),
            ("vector_search_items", "search_items", "search_entities", "search_entity", "keyword_search_items"),
            _SEARCH,
        ),
        CanonicalTool(
            SEARCH_PROPERTIES,
            ("vector", "wikidata", "properties"),
            ("properties",),
            ("vector_search_properties", "search_properties", "search_property", "keyword_search_properties"),
            _SEARCH,
        ),
        CanonicalTool(
            GET_CLAIMS,
            ("claims", "wikidata", "provenance"),
            (),
            ("get_statement_values", "get_claim_values", "get_statements", "get_entity_claims", "get_claims"),
            {
                "qids": ("qids", "entity_ids", "ids", "entity_id", "qid", "id"),
                "properties": ("properties", "property_ids", "pids", "property_id", "pid", "property"),
                "language": ("lang", "language"),
                "external_ids": ("include_external_ids", "external_ids"),
            },
            {"get_statement_values": ("properties",), "get_claim_values": ("properties",)},
        ),
        CanonicalTool(
            SPARQL,
            ("sparql", "wikidata", "provenance"),
            (),
            ("execute_sparql", "sparql", "sparql_query", "run_sparql", "query_sparql"),
            {"query": ("sparql", "query", "sparql_query", "q"), "limit": ("K", "k", "limit", "max_rows")},
        ),
    )
}

_CANONICAL: Final[Mapping[str, str]] = {
    variant: tool.name for tool in TOOLS.values() for variant in (tool.name, *tool.variants)
}


def to_canonical(name: str) -> str:
    """Get the canonical name of a tool. A name that is not in the table is its own.

    A dot may be an underscore or a hyphen, as some clients and gateways write it.
    """
    if name in _CANONICAL:
        return _CANONICAL[name]
    for separator in ("_", "-", ".", "/", ":"):
        prefix, found, rest = name.partition("wikidata" + separator)
        if found and not prefix and rest in _CANONICAL:
            return _CANONICAL[rest]
    return name


def to_canonical_arguments(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the arguments of a call of `name`, canonical or not, to those of the canonical tool.

    One id becomes the list that the canonical argument is. Unknown arguments stay.
    """
    tool = TOOLS.get(to_canonical(name))
    if tool is None:
        return dict(arguments)
    renamed: dict[str, Any] = {}
    for given, value in arguments.items():
        wanted = next((own for own, names in tool.arguments.items() if given in names and own not in renamed), given)
        is_list = wanted in ("qids", "properties") and isinstance(value, str)
        renamed[wanted] = [value] if is_list else value
    return renamed


@dataclass(frozen=True, slots=True)
class RemoteSchema:
    """A tool that a server lists: its name and the arguments that it takes."""

    name: str
    arguments: Collection[str]
    """All of them."""
    required: Collection[str] = ()
    lists: Collection[str] = ()
    """Those that take a list."""


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """A call by the names of the server."""

    tool: str
    arguments: Mapping[str, Any]


def translate(name: str, arguments: Mapping[str, Any], listed: Collection[RemoteSchema]) -> list[RemoteCall] | None:
    """Translate a call of a canonical tool to calls of the best tool that the server lists; None if it has none.

    A server that takes one id at a time is called once for each. An optional argument that the server does not take is
    left out: it only limits or orders the answer. Arguments are not invented.
    """
    given = to_canonical_arguments(name, arguments)
    for schema in _find_candidates(to_canonical(name), given, listed):
        if (calls := _build_calls(to_canonical(name), given, schema)) is not None:
            return calls
    return None


def _find_candidates(name: str, given: Mapping[str, Any], listed: Collection[RemoteSchema]) -> list[RemoteSchema]:
    """The tools of a server for the canonical tool, the best first."""
    tool = TOOLS.get(name)
    if tool is None:
        return [schema for schema in listed if schema.name == name]
    order = (name, *tool.variants)
    found = [schema for schema in listed if to_canonical(schema.name) == name]
    fitting = [each for each in found if all(given.get(need) for need in tool.needed.get(each.name, ()))]

    def rank(schema: RemoteSchema) -> int:
        bare = next((known for known in order if schema.name == known or schema.name.endswith(known)), order[-1])
        return order.index(bare)

    return sorted(fitting, key=rank)


_ESSENTIAL: Final = frozenset({"query", "qids", "properties"})
"""Arguments without which an answer would be another."""


def _build_calls(name: str, given: Mapping[str, Any], schema: RemoteSchema) -> list[RemoteCall] | None:
    known = TOOLS[name].arguments if name in TOOLS else {}
    calls: list[dict[str, Any]] = [{}]
    for argument, value in given.items():
        if value is None:
            continue
        taken = next((each for each in known.get(argument, (argument,)) if each in schema.arguments), None)
        if taken is None:
            # A tool that answers with all properties answers with these too.
            if argument in _ESSENTIAL and argument != "properties":
                return None
            continue
        if isinstance(value, list | tuple) and taken not in schema.lists:
            calls = [{**call, taken: each} for call in calls for each in value]
        else:
            calls = [{**call, taken: value} for call in calls]
    if any(need not in call for call in calls for need in schema.required):
        return None
    return [RemoteCall(schema.name, call) for call in calls]
