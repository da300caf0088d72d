"""Commits the summaries of zoning sections with their provenance, and loads the status of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph, read_newest
from kg.provenance import permissions
from kg.provenance.load_records import Agent, Derived, RecordOrigin, Run, timestamp
from kg.sparql.terms import bind
from kg.store.protocol import GraphChange, Patch, Store, named_node, select, term_text
from kg.vocabulary import KG, PROV, PROV_GRAPH, RDF, SCHEMA, SOURCED, iri_prefix
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree, State, Summary, to_summary_graph, to_summary_iri
from kg.zoning_summaries.prompts import Source

AGENT: Final = Agent("kg.summaries", "1")
"""The agent that commits the graphs of summaries, by whichever writer. The name is part of stored provenance."""

GRAPHS_OF: Final = """
SELECT ?graph ?section WHERE { VALUES ?section { $sections } GRAPH ?graph { ?summary kg:summaryOf ?section } }"""

_OF_SECTIONS: Final = SOURCED + "zoning/"
_SECTIONS: Final = iri_prefix("section")
_WRITING: Final = threading.Lock()


def build_source(tree: CodeTree, section: str, text: str) -> Source:
    """Build the input of the summary of a section. `text` is its own text."""
    said = tree.summaries
    parts = [(tree.sections[part].name, said[part].text) for part in tree.parts(section) if part in said]
    return Source(section, tree.sections[section].name, text, parts, tree.heights[section])


def build_summary(tree: CodeTree, section: str, text: str, model: str, prompt_sha256: str) -> Summary:
    """Build the summary `text` with the hashes of its inputs in `tree`."""
    graph = to_summary_graph(section, model).value
    return Summary(section, graph, text, tree.heights[section], prompt_sha256, tree.inputs(section))


def commit_summaries(kg: KnowledgeGraph, tree: CodeTree, summaries: Sequence[Summary], run: Run) -> str | None:
    """Commit summaries, each replacing any other of its section. Returns the run, or None if nothing changed.

    Concurrent builds leave one summary per section. Raises ForbiddenError if a caller without the token would replace
    a summary of the operator.
    """
    replace: dict[NamedNode, Sequence[Quad]] = {}
    origins: dict[NamedNode, RecordOrigin] = {}
    built = timestamp(datetime.now(UTC))
    sections = [NamedNode(summary.section) for summary in summaries]
    with _WRITING:
        rows = select(kg.store.query_sources, bind(GRAPHS_OF, sections=sections))
        held = {named_node(row["graph"]): named_node(row["section"]).value for row in rows}
        for summary in summaries:
            graph = NamedNode(summary.graph)
            replace[graph] = list(_quads(tree, summary))
            origins[graph] = RecordOrigin(
                "",
                (),
                derived_from=[NamedNode(tree.sections[summary.section].graph)],
                said=[(KG.method, Literal(summary.method)), (PROV.generatedAtTime, built)],
                author=permissions.get_author(),
            )
        replace = dict.fromkeys(held, ()) | replace
        described = run.describe(kg.store, origins)

        def describe(changes: Sequence[GraphChange]) -> Patch:
            permissions.check_changes(kg.store, changes)
            return described(changes)

        done = kg.store.commit(replace, describe)
    read_newest()
    return run.iri.value if any(change.content_sha256 for change in done.changes) else None


def find_withdrawn(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
    """Find the summaries of sections whose graphs are about to be removed. Each maps to an empty graph."""
    removed = [graph for graph, quads in replace.items() if not quads and graph.value.startswith(_OF_SECTIONS)]
    if not removed:
        return {}
    sections = {f"{_SECTIONS}{graph.value.removeprefix(_OF_SECTIONS)}": graph for graph in removed}
    rows = select(store.query_sources, bind(GRAPHS_OF, sections=[*map(NamedNode, sections)]))
    return {
        named_node(row["graph"]): ((), RecordOrigin("", (), (sections[named_node(row["section"]).value],)))
        for row in rows
    }


def _quads(tree: CodeTree, summary: Summary) -> Iterator[Quad]:
    graph, node, section = (
        NamedNode(summary.graph),
        to_summary_iri(summary.section),
        NamedNode(summary.section),
    )
    yield Quad(node, RDF.type, KG.Summary, graph)
    yield Quad(node, KG.summaryOf, section, graph)
    yield Quad(node, KG.summaryLevel, Literal(summary.level), graph)
    yield Quad(node, SCHEMA.text, Literal(summary.text), graph)
    yield Quad(node, KG.promptSha256, Literal(summary.prompt_sha256), graph)
    for digest in summary.inputs:
        yield Quad(node, KG.inputSha256, Literal(digest), graph)
    yield Quad(node, PROV.wasDerivedFrom, section, graph)
    for part in tree.parts(summary.section):
        if part in tree.summaries:
            yield Quad(node, PROV.wasDerivedFrom, to_summary_iri(part), graph)


WRITTEN: Final = """
SELECT ?run ?time WHERE {
  GRAPH $prov { $graph prov:wasGeneratedBy ?run OPTIONAL { $graph prov:generatedAtTime ?time } }
}"""


@dataclass(frozen=True, slots=True)
class SummaryStatus:
    """The summary of one section, if any, with its state. `why` gives the reasons for which it is stale."""

    state: State
    summary: Summary | None = None
    built_at: str | None = None
    run: str | None = None
    why: tuple[str, ...] = ()


def load_summary_status(kg: KnowledgeGraph, section: str) -> SummaryStatus:
    """Load the summary of a section and its state. Raises NotFoundError for an unknown section."""
    municipality = code_tree.find_municipality(kg.ask_sources, section)
    tree = code_tree.cached_tree(kg, municipality)
    found = tree.summaries.get(section)
    if found is None or section not in tree.heights:
        return SummaryStatus(tree.states[section])
    rows = select(kg.ask_sources, bind(WRITTEN, graph=NamedNode(found.graph), prov=PROV_GRAPH))
    said = next(iter(rows), {})
    time, run = said.get("time"), said.get("run")
    return SummaryStatus(
        tree.states[section],
        found,
        None if time is None else term_text(time),
        None if run is None else term_text(run),
        tuple(tree.why_stale(section)),
    )
