"""The gazetteer of each collection: the names that its files show often, known in all of its files.

The load of a file records the names that it shows, with their counts (``kg:nameCounts`` in ``graph/prov``). So the
gazetteers follow from the stored files, in any order of loads. When a name enters or leaves one, the files of the
collection that may have it are read again for entities. Their words are in ``entities/words.log``.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.settings import Settings
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select, term_text
from kg.vocabulary import PROV_GRAPH, parts_of
from loaders.files.extraction.gazetteer import CODE, choose_names
from loaders.files.loader import GRAPHS
from loaders.mentions.graph_words import Vocabularies
from loaders.mentions.tokens import fold, tokenize

COUNTS: Final = """
SELECT ?graph ?counts WHERE { GRAPH $prov { ?graph kg:nameCounts ?counts } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

_MOST_CHANGED: Final = 500
"""Maximum changed names whose files are searched for. If more change, all files of the collection are read again."""


def load_gazetteers(store: Store, settings: Settings) -> dict[str, list[str]]:
    """Build the gazetteer of each collection from the names that its stored files show."""
    if not settings.gazetteer_mine_topk:
        return {}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in select(store.query, bind(COUNTS, prov=PROV_GRAPH, prefix=Literal(GRAPHS))):
        counts[get_collection(named_node(row["graph"]))].update(json.loads(term_text(row["counts"])))
    least, most = settings.gazetteer_min_freq, settings.gazetteer_mine_topk
    return {name: chosen for name, own in counts.items() if (chosen := choose_names(own, least, most))}


def get_collection(graph: NamedNode) -> str:
    """Get the collection of the file with a graph."""
    return parts_of(graph.value, GRAPHS)[0]


def find_affected(
    before: Mapping[str, Collection[str]],
    now: Mapping[str, Collection[str]],
    words: Vocabularies,
    current: Mapping[NamedNode, str],
) -> set[NamedNode]:
    """Find the files of `current` that may have a name that entered or left the gazetteer of their collection.

    `current` has the hashes with which the words of the files are in `words`.
    """
    changed = {name: set(before.get(name, ())) ^ set(now.get(name, ())) for name in before.keys() | now.keys()}
    affected: set[NamedNode] = set()
    for collection in sorted(name for name, names in changed.items() if names):
        own = {graph: digest for graph, digest in current.items() if get_collection(graph) == collection}
        phrases = [list(map(fold, tokenize(name.removeprefix(CODE)))) for name in changed[collection]]
        affected |= own.keys() - words.lacking(phrases, own) if len(phrases) <= _MOST_CHANGED else own.keys()
    return affected
