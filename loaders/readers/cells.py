"""Cells of tables as sources write them: marks of absence, whole numbers, truth, lists in three notations."""

from __future__ import annotations

import json
import re
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import RecordError

_MISSING: Final = frozenset({"", "nan", "none", "null", "<na>", "nat", "[]"})
_TRUTH: Final = {"true": True, "t": True, "1": True, "1.0": True, "false": False, "f": False, "0": False, "0.0": False}
_WHOLE: Final = re.compile(r"([+-]?[0-9]+)(?:\.0+)?")
_SHOWN: Final = 60
_LONGEST_WHOLE: Final = 18
"""Digits that fit the integers of SPARQL engines; a longer number is no index and no page."""
_QUOTED: Final = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_UNFIT_FOR_IRI: Final = re.compile(r"[\x00-\x20<>\"{}|\\^`]")


def present(text: str | None) -> str | None:
    """Return `text`, or None where it is one of the marks that stand for nothing: empty, ``nan``, ``None``, ``[]``."""
    return None if text is None or text.strip().casefold() in _MISSING else text


def whole_number(text: str) -> int:
    """Return the integer that `text` is, also in the form ``3.0``. Raises RecordError otherwise."""
    match = _WHOLE.fullmatch(text.strip())
    if match is None:
        raise RecordError(f"{shown(text)} is not a whole number")
    if len(match[1].lstrip("+-0")) > _LONGEST_WHOLE:
        raise RecordError(f"{shown(text)} is too large a number")
    return int(match[1])


def shown(text: str) -> str:
    """Return a text as a message quotes it: the beginning of a long one, and how long it is."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}... ({len(text):,} characters)"


def digits(text: str | None) -> int | None:
    """Return the integer that the digits 0 to 9 write; None for anything else, and for what no engine can count."""
    if text is None or not (text.isascii() and text.isdecimal()) or len(text.lstrip("0")) > _LONGEST_WHOLE:
        return None
    return int(text)


def truth(text: str | None) -> bool:
    """Return whether `text` says yes; nothing says no. Raises RecordError for what is neither."""
    if (text := present(text)) is None:
        return False
    if (value := _TRUTH.get(text.strip().casefold())) is None:
        raise RecordError(f"{shown(text)} is not true or false")
    return value


def items(text: str | None, separators: str = ";|") -> list[str]:
    """Return the items of a list written as JSON, as Python or NumPy print it, or with any of `separators` between."""
    if (text := present(text)) is None:
        return []
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            found = [str(item) for item in json.loads(text) if item is not None]
        except json.JSONDecodeError:
            quoted = [single or double for single, double in _QUOTED.findall(text)]
            found = quoted or text[1:-1].split(",")
    else:
        found = re.split(f"[{re.escape(separators)}]", text)
    return [item.strip() for item in found if present(item)]


def web_address(text: str, site: str = "") -> str | None:
    """Return the http(s) address that `text` is or that its HTML link leads to; a path leads into `site`, if any.

    Characters that no IRI may hold are percent-encoded. None when there is no address.
    """
    if match := re.search(r"href=\"([^\"]*)\"", text):
        text = match[1]
    text = text.strip()
    if text.startswith("/"):
        text = site + text
    if not re.match(r"https?://[^/\s]", text, re.IGNORECASE):
        return None
    address = _UNFIT_FOR_IRI.sub(lambda found: f"%{ord(found[0]):02X}", text)
    try:
        return NamedNode(address).value
    except ValueError:  # such as a host in half a bracket
        return None


def is_structure(text: str) -> bool:
    """Return whether `text` is a list or an object, as JSON writes them: of a cell that should hold words."""
    if text[:1] not in ("[", "{"):
        return False
    try:
        return isinstance(json.loads(text), list | dict)
    except (ValueError, RecursionError):
        return False


def slug_from(title: str) -> str:
    """Return `title` in lower case with hyphens for all that is neither letter nor digit."""
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-") or "untitled"
