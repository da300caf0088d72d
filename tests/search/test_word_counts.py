"""The counts of words are those of the texts that are there, whatever was written and whenever it was cut off."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kg.search.word_counts import WordCounts, Words

TEXTS = st.dictionaries(
    st.sampled_from(["search", "search_de"]),
    st.lists(st.integers(0, 40) | st.integers(2**31, 2**32 - 1), min_size=1, max_size=6, unique=True),
    max_size=2,
)
STEPS = st.lists(
    st.tuples(st.integers(2**63 - 6, 2**63 - 1), TEXTS, st.sampled_from(["write", "save", "kill", "half"]))
)


def check(counts: WordCounts, texts: dict[int, Words]) -> None:
    for name in ("search", "search_de"):
        having = Counter(word for each in texts.values() for word in each.get(name, ()))
        words = [*having, 7, 2**32 - 1]
        number, found = counts.find(name, words)
        assert number == sum(name in each for each in texts.values())
        assert list(found) == [having[word] for word in words]


def open_counts(folder: Path, texts: dict[int, Words]) -> WordCounts:
    counts = WordCounts(folder)
    numbers = Counter(name for each in texts.values() for name in each)
    assert not counts.open(lambda ids: {id_: texts[id_] for id_ in ids if id_ in texts}, numbers, texts.values())
    return counts


@given(STEPS)
def test_counts_follow_the_texts(steps: list[tuple[int, Words, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts: dict[int, Words] = {}
        counts = open_counts(folder, texts)
        for id_, words, event in steps:
            old = texts.get(id_, {})
            counts.note({id_: old})
            if event == "half":  # killed between the journal and the shard
                counts = open_counts(folder, texts)
                continue
            texts[id_] = words
            counts.replace([old], [words])
            check(counts, texts)
            if event == "save":
                counts.save()
            elif event == "kill":
                counts = open_counts(folder, texts)
            check(counts, texts)
        check(open_counts(folder, texts), texts)


def test_texts_that_are_gone_are_noticed(tmp_path: Path) -> None:
    texts: dict[int, Words] = {id_: {"search": [number]} for number, id_ in enumerate((5, 6, 7))}
    counts = open_counts(tmp_path, {})
    counts.note({id_: {} for id_ in texts})
    counts.replace((), texts.values())
    counts.save()
    counts.note({5: texts[5]})  # and killed
    left = {5: texts[5]}
    again = WordCounts(tmp_path)
    assert again.open(lambda ids: {id_: left[id_] for id_ in ids if id_ in left}, {"search": 1}, left.values()) == 2
