"""The districts that a code names (in headings, lists, sentences and tables), and the places in text that refer to
them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from loaders.zoning.extraction.permission_levels import level_of
from loaders.zoning.readers.code_model import Cell, Section, Table

CODE: Final = (
    r"(?:[A-Z]{1,4}(?:-[A-Z0-9]{1,4}(?:\.\d{1,2})?){1,3}"
    r"|[A-Z]{1,3}\d{1,3}(?:\.\d{1,2})?[A-Z]?(?:-[A-Z0-9]{1,3}(?:\.\d{1,2})?)?)"
)
"""Pattern of codes that cannot be anything else: ``R-1-6``, ``C-UV``, ``B4``, ``RR-2.5``."""
_LETTERS: Final = rf"(?:{CODE}|[A-Z]{{2,5}})"
_ANY: Final = rf"(?:{_LETTERS}|[A-Z])"
_SEPARATOR: Final = r"(?:, (?:and |or )?|,? and |,? or | ?/ ?| & )"
_LABEL: Final = r"(?:\([A-Za-z0-9]{1,4}\) |[A-Za-z0-9]{1,3}\. )?"
_ABOUT: Final = re.compile(r"(?i)\b(?:districts?|zones?|zoning|overlays?)\b")
_KIND: Final = re.compile(
    r"(?i)\b(?:districts?|zones?|overlays?|residential|residence|commercial|industrial|business|agricultur\w+"
    r"|office|shopping|downtown|manufacturing|mixed|facilities|park|village|center|conservation|open space"
    r"|planned|rural|family|density)\b",
)
_SOME_CODES: Final = rf"{CODE}(?:{_SEPARATOR}{CODE}){{0,20}}"
_IN_BRACKETS: Final = re.compile(
    rf"(?P<name>[A-Za-z][^()]{{2,80}}?)[,:]? ?\([“\"']?(?P<code>{_LETTERS})[”\"']?\)"
    r"(?: (?i:zoning )?(?i:districts?|zones?|overlay)\b)?"
)
"""A name with its code in brackets. A heading may have several."""
_CODES_FIRST: Final = re.compile(
    rf"(?:(?i:the|zoning|district|zone) )*[“\"']?(?P<codes>{_SOME_CODES}|(?P<letters>[A-Z]{{1,5}}))(?![\w/])[”\"']?"
    r"(?P<mark> ?[-–—:,.] ?| |$)(?P<name>[^()]{0,80})"
)
_CODE_LAST: Final = re.compile(
    r"(?P<name>[A-Za-z][^():]{2,60}?)(?P<mark> ?[-–—:,] ?| )"
    rf"[“\"']?(?P<codes>{_SOME_CODES}|(?P<letters>(?<=[“\"'])[A-Z]{{1,5}}))[”\"']?(?: (?i:districts?|zones?))?"
)
_STATUS: Final = re.compile(r"(?i)(?<!\s)\s*+[(\[](?:reserved|repealed|deleted)[^)\]]{0,80}[)\]]")
OTHER_KIND: Final = re.compile(
    r"(?i)\b(?:(?:of|outside|inside|by|against|to|from|with) (?:the )?district|each|every|any|all|other|school|fire"
    r"|sanitary|sewer|water|soil|improvement|taxing|enterprise|assessment|flood|loading|building|clear|recovery|no|establish\w*"
    r"|designat\w*|creat\w*)\b",
)
"""Words of a district or zone of another kind than zoning."""
_TOPIC: Final = re.compile(
    r"(?i)\b(?:uses?|permitted|regulations?|standards?|requirements?|purpose|intent|signs?|parking|height|area|yards?|setbacks?"
    r"|in|within|for|by|table|schedule|provisions?|limitations?|conditions?)\b",
)
"""Words of a heading about a matter, not the name of a district: ``R-1 district regulations``."""
_LINE: Final = re.compile(
    rf"{_LABEL}(?:[“\"]?(?P<code>{_ANY})[”\"]?(?: ?[-–—:|,.] ?| )(?:[Tt]he )?(?P<name>[A-Za-z][^\n.;|]{{2,60}})"
    rf"|(?P<name_first>[A-Z][^\n.;:|()]{{2,60}}?),? \([“\"]?(?P<code_last>{_ANY})[”\"]?\))[.;,]?(?: and)?$"
)
_DESCRIBED: Final = re.compile(
    rf"{_LABEL}(?:[“\"']?(?P<code>{CODE})[”\"']?(?: ?[-–—:|,.] ?| )"
    r"(?P<name>[A-Z][^\n.;:|]{2,60}? (?:District|Zone|Overlay))"
    rf"|(?P<name_first>[A-Z][^\n.;:|()]{{2,60}}?),? \([“\"']?(?P<code_last>{_LETTERS})[”\"']?\)) ?[:.–—-](?= [A-Z])"
)
"""A line with the description of a district: ``R-1 Residence District: A district for houses``."""
_CODES: Final = re.compile(rf"(?P<codes>{CODE}(?:{_SEPARATOR}{CODE}){{0,20}})(?P<mark>[.:])(?= )")
_EACH: Final = re.compile(rf"(?<![\w-]){CODE}(?![\w-])")
_KIND_LAST: Final = re.compile(r"(?i) (?:districts?|zones?)$")
_FIRST: Final = re.compile(r"(?i)(?:zoning )?(?:district|zone)s?\b")
_SYMBOL: Final = re.compile(r"^(?:map )?(?:symbol|code|abbreviation|designation|label)\b", re.IGNORECASE | re.MULTILINE)
_ELSEWHERE: Final = re.compile(
    r"(?i)\b(?:boundar\w+|lines?|edges?|next to|abut\w*|adjoin\w*|adjacent to|contiguous|from|border\w*|near\w*|along"
    r"|between|(?:other than|except|outside|not)(?: in)?) (?:of |to |from |in )?(?:(?:the|an?|any|each|all) )?"
    r"(?:(?:(?!in\b|within\b)[\w./-]+,? ){0,8}?(?:districts?|zones?)\b"
    rf"|(?-i:{CODE}(?:{_SEPARATOR}{CODE}){{0,20}}))",
)
"""Places next to a limit, or places that the words exclude."""
_PROPER: Final = r"[A-Z][\w/'’-]*(?: (?:(?:and|of|or|&) )?[A-Z0-9][\w/'’-]*){0,6}?"
_NAME_ALONE: Final = re.compile(rf"{_LABEL}(?:[Tt]he )?(?P<name>{_PROPER}(?: (?:Districts?|Zones?))?)[.;,]?(?: and)?")
_INLINE: Final = re.compile(
    r"\b(?:[Dd]istricts|[Zz]ones)\b[^.;:\n()]{0,80}?(?::|\bare|\binto|\bas) (?:the )?(?P<all>[^.:\n]{5,600})\."
)
_NEXT: Final = re.compile(r"(?:[,;] (?:and )?|(?:(?<=istrict)|(?<=Zone)|(?<=\))) and )(?:the )?")
_TITLE_ALONE: Final = re.compile(
    r"(?i)(?!.*\b(?:in|for|within)\b)(?:the )?(?P<name>[A-Z][\w/'’ &,-]{2,60} (?:district|zone|overlay))"
)
_LEAD: Final = re.compile(r"(?i)(?=[^\n]*?\b(?:districts|zones)\b)[^\n]*+(?<=[:.])")
_OF_CLASS: Final = re.compile(
    r"(?i)\b(?P<kind>base|overlay|residen\w+|business|commercial|industrial|agricultural|special|conditional|floating|planned)"
    r" (?:(?:zoning|use) )?(?:districts|zones)\b",
)
"""Words that establish the districts of one class only."""
_ESTABLISHES: Final = re.compile(
    r"(?i)\b(?:divided|class\w*|establish\w*|following|these|created?|designated|(?:districts|zones) are)\b"
)
_HEAD_OF_COLUMN: Final = re.compile(
    rf"({CODE}(?:(?:{_SEPARATOR}|,?[ \n]){CODE}){{0,9}})(?:[ \n]?[ *(:–-].{{0,60}})?", re.DOTALL
)
_HEADER_ROWS: Final = 4
_ALIKE: Final = str.maketrans("0158l", "OISBI")
_SHORT_TEXT: Final = 600
_LONGEST_LINE: Final = 400
_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class District:
    """A district, and the place in a section that names it."""

    code: str
    """As recorded: ``R-1-6``."""
    name: str
    """Empty where only the code is given."""
    section: str
    """Key of the section that names it."""
    start: int | None
    """Code and name are at the offsets [start, end) of the section's text. None if they are in its heading."""
    end: int | None
    confidence: float
    method: str
    """list, heading, table."""
    group: str = ""
    """The class of districts that the list names above it: ``Residential Districts``."""
    listed: tuple[int, int] | None = None
    """The offsets of the words that establish the list, if it was read whole."""


