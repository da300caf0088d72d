"""The words of the text of each graph, in a file of the data directory: the graphs that cannot contain a new name.

``words.log`` contains a record for each graph whose whole text was searched: its name, the hash of its content, and its
words as a Bloom filter. The last record of a graph is valid while its content has that hash. Records are appended, so
that a killed search loses none. An incomplete record, and all after it, are dropped.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from pyoxigraph import NamedNode

from loaders.mentions.matcher import words_of

_FILE: Final = "words.log"
_HEAD: Final = struct.Struct("<IHHI")
"""Head of a record: the checksum of the rest, and the lengths of name, content hash and filter in bytes."""
_HASHES: Final = struct.Struct("<IIII")
_BITS_A_WORD: Final = 16
"""With four bits set for each word, the rate of false positives is at most 0.3 %."""


class Vocabularies:
    """The file of one version of the extractor, open for one search. With `reset` it starts empty."""

    def __init__(self, folder: Path, version: str, *, reset: bool = False) -> None:
        self._path: Final = folder / _FILE
        self._start: Final = f"words {version}, {_HASHES.size // 4} bits each\n".encode()
        self._reset = reset
        self._file: IO[bytes] | None = None

    def add(self, graph: NamedNode, digest: str, texts: Iterable[str]) -> None:
        """Add the words of all `texts` of `graph`, whose content has the hash `digest`."""
        if self._file is None:
            self._file = self._opened()
        self._file.write(_record(graph.value.encode(), digest.encode(), filter_of(texts)))

    def lacking(self, phrases: Collection[Collection[str]], current: Mapping[NamedNode, str]) -> set[NamedNode]:
        """Find the graphs of `current` (with their content hashes) that lack a folded word of each of `phrases`."""
        found: dict[NamedNode, bool] = {}
        if self._file is not None:
            self._file.flush()
        for name, digest, filled in self._records():
            graph = NamedNode(name.decode())
            if current.get(graph) == digest.decode():
                found[graph] = not may_have(filled, phrases)
        return {graph for graph, lacks in found.items() if lacks}

    def tidy(self, current: Mapping[NamedNode, str]) -> None:
        """Rewrite the file if more than half of it is unused: superseded, or of deleted graphs."""
        if self._file is None:
            return
        self._file.flush()
        useful: dict[bytes, int] = {}
        everything = 0
        for name, digest, filled in self._records():
            size = _HEAD.size + len(name) + len(digest) + len(filled)
            everything += size
            if current.get(NamedNode(name.decode())) == digest.decode():
                useful[name] = size
        if 2 * sum(useful.values()) >= everything:
            return
        self.close()
        last = {name: number for number, (name, _, _) in enumerate(self._records())}
        partial = self._path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(self._start)
            for number, (name, digest, filled) in enumerate(self._records()):
                if name in useful and last[name] == number:
                    file.write(_record(name, digest, filled))
        partial.replace(self._path)

    def _opened(self) -> IO[bytes]:
        """Open the file for the next record."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        end = 0 if self._reset else self._end()
        self._reset = False
        file = self._path.open("r+b" if end else "wb")
        if end:
            file.seek(end)
            file.truncate()
        else:
            file.write(self._start)
        return file

    def _end(self) -> int:
        """Return the offset after the last complete record; 0 if there is no file."""
        size = sum(_HEAD.size + len(name) + len(digest) + len(filled) for name, digest, filled in self._records())
        try:
            with self._path.open("rb") as file:
                return len(self._start) + size if file.read(len(self._start)) == self._start else 0
        except FileNotFoundError:
            return 0

    def _records(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield name, content hash and filter of each complete record."""
        if self._reset:
            return
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            if file.read(len(self._start)) != self._start:
                return
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                checksum, name, digest, filled = _HEAD.unpack(head)
                body = file.read(name + digest + filled)
                if zlib.crc32(head[4:] + body) != checksum or len(body) != name + digest + filled or not filled:
                    return
                yield body[:name], body[name : name + digest], body[name + digest :]

    def close(self) -> None:
        """Flush and close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def filter_of(texts: Iterable[str]) -> bytes:
    """Build the filter of the folded words of all `texts` of a graph."""
    words = {word for text in texts for word in words_of(text)}
    filled = bytearray(_size(len(words)))
    for word in words:
        for bit in _bits(word, len(filled)):
            filled[bit >> 3] |= 1 << (bit & 7)
    return bytes(filled)


def may_have(filled: bytes, phrases: Collection[Collection[str]]) -> bool:
    """Whether the texts with this filter may have all folded words of one of `phrases`."""
    return any(
        all(filled[bit >> 3] & (1 << (bit & 7)) for word in words for bit in _bits(word, len(filled)))
        for words in phrases
    )


def _record(name: bytes, digest: bytes, filled: bytes) -> bytes:
    lengths = _HEAD.pack(0, len(name), len(digest), len(filled))[4:]
    body = lengths + name + digest + filled
    return zlib.crc32(body).to_bytes(4, "little") + body


def _size(words: int) -> int:
    """Return the size of a filter for this number of words in bytes: a power of two."""
    return 1 << max((words * _BITS_A_WORD - 1).bit_length() - 3, 3)


def _bits(word: str, size: int) -> Iterator[int]:
    return (number % (size * 8) for number in _hashes(word))


@lru_cache(maxsize=200_000)
def _hashes(word: str) -> tuple[int, ...]:
    return _HASHES.unpack(hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=_HASHES.size).digest())
