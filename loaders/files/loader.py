"""The ``files`` loader: Markdown, notebooks, text, HTML, PDF and Office files of folders, one record for each file."""

from __future__ import annotations

import hashlib
import json
import os
import re
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.languages import parse_language
from kg.text import HEADING_SEPARATOR, name_or_quote, quoted
from kg.vocabulary import DCTERMS, KG, SCHEMA, SOURCED, XSD, mint, mint_span, sha256
from loaders.file_formats import DOCUMENTS
from loaders.files.chunking import Chunk, split_file
from loaders.files.extraction.gazetteer import count_names
from loaders.files.near_duplicates import NearDuplicates, Original, Place, describe_text
from loaders.files.readers.html_page import read_html
from loaders.files.readers.markdown import read_markdown, read_notebook
from loaders.files.readers.office import read_docx, read_pptx, read_xlsx
from loaders.files.readers.plain_pages import read_pdf_file, read_text
from loaders.files.readers.rst import read_rst
from loaders.files.readers.text_model import FileText
from loaders.files.redaction import redact_file
from loaders.files.secrets import redact
from loaders.model import Notice, Origin, Property, Rejection, SourceDocument, TextUnit, Withdrawal
from loaders.readers.file_text import decode
from loaders.readers.locations import File, Unread, to_place

DOMAIN: Final = "files"
VERSION: Final = "6"
"""Version of the records that this package builds. A new version loads every record again."""

FORMATS: Final = tuple(DOCUMENTS)
GRAPHS: Final = f"{SOURCED}{DOMAIN}/"
"""Start of the graphs of files. The rest is that of the file's IRI."""

LONGEST: Final = 20_000_000
"""Maximum characters of the text of a file: about 10,000 pages."""

MOST_CELLS: Final = 500_000
"""Maximum number of ``|`` in Markdown. The parser takes up to 1 KB of memory for each."""

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_MOST_CONTROLS: Final = 0.01
"""Share of control characters, and of characters that cannot be decoded, from which a file is not text."""
_SAMPLE: Final = 100_000
_READERS: Final = {".pdf": read_pdf_file, ".docx": read_docx, ".pptx": read_pptx, ".xlsx": read_xlsx}
"""Readers of the formats that are not text."""
_OFFICE: Final = (".docx", ".pptx", ".xlsx")
_SIGNATURES: Final = (
    (b"%PDF-", "a PDF", (".pdf",)),
    (b"PK\x03\x04", "a zip archive, as Office files are", _OFFICE),
    (b"\xd0\xcf\x11\xe0", "a document of Office 97, or an encrypted one", _OFFICE),
    (b"\x89PNG", "an image", ()),
    (b"\xff\xd8\xff", "an image", ()),
    (b"GIF8", "an image", ()),
    (b"\x7fELF", "a program", ()),
    (b"\x1f\x8b", "compressed by gzip", ()),
    (b"SQLite format 3\0", "a database", ()),
)
"""How files of other kinds begin, with the endings that they may have."""

