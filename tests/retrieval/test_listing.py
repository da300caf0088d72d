"""Lists of all passages that pass filters: complete, in order, exactly counted, and paged without repeats."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.filters import Scope, compile_scope
from kg.retrieval.hybrid_search import list_units
from kg.retrieval.listing import DocumentKey, Order, _load_units, load_document_keys
from kg.retrieval.reader import Reader
from kg.retrieval.results import SearchFilters
from kg.search.protocol import get_original
from kg.tools.search.passages import search
from kg.vocabulary import DCTERMS, ELI, KG, RDF, SCHEMA, mint
from tests.conftest import opened

ORDERS = get_args(Order)
FILTERS: list[dict[str, Any]] = [
    {},
    {"domain": ["climate"]},
    {"domain": ["parliament"], "language": ["en"]},
    {"place": ["Utah"]},
    {"year": [2024, 2021]},
    {"concept": ["Q1012"]},
    {"district": ["us-ut-quarry-bend/R-1"]},
    {"topic": ["Energy"], "domain": ["climate"]},
]
"""Filters that the index has codes for, and others."""


def units_in_store(graph: KnowledgeGraph, given: dict[str, Any]) -> dict[str, str]:
    scope, _ = compile_scope(Reader(graph), SearchFilters.model_validate(given))
    return dict(list_units(Reader(graph), scope, 5_000))


def list_pages(graph: KnowledgeGraph, given: dict[str, Any], order: Any, limit: int) -> tuple[list[str], int | None]:
    listed: list[str] = []
    offset: int | None = 0
    total = None
    while offset is not None:
        found = search(graph, filters=SearchFilters.model_validate(given), sort=order, limit=limit, offset=offset)
        assert all(hit.score is None for hit in found.results)
        listed += [hit.id for hit in found.results]
        offset, total = found.next_offset, found.meta.total
    return listed, total


@pytest.mark.parametrize("given", FILTERS, ids=str)
def test_all_passages_are_listed_once_and_counted(joined: KnowledgeGraph, given: dict[str, Any]) -> None:
    expected = units_in_store(joined, given)
    listed, total = list_pages(joined, given, "newest", 37)
    assert sorted(listed) == sorted(expected)
    assert total == len(expected) > 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("given", [{}, {"concept": ["Q1012"]}], ids=str)
def test_documents_are_in_order_and_their_passages_together(
    joined: KnowledgeGraph, given: dict[str, Any], order: Order
) -> None:
    documents = units_in_store(joined, given)
    listed, _ = list_pages(joined, given, order, 200)
    keys = load_document_keys(Reader(joined), set(documents.values()))
    found = [keys[documents[unit]].sort_key(order) for unit in listed]
    assert found == sorted(found)
    runs = [document for number, document in enumerate(map(documents.get, listed))
            if not number or document != documents[listed[number - 1]]]  # fmt: skip
    assert len(runs) == len(set(runs))
    dates = [keys[documents[unit]].date for unit in listed]
    assert None in dates or given
    assert len({each for each in dates if each}) > 1


def test_a_limit_per_document_counts_translations_with_their_original(joined: KnowledgeGraph) -> None:
    expected = Counter(get_original(document) for document in units_in_store(joined, {}).values())
    listed, total = list_pages(joined, {"max_passages_per_doc": 2}, "title", 50)
    found = Counter(get_original(units_in_store(joined, {})[unit]) for unit in listed)
    assert found == {document: min(2, units) for document, units in expected.items()}
    assert total == len(listed)


def test_results_of_a_query_are_sorted_by_title(joined: KnowledgeGraph) -> None:
    found = search(joined, "flood", sort="title", limit=200)
    ranked = search(joined, "flood", limit=200)
    assert [hit.id for hit in found.results] != [hit.id for hit in ranked.results]
    assert {hit.id for hit in found.results} == {hit.id for hit in ranked.results}
    documents = units_in_store(joined, {})
    keys = load_document_keys(Reader(joined), set(documents.values()))
    order = [keys[documents[hit.id]].sort_key("title") for hit in found.results]
    assert order == sorted(order)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"filters": SearchFilters(domain=["climate"])},
        {"sort": "newest", "must": ["flood"]},
        {"sort": "newest", "min_score": 0.0},
        {"sort": "title", "filters": SearchFilters(concept_qids=["Q1012"])},
    ],
)
def test_what_needs_a_query_is_refused_without_one(joined: KnowledgeGraph, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        search(joined, " ", **arguments)


def test_a_passage_with_two_positions_is_listed_once(tmp_path: Path) -> None:
    graph, document = mint("graph", "src", "a"), mint("document", "a")
    with opened(tmp_path / "data") as kg:
        quads = []
        for unit, positions in (("urn:first", (0, 7)), ("urn:second", (1,))):
            values = [(SCHEMA.position, Literal(position)) for position in positions]
            values += [(DCTERMS.isPartOf, document), (SCHEMA.text, Literal(f"Of {unit}.")), (RDF.type, KG.Passage)]
            quads += [Quad(NamedNode(unit), name, value, graph) for name, value in values]
        kg.store.commit({graph: quads})
        parts = _load_units(Reader(kg), Scope(), [(document.value, 0, 5)])
        assert [each.iri for each in parts] == ["urn:first", "urn:second"]


def test_titles_are_compared_without_case_accents_and_by_numbers() -> None:
    titles = ["Zone 2", "zone 10", "Ärger", "apple", "Banana", "", "٣"]
    keys = {title: DocumentKey(title=title) for title in titles}
    ordered = sorted(titles, key=lambda title: keys[title].sort_key("title"))
    assert ordered == ["٣", "apple", "Ärger", "Banana", "Zone 2", "zone 10", ""]


def test_keys_of_documents_follow_the_commits_about_them_and_their_families(tmp_path: Path) -> None:
    document, family = mint("document", "a"), mint("family", "a")
    graph, other, shared = mint("graph", "src", "a"), mint("graph", "src", "b"), mint("graph", "ref", "family", "a")
    with opened(tmp_path / "data") as kg:

        def read() -> tuple[DocumentKey, int]:
            reader = Reader(kg)
            key = load_document_keys(reader, [document.value])[document.value]
            return key, len(reader.ran)

        def say(into: NamedNode, about: NamedNode, *said: tuple[NamedNode, NamedNode | Literal]) -> None:
            kg.store.commit({into: [Quad(about, name, value, into) for name, value in said]})

        say(graph, document, (DCTERMS.title, Literal("A")), (ELI.is_member_of, family))
        key = DocumentKey(title="A", families=(family.value,))
        assert read() == (key, 1)
        say(other, NamedNode("urn:other"), (DCTERMS.title, Literal("B")))
        assert read() == (key, 0)
        say(mint("graph", "user", "a"), NamedNode("urn:own"), (DCTERMS.title, Literal("C")))
        assert read() == (key, 0)
        say(shared, family, (DCTERMS.title, Literal("F")))
        assert read()[0] == replace(key, family="F")
        say(other, document, (DCTERMS.date, Literal("2020-01-01")))
        assert read()[0] == replace(key, family="F", date="2020-01-01")
        kg.store.commit({shared: []})
        assert read()[0] == replace(key, date="2020-01-01")
        say(mint("graph", "user", "a"), document, (DCTERMS.title, Literal("0 forged")))
        assert read()[0] == replace(key, date="2020-01-01")
        kg.store.commit({graph: [], other: []})  # the document is that of the user now
        assert read()[0] == DocumentKey(title="0 forged")
        kg.store.commit({mint("graph", "user", "a"): []})
        assert read()[0] == DocumentKey()
