"""Ranks the sections of a code for a question by the words of their heading paths and texts, and by meaning.

The heading path of a section is its heading and those above it. A zoning code names a topic, and mostly the district,
in its headings, so a word there counts as several in the text (BM25F, Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond", 2009). Names of uses count in any wording:
"single-family dwelling" meets ``One (1) single residence dwelling``. Meaning is that of the heading path and of the
text, each by its vector.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kg.errors import IndexUnavailableError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.words import STOP_WORDS, singular, stem
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree
from kg.zoning_summaries.scoring import score_by_vectors
from kg.zoning_summaries.use_names import find_wordings

OWN_HEADING: Final = 6.0
"""Weight of a word of the own heading, as so many words of the text."""
HEADINGS_ABOVE: Final = 3.0
_SATURATION: Final = 1.2
_LENGTH: Final = 0.6
"""The parameters k1 and b of BM25."""
_WORDS_WEIGHT: Final = 0.6
_MEANING_WEIGHT: Final = 0.4
_PREFERRED: Final = 0.15
_STEM: Final = 6
_STOP: Final = STOP_WORDS["en"]
_WORD: Final = re.compile(r"\w+(?:['’]s?)?", re.UNICODE)
_ALIKE: Final[Mapping[str, str]] = {
    "yard": "setback", "setback": "yard", "height": "high tall story", "story": "height", "area": "size",
    "size": "area", "coverage": "cover", "frontage": "width", "far": "floor area ratio", "parking": "space",
    "density": "unit",
}  # fmt: skip
"""Words that a question is also asked by, at less weight."""
_LESS: Final = 0.4

Floats = NDArray[np.float64]


class Word(NamedTuple):
    """A term of a text, at its offsets [start, end)."""

    term: str
    start: int
    end: int


def find_terms(text: str) -> Iterator[Word]:
    """Find the terms of a text: stems of its words, and the names of uses that its words are a wording of."""
    places = [match.span() for match in _WORD.finditer(text)]
    words = [singular(fold(text[start:end]).removesuffix(" s")) for start, end in places]
    for (start, end), word in zip(places, words, strict=True):
        if word and word not in _STOP:
            yield Word(stem(word, _STEM), start, end)
    for first, end, name in find_wordings(words):
        if name is not None:
            yield Word(f"={name}", places[first][0], places[end - 1][1])


def weigh_terms(question: str, weight: float = 1.0) -> dict[str, float]:
    """Weigh the terms of a question: names of uses most, then its words, then words like them."""
    found: dict[str, float] = {}
    for term, start, end in find_terms(question):
        found[term] = weight * (1.5 if term.startswith("=") else 1.0)
        for other in _ALIKE.get(singular(fold(question[start:end])), "").split():
            found.setdefault(stem(other, _STEM), weight * _LESS)
    return found


class WordIndex:
    """BM25 over texts whose terms have weights instead of counts."""

    def __init__(self, texts: Sequence[Mapping[str, float]]) -> None:
        lengths = np.array([sum(each.values()) for each in texts], dtype=np.float64)
        mean = float(lengths.mean()) if len(texts) else 1.0
        self.norms: Final = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / (mean or 1.0))
        self.postings: Final[dict[str, tuple[list[int], list[float]]]] = {}
        for place, each in enumerate(texts):
            for term, weight in each.items():
                places, weights = self.postings.setdefault(term, ([], []))
                places.append(place)
                weights.append(weight)

    def get_rarity(self, term: str) -> float:
        """Get the inverse document frequency of a term; 0 if no text has it."""
        count, total = len(self.postings.get(term, ((), ()))[0]), len(self.norms)
        return math.log(1 + (total - count + 0.5) / (count + 0.5)) if count else 0.0

    def score(self, terms: Mapping[str, float]) -> Floats:
        """Score all texts."""
        scores = np.zeros(len(self.norms))
        for term, weight in terms.items():
            if (found := self.postings.get(term)) is not None:
                places, counts = np.array(found[0]), np.array(found[1])
                scores[places] += (
                    weight * self.get_rarity(term) * counts * (_SATURATION + 1) / (counts + self.norms[places])
                )
        return scores


@dataclass(frozen=True, slots=True)
class SectionIndex:
    """The words of the sections of a code."""

    tree: CodeTree
    sections: Sequence[str]
    """Those with text, at or below them, in document order."""
    texts: Mapping[str, str]
    counts: Mapping[str, tuple[str | None, Mapping[str, float]]]
    """The hash and the counted terms of each text."""
    words: WordIndex


class Ranked(NamedTuple):
    """A section with its score, and the shares of words and meaning in it."""

    section: str
    score: float
    words: float
    meaning: float | None


def build_heading_path(tree: CodeTree, section: str) -> str:
    """Build the heading path of a section, its own heading last."""
    path = [*reversed(tree.above(section)), section]
    return " > ".join(tree.sections[each].name for each in path)


def get_index(kg: KnowledgeGraph, municipality: str) -> SectionIndex:
    """Get the words of the sections of a code, cached. Raises NotFoundError if it has no sections."""
    tree, key = code_tree.cached_tree(kg, municipality), ("words of sections", municipality)
    known: SectionIndex | None = kg.memory.get(key)
    if known is not None and known.tree is tree:
        return known
    sections = [section for section in tree.order if section in tree.heights]
    counts = {} if known is None else dict(known.counts)
    texts = {} if known is None else dict(known.texts)
    digests = {section: tree.sections[section].text_sha256 for section in sections}
    new = [section for section in sections if counts.get(section, ("",))[0] != digests[section]]
    texts |= code_tree.load_texts(kg.ask_sources, new)
    for section in new:
        counts[section] = digests[section], Counter(each.term for each in find_terms(texts.get(section, "")))
    weighed = [_weigh(tree, section, counts[section][1]) for section in sections]
    kept = {section: texts[section] for section in sections if section in texts}
    made = SectionIndex(tree, sections, kept, {each: counts[each] for each in sections}, WordIndex(weighed))
    return kg.memory.keep(key, made)


def has_words(kg: KnowledgeGraph, municipality: str, question: str) -> bool:
    """Whether a section of a code has a word of a question."""
    words = get_index(kg, municipality).words
    return any(words.get_rarity(term) for term in weigh_terms(question))


def _weigh(tree: CodeTree, section: str, counted: Mapping[str, float]) -> dict[str, float]:
    weighed: dict[str, float] = dict(counted)
    for each, weight in ((section, OWN_HEADING), *((above, HEADINGS_ABOVE) for above in tree.above(section))):
        for term, _, _ in find_terms(tree.sections[each].title):
            weighed[term] = weighed.get(term, 0.0) + weight
    return weighed


def rank_sections(
    kg: KnowledgeGraph,
    municipality: str,
    question: str,
    terms: Mapping[str, float],
    among: Mapping[str, float] | None = None,
    preferred: Set[str] = frozenset(),
) -> list[Ranked]:
    """Rank the sections of a code, best first: by `terms` in headings and text, and by the meaning of `question`.

    With `among`, only these sections are ranked, each score multiplied by its value. Those `preferred` come before
    others with as good a score.
    """
    index = get_index(kg, municipality)
    factors = np.array([1.0 if among is None else among.get(section, 0.0) for section in index.sections])
    words = factors * index.words.score(terms)
    top = float(words.max(initial=0.0))
    shares = words / top if top > 0 else words
    meanings = _score_meaning(kg, municipality, question, index)
    scores = shares if meanings is None else _WORDS_WEIGHT * shares + _MEANING_WEIGHT * factors * meanings
    scores = scores + _PREFERRED * np.array([section in preferred for section in index.sections])
    order = np.argsort(-scores, kind="stable")
    return [
        Ranked(
            index.sections[place],
            float(scores[place]),
            float(shares[place]),
            None if meanings is None else float(meanings[place]),
        )
        for place in order.tolist()
        if factors[place] > 0
    ]


def _score_meaning(kg: KnowledgeGraph, municipality: str, question: str, index: SectionIndex) -> Floats | None:
    """Score the meaning of the sections, from 0 to 1; None without a model."""
    if not index.sections:
        return None
    paths = [build_heading_path(index.tree, section) for section in index.sections]
    try:
        by_model, cosines = score_by_vectors(kg, municipality, question, paths)
        if not by_model:
            return None
        found = kg.search.rank(question, units=index.sections, limit=len(index.sections), mode="dense").candidates
    except IndexUnavailableError:
        return None
    of_text = {each.iri: each.cosine for each in found if each.cosine is not None}
    both = [(own + of_text.get(section, own)) / 2 for section, own in zip(index.sections, cosines, strict=True)]
    return np.array(both, dtype=np.float64)