Item = SourceDocument | Rejection | Notice | Withdrawal
FindOriginal = Callable[[str, str, Place | None, str | None], Original | None]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Properties of a stored file in its provenance."""

    signature: str | None = None
    """Its description by `describe_text`."""
    names: str | None = None
    """The names that it shows and how often, as a JSON object (`count_names`)."""
    tags: tuple[str, ...] = ()
    """The tags that loads gave to it."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that a load left out as a near-duplicate of `original`, which the store has or the load read before."""

    path: str
    root: str
    original: str


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads files into a `collection`, by default one with the name of the folder of each, with more `tags`."""

    collection: str | None = None
    unredacted: Sequence[str] = ()
    """Names of the collections in which secrets are kept."""
    tags: Sequence[str] | None = None
    """None: each file keeps those that an earlier load gave to it."""
    stored: dict[str, StoredFile] = field(default_factory=dict)
    """The files in the store at the start of the load, by collection and path."""
    left_out: dict[str, LeftOut | None] = field(default_factory=dict)
    """The files that were read, by collection and path; None: it is no near-duplicate."""

    @classmethod
    def from_options(cls, options: Mapping[str, str], unredacted: Sequence[str] = ()) -> Reading:
        """Build a reading from loader options. Raises InvalidInputError for an invalid name of a collection."""
        name = options.get("collection")
        if name is not None and (not name.strip() or "/" in name):
            raise InvalidInputError(f"--collection {quoted(name)}: Invalid name. Give one without slashes.")
        given = options.get("tags")
        tags = None if given is None else [tag for each in given.split(",") if (tag := each.strip())]
        return cls(
            name.strip() if name is not None else None,
            unredacted,
            None if tags is None else tuple(dict.fromkeys(tags)),
        )

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield a record for each of `files`. A near-duplicate of an earlier or a stored one is a Withdrawal."""
        yield Notice(f"{len(files):,} files", expected_rows=len(files))
        duplicates = NearDuplicates()
        duplicates.set_stored(self.find_others(files))
        for file in files:
            try:
                item = self.read_record(file, duplicates.find)
            except (SourceError, RecordError) as error:
                yield build_rejection(file, error)
                continue
            yield item

    def find_others(self, files: Sequence[File]) -> dict[str, str]:
        """Find the signatures of the stored files that this load does not read, by collection and path.

        Those that are gone from the folders of `files` are left out.
        """
        keys = [(self.get_key(file), file) for file in files]
        folders = {key[0]: _get_root(file) for key, file in keys}
        read = {"/".join(key) for key, _ in keys}
        others = {}
        for name, stored in self.stored.items():
            collection, _, path = name.partition("/")
            is_gone = collection in folders and not os.path.lexists(folders[collection] / path)
            if stored.signature is not None and name not in read and not is_gone:
                others[name] = stored.signature
        return others

    def refuse(self, file: File | Unread) -> Unread | None:
        """Return why the path of a file must not be stored: it has a secret, which is replaced in the reason."""
        if self.get_key(file)[0] in self.unredacted:
            return None
        path = redact(to_place(file.path))
        if not path.kinds:
            return None
        reason = f"{path.text}: Its path has a secret ({', '.join(sorted(path.kinds))}). Rename the file or folder."
        return Unread(path.text, None, reason, file.path, path.text, _get_root(file))

    def get_key(self, file: File | Unread) -> tuple[str, ...]:
        """Get the collection of a file and the parts of its path in it."""
        root = _get_root(file)
        relative = PurePosixPath(file.path.relative_to(root).as_posix())
        return (self.collection or root.name or DOMAIN, *relative.parts)

    def read_record(self, file: File, find_original: FindOriginal, place: Place | None = None) -> Item:
        """Read the record of a file, or a Withdrawal if it is a near-duplicate of another at an earlier `place`.

        `find_original` is `NearDuplicates.find`. Raises SourceError or RecordError for a file that cannot be read.
        """
        key = self.get_key(file)
        name, full_name = "/".join(key[1:]), "/".join(key)
        stored = self.stored.get(full_name, StoredFile())
        data, modified = _read_bytes(file)
        found = read_file(data, file.path.suffix.lower(), name)
        keeps_secrets = key[0] in self.unredacted
        found, redacted = (found, Counter[str]()) if keeps_secrets else redact_file(found)
        described = describe_text(found.text)
        original = find_original(full_name, described, place, stored.signature)
        if original is not None:
            self.left_out[full_name] = LeftOut(str(file.path), str(_get_root(file)), original.name)
            return Withdrawal(name, key, describe_duplicate(original))
        self.left_out[full_name] = None
        names = count_names(found.text, found.blocks, found.title)
        facts = StoredFile(
            described,
            json.dumps(names, ensure_ascii=False, sort_keys=True) if names else None,
            stored.tags if self.tags is None else tuple(self.tags),
        )
        return build_record(key, found, file, modified, redacted, facts, keeps_secrets=keeps_secrets)


def _get_root(file: File | Unread) -> Path:
    return file.root or file.path.parent


