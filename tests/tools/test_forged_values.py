"""What people put into their graphs about the things of sources is in no answer of a tool.

A user graph forges every property of every thing in the fixtures: another value of each literal, another value and an
invented one of each link, and for each thing a double with the same links. The answers stay as they were.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.queries.pool import QueryPool
from kg.retrieval.results import SearchFilters
from kg.search.index_sync import refresh
from kg.store.ownership import is_user_graph
from kg.store.protocol import Rows, select, term_text
from kg.tools.answers import content_of
from kg.tools.calls import Tool
from kg.tools.climate.families import policy_lineage
from kg.tools.registry import CLIMATE, CORE, DOCUMENTS, RESEARCH, SPARQL, TOOLS, WIKIDATA, ZONING
from kg.tools.search.passages import fetch, search
from kg.tools.sparql.query import sparql
from kg.vocabulary import BASE, DCTERMS, ELI, FOAF, KG, PROV_GRAPH, RDF, RDFS, SCHEMA, SKOS, XSD, mint, sha256
from kg.zoning_summaries.build import build
from loaders.sources import load
from tests.folders import open_graph

pytestmark = pytest.mark.long

FORGED: Final = mint("graph", "user", "forged")
TEXTS: Final = mint("graph", "user", "texts")
CURATED: Final = mint("graph", "cur", "forged")
MIXED: Final = frozenset(
    {"sparql", "wikidata.sparql", "describe_schema", "find_terms", "validate", "health", "sparql_examples"}
)
"""Tools that measure or query all graphs."""
_NAMES: Final = (SKOS.prefLabel, SKOS.altLabel, FOAF.name, DCTERMS.title, RDFS.label, SKOS.notation, SCHEMA.name)
_VOLATILE: Final = frozenset({"meta", "explain", "snapshot", "generation"})

BEND: Final = {"municipality": "Quarry Bend", "state": "UT"}
MORE: Final[Mapping[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "fixtures": (
        ("policy_lineage", {"family_slug": "cpr://family/fictional-solar-road-map_brf2"}),
        ("family_overview", {"top_concepts": 5}),
        ("family_overview", {"language": ["en"], "iso3": ["BRA"]}),
        ("search", {"query": "geothermal drilling permits", "filters": {"iso3": ["DJI"], "language": ["fr"]}}),
        ("search", {"query": "solar", "filters": {"corpus_type": ["Laws and Policies"]}}),
        ("fetch", {"id": "cpr://family/fictional-geothermal-programme_d0f0"}),
        ("fetch", {"id": "cpr://doc/fictional-forest-stewardship-law_br01"}),
        ("concept_find", {"q": "energy"}),
        ("concept_mentions", {"qids": ["Q1001"], "narrower": True}),
        ("compare_jurisdictions", {"iso3_a": "BRA", "iso3_b": "DJI", "by": "language"}),
        ("compare_jurisdictions", {"iso3_a": "BRA", "iso3_b": "DJI", "by": "concept"}),
        ("list_resources", {}),
    ),
    "speeches": (
        ("list_speakers", {}),
        ("list_speakers", {"party": "Labor"}),
        ("search_speeches", {"query": "water"}),
        ("search_speeches", {"query": "water", "chamber": "senate"}),
        ("speech_stats", {"group_by": "party"}),
        ("speech_stats", {"group_by": "speaker"}),
        ("search", {"query": "water"}),
        ("list_resources", {}),
    ),
    "codes": (
        ("kg_query_permissions", BEND),
        ("kg_query_standards", BEND),
        ("kg_query_definition", {**BEND, "term": "corner"}),
        ("kg_traverse_hierarchy", BEND),
        ("kg_find_related", {**BEND, "section_id": "17.12.010", "direction": "both"}),
        ("citations", {"iri": mint("section", "us-ut-quarry-bend", "17.12.010").value}),
        ("kg_search_by_topic", {**BEND, "query": "parking"}),
        ("kg_query_section", {**BEND, "section_id": "17.12.010"}),
        ("list_resources", {}),
    ),
    "files": (
        ("hybrid_query", {"q": "valve and strainer of the pumps"}),
        ("entity_lookup", {"q": "Ferrowick"}),
        ("explain_entity", {"entity_id": "strainer"}),
        ("search", {"query": "spring tide"}),
        ("list_resources", {}),
    ),
}


def fixture_of(tool: Tool) -> str:
    if WIKIDATA in tool.tags:
        return "facts"
    if tool.tags & {CORE, CLIMATE, RESEARCH, SPARQL}:
        return "fixtures"
    if DOCUMENTS in tool.tags and ZONING not in tool.tags:
        return "files"
    return "codes" if ZONING in tool.tags else "speeches"


def calls() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The example of each tool that reads, and more calls: store, tool, arguments."""
    for tool in TOOLS:
        if tool.reads:
            [example] = re.findall(r"Example: (.+?)\.$", tool.description, re.MULTILINE | re.DOTALL)
            call = ast.parse(example, mode="eval").body
            assert isinstance(call, ast.Call)
            arguments = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
            yield fixture_of(tool), f"{tool.name}/{'-'.join(sorted(tool.tags))}", arguments
    for store, listed in MORE.items():
        for name, arguments in listed:
            yield store, name, arguments


