"""The portions in which a compaction writes quads: few quads, and few characters where texts are long."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.integrity import copy_child
from kg.integrity.copy_child import divide

NODE = NamedNode("urn:x")


def make(texts: list[str]) -> list[Quad]:
    return [Quad(NODE, NODE, Literal(text), NODE) for text in texts] + [Quad(NODE, NODE, NODE, NODE)]


def test_portions_have_few_quads_and_few_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_child, "BULK", 5)
    monkeypatch.setattr(copy_child, "BULK_CHARACTERS", 100)
    quads = make([*"abcdefgh", *(f"{number:050}" for number in range(7)), "x" * 1_000, "y"])
    portions = list(divide(quads))
    assert [quad for portion in portions for quad in portion] == quads
    assert [len(portion) for portion in portions] == [5, 5, 2, 2, 2, 2]
    assert list(divide(())) == []
