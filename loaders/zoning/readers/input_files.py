"""Detection of codes among files: the format of each, and the files that belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kg.errors import SourceError
from loaders.readers.file_text import parse_json, read_file
from loaders.zoning.readers import dc, html_code, json_entries, municode, plain_text
from loaders.zoning.readers.code_model import Code

_START: Final = 2_048
_PARSERS: Final = {
    "html": html_code.parse,
    "text": plain_text.parse,
    "pdf": plain_text.parse_pdf,
    "municode": municode.parse,
    "json": json_entries.parse,
}
"""Parsers of one file each. Of documents with one name, the first format has the most structure."""
_RANKS: Final = tuple(_PARSERS)
_DOCUMENTS: Final = {".html": "html", ".htm": "html", ".txt": "text", ".pdf": "pdf"}
FORMATS: Final = (*_DOCUMENTS, ".xml", ".json")
"""File extensions of codes."""


@dataclass(frozen=True, slots=True)
class Input:
    """A code, or one title of it: its format and its main file."""

    kind: str
    path: Path

    def read(self) -> Code:
        """Parse the code. Raises SourceError for an invalid file."""
        if self.kind == "dc":
            return dc.parse(self.path)
        data = read_file(self.path)
        if not data.strip():
            raise SourceError(f"{self.path}: The file is empty.")
        return _PARSERS[self.kind](data, self.path.name)


@dataclass(frozen=True, slots=True)
class Found:
    """The kinds of the given files."""

    inputs: Sequence[Input]
    others: Sequence[Path]
    """Files that are not codes, but may be tables."""
    warnings: Sequence[str] = ()


def find_codes(paths: Sequence[Path]) -> Found:
    """Find the codes among `paths`. Raises SourceError for a file that cannot be opened."""
    inputs: list[Input] = []
    others: list[Path] = []
    warnings: list[str] = []
    by_name: defaultdict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path in paths:
        if (document := _DOCUMENTS.get(path.suffix.lower())) is not None:
            by_name[path.stem].append((_RANKS.index(document), path))
    indexes = [path for path in paths if path.suffix.lower() == ".xml" and dc.is_index(read_file(path)[:_START])]
    for path in paths:
        ending = path.suffix.lower()
        kind = _find_json_kind(path) if ending == ".json" else "dc" if path in indexes else _DOCUMENTS.get(ending)
        same = by_name[path.stem] if ending in _DOCUMENTS else ()
        better = next((each for rank, each in same if rank < _RANKS.index(str(kind)) and _is_near(path, each)), None)
        if better is not None:
            warnings.append(f"{path}: Skipped. {better} is the same code with tables and lists.")
        elif kind == "contents":
            if len(paths) == 1:
                warnings.append(f"{path}: Skipped. It is a table of contents without text.")
        elif ending == ".xml" and any(path != index and path.is_relative_to(index.parent) for index in indexes):
            continue
        elif kind is None:
            others.append(path)
        else:
            inputs.append(Input(kind, path))
    return Found(inputs, others, warnings)


def _is_near(path: Path, other: Path) -> bool:
    """Whether a file is in the folder of the other, or in a folder next to it."""
    return path.parent in (other.parent, other.parent.parent) or path.parent.parent == other.parent


def _find_json_kind(path: Path) -> str | None:
    try:
        value = parse_json(read_file(path), path.name)[0]
    except SourceError:
        return None
    given = value if isinstance(value, dict) else {}
    sections = given.get("sections")
    # Without entries, it is a code without sections if it names a municipality.
    is_empty = sections == [] and "municipality" not in given
    if is_empty or _is_list_with(sections, "id", "label") or _is_list_with(value, "file", "toc"):
        return "contents"
    if isinstance(given.get("nodes"), list) and isinstance(given.get("docs"), list):
        return "municode"
    return "json" if json_entries.is_code(value) or _is_list_with(value, "section_id") else None


def _is_list_with(value: Any, *keys: str) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) and e.keys() >= {*keys} for e in value)
