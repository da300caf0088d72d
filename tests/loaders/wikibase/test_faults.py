"""Input that no Wikibase writes, or that is written to do harm: it is told, and the rest loads as without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import RdfFormat, parse

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from loaders.readers import json_stream
from loaders.readers.json_stream import parse_elements
from loaders.sources import load
from loaders.wikibase.entity_rdf import build_quads
from loaders.wikibase.instances import CLIMATE, WIKIDATA, choose_instance
from loaders.wikibase.skos import build_view
from tests.loaders.wikibase.test_entity_rdf import asked, claim, item, number, text, time, write

DOCUMENT = """@prefix wd: <http://www.wikidata.org/entity/> . @prefix s: <http://schema.org/> .
@prefix p: <http://www.wikidata.org/prop/> . @prefix w: <http://wikiba.se/ontology#> .
<https://www.wikidata.org/wiki/Special:EntityData/Q7> a s:Dataset ; s:about wd:Q7 . wd:Q7 a w:Item ."""


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        ({"forms": ["x"]}, "only a lexeme has forms"),
        ({"senses": 5}, "only a lexeme has senses"),
        ({"claims": {"P1": [{**claim("P1", text("a")), "id": "\ud800"}]}}, "with the id '\\ud800'"),
    ],
)
def test_what_an_item_cannot_have_is_told_and_not_read(
    kg: KnowledgeGraph, tmp_path: Path, more: dict[str, Any], warning: str
) -> None:
    report = load(kg, "wikibase", [str(write(tmp_path / "d.json", item("Q1"), item("Q2", **more), item("Q3")))])
    assert (report.loaded, report.rejections) == (3, [])
    [told] = [each for each in report.warnings if warning in each]
    assert told.encode()


