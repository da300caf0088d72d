"""The text units of a store, by graph."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode

from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, select
from kg.vocabulary import PROV_GRAPH, mint
from loaders.mentions.tokens import fold

HASHES: Final = """
SELECT ?graph ?hash WHERE { GRAPH $prov { ?graph kg:contentSha256 ?hash } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

TEXTS: Final = """
SELECT ?graph ?unit ?text WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?unit schema:text ?text } }"""

HOLDING: Final = """
SELECT ?graph ?unit ?text WHERE { GRAPH ?graph { ?unit schema:text ?text } FILTER(REGEX(?text, $pattern)) }"""

LANGUAGES: Final = """
SELECT ?thing ?language WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?thing schema:inLanguage ?language } }"""

LANGUAGES_OF: Final = """
SELECT ?unit ?language WHERE { VALUES ?unit { $units } ?unit schema:inLanguage ?language }"""

LANGUAGES_OF_PARENTS: Final = """
SELECT ?unit ?language WHERE {
  VALUES ?unit { $units } ?unit dcterms:isPartOf ?parent . ?parent schema:inLanguage ?language
}"""

_FAMILIES: Final = ("src", "user", "cur")
"""The families of graphs that contain text units."""
_GRAPHS_AT_ONCE: Final = 50
_BEGINNING: Final = 12
_HYPHENS: Final = re.compile("[-\u2010\u2011]\\s*|\\.")


class Unit(NamedTuple):
    """A text unit. `languages` are its own, stated or derived, else those of its document."""

    iri: NamedNode
    text: str
    languages: Sequence[str]


def load_hashes(store: Store) -> dict[NamedNode, str]:
    """Load the graphs that may contain text, with their content hashes."""
    found: dict[NamedNode, str] = {}
    for family in _FAMILIES:
        prefix = Literal(mint("graph", family).value + "/")
        for graph, digest in select(store.query, bind(HASHES, prov=PROV_GRAPH, prefix=prefix)).rows:
            if isinstance(graph, NamedNode) and isinstance(digest, Literal):
                found[graph] = digest.value
    return found


def load_texts(store: Store, graphs: Sequence[NamedNode]) -> Iterator[tuple[NamedNode, NamedNode, str]]:
    """Load the text units of `graphs`: graph, unit, text."""
    for graph, unit, text in select(store.query, bind(TEXTS, graphs=graphs)).rows:
        if isinstance(graph, NamedNode) and isinstance(unit, NamedNode) and isinstance(text, Literal):
            yield graph, unit, text.value


def load_units(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, list[Unit]]:
    """Load the text units of each of `graphs`, with their languages."""
    found = list(load_texts(store, graphs))
    stated = _languages(store, [unit for _, unit, _ in found], graphs)
    read: dict[NamedNode, list[Unit]] = {graph: [] for graph in graphs}
    for graph, unit, text in found:
        read[graph].append(Unit(unit, text, stated.get(unit, ())))
    return read


def add_languages(store: Store, held: Mapping[NamedNode, str]) -> list[Unit]:
    """Load the languages of text units whose texts are known."""
    stated = _languages(store, list(held), ())
    return [Unit(unit, text, stated.get(unit, ())) for unit, text in held.items()]


def _languages(
    store: Store, named: Sequence[NamedNode], graphs: Sequence[NamedNode]
) -> Mapping[Term | None, Sequence[str]]:
    """Load the languages of text units: those that `graphs` state, else their own, else those of their documents."""
    stated: dict[Term | None, list[str]] = defaultdict(list)
    silent = list(named)
    for template in (LANGUAGES, LANGUAGES_OF, LANGUAGES_OF_PARENTS):
        where = {"graphs": graphs} if template is LANGUAGES else {"units": silent}
        for thing, language in select(store.query, bind(template, **where)).rows if all(where.values()) else ():
            if isinstance(language, Literal):
                stated[thing].append(language.value)
        silent = [unit for unit in named if unit not in stated]
    return stated


def find_units_with(store: Store, words: Collection[str]) -> Iterator[tuple[NamedNode, NamedNode, str]]:
    """Find the text units (graph, unit, text) that may contain one of these folded words.

    The store filters by a pattern, which takes a tenth of the time of loading all texts.
    """
    # Only the beginnings of words, since the store finds nothing with a pattern that is too large to compile.
    plain = "".join(sorted({f"{_either_case(word[:_BEGINNING])}|" for word in words if word.isascii()}))
    pattern = Literal(plain + "[^\\x00-\\x7F]|[A-Za-z0-9]-\\s*[A-Za-z0-9]|\\.[A-Za-z0-9]\\.")
    for graph, unit, text in select(store.query, bind(HOLDING, pattern=pattern)).rows:
        if not isinstance(graph, NamedNode) or not isinstance(unit, NamedNode) or not isinstance(text, Literal):
            continue
        if may_contain(text.value, words):
            yield graph, unit, text.value


def _either_case(word: str) -> str:
    """Build the pattern of an ASCII word in any case. The flag ``i`` would also match s and k to non-ASCII letters."""
    return "".join(f"[{each.upper()}{each}]" if each.isalpha() else re.escape(each) for each in word)


def find_units_in(
    store: Store, graphs: Collection[NamedNode], words: Collection[str]
) -> Iterator[tuple[NamedNode, NamedNode, str]]:
    """Find the text units of `graphs` that may contain one of these folded words."""
    named = sorted(graphs, key=str)
    for start in range(0, len(named), _GRAPHS_AT_ONCE):
        for graph, unit, text in load_texts(store, named[start : start + _GRAPHS_AT_ONCE]):
            if may_contain(text, words):
                yield graph, unit, text


def may_contain(text: str, words: Collection[str]) -> bool:
    """Whether `text` may contain one of these folded words, even broken at the end of a line."""
    folded = fold(text)
    if any(word in folded for word in words):
        return True
    joined = _HYPHENS.sub("", folded) if "-" in folded or "." in folded or not folded.isascii() else folded
    return joined != folded and any(word in joined for word in words)
