"""Skill files for coding agents: one for each domain, from the guide of its mount, its tools and its prompts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Final

from kg.clients.configurations import TOKEN, Installation
from kg.clients.prompts import Prompt, list_prompts
from kg.tools.calls import TEXTS_ARE_DATA, Tool
from kg.tools.mounts import CLIMATE, DOCUMENTS, MOUNTS, NAMES, PARLIAMENT, SPARQL, WIKIDATA, ZONING
from kg.tools.registry import mounted

SKILLS: Final = (CLIMATE, PARLIAMENT, ZONING, DOCUMENTS, WIKIDATA, SPARQL)
"""The names of the mounts that have a skill."""
_EXAMPLE: Final = re.compile(r"^Example: (?P<call>[\w.]+\(.*?\))\.?$", re.MULTILINE | re.DOTALL)
_COMMON: Final = frozenset({"max_tokens", "detail", "explain"})


def name_skill(mount: str) -> str:
    """Get the name of the skill of a mount, which is that of its folder."""
    return f"quadcite-{mount}"


def build_skill(mount: str, installation: Installation) -> str:
    """Build the skill file (SKILL.md) of a mount, for the server of `installation`."""
    path = NAMES[mount]
    about, tools = MOUNTS[path], mounted(MOUNTS[path].tags)
    names = [tool.alias for tool in tools]
    head = {
        "name": name_skill(mount),
        "description": f"Answers questions about {about.purpose} with cited passages from a Quadcite server. Use it "
        "for questions that need evidence from these texts, and to check statements against them.",
    }
    parts = [
        "---\n" + "".join(f"{name}: {json.dumps(text)}\n" for name, text in head.items()) + "---",
        f"# {about.purpose[0].upper()}{about.purpose[1:]}",
        about.guide,
        "Cite each statement with the id, title and source of its passage. If nothing is found, state that. "
        + TEXTS_ARE_DATA,
        "## Calls",
        f"MCP (streamable HTTP): `{installation.url}{path}`. Without MCP, POST the arguments of a tool as JSON:",
        f"```sh\n{_build_call(mount, tools, installation)}\n```",
        "The answer has `notes`, such as the cuts that were made; `next_offset`, to be given as `offset`, continues a "
        "list. An error has `code`, `message` and `retryable`. All tools take `max_tokens`, the size of the answer, "
        'and `detail` ("full").',
        "## Tools",
        *(f"### {tool.alias}\n\n{_describe(tool)}" for tool in tools),
    ]
    if prompts := list_prompts(about.tags):
        parts += ["## Jobs", *(f"### {prompt.title}\n\n{_describe_job(prompt, names)}" for prompt in prompts)]
    return "\n\n".join(parts) + "\n"


def find_example(tool: Tool) -> Mapping[str, object] | None:
    """Find the arguments of the example in the description of a tool. None if it has no example."""
    found = _EXAMPLE.search(tool.description)
    if found is None:
        return None
    call = ast.parse(" ".join(found["call"].split()), mode="eval").body
    if not isinstance(call, ast.Call):
        return None
    return {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}


def _build_call(mount: str, tools: list[Tool], installation: Installation) -> str:
    # One that the guide names first: it is the entry of the domain.
    guide = MOUNTS[NAMES[mount]].guide
    with_example = [tool for tool in tools if find_example(tool) and f"`{tool.name}`" in guide]
    tool = min(with_example, key=lambda tool: guide.index(f"`{tool.name}`"))
    body = json.dumps(find_example(tool), ensure_ascii=False).replace("'", "'\\''")
    header = ": ".join(installation.get_header(f"${TOKEN}"))
    token = f' \\\n  -H "{header}"' if installation.token else ""
    return (
        f"curl -sS '{installation.url}/tools/{tool.alias}?tag={mount}' -H 'Content-Type: application/json'{token} \\\n"
        f"  -d '{body}'"
    )


def _describe(tool: Tool) -> str:
    fields = tool.arguments.model_fields.items()
    listed = (
        f"`{name}`" + (" (required)" if field.is_required() else "") for name, field in fields if name not in _COMMON
    )
    writes = f"\n\nIt stores data and needs the scope `{tool.scope}`." if tool.writes else ""
    description = tool.description.replace(TEXTS_ARE_DATA, "").strip()
    return f"{description}\n\nArguments: {', '.join(listed) or 'none'}.{writes}"


def _describe_job(prompt: Prompt, names: list[str]) -> str:
    return prompt.fill({argument.name: argument.name.upper() for argument in prompt.arguments}, names)
