"""The speeches that answer a question are among the first ten: forty queries over the fictional ones that ship."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kg import bundle
from kg.errors import ModelError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.tools.parliament.search import search_speeches
from loaders.sources import load
from tests.tools.parliament.speech_queries import by_index, by_tool, measured, queries

SPECIFIED = [
    "climate change action", "healthcare funding", "economic policy", "renewable energy transition",
    "housing affordability", "education reform", "immigration policy", "foreign affairs", "indigenous reconciliation",
    "budget surplus",
]  # fmt: skip


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("speeches")
    with KnowledgeGraph.open(folder, Settings(data_dir=folder, _env_file=None)) as opened:  # type: ignore[call-arg]
        report = load(opened, "hansard", [str(bundle.folder("fixtures") / "hansard")])
        assert report.rejections == []
        try:
            opened.search.wait()
        except ModelError as error:
            pytest.skip(f"needs the embedding model: {error}")
        yield opened


@pytest.fixture(scope="module")
def titles(kg: KnowledgeGraph) -> dict[str, str]:
    rows = kg.query("SELECT DISTINCT ?speech ?title WHERE { ?speech a kg:Speech ; dcterms:title ?title }").result
    return {row["speech"].value: row["title"].value for row in rows}  # type: ignore[union-attr]


@pytest.mark.long
def test_the_queries_are_forty_and_those_of_the_specification_among_them(titles):
    asked = queries()
    assert len(asked) == 40
    assert [query.text for query in asked[:10]] == SPECIFIED
    assert {title for query in asked for title in query.expect} <= set(titles.values())


def test_what_answers_is_among_the_first_ten(kg, titles):
    tool = measured(queries(), by_tool(kg, titles))
    words = measured(queries(), by_index(kg, "bm25", titles))
    meaning = measured(queries(), by_index(kg, "dense", titles))
    print(f"\ntool {tool}, words alone {words}, meaning alone {meaning}")
    assert tool.recall > 0.9
    assert tool.mrr > 0.85
    assert tool.recall >= words.recall
    assert tool.mrr >= words.mrr


@pytest.mark.parametrize("query", queries()[:10], ids=lambda query: query.text)
def test_each_query_of_the_specification_has_its_speeches_first(kg, query):
    found = [result.title for result in search_speeches(kg, query.text).results]
    assert found[0] in query.expect
    assert query.expect <= set(found)


@pytest.mark.parametrize("text", ["qwxyz asdfgh zzzz", "bodavu tigomepa", "xkcdq"])
def test_nonsense_finds_no_speech_and_is_not_relevant(kg, text):
    found = search_speeches(kg, text)
    assert found.results == []
    assert search_speeches(kg, text, party="Greens").results == []
    assert len(search_speeches(kg, text, min_score=0).results) == 10


def test_a_speech_of_the_fixtures_is_cited_as_its_file_says(kg):
    result = search_speeches(kg, "budget surplus", party="Liberal", chamber="House of Representatives").results[0]
    assert (result.speaker, result.party, result.date) == ("Cordelia Ashgrove", "Liberal", "2024-05-16")
    assert result.hansard_reference == "House Hansard, 16 May 2024, p. 31"
    assert sorted(result.topic_tags) == ["budget", "taxation"]
    assert result.source_url == "https://hansard.example.org/house/2024-05-16/31"
