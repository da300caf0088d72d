"""Static files: the style sheet of the pages, and scripts where they were built (``/static/...``).

A file has an address with a hash of its content, under which clients may keep it for good. It is read and compressed
once, and again after it has changed on disk.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kg.server.negotiation import accepts_gzip
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.text import quoted

FOLDER: Final = Path(__file__).parent / "static"
KEPT_S: Final = 365 * 24 * 3600
_ALLOWED: Final = "GET, HEAD"
_TYPES: Final = {".js": "text/javascript", ".mjs": "text/javascript", ".map": "application/json"}
"""Media types that the machine's own table may have otherwise."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is served. `digest` is the hash of its content in its address."""

    name: str
    body: bytes
    packed: bytes
    digest: str

    @property
    def href(self) -> str:
        """The address under which it never changes."""
        return f"/static/{self.name}?v={self.digest}"

    @property
    def media_type(self) -> str:
        """Its media type, by its name."""
        suffix = Path(self.name).suffix
        return _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")


_kept: Final[dict[str, tuple[tuple[int, int], StaticFile]]] = {}
_loading: Final = Lock()


def find_file(name: str) -> StaticFile | None:
    """Find a file of `FOLDER` by its path below it; None if there is none."""
    parts = name.split("/")
    if any(not part or part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        return None
    path = FOLDER.joinpath(*parts)
    try:
        state = path.stat()
        if not path.is_file() or path.resolve() != FOLDER.resolve().joinpath(*parts):
            return None
    except OSError:
        return None
    version = state.st_mtime_ns, state.st_size
    with _loading:
        known = _kept.get(name)
        if known is None or known[0] != version:
            body = path.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:16]
            known = _kept[name] = version, StaticFile(name, body, gzip.compress(body, 9, mtime=0), digest)
    return known[1]


def routes() -> list[Route]:
    """Build the route of the static files."""
    return [Route("/static/{name:path}", answering(_answer), methods=["GET", "HEAD", "OPTIONS", "POST"])]


async def _answer(request: Request) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed(request, _ALLOWED)
    name: str = request.path_params["name"]
    file = find_file(name)
    if file is None:
        raise HttpError(404, "not_found", f"There is no static file {quoted(name)}.")
    packed = accepts_gzip(request.headers.getlist("accept-encoding"))
    kept = f"public, max-age={KEPT_S}, immutable" if request.query_params.get("v") == file.digest else "no-cache"
    headers = {
        "Cache-Control": kept,
        "ETag": f'"{file.digest}{"-gzip" if packed else ""}"',
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if headers["ETag"] in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    if packed:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if packed else file.body, media_type=file.media_type, headers=headers)
