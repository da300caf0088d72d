"""TEI files: safe parsing, identifiers, languages and words of elements.

The parser is that of the official files of Hansard: nothing is fetched, no entity is expanded, depth and size are
limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, cast

from lxml import etree
from lxml.etree import _Element

from kg.errors import SourceError
from loaders.hansard.paragraphs import squeeze
from loaders.hansard.sitting_xml import build_parser, refuse_entities

TEI: Final = "http://www.tei-c.org/ns/1.0"
XML: Final = "http://www.w3.org/XML/1998/namespace"
ROOTS: Final = frozenset(("teiCorpus", "TEI", "listPerson", "listOrg", "taxonomy"))

_HEAD_BYTES: Final = 65_536
_ROOT: Final = re.compile(r"<(?:[A-Za-z][\w.-]*:)?([A-Za-z][\w.-]*)")
_BEFORE_ROOT: Final = re.compile(
    r"\ufeff?\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>\s*)*", re.DOTALL
)
_CODE: Final = re.compile(r"ParlaMint-([A-Z]{2}(?:-[A-Z0-9]{1,3})?)(?=[_.\-]|$)")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_COMMENT: Final = re.compile(r"<!--(?:[^<-]|<(?!!--)|-(?!->))*+-->")


class Damage(NamedTuple):
    """An entry of a list that cannot be read."""

    line: int
    reason: str


def find_root_name(data: bytes) -> str | None:
    """Return the local name of the root element of a file of TEI; None for any other file."""
    text = _decode_head(data)
    begin = _BEFORE_ROOT.match(text)
    root = _ROOT.match(text, begin.end() if begin else 0)
    return root[1] if root is not None and root[1] in ROOTS else None


def _decode_head(data: bytes) -> str:
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data[:_HEAD_BYTES].decode("utf-16" if wide else "utf-8-sig", "replace")


def read_head(path: Path) -> bytes:
    """Read the beginning of a file. Raises SourceError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error


def parse_tree(data: bytes, name: str) -> _Element:
    """Parse a file. Raises SourceError with the line for a file that is damaged, refused or beyond the limits."""
    refuse_entities(_decode_head(data), name)
    try:
        root = _parse(data)
    except etree.XMLSyntaxError as error:
        raise SourceError(f"{name}, line {error.lineno}: not well-formed XML: {_describe(error)}") from error
    if next(root.iter(etree.Entity), None) is not None:
        raise SourceError(f"{name}: the file declares entities. They are never expanded, so the file is refused.")
    return root


def parse_entries(data: bytes, name: str, tag: str) -> tuple[list[_Element], list[Damage]]:
    """Parse the entries ``<tag>`` of a list that is not well-formed, each for itself.

    Returns the entries that are whole, and the others with line and reason. Raises SourceError if none is whole.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{name}: its bytes are not utf-8 (byte {error.start})") from error
    refuse_entities(text, name)
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    language = re.search(r"""<list(?:Org|Person)\b[^<>]*?xml:lang=["']([A-Za-z-]+)["']""", text)
    said = f' xml:lang="{language[1]}"' if language else ""
    found: list[_Element] = []
    damaged: list[Damage] = []
    line, at = 1, 0
    for match in re.finditer(rf"<{tag}\b(?:[^<>/]*+(?:/(?!>)[^<>/]*+)*+/>|.*?(?:</{tag}\s*+>|\Z))", text, re.DOTALL):
        line, at = line + text.count("\n", at, match.start()), match.start()
        try:
            whole = _parse(f'<list xmlns="{TEI}"{said}>{match[0]}</list>'.encode())
            found.append(whole[0])
        except etree.XMLSyntaxError as error:
            damaged.append(Damage(line + (error.lineno or 1) - 1, _describe(error)))
    if not found:
        raise SourceError(f"{name}: not well-formed XML, and it contains no whole <{tag}>")
    return found, damaged


def _parse(data: bytes) -> _Element:
    """Parse XML. Identifiers that are no names of XML, such as ``party.M+J``, are accepted."""
    parser = build_parser()
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        if {error.type_name for error in parser.error_log} != {"DTD_XMLID_VALUE"}:
            raise
        return etree.fromstring(data, build_parser(recover=True))


def _describe(error: etree.XMLSyntaxError) -> str:
    """Return the message of the parser without the place, which it repeats."""
    return re.sub(r",? line \d+, column \d+$", "", str(error.msg))


def find_code(*texts: str | None) -> str | None:
    """Find the code of a corpus (AT, ES-GA) in the first of some identifiers or file names that has one."""
    return next((match[1] for text in texts if text and (match := _CODE.search(text))), None)


def tag_of(element: _Element) -> str:
    """Return the local name of an element."""
    return etree.QName(element).localname


def children(element: _Element, *tags: str) -> Iterator[_Element]:
    """Yield the children with these local names."""
    return element.iterchildren(*(f"{{{TEI}}}{tag}" for tag in tags))


def descendants(element: _Element, *tags: str) -> Iterator[_Element]:
    """Yield the element and those within it that have these local names."""
    return element.iter(*(f"{{{TEI}}}{tag}" for tag in tags))


def find_first(element: _Element, path: str) -> _Element | None:
    """Find the first element at a path of local names."""
    return element.find("/".join(f"{{{TEI}}}{step}" for step in path.split("/")))


def id_of(element: _Element) -> str | None:
    """Return the identifier of an element."""
    return element.get(f"{{{XML}}}id") or None


def get_refs(element: _Element, attribute: str) -> list[str]:
    """Return the identifiers that an attribute refers to, such as NR for ``#NR``."""
    return [each.lstrip("#") for each in (element.get(attribute) or "").split() if each.strip("#")]


def language_of(element: _Element) -> str | None:
    """Return the language of the words in an element: its own, else that of the elements around it."""
    step: _Element | None = element
    while step is not None:
        if (stated := own_language(step)) is not None:
            return stated
        step = step.getparent()
    return None


def own_language(element: _Element) -> str | None:
    """Return the language that an element states."""
    stated = element.get(f"{{{XML}}}lang")
    return stated if stated and stated not in ("mul", "und") and _LANGUAGE.fullmatch(stated) else None


def get_words(element: _Element) -> str:
    """Return the words in an element, without the indentation of the markup."""
    return squeeze("".join(element.itertext()))  # type: ignore[arg-type]


def get_description(element: _Element, language: str | None) -> str:
    """Return the description of an event: its words in `language`, else the first; its own words without one.

    An event without words is described in square brackets, and so is a gap, whose words are those of the corpus.
    """
    texts = [(language_of(each), get_words(each)) for each in children(element, "desc")]
    said = next((text for stated, text in texts if text and stated == language), None)
    words = said or next((text for _, text in texts if text), "") or get_words(element)
    if words and tag_of(element) != "gap":
        return words
    kind = element.get("type") or element.get("reason")
    return f"[{words or tag_of(element) + (f': {kind}' if kind else '')}]"


def line_of(element: _Element) -> int:
    """Return the line of an element in its file."""
    return cast("int | None", element.sourceline) or 0


def last_line(element: _Element) -> int:
    """Return the last line of an element whose end is on the line of its last words or child."""
    line = line_of(element) + (element.text or "").count("\n")
    for child in element:
        line = last_line(child) + (child.tail or "").count("\n")
    return line
