"""The made-up graph for tests of the tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyoxigraph import NamedNode, Triple

from kg.access.actors import HOLDER
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.queries.pool import QueryPool
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import select
from kg.tools.registry import TOOLS
from kg.user_graphs import UserGraphs
from kg.vocabulary import KG, mint
from kg.zoning_summaries.build import build
from tests.conftest import load_once
from tests.folders import without_models
from tests.loaders.conftest import MemoryIndex
from tests.tools.made_up import Made, Passages, make_passages, open_graph


@pytest.fixture(scope="session")
def corpus() -> list[list[Made]]:
    return make_passages()


@pytest.fixture
def made(corpus: list[list[Made]]) -> Passages:
    return Passages(passage for document in corpus for passage in document)


@pytest.fixture
def kg(corpus: list[list[Made]]) -> KnowledgeGraph:
    return open_graph(corpus)


@pytest.fixture
def pair(corpus: list[list[Made]]) -> KnowledgeGraph:
    """A graph that holds one document, in the original and in a translation, of one passage each."""
    original = replace(
        corpus[0][0],
        slug="two-faced",
        document=mint("document", "two-faced").value,
        iri=mint("passage", "two-faced", "0").value,
        languages=("fr",),
        language=None,
        text="en français",
    )
    translation = replace(
        original,
        document=mint("document", "two-faced", lang="en").value,
        iri=mint("passage", "two-faced", "0", lang="en").value,
        languages=("en",),
        text="in English",
    )
    return open_graph([[original], [translation]])


@pytest.fixture
def receiving(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    """An empty graph that takes in what is sent, with its store and its workers, and an index in memory."""
    settings = without_models(tmp_path, query_workers=1)
    with OxigraphStore(tmp_path) as store, QueryPool(store, settings) as pool:
        yield KnowledgeGraph(settings, store, cast(Any, MemoryIndex()), pool)


def found(kg: KnowledgeGraph, query: str) -> NamedNode:
    """The one IRI that a query finds."""
    [[term]] = select(kg.store.query, query).rows
    assert isinstance(term, NamedNode)
    return term


@pytest.fixture(scope="session")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures of codes that ship with kg, with what agents and people add to such: a permission that is sent, a
    claim that is accepted, a concept that is matched, and summaries. There is no embedding model.
    """
    folder = load_once(tmp_path_factory, "zoning")
    settings = without_models(folder)
    with KnowledgeGraph.open(folder, settings) as opened:

        def call(name: str, **arguments: Any) -> Any:
            [tool] = [each for each in TOOLS if each.name == name]
            return tool.call(opened, arguments)

        bend = {"municipality": "Quarry Bend", "state": "UT"}
        sent = {"district": "R-1", "use": "Kiln", "permission": "CUP", "review_section": "17.56.030"}
        call("kg_ingest_use_permissions", **bend, permissions=[sent])
        claim = found(opened, "SELECT ?x WHERE { ?x a kg:CrossReference ; rdf:object ?cited } ORDER BY ?x LIMIT 1")
        sender = SENDER.set(HOLDER)
        call("review_claim", claim=claim.value, verdict="accept")
        SENDER.reset(sender)
        term = found(opened, "SELECT ?x WHERE { ?x a kg:Definition } ORDER BY ?x LIMIT 1")
        match = Triple(term, KG.definesConcept, NamedNode("cpr://concept/Q1012"))
        UserGraphs(opened).post(mint("graph", "cur", "matches"), [match], HOLDER)
        build(opened, mint("municipality", "us-ut-quarry-bend").value)
        yield opened
