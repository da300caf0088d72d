"""A descent chooses by headings and texts from the top, gives its reasons, and reports where plain search differs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from kg.errors import IndexUnavailableError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.remote.chat import ChatEndpoint
from kg.tools.zoning.topic_search import descend
from kg.vocabulary import BASE
from kg.zoning_summaries.build import build
from tests.zoning_summaries.made_up_code import TOWN, Law, enact, iri, large_code, small_code
from tests.zoning_summaries.stand_in import Said, StandIn, completion


def test_a_question_leads_to_the_section_that_answers_it(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    found = descend(town, TOWN, "how many hives of bees", 1)
    [leaf] = found.results
    assert leaf.iri == iri("7.2.1.1")
    assert leaf.path == ["7 Land use", "7.2 Animals", "7.2.1 Bees and birds"]
    assert leaf.summary is not None
    assert leaf.summary.startswith("Two hives of bees may stand on a lot. ")
    assert (found.plain_search_agrees_on, found.plain_search_otherwise, found.notes) == (1, [], [])


def test_a_question_whose_words_stand_nowhere_is_told_to_be_far(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    found = descend(town, TOWN, "zeppelin", 1)
    assert (len(found.results), len(found.notes)) == (1, 2)


def test_without_a_model_a_question_whose_words_stand_nowhere_finds_nothing(town: KnowledgeGraph) -> None:
    town.search.model = None  # type: ignore[attr-defined]
    build(town, TOWN)
    assert descend(town, TOWN, "zeppelin", 3).results == []
    assert descend(town, TOWN, "hives", 1).results


def test_the_trace_has_every_candidate_with_its_score_and_why(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    steps = descend(town, TOWN, "how many hives of bees", 1).reasoning
    assert [len(step.candidates) for step in steps] == [1, 2, 1, 2]
    bees, hens = steps[3].candidates
    assert bees.chosen
    assert re.fullmatch(r"1st of 2 by headings and texts: words 1\.00, meaning \d\.\d\d", bees.why)
    assert not hens.chosen
    assert hens.why.endswith(f"; the last of the 1 chosen has {bees.score:.2f}")
    assert bees.score > hens.score
    animals, fences = steps[1].candidates
    assert animals.why.endswith(", for '7.2.1.1 Bees', which is below it")
    assert fences.title == "7.1 Fences"


def test_at_most_top_k_go_on_at_each_step(opened: Callable[..., KnowledgeGraph]) -> None:
    town = opened(large_code(3, 5, 8))
    build(town, TOWN)
    found = descend(town, TOWN, "permit for a windmill on a river lot", 2)
    assert [sum(candidate.chosen for candidate in step.candidates) for step in found.reasoning] == [2, 2, 2]
    assert [len(step.candidates) + (step.more or 0) for step in found.reasoning] == [3, 10, 16]
    assert len(found.results) == 2
    scores = [leaf.score for leaf in found.results]
    assert scores == sorted(scores, reverse=True)


def test_where_plain_search_chooses_otherwise_the_turn_is_told(opened: Callable[..., KnowledgeGraph]) -> None:
    laws = [
        Law("1", "Fences", position=0),
        Law("1.1", "Height", "A fence is low. A fence is short. Ask about wombats never.", "1", 0),
        Law("2", "Cats or dogs or animals", position=1),
        Law("2.1", "Cats", "Cats and dogs are animals. Animals are kept inside. Wombats are kept there.", "2", 0),
    ]
    town = opened(laws)
    build(town, TOWN)
    found = descend(town, TOWN, "ask never about cats or animals or dogs about wombats or cats", 1)
    assert [leaf.iri for leaf in found.results] == [iri("2.1")]
    [other] = found.plain_search_otherwise
    assert (other.iri, other.rank, found.plain_search_agrees_on) == (iri("1.1"), 1, 0)
    assert other.lost_at.startswith("step 1: '1 Fences' was 2nd of 2 by headings and texts")


def test_what_no_level_above_names_is_found_by_the_section_that_has_it(
    opened: Callable[..., KnowledgeGraph],
) -> None:
    town = opened(large_code(2, 4, 10))
    build(town, TOWN)
    enact(town.store, [Law("2.3.7", "Odd", "Whoever has a trombone shall play softly.", "2.3", 7)])
    build(town, TOWN, iri("2.3.7"))
    found = descend(town, TOWN, "whoever has a trombone shall play softly", 1)
    assert [leaf.iri for leaf in found.results] == [iri("2.3.7")]
    assert found.reasoning[0].candidates[0].why.endswith(", for '2.3.7 Odd', which is below it")


def test_without_summaries_headings_are_compared_and_that_is_told(town: KnowledgeGraph) -> None:
    found = descend(town, TOWN, "animals such as bees", 1)
    assert [leaf.iri for leaf in found.results] == [iri("7.2.1.1")]
    assert found.results[0].summary is None
    [note] = found.notes
    assert "6 of 6 candidates are missing" in note


def test_what_no_summary_names_is_found_by_the_text(opened: Callable[..., KnowledgeGraph]) -> None:
    rare = "A drum may be struck once a day at noon, and at no other hour of it."
    laws = [*large_code(1, 2, 6), Law("1.1.9", "Well", " ".join([each.text or "" for each in large_code(1, 1, 6)]))]
    laws[-1] = Law("1.1.9", "Well on a lot", f"{laws[-1].text} {rare}", "1.1", 9)
    town = opened(laws)
    build(town, TOWN)
    found = descend(town, TOWN, "drum struck at noon", 1)
    [leaf] = found.results
    assert leaf.iri == iri("1.1.9")
    assert leaf.summary is not None
    assert "drum" not in leaf.summary
    assert found.plain_search_agrees_on == 1


def test_what_stands_above_its_parts_is_found_by_its_own_text(opened: Callable[..., KnowledgeGraph]) -> None:
    laws = [*small_code(), Law("8", "Wells", "Every well shall have a lid of iron and a rope of hemp.", position=2)]
    town = opened([*laws, Law("8.1", "Pumps", "Two pumps may stand on a lot.", "8", 0)])
    build(town, TOWN)
    found = descend(town, TOWN, "lid of iron and rope of hemp", 1)
    assert [leaf.iri for leaf in found.results] == [iri("8")]
    assert (found.results[0].path, found.plain_search_otherwise) == ([], [])
    assert [leaf.iri for leaf in descend(town, TOWN, "two pumps on a lot", 1).results] == [iri("8.1")]


def test_without_an_index_words_decide_alone_and_that_is_told(town: KnowledgeGraph) -> None:
    build(town, TOWN)

    def gone(*_: Any, **__: Any) -> None:
        raise IndexUnavailableError("the index process was stopped")

    town.search.rank = gone  # type: ignore[method-assign]
    found = descend(town, TOWN, "hives of bees", 1)
    assert [leaf.iri for leaf in found.results] == [iri("7.2.1.1")]
    assert {step.scored_by for step in found.reasoning} == {"words of headings and texts"}
    assert found.notes[-1].endswith("the index process was stopped")


def test_a_commit_is_seen_by_the_next_descent(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    assert "Ostriches" not in str(descend(town, TOWN, "roosters", 5).results)
    enact(town.store, [Law("7.2.1.2", "Geese", "Ostriches are fine.", "7.2.1", 1)])
    assert any("4 of 8 candidates are stale" in note for note in descend(town, TOWN, "roosters", 5).notes)
    build(town, TOWN)
    assert "Ostriches are fine." in {hit.summary for hit in descend(town, TOWN, "roosters", 5).results}


def test_without_a_model_words_decide_and_that_is_told(town: KnowledgeGraph) -> None:
    town.search.model = None  # type: ignore[attr-defined]
    build(town, TOWN)
    found = descend(town, TOWN, "hives of bees", 1)
    assert [leaf.iri for leaf in found.results] == [iri("7.2.1.1")]
    assert "kg models pull" in found.notes[-1]
    assert found.reasoning[0].scored_by == "words of headings and texts"


def test_there_is_no_descent_where_there_is_no_code(town: KnowledgeGraph) -> None:
    with pytest.raises(NotFoundError):
        descend(town, f"{BASE}id/municipality/us-ut-nowhere", "fences")


def rate(body: dict[str, Any]) -> Said:
    """Rate what speaks of fences high."""
    lines = body["messages"][1]["content"].split("\n")
    numbered = [match for line in lines if (match := re.match(r"(\d+)\. (.*)", line))]
    rated = {match[1]: [9 if "fence" in match[2].casefold() else 1, "says so"] for match in numbered}
    return completion(f"```json\n{json.dumps(rated)}\n```")


def test_an_endpoint_rates_where_one_is_given(town: KnowledgeGraph, stand_in: Callable[..., StandIn]) -> None:
    build(town, TOWN)
    server = stand_in(answer=rate)
    found = descend(town, TOWN, "hens", 1, endpoint=ChatEndpoint(server.url, "judge"))
    assert [leaf.iri for leaf in found.results] == [iri("7.1.1")]
    assert found.reasoning[1].candidates[0].why == "1st of 2 by ratings of 127.0.0.1/judge: says so"
    assert found.reasoning[1].candidates[0].score == 0.9


@pytest.mark.parametrize("said", ["no", "{}", '{"1": 11}', '{"1": true}', '{"1": [], "2": []}', '{"1": "9"}'])
def test_where_the_ratings_are_none_headings_and_texts_decide(
    town: KnowledgeGraph, stand_in: Callable[..., StandIn], said: str
) -> None:
    build(town, TOWN)
    server = stand_in(answer=lambda body: completion(said))
    found = descend(town, TOWN, "hives of bees", 1, endpoint=ChatEndpoint(server.url, "judge"))
    assert [leaf.iri for leaf in found.results] == [iri("7.2.1.1")]
    assert len(server.asked) == 1
    assert found.notes[0].startswith("The chat endpoint failed")
    assert found.reasoning[0].scored_by == "headings and texts (not by ratings: 127.0.0.1/judge failed)"
    assert {step.scored_by for step in found.reasoning[1:]} == {"headings and texts"}


def test_a_code_without_text_is_told_to_have_none(opened: Callable[..., KnowledgeGraph]) -> None:
    found = descend(opened([Law("7", "Land use")]), TOWN, "hives", 1)
    assert (found.results, len(found.notes)) == ([], 1)
