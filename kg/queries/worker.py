"""A worker process: evaluates queries, one at a time, over immutable snapshots, until its parent kills it.

It imports no more of Quadcite than frames and limits, so it starts fast. Frames (`kg.processes.frames`):

- in: ``Q``, a JSON object ``{snapshot, open, query, star, union, dataset, limit, bytes, results, graph}``: a path, the
  paths of snapshots that stay open, SPARQL, the offset of the ``*`` of its SELECT and the variables in the order of the
  text or null, whether the default graph is the union of all graphs, the names of the default and of the named graphs
  to use instead or null, the maximum number of rows or null, bytes or null after which no further row follows, and the
  media types to answer with; ``C``, the JSON list of the paths of snapshots that stay open.
- out: ``H``, the kind of the result (JSON ``{kind}``), ``D``, a piece of it, ``E``, its end (JSON
  ``{truncated, retire}``), or ``X``, an error (JSON ``{kind, message}``). ``C`` is answered with ``C``. Small frames
  are written together.

It cannot open a socket (seccomp, on Linux on x86-64 and ARM64), take more memory than RLIMIT_DATA, or outlive its
parent: it ends when its standard input does, even within a query.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO, Final, NoReturn, Protocol

import pyoxigraph

from kg.processes import confine, frames

PIECE_BYTES: Final = 65_536
_FLUSH_S: Final = 0.1
"""Maximum seconds that a row waits for others to share its frame, once there is a further row."""
_SAMPLED: Final = 1_000
"""Maximum number of triples whose prefixes the head of a graph declares. Later ones may need IRIs in full."""


class Send(Protocol):
    """Writes one frame; with `more` it may be held until the next one, which follows at once."""

    def __call__(self, kind: bytes, payload: bytes, *, more: bool = False) -> None:
        """Write the frame."""


class RowLimitReached(Exception):  # noqa: N818 -- not an error: it ends a serialization early
    """The result has more rows than requested."""


class RowCutter:
    """Forwards a serialized SELECT result up to a number of rows, then closes it so that it is well-formed.

    It also closes the result after the row with which it reaches `max_bytes`.

    Oxigraph serializes rows itself, many times faster than Python could, and has no limit of its own; so rows are
    counted in the bytes: in JSON and XML by what separates rows, in CSV and TSV by what ends them.
    """

    _SEPARATORS: Final = {
        "application/sparql-results+json": (b"},{", 1, b"]}}"),
        "application/sparql-results+xml": (b"</result><result>", 9, b"</results></sparql>"),
        "text/csv": (b"\r\n", 2, b""),
        "text/tab-separated-values": (b"\n", 1, b""),
    }
    _UNCLEAR: Final = re.compile(rb'\{(?:\}|"[,}])')

    def __init__(
        self, media_type: str, limit: int | None, emit: Callable[[bytes], None], max_bytes: int | None = None
    ) -> None:
        self._separator, self._kept, self._footer = self._SEPARATORS[media_type]
        self._ended = media_type.startswith("text/")
        self._quoted = media_type in ("text/csv", "application/sparql-results+json")
        self._escaped = media_type == "application/sparql-results+json"
        # The header line of CSV and TSV ends like a row.
        self._left = math.inf if limit is None else limit + self._ended
        self._bytes_left = math.inf if max_bytes is None else max_bytes
        self._limited = limit is not None or max_bytes is not None
        self._inside = False  # of a quoted string
        self._done = False
        self._flush_bytes = PIECE_BYTES
        self._buffer = bytearray()
        self._flushed = time.monotonic()
        self._emit = emit

    def write(self, data: bytes) -> int:
        """Take a piece of the serialization. Raises RowLimitReached after the last requested row."""
        if self._done:
            return len(data)  # the rest of the serializer's buffer
        self._buffer += data
        if len(self._buffer) >= self._flush_bytes or time.monotonic() - self._flushed > _FLUSH_S:
            # Keep what may begin a separator, and at least one byte: more of the result follows.
            separator = self._separator
            lengths = range(len(separator), 0, -1)
            end = len(self._buffer) - next((n for n in lengths if self._buffer.endswith(separator[:n])), 1)
            if self._escaped and (end - len(self._buffer[:end].rstrip(b"\\"))) % 2:
                end -= 1  # do not split an escape
            self._forward(end, more=True)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the serializer flushes at its end, where `finish` is also called."""

    def finish(self) -> None:
        """Forward the rest."""
        self._forward(len(self._buffer), more=False)

    def _forward(self, end: int, *, more: bool) -> None:
        with memoryview(self._buffer)[:end] as view:
            piece = bytes(view)
        if self._limited and (cut := self._cut(piece, more=more)) is not None:
            self._done = True
            self._emit(piece[:cut] + self._footer)
            raise RowLimitReached
        if piece:
            self._emit(piece)
        self._bytes_left -= len(piece)
        del self._buffer[:end]
        self._flushed = time.monotonic()

    def _cut(self, piece: bytes, *, more: bool) -> int | None:
        """Return where to cut `piece` if the last requested row ends in it and another follows; count its rows."""
        text = piece
        if self._escaped and b"\\" in piece:
            text = piece.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        if len(piece) < self._bytes_left and (rows := self._count(text)) is not None and rows < self._left:
            self._left -= rows
            if self._quoted:
                self._inside ^= text.count(b'"') % 2 == 1
            return None
        position = counted = 0
        while (found := text.find(self._separator, position)) >= 0:
            if self._quoted:
                self._inside ^= text.count(b'"', counted, found) % 2 == 1
                counted = found
            position = found + (1 if self._inside else len(self._separator))
            if self._inside:
                continue
            self._left -= 1
            after = found + self._kept
            full = self._left <= 0 or after >= self._bytes_left
            if full and (not self._ended or more or after < len(piece)):
                return after
        if self._quoted:
            self._inside ^= text.count(b'"', counted) % 2 == 1
        return None

    def _count(self, text: bytes) -> int | None:
        """Count the separators in `text`; None if some may be part of a quoted string.

        In JSON a row begins with the quote of its first name. The same bytes at the end of a string are followed by
        what closes or continues after a value: that, and a row without any value, needs a closer look.
        """
        if not self._quoted:
            return text.count(self._separator)
        if not self._escaped:
            return None if b'"' in text or self._inside else text.count(self._separator)
        if text.endswith((b"},{", b'},{"')) or self._UNCLEAR.search(text) is not None:
            return None
        return text.count(b'},{"')


