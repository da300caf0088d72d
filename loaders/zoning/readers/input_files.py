"""Detection of codes among files: the format of each, the files that belong together, and its table of contents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers.file_text import parse_json, read_file
from loaders.readers.headings import SECTION, parse_heading
from loaders.readers.html_tree import normalize_space
from loaders.zoning.readers import dc, html_code, json_entries, municode, plain_text
from loaders.zoning.readers.code_model import Code, Section
from loaders.zoning.readers.section_builder import is_same_heading, prefix_warnings

FORMATS: Final = (".html", ".htm", ".txt", ".pdf", ".xml", ".json")
"""File extensions of codes."""

Kind = Literal["html", "text", "pdf", "dc", "municode", "json"]
_START: Final = 2_048
_PARSERS: Final = {
    "html": html_code.parse,
    "text": plain_text.parse,
    "pdf": plain_text.parse_pdf,
    "municode": municode.parse,
    "json": json_entries.parse,
}
_DOCUMENTS: Final[Sequence[tuple[Kind, Sequence[str]]]] = (
    ("html", (".html", ".htm")),
    ("text", (".txt",)),
    ("pdf", (".pdf",)),
)
"""Formats of one file each. Of files with one name, the first format has the most structure."""


@dataclass(frozen=True, slots=True)
class Input:
    """A code, or one title of it: its main file, and the files that belong to it."""

    kind: Kind
    path: Path
    parts: Sequence[Path] = ()
    """The sections of an index. `Section.file` names one of them."""
    contents: Path | None = None
    """Its table of contents: ``{"sections": [{"id": ..., "label": ...}]}``."""

    def read(self) -> Code:
        """Parse the code, and compare it with its table of contents. Raises SourceError for an invalid file."""
        if self.kind == "dc":
            return dc.parse(self.path)
        data, name = read_file(self.path), self.path.name
        if not data.strip():
            raise SourceError(f"{self.path}: The file is empty.")
        code = _PARSERS[self.kind](data, name)
        labels = None if self.contents is None else _get_labels(self.contents)
        if labels is None:
            return code
        told = prefix_warnings(find_differences(labels, code.sections), name)
        return replace(code, warnings=(*code.warnings, *told))


@dataclass(frozen=True, slots=True)
class Found:
    """The kinds of the given files."""

    inputs: Sequence[Input]
    others: Sequence[Path]
    """Files that are not codes, but may be tables."""
    warnings: Sequence[str] = ()


def find_codes(paths: Sequence[Path]) -> Found:
    """Find the codes among `paths`. Raises SourceError for a file that cannot be opened."""
    by_ending: defaultdict[str, list[Path]] = defaultdict(list)
    for path in paths:
        by_ending[path.suffix.lower()].append(path)
    inputs: list[Input] = []
    warnings: list[str] = []
    contents = {path for path in by_ending[".json"] if _get_labels(path) is not None}
    by_name: defaultdict[str, list[Path]] = defaultdict(list)
    for kind, endings in _DOCUMENTS:
        own = [path for ending in endings for path in by_ending[ending]]
        for path in own:
            if (other := next((each for each in by_name[path.stem] if _is_near(path, each)), None)) is not None:
                warnings.append(f"{path}: Skipped. {other} is the same code with tables and lists.")
                continue
            names = (f"toc_{path.stem}.json", f"{path.stem}.toc.json")
            places = (folder / name for name in names for folder in (path.parent, path.parent.parent))
            inputs.append(Input(kind, path, contents=next((place for place in places if place in contents), None)))
        for path in own:
            by_name[path.stem].append(path)
    used = {each.contents for each in inputs}
    warnings += [f"{path}: Table of contents without a code." for path in contents if path not in used]
    others = [path for path in paths if path.suffix.lower() not in FORMATS]
    indexes = [path for path in by_ending[".xml"] if dc.is_index(read_file(path)[:_START])]
    top = [path for path in indexes if not any(_is_below(path, index) for index in indexes)]
    for index in top:
        inputs.append(Input("dc", index, [path for path in by_ending[".xml"] if _is_below(path, index)]))
    others += [path for path in by_ending[".xml"] if path not in top and not any(_is_below(path, one) for one in top)]
    for path in by_ending[".json"]:
        value = _load(path)
        if path in contents or _is_list_with(value, "file", "toc"):
            continue
        if isinstance(value, dict) and isinstance(value.get("nodes"), list) and isinstance(value.get("docs"), list):
            inputs.append(Input("municode", path))
        elif json_entries.is_code(value) or _is_list_with(value, "section_id"):
            inputs.append(Input("json", path))
        else:
            others.append(path)
    order = {path: number for number, path in enumerate(paths)}
    return Found(sorted(inputs, key=lambda each: order[each.path]), others, warnings)


def find_differences(labels: Iterable[str], sections: Sequence[Section]) -> Sequence[str]:
    """Compare the labels in a table of contents with the sections of a code, and describe each difference."""
    listed: dict[str, str] = {}
    warnings = []
    for label in labels:
        if (heading := parse_heading(normalize_space(label))) is None:
            warnings.append(f"{quoted(label)} in the table of contents is not a heading with a number.")
        else:
            listed.setdefault(heading.number, heading.title)
    found = {each.number: each.title for each in reversed(sections) if each.kind == SECTION and each.number}
    every = {each.number for each in sections}
    for number, title in listed.items():
        if number not in every:
            warnings.append(f"{number} {quoted(title)} is in the table of contents, but not in the text.")
        elif not is_same_heading(title, other := found.get(number, title)):
            warnings.append(f"{number} is {quoted(title)} in the table of contents, but {quoted(other)} in the text.")
    lacking = (number for number in found if number not in listed)
    return [
        *warnings,
        *(f"{each} {quoted(found[each])} is in the text, but not in the table of contents." for each in lacking),
    ]


def _is_near(path: Path, other: Path) -> bool:
    """Whether a file is in the folder of the other, or in a folder next to it."""
    return path.parent in (other.parent, other.parent.parent) or path.parent.parent == other.parent


def _is_below(path: Path, index: Path) -> bool:
    return path != index and path.is_relative_to(index.parent)


def _load(path: Path) -> Any:
    try:
        return parse_json(read_file(path), path.name)[0]
    except SourceError:
        return None


def _get_labels(path: Path) -> Sequence[str] | None:
    """The labels of the sections in a table of contents. None for any other file."""
    value = _load(path)
    sections: Any = value.get("sections") if isinstance(value, dict) else None
    # Without entries, it is a code without sections if it names a municipality.
    empty = sections == [] and "municipality" not in value
    told = _is_list_with(sections, "id", "label") and not any("section_id" in each for each in sections)
    return [str(each["label"]) for each in sections] if empty or told else None


def _is_list_with(value: Any, *keys: str) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) and e.keys() >= {*keys} for e in value)
