"""Which vectors a text gets and a query is compared with, by its language. Pure functions.

The first model embeds texts in the languages that it knows, and those of unknown language; the second one those that
the first does not know, and once more those that it does. So a query in any language that a model knows finds texts in
all of these. Units in other languages have no vectors. They are found by words alone, and nothing is pending for them.
Texts without a letter or digit have neither words nor vectors. They are counted, and no query finds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from kg.languages import UNKNOWN, WORDLESS
from kg.search.points import ALSO, DENSE, OTHER, SLOTS, Hits, Ids
from kg.search.ranking import MARGIN, Compared, Meaning
from kg.search.registry import get_offset


@dataclass(slots=True)
class Spaces:
    """The models of an index, by number: the names of those that are open, and the languages that each knows."""

    models: dict[int, str] = field(default_factory=dict)
    languages: dict[int, frozenset[str] | None] = field(default_factory=dict)
    """Primary subtags; None: all. Also of models that are not open yet, whose vectors are due already."""

    def use(self, number: int, model: str, languages: frozenset[str] | None) -> None:
        """Use a model as the one of a number from now on."""
        self.models, self.languages = {**self.models, number: model}, {**self.languages, number: languages}

    def knows(self, language: str) -> bool:
        """Whether a model knows a language."""
        return not self.languages or any(self._knows(number, language) for number in self.languages)

    def lose(self, number: int) -> None:
        """Note that the model of a number is missing. No vector by the second model is due then."""
        if number:
            self.languages = {each: known for each, known in self.languages.items() if each != number}

    def find(self, language: str) -> Sequence[str]:
        """Find the spaces in which a vector of a unit in a language is due."""
        first = self.languages.get(0)
        if language == WORDLESS:
            return ()
        if first is None or language == UNKNOWN or language in first:
            return (DENSE, ALSO) if first is not None and 1 in self.languages else (DENSE,)
        return (OTHER,) if self._knows(1, language) else ()

    def _knows(self, number: int, language: str) -> bool:
        known = self.languages.get(number, frozenset())
        return known is None or language in known

    def list_due(self, languages: Iterable[str]) -> dict[str, list[str]]:
        """List those of some languages of units of which a vector is due in each space."""
        due: dict[str, list[str]] = {}
        for language in languages:
            for space in self.find(language):
                due.setdefault(space, []).append(language)
        return due

    def compare(
        self,
        language: str | None,
        due: Mapping[str, Sequence[str]],
        embed: Callable[[int], Sequence[float] | None],
    ) -> Sequence[Compared]:
        """List the vectors that a query in a language (None: unsure) is compared with.

        `embed` embeds the query by the model of a number, if that model is there.
        """
        first = self.languages.get(0)
        spaces: Sequence[str] = (DENSE, OTHER, ALSO)
        if first is None or (language is not None and language in first):
            spaces = DENSE, OTHER
        elif language is not None:
            spaces = (OTHER, ALSO) if self._knows(1, language) else ()
        vectors = {number: embed(number) for number in {SLOTS[space] for space in spaces if space in due}}
        if vectors.get(0, ()) is None and ALSO in due:  # without the first model, the second one compares its texts too
            spaces = OTHER, ALSO
            vectors[1] = embed(1)
        return [
            each
            for space in spaces
            if space in due and (vector := vectors.get(SLOTS[space])) is not None
            for each in self._divide(space, vector, language, due[space])
        ]

    def _divide(
        self, space: str, vector: Sequence[float], language: str | None, languages: Sequence[str]
    ) -> Iterator[Compared]:
        """Divide the units of a space by the offset of their cosines."""
        groups: dict[tuple[float, bool], list[str]] = {}
        for each in languages:
            known = "en" if each == UNKNOWN else each
            offset = get_offset(self.models.get(SLOTS[space], ""), language, known)
            groups.setdefault((offset, space != DENSE and known != language), []).append(each)
        for (offset, is_foreign), some in groups.items():
            yield Compared(space, vector, offset, tuple(some) if len(groups) > 1 else None, is_foreign)


def search_spaces(
    compared: Sequence[Compared],
    search: Callable[[Compared], Hits],
    load_languages: Callable[[Ids], Sequence[str]],
    depth: int | None,
) -> Meaning:
    """Search each space once, to a depth (None: all units), and divide the hits into the lists that are compared.

    A search for each list would be filtered by language, and take as long as one of all units of the space.
    """
    spaces = [[*lists] for _, lists in groupby(enumerate(compared), lambda numbered: numbered[1].space)]
    searched = [search(lists[0][1]) for lists in spaces]
    leasts = [None if depth is None or len(hits) < depth else hits.least for hits in searched]
    highest = [max(each.offset for _, each in lists) for lists in spaces]
    bounds = [least + offset for least, offset in zip(leasts, highest, strict=True) if least is not None]
    # Only of hits that can be above the bound of all lists: to load the language of one takes 12 microseconds.
    bound = min(max(bounds, default=-math.inf), 1.0) - MARGIN
    found: list[tuple[int, Compared, Hits, float | None]] = []
    for lists, hits, least, offset in zip(spaces, searched, leasts, highest, strict=True):
        if lists[0][1].languages is None:
            found += ((number, each, hits, least) for number, each in lists)
            continue
        reaching = hits.cut(int(np.count_nonzero(hits.scores + offset >= bound)))
        languages = load_languages(reaching.ids)
        for number, each in lists:
            found.append((number, each, reaching.select(np.isin(languages, each.languages or ())), least))
    return Meaning.join(found)
