"""The text units in an index: replacement by graph, ranking by words and by meaning.

A unit is a point, or one for each part of a long text (`kg.search.parts`): it ranks by its best part and counts once. A
graph is another point, its marker with the content hash, which is removed first and written last. An interrupted
replacement leaves no marker, so that `index_sync.repair_index` repeats it.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from kg.search.analyzers import ENGLISH, find_field, get_analyzer
from kg.search.parts import PARTS_VERSION, split_parts
from kg.search.payloads import SPAN, build_payload, digest, read_codes, read_span
from kg.search.points import (
    ALSO,
    DENSE,
    LANGUAGE,
    NO_HITS,
    OTHER,
    PART,
    SLOTS,
    TEXT,
    UNIT,
    UPDATE_POINTS,
    Filter,
    Hits,
    Point,
    VectorSpace,
    get_first,
    get_firsts,
    pack,
)
from kg.search.protocol import CODES, Candidate, Codes, Conditions, Counts, IndexedUnit, Mode, Ranking, get_original
from kg.search.query_language import detect_query_language
from kg.search.ranking import (
    INCOMPARABLE_SHARE,
    NO_MEANING,
    PAIR_WEIGHT,
    POOL,
    Compared,
    Fusion,
    Indices,
    Meaning,
    Proposed,
    Scores,
)
from kg.search.relevance import CALIBRATIONS, are_near, is_related
from kg.search.shards import Shards
from kg.search.spaces import Spaces, search_spaces
from kg.search.vector_cache import Rows, VectorCache
from kg.search.word_overlap import NO_WORDS, QuestionWords, parse_question
from kg.store.protocol import batched

_FIRST_DEPTH = 1_024
"""Exact search takes 6 ms for 256 of 50,000 units and 9 ms for 1,024, and each further round as long again."""
_DEEPER = 4
_GROWTH = 2
"""Of the depth, where a list is too short: 4 reads more than is needed for a third of short keyword queries."""
_WORDS_GROWTH = 4
"""The same of the list by words, which takes less time than the one by meaning: all vectors are compared for it."""
_MAX_DEPTH = 65_536
_MAX_WORDS_DEPTH = 4 * _MAX_DEPTH
"""Each hit takes a microsecond, so a list by words to this depth takes a quarter of a second."""
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
    """A query: its text for BM25, None if it does not count, the vectors to compare, and its words to compare."""

    text: str | None
    compared: Sequence[Compared]
    words: QuestionWords
    counted: int = 0
    """How many units that match to return with their codes."""

    language: str | None = None
    """The language of the query; None: unsure."""

    @property
    def spaces(self) -> Sequence[str]:
        """The spaces of the lists of vectors."""
        return [each.space for each in self.compared]

    @property
    def foreign(self) -> Sequence[bool]:
        """Whether the units of each list are in other languages than the query."""
        return [each.is_foreign for each in self.compared]

    def is_foreign(self, candidate: Candidate, language: str) -> bool:
        """Whether a unit is compared as one in another language than the query."""
        return candidate.space not in (None, DENSE) and language != self.language

    def fuse(self, scores: Scores) -> Fusion:
        """Build the fusion for these scores."""
        pair_weight = PAIR_WEIGHT if self.words.pairs else 0.0
        foreign_share = INCOMPARABLE_SHARE if any(self.foreign) else 0.0
        return Fusion(scores.top_bm25, scores.top_cosine, pair_weight=pair_weight, foreign_share=foreign_share)


@dataclass(slots=True)
class UnitIndex:
    """The units of an index. Any thread may read; only one thread at a time may write."""

    shards: Shards
    embed_query: Callable[[str, int], Sequence[float] | None]
    """Returns the vector of a query by the model of a number, or None without it."""
    cache: VectorCache
    """The vectors of texts, which may be there before the texts are."""
    on_pending: Callable[[], None] = lambda: None
    """Called after units without a vector were written."""
    spaces: Spaces = field(default_factory=Spaces)
    _state: dict[str, str] = field(init=False)
    _homes: dict[str, str] = field(default_factory=dict)
    """The shard of each graph that is in the index or is being replaced."""
    _of_languages: tuple[int, Mapping[str, int]] = -1, {}
    """Number of updates of texts when units were counted by language, and the counts."""
    _parts: dict[int, int] = field(default_factory=dict)
    """The number of points of each unit that has several, by the id of the first."""
    _numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    """Numbers of units by number of updates and digest of conditions."""
    _codes: dict[int, tuple[str, Codes]] = field(default_factory=dict)
    """IRIs and codes of units by point id, as of `_codes_written` updates."""
    _distinct: dict[str, Codes] = field(default_factory=dict)
    _codes_written: int = -1
    _old: dict[str, dict[int, str]] = field(default_factory=dict)
    """The digests of the units that are there of each graph that is being replaced, by point id."""
    _rankings: OrderedDict[tuple[int, str], Ranking] = field(default_factory=OrderedDict)
    """The last rankings, by number of updates and digest of the request."""
    _totals: OrderedDict[tuple[int, str], Counts] = field(default_factory=OrderedDict)
    """The last counts, by number of updates and digest of the request. Those of the start page are asked most often."""

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
            self._of_languages = texts, self.shards.count_values(LANGUAGE, {"fields": [UNIT]}, _MOST_VALUES)
        return self._of_languages[1]

    def _lacking(self, spaces: Sequence[str]) -> Filter | None:
        """Return the condition of the texts that lack a vector that is due in one of some spaces; None without any."""
        languages = self.spaces.list_due(self._count_languages()).get(spaces[0])
        return Filter(fields=[TEXT, {LANGUAGE: languages}], lacking=spaces) if languages else None

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
        language = self._detect_language(query)
        asked = _Asked(
            None if mode == "dense" else query,
            self._compare(query, language) if query.strip() and mode != "bm25" else (),
            parse_question(query) if mode == "hybrid" else NO_WORDS,
            counted,
            language,
        )
        if units is not None:
            return replace(self._rank(asked, units, parents, limit, must, codes), language=language)
        # The next pages of a query, and the counts of a facet after a filter was added, need the same ranking again.
        known = self._rankings
        request = (query, mode, asked.spaces, limit, counted, [*must], [*map(dict, codes)], parents)
        key = self.shards.written, digest(repr(request))
        found = known.get(key) or replace(self._rank(asked, units, parents, limit, must, codes), language=language)
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
        is_known = asked.language is None or self.spaces.knows(asked.language)
        uncompared = {} if is_known and not asked.compared else self._count_uncompared(asked, units, conditions)
        return replace(
            ranking,
            model=model,
            models={space: self.shards.spaces[space].model for space in asked.spaces},
            pending=pending,
            units=None if is_unknown else allowed,
            uncompared=uncompared,
        )

    def _count_uncompared(
        self, asked: _Asked, units: Sequence[str] | None, conditions: Conditions
    ) -> Mapping[str, int]:
        """Count the units in languages whose vectors are in none of the spaces that are compared, by language."""
        compared = {*asked.spaces}
        unknown = [name for name in self._count_languages() if compared.isdisjoint(self.spaces.find(name))]
        if not unknown:
            return {}
        where = Filter(fields=[UNIT, {LANGUAGE: unknown}, *conditions])
        if units is not None:
            where["ids"] = [*map(self.shards.compute_id, units)]
        return self.shards.count_values(LANGUAGE, where, _MOST_VALUES)

    def _detect_language(self, query: str) -> str | None:
        """Detect the language of a query, unless nothing depends on it: the detector takes a second to load."""
        if len(self.shards.fields) == 1 and ALSO not in self.spaces.list_due(self._count_languages()):
            return None
        return detect_query_language(query, self.shards.count_each)

    def _compare(self, query: str, language: str | None) -> Sequence[Compared]:
        due = self.spaces.list_due(self._count_languages())
        return self.spaces.compare(language, due, partial(self.embed_query, query))

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
        return dict(self._load_codes([*map(self.shards.compute_id, units)]).values())

    def _analyze_required(self, must: Sequence[str]) -> dict[str, list[int]]:
        """Return the words that a unit must contain, as dimensions of each field. A stop word matches nothing."""
        found: dict[str, list[int]] = {}
        for name in self.shards.fields:
            parts = [list(get_analyzer(name).embed_query(words).indices) for words in must]
            if all(parts):
                found[name] = sorted({word for part in parts for word in part})
        return found

    def _find_required(self, required: Mapping[str, Sequence[int]], also: Conditions) -> set[int] | None:
        """Find the units that contain all words of one field; None if there may be more than `_FEW`."""
        found: set[int] = set()
        for name, words in required.items():
            where = Filter(fields=also) if also else None
            having = [self.shards.search_word(name, word, where, _FEW + 1) for word in words]
            fewest = min(having, key=len)
            if len(fewest) > _FEW:
                return None
            found |= self._keep_required({*map(get_first, fewest)}, {name: words})
        return found

    def _keep_required(self, firsts: AbstractSet[int], required: Mapping[str, Sequence[int]]) -> set[int]:
        """Return those units whose text contains all words of one field, each in any of its parts."""
        kept: set[int] = set()
        for name, words in required.items():
            having = {*firsts}
            for word in words:
                if points := self._list_points(having):
                    having = {*map(get_first, self.shards.search_word(name, word, _id_filter(points), len(points)))}
            kept |= having
        return kept

    def _list_points(self, firsts: Iterable[int]) -> list[int]:
        """List all points of units, given by their first ones."""
        return [id_ for first in firsts for id_ in range(first, first + self._parts.get(first, 1))]

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
        iris = {self.shards.compute_id(iri): iri for iri in units}
        if conditions:  # of each unit by its first point
            having = self.shards.scroll({"ids": [*iris], "fields": conditions}, [])
            iris = {id_: iris[id_] for _, id_, _ in having}
        if required is not None:
            iris = {id_: iris[id_] for id_ in self._keep_required(iris.keys(), required)}
        if not iris:
            return Ranking((), exhaustive=True)
        points = self._list_points(iris)
        where = _id_filter(points)
        scores = Scores.join(
            self._by_words(asked, where, len(points)),
            self._by_meaning(asked, where, len(points), exact=True),
            np.array(points, np.int64),
        )
        fusion = asked.fuse(scores)
        fused = fusion.score_all(scores.bm25, scores.cosine, scores.find_foreign(asked.foreign))
        ranked = {
            (id_ := int(scores.ids[place])): scores.get_candidate(
                place, float(fused[place]), asked.spaces, iris[get_first(id_)]
            )
            for place in scores.find_best(fused).tolist()
        }
        compared = self._compare_words(asked, fusion, dict(sorted(ranked.items(), key=_by_score)))
        found = Ranking([*self._add_spans(dict(islice(compared.items(), limit))).values()], exhaustive=True)
        if not asked.counted:
            return found
        matching = {id_: each for id_, each in compared.items() if each.bm25 > 0 or each.cosine is not None}
        return self._add_counted(asked, found, matching)

    def _rank_proposed(
        self, asked: _Asked, conditions: Conditions, required: Mapping[str, Sequence[int]] | None, limit: int
    ) -> Ranking:
        """Fetch the best by words and by meaning, and more of both until no other unit can enter the page."""
        if required is not None and (having := self._find_required(required, conditions)) is not None:
            if not having:
                return Ranking((), exhaustive=True)
            where: Filter | None = _id_filter(self._list_points(having))
            required = None
        else:
            where = Filter(fields=conditions) if conditions else None
        # the first ones are ordered again, so they are the same for every page size
        settled = max(limit, POOL)
        depth = words_depth = max(_FIRST_DEPTH, _DEEPER * limit, asked.counted)
        while True:
            proposed = self._propose(asked, where, required, words_depth, depth)
            deepest = proposed.complete or depth >= _MAX_DEPTH
            if self._look_up_first(asked, proposed, settled, deepest):
                places = proposed.find_first(settled)
                ranked = self._name_tied(proposed.list_candidates(places, asked.spaces))
                ranked = self._compare_words(asked, proposed.fusion, ranked)
                exhaustive = proposed.complete and len(proposed) <= limit
                found = Ranking(self._to_page(ranked, limit), exhaustive)
                if not asked.counted:
                    return found
                # Required words, and several parts of a text, leave few units of these lists: more may match.
                if deepest or proposed.complete or len(proposed) >= asked.counted:
                    return self._add_counted(asked, found, ranked, proposed.list_others(places))
            depth *= _GROWTH
            words_depth = min(words_depth * _WORDS_GROWTH, _MAX_WORDS_DEPTH)

    def _propose(
        self,
        asked: _Asked,
        where: Filter | None,
        required: Mapping[str, Sequence[int]] | None,
        words_depth: int,
        depth: int,
    ) -> Proposed:
        """Fetch the list by words and the one by meaning, each to its depth, of the units that have required words."""
        words = self._by_words(asked, where, words_depth)
        meaning = self._by_meaning(asked, where, depth)
        # a list shorter than was asked for contains every unit that it can score
        least_bm25 = None if len(words) < words_depth else words.least
        if required is not None:  # words that many units contain
            among = {*get_firsts(words.ids).tolist(), *get_firsts(meaning.hits.ids).tolist()}
            kept = np.array(self._list_points(self._keep_required(among, required)), np.int64)
            words, meaning = words.keep(kept), meaning.keep(kept)
        scores = Scores.join(words, meaning)
        return Proposed(scores, asked.fuse(scores), least_bm25, meaning.least, asked.foreign)

    def _look_up_first(self, asked: _Asked, proposed: Proposed, number: int, deepest: bool) -> bool:
        """Look up missing scores until the first `number` units are certain. Return whether they are, or `deepest`.

        Few units in one list alone need the other score: those with the best bounds, and then, if half of the first
        ones are settled by these, all that they leave possible.
        """
        self._look_up(asked, proposed, proposed.find_best_bounds(number))
        if not deepest and not proposed.is_settled(number // 2):
            return False
        likely = proposed.find_likely(number)
        begin, end = 0, _LOOKED_UP * number
        # Each score that is looked up can raise that of the last one of the first ones.
        while len(some := proposed.keep_likely(likely[begin:end], number)):
            self._look_up(asked, proposed, some)
            begin, end = end, end + _GROWTH * (end - begin)
        return deepest or proposed.is_settled(number)

    def _look_up(self, asked: _Asked, proposed: Proposed, places: Indices) -> None:
        """Look up the scores by words and by meaning that the units at some places may have."""
        unknown, scores = places[proposed.unsure[places]], proposed.scores
        without = [scores.ids[unknown[np.isnan(each[unknown])]].tolist() for each in (scores.bm25, scores.cosine)]
        words, meaning = (_id_filter(ids) for ids in without)
        scores.add(
            self._by_words(asked, words, len(without[0])) if without[0] else NO_HITS,
            self._by_meaning(asked, meaning, len(without[1]), exact=True) if without[1] else NO_MEANING,
        )
        proposed.fuse(unknown)

    def _name_tied(self, ranked: dict[int, Candidate]) -> dict[int, Candidate]:
        """Order units by IRI that have the score of the last one whose words are compared, if not all of them are."""
        order = [*ranked.items()]
        if len(order) <= POOL or order[POOL - 1][1].score > order[POOL][1].score:
            return ranked
        tied = {id_: each for id_, each in order if each.score == order[POOL][1].score}
        payloads = self._retrieve([*tied], ["iri"])
        named = {id_: replace(each, iri=str(payloads[id_]["iri"])) for id_, each in tied.items() if id_ in payloads}
        return dict(sorted({**ranked, **named}.items(), key=_by_score))

    def _compare_words(self, asked: _Asked, fusion: Fusion, ranked: dict[int, Candidate]) -> dict[int, Candidate]:
        """Score the first POOL candidates again, with the words and pairs of the question that they contain.

        Candidates are by point id, best first. Those that are read have their IRIs then.
        """
        pool = dict(islice(ranked.items(), POOL))
        if not pool or not (asked.words.words or asked.words.pairs):
            return ranked
        payloads = self._retrieve([*pool], ["iri", "language", LANGUAGE, SPAN, *self.shards.fields])
        known = [id_ for id_ in pool if id_ in payloads]
        languages = [payloads[id_].get("language") for id_ in known]
        overlaps = asked.words.measure([self._get_text(payloads[id_]) for id_ in known], languages)
        for id_, overlap in zip(known, overlaps, strict=True):
            one = pool[id_]
            pairs = overlap.pairs if asked.words.pairs else None
            pool[id_] = replace(
                one,
                iri=str(payloads[id_]["iri"]),
                score=fusion.score(
                    one.bm25, one.cosine, overlap.pairs, is_foreign=asked.is_foreign(one, payloads[id_][LANGUAGE])
                ),
                pairs=pairs,
                words=round(overlap.words, _DECIMALS),
                language=payloads[id_].get("language"),
                span=read_span(payloads[id_]),
            )
        return dict(sorted(pool.items(), key=_by_score)) | dict(islice(ranked.items(), POOL, None))

    def _add_counted(
        self, asked: _Asked, found: Ranking, ranked: Mapping[int, Candidate], others: Hits = NO_HITS
    ) -> Ranking:
        """Add so many of the units that match, by point id, with their codes: the ranked ones, then others by cosine.

        The near ones are first: those by meaning, then those by words.
        """
        model = self._get_model(asked)
        by_meaning: list[int] = []
        by_words: list[int] = []
        far: list[int] = []
        for id_, each in ranked.items():
            if is_related(replace(each, words=0.0) if each.words else each, model):
                by_meaning.append(id_)
            else:
                (by_words if is_related(each, model) else far).append(id_)
        # The list by meaning is deep enough to have every unit that is near, if all have vectors.
        near = are_near(others.scores, model)
        if self.counts()[1]:
            near |= np.isnan(others.scores)
        by_meaning += others.ids[near].tolist()
        far += others.ids[~near].tolist()
        wanted = [*by_meaning, *by_words, *far][: asked.counted]
        codes = self._load_codes(wanted)
        return replace(
            found,
            counted=dict(codes[id_] for id_ in wanted if id_ in codes),
            near=min(len(by_meaning) + len(by_words), asked.counted),
        )

    def _get_model(self, asked: _Asked) -> str | None:
        """Get the model that embedded the query, the first one if there are several; None if no vector counts."""
        return self.shards.spaces[asked.spaces[0]].model if asked.compared else None

    def _load_codes(self, ids: Sequence[int]) -> dict[int, tuple[str, Codes]]:
        """Load IRIs and codes by point id. The last ones are kept until the next update; equal codes are one object."""
        written = self.shards.written
        if self._codes_written != written or len(self._codes) > _MOST_CODES:
            self._codes, self._distinct, self._codes_written = {}, {}, written
        kept, distinct = self._codes, self._distinct
        for id_, payload in self._retrieve([id_ for id_ in ids if id_ not in kept], ["iri", "parent", *CODES]).items():
            codes = read_codes(payload)
            kept[id_] = str(payload["iri"]), distinct.setdefault(repr(codes), codes)
        return {id_: kept[id_] for id_ in ids if id_ in kept}

    def _to_page(self, ranked: Mapping[int, Candidate], limit: int) -> list[Candidate]:
        """Return the first `limit` candidates, given by point id, with their IRIs; equal scores by IRI.

        IRIs are fetched only for these: fetching them with every hit would take most of the time of a query.
        """
        order = [*ranked.values()]
        last = order[limit - 1].score if limit <= len(order) else -math.inf
        page = {id_: candidate for id_, candidate in ranked.items() if candidate.score >= last}
        unread = self._retrieve([id_ for id_, candidate in page.items() if not candidate.iri], ["iri", SPAN])
        read = {
            id_: replace(page[id_], iri=str(payload["iri"]), span=read_span(payload)) for id_, payload in unread.items()
        }
        named = [each for id_, candidate in page.items() if (each := read.get(id_, candidate)).iri]
        named.sort(key=lambda candidate: (-candidate.score, candidate.iri))
        return named[:limit]

    def _add_spans(self, ranked: Mapping[int, Candidate]) -> Mapping[int, Candidate]:
        """Add the spans of the candidates that are parts of a text."""
        lacking = [id_ for id_, each in ranked.items() if each.span is None and get_first(id_) in self._parts]
        payloads = self._retrieve(lacking, [SPAN])
        return {**ranked, **{id_: replace(ranked[id_], span=read_span(each)) for id_, each in payloads.items()}}

    def _retrieve(self, ids: Sequence[int], fields: list[str]) -> dict[int, Mapping[str, Any]]:
        """Load fields of the points among `ids` that exist."""
        return self.shards.retrieve(ids, fields) if ids else {}

    def _get_text(self, payload: Mapping[str, Any]) -> str:
        """Return the searched text of a unit, which is in the field of its language."""
        return next(str(payload[name]) for name in (ENGLISH, *self.shards.fields) if name in payload)

    def _by_words(self, asked: _Asked, where: Filter | None, limit: int) -> Hits:
        return NO_HITS if asked.text is None else self.shards.search_words(asked.text, asked.language, where, limit)

    def _by_meaning(self, asked: _Asked, where: Filter | None, limit: int, *, exact: bool = False) -> Meaning:
        def search(each: Compared) -> Hits:
            is_exact = exact or limit >= _MAX_DEPTH
            return self.shards.search_vectors(each.space, each.vector, where, limit, exact=is_exact)

        are_all = where is not None and len(where.get("ids", range(limit + 1))) <= limit
        return search_spaces(asked.compared, search, self.shards.load_languages, None if are_all else limit)

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


def _count_values(counts: Counts) -> int:
    return sum(map(len, counts.by_field.values()))


def _id_filter(ids: Collection[int]) -> Filter:
    return {"ids": [*ids]}


def _by_score(item: tuple[int, Candidate]) -> tuple[float, str]:
    return -item[1].score, item[1].iri
