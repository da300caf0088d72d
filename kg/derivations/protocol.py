"""What every derivation offers to `kg status`, `kg derive` and `kg doctor`, of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from pyoxigraph import NamedNode

from kg.provenance.load_records import Agent, Rule, Run
from kg.settings import Settings
from kg.store.protocol import Commit, Store
from kg.vocabulary import BASE, DERIVED

_GRAPHS: Final = f"{BASE}graph/"

Progress = Callable[[int, int | None, str], None]

Kind = Literal["with the record", "by difference", "after the commit", "aggregate"]
"""When a derivation is computed: in the commit of the records that it is derived from; in every commit, from the quads
that it adds and removes; after the commit; or from the differences of two states of the store."""


class Graph(Protocol):
    """A store with the settings of its data directory."""

    @property
    def store(self) -> Store:
        """The store."""

    @property
    def settings(self) -> Settings:
        """The settings."""


@dataclass(slots=True, eq=False)
class Definition:
    """A derivation apart from its computation, so that due graphs are counted without importing that."""

    name: str
    """Its name in the state, in `kg status` and `kg derive`."""
    purpose: str
    """What it derives, for the help and the documentation."""
    kind: Kind
    version: str = ""
    """A new version computes everything again. Recorded in ``graph/prov`` with each run."""
    reads: Sequence[str] = ()
    """How the names of input graphs begin."""
    writes: str = ""
    """How the names of output graphs begin."""
    computation: str = ""
    """The class of the computation of loaders, made for a graph."""
    any_input: str = ""
    """The query whether a store has input."""
    find_others: Callable[[Settings], str] = lambda settings: ""
    """Describes other inputs of all outputs, such as installed models."""
    needs_source: bool = False
    """Whether it needs what only a source has, so that due inputs are to be loaded again."""
    after: Sequence[str] = ()
    """The domains after whose loads it is computed, all if empty. After other loads its changed inputs stay due."""
    agent: str = ""
    """The name of its runs in ``graph/prov``, else that of the module of the computation."""

    def get_output(self, source: NamedNode) -> NamedNode:
        """Return the name of the output of an input, if each has one."""
        return NamedNode(self.writes + source.value.removeprefix(self.reads[0]).removeprefix(_GRAPHS))

    def get_rule(self) -> Rule | None:
        """Return the rule that computes its outputs; None for graphs of claims, whose method is in them."""
        return Rule(self.name, self.version, self.purpose) if self.writes.startswith(DERIVED) else None

    def start(self, config: Mapping[str, str]) -> Run:
        """Start a run."""
        return Run(Agent(self.agent or self.computation.rpartition(".")[0], self.version), config)


@dataclass(slots=True)
class Outcome:
    """The outcome of a run. `run` is the IRI of the run in ``graph/prov``, None if nothing was committed."""

    run: str | None = None
    graphs: int = 0
    added: int = 0
    removed: int = 0

    def add(self, run: Run, commit: Commit) -> None:
        """Add a commit of a run."""
        if any(change.content_sha256 is not None for change in commit.changes):
            self.run = run.iri.value
        self.added += commit.added
        self.removed += commit.removed


class Derivation(Protocol):
    """Graphs or counts that are derived from the graphs of a store, and can be computed again at any time."""

    @property
    def definition(self) -> Definition:
        """Its name, kind and version, which do not depend on the store."""

    def count_due(self) -> Counter[str]:
        """Count the graphs that are due, by reason. Records nothing."""

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Compute the due graphs, or all graphs."""

    def find_differing(self, most: int) -> list[NamedNode]:
        """Compute up to `most` graphs again, chosen by chance, and find those that the store has in another state."""
