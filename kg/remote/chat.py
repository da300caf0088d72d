"""A client for chat completion endpoints with OpenAI's protocol."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kg.errors import InvalidInputError, QuadciteError, UpstreamError
from kg.remote.http import Deadline, Reply, TooLargeError, redact, request_with_retry, send_request
from kg.settings import Settings
from kg.vocabulary import sha256

MAX_RESPONSES: Final = 3
"""Number of unusable responses after which the endpoint counts as failing."""
ENOUGH_FAILURES: Final = 5
"""Consecutive failures of an endpoint after which it is no longer called."""
MAX_BYTES: Final = 4 << 20
"""Maximum size of a response."""
_MIN_TIMEOUT_S: Final = 0.1
_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")


class ChatClosedError(UpstreamError):
    """A request that was not sent or was aborted, since the client is closed or the endpoint failed too often."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion, with the token counts that the endpoint reports (0 if it reports none)."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(slots=True)
class Usage:
    """The total use of an endpoint, which bills by these tokens."""

    requests: int = 0
    """Requests that it answered, including unusable responses."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens


class ChatEndpoint:
    """``POST {url}/chat/completions`` with ``{"model", "messages"}`` answers ``{"choices": [{"message"}], "usage"}``.

    Calls block and are thread-safe; `usage` counts those of all threads. `sleep` waits between attempts (by default
    until the client is closed), and `patience_s` limits the time of one completion with all its attempts. After
    `ENOUGH_FAILURES` completions in a row that failed, the endpoint is no longer called.
    """

    def __init__(
        self,
        url: str,
        model: str,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        patience_s: float = math.inf,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        path = url.rstrip("/")
        self.url: Final = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
        self.model: Final = model
        self.usage: Final = Usage()
        self._token = token
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._sleep = sleep or self._closed.wait
        self._failures = 0
        """Consecutive failures."""
        self._running: set[Deadline] = set()

    def close(self) -> None:
        """Abort running requests and refuse new ones; both raise ChatClosedError."""
        self._closed.set()
        for deadline in list(self._running):
            deadline.end()

    @property
    def name(self) -> str:
        """The model's name at this endpoint."""
        import httpx

        return f"{httpx.URL(self.url).host}/{self.model}"

    def complete(self, system: str, user: str, max_tokens: int) -> Completion:
        """Send one prompt (`system` and `user` messages) and return the completion.

        Raises UpstreamError if all retries fail (`kg.remote.http.request_with_retry`), or if `MAX_RESPONSES`
        responses are invalid, empty or truncated, and ChatClosedError once the client is closed.
        """
        try:
            completion = self._complete(system, user, max_tokens)
        except UpstreamError as error:
            if self._closed.is_set():
                raise ChatClosedError(f"The client for {self.url} is closed.") from error
            with self._lock:
                self._failures += 1
                if self._failures >= ENOUGH_FAILURES:
                    self._closed.set()
            raise
        with self._lock:
            self._failures = 0
        return completion

    def _complete(self, system: str, user: str, max_tokens: int) -> Completion:
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        problem = ""
        deadline = time.monotonic() + self._patience_s
        for _ in range(MAX_RESPONSES):
            reply = self._post(body, deadline)
            try:
                return self._parse(json.loads(reply.body))
            except _UnusableError as error:
                problem = str(error)
            except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
                problem = f"not a completion ({type(error).__name__})"
        raise UpstreamError(redact(f"{self.url} returned {MAX_RESPONSES} unusable responses: {problem}", self._token))

    def ask(self, system: str, user: str, max_tokens: int, parse: Callable[[str], _Answer], again: str = "") -> _Answer:
        """Send a prompt and parse the answer; one that `parse` refuses once more, with `again` after `system`.

        Raises UpstreamError as `complete` does, and InvalidInputError if `parse` refuses the second answer, too.
        """
        try:
            return parse(self.complete(system, user, max_tokens).text)
        except InvalidInputError:
            return parse(self.complete(system + again, user, max_tokens).text)

    def run(
        self, tasks: Iterable[_Task], work: Callable[[_Task], _Answer], threads: int, timeout_s: float | None = None
    ) -> Generator[tuple[_Task, _Answer | QuadciteError]]:
        """Do `work`, which calls this endpoint, for many tasks in threads. Yields each with its result or error.

        Close the iterator (`contextlib.closing`): the client is closed, too, if tasks are left then. Raises
        TimeoutError after `timeout_s`.
        """
        pool = ThreadPoolExecutor(threads, "chat")
        asked = {pool.submit(work, task): task for task in tasks}
        try:
            for done in as_completed(asked, timeout_s):
                error = done.exception()
                if error is not None and not isinstance(error, QuadciteError):
                    raise error
                yield asked[done], done.result() if error is None else error
        except BaseException:
            self.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _post(self, body: dict[str, object], deadline: float) -> Reply:
        def send() -> Reply:
            if self._closed.is_set():
                raise UpstreamError(f"{self.url} is no longer called.")
            left = max(_MIN_TIMEOUT_S, min(self._timeout_s, deadline - time.monotonic()))
            try:
                return send_request(
                    self.url, None, "application/json", left, MAX_BYTES,
                    json=body, token=self._token, running=self._running,
                )  # fmt: skip
            except TooLargeError:
                raise UpstreamError(f"The response of {self.url} exceeds {MAX_BYTES >> 20} MiB.") from None

        try:
            reply = request_with_retry(send, self.url, "complete", sleep=self._sleep, deadline=deadline)
        except UpstreamError as error:
            raise UpstreamError(redact(str(error), self._token)) from None
        with self._lock:
            self.usage.requests += 1
        return reply

    def _parse(self, response: Any) -> Completion:
        used = response.get("usage") or {}
        prompt, completion = _count(used.get("prompt_tokens")), _count(used.get("completion_tokens"))
        with self._lock:
            self.usage.prompt_tokens += prompt
            self.usage.completion_tokens += completion
        choice = response["choices"][0]
        text = choice["message"]["content"]
        if not isinstance(text, str) or not text.strip():
            raise _UnusableError("the message is empty")
        if redact(text, self._token) != text:
            raise _UnusableError("the message contains the token")
        if choice.get("finish_reason") not in (None, "stop"):
            reason = redact(f"{choice['finish_reason']!r}", self._token)
            raise _UnusableError(f"finish_reason is {reason:.40}")
        return Completion(text, prompt, completion)


