"""Uses that districts permit or prohibit, in matrices: tables of uses and districts with a letter for each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.outline import find_label_end
from loaders.zoning.extraction.permission_levels import (
    CONFIDENCE,
    NOT,
    Level,
    UsePermission,
    find_review,
    is_conditional,
    level_of,
)
from loaders.zoning.extraction.section_protocol import Cell, Section, Table

_USUAL: Final[Mapping[str, Level]] = {
    "P": "byRight", "Y": "byRight", "YES": "byRight", "BR": "byRight", "PERMITTED": "byRight",
    "ALLOWED": "byRight", "✓": "byRight", "✔": "byRight", "•": "byRight", "●": "byRight", "■": "byRight",
    "C": "conditional", "CU": "conditional", "CUP": "conditional", "SU": "conditional",
    "SE": "conditional", "SP": "conditional", "SUP": "conditional", "SLU": "conditional", "CONDITIONAL": "conditional",
    "ZBA": "conditional", "BZA": "conditional",
    "P/C": "byRightOrConditional", "LIMITED": "byRightWithConditions",
    "N": "notPermitted", "NO": "notPermitted", "NP": "notPermitted", "-": "notPermitted", "–": "notPermitted",
    "—": "notPermitted", "--": "notPermitted", "PROHIBITED": "notPermitted", "NOT PERMITTED": "notPermitted",
}  # fmt: skip
"""Default meaning of letters, without a legend. X has two meanings; the other letters of the table decide."""
_MARK: Final = re.compile(
    r"(?P<letters>[A-Za-z]{1,4}-[A-Za-z]{1,4}|[A-Za-z/✓✔•●■○◯◐□☐–—-]{1,4}|\*{1,2}"
    r"|(?i:permitted|allowed|prohibited|conditional|limited|not permitted))"
    r"[ ]?(?P<notes>(?:[\[(]?[\d*†‡,]{1,5}[\])]?|\([a-z]\)(?:,? ?\([a-z]\))*)?)"
)
_SIGN: Final = re.compile(
    r"(?<![\w-])(?P<open>[“\"‘(\[]?)(?P<letter>[A-Z](?:[/-]?[A-Z]){0,6}\d?|[-–—✓✔•●■○◯◐□☐]|\*{1,2})[”\"’)\]]?"
    r"(?P<sign> ?(?:=|:| \||[-–—](?= )|,? ?\b(?:means?|indicates?|denotes?|is|are|shall mean|stands for"
    r"|signifies)\b)| (?=[A-Z]))"
)
"""Start of a letter's meaning in a legend: ``P = ``, ``"C" means``, ``(S) Special``, ``● Permitted``."""
_SIGNED: Final = re.compile(
    r"(?P<meaning>[^.;:\n|()“”\"]{3,80}?) [(“\"‘]{1,2}(?P<letter>[A-Z](?:/?[A-Z]){0,3}|[-–—✓✔•●■○◯◐□☐])[)”\"’]{1,2}"
)
"""A legend in reverse order: ``Conditional uses (C)``."""
_MEANING: Final = re.compile(r"[^;\n|]{3,120}?(?=[;\n|]|\. |\.$|$)|[^;\n|]{120}")
_BESIDE: Final = re.compile(r"\baccessory\b", re.IGNORECASE)
_BLANK: Final = re.compile(r"\b(?:blank|empty|no letter|no symbol)\b[^.\n]{0,80}", re.IGNORECASE)
_USE: Final = re.compile(r"\b(?:uses?|activit(?:y|ies))\b", re.IGNORECASE)
_NOTE: Final = re.compile(
    r"(?:\(?(?P<mark>\d{1,2}|[*†‡]{1,3})[.):]?|\((?P<letter>[a-z]{1,2})\)|(?P<plain>[a-z])[.)]) ?(?P<note>\S[^\n]*)"
)
_KEY_TITLE: Final = re.compile(r"\b(?:key|legend|symbols?)\b", re.IGNORECASE)
_KEY: Final = re.compile(
    r"\b(?:symbols?|letters?|abbreviations?|designations?)\b[^.\n]{0,80}\b(?:tables?|schedules?|matrix|matrices|charts?)\b"
    r"|\b(?:tables?|schedules?|matrix|matrices|charts?)\b[^.\n]{0,80}\b(?:symbols?|letters?|abbreviations?)\b",
    re.IGNORECASE,
)
"""Words of a section that explains the letters of a table in another section."""
_RIGHT: Final = re.compile(r"(?<!not )\b(?:by|as[- ]of|(?:as a )?matter[- ]of|of)[- ]right\b", re.IGNORECASE)
_REVIEW: Final = re.compile(r"\b(?:review|approval)", re.IGNORECASE)
_CONDITION: Final = re.compile(r"\b(?:subject to|with|upon|after|if|provided)\b.*", re.IGNORECASE)
_LETTERS_SHARE: Final = 0.6
"""Minimum share of letters among non-empty cells in a matrix of uses."""
_GROUP: Final = 80
"""Longest heading of a group of rows, in code points."""
_AROUND: Final = 4_000
"""Code points before and after a table that are searched for its legend and notes."""


