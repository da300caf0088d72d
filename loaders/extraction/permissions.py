"""Which uses a district permits, from lists and sentences; those of matrices are in `matrices`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from loaders.extraction import districts as naming
from loaders.extraction.citations import citations
from loaders.extraction.districts import District
from loaders.extraction.sections import Section

Level = Literal["byRight", "byRightWithConditions", "conditional", "notPermitted"]

_LABEL: Final = re.compile(r"(?:(?:\([A-Za-z0-9-]{1,5}\)|[A-Za-z0-9]{1,3}[.)]|[•*·–-]) ?){1,3}(?=\S)")
_NOT: Final = re.compile(
    r"\bprohibited|\bnot (?:be )?(?:permitted|allowed)|\bunpermitted|\bno(?:t one)? of the following uses",
    re.IGNORECASE,
)
_CONDITIONAL: Final = re.compile(
    r"\bconditional(?:ly)?\b|\bspecial (?:land )?(?:uses?|exceptions?|permits?)|\b(?:uses? )?(?:by|requiring a) special"
    r"|\buses? (?:permitted|allowed) (?:on|upon|by) (?:review|appeal|permit)",
    re.IGNORECASE,
)
_LIMITED: Final = re.compile(
    r"\b(?:subject to|with|under) (?:\w+ ){0,2}(?:conditions?|standards|limitations|restrictions|requirements)\b"
    r"|\blimited uses|\bsubject to\b",
    re.IGNORECASE,
)
_BY_RIGHT: Final = re.compile(r"\b(?:permitted|allowed|allowable|by[- ]right|principal|primary)\b", re.IGNORECASE)
_USES: Final = re.compile(r"\b(?:uses?|activities)\b", re.IGNORECASE)
_HEAD: Final = re.compile(
    r"(?:(?:the |these |all )?(?:following )?(?:(?:principal|primary|main|accessory|temporary"
    r"|land|and|or|permitted|allowed"
    r"|allowable|prohibited|conditional|special|limited|by[- ]right|conditionally|uses?"
    r"|buildings|structures|activities)"
    r"[,/]? ?){1,7}|uses? by right)"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_INSIDE: Final = re.compile(r"[.;] (?=(?:Permitted|Conditional|Prohibited|Allowed) Uses?\b[^\n]{0,300}:$)")
_ENDING: Final = frozenset(
    [
        "standards",
        "requirements",
        "regulations",
        "review",
        "criteria",
        "setback",
        "setbacks",
        "height",
        "density",
        "findings",
        "procedure",
        "procedures",
        "purpose",
        "intent",
        "provisions",
        "restrictions",
        "limitations",
        "signs",
        "signage",
        "parking",
        "walls",
        "fences",
        "landscaping",
        "lighting",
        "application",
        "applications",
        "coverage",
    ]
)
"""Last words of the headings that end a list of uses."""
_ACCESSORY: Final = re.compile(r"Accessory (?:Buildings|Uses|Structures)[^.\n]{0,40}\((?:see|as)\b", re.IGNORECASE)
_PROSE: Final = re.compile(
    r"(?:The|No|All|Each|Any|Every|If|Where|When|In|For|A|An|It|These"
    r"|Such)\b[^\n]{0,200}\b(?:shall|must|may|is|are|will)\b"
)
_CONDITION: Final = re.compile(
    r"\.?[ ]?(?=\((?!\d+\)))|\. (?=[A-Z(])|[,;]? (?=(?:provided|if|when|where|so long as"
    r"|as long as|subject to|must|shall|unless"
    r"|not (?:taller|larger|more|less|exceeding|to exceed)|only|up to|with no)\b)|; "
)
_ONLY: Final = re.compile(
    rf"(?:\bin the |\()(?P<codes>{naming.CODE}(?:(?:, (?:and |or )?| and | or ){naming.CODE}){{0,20}})"
    r" (?:zones?|districts?)(?P<only> only)?",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(
    r"(?P<use>[A-Z][^.;:\n]{2,80}?) (?:is|are|will be|shall be) (?P<level>(?:not (?:be )?|expressly |hereby |only )?"
    r"(?:permitted|allowed|prohibited))(?P<how> (?:uses?|with conditions|as (?:a )?(?:conditional|special) uses?))?"
    r"(?P<where> (?:in|within) (?:this|the|all) [^.;:\n]{0,60}?(?:zones?|districts?))?"
    r"(?P<conditions> (?:\(|if |provided |when |with |subject )(?:[^.;:\n]|\.(?=\S)){0,200})?(?:\.(?= |\n|$)|$)",
    re.MULTILINE,
)
_LEVELS: Final = re.compile(r"\b(?:permitted|allowed|prohibited|conditional|special|right|subject)\b", re.IGNORECASE)
_NO_USE: Final = re.compile(
    r"\b(?:shall|which|that|when|where|parking spaces?|height|setbacks?|distance|exceptions?|this)\b", re.I
)
_LONGEST_USE: Final = 600


@dataclass(frozen=True, slots=True)
class UsePermission:
    """A use and how a district permits it; the code points [start, end) of the section's text say so."""

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
    """What is cited as the review that is due, verbatim: ``§15.3.08.060``."""
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


