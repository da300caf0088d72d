"""Decisions about calls of tools: arguments by any name, with defaults and codes of places, and the table of graphs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import Any, Final, get_args

import cedarpy
import pytest
from pyoxigraph import NamedNode

from kg.access.actors import SCOPES, Actor
from kg.access.endpoints import ENDPOINTS
from kg.access.policies import Policies
from kg.errors import ForbiddenError
from kg.provenance.permissions import FAMILIES, Method, check_request
from kg.retrieval.places import Places
from kg.tools.calls import Command
from kg.tools.commands import COMMANDS
from kg.tools.decisions import build_arguments, build_policies, list_actions, name_action
from kg.tools.policy_cases import load_cases, run_cases
from kg.tools.registry import TOOLS

EXAMPLES: Final = Path(__file__).parents[2] / "kg" / "access" / "cedar" / "examples"
BY_NAME: Final[Mapping[str, Command]] = {name_action(tool): tool for tool in (*TOOLS, *COMMANDS)}


@pytest.fixture(scope="module")
def defaults() -> Policies:
    return build_policies(None)


def see(action: str, **arguments: Any) -> dict[str, Any]:
    tool = BY_NAME[action]
    return build_arguments(tool, tool.check(arguments), lambda: Places({}))


def all_scopes() -> Iterator[frozenset[str]]:
    return map(frozenset, chain.from_iterable(combinations(SCOPES, size) for size in range(len(SCOPES) + 1)))


def test_each_action_has_a_name_of_its_own() -> None:
    names = [action.name for action in list_actions()]
    assert len(names) == len(set(names))
    assert not set(names) & {group for action in list_actions() for group in action.groups}


def test_the_default_policies_decide_what_the_table_of_graphs_does(defaults: Policies) -> None:
    for family in FAMILIES:
        graph = NamedNode(f"{family.prefix}x")
        for method in get_args(Method):
            for scopes in all_scopes():
                actor = Actor("x", scopes)
                decision = defaults.decide(actor, f"graphs.{method.lower()}", family.resource, {"graph": graph.value})
                assert decision.allowed == (family.get_right(method) in scopes)
                assert not decision.errors
                for policies in (None, defaults):
                    assert _is_allowed(graph, method, actor, policies) == decision.allowed


def _is_allowed(graph: NamedNode, method: Method, actor: Actor, policies: Policies | None) -> bool:
    try:
        check_request(graph, method, actor, policies)
    except ForbiddenError:
        return False
    return True


def test_the_default_policies_require_the_scope_of_each_tool_and_endpoint(defaults: Policies) -> None:
    scopes = {name: tool.scope for name, tool in BY_NAME.items()} | dict(ENDPOINTS)
    for held in all_scopes():
        actor = Actor("x", held)
        found = defaults.find_callable(actor, "Tool") | defaults.find_callable(actor, "Endpoint")
        assert found == {name for name, scope in scopes.items() if scope is None or scope in held}


def test_arguments_are_those_that_the_function_gets() -> None:
    seen = see("search", q="solar", top_k="7", country="sierra leone", lang="en", filters={"place": ["Ghana", "SLE"]})
    assert seen["query"] == "solar"
    assert seen["limit"] == 7
    assert seen["filters"] == {"iso3": ["SLE"], "place": ["GHA", "SLE"], "language": ["en"]}
    assert seen["places"] == ["GHA", "SLE"]
    assert see("jurisdiction_overview", iso3="BRA")["places"] == ["BRA"]
    assert see("compare_jurisdictions", iso3_a="Brazil", iso3_b="Djibouti")["places"] == ["BRA", "DJI"]
    assert see("search_speeches", query="x", state="Utah")["places"] == ["US-UT"]
    assert see("hybrid_query", q="x", k=3)["limit"] == 3


@pytest.mark.parametrize("empty", [{}, {"iso3": []}, {"filters": {}}, {"filters": None}, {"filters": {"iso3": None}}])
def test_an_argument_without_a_value_is_absent(empty: dict[str, Any]) -> None:
    seen = see("search", query="solar", **empty)
    assert "places" not in seen
    assert "filters" not in seen
    assert seen == see("search", query="solar")


def test_texts_to_store_and_fractions_are_left_out() -> None:
    code = {"municipality": "Quarry Bend", "state": "UT", "section_id": "1", "title": "x", "level": 1}
    seen = see("kg_ingest_code_section", **code, raw_content="secret words")
    assert "secret words" not in str(seen)
    assert seen["state"] == "US-UT"
    assert seen["places"] == ["Quarry Bend"]
    assert "min_score" not in see("search", query="x", min_score=0.5)


def test_the_arguments_of_each_tool_are_of_the_types_in_the_schema(defaults: Policies) -> None:
    """A call with the least arguments is decided without errors, with the defaults of all others."""
    least = {"string": "x", "integer": 1, "boolean": True, "number": 0.5, "object": {}}
    everyone = Actor("x", frozenset(SCOPES))
    for name, tool in BY_NAME.items():
        schema = tool.arguments.model_json_schema()
        arguments = {}
        for each in schema.get("required", ()):
            node = schema["properties"][each]
            if "array" in (node.get("type"), *(option.get("type") for option in node.get("anyOf", ()))):
                arguments[each] = ["x"] * node.get("minItems", 1)
            else:
                arguments[each] = node["enum"][0] if "enum" in node else least[node.get("type", "string")]
        if {"definitions", "permissions", "standards"} & arguments.keys():
            continue  # lists of objects
        decision = defaults.decide(
            everyone, name, arguments=build_arguments(tool, tool.check(arguments), lambda: Places({}))
        )
        assert (name, decision.allowed, decision.errors) == (name, True, ())


def test_the_examples_are_decided_as_they_say() -> None:
    outcomes = run_cases(build_policies(EXAMPLES), load_cases(EXAMPLES / "cases.toml"))
    assert [each.problem for each in outcomes if each.problem] == []
    assert {each.decision.allowed for each in outcomes} == {True, False}


def test_each_example_policy_decides_a_case() -> None:
    policies = build_policies(EXAMPLES)
    outcomes = run_cases(policies, load_cases(EXAMPLES / "cases.toml"))
    decided = {name for each in outcomes for name in each.decision.policies}
    assert {name for name in policies.current.ids.values() if not name.startswith("default-")} <= decided


RULES = """
@id("readers") forbid(principal in Group::"readers", action in Action::"writes", resource);
@id("quota") forbid(principal in Group::"free", action in [Action::"search", Action::"search_speeches"], resource)
when { context.args.limit > 10 };
@id("places")
forbid(principal in Group::"africa", action in [Action::"search", Action::"jurisdiction_overview"], resource)
unless { context.args has places && ["SLE", "GHA", "ZAF"].containsAll(context.args.places) };
@id("english") forbid(principal in Group::"english", action == Action::"search", resource)
unless { context.args has filters && context.args.filters has language && context.args.filters.language == ["en"] };
@id("no-raw") forbid(principal, action in [Action::"sparql", Action::"sparql.query"], resource)
unless { principal.hasTag("raw") && principal.getTag("raw").contains("true") };
@id("guests-search") permit(principal in Group::"guests", action in [Action::"search", Action::"fetch"], resource);
"""
ALIASES: Final = {
    "SLE": ("SLE", "Sierra Leone", "sle", "sierra leone"), "GHA": ("GHA", "Ghana"), "ZAF": ("ZAF", "South Africa"),
    "BRA": ("BRA", "Brazil"), "DJI": ("DJI", "Djibouti"),
}  # fmt: skip
READING: Final = ("search", "fetch", "sparql", "search_speeches", "jurisdiction_overview", "health")
WRITING: Final = ("review_claim", "ingest_speech")
NEEDS: Final = {
    "search": "search", "search_speeches": "search", "fetch": "read", "sparql": "sparql", "health": "read",
    "jurisdiction_overview": "read", "review_claim": "curate", "ingest_speech": "write", "sparql.query": "sparql",
    "sparql.update": "admin",
}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A random request: what a client sends, and what it means."""

    action: str
    sent: dict[str, Any]
    limit: int = 0
    places: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()


