"""The audit log: who did what, on which state of the store, by which decision, and with which outcome.

Entries are lines of JSON in the folder ``audit`` of the data directory, in files that are named by the number of their
first entry and are only appended to. Each entry has its number, the SHA-256 of the entry before (``previous``) and its
own, so a removed, changed or inserted line is found (`verify`). All processes that append take a lock on the folder.

A request has one `Entry` in `ENTRY`, which the layers of the server fill while they learn of it. An entry has no
secrets: its arguments are those of the log of calls (`kg.server.call_log.redact`).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from kg.access.actors import Actor
from kg.data_directory import DataDirectory
from kg.errors import AuditUnavailableError, QuadciteError
from kg.observability import count_audit_entry, count_denial
from kg.settings import Settings
from kg.text import to_single_line

log = logging.getLogger(__name__)

OK: Final = "ok"
DENIED: Final = frozenset({"unauthorized", "forbidden", "quota_exceeded"})
"""Outcomes that refuse a caller."""
EXPIRED: Final = "audit.expire"
"""The action of an entry that records the removal of the oldest file."""
LOST: Final = "audit.lost"
"""The action of an entry that counts the entries that could not be written before it."""

_FILES: Final = 16
"""Files that share `audit_max_mb`."""
_NAME: Final = re.compile(r"\d{12}\.jsonl")
_START: Final = "0" * 64
"""The `previous` of the first entry."""
_END: Final = re.compile(rb',"sha256":"([0-9a-f]{64})"\}\n?\Z')
_TAIL: Final = 1 << 20
_LOCK_S: Final = 0.1
"""Maximum seconds that an entry waits for another process that writes."""
_WARN_S: Final = 60.0
_PEERS: Final = 1_000
_FAILURES_A_MINUTE: Final = 10


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of the policies: whether the request is allowed, the policies that determined it, and their errors."""

    allowed: bool
    policies: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Entry:
    """A request, with the facts about it that are known so far. `arguments` are redacted."""

    action: str
    request_id: str = ""
    actor: Actor | None = None
    peer: str = ""
    arguments: Any = None
    snapshot: int | None = None
    decision: Decision | None = None
    outcome: str = OK
    began: float = field(default_factory=time.perf_counter)
    is_written: bool = False
    """Whether it was written, or a more exact entry of the same request in its place."""
    is_streamed: bool = False
    """Whether its outcome is known at the end of the response only."""

    def describe(self) -> dict[str, Any]:
        """Build the members of its line, without those of the chain."""
        actor, decision = self.actor, self.decision
        said: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "request_id": self.request_id,
            "who": "" if actor is None else actor.name,
            "groups": [] if actor is None else sorted(actor.groups),
            "peer": self.peer,
            "action": self.action,
            "arguments": self.arguments,
            "snapshot": self.snapshot,
            "decision": None,
            "outcome": self.outcome,
            "ms": round((time.perf_counter() - self.began) * 1_000, 1),
        }
        if decision is not None:
            said["decision"] = {"allowed": decision.allowed, "policies": list(decision.policies)}
            if decision.problems:
                said["decision"]["problems"] = list(decision.problems)
        return said


ENTRY: Final[ContextVar[Entry | None]] = ContextVar("audit_entry", default=None)
"""The entry of the request in progress. One object for all tasks and threads of the request."""


def note(**known: Any) -> None:
    """Set attributes of the entry of the request in progress, if there is one."""
    if (entry := ENTRY.get()) is not None:
        for name, value in known.items():
            setattr(entry, name, value)


def record_decision(decision: Decision) -> None:
    """Record the decision of the policies on the request in progress."""
    note(decision=decision)


