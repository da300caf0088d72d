"""A local cross-encoder, which scores a passage with the question: slower and better than two vectors.

It reads a folder as exported to ONNX: the graph, ``tokenizer.json`` and ``tokenizer_config.json``. No network is used.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kg.errors import IndexUnavailableError, ModelError, QuadciteError
from kg.search.devices import Device, load_on

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

GRAPHS: Final = ("model.onnx", "onnx/model.onnx")
"""Where the graph is in a folder; the first that exists is used."""
BATCH: Final = 4
"""Passages between two checks of the deadline."""


class CrossEncoder:
    """The cross-encoder in `folder`."""

    def __init__(self, folder: Path, threads: int = 0, device: Device = "cpu") -> None:
        self._folder = folder
        self._model = _load(folder, threads, device)

    def score(self, query: str, texts: Sequence[str], until: float) -> list[float]:
        """Score `texts` for `query`, in their order; higher is better.

        Raises ModelError once the monotonic clock is past `until`, at most one batch later.
        """
        scores: list[float] = []
        for start in range(0, len(texts), BATCH):
            if time.monotonic() > until:
                raise ModelError(f"The reranker scored {start} of {len(texts)} passages before the deadline.")
            try:
                scores += self._model.rerank(query, texts[start : start + BATCH], batch_size=BATCH)
            except Exception as error:  # onnxruntime raises a plain Exception for an input that the graph rejects
                raise ModelError(f"The reranker failed: {_name_files(error, self._folder)}") from error
        return scores


class CrossEncoderWorker:
    """Opens a cross-encoder in the background, and lets one caller at a time use it, since it takes all cores."""

    def __init__(self, open_model: Callable[[], CrossEncoder]) -> None:
        self._opened = threading.Event()
        self._using = threading.Lock()
        self._model: CrossEncoder | None = None
        self._error = ""
        threading.Thread(target=self._open, args=(open_model,), name="reranker", daemon=True).start()

    def _open(self, open_model: Callable[[], CrossEncoder]) -> None:
        try:
            self._model = open_model()
        except QuadciteError as error:
            self._error = str(error)
        except OSError as error:  # such as a folder that may not be read
            self._error = f"Cannot load the reranker: {error.strerror or type(error).__name__}"
        finally:
            self._opened.set()

    def score(self, query: str, texts: Sequence[str], until: float) -> list[float]:
        """Score as `CrossEncoder.score`.

        Raises ModelError if it cannot be opened, IndexUnavailableError if it is being opened or in use at the deadline.
        """
        self._opened.wait(max(0.0, until - time.monotonic()))
        if self._model is None:
            raise ModelError(self._error) if self._error else IndexUnavailableError("The reranker is being loaded.")
        if not self._using.acquire(timeout=max(0.0, until - time.monotonic())):
            raise IndexUnavailableError("Other searches use the reranker.")
        try:
            return self._model.score(query, texts, until)
        finally:
            self._using.release()


def _load(folder: Path, threads: int, device: Device) -> TextCrossEncoder:
    """Load the model in `folder`. Raises ModelError if it is not a cross-encoder with one score, or not on `device`."""
    graph = next((name for name in GRAPHS if (folder / name).is_file()), None)
    if graph is None:
        raise ModelError(f"{folder.name} has no {' or '.join(GRAPHS)}. Set QUADCITE_RERANKER_PATH to a cross-encoder.")
    name = f"{folder.resolve()}/{graph}"
    try:
        from fastembed.common.model_description import ModelSource
        from fastembed.rerank.cross_encoder import TextCrossEncoder

        config = folder / "config.json"
        labels = json.loads(config.read_text("utf-8")).get("id2label", {}) if config.is_file() else {}
        if len(labels) > 1:
            raise ModelError(f"The model in {folder.name} has {len(labels)} outputs. A reranker has one score.")
        with suppress(ValueError):  # registered by an earlier call
            TextCrossEncoder.add_custom_model(name, sources=ModelSource(hf=name), model_file=graph)
        return load_on(
            device,
            lambda providers: TextCrossEncoder(
                name, specific_model_path=str(folder), threads=threads or None, providers=providers, lazy_load=False
            ),
        )
    except ModelError:
        raise
    except Exception as error:  # onnxruntime and tokenizers raise various classes, some a plain Exception
        raise ModelError(f"Cannot load the reranker: {_name_files(error, folder)}") from error


def _name_files(error: Exception, folder: Path) -> str:
    """Return the text of `error` with the name of `folder` in place of its path: answers never have a path."""
    return str(error).replace(str(folder.resolve()), folder.name).replace(str(folder), folder.name)
