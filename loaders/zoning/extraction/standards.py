"""Dimensional standards: how large, high, dense or far from a line a code allows something to be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loaders.readers.inline import to_plain_mark
from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction import parking_schedules
from loaders.zoning.extraction.clauses import PLACE
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
from loaders.zoning.extraction.district_scope import find_scope, find_stated_scope
from loaders.zoning.extraction.districts import District, add_condition, development_of
from loaders.zoning.extraction.leads import Lead, has_verb, parse_head, parse_lead, split_clauses
from loaders.zoning.extraction.measures import Measure, find_measures, find_unit, parse_measure
from loaders.zoning.extraction.outline import Outline, find_label_end
from loaders.zoning.extraction.parking_schedules import Schedule, is_about_parking
from loaders.zoning.extraction.permission_levels import BOARD
from loaders.zoning.extraction.permission_matrices import find_notes, is_header_short, strip_marks
from loaders.zoning.extraction.regulated_subjects import BESIDE, LOT, has_content, is_clear
from loaders.zoning.extraction.section_protocol import Cell, Section, Table
from loaders.zoning.extraction.sentence_standards import Context, Standard, find_limits, find_subject
from loaders.zoning.extraction.standard_confidence import CONFIDENCE, UNSURE

_DEFINES: Final = re.compile(r"\b(?:definitions?|terms defined|defined terms|words and phrases)\b", re.IGNORECASE)
_REFERS_BACK: Final = re.compile(r"\b(?:it|its|they|their)\b", re.IGNORECASE)
_GENERAL: Final = re.compile(
    r"\b(?:standards?|requirements?|regulations?|following|uses|exceptions?|districts?|zones?|zoning|general"
    r"|area|height|notes?|conditions?|provisions?|limits?|purpose|lots?|yards?)\b",
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
    r"(?!Except|Unless|Notwithstanding)(?>.*\b(?:provided(?! (?:as|in|for|by|on|with|at|to)\b)|if|when|where|unless"
    r"|because)\b)[^.;]*+(?<=:)$",
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
    """The properties of a line that the lines below it inherit."""

    lead: Lead | None = None
    use: str | None = None
    districts: Sequence[str] | None = None
    case: str | None = None
    """The case in which the lines below apply: ``Where a lot abuts a park:``, ``The board may allow it if:``"""


def find_standards(
    section: Section, known: Mapping[str, District], above: Sequence[Section] = ()
) -> Sequence[Standard]:
    """Find the standards that a section sets: in sentences and lists, then in tables.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first.
    """
    found = [*_Lines(section, known, above).read(), *_in_tables(section, known, above)]
    kind = development_of(section, known, above) if found else None
    return found if kind is None else [each for standard in found for each in _of_kind(standard, kind, known)]


class _Lines:
    """Finds the standards in the sentences and lists of a section, line by line."""

    def __init__(self, section: Section, known: Mapping[str, District], above: Sequence[Section]) -> None:
        self.section, self.known, self.text = section, known, section.text
        title = section.title
        self.headings = " ".join(each.title for each in (section, *above))
        self.around = tuple(naming.codes_of_section(section, known, above) or find_stated_scope(self.text, known))
        self.own = {
            start: tuple(code for code in codes if code in known)
            for start, _, codes in naming.find_line_starts(self.text)
        }
        self.titled = parse_lead(f"{title}:", 0, len(title) + 1, "")
        self.titled_use = _use_of_title(title, self.text)
        self.parking = Schedule(section, known) if is_about_parking(section, above) else None
        self.outline = Outline[_Above]()
        self.earlier: list[tuple[int, int]] = []
        """The sentences read."""
        self.uses = False
        """Whether the line is in a list of uses."""

    def read(self) -> Iterator[Standard]:
        """Yield the standards in text order."""
        if _DEFINES.search(self.section.title):
            return
        tables = [(table.start, table.end) for table in self.section.tables]
        tables += [span for table in self.section.tables for span in _find_note_spans(self.section, table)]
        for line in re.finditer(r"[^\n]+", self.text):
            if not any(first <= line.start() < last for first, last in tables):
                yield from self._read_line(*line.span())

    def _read_line(self, start: int, end: int) -> Sequence[Standard]:
        """Read the line [start, end), and keep the properties that those below it inherit."""
        text, outline = self.text, self.outline
        body = find_label_end(text, start, end)
        label, words = text[start:body].strip(), text[body:end].rstrip()
        if label:
            outline.enter(label)
        headed: Sequence[str] = naming.parse_heading(words, self.known)
        codes = self._find_districts(start, words, headed)
        if self.parking is not None and (row := self.parking.line(start, end, codes)) is not None:
            return [row]
        measured = any(find_measures(text, start, end))
        heads = words.endswith(":") or (len(words.split()) <= _SHORT and not has_verb(words) and not measured)
        if words.endswith(":"):
            self.uses = _USE_LIST.search(words) is not None and not any(find_dimensions(words))
        elif heads and label:
            self.uses = False
        read = self._read_sentences(body, end, words, codes, heads=heads)
        if heads or headed or label:
            made = self._head(body, end, words, label, headed) if heads else _Above()
            districts = headed or (None if label else outline.find(lambda each: each.districts))
            if not label:
                outline.leave()
            outline.push(label, replace(made, districts=districts))
        elif not read:
            for frame in outline.frames:
                frame.value = _Above(None, None, frame.value.districts)
        if self.parking is not None and self.parking.is_other(words):
            read = [each for each in read if each.type != "parking"]
        return read

    def _find_districts(self, start: int, words: str, headed: Sequence[str]) -> Sequence[str]:
        """Find the districts that a line is for: its own, those of a heading above it, or those of the section."""
        codes: Sequence[str] = self.own.get(start, ())
        if not codes and not headed:
            first, stop = naming.parse_leading_codes(words, self.known)
            if words[stop : stop + 1] in (":", ",", ".", " ") and any(len(code) > 1 for code in first):
                codes = tuple(first)
        above: Sequence[str] | None = self.outline.find(lambda each: each.districts)
        return codes or headed or above or self.around

    def _read_sentences(self, body: int, end: int, words: str, codes: Sequence[str], *, heads: bool) -> list[Standard]:
        """Read the sentences of a line with the dimension, use and cases that the lines above give to it."""
        text, title, outline = self.text, self.section.title, self.outline
        listed = outline.find(lambda each: each.lead)
        headed_by = None if heads else parse_head(text, body, end, listed.about if listed else title)
        brief = len(words.split()) <= _BRIEF and not has_verb(words)
        holds = None if heads else headed_by or listed or (self.titled if brief else None)
        use = self._use_at_start(words) or outline.find(lambda each: each.use) or self.titled_use
        item = _FOR_ITEM.match(words) if listed is not None and not heads else None
        of_item = item["use"] if item and not any(find_dimensions(item["use"])) else None
        cases = [frame.value.case for frame in outline.frames if frame.value.case]
        read: list[Standard] = []
        for sentence in split_clauses(text, body, end):
            topic = _topic(text, self.earlier) if _REFERS_BACK.search(text, *sentence) else None
            self.earlier.append(sentence)
            if place := PLACE.match(text, first := find_label_end(text, *sentence) + (text[sentence[0]] == " ")):
                codes = find_scope(text, first, place.end(), self.known) or codes
            joined = text[sentence[0] - 1 : sentence[0]] == ";" and bool(read)
            kept = _goes_on(read[-1], about=words) if joined and _GOES_ON.match(text, *sentence) else holds
            about = f"{self.headings} {kept.about if kept else ''}"
            here = read[-1].districts if joined else codes
            later = of_item if sentence[0] > body else None
            read += find_limits(
                self.section, *sentence, Context(kept, here, self.known, topic, use, about, later, cases)
            )
        return read

    def _use_at_start(self, words: str) -> str | None:
        """Find the use that a line begins with: ``Duplexes. The minimum lot size is``."""
        head = re.match(r"([A-Z][\w /&-]{3,60})\. [A-Z]", words)
        if head is None:
            return None
        named = self.uses and not _GENERAL.search(head[1]) and not any(find_dimensions(head[1]))
        return head[1] if named else _use_of_title(head[1], words)

    def _head(self, body: int, end: int, words: str, label: str, headed: Sequence[str]) -> _Above:
        """Parse a heading, or a line that ends with a colon, as the properties that the lines below it inherit."""
        lead = parse_lead(self.text, body, end, self.section.title)
        last = max((first for first, _ in split_clauses(self.text, body, end)), default=body)
        told = self.text[last:end].strip()
        case = _CASE.match(told) if words.endswith(":") else None if has_verb(words) else BESIDE.search(words)
        if case is not None and not naming.find_codes(told, self.known):
            return _Above(lead, case=told.rstrip(" :."))
        asks = _CONDITIONS.match(words) is not None
        use = None
        if lead is None and label and not headed:
            use = words.rstrip(":") if _USE_HEAD.fullmatch(words) else None
            if words.endswith("following:") or asks:
                item = re.match(r"([A-Z][\w /&-]{3,60}), ", words)
                use = item[1] if item and not has_verb(item[1]) else find_subject(self.text, body, end)
                use = None if use and (LOT.search(use) or _BOARD.search(use)) else use
        return _Above(lead, use, case=told.rstrip(" :") if asks and not use else None)


def _find_note_spans(section: Section, table: Table) -> Iterator[tuple[int, int]]:
    """Yield the spans of the notes of a table, which are conditions of its cells and no limits of their own."""
    cells = [cell for row in table.grid() for cell in row if cell is not None]
    marks = {to_plain_mark(section.text[start:end]) for cell in cells for start, end in cell.superscripts}
    for each in section.subsections if marks else ():
        if each.start >= table.end and len(each.path) == 1 and each.path[0] in marks:
            yield each.start, each.end
    texts = (strip_marks(section, cell).strip() for cell in cells)
    for mark in {mark for words in texts if (last := _NUMBERED.search(words)) for mark in _numbers(last)}:
        if note := re.search(rf"^\({mark}\) [^\n]*", section.text[table.end :], re.MULTILINE):
            yield table.end + note.start(), table.end + note.end()


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
_NUMBERED: Final = re.compile(r"(?<=[\d½¼¾⅓⅔⅛])(?P<marks>(?: ?\(\d{1,2}(?:, ?\d{1,2})*\))+)$")
"""Marks of notes behind a number without a unit: ``35 (6)``. Only a number in words is repeated so."""
_LABELS: Final = re.compile(
    r"(?:minimum|maximum|min\.?|max\.?|requirements?|standards?|values?|dimensions?|regulations?|limits?"
    r"|districts?|zones?"
    r"|zoning|all|the|of|for|in| )*",
    re.IGNORECASE,
)
"""Labels of a row that do not state what it is for."""
_CASE_OF_ROW: Final = re.compile(
    r"(?:with|without|where|when|if|on|in|served|not served|abutting|adjacent)\b", re.IGNORECASE
)
"""The first word of a row that is for a case, and not for a use: ``With public sewer``."""
_BUILT: Final = re.compile(
    r"\b(?:accessory|detached|attached|buildings?|structures?|uses?|dwellings?|homes?|houses?|duplex(?:es)?"
    r"|\w*plex|townhouses?|apartments?)\b",
    re.IGNORECASE,
)
_HEADER_WORDS: Final = re.compile(
    r"\b(?:min|max|feet|foot|ft|sq|square|acres?|percent|stories|district|zone|zoning|requirements?"
    r"|standards?|regulations?|units?|in|bulk"
    r"|dimensions?|total|per|lines?|depth|size|area|gross|net|ratio|corner|front|rear|side|interior|street|yards?"
    r"|residential|build-to|f\.?a\.?r|dwelling units)\b\.?|[%()]",
    re.IGNORECASE,
)
"""Words of a header that do not say what it is for."""
_REFERS: Final = re.compile(r"\b(?:see|section|sec\.|chapter|article|table|note|footnote)\b|§", re.IGNORECASE)
_TOTAL: Final = re.compile(r"\b(?:total|both|combined|sum|aggregate)\b", re.IGNORECASE)
_AND_IN_CELL: Final = re.compile(r",? (?:or|and) |,? ?/ ?|[,;] (?=\S)")
_WHICHEVER: Final = re.compile(r",? whichever is \w+$", re.IGNORECASE)
_HEADERS: Final = 4
"""Maximum header rows of a table whose header is not marked."""

_BOUNDS: Final = re.compile(r"(?:min(?:imum|\.)?|max(?:imum|\.)?)", re.IGNORECASE)
_IN_BRACKETS: Final = re.compile(r"\((?P<words>[A-Za-z][^()]{3,60})\)$")
"""The use of a row or column of a district: ``R-2 (multiple-family)``."""
_PER_UNIT: Final = re.compile(r" ?(?:per|/) ?(?:dwelling )?(?:unit|family|d\.?u)\b\.?$", re.IGNORECASE)

Grid = Sequence[Sequence[Cell | None]]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table for a dimension."""

    words: str
    """The words of its headers."""
    type: str
    marks: Sequence[str]
    """Marks of the notes of its headers."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table: its districts, and the use or case that it is for."""

    codes: Sequence[str]
    label: str | None
    case: str | None


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
    if is_header_short(grid, header):
        return
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
        told = _IN_BRACKETS.search(label) if codes else None
        part = (
            told["words"] if told and told["words"] not in known and not _is_name(told["words"], codes, known) else None
        )
        if by_district and not codes and re.fullmatch(rf"{naming.CODE}|[A-Z]{{1,4}}", label):
            continue  # a district that is not known, or a misprint of one
        if not codes and _LABELS.fullmatch(label):
            label = ""
        case = label if _CASE_OF_ROW.match(label) else None
        of = _Row(codes or around, part if codes else None if case else label, case)
        for place, column in columns.items():
            cell = row[place]
            if cell is not None and cell is not first:
                yield from _parse_cell(section, cell, column, of, caption, notes)


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
        if type_ is None and parking and (parking_schedules.is_column(words) or _BOUNDS.fullmatch(words.strip())):
            type_ = "parking"
        if type_ is not None and type_.endswith("setback") and _TOTAL.search(words):
            continue
        if type_ is not None and not (type_ == "parking" and parking_schedules.is_other(words)):
            raised = [
                to_plain_mark(section.text[start:end]) for cell in cells.values() for start, end in cell.superscripts
            ]
            found[place] = _Column(words, type_, raised)
    return found


