"""Texts whose source states no language get one in a derived graph: that of their jurisdiction, or the detected one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.search.index_sync import repair_index
from kg.sparql.terms import bind
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import select
from kg.vocabulary import BASE, DCTERMS, KG, PROV, RDF, SCHEMA, mint
from loaders.languages.graph import text_languages
from loaders.languages.graph.text_languages import derive_languages
from loaders.sources import load
from tests.loaders.conftest import MemoryIndex, values

ENGLISH = (
    "The council shall hold a public hearing before it grants a permit for a building that is higher than the roofs "
    "of the houses around it, and shall give notice of the hearing to the owners of those houses in writing. "
)
PORTUGUESE = (
    "O município realizará uma audiência pública antes de conceder uma licença para um edifício mais alto do que os "
    "telhados das casas vizinhas, e avisará por escrito os proprietários dessas casas com trinta dias de antecedência. "
)

WITHOUT_LANGUAGE = """
SELECT DISTINCT ?unit WHERE {
  ?unit schema:text ?text
  MINUS { ?unit schema:inLanguage ?own }
  MINUS { ?unit dcterms:isPartOf/schema:inLanguage ?shared }
}"""

LANGUAGES = """
SELECT ?thing ?language ?graph WHERE { GRAPH ?graph { ?thing schema:inLanguage ?language } }"""


def languages(kg: KnowledgeGraph) -> dict[str, tuple[str, str]]:
    """The language of each node that has one, with the kind of its graph."""
    return {
        row["thing"].value.removeprefix(BASE): (row["language"].value, row["graph"].value.removeprefix(BASE + "graph/"))  # type: ignore[union-attr]
        for row in select(kg.store.query, bind(LANGUAGES))
    }


def document(
    slug: str, *texts: str, language: str | None = None, place: str | None = None
) -> tuple[NamedNode, list[Quad]]:
    graph, iri = mint("graph", "src", "climate", slug), mint("document", slug)
    quads = [Quad(iri, RDF.type, KG.PolicyDocument, graph)]
    if place is not None:
        quads.append(Quad(iri, KG.jurisdiction, mint("place", place), graph))
    if language is not None:
        quads.append(Quad(iri, SCHEMA.inLanguage, Literal(language), graph))
    for index, text in enumerate(texts):
        unit = mint("passage", slug, str(index))
        quads += [Quad(unit, RDF.type, KG.Passage, graph), Quad(unit, DCTERMS.isPartOf, iri, graph)]
        quads.append(Quad(unit, SCHEMA.text, Literal(text), graph))
    return graph, quads


def section(key: str, text: str, town: str = "us-ut-nowhere") -> tuple[NamedNode, list[Quad]]:
    graph, iri = mint("graph", "src", "zoning", town, key), mint("section", town, key)
    return graph, [
        Quad(iri, RDF.type, KG.CodeSection, graph),
        Quad(iri, KG.jurisdiction, mint("municipality", town), graph),
        Quad(iri, SCHEMA.text, Literal(text), graph),
    ]


def put(kg: KnowledgeGraph, *records: tuple[NamedNode, list[Quad]]) -> None:
    """Commit records with the languages that are derived for them."""
    replace = dict(records)
    for graph, (quads, _) in derive_languages(kg.store, replace).items():
        replace[graph] = list(quads)
    kg.store.commit(replace)


@pytest.mark.parametrize(("source", "folder"), [("climate", "climate"), ("hansard", "hansard"), ("zoning", "zoning")])
def test_every_loaded_text_has_a_language(kg: KnowledgeGraph, source: str, folder: str) -> None:
    load(kg, source, [str(bundle.folder("fixtures") / folder)])
    assert len(select(kg.store.query, bind("SELECT ?unit WHERE { ?unit schema:text ?text } LIMIT 1"))) == 1
    assert select(kg.store.query, bind(WITHOUT_LANGUAGE)).rows == []


def test_section_of_us_town_is_english_by_its_jurisdiction(kg: KnowledgeGraph) -> None:
    put(kg, section("1", "R-1"), section("2", "Fees. " + ENGLISH))
    group = "der/language/jurisdiction/zoning/municipality/us-ut-nowhere"
    assert languages(kg) == {f"id/section/us-ut-nowhere/{key}": ("en", group) for key in "12"}


def test_derived_language_is_explained_by_its_rule_and_confidence(kg: KnowledgeGraph) -> None:
    load(kg, "zoning", [str(bundle.folder("fixtures") / "zoning")])
    graph = next(graph for graph in kg.store.graphs() if "/der/language/jurisdiction/" in graph.value)
    said = {quad.predicate: quad.object for quad in kg.store.graph(mint("graph", "prov")) if quad.subject == graph}
    assert said[RDF.type] == KG.DerivedGraph
    assert said[KG.method] == Literal("jurisdiction")
    assert float(said[KG.confidence].value) > 0.9
    quad = kg.store.graph(graph)[0]
    [why] = explain_triple(kg.store.query, quad.subject, quad.predicate, quad.object)  # type: ignore[arg-type]
    assert why.kind == "derived"


def test_language_is_detected_where_neither_source_nor_jurisdiction_states_it(kg: KnowledgeGraph) -> None:
    put(kg, document("lei", "Capítulo 1", PORTUGUESE, "3.2"), document("act", ENGLISH, language="en"))
    assert languages(kg) == {
        "cpr://doc/lei": ("pt", "der/language/detected/climate/lei"),
        "cpr://doc/act": ("en", "src/climate/act"),
    }
    [confidence] = values(kg.store, mint("document", "lei"), KG.languageConfidence)  # type: ignore[arg-type]
    assert 0.9 <= float(confidence) <= 1


def test_long_english_document_is_known_by_its_function_words_without_detection(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    monkeypatch.setattr(text_languages, "detect_language", refuse)
    put(kg, document("act", ENGLISH * 2, place="NOR"), document("plan", "Plan", ENGLISH * 2, place="NOR"))
    put(kg, document("order", ENGLISH * 2, place="NOR"))
    group = "der/language/words/climate/place/NOR"
    assert languages(kg) == {f"cpr://doc/{slug}": ("en", group) for slug in ("act", "plan", "order")}
    put(kg, document("act", place="NOR"), document("order", place="NOR"))
    assert languages(kg) == {"cpr://doc/plan": ("en", group)}


def test_language_of_laws_whose_file_states_none_is_derived_from_their_descriptions(kg: KnowledgeGraph) -> None:
    file = bundle.folder("fixtures") / "climate" / "laws.csv"
    load(kg, "climate", [str(file)])
    rows = [graph for language, graph in languages(kg).values() if language == "en"]
    assert rows
    assert all(graph.startswith("der/language/") for graph in rows)
    group = next(graph for graph in kg.store.graphs() if "/der/language/words/" in graph.value)
    documents = {quad.subject for quad in kg.store.graph(group)}
    said = [quad for quad in kg.store.graph(mint("graph", "prov")) if quad.subject == group]
    assert (KG.method, Literal("function words")) in [(quad.predicate, quad.object) for quad in said]
    premises = {quad.object for quad in said if quad.predicate == PROV.wasDerivedFrom}
    assert documents == {quad.subject for graph in premises for quad in kg.store.graph(graph)} & documents  # type: ignore[arg-type]
    assert len(premises) == len(documents)
    load(kg, "climate", [str(file)], index=False)
    assert [graph for language, graph in languages(kg).values() if language == "en"] == rows


def test_long_document_with_few_function_words_of_english_is_detected(kg: KnowledgeGraph) -> None:
    put(kg, document("lei", PORTUGUESE * 2, place="PRT"), document("note", "The act.", place="PRT"))
    found = languages(kg)
    assert found["cpr://doc/lei"] == ("pt", "der/language/detected/climate/lei")
    assert found["cpr://doc/note"][1] == "der/language/detected/climate/note"


@pytest.mark.parametrize("text", ["3.2.1", "R-1", "Table 4", "Anexo", "2019 2020 2021 17 % 4,5", "????", "\x00"])
def test_text_that_is_too_short_to_tell_is_undetermined(kg: KnowledgeGraph, text: str) -> None:
    put(kg, document("note", text))
    assert languages(kg)["cpr://doc/note"][0] == "und"


def test_long_passage_in_another_language_than_its_document_has_its_own(kg: KnowledgeGraph) -> None:
    put(kg, document("act", *[ENGLISH] * 30, PORTUGUESE * 2, "Título"))
    found = languages(kg)
    assert found["cpr://doc/act"][0] == "en"
    assert {thing for thing, (language, _) in found.items() if language == "pt"} == {"cpr://doc/act#p=30"}


def test_section_that_is_clearly_in_another_language_is_not_english(kg: KnowledgeGraph) -> None:
    put(kg, section("1", PORTUGUESE * 3), section("2", ENGLISH))
    assert languages(kg)["id/section/us-ut-nowhere/1"] == ("pt", "der/language/detected/zoning/us-ut-nowhere/1")
    assert languages(kg)["id/section/us-ut-nowhere/2"][0] == "en"


def test_table_with_the_words_of_the_other_sections_is_english_without_detection(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    table = (
        "Council | Permit | Hearing | Building\n" + "Higher building | 12 | 14' | N/A\nHouses around | R-1 | 9 |\n" * 8
    )
    monkeypatch.setattr(text_languages, "detect_language", refuse)
    put(kg, section("1", ENGLISH * 2), section("2", table))
    assert {language for language, _ in languages(kg).values()} == {"en"}


def test_table_with_few_letters_is_in_the_language_of_its_jurisdiction_without_detection(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    table = "Superficie | 12.000\n" * 7 + "(1) 4,5 % | 3.2.1 | 17-19\n" * 20
    monkeypatch.setattr(text_languages, "detect_language", refuse)
    put(kg, section("1", ENGLISH * 2), section("2", table))
    assert {language for language, _ in languages(kg).values()} == {"en"}


def test_words_of_english_sections_are_read_only_as_far_as_a_table_needs_them(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def strip_marks(text: str) -> str:
        read.append(text)
        return text_strip_marks(text)

    text_strip_marks = text_languages.strip_marks
    monkeypatch.setattr(text_languages, "strip_marks", strip_marks)
    table = "Council | Permit | Hearing | Building\nHigher building | 12 | 14'\nHouses around | R-1 | 9 |\n" * 8
    sections = [section(str(number), f"{number} {ENGLISH * 3}") for number in range(2, 30)]
    put(kg, section("1", table), *sections)
    assert {language for language, _ in languages(kg).values()} == {"en"}
    assert sum(text.endswith(ENGLISH) for text in read) == 1


def test_list_of_words_that_no_english_section_has_is_detected(kg: KnowledgeGraph) -> None:
    words = PORTUGUESE.replace(" a ", " ").replace(" o ", " ").replace(" de ", " ")
    put(kg, section("1", ENGLISH * 2), section("2", words))
    assert [language for language, _ in languages(kg).values() if language != "en"] == ["pt"]


def test_section_of_a_place_with_several_languages_is_detected(kg: KnowledgeGraph) -> None:
    put(kg, section("1", ENGLISH, "us-pr-nowhere"), section("2", "R-1", "us-pr-nowhere"))
    assert [languages(kg)[f"id/section/us-pr-nowhere/{key}"][0] for key in "12"] == ["en", "und"]


def test_languages_follow_their_texts(kg: KnowledgeGraph) -> None:
    first, second = section("1", ENGLISH), section("2", ENGLISH)
    law = document("lei", PORTUGUESE)
    put(kg, first, second, law)
    put(kg, (first[0], []), document("lei", ENGLISH * 2))
    assert {thing: language for thing, (language, _) in languages(kg).items()} == {
        "id/section/us-ut-nowhere/2": "en",
        "cpr://doc/lei": "en",
    }
    put(kg, (second[0], []), document("lei", ENGLISH, language="en"))
    assert languages(kg) == {"cpr://doc/lei": ("en", "src/climate/lei")}
    assert not [graph for graph in kg.store.graphs() if "/der/language/" in graph.value]


def test_language_of_removed_heading_is_removed(kg: KnowledgeGraph) -> None:
    graph, quads = section("1", ENGLISH)
    heading = graph, [quad for quad in quads if quad.predicate != SCHEMA.text]
    put(kg, heading, section("2", ENGLISH))
    assert set(languages(kg)) == {"id/section/us-ut-nowhere/1", "id/section/us-ut-nowhere/2"}
    put(kg, (graph, []))
    assert set(languages(kg)) == {"id/section/us-ut-nowhere/2"}


def test_language_of_a_heading_stays_when_a_section_below_it_changes(kg: KnowledgeGraph) -> None:
    graph, quads = section("1.2", ENGLISH)
    below = [
        *quads,
        Quad(mint("section", "us-ut-nowhere", "1.2"), DCTERMS.isPartOf, section("1", "")[1][0].subject, graph),
    ]
    put(kg, section("1", ENGLISH), (graph, below))
    expected = languages(kg)
    put(kg, (graph, below))
    assert languages(kg) == expected
    assert len(expected) == 2


def test_no_section_of_a_real_code_is_taken_for_another_language(kg: KnowledgeGraph, shared: Path) -> None:
    folder = shared / "data" / "zoning" / "spanish-fork"
    load(kg, "zoning", [str(folder)], municipality="Nowhere", state="UT", index=False)
    found = {language for thing, (language, _) in languages(kg).items() if "/section/" in thing}
    assert found == {"en"}


@pytest.mark.measures_processor_time
@pytest.mark.long
def test_cost_of_new_texts_does_not_grow_with_the_languages_in_the_store(tmp_path: Path) -> None:
    """A query that joined each new graph with all languages took a third of a load of 1,700 sections."""
    new = dict(section(str(number), "Ok.") for number in range(700))

    def measure(store: OxigraphStore) -> float:
        started = time.process_time()
        for _ in range(3):
            derive_languages(store, new)
        return time.process_time() - started

    group = NamedNode(f"{BASE}graph/der/language/jurisdiction/zoning/municipality/us-ut-elsewhere")
    with OxigraphStore(tmp_path / "empty") as empty, OxigraphStore(tmp_path / "full") as full:
        stated = (Quad(mint("section", str(n)), SCHEMA.inLanguage, Literal("en"), group) for n in range(20_000))
        full.commit({group: list(stated)})
        assert measure(full) < 4 * measure(empty)


def test_the_index_has_the_derived_language_of_a_text_by_load_and_by_repair(kg: KnowledgeGraph, tmp_path: Path) -> None:
    text = PORTUGUESE * 3
    rows = "".join(
        f'{{"speech_id": "{number}", "speaker": "Ada Quill", "chamber": "Senate", "country": "AUS", '
        f'"date": "2001-01-0{number}", "text": "{words}"}}\n'
        for number, words in ((1, text), (2, ENGLISH * 3))
    )
    (tmp_path / "speeches.jsonl").write_text(rows, encoding="utf-8")
    load(kg, "parliament", [str(tmp_path)])
    index = cast(MemoryIndex, kg.search)
    found = {unit.text[:9]: unit.language for unit in index.units()}
    assert found == {text[:9]: "pt", ENGLISH[:9]: None}
    rebuilt = MemoryIndex()
    repair_index(kg.store, cast(Any, rebuilt), full=True)
    assert rebuilt.units() == index.units()
    assert rebuilt.state() == index.state()
