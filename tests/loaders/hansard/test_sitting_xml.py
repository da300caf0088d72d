"""Hansard of schemas 2.0 and 2.1, and what every form has in common. All days and people here are fictional."""

from __future__ import annotations

from datetime import date, time
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import SourceError
from loaders.hansard.sitting_model import Sitting, Speech, Vote
from loaders.hansard.sitting_xml import parse_sitting

HEADER = (
    "<date>2031-03-04</date><parliament.no>70</parliament.no><chamber>{}</chamber><page.no>7</page.no><proof>1</proof>"
)


def day(content: str, chamber: str = "REPS", outside: str = "", root: str = 'hansard version="2.1"') -> Sitting:
    """Read a day whose chamber has some content. The content may be indented: white space is no part of it."""
    head = f"<session.header>{HEADER.format(chamber)}</session.header>"
    xml = f"<{root}>{head}<chamber.xscript>{content}</chamber.xscript>{outside}</hansard>"
    return parse_sitting(xml.encode(), "day.xml")


def talk(number: str, name: str, text: str, **fields: str) -> str:
    """A ``talk.start``; names of fields have their dots as underscores."""
    more = "".join(f"<{field.replace('_', '.')}>{value}</{field.replace('_', '.')}>" for field, value in fields.items())
    names = f'<name role="metadata">{name}, Ada, MP</name><name role="display">Ms {name.upper()}</name>'
    para = f"<para>{text}</para>" if text else ""
    return f"<talk.start><talker>{more}{names}<name.id>{number}</name.id></talker>{para}</talk.start>"


def said(speech: Speech) -> list[tuple[str, str | None, str]]:
    """Who says what in a speech; the utterances cover its text."""
    assert "".join(speech.text[part.start : part.end] for part in speech.utterances) == speech.text
    return [
        (part.kind, part.talker.name_id if part.talker else None, speech.text[part.start : part.end].rstrip("\n"))
        for part in speech.utterances
    ]


def debate(content: str, title: str = "TIDES", kind: str = "Miscellaneous", more: str = "") -> str:
    info = f"<debateinfo><title>{title}</title><page.no>8</page.no><type>{kind}</type>{more}</debateinfo>"
    return f"<debate>{info}{content}</debate>"


def test_a_turn_has_what_others_threw_in_at_its_place() -> None:
    """An interjection is an utterance of its own. A speaker who goes on is named by ``continue``."""
    speech = day(
        debate(
            "<speech>"
            + talk("A1", "Abel", "—I begin.", time_stamp="09:31:00", page_no="9", electorate="Fictown", party="FP")
            + "<para>More.</para>"
            + f"<interjection>{talk('B2', 'Boon', '—Why?')}<para>Say why.</para></interjection>"
            + f"<continue>{talk('A1', 'Abel', '—Because.')}</continue>"
            + f"<interjection>{talk('10000', 'Chair', '—Order!')}</interjection>"
            + "<para>I end.</para></speech>"
        )
    ).speeches[0]
    assert said(speech) == [
        ("turn", "A1", "—I begin.\nMore."),
        ("interjection", "B2", "—Why?\nSay why."),
        ("continuation", "A1", "—Because."),
        ("interjection", "10000", "—Order!"),
        ("unattributed", None, "I end."),
    ]
    assert (speech.time, speech.page, speech.debate) == (time(9, 31), "9", (1,))
    assert (speech.talker.electorate, speech.talker.party, speech.talker.full_name) == (
        "Fictown",
        "FP",
        "Abel, Ada, MP",
    )


@pytest.mark.parametrize(("flag", "expected"), [("1", True), ("0", False), ("", None)])
def test_flags_are_known_or_unknown(flag: str, expected: bool | None) -> None:
    talker = day(f"<speech>{talk('A1', 'Abel', 'x', in_gov=flag, first_speech=flag)}</speech>").speeches[0].talker
    assert (talker.in_government, talker.first_speech) == (expected, expected)


def test_the_seat_of_a_senator_is_a_state() -> None:
    turn = f"<speech>{talk('A1', 'Abel', 'x', electorate='Fictoria', role='Minister for Tides')}</speech>"
    senator, member = day(turn, "SENATE").speeches[0].talker, day(turn, "REPS").speeches[0].talker
    assert (senator.state, senator.electorate, senator.role) == ("Fictoria", None, "Minister for Tides")
    assert (member.state, member.electorate) == (None, "Fictoria")


def test_words_that_are_not_recorded_leave_an_empty_utterance() -> None:
    """Who interjected is known though not what was said."""
    inset = f"<interjection>{talk('B2', 'Boon', '')}</interjection>"
    assert said(day(f"<speech>{talk('A1', 'Abel', 'Go.')}{inset}</speech>").speeches[0]) == [
        ("turn", "A1", "Go."),
        ("interjection", "B2", ""),
    ]


