"""Text to vectors: the configured model in this process, or a remote endpoint.

A text longer than the model reads at once becomes overlapping windows that together hold all of it, each with its own
vector: nothing is cut off, whatever the length, and whoever searches takes the best window's score.
"""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kg.errors import InvalidInputError, UpstreamError
from kg.remote.http import Reply, request_with_retry
from kg.search import models
from kg.search.models import BUILT_IN
from kg.settings import Settings

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from tokenizers import Encoding, Tokenizer

Vectors = NDArray[np.float32]

OVERLAP = 48
"""Tokens that two neighbouring windows share: more than a long sentence of law, so that most stand whole in one."""

BATCH = 16
"""Windows that the model computes at once. On two cores larger batches are no faster and take more memory."""

BLOCK = 2_048
"""Windows that are sorted by length together and held in memory at once."""

PIECE = 16_384
"""Characters of a long text that are tokenized at once: a token's record takes far more memory than its text."""

SPARE = 4
"""Tokens left free in the windows of a long text: cut out of it, a window may tokenize a little differently."""

TOKENIZED = 256
"""Texts that are tokenized at once."""

UNLIMITED = 512
"""Window in tokens for a model that reads any length (those that only average word vectors)."""

REMOTE_WINDOW, REMOTE_OVERLAP = 1_600, 200
"""Characters of a window and of its overlap where the model's tokens are unknown: within 512 tokens of most text."""

REMOTE_BATCH = 64
"""Inputs per request."""


class Embedder(Protocol):
    """Turns text into unit vectors. Calls block and are safe from any thread."""

    @property
    def name(self) -> str:
        """What made the vectors; those of different names cannot be compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vectors]:
        """Return one array per text, a row per window (at least one row, also for an empty text).

        Equal windows are computed once per call. A text with a lone surrogate raises InvalidInputError.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Return the one vector of a query; that of one longer than a window is the mean of its windows'."""
        ...


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder that the settings ask for. Never uses the network for a local model.

    A local model that is not there raises ModelError, which names the command to run.
    """
    if settings.embedding_url is not None:
        token = settings.embedding_token.get_secret_value() if settings.embedding_token else None
        return RemoteEmbedder(str(settings.embedding_url), settings.model, token)
    precision = f"/{settings.model_precision}" if settings.model == BUILT_IN else ""
    return LocalEmbedder(models.load_model(settings), settings.model + precision)


@dataclass(frozen=True, slots=True)
class Window:
    """Characters `start` to `end` of a text, and how many tokens they are."""

    start: int
    end: int
    tokens: int


def split_windows(text: str, tokenizer: Tokenizer, size: int) -> Iterator[Window]:
    """Cut `text` into windows of at most `size` tokens that overlap by `OVERLAP` (a quarter of `size` if that is less).

    Together they hold every character; each begins and ends between words where words are shorter than a window.
    `tokenizer` must neither pad nor truncate. A long text is read piece by piece, in bounded memory.
    """
    overlap = min(OVERLAP, size // 4)
    begin, length = 0, PIECE
    while True:
        piece = text[begin : begin + length]
        last = begin + length >= len(text)
        encoding: Encoding = tokenizer.encode(piece, add_special_tokens=False)
        offsets, words = encoding.offsets, encoding.word_ids
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
            # Nothing lies behind the next window yet: too few tokens (a run of blanks), or one character of many.
            length *= 2


def _word_start(words: Sequence[int | None], index: int, floor: int) -> int:
    """Return the first token of the word that `index` is in, or `index` when that is at or before `floor`."""
    start = index
    while start > floor and words[start] is not None and words[start] == words[start - 1]:
        start -= 1
    return start if start > floor else index


def count_bytes(text: str) -> int:
    """Return the bytes of `text`, or of its characters taken apart where these are more: no fewer than its tokens."""
    return max(len(text.encode()), len(unicodedata.normalize("NFKD", text).encode()))


class LocalEmbedder:
    """A fastembed model in this process.

    With int8 a text's vector depends a little on the others in its batch, whose activations share one scale: between
    two calls its cosine is some 0.98 or more. A query is its own batch, so its vector is always the same.
    """

    def __init__(self, model: TextEmbedding, name: str) -> None:
        inner = model.model.tokenizer  # type: ignore[attr-defined]
        self._model = model
        reads = inner.truncation["max_length"] if inner.truncation else UNLIMITED
        self._size = int(reads) - inner.num_special_tokens_to_add(False)
        self._name = name

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """A second one, which cuts nothing off: the model's own pads and truncates what it reads."""
        from tokenizers import Tokenizer

        whole = Tokenizer.from_str(self._model.model.tokenizer.to_str())  # type: ignore[attr-defined]
        whole.no_padding()
        whole.no_truncation()
        return whole

    @property
    def name(self) -> str:
        """The model's name, with its arithmetic where there is a choice."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return int(self._model.embedding_size)

    def embed_documents(self, texts: Sequence[str]) -> list[Vectors]:
        """Return one array per text, a row per window; see Embedder."""
        return _embed_distinct(texts, self._cut(texts), self._embed)

    def embed_query(self, text: str) -> Vectors:
        """Return the query's one vector; see Embedder."""
        _check_unicode(text)
        parts = [text] if count_bytes(text) < self._size else [part for _, part, _ in self._cut([text])]
        return _mean(_normalize(self._model.query_embed(parts)))

    def _cut(self, texts: Sequence[str]) -> Iterator[tuple[int, str, int]]:
        """Give (number of the text, its window, length of the window in tokens) for all windows of all texts."""
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
        return _normalize(self._model.passage_embed(parts, batch_size=BATCH))


