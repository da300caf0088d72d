"""Prompts as MCP clients see them, in both versions of the protocol."""

from __future__ import annotations

from typing import Any

import pytest
from fastmcp.exceptions import MCPError

from kg.clients.prompts import list_prompts
from kg.tools.mounts import MOUNTS
from tests.server.test_mcp import ask


@pytest.mark.parametrize("path", MOUNTS)
def test_each_mount_lists_its_prompts_with_their_arguments(kg: Any, path: str) -> None:
    async def work(client: Any) -> Any:
        return await client.list_prompts()

    listed = ask(kg, work, path)
    assert [
        (prompt.name, prompt.title, [(each.name, each.required) for each in prompt.arguments]) for prompt in listed
    ] == [
        (prompt.name, prompt.title, [(each.name, each.required) for each in prompt.arguments])
        for prompt in list_prompts(MOUNTS[path].tags)
    ]
    assert all(prompt.description and not prompt.meta for prompt in listed)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_prompt_is_one_message_of_the_user_with_the_values(kg: Any, mode: str) -> None:
    async def work(client: Any) -> Any:
        return await client.get_prompt("read_vote", {"subject": "Tides Bill"})

    (message,) = ask(kg, work, "/mcp/parliament", mode=mode).messages
    assert message.role == "user"
    assert '"Tides Bill"' in message.content.text
    assert "`how_voted`" in message.content.text


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [("read_vote", {}, "subject"), ("read_vote", {"subject": "x", "day": "y"}, "day"), ("sing", {}, "sing")],
)
def test_an_invalid_request_is_answered_with_its_reason(
    kg: Any, name: str, arguments: dict[str, str], word: str
) -> None:
    async def work(client: Any) -> Any:
        with pytest.raises(MCPError) as raised:
            await client.get_prompt(name, arguments)
        return raised.value

    assert word in str(ask(kg, work, "/mcp/parliament"))
