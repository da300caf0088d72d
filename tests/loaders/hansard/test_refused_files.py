"""Files that are damaged, dangerous or something else: refused or repaired, and always told."""

from __future__ import annotations

from contextlib import suppress
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import SourceError
from loaders.hansard.sitting_xml import parse_sitting

HEAD = "<session.header><date>2031-03-04</date><chamber>SENATE</chamber></session.header>"
TALK = "<talk.start><talker><name>Senator ABEL</name><name.id>A1</name.id></talker><para>{}</para></talk.start>"
TURN = f"<speech>{TALK.format('One two.')}<para>Three &amp; four.</para></speech>"
DEBATE = f"<debate><debateinfo><title>TIDES</title></debateinfo>{TURN}</debate>"


def file(content: str = DEBATE, head: str = HEAD, before: str = "") -> bytes:
    return f'{before}<hansard version="2.1">{head}<chamber.xscript>{content}</chamber.xscript></hansard>'.encode()


def refused(source: bytes, **given: object) -> str:
    with pytest.raises(SourceError) as error:
        parse_sitting(source, "day.xml", **given)  # type: ignore[arg-type]
    message = str(error.value)
    assert message.startswith("day.xml")
    return message


@pytest.mark.parametrize(
    ("head", "option"),
    [
        ("", "--chamber"),
        ("<session.header><date>2031-03-04</date></session.header>", "--chamber"),
        ("<session.header><date>2031-03-04</date><chamber> </chamber></session.header>", "--chamber"),
        ("<session.header><chamber>SENATE</chamber></session.header>", "--date"),
        ("<session.header><date>4th of March</date><chamber>SENATE</chamber></session.header>", "--date"),
        ("<session.header><date>2031-02-30</date><chamber>SENATE</chamber></session.header>", "--date"),
    ],
)
def test_a_head_that_lacks_something_names_the_option(head: str, option: str) -> None:
    assert option in refused(file(head=head))
    day = parse_sitting(file(head=head), "day.xml", chamber="SENATE", date=date(2031, 3, 4))
    assert (day.chamber, day.date, len(day.speeches)) == ("SENATE", date(2031, 3, 4), 1)


def test_what_the_file_says_goes_before_what_is_given() -> None:
    day = parse_sitting(file(), "day.xml", chamber="REPS", date=date(1999, 1, 1))
    assert (day.chamber, day.date) == ("SENATE", date(2031, 3, 4))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<!DOCTYPE html><html><body>Hansard</body></html>", "HTML"),
        (b"\n<HTML><head/></HTML>", "HTML"),
        (b"<!-- saved --><html/>", "HTML"),
        (b"<akomaNtoso/>", "root is <akomaNtoso>"),
        (b"<debate/>", "root is <debate>"),
        (b"speech_id,text\n1,x\n", "begins with"),
        (b"%PDF-1.7", "begins with"),
    ],
)
def test_what_is_no_hansard_is_refused(source: bytes, reason: str) -> None:
    assert reason in refused(source)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10))


@pytest.mark.parametrize("root", ["hansard", "HANSARD"])
@pytest.mark.parametrize(
    "declared",
    [
        LAUGHS,
        '<!ENTITY passwd SYSTEM "file:///etc/passwd">',
        '<!ENTITY page PUBLIC "x" "http://127.0.0.1:9/">',
        '<!ENTITY % all SYSTEM "http://127.0.0.1:9/x.dtd"> %all;',
    ],
)
def test_entities_are_neither_expanded_nor_fetched(root: str, declared: str) -> None:
    bomb = file("&l9;&passwd;&page;", before=f"<!DOCTYPE {root} [{declared}]>").replace(
        b"hansard v", f"{root} v".encode()
    )
    assert "declares entities" in refused(bomb)
    wide = bomb.decode().encode("utf-16")
    assert "declares entities" in refused(wide)


@pytest.mark.parametrize("root", ["hansard", "HANSARD"])
def test_declared_pictures_are_not_read_and_the_file_loads(root: str) -> None:
    declared = (
        '<!NOTATION gif SYSTEM "viewer"><!ENTITY plate9 SYSTEM "file:///etc/passwd" NDATA gif>'
        "<!ENTITY chart PUBLIC '-//Q//Chart' 'http://127.0.0.1:9/c.gif' NDATA gif>"
    )
    source = file(before=f"<!DOCTYPE {root} [{declared}]>").replace(b"hansard v", f"{root} v".encode())
    day = parse_sitting(source, "day.xml")
    assert day.speeches[0].text == "One two.\nThree & four."
    assert any("2 declared pictures" in warning for warning in day.warnings)
    named = parse_sitting(source.replace(b"Three", b"Three &plate9;"), "day.xml")
    assert named.speeches[0].text == "One two.\nThree &plate9; & four."
    assert any("&plate9;" in warning for warning in named.warnings)


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY % map SYSTEM "http://127.0.0.1:9/x.dtd" NDATA gif>',
        '<!ENTITY map "ha" NDATA gif>',
        '<!ENTITY map SYSTEM "x" NDATA gif "y">',
        '<!ENTITY map SYSTEM "x>" NDATA gif>',
        f'<!ENTITY map SYSTEM "x" NDATA gif>{LAUGHS}',
    ],
)
def test_a_declaration_that_only_resembles_a_picture_is_refused(declared: str) -> None:
    assert "declares entities" in refused(file(before=f"<!DOCTYPE hansard [{declared}]>"))


