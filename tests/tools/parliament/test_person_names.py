"""A name is matched however it is written, and never to somebody else."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal

from kg.errors import NotFoundError
from kg.retrieval.choices import Choice, interpretation_note
from kg.tools.parliament.person_names import find_parties, find_people
from kg.vocabulary import mint

PEOPLE = [
    Choice(mint("person", key), names[0], names)
    for key, *rest in (
        ("aph-AAA", "Quill, Jane, MP", "Ms QUILL"),
        ("aph-BBB", "Quill, Harold, MP", "Mr QUILL"),
        ("aph-CCC", "O'Tarn, Sean", "Senator O'TARN"),
        ("aph-DDD", "Coulter Sen J.R."),
        ("name-mara-di-fane-0a1b2c3d", "Mara Di Fane", "Senator DI FANE"),
        ("aph-EEE", "Jane Harold", "Ms HAROLD"),
    )
    for names in [tuple(rest)]
] + [Choice(Literal("The SPEAKER"), "The SPEAKER", ("The SPEAKER",))]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Quill, Jane, MP", ["aph-AAA"]),
        ("Jane Quill", ["aph-AAA"]),
        ("jane  QUILL mp", ["aph-AAA"]),
        ("Ms Jane Quill MP", ["aph-AAA"]),
        ("J. Quill", ["aph-AAA"]),
        ("Quill", ["aph-AAA", "aph-BBB"]),
        ("Mr Quill", ["aph-AAA", "aph-BBB"]),
        ("O’Tarn", ["aph-CCC"]),
        ("otarn", ["aph-CCC"]),
        ("Senator Sean O'Tarn", ["aph-CCC"]),
        ("Coulter", ["aph-DDD"]),
        ("John Coulter", ["aph-DDD"]),
        ("di fane", ["name-mara-di-fane-0a1b2c3d"]),
        ("aph-bbb", ["aph-BBB"]),
        ("https://w3id.org/quadcite/id/person/aph-BBB", ["aph-BBB"]),
        ("Harold", ["aph-EEE"]),
        ("the speaker", ["The SPEAKER"]),
    ],
)
def test_a_person_is_found_by_any_form_of_the_name(text, keys):
    found = find_people("speaker", text, PEOPLE)
    assert [choice.term.value.rpartition("/")[2] for choice in found] == keys


@pytest.mark.parametrize("text", ["Jane", "Peter Quill", "Quilt", "K. Quill", "Senator", "MP"])
def test_what_is_not_said_of_somebody_finds_nobody(text):
    with pytest.raises(NotFoundError, match="speaker: No speech has"):
        find_people("speaker", text, PEOPLE)


PARTIES = [
    Choice(mint("party", key), names[0], names)
    for key, *rest in (
        ("greens", "Australian Greens", "Greens", "AG"),
        ("labor", "Australian Labor Party", "ALP"),
        ("liberal", "Liberal Party of Australia", "LP"),
        ("lnp", "Liberal National Party of Queensland", "LNP"),
        ("nationals", "National Party of Australia", "NP", "NATS"),
    )
    for names in [tuple(rest)]
]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("greens", ["greens"]),
        ("The Greens", ["greens"]),
        ("Labor", ["labor"]),
        ("alp", ["labor"]),
        ("Liberal", ["liberal"]),
        ("Liberal Party", ["liberal"]),
        ("national", ["nationals"]),
        ("liberal national", ["lnp"]),
        ("Queensland", ["lnp"]),
    ],
)
def test_a_party_is_found_by_name_abbreviation_or_what_tells_it_apart(text, keys):
    found = find_parties("party", text, PARTIES)
    assert [choice.term.value.rpartition("/")[2] for choice in found] == keys


@pytest.mark.parametrize("text", ["Party", "Labour Union", "X"])
def test_a_party_that_there_is_not_is_not_found(text):
    with pytest.raises(NotFoundError, match="party: No speech has"):
        find_parties("party", text, PARTIES)


def test_only_what_was_not_given_exactly_is_told():
    assert interpretation_note("party", "Greens", PARTIES[:1]) is None
    assert interpretation_note("party", PARTIES[0].term.value, PARTIES[:1]) is None
    assert (
        interpretation_note("party", "grEENS", PARTIES[:1])
        == "party: 'grEENS' was interpreted as 'Australian Greens' ('greens')."
    )
    assert interpretation_note("speaker", "Quill", PEOPLE[:2]) == (
        "speaker: 'Quill' was interpreted as 'Quill, Jane, MP' (aph-AAA), 'Quill, Harold, MP' (aph-BBB)."
    )
