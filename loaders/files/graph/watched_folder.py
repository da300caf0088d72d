"""A folder whose files are loaded when they change: the files as they were last read, and loads of changed ones.

After each load the graphs of the folder are those of a load of the whole folder: also of files whose near-duplicate has
come or gone, and without those of files that can no longer be read. Mentions and entities follow (`extract`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import QueryMemoryError, QueryTimeoutError, RecordError, SourceError
from kg.ingestion import Outcome
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import load_records
from kg.provenance.load_records import RecordOrigin
from kg.search.index_sync import Progress
from kg.settings import Settings
from kg.shacl.report import Violation
from kg.sparql.terms import bind
from kg.store.protocol import Commit, batched, named_node, select, term_text
from kg.vocabulary import PROV_GRAPH, iri_prefix, mint
from loaders.dispatch import call
from loaders.files.graph.entities import LONG, find_pending, load_lengths, remove_invalidated
from loaders.files.graph.moves import Moves, name_file
from loaders.files.graph.stored_files import LeftOutFiles, load_signatures, load_stored
from loaders.files.loader import (
    DOMAIN,
    FORMATS,
    FindOriginal,
    Item,
    Reading,
    StoredFile,
    build_rejection,
    describe_duplicate,
)
from loaders.files.near_duplicates import NearDuplicates, Original
from loaders.files.secrets import redact
from loaders.load_report import LoadReport
from loaders.model import Notice, Rejection, Withdrawal
from loaders.pipeline import Loader, Loading
from loaders.readers.locations import File, Located, Unread, find_in_folder, to_place, walk_folder

MOST_FILES: Final = 500
"""Maximum files of a load. Between two, other loads have their turn."""

EXTRACTED_CHARACTERS: Final = 150_000
"""Characters of the files whose entities are found at once, without others that wait for the writer: some seconds."""
MOST_EXTRACTED: Final = 200
"""Maximum number of these files. The search for what has changed costs as much for a few as for many."""

_ROUNDS: Final = 10
"""Maximum repetitions of a load for near-duplicates that change meanwhile. The next search finds further ones."""
_FRESH_NS: Final = 2_000_000_000
"""Nanoseconds after a change in which a file may change again without another time of modification."""
_REMOVED_AT_ONCE: Final = 500

STORED: Final = """
SELECT ?path ?snapshot ?source WHERE {
  GRAPH ?graph { ?file kg:collection $collection ; kg:path ?path } FILTER(STRSTARTS(STR(?graph), $prefix))
  GRAPH $prov { ?graph prov:wasDerivedFrom ?snapshot . ?snapshot prov:specializationOf ?source }
}"""

_SNAPSHOTS: Final = iri_prefix("snapshot") + "sha256-"

Stamp = tuple[int, int, int, int]
"""Time of modification, size, inode and time of change of a file."""


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was when it was last read."""

    stamp: Stamp
    sha256: str | None
    """None if it could not be read."""
    is_fresh: bool
    """Whether it was read so shortly after its change that its stamp may not show another one."""


@dataclass(slots=True)
class Changes:
    """Paths of files, relative to their folder, that have changed or are gone."""

    paths: list[str]
    moved: dict[str, str]
    """The old path of each file that was moved. It need not be among the paths."""


@dataclass(frozen=True, slots=True)
class Part:
    """Files of a folder that are loaded together, by their paths.

    Its functions are those of the process that watches the folder, which holds the state of the other files.
    """

    root: Path
    collection: str
    options: dict[str, str]
    """The options of the loader."""
    files: dict[str, File]
    unread: dict[str, Unread]
    refused: dict[str, Unread]
    """Files whose path must not be stored."""
    gone: list[str]
    moved: dict[str, str]
    """The old path of each file that was moved."""
    stamps: dict[str, Stamp | None]
    unopened: set[str]
    """Files that could not be read before."""
    is_index_complete: bool
    find_original: FindOriginal
    take_changed: Callable[[], dict[str, Original | None]]
    forget: Callable[[str], None]
    """Removes a file from those that are compared."""
    get_stored: Callable[[str], StoredFile]
    get_hash: Callable[[str], str | None]
    """Returns the hash of the file at a path as it is in the store."""
    set_hash: Callable[[str, str | None], None]

    def name(self, path: str) -> str:
        """Name a file among those that are compared as near-duplicates."""
        return f"{self.collection}/{path}"

    def get_graph(self, path: str) -> NamedNode:
        """Get the name of the graph of a file."""
        return mint("graph", "src", DOMAIN, self.collection, *PurePosixPath(path).parts)


