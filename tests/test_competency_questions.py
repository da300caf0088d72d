"""The competency questions of the ontology have their known answers over the fixtures of all domains."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.lint import check
from kg.store.protocol import Rows, term_text
from kg.tools.schema.examples import load_examples
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.sparql.query import sparql
from loaders.sources import load
from tests.folders import open_graph

QUERIES = {example.iri.rpartition("/")[2]: example.query for example in load_examples() if "/joined/" in example.iri}

# Rows that must be in the result, by some of its columns.
GOLDEN: Mapping[str, list[dict[str, str]]] = {
    "words-in-every-domain": [
        {"domain": "law", "unit": "cpr://doc/fictional-clean-homes-act_us01#p=2", "words": "accessory dwelling unit"},
        {"domain": "parliament", "words": "accessory dwelling unit"},
        {
            "domain": "zoning",
            "unit": "https://w3id.org/quadcite/id/section/us-ut-harrow-inlet/2.1",
            "words": "accessory dwelling unit",
        },
    ],
    "parties-on-the-topics-of-laws": [
        {
            "party": "Australian Greens",
            "person": "Senator Isolde Farrow",
            "date": "2024-06-18",
            "concept": "flood",
            "law": "Fictional Rooftop Energy Act 2023",
        },
        {"party": "Australian Labor Party", "person": "Ms Petra Quillfeather", "concept": "accessory dwelling unit"},
    ],
    "uses-that-a-law-promotes": [
        {
            "town": "Tern Harbour",
            "district": "GR",
            "use": "Accessory dwelling unit",
            "condition": "At most 60 square metres of floor",
            "law": "Fictional Rooftop Energy Act 2023",
        },
        {
            "town": "Harrow Inlet",
            "district": "R-1",
            "use": "Accessory dwelling unit",
            "level": "https://w3id.org/quadcite/vocab/permissionLevel/byRight",
            "condition": "Only behind the main building",
            "law": "Fictional Clean Homes Act of 2021",
        },
        {"district": "F-1", "level": "https://w3id.org/quadcite/vocab/permissionLevel/notPermitted"},
    ],
    "definitions-of-a-concept": [
        {
            "source": "zoning code",
            "place": "https://w3id.org/quadcite/id/section/au-tas-tern-harbour/3.1",
            "definition": "A small home on the lot of another, for whoever its owner chooses.",
        },
        {"source": "concept store", "definition": "A second, smaller home on a lot that has one."},
        {
            "source": "zoning code",
            "place": "https://w3id.org/quadcite/id/section/us-ut-harrow-inlet/1.1",
            "definition": "A second home on a lot, smaller than the first, with a kitchen of its own.",
        },
    ],
    "laws-cited-in-several-domains": [
        {"cited": "Paris Agreement", "section": "3.2", "document": "Fictional Rooftop Energy Act 2023"},
        {"cited": "Paris Agreement", "section": "1.2", "document": "Fictional Clean Homes Act of 2021"},
        {"cited": "Paris Agreement", "section": "1.2", "document": "Fictional Rooftop Energy Act 2023"},
    ],
    "corroborated-claims": [{"documents": "5"}],
    "speeches-that-cite-a-family": [
        {
            "reference": "House of Representatives Hansard, 19 Jun 2024, p. 12",
            "person": "Ms Petra Quillfeather",
            "family": "Fictional Rooftop Energy Act 2023",
            "words": "Fictional Rooftop Energy Act 2023",
        },
        {"person": "Senator Isolde Farrow", "words": "Fictional Rooftop Energy Act 2023"},
    ],
    "debated-but-in-no-law": [
        {"country": "AUS", "label": "coal"},
        {"country": "AUS", "label": "affordable housing"},
    ],
    "links-without-reference": [{"concept": "cpr://concept/Q1010", "other": "cpr://concept/Q1019"}],
    "permission-to-external-law": [
        {"use": "Accessory dwelling unit", "section": "2.1", "via": "1.2", "law": "42 U.S.C. § 6834"},
    ],
    "topics-of-policies-and-speeches": [
        {
            "concept": "cpr://concept/Q1009",
            "policy": "Fictional Rooftop Energy Act 2023",
            "kind": "https://w3id.org/quadcite/ns#keyword",
            "words": "Renewable energy",
            "speech": "Rooftop energy",
        },
    ],
    "coverage-of-a-concept": [
        {"country": "AUS", "passages": "1", "speechChunks": "4", "sections": "1"},
        {"country": "USA", "passages": "1", "speechChunks": "0", "sections": "1"},
    ],
}


# What occurs in every domain, in Australia.
SHARED: Final = {
    "renewable energy": "cpr://concept/Q1009",
    "accessory dwelling unit": "cpr://concept/Q1068",
    "flood": "cpr://concept/Q1007",
}
OF_COUNTRY: Final = """
SELECT DISTINCT ?class WHERE {
  VALUES ?class { kg:Passage kg:SpeechChunk kg:CodeSection } ?unit a ?class ; $LINK .
  { ?unit dcterms:isPartOf/kg:jurisdiction ?place } UNION { ?unit kg:jurisdiction/kg:within/kg:within ?place }
  FILTER(?place = <https://w3id.org/quadcite/id/place/AUS>)
}"""


@pytest.mark.parametrize(
    "link",
    [*(f"kg:mentions <{iri}>" for iri in SHARED.values()), 'eli:cites/dcterms:identifier "Paris Agreement"'],
    ids=[*SHARED, "Paris Agreement"],
)
def test_every_domain_of_a_country_has_the_shared_concepts_and_law(joined: KnowledgeGraph, link: str) -> None:
    result = joined.query(OF_COUNTRY.replace("$LINK", link)).result
    assert isinstance(result, Rows)
    assert len(result) == 3


def test_marks_of_an_australian_code_are_not_taken_for_law_of_the_united_states(joined: KnowledgeGraph) -> None:
    section = "<https://w3id.org/quadcite/id/section/au-tas-tern-harbour/3.2>"
    query = f"SELECT DISTINCT ?cited WHERE {{ ?claim rdf:subject {section} ; rdf:predicate ?by ; rdf:object ?cited }}"
    result = joined.query(query).result
    assert isinstance(result, Rows)
    cited = {term_text(row["cited"]).partition("/id/")[2] for row in result} - {""}
    assert cited >= {"law/int/treaty/paris-agreement", "law/au-tas/act/fictional-town-planning-act-1993"}
    assert not any(each.startswith("law/us") for each in cited)


def run(graph: KnowledgeGraph, name: str) -> list[dict[str, str]]:
    result = graph.query(QUERIES[name]).result
    assert isinstance(result, Rows)
    return [{column: term_text(term) for column, term in row.items()} for row in result]


@pytest.mark.parametrize("name", QUERIES)
def test_every_question_has_a_golden_answer(name: str) -> None:
    assert GOLDEN.get(name)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_competency_question_has_its_known_answer(joined: KnowledgeGraph, name: str) -> None:
    rows = run(joined, name)
    for wanted in GOLDEN[name]:
        assert any(wanted.items() <= row.items() for row in rows), rows


@pytest.mark.parametrize("name", QUERIES)
def test_a_competency_question_has_no_hint(joined: KnowledgeGraph, name: str) -> None:
    assert check(QUERIES[name], get_schema(joined, wait_s=60)) == []


@pytest.mark.parametrize("name", QUERIES)
def test_each_count_and_absence_of_a_competency_question_has_its_query(joined: KnowledgeGraph, name: str) -> None:
    result = joined.query(QUERIES[name]).result
    assert isinstance(result, Rows)
    for number, row in enumerate(result, start=1):
        answer = sparql(joined, QUERIES[name], trace=number)
        for trace in answer.traces or ():
            if trace.sparql is None:
                assert (name, bool(trace.reason)) == ("links-without-reference", True)
                continue
            listed = joined.query(trace.sparql, raw=True).result
            assert isinstance(listed, Rows)
            column, _, aggregate = trace.of.removeprefix("?").partition(" ")
            if aggregate.startswith("COUNT"):
                assert len(listed) == int(term_text(row[column]))
            elif trace.of.startswith("MINUS"):
                assert len(listed) == 0
            else:
                assert len(listed) > 0
    counted = {"coverage-of-a-concept": 3, "corroborated-claims": 3, "debated-but-in-no-law": 1}
    traces = sparql(joined, QUERIES[name]).traces or []
    assert len(traces) == counted.get(name, 1 if name == "links-without-reference" and result.rows else 0)


def test_a_superseded_source_names_the_graphs_that_rest_on_it(tmp_path: Path) -> None:
    """The question of stale texts: of the graphs that rest on a file that a newer one has replaced."""
    [question] = [each.query for each in load_examples() if each.iri.endswith("/superseded-sources")]
    folder = tmp_path / "code"
    shutil.copytree(bundle.folder("fixtures") / "joined" / "zoning", folder)
    code = folder / "harrow_inlet.json"
    with open_graph(tmp_path / "data") as graph:
        load(graph, "zoning", [str(folder)])
        rows = graph.query(question).result
        assert isinstance(rows, Rows)
        assert len(rows) == 0
        code.write_text(code.read_text().replace("once in fifty years", "once in ten years"))
        load(graph, "zoning", [str(folder)])
        after = graph.query(question).result
        assert isinstance(after, Rows)
        stale = {term_text(row["graph"]).rpartition("/")[2] for row in after}
    assert "1.1" in stale  # its text did not change, so its graph still rests on the first file
    assert "2.2" not in stale
