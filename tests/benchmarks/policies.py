"""What does a decision of the policies cost, with few policies and many, and the first list of tools of a caller?

The alternative of a decision is the same one from the text of the policies, which Cedar parses each time.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import cedarpy

from kg.access.actors import EVERYONE, Actor
from kg.access.policies import Policies
from kg.retrieval.places import Places
from kg.tools.decisions import build_arguments, build_policies, name_action
from kg.tools.registry import TOOLS
from tests.benchmarks.comparison import Comparison, median, p95, timed

CALLS: Final = 2_000
LISTS: Final = 50
MANY: Final = 300
RULE: Final = """@id("rule-{0}") forbid(principal in Group::"group-{0}", action == Action::"search", resource)
when {{ context.args.limit > {0} }};
"""
SENT: Final = {"query": "who pays for solar roofs", "filters": {"iso3": ["SLE", "BRA"]}, "limit": "7"}


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Measure with the default policies, and with `MANY` others."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rules.cedar").write_text("".join(RULE.format(number) for number in range(MANY)))
        for name, policies in (("default", build_policies(None)), (f"{MANY} more", build_policies(Path(folder)))):
            yield from _measure(name, policies)


def _measure(name: str, policies: Policies) -> Iterator[Comparison]:
    tool, places = next(each for each in TOOLS if each.name == "search"), Places({})
    seen = build_arguments(tool, tool.check(SENT), lambda: places)
    actor = Actor("anna", EVERYONE.scopes, frozenset({"group-1", "group-200"}))
    decided = timed(lambda _: policies.decide(actor, "search", arguments=seen), range(CALLS))
    parsed = timed(lambda _: _decide_from_text(policies, seen), range(CALLS // 20))
    yield Comparison.at_most(f"decision, {name}", median(decided), "ms", 1.0, median(parsed))
    prepared = timed(lambda _: build_arguments(tool, tool.check(SENT), lambda: places), range(CALLS))
    yield Comparison.at_most(f"arguments and decision p95, {name}", p95(prepared) + p95(decided), "ms", 1.0)
    callers = [Actor(f"caller-{number}", EVERYONE.scopes) for number in range(LISTS)]
    yield Comparison.at_most(f"first list of tools, {name}", median(timed(policies.find_callable, callers)), "ms", 20.0)


def _decide_from_text(policies: Policies, arguments: object) -> object:
    context = {"args": arguments, "time": {"__extn": {"fn": "datetime", "arg": "2026-11-29T12:00:00Z"}}}
    request = {
        "principal": 'User::"anna"',
        "action": 'Action::"search"',
        "resource": 'Tool::"search"',
        "context": json.dumps(context),
    }
    entities = [
        {"uid": {"type": "User", "id": "anna"}, "attrs": {"scopes": ["search"]}, "parents": []},
        *(
            {"uid": {"type": "Tool", "id": name_action(tool)}, "attrs": {"scope": tool.scope}, "parents": []}
            for tool in TOOLS
        ),
    ]
    return cedarpy.is_authorized(request, str(policies.current.handle), json.dumps(entities))