LEXEME = {"type": "lexeme", "id": "L7", "lemmas": {}, "lexicalCategory": "Q1", "language": "Q2"}


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        ({**LEXEME, "language": "Q1/../x"}, "missing entity id"),
        ({**LEXEME, "lexicalCategory": ["Q1"]}, "missing entity id"),
        ({**LEXEME, "forms": [["L7-F1"]]}, "missing entity id"),
        ({**LEXEME, "forms": [item("Q5")]}, "Q5 is listed in forms"),
        ({**LEXEME, "senses": [{"id": "L8-S1"}]}, "L8-S1 is listed in senses"),
        ({"id": "L7-F1", "grammaticalFeatures": ["plural"]}, "missing entity id"),
        (item(sitelinks={"enwiki": {"site": "enwiki", "title": "A", "badges": ["good"]}}), "missing entity id"),
        (item(modified="2031-02-30T00:00:00Z"), "2031-02-30T00:00:00Z"),
        (item(modified="2031-01-0\u0661T00:00:00Z"), "`modified` is"),
    ],
)
def test_ids_that_are_none_and_days_that_there_are_not_are_refused(entity: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        build_quads(WIKIDATA, entity)


def quantity(amount: Any) -> dict[str, Any]:
    return {"type": "quantity", "value": {"amount": amount, "unit": "1"}}


def place(**more: Any) -> dict[str, Any]:
    globe = "http://www.wikidata.org/entity/Q2"
    return {"type": "globecoordinate", "value": {"latitude": 1.5, "longitude": 2, "globe": globe, **more}}


@pytest.mark.parametrize(
    ("datatype", "datavalue"),
    [
        *(("quantity", quantity(amount)) for amount in ("+1e5", "1_000", " 1 ", "\u0661", "inf", "nan", 1, True)),
        *(("time", time(at)) for at in ("+2031-13-01T00:00:00Z", "+2031-01-32T00:00:00Z", "+2031-01-01T24:00:00Z")),
        ("time", time("+\u0662\u0660\u0663\u0661-01-01T00:00:00Z")),
        ("time", time("+2031-01-01T00:00:00Z", 11.0)),  # type: ignore[arg-type]
        ("time", time("+2031-01-01T00:00:00Z", True)),
        ("globe-coordinate", place(precision=float("nan"))),
        ("globe-coordinate", place(precision=float("inf"))),
        ("globe-coordinate", place(latitude=True)),
        ("wikibase-item", {"type": "wikibase-entityid", "value": {"entity-type": "item", "numeric-id": 1.5}}),
    ],
)
def test_a_value_that_no_datatype_of_xsd_has_is_refused(datatype: str, datavalue: Any) -> None:
    with pytest.raises(RecordError):
        build_quads(WIKIDATA, item(claims={"P1": [claim("P1", datavalue, datatype)]}))


def test_a_bad_value_does_not_change_what_an_equal_one_says() -> None:
    # 0 == False and 11 == 11.0, so a memory of values may take one for the other.
    good = item(claims={"P1": [claim("P1", time("+2041-01-01T00:00:00Z"), "time")]})
    bad = json.loads(json.dumps(good))
    bad["claims"]["P1"][0]["mainsnak"]["datavalue"]["value"] |= {"timezone": False, "precision": 11.0}
    with pytest.raises(RecordError, match="'False' is not an integer"):
        build_quads(WIKIDATA, bad)
    [[*quads]] = build_quads(WIKIDATA, good).shared.values()
    assert {str(quad.object) for quad in quads} >= {
        f'"{said}"^^<http://www.w3.org/2001/XMLSchema#integer>' for said in (0, 11)
    }


@pytest.mark.parametrize("value", ["http://[bad", "https://a b/%zz"])
def test_an_exact_match_that_is_no_address_matches_nothing(value: str) -> None:
    entity = item(claims={"P13": [claim("P13", text(value))]})
    quads = build_view(CLIMATE, "Q5", build_quads(CLIMATE, entity).quads, {})
    assert quads
    assert not [quad for quad in quads if quad.predicate.value.endswith("exactMatch")]


def test_a_cell_of_a_csv_that_is_nested_too_deep_is_one_bad_row(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(f'id,label,broader\nQ5,x,"{"[" * 100_000}"\nQ6,y,\n')
    report = load(kg, "wikibase", [str(tmp_path / "c.csv")], base="climate")
    assert report.loaded == 1
    assert "row 1: '[[[" in report.rejections[0].reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (DOCUMENT + " wd:Q7 p:P1 <<( wd:Q1 wd:Q2 wd:Q3 )>> .", "triple terms"),
        (DOCUMENT.replace("Q7", "E7"), "no entity"),
        (DOCUMENT + " wd:Q7 s:name " + '"' + "a" * 17_000_000 + '" .', "a term is too long"),
        (DOCUMENT.replace("http://www.wikidata", "http://www.wiki data"), "invalid base"),
        (DOCUMENT.replace("www.wikidata.org/entity", "u:p@x.org/entity"), "without user, query and fragment"),
    ],
)
def test_rdf_that_is_of_no_wikibase_keeps_no_other_file_out(
    kg: KnowledgeGraph, tmp_path: Path, content: str, reason: str
) -> None:
    (tmp_path / "a.ttl").write_text(content)
    report = load(kg, "wikibase", [str(tmp_path / "a.ttl"), str(write(tmp_path / "b.json", item("Q1")))])
    assert report.loaded == 1
    [rejection] = report.rejections
    assert reason in rejection.reason


