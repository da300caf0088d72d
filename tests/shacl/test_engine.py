"""Queries asked ahead: by threads, with no more kept than asked for, and with the results there would be without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pyoxigraph as ox
import pytest

from kg.shacl import data_graph, engine
from kg.shacl.compiler import Query
from kg.shacl.data_graph import DataGraph
from kg.shacl.engine import KEPT_ROWS, Row, prefetch
from kg.shacl.shapes import Shapes
from kg.vocabulary import KG, RDF, XSD
from tests.shacl.made_up import record, without

NUMBERS = "SELECT ?s WHERE {{ ?s ?p ?o }} LIMIT {}"


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(engine, "_THREADS", request.param)
    return int(request.param)


@pytest.fixture
def rows() -> Callable[[str], Iterator[Row]]:
    store = ox.Store()
    store.extend([ox.Quad(KG[f"s{n}"], RDF.value, ox.Literal(n)) for n in range(KEPT_ROWS + 1)])

    def ask(query: str) -> Iterator[Row]:
        return (tuple(row) for row in store.query(query))  # type: ignore[union-attr,misc]

    return ask


@pytest.mark.parametrize(("many", "kept"), [(0, True), (KEPT_ROWS, True), (KEPT_ROWS + 1, False)])
def test_all_rows_of_a_query_are_kept_or_none(rows, many, kept, monkeypatch):
    monkeypatch.setattr(engine, "_THREADS", 2)
    query = Query(NUMBERS.format(many), ())
    answers = prefetch([query], rows)
    assert (query.text in answers) is kept
    assert not kept or len(answers[query.text]) == many


def test_a_probe_without_a_row_stands_for_its_query(rows, monkeypatch):
    monkeypatch.setattr(engine, "_THREADS", 2)
    query = Query(NUMBERS.format(5), (), probe=NUMBERS.format(0))
    assert prefetch([query], rows) == {query.text: ()}


def test_a_fault_of_a_query_is_raised(rows, monkeypatch):
    monkeypatch.setattr(engine, "_THREADS", 2)
    with pytest.raises(SyntaxError):
        prefetch([Query("SELECT nothing", ())], rows)


@pytest.mark.parametrize(("predicate", "many"), [(KG.textSha256, 9), (KG.slug, 4)])
def test_results_are_the_same_however_many_threads_look(threads, predicate, many, monkeypatch):
    monkeypatch.setattr(engine, "KEPT_ROWS", 2)
    monkeypatch.setattr(data_graph, "_PORTION", 7)
    monkeypatch.setattr(data_graph, "_SMALL", 0)
    _, quads = record("act", 5)
    quads = without(quads, predicate)
    quads += [ox.Quad(quads[0].subject, KG.slug, ox.Literal(str(n), datatype=XSD.string)) for n in range(3)]
    found = Counter((str(each.focus), str(each.shape), each.message) for each in Shapes.load().check(quads))
    store = ox.Store()
    store.extend(quads)
    stored = Shapes.load().validate(DataGraph.from_store(store))
    assert Counter((str(each.focus), str(each.shape), each.message) for each in stored) == found
    assert sum(found.values()) == many


@pytest.mark.parametrize("many", [1, 20, 21, 60])
def test_a_candidate_holds_all_of_its_quads_whatever_their_number(many, monkeypatch):
    monkeypatch.setattr(data_graph, "_PORTION", 20)
    quads = [ox.Quad(KG[f"s{n}"], RDF.value, ox.Literal(f"0{n}", datatype=XSD.integer)) for n in range(many)]
    assert set(DataGraph.from_quads(quads).quads()) == set(quads)
