"""Who speaks how often: counts that a brute force gives too, and totals that add up."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from pyoxigraph import Literal, Quad

from kg.errors import InvalidInputError, NotFoundError
from kg.tools.parliament.speakers import list_speakers, speech_stats
from kg.tools.parliament.speeches import get_speech
from kg.tools.registry import TOOLS
from kg.vocabulary import DCTERMS, KG, RDF, SKOS, mint, mint_span
from tests.tools.made_up_speeches import PARTIES, PEOPLE, Speeches, day, open_speeches, table

STATS = next(tool for tool in TOOLS if tool.name == "speech_stats")


@pytest.fixture(scope="module")
def speeches() -> Speeches:
    return open_speeches([*table(), *day()])


def words_of(said):
    return len(said.text.split())


def test_everyone_who_speaks_is_listed_once_with_what_they_said(speeches):
    listed = list_speakers(speeches.kg, limit=200)
    expected = Counter(said.person or said.recorded for said in speeches.said)
    given = {(one.id or one.name).rpartition("/")[2]: one for one in listed.speakers}
    assert {key: one.speeches for key, one in given.items()} == expected
    assert listed.meta.total == len(expected)
    for key, one in given.items():
        own = [said for said in speeches.said if key in (said.person, said.recorded)]
        assert one.words == sum(map(words_of, own))
        assert (one.first, one.last) == (min(said.date for said in own), max(said.date for said in own))
        names = {PARTIES[said.party][0] if said.party else said.party_recorded for said in own}
        assert one.parties == sorted(names - {None})
        assert set(one.recorded_names) == {said.recorded for said in own}
    assert [one.speeches for one in listed.speakers] == sorted(expected.values(), reverse=True)


def test_a_person_without_a_known_name_is_called_as_recorded(monkeypatch):
    """Loaders store the id of a person as the name until a sitting names the person."""
    monkeypatch.setitem(PEOPLE, "aph-E5V", ("E5V", ()))
    said = next(said for said in table() if said.person)
    opened = open_speeches([replace(said, person="aph-E5V", recorded="The PRESIDENT")])
    assert [one.name for one in list_speakers(opened.kg).speakers] == ["The PRESIDENT"]
    assert get_speech(opened.kg, said.speech_id).speaker == "The PRESIDENT"


@pytest.mark.parametrize(
    ("filters", "holds"),
    [
        ({"party": "ALP"}, lambda said: said.party == "labor"),
        ({"chamber": "Senate"}, lambda said: said.chamber == "au-senate"),
        ({"date_from": "2024-01-01", "date_to": "2024-06-30"}, lambda said: "2024-01-01" <= said.date <= "2024-06-30"),
        ({"query": "quill"}, lambda said: said.person in ("aph-AAA", "aph-BBB")),
        ({"query": "jan"}, lambda said: said.person == "aph-AAA"),
        ({"query": "fane", "chamber": "Senate"}, lambda said: said.person == "name-mara-di-fane-0a1b2c3d"),
    ],
)
def test_filters_of_speakers_all_hold(speeches, filters, holds):
    expected = Counter(said.person or said.recorded for said in speeches.said if holds(said))
    listed = list_speakers(speeches.kg, **filters).speakers
    assert {(one.id or one.name).rpartition("/")[2]: one.speeches for one in listed} == expected


def test_pages_of_speakers_fit_together(speeches):
    names, offset = [], 0
    while offset is not None:
        page = list_speakers(speeches.kg, limit=2, offset=offset)
        names += [one.name for one in page.speakers]
        offset = page.next_offset
    assert names == [one.name for one in list_speakers(speeches.kg).speakers]


def test_a_name_that_nobody_has_names_the_nearest(speeches):
    with pytest.raises(NotFoundError, match="Similar: 'Otto Brandl'"):
        list_speakers(speeches.kg, query="Otto Brandel")


KEYS = {
    "speaker": lambda said: [said.person or said.recorded],
    "party": lambda said: [said.party or said.party_recorded],
    "chamber": lambda said: [said.chamber],
    "year": lambda said: [said.date[:4]],
    "month": lambda said: [said.date[:7]],
    "topic": lambda said: said.topics or [None],
}
FILTERS = [
    ({}, lambda said: True),
    ({"party": "Greens"}, lambda said: said.party == "greens"),
    (
        {"chamber": "Senate", "date_from": "2024-01-01"},
        lambda said: said.chamber == "au-senate" and said.date >= "2024",
    ),
    ({"topics": ["water"]}, lambda said: "water" in said.topics),
    ({"speaker": "O'Tarn", "state": "QLD"}, lambda said: said.person == "aph-CCC"),
]


@pytest.mark.parametrize(("filters", "holds"), FILTERS, ids=lambda value: str(value) if isinstance(value, dict) else "")
@pytest.mark.parametrize("group_by", KEYS)
def test_counts_are_those_of_a_brute_force_and_totals_add_up(speeches, group_by, filters, holds):
    expected = defaultdict(lambda: [0, 0, 0])
    counted = [said for said in speeches.said if holds(said)]
    for said in counted:
        for key in KEYS[group_by](said):
            thrown = sum(kind == "interjection" for kind, _, _ in said.utterances)
            for place, number in enumerate((1, words_of(said), thrown)):
                expected[key][place] += number
    stats = speech_stats(speeches.kg, group_by, limit=200, **filters)
    given = {
        each.key and each.key.rpartition("/")[2]: [each.speeches, each.words, each.interjections]
        for each in stats.groups
        if each.speeches  # other groups have interjections in speeches of others only
    }
    assert given == dict(expected)
    if group_by != "topic":
        assert stats.totals.interjections_made == sum(each.interjections_made for each in stats.groups)
    assert (stats.totals.speeches, stats.totals.words) == (len(counted), sum(map(words_of, counted)))
    if group_by != "topic":
        assert stats.totals.speeches == sum(each.speeches for each in stats.groups)
        assert stats.totals.words == sum(each.words for each in stats.groups)
        assert stats.totals.interjections == sum(each.interjections for each in stats.groups)


def test_groups_have_names_and_an_order(speeches):
    parties = speech_stats(speeches.kg, "party").groups
    assert "Australian Greens" in [each.label for each in parties]
    assert "Tidal Reform" in [each.label for each in parties]
    assert [each.label for each in parties if each.key is None] == ["not recorded"]
    assert [each.speeches for each in parties] == sorted((each.speeches for each in parties), reverse=True)
    months = [each.key for each in speech_stats(speeches.kg, "month", limit=200).groups]
    assert months == sorted(months)
    page = speech_stats(speeches.kg, "month", limit=3, offset=2)
    assert [each.key for each in page.groups] == months[2:5]
    assert page.totals.speeches == len(speeches.said)
    assert page.next_offset == 5


def test_topics_of_speeches_without_tags_are_the_concepts_they_mention():
    said = table(20)
    concept, view = mint("concept", "Q77"), mint("graph", "der", "skos", "climate", "Q77")
    more = [Quad(concept, RDF.type, SKOS.Concept, view), Quad(concept, SKOS.prefLabel, Literal("seawater"), view)]
    for each in said:
        for span in each.chunks():
            graph = mint("graph", "ext", "mentions", "hansard", each.speech_id)
            more.append(Quad(mint_span(each.iri, *span), KG.mentions, concept, graph))
    law, passage = mint("document", "sea-act"), mint("passage", "sea-act", "0")
    graph = mint("graph", "src", "climate", "sea-act")
    more += [Quad(passage, DCTERMS.isPartOf, law, graph), Quad(passage, KG.mentions, concept, graph)]
    kg = open_speeches(said, more).kg
    untagged = sum(not each.topics for each in said)
    assert [each.speeches for each in speech_stats(kg, "topic").groups if each.label == "seawater"] == [untagged]
    assert speech_stats(kg, "speaker", topics=["seawater"]).totals.speeches == untagged


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"group_by": "colour"}, "group_by"), ({"limit": 0}, "limit"), ({"date_from": "yesterday"}, "not a day")],
)
def test_what_cannot_be_counted_is_an_error(speeches, arguments, says):
    with pytest.raises(InvalidInputError, match=says):
        STATS.call(speeches.kg, arguments)


def test_nothing_loaded_is_nothing_counted():
    empty = open_speeches([]).kg
    assert speech_stats(empty).groups == list_speakers(empty).speakers == []
    assert speech_stats(empty).totals.speeches == 0


def test_a_party_has_as_many_speeches_alone_as_among_the_others(parliament):
    """Interjections have the party of their speakers, and are not speeches."""
    groups = [group for group in speech_stats(parliament, group_by="party").groups if group.key]
    assert {group.label for group in groups} >= {"Liberal Party of Australia", "Australian Labor Party"}
    for group in groups:
        for by in ("year", "chamber", "speaker"):
            alone = speech_stats(parliament, group_by=by, party=group.label)
            assert (alone.totals.speeches, alone.totals.words) == (group.speeches, group.words), (group.label, by)
        spoke = list_speakers(parliament, party=group.label, limit=200).speakers
        assert sum(each.speeches for each in spoke) == group.speeches
