"""Entities that have a form: laws, standards, versions, names in code, and the types that words show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kg.words import to_word_set
from loaders.citations.laws import Context, find_laws
from loaders.files.extraction.entity_model import EntityType
from loaders.mentions.tokens import DisjointSpans

VERSION: Final = re.compile(
    r"(?<![\w./-])(?:v\d+(?:\.\d+){0,3}|\d+\.\d+\.\d+(?:\.\d+)?)(?:-[a-z][a-z0-9]*(?:\.\d+)?)?(?![\w]|\.\d)",
    re.IGNORECASE,
)
_AFTER_VERSION: Final = re.compile(
    r"\b(?:version|release|rev(?:ision)?\.?)\s+(?P<number>\d+(?:\.\d+){0,3}(?:-[a-z][a-z0-9]*)?)(?![\w]|\.\d)",
    re.IGNORECASE,
)
_STANDARD: Final = re.compile(
    r"(?<![\w-])(?:"
    r"(?:(?:ISO|IEC|IEEE|ITU-T|ETSI|ANSI|NIST|ECMA|BS|DIN|EN|CEN|OGC)(?:[/ ](?:ISO|IEC|IEEE|EN|SP|TS|TR|FIPS|IS)){0,6})"
    r"[ -]?(?:SP[ -])?[A-Z]?\.?\d[\d.]*(?:-\d+)*(?::\d{4})?"
    r"|RFC[ -]?\d{3,5}|FIPS[ -]\d{2,3}(?:-\d)?|PCI[ -]DSS|SOC[ -][123]|GDPR|HIPAA|WCAG(?: \d\.\d)?"
    r")(?![\w-]|\.\d)"
)
_TOKEN: Final = re.compile(
    r"(?<![\w./\\-])(?:"
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\(\)"  # call()
    r"|[a-z]+(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"  # snake_case, SNAKE_CASE
    r"|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+"  # CamelCase, camelCase
    r"|--[a-z][a-z-]+"
    r"|/(?:api|v\d+|[a-z][\w-]*)(?:/[\w{}.-]+)+"
    r"|(?:GET|POST|PUT|DELETE|PATCH) /[\w{}/.-]+"
    r")(?![\w])"
)
_MONTH: Final = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_DATE: Final = re.compile(
    rf"(?<![\w-])(?:(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?{_MONTH}(?:\s+\d{{1,2}}(?:st|nd|rd|th)?,)?\s+(?:19|20)\d\d"
    r"|(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?![\w-])"
)
_NAMES: Final = re.compile(r"Mc[A-Z]|Mac[A-Z]|De[A-Z]|La[A-Z]|Le[A-Z]|i[A-Z]|e[A-Z]|Di[A-Z]|Van[A-Z]")
_YEAR: Final = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_CODE_WORDS: Final = re.compile(r"[A-Za-z_/.$@-][\w./:{}()<>\[\]$@*=+-]*(?:\s[\w./:{}()<>\[\]$@*=+-]+){0,3}")
_VALUES: Final = to_word_set("true false null none nil yes no on off ok 0 1 todo")
_EXTENSION: Final = re.compile(r"^[\w-]+\.(?:md|txt|html?|pdf|docx|pptx|xlsx|png|jpg|svg)$", re.IGNORECASE)

_PRODUCTS: Final = to_word_set(
    """
    agent api app application appliance bus cli client cloud collector connector console controller daemon dashboard
    database desk desktop driver editor engine exporter firmware framework gateway gauge hub importer kit ledger library
    manager monitor module os planner platform plugin portal probe proxy queue reader recorder register registry router
    runtime scanner scheduler sdk server service sensor simulator software store studio suite toolkit tracker viewer
    warehouse
    """
)
_ORGANIZATIONS: Final = to_word_set(
    """
    academy agency alliance association authority bank board bureau centre center college commission committee company
    consortium consulting cooperative corp corporation council department directorate engineering federation firm
    foundation fund gmbh group guild hosting industries instruments inc institute institution laboratories laboratory
    labs llc ltd ministry museum office parliament
    partnership plc press railway school society solutions squad systems team technologies theatre trust trustees union
    university utilities works
    """
)
_REGULATIONS: Final = to_word_set("act bylaw bylaws code directive ordinance regulation regulations statute")
_PLACES: Final = to_word_set(
    """
    avenue basin bay beach bridge building canal channel coast county creek dam district estate estuary harbor harbour
    hill island islands isle lagoon lake lane marina marsh mountain park peninsula pier point port promontory quay reef
    region reservoir river road square station street terrace tower town valley village wharf yard
    """
)


class Pattern(NamedTuple):
    """The characters `start` to `end` have the form of an entity of this type."""

    start: int
    end: int
    type: EntityType


def find_patterns(text: str) -> list[Pattern]:
    """Find laws, standards, versions and names in code. Where two overlap, the one that is named first counts."""
    taken = DisjointSpans()
    return sorted(pattern for pattern in _find_all(text) if taken.add(pattern.start, pattern.end))


def _find_all(text: str) -> Iterator[Pattern]:
    for law in find_laws(text, Context()):
        if law.method != "defined name":
            yield Pattern(law.start, law.end, "regulation")
    for match in _STANDARD.finditer(text):
        end = match.end() - (match[0].endswith("."))
        yield Pattern(match.start(), end, "regulation")
    for match in _AFTER_VERSION.finditer(text):
        yield Pattern(*match.span("number"), "version")
    for match in VERSION.finditer(text):
        yield Pattern(*match.span(), "version")
    for match in _DATE.finditer(text):
        yield Pattern(*match.span(), "date")
    for match in _TOKEN.finditer(text):
        if not _NAMES.match(match[0]):
            yield Pattern(match.start(), match.start() + len(match[0].rstrip(".-")), "api")


def classify_code(words: str) -> EntityType | None:
    """Return the type of the words of a code span; None if they are a value or a text."""
    words = words.strip()
    if VERSION.fullmatch(words):
        return "version"
    if len(words) < 2 or len(words) > 60 or words.casefold() in _VALUES or _EXTENSION.match(words):
        return None
    return "api" if _CODE_WORDS.fullmatch(words) and re.search("[A-Za-z]{2}", words) else None


def is_plain(code: str) -> bool:
    """Whether code is words that may be a name outside of code too: ``crate scan``."""
    return code.replace(" ", "").isalpha() and (code.islower() or code.isupper())


def find_type(name: str) -> EntityType | None:
    """Find the type of a name by its last word: ``Harbour Authority`` is an organization."""
    words = name.casefold().rstrip(".").split()
    if not words or len(words) < 2:
        return None
    last = words[-1]
    for type_, nouns in _NOUNS:
        if last in nouns:
            return type_
    return None


_NOUNS: Final[tuple[tuple[EntityType, frozenset[str]], ...]] = (
    ("product", _PRODUCTS),
    ("organization", _ORGANIZATIONS),
    ("regulation", _REGULATIONS),
    ("place", _PLACES),
)


def has_year(words: str) -> bool:
    """Whether the words of a date have a year, without which they mean another day each year."""
    return _YEAR.search(words) is not None
