"""Summaries of zoning codes by the calling agent: lists the sections to summarize, and stores the agent's texts."""

from __future__ import annotations

from dataclasses import dataclass

from kg.errors import ConflictError, InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Run
from kg.text import quoted
from kg.vocabulary import sha256
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree, Summary
from kg.zoning_summaries.prompts import check_summary
from kg.zoning_summaries.stored_summaries import AGENT, build_source, build_summary, commit_summaries


@dataclass(frozen=True, slots=True)
class Pending:
    """A section whose summary is missing or stale, with the instructions and the source for its writer."""

    section: str
    name: str
    state: str
    ready: bool
    """Whether the summaries of all parts are current. Sections that are not ready come after their parts."""
    level: int
    sentences: tuple[int, int]
    instructions: str
    source: str
    inputs_sha256: str
    """To be passed back with the text, which is rejected if the inputs have changed."""


def find_pending(
    kg: KnowledgeGraph, municipality: str, root: str | None = None, *, limit: int = 10
) -> tuple[list[Pending], int]:
    """Find the sections without a current summary, parts first. Returns the first `limit` and the total.

    Raises NotFoundError for an unknown municipality or root.
    """
    with kg.reading():
        tree = code_tree.read_tree(kg, municipality)
        todo = [iri for iri in tree.below(root) if tree.states[iri] in ("missing", "stale")]
        todo.sort(key=lambda iri: tree.heights[iri])  # stable: within a level in document order
        shown = todo[:limit]
        texts = code_tree.load_texts(kg.ask_sources, shown)
    return [_pending(tree, iri, texts.get(iri, "")) for iri in shown], len(todo)


def _pending(tree: CodeTree, iri: str, text: str) -> Pending:
    source = build_source(tree, iri, text)
    return Pending(
        iri,
        source.name,
        tree.states[iri],
        all(tree.states[part] == "current" for part in tree.parts(iri)),
        source.level,
        source.length,
        source.instructions,
        source.given(),
        _hash_inputs(tree, iri),
    )


def _hash_inputs(tree: CodeTree, iri: str) -> str:
    return sha256(" ".join(sorted(tree.inputs(iri))))


def record_summary(
    kg: KnowledgeGraph, section: str, text: str, *, inputs_sha256: str | None = None
) -> tuple[Summary, list[str]]:
    """Store a summary written by the calling agent. Returns it and the stale sections above it.

    Raises NotFoundError for an unknown section, InvalidInputError for an invalid summary (see
    `kg.zoning_summaries.prompts.check_summary`) and for a section without text to summarize, and ConflictError if the
    section or its parts have changed since `inputs_sha256`.
    """
    tree = code_tree.read_tree(kg, code_tree.find_municipality(kg.store.query_sources, section))
    if section not in tree.heights:
        name, state = tree.sections[section].name, tree.states[section]
        raise InvalidInputError(f"{quoted(name)} cannot have a summary: its state is {state}.")
    if inputs_sha256 is not None and inputs_sha256 != _hash_inputs(tree, section):
        raise ConflictError(f"{quoted(tree.sections[section].name)} or its parts have changed. Get its source again.")
    source = build_source(tree, section, code_tree.load_texts(kg.store.query_sources, [section]).get(section, ""))
    made = build_summary(
        tree,
        section,
        check_summary(text, source.level, source.given()),
        "agent/agent",
        source.prompt_sha256,
    )
    commit_summaries(kg, tree, [made], Run(AGENT, {"model": made.model, "section": section}))
    tree.put([made])
    return made, [iri for iri in tree.above(section) if tree.states[iri] in ("missing", "stale")]