class XmlCheck:
    """Rejects a serialization, piece by piece, that XML cannot represent: Oxigraph writes every character as it is."""

    _FORBIDDEN: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")

    def __init__(self) -> None:
        self._tail = b""

    def __call__(self, piece: bytes) -> None:
        """Raise ValueError for the first character that XML 1.0 cannot represent."""
        text = self._tail + piece
        if (found := self._FORBIDDEN.search(text)) is not None:
            raise ValueError(
                f"The result contains the character U+{ord(found[0].decode()):04X}, which XML cannot represent. "
                "Request JSON, CSV or TSV."
            )
        self._tail = text[-2:]  # a character of three bytes may continue in the next piece


class Evaluator:
    """Answers requests over open snapshots."""

    def __init__(self, prefixes: dict[str, str], base_iri: str | None, memory_bytes: int, send: Send) -> None:
        self._prefixes = prefixes
        self._base_iri = base_iri
        self._memory_bytes = memory_bytes
        self._send = send
        self._ending = False  # the next piece is the last
        self._stores: dict[str, pyoxigraph.Store] = {}
        self._is_opening = False
        self._empty = pyoxigraph.Store()

    def close(self, keep: Sequence[str]) -> None:
        """Close all snapshots but those in the folders `keep`."""
        self._close(keep)
        self._send(b"C", b"")

    def answer(self, request: dict[str, Any]) -> None:
        """Evaluate one query and send its result, or its error."""
        self._is_opening = False
        try:
            truncated = self._evaluate(request)
        except SyntaxError as error:
            self._fail("syntax", str(error))
        except (MemoryError, OSError) as error:
            if confine.is_out_of_memory(error):
                self._fail("memory", "out of memory")
                return
            # Over an open snapshot only a socket is denied, by `confine.deny_sockets`.
            refused = isinstance(error, PermissionError) and not self._is_opening
            unwritable = str(error).startswith("RDF/XML")  # as the predicate rdf:li is
            self._fail("evaluation" if unwritable else "request" if refused else "store", str(error))
        except (RuntimeError, ValueError, TypeError) as error:
            self._fail("evaluation", str(error))
        else:
            self._send_json(b"E", {"truncated": truncated, "retire": confine.holds_more_than(self._memory_bytes // 2)})

    def _evaluate(self, request: dict[str, Any]) -> bool:
        store = self._open(request["snapshot"], request["open"])
        # The union would replace the graphs that a query names with FROM.
        options: dict[str, Any] = {"use_default_graph_as_union": request["union"]}
        if request["dataset"] is not None:
            default, named = ([pyoxigraph.NamedNode(iri) for iri in graphs] for graphs in request["dataset"])
            options = {"default_graph": default, "named_graphs": named}
        query = self._order_columns(request["query"], *star) if (star := request.get("star")) else request["query"]
        result = store.query(query, base_iri=self._base_iri, prefixes=self._prefixes, **options)
        limit = request["limit"]
        if isinstance(result, pyoxigraph.QuerySolutions):
            results = _find_results_format(request["results"])
            self._begin("solutions")
            return self._send_solutions(result, results, limit, request["bytes"])
        if isinstance(result, pyoxigraph.QueryBoolean):
            results = _find_results_format(request["results"])
            self._begin("boolean")
            self._send(b"D", result.serialize(format=results) or b"", more=True)
            return False
        graph = pyoxigraph.RdfFormat.from_media_type(request["graph"] or "")
        if graph is None:
            raise ValueError(
                f"CONSTRUCT and DESCRIBE have no results in {request['graph'] or request['results']!r}. Request an RDF "
                "format."
            )
        self._begin("graph")
        return self._send_triples(result, graph, limit, request["bytes"])

    def _open(self, path: str, keep: Sequence[str]) -> pyoxigraph.Store:
        self._close(keep)
        if path not in self._stores:
            self._is_opening = True
            self._stores[path] = pyoxigraph.Store.read_only(path)
            self._is_opening = False
        return self._stores[path]

    def _close(self, keep: Sequence[str]) -> None:
        self._stores = {path: store for path, store in self._stores.items() if path in keep}

    def _order_columns(self, query: str, star: int, names: list[str]) -> str:
        """Replace ``*`` at `star` by the variables in scope, in the order of `names`.

        Oxigraph sorts the columns of ``SELECT *``. Over an empty store, it returns the variables without evaluation.
        """
        result = self._empty.query(query, base_iri=self._base_iri, prefixes=self._prefixes)
        place = {name: number for number, name in enumerate(names)}
        found = (
            [variable.value for variable in result.variables] if isinstance(result, pyoxigraph.QuerySolutions) else []
        )
        ordered = sorted(found, key=lambda name: place.get(name, len(place)))
        if ordered == found:
            return query
        # Spaces, since a keyword may touch the asterisk.
        return f"{query[:star]} {' '.join('?' + name for name in ordered)} {query[star + 1 :]}"

    def _send_solutions(
        self,
        solutions: pyoxigraph.QuerySolutions,
        results: pyoxigraph.QueryResultsFormat,
        limit: int | None,
        max_bytes: int | None,
    ) -> bool:
        media_type = results.media_type.partition(";")[0]
        cutter = RowCutter(media_type, limit, self._emitter(xml=media_type.endswith("xml")), max_bytes)
        try:
            solutions.serialize(cutter, format=results)  # type: ignore[arg-type]  # any object with write, flush
            self._ending = True
            cutter.finish()
        except RowLimitReached:
            return True
        return False

    def _send_triples(
        self, triples: pyoxigraph.QueryTriples, graph: pyoxigraph.RdfFormat, limit: int | None, max_bytes: int | None
    ) -> bool:
        truncated = False
        pieces = Pieces(self._emitter(xml=graph.media_type.endswith("xml")))
        check = check_json_ld if graph == pyoxigraph.RdfFormat.JSON_LD else None

        def limited() -> Iterator[pyoxigraph.Triple]:
            nonlocal truncated
            for count, triple in enumerate(triples):
                if count == limit or (max_bytes is not None and pieces.size >= max_bytes):
                    truncated = True
                    return
                if check is not None:
                    check(triple)
                yield triple

        following = limited()
        sample = _take_sample(following)
        prefixes = _find_used_prefixes(sample, graph, self._prefixes)
        pyoxigraph.serialize(chain(sample, following), pieces, format=graph, prefixes=prefixes)  # type: ignore[arg-type]
        self._ending = True
        pieces.finish()
        return truncated

    def _emitter(self, *, xml: bool) -> Callable[[bytes], None]:
        """Build the function that sends a piece of the result."""
        check = XmlCheck() if xml else None

        def emit(piece: bytes) -> None:
            if check is not None:
                check(piece)
            self._send(b"D", piece, more=self._ending)

        return emit

    def _begin(self, kind: str) -> None:
        self._ending = False
        self._send(b"H", json.dumps({"kind": kind}).encode(), more=True)

    def _send_json(self, kind: bytes, value: object) -> None:
        self._send(kind, json.dumps(value).encode())

    def _fail(self, kind: str, message: str) -> None:
        self._send_json(b"X", {"kind": kind, "message": message})


class Pieces:
    """A writable object that joins small writes into larger pieces, but never holds one for long."""

    def __init__(self, emit: Callable[[bytes], None]) -> None:
        self.size = 0
        self._emit = emit
        self._buffer = bytearray()
        self._flushed = time.monotonic()

    def write(self, data: bytes) -> int:
        """Take some bytes."""
        self._buffer += data
        self.size += len(data)
        if len(self._buffer) >= PIECE_BYTES or time.monotonic() - self._flushed > _FLUSH_S:
            self.finish()
        return len(data)

    def flush(self) -> None:
        """Do nothing: the serializer flushes at its end, where `finish` is also called."""

    def finish(self) -> None:
        """Forward the rest."""
        if self._buffer:
            self._emit(bytes(self._buffer))
            self._buffer.clear()
        self._flushed = time.monotonic()


# Within neither an IRI nor a string, which the serializer writes on one line.
_TURTLE_NAME: Final = re.compile(rb'@prefix[^\n]*|<[^>\n]*>|"(?:[^"\\\n]|\\.)*"|([A-Za-z][\w.-]*):\S*')
# The names of elements are those of properties and classes; text is escaped.
_XML_NAME: Final = re.compile(rb"<([A-Za-z][\w.-]*):")
_PREFIXED: Final = {
    "text/turtle": _TURTLE_NAME,
    "application/trig": _TURTLE_NAME,
    "text/n3": _TURTLE_NAME,
    "application/rdf+xml": _XML_NAME,
}


def _take_sample(triples: Iterator[pyoxigraph.Triple]) -> Sequence[pyoxigraph.Triple]:
    """Take the first triples, as many as arrive soon."""
    end = time.monotonic() + _FLUSH_S
    sample = []
    for triple in triples:
        sample.append(triple)
        if len(sample) == _SAMPLED or time.monotonic() > end:
            break
    return sample


def _find_used_prefixes(
    sample: Sequence[pyoxigraph.Triple], graph: pyoxigraph.RdfFormat, prefixes: dict[str, str]
) -> dict[str, str]:
    """Find the prefixes with which `sample` is written in the format `graph`."""
    pattern = _PREFIXED.get(graph.media_type.partition(";")[0])
    if pattern is None:
        return {}
    named = {name: iri for name, iri in prefixes.items() if name}
    text = pyoxigraph.serialize(sample, format=graph, prefixes=named) or b""
    used = {match[1].decode() for match in pattern.finditer(text) if match[1] is not None}
    return {name: iri for name, iri in named.items() if name in used}


def check_json_ld(triple: pyoxigraph.Triple) -> None:
    """Raise ValueError for a triple that JSON-LD 1.1 cannot represent (one with a triple term)."""
    if isinstance(triple.object, pyoxigraph.Triple):
        raise ValueError(
            "The result contains a triple term, which JSON-LD cannot represent. Request Turtle, TriG, N-Triples, "
            "N-Quads or RDF/XML, or omit rdf:reifies."
        )


def _find_results_format(media_type: str | None) -> pyoxigraph.QueryResultsFormat:
    results = pyoxigraph.QueryResultsFormat.from_media_type(media_type or "")
    if results is None:
        raise ValueError("SELECT and ASK have no results in an RDF format. Request SPARQL JSON, XML, CSV or TSV.")
    return results


def _sender(descriptor: int) -> Send:
    """Build the function that writes frames: the head of a result with what follows it, a small result with its end."""
    held = bytearray()

    def send(kind: bytes, payload: bytes, *, more: bool = False) -> None:
        held.extend(frames.HEADER.pack(kind, len(payload)))
        held.extend(payload)
        if not more or len(held) >= PIECE_BYTES:
            confine.write_all(descriptor, bytes(held))
            held.clear()

    return send


def serve(evaluator: Evaluator, requests: BinaryIO) -> None:
    """Answer requests until the stream ends."""
    while (request := frames.read(requests)) is not None:
        kind, payload = request
        if kind == b"C":
            evaluator.close(json.loads(payload))
        else:
            evaluator.answer(json.loads(payload))


def main() -> NoReturn:
    """Run the worker on this process's standard input and output."""
    settings = json.loads(sys.argv[1])
    requests, answers = confine.take_pipes()
    memory_bytes = settings["memory_bytes"]
    confine.use_small_stacks()
    confine.confine(memory_bytes=memory_bytes)
    confine.die_with_pipe(requests.fileno())
    with contextlib.suppress(BrokenPipeError):
        serve(Evaluator(settings["prefixes"], settings["base_iri"], memory_bytes, _sender(answers)), requests)
    os._exit(0)
