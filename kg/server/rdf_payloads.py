"""The RDF document in a request's body as triples: parsed within limits, and what the parser could choke on apart.

Turtle and N-Triples are read here: their parser uses neither recursion nor entities, and what they come to is counted
while it grows. RDF/XML (entities), JSON-LD (recursion) and nested triple terms are read in a process of their own.
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
"""What is taken, the registered types first, then what clients send for them."""

TAKEN: Final = (*list(FORMATS)[:4], "multipart/form-data")
_DATASETS: Final = frozenset({"application/n-quads", "application/trig", "text/x-nquads", "application/x-trig"})
_IN_PLACE: Final = frozenset({RdfFormat.TURTLE, RdfFormat.N_TRIPLES})
_EXPANSION: Final = 16
"""How many times as long as the document its triples may be, written in full."""
_LEAST_CHARACTERS: Final = 4 << 20
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_MOST_HEAD_BYTES: Final = 16 << 10
"""The parser of headers takes seconds for some megabytes of them."""


@dataclass(slots=True)
class _Budget:
    """What all of one request's documents may take together."""

    deadline: float
    """Of the monotonic clock."""
    characters: int
    """Of the triples, written in full."""
    memory_bytes: int
    folder: Path | None
    """Where what comes out of processes lies; it is gone when they are, and a crash leaves it there."""

    def spend(self, characters: int) -> None:
        self.characters -= characters
        if self.characters < 0:
            raise TooLargeError("the document comes to more than is taken, written in full; split it")

    def limits(self) -> Limits:
        """Return what is left for one more process."""
        if (left_s := self.deadline - time.monotonic()) <= 0:
            raise QueryTimeoutError("the documents take longer to read than one request may; nothing has changed")
        return Limits(left_s, self.memory_bytes, self.characters)


@dataclass(frozen=True, slots=True)
class Payload:
    """A body and its type."""

    data: bytes
    content_type: str

    def triples(self, base_iri: str, limits: Limits, folder: Path | None = None) -> list[Triple]:
        """Return the triples, relative IRIs taken from `base_iri`; of several parts each has blank nodes of its own.

        `limits` are those of all parts together; `folder` is for files meanwhile. Raises HttpError (415) for another
        type, (413) for what comes to more than the limits allow, InvalidInputError with line and column for what is not
        well formed, and QueryTimeoutError or QueryMemoryError.
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
            raise unsupported(media_type)
        if (charset := parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
            raise HttpError(415, "unsupported_media_type", f"the charset is UTF-8, not {charset}")
        try:
            if format_ in _IN_PLACE and b"<<" not in self.data:
                return _parsed(self.data, format_, base_iri, budget)
            return _confined(self.data, format_, base_iri, budget)
        except SyntaxFaultError as error:
            raise InvalidInputError(f"not {format_.name}: {error}") from error
        except TooLargeError as error:
            raise HttpError(413, "body_too_large", str(error)) from error

    def parts(self, boundary: str) -> Iterator[tuple[Message, Payload]]:
        """Yield the parts of a form (RFC 7578), each with its headers.

        A part is one document: what looks like a form in it is not read. Raises InvalidInputError for a broken form.
        """
        delimiter = rb"(?:\A|\r?\n)--" + re.escape(boundary.encode()) + rb"(--)?[ \t]*(?=\r?\n|\Z)"
        marks = re.finditer(delimiter, self.data) if boundary else iter(())
        mark = next(marks, None)
        if mark is None:
            raise InvalidInputError("the form has no parts: its boundary does not occur in the body")
        while not mark[1]:
            following = next(marks, None)
            if following is None:
                break
            head, content = _divided(self.data, mark.end(), following.start())
            headers = BytesParser().parsebytes(head, headersonly=True)
            coding = str(headers.get("Content-Transfer-Encoding", "binary")).strip().lower()
            if coding not in ("binary", "8bit", "7bit"):
                raise InvalidInputError(f"a part of the form is sent as it is, not as {coding[:40]}")
            yield headers, Payload(content, str(headers.get("Content-Type", "")))
            mark = following
        else:
            return
        raise InvalidInputError("the form breaks off: no boundary ends its last part")


def _divided(body: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """Return the headers and the content of the part of a form that stands from `start` to `end`."""
    head_end = _HEAD_END.search(body, start, min(end, start + _MOST_HEAD_BYTES))
    if head_end is None and end - start > _MOST_HEAD_BYTES:
        raise InvalidInputError(f"the headers of a part of the form take {_MOST_HEAD_BYTES} bytes at most")
    if head_end is None:
        return body[start:end].lstrip(), b""
    return body[start : head_end.start()].lstrip(), body[head_end.end() : end]


def unsupported(media_type: str) -> HttpError:
    """Return the error for a type that is not taken."""
    taken = ", ".join(TAKEN)
    message = (
        f"{media_type} names graphs, and a request here is about one graph: send {taken}"
        if media_type in _DATASETS
        else f"a graph is sent as {taken}, not as {media_type or 'a body without a type'}"
    )
    return HttpError(415, "unsupported_media_type", message, {"Accept-Post": taken, "Accept-Put": taken})


def _parsed(data: bytes, format_: RdfFormat, base_iri: str, budget: _Budget) -> list[Triple]:
    found = []
    try:
        for quad in parse(data, format=format_, base_iri=base_iri, rename_blank_nodes=True):
            budget.spend(len(str(quad)))
            if quad.graph_name != DefaultGraph():
                raise InvalidInputError(f"the document names the graph {quad.graph_name}")
            found.append(quad.triple)
    except SyntaxError as error:
        raise SyntaxFaultError(error.msg, error.lineno, error.offset) from error
    except ValueError as error:
        raise InvalidInputError(f"the document cannot be used: {error}") from error
    return found


def _confined(data: bytes, format_: RdfFormat, base_iri: str, budget: _Budget) -> list[Triple]:
    settings = {"media_type": format_.media_type, "base_iri": base_iri}
    with run_task("document", data, settings, budget.limits(), what="the document", folder=budget.folder) as results:
        path = results / "triples"
        if not path.exists():
            return []
        budget.spend(path.stat().st_size)
        return [quad.triple for quad in parse(path=path, format=RdfFormat.N_TRIPLES, rename_blank_nodes=True)]
