"""Estimates of the number of tokens of a result, without a tokenizer, rounded up."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

CHARACTERS_PER_TOKEN: Final = 3.5
"""English prose has about 4.2 characters to a token, JSON with IRIs about 3.5."""

MaxTokens = Annotated[
    int, Field(ge=200, le=50_000, description="Maximum size of the result in tokens of 3.5 characters")
]


class Lean(BaseModel):
    """Part of a result that omits unknown fields."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


def tokens_of(content: Any) -> int:
    """Estimate the number of tokens of `content` as compact JSON."""
    if isinstance(content, BaseModel):
        text = content.model_dump_json(exclude_none=True)
    elif isinstance(content, str):
        text = content
    else:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


def clipped(text: str, longest: int) -> str:
    """Put `text` on one line, truncated with an ellipsis to `longest` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
