"""Codes as they stand in the store, each kept in memory from one change to the next.

What a kept code was read from is known by the hashes of its graphs: where the store has other ones, the sections in
these are read again, and nothing else.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

from kg.knowledge_graph import Memory
from kg.provenance.reader import find_changed_graphs, graphs_about
from kg.sparql.terms import bind
from kg.store.protocol import Commit, Store, select, term_text
from kg.vocabulary import GENERATED, PROV_GRAPH, mint
from loaders.zoning.extraction.citation_resolution import Index, numbers_in, numbers_of, resolve_range
from loaders.zoning.extraction.citations import Citation, find_citations
from loaders.zoning.extraction.districts import District, find_in_section, pick_best
from loaders.zoning.graph.stored_sections import key_of, load_sections
from loaders.zoning.readers.code_model import DOMAIN, Section

DIGESTS: Final = """
SELECT ?section ?digest WHERE {
  GRAPH ?graph { ?section kg:jurisdiction $municipality ; a kg:CodeSection }
  GRAPH $prov { ?graph kg:contentSha256 ?digest }
}"""

CITED: Final = """
SELECT DISTINCT ?section ?words WHERE {
  ?section kg:jurisdiction $municipality ; a kg:CodeSection .
  ?claim rdf:subject ?section ; a kg:CrossReference ; kg:rawCitation ?words
}"""

CITED_BY: Final = """
SELECT DISTINCT ?section ?words WHERE {
  VALUES ?section { $sections } ?claim rdf:subject ?section ; a kg:CrossReference ; kg:rawCitation ?words
}"""

ANY: Final = """
SELECT ?section WHERE { ?section kg:jurisdiction $municipality ; a kg:CodeSection } LIMIT 1"""

_OWN_NAMES: Final = {"us-dc": ("D.C. Code", "D.C. Official Code")}
"""By which names codes are cited as if they were the law of a state."""
_RANGE: Final = re.compile(r" (?:to|through|thru) |[–—]| - |-(?=[(§])")
_KEPT: Final = 4
_FEW: Final = 200
"""Changed sections that are read one by one, where more are read with the whole code."""
_LOCK: Final = threading.Lock()


@dataclass(slots=True)
class Code:
    """The sections of one municipality's code, with what is looked up in them. `copy` before a change."""

    name: str
    index: Index
    sections: dict[str, Section] = field(default_factory=dict)
    named: dict[str, Sequence[District]] = field(default_factory=dict)
    """The districts that sections name, of those that do."""
    words: dict[str, frozenset[str]] = field(default_factory=dict)
    """The words of the citations in the sections that are stored, of those that have any."""
    citing: dict[str, frozenset[str]] = field(default_factory=dict)
    """By what may be the number of a section, the sections that have it in a citation."""
    digests: dict[str, str] = field(default_factory=dict)
    """Hashes of the graphs of the sections that are stored."""
    generation: int = -1
    """Of the store when it was last known to say this."""

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the code of a municipality without any section."""
        return cls(name, Index(codes=_OWN_NAMES.get(name, ())))

    def copy(self) -> Code:
        """Return the same, to be changed apart from this one."""
        other = Code(self.name, self.index.copy(), generation=self.generation)
        other.sections, other.named, other.words = dict(self.sections), dict(self.named), dict(self.words)
        other.citing, other.digests = dict(self.citing), dict(self.digests)
        return other

    def put(self, section: Section) -> None:
        """Take a section in, in the place of the one with its key."""
        self.sections[section.key] = section
        self.index.put(section)
        self.named.pop(section.key, None)
        if found := tuple(find_in_section(section)):
            self.named[section.key] = found

    def fill(self, sections: Iterable[Section]) -> None:
        """Take many sections in, where there were none."""
        self.sections = {section.key: section for section in sections}
        self.index = Index(self.sections.values(), codes=self.index.own)
        self.named = {key: found for key, each in self.sections.items() if (found := tuple(find_in_section(each)))}

    def drop(self, key: str) -> None:
        """Forget a section."""
        self.sections.pop(key, None)
        self.named.pop(key, None)
        self.index.drop(key)
        self.cites(key, ())
        self.digests.pop(key, None)

    def cites(self, key: str, words: Iterable[str]) -> None:
        """Note the words of all citations in a section."""
        before, after = self.words.pop(key, frozenset()), frozenset(words)
        if after:
            self.words[key] = after
        had = {number for each in before for number in numbers_in(each)}
        has = {number for each in after for number in numbers_in(each)}
        for number in had - has:
            self.citing[number] -= {key}
        for number in has - had:
            self.citing[number] = self.citing.get(number, frozenset()) | {key}

    @property
    def districts(self) -> Mapping[str, District]:
        """The districts that the sections name, by code."""
        return pick_best(district for several in self.named.values() for district in several)

    def above(self, key: str) -> Sequence[Section]:
        """The sections that the one with this key is part of, from the inside."""
        return [self.sections[each] for each in self.index.above(key)[1:]]

    def ranges(self) -> Iterator[tuple[str, Citation]]:
        """Yield the citations of several sections from one to another, each with the section that it stands in."""
        state = state_of(self.name)
        for key, several in self.words.items():
            for words in several:
                for citation in _ranges(words, state):
                    yield key, citation

    def citing_any(self, other: Code, moved: Collection[str]) -> set[str]:
        """Return which stored sections may cite something else once this is the code `other`, whose sections `moved`
        came, went, or are called or stand otherwise.
        """
        if not moved:
            return set()
        below = {each for key in moved for code in (self, other) for each in code.index.below(key)}
        called = [each for key in below for code in (self, other) if (each := code.sections.get(key)) is not None]
        found = {key for section in called for number in numbers_of(section) for key in self.citing.get(number, ())}
        for key, citation in self.ranges():
            if key not in found and not below.isdisjoint(
                (*resolve_range(citation, self.index, key), *resolve_range(citation, other.index, key))
            ):
                found.add(key)
        return found


@lru_cache(maxsize=20_000)
def _ranges(words: str, state: str) -> Sequence[Citation]:
    if not _RANGE.search(words):
        return ()
    found = (each for each in find_citations(words, state) if each.through is not None and each.internal)
    return tuple(each for each in found if not (each.through or "").startswith("("))


def state_of(name: str) -> str:
    """Return the two letters of the state in the key of a municipality."""
    return name.split("-")[1].upper()


class Codes:
    """Gives the codes of a store. With a `memory` it keeps those that were asked for last."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory: Memory | None = None
        if memory is not None:
            with _LOCK:
                self._memory = memory.get("codes") or memory.keep("codes", Memory(_KEPT))

    def stored(self, store: Store, name: str) -> Code:
        """Return the code of the municipality with this key as it is stored. It is not to be changed."""
        generation = store.statistics().generation
        known: Code | None = self._memory.get(name) if self._memory is not None else None
        if known is not None and known.generation == generation:
            return known
        code = known if known is not None and _stands(store, known, generation) else None
        code = code or (_renewed(store, known) if known is not None else _read(store, name))
        code.generation = generation
        return code if self._memory is None else self._memory.keep(name, code)

    def committed(self, code: Code, keys: Collection[str], commit: Commit) -> None:
        """Keep `code`, which `commit` has made of the one that was `stored` by writing the sections `keys`."""
        if self._memory is None:
            return
        digests = {change.graph: change.content_sha256 for change in commit.changes}
        for key in keys:
            if (graph := mint("graph", "src", DOMAIN, code.name, key)) in digests:
                code.digests.pop(key, None)
                if (digest := digests[graph]) is not None:
                    code.digests[key] = digest
        if commit.generation == code.generation + 1:
            code.generation = commit.generation
        self._memory.keep(code.name, code)


