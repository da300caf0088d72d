"""Who may write: requests of graphs and calls of tools obey one table, with and without `admin`, also indirectly."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad
from starlette.testclient import TestClient

from kg.access.actors import ADMIN, CURATE, SCOPES, WRITE, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import permissions
from kg.provenance.permissions import FAMILIES, SHARED, Family
from kg.server.app import create_app
from kg.server.auth import LocalToken, read_token
from kg.server.authentication import Accounts
from kg.store.ownership import CURATED, USER
from kg.tools.mounts import OPERATIONS
from kg.tools.registry import TOOLS
from kg.vocabulary import GENERATED, KG, RDFS, SKOS, SOURCED, mint
from loaders.confined_loads import ConfinedLoads
from loaders.dispatch import call_here
from loaders.sources import load
from loaders.zoning.graph.readings import AGREED, READ, get_reading_graph
from tests.accounts import SentBy
from tests.loaders.conftest import MemoryIndex

FEIGN = {"municipality": "Upper Feign", "state": "CT"}
DISTRICT = mint("graph", "ref", "district", "us-ct-upper-feign", "R-9")
CODE = {
    **FEIGN,
    "sections": [
        {"section_id": "9", "title": "Crafts", "level": 1, "raw_content": ""},
        {"section_id": "9.2", "title": "Kilns", "level": 2, "parent_id": "9", "raw_content": "Kilns are permitted."},
    ],
    "permissions": [{"district": "R-9", "use": "Kiln", "permission": "P", "section_ref": "9.2"}],
}  # fmt: skip
SECTION = {**FEIGN, "section_id": "9.2", "title": "Kilns", "level": 2, "raw_content": "Kilns are prohibited."}
SPEECH = {
    "speech_id": "s1", "title": "Kilns", "date": "2024-05-01", "speaker": "Ada Potter", "chamber": "House",
    "party": "Independent", "text": "Kilns are warm.",
}  # fmt: skip


NO_INDEX: dict[str, dict[str, Any]] = {"load": {"index": False}}


@pytest.fixture(params=["here", pytest.param("confined", marks=pytest.mark.long)])
def kg(receiving: KnowledgeGraph, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[KnowledgeGraph]:
    """A graph whose tools load files of a folder, in this process or in a confined one."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "code.json").write_text(json.dumps(CODE))
    (folder / "note.md").write_text("# Note\n\nKilns are warm.\n")
    receiving.settings = receiving.settings.model_copy(update={"ingest_folders": (folder,), "updates": True})
    if request.param == "here":
        receiving.confined = lambda kg, name, *given, **options: call_here(
            kg, name, *given, **options, **NO_INDEX.get(name, {})
        )
        yield receiving
        return
    with contextlib.closing(ConfinedLoads(receiving)) as loads:
        receiving.confined = lambda kg, name, *given, **options: loads(
            kg, name, *given, **options, **NO_INDEX.get(name, {})
        )
        yield receiving


@pytest.fixture
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    token = LocalToken(kg.settings.data_dir)
    with TestClient(create_app(kg, accounts=Accounts(token)), base_url="http://127.0.0.1") as served:
        yield served


def operator_loads(kg: KnowledgeGraph, *names: str) -> None:
    for name in names:
        load(kg, "zoning" if name == "code.json" else "files", [str(kg.settings.ingest_folders[0] / name)], index=False)


def holder(kg: KnowledgeGraph) -> dict[str, str]:
    return {"Authorization": f"Bearer {read_token(kg.settings.data_dir)}"}


def quads(kg: KnowledgeGraph, *prefixes: str) -> set[Quad]:
    found = [graph for graph in kg.store.graphs() if graph.value.startswith(prefixes)]
    return {quad for graph in found for quad in kg.store.graph(graph)}


def call(client: TestClient, name: str, headers: dict[str, str] | None = None, **arguments: Any) -> Any:
    return client.post(f"/tools/{name}", json=arguments, headers=headers or {})


@pytest.mark.parametrize("has_token", [False, True])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.prefix.removeprefix("https://w3id.org/"))
def test_requests_of_graphs_obey_the_table(
    kg: KnowledgeGraph, client: TestClient, family: Family, has_token: bool
) -> None:
    graph = f"{family.prefix}x/y"
    headers = {"Content-Type": "text/turtle"} | (holder(kg) if has_token else {})
    said = f'<{graph}> <{RDFS.label.value}> "x" .'
    for method in ("PUT", "POST", "DELETE"):
        answer = client.request(method, "/graphs", params={"graph": graph}, content=said, headers=headers)
        right = family.get_right(method)  # type: ignore[arg-type]
        allowed = right == "write" or (right in ("curate", "admin") and has_token)
        assert (answer.status_code != 403) is allowed, (method, answer.text)
    update = {"Content-Type": "application/sparql-update"} | headers | {"Content-Type": "application/sparql-update"}
    answer = client.post("/sparql", content=f"INSERT DATA {{ GRAPH <{graph}> {{ {said} }} }}", headers=update)
    assert (answer.status_code != 403) is (family.update in ("curate", "admin") and has_token), answer.text
    assert bool(quads(kg, graph)) is (family.update in ("curate", "admin") and has_token)


