"""Files of RDF: which are meant, their quads or where their syntax is wrong, and shapes read from them."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Final

from pyoxigraph import NamedNode, Quad, RdfFormat, Triple, parse

from kg.errors import InvalidInputError, QuadciteError, SourceError
from kg.validation.report import Violation
from kg.validation.sarif import Location
from kg.validation.shapes import Shapes
from kg.vocabulary import OWL, RDF, RDFS, SH, curie

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
_SHACL: Final = re.compile(rb"www\.w3\.org/ns/shacl#")
_SCANNED_BYTES: Final = 1 << 20
_PLACE: Final = re.compile(
    r"(?:Parser error )?(?:at line \d+ (?:column \d+|between columns \d+ and \d+)"
    r"|between line \d+ column \d+ and line \d+ column \d+): "
)
_SHAPE_CLASSES: Final = frozenset({SH.NodeShape, SH.PropertyShape})
_TARGETS: Final = frozenset({SH.targetNode, SH.targetClass, SH.targetSubjectsOf, SH.targetObjectsOf, SH.target})
_CLASSES: Final = frozenset({RDFS.Class, OWL.Class})
_BLANK: Final = re.compile(r"_:\w+")


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

    def opened(self) -> IO[bytes]:
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

    def quads(self) -> Iterator[Quad]:
        """Yield what it says; blank nodes of two readings with one label are two nodes.

        Raises MalformedError, when some may have been yielded, and SourceError.
        """
        base = (self.content if isinstance(self.content, Path) else Path(self.name)).absolute().as_uri()
        well_formed = 0
        try:
            with self.opened() as stream:
                for quad in parse(stream, self.format, base_iri=base, lenient=self.lenient, rename_blank_nodes=True):
                    well_formed += 1
                    yield quad
        except SyntaxError as error:
            raise self._malformed(error, well_formed) from error
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be read: {error.strerror or error}") from error

    def well_formed(self) -> list[Quad]:
        """Return all that it says. Raises SourceError where it is not what its format asks for, too."""
        try:
            return list(self.quads())
        except MalformedError as error:
            raise SourceError(str(error)) from error

    def _malformed(self, error: SyntaxError, well_formed: int) -> MalformedError:
        line = f", line {error.lineno}" if error.lineno is not None else ""
        column = f", column {error.offset}" if error.lineno is not None and error.offset is not None else ""
        message = f"{self.name}{line}{column}: not {self.format.name}: {_PLACE.sub('', error.msg, count=1)}"
        if self._is_taken_leniently(well_formed):
            message += "; a lenient reader takes it"
        return MalformedError(Violation(None, message, source=self.name), Location(self.name, error.lineno))

    def _is_taken_leniently(self, well_formed: int) -> bool:
        """Return whether a lenient reader comes further than the quads that a strict one took."""
        if self.lenient:
            return False
        try:
            for _ in islice(replace(self, lenient=True).quads(), well_formed + 1):
                pass
        except (MalformedError, SourceError):
            return False
        return True

    def has_shapes(self) -> bool:
        """Return whether it says what a shape is, as far as it can be parsed."""
        with self.opened() as stream:
            before = b""
            while piece := stream.read(_SCANNED_BYTES):
                if _SHACL.search(before + piece):
                    break
                before = piece[-40:]
            else:
                return False
        try:
            return any(map(_of_shape, self.quads()))
        except MalformedError:
            return False


def _of_shape(triple: Quad | Triple) -> bool:
    predicate = triple.predicate
    return (
        predicate in _TARGETS or predicate == SH.property or (predicate == RDF.type and triple.object in _SHAPE_CLASSES)
    )


def document(
    place: str, *, stdin: IO[bytes] | None = None, stdin_format: str = "ttl", lenient: bool = False
) -> Document:
    """Return the document at `place`; ``-`` is `stdin`, in the format of files whose names end in `stdin_format`.

    Raises InvalidInputError where the format cannot be told, and SourceError where that is since nothing is there.
    """
    if place == STDIN and stdin is not None:
        return Document("standard input", format_of("." + stdin_format.lower().lstrip(".")), stdin.read(), lenient)
    if Path(place).suffix.lower() not in FORMATS and not Path(place).exists():
        raise SourceError(f"{place}: there is no such file or folder")
    return Document(place, format_of(place), Path(place), lenient)


def format_of(name: str) -> RdfFormat:
    """Return the format that a file has by the end of its `name`. Raises InvalidInputError where that says nothing."""
    found = FORMATS.get(Path(name).suffix.lower() or name)
    if found is None:
        raise InvalidInputError(
            f"{name}: what format it has cannot be told; name it {', '.join(sorted(FORMATS))}, by its format"
        )
    return found


def expanded(places: Iterable[str], *, leave_out: Iterable[str] = ()) -> list[str]:
    """Return the files that `places` are or stand for: a folder for the RDF files below it, ``**/*.ttl`` for matches.

    What a folder or pattern finds is passed over where it is hidden or in `leave_out`. Raises InvalidInputError for a
    folder or a pattern that finds nothing.
    """
    found: dict[str, None] = {}
    left_out = {Path(name).resolve() for name in expanded(leave_out)} if leave_out else set()
    for place in places:
        path = Path(place)
        if path.is_dir():
            below = [each for each in sorted(path.rglob("*")) if each.suffix.lower() in IN_FOLDERS and each.is_file()]
            matches = [str(each) for each in below if not _hidden(each.relative_to(path))]
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


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


@dataclass(frozen=True, slots=True)
class ShapesGraph:
    """What documents say of shapes, by document."""

    said: Sequence[tuple[str, Sequence[Triple]]]

    @classmethod
    def read(cls, documents: Iterable[Document]) -> ShapesGraph:
        """Read the documents. Raises SourceError for one that cannot be read, or is not what its format asks for."""
        return cls([(each.name, [quad.triple for quad in each.well_formed()]) for each in documents])

    @property
    def imports(self) -> dict[str, str]:
        """The IRIs that ``owl:imports`` names, which nothing fetches, each with the document that does."""
        return {str(t.object): name for name, triples in self.said for t in triples if t.predicate == OWL.imports}

    def shapes(self) -> Shapes:
        """Return the shapes. Raises InvalidInputError, naming the file, where none is there or one is ill-formed."""
        if not any(_of_shape(triple) for _, said in self.said for triple in said):
            raise InvalidInputError(f"{self.names}: there is no shape in it: no sh:NodeShape, no sh:PropertyShape")
        try:
            return Shapes(triple for _, said in self.said for triple in said)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self._at_fault(str(error))}: {self._named(str(error))}") from error

    def _at_fault(self, message: str) -> str:
        """Return the name of the document that is ill-formed by itself, or of all where only together they are."""
        for name, said in self.said if len(self.said) > 1 else ():
            try:
                Shapes(said)
            except InvalidInputError as error:
                if str(error) == message:
                    return name
        return self.names

    def _named(self, message: str) -> str:
        """Return `message` with what tells people which node is meant, for one without a name."""
        label = _BLANK.search(message)
        said = [triple for _, triples in self.said for triple in triples]
        about = [] if label is None else [each for each in said if str(each.subject) == label[0]]
        if not about:
            return message
        paths = [
            curie(each.object.value)
            for each in about
            if isinstance(each.object, NamedNode) and each.predicate == SH.path
        ]
        owners = [each for each in said if each.object == about[0].subject]
        where = [f"of {curie(each.subject.value)}" for each in owners if isinstance(each.subject, NamedNode)]
        return message.replace(
            str(about[0].subject), " ".join(["without a name", *where, *(f"for {each}" for each in paths)])
        )

    @property
    def names(self) -> str:
        """The names of the documents, for messages."""
        return ", ".join(name for name, _ in self.said)

    @property
    def has_targets(self) -> bool:
        """Whether a shape is given what to look at."""
        return any(
            triple.predicate in _TARGETS or (triple.predicate == RDF.type and triple.object in _CLASSES)
            for _, said in self.said
            for triple in said
        )


def shapes_faults(path: Path) -> list[Violation]:
    """Return why a file of shapes cannot be used; nothing, if it can."""
    try:
        Shapes.load(path)
    except QuadciteError as error:
        return [Violation(None, str(error), source=str(path))]
    return []


def read(path: Path) -> tuple[list[Quad], Violation | None]:
    """Return the quads of a file, or what is wrong with its syntax and where."""
    try:
        return list(document(str(path)).quads()), None
    except MalformedError as error:
        return [], error.fault
