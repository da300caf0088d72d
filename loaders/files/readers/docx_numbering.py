"""The automatic numbers of paragraphs of Word documents, computed from ``numbering.xml`` as Word does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from kg.text import ordinal
from loaders.files.readers.office_package import get_attribute, get_child, get_name, get_value, is_on
from loaders.readers.html_tree import list_label, parse_whole

_PLACE: Final = re.compile(r"%([1-9])")
_LEVELS: Final = 9
_ONES: Final = tuple(
    re.findall(
        r"\w+",
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen",
    )
)
_TENS: Final = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS: Final = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_PLAIN: Final = frozenset({"decimal", "decimalFullWidth", "decimalHalfWidth", "decimalFullWidth2"})


@dataclass(frozen=True, slots=True)
class _Level:
    """How a level is numbered. `restart`: the level, from 1, after which it starts again; 0: never; None: any above."""

    start: int = 1
    form: str = "decimal"
    text: str = ""
    restart: int | None = None
    legal: bool = False
    style: str | None = None


@dataclass(frozen=True, slots=True)
class _List:
    """A numbered list (``num``): the numbers that it shares with others, and the levels that it has of its own."""

    shared: str
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]


@dataclass(slots=True)
class Numbering:
    """The lists of a document, and the last number of each level. Ask for the paragraphs in their order."""

    lists: dict[str, _List] = field(default_factory=dict)
    last: dict[str, dict[int, int]] = field(default_factory=dict)
    begun: set[tuple[str, int]] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    """Formats of numbers that are written as decimal numbers instead."""

    @classmethod
    def of(cls, root: etree._Element | None) -> Numbering:
        """Read the lists of ``numbering.xml``."""
        numbering = cls()
        if root is None:
            return numbering
        abstract = {
            get_attribute(each, "abstractNumId") or "": each for each in root if get_name(each) == "abstractNum"
        }
        by_style = {style: key for key, each in abstract.items() if (style := get_value(each, "styleLink")) is not None}
        for num in (each for each in root if get_name(each) == "num"):
            shared = get_value(num, "abstractNumId") or ""
            definition = abstract.get(shared)
            if definition is not None and (linked := get_value(definition, "numStyleLink")) in by_style:
                shared = by_style[linked]
                definition = abstract[shared]
            levels = _read_levels(definition)
            starts: dict[int, int] = {}
            for override in (each for each in num if get_name(each) == "lvlOverride"):
                place = parse_whole(get_attribute(override, "ilvl"), 0)
                levels |= _read_levels(override)
                if (start := get_value(override, "startOverride")) is not None:
                    starts[place] = parse_whole(start, 1)
            numbering.lists[get_attribute(num, "numId") or ""] = _List(shared, levels, starts)
        return numbering

    def find_level(self, list_id: str, style: str | None) -> int | None:
        """Find the level of a list that a style has."""
        found = self.lists.get(list_id)
        levels = found.levels.items() if found is not None else ()
        return next((place for place, level in levels if style is not None and level.style == style), None)

    def number(self, list_id: str, place: int) -> str | None:
        """Return the label of the next paragraph of a list: ``-`` for a bullet, None if it has none."""
        found = self.lists.get(list_id)
        if found is None or (level := found.levels.get(place)) is None:
            return None
        last = self.last.setdefault(found.shared, {})
        if place in found.starts and (list_id, place) not in self.begun:
            last[place] = found.starts[place]
        else:
            last[place] = last[place] + 1 if place in last else level.start
        self.begun.add((list_id, place))
        for below in range(place + 1, _LEVELS):
            restart = found.levels[below].restart if below in found.levels else None
            if restart is None or place < restart:
                last.pop(below, None)
        if level.form == "bullet":
            return "-"

        def write(match: re.Match[str]) -> str:
            which = int(match[1]) - 1
            other = found.levels.get(which, _Level())
            number = last.get(which, found.starts.get(which, other.start))
            return self.write(number, "decimal" if level.legal and other.form != "none" else other.form)

        return " ".join(_PLACE.sub(write, level.text).split()) or None

    def write(self, number: int, form: str) -> str:
        """Write a number in a format of Word."""
        if form in ("lowerLetter", "upperLetter") and number > 0:
            letters = chr(97 + (number - 1) % 26) * (1 + (number - 1) // 26)
            return letters.upper() if form == "upperLetter" else letters
        if form in ("lowerRoman", "upperRoman"):
            return list_label("i" if form == "lowerRoman" else "I", number)
        if form in ("cardinalText", "ordinalText", "ordinal") and 0 <= number < 100:
            return _spell(number, form)
        match form:
            case "none":
                return ""
            case "decimalZero":
                return f"{number:02}"
            case "decimalEnclosedParen":
                return f"({number})"
            case "decimalEnclosedFullstop":
                return f"{number}."
            case "numberInDash":
                return f"- {number} -"
        if form not in _PLAIN:
            self.unknown.add(form)
        return str(number)


def _spell(number: int, form: str) -> str:
    if form == "ordinal":
        return ordinal(number)
    tens, ones = divmod(number, 10)
    words = [_ONES[number]] if number < 20 else [_TENS[tens], *([_ONES[ones]] if ones else [])]
    if form == "ordinalText":
        last = words[-1]
        words[-1] = _ORDINALS.get(last, f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return "-".join(words).capitalize()


def _read_levels(element: etree._Element | None) -> dict[int, _Level]:
    levels = {}
    for each in element if element is not None else ():
        if get_name(each) == "lvl":
            restart = get_value(each, "lvlRestart")
            form = get_value(each, "numFmt")
            if form is None:  # Word writes a format of its own and a plain one for older versions
                inner = next((child for child in each.iter() if get_name(child) == "numFmt"), None)
                form = get_attribute(inner, "val") if inner is not None else None
            place = parse_whole(get_attribute(each, "ilvl"), 0)
            levels[place] = _Level(
                parse_whole(get_value(each, "start"), 1),
                form or "decimal",
                f"%{place + 1}." if (text := get_value(each, "lvlText")) is None else text,
                None if restart is None else parse_whole(restart, 0),
                is_on(get_child(each, "isLgl")),
                get_value(each, "pStyle"),
            )
    return levels
