"""Second chances for records in quarantine, by their kept rows or by a person's correction of them."""

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
from loaders.model import Rejection, Snapshot, SourceDocument, SourceGraph, graph_name, to_quads
from loaders.pipeline import Loader, Loading, LoadReport, Options
from loaders.quarantine import CORRECTION, Entry, Quarantine, named, short_ids
from loaders.readers.locations import File, Located, find
from loaders.sources import LOADERS, build_loader

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
    """Take records through mapping and gate again, all of them where `ids` is None, and say what became of each.

    Those that pass are committed as by any load and leave the quarantine; the others stay, with what is wrong with them
    by now. A record is read from the rows that were kept with it, and its provenance names the file, hash and rows that
    these were read from, whatever lies there by now. `correction` is a file with the whole of one record in its stead:
    then the provenance names that, the person who gave it (`by`) and what it corrects.

    Raises NotFoundError for an id of no record, SourceError for a correction that cannot be read, and
    InvalidInputError for one that is not of one record.
    """
    entries, damaged = Quarantine(kg.settings.data_dir).entries()
    by_name = {entry.name: entry for entry in entries}
    names = list(by_name) if ids is None else named(ids, {name: entry.record for name, entry in by_name.items()})
    if correction is not None and len(names) != 1:
        raise InvalidInputError(f"a correction is of one record, and {len(names)} are named")
    if correction is not None and not by:
        raise InvalidInputError("a correction takes the name of who gives it")
    shorts = short_ids(by_name)
    reports, outcomes = [], dict.fromkeys(names, "")
    kinds = {name: (by_name[name].domain, tuple(sorted(_options(by_name[name]).items()))) for name in names}
    for kind in dict.fromkeys(kinds.values()):
        domain, options = kind
        chosen = [by_name[name] for name in names if kinds[name] == kind]
        if domain not in LOADERS:
            outcomes |= {each.name: f"no source {domain!r} can be loaded by this version" for each in chosen}
            continue
        loader = build_loader(domain, kg.settings, dict(options))
        retrying = _Retry(kg, loader, chosen, _corrected(kg, correction, chosen[0], by), on_progress)
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
    """Forget records, all of them where `ids` is None, and say which went. Damaged ones go when they are named.

    Raises NotFoundError for an id of no record, StoreError when the folder cannot be written.
    """
    entries, damaged = Quarantine(kg.settings.data_dir).entries()
    records = {entry.name: entry.record for entry in entries}
    unreadable = {file.removesuffix(".json"): "damaged" for file in damaged}
    shorts = short_ids(records | unreadable)
    names = list(records) if ids is None else named(ids, records | unreadable)
    for name in names:
        Quarantine(kg.settings.data_dir, name.rpartition("-")[0]).remove(name)
    return {
        "dropped": [{"id": shorts[name], "record": records.get(name)} for name in names],
        "damaged": {file: fault for file, fault in damaged.items() if file.removesuffix(".json") not in names},
    }


QUARANTINE: Final = {"retry": retry, "drop": drop}
"""What `KnowledgeGraph.quarantine` holds."""


def mapped(quarantine: Quarantine, entry: Entry) -> list[Quad]:
    """Return the record as its rows are mapped, unchecked. Raises RecordError when no record can be made of them."""
    if entry.domain not in LOADERS:
        raise RecordError(f"no source {entry.domain!r} can be loaded by this version")
    for item in _read(build_loader(entry.domain, settings(), _options(entry)), quarantine.files(entry)):
        if _is_of(item, entry):
            if isinstance(item, Rejection):
                raise RecordError(item.reason)
            return [*to_quads(item), *(quad for candidate in item.shared.values() for quad in candidate)]
    raise RecordError("its kept rows make no record")


def _corrected(kg: KnowledgeGraph, location: str | None, entry: Entry, by: str) -> File | None:
    if location is None:
        return None
    formats = build_loader(entry.domain, kg.settings, _options(entry)).formats
    files = find([location], kg.settings, formats).files
    if len(files) != 1 or not files[0].named:
        raise InvalidInputError(f"{location}: a correction is one file")
    path, digest = files[0].path, files[0].snapshot.sha256
    corrected = "; ".join(f"{place.file} rows {place.rows}" for place in entry.places)
    return File(path, Snapshot(digest, f"{path.as_posix()}{CORRECTION}{corrected}", sent_by=by), named=True)