def permissions(
    section: Section, known: Mapping[str, District], above: Sequence[Section] = ()
) -> Sequence[UsePermission]:
    """Return the uses that the lists and sentences of a section permit in each of its districts, in its order.

    `known` are the districts of the code, and `above` the sections that this one is part of, from the inside.
    """
    around: tuple[str, ...] = tuple(naming.of_section(section, known, above))
    own = {start: codes for start, _, codes in naming.starts(section.text)}
    tables = [(table.start, table.end) for table in section.tables]
    found: list[UsePermission] = []
    heading: _Heading | None = None
    headings: list[_Heading] = []
    for line in re.finditer(r"[^\n]+", section.text):
        start, end = line.span()
        if any(first <= start < last for first, last in tables):
            continue
        codes = [code for code in own.get(start, ()) if code in known]
        if codes:
            # Lines for several districts one after another go together; one after a list begins the next.
            around = tuple(codes) if headings else tuple(dict.fromkeys((*around, *codes)))
            heading, headings = None, []
        if inside := _INSIDE.search(section.text, start, end):
            start = inside.end()
        body = _body(section.text, start, end)
        given = _heading(section.text, body, end, known)
        if given is not None:
            heading = _under(given, headings)
            headings.append(heading)
        elif _is_end(section.text[body:end]):
            heading = None
        elif heading is not None and end - body <= _LONGEST_USE:
            found += _item(section.text, body, end, heading, heading.districts or around, known)
            continue
        if given is None:
            found += _sentences(section.text, body, end, tuple(codes) or around, known)
    return found


def _body(text: str, start: int, end: int) -> int:
    label = _LABEL.match(text, start, end)
    return label.end() if label else start


def _heading(text: str, start: int, end: int, known: Mapping[str, District]) -> _Heading | None:
    """What the line says of the level of the uses that follow it, if it is the heading of a list."""
    line = text[start:end].rstrip()
    named, colon, rest = line.partition(":")
    cited = re.search(r" ?\((?:see|as|in accordance|pursuant|refer)\b", named)
    words = (named[: cited.start()] if cited else named).rstrip(". ")
    head = _HEAD.match(words)
    if head is None or not (_USES.search(words) or words.casefold() in ("permitted", "prohibited", "conditional")):
        return None
    if len(words.split()) > (40 if colon else 10) or not (_LEVELS.search(words) or _USES.search(words)):
        return None
    level = level_of(words)
    if level is None or (not colon and rest) or (colon and rest.strip() and not line.endswith(":") and len(rest) > 300):
        return None
    if not colon and ". " in named.rstrip(". "):
        return None
    said = words if not rest.strip() else f"{words}:{rest}"
    conditions = tuple(
        match[0].strip(" :.")
        for match in re.finditer(r"\b(?:if|provided|only|subject to (?!cond)|when)\b.*", said, re.IGNORECASE)
    )[:1]
    conditional = _CONDITIONAL.search(words)
    review = citations(named) if cited and conditional else ()
    return _Heading(
        level,
        words,
        conditions if not conditional else (),
        review[0].raw if review else None,
        tuple(naming.named(words, known)),
    )


