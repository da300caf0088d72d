"""Reviews of rules and districts that were found in the text of a code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode, Store, Triple
from typer.testing import CliRunner

from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.cli.main import app
from kg.errors import InvalidInputError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.shacl.data_graph import DataGraph
from kg.shacl.shapes import Shapes
from kg.store.protocol import Rows
from kg.tools.claims.review import REVIEWS, list_claims, review_claim
from kg.tools.zoning.compare import compare_zoning
from kg.tools.zoning.ingest import kg_ingest_use_permissions
from kg.tools.zoning.provisions import kg_query_definition, kg_query_permissions, kg_query_standards
from kg.user_graphs import UserGraphs
from kg.vocabulary import KG, mint
from loaders.sources import load
from tests.conftest import opened
from tests.folders import copy_folder, open_graph

FORD: Any = {"municipality": "Otter Ford", "state": "UT"}
DALE: Any = {"municipality": "Linden Dale", "state": "UT"}
ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))

CODE = """
1.10 Definitions
"Arcade" means a covered walk with shops on one side.
1.20 R-1 Residential District
Permitted uses:
1. Cottages.
2. Bakeries.
Minimum lot area: 7,000 square feet.
1.30 C-1 Corner Commercial District
Permitted uses:
1. Bakeries.
2. Ferry landings.
Maximum building height: 35 feet.
"""


def write_code(folder: Path, text: str, town: str = "Otter Ford") -> str:
    (folder / f"{town}.txt").write_text(text)
    (folder / f"{town}.toml").write_text(f'[jurisdiction]\nname = "{town}"\nstate = "UT"\n')
    return str(folder / f"{town}.txt")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file of the code, and a data directory with the code."""
    folder: Path = tmp_path_factory.mktemp("ford")
    with opened(folder / "data") as graph:
        load(graph, "zoning", [write_code(folder, CODE)])
    return folder


@pytest.fixture
def source(loaded: Path) -> str:
    return write_code(loaded, CODE)


@pytest.fixture
def kg(loaded: Path, source: str, tmp_path: Path) -> Iterator[KnowledgeGraph]:
    """The code, in a data directory of the test's own."""
    folder = copy_folder(loaded / "data", tmp_path / "data")
    with open_graph(folder) as graph:
        token = SENDER.set(ADA)
        yield graph
        SENDER.reset(token)


def uses(kg: KnowledgeGraph, district: str) -> set[str]:
    return {each.use for each in kg_query_permissions(kg, **FORD, district=district).permissions}


def find_claim(kg: KnowledgeGraph, kind: Any, statement: str, **more: Any) -> str:
    [claim] = [each.id for each in list_claims(kg, kind=kind, limit=200, **more).claims if statement in each.statement]
    return claim


def ask(kg: KnowledgeGraph, query: str) -> set[str]:
    found = kg.store.query(query)
    assert isinstance(found, Rows)
    return {str(term) for row in found for term in row.values()}


ALL_USES = "SELECT ?name { ?rule kg:landUse ?use . ?use skos:prefLabel ?name }"
DISTRICTS = "SELECT ?code { ?district a kg:ZoningDistrict ; skos:notation ?code }"


def test_findings_are_listed_by_confidence_with_their_words(kg: KnowledgeGraph) -> None:
    everything = list_claims(kg, **FORD, limit=200).claims
    assert [each.confidence for each in everything] == sorted(each.confidence for each in everything)
    assert {each.kind for each in everything} >= {"use", "standard", "definition", "district"}
    assert all(each.words and each.section and each.reported for each in everything)
    [height] = [each for each in everything if "building height" in each.statement]
    assert (height.words, height.context) == ("35 feet", "Maximum building height: 35 feet.")
    listed = list_claims(kg, kind="use", **FORD, limit=1, offset=1)
    assert (listed.total, len(listed.claims), listed.next_offset) == (4, 1, 2)
    assert not list_claims(kg, kind="use", **FORD, max_confidence=0.1).claims
    with pytest.raises(InvalidInputError):
        list_claims(kg, municipality="Otter Ford")


def test_rejected_use_is_withdrawn_from_answers_and_plain_queries(kg: KnowledgeGraph, tmp_path: Path) -> None:
    load(kg, "zoning", [write_code(tmp_path, CODE, "Linden Dale")])
    claim = find_claim(kg, "use", "Ferry landings in C-1", **FORD)
    done = review_claim(kg, claim, "reject")
    assert (done.kind, done.asserted, done.reviewed_by) == ("use", False, "ada")
    assert uses(kg, "C-1") == {"Bakeries"}
    places = compare_zoning(kg, ["Otter Ford, UT", "Linden Dale, UT"], use="ferry landing").uses[0].places
    assert [bool(each.districts) for each in places] == [False, True]
    assert not ask(kg, f"SELECT ?p {{ {NamedNode(claim)} kg:landUse|kg:district|kg:permissionLevel|kg:rawLevel ?p }}")
    [listed] = list_claims(kg, kind="use", **FORD, status="rejected").claims
    assert (listed.id, listed.reported, listed.reviewed_by) == (claim, False, ["ada"])
    assert "Ferry landings" in listed.statement
    [why] = explain_iri(kg.store.query, NamedNode(claim))
    assert [(each.verdict, each.by) for each in why.reviews] == [("rejected", ("ada",))]
    assert (why.agent, why.words[0].verified) == ("loaders.zoning", True)
    again = review_claim(kg, claim, "accept")
    assert (again.asserted, len(again.notes)) == (False, 1)


