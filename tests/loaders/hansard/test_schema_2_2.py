"""Hansard of schema 2.2: one body with the words of several talkers. All days and people here are fictional."""

from __future__ import annotations

from datetime import time

import pytest

from loaders.hansard.sitting_model import Sitting, Speech
from loaders.hansard.sitting_xml import parse_sitting

HEADER = "<session.header><date>2031-03-04</date><chamber>{}</chamber></session.header>"


def day(content: str, chamber: str = "House of Reps", outside: str = "") -> Sitting:
    xml = f'<hansard noNamespaceSchemaLocation="x.xsd" version="2.2">{HEADER.format(chamber)}'
    return parse_sitting(f"{xml}<chamber.xscript>{content}</chamber.xscript>{outside}</hansard>".encode(), "day.xml")


def who(number: str, name: str, electorate: str = "") -> str:
    """A ``talk.start``, which in this schema has no words."""
    seat = f"<electorate>{electorate}</electorate>" if electorate else "<electorate/>"
    return f"""<talk.start><talker><page.no>9</page.no><time.stamp/><name role="metadata">{name}, Ada, MP</name>
      <name.id>{number}</name.id>{seat}<party>FP</party><in.gov/><first.speech/></talker></talk.start>"""


def p(text: str, css: str = "HPS-Normal") -> str:
    return f'<p class="{css}" style="direction:ltr;">\n  <span class="{css}">{text}</span>\n</p>'


def head(number: str, kind: str, name: str) -> str:
    """The link with which the words of a member begin."""
    return f'\n <a href="{number}" type="{kind}">\n <span class="HPS-{kind}">{name}</span>\n </a>'


def span(kind: str, text: str) -> str:
    return f'<span class="HPS-{kind}">{text}</span>'


def turn(body: str, others: str = "", tag: str = "speech", number: str = "A1", name: str = "Abel") -> str:
    return f"<{tag}>{who(number, name)}<talk.text><body>{body}</body></talk.text>{others}</{tag}>"


def part(tag: str, number: str, name: str, body: str = "") -> str:
    return f"<{tag}>{who(number, name)}<talk.text>{body}</talk.text></{tag}>"


def said(speech: Speech) -> list[tuple[str, str | None, str, str]]:
    """Who says what in a speech, by id and displayed name; the utterances cover its text."""
    assert "".join(speech.text[each.start : each.end] for each in speech.utterances) == speech.text
    return [
        (
            each.kind,
            each.talker.name_id if each.talker else None,
            each.talker.name if each.talker else "",
            speech.text[each.start : each.end].rstrip("\n"),
        )
        for each in speech.utterances
    ]


FIRST = (
    head("A1", "MemberSpeech", "Ms ABEL") + f" ({span('Electorate', 'Fictown')}) ({span('Time', '09:05')}):  I begin."
)


def test_one_body_is_cut_where_another_name_begins() -> None:
    """Names are the talkers', the words after them the text; the elements say whose they are, and on which page."""
    body = (
        p(FIRST)
        + p("More.")
        + p(head("B2", "MemberInterjecting", "Mr Boon:") + "  Why?")
        + p(head("A1", "MemberContinuation", "Ms ABEL:") + "  Because.")
        + p(span("OfficeInterjecting", "The SPEAKER:") + "  Order!")
        + p("I warn you.")
        + p(head("A1", "MemberContinuation", "Ms ABEL:") + "  I end.")
    )
    others = (
        part("interjection", "B2", "Boon")
        + part("continue", "A1", "Abel")
        + part("interjection", "10000", "SPEAKER")
        + part("continue", "A1", "Abel")
    )
    found = day(turn(body, others))
    assert said(found.speeches[0]) == [
        ("turn", "A1", "Ms ABEL", "I begin.\nMore."),
        ("interjection", "B2", "Mr Boon", "Why?"),
        ("continuation", "A1", "Ms ABEL", "Because."),
        ("interjection", "10000", "The SPEAKER", "Order!\nI warn you."),
        ("continuation", "A1", "Ms ABEL", "I end."),
    ]
    speech = found.speeches[0]
    assert (speech.time, speech.page, speech.talker.electorate) == (time(9, 5), "9", "Fictown")
    assert [each.page for each in speech.utterances] == ["9"] * 5
    assert list(found.warnings) == []


SEAT, TITLE = span("Electorate", "Fictown"), span("MinisterialTitles", "Minister for Tides")
SHORT = span("MinisterialTitles", "Minister for")


