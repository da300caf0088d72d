"""Which graphs have changed from one generation of the store to another, by the records of its commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.store.commits import commit_iri
from kg.store.protocol import Query, Term, named_node, select, term_text
from kg.vocabulary import BASE, PROV_GRAPH, SOURCED

DESCRIPTIONS: Final = """
SELECT ?s ?p ?o WHERE { VALUES ?s { $subjects } GRAPH $prov { ?s ?p ?o } }"""


def load_description(query: Query, subject: NamedNode) -> defaultdict[NamedNode, list[Term]]:
    """Return what ``graph/prov`` says of `subject`, by predicate."""
    said: defaultdict[NamedNode, list[Term]] = defaultdict(list)
    for row in select(query, bind(DESCRIPTIONS, subjects=[subject], prov=PROV_GRAPH)):
        said[named_node(row["p"])].append(row["o"])
    return said


def first_text(said: Mapping[NamedNode, list[Term]], predicate: NamedNode) -> str | None:
    """Return the text of one value of `predicate`, or None where there is none."""
    values = said[predicate]
    return term_text(values[0]) if values else None


TOUCHED: Final = """
SELECT ?commit ?graph WHERE { VALUES ?commit { $commits } GRAPH $prov { ?commit kg:touched ?graph } }"""

MOST: Final = 200
"""Commits that are asked for together; after more, whatever was known is read again."""

_ELSEWHERE: Final = tuple(f"{BASE}graph/{family}" for family in ("src/", "ext/", "der/", "ref/", "prov"))


def find_changed_graphs(query: Query, known: int, generation: int) -> frozenset[str] | None:
    """Return the graphs that commits after `known` have changed, up to `generation`; None where that cannot be told."""
    if not 0 <= generation - known <= MOST:
        return None
    commits = [commit_iri(number) for number in range(known + 1, generation + 1)]
    rows = select(query, bind(TOUCHED, commits=commits, prov=PROV_GRAPH)).rows if commits else ()
    if len({commit for commit, _ in rows}) != len(commits):
        return None
    return frozenset(named_node(graph).value for _, graph in rows)


def graphs_about(graphs: Iterable[str], domain: str, record: str) -> frozenset[str]:
    """Return those of `graphs` in which anybody may state something of what ``graph/src/{domain}/{record}/...`` is
    about: neither what programs found or derived, nor the sources of anything else.
    """
    own = f"{SOURCED}{domain}/{record}/"
    return frozenset(graph for graph in graphs if graph.startswith(own) or not graph.startswith(_ELSEWHERE))