class RemoteEmbedder:
    """An OpenAI-compatible endpoint: ``POST {url}`` with ``{"model", "input"}`` answers ``{"data": [{"embedding"}]}``.

    Every failure raises UpstreamError: failed retries (`kg.remote.http.request_with_retry`), a refusal, or a response
    that is not one finite vector of the same length per input.
    """

    def __init__(
        self,
        url: str,
        model: str,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx  # which takes long, and only a model elsewhere needs

        path = url.rstrip("/")
        self._url = path if path.endswith("/embeddings") else f"{path}/embeddings"
        self._model = model
        self._name = f"{httpx.URL(self._url).host}/{model}"
        self._sleep = sleep
        self._dimensions: int | None = None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=headers, timeout=httpx.Timeout(timeout_s, connect=min(10.0, timeout_s)))

    @property
    def name(self) -> str:
        """The model's name at this endpoint."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of every vector; the first call asks the endpoint."""
        if self._dimensions is None:
            self._embed(["length"])
        return self._dimensions or 0

    def embed_documents(self, texts: Sequence[str]) -> list[Vectors]:
        """Return one array per text, a row per window of `REMOTE_WINDOW` characters; see Embedder."""
        return _embed_distinct(texts, self._cut(texts), self._embed)

    def embed_query(self, text: str) -> Vectors:
        """Return the query's one vector; see Embedder."""
        return _mean(self._embed([part for _, part, _ in self._cut([text])]))

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._client.close()

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
            # An endpoint refuses the empty string.
            yield number, rest or " ", len(rest)

    def _embed(self, parts: Sequence[str]) -> Vectors:
        answers = [self._ask(parts[at : at + REMOTE_BATCH]) for at in range(0, len(parts), REMOTE_BATCH)]
        return _normalize(row for answer in answers for row in answer)

    def _ask(self, batch: Sequence[str]) -> Vectors:
        reply = self._post({"model": self._model, "input": list(batch), "encoding_format": "float"})
        try:
            data = sorted(json.loads(reply.body)["data"], key=lambda item: int(item["index"]))
            vectors = np.array([item["embedding"] for item in data], dtype=np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise UpstreamError(f"{self._url} did not answer with a list of embeddings: {error!r}") from error
        expected = (len(batch), self._dimensions or (vectors.shape[1] if vectors.ndim == 2 else 0))
        if vectors.shape != expected or not expected[1]:
            raise UpstreamError(f"{self._url} answered with vectors of shape {vectors.shape}, not {expected}")
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise UpstreamError(f"{self._url} answered with a vector that is zero or not finite")
        self._dimensions = vectors.shape[1]
        return vectors

    def _post(self, body: dict[str, object]) -> Reply:
        def send() -> Reply:
            response = self._client.post(self._url, json=body)
            return Reply(response.status_code, response.headers, response.content)

        return request_with_retry(send, self._url, "embed", sleep=self._sleep)


def _embed_distinct(
    texts: Sequence[str], cut: Iterable[tuple[int, str, int]], embed: Callable[[Sequence[str]], Vectors]
) -> list[Vectors]:
    """Embed each distinct window once, longest first in blocks of `BLOCK`, and put the rows back in order."""
    numbers: dict[str, int] = {}
    lengths: list[int] = []
    rows: list[list[int]] = [[] for _ in texts]
    blocks: list[Vectors] = []
    waiting: list[str] = []

    def flush() -> None:
        # Neighbours in a batch are padded to the longest of them, so sorting saves most of the padding.
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
            f"the text has a lone surrogate at character {error.start}; send valid Unicode"
        ) from error
