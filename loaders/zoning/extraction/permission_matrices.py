"""Which uses the districts permit, from tables with a column or row for each district, and letters in the cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permission_levels import Level, level_of, review_in
from loaders.zoning.extraction.permissions import UsePermission, label_end
from loaders.zoning.extraction.section_protocol import Cell, Section, Table

_USUAL: Final[Mapping[str, Level]] = {
    "P": "byRight", "Y": "byRight", "YES": "byRight", "BR": "byRight", "R": "byRight", "PERMITTED": "byRight",
    "ALLOWED": "byRight", "✓": "byRight", "✔": "byRight", "•": "byRight", "●": "byRight", "■": "byRight",
    "C": "conditional", "CU": "conditional", "CUP": "conditional", "S": "conditional", "SU": "conditional",
    "SE": "conditional", "SP": "conditional", "SUP": "conditional", "SLU": "conditional", "CONDITIONAL": "conditional",
    "L": "byRightWithConditions", "PC": "byRightWithConditions", "P/C": "byRightOrConditional",
    "PS": "byRightWithConditions", "A": "byRightWithConditions", "LIMITED": "byRightWithConditions",
    "N": "notPermitted", "NO": "notPermitted", "NP": "notPermitted", "-": "notPermitted", "–": "notPermitted",
    "—": "notPermitted", "--": "notPermitted", "PROHIBITED": "notPermitted", "NOT PERMITTED": "notPermitted",
}  # fmt: skip
"""What letters mean where no legend says otherwise. X stands for both, by what else the table has."""
_MARK: Final = re.compile(
    r"(?P<letters>[A-Za-z/✓✔•●■○◯◐□☐–—-]{1,4}|\*{1,2}"
    r"|(?i:permitted|allowed|prohibited|conditional|limited|not permitted))"
    r"[ ]?(?P<notes>(?:[\[(]?[\d*†‡,]{1,5}[\])]?|\([a-z]\)(?:,? ?\([a-z]\))*)?)"
)
_SIGN: Final = re.compile(
    r"(?<![\w-])(?P<open>[“\"‘(\[]?)(?P<letter>[A-Z](?:/?[A-Z]){0,3}|[-–—✓✔•●■○◯◐□☐]|\*{1,2})[”\"’)\]]?"
    r"(?P<sign> ?(?:=|:| \||[-–—](?= )|,? ?\b(?:means?|indicates?|denotes?|is|are|shall mean|stands for"
    r"|signifies)\b)| (?=[A-Z]))"
)
"""Where a legend begins to say what a letter means: ``P = ``, ``"C" means``, ``(S) Special``, ``● Permitted``."""
_SIGNED: Final = re.compile(
    r"(?P<meaning>[^.;:\n|()“”\"]{3,80}?) [(“\"‘]{1,2}(?P<letter>[A-Z](?:/?[A-Z]){0,3}|[-–—✓✔•●■○◯◐□☐])[)”\"’]{1,2}"
)
"""A legend the other way round: ``Conditional uses (C)``."""
_MEANING: Final = re.compile(r"[^;\n|]{3,120}?(?=[;\n|]|\. |\.$|$)|[^;\n|]{120}")
_BLANK: Final = re.compile(r"\b(?:blank|empty|no letter|no symbol)\b[^.\n]{0,80}", re.IGNORECASE)
_USE: Final = re.compile(r"\b(?:uses?|activit(?:y|ies))\b", re.IGNORECASE)
_NOTE: Final = re.compile(
    r"(?:\(?(?P<mark>\d{1,2}|[*†‡]{1,3})[.):]?|\((?P<letter>[a-z]{1,2})\)|(?P<plain>[a-z])[.)]) ?(?P<note>\S[^\n]*)"
)
_LETTERS_SHARE: Final = 0.6
"""Share of the cells with words that must be letters for a table to be a matrix of uses."""
_AROUND: Final = 4_000
"""Code points before and after a table where its legend and notes stand."""


def matrices(section: Section, known: Mapping[str, District]) -> Sequence[UsePermission]:
    """Return what the matrices of a section permit, in its order. A blank cell is a use that is not permitted."""
    return [found for table in section.tables for found in _matrix(section, table, known)]


def _matrix(section: Section, table: Table, known: Mapping[str, District]) -> Iterator[UsePermission]:
    grid = table.grid()
    columns = naming.columns(grid, known)
    if columns is None:
        turned = [
            [row[place] if place < len(row) else None for row in grid] for place in range(len(grid[0]) if grid else 0)
        ]
        columns = naming.columns(turned, known)
        if columns is None:
            return
        grid = turned
    header, districts = columns
    cells = [row[place] for row in grid[header + 1 :] for place in districts if place < len(row)]
    words = [cell.text for cell in cells if cell is not None and cell.text.strip()]
    if not words or sum(bool(_MARK.fullmatch(text.strip())) for text in words) < _LETTERS_SHARE * len(words):
        return
    legend = _legend(section, table, words)
    notes = notes_of(section, table)
    last, names = max(districts), _names(grid, header, min(districts))
    for row in grid[header + 1 :]:
        use = next((cell for place in names if (cell := row[place]) is not None and cell.text.strip()), None)
        own = [cell for place in districts if place < len(row) and (cell := row[place]) is not None and cell is not use]
        if use is None or not use.text.strip() or not any(cell.text.strip() for cell in own):
            continue  # of a group, or without a mark for any district
        beside = [each.text.strip(" .") for each in row[last + 1 :] if each is not None and each not in own]
        told = [words for words in dict.fromkeys(beside) if any(map(str.isalnum, words))]
        for place, code in districts.items():
            cell = row[place] if place < len(row) else None
            if cell is not None and cell is not use:
                yield from _cell(section, use, cell, code, legend, notes, told)


@dataclass(frozen=True, slots=True)
class _Legend:
    """What letters mean, and a blank cell."""

    levels: Mapping[str, Level]
    blank: Level | None
    reviews: Mapping[str, str]
    """By letter, the citation of the section by which such a use is reviewed."""


def _legend(section: Section, table: Table, words: Sequence[str]) -> _Legend:
    """What the letters mean: by the words around the table, or as is usual."""
    before = section.text[max(0, table.start - _AROUND) : table.start]
    after = section.text[table.end : table.end + _AROUND]
    legend, reviews = dict(_USUAL), dict[str, str]()
    letters = {_letters(word) for word in words}
    own: set[str] = set()
    for around in (after, before):
        for letter, meaning in _meanings(around, letters):
            level = level_of(f"{meaning} uses")
            if level is not None:
                legend[letter] = level
                own.add(letter)
                if level == "conditional" and (review := review_in(meaning)):
                    reviews[letter] = review
    if "X" in letters and "X" not in own:
        legend["X"] = (
            "notPermitted" if any(legend.get(letter) == "byRight" for letter in letters - {"X"}) else "byRight"
        )
    said = _BLANK.search(before) or _BLANK.search(after)
    blank = level_of(said[0]) if said else None
    if blank is None and not any(legend.get(letter) == "notPermitted" for letter in letters):
        blank = "notPermitted"
    return _Legend(legend, blank, reviews)


def _meanings(around: str, letters: Set[str]) -> Iterator[tuple[str, str]]:
    """The letters that some words explain, each with what it means: up to where the next one is explained."""
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
    """The columns before that of the first district in which the name of a use is looked for, in this order."""
    heads = [" ".join(cell.text for row in grid[: header + 1] if (cell := row[place])) for place in range(first)]
    named = [place for place, words in enumerate(heads) if _USE.search(words)]
    column = named[-1] if named else 0
    return range(column, -1, -1)


def _letters(word: str) -> str:
    match = _MARK.fullmatch(word.strip())
    return match["letters"].upper() if match else word.strip().upper()


def notes_of(section: Section, table: Table) -> Mapping[str, str]:
    """The notes below a table by their marks: its subsections with those labels, or lines that begin with them."""
    notes: dict[str, str] = {}
    for each in section.subsections:
        if each.start >= table.end and len(each.path) == 1:
            notes.setdefault(each.path[0], section.text[each.start : each.end].strip())
    for line in section.text[table.end : table.end + _AROUND].split("\n"):
        if match := _NOTE.fullmatch(line.strip()):
            notes.setdefault(match["mark"] or match["letter"] or match["plain"], match["note"])
    return notes


def _cell(
    section: Section,
    use: Cell,
    cell: Cell,
    code: str,
    legend: _Legend,
    notes: Mapping[str, str],
    told: Sequence[str],
) -> Iterator[UsePermission]:
    name = without_marks(section, use).strip(" .;:")
    name = name[label_end(name, 0, len(name)) :]
    raw = without_marks(section, cell).strip()
    match = _MARK.fullmatch(cell.text.strip())
    marks = [section.text[start:end].strip() for start, end in (*use.superscripts, *cell.superscripts)]
    if match and match["notes"]:
        raw = match["letters"]
        marks += re.findall(r"\d+|[*†‡]+|[a-z]+", match["notes"])
    conditions = list(dict.fromkeys(notes[mark] for mark in marks if mark in notes))
    level = legend.levels.get(raw.upper()) if raw else legend.blank
    if level is None:
        return
    if not raw:
        yield UsePermission(code, name, level, "", conditions, None, use.start, use.end, 0.6, "matrix")
        return
    if level == "byRight" and conditions:
        level = "byRightWithConditions"
    review = legend.reviews.get(raw.upper()) if level == "conditional" else None
    conditions += told if level != "notPermitted" else ()
    yield UsePermission(code, name, level, raw, conditions, review, cell.start, cell.end, 0.9, "matrix")


def without_marks(section: Section, cell: Cell) -> str:
    """The words of a cell without its raised marks."""
    words, at = [], cell.start
    for start, end in sorted(cell.superscripts):
        words.append(section.text[at:start])
        at = max(at, end)
    return "".join([*words, section.text[at : cell.end]])
