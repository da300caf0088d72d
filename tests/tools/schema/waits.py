"""Records how long calls are ready to wait for a measurement of the schema."""

from __future__ import annotations

import pytest

from kg.tools.schema.schema_measurement import Schema, _Measurements


def record_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list to which each later call adds the seconds that it would wait for the first measurement."""
    waits: list[float] = []
    current = _Measurements.current

    def record(self: _Measurements, wait_s: float, newest: bool) -> Schema:
        waits.append(wait_s)
        return current(self, wait_s, newest)

    monkeypatch.setattr(_Measurements, "current", record)
    return waits
