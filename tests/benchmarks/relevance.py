"""Is the probability that the texts treat the subject of a query (`covers`) right, and does a refusal lose answers?

Three unlike collections are asked their own questions, one to three keywords of an answer, the questions of others, and
nonsense; each also in random parts of the collection, since the number of texts counts. Of XQuAD, whose articles are
about everything, a question is also put to all other articles than its own. The coefficients are fitted to every second
question; the others are the check, and so are the chapters of this project and the zoning code of a village, which were
never used for fitting. XQuAD is asked in five languages: in the language of the texts, in English about texts in
another one, and back; and so among 12,000 other texts, where a short question has one answer.

The reliability tables count positive and negative queries alike, whatever their numbers. Arguments: names of
collections, to ask these alone (all together print the coefficients that fit, too); a number is the share of ObliQA's
questions to take (5: every fifth, the default).
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from kg.languages import find_primary
from kg.search.index_client import EdgeIndex
from kg.search.protocol import Candidate, GraphUnits, IndexedUnit, Ranking
from kg.search.relevance import (
    Coverage,
    drop_unrelated,
    estimate_answers,
    estimate_relevance,
    group_candidates,
    measure_nearness,
)
from kg.vocabulary import sha256
from kg.words import STOP_WORDS
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.corpora import (
    DATA,
    LANGUAGES,
    Corpus,
    Question,
    find_corpora,
    find_languages,
    load_xquad_questions,
)
from tests.benchmarks.questions import FOLDERS, QUESTIONS, get_path, load_collection

POOL: Final = 100
PAGE: Final = 10
FIRST: Final = 5
"""Passages of an answer whose `answers` is measured."""
MOST: Final = 300
"""Queries of each kind, except a collection's own questions."""
NONSENSE: Final = 200
SIZES: Final = (10, 30, 100, 300, 1_000, 3_000)
"""Texts of the random parts of a collection."""
SEED: Final = 7
LARGE: Final = "large"
HELD_OUT: Final = ("chapters", "village")
"""Collections of `tests.benchmarks.questions` that are not fitted to."""
_KEYWORDS: Final = 3
_BINS: Final = 10
_POSITIVE: Final = ("own", "keywords")
FLOOR: Final = 0.12


@dataclass(frozen=True, slots=True)
class Texts:
    """A collection: its units by graph, and the questions that they answer."""

    name: str
    graphs: Mapping[str, GraphUnits]
    questions: Sequence[Question]
    unanswered: Sequence[Question] = ()
    """Questions of other subjects that were written for it."""

    @property
    def units(self) -> Sequence[IndexedUnit]:
        """All units."""
        return [unit for graph in self.graphs.values() for unit in graph.units]

    @contextmanager
    def open_index(self) -> Iterator[EdgeIndex]:
        """Open the index of the units, with every vector, and close it."""
        with Corpus(self.name, lambda: self.graphs, lambda: self.questions).open_index() as index:
            yield index

    @property
    def language(self) -> str:
        """The language of its units."""
        return self.units[0].language or "en"


