"""Count the lines and tokens of each package, and compare them with `code_size.json` (``make size``).

Tokens are names, operators, numbers and strings, as `tokenize` counts them: comments and the layout are free, and long
lines save nothing.

The record is a ratchet: the code may be as large as it says, and each entry only goes down. ``make size ARGS=--record``
lowers it to the size of the code. A change that has to raise it edits the file, and its commit says what it buys.
"""

from __future__ import annotations

import io
import json
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
RECORD: Final = Path(__file__).with_suffix(".json")
COUNTED: Final = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
MAX_LINES: Final = 600
"""The most lines of a module of kg and loaders. The record names the modules that are longer."""


def count(folder: Path) -> tuple[int, int]:
    """Count the lines and the tokens of the Python files in a folder, or of a file."""
    paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
    texts = [path.read_text("utf-8") for path in paths]
    tokens = (token for text in texts for token in tokenize.generate_tokens(io.StringIO(text).readline))
    return sum(text.count("\n") for text in texts), sum(token.type in COUNTED for token in tokens)


def measure() -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Return the lines and tokens of each package, and the lines of each module of kg and loaders that is too long."""
    packages, modules = {"tests": count(ROOT / "tests")}, dict[str, int]()
    for top in ("kg", "loaders"):
        for path in sorted((ROOT / top).rglob("*.py")):
            lines, tokens = count(path)
            for name in (top, f"{top}/{path.relative_to(ROOT).parts[1]}"):
                before = packages.get(name, (0, 0))
                packages[name] = before[0] + lines, before[1] + tokens
            if lines > MAX_LINES:
                modules[path.relative_to(ROOT).as_posix()] = lines
    return packages, modules


def find_growth(
    record: Mapping[str, Mapping[str, int]], packages: Mapping[str, tuple[int, int]], modules: Mapping[str, int]
) -> list[str]:
    """List what is larger than the record allows, and entries for modules that are short by now."""
    grown = [
        f"{name} has {packages[name][1]:,} tokens. tests/code_size.json allows {most:,}."
        for name, most in record["tokens"].items()
        if packages[name][1] > most
    ]
    grown += [
        f"{name} has {lines:,} lines. It may have {record['modules'].get(name, MAX_LINES):,}."
        for name, lines in modules.items()
        if lines > record["modules"].get(name, MAX_LINES)
    ]
    short = record["modules"].keys() - modules.keys()
    return grown + [f"{name} has at most {MAX_LINES} lines. Run make size ARGS=--record." for name in sorted(short)]


def read_record() -> dict[str, dict[str, int]]:
    """Read the recorded sizes: ``tokens`` by package, and ``modules``, the lines of those above `MAX_LINES`."""
    record: dict[str, dict[str, int]] = json.loads(RECORD.read_text("utf-8"))
    return record


def lower(
    record: Mapping[str, Mapping[str, int]], packages: Mapping[str, tuple[int, int]], modules: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Return the record with each entry at most as large as the code."""
    return {
        "tokens": {name: min(most, packages[name][1]) for name, most in record["tokens"].items()},
        "modules": {name: min(most, modules[name]) for name, most in record["modules"].items() if name in modules},
    }


def main() -> int:
    """Print the sizes; with ``--record``, lower the record to them. Return 1 if the code is larger than the record."""
    packages, modules = measure()
    record = read_record()
    if "--record" in sys.argv[1:]:
        record = lower(record, packages, modules)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(f"{'package':32} {'lines':>10} {'tokens':>12}")
    for name, (lines, tokens) in sorted(packages.items()):
        print(f"{name:32} {lines:10,} {tokens:12,}")
    grown = find_growth(record, packages, modules)
    for each in grown:
        print(each, file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
