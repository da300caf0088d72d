"""The reranker of the settings: it orders the first passages of an answer again, within a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from kg.errors import IndexUnavailableError, QuadciteError
from kg.remote.rerank import RerankEndpoint
from kg.settings import Settings

CHARACTERS: Final = 2_000
"""Characters of a passage that are sent: cross-encoders read about 512 tokens."""
AT_ONCE: Final = 4
"""Maximum number of concurrent calls. Further searches keep the fused order."""
PAUSE_S: Final = 30.0
"""Seconds without calls after a failure, so that searches do not all wait for a service that is down."""

Score = Callable[[str, Sequence[str], float], Sequence[float]]
"""Scores texts for a query within some seconds. Raises QuadciteError without a score for each."""


class Reranker:
    """Scores passages for a query. Calls block and are thread-safe."""

    def __init__(self, name: str, score: Score, *, depth: int, timeout_s: float) -> None:
        self.name: Final = name
        self.depth: Final = depth
        """Number of passages at the start of an answer that are ordered again."""
        self._score = score
        self._timeout_s = timeout_s
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._failed: tuple[float, str] | None = None
        """Time of the last failure, by the monotonic clock, and its reason."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float] | str:
        """Score `texts`, in their order; higher is better. Without scores, returns the reason, a sentence."""
        failed = self._failed
        if failed is not None and (left := failed[0] + PAUSE_S - time.monotonic()) > 0:
            return f"{failed[1]} The next attempt is in {left:.0f} s."
        if not self._places.acquire(blocking=False):
            return f"{AT_ONCE} other searches use the reranker."
        try:
            scores = self._score(query, [text[:CHARACTERS] for text in texts], self._timeout_s)
        except IndexUnavailableError as error:  # for the moment
            return str(error)
        except QuadciteError as error:
            self._failed = time.monotonic(), str(error)
            return str(error)
        finally:
            self._places.release()
        self._failed = None
        return scores


def open_reranker(settings: Settings, local: Score) -> Reranker | None:
    """Open the reranker of the settings, or None without one; `local` scores by the model in `reranker_path`."""
    depth, timeout_s = settings.reranker_depth, settings.reranker_timeout_s
    if settings.reranker_url is not None:
        token = settings.reranker_token.get_secret_value() if settings.reranker_token else None
        endpoint = RerankEndpoint(str(settings.reranker_url), settings.reranker_model, token)
        return Reranker(endpoint.url, endpoint.score, depth=depth, timeout_s=timeout_s)
    if settings.reranker_path is not None:
        return Reranker(settings.reranker_path.name, local, depth=depth, timeout_s=timeout_s)
    return None
