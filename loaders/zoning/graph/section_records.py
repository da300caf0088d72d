"""A section of a code as one record, and the lists of a source next to its sections as another."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyoxigraph import NamedNode

from kg.errors import RecordError
from kg.text import name_or_quote, quoted
from kg.vocabulary import DCTERMS, ELI, KG, RDF, SCHEMA, mint, mint_part, mint_subsection, sha256
from loaders.citations.graph.claims import Property, describe
from loaders.model import Origin, SourceGraph, TextUnit
from loaders.readers.headings import KINDS
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.graph.rule_quads import Entry, Rules
from loaders.zoning.readers.code_model import DOMAIN, HISTORY, Cell, Section, Subsection, Table


def build_section_record(section: Section, shared: Authorities, origin: Origin) -> SourceGraph:
    """Build the record of a section. `shared` must not be shared with other records."""
    iri, key = shared.section(section.key), (shared.key, section.key)
    parent = None if section.parent is None else shared.section(section.parent)
    units = [TextUnit(iri, KG.CodeSection, section.order, section.text, parent)] if section.text else []
    parts = [(iri, _describe_section(section, shared, parent)), *_list_parts(section, iri)]
    graph = mint("graph", "src", DOMAIN, *key)
    return SourceGraph(
        DOMAIN,
        key,
        iri,
        [quad for node, said in parts for quad in describe(node, graph, said)],
        (Origin(origin.snapshot),),
        # Without its place in the file: a line added above the section does not change the section.
        sha256(repr((shared.name, replace(section, lines=None, pages=None)))),
        shared.graphs,
        context=(origin,),
        units=units,
    )


def _describe_section(section: Section, shared: Authorities, parent: NamedNode | None) -> Iterator[Property]:
    if not section.text:
        yield from ((RDF.type, KG.CodeSection), (SCHEMA.position, section.order), (DCTERMS.isPartOf, parent))
    yield KG.level, section.level
    yield ELI.type_subdivision, shared.code("subdivisionType", section.kind, KINDS)
    yield KG.jurisdiction, shared.iri
    yield DCTERMS.title, section.title or None
    yield KG.sectionNumber, section.number or None
    yield KG.inForceStatus, section.status or None
    for predicate, place in ((KG.sourceLines, section.lines), (SCHEMA.pagination, section.pages)):
        if place is not None:
            first, last = place
            yield predicate, f"{first}-{last}" if last > first else str(first)
    for note in section.history:
        yield KG.historyNote, note
    for path in [each.path for each in section.citations if each.path]:
        # The address of a section in the markup of its source: ``§8-231.01|(a)``, ``8|2A|I``.
        cited = (path[1:].partition("|")[0] if path.startswith("§") else path).strip()
        yield ELI.cites, shared.section(cited) if cited not in ("", section.key) else None


def _list_parts(section: Section, iri: NamedNode) -> Iterator[tuple[NamedNode, Sequence[Property]]]:
    """Yield the subsections, tables and notes of a section, each with its properties."""

    def span(kind: NamedNode, part: Subsection | Table) -> Sequence[Property]:
        return (RDF.type, kind), (DCTERMS.isPartOf, iri), (KG.start, part.start), (KG.end, part.end)

    for each in section.subsections:
        label = "".join(f"({part.partition('~')[0]})" for part in each.path)
        yield (
            mint_subsection(iri, each.path),
            [*span(KG.Subsection, each), (KG.label, label), (DCTERMS.title, each.heading or None)],
        )
    for number, table in enumerate(section.tables):
        cells = json.dumps(
            [[_cell(cell) for cell in row] for row in table.rows], ensure_ascii=False, separators=(",", ":")
        )
        said = (KG.headerRows, table.header_rows), (DCTERMS.title, table.caption or None), (KG.cells, cells)
        yield mint_part(iri, "table", number), [*span(KG.CodeTable, table), *said]
    for number, note in enumerate(each for each in section.notes if each.kind != HISTORY):
        yield (
            mint_part(iri, "note", number),
            [
                (RDF.type, KG.CodeNote),
                (DCTERMS.isPartOf, iri),
                (KG.noteKind, note.kind),
                (KG.noteText, note.text),
                (KG.effective, note.effective or None),
                *((KG.rawCitation, each.document) for each in note.citations if each.document),
            ],
        )


def _cell(cell: Cell) -> str | dict[str, Any]:
    more = {
        "colspan": cell.colspan > 1 and cell.colspan,
        "rowspan": cell.rowspan > 1 and cell.rowspan,
        "header": cell.header,
        "raised": [[start - cell.start, end - cell.start] for start, end in cell.superscripts],
    }
    given = {name: value for name, value in more.items() if value}
    return {"text": cell.text, **given} if given else cell.text


def build_statements_record(
    name: str, entries: Sequence[Entry], shared: Authorities, origin: Origin, keys: Collection[str] = ()
) -> SourceGraph:
    """Build the record of the permissions, standards and definitions that a source lists.

    `keys` are those of all sections. A reference to any other section gives a warning.
    """
    key = (shared.key, "table", name)
    rules, known = Rules(mint("graph", "src", DOMAIN, *key), shared), frozenset(keys)
    warnings: list[str] = []

    def section(reference: str | None) -> NamedNode | None:
        if reference is None:
            return None
        number = reference.strip().removeprefix("§").strip()
        if known and number not in known:
            entry = name_or_quote(name)
            warnings.append(f"{entry}: An entry refers to section {quoted(number)}, which does not exist.")
        return shared.section(number) if number else None

    for entry in entries:
        try:
            rules.state(entry, section)
        except RecordError as error:
            warnings.append(f"{name_or_quote(name)}: {quoted(entry)} is skipped: {error}")
    return SourceGraph(
        DOMAIN,
        key,
        rules.graph,
        rules.quads,
        (Origin(origin.snapshot),),
        sha256(repr((shared.name, entries))),
        shared.graphs,
        tuple(dict.fromkeys(warnings)),
        (origin,),
    )
