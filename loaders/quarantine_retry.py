"""Retrying records in quarantine, from their copied rows or from a person's correction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final
from urllib.parse import unquote

from pyoxigraph import NamedNode, Quad

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import load_records
from kg.provenance.load_records import parse_rows
from kg.search.index_sync import Progress
from kg.settings import settings
from kg.shacl.report import Violation
from kg.vocabulary import SOURCED, mint
from loaders.load_report import LoadReport
from loaders.model import Rejection, Snapshot, SourceDocument, SourceGraph, graph_name, to_quads
from loaders.pipeline import Loader, Loading, Options
from loaders.quarantine import Entry, Quarantine, name_sources, resolve_ids, short_ids
from loaders.readers.locations import File, Located, find_files
from loaders.sources import build_loader

LOADED: Final = "loaded"
QUARANTINED: Final = "quarantined"


def retry(
    kg: KnowledgeGraph,
    ids: Sequence[str] | None,
    *,
    correction: str | None = None,
    by: str = "",
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Map and validate records again, all of them if `ids` is None, and report the outcome of each.

    Valid records are committed as in a load and leave the quarantine. The others stay, with their current errors. A
    record is read from its copied rows, and its provenance names the original file, hash and rows, even if that file
    has changed since. `correction` is a file that replaces one record: its provenance names that file, the person who
    sent it (`by`) and the rows that it corrects.

    Raises NotFoundError for an unknown id, SourceError for an unreadable correction, and InvalidInputError for a
    correction that does not contain exactly one record.
    """
    entries, damaged = Quarantine(kg.settings.directory.quarantine).entries()
    by_name = {entry.name: entry for entry in entries}
    names = list(by_name) if ids is None else resolve_ids(ids, {name: entry.record for name, entry in by_name.items()})
    if correction is not None and len(names) != 1:
        raise InvalidInputError(f"A correction replaces one record, but {len(names)} are selected.")
    if correction is not None and not by:
        raise InvalidInputError("A correction needs the name of the person who sends it.")
    shorts = short_ids(by_name)
    reports, outcomes = [], dict.fromkeys(names, "")
    kinds = {name: (by_name[name].domain, tuple(sorted(_options(by_name[name]).items()))) for name in names}
    for kind in dict.fromkeys(kinds.values()):
        domain, options = kind
        chosen = [by_name[name] for name in names if kinds[name] == kind]
        try:
            loader = build_loader(domain, kg.settings, dict(options))
        except InvalidInputError as error:
            outcomes |= {each.name: str(error) for each in chosen}
            continue
        retrying = _Retry(kg, loader, chosen, _find_correction(kg, correction, chosen[0], by), on_progress)
        reports.append(retrying.run().to_dict())
        outcomes |= retrying.reasons
    return {
        "retried": len(names),
        "loaded": sum(not reason for reason in outcomes.values()),
        "quarantined": sum(bool(reason) for reason in outcomes.values()),
        "runs": [report["run"] for report in reports if report["run"] is not None],
        "pending_vectors": kg.search.status().pending_vectors,
        "records": [
            {
                "id": shorts[name],
                "record": by_name[name].record,
                "outcome": QUARANTINED if reason else LOADED,
                "reason": reason or None,
            }
            for name, reason in outcomes.items()
        ],
        "damaged": damaged,
    }


def drop(kg: KnowledgeGraph, ids: Sequence[str] | None) -> dict[str, Any]:
    """Remove records from the quarantine, all of them if `ids` is None, and report which. Damaged ones need their id.

    Raises NotFoundError for an unknown id, StoreError if the folder cannot be written.
    """
    entries, damaged = Quarantine(kg.settings.directory.quarantine).entries()
    records = {entry.name: entry.record for entry in entries}
    unreadable = {file.removesuffix(".json"): "damaged" for file in damaged}
    shorts = short_ids(records | unreadable)
    names = list(records) if ids is None else resolve_ids(ids, records | unreadable)
    for name in names:
        Quarantine(kg.settings.directory.quarantine, name.rpartition("-")[0]).remove(name)
    return {
        "dropped": [{"id": shorts[name], "record": records.get(name)} for name in names],
        "damaged": {file: fault for file, fault in damaged.items() if file.removesuffix(".json") not in names},
    }


