"""Tokens of clients: random secrets with a name, scopes, groups and an expiry, of which only hashes are stored.

A secret has 256 random bits. It cannot be guessed, so its SHA-256 is stored: a slow hash with a salt protects secrets
that people choose, and would cost each request more than all else. The file ``access/tokens.json`` of the data
directory is replaced as a whole, under a lock on its folder. A server looks at the file with each request, so the next
request with a token that was revoked is refused.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from kg.access.actors import SCOPES, Actor
from kg.data_directory import DataDirectory
from kg.errors import ConflictError, InvalidInputError, NotFoundError, StoreError, require_known_format
from kg.text import quoted

log = logging.getLogger(__name__)

PREFIX: Final = "qc_"
"""How secrets begin, so that scanners find those that were published."""
RESERVED: Final = frozenset({"local", "local-admin", "nobody"})
"""Names that the server gives to senders itself."""
USE_S: Final = 60.0
"""Seconds by which the recorded time of the last use may be late."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_AGE: Final = re.compile(r"([1-9]\d{0,4})([hdy])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "y": timedelta(days=365)}
_VERSION: Final = DataDirectory.tokens.version


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret. Times are those of the clock, in UTC."""

    name: str
    sha256: str
    scopes: tuple[str, ...]
    groups: tuple[str, ...]
    created: datetime
    expires: datetime | None = None
    used: datetime | None = None
    revoked: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Return whether the token is accepted."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    @property
    def actor(self) -> Actor:
        """The sender of a request with this token."""
        return Actor(self.name, frozenset(self.scopes), frozenset(self.groups))

    @property
    def state(self) -> str:
        """``valid``, ``expired`` or ``revoked``."""
        if self.revoked is not None:
            return "revoked"
        return "valid" if self.is_valid(datetime.now(UTC)) else "expired"


class Tokens:
    """The tokens of a data directory. Safe from any thread, and with other processes."""

    def __init__(self, directory: DataDirectory) -> None:
        self._path: Final = directory.tokens
        self._lock: Final = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: Mapping[str, Token] = {}
        self._problem: StoreError | None = None
        self._existed = False
        self._uses: dict[str, datetime] = {}

    def create(
        self, name: str, scopes: Iterable[str], groups: Iterable[str] = (), expires: datetime | None = None
    ) -> str:
        """Make a token and return its secret, which is not stored. Raises ConflictError if `name` has a valid one."""
        if not _NAME.fullmatch(name) or name in RESERVED:
            raise InvalidInputError(
                f"Invalid name {quoted(name)}. Valid: up to 64 lower-case letters, digits, '.', '_' and '-', and not "
                f"{', '.join(sorted(RESERVED))}."
            )
        wanted, belongs = tuple(dict.fromkeys(scopes)), tuple(dict.fromkeys(groups))
        if not wanted or any(scope not in SCOPES for scope in wanted):
            raise InvalidInputError(f"Unknown scopes {quoted(','.join(wanted))}. Give some of: {', '.join(SCOPES)}.")
        if wrong := [group for group in belongs if not group.strip() or not group.isprintable()]:
            raise InvalidInputError(f"Invalid group {quoted(wrong[0])}. Give names without control characters.")
        secret = PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC)
        with self._changing() as tokens:
            if any(token.name == name and token.is_valid(now) for token in tokens.values()):
                raise ConflictError(f"{name!r} has a valid token. Revoke it first: kg token revoke {name}")
            digest = hash_secret(secret)
            tokens[digest] = Token(name, digest, wanted, belongs, now, expires)
        return secret

    def revoke(self, name: str) -> None:
        """Revoke the valid token of `name`. Raises NotFoundError without one."""
        now = datetime.now(UTC)
        with self._changing() as tokens:
            found = [token for token in tokens.values() if token.name == name and token.is_valid(now)]
            if not found:
                raise NotFoundError(f"No valid token has the name {quoted(name)}. `kg token list` names all.")
            for token in found:
                tokens[token.sha256] = replace(token, revoked=now)

    def list(self) -> list[Token]:
        """List all tokens, also those that are no longer valid, the newest first."""
        return sorted(self._load().values(), key=lambda token: token.created, reverse=True)

    def find(self, digest: str) -> Token | None:
        """Find the valid token whose secret has the hash `digest` (`hash_secret`)."""
        token = self._load().get(digest)
        return token if token is not None and token.is_valid(datetime.now(UTC)) else None

    def exist(self) -> bool:
        """Return whether a token was ever made here. Revoking it, or removing the file, opens no server that runs."""
        self._existed = self._existed or bool(self._load())
        return self._existed

    def note_use(self, token: Token) -> bool:
        """Remember that `token` was used. Return whether `write_uses` should be called."""
        now = datetime.now(UTC)
        last = self._uses.get(token.sha256, token.used)
        if last is not None and (now - last).total_seconds() < USE_S:
            return False
        self._uses[token.sha256] = now
        return True

    def write_uses(self) -> None:
        """Write the times of the last uses. Blocks. A file that cannot be written is logged."""
        try:
            with self._changing() as tokens:
                for digest, used in self._uses.items():
                    if digest in tokens:
                        tokens[digest] = replace(tokens[digest], used=used)
        except StoreError as error:
            log.warning("%s The times of the last uses of tokens are not recorded.", error)

    def _load(self) -> Mapping[str, Token]:
        """Read the file if it has changed. If it is damaged, the tokens of before stay."""
        try:
            state = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):  # a data directory that is a file is refused where it is opened
            self._problem = None
            return {}
        except OSError as error:
            raise StoreError(f"Cannot read {self._path}: {error.strerror or error}.") from error
        stamp = (state.st_ino, state.st_mtime_ns, state.st_size)
        with self._lock:
            if stamp != self._stamp:
                try:
                    self._tokens, self._problem = _read(self._path), None
                except StoreError as error:
                    if self._stamp is None:
                        raise
                    log.error("%s The tokens of before stay valid.", error)
                    self._problem = error
                    if isinstance(error.__cause__, OSError):  # such as too many open files: read it again next time
                        return self._tokens
                self._stamp = stamp
            return self._tokens

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """Give the tokens to change, and write them when the block ends without an error.

        Raises StoreError if the file cannot be read or written.
        """
        folder = self._path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"Cannot write {self._path}: {error.strerror or error}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            tokens = dict(self._load())
            if self._problem is not None:  # what cannot be read must not be replaced
                raise self._problem
            yield tokens
            write_private(self._path, _format(tokens))
        finally:
            os.close(descriptor)


def hash_secret(secret: str) -> str:
    """Compute the hash under which a secret is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def parse_expiry(text: str, now: datetime) -> datetime | None:
    """Parse an expiry: an age such as ``90d``, ``12h``, ``1y``, or ``never`` (None)."""
    if text == "never":
        return None
    if (found := _AGE.fullmatch(text)) is None:
        raise InvalidInputError(f"Invalid expiry {quoted(text)}. Valid: a number of h, d or y, such as 90d, or never.")
    try:
        return now + int(found[1]) * _UNITS[found[2]]
    except OverflowError:
        raise InvalidInputError(f"Invalid expiry {quoted(text)}: after the last date. Give `never`.") from None


