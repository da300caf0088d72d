"""The child process of `kg.shacl.process`: a task (`kg.processes.task`) that runs one validation.

It writes the report to its folder, then the verdict: ``{conforms, counts, looked, notes, by_pyshacl}``. It runs at a
lower priority than its parent, so that queries do not wait for it.
"""

from __future__ import annotations

import errno
import json
import resource
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse, serialize

from kg.errors import InvalidInputError, PayloadTooLargeError, QuadciteError, QueryLimitError
from kg.processes import task
from kg.processes.child import SyntaxFaultError
from kg.processes.confine import is_out_of_memory
from kg.shacl.data_graph import DataGraph
from kg.shacl.report import Violation, build_report_triples
from kg.shacl.report_summary import summarize
from kg.shacl.report_writers import Form, Locate, write_report
from kg.shacl.shapes import Shapes, has_targets
from kg.vocabulary import PREFIXES

REPORT: Final = "report"
VERDICT: Final = "verdict"

FORMS: Final[Mapping[str, Form]] = {"text": "text", "json": "json", "sarif": "sarif", "text/turtle": "ttl"}

_NICENESS: Final = 5


def _no_location(result: Violation) -> None:
    """Return no location: data that was sent is in no file."""


def work(
    settings: dict[str, Any], text: bytes, locating: Callable[[Store], Locate] = lambda store: _no_location
) -> dict[str, Any]:
    """Validate by `settings` and return the reply: empty, or an error.

    `locating` builds, for a store, the function that locates a result about it in the source.
    """
    # Python ignores SIGXFSZ, so that a larger report is an OSError (EFBIG) below.
    resource.setrlimit(resource.RLIMIT_FSIZE, (settings["max_bytes"],) * 2)
    size, _ = settings["sizes"]
    try:
        _validate(settings, text[:size], text[size:], Path(settings["folder"]), locating)
    except RecursionError:
        return _reply_error("invalid_input", "The data or the shapes are nested too deeply.")
    except QuadciteError as error:
        return _reply_error(error.code, str(error))
    except (ImportError, MemoryError, OSError, RuntimeError, ValueError, SyntaxError) as error:
        if is_out_of_memory(error):
            return _reply_error(
                "query_memory", f"The validation needs more than {settings['memory_bytes'] >> 20} MiB of memory."
            )
        if isinstance(error, OSError):
            if error.errno == errno.EFBIG:
                return _reply_error(QueryLimitError.code, f"The report is larger than {settings['max_bytes']} bytes.")
            return {"kind": "store", "message": str(error)}
        return _reply_error("invalid_input", f"The validation failed: {error}")
    return {}


def _reply_error(code: str, message: str) -> dict[str, Any]:
    return {"kind": "raised", "code": code, "message": message}


def _validate(
    settings: dict[str, Any], data: bytes, shapes: bytes, folder: Path, locating: Callable[[Store], Locate]
) -> None:
    limit = task.QuadLimit(settings["max_quads"], settings["memory_bytes"])
    suite = _load_suite(settings["shapes"], shapes, limit)
    described = settings["data"]
    if "snapshot" in described:
        store, graph = Store.read_only(described["snapshot"]), described["graph"]
        validated = DataGraph.from_store(store, None if graph is None else NamedNode(graph))
        locate = locating(store)
    elif "files" in described:
        files = (parse(path=path, format=RdfFormat.N_TRIPLES) for path in described["files"])
        validated = DataGraph.from_quads(chain.from_iterable(files))
        locate = _no_location
    else:
        validated = DataGraph.from_quads(_parse(described, data, limit))
        locate = _no_location
    only = [NamedNode(iri) for iri in settings["focus"]]
    results = suite.results(validated, focus=only) if only else suite.results(validated)
    by_pyshacl = suite.describe_uncompiled()
    counts: Counter[str] = Counter()

    def counted() -> Iterator[Violation]:
        for violation in results:
            counts[violation.severity] += 1
            if settings["most"] is None or counts[violation.severity] <= settings["most"]:
                yield violation

    def looked() -> bool:
        return bool(counts) or has_targets(suite, validated)

    with (folder / REPORT).open("wb") as output:
        _write(counted(), output, settings, by_pyshacl, locate, looked)
    verdict = {
        "conforms": not counts["Violation"],
        "counts": {severity: count for severity, count in counts.items() if count},
        "looked": looked(),
        "notes": suite.notes,
        "by_pyshacl": by_pyshacl,
    }
    (folder / VERDICT).write_text(json.dumps(verdict))


def _load_suite(described: dict[str, Any] | str, text: bytes, limit: task.QuadLimit) -> Shapes:
    match described:
        case "record":
            return Shapes.load()
        case "open-record":
            return Shapes.load(opened=True)
        case "dataset":
            return Shapes.load_dataset()
    triples = [quad.triple for quad in _parse(described, text, limit, rename=True)]  # type: ignore[arg-type]  # not a name
    return Shapes(triples)


def _parse(described: dict[str, Any], text: bytes, limit: task.QuadLimit, *, rename: bool = False) -> list[Quad]:
    form = RdfFormat.from_media_type(described["media_type"])
    if form is None:
        raise InvalidInputError(f"{described['media_type']} is not an RDF format.")
    found = []
    try:
        for quad in parse(text, format=form, base_iri=described["base_iri"], rename_blank_nodes=rename):
            limit.count(len(str(quad)))
            found.append(quad)
        return found
    except task.OutputFullError as error:
        raise PayloadTooLargeError(f"The {described['name']} is too large: {error}.") from error
    except SyntaxError as error:
        fault = SyntaxFaultError(error.msg, *task.find_position(error, form.media_type, lambda: text))
        raise InvalidInputError(f"The {described['name']}: not {form.name}: {fault}") from error
    except ValueError as error:
        raise InvalidInputError(f"The {described['name']} cannot be used: {error}") from error


def _write(
    results: Iterator[Violation],
    output: IO[bytes],
    settings: dict[str, Any],
    by_pyshacl: dict[str, str],
    locate: Locate,
    looked: Callable[[], bool],
) -> None:
    form, checked = settings["form"], settings["checked"]
    if form in FORMS:
        write_report(results, FORMS[form], output, checked=checked, by_pyshacl=by_pyshacl, locate=locate, looked=looked)
    elif form == "summary":
        output.write(json.dumps(summarize(results, settings["examples"]), ensure_ascii=False).encode())
    elif (rdf := RdfFormat.from_media_type(form)) is not None:
        serialize(build_report_triples(results), output, rdf, prefixes=PREFIXES)
    else:
        raise ValueError(f"{form} is not a format of a report.")


def main(locating: Callable[[Store], Locate] = lambda store: _no_location) -> None:
    """Run the process; `locating` is that of `work`."""
    task.main(partial(work, locating=locating), niceness=_NICENESS)
