"""Which graphs have changed from one generation of the store to another, by the records of its commits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kg.provenance.reading import iri_of
from kg.sparql.terms import bind
from kg.store.commits import commit_of
from kg.store.protocol import Query, select
from kg.vocabulary import BASE, PROV_GRAPH, SOURCED

TOUCHED: Final = """
SELECT ?commit ?graph WHERE { VALUES ?commit { $commits } GRAPH $prov { ?commit kg:touched ?graph } }"""

MOST: Final = 200
"""Commits that are asked for together; after more, whatever was known is read again."""

_ELSEWHERE: Final = tuple(f"{BASE}graph/{family}" for family in ("src/", "ext/", "der/", "ref/", "prov"))


def changed(query: Query, known: int, generation: int) -> frozenset[str] | None:
    """Return the graphs that commits after `known` have changed, up to `generation`; None where that cannot be told."""
    if not 0 <= generation - known <= MOST:
        return None
    commits = [commit_of(number) for number in range(known + 1, generation + 1)]
    rows = select(query, bind(TOUCHED, commits=commits, prov=PROV_GRAPH)).rows if commits else ()
    if len({commit for commit, _ in rows}) != len(commits):
        return None
    return frozenset(iri_of(graph).value for _, graph in rows)


def stating(graphs: Iterable[str], domain: str, record: str) -> frozenset[str]:
    """Return those of `graphs` in which anybody may state something of what ``graph/src/{domain}/{record}/...`` is
    about: neither what programs found or derived, nor the sources of anything else.
    """
    own = f"{SOURCED}{domain}/{record}/"
    return frozenset(graph for graph in graphs if graph.startswith(own) or not graph.startswith(_ELSEWHERE))
