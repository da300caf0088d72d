"""The golden set: 30 fictional pages, annotated by hand, and the scores of an extraction on them.

``golden/developed.txt`` has 20 pages that the extraction was written on, ``golden/held_out.txt`` 10 that it was not:
their errors are counted and never looked at. Both have the same author. ``{product:Salt Queue}`` is a mention of a
product, ``{person:Pike=Jonas Pike}`` one by a short name. Below ``%%`` are the relations of a page:
``Tide Gateway | uses | Salt Queue``, ``defines | Bollard``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loaders.files.extraction.entity_model import Extraction, normalize_name

GOLDEN: Final = Path(__file__).parent / "golden"
_MENTION: Final = re.compile(r"\{(?P<type>[a-z]+):(?P<words>[^{}=]+)(?:=(?P<name>[^{}]+))?\}")

Spot = tuple[int, int, str]
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """A page without its annotations, the mentions in it and the relations that it states."""

    name: str
    text: str
    mentions: frozenset[Spot]
    relations: frozenset[Triple]


@dataclass(slots=True)
class Score:
    """Counts of found and wanted items."""

    right: int = 0
    found: int = 0
    wanted: int = 0

    def add(self, found: frozenset[object] | set[object], wanted: frozenset[object] | set[object]) -> None:
        """Count the items of one page."""
        self.right += len(found & wanted)
        self.found += len(found)
        self.wanted += len(wanted)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / (self.found + self.wanted) if self.right else 0.0

    def __str__(self) -> str:
        precision = self.right / self.found if self.found else 0.0
        recall = self.right / self.wanted if self.wanted else 0.0
        return f"P {precision:.2f}  R {recall:.2f}  F1 {self.f1:.2f}  ({self.wanted} wanted)"


def read_pages(name: str) -> Iterator[Page]:
    """Read the pages of a file of the golden set."""
    for part in re.split(r"^=== ", (GOLDEN / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]:
        path, _, rest = part.partition("\n")
        body, _, stated = rest.partition("%%\n")
        pieces: list[str] = []
        mentions: set[Spot] = set()
        at = length = 0
        for match in _MENTION.finditer(body):
            pieces.append(body[at : match.start()])
            length += match.start() - at
            pieces.append(match["words"])
            mentions.add((length, length + len(match["words"]), match["type"]))
            length += len(match["words"])
            at = match.end()
        relations: set[Triple] = set()
        for line in filter(None, stated.strip().splitlines()):
            fields = [field.strip() for field in line.split("|")]
            one, relation, other = ["", *fields] if len(fields) == 2 else fields
            relations.add((one and normalize_name(one), relation, normalize_name(other)))
        yield Page(path, "".join([*pieces, body[at:]]), frozenset(mentions), frozenset(relations))


def get_mentions(found: Extraction) -> set[Spot]:
    """Return the mentions of an extraction, without pronouns and the like."""
    return {(each.start, each.end, each.key[0]) for each in found.mentions if each.method != "coreference"}


def get_relations(found: Extraction) -> set[Triple]:
    """Return the relations of an extraction."""
    return {(each.subject[1] if each.subject else "", each.relation, each.object[1]) for each in found.relations}


def score_pages(pages: Sequence[Page], found: Iterable[Extraction]) -> tuple[Score, Score, Score]:
    """Score mentions by span and type, mentions by span alone, and relations."""
    typed, plain, relations = Score(), Score(), Score()
    for page, extraction in zip(pages, found, strict=True):
        own = get_mentions(extraction)
        typed.add(own, page.mentions)  # type: ignore[arg-type]
        plain.add({spot[:2] for spot in own}, {spot[:2] for spot in page.mentions})
        relations.add(get_relations(extraction), page.relations)  # type: ignore[arg-type]
    return typed, plain, relations
