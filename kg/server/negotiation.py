"""Content negotiation by Accept, Accept-Encoding and ``format=`` (RFC 9110, section 12). Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

RESULTS_JSON: Final = "application/sparql-results+json"
RESULTS_XML: Final = "application/sparql-results+xml"
RESULT_TYPES: Final = (RESULTS_JSON, RESULTS_XML, "text/csv", "text/tab-separated-values")
"""For SELECT and ASK (SPARQL Protocol, section 2.1.6). CSV and TSV define SELECT only; there an ASK is one word."""
GRAPH_TYPES: Final = (
    "text/turtle",
    "application/n-triples",
    "application/rdf+xml",
    "application/ld+json",
    "application/trig",
    "application/n-quads",
)

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    RESULTS_JSON: ("application/json",),
    RESULTS_XML: ("application/xml", "text/xml"),
    "text/tab-separated-values": ("text/tsv",),
    "text/turtle": ("application/turtle", "application/x-turtle", "text/n3", "text/rdf+n3", "application/n3"),
    "application/n-triples": ("text/plain", "text/ntriples", "application/ntriples"),
    "application/rdf+xml": ("application/xml", "text/xml", "text/rdf"),
    "application/ld+json": ("application/json",),
    "application/trig": ("application/x-trig", "text/trig"),
    "application/n-quads": ("text/x-nquads", "text/nquads", "application/nquads"),
    "application/problem+json": ("application/json",),
}
"""Other names of a type. N3 means Turtle, which is a subset of it; text/plain was the first type of N-Triples."""

_SHORTHANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "json": (RESULTS_JSON, "application/ld+json"),
    "xml": (RESULTS_XML, "application/rdf+xml"),
    "csv": ("text/csv",),
    "tsv": ("text/tab-separated-values",),
    "ttl": ("text/turtle",),
    "nt": ("application/n-triples",),
    "rdf": ("application/rdf+xml",),
    "jsonld": ("application/ld+json",),
    "trig": ("application/trig",),
    "nq": ("application/n-quads",),
    "md": ("text/markdown",),
}
_LONGHANDS: Final = {
    "turtle": "ttl",
    "n3": "ttl",
    "ntriples": "nt",
    "n-triples": "nt",
    "rdfxml": "rdf",
    "rdf+xml": "rdf",
    "rdf/xml": "rdf",
    "json-ld": "jsonld",
    "nquads": "nq",
    "n-quads": "nq",
}
SHORTHANDS: Final = tuple(_SHORTHANDS)
"""The short values of a ``format=`` parameter. Media types and some longer names are valid too."""

_ITEM: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_PART: Final = re.compile(r'(?:[^;"]|"(?:[^"\\]|\\.)*"?)+')
_WEIGHT: Final = re.compile(r"(?:0(?:\.\d*)?|1(?:\.0*)?|\.\d+)\Z")
_CODING: Final = "gzip"


@dataclass(frozen=True, slots=True)
class _Range:
    name: str
    parameters: frozenset[tuple[str, str]]
    weight: float


def negotiate(accept: str | Iterable[str], offered: Sequence[str]) -> str | None:
    """Choose the media type of `offered` that the Accept header (or headers) prefers; None if it accepts none.

    The most specific range that matches a type determines its weight: the type itself, an alias, ``type/*``, ``*/*``.
    Of equal weights the most specific match wins, then the first of `offered`. A range with parameters that contradict
    the response (a charset other than UTF-8, CSV without a header) matches nothing. Items with an invalid weight are
    ignored.
    """
    header = accept if isinstance(accept, str) else ",".join(accept)
    if not header.strip():
        return offered[0]
    ranges = list(_ranges(header))
    ranked = []
    for index, media_type in enumerate(offered):
        matches = [(precision, found.weight) for found in ranges if (precision := _precision(found, media_type))]
        if not matches:
            continue
        precision = max(precision for precision, _ in matches)
        weight = max(weight for found, weight in matches if found == precision)
        if weight > 0:
            ranked.append((-weight, [-part for part in precision], index, media_type))
    return min(ranked)[-1] if ranked else None


def shorthand(name: str, offered: Sequence[str]) -> str | None:
    """Find the media type of `offered` that a ``format=`` parameter names; None if it is not offered.

    Raises KeyError for an unknown name.
    """
    name = name.strip().lower()
    if "/" in name and name not in _LONGHANDS:
        name = name.replace(" ", "+")  # a plus that was not percent-encoded
        known = {name} | {media_type for media_type, aliases in _ALIASES.items() if name in aliases}
        if not known & {*RESULT_TYPES, *GRAPH_TYPES}:
            raise KeyError(name)
    else:
        known = set(_SHORTHANDS[_LONGHANDS.get(name.replace(" ", "+"), name)])
    return next((media_type for media_type in offered if media_type in known), None)


def accepts_gzip(accept_encoding: Iterable[str]) -> bool:
    """Whether Accept-Encoding accepts gzip (section 12.5.3)."""
    weights = {found.name: found.weight for found in _ranges(",".join(accept_encoding))}
    return weights.get(_CODING, weights.get("x-gzip", weights.get("*", 0.0))) > 0


def media_type_of(content_type: str) -> tuple[str, dict[str, str]]:
    """Parse a Content-Type header into the type, in lower case, and its parameters."""
    name, *parameters = _PART.findall(content_type) or [""]
    return name.strip().lower(), dict(map(_parameter, parameters))


def _ranges(header: str) -> Iterator[_Range]:
    for item in _ITEM.findall(header):
        name, *rest = _PART.findall(item) or [""]
        parameters, weight = set(), "1"
        for parameter, value in map(_parameter, rest):
            if parameter == "q":
                weight = value
            elif parameter:
                parameters.add((parameter, value))
        if _WEIGHT.match(weight):
            yield _Range(name.strip().lower(), frozenset(parameters), float(weight))


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    value = value.strip()
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    return name.strip().lower(), value


def _precision(found: _Range, media_type: str) -> tuple[int, int] | None:
    """Compute how specifically `found` matches `media_type`; None if it does not match."""
    for name, value in found.parameters:
        if (name == "charset" and value.lower() not in ("utf-8", "utf8")) or (name, value) == ("header", "absent"):
            return None
    if found.name == media_type:
        return 4, len(found.parameters)
    if found.name in _ALIASES.get(media_type, ()):
        return 3, len(found.parameters)
    if found.name == media_type.partition("/")[0] + "/*":
        return 2, len(found.parameters)
    return (1, len(found.parameters)) if found.name in ("*/*", "*") else None
