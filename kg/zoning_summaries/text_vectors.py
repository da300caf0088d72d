"""Short texts as vectors: by the index's embedding model, or by their words alone where there is none."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import sha256
from kg.words import stems

Vectors = NDArray[np.float32]

WORDS: Final = "words"
"""The name of what makes vectors where there is no embedding model."""
_AT_ONCE: Final = 128
_DIMENSIONS: Final = 1_024
_log: Final = logging.getLogger(__name__)
_LOCK: Final = threading.Lock()


def embed(kg: KnowledgeGraph, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Return what made the vectors, and a unit vector for each text."""
    if not texts:
        return kg.search.status().model, np.empty((0, 0), dtype=np.float32)
    rows: list[Sequence[float]] = []
    for start in range(0, len(texts), _AT_ONCE):
        made = kg.search.embed(texts[start : start + _AT_ONCE])
        if made is None:
            return WORDS, word_vectors(texts)
        rows += made
    return kg.search.status().model, np.array(rows, dtype=np.float32).reshape(len(texts), -1)


def section_vectors(kg: KnowledgeGraph, municipality: str, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Return what `embed` does for `texts`, which stand for all sections of one code.

    The vectors are kept in memory and in a file of the data directory, by the hashes of their texts: only texts that
    are new are embedded. Without the file, or with a damaged one, all are.
    """
    keys = [sha256(text) for text in texts]
    with _LOCK:
        model = kg.search.status().model
        known: _Known | None = kg.memory.get(("summary vectors", municipality))
        if known is None or known.model != model:
            known = _Known.read(_file(kg, municipality), model)
        if known.keys == keys:
            return known.model, kg.memory.keep(("summary vectors", municipality), known).rows
        rows = dict(zip(known.keys, known.rows, strict=True))
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        made_by, made = embed(kg, list(new.values()))
        if made_by == WORDS or not texts:
            return WORDS, word_vectors(texts)
        if made_by != known.model:  # it was opened meanwhile, and is not what the vectors before are of
            made_by, made = embed(kg, texts)
            new, rows = dict(zip(keys, texts, strict=True)), {}
        rows |= zip(new, made, strict=True)
        known = _Known(made_by, keys, np.stack([rows[key] for key in keys]))
        known.write(_file(kg, municipality))
        return made_by, kg.memory.keep(("summary vectors", municipality), known).rows


@dataclass(frozen=True, slots=True)
class _Known:
    """The vectors of one code: a row for each key."""

    model: str
    keys: list[str]
    rows: Vectors

    @classmethod
    def read(cls, path: Path, model: str) -> _Known:
        damaged = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
        with contextlib.suppress(*damaged), path.open("rb") as opened, np.load(opened) as file:
            keys, rows = file["keys"].tolist(), np.asarray(file["rows"], dtype=np.float32)
            if str(file["model"]) == model and rows.shape[:1] == (len(keys),) and rows.ndim == 2:
                return cls(model, keys, rows)
        return cls(model, [], np.empty((0, 0), dtype=np.float32))

    def write(self, path: Path) -> None:
        """Keep them for other processes; that this cannot be done is logged, and no error."""
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.savez(file, model=np.array(self.model), keys=np.array(self.keys), rows=self.rows)
            partial.replace(path)
        except OSError as error:
            _log.warning("%s: the vectors of summaries cannot be kept (%s)", path, error.strerror)


def _file(kg: KnowledgeGraph, municipality: str) -> Path:
    return kg.settings.data_dir / "summaries" / f"{sha256(municipality)[:24]}.npz"


def word_vectors(texts: Sequence[str]) -> Vectors:
    """Return unit vectors that are near where texts have uncommon words in common; each depends on its text alone."""
    vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
    for row, text in enumerate(texts):
        for stem in stems(text.casefold()):
            vectors[row, zlib.crc32(stem.encode()) % _DIMENSIONS] += 1
    vectors = np.sqrt(vectors)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)
