"""The tools of documents keep to their tokens where a graph has far more than fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.promotion import PROMOTED
from kg.retrieval.results import FEWEST_TOKENS, tokens_of
from kg.search.index_sync import repair_index
from kg.tools.registry import DOCUMENTS, TOOLS
from kg.vocabulary import EXTRACTED, KG, OA, RDF, SCHEMA, SKOS, XSD, mint, mint_claim
from loaders.sources import load
from tests.folders import open_graph
from tests.tools.documents.conftest import entity

MANY = 60
LONG = "The weir pump of the lower basin is checked by two people and the log has the time of each check. " * 12
WEIR = entity("product", "weirpump")
CALLS: dict[str, dict[str, Any]] = {
    "hybrid_query": {"q": "weir pump of the lower basin"},
    "entity_lookup": {"q": "weir pump"},
    "explain_entity": {"entity_id": WEIR.value},
    "status": {},
    "search": {"query": "weir pump of the lower basin"},
    "list_claims": {"kind": "relation"},
}


def describe(node: NamedNode, label: str) -> list[Quad]:
    graph = mint("graph", "ref", "entity", *node.value.split("/")[-2:])
    said: list[tuple[NamedNode, NamedNode | Literal]] = [
        (RDF.type, KG.Entity),
        (KG.entityType, mint("code", "entityType", "product")),
        (KG.norm, Literal(node.value.rpartition("/")[2])),
        (SKOS.prefLabel, Literal(label)),
        *((SKOS.altLabel, Literal(f"{label} of the basin with the number {number}")) for number in range(MANY)),
    ]
    return [Quad(node, name, value, graph) for name, value in said]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """Many long notes, each with a relation of the same entity."""
    folder = tmp_path_factory.mktemp("crowd")
    (folder / "notes").mkdir()
    for number in range(MANY):
        (folder / "notes" / f"n{number}.md").write_text(f"# Note {number}\n\n{LONG} Number {number}.\n")
    with open_graph(folder / "data") as kg:
        load(kg, "files", [str(folder / "notes")], index=False)
        chunks = [
            quad.subject
            for graph in kg.store.graphs()
            for quad in kg.store.graph(graph)
            if quad.predicate == SCHEMA.text
        ]
        replace: dict[NamedNode, list[Quad]] = {}
        edges = NamedNode(f"{PROMOTED}entity/product/weirpump")
        for number, chunk in enumerate(chunks):
            assert isinstance(chunk, NamedNode)
            other = entity("product", f"valve{number}")
            graph = NamedNode(f"{EXTRACTED}entities/files/notes/n{number}.md")
            node, span = mint_claim(WEIR, KG.uses, other, graph), NamedNode(f"{chunk.value}&char=0,900")
            mention = NamedNode(f"{chunk.value}&m={number}")
            said: list[tuple[NamedNode, NamedNode, NamedNode | Literal]] = [
                (chunk, KG.mentions, WEIR),
                (mention, OA.hasSource, chunk),
                (mention, KG.object, WEIR),
                (node, RDF.type, KG.Statement),
                (node, RDF.type, KG.EntityRelation),
                (node, RDF.subject, WEIR),
                (node, RDF.predicate, KG.uses),
                (node, RDF.object, other),
                (node, KG.confidence, Literal("0.9", datatype=XSD.decimal)),
                (node, KG.method, Literal("verb")),
                (node, KG.evidence, span),
                (span, OA.hasSource, chunk),
                (span, OA.exact, Literal(LONG[:900])),
            ]
            replace[graph] = [Quad(*triple, graph) for triple in said]
            replace.setdefault(edges, []).append(Quad(WEIR, KG.uses, other, edges))
            for quad in describe(other, f"Valve {number} of the weir pump"):
                replace.setdefault(quad.graph_name, []).append(quad)  # type: ignore[arg-type]
        for quad in describe(WEIR, "Weir pump"):
            replace.setdefault(quad.graph_name, []).append(quad)  # type: ignore[arg-type]
        kg.store.commit(replace)
        repair_index(kg.store, kg.search)
        yield kg


@pytest.mark.parametrize("name", CALLS)
def test_crowded_answers_keep_to_their_tokens(crowd: KnowledgeGraph, name: str) -> None:
    [tool] = [each for each in TOOLS if each.name == name and DOCUMENTS in each.tags]
    whole = tool.answer(crowd, CALLS[name]).content
    assert tokens_of(whole) <= tool.max_tokens
    filled = {key for key, value in whole.items() if isinstance(value, list) and value and key != "notes"}
    assert filled or name == "status"
    for most in (FEWEST_TOKENS, 500, 1_000, 3_000):
        content = tool.answer(crowd, CALLS[name] | {"max_tokens": most}).content
        assert tokens_of(content) <= most or (most < 350 and f"{most} tokens" in content["notes"][-1])
        assert all(content.get(key) for key in filled if key in content)