class _UnusableError(Exception):
    """A valid response without a usable completion."""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def enclose(text: str) -> str:
    """Enclose data in a prompt between two lines that it cannot contain."""
    mark = f"===== {sha256(text)[:16]}"
    return f"{mark} begin\n{text}\n{mark} end"


def has_chat(settings: Settings) -> bool:
    """Check whether the settings configure a chat endpoint and a model."""
    return settings.chat_url is not None and bool(settings.chat_model)


def open_chat(
    settings: Settings, *, patience_s: float = math.inf, sleep: Callable[[float], object] | None = None
) -> ChatEndpoint:
    """Open the chat endpoint of the settings. Raises InvalidInputError if none is configured."""
    if settings.chat_url is None or not has_chat(settings):
        raise InvalidInputError(
            "No chat endpoint is configured. Set QUADCITE_CHAT_URL and QUADCITE_CHAT_MODEL, or use "
            "mode 'extractive' for summaries and scorer 'embeddings' for search. Facts are extracted by rules alone."
        )
    url = settings.chat_url
    if url.username or url.password or url.query is not None or url.fragment is not None:
        raise InvalidInputError(
            "QUADCITE_CHAT_URL may contain only scheme, host, port and path. Put a token into QUADCITE_CHAT_TOKEN."
        )
    token = settings.chat_token.get_secret_value() if settings.chat_token else None
    return ChatEndpoint(
        str(url), settings.chat_model, token, timeout_s=settings.chat_timeout_s, patience_s=patience_s, sleep=sleep
    )
