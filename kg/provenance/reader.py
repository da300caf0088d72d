"""Read descriptions from ``graph/prov``, and find the graphs that changed between two generations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.store.commits import commit_iri
from kg.store.protocol import Query, Term, named_node, select, term_text
from kg.vocabulary import BASE, PROV, PROV_GRAPH, RDFS, SCHEMA, SOURCED

DESCRIPTIONS: Final = """
SELECT ?s ?p ?o WHERE { VALUES ?s { $subjects } GRAPH $prov { ?s ?p ?o } }"""


_AT_ONCE: Final = 100
"""Nodes that are described by one query: few, since a query has a maximum number of rows."""

Description = defaultdict[NamedNode, list[Term]]
"""The values that ``graph/prov`` has for one node, by predicate."""


def load_descriptions(
    query: Query, subjects: Iterable[NamedNode], graph: NamedNode = PROV_GRAPH
) -> dict[NamedNode, Description]:
    """Load the descriptions of `subjects` in `graph`, empty for those without one."""
    found: dict[NamedNode, Description] = {subject: defaultdict(list) for subject in subjects}
    nodes = list(found)
    for start in range(0, len(nodes), _AT_ONCE):
        some = nodes[start : start + _AT_ONCE]
        for row in select(query, bind(DESCRIPTIONS, subjects=some, prov=graph)):
            found[named_node(row["s"])][named_node(row["p"])].append(row["o"])
    return found


def load_description(query: Query, subject: NamedNode) -> Description:
    """Load the description of `subject` in ``graph/prov``."""
    return load_descriptions(query, [subject])[subject]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The run that wrote a graph, with its agent. All fields are empty for a graph that no run wrote."""

    iri: str | None
    agent: str | None
    agent_version: str | None
    description: Description


def load_run(query: Query, graph: Description) -> RunRecord:
    """Load the run that wrote the graph with this description."""
    run = next((named_node(term) for term in graph[PROV.wasGeneratedBy]), None)
    if run is None:
        return RunRecord(None, None, None, defaultdict(list))
    description = load_description(query, run)
    agents = [named_node(term) for term in description[PROV.wasAssociatedWith]]
    agent: Description = load_description(query, agents[0]) if agents else defaultdict(list)
    return RunRecord(run.value, first_text(agent, RDFS.label), first_text(agent, SCHEMA.softwareVersion), description)


def first_text(description: Mapping[NamedNode, list[Term]], predicate: NamedNode) -> str | None:
    """Return the text of the first value of `predicate`, or None."""
    values = description[predicate]
    return term_text(values[0]) if values else None


TOUCHED: Final = """
SELECT ?commit ?graph WHERE { VALUES ?commit { $commits } GRAPH $prov { ?commit kg:touched ?graph } }"""

MAX_COMMITS: Final = 200
"""Maximum number of commits to compare; after more, callers reload everything."""

_ELSEWHERE: Final = tuple(f"{BASE}graph/{family}" for family in ("src/", "ext/", "der/", "ref/", "prov"))


def find_changed_graphs(query: Query, known: int, generation: int) -> frozenset[str] | None:
    """Find the graphs changed by the commits after `known` up to `generation`; None if that is not recorded."""
    if not 0 <= generation - known <= MAX_COMMITS:
        return None
    commits = [commit_iri(number) for number in range(known + 1, generation + 1)]
    rows = select(query, bind(TOUCHED, commits=commits, prov=PROV_GRAPH)).rows if commits else ()
    if len({commit for commit, _ in rows}) != len(commits):
        return None
    return frozenset(named_node(graph).value for _, graph in rows)


def graphs_about(graphs: Iterable[str], domain: str, record: str) -> frozenset[str]:
    """Filter `graphs` to those that may contain statements about the subjects of ``graph/src/{domain}/{record}/...``.

    These are its own graphs and the graphs of users, but no extracted or derived graphs and no other sources.
    """
    own = f"{SOURCED}{domain}/{record}/"
    return frozenset(graph for graph in graphs if graph.startswith(own) or not graph.startswith(_ELSEWHERE))
