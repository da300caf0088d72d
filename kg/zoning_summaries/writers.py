"""Writers of zoning summaries: extraction of sentences from the text, or a model behind a chat endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from kg.knowledge_graph import KnowledgeGraph
from kg.remote.chat import ChatEndpoint, open_chat
from kg.retrieval import text_vectors
from kg.retrieval.text_vectors import Vectors
from kg.zoning_summaries.prompts import MAX_CHARACTERS, Source, build_instructions, check_summary, get_length
from kg.zoning_summaries.sentence_selection import find_key_sentences, shorten

Mode = Literal["extractive", "chat"]

RECIPE: Final = "4: maximal marginal relevance 0.7 to the mean of the sentences and half the heading, in order"
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


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer of summaries."""

    model: str
    """Method and name, separated by a slash."""
    build_prompt: Callable[[int], str]
    """Builds the instructions for a level. Their hash is stored with every summary: a change causes a rewrite."""
    write: Callable[[Source], str]
    """Writes a valid summary. Raises QuadciteError if a section gets none."""
    endpoint: ChatEndpoint | None = None
    threads: int = 1
    """Maximum concurrent requests."""


def open_writer(kg: KnowledgeGraph, mode: Mode) -> Writer:
    """Open the writer of a mode. Raises InvalidInputError if it needs a chat endpoint and none is configured."""
    if mode == "extractive":
        model = f"extractive/{text_vectors.embed(kg, ['zoning'])[0]}"
        return Writer(model, lambda level: f"{RECIPE} {get_length(level)}", partial(extract, kg))
    endpoint = open_chat(kg.settings)

    def write(source: Source) -> str:
        # One section per request, so that no text can influence another summary.
        given = source.given()
        instructions, check = build_instructions(source.level), lambda text: check_summary(text, source.level, given)
        return endpoint.ask(instructions, given, MAX_TOKENS, check, AGAIN)

    return Writer(f"chat/{endpoint.name}", build_instructions, write, endpoint, kg.settings.chat_concurrency)


def extract(kg: KnowledgeGraph, source: Source) -> str:
    """Choose sentences of `source`, and join them in order, up to `MAX_CHARACTERS`. Without any, it is its name."""
    texts = (source.text, *(summary for _, summary in source.parts))
    found = list(dict.fromkeys(each for text in texts for each in find_key_sentences(text)))
    found = found[:: -(-len(found) // CANDIDATES) or 1]
    most = get_length(source.level)[1]
    best: Sequence[int] = range(len(found))
    if len(found) > most:
        *rows, title = text_vectors.embed(kg, [*found, source.name])[1]
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
