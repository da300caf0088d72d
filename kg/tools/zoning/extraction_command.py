"""The command ``kg extract``: facts of a stored code, extracted again with a chat model or by rules alone."""

from __future__ import annotations

from typing import Any, Literal

from kg.errors import InvalidInputError
from kg.knowledge_graph import PROGRESS, KnowledgeGraph
from kg.loading import exclusive_load
from kg.retrieval.reader import Reader
from kg.tools.zoning.name_lookup import find_place, get_section_key
from kg.vocabulary import iri_prefix


def extract(
    kg: KnowledgeGraph,
    municipality: str,
    state: str,
    mode: Literal["chat", "rules"] = "chat",
    again: bool = False,
    questions: int = 500,
    minutes: float = 60.0,
) -> dict[str, Any]:
    """Extract facts from the sections of a code again: with the configured chat model, or by the rules alone.

    At most `questions` are sent to the endpoint, for at most `minutes`. With `again`, also about sections that the
    model has read. The mode "rules" removes the readings of models.
    """
    if kg.extract is None:
        raise InvalidInputError("This process cannot extract: it was started without loaders.")
    place, advance = find_place(Reader(kg), municipality, state), PROGRESS.get()
    report = kg.extract(
        kg,
        place.iri.removeprefix(iri_prefix("municipality")),
        exclusive=lambda: exclusive_load(advance),
        mode=mode,
        again=again,
        questions=questions,
        minutes=minutes,
        on_progress=advance,
    )
    return {
        "municipality": place.shown,
        **report.to_dict(),
        "failed": [
            {"section_id": get_section_key(each), "iri": each, "reason": why} for each, why in report.failed.items()
        ],
    }
