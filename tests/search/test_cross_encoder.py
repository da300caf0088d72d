"""A local cross-encoder scores passages from its folder, within a deadline, in the index process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kg.errors import IndexUnavailableError, ModelError
from kg.search.cross_encoder import BATCH, CrossEncoder, CrossEncoderWorker
from kg.search.index_client import EdgeIndex
from kg.settings import Settings
from tests.search.tiny_cross_encoder import write_cross_encoder

WEIGHTS = {"licence": 2.0, "geothermal": 1.0, "levy": -1.0}
TEXTS = [
    "A levy is due.",
    "The geothermal licence is granted for ten years to the applicant of the first round only.",
    "Nothing.",
    "A licence licence.",
    "geothermal",
    "levy levy levy and a geothermal licence",
]
SCORES = [-1.0, 3.0, 0.0, 4.0, 1.0, 0.0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cross_encoder(tmp_path / "encoder", WEIGHTS)


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


def test_passages_are_scored_in_their_order_whatever_their_length(folder: Path) -> None:
    assert len(TEXTS) > BATCH
    assert CrossEncoder(folder).score("who grants it", TEXTS, soon()) == pytest.approx(SCORES)
    assert CrossEncoder(folder).score("who grants it", [], soon()) == []


def test_the_deadline_ends_the_work_between_batches(folder: Path) -> None:
    with pytest.raises(ModelError, match="0 of 6"):
        CrossEncoder(folder).score("x", TEXTS, time.monotonic() - 1)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json", "tokenizer_config.json"])
def test_a_folder_without_a_file_of_the_model_is_an_error(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(ModelError, match=missing.replace(".", r"\.")):
        CrossEncoder(folder)


def test_a_classifier_of_several_labels_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="3 outputs"):
        CrossEncoder(write_cross_encoder(tmp_path / "three", WEIGHTS, labels=3))


def test_a_damaged_graph_is_an_error(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ModelError):
        CrossEncoder(folder)


@pytest.mark.parametrize("error", [ModelError("No graph."), PermissionError(13, "Permission denied")])
def test_a_worker_whose_model_cannot_be_opened_states_the_reason(error: Exception) -> None:
    def open_model() -> CrossEncoder:
        raise error

    with pytest.raises(ModelError, match=r"No graph|Permission denied"):
        CrossEncoderWorker(open_model).score("x", TEXTS, soon())


def test_a_worker_answers_while_it_opens_and_while_others_use_it(folder: Path) -> None:
    opening = threading.Event()

    def open_model() -> CrossEncoder:
        opening.wait(60)
        return CrossEncoder(folder)

    worker = CrossEncoderWorker(open_model)
    with pytest.raises(IndexUnavailableError):
        worker.score("x", TEXTS, soon(0.05))
    opening.set()
    assert worker.score("x", TEXTS, soon()) == pytest.approx(SCORES)
    with worker._using, pytest.raises(IndexUnavailableError):
        worker.score("x", TEXTS, soon(0.05))


def test_a_worker_says_why_its_model_cannot_be_opened(tmp_path: Path) -> None:
    worker = CrossEncoderWorker(lambda: CrossEncoder(tmp_path))
    with pytest.raises(ModelError, match=r"model\.onnx"):
        worker.score("x", TEXTS, soon())


def test_the_index_process_scores_by_the_model_of_the_settings(
    open_index: Callable[..., EdgeIndex], words: Settings, folder: Path
) -> None:
    index = open_index(words.model_copy(update={"reranker_path": folder}))
    assert list(index.rerank("x", TEXTS, 60.0)) == pytest.approx(SCORES)


def test_without_a_model_in_the_settings_the_index_process_refuses(open_index: Callable[..., EdgeIndex]) -> None:
    with pytest.raises(ModelError):
        open_index().rerank("x", TEXTS, 60.0)


def test_errors_name_the_folder_and_never_its_path(folder: Path, tmp_path: Path) -> None:
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ModelError) as damaged:
        CrossEncoder(folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ModelError) as missing:
        CrossEncoder(empty)

    def refuse() -> CrossEncoder:
        raise PermissionError(13, "Permission denied", str(folder))

    with pytest.raises(ModelError) as refused:
        CrossEncoderWorker(refuse).score("x", TEXTS, soon())
    for error in (damaged, missing, refused):
        assert str(tmp_path) not in str(error.value)
    assert "empty" in str(missing.value)
    assert "Permission denied" in str(refused.value)
