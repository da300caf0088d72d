"""The commands of ``kg summaries``: build the summaries of a zoning code, and count those of all codes by state."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any, Final, Literal

from kg.knowledge_graph import PROGRESS, KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of
from kg.tools.zoning.name_lookup import Place, find_place, find_section, get_section_key, load_places
from kg.zoning_summaries import code_tree

CODES: Final = """
SELECT DISTINCT ?municipality WHERE { ?section a kg:CodeSection ; kg:jurisdiction ?municipality }"""

STATES: Final = ("current", "stale", "missing", "empty", "circular")


def summaries_build(
    kg: KnowledgeGraph,
    municipality: str,
    state: str,
    root: str | None = None,
    mode: Literal["extractive", "chat"] = "extractive",
    again: bool = False,
) -> dict[str, Any]:
    """Build missing and stale summaries of a code: at and below the section `root`, or all. `again`: current ones too.

    With the mode "chat" the configured chat endpoint writes them; else they are sentences of the law.
    """
    # Imported here because it is slow, and every start of the command line imports this module.
    from kg.zoning_summaries.build import build

    place = find_place(Reader(kg), municipality, state)
    start = None if root is None else find_section(code_tree.cached_tree(kg, place.iri), root)
    report = build(kg, place.iri, start, mode=mode, again=again, on_progress=PROGRESS.get())
    return {
        **asdict(report),
        "municipality": place.shown,
        "mode": mode,
        "failed": [
            {"section_id": get_section_key(each), "iri": each, "reason": why} for each, why in report.failed.items()
        ],
        "circular": [get_section_key(each) for each in report.circular],
    }


def summaries_status(kg: KnowledgeGraph, municipality: str | None = None, state: str | None = None) -> dict[str, Any]:
    """Count the summaries of one code, or of all, by state and by model. Orphans belong to sections that are gone."""
    from kg.zoning_summaries.build import ORPHANS

    reader = Reader(kg)
    if municipality is not None:
        places = [find_place(reader, municipality, state or "")]
    else:
        coded = {iri_of(row["municipality"]) for row in reader.rows("municipalities with a code", CODES)}
        places = [place for place in load_places(reader) if place.iri in coded]
    codes = [_count_states(kg, place) for place in places]
    orphans = sorted({iri_of(row["section"]) for row in reader.rows("summaries of removed sections", ORPHANS)})
    return {"codes": codes, "orphans": [get_section_key(each) for each in orphans]}


def _count_states(kg: KnowledgeGraph, place: Place) -> dict[str, Any]:
    tree = code_tree.read_tree(kg, place.iri)
    counted = Counter(tree.states.values())
    written = Counter(summary.model for summary in tree.summaries.values())
    return {
        "municipality": place.shown,
        "iri": place.iri,
        "sections": len(tree.sections),
        **{state: counted[state] for state in STATES},
        "models": dict(sorted(written.items())),
        "stale_sections": [get_section_key(each) for each in tree.order if tree.states[each] == "stale"],
    }
