"""A process that handles one foreign text, such as an update, writes its output to files, and ends.

It reads two frames, the settings (JSON) and the text, and answers with one: a JSON object, ``{}`` or an error as
``{kind, message, line, column}``. It cannot open a socket, take more memory than RLIMIT_DATA, or run longer than its
deadline or its parent. It imports no more of Quadcite than frames and limits: it has to start fast.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

import pyoxigraph
from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, Triple

from kg.processes import confine, frames

MAX_NESTED: Final = 8
"""Maximum depth of nested triples: every later reader of them is recursive, parsers too."""


class OutputFullError(Exception):
    """The output is larger than allowed. The message is a part of a sentence."""


class QuadLimit:
    """A limit of quads (None: no limit) and of their size, written in full, for all documents of a task together."""

    def __init__(self, most: int | None, max_bytes: int) -> None:
        self._most, self._max_bytes = most, max_bytes
        self._quads = self._bytes = 0

    def count(self, size: int) -> None:
        """Count a quad of `size`. Raises OutputFullError beyond the limit."""
        self._quads += 1
        self._bytes += size
        if self._most is not None and self._quads > self._most:
            raise OutputFullError(
                f"more than {self._most} quads (setting QUADCITE_MAX_GRAPH_QUADS). Split it, or load files with "
                "`kg load`"
            )
        if self._bytes > self._max_bytes:
            raise OutputFullError(
                f"more than {self._max_bytes} bytes when its terms are written in full (N-Quads). Split it, or shorten "
                "its names"
            )


class Output:
    """Files of N-Quads in one folder, of at most `max_bytes` together."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._size = folder, QuadLimit(None, max_bytes)

    def write(self, name: str, lines: Iterable[str], limit: QuadLimit | None = None) -> None:
        """Append lines, each with its terminator. They also count for `limit`."""
        with (self._folder / name).open("ab") as file:
            for line in lines:
                data = line.encode() + b" .\n"
                self._size.count(len(data))
                if limit is not None:
                    limit.count(len(data))
                file.write(data)


def check_syntax(text: str, settings: dict[str, Any]) -> None:
    """Raise SyntaxError unless `text` is an update."""
    try:
        pyoxigraph.Store().update(text, prefixes=settings["prefixes"])
    except RuntimeError:  # well formed, but it refers to graphs that an empty store lacks
        return


def run_update(text: str, settings: dict[str, Any], output: Output) -> None:
    """Run an update on the store in ``scratch``; write how the graphs in ``reach`` then differ from ``snapshot``."""
    before, after = pyoxigraph.Store.read_only(settings["snapshot"]), pyoxigraph.Store(settings["scratch"])
    after.update(text, prefixes=settings["prefixes"])
    if next(after.quads_for_pattern(None, None, None, DefaultGraph()), None) is not None:
        raise ValueError("The update writes to the default graph, which has to stay empty. Name a graph.")
    added = QuadLimit(settings["max_quads"], settings["max_bytes"])
    for name in settings["reach"]:
        graph = NamedNode(name)
        output.write("removed", map(str, _missing(before, after, graph)))
        output.write("added", map(str, map(require_shallow, _missing(after, before, graph))), added)


def _missing(one: pyoxigraph.Store, other: pyoxigraph.Store, graph: NamedNode) -> Iterable[Quad]:
    """Yield the quads of `graph` in `one` that are not in `other`."""
    if one.contains_named_graph(graph):
        yield from (quad for quad in one.quads_for_pattern(None, None, None, graph) if quad not in other)


def require_shallow(quad: Quad) -> Quad:
    """Return `quad`. Raises ValueError if its triple terms are nested deeper than `MAX_NESTED`."""
    term: object = quad.object
    for _ in range(MAX_NESTED):
        if not isinstance(term, Triple):
            return quad
        term = term.object
    if isinstance(term, Triple):
        raise ValueError(f"A triple contains triples nested more than {MAX_NESTED} deep.")
    return quad


def require_default_graph(quad: Quad) -> Quad:
    """Return `quad`. Raises ValueError if it is in a named graph."""
    if quad.graph_name != DefaultGraph():
        raise ValueError(f"The document names the graph {quad.graph_name}. Send one graph, without a name.")
    return quad


def run_task(settings: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Run the task that `settings` names and return the reply."""
    output = Output(Path(settings["folder"]), settings["max_bytes"])
    try:
        if settings["task"] == "update":
            run_update(data.decode(), settings, output)
        else:
            check_syntax(data.decode(), settings)
    except SyntaxError as error:
        line, column = find_position(error, settings.get("media_type"), lambda: data)
        return {"kind": "syntax", "message": error.msg, "line": line, "column": column}
    except OutputFullError as error:
        return {"kind": "size", "message": str(error)}
    except (RuntimeError, ValueError) as error:
        return {"kind": "invalid", "message": str(error)}
    except OSError as error:
        return {"kind": "store", "message": str(error)}
    return {}


def find_position(
    error: SyntaxError, media_type: str | None, read: Callable[[], bytes]
) -> tuple[int | None, int | None]:
    """Return line and column of a syntax error in a text of `media_type`, where they are known.

    Oxigraph does not report them for RDF/XML: the text that `read` returns is parsed again, which finds them where it
    is not XML.
    """
    if error.lineno is None and media_type == RdfFormat.RDF_XML.media_type:
        try:
            expat.ParserCreate(namespace_separator=" ").Parse(read(), True)
        except expat.ExpatError as fault:
            return fault.lineno, fault.offset + 1
    return error.lineno, error.offset


def main(work: Callable[[dict[str, Any], bytes], dict[str, Any]] = run_task, *, niceness: int = 0) -> None:
    """Confine this process, then do `work`, which takes settings and text and returns the reply."""
    confine.die_with_parent_thread()  # that thread waits for this process
    requests, answers = confine.take_pipes()
    if (options := frames.read(requests)) is None or (text := frames.read(requests)) is None:
        return
    settings = json.loads(options[1])
    # The parent kills it at the deadline; the alarm is for a parent that cannot.
    confine.confine(memory_bytes=settings["memory_bytes"], seconds=settings["timeout_s"] + 1, niceness=niceness)
    confine.write_all(answers, frames.encode_json(b"R", work(settings, text[1])))
    os._exit(0)  # the engine would flush what nobody reads
