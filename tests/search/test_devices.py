"""Local models run on the device of the setting, or an error states what to install."""

from __future__ import annotations

import logging
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from kg.errors import ModelError
from kg.search import devices, models
from kg.search.devices import CPU, CUDA, Device, choose_providers, load_on
from kg.settings import Settings, settings

GPU_BUILD = ["TensorrtExecutionProvider", CUDA, CPU]
CPU_BUILD = ["AzureExecutionProvider", CPU]


@pytest.mark.parametrize(
    ("device", "is_quantized", "available", "expected"),
    [
        ("auto", False, GPU_BUILD, [CUDA, CPU]),
        ("auto", False, CPU_BUILD, [CPU]),
        ("auto", True, GPU_BUILD, [CPU]),
        ("cpu", False, GPU_BUILD, [CPU]),
        ("cuda", False, GPU_BUILD, [CUDA, CPU]),
    ],
)
def test_the_device_chooses_among_the_providers_that_are_there(
    device: Device, is_quantized: bool, available: list[str], expected: list[str]
) -> None:
    assert choose_providers(device, is_quantized=is_quantized, available=available) == expected


def test_cuda_without_its_build_names_the_package() -> None:
    with pytest.raises(ModelError, match=r"has no CUDAExecutionProvider, only AzureE.*pip install .*onnxruntime-gpu"):
        choose_providers("cuda", available=CPU_BUILD)


def test_cuda_for_the_int8_model_names_the_setting() -> None:
    with pytest.raises(ModelError, match="QUADCITE_MODEL_PRECISION=fp32"):
        choose_providers("cuda", is_quantized=True, available=GPU_BUILD)


@pytest.fixture
def gpu_build(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A build of ONNX Runtime with CUDA; returns what was called."""
    called: list[str] = []
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: GPU_BUILD)
    monkeypatch.setattr("onnxruntime.preload_dlls", lambda: called.append("preload"))
    return called


def build_model(used: list[str]) -> Any:
    session = SimpleNamespace(get_providers=lambda: used)
    return SimpleNamespace(model=SimpleNamespace(model=session))


def test_the_libraries_are_loaded_before_a_model_on_the_gpu(gpu_build: list[str]) -> None:
    def load(providers: list[str]) -> Any:
        gpu_build.append("load")
        return build_model(providers)

    load_on("auto", load)
    load_on("cpu", load)
    assert gpu_build == ["preload", "load", "load"]


@pytest.mark.usefixtures("gpu_build")
def test_a_gpu_that_does_not_start_is_an_error_or_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def load(_: list[str]) -> Any:
        warnings.warn("Attempt to set CUDAExecutionProvider failed.", RuntimeWarning, stacklevel=2)
        return build_model([CPU])

    with pytest.raises(ModelError, match=r"CUDA failed to start.*nvidia-smi"):
        load_on("cuda", load)
    with caplog.at_level(logging.WARNING, devices.__name__):
        load_on("auto", load)
    assert "The model runs on the CPU" in caplog.text


def test_the_setting_reaches_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: CPU_BUILD)
    chosen = settings().model_copy(update={"embedding_device": "cuda"})
    with pytest.raises(ModelError, match="QUADCITE_MODEL_PRECISION=fp32"):
        models.load_model(chosen)
    assert Settings().embedding_device == "auto"
