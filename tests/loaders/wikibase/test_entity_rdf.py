"""Wikibase JSON and RDF become the published model: counted against the files, and round trip for round trip."""

from __future__ import annotations

import bz2
import gzip
import json
import random
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import Rows
from kg.vocabulary import BASE, PROV_GRAPH
from loaders.load_report import LoadReport
from loaders.sources import load
from tests.loaders.conftest import content
from tests.loaders.wikibase.facts import counted, objects, turtle_statements

GREGORIAN = "http://www.wikidata.org/entity/Q1985727"


def asked(kg: KnowledgeGraph, query: str) -> list[tuple[str, ...]]:
    found = kg.store.query(query)
    assert isinstance(found, Rows)
    return [tuple("" if term is None else term.value for term in row) for row in found.rows]


def number(kg: KnowledgeGraph, pattern: str) -> int:
    [[count]] = asked(kg, f"SELECT (COUNT(*) AS ?n) WHERE {{ SELECT DISTINCT * WHERE {{ {pattern} }} }}")
    return int(count)


def loaded(kg: KnowledgeGraph, *places: Path, base: str | None = None) -> LoadReport:
    return load(kg, "wikibase", [str(place) for place in places], base=base)


def item(entity_id: str = "Q5", **more: Any) -> dict[str, Any]:
    return {"type": "item", "id": entity_id, "labels": {"en": {"language": "en", "value": entity_id}}, **more}


def claim(property_id: str, datavalue: Any, datatype: str | None = "string", **more: Any) -> dict[str, Any]:
    snak: dict[str, Any] = {"snaktype": "value", "property": property_id, "datavalue": datavalue}
    if isinstance(datavalue, str):
        snak = {"snaktype": datavalue, "property": property_id}
    if datatype is not None:
        snak["datatype"] = datatype
    guid = f"Q5$00000000-0000-4000-8000-{more.pop('n', 1):012d}"
    return {"mainsnak": snak, "type": "statement", "rank": "normal", "id": guid, **more}


def text(value: str) -> dict[str, Any]:
    return {"type": "string", "value": value}


def time(value: str, precision: int = 11) -> dict[str, Any]:
    return {
        "type": "time",
        "value": {
            "time": value, "timezone": 0, "before": 0, "after": 0, "precision": precision, "calendarmodel": GREGORIAN,
        },
    }  # fmt: skip


def write(path: Path, *entities: Any) -> Path:
    path.write_text("[\n" + ",\n".join(json.dumps(entity) for entity in entities) + "\n]\n", encoding="utf-8")
    return path


# Counts against the files


def figures(kg: KnowledgeGraph) -> tuple[int, int, int, int]:
    kinds = " ".join(f"wikibase:{kind}" for kind in ("Item", "Property", "Lexeme", "Form", "Sense", "Mediainfo"))
    entities = asked(kg, f"SELECT DISTINCT ?e WHERE {{ ?e a ?k VALUES ?k {{ {kinds} }} }}")
    qualifiers = number(kg, '?s a wikibase:Statement ; ?p ?o FILTER(CONTAINS(STR(?p), "/prop/qualifier/P"))')
    classes = "FILTER(CONTAINS(STR(?c), '/prop/novalue/'))"
    none = number(kg, f"?s a wikibase:Statement ; a ?c {classes}")
    of_property = "BIND(IRI(REPLACE(STR(?p), '/prop/P', '/prop/novalue/P')) AS ?c)"
    main = number(kg, f"?e ?p ?s . ?s a wikibase:Statement FILTER(CONTAINS(STR(?p), '/prop/P')) {of_property} ?s a ?c")
    return (
        len(entities),
        number(kg, "?s a wikibase:Statement"),
        qualifiers + none - main,
        number(kg, "?s a wikibase:Statement ; prov:wasDerivedFrom ?r"),
    )


def test_real_entities_have_as_many_statements_qualifiers_and_references_as_their_files(
    kg: KnowledgeGraph, shared: Path
) -> None:
    # The two files of a form and a sense are of a lexeme that another file holds whole.
    files = [p for p in sorted((shared / "data/wikibase/json").glob("*.json")) if p.stem not in ("L525F2", "L525S1")]
    report = loaded(kg, *files)
    assert report.rejections == []
    expected = counted(entity for path in files for entity in objects(path))
    assert figures(kg) == expected.figures
    assert expected.statements > 900


def test_the_same_entity_in_two_files_is_never_merged(kg: KnowledgeGraph, shared: Path) -> None:
    report = loaded(kg, shared / "data/wikibase/json")
    assert {each.record for each in report.rejections} == {"wikidata L525-F2", "wikidata L525-S1"}


