"""`validate` as a tool: findings by shape and cause, where they come from, and what is wrong with a question."""

from __future__ import annotations

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.retrieval.results import tokens_of
from kg.tools.registry import TOOLS
from kg.tools.shacl.validate import validate

P = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix kg: <https://w3id.org/quadcite/ns#> . "
SHAPES = P + "kg:Test a sh:NodeShape ; sh:targetClass kg:Passage ; sh:nodeKind sh:Literal ; sh:message 'Not here.' ."
DOCUMENT = "SELECT ?d { ?d a kg:PolicyDocument } ORDER BY ?d LIMIT 1"


@pytest.fixture
def document(fixtures) -> str:
    return fixtures.query(DOCUMENT).result.rows[0][0].value


def test_a_document_that_a_loader_wrote_conforms(fixtures, document):
    result = validate(fixtures, document=document)
    assert (result.conforms, result.complete, result.notes) == (True, True, [])


def test_results_name_the_row_that_they_come_from(fixtures, document):
    result = validate(fixtures, document=document, shapes=SHAPES)
    [finding] = result.findings
    assert (finding.message, finding.constraint, finding.count) == ("Not here.", "NodeKind", result.counts["Violation"])
    for example in finding.examples:
        assert example.document == document
        assert example.source
        assert example.row


def test_what_was_read_from_one_row_names_it(fixtures):
    titles = (
        "@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:S> a sh:NodeShape ; sh:targetSubjectsOf "
        "<http://purl.org/dc/terms/title> ; sh:property [ sh:path <http://purl.org/dc/terms/title> ; sh:maxCount 0 ] ."
    )
    [finding] = validate(fixtures, graph="union", shapes=titles, max_results=500, max_tokens=50_000).findings
    documents = [each for each in finding.examples if each.focus.startswith("cpr://doc/")]
    rows = {each.source.rpartition("/")[2]: each.row for each in documents}
    assert rows["laws.csv"] is not None
    assert rows["land-and-transport.jsonl"] is None  # a document of several rows


def test_an_answer_keeps_to_its_budget_and_says_so(fixtures):
    result = validate(fixtures, graph="union", shapes=SHAPES, max_results=500, max_tokens=500)
    assert tokens_of(result) <= 500
    assert (result.complete, result.truncated_by) == (False, "tokens")
    few = validate(fixtures, graph="union", shapes=SHAPES, max_results=1)
    assert (len(few.findings[0].examples), few.truncated_by) == (1, "results")


def test_it_says_when_nothing_was_checked(fixtures):
    result = validate(fixtures, turtle="<urn:a> <urn:b> 1 .")
    assert result.conforms
    assert "Nothing was checked" in result.notes[0]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, InvalidInputError, "Given: none"),
        ({"graph": "union", "turtle": ""}, InvalidInputError, "Given: graph and turtle"),
        ({"turtle": "kg:a"}, InvalidInputError, "add @prefix kg:"),
        ({"turtle": "", "shapes": "", "suite": "record"}, InvalidInputError, "not both"),
        ({"graph": "urn:nothing"}, NotFoundError, "graph 'urn:nothing'"),
        ({"turtle": "\ud800"}, InvalidInputError, "unicode"),
    ],
)
def test_a_wrong_question_is_explained(fixtures, arguments, error, says):
    tool = next(tool for tool in TOOLS if tool.name == "validate")
    with pytest.raises(error, match=says):
        tool.call(fixtures, arguments)


def test_a_near_document_is_named(fixtures, document):
    with pytest.raises(NotFoundError, match=document):
        validate(fixtures, document=document[:-1])