class AuditLog:
    """Appends to the log in the data directory `directory`. Every method may be called from any thread.

    Its files have `max_bytes` together; the oldest are removed, also those whose last entry is older than `days`. If an
    entry cannot be written and it is `required`, `record` raises, else it warns.
    """

    def __init__(
        self, directory: DataDirectory, *, days: int = 90, max_bytes: int = 1 << 30, required: bool = False
    ) -> None:
        self.required: Final = required
        self.problem: str | None = None
        """Why the last entry could not be written, or None."""
        self._folder: Final = directory.audit
        self._days: Final = days
        self._max_bytes: Final = max_bytes
        self._lock: Final = threading.Lock()
        self._folder_file = self._file = -1
        self._seen: tuple[int, int] | None = None
        self._number, self._previous = 0, _START
        self._lost = 0
        self._warned_at = -_WARN_S

    @classmethod
    def from_settings(cls, settings: Settings) -> Self | None:
        """Build the log of the settings; None if they turn it off."""
        if not settings.audit:
            return None
        return cls(
            settings.directory,
            days=settings.audit_days,
            max_bytes=settings.audit_max_mb << 20,
            required=settings.audit_required,
        )

    def record(self, entry: Entry) -> None:
        """Write an entry. Raises AuditUnavailableError if it cannot be written and the log is required."""
        if entry.outcome in DENIED:
            count_denial(entry.outcome)
        try:
            self._write(entry.describe())
        except OSError as error:
            self._fail(error)
            if self.required:
                raise self._refusal() from error
        else:
            count_audit_entry(written=True)

    def require_writable(self) -> None:
        """Raise AuditUnavailableError if the log is required and cannot be written now, before a request begins."""
        if self.problem is None or not self.required:
            return
        try:
            self._write(None)
        except OSError as error:
            self.problem = _describe(error)
            raise self._refusal() from error

    def close(self) -> None:
        """Sync and close the files."""
        with self._lock:
            if self._file >= 0:
                os.fsync(self._file)
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refusal(self) -> AuditUnavailableError:
        return AuditUnavailableError(
            f"The audit log cannot be written ({self.problem}), and QUADCITE_AUDIT_REQUIRED refuses requests without "
            "an entry. Correct the disk; no restart is needed."
        )

    def _fail(self, error: OSError) -> None:
        count_audit_entry(written=False)
        with self._lock:
            self.problem = _describe(error)
            self._lost += 1
            self._close()
            now = time.monotonic()
            if now - self._warned_at < _WARN_S:
                return
            self._warned_at = now
        log.warning("The audit log in %s cannot be written: %s. %d entries are lost.", self._folder, error, self._lost)

    def _write(self, said: dict[str, Any] | None) -> None:
        """Append an entry, after one that counts lost entries if there are any."""
        with self._lock, self._locked_folder():
            self._follow()
            if self._lost:
                self._append(Entry(LOST, arguments={"entries": self._lost}, outcome="lost").describe())
                self._lost = 0
            if said is not None:
                self._append(said)
            self.problem = None

    @contextmanager
    def _locked_folder(self) -> Iterator[None]:
        if self._folder_file < 0:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._folder_file = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        end = time.monotonic() + _LOCK_S
        while True:
            try:
                fcntl.flock(self._folder_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # another process writes; it may be stopped
                if time.monotonic() >= end:
                    raise
                time.sleep(0.001)
        try:
            yield
        finally:
            if self._folder_file >= 0:
                fcntl.flock(self._folder_file, fcntl.LOCK_UN)

    def _follow(self) -> None:
        """Open the newest file, and find the end of the chain, unless no other process has written since."""
        if self._file >= 0 and self._seen == self._look():
            return
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        files = list_files(self._folder)
        newest = files[-1] if files else self._name(1)
        self._open(newest)
        self._number, self._previous = 0, _START
        for path in reversed(files):  # the newest may have no complete entry
            if (found := _read_end(path)) is not None:
                self._number, self._previous = found
                break
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":  # a process was killed while it wrote
            os.write(self._file, b"\n")

    def _append(self, said: dict[str, Any]) -> None:
        body = _encode({"n": self._number + 1, **said, "previous": self._previous})
        digest = hashlib.sha256(body).hexdigest()
        line = body[:-1] + b',"sha256":"' + digest.encode() + b'"}\n'
        size = os.fstat(self._file).st_size
        if size and size + len(line) > self._max_bytes // _FILES:
            self._rotate()
            self._append(said)
            return
        if os.write(self._file, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._number, self._previous = self._number + 1, digest
        self._seen = self._look()

    def _rotate(self) -> None:
        """Begin a file, and remove the oldest ones."""
        os.fsync(self._file)
        os.close(self._file)
        self._open(self._name(self._number + 1))
        os.fsync(self._folder_file)
        before = time.time() - timedelta(days=self._days).total_seconds()
        files = list_files(self._folder)[:-1]
        too_many = len(files) + 1 - _FILES
        for place, path in enumerate(files):
            if place >= too_many and path.stat().st_mtime >= before:
                break
            number, last = _read_end(path) or (0, "")
            path.unlink()
            about = {"file": path.name, "last": number, "last_sha256": last}
            self._append(Entry(EXPIRED, arguments=about).describe())

    def _open(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(path, flags, 0o600)

    def _name(self, number: int) -> Path:
        return self._folder / f"{number:012d}.jsonl"

    def _look(self) -> tuple[int, int]:
        """Look at what changes when another process writes: the folder's files, and the size of the newest."""
        return os.fstat(self._folder_file).st_mtime_ns, os.fstat(self._file).st_size

    def _close(self) -> None:
        for descriptor in (self._file, self._folder_file):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._folder_file = -1
        self._seen = None


@contextmanager
def recording(settings: Settings, action: str, sender: Actor, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Record the block as one entry of the log of the settings, if they have one: a command that opens no graph."""
    entry = Entry(action, actor=sender, arguments=arguments)
    try:
        yield
    except QuadciteError as error:
        entry.outcome = error.code
        raise
    finally:
        if (audit := AuditLog.from_settings(settings)) is not None:
            with audit:
                audit.record(entry)


class FailureLimiter:
    """Limits the entries of failed authentications: `_FAILURES_A_MINUTE` of a peer, so that nobody fills the log."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._counts: dict[str, int] = {}
        self._began = clock()

    def allows(self, peer: str) -> bool:
        """Count a failure of `peer`; return whether it is written."""
        if (now := self._clock()) - self._began >= 60:
            self._began = now
            self._counts.clear()
        if peer not in self._counts and len(self._counts) >= _PEERS:
            return False
        self._counts[peer] = self._counts.get(peer, 0) + 1
        return self._counts[peer] <= _FAILURES_A_MINUTE


def list_files(folder: Path) -> list[Path]:
    """List the files of the log in `folder`, the oldest first."""
    return sorted(path for path in folder.glob("*.jsonl") if _NAME.fullmatch(path.name))


def read_entries(directory: DataDirectory) -> Iterator[dict[str, Any]]:
    """Read all entries, the oldest first, without the incomplete lines of killed processes."""
    for path in list_files(directory.audit):
        with path.open("rb") as lines:
            for line in lines:
                if (found := _parse(line)) is not None:
                    yield found


@dataclass(slots=True)
class Verification:
    """The result of `verify`: the number of entries, the hash of the last one, and the problems."""

    entries: int = 0
    head: str = _START
    incomplete_lines: int = 0
    """Lines that a killed process has left, with no entry missing."""
    problems: list[str] = field(default_factory=list)


def verify(directory: DataDirectory, head: str | None = None) -> Verification:
    """Verify the chain of all entries: no line was removed, changed, inserted or moved.

    The end of the log can be cut without a trace in it. `head`, the hash that an earlier verification returned, must be
    that of an entry.
    """
    result = Verification()
    number, first, expired, seen = 0, "", set[str](), head is None
    for path in list_files(directory.audit):
        for place, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
            where = f"{path.name}, line {place}"
            entry = _parse(line)
            if entry is None:
                result.incomplete_lines += 1
                continue
            body = _END.sub(b"}", line)
            if hashlib.sha256(body).hexdigest() != entry["sha256"]:
                result.problems.append(f"{where}: entry {entry['n']} was changed.")
            if not result.entries:
                number, first = entry["n"], entry["previous"]
            elif entry["previous"] != result.head or entry["n"] != number + 1:
                missing = entry["n"] - number - 1
                lack = (
                    f"{missing} entries before it are missing" if missing > 0 else "it does not follow the one before"
                )
                result.problems.append(f"{where}: entry {entry['n']}: {lack}.")
            if entry.get("action") == EXPIRED:
                expired.add(entry["arguments"]["last_sha256"])
            result.entries += 1
            result.head, number = entry["sha256"], entry["n"]
            seen = seen or entry["sha256"] == head
    if result.entries and first != _START and first not in expired:
        result.problems.insert(
            0, f"The entries before {number - result.entries + 1} are missing, and no entry expired them."
        )
    if not seen:
        result.problems.append(f"No entry has the hash {head}: the log was cut or replaced.")
    return result


def _parse(line: bytes) -> dict[str, Any] | None:
    if (found := _END.search(line)) is None:
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    complete = isinstance(entry, dict) and isinstance(entry.get("n"), int) and isinstance(entry.get("previous"), str)
    return entry if complete and entry["sha256"] == found[1].decode() else None


def _read_end(path: Path) -> tuple[int, str] | None:
    """Read number and hash of the last complete entry of a file."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        lines = file.read().splitlines(keepends=True)
    found = next((entry for line in reversed(lines) if (entry := _parse(line)) is not None), None)
    return None if found is None else (found["n"], found["sha256"])


def _encode(said: Mapping[str, Any]) -> bytes:
    line = json.dumps(said, ensure_ascii=False, separators=(",", ":"), default=str)
    return to_single_line(line, len(line)).encode(errors="replace")


def _describe(error: OSError) -> str:
    return error.strerror or str(error)
