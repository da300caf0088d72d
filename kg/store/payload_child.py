"""The child process of `kg.store.payloads`: a task (`kg.processes.task`) that parses and skolemizes RDF documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyoxigraph import NamedNode, RdfFormat, Triple, parse

from kg.errors import InvalidInputError
from kg.processes import task
from kg.store.skolem import skolemize

TRIPLES: Final = "triples"
SUMMARY: Final = "summary"


def work(settings: dict[str, Any], text: bytes) -> dict[str, Any]:
    """Parse the documents of `settings` in `text`, write their triples, and return the reply."""
    begin = 0
    triples: list[Triple] = []
    limit = task.QuadLimit(settings["max_quads"], settings["max_bytes"])
    name_size = len(settings["graph"] or "")  # the engine writes it with each quad
    try:
        for document in settings["documents"]:
            data = text[begin : begin + document["size"]]
            begin += document["size"]
            try:
                triples += _parse(data, document["media_type"], settings["base_iri"], limit, name_size)
            except SyntaxError as error:
                line, column = task.find_position(error, document["media_type"], lambda data=data: data)  # type: ignore[misc]
                return {"kind": "syntax", "message": error.msg, "line": line, "column": column}
        if settings["graph"] is not None:
            triples = skolemize(NamedNode(settings["graph"]), triples)
        _write(triples, Path(settings["folder"]))
    except task.OutputFullError as error:
        return {"kind": "size", "message": str(error)}
    except InvalidInputError as error:
        return {"kind": "raised", "code": error.code, "message": str(error)}
    except (RuntimeError, ValueError) as error:
        return {"kind": "invalid", "message": str(error)}
    except OSError as error:
        return {"kind": "store", "message": str(error)}
    return {}


def _parse(data: bytes, media_type: str, base_iri: str, limit: task.QuadLimit, name_size: int) -> Iterator[Triple]:
    form = RdfFormat.from_media_type(media_type)
    for quad in parse(data, format=form, base_iri=base_iri, rename_blank_nodes=True):
        limit.count(len(str(quad)) + name_size)
        yield task.require_shallow(task.require_default_graph(quad)).triple


def _write(triples: list[Triple], folder: Path) -> None:
    lines = sorted(f"{triple} .\n" for triple in triples)
    digest = hashlib.sha256()
    with (folder / TRIPLES).open("wb") as file:
        for line in lines:
            encoded = line.encode()
            digest.update(encoded)
            file.write(encoded)
    (folder / SUMMARY).write_text(f"{len(lines)} {digest.hexdigest()}")


def main() -> None:
    """Run the process."""
    task.main(work)
