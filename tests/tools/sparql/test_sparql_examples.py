"""Every example query that ships parses, runs, looks right to the lint, and gives rows where the fixtures have data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from pyoxigraph import Store

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.lint import check
from kg.store.protocol import Rows
from kg.tools.schema.examples import Example, load_examples, sparql_examples
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.sparql.local_services import expand_services
from kg.vocabulary import SKOS
from loaders.sources import load
from tests.folders import open_graph

WITHOUT_DATA = {
    "wikidata/direct-values": "the fixtures have a Wikibase of their own, not Wikidata: see the test below",
    "wikidata/statements-with-qualifiers": "the same",
    "wikidata/statements-with-references": "the same",
    "codes/added-codes": "the fixtures use no code that the ontology does not list",
    "parliament/unknown-parties": "the fixtures name no party that is not known",
    "provenance/superseded-sources": "no file of the fixtures was replaced",
    "concepts/alignments-to-review": "proposals need an embedding model: see test_alignment_review.py",
}


def name_of(example: Example) -> str:
    return example.iri.partition("/examples/")[2]


@pytest.fixture
def data_of(request):
    """The fixtures that an example is about."""

    def chosen(example: Example) -> KnowledgeGraph:
        about = name_of(example).partition("/")[0]
        return request.getfixturevalue(
            {"parliament": "parliament", "zoning": "codes", "joined": "joined"}.get(about, "fixtures")
        )

    return chosen


@pytest.mark.parametrize("example", load_examples(), ids=name_of)
def test_an_example_runs_and_has_rows(data_of, example):
    data = data_of(example)
    answer = data.query(expand_services(data, example.query), all_graphs=True)
    assert not answer.truncated
    if name_of(example) not in WITHOUT_DATA:
        assert answer.result if not isinstance(answer.result, Rows) else len(answer.result)


@pytest.mark.parametrize("example", load_examples(), ids=name_of)
def test_an_example_uses_terms_that_the_graph_has(data_of, example):
    if name_of(example) not in WITHOUT_DATA:
        assert check(example.query, get_schema(data_of(example))) == []


NOT_IN_FIXTURES = {
    "effective": "only the D.C. Code dates its notes",
    "noteKind": "the fixtures have history notes alone",
    "noteText": "the fixtures have history notes alone",
    "CodeNote": "the fixtures have history notes alone",
    **dict.fromkeys(("Reading", "readingOf", "proposals"), "a chat model writes readings: see test_extract.py"),
    **dict.fromkeys(("reviewStatus", "RejectedFinding", "withdrawn"), "a reviewer writes them: see test_findings.py"),
}


def of_codes() -> Iterator[tuple[str, str]]:
    """The terms of codes, each with the pattern that shows its use."""
    store = Store()
    store.load(path=bundle.folder("ontology") / "zoning.ttl")
    for quad in store.quads_for_pattern(None, SKOS.example, None):
        yield quad.subject.value.rpartition("#")[2], quad.object.value


def generalized(pattern: str) -> str:
    """A pattern with a variable for each thing, and for each value that is no code."""
    names: dict[str, str] = {}

    def variable(match: re.Match[str]) -> str:
        return f"{match['before']}?v{names.setdefault(match['thing'], str(len(names)))}"

    things = re.compile(r"(?P<before>^|\s)(?P<thing><[^>]*(?:/id/|cpr:)[^>]*>|'[^']*'|\"[^\"]*\"(?:@\w+)?|\d+)(?=\s|$)")
    return things.sub(variable, pattern)


@pytest.mark.parametrize(("term", "pattern"), list(of_codes()))
def test_what_shows_the_use_of_a_term_of_codes_is_true_of_something(codes, term, pattern):
    assert codes.query(f"ASK {{ {pattern} }}", all_graphs=True).result in (True, False), "it is no pattern"
    assert codes.query(f"ASK {{ {generalized(pattern)} }}", all_graphs=True).result is (term not in NOT_IN_FIXTURES)


def test_there_are_examples_of_each_kind():
    names = [name_of(example) for example in load_examples()]
    assert len(names) == len(set(names)) >= 20
    assert len([example for example in load_examples() if "SERVICE kg:search" in example.query]) >= 3
    assert all(example.question.endswith("?") and example.keywords for example in load_examples())
    kinds = {
        "climate",
        "codes",
        "concepts",
        "joined",
        "parliament",
        "provenance",
        "schema",
        "search",
        "wikidata",
        "zoning",
    }
    assert {name.partition("/")[0] for name in names} == kinds


def test_counts_over_several_patterns_are_of_distinct_things():
    """The default graph is the union of all graphs: a triple in two graphs would count twice."""
    for example in load_examples():
        if "COUNT(" in example.query and "GRAPH ?graph" not in example.query:
            assert "COUNT(DISTINCT" in example.query, example.iri


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("how many laws does each country have", "climate/documents-per-country"),
        ("why is this statement in the graph", "provenance/why-a-statement"),
        ("which file and row does a document come from", "provenance/source-of-a-document"),
        ("coverage of a topic per country", "search/coverage-of-a-topic"),
        ("number of documents issued each year", "climate/documents-per-year"),
        ("what translations are there, with the original text", "climate/translations"),
    ],
)
def test_a_question_finds_the_query_that_answers_it(fixtures, question, name):
    found = sparql_examples(fixtures, question)
    assert name in [example.id for example in found.examples]
    assert any("kg models pull" in note for note in found.notes)


def test_the_limit_holds_and_the_total_is_told(fixtures):
    found = sparql_examples(fixtures, "count", limit=50)
    assert found.meta.total == len(load_examples())
    assert len(found.examples) == min(50, len(load_examples()))
    assert len(sparql_examples(fixtures, "count", limit=2).examples) == 2


def snak(prop: str, datatype: str, value: object, kind: str) -> dict[str, object]:
    return {
        "snaktype": "value",
        "property": prop,
        "datatype": datatype,
        "datavalue": {"type": kind, "value": value},
    }


def item_snak(prop: str, number: int) -> dict[str, object]:
    value = {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}
    return snak(prop, "wikibase-item", value, "wikibase-entityid")


def time_snak(prop: str, year: int) -> dict[str, object]:
    value = {
        "time": f"+{year}-01-01T00:00:00Z", "timezone": 0, "before": 0, "after": 0, "precision": 11,
        "calendarmodel": "http://www.wikidata.org/entity/Q1985727",
    }  # fmt: skip
    return snak(prop, "time", value, "time")


def test_the_examples_for_wikidata_have_rows_on_a_made_up_item(tmp_path):
    stated = {"snaks": {"P854": [snak("P854", "url", "https://example.org/who", "string")]}, "snaks-order": ["P854"]}
    claims = {
        "P31": [
            {
                "mainsnak": item_snak("P31", 900_001), "type": "statement", "id": "Q900009$a", "rank": "normal",
                "references": [{"hash": "ab" * 20, **stated}],
            }
        ],
        "P39": [
            {
                "mainsnak": item_snak("P39", 900_002), "type": "statement", "id": "Q900009$b", "rank": "normal",
                "qualifiers": {"P580": [time_snak("P580", 2030)], "P582": [time_snak("P582", 2033)]},
                "qualifiers-order": ["P580", "P582"],
            }
        ],
    }  # fmt: skip
    entity = {
        "type": "item", "id": "Q900009", "labels": {"en": {"language": "en", "value": "Ada Example"}},
        "descriptions": {}, "aliases": {}, "claims": claims, "sitelinks": {}, "lastrevid": 1,
        "modified": "2031-01-15T09:00:00Z",
    }  # fmt: skip
    (tmp_path / "items.json").write_text(json.dumps([entity]))
    with open_graph(tmp_path / "data") as opened:
        load(opened, "wikibase", [str(tmp_path / "items.json")])
        asked = [example for example in load_examples() if name_of(example).startswith("wikidata/")]
        assert len(asked) == 3
        for example in asked:
            answer = opened.query(example.query)
            assert isinstance(answer.result, Rows)
            assert [set(row) for row in answer.result] == [set(answer.result.variables)], example.query