def _under(given: _Heading, before: Sequence[_Heading]) -> _Heading:
    """The heading of a part of a list, `The following uses are permitted if ...`, has the words of the list."""
    if before and given.raw.casefold().startswith("the following") and before[-1].level == given.level:
        return replace(given, raw=before[-1].raw, districts=given.districts or before[-1].districts)
    return given


def level_of(words: str) -> Level | None:
    """Return the level that some words are about: ``Uses subject to conditional use permit`` is conditional."""
    if _NOT.search(words):
        return "notPermitted"
    if _CONDITIONAL.search(words):
        return "conditional"
    if _LIMITED.search(words):
        return "byRightWithConditions"
    return "byRight" if _BY_RIGHT.search(words) else None


def _is_end(line: str) -> bool:
    """Whether a line ends a list of uses: the heading of something else, or prose."""
    if _ACCESSORY.match(line):
        return True
    name = re.split(r" ?[(:]|\. |\.$", line, maxsplit=1)[0].rstrip(" .")
    words = name.split()
    if words and len(words) <= 6 and words[-1].strip(",/").casefold() in _ENDING and words[0][0].isupper():
        return True
    last = words[-1].split("/")[-1].casefold() if words else ""
    return (len(words) <= 6 and last in _ENDING) or bool(_PROSE.match(line))


def _item(
    text: str, start: int, end: int, heading: _Heading, around: Sequence[str], known: Mapping[str, District]
) -> Iterator[UsePermission]:
    """The use that a line of a list is, for each of the districts."""
    line = text[start:end].rstrip()
    cut = _CONDITION.search(line)
    use = (line[: cut.start()] if cut else line).strip(" .;,:")
    rest = line[cut.end() :].strip() if cut else ""
    if not use or line.startswith("[") or len(use) > 300 or (line.endswith(":") and not cut):
        return
    only = _ONLY.search(line)
    codes = list(around)
    if only:
        named = [code for code in naming.named(only["codes"], known) if code in around]
        codes = named or codes
    if only and not cut and only.start():
        use, rest = line[: only.start()].strip(" .;,("), line[only.start() :]
    elif only and use.endswith(only[0].strip()):
        use = use[: -len(only[0].strip())].strip(" .;,(")
    conditions = [each for each in (_stripped(rest), *heading.conditions) if each]
    for code in codes:
        yield UsePermission(
            code, use, heading.level, heading.raw, conditions, heading.review, start, start + len(line), 0.9, "list"
        )


def _stripped(words: str) -> str:
    words = words.strip().rstrip(".;, ")
    depth = 0
    for place, character in enumerate(words):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return words[1:-1] if place and place == len(words) - 1 else words
    return words


def _sentences(
    text: str, start: int, end: int, around: Sequence[str], known: Mapping[str, District]
) -> Iterator[UsePermission]:
    """Uses that sentences of the line permit or prohibit: ``Residential uses are not allowed in this district.``"""
    for sentence in _split(text, start, end):
        match = _SENTENCE.match(text, *sentence)
        if match is None or _NO_USE.search(match["use"]):
            continue
        said = " ".join(each for each in (match["level"], (match["how"] or "").strip()) if each)
        where = match["where"] or ""
        codes = naming.named(where, known) or ([] if re.search(r"\ball\b", where) else around)
        conditions = [_stripped(match["conditions"])] if match["conditions"] else []
        level = "notPermitted" if re.search(r"\bnot\b|prohibited", said) else level_of(f"{said} uses")
        if level == "byRight" and conditions and "condition" in said:
            level = "byRightWithConditions"
        for code in codes:
            if level is not None:
                yield UsePermission(code, match["use"], level, said, conditions, None, *match.span(), 0.7, "sentence")


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for stop in re.finditer(r"\. (?=[A-Z])", text[start:end]):
        yield at, start + stop.start() + 1
        at = start + stop.end()
    yield at, end
