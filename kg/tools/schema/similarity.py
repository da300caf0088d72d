"""Short texts compared with a question by what they mean: by the index's embedding model, or by their words alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.fuzzy_names import folded
from kg.vocabulary import sha256
from kg.words import stems

WITHOUT_MODEL: Final = "No embedding model is there, so this was matched by words alone (kg models pull gets one)."


def closeness(kg: KnowledgeGraph, question: str, texts: Sequence[str]) -> list[float] | None:
    """Return the cosine of each text with `question`, or None where no vectors are being made.

    The vectors of `texts` are kept: the same few hundred texts are asked about again and again.
    """
    key = ("vectors", sha256("\0".join(texts)))
    known: NDArray[np.float32] | None = kg.memory.get(key)
    if known is None:
        made = kg.search.embed(texts)
        if made is None:
            return None
        known = kg.memory.keep(key, np.array(made, dtype=np.float32))
    asked = kg.search.embed([question])
    if asked is None:
        return None
    cosines: list[float] = (known @ np.array(asked[0], dtype=np.float32)).tolist()
    return cosines


def overlap(question: str, texts: Sequence[str]) -> list[float]:
    """Return which share of the question's words each text has, from 0 to 1; rare words count more."""
    wanted = set(stems(folded(question)))
    having = [set(stems(folded(text))) for text in texts]
    spread = Counter(stem for stem_set in having for stem in stem_set)
    weights = {stem: math.log(1 + len(texts) / (0.5 + spread[stem])) for stem in wanted}
    whole = sum(weights.values()) or 1.0
    return [sum(weights[stem] for stem in wanted & found) / whole for found in having]
