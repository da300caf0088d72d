"""A client of live SPARQL endpoints, such as a concept store's: rate-limited, cached, with a total timeout.

A result counts as live for five minutes. After that the endpoint is queried again; if that fails, the last result is
returned, marked as stale, with its age and the reason.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kg.errors import InvalidInputError, UpstreamError
from kg.remote.http import Reply, TooLargeError, parse_address, parse_retry_after, request_with_retry, send_request
from kg.remote.response_cache import CachedResponse, ResponseCache
from kg.vocabulary import BASE, sha256

TIMEOUT_S: Final = 10.0
"""Timeout of one request, up to the last byte of its response."""
PATIENCE_S: Final = 60.0
"""Total timeout of one query, with all its requests and the waits between them."""
LIVE_S: Final = 300.0
"""Age up to which a result counts as live."""
INTERVAL_S: Final = 0.5
"""Minimum time between the starts of two requests to one host."""
REST_S: Final = 10.0
"""Time without requests to an endpoint after a failure."""
MAX_BYTES: Final = 32 << 20
"""Maximum size of one response, decoded."""

TRUNCATED: Final = BASE + "truncated"
"""The link in a truncated result of a Quadcite server."""

_JSON: Final = "application/sparql-results+json"
_ACCEPTED: Final = frozenset({_JSON, "application/json"})
_LONGEST_HOLD_S: Final = 3_600.0

Binding = Mapping[str, Mapping[str, str]]
"""A solution in SPARQL 1.1 Query Results JSON: each bound variable with its ``type``, ``value`` and so on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The solutions of a SELECT, with their source and age."""

    endpoint: str
    query_sha256: str
    variables: Sequence[str]
    bindings: Sequence[Binding]
    asked_at: datetime
    """The time of the response."""
    age_s: float
    truncated: bool = False
    """Whether the endpoint reports that it truncated the result."""
    problem: str | None = None
    """Why a stale result could not be renewed."""

    @property
    def stale(self) -> bool:
        """Whether the result is too old and could not be renewed."""
        return self.problem is not None

    @property
    def note(self) -> str | None:
        """A warning about a stale result, or None."""
        if self.problem is None:
            return None
        when = self.asked_at.isoformat(timespec="seconds")
        return f"Stale result of {self.endpoint}: {self.age_s:.0f} s old ({when}). {self.problem}"


class Endpoint:
    """The SPARQL endpoint at exactly this `url`. Calls block, for bounded time, and are thread-safe.

    All endpoints of one host share a rate limit of two requests per second in this process. Without `folder` results
    are not cached. Raises InvalidInputError for an invalid `url`.
    """

    def __init__(
        self,
        url: str,
        folder: Path | None,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        rest_s: float = REST_S,
        max_bytes: int = MAX_BYTES,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        address = parse_address(url)
        if address is None:
            raise InvalidInputError(
                f"Invalid SPARQL endpoint {url!r}. Expected http or https, host, port and path only, such as "
                "https://wikibase.example.org/query/sparql."
            )
        self.url: Final = url
        self._cache = None if folder is None else ResponseCache(folder)
        self._timeout_s, self._patience_s, self._rest_s = timeout_s, patience_s, rest_s
        self._max_bytes = max_bytes
        self._sleep, self._clock = sleep, clock
        self._limiter = get_limiter(address[1], address[2])

    def select(self, query: str, *, stale: bool = True) -> Answer:
        """Run `query`, which is sent unchanged, and return its solutions.

        Raises UpstreamError if the endpoint fails and there is no cached result (or only a stale one, without `stale`),
        and InvalidInputError for a query that it refuses or whose result is too large.
        """
        if (answer := self._find_live(query)) is not None:
            return answer
        deadline = time.monotonic() + self._patience_s
        with self._limiter.exclusive(self.url, query, self._patience_s) as first:
            # Concurrent calls with the same query wait for a single request, so look into the cache again.
            if (answer := self._find_live(query)) is not None:
                return answer
            try:
                if not first:
                    raise UpstreamError(
                        f"{self.url}: another request with this query did not end within {self._patience_s:.0f} s"
                    )
                body = self._send(query, deadline)
                answer = self._parse(query, CachedResponse(body, self._clock()))
            except UpstreamError as error:
                return self._find_stale(query, error, stale)
            if self._cache is not None:
                self._cache.put(self.url, query, CachedResponse(body, answer.asked_at.timestamp()))
            return answer

    def _find_live(self, query: str) -> Answer | None:
        cached = None if self._cache is None else self._cache.get(self.url, query)
        if cached is None or not 0 <= self._clock() - cached.time < LIVE_S:
            return None
        try:
            return self._parse(query, cached)
        except UpstreamError:
            return None

    def _find_stale(self, query: str, error: UpstreamError, stale: bool) -> Answer:
        cached = None if self._cache is None else self._cache.get(self.url, query)
        if cached is None:
            raise error
        answer = self._parse(query, cached, str(error))
        if not stale:
            raise UpstreamError(f"{error}. The last result is {answer.age_s:.0f} s old.") from error
        return answer

    def _send(self, query: str, deadline: float) -> bytes:
        def send() -> Reply:
            seconds = min(self._timeout_s, self._wait_for_slot(deadline))
            try:
                reply = send_request(self.url, {"query": query}, _JSON, seconds, self._max_bytes)
            except TooLargeError:
                raise InvalidInputError(
                    f"The result of {self.url} exceeds {self._max_bytes / 1024**2:.0f} MiB. Use a narrower query."
                ) from None
            if reply.status == 400:
                raise InvalidInputError(f"{self.url} refused the query: {reply.text or 'HTTP 400'}")
            if reply.status != 200 and (wait := parse_retry_after(reply.headers.get("Retry-After"), 0)):
                self._limiter.hold(wait)
            return reply

        if (problem := self._limiter.find_problem(self.url)) is not None:
            raise UpstreamError(problem)
        try:
            reply = request_with_retry(send, self.url, sleep=self._sleep, deadline=deadline)
        except _NoSlotError:
            raise
        except UpstreamError as error:
            self._limiter.pause(self.url, self._rest_s, str(error))
            raise
        if reply.media_type not in _ACCEPTED:
            raise UpstreamError(f"{self.url} returned {reply.media_type or 'no media type'}. Expected {_JSON}.")
        return reply.body

    def _wait_for_slot(self, deadline: float) -> float:
        """Wait until a request to the host is allowed; return the seconds left until `deadline`."""
        wait = self._limiter.reserve(deadline)
        if wait is None:
            raise _NoSlotError(f"Rate limit of {self.url}: no request is possible within {self._patience_s:.0f} s.")
        if wait > 0:
            self._sleep(wait)
        return max(0.05, deadline - time.monotonic())  # a timeout of 0 would refuse the slot that it waited for

    def _parse(self, query: str, response: CachedResponse, problem: str | None = None) -> Answer:
        try:
            result = json.loads(response.body)
            variables, links = result["head"]["vars"], result["head"].get("link") or []
            truncated = (result.get("meta") or {}).get("truncated") is True or TRUNCATED in links
            bindings = result["results"]["bindings"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"missing {error}, as in the result of ASK" if isinstance(error, KeyError) else f"{error!r:.200}"
            raise UpstreamError(f"{self.url} returned no SELECT result in {_JSON}: {what}") from None
        if not _is_list(variables, str) or not _is_list(bindings, dict) or not all(map(_is_binding, bindings)):
            raise UpstreamError(f"{self.url} returned invalid {_JSON}.")
        age_s = max(0.0, self._clock() - response.time)
        asked_at = datetime.fromtimestamp(response.time, UTC)
        return Answer(self.url, sha256(query), variables, bindings, asked_at, age_s, truncated, problem)


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _is_binding(binding: Mapping[str, Any]) -> bool:
    return all(
        isinstance(term, dict)
        and isinstance(term.get("type"), str)
        and isinstance(term.get("value"), str)
        and isinstance(term.get("xml:lang", ""), str)
        and isinstance(term.get("datatype", ""), str)
        for term in binding.values()
    )


class _NoSlotError(UpstreamError):
    """Too many requests to this host are waiting for one more to be possible in time."""


class HostLimiter:
    """The rate limit of one host, its running queries, and its endpoints that failed recently."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = -math.inf
        self._paused: dict[str, tuple[float, str]] = {}
        self._running: set[tuple[str, str]] = set()

    @contextmanager
    def exclusive(self, url: str, query: str, seconds: float) -> Iterator[bool]:
        """Wait until no other thread runs the same query, and block others; yields False after `seconds`."""
        key = url, query
        with self._changed:
            free = self._changed.wait_for(lambda: key not in self._running, seconds)
            if free:
                self._running.add(key)
        try:
            yield free
        finally:
            if free:
                with self._changed:
                    self._running.discard(key)
                    self._changed.notify_all()

    def reserve(self, deadline: float, interval_s: float | None = None) -> float | None:
        """Reserve the next slot and return the seconds until it, or None if it is after `deadline`.

        The slot after it is `interval_s` later, by default `INTERVAL_S`.
        """
        with self._changed:
            now = time.monotonic()
            at = max(now, self._next)
            if at > deadline:
                return None
            self._next = at + (INTERVAL_S if interval_s is None else interval_s)
            return at - now

    def hold(self, seconds: float) -> None:
        """Allow no request for some seconds, as the host demands."""
        with self._changed:
            self._next = max(self._next, time.monotonic() + min(seconds, _LONGEST_HOLD_S))

    def pause(self, url: str, seconds: float, problem: str) -> None:
        """Mark an endpoint as failing for some seconds."""
        with self._changed:
            self._paused[url] = time.monotonic() + seconds, problem

    def find_problem(self, url: str) -> str | None:
        """Return why an endpoint counts as failing now, or None."""
        with self._changed:
            until, problem = self._paused.get(url, (-math.inf, ""))
            return problem if time.monotonic() < until else None


_limiters: dict[tuple[str, int], HostLimiter] = {}
_limiters_lock = threading.Lock()


def get_limiter(host: str, port: int) -> HostLimiter:
    """Get the limiter of a host, shared by all clients in this process."""
    with _limiters_lock:
        return _limiters.setdefault((host, port), HostLimiter())
