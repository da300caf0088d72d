"""Live SPARQL endpoints, such as a concept store's: asked seldom, patiently, and never without an end.

An answer counts as live for five minutes. After that the endpoint is asked again; when it cannot answer, its last good
answer is given, which says that it is stale, how old it is and why.
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
from kg.remote.http import Reply, TooLargeError, address_of, exchange, request_with_retry, retry_after
from kg.remote.response_cache import Answers, Kept
from kg.vocabulary import BASE, sha256

TIMEOUT_S: Final = 10.0
"""Time of one request, until the last byte of its answer."""
PATIENCE_S: Final = 60.0
"""Time of all requests, and of the waits between them, that one question takes at most."""
LIVE_S: Final = 300.0
"""Age up to which an answer counts as live."""
INTERVAL_S: Final = 0.5
"""Time between the starts of two requests to one host."""
REST_S: Final = 10.0
"""Time for which a host that did not answer is not asked again."""
MAX_BYTES: Final = 32 << 20
"""Bytes of one answer, decoded."""

TRUNCATED: Final = BASE + "truncated"
"""What a server of this kind puts among the links of an answer that it cut."""

_JSON: Final = "application/sparql-results+json"
_TAKEN: Final = frozenset({_JSON, "application/json"})
_LONGEST_HOLD_S: Final = 3_600.0

Binding = Mapping[str, Mapping[str, str]]
"""Of each variable that is bound, its ``type``, its ``value`` and what else there is of it, as SPARQL's JSON has it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The solutions of a SELECT, and when and how they were got."""

    endpoint: str
    query_sha256: str
    variables: Sequence[str]
    bindings: Sequence[Binding]
    asked_at: datetime
    """When the endpoint gave them."""
    age_s: float
    truncated: bool = False
    """Whether the endpoint says that it left solutions out."""
    problem: str | None = None
    """Why it could not be asked again, of a stale answer."""

    @property
    def stale(self) -> bool:
        """Whether the endpoint should have been asked again, and could not be."""
        return self.problem is not None

    @property
    def note(self) -> str | None:
        """What to tell whoever uses a stale answer."""
        if self.problem is None:
            return None
        when = self.asked_at.isoformat(timespec="seconds")
        return f"stale: {self.endpoint} gave this answer {self.age_s:.0f} s ago ({when}), and now: {self.problem}"


