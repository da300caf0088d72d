"""What policies decide about tools: the action and the arguments of each call, and the decision (`kg.access.policies`).

Arguments are those that the function gets: by their listed names, with defaults, and with the codes of places in place
of their names. Null and empty optional arguments are absent, since both mean that the argument is not used. Numbers
that may have a fraction and texts to be stored are not passed on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from kg.access.actors import Actor
from kg.access.endpoints import ENDPOINTS
from kg.access.policies import Action, Decision, Policies, Resource
from kg.errors import ForbiddenError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.permissions import FAMILIES
from kg.retrieval.places import Places, load_places
from kg.retrieval.reader import Reader
from kg.tools import commands, registry
from kg.tools.arguments import TEXTS_TO_STORE
from kg.tools.audiences import AWARE, SEE, find_audience, is_restricted, view
from kg.tools.calls import COUNTS, Command, Tool

PLACES: Final = frozenset({"iso3", "place", "iso3_a", "iso3_b", "municipalities"})
"""Arguments and filters with codes or names of places, except a municipality with its state."""

_TOWN: Final = frozenset({"municipality", "state"})
Record = Mapping[str, "Type"]
"""A record type: the names of its attributes with their types. An optional one ends with a question mark."""
Type = str | Record

_SCALARS: Final = {"string": "String", "integer": "Long", "boolean": "Bool"}


def name_action(tool: Command) -> str:
    """Get the name of the action that is a call of `tool`. Two tools with the same name have different ones."""
    return f"research.{tool.name}" if isinstance(tool, Tool) and tool.single else tool.name


def build_policies(folder: Path | None) -> Policies:
    """Build the policies of a server from a folder of files. Raises InvalidInputError for an invalid policy."""
    return Policies(list_actions(), list_resources(), folder)


def get_policies(kg: KnowledgeGraph) -> Policies:
    """Get the policies of an open graph. Raises InvalidInputError for an invalid policy, the first time."""
    if kg.policies is None:
        kg.policies = build_policies(kg.settings.policies)
    return kg.policies


def list_actions() -> Iterator[Action]:
    """List what policies decide about: calls of tools and commands, endpoints, and requests of graphs."""
    for tool in (*registry.TOOLS, *commands.COMMANDS):
        kind = "tools" if isinstance(tool, Tool) else "commands"
        groups = ("tools", "reads" if tool.reads else "writes") if kind == "tools" else ("tools", "commands")
        yield Action(name_action(tool), ("Tool",), groups, write_type(get_type(tool.arguments)))
    for name in ENDPOINTS:
        yield Action(name, ("Endpoint",), ("endpoints",))
    for method in ("put", "post", "delete", "update"):
        yield Action(f"graphs.{method}", ("Family",), ("changes",), "{ graph: String }")
    yield Action(SEE, ("Dataset", "Family"))


def list_resources() -> Iterator[Resource]:
    """List the tools, commands, endpoints and families of graphs."""
    for tool in (*registry.TOOLS, *commands.COMMANDS):
        tags = sorted(tool.tags) if isinstance(tool, Tool) else ["command"]
        yield Resource("Tool", name_action(tool), {"name": name_action(tool), "scope": tool.scope, "tags": tags})
    for name, scope in ENDPOINTS.items():
        yield Resource("Endpoint", name, {} if scope is None else {"scope": scope})
    for family in FAMILIES:
        yield family.resource


def decide(kg: KnowledgeGraph, actor: Actor, tool: Command, checked: BaseModel) -> Decision:
    """Decide a call with its arguments. Raises ForbiddenError that describes a denial."""
    policies = get_policies(kg)

    def load() -> Places:
        # The default policies have no conditions on arguments: places need not be looked up.
        return Places({}) if policies.current.is_default else load_places(Reader(kg))

    return policies.require(actor, name_action(tool), arguments=build_arguments(tool, checked, load))


def require_aware(kg: KnowledgeGraph, actor: Actor, action: str) -> None:
    """Raise ForbiddenError if `actor` sees a part of the data only, and the action answers about the whole."""
    if action not in AWARE and is_restricted(get_policies(kg), actor):
        raise ForbiddenError(
            f"{actor.name!r} may read a part of the data only, and {action!r} answers about all of it. Available: "
            f"{', '.join(sorted(AWARE))}."
        )


def require_endpoint(kg: KnowledgeGraph, actor: Actor, action: str) -> None:
    """Raise ForbiddenError unless `actor` may use an endpoint (`kg.access.endpoints`)."""
    get_policies(kg).require(actor, action)
    require_aware(kg, actor, action)


def find_callable(kg: KnowledgeGraph, actor: Actor) -> frozenset[str]:
    """Find the tools and commands that `actor` may call with some arguments, by the names of their actions."""
    policies = get_policies(kg)
    found = policies.find_callable(actor)
    return found & AWARE if is_restricted(policies, actor) else found


def require_callable(kg: KnowledgeGraph, actor: Actor, tool: Command) -> None:
    """Raise ForbiddenError if `actor` may not call a tool with any arguments."""
    action = name_action(tool)
    get_policies(kg).require_callable(actor, action)
    require_aware(kg, actor, action)


def get_view(kg: KnowledgeGraph, actor: Actor) -> KnowledgeGraph:
    """Get the graph as `actor` may read it. Blocks."""
    return view(kg, find_audience(kg, get_policies(kg), actor))


def build_arguments(tool: Command, checked: BaseModel, get_places: Callable[[], Places]) -> dict[str, Any]:
    """Build the arguments of a call as policies see them, from those that were validated.

    ``places`` are all places that the arguments and filters name: by their codes, or as given if they are unknown.
    ``limit`` is the number of results, which some tools call otherwise.
    """
    declared = get_type(tool.arguments)
    names = {name.removesuffix("?") for name in declared}
    named: dict[str, None] = {}
    arguments = _select(checked.model_dump(mode="json", include=names), declared, partial(_resolve, get_places, named))
    if "municipality" in arguments:
        _resolve_town(arguments, get_places(), named)
    elif "state" in arguments:
        arguments["state"] = _resolve(get_places, named, "place", arguments["state"])
    if named:
        arguments["places"] = sorted(named)
    if (counted := _find_count(tool.arguments.model_fields.keys())) is not None and counted in arguments:
        arguments["limit"] = arguments[counted]
    return arguments


def _select(given: Mapping[str, Any], declared: Record, resolve: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Take the declared attributes that have a value."""
    taken: dict[str, Any] = {}
    for name, kind in declared.items():
        value = given.get(plain := name.removesuffix("?"))
        if value is None or (name != plain and value in ("", [], {})):
            continue
        taken[plain] = _select(value, kind, resolve) if isinstance(kind, Mapping) else resolve(plain, value)
        if name != plain and taken[plain] == {}:
            del taken[plain]
    return taken


