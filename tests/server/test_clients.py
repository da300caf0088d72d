"""The clients that people have, against the endpoint behind a real HTTP server."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import uvicorn
from rdflib import Dataset, Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore
from SPARQLWrapper import (
    CSV,
    GET,
    JSON,
    JSONLD,
    POST,
    POSTDIRECTLY,
    RDFXML,
    TSV,
    TURTLE,
    URLENCODED,
    XML,
    SPARQLWrapper,
)
from SPARQLWrapper.SPARQLExceptions import QueryBadFormed, Unauthorized
from starlette.applications import Starlette

from kg.queries.pool import QueryPool
from kg.server.auth import LocalToken
from kg.server.authentication import Accounts, Authentication
from kg.server.endpoint import Endpoint
from kg.server.sparql_protocol import routes
from kg.settings import Settings
from tests.conformance.plain_store import PlainStore

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),  # by SPARQLWrapper
]

P = URIRef("http://example.org/p")
LABEL = 'naïve "quoted", with a\ttab + 100 % & more'
MANY = 20_000
LARGE = f"SELECT ?n {{ {' '.join(f'VALUES ?{v} {{ 0 1 2 3 4 5 6 7 8 9 }}' for v in 'abcd')} VALUES ?n {{ 1 2 }} }}"


class Served(NamedTuple):
    """An endpoint that takes updates, and what its admin sends."""

    url: str
    authorization: dict[str, str]
    store: PlainStore


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("clients")
    settings = Settings(query_workers=1)
    token = LocalToken(folder)
    with PlainStore() as store, QueryPool(store, settings) as pool:
        endpoint = Endpoint(
            settings=settings,
            pool=pool,
            generation=lambda: store.generation,
            graphs=store,
            update=store.update,
            union=False,
        )
        listening = socket.create_server(("127.0.0.1", 0))
        ready = threading.Event()
        config = uvicorn.Config(
            Authentication(Starlette(routes=routes(endpoint)), Accounts(token)), log_config=None, lifespan="off"
        )
        server = uvicorn.Server(config)
        startup = server.startup

        async def announced(sockets: list[socket.socket] | None = None) -> None:
            await startup(sockets)
            ready.set()

        server.startup = announced  # type: ignore[method-assign]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        assert ready.wait(60)
        secret = (folder / "token").read_text()
        yield Served(
            f"http://127.0.0.1:{listening.getsockname()[1]}/sparql", {"Authorization": f"Bearer {secret}"}, store
        )
        server.should_exit = True
        thread.join()


@pytest.fixture(autouse=True)
def filled(served: Served) -> None:
    served.store.update("CLEAR ALL")
    data = f"<http://example.org/s> <{P}> {json.dumps(LABEL, ensure_ascii=False)}@en"
    served.store.update(f"INSERT DATA {{ {data} . GRAPH <http://example.org/g> {{ <http://example.org/t> <{P}> 2 }} }}")


SELECT = "SELECT ?s ?label { ?s ?p ?label }"


@pytest.mark.parametrize(("method", "encoding"), [(GET, URLENCODED), (POST, URLENCODED), (POST, POSTDIRECTLY)])
@pytest.mark.parametrize("result_format", [JSON, XML, CSV, TSV])
def test_sparqlwrapper_selects(served: Served, method: str, encoding: str, result_format: str) -> None:
    client = SPARQLWrapper(served.url)
    client.setMethod(method)
    client.setRequestMethod(encoding)
    client.setReturnFormat(result_format)
    client.setQuery(SELECT)
    answer = client.query().convert()
    if result_format == JSON:
        assert [row["label"]["value"] for row in answer["results"]["bindings"]] == [LABEL]
    elif result_format == XML:
        assert [node.firstChild.data for node in answer.getElementsByTagName("literal")] == [LABEL]
    else:
        assert b"http://example.org/s" in answer
        assert "naïve".encode() in answer


def test_sparqlwrapper_asks_and_names_graphs(served: Served) -> None:
    client = SPARQLWrapper(served.url, returnFormat=JSON)
    client.setQuery(f"ASK {{ ?s <{P}> 2 }}")
    assert client.query().convert()["boolean"] is False
    client.addParameter("default-graph-uri", "http://example.org/g")
    assert client.query().convert()["boolean"] is True


@pytest.mark.parametrize("result_format", [TURTLE, RDFXML, XML, JSONLD])
def test_sparqlwrapper_constructs(served: Served, result_format: str) -> None:
    client = SPARQLWrapper(served.url, returnFormat=result_format)
    client.setQuery(f"CONSTRUCT WHERE {{ ?s <{P}> ?o }}")
    answer = client.query().convert()
    graph = answer if isinstance(answer, Graph) else Graph().parse(answer, format="turtle")
    assert list(graph.objects()) == [Literal(LABEL, lang="en")]


def test_sparqlwrapper_updates_with_the_token(served: Served) -> None:
    client = SPARQLWrapper(served.url)
    client.setMethod(POST)
    client.setQuery("INSERT DATA { <a:new> <a:p> <a:o> }")
    client.addCustomHttpHeader("Authorization", "Bearer wrong")
    with pytest.raises(Unauthorized):
        client.query()
    client.addCustomHttpHeader("Authorization", served.authorization["Authorization"])
    for encoding in (URLENCODED, POSTDIRECTLY):
        client.setRequestMethod(encoding)
        client.query().response.close()
    client.setReturnFormat(JSON)
    client.setQuery("ASK { <a:new> ?p ?o }")
    assert client.query().convert()["boolean"] is True


def test_sparqlwrapper_shows_what_is_wrong_with_a_query(served: Served) -> None:
    client = SPARQLWrapper(served.url)
    client.setQuery("SELECT * {\n ?s ?p }")
    with pytest.raises(QueryBadFormed, match="line 2, column"):
        client.query()


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
@pytest.mark.parametrize("result_format", ["json", "xml", "csv", "tsv"])
def test_rdflib_reads(served: Served, method: str, result_format: str) -> None:
    store = SPARQLStore(served.url, method=method, returnFormat=result_format)
    graph = Graph(store=store)
    assert [str(row.label) for row in graph.query(SELECT)] == [LABEL]  # type: ignore[union-attr]
    if result_format in ("json", "xml"):  # rdflib reads no ASK from CSV and TSV
        assert bool(graph.query("ASK { ?s ?p ?o }"))
    if result_format == "xml":  # with another it asks for graphs as well in nothing but that
        assert len(graph.query(f"CONSTRUCT WHERE {{ ?s <{P}> ?o }}")) == 1
    named = Graph(store=store, identifier=URIRef("http://example.org/g"))
    assert [int(row.label) for row in named.query(SELECT)] == [2]  # type: ignore[union-attr]
    if result_format != "tsv":  # which rdflib takes seconds to parse
        assert len(graph.query(LARGE)) == MANY


def test_rdflib_updates_with_the_token(served: Served) -> None:
    store = SPARQLUpdateStore(served.url, served.url, headers=dict(served.authorization))
    dataset = Dataset(store=store)
    s = URIRef("a:s")
    graph = dataset.graph(URIRef("a:g"))
    graph.add((s, P, Literal(LABEL)))
    assert list(graph.objects(s, P)) == [Literal(LABEL)]
    store.update("INSERT { GRAPH <a:g> { ?s <a:copied> ?o } } WHERE { GRAPH <a:g> { ?s ?p ?o } }")
    assert len(graph) == 2
    graph.remove((s, P, None))
    assert [str(p) for p in graph.predicates()] == ["a:copied"]


def curl(served: Served, *arguments: str, path: str = "") -> subprocess.CompletedProcess[bytes]:
    executable = shutil.which("curl")
    if executable is None:
        pytest.skip("needs curl on the PATH")
    command = [executable, "--silent", "--show-error", "--max-time", "20", *arguments, served.url + path]
    return subprocess.run(command, capture_output=True, check=True)


def test_curl_asks_in_every_way(served: Served, tmp_path: Path) -> None:
    (tmp_path / "query.rq").write_text(SELECT)
    file = f"@{tmp_path / 'query.rq'}"
    direct = ("--header", "Content-Type: application/sparql-query", "--data-binary", file)
    ways = [
        ("--get", "--data-urlencode", f"query{file}"),
        ("--data-urlencode", f"query{file}"),
        direct,
        (*direct, "--request", "QUERY"),
        (*direct, "--header", "Transfer-Encoding: chunked"),
        (*direct, "--header", "Expect: 100-continue"),
    ]
    for way in ways:
        answer = json.loads(curl(served, *way).stdout)
        assert [row["label"]["value"] for row in answer["results"]["bindings"]] == [LABEL], way
    # What `--data` sends is not percent-encoded, but it is UTF-8.
    raw = curl(served, "--data", "query=SELECT ('é' AS ?x) {}", "--header", "Accept: text/csv")
    assert raw.stdout == "x\r\né\r\n".encode()


def test_curl_gets_large_results_whole_compressed_or_not(served: Served) -> None:
    asked = ("--get", "--data-urlencode", f"query={LARGE}", "--data", "format=csv", "--dump-header", "/dev/stderr")
    plain, packed = curl(served, *asked), curl(served, *asked, "--compressed")
    assert plain.stdout.count(b"\r\n") == MANY + 1
    assert packed.stdout == plain.stdout
    assert b"content-encoding: gzip" in packed.stderr.lower()
    assert b"content-encoding" not in plain.stderr.lower()


def test_curl_updates_with_the_token(served: Served) -> None:
    update = ("--data-urlencode", "update=INSERT DATA { <a:s> <a:p> 'by curl' }", "--write-out", "%{http_code}")
    assert curl(served, *update).stdout.endswith(b"403")
    authorization = f"Authorization: {served.authorization['Authorization']}"
    assert curl(served, *update, "--header", authorization).stdout == b"204"
    asked = ("--get", "--data-urlencode", "query=SELECT ?o { <a:s> ?p ?o }", "--header", "Accept: text/csv")
    assert curl(served, *asked).stdout == b"o\r\nby curl\r\n"


def test_curl_sees_the_headers_alone(served: Served) -> None:
    head = curl(served, "--head", "--get", "--data-urlencode", f"query={SELECT}").stdout.lower()
    assert head.startswith(b"http/1.1 200")
    assert b"content-type: application/sparql-results+json" in head
    assert b"allow: get, head, post, query, options" in curl(served, "--include", "--request", "OPTIONS").stdout.lower()
