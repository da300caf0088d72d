"""Prompts: each names tools and arguments that exist, and takes the values of a user as data."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.clients.prompts import MOST_CHARACTERS, PROMPTS, Prompt, list_prompts
from kg.errors import InvalidInputError
from kg.tools.mounts import MOUNTS
from kg.tools.registry import mounted

CALL = re.compile(r"`([\w.]+)` \(([\w., ]+)\)")
OFFERED = [(path, prompt) for path, mount in MOUNTS.items() for prompt in list_prompts(mount.tags)]


def tools_of(path: str) -> dict[str, set[str]]:
    """The tools of a mount, with the names of their arguments."""
    return {tool.alias: set(tool.arguments.model_fields) for tool in mounted(MOUNTS[path].tags)}


def values_of(prompt: Prompt, *, all_of_them: bool = True) -> dict[str, str]:
    return {each.name: f"the {each.name}" for each in prompt.arguments if all_of_them or each.required}


@pytest.mark.parametrize("all_of_them", [True, False])
@pytest.mark.parametrize(("path", "prompt"), OFFERED, ids=lambda value: getattr(value, "name", value))
def test_a_prompt_calls_tools_of_its_mount_with_arguments_that_they_have(
    path: str, prompt: Prompt, all_of_them: bool
) -> None:
    tools = tools_of(path)
    values = values_of(prompt, all_of_them=all_of_them)
    text = prompt.build(values, list(tools))
    calls = CALL.findall(text)
    assert len(calls) >= 2
    for name, arguments in calls:
        assert name in tools
        assert {argument.strip() for argument in arguments.split(",")} <= tools[name]
    assert set(re.findall(r"`([\w.]+)`", text)) <= set(tools)
    assert [value for value in values.values() if json.dumps(value) not in text] == []


@pytest.mark.parametrize(("path", "prompt"), OFFERED, ids=lambda value: getattr(value, "name", value))
def test_the_steps_of_a_prompt_are_numbered(path: str, prompt: Prompt) -> None:
    text = prompt.build(values_of(prompt), list(tools_of(path)))
    numbers = [int(number) for number in re.findall(r"^(\d)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("job", ["compare_places", "find_who_said", "check_draft", "read_vote", "what_may_i_build"])
def test_each_job_is_offered_by_a_mount_of_a_domain_and_by_that_of_all_tools(job: str) -> None:
    paths = {path for path, prompt in OFFERED if prompt.name == job}
    assert "/mcp/all" in paths
    assert len(paths) >= 2


def test_deep_research_has_no_prompts() -> None:
    assert [path for path, _ in OFFERED if path == "/mcp/research"] == []


@given(st.sampled_from(PROMPTS), st.text(max_size=300))
def test_a_value_is_one_quoted_string_whatever_it_contains(prompt: Prompt, value: str) -> None:
    name = prompt.arguments[0].name
    values = values_of(prompt) | {name: f"x{value}"}
    assert json.dumps(f"x{value}".strip(), ensure_ascii=False) in prompt.build(values, ())


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_invalid_arguments_are_refused_by_name(prompt: Prompt) -> None:
    required = next(each.name for each in prompt.arguments if each.required)
    with pytest.raises(InvalidInputError, match=required):
        prompt.build({}, ())
    with pytest.raises(InvalidInputError, match=required):
        prompt.build(values_of(prompt) | {required: "  "}, ())
    with pytest.raises(InvalidInputError, match="colour"):
        prompt.build(values_of(prompt) | {"colour": "red"}, ())
    with pytest.raises(InvalidInputError, match=required):
        prompt.build(values_of(prompt) | {required: "x" * (MOST_CHARACTERS + 1)}, ())
