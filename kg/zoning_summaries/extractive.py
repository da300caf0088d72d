"""Extractive summaries of zoning sections: sentences that are close to the whole text and unlike each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval import text_vectors
from kg.vocabulary import sha256
from kg.zoning_summaries.prompts import MAX_CHARACTERS, Source
from kg.zoning_summaries.sentence_selection import LEFT_OUT, find_key_sentences, find_table_header, shorten

RECIPE: Final = "2: maximal marginal relevance 0.7 to the mean of the sentences and half the heading, in order"
"""How sentences are chosen. Its hash is stored: a change causes every extract to be rebuilt."""
CANDIDATES: Final = 160
"""Maximum sentences of a section that are compared, spread evenly over it."""

_RELEVANCE: Final = 0.7
_HEADING: Final = 0.5
_ENDS: Final = re.compile(r"[.!?;:\]][\"'”’)]*$")

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


class Extracts:
    """Writes extracts, deterministic for a text and model. The sentences of one section are embedded as one batch."""

    threads: Final = 1
    at_once: Final = 50

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = kg
        made_by, _ = text_vectors.embed(kg, ["zoning"])
        self.model: Final = f"extractive/{made_by}"
        self.has_model: Final = made_by != text_vectors.WORDS

    def prompt_sha256(self, source: Source) -> str:
        """Hash the recipe and the number of sentences."""
        return sha256(f"{RECIPE} {source.length}")

    def write(self, source: Source) -> str:
        """Write the summary of `source`. Without sentences, it is its heading with that of its table."""
        found = [
            *find_key_sentences(source.text),
            *(each for _, summary in source.parts for each in find_key_sentences(summary)),
        ]
        return extract(list(dict.fromkeys(found)), source.name, source.length[1], self._embed) or _table(source)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.has_model:
            return text_vectors.word_vectors(texts)
        return text_vectors.embed(self._kg, texts)[1]


def extract(found: Sequence[str], heading: str, most: int, embed: Embed) -> str:
    """Choose at most `most` of the sentences `found`, and join them in order, up to `MAX_CHARACTERS`."""
    spread = found
    if len(found) > CANDIDATES:
        spread = [found[number * len(found) // CANDIDATES] for number in range(CANDIDATES)]
    worth: Sequence[int] = range(len(spread))
    if len(spread) > most:
        *rows, title = embed([*spread, heading])
        worth = _marginal(np.stack(rows), title, most)
    chosen: list[int] = []
    room = MAX_CHARACTERS
    for number in worth:  # best first; sentences that do not fit whole are skipped
        if not chosen or len(spread[number]) < room:
            chosen.append(number)
            room -= len(spread[number]) + 1
    text = ""
    for number in sorted(chosen):
        # A fragment, such as a list item, gets its own line.
        text += ("" if not text else " " if _ENDS.search(text) else "\n") + spread[number]
    return shorten(text, MAX_CHARACTERS - len(LEFT_OUT))


def _table(source: Source) -> str:
    cells = find_table_header(source.text)
    return shorten(f"{source.name}: a table of {', '.join(cells)}.") if cells else source.name


def _marginal(rows: NDArray[np.float32], heading: NDArray[np.float32], most: int) -> list[int]:
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
