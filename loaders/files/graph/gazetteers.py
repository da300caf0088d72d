"""The gazetteer of each collection: the names that its files show often, known in all of its files.

The load of a file records the names that it shows, with their counts (``kg:nameCounts`` in ``graph/prov``). So the
gazetteers follow from the stored files, in any order of loads. When a name enters or leaves one, the files of the
collection that may have it are read again for entities.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.settings import Settings
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select, term_text
from kg.vocabulary import PROV_GRAPH, parts_of
from loaders.files.extraction.gazetteer import CODE, choose_names
from loaders.files.loader import GRAPHS
from loaders.mentions.graph_words import may_have
from loaders.mentions.tokens import fold, tokenize

COUNTS: Final = """
SELECT ?graph ?counts WHERE { GRAPH $prov { ?graph kg:nameCounts ?counts } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

_MOST_CHANGED: Final = 500
"""Maximum changed names whose files are searched for. If more change, all files of the collection are read again."""


@dataclass(frozen=True, slots=True)
class Gazetteers:
    """The names of each collection, built with settings: how often a name occurs at least, and most names."""

    names: Mapping[str, list[str]]
    settings: tuple[int, int]

    @classmethod
    def load(cls, store: Store, settings: Settings) -> Gazetteers:
        """Build the gazetteers from the names that stored files show."""
        least, most = chosen = _choose(settings)
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        rows = select(store.query, bind(COUNTS, prov=PROV_GRAPH, prefix=Literal(GRAPHS))) if most else ()
        for row in rows:
            counts[get_collection(named_node(row["graph"]))].update(json.loads(term_text(row["counts"])))
        names = {name: choose_names(own, least, most) for name, own in counts.items()}
        return cls({name: own for name, own in names.items() if own}, chosen)

    @classmethod
    def load_saved(cls, saved: bytes) -> Gazetteers:
        """Load gazetteers that `save` wrote."""
        held = json.loads(saved)
        return cls(held["names"], tuple(held["settings"]))

    def save(self) -> bytes:
        """Write the gazetteers."""
        return json.dumps({"names": self.names, "settings": self.settings}).encode()

    def is_current(self, settings: Settings, touched: Collection[NamedNode] | None) -> bool:
        """Whether neither the settings nor a file have changed, if commits have touched these graphs."""
        is_touched = touched is None or any(graph.value.startswith(GRAPHS) for graph in touched)
        return not is_touched and self.settings == _choose(settings)


def _choose(settings: Settings) -> tuple[int, int]:
    return settings.gazetteer_min_freq, settings.gazetteer_mine_topk


def get_collection(graph: NamedNode) -> str:
    """Get the collection of the file with a graph."""
    return parts_of(graph.value, GRAPHS)[0]


def find_affected(
    before: Gazetteers, after: Gazetteers, files: Iterable[tuple[NamedNode, bytes | None]]
) -> set[NamedNode]:
    """Find those of `files` (with the filters of their words) that may have a changed name of their collection."""
    phrases = {
        name: [
            list(map(fold, tokenize(changed.removeprefix(CODE))))
            for changed in set(before.names.get(name, ())) ^ set(after.names.get(name, ()))
        ]
        for name in before.names.keys() | after.names.keys()
    }
    affected: set[NamedNode] = set()
    for graph, words in files:
        changed = phrases.get(get_collection(graph), [])
        if changed and (words is None or len(changed) > _MOST_CHANGED or may_have(words, changed)):
            affected.add(graph)
    return affected
