"""A deterministic embedder for tests, and an index process that uses it: run as a script, it replaces `index_process`.

A vector counts the words of a window of eight, hashed into a few dimensions; so texts with common words are near.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kg.errors import ModelError
from kg.search import index_process
from kg.settings import Settings

WINDOW_WORDS = 8


class WordEmbedder:
    """Writes each text it embeds to `journal`, a line each, so that a test can see what was computed."""

    at_once = 32
    languages: frozenset[str] | None = None

    def __init__(self, name: str, dimensions: int = 32, journal: Path | None = None) -> None:
        self.name = name
        self.dimensions = dimensions
        self._journal = journal

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        if self._journal is not None:
            with self._journal.open("a", encoding="utf-8") as journal:
                journal.writelines(f"{text!r}\n" for text in texts)
        return [np.stack([self._vector(window) for window in self._windows(text)]) for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._vector(text.split())

    def _windows(self, text: str) -> list[list[str]]:
        words = text.split()
        return [words[i : i + WINDOW_WORDS] for i in range(0, len(words), WINDOW_WORDS)] or [[]]

    def _vector(self, words: list[str]) -> NDArray[np.float32]:
        vector = np.full(self.dimensions, 0.01, dtype=np.float32)
        for word in words:
            digest = hashlib.sha256(word.lower().encode()).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dimensions] += 1
        return vector / np.linalg.norm(vector)


def open_word_embedder(settings: Settings, model: str) -> WordEmbedder:
    """`model` is `words/{dimensions}`, with languages after a further slash; any other one is absent.

    The journal lies in models_dir.
    """
    time.sleep(float(os.environ.get("QUADCITE_TEST_OPENING_S", "0")))
    if busy_s := float(os.environ.get("QUADCITE_TEST_BUSY_S", "0")):
        interval = sys.getswitchinterval()
        sys.setswitchinterval(60)  # holds the GIL
        end = time.monotonic() + busy_s
        while time.monotonic() < end:
            pass
        sys.setswitchinterval(interval)
    family, _, rest = model.partition("/")
    if family != "words":
        raise ModelError(f"no model {model}; get it with `kg models pull`")
    settings.models_dir.mkdir(parents=True, exist_ok=True)
    dimensions, _, languages = rest.partition("/")
    embedder = WordEmbedder(model, int(dimensions), settings.models_dir / "journal")
    embedder.languages = frozenset(languages.split("-")) if languages else None
    return embedder


if __name__ == "__main__":
    if "QUADCITE_TEST_DIE" in os.environ:
        os._exit(3)
    index_process.main(open_word_embedder)
