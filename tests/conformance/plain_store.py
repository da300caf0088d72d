"""A plain RDF dataset in a folder: no provenance, no shapes, and SPARQL Update as the standard has it.

It is what the endpoint's conformance is tested on; `kg.store.oxigraph` holds the knowledge graph.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Self

import pyoxigraph
from pyoxigraph import DefaultGraph, NamedNode, Quad, Triple

from kg.access.actors import ADMIN, Actor
from kg.errors import InvalidInputError, NotFoundError, QuerySyntaxError, StoreError
from kg.sparql.dataset_clauses import add_dataset
from kg.sparql.guard import check_update
from kg.store.protocol import Everything, Snapshot, State
from kg.store.snapshots import Made, Snapshots


class PlainStore:
    """A dataset of a default graph and named graphs, which may be empty. An actor may write all of them, and needs
    the scope of an admin for updates.

    Thread-safe; calls block. Each write is atomic and makes a new generation. Without `folder` the dataset is temporary
    and ends with `close`. Writes are not flushed one by one: after a crash the dataset is what the engine had written.
    Relative IRIs are resolved against `base_iri`.
    """

    def __init__(self, folder: Path | None = None, *, base_iri: str | None = None) -> None:
        self._temporary: Final = Path(tempfile.mkdtemp(prefix="plain-")) if folder is None else None
        self.base_iri: Final = base_iri
        root = folder or self._temporary
        assert root is not None
        root.mkdir(parents=True, exist_ok=True)
        self._write_lock = threading.Lock()
        self._generation = 0
        try:
            self._store: pyoxigraph.Store | None = pyoxigraph.Store(root / "store")
        except OSError as error:
            raise StoreError(f"{root} cannot be opened: {error}") from error
        self._snapshots: Final = Snapshots(root / "snapshots", self._checkpoint, lambda: self._generation)

    @property
    def generation(self) -> int:
        """How many writes there have been since the folder was opened."""
        return self._generation

    def snapshot(self, at_least: int = 0, *, exactly: int | None = None) -> Snapshot:
        """Return a checkpoint of generation `at_least` or later, or the kept one of `exactly`, to be released."""
        return self._snapshots.take(at_least, exactly)

    def pin(self, exactly: int | None = None) -> State:
        """Return the newest generation, or that of `exactly`, to be released."""
        return self.snapshot(self._generation, exactly=exactly)

    def update(
        self,
        update: str,
        default_graphs: Sequence[NamedNode] = (),
        named_graphs: Sequence[NamedNode] = (),
        actor: Actor | None = None,
    ) -> int:
        """Run a SPARQL Update as one transaction; return the generation that it made.

        The graphs given are those that its WHERE clauses are asked of. Raises QuerySyntaxError, QueryForbiddenError
        for SERVICE and LOAD, and InvalidInputError for an operation that fails (a graph to be created exists, one to be
        dropped does not) and for graphs given to an update that names its own.
        """
        if actor is not None:
            actor.require(ADMIN, "an update")
        check_update(update)
        if default_graphs or named_graphs:
            update = add_dataset(update, default_graphs, named_graphs)
        return self._write(lambda store: store.update(update, base_iri=self.base_iri))

    def replace(self, quads: Iterable[Quad], graphs: Iterable[NamedNode] = ()) -> None:
        """Make the dataset hold exactly `quads`, and, even if they are empty, `graphs`."""
        created = "".join(f"CREATE SILENT GRAPH {graph} ; " for graph in graphs)
        held: dict[object, list[Triple]] = {}
        for quad in quads:
            held.setdefault(quad.graph_name, []).append(quad.triple)
        data = "\n".join(_data(None if isinstance(graph, DefaultGraph) else graph, held[graph]) for graph in held)
        self._write(lambda store: store.update(f"DROP ALL ; {created} INSERT DATA {{ {data} }}"))

    def put(self, graph: NamedNode | None, triples: Iterable[Triple], actor: Actor | None = None) -> bool:
        """Make `graph` (None: the default graph) hold exactly `triples`; return whether it is new."""
        return self._fill(graph, triples, "CREATE SILENT GRAPH {0} ; CLEAR GRAPH {0}", "CLEAR DEFAULT")

    def post(self, graph: NamedNode | None, triples: Iterable[Triple], actor: Actor | None = None) -> bool:
        """Add `triples` to `graph` (None: the default graph); return whether it is new."""
        return self._fill(graph, triples, "CREATE SILENT GRAPH {0}", "")

    def create(self, triples: Iterable[Triple], actor: Actor | None = None) -> NamedNode:
        """Put `triples` into a new graph and return its name."""
        graph = NamedNode(f"urn:uuid:{uuid.uuid4()}")
        self.put(graph, triples)
        return graph

    def delete(self, graph: NamedNode | None, actor: Actor | None = None) -> None:
        """Remove `graph`, or empty the default graph. Raises NotFoundError if it does not exist."""
        if not self.holds(graph):
            raise NotFoundError(f"Unknown graph {graph}.")
        update = "CLEAR DEFAULT" if graph is None else f"DROP GRAPH {graph}"
        self._write(lambda store: store.update(update))

    def holds(self, graph: NamedNode | None) -> bool:
        """Return whether there is such a graph, empty or not."""
        return graph is None or self._opened().contains_named_graph(graph)

    def graph(self, graph: NamedNode | None) -> list[Triple]:
        """Return the triples of one graph; none where there is no such graph."""
        quads = self._opened().quads_for_pattern(None, None, None, graph or DefaultGraph())
        return [quad.triple for quad in quads]

    def graphs(self) -> list[NamedNode]:
        """Return the names of all named graphs but those that are blank nodes, the empty ones too."""
        return [name for name in self._opened().named_graphs() if isinstance(name, NamedNode)]

    def close(self) -> None:
        """Let go of the folder; a temporary one is deleted. A second call does nothing."""
        with self._write_lock:
            store, self._store = self._store, None
            if store is None:
                return
            self._snapshots.close()
            del store
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> pyoxigraph.Store:
        store = self._store
        if store is None:
            raise StoreError("the dataset is closed")
        return store

    def _fill(self, graph: NamedNode | None, triples: Iterable[Triple], named: str, default: str) -> bool:
        """Run one of two updates, for a named or the default graph, and insert `triples` with it."""
        first = default if graph is None else named.format(graph)
        inserted = f"INSERT DATA {{ {_data(graph, triples)} }}"
        is_new = not self.holds(graph)
        self._write(lambda store: store.update(f"{first} ; {inserted}" if first else inserted))
        return is_new

    def _write(self, action: Callable[[pyoxigraph.Store], object]) -> int:
        with self._write_lock:
            store = self._opened()
            try:
                action(store)
            except SyntaxError as error:
                raise QuerySyntaxError(f"not a SPARQL update: {error}") from error
            except UnicodeEncodeError as error:
                raise QuerySyntaxError(f"the update holds a lone surrogate at position {error.start}") from None
            except (RuntimeError, ValueError) as error:
                raise InvalidInputError(f"the update cannot be run: {error}") from error
            except OSError as error:
                raise StoreError(f"the update could not be written: {error}") from error
            self._generation += 1
            return self._generation

    def _checkpoint(self, folder: Path, wait: bool, made: Made) -> None:
        """Write a checkpoint to ``folder/{generation}``; without `wait` not while somebody writes."""
        if not self._write_lock.acquire(blocking=wait):
            return
        try:
            self._opened().backup(folder / str(self._generation))
            made(self._generation, Everything())
        except (OSError, RuntimeError) as error:
            raise StoreError(f"no checkpoint could be written to {folder}: {error}") from error
        finally:
            self._write_lock.release()


def _data(graph: object, triples: Iterable[Triple]) -> str:
    text = "\n".join(f"{triple} ." for triple in triples)
    return text if graph is None else f"GRAPH {graph} {{ {text} }}"