@pytest.mark.parametrize(
    ("brackets", "seat", "role", "when"),
    [
        (f"({SEAT})", "Fictown", None, None),
        (f"({SEAT}—{TITLE})", "Fictown", "Minister for Tides", None),
        (f"({SEAT}—{SHORT} Tides) (11{span('Time', ':45')})", "Fictown", "Minister for Tides", time(11, 45)),
        (f"({TITLE}) ({span('Time', '09:05')})", None, "Minister for Tides", time(9, 5)),
        ("(Fictown—Whip) (09:05)", "Fictown", "Whip", time(9, 5)),
    ],
)
def test_the_brackets_after_a_name_are_the_talkers(
    brackets: str, seat: str | None, role: str | None, when: time | None
) -> None:
    """Seat, office and time, also where the markup of them is cut short."""
    speech = day(turn(p(head("A1", "MemberSpeech", "Ms ABEL") + f" {brackets}:  I (we) begin: so."))).speeches[0]
    assert (speech.talker.name, speech.text) == ("Ms ABEL", "I (we) begin: so.")
    assert (speech.talker.electorate, speech.talker.role, speech.time) == (seat, role, when)


def test_brackets_that_are_words_stay_words() -> None:
    body = p(head("A1", "MemberAnswer", "Ms Abel:") + " (1) Yes.") + p("(Time expired)")
    assert day(turn(body, tag="answer")).speeches[0].text == "(1) Yes.\n(Time expired)"
    asked = p(head("A1", "MemberQuestion", "Ms Abel") + " asked the Minister (in writing): how many?")
    assert day(turn(asked, tag="question")).speeches[0].text == "asked the Minister (in writing): how many?"


def test_who_holds_the_chair_is_known_where_the_record_says_it() -> None:
    name = (
        head("B2", "OfficeInterjecting", "The DEPUTY SPEAKER")
        + span("GeneralBold", "(")
        + span("OfficeInterjecting", "Mr Boon")
    )
    body = p(FIRST) + p(name + span("GeneralBold", "):") + "  Order!")
    speech = day(turn(body, part("interjection", "10000", "Boon"))).speeches[0]
    talker = speech.utterances[1].talker
    assert talker is not None
    assert (talker.name, talker.name_id, talker.holder_id) == ("The DEPUTY SPEAKER (Mr Boon)", "10000", "B2")
    assert speech.text == "I begin.\nOrder!"


def test_interjecting_without_recorded_words_is_a_remark() -> None:
    body = (
        p(FIRST)
        + p(span("GeneralIInterjecting", "Opposition members interjecting") + "—")
        + p(span("MemberIInterjecting", "Mr Boon interjecting") + "—")
        + p("I go on.")
        + p(span("GeneralInterjecting", "Honourable members:") + "  Hear, hear!")
    )
    assert said(day(turn(body)).speeches[0]) == [
        ("turn", "A1", "Ms ABEL", "I begin."),
        ("remark", None, "", "Opposition members interjecting—\nMr Boon interjecting—"),
        ("continuation", "A1", "Ms ABEL", "I go on."),
        ("remark", None, "", "Honourable members:  Hear, hear!"),
    ]


WHY = p(head("B2", "MemberInterjecting", "Mr Boon:") + "  Why?")


def test_an_element_that_repeats_the_body_does_not_double_it() -> None:
    others = part("interjection", "B2", "Boon", f"<body>{WHY}</body>")
    assert said(day(turn(p(FIRST) + WHY, others)).speeches[0]) == [
        ("turn", "A1", "Ms ABEL", "I begin."),
        ("interjection", "B2", "Mr Boon", "Why?"),
    ]


def test_an_element_that_splits_the_body_is_not_lost() -> None:
    """Where each element has its own words, they follow one another."""
    going = p(head("A1", "MemberContinuation", "Ms ABEL:") + "  So.") + p("I end.")
    others = part("interjection", "B2", "Boon", f"<body>{WHY}</body>") + part(
        "continue", "A1", "Abel", f"<body>{going}</body>"
    )
    assert said(day(turn(p(FIRST), others)).speeches[0]) == [
        ("turn", "A1", "Ms ABEL", "I begin."),
        ("interjection", "B2", "Mr Boon", "Why?"),
        ("continuation", "A1", "Ms ABEL", "So.\nI end."),
    ]


def test_an_element_without_words_is_kept_and_told() -> None:
    found = day(turn(p(FIRST), part("interjection", "B2", "Boon")))
    assert said(found.speeches[0])[1] == ("interjection", "B2", "Boon, Ada, MP", "")
    assert any("has no words" in warning for warning in found.warnings)