class Endpoint:
    """The SPARQL endpoint at exactly this `url`. Calls block, for bounded time, and are safe from any thread.

    All endpoints of one host share its turns: two requests a second, in this process. Without `folder` no answer is
    kept. Raises InvalidInputError for a `url` that is more, or less, than an address.
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
        address = address_of(url)
        if address is None:
            raise InvalidInputError(
                f"{url!r} is not the address of a SPARQL endpoint: http or https, host, port and path alone, such as "
                "https://wikibase.example.org/query/sparql"
            )
        self.url: Final = url
        self._answers = None if folder is None else Answers(folder)
        self._timeout_s, self._patience_s, self._rest_s = timeout_s, patience_s, rest_s
        self._max_bytes = max_bytes
        self._sleep, self._clock = sleep, clock
        self._pace = pace_of(address[1], address[2])

    def select(self, query: str, *, stale: bool = True) -> Answer:
        """Return the solutions of `query`, which is sent as it stands.

        Raises UpstreamError when the endpoint cannot answer and there is no earlier answer, or `stale` ones are not
        wanted; InvalidInputError for a query that it refuses, or whose answer is too large.
        """
        if (answer := self._live(query)) is not None:
            return answer
        deadline = time.monotonic() + self._patience_s
        with self._pace.asking(self.url, query, self._patience_s) as first:
            # Who asks the same at the same time waits for the one answer.
            if (answer := self._live(query)) is not None:
                return answer
            try:
                if not first:
                    raise UpstreamError(f"{self.url} is still being asked the same after {self._patience_s:.0f} s")
                body = self._ask(query, deadline)
                given = self._read(query, Kept(body, self._clock()))
            except UpstreamError as error:
                return self._last(query, error, stale)
            if self._answers is not None:
                self._answers.put(self.url, query, Kept(body, given.asked_at.timestamp()))
            return given

    def _live(self, query: str) -> Answer | None:
        kept = None if self._answers is None else self._answers.get(self.url, query)
        if kept is None or not 0 <= self._clock() - kept.time < LIVE_S:
            return None
        try:
            return self._read(query, kept)
        except UpstreamError:
            return None

    def _last(self, query: str, error: UpstreamError, stale: bool) -> Answer:
        kept = None if self._answers is None else self._answers.get(self.url, query)
        if kept is None:
            raise error
        answer = self._read(query, kept, str(error))
        if not stale:
            raise UpstreamError(f"{error}; its last answer is {answer.age_s:.0f} s old, and not taken here") from error
        return answer

    def _ask(self, query: str, deadline: float) -> bytes:
        def send() -> Reply:
            seconds = min(self._timeout_s, self._turn(deadline))
            try:
                reply = exchange(self.url, {"query": query}, _JSON, seconds, self._max_bytes)
            except TooLargeError:
                raise InvalidInputError(
                    f"{self.url} answers with more than {self._max_bytes / 1024**2:.0f} MiB; ask for less"
                ) from None
            if reply.status == 400:
                raise InvalidInputError(f"{self.url} refuses the query: {reply.text or 'HTTP 400'}")
            if reply.status != 200 and (wait := retry_after(reply.headers.get("Retry-After"), 0)):
                self._pace.hold(wait)
            return reply

        if (problem := self._pace.problem(self.url)) is not None:
            raise UpstreamError(problem)
        try:
            reply = request_with_retry(send, self.url, sleep=self._sleep, deadline=deadline)
        except _NoTurnError:
            raise
        except UpstreamError as error:
            self._pace.rest(self.url, self._rest_s, str(error))
            raise
        if reply.media_type not in _TAKEN:
            raise UpstreamError(f"{self.url} answered with {reply.media_type or 'no media type'}, not with {_JSON}")
        return reply.body

    def _turn(self, deadline: float) -> float:
        """Wait for the next turn of the host and return the seconds until `deadline` that are left then."""
        wait = self._pace.turn(deadline)
        if wait is None:
            raise _NoTurnError(f"{self.url} has no turn for this question in {self._patience_s:.0f} s")
        if wait > 0:
            self._sleep(wait)
        return max(0.05, deadline - time.monotonic())

    def _read(self, query: str, kept: Kept, problem: str | None = None) -> Answer:
        try:
            said = json.loads(kept.body)
            variables, links = said["head"]["vars"], said["head"].get("link") or []
            truncated = (said.get("meta") or {}).get("truncated") is True or TRUNCATED in links
            bindings = said["results"]["bindings"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"it has no {error}, as the answer to an ASK" if isinstance(error, KeyError) else f"{error!r:.200}"
            raise UpstreamError(f"{self.url} answered with no solutions as {_JSON} has them: {what}") from None
        if not _is_list(variables, str) or not _is_list(bindings, dict) or not all(map(_is_binding, bindings)):
            raise UpstreamError(f"{self.url} answered with solutions that are not as {_JSON} has them")
        age_s = max(0.0, self._clock() - kept.time)
        asked_at = datetime.fromtimestamp(kept.time, UTC)
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


class _NoTurnError(UpstreamError):
    """So many questions wait for this host that it cannot be asked in time."""


class Pace:
    """When one host may be asked next, and what it is being asked."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = -math.inf
        self._resting: dict[str, tuple[float, str]] = {}
        self._asked: set[tuple[str, str]] = set()

    @contextmanager
    def asking(self, url: str, query: str, seconds: float) -> Iterator[bool]:
        """Hold a question, so that nobody else asks the same; False when another does so for longer than `seconds`."""
        question = url, query
        with self._changed:
            free = self._changed.wait_for(lambda: question not in self._asked, seconds)
            if free:
                self._asked.add(question)
        try:
            yield free
        finally:
            if free:
                with self._changed:
                    self._asked.discard(question)
                    self._changed.notify_all()

    def turn(self, deadline: float) -> float | None:
        """Take the next turn and return the seconds until it, None where it would come after `deadline`."""
        with self._changed:
            now = time.monotonic()
            at = max(now, self._next)
            if at > deadline:
                return None
            self._next = at + INTERVAL_S
            return at - now

    def hold(self, seconds: float) -> None:
        """Give no turn for some seconds: the host asked for that."""
        with self._changed:
            self._next = max(self._next, time.monotonic() + min(seconds, _LONGEST_HOLD_S))

    def rest(self, url: str, seconds: float, problem: str) -> None:
        """Have it known for some seconds that an endpoint does not answer."""
        with self._changed:
            self._resting[url] = time.monotonic() + seconds, problem

    def problem(self, url: str) -> str | None:
        """Return why an endpoint is not to be asked now."""
        with self._changed:
            until, problem = self._resting.get(url, (-math.inf, ""))
            return problem if time.monotonic() < until else None


_paces: dict[tuple[str, int], Pace] = {}
_paces_lock = threading.Lock()


def pace_of(host: str, port: int) -> Pace:
    """Return the turns of a host, which all that ask it in this process share."""
    with _paces_lock:
        return _paces.setdefault((host, port), Pace())
