"""Mentions follow the texts and the concepts of a store, whichever changes, and survive a kill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, SKOS, mint, sha256
from loaders.mentions.graph.refresh import MentionReport, mention_graph, refresh
from loaders.mentions.graph.text_units import find_units_with, may_contain
from tests.folders import without_models

MENTIONS = """
SELECT ?mention ?graph ?unit ?concept ?start ?end ?kind ?text WHERE {
  GRAPH ?graph { ?mention <http://www.w3.org/ns/oa#hasSource> ?unit ; kg:object ?concept ; kg:start ?start ;
    kg:end ?end ; kg:matchType ?kind . ?unit kg:mentions ?concept }
  ?unit schema:text ?text }"""


def opened(folder: Path) -> KnowledgeGraph:
    """A store with neither index nor workers, which finding mentions does not need."""
    nothing: Any = None
    chosen = without_models(folder)
    return KnowledgeGraph(chosen, OxigraphStore(folder), nothing, nothing)


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    graph = opened(tmp_path / "data")
    yield graph
    graph.store.close()


def put_text(kg: KnowledgeGraph, slug: str, *texts: str, language: str | None = "en") -> NamedNode:
    graph, document = mint("graph", "src", "climate", slug), mint("document", slug)
    quads = [Quad(document, DCTERMS.title, Literal(slug), graph)] if texts else []
    for index, text in enumerate(texts):
        unit = mint("passage", slug, str(index))
        quads += [Quad(unit, SCHEMA.text, Literal(text), graph), Quad(unit, DCTERMS.isPartOf, document, graph)]
        if language is not None:
            quads.append(Quad(unit, SCHEMA.inLanguage, Literal(language), graph))
    put(kg, graph, quads)
    return graph


def put(kg: KnowledgeGraph, graph: NamedNode, quads: list[Quad]) -> None:
    run = Run(Agent("loaders.test", "1"))
    kg.store.commit({graph: quads}, run.describe(kg.store, {graph: RecordOrigin(sha256(graph.value), ())}))


def put_concept(kg: KnowledgeGraph, qid: str, label: str | None, *, language: str = "en", **others: str) -> None:
    """A concept with its label, and in `others` its alias, negative name, and what it is not to be confused with."""
    graph, concept = mint("graph", "der", "skos", "climate", qid), mint("concept", qid)
    quads = [Quad(concept, RDF.type, SKOS.Concept, graph)] if label else []
    if label:
        quads.append(Quad(concept, SKOS.prefLabel, Literal(label, language=language), graph))
    for kind, predicate in (("alias", SKOS.altLabel), ("negative", KG.negativeLabel)):
        if kind in others:
            quads.append(Quad(concept, predicate, Literal(others[kind], language=language), graph))
    if "unlike" in others:
        quads.append(Quad(concept, KG.notToBeConfusedWith, mint("concept", others["unlike"]), graph))
    put(kg, graph, quads)


def rows(kg: KnowledgeGraph) -> list[Mapping[str, Any]]:
    return [dict(row) for row in kg.store.query(MENTIONS)]  # type: ignore[union-attr,call-overload]


def words(kg: KnowledgeGraph) -> list[tuple[str, str, str]]:
    """Each mention as unit, concept and the words that stand at its offsets."""
    return sorted(
        (
            row["unit"].value.removeprefix("cpr://doc/"),
            row["concept"].value.removeprefix("cpr://concept/"),
            row["text"].value[int(row["start"].value) : int(row["end"].value)],
        )
        for row in rows(kg)
    )


def test_a_mention_is_six_quads_in_the_graph_of_its_record(kg: KnowledgeGraph) -> None:
    source = put_text(kg, "act", "On Solar energies.")
    put_concept(kg, "Q1", "solar energy")
    report = refresh(kg)
    graph = mention_graph(source)
    assert graph == mint("graph", "ext", "mentions", "climate", "act")
    assert report.quads_added == len(kg.store.graph(graph)) == 6
    [row] = rows(kg)
    assert row["mention"].value == "cpr://doc/act#p=0&char=3,17&q=Q1"
    assert (row["graph"], row["start"].value, row["end"].value, row["kind"].value) == (graph, "3", "17", "label")


def test_the_graph_says_where_it_comes_from_and_how(kg: KnowledgeGraph) -> None:
    source = put_text(kg, "act", "Solar energy.")
    put_concept(kg, "Q1", "solar energy")
    report = refresh(kg)
    [why] = explain_iri(kg.store.query, NamedNode("cpr://doc/act#p=0&char=0,12&q=Q1"))
    assert (why.kind, why.agent, why.run) == ("extracted", "loaders.mentions", report.run)
    assert why.sources[0].locations == (source.value,)
    said = {quad.predicate for quad in kg.store.graph(mint("graph", "prov")) if quad.subject == mention_graph(source)}
    assert {KG.method, KG.confidence} <= said


def test_a_concept_of_another_wikibase_has_its_whole_iri_as_key(kg: KnowledgeGraph) -> None:
    put_text(kg, "act", "Solar energy.")
    put_concept(kg, "Q1", "solar energy")
    other = NamedNode("http://www.wikidata.org/entity/Q1")
    graph = mint("graph", "der", "skos", "wikidata", "Q1")
    put(
        kg,
        graph,
        [Quad(other, RDF.type, SKOS.Concept, graph), Quad(other, SKOS.altLabel, Literal("solar energy"), graph)],
    )
    refresh(kg)
    assert {(row["mention"].value.partition("&q=")[2], row["kind"].value) for row in rows(kg)} == {
        ("Q1", "label"),
        ("http%3A%2F%2Fwww.wikidata.org%2Fentity%2FQ1", "alias"),
    }


def test_a_store_without_concepts_is_left_alone(kg: KnowledgeGraph) -> None:
    put_text(kg, "act", "Solar energy.")
    assert replace(refresh(kg), seconds=0.0) == MentionReport()
    assert not (kg.settings.data_dir / "mentions").exists()


def test_only_texts_that_may_hold_a_changed_name_are_searched_again(kg: KnowledgeGraph) -> None:
    put_text(kg, "act", "Solar energy.", "Wind power.")
    put_text(kg, "law", "Wind-\npower, tides.")
    refresh(kg)
    put_concept(kg, "Q1", "solar energy")
    assert refresh(kg).text_units == 1
    put_concept(kg, "Q2", "wind powers")
    assert refresh(kg).text_units == 2
    assert words(kg) == [
        ("act#p=0", "Q1", "Solar energy"),
        ("act#p=1", "Q2", "Wind power"),
        ("law#p=0", "Q2", "Wind-\npower"),
    ]
    put_text(kg, "new", "Solar energy.")
    assert refresh(kg).text_units == 1
    gone = mention_graph(put_text(kg, "law"))
    put_concept(kg, "Q1", None)
    refresh(kg)
    assert words(kg) == [("act#p=1", "Q2", "Wind power")]
    assert gone not in kg.store.graphs()


@pytest.mark.parametrize("others", [["sk" * 50_000], ["".join(each) + "sksksk" for each in product("sk", repeat=9)]])
def test_texts_that_hold_one_of_many_or_very_long_words_are_found(kg: KnowledgeGraph, others: list[str]) -> None:
    put_text(kg, "act", "Wind power.", "Solar energy.", "(WIND-FARMS)", "S.U.N. rays", "(WINDS)")
    found = {unit.value[-1] for _, unit, _ in find_units_with(kg.store, {"wind", *others})}
    assert found == {"0", "2", "4"}


@pytest.mark.parametrize("name", ["", " ", "\u200b", ".", "a", "&", "[a-z]*(a+)+$", "\x00", "the", "x " * 100_000])
@pytest.mark.parametrize("language", ["en", "und"])
def test_a_name_that_is_none_costs_no_search_and_stops_none(kg: KnowledgeGraph, name: str, language: str) -> None:
    put_text(kg, "act", "Wind power. A part of the act & others.")
    put_concept(kg, "Q1", "wind power")
    refresh(kg)
    put_concept(kg, "Q2", "tide", alias=name, language=language)
    assert refresh(kg).text_units == 0
    assert words(kg) == [("act#p=0", "Q1", "Wind power")]


def nested(kg: KnowledgeGraph) -> list[tuple[str, str]]:
    """The mentions that are part of a longer one, with that one, by the ends of their IRIs."""
    found = kg.store.query("SELECT ?short ?long WHERE { ?short <https://w3id.org/quadcite/ns#nestedIn> ?long }")
    return sorted((row["short"].value.partition("&")[2], row["long"].value.partition("&")[2]) for row in found)  # type: ignore[union-attr]


def test_shorter_name_keeps_its_mention_and_is_marked_within_the_longer_one(kg: KnowledgeGraph) -> None:
    put_text(kg, "act", "Solar energy.")
    put_concept(kg, "Q1", "energy")
    refresh(kg)
    assert nested(kg) == []
    put_concept(kg, "Q2", "solar energy")
    assert refresh(kg).quads_added == 7
    assert words(kg) == [("act#p=0", "Q1", "energy"), ("act#p=0", "Q2", "Solar energy")]
    assert nested(kg) == [("char=6,12&q=Q1", "char=0,12&q=Q2")]
    put_concept(kg, "Q2", "lunar energy")
    assert refresh(kg).quads_removed == 7
    assert words(kg) == [("act#p=0", "Q1", "energy")]
    assert nested(kg) == []


def test_what_a_concept_is_not_called_and_not_confused_with_counts_when_it_changes(kg: KnowledgeGraph) -> None:
    put_text(kg, "act", "A power plant. Political power.")
    put_concept(kg, "Q1", "plant")
    put_concept(kg, "Q2", "power")
    put_concept(kg, "Q3", "political power")
    refresh(kg)
    assert [concept for _, concept, _ in words(kg)] == ["Q1", "Q2", "Q2", "Q3"]
    put_concept(kg, "Q1", "plant", negative="power plant")
    refresh(kg)
    assert [concept for _, concept, _ in words(kg)] == ["Q2", "Q2", "Q3"]
    put_concept(kg, "Q3", "power")
    put_concept(kg, "Q2", "power", unlike="Q3")
    refresh(kg)
    assert [concept for _, concept, _ in words(kg)] == ["Q3", "Q3"]


def test_unit_without_language_has_that_of_its_document(kg: KnowledgeGraph) -> None:
    source = put_text(kg, "act", "Gaz.", language=None)
    put_concept(kg, "Q1", "gaz", language="fr")
    for language, found in (("fr", 1), ("en", 0)):
        document = Quad(mint("document", "act"), SCHEMA.inLanguage, Literal(language), source)
        others = [quad for quad in kg.store.graph(source) if quad.predicate != SCHEMA.inLanguage]
        put(kg, source, [*others, document])
        refresh(kg)
        assert len(words(kg)) == found


def test_text_of_unknown_language_has_only_names_that_belong_to_no_language(kg: KnowledgeGraph) -> None:
    source = put_text(kg, "act", "Four gaz NOx.", language=None)
    put_concept(kg, "Q1", "four", language="tr")
    put_concept(kg, "Q2", "gaz", language="fr")
    put_concept(kg, "Q3", "NOx", language="mul")
    refresh(kg)
    assert words(kg) == [("act#p=0", "Q3", "NOx")]
    assert {quad.object.value for quad in language_quads(kg, source)} == {"und"}


def language_quads(kg: KnowledgeGraph, source: NamedNode) -> list[Quad]:
    name = source.value.rpartition("/")[2]
    return [
        quad
        for quad in kg.store.graph(mint("graph", "der", "language", "detected", "climate", name))
        if quad.predicate == SCHEMA.inLanguage
    ]


def test_texts_that_were_loaded_without_language_get_one_and_only_its_names(kg: KnowledgeGraph) -> None:
    text = "The number of units shall not be greater than four for each acre of land in the district, as measured."
    source = put_text(kg, "act", text, language=None)
    put_concept(kg, "Q1", "four", language="tr")
    put_concept(kg, "Q2", "unit", language="en")
    refresh(kg)
    assert words(kg) == [("act#p=0", "Q2", "units")]
    [quad] = language_quads(kg, source)
    assert quad.object.value == "en"
    [why] = explain_iri(kg.store.query, NamedNode(quad.graph_name.value))  # type: ignore[union-attr]
    assert (why.kind, why.agent) == ("derived", "loaders.languages")
    generation = kg.store.statistics().generation
    assert refresh(kg).graphs == 0
    assert refresh(kg, full=True).quads_added == 0
    assert kg.store.statistics().generation == generation


def test_names_that_are_not_searched_for_are_told_once(kg: KnowledgeGraph, caplog: pytest.LogCaptureFixture) -> None:
    put_text(kg, "act", "Water.")
    graph, concept = mint("graph", "der", "skos", "climate", "Q1"), mint("concept", "Q1")
    names = [Quad(concept, SKOS.prefLabel, Literal("x", language=tag), graph) for tag in ("en", "fr")]
    put(kg, graph, [Quad(concept, RDF.type, SKOS.Concept, graph), *names])
    assert refresh(kg).unfit == ["'x' of cpr://concept/Q1 is one character"]
    assert "'x' of cpr://concept/Q1" in caplog.text
    assert refresh(kg).unfit == []


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("bio-\nfuels", "biofuels", True),
        ("the U.S.A.", "usa", True),
        ("Énergie", "énergie", True),
        ("re\u00adnew", "renew", True),
        ("nothing here", "renew", False),
    ],
)
def test_what_may_hold_a_word(text: str, word: str, expected: bool) -> None:
    assert may_contain(text, {word}) is expected
