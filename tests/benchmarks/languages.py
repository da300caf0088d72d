"""Processor time of searches of texts in several languages, beside as many English ones, in the same run and in turns.

Half of the texts of the first index are English, the others in the other languages of XQuAD; those of the second one
are all English. Each is a mixture of two passages (`tests.benchmarks.mixtures`), with vectors that follow from its
words by two models, of the sizes and languages of the default ones. Arguments: ``--texts N`` (default 20,000).
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from kg.search.protocol import IndexedUnit
from kg.search.registry import ENGLISH, MINILM, MODELS, USE, USE_LANGUAGES
from kg.search.shards import Shards
from kg.search.tokenization import split_text
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from tests.benchmarks.comparison import Comparison, median, p95
from tests.benchmarks.corpora import LANGUAGES, find_languages, load_xquad_questions
from tests.benchmarks.search import WordEmbedder

QUESTIONS: Final = 25
"""Questions in each language."""
LIMIT: Final = 100
AT_ONCE: Final = 1_000
REST_S: Final = 5.5


class SizedEmbedder(WordEmbedder):
    """Vectors of a number of dimensions that follow from the words, also of texts without spaces."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self._random.dimensions = dimensions

    def embed(self, text: str) -> list[float]:
        found: list[float] = self.embed_query(" ".join(split_text(text)[0])).tolist()
        return found


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Make both indexes, and ask the same questions of both in turns."""
    parser = argparse.ArgumentParser(prog="languages")
    parser.add_argument("--texts", type=int, default=20_000)
    given = parser.parse_args(arguments)
    if (corpus := find_languages()) is None:
        print("languages: the corpora are not there")
        return
    graphs = corpus.load_passages()
    texts = {language: [unit.text for unit in graphs[f"urn:languages:{language}"].units] for language in LANGUAGES}
    texts["en"] += [unit.text for unit in graphs["urn:languages:obliqa"].units]
    questions = [each.text for language in LANGUAGES for each in load_xquad_questions(language)[:QUESTIONS]]
    with tempfile.TemporaryDirectory(prefix="bench-languages-") as place:
        several = make_index(Path(place) / "several", texts, given.texts)
        english = make_index(Path(place) / "english", {"en": texts["en"]}, given.texts)
        times: dict[str, list[float]] = {"several": [], "english": []}
        for text in (questions[0], *questions):  # the first one opens the detector of languages
            for name, index in (("several", several), ("english", english)):
                begun = time.process_time()
                index.rank(text, None, None, LIMIT)
                times[name].append((time.process_time() - begun) * 1_000)
        several.shards.close()
        english.shards.close()
    ours, theirs = (sorted(each[1:]) for each in times.values())
    for name, measure in (("median", median), ("p95", p95)):
        yield Comparison(
            f"several languages, {given.texts:,} texts, beside English: {name}", measure(ours), measure(theirs), "ms"
        )


def make_index(folder: Path, texts: Mapping[str, Sequence[str]], number: int) -> UnitIndex:
    """Index mixtures of texts, half of them English unless all are, with their vectors, and optimize the shard."""
    embedders = [SizedEmbedder(MODELS[model].dimensions) for model in (MINILM, USE)]
    index = UnitIndex(Shards(folder), VectorCache(folder), lambda text, slot: embedders[slot].embed(text))
    for slot, (model, languages) in enumerate(((MINILM, ENGLISH), (USE, USE_LANGUAGES))):
        index.use_model(slot, model, MODELS[model].dimensions, languages)
    chance = random.Random(0)
    others = [language for language in texts if language != "en"]
    for start in range(0, number, AT_ONCE):
        language = others[start // AT_ONCE // 2 % len(others)] if others and start // AT_ONCE % 2 else "en"
        graph = f"urn:graph:{start}"
        units = [
            IndexedUnit(f"urn:passage:{each}", graph, graph, mix(chance, texts[language]), language=language)
            for each in range(start, start + AT_ONCE)
        ]
        index.begin([graph])
        index.put(units)
        index.finish({graph: "1"})
        for space, slot in (("dense", 0), ("other", 1), ("also", 1)):
            while waiting := index.pending(space, AT_ONCE):
                index.set_vectors(
                    space,
                    {
                        id_: (text_hash, np.array([embedders[slot].embed(text)], np.float16))
                        for id_, (text_hash, text) in waiting.items()
                    },
                )
    index.shards.flush()
    time.sleep(REST_S)  # then smaller shards are optimized too
    while (grown := index.shards.find_grown()) is not None and index.shards.optimize(grown):
        pass
    return index


def mix(chance: random.Random, texts: Sequence[str]) -> str:
    """Join the first half of one text and the second half of another one."""
    one, other = chance.choice(texts), chance.choice(texts)
    return f"{one[: len(one) // 2]} {other[len(other) // 2 :]}"
