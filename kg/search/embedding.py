"""Text to vectors, by local models in this process or by a remote endpoint.

A text longer than the input of the model is split into overlapping windows, each with its own vector. So no text is
truncated; a search uses the score of the best window.
"""

from __future__ import annotations

import json
import math
import sys
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from kg.errors import InvalidInputError, ModelError, UpstreamError
from kg.processes.cores import count_cores
from kg.remote.http import Reply, TooLargeError, request_with_retry, send_request
from kg.search import models
from kg.search.devices import CUDA, get_providers
from kg.search.registry import MINILM, MODELS, USE, get_facts, get_languages, get_prefixes
from kg.settings import Settings
from kg.store.protocol import batched

if TYPE_CHECKING:
    from fastembed import TextEmbedding

    from kg.search.sentence_encoder import SentenceEncoder

Vectors = NDArray[np.float32]

OVERLAP = 48
"""Overlap of adjacent windows in tokens: more than a long sentence of law, so that most sentences are in one window."""

BATCH = 16
"""Windows per batch of the model on a CPU. Larger batches are not faster and take more memory."""

GPU_BATCH = 256
"""Windows per batch of the model on a GPU, which 16 windows do not fill."""

USE_BATCH = 64
"""Windows per batch of the universal sentence encoder, which takes a millisecond for each."""

BLOCK = 2_048
"""Windows that are sorted by length together, and in memory at once."""

PIECE = 16_384
"""Characters of a long text that are tokenized at once: tokens take far more memory than text."""

SPARE = 4
"""Spare tokens in the windows of a long text: a window may tokenize differently from the text around it."""

TOKENIZED = 256
"""Texts per tokenizer batch."""

UNLIMITED = 512
"""Window in tokens for models without a length limit, which only average word vectors."""

REMOTE_WINDOW, REMOTE_OVERLAP = 1_600, 200
"""Window and overlap in characters for a remote model with an unknown tokenizer: at most 512 tokens of most texts."""

REMOTE_BATCH = 64
"""Inputs per request."""

REMOTE_MAX_BYTES = 16 << 20
"""Maximum size of a response: 64 vectors of 4,096 numbers of some 20 characters are 5 MiB."""

QUERY_S = 2.0
"""Maximum seconds that a search waits for a remote vector. Without it, the search is by words."""


class Embedder(Protocol):
    """Turns text into unit vectors. Calls block and are safe from any thread."""

    @property
    def name(self) -> str:
        """Name of the model and endpoint. Vectors of different names cannot be compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    @property
    def languages(self) -> frozenset[str] | None:
        """Primary subtags of the languages whose texts it can compare; None: any or unknown."""
        ...

    @property
    def at_once(self) -> int:
        """How many short texts to give one call: with fewer it is slower, with more no faster."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vectors]:
        """Embed texts as one array per text with a row per window, at least one row even for an empty text.

        Equal windows are computed once per call. Raises InvalidInputError for a lone surrogate.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a query as one vector, the mean of its windows if it is longer than one."""
        ...


def open_embedder(settings: Settings, name: str | None = None) -> Embedder:
    """Open an embedder by the name of its model; without one, the first of the settings. Nothing is downloaded here.

    An endpoint of the settings computes every model but `USE`, which no endpoint serves.
    Raises ModelError, with the command to run, if a local model is not installed.
    """
    name = name or settings.models[0]
    threads = settings.embedding_threads or count_cores()
    if name == USE:
        from kg.search.sentence_encoder import SentenceEncoder

        return UniversalSentenceEncoder(SentenceEncoder(), threads=threads)
    length = settings.embedding_dimensions
    if settings.embedding_url is not None:
        token = settings.embedding_token.get_secret_value() if settings.embedding_token else None
        url, requests = str(settings.embedding_url), settings.embedding_requests
        return RemoteEmbedder(url, name, token, requests=requests, dimensions=length or None)
    facts = MODELS.get(name)
    if facts is None or not facts.lengths:
        length = 0
    elif length and length not in facts.lengths:
        lengths = ", ".join(map(str, facts.lengths))
        raise ModelError(f"QUADCITE_EMBEDDING_DIMENSIONS={length}, but vectors of {name} can have {lengths}.")
    else:
        length = length or facts.dimensions
    precision = f"/{settings.model_precision}" if name == MINILM else ""
    # A thread for each batch, not several for one: they wait for each other after each operator, and spin meanwhile.
    model = models.load_model(settings, name, threads=1)
    on_gpu = CUDA in get_providers(model)
    return LocalEmbedder(
        model,
        name + precision,
        threads=1 if on_gpu else threads,
        batch=GPU_BATCH if on_gpu else BATCH,
        dimensions=length or None,
    )