LoadPart = Callable[..., list[str]]
"""`load_part` with the graph, a part and `on_progress`, perhaps in another process."""


def load_part(
    kg: KnowledgeGraph,
    part: Part,
    build: Callable[[Settings, Mapping[str, str], Moves], Loader],
    on_progress: Progress | None = None,
) -> list[str]:
    """Load files with the loader that `build` configures; return the paths that changed while they were read."""
    moves = Moves()
    update = _Update(kg, part, build(kg.settings, part.options, moves), moves, on_progress)
    update.run(prune=True)
    return update.again


class WatchedFolder:
    """One folder, for one thread. `load_part` loads some of its files."""

    def __init__(self, kg: KnowledgeGraph, root: Path, collection: str | None, load_part: LoadPart) -> None:
        self.kg: Final = kg
        self.root: Final = root
        self.collection: Final = collection or root.name or DOMAIN
        self.options: Final = {"collection": collection} if collection else {}
        self.reading: Final = Reading.from_options(self.options, kg.settings.unredacted_collections)
        self._load_part: Final = load_part
        self.files: Final[dict[str, Known]] = {}
        self.stored: dict[str, str] | None = None
        """The hashes of the files in the store that are from this folder; None before the first search for changes."""
        self.duplicates: Final = NearDuplicates()
        self.freed_at = -1
        """Generation of the store when `find_freed` compared it."""
        self.is_index_complete = False
        """Whether the index has all that earlier loads committed."""

    def find_changes(self) -> Changes:
        """Walk the folder and find the files that changed since they were last read, and stored files that are gone.

        Raises SourceError if the folder cannot be read.
        """
        paths, _ = walk_folder(self.root, FORMATS)
        found = {path.relative_to(self.root).as_posix(): read_stamp(path) for path in paths}
        if self.stored is None:
            self.stored = self._load_stored()
        changed = [
            path
            for path, stamp in found.items()
            if (known := self.files.get(path)) is None or known.stamp != stamp or known.is_fresh
        ]
        gone = sorted((self.stored.keys() | self.files.keys()) - found.keys())
        new = [path for path in changed if path not in self.stored] if self.stored.keys() & gone else []
        files = find_in_folder(self.root, (self.root / path for path in new), self.kg.settings, FORMATS).files
        moved = self._pair_moved(gone, files)
        return Changes([*(path for path in gone if path not in moved.values()), *changed], moved)

    def find_below(self, path: str) -> list[str]:
        """Find the known and the present files at a path, or in the folder there."""
        known = [each for each in self.files if each == path or each.startswith(f"{path}/")]
        try:
            below, _ = walk_folder(self.root, FORMATS, path)
        except SourceError:
            below = []
        return sorted({path, *known, *(each.relative_to(self.root).as_posix() for each in below)})

    def has_lost(self, paths: Iterable[str]) -> bool:
        """Return whether known files are gone from some of these paths."""
        return any(path in self.files and _is_gone(self.root / path) for path in paths)

    def load(self, changes: Changes, on_progress: Progress | None = None) -> list[str]:
        """Load the files at these paths, and remove those that are gone. Returns the paths to load again.

        Those are the files that changed while they were read. If reading them takes too long or too much memory, they
        are loaded one by one, and the one that does is rejected.
        """
        try:
            return self._load(changes, on_progress)
        except (QueryMemoryError, QueryTimeoutError) as error:
            if len(changes.paths) == 1:
                return self._load(changes, on_progress, str(error))
        again: list[str] = []
        for number, path in enumerate(changes.paths):
            if on_progress is not None:  # which raises once the watcher is to stop
                on_progress(number, len(changes.paths), "loading files one by one")
            again += self.load(Changes([path], changes.moved), on_progress)
        return again

    def _load(self, changes: Changes, on_progress: Progress | None, problem: str | None = None) -> list[str]:
        """Load the files at these paths; with `problem`, reject those that are there."""
        began = time.perf_counter()
        stored = self.stored = self._load_stored() if self.stored is None else self.stored
        paths = dict.fromkeys([*changes.paths, *(changes.moved[new] for new in changes.paths if new in changes.moved)])
        stamps = {path: read_stamp(self.root / path) for path in paths}
        located = find_in_folder(self.root, (self.root / path for path in paths), self.kg.settings, FORMATS)
        files = {file.path.relative_to(self.root).as_posix(): file for file in located.files}
        unread = {each.path.relative_to(self.root).as_posix(): each for each in located.unread}
        if problem is not None:
            for path, file in files.items():
                place = to_place(file.path)
                unread[path] = Unread(path, file.snapshot.source, problem, file.path, place, self.root)
            files.clear()
        every: dict[str, File | Unread] = {**files, **unread}
        refused = {path: found for path, each in every.items() if (found := self.reading.refuse(each)) is not None}
        for path in refused:  # nothing may have its path, and a stored record goes
            files.pop(path, None)
            unread.pop(path, None)
        again = [path for path in unread if read_stamp(self.root / path) != stamps[path]]
        for path in again:  # it was removed or replaced meanwhile
            del unread[path]
        gone = [path for path in paths if path not in files and path not in unread and path not in again]
        for path in [path for path in files if self._is_unchanged(path, files[path], stamps[path])]:
            self.files[path] = replace(self.files[path], is_fresh=False)
            self.kg.ingestion.record_file("unchanged", path, self.collection)
            del files[path]
        moved = {new: old for new, old in changes.moved.items() if new in files and old in gone and old in stored}
        new = [file for path, file in files.items() if path not in moved and path not in stored]
        gone += self._find_left(stored, new, paths)
        moved |= self._pair_moved([path for path in gone if path not in moved.values()], new)
        if not (files or unread or refused or any(path in self.files or path in stored for path in gone)):
            return again
        # Only of moves: the old record goes in the same commit, so no stored record loses its location, even by a kill.
        files = {path: note_left(file, self.root, moved.get(path)) for path, file in files.items()}
        self.reading.stored.clear()
        self.reading.stored.update(load_stored(self.kg.store))
        self._compare_with_stored((*gone, *unread), moved)
        part = Part(
            self.root, self.collection, self.options, files, unread, refused, gone, moved, stamps,
            {path for path, known in self.files.items() if known.sha256 is None}, self.is_index_complete,
            self.duplicates.find, self.duplicates.take_changed, self.duplicates.remove, self._get_stored, stored.get,
            self._set_hash,
        )  # fmt: skip
        changed = self._load_part(self.kg, part, on_progress=on_progress)
        self.is_index_complete = True
        now = time.time_ns()
        for path in gone:
            self.files.pop(path, None)
        for path in (*files, *unread):
            stamp = stamps[path]
            if stamp is not None and path not in changed:
                digest = files[path].snapshot.sha256 if path in files else None
                self.files[path] = Known(stamp, digest, now - max(stamp[0], stamp[3]) < _FRESH_NS)
        for path in refused:
            if (stamp := stamps[path]) is not None:
                self.files[path] = Known(stamp, None, is_fresh=False)
        self.kg.ingestion.record_load(len(files), time.perf_counter() - began)
        left_out = LeftOutFiles(self.kg.settings.directory.left_out_files)
        left_out.forget(map(part.name, paths))  # the watcher looks after them
        return [*again, *changed]

    def _compare_with_stored(self, gone: Iterable[str], moved: Mapping[str, str]) -> None:
        """Update the files that others are compared with: without those that are gone, with those of other folders."""
        start, stored = f"{self.collection}/", self.reading.stored
        for path in gone:
            self.duplicates.remove(start + path)
        others = {name: each.signature for name, each in stored.items() if not name.startswith(start)}
        self.duplicates.set_stored({name: signature for name, signature in others.items() if signature})
        for new, old in moved.items():
            stored[start + new] = StoredFile(tags=self._get_stored(start + old).tags)

    def _get_stored(self, name: str) -> StoredFile:
        return self.reading.stored.get(name, StoredFile())

    def _set_hash(self, path: str, digest: str | None) -> None:
        assert self.stored is not None  # noqa: S101 -- a load reads it first
        if digest is None:
            self.stored.pop(path, None)
        else:
            self.stored[path] = digest

    def find_freed(self) -> list[str]:
        """Find the near-duplicates of files outside of the folder which are gone or have another text."""
        copies = self.duplicates.list_copies()
        if not copies or (generation := self.kg.store.statistics().generation) == self.freed_at:
            return []
        self.freed_at = generation
        signatures = load_signatures(self.kg.store, copies)
        freed = {
            name.removeprefix(f"{self.collection}/")
            for original, names in copies.items()
            if self.duplicates.describe(original) != signatures.get(original)
            for name in names
        }
        for path in freed:
            self.files.pop(path, None)
        return sorted(freed)

    def find_unextracted(self) -> list[list[NamedNode]]:
        """Update the mentions of concepts; return the files of all collections whose entities are not found yet.

        They are in parts for `extract`, the long ones last.
        """
        call(self.kg, "mention")
        pending = list(find_pending(self.kg))
        lengths = load_lengths(self.kg.store, pending)
        parts: list[list[NamedNode]] = []
        left = 0
        for graph in sorted(pending, key=lambda graph: lengths.get(graph, 0) > LONG):
            left -= lengths.get(graph, 0)
            if not parts or left < 0 or len(parts[-1]) == MOST_EXTRACTED:
                parts.append([])
                left = EXTRACTED_CHARACTERS - lengths.get(graph, 0)
            parts[-1].append(name_file(graph))
        return parts

    def extract(
        self,
        files: Collection[NamedNode],
        on_progress: Progress | None = None,
        is_paused: Callable[[], bool] = lambda: False,
        *,
        link: bool = True,
    ) -> bool:
        """Find the entities of these files and, with `link`, links between entities, which reads all of them.

        Returns false if it was paused. Raises ModelError if the pipeline of the settings is not installed.
        """
        done: bool = call(
            self.kg, "find_entities", files, link=link, on_progress=on_progress, is_paused=is_paused
        ).is_done
        return done

    def _is_unchanged(self, path: str, file: File, stamp: Stamp | None) -> bool:
        known = self.files.get(path)
        if known is None or stamp is None:
            return False
        return (known.sha256, known.stamp[0]) == (file.snapshot.sha256, stamp[0])

    def _find_left(self, stored: Mapping[str, str], new: Sequence[File], paths: Collection[str]) -> list[str]:
        """Find stored files with the content of new ones that are gone, except those at `paths`.

        The system reports a move into a folder that it does not watch yet as a new file, and later as a deleted one.
        """
        wanted = {file.snapshot.sha256 for file in new}
        same = [path for path, digest in stored.items() if digest in wanted and path not in paths] if wanted else []
        return [path for path in same if _is_gone(self.root / path)]

    def _pair_moved(self, gone: Sequence[str], new: Sequence[File]) -> dict[str, str]:
        """Pair new files with stored files that are gone and had the same content."""
        by_hash = {self.stored[path]: path for path in gone if path in self.stored} if self.stored else {}
        moved = {}
        for file in new if by_hash else ():
            if (old := by_hash.pop(file.snapshot.sha256, None)) is not None:
                moved[file.path.relative_to(self.root).as_posix()] = old
        return moved

    def _load_stored(self) -> dict[str, str]:
        """Load the hashes of the files of this folder that are in the store, by their paths."""
        prefix = Literal(mint("graph", "src", DOMAIN, self.collection).value + "/")
        query = bind(STORED, prov=PROV_GRAPH, prefix=prefix, collection=Literal(self.collection))
        found = {}
        for row in select(self.kg.store.query, query):
            path = term_text(row["path"])
            if load_records.mint_source((self.root / path).as_posix()) == row["source"]:
                found[path] = named_node(row["snapshot"]).value.removeprefix(_SNAPSHOTS)
        return found


