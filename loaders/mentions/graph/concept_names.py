"""The names of the concepts in a store: what text is searched for."""

from __future__ import annotations

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
from loaders.mentions.label_variants import Kind, Label, patterns, primary, unfit
from loaders.mentions.tokens import fold

Saying = Kind | Literal["unlike"]
Row = tuple[str, Saying, str, str]
"""A concept, what is said of it, the language tag ("" for none), and the name, or the concept that it is unlike."""

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

COMMITS: Final = """
SELECT ?number ?graph WHERE {
  GRAPH $prov { ?commit kg:generation ?number ; kg:touched ?graph } FILTER(?number > $since)
}"""

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
"""When more graphs, or more nodes, than these have changed, everything is read anew."""
_CODE_LISTS: Final = BASE + "vocab/"
"""The code lists of Quadcite itself are concepts too, but none that a text speaks of."""


@dataclass(frozen=True)
class Table:
    """All names of all concepts, negative ones too, and which concepts are not to be confused with which."""

    rows: frozenset[Row] = frozenset()
    known_digest: str | None = field(default=None, compare=False, repr=False)
    """Its digest, where whoever made it has it already."""

    @classmethod
    def read(cls, store: Store) -> Table:
        """Return what the store says now."""
        # Joined here, which takes half the time that it takes the store.
        concepts = {concept for (concept,) in select(store.query, CONCEPTS).rows}
        if not concepts:
            return cls()
        said = {
            kind: select(store.query, bind(NAMES, property=predicate)).rows for kind, predicate in _PROPERTIES.items()
        }
        return cls(frozenset(_table_rows(concepts, said)))

    def renewed(self, store: Store, since: int) -> Table:
        """Return what the store says now, where this is what it said in generation `since`.

        Only what was touched since then is read, if that is little and the records of the commits tell.
        """
        changed = _changed_since(store, since)
        if changed is None:
            return Table.read(store)
        if not changed:
            return self
        named = list(changed)
        concepts = {concept for (concept,) in select(store.query, bind(CONCEPTS_AMONG, concepts=named)).rows}
        said = {
            kind: select(store.query, bind(NAMES_OF, concepts=named, property=predicate)).rows
            for kind, predicate in _PROPERTIES.items()
        }
        old = {node.value for node in changed}
        before = {row for row in self.rows if row[0] in old}
        after = set(_table_rows(concepts, said))
        rows = (self.rows - before) | after
        return Table(rows, _shifted(self.digest, before - after, after - before))

    @cached_property
    def digest(self) -> str:
        """What tells two tables apart: the sum of the hashes of the rows, so that it follows a change of a few."""
        return self.known_digest or _shifted("0", (), self.rows)

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

    None are of names that no text is searched for: they have no words, or such as every text has.

    `languages` are those in which names of no language may stand.
    """
    found = set()
    ands = set(AND.values())
    for text, tag in names:
        if unfit(text, primary(tag)):
            continue
        for language in [primary(tag)] if primary(tag) else ["", *languages]:
            for words, _ in patterns(text, language):
                own = [word for word in words if word not in ands] or list(words)
                found.add(max(own, key=lambda word: (len(fold(word)), word)))
    return found


def _table_rows(
    concepts: Collection[Term | None], said: Mapping[Saying, Sequence[tuple[Term | None, ...]]]
) -> Iterator[Row]:
    for kind, rows in said.items():
        for concept, value in rows:
            if concept not in concepts or not isinstance(concept, NamedNode) or concept.value.startswith(_CODE_LISTS):
                continue
            if kind == "unlike":
                if isinstance(value, NamedNode):
                    yield concept.value, kind, "", value.value
            elif isinstance(value, RdfLiteral):
                yield concept.value, kind, value.language or "", value.value


def _shifted(digest: str, gone: Iterable[Row], come: Iterable[Row]) -> str:
    """Return the digest of a table without some rows and with others."""
    total = int(digest, 16) + sum(map(_row_hash, come)) - sum(map(_row_hash, gone))
    return f"{total % (1 << 256):064x}"


def _row_hash(row: Row) -> int:
    return int.from_bytes(sha256(repr(row).encode(errors="surrogatepass")).digest(), "big")


def _changed_since(store: Store, since: int) -> set[NamedNode] | None:
    """Return what may have another name, or be a concept or none, since `since`; None where that is not known."""
    generations: set[int] = set()
    graphs: set[NamedNode] = set()
    for number, graph in select(store.query, bind(COMMITS, prov=PROV_GRAPH, since=since)).rows:
        if isinstance(number, RdfLiteral) and isinstance(graph, NamedNode):
            generations.add(int(number.value))
            if not graph.value.startswith(EXTRACTED):
                graphs.add(graph)
    if len(generations) != store.statistics().generation - since or len(graphs) > _MANY:
        return None
    changed: set[NamedNode] = set()
    for _, count, node in select(store.query, bind(REMOVED, prov=PROV_GRAPH, since=since)).rows:
        if isinstance(node, RdfLiteral):
            changed.add(NamedNode(node.value))
        elif not isinstance(count, RdfLiteral) or count.value != "0":
            return None
    if graphs:
        asked = [bind(SUBJECTS, graphs=list(graphs), property=predicate) for predicate in _PROPERTIES.values()]
        for query in (bind(TYPED, graphs=list(graphs)), *asked):
            changed.update(subject for (subject,) in select(store.query, query).rows if isinstance(subject, NamedNode))
    return changed if len(changed) <= _MANY else None
