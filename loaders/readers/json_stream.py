"""The elements of a JSON file, one at a time: a dump of any size needs only the memory of its largest element.

An element is identified by its number in the file, from 1. A file is an array of elements, one element per line (with
or without the brackets and commas of an array), or a single element.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers.formats import describe_depth

BROKEN: Final = (EOFError, OSError, zlib.error)
"""Exceptions from reading a damaged compressed file."""

LARGEST_ELEMENT: Final = 32 << 20
"""Maximum size of one element, in characters: ten times what Wikidata allows. The file ends at a larger one."""

_UNPACK: Final[Mapping[str, Callable[[Path], Any]]] = {".gz": gzip.open, ".bz2": bz2.open}
_CHUNK: Final = 1 << 20
_MARKS: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<closed>"?)|[{}\[\]]', re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\r\n,]*")
_SCALAR: Final = re.compile(r'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[-+.\w]++)(?=[ \t\r\n]*+[,\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """The value at one position of a file: an object, or an error."""

    number: int
    text: str
    value: Mapping[str, Any] | None
    problem: str | None = None


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, decompressed if it ends in .gz or .bz2. Raises SourceError if it cannot be opened."""
    unpack = _UNPACK.get(path.suffix.lower())
    try:
        stream: Any = path.open("rb") if unpack is None else unpack(path)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error
    with stream:
        yield stream


def parse_elements(path: Path, is_whole: Callable[[Mapping[str, Any]], bool] = bool) -> Iterator[Element]:
    """Yield the elements of a JSON file.

    In a file with one element per line, a line with invalid JSON is one bad element. `is_whole` distinguishes an
    element from a part of one on a line of its own. Raises SourceError where the file is truncated or damaged, after
    the elements before.
    """
    try:
        with open_stream(path) as stream:
            if stream.read(3) != codecs.BOM_UTF8:
                stream.seek(0)
            if _is_by_line(path, is_whole):
                yield from _lines(path, stream)
            else:
                yield from _values(path, stream)
    except BROKEN as error:
        raise SourceError(f"{path}: the file is damaged or truncated ({error})") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 ({error.reason})") from error


def _is_by_line(path: Path, is_whole: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether each element is on a line of its own: two lines are, or the only line with content is."""
    whole = broken = 0
    with open_stream(path) as stream:
        for _ in range(20):
            line = stream.readline(LARGEST_ELEMENT + 1).removeprefix(codecs.BOM_UTF8)
            if not line or len(line) > LARGEST_ELEMENT:
                break
            if line.strip() in (b"", b"[", b"]"):
                continue
            try:
                value = json.loads(line.strip().rstrip(b",")) if line.startswith(b"{") else None
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict) and is_whole(value):
                whole += 1
            else:
                broken += 1
            if whole == 2:
                return True
    return whole == 1 and not broken


def _lines(path: Path, stream: IO[bytes]) -> Iterator[Element]:
    number = 0
    while line := stream.readline(LARGEST_ELEMENT + 1):
        if len(line) > LARGEST_ELEMENT:
            raise SourceError(f"{path}: element {number + 1} has more than {LARGEST_ELEMENT:,} bytes")
        line = line.strip()
        if line in (b"", b"[", b"]", b","):
            continue
        number += 1
        line = line.rstrip(b",")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            yield Element(number, line.decode(errors="backslashreplace"), None, f"is not UTF-8 (byte {error.start})")
            continue
        yield _element(number, text)


def _element(number: int, text: str) -> Element:
    try:
        value = json.loads(text)
    except RecursionError:
        return Element(number, text, None, describe_depth(text))
    except ValueError as error:
        return Element(number, text, None, f"is not JSON ({error})")
    if not isinstance(value, dict):
        return Element(number, text, None, "is not a JSON object")
    return Element(number, text, value)


def _values(path: Path, stream: IO[bytes]) -> Iterator[Element]:
    """Yield the objects of a top-level array, or consecutive objects, independent of line ends."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    text, at, number, within, ended = "", 0, 0, False, False
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # what may be nothing is always there
        if not within and number == 0 and text.startswith("[", at):
            at, within = at + 1, True
            continue
        if within and text.startswith("]", at):
            return
        end = _end(text, at)
        if end is not None:
            number += 1
            yield _element(number, text[at:end])
            at = end
            continue
        text, at = text[at:], 0
        if ended:
            if text or within:
                raise SourceError(f"{path}: element {number + 1} is truncated or invalid JSON: {quoted(text)}")
            return
        if len(text) > LARGEST_ELEMENT:
            raise SourceError(f"{path}: element {number + 1} has more than {LARGEST_ELEMENT:,} characters")
        chunks = [text]
        size = 0
        wanted = min(max(_CHUNK, len(text)), LARGEST_ELEMENT + 1 - len(text))
        while not ended and size < wanted:
            chunk = stream.read(_CHUNK)
            ended = not chunk
            chunks.append(decoder.decode(chunk, final=ended))
            size += len(chunk)
        text = "".join(chunks)


def _end(text: str, at: int) -> int | None:
    """Return the end of the value that begins at a position of `text`, or None. Outside arrays, it is not a scalar."""
    if not text.startswith(("{", "["), at):
        scalar = _SCALAR.match(text, at)
        return scalar.end() if scalar else None
    depth = 0
    for match in _MARKS.finditer(text, at):
        mark = match[0]
        if match["closed"] == "":
            return None  # within a string
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return match.end()
    return None
