"""The Graph Store Protocol over the knowledge graph: what may be written, what is refused, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse
from starlette.testclient import TestClient

from kg import user_graphs
from kg.access.actors import READ, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.queries.pool import QueryPool
from kg.search.index_sync import repair_index
from kg.server.app import create_app
from kg.server.auth import LocalToken, read_token
from kg.server.authentication import Accounts
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch, Rows
from kg.vocabulary import BASE, DCTERMS, KG, PROV, PROV_GRAPH, RDF, SH, mint
from tests.accounts import SentBy
from tests.shacl.made_up import record
from tests.tools.made_up import WordIndex

TURTLE = {"Content-Type": "text/turtle"}
NOTES = "/graphs/user/notes"
NOTE = b'<http://example.org/a> <http://purl.org/dc/terms/title> "A note" .'
GRAPH = mint("graph", "user", "notes")
CURATED = mint("graph", "cur", "places")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("written")
    settings = Settings(data_dir=folder, query_workers=1, updates=True, max_graph_bytes=200_000, _env_file=None)
    store = OxigraphStore(folder)
    with KnowledgeGraph(settings, store, WordIndex(), QueryPool(store, settings)) as graph:
        yield graph


@pytest.fixture(scope="module")
def served(opened: KnowledgeGraph) -> Iterator[TestClient]:
    token = LocalToken(opened.settings.data_dir)
    with TestClient(create_app(opened, accounts=Accounts(token)), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def kg(opened: KnowledgeGraph) -> KnowledgeGraph:
    store = opened.store
    prov = {quad.subject for quad in store.graph(PROV_GRAPH) if not str(quad.subject).startswith(f"<{BASE}id/commit/")}
    store.commit(
        {graph: [] for graph in store.graphs() if graph != PROV_GRAPH} | dict([record("tides")]),
        lambda _: Patch(remove=frozenset(quad for quad in store.graph(PROV_GRAPH) if quad.subject in prov)),
    )
    return opened


@pytest.fixture
def client(served: TestClient, kg: KnowledgeGraph) -> TestClient:
    return served


def ends(kg: KnowledgeGraph) -> tuple[int, set[Quad]]:
    """Generation and content of the store."""
    return kg.store.statistics().generation, {quad for graph in kg.store.graphs() for quad in kg.store.graph(graph)}


@pytest.mark.parametrize(
    ("media_type", "payload"),
    [
        ("text/turtle", NOTE),
        ("text/turtle; charset=utf-8", NOTE),
        ("application/n-triples", NOTE),
        (
            "application/rdf+xml",
            b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:d="http://purl.org/dc/terms/">'
            b'<rdf:Description rdf:about="http://example.org/a"><d:title>A note</d:title></rdf:Description></rdf:RDF>',
        ),
        ("application/ld+json", b'{"@id":"http://example.org/a","http://purl.org/dc/terms/title":"A note"}'),
    ],
)
def test_a_graph_is_put_and_read_back_in_each_format(client: TestClient, media_type: str, payload: bytes) -> None:
    created = client.put(NOTES, content=payload, headers={"Content-Type": media_type})
    assert (created.status_code, created.content) == (201, b"")
    for accept in ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json"):
        answer = client.get("/graphs", params={"graph": GRAPH.value}, headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, accept)
        [quad] = parse(answer.content, format=RdfFormat.from_media_type(accept))
        assert quad.triple == Triple(NamedNode("http://example.org/a"), DCTERMS.title, Literal("A note"))
    assert client.put(NOTES, content=payload, headers={"Content-Type": media_type}).status_code == 204


def test_a_graph_is_named_directly_or_indirectly_to_the_same_effect(client: TestClient) -> None:
    assert client.put("/graphs", params={"graph": GRAPH.value}, content=NOTE, headers=TURTLE).status_code == 201
    assert client.head(NOTES).status_code == 200
    assert client.get("/graphs/src/climate/tides").status_code == 200
    assert client.delete(NOTES).status_code == 204
    assert [client.get(NOTES).status_code, client.head(NOTES).status_code, client.delete(NOTES).status_code] == [
        404
    ] * 3


def test_relative_iris_are_taken_from_the_graph(client: TestClient, kg: KnowledgeGraph) -> None:
    client.put(NOTES, content=b"<#me> <friend> <> .", headers=TURTLE)
    [quad] = kg.store.graph(GRAPH)
    assert quad.triple == Triple(NamedNode(f"{GRAPH.value}#me"), mint("graph", "user", "friend"), GRAPH)


def test_post_adds_and_put_replaces(client: TestClient, kg: KnowledgeGraph) -> None:
    other = NOTE.replace(b"A note", b"Another")
    statuses = [client.post(NOTES, content=content, headers=TURTLE).status_code for content in (NOTE, other)]
    assert (statuses, len(kg.store.graph(GRAPH))) == ([201, 204], 2)
    client.put(NOTES, content=other, headers=TURTLE)
    assert len(kg.store.graph(GRAPH)) == 1


def test_a_post_without_a_graph_makes_one_and_says_where(client: TestClient) -> None:
    created = client.post("/graphs", content=NOTE, headers=TURTLE)
    assert created.status_code == 201
    place = created.headers["location"]
    assert place.startswith("http://127.0.0.1/graphs/user/")
    assert client.get(place).status_code == client.get("/graphs", params={"graph": place}).status_code == 200


def test_a_form_has_one_document_a_part(client: TestClient, kg: KnowledgeGraph) -> None:
    files = [("a", ("a.ttl", b"_:x <urn:p> 1 .", "text/turtle")), ("b", ("b.nt", b'_:x <urn:p> "2" .', "text/plain"))]
    assert client.post(NOTES, files=files).status_code == 201
    assert len({quad.subject for quad in kg.store.graph(GRAPH)}) == 2, "each part has blank nodes of its own"


def test_all_graphs_are_listed_and_the_default_graph_is_their_union(client: TestClient, kg: KnowledgeGraph) -> None:
    listed = client.get("/graphs").json()
    assert set(listed["graphs"]) == {graph.value for graph in kg.store.graphs()}
    union = client.get("/graphs?default", headers={"Accept": "application/n-triples"}).text
    assert str(mint("document", "tides")) in union


@pytest.mark.parametrize(
    ("method", "url", "status", "message"),
    [
        ("PUT", "/graphs/src/climate/tides", 403, "graph/src/climate/tides"),
        ("DELETE", "/graphs/src/climate/tides", 403, "graph/src/climate/tides"),
        ("POST", "/graphs/prov", 403, "graph/prov"),
        ("PUT", "/graphs/cur/places", 403, "graph/cur/places"),
        ("DELETE", "/graphs/cur/places", 403, "token"),
        ("POST", "/graphs/cur/places", 403, "token"),
        ("PUT", "/graphs?default", 403, "default graph"),
        ("PUT", "/graphs/user/", 403, "graph/user/"),
        ("PUT", "/graphs?graph=notes", 400, "'notes'"),
        ("PUT", "/graphs?graph=urn:a&default", 400, "?default"),
        ("PUT", "/graphs?graph=urn:a&graph=urn:b", 400, "?graph=IRI"),
        ("PUT", "/graphs/user/x?graph=urn:a", 400, "?graph"),
        ("PUT", "/graphs", 405, "GET, HEAD, POST, OPTIONS"),
        ("PATCH", "/graphs/user/x", 405, "PUT"),
    ],
)
def test_what_may_not_be_written_is_refused_and_nothing_changes(
    client: TestClient, kg: KnowledgeGraph, method: str, url: str, status: int, message: str
) -> None:
    before = ends(kg)
    answer = client.request(method, url, content=NOTE, headers=TURTLE)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.text
    assert ends(kg) == before


@pytest.mark.parametrize(
    ("media_type", "payload", "status", "message"),
    [
        ("text/turtle", b"<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> x:y .", 400, "line 2, column"),
        ("text/turtle", b'<urn:a> <urn:b> "\xe9" .', 400, "line 1"),
        ("application/rdf+xml", b"<a></b>", 400, "line 1, column"),
        ("application/ld+json", b'{"@context":"http://127.0.0.1:9/c","a":1}', 400, "JSON-LD"),
        ("application/ld+json", b'{"@id":"urn:a","urn:p":{"@graph":[{"@id":"urn:b","urn:p":1}]}}', 400, "one graph"),
        ("application/trig", NOTE, 415, "text/turtle"),
        ("application/n-quads", NOTE, 415, "text/turtle"),
        ("text/csv", NOTE, 415, "text/turtle"),
        ("", NOTE, 415, "text/turtle"),
        ("text/turtle; charset=latin-1", NOTE, 415, "UTF-8"),
        ("text/turtle", b" " * 200_001, 413, "QUADCITE_MAX_GRAPH_BYTES"),
        ("multipart/form-data; boundary=x", b"nothing", 400, "boundary"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Type: text/csv\r\n\r\na\r\n--x--', 415, "text/csv"),
    ],
)  # fmt: skip
def test_a_payload_that_cannot_be_used_says_why(
    client: TestClient, kg: KnowledgeGraph, media_type: str, payload: bytes, status: int, message: str
) -> None:
    before = ends(kg)
    answer = client.put(NOTES, content=payload, headers={"Content-Type": media_type})
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.text
    assert ends(kg) == before


LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
XML = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e">'


@pytest.mark.parametrize(
    ("media_type", "payload"),
    [
        ("application/ld+json", b'{"urn:p":' * 20_000 + b"1" + b"}" * 20_000),
        ("text/turtle", b"<urn:a> <urn:b> " + b"<<( <urn:a> <urn:b> " * 9_000 + b"1" + b")>>" * 9_000 + b" ."),
        (
            "application/rdf+xml",
            f'<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaa">{LAUGHS}]>{XML}<e:T><e:p>&a9;</e:p></e:T></rdf:RDF>'.encode(),
        ),
        ("text/turtle", b"@prefix a: <urn:" + b"a" * 60_000 + b"> . a:a a:b " + b"a:c" + b" , a:c" * 30_000 + b" ."),
    ],
    ids=["deep JSON", "deep triple terms", "a billion laughs", "a long prefix"],
)
def test_a_payload_made_to_bring_the_server_down_costs_its_sender_an_error(
    client: TestClient, opened: KnowledgeGraph, kg: KnowledgeGraph, media_type: str, payload: bytes
) -> None:
    before = ends(kg)
    limits = opened.settings.model_copy(update={"query_timeout_s": 2.0, "query_memory_mb": 128})
    small = KnowledgeGraph(limits, kg.store, kg.search, kg.pool)
    with TestClient(create_app(small), base_url="http://127.0.0.1") as hostile:
        answer = hostile.put(NOTES, content=payload, headers={"Content-Type": media_type})
    assert answer.status_code in (400, 413, 503, 504), answer.text
    assert ends(kg) == before


def test_a_graph_is_sent_in_a_type_that_is_accepted_or_not_at_all(client: TestClient) -> None:
    client.put(NOTES, content=NOTE, headers=TURTLE)
    assert client.get(NOTES, headers={"Accept": "text/html"}).status_code == 406


def test_options_tell_what_may_be_sent(client: TestClient) -> None:
    answer = client.options(NOTES)
    assert (answer.status_code, "DELETE" in answer.headers["allow"]) == (204, True)
    assert "text/turtle" in answer.headers["accept-put"]


# Shapes


def document(*properties: str) -> bytes:
    return f"<{mint('document', 'mine').value}> a <{KG.PolicyDocument.value}> {''.join(properties)} .".encode()


WHOLE = (
    f'; <{DCTERMS.title.value}> "Mine" ; <{KG.slug.value}> "mine" ; <{DCTERMS.identifier.value}> "M.1" ; '
    f"<http://data.europa.eu/eli/ontology#is_member_of> <{mint('family', 'mine').value}>"
)


@pytest.mark.parametrize("accept", ["text/turtle", "application/ld+json"])
def test_a_payload_that_breaks_its_shapes_gets_the_report(client: TestClient, kg: KnowledgeGraph, accept: str) -> None:
    before = ends(kg)
    answer = client.put(NOTES, content=document(), headers={**TURTLE, "Accept": accept})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (422, accept)
    report = list(parse(answer.content, format=RdfFormat.from_media_type(accept)))
    assert any(quad.predicate == SH.conforms and quad.object.value == "false" for quad in report)
    assert any("exactly one slug" in quad.object.value for quad in report if quad.predicate == SH.resultMessage)
    assert ends(kg) == before
    assert b"@prefix geo:" not in answer.content, "prefixes that the report does not use are not declared"


@pytest.mark.long
def test_large_graphs_are_checked_like_others(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_graphs, "_LARGE", 0)
    refused = client.put(NOTES, content=document(), headers=TURTLE)
    assert refused.status_code == 422
    report = list(parse(refused.content, format=RdfFormat.TURTLE))
    assert any(quad.predicate == SH.conforms and quad.object.value == "false" for quad in report)
    assert any("exactly one slug" in quad.object.value for quad in report if quad.predicate == SH.resultMessage)
    assert client.put(NOTES, content=document(WHOLE), headers=TURTLE).status_code == 201
    second = f'<{mint("document", "mine").value}> <{KG.slug.value}> "other" .'.encode()
    refused = client.post(NOTES, content=second, headers=TURTLE)
    assert refused.status_code == 422, "the graph would have two slugs, of which the payload has one"
    assert "slug" in refused.text
    assert client.delete(NOTES).status_code == 204
    assert client.delete(NOTES).status_code == 404


def test_a_person_may_say_more_of_a_thing_than_its_shape_asks_for(client: TestClient) -> None:
    more = '; <http://example.org/opinion> "a fine act"'
    assert client.put(NOTES, content=document(WHOLE, more), headers=TURTLE).status_code == 201


def test_what_is_added_is_checked_with_what_is_there(client: TestClient) -> None:
    client.put(NOTES, content=document(WHOLE), headers=TURTLE)
    second = f'<{mint("document", "mine").value}> <{DCTERMS.title.value}> "A second title" .'.encode()
    assert client.post(NOTES, content=second, headers=TURTLE).status_code == 422


# One triple, one graph


def test_a_triple_that_stands_elsewhere_is_refused_with_its_place(client: TestClient, kg: KnowledgeGraph) -> None:
    before = ends(kg)
    known = f'<{mint("document", "tides").value}> <{DCTERMS.title.value}> "The act tides" .'.encode()
    answer = client.post(NOTES, content=known + NOTE, headers=TURTLE)
    assert (answer.status_code, "graph/src/climate/tides" in answer.json()["message"]) == (409, True)
    assert ends(kg) == before


def test_the_text_of_a_passage_cannot_be_given_another_wording(client: TestClient) -> None:
    passage = f'<{mint("passage", "tides", "0").value}> <http://schema.org/text> "Forged." .'.encode()
    assert client.put(NOTES, content=passage, headers=TURTLE).status_code == 409


def test_two_people_cannot_say_the_same_twice(client: TestClient) -> None:
    client.put(NOTES, content=NOTE, headers=TURTLE)
    assert client.put("/graphs/user/other", content=NOTE, headers=TURTLE).status_code == 409


# Provenance


def test_why_leads_from_a_quad_to_who_sent_it_and_the_hash_of_the_payload(
    client: TestClient, kg: KnowledgeGraph
) -> None:
    client.post(NOTES, content=NOTE, headers=TURTLE)
    client.post(NOTES, content=NOTE.replace(b"A note", b"Another"), headers=TURTLE)
    [why] = explain_iri(kg.store.query, NamedNode("http://example.org/a"))
    assert (why.graph, why.kind, why.agent, len(why.sources)) == (GRAPH.value, "user", "local", 2)
    assert {source.sent_by for source in why.sources} == {"local"}
    assert all(len(source.sha256) == 64 and source.locations == (f"POST {GRAPH.value}",) for source in why.sources)
    assert "sent by   local" in str(why)


def test_a_put_forgets_what_the_graph_was_made_of_before(client: TestClient, kg: KnowledgeGraph) -> None:
    client.post(NOTES, content=NOTE, headers=TURTLE)
    client.put(NOTES, content=NOTE.replace(b"A note", b"Another"), headers=TURTLE)
    [why] = explain_iri(kg.store.query, GRAPH)
    assert [source.locations for source in why.sources] == [(f"PUT {GRAPH.value}",)]


def test_a_removal_is_recorded_and_leaves_nothing_else(client: TestClient, kg: KnowledgeGraph) -> None:
    client.put(NOTES, content=NOTE, headers=TURTLE)
    client.delete(NOTES)
    said = kg.store.graph(PROV_GRAPH)
    assert not [quad for quad in said if quad.subject == GRAPH]
    [removal] = [quad.subject for quad in said if quad.predicate == PROV.invalidated and quad.object == GRAPH][-1:]
    assert {quad.object for quad in said if quad.subject == removal and quad.predicate == PROV.wasAssociatedWith} == {
        mint("agent", "local")
    }


def test_a_curated_graph_is_one(client: TestClient, kg: KnowledgeGraph) -> None:
    assert client.post("/graphs/cur/places", content=NOTE, headers=TURTLE | bearer(kg)).status_code == 201
    assert Quad(CURATED, RDF.type, KG.CuratedGraph, PROV_GRAPH) in kg.store.graph(PROV_GRAPH)


def test_delete_of_a_graph_whose_statements_a_source_states_too_succeeds_once(
    client: TestClient, kg: KnowledgeGraph
) -> None:
    client.put(NOTES, content=NOTE, headers=TURTLE)
    [said] = kg.store.graph(GRAPH)
    source = mint("graph", "src", "climate", "reefs")
    kg.store.commit({source: [Quad(said.subject, said.predicate, said.object, source)]})
    assert (kg.store.graph(GRAPH), client.get(NOTES).status_code) == ([], 404)
    before = set(kg.store.graph(PROV_GRAPH))
    assert [client.delete(NOTES).status_code for _ in range(2)] == [204, 404]
    prov = kg.store.graph(PROV_GRAPH)
    assert not any(quad.object == KG.Cession for quad in prov)
    assert [quad.object for quad in prov if quad.predicate == PROV.invalidated and quad not in before] == [GRAPH]
    assert not any(quad.object == Literal(f"PUT {GRAPH.value}") for quad in prov if quad.predicate == KG.location)
    statistics = kg.store.statistics()
    sizes = [len(kg.store.graph(graph)) for graph in kg.store.graphs()]
    assert (statistics.graphs, statistics.quads) == (len(sizes), sum(sizes))
    kg.store.commit({source: []})
    assert kg.store.graph(GRAPH) == []


def test_put_of_an_empty_graph_withdraws_what_a_source_states_too(client: TestClient, kg: KnowledgeGraph) -> None:
    client.put(NOTES, content=NOTE, headers=TURTLE)
    [said] = kg.store.graph(GRAPH)
    source = mint("graph", "src", "climate", "reefs")
    kg.store.commit({source: [Quad(said.subject, said.predicate, said.object, source)]})
    assert client.put(NOTES, content=b"", headers=TURTLE).status_code == 204
    kg.store.commit({source: []})
    assert kg.store.graph(GRAPH) == []


# Blank nodes


def test_the_same_payload_twice_changes_nothing(client: TestClient, kg: KnowledgeGraph) -> None:
    payload = b'[] a <urn:Person> ; <urn:knows> [ <urn:name> "B" ], [ <urn:name> "C" ] .'
    client.put(NOTES, content=payload, headers=TURTLE)
    before = ends(kg)
    assert client.put(NOTES, content=payload, headers=TURTLE).status_code == 204
    assert client.post(NOTES, content=payload, headers=TURTLE).status_code == 204
    assert ends(kg) == before
    assert not any(isinstance(quad.subject, BlankNode) for quad in before[1])
    assert any(str(quad.subject).startswith(f"<{BASE}.well-known/genid/") for quad in kg.store.graph(GRAPH))


# Text


def test_text_that_people_write_is_found_until_it_goes(client: TestClient, kg: KnowledgeGraph) -> None:
    text = (
        f'<urn:unit> <http://schema.org/text> "A lighthouse of my own." ; <{DCTERMS.isPartOf.value}> <urn:mine> ; '
        "<http://schema.org/position> 0 ."
    ).encode()
    client.put(NOTES, content=text, headers=TURTLE)
    assert GRAPH.value in kg.search.state()
    client.delete(NOTES)
    assert GRAPH.value not in kg.search.state()


# Updates


def bearer(kg: KnowledgeGraph) -> dict[str, str]:
    return {"Authorization": f"Bearer {read_token(kg.settings.data_dir)}"}


def send(client: TestClient, kg: KnowledgeGraph, update: str, **parameters: str) -> tuple[int, str]:
    answer = client.post("/sparql", data={"update": update, **parameters}, headers=bearer(kg))
    return answer.status_code, answer.text


INSERT = f'INSERT DATA {{ GRAPH {GRAPH} {{ <http://example.org/a> dcterms:title "A note" }} }}'


def test_an_update_takes_the_local_token(client: TestClient, kg: KnowledgeGraph) -> None:
    assert client.post("/sparql", data={"update": INSERT}).status_code == 403
    assert send(client, kg, INSERT) == (204, "")
    [why] = explain_iri(kg.store.query, NamedNode("http://example.org/a"))
    assert (why.agent, len(why.sources[0].sha256)) == ("local-admin", 64)


READER = SentBy(actor=Actor("reader", frozenset({READ})))


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_the_scope_is_checked_before_the_payload_is_parsed(kg: KnowledgeGraph, method: str) -> None:
    with TestClient(create_app(kg, accounts=READER), base_url="http://127.0.0.1") as client:
        answer = client.request(method, NOTES, content=b"not Turtle", headers=TURTLE)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("update", "status", "message"),
    [
        (f"DELETE WHERE {{ GRAPH {mint('graph', 'src', 'climate', 'tides')} {{ ?s ?p ?o }} }}", 403, "tides"),
        (f"INSERT DATA {{ GRAPH {mint('graph', 'src', 'climate', 'x')} {{ <urn:a> <urn:b> 1 }} }}", 403, "climate/x"),
        (f"INSERT DATA {{ GRAPH {PROV_GRAPH} {{ <urn:a> <urn:b> 1 }} }}", 403, "graph/prov"),
        (f"LOAD <http://127.0.0.1:9/> INTO GRAPH {GRAPH}", 403, "LOAD"),
        (f"INSERT {{ GRAPH {GRAPH} {{ ?s ?p 1 }} }} WHERE {{ SERVICE <urn:x> {{ ?s ?p ?o }} }}", 403, "SERVICE"),
        ("CLEAR ALL", 400, "ALL"),
        ("INSERT DATA { <urn:a> <urn:b> 1 }", 400, "default graph"),
        (f"INSERT DATA {{ GRAPH {GRAPH} {{ {'(' * 2_000} }} }}", 400, "brackets"),
    ],
)
def test_an_update_keeps_to_the_graphs_of_people(
    client: TestClient, kg: KnowledgeGraph, update: str, status: int, message: str
) -> None:
    client.post("/graphs/cur/places", content=NOTE, headers=TURTLE | bearer(kg))
    before = ends(kg)
    answer = send(client, kg, update)
    assert (answer[0], message in json.loads(answer[1])["message"]) == (status, True), answer
    assert ends(kg) == before


def test_a_curated_graph_takes_inserts_and_retractions_with_the_token(client: TestClient, kg: KnowledgeGraph) -> None:
    insert = f"INSERT DATA {{ GRAPH {CURATED} {{ <urn:a> <urn:b> [ <urn:c> 1 ] }} }}"
    assert send(client, kg, insert)[0] == 204
    assert len(kg.store.graph(CURATED)) == 2
    assert send(client, kg, f"DELETE WHERE {{ GRAPH {CURATED} {{ <urn:a> ?p ?o }} }}")[0] == 204
    assert len(kg.store.graph(CURATED)) == 1
    assert client.post("/graphs/cur/places", content=NOTE, headers=TURTLE | bearer(kg)).status_code == 204
    assert len(kg.store.graph(CURATED)) == 2
    assert client.put("/graphs/cur/places", content=NOTE, headers=TURTLE | bearer(kg)).status_code == 403
    assert client.delete("/graphs/cur/places").status_code == 403
    assert client.delete("/graphs/cur/places", headers=bearer(kg)).status_code == 204
    assert kg.store.graph(CURATED) == []


def test_the_request_can_say_what_an_update_is_asked_of(client: TestClient, kg: KnowledgeGraph) -> None:
    update = f"INSERT {{ GRAPH {GRAPH} {{ ?d <urn:seen> true }} }} WHERE {{ ?d a kg:PolicyDocument }}"
    status, said = send(client, kg, update)
    assert (status, kg.store.graph(GRAPH)) == (400, [])
    assert "outside GRAPH" in str(said)
    using = {"using-graph-uri": mint("graph", "src", "climate", "tides").value}
    assert send(client, kg, update, **using)[0] == 204
    assert len(kg.store.graph(GRAPH)) == 1


def test_a_runaway_update_is_stopped_and_holds_up_nobody(opened: KnowledgeGraph, kg: KnowledgeGraph) -> None:
    limits = opened.settings.model_copy(update={"query_timeout_s": 1.0})
    quick = KnowledgeGraph(limits, kg.store, kg.search, kg.pool)
    token = LocalToken(opened.settings.data_dir)
    many = " . ".join(f"{{ GRAPH ?g{n} {{ ?s{n} ?p{n} ?o{n} }} }}" for n in range(9))
    update = f"INSERT {{ GRAPH {GRAPH} {{ ?s0 <urn:x> ?o8 }} }} WHERE {{ {many} }}"
    with TestClient(create_app(quick, accounts=Accounts(token)), base_url="http://127.0.0.1") as client:
        assert send(client, quick, update)[0] == 504
        assert client.put(NOTES, content=NOTE, headers=TURTLE).status_code == 201
    rows = kg.store.query(f"SELECT ?s {{ GRAPH {GRAPH} {{ ?s <urn:x> ?o }} }}")
    assert isinstance(rows, Rows)
    assert len(rows) == 0


def test_a_graph_is_sent_whole_however_many_rows_a_query_may_have(opened: KnowledgeGraph, kg: KnowledgeGraph) -> None:
    few = KnowledgeGraph(opened.settings.model_copy(update={"max_rows": 2}), kg.store, kg.search, kg.pool)
    with TestClient(create_app(few), base_url="http://127.0.0.1") as client:
        answer = client.get("/graphs/src/climate/tides", headers={"Accept": "application/n-triples"})
    assert len(answer.text.splitlines()) == len(kg.store.graph(mint("graph", "src", "climate", "tides"))) > 2
    assert "quadcite-row-limit" not in answer.headers


def test_healing_indexes_what_people_wrote_too(client: TestClient, kg: KnowledgeGraph) -> None:
    text = '@prefix s: <http://schema.org/> . <urn:u> s:text "Mine." ; s:position 0 ; '
    client.put(NOTES, content=f"{text} <{DCTERMS.isPartOf.value}> <urn:d> .".encode(), headers=TURTLE)
    kg.search.remove([GRAPH.value])
    repair_index(kg.store, kg.search)
    assert GRAPH.value in kg.search.state()
    client.delete(NOTES)


def test_a_document_is_read_beside_the_snapshots_where_each_start_clears_up(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere/at-all")
    document = b'{"@id": "urn:s", "urn:p": "x"}'
    assert client.put(NOTES, content=document, headers={"Content-Type": "application/ld+json"}).status_code == 201
