"""The fields of a climate document as sources write them: dates, and the codes of places."""

from __future__ import annotations

import ast
import json
import re
from datetime import date
from functools import lru_cache

from kg.errors import RecordError
from loaders.readers.cells import items, present


@lru_cache(maxsize=4096)
def place_codes(text: str | None) -> tuple[str, ...]:
    """Return the codes of places that `text` lists, or the ``iso`` of the one object that it describes."""
    if text is not None and text.lstrip().startswith("{"):
        try:
            described = json.loads(text)
        except json.JSONDecodeError:
            try:
                described = ast.literal_eval(text)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                raise RecordError("the geography is neither a code, a list of codes nor an object with 'iso'") from None
        code = described.get("iso") if isinstance(described, dict) else None
        return (str(code),) if present(code and str(code)) else ()
    return tuple(dict.fromkeys(code.upper() if len(code) <= 3 else code for code in items(text)))


def iso_date(text: str) -> str | None:
    """Return the day that begins an ISO 8601 time, or that ``DD/MM/YYYY`` names, or None when it is neither."""
    if match := re.match(r"(\d{4})-(\d{2})-(\d{2})(?!\d)", text.strip()):
        year, month, day = match.groups()
    elif match := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text.strip()):
        day, month, year = match.groups()
    else:
        return None
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None
