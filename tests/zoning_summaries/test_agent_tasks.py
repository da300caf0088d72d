"""The calling agent gets sections in order, parts first, and gives their summaries back."""

from __future__ import annotations

import pytest

from kg.errors import ConflictError, InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.zoning_summaries.agent_tasks import find_pending, record_summary
from kg.zoning_summaries.build import build
from kg.zoning_summaries.code_tree import read_tree
from tests.zoning_summaries.made_up_code import TOWN, Law, enact, iri


def test_an_agent_can_build_the_whole_tree_in_the_order_that_it_is_given(town: KnowledgeGraph) -> None:
    told: list[str] = []
    while found := find_pending(town, TOWN, limit=3)[0]:
        one = found[0]
        assert one.ready
        told.append(one.section)
        low, high = one.sentences
        record_summary(town, one.section, "It rules on things. " * high, inputs_sha256=one.inputs_sha256)
        assert f"{low} to {high} sentences" in one.instructions
    numbers = ["7.1.1", "7.1.2", "7.2.1.1", "7.2.1.2", "7.1", "7.2.1", "7.2", "7"]
    assert told == [iri(number) for number in numbers]
    tree = read_tree(town, TOWN)
    assert {each.model for each in tree.summaries.values()} == {"agent/agent"}
    assert set(tree.states.values()) == {"current", "empty"}
    assert build(town, TOWN).built == 0


def test_what_is_handed_out_holds_the_text_or_the_summaries_of_the_parts(town: KnowledgeGraph) -> None:
    found, count = find_pending(town, TOWN, limit=100)
    assert count == 8
    assert "barbed wire" in found[0].source
    assert [one.ready for one in found] == [True] * 4 + [False] * 4
    build(town, TOWN)
    assert find_pending(town, TOWN) == ([], 0)
    enact(town.store, [Law("7.1.1", "Height", "A fence may be nine feet high.", "7.1", 0)])
    found, count = find_pending(town, TOWN, iri("7.1"))
    assert [(one.name, one.state) for one in found] == [("7.1.1 Height", "stale"), ("7.1 Fences", "stale")]
    assert "7.1.2 Materials: " in found[1].source


def test_a_summary_that_is_taken_makes_those_above_stale(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    summary, above = record_summary(town, iri("7.2.1.2"), "Up to six hens, and no rooster, may live on a lot.")
    assert (summary.model, summary.level) == ("agent/agent", 0)
    assert above == [iri("7.2.1"), iri("7.2"), iri("7")]
    assert build(town, TOWN).built == 3
    assert read_tree(town, TOWN).summaries[iri("7.2.1.2")] == summary


def test_a_summary_of_what_has_changed_since_is_not_taken(town: KnowledgeGraph) -> None:
    one = find_pending(town, TOWN)[0][0]
    enact(town.store, [Law("7.1.1", "Height", "A fence may be nine feet high.", "7.1", 0)])
    with pytest.raises(ConflictError, match="have changed"):
        record_summary(town, one.section, "Fences may be six feet high.", inputs_sha256=one.inputs_sha256)
    assert read_tree(town, TOWN).summaries == {}


@pytest.mark.parametrize(
    "text", ["", "???", "<b>Fences</b>", "See http://x.example.", "A rule is here. " * 9, "x" * 1_600]
)
def test_what_is_no_summary_is_refused_with_what_one_is(town: KnowledgeGraph, text: str) -> None:
    with pytest.raises(InvalidInputError, match="A summary is 1 to 2 sentences"):
        record_summary(town, iri("7.1.1"), text)


def test_more_sentences_than_there_may_be_are_cut(town: KnowledgeGraph) -> None:
    summary, _ = record_summary(town, iri("7.1.1"), "Six feet is the most.\nFour feet in front.  Wire is out.")
    assert summary.text == "Six feet is the most. Four feet in front."


def test_what_cannot_have_a_summary_is_told(town: KnowledgeGraph) -> None:
    with pytest.raises(InvalidInputError, match="cannot have a summary"):
        record_summary(town, iri("7.2.2"), "It is repealed.")
    with pytest.raises(NotFoundError, match="Unknown section"):
        record_summary(town, iri("7.9"), "It is not there.")
