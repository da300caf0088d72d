"""Codes as stored, cached in memory between changes, and the districts that tables and statements state.

Where a commit has changed a section of a cached code, the whole code is read again. Measured with 5,000 sections: a
section sent to a cached code takes 0.2 to 0.4 s; reading the whole code takes 3 to 4.5 s.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Self
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import Memory
from kg.provenance.reader import find_changed_graphs, graphs_about
from kg.sparql.terms import bind
from kg.store.protocol import Commit, Store, Term, select, term_text
from kg.vocabulary import BASE, GENERATED, SKOS, SOURCED, mint
from loaders.zoning.extraction.citation_resolution import Index, numbers_in, numbers_of
from loaders.zoning.extraction.districts import District, find_in_section, pick_best
from loaders.zoning.extraction.section_scope import Memo, Scope, find_code_scopes
from loaders.zoning.readers.code_model import DOMAIN, Cell, Section, Subsection, Table

CITED: Final = """
SELECT DISTINCT ?section ?words WHERE {
  ?section kg:jurisdiction $municipality ; a kg:CodeSection .
  ?claim rdf:subject ?section ; a kg:CrossReference ; kg:rawCitation ?words
}"""

SECTIONS: Final = """
SELECT ?section ?number ?title ?kind ?level ?parent ?position ?text WHERE {
  ?section kg:jurisdiction $municipality ; kg:level ?level ; eli:type_subdivision ?kind ; schema:position ?position
  OPTIONAL { ?section dcterms:title ?title }
  OPTIONAL { ?section kg:sectionNumber ?number }
  OPTIONAL { ?section dcterms:isPartOf ?parent }
  OPTIONAL { ?section schema:text ?text }
}"""

PARTS: Final = """
SELECT ?section ?part ?start ?end ?title ?rows ?cells WHERE {
  ?section kg:jurisdiction $municipality . ?part dcterms:isPartOf ?section ; a ?kind ; kg:start ?start ; kg:end ?end
  VALUES ?kind { kg:Subsection kg:CodeTable }
  OPTIONAL { ?part dcterms:title ?title }
  OPTIONAL { ?part kg:headerRows ?rows ; kg:cells ?cells }
}"""

STATED: Final = """
SELECT DISTINCT ?graph ?code ?name WHERE {
  ?district kg:jurisdiction $municipality ; a kg:ZoningDistrict ; skos:notation ?code ; skos:prefLabel ?name
  { GRAPH ?graph { ?rule kg:district ?district } } UNION { GRAPH ?graph { ?district ?says ?what } }
  FILTER(STRSTARTS(STR(?graph), $sources))
}"""

_SOURCES: Final = f"{SOURCED}{DOMAIN}/"
_DISTRICTS: Final = f"{BASE}id/district/"
_STATED: Final = 1.0
"""Confidence of a district that a table or a statement states."""
_OWN_NAMES: Final = {"us-dc": ("D.C. Code", "D.C. Official Code")}
"""Names by which a code is cited as if it were the law of a state."""
_RANGE: Final = re.compile(r" (?:to|through|thru) |[–—]| - |-(?=[(§])")
_KEPT: Final = 4
_LOCK: Final = threading.Lock()


@dataclass(slots=True)
class Code:
    """The sections of one municipality's code, with indexes over them. Call `copy` before a change."""

    name: str
    index: Index
    named: dict[str, Sequence[District]] = field(default_factory=dict)
    """Districts named by each section that names any."""
    words: dict[str, frozenset[str]] = field(default_factory=dict)
    """Words of the citations in each stored section that has any."""
    generation: int = -1
    """Store generation at which this code was last known to be current."""
    scoped: tuple[Mapping[str, District], Memo] = field(default_factory=lambda: ({}, {}))
    """Scopes that were found, and the districts that they were found with."""

    @classmethod
    def empty(cls, name: str) -> Self:
        """Build an empty code of a municipality."""
        return cls(name, Index(codes=_OWN_NAMES.get(name, ())))

    def copy(self) -> Code:
        """Copy the code so that it can be changed independently."""
        other = Code(self.name, self.index.copy(), generation=self.generation)
        other.named, other.words = dict(self.named), dict(self.words)
        other.scoped = self.scoped[0], dict(self.scoped[1])
        return other

    def find_scopes(self, known: Mapping[str, District]) -> Mapping[str, Sequence[Scope]]:
        """Find the scopes of all sections, in a code with these districts, by key."""
        if self.scoped[0] != known:
            self.scoped = dict(known), {}
        return find_code_scopes((self.sections[key] for key in self.index.places), known, self.scoped[1])

    def put(self, section: Section) -> None:
        """Add a section, or replace the one with its key."""
        self.index.put(section)
        self.named.pop(section.key, None)
        if found := tuple(find_in_section(section)):
            self.named[section.key] = found

    def drop(self, key: str) -> None:
        """Remove a section."""
        self.named.pop(key, None)
        self.index.drop(key)
        self.set_citations(key, ())

    def set_citations(self, key: str, words: Iterable[str]) -> None:
        """Set the words of all citations in a section."""
        self.words[key] = frozenset(words)
        if not self.words[key]:
            del self.words[key]

    @property
    def sections(self) -> Mapping[str, Section]:
        """The sections by key."""
        return self.index.sections

    @property
    def districts(self) -> Mapping[str, District]:
        """The districts that the sections name, by code."""
        return pick_best(district for several in self.named.values() for district in several)

    def above(self, key: str) -> Sequence[Section]:
        """Get the ancestors of a section, innermost first."""
        return [self.sections[each] for each in self.index.above(key)[1:]]

    def find_citing(self, other: Code, moved: Collection[str]) -> set[str]:
        """Find the stored sections whose citations may resolve differently in the code `other`.

        `moved` are the keys of the sections that were added, removed, renamed or moved.
        """
        if not moved:
            return set()
        mine, its = self.index, other.index
        if (mine.restarts, mine.has_letters) != (its.restarts, its.has_letters):
            return set(self.words)
        below = {each for key in moved for code in (self, other) for each in code.index.below(key)}
        numbers = {
            number
            for code in (self, other)
            for key in below & code.sections.keys()
            for number in numbers_of(code.sections[key])
        }
        return {
            key
            for key, several in self.words.items()
            if any(_RANGE.search(words) or not numbers.isdisjoint(_numbers_in(words)) for words in several)
        }


