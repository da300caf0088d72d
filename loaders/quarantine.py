"""Records that were kept out of the store: what is wrong with each, where it stands, and its rows as they were read.

A record has ``{name}.json``, which describes it (`Entry`), when its shapes were broken ``{name}.ttl`` with the
``sh:ValidationReport``, and for each file that it stands in ``{name}.{n}.csv`` (or whatever the file is), an excerpt
with its rows. Only these names are ever opened: no path that a description mentions is followed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, NotFoundError, RecordError, SourceError, StoreError
from kg.fuzzy_names import nearest
from kg.provenance.load_records import Run, format_rows, parse_rows
from kg.shacl.report import Violation
from kg.shacl.report_writers import to_text
from kg.vocabulary import sha256
from loaders.model import Rejection, Snapshot
from loaders.readers import excerpts
from loaders.readers.locations import File, file_sha256

RESULTS_KEPT: Final = 1_000
"""Results that a description holds one by one; the ``sh:ValidationReport`` beside it has them all."""

CORRECTION: Final = ", a correction of "
"""Stands, in the name of a file that corrects a record, between the file and what it corrects."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*-[0-9a-f]{24}")
_LARGEST_BYTES: Final = 64_000_000
_HASH: Final = 24
_SHORT: Final = 8
_NEAR: Final = 5
_NAMING: Final = 4


class Place(BaseModel):
    """A file that the record stands in, as it was."""

    model_config = ConfigDict(extra="forbid", strict=True)

    file: str
    sha256: str
    revision: str | None
    read_at: str
    rows: str
    """The rows of the record, as in ``1-57,60``."""
    excerpt_rows: str
    """The rows that the excerpt holds: those and others that it takes to make the record."""
    excerpt_sha256: str | None = None
    """None: the rows could not be kept."""


class Entry(BaseModel):
    """One record in quarantine."""

    model_config = ConfigDict(extra="forbid", strict=True)

    domain: str
    record: str
    reason: str
    graph: str | None
    """The graph that it would have; None where that is not known."""
    rejected_at: str
    run: str
    """The run that rejected it; recorded in ``graph/prov`` if it loaded anything."""
    agent: str
    violations: int
    """Results of any severity; 0 for a record that could not be mapped."""
    report: str
    """What the shapes found, in words."""
    results: list[dict[str, Any]]
    places: list[Place]
    options: dict[str, str] = {}
    """What whoever loaded it said of its files."""
    name: str = Field("", exclude=True)

    def key(self) -> str:
        """Return what its name is made of."""
        return self.graph or json.dumps([self.record, [[place.file, place.rows] for place in self.places]])


