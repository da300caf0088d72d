"""Payloads: RDF documents from outside as skolemized triples of one graph, read in a confined process.

The server never has the triples of a large document in memory all at once: the process parses, counts and skolemizes
them and writes them to a file, which is read as often as needed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode, Quad, RdfFormat, Triple, parse

from kg.processes.child import Limits, run_task
from kg.store import payload_child
from kg.store.skolem import skolemize

EXPANSION: Final = 2
"""Maximum size of the quads of a graph, written in full, relative to that of the largest document."""

_WHAT: Final = "the document"


@dataclass(frozen=True, slots=True)
class Payload:
    """Triples for one graph, without blank nodes. Each iteration reads them again.

    `sha256` is that of their sorted N-Triples, in hexadecimal.
    """

    graph: NamedNode
    count: int
    sha256: str
    _read: Callable[[], Iterator[Triple]]
    _path: Path | None = None

    @classmethod
    def build(cls, graph: NamedNode, triples: Sequence[Triple]) -> Payload:
        """Skolemize triples in memory. Raises InvalidInputError as `skolemize` does."""
        found = skolemize(graph, triples)
        return cls(graph, len(found), hash_lines(f"{triple} .\n" for triple in found), lambda: iter(found))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Triple]:
        return self._read()

    @contextmanager
    def to_file(self, folder: Path) -> Iterator[Path]:
        """Write the triples as N-Triples to a file in `folder`, unless they are in one, for the time of the block."""
        if self._path is not None:
            yield self._path
            return
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix="payload-") as file:
            file.writelines(f"{triple} .\n" for triple in self)
            file.flush()
            yield Path(file.name)

    def quads(self) -> Iterator[Quad]:
        """Yield the triples as quads of the graph."""
        return (Quad(triple.subject, triple.predicate, triple.object, self.graph) for triple in self)


def hash_lines(lines: Iterable[str]) -> str:
    """Hash lines in sorted order (SHA-256, hexadecimal)."""
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


@contextmanager
def read_documents(
    documents: Sequence[tuple[bytes, RdfFormat]],
    graph: NamedNode | None,
    base_iri: str,
    limits: Limits,
    *,
    folder: Path | None = None,
) -> Iterator[Payload | list[Triple]]:
    """Read documents in a confined process as one payload for `graph`, which exists until the end of the block.

    Documents do not share blank nodes. Without `graph` the triples keep their blank nodes, and are in memory. `folder`
    is for temporary files. Raises SyntaxFaultError, PayloadTooLargeError, InvalidInputError, and a QueryLimitError.
    """
    settings = {
        "documents": [{"size": len(data), "media_type": form.media_type} for data, form in documents],
        "graph": None if graph is None else graph.value,
        "base_iri": base_iri,
    }
    data = documents[0][0] if len(documents) == 1 else b"".join(part for part, _ in documents)
    with run_task(
        "payload", data, settings, limits, what=_WHAT, folder=folder, module=payload_child.__name__
    ) as results:
        path = results / payload_child.TRIPLES
        if graph is None:
            yield list(_parse(path))
            return
        count, digest = (results / payload_child.SUMMARY).read_text().split()
        yield Payload(graph, int(count), digest, lambda: _parse(path), path)


def _parse(path: Path) -> Iterator[Triple]:
    # Blank nodes of two documents differ in the file too: each process names them at random.
    return (quad.triple for quad in parse(path=path, format=RdfFormat.N_TRIPLES, rename_blank_nodes=True))
