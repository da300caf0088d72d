"""Registers of members: terms with days, seats and parties, each with its file and row."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from kg import bundle
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import select, term_text
from kg.vocabulary import mint
from loaders.hansard.graph.terms import load_terms
from loaders.sources import load

REGISTER = bundle.folder("fixtures") / "members"
TERMS = """SELECT ?member ?body ?from ?to ?area ?state WHERE {
  ?term org:member ?member ; org:organization ?body ; schema:startDate ?from OPTIONAL { ?term schema:endDate ?to }
  OPTIONAL { ?term kg:represents ?area } OPTIONAL { ?term kg:representedState ?state }
}"""
ORIGINS = """SELECT ?graph ?rows WHERE {
  GRAPH <https://w3id.org/quadcite/graph/prov> { ?graph prov:qualifiedDerivation ?part . ?part kg:sourceRows ?rows }
}"""


def terms(kg: KnowledgeGraph) -> set[tuple[str | None, ...]]:
    names = ("member", "body", "from", "to", "area", "state")
    rows = select(kg.store.query_sources, TERMS)
    return {tuple(row[name].value.rpartition("/")[2] if name in row else None for name in names) for row in rows}  # type: ignore[union-attr]


def test_a_register_is_loaded_as_dated_memberships(kg: KnowledgeGraph) -> None:
    report = load(kg, "members", [str(REGISTER)])
    assert (report.loaded, report.rejected, report.unread) == (8, 0, {".md": 1})
    found = terms(kg)
    assert ("aph-FZ3", "au-representatives", "2013-09-07", "2021-02-23", "saltmarsh", "AU-TAS") in found
    assert ("aph-FZ3", "liberal", "2013-09-07", "2021-02-23", None, None) in found
    assert ("aph-FZ3", "independent", "2021-02-23", None, None, None) in found
    assert len(found) == 16
    assert len({row[0] for row in found if "varley" in str(row[0])}) == 2
    assert load(kg, "members", [str(REGISTER)]).skipped == 8


def test_a_register_in_several_files_joins_people_by_number_or_name(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "person count,aph id,name,birthday,alt name,,\n\n1,q1,Ms Ada Quill,,Adelaide Quill,Addie Quill,\n"
        "# a remark,,,,,,\n2,Q2,Bo Reed,1901,,,\n3,Q3,Bo Reed,1950,,,\n"
    )
    header = "member count,person count,name,Division,State/Territory,Date of election,Type of election,"
    header += "Date ceased to be a Member,reason,Most recent party\n"
    (tmp_path / "senators.csv").write_text(
        f"{header}\n1,,Adelaide Quill,,Tas.,1.7.1990 ,,30.6.1996,retired,ALP\n# a remark,,,,,,,,,\n"
        "2,3,Bo Reed,,Vic,1.7.1990,,,still_in_office,SPK\n3,,Bo Reed,,Vic,1.7.1960,,1.7.1970,died,ALP\n"
        "4,,Cy Sand,,WA,31.2.1990,,,,ALP\n5,,Cy Sand,,WA,1.2.1990,,1.1.1990,,ALP\n6,,Cy Sand,,WA,,,,,ALP\n"
    )
    report = load(kg, "members", [str(tmp_path)])
    assert (report.loaded, report.rejected) == (3, 3)
    assert [warning for warning in report.warnings if "SPK" in warning]
    found = {row for row in terms(kg) if row[1] == "au-senate"}
    assert ("aph-Q1", "au-senate", "1990-07-01", "1996-06-30", "AU-TAS", "AU-TAS") in found
    assert ("aph-Q3", "au-senate", "1990-07-01", None, "AU-VIC", "AU-VIC") in found
    (other,) = (row[0] for row in found if row[2] == "1960-07-01")
    assert str(other).startswith("register-bo-reed-")
    graph = mint("graph", "src", "members", "au-senate", "aph-Q1", "1990-07-01")
    rows = {term_text(row["rows"]) for row in select(kg.store.query, ORIGINS) if row["graph"] == graph}
    assert rows == {"1"}
    names = {quad.object.value for quad in kg.store.graph(mint("graph", "ref", "person", "aph-Q1"))}  # type: ignore[union-attr]
    assert {"Ada Quill", "Adelaide Quill", "Addie Quill"} <= names


@pytest.mark.parametrize(
    ("table", "jurisdiction", "place"),
    [
        ("name,from,party,chamber\nAda Quill,2001-01-01,Labour,House of Representatives\n", None, None),
        ("name,from,party,chamber,state\nAda Quill,2001-01-01,Labor,Senate,Otago\n", None, None),
        ("name,from,party,chamber\nAda Quill,2001-01-01,Labour,House of Representatives\n", "NZL", "NZ."),
        ("name,from,party,chamber,country\nAda Quill,2001-01-01,Labour,Senate,Ireland\n", None, "IE."),
        ("name,from,party,chamber,state\nAda Quill,2001-01-01,Labor,Senate,NSW\n", None, "au-"),
    ],
)
def test_a_register_names_its_parliament(
    kg: KnowledgeGraph, tmp_path: Path, table: str, jurisdiction: str | None, place: str | None
) -> None:
    (tmp_path / "register.csv").write_text(table)
    report = load(kg, "members", [str(tmp_path)], jurisdiction=jurisdiction)
    assert (report.loaded, report.rejected) == ((0, 1) if place is None else (1, 0))
    found = load_terms(kg.store)
    assert all(place is not None and f"/chamber/{place}" in term.chamber.value for term in found)
    assert [bool(term.parties) for term in found] == ([place == "au-"] if place else [])


def test_a_changed_row_replaces_a_term_and_a_removed_one_goes(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "register.csv"
    path.write_text(
        "name,from,to,seat,party\nAda Quill,2001-01-01,,Lower Tidewater,ALP\nBo Reed,2001-01-01,,Kelp,ALP\n"
    )
    load(kg, "members", [str(path)], chamber="House", jurisdiction="AUS")
    path.write_text("name,from,to,seat,party\nAda Quill,2001-01-01,2002-02-02,Lower Tidewater,ALP\n")
    load(kg, "members", [str(path)], chamber="House", jurisdiction="AUS", prune=True)
    assert {row[2:4] for row in terms(kg)} == {("2001-01-01", "2002-02-02")}


@pytest.mark.parametrize("text", ["name,party\nAda Quill,ALP\n", "from,to\n2001-01-01,\n", ""])
def test_a_file_that_is_no_register_is_rejected(kg: KnowledgeGraph, tmp_path: Path, text: str) -> None:
    (tmp_path / "register.csv").write_text(text)
    assert load(kg, "members", [str(tmp_path / "register.csv")]).rejected == 1
    assert not [graph for graph in kg.store.graphs() if graph == NamedNode("graph/src/members")]


def test_a_term_without_a_chamber_is_rejected(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text("name,from\nAda Quill,2001-01-01\n")
    assert load(kg, "members", [str(tmp_path)]).rejected == 1
    with pytest.raises(InvalidInputError):
        load(kg, "members", [str(tmp_path)], chamber="Storting")


def test_rows_of_one_name_in_two_seats_at_once_are_rejected_without_an_identifier(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    (tmp_path / "register.csv").write_text(
        "person_id,name,from,to,seat\n,Jo Ash,2001-01-01,2010-01-01,Kelp\n,Hon. Jo Ash,2003-01-01,2008-01-01,Marrow\n"
        "J1,Jo Ash,2001-01-01,,Dune\n,Bo Reed,2001-01-01,2004-01-01,Kelp\n,Bo Reed,2004-01-01,,Marrow\n"
    )
    report = load(kg, "members", [str(tmp_path)], chamber="House", jurisdiction="AUS")
    assert (report.loaded, report.rejected) == (3, 2)
    assert {row[0] for row in terms(kg) if "ash" in str(row[0])} == set()


def test_people_of_one_name_are_told_apart_by_their_date_of_birth(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text(
        "name,born,from,to,seat\nJo Ash,1950-01-01,2001-01-01,2010-01-01,Kelp\n"
        "Jo Ash,1970-05-05,2001-01-01,2008-01-01,Marrow\nJo Ash,1950-01-01,2010-01-01,,Dune\n"
    )
    report = load(kg, "members", [str(tmp_path)], chamber="House", jurisdiction="AUS")
    assert (report.loaded, report.rejected) == (3, 0)
    members = {(row[0], row[4]) for row in terms(kg)}
    assert len({member for member, _ in members}) == 2
    assert len({member for member, area in members if area in ("kelp", "dune")}) == 1


def test_rows_that_name_nobody_are_rejected(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text(
        "name,from,seat\n,2001-01-01,Kelp\n,2001-01-01,Marrow\nVacant,2001-01-01,Dune\nAda Quill,2001-01-01,Reef\n"
    )
    report = load(kg, "members", [str(tmp_path)], chamber="House", jurisdiction="AUS")
    assert (report.loaded, [each.rows for each in report.rejections]) == (1, [[1], [2], [3]])


def test_a_date_may_be_only_a_year_or_open(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text(
        "name,from,to,party\nAda Quill,1994,1996,ALP\nBo Reed,1994-03,present,ALP\nCy Sand,1990,–,ALP\n"
        "Di Moss,1996,1994,ALP\nEd Fern,1994-13,,ALP\nFi Hale,1994,?,ALP\n"
    )
    report = load(kg, "members", [str(tmp_path)], chamber="House", jurisdiction="AUS")
    assert (report.loaded, report.rejected) == (3, 3)
    found = {row[2:4] for row in terms(kg)}
    assert found == {("1994", "1996"), ("1994-03", None), ("1990", None)}
    [ada] = [term for term in load_terms(kg.store) if term.names == ("Ada Quill",)]
    days = ("1993-12-31", "1994-05-05", "1995-01-01", "1996-01-01", "1996-12-31", "1997-01-01")
    assert [ada.covers(day) for day in days] == [False, False, True, True, False, False]
    assert [ada.may_cover(day) for day in days] == [False, True, True, True, True, False]


MAPPING = """
[columns]
given_name = "Vorname"
family_name = "Nachname"
from = "Beginn"
to = "Ende"
party = "Fraktion"
chamber = "Gremium"
person_id = "Kennung"
seat = "Wahlkreis"
[dates]
formats = ["%d/%m/%Y"]
open = ["laufend"]
[parliament]
code = "QX"
[[chamber]]
cell = "NR"
id = "parliament.NR"
name = "National Council"
[[party]]
cell = "Blue"
id = "party.BL"
name = "Blue List"
"""
TABLE = (
    "Kennung,Nachname,Vorname,Gremium,Fraktion,Beginn,Ende,Wahlkreis\n"
    "P-1,Quill,Ada,NR,Blue,01/02/2019,laufend,Unterwasser\n,Reed,Bo,NR,Green,2019,30/06/2020,\n,Sand,Cy,BR,Blue,2019,,\n"
)


def test_a_mapping_reads_the_register_of_another_parliament(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(TABLE)
    (tmp_path / "list.toml").write_text(MAPPING)
    report = load(kg, "members", [str(tmp_path / "list.csv")], mapping=str(tmp_path / "list.toml"))
    assert report.loaded == 2, [each.reason for each in report.rejections]
    [rejection] = report.rejections
    assert "BR" in rejection.reason
    assert "NR" in rejection.reason
    assert any("Green" in warning for warning in report.warnings)
    found = terms(kg)
    assert ("QX.P-1", "QX.parliament.NR", "2019-02-01", None, "unterwasser", None) in found
    assert ("QX.P-1", "QX.party.BL", "2019-02-01", None, None, None) in found
    [reed] = [row for row in found if "reed" in str(row[0])]
    assert reed[1:4] == ("QX.parliament.NR", "2019", "2020-06-30")
    said = {quad.object.value for quad in kg.store.graph(mint("graph", "ref", "chamber", "QX.parliament.NR"))}  # type: ignore[union-attr]
    assert "National Council" in said
    assert mint("graph", "ref", "place", "AUS") not in kg.store.graphs()
    again = load(kg, "members", [str(tmp_path / "list.csv")], mapping=str(tmp_path / "list.toml"))
    assert (again.loaded, again.skipped) == (0, 2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('code = "QX"', 'code = "Quax"'),
        ('formats = ["%d/%m/%Y"]', 'formats = ["%d/%m"]'),
        ('formats = ["%d/%m/%Y"]', 'formats = ["%d/%d/%m/%Y"]'),
        ('formats = ["%d/%m/%Y"]', 'formats = ["%%d/%%m/%%Y"]'),
        ('formats = ["%d/%m/%Y"]', f"formats = {'1' * 5_000}"),
        ('formats = ["%d/%m/%Y"]', f"formats = {'[' * 2_000}"),
        ('id = "party.BL"', 'id = "a b"'),
        ('cell = "NR"', ""),
        ("[dates]", "[days]"),
        ('seat = "Wahlkreis"', 'district = "Wahlkreis"'),
        ('[parliament]\ncode = "QX"', ""),
    ],
)
def test_a_mapping_with_a_mistake_is_refused(kg: KnowledgeGraph, tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "list.csv").write_text(TABLE)
    assert old in MAPPING
    (tmp_path / "list.toml").write_text(MAPPING.replace(old, new))
    with pytest.raises(InvalidInputError, match=r"list\.toml"):
        load(kg, "members", [str(tmp_path / "list.csv")], mapping=str(tmp_path / "list.toml"))


def test_a_table_without_a_mapped_column_is_rejected(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(TABLE.replace("Wahlkreis", "Kreis"))
    (tmp_path / "list.toml").write_text(MAPPING)
    [rejection] = load(kg, "members", [str(tmp_path / "list.csv")], mapping=str(tmp_path / "list.toml")).rejections
    assert "'Wahlkreis'" in rejection.reason