class Quarantine:
    """The folder ``quarantine`` of a data directory, as one domain uses it (or, to read it, all)."""

    def __init__(self, data_dir: Path, domain: str = "", cut: excerpts.Cut = excerpts.cut) -> None:
        self.cut: Final = cut
        self.folder: Final = data_dir / "quarantine"
        self.domain: Final = domain
        self.held = {path.stem for path in self.folder.glob(f"{domain}-*.json")} if domain else set()
        self.put_now: set[str] = set()

    def entries(self) -> tuple[list[Entry], dict[str, str]]:
        """Return the records, the newest last, and the name and fault of each damaged file."""
        found, damaged = [], {}
        for path in sorted(self.folder.glob(f"{self.domain}*.json")):
            try:
                found.append(self._read(path))
            except RecordError as error:
                damaged[path.name] = str(error)
        return sorted(found, key=lambda entry: (entry.rejected_at, entry.record)), damaged

    def _read(self, path: Path) -> Entry:
        """Raises RecordError for a file that no load has written like this."""
        try:
            if path.is_symlink() or not path.is_file():
                raise RecordError("it is not a file")
            if path.stat().st_size > _LARGEST_BYTES:
                raise RecordError(f"it has more than {_LARGEST_BYTES:,} bytes")
            entry = Entry.model_validate_json(path.read_bytes())
            for place in entry.places:
                parse_rows(place.rows)
                parse_rows(place.excerpt_rows)
                datetime.fromisoformat(place.read_at)
        except OSError as error:
            raise RecordError(f"it cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RecordError(f"it is not the description of a record: {where} {first['msg']}".strip()) from error
        except ValueError as error:
            raise RecordError(f"it is not the description of a record: {error}") from error
        if not _NAME.fullmatch(path.stem) or path.stem != _name(entry.domain, entry.key()):
            raise RecordError("its name is not that of the record which it describes")
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
        """Describe a record that `run` rejected and return its name; what was said of it before is replaced.

        `options` are what whoever loads said of its files, for another try.

        Raises StoreError.
        """
        now = datetime.now(UTC)
        results = [violation.to_dict() for violation in violations[:RESULTS_KEPT]]
        entry = Entry(
            domain=self.domain,
            record=_text(rejection.record),
            reason=_text(rejection.reason),
            graph=graph and graph.value,
            rejected_at=_timestamp(now),
            run=run.iri.value,
            agent=f"{run.agent.name} {run.agent.version}",
            violations=len(violations),
            report=_text(to_text(violations, "text", checked=rejection.record).rstrip()) if violations else "",
            results=json.loads(_text(json.dumps(results, ensure_ascii=False))),
            places=_places(rejection, run.started),
            options=dict(options or {}),
        )
        entry.name = _name(self.domain, entry.key())
        with self._writing():
            self._take_over(entry)
            self.folder.mkdir(parents=True, exist_ok=True)
            report = self.folder / f"{entry.name}.ttl"
            if violations:
                _replace(report, _text(to_text(violations, "ttl", checked=rejection.record)).encode())
            else:
                report.unlink(missing_ok=True)
            self._write(entry)
        self.held.add(entry.name)
        self.put_now.add(entry.name)
        return entry.name

    def _take_over(self, entry: Entry) -> None:
        """Let the entry have the excerpts that there are, if they are of the same rows of the same bytes."""
        if entry.name not in self.held:
            return
        try:
            old = self._read(self.folder / f"{entry.name}.json")
        except RecordError:
            old = None
        if old is not None and [_source(place) for place in old.places] == [_source(place) for place in entry.places]:
            entry.places = old.places
        else:
            for path in self._excerpts(entry.name):
                path.unlink(missing_ok=True)

    def keep_rows(self, paths: Mapping[Snapshot, Path]) -> list[str]:
        """Cut the rows of the records that were put here from the files they stand in, and return what was in the way.

        Raises StoreError.
        """
        pending = {}
        for name in sorted(self.put_now & self.held):
            try:
                entry = self._read(self.folder / f"{name}.json")
            except RecordError:
                continue
            if any(place.excerpt_sha256 is None and place.excerpt_rows for place in entry.places):
                pending[name] = entry
        by_file = {(snapshot.source, snapshot.sha256): path for snapshot, path in paths.items()}
        problems = []
        for (source, digest), path in by_file.items():
            wanted = {
                self._excerpt(name, number, place): place
                for name, entry in pending.items()
                for number, place in enumerate(entry.places)
                if (place.file, place.sha256) == (source, digest) and place.excerpt_rows
            }
            if not wanted:
                continue
            with self._writing():
                try:
                    self.cut(path, {target: parse_rows(place.excerpt_rows) for target, place in wanted.items()})
                    if file_sha256(path) != digest:
                        raise SourceError(f"{path}: the file was changed while it was loaded")
                except SourceError as error:
                    problems.append(f"the rows of {len(wanted)} rejected records could not be kept: {error}")
                    for target in wanted:
                        target.unlink(missing_ok=True)
                    continue
                for target, place in wanted.items():
                    place.excerpt_sha256 = file_sha256(target)
        with self._writing():
            for entry in pending.values():
                self._write(entry)
        return problems

    def files(self, entry: Entry) -> list[File]:
        """Return the excerpts of a record, to be read as the files that they were cut from.

        Raises RecordError when the rows are not there, or not as they were.
        """
        if not any(place.excerpt_rows for place in entry.places):
            raise RecordError("the whole file could not be read, and nothing of it is kept; load it again")
        found = []
        for number, place in enumerate(entry.places):
            path = self._excerpt(entry.name, number, place)
            try:
                if place.excerpt_sha256 is None or path.is_symlink() or not path.is_file():
                    raise RecordError(f"its rows in {place.file} are not kept; load the file again")
                if file_sha256(path) != place.excerpt_sha256:
                    raise RecordError(f"its kept rows ({path.name}) were changed; give corrected rows with --file")
            except SourceError as error:
                raise RecordError(str(error)) from error
            snapshot = Snapshot(place.sha256, place.file, place.revision, datetime.fromisoformat(place.read_at))
            found.append(File(path, snapshot, named=False, rows=tuple(parse_rows(place.excerpt_rows))))
        return found

    def report_turtle(self, entry: Entry) -> str | None:
        """Return the ``sh:ValidationReport`` of a record, or None when it has none."""
        path = self.folder / f"{entry.name}.ttl"
        return path.read_text(encoding="utf-8") if path.is_file() and not path.is_symlink() else None

    def clear(self, graph: NamedNode) -> None:
        """Forget the record whose graph this is: it is well now, or gone. Raises StoreError."""
        self.remove(_name(self.domain, graph.value))

    def remove(self, name: str) -> None:
        """Forget a record. Its description goes first: what is left without one is swept away. Raises StoreError."""
        if name in self.held:
            with self._writing():
                (self.folder / f"{name}.json").unlink(missing_ok=True)
                (self.folder / f"{name}.ttl").unlink(missing_ok=True)
                for path in self._excerpts(name):
                    path.unlink(missing_ok=True)
            self.held.discard(name)

    def settle(self, sources: Collection[str | None]) -> None:
        """Forget the faults in no known record that these files, which were read anew, do not have any more."""
        for entry in self._others():
            if entry.graph is None and all(place.file in sources for place in entry.places):
                self.remove(entry.name)

    def prune(self, seen: Collection[NamedNode], gone: Callable[[str], bool]) -> None:
        """Forget the records that were not `seen` in files of which `gone` says that all there is has been read."""
        graphs = {graph.value for graph in seen}
        for entry in self._others():
            if entry.graph is not None and entry.graph not in graphs and all(gone(each.file) for each in entry.places):
                self.remove(entry.name)

    def _others(self) -> list[Entry]:
        """The records that are not from this run."""
        return [entry for entry in self.entries()[0] if entry.name not in self.put_now] if self.held else []

    def sweep(self) -> None:
        """Remove what a process that was killed left: parts of records without a description. Raises StoreError."""
        with self._writing():
            for path in self.folder.glob(f"{self.domain}-*"):
                name = path.name.partition(".")[0]
                if _NAME.fullmatch(name) and (path.suffix == ".partial" or not (self.folder / f"{name}.json").exists()):
                    path.unlink(missing_ok=True)

    def _write(self, entry: Entry) -> None:
        text = json.dumps(entry.model_dump(mode="json"), ensure_ascii=False, indent=2)
        _replace(self.folder / f"{entry.name}.json", f"{text}\n".encode())

    def _excerpt(self, name: str, number: int, place: Place) -> Path:
        return self.folder / f"{name}.{number}{excerpts.ending(place.file)}"

    def _excerpts(self, name: str) -> Iterator[Path]:
        return (path for path in self.folder.glob(f"{name}.*") if path.suffix in excerpts.ENDINGS)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be written: {error.strerror}") from error


def _places(rejection: Rejection, read_at: datetime) -> list[Place]:
    """Where the record stands, one place a file: its own rows, and with those of others what it takes to make it."""
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


def short_ids(names: Collection[str]) -> dict[str, str]:
    """Return, for each name, the id that people use: the start of its hash, as long as it takes to tell them apart."""
    hashes = {name: name.rpartition("-")[2] for name in names}
    length = _SHORT
    while length < _HASH and len({digest[:length] for digest in hashes.values()}) < len(set(hashes.values())):
        length += 1
    return {name: digest[:length] for name, digest in hashes.items()}


def named(wanted: Sequence[str], records: Mapping[str, str]) -> list[str]:
    """Return the names that ids stand for, each once. An id is the start of a name or of its hash.

    `records` has the record of each name. Raises NotFoundError for an id of none, InvalidInputError for one of several;
    both name what is near.
    """
    ids = short_ids(records)

    def told(names: Collection[str]) -> str:
        return ", ".join(f"{ids[name]} ({records[name]})" for name in [*names][:_NEAR])

    found: dict[str, None] = {}
    for each in wanted:
        text = each.strip().casefold()
        names = [name for name in records if text and any(key.startswith(text) for key in (name, name[-_HASH:]))]
        if len(names) > 1 and text not in names:
            raise InvalidInputError(f"the id {each!r} is that of {len(names)} records: {told(names)}; give more of it")
        if not names:
            near = [name for name in records if len(text) >= _NAMING and text in records[name].casefold()]
            near += [name for name in records if nearest(text, [ids[name], records[name].casefold()], 1, least=50)]
            hint = f"near are {told(dict.fromkeys(near))}" if near else "`kg quarantine list` shows all"
            said = hint if records else "the quarantine is empty"
            raise NotFoundError(f"no record in quarantine has the id {each!r}; {said}")
        found[names[0]] = None
    return list(found)


def _source(place: Place) -> tuple[str | None, ...]:
    return place.file, place.sha256, place.revision, place.rows, place.excerpt_rows


def _name(domain: str, key: str) -> str:
    return f"{domain}-{sha256(key)[:_HASH]}"


def _timestamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")


def _text(text: str) -> str:
    """`text` with what has no UTF-8 form written out."""
    return text.encode(errors="backslashreplace").decode()


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that whoever reads it finds the old one or the new one."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)
