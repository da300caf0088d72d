"""What a query selects at a live endpoint loads into the same graphs, and says the same, as a dump of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from kg.cli import connection
from kg.errors import SourceError, UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.remote import sparql
from kg.settings import Settings
from kg.store.protocol import Rows
from kg.vocabulary import BASE, CC, OWL, PROV_GRAPH, RDF, SCHEMA, SKOS, WIKIBASE, sha256
from loaders.load_report import LoadReport
from loaders.quarantine_retry import retry
from loaders.sources import load
from loaders.wikibase import live_endpoint
from tests.remote.live_store import JSON, LiveStore, send, serving, status

pytestmark = pytest.mark.long

CONCEPTS = Path(__file__).parent.parent.parent.parent / "fixtures" / "wikibase" / "concepts.json"
CLIMATE = "https://climatepolicyradar.wikibase.cloud/"
ALL = "SELECT ?item WHERE { ?item a <http://wikiba.se/ontology#Item> } ORDER BY ?item"


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveStore]:
    monkeypatch.setattr(sparql, "INTERVAL_S", 0.0)
    monkeypatch.setattr(sparql, "REST_S", 0.0)
    yield from serving()


@pytest.fixture
def graph(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> Callable[[str], KnowledgeGraph]:
    def opened(name: str) -> KnowledgeGraph:
        kg = open_graph(name)
        kg.settings = kg.settings.model_copy(update={"answers_dir": tmp_path / "answers"})
        return kg

    return opened


def query(folder: Path, text: str = ALL) -> Path:
    path = folder / "items.rq"
    path.write_text(text)
    return path


def fetched(kg: KnowledgeGraph, live: LiveStore, path: Path, **more: Any) -> LoadReport:
    return load(kg, "wikibase", [f"sparql:{live.url}@{path}"], **more)


def forget(tmp_path: Path) -> None:
    """Let no answer count as live any more."""
    for path in (tmp_path / "answers").glob("*"):
        path.unlink()


def data(kg: KnowledgeGraph) -> dict[str, set[Quad]]:
    """Every graph but the provenance."""
    graphs = [name for name in kg.store.graphs() if name != PROV_GRAPH]
    return {name.value: set(kg.store.graph(name)) for name in graphs}


def publish(live: LiveStore, kg: KnowledgeGraph, change: Callable[[Quad], Quad | None] = lambda quad: quad) -> None:
    """Let the endpoint have the entities of `kg`, without their views."""
    for name, quads in data(kg).items():
        if not name.startswith(f"{BASE}graph/der/"):
            live.data.extend(changed for quad in quads if (changed := change(quad)) is not None)


def item(entity_id: str, label: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "item", "id": entity_id, "labels": {"en": {"language": "en", "value": label or entity_id}}, **more}


def dump(path: Path, *entities: Any) -> Path:
    path.write_text(json.dumps(list(entities)))
    return path


def said(kg: KnowledgeGraph, text: str) -> list[tuple[str, ...]]:
    found = kg.store.query(text)
    assert isinstance(found, Rows)
    return [tuple(getattr(term, "value", "") for term in row) for row in found.rows]


def test_all_that_an_endpoint_has_loads_into_the_graphs_of_a_dump_and_says_the_same(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    ours, theirs = graph("ours"), graph("theirs")
    load(theirs, "wikibase", [str(CONCEPTS)], base="climate")
    publish(live, theirs)
    everything = (
        "SELECT ?item { { ?item a wikibase:Item } UNION { ?item a wikibase:Property } UNION { ?item owl:sameAs ?to } }"
    )
    prologue = f"PREFIX wikibase: <{WIKIBASE.iri}> PREFIX owl: <{OWL.iri}>"
    report = fetched(ours, live, query(tmp_path, f"{prologue} {everything}"))
    assert (report.rejected, report.loaded) == (0, 83)
    assert all("has no reference" in warning for warning in report.warnings)
    assert data(ours) == data(theirs)
    assert (
        said(ours, f"SELECT ?c {{ ?c a <{SKOS.Concept.value}> FILTER(!STRSTARTS(STR(?c), 'cpr://concept/Q')) }}") == []
    )


def as_a_query_service_has_it(quad: Quad) -> Quad | None:
    """What query services leave out of a dump, or say elsewhere, as their documentation has it."""
    assert isinstance(quad.subject, NamedNode)
    document = quad.subject.value.startswith(f"{CLIMATE}wiki/Special:EntityData/")
    if document and quad.predicate in (SCHEMA.version, SCHEMA.dateModified, WIKIBASE.statements, WIKIBASE.sitelinks, WIKIBASE.identifiers):  # noqa: E501  # fmt: skip
        entity = NamedNode(quad.subject.value.replace("wiki/Special:EntityData/", "entity/"))
        return Quad(entity, quad.predicate, quad.object, quad.graph_name)
    if document or quad.predicate in (SKOS.prefLabel, SCHEMA.name):
        return None
    kinds = (WIKIBASE.Item, WIKIBASE.Property, WIKIBASE.Statement, WIKIBASE.Reference)
    if quad.predicate == RDF.type and quad.object in kinds:
        return None
    if isinstance(quad.object, NamedNode) and "/.well-known/genid/" in quad.object.value:
        return Quad(quad.subject, quad.predicate, BlankNode(quad.object.value[-32:]), quad.graph_name)
    return quad


def test_what_query_services_leave_out_of_a_dump_is_put_back(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    ours, theirs = graph("ours"), graph("theirs")
    load(theirs, "wikibase", [str(CONCEPTS)], base="climate")
    publish(live, theirs, as_a_query_service_has_it)
    report = fetched(ours, live, query(tmp_path, f"SELECT ?item {{ ?item <{WIKIBASE.sitelinks.value}> ?any }}"))
    assert (report.rejected, report.loaded) == (0, 72)
    expected = data(theirs)
    found = data(ours)
    merged = {name for name, quads in expected.items() if any(quad.predicate == OWL.sameAs for quad in quads)}
    items = [name for name in expected if "/P" not in name and "/ref/" not in name and name not in merged]
    assert {name: found[name] for name in items} == {name: expected[name] for name in items}


def test_provenance_names_the_endpoint_the_hash_of_the_query_and_the_time(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    ours, theirs = graph("ours"), graph("theirs")
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", item("Q1")))])
    publish(live, theirs)
    fetched(ours, live, query(tmp_path))
    [(location, revision)] = said(ours, "SELECT ?l ?r { GRAPH ?g { ?s kg:location ?l ; kg:datasetRevision ?r } }")
    assert location == f"sparql:{live.url}@query-{sha256(ALL)}/wikidata.nt"
    assert revision.startswith("20")
    assert "T" in revision


def test_what_has_not_changed_is_skipped_and_what_is_not_selected_any_more_goes_with_prune(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    ours, theirs = graph("ours"), graph("theirs")
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", *[item(f"Q{n}") for n in range(1, 51)]))])
    publish(live, theirs)
    assert fetched(ours, live, query(tmp_path)).loaded == 50
    assert len(live.asked) == 1 + 3
    again = fetched(ours, live, query(tmp_path))
    assert (again.loaded, again.skipped, again.run) == (0, 50, None)
    assert len(live.asked) == 4, "answers that count as live are not asked for again"
    live.data.update(
        'DELETE { GRAPH ?g { ?s ?p ?o } } INSERT { GRAPH ?g { ?s ?p "changed"@en } } WHERE { GRAPH ?g { ?s ?p ?o '
        'FILTER(?o = "Q7"@en) } } ; DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o '
        "FILTER(STRENDS(STR(?s), '/Q9')) } }"
    )
    forget(tmp_path)
    third = fetched(ours, live, query(tmp_path), prune=True)
    assert (third.loaded, third.skipped, third.removed) == (1, 48, 1)


def test_an_item_is_its_own_wikibase_s(graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path) -> None:
    theirs, ours = graph("theirs"), graph("ours")
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", item("Q5", "five")))], base="climate")
    load(theirs, "wikibase", [str(dump(tmp_path / "b.json", item("Q5", "cinq")))], base="https://other.example/")
    publish(live, theirs)
    fetched(ours, live, query(tmp_path))
    assert data(ours) == data(theirs)
    [[iri]] = said(ours, f'SELECT ?c {{ ?c <{SKOS.prefLabel.value}> "five"@en FILTER(STRSTARTS(STR(?c), "cpr:")) }}')
    assert iri == "cpr://concept/Q5"
    assert said(
        ours, f"ASK {{ <{BASE}concept/Q5> ?p 'cinq'@en }}" if False else 'SELECT ?c { ?c skos:prefLabel "cinq"@en }'
    ) == [("https://other.example/entity/Q5",)]


def test_merged_items_are_followed_and_absent_and_strange_ones_told(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    theirs, ours = graph("theirs"), graph("ours")
    redirect = {"entity": "Q1", "redirect": "Q2"}
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", item("Q2"), redirect))])
    publish(live, theirs)
    wd = "http://www.wikidata.org/entity/"
    text = f"SELECT ?x {{ VALUES ?x {{ <{wd}Q1> <{wd}Q404> <{wd}L1> 'Q2' <http://example.org/> UNDEF }} }}"
    report = fetched(ours, live, query(tmp_path, text))
    assert data(ours) == data(theirs)
    told = " ".join(report.warnings)
    assert "Q404: the endpoint has no data about it" in told
    assert "4 values of ?x are not entities" in told


def test_a_page_that_comes_cut_is_asked_for_in_parts(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = graph("theirs"), graph("ours")
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", *[item(f"Q{n}") for n in range(1, 9)]))])
    publish(live, theirs)
    monkeypatch.setattr(live_endpoint, "MAX_ROWS", 40)
    assert fetched(ours, live, query(tmp_path)).loaded == 8
    assert data(ours) == data(theirs)
    assert len(live.asked) > 4
    monkeypatch.setattr(live_endpoint, "MAX_ROWS", 2)
    with pytest.raises(SourceError, match="Q1 are incomplete"):
        fetched(graph("third"), live, query(tmp_path))


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_endpoint_that_fails_halfway_loads_nothing_and_stale_answers_are_never_loaded(
    graph: Callable[[str], KnowledgeGraph],
    live: LiveStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: int,
) -> None:
    monkeypatch.setattr(live_endpoint, "PAGE", 5)
    theirs, ours = graph("theirs"), graph("ours")
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", *[item(f"Q{n}") for n in range(1, 10)]))])
    publish(live, theirs)
    fetched(ours, live, query(tmp_path))
    before = data(ours)
    monkeypatch.setattr(sparql, "LIVE_S", 0.0)
    requests = 0

    def break_down(handler: Any, text: str) -> None:
        nonlocal requests
        requests += 1
        if requests > failing:
            send(handler, 404, b"gone")
            return
        live.stays, kept = False, live.behaviours
        live.behaviours = []
        live.answer(handler, text)
        live.behaviours, live.stays = kept, True

    live.always(break_down)
    with pytest.raises(UpstreamError, match=r"HTTP 404 gone.*The last result is"):
        fetched(ours, live, query(tmp_path), prune=True)
    assert data(ours) == before
    assert not list(ours.settings.directory.fetched.glob("*.partial"))


def test_an_item_that_breaks_its_shapes_is_kept_out_alone_and_can_be_tried_again(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    theirs, ours = graph("theirs"), graph("ours")
    load(theirs, "wikibase", [str(CONCEPTS)], base="climate")
    broken = NamedNode(f"{CLIMATE}entity/Q1009")

    def unranked(quad: Quad) -> Quad | None:
        of = isinstance(quad.subject, NamedNode) and quad.subject.value.startswith(f"{CLIMATE}entity/statement/Q1009-")
        return None if of and quad.predicate == WIKIBASE.rank else quad

    publish(live, theirs, unranked)
    report = fetched(ours, live, query(tmp_path))
    assert (report.loaded, [each.record for each in report.rejections]) == (71, [broken.value])
    done = retry(ours, None)
    assert (done["retried"], done["quarantined"]) == (1, 1)
    assert "rank" in done["records"][0]["reason"]


def binding(**terms: Any) -> dict[str, Any]:
    return {name: term if isinstance(term, dict) else {"type": "uri", "value": term} for name, term in terms.items()}


def test_text_of_every_kind_comes_through_and_terms_that_are_none_are_told(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    kg = graph("ours")
    one = "http://www.wikidata.org/entity/Q1"
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    texts = ['a"b\\c\nd\r\te\x00\x7f', "\u2028 \U0001f30d \ufffe", "> . <x> <y>"]
    values = [
        *({"type": "literal", "value": text, "xml:lang": "en"} for text in texts),
        {"type": "literal", "value": "tagged", "xml:lang": "no_tag at all"},
        {"type": "literal", "value": "lone \ud800"},
        {"type": "typed-literal", "value": "5", "datatype": "http://www.w3.org/2001/XMLSchema#integer"},
        {"type": "uri", "value": "http://example.org/a b"},
        {"type": "uri", "value": "no scheme"},
        {"type": "triple", "value": "?"},
    ]
    rows = [binding(item=one, s=one, p=label, o=value) for value in values] + [binding(item=one, s=one, p=label)]
    select = {"head": {"vars": ["i"]}, "results": {"bindings": [binding(i=one)]}}
    found = {"head": {"vars": ["item", "s", "p", "o"]}, "results": {"bindings": rows}}
    live.behave(*(status(200, json.dumps(each).encode(), JSON) for each in (select, found)))
    report = fetched(kg, live, query(tmp_path))
    quads = data(kg)[f"{BASE}graph/src/wikibase/wikidata/Q1"]
    labels = {quad.object for quad in quads if quad.predicate.value == label}
    assert {Literal(text, language="en") for text in texts} <= labels
    assert Literal("tagged", language="und") in labels
    assert Literal("lone \ufffd") in labels
    assert Literal(5) in labels
    assert NamedNode("http://example.org/a%20b") in labels
    told = " ".join(report.warnings)
    assert all(part in told for part in ("no_tag at all", "no scheme", "unknown term type 'triple'", "?o is not bound"))
    assert any(quad.predicate == CC.license for quad in quads)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("sparql:URL", "name the file with the query"),
        ("sparql", "name the file with the query"),
        ("sparql:URL@no-such.rq", "the query cannot be read"),
        ("sparql:URL@NONE", "selects no entity"),
        ("sparql:http://u:p/x@NONE", "http://u:p/x"),
    ],
)
def test_a_location_that_is_none_is_refused_with_what_would_be(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path, location: str, message: str
) -> None:
    path = query(tmp_path, "SELECT ?x { ?x ?y ?z }")
    with pytest.raises(Exception, match=message) as raised:
        load(graph("ours"), "wikibase", [location.replace("URL", live.url).replace("NONE", str(path))])
    assert raised.value.__class__.__name__ in ("SourceError", "InvalidInputError")


def test_that_what_is_fetched_cannot_be_written_is_said(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    theirs, ours = graph("theirs"), graph("ours")
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", item("Q1")))])
    publish(live, theirs)
    ours.settings.directory.fetched.write_bytes(b"")
    with pytest.raises(SourceError, match="cannot write"):
        fetched(ours, live, query(tmp_path))


def test_only_a_wikibase_is_read_from_an_endpoint(graph: Callable[[str], KnowledgeGraph], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        load(graph("ours"), "climate", [f"sparql:http://127.0.0.1:1/x@{query(tmp_path)}"])


def test_without_an_address_the_endpoint_is_that_of_the_settings(
    graph: Callable[[str], KnowledgeGraph], live: LiveStore, tmp_path: Path
) -> None:
    theirs, ours = graph("theirs"), graph("ours")
    load(theirs, "wikibase", [str(dump(tmp_path / "a.json", item("Q1")))])
    publish(live, theirs)
    settings = Settings(_env_file=None, concept_store_url=live.url)
    ours.settings = ours.settings.model_copy(update={"concept_store_url": settings.concept_store_url})
    assert load(ours, "wikibase", [f"sparql@{query(tmp_path)}"]).loaded == 1


def test_a_server_with_another_working_folder_finds_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = "sparql:https://host.example/sparql"
    assert connection.resolve_for_server(f"{url}@a.rq") == f"{url}@{tmp_path}/a.rq"
    assert connection.resolve_for_server("sparql@a.rq") == f"sparql@{tmp_path}/a.rq"
    assert connection.resolve_for_server("sparql-notes@a.rq") == f"{tmp_path}/sparql-notes@a.rq"
