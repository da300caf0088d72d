"""Policies in Cedar: decisions about each request, with its arguments (https://www.cedarpolicy.com).

A request is allowed if a ``permit`` applies to it and no ``forbid`` does. Cedar leaves out a policy whose condition
cannot be evaluated, also a ``forbid``: here any such error is a denial, and so is a request that the schema does not
allow.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import cedarpy

from kg.access import audit
from kg.access.actors import TOKEN_HINT, Actor
from kg.access.policy_files import PolicyFiles, PolicySet
from kg.errors import ForbiddenError

ResourceKind = Literal["Tool", "Endpoint", "Family", "Dataset"]
K = TypeVar("K")
V = TypeVar("V")
Value = str | bool | int | list[Any] | dict[str, Any]

_ACTORS: Final = 1_024
"""Actors whose entities, and what they may call, are kept."""


@dataclass(frozen=True, slots=True)
class Action:
    """An operation that a request asks for: the types of its resources, and its arguments as a record type of Cedar."""

    name: str
    kinds: tuple[ResourceKind, ...]
    groups: tuple[str, ...] = ()
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Resource:
    """The object of an action, with its attributes, and the resources that contain it."""

    kind: ResourceKind
    name: str
    attributes: Mapping[str, str | Sequence[str]] = field(default_factory=dict, hash=False)
    parents: tuple[tuple[ResourceKind, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a request, and what decided it."""

    allowed: bool
    principal: str
    action: str
    policies: tuple[str, ...]
    """The policies that decided: those that forbid, else those that permit. None: no policy permits the request."""
    errors: tuple[str, ...] = ()
    """Why policies or the request could not be evaluated, which is a denial."""
    version: str = ""
    """The version of the policy set."""

    def record(self) -> dict[str, Any]:
        """Build the record of the decision for logs."""
        return {
            "decision": "allow" if self.allowed else "deny",
            "principal": self.principal,
            "action": self.action,
            "policies": list(self.policies),
            "errors": list(self.errors),
            "policy_version": self.version,
        }


