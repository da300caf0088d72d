"""A client of any endpoint for chat completions that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kg.errors import UpstreamError
from kg.remote.http import Deadline, Reply, TooLargeError, exchange, request_with_retry

ANSWERS: Final = 3
"""Answers that may be of no use before the endpoint counts as failing."""
MAX_BYTES: Final = 4 << 20
"""Bytes of an answer that is taken in."""
_LEAST_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Completion:
    """What was answered, and the tokens that it took, as the endpoint counts them (0 where it does not say)."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(slots=True)
class Usage:
    """What an endpoint was asked for, all in all: its bill is by these tokens."""

    requests: int = 0
    """Requests that it took, those too whose answer was of no use."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Those of both kinds."""
        return self.prompt_tokens + self.completion_tokens


class ChatEndpoint:
    """``POST {url}/chat/completions`` with ``{"model", "messages"}`` answers ``{"choices": [{"message"}], "usage"}``.

    Calls block and are safe from any thread; `usage` counts those of all. `sleep` is what waits between tries, and
    `patience_s` bounds the time of one completion with all its tries.
    """

    def __init__(
        self,
        url: str,
        model: str,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        patience_s: float = math.inf,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        path = url.rstrip("/")
        self.url: Final = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
        self.model: Final = model
        self.usage: Final = Usage()
        self._token = token
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._sleep = sleep
        self._lock = threading.Lock()
        self._open = True
        self._running: set[Deadline] = set()

    def close(self) -> None:
        """End what is being asked, and ask nothing more: both raise UpstreamError."""
        self._open = False
        for deadline in list(self._running):
            deadline.end()

    @property
    def name(self) -> str:
        """The model's name at this endpoint."""
        import httpx

        return f"{httpx.URL(self.url).host}/{self.model}"

    def complete(self, system: str, user: str, max_tokens: int) -> Completion:
        """Send one prompt (`system` and `user` messages) and return the completion.

        Raises UpstreamError if all retries fail (`kg.remote.http.request_with_retry`), or if `ANSWERS` responses are
        invalid, empty or truncated.
        """
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        problem = ""
        deadline = time.monotonic() + self._patience_s
        for _ in range(ANSWERS):
            reply = self._post(body, deadline)
            try:
                return self._read(json.loads(reply.body))
            except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
                problem = (
                    f"{error}" if isinstance(error, _UselessError) else f"no completion in it: {type(error).__name__}"
                )
        raise UpstreamError(self._safe(f"{self.url} answered {ANSWERS} times with nothing to use: {problem}"))

    def _post(self, body: dict[str, object], deadline: float) -> Reply:
        def send() -> Reply:
            if not self._open:
                raise UpstreamError(f"{self.url} is not asked any more")
            left = max(_LEAST_S, min(self._timeout_s, deadline - time.monotonic()))
            try:
                return exchange(
                    self.url, None, "application/json", left, MAX_BYTES,
                    json=body, token=self._token, running=self._running,
                )  # fmt: skip
            except TooLargeError:
                raise UpstreamError(f"{self.url} answers with more than {MAX_BYTES >> 20} MiB") from None

        try:
            reply = request_with_retry(send, self.url, "complete", sleep=self._sleep, deadline=deadline)
        except UpstreamError as error:
            raise UpstreamError(self._safe(str(error))) from None
        with self._lock:
            self.usage.requests += 1
        return reply

    def _safe(self, text: str) -> str:
        """Return `text` without the token: some endpoints quote what they were sent."""
        return text.replace(self._token, "***") if self._token else text

    def _read(self, said: Any) -> Completion:
        used = said.get("usage") or {}
        prompt, completion = _count(used.get("prompt_tokens")), _count(used.get("completion_tokens"))
        with self._lock:
            self.usage.prompt_tokens += prompt
            self.usage.completion_tokens += completion
        choice = said["choices"][0]
        text = choice["message"]["content"]
        if not isinstance(text, str) or not text.strip():
            raise _UselessError("the message is empty")
        if self._safe(text) != text:
            raise _UselessError("the message repeats the token")
        if choice.get("finish_reason") not in (None, "stop"):
            reason = self._safe(f"{choice['finish_reason']!r}")
            raise _UselessError(f"it ended for the reason {reason:.40}")
        return Completion(text, prompt, completion)


class _UselessError(ValueError):
    """An answer of the protocol, of which no use can be made."""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
