"""Chunks tile the text, keep lists of steps whole, and have the headings that all of them is below."""

from __future__ import annotations

from itertools import pairwise

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
