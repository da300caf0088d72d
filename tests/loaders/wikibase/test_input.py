"""What is wrong with an entity is said of it, where it stands; the others load."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.vocabulary import SKOS, WIKIBASE
from loaders.quarantine_retry import retry
from loaders.readers.json_stream import parse_elements
from loaders.sources import load
from loaders.wikibase.entity_rdf import build_quads
from loaders.wikibase.instances import CLIMATE, WIKIDATA, choose_instance, instance_at_address
from loaders.wikibase.languages import to_language_tag, to_literal
from loaders.wikibase.values import JULIAN, parse_value, php_float, to_iri, to_iso_time
from tests.loaders.wikibase.test_entity_rdf import GREGORIAN, asked, claim, item, number, text, time, write

MONTH = claim("P2", time("+2031-05-00T00:00:00Z", 10), "time")["mainsnak"]
PAGE = claim("P3", text("https://e.org/"), "url")["mainsnak"]
SAID = claim("P1", text("a"), qualifiers={"P2": [MONTH]}, references=[{"hash": "0" * 40, "snaks": {"P3": [PAGE]}}])
LINK = {"site": "enwiki", "title": "A b", "badges": ["Q17437796"]}
GOOD = item("Q5", claims={"P1": [SAID]}, sitelinks={"enwiki": LINK})


def broken(path: str, value: Any) -> dict[str, Any]:
    """`GOOD` with another value at a path such as ``claims/P1/0/rank``."""
    entity = copy.deepcopy(GOOD)
    place: Any = entity
    *steps, last = path.split("/")
    for step in steps:
        place = place[int(step) if isinstance(place, list) else step]
    if value is KeyError:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return entity


SNAK = "claims/P1/0/mainsnak"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("id", "P31", "P31 has the type 'item', but its id is of type 'property'"),
        ("id", "Q0", "missing entity id"),
        ("id", None, "missing entity id"),
        ("labels", "none", "'labels' must be an object"),
        ("claims", "none", "'claims' must be an object"),
        ("claims/P1/0/rank", "best", "'best'. Available: preferred, normal, deprecated"),
        ("claims/P1/0/mainsnak", KeyError, "'mainsnak' is missing"),
        (f"{SNAK}/snaktype", "any", "'any'. Available: value, somevalue, novalue"),
        (f"{SNAK}/property", "P7", "a statement of P7 is listed under P1"),
        (f"{SNAK}/property", "X", "a statement of X is listed under P1"),
        ("claims", {"X": [{}]}, "'X' is not the id of a property"),
        (f"{SNAK}/datavalue", {"type": "edtf", "value": "x"}, "unknown value type 'edtf'"),
        (f"{SNAK}/datavalue", KeyError, "'datavalue' is missing"),
        (f"{SNAK}/datavalue", {"type": "string", "value": 7}, "'7' is not a string"),
        ("labels/en/value", 7, "Q5: "),
        (f"{SNAK}/datavalue", {"type": "wikibase-entityid", "value": {"id": "http://x"}}, "is not the id of an entity"),
        (f"{SNAK}/datavalue", time("yesterday"), "'yesterday' is not a time"),
        (f"{SNAK}/datavalue", {"type": "quantity", "value": {"amount": "much", "unit": "1"}}, "not a decimal number"),
        (
            f"{SNAK}/datavalue",
            {"type": "quantity", "value": {"amount": "+1", "unit": "metre"}},
            "not an absolute address",
        ),
        ("modified", "2031", "'2031'"),
    ],
)
def test_what_is_wrong_with_an_entity_is_said_and_the_others_load(
    kg: KnowledgeGraph, tmp_path: Path, path: str, value: Any, reason: str
) -> None:
    report = load(kg, "wikibase", [str(write(tmp_path / "d.json", item("Q1"), broken(path, value), item("Q9")))])
    assert report.loaded == 2
    [rejection] = report.rejections
    assert reason in rejection.reason
    assert list(rejection.rows) == [2]
    assert number(kg, "?e a wikibase:Item") == 2


@pytest.mark.parametrize(
    ("path", "value", "warning"),
    [
        (f"{SNAK}/datatype", "unheard-of", "P1: the datatype 'unheard-of' is not known; its value is taken as text"),
        ("claims/P1/0/id", KeyError, "a statement without an id"),
        ("claims/P1/0/id", "first", "a statement with the id 'first', which is not a GUID"),
        ("labels", [], "'labels' is an empty list where an object is expected"),
        ("labels/en/language", "a language of no name", "'a language of no name' is not a language tag"),
        ("sitelinks/enwiki/site", "ownwiki7", "the address of the site 'ownwiki7' is not known"),
    ],
)
def test_what_is_unusual_is_loaded_and_told(
    kg: KnowledgeGraph, tmp_path: Path, path: str, value: Any, warning: str
) -> None:
    report = load(kg, "wikibase", [str(write(tmp_path / "d.json", broken(path, value)))])
    assert (report.loaded, report.rejections) == (1, [])
    assert any(warning in each for each in report.warnings), report.warnings


def test_a_property_where_an_item_should_stand_is_told(kg: KnowledgeGraph, tmp_path: Path) -> None:
    value = {"type": "wikibase-entityid", "value": {"entity-type": "property", "numeric-id": 31}}
    report = load(
        kg, "wikibase", [str(write(tmp_path / "d.json", item(claims={"P1": [claim("P1", value, "wikibase-item")]})))]
    )
    assert any("the property P31 in place of an item" in each for each in report.warnings)
    assert number(kg, "wd:Q5 wdt:P1 wd:P31") == 1


def test_a_line_that_is_no_json_is_one_bad_element(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('[\n{"id":"Q1","type":"item"},\n{"id":"Q2",\n{"id":"Q3","type":"item"}\n]\n')
    report = load(kg, "wikibase", [str(path)])
    assert report.loaded == 2
    assert [(each.record, each.reason.partition(" (")[0]) for each in report.rejections] == [
        ("d.json 2", "element 2 is not JSON")
    ]


def test_a_rejected_entity_is_kept_and_tried_again_for_its_own_wikibase(kg: KnowledgeGraph, tmp_path: Path) -> None:
    bad = broken("claims/P1/0/rank", "best")
    load(kg, "wikibase", [str(write(tmp_path / "d.json", item("Q1"), bad))], base="climate")
    [described] = kg.settings.directory.quarantine.glob("*.json")
    assert json.loads(described.read_text())["graph"].endswith("graph/src/wikibase/climate/Q5")
    [kept] = kg.settings.directory.quarantine.glob("*.jsonl")
    assert json.loads(kept.read_text()) == bad
    assert retry(kg, None)["quarantined"] == 1
    good = tmp_path / "good.json"
    good.write_text(json.dumps(GOOD))
    assert retry(kg, [described.stem], correction=str(good), by="A. Person")["loaded"] == 1
    assert number(kg, "<https://climatepolicyradar.wikibase.cloud/entity/Q5> a wikibase:Item") == 1


def test_rdf_that_is_broken_or_holds_no_entity_is_told(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<urn:a> <urn:b> .")
    (tmp_path / "b.nt").write_text("<urn:a> <urn:b> <urn:c> .\n")
    report = load(kg, "wikibase", [str(tmp_path / "a.ttl"), str(tmp_path / "b.nt")])
    assert [each.reason.split(": ", 1)[1].partition(" (")[0] for each in report.rejections] == [
        "not Turtle",
        "the RDF contains no entity of a Wikibase",
    ]


# Values that are not known, or that there are not


def test_some_value_is_a_node_by_its_place_and_no_value_a_class(kg: KnowledgeGraph, tmp_path: Path) -> None:
    claims = {
        "P1": [claim("P1", "somevalue", "string", n=1)],
        "P2": [
            claim("P2", "novalue", "string", n=2, qualifiers={"P3": [claim("P3", "somevalue", "time")["mainsnak"]]})
        ],
    }
    write(tmp_path / "d.json", item(claims=claims))
    assert load(kg, "wikibase", [str(tmp_path / "d.json")]).rejections == []
    assert number(kg, "wd:Q5 wdt:P1 ?x . wd:Q5 p:P1/ps:P1 ?x FILTER(CONTAINS(STR(?x), '/.well-known/genid/'))") == 1
    assert number(kg, "wd:Q5 a wdno:P2 . wd:Q5 p:P2 ?s . ?s a wdno:P2 ; pq:P3 ?y FILTER(ISIRI(?y))") == 1


def test_ranks_and_truthy_statements(kg: KnowledgeGraph, tmp_path: Path) -> None:
    def ranked(property_id: str, *ranks: str) -> list[Any]:
        return [
            claim(property_id, text(rank), rank=rank, n=int(property_id[1:]) * 10 + n) for n, rank in enumerate(ranks)
        ]

    claims = {
        "P1": ranked("P1", "normal", "preferred", "deprecated"),
        "P2": ranked("P2", "normal", "deprecated"),
        "P3": ranked("P3", "deprecated"),
    }
    load(kg, "wikibase", [str(write(tmp_path / "d.json", item(claims=claims)))])
    assert sorted(asked(kg, "SELECT ?p ?v WHERE { VALUES ?p { wdt:P1 wdt:P2 wdt:P3 } wd:Q5 ?p ?v }")) == [
        ("http://www.wikidata.org/prop/direct/P1", "preferred"),
        ("http://www.wikidata.org/prop/direct/P2", "normal"),
    ]
    assert number(kg, "?s a wikibase:BestRank") == 2
    assert number(kg, "?s wikibase:rank wikibase:DeprecatedRank") == 3


@pytest.mark.parametrize(
    ("datatype", "datavalue", "expected"),
    [
        ("url", text("https://example.org/a b"), "<https://example.org/a%20b>"),
        ("commonsMedia", text("A b & c.jpg"), "<http://commons.wikimedia.org/wiki/Special:FilePath/A%20b%20%26%20c.jpg>"),
        ("geo-shape", text("Data:A b.map"), "<http://commons.wikimedia.org/data/main/Data:A_b.map>"),
        ("external-id", text("x1"), '"x1"'),
        ("math", text("E=mc^2"), '"E=mc^2"'),
        ("monolingualtext", {"type": "monolingualtext", "value": {"text": "casa", "language": "pt"}}, '"casa"@pt'),
        ("wikibase-form", {"type": "wikibase-entityid", "value": {"id": "L7-F1", "entity-type": "form"}},
         "<http://www.wikidata.org/entity/L7-F1>"),
        ("wikibase-sense", {"type": "wikibase-entityid", "value": {"id": "L7-S2", "entity-type": "sense"}},
         "<http://www.wikidata.org/entity/L7-S2>"),
        ("globe-coordinate",
         {"type": "globecoordinate", "value": {"latitude": 1.5, "longitude": -2, "precision": 0.1,
                                              "globe": "http://www.wikidata.org/entity/Q111"}},
         '"<http://www.wikidata.org/entity/Q111> Point(-2 1.5)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>'),
    ],
)  # fmt: skip
def test_each_datatype_has_the_value_that_wikibase_publishes(datatype: str, datavalue: Any, expected: str) -> None:
    quads = build_quads(WIKIDATA, item(claims={"P1": [claim("P1", datavalue, datatype)]})).quads
    [value] = [quad.object for quad in quads if quad.predicate.value == "http://www.wikidata.org/prop/direct/P1"]
    assert str(value) == expected


# Dates


@pytest.mark.parametrize(
    ("value", "precision", "model", "expected"),
    [
        ("+1952-03-11T00:00:00Z", 11, GREGORIAN, "1952-03-11T00:00:00Z"),
        ("+00000002014-01-05T12:34:56Z", 14, GREGORIAN, "2014-01-05T12:34:56Z"),
        ("+1990-11-00T00:00:00Z", 10, GREGORIAN, "1990-11-01T00:00:00Z"),
        ("+1990-00-00T00:00:00Z", 9, GREGORIAN, "1990-01-01T00:00:00Z"),
        ("+2031-02-31T00:00:00Z", 11, GREGORIAN, "2031-02-28T00:00:00Z"),
        ("-0044-03-15T00:00:00Z", 11, GREGORIAN, "-0043-03-15T00:00:00Z"),
        ("-0001-01-01T00:00:00Z", 9, GREGORIAN, "0000-01-01T00:00:00Z"),
        ("-13798000000-00-00T00:00:00Z", 3, GREGORIAN, "-13798000000-01-01T00:00:00Z"),
        ("+1616-04-23T00:00:00Z", 11, JULIAN, "1616-05-03T00:00:00Z"),
        ("+1616-04-23T00:00:00Z", 9, JULIAN, "1616-01-01T00:00:00Z"),
        ("-0044-03-15T00:00:00Z", 11, JULIAN, "-0043-03-13T00:00:00Z"),
        ("+0000-01-01T00:00:00Z", 11, GREGORIAN, None),
    ],
)
def test_a_time_is_an_xsd_date_time(value: str, precision: int, model: str, expected: str | None) -> None:
    assert to_iso_time(value, precision, model) == expected


@pytest.mark.parametrize(
    ("value", "model", "precision"),
    [
        ("+1700-02-29T00:00:00Z", GREGORIAN, 10),
        ("+1700-02-29T00:00:00Z", JULIAN, 11),
        ("+1701-02-29T00:00:00Z", JULIAN, 10),
        ("-0001-02-29T00:00:00Z", GREGORIAN, 11),
        ("+1999-04-31T00:00:00Z", GREGORIAN, 10),
    ],
)
def test_a_day_that_its_month_has_not_is_known_to_the_month(value: str, model: str, precision: int) -> None:
    snak = {"time": value, "timezone": 0, "before": 0, "after": 0, "precision": 11, "calendarmodel": model}
    found = parse_value(WIKIDATA, "time", {"type": "time", "value": snak})
    assert dict(found.node)[WIKIBASE.timePrecision] == Literal(precision)
    assert (found.warning is None) == (precision == 11)


@pytest.mark.parametrize("digits", [17, 5_000])
def test_a_year_that_no_wikibase_has_is_refused(digits: int) -> None:
    with pytest.raises(RecordError):
        to_iso_time(f"+{'1' * digits}-01-01T00:00:00Z", 9, GREGORIAN)


@given(st.dates(date(1, 1, 1)))
def test_a_gregorian_day_stays_what_it_is(day: date) -> None:
    assert to_iso_time(f"+{day.isoformat()}T00:00:00Z", 11, GREGORIAN) == f"{day.isoformat()}T00:00:00Z"


@given(st.dates(date(1900, 3, 1), date(2100, 2, 28)))
def test_a_julian_day_is_thirteen_days_later_in_our_time(day: date) -> None:
    found = to_iso_time(f"+{day.isoformat()}T00:00:00Z", 11, JULIAN)
    assert found == f"{date.fromordinal(day.toordinal() + 13).isoformat()}T00:00:00Z"


@given(st.floats(-360, 360))
def test_a_number_is_written_as_php_does_and_read_back(value: float) -> None:
    assert float(php_float(value)) == pytest.approx(value, rel=1e-13, abs=1e-300)


@given(st.text(max_size=40))
def test_an_address_is_an_iri_or_refused(value: str) -> None:
    try:
        found = to_iri(f"http://{value}")
    except RecordError:
        return
    assert str(NamedNode(found)) == f"<{found}>"


# Languages, instances


@given(st.text(max_size=20))
def test_any_language_code_gives_a_literal(code: str) -> None:
    literal, warning = to_literal("text", code)
    assert literal.language == (to_language_tag(code) or "und")
    assert (warning is None) == (to_language_tag(code) is not None)
    assert Literal("text", language=literal.language) == literal


def test_a_wikibase_is_known_by_name_or_address(kg: KnowledgeGraph) -> None:
    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    assert choose_instance(settings) == WIKIDATA
    assert choose_instance(settings, "climate") == choose_instance(settings, CLIMATE.base) == CLIMATE
    assert choose_instance(settings, "https://www.wikidata.org/entity/") == WIKIDATA
    assert instance_at_address("http://localhost:8181").base == "http://localhost:8181/"
    assert choose_instance(settings, choose_instance(settings, "http://a.example.org").name) == instance_at_address(
        "http://a.example.org"
    )
    with pytest.raises(InvalidInputError, match="Available: wikidata, climate"):
        choose_instance(settings, "nonsense")


def test_only_a_role_of_skos_can_be_given_to_a_property() -> None:
    with pytest.raises(InvalidInputError, match=r"'P5' -> 'wider'.*broader"):
        replace(WIKIDATA, skos={"P5": "wider"})


# CSV


def test_a_csv_of_concepts_loads_like_a_dump(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "concepts.csv"
    path.write_text(
        "wikibase_id,Preferred label,label@pt,alternative_labels,negative_labels,definition,subconcept_of,extra\n"
        'Q7,flood,inundação,"[""flooding"", ""deluge""]",flood of tears,"Water, where none was",Q1|Q2,?\n'
        "seven,x,,,,,,\n"
        "Q8,storm,,gale; squall,,,https://climatepolicyradar.wikibase.cloud/entity/Q1,\n"
        "Q9,bad,,,,,first,\n",
        encoding="utf-8",
    )
    report = load(kg, "wikibase", [str(path)], base="climate")
    assert report.loaded == 2
    assert [each.reason for each in report.rejections] == [
        "row 2: 'seven' is not the id of an item, such as Q42",
        "row 4: broader: 'first' is not the id of an item, such as Q42",
    ]
    assert any("'extra'" in each for each in report.warnings)
    concept = NamedNode("cpr://concept/Q7")
    rows = asked(kg, f"SELECT ?p ?o WHERE {{ {concept} ?p ?o }}")
    short = {(predicate.rpartition("#")[2], value) for predicate, value in rows}
    assert {
        ("prefLabel", "flood"), ("prefLabel", "inundação"), ("altLabel", "flooding"), ("altLabel", "deluge"),
        ("negativeLabel", "flood of tears"), ("definition", "Water, where none was"),
        ("broader", "cpr://concept/Q1"), ("broader", "cpr://concept/Q2"),
    } <= short  # fmt: skip
    assert SKOS.Concept.value in {value for _, value in rows}


# Any text at all


@given(st.text(alphabet='{}[]",:\\ \nQ1id', max_size=60))
def test_no_file_of_whatever_text_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    path = tmp_path_factory.mktemp("any") / "a.json"
    path.write_text(content)
    with suppress(SourceError):
        for element in parse_elements(path):
            assert (element.value is None) == (element.problem is not None)


KEYS = ["id", "type", "labels", "claims", "P1", "mainsnak", "value", "snaktype", "property"]
LEAVES = st.none() | st.integers() | st.text(max_size=5)
ANY_JSON = st.recursive(
    LEAVES,
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.sampled_from(KEYS), each, max_size=4),
    max_leaves=12,
)


@given(ANY_JSON)
def test_any_json_is_an_entity_or_a_bad_record(value: Any) -> None:
    entity = value if isinstance(value, dict) else {"claims": value}
    with suppress(RecordError):
        assert build_quads(WIKIDATA, {**entity, "id": "Q1", "type": "item"}).quads