class Policies:
    """The policies of a server. Thread-safe.

    `folder` has files of policies, which add to the default ones (`PolicyFiles`); None: these alone. `actions` and
    `resources` are what they decide about. Raises InvalidInputError for an invalid policy.
    """

    def __init__(self, actions: Iterable[Action], resources: Iterable[Resource], folder: Path | None = None) -> None:
        self.actions: Final = {action.name: action for action in actions}
        self.resources: Final = {(each.kind, each.name): each for each in resources}
        self.schema_text: Final = build_schema(self.actions.values())
        self._schema: Final = cedarpy.Schema.from_str(self.schema_text)
        self._files: Final = PolicyFiles(folder, self._schema)
        self._entities: Final = cedarpy.Entities.from_json_str(
            json.dumps([_to_entity(each) for each in self.resources.values()]), self._schema
        )
        self._lock: Final = threading.Lock()
        self._actors: Final[OrderedDict[Actor, cedarpy.Entities]] = OrderedDict()
        self._unlimited: Final[OrderedDict[tuple[Actor, str, str], bool]] = OrderedDict()
        self._callable: Final[OrderedDict[tuple[Actor, str, ResourceKind], frozenset[str]]] = OrderedDict()

    @property
    def current(self) -> PolicySet:
        """The policy set in force."""
        return self._files.get()

    @property
    def problem(self) -> str | None:
        """Why the files do not count as they are now, or None. An earlier set is in force."""
        self._files.get()
        return self._files.problem

    def watch(self, on_change: Callable[[str, str | None], object]) -> None:
        """Call `on_change` after each change of the files, with the version in force and the problem."""
        self._files.on_change = on_change

    def decide(
        self,
        actor: Actor,
        action: str,
        resource: Resource | tuple[ResourceKind, str] | None = None,
        arguments: Mapping[str, Value] | None = None,
        *,
        now: datetime | None = None,
    ) -> Decision:
        """Decide one request. `resource` defaults to the tool or endpoint with the name of the action.

        `arguments` have the declared types of the action, without null. `now` is its time, by default the current.
        """
        policies = self.current
        key = self._get_resource(action, resource)
        time = (now or datetime.now(UTC)).astimezone(UTC)
        stamp = f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"
        try:
            entities = self._get_entities(actor)
            if isinstance(resource, Resource) and key not in self.resources:
                entities = entities.with_added_json_str(json.dumps([_to_entity(resource)]), self._schema)
            context = json.dumps(
                {"args": arguments or {}, "time": {"__extn": {"fn": "datetime", "arg": stamp}}}, allow_nan=False
            )
            answer = cedarpy.is_authorized(
                {
                    "principal": {"type": "User", "id": actor.name},
                    "action": {"type": "Action", "id": action},
                    "resource": {"type": key[0], "id": key[1]},
                    "context": context,
                },
                policies.handle,
                entities,
                self._schema,
            )
        except (ValueError, TypeError) as error:  # a value that has no type of Cedar
            return Decision(False, actor.name, action, (), (str(error),), policies.version)
        errors = tuple(policies.reword(error) for error in answer.diagnostics.errors)
        allowed = answer.decision == cedarpy.Decision.Allow and not errors
        # With an error, the policies that permit do not decide.
        reasons = answer.diagnostics.reasons if allowed or answer.decision == cedarpy.Decision.Deny else ()
        ids = tuple(sorted(policies.ids[reason] for reason in reasons))
        return Decision(allowed, actor.name, action, ids, errors, policies.version)

    def require(
        self,
        actor: Actor,
        action: str,
        resource: Resource | tuple[ResourceKind, str] | None = None,
        arguments: Mapping[str, Value] | None = None,
    ) -> Decision:
        """Decide one request and record it in the audit log. Raises ForbiddenError that describes a denial."""
        decision = self.decide(actor, action, resource, arguments)
        audit.record_decision(audit.Decision(decision.allowed, decision.policies, decision.errors))
        if not decision.allowed:
            raise ForbiddenError(self.describe(decision, actor, resource))
        return decision

    def find_callable(self, actor: Actor, kind: ResourceKind = "Tool") -> frozenset[str]:
        """Find the actions on tools (or endpoints) that `actor` may call with some arguments, at some time.

        Conditions on arguments and time are taken as met where they permit, and as not met where they forbid: an action
        is left out only if it is denied with all of them.
        """
        policies = self.current
        key = (actor, policies.version, kind)
        with self._lock:
            if (known := self._callable.get(key)) is not None:
                self._callable.move_to_end(key)
                return known
        names = [name for name, action in self.actions.items() if (kind, name) in self.resources]
        answers = self._ask_without_context(policies, actor, names, kind)
        found = {
            name
            for name, answer in zip(names, answers, strict=False)
            if answer.allowed and not answer.diagnostics.errors
        }
        known = frozenset(found)
        with self._lock:
            _keep(self._callable, key, known)
        return known

    def require_callable(self, actor: Actor, action: str) -> None:
        """Raise ForbiddenError that describes the denial if `actor` may not call a tool with any arguments."""
        if action in self.find_callable(actor):
            return
        policies = self.current
        ids: tuple[str, ...] = ()
        errors: tuple[str, ...] = ()
        for answer in self._ask_without_context(policies, actor, [action], "Tool"):
            ids = tuple(sorted(policies.ids[reason] for reason in answer.diagnostics.reasons))
            errors = tuple(policies.reword(error) for error in answer.diagnostics.errors)
        decision = Decision(False, actor.name, action, ids, errors, policies.version)
        audit.record_decision(audit.Decision(False, decision.policies, errors))
        raise ForbiddenError(self.describe(decision, actor))

    def _ask_without_context(
        self, policies: PolicySet, actor: Actor, names: Sequence[str], kind: ResourceKind
    ) -> list[cedarpy.AuthzResult]:
        """Decide actions on the resources of their names by the policies without conditions on the context."""
        try:
            entities = self._get_entities(actor)
        except ValueError:  # a name that is not valid Unicode
            return []
        principal = {"type": "User", "id": actor.name}
        requests = [
            {
                "principal": principal,
                "action": {"type": "Action", "id": name},
                "resource": {"type": kind, "id": name},
                "context": "{}",
            }
            for name in names
        ]
        return cedarpy.is_authorized_batch(requests, policies.without_context, entities)

    def permits_all(self, actor: Actor, action: str) -> bool:
        """Return whether `actor` may do an action to every resource, at any time."""
        policies = self.current
        key = (actor, policies.version, action)
        with self._lock:
            if (known := self._unlimited.get(key)) is not None:
                self._unlimited.move_to_end(key)
                return known
        try:
            request = {"principal": _to_uid("User", actor.name), "action": _to_uid("Action", action)}
            answer = cedarpy.is_authorized_partial(request, policies.select(action), self._get_entities(actor))
        except ValueError:  # a name that is not valid Unicode
            return False
        # A condition on the resource could fail, which would be a denial.
        is_certain = not answer.diagnostics.errors and not answer.diagnostics.nontrivial_residuals
        known = answer.decision == cedarpy.Decision.Allow and is_certain
        with self._lock:
            _keep(self._unlimited, key, known)
        return known

    def describe(
        self, decision: Decision, actor: Actor, resource: Resource | tuple[ResourceKind, str] | None = None
    ) -> str:
        """Describe a denial for its principal: the action, and what would be needed."""
        denied = f"{actor.name!r} may not do {decision.action!r}"
        if decision.errors:
            return (
                f"{denied}: the policies cannot be evaluated for this request, which is a denial. The operator finds "
                f"the reason with `kg policy explain`."
            )
        if decision.policies:
            advice = "".join(f" {text}" for id in decision.policies if (text := self.current.advice.get(id)))
            named = ", ".join(repr(id) for id in decision.policies)
            return f"{denied}: forbidden by the policy {named}.{advice}"
        key = self._get_resource(decision.action, resource)
        known = self.resources.get(key)
        attributes = {} if known is None else known.attributes
        scope = attributes.get("scope", attributes.get(decision.action.rpartition(".")[2]))
        if isinstance(scope, str) and scope not in actor.scopes:
            held = ", ".join(sorted(actor.scopes)) or "none"
            return f"{denied}: it requires the scope {scope!r}. Scopes of {actor.name!r}: {held}. {TOKEN_HINT}"
        return f"{denied}: no policy permits it with these arguments. Ask the operator of this server for access."

    def _get_resource(
        self, action: str, resource: Resource | tuple[ResourceKind, str] | None
    ) -> tuple[ResourceKind, str]:
        if isinstance(resource, Resource):
            return resource.kind, resource.name
        if resource is not None:
            return resource
        known = self.actions.get(action)
        return (known.kinds[0] if known is not None else "Endpoint"), action

    def _get_entities(self, actor: Actor) -> cedarpy.Entities:
        """Get the entities of all resources and of an actor."""
        with self._lock:
            if (known := self._actors.get(actor)) is not None:
                self._actors.move_to_end(actor)
                return known
        made = self._entities.with_added_json_str(json.dumps(_build_principal(actor)), self._schema)
        with self._lock:
            _keep(self._actors, actor, made)
        return made