GRAPHS = {"user": f"{USER}x/y", "cur": f"{CURATED}x/y"}


@pytest.mark.parametrize("family", GRAPHS)
@pytest.mark.parametrize("held", [*((scope,) for scope in SCOPES), (ADMIN, CURATE), (ADMIN, WRITE), ()], ids="+".join)
def test_the_scope_of_the_table_alone_is_needed(kg: KnowledgeGraph, family: str, held: tuple[str, ...]) -> None:
    """An update also needs that of the endpoint of SPARQL, admin."""
    with serve_for(kg, *held) as served:
        require_table(kg, served, family, held)


@contextlib.contextmanager
def serve_for(kg: KnowledgeGraph, *held: str) -> Iterator[TestClient]:
    """Serve all requests as those of a sender with some scopes."""
    accounts = SentBy(actor=Actor("one", frozenset(held)))
    with TestClient(create_app(kg, accounts=accounts), base_url="http://127.0.0.1") as served:
        yield served


def require_table(kg: KnowledgeGraph, served: TestClient, family: str, held: tuple[str, ...]) -> None:
    graph = GRAPHS[family]
    said = f'<{graph}> <{RDFS.label.value}> "x" .'
    served = TestClient(
        create_app(kg, accounts=SentBy(actor=Actor("one", frozenset(held)))), base_url="http://127.0.0.1"
    )
    needed = WRITE if family == "user" else CURATE
    turtle = {"Content-Type": "text/turtle"}
    for method in ("PUT", "POST", "DELETE"):
        answer = served.request(method, "/graphs", params={"graph": graph}, content=said, headers=turtle)
        allowed = needed in held and (family, method) != ("cur", "PUT")
        assert answer.status_code in ((200, 201, 204) if allowed else (403,)), (method, answer.text)
        assert bool(quads(kg, graph)) is (allowed and method != "DELETE"), method
    created = served.post("/graphs", content='<urn:x:a> <urn:x:b> "c" .', headers=turtle)
    assert created.status_code == (201 if WRITE in held else 403), created.text
    update = f"INSERT DATA {{ GRAPH <{graph}> {{ {said} }} }}"
    answer = served.post("/sparql", content=update, headers={"Content-Type": "application/sparql-update"})
    allowed = ADMIN in held and (family == "user" or CURATE in held)
    assert answer.status_code == (204 if allowed else 403), answer.text
    assert bool(quads(kg, graph)) is allowed


def test_a_request_that_may_not_write_is_refused_before_its_payload_is_read(kg: KnowledgeGraph) -> None:
    expected = ({"graph": GRAPHS["user"]}, 403), ({}, 403), ({"graph": GRAPHS["cur"]}, 400)
    with serve_for(kg, CURATE) as served:
        for params, status in expected:
            said = {"content": "no Turtle", "headers": {"Content-Type": "text/turtle"}}
            assert served.post("/graphs", params=params, **said).status_code == status, params  # type: ignore[arg-type]


REPLACING = {
    "section": ("kg_ingest_code_section", SECTION),
    "town in other letters": ("kg_ingest_code_section", {**SECTION, "municipality": " UPPER  feign "}),
    "state by name": ("kg_ingest_code_section", {**SECTION, "state": "Connecticut"}),
    "state by code": ("kg_ingest_code_section", {**SECTION, "state": "us-ct"}),
    "number with spaces": ("kg_ingest_code_section", {**SECTION, "section_id": " 9.2 "}),
    **{
        f"number written {each}": ("kg_ingest_code_section", {**SECTION, "section_id": each})
        for each in ("§ 9.2", "Section 9.2", "9.2.", "\uff19.\uff12", "9%2E2")
    },
    "repealed": ("kg_ingest_code_section", {**SECTION, "title": "[Repealed]", "raw_content": "Repealed."}),
    "nothing left": ("kg_ingest_code_section", {**SECTION, "raw_content": ""}),
    "file": ("ingest_docs", {"paths": ["note.md"]}),
    "tags": ("ingest_docs", {"paths": ["note.md"], "tags": ["forged"]}),
}


