"""Whether the texts that were searched treat the subject of a query, by the scores of an answer. Pure functions.

A ranking always has a first unit, also for a query that nothing in the graph answers. `covers` is the probability that
the texts treat the subject: a logistic function of the nearest unit (its cosine, and the share of the query's words in
it), of the largest share of words in a unit, and of the number of units, since the best of many is nearer by chance.
Its coefficients belong to an embedding model, and to a query in the language of the texts or in another one.
`tests/benchmarks/relevance.py` fits them on three collections, and prints how often they are right on these and on
others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.languages import find_primary, name_language
from kg.search.points import ALSO, OTHER, Floats
from kg.search.protocol import Candidate, Ranking
from kg.search.ranking import COSINE_WEIGHT, PAIR_WEIGHT
from kg.search.registry import USE

WORDS_IN_UNIT: Final = 0.3
"""Weight of the share of a query's words in a unit, where that of its cosine is 1."""
MANY: Final = 5_000
"""Units from which on the floor is that of the model, and that an unknown number of them counts as."""

FEW: Final = 50
"""Units up to which an answer is not refused if one has a word of the query. These are soon read, and a sentence in
other words than a speech is as far from it as an unrelated one."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coefficients of `covers`, and the probability below which an answer has no results."""

    near: float
    """Of the best unit's cosine, with WORDS_IN_UNIT of the share of the query's words in it."""
    words: float
    """Of the largest share of the query's words in a unit."""
    units: float
    """Of the decimal logarithm of the number of units."""
    constant: float
    floor: float
    """For at least MANY units. Few texts are soon read, and words of their own are rarer in them, so the floor falls
    with the square root of their number."""

    def estimate(self, candidates: Sequence[Candidate], units: int) -> float:
        """Estimate the probability that units treat the subject of a query."""
        odds = (
            self.near * max(map(measure_nearness, candidates))
            + self.words * max(each.words for each in candidates)
            + self.units * math.log10(max(1, units))
            + self.constant
        )
        return 1 / (1 + math.exp(-odds))

    def find_floor(self, units: int) -> float:
        """Find the probability below which an answer from so many units has no results."""
        return self.floor * math.sqrt(min(1.0, units / MANY))


@dataclass(frozen=True, slots=True)
class Answering:
    """The coefficients of the probability that a unit answers a short factual question, of a logistic function."""

    cosine: float
    words: float
    lead: float
    """Of how much nearer the unit is than the nearest other one."""
    constant: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The coefficients and limits of one embedding model."""

    same: Coverage
    """For texts in the language of the query."""
    other: Coverage | None
    """For texts in another language; None: the model does not compare these."""
    cut: float
    """Nearness below which a single unit is not listed."""
    answering: Answering | None = None
    """For English questions and texts; None: not measured."""

    def choose(self, text: str | None, query: str | None) -> Coverage:
        """Choose the coefficients for the languages of a text (BCP 47) and of the query (primary subtag)."""
        is_other = text is not None and find_primary(text) != query
        return self.other if self.other is not None and is_other else self.same


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether the texts that were searched treat the subject of a query."""

    covers: float | None = None
    """The probability, from 0 to 1; None if it is not known."""
    reason: str | None = None
    """Why it is not known, or not stated."""
    refused: bool = False
    """Whether an answer has no results, since it is too small among the texts that could be compared."""
    is_across: bool = False
    """Whether it is of texts in another language than the query. Among thousands of texts it is often wrong then, so it
    decides only which results are listed, and is not stated."""

    @property
    def stated(self) -> float | None:
        """The probability that an answer states."""
        return None if self.is_across else self.covers


