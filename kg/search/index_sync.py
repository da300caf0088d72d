"""Synchronization of the search index with the store: units are built from graphs, differences are repaired.

The prelude of a unit (document title and nearest heading above it) and its names (who speaks, the place) are computed
only here, from the store, so that a load and a rebuild give the same index. For a piece of running text the prelude is
embedded too: for 24 instead of 20 of 30 questions about 1,733 speeches the answer is among the first ten.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.search.protocol import GraphUnits, IndexedUnit, SearchIndex
from kg.sparql.terms import bind
from kg.store.ownership import CURATED, USER
from kg.store.protocol import Store, select
from kg.vocabulary import DCTERMS, KG, PROV_GRAPH, SOURCED, mint

HEADINGS: Final = frozenset(mint("code", "blockType", code).value for code in ("Title", "title", "sectionHeading"))
"""Block types whose text is the heading of the following units."""

_SHOWN: Final = 150
"""Characters of the prelude that are embedded with a piece: the first one or two of a list of bills."""

_FORMAT: Final = "2"
"""Version of the indexed fields of a unit. Graphs that were indexed with another one are indexed again."""

_GRAPHS_AT_ONCE: Final = 50
_UNITS_AT_ONCE: Final = 5_000
_ATTEMPTS: Final = 3

_NOTHING: Final[Mapping[str, Collection[str]]] = {}

Progress = Callable[[int, int | None, str], None]
"""Called with the number of finished items, the total if known, and the current activity."""


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """A text unit in the store.

    `block_type` is the IRI of its block type. `parent` is the IRI of its document, or its own if it has none. `is_cut`:
    it is a piece of running text, with offsets.
    """

    iri: str
    parent: str
    position: int
    text: str
    block_type: str | None = None
    language: str | None = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Healed:
    """The numbers of graphs that were indexed again and removed."""

    replaced: int = 0
    removed: int = 0


def build_units(
    graph: str,
    titles: Mapping[str, str],
    facts: Iterable[UnitFacts],
    names: Mapping[str, Collection[str]] = _NOTHING,
) -> list[IndexedUnit]:
    """Build the index units of one graph, in order of position. `titles` and `names` are by IRI of document or unit."""
    units = []
    headings: dict[str, str] = {}
    for fact in sorted(facts, key=lambda fact: (fact.parent, fact.position, fact.iri)):
        own = titles.get(fact.iri, "") if fact.iri != fact.parent else ""
        parts = (titles.get(fact.parent, ""), own, headings.get(fact.parent, ""))
        prelude = "\n".join(part for part in parts if part)
        if fact.is_cut and len(prelude) > _SHOWN:
            prelude = prelude[:_SHOWN].rpartition(" ")[0] or prelude[:_SHOWN]
        about = "\n".join(sorted({*names.get(fact.parent, ()), *names.get(fact.iri, ())}))
        units.append(IndexedUnit(fact.iri, graph, fact.parent, fact.text, prelude, fact.language, fact.is_cut, about))
        if fact.block_type in HEADINGS:
            headings[fact.parent] = fact.text
    return units


HASHES: Final = """
SELECT ?graph ?hash WHERE {
  GRAPH $prov { ?graph kg:contentSha256 ?hash } BIND(STR(?graph) AS ?name)
  FILTER(STRSTARTS(?name, $sources) || STRSTARTS(?name, $user) || STRSTARTS(?name, $curated))
}"""
"""The hashes of the graphs in the families that contain text units."""

UNITS: Final = """
SELECT ?graph ?unit ?parent ?position ?text ?type ?language ?start WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph {
    ?unit schema:text ?text ; schema:position ?position
    OPTIONAL { ?unit dcterms:isPartOf ?parent }
    OPTIONAL { ?unit kg:blockType ?type }
    OPTIONAL { ?unit schema:inLanguage ?language }
    OPTIONAL { ?unit kg:start ?start }
  }
}"""

TEXT_UNITS: Final = """
SELECT (COUNT(DISTINCT ?unit) AS ?units) WHERE { ?unit schema:text ?text MINUS { ?unit a kg:Summary } }"""

VALUES_OF: Final = """
SELECT ?graph ?node ?value WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?node $property ?value }
}"""

LANGUAGES: Final = """
SELECT ?graph ?document ?language WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?document schema:inLanguage ?language FILTER NOT EXISTS { ?document schema:text ?text } }
}"""

NAMES: Final = """
SELECT DISTINCT ?named ?name WHERE {
  { VALUES ?named { $nodes } GRAPH ?from { ?named foaf:name ?name } }
  UNION { VALUES ?named { $nodes } GRAPH ?from { ?named skos:prefLabel ?name } }
  FILTER(LANG(?name) IN ("", "en") && !STRSTARTS(STR(?from), $user))
}"""
"""Names of persons and places, which are described in other graphs than the text; not as users state them."""


def heal(
    store: Store,
    search: SearchIndex,
    *,
    full: bool = False,
    stop: threading.Event | None = None,
    on_progress: Progress | None = None,
) -> Healed:
    """Repair every difference between the index and the store.

    A graph that is missing in the index, or has another content hash, is indexed again; one that is missing in the
    store is removed. With `full`, every graph is indexed again. `stop` ends it early, between two batches. Commits in
    the meantime are handled by another pass.
    """
    replaced = removed = 0
    for attempt in range(_ATTEMPTS):
        # The index first: a graph committed between the two calls is then missing in the index, not superfluous.
        indexed = search.state()
        stored = _load_hashes(store)
        superfluous = [graph for graph in indexed if graph not in stored]
        if superfluous:
            search.remove(superfluous)
            removed += len(superfluous)
        everything = full and attempt == 0
        wanted = [graph for graph, digest in stored.items() if everything or indexed.get(graph) != digest]
        done = 0
        for start in range(0, len(wanted), _GRAPHS_AT_ONCE):
            if stop is not None and stop.is_set():
                return Healed(replaced + done, removed)
            # Few graphs at once, so that a rebuild holds the units of these only.
            units = _load_units(store, wanted[start : start + _GRAPHS_AT_ONCE])
            # A graph without text is not in the index.
            units = {graph: found for graph, found in units.items() if found or graph in indexed}
            for batch in _build_batches(units, stored):
                search.replace(batch)
                done += len(batch)
            if on_progress is not None:
                on_progress(min(start + _GRAPHS_AT_ONCE, len(wanted)), len(wanted), "indexing")
        replaced += done
        if not done:
            break
    return Healed(replaced, removed)


def count_text_units(store: Store) -> int:
    """Count the text units in the store; some may not be in the index yet."""
    [row] = _select(store, TEXT_UNITS)
    return int(row["units"].value)


def refresh(store: Store, search: SearchIndex, graphs: Mapping[str, str], emptied: Sequence[str] = ()) -> None:
    """Update the index after a commit changed `graphs`, given with their content hashes.

    `emptied` are graphs that have no text units any more, or were deleted.
    """
    if emptied:
        search.remove(emptied)
    units = _load_units(store, list(graphs)) if graphs else {}
    hashes = {graph: _to_state(content) for graph, content in graphs.items()}
    for batch in _build_batches({graph: found for graph, found in units.items() if found}, hashes):
        search.replace(batch)


def _load_hashes(store: Store) -> dict[str, str]:
    families = {"sources": Literal(SOURCED), "user": Literal(USER), "curated": Literal(CURATED)}
    rows = _select(store, bind(HASHES, prov=PROV_GRAPH, **families))
    return {row["graph"].value: _to_state(row["hash"].value) for row in rows}


def _to_state(content_sha256: str) -> str:
    """Build the hash that the index keeps of a graph, from the hash of its content."""
    return f"{content_sha256}/{_FORMAT}"


def _build_batches(
    units: Mapping[str, list[IndexedUnit]], hashes: Mapping[str, str]
) -> Iterator[dict[str, GraphUnits]]:
    batch: dict[str, GraphUnits] = {}
    size = 0
    for graph, found in units.items():
        batch[graph] = GraphUnits(hashes[graph], found)
        size += len(found)
        if size >= _UNITS_AT_ONCE:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch


def _load_units(store: Store, graphs: Sequence[str]) -> dict[str, list[IndexedUnit]]:
    nodes = [NamedNode(graph) for graph in graphs]
    titles: dict[str, dict[str, str]] = defaultdict(dict)
    for graph, node, title in _load_values(store, nodes, DCTERMS.title):
        titles[graph][node] = title.value
    languages: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in _select(store, bind(LANGUAGES, graphs=nodes)):
        languages[row["graph"].value, row["document"].value].add(row["language"].value)
    names = _load_names(store, nodes)
    facts: dict[str, list[UnitFacts]] = {graph: [] for graph in graphs}
    for row in _select(store, bind(UNITS, graphs=nodes)):
        kind, parent = row.get("type"), row.get("parent", row["unit"])
        declared = languages.get((row["graph"].value, parent.value), ())
        # A document in several languages does not say which of them a passage is in.
        only = next(iter(declared)) if len(declared) == 1 else None
        language = row["language"].value if "language" in row else only
        facts[row["graph"].value].append(
            UnitFacts(
                row["unit"].value,
                parent.value,
                int(row["position"].value),
                row["text"].value,
                None if kind is None else kind.value,
                language,
                "start" in row,
            )
        )
    return {graph: build_units(graph, titles[graph], found, names.get(graph, {})) for graph, found in facts.items()}


def _load_names(store: Store, graphs: Sequence[NamedNode]) -> dict[str, dict[str, set[str]]]:
    """Load the names of speakers and places by graph and by the IRI of the document or unit that they belong to."""
    names: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for graph, node, name in _load_values(store, graphs, KG.speakerAsRecorded):
        names[graph][node].add(name.value)
    named = [each for link in (KG.speaker, KG.jurisdiction) for each in _load_values(store, graphs, link)]
    nodes = sorted({thing.value for _, _, thing in named if isinstance(thing, NamedNode)})
    known: dict[str, set[str]] = defaultdict(set)
    if nodes:
        for row in _select(store, bind(NAMES, nodes=[NamedNode(iri) for iri in nodes], user=Literal(USER))):
            known[row["named"].value].add(row["name"].value)
    for graph, node, thing in named:
        names[graph][node] |= known.get(thing.value, set())
    return names


def _load_values(
    store: Store, graphs: Sequence[NamedNode], name: NamedNode
) -> Iterator[tuple[str, str, NamedNode | Literal]]:
    """Load the values of the property `name` in `graphs`, each with its graph and the node that has it."""
    for row in _select(store, bind(VALUES_OF, graphs=graphs, property=name)):
        yield row["graph"].value, row["node"].value, row["value"]


def _select(store: Store, query: str) -> Iterator[Mapping[str, NamedNode | Literal]]:
    for row in select(store.query, query):
        yield {name: term for name, term in row.items() if isinstance(term, NamedNode | Literal)}
