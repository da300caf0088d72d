"""Whose words a paragraph is, where no markup says it: names in bold, the floor after the chair, remarks. Fictional."""

from __future__ import annotations

from datetime import date

import pytest
from lxml import etree
from pyoxigraph import Literal, Quad

from kg.vocabulary import FOAF, SKOS, mint
from loaders.hansard.authorities import Authorities, merge_quads
from loaders.hansard.bold_names import read_bold_name
from loaders.hansard.offices import strip_office
from loaders.hansard.sitting_model import Sitting, Talker
from loaders.hansard.sitting_xml import parse_sitting

HOUSE = mint("chamber", "au-representatives")
HEADER = "<session.header><date>1974-05-08</date><chamber>REPS</chamber></session.header>"


def day(*speeches: str) -> Sitting:
    debate = f"<debate><debateinfo><title>Kelp</title></debateinfo>{''.join(speeches)}</debate>"
    text = f'<hansard version="2.1">{HEADER}<chamber.xscript>{debate}</chamber.xscript></hansard>'
    return parse_sitting(text.encode(), "day.xml")


def talk(number: str, name: str, text: str) -> str:
    return (
        f'<talk.start><talker><name.id>{number}</name.id><name role="display">{name}</name></talker>'
        f"<para>—{text}</para></talk.start>"
    )


def bold(name: str, rest: str) -> str:
    return f'<para><inline font-weight="bold">{name}</inline>{rest}</para>'


def said(sitting: Sitting, number: int = 0) -> list[tuple[str, str | None, str | None, str]]:
    speech = sitting.speeches[number]
    assert "".join(speech.text[each.start : each.end] for each in speech.utterances) == speech.text
    return [
        (
            each.kind,
            each.talker.name if each.talker else None,
            each.talker.name_id if each.talker else None,
            speech.text[each.start : each.end].rstrip("\n"),
        )
        for each in speech.utterances
    ]


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        (bold("Government members", "—No!"), ("Government members", "crowd")),
        (bold("An opposition member—", "You did."), ("An opposition member", "crowd")),
        (bold("Honourable members:", " Hear, hear!"), ("Honourable members", "crowd")),
        (bold("Mr. ABEL", " (Fictown) [4.15]. - I think so."), ("Mr. ABEL", "turn")),
        (bold("Senator O'TARN (Fictoria)", ".-No."), ("Senator O'TARN", "turn")),
        (bold("Senator", " McQUILL (New Fict"), ("Senator McQUILL", "turn")),
        (bold("Mr Abel", "—Why?"), ("Mr Abel", "call")),
        (bold("Mr DEPUTY SPEAKER", "—Order!"), ("Mr DEPUTY SPEAKER", "chair")),
        ("<p><span class='x'><span style='font-weight:bold;'>Honourable members:</span> Hear!</span></p>",
         ("Honourable members", "crowd")),
        (bold("(Mr Jensen)", "—Is it seconded?"), None),
        (bold("Part 6D.5", "—Miscellaneous"), None),
        (bold("Mr SPEAKER (Mr Noel Crane)", " took the chair."), None),
        (bold("Mr ABEL:", " To move—"), None),
        (bold("Mr Abel", " was right."), None),
        ("<para>Hear <inline font-weight='bold'>Mr ABEL</inline>—who spoke.</para>", None),
        ("<para>Mr ABEL—No.</para>", None),
        ("<para/>", None),
    ],
)  # fmt: skip
def test_name_in_bold_is_read_by_its_form(paragraph: str, expected: tuple[str, str] | None) -> None:
    assert read_bold_name(etree.fromstring(paragraph)) == expected


def test_crowd_calls_out_and_the_member_goes_on() -> None:
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'One.')}{bold('Government members', '—No!')}<para>Two.</para></speech>"
    )
    assert said(sitting) == [
        ("turn", "Mr ABEL", "A1", "—One."),
        ("interjection", "Government members", None, "Government members—No!"),
        ("continuation", "Mr ABEL", "A1", "Two."),
    ]
    assert [each.by_form for each in sitting.speeches[0].utterances] == [False, True, False]
    assert [warning for warning in sitting.warnings if "Government members (1)" in warning]


