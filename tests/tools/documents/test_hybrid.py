"""Texts that the search finds, and those that relations lead to, with the score of the specification."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.retrieval.reader import Reader, iri_of
from kg.tools.documents import claims
from kg.tools.documents.claims import load_claims, load_stated
from kg.tools.documents.hybrid import HybridResult, hybrid_query
from kg.tools.documents.relations import Edge, Relation, load_edges
from tests.tools.documents.conftest import BRASS, HERON, HUB, LAMPS, OTTER, chunk

ASKED = "Otter pump"


def ask(kg: KnowledgeGraph, q: str = ASKED, **options: Any) -> HybridResult:
    return hybrid_query(kg, q, **options)


def names(result: HybridResult) -> list[str]:
    return [each.path for each in result.chunks]


def test_hits_come_first_and_relations_lead_to_others(notes: KnowledgeGraph) -> None:
    found = ask(notes)
    assert names(found) == ["notes/otter.md", "notes/heron.md", "notes/brass.md"]
    assert [each.id for each in found.chunks] == [chunk(name).value for name in ("otter.md", "heron.md", "brass.md")]
    assert [each.hops for each in found.chunks] == [0, 1, 2]
    assert [each.relation for each in found.chunks] == [None, "uses", "depends_on"]


def test_score_is_that_of_the_specification(notes: KnowledgeGraph) -> None:
    found = ask(notes)
    weights = [(1.0, 1.0), (0.7, 0.9), (0.4, 0.8)]
    for each, explained, (hop, relation) in zip(found.chunks, found.explanations, weights, strict=True):
        similar = float(explained.rpartition("semantic match ")[2])
        assert each.score == pytest.approx(0.7 * similar + 0.2 * hop + 0.1 * relation, abs=0.004)


def test_weights_are_settings(notes: KnowledgeGraph) -> None:
    given = notes.settings
    changed = {"hybrid_semantic_weight": 0.0, "hybrid_hop_weight": 1.0, "hybrid_relation_weight": 0.0}
    notes.settings = given.model_copy(update=changed)
    try:
        assert [each.score for each in ask(notes).chunks] == [1.0, 0.7, 0.4]
    finally:
        notes.settings = given


def test_edges_have_the_words_and_confidence_of_their_claims(notes: KnowledgeGraph) -> None:
    edges = {(each.src, each.rel, each.dst): each for each in ask(notes).edges}
    assert set(edges) == {
        (OTTER.value, "uses", HERON.value),
        (HERON.value, "depends_on", BRASS.value),
    }
    uses = edges[OTTER.value, "uses", HERON.value]
    assert (uses.confidence, uses.chunk) == (0.9, chunk("otter.md").value)
    assert uses.words == "The Otter pump uses the Heron valve."


def test_claims_of_edges_to_a_node_with_very_many_claims_are_found(notes: KnowledgeGraph) -> None:
    edges = [Edge(each.value, "uses", HUB.value) for each in LAMPS[:24]]
    found = load_stated(Reader(notes), edges)
    assert {edge: (each.confidence, each.unit) for edge, each in found.items()} == dict.fromkeys(
        edges, (0.4, chunk("lighthouse.md").value)
    )


def test_claims_between_two_nodes_with_many_claims_are_found_or_said_to_be_too_many(
    notes: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = [Edge(LAMPS[0].value, "uses", HUB.value), Edge(OTTER.value, "uses", HERON.value)]
    edges.append(Edge(OTTER.value, "cites", HERON.value))  # nothing claims it
    ends: dict[str, Counter[str]] = {}
    for end in ("subject", "object"):
        rows = Reader(notes).rows("ends", f"SELECT ?node WHERE {{ ?claim rdf:{end} ?node }}")
        ends[end] = Counter(iri_of(row["node"]) for row in rows)
    assert ends["object"][HUB.value] > 100
    notes_: set[str] = set()
    found = load_claims(Reader(notes), edges, notes_)
    assert {edge: len(own) for edge, own in found.items()} == dict.fromkeys(edges[:2], 1)
    assert not notes_
    # Both ends of the first have more claims than are read. Nothing is cached, since the number is not part of the key.
    monkeypatch.setattr(notes, "memory", Memory())
    monkeypatch.setattr(claims, "CLAIMS_OF_END", min(ends["subject"][LAMPS[0].value], ends["object"][HUB.value]) - 1)
    assert edges[0] not in load_claims(Reader(notes), edges, notes_)
    assert len(notes_) == 1


@pytest.mark.parametrize("k", [1, 3])
def test_texts_that_relations_lead_to_follow_the_hits_and_are_read_if_there_is_room(
    notes: KnowledgeGraph, k: int
) -> None:
    found = ask(notes, k=k)
    assert names(found) == ["notes/otter.md", "notes/heron.md", "notes/brass.md"][:k]
    assert [each.hops for each in found.chunks] == [0, 1, 2][:k]


def test_texts_that_relations_lead_to_come_first_where_the_settings_say_so(notes: KnowledgeGraph) -> None:
    given = notes.settings
    changed = {"hybrid_hop_scores": (0.1, 1.0, 0.4), "hybrid_hop_weight": 1.0}
    notes.settings = given.model_copy(update=changed)
    try:
        assert names(ask(notes, k=1)) == ["notes/heron.md"]
    finally:
        notes.settings = given


def test_edges_of_a_node_are_in_the_order_of_the_kinds_of_relations(notes: KnowledgeGraph) -> None:
    chosen: list[Relation] = ["depends_on", "uses", "defines"]
    found = load_edges(Reader(notes), [BRASS.value, HERON.value], chosen, set())
    on = Edge(HERON.value, "depends_on", BRASS.value)
    defines = Edge(chunk("heron.md").value, "defines", HERON.value)
    assert found == {
        HERON.value: [defines, Edge(OTTER.value, "uses", HERON.value), on],
        BRASS.value: [on],
    }


def test_definitions_lead_from_a_mention_to_the_text_that_defines(notes: KnowledgeGraph) -> None:
    found = ask(notes, "Mondays foundry", hops=2)
    paths = {each.path: (each.hops, each.relation) for each in found.chunks}
    assert paths == {
        "notes/brass.md": (0, None),
        "notes/heron.md": (1, "depends_on"),
        "notes/otter.md": (2, "uses"),
    }


def test_explanations_name_path_section_and_confidence(notes: KnowledgeGraph) -> None:
    found = ask(notes)
    assert len(found.explanations) == len(found.chunks)
    assert "notes/otter.md" in found.explanations[0]
    assert "'Otter pump'" in found.explanations[0]
    assert "0.90" in found.explanations[1]
    assert "1 hop" in found.explanations[1]


def test_entities_have_names_and_types(notes: KnowledgeGraph) -> None:
    listed = {each.id: (each.name, each.type) for each in ask(notes).entities}
    assert listed[OTTER.value] == ("Otter pump", "Product")
    assert {OTTER.value, HERON.value, BRASS.value} <= set(listed)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"hops": 0}, ["notes/otter.md"]),
        ({"hops": 1}, ["notes/otter.md", "notes/heron.md"]),
        ({"rels": []}, ["notes/otter.md"]),
        ({"rels": ["cites"]}, ["notes/otter.md"]),
        ({"rels": ["part_of"]}, ["notes/otter.md"]),
        ({"k": 2}, ["notes/otter.md", "notes/heron.md"]),
    ],
)
def test_hops_relations_and_number_are_limited(
    notes: KnowledgeGraph, options: dict[str, Any], expected: list[str]
) -> None:
    assert names(ask(notes, **options)) == expected


def test_hops_beyond_the_scores_are_refused(notes: KnowledgeGraph) -> None:
    with pytest.raises(InvalidInputError, match="hops"):
        ask(notes, hops=3)


def test_nothing_is_found_for_words_that_no_file_has(notes: KnowledgeGraph) -> None:
    found = ask(notes, "zebra marmalade")
    assert (found.chunks, found.edges, found.explanations) == ([], [], [])
    assert found.notes


def test_forged_files_and_relations_are_not_told(notes: KnowledgeGraph) -> None:
    found = ask(notes, "Otter pump forged explodes", rels=["uses", "defines"])
    assert "notes/forged.md" not in names(found)
    assert (OTTER.value, "uses", BRASS.value) not in {(each.src, each.rel, each.dst) for each in found.edges}
    assert {each.name for each in found.entities} & {"Forged pump"} == set()