class Tokens(Protocol):
    """The tokens of a text."""

    @property
    def offsets(self) -> Sequence[tuple[int, int]]:
        """Their offsets in characters, end-exclusive."""
        ...

    @property
    def word_ids(self) -> Sequence[int | None]:
        """The numbers of their words."""
        ...


class Tokenizer(Protocol):
    """Cuts texts into tokens, as those of the library ``tokenizers``."""

    def encode(self, sequence: str, *, add_special_tokens: bool) -> Tokens:
        """Cut a text into tokens."""
        ...

    def encode_batch(self, input: list[str], *, add_special_tokens: bool) -> Sequence[Sized]:
        """Cut texts into tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """Character offsets of a window, end-exclusive, and its number of tokens."""

    start: int
    end: int
    tokens: int


def split_windows(text: str, tokenizer: Tokenizer, size: int) -> Iterator[Window]:
    """Split `text` into windows of at most `size` tokens that overlap by `OVERLAP` (a quarter of `size` if less).

    Together they contain every character. Each begins and ends between words, unless a word is longer than a window.
    `tokenizer` must not pad or truncate. A long text is tokenized piece by piece, in bounded memory.
    """
    overlap = min(OVERLAP, size // 4)
    begin, length = 0, PIECE
    while True:
        piece = text[begin : begin + length]
        last = begin + length >= len(text)
        tokens = tokenizer.encode(piece, add_special_tokens=False)
        offsets, words = tokens.offsets, tokens.word_ids
        first, start, cut = 0, 0, []
        while len(offsets) - first > size:
            stop = _word_start(words, first + size, first + overlap)
            cut.append(Window(begin + start, begin + offsets[stop - 1][1], stop - first))
            first = _word_start(words, stop - overlap, first)
            start = offsets[first][0]
        if last:
            yield from cut
            yield Window(begin + start, len(text), len(offsets) - first)
            return
        if start:
            yield from cut
            begin, length = begin + start, PIECE
        else:
            # The piece has too few tokens for a window (a run of blanks, or a character of many tokens): enlarge it.
            length *= 2


def _word_start(words: Sequence[int | None], index: int, floor: int) -> int:
    """Return the first token of the word at `index`, or `index` if that token is at or before `floor`."""
    start = index
    while start > floor and words[start] is not None and words[start] == words[start - 1]:
        start -= 1
    return start if start > floor else index


def count_tokens_at_most(text: str) -> int:
    """Return an upper bound of the number of tokens of `text`: its bytes, or those of its NFKD form if more, and one.

    SentencePiece puts a blank before the text.
    """
    return 1 + max(len(text.encode()), len(unicodedata.normalize("NFKD", text).encode()))


def _mark(name: str, dimensions: int | None) -> str:
    """Return the name of an embedder: its vectors are of another space with a prefix, or of another length."""
    return name + ("/prefixed" if get_prefixes(name)[1] else "") + (f"/{dimensions}d" if dimensions else "")


class _WindowEmbedder(ABC):
    """A model in this process, of which several threads compute one batch of windows each.

    `tokenizer` must not pad or truncate; `size` is the longest window in tokens, without special ones.
    """

    def __init__(self, name: str, dimensions: int, size: int, batch: int, threads: int) -> None:
        self._name = name
        self._dimensions = dimensions
        self._size = size
        self._batch = batch
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "embedding")

    @property
    @abstractmethod
    def _tokenizer(self) -> Tokenizer: ...

    @abstractmethod
    def _embed_batch(self, batch: Sequence[str]) -> Iterable[NDArray[Any]]: ...

    @abstractmethod
    def _embed_query(self, parts: Sequence[str]) -> Iterable[NDArray[Any]]: ...

    @property
    def name(self) -> str:
        """The model name, with its precision if it has several."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages in the registry; see Embedder."""
        return get_languages(self._name)

    @property
    def at_once(self) -> int:
        """Two batches for each thread: less than a second of work."""
        return 2 * self._batch * self._threads

    def embed_documents(self, texts: Sequence[str]) -> list[Vectors]:
        """Embed texts as one array per text with a row per window; see Embedder."""
        return _embed_distinct(texts, self._cut(texts), self._embed)

    def embed_query(self, text: str) -> Vectors:
        """Embed a query as one vector; see Embedder."""
        _check_unicode(text)
        parts = [text] if count_tokens_at_most(text) <= self._size else [part for _, part, _ in self._cut([text])]
        return _mean(_normalize(self._embed_query(parts)))

    def _cut(self, texts: Sequence[str]) -> Iterator[tuple[int, str, int]]:
        """Yield the number of the text, the window and its length in tokens for all windows of all texts."""
        for begin in range(0, len(texts), TOKENIZED):
            group = texts[begin : begin + TOKENIZED]
            for text in group:
                _check_unicode(text)
            short = [text for text in group if len(text) <= PIECE]
            counts = iter([len(found) for found in self._tokenizer.encode_batch(short, add_special_tokens=False)])
            for number, text in enumerate(group, begin):
                if len(text) <= PIECE and (count := next(counts)) <= self._size:
                    yield number, text, count
                else:
                    for window in split_windows(text, self._tokenizer, self._size - SPARE):
                        yield number, text[window.start : window.end], window.tokens

    def _embed(self, parts: Sequence[str]) -> Vectors:
        batches = self._pool.map(self._embed_batch, batched(parts, self._batch))
        return _normalize(row for batch in batches for row in batch)