CALLS: Final = list(calls())


class Forgery:
    """The stores of the fixtures, the answers before the forged graphs were written, and the forged graphs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stores: dict[str, KnowledgeGraph] = {}
        self.before: dict[int, Any] = {}
        self.after: dict[int, Any] = {}
        self.with_texts: dict[int, Any] = {}

    def open(self, name: str) -> KnowledgeGraph:
        if name in self.stores:
            return self.stores[name]
        data, fixtures = self.folder / name, bundle.folder("fixtures")
        kg = self.stores[name] = open_graph(data)
        if name == "fixtures":
            load(kg, "climate", [str(fixtures / "climate"), str(fixtures / "joined" / "climate")])
            load(kg, "hansard", [str(fixtures / "joined" / "hansard")])  # its speeches cite a law
            load(kg, "wikibase", [str(fixtures / "wikibase")], base="climate")
        elif name == "speeches":
            load(kg, "hansard", [str(fixtures / "hansard")])
        elif name == "facts":
            load(kg, "wikibase", [str(fixtures / "wikidata")])
        elif name == "files":
            load(kg, "files", [str(fixtures / "files" / "handbook")])
        else:
            load(kg, "zoning", [str(fixtures / "zoning")], state="UT", mapping=str(fixtures / "zoning" / "towns.toml"))
            build(kg, mint("municipality", "us-ut-quarry-bend").value)
        self._ask(name, self.before)
        forge(kg, 80 if name == "speeches" else 2)  # many graphs are excluded by their names' start
        self._ask(name, self.after)
        forge_texts(kg)
        self._ask(name, self.with_texts)
        return kg

    def _ask(self, name: str, answers: dict[int, Any]) -> None:
        for number, (store, tool, arguments) in enumerate(CALLS):
            if store == name and (answers is self.with_texts or tool.partition("/")[0] not in MIXED):
                answers[number] = answer(self.stores[name], tool, arguments)


def answer(kg: KnowledgeGraph, name: str, arguments: Mapping[str, Any]) -> Any:
    short, _, tags = name.partition("/")
    [tool] = [each for each in TOOLS if each.name == short and (not tags or "-".join(sorted(each.tags)) == tags)][:1]
    return stable(content_of(tool.call(kg, arguments)))


def stable(value: Any) -> Any:
    """Remove what changes with every commit."""
    if isinstance(value, dict):
        volatile = _VOLATILE | {"count"} if value.get("uri") == "/sparql" else _VOLATILE  # the count of all quads
        return {name: stable(each) for name, each in value.items() if name not in volatile}
    return [stable(each) for each in value] if isinstance(value, list) else value


def forge(kg: KnowledgeGraph, graphs: int) -> None:
    said = [
        quad
        for graph in kg.store.graphs()
        if graph != PROV_GRAPH and not is_user_graph(graph)
        for quad in kg.store.graph(graph)
    ]
    held = {quad.triple for quad in said}
    values: dict[NamedNode, list[NamedNode]] = defaultdict(list)
    for quad in said:
        if isinstance(quad.object, NamedNode):
            values[quad.predicate].append(quad.object)
    others = {name: list(dict.fromkeys(found)) for name, found in values.items()}
    texts = {quad.subject for quad in said if quad.predicate == SCHEMA.text}
    found: dict[Quad, None] = {}
    for quad in said:
        if not isinstance(quad.subject, NamedNode):
            continue
        subject, name, value = quad.subject, quad.predicate, quad.object
        double = invented(subject)
        if isinstance(value, Literal):
            if name != SCHEMA.text:  # the store refuses a second text
                found[Quad(subject, name, forged_literal(value), FORGED)] = None
                if subject not in texts:
                    found[Quad(double, name, forged_literal(value), FORGED)] = None
        elif isinstance(value, NamedNode):
            known = others[name]
            found[Quad(subject, name, known[(known.index(value) + 1) % len(known)], FORGED)] = None
            if name != RDF.type:
                found[Quad(subject, name, invented(value), FORGED)] = None
            if subject not in texts:  # people may declare texts of their own
                found[Quad(double, name, value, FORGED)] = None
    for node in {quad.subject for quad in found} | {quad.object for quad in found}:
        if isinstance(node, NamedNode):
            for name in _NAMES:
                found[Quad(node, name, Literal("FORGED name", language="en"), FORGED)] = None
    quads = [quad for quad in found if quad.triple not in held]
    assert len(quads) > 1_000
    curated = [Quad(q.subject, q.predicate, q.object, CURATED) for q in quads[::7] if q.predicate != SCHEMA.text]
    moved = {quad.triple for quad in curated}
    replace: dict[NamedNode, list[Quad]] = {CURATED: curated}
    for number, quad in enumerate(quads):
        if quad.triple not in moved:
            graph = NamedNode(f"{FORGED.value}/{number % graphs}")
            replace.setdefault(graph, []).append(Quad(quad.subject, quad.predicate, quad.object, graph))
    kg.store.commit(replace)


def forge_texts(kg: KnowledgeGraph) -> None:
    """Add texts to the documents of sources. Scores depend on all texts, so this comes last."""
    rows = select(kg.store.query_sources, "SELECT DISTINCT ?whole WHERE { ?unit dcterms:isPartOf ?whole }").rows
    quads = []
    for number, (document,) in enumerate(sorted(rows, key=str)):
        unit = NamedNode(f"{BASE}id/forged/unit#p={number}")
        text = Literal(f"FORGED geothermal solar water parking energy {number}")
        for name, value in ((DCTERMS.isPartOf, document), (SCHEMA.text, text), (SCHEMA.position, Literal(number))):
            assert isinstance(value, NamedNode | Literal)
            quads.append(Quad(unit, name, value, TEXTS))
        quads.append(Quad(unit, RDF.type, KG.Passage, TEXTS))
    if not quads:  # a store without texts
        return
    commit = kg.store.commit({TEXTS: quads})
    refresh(kg.store, kg.search, {TEXTS.value: commit.changes[0].content_sha256 or ""}, [])


def invented(node: NamedNode) -> NamedNode:
    """An IRI of the same form that nobody uses."""
    whole, mark, part = node.value.partition("#")
    return NamedNode(f"{whole}-FORGED-{sha256(node.value)[:6]}{mark}{part}")


def forged_literal(value: Literal) -> Literal:
    if value.language:
        return Literal(f"FORGED {value.value}", language=value.language)
    match value.datatype:
        case XSD.integer:
            return Literal(6_666)
        case XSD.decimal | XSD.double:
            return Literal("0.66", datatype=value.datatype)
        case XSD.date:
            return Literal("1066-10-14", datatype=XSD.date)
        case XSD.dateTime:
            return Literal("1066-10-14T00:00:00Z", datatype=XSD.dateTime)
        case XSD.boolean:
            return Literal(value.value != "true")
    return Literal(f"FORGED {value.value}", datatype=value.datatype)


@pytest.fixture(scope="module")
def forgery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forgery]:
    made = Forgery(tmp_path_factory.mktemp("forgery"))
    yield made
    for kg in made.stores.values():
        kg.close()


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Describe where two answers differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        return [each for name in names for each in differences(before.get(name), after.get(name), f"{path}.{name}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for number, (one, other) in pairs for each in differences(one, other, f"{path}[{number}]")]
    return [] if before == after else [f"{path}: {before!r} became {after!r}"]


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.exhaustive) if store == "speeches" else number
        for number, (store, _, _) in enumerate(CALLS)
    ],
    ids=lambda number: f"{CALLS[number][0]}-{CALLS[number][1]}",
)
def test_forged_statements_change_no_answer(forgery: Forgery, number: int) -> None:
    store, name, _ = CALLS[number]
    forgery.open(store)
    if name.partition("/")[0] not in MIXED:
        assert differences(forgery.before[number], forgery.after[number]) == []
        assert "FORGED" not in str(forgery.with_texts[number])


def test_text_that_a_user_declares_is_found_and_cited_as_that_of_the_user(forgery: Forgery) -> None:
    kg = forgery.open("fixtures")
    graph, document, unit = mint("graph", "user", "mine"), mint("document", "mine"), mint("passage", "mine", "0")
    said = (
        (document, RDF.type, KG.PolicyDocument),
        (document, DCTERMS.title, Literal("Notes of a user")),
        (document, KG.slug, Literal("mine")),
        (document, KG.jurisdiction, mint("place", "BRA")),
        (document, ELI.is_member_of, mint("family", "fictional-solar-road-map_brf2")),
        (unit, RDF.type, KG.Passage),
        (unit, DCTERMS.isPartOf, document),
        (unit, SCHEMA.position, Literal(0)),
        (unit, SCHEMA.text, Literal("Quokkas graze below the panels.")),
    )
    commit = kg.store.commit({graph: [Quad(*each, graph) for each in said]})
    refresh(kg.store, kg.search, {graph.value: commit.changes[0].content_sha256 or ""}, [])
    for filters in (None, SearchFilters(iso3=["BRA"])):
        hits = search(kg, "quokkas graze", filters).results
        assert (hits[0].id, hits[0].provenance.graph) == (unit.value, graph.value)
        assert hits[0].title == "Notes of a user"
    [evidence] = fetch(kg, ids=[unit.value]).evidence
    assert (evidence.provenance.graph, evidence.passage.text) == (graph.value, said[-1][2].value)
    assert fetch(kg, id=document.value).metadata["passages"] == "1"  # type: ignore[index]
    lineage = policy_lineage(kg, "fictional-solar-road-map_brf2")
    assert document.value not in [each.id for each in lineage.documents]


def test_answers_follow_the_graphs_of_users_after_a_restart_and_a_removal(tmp_path: Path) -> None:
    source, user, thing = mint("graph", "src", "test", "a"), mint("graph", "user", "a"), mint("document", "a")
    query = f"SELECT ?title {{ {thing} dcterms:title ?title }}"

    def titles(kg: KnowledgeGraph, *, all_graphs: bool = False) -> set[str]:
        rows = kg.query(query, all_graphs=all_graphs).result
        assert isinstance(rows, Rows)
        assert all_graphs or rows == kg.store.query_sources(query)
        return {term_text(row["title"]) for row in rows}

    with open_graph(tmp_path) as kg:
        kg.store.commit({source: [Quad(thing, DCTERMS.title, Literal("true"), source)]})
        assert kg.store.pin().visibility.exclude(query) == query
        kg.store.commit({user: [Quad(thing, DCTERMS.title, Literal("forged"), user)]})
        assert titles(kg) == {"true"}
        assert titles(kg, all_graphs=True) == {"true", "forged"}
        assert kg.store.pin().visibility.exclude("SELECT ?s { ?s kg:slug ?o }") == "SELECT ?s { ?s kg:slug ?o }"
    with open_graph(tmp_path) as kg:
        assert titles(kg) == {"true"}
        kg.store.commit({user: []})
        assert titles(kg) == {"true"}
        assert kg.store.pin().visibility.exclude(query) == query


@pytest.mark.parametrize("forge_between", [False, True])
def test_statement_that_is_forged_while_a_query_runs_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forge_between: bool
) -> None:
    user, thing = mint("graph", "user", "a"), mint("document", "a")
    with open_graph(tmp_path) as kg:
        run = QueryPool.run

        def forging(pool: QueryPool, query: str, **options: Any) -> Any:
            if forge_between:
                kg.store.commit({user: [Quad(thing, DCTERMS.title, Literal("forged"), user)]})
            return run(pool, query, **options)

        monkeypatch.setattr(QueryPool, "run", forging)
        rows = kg.query(f"SELECT ?title {{ {thing} dcterms:title ?title }}").result
        assert isinstance(rows, Rows)
        assert len(rows) == 0


def test_sparql_names_the_graphs_of_users_that_its_answer_may_mix_in(forgery: Forgery) -> None:
    kg = forgery.open("codes")
    asked = "SELECT ?name { ?thing skos:prefLabel ?name } LIMIT 1"
    [note] = [note for note in sparql(kg, asked).notes if "users" in note]
    assert f"{FORGED.value}/0" in note
    for silent in (
        "SELECT ?o { ?s kg:unused ?o }",
        f"SELECT ?o {{ GRAPH {PROV_GRAPH} {{ ?s ?p ?o }} }} LIMIT 1",
        "SELECT ?g ?o { GRAPH ?g { ?s skos:prefLabel ?o } } LIMIT 1",
    ):
        assert not [note for note in sparql(kg, silent).notes if "users" in note]
