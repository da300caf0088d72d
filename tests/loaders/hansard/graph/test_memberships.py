"""Memberships: as long as speeches show them, the same in whatever order days come, gone with the last speech."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import BASE, mint
from loaders.hansard.graph.memberships import MEMBERSHIP
from loaders.sources import load
from tests.examples import dear
from tests.folders import open_graph

DAYS = ("2024-02-05", "2024-02-06", "2024-03-07", "2024-05-30")
PEOPLE = ("Fern Ashby", "Otto Brook")
PARTIES = ("Labor", "Greens")

SHOWN = """SELECT ?name ?organization ?first ?last WHERE {
  ?membership a org:Membership ; org:member/foaf:name ?name ; org:organization ?organization ;
    kg:firstSeen ?first ; kg:lastSeen ?last
}"""

Row = tuple[str, str, str, str]
Said = tuple[int, int, int]
"""A speech: the numbers of the day, the person and the party."""


def speeches(path: Path, *said: Said) -> str:
    head = "speech_id,date,chamber,speaker,party,state,text,title,hansard_reference\n"
    lines = [
        f"{day}-{person}-{party},{DAYS[day]},Senate,{PEOPLE[person]},{PARTIES[party]},VIC,Some words.,On words,Made up"
        for day, person, party in said
    ]
    path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def shown(kg: KnowledgeGraph) -> set[Row]:
    rows = [[term.value for term in row] for row in kg.store.query(SHOWN).rows]  # type: ignore[union-attr]
    assert len({tuple(row) for row in rows}) == len(rows)
    return {(name, organization.removeprefix(f"{BASE}id/"), first, last) for name, organization, first, last in rows}


def expected(said: set[Said]) -> set[Row]:
    days: dict[tuple[str, str], list[str]] = {}
    for day, person, party in said:
        for organization in ("chamber/au-senate", f"party/{PARTIES[party].casefold()}"):
            days.setdefault((PEOPLE[person], organization), []).append(DAYS[day])
    return {(name, organization, min(on), max(on)) for (name, organization), on in days.items()}


SPEECHES = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1)), min_size=1)


@pytest.mark.long
@settings(max_examples=dear(12))
@given(first=SPEECHES, second=SPEECHES)
def test_what_speeches_show_is_derived_whatever_came_before(
    tmp_path_factory: pytest.TempPathFactory, first: set[Said], second: set[Said]
) -> None:
    """By two files that grow, and one that then loses what the other has: as if all were counted from the start."""
    folder = tmp_path_factory.mktemp("memberships")
    one, two = folder / "one.csv", folder / "two.csv"
    with open_graph(folder / "data") as kg:
        load(kg, "hansard", [speeches(one, *first)], index=False)
        assert shown(kg) == expected(first)
        load(kg, "hansard", [speeches(two, *second - first)], index=False)
        assert shown(kg) == expected(first | second)
        rest = set(sorted(first)[1:])
        load(kg, "hansard", [speeches(one, *rest)] if rest else [speeches(one, (0, 0, 0))], prune=True, index=False)
        assert shown(kg) == expected((rest or {(0, 0, 0)}) | (second - first))


def test_a_membership_names_the_speeches_it_is_known_by_and_its_graph_theirs(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    load(kg, "hansard", [speeches(tmp_path / "a.csv", (0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 0, 0))], index=False)
    [person] = {row["p"] for row in kg.store.query("SELECT ?p WHERE { ?s kg:speaker ?p }")}  # type: ignore[union-attr]
    key = person.value.rpartition("/")[2]  # type: ignore[union-attr]
    node = mint("membership", key, "party", "labor")
    known = kg.store.query(f"SELECT ?s WHERE {{ <{node.value}> prov:wasDerivedFrom ?s }}").rows  # type: ignore[union-attr]
    assert {row[0].value for row in known} == {mint("speech", name).value for name in ("0-0-0", "3-0-0")}
    graph = mint("graph", "der", "membership", key)
    said = kg.store.query(
        f"SELECT ?k ?from WHERE {{ <{graph.value}> a ?k ; prov:wasGeneratedBy ?run ; prov:wasDerivedFrom ?from . "
        f"?run prov:used <{MEMBERSHIP.iri.value}> }}"
    ).rows  # type: ignore[union-attr]
    assert {row[0].value.rpartition("#")[2] for row in said} == {"DerivedGraph"}
    # the chamber from the first to the last, the Greens on one day, Labor from the first to the last
    sources = {mint("graph", "src", "hansard", "speech", name).value for name in ("0-0-0", "2-0-1", "3-0-0")}
    assert {row[1].value for row in said} == sources


def test_with_its_last_speech_a_person_goes_with_all_memberships(kg: KnowledgeGraph, tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    load(kg, "hansard", [speeches(place, (0, 0, 0), (1, 1, 0))], index=False)
    load(kg, "hansard", [speeches(place, (1, 1, 0))], prune=True, index=False)
    assert {row[0] for row in shown(kg)} == {"Otto Brook"}
    people = kg.store.query("SELECT ?p WHERE { ?p a foaf:Person }").rows  # type: ignore[union-attr]
    assert len(people) == 1
    graphs = {row[0] for row in kg.store.query("SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } }").rows}  # type: ignore[union-attr]
    assert sum(isinstance(graph, NamedNode) and "/der/membership/" in graph.value for graph in graphs) == 1
