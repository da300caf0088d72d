"""The words of a text as a Bloom filter, by which texts that cannot contain a new name are not read again."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

from loaders.mentions.matcher import words_of

_HASHES: Final = struct.Struct("<IIII")
_BITS_A_WORD: Final = 16
"""With four bits set for each word, the rate of false positives is at most 0.3 %."""


def filter_of(texts: Iterable[str]) -> bytes:
    """Build the filter of the folded words of all `texts` of a graph."""
    words = {word for text in texts for word in words_of(text)}
    filled = bytearray(_size(len(words)))
    last = len(filled) * 8 - 1
    for word in words:
        for number in _hash_all((word,)):
            filled[(number & last) >> 3] |= 1 << (number & 7)
    return bytes(filled)


def may_have(filled: bytes, phrases: Collection[Collection[str]]) -> bool:
    """Whether the texts with this filter may have all folded words of one of `phrases`."""
    last = len(filled) * 8 - 1
    for words in phrases:  # hundreds for each of all texts, and generators take four times as long
        for number in _hash_all(tuple(words)):
            if not filled[(number & last) >> 3] >> (number & 7) & 1:
                break
        else:
            return True
    return False


def _size(words: int) -> int:
    """Return the size of a filter for this number of words in bytes: a power of two."""
    return 1 << max((words * _BITS_A_WORD - 1).bit_length() - 3, 3)


@lru_cache(maxsize=200_000)
def _hash_all(words: tuple[str, ...]) -> Sequence[int]:
    return [number for word in words for number in _HASHES.unpack(_digest(word))]


def _digest(word: str) -> bytes:
    return hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=_HASHES.size).digest()
