"""RDF files: expansion of paths and patterns, formats, and quads or the place of a syntax error."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Final

from pyoxigraph import Quad, RdfFormat, parse

from kg.errors import InvalidInputError, SourceError
from kg.processes import task
from kg.processes.child import SyntaxFaultError
from kg.shacl.report import Location, Violation

FORMATS: Final[dict[str, RdfFormat]] = {
    ".ttl": RdfFormat.TURTLE,
    ".trig": RdfFormat.TRIG,
    ".nt": RdfFormat.N_TRIPLES,
    ".nq": RdfFormat.N_QUADS,
    ".n3": RdfFormat.N3,
    ".jsonld": RdfFormat.JSON_LD,
    ".json": RdfFormat.JSON_LD,
    ".rdf": RdfFormat.RDF_XML,
    ".owl": RdfFormat.RDF_XML,
    ".xml": RdfFormat.RDF_XML,
}
"""Formats by file extension."""

IN_FOLDERS: Final = tuple(ending for ending in FORMATS if ending not in (".json", ".xml"))
"""Extensions of RDF files in folders. A file with an ambiguous extension is parsed only if named explicitly."""

STDIN: Final = "-"
_BOM: Final = b"\xef\xbb\xbf"


class MalformedError(Exception):
    """A syntax error in a file: `fault` as a result of the validation, `place` as its location."""

    def __init__(self, fault: Violation, place: Location) -> None:
        super().__init__(fault.message)
        self.fault, self.place = fault, place


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """An RDF file, or the content of standard input, under the name that the user gave."""

    name: str
    format: RdfFormat
    content: Path | bytes = field(repr=False)
    lenient: bool = False
    """Whether invalid IRIs and language tags are accepted."""

    def open(self) -> IO[bytes]:
        """Open it as bytes, without a byte order mark. Raises SourceError."""
        if isinstance(self.content, bytes):
            return BytesIO(self.content.removeprefix(_BOM))
        try:
            stream = self.content.open("rb")
            if stream.peek(len(_BOM)).startswith(_BOM):
                stream.read(len(_BOM))
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be read: {error.strerror or error}") from error
        return stream

    def parse(self) -> Iterator[Quad]:
        """Yield its quads. Blank nodes get new labels each time.

        Raises MalformedError, possibly after some quads, and SourceError.
        """
        base = (self.content if isinstance(self.content, Path) else Path(self.name)).absolute().as_uri()
        well_formed = 0
        try:
            with self.open() as stream:
                for quad in parse(stream, self.format, base_iri=base, lenient=self.lenient, rename_blank_nodes=True):
                    well_formed += 1
                    yield quad
        except SyntaxError as error:
            raise self._to_malformed_error(error, well_formed) from error
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be read: {error.strerror or error}") from error
        except MemoryError as error:  # the parser's own limit for one term
            raise SourceError(f"{self.name}: a term is too long: {error}") from error

    def parse_all(self) -> list[Quad]:
        """Return all of its quads. Raises SourceError, also for a syntax error."""
        try:
            return list(self.parse())
        except MalformedError as error:
            raise SourceError(str(error)) from error

    def _to_malformed_error(self, error: SyntaxError, well_formed: int) -> MalformedError:
        line, column = task.find_position(error, self.format.media_type, lambda: self.open().read())
        fault = SyntaxFaultError(error.msg, line, column)
        where = f"{self.name}, {fault.place}" if fault.place else self.name
        message = f"{where}: not {self.format.name}: {fault.fault}"
        if self._is_valid_leniently(well_formed):
            message += " (accepted by a lenient parser)"
        return MalformedError(Violation(None, message, source=self.name), Location(self.name, line))

    def _is_valid_leniently(self, well_formed: int) -> bool:
        """Return whether a lenient parser gets further than a strict one did."""
        if self.lenient:
            return False
        try:
            for _ in islice(replace(self, lenient=True).parse(), well_formed + 1):
                pass
        except (MalformedError, SourceError):
            return False
        return True


def open_document(
    place: str, *, stdin: IO[bytes] | None = None, stdin_format: str = "ttl", lenient: bool = False
) -> Document:
    """Build the document at `place`. ``-`` is `stdin`, in the format with the extension `stdin_format`.

    Raises InvalidInputError for an unknown format, and SourceError for an unknown format of a file that does not exist.
    """
    if place == STDIN and stdin is not None:
        return Document("standard input", get_format("." + stdin_format.lower().lstrip(".")), stdin.read(), lenient)
    if Path(place).suffix.lower() not in FORMATS and not Path(place).exists():
        raise SourceError(f"{place}: no such file or folder.")
    return Document(place, get_format(place), Path(place), lenient)


def get_format(name: str) -> RdfFormat:
    """Return the format for the extension of `name`. Raises InvalidInputError for an unknown extension."""
    found = FORMATS.get(Path(name).suffix.lower() or name)
    if found is None:
        raise InvalidInputError(f"{name}: unknown RDF format. Supported file extensions: {', '.join(sorted(FORMATS))}.")
    return found


def expand_paths(places: Iterable[str], *, leave_out: Iterable[str] = ()) -> list[str]:
    """Expand folders to the RDF files below them and glob patterns (``**/*.ttl``) to their matches.

    Hidden files and those in `leave_out` are skipped unless named explicitly. Raises InvalidInputError for a folder
    without RDF files or a pattern without matches.
    """
    found: dict[str, None] = {}
    left_out = {Path(name).resolve() for name in expand_paths(leave_out)} if leave_out else set()
    for place in places:
        path = Path(place)
        if path.is_dir():
            below = [each for each in sorted(path.rglob("*")) if each.suffix.lower() in IN_FOLDERS and each.is_file()]
            matches = [str(each) for each in below if not _is_hidden(each.relative_to(path))]
            if not matches:
                supported = ", ".join(IN_FOLDERS)
                raise InvalidInputError(f"{place}: no RDF file in this folder. Supported extensions: {supported}.")
        elif place != STDIN and glob.has_magic(place) and not path.exists():
            matches = [each for each in sorted(glob.glob(place, recursive=True)) if Path(each).is_file()]
            if not matches:
                raise InvalidInputError(f"{place}: no file matches this pattern.")
        else:
            found[place] = None
            continue
        found |= dict.fromkeys(each for each in matches if Path(each).resolve() not in left_out)
    return list(found)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def parse_file(path: Path) -> tuple[list[Quad], Violation | None]:
    """Return the quads of a file, or its syntax error as a result."""
    try:
        return list(open_document(str(path)).parse()), None
    except MalformedError as error:
        return [], error.fault
