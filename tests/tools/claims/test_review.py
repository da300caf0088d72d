"""What people decide of a claim counts in the commit that says it: the edge is there, or is gone, by whatever way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store, Triple
from typer.testing import CliRunner

from kg import bundle
from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.cli import claims
from kg.cli.main import app
from kg.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError, StoreError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.provenance.promotion import PROMOTION, Verdicts, build_edges, build_load_patch
from kg.shacl.data_graph import DataGraph
from kg.shacl.shapes import Shapes
from kg.store.difference import content_sha256
from kg.store.protocol import Rows
from kg.tools import commands
from kg.tools.claims.review import REVIEWS, review_claim
from kg.tools.zoning.sections import kg_find_related
from kg.user_graphs import UserGraphs
from kg.vocabulary import ELI, KG, PROV, PROV_GRAPH, RDF, XSD, mint, sha256
from loaders.sources import load
from tests.conftest import load_once
from tests.folders import open_graph

ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))
EVE = Actor("eve", frozenset({WRITE, CURATE, ADMIN}))

TITLE = bundle.folder("fixtures") / "zoning" / "title_17_zoning.html"
BEND: Any = {"municipality": "Quarry Bend", "state": "UT"}
CLAIMS = mint("graph", "ext", "zoning", "us-ut-quarry-bend", "17.20.020")
EDGES = mint("graph", "der", "promote", "zoning", "us-ut-quarry-bend", "17.20.020")


def section(key: str) -> NamedNode:
    return mint("section", "us-ut-quarry-bend", key)


@pytest.fixture
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = load_once(tmp_path_factory, "empty")
    with open_graph(folder) as opened:
        yield opened


@pytest.fixture
def code(kg: KnowledgeGraph) -> KnowledgeGraph:
    load(kg, "zoning", [str(TITLE)], state="UT")
    return kg


def parts(number: int, confidence: str, predicate: NamedNode = KG.subjectTo, graph: NamedNode = CLAIMS) -> list[Quad]:
    node = mint("statement", sha256(str(number))[:32])
    return [
        Quad(node, RDF.subject, section("1"), graph),
        Quad(node, RDF.predicate, predicate, graph),
        Quad(node, RDF.object, section("2"), graph),
        Quad(node, KG.confidence, Literal(confidence, datatype=XSD.decimal), graph),
    ]


def claimed(kg: KnowledgeGraph, *confidences: str) -> list[NamedNode]:
    """Commit claims of one triple, as a load does, and return their nodes."""
    quads = [quad for number, confidence in enumerate(confidences) for quad in parts(number, confidence)]
    replace: dict[NamedNode, Sequence[Quad]] = {CLAIMS: quads}
    records = {CLAIMS: RecordOrigin("", (), (mint("graph", "src", "zoning", "us-ut-quarry-bend", "1"),))}
    kg.store.commit(replace, build_load_patch(Run(Agent("test", "1")), kg.store, replace, records))
    return list(dict.fromkeys(quad.subject for quad in quads if isinstance(quad.subject, NamedNode)))


def promoted(kg: KnowledgeGraph) -> bool:
    return Quad(section("1"), KG.subjectTo, section("2"), EDGES) in kg.store.graph(EDGES)


def by_tool(kg: KnowledgeGraph, claim: NamedNode, verdict: Any) -> None:
    review_claim(kg, claim.value, verdict)


def by_post(kg: KnowledgeGraph, claim: NamedNode, verdict: str) -> None:
    graph = mint("graph", "cur", "of-mine")
    UserGraphs(kg).post(graph, [Triple(graph, KG[f"{verdict}s"], claim)], ADA)


def by_update(kg: KnowledgeGraph, claim: NamedNode, verdict: str) -> None:
    graph = mint("graph", "cur", "of-mine")
    UserGraphs(kg).update(f"INSERT DATA {{ GRAPH {graph} {{ {graph} {KG[verdict + 's']} {claim} }} }}", (), (), ADA)


def by_command(kg: KnowledgeGraph, claim: NamedNode, verdict: Any) -> None:
    commands.review(kg, claim.value, verdict, by="ada")


WAYS = pytest.mark.parametrize("decide", [by_tool, by_post, by_update, by_command])


# -- at once, by every way


@WAYS
def test_an_accepted_claim_is_an_edge_and_a_rejected_one_is_none_at_once(kg: KnowledgeGraph, decide: Any) -> None:
    [claim] = claimed(kg, "0.3")
    assert not promoted(kg)
    before = kg.store.statistics().generation
    decide(kg, claim, "accept")
    assert promoted(kg)
    assert kg.store.statistics().generation == before + 1
    decide(kg, claim, "reject")
    assert not promoted(kg)
    assert kg.store.statistics().generation == before + 2
    assert EDGES not in kg.store.graphs()


def test_an_edge_of_two_claims_goes_with_the_last(kg: KnowledgeGraph) -> None:
    first, second = claimed(kg, "0.9", "0.8")
    assert promoted(kg)
    done = review_claim(kg, first.value, "reject")
    assert promoted(kg)
    assert done.asserted
    assert done.notes == ["Another claim or a source still asserts the edge."]
    done = review_claim(kg, second.value, "reject")
    assert not promoted(kg)
    assert not done.asserted


def test_what_was_decided_holds_at_the_next_load_and_a_rejection_prevails(kg: KnowledgeGraph) -> None:
    [claim] = claimed(kg, "0.3")
    review_claim(kg, claim.value, "accept")
    claimed(kg, "0.4")
    assert promoted(kg)
    claimed(kg)
    assert not promoted(kg), "an edge goes with the last claim of it"
    claimed(kg, "0.9")
    review_claim(kg, claim.value, "reject")
    claimed(kg, "0.95")
    assert not promoted(kg)
    done = review_claim(kg, claim.value, "accept")
    assert not done.asserted
    assert done.notes == [f"The claim was rejected in {REVIEWS}. A rejection is final."]


def test_a_review_that_comes_while_a_load_reads_counts_when_the_load_commits(kg: KnowledgeGraph) -> None:
    quads = parts(0, "0.9")
    replace: dict[NamedNode, Sequence[Quad]] = {CLAIMS: quads}
    described = build_load_patch(Run(Agent("test", "1")), kg.store, replace, {})
    by_post(kg, NamedNode(str(quads[0].subject).strip("<>")), "reject")
    kg.store.commit(replace, described)
    assert not promoted(kg)


def test_the_command_says_whether_the_edge_stands(tmp_path: Path) -> None:
    with open_graph(tmp_path) as opened:
        [claim] = claimed(opened, "0.3")
    edge = f"{section('1')} {KG.subjectTo} {section('2')}"
    for verdict, said in (("accept", "is an edge"), ("reject", "is not an edge"), ("accept", "is not an edge")):
        done = CliRunner().invoke(app, ["review", claim.value, verdict, "--data-dir", str(tmp_path)])
        assert (done.exit_code, done.stdout) == (0, f"{edge} {said}\n"), done.output
    assert f"rejected in {REVIEWS}" in done.stderr
    refused = CliRunner().invoke(app, ["review", "urn:nothing", "accept", "--data-dir", str(tmp_path)])
    assert (refused.exit_code, "Unknown claim 'urn:nothing'" in refused.stderr) == (1, True)


# -- consistent, whatever happens


def test_a_write_that_fails_leaves_neither_the_review_nor_the_edge(kg: KnowledgeGraph, monkeypatch: Any) -> None:
    [claim] = claimed(kg, "0.3")
    before = set(kg.store.graphs())

    def full(*_: object) -> str:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("kg.store.difference.build_update", full)
        with pytest.raises(StoreError):
            review_claim(kg, claim.value, "accept")
    assert set(kg.store.graphs()) == before


def test_the_graph_of_edges_says_who_decided_and_by_which_rule(kg: KnowledgeGraph) -> None:
    [claim] = claimed(kg, "0.3")
    sender = SENDER.set(ADA)
    try:
        assert review_claim(kg, claim.value, "accept").reviewed_by == "ada"
    finally:
        SENDER.reset(sender)
    [why] = explain_triple(kg.store.query, section("1"), KG.subjectTo, section("2"))
    assert (why.kind, why.agent) == ("derived", "ada")
    assert {each for source in why.sources for each in source.locations} == {CLAIMS.value, REVIEWS.value}
    assert why.content_sha256 == content_sha256(kg.store.graph(EDGES))
    prov = kg.store.graph(PROV_GRAPH)
    assert any(quad.predicate == PROV.used and quad.object == PROMOTION.iri for quad in prov)
    assert any(quad.predicate == RDF.type and quad.object == KG.CuratedGraph for quad in prov)


def test_after_reviews_of_a_code_the_whole_conforms_and_no_run_is_left_over(code: KnowledgeGraph) -> None:
    found = kg_find_related(code, **BEND, section_id="17.04.030", direction="outgoing").related
    [claim] = [each for each in found if each.reads == "mustComplyWith"]
    assert claim.asserted
    assert claim.id is not None
    assert not review_claim(code, claim.id, "reject").asserted
    again = kg_find_related(code, **BEND, section_id="17.04.030", direction="outgoing").related
    assert [each.asserted for each in again if each.id == claim.id] == [False]
    other = next(each for each in _claims(code) if each.value != claim.id)
    assert review_claim(code, other.value, "accept").asserted
    with code.store.snapshot(code.store.statistics().generation) as snapshot:
        store = Store.read_only(str(snapshot.path))
        assert [each for each in Shapes.load_dataset().validate(DataGraph.from_store(store)) if each.blocks] == []
    prov = code.store.graph(PROV_GRAPH)
    activities = {q.subject for q in prov if q.predicate == RDF.type and q.object == PROV.Activity}
    explains = {q.object for q in prov if q.predicate == PROV.wasGeneratedBy} | {
        q.subject for q in prov if q.predicate == PROV.invalidated
    }
    assert activities <= explains


def _claims(kg: KnowledgeGraph) -> Iterator[NamedNode]:
    rows = kg.store.query("SELECT ?claim WHERE { ?claim a kg:CrossReference ; rdf:object ?o } ORDER BY ?claim")
    assert isinstance(rows, Rows)
    yield from (row["claim"] for row in rows if isinstance(row["claim"], NamedNode))


# -- forged


def test_only_curated_graphs_decide(kg: KnowledgeGraph) -> None:
    [claim] = claimed(kg, "0.3")
    graph = mint("graph", "user", "forged")
    UserGraphs(kg).put(graph, [Triple(graph, KG.accepts, claim)], EVE)
    UserGraphs(kg).post(graph, [Triple(claim, KG.confidence, Literal("1.0", datatype=XSD.decimal))], EVE)
    claimed(kg, "0.31")
    assert not promoted(kg)


def test_a_claim_of_a_person_is_not_promoted_and_not_reviewed(kg: KnowledgeGraph) -> None:
    graph = mint("graph", "user", "forged")
    quads = parts(0, "1.0", graph=graph)
    UserGraphs(kg).put(graph, [quad.triple for quad in quads], EVE)
    by_post(kg, NamedNode(str(quads[0].subject).strip("<>")), "accept")
    assert not promoted(kg)
    with pytest.raises(NotFoundError, match="written by a user"):
        review_claim(kg, str(quads[0].subject), "accept")


def test_nobody_writes_an_edge_into_the_graph_of_the_promoted(kg: KnowledgeGraph) -> None:
    claimed(kg, "0.9")
    edge = Triple(section("1"), KG.incorporates, section("2"))
    with pytest.raises(ForbiddenError):
        UserGraphs(kg).post(EDGES, [edge], EVE)
    with pytest.raises(ForbiddenError):
        UserGraphs(kg).update(f"INSERT DATA {{ GRAPH {EDGES} {{ {edge} }} }}", (), (), EVE)


def test_an_edge_written_by_a_person_yields_to_the_promoted_one(kg: KnowledgeGraph) -> None:
    [claim] = claimed(kg, "0.3")
    graph = mint("graph", "user", "mine")
    UserGraphs(kg).put(graph, [Triple(section("1"), KG.subjectTo, section("2"))], EVE)
    review_claim(kg, claim.value, "accept")
    assert promoted(kg)
    assert not kg.store.graph(graph)
    both = mint("graph", "cur", "both")
    review_claim(kg, claim.value, "reject")
    [other] = claimed(kg, "0.2", "0.1")[1:]
    with pytest.raises(ConflictError):
        UserGraphs(kg).update(
            f"INSERT DATA {{ GRAPH {both} {{ {both} {KG.accepts} {other} . "
            f"{section('1')} {KG.subjectTo} {section('2')} }} }}",
            (), (), EVE,
        )  # fmt: skip
    assert not promoted(kg)


@pytest.mark.parametrize("given", ["", "no iri", "urn:nothing"])
def test_what_is_no_claim_is_refused(kg: KnowledgeGraph, given: str) -> None:
    with pytest.raises((InvalidInputError, NotFoundError), match=r"absolute IRI|kg_find_related"):
        review_claim(kg, given, "accept")
    assert not kg.store.graph(REVIEWS)


def test_a_citation_of_something_unknown_cannot_become_an_edge(kg: KnowledgeGraph) -> None:
    quads = [quad for quad in parts(0, "0.9") if quad.predicate != RDF.object]
    kg.store.commit({CLAIMS: quads})
    with pytest.raises(InvalidInputError, match="no resolved citation"):
        review_claim(kg, str(quads[0].subject), "accept")


# -- the rule itself


@pytest.mark.parametrize(
    ("confidences", "accepted", "rejected", "count"),
    [
        (["0.7"], (), (), 1),
        (["0.69"], (), (), 0),
        (["0.69", "0.9"], (), (), 1),
        (["0.1"], (0,), (), 1),
        (["0.9"], (), (0,), 0),
        (["0.9"], (0,), (0,), 0),
        (["0.9", "0.8"], (), (0,), 1),
        (["NaN"], (), (), 0),
        (["INF", "7", "high"], (), (), 0),
        (["NaN"], (0,), (), 1),
    ],
)
def test_a_claim_is_promoted_when_sure_or_accepted_and_never_when_rejected(
    confidences: list[str], accepted: tuple[int, ...], rejected: tuple[int, ...], count: int
) -> None:
    claims = [parts(number, confidence) for number, confidence in enumerate(confidences)]
    nodes = [quads[0].subject for quads in claims]
    verdicts = Verdicts({nodes[each]: {REVIEWS} for each in accepted}, {nodes[each]: {REVIEWS} for each in rejected})
    found = build_edges([quad for quads in claims for quad in quads], EDGES, verdicts, ())
    assert found == [Quad(section("1"), KG.subjectTo, section("2"), EDGES)][:count]


def test_what_a_source_asserts_is_not_promoted_again() -> None:
    asserted = [Quad(section("1"), ELI.cites, section("2"), CLAIMS)]
    assert build_edges(parts(0, "0.9", ELI.cites), EDGES, Verdicts(), asserted) == []


def test_whoever_asks_for_help_reads_that_a_rejection_is_final() -> None:
    for said in (review_claim.__doc__, claims.review.__doc__):
        assert "A rejection is final" in (said or "")
