"""Decisions: errors are denials; scopes, groups and claims count; what may be called is found without arguments."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.access.actors import SCOPES, Actor
from kg.access.policies import Action, Policies, Resource
from kg.errors import ForbiddenError, InvalidInputError
from tests.access.made_up import NAMED

ACTIONS = (
    *NAMED,
    Action("find", ("Tool",), ("tools", "reads"), "{ query: String, limit: Long, iso3?: Set<String> }"),
    Action("store", ("Tool",), ("tools", "writes"), "{ text?: String }"),
    Action("read", ("Endpoint",), ("endpoints",)),
)
RESOURCES = (
    Resource("Tool", "find", {"name": "find", "scope": "search", "tags": []}),
    Resource("Tool", "store", {"name": "store", "scope": "write", "tags": []}),
    Resource("Endpoint", "read", {"scope": "read"}),
)
ANNA = Actor("anna", frozenset({"read", "search"}), frozenset({"press"}), {"tier": ("gold", "eu"), "staff": True})
BEN = Actor("ben", frozenset(SCOPES))


def build(folder: Path, text: str = "") -> Policies:
    if text:
        (folder / "own.cedar").write_text(text)
    return Policies(ACTIONS, RESOURCES, folder)


def allows(policies: Policies, actor: Actor, action: str, arguments: Any = None, **options: Any) -> bool:
    return policies.decide(actor, action, arguments=arguments, **options).allowed


def test_the_default_policies_require_the_scope_of_each_action(tmp_path: Path) -> None:
    policies = Policies(ACTIONS, RESOURCES)
    for resource in RESOURCES:
        for scope in SCOPES:
            actor = Actor("x", frozenset({scope}))
            arguments = {"query": "x", "limit": 1} if resource.name == "find" else {}
            assert allows(policies, actor, resource.name, arguments) == (scope == resource.attributes["scope"])


LIMITED = """@id("most") @advice("At most 50.")
forbid(principal, action == Action::"find", resource) when { context.args.limit > 50 };"""


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ({"query": "x", "limit": 50}, True),
        ({"query": "x", "limit": 51}, False),
        ({"query": "x", "limit": "50"}, False),
        ({"query": "x"}, False),
        ({"query": "x", "limit": None}, False),
        ({"query": "x", "limit": 5.0}, False),
        ({"query": "x", "limit": 2**70}, False),
        ({"query": "x", "limit": float("nan")}, False),
        ({"query": "x", "limit": 5, "more": 1}, False),
        ({"query": "\ud800", "limit": 5}, False),
    ],
)
def test_arguments_that_are_not_of_their_types_are_denied(
    tmp_path: Path, arguments: dict[str, Any], allowed: bool
) -> None:
    assert allows(build(tmp_path, LIMITED), ANNA, "find", arguments) == allowed


def test_an_error_in_any_policy_denies_what_another_permits(tmp_path: Path) -> None:
    """Cedar leaves out a forbid that fails: here an overflow."""
    text = '@id("sum") forbid(principal, action == Action::"find", resource) when { context.args.limit * 4 > 9 };'
    policies = build(tmp_path, text)
    assert allows(policies, ANNA, "find", {"query": "x", "limit": 2})
    decision = policies.decide(ANNA, "find", arguments={"query": "x", "limit": 2**62})
    assert (decision.allowed, decision.policies) == (False, ())
    assert "sum" in decision.errors[0]


def test_an_unknown_action_is_denied(tmp_path: Path) -> None:
    assert build(tmp_path).decide(BEN, "destroy").errors


def test_groups_claims_and_time_are_conditions(tmp_path: Path) -> None:
    policies = build(
        tmp_path,
        """
        @id("press") forbid(principal in Group::"press", action == Action::"read", resource);
        @id("gold") forbid(principal, action == Action::"find", resource)
        unless { principal.hasTag("tier") && principal.getTag("tier").contains("gold")
                 && principal.hasTag("staff") && principal.getTag("staff") == ["true"] };
        @id("night") forbid(principal, action == Action::"store", resource)
        unless { context.time > datetime("2027-01-01") };
        """,
    )
    assert not allows(policies, ANNA, "read")
    assert allows(policies, BEN, "read")
    assert allows(policies, ANNA, "find", {"query": "x", "limit": 1})
    assert not allows(policies, BEN, "find", {"query": "x", "limit": 1})
    assert allows(policies, BEN, "store", {}, now=datetime(2027, 1, 1, 0, 0, 1, tzinfo=UTC))
    assert not allows(policies, BEN, "store", {}, now=datetime(2027, 1, 1, tzinfo=UTC))


def test_an_action_is_callable_if_some_arguments_are_allowed(tmp_path: Path) -> None:
    policies = build(
        tmp_path,
        """
        @id("most") forbid(principal, action == Action::"find", resource) when { context.args.limit > 0 };
        @id("press") forbid(principal in Group::"press", action == Action::"store", resource);
        """,
    )
    assert policies.find_callable(ANNA) == {"find"}
    assert policies.find_callable(BEN) == {"find", "store"}
    assert policies.find_callable(BEN, "Endpoint") == {"read"}
    assert policies.find_callable(Actor("x", frozenset())) == frozenset()


NAMES = ["O'Brien", 'a"b', "back\\slash", "José", "line\nbreak", "\0", "مريم", "a b"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_characters_is_decided_by_its_policy(tmp_path: Path, name: str) -> None:
    other = Actor(name, frozenset(SCOPES))
    assert allows(build(tmp_path), other, "store", {})
    assert build(tmp_path).find_callable(other) == {"find", "store"}


@given(st.text(st.characters(exclude_categories=())))
def test_a_name_never_gets_the_rights_of_another(name: str) -> None:
    policies = Policies(ACTIONS, RESOURCES)
    nobody = Actor(name, frozenset())
    assert not policies.decide(nobody, "store").allowed
    assert policies.find_callable(nobody) == frozenset()


def test_actors_that_differ_in_claims_alone_are_told_apart(tmp_path: Path) -> None:
    text = '@id("tier") forbid(principal, action, resource) unless { principal.hasTag("tier") };'
    policies = build(tmp_path, text)
    gold = Actor("x", frozenset(SCOPES), frozenset(), {"tier": "gold"})
    plain = Actor("x", frozenset(SCOPES))
    for _ in range(2):
        assert allows(policies, gold, "read")
        assert not allows(policies, plain, "read")
        assert policies.find_callable(gold)
        assert not policies.find_callable(plain)


def test_a_denial_names_the_scope_or_the_policy_and_its_advice(tmp_path: Path) -> None:
    policies = build(tmp_path, LIMITED)
    with pytest.raises(ForbiddenError, match="'write'"):
        policies.require(ANNA, "store", arguments={})
    with pytest.raises(ForbiddenError, match=r"'most'.*At most 50\."):
        policies.require(ANNA, "find", arguments={"query": "x", "limit": 99})
    assert policies.require(ANNA, "read").policies == ("default-endpoints",)


@pytest.mark.parametrize(
    "text",
    [
        "permit(principal, action, resource",
        'permit(principal, action == Action::"fly", resource);',
        'permit(principal, action == Action::"find", resource) when { context.args.limt > 1 };',
        'permit(principal, action == Action::"find", resource) when { context.args.iso3.contains("X") };',
        "permit(principal == ?principal, action, resource);",
        '@id("a") permit(principal, action, resource); @id("a") permit(principal, action, resource);',
        '@id("default-see") permit(principal, action, resource);',
    ],
)
def test_an_invalid_policy_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"own\.cedar"):
        build(tmp_path, text)
