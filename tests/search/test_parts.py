"""Parts of a text: they have all of its words, in order, below their headings."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kg.search.parts import MOST_PARTS, PART_CHARACTERS, build_part_texts, split_parts

PAGE = """# Pumps

All pumps are listed here.

## Start

1. Open the valve.
2. Press the button.

```sh
# not a heading
pump start
```

## Stop

### At night

Close the valve.
"""


def test_a_part_is_below_its_headings_and_code_has_none() -> None:
    found = {PAGE[part.start : part.end].strip(): part.headings for part in split_parts(PAGE)}
    assert list(found.values()) == [("Pumps",), ("Pumps", "Start"), ("Pumps", "Stop", "At night")]
    assert "# not a heading" in list(found)[1]
    assert build_part_texts("pumps.md", PAGE)[2] == "pumps.md\nPumps • Stop • At night\nClose the valve."


def test_a_heading_with_nothing_below_is_a_part() -> None:
    assert [(part.start, part.headings) for part in split_parts("# A\n\n## B\n")] == [(5, ("A",))]


def test_long_texts_are_cut_at_lines_sentences_and_words() -> None:
    rows = "".join(f"| row {number} | {'word ' * 12}|\n" for number in range(20))
    sentences = " ".join(f"Sentence {number} says {'some ' * 10}words." for number in range(20))
    for text in (rows, sentences, "word " * 400):
        parts = split_parts(text)
        assert all(part.end - part.start <= PART_CHARACTERS for part in parts)
        assert all(not text[part.start].isspace() for part in parts)
    assert all(rows[part.start] == "|" for part in split_parts(rows))
    assert all(sentences[part.start :].startswith("Sentence") for part in split_parts(sentences))


def test_the_number_of_parts_is_limited() -> None:
    assert len(split_parts("x" * 1_000_000)) <= MOST_PARTS
    assert len(split_parts("One word. " * 100_000)) <= MOST_PARTS


@given(st.text(alphabet="ab #\n.`-|A", max_size=3_000))
def test_parts_follow_each_other_and_have_all_words(text: str) -> None:
    parts = split_parts(text)
    assert parts
    assert parts[-1].end <= len(text)
    assert all(one.end <= other.start for one, other in itertools.pairwise(parts))
    said = "".join(text[part.start : part.end] for part in parts) + "".join(" ".join(part.headings) for part in parts)
    assert sum(map(said.count, "abA")) >= sum(
        line.count(letter) for line in text.splitlines() if not line.lstrip().startswith("#") for letter in "abA"
    )