class _Retry(Loading):
    """A load of records in quarantine. `reasons` say of each what keeps it out, and nothing where it went in."""

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
                    f"{each.file} (sha256 {each.sha256}) rows {each.rows}" for each in entries[0].places
                )
            }
        )
        super().__init__(kg, loader, Located((), ()), on_progress, config=config)
        self.entries: Final = entries
        self.correction: Final = correction
        self.current: Entry = entries[0]
        self.homes: dict[NamedNode, Entry] = {}
        self.reasons = {entry.name: "nothing became of it" for entry in entries}

    def run(self, prune: bool = False) -> LoadReport:
        """Read each record by itself: one must not make up for, or clash with, what another needs."""
        with self.indexer:
            self.quarantine.sweep()
            for entry in self.entries:
                self.current = entry
                try:
                    self.attempt(entry)
                except RecordError as error:
                    self.stays(str(error))
            self.commit()
            self.wait_for_indexing()
        return self.finish()

    def attempt(self, entry: Entry) -> None:
        """Raises RecordError when it has no rows that can be read."""
        if self.correction is not None:
            items = list(_read(self.loader, [self.correction]))
            if len(items) != 1:
                raise InvalidInputError(
                    f"{self.correction.path}: a correction holds the rows of the one record {entry.record}, and this "
                    f"file has {len(items)} records"
                )
        else:
            try:
                items = [item for item in _read(self.loader, self.quarantine.files(entry)) if _is_of(item, entry)]
            except SourceError as error:
                raise RecordError(f"its kept rows cannot be read: {error}") from error
            if not items:
                raise RecordError("its kept rows make no record")
        for item in items:
            if isinstance(item, Rejection):
                self.reject(item)
            else:
                self.add(item)

    def add(self, document: SourceDocument | SourceGraph) -> None:
        """Put it into the batch, unless it would replace another record than the one that was kept out."""
        graph = graph_name(document)
        expected = self.current.graph
        if self.correction is not None and expected not in (None, graph.value):
            raise InvalidInputError(
                f"{self.correction.path} is no correction of {self.current.record}: it makes {graph.value}, and that "
                f"would be {expected}"
            )
        if graph in self.homes or (graph.value != expected and graph in self.known and not self._put_there(document)):
            self.stays(f"there is another record with the identifier {document.iri.value}; they are never merged")
            return
        self.homes[graph] = self.current
        super().add(document)

    def _put_there(self, document: SourceDocument | SourceGraph) -> bool:
        """Whether an earlier retry, which did not come to its end, has put this very record into the store."""
        graph = graph_name(document)
        places = load_records.load_locations(self.kg.store, [graph]).get(graph)
        return self.known[graph] == (document.source_sha256, self.loader.version) and places == {
            origin.snapshot.source for origin in document.origins
        }

    def mark_stored(self, graph: NamedNode) -> None:
        """Let it out of the quarantine."""
        entry = self.homes[graph]
        self.quarantine.remove(entry.name)
        super().mark_stored(graph)
        self.reasons[entry.name] = ""

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Keep it in, with what is wrong with it by now; of a correction that is not said of the original."""
        graph = mint("graph", "src", self.loader.domain, *rejection.key) if rejection.key else None
        entry = self.homes.get(graph, self.current) if graph is not None else self.current
        self.report.rejections.append(rejection)
        self.reasons[entry.name] = rejection.reason
        if self.correction is not None:
            return
        name = self.quarantine.put(graph, rejection, self.prov_run, violations, self.loader.options)
        if name != entry.name:
            self.quarantine.remove(entry.name)

    def stays(self, reason: str) -> None:
        """Leave the current record as it is."""
        self.report.rejections.append(Rejection(self.current.record, reason))
        self.reasons[self.current.name] = reason


def _read(loader: Loader, files: Sequence[File]) -> Iterator[SourceDocument | SourceGraph | Rejection]:
    with closing(loader.read(files)) as items:  # type: ignore[type-var]
        yield from (item for item in items if isinstance(item, SourceDocument | SourceGraph | Rejection))


def _options(entry: Entry) -> Options:
    """What was said of its files; of an entity the name of its Wikibase, which its graph says."""
    start = SOURCED + "wikibase/"
    graph = entry.graph or ""
    return {"base": unquote(graph[len(start) :].partition("/")[0])} if graph.startswith(start) else entry.options


def _is_of(item: SourceDocument | SourceGraph | Rejection, entry: Entry) -> bool:
    """Whether it was made of rows of the record, and not of those that were read along with them."""
    ours = {
        (place.file, row)
        for place in entry.places
        for row in parse_rows(place.rows if any(each.rows for each in entry.places) else place.excerpt_rows)
    }
    own = item.origins if any(each.rows for each in item.origins) else item.context
    theirs = {(each.snapshot.source, row) for each in own for row in each.rows}
    return bool(theirs) and theirs <= ours
