"""Conversion of the SGML-like Hansard to the vocabulary of schema 2.0: attributes become elements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import time
from typing import Final

from lxml import etree
from lxml.etree import _Element

from loaders.hansard.paragraphs import clock, to_line

_RENAMED: Final = {"interject": "interjection", "break": "br", "petition.grp": "petition.group"}
_HEADED: Final = re.compile(
    r"debate(?:\.sub\d+)?|subdebate\.\d+|petition(?:\.grp|\.group)?|sso|qwn|question\.block|answer\.to\.qon|answers\.to\.questions"
)
_UNHEADED: Final = frozenset(("speech", "question", "answer", "division"))
_HEADER: Final = ("date", "parliament.no", "session.no", "period.no", "chamber", "page", "proof")
_OPENED: Final = re.compile(r"\bat\s+(?:(\d{1,2})(?:[.:](\d\d))?\s*([ap])\.?m\b|(?:12\s+)?noon\b)", re.IGNORECASE)
_HALF_DAY: Final = 12 * 60
_LEAP: Final = 6 * 60
"""Longest gap between two time stamps of a day, in minutes, across which the half of the day is inferred."""


def modernize(root: _Element) -> list[str]:
    """Convert a tree in place, and return warnings."""
    if root.find("session.header") is None and any(root.get(name) for name in _HEADER):
        header = etree.Element("session.header")
        for name in _HEADER:
            _child(header, "page.no" if name == "page" else name, root.get(name))
        root.insert(0, header)
    for element in [*root.iter()]:
        tag = element.tag
        if tag in _RENAMED:
            element.tag = _RENAMED[tag]
        elif tag in ("speech", "question", "answer"):
            _turn(element)
        elif tag in ("ayes", "noes", "pairs"):
            _child(element, "num.votes", element.get("numvotes"))
        if _HEADED.fullmatch(tag) or (
            tag not in _UNHEADED
            and next(element.iterchildren("title"), None) is not None
            and next(element.iter("speech", "question", "answer"), None) is not None
        ):
            _heading(element)
    return list(_clocks(root))


def _child(parent: _Element, tag: str, text: str | None) -> None:
    """Add an element with a text, if the text is not empty."""
    if text and text.strip():
        child = etree.SubElement(parent, tag)
        child.text = text


def _heading(element: _Element) -> None:
    """Move title, kind, page and number of a debate to the places that schema 2.0 has for them."""
    if any(child.tag.endswith("info") for child in element):
        return
    info = etree.Element("debateinfo")
    info.sourceline = element.sourceline
    for child in [*element.iterchildren("title", "question.number")]:
        tail, child.tail = child.tail, None
        if tail and not tail.isspace():
            break
        info.append(child)
        if child.tag == "question.number":
            child.tag = "subtitle"
    for tag, name in (("type", "type"), ("page.no", "page"), ("id.no", "qon.number")):
        _child(info, tag, element.get(name))
    element.insert(0, info)
    if depth := element.tag.removeprefix("debate.sub") if element.tag.startswith("debate.sub") else "":
        element.tag = f"subdebate.{depth}"


def _turn(element: _Element) -> None:
    """Copy the turn's attributes to its first talker."""
    start = next(element.iterchildren("talk.start"), None)
    talker = None if start is None else next(start.iterchildren("talker"), None)
    if talker is None:
        return
    for tag, name in (("electorate", "electorate"), ("role", "ministerial"), ("party", "party"), ("page.no", "page")):
        _child(talker, tag, element.get(name))
    _child(talker, "in.gov", element.get("gov"))
    _child(talker, "name.id", element.get("nameid"))
    if speaker := element.get("speaker"):
        metadata = etree.SubElement(talker, "name", role="metadata")
        metadata.text = speaker


def _clocks(root: _Element) -> Iterator[str]:
    """Convert the time stamps of a day from a 12-hour clock to a 24-hour clock.

    The record runs through the day from the hour at which the sitting began, so a stamp is the next such time after
    the previous one. A stamp that is more than a few hours later is skipped and reported.
    """
    last = _opening(root)
    for stamp in root.iter("time.stamp"):
        recorded = clock(text := to_line(stamp))
        if recorded is None:
            continue
        minutes = recorded.hour * 60 + recorded.minute
        if recorded.hour <= 12 and not re.search(r"[ap]\.?m", text, re.IGNORECASE):
            halves = (minutes % _HALF_DAY, minutes % _HALF_DAY + _HALF_DAY)
            later = [half for half in halves if last is not None and last <= half <= last + _LEAP]
            if not later:
                stamp.text = None
                yield f"line {stamp.sourceline}: {text} may be before or after noon: skipped"
                continue
            minutes = later[0]
        last = minutes
        stamp.text = f"{time(minutes // 60, minutes % 60):%H:%M}"


def _opening(root: _Element) -> int | None:
    """Return the minute of the day at which the sitting began, or None."""
    opening = root.find(".//business.start")
    match = _OPENED.search(to_line(opening)) if opening is not None else None
    if match is None:
        return None
    if match[1] is None:
        return _HALF_DAY
    hour = int(match[1]) % 12 + (12 if match[3] in "pP" else 0)
    return hour * 60 + int(match[2] or 0)
