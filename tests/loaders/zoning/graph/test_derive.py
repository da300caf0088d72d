"""Derived graphs of codes: separate from the texts, updated with them, and promoted only while a claim is live."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.provenance.promotion import PROMOTION
from kg.shacl.shapes import Shapes
from kg.vocabulary import KG, OA, PROV_GRAPH, RDF, SCHEMA, XSD, mint, sha256
from loaders.sources import load
from loaders.zoning.graph import derive
from loaders.zoning.graph.ingest import ingest
from loaders.zoning.graph.stored_codes import load_sections
from loaders.zoning.readers import code_model, input_files
from loaders.zoning.readers.code_model import Cell
from tests.loaders.conftest import content as content_of

FIXTURES = Path(__file__).parent.parent.parent.parent.parent / "fixtures" / "zoning"
TITLE = FIXTURES / "title_17_zoning.html"
EXTRACTED, PROMOTED = "/graph/ext/zoning/us-ut-quarry-bend/", "/graph/der/promote/zoning/us-ut-quarry-bend/"


def content(kg: KnowledgeGraph) -> set[Quad]:
    """All quads but those of provenance."""
    return content_of(kg.store)  # type: ignore[arg-type]


def section(key: str) -> NamedNode:
    return mint("section", "us-ut-quarry-bend", key)


def graph_of(quad: Quad) -> str:
    assert isinstance(quad.graph_name, NamedNode)
    return quad.graph_name.value


def text_of(term: Any) -> str:
    return str(term.value)


def loaded(kg: KnowledgeGraph, path: Path = TITLE, **options: Any) -> set[Quad]:
    load(kg, "zoning", [str(path)], state="UT", **options)
    return content(kg)


def edges(quads: set[Quad]) -> set[tuple[str, str, str]]:
    """Promoted edges between sections, by keys and local name of the property."""
    found = set()
    for quad in quads:
        if PROMOTED in graph_of(quad):
            citing, name, cited = (text_of(term) for term in (quad.subject, quad.predicate, quad.object))
            found.add((citing.rpartition("/")[2], name.rpartition("#")[2], cited.rpartition("/")[2]))
    return found


def variant(tmp_path: Path, old: str, new: str) -> Path:
    """Write the fixture with one change, always to the same file."""
    path = tmp_path / "title_17_zoning.html"
    text = TITLE.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_everything_found_has_its_words_method_and_confidence(kg: KnowledgeGraph) -> None:
    quads = loaded(kg)
    texts = {q.subject: text_of(q.object) for q in quads if q.predicate == SCHEMA.text}
    own = [q for q in quads if EXTRACTED in graph_of(q)]
    of = {name: {q.subject: q.object for q in own if q.predicate == name} for name in (KG.start, KG.end, OA.hasSource)}
    spans = {q.subject for q in own if q.predicate == RDF.type and q.object == KG.TextSpan}
    assert spans
    for q in own:
        if q.predicate == OA.exact:
            start, end = (int(text_of(of[name][q.subject])) for name in (KG.start, KG.end))
            assert texts[of[OA.hasSource][q.subject]][start:end] == text_of(q.object)  # type: ignore[index]
    kinds = (KG.UsePermission, KG.DimensionalStandard, KG.Definition, KG.CrossReference, KG.DistrictList)
    nodes = {q.subject for q in own if q.predicate == RDF.type and q.object in kinds}
    namings = {q.subject for q in own if q.predicate == RDF.type and q.object == KG.DistrictNaming}
    for predicate in (KG.confidence, KG.method):
        assert {q.subject for q in own if q.predicate == predicate} == nodes | namings
    # A heading that names a district is not part of the text.
    assert {q.subject for q in own if q.predicate == KG.evidence} - namings == nodes
    assert {q.object for q in own if q.predicate == RDF.type} >= set(kinds)


def test_no_triple_stands_in_two_graphs(kg: KnowledgeGraph) -> None:
    quads = loaded(kg)
    assert len({quad.triple for quad in quads}) == len(quads)


def test_what_is_loaded_passes_the_shapes_of_the_whole(kg: KnowledgeGraph) -> None:
    quads = loaded(kg)
    found = Shapes.load_dataset().check_disjoint([(list(quads), range(len(quads)))])
    assert {violation.message for violation in found if violation.blocks} == set()


def test_edges_run_from_the_citing_section_to_the_cited_one(kg: KnowledgeGraph) -> None:
    found = edges(loaded(kg))
    assert {
        ("17.04.030", "mustComplyWith", "17.12.010"),
        ("17.20.030", "subjectTo", "17.12.040"),
        ("17.56.030", "notwithstanding", "17.20.040"),
        ("17.12.020", "exceptAsProvidedIn", "17.12.030"),
    } & found
    assert not {(cited, name, citing) for citing, name, cited in found if name == "subjectTo"} & found


def test_a_law_beside_the_code_is_shared_and_cited(kg: KnowledgeGraph) -> None:
    quads = loaded(kg)
    laws = {q.subject for q in quads if q.predicate == RDF.type and q.object == KG.ExternalLaw}
    cited = {q.object for q in quads if PROMOTED in graph_of(q)} & laws
    assert len(laws) >= 4
    assert cited
    types = {text_of(q.object).rpartition("/")[2] for q in quads if q.predicate == KG.lawType}
    assert types == {"state", "federalCode", "federalRegulation"}


def test_a_citation_of_nothing_known_is_kept_with_its_words_until_it_is(kg: KnowledgeGraph, tmp_path: Path) -> None:
    quads = loaded(kg, variant(tmp_path, "</body>", "</body>"))
    unresolved = {q.subject for q in quads if q.predicate == RDF.type and q.object == KG.CrossReference} - {
        q.subject for q in quads if q.predicate == RDF.object
    }
    words = {text_of(q.object) for q in quads if q.predicate == KG.rawCitation and q.subject in unresolved}
    assert any("17.12.090" in each for each in words)
    assert not any(cited == "17.12.090" for _, _, cited in edges(quads))
    added = '<section id="17_12_090"><h3>17.12.090 Hearing of Appeals</h3><p>Appeals are heard in May.</p></section>\n'
    path = variant(tmp_path, '  <section id="17_16_010">', added + '  <section id="17_16_010">')
    report = load(kg, "zoning", [str(path)], state="UT")
    assert report.loaded < 78
    assert ("17.12.060", "17.12.090") in {(citing, cited) for citing, _, cited in edges(content(kg))}
    path = variant(tmp_path, "</body>", "</body>")
    quads = loaded(kg, path, prune=True)
    assert not any(cited == "17.12.090" for _, _, cited in edges(quads))
    assert not [q for q in quads if "17.12.090" in text_of(q.subject)]


def test_findings_go_with_the_words_that_they_rest_on(kg: KnowledgeGraph, tmp_path: Path) -> None:
    before = loaded(kg, variant(tmp_path, "</body>", "</body>"))
    assert ("17.04.030", "17.12.010") in {(citing, cited) for citing, _, cited in edges(before)}
    path = variant(tmp_path, "except in compliance with section 17.12.010", "without the leave of the Planner")
    after = loaded(kg, path)
    assert not [edge for edge in edges(after) if edge[0] == "17.04.030"]
    assert edges(after) == {edge for edge in edges(before) if edge[0] != "17.04.030"}


def test_a_second_load_leaves_what_the_first_left_whatever_the_order(kg: KnowledgeGraph, open_graph: Any) -> None:
    first = loaded(kg)
    other = open_graph("other")
    load(other, "zoning", [str(FIXTURES / "upper_feign.json"), str(TITLE)], state="UT")
    assert first <= content(other)
    assert loaded(kg) == first


def test_the_rule_of_an_edge_and_its_threshold_are_told(kg: KnowledgeGraph) -> None:
    quads = loaded(kg)
    edge = next(quad for quad in quads if PROMOTED in graph_of(quad))
    [why] = explain_triple(kg.store.query, *edge.triple)
    assert why.kind == "derived"
    assert "/graph/ext/zoning/" in why.sources[0].locations[0]
    said = {(quad.predicate, quad.object) for quad in kg.store.graph(PROV_GRAPH) if quad.subject == PROMOTION.iri}
    assert (KG.threshold, Literal("0.7", datatype=XSD.decimal)) in said


CLAIMS = NamedNode("https://example.org/claims")


def claim(number: int, confidence: str, predicate: NamedNode = KG.subjectTo) -> list[Quad]:
    node = mint("statement", sha256(str(number))[:32])
    return [
        Quad(node, RDF.subject, section("1"), CLAIMS),
        Quad(node, RDF.predicate, predicate, CLAIMS),
        Quad(node, RDF.object, section("2"), CLAIMS),
        Quad(node, KG.confidence, Literal(confidence, datatype=XSD.decimal), CLAIMS),
    ]


PARTS: dict[str, list[dict[str, Any]]] = {
    "districts": [
        {
            "section_id": "3.1",
            "title": "Districts",
            "raw_content": "The zones are:\nQ Quarry District\nRA Rural Residential",
        }
    ],
    "uses": [
        {"section_id": "3.20", "title": "Quarry District", "level": "chapter", "raw_content": ""},
        {
            "section_id": "3.20.1",
            "title": "Uses",
            "parent_id": "3.20",
            "raw_content": "Permitted uses:\n(1) Kilns.\nConditional uses (see section 3.9):\n"
            "(1) Stone Yards.\n(2) Inns.",
        },
        {"section_id": "3.21", "title": "Heights", "raw_content": "In the RA zone, height shall not exceed 30 feet."},
    ],
    "table": [
        {
            "section_id": "3.5",
            "title": "Zones and uses",
            "raw_content": "<p>P = permitted. C = conditional use under section 3.9.</p><table><thead><tr><th>Use</th>"
            "<th>Q</th><th>RA</th></tr></thead><tbody><tr><td>stone yards<sup>1</sup></td><td>P</td><td>C</td></tr>"
            "<tr><td>Barns</td><td></td><td>P</td></tr></tbody></table><p>1. Walled in.</p>",
        }
    ],
    "review": [
        {
            "section_id": "3.9",
            "title": "Review of the RA Rural Residential and other zones",
            "raw_content": "By the Board.",
        }
    ],
}


def file_of(part: str, folder: Path) -> str:
    """Write a file with one part of a code."""
    path = folder / f"{part}.json"
    path.write_text(json.dumps({"municipality": "Marl", "state": "UT", "sections": PARTS[part]}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "order",
    [
        ("districts", "uses", "table", "review"),
        ("review", "table", "uses", "districts"),
        ("uses", "review", "table", "districts"),
    ],
    ids=" ".join,
)
def test_a_code_loaded_file_by_file_says_what_it_says_at_once(
    kg: KnowledgeGraph, open_graph: Any, tmp_path: Path, order: tuple[str, ...]
) -> None:
    files = {part: file_of(part, tmp_path) for part in PARTS}
    load(kg, "zoning", list(files.values()))
    other = open_graph("other")
    for part in order:
        load(other, "zoning", [files[part]])
    said = content(kg)
    reviews = {q.object for q in said if q.predicate == KG.reviewSection}
    assert reviews == {mint("section", "us-ut-marl", "3.9")}
    # The blank cell of barns in Q states nothing.
    assert sum(q.object == KG.UsePermission for q in said) == 3 + 3
    assert content(other) == said


def cells(row: Sequence[Cell | None]) -> list[Cell | None]:
    """Convert the marks of a row to tuples."""
    return [cell and replace(cell, superscripts=tuple(cell.superscripts)) for cell in row]


def test_a_stored_section_is_the_one_that_was_read(kg: KnowledgeGraph, tmp_path: Path) -> None:
    files = [TITLE, *(Path(file_of(part, tmp_path)) for part in PARTS)]
    load(kg, "zoning", [str(path) for path in files], state="UT")
    for given in input_files.find_codes(files).inputs:
        code = given.read()
        stored = load_sections(kg.store, "us-ut-marl" if code.municipality == "Marl" else "us-ut-quarry-bend")
        for each in code.sections:
            kept = stored[each.key]
            assert (kept.title, kept.kind, kept.parent, kept.text) == (each.title, each.kind, each.parent, each.text)
            assert list(kept.subsections) == list(each.subsections)
            assert [table.grid() for table in kept.tables] == [
                [
                    [cell and replace(cell, superscripts=tuple(cell.superscripts)) for cell in row]
                    for row in table.grid()
                ]
                for table in each.tables
            ]


def test_the_rules_of_every_district_are_found_with_the_section_that_reviews_a_use(kg: KnowledgeGraph) -> None:
    quads = [quad for quad in loaded(kg) if EXTRACTED in graph_of(quad)]
    said = {(quad.subject, quad.predicate): quad.object for quad in quads}
    permissions = [quad.subject for quad in quads if quad.object == KG.UsePermission]
    within = {subject: text_of(said[subject, KG.definedIn]).rpartition("/")[2] for subject in permissions}
    assert sum(each == "17.52.010" for each in within.values()) == 9 * 8
    lists = [each for each in permissions if within[each].endswith(".030") and within[each] < "17.50"]
    conditional = mint("code", "permissionLevel", "conditional")
    reviewed = {said.get((each, KG.reviewSection)) for each in lists if said[each, KG.permissionLevel] == conditional}
    assert reviewed == {section("17.12.040")}
    assert {said.get((each, KG.reviewSection)) for each in lists if said[each, KG.permissionLevel] != conditional} == {
        None
    }
    standards = [quad.subject for quad in quads if quad.object == KG.DimensionalStandard]
    per_district = Counter(
        text_of(said[each, KG.district]).rpartition("/")[2] for each in standards if (each, KG.district) in said
    )
    assert per_district == {
        code: 6 if code == "C-1" else 4 if code == "R-2" else 5
        for code in ("R-1", "R-2", "R2", "R-3", "C-1", "C-2", "M-1", "Q")
    }


QUILL: dict[str, Any] = {
    "municipality": "Lower Quill",
    "state": "CT",
    "sections": [
        {"section_id": "4", "title": "Village Center", "level": "chapter", "raw_content": ""},
        {
            "section_id": "4.1",
            "title": "Uses",
            "parent_id": "4",
            "raw_content": "Permitted uses:\n(1) duplex.\n(2) Rope Walks.",
        },
        {"section_id": "4.2", "title": "Heights", "raw_content": "In the VC zone, height shall not exceed 30 feet."},
        {"section_id": "4.3", "title": "Yards", "raw_content": "In the RA zone, the front setback is 9 feet."},
        {
            "section_id": "4.4",
            "title": "Zones",
            "raw_content": "The zones are:\nRA Ropemaker District\nT Tar District",
        },
    ],
}


def towns(folder: Path) -> dict[str, str]:
    """Copy the fixture's table of two towns, and the codes of both."""
    for name in ("towns.csv", "towns.toml", "upper_feign.json"):
        (folder / name).write_bytes((FIXTURES / name).read_bytes())
    (folder / "quill.json").write_text(json.dumps(QUILL), encoding="utf-8")
    return {name: str(folder / name) for name in ("towns.csv", "upper_feign.json", "quill.json")}


