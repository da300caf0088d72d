"""Where a replica reads the points of its primary: a folder of backups, or a server that serves one over HTTP."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from kg.errors import NotFoundError, StoreDamagedError, UpstreamError
from kg.files import copy_with_holes
from kg.integrity.backup_folder import BackupFolder, Point, StoredFile, parse_point
from kg.text import to_single_line

_PIECE_BYTES: Final = 1 << 18
_ATTEMPTS: Final = 5
"""Attempts to get a file, each of which goes on where the former ended."""
_CONNECT_S: Final = 10.0
_SILENT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Offer:
    """The newest point of a primary, and the generation of its store, None: unknown."""

    number: int
    confirmed: datetime
    generation: int | None = None


class PointSource(Protocol):
    """The points of a primary. Raises UpstreamError if it cannot be reached, NotFoundError for a missing one."""

    @property
    def address(self) -> str:
        """The URL or the folder."""
        ...

    def find_newest(self) -> Offer:
        """Find the newest point."""
        ...

    def load(self, number: int) -> Point:
        """Load a point. Raises StoreDamagedError too."""
        ...

    def fetch(self, file: StoredFile, target: Path) -> None:
        """Copy the bytes of a file. Raises StoreDamagedError if they have another hash, and OSError."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Keep the files in the block, if possible."""
        ...


class FolderSource:
    """A folder of backups on this machine, perhaps a mounted one."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._folder: Final = BackupFolder(path)

    @property
    def address(self) -> str:
        """The folder."""
        return str(self._path)

    def find_newest(self) -> Offer:
        """Find the newest point."""
        if not self._folder.exists:
            raise UpstreamError(f"{self.address} is not a folder of backups now: it is missing or not mounted.")
        points = self._folder.require().list_points()
        if not points:
            raise NotFoundError(f"{self.address} has no point yet.")
        return Offer(points[-1].number, points[-1].confirmed)

    def load(self, number: int) -> Point:
        """Load a point."""
        return self._folder.load(number)

    def fetch(self, file: StoredFile, target: Path) -> None:
        """Copy the bytes of a file."""
        try:
            digest = copy_with_holes(self._folder.find_file(file), target)
        except FileNotFoundError:
            raise NotFoundError(f"{self.address} does not have {file.sha256} any more.") from None
        if digest != file.sha256:
            raise StoreDamagedError(f"{self._folder.find_file(file)} is damaged. Run `kg backup verify`.")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the files in the block."""
        with self._folder.reading():
            yield


class UrlSource:
    """A server that serves its folder of backups (`kg.server.backup_routes`)."""

    def __init__(self, url: str, token: str | None) -> None:
        import httpx

        self._url: Final = url.rstrip("/")
        self._client: Final = httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(_SILENT_S, connect=_CONNECT_S),
            trust_env=False,
        )

    @property
    def address(self) -> str:
        """The URL."""
        return self._url

    def find_newest(self) -> Offer:
        """Find the newest point."""
        content = self._get("/admin/backups")
        try:
            fields = json.loads(content)
            points = fields["points"]
            if not points:
                raise NotFoundError(f"{self.address} has no point yet.")
            confirmed = datetime.fromisoformat(points[0]["confirmed"])
            return Offer(int(points[0]["number"]), confirmed, int(fields["generation"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UpstreamError(f"{self.address} sent an invalid list of points: {error}.") from None

    def load(self, number: int) -> Point:
        """Load a point."""
        return parse_point(self._get(f"/admin/backups/{number}"), f"Point {number} of {self.address}")

    def fetch(self, file: StoredFile, target: Path) -> None:
        """Copy the bytes of a file, going on where a connection that broke had ended."""
        import httpx

        digest, size = hashlib.sha256(), 0
        failed: Exception | None = None
        with target.open("wb") as output:
            for _ in range(_ATTEMPTS):
                if size >= file.bytes:
                    break
                try:
                    for piece in self._stream(file, size):
                        digest.update(piece)
                        size += len(piece)
                        output.seek(len(piece), 1) if not any(piece) else output.write(piece)
                except httpx.HTTPError as error:
                    failed = error
            output.truncate(size)
        if size < file.bytes:
            raise UpstreamError(f"{self.address} does not send {file.sha256} completely: {failed}.") from failed
        if digest.hexdigest() != file.sha256:
            raise StoreDamagedError(
                f"{self.address} sent {file.sha256} with other bytes. Run `kg backup verify` there."
            )

    def _stream(self, file: StoredFile, start: int) -> Iterator[bytes]:
        headers = {"Range": f"bytes={start}-"} if start else {}
        with self._client.stream("GET", f"/admin/backups/files/{file.sha256}", headers=headers) as response:
            if response.is_error:
                response.read()
            self._require(response.status_code, response.text if response.is_error else "")
            if start and response.status_code != 206:
                raise UpstreamError(f"{self.address} ignores ranges of files.")
            yield from response.iter_bytes(_PIECE_BYTES)

    def _get(self, path: str) -> bytes:
        import httpx

        try:
            response = self._client.get(path)
        except httpx.HTTPError as error:
            raise UpstreamError(f"{self.address} does not answer: {error}.") from error
        self._require(response.status_code, response.text)
        return response.content

    def _require(self, status: int, text: str) -> None:
        """Raise the error for a status other than success."""
        if status < 300:
            return
        shown = to_single_line(text, 300)
        if status == 404:
            raise NotFoundError(f"{self.address} answered 404: {shown}")
        hint = " Set QUADCITE_REPLICA_TOKEN to a token with the scope admin." if status in (401, 403) else ""
        raise UpstreamError(f"{self.address} answered {status}: {shown}{hint}")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Do nothing: the server removes files by its own retention."""
        yield


def open_source(address: str, token: str | None) -> PointSource:
    """Open the points of a primary: a URL, or a folder."""
    return UrlSource(address, token) if address.startswith(("http://", "https://")) else FolderSource(Path(address))
