"""Entries that an agent sends, taken in like the records of a file: checked, committed with their provenance, indexed.

The payload counts as the source: its hash is recorded with who sent it and when. What breaks the shapes is kept out and
told to whoever sent it, who has it and can send it again; so it does not go to the quarantine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from pyoxigraph import NamedNode, Quad

from kg.errors import InvalidInputError, RecordError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import RecordOrigin
from kg.shacl.report import Violation
from kg.store.protocol import Commit
from kg.vocabulary import mint, sha256
from loaders.model import Origin, Rejection, Snapshot, graph_of
from loaders.pipeline import Loader, Loading, LoadReport
from loaders.readers.locations import Located
from loaders.zoning.graph.authorities import Authorities, merge
from loaders.zoning.graph.derive import CodesRead, Findings
from loaders.zoning.graph.entry_records import Kind, Received, received
from loaders.zoning.graph.stored_codes import Codes
from loaders.zoning.readers.code_model import DOMAIN, VERSION

STORED: Final = "stored"
UNCHANGED: Final = "unchanged"
REJECTED: Final = "rejected"


def receive(
    kg: KnowledgeGraph, *, tool: str, municipality: str, state: str, kind: Kind, entries: Sequence[Any], sent_by: str
) -> dict[str, Any]:
    """Take `entries` of one kind into the code of a municipality, and say of each, by number, what became of it.

    Raises InvalidInputError for a municipality or state that there cannot be.
    """
    try:
        shared = Authorities(municipality, state)
    except RecordError as error:
        raise InvalidInputError(str(error)) from error
    payload = {"municipality": municipality, "state": state, kind: list(entries)}
    digest = sha256(json.dumps(payload, ensure_ascii=True, sort_keys=True, default=str))
    # One place for each section, so that what was sent of it before is known to be replaced.
    first = entries[0] if kind == "section" and entries and isinstance(entries[0], dict) else {}
    place = str(first.get("section_id") or digest[:24])
    origin = Origin(Snapshot(digest, f"{tool} {shared.key} {place}", sent_by=sent_by))
    codes = Codes(kg.memory)
    found = received(kind, entries, shared, origin, codes.stored(kg.store, shared.key).sections)
    work = _Receiving(kg, tool, shared, found, codes)
    report = work.run()
    outcomes = {number: {"outcome": REJECTED, "reason": reason} for number, reason in found.refused.items()}
    for record, numbers in found.records:
        graph = graph_of(record)
        outcomes |= {number: {**work.outcome(graph), "graph": graph.value} for number in numbers}
    return {
        "run": report.run,
        "municipality": shared.iri.value,
        "fetched_at": work.prov_run.started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "entries": [{"number": number, **outcomes[number]} for number in sorted(outcomes)],
        "sections": {key: shared.section(key).value for key in found.sections},
        "warnings": [*found.warnings, *report.warnings],
        "pending_vectors": report.pending_vectors,
    }


class _Receiving(Loading):
    """A load of what was sent."""

    def __init__(self, kg: KnowledgeGraph, tool: str, shared: Authorities, found: Received, codes: Codes) -> None:
        read = CodesRead({shared.key: dict(found.sections)}, {shared.key: shared})
        self.findings: Final = Findings(read, codes)
        super().__init__(
            kg,
            Loader(DOMAIN, VERSION, lambda _: iter(()), derive=self.findings.derive, merge=merge),
            Located((), ()),
            None,
            config={"tool": tool},
            graphs=[graph_of(record) for record, _ in found.records],
        )
        self.found: Final = found
        self.texts: Final = {graph_of(record) for record, _ in found.records if record.units}
        self.unchanged: set[NamedNode] = set()
        self.emptied: list[str] = []
        self.reasons: dict[NamedNode, str] = {}

    def run(self, prune: bool = False) -> LoadReport:
        """Take all records; one that is kept out stops none."""
        with self.indexer:
            for record, _ in self.found.records:
                graph = graph_of(record)
                if self.known.get(graph) == (record.source_sha256, self.loader.version):
                    self.unchanged.add(graph)
                self.take(record)
            self.commit()
            self.await_indexing()
        return self.finish()

    def change(self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]) -> Commit:
        """Commit, and keep the code as it is then."""
        commit = super().change(replace, records)
        self.findings.settled(commit)
        own = {graph_of(record) for record, _ in self.found.records}
        self.emptied += [change.graph.value for change in commit.changes if change.graph in own - self.texts]
        return commit

    def align(self) -> None:
        """Take out of the index what has no text any more; all else that was sent is in it.

        Whatever else the index lacks is for whoever serves it, and takes as long as there is much of it.
        """
        if self.emptied:
            self.kg.search.remove(self.emptied)

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Keep it out, and remember why."""
        self.report.rejections.append(rejection)
        if rejection.key is not None:
            self.reasons[mint("graph", "src", self.loader.domain, *rejection.key)] = rejection.reason

    def outcome(self, graph: NamedNode) -> dict[str, str]:
        """Return what became of a record."""
        if (reason := self.reasons.get(graph)) is not None:
            return {"outcome": REJECTED, "reason": reason}
        return {"outcome": UNCHANGED if graph in self.unchanged else STORED}
