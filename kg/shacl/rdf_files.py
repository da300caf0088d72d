"""Files of RDF: which are meant, and their quads or where their syntax is wrong."""

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
"""The formats by the end of a file's name."""

IN_FOLDERS: Final = tuple(ending for ending in FORMATS if ending not in (".json", ".xml"))
"""The endings that make a file in a folder RDF: one that may be anything else is read only where it is named."""

STDIN: Final = "-"
_BOM: Final = b"\xef\xbb\xbf"


class MalformedError(Exception):
    """A file is not what its format asks for; `fault` says so as a result of the validation, `place` where."""

    def __init__(self, fault: Violation, place: Location) -> None:
        super().__init__(fault.message)
        self.fault, self.place = fault, place


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A file of RDF, or what came over standard input, under the name by which it was asked for."""

    name: str
    format: RdfFormat
    content: Path | bytes = field(repr=False)
    lenient: bool = False
    """Whether IRIs and language tags may be what their standards do not allow."""

    def open(self) -> IO[bytes]:
        """Return its bytes, without the mark that some editors begin with. Raises SourceError."""
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
        """Yield what it says; blank nodes of two readings with one label are two nodes.

        Raises MalformedError, when some may have been yielded, and SourceError.
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
        except MemoryError as error:  # the parser's own, of what it holds of one term
            raise SourceError(f"{self.name}: one of its terms is too long to be read: {error}") from error

    def parse_all(self) -> list[Quad]:
        """Return all that it says. Raises SourceError where it is not what its format asks for, too."""
        try:
            return list(self.parse())
        except MalformedError as error:
            raise SourceError(str(error)) from error

    def _to_malformed_error(self, error: SyntaxError, well_formed: int) -> MalformedError:
        line, column = task.find_position(error, self.format.media_type, lambda: self.open().read())
        said = SyntaxFaultError(error.msg, line, column)
        where = f"{self.name}, {said.place}" if said.place else self.name
        message = f"{where}: not {self.format.name}: {said.fault}"
        if self._is_valid_leniently(well_formed):
            message += "; a lenient reader takes it"
        return MalformedError(Violation(None, message, source=self.name), Location(self.name, line))

    def _is_valid_leniently(self, well_formed: int) -> bool:
        """Return whether a lenient reader comes further than the quads that a strict one took."""
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
    """Return the document at `place`; ``-`` is `stdin`, in the format of files whose names end in `stdin_format`.

    Raises InvalidInputError where the format cannot be told, and SourceError where that is since nothing is there.
    """
    if place == STDIN and stdin is not None:
        return Document("standard input", get_format("." + stdin_format.lower().lstrip(".")), stdin.read(), lenient)
    if Path(place).suffix.lower() not in FORMATS and not Path(place).exists():
        raise SourceError(f"{place}: there is no such file or folder")
    return Document(place, get_format(place), Path(place), lenient)


def get_format(name: str) -> RdfFormat:
    """Return the format that a file has by the end of its `name`. Raises InvalidInputError where that says nothing."""
    found = FORMATS.get(Path(name).suffix.lower() or name)
    if found is None:
        raise InvalidInputError(
            f"{name}: what format it has cannot be told; name it {', '.join(sorted(FORMATS))}, by its format"
        )
    return found


def expand_paths(places: Iterable[str], *, leave_out: Iterable[str] = ()) -> list[str]:
    """Return the files that `places` are or stand for: a folder for the RDF files below it, ``**/*.ttl`` for matches.

    What a folder or pattern finds is passed over where it is hidden or in `leave_out`. Raises InvalidInputError for a
    folder or a pattern that finds nothing.
    """
    found: dict[str, None] = {}
    left_out = {Path(name).resolve() for name in expand_paths(leave_out)} if leave_out else set()
    for place in places:
        path = Path(place)
        if path.is_dir():
            below = [each for each in sorted(path.rglob("*")) if each.suffix.lower() in IN_FOLDERS and each.is_file()]
            matches = [str(each) for each in below if not _is_hidden(each.relative_to(path))]
            if not matches:
                raise InvalidInputError(f"{place}: no file in this folder ends in {', '.join(IN_FOLDERS)}")
        elif place != STDIN and glob.has_magic(place) and not path.exists():
            matches = [each for each in sorted(glob.glob(place, recursive=True)) if Path(each).is_file()]
            if not matches:
                raise InvalidInputError(f"{place}: no file matches this pattern")
        else:
            found[place] = None
            continue
        found |= dict.fromkeys(each for each in matches if Path(each).resolve() not in left_out)
    return list(found)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def parse_file(path: Path) -> tuple[list[Quad], Violation | None]:
    """Return the quads of a file, or what is wrong with its syntax and where."""
    try:
        return list(open_document(str(path)).parse()), None
    except MalformedError as error:
        return [], error.fault
