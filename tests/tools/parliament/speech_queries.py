"""How well speeches are found for queries with known answers: by the tool, by words alone, by meaning alone."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kg.knowledge_graph import KnowledgeGraph
from kg.search.protocol import Mode
from kg.tools.parliament.search import search_speeches

GOLDEN = Path(__file__).parent / "speeches.toml"
DEPTH = 10


@dataclass(frozen=True)
class Asked:
    """A query with the keys of all speeches that answer it."""

    text: str
    expect: frozenset[str]
    filters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Quality:
    """Means over queries: the share of expected speeches among the first ten, and 1 over the rank of the first one."""

    recall: float
    mrr: float
    unanswered: float
    """The share of queries without results."""


def queries(path: Path = GOLDEN, wording: str = "text") -> list[Asked]:
    """Return the queries of a file, in its order. `wording` is the key of their texts."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["query"]
    return [Asked(each[wording], frozenset(each["expect"]), each.get("filters", {})) for each in tables]


def measured(asked: Sequence[Asked], search: Callable[[Asked], Sequence[str]]) -> Quality:
    """Return how well `search`, which gives the keys of speeches best first, answers."""
    recall = reciprocal = 0.0
    unanswered = 0
    for query in asked:
        found = list(search(query))[:DEPTH]
        unanswered += not found
        recall += len(query.expect & set(found)) / len(query.expect)
        reciprocal += next((1 / rank for rank, key in enumerate(found, start=1) if key in query.expect), 0.0)
    return Quality(recall / len(asked), reciprocal / len(asked), unanswered / len(asked))


def by_tool(kg: KnowledgeGraph, keys: Mapping[str, str]) -> Callable[[Asked], Sequence[str]]:
    """Search by the tool; `keys` are what queries know speeches by, by their IRIs."""

    def search(query: Asked) -> Sequence[str]:
        found = search_speeches(kg, query.text, **query.filters, top_k=DEPTH)
        return [keys[result.evidence.speech] for result in found.results]

    return search


def by_index(kg: KnowledgeGraph, mode: Mode, keys: Mapping[str, str]) -> Callable[[Asked], Sequence[str]]:
    """Search the bare index in one `mode`, without filters; `keys` are what queries know speeches by, by their IRIs."""

    def search(query: Asked) -> Sequence[str]:
        ranked = kg.search.rank(query.text, parents=list(keys), limit=50 * DEPTH, mode=mode)
        hits = (each for each in ranked.candidates if (each.bm25 > 0 if mode == "bm25" else each.cosine is not None))
        return list(dict.fromkeys(keys[each.iri.partition("#")[0]] for each in hits))

    return search
