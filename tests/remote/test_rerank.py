"""A rerank endpoint is asked once within the deadline, and only a complete, valid answer counts."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kg.errors import UpstreamError
from kg.remote.rerank import RerankEndpoint
from kg.search.reranker import AT_ONCE, Reranker

TEXTS = ["short", "the longest of all", "longer one"]
TOKEN = "sesame-4711"


class StandIn:
    """A rerank service: a text's score is its length. `answer` makes another response of that one."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[str | None] = []
        self.answer: Callable[[dict[str, Any]], Any] = lambda response: response
        self.status = 200
        self.held: threading.Event | None = None


@pytest.fixture
def service() -> Iterator[tuple[StandIn, str]]:
    stand_in = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stand_in.asked.append({**body, "path": self.path})
            stand_in.headers.append(self.headers["Authorization"])
            if stand_in.held is not None:
                stand_in.held.wait(60)
            results = [{"index": i, "relevance_score": len(text)} for i, text in enumerate(body["documents"])]
            results.sort(key=lambda each: -each["relevance_score"])
            content = json.dumps(stand_in.answer({"id": "x", "results": results})).encode()
            self.send_response(stand_in.status)
            self.send_header("Content-Length", str(len(content)))
            with contextlib.suppress(OSError):  # the client has left
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield stand_in, f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def test_the_scores_are_in_the_order_of_the_texts(service: tuple[StandIn, str]) -> None:
    stand_in, url = service
    for form in (url, f"{url}/", f"{url}/rerank"):
        assert RerankEndpoint(form, "m-1", TOKEN).score("q", TEXTS, 60) == [5.0, 18.0, 10.0]
    expected = {"model": "m-1", "query": "q", "documents": TEXTS, "top_n": 3, "path": "/v1/rerank"}
    assert stand_in.asked == [expected] * 3
    assert set(stand_in.headers) == {f"Bearer {TOKEN}"}


INVALID: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no results": lambda response: {},
    "a list": lambda response: [1, 2],
    "too few": lambda response: {"results": response["results"][:2]},
    "one twice": lambda response: {"results": [*response["results"][:2], response["results"][0]]},
    "an unknown document": lambda response: {"results": [*response["results"], {"index": 9, "relevance_score": 1}]},
    "a negative index": lambda response: {"results": [{"index": -1, "relevance_score": 1}]},
    "no number": lambda response: {"results": [{"index": 0, "relevance_score": "high"}]},
    "not finite": lambda response: {"results": [{"index": i, "relevance_score": float("nan")} for i in range(3)]},
    "too large": lambda response: {"results": [{"index": 0, "relevance_score": 10**400}]},
    "a token": lambda response: {"results": TOKEN},
}


@pytest.mark.parametrize("answer", INVALID.values(), ids=INVALID)
def test_an_invalid_response_is_an_error(service: tuple[StandIn, str], answer: Callable[..., Any]) -> None:
    stand_in, url = service
    stand_in.answer = answer
    with pytest.raises(UpstreamError) as error:
        RerankEndpoint(url, "m", TOKEN).score("q", TEXTS, 60)
    assert TOKEN not in str(error.value)


def test_an_error_status_is_asked_once_and_never_shows_the_token(service: tuple[StandIn, str]) -> None:
    stand_in, url = service
    stand_in.status, stand_in.answer = 503, lambda response: {"message": f"bad token {TOKEN}"}
    with pytest.raises(UpstreamError, match="503") as error:
        RerankEndpoint(url, "m", TOKEN).score("q", TEXTS, 60)
    assert TOKEN not in str(error.value)
    assert len(stand_in.asked) == 1


def test_a_slow_service_is_left_at_the_deadline(service: tuple[StandIn, str]) -> None:
    stand_in, url = service
    stand_in.held = threading.Event()
    start = time.monotonic()
    with pytest.raises(UpstreamError):
        RerankEndpoint(url, "m").score("q", TEXTS, 0.2)
    assert time.monotonic() - start < 30
    stand_in.held.set()


def test_a_service_that_fails_is_not_asked_again_at_once(service: tuple[StandIn, str]) -> None:
    stand_in, url = service
    stand_in.status = 500
    reranker = Reranker("x", RerankEndpoint(url, "m").score, depth=50, timeout_s=60)
    first, second = reranker.score("q", TEXTS), reranker.score("q", TEXTS)
    assert isinstance(first, str)
    assert isinstance(second, str)
    assert second.startswith(first)
    assert len(stand_in.asked) == 1


def test_more_searches_than_places_keep_their_order() -> None:
    started, going = threading.Semaphore(0), threading.Event()

    def score(query: str, texts: object, seconds: float) -> list[float]:
        started.release()
        going.wait(60)
        return [1.0]

    reranker = Reranker("x", score, depth=50, timeout_s=60)
    threads = [threading.Thread(target=reranker.score, args=("q", ["a"])) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
        started.acquire()
    assert isinstance(reranker.score("q", ["a"]), str)
    going.set()
    for thread in threads:
        thread.join()
    assert reranker.score("q", ["a"]) == [1.0]