def test_next_member_keeps_the_floor_that_a_name_in_capitals_takes() -> None:
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'One.')}{bold('Mr. BOON', ' (Fictown) [4.15]. - Two.')}<para>Three.</para>"
        f"<interjection>{talk('A1', 'Mr Abel', 'Four?')}</interjection><para>Mr. BOON. - Five.</para></speech>",
        f"<speech>{talk('B2', 'Mr BOON', 'Six.')}</speech>",
    )
    assert said(sitting) == [
        ("turn", "Mr ABEL", "A1", "—One."),
        ("continuation", "Mr. BOON", "B2", "Mr. BOON (Fictown) [4.15]. - Two.\nThree."),
        ("interjection", "Mr Abel", "A1", "—Four?"),
        ("continuation", "Mr. BOON", "B2", "Mr. BOON. - Five."),
    ]


def test_name_in_bold_that_several_have_in_the_file_has_no_identifier() -> None:
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'One.')}{bold('Mr BOON', '—Two.')}</speech>",
        f"<speech>{talk('B2', 'Mr BOON', 'Three.')}</speech><speech>{talk('B3', 'Mr BOON', 'Four.')}</speech>",
    )
    assert said(sitting)[1] == ("continuation", "Mr BOON", None, "Mr BOON—Two.")


def test_chair_that_continues_does_not_take_the_floor_of_a_member() -> None:
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'I table letters.')}"
        f"<interjection>{talk('10000', 'Mr SPEAKER', 'Order!')}</interjection>"
        f"<continue>{talk('10000', 'Mr SPEAKER', 'Is leave granted?')}</continue>"
        "<quote><para>Dear Sir, kelp.</para></quote><para>Yours.</para></speech>"
    )
    assert said(sitting) == [
        ("turn", "Mr ABEL", "A1", "—I table letters."),
        ("interjection", "Mr SPEAKER", "10000", "—Order!"),
        ("continuation", "Mr SPEAKER", "10000", "—Is leave granted?"),
        ("continuation", "Mr ABEL", "A1", "Dear Sir, kelp.\nYours."),
    ]


def test_another_member_who_continues_takes_the_floor_and_the_chair_keeps_its_own() -> None:
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'One.')}<continue>{talk('B2', 'Mr BOON', 'Two.')}</continue>"
        "<para>Three.</para></speech>",
        f"<speech>{talk('10000', 'Mr SPEAKER', 'One.')}<interjection>{talk('B2', 'Mr Boon', 'Two.')}</interjection>"
        f"<continue>{talk('10000', 'Mr SPEAKER', 'Three.')}</continue><para>Four.</para></speech>",
    )
    assert said(sitting)[1] == ("continuation", "Mr BOON", "B2", "—Two.\nThree.")
    assert said(sitting, 1)[-1] == ("continuation", "Mr SPEAKER", "10000", "—Three.\nFour.")


def test_document_after_leave_is_of_the_member_also_within_the_element_of_the_chair() -> None:
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'I seek leave.')}<interjection>{talk('10000', 'Mr SPEAKER', 'Leave?')}"
        "<para>Leave granted.</para><para>The letter read as follows—</para><para>Dear Sir.</para></interjection>"
        "</speech>"
    )
    assert said(sitting)[2:] == [
        ("remark", None, None, "Leave granted."),
        ("continuation", "Mr ABEL", "A1", "The letter read as follows—\nDear Sir."),
    ]


