"""Prompts over MCP: those of `kg.clients.prompts` that belong to a mount."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import PromptError
from fastmcp.prompts import Prompt as McpPrompt
from fastmcp.prompts.base import PromptArgument
from mcp_types import Prompt as ListedPrompt
from pydantic import PrivateAttr

from kg.clients.prompts import Prompt, list_prompts
from kg.errors import QuadciteError
from kg.server.instructions import name_mounts


class GraphPrompt(McpPrompt):
    """A prompt as FastMCP serves it."""

    _prompt: Prompt = PrivateAttr()
    _here: Collection[str] = PrivateAttr()

    @classmethod
    def build(cls, prompt: Prompt, here: Sequence[str]) -> GraphPrompt:
        """Build the MCP prompt for a mount with the tools `here`. Its text names the mounts of other tools."""
        made = cls(
            name=prompt.name,
            title=prompt.title,
            description=prompt.description,
            arguments=[
                PromptArgument(name=each.name, description=each.description, required=each.required)
                for each in prompt.arguments
            ],
        )
        made._prompt, made._here = prompt, here
        return made

    def to_mcp_prompt(self, **overrides: Any) -> ListedPrompt:
        """Convert to the prompt that clients see, without the metadata of FastMCP."""
        return super().to_mcp_prompt(**{"_meta": None, **overrides})

    async def render(self, arguments: dict[str, Any] | None = None) -> str:
        """Build the text. An invalid argument is an error that names it."""
        try:
            return name_mounts(self._prompt.build(arguments or {}, self._here), self._here)
        except QuadciteError as error:
            # An answer to the client, which fastmcp would log with its traceback.
            raise PromptError(f"{error.code}: {error}", log_level=logging.DEBUG) from error


def add_prompts(server: FastMCP, tags: frozenset[str] | None, here: Sequence[str]) -> None:
    """Add the prompts of the mount with `tags`, whose tools are `here`."""
    for prompt in list_prompts(tags):
        server.add_prompt(GraphPrompt.build(prompt, here))
