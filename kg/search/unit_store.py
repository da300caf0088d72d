"""The text units in an index: replacement by graph, their parts, and their vectors.

A unit is a point, or one for each part of a long text (`kg.search.parts`). A graph is another point: its marker with
the content hash, which is removed first and written last. An interrupted replacement leaves no marker, so that
`index_sync.repair_index` repeats it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from kg.search.analyzers import ENGLISH, find_field
from kg.search.parts import PARTS_VERSION, split_parts
from kg.search.payloads import build_payload, digest
from kg.search.points import (
    ALSO,
    DENSE,
    LANGUAGE,
    OTHER,
    PART,
    SLOTS,
    TEXT,
    UNIT,
    UPDATE_POINTS,
    Filter,
    Point,
    VectorSpace,
    get_first,
    pack,
)
from kg.search.protocol import Conditions, IndexedUnit
from kg.search.shards import Shards
from kg.search.spaces import Spaces
from kg.search.vector_cache import Rows, VectorCache
from kg.store.protocol import batched

_ELSEWHERE: Final = ""
"""The digest noted for a unit that is in another shard than its graph has to be: it is written again."""
MOST_VALUES: Final = 10_000_000
"""Maximum number of values of a field that are counted: more than there are documents."""


@dataclass(slots=True)
class UnitStore:
    """The units in the shards of an index. Any thread may read; only one thread at a time may write."""

    shards: Shards
    cache: VectorCache
    """The vectors of texts, which may be there before the texts are."""
    on_pending: Callable[[], None] = field(default=lambda: None, kw_only=True)
    """Called after units without a vector were written."""
    spaces: Spaces = field(default_factory=Spaces, kw_only=True)
    _state: dict[str, str] = field(init=False)
    _homes: dict[str, str] = field(default_factory=dict, init=False)
    """The shard of each graph that is in the index or is being replaced."""
    _of_languages: tuple[int, Mapping[str, int]] = field(default=(-1, {}), init=False)
    """Number of updates of texts when units were counted by language, and the counts."""
    _parts: dict[int, int] = field(default_factory=dict, init=False)
    """The number of points of each unit that has several, by the id of the first."""
    _old: dict[str, dict[int, str]] = field(default_factory=dict, init=False)
    """The digests of the units that are there of each graph that is being replaced, by point id."""

    def __post_init__(self) -> None:
        self._state = {}
        copied: dict[str, str] = {}
        foreign: list[int] = []
        markers = self.shards.scroll({"fields": [{"kind": ["graph"]}]}, ["graph_iri", "content_sha256"])
        for shard, id_, marker in markers:
            graph = str(marker["graph_iri"])
            if id_ != self.shards.compute_id(graph):  # of an index with another key
                foreign.append(id_)
                copied[graph] = shard
            elif graph in self._state:
                copied[graph] = shard
            self._state[graph], self._homes[graph] = str(marker["content_sha256"]), shard
        if copied:
            # Each text would count twice. Which of them is the current one is known to the store alone.
            self.shards.distrust(copied.values())
            self.shards.delete(foreign)
            self.remove([*copied])
        self._note_parts(id_ for _, id_, _ in self.shards.scroll({"fields": [PART]}, []))

    # Reading

    def state(self) -> dict[str, str]:
        """Return the content hash of each graph that is completely in the index."""
        return dict(self._state)

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of units, of texts and parts that lack a vector that is due, and of graphs."""
        units = sum(self._count_languages().values())
        due = self.spaces.list_due(self._count_languages())
        lacking = self._lacking([DENSE, *([ALSO] if ALSO in due else [])]), self._lacking([OTHER])
        return units, sum(map(self.shards.count_kept, filter(None, lacking))), len(self._state)

    def count_parts(self) -> int:
        """Return the number of further parts of units, after the first ones."""
        return sum(self._parts.copy().values()) - len(self._parts)

    def _count_languages(self) -> Mapping[str, int]:
        """Count the units by language. Kept until the next update of texts."""
        texts = self.shards.texts_written
        if self._of_languages[0] != texts:
            self._of_languages = texts, self.shards.count_values(LANGUAGE, {"fields": [UNIT]}, MOST_VALUES)
        return self._of_languages[1]

    def _lacking(self, spaces: Sequence[str]) -> Filter | None:
        """Return the condition of the texts that lack a vector that is due in one of some spaces; None without any."""
        languages = self.spaces.list_due(self._count_languages()).get(spaces[0])
        return Filter(fields=[TEXT, {LANGUAGE: languages}], lacking=spaces) if languages else None

    def _retrieve(self, ids: Sequence[int], fields: list[str]) -> dict[int, Mapping[str, Any]]:
        """Load fields of the points among `ids` that exist."""
        return self.shards.retrieve(ids, fields) if ids else {}

    def _get_text(self, payload: Mapping[str, Any]) -> str:
        """Return the searched text of a unit, which is in the field of its language."""
        return next(str(payload[name]) for name in (ENGLISH, *self.shards.fields) if name in payload)

    def _list_points(self, firsts: Iterable[int]) -> list[int]:
        """List all points of units, given by their first ones."""
        return [id_ for first in firsts for id_ in range(first, first + self._parts.get(first, 1))]

    # Writing

    def begin(self, graphs: Sequence[str]) -> None:
        """Begin to replace `graphs`: they count as incomplete until `finish`. Those of an overfull shard move."""
        with self.shards.writing:
            # Units may be sent before this is answered: none of them is written if it fails.
            self._old = {}
            self._forget(graphs)
            old: dict[str, dict[int, str]] = {graph: {} for graph in graphs}
            for batch in batched(graphs, UPDATE_POINTS):
                for shard, id_, payload in self.shards.scroll({"fields": [{"graph": batch}]}, ["graph", "digest"]):
                    graph = payload["graph"]
                    is_home = self._homes.setdefault(graph, shard) == shard
                    old[graph][id_] = payload["digest"] if is_home else _ELSEWHERE
            homes = {self._homes[graph] for graph in graphs if graph in self._homes}
            overfull = {home for home in homes if self.shards.is_overfull(home)}
            for graph in graphs:
                if self._homes.get(graph) in overfull:
                    del self._homes[graph]
                    old[graph] = dict.fromkeys(old[graph], _ELSEWHERE)
            self._old = old

    def put(self, units: Sequence[IndexedUnit]) -> None:
        """Write units of the graphs being replaced; unchanged units are skipped."""
        with self.shards.writing:
            changed: dict[int, dict[str, Any]] = {}
            fields: dict[int, str] = {}
            homes: dict[str, list[int]] = {}
            home: str | None = None
            superfluous: list[int] = []
            for unit in units:
                first = self.shards.compute_id(unit.iri)
                said = [unit.prelude, unit.text, unit.language or "", str(unit.in_context), unit.names]
                parts = split_parts(unit.text)
                if len(parts) > 1:
                    said.append(f"parts {PARTS_VERSION}")
                said.append(json.dumps(sorted(unit.codes.items())))
                if (name := find_field(unit.language)) != ENGLISH:
                    said.append(name)  # units that were indexed as English are written again
                    self.shards.add_field(name)
                if unit.graph not in self._homes:
                    self._homes[unit.graph] = home = home or self.shards.choose()
                fingerprint = digest(unit.iri, unit.graph, unit.parent, *said)
                # Also those that the text had in another graph.
                superfluous += range(first + len(parts), first + self._parts.pop(first, 1))
                if len(parts) > 1:
                    self._parts[first] = len(parts)
                for id_, part in enumerate(parts, first):
                    old = self._old[unit.graph].pop(id_, None)
                    if old != fingerprint:
                        homes.setdefault(self._homes[unit.graph], []).append(id_)
                        changed[id_] = build_payload(unit, fingerprint, part if len(parts) > 1 else None)
                        fields[id_] = name
            self.shards.delete(superfluous)
            known = self._find_known(changed.values())
            for shard, ids in homes.items():
                for batch in batched(ids, UPDATE_POINTS):
                    points: list[Point] = []
                    for id_ in batch:
                        payload = changed[id_]
                        text_hash = payload["text_hash"]
                        point = Point(id=id_, payload=payload, field=fields[id_])
                        due = self.spaces.find(payload[LANGUAGE])
                        point["vectors"] = {
                            space: pack(known[space][text_hash]) for space in due if text_hash in known.get(space, {})
                        }
                        points.append(point)
                    self.shards.put(shard, points)

    def _find_known(self, payloads: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Rows]]:
        """Find the known vectors of texts, by space and hash."""
        wanted: dict[str, set[str]] = {}
        for payload in payloads:
            for space in self.spaces.find(payload[LANGUAGE]):
                wanted.setdefault(space, set()).add(payload["text_hash"])
        spaces = self.shards.spaces
        return {
            space: self.cache.get(hashes, spaces[space].model) for space, hashes in wanted.items() if space in spaces
        }

    def finish(self, hashes: Mapping[str, str]) -> None:
        """End the replacement: delete units that were not put again, and write the content hashes."""
        with self.shards.writing:
            for graph in hashes:
                # with the graph as a condition: a unit may have moved to another graph in the meantime
                self._delete(self._old.pop(graph), [{"graph": [graph]}])
            homes: dict[str, list[str]] = {}
            for graph in hashes:
                if graph not in self._homes:  # without units
                    self._homes[graph] = self.shards.choose()
                homes.setdefault(self._homes[graph], []).append(graph)
            for shard, graphs in homes.items():
                for batch in batched(graphs, UPDATE_POINTS):
                    self.shards.put(
                        shard,
                        [
                            {
                                "id": self.shards.compute_id(graph),
                                "payload": {"kind": "graph", "graph_iri": graph, "content_sha256": hashes[graph]},
                            }
                            for graph in batch
                        ],
                    )
            self._state.update(hashes)
        self.on_pending()

    def remove(self, graphs: Sequence[str]) -> None:
        """Delete all units of `graphs`."""
        self.begin(graphs)
        with self.shards.writing:
            for graph in graphs:
                self._delete(self._old.pop(graph), [{"graph": [graph]}])
                self._homes.pop(graph, None)

    def _forget(self, graphs: Sequence[str]) -> None:
        known = [graph for graph in graphs if self._state.pop(graph, None) is not None]
        self._delete([*map(self.shards.compute_id, known)], [])

    def _delete(self, ids: Iterable[int], also: Conditions) -> None:
        deleted = list(ids)
        self.shards.delete(deleted, also)
        divided = {*map(get_first, deleted)} & self._parts.keys()
        left = self._retrieve(self._list_points(divided), []) if divided else {}
        for first in divided:
            del self._parts[first]
        self._note_parts(left)

    def _note_parts(self, ids: Iterable[int]) -> None:
        """Note the number of points of the units that some points are parts of."""
        for id_ in ids:
            if number := id_ - (first := get_first(id_)):
                self._parts[first] = max(self._parts.get(first, 1), number + 1)

    # Vectors

    def use_model(self, slot: int, model: str, dimensions: int, languages: frozenset[str] | None) -> None:
        """Store vectors by this model as the one of a number from now on, and drop those by another one."""
        self.spaces.use(slot, model, languages)
        for space, number in SLOTS.items():
            if number == slot:
                self.shards.use_space(space, VectorSpace(model, dimensions))

    def pending(self, space: str, limit: int) -> dict[int, tuple[str, str]]:
        """Return up to `limit` texts or parts of texts that lack a vector that is due in a space, by point id.

        With each, the hash of the text to embed, and that text: the end of the searched one.
        """
        if (where := self._lacking([space])) is None:
            return {}
        found = islice(self.shards.scroll(where, ["text_hash", "text_start", *self.shards.fields], limit=limit), limit)
        return {
            id_: (payload["text_hash"], self._get_text(payload)[payload["text_start"] :]) for _, id_, payload in found
        }

    def set_vectors(self, space: str, vectors: Mapping[int, tuple[str, Rows]]) -> None:
        """Write vectors of units (point id -> (hash of the text, vectors)) whose text has not changed since."""
        for ids in batched(vectors, UPDATE_POINTS):
            self.shards.set_vectors(space, [(id_, vectors[id_][0], pack(vectors[id_][1])) for id_ in ids])

    def list_text_hashes(self) -> Iterator[str]:
        """Yield the hashes of the texts of all units that vectors are computed from."""
        for _, _, payload in self.shards.scroll({"fields": [TEXT]}, ["text_hash"]):
            yield payload["text_hash"]
