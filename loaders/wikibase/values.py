"""A snak as a term, with a value node for dates, quantities and places, as Wikibase publishes them.

The hash of a value node is the one that Wikibase itself assigns: the MD5 of its PHP serialization, which JSON does
not contain. Value nodes from JSON and from RDF are therefore the same nodes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, Final
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode

from kg.calendar_dates import DAY, MONTH, YEAR, count_days, from_day_number, to_day_number
from kg.errors import RecordError
from kg.text import quoted
from kg.vocabulary import GEO, RDF, WIKIBASE, XSD
from kg.wikidata_properties import DATATYPES
from loaders.wikibase.instances import Instance
from loaders.wikibase.languages import to_literal

Said = Sequence[tuple[NamedNode, NamedNode | Literal]]

JULIAN: Final = "http://www.wikidata.org/entity/Q1985786"
EARTH: Final = "http://www.wikidata.org/entity/Q2"
UNITLESS: Final = "http://www.wikidata.org/entity/Q199"
"""The item "1", which means no unit in every Wikibase."""

_MEDIA: Final = "http://commons.wikimedia.org/wiki/Special:FilePath/"
_COMMONS_DATA: Final = "http://commons.wikimedia.org/data/main/"
_TIME: Final = re.compile(
    r"([+-])([0-9]{1,16})-(0[0-9]|1[0-2])-([0-2][0-9]|3[01])(T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)"
)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_NOT_IN_IRI: Final = re.compile(r"[\x00-\x20<>\"{}|\\^`]")
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ENTITY: Final = re.compile(r"[A-Z][1-9][0-9]*(-[A-Z][1-9][0-9]*)?")
_LETTERS: Final = {"item": "Q", "property": "P", "lexeme": "L", "mediainfo": "M", "entity-schema": "E"}


@dataclass(frozen=True, slots=True)
class Value:
    """A simple value, with its value node if it has one."""

    term: NamedNode | Literal
    digest: str | None = None
    node: Said = ()
    warning: str | None = None


def parse_value(instance: Instance, datatype: str | None, datavalue: Mapping[str, Any]) -> Value:
    """Return the value of a snak. An unknown `datatype` is read by the type of the value, with a warning.

    Raises RecordError for a value that does not have its type.
    """
    kind, value = datavalue["type"], datavalue["value"]
    if kind == "wikibase-entityid":
        return _entity(instance, datatype, value)
    if kind == "string":
        return _string(datatype, value)
    if kind == "time":
        return _time(
            value["time"], value["timezone"], value["before"], value["after"], value["precision"],
            value["calendarmodel"],
        )  # fmt: skip
    if kind == "quantity":
        return _quantity(value["amount"], value["unit"], value.get("upperBound"), value.get("lowerBound"))
    if kind == "globecoordinate":
        return _globe(value["latitude"], value["longitude"], value.get("precision"), value["globe"])
    if kind == "monolingualtext":
        literal, warning = to_literal(value["text"], value["language"])
        return Value(literal, warning=warning)
    raise RecordError(
        f"unknown value type {quoted(kind)} of the datatype {quoted(datatype)}. Available: string, "
        f"wikibase-entityid, time, "
        "quantity, globecoordinate, monolingualtext."
    )


def _entity(instance: Instance, datatype: str | None, value: Mapping[str, Any]) -> Value:
    named = value.get("id")
    if named is None:
        named = f"{_LETTERS[value['entity-type']]}{value['numeric-id']}"
    if not isinstance(named, str) or not _ENTITY.fullmatch(named):
        raise RecordError(f"{quoted(named)} is not the id of an entity, such as Q42, P31, L7, L7-F1 or L7-S1")
    warning = None
    if datatype == "wikibase-item" and named[0] == "P":
        warning = f"the property {named} in place of an item"
    elif datatype == "wikibase-property" and named[0] == "Q":
        warning = f"the item {named} in place of a property"
    elif datatype is not None and datatype not in DATATYPES:
        warning = f"the datatype {quoted(datatype)} is not known; its value is stored as an entity"
    return Value(instance.entity(named), warning=warning)


def _string(datatype: str | None, value: Any) -> Value:
    if not isinstance(value, str):
        raise RecordError(f"{quoted(value)} is not a string")
    if datatype == "url":
        return Value(NamedNode(to_iri(value)))
    if datatype == "commonsMedia":
        return Value(NamedNode(_MEDIA + quote(value, safe="~")))
    if datatype in ("geo-shape", "tabular-data"):
        return Value(NamedNode(_COMMONS_DATA + page_name(value)))
    known = datatype is None or datatype in DATATYPES
    return Value(
        Literal(value),
        warning=None if known else f"the datatype {quoted(datatype)} is not known; its value is taken as text",
    )


def to_iri(text: str) -> str:
    """Return `text` as an IRI, with forbidden characters percent-encoded. Raises RecordError if it has no scheme."""
    found = _NOT_IN_IRI.sub(lambda match: quote(match[0], safe=""), text.strip())
    try:
        if _ABSOLUTE.match(found) and NamedNode(found):
            return found
    except ValueError:
        pass
    raise RecordError(f"{quoted(text)} is not an absolute address such as https://example.org/")


def page_name(title: str) -> str:
    """Return the title of a page as in a web address of MediaWiki."""
    return quote(title.replace(" ", "_"), safe="~;@$!*(),/:")


@lru_cache(8192, typed=True)
def _time(time: str, timezone: int, before: int, after: int, precision: int, model: str) -> Value:
    for number in (timezone, before, after, precision):
        if type(number) is not int:
            raise RecordError(
                f"{quoted(number)} is not an integer. Valid for timezone, before, after and precision: integers"
            )
    calendar_model = to_iri(model)
    known, warning = precision, None
    if (match := _TIME.fullmatch(time)) is not None:
        known = min(precision, YEAR if match[3] == "00" else MONTH if match[4] == "00" else precision)
    if known != precision:
        warning = f"the time {time} is less exact than its precision, {precision}; its precision is taken as {known}"
    elif match is not None and not _has_day(match, known, model):
        known = min(known, MONTH)
        warning = f"the month of the time {time} has no such day; its precision is taken as {known}"
    elif before or after:
        warning = f"the time {time} is uncertain ({before} before, {after} after), which RDF does not state"
    iso = to_iso_time(time, known, model)
    term = Literal(time) if iso is None else Literal(iso, datatype=XSD.dateTime)
    # PHP writes / with a backslash.
    held = json.dumps([time, timezone, before, after, precision, model], separators=(",", ":")).replace("/", "\\/")
    return Value(
        term,
        _digest(_php_object("DataValues\\TimeValue", held)),
        (
            (RDF.type, WIKIBASE.TimeValue),
            (WIKIBASE.timeValue, term),
            (WIKIBASE.timePrecision, Literal(known)),
            (WIKIBASE.timeTimezone, Literal(timezone)),
            (WIKIBASE.timeCalendarModel, NamedNode(calendar_model)),
        ),
        warning,
    )


def to_iso_time(time: str, precision: int, model: str) -> str | None:
    """Return a Wikibase time as the lexical form of an xsd:dateTime in the Gregorian calendar.

    None for what Wikibase does not convert: the year 0, and Julian days before 4713 BCE. An unknown month or day, or
    one finer than `precision`, becomes the first. A year before Christ is counted as in XSD 1.1, where 1 BCE is 0000.
    `kg.calendar_dates.read_time` reads the date back as it was written. Raises RecordError for an invalid time.
    """
    match = _TIME.fullmatch(time)
    if match is None:
        raise RecordError(f"{quoted(time)} is not a time such as +2030-01-31T00:00:00Z")
    sign, digits, clock = match[1], match[2].lstrip("0"), match[5]
    if not digits:
        return None
    year, month, day = int(digits), max(int(match[3]), 1), max(int(match[4]), 1)
    if sign == "-":
        # A year of lower precision is a round number, which is not shifted.
        year = 1 - year if precision >= YEAR else -year
    if model == JULIAN and precision >= DAY:
        if not -4712 <= year <= 1_465_072:
            return None
        year, month, day = from_day_number(to_day_number(year, month, day, "julian"), "gregorian")
    else:
        if precision <= YEAR:
            month = day = 1
        elif precision == MONTH:
            day = 1
        day = min(day, count_days(year, month, "gregorian"))
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}{clock}"


def _has_day(match: re.Match[str], precision: int, model: str) -> bool:
    """Whether the month of a time that is exact to a day has that day in its calendar."""
    if precision < DAY or not (number := int(match[2])):
        return True
    year = number if match[1] == "+" else 1 - number
    return int(match[4]) <= count_days(year, int(match[3]), "julian" if model == JULIAN else "gregorian")


def _quantity(amount: str, unit: str, upper: str | None, lower: str | None) -> Value:
    term = _decimal(amount)
    bounded = upper is not None and lower is not None
    parts = [_php_decimal(amount), _php_text(unit)]
    node: list[tuple[NamedNode, NamedNode | Literal]] = [
        (RDF.type, WIKIBASE.QuantityValue),
        (WIKIBASE.quantityAmount, term),
        (WIKIBASE.quantityUnit, NamedNode(UNITLESS if unit == "1" else to_iri(unit))),
    ]
    if upper is not None and lower is not None:
        parts += [_php_decimal(upper), _php_decimal(lower)]
        node += [(WIKIBASE.quantityUpperBound, _decimal(upper)), (WIKIBASE.quantityLowerBound, _decimal(lower))]
    held = f"a:{len(parts)}:{{{''.join(f'i:{number};{part}' for number, part in enumerate(parts))}}}"
    name = "DataValues\\QuantityValue" if bounded else "DataValues\\UnboundedQuantityValue"
    return Value(term, _digest(_php_object(name, held)), node)


def _decimal(text: str) -> Literal:
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise RecordError(f"the amount {quoted(text)} is not a decimal number such as +1.5")
    return Literal(text, datatype=XSD.decimal)


def _globe(latitude: float, longitude: float, precision: float | None, globe: str) -> Value:
    numbers = (latitude, longitude, 0 if precision is None else precision)
    if any(type(number) not in (int, float) or not isfinite(number) for number in numbers):
        raise RecordError("latitude, longitude and precision must be finite numbers")
    if not -360 <= latitude <= 360 or not -360 <= longitude <= 360:
        raise RecordError(f"latitude {latitude} or longitude {longitude} is outside of -360 to 360")
    north, east = php_float(latitude), php_float(longitude)
    point = f"Point({east} {north})"
    if globe != EARTH:
        point = f"<{to_iri(globe)}> {point}"
    exact = 1 / 3600 if precision is None else precision
    node: list[tuple[NamedNode, NamedNode | Literal]] = [
        (RDF.type, WIKIBASE.GlobecoordinateValue),
        (WIKIBASE.geoLatitude, Literal(north, datatype=XSD.double)),
        (WIKIBASE.geoLongitude, Literal(east, datatype=XSD.double)),
        (WIKIBASE.geoPrecision, Literal(php_float(exact), datatype=XSD.double)),
        (WIKIBASE.geoGlobe, NamedNode(to_iri(globe))),
    ]
    if precision is None:
        node.append((RDF.type, WIKIBASE.GeoAutoPrecision))
    held = "|".join([north, east, "" if precision is None else php_float(precision), globe])
    return Value(Literal(point, datatype=GEO.wktLiteral), _digest(held), node)


def php_float(number: float) -> str:
    """Format a number as PHP does: 14 significant digits, ``2.7777777777778E-5``."""
    text = f"{number:.14G}"
    mantissa, _, exponent = text.partition("E")
    if not exponent:
        return text
    sign = "-" if exponent[0] == "-" else "+"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{sign}{int(exponent[1:])}"


def _php_object(name: str, held: str) -> str:
    return f'C:{len(name)}:"{name}":{len(held.encode())}:{{{held}}}'


def _php_text(text: str) -> str:
    return f's:{len(text.encode())}:"{text}";'


def _php_decimal(text: str) -> str:
    return _php_object("DataValues\\DecimalValue", _php_text(text))


def _digest(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