_numbers_in: Final = lru_cache(100_000)(numbers_in)


class Codes:
    """Loads codes from a store. With a `memory`, caches the most recent ones."""

    def __init__(self, memory: Memory | None = None) -> None:
        with _LOCK:
            memory = memory or Memory()
            self._memory: Memory = memory.get("codes") or memory.keep("codes", Memory(_KEPT))

    def load(self, store: Store, name: str) -> Code:
        """Load the stored code of a municipality. Do not change the result."""
        generation = store.statistics().generation
        known: Code | None = self._memory.get(name)
        if known is not None and known.generation == generation:
            return known
        code = known if known is not None and _is_current(store, known, generation) else _load(store, name)
        code.generation = generation
        return self._memory.keep(name, code)

    def keep(self, code: Code, commit: Commit) -> None:
        """Cache `code`, the result of `commit`, unless another commit came between."""
        if commit.generation == code.generation + 1:
            code.generation = commit.generation
            self._memory.keep(code.name, code)


def _load(store: Store, name: str) -> Code:
    code = Code.empty(name)
    for section in load_sections(store, name).values():
        code.put(section)
    cited: dict[str, set[str]] = defaultdict(set)
    for row in select(store.query_sources, bind(CITED, municipality=mint("municipality", name))):
        cited[key_of(row["section"])].add(term_text(row["words"]))
    for key, words in cited.items():
        code.set_citations(key, words)
    return code


def _is_current(store: Store, known: Code, generation: int) -> bool:
    """Whether no commit since the code was loaded can have changed its sections."""
    graphs = find_changed_graphs(store.query, known.generation, generation)
    others = GENERATED, f"{_SOURCES}{known.name}/table/"
    return graphs is not None and all(each.startswith(others) for each in graphs_about(graphs, DOMAIN, known.name))


