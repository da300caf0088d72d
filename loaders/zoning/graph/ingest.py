"""Ingestion of entries that an agent sends: they are validated, committed with provenance and indexed like file
records. `commit_readings` commits what agents and models read in sections.

The payload counts as the source: its hash is recorded with sender and time. An invalid entry is reported to the sender,
who can correct it, so it does not go to the quarantine.

An entry with quotations is a claim of the sender about a section, and part of its reading (`readings`). Every other
entry counts as the statement of a source.

A section is one record. Everything in one request about a use in a district, a type of standard in a district, or a
term, per section that it refers to, is another. A later request about the same subject replaces that record only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Quad

from kg.derivations.with_record import WithRecord
from kg.errors import InvalidInputError, RecordError
from kg.ingestion import Outcome
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import permissions
from kg.provenance.findings import commit_reviewed
from kg.provenance.load_records import Agent, RecordOrigin, Run, load_sources, timestamp
from kg.provenance.promotion import build_load_patch
from kg.shacl.report import Violation
from kg.store.protocol import Commit
from kg.text import quoted
from kg.vocabulary import KG, PROV, mint, sha256
from loaders.model import Origin, Rejection, Snapshot, SourceGraph, graph_name
from loaders.pipeline import Loader, Loading
from loaders.readers.locations import Located
from loaders.with_record import ZONING
from loaders.zoning.graph.authorities import Authorities, merge
from loaders.zoning.graph.derive import CodesRead, Findings, load_name
from loaders.zoning.graph.readings import (
    METHOD,
    PARSERS,
    SUBJECTS,
    Checks,
    Reading,
    build_reading,
    get_reader,
    get_reading_graph,
    load_readings,
)
from loaders.zoning.graph.rule_quads import Entry, RuleKind
from loaders.zoning.graph.section_records import build_section_record, build_statements_record
from loaders.zoning.graph.stored_codes import Code, Codes
from loaders.zoning.readers.code_model import DOMAIN, VERSION, Section
from loaders.zoning.readers.json_entries import parse_section

Kind = RuleKind | Literal["section"]

_ANY: Final = {"section_ref": 500, "quotations": 100_000}
FIELDS: Final[Mapping[Kind, Mapping[str, int]]] = {
    "section": dict.fromkeys(("section_id", "title", "level", "raw_content", "parent_id", "order"), 20_000_000),
    "permission": {
        "district": 200, "use": 300, "permission": 500, "conditions": 5_000, "review_section": 500, **_ANY,
    },
    "standard": {"district": 200, "standard_type": 200, "value": 2_000, "unit": 200, **_ANY},
    "definition": {"term": 300, "definition_text": 100_000, **_ANY},
}  # fmt: skip
"""The fields of entries, with their maximum characters. Longer values could not be passed to the query tools."""


@dataclass(slots=True)
class _Entries:
    """Parsed entries of one kind, for a code with the sections `stored`. A bad entry does not affect the others."""

    kind: Kind
    shared: Authorities
    origin: Origin
    sent_by: str
    stored: Mapping[str, Section]
    records: list[tuple[SourceGraph, Sequence[int]]] = field(default_factory=list)
    """The records, each with its entry numbers, from 1."""
    sections: dict[str, Section] = field(default_factory=dict)
    """The sections among the entries, by key."""
    quoted: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Entries with quotations, by number."""
    refused: dict[int, str] = field(default_factory=dict)
    """The reasons of the rejected entries."""
    warnings: list[str] = field(default_factory=list)

    def take(self, entries: Sequence[Any]) -> None:
        """Parse entries and build their records."""
        groups: dict[tuple[str, ...], dict[int, Entry]] = defaultdict(dict)
        fields = FIELDS[self.kind]
        for number, entry in enumerate(entries, 1):
            try:
                if not isinstance(entry, dict):
                    raise RecordError(f"Not an object with {', '.join(fields)}.")
                if unknown := sorted(map(str, entry.keys() - fields.keys())):
                    names = ", ".join(map(quoted, unknown[:5]))
                    self.warnings.append(f"Entry {number}: Unknown field {names}. Available: {', '.join(fields)}.")
                for name, most in fields.items():
                    values = entry.get(name)
                    for value in values if isinstance(values, list) else [values]:
                        if isinstance(value, str) and len(value) > most:
                            raise RecordError(f"Field {name} has {len(value):,} characters. The limit is {most:,}.")
                if self.kind == "section":
                    self.records.append((self._build_section(entry), (number,)))
                elif entry.get("quotations") is not None:
                    self.quoted[number] = entry
                else:
                    parsed = PARSERS[self.kind](entry)
                    groups[_subject(self.kind, parsed)][number] = parsed
            except (RecordError, InvalidInputError) as error:
                self.refused[number] = str(error)
        for subject, group in groups.items():
            try:
                self.records.append((self._build_statements(subject, tuple(group.values())), list(group)))
            except (RecordError, InvalidInputError) as error:
                self.refused.update(dict.fromkeys(group, str(error)))

    def _build_section(self, entry: Mapping[str, Any]) -> SourceGraph:
        section = parse_section(entry, {**self.stored, **self.sections}, self.warnings)
        self.sections[section.key] = section
        return build_section_record(section, self.shared.copy(), self.origin)

    def _build_statements(self, subject: Sequence[str], entries: Sequence[Entry]) -> SourceGraph:
        name = "|".join((self.kind, *subject))
        record = build_statements_record(name, entries, self.shared.copy(), self.origin, self.stored)
        if not record.quads:
            raise RecordError("; ".join(record.warnings))
        return record

    def commit_claims(self, kg: KnowledgeGraph, tool: str) -> dict[int, NamedNode]:
        """Check entries with quotations and add those that pass to the sender's readings. Returns their graphs."""
        name, kind, now = self.shared.key, self.kind, dict[int, tuple[str, str]]()
        if kind == "section" or not self.quoted:
            return {}
        reader = get_reader(self.sent_by)
        checks, stored = Checks.load(kg, name), load_readings(kg.store, name)
        readings: dict[tuple[str, str], Reading | None] = {}
        for number, entry in self.quoted.items():
            try:
                section = _find_section(checks.code, entry.get("section_ref"))
                claim = checks.check(kind, entry, section)
            except RecordError as error:
                self.refused[number] = str(error)
                continue
            own = (each for each in stored.get(section.key, ()) if each.reader == reader and each.is_of(section))
            now[number] = place = section.key, reader
            before = readings.get(place) or next(own, Reading(reader, sha256(section.text), ()))
            readings[place] = before.add([claim])
        run = Run(Agent("loaders.zoning.readings", VERSION), {"tool": tool, "reader": reader})
        commit_readings(kg, name, readings, run, nullcontext)
        return {number: get_reading_graph(name, *place) for number, place in now.items()}


