"""Scores texts about zoning sections against a question by their vectors."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval import text_vectors
from kg.retrieval.text_vectors import Vectors
from kg.vocabulary import sha256

_log: Final = logging.getLogger(__name__)
_LOCK: Final = threading.Lock()


def score_by_vectors(
    kg: KnowledgeGraph, municipality: str, question: str, texts: Sequence[str]
) -> tuple[bool, list[float]]:
    """Compute the cosine of the question with each text of a code. Also returns whether a model made the vectors."""
    # The question comes first: the model's name, which decides whether cached vectors are valid, is known only after.
    asked_by, asked = text_vectors.embed(kg, [question])
    made_by, rows = section_vectors(kg, municipality, texts)
    if made_by != asked_by:
        made_by, rows, asked = (
            text_vectors.WORDS,
            text_vectors.word_vectors(texts),
            text_vectors.word_vectors([question]),
        )
    return made_by != text_vectors.WORDS, np.round(rows @ asked[0], 4).tolist()


def section_vectors(kg: KnowledgeGraph, municipality: str, texts: Sequence[str]) -> tuple[str, Vectors]:
    """Embed the texts of all sections of one code. Returns the model's name and the vectors, one row per text.

    The vectors are cached in memory and in a file of the data directory, by the hashes of their texts: only new texts
    are embedded. If the file is missing or damaged, all are.
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
        made_by, made = text_vectors.embed(kg, list(new.values()))
        if made_by == text_vectors.WORDS or not texts:
            return text_vectors.WORDS, text_vectors.word_vectors(texts)
        if made_by != known.model:  # another model was opened since: the cached vectors are of the old one
            made_by, made = text_vectors.embed(kg, texts)
            new, rows = dict(zip(keys, texts, strict=True)), {}
        rows |= zip(new, made, strict=True)
        known = _Known(made_by, keys, np.stack([rows[key] for key in keys]))
        known.write(_file(kg, municipality))
        return made_by, kg.memory.keep(("summary vectors", municipality), known).rows


@dataclass(frozen=True, slots=True)
class _Known:
    """The cached vectors of one code, a row per key."""

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
        """Save the vectors for other processes. A failure is logged."""
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.savez(file, model=np.array(self.model), keys=np.array(self.keys), rows=self.rows)
            partial.replace(path)
        except OSError as error:
            _log.warning("%s: The vectors of summaries cannot be saved (%s).", path, error.strerror)


def _file(kg: KnowledgeGraph, municipality: str) -> Path:
    return kg.settings.data_dir / "summaries" / f"{sha256(municipality)[:24]}.npz"
