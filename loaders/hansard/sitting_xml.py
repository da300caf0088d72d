"""One file of official Hansard as a sitting, for every schema.

The format is recognized by content: XML of the schemas 2.0, 2.1 and 2.2 (version and namespaces may be missing), or
the SGML-like form of 1981 to 1997. XML that is damaged, but not truncated, is read by the lenient parser of the
latter (`sgml`), and the sitting lists the repairs. Nothing is fetched and no entity is expanded. A file that declares
entities is refused, as are HTML, other XML and a truncated file: half a day is not a record.
"""

from __future__ import annotations

import codecs
import datetime as calendar
import re
from collections.abc import Sequence
from html.entities import html5
from typing import BinaryIO, Final, NamedTuple

from lxml import etree
from lxml.etree import _Element

from kg.errors import SourceError
from loaders.hansard import sgml
from loaders.hansard.paragraphs import get_paragraphs, to_line
from loaders.hansard.sitting_model import Sitting
from loaders.hansard.transcript import Transcript
from loaders.readers.cells import quote

_ROOT: Final = re.compile(r"<([A-Za-z][\w.:-]*)")
_PROLOGUE: Final = re.compile(
    r"\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE(?:[^\[>]|\[.*?\]\s*(?=>))*>\s*)*", re.DOTALL | re.IGNORECASE
)
_DECLARED: Final = re.compile(r"<!ENTITY\s+(\S+)\s+(SDATA|CDATA)?([^>]*)", re.IGNORECASE)
_ENCODING: Final = re.compile(r"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
_DATES: Final = ("%Y-%m-%d", "%d/%m/%Y", "%d %B %Y", "%A, %d %B %Y")
_PROOF: Final = {"1": True, "yes": True, "0": False, "no": False}
_HEAD_BYTES: Final = 65536
"""The root element must begin within this number of bytes."""
_WRONG_BYTES: Final = ("ERR_INVALID_ENCODING", "ERR_INVALID_CHAR", "ERR_UNKNOWN_ENCODING", "ERR_UNSUPPORTED_ENCODING")
_LIMITS: Final = ("ERR_RESOURCE_LIMIT", "ERR_INTERNAL_ERROR", "ERR_NAME_TOO_LONG", "ERR_NO_MEMORY")


class _Prologue(NamedTuple):
    """The content before the root element."""

    root: str
    encoding: str | None


def parse_sitting(
    source: bytes | BinaryIO, name: str, *, chamber: str | None = None, date: calendar.date | None = None
) -> Sitting:
    """Parse one file of Hansard into a sitting.

    ``name`` is the file's, for messages; ``chamber`` and ``date`` are used where the file has none. Raises
    SourceError for a file that is not Hansard, is refused or truncated, or has no chamber or date.
    """
    data = source if isinstance(source, bytes) else source.read()
    prologue = _prologue(data, name)
    if prologue.root.isupper():
        text, warnings = _decoded(data, name, ("utf-8", "cp1252"))
        root, repairs = sgml.parse_tree(*_from_root(text, name))
        warnings += repairs
    else:
        root, warnings = _tree(data.lstrip() if data[:1].isspace() else data, name, prologue)
    fields = _header(root)
    recorded = fields.get("chamber") or chamber
    if not recorded:
        raise SourceError(f"{name}: missing chamber in the header. Give --chamber Senate or --chamber Representatives.")
    day = _day(fields.get("date"), date, name, warnings)
    openings = [text for opening in root.iter("business.start") for text in get_paragraphs(opening)]
    transcript = Transcript("senate" in recorded.casefold(), openings)
    transcript.read(root)
    if not transcript.speeches:
        warnings.append("the file contains no speeches")
    page = fields.get("page.no")
    return Sitting(
        recorded,
        day,
        fields.get("parliament.no"),
        fields.get("session.no"),
        fields.get("period.no"),
        page if page != "0" else None,
        _PROOF.get(fields.get("proof", "").casefold()),
        root.get("version"),
        transcript.debates,
        transcript.speeches,
        transcript.procedures,
        transcript.divisions,
        [*warnings, *transcript.warnings],
    )


def _prologue(data: bytes, name: str) -> _Prologue:
    """Check the beginning of a file. Raises SourceError unless it is Hansard that may be read."""
    if not data.strip():
        raise SourceError(f"{name}: the file is empty")
    head = data[:_HEAD_BYTES]
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode("utf-16" if wide else "utf-8-sig", "replace")
    refuse_entities(text, name)
    begin = _PROLOGUE.match(text)
    root = _ROOT.match(text, begin.end() if begin else 0)
    if re.match(r"\s*<!doctype\s+html|\s*<html", text, re.IGNORECASE) or (root and root[1].casefold() == "html"):
        raise SourceError(f"{name}: the file is HTML. Load the XML files of Hansard.")
    if root is None or root[1].casefold() != "hansard":
        found = f"its root is <{root[1]}>" if root else f"it begins with {text.strip()[:40]!r}"
        raise SourceError(f"{name}: not Hansard: {found}. Valid: XML or SGML with the root <hansard>.")
    encoding = _ENCODING.match(text.lstrip())
    return _Prologue(root[1], encoding[1] if encoding else "utf-16" if wide else None)


def refuse_entities(text: str, name: str) -> None:
    """Raise SourceError if the beginning of a file declares entities. ``name`` is the file's, for the message."""
    for declared in _DECLARED.finditer(text):
        if _is_character(declared):
            continue
        line = text.count("\n", 0, declared.start()) + 1
        raise SourceError(
            f"{name}, line {line}: the file declares entities. They are never expanded, so the file is refused."
        )


def _is_character(declared: re.Match[str]) -> bool:
    """Whether a declaration names a character in SGML's way; its content is not used."""
    return bool(declared[2]) and f"{declared[1]};" in html5 and "&" not in declared[3]


def _tree(data: bytes, name: str, prologue: _Prologue) -> tuple[_Element, list[str]]:
    """Parse XML. Return the tree and the repairs."""
    parser = build_parser()
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return _damaged(data, name, prologue, parser)
    if next(root.iter(etree.Entity), None) is not None:
        return _repaired(data, name, prologue)
    return _local(root), []


def build_parser(recover: bool = False) -> etree.XMLParser:
    """Build a parser that fetches nothing, expands nothing and keeps the library's limits."""
    return etree.XMLParser(
        recover=recover,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def _damaged(data: bytes, name: str, prologue: _Prologue, parser: etree.XMLParser) -> tuple[_Element, list[str]]:
    """Parse XML with minor errors."""
    errors = list(parser.error_log)
    first = errors[0]
    if first.type_name == "ERR_INVALID_CHAR":
        raise SourceError(f"{name}, line {first.line}: a character that XML forbids: {first.message.strip()}")
    if any(error.type_name in _WRONG_BYTES for error in errors):
        said = prologue.encoding or "utf-8, the default of XML"
        raise SourceError(f"{name}, line {first.line}: its bytes are not {said}: {first.message.strip()}")
    if any(error.type_name in _LIMITS for error in errors):
        raise SourceError(f"{name}, line {first.line}: beyond the limits of the parser: {first.message.strip()}")
    if all(error.domain_name == "NAMESPACE" for error in errors):
        root = etree.fromstring(data, build_parser(recover=True))
        return _local(root), [f"line {first.line}: {first.message.strip()}: read without namespaces"]
    return _repaired(data, name, prologue)


def _repaired(data: bytes, name: str, prologue: _Prologue) -> tuple[_Element, list[str]]:
    """Parse damaged XML with the lenient parser."""
    text, warnings = _decoded(data, name, (prologue.encoding or "utf-8",))
    root, repairs = sgml.parse_tree(*_from_root(text, name))
    return root, [*warnings, "not well-formed XML: parsed by the lenient parser", *repairs]


def _local(root: _Element) -> _Element:
    """Drop the namespaces of elements, which Hansard does not use."""
    if root.tag.startswith("{"):
        for element in root.iter("{*}*"):
            element.tag = etree.QName(element).localname
    return root


def _decoded(data: bytes, name: str, encodings: Sequence[str]) -> tuple[str, list[str]]:
    """Decode bytes by the first encoding that fits."""
    for encoding in encodings:
        try:
            text = data.decode("utf-8-sig" if encoding.casefold() in ("utf-8", "utf8") else encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        return text, [] if encoding == encodings[0] else [f"it is not {encodings[0]}: read as {encoding}"]
    raise SourceError(f"{name}: its bytes are not {' or '.join(encodings)}")


def _from_root(text: str, name: str) -> tuple[str, str, int]:
    """Return a text from its root element on, with the root's name and line."""
    begin = _PROLOGUE.match(text)
    position = begin.end() if begin else 0
    return text[position:], name, text.count("\n", 0, position) + 1


def _header(root: _Element) -> dict[str, str]:
    """Return the fields of the sitting from the header of the file."""
    header = root.find("session.header")
    return {} if header is None else {child.tag: text for child in header if (text := to_line(child))}


def _day(recorded: str | None, given: calendar.date | None, name: str, warnings: list[str]) -> calendar.date:
    """Return the day of the sitting: as recorded, otherwise as given."""
    for form in _DATES if recorded else ():
        try:
            return calendar.datetime.strptime(recorded or "", form).date()
        except ValueError:
            continue
    if given is None:
        missing = f"{quote(recorded)} in the header is not a date" if recorded else "missing date in the header"
        raise SourceError(f"{name}: {missing}. Give --date YYYY-MM-DD.")
    if recorded:
        warnings.append(f"{quote(recorded)} in the header is not a date: {given} is used")
    return given
