"""JSON files of climate documents as tables: each object, or each item of an array in it, is a row of its layout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kg.errors import SourceError
from kg.text import quoted
from loaders.climate.layouts import Layout, Layouts, LeftOutError, UnknownLayoutError
from loaders.readers.excerpts import cut as cut_tables
from loaders.readers.formats import NO_OBJECT, Row, Sheet, build_json_row, flatten, json_lines, text_of_cell
from loaders.readers.json_stream import parse_elements

ENDINGS: Final = (".json", ".jsonl", ".ndjson")
_SAMPLE: Final = 1000
_DEEPEST: Final = 12
"""Maximum wrappers around a record."""

Object = Mapping[str, Any]
"""The members of an object, those of nested objects with dotted names."""


def cut(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Copy rows as `excerpts.cut` does; of JSON, elements, each on a line. Raises SourceError and OSError."""
    if path.suffix.lower() != ".json":
        cut_tables(path, wanted)
        return
    numbers = {number for each in wanted.values() for number in each}
    kept = {each.number: each.text for each in parse_elements(path) if each.number in numbers}
    if absent := numbers - kept.keys():
        raise SourceError(f"{path}: no element {min(absent)} (any more)")
    for target, chosen in wanted.items():
        # In JSON, line ends are between tokens alone.
        lines = (re.sub(r"[\r\n]+", " ", kept[number]) + "\n" for number in chosen)
        target.write_bytes("".join(lines).encode(errors="backslashreplace"))


class Objects:
    """The objects of a JSON file, by layout. The file is read once for each layout that its objects have."""

    def __init__(self, path: Path, layouts: Layouts) -> None:
        """Raises SourceError if the file is empty, or none of the first objects has a layout."""
        self._path: Final = path
        self._layouts: Final = layouts
        self._found: Final[dict[str, Layout]] = {}
        """The layouts of the objects that were read so far."""
        self._first: Layout | None = None
        """The layout of the objects that have none."""
        if path.stat().st_size == 0:
            raise SourceError(f"{path}: the file is empty")
        columns: dict[str, None] = {}
        problem = "no object"
        for number, value, _ in islice(self._read(), _SAMPLE):
            if isinstance(value, str):
                problem = f"Element {number} {value}"
            else:
                columns.update(dict.fromkeys(value))
        if not columns:
            raise UnknownLayoutError(f"{path}: none of the first elements is a JSON object with members. {problem}.")
        if not self._found:
            self._note(layouts.detect(path, columns))

    def sheets(self) -> Iterator[tuple[Layout, Sheet]]:
        """Yield a sheet for each layout. It must be read before the next one is asked for.

        Raises SourceError if no object has a layout with fields.
        """
        if self._first is None:
            for _ in self._read():
                pass
        if self._first is None:
            raise LeftOutError(self._path, self._found.values())
        done: set[str] = set()
        while left := [layout for layout in self._found.values() if layout.name not in done]:
            done.add(left[0].name)
            if left[0].fields:
                yield left[0], Sheet(list[str](), partial(self._rows, left[0]))

    def _note(self, layout: Layout) -> None:
        self._found[layout.name] = layout
        if self._first is None and layout.fields:
            self._first = layout

    def _read(self) -> Iterator[tuple[int, Object | str, Layout | None]]:
        """Yield each object or problem with the number of the element that it is in, and its layout."""
        elements: Iterator[tuple[int, dict[str, Any] | str]]
        if self._path.suffix.lower() == ".json":
            elements = (
                (each.number, dict(each.value) if each.value else each.problem or NO_OBJECT)
                for each in parse_elements(self._path)
            )
        else:
            elements = json_lines(self._path)
        for number, value in elements:
            if isinstance(value, str):
                yield number, value, None
                continue
            for each, layout in self._unwrap(value, _DEEPEST):
                if layout is not None and layout.name not in self._found:
                    self._note(layout)
                yield number, each, layout

    def _unwrap(self, value: dict[str, Any], depth: int) -> Iterator[tuple[Object | str, Layout | None]]:
        """Yield the records in an object with their layouts: itself, or those in its wrappers if it has no layout."""
        members = dict(flatten(value))
        if (layout := self._layouts.find(members)) is not None:
            yield members, layout
            return
        inner = [value[name] for name in self._layouts.wrappers if isinstance(value.get(name), list | dict)]
        if depth == 0 or not inner:
            yield members, None
        for each in inner if depth else ():
            items = each if isinstance(each, list) else [each]
            if isinstance(each, dict) and self._is_index(each):
                items = list(each.values())
            for item in items:
                if isinstance(item, dict):
                    yield from self._unwrap(item, depth - 1)
                else:
                    yield NO_OBJECT, None

    def _is_index(self, value: dict[str, Any]) -> bool:
        """Whether the members of an object are records under their identifiers."""
        if any(name in value for name in self._layouts.wrappers) or self._layouts.find(dict(flatten(value))):
            return False
        return all(isinstance(each, dict) for each in value.values())

    def _rows(self, layout: Layout, wanted: Sequence[str], verbatim: str) -> Iterator[Row]:
        of_item = [
            (place, name)
            for place, name in enumerate(wanted)
            if any(name.startswith(f"{path}.") for path in layout.records)
        ]
        texts = [(wanted.index(each.column), each.column) for each in layout.fields.get("text", ())]
        for number, value, own in self._read():
            if (own or self._first) is not layout:
                continue
            if isinstance(value, str):
                yield Row(number, [None] * len(wanted), value)
                continue
            outer = [text_of_cell(value.get(name)) for name in wanted]
            for row, problem in _find_rows(layout, value) if layout.records else ((value, None),):
                cells = [*outer]
                for place, name in of_item:
                    cells[place] = text_of_cell(row.get(name))
                for place, name in texts:
                    text = row.get(name)
                    if text is None or isinstance(text, str):
                        continue
                    if layout.lines and isinstance(text, list) and all(isinstance(line, str) for line in text):
                        cells[place] = " ".join(map(str.strip, text))
                    else:
                        problem = f"has {quoted(name)} of a wrong type: text is expected"
                yield build_json_row(self._path, number, wanted, cells, problem)


def _find_rows(layout: Layout, value: Object) -> Iterator[tuple[Object, str | None]]:
    """Yield the items of the arrays of records in an object with their problems; the object itself if it has none."""
    empty = True
    for path in layout.records:
        items = value.get(path) or []
        for position, item in enumerate(items if isinstance(items, list) else [items]):
            empty = False
            if isinstance(item, dict):
                yield {f"{path}.#": position} | {f"{path}.{name}": cell for name, cell in flatten(item)}, None
            else:
                yield {}, f"has in {quoted(path)} an item that {NO_OBJECT}"
    if empty:
        yield value, None
