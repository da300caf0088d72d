"""The index process with an embedder that has the vectors of known questions, for the memory that it takes itself.

Run as a script with ``index``, by which `tests.benchmarks.scale` finds the process, and a file of vectors
(`write_vectors`). It imports nothing that the index process of a server does not: that would count as its memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.search import index_process

MODEL: Final = "mixtures"
SCRIPT: Final = (sys.executable, "-m", "tests.benchmarks.known_vectors", "index")

Vectors = NDArray[np.float32]


class KnownVectors:
    """The vectors of the questions in a file."""

    name = MODEL
    at_once = 32
    languages: frozenset[str] | None = None

    def __init__(self, file: Path) -> None:
        self._questions: list[str] = json.loads(file.with_suffix(".json").read_text("utf-8"))
        self._vectors: Vectors = np.load(file)
        self.dimensions: int = self._vectors.shape[1]

    def embed_documents(self, texts: Sequence[str]) -> list[Vectors]:
        return [self.embed_query(text)[None, :] for text in texts]

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._vectors[self._questions.index(text)]
        return vector


def write_vectors(file: Path, vectors: Mapping[str, Sequence[float]]) -> None:
    """Write the vectors of questions to a file, and the questions to one beside it."""
    file.with_suffix(".json").write_text(json.dumps([*vectors]), "utf-8")
    np.save(file, np.asarray([*vectors.values()], np.float32))


if __name__ == "__main__":
    index_process.main(lambda _, model: KnownVectors(Path(sys.argv[2])))
