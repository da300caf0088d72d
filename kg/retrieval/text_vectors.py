"""Compares short texts by meaning: with the index's embedding model, or by shared words where there is none."""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.errors import QuadciteError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.search.word_overlap import find_shares
from kg.store.protocol import batched
from kg.vocabulary import sha256
from kg.words import stems

log = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

WORDS: Final = "words"
"""Model name of vectors that are computed from words."""
WITHOUT_MODEL: Final = "No embedding model is installed, so matching is by words only. `kg models pull` installs one."

BEING_COMPUTED: Final = (
    "The vectors of the definitions are being computed, so matching is by words only. Call again in a few seconds to "
    "match by meaning."
)
WAIT_S: Final = 1.0
"""Seconds that a call waits for the vectors of texts that are compared for the first time: 331 take 2 s or more."""

_BATCH: Final = 128
_DIMENSIONS: Final = 1_024


def embed(kg: KnowledgeGraph, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Compute a unit vector for each text. Returns the model's name and the vectors, one row per text."""
    if not texts:
        return kg.search.status().first_model, np.empty((0, 0), dtype=np.float32)
    rows: list[Sequence[float]] = []
    for portion in batched(texts, _BATCH):
        made = kg.search.embed(portion)
        if made is None:
            return WORDS, word_vectors(texts)
        rows += made
    return kg.search.status().first_model, np.array(rows, dtype=np.float32).reshape(len(texts), -1)


@dataclass(slots=True)
class _Computation:
    """The vectors of some texts, computed in a thread that ends with them."""

    thread: threading.Thread
    model: str = ""
    rows: Vectors | None = None


_STARTING: Final = threading.Lock()


def find_cosines(kg: KnowledgeGraph, question: str, texts: Sequence[str]) -> list[float] | None:
    """Compute the cosine of each text with `question`. Returns None without an embedding model.

    The vectors of `texts` are cached: callers compare the same few hundred texts again and again. Also returns None if
    they take longer than `WAIT_S`; they are then computed in the background (see `describe_matching`).
    """
    asked_by, asked = embed(kg, [question])
    if asked_by == WORDS:
        return None
    key = ("vectors", sha256("\0".join([asked_by, *texts])))
    rows: Vectors | None = kg.memory.get(key)
    if rows is None:
        computation = _compute(kg, texts)
        computation.thread.join(WAIT_S)
        rows = computation.rows
        if rows is None or computation.model != asked_by:
            return None
        kg.memory.keep(key, rows)
    cosines: list[float] = (rows @ asked[0]).tolist()
    return cosines


def describe_matching(kg: KnowledgeGraph, texts: Sequence[str]) -> str:
    """Describe why `find_cosines` returned None for `texts`."""
    computation: _Computation | None = kg.memory.get(_computation_key(texts))
    return BEING_COMPUTED if computation is not None and computation.thread.is_alive() else WITHOUT_MODEL


def _computation_key(texts: Sequence[str]) -> tuple[str, str]:
    return "computation of vectors", sha256("\0".join(texts))


def _compute(kg: KnowledgeGraph, texts: Sequence[str]) -> _Computation:
    """Start to compute the vectors of `texts`, or get the computation that runs already."""

    def work() -> None:
        try:
            model, rows = embed(kg, texts)
        except QuadciteError as error:
            log.warning("Cannot compute the vectors of %d texts: %s", len(texts), error)
            return
        if model != WORDS:
            computation.model, computation.rows = model, rows

    key = _computation_key(texts)
    with _STARTING:
        running: _Computation | None = kg.memory.get(key)
        if running is not None and (running.thread.is_alive() or running.rows is not None):
            return running
        computation = _Computation(threading.Thread(target=work, name="vectors of texts", daemon=True))
        computation.thread.start()
        return kg.memory.keep(key, computation)


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