@pytest.mark.long
@pytest.mark.parametrize("order", list(permutations(("towns.csv", "upper_feign.json", "quill.json"))), ids=" ".join)
def test_tables_and_codes_loaded_in_any_order_say_what_they_say_at_once(
    kg: KnowledgeGraph, open_graph: Any, tmp_path: Path, order: tuple[str, ...]
) -> None:
    files = towns(tmp_path)
    load(kg, "zoning", list(files.values()))
    other = open_graph("other")
    for name in order:
        load(other, "zoning", [files[name]])
    said = content(kg)
    found = {text_of(q.object) for q in said if q.predicate == KG.district and "/graph/ext/" in graph_of(q)}
    assert mint("district", "us-ct-lower-quill", "VC").value in found
    assert content(other) == said


def test_text_is_read_again_when_the_table_that_states_its_districts_goes(kg: KnowledgeGraph, tmp_path: Path) -> None:
    files = towns(tmp_path)
    load(kg, "zoning", [files["quill.json"]])
    before, center = content(kg), mint("district", "us-ct-lower-quill", "VC")
    assert center not in {q.object for q in before}
    load(kg, "zoning", [files["towns.csv"]])
    assert center in {q.object for q in content(kg) if "/graph/ext/" in graph_of(q)}
    Path(files["towns.csv"]).unlink()
    Path(files["upper_feign.json"]).unlink()
    load(kg, "zoning", [str(tmp_path)], prune=True)
    after = content(kg)
    landuse = "/graph/ref/landuse/"
    assert {q for q in after if landuse not in graph_of(q)} == {q for q in before if landuse not in graph_of(q)}


