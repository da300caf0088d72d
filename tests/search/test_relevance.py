"""Whether an answer is relevant, from the scores of its candidates."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pytest
from fastembed import TextEmbedding

from kg.errors import IndexUnavailableError
from kg.retrieval.asked import Asked, has_unknown_name
from kg.retrieval.hybrid_search import Found, Retrieved, describe_ranking
from kg.search.protocol import Candidate, Ranking, SearchIndex
from kg.search.relevance import (
    CALIBRATIONS,
    FEW,
    MANY,
    are_near,
    assess_relevance,
    drop_unrelated,
    find_floor,
    find_names,
    is_english,
    is_english_only,
    is_related,
)

[(MODEL, LIMITS)] = CALIBRATIONS.items()
BELOW = LIMITS.floor - 0.01


def candidate(cosine: float | None, words: float = 0.0, language: str | None = None) -> Candidate:
    return Candidate("urn:a", 0.5, 1.0, cosine, 0.0, words, language)


def assess(*candidates: Candidate, query: str = "rooftop solar", model: str | None = MODEL, pending: int = 0) -> str:
    return assess_relevance(query, candidates, model, pending)


def test_an_answer_below_the_floor_is_not_relevant() -> None:
    assert assess(candidate(BELOW), candidate(0.1)) == "none"
    assert assess(candidate(0.1), candidate(LIMITS.floor)) == "weak"
    assert assess() == "none"


def test_most_words_of_the_query_are_never_refused_for_the_cosine() -> None:
    assert assess(candidate(0.0, words=LIMITS.words)) == "weak"
    assert assess(candidate(0.0, words=LIMITS.words - 0.01)) == "none"


def test_a_strong_answer_is_near_and_has_the_words_in_one_unit() -> None:
    near = replace(candidate(LIMITS.strong, words=LIMITS.strong_words), pairs=LIMITS.strong_pairs)
    assert assess(near) == "strong"
    assert assess(replace(near, pairs=LIMITS.strong_pairs - 0.01)) == "weak"
    assert assess(replace(near, words=LIMITS.strong_words - 0.01)) == "weak"
    assert assess(candidate(LIMITS.strong), replace(near, cosine=BELOW)) == "weak"


def test_a_query_of_one_word_has_no_strong_answer() -> None:
    assert assess(replace(candidate(1.0, words=1.0), pairs=None), query="levy") == "weak"


@pytest.mark.parametrize("model", [None, "other/model", "sentence-transformers/all-MiniLM-L6-v2/fp32"])
def test_without_a_calibrated_model_relevance_is_unknown(model: str | None) -> None:
    assert assess(candidate(0.0), model=model) == "unknown"
    assert drop_unrelated([candidate(0.0)], model) == [candidate(0.0)]


def test_without_a_model_an_empty_answer_is_unknown() -> None:
    assert assess(model=None) == "unknown"
    assert assess(pending=2) == "unknown"


def test_while_vectors_are_pending_relevance_is_unknown() -> None:
    assert assess(candidate(0.0), pending=1) == "unknown"
    assert assess(candidate(0.0), candidate(None)) == "unknown"


def test_texts_and_queries_in_other_languages_are_unknown() -> None:
    assert assess(candidate(0.0, language="en-GB")) == "none"
    assert assess(candidate(0.0, language="fr")) == "unknown"
    assert assess(candidate(0.0), query="énergie solaire") == "unknown"
    assert assess(candidate(0.0), query="droits des communautes") == "unknown"


def test_english_queries_with_foreign_names_are_english() -> None:
    assert is_english("what is the effect of the El Niño on rain in Peru")
    assert is_english("carbon price")
    assert is_english("")
    assert not is_english("地热开发许可证")
    assert not is_english("energia solar nos edificios publicos")


def test_a_single_unit_is_dropped_if_it_is_far_and_has_few_words() -> None:
    near, far = candidate(LIMITS.cut), candidate(LIMITS.cut - 0.01)
    worded = candidate(0.0, words=LIMITS.words)
    assert drop_unrelated([near, far, worded, candidate(None)], MODEL) == [near, worded, candidate(None)]


def test_the_floor_is_lower_for_fewer_units() -> None:
    floors = [find_floor(LIMITS, units) for units in (1, FEW, 500, MANY, 10 * MANY, None)]
    assert floors == sorted(floors)
    assert floors[0] == floors[1] < floors[2] < floors[3] == floors[4] == floors[5] == LIMITS.floor
    assert assess_relevance("rooftop solar", [candidate(BELOW)], MODEL, 0, FEW) == "weak"
    assert assess_relevance("rooftop solar", [candidate(0.2)], MODEL, 0, FEW) == "none"


def test_english_passages_are_judged_next_to_others() -> None:
    assert assess(candidate(0.1, language="pt"), candidate(0.1)) == "none"
    assert assess(candidate(0.1, language="pt"), candidate(0.2, language="fr")) == "unknown"


def test_models_that_fastembed_describes_as_english_are_known_as_english_only() -> None:
    described = {entry["model"]: entry["description"] for entry in TextEmbedding.list_supported_models()}
    multilingual = {name for name, said in described.items() if re.search("Multilingual|mixed|Chinese|languages", said)}
    english = {name for name, said in described.items() if "English" in said} - multilingual
    assert {name for name in english if not is_english_only(name)} == set()
    assert {name for name in multilingual if is_english_only(name)} == set()
    assert is_english_only("sentence-transformers/all-MiniLM-L6-v2/int8")
    assert not is_english_only("https://models.example.org/v1 some-model")


@pytest.mark.parametrize(
    ("model", "languages", "expected"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2/int8", ("de", "gl"), True),
        ("sentence-transformers/all-MiniLM-L6-v2/int8", (), False),
        ("intfloat/multilingual-e5-large", ("de",), False),
        (None, ("de",), False),
    ],
)
def test_results_in_other_languages_state_that_the_model_is_english(
    model: str | None, languages: tuple[str, ...], expected: bool
) -> None:
    found = Retrieved((), "complete", 0, None, model=model, languages=languages)
    notes = " ".join(describe_ranking(found, "passages"))
    assert ("QUADCITE_MODEL" in notes) == expected
    assert all(language in notes for language in languages) or not expected


def test_an_answer_of_an_index_that_lacks_texts_is_approximate() -> None:
    found = Retrieved([Found("urn:1", "urn:d", 0.5)], "complete", 1, None)
    assert found.with_ranking(Asked("pump"), Ranking((), True), ()).completeness == "complete"
    partial = found.with_ranking(Asked("pump"), Ranking((), False, incomplete="2 shards were missing."), ())
    assert (partial.completeness, partial.total) == ("approximate", None)
    assert describe_ranking(partial, "passages") == ["The answer is approximate: 2 shards were missing."]


def test_the_languages_of_an_answer_are_those_of_its_page() -> None:
    page = [Found("urn:1", "urn:d", 0.5), Found("urn:2", "urn:d", 0.4)]
    candidates = [
        Candidate(f"urn:{number}", 0.5, 1.0, 0.1, language=tag) for number, tag in enumerate(("fr", "de", "en-GB"))
    ]
    found = Retrieved(page, "complete", 2, None).with_ranking(Asked("pump"), Ranking((), True, "m"), candidates)
    assert (found.languages, found.model) == (["de"], "m")


def test_a_text_with_a_vector_for_each_part_is_judged_by_their_number() -> None:
    part = replace(candidate(LIMITS.parts_strong, words=LIMITS.parts_words), parts=20)
    assert assess(part) == "strong"
    assert assess(replace(part, cosine=LIMITS.parts_strong - 0.01)) == "weak"
    assert assess(replace(part, words=LIMITS.parts_words - 0.01)) == "weak"
    assert assess(replace(part, pairs=None), query="levy") == "weak"
    between = (find_floor(LIMITS, 100) + find_floor(LIMITS, 2_000)) / 2
    few = replace(candidate(between), parts=1)
    assert assess_relevance("rooftop solar", [few], MODEL, 0, 100) == "weak"
    assert assess_relevance("rooftop solar", [replace(few, parts=20)], MODEL, 0, 100) == "none"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("How do I connect Quadcite to PostgreSQL?", ["Quadcite", "PostgreSQL"]),
        ("Which pump is in Marlow? The Otter, or the Heron?", ["Marlow", "Otter", "Heron"]),
        ("I know what I read (in Pellworth).", ["Pellworth"]),
        ("Where is ISO 27001 required?", ["ISO"]),
        ("How Do I Start The Pump", []),
        ("WHERE IS THE PUMP", []),
        ("where is the pump", []),
        ("", []),
    ],
)
def test_names_are_words_with_a_capital_within_a_sentence(query: str, names: list[str]) -> None:
    assert find_names(query) == names


@dataclass
class Words:
    """An index that finds some words, or does not answer."""

    known: set[str]
    fails: bool = False

    def rank(self, query: str, *, limit: int, mode: str) -> Ranking:
        assert (limit, mode) == (1, "bm25")
        if self.fails:
            raise IndexUnavailableError("It does not answer.")
        return Ranking([Candidate("urn:1", 1.0, 2.0, None)] if query in self.known else [], True)


@pytest.mark.parametrize(
    ("query", "known", "fails", "expected"),
    [
        ("How do I connect Quadcite to PostgreSQL?", {"Quadcite"}, False, True),
        ("How do I connect Quadcite to PostgreSQL?", {"Quadcite", "PostgreSQL"}, False, False),
        ("How do I connect it to postgresql?", set(), False, False),
        (
            "Which pumps, valves, gates, locks and basins of the harbour did old Walter build?",
            set(),
            False,
            False,
        ),
        ("How do I connect Quadcite to PostgreSQL?", set(), True, False),
    ],
)
def test_name_that_no_text_has_is_found(query: str, known: set[str], fails: bool, expected: bool) -> None:
    assert has_unknown_name(cast(SearchIndex, Words(known, fails)), query) is expected


def test_query_in_another_language_than_the_model_knows_is_told() -> None:
    ranking = Ranking((), True, "sentence-transformers/all-MiniLM-L6-v2/int8")
    found = Retrieved((), "complete", 0, None)
    for words, expected in (("Wie mache ich ein Backup?", True), ("how do I make a backup", False)):
        notes = describe_ranking(found.with_ranking(Asked(words), ranking, ()), "passages")
        assert bool(notes) == expected
    multilingual = Ranking((), True, "intfloat/multilingual-e5-large")
    asked = Asked("Wie mache ich ein Backup?")
    assert describe_ranking(found.with_ranking(asked, multilingual, ()), "passages") == []


def test_weak_answer_is_refused_for_an_unknown_name_unless_a_text_has_most_words() -> None:
    ranking, asked = Ranking((), True, MODEL), Asked("How do I connect it to PostgreSQL?")
    index = cast(SearchIndex, Words(set()))
    near, worded = candidate(LIMITS.floor), candidate(LIMITS.floor, LIMITS.words)
    assert asked.judge(index, [near], ranking) == "none"
    assert asked.judge(index, [near, worded], ranking) == "weak"
    assert asked.judge(cast(SearchIndex, Words({"PostgreSQL"})), [near], ranking) == "weak"
    assert replace(asked, min_score=0.0).judge(index, [near], ranking) == "weak"
    assert replace(asked, refuses=False).judge(index, [near], ranking) == "weak"


def test_units_are_near_by_their_cosines_as_each_of_them_is() -> None:
    cosines = [LIMITS.cut, LIMITS.cut - 0.01, -1.0, 0.9]
    for model in (MODEL, "another model", None):
        found = are_near(np.array(cosines), model).tolist()
        assert found == [is_related(candidate(cosine), model) for cosine in cosines]
    assert not are_near(np.array([np.nan]), MODEL)[0], "not known to be near"
