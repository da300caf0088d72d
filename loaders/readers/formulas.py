"""Formulas of Office documents (OMML) and of web pages (MathML) as text on one line: ``(a+b)/c``, ``x\u00b2``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from lxml import etree

from loaders.readers.inline import to_subscript, to_superscript

_SIMPLE: Final = re.compile(r"[^\W_]+(?:\.[^\W_]+)?|\([^()]*\)")
_SKIPPED: Final = frozenset({"annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "none"})
_INVISIBLE: Final = dict.fromkeys(range(0x2061, 0x2065))
_DEEPEST: Final = 100


def write_formula(element: etree._Element) -> str:
    """Write a formula: an ``oMath`` or ``math`` element."""
    return " ".join(_write(element, 0).translate(_INVISIBLE).split())


def _name(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _write(element: etree._Element, depth: int) -> str:
    name = _name(element)
    if depth > _DEEPEST or not name or name in _SKIPPED or (name.endswith("Pr") and name != "Pr"):
        return ""
    parts = {_name(child): child for child in element}

    def part(*names: str) -> str:
        return next((_write(parts[each], depth + 1) for each in names if each in parts), "")

    def at(place: int) -> str:
        children = [child for child in element if _name(child) not in _SKIPPED]
        return _write(children[place], depth + 1) if place < len(children) else ""

    if name in _OFFICE:
        return _OFFICE[name](part, element)
    if name in _WEB:
        return _WEB[name]([at(0), at(1), at(2)])
    if name == "m":  # a matrix
        return _matrix([[_write(cell, depth + 1) for cell in row] for row in element if _name(row) == "mr"])
    if name == "mtable":
        return _matrix([[_write(cell, depth + 1) for cell in row] for row in element if _name(row).endswith("tr")])
    if name == "eqArr":
        return "; ".join(_write(child, depth + 1) for child in element if _name(child) == "e")
    if name == "d":
        inner = [_write(child, depth + 1) for child in element if _name(child) == "e"]
        begin, middle, end = (_property(element, *each) for each in (("begChr", "("), ("sepChr", "|"), ("endChr", ")")))
        return begin + middle.join(inner) + end
    if name == "mfenced":
        inner = [_write(child, depth + 1) for child in element]
        return element.get("open", "(") + ", ".join(inner) + element.get("close", ")")
    if name in ("t", "mi", "mn", "mo", "mtext", "ms"):
        return "".join(map(str, element.itertext()))
    return "".join(_write(child, depth + 1) for child in element)


def _property(element: etree._Element, name: str, default: str) -> str:
    """The value of a property of an OMML element."""
    for each in element.iter():
        if _name(each) == name:
            return next((str(own) for key, own in each.attrib.items() if str(key).rpartition("}")[2] == "val"), "")
        if _name(each) == "e":
            break
    return default


def _group(text: str) -> str:
    return text if not text or _SIMPLE.fullmatch(text) else f"({text})"


def _power(base: str, exponent: str) -> str:
    return _group(base) + _write_power(exponent) if exponent else base


def _write_power(exponent: str) -> str:
    return (to_superscript(exponent) or f"^{_group(exponent)}") if exponent else ""


def _index(base: str, index: str) -> str:
    return _group(base) + (to_subscript(index) or f"_{_group(index)}") if index else base


def _fraction(numerator: str, denominator: str) -> str:
    return f"{_group(numerator)}/{_group(denominator)}"


def _root(inner: str, degree: str) -> str:
    return f"{to_superscript(degree) or ''}\u221a{_group(inner)}" if degree else f"\u221a{_group(inner)}"


def _matrix(rows: Sequence[Sequence[str]]) -> str:
    return "[" + "; ".join(", ".join(row) for row in rows) + "]"


def _power_of_index(base: str, index: str, exponent: str) -> str:
    return _index(base, index) + _write_power(exponent)


def _sum(part: Callable[..., str], element: etree._Element) -> str:
    return _power_of_index(_property(element, "chr", "\u222b"), part("sub"), part("sup")) + f" {part('e')}"


_OFFICE: Final[dict[str, Callable[[Callable[..., str], etree._Element], str]]] = {
    "f": lambda part, element: _fraction(part("num"), part("den")),
    "sSup": lambda part, element: _power(part("e"), part("sup")),
    "sSub": lambda part, element: _index(part("e"), part("sub")),
    "sSubSup": lambda part, element: _power_of_index(part("e"), part("sub"), part("sup")),
    "sPre": lambda part, element: _power_of_index("", part("sub"), part("sup")) + part("e"),
    "rad": lambda part, element: _root(part("e"), part("deg")),
    "nary": _sum,
    "func": lambda part, element: f"{part('fName')} {_group(part('e'))}",
    "limLow": lambda part, element: f"{part('e')}_{_group(part('lim'))}",
    "limUpp": lambda part, element: f"{part('e')}^{_group(part('lim'))}",
}
_WEB: Final[dict[str, Callable[[Sequence[str]], str]]] = {
    "mfrac": lambda each: _fraction(each[0], each[1]),
    "msup": lambda each: _power(each[0], each[1]),
    "msub": lambda each: _index(each[0], each[1]),
    "msubsup": lambda each: _power_of_index(*each),
    "mroot": lambda each: _root(each[0], each[1]),
    "munder": lambda each: _index(each[0], each[1]),
    "mover": lambda each: _power(each[0], each[1]),
    "munderover": lambda each: _power_of_index(*each),
}
