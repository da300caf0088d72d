"""A folder whose files are loaded when they change: the files as they were last read, and loads of changed ones.

After each load the graphs of the folder are those of a load of the whole folder: also of files whose near-duplicate has
come or gone, and without those of files that can no longer be read. Mentions and entities follow (`extract`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import ModelError, RecordError, SourceError
from kg.ingestion import Outcome
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import load_records
from kg.provenance.load_records import RecordOrigin
from kg.search.index_sync import Progress
from kg.settings import Settings
from kg.shacl.report import Violation
from kg.sparql.terms import bind
from kg.store.protocol import Commit, named_node, select, term_text
from kg.vocabulary import PROV_GRAPH, iri_prefix, mint
from loaders.files.extraction.language_pipeline import load_pipeline
from loaders.files.graph.entities import LONG, Pause, find_pending, load_lengths, remove_invalidated
from loaders.files.graph.entities import refresh as refresh_entities
from loaders.files.graph.moves import Moves, name_file
from loaders.files.graph.stored_files import LeftOutFiles, load_signatures, load_stored
from loaders.files.loader import DOMAIN, FORMATS, Item, Reading, StoredFile, build_rejection, describe_duplicate
from loaders.files.near_duplicates import NearDuplicates
from loaders.files.secrets import redact
from loaders.load_report import LoadReport
from loaders.mentions.graph.refresh import refresh as refresh_mentions
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

BuildLoader = Callable[[Settings, Mapping[str, str], Moves], Loader]

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


class WatchedFolder:
    """One folder, for one thread. `build` configures the loader of a collection."""

    def __init__(self, kg: KnowledgeGraph, root: Path, collection: str | None, build: BuildLoader) -> None:
        self.kg: Final = kg
        self.root: Final = root
        self.collection: Final = collection or root.name or DOMAIN
        options = {"collection": collection} if collection else {}
        self.moves: Final = Moves()
        self.loader: Final = build(kg.settings, options, self.moves)
        self.reading: Final = Reading.from_options(options, kg.settings.unredacted_collections)
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

        Those are the files that changed while they were read.
        """
        began = time.perf_counter()
        stored = self.stored = self._load_stored() if self.stored is None else self.stored
        paths = dict.fromkeys([*changes.paths, *(changes.moved[new] for new in changes.paths if new in changes.moved)])
        stamps = {path: read_stamp(self.root / path) for path in paths}
        located = find_in_folder(self.root, (self.root / path for path in paths), self.kg.settings, FORMATS)
        files = {file.path.relative_to(self.root).as_posix(): file for file in located.files}
        unread = {each.path.relative_to(self.root).as_posix(): each for each in located.unread}
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
        update = _Update(self, files, unread, refused, gone, moved, stamps, on_progress)
        update.run(prune=True)
        now = time.time_ns()
        for path in gone:
            self.files.pop(path, None)
        for path in (*files, *unread):
            stamp = stamps[path]
            if stamp is not None and path not in update.again:
                digest = files[path].snapshot.sha256 if path in files else None
                self.files[path] = Known(stamp, digest, now - max(stamp[0], stamp[3]) < _FRESH_NS)
        for path in refused:
            if (stamp := stamps[path]) is not None:
                self.files[path] = Known(stamp, None, is_fresh=False)
        self.kg.ingestion.record_load(len(files), time.perf_counter() - began)
        LeftOutFiles(self.kg.settings.data_dir).forget(map(self.name, paths))  # the watcher looks after them
        return [*again, *update.again]

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
        refresh_mentions(self.kg)
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

    def load_pipeline(self) -> None:
        """Load the pipeline that finds entities, which takes seconds. `extract` reports why it cannot be loaded."""
        with suppress(ModelError):
            load_pipeline(self.kg.settings.spacy_pipeline)

    def extract(
        self,
        files: Collection[NamedNode],
        on_progress: Progress | None = None,
        pause: Pause | None = None,
        *,
        link: bool = True,
    ) -> bool:
        """Find the entities of these files and, with `link`, links between entities, which reads all of them.

        Returns false if it was paused. Raises ModelError if the pipeline of the settings is not installed.
        """
        return refresh_entities(self.kg, files, link=link, on_progress=on_progress, pause=pause).is_done

    def name(self, path: str) -> str:
        """Name a file among those that are compared as near-duplicates."""
        return f"{self.collection}/{path}"

    def get_graph(self, path: str) -> NamedNode:
        """Get the name of the graph of a file."""
        return mint("graph", "src", DOMAIN, self.collection, *PurePosixPath(path).parts)

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
        self,
        folder: WatchedFolder,
        files: Mapping[str, File],
        unread: Mapping[str, Unread],
        refused: Mapping[str, Unread],
        gone: Sequence[str],
        moved: Mapping[str, str],
        stamps: Mapping[str, Stamp | None],
        on_progress: Progress | None,
    ) -> None:
        stored = folder.stored if folder.stored is not None else {}
        graphs = [folder.get_graph(path) for path in (*files, *(path for path in (*unread, *gone) if path in stored))]
        self.moved: Final = {folder.get_graph(new): (new, old) for new, old in moved.items()}
        folder.moves.moved = {graph: folder.get_graph(old) for graph, (_, old) in self.moved.items()}
        super().__init__(
            folder.kg,
            replace(folder.loader, read=self.read, prepare=None, load_freed=None, refresh=None, counted=False),
            Located(tuple(files.values()), ()),
            on_progress,
            graphs=graphs,
        )
        self.folder: Final = folder
        self.unread: Final = unread
        self.refused: Final = refused
        self.gone: Final = gone
        self.stamps: Final = stamps
        self.stored: Final = stored
        self.paths_of: Final = {folder.get_graph(path): path for path in files}
        self.hashes: Final[dict[str, str]] = {}
        self.again: Final[list[str]] = []
        self.rejected: Final[set[str]] = set()
        self.emptied: Final[list[str]] = []

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the records of the files, and of those that others have made originals or near-duplicates."""
        yield Notice(f"{len(files):,} files", expected_rows=len(files))
        duplicates, stored = self.folder.duplicates, self.folder.reading.stored
        for path in (*self.gone, *self.unread):
            duplicates.remove(self.folder.name(path))
        own = f"{self.folder.collection}/"
        others = {name: each.signature for name, each in stored.items() if not name.startswith(own) and each.signature}
        duplicates.set_stored(others)
        for new, old in self.moved.values():
            tags = stored.get(self.folder.name(old), StoredFile()).tags
            stored[self.folder.name(new)] = StoredFile(tags=tags)
        for path, each in self.unread.items():
            yield Rejection(path, each.reason, unopened=each.place)
        for each in self.refused.values():
            yield Rejection(each.name, each.reason, unopened=each.place)
        for file in files:
            yield from self.read_file(file)
        for _ in range(_ROUNDS):
            changed = duplicates.take_changed()
            if not changed:
                return
            for name, original in changed.items():
                path = name.removeprefix(f"{self.folder.collection}/")
                if original is not None:
                    yield Withdrawal(path, (self.folder.collection, *path.split("/")), describe_duplicate(original))
                    continue
                root = self.folder.root
                for file in find_in_folder(root, [root / path], self.kg.settings, FORMATS).files:
                    self.paths_of[self.folder.get_graph(path)] = path
                    yield from self.read_file(file)

    def read_file(self, file: File) -> Iterator[Item]:
        """Yield the record of a file, its withdrawal as a near-duplicate, or why it cannot be read."""
        path = file.path.relative_to(self.folder.root).as_posix()
        duplicates = self.folder.duplicates
        self.hashes[path] = file.snapshot.sha256
        try:
            yield self.folder.reading.read_record(file, duplicates, tuple(path.split("/")))
        except (SourceError, RecordError) as error:
            if self.has_changed(path):
                self.again.append(path)
                return
            duplicates.remove(self.folder.name(path))
            yield build_rejection(file, error)

    def has_changed(self, path: str) -> bool:
        """Return whether a file was changed or removed since the begin of the load."""
        return path in self.stamps and read_stamp(self.folder.root / path) != self.stamps[path]

    def withdraw(self, withdrawal: Withdrawal) -> None:
        """Remove a near-duplicate. It may have been loaded before as an original."""
        graph = mint("graph", "src", DOMAIN, *withdrawal.key)
        path = "/".join(withdrawal.key[1:])
        if path in self.stored and graph not in self.known:
            self.known.update(load_records.load_versions_of(self.kg.store, [graph]))
        super().withdraw(withdrawal)
        self.stored.pop(path, None)
        self.paths_of.pop(graph, None)
        self.record("duplicate", path, withdrawal.reason or "")

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Reject a file. Its earlier version is removed from the store: it is no longer in the folder."""
        super().reject(rejection, violations)
        source = rejection.source
        place = source or rejection.unopened
        path = os.path.relpath(place, self.folder.root) if place is not None else rejection.record
        self.rejected.add(path)
        if source is not None:
            self.paths_of.pop(self.folder.get_graph(path), None)
        self.record("rejected", path, rejection.reason)

    def commit_graphs(self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]) -> Commit:
        """Commit, and remove moved files from their old paths in the same commit."""
        began = time.perf_counter()
        moved = {graph: pair for graph, pair in self.moved.items() if replace.get(graph)}
        for _, old in moved.values():
            replace[self.folder.get_graph(old)] = ()
        commit = super().commit_graphs(replace, records)
        self.folder.kg.ingestion.record_commit(time.perf_counter() - began)
        self.emptied.extend(graph.value for graph, quads in replace.items() if not quads)
        for new, old in moved.values():
            self.stored.pop(old, None)
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
        self.stored[path] = self.hashes[path]

    def prune(self) -> None:
        """Remove the files that are gone, and those that can no longer be read."""
        paths = [path for path in (*self.gone, *sorted(self.rejected)) if path in self.stored]
        for start in range(0, len(paths), _REMOVED_AT_ONCE):
            part = paths[start : start + _REMOVED_AT_ONCE]
            self.commit_graphs({self.folder.get_graph(path): () for path in part}, {})
            self.report.removed += len(part)
            for path in part:
                self.stored.pop(path, None)
                self.quarantine.clear(self.folder.get_graph(path))
                if path not in self.rejected:
                    self.record("removed", path)
        self.remove_gone()

    def remove_gone(self) -> None:
        """Remove the files that are gone, also those that went while nobody watched, from the quarantine."""
        root = self.folder.root
        gone = {path for path in self.gone if path not in self.refused}
        unopened = {path for path, known in self.folder.files.items() if known.sha256 is None} - gone
        # Paths with different secrets are the same place.
        left = {redact(to_place(root / path)).text for path in (*unopened, *self.unread, *self.refused)}
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
        if self.folder.is_index_complete:
            if self.emptied:
                self.kg.search.remove(self.emptied)
        else:
            super().repair_index()
            self.folder.is_index_complete = True

    def record(self, outcome: Outcome, path: str, text: str = "") -> None:
        """Record what became of a file."""
        self.kg.ingestion.record_file(outcome, path, self.folder.collection, text)


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