def build_rejection(file: File, error: SourceError | RecordError) -> Rejection:
    """Build the rejection of a file that cannot be read."""
    name = file.path.relative_to(file.root or file.path.parent).as_posix()
    # A message may quote the file.
    return Rejection(name, redact(str(error)).text, (Origin(file.snapshot),))


def describe_duplicate(original: Original) -> str:
    """Describe why a near-duplicate is left out."""
    return f"It is a near-duplicate of {original.name} (similarity {original.similarity:.2f})."


def _read_bytes(file: File) -> tuple[bytes, int]:
    """Read a file and its time of modification in milliseconds.

    Raises SourceError if it cannot be read, or is not as it was when it was found.
    """
    try:
        with file.path.open("rb") as stream:
            data = stream.read()
            modified = os.fstat(stream.fileno()).st_mtime_ns // 1_000_000
    except OSError as error:
        raise SourceError(f"{file.path.name}: Cannot read the file ({error.strerror}).") from error
    if hashlib.sha256(data).hexdigest() != file.snapshot.sha256:
        raise SourceError(f"{file.path.name}: The file changed while it was loaded. Load it again.")
    return data, modified


def read_file(data: bytes, ending: str, name: str) -> FileText:
    """Read the text of a file by the ending of its name. `name` is that of the file in messages.

    Raises SourceError for a file that is empty, too long, or not of the format of its ending.
    """
    if not data.strip():
        raise SourceError(f"{name}: The file is empty.")
    for start, what, endings in _SIGNATURES:
        if data.startswith(start) and ending not in endings:
            raise SourceError(f"{name}: It is {what}, not a file of the format {ending}. Rename or convert it.")
    reader = _READERS.get(ending)
    found = reader(data, name) if reader is not None else _read_as_text(data, ending, name)
    if len(found.text) > LONGEST:
        raise SourceError(_describe_length(name, len(found.text)))
    if not found.text.strip():
        raise SourceError(f"{name}: The file has no text.")
    return found


def _read_as_text(data: bytes, ending: str, name: str) -> FileText:
    if len(data) > 4 * LONGEST:
        raise SourceError(_describe_length(name, len(data)))
    source, warnings = decode(data, name)
    if len(source) > LONGEST:
        raise SourceError(_describe_length(name, len(source)))
    sample = source[:_SAMPLE]
    if len(_CONTROLS.findall(sample)) > _MOST_CONTROLS * len(sample):
        raise SourceError(f"{name}: Not a text file: it has control characters.")
    if ending in (".md", ".markdown", ".mdx", ".ipynb") and (cells := source.count("|")) > MOST_CELLS:
        raise SourceError(f"{name}: Its tables have {cells:,} cells. At most {MOST_CELLS:,} are read. Split the file.")
    if ending in (".html", ".htm"):
        found = read_html(source, name)
    elif ending == ".txt":
        found = read_text(source)
    elif ending == ".rst":
        found = read_rst(source, name)
    elif ending == ".ipynb":
        found = read_notebook(source, name)
    else:
        found = read_markdown(source, name, jsx=ending == ".mdx")
    return FileText(
        found.text,
        found.blocks,
        found.title,
        found.language,
        found.tags,
        found.security,
        found.first_line,
        warnings=[*warnings, *found.warnings],
    )


def _describe_length(name: str, length: int) -> str:
    return f"{name}: It has {length:,} characters. At most {LONGEST:,} are read. Split the file."


