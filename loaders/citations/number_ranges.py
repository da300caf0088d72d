"""Ranges in the numbers of sections: whether a hyphen joins the parts of one number or the two ends of a range.

``7401-7671q`` is a range of the United States Code, ``2000e-5`` is one of its sections, and ``10-9a-103`` is a section
of Utah. The numbering of the body of law decides, else the form of the two sides; where neither does, the number is
kept as written and marked as doubtful.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

Numbering = Literal["plain", "regulation", "hyphened", "any"]
"""plain: numbers with hyphens after letters only (the United States Code); regulation: parts and sections with full
stops (C.F.R.); hyphened: hyphens in all numbers; any: not known."""

_HYPHEN: Final = re.compile(r"[-‑–]")
_BASE: Final = re.compile(r"(\d+)([A-Za-z]*)(?:\.\d+)?")
_HYPHENED_TITLES: Final = frozenset({"26", "41", "48"})
"""Titles of the C.F.R. whose sections have hyphens: 1.61-1 (tax), 60-1.4 (public contracts), 52.219-8 (acquisition)."""
PLAIN_STATES: Final = frozenset(
    {f"us-{state}" for state in ("ca", "mi", "mn", "mo", "nv", "oh", "or", "tx", "wa", "wi")}
)
"""States whose codes have no hyphens in the numbers of sections."""
_LONG: Final = 4
"""Digits of a number before its first hyphen that no title or chapter of a code with hyphens has."""


class Range(NamedTuple):
    """The two ends of a range, and where in the written number the first ends and the last begins."""

    first: str
    last: str
    end: int
    start: int


def numbering_of_title(title: str | None) -> Numbering:
    """Return the numbering of a title of the C.F.R."""
    return "hyphened" if title in _HYPHENED_TITLES else "regulation"


def split_range(written: str, numbering: Numbering, *, alone: bool = False) -> Range | None:
    """Split a number as written at the hyphen or dash that joins the ends of a range. None if it is one number.

    `alone` is whether a plural sign precedes it and no other number follows: ``§§ 261-263`` then is a range.
    """
    joints = [match.start() for match in _HYPHEN.finditer(written)]
    dashes = [at for at in joints if written[at] == "–"]
    if len(dashes) == 1 and len(joints) > 1:
        return _cut(written, dashes[0])
    for at in joints:
        first, last = written[:at], written[at + 1 :]
        if _are_ends(first, last, numbering, alone) or _are_reversed(first, last, numbering):
            return _cut(written, at)
    return None


def _are_reversed(first: str, last: str, numbering: Numbering) -> bool:
    """Whether two sides of a hyphen are two numbers, the second before the first: ``7671q-7401``, but not ``60-1`` and
    ``80a-64``.
    """
    low, high = _BASE.match(last), _BASE.match(first)
    if low is None or high is None or len(low[1]) < (_LONG if high[2] else len(high[1])):
        return False
    return _are_ends(last, first, numbering, False)


def is_doubtful(number: str, numbering: Numbering) -> bool:
    """Whether a hyphen may be part of the number or of a range with a shortened end: ``4321-7``."""
    first, hyphen, last = number.partition("-")
    if not hyphen or numbering not in ("plain", "regulation") or not first.replace(".", "").isdigit():
        return False
    low = first.rpartition(".")[2]
    return last.isdigit() and (
        int(low[: -len(last)] + last) > int(low) if len(last) < len(low) else int(last) > int(low)
    )


def _cut(written: str, at: int) -> Range:
    plain = _HYPHEN.sub("-", written)
    first, last = plain[:at], plain[at + 1 :]
    low, high = _BASE.match(first), _BASE.match(last)
    if (
        low is not None
        and high is not None
        and len(high[1]) < len(low[1])
        and not low[2]
        and "." not in last
        and low[0] == first
        and "." not in first
    ):
        last = low[1][: -len(high[1])] + last  # 1961-68
    elif "." in first and "." not in last and last.isdigit() and "-" not in first:
        last = f"{first.rpartition('.')[0]}.{last}"  # 201.56-57
    return Range(first, last, at, at + 1)


def _are_ends(first: str, last: str, numbering: Numbering, alone: bool) -> bool:
    """Whether two sides of a hyphen are the ends of a range, the second after the first."""
    left, right = _HYPHEN.split(first), _HYPHEN.split(last)
    if len(left) == len(right) and (len(left) > 1 or "." in first) and _form(first) == _form(last):
        # 17.52.010-17.52.050, 10-113-10-116
        same = _HYPHEN.sub(".", first).split(".")[0] == _HYPHEN.sub(".", last).split(".")[0]
        return (same or numbering == "regulation") and _key(first) < _key(last)
    low, high = _BASE.fullmatch(left[0]), _BASE.fullmatch(right[0])
    if low is None or high is None or numbering == "hyphened":
        return False
    base, other = int(low[1]), int(high[1])
    shortened = int(low[1][: -len(high[1])] + high[1]) if len(high[1]) < len(low[1]) and not low[2] else 0
    if numbering == "plain":
        # 7401-7671q, 470aa-470mm, 2000d-2000d-7, 300f-300j-26; shortened in 1961-68, but 60-1 can be a section
        follows = other > base or (other == base and (high[2], len(right)) > (low[2], len(left)))
        return follows or (shortened > base and "." not in last and (alone or len(high[1]) > 1))
    if numbering == "regulation":
        if "." in left[0]:
            low_last = left[0].rpartition(".")[2]
            return len(left) == 1 and last.isdigit() and low_last.isdigit() and int(last) > int(low_last)
        return first.isdigit() and last.isdigit() and other > base
    if len(low[1]) >= _LONG and "." not in first and other >= base:
        return True
    return alone and first.isdigit() and last.isdigit() and other > base and len(last) - len(first) in (0, 1)


def _form(number: str) -> str:
    return re.sub(r"[A-Za-z]+", "", re.sub(r"\d+", "0", _HYPHEN.sub("-", number)))


def _key(number: str) -> list[tuple[int, str]]:
    return [(int(digits), letters.lower()) for digits, letters in re.findall(r"(\d+)([A-Za-z]*)", number)]