@pytest.mark.parametrize("name", REPLACING)
def test_a_call_without_the_token_does_not_replace_what_was_loaded_from_a_file(
    kg: KnowledgeGraph, client: TestClient, name: str
) -> None:
    operator_loads(kg, "code.json", "note.md")
    if name == "file":
        (kg.settings.ingest_folders[0] / "note.md").write_text("# Note\n\nKilns are cold.\n")
    tool, arguments = REPLACING[name]
    before, generation = quads(kg, ""), kg.store.statistics().generation
    refused = call(client, tool, **arguments)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), refused.text
    assert "token" in refused.json()["detail"]
    assert (quads(kg, ""), kg.store.statistics().generation) == (before, generation)
    assert call(client, tool, holder(kg), **arguments).status_code == 200
    assert quads(kg, SOURCED) != {quad for quad in before if str(quad.graph_name).startswith(f"<{SOURCED}")}


ADDING = {
    "another spelling of a district": ("kg_ingest_use_permissions", {"permissions": [
        {"district": "R-9", "use": "KILN", "permission": "prohibited"},
        {"district": "r-9", "use": "Kiln", "permission": "prohibited"},
    ]}),
    "twice in a call": ("kg_ingest_definitions", {"definitions": [
        {"term": "Kiln", "definition_text": "An oven."}, {"term": "kiln", "definition_text": "A stove."},
    ]}),
    "standard": ("kg_ingest_dimensional_standards", {"standards": [
        {"district": "R-9", "standard_type": "maximum height", "value": 35, "unit": "feet", "section_ref": "9.2"},
    ]}),
    "chapter that names the district": ("kg_ingest_code_section", {
        **SECTION, "section_id": "8", "title": "R-9 Forged District", "level": 1,
        "raw_content": "The R-9 Forged District. The following uses are prohibited in the R-9 District:\n(1) Kiln.",
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDING)
def test_what_a_call_adds_changes_no_statement_of_a_record_from_a_file(
    kg: KnowledgeGraph, client: TestClient, name: str
) -> None:
    operator_loads(kg, "code.json")
    before, shared = quads(kg, SOURCED, SHARED), {quad.graph_name for quad in quads(kg, SHARED)}
    tool, arguments = ADDING[name]
    for _ in range(2):  # the second call replaces what the first wrote
        answer = call(client, tool, **{**FEIGN, **arguments})
        assert answer.status_code == 200, answer.text
        after = quads(kg, SOURCED, SHARED)
        assert before <= after
        assert not [quad for quad in after - before if quad.graph_name in shared]


def test_a_caller_replaces_its_own_records_until_the_operator_loads_them(
    kg: KnowledgeGraph, client: TestClient
) -> None:
    first = call(client, "kg_ingest_code_section", **{**SECTION, "raw_content": "Kilns are permitted."})
    again = call(client, "kg_ingest_code_section", **SECTION)
    assert (first.json()["stored"], again.json()["stored"]) == (1, 1)
    assert call(client, "ingest_docs", paths=["note.md"]).json()["ingested"] == 1
    note = kg.settings.ingest_folders[0] / "note.md"
    note.write_text("# Note\n\nKilns are cold.\n")
    assert call(client, "ingest_docs", paths=["note.md"]).json()["ingested"] == 1
    assert permissions.find_attributed(kg.store)

    operator_loads(kg, "code.json", "note.md")
    assert not permissions.find_attributed(kg.store), "what the operator loads is the operator's, the equal too"
    assert call(client, "kg_ingest_code_section", **SECTION).status_code == 403
    note.write_text("# Note\n\nKilns are hot.\n")
    assert call(client, "ingest_docs", paths=["note.md"]).status_code == 403


def test_readers_with_and_without_the_token_read_the_same_section(kg: KnowledgeGraph, client: TestClient) -> None:
    operator_loads(kg, "code.json")
    town, told = "us-ct-upper-feign", list[tuple[set[str], set[float]]]()
    readings = {name: get_reading_graph(town, "9.2", f"agent/{name}") for name in ("local", "local-admin")}

    def read(meaning: str, *sender: Any) -> None:
        entry = {"term": "Kilns", "definition_text": meaning, "section_ref": "9.2"}
        entries = [entry | {"quotations": ["Kilns are permitted."]}]
        assert call(client, "kg_ingest_definitions", *sender, **FEIGN, definitions=entries).json()["stored"] == 1
        found = kg.store.graph(mint("graph", "ext", "zoning", town, "9.2"))
        texts = {quad.object.value for quad in found if quad.predicate == SKOS.definition}
        own = {quad.subject for quad in found if quad.predicate == KG.method and "reading/" in str(quad.object)}
        told.append(
            (texts, {float(q.object.value) for q in found if q.predicate == KG.confidence and q.subject in own})
        )

    read("are permitted", holder(kg))
    held = quads(kg, readings["local-admin"].value)
    read("permitted")  # differs: both are told
    read("are permitted")  # agrees, and replaces the caller's own reading
    assert told == [
        ({"are permitted"}, {READ}),
        ({"are permitted", "permitted"}, {READ}),
        ({"are permitted"}, {AGREED}),
    ]
    assert held <= quads(kg, GENERATED)
    assert permissions.find_attributed(kg.store, readings.values()) == {readings["local"]}


def test_a_caller_replaces_its_section_that_others_have_read(kg: KnowledgeGraph, client: TestClient) -> None:
    assert call(client, "kg_ingest_code_section", **SECTION).status_code == 200
    entry = {"term": "Kilns", "definition_text": "are prohibited", "section_ref": "9.2"}
    entries = [entry | {"quotations": ["Kilns are prohibited."]}]
    for sender in ((), (holder(kg),)):
        assert call(client, "kg_ingest_definitions", *sender, **FEIGN, definitions=entries).json()["stored"] == 1
    assert call(client, "kg_ingest_code_section", **{**SECTION, "raw_content": "Kilns are cold."}).status_code == 200
    found = kg.store.graph(mint("graph", "ext", "zoning", "us-ct-upper-feign", "9.2"))
    assert not [quad for quad in found if quad.predicate == SKOS.definition]


def test_what_the_holder_writes_by_a_tool_needs_the_token_again(kg: KnowledgeGraph, client: TestClient) -> None:
    assert call(client, "kg_ingest_code_section", holder(kg), **SECTION).status_code == 200
    assert call(client, "kg_ingest_code_section", **{**SECTION, "raw_content": "Gone."}).status_code == 403


def test_the_decision_is_made_with_the_commit(
    kg: KnowledgeGraph, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = kg.store.commit

    def commit_after_the_operator(replace: Any, describe: Any = None) -> Any:
        monkeypatch.setattr(type(kg.store), "commit", type(kg.store).commit)
        if not kg.store.count(graph):
            commit({graph: [Quad(graph, RDFS.label, Literal("law"), graph)]})
        return commit(replace, describe)

    graph = NamedNode(f"{SOURCED}zoning/us-ct-upper-feign/9.2")
    monkeypatch.setattr(type(kg.store), "commit", lambda self, *given: commit_after_the_operator(*given))
    assert call(client, "kg_ingest_code_section", **SECTION).status_code == 403
    assert len(kg.store.graph(graph)) == 1


def test_a_caller_replaces_no_summary_of_the_operator(
    kg: KnowledgeGraph, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryIndex, "embed", lambda self, texts: None, raising=False)
    operator_loads(kg, "code.json")
    told = {**FEIGN, "section_id": "9.2", "summary": "Kilns are allowed in one district of the town."}
    for words in ("Kilns are allowed in all districts.", "Kilns are allowed in some districts."):
        assert call(client, "kg_rebuild_summary", **{**told, "summary": words}).status_code == 200
    assert call(client, "kg_rebuild_summary", holder(kg), **told).status_code == 200
    before = quads(kg, GENERATED)
    refused = call(client, "kg_rebuild_summary", **{**told, "summary": "Kilns are prohibited in all districts."})
    assert (refused.status_code, quads(kg, GENERATED)) == (403, before)
    generated = call(client, "kg_rebuild_summary", **FEIGN, section_id="9.2")
    assert (generated.status_code, quads(kg, GENERATED)) == (403, before)
    (kg.settings.ingest_folders[0] / "code.json").write_text(json.dumps(CODE).replace("are permitted", "are allowed"))
    operator_loads(kg, "code.json")
    built = call(client, "kg_build_summaries", **FEIGN).json()
    assert before <= quads(kg, GENERATED)
    assert any("scope admin" in note for note in built["notes"]), built
    assert call(client, "kg_build_summaries", holder(kg), **FEIGN).status_code == 200
    assert not before <= quads(kg, GENERATED)


def test_tools_that_write_are_those_of_the_table(
    kg: KnowledgeGraph, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Those of operations write no graph in their call: the server loads later, as the operator does.
    for tool in (each for each in TOOLS if OPERATIONS not in each.tags):
        rights = {family.tools for family in FAMILIES if family.prefix in tool.writes}
        assert bool(rights) is (not tool.reads or tool.asks_connectors), tool.name
        assert ("curate" in rights) is (tool.scope == "curate"), tool.name
        assert "nobody" not in rights, tool.name
    operator_loads(kg, "code.json", "note.md")
    before = quads(kg, SOURCED, SHARED, USER, CURATED)
    monkeypatch.setattr(MemoryIndex, "embed", lambda self, texts: None, raising=False)
    for name, arguments in (("extract_and_link", {}), ("kg_build_summaries", FEIGN)):
        assert call(client, name, **arguments).status_code == 200
    assert call(client, "review_claim", claim="https://w3id.org/quadcite/id/st/x", verdict="reject").status_code == 403
    assert quads(kg, SOURCED, SHARED, USER, CURATED) == before
