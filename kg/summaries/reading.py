"""One summary as it stands: its words, who wrote it when, and whether it is stale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.reading import text_of
from kg.sparql.terms import bind
from kg.store.protocol import select
from kg.summaries import hierarchy
from kg.summaries.hierarchy import State, Summary
from kg.vocabulary import PROV_GRAPH

WRITTEN: Final = """
SELECT ?run ?time WHERE {
  GRAPH $prov { $graph prov:wasGeneratedBy ?run OPTIONAL { $graph prov:generatedAtTime ?time } }
}"""


@dataclass(frozen=True, slots=True)
class Standing:
    """The summary of one section. `summary` is None where there is none, `why` says why it is stale."""

    state: State
    summary: Summary | None = None
    built_at: str | None = None
    run: str | None = None
    why: tuple[str, ...] = ()


def summary(kg: KnowledgeGraph, section: str) -> Standing:
    """Return how the summary of a section stands. NotFoundError where there is no such section."""
    municipality = hierarchy.municipality_of(lambda text: kg.query(text).result, section)
    tree = hierarchy.kept(kg, municipality)
    found = tree.summaries.get(section)
    if found is None or section not in tree.heights:
        return Standing(tree.states[section])
    rows = select(lambda text: kg.query(text).result, bind(WRITTEN, graph=NamedNode(found.graph), prov=PROV_GRAPH))
    said = next(iter(rows), {})
    time, run = said.get("time"), said.get("run")
    return Standing(
        tree.states[section],
        found,
        None if time is None else text_of(time),
        None if run is None else text_of(run),
        tuple(tree.why_stale(section)),
    )