def test_a_remark_of_the_record_is_nobodys() -> None:
    inner = "<para><inline>Government members interjecting</inline>—</para><para>As I said.</para>"
    interrupt = "<interrupt><para>Sitting suspended.</para></interrupt>"
    speech = day(f"<speech>{talk('A1', 'Abel', 'Go.')}{inner}{interrupt}</speech>").speeches[0]
    assert said(speech) == [
        ("turn", "A1", "Go."),
        ("remark", None, "Government members interjecting—"),
        ("continuation", "A1", "As I said."),
        ("remark", None, "Sitting suspended."),
    ]


def test_somebody_else_who_goes_on_is_told() -> None:
    found = day(
        f"<speech>{talk('A1', 'Abel', 'Go.')}<continue>{talk('B2', 'Boon', 'I.')}</continue><para>And.</para></speech>"
    )
    assert said(found.speeches[0]) == [("turn", "A1", "Go."), ("continuation", "B2", "I.\nAnd.")]
    assert any("Ms BOON continues in the turn of Ms ABEL" in warning for warning in found.warnings)


def test_only_the_indentation_of_the_markup_is_collapsed() -> None:
    """A run of white space with a line break in it is one space; two spaces and a no-break space are the record's."""
    text = "  One  two\n      <inline>three</inline>\u00a0four, \n five  "
    speech = day(f"<speech>{talk('A1', 'Abel', text)}</speech>").speeches[0]
    assert speech.text == "One  two three\u00a0four, five"


def test_lists_tables_and_motions_are_paragraphs() -> None:
    blocks = """
        <motion><para>That it be so.</para></motion>
        <quote><para>Quoted.</para></quote>
        <list><item label="(a)"><para>first</para><list><item label="(i)"><para>inner</para></item></list></item>
          <item label="(b)"/></list>
        <table><tgroup><colspec/><tbody>
          <row><entry><para>Port</para></entry><entry><para>Tide</para><para>height</para></entry></row>
          <row><entry><para>Low Bay</para></entry><entry/></row></tbody></tgroup></table>
        <amendments><amendment><para>(1) Omit.</para></amendment></amendments>"""
    assert day(f"<speech>{talk('A1', 'Abel', 'I move:')}{blocks}</speech>").speeches[0].text.split("\n") == [
        "I move:", "That it be so.", "Quoted.", "(a) first", "(i) inner", "(b)", "Port\tTide height", "Low Bay",
        "(1) Omit.",
    ]  # fmt: skip


def test_an_answer_answers_the_question_before_it_in_its_debate() -> None:
    def turn(tag: str) -> str:
        return f"<{tag}>{talk('A1', 'Abel', tag)}</{tag}>"

    speeches = day(
        debate(turn("question") + turn("answer") + turn("answer")) + debate(turn("answer")),
        outside=f"<answers.to.questions>{debate(turn('question') + turn('answer'))}</answers.to.questions>",
    ).speeches
    assert [(speech.kind, speech.answers) for speech in speeches] == [
        ("question", None),
        ("answer", 1),
        ("answer", 1),
        ("answer", None),
        ("writtenQuestion", None),
        ("writtenAnswer", 5),
    ]


def test_debates_nest_and_say_which_bills_they_are_of() -> None:
    moon = "<cognateinfo><title>MOON BILL 2031</title><id.no>R9</id.no></cognateinfo>"
    cognate = f"<cognate><para>Cognate bill:</para>{moon}</cognate>"
    inner = "<subdebate.1><subdebateinfo><title>Second Reading</title></subdebateinfo></subdebate.1>" * 2
    found = day(debate(inner, "TIDES BILL 2031", "Bills", f"<id.no>R8</id.no>{cognate}") + debate("", "BILLS", "Bills"))
    assert [(part.path, part.title, part.bills, part.bill_ids) for part in found.debates] == [
        ((1,), "TIDES BILL 2031", ["TIDES BILL 2031", "MOON BILL 2031"], ["R8", "R9"]),
        ((1, 1), "Second Reading", [], []),
        ((1, 2), "Second Reading", [], []),
        ((2,), "BILLS", [], []),
    ]
    assert found.procedures[0].text == "Cognate bill:"


def test_titles_are_joined_and_not_repeated() -> None:
    info = "<subdebateinfo><title>One</title><title>Two</title><subtitle>(Question No. 5)</subtitle></subdebateinfo>"
    found = day(f"<subdebate.1>{info}<title>Two</title><title>Three</title></subdebate.1>")
    assert found.debates[0].title == "One; Two (Question No. 5)"
    assert [part.text for part in found.procedures] == ["Three"]


