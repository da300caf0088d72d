"""Writers of zoning summaries: extraction of sentences from the text, or a model behind a chat endpoint."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

import numpy as np

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.remote.chat import ChatEndpoint
from kg.retrieval import text_vectors
from kg.retrieval.text_vectors import Vectors
from kg.settings import Settings
from kg.vocabulary import sha256
from kg.zoning_summaries.prompts import MAX_CHARACTERS, Source, build_instructions, check_summary, get_length
from kg.zoning_summaries.sentence_selection import find_key_sentences, shorten

Mode = Literal["extractive", "chat"]

RECIPE: Final = "3: maximal marginal relevance 0.7 to the mean of the sentences and half the heading, in order"
"""How sentences are chosen. Its hash is stored: a change causes every extract to be rebuilt."""
CANDIDATES: Final = 160
"""Maximum sentences of a section that are compared, spread evenly over it."""
_RELEVANCE: Final = 0.7
_HEADING: Final = 0.5
_ENDS: Final = re.compile(r"[.!?;:\]][\"'”’)]*$")

MAX_TOKENS: Final = 600
"""Maximum tokens of a model's answer."""
AGAIN: Final = "\nA first answer was not taken, since it was not such a paragraph. Keep to these instructions alone."
"""Added to the prompt of a retry. It does not quote the answer, which the text of the law may have manipulated."""


class Extracts:
    """Writes extracts, deterministic for a text and model. The sentences of one section are embedded as one batch."""

    endpoint: Final = None
    threads: Final = 1
    """Maximum concurrent calls of `write`."""
    at_once: Final = 50
    """Summaries per commit."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = kg
        self.model: Final = f"extractive/{text_vectors.embed(kg, ['zoning'])[0]}"
        """Method and name, separated by a slash."""

    def prompt_sha256(self, level: int) -> str:
        """Hash the recipe and the number of sentences."""
        return sha256(f"{RECIPE} {get_length(level)}")

    def write(self, source: Source) -> str:
        """Choose sentences of `source`, and join them in order, up to `MAX_CHARACTERS`. Without any, it is its name."""
        texts = (source.text, *(summary for _, summary in source.parts))
        found = list(dict.fromkeys(each for text in texts for each in find_key_sentences(text)))
        found = found[:: -(-len(found) // CANDIDATES) or 1]
        most = get_length(source.level)[1]
        best: Sequence[int] = range(len(found))
        if len(found) > most:
            *rows, title = text_vectors.embed(self._kg, [*found, source.name])[1]
            best = _choose(np.stack(rows), title, most)
        chosen: list[int] = []
        room = MAX_CHARACTERS
        for number in best:  # best first; sentences that do not fit whole are skipped
            if len(found[number]) < room:
                chosen.append(number)
                room -= len(found[number]) + 1
        # A fragment, such as a list item, gets its own line.
        said = [found[number] for number in sorted(chosen)] or [shorten(source.name)]
        return "".join(f"{each} " if _ENDS.search(each) else f"{each}\n" for each in said).strip()


def _choose(rows: Vectors, heading: Vectors, most: int) -> list[int]:
    """Choose sentences by maximal marginal relevance, the best first."""
    aim = rows.mean(axis=0) + _HEADING * heading
    # Rounded, so that float noise cannot reorder ties.
    relevance = np.round(rows @ (aim / (np.linalg.norm(aim) or 1.0)), 5)
    alike = np.round(rows @ rows.T, 5)
    chosen = [int(relevance.argmax())]
    while len(chosen) < most:
        worth = _RELEVANCE * relevance - (1 - _RELEVANCE) * alike[chosen].max(axis=0)
        worth[chosen] = -np.inf
        chosen.append(int(worth.argmax()))
    return chosen


class Chat:
    """Writes summaries by a chat endpoint, one section per request, so that no text can influence another summary."""

    at_once: Final = 1

    def __init__(self, endpoint: ChatEndpoint, threads: int) -> None:
        self.endpoint: Final = endpoint
        self.model: Final = f"chat/{endpoint.name}"
        self.threads: Final = threads

    def prompt_sha256(self, level: int) -> str:
        """Hash the instructions."""
        return sha256(build_instructions(level))

    def write(self, source: Source) -> str:
        """Write a valid summary. Raises QuadciteError if the section gets none."""
        given = source.given()
        instructions, check = build_instructions(source.level), lambda text: check_summary(text, source.level, given)
        return self.endpoint.ask(instructions, given, MAX_TOKENS, check, AGAIN)


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
        str(url), settings.chat_model, token, timeout_s=settings.chat_timeout_s, patience_s=patience_s, sleep=sleep
    )


def get_rank(model: str) -> int:
    """Get the rank of a writer. A current summary is never replaced by one of a writer of lower rank."""
    if model == "extractive/words":
        return 0
    return 1 if model.startswith("extractive/") else 2