@pytest.mark.parametrize(
    "remark",
    [
        "Opposition members interjecting—",
        "Debate (on motion by Mr Boon) adjourned.",
        "Question resolved in the affirmative.",
        "The member for Fictown then left the chamber.",
        "Sitting suspended from 6.00 p.m. to 8.30 p.m.",
        "Bill read a second time.",
        "Leave granted for debate to continue forthwith.",
    ],
)
def test_remark_of_the_record_is_of_nobody_within_the_words_of_the_chair_too(remark: str) -> None:
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'One.')}<interjection>{talk('10000', 'Mr SPEAKER', 'Order!')}"
        f"<para>{remark}</para><para>The House will come to order.</para></interjection></speech>",
        f"<speech>{talk('A1', 'Mr ABEL', 'One.')}<para>{remark}</para><para>Two.</para></speech>",
    )
    assert [each[:2] for each in said(sitting)] == [
        ("turn", "Mr ABEL"), ("interjection", "Mr SPEAKER"), ("remark", None), ("interjection", "Mr SPEAKER"),
    ]  # fmt: skip
    assert [each[:2] for each in said(sitting, 1)] == [
        ("turn", "Mr ABEL"), ("remark", None), ("continuation", "Mr ABEL"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "block", "expected"),
    [
        ("Order!", "<para>The answer is in order.</para>", ("unattributed", None)),
        ("The rule is:", "<para>A member may explain.</para>", ("interjection", "Mr Boon")),
        ("Why?", "<para>A1 Mr ABEL—Because.</para>", ("continuation", "Mr ABEL")),
        ("Table them!", "<quote><para>Dear Sir.</para></quote>", ("continuation", "Mr ABEL")),
        ("Why?", "<para>Question agreed to.</para>", ("remark", None)),
    ],
)
def test_words_without_a_name_after_an_interjection_are_of_nobody_unless_their_form_shows_it(
    call: str, block: str, expected: tuple[str, str | None]
) -> None:
    aside = f"<interjection>{talk('B2', 'Mr Boon', call)}</interjection>"
    sitting = day(f"<speech>{talk('A1', 'Mr ABEL', 'One.')}{aside}{block}</speech>")
    assert said(sitting)[2][:2] == expected
    assert len(said(sitting)) == 3
    assert any("left open" in warning for warning in sitting.warnings) == (expected[0] == "unattributed")


LISTED = "<list><item label='1.'><para>In May.</para></item><item label='2.'><para>In June.</para></item></list>"


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (f"{LISTED}<para>That shows it.</para>", [("interjection", "Mr Boon"), ("continuation", "Mr ABEL")]),
        (f"<quote><para>Dear Sir.</para></quote>{LISTED}<para>So.</para>",
         [("interjection", "Mr Boon"), ("continuation", "Mr ABEL")]),
        ("<para>“We gave notice.</para><para>“Twice.”</para><para>That shows it.</para><para>So.</para>",
         [("interjection", "Mr Boon"), ("unattributed", None)]),
    ],
)  # fmt: skip
def test_what_an_interjection_opens_by_a_colon_ends_with_it(
    blocks: str, expected: list[tuple[str, str | None]]
) -> None:
    aside = f"<interjection>{talk('B2', 'Mr Boon', 'The answers are:')}</interjection>"
    found = said(day(f"<speech>{talk('A1', 'Mr ABEL', 'One.')}{aside}{blocks}</speech>"))
    assert [each[:2] for each in found[2:]] == expected


def test_a_speech_that_the_chair_has_printed_is_not_the_chairs() -> None:
    leave = "Is leave granted? Leave is granted. (The speech read as follows)—"
    paragraphs = "<para>The bill pays for a sea wall.</para><para>I commend it.</para>"
    own = day(f"<speech>{talk('10000', 'The PRESIDENT', leave)}{paragraphs}</speech>")
    assert [each[:2] for each in said(own)] == [("turn", "The PRESIDENT"), ("unattributed", None)]
    assert any("left open" in warning for warning in own.warnings)
    chair = f"<interjection>{talk('10000', 'The PRESIDENT', leave)}{paragraphs}</interjection>"
    inside = day(f"<speech>{talk('A1', 'Senator ABEL', 'I seek leave.')}{chair}</speech>")
    assert [each[1] for each in said(inside)] == ["Senator ABEL", "The PRESIDENT", "Senator ABEL"]


VOTES = "<division><division.header><para>The House divided.</para></division.header><division.data><ayes><names>"
VOTES += "<name>Abel, A.</name></names></ayes></division.data>{}</division>"
CHAIR = f"<interjection>{talk('10000', 'Mr SPEAKER', '{}')}</interjection>"


