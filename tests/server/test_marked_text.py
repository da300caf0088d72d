"""The runs of a marked text have all its characters, and the highlight has exactly those that were asked for."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import InvalidInputError
from kg.server.pages.marked_text import (
    MarkedTable,
    Note,
    Run,
    Span,
    find_cells,
    parse_span,
    split_blocks,
    split_text,
    verbatim,
)
from kg.tools.reading.marks import Mark
from kg.tools.zoning.sections import Cell, Table

TEXTS = st.text(st.one_of(st.sampled_from("ab \n\r|é\u0301\u202e\U0001f30a中ש<&\"'"), st.characters(codec="utf-8")))


def words_of(runs: list[Run], *, highlighted: bool | None = None) -> str:
    return "".join(
        piece.text for run in runs for piece in run.pieces if highlighted is None or run.highlighted is highlighted
    )


Case = tuple[str, list[Mark], Span | None, dict[int, list[Note]]]


@st.composite
def marked(draw: st.DrawFn) -> Case:
    text = draw(TEXTS)
    places = st.integers(0, len(text) + 3)
    spans = draw(st.lists(st.tuples(places, places), max_size=6))
    marks = [Mark(a, b, "mention", f"urn:{n}", "x", f"urn:claim:{n}") for n, (a, b) in enumerate(spans)]
    lit = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    notes = {place: [Note(1, "/why")] for place in draw(st.lists(places, max_size=3))}
    return text, marks, Span(*lit) if lit[0] < lit[1] else None, notes


@given(marked())
def test_nothing_is_lost_and_the_highlight_is_exact(
    case: tuple[str, list[Mark], Span | None, dict[int, list[Note]]],
) -> None:
    text, marks, highlight, notes = case
    runs = split_text(text, marks, highlight, notes)
    assert words_of(runs) == text
    assert words_of(runs, highlighted=True) == (text[highlight.start : highlight.end] if highlight else "")
    assert sum(run.first for run in runs) == (highlight is not None)
    shown = [place for place in notes if 0 < place <= len(text)]
    assert len([run for run in runs if run.notes]) == len(shown)


@given(marked(), st.data())
def test_parts_of_a_text_join_to_the_whole(case: Case, data: st.DataObject) -> None:
    text, marks, highlight, notes = case
    cut = data.draw(st.integers(0, len(text)))
    parts = [
        split_text(text, marks, highlight, notes, end=cut),
        split_text(text, marks, highlight, notes, start=cut),
    ]
    assert "".join(map(words_of, parts)) == text
    lit = "".join(words_of(part, highlighted=True) for part in parts)
    assert lit == (text[highlight.start : highlight.end] if highlight else "")


def test_the_longest_of_nested_marks_is_the_link() -> None:
    text = "renewable energy sources"
    inner, outer = Mark(10, 16, "mention", "urn:energy", "", "urn:1"), Mark(0, 24, "mention", "urn:all", "", "urn:2")
    assert [piece.mark for run in split_text(text, [inner, outer]) for piece in run.pieces] == [outer]
    beside = Mark(10, 40, "mention", "urn:beyond", "", "urn:3")
    assert [piece.mark for run in split_text(text, [beside]) for piece in run.pieces] == [None]


def test_a_mark_is_split_at_the_edge_of_the_highlight() -> None:
    mark = Mark(0, 6, "mention", "urn:x", "", "urn:1")
    runs = split_text("abcdef", [mark], Span(3, 4))
    assert [(run.highlighted, [(piece.text, piece.mark) for piece in run.pieces]) for run in runs] == [
        (False, [("abc", mark)]), (True, [("d", mark)]), (False, [("ef", mark)]),
    ]  # fmt: skip


def test_offsets_are_code_points() -> None:
    text = "a\U0001f30a e\u0301tat"
    assert unicodedata.combining(text[4])
    assert words_of(split_text(text, [], Span(3, 5)), highlighted=True) == "e\u0301"
    assert words_of(split_text(text, [], Span(1, 2)), highlighted=True) == "\U0001f30a"


@pytest.mark.parametrize("text", ["", "5", "3-3", "4-2", "0-11", "-1-3", "a-b", "1-2-3", "٣-٤", "1-99999999999"])
def test_a_span_outside_of_the_text_is_an_error(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_span(text, 10)


def test_a_span_may_be_the_whole_text() -> None:
    assert parse_span(" 0-10 ", 10) == Span(0, 10)


def row(*cells: str) -> list[Cell]:
    return [Cell([(cell, False)] if cell else [], header=False, colspan=1, rowspan=1) for cell in cells]


TABLE_TEXT = "Before:\nUse | R-1\nDuplex | C\nafter"
TABLE = Table(8, 28, [row("Use", "R-1"), row("Duplex", "C")])


def test_the_words_of_a_cell_are_highlighted_in_the_cell() -> None:
    at = TABLE_TEXT.index("Duplex")
    before, table, after = split_blocks(TABLE_TEXT, highlight=Span(at, at + 6), tables=[TABLE])
    assert isinstance(table, MarkedTable)
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert words_of(before) + words_of(after) == "Before:after"
    lit = [[words_of(list(cell.runs), highlighted=True) for cell in line] for line in table.rows]
    assert lit == [["", ""], ["Duplex", ""]]


def test_empty_cells_and_rows_have_places_too() -> None:
    text = "A |  | \nB | C"
    table = Table(0, len(text), [row("A", "", ""), row("", "", ""), row("B", "C")])
    assert find_cells(text, table) == [[0, 1, 1], [1, 1, 1], [8, 12]]


def test_a_table_with_other_words_is_text_where_it_has_a_mark() -> None:
    other = Table(8, 28, [row("Nothing", "like it")])
    assert find_cells(TABLE_TEXT, other) is None
    kept = split_blocks(TABLE_TEXT, tables=[other])
    assert any(isinstance(block, MarkedTable) for block in kept)
    [whole] = split_blocks(TABLE_TEXT, highlight=Span(8, 11), tables=[other])
    assert isinstance(whole, list)
    assert words_of(whole, highlighted=True) == "Use"


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.tags: list[str] = []

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


@given(TEXTS)
def test_a_browser_shows_the_characters_of_the_text(text: str) -> None:
    reader = Reader()
    reader.feed(f"<p>{verbatim(text)}</p>")
    reader.close()
    assert set(reader.tags) <= {"p", "span"}
    assert reader.text == text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert "\r" not in verbatim(text)


def test_a_footnote_mark_in_a_cell_stays_raised() -> None:
    text = "Front6 | 20"
    cells = [Cell([("Front", False), ("6", True)], True, 1, 1), Cell([("20", False)], False, 1, 1)]
    [table] = split_blocks(text, highlight=Span(4, 6), tables=[Table(0, len(text), [cells])])
    assert isinstance(table, MarkedTable)
    front = table.rows[0][0].runs
    assert [(words_of([run]), run.raised, run.highlighted) for run in front] == [
        ("Fron", False, False), ("t", False, True), ("6", True, True),
    ]  # fmt: skip
