"""Which people or parties a name means: forgiving about how it is written, exact about what it matched. Pure."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode

from kg.errors import NotFoundError

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


NEAREST: Final = 5
"""Names that are proposed for one that nothing has."""

TITLES: Final = frozenset(
    re.findall(
        r"\w+",
        "mr mrs ms miss dr prof professor sen senator hon honourable honorable rev sir dame the mp am ao ac oam cbe "
        "obe dbe kbe kcmg kc qc sc dsc dso mc",
    )
)
"""Words around a name that do not tell people apart."""
_COMMON: Final = frozenset({"party", "of", "and", "the", "for", "australia", "australian"})
"""Words in the names of parties that do not tell them apart."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be named: its node, or a name that is recorded for nothing that has a node."""

    term: NamedNode | Literal
    label: str
    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        """Its label with its key, for a message."""
        key = self.term.value.rpartition("/")[2] if isinstance(self.term, NamedNode) else "as recorded"
        return f"{self.label} ({key})"


def people_named(argument: str, text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Return the people that `text` names, by IRI or key, whole name, name in another order, initials, or surname.

    Raises NotFoundError that names the nearest.
    """
    found = _by_key(text, choices)
    if found:
        return found
    wanted = _words(text)
    whole = [choice for choice in choices if any(_words(name) == wanted for name in choice.names)]
    if whole and len(wanted) > 1:
        return whole
    found = [choice for choice in choices if wanted and any(_is_person(wanted, name) for name in choice.names)]
    return found or whole or _none(argument, text, choices)


def parties_named(argument: str, text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Return the parties that `text` names, by IRI or code, by name or abbreviation, or by the words of a name.

    Raises NotFoundError that names the nearest.
    """
    found = _by_key(text, choices)
    if found:
        return found
    wanted = folded(text)
    said = set(wanted.split()) - _COMMON
    whole = [choice for choice in choices if any(folded(name) == wanted for name in choice.names)]
    if whole or not said:
        return whole or _none(argument, text, choices)
    having = {choice: [set(folded(name).split()) for name in choice.names] for choice in choices}
    same = [choice for choice, names in having.items() if any(words - _COMMON == said for words in names)]
    within = [choice for choice, names in having.items() if any(words >= said for words in names)]
    return same or within or _none(argument, text, choices)


def note_of(argument: str, text: str, found: Sequence[Choice]) -> str | None:
    """Return what to tell of a name that was not given as it is shown; None where there is nothing to tell."""
    if len(found) == 1 and text.strip() in (found[0].label, *found[0].names):
        return None
    return f"{argument}: {text.strip()!r} was taken for {listed([choice.shown for choice in found])}."


def listed(names: Sequence[str]) -> str:
    """Return the first `NEAREST` of some names in one line, with how many more there are."""
    more = f" and {len(names) - NEAREST} more" if len(names) > NEAREST else ""
    return f"{', '.join(names[:NEAREST])}{more}"


def _by_key(text: str, choices: Sequence[Choice]) -> list[Choice]:
    wanted = text.strip().strip("<>").casefold()
    return [
        choice
        for choice in choices
        if isinstance(choice.term, NamedNode)
        and wanted in (choice.term.value.casefold(), choice.term.value.rpartition("/")[2].casefold())
    ]


def _none(argument: str, text: str, choices: Sequence[Choice]) -> list[Choice]:
    if not choices:
        raise NotFoundError(f"{argument}: {text[:100]!r} names nobody: no speeches are loaded")
    known = Names([(number, name) for number, choice in enumerate(choices) for name in (choice.label, *choice.names)])
    near = [choices[each.number].label for each in known.like(text, NEAREST)]
    if not near and len(choices) <= 2 * NEAREST:
        near = sorted(choice.label for choice in choices)
    meant = f"near it are {'; '.join(dict.fromkeys(near))}" if near else "no name is like it"
    more = "speech_stats(group_by='party')" if argument == "party" else "list_speakers"
    raise NotFoundError(f"{argument}: no speech has {text[:100]!r} ({meant}); {more} shows all")


def _words(name: str) -> tuple[str, ...]:
    """Return the words of a person's name without titles; where there is a comma, the surname last as elsewhere."""
    before, comma, after = name.partition(",")
    words = _plain(f"{after} {before}" if comma and _plain(after) else name)
    return tuple(words)


def _plain(name: str) -> list[str]:
    words = folded(re.sub(r"[’']", "", name)).split()
    return [word for word in words if word not in TITLES] or words


def _is_person(wanted: Sequence[str], name: str) -> bool:
    """Return whether `wanted` has the surname of `name`, and no word that is not of it, or an initial of one."""
    words = _words(name)
    surname = _surname(name, words)
    return surname in wanted and all(any(_same(word, other) for other in words) for word in wanted)


def _surname(name: str, words: Sequence[str]) -> str:
    if "," in name:
        return words[-1]
    # "Coulter Sen J.R.": initials follow the surname
    whole = [word for word in words if len(word) > 1]
    return whole[-1] if whole else words[-1]


def _same(word: str, other: str) -> bool:
    return word == other or (min(len(word), len(other)) == 1 and word[0] == other[0])