@dataclass(frozen=True, slots=True)
class DistrictList:
    """A list that has all districts of a code."""

    section: str
    """Key of the section that establishes it."""
    start: int
    end: int
    """The words that establish it are at the offsets [start, end) of the section's text."""
    codes: frozenset[str]


def find_whole_list(known: Mapping[str, District], sections: Mapping[str, Section]) -> DistrictList | None:
    """Find the list that has all districts of a code: its words establish them, and no other place names more.

    `sections` are those of the code, by key. Of several lists that have all together, it is the longest.
    """
    if not known or any(each.listed is None or each.section not in sections for each in known.values()):
        return None
    leads = sorted(
        Counter((each.section, each.listed or (0, 0)) for each in known.values()).items(), key=lambda one: -one[1]
    )
    said = [sections[section].text[start:end] for (section, (start, end)), _ in leads]
    # "The following overlay districts" lists a class, and all only together with the base districts.
    kinds = {found["kind"].casefold() if (found := _OF_CLASS.search(lead)) else "" for lead in said}
    if "" not in kinds and not {"base", "overlay"} <= kinds:
        return None
    (section, (start, end)), _ = leads[0]
    return DistrictList(section, start, end, frozenset(known))


def pick_best(several: Iterable[District]) -> Mapping[str, District]:
    """Pick the best place of each district, by code.

    Of equally good places, the one in the section with the lowest key is used, independent of the order of sections.
    """
    found: dict[str, District] = {}
    places = list(several)
    misprints = _find_misprints(places)
    for district in (each for each in places if each.code not in misprints):
        known = found.get(district.code)
        if known is None or _rank(district) < _rank(known):
            found[district.code] = district
    # A column may name a family of districts, as R1 for R1-50 and R1-60.
    listed = [each.code for each in found.values() if each.listed]
    for code in [code for code, each in found.items() if each.method == "table" and not each.listed]:
        if any(other.startswith(code) and other != code for other in listed):
            del found[code]
    # A district without a code may be the same as one with a code, or be written in two ways.
    coded = {code: each for code, each in found.items() if each.code != each.name}
    named: dict[str, District] = {}
    for each in sorted((each for each in found.values() if each.code == each.name), key=_rank):
        if not find_named(each.name, coded):
            named.setdefault(plain_name(each.name), each)
    kept = {each.code for each in named.values()}
    return {code: each for code, each in sorted(found.items()) if code != each.name or code in kept}