DIVISION = """<division>
  <division.header><time.stamp>17:03:00</time.stamp><para>The House divided.</para></division.header>
  <para>(Ms Speaker)</para>
  <division.data><ayes><num.votes>2</num.votes><title>AYES</title>
    <names><name>Abel, A.</name><name>Boon, B *</name></names></ayes>
  <noes><num.votes>1</num.votes><title>NOES</title><names><name>Coil, C (teller)</name></names></noes>
  <pairs><title>PAIRS</title><names><name>Dorn, D.</name></names></pairs></division.data>
  <para>* denotes teller</para><division.result><para>Question agreed to.</para></division.result></division>"""


def test_a_division_has_its_names_tellers_and_result() -> None:
    found = day(debate(DIVISION)).divisions[0]
    assert found.votes == [
        Vote("aye", "Abel, A."),
        Vote("aye", "Boon, B", True),
        Vote("no", "Coil, C", True),
        Vote("pair", "Dorn, D."),
    ]
    assert (found.ayes, found.noes, found.result, found.time) == (2, 1, "Question agreed to.", time(17, 3))
    assert (found.header, found.debate) == ("The House divided.\n(Ms Speaker)", (1,))


def test_a_division_in_a_turn_is_not_of_its_text() -> None:
    found = day(f"<speech>{talk('A1', 'Abel', 'Go.')}{DIVISION}<para>On.</para></speech>")
    assert (found.speeches[0].text, found.divisions[0].ordinal) == ("Go.\nOn.", 1)
    assert [part.text for part in found.procedures] == ["* denotes teller"]


def test_what_nobody_spoke_is_procedural_text_at_its_place() -> None:
    opening = "<day.start>2031-03-04</day.start><para>The <inline>Chair</inline> took the chair.</para>"
    start = f"<business.start>{opening}</business.start>"
    info = "<adjournmentinfo><page.no>12</page.no></adjournmentinfo>"
    end = f"<adjournment>{info}<para>House adjourned.</para></adjournment>"
    found = day(
        start
        + debate(f"<para>Bill presented.</para><speech>{talk('A1', 'Abel', 'x')}</speech><para>Agreed.</para>")
        + end
    )
    assert [(part.text, part.ordinal, part.debate) for part in found.procedures] == [
        ("The Chair took the chair.", 0, ()),
        ("Bill presented.", 0, (1,)),
        ("Agreed.", 1, (1,)),
        ("House adjourned.", 1, ()),
    ]


def test_words_where_none_are_foreseen_are_kept_and_told() -> None:
    found = day(debate("loose <novelty>new words</novelty> after"))
    assert found.procedures[0].text == "loose\nnew words\nafter"
    assert any("<novelty>" in warning for warning in found.warnings)


def test_a_turn_without_a_talker_is_kept_and_told() -> None:
    found = day("<speech><para>Whose?</para></speech>")
    assert (found.speeches, [part.text for part in found.procedures]) == ([], ["Whose?"])
    assert any("without a talker" in warning for warning in found.warnings)


def test_the_chair_between_turns_has_a_turn_of_its_own() -> None:
    speech = day(debate(f"<interjection>{talk('10000', 'Chair', '—Order!')}</interjection>")).speeches[0]
    assert (speech.kind, said(speech)) == ("interjection", [("interjection", "10000", "—Order!")])


def test_a_motion_without_a_speech_has_its_mover() -> None:
    motion = """<motionnospeech><name>Mr ELM</name><electorate>(Fictown</electorate><role>—Leader of the House)</role>
      <time.stamp>15:50:00</time.stamp><inline>—I move:</inline>
      <motion><para>That we rise.</para></motion></motionnospeech>"""
    speech = day(debate(motion)).speeches[0]
    assert (speech.kind, speech.text, speech.time) == ("motion", "—I move:\nThat we rise.", time(15, 50))
    assert (speech.talker.name, speech.talker.electorate, speech.talker.role) == (
        "Mr ELM",
        "Fictown",
        "Leader of the House",
    )


def test_a_petition_has_its_presenters_and_signatures() -> None:
    petition = f"""<petition.group><petition.groupinfo><title>PETITIONS</title></petition.groupinfo>
      <petition><petitioninfo><title>Harbour</title><no.signed>16</no.signed><names><name>Abel</name></names>
      </petitioninfo><para>We pray.</para>
      <presenter>{talk("A1", "Abel", "Ms Abel (from 16 citizens)")}</presenter></petition></petition.group>"""
    found = day(petition)
    assert [(part.path, part.title, part.signatures) for part in found.debates] == [
        ((1,), "PETITIONS", None),
        ((1, 1), "Harbour", 16),
    ]
    assert [presenter.name_id for presenter in found.debates[1].presenters] == ["A1"]
    assert found.procedures[0].text == "We pray.\nMs Abel (from 16 citizens)"


