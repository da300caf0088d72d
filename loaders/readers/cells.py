"""Parsers of table cells: missing values, integers, booleans, lists in three notations, web addresses."""

from __future__ import annotations

import json
import re
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import RecordError
from kg.text import MAX_QUOTED_CHARS, quoted

_MISSING: Final = frozenset({"", "nan", "none", "null", "<na>", "nat", "[]"})
_LONGEST_MISSING: Final = max(map(len, _MISSING))
_TRUTH: Final = {"true": True, "t": True, "1": True, "1.0": True, "false": False, "f": False, "0": False, "0.0": False}
_WHOLE: Final = re.compile(r"([+-]?[0-9]+)(?:\.0+)?")
_LONGEST_WHOLE: Final = 18
"""Digits that fit the integers of SPARQL engines."""
_QUOTED: Final = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_UNFIT_FOR_IRI: Final = re.compile(r"[\x00-\x20<>\"{}|\\^`]")


def present(text: str | None) -> str | None:
    """Return `text`, or None if it denotes a missing value: empty, ``nan``, ``None``, ``[]``."""
    if text is None:
        return None
    bare = text.strip()
    # Folding the case never shortens a text, so long ones need not be folded.
    return None if len(bare) <= _LONGEST_MISSING and bare.casefold() in _MISSING else text


def parse_integer(text: str) -> int:
    """Parse an integer, also in the form ``3.0``. Raises RecordError if `text` is not one or has over 18 digits."""
    match = _WHOLE.fullmatch(text.strip())
    if match is None:
        raise RecordError(f"{quote(text)} is not a whole number")
    if len(match[1].lstrip("+-0")) > _LONGEST_WHOLE:
        raise RecordError(f"{quote(text)} is too large")
    return int(match[1])


def quote(text: str) -> str:
    """Quote a text for a message, with its length if it is long."""
    return quoted(text) + (f" ({len(text):,} characters)" if len(text) > MAX_QUOTED_CHARS else "")


def parse_digits(text: str | None) -> int | None:
    """Parse a number of at most 18 ASCII digits, None for anything else."""
    if text is None or not (text.isascii() and text.isdecimal()) or len(text.lstrip("0")) > _LONGEST_WHOLE:
        return None
    return int(text)


def parse_boolean(text: str | None) -> bool:
    """Parse a boolean; a missing value is False. Raises RecordError if `text` is not a boolean."""
    if (text := present(text)) is None:
        return False
    if (value := _TRUTH.get(text.strip().casefold())) is None:
        raise RecordError(f"{quote(text)} is not true or false")
    return value


def parse_items(text: str | None, separators: str = ";|") -> list[str]:
    """Parse a list in JSON, as printed by Python or NumPy, or separated by any of `separators`."""
    if (text := present(text)) is None:
        return []
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            found = [str(item) for item in json.loads(text) if item is not None]
        except (json.JSONDecodeError, RecursionError):
            quoted = [single or double for single, double in _QUOTED.findall(text)]
            found = quoted or text[1:-1].split(",")
    else:
        found = re.split(f"[{re.escape(separators)}]", text)
    return [item.strip() for item in found if present(item)]


def parse_web_address(text: str, site: str = "") -> str | None:
    """Parse an http(s) address, or an HTML link with one; a path is relative to `site`. None if there is no address.

    Characters that an IRI may not contain are percent-encoded.
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
    """Whether `text` is a JSON list or object, in a cell that should contain words."""
    if text[:1] not in ("[", "{"):
        return False
    try:
        return isinstance(json.loads(text), list | dict)
    except (ValueError, RecursionError):
        return False


def to_slug(title: str) -> str:
    """Convert a title to lower case with hyphens for everything but letters and digits."""
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-") or "untitled"