def test_rejected_standard_and_definition_are_withdrawn(kg: KnowledgeGraph) -> None:
    review_claim(kg, find_claim(kg, "standard", "building height"), "reject")
    assert [each.standard_type for each in kg_query_standards(kg, **FORD).standards] == ["lot-area"]
    claim = find_claim(kg, "definition", "Arcade")
    review_claim(kg, claim, "reject")
    assert not ask(kg, "SELECT ?text { ?definition a kg:Definition ; skos:definition ?text }")
    assert "covered walk" in list_claims(kg, kind="definition", status="rejected").claims[0].statement


def test_rules_of_a_rejected_district_are_withdrawn_with_it(kg: KnowledgeGraph, source: str) -> None:
    claim = find_claim(kg, "district", "C-1")
    review_claim(kg, claim, "reject")
    assert ask(kg, DISTRICTS) == {'"R-1"'}
    assert ask(kg, ALL_USES) == {'"Cottages"', '"Bakeries"'}
    Path(source).write_text(CODE.replace("Cottages", "Cabins").replace("Ferry landings", "Ferry piers"))
    load(kg, "zoning", [source])
    assert ask(kg, DISTRICTS) == {'"R-1"'}
    assert ask(kg, ALL_USES) == {'"Cabins"', '"Bakeries"'}
    UserGraphs(kg).delete(REVIEWS, ADA)
    assert uses(kg, "C-1") == {"Bakeries", "Ferry piers"}
    assert ask(kg, DISTRICTS) == {'"R-1"', '"C-1"'}


def test_district_that_a_source_states_is_not_rejected(kg: KnowledgeGraph) -> None:
    kg_ingest_use_permissions(kg, **FORD, permissions=[{"district": "C-1", "use": "Inn", "permission": "P"}])
    with pytest.raises(InvalidInputError):
        review_claim(kg, find_claim(kg, "district", "C-1"), "reject")
    assert not kg.store.graph(REVIEWS)


def test_accepted_finding_counts_as_reviewed(kg: KnowledgeGraph, source: str) -> None:
    claim = find_claim(kg, "use", "Cottages")
    assert review_claim(kg, claim, "accept").asserted
    [found] = kg_query_permissions(kg, **FORD, district="R-1", use="cottage").permissions
    assert (found.evidence.id, found.evidence.review) == (claim, "accepted")
    assert claim not in {each.id for each in list_claims(kg, **FORD, limit=200).claims}
    assert [each.id for each in list_claims(kg, status="accepted").claims] == [claim]
    Path(source).write_text(CODE.replace("1. Cottages", "1. Cabins.\n2. Cottages").replace("2. Bak", "3. Bak", 1))
    load(kg, "zoning", [source])
    [found] = kg_query_permissions(kg, **FORD, district="R-1", use="cottage").permissions
    assert found.evidence.review == "accepted"
    assert not review_claim(kg, found.evidence.id, "reject").asserted


