"""Agents build summaries of a code, or write them themselves, and follow them down to a topic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import ConflictError, InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import Agent, Run
from kg.tools.registry import Tool, content_of
from kg.tools.zoning.summaries import kg_build_summaries, kg_rebuild_summary, kg_search_by_topic
from kg.vocabulary import KG, RDF, SKOS, mint
from tests.summaries.made_up_code import TOWN, Law, enact, iri, open_town, small_code

HERE = {"municipality": "Otter Hollow", "state": "UT"}


@pytest.fixture
def town(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    kg = open_town(tmp_path / "town", small_code())
    graph, state = mint("graph", "ref", "municipality", "us-ut-otter-hollow"), mint("place", "US-UT")
    place = NamedNode(TOWN)
    of_state = mint("graph", "ref", "place", "US-UT")
    quads = [
        Quad(place, RDF.type, KG.Municipality, graph),
        Quad(place, SKOS.prefLabel, Literal("Otter Hollow", language="en"), graph),
        Quad(place, KG.within, state, graph),
    ]
    named = [
        Quad(state, SKOS.prefLabel, Literal("Utah", language="en"), of_state),
        Quad(state, SKOS.notation, Literal("US-UT"), of_state),
    ]
    kg.store.commit({graph: quads, of_state: named}, Run(Agent("test", "1")).describe(kg.store, {}))
    yield kg
    kg.store.close()


@pytest.mark.parametrize("function", [kg_build_summaries, kg_rebuild_summary, kg_search_by_topic])
def test_a_tool_says_when_to_use_it_what_comes_back_and_what_next(function):
    tool = Tool(function, "", frozenset())
    assert {"municipality", "state"} == set(list(tool.arguments.model_fields)[:2])
    assert all(word in tool.description for word in ("Use ", "Returns ", "Example: ", "Next: "))
    assert len(tool.description) < 900
    assert tool.result.model_json_schema()["type"] == "object"


@pytest.mark.parametrize(
    ("name", "state"),
    [("Otter Hollow", "UT"), ("otter hollow", "Utah"), ("OTTER-HOLLOW", "ut"), (" Otter  Hollow", "utah")],
)
def test_a_municipality_is_known_by_its_name_and_state(town, name, state):
    assert kg_build_summaries(town, name, state).built == 8


def test_what_is_not_there_is_told_with_what_is(town):
    with pytest.raises(NotFoundError, match="there are: Otter Hollow, Utah"):
        kg_build_summaries(town, "Otter Hill", "UT")
    with pytest.raises(NotFoundError, match=r"no section '7\.1\.9'; there are: 7\.1"):
        kg_rebuild_summary(town, **HERE, section_id="7.1.9")
    with pytest.raises(InvalidInputError, match="QUADCITE_CHAT_URL"):
        kg_build_summaries(town, **HERE, mode="chat")
    with pytest.raises(InvalidInputError, match="inputs_sha256 goes with a summary"):
        kg_rebuild_summary(town, **HERE, section_id="7", inputs_sha256="ab")


def test_a_build_tells_what_it_did_and_what_is_left(town):
    first = kg_build_summaries(town, **HERE, root_section="7.1")
    assert (first.built, first.remaining) == (3, 0)
    second = kg_build_summaries(town, **HERE)
    assert (second.built, second.current, second.empty, second.remaining) == (5, 3, 1, 0)
    assert content_of(second)["failed"] == []


def test_an_agent_writes_what_it_is_handed_and_sends_it_back(town):
    written = 0
    while (handed := kg_build_summaries(town, **HERE, mode="agent", limit=1)).pending:
        [one] = handed.pending
        assert one.ready
        assert handed.remaining == 8 - written
        taken = kg_rebuild_summary(
            town,
            **HERE,
            section_id=one.section_id,
            summary=f"It is about {one.title}.",
            inputs_sha256=one.inputs_sha256,
        )
        assert (taken.summary, taken.model, taken.stale) == (f"It is about {one.title}.", "agent/agent", False)
        assert taken.summary_built_at.endswith("Z")
        written += 1
    assert written == 8


def test_an_agents_text_for_what_has_changed_is_refused(town):
    [one] = kg_build_summaries(town, **HERE, mode="agent", limit=1).pending
    enact(town.store, [Law("7.1.1", "Height", "A fence may be nine feet high.", "7.1", 0)])
    with pytest.raises(ConflictError):
        kg_rebuild_summary(
            town, **HERE, section_id=one.section_id, summary="Six feet.", inputs_sha256=one.inputs_sha256
        )


def test_a_summary_taken_back_tells_what_it_leaves_stale_above(town):
    kg_build_summaries(town, **HERE)
    taken = kg_rebuild_summary(town, **HERE, section_id="7.2.1.2", summary="Hens may live here, roosters not.")
    assert taken.stale_above == [iri("7.2.1"), iri("7.2"), iri("7")]
    again = kg_rebuild_summary(town, **HERE, section_id="§ 7.2.1.2")
    assert (again.rebuilt, again.stale_above) == (1, [])  # the extract is what those above were made from
    assert (again.title, again.level, again.summary_level) == ("7.2.1.2 Hens", 4, 0)


def test_a_topic_is_followed_down_with_its_reasoning(town):
    kg_build_summaries(town, **HERE)
    found = kg_search_by_topic(town, **HERE, query="how many hives of bees", top_k=1)
    [hit] = found.results
    assert (hit.section_id, hit.path) == (iri("7.2.1.1"), ["7 Land use", "7.2 Animals", "7.2.1 Bees and birds"])
    assert [len(step.candidates) for step in found.reasoning] == [1, 2, 1, 2]
    assert found.reasoning[1].candidates[0].why.startswith("1st of 2 by summaries and texts: ")
    assert (found.plain_search_agrees_on, found.plain_search_otherwise) == (1, [])
    assert found.meta.completeness == "complete"
