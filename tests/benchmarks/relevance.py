"""Does search refuse what nothing answers, and keep what is answered?

Four kinds of queries on each of the two corpora, with one setting: its own questions, with their answers and with the
answers taken out; the questions of the other corpus; nonsense; one to three keywords of an answer. The shares that each
floor of the best cosine refuses are printed, then those of the thresholds of `kg.search.relevance`.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.progress import track

from kg.search.index_client import EdgeIndex
from kg.search.protocol import Candidate
from kg.search.relevance import CALIBRATIONS, assess_relevance, drop_unrelated
from kg.words import STOP_WORDS
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.corpora import Corpus, Question, find_corpora

POOL = 100
PAGE = 10
MOST = 400
"""Queries of each kind, except a corpus's own questions."""
NONSENSE = 200
FLOORS = [step / 100 for step in range(30, 62, 3)]
SEED = 7


@dataclass(frozen=True, slots=True)
class Answered:
    """A query, the passages that answer it, and what the index proposes, best first."""

    text: str
    relevant: frozenset[str]
    candidates: Sequence[Candidate]

    @property
    def best(self) -> float:
        """The best cosine."""
        return max((each.cosine for each in self.candidates if each.cosine is not None), default=-1.0)


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Measure the corpora; the argument is the share of ObliQA's questions to take (5: every fifth, the default)."""
    stride = int(arguments[0]) if arguments else 5
    corpora = find_corpora()
    if len(corpora) < 2:
        print("relevance is not measured: the two corpora are not there")
        return
    questions = {corpus.name: corpus.load_questions() for corpus in corpora}
    questions["obliqa"] = questions["obliqa"][::stride]
    for corpus, other in zip(corpora, reversed(corpora), strict=True):
        own, elsewhere = questions[corpus.name], questions[other.name][:MOST]
        with corpus.open_index() as index:
            model = index.status().model
            kinds = {
                "its questions": _ask(index, own),
                "of the other corpus": _ask(index, elsewhere),
                "nonsense": _ask(index, list(_make_nonsense())),
                "keywords": _ask(index, list(_make_keywords(corpus, own))[:MOST]),
            }
        kinds["answers taken out"] = [
            Answered(each.text, each.relevant, [c for c in each.candidates if c.iri not in each.relevant])
            for each in kinds["its questions"]
        ]
        yield from _judge(corpus.name, model, kinds)


def _judge(name: str, model: str, kinds: dict[str, list[Answered]]) -> Iterable[Comparison]:
    print(f"{name}: refused by a floor of the best cosine alone")
    print(f"  floor  {'  '.join(kinds)}")
    for floor in FLOORS:
        shares = (sum(each.best < floor for each in asked) / len(asked) for asked in kinds.values())
        print(f"  {floor:.2f}   {'  '.join(f'{share:.3f}' for share in shares)}")
    if model not in CALIBRATIONS:
        print(f"{model} is not calibrated")
        return
    judged = {kind: [_assess(each, model) for each in asked] for kind, asked in kinds.items()}
    refused = {kind: verdicts.count("none") / len(verdicts) for kind, verdicts in judged.items()}
    strong = {kind: verdicts.count("strong") / len(verdicts) for kind, verdicts in judged.items()}
    goals = {
        "of the other corpus": (">= 0.95", refused["of the other corpus"] >= 0.95),
        "nonsense": (">= 0.95", refused["nonsense"] >= 0.95),
        "its questions": ("<= 0.03", refused["its questions"] <= 0.03),
        "keywords": ("<= 0.05", refused["keywords"] <= 0.05),
        "answers taken out": ("", None),
    }
    for kind, (goal, met) in goals.items():
        yield Comparison(f"{name}: refused, {kind}", refused[kind], None, "", goal, met)
    for kind, share in strong.items():
        yield Comparison(f"{name}: strong, {kind}", share, None, "")
    own, out = kinds["its questions"], judged["answers taken out"].count("strong")
    said = [each for each, verdict in zip(own, judged["its questions"], strict=True) if verdict == "strong"]
    right = sum(any(c.iri in each.relevant for c in each.candidates[:PAGE]) for each in said)
    yield Comparison(f"{name}: precision of strong", right / max(1, len(said)), None, "")
    mixed = right / max(1, len(said) + out)
    yield Comparison(f"{name}: precision of strong, every question also without its answers", mixed, None, "")
    whole = sum(_ndcg(each.relevant, each.candidates) for each in own) / len(own)
    cut = sum(_ndcg(each.relevant, drop_unrelated(each.candidates, model)) for each in own) / len(own)
    kept = sum(len(drop_unrelated(each.candidates, model)) for each in own) / sum(len(each.candidates) for each in own)
    yield Comparison(
        f"{name}: nDCG@10 lost by the cut of single hits", whole - cut, None, "", "<= 0.003", whole - cut <= 0.003
    )
    yield Comparison(f"{name}: share of the first {POOL} that the cut keeps", kept, None, "")


def _assess(asked: Answered, model: str) -> str:
    return assess_relevance(asked.text, asked.candidates, model, 0)


def _ask(index: EdgeIndex, questions: Sequence[Question]) -> list[Answered]:
    return [
        Answered(question.text, question.relevant, index.rank(question.text, limit=POOL).candidates)
        for question in track(questions, "asking", transient=True)
    ]


def _make_nonsense() -> Iterable[Question]:
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


def _make_keywords(corpus: Corpus, questions: Sequence[Question]) -> Iterable[Question]:
    """Make queries of the one to three rarest words that a question shares with its answers."""
    chance = random.Random(SEED)
    texts = {unit.iri: unit.text.casefold() for graph in corpus.load_passages().values() for unit in graph.units}
    spread = Counter(stem for text in texts.values() for stem in {word[:6] for word in re.findall(r"\w{3,}", text)})
    for question in questions:
        answers = " ".join(texts.get(iri, "") for iri in question.relevant)
        shared = {word[:6] for word in re.findall(r"\w{3,}", answers)}
        words = list(dict.fromkeys(re.findall(r"\w{3,}", question.text.casefold())))
        known = [word for word in words if word[:6] in shared and word not in STOP_WORDS["en"]]
        rarest = sorted(known, key=lambda word: (spread[word[:6]], word))[: chance.randint(1, 3)]
        if rarest:
            yield Question(" ".join(word for word in words if word in rarest), question.relevant)


def _ndcg(relevant: frozenset[str], candidates: Sequence[Candidate]) -> float:
    gain = sum(1 / math.log2(rank + 2) for rank, each in enumerate(candidates[:PAGE]) if each.iri in relevant)
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(PAGE, len(relevant))))
