"""Dimensional standards: how large, high, dense or far from a line a code allows something to be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction import parking_schedules
from loaders.zoning.extraction.dimension_names import (
    Dimension,
    allows_percent,
    allows_unit,
    bound_of,
    default_bound,
    dimension_of_header,
    find_dimensions,
    type_in_unit,
)
from loaders.zoning.extraction.district_scope import find_stated_scope
from loaders.zoning.extraction.districts import District, add_condition, development_of
from loaders.zoning.extraction.leads import Lead, has_verb, parse_head, parse_lead, split_clauses
from loaders.zoning.extraction.measures import Measure, find_measures, find_unit, parse_measure
from loaders.zoning.extraction.outline import Outline, find_label_end
from loaders.zoning.extraction.parking_schedules import Schedule, is_about_parking
from loaders.zoning.extraction.permission_levels import BOARD
from loaders.zoning.extraction.permission_matrices import find_notes, strip_marks
from loaders.zoning.extraction.regulated_subjects import LOT
from loaders.zoning.extraction.section_protocol import Cell, Section, Table
from loaders.zoning.extraction.sentence_standards import (
    CONFIDENCE,
    Context,
    Standard,
    find_limits,
    find_subject,
)

_DEFINES: Final = re.compile(r"\b(?:definitions?|terms defined|defined terms|words and phrases)\b", re.IGNORECASE)
_REFERS_BACK: Final = re.compile(r"\b(?:it|its|they|their)\b", re.IGNORECASE)
_GENERAL: Final = re.compile(
    r"\b(?:standards?|requirements?|regulations?|following|uses|exceptions?|districts?|zones?|zoning|general"
    r"|notes?|conditions?|provisions?|limits?|purpose|lots?|yards?)\b",
    re.IGNORECASE,
)
"""Words of headings that name no use."""
_USE_HEAD: Final = re.compile(rf"(?!Except\b|.*{_GENERAL.pattern})[A-Z][\w ,/&-]{{3,60}}:", re.IGNORECASE)
_GOES_ON: Final = re.compile(r" ?(?:(?:or|and) )?(?:\w+ )?(?:\w+ )?\(?\d|" r" ?(?:[a-z]+[ -]){0,3}\(\d", re.IGNORECASE)
_BRIEF: Final = 16
"""Maximum words of a line that the heading of its section applies to."""
_SHORT: Final = 8
"""Maximum words of a heading within a text."""


_BOARD: Final = re.compile(rf"\b{BOARD}|\b(?:applicants?|owners?|persons?)\b", re.IGNORECASE)
_CONDITIONS: Final = re.compile(
    r"(?!Except|Unless|Notwithstanding).*\b(?:provided(?! (?:as|in|for|by|on|with|at|to)\b)|if|when|where|unless"
    r"|because)\b[^.;]*:$",
    re.IGNORECASE,
)


_CASE: Final = re.compile(
    r"(?:Where|When|If|Whenever|In (?:the )?cases?|In the event"
    r"|(?:In|Within|On) (?:(?:all|any|the) )?(?:areas?|lands?|lots?))\b",
    re.IGNORECASE,
)
"""The first word of a line that names the case in which the lines below it apply."""
_USE_LIST: Final = re.compile(r"\buses\b", re.IGNORECASE)
_FOR_ITEM: Final = re.compile(
    r"(?:For )(?:an? |the |all |any |each |every )?(?P<use>[A-Za-z][\w ,/&-]{2,80}?) ?[:,](?= )", re.IGNORECASE
)
"""The use at the start of a list item: ``For inns: one acre; all with ten feet per room``."""


@dataclass(frozen=True, slots=True)
class _Above:
    """The dimension, use and districts that a line gives to the lines below it."""

    lead: Lead | None
    use: str | None
    districts: Sequence[str] | None
    conditional: bool | None = None
    """Whether the lines below are conditions: ``The board may allow it if:``"""


def find_standards(
    section: Section, known: Mapping[str, District], above: Sequence[Section] = ()
) -> Sequence[Standard]:
    """Find the standards that a section sets: in sentences and lists, then in tables.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first.
    """
    found = [*_in_text(section, known, above), *_in_tables(section, known, above)]
    kind = development_of(section, known, above) if found else None
    return found if kind is None else [each for standard in found for each in _of_kind(standard, kind, known)]


def _in_text(section: Section, known: Mapping[str, District], above: Sequence[Section]) -> Sequence[Standard]:
    """Find the standards in the sentences and lists of a section, in text order."""
    if _DEFINES.search(section.title):
        return []
    text = section.text
    around = tuple(naming.codes_of_section(section, known, above) or find_stated_scope(text, known))
    tables = [(table.start, table.end) for table in section.tables]
    tables += [span for table in section.tables for span in _find_note_spans(section, table)]
    own = {start: [code for code in codes if code in known] for start, _, codes in naming.find_line_starts(text)}
    found: list[Standard] = []
    outline = Outline[_Above]()
    titled = parse_lead(f"{section.title}:", 0, len(section.title) + 1, "")
    earlier: list[tuple[int, int]] = []
    uses = False
    titled_use = _use_of_title(section.title, text)
    parking = Schedule(section, known) if is_about_parking(section, above) else None
    for line in re.finditer(r"[^\n]+", text):
        start, end = line.span()
        if any(first <= start < last for first, last in tables):
            continue
        body = find_label_end(text, start, end)
        label, words = text[start:body].strip(), text[body:end].rstrip()
        if label:
            outline.enter(label)
        listed, use_above = outline.find(lambda each: each.lead), outline.find(lambda each: each.use)
        headed = tuple(naming.parse_heading(words, known))
        codes = tuple(own.get(start, ()))
        if not codes and not headed:
            first, stop = naming.parse_leading_codes(words, known)
            if words[stop : stop + 1] in (":", ",", ".", " ") and any(len(code) > 1 for code in first):
                codes = tuple(first)
        codes = codes or headed or tuple(outline.find(lambda each: each.districts) or around)
        if parking is not None and (row := parking.line(start, end, codes)) is not None:
            found.append(row)
            continue
        heads = words.endswith(":") or (
            len(words.split()) <= _SHORT and not has_verb(words) and not any(find_measures(text, start, end))
        )
        headed_by = None if heads else parse_head(text, body, end, listed.about if listed else section.title)
        head = re.match(r"([A-Z][\w /&-]{3,60})\. [A-Z]", words)
        if words.endswith(":"):
            uses = _USE_LIST.search(words) is not None and not any(find_dimensions(words))
        elif heads and label:
            uses = False
        item = _FOR_ITEM.match(words) if listed is not None and not heads else None
        of_item = item["use"] if item and not any(find_dimensions(item["use"])) else None
        named = head is not None and uses and not _GENERAL.search(head[1]) and not any(find_dimensions(head[1]))
        own_use = head[1] if head and named else _use_of_title(head[1], words) if head else None
        use = own_use or use_above or titled_use
        brief = len(words.split()) <= _BRIEF and not has_verb(words)
        holds = None if heads else headed_by or listed or (titled if brief else None)
        read: list[Standard] = []
        for sentence in split_clauses(text, body, end):
            topic = _topic(text, earlier) if _REFERS_BACK.search(text, *sentence) else None
            earlier.append(sentence)
            goes_on = read and text[sentence[0] - 1 : sentence[0]] == ";" and _GOES_ON.match(text, *sentence)
            kept = _goes_on(read[-1], about=words) if goes_on else holds
            about = f"{section.title} {kept.about if kept else ''}"
            joined = text[sentence[0] - 1 : sentence[0]] == ";" and bool(read)
            here = read[-1].districts if joined else codes
            if not outline.find(lambda each: each.conditional or None):  # the case of an outer line holds below
                later = of_item if sentence[0] > body else None
                read += find_limits(section, *sentence, Context(kept, here, known, topic, use, about, later))
        if heads or headed or label:
            lead = parse_lead(text, start, end, section.title) if heads else None
            follows = None
            asks = heads and _CONDITIONS.match(words) is not None
            if heads and lead is None and label and not headed:
                follows = words.rstrip(":") if _USE_HEAD.fullmatch(words) else None
                if words.endswith("following:") or asks:
                    item = re.match(r"([A-Z][\w /&-]{3,60}), ", words)
                    follows = item[1] if item and not has_verb(item[1]) else find_subject(text, body, end)
                    follows = None if follows and (LOT.search(follows) or _BOARD.search(follows)) else follows
            last = max((first for first, _ in split_clauses(text, body, end)), default=body)
            case = _CASE.match(text[last:end].strip())
            if case and words.endswith(":") and not naming.find_codes(text[last:end], known):
                follows, asks = None, True
            given: Sequence[str] | None = headed or (None if label else outline.find(lambda each: each.districts))
            if not label:
                outline.leave()
            outline.push(
                label, _Above(lead, follows, given, (asks and not follows) or (False if lead or follows else None))
            )
        elif not read:
            for frame in outline.frames:
                frame.value = _Above(None, None, frame.value.districts)
        if parking is not None and parking.is_other(words):
            read = [each for each in read if each.type != "parking"]
        found += read
    return found


def _find_note_spans(section: Section, table: Table) -> Iterator[tuple[int, int]]:
    """Yield the spans of the notes of a table, which are conditions of its cells and no limits of their own."""
    cells = [cell for row in table.grid() for cell in row if cell is not None]
    marks = {section.text[start:end].strip() for cell in cells for start, end in cell.superscripts}
    for each in section.subsections if marks else ():
        if each.start >= table.end and len(each.path) == 1 and each.path[0] in marks:
            yield each.start, each.end


def _topic(text: str, earlier: Sequence[tuple[int, int]]) -> str | None:
    """Find the antecedent of a pronoun: the subject of one of the last sentences."""
    return next((told for span in reversed(earlier[-3:]) if (told := find_subject(text, *span))), None)


def _use_of_title(title: str, text: str) -> str | None:
    """Get the use that a section is about, if its text names it as its heading does: ``Cabin camps``."""
    title = title.strip(" .:")
    words = re.findall(r"[a-z-]{3,}", title.casefold())
    if not words or _GENERAL.search(title) or any(each.end == len(title) for each in find_dimensions(title)):
        return None
    stems = r"\W+".join(re.escape(re.sub(r"(?:ies|y|s)$", "", word)) + r"\w{0,3}" for word in words)
    named = re.search(rf"\b(?:an?|each|the|every) (?:[\w-]+ )?{stems}\b", text, re.IGNORECASE)
    return title if named else None


def _goes_on(last: Standard, about: str) -> Lead:
    """The lead for a measure after a semicolon: ``Maximum height: two stories; 35 feet``."""
    type_ = "building-height" if last.type == "building-storeys" else last.type
    return Lead(Dimension(last.start, last.end, type_), last.raw_type, last.bound, last.applies_to, about=about)


def _of_kind(standard: Standard, kind: str, known: Mapping[str, District]) -> Iterator[Standard]:
    """Split a standard: the districts that are for such developments themselves do not get the condition."""
    own = [code for code in standard.districts if not add_condition((), kind, code, known)]
    others = [code for code in standard.districts if code not in own]
    if own or not others:
        yield replace(standard, districts=tuple(own))
    if others:
        yield replace(standard, districts=tuple(others), conditions=[*standard.conditions, kind])


_NONE: Final = re.compile(r"(?:n/?a|none|no|not applicable|no (?:minimum|maximum|limit)|[-–—.]*)", re.IGNORECASE)
_MARK: Final = re.compile(
    r"(?<=['′’%\w).]) ?(?:\((?P<letter>[a-z]{1,2})\)|[\[(]?(?P<mark>[*†‡]{1,3}|(?<=[ \[(])\d{1,2})[\])]?"
    r"|(?<=\d) ?(?P<plain>[a-z]))$"
)
_LABELS: Final = re.compile(
    r"(?:minimum|maximum|min\.?|max\.?|requirements?|standards?|values?|dimensions?|regulations?|limits?"
    r"|districts?|zones?"
    r"|zoning|all|the|of|for|in| )*",
    re.IGNORECASE,
)
"""Labels of a row that do not state what it is for."""
_REFERS: Final = re.compile(r"\b(?:see|section|sec\.|chapter|article|table|note|footnote)\b|§", re.IGNORECASE)
_TOTAL: Final = re.compile(r"\b(?:total|both|combined|sum|aggregate)\b", re.IGNORECASE)
_HEIGHT: Final = r"[^a-z]*(?:feet|ft\.?|stor\w+|['’′])"
_BOTH: Final = re.compile(
    rf"{_HEIGHT}(?: or |,? ?/ ?|, |; ?| and ){_HEIGHT}(?:,? whichever is (?:less|lower))?", re.IGNORECASE
)
"""A height in feet and storeys, which both limit it."""
_HEADERS: Final = 4
"""Maximum header rows of a table whose header is not marked."""

Grid = Sequence[Sequence[Cell | None]]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table for a dimension."""

    words: str
    """The words of its headers."""
    type: str
    marks: Sequence[str]
    """Marks of the notes of its headers."""