@pytest.mark.parametrize(
    ("said", "parliament", "expected"),
    [
        ("30/04/96", "", "1996-04-30"),
        ("3/9/97", "", "1997-09-03"),
        ("30 April 96", "", "1996-04-30"),
        ("Tuesday, 30 April 96", "", "1996-04-30"),
        ("30-Apr-96", "", "1996-04-30"),
        ("96-04-30", "", "1996-04-30"),
        ("04/12/06", "2", "1906-12-04"),
        ("04/12/06", "41", "2006-12-04"),
        ("Monday, 4 December 06", "", "2006-12-04"),
    ],
)
def test_a_year_of_two_digits_is_read_where_its_century_is_sure(said: str, parliament: str, expected: str) -> None:
    number = f"<parliament.no>{parliament}</parliament.no>"
    head = f"<session.header><date>{said}</date>{number}<chamber>SENATE</chamber></session.header>"
    day = parse_sitting(file(head=head), "day.xml")
    assert day.date.isoformat() == expected
    assert any(said in warning and expected in warning for warning in day.warnings)


def test_a_year_of_two_digits_in_two_centuries_is_not_guessed() -> None:
    head = "<session.header><date>04/12/06</date><chamber>SENATE</chamber></session.header>"
    message = refused(file(head=head))
    assert "1906-12-04 or 2006-12-04" in message
    assert "--date" in message
    assert parse_sitting(file(head=head), "day.xml", date=date(1906, 12, 4)).date == date(1906, 12, 4)


def test_a_year_of_two_digits_that_agrees_with_no_century_is_refused() -> None:
    number = "<parliament.no>47</parliament.no>"
    head = f"<session.header><date>21/03/96</date>{number}<chamber>SENATE</chamber></session.header>"
    assert "no century" in refused(file(head=head))


@pytest.mark.parametrize("stray", ["\ufffd\ufffd", "x\n", ">", "ï»¿", "]\n\n"])
@pytest.mark.parametrize("declaration", ["", '<?xml version="1.0" encoding="utf-8"?>\n'])
def test_stray_characters_before_the_root_are_dropped_and_reported(stray: str, declaration: str) -> None:
    plain = parse_sitting(file(before=declaration), "day.xml")
    day = parse_sitting(stray.encode() + file(before=declaration), "day.xml")
    assert [speech.text for speech in day.speeches] == [speech.text for speech in plain.speeches]
    moved = stray.count("\n")
    assert [speech.lines for speech in day.speeches] == [
        (first + moved, last + moved) for first, last in filter(None, (speech.lines for speech in plain.speeches))
    ]
    assert "before the root element" in day.warnings[0]


def test_much_text_before_the_root_is_refused() -> None:
    assert "not Hansard" in refused(b"Senator ABEL: one two three. " * 5 + file())


@pytest.mark.parametrize(
    "cut",
    [
        'sard version="2.1">',
        "<hans",
        '<hansard version="2.1',
        '<hansard xmlns:xsi="urn:x" xsi:noName',
        '1.xsd" version="2.1">',
        ">",
        "\n<ha\n",
    ],
)
@pytest.mark.parametrize("before", ["", '<?xml version="1.0"?>\n'])
def test_a_root_tag_that_is_cut_is_supplied_where_the_rest_is_whole(cut: str, before: str) -> None:
    rest = file().partition(b">")[2]
    day = parse_sitting(f"{before}{cut}\n".encode() + rest, "day.xml")
    assert [speech.text for speech in day.speeches] == ["One two.\nThree & four."]
    assert day.speeches[0].lines is not None
    assert day.speeches[0].lines[0] == before.count("\n") + cut.count("\n") + 2
    assert any("root tag is cut" in warning or "before the root" in warning for warning in day.warnings)


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        ('<HANSARD DATE="04/03/2031" PROOF="No" CHAMBER = "Senate" PERIOD.NO = "4', True),
        ('ARD DATE="04/03/2031" CHAMBER = "Senate" >', True),
        ('<HANSARD DATE="04/03/2031" CHAMBER = "Sen', False),
        ('<HANSARD DATE="04/03/', False),
    ],
)
def test_whole_attributes_of_a_cut_root_are_kept_and_no_others(cut: str, kept: bool) -> None:
    rest = (
        "<CHAMBER.XSCRIPT><DEBATE><TITLE>TIDES</TITLE><SPEECH><TALK.START><TALKER><NAME>Senator ABEL</NAME></TALKER>"
        "<PARA>One two.</PARA></TALK.START></SPEECH></DEBATE></CHAMBER.XSCRIPT>\n</HANSARD>\n"
    )
    source = f"{cut}\n{rest}".encode()
    given = {} if kept else {"chamber": "SENATE", "date": date(2031, 3, 4)}
    day = parse_sitting(source, "day.sgml", **given)  # type: ignore[arg-type]
    assert (day.date, day.chamber.casefold(), len(day.speeches)) == (date(2031, 3, 4), "senate", 1)
    if not kept:
        with pytest.raises(SourceError, match="--chamber"):
            parse_sitting(source, "day.sgml")


