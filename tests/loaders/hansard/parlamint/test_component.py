"""Components of ParlaMint as values: no word of a speaker is lost or gains a neighbour's, and files are read safely."""

from __future__ import annotations

from datetime import date, time
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from kg import bundle
from kg.errors import SourceError
from loaders.hansard.parlamint_component import Component, find_caller, parse_component
from loaders.hansard.parlamint_sitting_records import build_text
from loaders.hansard.parlamint_tei import find_code, find_root_name, parse_entries, parse_tree

FIXTURES = bundle.folder("fixtures") / "parlamint"
HEAD = (
    '<teiHeader><fileDesc><titleStmt><title>T</title></titleStmt><sourceDesc><bibl><date when="2019-05-14"/></bibl>'
    "</sourceDesc></fileDesc></teiHeader>"
)
REMARKS = ("note", "kinesic", "vocal", "gap", "incident")
OWN = ("turn", "continuation")


def parse(body: str, attributes: str = 'xml:id="ParlaMint-QX_2019-05-14-A1" xml:lang="de"') -> Component:
    text = f'<TEI xmlns="http://www.tei-c.org/ns/1.0" {attributes}>{HEAD}<text><body>{body}</body></text></TEI>'
    return parse_component(parse_tree(text.encode(), "a.xml"), "a.xml")


def read(name: str) -> Component:
    path = FIXTURES / name
    return parse_component(parse_tree(path.read_bytes(), name), name)


def own_words(component: Component) -> str:
    """Return the words of all speakers, without white space."""
    texts = [build_text(turn.parts) for turn in component.turns]
    spoken = (built.text[each.start : each.end] for built in texts for each in built.utterances if each.kind in OWN)
    return "".join("".join(spoken).split())


WORD = st.text("abcäß&<>'. :", min_size=1, max_size=6).filter(str.strip)
INSIDE = st.one_of(
    WORD.map(lambda word: (escape(word), word)),
    st.sampled_from(
        [
            ("<note>N: nie!</note>", ""),
            ('<pb n="3"/>', ""),
            ("\n   ", ""),
            ("<kinesic><desc>Beifall.</desc></kinesic>", ""),
            ('<gap reason="inaudible"/>', ""),
            ("<hi>hei<hi>ß</hi></hi>", "heiß"),
            ('<note type="interruption">Abg. Birk: Nein!</note>', ""),
        ]
    ),
)
SEGMENTS = st.lists(st.lists(INSIDE, max_size=5), min_size=1, max_size=4)


@given(SEGMENTS)
def test_the_words_of_a_speaker_are_those_of_the_segments_in_order(segments: list[list[tuple[str, str]]]) -> None:
    markup = "<note>vor</note>".join(f"<seg>{''.join(part for part, _ in each)}</seg>" for each in segments)
    component = parse(f"<div><u who='#A'>{markup}</u></div>")
    said = "".join("".join("".join(word for _, word in each).split()) for each in segments)
    assert own_words(component) == said
    for turn in component.turns:
        built = build_text(turn.parts)
        edges = [0, *(each.end for each in built.utterances)]
        assert [each.start for each in built.utterances] == edges[:-1]
        assert edges[-1] == len(built.text) == built.spans[-1][1]


def test_the_fixture_gives_its_segments_as_the_words_of_its_speakers() -> None:
    sitting = read("ParlaMint-QX_2019-05-14-A012.xml")
    assert (sitting.code, sitting.number, sitting.date) == ("QX", "A012", date(2019, 5, 14))
    assert sitting.numbers == {"term": 4, "sitting": 12}
    first, second, third = sitting.turns
    assert (first.speaker, first.name, first.roles, first.page) == (
        "AhornTilda",
        "Präsidentin Dr. Ahorn",
        ("chair",),
        "301",
    )
    assert first.time == time(9, 2)
    assert [(part.kind, part.name) for part in second.parts] == [
        ("turn", None),
        ("interjection", "Abg. Eiche"),
        ("turn", None),
        ("remark", None),
        ("interjection", "Abg. Marta Eiche"),
        ("turn", None),
        ("remark", None),
        ("turn", None),
        ("turn", None),
        ("remark", None),
    ]
    assert "eine Handbreit unter der Krone," in second.parts[0].text
    assert second.parts[3].text == "Beifall bei WALD."
    assert second.parts[5].text == "Der Hafenmeister misst  die Tiefe, nicht die Krone."
    assert [part.language for part in second.parts if part.kind == "turn"] == ["de", "de", "de", "fr", "de"]
    assert second.debate == third.debate == (1,)
    # Whose words are whose is unclear in a note with two names, so it is a remark of the record.
    assert [part.kind for part in third.parts] == ["turn", "interjection", "remark", "turn", "remark"]
    assert third.parts[-1].text == "[gap: inaudible]"


def test_utterances_continue_after_notes_and_stretches_have_one_language() -> None:
    built = build_text(read("ParlaMint-QX_2019-05-14-A012.xml").turns[1].parts)
    kinds = [each.kind for each in built.utterances]
    assert kinds == [
        "turn",
        "interjection",
        "continuation",
        "remark",
        "interjection",
        "continuation",
        "remark",
        "continuation",
        "remark",
    ]
    french = [built.text[start:end] for start, end, language in built.spans if language == "fr"]
    assert french == ["Je cite nos voisins : la mer ne lit pas les procès-verbaux.\n"]
    assert built.language == "de"


