from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.readers import html_blocks
from loaders.readers.html_blocks import Block
from loaders.readers.inline import LeftOut


def parse_blocks(html: str) -> Sequence[Block]:
    return html_blocks.parse_blocks(html, LeftOut())


def test_html_becomes_blocks_of_plain_text() -> None:
    html = "<div>A <strong>bold</strong>&nbsp;act.<br><br>Second &amp; last<br>line.</div><h3>Duties</h3>"
    html += "<ul><li>One &#39;x&#39;</li><li></li></ul><table><tr><td>4 %</td></tr></table><script>no</script>"
    assert parse_blocks(html) == [
        Block("Text", "A bold\xa0act."),
        Block("Text", "Second & last\nline."),
        Block("Title", "Duties"),
        Block("List", "One 'x'"),
        Block("TableCell", "4 %"),
    ]


@given(st.text())
def test_no_markup_breaks_the_reader_and_no_block_is_empty(html: str) -> None:
    assert all(block.text.strip() for block in parse_blocks(html))


def test_what_cannot_be_a_tag_is_text() -> None:
    assert parse_blocks("<p>below <10MW and <1 %</p>") == [Block("Text", "below <10MW and <1 %")]


def test_elements_without_an_end_tag_hide_nothing() -> None:
    assert parse_blocks("<meta charset='utf-8'><link rel=x><hr>shown") == [Block("Text", "shown")]


def test_raised_and_struck_words_of_descriptions_are_no_plain_text() -> None:
    blocks = parse_blocks("<p>10<sup>6</sup> t of CO<sub>2</sub> by <del>2030</del> 2035</p><p>m<sup>2</sup>")
    assert [block.text for block in blocks] == ["10\u2076 t of CO\u2082 by 2035", "m\u00b2"]


@pytest.mark.parametrize(
    ("html", "struck", "hidden"),
    [
        ("pay <s>a sum</s> 55", 2, 0),
        ("pay <i style='display: none'>a <b>sum</b></i> 55", 0, 2),
        ("pay <span style=visibility:hidden>a sum</span> 55", 0, 2),
        ("pay <b hidden>a sum</b> 55", 0, 2),
        ("pay <input hidden> 55", 0, 0),
    ],
)
def test_struck_and_hidden_words_of_descriptions_are_left_out_and_counted(html: str, struck: int, hidden: int) -> None:
    left_out = LeftOut()
    assert html_blocks.parse_blocks(html, left_out) == [Block("Text", "pay 55")]
    assert (left_out.struck, left_out.hidden) == (struck, hidden)
