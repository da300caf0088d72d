"""How long it takes to be told what the districts of a municipality permit and prescribe, one after the other.

``python -m tests.benchmarks districts [-- --table FILE]``. The table is the real one of Connecticut's jurisdictions
where it lies beside the project, else one made up of the fictional towns. Each municipality is asked for once by each
tool, so that nothing of an answer is remembered; the alternative selects the IRIs of the rules alone.
"""

from __future__ import annotations

import argparse
import csv
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.settings import Settings
from kg.sparql.terms import bind
from kg.tools.zoning.name_lookup import Place, load_places
from kg.tools.zoning.provisions import kg_query_permissions, kg_query_standards
from loaders.sources import load
from tests.benchmarks.comparison import Comparison, median, p95, timed

ROOT = Path(__file__).parent.parent.parent
REAL = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "zoning" / "ct_town_data_2022.csv"
TOWNS = ROOT / "fixtures" / "zoning" / "towns.csv"
MADE_UP_TOWNS, MADE_UP_DISTRICTS = 180, 12
MOST_MS = 20

BARE = """
SELECT ?rule WHERE {
  ?district kg:jurisdiction $municipality ; a kg:ZoningDistrict . ?rule kg:district ?district
}"""


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="districts")
    parser.add_argument("--table", type=Path, default=REAL if REAL.is_file() else None)
    table: Path | None = parser.parse_args(arguments).table
    logging.disable(logging.WARNING)
    try:
        with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as made_up:
            folder = Path(made_up)
            mapping = None if table else str(TOWNS.with_suffix(".toml"))
            settings = Settings(data_dir=folder / "data", models_dir=folder / "models")
            with KnowledgeGraph.open(settings.data_dir, settings) as kg:
                source = table or write_towns(folder / "towns.csv")
                load(kg, "zoning", [str(source)], gate=False, index=False, mapping=mapping)
                yield from measured(kg)
    finally:
        logging.disable(logging.NOTSET)


def measured(kg: KnowledgeGraph) -> Iterator[Comparison]:
    """Ask for every municipality and compare."""
    places = load_places(Reader(kg))
    bare = timed(lambda place: kg.query(bind(BARE, municipality=NamedNode(place.iri))), places)
    for name, ask in (("kg_query_permissions", kg_query_permissions), ("kg_query_standards", kg_query_standards)):

        def asked(place: Place, ask: Callable[..., object] = ask) -> object:
            return ask(kg, place.name, place.state)

        asked(places[0])
        took = timed(asked, places)
        yield Comparison(f"{name} of {len(places)} municipalities, median", median(took), median(bare), "ms")
        yield Comparison.at_most(f"{name}, p95", p95(took), "ms", MOST_MS, p95(bare))


def write_towns(path: Path) -> Path:
    """Write a table of many towns, with the cells of the fictional ones."""
    with TOWNS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for town in range(MADE_UP_TOWNS):
            for number in range(MADE_UP_DISTRICTS):
                row = rows[(town + number) % len(rows)]
                writer.writerow({**row, "Town": f"Quill {town}", "District": f"{row['District']}-{number}"})
    return path
