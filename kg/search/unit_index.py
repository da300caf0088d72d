"""The text units in an index, ranked by words and by meaning, and counted.

A unit of several points (`kg.search.unit_store`) ranks by its best one and counts once.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from kg.languages import UNKNOWN, WORDLESS
from kg.search.analyzers import find_language, get_analyzer
from kg.search.payloads import SPAN, digest, read_codes, read_span
from kg.search.points import (
    ALSO,
    DENSE,
    LANGUAGE,
    NO_HITS,
    UNIT,
    Filter,
    Hits,
    get_first,
    get_firsts,
)
from kg.search.protocol import CODES, Candidate, Codes, Conditions, Counts, Mode, Ranking, get_original
from kg.search.query_language import detect_query_language, is_latin
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
from kg.search.spaces import search_spaces
from kg.search.unit_store import MOST_VALUES, UnitStore
from kg.search.word_overlap import NO_WORDS, QuestionWords, parse_question

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
class UnitIndex(UnitStore):
    """The units of an index, which are ranked and counted."""

    embed_query: Callable[[str, int], Sequence[float] | None]
    """Returns the vector of a query by the model of a number, or None without it."""
    _numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    """Numbers of units by number of updates and digest of conditions."""
    _codes: dict[int, tuple[str, Codes]] = field(default_factory=dict)
    """IRIs and codes of units by point id, as of `_codes_written` updates."""
    _distinct: dict[str, Codes] = field(default_factory=dict)
    _codes_written: int = -1
    _rankings: OrderedDict[tuple[int, str], Ranking] = field(default_factory=OrderedDict)
    """The last rankings, by number of updates and digest of the request."""
    _totals: OrderedDict[tuple[int, str], Counts] = field(default_factory=OrderedDict)
    """The last counts, by number of updates and digest of the request. Those of the start page are asked most often."""

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
        required, stop_words = self._analyze_required(must) if must else (None, {})
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
            stop_words=stop_words,
            is_void=required == {},
            is_latin=asked.text is None or is_latin(asked.text),
        )

    def _count_uncompared(
        self, asked: _Asked, units: Sequence[str] | None, conditions: Conditions
    ) -> Mapping[str, int]:
        """Count the units in languages whose vectors are in none of the spaces that are compared, by language."""
        compared = {*asked.spaces}
        unknown = [
            name for name in self._count_languages() if name != WORDLESS and compared.isdisjoint(self.spaces.find(name))
        ]
        if not unknown:
            return {}
        where = Filter(fields=[UNIT, {LANGUAGE: unknown}, *conditions])
        if units is not None:
            where["ids"] = [*map(self.shards.compute_id, units)]
        return self.shards.count_values(LANGUAGE, where, MOST_VALUES)

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
        by_field = {name: self.shards.count_values(name, where, MOST_VALUES) for name in names}
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

    def _analyze_required(self, must: Sequence[str]) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
        """Return the words that a unit must contain, as dimensions of each field that knows one, and the stop words.

        The index does not have the stop words of a language, which most of its texts contain.
        """
        found: dict[str, list[int]] = {}
        stop_words: dict[str, list[str]] = {}
        for name in self.shards.fields:
            parts = {words: get_analyzer(name).embed_query(words).indices for words in must}
            if left := {word for part in parts.values() for word in part}:
                found[name] = sorted(left)
            if unknown := [words for words, part in parts.items() if not part]:
                stop_words[find_language(name) or UNKNOWN] = unknown
        return found, stop_words

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
            required, unscored = None, sorted(having)[:limit]
        else:
            unscored = []
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
                if not ranked:  # no word and no model compares these with the query
                    ranked = {id_: Candidate("", 0.0, 0.0, None) for id_ in unscored}
                    exhaustive = len(unscored) < limit
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

    def _by_words(self, asked: _Asked, where: Filter | None, limit: int) -> Hits:
        return NO_HITS if asked.text is None else self.shards.search_words(asked.text, asked.language, where, limit)

    def _by_meaning(self, asked: _Asked, where: Filter | None, limit: int, *, exact: bool = False) -> Meaning:
        def search(each: Compared) -> Hits:
            is_exact = exact or limit >= _MAX_DEPTH
            return self.shards.search_vectors(each.space, each.vector, where, limit, exact=is_exact)

        are_all = where is not None and len(where.get("ids", range(limit + 1))) <= limit
        return search_spaces(asked.compared, search, self.shards.load_languages, None if are_all else limit)


def _count_values(counts: Counts) -> int:
    return sum(map(len, counts.by_field.values()))


def _id_filter(ids: Collection[int]) -> Filter:
    return {"ids": [*ids]}


def _by_score(item: tuple[int, Candidate]) -> tuple[float, str]:
    return -item[1].score, item[1].iri