def _codes(label: str, known: Mapping[str, District]) -> Sequence[str]:
    """The districts whose codes are at the start of a row's label."""
    codes, end = naming.parse_leading_codes(label, known)
    if not codes or re.match(r"[\w’']", label[end : end + 1]):
        return []
    return codes if len(codes[0]) > 1 or end == len(label) or naming.find_codes(label, known) else []


def _is_name(words: str, codes: Sequence[str], known: Mapping[str, District]) -> bool:
    """Whether some words are the name of a district."""
    return any(naming.plain_name(words) == naming.plain_name(known[code].name) for code in codes)


def _parse_cell(
    section: Section, cell: Cell, column: _Column, row: _Row, caption: str, notes: Mapping[str, str]
) -> Iterator[Standard]:
    words, type_ = column.words, column.type
    raw = strip_marks(section, cell).strip()
    marks = [*column.marks, *(to_plain_mark(section.text[start:end]) for start, end in cell.superscripts)]
    if numbered := _NUMBERED.search(raw):
        marks += _numbers(numbered)
        raw = raw[: numbered.start()].strip()
    conditions = [each for each in (row.case,) if each]
    if (rate := _PER_UNIT.search(raw)) and type_.startswith("lot-") and not re.search(r"plus|\+", raw):
        type_, raw = ("lot-area-per-unit" if type_ == "lot-area" else type_), raw[: rate.start()]
        conditions += [] if type_ == "lot-area-per-unit" else [rate[0].strip()]
    given = _parse_measure(raw, words, type_, caption)
    while given is None and (mark := _MARK.search(raw)) and (_is_mark(mark) or mark[mark.lastgroup or 0] in notes):
        marks.append(mark[mark.lastgroup or 0])
        raw = raw[: mark.start()].strip()
        given = _parse_measure(raw, words, type_, caption)
    if _NONE.fullmatch(raw) or not (given or re.search(r"(?<![A-Za-z])\d", raw)):
        return
    told: Sequence[tuple[str, Measure | None]] = _split_cell(raw, given, words, type_, caption)
    several = [] if given else list(find_measures(raw))
    if told[0][1] is None and not several and _REFERS.search(raw):
        return
    if several and type_ != "parking" and not any(allows_unit(type_, each.unit) for each in several):
        return
    what, case = _applies(words, row.label)
    what = what.strip() or None if what else None
    conditions += [case] if case else []
    conditions += [notes[mark] for mark in dict.fromkeys(marks) if mark in notes]
    sure = all(mark in notes for mark in marks) and is_clear(what)
    for told_words, each in told:
        value, unit = (each.value, each.unit) if each else (None, None)
        if type_ == "parking" and each is None:
            value, unit = parking_schedules.parse_cell(raw)
        if unit == "PERCENT" and not allows_percent(type_):
            value = None
        start = max(section.text.find(told_words, cell.start, cell.end), cell.start)
        yield Standard(
            tuple(row.codes),
            type_in_unit(type_, unit),
            words,
            bound_of(told_words) or bound_of(words) or bound_of(caption) or default_bound(type_),
            told_words,
            value,
            unit if value is not None else None,
            what,
            conditions,
            start,
            start + len(told_words),
            CONFIDENCE["table"] if sure else UNSURE,
            "table",
        )


