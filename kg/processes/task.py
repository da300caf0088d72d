"""A process that runs one foreign text, an update or an RDF document, and ends: nothing that it does to itself matters.

Run as a script, with a JSON object of settings as its argument, the text on standard input and files for what comes out
of it; the last thing it prints is a JSON object, ``{}`` or ``{kind, message, line, column}``. It imports nothing of
Quadcite but its neighbour `worker`, by path. What it may not do: open a socket, take more memory than RLIMIT_DATA, run
longer than its deadline or its parent.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

import pyoxigraph
from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, Triple

MAX_NESTED: Final = 8
"""How deep triples may stand in one another: every reader of them after this one recurses, parsers too."""

_PR_SET_PDEATHSIG: Final = 1


class TooLarge(Exception):  # noqa: N818 -- an outcome like others
    """What comes out is larger than allowed."""


class Output:
    """A file of N-Quads that takes `max_bytes` at most, counted over all files."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._left = folder, max_bytes

    def write(self, name: str, lines: Iterable[str]) -> None:
        """Write each line with its end."""
        with (self._folder / name).open("ab") as file:
            for line in lines:
                data = line.encode() + b" .\n"
                self._left -= len(data)
                if self._left < 0:
                    raise TooLarge
                file.write(data)


def syntax(text: str, settings: dict[str, Any]) -> None:
    """Raise SyntaxError unless `text` is an update."""
    try:
        pyoxigraph.Store().update(text, prefixes=settings["prefixes"])
    except RuntimeError:  # it refers to graphs that an empty store lacks: what it says is well formed
        return


def update(text: str, settings: dict[str, Any], output: Output) -> None:
    """Run an update on the store in ``scratch``, and write how the graphs in ``reach`` differ from ``snapshot``."""
    before, after = pyoxigraph.Store.read_only(settings["snapshot"]), pyoxigraph.Store(settings["scratch"])
    after.update(text, prefixes=settings["prefixes"])
    if next(after.quads_for_pattern(None, None, None, DefaultGraph()), None) is not None:
        raise ValueError("the update writes to the default graph, which stays empty: name a graph")
    for name in settings["reach"]:
        graph = NamedNode(name)
        output.write("removed", map(str, _missing(before, after, graph)))
        output.write("added", map(str, map(_shallow, _missing(after, before, graph))))


def _missing(one: pyoxigraph.Store, other: pyoxigraph.Store, graph: NamedNode) -> Iterable[Quad]:
    """Yield the quads of `graph` that `one` has and `other` has not."""
    if one.contains_named_graph(graph):
        yield from (quad for quad in one.quads_for_pattern(None, None, None, graph) if quad not in other)


def _shallow(quad: Quad) -> Quad:
    term: object = quad.object
    for _ in range(MAX_NESTED):
        if not isinstance(term, Triple):
            return quad
        term = term.object
    if isinstance(term, Triple):
        raise ValueError(f"it has a triple that speaks of triples within triples, more than {MAX_NESTED} deep")
    return quad


def document(data: bytes, settings: dict[str, Any], output: Output) -> None:
    """Parse one graph and write its triples."""
    media_type = RdfFormat.from_media_type(settings["media_type"])
    quads = pyoxigraph.parse(data, format=media_type, base_iri=settings["base_iri"])
    output.write("triples", (str(_shallow(_unnamed(quad)).triple) for quad in quads))


def _unnamed(quad: Quad) -> Quad:
    if quad.graph_name != DefaultGraph():
        raise ValueError(f"the document names the graph {quad.graph_name}; it may hold one graph, without a name")
    return quad


def run(settings: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Do what `settings` asks for and return what is to be printed."""
    output = Output(Path(settings["folder"]), settings["max_bytes"])
    try:
        if settings["task"] == "update":
            update(data.decode(), settings, output)
        elif settings["task"] == "syntax":
            syntax(data.decode(), settings)
        else:
            document(data, settings, output)
    except SyntaxError as error:
        line, column = place_of(error, settings.get("media_type"), lambda: data)
        return {"kind": "syntax", "message": error.msg, "line": line, "column": column}
    except TooLarge:
        return {"kind": "size", "message": f"it comes to more than {settings['max_bytes']} bytes of N-Quads"}
    except (RuntimeError, ValueError) as error:
        return {"kind": "invalid", "message": str(error)}
    except OSError as error:
        return {"kind": "store", "message": str(error)}
    return {}


def place_of(error: SyntaxError, media_type: str | None, read: Callable[[], bytes]) -> tuple[int | None, int | None]:
    """Return line and column of what is wrong with a text of `media_type`, as far as they can be told.

    Of RDF/XML, Oxigraph does not tell them: what `read` returns is parsed once more, and has them where it is no XML.
    """
    if error.lineno is None and media_type == RdfFormat.RDF_XML.media_type:
        try:
            expat.ParserCreate(namespace_separator=" ").Parse(read(), True)
        except expat.ExpatError as fault:
            return fault.lineno, fault.offset + 1
    return error.lineno, error.offset


def _die_with_parent() -> None:
    """Be killed when the parent ends, where the system has a way to; else the deadline is the end.

    It is the parent's thread that counts, and that one waits for this process.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _neighbour(name: str) -> Any:
    path = Path(__file__).parents[1] / "queries" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"quadcite_{name}", path)
    assert spec is not None  # noqa: S101 -- the file lies beside this one
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(work: Callable[[dict[str, Any], bytes], dict[str, Any]] = run) -> None:
    """Confine this process, then do `work`, which takes settings and text and returns what is to be printed."""
    settings = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    signal.setitimer(signal.ITIMER_REAL, settings["timeout_s"] + 1)  # unhandled, SIGALRM ends the process
    _neighbour("worker").deny_sockets()
    data = sys.stdin.buffer.read()
    resource.setrlimit(resource.RLIMIT_DATA, (settings["memory_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(json.dumps(work(settings, data)), flush=True)  # noqa: T201 -- the answer
    os._exit(0)  # what the engine would still put down is of no use


if __name__ == "__main__":
    main()
