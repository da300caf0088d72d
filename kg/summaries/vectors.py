"""Short texts as vectors: by the index's embedding model, or by their words alone where there is none."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.vocabulary import sha256

Vectors = NDArray[np.float32]

WORDS: Final = "words"
"""The name of what makes vectors where there is no embedding model."""
KEPT: Final = 100_000
"""Vectors that are kept in memory: 150 MB of 384 dimensions."""

_AT_ONCE: Final = 128
_DIMENSIONS: Final = 1_024
_STEM: Final = 5
_COMMON: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be been by do does for from has have how if in into is it its may more must no not of "
        "on or other shall such than that the their there these this those to under was what when where which who will "
        "with within all each every",
    )
)
_LOCK: Final = threading.Lock()


def embed(kg: KnowledgeGraph, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Return what made the vectors, and a unit vector for each text."""
    rows: list[Sequence[float]] = []
    for start in range(0, len(texts), _AT_ONCE):
        made = kg.search.embed(texts[start : start + _AT_ONCE])
        if made is None:
            return WORDS, by_words(texts)
        rows += made
    return kg.search.status().model, np.array(rows, dtype=np.float32).reshape(len(texts), -1)


def remembered(kg: KnowledgeGraph, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Return what `embed` does; the vector of a text that was asked about before is remembered, whatever it is of.

    Vectors are kept by the hash of their text, so a commit that changes a text leaves those of all others.
    """
    with _LOCK:
        memory: Memory = kg.memory.get("summary vectors") or kg.memory.keep("summary vectors", Memory(KEPT))
    known_by = kg.search.status().model
    keys = [(known_by, sha256(text)) for text in texts]
    known: list[NDArray[np.float32] | None] = [memory.get(key) for key in keys]
    new = [number for number, vector in enumerate(known) if vector is None]
    if not new:
        return known_by, _stacked([vector for vector in known if vector is not None])
    model, made = embed(kg, [texts[number] for number in new])
    if model == WORDS:
        return WORDS, by_words(texts)
    for number, vector in zip(new, made, strict=True):
        known[number] = memory.keep((model, sha256(texts[number])), vector)
    return model, _stacked([vector for vector in known if vector is not None])


def by_words(texts: Sequence[str]) -> Vectors:
    """Return unit vectors that are near where texts have uncommon words in common; each depends on its text alone."""
    vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in re.findall(r"\w+", text.casefold()):
            if word not in _COMMON:
                vectors[row, zlib.crc32(word[:_STEM].encode()) % _DIMENSIONS] += 1
    vectors = np.sqrt(vectors)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)


def _stacked(rows: Sequence[NDArray[np.float32]]) -> Vectors:
    return np.stack(rows) if rows else np.empty((0, _DIMENSIONS), dtype=np.float32)
