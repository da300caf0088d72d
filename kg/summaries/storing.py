"""What a summary is made from, and how it comes into the store."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import Agent, Derived, RecordOrigin, Run
from kg.provenance.reading import iri_of
from kg.provenance.recording import timestamp
from kg.sparql.terms import bind
from kg.store.protocol import Store, select
from kg.summaries.hierarchy import Hierarchy, Summary, graph_of, summary_of
from kg.summaries.instructions import Source
from kg.vocabulary import KG, PROV, RDF, SCHEMA, SOURCED, root_of

AGENT: Final = Agent("kg.summaries", "1")
"""What writes the graphs of summaries, whoever wrote their words."""

GRAPHS_OF: Final = """
SELECT ?graph ?section WHERE { VALUES ?section { $sections } GRAPH ?graph { ?summary kg:summaryOf ?section } }"""

_OF_SECTIONS: Final = SOURCED + "zoning/"
_SECTIONS: Final = root_of("section")
_WRITING: Final = threading.Lock()


def source_of(tree: Hierarchy, section: str, text: str) -> Source:
    """Return what the summary of a section is made from; `text` is its own."""
    said = tree.summaries
    parts = [(tree.sections[part].name, said[part].text) for part in tree.parts(section) if part in said]
    return Source(section, tree.sections[section].name, text, parts, tree.heights[section])


def summary_by(tree: Hierarchy, section: str, text: str, model: str, prompt_sha256: str) -> Summary:
    """Return the summary `text`, made from what `tree` has now."""
    graph = graph_of(section, model).value
    return Summary(section, graph, text, tree.heights[section], prompt_sha256, tree.inputs(section))


def commit(kg: KnowledgeGraph, tree: Hierarchy, summaries: Sequence[Summary], run: Run) -> str | None:
    """Write summaries, each in the place of what others wrote of its section, and return the run that is recorded.

    Two builds at once leave one summary of each section.
    """
    replace: dict[NamedNode, Sequence[Quad]] = {}
    origins: dict[NamedNode, RecordOrigin] = {}
    built = timestamp(datetime.now(UTC))
    for summary in summaries:
        graph = NamedNode(summary.graph)
        replace[graph] = list(_quads(tree, summary))
        said = [(KG.method, Literal(summary.method)), (PROV.generatedAtTime, built)]
        section = NamedNode(tree.sections[summary.section].graph)
        origins[graph] = RecordOrigin("", (), derived_from=[section], said=said)
    sections = [NamedNode(summary.section) for summary in summaries]
    with _WRITING:
        for row in select(kg.store.query, bind(GRAPHS_OF, sections=sections)):
            replace.setdefault(iri_of(row["graph"]), ())
        done = kg.store.commit(replace, run.describe(kg.store, origins))
    return run.iri.value if any(change.content_sha256 for change in done.changes) else None


def withdrawn(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
    """Return the summaries that go with the graphs of sections that are about to be removed: each becomes nothing."""
    removed = [graph for graph, quads in replace.items() if not quads and graph.value.startswith(_OF_SECTIONS)]
    if not removed:
        return {}
    sections = {f"{_SECTIONS}{graph.value.removeprefix(_OF_SECTIONS)}": graph for graph in removed}
    rows = select(store.query, bind(GRAPHS_OF, sections=[*map(NamedNode, sections)]))
    return {iri_of(row["graph"]): ((), RecordOrigin("", (), (sections[iri_of(row["section"]).value],))) for row in rows}


def _quads(tree: Hierarchy, summary: Summary) -> Iterator[Quad]:
    graph, node, section = NamedNode(summary.graph), summary_of(summary.section), NamedNode(summary.section)
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
            yield Quad(node, PROV.wasDerivedFrom, summary_of(part), graph)
