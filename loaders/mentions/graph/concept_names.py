"""The names of the concepts in a store."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Final, Literal

from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, select
from kg.vocabulary import BASE, EXTRACTED, KG, PROV_GRAPH, SKOS
from kg.words import AND
from loaders.mentions.label_variants import Kind, Label, build_patterns, primary_language, unfit_reason
from loaders.mentions.tokens import fold

Saying = Kind | Literal["unlike"]
Row = tuple[str, Saying, str, str]
"""A concept, the kind of the row, the language tag ("" for none), and the name or the confusable concept."""

NAMES: Final = """
SELECT ?concept ?value WHERE { ?concept $property ?value }"""

CONCEPTS: Final = """
SELECT ?concept WHERE { ?concept a skos:Concept }"""

NAMES_OF: Final = """
SELECT ?concept ?value WHERE { VALUES ?concept { $concepts } ?concept $property ?value }"""

CONCEPTS_AMONG: Final = """
SELECT ?concept WHERE { VALUES ?concept { $concepts } ?concept a skos:Concept }"""

SUBJECTS: Final = """
SELECT ?concept WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?concept $property ?value } }"""

TYPED: Final = """
SELECT ?concept WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?concept a skos:Concept } }"""

REMOVED: Final = """
SELECT ?commit ?count ?node WHERE {
  GRAPH $prov { ?commit kg:generation ?number ; kg:removedCount ?count FILTER(?number > $since)
                OPTIONAL { ?commit kg:removedNode ?node } }
}"""

_PROPERTIES: Final[dict[Saying, NamedNode]] = {
    "label": SKOS.prefLabel,
    "alias": SKOS.altLabel,
    "negative": KG.negativeLabel,
    "unlike": KG.notToBeConfusedWith,
}
_MANY: Final = 1_000
"""Maximum changed graphs or nodes for an incremental update. Beyond it all names are loaded again."""
_OWN: Final = BASE
"""Quadcite's own code lists, topics, land uses and districts, which are concepts but not searched for in texts."""


@dataclass(frozen=True)
class Table:
    """The names of all concepts, including negative ones, and the pairs of confusable concepts."""

    rows: frozenset[Row] = frozenset()
    known_digest: str | None = field(default=None, compare=False, repr=False)
    """The digest of the table, if already computed."""

    @classmethod
    def load(cls, store: Store) -> Table:
        """Load all names of the store."""
        # Joined here in half the time that the store needs.
        concepts = {concept for (concept,) in select(store.query_sources, CONCEPTS).rows}
        if not concepts:
            return cls()
        said = {
            kind: select(store.query_sources, bind(NAMES, property=predicate)).rows
            for kind, predicate in _PROPERTIES.items()
        }
        return cls(frozenset(_table_rows(concepts, said)))

    @classmethod
    def load_saved(cls, saved: bytes) -> Table:
        """Load a table that `save` wrote."""
        held = json.loads(saved)
        return cls(frozenset(zip(*held["rows"], strict=True)), held["digest"])

    def save(self) -> bytes:
        """Write the table by columns, which load in half the time."""
        columns = list(zip(*self.rows, strict=True)) or [()] * 4
        return json.dumps({"digest": self.digest, "rows": columns}, ensure_ascii=False).encode(errors="surrogatepass")

    def update(self, store: Store, since: int, touched: Collection[NamedNode] | None) -> Table:
        """Return the current table, given that this is the table of generation `since`.

        Loads only the concepts that changed since, if they are few and the graphs that commits touched are known.
        """
        changed = _find_changed(store, since, touched)
        if changed is None:
            return Table.load(store)
        if not changed:
            return self
        named = list(changed)
        concepts = {concept for (concept,) in select(store.query_sources, bind(CONCEPTS_AMONG, concepts=named)).rows}
        said = {
            kind: select(store.query_sources, bind(NAMES_OF, concepts=named, property=predicate)).rows
            for kind, predicate in _PROPERTIES.items()
        }
        old = {node.value for node in changed}
        before = {row for row in self.rows if row[0] in old}
        after = set(_table_rows(concepts, said))
        rows = (self.rows - before) | after
        return Table(rows, _update_digest(self.digest, before - after, after - before))

    @cached_property
    def digest(self) -> str:
        """Hash of the table: the sum of the hashes of its rows, so that it can be updated for changed rows."""
        return self.known_digest or _update_digest("0", (), self.rows)

    @property
    def concepts(self) -> int:
        """Number of concepts with a name."""
        return len({concept for concept, kind, _, _ in self.rows if kind != "unlike"})

    @property
    def languages(self) -> set[str]:
        """The primary languages of the names."""
        return {primary_language(tag) for _, _, tag, _ in self.rows} - {""}

    @property
    def names(self) -> int:
        """Number of names, including negative ones."""
        return sum(kind != "unlike" for _, kind, _, _ in self.rows)

    def labels(self) -> list[Label]:
        """Return the names as labels."""
        return [Label(concept, text, tag or None, kind) for concept, kind, tag, text in self.rows if kind != "unlike"]

    def confusable(self) -> Mapping[str, Collection[str]]:
        """Return the confusable concepts of each concept that has any."""
        found: dict[str, set[str]] = defaultdict(set)
        for concept, kind, _, other in self.rows:
            if kind == "unlike":
                found[concept].add(other)
        return found

    def changed(self, other: Table) -> set[tuple[str, str]]:
        """Return the names, with language tags, whose matches may differ between this table and `other`."""
        differing = self.rows ^ other.rows
        concepts = {concept for concept, kind, _, _ in differing if kind == "unlike"}
        named = {(text, tag) for _, kind, tag, text in differing if kind != "unlike"}
        if concepts:
            both = self.rows | other.rows
            named |= {(text, tag) for concept, kind, tag, text in both if concept in concepts and kind != "unlike"}
        return named


