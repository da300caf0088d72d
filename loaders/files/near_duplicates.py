"""Near-duplicates among the files of a load, by MinHash over their words (https://doi.org/10.1109/SEQUEN.1997.666900).

Two files are near-duplicates if their texts share most runs of five words and have the same figures: a policy of
another year, or a table with another number, is a document of its own.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

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

Signature = NDArray[np.unsignedinteger[Any]]


def _coefficients() -> tuple[Signature, Signature]:
    random = np.random.default_rng(18)
    return (
        random.integers(1, _PRIME, _HASHES, dtype=np.uint64),
        random.integers(0, _PRIME, _HASHES, dtype=np.uint64),
    )


_FACTORS, _SUMMANDS = _coefficients()


Place = tuple[int, ...] | tuple[str, ...]
"""The place of a file in the order of reading: its number, or the parts of its path."""


@dataclass(frozen=True, slots=True)
class Original:
    """An earlier file that another one nearly equals, and the estimated share of common runs of words."""

    name: str
    similarity: float


@dataclass(slots=True)
class _Seen:
    """The compared properties of a file, and the file that it nearly equals."""

    place: Any
    exact: str
    figures: str
    signature: Signature | None
    bands: Sequence[tuple[int, int]]
    original: Original | None = None
    is_original: bool = False


class NearDuplicates:
    """The files of a folder, of which each is an original or a near-duplicate of an original at an earlier place.

    Files can be added, replaced and removed in any order. The result is that of adding all of them by their places.
    """

    def __init__(self) -> None:
        self._files: dict[str, _Seen] = {}
        self._exact: dict[str, str] = {}
        """The original with these words."""
        self._bands: dict[tuple[int, int], set[str]] = {}
        """The originals with this part of a signature."""
        self._copies: dict[str, set[str]] = defaultdict(set)
        """The near-duplicates of each original."""
        self._changed: dict[str, Original | None] = {}

    def find(self, name: str, text: str, place: Place | None = None) -> Original | None:
        """Add a file, and find an earlier one that it nearly equals. Without `place`, it is after all others.

        Other files may become near-duplicates or originals by that: `take_changed` returns them.
        """
        dirty = self._forget(name)
        seen = self._files[name] = _describe(text, place or (len(self._files),))
        self._settle({*dirty, name})
        self._changed.pop(name, None)
        return seen.original

    def remove(self, name: str) -> None:
        """Remove a file. Its near-duplicates may become originals."""
        self._settle(self._forget(name))

    def take_changed(self) -> dict[str, Original | None]:
        """Return the files that others have made near-duplicates, with their originals, or originals (None)."""
        changed, self._changed = self._changed, {}
        return changed

    def _forget(self, name: str) -> set[str]:
        """Remove a file; return its near-duplicates, whose state is open."""
        seen = self._files.pop(name, None)
        self._changed.pop(name, None)
        if seen is None:
            return set()
        if seen.original is not None:
            self._copies[seen.original.name].discard(name)
        return self._unlist(name, seen)

    def _unlist(self, name: str, seen: _Seen) -> set[str]:
        """Remove an original from the tables; return its near-duplicates, whose state is open."""
        if not seen.is_original:
            return set()
        seen.is_original = False
        del self._exact[seen.exact]
        for band in seen.bands:
            self._bands[band].discard(name)
            if not self._bands[band]:
                del self._bands[band]
        copies = self._copies.pop(name, set())
        for copy in copies:
            self._files[copy].original = None
        return copies

    def _settle(self, dirty: Iterable[str]) -> None:
        """Decide the state of files in the order of their places: each depends on earlier files only."""
        waiting = [(self._files[name].place, name) for name in dirty]
        heapq.heapify(waiting)
        before: dict[str, bool] = {}
        """Whether the files were originals. Those whose original has gone were not."""
        while waiting:
            _, name = heapq.heappop(waiting)
            seen = self._files[name]
            if seen.is_original or seen.original is not None:
                continue  # decided already
            before.setdefault(name, False)
            near = self._find_near(seen)
            first = min(near, key=lambda other: self._files[other].place, default=None)
            if first is not None and self._files[first].place < seen.place:
                seen.original = Original(first, near[first])
                self._copies[first].add(name)
                continue
            for other in near:
                before.setdefault(other, True)
                for each in (other, *self._unlist(other, self._files[other])):
                    heapq.heappush(waiting, (self._files[each].place, each))
            seen.is_original = True
            self._exact[seen.exact] = name
            for band in seen.bands:
                self._bands.setdefault(band, set()).add(name)
        for name, was_original in before.items():
            if was_original != self._files[name].is_original:
                self._changed[name] = self._files[name].original

    def _find_near(self, seen: _Seen) -> dict[str, float]:
        """Find the originals that a file nearly equals, with their similarity."""
        near = {self._exact[seen.exact]: 1.0} if seen.exact in self._exact else {}
        if seen.signature is not None:
            for name in {name for band in seen.bands for name in self._bands.get(band, ())} - near.keys():
                other = self._files[name]
                similarity = float(np.mean(seen.signature == other.signature))
                if similarity >= SIMILARITY and seen.figures == other.figures:
                    near[name] = similarity
        return near


def _describe(text: str, place: Place) -> _Seen:
    words = [word.casefold() for word in _WORD.findall(text)]
    exact = sha256(" ".join(words))
    if len(words) < _LEAST:
        return _Seen(place, exact, "", None, ())
    figures = sha256(repr(sorted(Counter(word for word in words if not word.isalpha()).items())))
    signature = build_signature(words)
    bands = [(band, hash(part.tobytes())) for band, part in enumerate(np.split(signature, _BANDS))]
    return _Seen(place, exact, figures, signature.astype(np.uint32), bands)


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
