"""Parts of a text: they have all of its words, in order, below their headings."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.search.parts import LONGEST, MOST_PARTS, PART_CHARACTERS, split_parts

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
    found = {PAGE[part.start : part.end].strip(): part.headings for part in split_parts(PAGE, 320, 0)}
    assert list(found.values()) == [("Pumps",), ("Pumps", "Start"), ("Pumps", "Stop", "At night")]
    assert "# not a heading" in list(found)[1]
    assert split_parts(PAGE, 320, 0)[2].build_text(PAGE) == "Pumps • Stop • At night\nClose the valve."


def test_a_heading_with_nothing_below_is_a_part() -> None:
    assert [(part.start, part.headings) for part in split_parts("# A\n\n## B\n", 320, 0)] == [(5, ("A",))]


def test_only_long_texts_have_several_parts() -> None:
    assert [(part.start, part.end) for part in split_parts("word " * (LONGEST // 5))] == [(0, LONGEST)]
    assert len(split_parts("word " * (LONGEST // 5 + 1))) == 3


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("".join(f"| row {number} | {'word. Then ' * 12}|\n" for number in range(40)), "|"),
        ("".join(f"{number}. Item {'some words. And ' * 9}\n" for number in range(40)), "0123456789"),
        ("\n\n".join(f"Paragraph {number}. It says {'some ' * 40}words. More." for number in range(20)), "P"),
        (" ".join(f"Sentence {number} says {'some ' * 20}words." for number in range(40)), "S"),
        ("".join(f"第{number}条{'建筑物的高度' * 12}。" for number in range(60)), "第"),
        ("word " * 800, "w"),
    ],
)
def test_a_long_text_is_cut_at_the_best_place(text: str, beginning: str) -> None:
    parts = split_parts(text)
    assert all(text[part.start] in beginning for part in parts)
    sizes = [part.end - part.start for part in parts]
    assert max(sizes) <= PART_CHARACTERS
    assert min(sizes) > PART_CHARACTERS // 4


def test_no_mark_loses_its_letter() -> None:
    for text in ("é" * 2_000, "x" + "กิ่" * 1_500):
        assert all(text[part.start] in "xeก" for part in split_parts(text))


@pytest.mark.parametrize("text", ["x" * 3_000_000, "One word. " * 300_000, "# a\nb\n" * 300_000, "\n" * 9_000])
def test_the_number_of_parts_is_limited(text: str) -> None:
    parts = split_parts(text)
    assert len(parts) <= MOST_PARTS
    assert sum(text[part.start : part.end].count("b") for part in parts) == text.count("b")


@given(st.text(alphabet="ab #\n.`-|Á😀。", max_size=3_000), st.sampled_from([40, 320]))
def test_parts_follow_each_other_and_have_all_words(text: str, most: int) -> None:
    parts = split_parts(text, most, most)
    assert parts
    assert parts[-1].end <= len(text)
    assert all(one.end <= other.start for one, other in itertools.pairwise(parts))
    said = "".join(text[part.start : part.end] for part in parts) + "".join(" ".join(part.headings) for part in parts)
    assert sum(map(said.count, "abA")) >= sum(
        line.count(letter) for line in text.splitlines() if not line.lstrip().startswith("#") for letter in "abA"
    )
