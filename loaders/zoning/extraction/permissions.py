"""Uses that districts permit or prohibit, in lists, in sentences, and in matrices of letters."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District, add_condition, development_of
from loaders.zoning.extraction.permission_levels import NOT, Level, find_review, level_of
from loaders.zoning.extraction.section_protocol import Cell, Section, Table
from loaders.zoning.extraction.use_sentences import find_statements, split_alternatives, split_list, strip_brackets

_LABEL: Final = re.compile(
    r"(?:(?:\([A-Za-z0-9-]{1,5}\)|\d{1,3}(?:[.-]\d{1,4}){1,5}[A-Za-z]?\.?(?= )"
    r"|[A-Za-z0-9]{1,3}[.)]|[•*·–-]) ?){1,3}(?=\S)"
)
_USED_FOR: Final = re.compile(r"\bused only for\b", re.IGNORECASE)
_USES: Final = re.compile(
    r"\b(?:uses?|activities|used only for|special exceptions?|conditional (?:land )?uses?)\b", re.IGNORECASE
)
_SAYS: Final = re.compile(
    r"\b(?:is|are|was|were|be|has|have|shall|must|may|will|can|does|do|means?|includes?)\b", re.IGNORECASE
)
_HEAD: Final = re.compile(
    r"(?:(?:the |these |all )?(?:following )?(?:are )?(?:(?:principal|primary|main|accessory|temporary"
    r"|land|and|or|permitted|allowed"
    r"|allowable|prohibited|conditional|special|specific|limited|by[- ]right|conditionally|uses?"
    r"|buildings|structures|activities)"
    r"[,/]? ?){1,7}|uses? by right)"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_INSIDE: Final = re.compile(r"[.;] (?=(?:Permitted|Conditional|Prohibited|Allowed) Uses?\b[^\n]{0,300}:$)")
_HEADING_CONDITION: Final = re.compile(r"\b(?:if|provided|only|subject to (?!cond)|when)\b.*", re.IGNORECASE)
_ANNOUNCES: Final = re.compile(r"\b(?:follow\w*|is|are|be|if|when|where|subject|provided)\b", re.IGNORECASE)
"""Words after the heading of a list on its line if the list is below it."""
_FOLLOWING: Final = re.compile(r" ?(?:the|these|all|any) ", re.IGNORECASE)
_HEAD_IN: Final = re.compile(
    r"(?:(?:conditionally |principally )?(?:permitted|allowed|prohibited)|not (?:permitted|allowed))"
    r"(?: (?:by right|as of right|by (?:special|conditional|use)(?: use)? permit))?"
    r" in (?:the )?(?P<where>[^:.;]{1,80})",
    re.IGNORECASE,
)
"""``Permitted in R-1 and R-2``, above a list or before it on the same line."""
_BARE_HEADS: Final = frozenset(("permitted", "prohibited", "conditional"))
_ENDING: Final = frozenset(
    re.findall(
        r"\w+",
        "standards requirements regulations review criteria setback setbacks height density findings procedure "
        "procedures purpose intent provisions restrictions limitations signs signage parking walls fences landscaping "
        "lighting application applications coverage",
    )
)
"""Last words of headings that end a list of uses."""
_ACCESSORY: Final = re.compile(r"Accessory (?:Buildings|Uses|Structures)[^.\n]{0,40}\((?:see|as)\b", re.IGNORECASE)
_PROSE: Final = re.compile(
    r"(?:The|No|All|Each|Any|Every|If|Where|When|In|For|A|An|It|These"
    r"|Such)\b[^\n]{0,200}\b(?:shall|must|may|is|are|will)\b"
)
_END: Final = re.compile(r"(?:[;,.]| (?=and$|or$))(?: and| or)?[;, ]*$|[;, ]+(?:and|or)$")
_CONDITION: Final = re.compile(
    r"\.?[ ]?(?=\((?!\d+\)))|\. (?=[A-Z(])|,(?= but (?!not limited))|[,;]? (?=(?:provided|if|when|where|so long as"
    r"|as long as|subject to|must|shall|unless"
    r"|not (?:taller|larger|more|less|exceeding|to exceed)|only|up to|with no)\b)|; "
)
_ONLY: Final = re.compile(
    rf"(?:\bin the |\()(?P<codes>{naming.CODE}(?:(?:, (?:and |or )?| and | or ){naming.CODE}){{0,20}})"
    r" (?:zones?|districts?)(?P<only> only)?",
    re.IGNORECASE,
)
_WHERE_FIRST: Final = re.compile(
    r"(?:In|Within) (?:the|all|any|each|every) [^,:;.]{1,80}(?i:districts?|zones?)[^,:;.]{0,20}, ?"
)
_BARE: Final = re.compile(r"[A-Za-z0-9]{1,5}")
_ALIKE: Final = str.maketrans(string.ascii_letters, "a" * 26 + "A" * 26)
_LONGEST_USE: Final = 600
_WORDS_OF_ITEM: Final = 24


@dataclass(frozen=True, slots=True)
class UsePermission:
    """A use and its level in a district, as stated at the offsets [start, end) of the section's text."""

    district: str
    """Code of the district."""
    use: str
    """Verbatim, without its conditions."""
    level: Level
    raw_level: str
    """The words or letters of the source: ``Uses Subject to Conditions``, ``P``."""
    conditions: Sequence[str]
    """Verbatim."""
    review: str | None
    """The citation of the required review, verbatim: ``§15.3.08.060``."""
    start: int
    end: int
    confidence: float
    method: str
    """list, sentence, matrix."""


