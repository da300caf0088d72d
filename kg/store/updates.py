"""A SPARQL Update run on a copy of the store, in a process of its own, and what it changed there."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyoxigraph
from pyoxigraph import NamedNode, Quad, RdfFormat, Store

from kg.errors import QuerySyntaxError
from kg.sparql.guard import check_update
from kg.sparql.using import with_dataset
from kg.store import difference
from kg.store.confinement import Limits, confined
from kg.store.difference import Delta
from kg.store.protocol import Snapshot
from kg.store.reach import graphs_within_reach, reads_any_graph
from kg.store.skolem import skolemize
from kg.vocabulary import KG, PREFIXES, PROV_GRAPH, mint

ATTEMPTS: Final = 5
"""How often an update is run before it is given up, when what it reads changes under it."""

_SHARED_SUFFIXES: Final = frozenset({".sst", ".blob"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an update does to each graph that it changes."""

    removed: Mapping[NamedNode, Sequence[Quad]]
    added: Mapping[NamedNode, Sequence[Quad]]

    def deltas(self, store: Store) -> list[Delta]:
        """Return the same as differences to what `store` holds."""
        found = []
        for graph in sorted({*self.removed, *self.added}, key=lambda graph: graph.value):
            held = difference.stored_statements(store, graph)
            gone = difference.statements(graph, self.removed.get(graph, ()))
            wanted = {line: quad for line, quad in held.items() if line not in gone}
            wanted.update(difference.statements(graph, self.added.get(graph, ())))
            if delta := difference.compare(graph, held, wanted):
                found.append(delta)
        return found


@dataclass(slots=True)
class Update:
    """An update that may be run. Nothing of it is evaluated in this process.

    Raises QuerySyntaxError, QueryForbiddenError for SERVICE and LOAD, and InvalidInputError where the graphs that it
    writes cannot be read off its text.
    """

    text: str
    default_graphs: Sequence[NamedNode] = ()
    named_graphs: Sequence[NamedNode] = ()
    reach: frozenset[NamedNode] = field(init=False)
    _reads_any: bool = field(init=False)

    def __post_init__(self) -> None:
        check_update(self.text)
        _refuse_syntax_errors(self.text)
        if self.default_graphs or self.named_graphs:
            self.text = with_dataset(self.text, self.default_graphs, self.named_graphs)
        self.reach = graphs_within_reach(self.text)
        self._reads_any = reads_any_graph(self.text)

    def run(self, snapshot: Snapshot, folder: Path, limits: Limits) -> Outcome:
        """Run it on a copy of `snapshot`, which is made in `folder`.

        Raises InvalidInputError for an operation that fails, QueryTimeoutError and QueryMemoryError.
        """
        scratch = folder / f"copy-{id(self)}"
        settings = {
            "snapshot": str(snapshot.path),
            "scratch": str(scratch),
            "prefixes": PREFIXES,
            "reach": sorted(graph.value for graph in self.reach),
        }
        try:
            _copy(snapshot.path, scratch)
            with confined("update", self.text.encode(), settings, limits, what="the update", folder=folder) as results:
                return Outcome(_quads(results / "removed"), _skolemized(_quads(results / "added")))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def is_outdated(self, store: Store, seen: int, current: int) -> bool:
        """Return whether a commit after generation `seen` touched what this update reads or writes."""
        if seen == current:
            return False
        if self._reads_any or PROV_GRAPH in self.reach:
            return True
        return any(
            quad.object in self.reach
            for generation in range(seen + 1, current + 1)
            for quad in store.quads_for_pattern(mint("commit", str(generation)), KG.touched, None, PROV_GRAPH)
        )


def _copy(checkpoint: Path, folder: Path) -> None:
    """Make a copy of a checkpoint that can be written to; tables, which no engine ever changes, are shared."""
    folder.mkdir()
    for path in checkpoint.iterdir():
        if path.suffix in _SHARED_SUFFIXES:
            (folder / path.name).hardlink_to(path)
        elif path.name != "LOCK" and not path.name.startswith("LOG"):
            shutil.copyfile(path, folder / path.name)


def _quads(path: Path) -> dict[NamedNode, list[Quad]]:
    found: dict[NamedNode, list[Quad]] = defaultdict(list)
    if path.exists():
        for quad in pyoxigraph.parse(path=path, format=RdfFormat.N_QUADS):
            if isinstance(quad.graph_name, NamedNode):
                found[quad.graph_name].append(quad)
    return found


def _skolemized(added: Mapping[NamedNode, Iterable[Quad]]) -> dict[NamedNode, list[Quad]]:
    return {
        graph: [
            Quad(triple.subject, triple.predicate, triple.object, graph)
            for triple in skolemize(graph, [quad.triple for quad in quads])
        ]
        for graph, quads in added.items()
    }


def _refuse_syntax_errors(update: str) -> None:
    try:
        Store().update(update, prefixes=PREFIXES)
    except SyntaxError as error:
        raise QuerySyntaxError(f"not a SPARQL update: {error}") from error
    except UnicodeEncodeError as error:
        raise QuerySyntaxError(f"the update holds a lone surrogate at position {error.start}") from None
    except RuntimeError:  # it refers to graphs that an empty store lacks: what it says is well formed
        return
