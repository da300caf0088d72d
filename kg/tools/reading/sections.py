"""A section of a code to be read: its text and tables, the rules found in it, and the code around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import describe, origin_of
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Provenance, Statement
from kg.sparql.terms import bind
from kg.text import quoted
from kg.tools.claims.review import Kind, ListedClaim, load_listed
from kg.tools.reading.documents import CitedBy, load_cited_by
from kg.tools.reading.marks import Marks, load_marks
from kg.tools.zoning.name_lookup import load_places
from kg.tools.zoning.rules import Rule, Span, is_reported, load_rules
from kg.tools.zoning.sections import (
    SectionLine,
    SectionResult,
    Table,
    load_section,
    load_section_lines,
    load_section_tables,
)
from kg.vocabulary import KG
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree

LINES: Final = 200
"""Maximum sections of one level that a page lists. Truncation is reported."""
RULES: Final = 300
"""Maximum rules on a page. Truncation is reported."""

RULES_OF: Final = """
SELECT DISTINCT ?claim ?graph ?kind WHERE {
  ?claim kg:definedIn $section
  GRAPH ?graph { ?claim a ?kind }
  FILTER(?kind IN (kg:UsePermission, kg:DimensionalStandard, kg:Definition, kg:DistrictNaming))
} LIMIT $most"""


@dataclass(frozen=True, slots=True)
class SectionRule:
    """A rule that a section states: a use, a standard, a definition, or the district that it names."""

    claim: str
    kind: Kind
    statement: str
    confidence: float | None
    """None if the source itself states it as data."""
    method: str
    reported: bool
    """Whether tools report it as law."""
    review: str | None
    reviewed_by: Sequence[str]
    spans: Sequence[Span]
    """The words of the section that it rests on."""


@dataclass(frozen=True, slots=True)
class Step:
    """A level of the code around a section: the sections of that level, with the open one."""

    lines: Sequence[SectionLine]
    open: str | None
    total: int


@dataclass(frozen=True, slots=True)
class SectionPage:
    """A section with the code around it."""

    section: SectionResult
    number: str
    municipality: str
    place: str
    """Name of the municipality with its state."""
    above: Sequence[SectionLine]
    """The sections that contain it, outermost first."""
    tree: Sequence[Step]
    """The levels of the code from the outermost to its own, for a table of contents."""
    children: Sequence[SectionLine]
    children_total: int
    before: SectionLine | None
    after: SectionLine | None
    tables: Sequence[Table]
    rules: Sequence[SectionRule]
    more_rules: bool
    why_stale: Sequence[str]
    marks: Marks
    cited_by: CitedBy
    provenance: Provenance
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)


def read_section(kg: KnowledgeGraph, iri: str, citing_page: int = 1) -> SectionPage:
    """Load a section of a code, at any level, by its IRI. Raises NotFoundError."""
    reader, node = Reader(kg), NamedNode(iri)
    rows = reader.rows("its municipality", bind(code_tree.MUNICIPALITY, section=node))
    municipality = next((iri_of(row["municipality"]) for row in rows), None)
    tree = None if municipality is None else code_tree.cached_tree(kg, municipality)
    if municipality is None or tree is None or iri not in tree.sections:
        raise NotFoundError(f"{quoted(iri)} is not a section of a code that is loaded.")
    section = load_section(reader, tree, iri)
    above = tree.above(iri)[::-1]
    children = tree.children.get(iri, [])
    order = tree.below(None)
    at = order.index(iri) if iri in order else -1
    near = [order[place] if 0 <= place < len(order) else None for place in (at - 1, at + 1)] if at >= 0 else [None] * 2
    levels = _levels(tree, [*above, iri])
    wanted = dict.fromkeys(
        [
            *above,
            *children[:LINES],
            *(each for each in near if each),
            *(each for level, _, _ in levels for each in level),
        ]
    )
    lines = {line.iri: line for line in load_section_lines(reader, tree, [(None, each) for each in wanted])}
    rules, more = reader.kept_by_iri("rules of a section", [iri], lambda _: {iri: _load_rules(reader, node)})[iri]
    graph = tree.sections[iri].graph
    descriptions = describe(reader, [iri], [graph])
    names = {place.iri: place.shown for place in load_places(reader)}
    return SectionPage(
        section=section,
        number=tree.sections[iri].number,
        municipality=municipality,
        place=names.get(municipality, ""),
        above=[lines[each] for each in above],
        tree=[Step([lines[each] for each in level], opened, total) for level, opened, total in levels],
        children=[lines[each] for each in children[:LINES]],
        children_total=len(children),
        before=lines[near[0]] if near[0] else None,
        after=lines[near[1]] if near[1] else None,
        tables=load_section_tables(reader, node),
        rules=rules,
        more_rules=more,
        why_stale=list(tree.why_stale(iri)) if tree.states.get(iri) == "stale" else [],
        marks=load_marks(reader, {iri: section.raw_content}),
        cited_by=load_cited_by(reader, node, citing_page),
        provenance=origin_of(
            reader,
            descriptions,
            graph,
            lines=section.evidence.source_lines,
            pages=section.evidence.source_pages,
        ),
        generation=reader.kg.generation,
        queries=list(reader.ran),
    )


def _levels(tree: CodeTree, path: Sequence[str]) -> list[tuple[Sequence[str], str | None, int]]:
    """List the sections of each level on the way to the last of `path`, around the one that is on the way."""
    levels: list[tuple[Sequence[str], str | None, int]] = []
    beside: Sequence[str] = tree.roots
    for each in path:
        at = beside.index(each) if each in beside else 0
        first = max(0, min(at - LINES // 2, len(beside) - LINES))
        levels.append((beside[first : first + LINES], each, len(beside)))
        beside = tree.children.get(each, [])
    return levels


def _load_rules(reader: Reader, section: NamedNode) -> tuple[list[SectionRule], bool]:
    """Load the rules of a section in the order of their words, and whether there are more."""
    rows = reader.rows("rules in its text", bind(RULES_OF, section=section, most=RULES + 1))
    shown = list({iri_of(row["claim"]): row for row in rows}.values())[:RULES]
    if not shown:
        return [], False
    known = load_rules(reader, {iri_of(row["claim"]): iri_of(row["graph"]) for row in shown})
    threshold = reader.kg.settings.rule_confidence
    found = [_to_rule(listed, known[listed.id], threshold) for listed in load_listed(reader, shown, known)]
    return sorted(found, key=_place_of), len(rows) > RULES


def _to_rule(listed: ListedClaim, rule: Rule, threshold: float) -> SectionRule:
    return SectionRule(
        claim=listed.id,
        kind=listed.kind,
        statement=listed.statement,
        confidence=rule.confidence,
        method=listed.method,
        reported=is_reported(rule, threshold),
        review=rule.one(KG.reviewStatus),
        reviewed_by=listed.reviewed_by or (),
        spans=rule.spans(),
    )


def _place_of(rule: SectionRule) -> tuple[int, int, str]:
    first = rule.spans[0] if rule.spans else None
    return (first.end, first.start, rule.claim) if first else (0, 0, rule.claim)


def group_rules(rules: Sequence[SectionRule]) -> Mapping[int, Sequence[int]]:
    """Number the rules from 1 and list the numbers by the place where the words of each end."""
    found: dict[int, list[int]] = {}
    for number, rule in enumerate(rules, 1):
        if rule.spans:
            found.setdefault(max(span.end for span in rule.spans), []).append(number)
    return found