def _split_cell(
    raw: str, given: Measure | None, words: str, type_: str, caption: str
) -> Sequence[tuple[str, Measure | None]]:
    """Split a cell into its measures, if each has its own unit or bound: ``3 stories, 42 ft.``, ``5 ft. minimum, 15 ft.
    maximum``. Those of one unit and bound are alternatives, and stay as recorded."""
    parts = [part.strip() for part in _AND_IN_CELL.split(_WHICHEVER.sub("", raw))]
    if given is not None or len(parts) == 1:
        return [(raw, given)]
    told = [(part, each) for part in parts if (each := _parse_measure(part, words, type_, caption)) is not None]
    kinds = {(each.unit, bound_of(part)) for part, each in told}
    return told if len(told) == len(kinds) == len(parts) else [(raw, None)]


def _is_mark(match: re.Match[str]) -> bool:
    """Whether the end of a cell is the mark of a note by its form: ``(a)``, ``[1]``, ``*``."""
    return match["plain"] is None and not match[0].strip()[0].isdigit()


def _numbers(marks: re.Match[str]) -> Sequence[str]:
    """Get the numbers of the notes in a match of `_NUMBERED`."""
    return re.findall(r"\d+", marks["marks"])


def _parse_measure(raw: str, words: str, type_: str, caption: str) -> Measure | None:
    """Parse a cell, with the unit of its header if it has none."""
    header = (
        "UNITLESS" if type_ == "floor-area-ratio" or re.search(r"\bratio\b", words, re.IGNORECASE) else find_unit(words)
    )
    if header is not None and not allows_unit(type_, header):
        header = None
    given = parse_measure(raw, header or find_unit(caption))
    if given is None:
        return None
    if given.unit == "dwelling" and type_ == "density" and re.search(r"\bacre\b", words, re.IGNORECASE):
        return Measure(given.start, given.end, given.raw, given.value, "dwelling-per-acre", given.high)
    return given if allows_unit(type_, given.unit) else None


def _applies(words: str, label: str | None) -> tuple[str | None, str | None]:
    """Find the use and the case of a cell: from its row, and from the words of its column that name no dimension."""
    rest = re.sub(r"\((?=[^()\d]*+\d)[^()]*+\)", "", words)
    for each in reversed(list(find_dimensions(rest))):
        rest = f"{rest[: each.start]} {rest[each.end :]}"
    rest = " ".join(_HEADER_WORDS.sub(" ", rest).split()).strip(" ,:;–—-/")
    if not has_content(rest):
        return label, None
    return (label, rest) if label or not _BUILT.search(rest) else (rest, None)
