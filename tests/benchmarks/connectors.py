"""How long does it take to make and verify a signed service map, beside JSON and HMAC of the standard library?

The manifest has as many connectors as it may, with the four tools of Wikidata each.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kg.connectors.manifest import Connector, load_manifest
from kg.connectors.service_map import build_service_map, verify_service_map
from kg.settings import Settings
from tests.benchmarks.comparison import Comparison, median, timed
from tests.connectors.conftest import entry, settings_of

KEY = "a key of a benchmark"
LIMIT_MS = 50.0
ROUNDS = 50


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Make maps of 1 and of 64 connectors."""
    for count in (1, 64):
        settings = settings_of(
            Path(tempfile.gettempdir()), *(entry(id=f"c{number}") for number in range(count)), service_map_key=KEY
        )
        yield from measure(count, load_manifest(settings).connectors, settings)


def measure(count: int, connectors: Sequence[Connector], settings: Settings) -> Iterator[Comparison]:
    """Time the map of some connectors."""
    made = build_service_map(connectors, settings)
    rounds = range(ROUNDS)
    plain = median(timed(lambda _: sign_plainly(made), rounds))
    ours = median(timed(lambda _: build_service_map(connectors, settings), rounds))
    yield Comparison.at_most(f"{count:>2} connectors: map made and signed", ours, "ms", LIMIT_MS, plain)
    verified = median(timed(lambda _: verify_service_map(made, KEY.encode()), rounds))
    yield Comparison(f"{count:>2} connectors: map verified", verified, plain, "ms")


def sign_plainly(made: dict[str, Any]) -> str:
    """Sign with the standard library, whose JSON is canonical for such maps alone."""
    unsigned = {name: value for name, value in made.items() if name != "signature"}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()
