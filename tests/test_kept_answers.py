"""Whatever is committed, a graph that keeps results answers as one that has kept nothing.

A random sequence of commits: changed and removed statements of sources, statements of users, updates, reviews of
claims, and loads of changed files. After each, all reading tools and some pages are asked of the graph, and of the same
graph without its memory. At the end it is opened again.
"""

from __future__ import annotations

import ast
import random
import re
import shutil
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.access.actors import HOLDER
from kg.errors import QuadciteError
from kg.knowledge_graph import SENDER, KnowledgeGraph, Memory
from kg.retrieval.facets import count_scope
from kg.retrieval.filters import build_conditions, compile_scope
from kg.retrieval.hybrid_search import build_units_query
from kg.retrieval.reader import Reader
from kg.retrieval.results import FacetName, SearchFilters, to_json
from kg.server import pages
from kg.server.mcp import ToolThreads
from kg.server.pages.site import Site
from kg.store.ownership import is_user_graph
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import select, term_text
from kg.tools.registry import TOOLS
from kg.user_graphs import UserGraphs
from kg.vocabulary import CODES_GRAPH, PROV_GRAPH, SKOS, UNCOUNTED_GRAPHS, XSD, mint
from loaders.sources import load
from tests.benchmarks.budget import load_questions
from tests.conftest import load_once, opened, shipped

pytestmark = pytest.mark.long

SEED: Final = 20
STEPS: Final = 6
PAGES: Final = 20
FACETS: Final[tuple[FacetName, ...]] = (
    "domain", "place", "language", "corpus_type", "year", "party", "chamber", "district", "concept",
)  # fmt: skip
BEND: Final = {"municipality": "Quarry Bend", "state": "UT"}
CALLS: Final[Sequence[tuple[str, dict[str, Any]]]] = (
    ("search", {"query": "", "facets": list(FACETS), "sort": "newest"}),
    ("search", {"query": "", "facets": list(FACETS), "sort": "oldest", "filters": {"place": ["BRA", "UT", "AUS"]}}),
    ("search", {"query": "", "facets": list(FACETS), "sort": "title", "filters": {"domain": ["parliament"]}}),
    ("search", {"query": "", "facets": list(FACETS), "filters": {"concept": ["Q1012"]}}),
    ("search", {"query": "", "facets": list(FACETS), "filters": {"party": ["Greens"]}}),
    ("search", {"query": "solar roofs", "facets": list(FACETS)}),
    ("search", {"query": "solar energy", "filters": {"concept_qids": ["Q1010"], "year": ["2031", "2024"]}}),
    ("how_voted", {"limit": 50}),
    ("how_voted", {"person": "Marchbanks"}),
    ("list_speakers", {"limit": 50}),
    ("speech_stats", {"group_by": "speaker"}),
    ("speech_stats", {"group_by": "topic"}),
    ("search_speeches", {"query": "the", "party": "Greens"}),
    ("list_resources", {"limit": 50}),
    ("concept_mentions", {"qids": ["Q1010", "Q1009"], "limit": 20}),
    ("family_overview", {}),
    ("kg_query_permissions", {**BEND, "district": "R-1"}),
    ("kg_query_standards", BEND),
    ("kg_traverse_hierarchy", {**BEND, "depth": 3}),
    ("list_claims", {"kind": "relation"}),
)
WITHOUT: Final = frozenset(
    {"health", "status", "validate", "sparql", "wikidata.sparql", "describe_schema", "find_terms"}
)
"""Tools that keep no results of queries, or whose answers depend on the time or on what this process has loaded."""

STARTS: Final = (
    "/", "/places", "/people", "/concepts", "/documents", "/codes", "/charts", "/charts/places?place=BRA&place=DJI",
    "/search?q=solar",
)  # fmt: skip
OTHER: Final = ("/static", "/docs", "/status", "/sparql", "/ns", "/cite", "/graphs", "/tools", "/prefixes", "/.well")
LINKS: Final = re.compile(r'href="(/[^"#]*)')
QUERIES: Final = re.compile(r'<details class="queries">.*?</details>', re.DOTALL)
"""The queries behind a page: those that did not run are absent."""