@pytest.mark.parametrize("cut", ["Senator ABEL: One.", "<hans><para>One.</para>", "One two"])
def test_words_in_place_of_the_root_tag_are_refused(cut: str) -> None:
    assert "not Hansard" in refused(cut.encode() + file().partition(b">")[2])


def test_a_cut_root_of_a_truncated_file_is_refused() -> None:
    rest = file().partition(b">")[2]
    assert "not Hansard" in refused(b'sard version="2.1">' + rest.removesuffix(b"</hansard>"))


def test_an_external_dtd_is_not_fetched() -> None:
    assert (
        len(parse_sitting(file(before='<!DOCTYPE hansard SYSTEM "http://127.0.0.1:9/x.dtd">'), "day.xml").speeches) == 1
    )


@pytest.mark.parametrize(
    "cut", ["One", "</para>", "</speech>", "</debate>", "</chamber.xscript>", "</hansard>", "ansard>"]
)
def test_a_truncated_file_is_refused(cut: str) -> None:
    """Nothing of it is taken: half a day would pass for a whole one."""
    source = file()
    message = refused(source[: source.rindex(cut.encode())])
    assert "line 1" in message
    assert "truncated" in message


def test_small_damage_is_repaired_and_told() -> None:
    """A bare ampersand, an end tag too few, a named character that XML does not know."""
    content = DEBATE.replace("&amp;", "&").replace("two.</para>", "two. &mdash;")
    day = parse_sitting(file(f"<para>\n</para>{content}"), "day.xml")
    assert day.speeches[0].text == "One two. —\nThree & four."
    assert list(day.warnings) == [
        "not well-formed XML: parsed by the lenient parser",
        "line 2: </PARA> supplied before </TALK.START>",
    ]


def test_wrong_bytes_are_told_with_their_line() -> None:
    bad = file().replace(b"Three", b"\nThr\xe9e")
    assert "line 2: its bytes are not utf-8" in refused(bad)
    assert "nonsense" in refused(file(before='<?xml version="1.0" encoding="nonsense"?>'))
    declared = file(before='<?xml version="1.0" encoding="iso-8859-1"?>').replace(b"Three", b"Thr\xe9e")
    assert parse_sitting(declared, "day.xml").speeches[0].text.endswith("Thrée & four.")


@pytest.mark.parametrize("character", ["\x01", "&#1;", "&#xD800;", "&#x110000;", "\x00"])
def test_a_character_that_xml_forbids_is_told_as_that(character: str) -> None:
    assert "line 1: a character that XML forbids" in refused(file().replace(b"Three", character.encode()))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_known(encoding: str) -> None:
    assert parse_sitting(file().decode().encode(encoding), "day.xml").speeches[0].text == "One two.\nThree & four."


def test_white_space_before_the_declaration_is_nothing() -> None:
    assert len(parse_sitting(file(before='\n\n<?xml version="1.0"?>\n<!-- a -->\n'), "day.xml").speeches) == 1


def test_comments_instructions_and_cdata_are_markup() -> None:
    content = DEBATE.replace("two", "t<!-- not -->w<?not this?>o").replace("four", "<![CDATA[f<our]]>")
    assert parse_sitting(file(content), "day.xml").speeches[0].text == "One two.\nThree & f<our."
    assert parse_sitting(file(f"<para>{content}"), "day.xml").speeches[0].text == "One two.\nThree & f<our."


def test_endless_nesting_is_refused() -> None:
    assert "limits" in refused(file("<quote>" * 3000 + "</quote>" * 3000))
    deep = "<quote>" * 100 + "<para>x</para>" + "</quote>" * 100
    assert parse_sitting(file(deep), "day.xml").procedures[0].text == "x"


def test_a_very_large_day_is_read() -> None:
    """Twenty megabytes are within the limits that stop an attack."""
    turns = f"<speech>{TALK.format('word ' * 20_000)}</speech>" * 200
    assert len(parse_sitting(file(turns), "day.xml").speeches) == 200


@given(st.integers(0, len(file())), st.integers(0, 40), st.binary(max_size=4))
def test_any_damage_is_read_or_refused(start: int, length: int, instead: bytes) -> None:
    """A piece cut out or replaced gives a sitting or an error about the file, and never anything else."""
    source = file()
    with suppress(SourceError):
        assert parse_sitting(source[:start] + instead + source[start + length :], "day.xml").chamber
