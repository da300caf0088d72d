"""Facts about embedding models: languages, input length, prefixes, and the calibration of their scores.

A model that is not listed here can be used as well. Its languages are unknown then, so it embeds texts in any language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

MINILM: Final = "sentence-transformers/all-MiniLM-L6-v2"
USE: Final = "google/universal-sentence-encoder-multilingual-3"

ENGLISH: Final = frozenset(("en",))


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The languages and sizes of a model. Those other than the languages apply to models that run in this process."""

    name: str
    languages: frozenset[str] | None
    """Primary subtags (BCP 47) of the languages whose texts it can compare; None: any or unknown."""
    dimensions: int
    """Length of a vector."""
    window: int
    """Longest input in tokens, including special ones."""
    lengths: tuple[int, ...] = ()
    """Lengths to which its vectors can be cut, if it was trained for that (Matryoshka representation learning)."""
    download_mb: int = 0
    """Size of its files, of a model that fastembed does not list: `onnx/model.onnx` in the repository of that name."""


USE_LANGUAGES: Final = frozenset(
    ["ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"]
)
"""The 16 languages of its training; Chinese in both scripts is one primary subtag."""

MODELS: Final = {
    facts.name: facts
    for facts in (
        ModelFacts(MINILM, ENGLISH, 384, 256),
        ModelFacts(USE, USE_LANGUAGES, 512, 128),
        ModelFacts("google/embeddinggemma-300m", None, 512, 512, lengths=(128, 256, 512, 768)),
        ModelFacts("intfloat/multilingual-e5-small", None, 384, 512, download_mb=470),
        ModelFacts("intfloat/multilingual-e5-base", None, 768, 512, download_mb=1_110),
    )
}
"""The models with facts of their own, by name."""

_ENGLISH_MODELS: Final = (
    "BAAI/bge-base-en", "BAAI/bge-large-en", "BAAI/bge-small-en", "Qdrant/clip-ViT-B-32-text", "Qdrant/constella-nano",
    "Qdrant/constella-zero", "Qdrant/stella-en-400M-v5", "ibm-granite/granite-embedding-small-english-r2",
    "jinaai/jina-clip-v1", "jinaai/jina-embeddings-v2-base-en", "jinaai/jina-embeddings-v2-small-en",
    "minishlab/potion-base-8M", "minishlab/potion-retrieval-32M", "mixedbread-ai/mxbai-embed-large-v1",
    "nomic-ai/nomic-embed-text-v1", "snowflake/snowflake-arctic-embed-", "thenlper/gte-",
)  # fmt: skip
"""Beginnings of the names of the models of fastembed that it describes as English."""

_BILINGUAL_MODELS: Final = {
    "BAAI/bge-small-zh": frozenset(("zh",)),
    "jinaai/jina-embeddings-v2-base-de": frozenset(("de", "en")),
    "jinaai/jina-embeddings-v2-base-es": frozenset(("en", "es")),
    "jinaai/jina-embeddings-v2-base-zh": frozenset(("en", "zh")),
    "jinaai/jina-embeddings-v2-base-code": ENGLISH,
}
"""The same for models of one or two other languages."""


_SEARCH_PROMPT: Final = "Represent this sentence for searching relevant passages: "
_PREFIXES: Final = {
    "BAAI/bge-base-en": (_SEARCH_PROMPT, ""),
    "BAAI/bge-large-en": (_SEARCH_PROMPT, ""),
    "BAAI/bge-small-en": (_SEARCH_PROMPT, ""),
    "google/embeddinggemma-300m": ("task: search result | query: ", "title: none | text: "),
    "intfloat/multilingual-e5-": ("query: ", "passage: "),
    "mixedbread-ai/mxbai-embed-large-v1": (_SEARCH_PROMPT, ""),
    "nomic-ai/nomic-embed-text-v1": ("search_query: ", "search_document: "),
    "snowflake/snowflake-arctic-embed-": (_SEARCH_PROMPT, ""),
}
"""By the beginnings of names of models: the texts put before a query and a passage, as their publishers describe."""


def get_prefixes(name: str) -> tuple[str, str]:
    """Return the texts that a model expects before a query and before a passage."""
    return next((prefixes for start, prefixes in _PREFIXES.items() if name.startswith(start)), ("", ""))


def get_facts(name: str) -> ModelFacts | None:
    """Return the facts about a model by its name, or by that of an embedder: with a precision, or a host before it."""
    without_host = name.partition("/")[2]
    names = (name, name.rpartition("/")[0], without_host, without_host.rpartition("/")[0])
    return next((MODELS[each] for each in names if each in MODELS), None)


def get_languages(name: str) -> frozenset[str] | None:
    """Return the primary subtags of the languages that a model (or embedder) knows; None: any or unknown."""
    if (facts := get_facts(name)) is not None:
        return facts.languages
    for start, languages in _BILINGUAL_MODELS.items():
        if name.startswith(start):
            return languages
    return ENGLISH if name.startswith(_ENGLISH_MODELS) else None


def get_offset(name: str, query: str | None, unit: str | None) -> float:
    """Return the number to add to a cosine by a model (or embedder), for one scale of all models and languages.

    `query` and `unit` are the languages of the query and of the text (primary subtags; None: unknown). A pair that was
    not measured has the mean of the measured ones that are like it: of one language or of two, and with that of its two
    languages that was measured. A model without any has 0.
    """
    facts = get_facts(name)
    return _find_offset(facts.name, query, unit) if facts is not None and facts.name in OFFSETS else 0.0


@cache
def _find_offset(model: str, query: str | None, unit: str | None) -> float:
    offsets = OFFSETS[model]
    measured = {one for pair in offsets for one in pair}
    like = [
        offset
        for (one, other), offset in offsets.items()
        if None in (query, unit) or (one == other) == (query == unit)
        if one == query or query not in measured
        if other == unit or unit not in measured
    ]
    return round(sum(like) / len(like), 3)


OFFSETS: Final[Mapping[str, Mapping[tuple[str, str], float]]] = {
    USE: {
        ("en", "en"): 0.130, ("en", "es"): 0.150, ("en", "de"): 0.155, ("en", "ru"): 0.215, ("en", "zh"): 0.203,
        ("es", "en"): 0.183, ("es", "es"): 0.135, ("es", "de"): 0.178, ("es", "ru"): 0.243, ("es", "zh"): 0.230,
        ("de", "en"): 0.179, ("de", "es"): 0.172, ("de", "de"): 0.137, ("de", "ru"): 0.240, ("de", "zh"): 0.226,
        ("ru", "en"): 0.229, ("ru", "es"): 0.228, ("ru", "de"): 0.232, ("ru", "ru"): 0.200, ("ru", "zh"): 0.255,
        ("zh", "en"): 0.223, ("zh", "es"): 0.217, ("zh", "de"): 0.222, ("zh", "ru"): 0.259, ("zh", "zh"): 0.157,
    }
}  # fmt: skip
"""By model, then by the languages of query and text: what makes the mean cosine of a question and the passage that
answers it the same as by `MINILM` in English. Measured on the questions to the even paragraphs of XQuAD.

On the others it would be 0.04 more for each pair.
"""
