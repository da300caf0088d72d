"""Relevance of an answer: whether the units found are about the query at all. Pure functions.

A ranking always has a first unit, also for a query that nothing in the graph answers. The best cosine among the units
found separates the two, on unlike corpora with one floor (tests/benchmarks/relevance.py prints the curves). Short
queries have low cosines, so a unit with most of the words of a query counts too. The thresholds belong to one embedding
model. Without it, while vectors are pending, and for languages other than English, the relevance is `unknown`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from kg.search.points import Floats
from kg.search.protocol import Candidate
from kg.search.ranking import COSINE_WEIGHT, PAIR_WEIGHT
from kg.words import STOP_WORDS

Relevance = Literal["strong", "weak", "none", "unknown"]
"""`strong`: very probably an answer is among the first ten. `weak`: the passages found are about something similar; an
answer may be missing. `none`: nothing found is relevant. `unknown`: relevance cannot be judged."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The thresholds of one embedding model. Words are shares of a query's words in one unit; rare ones weigh more."""

    floor: float
    """Best cosine of an answer below which nothing is relevant, among at least MANY units."""
    slope: float
    """Decrease of the floor for a tenth of these units: the best cosine of unrelated units grows with their number."""
    words: float
    """Words of the query in a unit that is relevant with any cosine."""
    strong: float
    """Cosine of a unit that makes an answer strong, with `strong_words` and `strong_pairs` in it."""
    strong_words: float
    strong_pairs: float
    """Share of the query's pairs of adjacent words in that unit. A query of one word has none, and no strong answer."""
    parts_strong: float
    """`strong`, and the words, of a unit whose parts have vectors of their own (`kg.search.parts`)."""
    parts_words: float
    cut: float
    """Cosine below which a single unit is not listed, unless it has `words`."""


CALIBRATIONS: Final = {
    "sentence-transformers/all-MiniLM-L6-v2/int8": Calibration(
        floor=0.51,
        slope=0.085,
        words=0.55,
        strong=0.75,
        strong_words=0.85,
        strong_pairs=0.4,
        parts_strong=0.55,
        parts_words=0.5,
        cut=0.35,
    )
}
"""By the name of the model, with its precision, as `kg.search.embedding` states it. Measured for English texts.

tests/benchmarks/relevance.py, on ObliQA and CLIMATE-FEVER. Refused: 0.983 and 0.958 of the questions of the other
corpus, 0.995 and 1.0 of nonsense. Lost: 0 and 0.009 of the questions, 0.005 and 0.018 of short keyword queries. The cut
costs 0 and 0.0014 nDCG@10.

Strong: 0.036 and 0.017 of the questions, all of them with an answer among the first ten; with the answers taken out,
1 of 558 and 2 of 531, and each of these 3 has an answer that the corpus does not mark (the same rule for another
approach, the claim in other words), read by hand. On 279 further questions of ObliQA: 0.047, and 3 without their
answers, of which 1 has another. The others are a near miss (a report instead of a review) and a reference to the rules
that were asked for: no measure here separates them from answers. With 0.7 of the words and any pairs, 0.095 and 0.034
of the questions would be strong, but 12, 4 and 14 without their answers. Margins over the tenth unit, and higher
cosines, separate less.

In random samples of 157, 262, 524, 1,572 and 5,240 sentences, 0.95 of the questions of the other corpus are below 0.37,
0.40, 0.44, 0.48 and 0.50; the floors are 0.38, 0.40, 0.43, 0.47 and 0.51, and lose at most 0.03 of the questions.

Texts with a vector for each of their parts: the best cosine grows with the number of vectors, so these are counted in
place of units. tests/benchmarks/questions.py, 76 questions to the chapters of this project (90 chunks, 973 vectors) and
20 to a handbook (10 chunks, 14 vectors). Refused: 0.99 and 1.0 of 140 questions of ObliQA, 0.98 and 0.99 of 140 claims
of CLIMATE-FEVER, 20 of 22 and 11 of 12 unanswerable ones. Lost: 5 and 3. With the number of chunks in place of vectors,
0.77 and 0.82 of the questions of other corpora to the chapters would be refused, and one more of their own kept.
Strong: 9 and 2, all with the answer among the first three; with the answers taken out 4, of which 1 has another; none
of those of other corpora.

That a unit has any rare word of the query is not enough: then only 0.46 and 0.35 of the questions of the other corpus
would be refused. A phrase in quotes and an identifier are enough.
"""

ENGLISH_MODELS: Final = (
    "BAAI/bge-base-en", "BAAI/bge-large-en", "BAAI/bge-small-en", "Qdrant/clip-ViT-B-32-text", "Qdrant/constella-nano",
    "Qdrant/constella-zero", "Qdrant/stella-en-400M-v5", "ibm-granite/granite-embedding-small-english-r2",
    "jinaai/jina-clip-v1", "jinaai/jina-embeddings-v2-base-en", "jinaai/jina-embeddings-v2-small-en",
    "minishlab/potion-base-8M", "minishlab/potion-retrieval-32M", "mixedbread-ai/mxbai-embed-large-v1",
    "nomic-ai/nomic-embed-text-v1", "sentence-transformers/all-MiniLM-L6-v2", "snowflake/snowflake-arctic-embed-",
    "thenlper/gte-",
)  # fmt: skip
"""Beginnings of the names of the models of fastembed that it describes as English."""

