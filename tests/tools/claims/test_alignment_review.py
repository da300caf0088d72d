"""Alignments that wait for a person are listed, and reviewed by the tool and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode
from typer.testing import CliRunner

from kg.cli.main import app
from kg.errors import ModelError
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import Rows, term_text
from kg.tools import commands
from kg.tools.claims.review import list_claims, review_claim
from kg.tools.schema.examples import load_examples
from kg.vocabulary import KG, SKOS, XSD, mint
from loaders.citations.graph.claims import build_alignment
from tests.folders import open_graph
from tests.loaders.mentions.test_alignments import put, put_concept, put_use

GRAPH = mint("graph", "ext", "proposal", "municipality", "us-ut-nowhere")


def propose(kg: KnowledgeGraph, use: NamedNode, concept: NamedNode, similarity: str | None) -> str:
    """Store an alignment of a use: a proposal with this similarity, else one by an ambiguous name."""
    graph = NamedNode(f"{GRAPH.value}/{similarity}")
    claim, quads = build_alignment(graph, (use, SKOS.closeMatch, concept), "0.5", "made up")
    if similarity is not None:
        said = (claim, KG.similarity, Literal(similarity, datatype=XSD.decimal)), (claim, KG.model, Literal("none"))
        put(kg, graph, *((quad.subject, quad.predicate, quad.object) for quad in quads), *said)
    else:
        put(kg, graph, *((quad.subject, quad.predicate, quad.object) for quad in quads))
    return claim.value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def kg(folder: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(folder) as opened:
        concept = put_concept(opened, "Q1", (SKOS.prefLabel, "pier", "en"))
        for name, similarity in (("Jetty", "0.75"), ("Wharf", "0.91"), ("Dock", None)):
            propose(opened, put_use(opened, name), concept, similarity)
        yield opened


def test_pending_alignments_are_listed_the_most_similar_first(kg: KnowledgeGraph) -> None:
    listed = list_claims(kg, kind="alignment")
    assert [(each.statement, each.similarity) for each in listed.claims] == [
        ("Dock closeMatch pier", None), ("Wharf closeMatch pier", 0.91), ("Jetty closeMatch pier", 0.75),
    ]  # fmt: skip
    assert (listed.total, listed.claims[1].model, listed.claims[1].reported) == (3, "none", False)
    page = list_claims(kg, limit=1, offset=1)
    assert ([each.statement for each in page.claims], page.total) == (["Wharf closeMatch pier"], 3)


def test_reviewed_alignment_is_not_pending_and_a_rejection_is_final(kg: KnowledgeGraph) -> None:
    claims = {each.statement.split()[0]: each.id for each in list_claims(kg).claims}
    assert review_claim(kg, claims["Wharf"], "accept").asserted
    assert not review_claim(kg, claims["Jetty"], "reject").asserted
    assert [each.statement.split()[0] for each in list_claims(kg).claims] == ["Dock"]
    assert [each.id for each in list_claims(kg, status="rejected").claims] == [claims["Jetty"]]
    assert [(each.id, each.reported) for each in list_claims(kg, status="accepted").claims] == [(claims["Wharf"], True)]
    again = review_claim(kg, claims["Jetty"], "accept")
    assert not again.asserted
    assert again.notes


def test_example_query_lists_the_alignments_to_review(kg: KnowledgeGraph) -> None:
    [query] = [each.query for each in load_examples() if each.iri.endswith("/alignments-to-review")]
    claims = [each.id for each in list_claims(kg).claims]
    assert review_claim(kg, claims[-1], "reject").claim == claims[-1]
    rows = kg.query(query, all_graphs=True).result
    assert isinstance(rows, Rows)
    assert {term_text(row["claim"]) for row in rows} == set(claims[:-1])


def test_names_that_users_write_are_not_shown(kg: KnowledgeGraph) -> None:
    use = mint("landuse", "us-ut-nowhere", "wharf")
    put(kg, mint("graph", "user", "mine"), (use, SKOS.prefLabel, Literal("A forged name")))
    assert not any("A forged name" in each.statement for each in list_claims(kg).claims)


def test_command_lists_and_reviews(kg: KnowledgeGraph, folder: Path) -> None:
    kg.close()
    runner = CliRunner()
    done = runner.invoke(app, ["review", "--json", "--data-dir", str(folder)])
    assert done.exit_code == 0, done.output
    listed = json.loads(done.stdout)
    assert listed["total"] == 3
    reviewed = runner.invoke(app, ["review", listed["claims"][1]["id"], "accept", "--data-dir", str(folder)])
    assert (reviewed.exit_code, reviewed.stdout.strip().endswith("is an edge")) == (0, True)
    shown = runner.invoke(app, ["review", "--limit", "1", "--data-dir", str(folder)])
    assert (shown.exit_code, "Dock" in shown.stdout, "Wharf" in shown.stdout) == (0, True, False)
    half = runner.invoke(app, ["review", listed["claims"][0]["id"], "--data-dir", str(folder)])
    assert half.exit_code == 2


def test_proposals_without_a_model_are_refused(
    kg: KnowledgeGraph, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError):
        commands.align(kg)
    kg.close()
    monkeypatch.setattr("kg.cli.connection.settings_for", lambda data_dir: kg.settings)
    done = CliRunner().invoke(app, ["align", "--data-dir", str(folder)])
    assert done.exit_code == 1
    assert "kg models pull" in done.stderr
