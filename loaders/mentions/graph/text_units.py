"""The text units of a store, by graph."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode

from kg.sparql.terms import bind
from kg.store.ownership import find_described, is_user_graph
from kg.store.protocol import Store, batched, select
from loaders.mentions.tokens import fold

TEXTS: Final = """
SELECT ?graph ?unit ?text WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?unit schema:text ?text } }"""

HOLDING: Final = """
SELECT ?graph ?unit ?text WHERE { GRAPH ?graph { ?unit schema:text ?text } FILTER(REGEX(?text, $pattern)) }"""

LANGUAGES: Final = """
SELECT ?unit ?language ?graph WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?unit schema:inLanguage ?language } }"""

LANGUAGES_OF: Final = """
SELECT ?unit ?language ?graph WHERE { VALUES ?unit { $units } GRAPH ?graph { ?unit schema:inLanguage ?language } }"""

LANGUAGES_OF_PARENTS: Final = """
SELECT ?unit ?language ?graph ?within WHERE {
  VALUES ?unit { $units } GRAPH ?within { ?unit dcterms:isPartOf ?parent }
  GRAPH ?graph { ?parent schema:inLanguage ?language }
}"""

_GRAPHS_AT_ONCE: Final = 50
_BEGINNING: Final = 12
_HYPHENS: Final = re.compile("[-\u2010\u2011]\\s*|\\.")


class Unit(NamedTuple):
    """A text unit. `languages` are its own, stated or derived, else those of its document."""

    iri: NamedNode
    text: str
    languages: Sequence[str]


def load_texts(store: Store, graphs: Sequence[NamedNode]) -> Iterator[tuple[NamedNode, NamedNode, str]]:
    """Load the text units of `graphs`: graph, unit, text."""
    return _read_texts(store, bind(TEXTS, graphs=graphs))


def _read_texts(store: Store, query: str) -> Iterator[tuple[NamedNode, NamedNode, str]]:
    """Yield rows of graph, unit and text, without the texts that people add to nodes of a source."""
    rows = select(store.query, query).rows
    added = {unit for graph, unit, _ in rows if is_user_graph(graph) and isinstance(unit, NamedNode)}
    described = find_described(store.query_sources, added)
    for graph, unit, text in rows:
        if unit in described and is_user_graph(graph):
            continue
        if isinstance(graph, NamedNode) and isinstance(unit, NamedNode) and isinstance(text, Literal):
            yield graph, unit, text.value


def load_units(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, list[Unit]]:
    """Load the text units of each of `graphs`, with their languages."""
    found = list(load_texts(store, graphs))
    stated = _languages(store, {unit: graph for graph, unit, _ in found}, graphs)
    read: dict[NamedNode, list[Unit]] = {graph: [] for graph in graphs}
    for graph, unit, text in found:
        read[graph].append(Unit(unit, text, stated.get(unit, ())))
    return read


def add_languages(store: Store, held: Mapping[NamedNode, Mapping[NamedNode, str]]) -> dict[NamedNode, list[Unit]]:
    """Load the languages of text units of graphs whose texts are known."""
    stated = _languages(store, {unit: graph for graph, texts in held.items() for unit in texts}, ())
    return {
        graph: [Unit(unit, text, stated.get(unit, ())) for unit, text in texts.items()] for graph, texts in held.items()
    }


def _languages(
    store: Store, units: Mapping[NamedNode, NamedNode], graphs: Sequence[NamedNode]
) -> Mapping[NamedNode, Sequence[str]]:
    """Load the languages of text units, given with their graphs: those that `graphs` state, else their own, else those
    of their documents. A language that a user graph states counts for texts in that graph only.
    """
    stated: dict[NamedNode, list[str]] = defaultdict(list)
    silent = list(units)
    for template in (LANGUAGES, LANGUAGES_OF, LANGUAGES_OF_PARENTS):
        where = {"graphs": graphs} if template is LANGUAGES else {"units": silent}
        for row in select(store.query, bind(template, **where)) if all(where.values()) else ():
            unit, language = row["unit"], row["language"]
            if isinstance(unit, NamedNode) and isinstance(language, Literal):
                saying = [row[of] for of in ("graph", "within") if of in row]
                if all(graph == units.get(unit) or not is_user_graph(graph) for graph in saying):
                    stated[unit].append(language.value)
        silent = [unit for unit in units if unit not in stated]
    return stated


def find_units_with(store: Store, words: Collection[str]) -> Iterator[tuple[NamedNode, NamedNode, str]]:
    """Find the text units (graph, unit, text) that may contain one of these folded words.

    The store filters by a pattern, which takes a tenth of the time of loading all texts.
    """
    # Only the beginnings of words, since the store finds nothing with a pattern that is too large to compile.
    plain = "".join(sorted({f"{_either_case(word[:_BEGINNING])}|" for word in words if word.isascii()}))
    pattern = Literal(plain + "[^\\x00-\\x7F]|[A-Za-z0-9]-\\s*[A-Za-z0-9]|\\.[A-Za-z0-9]\\.")
    yield from (row for row in _read_texts(store, bind(HOLDING, pattern=pattern)) if may_contain(row[2], words))


def _either_case(word: str) -> str:
    """Build the pattern of an ASCII word in any case. The flag ``i`` would also match s and k to non-ASCII letters."""
    return "".join(f"[{each.upper()}{each}]" if each.isalpha() else re.escape(each) for each in word)


def find_units_in(
    store: Store, graphs: Collection[NamedNode], words: Collection[str]
) -> Iterator[tuple[NamedNode, NamedNode, str]]:
    """Find the text units of `graphs` that may contain one of these folded words."""
    for several in batched(sorted(graphs, key=str), _GRAPHS_AT_ONCE):
        for graph, unit, text in load_texts(store, several):
            if may_contain(text, words):
                yield graph, unit, text


def may_contain(text: str, words: Collection[str]) -> bool:
    """Whether `text` may contain one of these folded words, even broken at the end of a line."""
    folded = fold(text)
    if any(word in folded for word in words):
        return True
    joined = _HYPHENS.sub("", folded) if "-" in folded or "." in folded or not folded.isascii() else folded
    return joined != folded and any(word in joined for word in words)
