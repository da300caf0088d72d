"""Names found although they are misspelt: an index of many names by the trigrams of their letters. Pure."""

from __future__ import annotations

import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

COMMON: Final = 20_000
"""Names that share a trigram beyond which it tells too little to be followed, where rarer ones do."""
COMPARED: Final = 200
"""Names that are compared letter by letter, of those that share most trigrams."""
SPELT: Final = 0.75
"""Share of letters that two words have in common from which one may be the other misspelt."""


class Likeness(NamedTuple):
    """How like a name is to what was looked for, from 0 to 1, and by which of its names."""

    score: float
    number: int
    name: str


def folded(text: str) -> str:
    """Return `text` for comparison: without case, accents, punctuation and repeated blanks."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter if letter.isalnum() else " " for letter in plain if not unicodedata.combining(letter))
    return " ".join(kept.split())


class Names:
    """Things by their names: each name belongs to the thing of a number."""

    def __init__(self, names: Sequence[tuple[int, str]]) -> None:
        self._owners = array("L", (number for number, _ in names))
        self._names = [name for _, name in names]
        self._folded = [folded(name) for name in self._names]
        self._exact: dict[str, list[int]] = defaultdict(list)
        self._grams: dict[str, array[int]] = defaultdict(lambda: array("L"))
        self._sizes = array("L")
        for position, name in enumerate(self._folded):
            self._exact[name].append(position)
            grams = _grams(name)
            self._sizes.append(len(grams))
            for gram in grams:
                self._grams[gram].append(position)

    def __len__(self) -> int:
        return len(self._names)

    def like(self, text: str, most: int) -> list[Likeness]:
        """Return at most `most` things whose names are like `text`, best first, each with its best name."""
        wanted = folded(text)
        if not wanted:
            return []
        best: dict[int, Likeness] = {}
        for position in [*self._exact.get(wanted, ()), *self._sharing(wanted)]:
            score = likeness(wanted, self._folded[position])
            owner = self._owners[position]
            if owner not in best or score > best[owner].score:
                best[owner] = Likeness(score, owner, self._names[position])
        return sorted(best.values(), key=lambda found: (-found.score, len(found.name), found.name))[:most]

    def _sharing(self, wanted: str) -> list[int]:
        grams = _grams(wanted)
        lists = sorted((self._grams[gram] for gram in grams if gram in self._grams), key=len)
        rare = [positions for positions in lists if len(positions) <= COMMON] or lists[:1]
        shared: Counter[int] = Counter()
        for positions in rare:
            shared.update(positions)
        # Of the trigrams of both together, how many are shared (Dice): a long name with the word in it counts less.
        by_share = sorted(
            shared.items(), key=lambda item: -item[1] / (len(grams) + min(self._sizes[item[0]], 4 * len(grams)))
        )
        return [position for position, _ in by_share[:COMPARED]]


def likeness(wanted: str, name: str) -> float:
    """Return how like two folded names are, from 0 to 1: letter by letter, or word by word in another order."""
    if wanted == name:
        return 1.0
    words, others = wanted.split(), name.split()
    found = [max((_ratio(word, other) for other in others), default=0.0) for word in words]
    by_words = sum(found) / len(found) if found else 0.0
    covered = min(1.0, len(wanted) / max(1, len(name)))
    # Each word is there: better the more of the name they make up.
    return max(0.97 * _ratio(wanted, name), by_words**2 * (0.75 + 0.2 * covered))


def _ratio(one: str, other: str) -> float:
    if one == other:
        return 1.0
    if other.startswith(one) and len(one) > 2:
        return 0.9
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.real_quick_ratio() < SPELT or matcher.quick_ratio() < SPELT:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= SPELT else 0.0


def _grams(name: str) -> set[str]:
    padded = f" {name} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)} or {padded}
