"""What hostile or careless callers send to the tools for codes: refused or stored as data, told, never lost."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad

from kg.errors import InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.tools.answers import content_of
from kg.tools.registry import TOOLS
from kg.tools.zoning.ingest import kg_ingest_code_section, kg_ingest_definitions, kg_ingest_use_permissions
from kg.tools.zoning.provisions import kg_query_permissions
from kg.tools.zoning.sections import kg_find_related, kg_query_section, kg_traverse_hierarchy
from kg.vocabulary import DCTERMS
from tests.folders import open_graph

pytestmark = pytest.mark.long

FEIGN = {"municipality": "Upper Feign", "state": "CT"}
TEXTS = [
    "", " ", "\x00", "a\x00b", "\ud800", "\U0010ffff", "\u202e", "\u0130", "\u00b2", "Upp\u0435r Feign", "\uff19.1",
    "x" * 300_000, "(" * 5_000, "9" * 5_000, "." * 5_000, "9.1" + "(a)" * 500, "9.1#subsection=a", "[", "(?:a+)+$",
    "<>", "<http://x/>", "https://w3id.org/quadcite/id/section/us-ct-upper-feign/9> } DROP ALL #", '"""', "'''",
    "$municipality", "?x } UNION { ?s ?p ?o", "\\u0000", "%00", "../../etc/passwd",
]  # fmt: skip
OTHERS: list[Any] = [None, -1, 10**30, 1.5, float("inf"), True, [], {}, [[]], {"a": 1}, ["a"], [None]]
NUMBERS: list[Any] = [-1, -(10**9), 10**9, 2**63, 10**30, 1.5, "x"]
GIVEN: dict[str, dict[str, Any]] = {
    "kg_query_section": {"section_id": "9.1"},
    "kg_query_definition": {"term": "glaze"},
    "kg_find_related": {"section_id": "9.1"},
}


@pytest.fixture
def kg(receiving: KnowledgeGraph) -> KnowledgeGraph:
    return receiving


def send(kg: KnowledgeGraph, number: str, text: str = "", **more: Any) -> Any:
    given = {"title": "Kilns", "level": 1, "raw_content": text, **more}
    return kg_ingest_code_section(kg, **FEIGN, section_id=number, **given)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """A section, a definition and a permission."""
    with open_graph(tmp_path_factory.mktemp("small")) as graph:
        send(graph, "9.1", '(a) "Glaze" means a coat of glass.\n(b) It is subject to section 9.2.')
        kg_ingest_use_permissions(graph, **FEIGN, permissions=[{"district": "R-9", "use": "Kiln", "permission": "P"}])
        yield graph


READING = ("kg_query_section", "kg_query_permissions", "kg_query_standards", "kg_query_definition",
           "kg_traverse_hierarchy", "kg_find_related")  # fmt: skip


def tool(name: str) -> Any:
    return next(each for each in TOOLS if each.name == name)


@pytest.mark.parametrize("name", READING)
def test_whatever_is_given_is_answered_or_refused_with_a_reason(small, name):
    before = small.store.statistics().generation
    refusals = []
    for argument in tool(name).arguments.model_fields:
        for value in (NUMBERS if argument in ("limit", "offset", "depth", "text_from") else TEXTS) + OTHERS:
            try:
                tool(name).call(small, {**FEIGN, **GIVEN.get(name, {}), argument: value})
            except QuadciteError as error:
                refusals.append((argument, value, error.http_status, str(error)))
    assert len(refusals) > 40
    assert [each for each in refusals if not (400 <= each[2] < 500 and 10 < len(each[3]) < 2_000)] == []
    assert small.store.statistics().generation == before


def test_a_thousand_municipalities_are_refused_before_any_is_looked_up(small):
    with pytest.raises(InvalidInputError, match="at most 10"):
        tool("compare_zoning").call(small, {"municipalities": [f"Town {number}, CT" for number in range(1_000)]})


# What is sent


@pytest.mark.parametrize(
    ("name", "argument", "good", "optional"),
    [
        ("kg_ingest_use_permissions", "permissions", {"district": "R-9", "use": "Kiln", "permission": "P"}, ()),
        ("kg_ingest_dimensional_standards", "standards",
         {"district": "R-9", "standard_type": "max height", "value": "3", "unit": "ft"}, ("unit",)),
        ("kg_ingest_definitions", "definitions", {"term": "glaze", "definition_text": "A coat."}, ()),
    ],
)  # fmt: skip
def test_good_entries_among_bad_ones_are_stored_and_each_bad_one_is_told(kg, name, argument, good, optional):
    empty = ["", None]
    bad = [{**good, field: value} for field in good for value in ("\ud800", "x" * 300_000, [], {})]
    bad += [{**good, field: value} for field in good if field not in optional for value in empty]
    sent = [bad[0], good, *bad[1:], *OTHERS]
    done = content_of(tool(name).call(kg, {**FEIGN, argument: sent}))
    assert (done["stored"], done["rejected"]) == (1, len(sent) - 1)
    told = {each["entry"]: each for each in done["entries"]}
    assert sorted(told) == list(range(1, len(sent) + 1))
    assert told[2]["outcome"] == "stored"
    assert all(10 < len(each["reason"]) < 1_000 for number, each in told.items() if number != 2)


