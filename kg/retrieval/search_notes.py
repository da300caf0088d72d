"""Notes on a search: differences of a later answer, texts that were not compared, and advice without results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from kg.errors import IndexUnavailableError
from kg.knowledge_graph import KnowledgeGraph
from kg.languages import find_primary, name_language
from kg.retrieval.asked import Asked
from kg.retrieval.facets import DOMAIN_NAMES
from kg.retrieval.filters import Scope, build_conditions
from kg.retrieval.hybrid_search import Retrieved, retrieve
from kg.retrieval.notes import Note
from kg.retrieval.reader import Reader
from kg.text import quoted

_FILTERS_TRIED: Final = 4
"""Maximum number of filters that are left out, one at a time: each takes a search."""
_LANGUAGES_NAMED: Final = 5
_NOTED: Final = 0.05
"""Share of the texts that were compared by words only from which on an answer with results notes it."""


def advise(
    kg: KnowledgeGraph,
    asked: Asked,
    found: Retrieved,
    scope: Scope,
    units: str,
    filters: Sequence[str] = (),
    widen: Callable[[Collection[str]], Scope] | None = None,
) -> list[str]:
    """Describe an answer without results, and what would help.

    `units` is the noun for the ranked texts. `filters` are those of `scope`, which `widen` builds without some of them.
    """
    if not kg.store.statistics().graphs:
        return ["The graph is empty. Load a source first, as in `kg load climate PATH`."]
    if not found.nearest:
        nothing = f"No {units} found."
    elif found.relevance.stated is None:
        nothing = f"No {units} are near enough to the query to be listed. Some may treat its subject nevertheless."
    else:
        nothing = f"No {units} seem to treat the subject of the query."
    listed = " min_score=0 lists more than the nearest ones." if found.nearest else ""
    notes: list[str] = [Note(f"{nothing}{listed}", nothing)]
    if asked.must:
        notes.append(f"Only {units} that contain {' and '.join(map(quoted, asked.must))} were searched.")
    try:
        if widen is not None and filters:
            notes += _describe_filters(kg, asked, filters, widen)
        if found.relevance.refused:
            notes += _describe_searched(kg, found, scope, units)
    except IndexUnavailableError:
        pass  # the search answered without the index, and states that
    return notes


def _describe_filters(
    kg: KnowledgeGraph, asked: Asked, filters: Sequence[str], widen: Callable[[Collection[str]], Scope]
) -> list[str]:
    """Name the filters without which there are results."""

    def has_results(names: Sequence[str]) -> bool:
        return bool(retrieve(Reader(kg), asked, widen(names), limit=1).units)

    excluding = [name for name in filters[:_FILTERS_TRIED] if has_results([name])]
    if excluding:
        return [f"There are results without the filter {' or '.join(excluding)}."]
    if len(filters) > 1 and has_results(filters):
        return [f"There are results without the filters ({', '.join(filters)})."]
    return []


def _describe_searched(kg: KnowledgeGraph, found: Retrieved, scope: Scope, units: str) -> list[str]:
    """Name the domains that are not loaded, and the languages of texts of which none is in that of the query."""
    notes: list[str] = []
    loaded = kg.search.count(["domain"]).by_field["domain"]
    if lacking := [name for code, name in DOMAIN_NAMES.items() if not loaded.get(code)]:
        notes.append(f"Not loaded: {', '.join(lacking)}.")
    conditions, is_whole = build_conditions(scope)
    if is_whole and found.language is not None:
        languages = kg.search.count(["languages"], conditions).by_field["languages"]
        if languages and not any(find_primary(tag) == found.language for tag in languages):
            named = f"{name_languages(languages)}, the query in {name_language(found.language)}"
            notes.append(f"The {units} searched are in {named}.")
    return notes


def name_languages(counts: Mapping[str, int]) -> str:
    """Name the languages of most texts, with the number of these."""
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{name_language(tag) if tag else 'an unknown language'} ({count:,})" for tag, count in most]
    return ", ".join(named[:_LANGUAGES_NAMED]) + (", and others" if len(named) > _LANGUAGES_NAMED else "")


def describe_ranking(found: Retrieved, units: str, must: Sequence[str] = ()) -> list[str]:
    """Describe what may differ in the order of a later answer, and texts that were not compared or not searched.

    `units` is the noun for the ranked texts.
    """
    notes: list[str] = []
    if found.incomplete:
        notes.append(f"The answer is approximate: {found.incomplete}")
    if found.problem:
        notes.append(f"The reranker did not order the results: {found.problem}")
    if found.degraded == "store":
        said = (
            f"The search index does not answer. These are {units} whose text in the store contains words of the query; "
            "titles, names and meaning were not searched. Try again in some seconds"
        )
        notes.append(Note(f"{said}; health has the state.", f"{said}; the status page has the state."))
    elif found.degraded == "words":
        said = f"No embedding model: the {units} are ranked by words only."
        notes.append(Note(f"{said} health has the reason.", f"{said} The status page has the reason."))
    elif found.pending:
        said = (
            f"{found.pending} of the {units} considered have no embedding yet and are ranked by keywords only. The "
            "order and the pages can change until"
        )
        notes.append(
            Note(f"{said} health reports no pending vectors.", f"{said} the status page reports no pending vectors.")
        )
    uncompared = sum(found.uncompared.values())
    if uncompared and (not found.units or found.searched is None or uncompared >= _NOTED * found.searched):
        of_all = "" if found.searched is None else f" of {found.searched:,}"
        notes.append(
            f"Compared with the query by words only, since no embedding model knows both languages: {uncompared:,}"
            f"{of_all} {units}, in {name_languages(found.uncompared)}. Words of their language find them."
        )
    for language, words in found.stop_words.items():
        are = f"{', '.join(map(quoted, words))}: {'stop words' if len(words) > 1 else 'a stop word'}"
        effect = "No such text was searched" if len(words) == len({*must}) else "Not required of such texts"
        notes.append(f"must: {are} of {units} in {name_language(language)}, which the index lacks. {effect}.")
    return notes