@pytest.mark.parametrize(
    "changed",
    [
        CODE,
        CODE.replace("1. Bakeries.\n2. Ferry landings", "1. Ferry landings.\n2. Bakeries"),
        CODE.replace("Permitted uses:\n1. Bakeries.\n2. Ferry", "Uses permitted by right:\n1. Bakeries.\n2. Ferry"),
    ],
    ids=["the same file", "moved in its section", "under another heading"],
)
def test_rejection_survives_reloads(
    kg: KnowledgeGraph, source: str, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = find_claim(kg, "use", "Ferry landings")
    review_claim(kg, claim, "reject")
    if changed == CODE:
        monkeypatch.setattr("loaders.zoning.readers.code_model.VERSION", "next")
    Path(source).write_text(changed)
    load(kg, "zoning", [source])
    assert uses(kg, "C-1") == {"Bakeries"}
    assert '"Ferry landings"' not in ask(kg, ALL_USES)
    assert not ask(kg, 'SELECT ?use { ?use a kg:LandUse ; skos:prefLabel "Ferry landings" }')


def test_rejection_of_one_rule_is_not_one_of_another_that_says_the_same(kg: KnowledgeGraph, source: str) -> None:
    text = CODE + "1.40 C-1 Corner Commercial District, landings\nPermitted uses:\n1. Ferry landings.\n"
    Path(source).write_text(text)
    load(kg, "zoning", [source])
    first, other = (each.id for each in list_claims(kg, kind="use", **FORD).claims if "Ferry" in each.statement)
    done = review_claim(kg, first, "reject")
    assert other in " ".join(done.notes)
    assert "Ferry landings" in uses(kg, "C-1")


def test_review_by_update_and_its_retraction_apply(kg: KnowledgeGraph) -> None:
    claim = NamedNode(find_claim(kg, "use", "Ferry landings"))
    graph = mint("graph", "cur", "mine")
    UserGraphs(kg).post(graph, [Triple(graph, KG.rejects, claim)], ADA)
    assert uses(kg, "C-1") == {"Bakeries"}
    UserGraphs(kg).delete(graph, ADA)
    assert uses(kg, "C-1") == {"Bakeries", "Ferry landings"}
    user = mint("graph", "user", "forged")
    UserGraphs(kg).put(user, [Triple(user, KG.rejects, claim)], ADA)
    assert uses(kg, "C-1") == {"Bakeries", "Ferry landings"}


def test_graph_conforms_after_reviews(kg: KnowledgeGraph) -> None:
    before = {str(graph): kg.store.graph(graph) for graph in kg.store.graphs() if "/ext/zoning" in graph.value}
    for kind, says in (("use", "Ferry"), ("standard", "lot area"), ("definition", "Arcade"), ("district", "C-1")):
        review_claim(kg, find_claim(kg, kind, says), "reject")
    review_claim(kg, find_claim(kg, "use", "Cottages"), "accept")
    with kg.store.snapshot(kg.store.statistics().generation) as snapshot:
        store = Store.read_only(str(snapshot.path))
        assert [each for each in Shapes.load_dataset().validate(DataGraph.from_store(store)) if each.blocks] == []
    UserGraphs(kg).delete(REVIEWS, ADA)
    after = {str(graph): kg.store.graph(graph) for graph in kg.store.graphs() if "/ext/zoning" in graph.value}
    assert {name: set(quads) for name, quads in after.items()} == {name: set(quads) for name, quads in before.items()}


def test_command_lists_and_rejects_findings(kg: KnowledgeGraph, tmp_path: Path) -> None:
    claim = find_claim(kg, "use", "Ferry landings")
    kg.close()
    runner, folder = CliRunner(), ["--data-dir", str(tmp_path / "data")]
    listed = runner.invoke(app, ["review", "--kind", "use", "--municipality", "Otter Ford", "--state", "UT", *folder])
    assert (listed.exit_code, claim in listed.stdout) == (0, True), listed.output
    done = runner.invoke(app, ["review", claim, "reject", *folder])
    assert (done.exit_code, "Ferry landings" in done.stdout) == (0, True), done.output


def test_unsure_rules_are_listed_apart(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = find_claim(kg, "use", "Cottages")
    review_claim(kg, claim, "accept")
    monkeypatch.setattr(kg, "settings", kg.settings.model_copy(update={"rule_confidence": 0.99}))
    found = kg_query_permissions(kg, **FORD, district="R-1")
    assert ([each.use for each in found.permissions], [each.use for each in found.unsure]) == (
        ["Cottages"],
        ["Bakeries"],
    )
    found = kg_query_permissions(kg, **FORD, use="bakery")
    assert (found.permissions, {each.district for each in found.unsure}) == ([], {"R-1", "C-1"})
    assert all(each.evidence.confidence for each in found.unsure)
    standards = kg_query_standards(kg, **FORD, standard_type="height")
    assert (standards.standards, [each.value for each in standards.unsure]) == ([], [35])
    listed = kg_query_standards(kg, **FORD)
    assert (listed.standards, len(listed.unsure)) == ([], 2)
    meanings = kg_query_definition(kg, **FORD, term="arcade")
    assert (meanings.definitions, len(meanings.unsure)) == ([], 1)


def test_stated_rule_comes_before_an_extracted_one(kg: KnowledgeGraph) -> None:
    stated = [
        {"district": "R-1", "use": "Bakery", "permission": "N"},
        {"district": "C-1", "use": "Bakery", "permission": "P"},
    ]
    kg_ingest_use_permissions(kg, **FORD, permissions=stated)
    found = kg_query_permissions(kg, **FORD, district="R-1", use="bakery")
    assert [(each.permission, each.evidence.basis) for each in found.permissions] == [("notPermitted", "stated")]
    assert [(each.permission, each.evidence.yields_to) for each in found.unsure] == [
        ("byRight", found.permissions[0].evidence.id)
    ]
    found = kg_query_permissions(kg, **FORD, district="C-1", use="bakery")
    assert ({each.evidence.basis for each in found.permissions}, found.unsure) == ({"stated", "extracted"}, [])
