"""What ``kg summaries`` asks of an open graph: to build the summaries of a code, and how those of all codes stand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of, text_of
from kg.search.index_sync import Progress
from kg.tools.zoning.municipalities import find_place, find_section, get_section_key
from kg.zoning_summaries import code_tree

if TYPE_CHECKING:  # what writes summaries takes long to import, and every command knows this module
    from kg.zoning_summaries.writers import Mode

CODES: Final = """
SELECT DISTINCT ?municipality ?name WHERE {
  ?section a kg:CodeSection ; kg:jurisdiction ?municipality OPTIONAL { ?municipality skos:prefLabel ?name }
} ORDER BY ?municipality"""

STATES: Final = ("current", "stale", "missing", "empty", "circular")


def summaries_build(
    kg: KnowledgeGraph,
    on_progress: Progress,
    *,
    municipality: str,
    state: str,
    root: str | None = None,
    mode: Mode = "extractive",
    anew: bool = False,
) -> dict[str, Any]:
    """Build the summaries of a code as ``kg summaries build`` does: those at and below the section `root`, or all."""
    from kg.zoning_summaries.build import build

    if mode not in ("extractive", "chat"):
        raise InvalidInputError(f"mode: {mode!r:.40} is none; the modes are extractive and chat")
    place = find_place(Reader(kg), municipality, state)
    start = None if root is None else find_section(code_tree.cached_tree(kg, place.iri), root)
    report = build(kg, place.iri, start, mode=mode, anew=anew, on_progress=on_progress)
    told = report.to_dict()
    return {
        **told,
        "municipality": place.shown,
        "mode": mode,
        "failed": [
            {"section_id": get_section_key(each), "iri": each, "reason": why} for each, why in report.failed.items()
        ],
        "circular": [get_section_key(each) for each in report.circular],
    }


def summaries_status(
    kg: KnowledgeGraph, on_progress: Progress, *, municipality: str | None = None, state: str | None = None
) -> dict[str, Any]:
    """Count the summaries of one code, or of all, by how they stand and by what wrote them; orphans are of no code."""
    from kg.zoning_summaries.build import ORPHANS

    reader = Reader(kg)
    if municipality is not None:
        place = find_place(reader, municipality, state or "")
        named = [(place.iri, place.shown)]
    else:
        rows = reader.rows("municipalities with a code", CODES)
        names = {iri_of(row["municipality"]): text_of(row["name"]) if "name" in row else "" for row in rows}
        named = [(iri, name or iri.rpartition("/")[2]) for iri, name in names.items()]
    codes = [_standing(kg, iri, name) for iri, name in named]
    orphans = sorted({iri_of(row["section"]) for row in reader.rows("summaries of what is gone", ORPHANS)})
    return {"codes": codes, "orphans": [get_section_key(each) for each in orphans]}


def _standing(kg: KnowledgeGraph, iri: str, name: str) -> dict[str, Any]:
    tree = code_tree.load_tree(kg, iri)
    counted = Counter(tree.states.values())
    written = Counter(summary.model for summary in tree.summaries.values())
    return {
        "municipality": name,
        "iri": iri,
        "sections": len(tree.sections),
        **{state: counted[state] for state in STATES},
        "models": dict(sorted(written.items())),
        "stale_sections": [get_section_key(each) for each in tree.order if tree.states[each] == "stale"],
    }
