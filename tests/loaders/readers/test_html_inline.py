"""The inline model in HTML: what is struck or hidden leaves the text and is counted, what is raised is no digit."""

from __future__ import annotations

import pytest

from loaders.files.readers.html_page import read_html
from loaders.readers.html_tree import parse_html, text_of
from loaders.readers.inline import LeftOut


def read(html: str, style: str = "") -> tuple[str, LeftOut]:
    left_out = LeftOut()
    root = parse_html(f"<html><head><style>{style}</style></head><body>{html}</body></html>", "a.html", left_out)
    assert root is not None
    return text_of(root.find("body")), left_out


@pytest.mark.parametrize(
    ("html", "style"),
    [
        ("pay <s>40 crowns</s> 55", ""),
        ("pay <strike>40 crowns</strike> 55", ""),
        ("pay <del><b>40</b> crowns</del> 55", ""),
        ('pay <span style="color: red; text-decoration: red LINE-THROUGH">40 crowns</span> 55', ""),
        ("pay <i class='a old'>40 crowns</i> 55", ".old { text-decoration-line: underline line-through }"),
        ("<p class=x>pay <em>40 crowns</em> 55", "/* } */ h1, p.x > em { text-decoration: line-through }"),
        ("<div id=d><p>pay <em>40 crowns</em> 55</div>", "@media screen { #d em { text-decoration: line-through } }"),
    ],
)
def test_struck_words_are_left_out_and_counted(html: str, style: str) -> None:
    text, left_out = read(html, style)
    assert (text, left_out.struck, left_out.hidden) == ("pay 55", 2, 0)


@pytest.mark.parametrize(
    ("html", "style"),
    [
        ("pay <i hidden>a secret</i> 55", ""),
        ("pay <i style='display:none!important'>a secret</i> 55", "i { display: inline }"),
        ("pay <i class=h>a secret</i> 55", ".h { visibility: hidden }"),
        ("pay <i class=h>a <b>secret</b></i> 55", "i { display: none } b { display: block }"),
        ("pay <template>a secret</template> 55", ""),
        ("pay <i class=h>a secret</i> 55", ".h { font-size: 0px }"),
        ("pay <i class=h>a secret</i> 55", ".h { opacity: 0.0 }"),
        ("pay <i class=h>a secret</i> 55", "@media not print { .h { display: none } }"),
        ("pay <i class=h>a secret</i> 55", "@media (min-width: 768px) { .h { display: none } }"),
        ("pay <i class=h>a secret</i> 55", ".h { color: rgba(0, 0, 0, 0) }"),
    ],
)
def test_hidden_words_are_left_out_and_counted(html: str, style: str) -> None:
    text, left_out = read(html, style)
    assert (text, left_out.struck, left_out.hidden) == ("pay 55", 0, 2)


@pytest.mark.parametrize(
    "style",
    [
        "@media print { i { display: none } }",
        "@media (max-width: 600px) { i { display: none } }",
        "@media screen and (min-width:20em) and (width < 60rem) { i { display: none } }",
        "@media (prefers-color-scheme: dark) { i { display: none } }",
        "i { display: none } i.k { display: inline }",
        "i:hover { display: none }",
        "i { visibility: hidden } i b { visibility: visible }",
        "i { font-size: 0 } b { font-size: 12px }",
        "i { color: rgb(0, 0, 0); font-size: .5em; opacity: 0.1 }",
    ],
)
def test_words_that_a_page_shows_are_kept(style: str) -> None:
    text, left_out = read("pay <i class=k><b>all of it</b></i>", style)
    assert (text, left_out.hidden) == ("pay all of it", 0)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("25<sup>1</sup> feet", "25\u00b9 feet"),
        ("25<sup><a href='#n'>1</a>, <a href='#m'>2</a></sup> feet", "25\u00b9, \u00b2 feet"),
        ("25<sup>[1]</sup> feet", "25[1] feet"),
        ("25<sup>see note</sup> feet", "25[see note] feet"),
        ("10<sup>\u22126</sup> of 300 m<sup>2</sup>", "10\u207b\u2076 of 300 m\u00b2"),
        ("CO<sub>2</sub>, V<sub>CC</sub>", "CO\u2082, V[CC]"),
        ("the 5<sup>th</sup> pier, Ropeway<sup>TM</sup>", "the 5th pier, Ropeway\u2122"),
        ("2<sup>1</sup>/<sub>2</sub> feet, <sup>3</sup>&frasl;<sub>4</sub> inch", "2 1/2 feet, 3/4 inch"),
        ("25<span class=n>1</span> feet", "25\u00b9 feet"),
        ("25<span style='vertical-align: 0.4em; font-size: 70%'>1</span> feet", "25\u00b9 feet"),
    ],
)
def test_raised_and_lowered_digits_are_not_of_the_number_before(html: str, text: str) -> None:
    assert read(html, ".n { vertical-align: super } sup { vertical-align: baseline; top: -.5em }")[0] == text


def test_values_of_forms_and_formulas_are_read() -> None:
    html = (
        "<input type=checkbox checked> roof <input type=checkbox> wall <input value='Odile Marsh'><input type=password "
        "value=x><select><option>north<option selected>south</select><textarea>by the quay</textarea>"
        "<math><mfrac><mrow><mi>q</mi><mo>+</mo><mn>2</mn></mrow><msup><mi>x</mi><mn>2</mn></msup></mfrac></math>"
        "<span><math><msub><mi>x</mi><mn>1</mn></msub></math><span aria-hidden=true>x1</span></span>"
    )
    assert read(html)[0] == "\u2611 roof \u2610 wall Odile Marsh south by the quay (q+2)/x\u00b2x\u2081"


def test_lists_have_the_numbers_that_a_browser_shows() -> None:
    found = read_html(
        "<style>.a {list-style: lower-alpha inside} .n {list-style-type: none}</style>"
        "<ol start=3><li>x<li value=7>y<li>z</ol><p>-<ol reversed><li>x<li>y</ol><p>-<ol class=a><li>x</ol><p>-"
        "<ol class=n><li>x</ol>",
        "a.html",
    )
    assert [line for line in found.text.split("\n") if line not in ("", "-")] == [
        "3. x", "7. y", "8. z", "2. x", "1. y", "a. x", "- x",
    ]  # fmt: skip


def test_a_struck_cell_keeps_its_column() -> None:
    row = "<tr><td>north<td style='text-decoration: line-through'>40<td>55</tr>"
    found = read_html(f"<table><tr><th>gate<th>fee<th>new fee</tr>{row}</table>", "a.html")
    assert found.text.split("\n")[-1] == "| north |  | 55 |"


def test_a_struck_item_keeps_its_number() -> None:
    found = read_html("<ol><li>drain<li style='text-decoration: line-through'>oil<li>start</ol>", "a.html")
    assert found.text == "1. drain\n3. start"


def test_what_is_not_read_is_one_warning_for_each_kind() -> None:
    found = read_html(
        "<main><p>text <img src=a><img src=b><img src=c alt=''><svg><text>x</text></svg><!-- why --><s>a b</s></main>"
        "<footer>about us</footer>",
        "a.html",
    )
    assert found.text == "text"
    assert len(found.warnings) == 5
    assert sum("pictures (2)" in each for each in found.warnings) == 1


def test_words_for_the_eye_alone_are_kept_beside_a_formula() -> None:
    text, left_out = read("<p aria-hidden=true>Fences of 2 m</p><math><mn>3</mn></math>")
    assert text.split() == ["Fences", "of", "2", "m", "3"]
    assert left_out.hidden == 0
