"""Summaries are built from the leaves up, only where they are missing or stale, and what is stale is always seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from kg import bundle
from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.shacl.shapes import Shapes
from kg.vocabulary import BASE, sha256
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.build import build
from kg.zoning_summaries.code_tree import CodeTree, read_tree
from tests.examples import dear
from tests.zoning_summaries.made_up_code import TOWN, Law, enact, iri, large_code, open_town, small_code

STALE = """
SELECT DISTINCT ?number WHERE {
  {
    ?summary kg:summaryOf ?changed . ?changed dcterms:title ?title
    OPTIONAL { ?changed kg:textSha256 ?own }
    FILTER NOT EXISTS {
      ?summary kg:inputSha256 ?input FILTER(?input = SHA256(CONCAT(?title, "\\n", COALESCE(?own, ""))))
    }
  } UNION {
    ?part dcterms:isPartOf ?changed ; dcterms:title ?title . ?summary kg:summaryOf ?changed
    OPTIONAL { ?of kg:summaryOf ?part ; schema:text ?text }
    FILTER NOT EXISTS {
      ?summary kg:inputSha256 ?input
      FILTER(?input = SHA256(CONCAT(STR(?part), "\\n", ?title, "\\n", COALESCE(SHA256(?text), ""))))
    }
  }
  ?changed dcterms:isPartOf* ?above . ?above kg:sectionNumber ?number
}"""
"""What is stale, asked of the store alone: a summary that lacks the hash of an input as it is, and all above it."""


def states(kg: KnowledgeGraph) -> dict[str, str]:
    tree = read_tree(kg, TOWN)
    return {tree.sections[section].number: state for section, state in tree.states.items()}


def texts(kg: KnowledgeGraph) -> dict[str, str]:
    tree = read_tree(kg, TOWN)
    return {tree.sections[each.section].number: each.text for each in tree.summaries.values()}


def test_every_section_with_something_to_say_gets_one_summary_of_its_level(town: KnowledgeGraph) -> None:
    report = build(town, TOWN)
    tree = read_tree(town, TOWN)
    levels = {tree.sections[each.section].number: each.level for each in tree.summaries.values()}
    expected = {"7.1.1": 0, "7.1.2": 0, "7.2.1.1": 0, "7.2.1.2": 0, "7.1": 1, "7.2.1": 1, "7.2": 2, "7": 3}
    assert levels == expected
    assert (report.built, report.current, report.empty, report.failed) == (8, 0, 1, {})
    assert states(town) == dict.fromkeys(expected, "current") | {"7.2.2": "empty"}


def test_an_extract_is_made_of_the_words_of_the_law_and_as_long_as_its_level_says(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    law = " ".join(each.text for each in small_code() if each.text)
    for number, most in (("7.1.1", 2), ("7.2.1.1", 2), ("7.1", 3), ("7.2", 4), ("7", 4)):
        sentences = [each.rstrip(".") for each in texts(town)[number].split(". ")]
        assert 1 <= len(sentences) <= most
        assert all(each in law for each in sentences)


def test_building_again_changes_nothing(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    generation = town.store.statistics().generation
    report = build(town, TOWN)
    assert (report.built, report.current, report.run) == (0, 8, None)
    assert town.store.statistics().generation == generation


def test_the_same_law_gets_the_same_summaries(opened: Callable[..., KnowledgeGraph]) -> None:
    one, other = opened(), opened()
    build(one, TOWN)
    build(other, TOWN)
    assert texts(one) == texts(other)
    before = texts(one)
    build(one, TOWN, again=True)
    assert texts(one) == before


def test_a_change_makes_its_summary_and_all_above_stale_and_only_they_are_built_again(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    hens = "Nine hens may be kept on a lot. Roosters are welcome."
    enact(town.store, [Law("7.2.1.2", "Hens", hens, "7.2.1", 1)])
    stale = {number for number, state in states(town).items() if state == "stale"}
    assert stale == {"7.2.1.2", "7.2.1", "7.2", "7"}
    assert {row["number"].value for row in town.store.query(STALE)} == stale
    reasons = {section: list(read_tree(town, TOWN).why_stale(iri(section))) for section in ("7.2.1.2", "7")}
    assert reasons == {
        "7.2.1.2": ["its heading or its own text has changed"],
        "7": ["the summary of '7.2 Animals' is stale"],
    }
    report = build(town, TOWN)
    assert (report.built, report.current) == (4, 4)
    assert texts(town)["7.2.1.2"] == hens
    assert set(states(town).values()) == {"current", "empty"}
    assert list(town.store.query(STALE)) == []


def test_where_a_summary_stays_the_same_those_above_it_need_no_writing(town: KnowledgeGraph) -> None:
    laws = {law.number: law for law in small_code()}
    build(town, TOWN)
    unlike = laws["7.1.1"]
    padded = Law(unlike.number, unlike.title, f"{unlike.text}\n|", unlike.parent, unlike.position)
    enact(town.store, [padded])
    assert states(town)["7"] == "stale"
    report = build(town, TOWN)
    assert report.built == 1
    assert set(states(town).values()) == {"current", "empty"}


def test_what_is_repealed_loses_its_summary(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    enact(town.store, [Law("7.1.2", "", None)])
    assert states(town)["7.1"] == "stale"
    assert list(read_tree(town, TOWN).why_stale(iri("7.1"))) == ["a part of the section has been removed"]
    report = build(town, TOWN)
    assert (report.removed, report.built) == (1, 2)
    assert "plastic" not in " ".join(texts(town).values())
    [left] = town.store.query("SELECT (COUNT(?s) AS ?n) WHERE { ?s a kg:Summary }")
    assert int(left["n"].value) == 7


def test_a_root_bounds_what_is_built(town: KnowledgeGraph) -> None:
    report = build(town, TOWN, iri("7.2.1"))
    assert (report.sections, report.built) == (3, 3)
    assert set(texts(town)) == {"7.2.1", "7.2.1.1", "7.2.1.2"}
    with pytest.raises(NotFoundError, match="Unknown section"):
        build(town, TOWN, iri("99"))
    with pytest.raises(NotFoundError, match="No section of the code"):
        build(town, f"{BASE}id/municipality/us-ut-nowhere")


def test_rebuilding_a_section_takes_those_above_along(town: KnowledgeGraph) -> None:
    build(town, TOWN)
    enact(town.store, [Law("7.1.1", "Height", "A fence may be nine feet high.", "7.1", 0)])
    report = build(town, TOWN, iri("7.1.1"), again=True, above=True)
    assert report.built == 3
    assert set(states(town).values()) == {"current", "empty"}


def test_a_summary_says_in_provenance_who_wrote_it_from_what(town: KnowledgeGraph) -> None:
    report = build(town, TOWN)
    node = code_tree.to_summary_iri(iri("7.1.1"))
    [why] = explain_iri(town.store.query, node)
    assert why.graph == f"{BASE}graph/gen/extractive%2Fhashed/us-ut-otter-hollow/7.1.1"
    assert (why.kind, why.agent, why.run) == ("generated", "kg.summaries", report.run)
    assert why.configuration["model"] == "extractive/hashed"
    assert [source.locations for source in why.sources] == [(f"{BASE}graph/src/zoning/us-ut-otter-hollow/7.1.1",)]
    [built] = town.store.query(f"SELECT ?t WHERE {{ GRAPH ?p {{ <{why.graph}> prov:generatedAtTime ?t }} }}")
    assert built["t"].value.endswith("Z")
    above = code_tree.to_summary_iri(iri("7.1"))
    derived = town.store.query(f"SELECT ?from WHERE {{ {above} prov:wasDerivedFrom ?from }}")
    assert {row["from"].value for row in derived} == {
        iri("7.1"),
        *(code_tree.to_summary_iri(iri(each)).value for each in ("7.1.1", "7.1.2")),
    }


def test_without_an_embedding_model_words_decide_until_there_is_one(town: KnowledgeGraph) -> None:
    index = town.search
    index.model = None  # type: ignore[attr-defined]
    assert build(town, TOWN).model == "extractive/words"
    index.model = "hashed"  # type: ignore[attr-defined]
    report = build(town, TOWN)
    assert (report.model, report.built) == ("extractive/hashed", 8)
    index.model = None  # type: ignore[attr-defined]
    assert build(town, TOWN).built == 0
    [graphs] = town.store.query("SELECT (COUNT(DISTINCT ?g) AS ?n) WHERE { GRAPH ?g { ?s a kg:Summary } }")
    assert int(graphs["n"].value) == 8


def test_sections_that_are_parts_of_themselves_are_told_of(opened: Callable[..., KnowledgeGraph]) -> None:
    turning = [Law("1", "One", "One is two.", "2"), Law("2", "Two", "Two is one.", "1"), Law("3", "Three", "Three.")]
    town = opened(turning)
    report = build(town, TOWN)
    assert (report.circular, report.built) == ([iri("1"), iri("2")], 1)


@pytest.mark.parametrize(
    "text",
    ["", "?", "| |", "\u2028", "x", "No.", "Sec. 1. Sec. 2. Sec. 3.", "a" * 5_000, "é" * 700 + ". ü. ß. Ab und an.",
     "row | of | cells\nother | row | here\nthird | row | too"],
)  # fmt: skip
def test_texts_with_little_in_them_get_a_summary_all_the_same(opened: Callable[..., KnowledgeGraph], text: str) -> None:
    town = opened([Law("1", "Odd", text)])
    report = build(town, TOWN)
    assert (report.built, report.failed) == (1, {})
    assert 0 < len(texts(town)["1"]) <= 1_500


@pytest.mark.long
def test_a_section_of_5_mb_is_summarized_in_little_time(opened: Callable[..., KnowledgeGraph]) -> None:
    rules = "\n".join(f"No pier may be longer than {number} feet where the river bends." for number in range(80_000))
    town = opened(
        [Law("1", "Piers", rules), Law("2", "Docks", " ".join(rules.split("\n"))), Law("3", "Odd", "x " * 2_500_000)]
    )
    assert len(rules) > 4_500_000
    began = time.monotonic()
    report = build(town, TOWN)
    assert time.monotonic() - began < 30
    assert (report.built, report.failed) == (3, {})
    assert all(len(each) <= 1_500 for each in texts(town).values())


CHILD = """
import sys
from pathlib import Path
from kg.zoning_summaries import build
from tests.zoning_summaries.made_up_code import TOWN, open_town
build.BATCH = 5
town = open_town(Path(sys.argv[1]))
build.build(town, TOWN, on_progress=lambda done, whole, what: print(done, flush=True))
"""


@pytest.mark.long
def test_a_build_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    laws = large_code(1, 4, 20)
    open_town(tmp_path / "killed", laws).store.close()
    folder = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", CHILD, str(tmp_path / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= 30:
                os.kill(child.pid, signal.SIGKILL)
                break
    town, whole = open_town(tmp_path / "killed"), open_town(tmp_path / "whole", laws)
    done = len(texts(town))
    assert 30 - 5 <= done < 85  # all but those of the batch in hand
    report = build(town, TOWN)
    assert (report.built, report.current) == (85 - done, done)
    build(whole, TOWN)
    assert texts(town) == texts(whole)
    for each in (town, whole):
        each.store.close()


def test_two_builds_at_once_leave_one_summary_of_each_section(town: KnowledgeGraph) -> None:
    threads = [threading.Thread(target=build, args=(town, TOWN)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(states(town).values()) == {"current", "empty"}
    rows = town.store.query("SELECT ?s (COUNT(?x) AS ?n) WHERE { GRAPH ?g { ?x kg:summaryOf ?s } } GROUP BY ?s")
    assert [int(row["n"].value) for row in rows] == [1] * 8


def _tree(
    parents: dict[str, str | None], said: dict[str, str | None], summaries: dict[str, code_tree.Summary]
) -> CodeTree:
    sections = [
        code_tree.Section(number, "g", number, f"Heading {number}", 1, parents[number], 0, text and sha256(text))
        for number, text in said.items()
    ]
    return CodeTree(sections, summaries.values())


@st.composite
def codes(draw: st.DrawFn) -> tuple[dict[str, str | None], dict[str, str | None]]:
    count = draw(st.integers(1, 12))
    numbers = [str(number) for number in range(count)]
    parents = {each: draw(st.sampled_from([None, *numbers[:place]])) for place, each in enumerate(numbers)}
    return parents, {each: draw(st.sampled_from([None, "one", "two"])) for each in numbers}


@hypothesis_settings(max_examples=dear(150))
@given(codes(), st.data())
def test_whatever_changes_the_stale_summaries_are_those_of_the_change_and_above(
    code: tuple[dict[str, str | None], dict[str, str | None]], data: st.DataObject
) -> None:
    parents, said = code
    tree = _tree(parents, said, {})
    for section in sorted(tree.heights, key=lambda each: tree.heights[each]):
        tree.put([code_tree.Summary(section, "", f"says {section}", 0, "", tree.inputs(section))])
    assert set(tree.states.values()) <= {"current", "empty"}

    changed = data.draw(st.sampled_from(sorted(said)))
    after = _tree(parents, said | {changed: "three"}, tree.summaries)
    expected = {changed, *after.above(changed)}
    assert {section for section, state in after.states.items() if state in ("stale", "missing")} == expected
    assert all(list(after.why_stale(each)) for each in expected if each in after.summaries)

    for section in sorted(expected, key=lambda each: after.heights[each]):
        after.put([code_tree.Summary(section, "", "anew", 0, "", after.inputs(section))])
    assert set(after.states.values()) <= {"current", "empty"}


def test_the_shapes_of_summaries_accept_what_is_built_and_tell_what_is_stale(town: KnowledgeGraph) -> None:
    def found() -> set[tuple[str, str]]:
        quads = [quad for graph in town.store.graphs() for quad in town.store.graph(graph)]
        results = Shapes.load(bundle.folder("shapes") / "dataset-summaries.ttl").check(quads)
        return {(str(each.shape).strip("<>").rpartition("#")[2], str(each.focus).strip("<>")) for each in results}

    build(town, TOWN)
    assert found() == set()
    enact(town.store, [Law("7.2.1.2", "Hens", "Nine hens.", "7.2.1", 1)])
    assert found() == {("Summary-stale", code_tree.to_summary_iri(iri("7.2.1.2")).value)}
    build(town, TOWN, iri("7.2.1.2"))
    assert found() == {("Summary-stalePart", code_tree.to_summary_iri(iri("7.2.1")).value)}


def test_a_chat_build_needs_an_endpoint(town: KnowledgeGraph) -> None:
    with pytest.raises(InvalidInputError, match="QUADCITE_CHAT_URL"):
        build(town, TOWN, mode="chat")


def test_a_graph_of_a_summary_can_be_named(town: KnowledgeGraph) -> None:
    graph = code_tree.to_summary_graph(f"{BASE}id/section/us-ut-x/a%20b%2Fc", "chat/host/model")
    assert graph == NamedNode(f"{BASE}graph/gen/chat%2Fhost%2Fmodel/us-ut-x/a%20b%2Fc")