def test_a_name_without_an_element_is_known_by_its_link() -> None:
    assert said(day(turn(p(FIRST) + WHY)).speeches[0])[1] == ("interjection", "B2", "Mr Boon", "Why?")


def test_another_speech_in_the_same_body_is_told() -> None:
    found = day(turn(p(FIRST) + p(head("B2", "MemberSpeech", "Mr BOON") + " (Low Bay) (09:10):  I too.")))
    assert said(found.speeches[0])[1] == ("continuation", "B2", "Mr BOON", "I too.")
    assert any("inside the speech of another person" in warning for warning in found.warnings)


def test_headings_repeat_the_title_and_link_the_bills() -> None:
    bill, moon = "Tides Bill 2031", "Moon Bill 2031"
    first = f'<p><a href="r8" type="Bill">{p(bill, "HPS-SubDebate")}</a></p>'
    heading = f'{first}<a href="r9" type="Bill">{p(moon, "HPS-SubDebate")}</a>'
    info = f"<subdebateinfo><title>{bill}, {moon}</title></subdebateinfo>"
    lower = p("Report from Committee", "HPS-SubSubDebate") + p("Debate resumed.")
    text = f"<subdebate.text><body>{heading}{lower}</body></subdebate.text>"
    found = day(f"<subdebate.1>{info}{text}</subdebate.1>")
    assert (found.debates[0].bills, found.debates[0].bill_ids) == ([bill, moon], ["r8", "r9"])
    assert [each.text for each in found.procedures] == ["Report from Committee\nDebate resumed."]


def test_a_body_that_runs_into_the_next_sitting_ends_before_it() -> None:
    """What the opening of the other chamber says is said once; what only the body has is kept."""
    opening = p("Tuesday, 4 March 2031", "HPS-MCJobDate") + p("The DEPUTY SPEAKER took the chair.")
    second = f"<fedchamb.xscript><business.start><body>{opening}</body></business.start></fedchamb.xscript>"
    found = day(turn(p(FIRST) + opening + p("Only here.")), outside=second)
    assert found.speeches[0].text == "I begin."
    assert [each.text for each in found.procedures] == [
        "Only here.",
        "Tuesday, 4 March 2031\nThe DEPUTY SPEAKER took the chair.",
    ]


def test_a_table_in_a_body_is_rows() -> None:
    row = "<tr><td><p><span>Port</span></p></td><td><p><span>Tide</span></p></td></tr>"
    table = f"<table>{row}<tr><td><p>Low Bay</p></td><td/></tr></table>"
    assert day(turn(p(FIRST) + table)).speeches[0].text == "I begin.\nPort\tTide\nLow Bay"


def test_a_division_in_bodies() -> None:
    ayes = "<ayes><num.votes>1</num.votes><names><name>Abel, A (teller)</name></names></ayes>"
    names = f"{ayes}<noes><num.votes>0</num.votes></noes>"
    preamble = '<p class="HPS-DivisionPreamble">The House divided. [09:32]<br/>(The Speaker—Ms Coil)</p>'
    result = '<p class="HPS-DivisionFooter">Question agreed to.<br/>Bill read.</p>'
    division = day(
        f"<division><division.header><body>{preamble}</body></division.header><division.data>{names}</division.data>"
        f"<division.result><body>{result}</body></division.result></division>"
    ).divisions[0]
    assert (division.header, division.time) == ("The House divided. [09:32]\n(The Speaker—Ms Coil)", time(9, 32))
    assert (division.ayes, division.noes, division.result) == (1, 0, "Question agreed to.\nBill read.")
    assert [(vote.name, vote.teller) for vote in division.votes] == [("Abel, A", True)]


def test_a_senator_has_the_state_of_the_head() -> None:
    body = p(
        head("A1", "MemberSpeech", "Senator ABEL")
        + f" ({span('Electorate', 'Fictoria')}) ({span('Time', '09:05')}):  x"
    )
    assert day(turn(body), chamber="Senate").speeches[0].talker.state == "Fictoria"


def test_words_in_no_paragraph_are_words() -> None:
    assert day(turn(f"before {p(FIRST)} after")).speeches[0].text == "before\nI begin.\nafter"


def test_the_chair_between_turns_has_its_name_from_the_body() -> None:
    order = f"<body>{p(span('OfficeInterjecting', 'The SPEAKER:') + '  Order!')}</body>"
    speech = day(part("interjection", "10000", "SPEAKER", order)).speeches[0]
    assert (speech.kind, said(speech)) == ("interjection", [("interjection", "10000", "The SPEAKER", "Order!")])