def _in_tables(section: Section, known: Mapping[str, District], above: Sequence[Section]) -> Iterator[Standard]:
    """Find the standards in the tables of a section. The section's districts apply to rows for uses."""
    around = tuple(naming.codes_of_section(section, known, above))
    for table in section.tables:
        yield from _in_table(section, table, known, around, parking=is_about_parking(section, above))


def _in_table(
    section: Section, table: Table, known: Mapping[str, District], around: Sequence[str], *, parking: bool
) -> Iterator[Standard]:
    grid = table.grid()
    if not grid or len(grid[0]) < 2:
        return
    header = _count_header_rows(grid, table)
    turned: Grid = [[row[place] for row in grid] for place in range(len(grid[0]))]
    columns = _find_columns(section, grid, header, {}, parking=parking)
    sideways = _find_columns(section, turned, 1, _find_groups(section, grid), parking=parking)
    if len(sideways) > len(columns) or (
        len(sideways) == len(columns) and _count_district_rows(turned, known) > _count_district_rows(grid, known)
    ):
        grid, header, columns = turned, 1, sideways
    if not columns:
        return
    notes = find_notes(section, table)
    caption = table.caption or ""
    by_district = _count_district_rows(grid, known) > 0
    for row in grid[header:]:
        first = row[0]
        label = strip_marks(section, first).strip() if first is not None else ""
        if first is None or not label or all(cell is first for cell in row):
            continue
        codes = _codes(label, known)
        if by_district and not codes and re.fullmatch(naming.CODE, label):
            continue  # a district that is not known, or a misprint of one
        if not codes and _LABELS.fullmatch(label):
            label = ""
        for place, column in columns.items():
            cell = row[place]
            if cell is not None and cell is not first:
                yield from _parse_cell(section, cell, column, caption, notes, codes or around, None if codes else label)