def test_what_is_too_long_to_be_asked_for_is_rejected_alone_under_its_own_number(kg):
    long = {"district": "R" * 201, "use": "Kiln", "permission": "P"}
    good = {"district": "R-9", "use": "Kiln", "permission": "P", "odd": 1}
    done = kg_ingest_use_permissions(kg, **FEIGN, permissions=[long, good])
    told = {each.entry: (each.outcome, each.reason) for each in done.entries}
    assert told.pop(2) == ("stored", None)
    [(outcome, reason)] = told.values()
    assert (outcome, re.findall(r"\bdistrict\b|\d+", reason)) == ("rejected", ["district", "201", "200"])
    assert any("2" in note and "odd" in note for note in done.notes)


def test_two_clients_send_at_once_and_each_reads_what_it_has_written(kg):
    def work(client: str) -> None:
        for number in range(4):
            section_id = f"{client}.{number}"
            send(kg, section_id, f"Written by {client}, {number}.")
            assert kg_query_section(kg, **FEIGN, section_id=section_id).raw_content == f"Written by {client}, {number}."
            kg_ingest_use_permissions(
                kg, **FEIGN, permissions=[{"district": "R-9", "use": f"Kiln {section_id}", "permission": "P"}]
            )
            assert kg_query_permissions(kg, **FEIGN, use=f"Kiln {section_id}").meta.total == 1

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ("7", "8")))
    assert kg_traverse_hierarchy(kg, **FEIGN).meta.total == 8
    assert kg_query_permissions(kg, **FEIGN).meta.total == 8


CHILD = """
import sys
from pathlib import Path
from tests.tools.zoning.test_hostile_calls import open_graph, send
with open_graph(Path(sys.argv[1])) as kg:
    for number in range(1, 1_000):
        send(kg, f"9.{number}", f"(a) Kiln {number}.")
        print(number, flush=True)
"""


@pytest.mark.long
def test_what_was_told_to_be_stored_is_there_after_a_kill(tmp_path):
    with subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line == "3\n":
                child.send_signal(signal.SIGKILL)
                break
    with open_graph(tmp_path) as kg:
        assert kg_traverse_hierarchy(kg, **FEIGN).meta.total >= 3
        assert kg_query_section(kg, **FEIGN, section_id="9.3(a)").raw_content == "(a) Kiln 3."
        assert send(kg, "9.3", "(a) Kiln 3.").unchanged == 1


# Shapes of codes


def test_a_section_below_itself_is_refused_by_however_many_steps(kg):
    send(kg, "a", parent_id="b")
    send(kg, "b", parent_id="c")
    for number, parent in (("c", "a"), ("b", "a"), ("a", "a")):
        with pytest.raises(InvalidInputError, match="would be below itself"):
            send(kg, number, parent_id=parent)
    assert [each.section_id for each in kg_traverse_hierarchy(kg, **FEIGN, depth=20).sections] == ["b", "a"]


def test_sections_in_a_circle_are_walked_once_and_told_at_the_top(kg):
    send(kg, "1")
    below = send(kg, "1.1", level=2, parent_id="1")
    send(kg, "2")
    top = kg_query_section(kg, **FEIGN, section_id="1")
    graph = NamedNode(top.evidence.graph)
    kg.store.extend(graph, [Quad(NamedNode(top.iri), DCTERMS.isPartOf, NamedNode(below.iri), graph)])
    found = kg_traverse_hierarchy(kg, **FEIGN, depth=20)
    assert [each.section_id for each in found.sections] == ["2"]
    assert [note.partition(": ")[2] for note in found.notes] == ["1, 1.1."]
    for direction in ("up", "down"):
        walked = kg_traverse_hierarchy(kg, **FEIGN, section_id="1", direction=direction, depth=20).sections
        assert walked[0].section_id == "1.1"
        assert len(walked) <= 2


def test_many_children_and_many_citations_come_in_pages(kg):
    send(kg, "9")
    send(kg, "9.0", "Fire.", level=2, parent_id="9")
    for number in range(1, 13):
        send(kg, f"9.{number}", f"{number} is subject to section 9.0.", level=2, parent_id="9")
    pages = [kg_find_related(kg, **FEIGN, section_id="9.0", limit=5, offset=offset) for offset in (0, 5, 10)]
    assert [page.meta.total for page in pages] == [12, 12, 12]
    assert [page.next_offset for page in pages] == [5, 10, None]
    assert [each.citing for page in pages for each in page.related] == [f"9.{number}" for number in range(1, 13)]
    below = kg_traverse_hierarchy(kg, **FEIGN, depth=20, limit=5)
    assert (below.meta.total, below.next_offset, len(below.sections)) == (14, 5, 5)


def test_a_definition_sent_again_replaces_itself_alone(kg):
    for text in ("An oven.", "A hot oven."):
        kg_ingest_definitions(kg, **FEIGN, definitions=[{"term": "kiln", "definition_text": text}])
    result = kg.query("SELECT ?text { ?term a kg:Definition ; skos:definition ?text }").result
    assert [row["text"].value for row in result] == ["A hot oven."]
