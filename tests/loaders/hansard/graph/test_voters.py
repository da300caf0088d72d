"""Voters: derived from a register or from speeches, with rule and confidence, the same in whatever order files come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import pytest

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.terms import bind
from kg.store.protocol import select, term_text
from kg.vocabulary import BASE, mint
from loaders.sources import load

VOTERS = "SELECT ?vote ?name ?voter ?graph { ?vote kg:voteAsRecorded ?name GRAPH ?graph { ?vote kg:voter ?voter } }"
DESCRIBED = """SELECT ?confidence ?method WHERE {
  GRAPH <https://w3id.org/quadcite/graph/prov> { $graph kg:confidence ?confidence ; kg:method ?method }
}"""
RULES = "SELECT ?rule WHERE { GRAPH <https://w3id.org/quadcite/graph/prov> { ?rule a kg:Rule } }"
REGISTER = "person_id,name,chamber,state,party,from,to\n"


def write_day(
    path: Path, day: str, ayes: Sequence[str], noes: Sequence[str] = (), talkers: Sequence[tuple[str, str]] = ()
) -> str:
    """Write a fictional sitting day of the Senate with one division, and a speech of each of `talkers`."""
    sides = "".join(
        f"<{side}><num.votes>{len(names)}</num.votes><names>{''.join(names)}</names></{side}>"
        for side, listed in (("ayes", ayes), ("noes", noes))
        for names in [[name if name.startswith("<") else f"<name>{name}</name>" for name in listed]]
    )
    speeches = "".join(
        f"<speech><talk.start><talker><name.id>{key}</name.id><name role='metadata'>{name}</name>"
        f"<name role='display'>Senator X</name></talker><para>Some words.</para></talk.start></speech>"
        for key, name in talkers
    )
    path.write_text(
        f"<hansard version='2.1'><session.header><date>{day}</date><chamber>Senate</chamber></session.header>"
        f"<chamber.xscript><debate><debateinfo><title>Kelp</title></debateinfo>{speeches}<division><division.header>"
        f"<para>The Senate divided.</para></division.header><division.data>{sides}</division.data></division></debate>"
        "</chamber.xscript></hansard>",
        encoding="utf-8",
    )
    return str(path)


def voters(kg: KnowledgeGraph) -> dict[tuple[str, str], tuple[str, str]]:
    """By day and name: the voter, and the kind of the graph that says so."""
    rows = [[term.value for term in row] for row in kg.store.query(VOTERS).rows]  # type: ignore[union-attr]
    assert len({row[0] for row in rows}) == len(rows)
    return {
        (vote.split("/")[-2], name): (voter.rpartition("/")[2], _kind_of(graph)) for vote, name, voter, graph in rows
    }


def _kind_of(graph: str) -> str:
    kind = graph.removeprefix(f"{BASE}graph/").split("/")
    return "/".join(kind[:4]) if kind[0] == "der" else kind[0]


WHOLE, PART = "der/voter/register/whole", "der/voter/register/part"
SPEAKER, LIKELY = "der/voter/speakers/whole", "der/voter/speakers/part"


def test_the_id_of_a_name_is_its_voter_as_recorded(kg: KnowledgeGraph, tmp_path: Path) -> None:
    names = ['<name id="q1">Quill, AB</name>', '<name nameid="Q2">Reed, C</name>', '<td id="c3">Sand, D</td>']
    load(kg, "hansard", [write_day(tmp_path / "a.xml", "2001-05-08", names)])
    assert voters(kg) == {("2001-05-08", "Quill, AB"): ("aph-Q1", "src"), ("2001-05-08", "Reed, C"): ("aph-Q2", "src")}


def test_voters_are_members_on_that_day_with_rule_and_confidence(kg: KnowledgeGraph, tmp_path: Path) -> None:
    day = "2001-05-08"
    names = ["Quill, AB", "Reed, C", "Sand, D", "Tarn, E", "Umber, FG", "Umber, FG", "Vale, H", "Weir, JK", "Yarrow, L"]
    (tmp_path / "register.csv").write_text(
        REGISTER
        + "Q1,Ada Beth Quill,Senate,TAS,ALP,1999-07-01,\nQ9,Abel Boris Quill,Senate,TAS,ALP,1990-07-01,1999-06-30\n"
        + "Q2,Cora Dawn Reed,Senate,TAS,ALP,1999-07-01,2001-05-08\nQ3,Dora Sand,Senate,VIC,LP,1999-07-01,\n"
        + "Q4,Dirk Ernst Sand,Senate,VIC,LP,1999-07-01,\nQ5,Tom Tarn,House,VIC,LP,1999-07-01,\n"
        + "Q6,Finn Gale Umber,Senate,SA,LP,1999-07-01,\nQ7,Hal Vale,Senate,SA,LP,2001-05-08,\n"
        + "Q8,Jo Karl Weir,Senate,SA,LP,1999-07-01,\nQ10,Jo Weir,Senate,SA,LP,1999-07-01,\n"
        + "Q11,Lea Yarrow,Senate,SA,LP,1999-07-01,\n"
    )
    load(kg, "members", [str(tmp_path / "register.csv")])
    load(kg, "hansard", [write_day(tmp_path / "a.xml", day, names)])
    found = {name: voter for (_, name), voter in voters(kg).items()}
    assert found == {
        "Quill, AB": ("aph-Q1", WHOLE),
        "Reed, C": ("aph-Q2", PART),
        "Vale, H": ("aph-Q7", PART),
        "Weir, JK": ("aph-Q8", WHOLE),
        "Yarrow, L": ("aph-Q11", PART),
    }
    graph = mint("graph", "der", "voter", "register", "whole", "au-senate", day)
    (row,) = select(kg.store.query, bind(DESCRIBED, graph=graph))
    assert (term_text(row["confidence"]), term_text(row["method"])) == ("0.99", "voter-register-whole")
    assert mint("rule", "voter-register-whole").value + "@1" in {
        term_text(each["rule"]) for each in select(kg.store.query, RULES)
    }


def test_without_a_register_voters_are_speakers_within_twelve_years(kg: KnowledgeGraph, tmp_path: Path) -> None:
    names = ["Quill, AB", "Reed, C", "Sand, D"]
    talkers = [("Q1", "Quill, Ada Beth"), ("Q2", "Reed, Cora, MP")]
    days = {"2001-05-08": (names, ()), "2013-05-08": (["Tarn, E"], talkers), "2026-05-08": (["Tarn, E"], talkers)}
    days["1980-05-08"] = (names, ())
    for day in ("2001-05-08", "1980-05-08", "2013-05-08"):
        ayes, spoke = days[day]
        load(kg, "hansard", [write_day(tmp_path / f"{day}.xml", day, ayes, (), spoke)])
    expected = {
        ("2001-05-08", "Quill, AB"): ("aph-Q1", SPEAKER),
        ("2001-05-08", "Reed, C"): ("aph-Q2", LIKELY),
    }
    assert voters(kg) == expected
    (tmp_path / "register.csv").write_text(REGISTER + "Q7,Celia Reed,Senate,TAS,ALP,1999-07-01,2004-06-30\n")
    load(kg, "members", [str(tmp_path / "register.csv")])
    assert voters(kg) == expected  # one member does not cover a day of three names
    more = "Q8,Ann Beth Quill,Senate,TAS,ALP,1999-07-01,\nQ9,Dag Sand,Senate,TAS,ALP,1999-07-01,\n"
    (tmp_path / "more.csv").write_text(REGISTER + more)
    load(kg, "members", [str(tmp_path / "more.csv")])
    assert voters(kg) == {
        ("2001-05-08", "Quill, AB"): ("aph-Q8", WHOLE),
        ("2001-05-08", "Reed, C"): ("aph-Q7", PART),
        ("2001-05-08", "Sand, D"): ("aph-Q9", PART),
    }
    (tmp_path / "2013-05-08.xml").unlink()
    load(kg, "hansard", [str(tmp_path / "*.xml")], prune=True)
    (tmp_path / "more.csv").write_text(REGISTER)
    load(kg, "members", [str(tmp_path / "more.csv")], prune=True)
    assert voters(kg) == {}


def test_the_order_of_loads_does_not_change_voters(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    talkers = [("Q5", "Tarn, Edda"), ("Q2", "REED, Cora")]
    places = [
        write_day(tmp_path / "a.xml", "2001-05-08", ["Quill, AB", "Reed, C"], ["Sand, D"]),
        write_day(tmp_path / "b.xml", "2003-05-08", ["Reed, C"], ["Tarn, E"], talkers),
        str(tmp_path / "register.csv"),
    ]
    people = ("Q1,Ada Beth Quill", "Q2,Cora Dawn Reed", "Q3,Dag Sand")
    lines = [f"{person},Senate,TAS,ALP,1999-07-01,2002-06-30\n" for person in people]
    (tmp_path / "register.csv").write_text(REGISTER + "".join(lines))
    found = []
    for number, order in enumerate(permutations(places)):
        kg = open_graph(f"order{number}")
        for place in order:
            load(kg, "members" if place.endswith(".csv") else "hansard", [place], index=False)
        found.append(voters(kg))
    assert all(each == found[0] for each in found)
    assert found[0]["2001-05-08", "Quill, AB"] == ("aph-Q1", WHOLE)
    assert found[0]["2003-05-08", "Tarn, E"] == ("aph-Q5", LIKELY)


@pytest.mark.long
def test_most_votes_of_a_real_day_have_a_voter(kg: KnowledgeGraph, shared: Path) -> None:
    hansard = shared / "data" / "hansard"
    load(kg, "hansard", [str(hansard / "1990.xml")], index=False, gate=False)
    load(kg, "members", [str(hansard / "members" / name) for name in ("people.csv", "senators.csv")], gate=False)
    assert len(voters(kg)) >= 73  # of 75; of 2,892 votes in ten days 0.986


def test_the_register_that_ships_names_the_voters_of_its_day(kg: KnowledgeGraph) -> None:
    fixtures = bundle.folder("fixtures")
    load(kg, "members", [str(fixtures / "members")])
    load(kg, "hansard", [str(fixtures / "hansard" / "house-2024-03-21.xml")])
    found = {name: voter for (_, name), (voter, _) in voters(kg).items()}
    assert found.keys() == {"Ashgrove, C.", "Varley, R.", "Drumm, P.", "Fennimore, T.", "Quill, M."}
    assert found["Varley, R."].startswith("register-rosamund-varley-")


def test_a_term_known_to_the_year_gives_no_voter_in_the_year_of_a_change(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text(
        REGISTER + "Q1,Ada Quill,Senate,TAS,ALP,1999,2003\nQ2,Bo Reed,Senate,TAS,ALP,1990-07-01,\n"
        "Q3,Cy Sand,Senate,TAS,ALP,1990-07-01,\nQ4,Cleo Sand,Senate,TAS,ALP,2003,\n"
    )
    load(kg, "members", [str(tmp_path / "register.csv")])
    for day in ("2001-05-08", "2003-05-08"):
        load(kg, "hansard", [write_day(tmp_path / f"{day}.xml", day, ["Quill, A", "Reed, B", "Sand, C"])])
    found = {key: voter for key, (voter, _) in voters(kg).items()}
    assert found == {
        ("2001-05-08", "Quill, A"): "aph-Q1",
        ("2001-05-08", "Reed, B"): "aph-Q2",
        ("2001-05-08", "Sand, C"): "aph-Q3",
        ("2003-05-08", "Reed, B"): "aph-Q2",
    }, "in 2003 Quill may have left, and Sand may be either"
