"""Requests to services elsewhere: each within a deadline and a size, asked again where that can help, and no more.

The address is always one that a setting or an argument names. Redirects are not followed.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

from kg.errors import UpstreamError

ATTEMPTS: Final = 4
"""Requests before a service counts as unavailable."""
LONGEST_WAIT_S: Final = 60.0
"""Longest Retry-After that is waited for, in seconds."""

_BUSY: Final = frozenset({408, 429, 500, 502, 503, 504})
_CODINGS: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_TOLD: Final = 300

Address = tuple[str, str, int, str]


def address_of(url: str) -> Address | None:
    """Return scheme, host, port and path of `url`: what two addresses must share to be the same endpoint.

    None for what is no address of an endpoint here: another scheme, user information, a query, a fragment, or any
    character that programs are known to read differently.
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


class DeadlinePassedError(Exception):
    """The answer had not ended when its time had."""


class TooLargeError(Exception):
    """The answer is larger than is taken in."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that was read to its end, decoded as its headers say."""

    status: int
    headers: Mapping[str, str]
    """Their names as httpx has them: in any case."""
    body: bytes

    @property
    def media_type(self) -> str:
        """The media type, without parameters; empty where there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as far as it can be told in an error."""
        return self.body[: 4 * _TOLD].decode(errors="replace")[:_TOLD].strip()


def exchange(
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
    """Post `form`, or `json`, to exactly `url`, or get that where there is neither; return the whole answer, whatever
    its status.

    Of one other than 200 it is the start. `token` is sent as the bearer's. Until the end `running` has the deadline,
    which any thread can make pass at once.

    Raises DeadlinePassedError after `seconds`, however the answer drips, TooLargeError beyond `max_bytes`, and
    httpx.HTTPError, httpx.StreamError or OSError where there is no whole answer, or no such host.
    """
    import httpx  # which takes long, and most commands ask nothing elsewhere

    # Neither a proxy nor credentials from the environment: the address is the one that was named.
    with (
        Deadline(seconds, running) as deadline,
        httpx.Client(trust_env=False, follow_redirects=False, timeout=httpx.Timeout(seconds), http2=False) as client,
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
                # Of one in another, a few bytes can unpack to more than there is memory, before any can be counted.
                if (coding := response.headers.get("Content-Encoding", "identity").strip().lower()) not in _CODINGS:
                    raise httpx.DecodingError(f"it is encoded as {coding!r:.80}, which was not asked for")
                body = bytearray()
                for piece in response.iter_bytes(65_536):
                    body += piece
                    if response.status_code != httpx.codes.OK and len(body) > 4 * _TOLD:
                        break
                    if len(body) > max_bytes:
                        raise TooLargeError
        except httpx.TimeoutException:  # which has the same limit, and may be first to notice
            raise DeadlinePassedError from None
        except (httpx.HTTPError, httpx.StreamError, OSError):
            if not deadline.passed:
                raise
        except (httpx.InvalidURL, UnicodeError) as error:
            raise OSError(f"no host can be called that: {error}") from None
        if deadline.passed:  # then an answer of no declared length only seems to have ended
            raise DeadlinePassedError
        return Reply(response.status_code, response.headers, bytes(body))


def request_with_retry(
    send: Callable[[], Reply],
    url: str,
    verb: str = "answer",
    *,
    sleep: Callable[[float], object] = time.sleep,
    deadline: float = math.inf,
) -> Reply:
    """Return the successful answer to `send`, which is called up to `ATTEMPTS` times, with growing waits between.

    A Retry-After is respected up to `LONGEST_WAIT_S`. No wait goes beyond `deadline` (of the monotonic clock). Every
    failure raises UpstreamError, which says what `url` did not `verb`: no answer, or a refusal that would be repeated.
    """
    import httpx

    problem = ""
    for attempt in range(1, ATTEMPTS + 1):
        wait = 0.5 * 2**attempt
        try:
            reply = send()
        except DeadlinePassedError:
            problem = "the answer did not end in time"
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError, OSError) as error:
            problem = f"{type(error).__name__}: {error}"
        else:
            if 200 <= reply.status < 300:
                return reply
            problem = f"HTTP {reply.status} {reply.text}"
            if 300 <= reply.status < 400:
                raise UpstreamError(f"{url} redirects elsewhere, which is not followed: HTTP {reply.status}")
            if reply.status not in _BUSY:
                raise UpstreamError(f"{url} refused to {verb}: {problem}")
            wait = retry_after(reply.headers.get("Retry-After"), wait)
            if wait > LONGEST_WAIT_S:
                raise UpstreamError(f"{url} asks to wait {wait:.0f} s before the next request: {problem}")
        if attempt < ATTEMPTS:
            if time.monotonic() + wait > deadline:
                raise UpstreamError(f"{url} did not {verb} in the time there was, in {attempt} attempts: {problem}")
            sleep(wait)
    raise UpstreamError(f"{url} did not {verb} after {ATTEMPTS} attempts: {problem}")


def retry_after(header: str | None, default: float) -> float:
    """Return the seconds that a Retry-After header asks for, in either of its forms (RFC 9110, 10.2.3)."""
    if header is None:
        return default
    with contextlib.suppress(ValueError, OverflowError):
        seconds = float(header)
        return max(0.0, seconds) if math.isfinite(seconds) else default
    with contextlib.suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return default


class Deadline:
    """Ends a connection after some seconds, whatever drips from it: a timeout of HTTP clients starts anew with each
    packet.
    """

    def __init__(self, seconds: float, running: set[Deadline] | None = None) -> None:
        self.passed = False
        self._running = set() if running is None else running
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True

    def watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Learn of the connection: an httpcore trace (https://www.encode.io/httpcore/extensions/#trace)."""
        if event == "connection.connect_tcp.complete":
            # A duplicate: TLS takes the socket itself over, and whoever still has it cannot end the connection.
            connected: socket.socket = info["return_value"].get_extra_info("socket").dup()
            with self._lock:
                self._sockets.append(connected)
            if self.passed:
                self.end()

    def end(self) -> None:
        """Let it pass."""
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