@pytest.mark.parametrize(
    ("tag", "venue"), [("maincomm", "Main Committee"), ("fedchamb", "Federation Chamber"), ("annex", "annex")]
)
def test_what_met_apart_says_where(tag: str, venue: str) -> None:
    found = day(debate(""), outside=f"<{tag}.xscript><para>Sat.</para>{debate('')}</{tag}.xscript>")
    assert [part.venue for part in found.debates] == [None, venue]
    assert found.procedures[0].venue == venue


def test_the_sitting_is_described() -> None:
    found = day("")
    assert (found.chamber, found.date, found.parliament, found.page, found.proof, found.schema_version) == (
        "REPS", date(2031, 3, 4), "70", "7", True, "2.1",
    )  # fmt: skip
    assert list(found.warnings) == ["the file contains no speeches"]


@pytest.mark.parametrize(
    "root",
    [
        "hansard",
        'hansard noNamespaceSchemaLocation="../../hansard.xsd" version="2.2"',
        'hansard xsi:noNamespaceSchemaLocation="../../hansard.xsd"',
        'hansard xmlns="urn:example"',
        'hansard xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="hansard.xsd"',
    ],
)
def test_the_root_may_be_written_in_many_ways(root: str) -> None:
    """Version and namespaces may be missing, or a prefix may have no declaration."""
    assert day(f"<speech>{talk('A1', 'Abel', 'x')}</speech>", root=root).speeches[0].text == "x"


WORDS = st.from_regex(r"\w+(  ?\w+)?", fullmatch=True)


@given(st.lists(st.tuples(st.sampled_from(["para", "interjection", "continue", "quote"]), WORDS), max_size=8))
def test_a_turn_keeps_all_words_in_order(parts: list[tuple[str, str]]) -> None:
    """Whatever stands in a turn, its text is the paragraphs in order, and its utterances cover it."""
    inner = ""
    for tag, text in parts:
        if tag == "para":
            inner += f"<para>{text}</para>"
        elif tag == "quote":
            inner += f"<quote><para>{text}</para></quote>"
        else:
            inner += f"<{tag}>{talk('B2', 'Boon', text)}</{tag}>"
    speech = day(f"<speech>{talk('A1', 'Abel', 'Go.')}{inner}</speech>").speeches[0]
    assert speech.text.split("\n") == ["Go.", *(text for _, text in parts)]
    assert said(speech)[0][:2] == ("turn", "A1")


def test_each_form_of_line_end_reads_alike() -> None:
    turn = talk("A1", "Abel", "One\ntwo.").join(("<speech>", "</speech>"))
    assert day(turn).speeches == day(turn.replace("\n", "\r\n")).speeches


def test_a_file_object_is_read_like_its_bytes() -> None:
    xml = f"<hansard><session.header>{HEADER.format('SENATE')}</session.header></hansard>".encode()
    assert parse_sitting(BytesIO(xml), "x") == parse_sitting(xml, "x")


def test_errors_are_of_the_source() -> None:
    with pytest.raises(SourceError, match=r"day\.xml: not Hansard"):
        parse_sitting(b"<akomaNtoso/>", "day.xml")


def test_an_unknown_element_is_read_for_the_turns_in_it() -> None:
    """Nobody's words become another's, or procedural text, because of an element around them."""
    turn = f"<speech>{talk('A1', 'Abel', 'Go.')}</speech>"
    found = day(debate(f"<grievance><title>GRIEVANCES</title>{turn}</grievance>"))
    assert [(each.text, each.debate) for each in found.speeches] == [("Go.", (1,))]
    assert any("<grievance>" in warning for warning in found.warnings)
    aside = f"<interjection>{talk('B2', 'Boon', 'Why?')}</interjection>"
    speech = day(
        f"<speech>{talk('A1', 'Abel', 'Go.')}<quote><para>Q.</para>{aside}<para>R.</para></quote></speech>"
    ).speeches[0]
    assert [each[1:] for each in said(speech)] == [("A1", "Go.\nQ."), ("B2", "Why?"), (None, "R.")]


def test_a_turn_within_a_turn_is_a_turn_of_its_own() -> None:
    inner = f"<speech>{talk('B2', 'Boon', 'Mine.')}</speech>"
    found = day(f"<speech>{talk('A1', 'Abel', 'Go.')}{inner}<para>On.</para></speech>")
    assert [(each.talker.name_id, each.text) for each in found.speeches] == [("A1", "Go.\nOn."), ("B2", "Mine.")]
