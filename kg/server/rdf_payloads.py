"""Parsing of the RDF document in a request's body, within limits of time, memory and size.

Short Turtle and N-Triples are parsed in this process: their parser uses no recursion and no entities, and the number
and size of the triples are limited while they are parsed. All else is parsed in a confined process: documents of more
than `_SMALL_BYTES`, or more than `_MOST_CHARACTERS` in full, RDF/XML (entities), JSON-LD (recursion) and nested triple
terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode, RdfFormat, Triple, parse

from kg.errors import InvalidInputError, PayloadTooLargeError
from kg.processes.child import Limits, SyntaxFaultError
from kg.processes.task import OutputFullError, QuadLimit
from kg.server.negotiation import media_type_of
from kg.server.problem_details import HttpError
from kg.store.payloads import Payload, read_documents
from kg.text import quoted

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
_MOST_CHARACTERS: Final = 4 << 20
"""Maximum size of triples, written in full, that are parsed in this process. Prefixes can make them that long."""
_SMALL_BYTES: Final = 1 << 16
"""Size of a body that is parsed at once, which takes less time than to start a process."""
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_MOST_HEAD_BYTES: Final = 16 << 10
"""The parser of headers needs seconds for a few megabytes."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body and its Content-Type."""

    data: bytes
    content_type: str

    @property
    def is_small(self) -> bool:
        """Whether it takes less time to parse it than to start a process for it."""
        return len(self.data) <= _SMALL_BYTES

    @contextmanager
    def read(
        self, graph: NamedNode | None, base_iri: str, limits: Limits, folder: Path | None = None
    ) -> Iterator[Payload | list[Triple]]:
        """Read the triples for `graph`, resolving relative IRIs against `base_iri`. Parts do not share blank nodes.

        The payload can be read until the end of the block. Without `graph` the triples keep their blank nodes. `limits`
        apply to all parts together; `folder` is for temporary files. Raises HttpError (415) for an unsupported type,
        PayloadTooLargeError, InvalidInputError with line and column for malformed RDF, and a QueryLimitError.
        """
        media_type, parameters = media_type_of(self.content_type)
        parts = [self]
        if media_type == "multipart/form-data":
            parts = [part for _, part in self.parts(parameters.get("boundary", ""))]
        documents = [(part.data, part._find_format()) for part in parts]
        try:
            if self.is_small and all(form in _IN_PLACE and b"<<" not in data for data, form in documents):
                triples = _parse_here(documents, graph, base_iri, limits)
                if triples is not None:
                    yield triples if graph is None else Payload.build(graph, triples)
                    return
            with read_documents(documents, graph, base_iri, limits, folder=folder) as payload:
                yield payload
        except SyntaxFaultError as error:
            names = "/".join(dict.fromkeys(form.name for _, form in documents))
            raise InvalidInputError(f"Invalid {names}: {error}.") from error

    def _find_format(self) -> RdfFormat:
        media_type, parameters = media_type_of(self.content_type)
        format_ = FORMATS.get(media_type)
        if format_ is None:
            raise unsupported_type(media_type)
        if (charset := parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
            raise HttpError(415, "unsupported_media_type", f"Unsupported charset {quoted(charset)}. Send UTF-8.")
        return format_

    def parts(self, boundary: str) -> Iterator[tuple[Message, Body]]:
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
                    f"Unsupported Content-Transfer-Encoding {quoted(coding)} in a part of the form. Use binary."
                )
            yield headers, Body(content, str(headers.get("Content-Type", "")))
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


def _parse_here(
    documents: Sequence[tuple[bytes, RdfFormat]], graph: NamedNode | None, base_iri: str, limits: Limits
) -> list[Triple] | None:
    """Parse documents in this process; None if their triples are longer than `_MOST_CHARACTERS`."""
    found, characters = [], 0
    name_size = 0 if graph is None else len(str(graph))
    limit = QuadLimit(limits.max_quads, limits.max_bytes)
    try:
        for data, form in documents:
            for quad in parse(data, format=form, base_iri=base_iri, rename_blank_nodes=True):
                size = len(str(quad)) + name_size
                limit.count(size)
                characters += size
                if characters > _MOST_CHARACTERS:
                    return None
                found.append(quad.triple)
    except OutputFullError as error:
        raise PayloadTooLargeError(f"The document is too large: {error}.") from error
    except SyntaxError as error:
        raise SyntaxFaultError(error.msg, error.lineno, error.offset) from error
    except ValueError as error:
        raise InvalidInputError(f"Invalid document: {error}.") from error
    return found
