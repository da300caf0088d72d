"""The text units in an index: replacement by graph, ranking by words and by meaning.

A unit is a point. A graph is another point, its marker with the content hash, which is removed first and written last.
An interrupted replacement leaves no marker, so that `index_sync.repair_index` repeats it.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import nlargest
from itertools import islice
from typing import Any, Final

from kg.search.analyzers import ENGLISH, find_field, get_analyzer
from kg.search.parts import PARTS_VERSION, build_part_texts, split_parts
from kg.search.points import UNIT, UPDATE_POINTS, Filter, Point, pack
from kg.search.protocol import CODES, Candidate, Codes, Conditions, Counts, IndexedUnit, Mode, Ranking, get_original
from kg.search.ranking import MARGIN, PAIR_WEIGHT, POOL, Fusion, is_settled
from kg.search.relevance import CALIBRATIONS, is_related
from kg.search.shards import Shards
from kg.search.vector_cache import Rows, VectorCache
from kg.search.word_overlap import NO_WORDS, QuestionWords, parse_question
from kg.words import UNSPACED

_FIRST_DEPTH = 1_024
"""Exact search takes 6 ms for 256 of 50,000 units and 9 ms for 1,024, and each further round as long again."""
_DEEPER = 4
_GROWTH = 2
"""Of the depth, where a list is too short: 4 reads more than is needed for a third of short keyword queries."""
_MAX_DEPTH = 65_536
_LOOKED_UP = 2
"""How many times the number of first ones is looked up at once, the likely units first, and then twice as many."""
_FEW = 20_000
"""Units that contain the required words are listed, if there are at most this many; else candidates are filtered."""
_DECIMALS = 4

_ELSEWHERE: Final = ""
"""The digest noted for a unit that is in another shard than its graph has to be: it is written again."""
_MOST_VALUES: Final = 10_000_000
"""Maximum number of values of a field that are counted: more than there are documents."""
_MOST_TOTALS: Final = 64
_MOST_COUNTED_VALUES: Final = 200_000
"""Values of all counts that are kept, such as the documents: some 150 bytes each. The last count is always kept."""
_MOST_RANKINGS: Final = 32
"""Rankings that are kept, some 150 KB each with 1,000 counted units."""
_MOST_CODES: Final = 50_000
"""Units whose codes are kept, some 300 bytes each."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query: its text for BM25 and its vector, each None if it does not count, and its words to compare."""

    text: str | None
    vector: Sequence[float] | None
    words: QuestionWords
    counted: int = 0
    """How many units that match to return with their codes."""

    def fuse(self, bm25: Mapping[str, float], cosine: Mapping[str, float]) -> Fusion:
        """Build the fusion for these scores."""
        pair_weight = PAIR_WEIGHT if self.words.pairs else 0.0
        return Fusion(max(bm25.values(), default=0.0), max(cosine.values(), default=0.0), pair_weight=pair_weight)