def make_request(choice: random.Random) -> Request:
    action = choice.choice([*NEEDS])
    if action == "search":
        limit, sent = choice.randint(1, 30), {"query": "solar"}
        places = frozenset(choice.sample([*ALIASES], choice.choice([0, 0, 1, 1, 2])))
        languages = frozenset(choice.sample(["en", "fr"], choice.choice([0, 1, 1, 2])))
        named = [choice.choice(ALIASES[place]) for place in sorted(places)]
        form = choice.randrange(3)
        filters: dict[str, Any] = {}
        if form == 0 and named:
            sent[choice.choice(["iso3", "place", "country"])] = named if len(named) > 1 else named[0]  # type: ignore[assignment]
        elif named:
            filters["iso3" if form == 1 else "place"] = named
        if languages:
            filters["language"] = sorted(languages)
        if filters or choice.random() < 0.3:
            sent["filters"] = filters or None  # type: ignore[assignment]
        if choice.random() < 0.2:
            limit = 20  # the default
        else:
            sent[choice.choice(["limit", "top_k", "max_results"])] = choice.choice([limit, str(limit)])  # type: ignore[assignment]
        return Request(action, sent, limit, places, languages)
    if action == "search_speeches":
        limit = choice.randint(1, 30)
        return Request(action, {"query": "x", choice.choice(["top_k", "limit"]): limit}, limit)
    if action == "jurisdiction_overview":
        place = choice.choice([*ALIASES])
        sent = {choice.choice(["iso3", "place"]): choice.choice(ALIASES[place])}
        return Request(action, sent, places=frozenset({place}))
    sent = {
        "fetch": {"id": "x"}, "sparql": {"query": "ASK {}"}, "ingest_speech": {"file_path": "x", "format": "csv"},
        "review_claim": {"claim": "x", "verdict": "accept"},
    }.get(action, {})  # fmt: skip
    return Request(action, sent)


