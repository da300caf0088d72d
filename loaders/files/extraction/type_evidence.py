"""Evidence for the type of a name: the words next to it, such as ``maintained by`` before it or a version after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from loaders.files.extraction.entity_model import EntityType

_THINGS: Final = (
    r"(?:service|software|program|programme|application|app|system|tool|library|server|database|device|platform"
    r"|framework|package|plugin|engine|gateway|controller|interface|module|component|client|product|scanner|sensor"
    r"|catalogue|catalog|register|registry|scheduler|planner|monitor|dashboard|website|portal|program)"
)
_Rows = tuple[tuple[EntityType, int, str], ...]
_FOLLOWING: Final[_Rows] = (
    ("product", 4, r"\s*\(?v?\d+\.\d+"),
    ("product", 4, rf",?\s+(?:is|are|was)\s+(?:an?|the|our)\s+(?:[\w-]+\s+){{0,3}}{_THINGS}\b"),
    ("product", 4, rf"\s+is\s+{_THINGS}\b"),
    ("product", 3, rf"\s+{_THINGS}\b"),
    (
        "product",
        3,
        r"\s+(?:depends on|relies on|integrates with|runs on|is (?:built|configured|powered|deployed|hosted"
        r"|installed|written|(?:an?|the)? ?(?:part|module|component) of)|belongs to|stores|reads|writes to"
        r"|returns|requires|calls"
        r"|needs|sends|publishes|translates|controls|crash\w+|fails|stopp\w+|starts)\b",
    ),
    ("product", 1, r"\s+uses\b"),
    (
        "person",
        3,
        r"\s+(?:wrote|asks?|asked|said|says|reported|reports|confirm\w+|approved|approves|restarted|leads|led|works|left"
        r"|joined|found|suggest\w+|agreed|retired|thinks|wants|presented|reviewed|cleans|signed|explained)\b",
    ),
    ("organization", 3, r"\s+(?:owns|employs|sells|lends|announced|funds|maintains|operates|sued|acquired)\b"),
)
_PRECEDING: Final[_Rows] = (
    (
        "product",
        3,
        r"\b(?:uses?|using|requires?|needs?|depends on|relies on|integrates with|built on|powered by|runs on"
        r"|stored in|installs?|installing|deploys?|deploying|restart|start|stop|open|launch|upgrade"
        r"|migrate to|configure|(?:module|component|part|version) of|works? with|started with)",
    ),
    ("organization", 3, r"\b(?:owned|maintained|operated|managed|administered|run|hosted|published|made|sold) by"),
    ("organization", 2, r"\b(?:bought from|employed by|supplied by|contract with|on behalf of)"),
    ("person", 3, r"\b(?:approved|written|designed|drawn|signed|reviewed|led|presented|chaired) by"),
    ("person", 4, r"\b(?:mr|mrs|ms|dr|prof|professor)\.?"),
    ("place", 3, r"\b(?:located in|situated in|based in|village of|town of|city of|headquartered in)"),
)
_AFTER: Final = tuple((type_, weight, re.compile(pattern)) for type_, weight, pattern in _FOLLOWING)
_BEFORE: Final = tuple(
    (type_, weight, re.compile(rf"(?:{pattern})\s+(?:the\s+|a\s+|an\s+|our\s+)?$", re.IGNORECASE))
    for type_, weight, pattern in _PRECEDING
)
_WHERE: Final = re.compile(r"\b(?:in|at|near|between)\s+$", re.IGNORECASE)
_LOOKED_AT: Final = 60
"""Characters before and after a name that are read."""


def find_evidence(text: str, start: int, end: int) -> Iterator[tuple[EntityType, int]]:
    """Yield the types that the words around ``text[start:end]`` show, each with its weight."""
    after = text[end : end + _LOOKED_AT]
    for type_, weight, pattern in _AFTER:
        if pattern.match(after) is not None:
            yield type_, weight
            break
    before = text[max(0, start - _LOOKED_AT) : start]
    for type_, weight, pattern in _BEFORE:
        if pattern.search(before) is not None:
            yield type_, weight
            break
    else:
        if _WHERE.search(before) is not None:
            yield "place", 1
