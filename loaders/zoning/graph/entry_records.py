"""What agents send of a code, entry by entry: sections, permissions, standards and definitions, as records.

A section is a record. So is all that one sending says of a use in a district, of a kind of standard in a district, or
of a term, each by the section that it refers to: what is sent of it later takes its place, and nothing else's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kg.errors import InvalidInputError, RecordError
from loaders.model import Origin, SourceGraph
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.graph.section_records import section_record, statements_record
from loaders.zoning.readers.code_model import DOMAIN, Code, Definition, DimensionalStandard, Section, UsePermission
from loaders.zoning.readers.json_entries import definition_of, permission_of, section_beside, standard_of

Kind = Literal["section", "permission", "standard", "definition"]

FIELDS: Final[Mapping[Kind, Sequence[str]]] = {
    "section": ("section_id", "title", "level", "raw_content", "parent_id", "order"),
    "permission": ("district", "use", "permission", "conditions", "review_section", "section_ref"),
    "standard": ("district", "standard_type", "value", "unit", "section_ref"),
    "definition": ("term", "definition_text", "section_ref"),
}

_Said = UsePermission | DimensionalStandard | Definition


@dataclass(frozen=True, slots=True)
class Received:
    """What entries became: records, each with the numbers of its entries, from 1, and why the others are none."""

    records: Sequence[tuple[SourceGraph, Sequence[int]]]
    sections: Mapping[str, Section]
    """Those that came, by key."""
    refused: Mapping[int, str]
    warnings: Sequence[str]


@dataclass(slots=True)
class _Receiving:
    shared: Authorities
    origin: Origin
    stored: Mapping[str, Section]
    refused: dict[int, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    sections: dict[str, Section] = field(default_factory=dict)

    def section(self, entry: Mapping[str, Any]) -> SourceGraph:
        section = section_beside(entry, {**self.stored, **self.sections}, self.warnings)
        shallow = sorted(
            key for key, each in self.stored.items() if each.parent == section.key and each.level <= section.level
        )
        if shallow:
            self.warnings.append(
                f"section {section.key} has level {section.level}, and so have parts of it, or a higher one: "
                f"{', '.join(shallow[:5])}; send those again"
            )
        self.sections[section.key] = section
        return section_record(DOMAIN, section, self.shared.fresh(), self.origin)

    def statements(self, kind: Kind, said: Sequence[_Said]) -> SourceGraph:
        code = Code(
            self.shared.name,
            None,
            (),
            permissions=tuple(each for each in said if isinstance(each, UsePermission)),
            standards=tuple(each for each in said if isinstance(each, DimensionalStandard)),
            definitions=tuple(each for each in said if isinstance(each, Definition)),
        )
        name = "|".join((kind, *_subject(said[0])))
        record = statements_record(DOMAIN, name, code, self.shared.fresh(), self.origin, list(self.stored))
        if record is None or not record.quads:
            raise RecordError("; ".join(record.warnings) if record is not None else "it says nothing")
        return record


def received(
    kind: Kind, entries: Sequence[Any], shared: Authorities, origin: Origin, stored: Mapping[str, Section]
) -> Received:
    """Return what `entries` of one kind become, in a code with the sections `stored`. None is lost for another."""
    work = _Receiving(shared, origin, stored)
    records: list[tuple[SourceGraph, Sequence[int]]] = []
    groups: dict[tuple[str, ...], list[tuple[int, _Said]]] = defaultdict(list)
    for number, entry in enumerate(entries, 1):
        try:
            if not isinstance(entry, dict):
                raise RecordError(f"it is no object with {', '.join(FIELDS[kind])}")
            if unknown := sorted(map(str, entry.keys() - set(FIELDS[kind]))):
                known = ", ".join(FIELDS[kind])
                work.warnings.append(f"entry {number}: {', '.join(unknown)[:200]} means nothing here; fields: {known}")
            if kind == "section":
                records.append((work.section(entry), (number,)))
            else:
                said = _READ[kind](entry)
                groups[_subject(said)].append((number, said))
        except (RecordError, InvalidInputError) as error:
            work.refused[number] = str(error)
    for group in groups.values():
        numbers = [number for number, _ in group]
        try:
            records.append((work.statements(kind, [said for _, said in group]), numbers))
        except (RecordError, InvalidInputError) as error:
            work.refused.update(dict.fromkeys(numbers, str(error)))
    return Received(records, work.sections, work.refused, work.warnings)


_READ: Final[Mapping[Kind, Callable[[Mapping[str, Any]], _Said]]] = {
    "permission": permission_of,
    "standard": standard_of,
    "definition": definition_of,
}


def _subject(said: _Said) -> tuple[str, ...]:
    """Return what a statement is about; a later one about the same takes its place."""
    where: tuple[str, ...]
    match said:
        case UsePermission():
            where, about = (said.district,), said.use
        case DimensionalStandard():
            where, about = (said.district,), said.standard_type
        case Definition():
            where, about = (), said.term
    return *where, " ".join(about.split()).casefold(), (said.section_ref or "").strip()
