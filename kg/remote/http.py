"""HTTP requests to remote services, with a total timeout, a size limit and retries.

The address always comes from a setting or an argument. Redirects are not followed. httpx alone has no total timeout:
its timeouts start again with each packet, hence `Deadline`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from kg.errors import UpstreamError
from kg.remote.outcomes import record_outcome

ATTEMPTS: Final = 4
"""Attempts before a service counts as unavailable."""
MAX_WAIT_S: Final = 60.0
"""Maximum Retry-After to wait for, in seconds."""

_BUSY: Final = frozenset({408, 429, 500, 502, 503, 504})
_CODINGS: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_ERROR_CHARS: Final = 300

Address = tuple[str, str, int, str]


def parse_address(url: str) -> Address | None:
    """Parse `url` into scheme, host, port and path: two URLs with the same address are the same endpoint.

    Returns None for another scheme, user information, a query, a fragment, or characters that URL parsers are known to
    interpret differently.
    """
    if not url.isascii() or not url.isprintable() or any(character in url for character in " \\@?#"):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0:
        return None
    return parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme], parts.path or "/"


@lru_cache(1_000)
def is_loopback(name: str) -> bool:
    """Return whether a host name or address is this machine. Every request asks that of its peer, several times."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(name).is_loopback
    return name == "localhost"


class DeadlinePassedError(Exception):
    """The response was not complete within the timeout."""


class AbortedError(DeadlinePassedError):
    """Another thread ended the request before its timeout. The service may be well."""


class TooLargeError(Exception):
    """The response exceeds the size limit."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete response, decoded by its Content-Encoding."""

    status: int
    headers: Mapping[str, str]
    """Case-insensitive, as in httpx."""
    body: bytes

    @property
    def media_type(self) -> str:
        """The media type without parameters, or ""."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The start of the body, for error messages."""
        return self.body[: 4 * _MAX_ERROR_CHARS].decode(errors="replace")[:_MAX_ERROR_CHARS].strip()


def send_request(
    url: str,
    form: Mapping[str, str] | None,
    accept: str,
    seconds: float,
    max_bytes: int,
    *,
    json: object = None,
    token: str | None = None,
    running: set[Deadline] | None = None,
) -> Reply:
    """POST `form` or `json` to exactly `url`, or GET it without either; return the response with any status.

    For a status other than 200 the body may be truncated. `token` is sent as a bearer token. While the request runs,
    `running` contains its deadline, which any thread can end.

    Raises DeadlinePassedError after `seconds`, even if data still arrives, and AbortedError once a thread ends it,
    TooLargeError beyond `max_bytes`, and httpx.HTTPError, httpx.StreamError or OSError for an incomplete response or an
    unknown host.
    """
    import httpx  # here, since the import is slow and most commands send no requests

    try:
        reply = _send(url, form, accept, seconds, max_bytes, json, token, running)
    except AbortedError:
        raise
    except DeadlinePassedError:
        record_outcome(url, f"No complete response in {seconds:.0f} s.")
        raise
    except TooLargeError:
        record_outcome(url, None)  # it did answer
        raise
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        record_outcome(url, f"{type(error).__name__}: {error}"[:_MAX_ERROR_CHARS])
        raise
    record_outcome(url, f"HTTP {reply.status}" if reply.status in _BUSY else None)
    return reply