def _resolve(get_places: Callable[[], Places], found: dict[str, None], name: str, value: Any) -> Any:
    """Write the codes of the places that an argument names. Names of unknown and of ambiguous places stay."""
    if name not in PLACES:
        return value
    if isinstance(value, list):
        return sorted({_resolve(get_places, found, name, each) for each in value})
    known = get_places().find(value)
    code: str = known[0].code if len(known) == 1 else value
    found[code] = None
    return code


def _resolve_town(arguments: dict[str, Any], places: Places, found: dict[str, None]) -> None:
    """Write the codes of a municipality and of its state."""
    state, town = str(arguments.get("state", "")), str(arguments["municipality"])
    outside = places.find(state) if state else []
    inside = [
        place
        for place in places.find(town)
        if place.kind == "municipality"
        and (not state or not {each.iri for each in outside}.isdisjoint(each.iri for each in places.get_chain(place)))
    ]
    if len(outside) == 1:
        arguments["state"] = outside[0].code
    if len(inside) == 1:
        arguments["municipality"] = inside[0].code
    found[arguments["municipality"]] = None


@cache
def get_type(model: type[BaseModel]) -> Record:
    """Get the record type of arguments: those that policies may use."""
    schema = model.model_json_schema()
    declared = _read_record(schema, schema.get("$defs", {}))
    names = {name.removesuffix("?") for name in declared}
    if not names.isdisjoint(_TOWN) or any(_names_places(name, kind) for name, kind in declared.items()):
        declared = {**declared, "places?": "Set<String>"}
    if (counted := _find_count(model.model_fields.keys())) is not None:
        declared = {**declared, "limit" if counted in declared else "limit?": "Long"}
    return declared


def _find_count(names: Set[str]) -> str | None:
    """Find the argument with the number of results of a tool that calls it otherwise than ``limit``."""
    found = sorted(COUNTS & names)
    return found[0] if found and "limit" not in names else None


def _names_places(name: str, kind: Type) -> bool:
    if isinstance(kind, Mapping):
        return any(_names_places(*each) for each in kind.items())
    return name.removesuffix("?") in PLACES


def _read_record(schema: Mapping[str, Any], defined: Mapping[str, Any]) -> Record:
    required = set(schema.get("required", ()))
    found: dict[str, Type] = {}
    for name, node in schema.get("properties", {}).items():
        kind, nullable = _read_type(node, defined)
        # A default other than null and empty is always there. A required argument can be null too.
        is_given = not nullable and (name in required or node.get("default") not in (None, "", [], {}))
        if kind is not None and name not in TEXTS_TO_STORE:
            found[name if is_given else f"{name}?"] = kind
    return found


def _read_type(node: Mapping[str, Any], defined: Mapping[str, Any]) -> tuple[Type | None, bool]:
    """Read a type of JSON Schema, and whether it may be null. None: it has none of Cedar, such as a fraction."""
    if "$ref" in node:
        return _read_type(defined[node["$ref"].rpartition("/")[2]], defined)
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option.get("type") != "null"]
        kinds = [_read_type(option, defined)[0] for option in options]
        return (kinds[0] if len(kinds) == 1 else None), len(options) < len(node["anyOf"])
    kind = node.get("type")
    if kind == "array":
        element, _ = _read_type(node.get("items", {}), defined)
        return (f"Set<{element}>" if isinstance(element, str) else None), False
    if kind == "object":
        return (_read_record(node, defined) or None), False
    return _SCALARS.get(str(kind)), False


def write_type(kind: Type) -> str:
    """Write a type in Cedar."""
    if isinstance(kind, str):
        return kind
    attributes = (
        f"{json.dumps(name.removesuffix('?'))}{'?' * name.endswith('?')}: {write_type(each)}"
        for name, each in kind.items()
    )
    return "{ " + ", ".join(attributes) + " }"
