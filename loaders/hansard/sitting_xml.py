"""One file of official Hansard as a sitting, for every schema.

The format is recognized by content: XML of the schemas 2.0, 2.1 and 2.2 (version and namespaces may be missing), or
the SGML-like form of 1981 to 1997. XML that is damaged, but not truncated, is read by the lenient parser of the
latter (`sgml`), and the sitting lists the repairs. Characters before the root element are dropped, and a root tag that
was cut is supplied, if the rest is whole. Nothing is fetched and no entity is expanded. A file that declares entities
is refused, except for names of pictures (``NDATA``), which no parser can expand. Also refused are HTML, other XML and
a truncated file: half a day is not a record.
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
from kg.text import quoted
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
_LITERAL: Final = """(?:"[^"]*"|'[^']*')"""
_PICTURE: Final = re.compile(rf"(?:SYSTEM|PUBLIC\s+{_LITERAL})\s+{_LITERAL}\s+NDATA\s+[\w.:-]+\s*", re.IGNORECASE)
"""The rest of a declaration that names a file which is not XML, such as a picture."""
_START: Final = re.compile(r"<(?:\?xml|!DOCTYPE|!--|hansard\b)", re.IGNORECASE)
_WHOLE_ROOT: Final = re.compile(r"""<hansard\b(?:[^<>"']|"[^"<]*"|'[^'<]*')*>""", re.IGNORECASE)
_FIRST_CHILD: Final = re.compile(r"<(session\.header|chamber\.xscript)\b", re.IGNORECASE)
_WHOLE_END: Final = re.compile(rb"</hansard\s*>\s*\Z", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(rf"(?<![\w:.-])[\w:.-]++\s*+=\s*+{_LITERAL}")
_MOST_STRAY: Final = 100
_MOST_CUT: Final = 1_000
"""Maximum characters before the root, and of a root tag that was cut."""
_ENCODING: Final = re.compile(r"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
_DATES: Final = ("%Y-%m-%d", "%d/%m/%Y", "%d %B %Y", "%A, %d %B %Y")
_SHORT_DATES: Final = (
    re.compile(
        r"(?:([A-Za-z]+),?\s+)?(\d{1,2})(?:st|nd|rd|th)?[\s./-]+(\d{1,2}|[A-Za-z]{3,9})[\s.,/-]+['\u2019]?(\d{2})"
    ),
    re.compile(r"()(?P<year>[4-9]\d|3[2-9])-(?P<month>\d{2})-(?P<day>\d{2})"),
)
"""Days whose year has two digits; one of 32 to 99 may be in front."""
_FIRST_SITTING: Final = calendar.date(1901, 5, 9)
_YEARS_OF_PARLIAMENT: Final = 2.65
"""Mean length of a parliament: the 47th began in 2022."""
_CENTURY_MARGIN: Final = 20
"""Years by which that estimate may be wrong: it separates centuries."""
_PROOF: Final = {"1": True, "yes": True, "0": False, "no": False}
_SHOWN: Final = 5
_HEAD_BYTES: Final = 65536
"""The root element must begin within this number of bytes."""
_WRONG_BYTES: Final = ("ERR_INVALID_ENCODING", "ERR_INVALID_CHAR", "ERR_UNKNOWN_ENCODING", "ERR_UNSUPPORTED_ENCODING")
_LIMITS: Final = ("ERR_RESOURCE_LIMIT", "ERR_INTERNAL_ERROR", "ERR_NAME_TOO_LONG", "ERR_NO_MEMORY")


class _Prologue(NamedTuple):
    """The content before the root element."""

    root: str
    encoding: str | None
    notes: Sequence[str] = ()


def parse_sitting(
    source: bytes | BinaryIO, name: str, *, chamber: str | None = None, date: calendar.date | None = None
) -> Sitting:
    """Parse one file of Hansard into a sitting.

    ``name`` is the file's, for messages; ``chamber`` and ``date`` are used where the file has none. Raises
    SourceError for a file that is not Australia's Hansard, is refused or truncated, or has no chamber or date.
    """
    data, mended = _mend_head(source if isinstance(source, bytes) else source.read())
    prologue = _prologue(data, name)
    if prologue.root.isupper():
        text, warnings = _decoded(data, name, ("utf-8", "cp1252"))
        root, repairs = sgml.parse_tree(*_from_root(text, name))
        warnings += repairs
    else:
        root, warnings = _tree(data, name, prologue)
    warnings = [*mended, *prologue.notes, *warnings]
    parts = [each.tag for each in root.iterchildren("*")]
    if "session.header" not in parts and not any(part.endswith(".xscript") for part in parts):
        inner = ", ".join(f"<{part}>" for part in parts[:_SHOWN]) or "nothing"
        raise SourceError(
            f"{name}: not the Hansard of Australia's parliament: <hansard> has {inner}, and neither <session.header> "
            "nor <chamber.xscript>. Load the speeches of another parliament as a table."
        )
    fields = _header(root)
    recorded = fields.get("chamber") or chamber
    if not recorded:
        raise SourceError(f"{name}: missing chamber in the header. Give --chamber Senate or --chamber Representatives.")
    day = _day(fields.get("date"), date, name, warnings, fields.get("parliament.no"))
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


def _mend_head(data: bytes) -> tuple[bytes, list[str]]:
    """Drop stray characters before the root element and supply a root tag that was cut; list the repairs.

    A root tag is supplied only where the rest is whole: the header follows, and the end of the root is there. Lines
    keep their numbers. Files in UTF-16 are left as they are.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data, []
    data = data.removeprefix(codecs.BOM_UTF8)
    head = data[:_HEAD_BYTES].decode("latin-1")  # offsets in it are those of bytes
    mended: list[str] = []
    start = _START.search(head)
    lines = 0
    if start is not None and start.start() > 0 and "<" not in (stray := head[: start.start()]):
        if stray.strip():
            if len(stray) > _MOST_STRAY:
                return data, []
            mended.append(f"line 1: {quote(_show(stray))} before the root element: dropped")
        lines = stray.count("\n")
        data, head = data[start.start() :], head[start.start() :]
    begin = match.end() if (match := _PROLOGUE.match(head)) is not None else 0
    child = _FIRST_CHILD.search(head, begin)
    if child is not None and _WHOLE_ROOT.match(head, begin) is None and _WHOLE_END.search(data[-_MOST_STRAY:]):
        cut = head[begin : child.start()]
        if len(cut) <= _MOST_CUT and _is_cut_root(cut):
            root = "HANSARD" if child[1].isupper() else "hansard"
            # Those that are whole: in SGML they are the header.
            kept = "".join(f" {each}" for each in _ATTRIBUTE.findall(cut) if ":" not in each.partition("=")[0])
            number = lines + head.count("\n", 0, begin) + 1
            mended.append(f"line {number}: the root tag is cut ({quote(_show(cut))}): read as <{root}>")
            supplied = f"<{root}{kept}>" + "\n" * (cut.count("\n") - kept.count("\n"))
            data = data[:begin] + supplied.encode("latin-1") + data[child.start() :]
    # A declaration of XML must come first, so the lines before it follow it.
    end = data.find(b"?>") + 2 if data.startswith(b"<?xml") else 0
    return data[:end] + b"\n" * lines + data[end:], mended


def _is_cut_root(cut: str) -> bool:
    """Whether a text is part of the start tag of the root, with nothing else in it, such as ``sard version="2.1">``."""
    if "<" in cut.lstrip()[1:]:
        return False
    is_begun = cut.lstrip().casefold().startswith("<h")
    left = _ATTRIBUTE.sub(" ", cut).replace(">", " ").split()
    if is_begun and len(left) > 1:  # the name of an attribute may be cut too
        left = left[:-1] if re.fullmatch(r"[\w:.-]+", left[-1]) else left
    return all(each.casefold() in "<hansard" or not set("\"'=").isdisjoint(each) for each in left)


def _show(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace").strip()[:_MOST_STRAY]


def _prologue(data: bytes, name: str) -> _Prologue:
    """Check the beginning of a file. Raises SourceError unless it is Hansard that may be read."""
    if not data.strip():
        raise SourceError(f"{name}: the file is empty")
    head = data[:_HEAD_BYTES]
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode("utf-16" if wide else "utf-8-sig", "replace")
    pictures = refuse_entities(text, name)
    begin = _PROLOGUE.match(text)
    root = _ROOT.match(text, begin.end() if begin else 0)
    if re.match(r"\s*<!doctype\s+html|\s*<html", text, re.IGNORECASE) or (root and root[1].casefold() == "html"):
        raise SourceError(f"{name}: the file is HTML. Load the XML files of Hansard.")
    if root is None or root[1].casefold() != "hansard":
        found = f"its root is <{root[1]}>" if root else f"it begins with {quoted(text.strip())}"
        raise SourceError(f"{name}: not Hansard: {found}. Valid: XML or SGML with the root <hansard>, or ParlaMint.")
    encoding = _ENCODING.match(text.lstrip())
    notes = [f"{pictures} declared picture{'s' * (pictures > 1)} (NDATA): not read"] if pictures else []
    return _Prologue(root[1], encoding[1] if encoding else "utf-16" if wide else None, notes)


def refuse_entities(text: str, name: str) -> int:
    """Return the number of pictures that the beginning of a file declares.

    Raises SourceError if it declares other entities. ``name`` is the file's, for the message.
    """
    pictures = 0
    for declared in _DECLARED.finditer(text):
        if _is_character(declared):
            continue
        if declared[2] is None and declared[1] != "%" and _PICTURE.fullmatch(declared[3]):
            pictures += 1
            continue
        line = text.count("\n", 0, declared.start()) + 1
        raise SourceError(
            f"{name}, line {line}: the file declares entities. They are never expanded, so the file is refused."
        )
    return pictures


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


def _day(
    recorded: str | None, given: calendar.date | None, name: str, warnings: list[str], parliament: str | None
) -> calendar.date:
    """Return the day of the sitting: as recorded, otherwise as given."""
    for form in _DATES if recorded else ():
        try:
            return calendar.datetime.strptime(recorded or "", form).date()
        except ValueError:
            continue
    days = _find_days(recorded or "", parliament) if recorded else None
    found = None
    if days is not None:
        found = days[0] if len(days) == 1 else given if given in days else None
    if found is not None:
        warnings.append(f"{quote(recorded or '')} in the header has a year of two digits: read as {found}")
        return found
    if given is None:
        missing = f"{quote(recorded)} in the header is not a date" if recorded else "missing date in the header"
        if days:
            missing = f"{quote(recorded or '')} in the header may be {' or '.join(map(str, days))}"
        elif days is not None:
            missing = (
                f"{quote(recorded or '')} in the header has a year of two digits that agrees in no century with the "
                "day of the week and the number of the parliament"
            )
        raise SourceError(f"{name}: {missing}. Give --date YYYY-MM-DD.")
    if recorded:
        warnings.append(f"{quote(recorded)} in the header is not a date: {given} is used")
    return given


def _find_days(text: str, parliament: str | None) -> list[calendar.date] | None:
    """Find the days that a date with a year of two digits may mean; None for another form.

    They are not before the first sitting nor in the future, have the day of the week that the date names, and are near
    the years of the `parliament` of that number, if it is known.
    """
    known = False
    for pattern in _SHORT_DATES:
        if (match := pattern.fullmatch(text.strip())) is None:
            continue
        weekday, day, month, year = match[1], match[2], match[3], match[4]
        if "year" in pattern.groupindex:
            year, day = day, year
        found = []
        for century in ("19", "20"):
            for form in ("%d %m %Y", "%d %B %Y", "%d %b %Y"):
                try:
                    one = calendar.datetime.strptime(f"{day} {month} {century}{year}", form).date()
                except ValueError:
                    continue
                known = True
                if _is_possible(one, weekday, parliament):
                    found.append(one)
                break
        if found:
            return found
    return [] if known else None


def _is_possible(day: calendar.date, weekday: str | None, parliament: str | None) -> bool:
    if not _FIRST_SITTING <= day <= calendar.datetime.now(calendar.UTC).date() + calendar.timedelta(days=1):
        return False
    if weekday and not f"{day:%A}".casefold().startswith(weekday.casefold()[:3]):
        return False
    if parliament is None or not parliament.isdecimal():
        return True
    begun = _FIRST_SITTING.year + (int(parliament) - 1) * _YEARS_OF_PARLIAMENT
    return abs(day.year - begun) <= _CENTURY_MARGIN
