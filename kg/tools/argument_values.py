"""Values of arguments as clients send them, converted to the JSON types that a tool declares.

Models and the libraries that call them send null for an argument that is not used, an object or a list as a JSON
string, and one value where a list is declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import from_json

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
