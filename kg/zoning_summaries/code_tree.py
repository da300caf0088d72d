"""The sections of one municipal zoning code as a tree, with their summaries and the state of each summary.

The inputs of a summary are stored as hashes: one of its section's heading and text, and one per part, of that part's
heading and summary. A summary is stale when these hashes have changed, or when the summary of a part is stale or
missing. A change therefore makes all summaries above it stale.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.provenance.reader import find_changed_graphs, graphs_about
from kg.retrieval.display_titles import build_display_title
from kg.sparql.terms import bind
from kg.store.protocol import Query, Rows, Term, named_node, select, term_text
from kg.text import quoted
from kg.vocabulary import ELI, GENERATED, KG, SOURCED, iri_prefix, mint, sha256

State = Literal["current", "stale", "missing", "empty", "circular"]
"""State of the summary of a section. ``empty``: the section has no text to summarize. ``circular``: its parents form a
cycle, or it is below such a section."""

LENGTHS: Final = ((1, 2), (2, 3), (3, 4))
"""Minimum and maximum sentences of a summary by its level. The last entry applies to all higher levels."""

SECTIONS: Final = """
SELECT ?section ?graph ?number ?title ?kind ?level ?parent ?position ?sha256 WHERE {
  GRAPH ?graph {
    ?section kg:jurisdiction $municipality ; a kg:CodeSection
    OPTIONAL { ?section kg:sectionNumber ?number }
    OPTIONAL { ?section dcterms:title ?title }
    OPTIONAL { ?section eli:type_subdivision ?kind }
    OPTIONAL { ?section kg:level ?level }
    OPTIONAL { ?section dcterms:isPartOf ?parent }
    OPTIONAL { ?section schema:position ?position }
    OPTIONAL { ?section kg:textSha256 ?sha256 }
  }
}"""

SUMMARIES: Final = """
SELECT ?graph ?section ?text ?level ?prompt (GROUP_CONCAT(?input; separator=" ") AS ?inputs) WHERE {
  ?section kg:jurisdiction $municipality .
  GRAPH ?graph {
    ?summary kg:summaryOf ?section ; schema:text ?text ; kg:summaryLevel ?level ; kg:promptSha256 ?prompt ;
      kg:inputSha256 ?input
  }
} GROUP BY ?graph ?section ?text ?level ?prompt"""

TEXTS: Final = """
SELECT ?section ?text WHERE { VALUES ?section { $sections } ?section schema:text ?text }"""

MUNICIPALITY: Final = """
SELECT ?municipality WHERE { $section kg:jurisdiction ?municipality ; a kg:CodeSection } LIMIT 1"""

_SECTIONS: Final = iri_prefix("section")
_SUMMARIES: Final = iri_prefix("summary")
_MUNICIPALITIES: Final = iri_prefix("municipality")
_MOST_CHANGED: Final = 300
"""Maximum changed graphs for which a cached tree is updated instead of read again."""
_KEPT: Final = 8
_LOCK: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Section:
    """A stored section of a code, at any level."""

    iri: str
    graph: str
    number: str
    title: str
    """Its heading, empty if the code has none."""
    level: int
    parent: str | None
    position: int
    text_sha256: str | None
    """Hash of its own text, None without text."""
    kind: str = ""
    """The IRI of the word for its level."""

    @property
    def name(self) -> str:
        """Number and heading, else a title for display."""
        return " ".join(part for part in (self.number, self.title) if part) if self.title else self.shown_title

    @property
    def shown_title(self) -> str:
        """Its heading, else a title for display."""
        said = {ELI.type_subdivision: self.kind, KG.sectionNumber: self.number}
        return self.title or build_display_title(self.iri, said.get)


@dataclass(frozen=True, slots=True)
class Summary:
    """A stored summary."""

    section: str
    graph: str
    text: str
    level: int
    """0 is made from text only, each higher level also from summaries of lower levels."""
    prompt_sha256: str
    inputs: frozenset[str]
    """Hashes of its inputs."""

    @property
    def model(self) -> str:
        """The writer: ``extractive/...``, ``chat/...`` or ``agent/...``."""
        return unquote(self.graph.removeprefix(GENERATED).partition("/")[0])

    @property
    def method(self) -> str:
        """The kind of writer: ``extractive``, ``chat`` or ``agent``."""
        return self.model.partition("/")[0]


class CodeTree:
    """The tree of one municipality. `put` adds new summaries and updates all states."""

    def __init__(self, sections: Iterable[Section], summaries: Iterable[Summary]) -> None:
        listed = sorted(sections, key=lambda section: (section.position, _natural(section.number), section.iri))
        self.sections = {section.iri: section for section in listed}
        self.children: dict[str, list[str]] = defaultdict(list)
        self.roots: list[str] = []
        for iri, section in self.sections.items():
            if section.parent in self.sections:
                self.children[section.parent].append(iri)
            else:
                self.roots.append(iri)
        self.order: Sequence[str] = list(self._documents_order())
        """Every section below a root in document order, parents first."""
        self.summaries = {summary.section: summary for summary in sorted(summaries, key=lambda each: each.graph)}
        self.heights: dict[str, int] = {}
        """Level of the summary of each section that has text to summarize, at or below it."""
        for iri in reversed(self.order):
            parts = self.parts(iri)
            if parts or self.sections[iri].text_sha256 is not None:
                self.heights[iri] = max((self.heights[part] + 1 for part in parts), default=0)
        self.states: dict[str, State] = dict.fromkeys(self.sections, "circular")
        self.put(())

    def _documents_order(self) -> Iterator[str]:
        stack = self.roots[::-1]
        while stack:
            iri = stack.pop()
            yield iri
            stack += self.children.get(iri, ())[::-1]

    def parts(self, iri: str) -> list[str]:
        """Get the children that have text to summarize, in order."""
        return [child for child in self.children.get(iri, ()) if child in self.heights]

    def below(self, root: str | None) -> list[str]:
        """Get `root` and all sections below it in document order, or all sections without a root.

        Raises NotFoundError for an unknown root.
        """
        if root is None:
            return list(self.order)
        if root not in self.sections:
            raise NotFoundError(f"Unknown section {root} of this code. Top-level sections: {self._shown()}.")
        found, stack = {root}, [root]
        while stack:
            new = [child for child in self.children.get(stack.pop(), ()) if child not in found]
            found.update(new)
            stack += new
        return [iri for iri in self.order if iri in found]

    def _shown(self) -> str:
        shown = ", ".join(self.roots[:5]) or "none"
        return shown if len(self.roots) <= 5 else f"{shown} and {len(self.roots) - 5} more"

    def above(self, iri: str) -> list[str]:
        """Get the sections that contain `iri`, nearest first."""
        found: list[str] = []
        parent = self.sections[iri].parent
        while parent in self.sections and parent not in found:
            found.append(parent)
            parent = self.sections[parent].parent
        return found

    def inputs(self, iri: str) -> frozenset[str]:
        """Hash the current inputs of a summary of this section."""
        section = self.sections[iri]
        own = sha256(f"{section.title}\n{section.text_sha256 or ''}")
        return frozenset([own, *(self.input_of(child) for child in self.children.get(iri, ()))])

    def input_of(self, part: str) -> str:
        """Hash the contribution of a part to the summary above it."""
        summary = self.summaries.get(part) if part in self.heights else None
        return sha256(f"{part}\n{self.sections[part].title}\n{sha256(summary.text) if summary else ''}")

    def why_stale(self, iri: str) -> Iterator[str]:
        """Yield the reasons for which the summary of this section is stale."""
        section, summary = self.sections[iri], self.summaries[iri]
        now = self.inputs(iri)
        explained: set[str] = set()
        if (own := sha256(f"{section.title}\n{section.text_sha256 or ''}")) not in summary.inputs:
            explained.add(own)
            yield "its heading or its own text has changed"
        for part in self.children.get(iri, ()):
            name = self.sections[part].name
            state = self.states[part]
            if state in ("missing", "stale"):
                yield f"the summary of {quoted(name)} is {state}"
            if (said := self.input_of(part)) not in summary.inputs:
                explained.add(said)
                if state in ("current", "empty"):
                    yield f"the heading or the summary of {quoted(name)} has changed"
        if len(summary.inputs - now) > len(explained):
            yield "a part of the section has been removed"

    def put(self, summaries: Iterable[Summary]) -> None:
        """Add or replace summaries, and update all states."""
        self.summaries.update((summary.section, summary) for summary in summaries)
        for iri in reversed(self.order):
            if iri not in self.heights:
                self.states[iri] = "empty"
            elif iri not in self.summaries:
                self.states[iri] = "missing"
            else:
                self.states[iri] = "stale" if next(self.why_stale(iri), None) else "current"


def read_tree(kg: KnowledgeGraph, municipality: str) -> CodeTree:
    """Read the tree of a municipality, which may be modified. Raises NotFoundError if it has no sections."""
    place = NamedNode(municipality)
    with kg.reading():
        sections = select(kg.ask_sources, bind(SECTIONS, municipality=place))
        summaries = select(kg.ask_sources, bind(SUMMARIES, municipality=place))
    if not sections.rows:
        raise NotFoundError(
            f"No section of the code of {quoted(municipality)} is loaded. `kg load zoning` loads a code."
        )
    found: dict[str, Section] = {}
    _add_sections(found, sections)
    return CodeTree(found.values(), _to_summaries(summaries))


def _add_sections(known: dict[str, Section], rows: Rows) -> None:
    for section in map(_section, rows.rows):
        # Two parents or headings of a section are an error in the data: the first in order is used.
        other = known.get(section.iri, section)
        known[section.iri] = min(other, section, key=lambda each: (each.parent or "", each.title))


def _to_summaries(rows: Rows) -> list[Summary]:
    return [_summary(row) for row in rows.rows if row[1] is not None]


def _section(row: Sequence[Term | None]) -> Section:
    section, graph, number, title, kind, level, parent, position, digest = row
    return Section(
        named_node(section).value,
        named_node(graph).value,
        "" if number is None else term_text(number),
        "" if title is None else term_text(title),
        _number(level),
        parent.value if isinstance(parent, NamedNode) else None,
        _number(position),
        None if digest is None else term_text(digest),
        "" if kind is None else term_text(kind),
    )


def _summary(row: Sequence[Term | None]) -> Summary:
    graph, section, text, level, prompt, inputs = row
    return Summary(
        named_node(section).value,
        named_node(graph).value,
        term_text(text),
        _number(level),
        term_text(prompt),
        frozenset(term_text(inputs).split()),
    )


def _natural(number: str) -> list[tuple[bool, int, str]]:
    """Build a sort key that puts 9 before 10."""
    parts = re.findall(r"\d+|\D+", number)
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _number(term: Term | None) -> int:
    return int(term.value) if isinstance(term, Text) and term.value.lstrip("-").isdecimal() else 0


def cached_tree(kg: KnowledgeGraph, municipality: str) -> CodeTree:
    """Get the tree in the state that the call reads. It is shared and must not be modified.

    After a commit, only the changed graphs are read: a tenth of the time of reading a code of 3,000 sections again.
    """
    with _LOCK:
        memory: Memory = kg.memory.get("summary trees") or kg.memory.keep("summary trees", Memory(_KEPT))
    with kg.reading():
        known: tuple[int, CodeTree] | None = memory.get(municipality)
        if known is not None and known[0] == kg.generation:
            return known[1]
        tree = None if known is None else _renewed(kg.ask_sources, *known, municipality, kg.generation)
        tree = tree or read_tree(kg, municipality)
        if known is None or known[0] < kg.generation:
            memory.keep(municipality, (kg.generation, tree))
    return tree


def _renewed(query: Query, known: int, tree: CodeTree, municipality: str, generation: int) -> CodeTree | None:
    """Update a tree of the generation `known` by the graphs that commits have changed since.

    Returns None if all must be read again: many graphs have changed, or graphs of users that describe sections.
    """
    graphs = find_changed_graphs(query, known, generation)
    if graphs is None:
        return None
    name = municipality.removeprefix(_MUNICIPALITIES)
    own = graphs_about(graphs, "zoning", name)
    generated = {graph for graph in own if graph.startswith(GENERATED)}
    keys = {graph.removeprefix(GENERATED).partition("/")[2] for graph in generated}
    summarized = {_SECTIONS + key for key in keys if key.startswith(f"{name}/")}
    stated = {graph for graph in own if graph.startswith(SOURCED)}
    others = own - generated - stated
    if len(own) > _MOST_CHANGED or any(section.graph in others for section in tree.sections.values()):
        return None
    if others and select(query, _only(SECTIONS, "graph", others, municipality)).rows:
        return None
    if not stated and not summarized:
        return tree
    sections = {iri: section for iri, section in tree.sections.items() if section.graph not in stated}
    summaries = [summary for iri, summary in tree.summaries.items() if iri not in summarized]
    if stated:
        _add_sections(sections, select(query, _only(SECTIONS, "graph", stated, municipality)))
    if summarized:
        summaries += _to_summaries(select(query, _only(SUMMARIES, "section", summarized, municipality)))
    return CodeTree(sections.values(), summaries) if sections else None


def _only(query: str, variable: str, values: Iterable[str], municipality: str) -> str:
    """Restrict a query to some values of a variable."""
    # VALUES must be inside GRAPH: outside, the store evaluates the patterns for all graphs first.
    some = query.replace("GRAPH ?graph {", f"GRAPH ?graph {{ VALUES ?{variable} {{ $values }}", 1)
    return bind(some, values=[NamedNode(each) for each in sorted(values)], municipality=NamedNode(municipality))


def find_municipality(query: Query, section: str) -> str:
    """Find the municipality of a section. Raises NotFoundError for an unknown section."""
    for row in select(query, bind(MUNICIPALITY, section=NamedNode(section))):
        return named_node(row["municipality"]).value
    raise NotFoundError(f"Unknown section {section}. Format: {_SECTIONS}{{municipality}}/{{number}}.")


def load_texts(query: Query, sections: Sequence[str]) -> dict[str, str]:
    """Load the texts of those of `sections` that have one, by IRI."""
    if not sections:
        return {}
    named = [NamedNode(section) for section in sections]
    return {
        named_node(row["section"]).value: term_text(row["text"]) for row in select(query, bind(TEXTS, sections=named))
    }


def to_summary_iri(section: str) -> NamedNode:
    """Build the IRI of the summary of a section."""
    return NamedNode(_SUMMARIES + _get_key(section))


def to_summary_graph(section: str, model: str) -> NamedNode:
    """Build the IRI of the graph for the summary of a section by `model`."""
    return mint("graph", "gen", model, *(unquote(part) for part in _get_key(section).split("/")))


def _get_key(section: str) -> str:
    if not section.startswith(_SECTIONS):
        raise InvalidInputError(f"{section} is not a code section. Format: {_SECTIONS}{{municipality}}/{{number}}.")
    return section.removeprefix(_SECTIONS)