SURE: Final = 0.99
"""The highest probability: the collections that were measured are too small for a higher one."""
_FACTUAL: Final = re.compile(
    r"\W*(?:(?:about|after|around|at|before|by|during|for|from|in|of|on|since|to|under|until|with)\s+)?"
    r"(?:who|whom|whose|when|where|how\s+(?:many|much|old|tall|high|large)"
    r"|(?:what|which)\s+(?:year|date|day|month|century|decade|city|country|person|percentage|number|state|river))\b",
    re.IGNORECASE,
)
"""The beginning of an English question for a person, a time, a place or a number."""
_SHORT: Final = 14
"""Maximum number of words of such a question: longer ones were not measured."""
_MOST_WORDS: Final = 0.5
_OTHERS: Final = 0.3
"""Nearness of the other units where there are none."""

_MOST_UNCOMPARED: Final = 0.5
"""Share of the texts that no model compares with a query above which the others do not decide about its answer."""

ACROSS: Final = "The nearest texts are in another language, for which the probability is not reliable."

UNJUDGED: Final = Relevance(reason="It was not estimated.")
NOTHING: Final = Relevance(0.0, refused=True)
"""That of an answer from no texts."""

CALIBRATIONS: Final = {
    "sentence-transformers/all-MiniLM-L6-v2/int8": Calibration(
        same=Coverage(near=25.6, words=4.7, units=-1.23, constant=-11.2, floor=0.12),
        other=None,
        cut=0.3,
        answering=Answering(cosine=2.9, words=7.3, lead=10.8, constant=-7.3),
    ),
    f"{USE}/6bit": Calibration(
        same=Coverage(near=20.0, words=0.0, units=-0.89, constant=-8.3, floor=0.01),
        other=Coverage(near=11.3, words=3.5, units=-0.89, constant=-5.0, floor=0.02),
        cut=0.3,
    ),
}
"""By the name of the model, with its precision, as `kg.search.embedding` states it."""
_ACROSS: Final = frozenset(each.other for each in CALIBRATIONS.values())


def estimate_relevance(candidates: Sequence[Candidate], ranking: Ranking) -> Relevance:
    """Estimate whether the texts of a ranking treat the subject of its query, by the candidates considered for it."""
    if ranking.model is None:
        unknown = ": no embedding model knows its language" if ranking.uncompared else ""
        return Relevance(reason=f"Texts were compared with the query by words only{unknown}.")
    if ranking.pending:
        return Relevance(reason=f"{ranking.pending:,} texts have no embedding yet.")
    units = MANY if ranking.units is None else ranking.units
    scored = drop_unscored(candidates)
    found = [(coverage, coverage.estimate(group, units)) for coverage, group in group_candidates(scored, ranking)]
    if ranking.model not in CALIBRATIONS:
        return Relevance(reason=f"The scores of the embedding model {ranking.model} are not calibrated.")
    nearest, best = max(found, key=lambda each: each[1], default=(None, 0.0))
    covers = round(min(SURE, best), 3)
    is_across = nearest is not None and nearest in _ACROSS
    is_near = any(is_related(each, ranking.model) for each in scored)
    is_listed = is_near and any(probability >= coverage.find_floor(units) for coverage, probability in found)
    if units <= FEW:
        is_listed |= any(each.words > 0 for each in scored)
    if is_listed:
        return _state(covers, is_across)
    if ranking.incomplete is not None:
        return Relevance(reason="The search index may lack texts.")
    has_words = any(_has_words(each) for each in scored)
    uncompared = sum(ranking.uncompared.values())
    # Without any candidate in scope, those of the ranking are of a wider one, of which nothing is known here.
    none_compared = bool(ranking.candidates or candidates) and all(each.cosine is None for each in candidates)
    if uncompared and (has_words or none_compared or uncompared > _MOST_UNCOMPARED * units):
        languages = ", ".join(map(name_language, sorted(ranking.uncompared)))
        reason = f"{uncompared:,} of {units:,} texts ({languages}) were compared with the query by words only."
        return Relevance(reason=reason, refused=not has_words)
    return _state(covers, is_across, refused=True)


def _state(covers: float, is_across: bool, *, refused: bool = False) -> Relevance:
    return Relevance(covers, ACROSS if is_across else None, refused, is_across)


