"""Detection of codes among files: the format of each, and the files that belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from kg.errors import SourceError
from loaders.readers.file_text import parse_json, read_file
from loaders.zoning.readers import dc, html_code, json_entries, municode, plain_text
from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.contents_file import find_contents_link, parse_contents

FORMATS: Final = (".html", ".htm", ".txt", ".pdf", ".xml", ".json")
"""File extensions of codes."""

Kind = Literal["html", "text", "pdf", "dc", "municode", "json"]
_START: Final = 2_048
_PARSERS: Final = {"html": html_code.parse, "text": plain_text.parse, "pdf": plain_text.parse_pdf}


@dataclass(frozen=True, slots=True)
class Input:
    """A code, or one title of it: its main file, and the files that belong to it."""

    kind: Kind
    path: Path
    parts: Sequence[Path] = ()
    """Additional files: a table of contents, the sections of an index. `Section.file` names one of them."""
    contents: Path | None = None
    """The table of contents, which is also in `parts`."""

    def read(self, municipality: str | None = None, state: str | None = None) -> Code:
        """Parse the code. The arguments override the values in the file.

        Raises SourceError for an invalid file.
        """
        if self.kind == "dc":
            return dc.parse(self.path)
        data, name = read_file(self.path), self.path.name
        if not data.strip():
            raise SourceError(f"{self.path}: The file is empty.")
        if (parse := _PARSERS.get(self.kind)) is not None:
            listed = None
            problems: tuple[str, ...] = ()
            if self.contents is not None:
                try:
                    listed = parse_contents(read_file(self.contents), self.contents.name)
                except SourceError as error:
                    problems = (str(error),)
            code = parse(data, name, listed, municipality=municipality, state=state)
            return code if not problems else _told(code, problems)
        parse_json = municode.parse if self.kind == "municode" else json_entries.parse
        return parse_json(data, name, municipality=municipality, state=state)


def _told(code: Code, problems: Sequence[str]) -> Code:
    return replace(code, warnings=(*code.warnings, *problems))


@dataclass(frozen=True, slots=True)
class Found:
    """The kinds of the given files."""

    inputs: Sequence[Input]
    others: Sequence[Path]
    """Files that are not codes, but may be tables."""
    warnings: Sequence[str] = field(default_factory=tuple)


def find_codes(paths: Sequence[Path]) -> Found:
    """Find the codes among `paths`. Raises SourceError for a file that cannot be opened."""
    by_ending: Mapping[str, list[Path]] = {
        ending: [path for path in paths if path.name.lower().endswith(ending)] for ending in (*FORMATS,)
    }
    inputs: list[Input] = []
    warnings: list[str] = []
    json_files = {path: _json(path) for path in by_ending[".json"]}
    contents = {path for path, value in json_files.items() if _is_contents(value)}
    pages = [*by_ending[".html"], *by_ending[".htm"]]
    for path in pages:
        listed = _contents_of(path, find_contents_link(read_file(path)[:20_000]), contents)
        inputs.append(Input("html", path, (listed,) if listed else (), listed))
    stems: dict[str, list[Path]] = {}
    for path in pages:
        stems.setdefault(path.stem, []).append(path)
    kinds: tuple[tuple[Kind, str], ...] = (("text", ".txt"), ("pdf", ".pdf"))
    for kind, ending in kinds:
        for path in by_ending[ending]:
            page = next((each for each in stems.get(path.stem, ()) if _is_near(path, each)), None)
            if page is not None:
                warnings.append(f"{path}: Skipped. {page} is the same code with tables and lists.")
                continue
            listed = _contents_of(path, None, contents)
            inputs.append(Input(kind, path, (listed,) if listed else (), listed))
        for each in by_ending[ending]:
            stems.setdefault(each.stem, []).append(each)
    others = list(_documents(by_ending[".xml"], inputs))
    for path, value in json_files.items():
        if path in contents or _is_list_of_contents(value):
            continue
        if isinstance(value, dict) and isinstance(value.get("nodes"), list) and isinstance(value.get("docs"), list):
            inputs.append(Input("municode", path))
        elif json_entries.is_code(value) or _is_list_of_sections(value):
            inputs.append(Input("json", path))
        else:
            others.append(path)
    used = {each.contents for each in inputs}
    warnings += [f"{path}: Table of contents without a code." for path in contents if path not in used]
    taken = {path for ending in FORMATS for path in by_ending[ending]}
    others += [path for path in paths if path not in taken]
    order = {path: number for number, path in enumerate(paths)}
    return Found(tuple(sorted(inputs, key=lambda each: order[each.path])), tuple(others), tuple(warnings))


def _is_near(path: Path, other: Path) -> bool:
    """Whether a file is in the folder of the other, or in a folder next to it."""
    return path.parent in (other.parent, other.parent.parent) or path.parent.parent == other.parent


def _json(path: Path) -> Any:
    try:
        return parse_json(read_file(path), path.name)[0]
    except SourceError:
        return None


def _is_contents(value: object) -> bool:
    sections = value.get("sections") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(sections, list):
        return False
    # Without entries, it is a code without sections if it names a municipality.
    return (bool(sections) or "municipality" not in value) and all(
        isinstance(each, dict) and {"id", "label"} <= each.keys() and "section_id" not in each for each in sections
    )


def _is_list_of_contents(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(e, dict) and {"file", "toc"} <= e.keys() for e in value)
    )


def _is_list_of_sections(value: object) -> bool:
    return _is_list_with(value, {"section_id"})


def _is_list_with(value: object, keys: set[str]) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) and keys <= e.keys() for e in value)


def _contents_of(path: Path, link: str | None, contents: set[Path]) -> Path | None:
    """Find the table of contents that a file links to, or that has the same name, in its folder or the one above."""
    names = [link.rpartition("/")[2]] if link else []
    names += [f"toc_{path.stem}.json", f"{path.stem}.toc.json"]
    places = [folder / name for name in names for folder in (path.parent, path.parent.parent)]
    return next(
        (place for place in places if place in contents or (place.is_file() and _is_contents(_json(place)))), None
    )


def _documents(paths: Sequence[Path], inputs: list[Input]) -> Iterator[Path]:
    """Add the index files of the D.C. Code among XML files as inputs, and yield the files that belong to none."""
    indexes = []
    for path in paths:
        try:
            with path.open("rb") as stream:
                if dc.is_index(stream.read(_START)):
                    indexes.append(path)
        except OSError as error:
            raise SourceError(f"{path}: Cannot read the file ({error.strerror}).") from error
    top = [path for path in indexes if not any(_is_below(path, other) for other in indexes)]
    left = set(paths) - set(top)
    for index in top:
        parts = sorted(path for path in left if _is_below(path, index))
        left -= set(parts)
        inputs.append(Input("dc", index, tuple(parts)))
    yield from (path for path in paths if path in left)


def _is_below(path: Path, index: Path) -> bool:
    return path != index and path.is_relative_to(index.parent)
