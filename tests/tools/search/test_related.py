"""Texts of other domains that share concepts and laws."""

from __future__ import annotations

from collections import Counter

import pytest

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.tools.search.related import related
from kg.vocabulary import mint

UNIT = "cpr://concept/Q1068"
RULE = mint("section", "us-ut-harrow-inlet", "2.1").value
ACT = "cpr://doc/fictional-rooftop-energy-act-2023_au01"
SPEECH = mint("speech", "f06bb241-e32e-46f5-b8ba-4b5c6d8e7001").value


def test_a_concept_is_found_in_every_domain(joined: KnowledgeGraph) -> None:
    result = related(joined, UNIT)
    assert result.totals == {"climate": 2, "parliament": 2, "zoning": 7, "files": 0}
    [topic] = result.shared
    assert (topic.kind, topic.label, topic.units) == ("concept", "accessory dwelling unit", result.totals)


@pytest.mark.parametrize(
    ("given", "domain", "others"),
    [
        (RULE, "zoning", {"climate", "parliament"}),
        (ACT, "climate", {"parliament", "zoning"}),
        (SPEECH, "parliament", {"climate", "zoning"}),
    ],
)
def test_a_text_leads_to_the_other_domains_only(
    joined: KnowledgeGraph, given: str, domain: str, others: set[str]
) -> None:
    result = related(joined, given)
    assert set(result.totals) == others | {"files"}
    assert {each.domain for each in result.evidence} - {"files"} == others
    assert all(each.provenance.source and each.provenance.sha256 for each in result.evidence)
    assert all(domain not in topic.units for topic in result.shared)


def test_evidence_shows_the_words_of_a_shared_concept(joined: KnowledgeGraph) -> None:
    result = related(joined, RULE, limit=20)
    concepts = {topic.label for topic in result.shared if topic.kind == "concept"}
    for each in result.evidence:
        for match in each.concept_matches:
            assert match.words == [each.passage.text[start:end] for start, end in match.offsets]
    assert "accessory dwelling unit" in concepts


def test_totals_do_not_depend_on_the_limit(joined: KnowledgeGraph) -> None:
    one, many = related(joined, UNIT, limit=1), related(joined, UNIT, limit=20)
    assert one.totals == many.totals
    assert [each.domain for each in one.evidence] == ["climate", "parliament", "zoning"]
    assert Counter(each.domain for each in many.evidence) == Counter(many.totals)


def test_a_place_limits_the_texts(joined: KnowledgeGraph) -> None:
    assert related(joined, UNIT, place=["Australia"]).totals == {"climate": 1, "parliament": 2, "zoning": 3, "files": 0}
    assert related(joined, UNIT, place=["USA"]).totals == {"climate": 1, "parliament": 0, "zoning": 4, "files": 0}


def test_a_text_without_topics_has_nothing_related(joined: KnowledgeGraph) -> None:
    result = related(joined, "cpr://doc/fictional-forest-stewardship-law_br01#p=1")
    assert not any(result.totals.values())
    assert result.shared == result.evidence == []
    assert result.notes


def test_an_unknown_id_is_not_found(joined: KnowledgeGraph) -> None:
    with pytest.raises(NotFoundError):
        related(joined, "cpr://doc/no-such-act")
    with pytest.raises(NotFoundError):
        related(joined, "qwxyz asdfgh")
