"""The declarations of style sheets and `style` attributes that strike, hide, raise or lower words, or number lists.

Rules of ``<style>`` elements and of ``@media`` and ``@supports`` blocks in them that apply to wide screens are read,
with selectors of elements, classes, identifiers and attributes, within others and as their children. Rules with other
selectors, and linked style sheets, are not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

_PROPERTIES: Final = frozenset(
    {"display", "visibility", "content-visibility", "opacity", "text-decoration", "text-decoration-line"}
    | {"vertical-align", "font-size", "color", "font-variant-position", "list-style", "list-style-type"}
    | {"background-clip", "-webkit-background-clip"}
)
_COMMENT: Final = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)")
_PART: Final = re.compile(r"[{};]")
_SIMPLE: Final = re.compile(
    r"(?P<tag>[A-Za-z][\w-]*|\*)|\.(?P<cls>(?:[\w-]|[^\x00-\x7f])+)|#(?P<id>(?:[\w-]|[^\x00-\x7f])+)"
    r"|\[\s*(?P<attr>[\w-]+)\s*(?:=\s*(?:\"(?P<one>[^\"]*)\"|'(?P<two>[^']*)'|(?P<bare>[\w-]+))\s*)?\]"
)
_STEP: Final = re.compile(r"\s*([>\s])\s*")
_PRINT_ONLY: Final = re.compile(r"\b(?:print|speech|tv|projection|handheld|braille|aural)\b", re.IGNORECASE)
_SCREEN: Final = re.compile(r"\b(?:screen|all)\b", re.IGNORECASE)
_WIDTH: Final = re.compile(
    r"(?:(?P<bound>min|max)-width\s*+:|\bwidth\s*+(?P<sign>[<>])=?)\s*+(?P<size>\d{1,6}(?:\.\d{1,6})?)(?P<unit>px|r?em)"
)
_WIDE: Final = 1_280
"""Width of the screen for which a page is read, in pixels: what only a small one lacks is text."""
_EM: Final = 16
_MOST_RULES: Final = 5_000
_LONGEST_SELECTOR: Final = 300

Style = Mapping[str, str]
"""Values of properties, in small letters."""


@dataclass(frozen=True, slots=True)
class _Compound:
    """A selector of one element. `child`: it must be the parent of the next, not just around it."""

    tag: str = ""
    classes: frozenset[str] = frozenset()
    ident: str = ""
    attributes: tuple[tuple[str, str | None], ...] = ()
    child: bool = False

    def matches(self, element: etree._Element, names: frozenset[str]) -> bool:
        if self.tag and element.tag != self.tag:
            return False
        if not self.classes <= names or (self.ident and element.get("id") != self.ident):
            return False
        return all(
            element.get(name) is not None and (value is None or element.get(name) == value)
            for name, value in self.attributes
        )

    @property
    def weight(self) -> tuple[int, int, int]:
        return bool(self.ident), len(self.classes) + len(self.attributes), bool(self.tag)


@dataclass(frozen=True, slots=True)
class _Rule:
    steps: tuple[_Compound, ...]
    """From the element to those around it."""
    declarations: tuple[tuple[str, str, bool], ...]
    order: int

    @property
    def weight(self) -> tuple[int, int, int]:
        weights = [step.weight for step in self.steps]
        return sum(each[0] for each in weights), sum(each[1] for each in weights), sum(each[2] for each in weights)


@dataclass(slots=True)
class StyleSheet:
    """The rules of a page. Call `find` for elements of its tree."""

    rules: dict[tuple[str, str], list[_Rule]] = field(default_factory=lambda: defaultdict(list))
    """By the rarest condition of the element: its identifier, a class, its name."""
    count: int = 0

    @classmethod
    def of(cls, root: etree._Element) -> StyleSheet:
        """Read the rules of the ``style`` elements of a tree."""
        sheet = cls()
        for each in root.iter("style"):
            if each.get("type", "text/css").strip().lower() in ("", "text/css") and _applies(each.get("media", "")):
                sheet._add("".join(map(str, each.itertext())))
        return sheet

    def _add(self, text: str) -> None:
        for selectors, body in _read_rules(_COMMENT.sub(" ", text.replace("<!--", " ").replace("-->", " "))):
            declarations = tuple(parse_declarations(body))
            if not declarations:
                continue
            for selector in selectors.split(","):
                steps = _parse_selector(selector)
                if steps and self.count < _MOST_RULES:
                    self.count += 1
                    first = steps[0]
                    key = ("id", first.ident) if first.ident else ("class", next(iter(sorted(first.classes)), ""))
                    key = key if key[1] else ("tag", first.tag)
                    self.rules[key].append(_Rule(steps, declarations, self.count))

    def find(self, element: etree._Element) -> Style:
        """Find the values that apply to an element by the rules and its own attribute, not those that it inherits."""
        own = element.get("style")
        if not self.rules and own is None:
            return {}
        best: dict[str, tuple[tuple[bool, bool, tuple[int, int, int], int], str]] = {}
        names = frozenset((element.get("class") or "").split())
        keys = [("tag", str(element.tag)), ("tag", ""), *(("class", name) for name in names)]
        if ident := element.get("id"):
            keys.append(("id", ident))
        for rule in (rule for key in keys if key in self.rules for rule in self.rules[key]):
            if rule.steps[0].matches(element, names) and _is_within(element, rule.steps[1:]):
                for name, value, important in rule.declarations:
                    rank = (important, False, rule.weight, rule.order)
                    if name not in best or rank >= best[name][0]:
                        best[name] = rank, value
        for name, value, important in parse_declarations(own or ""):
            rank = (important, True, (0, 0, 0), 0)
            if name not in best or rank >= best[name][0]:
                best[name] = rank, value
        return {name: value for name, (_, value) in best.items()}


def parse_declarations(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the property, the value and whether it is important of each declaration that counts here."""
    for part in text.split(";"):
        name, colon, value = part.partition(":")
        name = name.strip().lower()
        if colon and name in _PROPERTIES:
            words = value.strip().lower()
            important = words.endswith(("!important", "! important"))
            yield name, words.rpartition("!")[0].strip() if important else words, important


