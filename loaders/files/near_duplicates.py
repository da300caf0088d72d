"""Near-duplicates among the files of a load, by MinHash over their words (https://doi.org/10.1109/SEQUEN.1997.666900).

Two files are near-duplicates if their texts share most runs of five words and have the same figures: a policy of
another year, or a table with another number, is a document of its own.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.vocabulary import sha256

SIMILARITY: Final = 0.9
"""Estimated share of common runs of words from which two files are near-duplicates."""
_RUN: Final = 5
_LEAST: Final = 40
"""Minimum words of a file that is compared. A shorter one is only a duplicate if it has the same words."""
_HASHES: Final = 128
_BANDS: Final = 16
_AT_ONCE: Final = 4_096
_PRIME: Final = (1 << 31) - 1
_WORD: Final = re.compile(r"[^\W_]+")

Signature = NDArray[np.uint64]


def _coefficients() -> tuple[Signature, Signature]:
    random = np.random.default_rng(18)
    return (
        random.integers(1, _PRIME, _HASHES, dtype=np.uint64),
        random.integers(0, _PRIME, _HASHES, dtype=np.uint64),
    )


_FACTORS, _SUMMANDS = _coefficients()


@dataclass(frozen=True, slots=True)
class Original:
    """An earlier file that another one nearly equals, and the estimated share of common runs of words."""

    name: str
    similarity: float


@dataclass(slots=True)
class NearDuplicates:
    """The files seen so far."""

    _words: dict[str, str] = field(default_factory=dict)
    _signatures: list[tuple[str, str, Signature]] = field(default_factory=list)
    _bands: dict[tuple[int, bytes], list[int]] = field(default_factory=lambda: defaultdict(list))

    def find(self, name: str, text: str) -> Original | None:
        """Find an earlier file that `text` nearly equals. Without one, `name` is an original for the next."""
        words = [word.casefold() for word in _WORD.findall(text)]
        exact = sha256(" ".join(words))
        if (known := self._words.setdefault(exact, name)) != name:
            return Original(known, 1.0)
        if len(words) < _LEAST:
            return None
        figures = sha256(repr(sorted(Counter(word for word in words if not word.isalpha()).items())))
        signature = build_signature(words)
        bands = [(band, part.tobytes()) for band, part in enumerate(np.split(signature, _BANDS))]
        near = {place for band in bands for place in self._bands.get(band, ())}
        for place in sorted(near):
            other, its_figures, its_signature = self._signatures[place]
            similarity = float(np.mean(signature == its_signature))
            if similarity >= SIMILARITY and figures == its_figures:
                return Original(other, similarity)
        for band in bands:
            self._bands[band].append(len(self._signatures))
        self._signatures.append((name, figures, signature))
        return None


def build_signature(words: list[str]) -> Signature:
    """Build the MinHash signature of the runs of five words."""
    hashed = np.fromiter((zlib.crc32(word.encode()) & _PRIME for word in words), np.uint64, len(words))
    prime = np.uint64(_PRIME)
    runs = hashed[: len(hashed) - _RUN + 1].copy()
    for offset in range(1, _RUN):
        runs = (runs * np.uint64(1_000_003) + hashed[offset : len(hashed) - _RUN + 1 + offset]) % prime
    least = np.full(_HASHES, _PRIME, dtype=np.uint64)
    for start in range(0, len(runs), _AT_ONCE):
        part = (runs[start : start + _AT_ONCE, None] * _FACTORS + _SUMMANDS) % prime
        np.minimum(least, part.min(axis=0), out=least)
    return least
