"""Are speeches of real sitting days found for questions in other words, beside words alone and meaning alone?

Data: the sitting days and tables of speeches in the folder of real data beside the project, and thirty questions that
were written from the speeches alone (``sittings.toml``). The first run embeds all chunks (minutes); the data directory
stays in the user's cache for as long as the code that makes it is the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from kg.knowledge_graph import KnowledgeGraph
from kg.search.protocol import Mode
from kg.settings import Settings
from kg.store.protocol import Rows, term_text
from loaders.sources import load
from tests.benchmarks.comparison import Comparison
from tests.tools.parliament.speech_queries import by_index, by_tool, measured, queries

ROOT = Path(__file__).parent.parent.parent
REAL = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "hansard"
ASKED = Path(__file__).with_suffix(".toml")
TABLES = {"1901-05-09.csv": "1901-05-09", "1992-02-25.csv": "1992-02-25"}
"""The tables of speeches, both of the Senate, and their days."""

ALONE: tuple[tuple[str, Mode], ...] = (("words", "bm25"), ("meaning", "dense"))
IDS = "SELECT DISTINCT ?speech ?id WHERE { ?speech a kg:Speech ; dcterms:identifier ?id }"


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Ask the thirty questions of all days together; each counts as answered by one speech."""
    if not REAL.is_dir():
        print(f"speeches of real days are not looked for: there is no {REAL}")
        return
    with KnowledgeGraph.open(cached(), Settings(data_dir=cached(), _env_file=None)) as kg:
        load(kg, "hansard", [str(path) for path in sorted(REAL.glob("*.xml"))])
        for name, day in TABLES.items():
            load(kg, "hansard", [str(REAL / "csv" / name)], chamber="Senate", date=day)
        print(f"{kg.search.status().pending_vectors} of {kg.search.status().units} chunks to embed", flush=True)
        kg.search.wait()
        found = kg.query(IDS).result
        assert isinstance(found, Rows)
        ids = {term_text(row["speech"]): term_text(row["id"]) for row in found}
        asked = queries(ASKED)
        if unknown := {each for query in asked for each in query.expect} - set(ids.values()):
            raise SystemExit(f"{ASKED}: no speeches {', '.join(sorted(unknown))}; the days in {REAL} are others")
        tool = measured(asked, by_tool(kg, ids))
        size = f"{len(asked)} questions about {len(ids):,} speeches"
        for name, mode in ALONE:
            alone = measured(asked, by_index(kg, mode, ids))
            yield Comparison.at_least(f"{size}, beside {name} alone: recall at 10", tool.recall, alone.recall, "", 1.0)
            yield Comparison(f"{size}, beside {name} alone: mean reciprocal rank", tool.mrr, alone.mrr, "")


def cached() -> Path:
    """Return the data directory of the days; that which other code made is dropped."""
    code = hashlib.sha256()
    for folder in ("kg/store", "kg/search", "loaders/hansard"):
        for file in sorted((ROOT / folder).glob("*.py")):
            code.update(file.read_bytes())
    place = user_cache_path("quadcite") / "benchmarks" / "sittings"
    wanted = place / code.hexdigest()[:16]
    if not wanted.is_dir():
        shutil.rmtree(place, ignore_errors=True)
        wanted.mkdir(parents=True)
    return wanted
