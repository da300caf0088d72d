"""Near-duplicates among files, by MinHash over their words (https://doi.org/10.1109/SEQUEN.1997.666900).

Two files are near-duplicates if their texts share most runs of five words and have the same figures: a policy of
another year, or a table with another number, is a document of its own.
"""

from __future__ import annotations

import base64
import binascii
import heapq
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    bands: Sequence[tuple[int, int | str]]
    original: Original | None = None
    is_original: bool = False
    is_kept: bool = False
    """Whether the store had it with this text already, so that files outside of the folder do not replace it."""


class NearDuplicates:
    """The files of a folder, of which each is an original or a near-duplicate of an original at an earlier place.

    Files can be added, replaced and removed in any order. The result is that of adding all of them by their places.
    `stored` files, which are outside of the folder, are originals before all others.
    """

    def __init__(self) -> None:
        self._files: dict[str, _Seen] = {}
        self._stored: dict[str, str] = {}
        """The descriptions of the files outside of the folder."""
        self._bands: dict[tuple[int, int | str], set[str]] = {}
        """The originals with this part of a signature, or (-1) with these words."""
        self._copies: dict[str, set[str]] = defaultdict(set)
        """The near-duplicates of each original."""
        self._changed: dict[str, Original | None] = {}

    def find(self, name: str, described: str, place: Place | None = None, stored: str | None = None) -> Original | None:
        """Add a file by its description, and find an earlier one that it nearly equals.

        Without `place`, it is after all others. `stored` describes the file in the store: with the same text, it stays
        an original next to those elsewhere. Other files may become near-duplicates or originals by that: `take_changed`
        returns them.
        """
        dirty = self._forget(name)
        seen = _decode(described, place or (len(self._files),))
        if seen is None:
            raise ValueError(f"{described!r} describes no text")
        self._files[name] = seen
        seen.is_kept = described == stored
        self._settle({*dirty, name})
        self._changed.pop(name, None)
        return seen.original

    def describe(self, name: str) -> str:
        """Return the description of a file outside of the folder."""
        return self._stored[name]

    def set_stored(self, stored: Mapping[str, str]) -> None:
        """Set the files outside of the folder, with their descriptions.

        The near-duplicates of those that are gone become originals (`take_changed`). Files that were added before are
        not compared with new ones.
        """
        gone = [name for name, described in self._stored.items() if stored.get(name) != described]
        dirty: set[str] = set()
        for name in gone:
            dirty |= self._forget(name)
        for name in stored.keys() - (self._stored.keys() - set(gone)):
            seen = _decode(stored[name], ())
            if seen is not None and name not in self._files:
                self._files[name] = seen
                self._list(name, seen)
        self._stored = dict(stored)
        self._settle(dirty)

    def list_copies(self) -> dict[str, set[str]]:
        """Return the near-duplicates of each file outside of the folder."""
        return {name: copies for name, copies in self._copies.items() if copies and name in self._stored}

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
            self._list(name, seen)
        for name, was_original in before.items():
            if was_original != self._files[name].is_original:
                self._changed[name] = self._files[name].original

    def _list(self, name: str, seen: _Seen) -> None:
        """Add an original to the tables."""
        seen.is_original = True
        for band in seen.bands:
            self._bands.setdefault(band, set()).add(name)

    def _find_near(self, seen: _Seen) -> dict[str, float]:
        """Find the originals that a file nearly equals, with their similarity."""
        near = {}
        for name in sorted({name for band in seen.bands for name in self._bands.get(band, ())}):
            other = self._files[name]
            if seen.is_kept and name in self._stored:
                continue
            if seen.exact == other.exact:
                near[name] = 1.0
            elif seen.signature is not None and other.signature is not None and seen.figures == other.figures:
                similarity = float(np.mean(seen.signature == other.signature))
                if similarity >= SIMILARITY:
                    near[name] = similarity
        return near


def describe_text(text: str) -> str:
    """Describe a text by its compared properties."""
    words = [word.casefold() for word in _WORD.findall(text)]
    exact = sha256(" ".join(words) or text)  # of signs alone, the signs
    if len(words) < _LEAST:
        return f"{exact} -"
    figures = sha256(repr(sorted(Counter(word for word in words if not word.isalpha()).items())))
    return f"{exact} {figures} {base64.b64encode(build_signature(words).astype('<u4').tobytes()).decode()}"


def _decode(described: str, place: Place) -> _Seen | None:
    """Read the description of a file. None for an invalid one."""
    parts = described.split(" ")
    if len(parts) == 2:
        return _build(place, parts[0], "", None)
    try:
        signature = np.frombuffer(base64.b64decode(parts[2], validate=True), "<u4").astype(np.uint32)
    except (IndexError, ValueError, binascii.Error):
        return None
    return _build(place, parts[0], parts[1], signature) if len(signature) == _HASHES else None


def _build(place: Place, exact: str, figures: str, signature: Signature | None) -> _Seen:
    bands: list[tuple[int, int | str]] = [(-1, exact)]
    if signature is not None:
        bands += ((band, hash(part.tobytes())) for band, part in enumerate(np.split(signature, _BANDS)))
    return _Seen(place, exact, figures, signature, bands)


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
