"""Embedding keeps every character of a text, computes equal windows once, and needs no network for a local model."""

from __future__ import annotations

import json
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kg.errors import InvalidInputError, ModelError, UpstreamError
from kg.search import embedding, models
from kg.search.devices import CUDA
from kg.search.embedding import (
    BATCH,
    LocalEmbedder,
    RemoteEmbedder,
    UniversalSentenceEncoder,
    Vectors,
    Window,
    count_tokens_at_most,
    open_embedder,
    split_windows,
)
from kg.search.registry import MINILM, USE
from kg.settings import Settings, settings
from tests.examples import dear

GEOTHERMAL = "Geothermal wells deeper than 400 metres need a licence from the Ministry of Energy."
FISHING = "Boats that fish inside the reserve lose their licence for two years."
GEMMA = "google/embeddinggemma-300m"


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    opened = open_embedder(settings())
    assert isinstance(opened, LocalEmbedder)
    return opened


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    found = Tokenizer.from_file(str(models.get_installed_folder(settings()) / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found


@pytest.fixture(scope="module", params=[MINILM, USE])
def any_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    found: Tokenizer = open_embedder(settings(), request.param)._tokenizer  # type: ignore[attr-defined]
    return found


class Counting:
    """A model that notes the texts it computes."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def passage_embed(self, texts: list[str], **options: int) -> Any:
        self.seen += texts
        assert options == {"batch_size": BATCH}
        return self.inner.passage_embed(texts, **options)


def assert_covered(text: str, found: list[Window], size: int) -> None:
    assert (found[0].start, found[-1].end) == (0, len(text))
    for before, after in pairwise(found):
        assert before.start <= after.start <= before.end <= after.end
        # A character of several tokens may begin two windows of a few tokens each, never two of the model's size.
        assert before.start < after.start or size < 40
    assert all(window.tokens <= size for window in found)


def cosine(one: Vectors, other: Vectors) -> float:
    return float(one @ other)


def test_vectors_are_unit_float32_rows(embedder: LocalEmbedder) -> None:
    for vectors in embedder.embed_documents([GEOTHERMAL, FISHING]):
        assert (vectors.shape, vectors.dtype) == ((1, embedder.dimensions), np.float32)
        assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-5)
    query = embedder.embed_query("geothermal")
    assert (query.shape, query.dtype) == ((384,), np.float32)


def test_meaning_is_near_meaning(embedder: LocalEmbedder) -> None:
    wells, boats = (vectors[0] for vectors in embedder.embed_documents([GEOTHERMAL, FISHING]))
    query = embedder.embed_query("Who permits drilling for underground heat?")
    assert cosine(query, wells) > cosine(query, boats) + 0.2


def test_sorting_by_length_does_not_mix_up_the_texts(embedder: LocalEmbedder) -> None:
    texts = [f"{'long ' * (number * 7 % 50)}text {number}" for number in range(40)]
    together = embedder.embed_documents(texts)
    for text, vectors in zip(texts, together, strict=True):
        assert cosine(embedder.embed_query(text), vectors[0]) > 0.95


def test_equal_texts_are_computed_once(embedder: LocalEmbedder) -> None:
    counting = Counting(models.load_model(settings()))
    first, other, again = LocalEmbedder(counting, "counting").embed_documents([GEOTHERMAL, FISHING, GEOTHERMAL])
    assert sorted(counting.seen) == sorted([GEOTHERMAL, FISHING])
    np.testing.assert_array_equal(first, again)
    assert cosine(first[0], other[0]) < 0.9


def test_no_texts_give_no_vectors(embedder: LocalEmbedder) -> None:
    assert embedder.embed_documents([]) == []


@pytest.mark.parametrize("blank", ["", " ", "\n\t \u2003", "\x00"])
def test_a_blank_text_has_one_vector(embedder: LocalEmbedder, blank: str) -> None:
    ((vector,),) = embedder.embed_documents([blank])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert np.isfinite(embedder.embed_query(blank)).all()


def test_a_lone_surrogate_is_the_callers_mistake(embedder: LocalEmbedder) -> None:
    for call in (embedder.embed_query, lambda text: embedder.embed_documents(["fine", text])):
        with pytest.raises(InvalidInputError, match="lone surrogate at character 3"):
            call("abc\ud800")


def test_the_end_of_a_long_text_is_found(embedder: LocalEmbedder) -> None:
    text = f"{FISHING} " * 60 + GEOTHERMAL
    (vectors,) = embedder.embed_documents([text])
    assert len(vectors) > 3
    query = embedder.embed_query("licence for geothermal wells")
    scores = vectors @ query
    assert scores.argmax() == len(vectors) - 1
    assert scores[-1] > scores[0] + 0.2


def test_a_text_that_just_fits_is_one_window(embedder: LocalEmbedder, tokenizer: Tokenizer) -> None:
    fits, over = ("law " * count for count in (254, 255))
    assert len(tokenizer.encode(fits).ids) == models.WINDOW
    assert [len(vectors) for vectors in embedder.embed_documents([fits, over])] == [1, 2]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@example("\ufdfa" * 9)
@example("İİ ﬃ ① ǆ 각 漢字")
def test_a_text_has_no_more_tokens_than_bytes(any_tokenizer: Tokenizer, text: str) -> None:
    [tokens] = any_tokenizer.encode_batch([text], add_special_tokens=False)
    assert len(tokens) <= count_tokens_at_most(text)


def test_a_short_query_loads_no_second_tokenizer(embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = embedder.embed_documents([GEOTHERMAL])[0][0]
    fresh = LocalEmbedder(embedder._model, "fresh")
    monkeypatch.setattr(Tokenizer, "from_str", None)
    assert cosine(fresh.embed_query(GEOTHERMAL), expected) == pytest.approx(1, abs=1e-3)
    with pytest.raises(TypeError):
        fresh.embed_query(GEOTHERMAL * 9)  # so the monkey is in the way of a long one


def test_a_query_longer_than_a_window_counts_whole(embedder: LocalEmbedder) -> None:
    query = embedder.embed_query(f"{FISHING} " * 30 + f"{GEOTHERMAL} " * 30)
    assert np.linalg.norm(query) == pytest.approx(1, abs=1e-5)
    wells, boats = (vectors[0] for vectors in embedder.embed_documents([GEOTHERMAL, FISHING]))
    assert min(cosine(query, wells), cosine(query, boats)) > 0.5


def test_every_window_fits_the_model_as_cut_out(embedder: LocalEmbedder, tokenizer: Tokenizer) -> None:
    counting = Counting(models.load_model(settings()))
    text = "".join(f"Règlement-{number} «{'x' * (number % 130)}» 能源{number * 7}; " for number in range(200))
    (vectors,) = LocalEmbedder(counting, "counting").embed_documents([text])
    assert len(vectors) == len(counting.seen) > 20
    assert max(len(tokenizer.encode(part).ids) for part in counting.seen) <= models.WINDOW


def test_threads_share_an_embedder(embedder: LocalEmbedder) -> None:
    texts = [f"{GEOTHERMAL} {number}" for number in range(24)]
    alone = [embedder.embed_query(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_array_equal(list(pool.map(embedder.embed_query, texts)), alone)


@hypothesis_settings(max_examples=dear(60))
@given(
    text=st.text(st.sampled_from("ab é1.,\n 能\x00İ한\u00ad "), max_size=400) | st.text(max_size=200),
    size=st.integers(4, 39) | st.just(254),
    piece=st.integers(1, 60),
)
@example(text="ab 한 \nİbé1\n한é한1", size=4, piece=3)  # one character is three tokens: the next window begins with it
def test_windows_hold_every_character(any_tokenizer: Tokenizer, text: str, size: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(embedding, "PIECE", piece)
        assert_covered(text, list(split_windows(text, any_tokenizer, size)), size)


def test_neighbouring_windows_share_a_sentence_and_cut_between_words(tokenizer: Tokenizer) -> None:
    text = " ".join(f"municipality{number}" for number in range(900))
    found = list(split_windows(text, tokenizer, 254))
    assert_covered(text, found, 254)
    for before, after in pairwise(found):
        shared = text[after.start : before.end]
        assert len(tokenizer.encode(shared, add_special_tokens=False).ids) >= embedding.OVERLAP
        assert {text[after.start - 1], text[before.end]} == {" "}


@pytest.mark.long
def test_a_long_text_is_windowed_whole_in_bounded_memory(tokenizer: Tokenizer) -> None:
    text = "".join(f"{GEOTHERMAL[: number % 80]} {number} " for number in range(33_000))
    assert len(text) > 1_500_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    end, count = 0, 0
    for window in split_windows(text, tokenizer, 254):
        assert window.start <= end <= window.end
        end, count = window.end, count + 1
    assert (end, count > 1_500) == (len(text), True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 45_000, "KiB"


@pytest.mark.parametrize("long", ["x" * 200_000, " " * 200_000, "能" * 20_000, "word " * 50_000])
def test_long_texts_of_one_kind_end(embedder: LocalEmbedder, tokenizer: Tokenizer, long: str) -> None:
    assert_covered(long, list(split_windows(long, tokenizer, 254)), 254)
    (vectors,) = embedder.embed_documents([long])
    assert np.isfinite(vectors).all()


def test_more_windows_than_a_block_keep_their_order(embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"paragraph {number} " * (1 + number % 5) for number in range(50)] * 2
    whole = embedder.embed_documents(texts)
    monkeypatch.setattr(embedding, "BLOCK", 7)
    monkeypatch.setattr(embedding, "TOKENIZED", 3)
    for one, other in zip(whole, embedder.embed_documents(texts), strict=True):
        assert cosine(one[0], other[0]) > 0.95


def test_opening_and_embedding_use_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a local model must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert open_embedder(settings()).embed_query("offline").shape == (384,)


def test_an_absent_model_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="kg models pull"):
        open_embedder(Settings(models_dir=tmp_path))


def test_the_name_tells_the_arithmetic_and_threads_are_passed_on() -> None:
    chosen = settings().model_copy(update={"embedding_threads": 3})
    opened = open_embedder(chosen)
    assert opened.name == f"{MINILM}/{chosen.model_precision}"
    assert opened.at_once == 2 * 3 * BATCH
    assert models.load_model(chosen).threads == 3


def test_each_thread_computes_a_batch_of_its_own_and_rows_keep_their_order(embedder: LocalEmbedder) -> None:
    together = threading.Barrier(2, timeout=60)

    class Meeting(Counting):
        def passage_embed(self, texts: list[str], **options: int) -> Any:
            together.wait()  # breaks unless two batches run at once
            return super().passage_embed(texts, **options)

    texts = [f"{GEOTHERMAL} {number}" for number in range(4 * BATCH)]
    opened = LocalEmbedder(Meeting(models.load_model(settings(), threads=1)), "meeting", threads=2)
    for one, other in zip(opened.embed_documents(texts), embedder.embed_documents(texts), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_model_on_a_gpu_gets_large_batches_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "get_providers", lambda _: [CUDA, "CPUExecutionProvider"])
    assert open_embedder(settings()).at_once == 2 * embedding.GPU_BATCH


@pytest.mark.parametrize(
    ("name", "query", "passage", "marked"),
    [
        ("intfloat/multilingual-e5-small", "query: heat", "passage: heat", "/prefixed/256d"),
        (
            "google/embeddinggemma-300m",
            "task: search result | query: heat",
            "title: none | text: heat",
            "/prefixed/256d",
        ),
        ("snowflake/snowflake-arctic-embed-xs", None, "heat", "/256d"),
        ("some/model", "heat", "heat", "/256d"),
    ],
)
def test_a_model_gets_its_prefixes_and_vectors_are_cut_to_length(
    name: str, query: str | None, passage: str, marked: str
) -> None:
    asked: list[str] = []

    class Model(Counting):
        def query_embed(self, texts: list[str]) -> Any:
            asked.extend(texts)
            return self.inner.query_embed(texts)

    model = Model(models.load_model(settings(), threads=1))
    opened = LocalEmbedder(model, name, dimensions=256)
    ((vector,),) = opened.embed_documents(["heat"])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert (opened.name, vector.shape, opened.embed_query("heat").shape) == (name + marked, (256,), (256,))
    assert model.seen == [passage]
    assert asked == [query or "Represent this sentence for searching relevant passages: heat"]
    opened.embed_documents(["law " * 1_000])
    assert max(len(model.inner.model.tokenizer.encode(part).ids) for part in model.seen) <= models.WINDOW


@pytest.mark.parametrize("model", ["", "a,", "a,a", "a,b,c"])
def test_other_than_one_or_two_models_are_refused(model: str) -> None:
    with pytest.raises(ValueError, match="one name, or two different ones"):
        Settings(model=model, _env_file=None)


def test_a_length_that_a_model_was_not_trained_for_is_refused() -> None:
    chosen = Settings(model=GEMMA, embedding_dimensions=300, _env_file=None)
    with pytest.raises(ModelError, match=r"300.*128, 256, 512, 768"):
        open_embedder(chosen)


# A remote endpoint

Answer = tuple[int, dict[str, str], object]


class Endpoint:
    """A loopback stand-in for an embeddings endpoint; `answers` come first, then vectors of four numbers."""

    def __init__(self) -> None:
        self.answers: list[Answer | Callable[[dict[str, Any]], Answer]] = []
        self.requests: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append({"path": self.path, **body})
                outer.tokens.add(self.headers.get("Authorization"))
                answer = outer.answers.pop(0) if outer.answers else outer.vectors
                status, headers, content = answer(body) if callable(answer) else answer
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    @staticmethod
    def vectors(body: dict[str, Any]) -> Answer:
        """Answer with one vector per input that tells its first character, last input first."""
        data = [
            {"index": index, "embedding": [float(ord(text[0])), 2.0 * len(text), 1.0, 0.0]}
            for index, text in enumerate(body["input"])
        ]
        return 200, {}, {"data": data[::-1]}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    running = Endpoint()
    yield running
    running.close()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def remote(endpoint: Endpoint, slept: list[float]) -> Iterator[RemoteEmbedder]:
    opened = RemoteEmbedder(endpoint.url, "some-model", "secret-token", timeout_s=5, sleep=slept.append)
    yield opened
    opened.close()


def test_the_settings_choose_the_endpoint(endpoint: Endpoint) -> None:
    opened = open_embedder(Settings(embedding_url=endpoint.url, embedding_token="t", model="some-model"))
    assert isinstance(opened, RemoteEmbedder)
    assert (opened.name, opened.dimensions) == ("127.0.0.1/some-model", 4)
    assert endpoint.tokens == {"Bearer t"}
    assert endpoint.requests[0]["path"] == "/v1/embeddings"
    opened.close()


def test_an_endpoint_computes_the_models_that_it_can_serve(endpoint: Endpoint) -> None:
    chosen = Settings(
        embedding_url=endpoint.url,
        model=f"intfloat/multilingual-e5-small, {USE}",
        embedding_dimensions=4,
        _env_file=None,
    )
    first, second = (open_embedder(chosen, name) for name in chosen.models)
    assert (first.name, first.languages) == ("127.0.0.1/intfloat/multilingual-e5-small/prefixed/4d", None)
    assert isinstance(second, UniversalSentenceEncoder)
    first.embed_documents(["heat"])
    first.embed_query("heat")
    assert [request["input"] for request in endpoint.requests] == [["passage: heat"], ["query: heat"]]
    assert {request["dimensions"] for request in endpoint.requests} == {4}


def test_remote_vectors_come_back_in_order_and_normalized(remote: RemoteEmbedder, endpoint: Endpoint) -> None:
    texts = [chr(97 + number % 26) * (1 + number) for number in range(100)]
    found = remote.embed_documents([*texts, texts[0]])
    for text, vectors in zip(texts, found, strict=False):
        expected = np.array([ord(text[0]), 2.0 * len(text), 1, 0], dtype=np.float32)
        np.testing.assert_allclose(vectors, [expected / np.linalg.norm(expected)], rtol=1e-5)
    assert sorted(len(request["input"]) for request in endpoint.requests) == [36, 64]
    assert endpoint.tokens == {"Bearer secret-token"}


def test_remote_texts_are_cut_into_windows_that_hold_all_of_them(remote: RemoteEmbedder, endpoint: Endpoint) -> None:
    text = " ".join(str(number) for number in range(2_000))
    (vectors,) = remote.embed_documents([text])
    sent = [part for request in endpoint.requests for part in request["input"]]
    assert len(vectors) == len(sent)
    assert all(len(part) <= embedding.REMOTE_WINDOW for part in sent)
    assert {word for part in sent for word in part.split()} >= set(text.split())
    assert remote.embed_query(text).shape == (4,)


def test_the_empty_text_is_sent_as_a_blank(remote: RemoteEmbedder, endpoint: Endpoint) -> None:
    remote.embed_documents([""])
    assert endpoint.requests[0]["input"] == [" "]


def test_a_busy_endpoint_is_asked_again_when_it_says(
    remote: RemoteEmbedder, endpoint: Endpoint, slept: list[float]
) -> None:
    endpoint.answers = [
        (429, {"Retry-After": "7"}, {}),
        (503, {"Retry-After": formatdate(usegmt=True)}, {}),
        (500, {}, {}),
    ]
    assert remote.embed_documents(["text"])[0].shape == (1, 4)
    assert slept[0] == 7
    assert slept[1] < 2
    assert slept[2] == 4


def test_an_endpoint_that_stays_busy_is_given_up(
    remote: RemoteEmbedder, endpoint: Endpoint, slept: list[float]
) -> None:
    endpoint.answers = [(503, {}, {"error": "overloaded"})] * 9
    with pytest.raises(UpstreamError, match=r"did not embed after 4 attempts: HTTP 503 .*overloaded"):
        remote.embed_documents(["text"])
    assert len(slept) == 3


def test_a_long_retry_after_is_not_waited_for(remote: RemoteEmbedder, endpoint: Endpoint, slept: list[float]) -> None:
    endpoint.answers = [(429, {"Retry-After": "3600"}, {})]
    with pytest.raises(UpstreamError, match="3600 s"):
        remote.embed_documents(["text"])
    assert slept == []


def test_a_refusal_is_not_repeated_and_tells_no_secret(remote: RemoteEmbedder, endpoint: Endpoint) -> None:
    endpoint.answers = [(401, {}, {"error": "bad key"})]
    with pytest.raises(UpstreamError, match=r"refused to embed: HTTP 401 .*bad key") as raised:
        remote.embed_documents(["text"])
    assert "secret-token" not in str(raised.value)
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_is_gone_is_said(endpoint: Endpoint, slept: list[float]) -> None:
    gone = RemoteEmbedder("http://127.0.0.1:9/v1", "m", sleep=slept.append)
    with pytest.raises(UpstreamError, match=r"after 4 attempts: ConnectError"):
        gone.embed_documents(["text"])
    gone.close()


def test_requests_for_documents_run_at_once_and_no_more_than_allowed(endpoint: Endpoint) -> None:
    running, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(3, timeout=30)

    def answer(body: dict[str, Any]) -> Answer:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()
        with lock:
            running -= 1
        return endpoint.vectors(body)

    endpoint.answers = [answer] * 6
    opened = RemoteEmbedder(endpoint.url, "m", requests=3)
    texts = [f"{number} text" for number in range(6 * embedding.REMOTE_BATCH)]
    found = opened.embed_documents(texts)
    assert (most, opened.at_once) == (3, 3 * embedding.REMOTE_BATCH)
    for text, vectors in zip(texts, found, strict=True):
        expected = np.array([ord(text[0]), 2.0 * len(text), 1, 0], dtype=np.float32)
        np.testing.assert_allclose(vectors, [expected / np.linalg.norm(expected)], rtol=1e-5)
    opened.close()


def test_after_a_refusal_no_further_request_begins(endpoint: Endpoint) -> None:
    endpoint.answers = [(400, {}, {})] * 50
    opened = RemoteEmbedder(endpoint.url, "m", requests=2)
    with pytest.raises(UpstreamError, match="HTTP 400"):
        opened.embed_documents([f"{number} text" for number in range(50 * embedding.REMOTE_BATCH)])
    assert len(endpoint.requests) < 50
    opened.close()


def test_a_query_does_not_wait_for_a_slow_or_busy_endpoint(endpoint: Endpoint) -> None:
    release = threading.Event()

    def stall(body: dict[str, Any]) -> Answer:
        release.wait(30)
        return endpoint.vectors(body)

    slept: list[float] = []
    opened = RemoteEmbedder(endpoint.url, "m", query_s=0.2, sleep=slept.append)
    endpoint.answers = [stall]
    with pytest.raises(UpstreamError, match="did not embed before the deadline, in 1 attempts: timeout"):
        opened.embed_query("text")
    release.set()
    endpoint.answers = [(503, {"Retry-After": "1"}, {})]
    with pytest.raises(UpstreamError, match=r"before the deadline.*503"):
        opened.embed_query("text")
    assert slept == []
    assert opened.embed_query("text").shape == (4,)
    opened.close()


def test_a_response_too_large_is_refused(
    remote: RemoteEmbedder, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "REMOTE_MAX_BYTES", 1 << 20)
    endpoint.answers = [(200, {}, b" " * (3 << 20))]
    with pytest.raises(UpstreamError, match="exceeds 1 MiB"):
        remote.embed_documents(["text"])


def test_no_proxy_of_the_environment_sees_the_texts(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    opened = RemoteEmbedder(endpoint.url, "m")
    assert opened.embed_query("text").shape == (4,)
    opened.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"<html>", "not a list of embeddings"),
        ({"error": "none"}, "not a list of embeddings"),
        ({"data": [{"index": 0, "embedding": ["a"]}]}, "not a list of embeddings"),
        ({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}, r"shape \(1, 2\).*\(1, 4\)"),
        ({"data": []}, "shape"),
        ({"data": [{"index": n, "embedding": [1.0] * 4} for n in range(2)]}, r"shape \(2, 4\).*\(1, 4\)"),
        ({"data": [{"index": 0, "embedding": [float("nan")] * 4}]}, "zero or not finite"),
        ({"data": [{"index": 0, "embedding": [0.0] * 4}]}, "zero or not finite"),
    ],
)
def test_an_answer_that_is_no_vector_is_refused(
    remote: RemoteEmbedder, endpoint: Endpoint, answer: object, message: str
) -> None:
    assert remote.dimensions == 4
    endpoint.answers = [(200, {}, answer)]
    with pytest.raises(UpstreamError, match=message):
        remote.embed_query("text")
