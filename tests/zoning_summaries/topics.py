"""Questions to a real code with their answers (``topics.toml``): how often does a descent have one among its first?"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.zoning.topic_search import descend
from kg.zoning_summaries import code_tree

FILE: Final = Path(__file__).with_suffix(".toml")
TOP_K: Final = 5


@dataclass(frozen=True)
class Topic:
    """A question, the numbers of the sections that answer it, and what it is for."""

    asked: str
    sections: frozenset[str]
    use: str


@dataclass(frozen=True)
class Asked:
    """What a descent and plain search had among their first for a question."""

    topic: Topic
    descent: Sequence[str]
    plain: Sequence[str]

    @property
    def found(self) -> bool:
        return not self.topic.sections.isdisjoint(self.descent)

    @property
    def found_plainly(self) -> bool:
        return not self.topic.sections.isdisjoint(self.plain)


def topics() -> list[Topic]:
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))["topic"]
    return [Topic(each["asked"], frozenset(each["sections"]), each["use"]) for each in read]


def ask(kg: KnowledgeGraph, municipality: str, questions: Iterable[Topic]) -> list[Asked]:
    """Ask a code whose sections have the keys of the file."""
    tree = code_tree.cached_tree(kg, municipality)
    units = [iri for iri in tree.order if tree.heights.get(iri) == 0]

    def numbers(iris: Iterable[str]) -> list[str]:
        return [iri.rpartition("/")[2] for iri in iris]

    asked = []
    for topic in questions:
        mine = numbers(hit.iri for hit in descend(kg, municipality, topic.asked, TOP_K).results)
        plain = kg.search.rank(topic.asked, units=units, limit=TOP_K).candidates
        asked.append(Asked(topic, mine, numbers(each.iri for each in plain)))
    return asked


def municipality_in(kg: KnowledgeGraph) -> str:
    """Return the one municipality whose code is loaded."""
    [row] = kg.store.query("SELECT DISTINCT ?m WHERE { ?s a kg:CodeSection ; kg:jurisdiction ?m }")
    return str(row["m"].value)
