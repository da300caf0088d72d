"""The names of the concepts in a store: what text is searched for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.errors import StoreError
from kg.sparql.terms import bind
from kg.store.protocol import Rows, Store, Term
from kg.vocabulary import BASE, KG, SKOS, sha256
from loaders.extraction.inflection import AND
from loaders.extraction.labels import Kind, Label, patterns, primary
from loaders.extraction.words import fold

Saying = Kind | Literal["unlike"]
Row = tuple[str, Saying, str, str]
"""A concept, what is said of it, the language tag ("" for none), and the name, or the concept that it is unlike."""

NAMES: Final = """
SELECT ?concept ?value WHERE { ?concept $property ?value }"""

CONCEPTS: Final = """
SELECT ?concept WHERE { ?concept a skos:Concept }"""

_PROPERTIES: Final[dict[Saying, NamedNode]] = {
    "label": SKOS.prefLabel,
    "alias": SKOS.altLabel,
    "negative": KG.negativeLabel,
    "unlike": KG.notToBeConfusedWith,
}
_CODE_LISTS: Final = BASE + "vocab/"
"""The code lists of Quadcite itself are concepts too, but none that a text speaks of."""


@dataclass(frozen=True)
class Table:
    """All names of all concepts, negative ones too, and which concepts are not to be confused with which."""

    rows: frozenset[Row] = frozenset()

    @classmethod
    def read(cls, store: Store) -> Table:
        """Return what the store says now."""
        rows: set[Row] = set()
        # Joined here, which takes half the time that it takes the store.
        concepts = {concept for (concept,) in _rows(store, CONCEPTS)}
        for kind, predicate in _PROPERTIES.items() if concepts else ():
            for concept, value in _rows(store, bind(NAMES, property=predicate)):
                if concept not in concepts or not isinstance(concept, NamedNode):
                    continue
                if concept.value.startswith(_CODE_LISTS):
                    continue
                if isinstance(value, RdfLiteral) != (kind == "unlike") and isinstance(value, RdfLiteral | NamedNode):
                    tag = value.language or "" if isinstance(value, RdfLiteral) else ""
                    rows.add((concept.value, kind, tag, value.value))
        return cls(frozenset(rows))

    @cached_property
    def digest(self) -> str:
        """What tells two tables apart."""
        return sha256(json.dumps(sorted(self.rows), ensure_ascii=False))

    @property
    def concepts(self) -> int:
        """How many concepts have a name."""
        return len({concept for concept, kind, _, _ in self.rows if kind != "unlike"})

    @property
    def languages(self) -> set[str]:
        """The primary languages that names are in."""
        return {primary(tag) for _, _, tag, _ in self.rows} - {""}

    @property
    def names(self) -> int:
        """How many names there are, negative ones too."""
        return sum(kind != "unlike" for _, kind, _, _ in self.rows)

    def labels(self) -> list[Label]:
        """Return the names."""
        return [Label(concept, text, tag or None, kind) for concept, kind, tag, text in self.rows if kind != "unlike"]

    def confusable(self) -> Mapping[str, Collection[str]]:
        """Return, of each concept that has such, which others it is not to be confused with."""
        found: dict[str, set[str]] = defaultdict(set)
        for concept, kind, _, other in self.rows:
            if kind == "unlike":
                found[concept].add(other)
        return found

    def changed(self, other: Table) -> set[tuple[str, str]]:
        """Return the names, each with its language tag, that may be found otherwise by `other` than by this table."""
        differing = self.rows ^ other.rows
        concepts = {concept for concept, kind, _, _ in differing if kind == "unlike"}
        named = {(text, tag) for _, kind, tag, text in differing if kind != "unlike"}
        if concepts:
            both = self.rows | other.rows
            named |= {(text, tag) for concept, kind, tag, text in both if concept in concepts and kind != "unlike"}
        return named


def needles(names: Iterable[tuple[str, str]], languages: Collection[str]) -> set[str]:
    """Return folded words of which every text that has one of `names` has one; see `texts.may_hold`.

    `languages` are those in which names of no language may stand.
    """
    found = set()
    ands = set(AND.values())
    for text, tag in names:
        for language in [primary(tag)] if primary(tag) else ["", *languages]:
            for words, _ in patterns(text, language):
                own = [word for word in words if word not in ands] or list(words)
                found.add(max(own, key=lambda word: (len(fold(word)), word)))
    return found


def _rows(store: Store, query: str) -> Sequence[tuple[Term | None, ...]]:
    found = store.query(query)
    if not isinstance(found, Rows):
        raise StoreError("a SELECT was not answered with rows")
    return found.rows
