"""How fast a Wikibase JSON dump becomes committed quads, beside `Store.extend` of the same quads.

``python -m tests.benchmarks wikibase [-- --entities N]``. Each measurement runs in a process of its own. The quads that
are counted are those of the entities, of what they share and of their SKOS views; provenance is written besides.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyoxigraph

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import PROV_GRAPH
from loaders.sources import load
from tests.benchmarks.comparison import Comparison

ENTITIES = 4_000


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="wikibase")
    parser.add_argument("--entities", type=int, default=ENTITIES)
    entities: int = parser.parse_args(arguments).entities
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        source = Path(folder) / "dump.json.gz"
        write_dump(source, entities)
        bare = measure("bare", source)
        raw = measure("raw", Path(str(bare["dump"])))
        gated = measure("gated", source)
    theirs = raw["quads"] / raw["seconds"]
    size = f"{entities:,} entities"
    yield Comparison.at_least(
        f"Wikibase JSON to committed quads ({size})", bare["quads"] / bare["seconds"], theirs, "quads/s", 0.35
    )
    yield Comparison("the same by processor time", bare["quads"] / bare["cpu"], raw["quads"] / raw["cpu"], "quads/s")
    yield Comparison("the same through the gate", gated["quads"] / gated["seconds"], theirs, "quads/s")
    yield Comparison("entities", entities / bare["seconds"], None, "entities/s")
    yield Comparison.at_most("peak memory of the load", bare["mib"], "MiB", 1024, raw["mib"])


def write_dump(path: Path, entities: int) -> None:
    """Write made-up items as a dump has them: labels in five languages, a dozen statements, shared references."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(5_000)]

    def snak(property_id: str) -> dict[str, Any]:
        number = int(property_id[1:])
        kinds: list[tuple[str, str, Any]] = [
            ("wikibase-item", "wikibase-entityid", {"entity-type": "item", "id": f"Q{chance.randint(1, entities)}"}),
            ("string", "string", " ".join(chance.choices(words, k=4))),
            ("external-id", "string", chance.choice(words) + str(chance.randint(0, 10**6))),
            (
                "time",
                "time",
                {
                    "time": f"+20{chance.randint(10, 40)}-{chance.randint(1, 12):02d}-01T00:00:00Z",
                    "timezone": 0,
                    "before": 0,
                    "after": 0,
                    "precision": 11,
                    "calendarmodel": "http://www.wikidata.org/entity/Q1985727",
                },
            ),
        ]
        datatype, kind, value = kinds[number % 4]
        return {
            "snaktype": "value",
            "property": property_id,
            "datatype": datatype,
            "datavalue": {"type": kind, "value": value},
        }

    references = [
        {"hash": f"{chance.getrandbits(160):040x}", "snaks": {"P8": [snak("P8")], "P7": [snak("P7")]}}
        for _ in range(max(entities // 2, 1))
    ]

    def entity(number: int) -> dict[str, Any]:
        own = f"Q{number}"
        claims: dict[str, Any] = {}
        for position in range(12):
            property_id = f"P{8 + chance.randint(0, 39)}"
            guid = str(uuid.UUID(int=chance.getrandbits(128)))
            claims.setdefault(property_id, []).append(
                {
                    "mainsnak": snak(property_id),
                    "type": "statement",
                    "rank": "normal",
                    "id": f"{own}${guid}",
                    "qualifiers": {"P9": [snak("P9")]} if position % 3 == 0 else {},
                    "references": [chance.choice(references)] if position % 2 else [],
                }
            )
        labels = {
            code: {"language": code, "value": " ".join(chance.choices(words, k=2))}
            for code in ("en", "pt", "fr", "de", "es")
        }
        return {
            "type": "item",
            "id": own,
            "lastrevid": number,
            "modified": "2030-01-01T00:00:00Z",
            "labels": labels,
            "descriptions": labels,
            "aliases": {},
            "claims": claims,
            "sitelinks": {},
        }

    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as stream:
        stream.write("[\n")
        for number in range(1, entities + 1):
            stream.write(json.dumps(entity(number)) + (",\n" if number < entities else "\n"))
        stream.write("]\n")


def measure(mode: str, source: Path) -> dict[str, Any]:
    """Run one measurement in a child process and return what it found."""
    command = [sys.executable, "-m", "tests.benchmarks.wikibase", mode, str(source)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class NoIndex:
    """There is no text to index in entities."""

    def status(self) -> Any:
        return argparse.Namespace(pending_vectors=0)


def loaded(source: Path, gate: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        settings = Settings(_env_file=None, data_dir=Path(folder) / "data")
        with OxigraphStore(settings.data_dir) as store:
            kg = KnowledgeGraph(settings, store, cast(Any, NoIndex()), cast(Any, None))
            begun, used = time.perf_counter(), time.process_time()
            report = load(kg, "wikibase", [str(source)], gate=gate, index=False)
            seconds, cpu = time.perf_counter() - begun, time.process_time() - used
            assert not report.rejections, report.rejections[:3]
            mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            dump = source.with_suffix(".nq")
            if not gate:
                with dump.open("wb") as output:
                    store.dump(output, pyoxigraph.RdfFormat.N_QUADS)
            return {"seconds": seconds, "cpu": cpu, "quads": report.quads_added, "mib": mib, "dump": str(dump)}


def extended(source: Path) -> dict[str, Any]:
    """Seconds that `Store.extend` takes for the quads of a load; reading them is not counted."""
    quads = [quad for quad in pyoxigraph.parse(path=source) if quad.graph_name != PROV_GRAPH]
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        store = pyoxigraph.Store(folder)
        begun, used = time.perf_counter(), time.process_time()
        for start in range(0, len(quads), 50_000):
            store.extend(quads[start : start + 50_000])
        store.flush()
        seconds, cpu = time.perf_counter() - begun, time.process_time() - used
    return {
        "seconds": seconds,
        "cpu": cpu,
        "quads": len(quads),
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    mode, place = sys.argv[1], Path(sys.argv[2])
    print(json.dumps(extended(place) if mode == "raw" else loaded(place, mode == "gated")))
