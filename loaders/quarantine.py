"""Quarantine: rejected records, each with its reason, its location and a copy of its rows.

A record has a description, ``{name}.json`` (`Entry`); if it violated shapes, the ``sh:ValidationReport`` in
``{name}.ttl``; and for each of its files an excerpt with its rows, ``{name}.{n}.csv`` (with the extension of the file).
Only these names are opened: a path in a description is never followed.
"""

from __future__ import annotations

import errno
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pyoxigraph import NamedNode

from kg.data_directory import REJECTED, DataDirectory
from kg.errors import InvalidInputError, NotFoundError, RecordError, SourceError, StoreError
from kg.files import is_unwritable, write_file
from kg.fuzzy_names import nearest
from kg.provenance.load_records import Run, format_rows, name_source, parse_rows
from kg.shacl.report import Violation
from kg.shacl.report_writers import to_text
from kg.text import quoted
from kg.vocabulary import sha256
from loaders.model import Rejection, Snapshot
from loaders.readers import excerpts
from loaders.readers.locations import File, file_sha256

RESULTS_KEPT: Final = 1_000
"""Maximum validation results in a description. The ``sh:ValidationReport`` contains all."""

_LARGEST_BYTES: Final = 64_000_000
_HASH: Final = 24
_SHORT: Final = 8
_SIMILAR: Final = 5
_SHORTEST_NAME: Final = 4


class Place(BaseModel):
    """One source file of a record, as it was read."""

    model_config = ConfigDict(extra="forbid", strict=True)

    file: str
    sha256: str
    revision: str | None
    read_at: str
    rows: str
    """The rows of the record: ``1-57,60``."""
    excerpt_rows: str
    """The rows of the excerpt: those of the record, and others that are needed to map it."""
    excerpt_sha256: str | None = None
    """None if the rows could not be copied."""


class Entry(BaseModel):
    """One record in quarantine."""

    model_config = ConfigDict(extra="forbid", strict=True)

    domain: str
    record: str
    reason: str
    graph: str | None
    """The graph that the record would have; None if unknown."""
    rejected_at: str
    run: str
    """The run that rejected the record; ``graph/prov`` describes it if it committed anything."""
    agent: str
    violations: int
    """Number of validation results of any severity; 0 for a record that was rejected before its shapes were checked."""
    report: str
    """The validation report as text."""
    results: list[dict[str, Any]]
    places: list[Place]
    unopened: str | None = None
    """The path of a file that was not opened: it has no place. Without secrets."""
    options: dict[str, str] = {}
    """The options of the load."""
    name: str = Field("", exclude=True)

    def key(self) -> str:
        """Return the text that the name is a hash of."""
        places = [[place.file, place.rows] for place in self.places]
        return self.graph or self.unopened or json.dumps([self.record, places])

    @property
    def files(self) -> list[str]:
        """The paths of its files."""
        return [place.file for place in self.places] or ([self.unopened] if self.unopened else [])