@pytest.mark.parametrize(
    ("note", "kind", "name"),
    [
        ("Abg. Dr. Haider: Nein!", "unauthorized_interruption", "Abg. Dr. Haider"),
        ("Rufe bei der SPÖ:Oho!", "unauthorized_interruption", "Rufe bei der SPÖ"),
        ("Abg. Dr. Haider: Nein!", None, None),
        ("Abg. Dr. Haider: Nein!", "comment", None),
        ("(A señora PONTÓN MONDELO: Non.)", None, "A señora PONTÓN MONDELO"),
        ("(O G.P. do BNG, presenta a seguinte emenda: Un.)", None, None),
        ("Abg. Birk: Nein! – Abg. Eiche: Doch!", "interruption", None),
        ("Beifall bei der SPÖ.", "interruption", None),
    ],
)
def test_a_note_names_a_caller_by_its_form(note: str, kind: str | None, name: str | None) -> None:
    assert find_caller(note, kind) == name


def test_words_between_turns_are_procedural_and_a_name_belongs_to_the_next_turn() -> None:
    component = parse(
        "<div><note>vor</note><note type='speaker'>A B:</note><note>(Pause.)</note><u who='#A'><seg>x</seg></u>"
        "<note type='speaker'>C D:</note><incident><desc>Lärm.</desc></incident></div>"
    )
    assert [turn.name for turn in component.turns] == ["A B"]
    assert [(each.text, each.ordinal) for each in component.remarks] == [("vor\n(Pause.)", 0), ("Lärm.\nC D:", 1)]


def test_identifiers_of_utterances_are_unique_and_of_the_file() -> None:
    component = parse(
        "<u xml:id='u1'><seg>a</seg></u><u><seg>b</seg></u><u xml:id='ParlaMint-QX_2019-05-14-A1.u2'><seg>c</seg></u>"
    )
    assert len({turn.id for turn in component.turns}) == 3
    assert all(turn.id.startswith("ParlaMint-QX_2019-05-14-A1") for turn in component.turns)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<TEI xmlns='http://www.tei-c.org/ns/1.0'><text>", "line 1: not well-formed"),
        (b"<!DOCTYPE TEI [<!ENTITY a 'b'>]><TEI xmlns='http://www.tei-c.org/ns/1.0'>&a;</TEI>", "entities"),
        (
            b"<!DOCTYPE TEI SYSTEM 'file:///etc/passwd'><TEI xmlns='http://www.tei-c.org/ns/1.0'>&a;</TEI>",
            "entit|Entity",
        ),
        (b"<TEI>" + b"<a>" * 3_000 + b"</a>" * 3_000 + b"</TEI>", "depth"),
    ],
)
def test_a_file_that_is_damaged_or_dangerous_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        parse_tree(data, "a.xml")


@pytest.mark.parametrize(
    ("body", "attributes", "reason"),
    [
        ("<u><seg><s><w>a</w></s></seg></u>", 'xml:id="ParlaMint-QX_2019-05-14"', "annotated"),
        ("<u><seg>a</seg></u>", 'xml:id="other"', "code of a corpus"),
    ],
)
def test_a_component_that_cannot_be_cited_is_refused(body: str, attributes: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        parse(body, attributes)


def test_files_of_tei_are_known_by_their_root_and_corpora_by_their_code() -> None:
    assert find_root_name(b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <TEI> --><teiCorpus>") == "teiCorpus"
    assert find_root_name("<TEI>".encode("utf-16")) == "TEI"
    assert find_root_name(b"<hansard>") is find_root_name(b"") is None
    assert [
        find_code(each) for each in ("ParlaMint-ES-GA-listOrg", "ParlaMint-AT_1996-03-13", "ParlaMint-taxonomy")
    ] == [
        "ES-GA",
        "AT",
        None,
    ]


def test_the_whole_entries_of_a_damaged_list_are_read() -> None:
    data = (FIXTURES / "ParlaMint-QX-listOrg.xml").read_bytes()
    entries, damaged = parse_entries(data, "a.xml", "org")
    assert [each.get("{http://www.w3.org/XML/1998/namespace}id") for each in entries] == [
        "KQ",
        "GOV",
        "party.MEER",
        "party.WALD",
    ]
    assert [each.line for each in damaged] == [25]
    with pytest.raises(SourceError, match="no whole"):
        parse_entries(b"<listOrg><org", "a.xml", "org")


def test_the_words_of_the_real_samples_are_those_of_their_segments(shared: Path) -> None:
    tei = "{http://www.tei-c.org/ns/1.0}"
    words = 0
    for path in sorted((shared / "data" / "parlamint").glob("*/ParlaMint-*_????-??-??-*.xml")):
        root = etree.parse(path).getroot()
        etree.strip_elements(root, *(tei + tag for tag in REMARKS), with_tail=False)
        said = "".join("".join(map(str, each.itertext())) for each in root.iter(f"{tei}u"))
        component = parse_component(parse_tree(path.read_bytes(), path.name), path.name)
        assert own_words(component) == "".join(said.split())
        words += len(said.split())
    assert words > 0