@pytest.mark.parametrize(
    ("before", "question"),
    [
        ("<para>Question put:</para><para>That the bill be now read.</para>", "That the bill be now read"),
        ("<para>Motion (by <inline>Mr Boon</inline>) put:</para><motion><para>That he be heard.</para></motion>",
         "That he be heard"),
        ("<para>I move:</para><para>That we rise.</para><para>Question put.</para>", "That we rise"),
        ("<para>Question put, that the clause (No. 2) stand.</para>", "that the clause (No. 2) stand"),
        (CHAIR.format("Order! The question now is that Bill [No. 2] be read. Ring the bells."),
         "that Bill [No. 2] be read"),
        ("<para>Question put:</para><para>That the House:</para><para>(a) rise; and</para><para>(b) go.</para>",
         "That the House:\n(a) rise; and\n(b) go"),
        ("<para>I move:</para><para>That the House rise.</para>", "That the House rise"),
        ("<para>I speak. I move that the House rise.</para>", "that the House rise"),
        ("<para>I move that we rise. I shall go on.</para><para>I do.</para>", None),
        ("<para>The question is that nobody listens to me.</para>", None),
        ("<para>I have spoken.</para>", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("inside", [True, False])
def test_a_division_has_the_question_that_was_put_before_it(before: str, question: str | None, inside: bool) -> None:
    after = "<para>Bill agreed to.</para><para>Question put:</para><para>That it be over.</para>"
    vote = VOTES.format("<division.result><para>Question agreed to.</para></division.result>")
    both = f"{vote}{after}</speech>" if inside else f"</speech>{vote}"
    sitting = day(f"<speech>{talk('A1', 'Mr ABEL', 'One.')}{before}{both}{vote}")
    first, second = (each.question for each in sitting.divisions)
    assert (first.text if first else None) == question
    assert (second.text if second else None) == ("That it be over" if inside else None)
    if first is not None:
        assert first.speech == 1
        assert sitting.speeches[0].text[first.start : first.end] == question


def test_a_question_in_text_between_two_divisions_is_of_the_second() -> None:
    vote = VOTES.format("<para>Original question put:</para><para>That the motion be agreed to.</para>")
    sitting = day(
        f"<speech>{talk('A1', 'Mr ABEL', 'One.')}<para>Question put:</para><para>That A.</para></speech>", vote, vote
    )
    first, second = (each.question for each in sitting.divisions)
    assert first is not None
    assert second is not None
    assert (first.text, second.text, second.speech) == ("That A", "That the motion be agreed to", None)
    assert sitting.procedures[second.procedure or 0].text[second.start : second.end] == second.text


def test_sentence_of_a_member_about_a_question_is_no_remark() -> None:
    words = "Question put to me by my friend: why was the sitting suspended? I shall answer it."
    assert len(said(day(f"<speech>{talk('A1', 'Mr ABEL', 'One.')}<para>{words}</para></speech>"))) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Quill, Marigold MP (The SPEAKER)", "Quill, Marigold MP"),
        ("Quill, Sen Marigold (The ACTING DEPUTY PRESIDENT)", "Quill, Sen Marigold"),
        ("Quill, Marigold (Leader of the House)", "Quill, Marigold"),
        ("Quill, Marigold (Goldie)", "Quill, Marigold (Goldie)"),
        ("The CHAIRMAN (Senator Quill", ""),
        ("SPEAKER, The", ""),
        ("Mr Quill interjecting—", "Mr Quill"),
        ("Opposition members interjecting—", ""),
    ],
)
def test_office_is_no_part_of_a_name(name: str, expected: str) -> None:
    assert strip_office(name) == expected


def test_stored_names_lose_the_offices_of_earlier_versions() -> None:
    person, graph = mint("person", "aph-Q1"), mint("graph", "ref", "person", "aph-Q1")
    stored = [
        Quad(person, FOAF.name, Literal("Quill, Marigold (The SPEAKER)"), graph),
        Quad(person, SKOS.altLabel, Literal("The SPEAKER"), graph),
    ]
    assert merge_quads(stored, []) == [Quad(person, FOAF.name, Literal("Quill, Marigold"), graph)]


def test_name_of_whoever_interjects_is_no_person_without_an_identifier() -> None:
    shared = Authorities(HOUSE, date(1974, 5, 8))
    assert shared.person(Talker("Mr Quill interjecting—")) is None
    assert shared.person(Talker("Mr Quill interjecting—", name_id="Q1")) == mint("person", "aph-Q1")
    names = {quad.object.value for quads in shared.graphs.values() for quad in quads if quad.predicate == FOAF.name}
    assert names == {"Mr Quill"}


def test_unknown_parties_in_a_warning_are_capped() -> None:
    shared = Authorities(HOUSE, date(1974, 5, 8))
    for number in range(40):
        shared.party(f"Fictional {number}")
    [warning] = shared.warnings()
    assert "and 28 more" in warning