class Quarantine:
    """The folder ``quarantine`` of a data directory, for one domain; without a domain, for reading all."""

    def __init__(self, folder: Path, domain: str = "", cut: excerpts.Cut = excerpts.cut) -> None:
        self.cut: Final = cut
        self.folder: Final = folder
        self.domain: Final = domain
        self.names = {path.stem for path in self.folder.glob(f"{domain}-*.json")} if domain else set()
        self.written: set[str] = set()

    def entries(self) -> tuple[list[Entry], dict[str, str]]:
        """Load the records, the newest last, and the error of each damaged file by its name."""
        found, damaged = [], {}
        for path in sorted(self.folder.glob(f"{self.domain}*.json")):
            try:
                found.append(self._load(path))
            except RecordError as error:
                damaged[path.name] = str(error)
        return sorted(found, key=lambda entry: (entry.rejected_at, entry.record)), damaged

    def newest(self, most: int) -> tuple[list[Entry], dict[str, str], int]:
        """Load the `most` records that were rejected last, the newest first, with damaged files as `entries` does.

        The last value is the number of all.
        """
        paths = [(path.lstat().st_mtime, path) for path in self.folder.glob(f"{self.domain}*.json")]
        found, damaged = [], {}
        for _, path in sorted(paths, reverse=True)[:most]:
            try:
                found.append(self._load(path))
            except RecordError as error:
                damaged[path.name] = str(error)
        return found, damaged, len(paths)

    def _load(self, path: Path) -> Entry:
        """Load a description. Raises RecordError for a file that is damaged or was not written by a load."""
        try:
            if path.is_symlink() or not path.is_file():
                raise RecordError("Not a regular file.")
            if path.stat().st_size > _LARGEST_BYTES:
                raise RecordError(f"Larger than {_LARGEST_BYTES:,} bytes.")
            entry = Entry.model_validate_json(path.read_bytes())
            for place in entry.places:
                parse_rows(place.rows)
                parse_rows(place.excerpt_rows)
                datetime.fromisoformat(place.read_at)
        except OSError as error:
            raise RecordError(f"Cannot be read: {error.strerror}.") from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RecordError(
                f"Not the description of a record: {f'{where} ' if where else ''}{first['msg']}."
            ) from error
        except ValueError as error:
            raise RecordError(f"Not the description of a record: {error}.") from error
        if not REJECTED.fullmatch(path.stem) or path.stem != _name(entry.domain, entry.key()):
            raise RecordError("The file name does not match the record in the file.")
        entry.name = path.stem
        return entry

    def put(
        self,
        graph: NamedNode | None,
        rejection: Rejection,
        run: Run,
        violations: Sequence[Violation] = (),
        options: Mapping[str, str] | None = None,
    ) -> str:
        """Write the description of a record that `run` rejected, and return its name. An earlier one is replaced.

        `options` are those of the load, for a retry. Raises StoreError.
        """
        now = datetime.now(UTC)
        results = [violation.to_dict() for violation in violations[:RESULTS_KEPT]]
        entry = Entry(
            domain=self.domain,
            record=_escaped(rejection.record),
            reason=_escaped(rejection.reason),
            graph=graph and graph.value,
            rejected_at=_timestamp(now),
            run=run.iri.value,
            agent=f"{run.agent.name} {run.agent.version}",
            violations=len(violations),
            report=_escaped(to_text(violations, "text", checked=rejection.record).rstrip()) if violations else "",
            results=json.loads(_escaped(json.dumps(results, ensure_ascii=False))),
            places=_places(rejection, run.started),
            unopened=None if rejection.unopened is None else _escaped(rejection.unopened),
            options=dict(options or {}),
        )
        entry.name = _name(self.domain, entry.key())
        with self._writing():
            self._reuse_excerpts(entry)
            self.folder.mkdir(parents=True, exist_ok=True)
            report = self.folder / f"{entry.name}.ttl"
            if violations:
                write_file(report, _escaped(to_text(violations, "ttl", checked=rejection.record)).encode())
            else:
                report.unlink(missing_ok=True)
            self._write(entry)
        self.names.add(entry.name)
        self.written.add(entry.name)
        return entry.name

    def _reuse_excerpts(self, entry: Entry) -> None:
        """Keep the existing excerpts if they contain the same rows of the same bytes, else delete them."""
        if entry.name not in self.names:
            return
        try:
            old = self._load(self.folder / f"{entry.name}.json")
        except RecordError:
            old = None
        if old is not None and [_excerpt_key(place) for place in old.places] == [
            _excerpt_key(place) for place in entry.places
        ]:
            entry.places = old.places
        else:
            for path in self._excerpts(entry.name):
                path.unlink(missing_ok=True)

    def keep_rows(self, files: Iterable[File]) -> list[str]:
        """Copy the rows of the records of this run from their files, and return warnings about failures."""
        pending: dict[str, Entry] = {}
        by_file: defaultdict[tuple[str, str], list[tuple[str, int, Place]]] = defaultdict(list)
        for name in sorted(self.written & self.names):
            try:
                entry = self._load(self.folder / f"{name}.json")
            except RecordError:
                continue
            for number, place in enumerate(entry.places):
                if place.excerpt_rows and place.excerpt_sha256 is None:  # else an earlier run has copied them
                    pending[name] = entry
                    by_file[place.file, place.sha256].append((name, number, place))
        problems = []
        paths = {(file.snapshot.source, file.snapshot.sha256): file.path for file in files}
        for (source, digest), path in paths.items():
            places = by_file[source, digest]
            wanted = {self._excerpt(name, number, place): place for name, number, place in places}
            if not wanted:
                continue
            try:
                with self._writing():
                    self._cut(path, wanted)
                    if file_sha256(path) != digest:
                        raise SourceError(f"{path}: The file changed during the load.")
                    for target, place in wanted.items():
                        place.excerpt_sha256 = file_sha256(target)
                    # Now, and not after the last file: another one may fail.
                    for name in {name for name, _, _ in places}:
                        self._write(pending[name])
            except (SourceError, StoreError) as error:
                problems.append(f"Cannot copy the rows of {len(wanted)} rejected records to the quarantine: {error}")
                for target, place in wanted.items():
                    place.excerpt_sha256 = None
                    with suppress(OSError):
                        target.unlink(missing_ok=True)
        return problems

    def _cut(self, path: Path, wanted: Mapping[Path, Place]) -> None:
        """Copy the rows of a file. Raises SourceError if it cannot be read, OSError if a copy cannot be written."""
        if not path.is_file():  # a pipe in its place would be waited for
            raise SourceError(f"{path}: is not a file any more")
        try:
            self.cut(path, {target: parse_rows(place.excerpt_rows) for target, place in wanted.items()})
        except OSError as error:
            is_of_source = error.filename == str(path) and error.errno in (errno.EACCES, errno.EPERM)
            is_of_copy = is_unwritable(error) or (error.filename is not None and Path(error.filename) in wanted)
            if is_of_copy and not is_of_source:
                raise
            raise SourceError(f"{path}: cannot be read ({error.strerror})") from error

    def files(self, entry: Entry) -> list[File]:
        """Return the excerpts of a record as files for its loader.

        Raises RecordError if rows are missing or were changed.
        """
        if not any(place.excerpt_rows for place in entry.places):
            raise RecordError("The file could not be read, so no rows were copied. Load the file again.")
        found = []
        for number, place in enumerate(entry.places):
            path = self._excerpt(entry.name, number, place)
            try:
                if place.excerpt_sha256 is None or path.is_symlink() or not path.is_file():
                    raise RecordError(f"The copied rows of {name_source(place.file)} are missing. Load the file again.")
                if file_sha256(path) != place.excerpt_sha256:
                    raise RecordError(f"The copied rows ({path.name}) were changed. Pass corrected rows with --file.")
            except SourceError as error:
                raise RecordError(str(error)) from error
            snapshot = Snapshot(place.sha256, place.file, place.revision, datetime.fromisoformat(place.read_at))
            found.append(File(path, snapshot, named=False, rows=tuple(parse_rows(place.excerpt_rows))))
        return found

    def report_turtle(self, entry: Entry) -> str | None:
        """Load the ``sh:ValidationReport`` of a record, None if it has none."""
        path = self.folder / f"{entry.name}.ttl"
        return path.read_text(encoding="utf-8") if path.is_file() and not path.is_symlink() else None

    def clear(self, graph: NamedNode) -> None:
        """Remove the record of this graph, which is valid now or deleted. Raises StoreError."""
        self.remove(_name(self.domain, graph.value))

    def remove(self, name: str) -> None:
        """Remove a record. Raises StoreError."""
        if name in self.names:
            with self._writing():
                # The description first: `sweep` removes files without one.
                (self.folder / f"{name}.json").unlink(missing_ok=True)
                (self.folder / f"{name}.ttl").unlink(missing_ok=True)
                for path in self._excerpts(name):
                    path.unlink(missing_ok=True)
            self.names.discard(name)

    def remove_fixed(self, is_read: Callable[[str], bool]) -> None:
        """Remove errors outside of known records of earlier runs. `is_read`: whether a file was read again or is gone.

        An entry that names no file, as earlier versions wrote them, is removed.
        """
        for entry in self._earlier_entries():
            if entry.graph is None and all(map(is_read, entry.files)):
                self.remove(entry.name)

    def prune(self, seen: Collection[NamedNode], gone: Callable[[str], bool]) -> None:
        """Remove records that are not in `seen` and of whose files `gone` is true."""
        graphs = {graph.value for graph in seen}
        for entry in self._earlier_entries():
            if entry.graph is not None and entry.graph not in graphs and all(gone(each.file) for each in entry.places):
                self.remove(entry.name)

    def _earlier_entries(self) -> list[Entry]:
        """Load the records of earlier runs."""
        return [entry for entry in self.entries()[0] if entry.name not in self.written] if self.names else []

    def sweep(self, directory: DataDirectory) -> None:
        """Remove the files that a killed process left. Raises StoreError."""
        with self._writing():
            for path in directory.find_half_rejected():
                path.unlink(missing_ok=True)

    def _write(self, entry: Entry) -> None:
        text = json.dumps(entry.model_dump(mode="json"), ensure_ascii=False, indent=2)
        write_file(self.folder / f"{entry.name}.json", f"{text}\n".encode())

    def _excerpt(self, name: str, number: int, place: Place) -> Path:
        return self.folder / f"{name}.{number}{excerpts.ending(place.file)}"

    def _excerpts(self, name: str) -> Iterator[Path]:
        return (path for path in self.folder.glob(f"{name}.*") if path.suffix in excerpts.ENDINGS)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"Cannot write to {self.folder}: {error.strerror}.") from error


