"""Arguments of calls, converted to those that a tool declares: names of one scheme for all tools, and values.

The names of the scheme are ``query``, ``limit``, ``offset``, ``place`` (``iso3`` for countries, ``municipality`` and
``state`` for towns), ``language``, ``date_from``, ``date_to``, ``id`` and ``ids``. A tool lists one name for each of
its arguments. Calls may use the others, so that a client that knows one tool can guess the arguments of the next.

Models and the libraries that call them send null for an argument that is not used, an object or a list as a JSON
string, and one value where a list is declared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import from_json

from kg.retrieval.results import SearchFilters
from kg.vocabulary import BASE, PREFIXES

PUBLIC: Final[Mapping[str, str]] = {"max_rows": "limit", "max_results": "limit"}
"""The name that a tool lists for a parameter, where it differs. ``top_k`` stays: specifications of tools have it."""

_GROUPS: Final[tuple[tuple[str, ...], ...]] = (
    ("limit", "top_k", "max_rows", "max_results", "page_size"),
    ("top_k", "limit", "max_results", "page_size"),
    ("top_n", "limit", "top_k", "max_results"),
    ("k", "limit", "top_k", "max_results", "page_size"),
    ("offset", "skip"),
    ("neighbours", "neighbors", "context"),
    ("query", "q", "text", "question", "statement"),
    ("language", "languages", "lang"),
    ("date_from", "from", "since", "start_date"),
    ("date_to", "to", "until", "end_date"),
    ("iso3", "place", "places", "country", "countries", "jurisdiction", "geography"),
    ("municipality", "place", "town", "city"),
    ("municipalities", "places"),
    ("speaker", "person"),
    ("topics", "topic"),
    ("family_slug", "family", "slug", "id", "iri"),
    ("id", "iri"),
    ("ids", "id", "iri", "iris", "passage_ids"),
    ("qid", "id", "iri", "concept"),
    ("qids", "qid", "ids", "id", "iri", "concept_qids", "concepts", "concept"),
    ("speech_id", "id", "iri", "speech"),
    ("section_id", "id", "iri", "section"),
    ("claim", "id", "iri"),
    ("entity_id", "id", "iri", "entity"),
    ("doc_ids", "ids", "id", "iri", "iris"),
    ("rels", "relations"),
    ("paths", "path", "file_path", "files"),
    ("term", "id", "iri", "name", "query", "q", "text"),
)
"""Names of one argument. A name in a call is another name for the first of its groups that the tool lists."""

_IDS: Final = frozenset(
    {"id", "ids", "iri", "qid", "qids", "concept_qids", "speech_id", "section_id", "parent_id", "root_section",
     "claim", "graph", "document", "family_slug", "entity_id", "doc_ids"}
)  # fmt: skip
"""Arguments that take IRIs."""

TEXTS_TO_STORE: Final = frozenset(
    {"raw_content", "turtle", "shapes", "summary", "definitions", "permissions", "standards"}
)
"""Arguments with texts that callers store or check: logs and policies get none of them."""

Schema = Mapping[str, Any]

_TYPES: Final[Mapping[type, frozenset[str]]] = {
    dict: frozenset({"object"}),
    list: frozenset({"array"}),
    # Texts of numbers and of true and false are validated as such.
    str: frozenset({"string", "integer", "number", "boolean"}),
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number", "integer"}),
}
"""The JSON types that a value may be validated as."""


def resolve_names(given: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Rename the arguments of a call to those that `model` lists, `fit` their values, and write short IRIs in full.

    A filter outside of ``filters`` is put into it. Other unknown arguments stay, and are refused later.
    """
    fields = model.model_fields
    arguments = fit({name: value for name, value in given.items() if name in fields}, model)
    for name, value in given.items():
        if name in fields or (value is None and _is_known(name, fields)):
            continue
        target = _find_target(name, fields, arguments)
        if target is not None:
            arguments[target] = value
        elif not ("filters" in fields and _put_into_filters(arguments, name, value)):
            arguments[name] = value
    # "Quarry Bend, UT", as the tools that take a `place` accept it.
    if "state" in fields and "state" not in arguments and isinstance(place := arguments.get("municipality"), str):
        town, comma, state = place.rpartition(",")
        if comma and town.strip() and state.strip():
            arguments |= {"municipality": town.strip(), "state": state.strip()}
    return _expand_ids(fit(arguments, model))