def drop_unscored(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Drop candidates that match neither by words nor by meaning."""
    return [each for each in candidates if each.bm25 > 0 or each.cosine is not None]


def group_candidates(
    candidates: Sequence[Candidate], ranking: Ranking
) -> Iterable[tuple[Coverage, Sequence[Candidate]]]:
    """Group candidates by the coefficients that apply to them."""
    groups: dict[Coverage, list[Candidate]] = {}
    for each in candidates:
        if ranking.language is None and ranking.is_latin and not each.words and each.space in (OTHER, ALSO):
            continue  # in an unknown language, such as none, the second model finds anything near
        calibration = CALIBRATIONS.get(ranking.models.get(each.space or "", ranking.model or ""))
        if calibration is not None and each.cosine is not None:
            groups.setdefault(calibration.choose(each.language, ranking.language), []).append(each)
    return groups.items()


def _has_words(candidate: Candidate) -> bool:
    """Whether a unit that no model compares has most of the query's words."""
    return candidate.cosine is None and candidate.words >= _MOST_WORDS


def measure_nearness(candidate: Candidate) -> float:
    """Measure how near a unit is to the query, by its cosine and its words."""
    return (candidate.cosine or 0.0) + WORDS_IN_UNIT * candidate.words


def drop_unrelated(candidates: Iterable[Candidate], model: str | None) -> list[Candidate]:
    """Drop the candidates that are far from the query and have few of its words. Keeps all for an unknown model."""
    return [each for each in candidates if is_related(each, model)]


def is_related(candidate: Candidate, model: str | None) -> bool:
    """Whether a candidate is near the query, or has most of its words. True for an unknown model."""
    calibration = CALIBRATIONS.get(model or "")
    return calibration is None or candidate.cosine is None or measure_nearness(candidate) >= calibration.cut


def are_near(cosines: Floats, model: str | None) -> NDArray[np.bool_]:
    """Which units are near the query, by their cosines (NaN without a vector). All are for an unknown model."""
    calibration = CALIBRATIONS.get(model or "")
    return np.full(len(cosines), True) if calibration is None else cosines >= calibration.cut


def is_beyond(score: float, model: str | None) -> bool:
    """Whether a unit with at most this fused score is far from the query. It may have its words nevertheless."""
    calibration = CALIBRATIONS.get(model or "")
    return calibration is not None and score < calibration.cut * COSINE_WEIGHT * (1 - PAIR_WEIGHT)


def is_factual(query: str) -> bool:
    """Whether a query is a short English question for a person, a time, a place or a number."""
    return _FACTUAL.match(query) is not None and len(query.split()) <= _SHORT


def estimate_answers(query: str, candidates: Sequence[Candidate], ranking: Ranking) -> Mapping[str, float]:
    """Estimate the probability that a unit answers a query, by IRI; empty where that was not measured.

    A unit answers if it has the words of the question and is nearer to it than all others. That separates answers from
    others (AUC) by 0.99 among 240 paragraphs of an encyclopedia, by 0.98 with 18,000 other texts, and by 0.86 and 0.97
    in the chapters of this project and a handbook, with the answers taken out of half of the answers. Of long questions
    on financial rules and of claims it separates less, and other questions to the chapters 0.79, so these have none.
    """
    calibration = CALIBRATIONS.get(ranking.model or "")
    weights = None if calibration is None else calibration.answering
    if weights is None or ranking.pending or not is_factual(query):
        return {}
    best = sorted(map(measure_nearness, candidates), reverse=True)[:2]
    answers = {}
    for each in candidates:
        if each.cosine is None or find_primary(each.language or "en") != "en":
            continue
        near = measure_nearness(each)
        others = best[1:] if near == best[0] else best
        lead = near - max(others, default=_OTHERS)
        odds = weights.cosine * each.cosine + weights.words * each.words + weights.lead * lead + weights.constant
        answers[each.iri] = round(1 / (1 + math.exp(-odds)), 2)
    return answers
