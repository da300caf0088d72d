"""Writers of zoning summaries: extraction from the text, or a model behind a chat endpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, Literal, Protocol

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.remote.chat import ChatEndpoint
from kg.settings import Settings
from kg.zoning_summaries.extractive import Extracts
from kg.zoning_summaries.prompts import MAX_TOKENS, Source, check_summary

Mode = Literal["extractive", "chat"]

TRIES: Final = 2
"""Attempts of a model to return a valid summary before the section fails."""

AGAIN: Final = "\nA first answer was not taken, since it was not such a paragraph. Keep to these instructions alone."
"""Added to the prompt of a retry. It does not quote the answer, which the text of the law may have manipulated."""


class Summarizer(Protocol):
    """Writes summaries, in one or several threads."""

    @property
    def model(self) -> str:
        """Method and name, separated by a slash."""
        ...

    @property
    def threads(self) -> int:
        """Maximum concurrent calls of `write`."""
        ...

    @property
    def at_once(self) -> int:
        """Summaries per commit."""
        ...

    def prompt_sha256(self, source: Source) -> str:
        """Return the hash of the instructions for this one."""
        ...

    def write(self, source: Source) -> str:
        """Write the summary of one section. Raises QuadciteError if the section gets none."""
        ...


class Chat:
    """Writes summaries by a chat endpoint, one section per request, so that no text can influence another summary."""

    def __init__(self, endpoint: ChatEndpoint, threads: int) -> None:
        self.endpoint: Final = endpoint
        self.model: Final = f"chat/{endpoint.name}"
        self.threads: Final = threads
        self.at_once: Final = 1

    def prompt_sha256(self, source: Source) -> str:
        """Return the hash of the instructions for this one."""
        return source.prompt_sha256

    def write(self, source: Source) -> str:
        """Write a valid summary; see `Summarizer`."""
        given, again = source.given(), ""
        for attempt in range(1, TRIES + 1):
            answer = self.endpoint.complete(source.instructions + again, given, MAX_TOKENS)
            try:
                return check_summary(answer.text, source.level, given)
            except InvalidInputError:
                if attempt == TRIES:
                    raise
                again = AGAIN
        raise AssertionError("the last attempt returns or raises")


def has_chat(settings: Settings) -> bool:
    """Check whether the settings configure a chat endpoint and a model."""
    return settings.chat_url is not None and bool(settings.chat_model)


def open_chat(
    settings: Settings, *, patience_s: float = math.inf, sleep: Callable[[float], object] = time.sleep
) -> ChatEndpoint:
    """Open the chat endpoint of the settings. Raises InvalidInputError if none is configured."""
    if settings.chat_url is None or not has_chat(settings):
        raise InvalidInputError(
            "No chat endpoint is configured. Set QUADCITE_CHAT_URL and QUADCITE_CHAT_MODEL, or use "
            "mode 'extractive' for summaries and scorer 'embeddings' for search. Facts are extracted by rules alone."
        )
    url = settings.chat_url
    if url.username or url.password or url.query is not None or url.fragment is not None:
        raise InvalidInputError(
            "QUADCITE_CHAT_URL may contain only scheme, host, port and path. Put a token into QUADCITE_CHAT_TOKEN."
        )
    token = settings.chat_token.get_secret_value() if settings.chat_token else None
    return ChatEndpoint(
        str(settings.chat_url),
        settings.chat_model,
        token,
        timeout_s=settings.chat_timeout_s,
        patience_s=patience_s,
        sleep=sleep,
    )


def open_writer(kg: KnowledgeGraph, mode: Mode, sleep: Callable[[float], object] = time.sleep) -> Extracts | Chat:
    """Open the writer of `mode`. Raises InvalidInputError if it needs an endpoint and none is configured."""
    if mode == "chat":
        return Chat(open_chat(kg.settings, sleep=sleep), kg.settings.chat_concurrency)
    return Extracts(kg)


def get_rank(model: str) -> int:
    """Get the rank of a writer. A current summary is never replaced by one of a writer of lower rank."""
    if model == "extractive/words":
        return 0
    return 1 if model.startswith("extractive/") else 2
