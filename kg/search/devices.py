"""The device of local models, the CPU or an NVIDIA GPU, as execution providers of ONNX Runtime.

The package ``onnxruntime-gpu`` has the provider for CUDA. It contains the same modules as ``onnxruntime``, on which
fastembed depends, so the one that was installed last counts.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar

from kg.errors import ModelError

log = logging.getLogger(__name__)

Device = Literal["auto", "cpu", "cuda"]

_Model = TypeVar("_Model", bound=Any)

CPU: Final = "CPUExecutionProvider"
CUDA: Final = "CUDAExecutionProvider"
INSTALL: Final = "pip install 'quadcite[gpu]' && pip install --force-reinstall --no-deps onnxruntime-gpu"


def choose_providers(
    device: Device, *, is_quantized: bool = False, available: Sequence[str] | None = None
) -> list[str]:
    """Choose the providers of a model, the preferred one first, from those that ONNX Runtime has (`available`).

    `is_quantized` states that the graph computes with int8, for which CUDA has no kernels: ``auto`` is the CPU then.
    Raises ModelError, with what to do, if ``cuda`` is not possible.
    """
    if device == "cpu" or (device == "auto" and is_quantized):
        return [CPU]
    if available is None:
        from onnxruntime import get_available_providers

        available = get_available_providers()
    if device == "auto":
        return [CUDA, CPU] if CUDA in available else [CPU]
    if is_quantized:
        raise ModelError(
            "QUADCITE_EMBEDDING_DEVICE=cuda needs QUADCITE_MODEL_PRECISION=fp32: the operators of the int8 model run "
            "on the CPU only. Set it and run `kg models pull`."
        )
    if CUDA not in available:
        raise ModelError(
            f"QUADCITE_EMBEDDING_DEVICE=cuda, but the installed onnxruntime has no {CUDA}, only "
            f"{', '.join(available)}. Install the one for GPUs (`{INSTALL}`), or set it to auto or cpu."
        )
    return [CUDA, CPU]


def load_on(device: Device, load: Callable[[list[str]], _Model], *, is_quantized: bool = False) -> _Model:
    """Load a model of fastembed by a function of the providers.

    Raises ModelError if `device` is ``cuda`` and the model does not run there. For ``auto`` that is logged.
    """
    providers = choose_providers(device, is_quantized=is_quantized)
    if CUDA in providers:
        _load_libraries()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Attempt to set CUDAExecutionProvider", RuntimeWarning)
        model = load(providers)
    if CUDA in providers and CUDA not in get_providers(model):
        problem = (
            "onnxruntime-gpu is installed, but CUDA failed to start. Check the driver with `nvidia-smi` and the "
            "libraries with `python -c 'import onnxruntime; onnxruntime.preload_dlls()'`"
        )
        if device == "cuda":
            raise ModelError(f"{problem}, or set QUADCITE_EMBEDDING_DEVICE=cpu.")
        log.warning("%s. The model runs on the CPU.", problem)
    return model


def get_providers(model: Any) -> list[str]:
    """Return the providers that a loaded model of fastembed uses, the preferred one first."""
    found: list[str] = model.model.model.get_providers()
    return found


def _load_libraries() -> None:
    """Load the libraries of CUDA and cuDNN that are installed as Python packages."""
    import onnxruntime

    with contextlib.redirect_stdout(io.StringIO()) as said:  # it prints what it cannot find
        onnxruntime.preload_dlls()
    log.debug("Loading the libraries of CUDA: %s", said.getvalue())