MANY: Final = 5_000
"""Units from which on the floor is not lower for fewer of them."""
FEW: Final = 30
"""Units below which it does not decrease further: fewer were not measured."""

_NAME: Final = re.compile(r"(?<=[^\s.:;!?] )[\"'(]?([^\W\d_a-z]\w+)")
_FIRST: Final = 50
"""Units whose languages are considered: if all of them are in other languages than English, nothing is judged."""
_ENGLISH: Final = STOP_WORDS["en"]
_ALSO_ENGLISH: Final = frozenset(("car", "die", "era", "eu", "hay", "plus", "sin", "son", "tan", "un", "war"))
_FOREIGN: Final = (
    frozenset().union(*(words for language, words in STOP_WORDS.items() if language != "en")) - _ENGLISH - _ALSO_ENGLISH
)


def assess_relevance(
    query: str, candidates: Sequence[Candidate], model: str | None, pending: int, units: int | None = None
) -> Relevance:
    """Assess an answer by the candidates considered for it, best first.

    `model` is that of the vectors, None without one, and `pending` the number of units without a vector. `units` is the
    number of units searched; None counts as many.
    """
    if not candidates:
        return "none" if model is not None and not pending else "unknown"
    calibration = CALIBRATIONS.get(model or "")
    cosines = [candidate.cosine for candidate in candidates if candidate.cosine is not None]
    if calibration is None or pending or len(cosines) < len(candidates) or not is_english(query):
        return "unknown"
    if not any(is_measured(candidate.language) for candidate in candidates[:_FIRST]):
        return "unknown"
    if any(_is_strong(candidate, calibration) for candidate in candidates):
        return "strong"
    is_near = max(cosines) >= find_floor(calibration, _count_vectors(candidates, units))
    return "weak" if is_near or has_words(candidates, model) else "none"


def has_words(candidates: Iterable[Candidate], model: str | None) -> bool:
    """Whether a candidate has so many words of the query that it is relevant with any cosine."""
    calibration = CALIBRATIONS.get(model or "")
    return calibration is not None and any(candidate.words >= calibration.words for candidate in candidates)


def find_floor(calibration: Calibration, units: int | None) -> float:
    """Find the floor of the best cosine for an answer from a number of units."""
    searched = MANY if units is None else min(max(units, FEW), MANY)
    return calibration.floor - calibration.slope * math.log10(MANY / searched)


def _count_vectors(candidates: Sequence[Candidate], units: int | None) -> int | None:
    """Estimate the number of vectors of a number of units by the first ones."""
    parts = [1 if candidate.parts is None else candidate.parts for candidate in candidates[:_FIRST]]
    return None if units is None else round(units * sum(parts) / len(parts))


def _is_strong(candidate: Candidate, calibration: Calibration) -> bool:
    if candidate.parts is not None:
        near = candidate.pairs is not None and (candidate.cosine or 0.0) >= calibration.parts_strong
        return near and candidate.words >= calibration.parts_words
    near = candidate.cosine is not None and candidate.cosine >= calibration.strong
    worded = candidate.words >= calibration.strong_words and (candidate.pairs or 0.0) >= calibration.strong_pairs
    return near and worded


def find_names(query: str) -> list[str]:
    """Find the names in a query: words with a capital within a sentence. None if most words have one, as in titles."""
    names = list(dict.fromkeys(_NAME.findall(query)))
    return names if 2 * len(names) < len(query.split()) else []


def drop_unrelated(candidates: Iterable[Candidate], model: str | None) -> list[Candidate]:
    """Drop the candidates that are far from the query and have few of its words. Keeps all for an unknown model."""
    return [each for each in candidates if is_related(each, model)]


def is_related(candidate: Candidate, model: str | None) -> bool:
    """Whether a candidate is near the query or has most of its words. True for an unknown model."""
    calibration = CALIBRATIONS.get(model or "")
    if calibration is None or candidate.cosine is None or candidate.cosine >= calibration.cut:
        return True
    return candidate.words >= calibration.words


def are_near(cosines: Floats, model: str | None) -> NDArray[np.bool_]:
    """Which units are near the query, by their cosines (NaN without a vector). All are for an unknown model."""
    calibration = CALIBRATIONS.get(model or "")
    return np.full(len(cosines), True) if calibration is None else cosines >= calibration.cut


def is_beyond(score: float, model: str | None) -> bool:
    """Whether a unit with at most this fused score is far from the query. It may have its words nevertheless."""
    calibration = CALIBRATIONS.get(model or "")
    return calibration is not None and score < calibration.cut * COSINE_WEIGHT * (1 - PAIR_WEIGHT)


def is_measured(language: str | None) -> bool:
    """Whether the thresholds were measured for texts of a language (BCP 47). A text without one counts as English."""
    return language is None or language.partition("-")[0].casefold() == "en"


def is_english_only(model: str) -> bool:
    """Whether an embedding model is known to be trained on English texts only."""
    return model.startswith(ENGLISH_MODELS)


def is_english(query: str) -> bool:
    """Whether nothing in a query shows that it is in another language than English.

    Accents and stop words of other languages show it, unless there are as many English stop words.
    """
    words = re.findall(r"[^\W\d_]+", query.casefold())
    foreign = sum(word in _FOREIGN or not word.isascii() for word in words)
    return foreign <= sum(word in _ENGLISH for word in words)
