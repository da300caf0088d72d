"""The SGML-like Hansard of 1981 to 1997: what is left out is supplied, and told. All of it here is fictional."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import SourceError
from loaders.hansard.sitting_model import Sitting, Speech
from loaders.hansard.sitting_xml import parse_sitting

DOCTYPE = '<!DOCTYPE hansard PUBLIC "-//PARLINFO//DTD HANSARD STORAGE//EN" []>\r\n'
ROOT = '<HANSARD DATE="05/12/1990" PROOF="No" PAGE="4971" CHAMBER = "Senate" SESSION.NO = 1 >'
OPENING = "<BUSINESS.START><PROCTEXT><PARA>The PRESIDENT took the chair at {}.</PARA></PROCTEXT></BUSINESS.START>"


def day(content: str, opening: str = "", doctype: str = DOCTYPE, encoding: str = "utf-8") -> Sitting:
    start = OPENING.format(opening) if opening else ""
    text = f"{doctype}{ROOT}\n<CHAMBER.XSCRIPT>{start}{content}</CHAMBER.XSCRIPT></HANSARD>"
    return parse_sitting(text.encode(encoding), "day.xml")


def talk(number: str, name: str, text: str, more: str = "") -> str:
    para = f'<PARA IN-LINE="1">{text}</PARA>'
    return f'<TALK.START><TALKER><NAME NAMEID="{number}">{name}</NAME>{more}</TALKER>{para}</TALK.START>'


def said(speech: Speech) -> list[tuple[str, str | None, str]]:
    assert "".join(speech.text[each.start : each.end] for each in speech.utterances) == speech.text
    return [
        (each.kind, each.talker.name_id if each.talker else None, speech.text[each.start : each.end].rstrip("\n"))
        for each in speech.utterances
    ]


SPEECH = (
    '<SPEECH PAGE="4974" SPEAKER="Abel Sen A." NAMEID="A1" PARTY="FP" ELECTORATE="FIC" MINISTERIAL="TIDES" GOV="1">'
)
ASIDE = (
    f'<INTERJECT CHAIR="0" SPEAKER="Senator Boon" NAMEID="B2">{talk("B2", "Senator Boon", "&mdash;Why?")}</INTERJECT>'
)


def test_attributes_and_elements_say_who_speaks() -> None:
    more = "<ELECTORATE>(Fictoria-</ELECTORATE><ROLE>Minister for Tides)</ROLE><TIME.STAMP>(10.28)</TIME.STAMP>"
    begin = talk("A1", "Senator ABEL", "&mdash;I begin &amp; go on.", more)
    found = day(
        f"{SPEECH}{begin}<PARA> (a) more;</PARA>{ASIDE}{talk('A1', 'Senator ABEL', '&mdash;So.')}</SPEECH>", "10 a.m."
    )
    speech = found.speeches[0]
    assert said(speech) == [
        ("turn", "A1", "—I begin & go on.\n(a) more;"),
        ("interjection", "B2", "—Why?"),
        ("continuation", "A1", "—So."),
    ]
    talker = speech.talker
    assert (talker.name, talker.full_name, talker.party) == ("Senator ABEL", "Abel Sen A.", "FP")
    assert (talker.state, talker.role, talker.in_government) == ("Fictoria", "Minister for Tides", True)
    assert (speech.page, speech.time) == ("4974", time(10, 28))
    assert (found.chamber, found.date, found.page, found.proof, found.session) == (
        "Senate", date(1990, 12, 5), "4971", False, "1",
    )  # fmt: skip
    assert list(found.warnings) == []


def test_what_only_an_attribute_says_is_taken_from_it() -> None:
    talker = day(f"{SPEECH}{talk('A1', 'Senator ABEL', 'x')}</SPEECH>").speeches[0].talker
    assert (talker.state, talker.role) == ("FIC", "TIDES")


def test_end_tags_left_out_are_supplied_and_told_with_their_lines() -> None:
    """Paragraphs, interjections, turns and debates end where the next one begins."""
    content = f"""<DEBATE TYPE="Bill" PAGE="1"><TITLE>TIDES BILL 1990<BREAK TYPE="LINE">MOON BILL 1990</TITLE>
{SPEECH}
{talk("A1", "Senator ABEL", "One.").replace("</PARA>", "")}
<PARA>Two.
<PARA>Three.
<INTERJECT NAMEID="B2">{talk("B2", "Senator Boon", "Why?")}
{talk("A1", "Senator ABEL", "So.")}
<SPEECH PAGE="2" NAMEID="B2">{talk("B2", "Senator BOON", "Mine.")}
<DEBATE TYPE="Motion"><TITLE>OTHER</TITLE><PROCTEXT><PARA>Agreed.</PARA></PROCTEXT></DEBATE>"""
    found = day(content)
    assert [said(speech) for speech in found.speeches] == [
        [("turn", "A1", "One.\nTwo.\nThree."), ("interjection", "B2", "Why?"), ("continuation", "A1", "So.")],
        [("turn", "B2", "Mine.")],
    ]
    assert [(each.path, each.title, each.bills) for each in found.debates] == [
        ((1,), "TIDES BILL 1990; MOON BILL 1990", ["TIDES BILL 1990", "MOON BILL 1990"]),
        ((2,), "OTHER", []),
    ]
    assert [(each.text, each.debate) for each in found.procedures] == [("Agreed.", (2,))]
    assert set(found.warnings) >= {
        "line 5: </PARA> supplied before </TALK.START>",
        "line 7: </PARA> supplied before <PARA>",
        "line 9: </INTERJECT> supplied before <TALK.START>",
        "line 10: </SPEECH> supplied before <SPEECH>",
        "line 11: </DEBATE> supplied before <DEBATE>",
    }


def test_an_end_without_a_beginning_is_left_out_and_told() -> None:
    found = day(f"{SPEECH}{talk('A1', 'Senator ABEL', 'x')}</PARA></INTERJECT></SPEECH>")
    assert found.speeches[0].text == "x"
    assert [warning.split(": ")[1] for warning in found.warnings] == [
        "</PARA> has no start tag and is skipped",
        "</INTERJECT> has no start tag and is skipped",
    ]


def test_many_repairs_of_a_kind_are_counted() -> None:
    found = day(f"{SPEECH}{talk('A1', 'Senator ABEL', 'x')}" + "<PARA>y\n" * 30 + "</SPEECH>")
    assert found.speeches[0].text == "x" + "\ny" * 30
    assert any("and 17 more: </PARA> supplied before <PARA>" in warning for warning in found.warnings)


def test_an_interjection_left_open_ends_with_what_holds_it() -> None:
    aside = talk("10001", "The Clerk", "&mdash;Petitions have been lodged.")
    by = '<PRESENTER><NAME NAMEID="A1">Senator Abel</NAME><FROM> (from 16 citizens).</FROM></PRESENTER>'
    block = f"<PRESENTER.BLOCK>by {by}</PRESENTER.BLOCK>"
    petition = f'<PETITION PAGE="2"><TITLE>Harbour</TITLE><PARA>We pray.</PARA>{block}</PETITION>'
    proctext = f'<PROCTEXT><INTERJECT NAMEID="10001">{aside}</PROCTEXT>'
    found = day(f'<PETITION.GRP PAGE="1"><TITLE>PETITIONS</TITLE>{proctext}{petition}</PETITION.GRP>')
    assert [(each.kind, each.text) for each in found.speeches] == [("interjection", "—Petitions have been lodged.")]
    assert [(each.text, each.debate) for each in found.procedures] == [
        ("We pray.\nby Senator Abel (from 16 citizens).", (1, 1))
    ]
    assert [presenter.name_id for presenter in found.debates[1].presenters] == ["A1"]
    assert list(found.warnings) == ["line 3: </INTERJECT> supplied before </PROCTEXT>"]


def test_questions_answers_and_written_ones() -> None:
    def block(tag: str) -> str:
        return f'<{tag} NAMEID="A1">{talk("A1", "Senator ABEL", tag)}</{tag}>'

    both = block("QUESTION") + block("ANSWER")
    asked = f"<QWN><TITLE>QUESTIONS</TITLE><QUESTION.BLOCK><TITLE>TIDES</TITLE>{both}</QUESTION.BLOCK></QWN>"
    number = '<QUESTION.NUMBER QON.NUMBER="9">(Question No. 9)</QUESTION.NUMBER>'
    written = f'<ANSWER.TO.QON PAGE="4"><TITLE>Ports</TITLE>{number}{both}</ANSWER.TO.QON>'
    circulated = f"<ANSWERS.TO.QUESTIONS><TITLE>ANSWERS</TITLE>{written}</ANSWERS.TO.QUESTIONS>"
    text = f"{ROOT}<CHAMBER.XSCRIPT>{asked}</CHAMBER.XSCRIPT>{circulated}</HANSARD>"
    found = parse_sitting(text.encode(), "day.xml")
    assert [(each.kind, each.answers, each.debate) for each in found.speeches] == [
        ("question", None, (1, 1)),
        ("answer", 1, (1, 1)),
        ("writtenQuestion", None, (2, 1)),
        ("writtenAnswer", 3, (2, 1)),
    ]
    assert [each.title for each in found.debates] == ["QUESTIONS", "TIDES", "ANSWERS", "Ports (Question No. 9)"]


def test_an_unknown_element_with_a_title_is_a_debate() -> None:
    found = day(f"<GRIEVANCE PAGE='3'><TITLE>PORTS</TITLE>{SPEECH}{talk('A1', 'x', 'y')}</SPEECH></GRIEVANCE>")
    assert [(each.title, each.page) for each in found.debates] == [("PORTS", "3")]
    assert [(each.text, each.debate) for each in found.speeches] == [("y", (1,))]


def test_a_division_in_tables() -> None:
    def side(name: str, count: int, *names: str) -> str:
        cells = "".join(f"<ROW><ENTRY>{each}</ENTRY><ENTRY></ENTRY></ROW>" for each in names)
        table = f"<TABLE><TGROUP><COLSPEC><TBODY>{cells}</TBODY></TGROUP></TABLE>"
        return f'<{name} NUMVOTES="{count}"><TITLE>{name}</TITLE>{table}</{name}>'

    found = day(
        '<DIVISION><DIVISION.HEADER><TAB TYPE="NORMAL">The Senate divided.</DIVISION.HEADER><DIVISION.DATA>'
        f"<PARA>(The President)</PARA>{side('AYES', 2, 'Abel, A.', 'Boon, B. (Teller)')}{side('NOES', 1, 'Coil, C.')}"
        "</DIVISION.DATA><DIVISION.RESULT><PARA>Question resolved.</PARA></DIVISION.RESULT></DIVISION>"
    ).divisions[0]
    assert [(vote.value, vote.name, vote.teller) for vote in found.votes] == [
        ("aye", "Abel, A.", False),
        ("aye", "Boon, B.", True),
        ("no", "Coil, C.", False),
    ]
    assert (found.header, found.ayes, found.noes) == ("The Senate divided.\n(The President)", 2, 1)


@pytest.mark.parametrize(
    ("opening", "stamps", "expected"),
    [
        ("10 a.m.", ["10.28", "12.05", "12.59", "3.04"], [time(10, 28), time(12, 5), time(12, 59), time(15, 4)]),
        ("2.15 p.m.", ["2.20", "7.30"], [time(14, 20), time(19, 30)]),
        ("noon", ["12.04"], [time(12, 4)]),
        ("10 a.m.", ["9.28", "11.00"], [None, time(11)]),
        ("", ["10.28"], [None]),
        ("10 a.m.", ["3.30 p.m.", "15.45"], [time(15, 30), time(15, 45)]),
    ],
)
def test_times_are_put_on_the_clock_of_the_day(opening: str, stamps: list[str], expected: list[time | None]) -> None:
    """From the hour at which the chair was taken on; what stays open is left out and told, not guessed."""
    speeches = (f"{SPEECH}{talk('A1', 'x', 'y', f'<TIME.STAMP>({each})</TIME.STAMP>')}</SPEECH>" for each in stamps)
    found = day("".join(speeches), opening)
    assert [speech.time for speech in found.speeches] == expected
    assert sum("before or after noon" in warning for warning in found.warnings) == expected.count(None)


def test_named_characters_need_no_declaration_and_unknown_ones_stay() -> None:
    found = day(f"{SPEECH}{talk('A1', 'x', 'caf&eacute; &frac12; &#8212; R&D &nosuch; &lt;x&gt;')}</SPEECH>")
    assert found.speeches[0].text == "café ½ — R&D &nosuch; <x>"
    assert list(found.warnings) == ["line 3: &nosuch; is an unknown character reference: kept verbatim"]


def test_a_declared_character_is_harmless_and_any_other_entity_refused() -> None:
    named = '<!DOCTYPE hansard [<!ENTITY mdash SDATA "[mdash ]">]>'
    assert day(f"{SPEECH}{talk('A1', 'x', 'a&mdash;b')}</SPEECH>", doctype=named).speeches[0].text == "a—b"
    for declared in ('a "aaaa"', 'b SYSTEM "file:///etc/passwd"', '% ISOpub PUBLIC "ISO"'):
        with pytest.raises(SourceError, match="declares entities"):
            day("", doctype=f"<!DOCTYPE hansard [<!ENTITY {declared}>]>")


def test_the_bytes_of_windows_are_read_and_told() -> None:
    found = day(f"{SPEECH}{talk('A1', 'x', 'a – b')}</SPEECH>", encoding="cp1252")
    assert found.speeches[0].text == "a \u2013 b"
    assert found.warnings[0] == "it is not utf-8: read as cp1252"


TURN = f"{SPEECH}{talk('A1', 'Abel', 'one two three')}</SPEECH>"
WHOLE = f"{ROOT}<CHAMBER.XSCRIPT><DEBATE><TITLE>T</TITLE>{TURN}</DEBATE></CHAMBER.XSCRIPT></HANSARD>"


@pytest.mark.parametrize(
    "cut", ["two", "</TALK.START>", "</SPEECH>", "</DEBATE>", "</CHAMBER.XSCRIPT>", "ANSARD>", "TALKER>"]
)
def test_a_file_that_ends_within_the_record_is_refused(cut: str) -> None:
    with pytest.raises(SourceError, match="truncated"):
        parse_sitting(WHOLE[: WHOLE.rindex(cut)].encode(), "day.xml")


def test_a_file_without_its_last_tag_is_whole() -> None:
    found = parse_sitting(WHOLE.removesuffix("</HANSARD>").encode(), "day.xml")
    assert found.speeches[0].text == "one two three"
    assert list(found.warnings) == ["line 1: </HANSARD> supplied at the end of the file"]


def test_endless_nesting_is_refused() -> None:
    with pytest.raises(SourceError, match="nested deeper"):
        day("<PROCTEXT>" * 5000)


TAGS = [
    f"<{slash}{name}>"
    for name in ("PARA", "INTERJECT", "SPEECH", "TALK.START", "DEBATE", "TABLE", "ENTRY", "PROCTEXT", "QUESTION")
    for slash in ("", "/")
]


@given(st.lists(st.sampled_from(TAGS), min_size=1, max_size=20))
def test_whatever_is_left_out_or_too_much_no_word_is_lost(tags: list[str]) -> None:
    """Between tags in any order there is a word each, and each comes out once."""
    marks = [f"w{number}" for number in range(len(tags))]
    found = day("".join(f"{tag}{mark} " for tag, mark in zip(tags, marks, strict=True)) + "</CHAMBER.XSCRIPT>")
    texts = [each.text for each in (*found.speeches, *found.procedures)]
    assert sorted(word for text in texts for word in text.split()) == sorted(marks)


@given(st.integers(0, len(WHOLE)), st.integers(0, 30), st.text(st.sampled_from("<>/&#;x1 AP\x01\"'"), max_size=8))
def test_any_damage_is_read_or_refused(start: int, length: int, instead: str) -> None:
    """A piece cut out or replaced gives a sitting or an error about the file, and never anything else."""
    with suppress(SourceError):
        assert parse_sitting((WHOLE[:start] + instead + WHOLE[start + length :]).encode(), "day.xml").chamber