@cache
def list_calls() -> Sequence[tuple[str, str]]:
    """List calls of all reading tools: of the budget benchmark, the examples in their descriptions, and `CALLS`."""
    calls = [call for question in load_questions() for call in question.calls]
    for tool in TOOLS:
        for example in re.findall(r"Example: (.+?)\.$", tool.description, re.MULTILINE | re.DOTALL):
            call = ast.parse(example, mode="eval").body
            assert isinstance(call, ast.Call)
            calls.append((tool.name, {each.arg or "": ast.literal_eval(each.value) for each in call.keywords}))
    reading = {tool.name for tool in TOOLS if tool.scope == "read"} - WITHOUT
    return tuple(dict.fromkeys((name, repr(given)) for name, given in (*calls, *CALLS) if name in reading))


def ask(kg: KnowledgeGraph, paths: Iterable[str]) -> dict[str, str]:
    """Make all calls, and read pages. An error is an answer too."""
    tools = {tool.name: tool for tool in reversed(TOOLS)}  # the first of a name
    said = read_pages(kg, paths)
    for name, given in list_calls():
        try:
            said[f"{name} {given}"] = to_json(tools[name].answer(kg, ast.literal_eval(given)).content)
        except (QuadciteError, LookupError) as error:  # a rule without its district, for one
            said[f"{name} {given}"] = f"{type(error).__name__}: {error}"
    return said


def read_pages(kg: KnowledgeGraph, paths: Iterable[str]) -> dict[str, str]:
    app = Starlette(routes=pages.routes(Site(kg, ToolThreads(kg))))
    client = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    said = {}
    for path in paths:
        answer = client.get(path, headers={"Accept": "text/html"}, follow_redirects=False)
        said[path] = f"{answer.status_code} {QUERIES.sub('', answer.text)}"
    return said


def find_pages(kg: KnowledgeGraph, most: int) -> list[str]:
    """Find pages that the start pages lead to: of each kind as many as of the others."""
    kinds: dict[str, deque[str]] = {}
    found = list(STARTS)
    seen, latest = set(found), found
    while latest and len(found) < most:
        for text in read_pages(kg, latest).values():
            for path in (link.replace("&amp;", "&") for link in LINKS.findall(text)):
                if path not in seen and not path.startswith(OTHER):
                    seen.add(path)
                    named = re.search(r"(?:id|cpr:/)/(\w+)/", unquote(path))
                    kind = f"{path.split('?')[0].split('/')[1]} {named[1] if named else ''}"
                    kinds.setdefault(kind, deque()).append(path)
        latest = [waiting.popleft() for waiting in kinds.values() if waiting]
        found += latest
    return found[:most]


