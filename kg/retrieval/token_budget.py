"""Estimates of the number of tokens of a result, without a tokenizer: a token is four bytes of its compact JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Final

import pydantic_core
from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

BYTES_PER_TOKEN: Final = 4
LIST_TOKENS: Final = 2_000
"""Default size of a list."""
READING_TOKENS: Final = 4_000
"""Default size of a text or of the result of a query."""
FEWEST_TOKENS: Final = 200
MOST_TOKENS: Final = 50_000

MaxTokens = Annotated[int, Field(ge=FEWEST_TOKENS, le=MOST_TOKENS)]
"""Maximum size of a result. Without a description, since every tool has this argument."""


class Lean(BaseModel):
    """Part of a result that omits unknown fields, except those in `stated`, which are null then."""

    stated: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None or name in self.stated}


def encode_json(content: Any) -> bytes:
    """Write `content` as compact JSON in UTF-8, as it is sent, without absent fields of models.

    Numbers that JSON does not have are strings.
    """
    try:
        # A third of the time of the module json.
        return pydantic_core.to_json(content, exclude_none=True, inf_nan_mode="strings", fallback=str)
    except pydantic_core.PydanticSerializationError:  # half of a surrogate pair
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str).encode(errors="replace")


def to_json(content: Any) -> str:
    """Write `content` as `encode_json` does, as a string."""
    return encode_json(content).decode()


def size_of(content: Any) -> int:
    """Count the bytes of `content` as compact JSON."""
    return len(encode_json(content))


def tokens_of(content: Any) -> int:
    """Estimate the number of tokens of `content` as compact JSON, rounded up."""
    return -(-size_of(content) // BYTES_PER_TOKEN)


def clipped(text: str, longest: int) -> str:
    """Put `text` on one line, truncated with an ellipsis to `longest` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
