"""Authorization over HTTP and MCP: tools that the caller may call, arguments, paths, and parts of the data."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any, Final

import pyoxigraph as ox
import pytest
from fastmcp import Client
from pyoxigraph import Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

from kg.access.actors import SCOPES, Actor
from kg.access.endpoints import ENDPOINTS
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.server.app import create_app
from kg.server.authentication import Accounts
from kg.server.authorization import PATHS, find_action
from kg.server.mcp import build_mcp
from kg.tools.audiences import AWARE, find_audience
from kg.tools.decisions import build_policies, get_policies
from kg.vocabulary import BASE, RDFS, SOURCED
from tests.folders import open_graph

RULES: Final = """
@id("press-tools") forbid(principal in Group::"press", action in Action::"tools", resource)
unless { ["search", "fetch", "health"].contains(resource.name) };
@id("press-limit") @advice("At most 5.") forbid(principal in Group::"press", action == Action::"search", resource)
when { context.args.limit > 5 };
@id("partners-see") forbid(principal in Group::"partners", action == Action::"see", resource)
unless { resource in Family::"graph/user/" || resource == Family::"graph/ref/" };
@id("operators-watch") permit(principal in Group::"operators", action == Action::"admin.state", resource);
@id("nobody-sees") forbid(principal in Group::"blind", action == Action::"see", resource);
"""
EVERYTHING: Final = frozenset(SCOPES)
ACTORS: Final = {
    "anna": Actor("anna", EVERYTHING, frozenset({"press"})),
    "pat": Actor("pat", EVERYTHING, frozenset({"partners"})),
    "bo": Actor("bo", EVERYTHING, frozenset({"blind"})),
    "root": Actor("root", EVERYTHING),
    "olga": Actor("olga", frozenset({"read"}), frozenset({"operators"})),
    "reader": Actor("reader", frozenset({"read"})),
}
USER: Final = f"{BASE}graph/user/"
PAGE: Final = {"Accept": "text/html"}


class Named(Accounts):
    """Accounts that believe the name in a header."""

    async def identify(self, request: Request) -> Actor | None:
        return ACTORS[request.headers.get("x-name", "root")]


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("authorization")
    (folder / "policies").mkdir()
    (folder / "policies" / "rules.cedar").write_text(RULES)
    with open_graph(folder / "data") as opened:
        opened.policies = build_policies(folder / "policies")
        write(opened, f"{USER}a", "seen")
        write(opened, f"{USER}b", "seen too")
        write(opened, f"{SOURCED}climate/zebrafinch", "zebrafinch")
        write(opened, f"{BASE}graph/ref/x", "shared")
        yield opened


def write(kg: KnowledgeGraph, graph: str, label: str) -> None:
    node = NamedNode(graph)
    kg.store.commit({node: [Quad(NamedNode(f"{graph}#it"), RDFS.label, Literal(label), node)]})


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(create_app(kg, accounts=Named()), base_url="http://127.0.0.1") as made:
        yield made


def by(name: str, **more: str) -> dict[str, str]:
    return {"X-Name": name, **more}


def test_the_list_of_tools_has_those_that_the_caller_may_call(client: TestClient, kg: KnowledgeGraph) -> None:
    def names(who: str) -> set[str]:
        return {tool["name"] for tool in client.get("/tools", headers=by(who)).json()["tools"]}

    assert names("anna") == {"search", "fetch", "health"}
    assert names("pat") == {"sparql"}
    assert {"sparql", "review_claim"} <= names("root")
    assert "search" not in names("reader")
    assert "fetch" in names("reader")


@pytest.mark.parametrize(("who", "listed"), [("anna", {"search", "fetch", "health"}), ("pat", {"sparql"})])
def test_mcp_lists_and_calls_what_policies_allow(kg: KnowledgeGraph, who: str, listed: set[str]) -> None:
    async def ask() -> tuple[set[str], Any, Any]:
        SENDER.set(ACTORS[who])
        async with Client(build_mcp(kg, "/mcp")) as mcp:
            names = {tool.name for tool in await mcp.list_tools()}
            denied = await mcp.call_tool("describe_schema", {}, raise_on_error=False)
            many = await mcp.call_tool("search", {"query": "x", "limit": 6}, raise_on_error=False)
            return names, denied, many

    names, denied, many = asyncio.run(ask())
    assert names == listed
    assert denied.is_error
    assert denied.content[0].text.startswith("forbidden")
    assert many.is_error
    assert ("press-limit" in many.content[0].text) == (who == "anna")


def test_a_call_is_decided_by_its_arguments(client: TestClient) -> None:
    few = client.post("/tools/search", json={"query": "x", "limit": 5}, headers=by("anna"))
    assert few.status_code == 200, few.text
    many = client.post("/tools/search", json={"query": "x", "top_k": "6"}, headers=by("anna"))
    assert many.status_code == 403
    assert "press-limit" in many.json()["detail"]
    assert "At most 5." in many.json()["detail"]
    default = client.post("/tools/search", json={"query": "x"}, headers=by("anna"))
    assert default.status_code == 403  # its default is 10
    other = client.post("/tools/sparql", json={"query": "ASK {}"}, headers=by("anna"))
    assert other.status_code == 403
    assert "press-tools" in other.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/sparql?query=ASK{}", "sparql"), ("GET", "/sparql", "read"), ("GET", "/graphs", "read"),
        ("GET", "/sparql/queries", "read"), ("DELETE", "/sparql/queries/1", "write"), ("GET", "/metrics", "read"),
        ("POST", "/admin/query", "admin"), ("POST", "/admin/state", "admin"), ("GET", "/admin/backups", "admin"),
        ("GET", "/health", "read"), ("GET", "/", "read"), ("GET", "/search?q=x", "search"), ("POST", "/shacl", "read"),
        ("GET", "/sparql/check?query=ASK{}", "sparql"),
        ("POST", f"/graphs?graph={USER}x", "write"), ("DELETE", f"/graphs?graph={BASE}graph/cur/x", "curate"),
    ],
)  # fmt: skip
def test_a_path_requires_its_scope(client: TestClient, method: str, path: str, scope: str) -> None:
    for held in SCOPES:
        ACTORS["one"] = Actor("one", frozenset({held}))
        answer = client.request(method, path, headers=by("one"), json={})
        assert (answer.status_code == 403) is (held != scope), (held, answer.text)


def test_a_policy_alone_permits_the_state_of_the_server(client: TestClient) -> None:
    assert client.post("/admin/state", headers=by("olga")).status_code == 200
    assert client.post("/admin/state", headers=by("reader")).status_code == 403
    assert client.get("/admin/backups", headers=by("olga")).status_code == 403


def test_each_path_has_an_action(client: TestClient) -> None:
    named = {action for _, *actions in PATHS for action in actions}
    assert named <= set(ENDPOINTS)
    for route in client.app.routes:  # type: ignore[attr-defined]
        assert isinstance(route, Route)
        for method in route.methods or ("GET", "POST"):
            assert find_action(route.path, method) in {None, *ENDPOINTS}


def test_a_sender_of_a_part_gets_only_what_answers_about_it(client: TestClient) -> None:
    """Every path, except those that everybody may read, and those whose tools and queries are decided apart."""
    for route in client.app.routes:  # type: ignore[attr-defined]
        path = route.path.replace("{number}", "1").split("{")[0] + ("x" if "{" in route.path else "")
        if path.startswith(("/mcp", "/tools", "/static", "/login", "/logout", "/health/", "/.well-known")):
            continue
        for method, accept in (("GET", "*/*"), ("GET", "text/html"), ("POST", "*/*")):
            answer = client.request(method, path, headers=by("pat", Accept=accept), json={})
            if accept == "text/html":
                assert answer.status_code in (403, 406) or path.startswith("/graphs"), (path, answer.text)
                continue
            is_aware = find_action(path, method) in AWARE
            assert answer.status_code in ((200, 404, 400) if is_aware else (400, 403, 415)), (path, method, answer.text)
            assert "zebrafinch" not in answer.text
    for path in ("/", "/sparql", "/sparql/", "/sparql/x", "/mcp/x", "/tools/a/b", "/search", "/id/x", "//sparql"):
        answer = client.get(path, params={"query": "SELECT * { ?s ?p ?o }", "run": "1"}, headers=by("pat", **PAGE))
        assert answer.status_code in (403, 404), (path, answer.text)
        assert "zebrafinch" not in answer.text


def test_the_instructions_for_a_sender_of_a_part_name_none_of_the_data(client: TestClient) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    discover = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
    for method, params, headers in (("initialize", hello, {}), ("server/discover", {"_meta": meta}, discover)):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        said = {}
        for who in ("root", "pat", "root"):
            accepted = by(who, Accept="application/json, text/event-stream", **headers)
            answer = client.post("/mcp", json=body, headers=accepted).json()
            said[who] = answer["result"]["instructions"]
        assert "sparql_examples" in said["root"]
        assert said["pat"].startswith("You may read a part")


FORMS: Final = (
    "SELECT ?s ?p ?o { ?s ?p ?o }",
    "SELECT ?g ?s ?o { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?g { GRAPH ?g {} }",
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "SELECT ?o { GRAPH <%s> { ?s ?p ?o } }",
    "ASK { GRAPH <%s> { ?s ?p ?o } }",
    "ASK { FILTER EXISTS { GRAPH <%s> { ?s ?p ?o } } }",
    "ASK { FILTER NOT EXISTS { GRAPH <%s> { ?s ?p ?o } } }",
    "SELECT ?o { { SELECT ?o { GRAPH <%s> { ?s ?p ?o } } } }",
    "SELECT ?x { BIND(EXISTS { GRAPH ?g { ?s ?p ?o } FILTER(?g = <%s>) } AS ?x) }",
    "SELECT ?o { ?s ?p ?o MINUS { GRAPH <%s> { ?s ?p ?o } } }",
    "SELECT ?o { OPTIONAL { GRAPH <%s> { ?s ?p ?o } } }",
    "SELECT ?o { { ?s ?p ?o } UNION { GRAPH <%s> { ?s ?p ?o } } }",
    "SELECT ?x { <%s#it> (!<urn:x>)* ?x }",
    "CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }",
    "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }",
    "DESCRIBE <%s#it>",
    "SELECT ?o { VALUES ?g { <%s> } GRAPH ?g { ?s ?p ?o } }",
    "SELECT (GROUP_CONCAT(?o) AS ?all) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
)


def test_each_form_of_sparql_reads_what_a_store_of_those_graphs_has(client: TestClient, kg: KnowledgeGraph) -> None:
    audience = find_audience(kg, get_policies(kg), ACTORS["pat"])
    assert audience is not None
    seen = {f"{USER}a", f"{USER}b", f"{BASE}graph/ref/x"}
    assert seen <= audience.graphs
    assert f"{SOURCED}climate/zebrafinch" not in audience.graphs
    alone = ox.Store()
    for graph in audience.graphs:
        alone.extend(kg.store.graph(NamedNode(graph)))
    for form, graph in itertools.product(FORMS, (f"{USER}a", f"{SOURCED}climate/zebrafinch")):
        query = form % graph if "%s" in form else form
        accept = "application/n-triples" if query.startswith(("CONSTRUCT", "DESCRIBE")) else "text/csv"
        answer = client.get("/sparql", params={"query": query}, headers=by("pat", Accept=accept))
        assert answer.status_code == 200, answer.text
        result: Any = alone.query(query, use_default_graph_as_union=True)
        if isinstance(result, ox.QueryTriples):
            expected = ox.serialize(result, format=ox.RdfFormat.N_TRIPLES)
        else:
            expected = result.serialize(format=ox.QueryResultsFormat.CSV)
        assert sorted(answer.text.split()) == sorted(expected.decode().split()), query
        assert "zebrafinch" not in answer.text


def test_the_dataset_of_a_request_is_cut_to_the_audience(client: TestClient) -> None:
    every = {"query": "SELECT ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"}
    for name in ("default-graph-uri", "named-graph-uri"):
        asked = {**every, name: [f"{SOURCED}climate/zebrafinch", f"{USER}a"]}
        answer = client.get("/sparql", params=asked, headers=by("pat", Accept="text/csv"))
        assert answer.text.split() == ["o", "seen"]
        outside = {**every, name: f"{SOURCED}climate/zebrafinch"}
        assert client.get("/sparql", params=outside, headers=by("pat", Accept="text/csv")).text.split() == ["o"]
    for clause in (f"FROM <{USER}a>", f"FROM NAMED <{SOURCED}climate/zebrafinch>"):
        query = f"SELECT ?o {clause} {{ ?s ?p ?o }}"
        assert client.get("/sparql", params={"query": query}, headers=by("pat")).status_code == 403
        assert client.get("/sparql", params={"query": query}, headers=by("root")).status_code == 200


def test_a_sender_who_sees_nothing_reads_nothing(client: TestClient) -> None:
    for form in ("SELECT ?g ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", "SELECT ?g { GRAPH ?g {} }"):
        answer = client.get("/sparql", params={"query": form}, headers=by("bo", Accept="text/csv"))
        assert len(answer.text.split()) == 1, answer.text
    assert client.get("/graphs", headers=by("bo")).json()["graphs"] == []


def test_graphs_outside_of_the_audience_do_not_exist(client: TestClient) -> None:
    listed = client.get("/graphs", headers=by("pat")).json()["graphs"]
    assert f"{USER}a" in listed
    assert all("zebrafinch" not in graph for graph in listed)
    read = {"graph": f"{SOURCED}climate/zebrafinch"}
    assert client.get("/graphs", params=read, headers=by("pat")).status_code == 404
    assert client.get("/graphs", params=read, headers=by("root")).status_code == 200
    assert "seen" in client.get("/graphs", params={"graph": f"{USER}a"}, headers=by("pat")).text
    assert "zebrafinch" not in client.get("/graphs?default", headers=by("pat")).text


def test_kg_search_is_refused_to_a_sender_of_a_part(client: TestClient) -> None:
    query = 'SELECT * { SERVICE kg:search { ?hit kg:matches "zebrafinch" } }'
    assert client.get("/sparql", params={"query": query}, headers=by("pat")).status_code == 403
    answer = client.post("/tools/sparql", json={"query": query}, headers=by("pat"))
    assert answer.status_code == 403


def test_an_entity_tag_is_that_of_an_audience(client: TestClient) -> None:
    query = {"query": "SELECT ?o { ?s ?p ?o }"}
    whole = client.get("/sparql", params=query, headers=by("root")).headers["etag"]
    part = client.get("/sparql", params=query, headers=by("pat")).headers["etag"]
    none = client.get("/sparql", params=query, headers=by("bo")).headers["etag"]
    assert len({whole, part, none}) == 3
    assert client.get("/sparql", params=query, headers=by("pat", **{"If-None-Match": part})).status_code == 304
    assert client.get("/sparql", params=query, headers=by("pat", **{"If-None-Match": whole})).status_code == 200


def test_a_new_graph_is_in_the_next_answer(client: TestClient, kg: KnowledgeGraph) -> None:
    write(kg, f"{USER}new", "fresh")
    answer = client.get("/sparql", params={"query": "SELECT ?o { ?s ?p ?o }"}, headers=by("pat", Accept="text/csv"))
    assert "fresh" in answer.text
    kg.store.commit({NamedNode(f"{USER}new"): []})
    answer = client.get("/sparql", params={"query": "SELECT ?o { ?s ?p ?o }"}, headers=by("pat", Accept="text/csv"))
    assert "fresh" not in answer.text


def test_the_tool_sparql_reads_the_audience(client: TestClient) -> None:
    query = "SELECT ?o { GRAPH ?g { ?s rdfs:label ?o } FILTER(?o IN ('seen', 'zebrafinch')) }"
    mine = client.post("/tools/sparql", json={"query": query}, headers=by("pat")).json()
    assert mine["rows"] == [["seen"]]
    nothing = client.post(
        "/tools/sparql", json={"query": "SELECT ?o { ?s rdfs:label 'zebrafinch' }"}, headers=by("pat")
    )
    assert nothing.status_code == 200, nothing.text
    assert "climate/zebrafinch" not in nothing.text
