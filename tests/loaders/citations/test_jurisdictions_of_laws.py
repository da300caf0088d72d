"""A cited law has a jurisdiction where its citation names or surely implies one."""

from __future__ import annotations

import pytest
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.places import load_places_in_use
from kg.retrieval.reader import Reader
from kg.store.protocol import select
from kg.vocabulary import KG, mint
from loaders.citations.act_titles import UNSURE
from loaders.citations.graph.claims import build_law, build_law_places
from loaders.citations.laws import Context, find_laws
from loaders.citations.section_citations import find_citations
from loaders.citations.statutes import Law


def place_of(law: Law, *, is_sure: bool = True) -> list[str]:
    _, _, quads = build_law(law, is_sure=is_sure)
    found = [str(quad.object).strip("<>").rpartition("/")[2] for quad in quads if quad.predicate == KG.jurisdiction]
    assert bool(found) == bool(build_law_places(quads))
    return found


@pytest.mark.parametrize(
    ("law", "place"),
    [
        (Law("us", "usc", "42 U.S.C. § 6834"), "USA"),
        (Law("us-ut", "code", "Utah Code § 10-9a-103"), "US-UT"),
        (Law("aus", "act", "clean-rivers-act-2011"), "AUS"),
        (Law("au-vic", "act", "clean-rivers-act-2011"), "AU-VIC"),
        (Law("eu", "directive", "2009-28"), "EUR"),
    ],
)
def test_a_law_has_the_place_that_its_citation_names(law: Law, place: str) -> None:
    assert place_of(law) == [place]
    assert place_of(law, is_sure=False) == []


@pytest.mark.parametrize(
    "law",
    [
        Law("int", "treaty", "paris-agreement"),
        Law("us", "public-act", "Public Act 5 of 2003"),
        Law("xyz", "act", "x-act-2000"),
    ],
)
def test_a_law_of_an_unknown_place_has_none(law: Law) -> None:
    assert place_of(law) == []


def test_laws_of_the_fixtures_are_found_by_their_place(joined: KnowledgeGraph) -> None:
    query = "SELECT ?law WHERE { ?law a kg:ExternalLaw ; kg:jurisdiction <https://w3id.org/quadcite/id/place/USA> }"
    found = {row["law"] for row in select(joined.store.query, query)}
    assert mint("law", "us", "usc", "42 U.S.C. § 6834") in found
    unplaced = "SELECT ?law WHERE { ?law a kg:ExternalLaw ; kg:jurisdiction ?place MINUS { ?place a kg:Place } }"
    assert not list(select(joined.store.query, unplaced))


def test_a_law_that_is_only_cited_puts_no_place_in_use(joined: KnowledgeGraph) -> None:
    in_use = load_places_in_use(Reader(joined)).jurisdictions
    query = """
    SELECT DISTINCT ?place WHERE { ?law kg:lawType ?type ; kg:jurisdiction ?place
      MINUS { ?record kg:jurisdiction ?place MINUS { ?record kg:lawType ?other } } }"""
    only_cited = {row["place"] for row in select(joined.store.query, query)}
    assert NamedNode("https://w3id.org/quadcite/id/place/AU-TAS") in only_cited
    assert not {str(place).strip("<>") for place in only_cited} & in_use


def test_a_code_outside_the_united_states_cites_no_law_of_its_states() -> None:
    text = "UCA 12.3, RSA 4.5, Public Act 110 of 2006 and 42 U.S.C. 6834 apply."
    assert [each.law.citation for each in find_citations(text, "AU-TAS") if each.law] == ["42 U.S.C. § 6834"]
    assert len([each for each in find_citations(text, "UT") if each.law]) == 4


@pytest.mark.parametrize("words", ["the Clean Rivers Act 2011", "the federal Clean Rivers Act 2011"])
def test_an_act_in_an_australian_code_is_sure_only_if_its_place_is_stated(words: str) -> None:
    context = Context("aus", 2020, only_federal=True)
    [vague] = find_laws(f"This follows {words}.", context)
    assert vague.confidence <= UNSURE
    [marked] = find_laws("This follows the Clean Rivers Act 2011 (Vic).", context)
    assert marked.law is not None
    assert (marked.law.jurisdiction, marked.confidence > UNSURE) == ("au-vic", True)
