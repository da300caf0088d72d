"""Policy families that a text cites by their titles.

Only an exact title counts, with its capitals, at a word boundary, and only one that has enough words of its own:
``National Energy Policy`` is the title of families in many countries, and of none in particular.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick

from kg.words import is_stop_word, to_word_set
from loaders.citations.act_titles import UNSURE

LEAST_DISTINCTIVE: Final = 2
"""Words of a title that are not common ones, from which the title alone identifies a family."""

OF_COUNTRY: Final = 0.9
"""The confidence of the title of a family of the document's jurisdiction. Not measured: see `loaders.citations`."""
OF_ONLY_FAMILY: Final = 0.8
"""The confidence of a title that one family has, without jurisdictions to compare. Not measured either."""

_COMMON: Final = to_word_set(
    """
    act acts action adaptation agency agreement agriculture air amended amendment bill biodiversity biofuels budget
    carbon change circular clean climate code commission conservation council decision declaration decree
    development directive disaster disasters draft economic economy education efficiency electricity emission
    emissions energy environment environmental establishment executive federal finance first forest forestry forests
    framework fuel fund future gas general government green greenhouse growth health implementation industry
    initiative integrated investment land law long low management marine master measures methodology mitigation
    national natural new nuclear oil ordinance order organic part plan planning policies policy pollution power
    prevention program programme programs promotion protection protocol public reduction regulation regulations
    renewable report resilience resolution resource resources review risk road roadmap royal rules safety second
    sector securities solar standards state strategic strategy sustainable system tax term third trade transport use
    vision vehicles waste water wind with
    """
)
_WORD: Final = re.compile(r"\w[\w'’]*")
_YEAR: Final = re.compile(r"(?:1[89]|20)\d\d")
_YEAR_AFTER: Final = re.compile(r",?\s+(?:of\s+)?\(?(?:1[89]|20)\d\d(?!\d)")
_CAPITAL_BEFORE: Final = re.compile(r"([A-Z][\w'’-]*)\s+$")
_LONGEST: Final = 300
"""Maximum characters of a title that is searched for."""


class FamilyName(NamedTuple):
    """The title of a family at [start, end) of a text."""

    start: int
    end: int
    family: str
    confidence: float


class FamilyNames:
    """Finds the titles of policy families. `families` gives title and jurisdictions (keys) of each, by IRI."""

    def __init__(self, families: Mapping[str, tuple[str, Collection[str]]]) -> None:
        self._families: Final = families
        self._by_title: Final[dict[str, list[str]]] = defaultdict(list)
        for family, (title, _) in sorted(families.items()):
            line = " ".join(title.split())
            if is_distinctive(line):
                self._by_title[line].append(family)
        self._titles: Final = list(self._by_title)
        self._automaton: Final = AhoCorasick(self._titles, store_patterns=False) if self._titles else None
        self._patterns: Final[dict[int, re.Pattern[str]]] = {}

    def find(self, text: str, jurisdiction: str | None = None, own: Collection[str] = ()) -> Sequence[FamilyName]:
        """Find the families that `text`, of a document of a jurisdiction and of the families `own`, cites by title.

        The confidence is low where the title is that of families of other jurisdictions only.
        """
        numbers = self._find_numbers(text)
        if not numbers:
            return ()
        found: list[FamilyName] = []
        for number in sorted(numbers):
            chosen = self._choose(self._by_title[self._titles[number]], jurisdiction)
            if chosen is None or chosen[0] in own:
                continue
            pattern = self._patterns.get(number) or self._patterns.setdefault(number, _compile(self._titles[number]))
            found += (
                FamilyName(match.start(), match.end(), *chosen)
                for match in pattern.finditer(text)
                if not _is_part(text, match.start(), match.end())
            )
        return _keep_longest(found)

    def find_titles(self, text: str) -> Iterator[str]:
        """Yield the titles that `text` contains, also as part of longer ones, or of words."""
        return map(self._titles.__getitem__, self._find_numbers(text))

    def _find_numbers(self, text: str) -> Collection[int]:
        if self._automaton is None:
            return ()
        line = text if text.isprintable() and "  " not in text else " ".join(text.split())
        return {number for number, _, _ in self._automaton.find_matches_as_indexes(line, overlapping=True)}

    def _choose(self, families: Sequence[str], jurisdiction: str | None) -> tuple[str, float] | None:
        """Choose the family of the jurisdiction, else the only one with this title."""
        near = [family for family in families if jurisdiction is not None and jurisdiction in self._families[family][1]]
        if len(near) == 1:
            return near[0], OF_COUNTRY
        if near or len(families) != 1:
            return None
        return families[0], OF_ONLY_FAMILY if jurisdiction is None or not self._families[families[0]][1] else UNSURE


@lru_cache(maxsize=20_000)  # each commit that adds a family asks about all of them
def is_distinctive(title: str) -> bool:
    """Whether a title has enough words that are not common in titles; the year of a longer title counts as one."""
    if len(title) > _LONGEST:
        return False
    words = [word.casefold() for word in _WORD.findall(title)]
    own = {
        word
        for word in words
        if word not in _COMMON and not is_stop_word(word, "en") and not word.isdigit() and len(word) > 2
    }
    dated = len(words) > 3 and any(_YEAR.fullmatch(word) for word in words)
    return len(own) + dated >= LEAST_DISTINCTIVE


def find_needle(title: str) -> str:
    """Return the longest word of a title."""
    words: list[str] = _WORD.findall(title)
    return max(words, key=len)


def _compile(title: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(title)}(?![\w-])".replace(r"\ ", r"\s+"))


def _is_part(text: str, start: int, end: int) -> bool:
    """Whether a title at [start, end) is part of a longer one: another capital before it, or a year after it."""
    if _YEAR_AFTER.match(text, end):
        return True
    before = _CAPITAL_BEFORE.search(text, max(0, start - 40), start)
    return before is not None and not is_stop_word(before[1].casefold(), "en")


def _keep_longest(found: Iterable[FamilyName]) -> list[FamilyName]:
    kept: list[FamilyName] = []
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return kept