def _count_header_rows(grid: Grid, table: Table) -> int:
    """Count the header rows: as marked, else the rows before the first value."""
    if table.header_rows:
        return min(table.header_rows, len(grid) - 1)
    for number, row in enumerate(grid[:_HEADERS]):
        if any(cell is not None and cell.text[:1].isdigit() for cell in row[1:]):
            return max(1, number)
    return 1


def _find_groups(section: Section, grid: Grid) -> Mapping[int, str]:
    """Get the words of the group row above each row: ``Lot``, above ``Area`` and ``Frontage``."""
    found: dict[int, str] = {}
    group = ""
    for number, row in enumerate(grid):
        first = row[0]
        if first is not None and number and all(cell is first or cell is None or not cell.text.strip() for cell in row):
            group = strip_marks(section, first).strip()
        elif group:
            found[number] = group
    return found


def _count_district_rows(grid: Grid, known: Mapping[str, District]) -> int:
    """Count the rows that start with a district."""
    return sum(1 for row in grid if row[0] is not None and _codes(row[0].text.strip(), known))


def _find_columns(
    section: Section, grid: Grid, header: int, groups: Mapping[int, str], *, parking: bool
) -> Mapping[int, _Column]:
    """Find the columns for a dimension."""
    found: dict[int, _Column] = {}
    for place in range(1, len(grid[0])):
        cells = {cell.start: cell for row in grid[:header] if (cell := row[place]) is not None}
        words = " ".join(strip_marks(section, cell).strip() for cell in cells.values())
        type_ = dimension_of_header(words)
        group = groups.get(place)
        if group and (type_ is None or type_ in ("side-setback", "front-setback", "rear-setback")):
            words = f"{group} {words}"
            type_ = dimension_of_header(words)
        if type_ is None and parking and parking_schedules.is_column(words):
            type_ = "parking"
        if type_ is not None and type_.endswith("setback") and _TOTAL.search(words):
            continue
        if type_ is not None and not (type_ == "parking" and parking_schedules.is_other(words)):
            raised = [section.text[start:end].strip() for cell in cells.values() for start, end in cell.superscripts]
            found[place] = _Column(words, type_, raised)
    return found


