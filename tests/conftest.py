"""Fixtures that every part of the suite may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the project (or at QUADCITE_SHARED); without it the test is skipped."""
    folder = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("needs the real data: no folder ../shared beside the project and QUADCITE_SHARED is not set")
    return folder