def _is_known(name: str, fields: Collection[str]) -> bool:
    """Return whether `name` is another name of one of `fields`, or of a filter where they have ``filters``."""
    filters = SearchFilters.model_fields if "filters" in fields else ()
    return name in filters or any(_find_target(name, known, ()) is not None for known in (fields, filters))


def _expand_ids(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _expand_ids(value) if isinstance(value, dict) else _expand(value) if name in _IDS else value
        for name, value in arguments.items()
    }


def _find_target(name: str, fields: Collection[str], taken: Collection[str]) -> str | None:
    same = (other for group in _GROUPS if name in group for other in group)
    return next((other for other in same if other in fields and other not in taken), None)


def _put_into_filters(arguments: dict[str, Any], name: str, value: Any) -> bool:
    """Put an argument into ``filters`` if it is one of them that is not given there."""
    filters = arguments.get("filters")
    inside = filters if isinstance(filters, dict) else {}
    known = SearchFilters.model_fields
    target = name if name in known else _find_target(name, known, inside)
    if target is None or target in inside or not (filters is None or isinstance(filters, dict)):
        return False
    arguments["filters"] = {**inside, target: value}
    return True


def _expand(value: Any) -> Any:
    """Write an IRI in full: ``kg:Passage``, ``wd:Q42``, or a path such as ``id/speech/x`` as answers show it."""
    if isinstance(value, list):
        return [_expand(each) for each in value]
    if not isinstance(value, str):
        return value
    text = value.strip()
    prefix, colon, local = text.partition(":")
    if colon and prefix in PREFIXES and local and not local.startswith("//"):
        return PREFIXES[prefix] + local
    return BASE + text if text.startswith(("id/", "graph/")) else value


def fit(arguments: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Convert the arguments that `model` declares, at all levels; others stay. Values that do not fit are unchanged.

    Null of an optional argument is absent. A string is parsed as JSON only where an object or a list is declared and
    no string, and where the result is one that is declared: a text in brackets is a text in a list of texts.
    """
    schema, defined = _schema_of(model)
    return _fit_object(arguments, schema, defined)


@cache
def _schema_of(model: type[BaseModel]) -> tuple[Schema, Schema]:
    schema = model.model_json_schema()
    return schema, schema.get("$defs", {})


def _fit_object(given: Mapping[str, Any], schema: Schema, defined: Schema) -> dict[str, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: _fit(value, properties[name], defined) if name in properties else value
        for name, value in given.items()
        if not (value is None and name in properties and name not in required)
    }


def _fit(value: Any, schema: Schema, defined: Schema) -> Any:
    options = _list_options(schema, defined)
    if value is None or not all("type" in option for option in options):
        return value
    if (taken := _find_option(value, options)) is None:
        if isinstance(value, str) and (parsed := _parse(value, options, defined)) is not None:
            return parsed
        items = [_list_options(option.get("items", {}), defined) for option in options if option["type"] == "array"]
        if any("type" not in item or _find_option(value, [item]) for each in items for item in each):
            return _fit([value], schema, defined)
        if isinstance(value, list) and len(value) == 1 and _find_option(value[0], options):
            return _fit(value[0], schema, defined)
        return value
    if taken["type"] == "object":
        return _fit_object(value, taken, defined)
    if taken["type"] == "array":
        return [_fit(each, taken.get("items", {}), defined) for each in value]
    return value


def _list_options(schema: Schema, defined: Schema) -> list[Schema]:
    """List the alternatives of a schema, each with its type; one of any type has none."""
    if "$ref" in schema:
        schema = defined[schema["$ref"].rpartition("/")[2]]
    return [found for option in schema.get("anyOf", ()) for found in _list_options(option, defined)] or [schema]


def _find_option(value: Any, options: list[Schema]) -> Schema | None:
    types = _TYPES.get(type(value), frozenset())
    return next((option for option in options if option.get("type") in types), None)


def _parse(text: str, options: list[Schema], defined: Schema) -> Any:
    """Parse the JSON of a declared object or list, and fit it; None if it is neither, or elements do not fit."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        return None
    if (taken := _find_option(value, options)) is None:
        value = [value]
        taken = _find_option(value, options)
    if taken is None:
        return None
    if taken["type"] == "object":
        return _fit_object(value, taken, defined)
    elements = _list_options(taken.get("items", {}), defined)
    typed = all("type" in option for option in elements)
    if typed and not all(isinstance(each, str) or _find_option(each, elements) for each in value):
        return None
    return [_fit(each, taken.get("items", {}), defined) for each in value]