def expect(actor: Actor, request: Request) -> bool:
    """Decide what `RULES` mean, without Cedar."""
    action, groups = request.action, actor.groups
    if "readers" in groups and action in WRITING:
        return False
    if "free" in groups and action in ("search", "search_speeches") and request.limit > 10:
        return False
    is_placed = bool(request.places) and request.places <= {"SLE", "GHA", "ZAF"}
    if "africa" in groups and action in ("search", "jurisdiction_overview") and not is_placed:
        return False
    if "english" in groups and action == "search" and request.languages != {"en"}:
        return False
    if action in ("sparql", "sparql.query") and actor.claims.get("raw") is not True:
        return False
    return NEEDS[action] in actor.scopes or ("guests" in groups and action in ("search", "fetch"))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_random_decisions_are_those_of_a_model_written_apart(tmp_path: Path) -> None:
    (tmp_path / "rules.cedar").write_text(RULES)
    policies = build_policies(tmp_path)
    choice = random.Random(41)
    groups = ("readers", "free", "africa", "english", "guests")
    actors = [
        Actor(
            f"user{number}",
            frozenset(choice.sample(SCOPES, choice.randint(0, len(SCOPES)))),
            frozenset(choice.sample(groups, choice.randint(0, 3))),
            {"raw": choice.random() < 0.5} if choice.random() < 0.7 else {},
        )
        for number in range(200)
    ]
    listed = {actor: policies.find_callable(actor) for actor in actors}
    hierarchy = Places({})
    found = {True: 0, False: 0}
    for _ in range(100_000):
        actor, request = choice.choice(actors), make_request(choice)
        tool = BY_NAME.get(request.action)
        arguments = {} if tool is None else build_arguments(tool, tool.check(request.sent), lambda: hierarchy)
        decision = policies.decide(actor, request.action, arguments=arguments)
        assert not decision.errors, (request, decision)
        assert decision.allowed == expect(actor, request), (actor, request, arguments, decision)
        if decision.allowed and tool is not None:
            assert request.action in listed[actor]
        found[decision.allowed] += 1
    assert min(found.values()) > 20_000


def test_the_schema_is_that_of_cedar(defaults: Policies) -> None:
    assert str(cedarpy.Schema.from_str(defaults.schema_text))


def test_required_argument_that_is_null_is_no_error(defaults: Policies) -> None:
    for given in ({"ids": None, "file": None, "by": "ann"}, {"ids": ["x"], "file": "x", "by": "ann"}):
        decision = defaults.decide(
            Actor("x", frozenset(SCOPES)), "quarantine_retry", arguments=see("quarantine_retry", **given)
        )
        assert (decision.allowed, decision.errors) == (True, ())
