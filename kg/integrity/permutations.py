"""The index permutations of a store, each read from its first key to its last.

Oxigraph keeps every quad in six orders and every long term in a dictionary, each in files of its own. A query reads one
order, so a damaged block of another is not noticed until some query needs it. The engine verifies the checksum of a
block when it reads the block. Reading every order therefore finds each block that differs from the one written, except
blocks that no quad refers to: terms of removed quads, and filters that only make lookups faster.

The queries bind what selects the order (`tests/adversarial/test_damage.py` damages each file in turn). They yield their
rows one by one: an aggregate over a damaged block takes memory without bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from pyoxigraph import DefaultGraph, NamedNode, QuerySolution, QuerySolutions, Store

_QUADS: Final = "GRAPH ?g { ?s ?p ?o }"
_KEYS: Final = {
    "GSPO": "",
    "SPOG": "?s",
    "POSG": "?p",
    "OSPG": "?o",
    "GPOS": "?g ?p",
    "GOSP": "?g ?o",
}
"""The terms that each order is read by: none for all quads, or each distinct subject, predicate and so on."""

_SLICED_BY: Final = {"SPOG": "?s", "OSPG": "?o", "GPOS": "?g", "GOSP": "?o"}
"""The term that divides the orders with many distinct keys, which the engine keeps in memory: 110 bytes for a pair."""
MOST_AT_ONCE: Final = 12_000_000
"""Quads whose distinct terms are read at once; those of more quads in slices, each of which reads all quads."""
_MOST_SLICES: Final = 256
_FILE: Final = re.compile(r"((?<!\d)\d++\.(?:sst|log)|MANIFEST-\d+|CURRENT|OPTIONS-\d+)")


def count_quads(store: Store, order: str, *, slices: int = 1) -> int:
    """Read one order of all quads in named graphs and count them. Raises OSError or RuntimeError for damage.

    With `slices`, at most 256, the distinct terms that the order is read by are divided by the MD5 of one of them.
    """
    keys = _KEYS[order]
    if not keys:
        return _count_rows(store, _QUADS)
    last = keys.split()[-1]
    same = {"s": "GRAPH ?h { ?s ?y ?z }", "p": "GRAPH ?h { ?y ?p ?z }", "o": "GRAPH ?h { ?y ?z ?o }"}[last[1:]]
    if "?g" in keys:
        same = same.replace("?h", "?g")
    filters = _build_slices(_SLICED_BY[order], slices) if slices > 1 else [""]
    return sum(_count_rows(store, f"{{ SELECT DISTINCT {keys} {{ {same} {part} }} }} {_QUADS}") for part in filters)


def _build_slices(term: str, number: int) -> list[str]:
    """Build filters that divide terms by the first two digits of the MD5 of their text. The first has blank nodes."""
    bounds = [f"{_MOST_SLICES * each // number:02x}" for each in range(number)]
    digits = f"COALESCE(SUBSTR(MD5(STR({term})), 1, 2), '00')"
    return [
        f"FILTER({digits} >= '{low}'" + (f" && {digits} < '{high}')" if high else ")")
        for low, high in zip_longest(bounds, bounds[1:])
    ]


def _count_rows(store: Store, pattern: str) -> int:
    return sum(1 for _ in select_rows(store, f"SELECT (1 AS ?one) {{ {pattern} }}"))


def select_rows(store: Store, query: str) -> Iterator[QuerySolution]:
    """Run a SELECT and yield its rows one by one. Raises OSError or RuntimeError for damage."""
    found = store.query(query)
    if not isinstance(found, QuerySolutions):
        raise TypeError(f"expected the rows of a SELECT, got {type(found).__name__}")
    yield from found


def read_all_orders(store: Store) -> Iterator[tuple[str, int | str]]:
    """Yield each order with the number of its quads, or the engine's message about its damage.

    GSPO lists the terms that the others are read by: if it is damaged, it is the only one.
    """
    quads = 0
    for order in _KEYS:
        try:
            slices = min(-(-quads // MOST_AT_ONCE), _MOST_SLICES) if order in _SLICED_BY else 1
            quads = count_quads(store, order, slices=slices)
        except (OSError, RuntimeError) as error:
            yield order, str(error)
            if not _KEYS[order]:
                return
        else:
            yield order, quads


def has_default_graph(store: Store) -> bool:
    """Return whether a quad is in the default graph, which Quadcite leaves empty."""
    return next(iter(store.quads_for_pattern(None, None, None, DefaultGraph())), None) is not None


def list_graphs(store: Store) -> tuple[set[NamedNode], str | None]:
    """List the graphs by the table of graphs and by their quads, with the message of the first damage or None."""
    found: set[NamedNode] = set()
    problem: str | None = None
    try:
        found.update(name for name in store.named_graphs() if isinstance(name, NamedNode))
    except (OSError, RuntimeError) as error:
        problem = str(error)
    try:
        rows = select_rows(store, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }")
        found.update(row[0] for row in rows if isinstance(row[0], NamedNode))
    except (OSError, RuntimeError) as error:
        problem = problem or str(error)
    return found, problem


def name_file(message: str) -> str | None:
    """Find the name of the damaged file in a message of the engine."""
    match = _FILE.search(message)
    return match[1] if match else None
