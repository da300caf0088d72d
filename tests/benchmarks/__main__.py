"""Run the benchmarks: `python -m tests.benchmarks [NAME...] [-- ARGUMENT...]`, all of them by default.

Each module has ``run(arguments: Sequence[str]) -> Iterable[Comparison]``; what follows ``--`` goes to it unread.
The exit code is 1 when a target was missed, 2 for a name that is not a benchmark.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from rich.console import Console

from kg.search.index_client import EdgeIndex
from tests.benchmarks.comparison import Comparison, table

BENCHMARKS = (
    "loading", "validation", "embedding", "search", "ranking", "relevance", "repair", "endpoint", "adversarial",
    "wikibase", "mentions", "concepts", "hansard", "speeches", "sittings", "summaries", "zoning", "ordinances",
    "districts", "secrets", "documents", "questions", "watching", "budget", "hybrid", "connectors",
    "pages", "wikidata", "mixtures", "languages", "authentication", "policies",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmarks, print a table for each, and return the exit code."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    names, rest = arguments[:split] or BENCHMARKS, arguments[split + 1 :]
    if unknown := [name for name in names if name not in BENCHMARKS]:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 160)
    missed = 0
    command = EdgeIndex.command
    for name in names:
        lines: list[Comparison] = list(importlib.import_module(f"tests.benchmarks.{name}").run(rest))
        EdgeIndex.command = command  # some benchmarks give the index a made-up embedder
        console.print(table(name, lines))
        missed += sum(line.met is False for line in lines)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
