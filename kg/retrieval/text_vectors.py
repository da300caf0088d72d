"""Compares short texts by meaning: with the index's embedding model, or by shared words where there is none."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.search.word_overlap import find_shares
from kg.vocabulary import sha256
from kg.words import stems

Vectors = NDArray[np.float32]

WORDS: Final = "words"
"""Model name of vectors that are computed from words."""
WITHOUT_MODEL: Final = "No embedding model is installed, so matching is by words only. `kg models pull` installs one."

_BATCH: Final = 128
_DIMENSIONS: Final = 1_024


def embed(kg: KnowledgeGraph, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Compute a unit vector for each text. Returns the model's name and the vectors, one row per text."""
    if not texts:
        return kg.search.status().model, np.empty((0, 0), dtype=np.float32)
    rows: list[Sequence[float]] = []
    for start in range(0, len(texts), _BATCH):
        made = kg.search.embed(texts[start : start + _BATCH])
        if made is None:
            return WORDS, word_vectors(texts)
        rows += made
    return kg.search.status().model, np.array(rows, dtype=np.float32).reshape(len(texts), -1)


def find_cosines(kg: KnowledgeGraph, question: str, texts: Sequence[str]) -> list[float] | None:
    """Compute the cosine of each text with `question`. Returns None without an embedding model.

    The vectors of `texts` are cached: callers compare the same few hundred texts again and again.
    """
    asked_by, asked = embed(kg, [question])
    if asked_by == WORDS:
        return None
    key = ("vectors", sha256("\0".join([asked_by, *texts])))
    rows: Vectors | None = kg.memory.get(key)
    if rows is None:
        made_by, rows = embed(kg, texts)
        if made_by != asked_by:
            return None
        kg.memory.keep(key, rows)
    cosines: list[float] = (rows @ asked[0]).tolist()
    return cosines


def find_overlaps(question: str, texts: Sequence[str]) -> list[float]:
    """Compute the share of the question's words in each text, from 0 to 1. Rare words weigh more."""
    return find_shares(set(stems(fold(question))), [set(stems(fold(text))) for text in texts])


def word_vectors(texts: Sequence[str]) -> Vectors:
    """Compute unit vectors that are close where texts share uncommon words. Each depends on its own text only."""
    vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
    for row, text in enumerate(texts):
        for stem in stems(text.casefold()):
            vectors[row, zlib.crc32(stem.encode()) % _DIMENSIONS] += 1
    vectors = np.sqrt(vectors)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)
