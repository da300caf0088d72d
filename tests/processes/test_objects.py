"""Tests of objects as bytes between processes."""

from __future__ import annotations

import pickle
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from kg.processes import objects
from kg.processes.child import Child
from kg.store.protocol import Commit, GraphChange, Rows

NODES = st.sampled_from([NamedNode("urn:x:kiln"), NamedNode("http://kiln.example/é"), BlankNode("b1")])
LITERALS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])).map(Literal),
    st.builds(lambda text: Literal(text, language="en-au"), st.text('aé\n"\\', max_size=8)),
    st.integers().map(Literal),
)
TERMS = st.one_of(NODES, LITERALS, st.builds(Triple, NODES, st.just(NamedNode("urn:x:p")), LITERALS))
QUADS = st.builds(
    Quad, NODES, st.just(NamedNode("urn:x:p")), TERMS, st.sampled_from([NamedNode("urn:x:g"), DefaultGraph()])
)
GRAPH = NamedNode("urn:x:g")


def _pass(value: object) -> Any:
    functions: list[Any] = []
    data = objects.dump(value, functions)
    return objects.load(data, functions.__getitem__)


@given(st.lists(QUADS), st.lists(TERMS))
def test_objects_are_equal_on_the_other_side(quads: list[Quad], terms: list[Any]) -> None:
    change = GraphChange(GRAPH, frozenset(quads), frozenset(), "0")
    value = {"rows": Rows(("a",), [(term,) for term in terms]), GRAPH: quads, "commit": Commit(3, (change,))}
    assert _pass(value) == value
    assert _pass((Path("kiln.txt"), Counter("aab"), print)) == (Path("kiln.txt"), Counter("aab"), print)
    assert _pass(iter(quads)) == quads


@pytest.mark.parametrize("code", [Child, subprocess.Popen, eval])
def test_only_classes_of_data_are_read(code: Any) -> None:
    class Calls:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return code, ("true",)

    data = pickle.dumps(Calls())
    with pytest.raises(pickle.UnpicklingError, match="not a class of data"):
        objects.load(objects._LENGTHS.pack(0, 0) + data, [].__getitem__)
