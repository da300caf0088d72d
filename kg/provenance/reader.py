"""Read descriptions from ``graph/prov``, and find the graphs that changed between two generations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.store.protocol import Query, Result, Rows, Term, batched, named_node, select, term_text
from kg.vocabulary import BASE, PROV, PROV_GRAPH, RDFS, SCHEMA, SOURCED, commit_iri

DESCRIPTIONS: Final = """
SELECT ?s ?p ?o WHERE { VALUES ?s { $subjects } GRAPH $prov { ?s ?p ?o } }"""


_AT_ONCE: Final = 100
"""Nodes that are described by one query: few, since a query has a maximum number of rows."""

Description = defaultdict[NamedNode, list[Term]]
"""The values that ``graph/prov`` has for one node, by predicate."""


# One pattern for each step, since paths and nested groups make the engine scan the graph.
RECORDED: Final = """
SELECT DISTINCT ?s ?p ?o WHERE {
  { VALUES ?s { $graphs } GRAPH $prov { ?s ?p ?o } } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:wasGeneratedBy ?s . ?s ?p ?o }
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:wasGeneratedBy ?run . ?run prov:wasAssociatedWith ?s . ?s ?p ?o }
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:wasGeneratedBy ?run . ?run prov:used ?s . ?s a kg:Rule ; ?p ?o }
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:qualifiedDerivation ?s . ?s ?p ?o }
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:qualifiedDerivation ?part . ?part prov:entity ?s . ?s ?p ?o }
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:wasDerivedFrom ?s . ?s ?p ?o }
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:wasDerivedFrom ?file . ?file prov:wasAttributedTo ?s . ?s ?p ?o }
  }
} LIMIT $most"""

_MOST_RECORDED: Final = 5_000
"""Maximum statements of the records of some graphs. If there are more, each node is described by itself."""
_QUERIES_AT_ONCE: Final = 40
_PROJECTED: Final = re.compile(r"\((?:[^()]|\([^()]*\))*? AS \?(\w+)\)|\?(\w+)")


class Records:
    """Queries about provenance on one state: each runs once, and several in one request."""

    def __init__(self, query: Query) -> None:
        self._query: Final = query
        self._answers: Final[dict[str, Result]] = {}
        self._described: Final[dict[NamedNode, Description]] = {}
        self._loaded: Final[set[NamedNode]] = set()
        """The graphs of which `load` was called."""

    def __call__(self, text: str) -> Result:
        """Get the result of a query."""
        if text not in self._answers:
            self._answers[text] = self._query(text)
        return self._answers[text]

    def run(self, texts: Iterable[str]) -> None:
        """Run SELECTs in few requests, for later calls with the same texts."""
        wanted = [text for text in dict.fromkeys(texts) if text not in self._answers]
        for some in batched(wanted, _QUERIES_AT_ONCE):
            if len(some) > 1:
                self._run_as_one(some)

    def _run_as_one(self, texts: Sequence[str]) -> None:
        columns = [_find_columns(text.partition("WHERE")[0]) for text in texts]
        every = " ".join(f"?{name}" for name in dict.fromkeys(name for names in columns for name in names))
        parts = " UNION ".join(f"{{ {{ {text} }} BIND({at} AS ?at) }}" for at, text in enumerate(texts))
        found = select(self._query, f"SELECT ?at {every} WHERE {{ {parts} }}")
        if found.truncated:
            return
        rows: list[list[tuple[Term | None, ...]]] = [[] for _ in texts]
        for row in found:
            at = int(term_text(row["at"]))
            rows[at].append(tuple(row.get(name) for name in columns[at]))
        self._answers.update({text: Rows(names, own) for text, names, own in zip(texts, columns, rows, strict=True)})

    def load(self, graphs: Iterable[NamedNode]) -> None:
        """Load the descriptions of graphs, of their runs, agents and sources, in one request."""
        wanted = sorted({*graphs} - self._loaded, key=str)
        if not wanted:
            return
        self._loaded.update(wanted)
        rows = select(self._query, bind(RECORDED, graphs=wanted, prov=PROV_GRAPH, most=_MOST_RECORDED))
        if rows.truncated or len(rows) == _MOST_RECORDED:
            return
        found: dict[NamedNode, Description] = {graph: defaultdict(list) for graph in wanted}
        for row in rows:
            about = found.setdefault(named_node(row["s"]), defaultdict(list))
            about[named_node(row["p"])].append(row["o"])
        self._described.update(found)

    def describe(self, nodes: Iterable[NamedNode]) -> dict[NamedNode, Description]:
        """Load the descriptions of `nodes` in ``graph/prov``."""
        wanted = list(nodes)
        self._described.update(
            _load_descriptions(self._query, [node for node in wanted if node not in self._described], PROV_GRAPH)
        )
        return {node: self._described[node] for node in wanted}


@lru_cache(maxsize=64)
def _find_columns(head: str) -> tuple[str, ...]:
    """Find the variables that a SELECT of this project returns, given the text before its pattern."""
    return tuple(match[1] or match[2] for match in _PROJECTED.finditer(head))


def load_descriptions(
    query: Query, subjects: Iterable[NamedNode], graph: NamedNode = PROV_GRAPH
) -> dict[NamedNode, Description]:
    """Load the descriptions of `subjects` in `graph`, empty for those without one."""
    if isinstance(query, Records) and graph == PROV_GRAPH:
        return query.describe(subjects)
    return _load_descriptions(query, subjects, graph)


def _load_descriptions(query: Query, subjects: Iterable[NamedNode], graph: NamedNode) -> dict[NamedNode, Description]:
    found: dict[NamedNode, Description] = {subject: defaultdict(list) for subject in subjects}
    nodes = list(found)
    for some in batched(nodes, _AT_ONCE):
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
