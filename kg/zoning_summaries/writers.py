"""Who writes summaries: extracts of the text, or a model behind a chat endpoint."""

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
"""Texts of a model that may fail the check before the section counts as failed."""

AGAIN: Final = "\nA first answer was not taken, since it was not such a paragraph. Keep to these instructions alone."
"""What is said after the first; nothing of the answer, which whoever wrote the law may have dictated."""


class Summarizer(Protocol):
    """Writes one summary after the other, or several at once, in as many threads."""

    @property
    def model(self) -> str:
        """What writes: its method, a stroke, and its name."""
        ...

    @property
    def threads(self) -> int:
        """How many summaries it may be asked for at a time."""
        ...

    @property
    def at_once(self) -> int:
        """How many of its summaries are committed together."""
        ...

    def prompt_sha256(self, source: Source) -> str:
        """Return the hash of the instructions for this one."""
        ...

    def write(self, source: Source) -> str:
        """Return a summary; a QuadciteError means that there is none of this section."""
        ...


class Chat:
    """Has a model behind a chat endpoint write each summary: one request a section, so that no section's text stands
    beside another's.
    """

    def __init__(self, endpoint: ChatEndpoint, threads: int) -> None:
        self.endpoint: Final = endpoint
        self.model: Final = f"chat/{endpoint.name}"
        self.threads: Final = threads
        self.at_once: Final = 1

    def prompt_sha256(self, source: Source) -> str:
        """Return the hash of the instructions for this one."""
        return source.prompt_sha256

    def write(self, source: Source) -> str:
        """Return a summary that passed the check; see Summarizer."""
        given, again = source.given(), ""
        for attempt in range(1, TRIES + 1):
            answer = self.endpoint.complete(source.instructions + again, given, MAX_TOKENS)
            try:
                return check_summary(answer.text, source.level, given)
            except InvalidInputError:
                if attempt == TRIES:
                    raise
                again = AGAIN
        raise AssertionError("the last try returns or raises")


def has_chat(settings: Settings) -> bool:
    """Say whether the settings name a chat endpoint and a model at it."""
    return settings.chat_url is not None and bool(settings.chat_model)


def open_chat(
    settings: Settings, *, patience_s: float = math.inf, sleep: Callable[[float], object] = time.sleep
) -> ChatEndpoint:
    """Return the chat endpoint of the settings. InvalidInputError where they name none."""
    if settings.chat_url is None or not has_chat(settings):
        raise InvalidInputError(
            "no chat endpoint is configured: set QUADCITE_CHAT_URL and QUADCITE_CHAT_MODEL, or do without: "
            "mode 'extractive' of summaries, scorer 'embeddings' of a search"
        )
    url = settings.chat_url
    if url.username or url.password or url.query is not None or url.fragment is not None:
        raise InvalidInputError(
            "QUADCITE_CHAT_URL must be scheme, host, port and path alone; a token goes into QUADCITE_CHAT_TOKEN"
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
    """Return what writes in `mode`. InvalidInputError where that needs an endpoint and the settings name none."""
    if mode == "chat":
        return Chat(open_chat(kg.settings, sleep=sleep), kg.settings.chat_concurrency)
    return Extracts(kg)


def get_rank(model: str) -> int:
    """Return how good a writer is: a current summary is never replaced by that of a plainer one."""
    if model == "extractive/words":
        return 0
    return 1 if model.startswith("extractive/") else 2
