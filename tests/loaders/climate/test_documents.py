from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from pyoxigraph import Literal, NamedNode

from kg.errors import SourceError
from kg.settings import Settings
from kg.vocabulary import BASE, DCTERMS, ELI, FOAF, KG, RDF, SCHEMA, XSD, mint
from loaders.climate import documents, drafts
from loaders.climate.layouts import Layout, load_layouts
from loaders.model import Notice, Rejection, SourceDocument, graph_name, to_quads
from loaders.readers.locations import find_files
from tests.loaders.test_pipeline import rows, write

CLIMATE = Path(__file__).parent.parent.parent.parent / "fixtures" / "climate"
LAYOUTS = load_layouts()
SETTINGS = Settings(_env_file=None)  # type: ignore[call-arg]


def read(*paths: Path) -> dict[str, SourceDocument]:
    found = {}
    for item in documents.read(find_files([str(path) for path in paths], SETTINGS).files):
        assert not isinstance(item, Rejection), item
        if isinstance(item, SourceDocument):
            found["/".join(item.key)] = item
    return found


def said(document: SourceDocument, predicate: NamedNode) -> list[str]:
    return [value.value for key, value in document.properties if key == predicate]


@pytest.mark.parametrize("layout", LAYOUTS.by_name.values(), ids=lambda layout: layout.name)
def test_each_layout_is_known_by_what_it_needs(layout: Layout) -> None:
    assert LAYOUTS.detect(Path("x"), {*layout.requires, "else"}) is layout


def test_what_an_unknown_layout_lacks_is_named_for_the_nearest() -> None:
    columns = [name for name in LAYOUTS.by_name["published"].requires if name != "text_block.text"]
    with pytest.raises(SourceError, match=r"'published', also needs text_block\.text\."):
        LAYOUTS.detect(Path("x"), columns)


def test_a_file_of_another_layout_is_rejected_beside_others_and_an_error_alone(tmp_path: Path) -> None:
    known, other = write(tmp_path / "known.jsonl", rows("a", ["one"])), tmp_path / "other.csv"
    other.write_text("name,colour\nbench,green\n")
    found = list(documents.read(find_files([str(other), str(known)], SETTINGS).files))
    assert [Path(each.record) for each in found if isinstance(each, Rejection)] == [other]
    assert ["/".join(each.key) for each in found if isinstance(each, SourceDocument)] == ["a"]
    for files in ([other], [other, write(tmp_path / "also.jsonl", [{"name": "chair"}])]):
        with pytest.raises(SourceError):
            list(documents.read(find_files([str(each) for each in files], SETTINGS).files))


def test_a_record_is_one_graph_with_no_blank_nodes_and_every_unit_in_it() -> None:
    for document in read(CLIMATE).values():
        made = to_quads(document)
        assert {quad.graph_name for quad in made} == {graph_name(document)}
        assert all(isinstance(quad.object, NamedNode | Literal) for quad in made)
        passages = {quad.subject for quad in made if quad.predicate == RDF.type and quad.object == KG.Passage}
        assert passages == {unit.iri for unit in document.units}


def test_the_same_record_has_the_same_hash_wherever_and_in_whatever_order_its_rows_stand(tmp_path: Path) -> None:
    records = rows("a", ["one", "two", "three"])
    one = read(write(tmp_path / "one.jsonl", records))["a"]
    with (tmp_path / "two.csv").open("w", newline="") as stream:
        table = csv.DictWriter(stream, list(records[0]))
        table.writeheader()
        table.writerows(reversed(records))
    two = read(tmp_path / "two.csv")["a"]
    assert one.source_sha256 == two.source_sha256
    assert [list(origin.rows) for origin in (*one.origins, *two.origins)] == [[1, 2, 3], [3, 2, 1]]


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other"}, {"page_number": 7}, {"type": "List"}, {"language": "fr"}, {"document_name": "Other"},
        {"geography_iso": "DJI"}, {"family_name": "Other"}, {"category": "legislative"}, {"block_index": 9},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_any_change_of_what_is_read_changes_the_hash(change: dict[str, object], tmp_path: Path) -> None:
    [record] = rows("a", ["one"])
    before = read(write(tmp_path / "before.jsonl", [record]))["a"]
    after = read(write(tmp_path / "after.jsonl", [{**record, **change}]))["a"]
    assert before.source_sha256 != after.source_sha256
    assert set(to_quads(before)) != set(to_quads(after)) or before.shared != after.shared


