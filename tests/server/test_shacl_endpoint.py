"""SHACL over HTTP: what is taken, what comes back, and that no request costs more than its share."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, RecordOrigin, RowsOf, Run, SourceFile
from kg.queries.pool import QueryPool
from kg.server.app import create_app
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import KG, RDF, SH, mint, sha256
from tests.shacl.made_up import graph_of, record, without
from tests.tools.made_up import WordIndex

P = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <http://example.org/> . "
DATA = "@prefix ex: <http://example.org/> . ex:a a ex:Boat . ex:b a ex:Boat ; ex:mast 1 ."
SHAPES = P + (
    "ex:BoatShape a sh:NodeShape ; sh:targetClass ex:Boat ; sh:property ex:MastShape . "
    'ex:MastShape sh:path ex:mast ; sh:minCount 1 ; sh:message "A boat has a mast." .'
)
TURTLE = {"Content-Type": "text/turtle"}
BROKEN = graph_of("broken")
FLEET = "".join(f"<http://example.org/{n}> a <http://example.org/Boat> ; <urn:p> {n} .\n" for n in range(500))
BOMB = {
    "data": FLEET,
    "shapes": P
    + """ex:S sh:targetClass ex:Boat ; sh:sparql [ sh:select '''SELECT $this {
      $this ?p ?o . ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STRLEN(CONCAT(STR(?a), STR(?d), STR(?g))) = 9) }''' ] .""",
}


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("validated")
    settings = Settings(data_dir=folder, query_workers=1, query_timeout_s=6, max_graph_bytes=4_000_000, _env_file=None)
    store = OxigraphStore(folder)
    broken, quads = record("broken")
    run = Run(Agent("fictional loader", "1.0"))
    origin = RecordOrigin(sha256("read"), [RowsOf(SourceFile(sha256("bytes"), "data/acts.parquet"), [7, 9])])
    store.commit(
        {broken: without(quads, KG.slug), **dict([record("tides")])},
        run.describe(store, {broken: origin}),
    )
    with KnowledgeGraph(settings, store, WordIndex(), QueryPool(store, settings)) as graph:
        yield graph


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(create_app(kg), base_url="http://127.0.0.1") as client:
        yield client


def results(answer: object) -> list[Quad]:
    quads = list(parse(answer.content, format=RdfFormat.TURTLE))
    assert [quad.object for quad in quads if quad.predicate == SH.conforms]
    return [quad for quad in quads if quad.predicate == SH.result]


def test_a_shapes_graph_as_the_body_validates_what_is_stored(client: TestClient) -> None:
    shapes = P + "@prefix kg: <https://w3id.org/quadcite/ns#> . " \
        "ex:S sh:targetClass kg:PolicyDocument ; sh:property [ sh:path kg:slug ; sh:minCount 1 ] ."  # fmt: skip
    for graph, found in (("union", 1), ("default", 1), (BROKEN.value, 1), (graph_of("tides").value, 0)):
        answer = client.post("/shacl", params={"graph": graph}, content=shapes, headers=TURTLE)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/turtle; charset=utf-8")
        assert int(answer.headers["quadcite-snapshot"]) >= 1
        assert len(results(answer)) == found


def test_without_a_body_a_suite_does(client: TestClient) -> None:
    answer = client.post("/shacl", params={"graph": BROKEN.value, "format": "json"})
    assert answer.json()["conforms"] is False
    assert {each["path"] for each in answer.json()["results"]} == {KG.slug.value}
    document = client.post("/shacl", params={"document": mint("document", "tides").value, "format": "json"})
    assert document.json()["conforms"] is True


def test_sarif_of_what_is_stored_names_the_file_and_the_row(client: TestClient) -> None:
    shapes = P + "@prefix kg: <https://w3id.org/quadcite/ns#> . " \
        "ex:S sh:targetClass kg:Passage ; sh:property [ sh:path kg:pageNumber ; sh:minCount 1 ] ."  # fmt: skip
    answer = client.post("/shacl", params={"graph": BROKEN.value, "format": "sarif"}, content=shapes, headers=TURTLE)
    places = [result["locations"][0] for result in answer.json()["runs"][0]["results"]]
    files = {place["physicalLocation"]["artifactLocation"]["uri"] for place in places}
    rows = [each["name"] for place in places for each in place["logicalLocations"] if each["kind"] == "row"]
    assert (files, rows) == ({"data/acts.parquet"}, ["row 7", "row 9"])


def test_one_focus_node_can_be_looked_at(client: TestClient) -> None:
    params = {"graph": BROKEN.value, "target": mint("passage", "broken", "0").value, "format": "json"}
    assert client.post("/shacl", params=params).json()["results"] == []


def test_data_and_shapes_are_sent_together(client: TestClient) -> None:
    files = {"data": ("d.ttl", DATA), "shapes": ("s.ttl", SHAPES, "text/turtle")}
    by_form = client.post("/shacl", files=files, headers={"Accept": "application/json"})
    by_json = client.post("/shacl", json={"data": DATA, "shapes": SHAPES}, headers={"Accept": "application/json"})
    for answer in (by_form, by_json):
        assert answer.status_code == 200, answer.text
        [result] = answer.json()["results"]
        assert (result["focus"], result["message"]) == ("<http://example.org/a>", "A boat has a mast.")
        assert "quadcite-snapshot" not in answer.headers


def test_data_alone_are_validated_by_the_records_suite(client: TestClient) -> None:
    lines = "".join(f"{quad.triple} .\n" for quad in without(record("sent")[1], KG.slug))
    answer = client.post("/shacl?format=json", content=lines, headers={"Content-Type": "application/n-triples"})
    assert [each["path"] for each in answer.json()["results"]] == [KG.slug.value]


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "text/turtle"),
        ("application/n-triples", "application/n-triples"),
        ("application/rdf+xml", "application/rdf+xml"),
        ("application/ld+json", "application/ld+json"),
        ("application/json", "application/json"),
        ("application/sarif+json", "application/sarif+json"),
        ("text/plain", "text/plain"),
    ],
)
def test_the_report_comes_as_asked_for(client: TestClient, accept: str, media_type: str) -> None:
    answer = client.post("/shacl", json={"data": DATA, "shapes": SHAPES}, headers={"Accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == media_type
    if media_type in ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json"):
        quads = list(parse(answer.content, format=RdfFormat.from_media_type(media_type)))
        boat = NamedNode("http://example.org/a")
        assert [quad.object for quad in quads if quad.predicate == SH.focusNode] == [boat]
        conforms = [quad.object for quad in quads if quad.predicate == SH.conforms]
        assert conforms == [Literal("false", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#boolean"))]
    elif media_type == "application/sarif+json":
        assert answer.json()["runs"][0]["results"][0]["ruleId"]
    assert "A boat has a mast." in answer.text or media_type == "application/ld+json"


@pytest.mark.parametrize(
    ("request_of", "status", "says"),
    [
        ({"content": b""}, 400, "graph=IRI"),
        ({"content": b"<a> <b> .", "headers": TURTLE}, 400, "line 1, column 9"),
        ({"content": b"kg:a <b> 1 .", "headers": TURTLE}, 400, "add @prefix kg: <https://w3id.org/quadcite/ns#>"),
        ({"content": b"a,b", "headers": {"Content-Type": "text/csv"}}, 415, "text/csv"),
        ({"content": b"x", "headers": {**TURTLE, "Content-Encoding": "br"}}, 415, "br"),
        ({"json": {"data": DATA, "shape": SHAPES}}, 400, "'shape'"),
        ({"json": {"data": DATA, "shapes": "ex:S a 1"}}, 400, "shapes"),
        ({"json": {"data": DATA, "shapes": SHAPES.replace("minCount 1", "minCount -")}}, 400, "shapes"),
        ({"json": {"data": DATA, "shapes": SHAPES.replace("minCount 1", "minCount 'x'")}}, 400, "sh:minCount"),
        ({"json": {"data": DATA, "shapes": SHAPES.replace("minCount", "minCuont")}}, 400, "sh:minCount"),
        ({"json": {"data": DATA, "shapes": SHAPES}, "headers": {"Accept": "image/png"}}, 406, "text/turtle"),
        ({"json": {"data": DATA}, "params": {"graph": "union"}}, 400, "graph="),
        ({"content": '{"data": "\\ud800"}', "headers": {"Content-Type": "application/json"}}, 400, "surrogate"),
        (
            {"content": '{"data": "", "data_type": "\\ud800"}', "headers": {"Content-Type": "application/json"}},
            415,
            "text/turtle",
        ),
        ({"params": {"graph": "not an IRI"}}, 400, "absolute IRI"),
        ({"params": {"graph": BROKEN.value[:-1]}}, 404, BROKEN.value),
        ({"params": {"document": "cpr://doc/tide"}}, 404, "cpr://doc/tides"),
        ({"params": {"graph": "union", "suite": "all"}}, 400, "record, dataset"),
        ({"params": {"graph": "union", "timeout": "soon"}}, 400, "timeout"),
        ({"params": {"graph": "union", "nonsense": "1"}}, 400, "nonsense"),
        ({"content": b" " * 4_000_001, "headers": TURTLE}, 413, "QUADCITE_MAX_GRAPH_BYTES"),
        ({"json": BOMB, "params": {"timeout": "0.8"}}, 504, "0.8 s"),
    ],
)
def test_what_cannot_be_done_is_explained(client: TestClient, request_of: dict, status: int, says: str) -> None:
    answer = client.post("/shacl", **request_of)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert says in answer.json()["detail"]


def test_other_methods_are_named(client: TestClient) -> None:
    assert client.options("/shacl").headers["allow"] == client.get("/shacl").headers["allow"] == "POST, OPTIONS"
    assert "multipart/form-data" in client.options("/shacl").headers["accept-post"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT $this { $this a ?x SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        "SELECT $this { $this a ?x . SERVICE SILENT ?x { ?s ?p ?o } }",
        "SELECT $this { $this a ?x SERVICE:x { ?s ?p ?o } }",
        "SELECT $this { FILTER(true)SERVICE<http://127.0.0.1:9/>{ $this ?p ?o } }",
        "LOAD <http://127.0.0.1:9/>",
    ],
)
def test_shapes_ask_no_other_server(client: TestClient, query: str) -> None:
    shapes = P + f"ex:S sh:targetClass ex:Boat ; sh:sparql [ sh:prefixes ex:o ; sh:select '''{query}''' ] ."
    shapes += 'ex:o sh:declare [ sh:prefix "SERVICE" ; sh:namespace "http://example.org/" ] .'
    answer = client.post("/shacl", json={"data": DATA, "shapes": shapes})
    assert (answer.status_code, answer.json()["code"]) == (403, "query_forbidden")


def test_a_prefix_hides_no_query(client: TestClient) -> None:
    prefix = "x: <urn:x> SELECT * { SERVICE <http://127.0.0.1:9/> {} } #"
    query = "SELECT $this { $this a ?x }"
    shapes = P + f"ex:S sh:targetClass ex:Boat ; sh:sparql [ sh:prefixes ex:o ; sh:select '{query}' ] ."
    shapes += f'ex:o sh:declare [ sh:prefix "{prefix}" ; sh:namespace "http://example.org/" ] .'
    assert client.post("/shacl", json={"data": DATA, "shapes": shapes}).status_code == 403


@pytest.mark.measures_time
def test_many_at_once_wait_their_turn_or_are_sent_away(kg: KnowledgeGraph, client: TestClient) -> None:
    """A client has one place and a short queue; queries are answered meanwhile."""
    done = threading.Event()

    def validate(_: int) -> tuple[int, str | None]:
        answer = client.post("/shacl?timeout=1", json=BOMB)
        return answer.status_code, answer.headers.get("retry-after")

    def query() -> list[float]:
        times = []
        while not done.is_set():
            begun = time.perf_counter()
            assert client.get("/sparql", params={"query": "ASK { ?s a ?c }"}).status_code == 200
            times.append(time.perf_counter() - begun)
        return times

    with ThreadPoolExecutor(11) as pool:
        asking = pool.submit(query)
        begun = time.perf_counter()
        answers = list(pool.map(validate, range(10)))
        took = time.perf_counter() - begun
        done.set()
        assert median(asking.result()) < took / 20
    assert answers.count((429, "1")) == 6
    assert [status for status, _ in answers].count(504) == 4


def test_a_large_report_is_sent_whole(client: TestClient) -> None:
    lines = "".join(
        f"<http://example.org/{number}> {RDF.type} <http://example.org/Boat> .\n" for number in range(5_000)
    )
    body = {"data": lines, "shapes": SHAPES}
    answer = client.post("/shacl", json=body, headers={"Accept": "application/n-triples"})
    assert answer.text.count(SH.focusNode.value) == 5_000
    assert len(json.loads(client.post("/shacl?format=json", json=body).content)["results"]) == 5_000
