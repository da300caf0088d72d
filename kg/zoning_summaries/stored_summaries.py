"""Stores the summaries of zoning sections with their provenance, and removes those of sections that a load removes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import ConflictError, InvalidInputError
from kg.knowledge_graph import KnowledgeGraph, read_newest
from kg.provenance import permissions
from kg.provenance.load_records import Agent, Derived, RecordOrigin, Run, timestamp
from kg.sparql.terms import bind
from kg.store.protocol import GraphChange, Patch, Query, Store, named_node, select
from kg.text import quoted
from kg.vocabulary import KG, PROV, RDF, SCHEMA, SOURCED, iri_prefix, sha256
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree, Summary, to_summary_graph, to_summary_iri
from kg.zoning_summaries.prompts import Source, build_instructions, check_summary

AGENT: Final = Agent("kg.summaries", "1")
"""The agent that commits the graphs of summaries, by whichever writer. The name is part of stored provenance."""

GRAPHS_OF: Final = """
SELECT ?graph ?section WHERE { VALUES ?section { $sections } GRAPH ?graph { ?summary kg:summaryOf ?section } }"""

_OF_SECTIONS: Final = SOURCED + "zoning/"
_SECTIONS: Final = iri_prefix("section")
_WRITING: Final = threading.Lock()


def build_sources(query: Query, tree: CodeTree, sections: Sequence[str]) -> list[Source]:
    """Load the inputs of the summaries of some sections."""
    texts = code_tree.load_texts(query, sections)
    return [
        Source(
            section,
            tree.sections[section].name,
            texts.get(section, ""),
            [
                (tree.sections[part].name, tree.summaries[part].text)
                for part in tree.parts(section)
                if part in tree.summaries
            ],
            tree.heights[section],
        )
        for section in sections
    ]


def build_summary(tree: CodeTree, section: str, text: str, model: str, prompt_sha256: str) -> Summary:
    """Build the summary `text` with the hashes of its inputs in `tree`."""
    graph = to_summary_graph(section, model).value
    return Summary(section, graph, text, tree.heights[section], prompt_sha256, tree.inputs(section))


def hash_inputs(tree: CodeTree, section: str) -> str:
    """Hash all inputs of the summary of a section."""
    return sha256(" ".join(sorted(tree.inputs(section))))


def record_summary(
    kg: KnowledgeGraph, municipality: str, section: str, text: str, *, inputs_sha256: str | None = None
) -> None:
    """Store a summary written by the calling agent.

    Raises InvalidInputError for an invalid summary (see `kg.zoning_summaries.prompts.check_summary`) and for a section
    without text to summarize, and ConflictError if the section or its parts have changed since `inputs_sha256`.
    """
    tree = code_tree.read_tree(kg, municipality)
    if section not in tree.heights:
        state = tree.states.get(section, "unknown")
        raise InvalidInputError(f"{quoted(section)} cannot have a summary: its state is {state}.")
    if inputs_sha256 not in (None, hash_inputs(tree, section)):
        name = quoted(tree.sections[section].name)
        raise ConflictError(f"{name} or its parts have changed. Get its source again.")
    [source] = build_sources(kg.store.query_sources, tree, [section])
    checked = check_summary(text, source.level, source.given())
    made = build_summary(tree, section, checked, "agent/agent", sha256(build_instructions(source.level)))
    commit_summaries(kg, tree, [made], Run(AGENT, {"model": made.model, "section": section}))


def commit_summaries(kg: KnowledgeGraph, tree: CodeTree, summaries: Sequence[Summary], run: Run) -> str | None:
    """Commit summaries, each replacing any other of its section. Returns the run, or None if nothing changed.

    Concurrent builds leave one summary per section. Raises ForbiddenError if a caller without the token would replace
    a summary of the operator.
    """
    built = timestamp(datetime.now(UTC))
    graphs = {NamedNode(summary.graph): summary for summary in summaries}
    origins = {
        graph: RecordOrigin(
            "",
            (),
            derived_from=[NamedNode(tree.sections[summary.section].graph)],
            said=[(KG.method, Literal(summary.method)), (PROV.generatedAtTime, built)],
            author=permissions.get_author(),
        )
        for graph, summary in graphs.items()
    }
    with _WRITING:
        sections = [NamedNode(summary.section) for summary in summaries]
        held = [named_node(row["graph"]) for row in select(kg.store.query_sources, bind(GRAPHS_OF, sections=sections))]
        described = run.describe(kg.store, origins)

        def describe(changes: Sequence[GraphChange]) -> Patch:
            permissions.check_changes(kg.store, changes)
            return described(changes)

        replace: dict[NamedNode, Sequence[Quad]] = dict.fromkeys(held, ())
        done = kg.store.commit(replace | {graph: [*_quads(tree, graphs[graph])] for graph in graphs}, describe)
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
    graph, node = NamedNode(summary.graph), to_summary_iri(summary.section)
    parts = [to_summary_iri(part) for part in tree.parts(summary.section) if part in tree.summaries]
    statements: list[tuple[NamedNode, NamedNode | Literal]] = [
        (RDF.type, KG.Summary),
        (KG.summaryOf, NamedNode(summary.section)),
        (KG.summaryLevel, Literal(summary.level)),
        (SCHEMA.text, Literal(summary.text)),
        (KG.promptSha256, Literal(summary.prompt_sha256)),
        *((KG.inputSha256, Literal(digest)) for digest in summary.inputs),
        *((PROV.wasDerivedFrom, each) for each in (NamedNode(summary.section), *parts)),
    ]
    for predicate, value in statements:
        yield Quad(node, predicate, value, graph)
