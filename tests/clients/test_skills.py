"""Skill files: their head is YAML, their calls are JSON that the tools take, and they have every tool of the mount."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import yaml

from kg.clients.configurations import Installation
from kg.clients.prompts import list_prompts
from kg.clients.skills import SKILLS, build_skill, find_example
from kg.tools import registry
from kg.tools.mounts import MOUNTS, NAMES
from kg.tools.registry import TOOLS, mounted


def skill_of(mount: str, *, token: bool = False) -> str:
    return build_skill(mount, Installation("https://kg.example.org", mount, token, ("kg", "serve")))


@pytest.mark.parametrize("mount", SKILLS)
def test_the_head_has_a_name_and_a_description_that_agents_accept(mount: str) -> None:
    _, head, body = skill_of(mount).split("---\n", 2)
    fields = yaml.safe_load(head)
    assert set(fields) == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", fields["name"])
    assert 40 <= len(fields["description"]) <= 1024
    assert body.lstrip().startswith("# ")


@pytest.mark.parametrize("mount", SKILLS)
def test_a_skill_has_every_tool_and_prompt_of_its_mount(mount: str) -> None:
    text, tags = skill_of(mount), MOUNTS[NAMES[mount]].tags
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert headings == [tool.alias for tool in mounted(tags)] + [prompt.title for prompt in list_prompts(tags)]
    assert len(text.splitlines()) < 500  # agents are told to keep skills below that


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("mount", SKILLS)
def test_the_call_in_a_skill_is_one_that_the_tool_takes(mount: str, token: bool) -> None:
    (block,) = re.findall(r"```sh\n(.*?)\n```", skill_of(mount, token=token), re.DOTALL)
    words = shlex.split(block.replace("\\\n", " "))
    url = next(word for word in words if word.startswith("https://"))
    name, _, tag = url.removeprefix("https://kg.example.org/tools/").partition("?tag=")
    tool = registry.get(name, tag)
    tool.arguments.model_validate(json.loads(words[words.index("-d") + 1]))
    assert ("Authorization: Bearer $QUADCITE_TOKEN" in words) == token


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_example_in_each_description_is_a_call_that_the_tool_takes(tool: registry.Tool) -> None:
    if (example := find_example(tool)) is not None:
        tool.arguments.model_validate(example)
    assert (example is None) == ("Example:" not in tool.description)