def _subject(kind: RuleKind, entry: Entry) -> tuple[str, ...]:
    """The subject of an entry. A later entry with the same subject replaces it."""
    *where, about = (str(getattr(entry, name)) for name in SUBJECTS[kind])
    return *where, " ".join(about.split()).casefold(), (entry.section_ref or "").strip()


def ingest(
    kg: KnowledgeGraph, *, tool: str, municipality: str, state: str, kind: Kind, entries: Sequence[Any], sent_by: str
) -> dict[str, Any]:
    """Ingest `entries` of one kind into the code of a municipality and report the outcome of each, by number.

    Raises InvalidInputError for an invalid municipality or state.
    """
    try:
        shared = Authorities(municipality, state)
    except RecordError as error:
        raise InvalidInputError(str(error)) from error
    if (known := load_name(kg.store, shared.iri)) is not None:  # the sender does not rename it
        shared = Authorities(known, state)
    payload = {"municipality": municipality, "state": state, kind: list(entries)}
    digest = sha256(json.dumps(payload, ensure_ascii=True, sort_keys=True, default=str))
    # One location per section, so that a section sent again replaces its earlier version.
    first = entries[0] if kind == "section" and entries and isinstance(entries[0], dict) else {}
    place = str(first.get("section_id") or digest[:24])
    origin = Origin(Snapshot(digest, f"{tool} {shared.key} {place}", sent_by=sent_by))
    codes = Codes(kg.memory)
    found = _Entries(kind, shared, origin, sent_by, codes.load(kg.store, shared.key).sections)
    found.take(entries)
    read_in = found.commit_claims(kg, tool)
    outcomes = {number: {"outcome": "stored", "graph": graph.value} for number, graph in read_in.items()}
    work = _EntryLoad(kg, tool, shared, found, codes)
    before = load_sources(kg.store, [graph_name(record) for record, _ in found.records])
    report = work.run(prune=False)
    outcomes |= {number: {"outcome": "rejected", "reason": reason} for number, reason in found.refused.items()}
    for record, numbers in found.records:
        graph = graph_name(record)
        outcome = work.outcomes[graph]
        outcomes |= {number: {**outcome, "graph": graph.value} for number in numbers}
        read = sorted(name for name in before.get(graph, {}).values() if not name.startswith(tool))
        if read and outcome["outcome"] == "stored":
            files = ", ".join(map(quoted, read))
            report.warnings.insert(0, f"{quoted(graph.value)}: It replaces the version that was read from {files}.")
    return {
        "run": report.run,
        "municipality": shared.name,
        "municipality_iri": shared.iri.value,
        "is_new": known is None,
        "fetched_at": work.prov_run.started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "entries": [{"entry": number, **outcomes[number]} for number in sorted(outcomes)],
        "sections": {key: shared.section(key).value for key in found.sections},
        "warnings": [*found.warnings, *report.warnings],
    }