class LocalEmbedder(_WindowEmbedder):
    """A fastembed model.

    With int8 a vector depends slightly on the other texts in its batch, because activations share one scale: the cosine
    between two calls is about 0.98 or more. A query is a batch of its own, so its vector is always the same.
    """

    def __init__(
        self,
        model: TextEmbedding,
        name: str,
        *,
        threads: int = 1,
        batch: int = BATCH,
        dimensions: int | None = None,
    ) -> None:
        """Use a loaded model by its name, with the precision. `dimensions` cuts vectors, if it was trained for that."""
        inner = model.model.tokenizer  # type: ignore[attr-defined]
        facts, prefixes = get_facts(name), get_prefixes(name)
        reads = min(
            inner.truncation["max_length"] if inner.truncation else UNLIMITED, facts.window if facts else sys.maxsize
        )
        before = max(len(inner.encode(prefix, add_special_tokens=False)) if prefix else 0 for prefix in prefixes)
        size = int(reads) - inner.num_special_tokens_to_add(False) - before
        super().__init__(_mark(name, dimensions), dimensions or int(model.embedding_size), size, batch, threads)
        self._model = model
        self._query_prefix, self._passage_prefix = prefixes

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """A copy of the model's tokenizer that does not pad or truncate."""
        from tokenizers import Tokenizer

        whole = Tokenizer.from_str(self._model.model.tokenizer.to_str())  # type: ignore[attr-defined]
        whole.no_padding()
        whole.no_truncation()
        return whole

    def _embed_batch(self, batch: Sequence[str]) -> list[NDArray[Any]]:
        texts = [self._passage_prefix + part for part in batch]
        return [row[: self._dimensions] for row in self._model.passage_embed(texts, batch_size=self._batch)]

    def _embed_query(self, parts: Sequence[str]) -> Iterable[NDArray[Any]]:
        found = self._model.query_embed([self._query_prefix + part for part in parts])
        return (row[: self._dimensions] for row in found)


class UniversalSentenceEncoder(_WindowEmbedder):
    """The second model of the default settings, for 16 languages (`kg.search.sentence_encoder`)."""

    def __init__(self, model: SentenceEncoder, *, threads: int = 1) -> None:
        facts = MODELS[USE]
        super().__init__(f"{USE}/6bit", facts.dimensions, facts.window - 2, USE_BATCH, threads)
        self._model = model

    @property
    def _tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    def _embed_batch(self, batch: Sequence[str]) -> Vectors:
        return self._model.embed(batch)

    def _embed_query(self, parts: Sequence[str]) -> Vectors:
        return self._model.embed(parts)


