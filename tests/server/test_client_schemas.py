"""The schemas of all tools, converted as the libraries of clients convert them, and the rules of model providers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import anyio
import pytest
from anthropic import transform_schema
from fastmcp import Client
from google.genai._mcp_utils import mcp_to_gemini_tool
from mcp_types import Tool as ListedTool
from openai.lib._pydantic import _ensure_strict_json_schema
from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

from kg.server.mcp import build_mcp
from kg.tools.mounts import MOUNTS

Schema = dict[str, Any]


@pytest.fixture(scope="module")
def listed(kg) -> list[ListedTool]:
    """All tools as clients see them, those of the mounts that differ too."""

    async def work() -> list[ListedTool]:
        found: dict[str, ListedTool] = {}
        for path in MOUNTS:
            async with Client(build_mcp(kg, path)) as client:
                found |= {f"{tool.name} {tool.input_schema}": tool for tool in await client.list_tools()}
        return list(found.values())

    return anyio.run(work)


def to_gemini(schema: Schema) -> Schema:
    tool = ListedTool(name="converted", input_schema=schema)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Accessing `Tool.inputSchema`")  # the converter tries both names
        (declaration,) = mcp_to_gemini_tool(tool).function_declarations
    return declaration.parameters.model_dump(mode="json", exclude_none=True)


CONVERTERS: dict[str, Callable[[Schema], Schema]] = {
    "google-genai": to_gemini,
    "openai": lambda schema: _ensure_strict_json_schema(schema, path=(), root=schema),
    "anthropic": transform_schema,
    "pydantic-ai for OpenAI": lambda schema: OpenAIJsonSchemaTransformer(schema, strict=True).walk(),
    "pydantic-ai for Gemini": lambda schema: GoogleJsonSchemaTransformer(schema, strict=True).walk(),
}


@pytest.mark.parametrize("library", CONVERTERS)
def test_the_converter_of_a_client_library_keeps_all_fields_and_descriptions(listed, library):
    for tool in listed:
        for schema in (tool.input_schema, tool.output_schema):
            converted = CONVERTERS[library](deepcopy(schema))
            assert set(converted.get("properties", {})) == set(schema["properties"]), tool.name
            texts = {text for node in walk(schema) if (text := node.get("description"))}
            kept = " ".join(node.get("description", "") for node in walk(converted))
            assert all(text in kept for text in texts), tool.name


def test_names_and_schemas_obey_the_rules_of_all_providers(listed):
    """Those of Anthropic and OpenAI for names, and of Gemini, the narrowest, for schemas."""
    for tool in listed:
        assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", tool.name)
        for schema in (tool.input_schema, tool.output_schema):
            assert schema["type"] == "object"
            for node in walk(schema):
                assert isinstance(node["type"], str) if "type" in node else set(node) == {"anyOf"}, tool.name
                assert not {"$ref", "allOf", "oneOf", "additionalProperties", "const", "format"} & set(node)
                assert node.get("type") != "array" or node["items"]
                assert all(isinstance(value, str) for value in node.get("enum", ()))


def test_strict_clients_can_leave_out_what_is_optional(listed):
    """OpenAI's strict mode requires every field: an optional one has a default, takes null, or is an empty list."""
    for tool in listed:
        for node in walk(tool.input_schema):
            for name, field in node.get("properties", {}).items():
                optional = name not in node.get("required", ())
                empty = "default" in field or field.get("type") == "array" or {"type": "null"} in field.get("anyOf", ())
                assert not optional or empty, f"{tool.name}: {name}"


def walk(schema: Schema) -> Iterator[Schema]:
    """List a schema and the schemas in it."""
    yield schema
    below = [*schema.get("properties", {}).values(), *(schema.get("anyOf") or schema.get("any_of") or ())]
    for each in [*below, *([schema["items"]] if schema.get("items") else [])]:
        yield from walk(each)