def _places(rejection: Rejection, read_at: datetime) -> list[Place]:
    """Build one place for each file, with the rows of the record and those that are needed to map it."""
    places: dict[tuple[str, str], tuple[Snapshot, list[int], list[int]]] = {}
    for own, origins in ((True, rejection.origins), (False, rejection.context)):
        for origin in origins:
            snapshot = origin.snapshot
            _, rows, all_rows = places.setdefault((snapshot.source, snapshot.sha256), (snapshot, [], []))
            rows += origin.rows if own else ()
            all_rows += origin.rows
    return [
        Place(
            file=snapshot.source,
            sha256=snapshot.sha256,
            revision=snapshot.revision,
            read_at=_timestamp(snapshot.read_at or read_at),
            rows=format_rows(sorted(set(rows))),
            excerpt_rows=format_rows(sorted(set(all_rows))),
        )
        for snapshot, rows, all_rows in places.values()
    ]


def name_sources(entry: Entry) -> Entry:
    """Replace the paths of the files of a record by their names in provenance."""
    names = {file: name_source(file) for file in entry.files}
    texts = {"record": entry.record, "reason": entry.reason}
    for file, name in names.items():
        texts = {field: text.replace(file, name) for field, text in texts.items()}
    places = [place.model_copy(update={"file": names[place.file]}) for place in entry.places]
    unopened = None if entry.unopened is None else names[entry.unopened]
    return entry.model_copy(update={**texts, "places": places, "unopened": unopened})


