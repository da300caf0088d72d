"""A section of a code as one record, and the lists of a source next to its sections as another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.text import quoted
from kg.vocabulary import DCTERMS, ELI, KG, RDF, SCHEMA, mint, mint_part, mint_subsection, sha256
from loaders.model import Origin, Property, SourceGraph, TextUnit
from loaders.readers.headings import KINDS
from loaders.zoning.extraction.dimensions import STOREY, type_in_unit
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.graph.rule_quads import Rules, level_of, quantity_of, type_and_bound, unit
from loaders.zoning.readers.code_model import HISTORY, Cell, Code, Section, Table

_KINDS: Final = frozenset(KINDS)


def build_section_record(domain: str, section: Section, shared: Authorities, origin: Origin) -> SourceGraph:
    """Build the record of a section. `shared` must not be shared with other records."""
    writer = _Writer(domain, section, shared)
    writer.write()
    return SourceGraph(
        domain,
        (shared.key, section.key),
        writer.iri,
        writer.quads,
        (Origin(origin.snapshot),),
        # Without its place in the file: a line added above the section does not change the section.
        sha256(repr((shared.name, replace(section, lines=None, pages=None)))),
        shared.graphs,
        context=(origin,),
        units=writer.units,
    )


class _Writer:
    def __init__(self, domain: str, section: Section, shared: Authorities) -> None:
        self.section: Final = section
        self.shared: Final = shared
        self.graph: Final = mint("graph", "src", domain, shared.key, section.key)
        self.iri: Final = shared.section(section.key)
        self.quads: list[Quad] = []
        self.units: list[TextUnit] = []

    def write(self) -> None:
        section, iri = self.section, self.iri
        parent = None if section.parent is None else self.shared.section(section.parent)
        described = self._described()
        if section.text:
            self.units.append(TextUnit(iri, KG.CodeSection, section.order, section.text, parent))
        else:
            self.say(iri, RDF.type, KG.CodeSection)
            self.say(iri, SCHEMA.position, section.order)
            if parent is not None:
                self.say(iri, DCTERMS.isPartOf, parent)
        self.quads += [Quad(iri, predicate, value, self.graph) for predicate, value in described]
        for each in section.subsections:
            node = mint_subsection(iri, each.path)
            label = "".join(f"({part.partition('~')[0]})" for part in each.path)
            self._part(node, KG.Subsection, each.start, each.end)
            self.say(node, KG.label, label)
            if each.heading:
                self.say(node, DCTERMS.title, each.heading)
        for number, table in enumerate(section.tables):
            self._table(mint_part(iri, "table", number), table)
        self._notes()

    def _described(self) -> list[Property]:
        section = self.section
        said: list[Property] = [
            (KG.level, Literal(section.level)),
            (ELI.type_subdivision, self.shared.code("subdivisionType", section.kind, _KINDS)),
            (KG.jurisdiction, self.shared.iri),
        ]
        if section.title:
            said.append((DCTERMS.title, Literal(section.title)))
        if section.number:
            said.append((KG.sectionNumber, Literal(section.number)))
        if section.status:
            said.append((KG.inForceStatus, Literal(section.status)))
        for predicate, place in ((KG.sourceLines, section.lines), (SCHEMA.pagination, section.pages)):
            if place is not None:
                first, last = place
                said.append((predicate, Literal(f"{first}-{last}" if last > first else str(first))))
        said += [(KG.historyNote, Literal(note)) for note in dict.fromkeys(section.history)]
        cited = {cited: None for each in section.citations if (cited := self._cited(each.path)) is not None}
        return said + [(ELI.cites, each) for each in cited]

    def _cited(self, path: str | None) -> NamedNode | None:
        """The section at an address in the source's markup: ``§8-231.01|(a)``, ``8|2A|I``."""
        if path is None:
            return None
        key = path[1:].partition("|")[0] if path.startswith("§") else path
        return self.shared.section(key.strip()) if key.strip() and key.strip() != self.section.key else None

    def _part(self, node: NamedNode, kind: NamedNode, start: int, end: int) -> None:
        self.say(node, RDF.type, kind)
        self.say(node, DCTERMS.isPartOf, self.iri)
        self.say(node, KG.start, start)
        self.say(node, KG.end, end)

    def _table(self, node: NamedNode, table: Table) -> None:
        self._part(node, KG.CodeTable, table.start, table.end)
        self.say(node, KG.headerRows, table.header_rows)
        if table.caption:
            self.say(node, DCTERMS.title, table.caption)
        rows = [[_cell(cell) for cell in row] for row in table.rows]
        self.say(node, KG.cells, json.dumps(rows, ensure_ascii=False, separators=(",", ":")))

    def _notes(self) -> None:
        for number, note in enumerate(each for each in self.section.notes if each.kind != HISTORY):
            node = mint_part(self.iri, "note", number)
            self.say(node, RDF.type, KG.CodeNote)
            self.say(node, DCTERMS.isPartOf, self.iri)
            self.say(node, KG.noteKind, note.kind)
            self.say(node, KG.noteText, note.text)
            if note.effective:
                self.say(node, KG.effective, note.effective)
            for cited in dict.fromkeys(each.document for each in note.citations if each.document):
                self.say(node, KG.rawCitation, cited)

    def say(self, subject: NamedNode, predicate: NamedNode, value: NamedNode | str | int) -> None:
        term = value if isinstance(value, NamedNode) else Literal(value)
        self.quads.append(Quad(subject, predicate, term, self.graph))


