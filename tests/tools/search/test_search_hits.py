"""Every hit of every search can be fetched, resolved, explained and cited, in every domain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Triple
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg import bundle
from kg.access.actors import EVERYONE
from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.server import pages
from kg.server.mcp import ToolThreads
from kg.store.protocol import select, term_text
from kg.tools import commands
from kg.tools.registry import TOOLS, get, mounted, tagged
from kg.tools.search import identifiers, research
from kg.tools.search.passages import fetch
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, SCHEMA, iri_prefix, mint
from kg.zoning_summaries.build import build
from loaders.sources import load
from tests.conftest import load_once
from tests.folders import open_graph

BEND = {"municipality": "Quarry Bend", "state": "UT"}
NOTE = NamedNode("http://example.org/minutes#item=4")
ALONE = NamedNode("http://example.org/memo")
MESA = {
    "municipality": "Lone Mesa",
    "state": "NV",
    "sections": [
        {"section_id": "1", "title": "Dusk", "level": 1, "raw_content": "Lanterns of the mesa are lit at dusk."},
        {"section_id": "2", "title": "Noon", "level": 1, "raw_content": "Snow is cleared from the mesa by noon."},
        {"section_id": "3", "title": "Wells", "level": 1},
        {"section_id": "3.1", "title": "Lids", "level": 2, "parent_id": "3", "raw_content": "A well has a lid."},
        {"section_id": "4", "title": "Heat", "level": 1, "raw_content": "Geothermal heat is not sold on the mesa."},
    ],
}
"""A code whose articles have texts of their own, which are part of nothing."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures of all domains in one graph, summaries of a code, and text units that a user wrote."""
    data = load_once(tmp_path_factory, "fixtures")
    folder = data.parent
    with open_graph(data) as opened:
        for source in ("hansard", "zoning", "files"):
            load(opened, source, [str(bundle.folder("fixtures") / source)])
        mesa = folder / "mesa.json"
        mesa.write_text(json.dumps(MESA), encoding="utf-8")
        assert load(opened, "zoning", [str(mesa)]).rejections == []
        said = [
            Triple(NOTE, DCTERMS.isPartOf, NamedNode("http://example.org/minutes")),
            Triple(NOTE, SCHEMA.position, Literal(4)),
            Triple(NOTE, SCHEMA.text, Literal("Zebra crossings get amber lamps before the winter.")),
            Triple(NamedNode("http://example.org/minutes"), DCTERMS.title, Literal("Minutes of the lamp committee")),
            Triple(ALONE, SCHEMA.position, Literal(0)),
            Triple(ALONE, SCHEMA.text, Literal("Amber lamps are ordered from the foundry.")),
        ]
        UserGraphs(opened).put(mint("graph", "user", "minutes"), said, EVERYONE)
        build(opened, mint("municipality", "us-ut-quarry-bend").value)
        yield opened