def load_sections(store: Store, name: str) -> dict[str, Section]:
    """Load the stored sections of a municipality by key."""

    def rows(query: str) -> Iterator[tuple[str, Mapping[str, str]]]:
        for row in select(store.query_sources, bind(query, municipality=mint("municipality", name))):
            yield key_of(row["section"]), {each: term_text(term) for each, term in row.items()}

    texts: dict[str, Mapping[str, str]] = dict(rows(SECTIONS))
    subsections: dict[str, list[Subsection]] = defaultdict(list)
    tables: dict[str, dict[int, Table]] = defaultdict(dict)
    for key, row in rows(PARTS):
        start, end, title = int(row["start"]), int(row["end"]), row.get("title")
        if "cells" in row:
            read = _read_rows(texts.get(key, {}).get("text", ""), row["cells"], start)
            tables[key][int(row["part"].rpartition("=")[2])] = Table(start, end, read, int(row["rows"]), title)
        else:
            path = tuple(unquote(label) for label in row["part"].partition("#subsection=")[2].split("."))
            subsections[key].append(Subsection(path, start, end, title))
    return {
        key: Section(
            key,
            row.get("number", ""),
            row.get("title", ""),
            unquote(row["kind"].rpartition("/")[2]),
            int(row["level"]),
            key_of(NamedNode(row["parent"])) if "parent" in row else None,
            int(row["position"]),
            row.get("text", ""),
            sorted(subsections[key], key=lambda each: (each.start, -each.end, len(each.path))),
            [table for _, table in sorted(tables[key].items())],
        )
        for key, row in texts.items()
    }


def key_of(section: Term) -> str:
    """Get the key of a section from its IRI."""
    return unquote(section.value.rpartition("/")[2]) if isinstance(section, NamedNode) else ""


def _read_rows(text: str, given: str, at: int) -> Sequence[Sequence[Cell]]:
    """Parse the rows of a table. Each is the first matching line of the section's text from the end of the last one."""
    rows = []
    for row in json.loads(given):
        told: list[dict[str, Any]] = [each if isinstance(each, dict) else {"text": each} for each in row]
        line, cells = " | ".join(each["text"] for each in told), list[Cell]()
        filled = any(each["text"] for each in told)
        at = max(text.find(line, at), at) if filled else at
        start = at
        for each in told:
            raised = tuple((start + first, start + last) for first, last in each.pop("raised", ()))
            end = start + len(each["text"])
            cells.append(Cell(start=start, end=end, superscripts=raised, **each))
            start = end + 3 if filled else start
        at += len(line) if filled else 0
        rows.append(cells)
    return rows


def load_stated(store: Store, name: str, replace: Mapping[NamedNode, Sequence[Quad]]) -> Mapping[str, District]:
    """Load the districts that tables and statements of a municipality state after the commit of `replace`, by code.

    The name of one without a name is its code.
    """
    names: dict[str, str] = {}
    codes: set[str] = set()
    municipality = mint("municipality", name)
    for row in select(store.query_sources, bind(STATED, municipality=municipality, sources=Literal(_SOURCES))):
        names[term_text(row["code"])] = term_text(row["name"])
        if row["graph"] not in replace:
            codes.add(term_text(row["code"]))
    districts = f"{_DISTRICTS}{name}/"
    for graph, quads in replace.items():
        if graph.value.startswith(f"{_SOURCES}{name}/table/"):
            for term in {term for quad in quads for term in (quad.subject, quad.object)}:
                if isinstance(term, NamedNode) and term.value.startswith(districts):
                    codes.add(unquote(term.value.removeprefix(districts)))
    for code in codes:
        for quad in replace.get(mint("graph", "ref", "district", name, code), ()):
            if quad.predicate == SKOS.prefLabel:
                names[code] = term_text(quad.object)
    return {code: District(code, names.get(code, code), "", None, None, _STATED, "stated") for code in sorted(codes)}


def merge_districts(stated: Mapping[str, District], named: Mapping[str, District]) -> Mapping[str, District]:
    """Merge the districts that sections name with stated ones. One without a name in its section has the stated one."""
    return {
        **stated,
        **{
            code: each if each.name or code not in stated else replace(each, name=stated[code].name)
            for code, each in named.items()
        },
    }