def _codes(label: str, known: Mapping[str, District]) -> Sequence[str]:
    """The districts whose codes are at the start of a row's label."""
    codes, end = naming.parse_leading_codes(label, known)
    if not codes or re.match(r"[\w’']", label[end : end + 1]):
        return []
    return codes if len(codes[0]) > 1 or end == len(label) or naming.find_codes(label, known) else []


def _parse_cell(
    section: Section,
    cell: Cell,
    column: _Column,
    caption: str,
    notes: Mapping[str, str],
    codes: Sequence[str],
    label: str | None,
) -> Iterator[Standard]:
    words, type_ = column.words, column.type
    raw = strip_marks(section, cell).strip()
    marks = [*column.marks, *(section.text[start:end].strip() for start, end in cell.superscripts)]
    given = _parse_measure(raw, words, type_, caption)
    while given is None and (mark := _MARK.search(raw)) and (_is_mark(mark) or mark[mark.lastgroup or 0] in notes):
        marks.append(mark[mark.lastgroup or 0])
        raw = raw[: mark.start()].strip()
        given = _parse_measure(raw, words, type_, caption)
    if _NONE.fullmatch(raw) or not (given or re.search(r"(?<![A-Za-z])\d", raw)):
        return
    several = list(find_measures(raw)) if given is None else []
    if given is None and not several and _REFERS.search(raw):
        return
    if several and type_ != "parking" and not any(allows_unit(type_, each.unit) for each in several):
        return
    value, unit = (given.value, given.unit) if given else (None, None)
    if type_ == "parking" and given is None:
        value, unit = parking_schedules.parse_cell(raw)
    if unit == "PERCENT" and not allows_percent(type_):
        value = None
    told = [(raw, value, unit)]
    if sorted(each.unit for each in several) == ["FT", "storey"] and _BOTH.fullmatch(raw):
        told = [(each.raw, each.value, each.unit) for each in several]
    for told_words, number, of in told:
        start = max(section.text.find(told_words, cell.start, cell.end), cell.start)
        yield Standard(
            tuple(codes),
            type_in_unit(type_, of),
            words,
            bound_of(words) or bound_of(caption) or default_bound(type_),
            told_words,
            number,
            of if number is not None else None,
            _applies(words, label),
            [notes[mark] for mark in dict.fromkeys(marks) if mark in notes],
            start,
            start + len(told_words),
            CONFIDENCE["table"],
            "table",
        )