def _read(store: Store, name: str) -> Code:
    code = Code.of(name)
    code.fill(load_sections(store, name).values())
    if code.sections:
        code.digests = _digests(store, name)
        for key, words in _words(store, name, bind(CITED, municipality=mint("municipality", name))).items():
            code.cites(key, words)
    return code


def _stands(store: Store, known: Code, generation: int) -> bool:
    """Whether no commit after the code was known has changed it."""
    graphs = find_changed_graphs(store.query, known.generation, generation)
    own = graphs_about(graphs, DOMAIN, known.name) if graphs is not None else {""}
    return all(graph.startswith(GENERATED) for graph in own)


def _renewed(store: Store, known: Code) -> Code:
    """The code as the store has it, read as far as it differs from what is known."""
    digests, name = _digests(store, known.name), known.name
    gone = known.digests.keys() - digests.keys()
    changed = sorted(key for key, digest in digests.items() if known.digests.get(key) != digest)
    if not gone and not changed:
        return known
    if len(changed) > _FEW:
        return _read(store, name)
    code = known.copy()
    for key in gone:
        code.drop(key)
    if changed:
        for section in load_sections(store, name, changed).values():
            code.put(section)
        iris = [mint("section", name, key) for key in changed]
        words = _words(store, name, bind(CITED_BY, sections=iris))
        for key in changed:
            code.cites(key, words.get(key, ()))
    code.digests = digests
    return code


def _digests(store: Store, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    query = bind(DIGESTS, municipality=mint("municipality", name), prov=PROV_GRAPH)
    for row in sorted(
        (key_of(each["section"], name), term_text(each["digest"])) for each in select(store.query, query)
    ):
        found[row[0]] = found.get(row[0], "") + row[1]
    return found


def _words(store: Store, name: str, query: str) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in select(store.query, query):
        found[key_of(row["section"], name)].add(term_text(row["words"]))
    return found


def has_sections(store: Store, name: str) -> bool:
    """Return whether any section of a municipality's code is stored."""
    return bool(select(store.query, bind(ANY, municipality=mint("municipality", name))).rows)
