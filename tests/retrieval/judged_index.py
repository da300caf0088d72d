"""An index process with a deterministic embedder that has thresholds of relevance: those of the built-in model."""

from __future__ import annotations

from typing import Final

from kg.search import index_process
from kg.search.relevance import CALIBRATIONS
from tests.search.word_embedder import open_word_embedder

MODEL: Final = "words/1024"
LIMITS = next(iter(CALIBRATIONS.values()))


if __name__ == "__main__":
    CALIBRATIONS[MODEL] = LIMITS
    index_process.main(open_word_embedder)
