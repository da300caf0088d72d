"""One scheme of arguments for all tools: what a name means, unknown values, and the forms of one value.

The tests go over the registry, so that a new tool or argument fails until it keeps to the scheme.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.tools.calls import SHARED, Tool
from kg.tools.registry import TOOLS
from kg.vocabulary import BASE, mint
from tests.benchmarks.budget import open_fixtures

ARGUMENTS: Final = {
    # pages
    "limit": "integer", "top_k": "integer", "k": "integer", "offset": "integer",
    # words
    "query": "string", "q": "string", "question": "string", "text": "string", "term": "string", "must": "array",
    "min_score": "number", "min_confidence": "number", "max_confidence": "number",
    # ids
    "id": "string", "ids": "array", "iri": "string", "qid": "string", "qids": "array", "speech_id": "string",
    "section_id": "string", "claim": "string", "graph": "string", "document": "string", "family_slug": "string",
    "predicates": "array", "properties": "array", "root_section": "string", "entity_id": "string", "doc_ids": "array",
    # places
    "iso3": "array or string", "place": "array or string", "iso3_a": "string", "iso3_b": "string",
    "municipality": "string", "municipalities": "array", "state": "string", "jurisdiction": "string",
    # other filters
    "filters": "object", "post_filter": "object", "language": "array", "corpus_type": "array", "speaker": "string",
    "party": "string",
    "chamber": "string", "date_from": "string", "date_to": "string", "topics": "array", "district": "string",
    "use": "string", "standard_type": "string", "relationship_type": "string", "person": "string", "bill": "string",
    "division": "string",
    # choices that the schema lists
    "direction": "enum", "by": "enum", "group_by": "enum", "kind": "enum", "suite": "enum", "scorer": "enum",
    "rels": "array", "type": "string",
    "verdict": "enum", "scope": "enum", "status": "enum", "format": "enum", "mode": "enum",
    "sort": "enum", "facets": "array",
    # switches and sizes
    "narrower": "boolean", "nested": "boolean", "counts": "boolean", "include_docs": "boolean",
    "score_parts": "boolean",
    "include_context": "boolean", "include_children": "boolean", "hops": "integer", "depth": "integer",
    "top_concepts": "integer", "top_n": "integer", "best": "boolean",
    "timeout": "number", "snapshot": "integer", "neighbours": "integer", "trace": "integer",
    # what is sent to be stored or checked
    "turtle": "string", "shapes": "string", "file_path": "string", "title": "string", "level": "integer or string",
    "raw_content": "string", "parent_id": "string", "order": "integer", "permissions": "array", "standards": "array",
    "definitions": "array", "summary": "string", "inputs_sha256": "string", "paths": "array", "tags": "array",
    "skip_if_seen": "boolean",
    # loads
    "source": "string", "locations": "array", "prune": "boolean", "options": "object", "number": "integer",
    "wait_s": "integer",
}  # fmt: skip
"""The arguments of all tools, with their types in JSON. A name has one meaning in all tools."""

BEND: Final = {"municipality": "Quarry Bend", "state": "UT"}
REQUIRED: Final[dict[str, dict[str, Any]]] = {
    "search": {"query": "solar"},
    "search_speeches": {"query": "solar"},
    "related": {"id": "Q1010"},
    "list_claims": BEND,
    "citations": {"iri": "cpr://family/fictional-geothermal-programme_d0f0"},
    "concept_mentions": {"qids": ["Q1010"]},
    "concept_neighbors": {"qid": "Q1010"},
    "compare_jurisdictions": {"iso3_a": "BRA", "iso3_b": "DJI"},
    "policy_lineage": {"family_slug": "fictional-geothermal-programme_d0f0"},
    "get_speech": {"speech_id": "b6272e0d-afe9-42b1-94dc-071928350acb"},
    "find_terms": {"text": "solar"},
    "sparql_examples": {"question": "how many laws"},
    "sparql": {"query": "ASK {}"},
    "wikidata.sparql": {"query": "ASK {}"},
    "wikidata.vector_search_items": {"query": "solar"},
    "wikidata.vector_search_properties": {"query": "solar"},
    "plan_facts": {"question": "how many laws"},
    "verify_fact": {"question": "how many laws"},
    "kg_query_section": {**BEND, "section_id": "17.12.040"},
    "kg_query_permissions": BEND,
    "kg_query_standards": BEND,
    "kg_query_definition": {**BEND, "term": "duplex"},
    "kg_traverse_hierarchy": BEND,
    "kg_find_related": {**BEND, "section_id": "17.12.040"},
    "kg_search_by_topic": {**BEND, "query": "fences"},
    "zoning_reading_tasks": BEND,
    "hybrid_query": {"q": "tide pumps"},
    "entity_lookup": {"q": "strainer"},
    "explain_entity": {"entity_id": "strainer"},
    "compare_zoning": {"municipalities": ["Quarry Bend, UT", "Lower Quill, CT"], "standard_type": "height"},
}
"""The required arguments of the tools that read."""

UNKNOWN: Final[dict[str, Any]] = {
    "iso3": "Atlantis", "place": "Atlantis", "iso3_a": "Atlantis", "iso3_b": "Atlantis", "language": "xx",
    "corpus_type": "Scroll", "family_slug": "no-such-family", "concept_qids": "Q99999999", "qid": "Q99999999",
    "qids": "Q99999999", "speaker": "Zzyzx Qwertz", "party": "Zzyzx Party", "chamber": "Lords", "topics": "zzyzx",
    "municipality": "Gotham", "municipalities": "Gotham, UT", "section_id": "99.99.99", "district": "ZZ-99",
    "use": "zzyzx", "standard_type": "zzyzx", "relationship_type": "zzyzx", "speech_id": "no-such-speech",
    "id": "cpr://doc/no-such-document", "iri": "cpr://doc/no-such-document", "document": "cpr://doc/no-such-document",
    "graph": f"{BASE}graph/src/none", "person": "Zzyzx Qwertz", "bill": "Zzyzx Bill",
    "division": f"{BASE}id/division/0", "entity_id": f"{BASE}id/entity/term/zzyzx",
}  # fmt: skip
"""A value of each argument that the graph does not have."""

DOCUMENT: Final = "fictional-decree-on-geothermal-exploration_d0a1"
SPEECH: Final = "b6272e0d-afe9-42b1-94dc-071928350acb"
CITING: Final = mint("section", "us-ut-quarry-bend", "17.04.020").value
SECTION: Final = mint("section", "us-ut-quarry-bend", "17.12.040").value
FORMS: Final[list[tuple[str, str, list[Any]]]] = [
    ("fetch", "id", [f"cpr://doc/{DOCUMENT}", DOCUMENT, f"<cpr://doc/{DOCUMENT}>"]),
    ("fetch", "ids", [[f"cpr://doc/{DOCUMENT}#p=3"], [f"{DOCUMENT}#p=3"], f"{DOCUMENT}#p=3"]),
    ("fetch", "id", [mint("speech", SPEECH).value, SPEECH, f"id/speech/{SPEECH}"]),
    ("fetch", "id", [SECTION, SECTION.removeprefix(BASE)]),
    ("related", "id", ["cpr://concept/Q1010", "Q1010", "<cpr://concept/Q1010>"]),
    ("related", "id", [f"cpr://doc/{DOCUMENT}", DOCUMENT]),
    ("citations", "iri", [CITING, CITING.removeprefix(BASE)]),
    ("concept_find", "qid", ["Q1010", "cpr://concept/Q1010"]),
    ("concept_mentions", "qids", [["Q1012"], ["cpr://concept/Q1012"], "Q1012"]),
    ("concept_neighbors", "qid", ["Q1010", "cpr://concept/Q1010", "solar power", "Photovoltaics"]),
    ("citations", "iri", ["cpr://family/fictional-geothermal-programme_d0f0", "Fictional Geothermal Programme"]),
    (
        "policy_lineage",
        "family_slug",
        ["fictional-geothermal-programme_d0f0", "cpr://family/fictional-geothermal-programme_d0f0"],
    ),
    ("get_speech", "speech_id", [SPEECH, mint("speech", SPEECH).value, f"id/speech/{SPEECH}"]),
    ("kg_query_section", "section_id", ["17.12.040", SECTION, SECTION.removeprefix(BASE), "§ 17.12.040"]),
    ("kg_find_related", "section_id", ["17.12.040", SECTION, SECTION.removeprefix(BASE)]),
    ("search", "place", ["DJI", "Djibouti", "dji", mint("place", "DJI").value]),
    ("search", "language", ["en", "EN"]),
    ("search", "concept_qids", ["Q1010", "cpr://concept/Q1010", ["Q1010"]]),
    ("family_overview", "place", [["DJI"], "Djibouti"]),
    ("search_speeches", "party", ["Greens", "Australian Greens", "AG"]),
    ("list_speakers", "party", ["Greens", "Australian Greens", "AG"]),
    ("speech_stats", "party", ["Greens", "Australian Greens", "AG"]),
    ("search_speeches", "chamber", ["Senate", "the Senate", "au-senate"]),
    ("search_speeches", "state", ["NSW", "New South Wales", "AU-NSW"]),
    ("speech_stats", "speaker", ["Isolde Marchbanks", "Senator Marchbanks", "MARCHBANKS, Isolde"]),
    (
        "kg_query_permissions",
        "municipality",
        ["Quarry Bend", "quarry bend city", "us-ut-quarry-bend", "Quarry Bend, UT"],
    ),
    ("kg_query_permissions", "district", ["R-1", "r1", "R 1"]),
]
"""Forms of one value, which get the same answer."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with open_fixtures(tmp_path_factory.mktemp("scheme")) as opened:
        yield opened