@dataclass(frozen=True, slots=True)
class _Heading:
    level: Level
    raw: str
    conditions: tuple[str, ...] = ()
    review: str | None = None
    districts: tuple[str, ...] = ()
    label: str = ""


def find_permissions(
    section: Section, known: Mapping[str, District], above: Sequence[Section] = ()
) -> Sequence[UsePermission]:
    """Find the uses that a section permits or prohibits: in lists and sentences, then in matrices.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first.
    """
    in_matrices = [found for table in _join_tables(section, known) for found in _in_matrix(section, table, known)]
    return [*_in_text(section, known, above), *in_matrices]


def _in_text(section: Section, known: Mapping[str, District], above: Sequence[Section]) -> Sequence[UsePermission]:
    """Find the uses in the lists and sentences of a section, in text order."""
    text = section.text
    around: tuple[str, ...] = tuple(naming.codes_of_section(section, known, above))
    own = {start: codes for start, _, codes in naming.find_line_starts(text)}
    tables = [(table.start, table.end) for table in section.tables]
    found: list[UsePermission] = []
    titled = (
        _parse_heading(section.title, 0, len(section.title), known)
        if not naming.find_codes(section.title, known)
        else None
    )
    heading = latest = titled
    place: tuple[str, ...] | None = None
    place_label = item = ""
    for line in re.finditer(r"[^\n]+", text):
        start, end = line.span()
        if any(first <= start < last for first, last in tables):
            continue
        codes = [code for code in own.get(start, ()) if code in known]
        if codes:
            # Consecutive lines for several districts belong together. A line after a list starts the next district.
            around = tuple(codes) if latest is not None else tuple(dict.fromkeys((*around, *codes)))
            heading = latest = place = None
        if inside := _INSIDE.search(text, start, end):
            start = inside.end()
        body = find_label_end(text, start, end)
        label = text[start:body].strip()
        if place is not None and is_next_label(label, place_label):
            place = None
        if heading is not None and heading is not titled and is_next_label(label, heading.label):
            heading = None
        words = text[body:end].rstrip()
        given = _parse_heading(text, body, end, known)
        listed = _find_inline_list(text, body, end, given, known)
        if given is not None and listed:
            codes_of = given.districts or place or tuple(codes) or around
            given = replace(given, conditions=() if given.level == "conditional" else _heading_conditions(given.raw))
            for first, last in listed:
                found += _parse_item(text, first, last, given, codes_of, known)
            heading = heading if heading is titled else None
        elif given is not None and _is_complete(words):
            heading = heading if heading is titled else None
        elif given is not None:
            heading = latest = _inherit_words(replace(given, label=label), latest)
        elif not codes and (headed := naming.parse_heading(words, known)):
            place, place_label = tuple(headed), label
            heading = titled if titled is not None and level_of(words) in (None, titled.level) else None
        elif heading is not None and label and item and _style(label) != _style(item) and _PROSE.match(words):
            continue  # below a use: conditions of it
        elif _is_end(words) or (heading is titled and not _may_be_item(words, label)):
            heading = heading if heading is titled else None
        elif heading is not None and end - body <= _LONGEST_USE:
            said = list(_find_in_sentences(text, body, end, (), known))
            if said:
                found += said
                continue
            item = label
            several = [(body + first, body + last) for first, last in split_alternatives(words)]
            for first, last in several or [(body, end)]:
                found += _parse_item(text, first, last, heading, heading.districts or place or around, known)
            continue
        if given is None:
            found += _find_in_sentences(text, body, end, tuple(codes) or place or around, known)
    kind = development_of(section, known, above) if found else None
    return found if kind is None else [_conditional(each, kind, known) for each in found]


def _conditional(each: UsePermission, kind: str, known: Mapping[str, District]) -> UsePermission:
    """Add the condition that the use is part of a `kind` of development to a permission."""
    conditions = add_condition(each.conditions, kind, each.district, known)
    limited = each.level == "byRight" and conditions is not each.conditions
    return replace(each, level="byRightWithConditions" if limited else each.level, conditions=conditions)


