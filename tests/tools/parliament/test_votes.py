"""How people and parties voted: as the divisions list them, what is derived said so, and what is open counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.tools.parliament import votes
from kg.tools.parliament.speeches import get_speech
from kg.tools.parliament.votes import how_voted
from kg.vocabulary import KG, ORG, SCHEMA, XSD, mint
from loaders.sources import load
from tests.folders import open_graph

FIXTURES = bundle.folder("fixtures")
DIVISION = mint("division", "representatives", "2024-03-21", "1").value
OPEN = mint("division", "representatives", "2024-03-22", "1").value
OTHER_DAY = """<hansard version="2.1"><session.header><date>2024-03-22</date><chamber>House of Reps</chamber>
</session.header><chamber.xscript><debate><debateinfo><title>Kelp</title></debateinfo><division><division.header>
<para>The House divided.</para></division.header><division.data><ayes><num.votes>2</num.votes><names>
<name>Fennimore, X.</name><name>Blackwood-Pell, H.</name></names></ayes><noes><num.votes>1</num.votes><names>
<name>Drumm, P.</name></names></noes></division.data></division></debate></chamber.xscript></hansard>"""


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("votes")
    (folder / "day.xml").write_text(OTHER_DAY)
    with open_graph(folder / "data") as opened:
        load(opened, "members", [str(FIXTURES / "members")], index=False)
        load(
            opened,
            "hansard",
            [str(FIXTURES / "hansard" / "house-2024-03-21.xml"), str(folder / "day.xml")],
            index=False,
        )
        yield opened


def test_the_vote_of_a_person_is_derived_with_rule_confidence_and_source(voted):
    found = how_voted(voted, person="Tobias Fennimore", date_to="2024-03-21")
    (division,) = found.divisions
    (vote,) = division.votes
    assert (division.id, division.date, division.chamber) == (DIVISION, "2024-03-21", "House of Representatives")
    assert (vote.side, vote.recorded_name, vote.person_id) == ("no", "Fennimore, T.", mint("person", "aph-FZ1").value)
    assert (vote.derived_by, vote.confidence, vote.party) == ("voter-register-part", 0.98, "Australian Labor Party")
    assert (division.ayes, division.noes, division.names, division.open_names) == (2, 3, 5, 0)
    assert division.header.startswith("The House divided. [10.20 am]")
    assert (division.time, division.result) == ("10:20", "Question negatived.")
    assert division.question.startswith("That all words after “That” be omitted")
    text = get_speech(voted, division.question_in).full_text
    assert text[division.question_start : division.question_end] == division.question
    assert division.provenance.source.endswith("house-2024-03-21.xml")
    assert found.covered


def test_the_split_of_parties_counts_sides_and_what_is_open(voted):
    found = how_voted(voted, division=DIVISION)
    (division,) = found.divisions
    assert {each.party: each.sides for each in division.split} == {
        "Liberal Party of Australia": {"aye": 1},
        "National Party of Australia": {"aye": 1},
        "Independent": {"no": 1},
        "Australian Labor Party": {"no": 1},
        "Australian Greens": {"no": 1},
    }
    assert (division.votes, division.open_names, division.without_party) == ([], 0, 0)
    (labor,) = how_voted(voted, party="Labor", division=DIVISION).divisions
    assert [(vote.recorded_name, vote.side) for vote in labor.votes] == [("Fennimore, T.", "no")]
    assert [each.party for each in labor.split] == ["Australian Labor Party"]


def test_a_name_left_open_is_reported_where_it_may_be_the_person(voted):
    found = how_voted(voted, person="Tobias Fennimore")
    assert [division.date for division in found.divisions] == ["2024-03-21"]
    assert any("'Fennimore, X.' (1)" in note for note in found.notes)
    (division,) = how_voted(voted, party="Labor", date_from="2024-03-22").divisions
    assert (division.names, division.open_names) == (3, 1)


@pytest.mark.parametrize("name", ["X. Fennimore", "Xavier Fennimore", "Fennimore, X"])
def test_a_voter_who_never_spoke_is_found_by_the_recorded_name(voted, name):
    found = how_voted(voted, person=name)
    ((vote,),) = (division.votes for division in found.divisions)
    assert (vote.recorded_name, vote.side, vote.person_id, vote.party) == ("Fennimore, X.", "aye", None, None)
    assert any("kg load members" in note for note in found.notes)
    with pytest.raises(NotFoundError, match="kg load members"):
        how_voted(voted, person="Nobody Whatsoever")


def test_votes_on_a_bill_are_those_of_its_debates(voted):
    (bill,) = how_voted(voted, division=DIVISION).divisions[0].bills
    assert [division.id for division in how_voted(voted, bill=bill.upper()).divisions] == [DIVISION]
    with pytest.raises(NotFoundError):
        how_voted(voted, bill="Entirely Other Bill")


def test_a_period_without_divisions_is_not_covered(voted):
    found = how_voted(voted, person="Tobias Fennimore", date_from="2025-01-01")
    assert (found.covered, found.divisions) == (False, [])
    assert any(note.startswith("Not covered") for note in found.notes)
    with pytest.raises(NotFoundError):
        how_voted(voted, division="https://w3id.org/quadcite/id/division/senate/2024-03-21/1")


def test_what_people_write_about_votes_changes_no_answer(voted):
    before = how_voted(voted, division=DIVISION).model_dump(exclude={"meta"})
    graph = mint("graph", "user", "forged")
    vote, membership = NamedNode(f"{DIVISION}#vote=0"), mint("membership", "aph-FZ1", "party", "greens", "2020-01-01")
    voted.store.commit(
        {
            graph: [
                Quad(vote, KG.voter, mint("person", "aph-FZ1"), graph),
                Quad(vote, KG.voteAsRecorded, Literal("Forged, F"), graph),
                Quad(NamedNode(DIVISION), KG.result, Literal("Forged."), graph),
                Quad(membership, ORG.member, mint("person", "aph-FZ1"), graph),
                Quad(membership, ORG.organization, mint("party", "greens"), graph),
                Quad(membership, SCHEMA.startDate, Literal("2020-01-01", datatype=XSD.date), graph),
            ]
        }
    )
    assert how_voted(voted, division=DIVISION).model_dump(exclude={"meta"}) == before


def test_other_divisions_are_searched_up_to_a_limit(voted, monkeypatch):
    [note] = [each for each in how_voted(voted, person="Tobias Fennimore").notes if "'Fennimore, X.' (1)" in each]
    assert "latest" not in note
    more = mint("division", "representatives", "2024-03-21", "2").value
    monkeypatch.setattr(votes, "_SEARCHED", 1)
    others = [votes._Division(iri, "", "", "", "") for iri in (more, OPEN)]
    reader = Reader(voted)
    [limited] = votes._report_others(reader, others, 5, {"": "Fennimore, Tobias"})
    assert "Of the 5 divisions considered, 2 have" in limited
    assert "latest 1 of these" in limited
    assert not any(more in each.sparql for each in reader.ran)
