"""The RDF document in a request's body as triples: parsed within limits, and what the parser could choke on apart.

Turtle and N-Triples are read here: their parser uses neither recursion nor entities, and what they come to is counted
while it grows. RDF/XML (entities), JSON-LD (recursion) and nested triple terms are read in a process of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from typing import Final

from pyoxigraph import DefaultGraph, RdfFormat, Triple, parse

from kg.errors import InvalidInputError
from kg.server.negotiation import media_type_of
from kg.server.problems import HttpError
from kg.store.confinement import Limits, SyntaxFaultError, TooLargeError, confined

FORMATS: Final = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/x-turtle": RdfFormat.TURTLE,
    "text/plain": RdfFormat.N_TRIPLES,
    "application/xml": RdfFormat.RDF_XML,
    "text/xml": RdfFormat.RDF_XML,
    "application/json": RdfFormat.JSON_LD,
}
"""What is taken, the registered types first, then what clients send for them."""

TAKEN: Final = (*list(FORMATS)[:4], "multipart/form-data")
_DATASETS: Final = frozenset({"application/n-quads", "application/trig", "text/x-nquads", "application/x-trig"})
_IN_PLACE: Final = frozenset({RdfFormat.TURTLE, RdfFormat.N_TRIPLES})
_EXPANSION: Final = 16
"""How many times as long as the document its triples may be, written in full."""
_LEAST_CHARACTERS: Final = 4 << 20
_POSITION: Final = re.compile(r"Parser error at line \d+ (?:between columns \d+ and \d+|column \d+): |\s*\(line \d+\)$")


@dataclass(frozen=True, slots=True)
class Payload:
    """A body and its type."""

    data: bytes
    content_type: str

    def triples(self, base_iri: str, limits: Limits) -> list[Triple]:
        """Return the triples, relative IRIs taken from `base_iri`; of several parts each has blank nodes of its own.

        Raises HttpError (415) for another type, (413) for what comes to more than the limits allow, InvalidInputError
        with line and column for what is not well formed, and QueryTimeoutError or QueryMemoryError.
        """
        media_type, parameters = media_type_of(self.content_type)
        if media_type == "multipart/form-data":
            return [triple for part in self._parts() for triple in part.triples(base_iri, limits)]
        format_ = FORMATS.get(media_type)
        if format_ is None:
            raise unsupported(media_type)
        if (charset := parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
            raise HttpError(415, "unsupported_media_type", f"the charset is UTF-8, not {charset}")
        most = max(_EXPANSION * len(self.data), _LEAST_CHARACTERS)
        limits = Limits(limits.timeout_s, limits.memory_bytes, min(limits.max_bytes, most))
        try:
            if format_ in _IN_PLACE and b"<<" not in self.data:
                return _parsed(self.data, format_, base_iri, limits.max_bytes)
            return _confined(self.data, format_, base_iri, limits)
        except SyntaxFaultError as error:
            raise InvalidInputError(f"not {format_.name}: {_POSITION.sub('', str(error))}") from error
        except TooLargeError as error:
            raise HttpError(413, "body_too_large", str(error)) from error

    def _parts(self) -> Iterator[Payload]:
        """Yield the parts of a form (RFC 7578)."""
        head = f"Content-Type: {self.content_type}\r\n\r\n".encode("latin-1", "replace")
        message = BytesParser().parsebytes(head + self.data)
        parts: str | Sequence[Message] = message.get_payload()  # type: ignore[assignment]
        if isinstance(parts, str) or not parts:
            raise InvalidInputError("the form has no parts: its boundary does not occur in the body")
        for part in parts:
            if part.is_multipart():
                raise InvalidInputError("a part of the form is a form itself")
            content = part.get_payload(decode=True)
            yield Payload(content if isinstance(content, bytes) else b"", part.get("Content-Type", ""))


def unsupported(media_type: str) -> HttpError:
    """Return the error for a type that is not taken."""
    taken = ", ".join(TAKEN)
    message = (
        f"{media_type} names graphs, and a request here is about one graph: send {taken}"
        if media_type in _DATASETS
        else f"a graph is sent as {taken}, not as {media_type or 'a body without a type'}"
    )
    return HttpError(415, "unsupported_media_type", message, {"Accept-Post": taken, "Accept-Put": taken})


def _parsed(data: bytes, format_: RdfFormat, base_iri: str, max_characters: int) -> list[Triple]:
    found = []
    try:
        for quad in parse(data, format=format_, base_iri=base_iri, rename_blank_nodes=True):
            max_characters -= len(str(quad))
            if max_characters < 0:
                raise TooLargeError("the document comes to more than is taken, written in full; split it")
            if quad.graph_name != DefaultGraph():
                raise InvalidInputError(f"the document names the graph {quad.graph_name}")
            found.append(quad.triple)
    except SyntaxError as error:
        raise SyntaxFaultError(error.msg, error.lineno, error.offset) from error
    except ValueError as error:
        raise InvalidInputError(f"the document cannot be used: {error}") from error
    return found


def _confined(data: bytes, format_: RdfFormat, base_iri: str, limits: Limits) -> list[Triple]:
    settings = {"media_type": format_.media_type, "base_iri": base_iri}
    with confined("document", data, settings, limits, what="the document") as results:
        path = results / "triples"
        return (
            [quad.triple for quad in parse(path=path, format=RdfFormat.N_TRIPLES, rename_blank_nodes=True)]
            if path.exists()
            else []
        )