@pytest.mark.parametrize("name", ["sample-dump-20150815.json.gz", "mock-dump-with-bugs.json"])
def test_a_whole_dump_loads_and_what_is_odd_in_it_is_told(kg: KnowledgeGraph, shared: Path, name: str) -> None:
    path = shared / "data/wikibase" / name
    report = loaded(kg, path)
    assert report.rejections == []
    assert figures(kg) == counted(objects(path)).figures
    odd = [warning for warning in report.warnings if "an empty list where an object is expected" in warning]
    assert len(odd) == (2 if "bugs" in name else 0)


def test_json_that_is_no_entity_is_reported_file_by_file(kg: KnowledgeGraph, shared: Path) -> None:
    report = loaded(kg, shared / "data/wikibase/other")
    assert report.loaded == 1  # emptyValues.json is an entity
    names = {path.name for path in (shared / "data/wikibase/other").iterdir()} - {"emptyValues.json"}
    assert {Path(each.source or "").name for each in report.rejections} == names
    assert all("missing entity id" in each.reason for each in report.rejections)


def test_real_rdf_keeps_every_triple_of_its_entity(kg: KnowledgeGraph, shared: Path) -> None:
    folder = shared / "data/wikibase/rdf"
    for name in ("Q42", "Q37599471", "Q24628793"):
        report = loaded(kg, folder / f"{name}.ttl")
        assert report.rejections == []
        entity = f"http://www.wikidata.org/entity/{name}"
        wanted = {
            (quad.subject.value, quad.predicate.value, canonical(quad.object))
            for quad in parse(path=folder / f"{name}.ttl")
            if not isinstance(quad.object, BlankNode) and quad.subject.value != "http://wikiba.se/ontology#Dump"
        }
        have = {
            (quad.subject.value, quad.predicate.value, canonical(quad.object))
            for quad in content(kg.store)  # type: ignore[arg-type]
            if "/der/" not in quad.graph_name.value
        }
        assert wanted - have == set(), entity
        statements = asked(kg, f"SELECT DISTINCT ?s WHERE {{ <{entity}> ?p ?s . ?s a wikibase:Statement }}")
        assert len(statements) == turtle_statements(folder / f"{name}.ttl")


def canonical(term: Any) -> str:
    """A term without what the store writes otherwise: signs, exponents and trailing zeros of numbers."""
    if isinstance(term, Literal) and term.datatype.value.endswith(("#decimal", "#double")):
        return f"{float(term.value):.12g}"
    if isinstance(term, Literal):
        return f"{term.value}@{(term.language or '').lower()}"
    return str(term)


def test_a_language_tag_that_none_is_is_told_and_its_text_kept(kg: KnowledgeGraph, shared: Path) -> None:
    path = shared / "data/wikibase/rdf/RdfRepositoryUpdaterIntegrationTest.Q513-munged.ttl"
    report = loaded(kg, path)
    assert report.rejections == []
    assert any("'zh-classical' is not a language tag. Its texts are marked 'lzh'" in each for each in report.warnings)
    assert number(kg, 'wd:Q513 rdfs:label ?l FILTER(LANG(?l) = "lzh")') > 0
    # What the query service leaves out of its store is said again.
    assert figures(kg)[:2] == (1, turtle_statements(path))


# Round trips and agreement


def exported(kg: KnowledgeGraph) -> str:
    output = BytesIO()
    for graph in kg.store.graphs():
        if "/graph/src/wikibase/" in graph.value or "/graph/ref/wikibase/" in graph.value:
            part = BytesIO()
            kg.store.dump(part, RdfFormat.TURTLE, graph)
            output.write(part.getvalue())
    return output.getvalue().decode()


def entity_quads_of(kg: KnowledgeGraph) -> set[str]:
    return {str(quad) for quad in content(kg.store)}  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("name", ["Q2112", "Q571", "Q19180293", "P8098", "L525", "Q1", "Q4115189", "M56656949"])
def test_json_to_graph_to_turtle_to_graph_is_equal(
    open_graph: Callable[..., KnowledgeGraph], shared: Path, tmp_path: Path, name: str
) -> None:
    first, second = open_graph("first"), open_graph("second")
    assert loaded(first, shared / f"data/wikibase/json/{name}.json").rejections == []
    (tmp_path / "again.ttl").write_text(exported(first), encoding="utf-8")
    assert loaded(second, tmp_path / "again.ttl").rejections == []
    assert entity_quads_of(second) == entity_quads_of(first)


