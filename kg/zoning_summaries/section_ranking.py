"""Ranks the sections of a code for a question by the words of their heading paths and texts, and by meaning.

The heading path of a section is its heading and those above it. A zoning code names a topic, and mostly the district,
in its headings, so a word there counts as several in the text (BM25F, Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond", 2009). Names of uses count in any wording:
"single-family dwelling" meets ``One (1) single residence dwelling``. Meaning is that of the vector of the search index,
which is made of the heading path and the text.
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
        mean = float(lengths.sum()) / (len(texts) or 1)
        self.texts: Final = texts
        self.norms: Final = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / (mean or 1.0))
        self.having: Final = Counter(term for each in texts for term in each)

    def get_rarity(self, term: str) -> float:
        """Get the inverse document frequency of a term; 0 if no text has it."""
        count = self.having[term]
        return math.log(1 + (len(self.texts) - count + 0.5) / (count + 0.5)) if count else 0.0

    def score(self, terms: Mapping[str, float]) -> Floats:
        """Score all texts."""
        scores = np.zeros(len(self.texts))
        for term, weight in terms.items():
            if term in self.having:
                counts = np.array([each.get(term, 0.0) for each in self.texts])
                scores += weight * self.get_rarity(term) * counts * (_SATURATION + 1) / (counts + self.norms)
        return scores


class CountedText(NamedTuple):
    """A text with its hash and the number of each of its terms."""

    sha256: str | None
    text: str
    counts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SectionIndex:
    """The words of the sections of a code."""

    tree: CodeTree
    texts: Mapping[str, CountedText]
    """Of the sections with text, at or below them, in document order."""
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
    texts = {} if known is None else known.texts
    digests = {section: tree.sections[section].text_sha256 for section in tree.order if section in tree.heights}
    new = [each for each, digest in digests.items() if each not in texts or texts[each].sha256 != digest]
    loaded = code_tree.load_texts(kg.ask_sources, new)
    counted = {}
    for each in new:
        text = loaded.get(each, "")
        counted[each] = CountedText(digests[each], text, Counter(word.term for word in find_terms(text)))
    found = {section: counted.get(section) or texts[section] for section in digests}
    weighed = [_weigh(tree, section, each.counts) for section, each in found.items()]
    return kg.memory.keep(key, SectionIndex(tree, found, WordIndex(weighed)))


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
    sections = list(index.texts)
    factors = np.array([1.0 if among is None else among.get(section, 0.0) for section in sections])
    words = factors * index.words.score(terms)
    shares = words / (float(words.max(initial=0.0)) or 1.0)
    meanings = _score_meaning(kg, question, sections)
    scores = shares if meanings is None else _WORDS_WEIGHT * shares + _MEANING_WEIGHT * factors * meanings
    scores = scores + _PREFERRED * np.array([section in preferred for section in sections])
    said = [None] * len(sections) if meanings is None else meanings.tolist()
    ranked = [Ranked(*each) for each in zip(sections, scores.tolist(), shares.tolist(), said, strict=True)]
    return [ranked[place] for place in np.argsort(-scores, kind="stable").tolist() if factors[place] > 0]


def _score_meaning(kg: KnowledgeGraph, question: str, sections: Sequence[str]) -> Floats | None:
    """Score the meaning of the sections, from 0 to 1; None without a model. One without a text has the least score."""
    try:
        found = kg.search.rank(question, units=sections, limit=len(sections), mode="dense").candidates
    except IndexUnavailableError:
        return None
    cosines = {each.iri: each.cosine for each in found if each.cosine is not None}
    least = min(cosines.values(), default=0.0)
    return np.array([cosines.get(section, least) for section in sections], dtype=np.float64) if cosines else None
