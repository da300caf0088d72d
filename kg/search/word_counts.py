"""How many texts of a shard contain each word: the document frequencies of BM25, of the texts that are there now.

Qdrant Edge counts by shard, with deleted texts until their segment is optimized. With counts of our own, which are
added up over shards, the score of a text depends on the texts of the index alone.

The counts are in a file as of the last flush. A journal has the words that each text had then, for all texts written or
deleted since. It is on the disk before a text changes: after a crash, the counts follow from the file, the journal and
the texts as they are.
"""

from __future__ import annotations

import json
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from kg.files import write_file

log = logging.getLogger(__name__)

Words = Mapping[str, Sequence[int]]
"""The distinct words of a text, as dimensions, by field."""

FILE: Final = "words.npz"
JOURNAL: Final = "words.journal"

_NONE: Final = np.empty(0, np.uint32)
_NO_COUNTS: Final = np.empty(0, np.int64)
_UNSETTLED: Final = 500_000
"""Words that wait to be added or removed: 4 MB."""


@dataclass(slots=True)
class _Field:
    """The words of a field in ascending order, the number of texts with each, and the number of texts."""

    words: NDArray[np.uint32] = field(default_factory=_NONE.copy)
    counts: NDArray[np.int64] = field(default_factory=_NO_COUNTS.copy)
    texts: int = 0
    waiting: dict[int, list[Sequence[int]]] = field(default_factory=lambda: {1: [], -1: []})
    """The words of the texts that are to be added and removed, by sign."""
    waiting_words: int = 0

    def add(self, words: Sequence[int], sign: int) -> None:
        self.texts += sign
        self.waiting[sign].append(words)
        self.waiting_words += len(words)
        if self.waiting_words > _UNSETTLED:
            self.settle()

    def settle(self) -> None:
        if not any(self.waiting.values()):
            return
        # The added ones first: a text may be added and removed since the last time, and unknown words are not removed.
        for sign in (1, -1):
            if texts := self.waiting[sign]:
                words = np.fromiter(chain.from_iterable(texts), np.uint32, sum(map(len, texts)))
                self._merge(*np.unique(words, return_counts=True), sign)
                texts.clear()
        self.waiting_words = 0

    def _merge(self, words: NDArray[np.uint32], counts: NDArray[np.int64], sign: int) -> None:
        places = np.searchsorted(self.words, words)
        known = places < len(self.words)
        known[known] = self.words[places[known]] == words[known]
        self.counts[places[known]] += sign * counts[known]
        if sign > 0:
            self.words = np.insert(self.words, places[~known], words[~known])
            self.counts = np.insert(self.counts, places[~known], counts[~known])
        else:
            self.words, self.counts = self.words[self.counts > 0], self.counts[self.counts > 0]

    def find(self, words: Sequence[int]) -> NDArray[np.int64]:
        self.settle()
        if not len(self.words):
            return np.zeros(len(words), np.int64)
        wanted = np.asarray(words, np.uint32)
        places = np.minimum(np.searchsorted(self.words, wanted), len(self.words) - 1)
        return np.where(self.words[places] == wanted, self.counts[places], 0)


class WordCounts:
    """The counts of the shard in `folder`, by field. Any thread may read, one at a time writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fields: defaultdict[str, _Field] = defaultdict(_Field)
        self._lock = Lock()
        self._number = 0
        """Of the saved state. A journal of another number is of an earlier state."""
        self._noted = False
        """Whether texts were noted since."""

    def count_texts(self) -> dict[str, int]:
        """Count the texts of each field."""
        with self._lock:
            return {name: each.texts for name, each in self._fields.items() if each.texts}

    def find(self, name: str, words: Sequence[int]) -> tuple[int, NDArray[np.int64]]:
        """Return the number of texts of a field, and of those with each of some words."""
        with self._lock:
            each = self._fields.get(name)
            return (0, np.zeros(len(words), np.int64)) if each is None else (each.texts, each.find(words))

    def note(self, texts: Mapping[int, Words]) -> None:
        """Write down the words that texts have, by id, before they are changed; none for those that are not there."""
        lists = {id_: {name: [*each] for name, each in of.items()} for id_, of in texts.items()}
        head = "" if self._noted else f"{self._number}\n"
        with (self._folder / JOURNAL).open("a" if self._noted else "w", encoding="ascii") as journal:
            journal.write(f"{head}{json.dumps(lists)}\n")
            # After a loss of power the index may have the change: without the old words, it would be counted twice.
            # It takes some 4 ms for 200 texts.
            journal.flush()
            os.fsync(journal.fileno())
        self._noted = True

    def replace(self, old: Iterable[Words], new: Iterable[Words]) -> None:
        """Count some texts in place of others."""
        for sign, texts in ((-1, old), (1, new)):
            for text in texts:
                with self._lock:
                    for name, words in text.items():
                        self._fields[name].add(words, sign)

    def save(self) -> None:
        """Write the counts, after the texts are on the disk. Raises OSError."""
        arrays: dict[str, NDArray[np.generic]] = {"number": np.asarray(self._number + 1)}
        with self._lock:
            for name, each in self._fields.items():
                each.settle()
                arrays |= {f"{name}/words": each.words, f"{name}/counts": each.counts.astype(np.uint32)}
                arrays[f"{name}/texts"] = np.asarray(each.texts)
        content = BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type]
        write_file(self._folder / FILE, content.getvalue(), sync=True)
        self._number += 1
        self._noted = False
        (self._folder / JOURNAL).unlink(missing_ok=True)

    def open(
        self, read: Callable[[Sequence[int]], Mapping[int, Words]], texts: Mapping[str, int], scan: Iterable[Words]
    ) -> int:
        """Load the saved counts and bring them up to date. Return how many of the counted texts are gone.

        `read` returns the words of those texts that are there, `texts` is the number of texts in each field, and `scan`
        yields the words of all of them, which are counted again if there are more than were counted.
        """
        try:
            self._load()
            noted = self._read_journal()
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            if texts:
                log.warning("The words of the texts in %s are counted again: %s", self._folder, error)
            self._fields.clear()
            noted = {}
        if noted:
            self.replace(noted.values(), read([*noted]).values())
        counted = self.count_texts()
        # The journal is written before the texts are, so there are never fewer, unless files are gone.
        if gone := sum(max(0, number - texts.get(name, 0)) for name, number in counted.items()):
            return gone
        if counted != dict(texts):
            self._fields.clear()
            self.replace((), scan)
        elif not noted:
            return 0
        self.save()
        return 0

    def _load(self) -> None:
        if not (self._folder / FILE).exists():
            return
        # An open file, since numpy leaves one open that it cannot read.
        with (self._folder / FILE).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            self._number = int(arrays["number"])
            for name in {key.partition("/")[0] for key in arrays if "/" in key}:
                words, counts = arrays[f"{name}/words"], arrays[f"{name}/counts"].astype(np.int64)
                if words.shape != counts.shape:
                    raise ValueError(f"{len(words)} words with {len(counts)} counts")
                self._fields[name] = _Field(words, counts, int(arrays[f"{name}/texts"]))

    def _read_journal(self) -> dict[int, Words]:
        """Read the words of each text that changed since the counts were saved, as of then."""
        path = self._folder / JOURNAL
        found: dict[int, Words] = {}
        if path.exists():
            number, *lines = path.read_text("ascii").splitlines() or ["-1"]
            if number == str(self._number):
                for line in lines:
                    try:
                        texts = json.loads(line)
                    except ValueError:  # the last line, of a change that was not made
                        break
                    for id_, words in texts.items():
                        found.setdefault(int(id_), words)
        return found