def test_a_value_or_reference_in_json_and_in_rdf_is_the_same_node_and_says_the_same(
    open_graph: Callable[..., KnowledgeGraph], shared: Path
) -> None:
    """No entity is there in both forms; what they share are nodes named by the hash of what they say."""
    from_json, from_rdf = open_graph("json"), open_graph("rdf")
    loaded(from_json, shared / "data/wikibase/json")
    loaded(from_rdf, shared / "data/wikibase/rdf")
    ours = {graph.value for graph in from_json.store.graphs() if "/ref/wikibase/" in graph.value}
    theirs = {graph.value for graph in from_rdf.store.graphs() if "/ref/wikibase/" in graph.value}
    common = ours & theirs
    assert sum("/value/" in each for each in common) >= 5
    # What the JSON cannot tell: links of external ids and quantities in other units.
    unknown = ("-normalized/", "#quantityNormalized")
    for graph in sorted(common):
        said = {str(quad) for quad in from_json.store.graph(NamedNode(graph))}
        published = {
            str(q)
            for q in from_rdf.store.graph(NamedNode(graph))
            if not any(each in q.predicate.value for each in unknown)
        }
        assert said == published


def test_the_node_of_a_value_has_the_hash_that_wikibase_gives_it(kg: KnowledgeGraph, tmp_path: Path) -> None:
    """Hashes as the RDF of public items has them: a day, a year, two quantities, a place."""
    quantities = [("+19460", "1"), ("+1.96", "http://www.wikidata.org/entity/Q11573")]
    claims = [
        claim("P1", time("+1979-00-00T00:00:00Z", 9), "time"),
        *(
            claim("P2", {"type": "quantity", "value": {"amount": a, "unit": u}}, "quantity", n=n)
            for n, (a, u) in enumerate(quantities, 2)
        ),
        claim(
            "P3",
            {
                "type": "globecoordinate",
                "value": {
                    "latitude": 51.566527777778, "longitude": -0.14544444444444, "altitude": None,
                    "precision": 2.7777777777778e-05, "globe": "http://www.wikidata.org/entity/Q2",
                },
            },
            "globe-coordinate",
            n=9,
        ),
    ]  # fmt: skip
    grouped: dict[str, list[Any]] = {}
    for each in claims:
        grouped.setdefault(each["mainsnak"]["property"], []).append(each)
    assert loaded(kg, write(tmp_path / "a.json", item(claims=grouped))).rejections == []
    found = {
        iri.rpartition("/")[2] for (iri,) in asked(kg, "SELECT ?v WHERE { ?s ?p ?v . ?v a ?k } ") if "/value/" in iri
    }
    assert found == {
        "811f31244f158332fb4f1e13ae9f4d50", "4e3244ccc4d14053f6649e98562f6f0a", "a75316bb9a036450071a6af49f7907ca",
        "12b3879e659a02b6b54b45eb5d03fe47",
    }  # fmt: skip


# Public queries


def test_queries_written_for_wikidata_run_here(kg: KnowledgeGraph, shared: Path) -> None:
    loaded(kg, shared / "data/wikibase/rdf/Q42.ttl", shared / "data/wikibase/json/Q571.json")
    # Truthy values with the label of the item.
    rows = asked(
        kg, 'SELECT ?label WHERE { ?person wdt:P106 wd:Q36180 ; rdfs:label ?label FILTER(LANG(?label) = "en") }'
    )
    assert ("Douglas Adams",) in rows
    # A statement with qualifiers and its rank.
    rows = asked(
        kg,
        "SELECT ?school ?start ?end ?rank WHERE { wd:Q42 p:P69 ?s . ?s ps:P69 ?school ; wikibase:rank ?rank "
        "OPTIONAL { ?s pq:P580 ?start } OPTIONAL { ?s pq:P582 ?end } }",
    )
    assert rows
    assert all(rank.endswith("Rank") for *_, rank in rows)
    assert any(start and end for _, start, end, _ in rows)
    # The precision and calendar of a date, by its value node.
    rows = asked(
        kg,
        "SELECT ?time ?precision ?calendar WHERE { wd:Q42 p:P569/psv:P569 ?v . ?v wikibase:timeValue ?time ; "
        "wikibase:timePrecision ?precision ; wikibase:timeCalendarModel ?calendar }",
    )
    assert rows == [("1952-03-11T00:00:00Z", "11", GREGORIAN)]


# Forms of file


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("dump.json", bytes), ("dump.json.gz", gzip.compress), ("dump.json.bz2", bz2.compress),
        ("dump.jsonl", bytes), ("dump.ndjson", bytes),
    ],
)  # fmt: skip
@pytest.mark.parametrize("style", ["array", "lines", "one line", "indented", "answer"])
def test_a_dump_is_the_same_in_any_form(
    kg: KnowledgeGraph, tmp_path: Path, name: str, pack: Callable[[bytes], bytes], style: str
) -> None:
    entities = [item(f"Q{n}", claims={"P1": [claim("P1", text('a } " ] \\ text'), n=n)]}) for n in range(1, 6)]
    written = {
        "array": "[\n" + ",\n".join(map(json.dumps, entities)) + "\n]\n",
        "lines": "".join(json.dumps(entity) + "\n" for entity in entities),
        "one line": json.dumps(entities),
        "indented": json.dumps(entities, indent=2),
        "answer": json.dumps({"entities": {entity["id"]: entity for entity in entities}, "success": 1}),
    }
    (tmp_path / name).write_bytes(pack(written[style].encode()))
    report = loaded(kg, tmp_path / name)
    assert (report.loaded, report.rejections) == (5, [])
    assert number(kg, "?s a wikibase:Statement") == 5
    rows = asked(kg, f"SELECT ?rows WHERE {{ GRAPH <{PROV_GRAPH.value}> {{ <{BASE}graph/src/wikibase/wikidata/Q3> "
                     "kg:sourceRows ?rows } }")  # fmt: skip
    assert rows == [("3",)]


