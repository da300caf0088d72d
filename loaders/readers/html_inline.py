"""The inline model of HTML: struck and hidden words leave the tree, raised ones and values of forms become its text.

All readers of HTML read trees that this module has rewritten, so none of them has to know these elements.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Final, Literal

from lxml import etree

from loaders.readers.css import Style, StyleSheet
from loaders.readers.formulas import write_formula
from loaders.readers.html import BLOCKS, STRUCK
from loaders.readers.inline import CHECKED, ORDINALS, UNCHECKED, LeftOut, is_exponent, lower_text, raise_text

_NEVER_SHOWN: Final = frozenset({"template", "datalist"})
UNREAD: Final = {
    "img": "pictures", "svg": "drawings", "canvas": "drawings", "iframe": "embedded pages", "frame": "embedded pages",
    "object": "embedded objects", "embed": "embedded objects", "applet": "embedded objects", "video": "videos",
    "audio": "recordings", "map": "image maps", "button": "buttons", "portal": "embedded pages",
}  # fmt: skip
"""Elements that are not read, by their plural. Their content goes with them."""
_BOX: Final = {"checkbox": (CHECKED, UNCHECKED), "radio": ("\u25c9", "\u25cb")}
_BUTTONS: Final = frozenset({"button", "submit", "reset", "image"})
_NO_VALUE: Final = frozenset({"hidden", "password", "file"})
_INLINE: Final = frozenset(
    {"sup", "sub", "span", "a", "font", "small", "big", "i", "b", "em", "strong", "u", "ins", "cite", "label", "mark"}
    | {"abbr", "code", "q", "var", "tt", "bdi", "bdo", "time", "data", "dfn", "kbd", "samp"}
)
_NOT_TEXT: Final = frozenset({"script", "style", "head", "title", "meta", "link"})
_NIL: Final = r"(?=[.0])0*+(?:\.0++)?"
_ZERO: Final = re.compile(rf"[+-]?{_NIL}(?:%|[a-z]++)?")
_CLEAR: Final = re.compile(
    rf"transparent|rgba?\([^,/()]*+(?:,[^,/()]*+,[^,/()]*+,|/)\s*+{_NIL}%?\s*+\)|#[0-9a-f]{{3}}0|#[0-9a-f]{{6}}00"
)
_LENGTH: Final = re.compile(r"(?P<sign>-?)(?:\d++(?:\.\d++)?|\.\d++)(?:%|[a-z]++)")
_LISTS: Final = {
    "decimal": "1", "lower-alpha": "a", "lower-latin": "a", "upper-alpha": "A", "upper-latin": "A",
    "lower-roman": "i", "upper-roman": "I",
}  # fmt: skip
_UNNUMBERED: Final = frozenset({"none", "disc", "circle", "square"})
_SLASH: Final = re.compile(r"\s*[/\u2044]\s*")


def rewrite(root: etree._Element, left_out: LeftOut) -> None:
    """Rewrite a tree in place, and count its words and elements that are left out."""
    comments = [each for each in root.iter(etree.Comment) if (each.text or "").strip()]
    left_out.comments += len(comments)
    etree.strip_tags(root, etree.Comment)
    _drop_copies(root)
    _Rewriting(StyleSheet.of(root), left_out).walk(root)


def _drop_copies(root: etree._Element) -> None:
    """Take away the visible copies of formulas that are there as MathML, too: their digits have lost their places."""
    for formula in list(root.iter("math")):
        for around in list(formula.iterancestors())[:2]:
            if around.tag != "span" and "-" not in str(around.tag):  # a block has other words than the formula
                break
            for each in list(around):
                if each.get("aria-hidden") == "true" and formula not in each.iter("math"):
                    _replace(each, "")


class _Rewriting:
    def __init__(self, sheet: StyleSheet, left_out: LeftOut) -> None:
        self.sheet, self.left_out = sheet, left_out

    def walk(self, root: etree._Element) -> None:
        """Rewrite the elements below `root`."""
        # An explicit stack: broken HTML nests more deeply than Python's recursion limit.
        waiting: list[tuple[etree._Element, frozenset[str], str | None]] = [(root, frozenset(), None)]
        while waiting:
            element, unseen, shift = waiting.pop()
            if shift is not None:  # its content is rewritten
                _write_shifted(element, shift)
                continue
            tag = str(element.tag).rpartition("}")[2]
            if tag in _NOT_TEXT:
                continue
            style = self.sheet.find(element)
            if self.take_away(element, tag, style):
                continue
            unseen = find_unseen(unseen, style)
            if unseen:
                self.blank(element)
            if tag == "ol" or tag == "ul":
                _number(element, style)
            if (shift := find_shift(tag, style)) is not None and not unseen:
                waiting.append((element, unseen, shift))
            waiting += [(child, unseen, None) for child in reversed(element)]

    def take_away(self, element: etree._Element, tag: str, style: Style) -> bool:
        """Take an element away, or put its value in its place. Return whether it is done with."""
        form = find_form(tag, element.keys(), style)
        if form == "struck":
            self.left_out.add_struck(_words(element))
            if tag in ("td", "th", "li"):  # its column or number stays
                _set_text(element, "")
                return True
        elif form == "hidden":
            self.left_out.add_hidden(_words(element))
        elif tag == "math":
            _replace(element, write_formula(element))
            return True
        elif tag in ("input", "select", "textarea"):
            _replace(element, _read_field(element, tag, self.left_out))
            return True
        elif tag in UNREAD:
            if not (tag == "img" and element.get("alt") == "") and element.get("aria-hidden") != "true":
                self.left_out.unread[UNREAD[tag]] += 1
        elif not (element.get("aria-hidden") == "true" and _is_decoration(element)):
            return False
        _replace(element, "")
        return True

    def blank(self, element: etree._Element) -> None:
        """Take away the text directly in an element that is not shown."""
        if element.text and element.text.strip():
            self.left_out.add_hidden(element.text)
            element.text = " "
        for child in element:
            if child.tail and child.tail.strip():
                self.left_out.add_hidden(child.tail)
                child.tail = " "


def _read_field(element: etree._Element, tag: str, left_out: LeftOut) -> str:
    """Read the value of a field of a form."""
    if tag == "textarea":
        return f" {_words(element)} "
    if tag == "select":
        options = list(element.iter("option"))
        chosen = [each for each in options if "selected" in each.attrib]
        if not chosen and "multiple" not in element.attrib:
            chosen = options[:1]  # which a browser shows
        return f" {', '.join(' '.join(_words(each).split()) for each in chosen)} "
    return read_input({str(name): str(value) for name, value in element.items()}, left_out)


def read_input(attributes: Mapping[str, str], left_out: LeftOut) -> str:
    """Read the value of an ``input`` element."""
    kind = attributes.get("type", "text").strip().lower()
    if kind in _BOX:
        return f"{_BOX[kind]['checked' not in attributes]} "
    if kind in _BUTTONS:
        left_out.unread["buttons"] += 1
        return ""
    return "" if kind in _NO_VALUE else f" {attributes.get('value') or ''} "


def _words(element: etree._Element) -> str:
    pieces = [element.text or ""]
    for each in element.iterdescendants():
        pieces += ("" if each.tag in _NOT_TEXT else each.text or "", each.tail or "")
    return "".join(pieces)


def find_form(tag: str, attributes: Container[str | bytes], style: Style) -> Literal["struck", "hidden"] | None:
    """Find whether an element is struck out, or not shown, with all that is in it."""
    if tag in STRUCK or "line-through" in f"{style.get('text-decoration')} {style.get('text-decoration-line')}":
        return "struck"
    display = style.get("display")
    is_closed = "hidden" in attributes or (tag == "dialog" and "open" not in attributes)
    opacity = style.get("opacity")
    is_hidden = (
        tag in _NEVER_SHOWN
        or (is_closed if display is None else display == "none")
        or (opacity is not None and _ZERO.fullmatch(opacity) is not None)
        or style.get("content-visibility") == "hidden"
    )
    return "hidden" if is_hidden else None


def find_unseen(unseen: frozenset[str], style: Style) -> frozenset[str]:
    """Find the reasons why the text directly in an element is not shown, with those that it inherits."""
    for name, value in style.items():
        if name == "visibility":
            is_unseen = value in ("hidden", "collapse")
        elif name == "font-size":
            is_unseen = _ZERO.fullmatch(value) is not None
        elif name == "color":
            clip = f"{style.get('background-clip')} {style.get('-webkit-background-clip')}"
            is_unseen = _CLEAR.fullmatch(value) is not None and "text" not in clip
        else:
            continue
        if value != "inherit":
            unseen = unseen | {name} if is_unseen else unseen - {name}
    return unseen


def _is_decoration(element: etree._Element) -> bool:
    """Whether an element that is hidden from screen readers has no words, as a sign for a link has none."""
    return not any(each.isalnum() for each in _words(element))


def _replace(element: etree._Element, text: str) -> None:
    """Replace an element by text."""
    parent = element.getparent()
    text += element.tail or ""
    if parent is None:
        element.clear()
        return
    before = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + text
    else:
        parent.text = (parent.text or "") + text
    parent.remove(element)


def _number(element: etree._Element, style: Style) -> None:
    """Give a list the numbers of its style."""
    words = f"{style.get('list-style') or ''} {style.get('list-style-type') or ''}".split()
    kind = next((each for each in reversed(words) if each in _LISTS or each in _UNNUMBERED), None)
    if kind in _UNNUMBERED and element.tag == "ol":
        element.tag = "ul"
    elif kind in _LISTS:
        element.set("type", _LISTS[kind])
        element.tag = "ol"


def find_shift(tag: str, style: Style) -> str | None:
    """Find whether an element is raised (``sup``) or lowered (``sub``)."""
    if tag not in _INLINE:
        return None
    align = style.get("vertical-align")
    position = style.get("font-variant-position")
    if position in ("super", "sub"):
        return "sup" if position == "super" else "sub"
    if align is None:
        return tag if tag in ("sup", "sub") else None
    if align in ("super", "text-top", "sub"):
        return "sub" if align == "sub" else "sup"
    if align == "top" and ("font-size" in style or tag in ("small", "sup")):
        return "sup"
    if (length := _LENGTH.fullmatch(align)) is not None and not _ZERO.fullmatch(align):
        return "sub" if length["sign"] else "sup"
    # A style often sets sup to the base line and moves it by its position.
    return tag if tag in ("sup", "sub") else None


def _write_shifted(element: etree._Element, shift: str) -> None:
    """Write a raised or lowered element in raised or lowered characters."""
    before = _text_before(element)
    text = "".join(map(str, element.itertext()))
    element.tag = shift
    if not text.strip() or any(each.tag in BLOCKS for each in element.iterdescendants()):
        element.tag = "span"
        return
    if shift == "sup" and _is_fraction(element, text):
        _set_text(element, f" {text.strip()}" if before[-1:].isdigit() else text.strip())
        element.tag = "span"
        below = element.getnext()
        if below is not None:
            below.tag = "span"
        element.tail = "/"
        return
    _set_text(element, raise_text(text, before) if shift == "sup" else lower_text(text, before))
    if text.strip().casefold() in ORDINALS or is_exponent(before):
        element.tag = "span"  # no mark of a note


def _set_text(element: etree._Element, text: str) -> None:
    for child in list(element):
        element.remove(child)
    element.text = text


def _is_fraction(element: etree._Element, text: str) -> bool:
    """Whether a raised number is the upper part of a fraction, as in ``<sup>1</sup>/<sub>2</sub>``."""
    below = element.getnext()
    return (
        text.strip().isdecimal()
        and below is not None
        and below.tag == "sub"
        and _SLASH.fullmatch(element.tail or "") is not None
        and "".join(map(str, below.itertext())).strip().isdecimal()
    )


def _text_before(element: etree._Element) -> str:
    """The end of the text before an element within its block."""
    inner = element
    while True:
        before = inner.getprevious()
        if before is not None:
            if before.tail:
                return before.tail
            if before.tag in BLOCKS or before.tag == "br":
                return ""
            if text := "".join(map(str, before.itertext())):
                return text
            inner = before
            continue
        parent = inner.getparent()
        if parent is None or parent.text:
            return "" if parent is None else parent.text or ""
        if parent.tag in BLOCKS:
            return ""
        inner = parent