def find_named(words: str, known: Mapping[str, District]) -> Sequence[str]:
    """Find the districts that have these words in their names: ``Office District`` is ``Office Building (O)``.

    A name may follow its code: ``VC Village Commercial District``.
    """
    said = _words_of(words)
    names = {code: _words_of(each.name) for code, each in known.items() if each.name} if said else {}
    return [code for code, name in names.items() if said in (name, name | _words_of(code))] or [
        code for code, name in names.items() if said <= name
    ]


def _words_of(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", plain_name(name))) - {"and", "or", "of"}


def _find_misprints(several: Sequence[District]) -> set[str]:
    """Find the codes that may be a misprint of another, ``R-0`` of ``R-O``.

    The code is a row of a table and nothing else, and differs from another only by a letter that looks like a figure.
    """
    places = Counter(each.code for each in several)
    rows = {each.code for each in several if each.method == "table" and places[each.code] == 1}
    others = {code.translate(_ALIKE) for code in places if code not in rows}
    return {code for code in rows if code.translate(_ALIKE) in others}


def _rank(district: District) -> tuple[float, bool, str, int, str]:
    return -district.confidence, not district.name, district.section, district.start or -1, district.name


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns for the districts of one code."""

    plain: re.Pattern[str]
    """Codes that are not a word or letter of the language."""
    placed: re.Pattern[str]
    """``in the R-1 and R-2 Districts``; the only place where codes of one letter are recognized."""
    leading: re.Pattern[str]
    """Codes at the start of a line."""
    each: re.Pattern[str]
    """One code, or one name that only one district has."""
    names: Mapping[str, str]
    """Codes by the names that only one district has, alone and after the code."""


# Cached, since the patterns of a code with many districts take longer to compile than a section to search.
@lru_cache(maxsize=64)
def _patterns(known: tuple[tuple[str, str], ...]) -> _Patterns:
    names = Counter(plain for _, name in known if (plain := plain_name(name)))
    by_name = {plain: code for code, name in known if (plain := plain_name(name)) and names[plain] == 1}
    codes = sorted((code for code, _ in known), key=lambda code: (-len(code), code))
    several = [re.escape(code) for code in codes if len(code) > 1]
    # A name of one word, such as Residential, may also be the kind of several districts.
    phrases = [f"(?i:{re.escape(name)})" for name in sorted(by_name, key=len, reverse=True) if " " in name]
    phrases += [re.escape(_KIND_LAST.sub("", code)) for code, name in known if code == name]
    one, either = (
        rf"(?<![\w-])(?:{'|'.join(of) or '(?!)'})(?![\w-]|\.\d)"
        for of in ([*map(re.escape, codes)], [*map(re.escape, codes), *phrases])
    )
    run, named = (
        rf"[“\"‘(]?{of}[”\"’)]?(?:(?:{_SEPARATOR}| )(?:the )?[“\"‘(]?{of}[”\"’)]?){{0,30}}" for of in (one, either)
    )
    kind = r"(?i:(?: (?!district|zone)[A-Za-z&/-]+){0,6}? (?:zoning )?(?:districts?|zones?|overlay))\b"
    return _Patterns(
        re.compile(rf"(?<![\w-])(?:{'|'.join(several) or '(?!)'})(?![\w-]|\.\d)"),
        re.compile(
            rf"\b(?:[Ii]n|[Ww]ithin|[Ff]or|[Oo]f) (?:(?:the|an?|any|all|each|every|both) )?(?P<codes>{named}){kind}"
        ),
        re.compile(rf"(?P<codes>{run})"),
        re.compile(either),
        {**{plain_name(f"{code} {name}"): code for code, name in known}, **by_name},
    )


def _of_known(known: Mapping[str, District]) -> _Patterns:
    return _patterns(tuple([(code, district.name) for code, district in known.items()]))


def strip_elsewhere(words: str) -> str:
    """Strip the places that some words exclude, or are next to: ``50 feet from the R-1 District``."""
    return _ELSEWHERE.sub(lambda match: " " * len(match[0]), words)


def codes_in_title(title: str, known: Mapping[str, District]) -> Sequence[str]:
    """Find the codes of the districts that a heading is about."""
    if not title or not known:
        return ()
    patterns = _of_known(known)
    title = strip_elsewhere(title)
    if found := patterns.plain.findall(title):
        return list(dict.fromkeys(found))
    if (code := patterns.names.get(plain_name(title))) is not None:
        return [code]
    return list(dict.fromkeys(code for run in patterns.placed.findall(title) for code in _known_codes(run, known)))


def parse_leading_codes(words: str, known: Mapping[str, District]) -> tuple[Sequence[str], int]:
    """Parse the codes of districts at the start of some words; also return the offset after them."""
    match = _of_known(known).leading.match(words) if known else None
    return (_known_codes(match["codes"], known), match.end()) if match else ((), 0)


def _known_codes(codes: str, known: Mapping[str, District]) -> Sequence[str]:
    """Split a list of codes into the known ones."""
    patterns = _of_known(known)
    found = (match[0] for match in patterns.each.finditer(codes))
    return list(dict.fromkeys(each if each in known else patterns.names[each.casefold()] for each in found))


def find_line_starts(text: str) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Yield the lines that start with the codes of the districts that they are about: ``R-1-9, R-1-8: These
    districts``."""
    for line in re.finditer(r"[^\n]+", text):
        if match := _CODES.match(text, line.start(), min(line.end(), line.start() + _LONGEST_LINE)):
            yield line.start(), match.end("codes"), [code[0] for code in _EACH.finditer(match["codes"])]


def plain_name(name: str) -> str:
    """Normalize the name of a district: lower case, without optional words."""
    words = re.sub(
        r"\b(?:districts?|zones?|overlay|the)\b|\([^)\n]{0,200}+\)|(?<![“”\".,:–—-])[“”\".,:–—-]++(?= |$)",
        " ",
        name.casefold(),
    )
    return " ".join(words.split())


def find_filled(cells: Iterable[Cell | None]) -> list[Cell]:
    """Find the cells with words, each once though it may span several places."""
    return list({cell.start: cell for cell in cells if cell is not None and cell.text.strip()}.values())


def find_column_codes(
    grid: Sequence[Sequence[Cell | None]], known: Mapping[str, District]
) -> tuple[int, Mapping[int, Sequence[str]]] | None:
    """Find the header row that names districts, and the districts of each of its columns. A cell may name several."""
    for number, row in enumerate(grid[:_HEADER_ROWS]):
        heads = {place: cell.text.strip() for place, cell in enumerate(row) if place and cell and cell.text.strip()}
        found = {place: codes for place, words in heads.items() if (codes := _of_head(words, known))}
        below = {cell.text.strip() for each in grid[number + 1 :] for cell in each[1:] if cell}
        if not below.isdisjoint(code for codes in found.values() for code in codes):
            continue  # marks of uses, not districts
        apart = len({cell.start for place, cell in enumerate(row) if place in heads and cell is not None})
        if found and len(found) * 2 >= apart and (len(found) > 1 or apart == 1):
            letters = {
                place: [words]
                for place, words in heads.items()
                if re.fullmatch(r"[A-Z]{1,5}", words) and words not in ("USE", "USES")
            }
            return number, {place: found.get(place) or letters[place] for place in heads if place in {*found, *letters}}
    return None


def _of_head(words: str, known: Mapping[str, District]) -> Sequence[str]:
    """Parse the header of a column into districts: ``R-1``, ``R-1 (note 2)``, ``A-2 A-3 A-4``."""
    named = _of_known(known).names.get(plain_name(words)) if known else None
    if named is not None:
        return [named]
    match = _HEAD_OF_COLUMN.fullmatch(words)
    return _EACH.findall(match[1]) if match else [words] if words in known else []


def find_in_section(section: Section) -> Iterator[District]:
    """Yield the districts that a section names, once per place."""
    about = bool(_ABOUT.search(section.title)) or bool(_ABOUT.search(section.text[:_SHORT_TEXT]))
    yield from _in_heading(section, about=about)
    if not about:
        return
    yield from _in_lists(section)
    yield from _in_tables(section)


def _in_heading(section: Section, *, about: bool) -> Iterator[District]:
    """Yield the districts that a heading names: with codes, or one by its name alone."""
    title = _STATUS.sub("", section.title).strip(" .:;")
    found = [*_parse_codes(title, about=about)]
    for code, name in found:
        yield District(code, name, section.key, None, None, 0.9, "heading")
    alone = None if found else _TITLE_ALONE.fullmatch(title)
    if alone is not None and not OTHER_KIND.search(title) and not _TOPIC.search(title):
        name = _name(alone["name"].title() if alone["name"].isupper() else alone["name"])
        if plain_name(name) not in ("", "zoning", "use", "general", "special"):
            yield District(name, name, section.key, None, None, 0.8, "heading")


def _parse_codes(words: str, *, about: bool) -> Iterator[tuple[str, str]]:
    """Parse the words of a heading into codes and names. `about`: the section is about districts."""
    named = [*_IN_BRACKETS.finditer(words)]
    if named and (about or any(_KIND.search(each["name"]) for each in named)):
        for each in named:
            name = re.sub(r"^(?:and|or|&) |^.*\b(?:in|for|within) (?:the )?", "", each["name"])
            sure = "-" in each["code"] or any(map(str.isdigit, each["code"])) or _ABOUT.search(words)
            if sure and not _TOPIC.search(name):
                yield each["code"], _name(name)
        return
    match = (
        _CODE_LAST.fullmatch(words)
        if words[-1:] in "”\"'"
        else _CODES_FIRST.match(words) or _CODE_LAST.fullmatch(words)
    )
    if match is None:
        return
    name = match["name"]
    if match["letters"]:
        # Letters may be a word, as in "LIGHT INDUSTRIAL DISTRICT" and "A list of districts".
        word = words.isupper() and not match["mark"].strip()
        article = match["letters"] == "A" and name[:1].islower()
        if (word and words[-1] not in "”\"'") or article or not _ABOUT.search(words.replace(match["letters"], "")):
            return
    elif not (about or _KIND.search(name)):
        return
    codes = [match["letters"]] if match["letters"] else _EACH.findall(match["codes"])
    topic = _TOPIC.search(name)
    if topic:  # "Lot sizes in the R-1 District" begins with no name
        name = name[: topic.start()] if match.re is _CODES_FIRST else ""
    for code in codes:
        yield code, _name(name) if len(codes) == 1 else ""


def _name(words: str) -> str:
    """Normalize the name of a district. The word district alone is not a name."""
    name = re.sub(r"^[Tt]he ", "", words.strip(" .,;:-–—"))
    return name if plain_name(name) else ""


def _in_tables(section: Section) -> Iterator[District]:
    """Find the districts of header cells, and of columns of codes."""
    for table in section.tables:
        grid = table.grid()
        if not grid or not grid[0]:
            continue
        if (named := find_column_codes(grid, {})) is not None and len(named[1]) > 1:
            for place, codes in named[1].items():
                if (cell := grid[named[0]][place]) is not None:
                    yield from (District(code, "", section.key, cell.start, cell.end, 0.7, "table") for code in codes)
        yield from _in_rows(section, table, grid)


def _in_rows(section: Section, table: Table, grid: Sequence[Sequence[Cell | None]]) -> Iterator[District]:
    """Find the districts of a column of codes, below words that establish districts or a header that names them.

    A row with a name alone is the class of the districts below it.
    """
    heads = "\n".join(cell.text for cell in grid[0][:3] if cell is not None)
    lead, symbols = _get_lead(section.text, table.start), _SYMBOL.search(heads) is not None
    if lead is None and not symbols and not _FIRST.match(heads):
        return
    pattern = re.compile(_ANY if lead or symbols else _LETTERS)
    coded = [
        {place: cell for place, cell in enumerate(row) if cell is not None and pattern.fullmatch(cell.text.strip())}
        for row in grid
    ]
    counts = Counter(sorted(place for row in coded for place in row))
    column = counts.most_common(1)[0][0] if counts else 0
    said = {row[column].start: row[column].text.strip() for row in coded if column in row}
    # Levels of uses repeat in their columns, codes of districts in the first at most.
    if len(said) < 2 or (column and len({*said.values()}) < len(said)):
        return
    found: list[District] = []
    group, whole = "", True
    for number, (row, codes) in enumerate(zip(grid, coded, strict=True)):
        cells = find_filled(row)
        if (code := codes.get(column)) is not None:
            names = [cell for cell in cells if cell not in codes.values()]
            name = _name(names[0].text) if names and (lead or symbols) else ""
            start, end = (cells[0].start, cells[-1].end) if name else (code.start, code.end)
            sure = 0.95 if lead else 0.75
            found.append(District(code.text.strip(), name, section.key, start, end, sure, "table", group))
        elif number >= table.header_rows and len(cells) == 1:
            group = cells[0].text.strip()
        elif number >= max(1, table.header_rows) and cells:
            whole = False
    yield from (replace(each, listed=lead if whole else None) for each in found)


def _get_lead(text: str, at: int) -> tuple[int, int] | None:
    """Get the offsets of the words before `at` that establish districts, if the last line before it has some."""
    begin = max(0, at - _LONGEST_LINE)
    end = begin + len(text[begin:at].rstrip())
    start = text.rfind("\n", 0, end) + 1
    if _LEAD.match(text, start, end) is None or _ESTABLISHES.search(text, start, end) is None:
        return None
    stop = text.rfind(". ", start, max(end - 1, 0))
    return (start if stop < 0 else stop + 2), end


def _in_lists(section: Section) -> Iterator[District]:
    """Find runs of at least two lines that are one district each, and sentences that establish a list of them."""
    text = section.text
    run: list[District] = []
    lead: tuple[int, int] | None = None
    for line in [*re.finditer(r"[^\n]+", text), None]:
        one = _parse_item(section, *line.span(), led=lead is not None, within=len(run) > 1) if line else None
        if one is not None:
            run.append(one)
            continue
        if len(run) > 1 and sum(bool(_KIND.search(each.name)) for each in run) * 2 >= len(run):
            # A short line after the list may be one more district.
            whole = line is None or len(line[0]) > _LONGEST_NAME or line[0][-1] in ".:"
            listed = lead if whole and _has_count(text, lead, len(run)) else None
            yield from (replace(each, listed=listed) for each in run)
        run = []
        lead = None if line is None else _get_lead(text, line.end())
    for match in _INLINE.finditer(text):
        first, last = match.span("all")
        if _ESTABLISHES.search(text, max(0, match.start() - 120), first) is None:
            continue
        gaps = [*_NEXT.finditer(text, first, last)]
        spans = zip([first, *(gap.end() for gap in gaps)], [*(gap.start() for gap in gaps), last], strict=True)
        items = [_parse_item(section, *span, led=True, within=True) for span in spans]
        several = [one for one in items if one is not None]
        if 1 < len(several) == len(items):
            yield from (replace(each, listed=match.span()) for each in several)


def _has_count(text: str, lead: tuple[int, int] | None, count: int) -> bool:
    """Whether the words that establish a list state no other number of districts."""
    said = re.search(r"\(?(\d{1,2})\)? (?:\w+ ){0,2}(?:districts|zones)\b", text[lead[0] : lead[1]]) if lead else None
    return said is None or int(said[1]) == count


def _parse_item(section: Section, start: int, end: int, *, led: bool, within: bool) -> District | None:
    """Parse an item that is one district: ``R-1 Residence``, ``Farm (F)``, or a name alone in a list that is `led`.

    `within`: items before it are districts.
    """
    text = section.text
    match = _DESCRIBED.match(text, start, end)
    described = match is not None
    match = match or _LINE.match(text, start, min(end, start + 120))
    if match and (described or match.end() == end):
        first, last = ("code", "name") if match["code"] else ("name_first", "code_last")
        code, name = (match[first], match[last]) if match["code"] else (match[last], match[first])
        letter = len(code) == 1 and (
            text[match.end(first)] == "."
            or not (_ABOUT.search(name) or (led and not match["code"]) or (within and (led or _KIND.search(name))))
        )
        if described or not (letter or level_of(name)):
            return District(code, _name(name), section.key, match.start(first), match.end(last), 0.95, "list")
    alone = _NAME_ALONE.fullmatch(text, start, end) if led else None
    if alone is None or level_of(alone["name"]):
        return None
    name = _name(alone["name"])
    return District(name, name, section.key, *alone.span("name"), 0.9, "list")