def _find_section(code: Code, reference: object) -> Section:
    """Find the section that an entry is about. Raises RecordError."""
    wanted = reference.strip().removeprefix("§").strip() if isinstance(reference, str) else ""
    same = [each for each in code.sections.values() if each.number == wanted]
    section = code.sections.get(wanted) or (same[0] if len(same) == 1 and wanted else None)
    if section is None or not section.text:
        raise RecordError(f"section_ref is {quoted(wanted)}, which is not a section with text. Quotations need one.")
    return section


class _EntryLoad(Loading):
    """A load of entries sent by an agent. `outcomes` are those of its records, by graph."""

    def __init__(self, kg: KnowledgeGraph, tool: str, shared: Authorities, found: _Entries, codes: Codes) -> None:
        self.findings: Final = Findings(CodesRead({shared.key: found.sections}, {shared.key: shared}), codes)
        records = [record for record, _ in found.records]
        super().__init__(
            kg,
            Loader(
                DOMAIN,
                VERSION,
                lambda _: (each for each in records),
                derivations=[WithRecord(self.findings.derive, ZONING)],
                merge=merge,
            ),
            Located((), ()),
            None,
            config={"tool": tool},
            graphs=[graph_name(record) for record in records],
        )
        self.outcomes: dict[NamedNode, dict[str, str]] = {}
        self.empty: Final = [graph_name(each).value for each in records if found.sections and not each.units]
        """The sections without text."""

    def commit_graphs(self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]) -> Commit:
        """Commit, and cache the resulting code."""
        commit = super().commit_graphs(replace, records)
        self.findings.cache_codes(commit)
        return commit

    def repair_index(self) -> None:
        """Remove sections without text from the index. The other entries are indexed already.

        Other gaps of the index are left to the server's own repair, which can take long.
        """
        if self.empty:
            self.kg.search.remove(self.empty)

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Report a rejection to the sender, without quarantine."""
        self.count("rejected", rejection.key or (), rejection.reason)

    def count(self, outcome: Outcome, key: Sequence[str], reason: str = "") -> None:
        """Keep the outcome of a record."""
        said = {"outcome": "stored" if outcome == "loaded" else outcome} | ({"reason": reason} if reason else {})
        self.outcomes[mint("graph", "src", DOMAIN, *key)] = said


Exclusive = Callable[[], AbstractContextManager[None]]
"""Opens a context in which no load runs."""


def commit_readings(
    kg: KnowledgeGraph,
    name: str,
    readings: Mapping[tuple[str, str], Reading | None],
    run: Run,
    exclusive: Exclusive,
) -> None:
    """Commit readings by section and reader, None to remove one, with the findings that follow.

    A reading of a text that has changed is left out.
    """
    if not readings:
        return
    store = kg.store
    with exclusive():
        sections, stored = Codes(kg.memory).load(store, name).sections, load_readings(store, name)
        several: dict[str, Sequence[Reading]] = {}
        replace: dict[NamedNode, Sequence[Quad]] = {}
        origins: dict[NamedNode, RecordOrigin] = {}
        now = timestamp(datetime.now(UTC))
        for (key, reader), reading in readings.items():
            if key not in sections or (reading is not None and not reading.is_of(sections[key])):
                continue
            graph = get_reading_graph(name, key, reader)
            several[key] = [each for each in several.get(key, stored.get(key, ())) if each.reader != reader]
            replace[graph] = ()
            if reading is not None:
                several[key] = [*several[key], reading]
                replace[graph] = build_reading(name, key, reading)
                said = (KG.method, Text(METHOD + reader)), (PROV.generatedAtTime, now)
                source = mint("graph", "src", DOMAIN, name, key)
                origins[graph] = RecordOrigin("", (), (source,), said=said, author=permissions.get_author())
        findings = Findings(CodesRead(), Codes(kg.memory))
        for graph, (quads, origin) in findings.derive_again(store, name, several).items():
            replace[graph], origins[graph] = quads, origin
        commit_reviewed(store, replace, build_load_patch(run, store, replace, origins))