def test_text_that_an_earlier_version_has_read_is_read_once_more(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [file_of(part, tmp_path) for part in ("districts", "uses")]
    with monkeypatch.context() as earlier:
        earlier.setattr(code_model, "VERSION", "0")
        earlier.setattr(derive, "build_rules", lambda *_: [])
        load(kg, "zoning", paths)
    assert not [q for q in content(kg) if q.object == KG.UsePermission]
    load(kg, "zoning", paths)
    assert len([q for q in content(kg) if q.object == KG.UsePermission]) == 3
    monkeypatch.setattr(derive, "build_rules", None)
    assert load(kg, "zoning", paths).skipped == 4


def send(kg: KnowledgeGraph, kind: Any, entries: list[dict[str, Any]]) -> None:
    ingest(kg, tool="test", municipality="Lower Quill", state="CT", kind=kind, entries=entries, sent_by="test")


def test_what_is_sent_in_any_order_says_the_same(kg: KnowledgeGraph, open_graph: Any) -> None:
    permissions = [
        {"district": "VC", "use": "Duplex", "permission": "conditional"},
        {"district": "RA", "use": "rope walks", "permission": "permitted"},
    ]
    standards = [{"district": "RA", "standard_type": "maximum height", "value": 30, "unit": "feet"}]
    other = open_graph("other")
    for section in QUILL["sections"]:
        send(kg, "section", [section])
    send(kg, "permission", permissions)
    send(kg, "standard", standards)
    send(other, "standard", standards)
    for number, section in enumerate(QUILL["sections"]):
        send(other, "section", [section])
        send(other, "permission", permissions[number : number + 1])
    assert content(other) == content(kg)


def test_a_citation_is_read_again_when_another_section_is_called_the_same(
    kg: KnowledgeGraph, open_graph: Any, tmp_path: Path
) -> None:
    def title(number: int) -> str:
        sections = [
            {"section_id": f"title {number}", "title": "Law", "level": "title"},
            {"section_id": f"{number}-c", "title": "Chapter 5", "level": "chapter", "parent_id": f"title {number}"},
            {"section_id": f"{number}.1", "title": "Rule", "parent_id": f"title {number}", "raw_content": TEXT},
        ]
        path = tmp_path / f"title {number}.json"
        path.write_text(json.dumps({"municipality": "Marl", "state": "UT", "sections": sections}), encoding="utf-8")
        return str(path)

    files = [title(1), title(2)]
    load(kg, "zoning", files)
    other = open_graph("other")
    for file in files[::-1]:
        load(other, "zoning", [file])
    assert content(other) == content(kg)


TEXT = "Kilns are subject to chapter 5 and to sections 1.1 through 2.1."


SCOPED = """ARTICLE I
DISTRICTS
1.1 Districts
The town is divided into the following districts:
C-5 Planned Commercial District
M-1 Manufacturing District
ARTICLE II
C-5 PLANNED COMMERCIAL DISTRICT
2.1 Permitted Uses
1. Shoe stores.
2.2 Bulk Regulations
A. A maximum height of 40 feet.
{lost}2.3 Signs
1. One sign.
"""


@pytest.mark.parametrize(
    ("lost", "scope"),
    [
        ("", ("districts", {"C-5"})),
        ("M-1 MANUFACTURING DISTRICT\n", ("districts", {"M-1"})),
        ("SIGNS\n", ("none", set())),
    ],
)
def test_scopes_and_the_list_of_districts_are_stored_and_follow_the_headings_before_them(
    kg: KnowledgeGraph, tmp_path: Path, lost: str, scope: tuple[str, set[str]]
) -> None:
    path = tmp_path / "code.txt"
    for text in (SCOPED.format(lost="M-9 PORT DISTRICT\n"), SCOPED.format(lost=lost)):
        path.write_text(text, encoding="utf-8")
        load(kg, "zoning", [str(path)], state="UT", municipality="Quarry Bend")
    quads = content(kg)

    def values(subject: NamedNode, predicate: NamedNode) -> set[str]:
        return {
            text_of(quad.object).rpartition("/")[2]
            for quad in quads
            if (quad.subject, quad.predicate) == (subject, predicate)
        }

    node = NamedNode(section("2.3").value + "#scope=0")
    assert (values(node, KG.scopeKind), values(node, KG.appliesIn)) == ({scope[0]}, scope[1])
    listed = NamedNode(section("1.1").value + "#district-list=0")
    assert values(listed, KG.listsDistrict) == {"C-5", "M-1"}
    assert values(listed, KG.jurisdiction) == {"us-ut-quarry-bend"}