@pytest.fixture(scope="module")
def browser(everything: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(
        Starlette(routes=pages.routes(pages.Site(everything, ToolThreads(everything)))),
        base_url="http://127.0.0.1:8000",
    ) as client:
        yield client


def call(kg: KnowledgeGraph, name: str, tag: str | None = None, /, **arguments: Any) -> Any:
    [tool] = [each for each in TOOLS if each.name == name and (tag is None or tag in each.tags)][:1]
    return tool.call(kg, arguments)


def ids_of(kg: KnowledgeGraph, name: str, arguments: dict[str, Any]) -> list[str]:
    tool, _, tag = name.partition("@")
    found = call(kg, tool, tag or None, **arguments)
    if name == "search_speeches":
        return [part for hit in found.results for part in (hit.evidence.id, hit.evidence.speech)]
    if name == "concept_mentions":
        return [hit.id for hit in found.evidence]
    if name == "kg_search_by_topic":
        return [hit.iri for hit in (*found.results, *found.plain_search_otherwise)]
    return [hit.id for hit in found.results]


SEARCHES = [
    ("climate", "search", {"query": "geothermal levy for households", "limit": 50}, "cpr://doc/"),
    ("climate", "search@research", {"query": "geothermal levy for households"}, "cpr://doc/"),
    ("climate", "concept_mentions", {"qids": ["Q1012"]}, "cpr://doc/"),
    ("parliament", "search", {"query": "question asked by senators of the minister", "limit": 50}, "/id/speech/"),
    ("parliament", "search@research", {"query": "senators minister speech in the chamber"}, "/id/speech/"),
    ("parliament", "search_speeches", {"query": "energy", "top_k": 20}, "/id/speech/"),
    ("zoning", "search", {"query": "minimum lot area", "limit": 50}, "/id/section/"),
    ("zoning", "search@research", {"query": "minimum lot area"}, "/id/section/"),
    ("zoning", "kg_search_by_topic", {**BEND, "query": "minimum lot area"}, "/id/section/"),
    ("files", "search", {"query": "crossing to Gull Island by ferry", "limit": 50}, "/id/file/"),
    ("files", "search", {"query": "lamp of the lighthouse", "filters": {"domain": ["files"]}}, ".docx#char="),
    ("files", "search@research", {"query": "crown of the sea wall"}, "/sea-wall.pdf#char="),
    ("zoning articles", "concept_mentions", {"qids": ["Q1012"], "limit": 200}, "/us-nv-lone-mesa/4"),
    ("zoning articles", "search", {"query": "lanterns of the mesa", "limit": 50}, "/us-nv-lone-mesa/1"),
    ("zoning articles", "search", {"query": "mesa", "filters": {"place": ["NV"]}}, "/us-nv-lone-mesa/2"),
    ("user", "search", {"query": "ordered from the foundry", "limit": 50}, ALONE.value),
    ("user", "search", {"query": "amber lamps zebra crossings", "limit": 50}, "http://example.org/"),
    ("user", "search@research", {"query": "amber lamps zebra crossings"}, "http://example.org/"),
]


@pytest.mark.parametrize(("domain", "name", "arguments", "form"), SEARCHES, ids=[f"{c[0]}-{c[1]}" for c in SEARCHES])
def test_every_hit_is_fetched_resolved_explained_and_cited(everything, browser, domain, name, arguments, form):
    hits = ids_of(everything, name, arguments)
    assert any(form in hit for hit in hits)
    found = fetch(everything, ids=hits, limit=200)
    assert found.not_found == []
    for hit in hits:
        one = research.fetch(everything, hit)
        assert one.text
        assert one.title
        assert one.url
        answer = browser.get("/resolve", params={"iri": hit}, headers={"Accept": "text/html"})
        assert answer.status_code == 200
        explanations = commands.why(everything, iri=hit)["explanations"]
        assert any(source["sha256"] for each in explanations for source in each["sources"])
    for evidence in found.evidence:
        assert evidence.passage.text
        assert evidence.document.url
        assert evidence.provenance.sha256
        assert evidence.provenance.source


IN_ORDER = """
SELECT ?unit ?document ?position WHERE {
  ?unit dcterms:isPartOf ?document ; schema:position ?position ; schema:text ?words
}"""


def find_in_order(kg: KnowledgeGraph) -> dict[str, list[str]]:
    """The passages of each document in order; the sections of a code are one document."""
    documents: dict[str, list[tuple[int, str]]] = {}
    for row in select(kg.store.query, IN_ORDER):
        place = int(term_text(row["position"])), term_text(row["unit"])
        documents.setdefault(term_text(row["document"]), []).append(place)
    found = {iri: [unit for _, unit in sorted(units)] for iri, units in documents.items()}
    for code in ("us-ut-quarry-bend", "us-nv-lone-mesa"):
        sections = fetch(kg, id=mint("municipality", code).value, limit=200).evidence
        found[code] = [each.id for each in sections]
    return found


OF_EACH_DOMAIN = [
    ("search", {"query": "geothermal licence", "limit": 40, "filters": {"domain": ["climate"]}}),
    ("search", {"query": "question senators minister", "limit": 40, "filters": {"domain": ["parliament"]}}),
    ("search", {"query": "minimum lot area", "limit": 40, "filters": {"place": ["Quarry Bend, UT"]}}),
    ("search", {"query": "lanterns well snow", "filters": {"place": ["NV"]}}),
    ("search_speeches", {"query": "energy", "top_k": 20}),
]
DOMAIN_IDS = ["climate", "parliament", "zoning", "articles", "speeches"]


@pytest.mark.parametrize(
    ("name", "arguments"), OF_EACH_DOMAIN, ids=["climate", "parliament", "zoning", "mesa", "speeches"]
)
@pytest.mark.parametrize("count", [1, 3])
def test_neighbours_are_the_passages_before_and_after_in_the_document(everything, name, arguments, count):
    order = find_in_order(everything)
    results = call(everything, name, **arguments, neighbours=count).results
    assert results
    seen = 0
    for hit in results:
        iri = hit.evidence.id if name == "search_speeches" else hit.id
        whole = next(each for key, each in reversed(order.items()) if iri in each)  # codes are last
        at = whole.index(iri)
        before, after = [each.id for each in hit.before], [each.id for each in hit.after]
        assert before == whole[max(0, at - count) : at]
        assert after == whole[at + 1 : at + 1 + count]
        read = {each.id: each for each in fetch(everything, ids=[*before, iri, *after]).evidence}
        for near in (*hit.before, *hit.after):
            text = read[near.id].passage.text
            start = near.start or 0
            assert text[start : start + len(near.text)] == near.text
            assert near.length in (None, len(text))
            assert near.provenance == read[near.id].provenance
            seen += 1
    assert seen
    plain = call(everything, name, **arguments).results
    assert all(hit.before == hit.after == [] for hit in plain)
    assert [hit.model_dump() for hit in plain] == [
        hit.model_copy(update={"before": [], "after": []}).model_dump() for hit in results
    ]


@pytest.mark.parametrize(("name", "arguments"), OF_EACH_DOMAIN[:4], ids=DOMAIN_IDS[:4])
def test_fetch_reads_the_neighbours_of_a_passage_in_the_order_of_its_document(everything, name, arguments):
    order = find_in_order(everything)
    hits = [hit.id for hit in call(everything, name, **arguments).results]
    whole = next(each for key, each in reversed(order.items()) if hits[0] in each)
    at = whole.index(hits[0])
    found = fetch(everything, id=hits[0], neighbours=2)
    assert [each.id for each in found.evidence] == whole[max(0, at - 2) : at + 3]
    assert found.id == hits[0]
    assert found.text == next(each.passage.text for each in found.evidence if each.id == hits[0])
    both = fetch(everything, ids=[hits[0]], neighbours=1)
    assert [each.id for each in both.evidence] == whole[max(0, at - 1) : at + 2]


def test_answers_with_neighbours_keep_to_their_tokens_and_continue(everything):
    [tool] = [each for each in TOOLS if each.name == "search" and "core" in each.tags]
    arguments = {"query": "minimum lot area", "neighbours": 3, "max_tokens": 1_000}
    answer = tool.answer(everything, arguments)
    assert answer.meta["tokens"] <= 1_000
    following = tool.answer(everything, {**arguments, "offset": answer.content["next_offset"]})
    first, second = ([hit["id"] for hit in each.content["results"]] for each in (answer, following))
    assert first
    assert second
    assert not set(first) & set(second)


def test_the_words_of_another_next_to_a_speech_are_attributed(everything):
    results = call(everything, "search_speeches", query="question minister senators", top_k=50, neighbours=5).results
    read = {near.id: near.said_by is not None for hit in results for near in (*hit.before, *hit.after)}
    voices = {
        hit.evidence.id: hit.in_speech_of is not None
        for query in ("question", "minister", "senators", "order", "interjection", "water", "energy")
        for hit in call(everything, "search_speeches", query=query, top_k=50).results
    }
    both = read.keys() & voices.keys()
    assert both
    assert {iri: read[iri] for iri in both} == {iri: voices[iri] for iri in both}


def test_a_section_is_cited_by_its_town_and_number_in_search_and_in_fetch(everything):
    hits = call(everything, "search", query="minimum lot area").results
    hit = next(each for each in hits if each.id.startswith(iri_prefix("section")))
    number = hit.id.rpartition("/")[2]
    one = fetch(everything, id=hit.id)
    assert (one.title, one.url) == (hit.title, hit.url)
    assert f"Quarry Bend, UT, {number}" in hit.title
    assert hit.url == hit.id
    assert one.metadata is not None
    assert one.metadata["citation"] == f"Quarry Bend, UT, {number}"


SECTIONS = """
SELECT ?section WHERE { ?section kg:jurisdiction $place ; schema:text ?text }"""


def test_a_code_and_a_level_of_it_give_their_sections_in_order(everything):
    place = mint("municipality", "us-ut-quarry-bend")
    texts = {
        term_text(row["section"]) for row in select(everything.store.query, SECTIONS.replace("$place", str(place)))
    }
    code = fetch(everything, id=place.value, limit=200)
    assert {item.id for item in code.evidence} == texts
    assert [item.provenance.lines for item in code.evidence] == sorted(
        (item.provenance.lines for item in code.evidence), key=lambda lines: int((lines or "0").partition("-")[0])
    )
    assert "Quarry Bend" in (code.title or "")
    chapter = fetch(everything, id=mint("section", "us-ut-quarry-bend", "17.12").value, limit=200)
    below = [item.id for item in code.evidence if "/17.12." in item.id]
    assert [item.id for item in chapter.evidence] == below
    assert chapter.text == "\n\n".join(item.passage.text for item in chapter.evidence)


def test_a_document_of_a_user_gives_its_text(everything):
    assert [item.id for item in fetch(everything, id="http://example.org/minutes").evidence] == [NOTE.value]
    assert fetch(everything, id=ALONE.value).text == "Amber lamps are ordered from the foundry."


DEBATE = """
SELECT ?x WHERE {
  ?x a kg:Debate . ?speech dcterms:isPartOf ?x ; a kg:Speech MINUS { ?text dcterms:isPartOf ?x ; schema:text ?words }
} LIMIT 1"""

WITHOUT_TEXT = {
    "cpr://concept/Q1012": "concept_mentions",
    "SELECT ?x WHERE { ?x a foaf:Person } LIMIT 1": "search_speeches",
    "SELECT ?x WHERE { ?x a kg:Party } LIMIT 1": "search_speeches",
    "SELECT ?x WHERE { ?x a kg:ZoningDistrict } LIMIT 1": "kg_query_permissions",
    "SELECT ?x WHERE { ?x a kg:LandUse } LIMIT 1": "kg_query_permissions",
    "SELECT ?x WHERE { ?x a kg:Definition } LIMIT 1": "kg_query_definition",
    "SELECT ?x WHERE { ?x a kg:ExternalLaw } LIMIT 1": "citations",
    "SELECT ?x WHERE { ?x a kg:Place ; skos:notation ?iso } LIMIT 1": "jurisdiction_overview",
    "SELECT ?x WHERE { ?x a kg:CrossReference } LIMIT 1": iri_prefix("section"),
    "SELECT ?x WHERE { ?x a kg:Subsection } LIMIT 1": iri_prefix("section"),
    "SELECT ?x WHERE { ?x kg:matchType ?type ; oa:hasSource ?unit } LIMIT 1": "fetch that",
    DEBATE: iri_prefix("speech"),
    "SELECT ?x WHERE { ?x a prov:Activity } LIMIT 1": "DESCRIBE",
}


def test_a_debate_gives_its_procedural_texts_and_says_that_speeches_are_separate(everything):
    [row, *_] = select(everything.store.query, DEBATE.replace("MINUS {", ".").replace("}\n}", "}"))
    found = fetch(everything, ids=[term_text(row["x"])])
    assert found.evidence
    assert any("search_speeches" in note for note in found.notes)


@pytest.mark.parametrize(("thing", "advice"), WITHOUT_TEXT.items())
def test_a_known_thing_without_text_says_what_it_is_and_what_reads_it(everything, thing, advice):
    if "SELECT" in thing:
        [row] = select(everything.store.query, thing)
        thing = term_text(row["x"])
    [missing] = fetch(everything, ids=[thing]).not_found
    assert "has no text" in missing.hint
    assert advice in missing.hint
    with pytest.raises(NotFoundError, match="cannot be read"):
        fetch(everything, id=thing)


def test_the_advice_names_existing_tools():
    words = {word.strip(".,:") for text in identifiers.READ_BY.values() for word in text.split()}
    named = {word for word in words if "_" in word and "=" not in word} | {"citations"} & words
    assert named
    assert all(get(name) for name in named)


def test_an_id_in_another_spelling_is_found(everything):
    canonical = mint("section", "us-ut-quarry-bend", "17.12.040").value
    assert fetch(everything, id=f"<{canonical}>").id == canonical


SITTING = mint("sitting", "senate").value.removesuffix("senate")
OF_DOMAIN = {"climate": "cpr://doc/", "parliament": (iri_prefix("speech"), SITTING), "zoning": iri_prefix("section")}


@pytest.mark.parametrize(("domain", "prefix"), OF_DOMAIN.items())
def test_a_domain_filter_finds_texts_of_that_domain_only(everything, domain, prefix):
    query = {"query": "energy water land minister", "limit": 200}
    found = [hit.id for hit in call(everything, "search", "core", **query, filters={"domain": [domain]}).results]
    assert found
    assert all(iri.startswith(prefix) for iri in found)
    every = {hit.id for hit in call(everything, "search", "core", **query).results}
    assert not all(iri.startswith(prefix) for iri in every)
    with pytest.raises(InvalidInputError, match="parliament"):
        call(everything, "search", "core", **query, filters={"domain": ["speeches"]})


def test_the_climate_mount_searches_climate_documents_unless_told_otherwise(everything):
    query = {"query": "carbon price energy minister", "limit": 50}
    for tools in (mounted(frozenset({"climate"})), tagged("climate")):
        [search] = [tool for tool in tools if tool.name == "search"]
        assert {hit.id[:10] for hit in search.call(everything, query).results} == {"cpr://doc/"}
        asked = {**query, "filters": {"domain": ["parliament"]}}
        assert all(hit.id.startswith(OF_DOMAIN["parliament"]) for hit in search.call(everything, asked).results)
    every = {hit.id[:10] for hit in call(everything, "search", "core", **query).results}
    assert len(every) > 1


def test_the_name_of_the_speaker_finds_all_of_her_speech(everything):
    found = call(everything, "search", "core", query="Juniper", must=["Juniper Wattlebird"], limit=50).results
    assert found
    assert all("Wattlebird" in hit.title for hit in found)


def test_the_name_of_a_town_finds_its_sections_which_are_titled_with_it(everything):
    for town in ("Quarry Bend", "Upper Feign"):
        query = {"query": f"{town} definitions", "must": [town], "filters": {"domain": ["zoning"]}, "limit": 100}
        found = call(everything, "search", "core", **query).results
        assert found
        assert all(town in hit.title for hit in found), town