def point_id(iri: str) -> str:
    """Return the point id of `iri` (a unit, or the marker of a graph)."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, iri))


def digest(*parts: str) -> str:
    """Hash `parts` to 128 bits, as hex."""
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


def to_searchable(text: str) -> str:
    """Prepare a text or query for BM25: split runs of unspaced scripts into overlapping pairs of characters."""

    def pairs(run: re.Match[str]) -> str:
        characters = run.group()
        if len(characters) == 1:
            return f" {characters} "
        return " " + " ".join(characters[i : i + 2] for i in range(len(characters) - 1)) + " "

    return UNSPACED.sub(pairs, text)


@dataclass(slots=True)
class UnitIndex:
    """The units of an index. Any thread may read; only one thread at a time may write."""

    shards: Shards
    embed_query: Callable[[str], Sequence[float] | None]
    """Returns the vector of a query, or None without an embedder."""
    cache: VectorCache
    """The vectors of texts, which may be there before the texts are."""
    on_pending: Callable[[], None] = lambda: None
    """Called after units without a vector were written."""
    _state: dict[str, str] = field(init=False)
    _homes: dict[str, str] = field(default_factory=dict)
    """The shard of each graph that is in the index or is being replaced."""
    _numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    """Numbers of units by number of updates and digest of conditions."""
    _codes: dict[str, tuple[str, Codes]] = field(default_factory=dict)
    """IRIs and codes of units by point id, as of `_codes_written` updates."""
    _distinct: dict[str, Codes] = field(default_factory=dict)
    _codes_written: int = -1
    _old: dict[str, dict[str, str]] = field(default_factory=dict)
    """The digests of the units that are there of each graph that is being replaced, by point id."""
    _rankings: OrderedDict[tuple[int, str], Ranking] = field(default_factory=OrderedDict)
    """The last rankings, by number of updates and digest of the request."""
    _totals: OrderedDict[tuple[int, str], Counts] = field(default_factory=OrderedDict)
    """The last counts, by number of updates and digest of the request. Those of the start page are asked most often."""

    def __post_init__(self) -> None:
        self._state = {}
        copied: dict[str, str] = {}
        markers = self.shards.scroll({"fields": [{"kind": ["graph"]}]}, ["graph_iri", "content_sha256"])
        for shard, _, marker in markers:
            graph = str(marker["graph_iri"])
            if graph in self._state:
                copied[graph] = shard
            self._state[graph], self._homes[graph] = str(marker["content_sha256"]), shard
        if copied:
            # Each text would count twice. Which of them is the current one is known to the store alone.
            self.shards.distrust(copied.values())
            self.remove([*copied])

    # Reading

    def state(self) -> dict[str, str]:
        """Return the content hash of each graph that is completely in the index."""
        return dict(self._state)

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of units, of units without a vector, and of graphs."""
        units, vectors = self.shards.count_stored()
        return units, max(0, units - vectors), len(self._state)

    def rank(
        self,
        query: str,
        units: Sequence[str] | None,
        parents: Sequence[str] | None,
        limit: int,
        mode: Mode = "hybrid",
        must: Sequence[str] = (),
        codes: Conditions = (),
        counted: int = 0,
    ) -> Ranking:
        """Return the best `limit` units by fused score; see `SearchIndex.rank`."""
        if (units is not None and not units) or (parents is not None and not parents):
            return Ranking((), exhaustive=True)
        asked = _Asked(
            None if mode == "dense" else to_searchable(query),
            self.embed_query(query) if query.strip() and mode != "bm25" else None,
            parse_question(query) if mode == "hybrid" else NO_WORDS,
            counted,
        )
        if units is not None:
            return self._rank(asked, units, parents, limit, must, codes)
        # The next pages of a query, and the counts of a facet after a filter was added, need the same ranking again.
        known = self._rankings
        request = (query, mode, asked.vector is None, limit, counted, [*must], [*map(dict, codes)], parents)
        key = self.shards.written, digest(repr(request))
        found = known.get(key) or self._rank(asked, units, parents, limit, must, codes)
        if self.shards.written == key[0]:
            known[key] = found
        while len(known) > _MOST_RANKINGS:
            known.popitem(last=False)
        return found

    def _rank(
        self,
        asked: _Asked,
        units: Sequence[str] | None,
        parents: Sequence[str] | None,
        limit: int,
        must: Sequence[str],
        codes: Conditions,
    ) -> Ranking:
        conditions = [*codes]
        required = self._analyze_required(must) if must else None
        every, pending, _ = self.counts()
        if units is not None:
            allowed = len(units)
            ranking = self._rank_units(asked, units, conditions, required, limit)
        else:
            if parents is not None and self._count_units([{"parent": parents}], *parents) < every:
                # a filter that leaves all units takes half of a search
                conditions.append({"parent": parents})
            allowed = self._count_units(conditions, repr(codes), *(parents or ())) if conditions else every
            ranking = self._rank_proposed(asked, conditions, required, limit)
        model = self._get_model(asked)
        # Without thresholds or vectors the relevance is unknown, for which `units` counts.
        is_unknown = parents is not None and (model not in CALIBRATIONS or pending)
        return replace(ranking, model=model, pending=pending, units=None if is_unknown else allowed)

    def count(self, fields: Sequence[str], codes: Conditions = ()) -> Counts:
        """Count the units that meet `codes`; see `SearchIndex.count`. Kept until the next update."""
        key = self.shards.written, digest(repr(fields), repr(codes))
        known = self._totals
        if (found := known.pop(key, None)) is not None:
            known[key] = found  # as the last one
            return found
        where = Filter(fields=[UNIT, *codes])
        units = self.shards.count(where)
        names = dict.fromkeys(("parent", *fields))
        by_field = {name: self.shards.count_values(name, where, _MOST_VALUES) for name in names}
        documents = len({get_original(parent) for parent in by_field["parent"]})
        if "parent" not in fields:
            del by_field["parent"]
        if next(iter(known), key)[0] != key[0]:
            known.clear()
        known[key] = found = Counts(units, documents, by_field)
        values = sum(map(_count_values, [*known.values()]))  # a copy, since other threads count too
        while len(known) > _MOST_TOTALS or (values > _MOST_COUNTED_VALUES and len(known) > 1):
            values -= _count_values(known.popitem(last=False)[1])
        return found

    def load_codes(self, units: Sequence[str]) -> dict[str, Codes]:
        """Return the codes of units that are in the index; see `SearchIndex.load_codes`."""
        return dict(self._load_codes([point_id(iri) for iri in units]).values())

    def _analyze_required(self, must: Sequence[str]) -> dict[str, list[int]]:
        """Return the words that a unit must contain, as dimensions of each field. A stop word matches nothing."""
        found: dict[str, list[int]] = {}
        for name in self.shards.fields:
            parts = [list(get_analyzer(name).embed_query(to_searchable(words)).indices) for words in must]
            if all(parts):
                found[name] = sorted({word for part in parts for word in part})
        return found

    def _find_required(self, required: Mapping[str, Sequence[int]], also: Conditions) -> set[str] | None:
        """Find the units that contain all words of one field; None if there may be more than `_FEW`."""
        found: set[str] = set()
        for name, words in required.items():
            where = Filter(fields=also) if also else None
            having = [self._find_having(name, word, where, _FEW + 1) for word in words]
            fewest = min(having, key=len)
            if len(fewest) > _FEW:
                return None
            found |= self._keep_required(fewest, {name: words})
        return found

    def _keep_required(self, ids: AbstractSet[str], required: Mapping[str, Sequence[int]]) -> set[str]:
        """Return those of `ids` whose text contains all words of one field."""
        kept: set[str] = set()
        for name, words in required.items():
            having = {*ids}
            for word in words:
                if having:
                    having = self._find_having(name, word, _id_filter(having), len(having))
            kept |= having
        return kept

    def _find_having(self, field: str, word: int, where: Filter | None, limit: int) -> set[str]:
        """Find up to `limit` units that contain a word, given as the dimension of a field."""
        return self.shards.search_word(field, word, where, limit)

    def _count_units(self, conditions: Conditions, *parts: str) -> int:
        """Count the units that meet conditions. Kept by `parts`, since counting takes a sixth of a search."""
        key = self.shards.written, digest(*parts)
        if (known := self._numbers.get(key)) is not None:
            return known
        count = self.shards.count({"fields": [UNIT, *conditions]})
        if len(self._numbers) >= _MOST_TOTALS or any(written != key[0] for written, _ in self._numbers):
            self._numbers = {}
        self._numbers[key] = count
        return count

    def _rank_units(
        self,
        asked: _Asked,
        units: Sequence[str],
        conditions: Conditions,
        required: Mapping[str, Sequence[int]] | None,
        limit: int,
    ) -> Ranking:
        iris = {point_id(iri): iri for iri in units}
        if conditions:
            having = self.shards.scroll({"ids": [*iris], "fields": conditions}, [])
            iris = {id_: iris[id_] for _, id_, _ in having}
        if required is not None:
            iris = {id_: iris[id_] for id_ in self._keep_required(iris.keys(), required)}
        if not iris:
            return Ranking((), exhaustive=True)
        where = _id_filter(iris.keys())
        bm25 = {iris[id_]: score for id_, score in self._by_words(asked.text, where, len(iris)).items()}
        cosine = {
            iris[id_]: score for id_, score in self._by_meaning(asked.vector, where, len(iris), exact=True).items()
        }
        fusion = asked.fuse(bm25, cosine)
        ranked = fusion.rank(iris.values(), bm25, cosine)
        ids = {iri: id_ for id_, iri in iris.items()}
        compared, _ = self._compare_words(asked, fusion, ranked, ids)
        found = Ranking(compared[:limit], exhaustive=True)
        if not asked.counted:
            return found
        matching = [replace(each, iri=ids[each.iri]) for each in compared if each.bm25 > 0 or each.cosine is not None]
        return self._add_counted(asked, found, matching)

    def _rank_proposed(
        self, asked: _Asked, conditions: Conditions, required: Mapping[str, Sequence[int]] | None, limit: int
    ) -> Ranking:
        """Fetch the best by words and by meaning, and more of both until no other unit can enter the page."""
        if required is not None and (having := self._find_required(required, conditions)) is not None:
            if not having:
                return Ranking((), exhaustive=True)
            where: Filter | None = _id_filter(having)
            required = None
        else:
            where = Filter(fields=conditions) if conditions else None
        text, vector = asked.text, asked.vector
        # the first ones are ordered again, so they are the same for every page size
        settled = max(limit, POOL)
        depth = max(_FIRST_DEPTH, _DEEPER * limit, asked.counted)
        while True:
            bm25 = self._by_words(text, where, depth)
            cosine = self._by_meaning(vector, where, depth)
            # a list shorter than `depth` contains every unit that it can score
            words_end, meaning_end = len(bm25) < depth, len(cosine) < depth
            least_bm25 = 0.0 if words_end else min(bm25.values())
            least_cosine = -1.0 if meaning_end else min(cosine.values())
            if required is not None:  # words that many units contain
                kept = self._keep_required(bm25.keys() | cosine.keys(), required)
                bm25 = {id_: score for id_, score in bm25.items() if id_ in kept}
                cosine = {id_: score for id_, score in cosine.items() if id_ in kept}
            fusion = asked.fuse(bm25, cosine)
            ceiling = fusion.ceiling(least_bm25, least_cosine)
            known_words, known_meaning = set(bm25), set(cosine)
            complete = words_end and meaning_end
            deepest = complete or depth >= _MAX_DEPTH
            bounds = fusion.bound(bm25, cosine, least_bm25, least_cosine)
            unsure = set() if words_end else known_meaning - known_words
            unsure |= set() if meaning_end else known_words - known_meaning
            # Few units in one list alone need the other score: those with the best bounds, and then, if half of the
            # first ones are settled by these, all that they leave possible.
            first = set(nlargest(settled, bounds, key=bounds.__getitem__))
            self._add_missing(asked, bm25, cosine, unsure & first)
            unsure -= first
            # Where both scores are known, or known to be missing, the bound is the score, but for a little.
            sure = fusion.score_all(first - unsure, bm25, cosine)
            about = {id_: bounds[id_] for id_ in bounds.keys() - unsure - first} | sure
            least = _find_nth(about.values(), settled) - 2 * MARGIN
            sure |= fusion.score_all([id_ for id_, bound in about.items() if bound >= least], bm25, cosine)
            if deepest or _find_nth(sure.values(), settled // 2) > ceiling:
                # No page reaches units below the score of the last one of the first ones, which each score can raise.
                least = _find_nth(sure.values(), settled)
                likely = sorted((id_ for id_ in unsure if bounds[id_] >= least), key=bounds.__getitem__, reverse=True)
                begin, end = 0, _LOOKED_UP * settled
                while begin < len(likely) and bounds[likely[begin]] >= least:
                    looked_up = {id_ for id_ in likely[begin:end] if bounds[id_] >= least}
                    self._add_missing(asked, bm25, cosine, looked_up)
                    sure |= fusion.score_all(looked_up, bm25, cosine)
                    least = _find_nth(sure.values(), settled)
                    begin, end = end, end + _GROWTH * (end - begin)
                ranked = fusion.rank([id_ for id_, score in sure.items() if score >= least], bm25, cosine)
                if deepest or is_settled(ranked, settled, ceiling):
                    ranked, iris = self._compare_words(asked, fusion, ranked)
                    page = self._to_page(ranked, limit, iris)
                    found = Ranking(page, exhaustive=complete and len(bounds) <= limit)
                    if not asked.counted:
                        return found
                    # Required words have left few units of these lists: there may be more that match.
                    if deepest or required is None or len(known_words | known_meaning) >= asked.counted:
                        return self._add_counted(asked, found, self._iter_matching(ranked, bounds, bm25, cosine))
            depth *= _GROWTH

    def _add_missing(
        self, asked: _Asked, bm25: dict[str, float], cosine: dict[str, float], among: AbstractSet[str]
    ) -> None:
        """Add the scores that some units have by words and by meaning."""
        if rest := among - bm25.keys():
            bm25 |= self._by_words(asked.text, _id_filter(rest), len(rest))
        if rest := among - cosine.keys():
            cosine |= self._by_meaning(asked.vector, _id_filter(rest), len(rest), exact=True)

    def _compare_words(
        self, asked: _Asked, fusion: Fusion, ranked: list[Candidate], ids: Mapping[str, str] | None = None
    ) -> tuple[list[Candidate], dict[str, str]]:
        """Score the first POOL candidates again, with the words and pairs of the question that they contain.

        `ids` has the point id of each candidate, which is its IRI without `ids`. Returns the candidates in their new
        order, and the IRIs of those that were read, by point id.
        """
        pool = {ids[each.iri] if ids is not None else each.iri: each for each in ranked[:POOL]}
        if not pool or not (asked.words.words or asked.words.pairs):
            return ranked, {}
        payloads = self._retrieve([*pool], ["iri", "language", "parts", *self.shards.fields])
        known = [id_ for id_ in pool if id_ in payloads]
        overlaps = asked.words.measure([self._get_text(payloads[id_]) for id_ in known])
        for id_, overlap in zip(known, overlaps, strict=True):
            one = pool[id_]
            pairs = overlap.pairs if asked.words.pairs else None
            pool[id_] = replace(
                one,
                score=fusion.score(one.bm25, one.cosine, overlap.pairs),
                pairs=pairs,
                words=round(overlap.words, _DECIMALS),
                language=payloads[id_].get("language"),
                parts=payloads[id_].get("parts"),
            )
        first = sorted(pool.values(), key=lambda candidate: (-candidate.score, candidate.iri))
        return first + ranked[POOL:], {id_: str(payload["iri"]) for id_, payload in payloads.items()}

    def _add_counted(self, asked: _Asked, found: Ranking, matching: Iterable[Candidate]) -> Ranking:
        """Add so many of the units that match, given with their point ids, with their codes.

        The near ones are first: those by meaning, then those by words.
        """
        model = self._get_model(asked)
        by_meaning: list[str] = []
        by_words: list[str] = []
        far: list[str] = []
        for each in matching:
            if is_related(replace(each, words=0.0) if each.words else each, model):
                by_meaning.append(each.iri)
            else:
                (by_words if is_related(each, model) else far).append(each.iri)
            if len(by_meaning) == asked.counted:
                break
        wanted = [*by_meaning, *by_words, *far][: asked.counted]
        codes = self._load_codes(wanted)
        return replace(
            found,
            counted=dict(codes[id_] for id_ in wanted if id_ in codes),
            near=min(len(by_meaning) + len(by_words), asked.counted),
        )

    def _get_model(self, asked: _Asked) -> str | None:
        """Get the model that embedded the query, if its vector counts."""
        space = self.shards.space
        return space.model if space is not None and asked.vector is not None else None

    def _iter_matching(
        self,
        ranked: Sequence[Candidate],
        bounds: Mapping[str, float],
        bm25: Mapping[str, float],
        cosine: Mapping[str, float],
    ) -> Iterator[Candidate]:
        """Yield the units that match, the ranked ones first, then the others by what they can reach."""
        yield from ranked
        # The list by meaning is deep enough to have every unit that is near, if all have vectors.
        unlisted = None if self.counts()[1] else -1.0
        rest = bounds.keys() - {each.iri for each in ranked}
        for id_ in sorted(rest, key=lambda id_: (-bounds[id_], id_)):
            yield Candidate(id_, bounds[id_], bm25.get(id_, 0.0), cosine.get(id_, unlisted))

    def _load_codes(self, ids: Sequence[str]) -> dict[str, tuple[str, Codes]]:
        """Load IRIs and codes by point id. The last ones are kept until the next update; equal codes are one object."""
        written = self.shards.written
        if self._codes_written != written or len(self._codes) > _MOST_CODES:
            self._codes, self._distinct, self._codes_written = {}, {}, written
        kept, distinct = self._codes, self._distinct
        for id_, payload in self._retrieve([id_ for id_ in ids if id_ not in kept], ["iri", "parent", *CODES]).items():
            codes = _read_codes(payload)
            kept[id_] = str(payload["iri"]), distinct.setdefault(repr(codes), codes)
        return {id_: kept[id_] for id_ in ids if id_ in kept}

    def _to_page(self, ranked: Sequence[Candidate], limit: int, iris: Mapping[str, str]) -> list[Candidate]:
        """Return the first `limit` candidates, with IRIs instead of point ids; equal scores by IRI.

        IRIs are fetched only for these, if they are not in `iris`: fetching them with every hit would take most of the
        time of a query.
        """
        last = ranked[limit - 1].score if limit <= len(ranked) else -math.inf
        page = {candidate.iri: candidate for candidate in ranked if candidate.score >= last}
        unread = self._retrieve([id_ for id_ in page if id_ not in iris], ["iri"])
        known = {**iris, **{id_: str(payload["iri"]) for id_, payload in unread.items()}}
        named = [replace(candidate, iri=known[id_]) for id_, candidate in page.items() if id_ in known]
        named.sort(key=lambda candidate: (-candidate.score, candidate.iri))
        return named[:limit]

    def _retrieve(self, ids: Sequence[str], fields: list[str]) -> dict[str, Mapping[str, Any]]:
        """Load fields of the points among `ids` that exist."""
        return self.shards.retrieve(ids, fields) if ids else {}

    def _get_text(self, payload: Mapping[str, Any]) -> str:
        """Return the searched text of a unit, which is in the field of its language."""
        return next(str(payload[name]) for name in (ENGLISH, *self.shards.fields) if name in payload)

    def _by_words(self, text: str | None, where: Filter | None, limit: int) -> dict[str, float]:
        return {} if text is None else self.shards.search_words(text, where, limit)

    def _by_meaning(
        self, vector: Sequence[float] | None, where: Filter | None, limit: int, *, exact: bool = False
    ) -> dict[str, float]:
        if vector is None:
            return {}
        return self.shards.search_vectors(vector, where, limit, exact=exact or limit >= _MAX_DEPTH)

    # Writing

    def begin(self, graphs: Sequence[str]) -> None:
        """Begin to replace `graphs`: they count as incomplete until `finish`. Those of an overfull shard move."""
        with self.shards.writing:
            self._forget(graphs)
            self._old = {graph: {} for graph in graphs}
            for batch in _batches(graphs):
                for shard, id_, payload in self.shards.scroll({"fields": [{"graph": batch}]}, ["graph", "digest"]):
                    graph = payload["graph"]
                    is_home = self._homes.setdefault(graph, shard) == shard
                    self._old[graph][id_] = payload["digest"] if is_home else _ELSEWHERE
            homes = {self._homes[graph] for graph in graphs if graph in self._homes}
            overfull = {home for home in homes if self.shards.is_overfull(home)}
            for graph in graphs:
                if self._homes.get(graph) in overfull:
                    del self._homes[graph]
                    self._old[graph] = dict.fromkeys(self._old[graph], _ELSEWHERE)

    def put(self, units: Sequence[IndexedUnit]) -> None:
        """Write units of the graphs being replaced; unchanged units are skipped."""
        with self.shards.writing:
            changed: dict[str, tuple[str, dict[str, Any]]] = {}
            fields: dict[str, str] = {}
            homes: dict[str, list[str]] = {}
            home: str | None = None
            for unit in units:
                id_ = point_id(unit.iri)
                said = [unit.prelude, unit.text, unit.language or "", str(unit.in_context), unit.names]
                if unit.in_parts:
                    said.append(f"parts {PARTS_VERSION}")
                said.append(json.dumps(sorted(unit.codes.items())))
                if (name := find_field(unit.language)) != ENGLISH:
                    said.append(name)  # units that were indexed as English are written again
                    self.shards.add_field(name)
                if unit.graph not in self._homes:
                    self._homes[unit.graph] = home = home or self.shards.choose()
                fingerprint = digest(unit.iri, unit.graph, unit.parent, *said)
                old = self._old[unit.graph].pop(id_, None)
                if old != fingerprint:
                    homes.setdefault(self._homes[unit.graph], []).append(id_)
                    changed[id_] = (digest(*_build_parts(unit)), _unit_payload(unit, fingerprint))
                    fields[id_] = name
            space = self.shards.space
            hashes = {text_hash for text_hash, _ in changed.values()}
            vectors = self.cache.get(hashes, space.model) if space is not None else {}
            for shard, ids in homes.items():
                for batch in _batches(ids):
                    points: list[Point] = []
                    for id_ in batch:
                        text_hash, payload = changed[id_]
                        point = Point(id=id_, payload=payload | {"text_hash": text_hash}, field=fields[id_])
                        if text_hash in vectors:
                            point["vectors"] = pack(vectors[text_hash])
                        points.append(point)
                    self.shards.put(shard, points)

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
                for batch in _batches(graphs):
                    self.shards.put(
                        shard,
                        [
                            {
                                "id": point_id(graph),
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
        self._delete([point_id(graph) for graph in known], [])

    def _delete(self, ids: Iterable[str], also: Conditions) -> None:
        self.shards.delete(list(ids), also)

    # Vectors

    def pending(self, limit: int) -> dict[str, tuple[str, Sequence[str]]]:
        """Return up to `limit` units without a vector: point id -> (hash of the texts, texts to embed)."""
        where = Filter(fields=[UNIT], has_vector=False)
        fields = ["text_hash", "text", "text_start", "prelude_length", *self.shards.fields]
        found = islice(self.shards.scroll(where, fields, limit=limit), limit)
        return {id_: (payload["text_hash"], self._get_embedded_texts(payload)) for _, id_, payload in found}

    def _get_embedded_texts(self, payload: Mapping[str, Any]) -> Sequence[str]:
        """Return the texts that vectors are computed from, stored separately only if `to_searchable` changed them."""
        whole = str(payload["text"]) if "text" in payload else self._get_text(payload)[payload["text_start"] :]
        length = payload.get("prelude_length")
        if length is None:
            return (whole,)
        return build_part_texts(whole[:length], whole[length + bool(length) :])

    def set_vectors(self, vectors: Mapping[str, tuple[str, Rows]]) -> None:
        """Write vectors of units (point id -> (hash of the text, vectors)) whose text has not changed since."""
        for ids in _batches(list(vectors)):
            self.shards.set_vectors({id_: (vectors[id_][0], pack(vectors[id_][1])) for id_ in ids})

    def list_text_hashes(self) -> Iterator[str]:
        """Yield the hashes of the texts of all units that vectors are computed from."""
        for _, _, payload in self.shards.scroll({"fields": [UNIT]}, ["text_hash"]):
            yield payload["text_hash"]


def _count_values(counts: Counts) -> int:
    return sum(map(len, counts.by_field.values()))


def _searched_text(unit: IndexedUnit) -> str:
    return "\n".join(part for part in (unit.names, unit.prelude, unit.text) if part)


def _embedded_text(unit: IndexedUnit) -> str:
    """Return the text that the vectors of a unit are computed from, which is the end of the searched text."""
    return f"{unit.prelude}\n{unit.text}" if (unit.in_context or unit.in_parts) and unit.prelude else unit.text


def _build_parts(unit: IndexedUnit) -> Sequence[str]:
    return build_part_texts(unit.prelude, unit.text) if unit.in_parts else (_embedded_text(unit),)


def _unit_payload(unit: IndexedUnit, fingerprint: str) -> dict[str, Any]:
    plain, meant = _searched_text(unit), _embedded_text(unit)
    search = to_searchable(plain)
    payload: dict[str, Any] = {
        "kind": "unit",
        "iri": unit.iri,
        "graph": unit.graph,
        "parent": unit.parent,
        "digest": fingerprint,
        find_field(unit.language): search,
        "text_start": len(plain) - len(meant),
    }
    if unit.in_parts:
        payload |= {"prelude_length": len(unit.prelude), "parts": len(split_parts(unit.text))}
    if search != plain:
        payload["text"] = meant
    if unit.language:
        payload["language"] = unit.language
    # The engine takes 6 microseconds for a list of one string, and half of it for the string.
    return payload | {name: values[0] if len(values) == 1 else list(values) for name, values in unit.codes.items()}


def _read_codes(payload: Mapping[str, Any]) -> Codes:
    found = {name: payload[name] for name in ("parent", *CODES) if name in payload}
    return {name: [values] if isinstance(values, str) else values for name, values in found.items()}


def _id_filter(ids: AbstractSet[str]) -> Filter:
    return {"ids": [*ids]}


def _find_nth(scores: Iterable[float], number: int) -> float:
    """Find the score at place `number` of the order, from 1; minus infinity if there are fewer."""
    first = nlargest(number, scores)
    return first[-1] if len(first) == number else -math.inf


def _batches(items: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(items), UPDATE_POINTS):
        yield list(items[start : start + UPDATE_POINTS])