def _applies(media: str) -> bool:
    """Whether a media query is true on a wide screen. Conditions other than types and widths count as false."""
    queries = [each.strip().lower() for each in media.split(",") if each.strip()]
    return not queries or any(_is_shown(each.removeprefix("not ")) != each.startswith("not ") for each in queries)


def _is_shown(query: str) -> bool:
    if _PRINT_ONLY.search(query) and not _SCREEN.search(query):
        return False
    for width in _WIDTH.finditer(query):
        pixels = float(width["size"]) * (1 if width["unit"] == "px" else _EM)
        if (pixels < _WIDE) if (width["bound"] or width["sign"]) in ("max", "<") else (pixels > _WIDE):
            return False
    return ":" not in _WIDTH.sub("", query)


def _read_rules(text: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and the body of each rule that applies."""
    open_blocks: list[tuple[bool, bool]] = []
    """Of each open block: whether it is a rule with declarations, and whether its content applies."""
    at, start, head = 0, 0, ""
    for mark in _PART.finditer(text):
        words = text[at : mark.start()]
        at = mark.end()
        applies = all(each[1] for each in open_blocks)
        if mark[0] == "{":
            head = words.strip()
            if head.startswith("@"):
                name = head[1:].split("(")[0].split()[0].lower() if head[1:].strip() else ""
                query = head[1 + len(name) :]
                groups = name in ("supports", "layer") or (name == "media" and _applies(query))
                open_blocks.append((False, groups))
            else:
                open_blocks.append((True, applies))
            start = at
        elif mark[0] == "}" and open_blocks:
            is_rule, holds = open_blocks.pop()
            if is_rule and holds:
                yield head, text[start : mark.start()]


def _parse_selector(selector: str) -> tuple[_Compound, ...] | None:
    """Parse a selector into its elements, from the last. None if it has parts that are not supported."""
    selector = selector.strip()
    if not selector or len(selector) > _LONGEST_SELECTOR:
        return None
    parts = _STEP.split(selector)
    steps: list[_Compound] = []
    child = False
    for place, part in enumerate(parts[::-1]):
        if place % 2:
            child = part == ">"
            continue
        compound = _parse_compound(part, child=child)
        if compound is None:
            return None
        steps.append(compound)
    return tuple(steps)


def _parse_compound(text: str, *, child: bool) -> _Compound | None:
    tag, ident, at = "", "", 0
    classes: list[str] = []
    attributes: list[tuple[str, str | None]] = []
    while at < len(text):
        match = _SIMPLE.match(text, at)
        if match is None:
            return None
        at = match.end()
        if match["tag"]:
            tag = "" if match["tag"] == "*" else match["tag"].lower()
        elif match["cls"]:
            classes.append(match["cls"])
        elif match["id"]:
            ident = match["id"]
        else:
            values: Sequence[str | None] = (match["one"], match["two"], match["bare"])
            attributes.append((match["attr"].lower(), next((each for each in values if each is not None), None)))
    return _Compound(tag, frozenset(classes), ident, tuple(attributes), child) if text else None


def _is_within(element: etree._Element, steps: Sequence[_Compound]) -> bool:
    """Whether the elements around an element match the other steps of a selector."""
    around = element.getparent()
    for step in steps:
        while around is not None:
            is_match = step.matches(around, frozenset((around.get("class") or "").split()))
            above = around.getparent()
            if is_match:
                around = above
                break
            if step.child:
                return False
            around = above
        else:
            return False
    return True
