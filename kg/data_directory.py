"""The files and folders of a data directory: one object for their paths, and one table of what happens to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, overload

REJECTED: Final = re.compile(r"[a-z][a-z0-9_]*-[0-9a-f]{24}")
"""Name of a record in quarantine, without the endings of its files."""

Kind = Literal["content", "state", "cache", "transient", "kept", "process", "log", "access", "former", "given"]


@dataclass(frozen=True)
class Entry:
    """A file or folder, or those whose names match a pattern. As an attribute of a data directory, it is its path.

    Content is backed up, and replaced by a restore. A compaction removes caches. The next start or restore finishes or
    removes transient files. People remove kept ones. A restore leaves logs and access data. Earlier versions wrote
    former ones, which an upgrade or a compaction removes. Given ones are never written.
    """

    name: str
    """Its path in the data directory, or a pattern of paths."""
    contents: str
    kind: Kind
    source: str = ""
    """What writes it again if it is lost."""
    version: int = 0
    """The version of its format, 0 if that has none."""

    @property
    def prefix(self) -> str:
        """The name before the star of a pattern."""
        return self.name.partition("*")[0]

    @overload
    def __get__(self, directory: None, owner: type[object]) -> Entry: ...
    @overload
    def __get__(self, directory: DataDirectory, owner: type[object]) -> Path: ...
    def __get__(self, directory: DataDirectory | None, owner: type[object]) -> Entry | Path:
        """Get the entry itself from the class, and its path from a data directory."""
        return self if directory is None else directory.path / self.name


@dataclass(frozen=True)
class DataDirectory:
    """The paths in the data directory `path`, which need not exist. A point of a backup has the same.

    A restore moves the content in this order, the format version last: without it there is no data directory.
    """

    path: Path

    store = Entry("store", "the quads, in the files of the engine", "content")
    index = Entry("index", "the search index, with the vectors", "content", "`kg reindex`", 10)
    quarantine = Entry("quarantine", "rejected records", "content")
    source_paths = Entry("source-paths.txt", "the paths of loaded files, for the next load", "content")
    format = Entry("format.json", "the version of the data directory", "content", version=1)

    derivations = Entry("derivations.sqlite", "the inputs and outputs of derivations", "state", "the next load", 1)
    load_queue = Entry("loads.sqlite", "loads that clients submitted, and their reports", "state", "their clients", 1)
    left_out_files = Entry("files/left_out.json", "near-duplicates without a graph", "state", "the next load of files")
    backups = Entry("backups.jsonl", "the folders of backups", "state")

    replica = Entry("replica.json", "the primary of a replica, and the point that it serves", "state")
    points = Entry("points", "the stores of a replica, by point", "state", "the next contact with the primary")

    snapshots = Entry("snapshots", "checkpoints that queries read, and temporary files", "cache", "queries")
    fetched = Entry("fetched", "files from the web that loads read", "cache", "the next load")
    schema = Entry("schema.json", "state of an earlier version", "former")
    checked = Entry("checked.json", "state of an earlier version", "former")
    mentions = Entry("mentions", "state of an earlier version", "former")
    entities = Entry("entities", "state of an earlier version", "former")
    citations = Entry("citations", "state of an earlier version", "former")
    summaries = Entry("summaries", "summaries of an earlier version", "former")
    partial_files = Entry("*.partial", "files and folders that a killed process was writing", "cache")
    partial_tokens = Entry("access/*.partial", "tokens that a killed process was writing", "cache")
    old_snapshots = Entry("snapshots-*", "checkpoints of a killed process", "cache")

    upgrade = Entry("upgrade.json", "the upgrade in progress", "transient")
    unfinished_commit = Entry("unfinished-commit.json", "the bulk commit in progress", "transient")
    bulk_texts = Entry("bulk-commit-*", "the quads of a bulk commit, for the engine to read", "transient")
    restoring = Entry(".restoring", "the data of a restore in progress", "transient")
    replaced = Entry(".replaced", "data that a restore or compaction replaces", "transient")
    partial_store = Entry("store.partial", "a store that is being rebuilt", "transient")
    rebuilt_store = Entry("store.rebuilt", "a complete store that takes the place of another", "transient")
    unjudged_logs = Entry("log-before-start-*", "logs of the engine, until it has recovered them", "transient")

    damaged_load_queues = Entry("loads-damaged-*", "queues of loads that were damaged at a start", "kept")
    damaged_logs = Entry("damaged-log-*", "logs that were damaged at a start", "kept")
    damaged_stores = Entry("store-damaged-*", "stores that `kg doctor --repair` has replaced", "kept")

    lock = Entry("lock", "the process that has the data directory open", "process")
    token = Entry("token", "the local token of the running server, a key", "process", "each start")

    audit = Entry("audit", "the audit log", "log")

    tokens = Entry("access/tokens.json", "the hashes of the tokens of clients", "access", version=1)
    oauth = Entry("access/oauth", "clients and sessions of OAuth, encrypted", "access", "each client signs in again")

    models = Entry("models", "models of `QUADCITE_MODELS_DIR`, if that is here", "given")
    lost_and_found = Entry("lost+found", "files that the file system recovers", "given")

    def find(self, wanted: Entry | Kind) -> list[Path]:
        """Find the files and folders of an entry, or of the entries of a kind. Those of a pattern are sorted."""
        return [
            path for entry in ENTRIES if wanted in (entry, entry.kind) for path in sorted(self.path.glob(entry.name))
        ]

    def find_half_rejected(self) -> list[Path]:
        """Find the files of the quarantine that belong to no record there: a killed process left them."""
        names = {path: path.name.partition(".")[0] for path in sorted(self.quarantine.glob("*"))}
        return [
            path
            for path, name in names.items()
            if REJECTED.fullmatch(name)
            and (path.suffix == ".partial" or not (self.quarantine / f"{name}.json").exists())
        ]

    def name_now(self, entry: Entry, end: str = "") -> Path:
        """Name a new file or folder of an entry with a pattern by the time."""
        return self.path / f"{entry.prefix}{datetime.now(UTC):%Y%m%dT%H%M%S%f}{end}"

    def find_replaceable(self) -> list[Path]:
        """Find the files and folders that a restore replaces, the format version first."""
        access = self.tokens.parent  # a restore must not make revoked tokens valid again
        staying = (self.lock, self.restoring, self.replaced, self.lost_and_found, access, *self.find("log"))
        present = (path for path in self.path.iterdir() if path not in staying)
        return sorted(present, key=lambda path: path != self.format)


ENTRIES: Final = tuple(entry for entry in vars(DataDirectory).values() if isinstance(entry, Entry))
"""The table of all entries."""
