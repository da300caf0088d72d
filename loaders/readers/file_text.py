"""Files as text or JSON, in the encodings that codes and tables are published in."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kg.errors import SourceError
from loaders.readers.formats import describe_depth

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ENCODINGS: Final = ("utf-8", "iso8859", "cp", "mac", "koi8", "gb", "big5", "euc", "shift_jis", "iso2022")
"""Prefixes of the names of encodings used by pages."""
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:\-]+)", re.IGNORECASE)


def read_file(path: str | Path) -> bytes:
    """Read a file. Raises SourceError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: Cannot read the file ({error.strerror}).") from error


def decode(data: bytes, name: str) -> tuple[str, Sequence[str]]:
    """Decode a file, and return warnings: by its byte order mark, the encoding declared in its HTML, or its bytes.

    Raises SourceError for a file that is not text.
    """
    marked = next((encoding for bom, encoding in _MARKS if data.startswith(bom)), None) or _wide(data)
    if marked is not None:
        try:
            return data.decode(marked).removeprefix("\ufeff"), ()
        except UnicodeDecodeError as error:
            raise SourceError(f"{name}: Starts like {marked}, but is not valid ({error.reason}).") from None
    match = _CHARSET.search(data[:4_096])
    said = match[1].decode("ascii").lower() if match else "utf-8"
    declared = _declared(said)
    for encoding in dict.fromkeys(filter(None, (declared, "utf-8"))):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        told = () if encoding == declared else (f"{name}: Declared as {said}, but not valid in it. Read as UTF-8.",)
        if "\0" in text:
            text = text.replace("\0", "\ufffd")
            told = (*told, f"{name}: Contains NUL characters. Each is replaced by U+FFFD.")
        return text, told
    if b"\0" in data:
        raise SourceError(f"{name}: Not a text file. Supported: HTML or plain text, in UTF-8 or Windows-1252.")
    return data.decode("cp1252", errors="replace"), (f"{name}: Not valid UTF-8. Read as Windows-1252.",)


def _wide(data: bytes) -> str | None:
    """Detect UTF-16 without a byte order mark: every other byte of Latin letters is zero."""
    start = data[:4_096]
    half = len(start) // 2
    for zeros, letters, encoding in ((start[1::2], start[::2], "utf-16-le"), (start[::2], start[1::2], "utf-16-be")):
        if half and zeros.count(0) * 10 > half * 8 and letters.count(0) * 10 < half:
            return encoding
    return None


def _declared(said: str) -> str | None:
    """Normalize the encoding that a page declares, as browsers do. None for one that no page uses.

    A page labelled ASCII or Latin-1 is Windows-1252, and one labelled UTF-16 in ASCII letters is UTF-8
    (https://encoding.spec.whatwg.org/).
    """
    try:
        known = codecs.lookup(said).name
    except LookupError:
        return None
    if known in ("ascii", "iso8859-1"):
        return "cp1252"
    if known.startswith(("utf-16", "utf-32")):
        return "utf-8"
    return known if known.startswith(_ENCODINGS) else None


def parse_json(data: bytes, name: str) -> tuple[Any, Sequence[str]]:
    """Decode and parse a JSON file, and return warnings. Raises SourceError for invalid JSON."""
    text, warnings = decode(data, name)
    try:
        # NaN is not JSON, but programs write it for a missing value.
        return json.loads(text, parse_constant=lambda _: None), warnings
    except RecursionError:
        raise SourceError(f"{name}: The JSON {describe_depth(text)}.") from None
    except ValueError as error:
        raise SourceError(f"{name}: Not valid JSON ({error!r:.120}).") from None
