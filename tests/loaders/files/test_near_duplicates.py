"""Near-duplicates while files are added, replaced and removed in any order."""

from __future__ import annotations

import random

from loaders.files.near_duplicates import NearDuplicates, describe_text

WORDS = [f"{one}{other}" for one in ("wren", "tern", "gull", "crake") for other in ("a", "e", "i", "o", "u", "y")]

BASE = random.Random(7).choices(WORDS, k=150)


def make_text(chance: random.Random) -> str:
    """Make one of few texts, long and short, with at most one word changed: some are near others that differ more."""
    words = BASE[: chance.choice([3, 150])]
    for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
        words[chance.randrange(len(words))] = chance.choice(WORDS)
    return " ".join(words)


def find_originals(texts: dict[str, str]) -> set[str]:
    fresh = NearDuplicates()
    return {name for name in sorted(texts) if fresh.find(name, describe_text(texts[name])) is None}


def test_changes_in_any_order_give_the_result_of_a_fresh_load() -> None:
    for seed in range(5):
        chance = random.Random(seed)
        texts: dict[str, str] = {}
        originals: set[str] = set()
        near = NearDuplicates()
        duplicates = 0
        for _ in range(40):
            name = chance.choice("abcdefghijkl")
            if name in texts and chance.random() < 0.3:
                del texts[name]
                near.remove(name)
                originals.discard(name)
            else:
                texts[name] = make_text(chance)
                if near.find(name, describe_text(texts[name]), (name,)) is None:
                    originals.add(name)
                else:
                    originals.discard(name)
            for other, original in near.take_changed().items():
                assert (original is None) != (other in originals)
                originals ^= {other}
            assert originals == find_originals(texts)
            duplicates += len(texts) - len(originals)
        assert duplicates > 10


def test_copies_of_a_removed_file_become_originals_one_by_one() -> None:
    near = NearDuplicates()
    assert near.find("a", describe_text("One short text.")) is None
    copies = [near.find(name, describe_text("One short text."), None) for name in ("b", "c")]
    assert [copy.name for copy in copies if copy is not None] == ["a", "a"]
    near.remove("a")
    assert near.take_changed() == {"b": None}
    assert near.take_changed() == {}


def test_texts_without_words_are_compared_by_their_signs() -> None:
    duplicates = NearDuplicates()
    found = [
        duplicates.find(name, describe_text(text))
        for name, text in (("a", "\u2603 \u2192"), ("b", "!!!"), ("c", "!!!"))
    ]
    assert [each.name if each else None for each in found] == [None, None, "b"]
