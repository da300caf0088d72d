"""Whether the identifier of a record is that of the person whom it names. Fictional."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg.store.protocol import select, term_text
from kg.tools.parliament.search import search_speeches
from loaders.hansard.identifiers import Identifiers, describe_doubtful
from loaders.hansard.person_names import differ_in_given_names, have_same_surname
from loaders.hansard.sitting_model import Talker
from loaders.sources import load
from tests.folders import open_graph


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Mr QUILL", "Quill, Ada, MP", True),
        ("Ada QUILL", "Quill, Ada", True),
        ("Dr C.A. Quill", "QUILL, Catherine", True),
        ("Quill Sen J.R.", "Senator QUILL", True),
        ("Senator the Hon. ADA QUILL", "Quill Sen A.", True),
        ("Senator O'TARN", "O’Tarn Sen W.", True),
        ("Senator REED-QUILL", "Reed Quill, Ada", True),
        ("Bert van Moor", "Mr VAN MOOR", True),
        ("Moor, Bert van", "Mr VAN MOOR", True),
        ("Mr St. CLOUD", "St Cloud, Edward", True),
        ("McTARN, John", "Mr McTarn", True),
        ("Tärn, Jörg", "TARN, Jorg", True),
        ("Łukasz Nowak", "NOWAK Łukasz", True),
        ("Reed-Quill, Ada", "Quill, Ada", True),
        ("Кузнецов, Иван", "Иван КУЗНЕЦОВ", True),
        ("Кузнецов, Иван", "Kuznetsov, Ivan", True),  # not comparable
        ("Mr REED", "Quill, Ada", False),
        ("Reeder, Wayne", "Mr REED", False),
        ("Reed, Pauline", "Reed-Quill, Sarah", False),
        ("Senator REED", "Reed-Quill, Sarah", False),
        ("Mr van Dam", "van Moor, Bert", False),
        ("Ада Кузнецова", "Петров, Иван", False),
    ],
)
def test_names_agree_in_their_surnames_in_any_usual_form(one: str, other: str, same: bool) -> None:
    assert have_same_surname(one, other) == have_same_surname(other, one) == same


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("Quill, C.L.", "Quill, Bob", True),
        ("Quill, RJ", "Quill, R", False),
        ("Quill, Bob", "Senator QUILL", False),
        ("Senator BOB QUILL", "Quill, Carol", False),
    ],
)
def test_given_names_differ_only_where_both_are_told(one: str, other: str, differ: bool) -> None:
    assert differ_in_given_names(one, other) == differ


def talkers(*names: tuple[str, str]) -> list[Talker]:
    return [Talker(name, name_id=name_id) for name_id, name in names]


@pytest.mark.parametrize(
    ("known", "own", "other"),
    [
        ([("A", "Mr KELP"), ("A", "Mr KELP"), ("A", "Mr Reed")], "Mr KELP", "Mr Reed"),
        ([("A", "Mr KELP"), ("A", "Mr Reed"), ("B", "Mr Reed")], "Mr KELP", "Mr Reed"),
        ([("A", "Mr KELP"), ("A", "Mr Reed"), ("A", "Mr Reed"), *[("B", "Mr Reed")] * 3], "Mr KELP", "Mr Reed"),
        ([("A", "Kelp, Bob"), ("A", "Kelp, C.L."), ("B", "Kelp, C.L.")], "Mr KELP", "Kelp, C.L."),
        ([("A", "Kelp, Bob"), ("A", "Kelp, Robert")], "Kelp, Robert", None),
        ([("A", "Kelp, Anthony"), ("A", "Mr TONY KELP"), ("B", "Mr Kelp")], "Mr TONY KELP", None),
        (
            [("A", "Kelp, Anthony"), ("A", "Kelp, Tony"), ("A", "Kelp, Tony"), ("B", "Kelp, Tony")],
            "Kelp, Tony",
            None,
        ),
        ([("A", "Mr KELP"), ("A", "Mr Reed")], None, "Mr Reed"),
    ],
)
def test_an_identifier_is_of_the_name_that_mostly_has_it(
    known: list[tuple[str, str]], own: str | None, other: str | None
) -> None:
    identifiers = Identifiers()
    identifiers.add(talkers(*known))
    assert own is None or identifiers.is_of(Talker(own, name_id="A"))
    assert other is None or not identifiers.is_of(Talker(other, name_id="A"))
    assert identifiers.is_of(Talker("The SPEAKER", name_id="A"))


def test_many_doubtful_records_are_counted() -> None:
    text = describe_doubtful({(f"A{number}", "Mr Reed"): 2 for number in range(40)})
    assert text.startswith("80 records")
    assert "and 28 more" in text


DAY = """<hansard version="2.1"><session.header><date>{date}</date><chamber>REPS</chamber></session.header>
<chamber.xscript><debate><debateinfo><title>Kelp</title></debateinfo>{speeches}</debate></chamber.xscript></hansard>"""
SPEECH = """<speech><talk.start><talker><name.id>ZK1</name.id><name role="metadata">{full}</name>
<name role="display">{name}</name></talker><para>The kelp grows by the harbour.</para></talk.start></speech>"""


def test_a_name_that_registers_have_for_another_identifier_is_not_of_this_one() -> None:
    identifiers = Identifiers()
    for name_id, name in (("QX1", "Robert James Fennimore"), ("QX2", "Carol Anne Fennimore")):
        identifiers.add_registered(name_id, name)
    names = ("Fennimore, Bob", "Fennimore, Robert, MP", "Mr FENNIMORE", "Fennimore, Sen Carol")
    assert [identifiers.is_of(Talker(name, None, "QX1")) for name in names] == [True, True, True, False]


HEADER = "speech_id,speaker,name_id,party,chamber,date,text,jurisdiction\n"
FILES = {
    "quill.csv": HEADER + 's1,"Quill, Peter",QX1,LP,Senate,2005-06-04,Wool is dear in the south of the country.,AUS\n',
    "fennimore.csv": HEADER
    + "".join(
        f'b{day},"Fennimore, Robert",QX1,AG,Senate,2005-05-{day},The forest of day {day} must not be felled.,AUS\n'
        for day in range(10, 13)
    ),
}
REGISTER = (
    'name,person_id,chamber,from,to,party,jurisdiction\n"Fennimore, Robert",QX1,Senate,1996-07-01,2012-06-15,AG,AUS\n'
)


@pytest.mark.long
@pytest.mark.parametrize("later", ["fennimore.csv", "register.csv"])
@pytest.mark.parametrize("is_first", [False, True])
def test_the_order_of_loads_decides_no_identifier(tmp_path: Path, later: str, is_first: bool) -> None:
    for name, text in {**FILES, "register.csv": REGISTER}.items():
        (tmp_path / name).write_text(text)
    with open_graph(tmp_path / "data") as kg:
        for name in ("quill.csv", later) if is_first else (later, "quill.csv"):
            report = load(kg, "members" if name == "register.csv" else "parliament", [str(tmp_path / name)])
        assert any("QX1 'Quill, Peter' (1)" in warning for warning in report.warnings)
        query = "SELECT ?person { ?said kg:speakerAsRecorded 'Quill, Peter' OPTIONAL { ?said kg:speaker ?person } }"
        assert ["person" in row for row in select(kg.store.query, query)] == [False]
        assert not kg.store.query("ASK { ?person skos:altLabel|foaf:name 'Quill, Peter' }")


def test_a_register_links_two_names_of_a_person(tmp_path: Path) -> None:
    for number, full, name in ((1, "Kelp, Ada, MP", "Ms KELP"), (2, "Reed, Ada, MP", "Mrs REED")):
        text = DAY.format(date=f"1999-02-0{number}", speeches=SPEECH.format(full=full, name=name) * (3 - number))
        (tmp_path / f"{number}.xml").write_text(text)
    register = tmp_path / "register.csv"
    register.write_text(
        "person_id,name,other_names,chamber,state,from\nZK1,Ada Kelp,Ada Reed,House of Representatives,NSW,1996-03-02\n"
    )
    with open_graph(tmp_path / "data") as kg:
        report = load(kg, "parliament", [str(tmp_path / "1.xml"), str(tmp_path / "2.xml")])
        assert any("ZK1 'Reed, Ada, MP' (1)" in warning for warning in report.warnings)
        query = "SELECT ?name (COUNT(?speech) AS ?n) WHERE { ?speech a kg:Speech ; kg:speakerAsRecorded ?name ; "
        query += "kg:speaker ?person } GROUP BY ?name"

        def linked() -> set[str]:
            return {term_text(row["name"]) for row in select(kg.store.query_sources, query) if "name" in row}

        assert linked() == {"Ms KELP"}
        assert {each.speaker for each in search_speeches(kg, "harbour", speaker="Mrs Reed").results} == {"Mrs REED"}
        load(kg, "members", [str(register)])
        load(kg, "parliament", [str(tmp_path / "2.xml")])
        assert linked() == {"Ms KELP", "Mrs REED"}
