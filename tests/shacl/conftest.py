"""The gate that ships with Quadcite, made once."""

from __future__ import annotations

import pytest

from kg.shacl.gate import RecordGate


@pytest.fixture(scope="session")
def gate() -> RecordGate:
    return RecordGate()