def _find_inline_list(
    text: str, start: int, end: int, given: _Heading | None, known: Mapping[str, District]
) -> Sequence[tuple[int, int]]:
    """Find the uses after the heading of a list on its own line: ``Permitted uses: parks; schools.``"""
    colon = text.find(":", start, end) + 1
    if given is None or not colon or _FOLLOWING.match(text, colon, end):
        return []
    return [(colon + first, colon + last) for first, last in split_list(text[colon:end])]


def _is_complete(words: str) -> bool:
    """Whether the line of a heading is complete in itself: ``Prohibited uses: none.``"""
    rest = words.partition(":")[2].strip()
    return bool(rest) and not rest.endswith(":") and not _ANNOUNCES.search(rest)


def _may_be_item(words: str, label: str) -> bool:
    """Whether a line below the section's own heading is a use: labelled or short, and not a sentence."""
    short = len(words.split()) <= (_WORDS_OF_ITEM if label else _WORDS_OF_ITEM // 2)
    return short and not words.endswith(":") and not _SAYS.search(_CONDITION.split(words, maxsplit=1)[0])


def _style(label: str) -> str:
    """The style of a label without its letter or number: ``(a)`` equals ``(b)``, but not ``(1)`` or ``i.``"""
    return re.sub(r"[ivx]+|[a-z]{2,}", "#", re.sub(r"\d+", "1", label)).translate(_ALIKE)


def is_next_label(label: str, before: str | None) -> bool:
    """Check whether a label follows another: ``(b)`` follows ``(a)``, ``2.`` follows ``1.``"""
    last, this = _BARE.search(before or ""), _BARE.search(label)
    if last is None or this is None or _BARE.sub("", before or "") != _BARE.sub("", label):
        return False
    if last[0].isdigit() or this[0].isdigit():
        return last[0].isdigit() and this[0].isdigit() and int(this[0]) == int(last[0]) + 1
    return len(last[0]) == len(this[0]) == 1 and ord(this[0]) == ord(last[0]) + 1


def find_label_end(text: str, start: int, end: int) -> int:
    """Find the end of the label at the start of the line [start, end)."""
    label = _LABEL.match(text, start, end)
    return label.end() if label else start


def _parse_heading(text: str, start: int, end: int, known: Mapping[str, District]) -> _Heading | None:
    """Parse a line as the heading of a list of uses. None if it is not one."""
    line = text[start:end].rstrip()
    named, colon, rest = line.partition(":")
    aside = re.search(r" ?\((?:see|as|in accordance|pursuant|refer|per)\b", named)
    words = (named[: aside.start()] if aside else named).rstrip(". ")
    if colon and (placed := _HEAD_IN.fullmatch(words)) and (of := naming.find_codes(placed["where"], known)):
        level = level_of(words)
        return None if level is None else _Heading(level, words, districts=tuple(of))
    where = _WHERE_FIRST.match(words)
    head = _HEAD.match(words, where.end() if where else 0)
    if head is None or not (_USES.search(words) or words.casefold() in _BARE_HEADS):
        return None
    if len(words.split()) > (60 if colon else 10):
        return None
    level = "byRight" if _USED_FOR.search(words) and not NOT.search(words) else level_of(words)
    if level is None or (not colon and rest) or (colon and rest.strip() and not line.endswith(":") and len(rest) > 300):
        return None
    if not colon and (". " in named.rstrip(". ") or _SAYS.search(words)):
        return None
    said = words if not rest.strip() else f"{words}:{rest}"
    conditions = () if _USED_FOR.search(words) else _heading_conditions(said)
    conditional = level == "conditional"
    return _Heading(
        level,
        words,
        conditions if not conditional else (),
        find_review(named) if conditional else None,
        tuple(
            known
            if (codes := naming.find_places(words, 0, len(words), known)) == ()
            else codes or naming.find_codes(words, known)
        ),
    )


def _heading_conditions(said: str) -> tuple[str, ...]:
    return tuple(match[0].strip(" :.") for match in _HEADING_CONDITION.finditer(said))[:1]


def _inherit_words(given: _Heading, before: _Heading | None) -> _Heading:
    """Give the heading of a part of a list, ``The following uses are permitted if ...``, the words of the list."""
    if before is not None and given.raw.casefold().startswith("the following") and before.level == given.level:
        return replace(given, raw=before.raw, districts=given.districts or before.districts)
    return given


def _is_end(line: str) -> bool:
    """Whether a line ends a list of uses: another heading, or prose."""
    if _ACCESSORY.match(line):
        return True
    name = re.split(r" ?[(:]|\. |\.$", line, maxsplit=1)[0].rstrip(" .")
    words = name.split()
    last = words[-1].strip(",/").split("/")[-1].casefold() if words else ""
    return (len(words) <= 6 and last in _ENDING) or bool(_PROSE.match(line))


def _parse_item(
    text: str, start: int, end: int, heading: _Heading, around: Sequence[str], known: Mapping[str, District]
) -> Iterator[UsePermission]:
    """Parse a line of a list into its use, once per district."""
    line = text[start:end].rstrip()
    if closing := _END.search(line):
        line = line[: closing.start() + (line[closing.start()] == "." and not line[:-1].endswith("."))]
    cut = _CONDITION.search(line)
    use = (line[: cut.start()] if cut else line).strip(" .;,:")
    rest = line[cut.end() :].strip() if cut else ""
    if not use or line.startswith("[") or len(use) > 300 or (line.endswith(":") and not cut):
        return
    only = _ONLY.search(line)
    codes = list(around)
    if only:
        named = [code for code in naming.find_codes(only["codes"], known) if code in around]
        codes = named or codes
    if only and not cut and only.start():
        use, rest = line[: only.start()].strip(" .;,("), line[only.start() :]
    elif only and use.endswith(only[0].strip()):
        use = use[: -len(only[0].strip())].strip(" .;,(")
    conditions = [each for each in (strip_brackets(rest), *heading.conditions) if each]
    review = (find_review(rest) if rest and heading.level == "conditional" else None) or heading.review
    for code in codes:
        yield UsePermission(
            code, use, heading.level, heading.raw, conditions, review, start, start + len(line), 0.9, "list"
        )


def _find_in_sentences(
    text: str, start: int, end: int, around: Sequence[str], known: Mapping[str, District]
) -> Iterator[UsePermission]:
    """Find uses in sentences of the line: ``Residential uses are not allowed in this district.``"""
    for said in find_statements(text, start, end, known):
        for code in around if said.districts is None else said.districts:
            yield UsePermission(
                code,
                said.use,
                said.level,
                said.raw,
                said.conditions,
                said.review,
                said.start,
                said.end,
                0.7,
                "sentence",
            )


_USUAL: Final[Mapping[str, Level]] = {
    "P": "byRight", "Y": "byRight", "YES": "byRight", "BR": "byRight", "PERMITTED": "byRight",
    "ALLOWED": "byRight", "✓": "byRight", "✔": "byRight", "•": "byRight", "●": "byRight", "■": "byRight",
    "C": "conditional", "CU": "conditional", "CUP": "conditional", "SU": "conditional",
    "SE": "conditional", "SP": "conditional", "SUP": "conditional", "SLU": "conditional", "CONDITIONAL": "conditional",
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


def _in_matrix(section: Section, table: _Joined, known: Mapping[str, District]) -> Iterator[UsePermission]:
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
    legend = _parse_legend(section, table, words)
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
    words: Set[str]
    """Words around the table."""


def _parse_legend(section: Section, table: _Joined, words: Sequence[str]) -> _Legend:
    """Parse the meaning of letters from the text around the table, with defaults."""
    before = section.text[max(0, table.start - _AROUND) : table.start]
    after = section.text[table.end : table.end + _AROUND]
    legend, reviews = dict(_USUAL), dict[str, str]()
    letters = {each for word in words for each in (_letters(word), word.strip().upper())}
    own: set[str] = set()
    for around in (after, before):
        for letter, meaning in _meanings(around, letters):
            level = level_of(f"{meaning} uses") or ("byRightWithConditions" if _BESIDE.search(meaning) else None)
            if level is not None:
                legend[letter] = level
                own.add(letter)
                if level == "conditional" and (review := find_review(meaning)):
                    reviews[letter] = review
    if "X" in letters and "X" not in own:
        legend["X"] = (
            "notPermitted" if any(legend.get(letter) == "byRight" for letter in letters - {"X"}) else "byRight"
        )
    said = _BLANK.search(before) or _BLANK.search(after)
    blank = level_of(said[0]) if said else None
    return _Legend(legend, blank, reviews, {*re.findall(r"\b[A-Z]{1,3}\d\b", before + after)})


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
        yield UsePermission(code, name, level, "", conditions, None, use.start, use.end, 0.6, "matrix")
        return
    if level == "byRight" and conditions:
        level = "byRightWithConditions"
    review = legend.reviews.get(raw.upper()) if level == "conditional" else None
    conditions += told if level != "notPermitted" else ()
    yield UsePermission(code, name, level, raw, conditions, review, cell.start, cell.end, 0.9, "matrix")


def strip_marks(section: Section, cell: Cell) -> str:
    """Get the words of a cell without its raised marks."""
    words, at = [], cell.start
    for start, end in sorted(cell.superscripts):
        words.append(section.text[at:start])
        at = max(at, end)
    return "".join([*words, section.text[at : cell.end]])
