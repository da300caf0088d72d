"""The tool `citations` answers across domains, with the words and the source of each citation."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.tools.claims.citations import citations
from kg.tools.climate.families import policy_lineage
from kg.tools.zoning.sections import kg_find_related
from kg.vocabulary import mint
from loaders.sources import load
from tests.loaders.citations.written import write_code, write_policy, write_speech

ACT = mint("law", "us", "act", "clear-streams-act-1974").value
FAMILY = mint("family", "family-streams").value


@pytest.fixture
def joined(receiving: KnowledgeGraph, tmp_path: Path) -> KnowledgeGraph:
    """A policy, a speech and a section that cite one act; the speech also cites the policy by its title."""
    files = tmp_path / "files"
    files.mkdir()
    policy = write_policy(
        files, "streams", "It follows the Clear Streams Act of 1974.", iso="AUS", family="Quillpoint Mossgrove Accord"
    )
    act = "It follows the Clear Streams Act of 1974 (US)."
    Path(policy).write_text(Path(policy).read_text().replace("It follows the Clear Streams Act of 1974.", act))
    text = "We praise the US Clear Streams Act 1974. It inspired the Quillpoint Mossgrove Accord."
    load(receiving, "climate", [policy])
    load(receiving, "hansard", [write_speech(files, "Streams", text)])
    load(receiving, "zoning", [write_code(files, "A ditch complies with the federal Clear Streams Act of 1974.")])
    return receiving


def test_law_is_cited_by_texts_of_all_domains(joined: KnowledgeGraph) -> None:
    found = citations(joined, ACT, direction="cited_by")
    assert len(found.citations) == found.meta.total == 3
    assert {each.words for each in found.citations} == {
        "Clear Streams Act of 1974 (US)", "Clear Streams Act 1974", "Clear Streams Act of 1974",
    }  # fmt: skip
    assert all(each.asserted and each.provenance.source and each.cited == ACT for each in found.citations)
    assert citations(joined, ACT, direction="cites").citations == []


def test_speech_cites_a_law_and_a_policy(joined: KnowledgeGraph) -> None:
    [citing] = {each.citing for each in citations(joined, FAMILY, direction="cited_by").citations}
    found = citations(joined, citing.partition("#")[0], direction="cites").citations
    assert [(each.cited, each.cited_kind) for each in found] == [(ACT, "law"), (FAMILY, "policy family")]
    assert citations(joined, citing).citations == found


def test_family_and_document_cite_what_their_passages_cite(joined: KnowledgeGraph) -> None:
    for iri in (FAMILY, mint("document", "streams").value, mint("passage", "streams", "0").value):
        assert [each.cited for each in citations(joined, iri, direction="cites").citations] == [ACT]


def test_document_is_cited_by_the_title_of_its_family(joined: KnowledgeGraph) -> None:
    found = citations(joined, mint("document", "streams").value, direction="cited_by")
    assert [each.words for each in found.citations] == ["Quillpoint Mossgrove Accord"]
    assert found.notes


def test_pages_of_citations_are_the_whole(joined: KnowledgeGraph) -> None:
    whole = citations(joined, ACT).citations
    first = citations(joined, ACT, limit=2)
    assert first.next_offset == 2
    assert [*first.citations, *citations(joined, ACT, limit=2, offset=2).citations] == whole


def test_unknown_id_is_an_error(joined: KnowledgeGraph) -> None:
    with pytest.raises(NotFoundError):
        citations(joined, "cpr://doc/nothing-of-the-kind")


def test_lineage_names_the_texts_that_cite_a_family(joined: KnowledgeGraph) -> None:
    found = policy_lineage(joined, FAMILY)
    assert [each.words for each in found.cited_by] == ["Quillpoint Mossgrove Accord"]


def test_citations_of_a_section_name_the_kind_of_law(joined: KnowledgeGraph) -> None:
    [related] = kg_find_related(joined, "Quillpoint", "UT", "17.04.010").related
    assert (related.cited_iri, related.law_type) == (ACT, "publicAct")
