"""Labels of lines, and the lines that a line is below: ``(1)`` is below ``(a)``, ``(b)`` is not."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")

_LABEL: Final = re.compile(
    r"(?:(?:\([A-Za-z0-9-]{1,5}\)|\d{1,3}(?:[.-]\d{1,4}){1,5}[A-Za-z]?\.?(?= )"
    r"|(?:[A-Za-z0-9]{1,2}|[ivx]{3}|[IVX]{3}|\d{3})[.)]|[•*·–-]) ?){1,3}(?=\S)"
)
_PARTS: Final = re.compile(r"\d{1,3}[.-]\d")
_BARE: Final = re.compile(r"[A-Za-z0-9]{1,5}")
_ALIKE: Final = str.maketrans(string.ascii_letters, "a" * 26 + "A" * 26)


def find_label_end(text: str, start: int, end: int) -> int:
    """Find the end of the label at the start of the line [start, end)."""
    label = _LABEL.match(text, start, end)
    return label.end() if label else start


def get_lines_before(text: str, at: int, count: int) -> list[str]:
    """Get the last lines before an offset of a text, at most `count`, without blank ones at the end.

    The text before them is not copied, since a section may have many tables.
    """
    end = at
    while end and text[end - 1].isspace():
        end -= 1
    begin = end
    for _ in range(count):
        begin = text.rfind("\n", 0, max(begin, 0))
        if begin < 0:
            break
    return text[begin + 1 : end].split("\n")


def _style(label: str) -> str:
    """The style of a label without its letter or number: ``(a)`` equals ``(b)``, but not ``(1)`` or ``i.``"""
    return re.sub(r"[ivx]+|[a-z]{2,}", "#", re.sub(r"\d+", "1", label)).translate(_ALIKE)


def is_next(label: str, before: str) -> bool:
    """Check whether a label follows another: ``(b)`` follows ``(a)``, ``2.`` follows ``1.``"""
    last, this = _BARE.search(before), _BARE.search(label)
    if last is None or this is None or _BARE.sub("", before) != _BARE.sub("", label):
        return False
    if last[0].isdigit() or this[0].isdigit():
        return last[0].isdigit() and this[0].isdigit() and int(this[0]) == int(last[0]) + 1
    return len(last[0]) == len(this[0]) == 1 and ord(this[0]) == ord(last[0]) + 1


@dataclass(slots=True)
class Frame(Generic[T]):
    """A line with lines below it, and the value that it has for them."""

    label: str
    value: T
    parent: bool = False
    """Labelled lines are below it."""


class Outline(Generic[T]):
    """The lines that the current line is below. A line is below the nearest one before it with another style of
    label."""

    def __init__(self) -> None:
        self.frames: list[Frame[T]] = []
        """Outermost first."""
        self._left: list[str] = []
        """Labels of the lines above that an unlabelled line ended."""

    def find_depth(self, label: str) -> int:
        """Find the number of lines that a line with this label is below."""
        for depth, frame in enumerate(self.frames):
            if frame.label and (_style(frame.label) == _style(label) or is_next(label, frame.label)):
                return depth
        return len(self.frames)

    def enter(self, label: str) -> None:
        """Leave the lines that a line with this label is not below."""
        depth = self.find_depth(label)
        if (
            depth == len(self.frames)
            and _PARTS.match(label)
            and any(_style(label) == _style(one) for one in self._left)
        ):
            depth = 0  # "4.2" after "4.1" is not below the lines between them.
        del self.frames[depth:]
        if self.frames:
            self.frames[-1].parent = True

    def leave(self) -> None:
        """Leave all lines, at an unlabelled one."""
        self._left = [each.label for each in self.frames if each.label] or self._left
        self.frames.clear()

    def push(self, label: str, value: T) -> None:
        """Add the current line, which lines may be below."""
        self.frames.append(Frame(label, value))

    def find(self, get: Callable[[T], V | None]) -> V | None:
        """Find the value of the nearest line above that has one."""
        return next((found for frame in reversed(self.frames) if (found := get(frame.value)) is not None), None)
