"""Entities by name, and what the files say about one."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.tools.documents.entities import entity_lookup, explain_entity
from kg.tools.documents.status import status
from tests.tools.documents.conftest import BRASS, HERON, LAMPS, OTTER, chunk


@pytest.mark.parametrize("text", ["Heron valve", "heron valv", "heron gate", "valve, Heron"])
def test_entity_is_found_by_similar_names_and_aliases(notes: KnowledgeGraph, text: str) -> None:
    found = entity_lookup(notes, text).entities[0]
    assert (found.id, found.name, found.type, found.aliases) == (
        HERON.value,
        "Heron valve",
        "Product",
        ["heron gate"],
    )
    assert 0 < found.score <= 1


def test_types_restrict_entities(notes: KnowledgeGraph) -> None:
    assert entity_lookup(notes, "brass", type="product").entities == []
    assert entity_lookup(notes, "brass", type="Term").entities[0].id == BRASS.value
    with pytest.raises(InvalidInputError, match="Regulation"):
        entity_lookup(notes, "brass", type="gadget")


def test_entity_is_found_by_the_meaning_of_its_definition(
    notes: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        """Stand in for a model that knows two subjects."""
        subjects = [("gate", "basin", "brass", "sluice"), ("bread", "flour")]
        found = [[1e-6 + sum(word in text.casefold() for word in words) for words in subjects] for text in texts]
        return [[value / hypot(*each) for value in each] for each in found]

    monkeypatch.setattr(notes.search, "embed", embed)
    monkeypatch.setattr(notes, "memory", Memory())
    found = entity_lookup(notes, "what lets water out, a sluice").entities
    assert [(each.id, each.definition) for each in found] == [
        (HERON.value, "Heron valve: the brass gate before a basin.")
    ]
    assert entity_lookup(notes, "bread of rye flour").entities == []
    assert entity_lookup(notes, "what lets water out, a sluice", type="Term").entities == []
    # A name is nearer than a meaning.
    assert entity_lookup(notes, "Heron valve").entities[0].definition is None
    with pytest.raises(NotFoundError, match=HERON.value):
        explain_entity(notes, "sluice that lets water out")


def test_unknown_and_forged_names_are_not_found(notes: KnowledgeGraph) -> None:
    assert entity_lookup(notes, "zebra marmalade").entities == []
    assert entity_lookup(notes, "forged thing").entities == []
    assert all("forged" not in alias.casefold() for alias in entity_lookup(notes, "Otter pump").entities[0].aliases)


def test_entity_is_explained_by_the_words_of_files(notes: KnowledgeGraph) -> None:
    found = explain_entity(notes, HERON.value, hops=1)
    assert (found.name, found.aliases) == ("Heron valve", ["heron gate"])
    assert found.definition == "Heron valve: the brass gate before a basin."
    assert found.definition_source is not None
    assert (found.definition_source.chunk, found.definition_source.path) == (chunk("heron.md").value, "notes/heron.md")
    assert [(each.chunk, each.confidence) for each in found.defined_by] == [(chunk("heron.md").value, 0.8)]
    assert {(each.src, each.rel, each.dst, each.confidence) for each in found.relations} == {
        (OTTER.value, "uses", HERON.value, 0.9),
        (HERON.value, "depends_on", BRASS.value, 0.75),
    }
    assert all(each.support[0].words and each.support[0].path for each in found.relations)
    assert {each.path: each.mentions for each in found.files} == {"notes/heron.md": 1}
    assert all(each.provenance.sha256 for each in found.files)


def test_two_hops_add_the_relations_of_neighbours(notes: KnowledgeGraph) -> None:
    assert [(each.rel, each.hops) for each in explain_entity(notes, OTTER.value).relations] == [
        ("uses", 1),
        ("depends_on", 2),
    ]


def test_entity_without_definition_has_none(notes: KnowledgeGraph) -> None:
    found = explain_entity(notes, OTTER.value)
    assert (found.name, found.definition, found.defined_by) == ("Otter pump", None, [])
    assert "forged alias" not in found.aliases


def test_entity_is_found_by_its_exact_name(notes: KnowledgeGraph) -> None:
    assert explain_entity(notes, "otter pump").id == OTTER.value


@pytest.mark.parametrize("text", ["https://w3id.org/quadcite/id/entity/term/nosuch", "zebra", "Otter pmp"])
def test_unknown_entity_is_an_error(notes: KnowledgeGraph, text: str) -> None:
    with pytest.raises(NotFoundError):
        explain_entity(notes, text)


def test_status_counts_what_sources_have(notes: KnowledgeGraph) -> None:
    found = status(notes)
    assert (found.counts.docs, found.counts.chunks, found.counts.entities) == (4, 4, 3)
    assert (found.counts.mentions, found.counts.relations, found.orphans) == (4, 4 + len(LAMPS), 0)
    assert (found.queue_depth, found.last_error, found.folders) == (0, None, [])