def list_records(kg: KnowledgeGraph, limit: int) -> dict[str, Any]:
    """List the `limit` records that were rejected last, with their reasons, and count all."""
    quarantine = Quarantine(kg.settings.directory.quarantine)
    found, damaged, total = quarantine.newest(limit)
    shorts = short_ids([entry.name for entry in found])
    return {
        "total": total,
        "damaged": damaged,
        "records": [
            {
                "id": shorts[entry.name],
                "domain": entry.domain,
                "record": entry.record,
                "reason": entry.reason,
                "rejected_at": entry.rejected_at,
                "violations": entry.violations,
                "places": [{"file": place.file, "rows": place.rows} for place in entry.places],
            }
            for entry in map(name_sources, found)
        ],
    }


def map_record(quarantine: Quarantine, entry: Entry) -> list[Quad]:
    """Map the copied rows of a record, without validation. Raises RecordError if they cannot be mapped."""
    try:
        loader = build_loader(entry.domain, settings(), _options(entry))
    except InvalidInputError as error:
        raise RecordError(str(error)) from None
    for item in _read_records(loader, quarantine.files(entry)):
        if _is_of(item, entry):
            if isinstance(item, Rejection):
                raise RecordError(item.reason)
            return [*to_quads(item), *(quad for candidate in item.shared.values() for quad in candidate)]
    raise RecordError("The copied rows contain no record.")


def _find_correction(kg: KnowledgeGraph, location: str | None, entry: Entry, by: str) -> File | None:
    if location is None:
        return None
    formats = build_loader(entry.domain, kg.settings, _options(entry)).formats
    files = find_files([location], kg.settings, formats).files
    if len(files) != 1 or not files[0].named:
        raise InvalidInputError(f"{location}: A correction must be a single file.")
    path, digest = files[0].path, files[0].snapshot.sha256
    corrected = "; ".join(f"{place.file} rows {place.rows}" for place in entry.places)
    return File(
        path, Snapshot(digest, f"{path.as_posix()}{load_records.CORRECTION}{corrected}", sent_by=by), named=True
    )


