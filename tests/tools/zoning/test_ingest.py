"""What agents send of codes is taken in like a load: checked, searched for rules, with who sent it; one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode

from kg import bundle
from kg.access.actors import WRITE, Actor
from kg.errors import InvalidInputError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.store.protocol import Rows
from kg.tools.answers import content_of
from kg.tools.calls import SHARED
from kg.tools.registry import TOOLS
from kg.tools.zoning.ingest import (
    kg_ingest_code_section,
    kg_ingest_definitions,
    kg_ingest_dimensional_standards,
    kg_ingest_use_permissions,
)
from kg.tools.zoning.provisions import kg_query_definition, kg_query_permissions, kg_query_standards
from kg.tools.zoning.sections import kg_find_related, kg_query_section, kg_traverse_hierarchy
from kg.vocabulary import KG, mint
from loaders.sources import load

FEIGN = {"municipality": "Upper Feign", "state": "CT"}
SENT = json.loads((bundle.folder("fixtures") / "zoning" / "upper_feign.json").read_text(encoding="utf-8"))
LAW = (
    "(a) The following uses are permitted in the R-9 District:\n(1) Kiln.\n(b) A kiln is subject to section 9.3.\n"
    '(c) "Glaze" means a coat of glass.'
)


@pytest.fixture
def kg(receiving: KnowledgeGraph) -> KnowledgeGraph:
    return receiving


def tool(name: str) -> Any:
    return next(each for each in TOOLS if each.name == name)


def count(kg: KnowledgeGraph, graph: str) -> int:
    return len(list(kg.store.graph(NamedNode(graph))))


def test_a_section_is_stored_and_what_its_text_says_is_found(kg):
    kg_ingest_code_section(kg, **FEIGN, section_id="9", title="R-9 Rural District", level="chapter", raw_content="")
    done = kg_ingest_code_section(kg, **FEIGN, section_id="9.2", title="Terms", level=2, raw_content=LAW, parent_id="9")
    assert (done.stored, done.rejected, done.section_id) == (1, 0, "9.2")
    assert done.found["cross_references"] == 1
    assert done.found["permissions"] == 1
    found = kg_query_section(kg, **FEIGN, section_id="9.2(a)(1)")
    assert (found.raw_content.strip(), found.level, found.parent_id, found.order) == ("(1) Kiln.", 2, "9", 0)
    assert (found.evidence.sent_by, found.fetched_at) == ("local", done.fetched_at)
    [permission] = kg_query_permissions(kg, **FEIGN, use="kiln").permissions
    assert (permission.district, permission.permission, permission.section_ref) == ("R-9", "byRight", "9.2")


def test_a_citation_is_resolved_when_the_section_that_it_means_comes(kg):
    kg_ingest_code_section(kg, **FEIGN, section_id="9.2", title="Kilns", level=1, raw_content=LAW)
    [before] = kg_find_related(kg, **FEIGN, section_id="9.2").related
    assert before.cited is None
    kg_ingest_code_section(kg, **FEIGN, section_id="9.3", title="Fire", level=1, raw_content="No fire at night.")
    [after] = kg_find_related(kg, **FEIGN, section_id="9.2").related
    assert (after.cited, after.reads, after.asserted) == ("9.3", "subjectTo", True)


def test_a_child_may_come_before_its_parent_and_is_its_child(kg):
    done = kg_ingest_code_section(kg, **FEIGN, section_id="9.2", title="Kilns", level=2, raw_content=LAW, parent_id="9")
    assert any("parent '9'" in note for note in done.notes)
    kg_ingest_code_section(kg, **FEIGN, section_id="9", title="Crafts", level=1, raw_content="")
    below = kg_traverse_hierarchy(kg, **FEIGN, section_id="9").sections
    assert [(each.section_id, each.level, each.order) for each in below] == [("9.2", 2, 0)]


def test_siblings_stand_in_the_order_given_or_in_that_in_which_they_came(kg):
    for number, order in (("9.2", None), ("9.3", None), ("9.1", 0), ("9.4", None)):
        kg_ingest_code_section(
            kg, **FEIGN, section_id=number, title="x", level=2, raw_content="y", parent_id="9", order=order
        )
    again = kg_ingest_code_section(kg, **FEIGN, section_id="9.3", title="z", level=2, raw_content="y", parent_id="9")
    assert again.stored == 1
    kg_ingest_code_section(kg, **FEIGN, section_id="9", title="Crafts", level=1, raw_content="")
    below = kg_traverse_hierarchy(kg, **FEIGN, section_id="9").sections
    assert [(each.section_id, each.order) for each in below] == [("9.1", 0), ("9.2", 0), ("9.3", 1), ("9.4", 2)]


def test_html_is_read_as_its_lines(kg):
    kg_ingest_code_section(
        kg,
        **FEIGN,
        section_id="9.5",
        title="Clay",
        level=1,
        raw_content="<p>Red clay.</p><table><tr><td>a</td></tr></table>",
    )
    found = kg_query_section(kg, **FEIGN, section_id="9.5")
    assert found.raw_content == "Red clay.\na"
    assert found.tables[0].cells == [["a"]]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"parent_id": "9.2"}, "below itself"),
        ({"level": "storey"}, "'level' is 'storey'"),
        ({"level": 0}, "'level' is '?0"),
        ({"section_id": " "}, "section_id"),
        ({"raw_content": "a\ud800"}, "surrogate"),
    ],
)
def test_a_section_that_cannot_be_is_refused_with_the_reason(kg, wrong, says):
    given = {"section_id": "9.2", "title": "Kilns", "level": 2, "raw_content": LAW}
    with pytest.raises(InvalidInputError, match=says):
        kg_ingest_code_section(kg, **FEIGN, **{**given, **wrong})
    assert kg.store.statistics().quads == 0


def test_a_section_sent_again_replaces_itself_and_what_was_found_in_it(kg):
    first = kg_ingest_code_section(kg, **FEIGN, section_id="9.2", title="Kilns", level=1, raw_content=LAW)
    same = kg_ingest_code_section(kg, **FEIGN, section_id="9.2", title="Kilns", level=1, raw_content=LAW)
    assert (first.stored, same.stored, same.unchanged, same.run) == (1, 0, 1, None)
    kg_ingest_code_section(kg, **FEIGN, section_id="9.2", title="Kilns", level=1, raw_content="Nothing is said here.")
    assert kg_find_related(kg, **FEIGN, section_id="9.2").related == []
    assert kg_query_section(kg, **FEIGN, section_id="9.2").raw_content == "Nothing is said here."


def test_entries_are_asked_back_as_they_were_sent_with_who_sent_them(kg):
    token = SENDER.set(Actor("ada", frozenset({WRITE})))
    try:
        done = kg_ingest_use_permissions(kg, **FEIGN, permissions=SENT["permissions"])
        kg_ingest_dimensional_standards(kg, **FEIGN, standards=SENT["standards"])
        kg_ingest_definitions(kg, **FEIGN, definitions=SENT["definitions"])
    finally:
        SENDER.reset(token)
    assert (done.stored, done.rejected, done.sent_by) == (len(SENT["permissions"]), 0, "ada")
    for entry in SENT["permissions"]:
        [found] = kg_query_permissions(kg, **FEIGN, district=entry["district"], use=entry["use"]).permissions
        assert found.as_recorded == entry["permission"]
        assert found.conditions == entry.get("conditions", [])
        assert found.section_ref == entry.get("section_ref")
        assert (found.evidence.sent_by, found.evidence.fetched_at) == ("ada", done.fetched_at)
    for entry in SENT["standards"]:
        standards = kg_query_standards(kg, **FEIGN, district=entry["district"]).standards
        [standard] = [each for each in standards if each.evidence.recorded_in == entry["standard_type"]]
        assert (standard.raw_value, standard.raw_unit or "") == (str(entry["value"]), entry["unit"])
    for entry in SENT["definitions"]:
        [definition] = kg_query_definition(kg, **FEIGN, term=entry["term"]).definitions
        assert definition.definition_text == entry["definition_text"]
    [source] = next(iter(explain_iri(lambda query: kg.query(query).result, NamedNode(found.evidence.graph)))).sources
    assert source.sent_by == "ada"


def test_what_is_sent_says_what_a_file_of_the_same_says(kg, tmp_path):
    kg_ingest_use_permissions(kg, **FEIGN, permissions=SENT["permissions"])
    with KnowledgeGraph.open(
        tmp_path / "other", kg.settings.model_copy(update={"data_dir": tmp_path / "other"})
    ) as other:
        load(other, "zoning", [str(bundle.folder("fixtures") / "zoning" / "upper_feign.json")])

        def said(graph: KnowledgeGraph) -> set[tuple[Any, ...]]:
            found = kg_query_permissions(graph, **FEIGN).permissions
            return {(each.district, each.use, each.permission, each.as_recorded, *each.conditions) for each in found}

        assert said(kg) == said(other)


def test_a_bad_entry_is_told_and_loses_no_other(kg):
    good = {"district": "R-9", "use": "Kiln", "permission": "P"}
    bad: list[Any] = [{"district": "R-9", "use": "Kiln"}, "R-9", {**good, "use": {"name": "Kiln"}}, None]
    done = kg_ingest_use_permissions(kg, **FEIGN, permissions=[bad[0], good, *bad[1:]])
    assert (done.stored, done.rejected) == (1, 4)
    told = {each.entry: each.reason for each in done.entries if each.outcome == "rejected"}
    assert sorted(told) == [1, 3, 4, 5]
    assert "permission" in told[1]
    [found] = kg_query_permissions(kg, **FEIGN).permissions
    assert (found.district, found.use, found.permission) == ("R-9", "Kiln", "byRight")


def test_a_field_that_means_nothing_is_told(kg):
    entry = {"district": "R-9", "use": "Kiln", "permission": "P", "condition": "small"}
    done = kg_ingest_use_permissions(kg, **FEIGN, permissions=[entry])
    assert any("condition" in note for note in done.notes)


def test_what_is_sent_later_of_the_same_takes_its_place_alone(kg):
    two = [{"district": "R-9", "use": use, "permission": "P"} for use in ("Kiln", "Barn")]
    kg_ingest_use_permissions(kg, **FEIGN, permissions=two)
    kg_ingest_use_permissions(kg, **FEIGN, permissions=[{"district": "R-9", "use": "kiln", "permission": "C"}])
    found = {each.use.casefold(): each.permission for each in kg_query_permissions(kg, **FEIGN).permissions}
    assert found == {"kiln": "conditional", "barn": "byRight"}


def test_a_known_municipality_keeps_its_name_and_an_unknown_one_is_begun_with_a_note(kg):
    first = kg_ingest_definitions(kg, **FEIGN, definitions=[{"term": "kiln", "definition_text": "an oven"}])
    assert any("Unknown municipality" in note for note in first.notes)
    again = kg_ingest_definitions(
        kg, "town of UPPER feign", "Connecticut", definitions=[{"term": "barn", "definition_text": "a shed"}]
    )
    assert again.notes == []
    assert (again.municipality, again.state) == (first.municipality, first.state) == ("Upper Feign", "CT")
    assert again.municipality_iri == first.municipality_iri
    assert kg_query_definition(kg, **FEIGN, term="barn").municipality == "Upper Feign"
    with pytest.raises(InvalidInputError, match="'Atlantis'"):
        kg_ingest_definitions(kg, "Upper Feign", "Atlantis", definitions=[{"term": "a", "definition_text": "b"}])


def test_arguments_are_those_of_the_specification_and_lists_are_checked_entry_by_entry(kg):
    assert [name for name in tool("kg_ingest_code_section").arguments.model_fields if name not in SHARED] == [
        "municipality", "state", "section_id", "title", "level", "raw_content", "parent_id", "order",
    ]  # fmt: skip
    for name, argument, fields in (
        ("kg_ingest_use_permissions", "permissions", "district use permission conditions review_section section_ref"),
        ("kg_ingest_dimensional_standards", "standards", "district standard_type value unit section_ref"),
        ("kg_ingest_definitions", "definitions", "term definition_text section_ref"),
    ):
        schema = tool(name).arguments.model_json_schema()["properties"][argument]
        assert list(schema["items"]["properties"]) == [*fields.split(), "quotations"]
        with pytest.raises(InvalidInputError, match=argument):
            tool(name).call(kg, {**FEIGN, argument: []})
        done = content_of(tool(name).call(kg, {**FEIGN, argument: [{}]}))
        assert (done["stored"], done["rejected"]) == (0, 1)
        assert any(each in done["entries"][0]["reason"] for each in fields.split())  # a field is no name of the data


def test_what_breaks_the_shapes_is_kept_out(kg, monkeypatch):
    # A record that the gate refuses: a level that no shape knows.
    monkeypatch.setattr("loaders.zoning.graph.rule_quads.level_of", lambda raw: "sometimes")
    done = kg_ingest_use_permissions(kg, **FEIGN, permissions=[{"district": "R-9", "use": "Kiln", "permission": "P"}])
    assert (done.stored, done.rejected) == (0, 1)
    assert "level" in done.entries[0].reason
    result = kg.query("SELECT ?p WHERE { ?p a kg:UsePermission }").result
    assert isinstance(result, Rows)
    assert not list(result)
    assert not list(kg.settings.directory.quarantine.glob("*.json"))


def test_what_is_sent_is_data_alone(kg):
    text = '") } ; DROP ALL # <x> \\ \u202e'
    done = kg_ingest_definitions(kg, **FEIGN, definitions=[{"term": text, "definition_text": text}])
    assert done.stored == 1
    [found] = kg_query_definition(kg, **FEIGN, term=text).definitions
    assert (found.term, found.definition_text) == (text, text)
    assert count(kg, found.evidence.graph) == 4
    assert Literal(text) in {quad.object for quad in kg.store.graph(NamedNode(found.evidence.graph))}


def test_where_a_code_has_no_rule_that_was_found_its_text_is_quoted(kg):
    kg_ingest_code_section(kg, **FEIGN, section_id="9", title="Peace", level="chapter", raw_content="Be quiet.")
    for found in (kg_query_permissions(kg, **FEIGN), kg_query_standards(kg, **FEIGN)):
        assert any("text of its code" in note for note in found.notes)
        assert [quote.text for passage in found.law for quote in passage.quotes] == ["Be quiet."]


@pytest.mark.parametrize("name", ["Quarry-Bend", "QUARRY_BEND!!", "quarry bend\u202e", "Quarry. Bend™"])
def test_the_spelling_of_a_name_does_not_rename_a_municipality(kg, name):
    bend = {"municipality": "Quarry Bend", "state": "UT"}
    new = kg_ingest_definitions(kg, **bend, definitions=[{"term": "Kiln", "definition_text": "An oven."}])
    assert any("new municipality" in note for note in new.notes)
    sent = {"term": "Glaze", "definition_text": "A coat."}
    done = kg_ingest_definitions(kg, municipality=name, state="UT", definitions=[sent])
    assert (done.stored, done.municipality, done.municipality_iri) == (1, "Quarry Bend", new.municipality_iri)
    assert not any("new municipality" in note for note in done.notes)
    labels = [quad.object for quad in kg.store.graph(mint("graph", "ref", "municipality", "us-ut-quarry-bend"))]
    assert [label.value for label in labels if isinstance(label, Literal)] == ["Quarry Bend"]


def test_a_section_that_replaces_one_of_a_file_is_reported_with_the_file(kg):
    load(kg, "zoning", [str(bundle.folder("fixtures") / "zoning" / "upper_feign.json")])
    section = SENT["sections"][0]
    given = {name: section[name] for name in ("section_id", "title") if name in section}
    done = kg_ingest_code_section(kg, **FEIGN, **given, level=1, raw_content="Other words.")
    assert done.stored == 1
    assert any("upper_feign.json" in note for note in done.notes)
    again = kg_ingest_code_section(kg, **FEIGN, **given, level=1, raw_content="Other words again.")
    assert not any("upper_feign.json" in note for note in again.notes)


def test_a_word_of_a_megabyte_is_stored_in_seconds(kg, tmp_path):
    names = tmp_path / "concepts.csv"
    names.write_text("id,label@en\nQ1,kiln\n")
    load(kg, "wikibase", [str(names)], base="climate")
    done = kg_ingest_code_section(
        kg, **FEIGN, section_id="9.9", title="Long", level=1, raw_content=f"A kiln {'x' * 1_000_000} kiln."
    )
    assert done.stored == 1
    [quads] = [[*kg.store.graph(graph)] for graph in kg.store.graphs() if "/ext/mentions/zoning/" in graph.value]
    assert sum(quad.predicate == KG.matchType for quad in quads) == 2