def _cell(cell: Cell) -> str | dict[str, Any]:
    more: dict[str, Any] = {}
    if cell.colspan > 1:
        more["colspan"] = cell.colspan
    if cell.rowspan > 1:
        more["rowspan"] = cell.rowspan
    if cell.header:
        more["header"] = True
    if cell.superscripts:
        more["raised"] = [[start - cell.start, end - cell.start] for start, end in cell.superscripts]
    return {"text": cell.text, **more} if more else cell.text


def build_statements_record(
    domain: str, name: str, code: Code, shared: Authorities, origin: Origin, keys: Sequence[str] = ()
) -> SourceGraph | None:
    """Build the record of the permissions, standards and definitions that `code` lists. None if it lists none.

    `keys` are those of all sections. A reference to any other section gives a warning.
    """
    if not (code.permissions or code.standards or code.definitions):
        return None
    key = (shared.key, "table", name)
    rules, known = Rules(mint("graph", "src", domain, *key), shared), frozenset(keys)
    warnings: list[str] = []

    def section(reference: str | None) -> NamedNode | None:
        if reference is None:
            return None
        number = reference.strip().removeprefix("§").strip()
        if known and number not in known:
            warnings.append(f"{name}: An entry refers to section {quoted(number)}, which does not exist.")
        return shared.section(number) if number else None

    for permission in code.permissions:
        try:
            rules.permission(
                shared.district(permission.district),
                shared.land_use(permission.use),
                permission.permission,
                level_of(permission.permission),
                conditions=permission.conditions,
                review=section(permission.review_section),
                section=section(permission.section_ref),
            )
        except RecordError as error:
            warnings.append(f"{name}: {quoted(permission)} is skipped: {error}")
    for standard in code.standards:
        try:
            kind, bound = type_and_bound(standard.standard_type)
            value, measure = quantity_of(standard.value, standard.unit)
            kind = type_in_unit(kind, STOREY) if measure == unit(STOREY) else kind
            rules.standard(
                shared.district(standard.district),
                kind,
                standard.value,
                bound=bound,
                value=value,
                measure=measure,
                raw_unit=standard.unit or None,
                section=section(standard.section_ref),
                column=standard.standard_type,
            )
        except RecordError as error:
            warnings.append(f"{name}: {quoted(standard)} is skipped: {error}")
    for definition in code.definitions:
        rules.definition(definition.term, definition.definition_text, section=section(definition.section_ref))
    digest = sha256(repr((shared.name, code.permissions, code.standards, code.definitions)))
    return SourceGraph(
        domain,
        key,
        rules.graph,
        rules.quads,
        (Origin(origin.snapshot),),
        digest,
        shared.graphs,
        tuple(dict.fromkeys(warnings)),
        (origin,),
    )
