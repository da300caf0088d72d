"""Texts in languages that no model compares with a query, and required words that are stop words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval import hybrid_search
from kg.retrieval.results import SearchFilters
from kg.search.index_client import EdgeIndex
from kg.search.relevance import CALIBRATIONS
from kg.settings import Settings
from kg.tools.search.passages import search
from kg.tools.sparql.local_services import expand_services
from loaders.sources import load
from tests.search import word_embedder

pytestmark = pytest.mark.long

MODEL = "words/512/en"
ENGLISH = [
    f"The council of Eastport {verb} the levy on boats {number}" for number in range(45) for verb in ("set", "cut")
]
OTHERS = {
    "bn": ["বায়ু শক্তির উপর কর", "নৌকার উপর কর"],
    "de": ["die Steuer auf Boote im Hafen"],
    "cmn": ["到2034年，每所公立学校的屋顶"],
    None: ["واللجنة الوطنية"],
    "zxx": ["* * *"],
}


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("languages")
    shelf = folder / "shelf"
    shelf.mkdir()
    for language, texts in {"en": ENGLISH, **OTHERS}.items():
        for number, text in enumerate(texts):
            head = f"---\nlang: {language}\n---\n" if language else ""
            (shelf / f"{language}{number}.md").write_text(f"{head}{text}\n", "utf-8")
    settings = Settings(
        data_dir=folder / "data", models_dir=folder / "models", model=MODEL, query_workers=1, _env_file=None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EdgeIndex, "command", (sys.executable, word_embedder.__file__))
        patch.setitem(CALIBRATIONS, MODEL, next(iter(CALIBRATIONS.values())))
        with KnowledgeGraph.open(folder / "data", settings) as opened:
            load(opened, "files", [str(shelf)])
            opened.search.wait()
            yield opened


@pytest.fixture(params=[True, False], ids=["narrow", "wide"])
def graph(kg: KnowledgeGraph, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> KnowledgeGraph:
    if not request.param:
        monkeypatch.setattr(hybrid_search, "NARROW", 1)
    return kg


def test_few_texts_that_are_not_compared_leave_the_answer_judged(graph: KnowledgeGraph) -> None:
    found = search(graph, "zeppelins over mountains")
    assert (found.results, found.covers is None, len(found.nearest)) == ([], False, 3)
    assert any("Bangla (2)" in note and "4 of 96 passages" in note for note in found.notes)
    listed = search(graph, "the levy on boats of Eastport", facets=["language"])
    assert listed.notes == []
    assert listed.facets is not None
    assert listed.facets.by == "similar"


def test_texts_that_are_mostly_not_compared_leave_it_open(graph: KnowledgeGraph) -> None:
    found = search(graph, "zeppelins over mountains", SearchFilters(language=["bn", "de"]))
    assert (found.results, found.covers) == ([], None)
    assert "3 of 3" in (found.uncovered_reason or "")


def test_required_words_in_a_language_that_is_not_compared_have_nearest(graph: KnowledgeGraph) -> None:
    found = search(graph, "zeppelins over mountains", must=["কর"])
    assert (found.results, found.covers) == ([], None)
    assert {hit.language for hit in found.nearest} == {"bn"}


def test_a_stop_word_cannot_be_the_only_required_word(graph: KnowledgeGraph) -> None:
    found = search(graph, "levy on boats", must=["the"])
    assert found.results == []
    assert any("English" in note for note in found.notes)
    both = search(graph, "levy on boats", must=["the", "Eastport"])
    assert len(both.results) == 20
    assert any("English" in note for note in both.notes)
    assert [hit.language for hit in search(graph, "levy on boats", must=["die"]).results if hit.language == "de"] == []


def test_stop_words_of_all_texts_are_an_error_as_required_words(parliament: KnowledgeGraph) -> None:
    with pytest.raises(InvalidInputError, match="must"):
        search(parliament, "levy", must=["the", "of"])
    with pytest.raises(InvalidInputError, match="must"):
        expand_services(parliament, 'SELECT * { SERVICE kg:search { ?hit kg:matches "levy" ; kg:must "the" } }')
    assert search(parliament, "the who", facets=["year"]).facets is not None


def test_an_untagged_text_is_found_by_an_arabic_word_without_its_clitics(graph: KnowledgeGraph) -> None:
    for word in ("لجنة", "اللجنة", "وللجنة"):
        found = search(graph, word, must=[word])
        assert len(found.results) == 1, word


@pytest.mark.parametrize(
    ("given", "language"),
    [("Chinese", "cmn"), ("zh", "cmn"), ("cmn-Hans", "cmn"), ("BN", "bn"), ("Bengali", "bn"), ("und", None)],
)
def test_a_filter_finds_texts_by_tags_that_only_files_have(
    graph: KnowledgeGraph, given: str, language: str | None
) -> None:
    found = search(graph, "Hafen 2034 কর اللجنة", SearchFilters(language=[given]), min_score=0)
    assert {hit.language for hit in found.results} == {language}


def test_each_value_of_the_facet_of_languages_is_a_filter(graph: KnowledgeGraph) -> None:
    counted = search(graph, facets=["language"]).facets
    assert counted is not None
    values = counted.values["language"]
    assert {"en", "bn", "de", "cmn", "und"} <= {each.value for each in values}
    for each in values:
        listed = search(graph, filters=SearchFilters(language=[each.value]), facets=["language"]).facets
        assert listed is not None
        assert listed.passages == each.passages


@pytest.mark.parametrize("given", ["<script>alert(1)</script>", "nonsense", "\u202eed", "en\x00"])
def test_what_is_no_language_is_an_error_unless_another_is_one(graph: KnowledgeGraph, given: str) -> None:
    with pytest.raises(NotFoundError, match="Chinese"):
        search(graph, "levy", SearchFilters(language=[given]))
    found = search(graph, "levy", SearchFilters(language=[given, "en"]))
    assert found.results
    assert any(note.startswith("language: ") for note in found.notes)


def test_texts_without_words_are_no_results(graph: KnowledgeGraph) -> None:
    found = search(graph, "zxx0", limit=50, min_score=0)
    assert not any("zxx0" in hit.id for hit in found.results)
