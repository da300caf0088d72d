"""Tools answer over a policy document, its family and the law that they are, however a text cites them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import select, term_text
from kg.tools.claims.citations import citations
from kg.tools.claims.review import list_claims, review_claim
from kg.tools.climate.families import policy_lineage
from kg.tools.search.passages import fetch
from kg.tools.search.related import related
from kg.vocabulary import mint
from loaders.sources import load
from tests.loaders.citations.written import write_code, write_policy, write_speech

TITLE = "Clear Streams Act 1974"
LAW = mint("law", "us", "act", "clear-streams-act-1974").value
DOCUMENT, FAMILY = mint("document", "streams").value, mint("family", "family-streams").value


def write_act(folder: Path, slug: str = "streams", *, title: str = TITLE) -> str:
    text = "A stream is clear. It follows the Tidal Waters Act 1970."
    return write_policy(folder, slug, text, family=title, title=title, day="1974-05-01")


@pytest.fixture
def loaded(receiving: KnowledgeGraph, tmp_path: Path) -> KnowledgeGraph:
    """An act, a speech and a section that cite it by its title and year."""
    files = tmp_path / "files"
    files.mkdir()
    load(receiving, "hansard", [write_speech(files, "Streams", "I praise the US Clear Streams Act 1974.")])
    load(receiving, "climate", [write_act(files)])
    load(receiving, "zoning", [write_code(files, "A ditch complies with the federal Clear Streams Act of 1974.")])
    return receiving


@pytest.mark.parametrize("iri", [DOCUMENT, FAMILY, LAW, TITLE])
def test_texts_that_cite_a_law_are_found_by_each_of_its_ids(loaded: KnowledgeGraph, iri: str) -> None:
    found = citations(loaded, iri, direction="cited_by")
    assert [each.cited for each in found.citations] == [LAW] * 2
    assert found.meta is not None
    assert found.meta.total == 2


@pytest.mark.parametrize("iri", [DOCUMENT, FAMILY, LAW])
def test_a_law_cites_what_its_text_cites(loaded: KnowledgeGraph, iri: str) -> None:
    found = citations(loaded, iri, direction="cites").citations
    assert [each.cited_name for each in found] == ["Tidal Waters Act 1970"]


def test_history_of_a_family_has_the_texts_that_cite_its_law(loaded: KnowledgeGraph) -> None:
    cited_by = policy_lineage(loaded, FAMILY).cited_by
    assert {each.words for each in cited_by} == {"Clear Streams Act 1974", "Clear Streams Act of 1974"}


def test_related_joins_a_document_with_the_texts_that_cite_its_law(loaded: KnowledgeGraph) -> None:
    assert related(loaded, DOCUMENT).totals == {"files": 0, "parliament": 1, "zoning": 1}
    assert related(loaded, LAW).totals == {"climate": 1, "files": 0, "parliament": 1, "zoning": 1}
    assert related(loaded, LAW, place=["USA"]).totals == {"climate": 1, "files": 0, "parliament": 0, "zoning": 1}
    speech = next(each.citing for each in citations(loaded, LAW).citations if "speech" in each.citing)
    assert related(loaded, speech).totals["climate"] == 1
    [shared] = related(loaded, FAMILY).shared
    assert (shared.id, shared.units["parliament"]) == (LAW, 1)


def test_a_law_is_read_as_its_document(loaded: KnowledgeGraph) -> None:
    assert [each.document.slug for each in fetch(loaded, ids=[LAW]).evidence] == ["streams"]
    assert fetch(loaded, id=TITLE).text


def test_words_that_cite_a_law_and_its_family_count_once(receiving: KnowledgeGraph, tmp_path: Path) -> None:
    title = "Quillpoint Mossgrove Streams Act 1974"
    files = tmp_path / "files"
    files.mkdir()
    load(receiving, "climate", [write_act(files, title=title)])
    text = f"I praise section 5 of the US {title}. The {title.rpartition(' ')[0]} is good."
    load(receiving, "hansard", [write_speech(files, "Streams", text)])
    graph = receiving.store.query
    cited = select(graph, "SELECT ?cited WHERE { ?claim rdf:object ?cited ; kg:rawCitation ?words }")
    assert len({term_text(row["cited"]) for row in cited}) == 3  # with the act that the text of the document cites
    [found] = citations(receiving, FAMILY, direction="cited_by").citations
    assert found.cited_kind == "law"


def test_person_may_accept_one_of_two_families_and_reject_a_link(receiving: KnowledgeGraph, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    load(receiving, "climate", [write_act(files), write_act(files, "rivers")])
    load(receiving, "hansard", [write_speech(files, "Streams", "I praise the US Clear Streams Act 1974.")])
    pending = list_claims(receiving, kind="alignment", max_confidence=0.69).claims
    assert {each.statement for each in pending} == {f"{TITLE} isLaw {TITLE}"}
    claim = next(each.id for each in pending if each.section == DOCUMENT)
    assert citations(receiving, DOCUMENT, direction="cited_by").citations == []
    assert review_claim(receiving, claim, "accept").asserted
    assert not review_claim(receiving, claim, "reject").asserted