def short_ids(names: Collection[str]) -> dict[str, str]:
    """Return the short id of each name: the start of its hash, long enough to be unique.

    A file that several sources rejected has the same hash for each; its ids begin with the source.
    """
    hashes = {name: name.rpartition("-")[2] for name in names}
    length = _SHORT
    while length < _HASH and len({digest[:length] for digest in hashes.values()}) < len(set(hashes.values())):
        length += 1
    uses = Counter(hashes.values())
    return {
        name: (digest if uses[digest] == 1 else name)[: length - len(digest) or None] for name, digest in hashes.items()
    }


def resolve_ids(wanted: Sequence[str], records: Mapping[str, str]) -> list[str]:
    """Return the names that match ids, without repetition. An id is the start of a name or of its hash.

    `records` maps each name to its record. Raises NotFoundError for an unknown id, with similar ones, and
    InvalidInputError for an ambiguous one.
    """
    ids = short_ids(records)

    def in_line(names: Collection[str]) -> str:
        return ", ".join(f"{ids[name]} ({records[name]})" for name in [*names][:_SIMILAR])

    found: dict[str, None] = {}
    for each in wanted:
        text = each.strip().casefold()
        names = [name for name in records if text and any(key.startswith(text) for key in (name, name[-_HASH:]))]
        if len(names) > 1 and text not in names:
            raise InvalidInputError(f"Ambiguous id {quoted(each)}. Matches: {in_line(names)}.")
        if not names:
            near = [name for name in records if len(text) >= _SHORTEST_NAME and text in records[name].casefold()]
            near += [name for name in records if nearest(text, [ids[name], records[name].casefold()], 1, least=50)]
            hint = f"Similar: {in_line(dict.fromkeys(near))}." if near else "`kg quarantine list` shows all ids."
            raise NotFoundError(f"Unknown id {quoted(each)}. {hint if records else 'The quarantine is empty.'}")
        found[names[0]] = None
    return list(found)


def _excerpt_key(place: Place) -> tuple[str | None, ...]:
    return place.file, place.sha256, place.revision, place.rows, place.excerpt_rows


def _name(domain: str, key: str) -> str:
    return f"{domain}-{sha256(key)[:_HASH]}"


def _timestamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")


def _escaped(text: str) -> str:
    """Escape what UTF-8 cannot encode."""
    return text.encode(errors="backslashreplace").decode()