@cache
def load_certificates() -> ssl.SSLContext:
    """Load the certificates of the authorities that are trusted, once: that takes 40 ms, more than most requests."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


def _send(
    url: str,
    form: Mapping[str, str] | None,
    accept: str,
    seconds: float,
    max_bytes: int,
    json: object,
    token: str | None,
    running: set[Deadline] | None,
) -> Reply:
    import httpx

    # trust_env=False: no proxies and no credentials from the environment.
    with (
        Deadline(seconds, running) as deadline,
        httpx.Client(
            verify=load_certificates(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(seconds),
            http2=False,
        ) as client,
    ):
        try:
            headers = {"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": "quadcite"}
            with client.stream(
                "GET" if form is None and json is None else "POST",
                url,
                data=form,
                json=json,
                headers=headers | ({} if token is None else {"Authorization": f"Bearer {token}"}),
                extensions={"trace": deadline.watch},
            ) as response:
                # In other encodings, a few bytes can decompress to more than the memory before they can be counted.
                if (coding := response.headers.get("Content-Encoding", "identity").strip().lower()) not in _CODINGS:
                    raise httpx.DecodingError(f"unsupported Content-Encoding {coding!r:.80}")
                body = bytearray()
                for piece in response.iter_bytes(65_536):
                    body += piece
                    if response.status_code != httpx.codes.OK and len(body) > 4 * _MAX_ERROR_CHARS:
                        break
                    if len(body) > max_bytes:
                        raise TooLargeError
        except httpx.TimeoutException:  # has the same limit, and may occur first
            raise DeadlinePassedError from None
        except (httpx.HTTPError, httpx.StreamError, OSError):
            if not deadline.passed:
                raise
        except (httpx.InvalidURL, UnicodeError) as error:
            raise OSError(f"invalid host name: {error}") from None
        if deadline.passed:  # a response without Content-Length then only looks complete
            raise DeadlinePassedError if deadline.expired else AbortedError
        return Reply(response.status_code, response.headers, bytes(body))


def request_with_retry(
    send: Callable[[], Reply],
    url: str,
    verb: str = "answer",
    *,
    sleep: Callable[[float], object] = time.sleep,
    deadline: float = math.inf,
) -> Reply:
    """Call `send` up to `ATTEMPTS` times, with exponential backoff, until a response is successful; return that.

    Respects a Retry-After up to `MAX_WAIT_S`. No wait goes beyond `deadline` (of the monotonic clock). Raises
    UpstreamError after the last attempt, or at once for a permanent refusal; its message contains `url` and `verb`.
    """
    import httpx

    problem = ""
    for attempt in range(1, ATTEMPTS + 1):
        wait = 0.5 * 2**attempt
        try:
            reply = send()
        except DeadlinePassedError:
            problem = "timeout"
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError, OSError) as error:
            problem = f"{type(error).__name__}: {error}"
        else:
            if 200 <= reply.status < 300:
                return reply
            problem = f"HTTP {reply.status} {reply.text}"
            if 300 <= reply.status < 400:
                raise UpstreamError(f"{url} redirects (HTTP {reply.status}). Redirects are not followed.")
            if reply.status not in _BUSY:
                raise UpstreamError(f"{url} refused to {verb}: {problem}")
            wait = parse_retry_after(reply.headers.get("Retry-After"), wait)
            if wait > MAX_WAIT_S:
                raise UpstreamError(f"{url} requests a wait of {wait:.0f} s before the next attempt: {problem}")
        if attempt < ATTEMPTS:
            if time.monotonic() + wait > deadline:
                raise UpstreamError(f"{url} did not {verb} before the deadline, in {attempt} attempts: {problem}")
            sleep(wait)
    raise UpstreamError(f"{url} did not {verb} after {ATTEMPTS} attempts: {problem}")


def parse_retry_after(header: str | None, default: float) -> float:
    """Parse a Retry-After header (RFC 9110, 10.2.3) into seconds; `default` if missing or invalid."""
    if header is None:
        return default
    with contextlib.suppress(ValueError, OverflowError):
        seconds = float(header)
        return max(0.0, seconds) if math.isfinite(seconds) else default
    with contextlib.suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return default


def redact(text: str, token: str | None) -> str:
    """Return `text` without the token, since some endpoints quote the request."""
    return text.replace(token, "***") if token else text


class Deadline:
    """Shuts a connection down after some seconds, even if data still arrives."""

    def __init__(self, seconds: float, running: set[Deadline] | None = None) -> None:
        self.passed = False
        self.expired = False
        """Whether the time was up, and no thread ended it before."""
        self._running = set() if running is None else running
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Record the connection: an httpcore trace (https://www.encode.io/httpcore/extensions/#trace)."""
        if event == "connection.connect_tcp.complete":
            # A duplicate, because TLS wraps the original socket, which then can no longer be shut down from here.
            connected: socket.socket = info["return_value"].get_extra_info("socket").dup()
            with self._lock:
                self._sockets.append(connected)
            if self.passed:  # it ended while the connection was being made
                self.end()

    def _expire(self) -> None:
        self.expired = not self.passed
        self.end()

    def end(self) -> None:
        """End the connection now."""
        self.passed = True
        with self._lock:
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Deadline:
        self._running.add(self)
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._running.discard(self)
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()