def test_a_record_may_span_files_and_its_rows_follow_the_order_of_passages(tmp_path: Path) -> None:
    records = rows("a", ["one", "two", "three"])
    document = read(
        write(tmp_path / "odd.jsonl", [records[0], records[2]]), write(tmp_path / "even.jsonl", [records[1]])
    )["a"]
    places = [(Path(origin.snapshot.source).name, list(origin.rows)) for origin in document.origins]
    assert places == [("odd.jsonl", [1]), ("even.jsonl", [1]), ("odd.jsonl", [2])]


def test_a_family_without_a_slug_is_known_by_title_and_places() -> None:
    found = read(CLIMATE / "land-and-transport.jsonl")
    [family] = said(found["fictional-coastal-adaptation-plan_bd01"], ELI.is_member_of)
    assert family.startswith("cpr://family/fictional-delta-programme-")
    assert len(family.rpartition("-")[2]) == 8


def test_language_names_and_lists_of_places_become_codes() -> None:
    found = read(CLIMATE / "land-and-transport.jsonl")
    assert said(found["fictional-coastal-adaptation-plan_bd01"], SCHEMA.inLanguage) == ["en", "bn"]
    places = said(found["fictional-night-train-agreement_eu01"], KG.jurisdiction)
    assert places == [mint("place", "FRA").value, mint("place", "DEU").value]


def test_without_a_stated_language_a_document_is_in_that_of_most_passages() -> None:
    found = read(CLIMATE / "energy-and-water.csv")
    assert said(found["fictional-island-water-security-strategy_fj01"], SCHEMA.inLanguage) == ["en"]
    assert found["fictional-island-water-security-strategy_fj01"].units[-1].language == "fj"


def test_the_category_stands_for_the_corpus_type_in_its_known_spelling() -> None:
    found = read(CLIMATE / "energy-and-water.csv")
    kinds = {said(document, KG.corpusType)[0] for document in found.values()}
    assert kinds == {f"{BASE}vocab/corpusType/Executive", f"{BASE}vocab/corpusType/Legislative"}


def test_the_web_page_is_that_of_the_slug(tmp_path: Path) -> None:
    document = read(write(tmp_path / "t.jsonl", rows("ä b", ["x"])))["ä b"]
    assert said(document, FOAF.page) == [f"https://app.climatepolicyradar.org/documents/{quote('ä b')}"]


def test_a_translated_row_without_a_language_is_refused(tmp_path: Path) -> None:
    source = CLIMATE / "flat" / "solar-road-map_translated_en.parquet"
    records = [{**row, "languages": [], "language": None} for row in pq.read_table(source).to_pylist()]
    for row in records:
        row["document_metadata.languages"] = []
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records))
    items = list(documents.read(find_files([str(path)], SETTINGS).files))
    [rejection] = [item for item in items if isinstance(item, Rejection)]
    assert "Missing language" in rejection.reason


def test_what_is_unusual_about_a_file_is_told() -> None:
    notices = [item for item in documents.read(find_files([str(CLIMATE)], SETTINGS).files) if isinstance(item, Notice)]
    layouts = {notice.text.rpartition(" ")[2] for notice in notices if "layout" in notice.text}
    assert layouts == {"'sample'", "'published'", "'flat'", "'laws'"}
    assert [notice.expected_rows for notice in notices if notice.expected_rows] == [96]


