"""The roll of speeches leaves out none that the filters let through, and no answer depends on how it was come by."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, Quad

from kg.retrieval.hybrid_search import DOCUMENTS_IN_SCOPE
from kg.retrieval.reader import Reader
from kg.store.protocol import term_text
from kg.tools.parliament.search import search_speeches
from kg.tools.parliament.speech_filters import SpeechFilters, list_known_speeches, speech_scope
from kg.vocabulary import DCTERMS, KG, RDF, XSD, mint
from loaders.hansard.parties import CHAMBERS
from tests.examples import dear
from tests.tools.made_up_speeches import Speeches, day, open_speeches, table

QUERY = "solar ferry harbour tides levy"
USER = mint("graph", "user", "remarks")
ODD = [Quad(mint("speech", f"odd-{number}"), RDF.type, KG.Speech, USER) for number in range(3)]
ODD += [
    Quad(mint("speech", "odd-0"), DCTERMS.date, Literal("2023-06-30Z", datatype=XSD.date), USER),
    Quad(mint("speech", "odd-1"), DCTERMS.date, Literal("in June"), USER),
    Quad(mint("speech", "odd-1"), KG.chamber, mint("chamber", "au-senate"), USER),
    Quad(mint("speech", "odd-2"), KG.party, mint("party", "greens"), USER),
    Quad(mint("speech", "fictional-0003"), KG.party, mint("party", "labor"), USER),
    Quad(mint("speech", "fictional-0004"), DCTERMS.date, Literal("2024-07-01", datatype=XSD.date), USER),
]
SAID = [*table(300, seed=4), *day()]
SPEECHES = open_speeches(SAID, ODD)

days = st.dates(date(2022, 12, 1), date(2025, 1, 31))


@st.composite
def broad(draw: st.DrawFn) -> SpeechFilters:
    """Draw filters by chamber, party and period, any of which may be absent."""
    first, last = draw(st.none() | days), draw(st.none() | days)
    if first and draw(st.booleans()):
        last = first + timedelta(days=draw(st.integers(0, 70)))
    if first and last and first > last:
        first, last = last, first
    return SpeechFilters(
        party=draw(st.none() | st.sampled_from(["greens", "labor", "liberal", "lnp", "Tidal Reform"])),
        chamber=draw(st.none() | st.sampled_from(list(CHAMBERS.values()))),
        date_from=first and first.isoformat(),
        date_to=last and last.isoformat(),
    )


def selected(reader: Reader, query: str) -> set[str]:
    return {term_text(row["document"]) for row in reader.rows("speeches", query)}


@settings(max_examples=dear(80))
@given(broad())
def test_the_roll_has_every_speech_that_the_filters_leave(filters: SpeechFilters):
    reader = Reader(SPEECHES.kg)
    scope, _ = speech_scope(reader, filters)
    known, flat = list_known_speeches(reader, filters, scope)
    allowed = selected(reader, scope.compile(DOCUMENTS_IN_SCOPE, most=10_000))
    assert selected(reader, flat.compile(DOCUMENTS_IN_SCOPE, most=10_000)) == allowed
    if known is not None:
        assert allowed <= set(known.documents)
        assert set(known.documents) - allowed <= {quad.subject.value for quad in ODD}
        assert len(set(known.documents)) == len(known.documents)
        assert 0 < known.share <= 1


@pytest.mark.long
@pytest.mark.parametrize("few", [0, 100, 10_000])
@pytest.mark.parametrize("many", [0, 10_000])
@pytest.mark.parametrize(
    "filters",
    [
        {"chamber": "Senate"},
        {"chamber": "House", "date_from": "2023-05-01", "date_to": "2024-02-01"},
        {"date_from": "2024-05-01", "date_to": "2024-05-20"},
        {"date_to": "2023-02-10", "chamber": "Senate"},
        {"party": "Greens", "chamber": "House", "date_from": "2023-11-01"},
        {"party": "Labor", "chamber": "Senate"},
        {"date_from": "2030-01-01"},
    ],
    ids=str,
)
def test_a_filtered_search_finds_what_filtering_all_speeches_finds(few, many, filters, monkeypatch):
    monkeypatch.setattr("kg.retrieval.hybrid_search.FEW_DOCUMENTS", few)
    monkeypatch.setattr("kg.retrieval.hybrid_search.MANY_DOCUMENTS", many)
    party = filters.get("party", "").casefold()
    chamber = {"Senate": "au-senate", "House": "au-representatives"}.get(filters.get("chamber"))
    first, last = filters.get("date_from", "0000"), filters.get("date_to", "9999")
    expected = {
        said.speech_id
        for said in SAID
        if chamber in (None, said.chamber)
        and party in ("", said.party)
        and (first <= said.date <= last or (said.speech_id == "fictional-0004" and first <= "2024-07-01" <= last))
    }
    if party == "labor":
        added = next(said for said in SAID if said.speech_id == "fictional-0003")
        expected |= {added.speech_id} if chamber == added.chamber else set()
    answer = search_speeches(SPEECHES.kg, QUERY, top_k=50, **filters)
    ids = [result.speech_id for result in answer.results]
    assert set(ids) <= expected
    assert len(set(ids)) == len(ids) == min(50, len(expected))
    assert answer.meta.sparql


def test_a_speech_counts_from_the_commit_that_brings_it():
    speeches: Speeches = open_speeches(table(20))
    late = mint("speech", "late")
    reader = Reader(speeches.kg)
    filters = SpeechFilters(date_from="2029-01-01")

    def known() -> list[str]:
        found, _ = list_known_speeches(reader, filters, speech_scope(reader, filters)[0])
        return [] if found is None else list(found.documents)

    assert known() == []
    said = f'{late} a kg:Speech ; dcterms:date "2029-05-05"^^xsd:date'
    speeches.kg.store.update(
        f"INSERT DATA {{ GRAPH {mint('graph', 'src', 'hansard', 'speech', 'late')} {{ {said} }} }}"
    )
    assert known() == [late.value]
