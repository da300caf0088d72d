"""Cases of policies: requests with the decisions that are expected of them, in a TOML file.

::

    [principals.anna]
    groups = ["press"]
    scopes = ["read", "search"]            # by default those of everyone on this machine

    [[cases]]
    principal = "anna"
    action = "search"
    arguments = {query = "solar roofs", place = "Sierra Leone"}
    decision = "allow"
    policies = ["press-places"]            # optional: what must have decided
    time = 2026-11-29T12:00:00Z            # optional
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pyoxigraph import NamedNode

from kg.access.actors import EVERYONE, Actor
from kg.access.policies import Decision, Policies, Resource
from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import nearest
from kg.provenance.permissions import get_family
from kg.retrieval.places import Places
from kg.text import quoted
from kg.tools.audiences import SEE
from kg.tools.calls import Command
from kg.tools.commands import COMMANDS
from kg.tools.decisions import build_arguments, name_action
from kg.tools.registry import TOOLS

_STRICT: Final = ConfigDict(extra="forbid")
_SEEN: Final = ("dataset", "family", "loader", "title")


class Principal(BaseModel):
    """A sender of requests."""

    model_config = _STRICT

    scopes: frozenset[str] = EVERYONE.scopes
    groups: frozenset[str] = frozenset()
    claims: dict[str, str | bool | int | list[str]] = Field(default_factory=dict)

    def to_actor(self, name: str) -> Actor:
        """Build the actor with a name."""
        claims = {key: tuple(value) if isinstance(value, list) else value for key, value in self.claims.items()}
        return Actor(name, self.scopes, self.groups, claims)


class Case(BaseModel):
    """One request, and the decision that is expected."""

    model_config = _STRICT

    principal: str
    action: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    decision: Literal["allow", "deny"]
    policies: list[str] | None = None
    time: datetime | None = None


class Cases(BaseModel):
    """The content of a file."""

    model_config = _STRICT

    principals: dict[str, Principal] = Field(default_factory=dict)
    cases: list[Case] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision of a case, and why it is not the expected one."""

    case: Case
    decision: Decision
    problem: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision, with the arguments as the policies saw them."""

    decision: Decision
    arguments: Mapping[str, Any]
    denial: str | None
    """The message for the principal, if the request is denied."""


def load_cases(path: Path) -> Cases:
    """Read a file of cases. Raises InvalidInputError that names each problem."""
    try:
        return Cases.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(f"Cannot read {path}: {error}.") from None
    except ValidationError as error:
        said = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)[:5]
        )
        raise InvalidInputError(f"{path}: {said}.") from None


def run_cases(policies: Policies, cases: Cases) -> Sequence[Outcome]:
    """Decide each case. Raises InvalidInputError for a principal or action that does not exist, or wrong arguments."""
    outcomes = []
    for number, case in enumerate(cases.cases, 1):
        principal = cases.principals.get(case.principal, Principal())
        try:
            found = explain(policies, principal.to_actor(case.principal), case.action, case.arguments, case.time)
        except (InvalidInputError, NotFoundError) as error:
            raise InvalidInputError(f"Case {number}: {error}") from None
        outcomes.append(Outcome(case, found.decision, _compare(case, found.decision)))
    return outcomes


def _compare(case: Case, decision: Decision) -> str | None:
    is_expected = decision.allowed == (case.decision == "allow")
    if is_expected and (case.policies is None or set(case.policies) <= set(decision.policies)):
        return None
    by = ", ".join(decision.policies or decision.errors) or "no policy"
    return f"expected {case.decision}{f' by {case.policies}' if case.policies else ''}, was decided by {by}"


def explain(
    policies: Policies, actor: Actor, action: str, arguments: Mapping[str, Any], time: datetime | None = None
) -> Explanation:
    """Decide a request as a server without data would: names of places are those of ISO 3166.

    Raises NotFoundError for an unknown action, and InvalidInputError for invalid arguments.
    """
    resource: Resource | None = None
    seen: Mapping[str, Any] = {}
    if (tool := _find_tool(action)) is not None:
        seen = build_arguments(tool, tool.check(arguments), lambda: Places({}))
    elif action == SEE:
        resource = _read_seen(arguments)
    elif action in policies.actions and action.startswith("graphs.") and "Family" in policies.actions[action].kinds:
        graph = arguments.get("graph")
        if not isinstance(graph, str) or set(arguments) != {"graph"}:
            raise InvalidInputError(f"{action}: Give graph=IRI, the IRI of a named graph.")
        resource, seen = get_family(NamedNode(graph)).resource, {"graph": graph}
    elif action not in policies.actions:
        near = ", ".join(nearest(action, policies.actions, 3))
        raise NotFoundError(
            f"Unknown action {quoted(action)}. {f'Similar: {near}. ' if near else ''}"
            "Actions are the names of tools and commands, and those that `kg policy schema` lists."
        )
    elif arguments:
        raise InvalidInputError(f"{action} has no arguments.")
    decision = policies.decide(actor, action, resource, seen, now=time)
    denial = None if decision.allowed else policies.describe(decision, actor, resource)
    return Explanation(decision, seen, denial)


def _find_tool(action: str) -> Command | None:
    return next((tool for tool in (*TOOLS, *COMMANDS) if name_action(tool) == action), None)


def _read_seen(arguments: Mapping[str, Any]) -> Resource:
    """Read the dataset, or the family of graphs, that a case of `SEE` is about."""
    if set(arguments) - set(_SEEN) or ("dataset" in arguments) == ("family" in arguments):
        raise InvalidInputError(
            f"{SEE}: Give dataset=IRI with its loader and title, or family=NAME such as graph/ref/."
        )
    if "family" in arguments:
        return Resource("Family", str(arguments["family"]))
    own = {name: str(arguments.get(name, "")) for name in ("loader", "title")}
    return Resource("Dataset", str(arguments["dataset"]), own)
