"""Claims with a reservation and claims in the Julian calendar, from JSON and from RDF."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.wikidata.get_claims import get_claims
from kg.tools.wikidata.reservations import load_meanings
from kg.tools.wikidata.verify import verify_fact
from kg.wikidata_properties import load_properties
from loaders.wikibase.entity_rdf import build_quads
from loaders.wikibase.instances import WIKIDATA
from tests.conftest import load, opened

WD = "http://www.wikidata.org/entity/"
ALLEGEDLY, CIRCA = "Q32188232", "Q5727902"


def time(value, precision=11, model="Q1985786"):
    return {"type": "time", "value": {"time": value, "timezone": 0, "before": 0, "after": 0, "precision": precision,
            "calendarmodel": WD + model}}  # fmt: skip


def item(qid):
    return {"type": "wikibase-entityid", "value": {"entity-type": "item", "id": qid}}


def snak(pid, value):
    kind = "time" if value["type"] == "time" else "wikibase-item"
    return {"snaktype": "value", "property": pid, "datatype": kind, "datavalue": value}


def entity(qid, label, *claims):
    found: dict[str, list[dict[str, object]]] = {}
    for number, (pid, value, *qualifiers) in enumerate(claims):
        statement = {"type": "statement", "id": f"{qid}$00000000-0000-0000-0000-{number:012d}", "rank": "normal",
                     "mainsnak": snak(pid, value)}  # fmt: skip
        if qualifiers:
            statement["qualifiers"] = {name: [snak(name, each)] for name, each in qualifiers}
        found.setdefault(pid, []).append(statement)
    return {"type": "item", "id": qid, "labels": {"en": {"language": "en", "value": label}}, "claims": found}


ENTITIES = [
    entity(
        "Q900000101",
        "Perrin Orbeck",
        ("P40", item("Q900000102"), ("P5102", item(ALLEGEDLY))),
        ("P40", item("Q900000103")),
        ("P569", time("+1452-00-00T00:00:00Z", 9), ("P1480", item(CIRCA))),
        ("P570", time("+1499-12-25T00:00:00Z")),
    ),
    entity("Q900000102", "Toby Orbeck"),
    entity("Q900000103", "Anna Orbeck", ("P569", time("-0044-03-15T00:00:00Z"))),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("reservations")
    path = folder / "entities.json"
    path.write_text(json.dumps(ENTITIES), encoding="utf-8")
    with opened(folder / "data") as kg:
        load(kg, "wikibase", [str(path)])
        yield kg


@pytest.mark.parametrize(
    ("question", "verdict", "qualified"),
    [
        ("Toby Orbeck is a child of Perrin Orbeck", "qualified", ["nature of statement: allegedly"]),
        ("Anna Orbeck is a child of Perrin Orbeck", "supported", []),
        ("Perrin Orbeck was born in 1452", "qualified", ["sourcing circumstances: circa"]),
        ("When was Perrin Orbeck born?", "qualified", ["sourcing circumstances: circa"]),
        ("Perrin Orbeck was born in 1453", "not found", ["sourcing circumstances: circa"]),
        ("Perrin Orbeck died on 25 December 1499", "supported", []),
        ("Perrin Orbeck died in 1500", "not found", []),  # as the Gregorian calendar would have it
        ("Anna Orbeck was born on -0043-03-15", "supported", []),
        ("Anna Orbeck was born on -0044-03-15", "not found", []),
        ("Anna Orbeck was born on 13 March 44 BC", "not found", []),
    ],
)
def test_a_verdict_has_the_reservations_of_its_claims(graph, question, verdict, qualified):
    result = verify_fact(graph, question)
    assert result.verdict == verdict
    shown = [*result.results, *result.nearest]
    assert shown[0].claim.qualified == qualified
    assert all(each in result.reason for each in qualified)


def test_rdf_and_json_end_in_the_same_values(graph: KnowledgeGraph, tmp_path: Path):
    path = tmp_path / "entities.nt"
    built = [build_quads(WIKIDATA, each) for each in ENTITIES]
    quads = [quad for each in built for quad in (*each.quads, *(one for rest in each.shared.values() for one in rest))]
    path.write_text("".join(f"{quad.triple} .\n" for quad in quads), encoding="utf-8")
    wanted = [each["id"] for each in ENTITIES]
    with opened(tmp_path / "data") as other:
        load(other, "wikibase", [str(path)])
        found, expected = get_claims(other, wanted).claims, get_claims(graph, wanted).claims
    assert found == expected
    dates = [(each.value.value, each.value.label, each.value.calendar) for each in found if each.value.type == "time"]
    assert dates == [
        ("1452", "1452", "julian"),
        ("1499-12-25", "25 December 1499 (Julian)", "julian"),
        ("-0043-03-15", "15 March 44 BCE (Julian)", "julian"),
    ]


def test_the_table_has_the_labels_of_the_properties():
    known = load_properties()
    shared = {name: meaning.label for name, meaning in load_meanings().items() if name in known}
    assert shared == {name: known[name].label for name in shared}
    assert {"P5102", "P1480", "P1310"} <= shared.keys()
