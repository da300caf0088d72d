"""Districts that tables and statements of a municipality state, in addition to those named in its code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select, term_text
from kg.vocabulary import BASE, SKOS, SOURCED, mint
from loaders.zoning.extraction.districts import District
from loaders.zoning.readers.code_model import DOMAIN

STATED: Final = """
SELECT DISTINCT ?graph ?code ?name WHERE {
  ?district kg:jurisdiction $municipality ; a kg:ZoningDistrict ; skos:notation ?code ; skos:prefLabel ?name
  { GRAPH ?graph { ?rule kg:district ?district } } UNION { GRAPH ?graph { ?district ?says ?what } }
  FILTER(STRSTARTS(STR(?graph), $sources))
}"""

_SOURCES: Final = f"{SOURCED}{DOMAIN}/"
_DISTRICTS: Final = f"{BASE}id/district/"
_KNOWN_BY_TABLES: Final = 1.0


@dataclass(frozen=True, slots=True)
class Stated:
    """The graphs of sources that state districts of a municipality, with codes and names."""

    name: str
    """Key of the municipality."""
    codes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By graph."""
    names: Mapping[str, str] = field(default_factory=dict)
    """By code; equal to the code where there is no name."""

    @property
    def districts(self) -> dict[str, District]:
        """Districts by code."""
        codes = sorted({code for several in self.codes.values() for code in several})
        return {
            code: District(code, self.names.get(code, code), "", None, None, _KNOWN_BY_TABLES, "stated")
            for code in codes
        }

    def replace_codes(self, codes: Mapping[str, frozenset[str]], graphs: Mapping[NamedNode, Sequence[Quad]]) -> Stated:
        """Replace the codes of some graphs. `graphs` are the graphs about to be written."""
        left = {graph: several for graph, several in {**self.codes, **codes}.items() if several}
        names = dict(self.names)
        for code in {code for several in codes.values() for code in several}:
            for quad in graphs.get(mint("graph", "ref", "district", self.name, code), ()):
                if quad.predicate == SKOS.prefLabel:
                    names[code] = term_text(quad.object)
        return replace(self, codes=left, names=names)

    def merge(self, named: Mapping[str, District]) -> Mapping[str, District]:
        """Merge the districts that sections name with these. One without a name in its section has that of a table."""
        names = {code: name for code, name in self.names.items() if name != code}
        return self.districts | {
            code: each if each.name else replace(each, name=names.get(code, "")) for code, each in named.items()
        }


def load_stated(store: Store, name: str) -> Stated:
    """Load the districts that the store states for a municipality."""
    codes: dict[str, set[str]] = defaultdict(set)
    names: dict[str, str] = {}
    municipality = mint("municipality", name)
    for row in select(store.query_sources, bind(STATED, municipality=municipality, sources=Literal(_SOURCES))):
        codes[named_node(row["graph"]).value].add(term_text(row["code"]))
        names[term_text(row["code"])] = term_text(row["name"])
    return Stated(name, {graph: frozenset(several) for graph, several in codes.items()}, names)


def find_stated(quads: Iterable[Quad], before: Iterable[Quad]) -> Mapping[str, frozenset[str]]:
    """Find the codes of the districts that a source graph states, by municipality.

    A municipality with districts in `before` only has an empty set.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for graph, counts in ((quads, True), (before, False)):
        for quad in graph:
            for term in (quad.subject, quad.object):
                if isinstance(term, NamedNode) and term.value.startswith(_DISTRICTS):
                    name, _, code = term.value.removeprefix(_DISTRICTS).partition("/")
                    found[name].update((unquote(code),) if counts else ())
    return {name: frozenset(several) for name, several in found.items()}