def compare(kept: Mapping[str, str], fresh: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """List what differs: the call or page, and both answers around the first difference."""
    found = []
    for asked, answer in kept.items():
        if answer != (other := fresh[asked]):
            at = next((n for n, (a, b) in enumerate(zip(answer, other, strict=False)) if a != b), 0)
            found.append((asked, answer[max(0, at - 99) : at + 99], other[max(0, at - 99) : at + 99]))
    return found


def compare_counts(kg: KnowledgeGraph) -> list[tuple[object, ...]]:
    """List the values of facets whose numbers in the index are not those that SPARQL counts."""
    reader, found = Reader(kg), []
    counts, _ = count_scope(reader, FACETS, compile_scope(reader, SearchFilters())[0])
    assert sum(map(len, counts.values.values())) > 50
    for facet, values in counts.values.items():
        for each in values:
            scope, _ = compile_scope(reader, SearchFilters(**{facet: [each.value]}))  # type: ignore[arg-type]
            query = scope.compile(build_units_query(scope, by_document=True))
            rows = Reader(kg).rows("units by document", query, declared=("document",))
            units = sum(int(term_text(row["units"])) for row in rows if "document" in row)
            conditions, is_whole = build_conditions(scope)
            indexed = kg.search.count([], conditions).units if is_whole else units
            if {each.passages, indexed} != {units}:
                found.append((facet, each.value, each.passages, indexed, units))
    return found


@dataclass(slots=True)
class Committer:
    """Commits something at random, and returns what."""

    kg: KnowledgeGraph
    folder: Path
    random: random.Random
    removed: dict[NamedNode, list[Quad]] = field(default_factory=dict)

    def choose_quads(self) -> tuple[NamedNode, list[Quad]]:
        """Choose a graph of a source, or one that is derived or extracted."""
        shipped_graphs = {PROV_GRAPH, CODES_GRAPH, mint("graph", "ontology"), mint("graph", "shapes")}
        graphs = [each for each in self.kg.store.graphs() if each not in UNCOUNTED_GRAPHS | shipped_graphs]
        graph = self.random.choice(sorted((each for each in graphs if not is_user_graph(each)), key=str))
        return graph, sorted(self.kg.store.graph(graph), key=str)

    def change(self) -> str:
        """Change or remove statements with one property: others are not read again for that."""
        graph, quads = self.choose_quads()
        name = self.random.choice(sorted({quad.predicate for quad in quads}, key=str))
        mine = [quad for quad in quads if quad.predicate == name]
        chosen = self.random.sample(mine, min(len(mine), self.random.choice([1, 1, 2, 5])))
        changed = [] if self.random.random() < 0.3 else [self._change(quad) for quad in chosen]
        self.kg.store.commit({graph: [*(quad for quad in quads if quad not in chosen), *changed]})
        return f"{chosen} to {changed}"

    def _change(self, quad: Quad) -> Quad:
        value = quad.object
        if isinstance(value, Literal):
            if value.language or value.datatype == XSD.string:
                value = Literal(f"{value.value} zz", language=value.language)
            elif value.value.isdecimal():
                value = Literal(str(int(value.value) + 1), datatype=value.datatype)
            else:
                value = Literal(value.value.replace("202", "201"), datatype=value.datatype)
        else:
            query = f"SELECT DISTINCT ?value WHERE {{ ?node <{quad.predicate.value}> ?value }}"
            values = [row["value"] for row in select(self.kg.store.query, query)]
            value = self.random.choice(sorted((each for each in values if isinstance(each, NamedNode)), key=str))
        return Quad(quad.subject, quad.predicate, value, quad.graph_name)

    def move(self) -> str:
        """Move a statement to another graph."""
        (graph, quads), (other, others) = self.choose_quads(), self.choose_quads()
        quad = self.random.choice(quads)
        moved = Quad(quad.subject, quad.predicate, quad.object, other)
        self.kg.store.commit({graph: [each for each in quads if each != quad], other: [*others, moved]})
        return f"{quad} to {other}"

    def remove(self) -> str:
        graph, self.removed[graph] = self.choose_quads()
        self.kg.store.commit({graph: []})
        return str(graph)

    def restore(self) -> str:
        if not self.removed:
            return self.remove()
        graph, quads = self.removed.popitem()
        self.kg.store.commit({graph: quads})
        return str(graph)

    def say(self) -> str:
        """State something of a source in a user graph, or describe a node of one's own as a source describes one."""
        graph, (_, quads) = mint("graph", "user", "notes"), self.choose_quads()
        quad = self.random.choice(quads)
        if self.random.random() < 0.3:
            said = [Triple(quad.subject, SKOS.altLabel, Literal("a name", language="en"))]
        else:
            assert isinstance(quad.subject, NamedNode)
            own = NamedNode(f"{quad.subject.value}-mine")
            said = [Triple(own, each.predicate, each.object) for each in quads if each.subject == quad.subject]
        UserGraphs(self.kg).post(graph, said, HOLDER)
        return str(said[:3])

    def update(self) -> str:
        graph = mint("graph", "user", "notes")
        text = self.random.choice(
            (
                f"DELETE WHERE {{ GRAPH {graph} {{ ?s a ?class }} }}",
                f"INSERT {{ GRAPH {graph} {{ ?s dcterms:title 'mine' }} }} WHERE {{ GRAPH {graph} {{ ?s ?p ?o }} }}",
                f"INSERT DATA {{ GRAPH {graph} {{ <urn:law> a kg:PolicyDocument ; kg:jurisdiction <urn:place> }} }}",
            )
        )
        UserGraphs(self.kg).update(text, (), (), HOLDER)
        return text

    def review(self) -> str:
        query = "SELECT DISTINCT ?claim WHERE { ?claim a kg:Statement } ORDER BY ?claim"
        claims = [term_text(row["claim"]) for row in select(self.kg.store.query, query)]
        [tool] = [each for each in TOOLS if each.name == "review_claim"]
        given = {"claim": self.random.choice(claims), "verdict": self.random.choice(["accept", "reject"])}
        tool.call(self.kg, given)
        return str(given)

    def load(self) -> str:
        """Load a source again after a change of one of its files."""
        source = self.random.choice(["climate", "hansard", "zoning", "files"])
        folder = self.folder / source
        if not folder.exists():
            shutil.copytree(shipped({"files": "files/handbook"}.get(source, source)), folder)
        kinds = (".csv", ".jsonl", ".xml", ".html", ".md")
        file = self.random.choice(sorted(each for each in folder.rglob("*") if each.suffix in kinds))
        text = file.read_text()
        word = self.random.choice(sorted({*re.findall(r"(?<= )[a-z]{6,}\b", text)} - {"class"}) or ["the"])
        file.write_text(re.sub(r"2024-", "2023-", text.replace(f" {word}", f" {word[::-1]}"), count=2))
        load(self.kg, source, [str(folder)])
        return f"{file.name}: {word}"


@pytest.fixture
def joined_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return load_once(tmp_path_factory, "joined")


@pytest.fixture(autouse=True)
def holder() -> Any:
    before = SENDER.set(HOLDER)
    yield
    SENDER.reset(before)


KINDS: Final = ("change",) * 5 + ("move", "remove", "restore", "say", "say", "update", "review", "load")


def test_answers_are_those_of_a_graph_that_has_kept_nothing(joined_copy: Path, tmp_path: Path) -> None:
    chosen = random.Random(SEED)
    with opened(joined_copy) as kg:
        committer = Committer(kg, tmp_path / "sources", chosen)
        paths = find_pages(kg, PAGES)
        ask(kg, paths)
        done = []
        for _ in range(STEPS):
            kind = chosen.choice(KINDS)
            try:
                done.append(f"{kind} {getattr(committer, kind)()}")
            except QuadciteError as error:  # such as a statement that a source has
                done.append(f"{kind} failed: {error}")
            said = ask(kg, paths)
            assert compare(said, ask(replace(kg, memory=Memory()), paths)) == [], done
    with opened(joined_copy) as again:
        assert compare(said, ask(again, paths)) == [], done


def test_facets_are_counted_as_sparql_counts_them_after_each_load(joined_copy: Path, tmp_path: Path) -> None:
    with opened(joined_copy) as kg:
        committer = Committer(kg, tmp_path / "sources", random.Random(SEED))
        assert compare_counts(kg) == []
        load(kg, "members", [shipped("members")])
        assert compare_counts(kg) == []
        for _ in range(5):
            done = committer.load(), committer.say()
            assert compare_counts(kg) == [], done


def test_a_result_that_is_kept_too_long_is_found(joined_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(joined_copy) as kg:
        ask(kg, STARTS)
        monkeypatch.setattr(OxigraphStore, "find_last_change", lambda *_, **__: 0)
        graphs = [each for each in kg.store.graphs() if each.value.startswith(mint("graph", "src", "hansard").value)]
        assert graphs
        kg.store.commit({graph: [] for graph in graphs})
        differing = {
            asked.split()[0] for asked, _, _ in compare(ask(kg, STARTS), ask(replace(kg, memory=Memory()), STARTS))
        }
        assert {"/people", "list_speakers", "how_voted", "speech_stats"} <= differing
