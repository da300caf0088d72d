"""Print the lines and tokens of the code (``make size``), so that a change can state what it adds and removes.

Tokens are names, operators, numbers and strings, as `tokenize` counts them: comments and the layout are free.
"""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parent.parent
COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}


def count(folder: Path) -> tuple[int, int]:
    """Count the lines and the tokens of the Python files in a folder."""
    texts = [path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))]
    tokens = (token for text in texts for token in tokenize.generate_tokens(io.StringIO(text).readline))
    return sum(text.count("\n") for text in texts), sum(token.type in COUNTED for token in tokens)


if __name__ == "__main__":
    print(f"{'folder':8} {'lines':>10} {'tokens':>12}")
    for name in ("kg", "loaders", "tests"):
        lines, tokens = count(ROOT / name)
        print(f"{name:8} {lines:10,} {tokens:12,}")
