"""Parsing of the RDF document in a request's body, within limits of time, memory and size.

Turtle and N-Triples are parsed in this process: their parser uses no recursion and no entities, and the size of the
triples is limited while they are parsed. RDF/XML (entities), JSON-LD (recursion) and nested triple terms are parsed in
a confined process.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Final

from pyoxigraph import DefaultGraph, RdfFormat, Triple, parse

from kg.errors import InvalidInputError, QueryTimeoutError
from kg.processes.child import Limits, SyntaxFaultError, TooLargeError, run_task
from kg.server.negotiation import media_type_of
from kg.server.problem_details import HttpError

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
"""Accepted media types: the registered ones first, then other names that clients send for them."""

TAKEN: Final = (*list(FORMATS)[:4], "multipart/form-data")
_DATASETS: Final = frozenset({"application/n-quads", "application/trig", "text/x-nquads", "application/x-trig"})
_IN_PLACE: Final = frozenset({RdfFormat.TURTLE, RdfFormat.N_TRIPLES})
_EXPANSION: Final = 16
"""Maximum size of the triples, written in full, relative to the document."""
_LEAST_CHARACTERS: Final = 4 << 20
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_MOST_HEAD_BYTES: Final = 16 << 10
"""The parser of headers needs seconds for a few megabytes."""


@dataclass(slots=True)
class _Budget:
    """The limits of all documents of one request together."""

    deadline: float
    """On the monotonic clock."""
    characters: int
    """Size of the triples, written in full."""
    memory_bytes: int
    folder: Path | None
    """The folder for results of processes. They are deleted with the process, but not after a crash."""

    def spend(self, characters: int) -> None:
        self.characters -= characters
        if self.characters < 0:
            raise TooLargeError("The triples of the document exceed the size limit. Split the document.")

    def limits(self) -> Limits:
        """Compute the remaining limits for another process."""
        if (left_s := self.deadline - time.monotonic()) <= 0:
            raise QueryTimeoutError("Parsing the documents exceeded the time limit of a request. Nothing has changed.")
        return Limits(left_s, self.memory_bytes, self.characters)


@dataclass(frozen=True, slots=True)
class Payload:
    """A body and its Content-Type."""

    data: bytes
    content_type: str

    def triples(self, base_iri: str, limits: Limits, folder: Path | None = None) -> list[Triple]:
        """Parse the triples, resolving relative IRIs against `base_iri`. Parts do not share blank nodes.

        `limits` apply to all parts together; `folder` is for temporary files. Raises HttpError (415) for an unsupported
        type and (413) for a document over the limits, InvalidInputError with line and column for malformed RDF, and
        QueryTimeoutError or QueryMemoryError.
        """
        most = min(limits.max_bytes, max(_EXPANSION * len(self.data), _LEAST_CHARACTERS))
        budget = _Budget(time.monotonic() + limits.timeout_s, most, limits.memory_bytes, folder)
        media_type, parameters = media_type_of(self.content_type)
        boundary = parameters.get("boundary", "")
        parts = [part for _, part in self.parts(boundary)] if media_type == "multipart/form-data" else [self]
        return [triple for part in parts for triple in part._triples(base_iri, budget)]

    def _triples(self, base_iri: str, budget: _Budget) -> list[Triple]:
        media_type, parameters = media_type_of(self.content_type)
        format_ = FORMATS.get(media_type)
        if format_ is None:
            raise unsupported_type(media_type)
        if (charset := parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
            raise HttpError(415, "unsupported_media_type", f"Unsupported charset {charset}. Send UTF-8.")
        try:
            if format_ in _IN_PLACE and b"<<" not in self.data:
                return _parse_here(self.data, format_, base_iri, budget)
            return _parse_confined(self.data, format_, base_iri, budget)
        except SyntaxFaultError as error:
            raise InvalidInputError(f"Invalid {format_.name}: {error}.") from error
        except TooLargeError as error:
            raise HttpError(413, "body_too_large", str(error)) from error

    def parts(self, boundary: str) -> Iterator[tuple[Message, Payload]]:
        """Split a form (RFC 7578) into its parts with their headers. Nested forms are not split.

        Raises InvalidInputError for a malformed form.
        """
        delimiter = rb"(?:\A|\r?\n)--" + re.escape(boundary.encode()) + rb"(--)?[ \t]*(?=\r?\n|\Z)"
        marks = re.finditer(delimiter, self.data) if boundary else iter(())
        mark = next(marks, None)
        if mark is None:
            raise InvalidInputError("The form has no parts: its boundary does not occur in the body.")
        while not mark[1]:
            following = next(marks, None)
            if following is None:
                break
            head, content = _split_part(self.data, mark.end(), following.start())
            headers = BytesParser().parsebytes(head, headersonly=True)
            coding = str(headers.get("Content-Transfer-Encoding", "binary")).strip().lower()
            if coding not in ("binary", "8bit", "7bit"):
                raise InvalidInputError(
                    f"Unsupported Content-Transfer-Encoding {coding[:40]} in a part of the form. Use binary."
                )
            yield headers, Payload(content, str(headers.get("Content-Type", "")))
            mark = following
        else:
            return
        raise InvalidInputError("The form is truncated: no boundary ends its last part.")


def _split_part(body: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """Split the part of a form between `start` and `end` into its headers and content."""
    head_end = _HEAD_END.search(body, start, min(end, start + _MOST_HEAD_BYTES))
    if head_end is None and end - start > _MOST_HEAD_BYTES:
        raise InvalidInputError(f"The headers of a part of the form exceed {_MOST_HEAD_BYTES} bytes.")
    if head_end is None:
        return body[start:end].lstrip(), b""
    return body[start : head_end.start()].lstrip(), body[head_end.end() : end]


def unsupported_type(media_type: str) -> HttpError:
    """Build the error for an unsupported media type."""
    taken = ", ".join(TAKEN)
    message = (
        f"{media_type} can contain several graphs, and the request is about one. Send {taken}."
        if media_type in _DATASETS
        else f"Unsupported Content-Type {media_type or '(none)'}. Send {taken}."
    )
    return HttpError(415, "unsupported_media_type", message, {"Accept-Post": taken, "Accept-Put": taken})


def _parse_here(data: bytes, format_: RdfFormat, base_iri: str, budget: _Budget) -> list[Triple]:
    found = []
    try:
        for quad in parse(data, format=format_, base_iri=base_iri, rename_blank_nodes=True):
            budget.spend(len(str(quad)))
            if quad.graph_name != DefaultGraph():
                raise InvalidInputError(f"The document names the graph {quad.graph_name}. Send triples of one graph.")
            found.append(quad.triple)
    except SyntaxError as error:
        raise SyntaxFaultError(error.msg, error.lineno, error.offset) from error
    except ValueError as error:
        raise InvalidInputError(f"Invalid document: {error}.") from error
    return found


def _parse_confined(data: bytes, format_: RdfFormat, base_iri: str, budget: _Budget) -> list[Triple]:
    settings = {"media_type": format_.media_type, "base_iri": base_iri}
    with run_task("document", data, settings, budget.limits(), what="the document", folder=budget.folder) as results:
        path = results / "triples"
        if not path.exists():
            return []
        budget.spend(path.stat().st_size)
        return [quad.triple for quad in parse(path=path, format=RdfFormat.N_TRIPLES, rename_blank_nodes=True)]
