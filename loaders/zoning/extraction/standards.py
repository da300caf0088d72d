"""Dimensional standards: how large, high, dense or far from a line a code allows something to be.

They are in tables and in label lines: ``Minimum lot area: 7,500 square feet``, ``A minimum lot width of 60 feet``. The
label of a line, or of the heading above it, is the whole name of a dimension. Its subject, from the headings above it
too, is the lot, its yards or its main building. Sentences are not read.

In a table, a standard is a cell with one number, whose headers name one dimension. A row below a group row, and a
column below a spanning header, take their dimension from these. Any other cell of such a table is recorded as its
words, with the words of its headers and without a dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import (
    District,
    codes_in_title,
    parse_leading_codes,
)
from loaders.zoning.extraction.measures import (
    DimensionLabel,
    Measure,
    Standard,
    allows_unit,
    bound_of,
    find_measures,
    find_units,
    parse_label,
    parse_measure,
    type_in_unit,
)
from loaders.zoning.extraction.permission_matrices import (
    find_marks,
    find_notes,
    is_header_short,
    parse_matrix,
    strip_marks,
)
from loaders.zoning.extraction.section_scope import Places, Scope, is_place
from loaders.zoning.extraction.use_lists import HISTORY_NOTE, VERB, sentences_of
from loaders.zoning.readers.code_model import Cell, Section, Table
from loaders.zoning.readers.outline import Line, parse_lines

_OTHER: Final = re.compile(
    r"(?i)\b(?:signs?|signage|billboards?|fenc\w+|walls?|hedges?|parking|loading|drive\w*|aisles?|garages?|accessory|pools?"
    r"|towers?|antennas?|wireless|telecommunication\w*|landscap\w+|buffers?|screening|trees?|streets? (?:standards"
    r"|design)|sidewalks?|alleys?"
    r"|lighting|machines?|solar|wind|mobile homes?|manufactured homes?|recreational|vehicles?|kennels?"
    r"|animals?|chickens?|poles?"
    r"|nonconform\w+|definitions?|home occupations?|sheds?|decks?|porch\w*|projections?|encroach\w*|exceptions?"
    r"|storage|utilit\w+"
    r"|subdivision\w*|parks?|outdoor|temporary|flood\w*|riparian|slopes?|wetlands?|noise|monuments?"
    r"|visibility|pumps?|canop\w+|stormwater)\b",
)
"""Subjects other than the lot, its yards and its main building."""
_STANDARDS: Final = re.compile(
    r"(?i)\b(?:bulk|dimension\w*|area|yards?|heights?|setbacks?|lots?|coverage|density|intensity|standards?|requirements?"
    r"|regulations?|districts?|zones?|development|site|building|general|provisions)\b|^$",
)
_GENERIC: Final = re.compile(
    r"(?i)(?:\W|\b(?:bulk|dimension(?:s|al)?|area|yards?|heights?|setbacks?|lots?|coverage|density|intensity|standards?"
    r"|requirements?"
    r"|regulations?|restrictions|limitations|development|site|building|general|provisions|minimum|maximum|and|or"
    r"|the|of|for|placement|space|size|following|shall|apply|are|as follows|limits?|open|main|principal|location"
    r"|required|residential|an?|buildings?|in|district|zone|this|all|any|each|no|every|such|land|parcels?|uses|structures?)\b)+",
)
_PLACE: Final = re.compile(
    r"(?i)\b(?:in|within|for|of) (?:(?:the|an?|any|all|each|this) )?(?:[\w./&-]+,? ){0,9}?(?:districts?|zones?)\b"
)
_OF_BUILDINGS: Final = re.compile(
    r"(?i)(?:in )?(?:all |an? |any |each |the )?(?P<what>(?:[\w-]+ ){0,5}(?:dwellings?"
    r"|houses|developments?|buildings?|uses))",
)
_FOR: Final = re.compile(r"(?i)^(?:for |in the case of )(?:an? |all |any |each |the )?(?P<what>[^:;]{2,80}?)[:,]? *$")
_OF_SOME: Final = re.compile(r"(?i)\bfor (?:an? |all |any |each |the )?(?P<what>.{2,80})$")
"""The part of a title that restricts it: ``Standards for lots recorded before 1960``."""
_AFTER: Final = re.compile(
    r"[ .;,]*$|[ .,;]*(?:\(? ?(?:minimum|maximum|min\.?|max\.?) ?\)?|in (?:height|width|depth|area)|or (?:more|less"
    r"|greater))[ .;,]*$"
    r"|[.;]?(?: ?\(?(?:minimum|maximum|min\.?|max\.?)\)?)? ?(?P<case>(?:[,;(.] ?|(?:on|for|if|when|where|at|from"
    r"|measured|provided|except|unless|plus|minus|or|and|abutting|adjacent|along|to|in any|in the|with|each)\b).*)$",
    re.I | re.S,
)
_OF: Final = re.compile(r"(?i) ?(?:of|per|/|for (?:each|every)|times|x|by \d)\b")
_OF_LOT: Final = re.compile(r"(?i) ?of (?:the )?(?:total |gross |net )?(?:lot|site|parcel)(?: area)?\b")
_BOUND_LAST: Final = re.compile(
    r"(?i)\b(?:not (?:less|more|greater) than|at least|no (?:less|more) than|not to exceed|up to)\W*$"
)
_USES: Final = re.compile(r"(?i)\b(?:permitted|special|conditional|other|principal) uses?\b")
_BOUND_FIRST: Final = re.compile(r"(?i)^(?:(?:minimum|maximum|or (?:less|more)),? ?)+")
_NOTE: Final = re.compile(r"[(\[]?(\d{1,2}|[*†‡]{1,3})[)\]]?")
_STOREYS: Final = re.compile(r"(?i)[ ,]*(?:or|and|/|\() ?$")
_PARTS: Final = re.compile(r"(?<=[a-z)%])[.;] (?=[A-Z])(?<!sq\. )")
"""The end of one label and value before the next: ``Front: 30 feet. Side: 10 feet.``"""
_LONGEST: Final = 600
_HEAD_WORDS: Final = 8
_NEAR: Final = 30
"""Code points after a value that may state its bound."""
_BEFORE: Final = 14
"""Maximum words before the value."""
_NONE: Final = re.compile(
    r"(?i)(?:n/?a|none|no|not applicable|no (?:minimum|maximum|limit|requirement)|nr|nl|[-–—.]*)\.?"
)
_MARK: Final = re.compile(
    r"(?<=['′’%\w).\"]) ?(?:\((?P<letter>[a-z]{1,2}|\d{1,2})\)|[\[(]?(?P<mark>[*†‡]{1,3}|(?<=[ \[(])\d{1,2})[\])]?"
    r"|(?<=\d)(?P<plain>[a-z]))$"
)
_NO_CASE: Final = re.compile(
    r"(?i)(?:(?:min|max)(?:imum|\.)?|(?:zoning )?(?:districts?|zones?)|uses?|requirements?|standards?|regulations?"
    r"|dimensions?|values?|required|all(?: (?:uses|districts|lots|buildings))?|amount|limits?"
    r"|feet|\(?ft\.?\)?|\W|\d{0,2})*",
)
"""A header without a case or a use."""
_CASE: Final = re.compile(
    r"(?i)(?:with|without|w/|where|when|if|on|in|served|not served|abutting|adjacent|adjoining|at|to|from"
    r"|each|both|total|corner|interior|through|one side|per|between|next)\b",
)
"""The first word of a header that is for a case, and not for a use: ``With public sewer``."""
_DIGIT: Final = re.compile(r"\d")
_PAIR: Final = re.compile(r" ?/ ?")
_REFERENCE: Final = re.compile(
    r"(?i)\b(?:section|sec|chapter|article|page|ordinance|file|no|map|date|year|adopted)\b|§"
)
_VERB: Final = re.compile(r"(?i)\b(?:shall|must|may|is|are|will|has|have)\b|[.;]$")
_LONGEST_LINE: Final = 400
_WORDS_OF_CAPTION: Final = 12
_CAPTION: Final = 120
_LABELS: Final = 3
"""Maximum columns of labels."""


@dataclass(frozen=True, slots=True)
class _Path:
    """The words of the headings above a line."""

    group: str = ""
    """The words of the heading that names a dimension."""
    what: str | None = None
    """The use that the lines are for."""
    told: bool = True
    """Whether its lines are standards: the headings are about lots, yards and main buildings."""


def find_standards(
    section: Section,
    known: Mapping[str, District],
    above: Sequence[Section] = (),
    scopes: Sequence[Scope] | None = None,
) -> Sequence[Standard]:
    """Find the standards that a section sets: in label lines, then in tables.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first.
    `scopes` are those of the section.
    """
    places = Places(section, known, above, scopes)
    return [*_find_in_lines(section, known, above, places), *find_in_tables(section, known, places)]


def _find_in_lines(
    section: Section, known: Mapping[str, District], above: Sequence[Section], places: Places
) -> Iterator[Standard]:
    """Yield the standards in the label lines of a section."""
    # "M-1 Light Manufacturing District" is not about lights.
    names = re.compile("|".join(re.escape(each.name) for each in known.values() if each.name) or "(?!)", re.I)
    title = section.title.strip(" .:")
    about = _STANDARDS.search(title) or codes_in_title(title, known)
    if about and not any(_OTHER.search(names.sub(" ", each)) for each in (title, *(one.title for one in above))):
        group = title if parse_label(title) is not None else ""
        of = _OF_SOME.search(title)
        what = of["what"] if of and not (codes_in_title(title, known) or is_place(of["what"], known)) else ""
        path = _Path(group, None if _GENERIC.fullmatch(f"{what} ") else what)
        yield from _read_lines(section, known, places, parse_lines(section, places.starts), path)


def _read_lines(
    section: Section, known: Mapping[str, District], places: Places, lines: Sequence[Line], path: _Path
) -> Iterator[Standard]:
    text, current = section.text, path
    for line in lines:
        note = HISTORY_NOTE.search(text, line.body, line.end)
        words = text[line.body : note.start() if note else line.end].rstrip()
        if line.breaks:
            current = path
        holds = current if not line.label else path
        found: list[Standard] = []
        if holds.told and len(words) <= _LONGEST:
            first, last = line.body, line.body + len(words)
            scope = places.at(line.start)
            # "ASF: 10 units per acre" in another district is about dwellings of that name.
            codes = [code for code in parse_leading_codes(words, known)[0] or scope if code in (scope or known)]
            for end in [*(part.start() for part in _PARTS.finditer(text, first, last)), last] if codes else []:
                if end == last or any(find_measures(text, first, end)):  # not "Building coverage. Forty percent"
                    found += _read_line(text, first, end, holds, codes)
                    first = end + 2
        yield from found
        general = not line.label and _GENERIC.fullmatch(words) is not None and parse_label(words) is None
        below = holds if found else _parse_head(words, path if general else holds, known)
        heads = words.endswith(":") or (len(words.split()) <= _HEAD_WORDS and not VERB.search(words))
        if heads and not (line.label or found or line.below):
            current = below
        if line.below:
            yield from _read_lines(section, known, places, line.below, below)


def _parse_head(words: str, path: _Path, known: Mapping[str, District]) -> _Path:
    """Parse a line without a value as the heading of the lines below it."""
    words = " ".join(words.split())
    said = sentences_of(words)[-1]
    head = re.split(r"(?<=[a-z)]{2})[.:](?: |$)", said, maxsplit=1)[0].strip(" .:")
    if verb := VERB.search(head):
        subject = _PLACE.sub(" ", head[: verb.start()]).strip(" ,")
        if not _OTHER.search(subject) and _GENERIC.fullmatch(f"{subject} "):
            return path
        of = _OF_BUILDINGS.fullmatch(subject)
        return replace(path, what=of["what"]) if of else replace(path, told=False)
    if _OTHER.search(head):
        return replace(path, told=False)
    if parse_label(head) is not None:
        return replace(path, group=head)
    if parse_label(head, path.group) is not None:
        return replace(path, group=f"{head} {path.group}")
    if is_place(words, known) or _GENERIC.fullmatch(head):
        return path
    if _USES.search(head):
        return replace(path, what=head)
    return replace(path, told=False)


def _read_line(text: str, start: int, end: int, path: _Path, codes: Sequence[str]) -> Iterator[Standard]:
    """Read one line [start, end)."""
    given = list(find_measures(text, start, end))
    before = text[start : given[0].start].strip() if given else ""
    if not given or VERB.search(before) or len(before.split()) > _BEFORE or _OTHER.search(before):
        return
    label, what = _find_label(before, path)
    if label is None or not allows_unit(label.type, given[0].unit):
        return
    told, alternatives = given[:1], ""
    after = text[given[0].end : end]
    if share := _OF_LOT.match(after):
        after = after[share.end() :]
    elif (
        len(given) > 1
        and _STOREYS.fullmatch(text[given[0].end : given[1].start])
        and given[0].unit != given[1].unit
        and allows_unit(label.type, given[1].unit)
    ):
        told = given[:2]
        if re.search(r"(?i)\bor\b", text[given[0].end : given[1].start]):
            alternatives = text[given[0].start : given[1].end]
        after = text[given[1].end : end].lstrip(" )")
    rest = None if _OF.match(after) else _AFTER.match(after)
    if rest is None:
        return
    behind = _BOUND_FIRST.sub("", (rest["case"] or "").strip(" ,;.("))
    if (note := _NOTE.fullmatch(behind)) and (
        said := re.search(rf"^\(?{re.escape(note[1])}[.)]? +(\S[^\n]*)", text[end:], re.M)
    ):
        behind = said[1]
    if what is None and (of := _FOR.match(behind)) and not any(find_measures(behind)):
        what, behind = of["what"], ""
    conditions = [each for each in (label.case, alternatives, behind) if each and re.search(r"[^\W\d]", each)]
    bound = bound_of(f"{before} {after[:_NEAR]}") or label.bound
    for each in told:
        if each.value is not None:
            yield Standard(
                tuple(codes), type_in_unit(label.type, each.unit), before.strip(" :.") or path.group, bound,
                text[each.start : each.end], each.value, each.unit, what, conditions, each.start, each.end, "label",
            )  # fmt: skip


def _find_label(before: str, path: _Path) -> tuple[DimensionLabel | None, str | None]:
    """Find the dimension that the words before a value, and the headings above, name, and the use."""
    words = _BOUND_LAST.sub("", before.strip(" :–—-.")).strip(" :–—-.,")
    words = re.sub(r"(?i)^(?:an?|the)\b ", "", words)
    group = parse_label(path.group) if path.group else None
    if group is not None and (of := _FOR.match(words)):
        return group, of["what"]
    if words and (own := parse_label(words, path.group)) is not None:
        return own, path.what
    return (None, None) if words else (group, path.what)


@dataclass(frozen=True, slots=True)
class _Head:
    """The header of a row or a column."""

    words: str
    """Its own words."""
    group: str
    """The words of the group row, or of the spanning header."""
    codes: Sequence[str]
    """The districts that it names."""
    rest: str
    """Its words without these districts."""
    marks: Sequence[str]

    @property
    def path(self) -> str:
        """All its words."""
        return ": ".join(each for each in (self.group, self.words) if each)


def find_in_tables(section: Section, known: Mapping[str, District], places: Places) -> Iterator[Standard]:
    """Yield the standards in the tables of a section."""
    for table in section.tables:
        grid = table.grid()
        if grid and len(grid[0]) > 1 and parse_matrix(grid, known) is None:
            yield from _Reader(section, table, grid, known, places.at(table.start)).read()


class _Reader:
    """Reads one table."""

    def __init__(
        self,
        section: Section,
        table: Table,
        grid: Sequence[Sequence[Cell | None]],
        known: Mapping[str, District],
        around: Sequence[str],
    ) -> None:
        self._section, self._table, self._known, self._around, self._grid = section, table, known, around, grid
        self._notes = find_notes(section, table.end)
        self._caption = table.caption or _find_caption(section, table)

    def read(self) -> Iterator[Standard]:
        """Yield the standards."""
        grid = self._grid
        header = min(self._table.header_rows or 1, len(grid) - 1)
        if header == 1 and len(grid) > 2 and len({*map(id, grid[0])}) == 1:
            header = 2  # the first row is a title
        if header and is_header_short(grid, header):
            return
        labels = self._count_label_columns(header)
        columns = {place: self._head([row[place] for row in grid[:header]]) for place in range(labels, len(grid[0]))}
        rows = self._find_rows(header, labels)
        by_column = any(head.codes for head in columns.values())
        by_row = not by_column and any(head.codes for head in rows.values())
        named = any(parse_label(head.words, head.group) for head in (*columns.values(), *rows.values()))
        if not (named or self._is_of_numbers(rows, columns)):
            return
        for number, row in rows.items():
            for place, column in columns.items():
                cell = grid[number][place]
                codes = column.codes if by_column else row.codes if by_row else self._around
                if cell is None or not codes or not cell.text.strip():
                    continue
                yield from self._read_cell(cell, row, column, codes)

    def _is_of_numbers(self, rows: Iterable[int], columns: Iterable[int]) -> bool:
        """Whether many cells are numbers, so that the words of the table are worth quoting."""
        cells = naming.find_filled(self._grid[number][place] for number in rows for place in columns)
        words = [cell.text.strip() for cell in cells]
        return sum(each[0].isdigit() for each in words) * 3 >= max(len(words), 1)

    def _count_label_columns(self, header: int) -> int:
        """Count the columns at the left that contain labels: most of their cells are no numbers."""
        count = 0
        for place in range(min(_LABELS, len(self._grid[0]) - 1)):
            texts = [cell.text.strip() for cell in naming.find_filled(row[place] for row in self._grid[header:])]
            numbers = sum(
                each[:1].isdigit() or _NONE.fullmatch(each) is not None or not re.search(r"\w", each) for each in texts
            )
            if place and numbers * 5 > len(texts) * 2:
                break
            count += 1
        return count

    def _find_rows(self, header: int, labels: int) -> Mapping[int, _Head]:
        """Find the headers of the rows with values. A row without values is the group of those below it."""
        found: dict[int, _Head] = {}
        group = ""
        for number, row in enumerate(self._grid[header:], header):
            cells = naming.find_filled(row[:labels])
            if not cells:
                continue
            words = strip_marks(self._section, cells[-1]).strip()
            if not any(cell not in cells for cell in naming.find_filled(row[labels:])):
                group = words
                continue
            if parse_label(words):
                group = ""
            found[number] = self._head(cells, group)
        return found

    def _head(self, cells: Sequence[Cell | None], group: str = "") -> _Head:
        """Build a header from its cells, outermost first."""
        filled = naming.find_filled(cells)
        told = [strip_marks(self._section, cell).strip() for cell in filled]
        marks = find_marks(self._section, *filled)
        words = told[-1] if told else ""
        outer = ": ".join(each for each in (group, *told[:-1]) if each)
        while (mark := re.search(r"(?<=[\w).]) ?([*†‡]{1,3})$", words)) is not None:
            marks.append(mark[1])
            words = words[: mark.start()].strip()
        codes, rest = self._codes(words)
        for above in told[-2::-1]:  # a case of these districts: "Corner lot" below "R-1, R-2"
            codes = codes or self._codes(above)[0]
        return _Head(words, outer, codes, rest, marks)

    def _codes(self, words: str) -> tuple[Sequence[str], str]:
        """Parse the districts at the start of a header. Also returns the rest of it."""
        codes, end = naming.parse_leading_codes(words, self._known)
        if codes and not re.match(r"[\w’'/.]", words[end : end + 1]):
            return codes, words[end:].strip(" :,–—-")
        alike = naming.codes_in_title(words, self._known)
        return (alike, "") if len(alike) == 1 else ((), words)

    def _read_cell(self, cell: Cell, row: _Head, column: _Head, codes: Sequence[str]) -> Iterator[Standard]:
        raw = strip_marks(self._section, cell).strip()
        if _NONE.fullmatch(raw):
            return
        marks = [*row.marks, *column.marks, *find_marks(self._section, cell)]
        label, others = self._find_dimension(row, column)
        given = None if label is None else self._parse_value(raw, label)
        while given is None and label is not None and (mark := _MARK.search(raw)) is not None:
            marks.append(mark[mark.lastgroup or 0])
            raw = raw[: mark.start()].strip()
            given = self._parse_value(raw, label)
        conditions = [self._notes.get(mark, mark) for mark in dict.fromkeys(marks)]
        headers = " | ".join(each for each in (self._caption[:_CAPTION], row.path, column.path) if each)
        whole = cell.text.strip()
        quoted = Standard(
            tuple(codes), None, headers, None, whole, None, None, None, conditions, cell.start, cell.start + len(whole),
            "raw",
        )  # fmt: skip
        if label is not None and given is not None:
            yield self._with_value(quoted, cell, raw, label, given, others)
        elif label is not None and (pair := self._split_pair(raw, label, column)):
            for part, of, value in pair:
                yield self._with_value(quoted, cell, part, label, value, [of, *others])
        elif not _REFERENCE.search(headers):
            yield quoted

    def _find_dimension(self, row: _Head, column: _Head) -> tuple[DimensionLabel | None, list[str]]:
        """Find the dimension that the headers of a cell name, and the words of the header that does not."""
        of_row = parse_label(row.rest or row.words, row.group or self._caption)
        of_column = parse_label(column.rest if column.codes else column.words, column.group or self._caption)
        side = parse_label(row.words, "setbacks") if of_column is not None and of_column.type == "setback" else None
        if of_column is not None and side is not None and side.type.endswith("-setback"):
            case = " ".join(each for each in (side.case, of_column.case) if each)
            return replace(of_column, type=side.type, case=case or None), []
        if of_row is not None and of_column is not None:
            return None, []
        if of_row is not None:
            return of_row, [column.rest if column.codes else column.words]
        return of_column, [row.rest if row.codes else row.path] if of_column else []

    def _parse_value(self, raw: str, label: DimensionLabel) -> Measure | None:
        """Parse a cell as one measure of a dimension."""
        given = parse_measure(raw, label.unit)
        if given is None or given.value is None:
            return None
        if given.unit == "dwelling" and label.unit == "dwelling-per-acre":
            return replace(given, unit="dwelling-per-acre")
        if not allows_unit(label.type, given.unit):
            return None
        return given

    def _split_pair(self, raw: str, label: DimensionLabel, column: _Head) -> Sequence[tuple[str, str, Measure]]:
        """Split a cell such as ``6,000/8,000`` if a header names its parts: ``1F/2F``. Yields part, name and value."""
        parts = _PAIR.split(raw)
        for names in (column.rest, label.case or ""):
            of = [each.strip(" ()") for each in _PAIR.split(names)]
            if len(of) == len(parts) and all(of) and len(find_units(names)) < 2:
                last = parse_measure(parts[-1], label.unit)
                values = [parse_measure(each, label.unit or (last.unit if last else None)) for each in parts]
                if all(
                    each is not None and each.value is not None and allows_unit(label.type, each.unit)
                    for each in values
                ):
                    return [(part, name, each) for part, name, each in zip(parts, of, values, strict=True) if each]
        return []

    def _with_value(
        self, quoted: Standard, cell: Cell, raw: str, label: DimensionLabel, given: Measure, others: Sequence[str]
    ) -> Standard:
        """Build the standard with the value of a quoted cell."""
        said = [each.strip(" :,") for each in (label.case or "", *others) if not _NO_CASE.fullmatch(each)]
        said = [each for each in said if not (_PAIR.search(each) and set(_PAIR.split(each)) & set(said))]
        bounds = (bound_of(each) for each in others if _NO_CASE.fullmatch(each))
        uses, cases = [each for each in said if not _CASE.match(each)], [each for each in said if _CASE.match(each)]
        start = max(self._section.text.find(raw, cell.start, cell.end), cell.start)
        return replace(
            quoted,
            type=type_in_unit(label.type, given.unit),
            bound=bound_of(raw) or next(filter(None, bounds), label.bound),
            raw=raw,
            value=given.value,
            unit=given.unit,
            applies_to=", ".join(dict.fromkeys(re.sub(r"^\((.*)\)$", r"\1", each) for each in uses)) or None,
            conditions=list(dict.fromkeys([*cases, *quoted.conditions])),
            start=start,
            end=start + len(raw),
            method="table",
        )


def _find_caption(section: Section, table: Table) -> str:
    """Find the caption of a table in the line above it, if it is a short one without a verb."""
    line = section.text[max(0, table.start - _LONGEST_LINE) : table.start].rstrip().rpartition("\n")[2]
    return line.strip() if len(line.split()) <= _WORDS_OF_CAPTION and not _VERB.search(line) else ""