class _Update(Loading):
    """A load of some files of a folder."""

    def __init__(
        self, kg: KnowledgeGraph, part: Part, loader: Loader, moves: Moves, on_progress: Progress | None
    ) -> None:
        held = [path for path in (*part.unread, *part.gone) if part.get_hash(path) is not None]
        self.moved: Final = {part.get_graph(new): (new, old) for new, old in part.moved.items()}
        moves.moved = {graph: part.get_graph(old) for graph, (_, old) in self.moved.items()}
        super().__init__(
            kg,
            replace(loader, read=self.read, prepare=None, load_freed=None, counted=False),
            Located(tuple(part.files.values()), ()),
            on_progress,
            graphs=[part.get_graph(path) for path in (*part.files, *held)],
        )
        self.part: Final = part
        self.reading: Final = Reading.from_options(part.options, kg.settings.unredacted_collections)
        self.paths_of: Final = {part.get_graph(path): path for path in part.files}
        self.hashes: Final[dict[str, str]] = {}
        self.again: Final[list[str]] = []
        self.rejected: Final[set[str]] = set()
        self.emptied: Final[list[str]] = []

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the records of the files, and of those that others have made originals or near-duplicates."""
        yield Notice(f"{len(files):,} files", expected_rows=len(files))
        part = self.part
        for path, each in part.unread.items():
            yield Rejection(path, each.reason, unopened=each.place)
        for each in part.refused.values():
            yield Rejection(each.name, each.reason, unopened=each.place)
        for file in files:
            yield from self.read_file(file)
        for _ in range(_ROUNDS):
            changed = part.take_changed()
            if not changed:
                return
            for name, original in changed.items():
                path = name.removeprefix(f"{part.collection}/")
                if original is not None:
                    yield Withdrawal(path, (part.collection, *path.split("/")), describe_duplicate(original))
                    continue
                for file in find_in_folder(part.root, [part.root / path], self.kg.settings, FORMATS).files:
                    self.paths_of[part.get_graph(path)] = path
                    yield from self.read_file(file)

    def read_file(self, file: File) -> Iterator[Item]:
        """Yield the record of a file, its withdrawal as a near-duplicate, or why it cannot be read."""
        path = file.path.relative_to(self.part.root).as_posix()
        name = self.part.name(path)
        self.hashes[path] = file.snapshot.sha256
        self.reading.stored[name] = self.part.get_stored(name)
        try:
            yield self.reading.read_record(file, self.part.find_original, tuple(path.split("/")))
        except (SourceError, RecordError) as error:
            if self.has_changed(path):
                self.again.append(path)
                return
            self.part.forget(name)
            yield build_rejection(file, error)

    def has_changed(self, path: str) -> bool:
        """Return whether a file was changed or removed since the begin of the load."""
        return path in self.part.stamps and read_stamp(self.part.root / path) != self.part.stamps[path]

    def withdraw(self, withdrawal: Withdrawal) -> None:
        """Remove a near-duplicate. It may have been loaded before as an original."""
        graph = mint("graph", "src", DOMAIN, *withdrawal.key)
        path = "/".join(withdrawal.key[1:])
        if graph not in self.known and self.part.get_hash(path) is not None:
            self.known.update(load_records.load_versions_of(self.kg.store, [graph]))
        super().withdraw(withdrawal)
        self.part.set_hash(path, None)
        self.paths_of.pop(graph, None)
        self.record("duplicate", path, withdrawal.reason or "")

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Reject a file. Its earlier version is removed from the store: it is no longer in the folder."""
        super().reject(rejection, violations)
        source = rejection.source
        place = source or rejection.unopened
        path = os.path.relpath(place, self.part.root) if place is not None else rejection.record
        self.rejected.add(path)
        if source is not None:
            self.paths_of.pop(self.part.get_graph(path), None)
        self.record("rejected", path, rejection.reason)

    def commit_graphs(self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]) -> Commit:
        """Commit, and remove moved files from their old paths in the same commit."""
        began = time.perf_counter()
        moved = {graph: pair for graph, pair in self.moved.items() if replace.get(graph)}
        for _, old in moved.values():
            replace[self.part.get_graph(old)] = ()
        commit = super().commit_graphs(replace, records)
        self.kg.ingestion.record_commit(time.perf_counter() - began)
        self.emptied.extend(graph.value for graph, quads in replace.items() if not quads)
        for new, old in moved.values():
            self.part.set_hash(old, None)
            self.record("moved", old, new)
        written = {change.graph for change in commit.changes if change.content_sha256 is not None}
        for graph, quads in replace.items():
            if quads and graph in self.paths_of and graph not in moved:
                self.record("loaded" if graph in written else "unchanged", self.paths_of[graph])
        return commit

    def mark_stored(self, graph: NamedNode) -> None:
        """Note that the store has a file as it is."""
        super().mark_stored(graph)
        path = self.paths_of[graph]
        self.part.set_hash(path, self.hashes[path])

    def prune(self) -> None:
        """Remove the files that are gone, and those that can no longer be read."""
        paths = [path for path in (*self.part.gone, *sorted(self.rejected)) if self.part.get_hash(path) is not None]
        for part in batched(paths, _REMOVED_AT_ONCE):
            self.commit_graphs({self.part.get_graph(path): () for path in part}, {})
            self.report.removed += len(part)
            for path in part:
                self.part.set_hash(path, None)
                self.quarantine.clear(self.part.get_graph(path))
                if path not in self.rejected:
                    self.record("removed", path)
        self.remove_gone()

    def remove_gone(self) -> None:
        """Remove the files that are gone, also those that went while nobody watched, from the quarantine."""
        part, root = self.part, self.part.root
        gone = {path for path in part.gone if path not in part.refused}
        # Paths with different secrets are the same place.
        left = {redact(to_place(root / path)).text for path in (*(part.unopened - gone), *part.unread, *part.refused)}
        places = {redact(to_place(root / path)).text for path in gone}

        def is_gone(place: str) -> bool:
            if place in left or not place.startswith(f"{root.as_posix()}/"):
                return False
            return place in places or not os.path.lexists(place)

        if root.is_dir():
            self.quarantine.remove_fixed(is_gone)

    def finish(self) -> LoadReport:
        """Update the citations and the index. Mentions and entities follow when no file waits (`extract`)."""
        if self.citations is not None:
            self.citations.refresh(self.on_progress)
        self.indexed.finish()
        self.repair_index()
        remove_invalidated(self.kg.store)
        self.log_warnings()
        return self.report

    def repair_index(self) -> None:
        """Remove deleted graphs from the index. The first load of a folder repairs other gaps too."""
        if self.part.is_index_complete:
            if self.emptied:
                self.kg.search.remove(self.emptied)
        else:
            super().repair_index()

    def record(self, outcome: Outcome, path: str, text: str = "") -> None:
        """Record what became of a file."""
        self.kg.ingestion.record_file(outcome, path, self.part.collection, text)


def note_left(file: File, root: Path, old: str | None) -> File:
    """Note in a file that was moved the path that it has left, if its content is the same."""
    return file if old is None else replace(file, snapshot=replace(file.snapshot, left=((root / old).as_posix(),)))


def read_stamp(path: Path) -> Stamp | None:
    """Read the stamp of a file; None if there is none."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino, state.st_ctime_ns


def _is_gone(path: Path) -> bool:
    """Return whether there is nothing at a path. What cannot be looked at may be there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