def cut(path: Path, share: float) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


@pytest.mark.long
@pytest.mark.parametrize("name", ["dump.json", "dump.json.gz", "dump.json.bz2"])
def test_of_a_file_that_is_cut_off_the_entities_before_the_cut_are_loaded_and_the_cut_is_told(
    kg: KnowledgeGraph, tmp_path: Path, name: str
) -> None:
    chance = random.Random(1)
    entities = [item(f"Q{n}", aliases={"en": [{"language": "en", "value": f"{chance.random()}"} for _ in range(400)]})
                for n in range(1, 60)]  # fmt: skip
    write(tmp_path / "all.json", *entities)
    data = (tmp_path / "all.json").read_bytes()
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(data))
    report = loaded(kg, cut(tmp_path / name, 0.6))
    assert len(report.rejections) == 1
    reason = report.rejections[0].reason
    assert "truncated" in reason or "is not JSON" in reason
    if name != "dump.json.bz2":  # its blocks are larger than what is here
        assert 10 < report.loaded < 59


def test_a_load_again_changes_nothing_and_a_changed_entity_changes_alone(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "dump.json", item("Q1"), item("Q2"))
    loaded(kg, path)
    generation = kg.store.statistics().generation
    report = loaded(kg, path)
    assert (report.loaded, report.skipped, kg.store.statistics().generation) == (0, 2, generation)
    write(path, item("Q1"), item("Q2", descriptions={"en": {"language": "en", "value": "new"}}))
    report = loaded(kg, path)
    assert (report.loaded, report.skipped, report.quads_added, report.quads_removed) == (1, 1, 1, 0)


def test_values_and_references_live_as_long_as_a_statement_needs_them(kg: KnowledgeGraph, tmp_path: Path) -> None:
    snak = claim("P1", time("+2031-01-01T00:00:00Z"), "time")["mainsnak"]
    reference = {"hash": "ab" * 20, "snaks": {"P1": [snak]}}
    one = item("Q5", claims={"P7": [claim("P7", text("x"), references=[reference])]})
    other = item("Q6", claims={"P7": [claim("P7", text("x"), n=2, references=[reference])]})

    def nodes() -> int:
        return sum("/ref/wikibase/" in graph.value for graph in kg.store.graphs())

    path = write(tmp_path / "dump.json", one, other)
    loaded(kg, path)
    assert nodes() == 2
    write(path, item("Q5"), other)
    loaded(kg, path)
    assert nodes() == 2
    write(path, item("Q5"), item("Q6"))
    loaded(kg, path)
    assert nodes() == 0


def entities_of(kg: KnowledgeGraph) -> Iterator[str]:
    return (graph.value for graph in kg.store.graphs() if "/src/wikibase/" in graph.value)


def test_an_entity_that_is_gone_is_removed_with_its_view(kg: KnowledgeGraph, tmp_path: Path) -> None:
    loaded(kg, write(tmp_path / "a.json", item("Q1"), item("Q2")))
    (tmp_path / "b.json").write_text(json.dumps({"entities": {"Q1": {"id": "Q1", "missing": ""}}}))
    report = loaded(kg, tmp_path / "b.json")
    assert (report.removed, report.rejections) == (1, [])
    write(tmp_path / "a.json", item("Q3"))
    report = load(kg, "wikibase", [str(tmp_path / "a.json")], prune=True)
    assert report.removed == 1
    assert {graph.value.rpartition("/")[2] for graph in kg.store.graphs() if graph != PROV_GRAPH} == {"Q3"}


def test_the_base_says_which_wikibase_it_is(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "dump.json", item("Q1"))
    loaded(kg, path)
    loaded(kg, path, base="https://wikibase.example.org/w/entity/")
    loaded(kg, path, base="climate")
    assert sorted(entities_of(kg)) == [
        BASE + "graph/src/wikibase/climate/Q1",
        BASE + "graph/src/wikibase/wikibase.example.org%2Fw/Q1",
        BASE + "graph/src/wikibase/wikidata/Q1",
    ]
    assert number(kg, "<https://wikibase.example.org/w/entity/Q1> a wikibase:Item") == 1