@pytest.mark.parametrize(
    ("date", "passed", "changed", "dated", "modified"),
    [
        ("2008-11-26", "2008", "", ["2008-11-26"], []),
        ("2019-06-27", "2008", "June, 2019", ["2008"], ["2019-06-27"]),
        ("2019-06-27", "2008", "", ["2008"], ["2019-06-27"]),
        ("2008-12-01", "2008", "December, 2008", ["2008"], ["2008-12-01"]),
        ("2019-06-27", "", "June, 2019", [], ["2019-06-27"]),
        ("", "2008", "", ["2008"], []),
        ("2008-11-26", "c. 2008", "", ["2008-11-26"], []),
        ("2008-11-26", "2011", "", ["2008-11-26"], []),
        ("2008-11-26", "", "", ["2008-11-26"], []),
    ],
)
def test_law_has_the_date_of_its_passing_and_not_that_of_its_last_change(
    date: str, passed: str, changed: str, dated: list[str], modified: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "laws.csv"
    head = ("id", "title", "slug", "description", "geography", "legislation_type", "date", "date_passed", "last_change")
    law = ("7", "Tides Act", "tides-act", "<p>Tides.</p>", "{'iso': 'GBR'}", "legislative", date, passed, changed)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, law])
    [document] = read(path).values()
    assert (said(document, ELI.date_document), said(document, DCTERMS.modified)) == (dated, modified)
    kinds = [
        value.datatype for key, value in document.properties if key == ELI.date_document and isinstance(value, Literal)
    ]
    assert kinds == [XSD.gYear if len(each) == 4 else XSD.date for each in dated]


def topics_of(document: SourceDocument) -> dict[str, list[str]]:
    found = {field: said(document, predicate) for field, (_, predicate) in drafts.TOPICS.items()}
    return {field: words for field, words in found.items() if words}


def test_topics_of_a_document_are_stored_as_the_source_writes_them(tmp_path: Path) -> None:
    lists = {"sectors": ["LULUCF", "Social development", "LULUCF"], "keywords": "Hydrogen;Carbon Pricing"}
    path = write(tmp_path / "lists.jsonl", rows("a", ["one"], instruments="Capacity building|Governance", **lists))
    assert topics_of(read(path)["a"]) == {
        "sectors": ["LULUCF", "Social development"],
        "keywords": ["Hydrogen", "Carbon Pricing"],
        "instruments": ["Capacity building|Governance"],
    }


@pytest.mark.parametrize("written", [json.dumps, str], ids=["JSON", "Python"])
def test_topics_in_an_object_are_stored_by_their_kind(written: Callable[[object], str], tmp_path: Path) -> None:
    stated = {"sector": ["Energy"], "topic": ["Mitigation"], "hazard": None, "framework": [], "author": ["Anybody"]}
    [document] = read(write(tmp_path / "object.jsonl", rows("a", ["one"], metadata=written(stated)))).values()
    assert topics_of(document) == {"sectors": ["Energy"], "responses": ["Mitigation"]}
    assert document.warnings == ()


@pytest.mark.parametrize(
    "ugly",
    ["[]", "nan", "{broken", '["Energy"', '[{"name": "Energy"}]', "[" * 50_000 + "]" * 50_000, "{" * 50_000],
    ids=lambda ugly: ugly[:20],
)
def test_topics_that_are_not_names_are_left_out(ugly: str, tmp_path: Path) -> None:
    [document] = read(write(tmp_path / "ugly.jsonl", rows("a", ["one"], sectors=ugly, metadata=ugly))).values()
    assert topics_of(document) == {}


def test_a_change_of_a_topic_changes_the_record(tmp_path: Path) -> None:
    before = read(write(tmp_path / "before.jsonl", rows("a", ["one"], sectors=["Energy"])))["a"]
    after = read(write(tmp_path / "after.jsonl", rows("a", ["one"], sectors=["Transport"])))["a"]
    assert before.source_sha256 != after.source_sha256


def test_topics_in_real_data_are_those_of_its_columns(shared: Path) -> None:
    folder = shared / "data" / "climate"
    path = folder / "CPR_huggingface_data_sample.parquet"
    table = pq.read_table(path, columns=["document_slug", "sectors"]).to_pylist()
    stated = {row["document_slug"]: row["sectors"] for row in table}
    assert {slug: topics_of(document) for slug, document in read(path).items()} == {
        slug: {"sectors": sectors} for slug, sectors in stated.items()
    }
