"""Items and properties found by names and descriptions that people write, beside a plain lookup of labels.

``python -m tests.benchmarks wikidata``. 90 fictional items (both fixtures of Wikibases, loaded as Wikidata's) and the
properties that ship with Quadcite. The lookup takes the entities whose label or alias is the query, then those whose
label contains it, as a query with a filter does. The questions were written before the search was measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kg import bundle
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.settings import Settings
from kg.tools.wikidata.names import load_item_names, load_property_names
from kg.tools.wikidata.search import vector_search_items, vector_search_properties
from kg.vocabulary import WD
from loaders.sources import load
from tests.benchmarks.comparison import Comparison

FIRST = 5
VECTORS_S = 120

ITEMS: Mapping[str, str] = {
    "Ilsabet Varrow": "Q900000001",
    "ilsabet varow": "Q900000001",
    "Varrow, Ilsabet": "Q900000001",
    "woman who wrote an almanac of tides": "Q900000001",
    "Marowick": "Q900000002",
    "harbor town on the Tarn": "Q900000002",
    "republic in the north sea": "Q900000003",
    "capital city of Orlavia": "Q900000004",
    "tide almanach": "Q900000005",
    "light house at Veddle": "Q900000006",
    "Orlavia's neighbouring kingdom": "Q900000007",
    "clock maker Dray": "Q900000011",
    "firm that runs lighthouses": "Q900000012",
    "current mayor of Marrowick": "Q900000015",
    "global warming": "Q1001",
    "cutting down of trees": "Q1031",
    "planting trees": "Q1032",
    "dams that make electricity": "Q1013",
    "electric cars": "Q1056",
    "hurricanes": "Q1045",
    "bike lanes": "Q1058",
    "turning salt water into drinking water": "Q1053",
    "sea walls and dykes": "Q1050",
    "moving people away from the coast": "Q1047",
}
PROPERTIES: Mapping[str, str] = {
    "place of birth": "P19",
    "where somebody was born": "P19",
    "when somebody died": "P570",
    "number of people living there": "P1082",
    "year in which a company was founded": "P571",
    "wife or husband": "P26",
    "school that a person went to": "P69",
    "job of a person": "P106",
    "who wrote the book": "P50",
    "publishing house": "P123",
    "language of the text": "P407",
    "surface in square kilometres": "P2046",
    "head of a city": "P6",
    "twin cities": "P190",
    "neighbouring countries": "P47",
    "political party membership": "P102",
    "prizes won": "P166",
    "cause of deth": "P509",
    "cemetery": "P119",
    "official web page": "P856",
    "film maker": "P57",
    "colour of the hair": "P1884",
    "top of the mountain range": "P610",
    "money used in a country": "P38",
}

Found = Callable[[str], Sequence[str]]


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        settings = Settings(data_dir=Path(folder), _env_file=None)
        with KnowledgeGraph.open(settings.data_dir, settings) as kg:
            for name in ("wikidata", "wikibase"):
                load(kg, "wikibase", [str(bundle.folder("fixtures") / name)], base="wikidata")
            kg.search.wait()
            _await_vectors(kg)
            concepts = load_item_names(kg).concepts
            items = {each.entity.removeprefix(WD.iri): each.names for each in concepts.by_iri.values()}
            known = load_property_names(Reader(kg)).properties.values()
            properties = {each.id: (each.label or each.id, *each.aliases) for each in known}
            yield from _compare(
                "items", ITEMS, lambda text: [each.qid for each in vector_search_items(kg, text, FIRST).entities], items
            )
            yield from _compare(
                "properties",
                PROPERTIES,
                lambda text: [each.qid for each in vector_search_properties(kg, text, FIRST).entities],
                properties,
            )


def _await_vectors(kg: KnowledgeGraph) -> None:
    """Wait for the vectors of the properties that ship, which are made at the first search."""
    until = time.monotonic() + VECTORS_S
    while vector_search_properties(kg, "cemetery", FIRST).notes and time.monotonic() < until:
        time.sleep(1)


def _compare(
    name: str, questions: Mapping[str, str], search: Found, names: Mapping[str, Sequence[str]]
) -> Iterator[Comparison]:
    ours = _measure_recall(questions, search)
    plain = _measure_recall(questions, lambda text: _look_up(text, names))
    yield Comparison.at_least(f"recall at {FIRST}, {name}", ours, plain, "", 1)


def _measure_recall(questions: Mapping[str, str], search: Found) -> float:
    return sum(wanted in search(text)[:FIRST] for text, wanted in questions.items()) / len(questions)


def _look_up(text: str, names: Mapping[str, Sequence[str]]) -> list[str]:
    wanted = fold(text)
    same = [entity for entity, known in names.items() if any(fold(name) == wanted for name in known)]
    parts = [entity for entity, known in names.items() if entity not in same and any(wanted in fold(n) for n in known)]
    return [*same, *parts][:FIRST]