def find_needles(names: Iterable[tuple[str, str]], languages: Collection[str]) -> set[str]:
    """Return folded words such that each text with one of `names` contains one of them; see `may_contain`.

    Names that are not searched for are left out. `languages` are those in which names without a language may occur.
    """
    found = set()
    ands = set(AND.values())
    for text, tag in names:
        if unfit_reason(text, primary_language(tag)):
            continue
        for language in [primary_language(tag)] if primary_language(tag) else ["", *languages]:
            for words, _ in build_patterns(text, language):
                own = [word for word in words if word not in ands] or list(words)
                found.add(max(own, key=lambda word: (len(fold(word)), word)))
    return found


def _table_rows(
    concepts: Collection[Term | None], said: Mapping[Saying, Sequence[tuple[Term | None, ...]]]
) -> Iterator[Row]:
    for kind, rows in said.items():
        for concept, value in rows:
            if concept not in concepts or not isinstance(concept, NamedNode) or concept.value.startswith(_OWN):
                continue
            if kind == "unlike":
                if isinstance(value, NamedNode):
                    yield concept.value, kind, "", value.value
            elif isinstance(value, RdfLiteral):
                yield concept.value, kind, value.language or "", value.value


def _update_digest(digest: str, gone: Iterable[Row], come: Iterable[Row]) -> str:
    """Compute the digest after removing and adding rows."""
    total = int(digest, 16) + sum(map(_row_hash, come)) - sum(map(_row_hash, gone))
    return f"{total % (1 << 256):064x}"


def _row_hash(row: Row) -> int:
    return int.from_bytes(sha256(repr(row).encode(errors="surrogatepass")).digest(), "big")


def _find_changed(store: Store, since: int, touched: Collection[NamedNode] | None) -> set[NamedNode] | None:
    """Find the nodes whose names or type may have changed since `since`; None if unknown or too many."""
    if touched is None:
        return None
    graphs = [graph for graph in touched if not graph.value.startswith(EXTRACTED)]
    if len(graphs) > _MANY:
        return None
    changed: set[NamedNode] = set()
    for _, count, node in select(store.query, bind(REMOVED, prov=PROV_GRAPH, since=since)).rows:
        if isinstance(node, RdfLiteral):
            changed.add(NamedNode(node.value))
        elif not isinstance(count, RdfLiteral) or count.value != "0":
            return None
    if graphs:
        asked = [bind(SUBJECTS, graphs=graphs, property=predicate) for predicate in _PROPERTIES.values()]
        for query in (bind(TYPED, graphs=graphs), *asked):
            changed.update(subject for (subject,) in select(store.query, query).rows if isinstance(subject, NamedNode))
    return changed if len(changed) <= _MANY else None