def write_private(path: Path, content: str) -> None:
    """Write a file that only its own user can read, in place of the one at `path`. Raises StoreError.

    It is created with its mode and renamed when complete: nobody else can have it open, or read half of it.
    """
    partial = path.with_suffix(".partial")
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error


@dataclass(frozen=True, slots=True)
class _File:
    version: int
    tokens: tuple[Token, ...]


@cache
def _file() -> TypeAdapter[_File]:
    return TypeAdapter(_File)


def _format(tokens: Mapping[str, Token]) -> str:
    return _file().dump_json(_File(_VERSION, tuple(tokens.values())), indent=1).decode()


def _read(path: Path) -> Mapping[str, Token]:
    """Read a file of tokens. Raises StoreVersionError if a newer version wrote it, StoreError for any other fault."""
    try:
        content = path.read_bytes()
        require_known_format("The file of tokens", path, _parse_format(content), _VERSION)
        parsed = _file().validate_json(content)
        if parsed.version != _VERSION:
            raise ValueError(f"unknown version {parsed.version}")
    except (OSError, ValueError) as error:
        raise StoreError(f"Cannot read {path}: {error}. Restore or remove the file.") from error
    return {token.sha256: token for token in parsed.tokens}


def read_format(path: Path) -> int:
    """Read the format of a file of tokens, 0 without one or if it is damaged."""
    try:
        return _parse_format(path.read_bytes())
    except OSError:
        return 0


def _parse_format(content: bytes) -> int:
    try:
        version = json.loads(content)["version"]
    except (ValueError, KeyError, TypeError):
        return 0
    return version if isinstance(version, int) else 0
