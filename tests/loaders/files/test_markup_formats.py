"""Markdown, MDX, notebooks and reStructuredText: what leaves the text, and what stays with its line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import SourceError
from loaders.files.loader import read_file
from loaders.files.readers.text_model import FileText


def read(text: str, ending: str = ".md") -> FileText:
    return read_file(text.encode(), ending, f"a{ending}")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("pay ~~40~~ 55", "pay 55"),
        ("pay <del>40</del> <ins>55</ins>", "pay <ins>55</ins>"),
        ('pay <span style="display: none">40</span> 55', "pay 55"),
        ('pay <b style="visibility:hidden">40</b> 55', "pay 55"),
        ('pay <span style="font-size:0">40</span> 55', "pay 55"),
        ("pay <input type=hidden value=40> 55", "pay 55"),
        ("pay <!-- not\n40 --> 55", "pay \n55"),
        ("pay `~~40~~` and \\~~41~~ from ~5 to ~6", "pay `~~40~~` and \\~~41~~ from ~5 to ~6"),
        ("    ~~code~~ <s>x</s>", "    ~~code~~ <s>x</s>"),
        ("| a | ~~b~~ |\n| --- | --- |\n| 25<sup>1</sup> | c |", "| a | |\n| --- | --- |\n| 25\u00b9 | c |"),
        ("m<sup>2</sup>, CO<sub>2</sub>, 5<sup>th</sup>", "m\u00b2, CO\u2082, 5th"),
        ("a < b and <s>c", "a < b and <s>c"),
        ("x\n\n<del>\n\nold *text*\n\n</del>\n\ny", "x\n\n\n\n\n\n\n\ny"),
        ("- [x] done\n- <input type=checkbox checked> too", "- [x] done\n- \u2611  too"),
    ],
)
def test_markdown_loses_what_is_struck_or_hidden_and_keeps_the_rest(source: str, text: str) -> None:
    assert read(source).text == text


@pytest.mark.parametrize("source", ["pay ~~a <del>b</del> c~~ 55", "pay <s>a <del>b</del> c</s> 55"])
def test_markdown_counts_words_that_are_struck_twice_once(source: str) -> None:
    assert "3" in (read(source).warnings[0]).partition(":")[2]


@given(
    st.lists(
        st.sampled_from(["~~", "<s>", "</s>", "<!--", "-->", "`", "\n", " a", "<sup>", "</sup>", "2", "\\"]),
        max_size=30,
    )
)
def test_the_lines_of_markdown_are_those_of_the_file(pieces: list[str]) -> None:
    source = f"x\n{''.join(pieces)}\nend"
    assert read(source).text.count("\n") == source.count("\n")


def test_mdx_is_read_without_modules_components_and_expressions() -> None:
    found = read(
        "import A from './a'\n\n# Crane {props.x}\n\n<Tabs of={['a > b', {c: 1}]}>\n  Lifts <Big/> nine tonnes.\n"
        "</Tabs>\n\n{/* why */}\n\n<>End</>\n",
        ".mdx",
    )
    assert found.text.split() == ["#", "Crane", "Lifts", "nine", "tonnes.", "End"]
    assert found.text.count("\n") == 11
    assert len(found.warnings) == 4


def test_notebooks_are_their_cells_without_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Crane\n", "Lifts ~~nine~~ ten."]},
        {"cell_type": "code", "source": "lift(10)", "outputs": [{"text": "9"}]},
    ]
    found = read(json.dumps({"cells": cells, "nbformat": 4}), ".ipynb")
    assert found.text == "# Crane\nLifts ten.\n\n```\nlift(10)\n```"
    assert (found.title, [block.kind for block in found.blocks]) == ("Crane", ["heading", "paragraph", "code"])
    assert len(found.warnings) == 2
    with pytest.raises(SourceError):
        read('{"nodes": 1}', ".ipynb")
    assert read('{"cells": [{"source": "a", "outputs": 3}]}', ".ipynb").text == "a"


@pytest.mark.parametrize(
    ("source", "text"),
    [("3. c\n#. d\n#. e", "3. c\n4. d\n5. e"), ("(a) x\n(#) y", "(a) x\n(b) y"), ("i. x\n#. y", "i. x\nii. y")],
)
def test_automatic_numbers_of_rst_go_on_after_written_ones(source: str, text: str) -> None:
    assert read(source, ".rst").text == text


def test_rst_has_sections_lists_tables_and_code() -> None:
    found = read(
        "=====\nGuide\n=====\n\nOil 25\\ :sup:`1` joints::\n\n    :sup:`x`\n\n.. an old\n   remark\n\nSteps\n-----\n"
        "\n#. one\n#. two\n   lines\n\n#. three\n\n.. code-block:: sh\n\n   oil\n\n==  ==\na   b\n==  ==\n1   2\n"
        "==  ==\n",
        ".rst",
    )
    kinds = [(block.kind, block.level) for block in found.blocks]
    assert kinds == [("heading", 1), ("code", 0), ("heading", 2), ("steps", 0), ("code", 0), ("table", 0)]
    assert found.title == "Guide"
    assert "Oil 25\u00b9 joints" in found.text
    assert "    :sup:`x`" in found.text
    assert "1. one\n2. two\n   lines\n\n3. three" in found.text
    assert "remark" not in found.text
