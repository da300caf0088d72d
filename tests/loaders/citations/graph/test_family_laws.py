"""A policy document or family is linked with the law that it is, in any order of loading, and with no other law."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.store.protocol import select, term_text
from kg.vocabulary import KG, mint
from loaders.citations.graph.family_laws import FAMILY_LAWS
from loaders.sources import load
from tests.loaders.citations.written import write_code, write_policy, write_speech

TITLE = "Clear Streams Act 1974"
LAW = mint("law", "us", "act", "clear-streams-act-1974")
DOCUMENT, FAMILY = mint("document", "streams"), mint("family", "family-streams")
SPEECH = "I praise the US Clear Streams Act 1974."


def links(kg: KnowledgeGraph) -> set[tuple[str, str]]:
    rows = select(kg.store.query, "SELECT ?thing ?law WHERE { ?thing kg:isLaw ?law }")
    return {(term_text(row["thing"]), term_text(row["law"])) for row in rows}


def count_citing(kg: KnowledgeGraph, law: NamedNode) -> int:
    return len(
        select(kg.store.query, f"SELECT ?claim WHERE {{ ?claim a kg:CrossReference ; rdf:object <{law.value}> }}")
    )


def claimed(kg: KnowledgeGraph) -> set[str]:
    return {graph.value for graph in kg.store.graphs() if graph.value.startswith(FAMILY_LAWS)}


BOTH = {(DOCUMENT.value, LAW.value), (FAMILY.value, LAW.value)}


def write_act(folder: Path, slug: str = "streams", *, title: str = TITLE, iso: str = "USA") -> str:
    return write_policy(folder, slug, "A stream is clear.", iso=iso, family=title, title=title, day="1974-05-01")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_document_and_family_are_their_law_in_any_order_of_loading(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, order: tuple[int, ...]
) -> None:
    kg = open_graph()
    loads = [
        ("climate", write_act(tmp_path)),
        ("hansard", write_speech(tmp_path, "Streams", SPEECH)),
        ("zoning", write_code(tmp_path, "A ditch complies with the federal Clear Streams Act of 1974.")),
    ]
    for number in order:
        load(kg, loads[number][0], [loads[number][1]])
    assert links(kg) == BOTH


def test_policy_that_nothing_cites_makes_no_law(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    kg = open_graph()
    load(kg, "climate", [write_act(tmp_path)])
    assert (links(kg), claimed(kg)) == (set(), set())
    assert not select(kg.store.query, f"SELECT ?p WHERE {{ <{LAW.value}> ?p ?o }}")


def test_link_ends_with_the_last_text_that_cites_the_law(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    kg = open_graph()
    load(kg, "climate", [write_act(tmp_path)])
    for text, linked in (("It follows the federal Clear Streams Act of 1974.", BOTH), ("It is clear.", set())):
        load(kg, "zoning", [write_code(tmp_path, text)])
        assert (links(kg), bool(claimed(kg))) == (linked, bool(linked))
    assert not select(kg.store.query, f"SELECT ?p WHERE {{ <{LAW.value}> ?p ?o }}")


def test_link_ends_with_its_document_where_the_state_was_lost(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    kg = open_graph()
    acts = tmp_path / "acts"
    acts.mkdir()
    act = Path(write_act(acts))
    load(kg, "climate", [str(acts)])
    load(kg, "hansard", [write_speech(tmp_path, "Streams", SPEECH)])
    assert links(kg) == BOTH
    kg.settings.directory.derivations.unlink()
    act.unlink()
    write_policy(acts, "ponds", "A pond is clear.")
    load(kg, "climate", [str(acts)], prune=True)
    assert (links(kg), claimed(kg)) == (set(), set())


@pytest.mark.parametrize(
    ("title", "iso"),
    [
        ("Clear Streams Act 1974 (Amendment) Order 1976", "USA"),
        ("Clear Streams (Amendment) Act 1974", "USA"),
        ("Draft Clear Streams Act 1974", "USA"),
        ("Clear Streams Bill 1974", "USA"),
        ("Regulations under the Clear Streams Act 1974", "USA"),
        ("Clear Streams Act 1975", "USA"),
        (TITLE, "NZL"),
        (TITLE, "XAA"),
        (TITLE, ""),
    ],
)
def test_other_document_is_not_the_law(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, title: str, iso: str
) -> None:
    kg = open_graph()
    load(kg, "hansard", [write_speech(tmp_path, "Streams", SPEECH)])
    load(kg, "climate", [write_act(tmp_path, title=title, iso=iso)])
    assert LAW.value not in {law for _, law in links(kg)}


def test_law_of_two_families_is_linked_with_none_until_one_is_left(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    kg = open_graph()
    folder = tmp_path / "policies"
    folder.mkdir()
    write_act(folder)
    load(kg, "hansard", [write_speech(tmp_path, "Streams", SPEECH)])
    load(kg, "climate", [str(folder)])
    second = write_act(folder, "rivers")
    load(kg, "climate", [str(folder)])
    assert links(kg) == set()
    assert len(claimed(kg)) == 2
    Path(second).unlink()
    load(kg, "climate", [str(folder)], prune=True)
    assert links(kg) == BOTH


@pytest.mark.parametrize("cited_first", [True, False])
def test_year_of_a_date_counts_only_for_an_act_that_is_cited(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, cited_first: bool
) -> None:
    kg = open_graph()
    loads = [
        ("hansard", write_speech(tmp_path, "Streams", SPEECH)),
        ("climate", write_act(tmp_path, title="The Clear Streams Act")),
    ]
    for source, path in loads if cited_first else loads[::-1]:
        if source == "hansard" and not cited_first:
            assert (links(kg), claimed(kg)) == (set(), set())
        load(kg, source, [path])
    assert links(kg) == BOTH


def test_documents_of_one_title_and_two_years_are_no_act(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    kg = open_graph()
    load(kg, "hansard", [write_speech(tmp_path, "Streams", SPEECH)])
    shared = {"family": "Clear Streams Act", "title": "Clear Streams Act", "member_of": "family-streams"}
    one = write_policy(tmp_path, "streams", "A stream is clear.", day="1974-05-01", **shared)
    two = write_policy(tmp_path, "streams-2", "A stream is clear.", day="1999-05-01", **shared)
    load(kg, "climate", [one])
    assert links(kg) == BOTH
    load(kg, "climate", [one, two])
    assert links(kg) == set()


def test_family_contains_documents_that_are_not_its_law(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    kg = open_graph()
    shared = {"family": TITLE, "member_of": "family-streams"}
    order = "Clear Streams Act 1974 (Targets) Order 1980"
    load(
        kg,
        "climate",
        [
            write_policy(tmp_path, "streams", "A stream is clear.", title=TITLE, **shared),
            write_policy(tmp_path, "order", "It changes the Clear Streams Act 1974.", title=order, **shared),
        ],
    )
    assert links(kg) == BOTH
    assert count_citing(kg, LAW) == 1


def test_link_is_explained_by_rule_run_and_premises(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    kg = open_graph()
    load(kg, "climate", [write_act(tmp_path)])
    load(kg, "hansard", [write_speech(tmp_path, "Streams", SPEECH)])
    for subject in (DOCUMENT, FAMILY):
        [found] = explain_triple(kg.store.query, subject, KG.isLaw, LAW)
        assert found.kind == "derived"
        assert found.rule is not None
        assert found.rule.iri.endswith("/rule/promote@1")
        assert found.agent == "loaders.hansard"
        assert found.run is not None
        [claim] = found.claims
        assert claim.live
        assert claim.confidence == 0.95
        assert any(f'{subject} dcterms:title "{TITLE}"' in premise for premise in claim.premises)
        assert any(f"{LAW} kg:jurisdiction {mint('place', 'USA')}" in premise for premise in claim.premises)
        assert "graph/src/climate/streams" in str(found)


def test_document_does_not_cite_the_law_that_it_is(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    kg = open_graph()
    text = "This Act may be cited as the Clear Streams Act 1974. It follows the Tidal Waters Act 1970."
    load(kg, "climate", [write_policy(tmp_path, "streams", text, family=TITLE, title=TITLE, day="1974-05-01")])
    assert (count_citing(kg, LAW), count_citing(kg, mint("law", "us", "act", "tidal-waters-act-1970"))) == (0, 1)
