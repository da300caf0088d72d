"""Front matter of Markdown: the keys that a page states about itself before its text.

Only plain keys, strings and lists of strings are read, not the whole of YAML: its aliases and tags are for programs
that trust their input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_LONGEST: Final = 20_000
"""Maximum characters of front matter."""
_BEGIN: Final = re.compile(r"---[ \t]*\n")
_END: Final = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY: Final = re.compile(r"([A-Za-z][\w-]*+)[ \t]*+:(?:[ \t]++(.*+))?")
_ITEM: Final = re.compile(r"[ \t]*+-[ \t]++(.*+)")
_COMMENT: Final = re.compile(r"(?<![ \t])[ \t]++#.*+$")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The values of each key, in lower case, and the offset at which the text of the page begins."""

    values: Mapping[str, Sequence[str]]
    end: int

    def one(self, *keys: str) -> str | None:
        """Get the first value of the first of `keys` that has one."""
        return next((value for key in keys for value in self.values.get(key, ()) if value), None)

    def all(self, *keys: str) -> list[str]:
        """Get the values of `keys`, each once."""
        return list(dict.fromkeys(value for key in keys for value in self.values.get(key, ()) if value))


def parse_front_matter(text: str) -> FrontMatter:
    """Parse the front matter at the start of `text`. A text without any has no values and begins at 0."""
    begin = _BEGIN.match(text)
    end = None if begin is None else _END.search(text, begin.end(), begin.end() + _LONGEST)
    if begin is None or end is None:
        return FrontMatter({}, 0)
    values: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text[begin.end() : end.start()].split("\n"):
        if (key := _KEY.fullmatch(line)) is not None:
            current = values.setdefault(key[1].lower(), [])
            current += _parse_values((key[2] or "").rstrip(" \t"))
        elif (item := _ITEM.fullmatch(line)) is not None:
            current.append(_unquote(item[1]))
        elif line.strip() and not line.lstrip().startswith("#") and not line[0].isspace():
            # Two rules around paragraphs of text are no front matter.
            return FrontMatter({}, 0)
    return FrontMatter(values, end.end()) if values else FrontMatter({}, 0)


def _parse_values(text: str) -> list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [_unquote(part) for part in text[1:-1].split(",")]
    if text in ("", "|", ">", "|-", ">-", "~", "null"):
        return []
    return [_unquote(text)]


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].strip()
    return _COMMENT.sub("", text).strip()
