"""Encoding of literals whose lexical form or datatype Oxigraph would not preserve.

Oxigraph stores numbers, booleans and times by value: ``"01"`` and ``"1"`` become one literal, an ``xsd:byte`` becomes
an ``xsd:integer``. SHACL compares terms, so a candidate's literal that would be altered is stored under a datatype of
our own, made from the name of its datatype. Queries that compare values decode it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store

from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.vocabulary import BASE, RDF, XSD

ENCODED_PREFIX: Final = BASE + "lexical?"
"""Prefix of the datatype of an encoded literal; the original datatype follows."""

_RANGES: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
"""The integer types of XML Schema (https://www.w3.org/TR/xmlschema11-2/#built-in-derived), with minimum and maximum."""

_DOUBLE: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_FORMS: Final = {
    "boolean": re.compile("true|false|0|1"),
    "decimal": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"),
    "double": _DOUBLE,
    "float": _DOUBLE,
}
_WHOLE: Final = re.compile("[+-]?[0-9]+")
_TIMES: Final = frozenset(
    {
        "date", "dateTime", "time", "duration", "yearMonthDuration", "dayTimeDuration",
        "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay",
    }
)  # fmt: skip
_KEPT_BY_VALUE: Final = frozenset(XSD.iri + name for name in (*_RANGES, *_FORMS, *_TIMES))
_STRING: Final = XSD.string

CAST: Final = "SELECT ($datatype($form) AS ?value) WHERE {}"


def is_kept_by_value(datatype: NamedNode) -> bool:
    """Return whether Oxigraph stores literals of `datatype` by value."""
    return datatype.value in _KEPT_BY_VALUE


def is_numeric(datatype: NamedNode) -> bool:
    """Return whether the values of `datatype` are numbers."""
    name = datatype.value.removeprefix(XSD.iri)
    return name in _RANGES or name in ("decimal", "double", "float")


def is_well_formed(literal: Literal) -> bool:
    """Return whether the lexical form of `literal` is valid for its datatype. Unknown datatypes are not checked."""
    datatype = literal.datatype.value
    name = datatype.removeprefix(XSD.iri)
    if datatype not in _KEPT_BY_VALUE:
        return True
    if name in _RANGES:
        least, most = _RANGES[name]
        if not _WHOLE.fullmatch(literal.value):
            return False
        number = int(literal.value)
        return (least is None or least <= number) and (most is None or number <= most)
    if name in _FORMS:
        return _FORMS[name].fullmatch(literal.value) is not None
    found = Store().query(bind(CAST, datatype=literal.datatype, form=Literal(literal.value)))
    assert isinstance(found, QuerySolutions)  # noqa: S101 -- a SELECT
    return next(found)["value"] is not None


def has_datatype(term: Term, datatype: NamedNode, *, as_written: bool) -> bool:
    """Return whether `term` is a well-formed literal of `datatype`.

    `as_written`: its original datatype is known. If not, an ``xsd:integer`` may have been of any integer type that
    includes its value.
    """
    if not isinstance(term, Literal):
        return False
    if term.datatype != datatype and not as_written and term.datatype == XSD.integer:
        name = datatype.value.removeprefix(XSD.iri)
        return name in _RANGES and is_well_formed(Literal(term.value, datatype=datatype))
    return term.datatype == datatype and is_well_formed(term)


_TRIED_TOGETHER: Final = 1_000
"""Literals that are tried in one scratch store."""
_SURELY_KEPT: Final = 18
"""Digits of integers that are within 64 bits."""


class Lexicon:
    """The literals of a data graph that Oxigraph would alter, and their encoded forms."""

    def __init__(self) -> None:
        self._kept: dict[Literal, Literal] = {}
        self.altered: dict[Term, Term | None] = {}
        """The original literal by the form that Oxigraph stores; None if several literals have this form."""
        self._scratch = Store()

    def encode(self, literal: Literal) -> Literal:
        """Encode `literal`, unless Oxigraph preserves it."""
        datatype = literal.datatype
        if datatype == _STRING or datatype.value not in _KEPT_BY_VALUE:
            return literal
        known = self._kept.get(literal)
        if known is None:
            known = self._kept[literal] = self._encoded(literal)
        return literal if known == literal else known

    def _encoded(self, literal: Literal) -> Literal:
        stored = literal if _is_plain_integer(literal) else self._store(literal)
        if stored == literal:
            if stored in self.altered:
                self.altered[stored] = None
            return literal
        self.altered[stored] = literal if stored not in self.altered and stored not in self._kept else None
        return Literal(literal.value, datatype=NamedNode(ENCODED_PREFIX + literal.datatype.value))

    def _store(self, literal: Literal) -> Term:
        """Return `literal` as Oxigraph stores it."""
        # Removed quads slow a store in memory down, so each literal gets a subject of its own instead.
        if len(self._kept) % _TRIED_TOGETHER == 0:
            self._scratch = Store()
        subject = NamedNode(f"{BASE}{len(self._kept)}")
        self._scratch.add(Quad(subject, RDF.value, literal))
        [quad] = self._scratch.quads_for_pattern(subject, None, None)
        return quad.object

    def __bool__(self) -> bool:
        return bool(self.altered)


def _is_plain_integer(literal: Literal) -> bool:
    """Whether a literal is an integer that Oxigraph preserves, as positions and offsets are, judged by its text."""
    text = literal.value
    return (
        text.isascii()
        and text.isdecimal()
        and text[0] != "0"
        and len(text) <= _SURELY_KEPT
        and literal.datatype == XSD.integer
    )


def decode(term: Term) -> Term:
    """Decode an encoded literal; return another term unchanged."""
    if isinstance(term, Literal) and term.datatype.value.startswith(ENCODED_PREFIX):
        return Literal(term.value, datatype=NamedNode(term.datatype.value.removeprefix(ENCODED_PREFIX)))
    return term