def build_schema(actions: Collection[Action]) -> str:
    """Build the schema of Cedar with all actions."""
    base = (Path(__file__).parent / "cedar" / "base.cedarschema").read_text(encoding="utf-8")
    groups = sorted({group for action in actions for group in action.groups})
    lines = [base, *(f"action {_quote(group)};" for group in groups)]
    for action in actions:
        within = f" in [{', '.join(map(_quote, action.groups))}]" if action.groups else ""
        lines.append(
            f"action {_quote(action.name)}{within} appliesTo {{ principal: User, resource: "
            f"[{', '.join(action.kinds)}], context: {{ args: {action.arguments}, time: datetime }} }};"
        )
    return "\n".join(lines) + "\n"


def _build_principal(actor: Actor) -> list[dict[str, Any]]:
    claims = {name: _to_strings(value) for name, value in actor.claims.items()}
    return [
        {
            "uid": {"type": "User", "id": actor.name},
            "attrs": {"name": actor.name, "scopes": sorted(actor.scopes)},
            "tags": claims,
            "parents": [{"type": "Group", "id": group} for group in sorted(actor.groups)],
        },
        *({"uid": {"type": "Group", "id": group}, "attrs": {}, "parents": []} for group in sorted(actor.groups)),
    ]


def _to_strings(value: str | bool | int | tuple[str, ...]) -> list[str]:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return list(value) if isinstance(value, tuple) else [str(value)]


def _to_entity(resource: Resource) -> dict[str, Any]:
    return {
        "uid": {"type": resource.kind, "id": resource.name},
        "attrs": dict(resource.attributes),
        "parents": [{"type": kind, "id": name} for kind, name in resource.parents],
    }


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def _quote(text: str) -> str:
    return f'"{"".join(_ESCAPES.get(character, character) for character in text)}"'


def _to_uid(kind: str, name: str) -> str:
    """Write an entity as text, which partial evaluation requires. Other spellings are errors there: a denial."""
    return f"{kind}::{_quote(name)}"


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    while len(kept) > _ACTORS:
        kept.popitem(last=False)
