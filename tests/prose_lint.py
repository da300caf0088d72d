"""Check the English of docstrings, comments, messages and Markdown (``make lint``).

Plain technical English names the thing: an offset, a snapshot, a token. `RULES` lists words and constructions that
usually hide the noun, with what to write instead. Text in backticks or double quotes is not checked: it is code or a
quotation. A line that needs a rejected word ends with ``prose: ok`` in a comment.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

RULES: tuple[tuple[str, str], ...] = (
    (r"anew", "again"),
    (r"besides?", "next to; also; except"),
    (r"stands?|stood", "is; is stored"),
    (r"tells?|told", "reports; determines"),
    (r"says|saying", "states; reports; contains"),
    (r"whoever|whomever|whosoever", "the caller; the client; a user"),
    (r"whatever", "any; every; or name it"),
    (r"nor the like|nor any", "or similar"),
    (r"alike", "the same way"),
    (r"thereof|thereby|hereby|whence|thence|hither|upon|lest", "plain words"),
    (r"lies|hangs", "is"),
    (r"pass(?:es|ed|ing)? over", "skip"),
    (r"things?", "the noun: entity, record, node, value"),
    (r"(?<!there )is no (?!longer|more)\w+", "is not a ..."),
    (r"there (?:is|are) no '", "Unknown X 'x'. Available: ..."),
    (r"there (?:is|are): ", "Available: ..."),
    (r"return what", "the noun"),
    (r"what there is|what (?:is|it|they) (?:there|has|have|says?|knows?|gives?|takes?)", "the noun"),
    (r"what (?:the|a|an|its|each|people|somebody|anybody|is|was|are|were) \w+", "the noun"),
    (r"how (?:long|much|many) it (?:may|can)", "the noun: timeout, limit, size"),
    (r"by now|as yet|as it were|so to speak|as soon as not", "plain words"),
)
PATTERNS = tuple((re.compile(rf"(?<![\w-])(?:{rule})(?![\w-])", re.IGNORECASE), instead) for rule, instead in RULES)
UNCHECKED = {"kg/zoning_summaries/prompts.py", "kg/tools/wikidata/question_forms.py"}
"""Files with text that is part of the data: instructions whose hash summaries record, and questions of people."""

EXCEPTIONS = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|https?://\S+|\bstand-ins?\b")
CODE = re.compile(r"\A[^.,:;A-Z]{200,}\Z|\\[bdsw]|\(\?|\?\w+ |SELECT|PREFIX|^\s*<|://")


class Fault(NamedTuple):
    path: str
    line: int
    words: str
    instead: str


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file, each piece with the number of its first line."""
    source = path.read_text()
    if path.suffix != ".py":
        fenced = False
        for number, line in enumerate(source.splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced:
                yield number, line
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string and "type:" not in token.string:
            yield token.start[0], token.string
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) in docstrings or (node.value.count(" ") > 1 and not CODE.search(node.value)):
            yield node.lineno, node.value


def faults(path: Path) -> Iterator[Fault]:
    """Yield what is wrong with the prose of one file."""
    allowed = {number for number, line in enumerate(path.read_text().splitlines(), 1) if "prose: ok" in line}
    for first, text in texts(path):
        plain = EXCEPTIONS.sub(lambda found: re.sub(r"[^\n]", "_", found[0]), text)
        for pattern, instead in PATTERNS:
            for found in pattern.finditer(plain):
                line = first + plain.count("\n", 0, found.start())
                if line not in allowed:
                    yield Fault(path.relative_to(ROOT).as_posix(), line, " ".join(found[0].split()), instead)


def files() -> list[Path]:
    """Return the files whose prose is checked, those that ship first."""
    code = [path for folder in ("kg", "loaders") for path in sorted((ROOT / folder).rglob("*.py"))]
    pages = [path for path in sorted(ROOT.rglob("*.md")) if not {".venv", "node_modules"} & set(path.parts)]
    code = [path for path in code if path.relative_to(ROOT).as_posix() not in UNCHECKED]
    return [*code, *(path for path in pages if path.name != "CHANGELOG.md")]


def main() -> int:
    found = [fault for path in files() for fault in sorted(faults(path))]
    for fault in found:
        print(f"{fault.path}:{fault.line}: {fault.words!r}: {fault.instead}")
    print(f"{len(found)} faults of English" if found else "English: no fault found")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
