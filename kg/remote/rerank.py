"""A client for rerank endpoints with the protocol of Cohere, Jina and vLLM."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

from kg.errors import UpstreamError
from kg.remote.http import DeadlinePassedError, TooLargeError, redact, send_request

MAX_BYTES: Final = 4 << 20
"""Maximum size of a response."""


class RerankEndpoint:
    """``POST {url}/rerank`` with ``{"model", "query", "documents", "top_n"}`` answers
    ``{"results": [{"index", "relevance_score"}]}``.

    Calls block and are thread-safe. A call is one request: a search does not wait for another attempt.
    """

    def __init__(self, url: str, model: str, token: str | None = None) -> None:
        path = url.rstrip("/")
        self.url: Final = path if path.endswith("/rerank") else f"{path}/rerank"
        self._model = model
        self._token = token

    def score(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Score `texts` for `query`, in their order; higher is better.

        Raises UpstreamError without a valid score for each text within `seconds`.
        """
        import httpx  # here, since the import is slow

        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        try:
            reply = send_request(self.url, None, "application/json", seconds, MAX_BYTES, json=body, token=self._token)
        except DeadlinePassedError:
            raise UpstreamError(f"{self.url} did not answer within {seconds:.1f} s.") from None
        except TooLargeError:
            raise UpstreamError(f"The response of {self.url} exceeds {MAX_BYTES >> 20} MiB.") from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise UpstreamError(redact(f"{self.url} cannot be reached: {error}", self._token)) from None
        if reply.status != httpx.codes.OK:
            raise UpstreamError(redact(f"{self.url} refused to rank: HTTP {reply.status} {reply.text}", self._token))
        try:
            return _parse_scores(json.loads(reply.body), len(texts))
        except (ArithmeticError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise UpstreamError(
                redact(f"{self.url} returned an invalid response: {error!r:.200}", self._token)
            ) from None


def _parse_scores(response: Any, count: int) -> list[float]:
    """Parse a response into one score per document. Raises an error of Python for any other."""
    scores: dict[int, float] = {}
    for each in response["results"]:
        index, score = each["index"], each["relevance_score"]
        if type(index) is not int or not 0 <= index < count or index in scores:
            raise ValueError(f"index {index!r} among {count} documents")
        if type(score) not in (int, float) or not math.isfinite(score):
            raise ValueError(f"relevance_score {score!r}")
        scores[index] = float(score)
    if len(scores) < count:
        raise ValueError(f"{len(scores)} scores for {count} documents")
    return [scores[index] for index in range(count)]