@dataclass(frozen=True, slots=True)
class Observation:
    """A query of a kind to a collection or a part of it, and what the index found."""

    texts: str
    kind: str
    number: int
    """That of the question, by which it is fitted or checked."""
    text: str
    ranking: Ranking
    relevant: frozenset[str] = frozenset()
    is_part: bool = False

    @property
    def is_treated(self) -> bool:
        """Whether the texts treat the subject."""
        return self.kind in _POSITIVE

    @property
    def is_fitted(self) -> bool:
        """Whether it may be used for fitting: pseudorandom halves of the questions of each collection."""
        return self.texts.partition(" ")[0] not in HELD_OUT and bool((self.number * 2_654_435_761 >> 9) & 1)


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Measure the collections that are present."""
    stride = next((int(each) for each in arguments if each.isdecimal()), 5)
    collections = list(_load_all(stride))
    if len(collections) < len(LANGUAGES) + 2 + len(HELD_OUT):
        print("relevance is not measured: the collections are not there")
        return
    asked = [each for each in collections if each.name in arguments]
    if not asked and LARGE not in arguments:
        asked = collections
    observed = [each for texts in asked for each in _observe(texts, collections)]
    if len(asked) == len(collections) or LARGE in arguments:
        observed += _observe_large()
    if len(asked) == len(collections):
        for name, group in _group(observed).items():
            print(f"{name}: {fit([each for each in group if each.is_fitted])}")
    yield from report(observed)


def report(observed: Sequence[Observation]) -> Iterator[Comparison]:
    """Check the estimates for queries that were not used for fitting."""
    checked = [each for each in observed if not each.is_fitted]
    for name in dict.fromkeys(each.texts for each in checked):
        yield from _check(name, [each for each in checked if each.texts == name])
    for name in ("xquad_en", *HELD_OUT):
        yield from _measure_answers(name, [each for each in observed if each.texts == name and not each.is_part])
    for name in ("obliqa", "climate_fever"):
        yield from _measure_cut(name, [each for each in observed if each.texts == name])


def _load_all(stride: int) -> Iterator[Texts]:
    for corpus in find_corpora():
        questions = corpus.load_questions()
        yield Texts(corpus.name, corpus.load_passages(), questions[:: stride if corpus.name == "obliqa" else 1])
    folder = DATA / "retrieval" / "xquad"
    for language in LANGUAGES if folder.is_dir() else ():
        yield _load_xquad(folder / f"{language}.jsonl", language)
    for name in HELD_OUT:
        if FOLDERS[name].is_dir():
            yield _load_folder(name)


def _load_folder(name: str) -> Texts:
    collection = load_collection(name, FOLDERS[name], QUESTIONS)
    questions = [
        Question(each.text, frozenset(one.iri for one in collection.units if each.is_answered(get_path(one), one.text)))
        for each in collection.questions
    ]
    unanswered = [Question(each.text, frozenset()) for each in collection.unanswered]
    return Texts(name, _to_graph(name, collection.units), questions, unanswered)


def _load_xquad(path: Path, language: str) -> Texts:
    graph, units, questions = f"urn:xquad:{language}", [], []
    for each in map(json.loads, path.read_text("utf-8").splitlines()):
        iri = f"{graph}:{each['id']}"
        units.append(IndexedUnit(iri, graph, f"{graph}:{each['id'].partition('-')[0]}", each["text"], "", language))
        questions += [Question(question["question"], frozenset((iri,))) for question in each["questions"]]
    name = f"xquad_{language}"
    return Texts(name, _to_graph(name, units), questions)


def _to_graph(name: str, units: Sequence[IndexedUnit]) -> Mapping[str, GraphUnits]:
    """Put units in one graph, with the hash of their texts, so that an index of earlier ones is replaced."""
    return {units[0].graph: GraphUnits(sha256("".join(unit.text for unit in units).encode()), units)}


def _observe(texts: Texts, collections: Sequence[Texts]) -> Iterator[Observation]:
    """Ask a collection the queries of all kinds."""
    chance = random.Random(SEED)
    with texts.open_index() as index:
        for asked, question, number in track(list(_list_queries(texts, collections)), texts.name, transient=True):
            ranking = index.rank(question.text, limit=POOL)
            kind, _, language = asked.partition(" ")
            name = f"{texts.name} asked in {language}" if language else texts.name
            yield Observation(name, kind, number, question.text, ranking, question.relevant)
            if "xquad" in texts.name and kind == "own":
                [relevant] = question.relevant
                others = [each.iri for each in texts.units if _get_article(each.iri) != _get_article(relevant)]
                ranking = index.rank(question.text, units=others, limit=POOL)
                yield Observation(name, "article out", number, question.text, ranking)
            elif kind != "nonsense" and number % 2 and texts.name not in HELD_OUT:
                some = {
                    each.iri for each in chance.sample(list(texts.units), min(chance.choice(SIZES), len(texts.units)))
                }
                part = index.rank(question.text, units=sorted(some | question.relevant), limit=POOL)
                yield Observation(name, kind, number, question.text, part, question.relevant, is_part=True)


def _observe_large() -> Iterator[Observation]:
    """Ask for the only answer among the texts of the corpus of several languages, and without it."""
    corpus = find_languages()
    if corpus is None:
        return
    with corpus.open_index() as index:
        for own, other in (
            ("en", "en"),
            *((own, "en") for own in LANGUAGES[1:]),
            *(("en", to) for to in LANGUAGES[1:]),
        ):
            name = f"{LARGE} xquad_{other}" + (f" asked in {own}" if own != other else "")
            for number, question in track([*enumerate(load_xquad_questions(own))], name, transient=True):
                [answer] = question.relevant
                relevant = frozenset((f"urn:{other}:{answer}",))
                ranking = index.rank(question.text, limit=POOL, codes=[{"type": [other, "obliqa"]}])
                yield Observation(name, "own", number, question.text, ranking, relevant)
                if other == "en":
                    ranking = index.rank(question.text, limit=POOL, codes=[{"type": ["obliqa"]}])
                    yield Observation(name, "other", number, question.text, ranking)


def _list_queries(texts: Texts, collections: Sequence[Texts]) -> Iterator[tuple[str, Question, int]]:
    """List the queries to a collection with their kinds and numbers."""
    for number, question in enumerate(texts.questions):
        yield "own", question, number
    if texts.language == "en" and texts.name not in HELD_OUT:
        for number, question in list(_make_keywords(texts))[:MOST]:
            yield "keywords", question, number
    for other in collections:
        if other is texts or other.name in HELD_OUT or {"xquad_en", "climate_fever"} == {texts.name, other.name}:
            continue  # XQuAD has articles on the climate
        if "xquad" in texts.name and "xquad" in other.name:
            if "en" in (texts.language, other.language):
                for number, question in enumerate(other.questions):
                    relevant = frozenset(
                        each.replace(f":{other.language}:", f":{texts.language}:") for each in question.relevant
                    )
                    yield f"own {other.language}", Question(question.text, relevant), number
        elif texts.language == "en" or other.language == "en":
            for number, question in list(enumerate(other.questions))[:: max(1, len(other.questions) // MOST)]:
                foreign = f" {other.language}" if other.language != texts.language else ""
                yield f"other{foreign}", Question(question.text, frozenset()), number
    for number, question in enumerate(texts.unanswered):
        yield "unanswered", question, number
    for number, question in enumerate(_make_nonsense()):
        yield "nonsense", question, number


def _get_article(iri: str) -> str:
    """Get the number of the article of a paragraph of XQuAD."""
    return iri.rpartition(":")[2].partition("-")[0]


def _group(observed: Iterable[Observation]) -> Mapping[str, list[Observation]]:
    """Group observations by the coefficients that apply to them."""
    groups: dict[str, list[Observation]] = defaultdict(list)
    for each in observed:
        foreign = "asked in" in each.texts
        groups["another language" if foreign else "English" if _is_english(each.texts) else "same language"].append(
            each
        )
    return groups


def _is_english(name: str) -> bool:
    return "xquad" not in name or "xquad_en" in name


def fit(observed: Sequence[Observation]) -> Coverage:
    """Fit the coefficients by logistic regression, each collection, kind and part with the same weight."""
    measured = [(each, row) for each in observed if (row := _measure(each)) is not None]
    observed = [each for each, _ in measured]
    counts = Counter((each.texts, each.kind, each.is_part) for each in observed)
    weights = np.array([1 / counts[each.texts, each.kind, each.is_part] for each in observed])
    weights *= len(observed) / weights.sum()
    rows = np.array([row for _, row in measured])
    treated = np.array([float(each.is_treated) for each in observed])
    found = np.zeros(rows.shape[1])
    for _ in range(50):
        predicted = 1 / (1 + np.exp(-rows @ found))
        curvature = (rows * (weights * predicted * (1 - predicted))[:, None]).T @ rows + 1e-6 * np.eye(len(found))
        found -= np.linalg.solve(curvature, rows.T @ (weights * (predicted - treated)))
    near, words, units, constant = (round(float(each), 2) for each in found)
    return Coverage(near, words, units, constant, FLOOR)


def _measure(observed: Observation) -> tuple[float, float, float, float] | None:
    """Measure what coefficients are of; None if no unit is compared, as with a query in no language."""
    is_foreign = "asked in" in observed.texts
    for _, group in group_candidates(observed.ranking.candidates, observed.ranking):
        if is_foreign == (find_primary(group[0].language) == observed.ranking.language):
            continue  # other texts
        near, words = max(map(measure_nearness, group)), max(each.words for each in group)
        return near, words, math.log10(observed.ranking.units or 1), 1.0
    return None


def _check(name: str, observed: Sequence[Observation]) -> Iterator[Comparison]:
    """Print the reliability of `covers` for a collection, and yield what is refused."""
    found = [(each, estimate_relevance(each.ranking.candidates, each.ranking)) for each in observed]
    if any(relevance.covers is None for _, relevance in found):
        print(f"{name}: not judged: {next(relevance.reason for _, relevance in found if relevance.covers is None)}")
        return
    covers = np.array([relevance.covers for _, relevance in found], float)
    treated = np.array([each.is_treated for each in observed])
    _print_reliability(name, covers, treated)
    for kind in dict.fromkeys(each.kind for each in observed):
        refused = [relevance.refused for each, relevance in found if each.kind == kind and not each.is_part]
        if not refused:
            continue
        share = sum(refused) / len(refused)
        goal, met = ("<= 0.01", share <= 0.01) if kind in _POSITIVE else ("", None)
        if kind in ("other", "nonsense") and name in ("obliqa", "climate_fever"):
            goal, met = ">= 0.9", share >= 0.9
        yield Comparison(f"{name}: refused, {kind} ({len(refused)})", share, None, "", goal, met)


def _print_reliability(
    name: str, covers: NDArray[np.float64], treated: NDArray[np.bool_], *, balanced: bool = True
) -> None:
    weights = np.full(len(treated), 1 / len(treated))
    if balanced:
        weights = np.where(treated, 0.5 / max(1, treated.sum()), 0.5 / max(1, (~treated).sum()))
    print(f"{name}: {len(covers)} estimates, Brier score {(weights * (covers - treated) ** 2).sum():.3f}")
    print("  predicted  observed      n")
    bins = np.minimum((covers * _BINS).astype(int), _BINS - 1)
    for number in range(_BINS):
        within = bins == number
        if within.any():
            predicted, share = (np.average(values[within], weights=weights[within]) for values in (covers, treated))
            print(f"  {predicted:9.2f} {share:9.2f} {within.sum():6}")


def _measure_answers(name: str, observed: Sequence[Observation]) -> Iterator[Comparison]:
    """Measure whether `answers` tells the passages that answer from others, with and without the answers."""
    found = []
    for each in (one for one in observed if one.kind == "own"):
        whole = each.ranking.candidates
        for candidates in (whole, [one for one in whole if one.iri not in each.relevant]):
            judged = estimate_answers(each.text, candidates, each.ranking)
            found += [(judged[one.iri], one.iri in each.relevant) for one in candidates[:FIRST] if one.iri in judged]
    if not found:
        return
    answers = np.array([probability for probability, _ in found])
    right = np.array([is_right for _, is_right in found], np.bool_)
    _print_reliability(f"{name}, answers of the first {FIRST}", answers, right, balanced=False)
    wrong = np.sort(answers[~right])
    ranks = np.searchsorted(wrong, answers[right]) + np.searchsorted(wrong, answers[right], side="right")
    auc = float(ranks.mean() / 2 / len(wrong))
    yield Comparison(f"{name}: AUC of answers ({len(found)} passages)", auc, None, "", ">= 0.8", auc >= 0.8)


def _measure_cut(name: str, observed: Sequence[Observation]) -> Iterator[Comparison]:
    """Measure what is lost by not listing single hits that are far from the query."""
    own = [each for each in observed if each.kind == "own" and not each.is_part]
    if not own:
        return
    kept = [drop_unrelated(each.ranking.candidates, each.ranking.model) for each in own]
    whole = sum(_ndcg(each.relevant, each.ranking.candidates) for each in own) / len(own)
    lost = whole - sum(_ndcg(each.relevant, rest) for each, rest in zip(own, kept, strict=True)) / len(own)
    share = sum(map(len, kept)) / sum(len(each.ranking.candidates) for each in own)
    yield Comparison(f"{name}: nDCG@10 lost by the cut of single hits", lost, None, "", "<= 0.003", lost <= 0.003)
    yield Comparison(f"{name}: share of the first {POOL} that the cut keeps", share, None, "")


def _make_nonsense() -> Iterator[Question]:
    """Make strings of consonants, and words of syllables that no language has."""
    chance = random.Random(SEED)
    for number in range(NONSENSE):
        words = []
        for _ in range(chance.randint(2, 6)):
            if number % 2:
                words.append("".join(chance.choice("qwrtzxcvbnmasdfghjkl") for _ in range(chance.randint(3, 8))))
            else:
                syllables = chance.randint(2, 4)
                words.append("".join(chance.choice("bdfgkmprtvz") + chance.choice("aeiou") for _ in range(syllables)))
        yield Question(" ".join(words), frozenset())


def _make_keywords(texts: Texts) -> Iterator[tuple[int, Question]]:
    """Make queries of the one to three rarest words that a question shares with its answers."""
    chance = random.Random(SEED)
    plain = {unit.iri: unit.text.casefold() for unit in texts.units}
    spread = Counter(stem for text in plain.values() for stem in {word[:6] for word in re.findall(r"\w{3,}", text)})
    for number, question in enumerate(texts.questions):
        answers = " ".join(plain.get(iri, "") for iri in question.relevant)
        shared = {word[:6] for word in re.findall(r"\w{3,}", answers)}
        words = list(dict.fromkeys(re.findall(r"\w{3,}", question.text.casefold())))
        known = [word for word in words if word[:6] in shared and word not in STOP_WORDS["en"]]
        rarest = sorted(known, key=lambda word: (spread[word[:6]], word))[: chance.randint(1, _KEYWORDS)]
        if rarest:
            yield number, replace(question, text=" ".join(word for word in words if word in rarest))


def _ndcg(relevant: frozenset[str], candidates: Sequence[Candidate]) -> float:
    gain = sum(1 / math.log2(rank + 2) for rank, each in enumerate(candidates[:PAGE]) if each.iri in relevant)
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(PAGE, len(relevant))))
