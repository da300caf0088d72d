"""Units and queries in several languages, with two models: which vectors there are, and which are compared."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from kg.search import unit_index
from kg.search.points import SLOTS, Hits
from kg.search.protocol import GraphUnits, IndexedUnit
from kg.search.ranking import Compared, Meaning
from kg.search.registry import MINILM, OFFSETS, USE, get_offset
from kg.search.shards import Shards
from kg.search.spaces import Spaces
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from kg.settings import Settings
from tests.search.conftest import WordIndex
from tests.search.test_index_client import kill
from tests.search.word_embedder import WordEmbedder
from tests.waiting import until

FIRST, SECOND = "words/32/en", "words/24/de-fr"
TEXTS = {
    "en": "the tax on wind power in the county",
    "de": "die Steuer auf Windkraft in dem Landkreis",
    "fr": "la taxe sur les éoliennes dans le département",
    "bn": "বায়ু শক্তির উপর কর",
    None: "wind power 2031",
}


def units(texts: Mapping[str | None, str] = TEXTS) -> dict[str, GraphUnits]:
    made = [IndexedUnit(f"urn:{each}", "urn:g", "urn:d", text, language=each) for each, text in texts.items()]
    return {"urn:g": GraphUnits("1", made)}


def open_index(folder: Path, model: str) -> WordIndex:
    return WordIndex(folder / "index", Settings(_env_file=None, model=model, models_dir=folder / "models"))


def get_spaces(index: WordIndex, query: str) -> dict[str, str | None]:
    return {each.iri.removeprefix("urn:"): each.space for each in index.rank(query, limit=9, mode="dense").candidates}


@pytest.mark.long
def test_each_text_is_compared_by_a_model_that_knows_its_language_and_that_of_the_query(tmp_path: Path) -> None:
    index = open_index(tmp_path, f"{FIRST},{SECOND}")
    index.replace(units())
    index.wait()
    english = index.rank("what is the tax on wind power in the county", limit=9, mode="dense")
    assert (english.language, english.uncompared, english.pending) == ("en", {"bn": 1}, 0)
    expected = {"en": "dense", "None": "dense", "de": "other", "fr": "other"}
    assert get_spaces(index, "what is the tax on wind power in the county") == expected
    assert english.candidates[0].iri == "urn:en"
    german = index.rank("wie hoch ist die Steuer auf Windkraft in dem Landkreis", limit=9, mode="dense")
    assert (german.language, german.candidates[0].iri, german.uncompared) == ("de", "urn:de", {"bn": 1})
    assert get_spaces(index, "wie hoch ist die Steuer auf Windkraft in dem Landkreis") == {
        "en": "also", "None": "also", "de": "other", "fr": "other"
    }  # fmt: skip
    unsure = index.rank("Panthers 2031", limit=9, mode="dense")
    assert (unsure.language, {*get_spaces(index, "Panthers 2031")}) == (None, {"en", "None", "de", "fr"})
    neither = index.rank("বায়ু শক্তির উপর কর কত", limit=9)
    assert (neither.language, neither.model, neither.candidates[0].iri) == ("bn", None, "urn:bn")
    index.close()


@pytest.mark.long
@pytest.mark.parametrize(("model", "spaces"), [(f"{FIRST},gone", {"dense"}), (f"{MINILM},{SECOND}", {"also", "other"})])
def test_a_model_that_is_missing_leaves_the_other_one_working(tmp_path: Path, model: str, spaces: set[str]) -> None:
    index = open_index(tmp_path, model)
    index.replace(units({each: text for each, text in TEXTS.items() if each in ("en", "de")}))
    query = "what is the tax on wind power in the county"
    until(lambda: {*get_spaces(index, query).values()} - {None} == spaces)
    assert "no model" in (index.status().embedder_error or "")
    index.close()
    index = open_index(tmp_path, f"{FIRST},{SECOND}")
    index.wait()
    embedded = (tmp_path / "models" / "journal").read_text("utf-8").splitlines()
    assert sorted(embedded) == sorted(f"{TEXTS[each]!r}" for each in ("en", "en", "de"))
    index.close()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"en"}, {"en", "de"}, {"dense": ["en", "und"], "also": ["en", "und"], "other": ["de"]}),
        ({"en"}, None, {"dense": ["en", "und"], "also": ["en", "und"], "other": ["de", "bn"]}),
        (None, {"de"}, {"dense": ["en", "und", "de", "bn"]}),
    ],
)
def test_vectors_are_due_in_languages_that_a_model_knows(
    first: set[str] | None, second: set[str] | None, expected: dict[str, list[str]]
) -> None:
    known = {number: None if each is None else frozenset(each) for number, each in enumerate((first, second))}
    assert Spaces({}, known).list_due(["en", "und", "de", "bn"]) == expected


def test_the_offset_of_a_pair_that_was_not_measured_is_the_mean_of_those_like_it() -> None:
    measured = OFFSETS[USE]
    assert get_offset(USE, "en", "zh") == measured["en", "zh"]
    others = [measured["en", each] for each in ("es", "de", "ru", "zh")]
    assert get_offset(USE, "en", "th") == pytest.approx(np.mean(others), abs=5e-4)
    own = [measured[each, each] for each in ("en", "es", "de", "ru", "zh")]
    assert get_offset(USE, "th", "th") == pytest.approx(np.mean(own), abs=5e-4)
    assert min(measured.values()) < get_offset(USE, None, "th") < max(measured.values())
    assert get_offset("another", "en", "zh") == 0.0


@pytest.mark.parametrize("depth", [1, 3, 7, 40])
def test_joined_lists_have_the_best_score_of_every_unit_above_the_least_one(depth: int) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        offsets = [0.0, 0.15, 0.22]
        lists = [
            {id_: round(chance.uniform(-0.2, 0.9), 4) for id_ in range(20) if chance.random() < 0.7} for _ in offsets
        ]
        found = [
            (
                number,
                Compared("other", (), offset),
                hits := to_hits(scores).cut(depth),
                hits.least if depth < 20 else None,
            )
            for number, (offset, scores) in enumerate(zip(offsets, lists, strict=True))
        ]
        joined = Meaning.join(found)
        best: dict[int, float] = {}
        for offset, scores in zip(offsets, lists, strict=True):
            for id_, score in scores.items():
                best[id_] = max(best.get(id_, -1.0), min(round(score + offset, 6), 1.0))
        joint = dict(zip(joined.hits.ids.tolist(), joined.hits.scores.tolist(), strict=True))
        assert joint.items() <= best.items()
        assert {id_ for id_, score in best.items() if joined.least is None or score > joined.least} <= joint.keys()
        assert (joined.least is None) == (depth >= 20)
        for id_, number, score in zip(joined.hits.ids, joined.lists, joined.hits.scores, strict=True):
            assert score == min(round(lists[number][id_] + offsets[number], 6), 1.0)


@pytest.mark.long
def test_texts_are_compared_in_the_language_that_their_tag_is_a_form_of(tmp_path: Path) -> None:
    index = open_index(tmp_path, "words/32/no")
    index.replace(units({"nb": "avgift på vindkraft i fylket", "nn": "avgift på vindkraft i kommunen"}))
    index.wait()
    found = index.rank("avgift på vindkraft i fylket", limit=9)
    assert ({each.space for each in found.candidates}, found.uncompared) == ({"dense"}, {})
    assert found.candidates[0].iri == "urn:nb"
    index.close()


@pytest.mark.long
def test_a_kill_while_the_second_model_embeds_loses_at_most_a_batch(tmp_path: Path) -> None:
    english, german = ([f"{word} {number}" for number in range(1_500)] for word in ("levy", "Abgabe"))
    index = open_index(tmp_path, f"{FIRST},{SECOND}")
    made = [IndexedUnit(f"urn:en:{each}", "urn:g", "urn:d", each, language="en") for each in english]
    made += [IndexedUnit(f"urn:de:{each}", "urn:g", "urn:d", each, language="de") for each in german]
    index.replace({"urn:g": GraphUnits("1", made)})
    journal = tmp_path / "models" / "journal"
    by_first, whole = len(english), 2 * len(english) + len(german)

    def count() -> int:
        return journal.read_text("utf-8").count("\n") if journal.exists() else 0

    until(lambda: count() > by_first + 100)
    kill(index)
    killed = count()
    assert killed < whole
    index.wait()
    assert index.status().pending_vectors == 0
    computed = Counter(journal.read_text("utf-8").splitlines())
    assert len(computed) == by_first + len(german)
    assert whole <= computed.total() <= whole + WordEmbedder.at_once
    assert min(computed[repr(each)] for each in english) == 2
    found = index.rank("die Abgabe", limit=4_000, mode="dense")
    assert (len(found.candidates), found.pending) == (len(made), 0)
    index.close()


def test_texts_without_a_letter_or_digit_are_counted_and_never_found(tmp_path: Path) -> None:
    index = UnitIndex(Shards(tmp_path), VectorCache(tmp_path), lambda query, number: [1.0, 0.0])
    index.use_model(0, MINILM, 2, None)
    texts = ["the tax on wind power", "* * *", "\U0001f30d\U0001f30d", f"the levy\n\n{'. ' * 1_500}\n\nends"]
    index.begin(["urn:g"])
    index.put(
        [
            IndexedUnit(f"urn:{at}", "urn:g", "urn:d", text, "Wind power", "zxx", in_context=True, names="Ann Wind")
            for at, text in enumerate(texts)
        ]
    )
    index.finish({"urn:g": "1"})
    pending = index.pending("dense", 99)
    assert len(pending) == 3
    assert all(re.search(r"\w", text.removeprefix("Wind power")) for _, text in pending.values())
    index.set_vectors("dense", {id_: (hashed, np.array([[1.0, 0.0]])) for id_, (hashed, _) in pending.items()})
    assert index.counts()[:2] == (4, 0)
    every = index.rank("wind power ann", None, None, 9)
    assert {each.iri for each in every.candidates} == {"urn:0", "urn:3"}
    assert every.uncompared == {}
    listed = index.rank("wind power ann", [f"urn:{at}" for at in range(4)], None, 9)
    assert {each.iri for each in listed.candidates if each.bm25 or each.cosine is not None} == {"urn:0", "urn:3"}
    index.shards.close()


def to_hits(scores: Mapping[int, float]) -> Hits:
    return Hits.join([Hits(np.array([*scores], np.int64), np.array([*scores.values()], np.float64))])


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "de", None])
def test_a_page_of_several_languages_is_the_beginning_of_a_ranking_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str | None
) -> None:
    """Small lists, of which the ranking has to ask for more, and each unit scored by its id."""
    monkeypatch.setattr(unit_index, "_FIRST_DEPTH", 8)
    monkeypatch.setattr(unit_index, "detect_query_language", lambda query, counts: language)
    monkeypatch.setattr(unit_index, "POOL", 5)
    chance = np.random.default_rng(0)

    def embed(text: str, number: int) -> Sequence[float]:
        words = (np.random.default_rng([number, *word.encode()]).standard_normal(8) for word in text.split())
        vector = np.sum([*words], axis=0)
        return (vector / np.linalg.norm(vector)).tolist()  # type: ignore[no-any-return]

    index = UnitIndex(Shards(tmp_path), VectorCache(tmp_path), embed)
    index.use_model(0, "sentence-transformers/all-MiniLM-L6-v2", 8, frozenset(("en",)))
    index.use_model(1, USE, 8, frozenset(("en", "de", "ru")))
    words = ["tax", "wind", "solar", "county", "levy", "steuer", "kreis"]
    made = [
        IndexedUnit(f"urn:{each}", "urn:g", "urn:d", " ".join(chance.choice(words, 6)) + f" {each}", language=tag)
        for each, tag in enumerate(("en", "de", "ru", None, "bn") * 30)
    ]
    index.begin(["urn:g"])
    index.put(made)
    index.finish({"urn:g": "1"})
    for space, number in SLOTS.items():
        while pending := index.pending(space, 100):
            rows = {id_: np.array([embed(text, number)], np.float16) for id_, (_, text) in pending.items()}
            index.set_vectors(space, {id_: (pending[id_][0], rows[id_]) for id_ in pending})
    assert index.counts() == (150, 0, 1)
    for query in ("solar levy", "kreis steuer 12"):
        every = index.rank(query, [unit.iri for unit in made], None, 150).candidates
        for limit in (1, 4, 20):
            assert [*index.rank(query, None, None, limit).candidates] == [*every[:limit]]
    few = index.rank("solar levy", ["urn:0", "urn:3", "urn:5", "urn:1", "urn:2"], None, 5).candidates
    assert None not in [each.cosine for each in few]
    assert index.rank("solar", None, None, 1, mode="bm25").uncompared == {}
    index.shards.close()