class RemoteEmbedder:
    """An OpenAI-compatible endpoint: ``POST {url}`` with ``{"model", "input"}`` returns ``{"data": [{"embedding"}]}``.

    Several requests run at once. Raises UpstreamError for every failure: failed retries
    (`kg.remote.http.request_with_retry`), an error status, or a response that is not one finite vector of the same
    length per input.
    """

    def __init__(
        self,
        url: str,
        model: str,
        token: str | None = None,
        *,
        requests: int = 4,
        dimensions: int | None = None,
        timeout_s: float = 60.0,
        query_s: float = QUERY_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        path = url.rstrip("/")
        self._url = path if path.endswith("/embeddings") else f"{path}/embeddings"
        self._model = model
        self._token = token
        self._name = f"{urlsplit(self._url).hostname}/{_mark(model, dimensions)}"
        self._query_prefix, self._passage_prefix = get_prefixes(model)
        self._options = {"dimensions": dimensions} if dimensions else {}
        self._sleep = sleep
        self._timeout_s = timeout_s
        self._query_s = query_s
        self._dimensions: int | None = None
        self._requests = requests
        self._pool = ThreadPoolExecutor(requests, "embedding requests")

    @property
    def name(self) -> str:
        """The model's name at this endpoint."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of every vector; the first call sends a request."""
        if self._dimensions is None:
            self._ask(["length"])
        return self._dimensions or 0

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages of the model in the registry, if it is there; see Embedder."""
        return get_languages(self._name)

    @property
    def at_once(self) -> int:
        """A batch for each of the requests that run at once."""
        return REMOTE_BATCH * self._requests

    def embed_documents(self, texts: Sequence[str]) -> list[Vectors]:
        """Embed texts as one array per text with a row per window of `REMOTE_WINDOW` characters; see Embedder."""
        return _embed_distinct(texts, self._cut(texts), self._embed)

    def embed_query(self, text: str) -> Vectors:
        """Embed a query as one vector, within `QUERY_S`; see Embedder."""
        parts = [self._query_prefix + part for _, part, _ in self._cut([text])]
        until = time.monotonic() + self._query_s
        batches = [self._ask(batch, until) for batch in batched(parts, REMOTE_BATCH)]
        return _mean(_normalize(row for batch in batches for row in batch))

    def close(self) -> None:
        """Give up the requests that have not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _cut(self, texts: Sequence[str]) -> Iterator[tuple[int, str, int]]:
        for number, text in enumerate(texts):
            _check_unicode(text)
            begin = 0
            while len(text) - begin > REMOTE_WINDOW:
                blank = text.rfind(" ", begin + REMOTE_WINDOW - REMOTE_OVERLAP + 1, begin + REMOTE_WINDOW)
                end = blank if blank > 0 else begin + REMOTE_WINDOW
                yield number, text[begin:end], end - begin
                begin = end - REMOTE_OVERLAP
            rest = text[begin:]
            # Endpoints reject the empty string.
            yield number, rest or " ", len(rest)

    def _embed(self, parts: Sequence[str]) -> Vectors:
        texts = [self._passage_prefix + part for part in parts]
        running = [self._pool.submit(self._ask, batch) for batch in batched(texts, REMOTE_BATCH)]
        try:
            return _normalize(row for answer in running for row in answer.result())
        finally:
            for each in running:  # after a failure; those that run end at their own timeouts
                each.cancel()

    def _ask(self, batch: Sequence[str], until: float = math.inf) -> Vectors:
        body = {"model": self._model, "input": list(batch), "encoding_format": "float", **self._options}
        reply = self._post(body, until)
        try:
            data = sorted(json.loads(reply.body)["data"], key=lambda item: int(item["index"]))
            vectors = np.array([item["embedding"] for item in data], dtype=np.float32)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UpstreamError(
                f"{self._url} returned an invalid response: not a list of embeddings: {error!r:.200}."
            ) from error
        expected = (len(batch), self._dimensions or (vectors.shape[1] if vectors.ndim == 2 else 0))
        if vectors.shape != expected or not expected[1]:
            raise UpstreamError(f"{self._url} returned vectors of shape {vectors.shape}. Expected {expected}.")
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise UpstreamError(f"{self._url} returned a vector that is zero or not finite.")
        self._dimensions = vectors.shape[1]
        return vectors

    def _post(self, body: dict[str, object], until: float) -> Reply:
        def send() -> Reply:
            seconds = max(0.0, min(self._timeout_s, until - time.monotonic()))
            try:
                return send_request(
                    self._url, None, "application/json", seconds, REMOTE_MAX_BYTES, json=body, token=self._token
                )
            except TooLargeError:
                raise UpstreamError(f"The response of {self._url} exceeds {REMOTE_MAX_BYTES >> 20} MiB.") from None

        return request_with_retry(send, self._url, "embed", sleep=self._sleep, deadline=until)


def _embed_distinct(
    texts: Sequence[str], cut: Iterable[tuple[int, str, int]], embed: Callable[[Sequence[str]], Vectors]
) -> list[Vectors]:
    """Embed each distinct window once, longest first in blocks of `BLOCK`, and restore the order of rows."""
    numbers: dict[str, int] = {}
    lengths: list[int] = []
    rows: list[list[int]] = [[] for _ in texts]
    blocks: list[Vectors] = []
    waiting: list[str] = []

    def flush() -> None:
        # A batch is padded to its longest window, so sorting by length saves most of the padding.
        base = len(lengths) - len(waiting)
        order = sorted(range(len(waiting)), key=lambda at: -lengths[base + at])
        block = embed([waiting[at] for at in order])
        sorted_back = np.empty_like(block)
        sorted_back[order] = block
        blocks.append(sorted_back)
        waiting.clear()

    for number, part, length in cut:
        if part not in numbers:
            numbers[part] = len(lengths)
            lengths.append(length)
            waiting.append(part)
        rows[number].append(numbers[part])
        if len(waiting) == BLOCK:
            flush()
    if waiting:
        flush()
    vectors = np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.float32)
    return [vectors[found] for found in rows]


def _normalize(rows: Iterable[NDArray[Any]]) -> Vectors:
    vectors = np.asarray(list(rows), dtype=np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, np.finfo(np.float32).tiny), dtype=np.float32)


def _mean(vectors: Vectors) -> Vectors:
    mean = vectors if len(vectors) == 1 else _normalize([vectors.mean(axis=0)])
    return mean.reshape(-1)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"The text contains a lone surrogate at character {error.start}. Send valid Unicode."
        ) from error