@dataclass(frozen=True, slots=True)
class _Joined:
    """A table and its continuations, which have no header of their own."""

    start: int
    end: int
    rows: Sequence[Sequence[Cell | None]]

    def grid(self) -> Sequence[Sequence[Cell | None]]:
        return self.rows


def is_legend(section: Section) -> bool:
    """Check whether a section may explain the letters of a matrix in another section."""
    return bool(_KEY_TITLE.search(section.title) or _KEY.search(section.text, 0, _AROUND))


def find_in_matrices(
    section: Section, known: Mapping[str, District], legends: Sequence[Section] = ()
) -> Iterator[UsePermission]:
    """Find the permissions in the matrices of a section.

    `known` are the districts of the code. `legends` are other sections that explain the letters of its matrices.
    """
    for table in _join_tables(section, known):
        yield from _in_matrix(section, table, known, legends)


def _join_tables(section: Section, known: Mapping[str, District]) -> Iterator[_Joined]:
    """Join the parts of a table that rows of one cell, such as ``Business uses``, divide."""
    joined: _Joined | None = None
    for table in section.tables:
        grid = table.grid()
        between = section.text[joined.end : table.start].strip() if joined else ""
        if (
            joined is not None
            and naming.find_columns(grid, known) is None
            and len(between) <= _GROUP
            and not re.search(r"[\n.:]", between)
            and len(grid[0] if grid else ()) == len(joined.rows[0] if joined.rows else ())
        ):
            joined = _Joined(joined.start, table.end, [*joined.rows, *grid])
            continue
        if joined is not None:
            yield joined
        joined = _Joined(table.start, table.end, grid)
    if joined is not None:
        yield joined


def _in_matrix(
    section: Section, table: _Joined, known: Mapping[str, District], legends: Sequence[Section]
) -> Iterator[UsePermission]:
    grid = table.grid()
    columns = naming.find_columns(grid, known)
    if columns is None:
        turned = [
            [row[place] if place < len(row) else None for row in grid] for place in range(len(grid[0]) if grid else 0)
        ]
        columns = naming.find_columns(turned, known)
        if columns is None:
            return
        grid = turned
    header, districts = columns
    cells = [row[place] for row in grid[header + 1 :] for place in districts if place < len(row)]
    words = [cell.text for cell in cells if cell is not None and cell.text.strip()]
    if not words or sum(bool(_MARK.fullmatch(text.strip())) for text in words) < _LETTERS_SHARE * len(words):
        return
    legend = _parse_legend(section, table, words, legends)
    notes = find_notes(section, table)
    last, names = max(districts), _names(grid, header, min(districts))
    for row in grid[header + 1 :]:
        use = next((cell for place in names if (cell := row[place]) is not None and cell.text.strip()), None)
        own = [cell for place in districts if place < len(row) and (cell := row[place]) is not None and cell is not use]
        if use is None or not use.text.strip() or not any(cell.text.strip() for cell in own):
            continue  # a group heading, or a row without a mark for any district
        beside = [each.text.strip(" .") for each in row[last + 1 :] if each is not None and each not in own]
        told = [words for words in dict.fromkeys(beside) if any(map(str.isalnum, words))]
        for place, code in districts.items():
            cell = row[place] if place < len(row) else None
            if cell is not None and cell is not use:
                yield from _parse_cell(section, use, cell, code, legend, notes, told)


@dataclass(frozen=True, slots=True)
class _Legend:
    """Meanings of letters and of a blank cell."""

    levels: Mapping[str, Level]
    blank: Level | None
    reviews: Mapping[str, str]
    """Citations of the review for a use, by letter."""
    conditions: Mapping[str, str]
    """Conditions of a use that is permitted by right, by letter, verbatim."""
    words: Set[str]
    """Words around the table."""


def _parse_legend(section: Section, table: _Joined, words: Sequence[str], legends: Iterable[Section]) -> _Legend:
    """Parse the meaning of letters from the text around the table, or else from `legends`, with defaults.

    A letter that two of the `legends` explain differently has no meaning.
    """
    before = section.text[max(0, table.start - _AROUND) : table.start]
    after = section.text[table.end : table.end + _AROUND]
    legend, reviews, conditions = dict(_USUAL), dict[str, str](), dict[str, str]()
    letters = {each for word in words for each in (_letters(word), word.strip().upper())}
    own: set[str] = set()
    elsewhere: dict[str, set[Level]] = defaultdict(set)
    others = [each.text[:_AROUND] for each in legends]
    for place, around in enumerate((*others, after, before)):
        for letter, meaning in _meanings(around, letters):
            level = _level_of_meaning(meaning)
            if level is None:
                continue
            if place < len(others):
                elsewhere[letter].add(level)
            else:
                elsewhere.pop(letter, None)
            legend[letter] = level
            own.add(letter)
            reviews.pop(letter, None)
            conditions.pop(letter, None)
            reviewed = level == "byRightWithConditions" and _RIGHT.search(meaning) and _REVIEW.search(meaning)
            if (level == "conditional" or reviewed) and (review := find_review(meaning)):
                reviews[letter] = review
            if reviewed and (condition := _CONDITION.search(meaning)):
                conditions[letter] = condition[0].strip(" .")
    for letter in [letter for letter, levels in elsewhere.items() if len(levels) > 1]:
        del legend[letter]
    if "X" in letters and "X" not in own:
        legend["X"] = (
            "notPermitted" if any(legend.get(letter) == "byRight" for letter in letters - {"X"}) else "byRight"
        )
    said = _BLANK.search(before) or _BLANK.search(after) or next(filter(None, map(_BLANK.search, others)), None)
    blank = level_of(said[0]) if said else None
    return _Legend(legend, blank, reviews, conditions, {*re.findall(r"\b[A-Z]{1,3}\d\b", before + after)})