def build_record(
    key: Sequence[str],
    found: FileText,
    file: File,
    modified: int,
    redacted: Mapping[str, int],
    facts: StoredFile,
    *,
    keeps_secrets: bool = False,
) -> SourceDocument:
    """Build the record of a file. `modified` is its time of modification in milliseconds since 1970.

    `redacted` counts the secrets that were replaced, by kind. `facts` are kept in its provenance.
    """
    iri = mint("file", *key)
    time = datetime.fromtimestamp(modified // 1_000, UTC).replace(tzinfo=None)
    stamp = f"{time.isoformat(timespec='seconds')}.{modified % 1_000:03}Z"
    properties: list[Property] = [
        (KG.collection, Literal(key[0])),
        (KG.path, Literal("/".join(key[1:]))),
        (KG.mtime, Literal(stamp, datatype=XSD.dateTime)),
        (SCHEMA.encodingFormat, Literal(DOCUMENTS[file.path.suffix.lower()])),
        (KG.length, Literal(len(found.text))),
        (KG.textSha256, Literal(sha256(found.text))),
        *((DCTERMS.subject, Literal(tag)) for tag in dict.fromkeys((*found.tags, *facts.tags))),
    ]
    warnings = list(found.warnings)
    if found.security:
        properties.append((KG.securityLabel, Literal(found.security)))
    if found.pages:
        properties.append((SCHEMA.numberOfPages, Literal(len(found.pages))))
    if found.language:
        if (tag := parse_language(found.language)) is not None:
            properties.append((SCHEMA.inLanguage, Literal(tag)))
        else:
            warnings.append(
                f"{name_or_quote(key[-1])}: Invalid language {quoted(found.language)}. It is derived from the text."
            )
    if redacted:
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(redacted.items()))
        warnings.append(f"{name_or_quote(key[-1])}: Secrets were replaced ({kinds}).")
    chunks = split_file(found)
    lines = _LineCounter(found)
    options = [*(["secrets kept"] if keeps_secrets else []), *(f"tag {tag}" for tag in facts.tags)]
    return SourceDocument(
        DOMAIN,
        tuple(key),
        iri,
        found.title,
        [KG.File],
        properties,
        [_build_unit(iri, number, chunk, found, lines) for number, chunk in enumerate(chunks)],
        [Origin(file.snapshot)],
        sha256("\n".join((file.snapshot.sha256, stamp, *key, *options))),
        warnings=warnings,
        redacted=redacted,
        keeps_secrets=keeps_secrets,
        said=[
            *([(KG.minHash, Literal(facts.signature))] if facts.signature is not None else []),
            *([(KG.nameCounts, Literal(facts.names))] if facts.names is not None else []),
            *((KG.givenTag, Literal(tag)) for tag in facts.tags),
        ],
    )


def _build_unit(iri: NamedNode, number: int, chunk: Chunk, found: FileText, lines: _LineCounter) -> TextUnit:
    properties: list[Property] = [(KG.start, Literal(chunk.start)), (KG.end, Literal(chunk.end))]
    if chunk.headings:
        properties.append((KG.breadcrumb, Literal(HEADING_SEPARATOR.join(chunk.headings))))
    if found.pages:
        first = bisect(found.pages, chunk.start)
        properties.append((KG.pageNumber, Literal(first)))
        if (last := bisect_left(found.pages, chunk.end)) > first:
            properties.append((SCHEMA.pagination, Literal(f"{first}-{last}")))
    if any(block.disputed and block.start < chunk.end and chunk.start < block.end for block in found.blocks):
        properties.append((KG.disputedOrder, Literal(True)))
    if (span := lines.find(chunk)) is not None:
        properties.append((KG.sourceLines, Literal(span)))
    text = found.text[chunk.start : chunk.end]
    return TextUnit(mint_span(iri, chunk.start, chunk.end), KG.Chunk, number, text, iri, properties=properties)


class _LineCounter:
    """Finds the lines of a file that chunks are in, where the lines of the text are those of the file."""

    def __init__(self, found: FileText) -> None:
        self.text: Final = found.text
        self.line: Final = found.first_line
        self.starts: Final = [match.end() for match in re.finditer("\n", found.text)] if found.first_line else []

    def find(self, chunk: Chunk) -> str | None:
        """Return the first and the last line of a chunk, without blank lines at its edges: ``12-40``."""
        if self.line is None:
            return None
        text = self.text[chunk.start : chunk.end]
        start = chunk.start + len(text) - len(text.lstrip())
        end = chunk.end - (len(text) - len(text.rstrip()))
        first, last = (self.line + bisect(self.starts, place) for place in (start, max(start, end - 1)))
        return f"{first}-{last}" if last > first else str(first)


def cut_file(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Raise SourceError: a file is one record, which is loaded again from its folder."""
    raise SourceError(f"{path}: Records of files are not kept separately. Load the folder again.")
