"""The districts that a code names: in headings, in lists of them, in the first column of tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loaders.extraction.sections import Section

CODE: Final = r"(?:[A-Z]{1,4}(?:-[A-Z0-9]{1,4}){1,3}|[A-Z]{1,3}\d{1,3}[A-Z]?(?:-[A-Z0-9]{1,3})?)"
"""Pattern of codes that look like nothing else: ``R-1-6``, ``C-UV``, ``B4``."""
_LETTERS: Final = rf"(?:{CODE}|[A-Z]{{2,5}})"
_ABOUT: Final = re.compile(r"\b(?:districts?|zones?|zoning|overlays?)\b", re.IGNORECASE)
_KIND: Final = re.compile(
    r"\b(?:districts?|zones?|overlays?|residential|commercial|industrial|business|agricultur\w+|office|shopping|downtown"
    r"|manufacturing|mixed|facilities|park|village|center|conservation|open space|planned)\b",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(
    rf"(?:(?P<code>{CODE})(?:\s*[-–—:,.]?\s+)(?P<name>[A-Z][^()]{{2,60}})|(?P<name_first>[A-Z][^()]{{2,60}}?)\s*\((?P<code_last>{_LETTERS})\).*)"
)
_LINE: Final = re.compile(
    rf"(?:\([A-Za-z0-9]{{1,4}}\) |[A-Za-z0-9]{{1,3}}\. )?"
    rf"(?:[“\"]?(?P<code>{_LETTERS})[”\"]?(?: ?[-–—:|,.] ?| )(?P<name>[A-Z][^\n.;|]{{2,60}})"
    rf"|(?P<name_first>[A-Z][^\n.;:|()]{{2,60}}?) \((?P<code_last>{_LETTERS})\))[.;,]?(?: and)?$"
)
_CODES: Final = re.compile(rf"(?P<codes>{CODE}(?:(?:, (?:and )?| and |/){CODE}){{0,20}})(?P<mark>[.:])(?= )")
_ONE: Final = re.compile(_LETTERS)
_EACH: Final = re.compile(rf"(?<![\w-]){CODE}(?![\w-])")
_FIRST: Final = re.compile(r"(?:zoning )?(?:district|zone)s?\b", re.IGNORECASE)
_SHORT_TEXT: Final = 600


@dataclass(frozen=True, slots=True)
class District:
    """A district, and where a section names it."""

    code: str
    """As recorded: ``R-1-6``."""
    name: str
    """Empty where only its code is named."""
    section: str
    """Key of the section that names it."""
    start: int | None
    """Its code and name are in the code points [start, end) of the section's text; None for those of its heading."""
    end: int | None
    confidence: float
    method: str
    """list, heading, line, table."""


def districts(sections: Iterable[Section]) -> Mapping[str, District]:
    """Return the districts that the sections of a code name, by code: each by the place that says most of it."""
    found: dict[str, District] = {}
    for section in sections:
        for district in _of(section):
            known = found.get(district.code)
            if known is None or (district.confidence, bool(district.name)) > (known.confidence, bool(known.name)):
                found[district.code] = district
    return found


def of_section(section: Section, known: Mapping[str, District], above: Sequence[Section] = ()) -> Sequence[str]:
    """Return the codes of the districts that a section is about: by its heading, its first lines, or those above it."""
    for each in (section, *above):
        if codes := named(each.title, known):
            return codes
        if codes := list(dict.fromkeys(code for _, _, codes in starts(each.text) for code in codes if code in known)):
            return codes
        plain = _plain(each.title)
        codes = [code for code, district in known.items() if plain and plain == _plain(district.name)]
        if len(codes) == 1:
            return codes
    return ()


def named(text: str, known: Mapping[str, District]) -> Sequence[str]:
    """Return the codes of the known districts that some words name, in their order."""
    codes = [match[0] for match in re.finditer(rf"(?<![\w-]){_LETTERS}(?![\w-])", text)]
    return list(dict.fromkeys(code for code in codes if code in known))


def starts(text: str) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Yield the lines that begin with the codes of districts that they are about: ``R-1-9, R-1-8: These districts``."""
    for line in re.finditer(r"[^\n]+", text):
        if match := _CODES.match(text, line.start(), min(line.end(), line.start() + 400)):
            yield line.start(), match.end("codes"), [code[0] for code in _EACH.finditer(match["codes"])]


def _plain(name: str) -> str:
    return " ".join(re.sub(r"\b(?:districts?|zones?|overlay|the)\b|\(.*?\)", " ", name.casefold()).split())


def _of(section: Section) -> Iterator[District]:
    heading = _HEADING.fullmatch(section.title)
    about = bool(_ABOUT.search(section.title)) or bool(_ABOUT.search(section.text[:_SHORT_TEXT]))
    if heading and about:
        code, name = heading["code"] or heading["code_last"], heading["name"] or heading["name_first"]
        if "-" in code or any(character.isdigit() for character in code) or _ABOUT.search(section.title):
            yield District(code, name.strip(), section.key, None, None, 0.9, "heading")
    if not about:
        return
    yield from _in_lists(section)
    for start, end, codes in starts(section.text):
        after = section.text[end : end + 200]
        if _KIND.search(after):
            for code in codes:
                yield District(code, "", section.key, start, end, 0.8, "line")
    for table in section.tables:
        grid = table.grid()
        if not grid or not grid[0] or grid[0][0] is None or not _FIRST.match(grid[0][0].text):
            continue
        for row in grid[max(1, table.header_rows) :]:
            cell = row[0]
            match = _ONE.match(cell.text) if cell is not None else None
            if cell is not None and match and len(match[0]) == len(cell.text.split(" ")[0].rstrip(".,:")):
                yield District(
                    match[0], cell.text[match.end() :].strip(" -–:"), section.key, cell.start, cell.end, 0.75, "table"
                )


def _in_lists(section: Section) -> Iterator[District]:
    """Lines that are a district each, where at least two follow one another."""
    run: list[District] = []
    for line in [*re.finditer(r"[^\n]+", section.text), None]:
        match = _LINE.match(section.text, line.start(), min(line.end(), line.start() + 120)) if line else None
        if match and line and match.end() == line.end():
            code, name = match["code"] or match["code_last"], match["name"] or match["name_first"]
            run.append(District(code, name.strip(), section.key, line.start(), line.end(), 0.95, "list"))
            continue
        if len(run) > 1 and sum(bool(_KIND.search(each.name)) for each in run) * 2 >= len(run):
            yield from run
        run = []