def get_tool(name: str) -> Tool:
    return next(tool for tool in TOOLS if tool.name == name)


def types_of(schema: dict[str, Any], defined: dict[str, Any]) -> set[str]:
    """The JSON types of an argument, without null; "enum" for listed choices."""
    if "$ref" in schema:
        schema = defined[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return {each for option in schema["anyOf"] for each in types_of(option, defined)} - {"null"}
    return {"enum"} if "enum" in schema else {schema["type"]}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_arguments_have_the_names_and_types_of_the_scheme(tool):
    schema = tool.arguments.model_json_schema()
    for name, field in schema["properties"].items():
        if name in SHARED:
            continue
        assert name in ARGUMENTS, f"{tool.name} has an argument that the scheme does not know: {name}"
        assert types_of(field, schema.get("$defs", {})) <= set(ARGUMENTS[name].split(" or "))
    if {"limit", "offset"} <= schema["properties"].keys():
        assert (schema["properties"]["limit"]["minimum"], schema["properties"]["offset"]["minimum"]) == (1, 0)
        assert schema["properties"]["offset"]["default"] == 0
    if "date_from" in schema["properties"]:
        assert "YYYY-MM-DD" in str(schema["properties"]["date_from"])


def unknown_calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """One call for each filter and id of each tool that reads, with a value that the graph does not have."""
    for tool in TOOLS:
        if not tool.reads or tool.single:
            continue
        names = set(tool.arguments.model_fields) | (
            {"concept_qids"} if "filters" in tool.arguments.model_fields else set()
        )
        if "filters" in names:
            names |= {"iso3", "place", "language", "corpus_type", "family_slug"}
        for name in sorted(names & UNKNOWN.keys()):
            if tool.name == "fetch" and name != "id":
                continue  # ids without text are in not_found
            if tool.name.startswith("kg_query_") and name in ("use", "standard_type"):
                continue  # the law is quoted instead
            given = {"compare_zoning": {"municipalities": ["Quarry Bend, UT", "Gotham, UT"]}}.get(tool.name, {})
            value = given.get(name, UNKNOWN[name])
            yield tool.name, name, {**REQUIRED.get(tool.name, {}), name: value}


@pytest.mark.parametrize(("name", "argument", "arguments"), list(unknown_calls()))
def test_an_unknown_value_is_not_found_and_its_message_leads_to_valid_ones(loaded, name, argument, arguments):
    with pytest.raises(NotFoundError, match=rf"^{argument}: ") as caught:
        get_tool(name).answer(loaded, arguments)
    assert any(word in str(caught.value) for word in ("Available", "imilar", " lists ", "search")), str(caught.value)


@pytest.mark.parametrize("name", [tool.name for tool in TOOLS if "date_from" in tool.arguments.model_fields])
@pytest.mark.parametrize("day", ["yesterday", "2024-13-01", "01/02/2024"])
def test_a_day_in_another_form_is_refused(loaded, name, day):
    with pytest.raises(InvalidInputError, match="YYYY-MM-DD"):
        get_tool(name).answer(loaded, {**REQUIRED.get(name, {}), "date_from": day})


@pytest.mark.parametrize(("name", "argument", "forms"), FORMS)
def test_the_forms_of_a_value_get_the_same_answer(loaded, name, argument, forms):
    given = {key: value for key, value in REQUIRED.get(name, {}).items() if key != argument}

    def ask(form: Any) -> dict[str, Any]:
        content = get_tool(name).answer(loaded, {**given, argument: form, "max_tokens": 50_000}).content
        return {key: value for key, value in content.items() if key not in ("notes", "names", "iri")}

    first = ask(forms[0])
    if name != "citations" or "section" in str(forms[0]):
        assert any(value for value in first.values() if isinstance(value, list | dict | str))
    for form in forms[1:]:
        assert ask(form) == first, form


def test_a_party_has_one_name_in_lists_and_counts(loaded):
    names = {each["label"] for each in get_tool("speech_stats").answer(loaded, {"group_by": "party"}).content["groups"]}
    listed = get_tool("list_speakers").answer(loaded, {"max_tokens": 50_000}).content["speakers"]
    filters = get_tool("list_resources").answer(loaded, {}).content["resources"]
    offered = next(each["values"] for each in filters if each["title"].startswith("Filter party"))
    assert {party for each in listed for party in each["parties"]} == names - {"not recorded"} == set(offered)


def test_a_law_without_an_exact_name_is_not_found_with_similar_ones(loaded):
    with pytest.raises(NotFoundError, match=r"^iri: .*Similar: 'cpr://family/fictional-geothermal-programme_d0f0"):
        get_tool("citations").answer(loaded, {"iri": "Fictional Geothermal Program"})


def test_a_missing_id_is_listed_with_a_hint(loaded):
    content = get_tool("fetch").answer(loaded, {"ids": ["no-such-slug", "Q1010"]}).content
    assert [each["id"] for each in content["not_found"]] == ["no-such-slug", "cpr://concept/Q1010"]
    assert all(each["hint"] for each in content["not_found"])


def test_a_standard_that_is_not_recorded_leads_to_the_text(loaded):
    content = get_tool("kg_query_standards").answer(loaded, {**BEND, "standard_type": "fence height"}).content
    assert content["standards"] == []
    assert content["law"]


def test_an_overview_of_several_domains_states_what_its_documents_are(loaded):
    content = get_tool("jurisdiction_overview").answer(loaded, {"place": "Australia"}).content
    assert content["top_concepts"]
    assert any(note.startswith("documents of top_concepts") for note in content["notes"])
    content = get_tool("jurisdiction_overview").answer(loaded, {"place": "BRA"}).content
    assert not any(note.startswith("documents of top_concepts") for note in content.get("notes", ()))


@pytest.mark.parametrize(("tool", "filters"), [("search", {"place": "BRA"}), ("search_speeches", {"party": "Greens"})])
def test_an_empty_answer_names_the_words_and_the_filter_without_which_there_are_results(loaded, tool, filters):
    notes = get_tool(tool).answer(loaded, {"query": "solar", "must": "zzyzx", **filters}).content["notes"]
    assert any("contain" in note for note in notes)
    elsewhere = {"search": "mill", "search_speeches": "hospital"}[tool]
    content = get_tool(tool).answer(loaded, {"query": elsewhere, "must": elsewhere, **filters}).content
    assert content["results"] or any(next(iter(filters)) in note for note in content["notes"])