class _Retry(Loading):
    """A load of records in quarantine. `reasons` is, by name, why each stays in quarantine, empty if it does not."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        loader: Loader,
        entries: Sequence[Entry],
        correction: File | None,
        on_progress: Progress | None,
    ) -> None:
        config = (
            {"from": "quarantine"}
            if correction is None
            else {
                "corrects": "; ".join(
                    f"{load_records.name_source(each.file)} (sha256 {each.sha256}) rows {each.rows}"
                    for each in entries[0].places
                )
            }
        )
        super().__init__(kg, loader, Located((), ()), on_progress, config=config)
        self.entries: Final = entries
        self.correction: Final = correction
        self.current: Entry = entries[0]
        self.homes: dict[NamedNode, Entry] = {}
        self.reasons = {entry.name: "Not processed." for entry in entries}

    def run(self, prune: bool = False) -> LoadReport:
        """Read each record separately, so that no record uses rows of another."""
        with self.indexer:
            self.quarantine.sweep(self.kg.settings.directory)
            for entry in self.entries:
                self.current = entry
                try:
                    self.attempt(entry)
                except RecordError as error:
                    self.keep_quarantined(str(error))
            self.commit()
            self.wait_for_indexing()
        return self.finish()

    def attempt(self, entry: Entry) -> None:
        """Add the record of `entry` to the batch. Raises RecordError if it has no readable rows."""
        if self.correction is not None:
            items = list(_read_records(self.loader, [self.correction]))
            if len(items) != 1:
                raise InvalidInputError(
                    f"{self.correction.path}: A correction must contain exactly one record ({entry.record}); "
                    f"this file has {len(items)}."
                )
        else:
            try:
                items = [
                    item for item in _read_records(self.loader, self.quarantine.files(entry)) if _is_of(item, entry)
                ]
            except SourceError as error:
                raise RecordError(f"The copied rows cannot be read: {error}") from error
            if not items:
                raise RecordError("The copied rows contain no record.")
        for item in items:
            if isinstance(item, Rejection):
                self.reject(item)
            else:
                self.add(item)

    def add(self, document: SourceDocument | SourceGraph) -> None:
        """Add a record to the batch, unless it would replace another record than its own."""
        graph = graph_name(document)
        expected = self.current.graph
        if self.correction is not None and expected not in (None, graph.value):
            raise InvalidInputError(
                f"{self.correction.path} does not correct {self.current.record}: "
                f"it contains {graph.value} instead of {expected}."
            )
        if graph in self.homes or (
            graph.value != expected and graph in self.known and not self._is_from_earlier_retry(document)
        ):
            self.keep_quarantined(
                f"Identifier {document.iri.value} belongs to another record. Records are never merged."
            )
            return
        self.homes[graph] = self.current
        super().add(document)

    def _is_from_earlier_retry(self, document: SourceDocument | SourceGraph) -> bool:
        """Whether an interrupted retry has stored this record already."""
        graph = graph_name(document)
        sources = load_records.load_sources(self.kg.store, [graph]).get(graph, {})
        return self.known[graph] == (document.source_sha256, self.loader.version) and sources.keys() == {
            load_records.mint_source(origin.snapshot.source).value for origin in document.origins
        }

    def mark_stored(self, graph: NamedNode) -> None:
        """Remove the record from the quarantine."""
        entry = self.homes[graph]
        self.quarantine.remove(entry.name)
        super().mark_stored(graph)
        self.reasons[entry.name] = ""

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Update the reason of the record in quarantine. The errors of a correction do not change its original."""
        graph = mint("graph", "src", self.loader.domain, *rejection.key) if rejection.key else None
        entry = self.homes.get(graph, self.current) if graph is not None else self.current
        self.report.rejections.append(rejection)
        self.reasons[entry.name] = rejection.reason
        if self.correction is not None:
            return
        name = self.quarantine.put(graph, rejection, self.prov_run, violations, self.loader.options)
        if name != entry.name:
            self.quarantine.remove(entry.name)

    def keep_quarantined(self, reason: str) -> None:
        """Report the current record as rejected, and leave it unchanged in quarantine."""
        self.report.rejections.append(Rejection(self.current.record, reason))
        self.reasons[self.current.name] = reason


def _read_records(loader: Loader, files: Sequence[File]) -> Iterator[SourceDocument | SourceGraph | Rejection]:
    with closing(loader.read(files)) as items:  # type: ignore[type-var]
        yield from (item for item in items if isinstance(item, SourceDocument | SourceGraph | Rejection))


def _options(entry: Entry) -> Options:
    """Return the options for the loader; for an entity, the Wikibase that its graph names."""
    start = SOURCED + "wikibase/"
    graph = entry.graph or ""
    return {"base": unquote(graph[len(start) :].partition("/")[0])} if graph.startswith(start) else entry.options


def _is_of(item: SourceDocument | SourceGraph | Rejection, entry: Entry) -> bool:
    """Whether an item comes from rows of the record, not from other rows of the excerpt."""
    ours = {
        (place.file, row)
        for place in entry.places
        for row in parse_rows(place.rows if any(each.rows for each in entry.places) else place.excerpt_rows)
    }
    own = item.origins if any(each.rows for each in item.origins) else item.context
    theirs = {(each.snapshot.source, row) for each in own for row in each.rows}
    return bool(theirs) and theirs <= ours
