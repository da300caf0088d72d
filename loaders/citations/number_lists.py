"""Parsing of lists and ranges of section numbers with labels: ``3, 4(a) and 7``, ``10-113 to 10-116``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from loaders.citations import statutes
from loaders.citations.number_ranges import Numbering, is_doubtful, split_range

NUMBER: Final = re.compile(
    r"(?:\d{1,4}[A-Z]?:(?=\d)(?!\d\d? ?[ap]\.?m\b))?"
    r"\d{1,6}[A-Za-z]{0,2}(?:[.\-–‑]\d{1,6}[A-Za-z]{0,2}){0,8}(?:-(?!in\b|ft\b)[A-Za-z]{1,2}(?=[\s,;:.()]|$))?"
    r"(?![A-Za-z0-9])"
)
"""A section number: ``15.3.24.090``, ``10-113``, ``239-m``, and with a title or chapter before a colon ``40:55D-70``,
``674:33``."""
LEVEL_NUMBER: Final = re.compile(
    r"(?:\d{1,4}[A-Za-z]{0,2}(?:[.\-–‑]\d{1,6}[A-Za-z]{0,2}){0,6}(?:-[A-Z])?|[A-Z]\d{1,4}|[IVXLC]{1,7}(?:-?[A-Z])?|[A-Z])"
    r"(?![A-Za-z0-9'’])"
)
_LABEL: Final = r"\((?:[A-Za-z]{1,2}|[ivxl]{1,6}|[IVXL]{1,6}|\d{1,3}[A-Za-z]{0,2})(?:-\d{1,2}[A-Za-z]?)?\)"
_LABELS: Final = re.compile(rf"(?:{_LABEL}){{1,8}}")
_SPACED_LABELS: Final = re.compile(rf" (?:{_LABEL}){{1,8}}(?=,? (?:and|or|through|of) )")
_ROMAN: Final = re.compile(r"[ivx]{2,6}|[IVX]{2,6}")
SUBPART: Final = re.compile(r"(?:[A-Z]{1,5}[a-z]{0,2}|\d{1,3})(?![\w'’])")
"""The letters of a subpart of regulations: ``OOOOa``."""
LETTER: Final = re.compile(r"[A-Z](?![\w'’]|[-–.]\w)")
_JOINT: Final = re.compile(r"(?: \[[a-z ]{1,20}\])?(?:, (?:(?:and/or|and|or) )?|;? (?:and/or|and|or|&) |, ?(?=\d))")
_UP_TO: Final = r" ?[‒–—―−] ?|,? (?:to|through|thru)(?:,? and including)? "
_RANGE: Final = re.compile(rf"{_UP_TO}| - |-(?=[(§])")
SIGN: Final = re.compile(r"(?:§(?: ?§)?|[Ss]ections?\b|[Ss]ecs?\.|['’](?=\d)) ?")
_PLURAL_SIGN: Final = re.compile(r"§ ?§|[Ss]ections ")
_BARE_LAST: Final = re.compile(rf"(?:{_LABEL}){{0,8}},? of (?:the|this|that|said|[A-Z])")
"""Text after the last of two bare numbers that shows it is a section and not any number: ``section 3 or 4 of this
act``."""
_ORDINAL: Final = re.compile(r"\d+(?:st|nd|rd|th)")
UNIT: Final = re.compile(
    r"[ -]?(?:%|percent|feet|foot|ft|inch|square|sq|acres?\b|(?:calendar |business )?days?\b"
    r"|months?\b|years?\b|hours?\b"
    r"|minutes?\b|units?\b|dollars?\b|stor(?:y|ies)\b|spaces?\b|times\b|gallons?\b|pounds?\b|miles?\b"
    rf"|(?-i:{statutes.FEDERAL}|{statutes.FEDERAL_REGULATIONS}|{statutes.TITLED}|ILCS|Stat\.))",
    re.IGNORECASE,
)
_AFTER_LABELS: Final = re.compile(r"[-‑]\d{1,3}[A-Z]{0,2}(?![\w-])")
_SHORT_END: Final = re.compile(rf"(?:-|{_UP_TO})(?P<rest>[.-]\d{{1,4}}[A-Za-z]?)(?![\w-])")
_WORD_AFTER: Final = re.compile(r" (?!(?:of|and|or)\b)\w")
_WHOLE: Final = 4
"""Digits from which a number is not the last component of the one before: ``§§ 900.10, 1000`` but ``§§ 4-601, 603``."""
MEMBERS: Final = 200
"""Maximum members of one list. No law cites more at once; the limit bounds the time."""


@dataclass(frozen=True, slots=True)
class Member:
    """One number of a list, at the offsets [start, end) of the text. Of a range, one end of it."""

    start: int
    end: int
    number: str
    labels: tuple[str, ...] = ()
    through: str | None = None
    doubtful: bool = False
    """Whether it is not known that this is one number: a hyphen in it can be that of a range."""


def parse_numbers(
    text: str, at: int, start: int, *, plural: bool, level: bool = False, numbering: Numbering = "any"
) -> tuple[list[Member], int]:
    """Parse the list of numbers at `at` and return its members, the first of which starts at `start`, and its end."""
    pattern = LEVEL_NUMBER if level else NUMBER
    members: list[Member] = []
    match = pattern.match(text, at)
    if match is None or _ORDINAL.fullmatch(match[0]) or (not separator_of(match[0]) and UNIT.match(text, match.end())):
        return members, at
    end = at
    while match is not None and len(members) < MEMBERS:
        number = with_plain_hyphens(match[0])
        listed = len(members)
        if (
            members
            and numbering != "plain"
            and separator_of(members[-1].number)
            and number.isdigit()
            and len(number) < _WHOLE
        ):
            # "§§ 4-41a-601 through 603": only the last component is repeated.
            head = re.match(r".*[.:-]", members[-1].number)
            number = (head[0] if head else "") + number
        elif members and ":" in members[-1].number and ":" not in number:
            # "§§ 28:12-203 to 12-207": the part before the colon is not repeated.
            number = members[-1].number.partition(":")[0] + ":" + number
        labels, end = ((), match.end()) if level else parse_labels(text, match.end())
        if labels and (rest := _AFTER_LABELS.match(text, end)):
            # A section of the tax regulations: 1.501(c)(3)-1.
            number, end = with_plain_hyphens(text[match.start() : rest.end()]), rest.end()
            labels, end = parse_labels(text, end)
        ends = split_range(match[0], numbering) if match.end() <= end and number.endswith(match[0][-1]) else None
        if ends is not None and with_plain_hyphens(match[0]) == number:
            members.append(Member(start, match.start() + ends.end, ends.first, through=ends.last))
            members.append(Member(match.start() + ends.start, end, ends.last, labels))
        else:
            members.append(Member(start, end, number, labels, doubtful=is_doubtful(number, numbering)))
        if labels:
            end = parse_further_labels(text, members, end)
        written, begin = match[0], match.start()
        match, start = _parse_next(text, end, members, plural, pattern, numbering)
        end = members[-1].end if match is None else end
        if match is None and listed == 0 and len(members) == 1 and plural:
            ends = split_range(written, numbering, alone=True)
            if ends is not None and written == number:
                members = [
                    Member(members[0].start, begin + ends.end, ends.first, through=ends.last),
                    Member(begin + ends.start, end, ends.last, labels),
                ]
        # "§ 2-1(b), and §§ 4-9, 4-11, and 4-12": a list within the list.
        plural = plural or (match is not None and _PLURAL_SIGN.match(text, start) is not None)
    return members, end


def _parse_next(
    text: str, end: int, members: list[Member], plural: bool, pattern: re.Pattern[str], numbering: Numbering
) -> tuple[re.Match[str] | None, int]:
    """Parse the next number of a list or range; return it and where the member starts. Sets `through` of the last
    member."""
    last = members[-1].number
    if (short := _SHORT_END.match(text, end)) and short["rest"][0] in last and pattern is NUMBER:
        # "§§ 462.351-.364", "160D-101 to -110": the part before the last separator is not repeated.
        number = last[: last.rindex(short["rest"][0])] + short["rest"]
        members[-1] = replace(members[-1], through=number)
        members.append(Member(short.start("rest"), short.end(), number))
        return None, short.end()
    ranged = _RANGE.match(text, end)
    joint = ranged or _JOINT.match(text, end)
    if joint is None:
        return None, end
    # The section after a chapter is not another chapter: "Chapter 4, § 6".
    sign = SIGN.match(text, joint.end()) if pattern is NUMBER else None
    match = pattern.match(text, sign.end() if sign else joint.end())
    if match is None or _ORDINAL.fullmatch(match[0]):
        return None, end
    if numbering == "regulation" and "." in last and re.fullmatch(r"\d+[A-Za-z]+[^.]*", match[0]):
        return None, end  # "17 CFR 240.14a-1 to 14b-2": no section of regulations is without its part
    alike = separator_of(with_plain_hyphens(match[0])) == separator_of(last) or numbering == "plain"
    if plural and not ranged and {separator_of(match[0]), separator_of(last)} == {"", "."}:
        # Whole chapters of regulations are listed with sections: "§§ 108, 900.7, and 1000 of 18 DCMR".
        least = 3 if last.isdigit() else _WHOLE
        alike = len(last if last.isdigit() else match[0]) >= least and not _WORD_AFTER.match(text, match.end())
    shortened = not sign and match[0].isdigit() and bool(separator_of(last)) and len(match[0]) < _WHOLE
    shortened = shortened and numbering != "plain"
    shortened = shortened and (plural or ranged is not None)
    if not (alike or shortened) or (not sign and UNIT.match(text, match.end())):
        return None, end
    listed = plural or bool(sign)
    if ranged:
        listed = listed or bool(separator_of(last))
        listed = listed or (numbering in ("plain", "regulation") and _is_after(match[0], last))
    elif not listed:
        listed = _BARE_LAST.match(text, match.end()) is not None
    if not listed:
        return None, end
    if ranged:
        number = with_plain_hyphens(match[0])
        if shortened:
            number = last[: max(map(last.rfind, "-.:")) + 1] + number
        members[-1] = replace(members[-1], through=number)
    return match, sign.start() if sign else match.start()


def _is_after(number: str, other: str) -> bool:
    one, two = re.match(r"\d+", number), re.match(r"\d+", other)
    return one is not None and two is not None and int(one[0]) >= int(two[0])


def split_level(member: Member, numbering: Numbering) -> list[Member]:
    """Split the number at the end of a level, such as a chapter, that is a range: ``Chapter 41-43``."""
    ends = split_range(member.number, numbering, alone=True) if numbering in ("plain", "regulation") else None
    if ends is None:
        return [member]
    at = member.end - len(member.number)
    return [
        replace(member, end=at + ends.end, number=ends.first, through=ends.last),
        replace(member, start=at + ends.start, number=ends.last),
    ]


def parse_further_labels(text: str, members: list[Member], end: int) -> int:
    """Append the labels after those of the last member, as in ``(a)(1), (3), and (4)``, and return where they end."""
    while len(members) < MEMBERS:
        ranged = _RANGE.match(text, end)
        joint = ranged or _JOINT.match(text, end)
        match = _LABELS.match(text, joint.end()) if joint else None
        if match is None:
            return end
        before = members[-1].labels
        labels = tuple(match[0][1:-1].split(")("))
        if _ROMAN.fullmatch(labels[0]) and not any(_ROMAN.fullmatch(label) for label in before):
            return end
        if ranged:
            members[-1] = replace(members[-1], through=f"({labels[-1]})")
        above = max(
            (at for at, label in enumerate(before) if _label_style(label) == _label_style(labels[0])),
            default=len(before) - 1,
        )
        merged = (*before[:above], *labels)
        end = match.end()
        members.append(Member(match.start(), end, members[-1].number, merged))
    return end


def parse_labels(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Parse the labels at `at` into bare ones, and where they end: ``(a)(1)`` are a and 1."""
    match = _LABELS.match(text, at) or _SPACED_LABELS.match(text, at)
    if match is None:
        return (), at
    return tuple(match[0].strip()[1:-1].split(")(")), match.end()


def _label_style(label: str) -> str:
    return "1" if label[0].isdigit() else "a" if label[0].islower() else "A"


def with_plain_hyphens(number: str) -> str:
    """Replace the dashes in a number by plain hyphens."""
    return number.replace("–", "-").replace("‑", "-")


def separator_of(number: str) -> str:
    """The separator of a number's components: a hyphen, a full stop, a colon, or none."""
    return "-" if "-" in number or "–" in number else "." if "." in number else ":" if ":" in number else ""