def test_an_entity_that_another_calls_its_statement_stays_its_own(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(
        DOCUMENT.replace("Q7", "Q8") + DOCUMENT + ' wd:Q7 p:P1 wd:Q8 . wd:Q8 s:name "eight" .'
    )
    load(kg, "wikibase", [str(tmp_path / "a.ttl")])
    assert "eight" in {getattr(quad.object, "value", "") for quad in kg.store.graph(WIKIDATA.graph("Q8"))}


def test_an_iri_that_is_none_is_written_as_one_or_left_out_and_told(kg: KnowledgeGraph, tmp_path: Path) -> None:
    triples = """ wd:Q7 <urn:x> <http://a b/"c> , <relative> , "5"^^<not one> ; <y> "z" ; <urn:z z> "3" ."""
    (tmp_path / "a.ttl").write_text(DOCUMENT + triples)
    report = load(kg, "wikibase", [str(tmp_path / "a.ttl")])
    assert (report.loaded, report.rejections) == (1, [])
    told = "\n".join(report.warnings)
    for part in ("It is written <http://a%20b/%22c>", "<relative> is not", "<not one> is not", "<y> is not"):
        assert part in told
    assert {value for (value,) in asked(kg, "SELECT ?v WHERE { wd:Q7 <urn:x> ?v }")} == {"http://a%20b/%22c", "5"}
    graph = WIKIDATA.graph("Q7")
    text_of = "".join(f"{quad.subject} {quad.predicate} {quad.object} .\n" for quad in kg.store.graph(graph))
    assert len(list(parse(text_of.encode(), RdfFormat.N_TRIPLES))) == len(kg.store.graph(graph))


@pytest.mark.parametrize(
    "base", ["http://[::1", "http://x/?q=1", "http://x/#f", "http://u:p@x/", "http://x/%zz/", "http://x\x00/"]
)
def test_an_address_that_no_iri_can_start_with_is_no_wikibase(base: str) -> None:
    with pytest.raises(InvalidInputError):
        choose_instance(Settings(_env_file=None), base)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"x": {"base": "http://a/", "license": "free > <all"}}, "the license 'free > <all'"),
        ({"x": {"base": "http://a/", "language": "not a language"}}, "'not a language'"),
        ({"x": {"base": "http://a/", "concepts": True}}, "'climate' and 'x' have the same"),
        ({"x": {"base": WIKIDATA.base}}, "'wikidata' and 'x' have the same"),
        ({"x": {}}, "'x' has no `base`"),
    ],
)
def test_a_wikibase_that_cannot_be_configured_is_told_before_anything_is_read(given: Any, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        choose_instance(Settings(_env_file=None, wikibases=given), "x")
    swapped = {"climate": {"base": WIKIDATA.base}, "wikidata": {"base": CLIMATE.base}}
    assert choose_instance(Settings(_env_file=None, wikibases=swapped), "wikidata").base == CLIMATE.base


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "LARGEST_ELEMENT", 1_000)
    path = write(tmp_path / "d.json", item("Q1"), item("Q2"))
    path.write_text(path.read_text().strip("[]\n") + "\n" + " " * 5_000)
    found = parse_elements(path)
    assert [next(found).number, next(found).number] == [1, 2]
    with pytest.raises(SourceError, match="element 3 has more than 1,000 bytes"):
        next(found)


def test_of_an_entity_given_and_withdrawn_in_one_file_the_last_word_counts(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", item("Q1"))
    load(kg, "wikibase", [str(path)])
    write(path, {"id": "Q1", "missing": ""}, item("Q1"))
    load(kg, "wikibase", [str(path)])
    assert number(kg, "wd:Q1 a wikibase:Item") == 1
    write(path, item("Q1", labels={}), {"id": "Q1", "missing": ""}, item("Q9"), {"id": "Q9", "missing": ""})
    assert load(kg, "wikibase", [str(path)]).removed == 2
    assert number(kg, "?entity a wikibase:Item") == 0


FOREIGN = """
@prefix schema: <http://schema.org/> . @prefix wikibase: <http://wikiba.se/ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix dcterms: <http://purl.org/dc/terms/> .
@prefix kg: <https://w3id.org/quadcite/ns#> . @prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> . @prefix p: <http://www.wikidata.org/prop/> .
<https://www.wikidata.org/wiki/Special:EntityData/Q5> a schema:Dataset ; schema:about wd:Q5 .
wd:Q5 a wikibase:Item , kg:PolicyDocument ; rdfs:label "Five"@en ; kg:slug "law" ; dcterms:isPartOf <cpr://doc/law> ;
  p:P1 <cpr://doc/law> ; wdt:P2 <cpr://doc/law> .
<cpr://doc/law> schema:about wd:Q5 ; dcterms:title "Repealed" ; schema:text "Repealed." .
<https://w3id.org/quadcite/id/speech/a> schema:about wd:Q5 ; schema:text "I lied." .
<https://climatepolicyradar.wikibase.cloud/entity/Q1> schema:about wd:Q5 ; rdfs:label "Other"@en .
"""


def test_a_wikibase_states_nothing_about_records_of_other_sources(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "five.ttl").write_text(FOREIGN)
    report = load(kg, "wikibase", [str(tmp_path / "five.ttl")])
    assert (report.loaded, report.rejections) == (1, [])
    said = asked(kg, "SELECT ?s ?p ?o { GRAPH ?g { ?s ?p ?o } FILTER(CONTAINS(STR(?g), '/graph/src/')) }")
    ours = [row for row in said if any(part.startswith(("cpr://", "https://w3id.org/quadcite/")) for part in row)]
    assert ours == [("http://www.wikidata.org/entity/Q5", "http://www.wikidata.org/prop/direct/P2", "cpr://doc/law")]
    assert not [row for row in said if "climatepolicyradar" in row[0]]
    assert [warning for warning in report.warnings if "cpr://doc/law" in warning]
