"""From codes to graphs: one per section, the shared graphs, and the lists that a source states next to its text."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, RecordError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.search.index_sync import repair_index
from kg.shacl.gate import RecordGate
from kg.vocabulary import DCTERMS, ELI, KG, RDF, SCHEMA, SKOS, mint, mint_part, mint_subsection
from loaders import model
from loaders.model import Origin, Snapshot
from loaders.sources import load
from loaders.zoning.graph.authorities import Authorities, merge, municipality_key, state_of
from loaders.zoning.graph.rule_quads import level_of, number_in, quantity_of, type_and_bound, unit_of
from loaders.zoning.graph.section_records import build_section_record, build_statements_record
from loaders.zoning.loader import Reading
from loaders.zoning.readers.code_model import DOMAIN, Cell, Citation, Definition, Note, Section, Subsection, Table
from tests.loaders.conftest import MemoryIndex, values
from tests.loaders.conftest import content as content_of

FIXTURES = Path(__file__).parent.parent.parent.parent.parent / "fixtures" / "zoning"
TITLE = FIXTURES / "title_17_zoning.html"
QUARRY_BEND = mint("municipality", "us-ut-quarry-bend")
ORIGIN = Origin(Snapshot("0" * 64, "/fictional/title.html"))
TEXT = "(a) Duplexes.\nDistrict | Height\nR-1 | 35 feet"
SECTION = Section(
    "17.20.040",
    "17.20.040",
    "Duplexes",
    "section",
    3,
    "17.20",
    2,
    TEXT,
    (Subsection(("a",), 0, 13, "Duplexes"), Subsection(("a~2", "1"), 3, 13)),
    (Table(14, len(TEXT), ((Cell("District", 14, 22, header=True), Cell("Height", 25, 31)),), 1, "Heights"),),
    (Citation("§17.12.010|(a)"), Citation("8|2A|I"), Citation("§17.20.040|(b)")),
    (Note("Ord. 1"), Note("See there.", "Editor's Notes", (Citation(document="Ord. 2"),), "2020")),
    "reserved",
    (4, 9),
)


def content(kg: KnowledgeGraph) -> set[Quad]:
    """All quads but those of provenance."""
    return content_of(kg.store)  # type: ignore[arg-type]


def section(key: str) -> NamedNode:
    return mint("section", "us-ut-quarry-bend", key)


def record(given: Section = SECTION) -> tuple[list[Quad], dict[NamedNode, list[Quad]]]:
    made = build_section_record(given, Authorities("Quarry Bend", "Utah"), ORIGIN)
    return model.to_quads(made), {graph: list(quads) for graph, quads in made.shared.items()}


def test_a_section_says_what_it_is_where_it_stands_and_what_it_cites() -> None:
    quads, shared = record()
    said = {(q.subject, q.predicate, q.object) for q in quads}
    iri = section("17.20.040")
    assert {
        (iri, DCTERMS.isPartOf, section("17.20")),
        (iri, KG.level, Literal(3)),
        (iri, SCHEMA.position, Literal(2)),
        (iri, SCHEMA.text, Literal(TEXT)),
        (iri, KG.jurisdiction, QUARRY_BEND),
        (iri, KG.inForceStatus, Literal("reserved")),
        (iri, KG.historyNote, Literal("Ord. 1")),
        (iri, KG.sourceLines, Literal("4-9")),
        (iri, ELI.type_subdivision, mint("code", "subdivisionType", "section")),
        (mint_subsection(iri, ("a~2", "1")), KG.label, Literal("(a)(1)")),
        (mint_part(iri, "table", 0), DCTERMS.title, Literal("Heights")),
        (mint_part(iri, "note", 0), KG.rawCitation, Literal("Ord. 2")),
    } <= said
    assert {o for s, p, o in said if p == ELI.cites} == {section("17.12.010"), section("8|2A|I")}
    cells = next(o for s, p, o in said if p == KG.cells)
    assert isinstance(cells, Literal)
    assert json.loads(cells.value) == [[{"text": "District", "header": True}, "Height"]]
    assert {graph.value.rpartition("/ref/")[2] for graph in shared} == {
        "place/USA",
        "place/US-UT",
        "municipality/us-ut-quarry-bend",
    }


def test_a_record_passes_its_shapes_with_all_that_it_shares() -> None:
    quads, shared = record()
    graph = mint("graph", "src", DOMAIN, "us-ut-quarry-bend", "17.20.040")
    assert not any(RecordGate().check({graph: quads, **shared}).values())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"level": 0}, "A section has exactly one level"),
        ({"parent": "17.20.040"}, "A section is no part of itself"),
        ({"tables": (Table(0, 900, ()),)}, "beyond the end of the text"),
    ],
)
def test_what_cannot_be_is_found_by_the_shapes(change: dict[str, object], reason: str) -> None:
    quads, shared = record(replace(SECTION, **change))  # type: ignore[arg-type]
    graph = mint("graph", "src", DOMAIN, "us-ut-quarry-bend", "17.20.040")
    found = RecordGate().check({graph: quads, **shared})[graph]
    assert any(reason in violation.message for violation in found)


@pytest.mark.parametrize(
    ("name", "state", "key"),
    [
        ("Quarry Bend", "UT", "us-ut-quarry-bend"),
        ("St. Élan's", "utah", "us-ut-st-élan-s"),
        ("x", "DC", "us-dc"),
        ("Tern Harbour", "AU-TAS", "au-tas-tern-harbour"),
        ("x", "us-ut", "us-ut-x"),
        ("x", "WA", "us-wa-x"),
    ],
)
def test_a_municipality_is_known_by_its_state_and_name(name: str, state: str, key: str) -> None:
    assert municipality_key(name, state) == key


def test_a_municipality_of_any_country_is_within_its_state_and_country() -> None:
    found = Authorities("Tern Harbour", "au-tas")
    within = {
        (quad.subject, quad.object) for quads in found.own.values() for quad in quads if quad.predicate == KG.within
    }
    state = mint("place", "AU-TAS")
    assert within == {(found.iri, state), (state, mint("place", "AUS"))}
    assert state_of(found.key) == found.state == "AU-TAS"
    assert state_of("us-dc") == "DC"


@pytest.mark.parametrize("state", ["Victoria", "VIC", "AUS", "US-XX", "Bedford"])
def test_a_state_outside_the_united_states_is_known_by_its_code_only(state: str) -> None:
    """Names and short codes are ambiguous: Bedford is a part of England and a county."""
    with pytest.raises(RecordError, match="ISO 3166-2"):
        municipality_key("Tern Harbour", state)


def test_what_is_no_state_or_no_name_is_refused() -> None:
    with pytest.raises(RecordError, match="'Utopia'"):
        Authorities("Quarry Bend", "Utopia")
    with pytest.raises(RecordError, match="name"):
        Authorities(" - ", "UT")
    with pytest.raises(InvalidInputError, match="--state"):
        Reading.from_options({"state": "Utopia"})


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_districts_are_the_same_only_where_their_codes_are(one: str, other: str) -> None:
    shared = Authorities("Quarry Bend", "UT")
    if one.isascii() and other.isascii():
        assert (shared.district(one) == shared.district(other)) == (one == other)


def test_two_codes_that_differ_in_a_hyphen_are_two_districts() -> None:
    shared = Authorities("Quarry Bend", "UT")
    assert len({shared.district(code).value for code in ("R1-H", "R1H", "R1 H", "R1/H")}) == 4


def test_a_name_is_what_is_said_last_and_the_code_only_where_there_is_none() -> None:
    graph, iri = mint("graph", "ref", "district", "m", "R-1"), mint("district", "m", "R-1")

    def said(name: str) -> list[Quad]:
        return [
            Quad(iri, SKOS.notation, Literal("R-1"), graph),
            Quad(iri, SKOS.prefLabel, Literal(name), graph),
        ]

    assert set(merge(said("Homes"), said("R-1"))) == set(said("Homes"))
    assert set(merge(said("Homes"), said("Houses"))) == set(said("Houses"))


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ("P", "byRight"),
        ("Special  Permit", "conditional"),
        ("Prohibited", "notPermitted"),
        ("Overlay", None),
        ("Allowed/Conditional", "byRightOrConditional"),
        ("Special Use Permit required", "conditional"),
        ("Permitted use", "byRight"),
        ("As-of-right", "byRight"),
        ("not allowed", "notPermitted"),
        ("Permitted above shops", None),
        ("Permit", None),
        ("", None),
    ],
)
def test_levels_are_read_from_the_words_of_sources(words: str, level: str | None) -> None:
    assert level_of(words) == level


@pytest.mark.parametrize(
    ("words", "code", "bound"),
    [
        ("Minimum Lot Width", "lot-width", "min"),
        ("Max. height", "building-height", "max"),
        ("lotAreaMinimum", "lot-area", "min"),
        ("Rear Setback", "rear-setback", None),
        ("Front yard", "front-setback", None),
        ("Lot area per kiln", "lot-area-per-kiln", None),
        ("%", "unnamed", None),
    ],
)
def test_a_standard_is_told_apart_from_its_bound(words: str, code: str, bound: str | None) -> None:
    assert type_and_bound(words) == (code, bound)


@pytest.mark.parametrize(
    ("raw", "number"), [("35", "35"), ("1,200.5", "1200.5"), (".69", "0.69"), ("35, 40 on corners", None), ("", None)]
)
def test_only_what_is_a_number_and_no_more_is_one(raw: str, number: str | None) -> None:
    found = number_in(raw)
    assert (None if found is None else str(found)) == number


@pytest.mark.parametrize(
    ("raw", "words", "value", "unit"),
    [
        ("35", "feet", "35", "FT"), ("35 feet", "", "35", "FT"), ("35 ft.", "feet", "35", "FT"),
        ("40%", "", "40", "PERCENT"),
        ("35 feet", "acres", None, "AC"), ("20 to 30 feet", "", None, None), ("35 feet from it", "", None, None),
        ("35", "", "35", None), ("none", "", None, None),
    ],
)  # fmt: skip
def test_a_value_may_have_its_unit_itself(raw: str, words: str, value: str | None, unit: str | None) -> None:
    number, measure = quantity_of(raw, words)
    assert (None if number is None else str(number)) == value
    assert (None if measure is None else measure.value.rpartition("/")[2]) == unit


def test_units_are_those_of_qudt_or_our_own() -> None:
    assert unit_of("square  feet") == NamedNode("http://qudt.org/vocab/unit/FT2")
    assert unit_of("units per acre") == mint("code", "unit", "dwelling-per-acre")
    assert unit_of("sq.ft.") == unit_of("gross square feet") == NamedNode("http://qudt.org/vocab/unit/FT2")
    for words in ("furlongs", "5 feet", "feet from the road", "half", ""):
        assert unit_of(words) is None


def test_the_fictional_code_is_loaded_whole_and_only_once(kg: KnowledgeGraph) -> None:
    report = load(kg, "zoning", [str(TITLE)], state="UT")
    assert (report.loaded, report.rejections) == (78, [])
    kinds = Counter(
        str(quad.object).rstrip(">").rpartition("/")[2]
        for quad in content(kg)
        if quad.predicate == ELI.type_subdivision
    )
    assert kinds == {"title": 1, "chapter": 16, "section": 61}
    again = load(kg, "zoning", [str(TITLE)], state="UT")
    assert (again.loaded, again.skipped, again.quads_added) == (0, 78, 0)


def test_the_index_has_the_title_of_a_section_with_its_words_whoever_fills_it(kg: KnowledgeGraph) -> None:
    load(kg, "zoning", [str(TITLE)], state="UT")
    index = kg.search
    assert isinstance(index, MemoryIndex)
    units = {unit.iri: unit for unit in index.units()}
    assert units[section("17.12.010").value].prelude == "Zoning\nAdministration\nZoning Permit"
    index.graphs.clear()
    repair_index(kg.store, kg.search)
    assert {unit.iri: unit for unit in index.units()} == units


def test_why_names_the_lines_of_a_section(kg: KnowledgeGraph) -> None:
    load(kg, "zoning", [str(TITLE)], state="UT")
    [source] = explain_iri(kg.store.query, section("17.12.010"))[0].sources
    assert source.lines is not None
    assert source.locations == (f"{TITLE.parent.name}/{TITLE.name}",)


def test_a_line_more_above_a_section_is_no_change_of_it(kg: KnowledgeGraph, tmp_path: Path) -> None:
    page = TITLE.read_text()
    path = tmp_path / TITLE.name
    path.write_text(page)
    assert load(kg, "zoning", [str(path)], state="UT").loaded > 0
    path.write_text(page.replace("<body>", "<body>\n\n\n"))
    assert load(kg, "zoning", [str(path)], state="UT").loaded == 0
    path.write_text(page.replace("This title is known as", "\nThis title is and was known as"))
    assert load(kg, "zoning", [str(path)], state="UT").loaded == 1


def test_a_file_that_does_not_say_its_state_is_rejected_with_what_to_give(kg: KnowledgeGraph, tmp_path: Path) -> None:
    report = load(kg, "zoning", [str(shutil.copy(str(TITLE), tmp_path))])
    [rejection] = report.rejections
    assert "--state" in rejection.reason


def test_a_section_without_parent_is_found_by_search_too(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "code.json"
    path.write_text(
        json.dumps(
            {
                "municipality": "Lone Rock",
                "state": "UT",
                "sections": [{"section_id": "1", "title": "All", "raw_content": "Be quiet."}],
            }
        )
    )
    load(kg, "zoning", [str(path)])
    index = kg.search
    assert isinstance(index, MemoryIndex)
    [unit] = index.units()
    assert (unit.text, unit.prelude, unit.parent) == ("Be quiet.", "All", unit.iri)
    index.graphs.clear()
    repair_index(kg.store, kg.search)
    assert index.units() == [unit]


def test_what_a_source_states_is_asserted_with_its_words(kg: KnowledgeGraph) -> None:
    report = load(kg, "zoning", [str(FIXTURES / "upper_feign.json")])
    assert report.rejections == []
    quads = [q for q in content(kg) if "/table/upper_feign" in q.graph_name.value]  # type: ignore[union-attr]
    raw = {q.object.value for q in quads if q.predicate in (KG.rawLevel, KG.rawValue)}  # type: ignore[union-attr]
    assert raw == {"special permit", "P", "150", "10% of lot depth"}
    standards = [q.subject for q in quads if q.predicate == RDF.type and q.object == KG.DimensionalStandard]
    with_number = {q.subject for q in quads if q.predicate == KG.quantity}
    assert len(standards) == 2
    assert len(with_number) == 1
    [node] = with_number
    assert values(kg.store, node, KG.rawUnit) == {"feet"}  # type: ignore[arg-type]


def test_what_refers_to_a_section_that_there_is_not_is_told() -> None:
    shared = Authorities("x", "UT")
    entries = [Definition("kiln", "an oven", "1.1"), Definition("yard", "land", "1.2")]
    [warning] = build_statements_record("x", entries, shared, ORIGIN, ["1.1"]).warnings
    assert "'1.2'" in warning


def test_a_record_that_is_gone_is_pruned_with_what_was_found_in_it(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "title.html"
    path.write_text(TITLE.read_text(encoding="utf-8"), encoding="utf-8")
    load(kg, "zoning", [str(path)], state="UT")
    text = path.read_text(encoding="utf-8")
    start = text.index('  <section id="17_12_010">')
    path.write_text(text[:start] + text[text.index("</section>", start) + 13 :], encoding="utf-8")
    report = load(kg, "zoning", [str(path)], state="UT", prune=True)
    assert report.removed == 1
    left = {q.graph_name.value for q in content(kg)}  # type: ignore[union-attr]
    assert not [graph for graph in left if graph.endswith("/17.12.010")]
