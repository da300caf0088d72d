"""Seats: the state of a member's speech follows from the electorate and the year, in a derived graph, or is absent."""

from __future__ import annotations

import csv
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_sync import DERIVED_PARTY, DERIVED_STATE, repair_index
from kg.settings import Settings
from kg.vocabulary import DERIVED, mint
from loaders.hansard.electorates import find_state
from loaders.hansard.graph.seats import SEAT
from loaders.sources import load

COLUMNS = (
    "speech_id",
    "date",
    "chamber",
    "speaker",
    "party",
    "electorate",
    "state",
    "text",
    "title",
    "hansard_reference",
)
SEATS = """SELECT ?speech ?state ?graph { GRAPH ?graph { ?speech kg:state ?state } }"""


class Said(NamedTuple):
    """A fictional speech of a fictional person for a division that exists or existed."""

    id: str
    day: str
    person: str
    electorate: str
    state: str = ""


def write(path: Path, said: Sequence[Said]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        for each in said:
            words = "Some fictional words.", "On words", "Made up"
            lines.writerow([each.id, each.day, "House", each.person, "ALP", each.electorate, each.state, *words])
    return str(path)


def states(kg: KnowledgeGraph) -> dict[str, tuple[str, str]]:
    """The state of each speech, and whether its graph is of the source or derived."""
    rows = kg.store.query(SEATS).rows  # type: ignore[union-attr]
    assert len({row[0] for row in rows}) == len(rows)
    return {
        speech.value.rpartition("/")[2]: (state.value.rpartition("-")[2], graph.value.split("/graph/")[1][:3])
        for speech, state, graph in rows
    }


def test_a_division_has_the_state_of_the_year() -> None:
    assert find_state("Fraser", 1998) == mint("place", "AU-ACT")
    assert find_state("Fraser", 2022) == mint("place", "AU-VIC")
    assert find_state("Fraser", 2017) is None
    assert find_state("Darwin", 1920) == mint("place", "AU-TAS")
    assert find_state("Darwin", 1990) is None
    assert {find_state(form, 2001) for form in ("Eden-Monaro", "EDEN MONARO", "eden-monaro")} == {
        mint("place", "AU-NSW")
    }
    assert find_state("o-connor", 2001) == find_state("O'Connor", 2001) == mint("place", "AU-WA")
    assert find_state("Lower Tidewater", 2001) is None


def test_the_register_of_members_agrees_with_the_table(shared: Path) -> None:
    """Two lines of the register are no seats of these members in the record of the Parliament."""
    wrong = []
    with (shared / "data" / "hansard" / "members" / "representatives.csv").open(encoding="utf-8") as file:
        for row in csv.reader(file):
            if row and row[0].isdigit():
                code = row[4].strip(" .").upper()
                years = [int(row[5].rpartition(".")[2]), int(row[7].strip().rpartition(".")[2] or 2025)]
                if {find_state(row[3], year) for year in years} != {mint("place", f"AU-{code}")}:
                    wrong.append((row[2], row[3]))
    assert wrong == [("Philip Maxwell Ruddock", "Dundas"), ("Neil Anthony Brown", "Menzies")]


def test_the_state_of_a_member_is_derived_and_a_recorded_one_is_kept(kg: KnowledgeGraph, tmp_path: Path) -> None:
    said = [
        Said("a", "1998-03-05", "Fern Ashby", "Fraser"),
        Said("b", "2022-03-08", "Otto Brook", "Fraser"),
        Said("c", "2022-03-08", "Ines Calder", "Newcastle", "NSW"),
        Said("d", "2022-03-08", "Hugo Dell", "Lower Tidewater"),
        Said("e", "2022-03-08", "Iris Elm", ""),
    ]
    report = load(kg, "hansard", [write(tmp_path / "said.csv", said)])
    assert (report.loaded, report.rejected) == (5, 0)
    assert states(kg) == {"a": ("ACT", "der"), "b": ("VIC", "der"), "c": ("NSW", "src")}
    described = kg.store.query(
        "SELECT ?code { <https://w3id.org/quadcite/id/place/AU-ACT> kg:within/skos:notation ?code }"
    )
    assert [row[0].value for row in described.rows] == ["AUS"]  # type: ignore[union-attr]


def test_a_speaker_recorded_for_two_states_on_a_day_has_none(kg: KnowledgeGraph, tmp_path: Path) -> None:
    said = [
        Said("a", "1990-05-08", "Fern Ashby", "Newcastle"),
        Said("b", "1990-05-08", "Fern Ashby", "Kooyong"),
        Said("c", "1990-05-08", "Otto Brook", "Newcastle"),
        Said("d", "1990-05-08", "Otto Brook", "Sydney"),
        Said("e", "1990-05-09", "Fern Ashby", "Kooyong"),
    ]
    load(kg, "hansard", [write(tmp_path / "one.csv", said[:1])])
    assert states(kg) == {"a": ("NSW", "der")}
    load(kg, "hansard", [write(tmp_path / "two.csv", said[1:])])
    derived = {"c": ("NSW", "der"), "d": ("NSW", "der"), "e": ("VIC", "der")}
    assert states(kg) == derived
    (tmp_path / "two.csv").unlink()
    load(kg, "hansard", [write(tmp_path / "two.csv", said[2:])], prune=True)
    assert states(kg) == {"a": ("NSW", "der"), **derived}


@pytest.mark.long
def test_the_order_of_loads_does_not_matter(tmp_path: Path) -> None:
    chance = random.Random(7)
    divisions = ("Newcastle", "Kooyong", "Sydney", "Fraser", "Lower Tidewater", "")
    said = [
        Said(f"s{number}", f"2022-03-{chance.randrange(7, 10):02}", f"P{chance.randrange(6)}", chance.choice(divisions))
        for number in range(40)
    ]
    found = []
    for order in range(3):
        folder = tmp_path / str(order)
        given = Settings(data_dir=folder, models_dir=folder / "none", _env_file=None)  # type: ignore[call-arg]
        mixed = random.Random(order).sample(said, len(said))
        with KnowledgeGraph.open(folder, given) as kg:
            for part in range(2):
                load(kg, "hansard", [write(tmp_path / f"{order}-{part}.csv", mixed[part::2])])
            found.append(states(kg))
    assert found[0] == found[1] == found[2] != {}


def test_the_derived_state_names_its_rule_and_its_source(kg: KnowledgeGraph, tmp_path: Path) -> None:
    load(kg, "hansard", [write(tmp_path / "said.csv", [Said("a", "2022-03-08", "Fern Ashby", "Kooyong")])])
    rows = kg.store.query(
        "SELECT ?rule ?source { GRAPH <https://w3id.org/quadcite/graph/prov> {"
        " <https://w3id.org/quadcite/graph/der/seat/2022-03-08> prov:wasGeneratedBy/prov:used ?rule ;"
        " prov:wasDerivedFrom ?source . ?rule a kg:Rule } }"
    ).rows  # type: ignore[union-attr]
    assert (SEAT.iri, mint("graph", "src", "hansard", "speech", "a")) in {tuple(row) for row in rows}
    assert len({source for _, source in rows}) == 1


def test_the_graph_of_a_day_goes_with_its_speeches(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "said.csv", [Said("a", "2022-03-08", "Fern Ashby", "Kooyong")])
    load(kg, "hansard", [path])
    write(tmp_path / "said.csv", [Said("b", "2022-03-09", "Fern Ashby", "Kooyong")])
    load(kg, "hansard", [path], prune=True)
    graphs = {graph.value for graph in kg.store.graphs()}
    assert states(kg) == {"b": ("VIC", "der")}
    assert not any("seat/2022-03-08" in graph for graph in graphs)


PARTIES = "SELECT ?speech ?party ?graph { GRAPH ?graph { ?speech kg:party ?party } }"
REGISTER = "person_id,name,chamber,seat,state,party,from,to\n"


def parties(kg: KnowledgeGraph) -> dict[str, tuple[str, str]]:
    """The party of each speech, and the kind of the graph that says so."""
    rows = kg.store.query(PARTIES).rows  # type: ignore[union-attr]
    assert len({row[0] for row in rows}) == len(rows)
    return {
        speech.value.rpartition("/")[2]: (party.value.rpartition("/")[2], "/".join(graph.value.split("/")[5:8]))
        for speech, party, graph in rows
    }


def write_speeches(path: Path, *rows: str) -> str:
    head = "speech_id,date,chamber,name,name_id,party,electorate,state,text,title,hansard_reference\n"
    path.write_text(head + "".join(f"{row},Some words.,On words,Made up\n" for row in rows), encoding="utf-8")
    return str(path)


SPOKEN = (
    "a,1990-05-08,House,Ms Ashby,Q1,ALP,,",
    "b,1990-05-08,House,Ms Ashby,Q1,,,",
    "c,1990-05-09,House,Ms Ashby,Q1,,,",
    "d,1990-05-09,House,Mr Brook,Q2,LP,Newcastle,",
    "e,1990-05-09,House,Mr Brook,Q2,ALP,Kooyong,",
    "f,1990-05-09,House,Mr Brook,Q2,,Kooyong,",
    "g,1990-05-10,House,Mr Dell,Q4,,Lower Tidewater,",
    "h,1990-05-10,House,Mr Dell,Q4,Zzyzx,,",
    "i,1990-05-11,Senate,Senator Elm,Q5,,,",
)
LISTED = (
    "Q1,Fern Ashby,House,Kooyong,VIC,ALP,1987-07-11,1990-05-08\n"
    "Q1,Fern Ashby,House,Kooyong,VIC,IND,1990-05-08,\nQ2,Otto Brook,House,Kooyong,VIC,LP,1987-07-11,\n"
    "Q4,Hugo Dell,House,Lower Tidewater,TAS,LP,1987-07-11,\nQ5,Iris Elm,House,Kelp,SA,LP,1987-07-11,\n"
)


def test_states_and_parties_come_from_turns_of_the_day_and_from_the_register(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    speeches = write_speeches(tmp_path / "speeches.csv", *SPOKEN)
    (tmp_path / "register.csv").write_text(REGISTER + LISTED)
    register = str(tmp_path / "register.csv")
    without, first, last = open_graph("without"), open_graph("first"), open_graph("last")
    load(without, "hansard", [speeches], index=False)
    recorded = {"a": ("labor", "graph/src/hansard"), "d": ("liberal", "graph/src/hansard")}
    recorded["e"] = ("labor", "graph/src/hansard")
    turns = {"b": ("labor", "graph/der/party")}
    kinds = {key: (party, kind) for key, (party, kind) in parties(without).items()}
    assert {key: party for key, (party, _) in kinds.items()} == {
        key: party for key, (party, _) in {**recorded, **turns}.items()
    }
    for kg, order in ((first, (register, speeches)), (last, (speeches, register))):
        for place in order:
            load(kg, "members" if place == register else "hansard", [place], index=False)
        found = {key: party for key, (party, _) in parties(kg).items()}
        # f has no party, since the record has two of that day; that of h is recorded in an unknown form; and the
        # register does not list i in the Senate.
        assert found == {"a": "labor", "b": "labor", "c": "independent", "d": "liberal", "e": "labor", "g": "liberal"}
        assert {key: state for key, (state, _) in states(kg).items()} == {
            "c": "VIC", "d": "VIC", "e": "VIC", "f": "VIC", "g": "TAS", "h": "TAS", "a": "VIC", "b": "VIC",
        }  # fmt: skip
    (tmp_path / "register.csv").write_text(REGISTER)
    load(last, "members", [register], prune=True, index=False)
    assert parties(last) == parties(without)
    assert states(last) == states(without)


# The index.


def test_the_graphs_of_states_and_parties_are_those_that_the_index_follows(kg: KnowledgeGraph, tmp_path: Path) -> None:
    said = write(tmp_path / "said.csv", [Said("x", "2022-03-08", "Fern Ashby", "Kooyong")])
    load(kg, "hansard", [write_speeches(tmp_path / "speeches.csv", *SPOKEN), said], index=False)
    for query, root in ((SEATS, DERIVED_STATE), (PARTIES, DERIVED_PARTY)):
        graphs = {graph.value for *_, graph in kg.store.query(query).rows}  # type: ignore[union-attr]
        derived = {graph for graph in graphs if graph.startswith(DERIVED)}
        assert derived
        assert all(graph.startswith(root) for graph in derived)


KILLED = """
import os, signal, sys
from pathlib import Path
from kg.knowledge_graph import KnowledgeGraph
from kg.search import index_sync
from kg.settings import Settings
from loaders.sources import load
def kill(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
data_dir, source = map(Path, sys.argv[1:])
index_sync.LoadedGraphs.replace = kill
with KnowledgeGraph.open(data_dir, Settings(data_dir=data_dir, models_dir=data_dir / "none", _env_file=None)) as kg:
    load(kg, "hansard", [str(source)])
"""


@pytest.mark.long
def test_parties_of_other_speeches_are_counted_right_after_a_kill_between_commit_and_index(tmp_path: Path) -> None:
    given = Settings(data_dir=tmp_path / "kg", models_dir=tmp_path / "none", _env_file=None)  # type: ignore[call-arg]

    def count(repair: bool) -> dict[str, int]:
        with KnowledgeGraph.open(given.data_dir, given) as kg:
            if repair:
                repair_index(kg.store, kg.search)
            found = kg.search.count(["party"]).by_field["party"]
            return {party.rpartition("/")[2]: number for party, number in found.items()}

    with KnowledgeGraph.open(given.data_dir, given) as kg:
        load(kg, "hansard", [write_speeches(tmp_path / "0.csv", "b,1990-05-08,House,Ms Ashby,Q1,,,")])
    assert count(repair=False) == {}
    steps: list[tuple[str, dict[str, int], dict[str, int]]] = [
        ("a,1990-05-08,House,Ms Ashby,Q1,ALP,,", {}, {"labor": 2}),
        ("c,1990-05-08,House,Ms Ashby,Q1,LP,,", {"labor": 2}, {"labor": 1, "liberal": 1}),
    ]
    for number, (row, before, after) in enumerate(steps, 1):
        source = write_speeches(tmp_path / f"{number}.csv", row)
        command = [sys.executable, "-c", KILLED, str(given.data_dir), source]
        root = Path(__file__).parent.parent.parent.parent.parent
        assert subprocess.run(command, cwd=root, capture_output=True).returncode == -signal.SIGKILL
        assert count(repair=False) == before
        assert count(repair=True) == after
