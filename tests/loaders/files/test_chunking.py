"""Chunks tile the text, keep lists of steps whole, and have the headings that all of them is below."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.files.chunking import DEFINITIONS, GENERAL, PROCEDURES, _Splitter, split_file
from loaders.files.readers.html_page import read_html
from loaders.files.readers.markdown import read_markdown
from loaders.files.readers.plain_pages import read_text

SENTENCE = "The keeper lights the lamp at dusk and puts it out at dawn. "
LINES = (
    *("# Lamp", "## Wick", "### Oil?", "## Glossary", "", "1. one", "2. two", "- a", "| a | b |", "|---|---|", "```"),
    *(SENTENCE * 9, "x" * 3_000),
)


def sizes(source: str) -> list[tuple[int, tuple[str, ...]]]:
    file = read_markdown(source)
    splitter = _Splitter(file)
    return [(splitter.measure(chunk.start, chunk.end), tuple(chunk.headings)) for chunk in split_file(file)]


@given(st.lists(st.sampled_from(LINES), max_size=40).map("\n".join))
def test_chunks_reproduce_every_text(source: str) -> None:
    for file in (read_markdown(source), read_text(source), read_html(f"<pre>{source}</pre><p>{source}", "a.html")):
        splitter = _Splitter(file)
        at = 0
        for chunk in split_file(file):
            assert chunk.start <= at < chunk.end
            assert splitter.measure(chunk.start, chunk.end) <= PROCEDURES.most
            at = chunk.end
        assert at == (len(file.text) if file.text.strip() else 0)


def test_long_section_is_cut_into_chunks_of_the_general_size_with_overlap() -> None:
    file = read_markdown(
        "# Lamp\n\n" + "\n\n".join(f"{number}. {SENTENCE * 5}".replace(". ", " ", 1) for number in range(60))
    )
    splitter, chunks = _Splitter(file), split_file(file)
    assert len(chunks) > 3
    assert all(GENERAL.least <= splitter.measure(each.start, each.end) <= GENERAL.most for each in chunks)
    for one, other in pairwise(chunks):
        assert 0 < splitter.measure(other.start, one.end) <= GENERAL.overlap


def test_steps_stay_together_beyond_the_general_size() -> None:
    steps = "\n".join(f"{number}. {SENTENCE * 2}" for number in range(1, 50))
    [(size, headings)] = sizes(f"# Lamp\n\n## Lighting\n\n{steps}\n")
    assert GENERAL.most < size <= PROCEDURES.most
    assert headings == ("Lamp",)


def test_questions_are_short_chunks_and_short_sections_are_joined() -> None:
    questions = "\n\n".join(f"## Is lamp {number} lit?\n\n{SENTENCE * 4}" for number in range(40))
    found = sizes(questions)
    assert all(size <= DEFINITIONS.most for size, _ in found)
    assert all(size >= DEFINITIONS.least for size, _ in found[:-1])
    [(_, headings)] = sizes("# Lamp\n\nA.\n\n## Wick\n\nB.\n\n## Oil\n\nC.\n")
    assert headings == ("Lamp",)


SEED = {"general": (500, 1_000), "definitions": (150, 400), "procedures": (1_000, 2_000)}
"""The ranges of tokens that the specification states."""


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("general", "# Lamp\n\n" + "\n\n".join(SENTENCE * 5 for _ in range(60))),
        ("general", "# Lamp\n\n" + SENTENCE * 600),
        ("general", "# Lamp\n\n" + "\n\n".join(f"## Part {number}\n\n{SENTENCE * 30}" for number in range(20))),
        ("definitions", "# Glossary\n\n" + "\n\n".join(f"**Lamp {number}**: {SENTENCE * 3}" for number in range(60))),
        ("definitions", "\n\n".join(f"## Is lamp {number} lit?\n\n{SENTENCE * 4}" for number in range(40))),
        ("procedures", "# Lamp\n\n" + "\n".join(f"{number}. {SENTENCE * 2}" for number in range(1, 200))),
        (
            "procedures",
            "\n\n".join(
                f"## Lighting {part}\n\n" + "\n".join(f"{number}. {SENTENCE * 2}" for number in range(1, 30))
                for part in range(6)
            ),
        ),
    ],
)
def test_every_chunk_of_a_long_text_has_the_specified_size_and_overlap(kind: str, source: str) -> None:
    file = read_markdown(source)
    splitter, chunks = _Splitter(file), split_file(file)
    least, most = SEED[kind]
    found = [splitter.measure(each.start, each.end) for each in chunks]
    assert all(least <= size <= most for size in found)
    shared = [splitter.measure(other.start, one.end) for one, other in pairwise(chunks)]
    if kind != "general":
        assert not any(shared)
    elif "##" not in source:  # a window that slides by 80 to 90 %; sections begin their own
        assert all(0.1 <= count / size <= 0.2 for count, size in zip(shared, found, strict=False))


def test_list_of_steps_that_fits_is_in_one_chunk() -> None:
    before = "\n\n".join(f"{SENTENCE * 20}" for _ in range(3))
    steps = "\n".join(f"{number}. Step of the lamp: {SENTENCE * 2}" for number in range(1, 40))
    file = read_markdown(f"# Lamp\n\n{before}\n\n## Lighting\n\n{steps}\n\n## After\n\n{before}")
    start, end = file.text.index("1. Step"), file.text.index("39. Step")
    assert any(chunk.start <= start and end < chunk.end for chunk in split_file(file))