def _is_mark(match: re.Match[str]) -> bool:
    """Whether the end of a cell is the mark of a note by its form: ``(a)``, ``[1]``, ``*``."""
    return match["plain"] is None and not match[0].strip()[0].isdigit()


def _parse_measure(raw: str, words: str, type_: str, caption: str) -> Measure | None:
    """Parse a cell, with the unit of its header if it has none."""
    header = "UNITLESS" if type_ == "floor-area-ratio" else find_unit(words)
    if header is not None and not allows_unit(type_, header):
        header = None
    given = parse_measure(raw, header or find_unit(caption))
    if given is None:
        return None
    if given.unit == "dwelling" and type_ == "density" and re.search(r"\bacre\b", words, re.IGNORECASE):
        return Measure(given.start, given.end, given.raw, given.value, "dwelling-per-acre", given.high)
    return given if allows_unit(type_, given.unit) else None


def _applies(words: str, label: str | None) -> str | None:
    """The use that a row is for, or the kind of building that a column is for."""
    if label:
        return label
    inside = re.search(r"\((?P<what>(?:accessory|detached|attached)[\w ]*)\)", words, re.IGNORECASE)
    if inside:
        return inside["what"]
    of = re.search(r", (?P<what>(?!each|total|both|m(?:in|ax))[a-z][a-z -]{3,40})$", words)
    if of and not any(find_dimensions(of["what"])):
        return of["what"]
    match = re.search(
        r"(?:principal|accessory|main|detached|attached) (?:buildings?|structures?|uses?)", words, re.IGNORECASE
    )
    return match[0] if match else None
