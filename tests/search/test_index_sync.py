"""The prelude of units: title and heading, short and part of the meaning where a unit is a piece of running text."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.search import index_sync
from kg.search.index_sync import (
    DERIVED_PARTY,
    GraphFacts,
    IndexRepair,
    LoadedGraphs,
    UnitFacts,
    build_units,
    find_states,
    refresh,
    repair_index,
    to_code,
)
from kg.search.protocol import GraphUnits
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch
from kg.vocabulary import DCTERMS, DERIVED, FOAF, KG, PROV, PROV_GRAPH, RDF, SCHEMA, SKOS, mint
from tests.tools.made_up import MemoryStore

HEADING = mint("code", "blockType", "sectionHeading").value


class Kept:
    """An index that keeps what it is given."""

    def __init__(self) -> None:
        self.graphs: dict[str, GraphUnits] = {}
        self.missing: list[int] = []

    def note_missing(self, graphs):
        self.missing.append(graphs)

    def replace(self, graphs):
        self.graphs |= graphs

    def remove(self, graphs):
        raise AssertionError(graphs)

    def state(self):
        return {graph: content.content_sha256 for graph, content in self.graphs.items()}


def test_what_stands_alone_has_its_title_and_heading_whole():
    title = "An Act " * 40
    facts = [UnitFacts("urn:1", "urn:d", 0, "Scope", HEADING), UnitFacts("urn:2", "urn:d", 1, "It applies.")]
    units = build_units("urn:g", {"urn:d": title}, facts)
    assert [(unit.prelude, unit.in_context) for unit in units] == [(title, False), (f"{title}\nScope", False)]


def test_of_what_a_piece_stands_under_the_start_counts_in_whole_words():
    bills = ", ".join(f"Harbour Amendment Bill {number}" for number in range(40))
    [piece] = build_units("urn:g", {"urn:d": bills}, [UnitFacts("urn:1", "urn:d", 0, "I rise.", is_cut=True)])
    assert piece.in_context
    assert bills.startswith(piece.prelude + " ")
    assert 100 < len(piece.prelude) <= 150
    [short] = build_units("urn:g", {"urn:d": "Roads"}, [UnitFacts("urn:1", "urn:d", 0, "I rise.", is_cut=True)])
    assert (short.prelude, short.in_context) == ("Roads", True)
    [run] = build_units("urn:g", {"urn:d": "x" * 400}, [UnitFacts("urn:1", "urn:d", 0, "I rise.", is_cut=True)])
    assert run.prelude == "x" * 150


def test_names_of_document_and_unit_are_indexed_apart_from_the_prelude():
    facts = [UnitFacts("urn:1", "urn:d", 0, "I rise.", is_cut=True), UnitFacts("urn:2", "urn:d", 1, "So do I.")]
    names = {"urn:d": {"Ada Quill", "Australia"}, "urn:2": {"Lower Ford"}}
    units = build_units("urn:g", {"urn:d": "Roads"}, facts, names)
    assert [unit.names for unit in units] == ["Ada Quill\nAustralia", "Ada Quill\nAustralia\nLower Ford"]
    assert [unit.prelude for unit in units] == ["Roads", "Roads"]


def test_speakers_and_places_are_named_as_sources_name_them_and_not_as_users_do():
    graph = mint("graph", "src", "hansard", "1")
    speech, person, place = NamedNode("urn:d"), NamedNode("urn:p"), NamedNode("urn:aus")
    chunk = NamedNode("urn:d#1")
    other, forged, curated = (mint("graph", *parts) for parts in (("ref", "person", "p"), ("user", "x"), ("cur", "x")))
    quads = [
        Quad(chunk, DCTERMS.isPartOf, speech, graph),
        Quad(chunk, SCHEMA.position, Literal(0), graph),
        Quad(chunk, SCHEMA.text, Literal("I rise."), graph),
        Quad(speech, SCHEMA.inLanguage, Literal("en"), graph),
        Quad(speech, KG.speakerAsRecorded, Literal("QUILL, A."), graph),
        Quad(speech, KG.speaker, person, graph),
        Quad(speech, KG.jurisdiction, place, graph),
        Quad(person, FOAF.name, Literal("Ada Quill"), other),
        Quad(place, SKOS.prefLabel, Literal("Australia", language="en"), other),
        Quad(place, SKOS.prefLabel, Literal("Australie", language="fr"), other),
        Quad(person, FOAF.name, Literal("Zebedee"), forged),
        Quad(person, FOAF.name, Literal("Zephyrine"), curated),
        Quad(graph, KG.contentSha256, Literal("h"), PROV_GRAPH),
    ]
    store, index = MemoryStore(), Kept()
    store.inner.extend(quads)
    refresh(store, index, {graph.value: "h"})
    [content] = index.graphs.values()
    [unit] = content.units
    assert (unit.names, unit.language) == ("Ada Quill\nAustralia\nQUILL, A.", "en")
    assert content.content_sha256 != "h"
    # the state that a load leaves is the one that a repair expects
    assert repair_index(store, index) == IndexRepair()


def test_texts_of_users_in_documents_of_sources_are_not_indexed(tmp_path):
    """They follow the sources: a text is indexed while no source describes its document."""
    source, user = mint("graph", "src", "climate", "act"), mint("graph", "user", "notes")
    act, own = mint("document", "act"), mint("document", "own")
    written = {NamedNode("urn:added"): act, NamedNode("urn:mine"): own}
    index = Kept()

    def indexed() -> set[str]:
        return {unit.iri for content in index.graphs.values() for unit in content.units}

    with OxigraphStore(tmp_path) as store:
        described = frozenset({Quad(user, KG.contentSha256, Literal("h"), PROV_GRAPH)})
        for unit, parent in written.items():
            said = (DCTERMS.isPartOf, parent), (SCHEMA.position, Literal(0)), (SCHEMA.text, Literal("A lighthouse."))
            quads = [Quad(unit, *each, user) for each in said]
            store.extend(user, quads, lambda _: Patch(remove=frozenset(), add=described))
        refresh(store, index, {user.value: "h"})
        assert indexed() == {"urn:added", "urn:mine"}
        store.commit({source: [Quad(act, DCTERMS.title, Literal("Act"), source)]})
        assert repair_index(store, index) == IndexRepair(1)
        assert indexed() == {"urn:mine"}
        refresh(store, index, {user.value: "h"})
        assert indexed() == {"urn:mine"}
        assert repair_index(store, index) == IndexRepair()
        store.commit({source: []})
        assert repair_index(store, index) == IndexRepair(1)
        assert indexed() == {"urn:added", "urn:mine"}


@pytest.mark.parametrize(
    ("parent", "position"),
    [
        (mint("document", "own"), Literal("first")),
        (mint("document", "own"), Literal(1.5)),
        (Literal("own"), Literal(0)),
    ],
)
def test_malformed_texts_of_users_are_left_out_of_the_index(tmp_path, parent, position):
    user = mint("graph", "user", "notes")
    described = frozenset({Quad(user, KG.contentSha256, Literal("h"), PROV_GRAPH)})
    index = Kept()
    with OxigraphStore(tmp_path) as store:
        for unit, said in (("urn:bad", (parent, position)), ("urn:good", (mint("document", "own"), Literal(1)))):
            values = zip((DCTERMS.isPartOf, SCHEMA.position, SCHEMA.text), (*said, Literal(f"Of {unit}.")), strict=True)
            quads = [Quad(NamedNode(unit), name, value, user) for name, value in values]
            store.extend(user, quads, lambda _: Patch(remove=frozenset(), add=described))
        repair_index(store, index)
    assert [unit.iri for content in index.graphs.values() for unit in content.units] == ["urn:good"]


@pytest.mark.parametrize("held", [index_sync.HELD, 0])
def test_names_that_a_load_adds_later_are_indexed_in_its_earlier_graphs_too(held, monkeypatch):
    monkeypatch.setattr(index_sync, "HELD", held)
    first, second = (mint("graph", "src", "hansard", key) for key in "12")
    person, about = NamedNode("urn:p"), mint("graph", "ref", "person", "p")
    store, index, load_units = MemoryStore(), Kept(), index_sync._load_units
    loaded = LoadedGraphs(store, index)

    def commit(graph: NamedNode, name: str) -> None:
        speech, chunk = NamedNode(f"{graph.value}/d"), NamedNode(f"{graph.value}/d#1")
        said = [
            (chunk, DCTERMS.isPartOf, speech),
            (chunk, SCHEMA.position, Literal(0)),
            (chunk, SCHEMA.text, Literal("I rise.")),
            (speech, SCHEMA.inLanguage, Literal("en")),
            (speech, KG.speaker, person),
        ]
        store.inner.extend(Quad(*each, graph) for each in said)
        store.inner.add(Quad(person, FOAF.name, Literal(name), about))
        store.inner.add(Quad(graph, KG.contentSha256, Literal("h"), PROV_GRAPH))
        facts = GraphFacts([UnitFacts(chunk.value, speech.value, 0, "I rise.")])
        for each in said:
            facts.add(*each)
        loaded.replace({graph.value: (find_states(store, {graph.value: "h"})[graph.value], facts)})

    commit(first, "Ada Quill")
    commit(second, "Adelaide Quill")
    asked = []
    monkeypatch.setattr(index_sync, "_load_units", lambda *given: asked.append(given) or load_units(*given))
    loaded.finish()
    assert bool(asked) == (held == 0)
    units = {graph: [(unit.names, unit.language) for unit in content.units] for graph, content in index.graphs.items()}
    both = [("Ada Quill\nAdelaide Quill", "en")]
    assert units == {first.value: both, second.value: both}
    assert repair_index(store, index) == IndexRepair()
    assert index.missing == [0], "nothing differed"
    del index.graphs[first.value]
    assert repair_index(store, index).replaced >= 1
    assert (index.missing[-2] >= 1, index.missing[-1]) == (True, 0)
    rebuilt = Kept()
    assert repair_index(store, rebuilt, full=True).replaced >= 2
    assert rebuilt.graphs == index.graphs


def test_a_section_is_indexed_with_all_headings_above_it_also_when_one_changes_later():
    store, index = MemoryStore(), Kept()

    def load(*sections: tuple[str, str]) -> None:
        loaded = LoadedGraphs(store, index)
        for key, title in sections:
            graph, node = mint("graph", "src", "zoning", "us-ut-x", key), mint("section", "us-ut-x", key)
            above = mint("section", "us-ut-x", key.rpartition(".")[0] or key)
            said = [
                *([(node, DCTERMS.isPartOf, above)] if above != node else []),
                (node, SCHEMA.position, Literal(0)),
                (node, SCHEMA.text, Literal("It is so.")),
                (node, DCTERMS.title, Literal(title)),
                (node, KG.level, Literal(len(key.split(".")))),
            ]
            for quad in list(store.inner.quads_for_pattern(None, None, None, graph)):
                store.inner.remove(quad)
            store.inner.extend(Quad(*each, graph) for each in said)
            store.inner.add(Quad(graph, KG.contentSha256, Literal("h"), PROV_GRAPH))
            facts = GraphFacts([UnitFacts(node.value, above.value, 0, "It is so.")])
            for each in said:
                facts.add(*each)
            loaded.replace({graph.value: (find_states(store, {graph.value: "h"})[graph.value], facts)})
        loaded.finish()

    def preludes() -> list[str]:
        assert all(unit.in_context for content in index.graphs.values() for unit in content.units)
        return [unit.prelude for _, content in sorted(index.graphs.items()) for unit in content.units]

    load(("1.1.1", "Height"), ("1.1", "R-1 District"), ("1", "Zoning"))
    assert preludes() == ["Zoning", "Zoning\nR-1 District", "Zoning\nR-1 District\nHeight"]
    load(("1", "Land use"))
    assert preludes() == ["Land use", "Land use\nR-1 District", "Land use\nR-1 District\nHeight"]
    rebuilt = Kept()
    repair_index(store, rebuilt, full=True)
    assert rebuilt.graphs == index.graphs


# Codes.


def test_stated_codes_come_before_derived_ones_and_the_unit_before_its_document():
    facts = GraphFacts(
        [UnitFacts("urn:d#1", "urn:d", 0, "I rise."), UnitFacts("urn:d#2", "urn:d", 1, "Je me lève.", language="fr")],
        derived={"urn:d": {KG.party: ["urn:labor"], KG.state: ["urn:vic"]}},
    )
    facts.add(NamedNode("urn:d"), RDF.type, KG.Speech)
    facts.add(NamedNode("urn:d"), RDF.type, KG.Document)
    facts.add(NamedNode("urn:d"), DCTERMS.date, Literal("2014-07-09"))
    facts.add(NamedNode("urn:d"), KG.party, NamedNode("urn:greens"))
    facts.add(NamedNode("urn:d"), SCHEMA.inLanguage, Literal("en"))
    said = {"domain": ["parliament"], "year": ["2014"], "party": ["urn:greens"], "state": ["urn:vic"]}
    first, second = facts.build_units("urn:g", {})
    assert first.codes == {**said, "languages": ["en"]}
    assert second.codes == {**said, "languages": ["fr"]}


@pytest.mark.parametrize(
    ("value", "year"), [("1998", "1998"), ("1998-06", "1998"), ("12026-01-01", None), ("May", None)]
)
def test_a_year_is_the_first_four_digits_of_a_date(value, year):
    assert to_code("year", value) == year


def test_what_is_derived_of_a_graph_is_in_its_state_and_only_that():
    store, index = MemoryStore(), Kept()
    graphs = [mint("graph", "src", "hansard", key) for key in "12"]
    for graph in graphs:
        store.inner.extend(
            Quad(NamedNode(f"{graph.value}/d"), name, value, graph)
            for name, value in ((SCHEMA.position, Literal(0)), (SCHEMA.text, Literal("I rise.")))
        )
        store.inner.add(Quad(graph, KG.contentSha256, Literal("h"), PROV_GRAPH))
    assert repair_index(store, index) == IndexRepair(2)

    def derive(root: str, value: str) -> None:
        derived, speech = NamedNode(f"{root}2019-05-14"), NamedNode(f"{graphs[0].value}/d")
        store.inner.update(f"DROP SILENT GRAPH <{derived.value}>")
        store.inner.update(f"DELETE WHERE {{ GRAPH <{PROV_GRAPH.value}> {{ <{derived.value}> ?p ?o }} }}")
        if value:
            store.inner.add(Quad(speech, KG.party, NamedNode(value), derived))
            store.inner.add(Quad(derived, KG.contentSha256, Literal(value), PROV_GRAPH))
            store.inner.add(Quad(derived, PROV.wasDerivedFrom, graphs[0], PROV_GRAPH))

    for root, value, replaced in (
        (DERIVED_PARTY, "urn:greens", 1),
        (DERIVED_PARTY, "urn:greens", 0),
        (DERIVED_PARTY, "urn:labor", 1),
        (f"{DERIVED}membership/", "urn:labor", 0),
        (f"{DERIVED}membership/", "", 0),
        (DERIVED_PARTY, "", 1),
    ):
        derive(root, value)
        assert repair_index(store, index) == IndexRepair(replaced), (root, value)
        parties = {unit.codes.get("party", ("",))[0] for content in index.graphs.values() for unit in content.units}
        assert parties == {"", value} if root == DERIVED_PARTY else parties <= {"", "urn:labor"}


def test_short_unit_in_a_language_that_little_of_its_document_has_is_in_that_of_the_document() -> None:
    said = [
        ("Le comité de pilotage se réunit quatre fois par an, sur convocation de son président. " * 6, "fr"),
        ("Article 4: Composition", "en"),
        ("DECRETE", "ro"),
        ("The annex of this decree is in English, as the parties agreed in their letters of May. " * 4, "en"),
        ("Annexe", None),
    ]
    facts = [UnitFacts(f"urn:d#{at}", "urn:d", at, text, language=tag) for at, (text, tag) in enumerate(said)]
    assert [unit.language for unit in build_units("urn:g", {}, facts)] == ["fr", "en", "fr", "en", None]
    without_annex = [fact for fact in facts if fact.iri != "urn:d#3"]
    assert [unit.language for unit in build_units("urn:g", {}, without_annex)] == ["fr", "fr", "fr", None]


@pytest.mark.parametrize(("stated", "found"), [({"urn:d": "fr"}, "fr"), ({"urn:d": "en"}, "en"), ({}, "en")])
def test_short_unit_in_a_language_that_its_document_does_not_state_is_in_the_stated_one(
    stated: dict[str, str], found: str
) -> None:
    said = [
        ("Le comité national des phares se réunit quatre fois par an.", "fr"),
        ("Article 4: National lighthouse board", "en"),
    ]
    facts = [UnitFacts(f"urn:d#{at}", "urn:d", at, text, language=tag) for at, (text, tag) in enumerate(said)]
    units = build_units("urn:g", {}, facts, languages=stated)
    assert [unit.language for unit in units] == ["fr", found]