def _level_of_meaning(meaning: str) -> Level | None:
    """Parse the meaning of a letter into a level. A use by right is one even if a board reviews its plan."""
    if _RIGHT.search(meaning) and not NOT.search(meaning) and not is_conditional(meaning):
        return "byRightWithConditions" if _CONDITION.search(meaning) else "byRight"
    return level_of(f"{meaning} uses") or ("byRightWithConditions" if _BESIDE.search(meaning) else None)


def _meanings(around: str, letters: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield letters and their meanings. A meaning ends where the next letter is explained."""
    for match in _SIGNED.finditer(around):
        if match["letter"].upper() in letters:
            yield match["letter"].upper(), match["meaning"]
    signs = [
        match
        for match in _SIGN.finditer(around)
        if match["letter"].upper() in letters
        and (
            match["sign"].strip()
            or match["open"]
            or not match["letter"].isalpha()
            or around[match.start() - 1 : match.start()] in ("", "\n")
        )
    ]
    for place, match in enumerate(signs):
        until = signs[place + 1].start() if place + 1 < len(signs) else len(around)
        if meaning := _MEANING.match(around, match.end(), until):
            yield match["letter"].upper(), meaning[0]


def _names(grid: Sequence[Sequence[Cell | None]], header: int, first: int) -> Sequence[int]:
    """The columns before the first district that may contain the name of a use, best first."""
    heads = [" ".join(cell.text for row in grid[: header + 1] if (cell := row[place])) for place in range(first)]
    named = [place for place, words in enumerate(heads) if _USE.search(words)]
    column = named[-1] if named else 0
    return range(column, -1, -1)


def _letters(word: str) -> str:
    match = _MARK.fullmatch(word.strip())
    return match["letters"].upper() if match else word.strip().upper()


def find_notes(section: Section, table: Table | _Joined) -> Mapping[str, str]:
    """Find the notes below a table by mark: subsections with such labels, or lines that start with them."""
    notes: dict[str, str] = {}
    for each in section.subsections:
        if each.start >= table.end and len(each.path) == 1:
            notes.setdefault(each.path[0], section.text[each.start : each.end].strip())
    for line in section.text[table.end : table.end + _AROUND].split("\n"):
        if match := _NOTE.fullmatch(line.strip()):
            notes.setdefault(match["mark"] or match["letter"] or match["plain"], match["note"])
    return notes


def _parse_cell(
    section: Section,
    use: Cell,
    cell: Cell,
    code: str,
    legend: _Legend,
    notes: Mapping[str, str],
    told: Sequence[str],
) -> Iterator[UsePermission]:
    name = strip_marks(section, use).strip(" .;:")
    name = name[find_label_end(name, 0, len(name)) :]
    raw = strip_marks(section, cell).strip()
    match = _MARK.fullmatch(raw) if raw.upper() not in legend.levels and raw not in legend.words else None
    marks = [section.text[start:end].strip() for start, end in (*use.superscripts, *cell.superscripts)]
    if match and match["notes"]:
        raw = match["letters"]
        marks += re.findall(r"\d+|[*†‡]+|[a-z]+", match["notes"])
    conditions = list(dict.fromkeys(notes[mark] for mark in marks if mark in notes))
    usual = None if raw.upper() in legend.levels else re.match(r"(SP|SE|SUP|CUP|C)(?=-[A-Z]|\d)", raw)
    level = legend.levels.get(usual[1] if usual else raw.upper()) if raw else legend.blank
    if level is None:
        return
    if not raw:
        yield UsePermission(code, name, level, "", conditions, None, use.start, use.end, CONFIDENCE["blank"], "matrix")
        return
    if level == "byRight" and conditions:
        level = "byRightWithConditions"
    review = legend.reviews.get(raw.upper()) if level in ("conditional", "byRightWithConditions") else None
    if level == "byRightWithConditions" and (condition := legend.conditions.get(raw.upper())):
        conditions.append(condition)
    conditions += told if level != "notPermitted" else ()
    yield UsePermission(
        code, name, level, raw, conditions, review, cell.start, cell.end, CONFIDENCE["matrix"], "matrix"
    )


def strip_marks(section: Section, cell: Cell) -> str:
    """Get the words of a cell without its raised marks."""
    words, at = [], cell.start
    for start, end in sorted(cell.superscripts):
        words.append(section.text[at:start])
        at = max(at, end)
    return "".join([*words, section.text[at : cell.end]])
