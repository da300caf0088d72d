"""The engine of derivations after the commit: each graph of a kind has one derived graph, which follows its content.

`Engine.find_due` finds the inputs that commits since the last run have touched, and those that a change of the table
makes due (`AfterCommit.affected`), and records them; it reads no other graph. `Engine.run` computes due inputs in
batches, commits their outputs with provenance, and records them as done. A killed or paused run is continued by the
next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import islice
from random import sample
from typing import Final, Generic, TypeVar, cast

from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.protocol import Definition, Graph, Outcome, Progress
from kg.derivations.state import Known, State
from kg.provenance.load_records import Derived, RecordOrigin, Run
from kg.provenance.promotion import build_load_patch
from kg.sparql.terms import bind
from kg.store.protocol import Commit, Describe, Store, batched, named_node, select, select_each, term_text
from kg.vocabulary import PROV_GRAPH, commit_iri

_COMMITS: Final = 500
"""Maximum number of commits whose graphs are looked up. After more, the hashes of all inputs are compared."""
_FEW: Final = 50
"""Commits that touched no input, and their graphs, are looked up again by the next run, which is faster than to record
that they were."""
_AT_ONCE: Final = 200
_MOST_NAMED: Final = 2_000
"""Maximum number of graphs whose hashes are looked up by name."""

TOUCHED: Final = """
SELECT ?commit ?graph WHERE {
  VALUES ?commit { $commits } GRAPH $prov { ?commit kg:generation ?number }
  OPTIONAL { GRAPH $prov { ?commit kg:touched ?graph } }
}"""

COMMITTED: Final = "SELECT ?time WHERE { GRAPH $prov { $commit prov:endedAtTime ?time } }"

HASHES: Final = """
SELECT ?graph ?hash WHERE { GRAPH $prov { ?graph kg:contentSha256 ?hash } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

HASHES_OF: Final = """
SELECT ?graph ?hash WHERE { VALUES ?graph { $graphs } GRAPH $prov { ?graph kg:contentSha256 ?hash } }"""

Table = TypeVar("Table")
Part = TypeVar("Part")
Computation = TypeVar("Computation")


@dataclass(frozen=True, slots=True)
class Result:
    """The output for one input graph, its origin, and a value to remember of the input for `AfterCommit.affected`."""

    quads: Sequence[Quad]
    said: Sequence[tuple[NamedNode, Literal]] = ()
    remembered: bytes | None = None


class AfterCommit(Generic[Table, Part]):
    """The computation of a derivation after the commit, from each graph and a `Table` of other inputs, None for most.

    A `Part` names the part of an input that a change of the table concerns.
    """

    batch_quads: int = 50_000
    """Quads from which a batch is committed."""

    def __init__(self, kg: Graph) -> None:
        self.store: Final = kg.store

    def begin(self) -> None:
        """Prepare the store for a run, before due inputs are found."""

    def compute(self, due: Mapping[NamedNode, Part | None], table: Table) -> Iterator[tuple[NamedNode, Result]]:
        """Compute the outputs of these inputs. It may end before the last one, to be continued by another run."""
        raise NotImplementedError

    def load_table(
        self, saved: bytes | None, since: int, touched: Collection[NamedNode] | None
    ) -> tuple[Table | None, Table]:
        """Load the table that was saved at generation `since`, None if none was, and the current one.

        `touched` are the graphs that commits have touched since, None if that is not known.
        """
        return None, cast(Table, None)

    def save_table(self, table: Table) -> bytes:
        """Write a table for `load_table`."""
        return b""

    def affected(
        self, before: Table, after: Table, finished: Iterable[tuple[NamedNode, bytes | None]]
    ) -> Mapping[NamedNode, Part | None]:
        """Find the inputs among `finished` whose output may differ with another table, with the parts, None: all."""
        return {graph: None for graph, _ in finished}

    def configure(self, table: Table) -> Mapping[str, str]:
        """Return the configuration of the run in provenance."""
        return {}

    def describe(
        self, run: Run, replace: dict[NamedNode, Sequence[Quad]], origins: dict[NamedNode, RecordOrigin]
    ) -> Describe:
        """Return the patch of a batch. Graphs that the outputs share can be added to it."""
        return run.describe(self.store, origins)


class Whole:
    """The computation of a derivation whose outputs follow from all inputs together, such as links between all."""

    config: Mapping[str, str] = {}
    """The configuration of the run in provenance."""

    def compute(self, before: bytes | None, touched: Collection[NamedNode]) -> tuple[Derived, bytes]:
        """Compute the outputs, and summarize the inputs for the next run.

        With the summary of the last run, outputs that are as they were then can be left out; `touched` are the inputs
        that commits have touched since. Outputs that the store has and that no longer follow are empty.
        """
        raise NotImplementedError

    def prepare(self, made: Derived) -> None:
        """Update what follows from these outputs, before their commit."""


@dataclass(slots=True)
class Due(Generic[Table, Part]):
    """Due inputs with the hash of their content, those that the store no longer has, and the table."""

    table: Table
    hashes: dict[NamedNode, str]
    gone: Sequence[NamedNode] = ()
    parts: Mapping[NamedNode, Part | None] = field(default_factory=dict)


class Opened(Generic[Computation]):
    """A derivation of a store. Its computation is imported when it is needed, unless it is given."""

    def __init__(self, kg: Graph, state: State, definition: Definition, given: Computation | None = None) -> None:
        self.definition: Final = definition
        self._name: Final = definition.name
        self._kg: Final = kg
        self._store: Final = kg.store
        self._state: Final = state
        self._given: Final = given

    @cached_property
    def _derivation(self) -> Computation:
        if self._given is not None:
            return self._given
        module, _, name = self.definition.computation.rpartition(".")
        made: Computation = getattr(import_module(module), name)(self._kg)
        return made

    def is_used(self) -> bool:
        """Whether the store has input, or has had some."""
        asked = self.definition.any_input
        return not asked or self._state.load(self._name) is not None or bool(self._store.query(asked))

    def count_due(self) -> Counter[str]:
        """Count the due inputs by reason, without those that a change of the table makes due, and record nothing."""
        known, reason = self.load_known()
        if known is None:
            return +Counter({reason: len(self._load_inputs())})
        return Counter(self._explain_due(self.find_touched(known)).values())

    def _explain_due(self, touched: Collection[NamedNode] | None) -> Mapping[NamedNode, str]:
        """Find why inputs are due, if commits have touched these, None: perhaps all."""
        if touched is None:
            touched = self._load_inputs()
        return dict.fromkeys(touched, "changed")

    def _load_inputs(self, graphs: Collection[NamedNode] | None = None) -> dict[NamedNode, str]:
        return load_hashes(self._store, self.definition.reads, graphs)

    def load_known(self) -> tuple[Known | None, str]:
        """Load the last run of this version on this state of the store; None, with the reason, if there is none."""
        known = self._state.load(self._name)
        if known is None:
            return None, "never derived"
        if known.version != self._version:
            return None, "new version"
        if read_time(self._store, known.latest) != known.committed:
            return None, "another state of the store"  # as after the restoration of a backup
        return known, ""

    @property
    def _version(self) -> str:
        return f"{self.definition.version} {self.definition.find_others(self._kg.settings)}".strip()

    def is_current(self) -> bool:
        """Whether commits have touched no input since the last run."""
        known, _ = self.load_known()
        return known is not None and self.find_touched(known) == set()

    def find_touched(self, known: Known) -> set[NamedNode] | None:
        """Find the inputs that commits since the last run have touched; None if that is not known."""
        return self.select_inputs(find_touched(self._store, known.generation, self._store.statistics().generation))

    def select_inputs(self, graphs: Collection[NamedNode] | None) -> set[NamedNode] | None:
        """Select the inputs among graphs."""
        reads = tuple(self.definition.reads)
        return None if graphs is None else {graph for graph in graphs if graph.value.startswith(reads)}

    def save(self, compared: bytes = b"", generation: int | None = None) -> None:
        """Record a run that knows the changes of the store up to a generation, None: all."""
        latest = self._store.statistics().generation
        known = Known(
            self._version,
            latest if generation is None else generation,
            compared,
            latest,
            read_time(self._store, latest),
        )
        self._state.save(self._name, known)


class WholeEngine(Opened[Whole]):
    """A derivation of one whole."""

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Compute the outputs again if commits have touched inputs since the last run, or all outputs."""
        generation = self._store.statistics().generation
        known, _ = self.load_known()
        graphs = None if known is None or full else find_touched(self._store, known.generation, generation)
        touched = self.select_inputs(graphs)
        outcome = Outcome()
        if known is not None and touched == set():
            if _are_many(graphs, generation - known.generation):
                self.save(known.compared, generation)
            return outcome
        before = None if known is None or touched is None else known.compared
        made, compared = self._derivation.compute(before, touched or ())
        if made or compared != before:
            outcome.graphs = len(made)
            self._derivation.prepare(made)
            run = self.definition.start(self._derivation.config)
            if differing := {graph: made[graph] for graph in self._select_differing(made)}:
                outcome.add(run, commit_derived(self._store, run, differing))
        self.save(compared, generation)
        return outcome

    def find_differing(self, most: int) -> list[NamedNode]:
        """Compute all outputs again, and find up to `most` that the store has in another state.

        Nothing is compared if commits have touched inputs since the last run.
        """
        if not self.is_current():
            return []
        return list(islice(self._select_differing(self._derivation.compute(None, ())[0]), most))

    def _select_differing(self, made: Derived) -> Iterator[NamedNode]:
        return (graph for graph, (quads, _) in made.items() if set(quads) != set(self._store.graph(graph)))


class Engine(Opened[AfterCommit[Table, Part]], Generic[Table, Part]):
    """A derivation of a store after the commit."""

    _run: Run | None = None

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Compute the due outputs, or all outputs."""
        return self.run(self.find_due(full=full), on_progress)

    def find_due(self, *, full: bool = False) -> Due[Table, Part]:
        """Find and record the due inputs; with `full`, all."""
        derivation, state = self._derivation, self._state
        derivation.begin()
        generation = self._store.statistics().generation
        known, reason = self.load_known()
        if known is None or full:
            return self._begin(reason or "asked for", generation)
        graphs = find_touched(self._store, known.generation, generation)
        before, table = derivation.load_table(known.compared, known.generation, graphs)
        touched = self.select_inputs(graphs)
        parts: Mapping[NamedNode, Part | None] = {}
        with state.writing():
            current, changes = self._find_changes(touched)
            for graph, reason in changes.items():
                state.mark_due(self._name, [graph], reason)
            if before is not None and before != table:
                parts = derivation.affected(before, table, state.iterate_finished(self._name))
                state.mark_due(self._name, parts, "affected")
            if touched != set() or before != table or _are_many(graphs, generation - known.generation):
                self.save(known.compared if before == table else derivation.save_table(table), generation)
        return self._load_due(table, parts, current)

    def _explain_due(self, touched: Collection[NamedNode] | None) -> Mapping[NamedNode, str]:
        return {**self._state.load_due(self._name), **self._find_changes(touched)[1]}

    def find_differing(self, most: int) -> list[NamedNode]:
        """Compute up to `most` outputs again, chosen by chance, and find those that the store has in another state.

        Inputs that are due, or that commits have touched since the last run, are not compared.
        """
        derivation, store = self._derivation, self._store
        known, _ = self.load_known()
        if known is None:
            return []
        before, table = derivation.load_table(
            known.compared, known.generation, find_touched(store, known.generation, store.statistics().generation)
        )
        stored = self._state.load_hashes(self._name) if before == table else {}
        chosen = choose(stored.keys() - self._state.load_due(self._name), most)
        current = self._load_inputs(chosen)
        same = {graph: None for graph in chosen if current.get(graph) == stored[graph]}
        differing = []
        for graph, result in derivation.compute(same, table):
            output = self.definition.get_output(graph)
            if set(result.quads) != set(store.graph(output)):
                differing.append(output)
        return differing

    def _find_changes(self, touched: Collection[NamedNode] | None) -> tuple[dict[NamedNode, str], dict[NamedNode, str]]:
        """Find the hashes of the inputs among `touched`, None: all, and why those are due that have changed."""
        if touched is not None and not touched:
            return {}, {}
        current = self._load_inputs(touched)
        stored = self._state.load_hashes(self._name, touched)
        changes = {graph: "new" for graph in current if graph not in stored}
        for graph, digest in stored.items():
            if graph not in current:
                changes[graph] = "deleted"
            elif current[graph] != digest:
                changes[graph] = "changed"
        return current, changes

    def _begin(self, reason: str, generation: int) -> Due[Table, Part]:
        """Record that everything is due. Outputs whose input is gone, perhaps before there was a state, are removed."""
        derivation, state = self._derivation, self._state
        _, table = derivation.load_table(None, 0, None)
        inputs = self._load_inputs()
        right = {self.definition.get_output(graph) for graph in inputs}
        orphans = [graph for graph in load_hashes(self._store, [self.definition.writes]) if graph not in right]
        for part in batched(orphans, _AT_ONCE):
            self._commit(dict.fromkeys(part, ()), {}, table, Outcome())
        with state.writing():
            state.remove(self._name, state.load_hashes(self._name).keys() - inputs.keys())
            state.mark_due(self._name, inputs, reason)
            self.save(derivation.save_table(table), generation)
        return self._load_due(table, {}, inputs)

    def _load_due(
        self, table: Table, parts: Mapping[NamedNode, Part | None], known: Mapping[NamedNode, str]
    ) -> Due[Table, Part]:
        due = self._state.load_due(self._name)
        others = self._load_inputs([graph for graph in due if graph not in known])
        hashes = {**known, **others}
        ordered = {graph: hashes[graph] for graph in due if graph in hashes}
        return Due(table, ordered, [graph for graph in due if graph not in hashes], parts)

    def run(self, due: Due[Table, Part], on_progress: Progress | None = None) -> Outcome:
        """Compute and commit the outputs of due inputs."""
        outcome = Outcome()
        for gone in batched(due.gone, _AT_ONCE):
            self._commit(dict.fromkeys(map(self.definition.get_output, gone), ()), {}, due.table, outcome)
            self._state.remove(self._name, gone)
        todo = {graph: due.parts.get(graph) for graph in due.hashes}
        batch: dict[NamedNode, Result] = {}
        size = 0
        for graph, result in self._derivation.compute(todo, due.table):
            batch[graph] = result
            size += len(result.quads)
            outcome.graphs += 1
            if size >= self._derivation.batch_quads:
                self._finish(batch, due, outcome)
                batch, size = {}, 0
            if on_progress is not None:
                on_progress(outcome.graphs, len(todo), f"finding {self._name}")
        if batch:
            self._finish(batch, due, outcome)
        return outcome

    def _finish(self, batch: Mapping[NamedNode, Result], due: Due[Table, Part], outcome: Outcome) -> None:
        """Commit the outputs of a batch, then record its inputs as done."""
        replace: dict[NamedNode, Sequence[Quad]] = {}
        origins: dict[NamedNode, RecordOrigin] = {}
        for graph, result in batch.items():
            output = self.definition.get_output(graph)
            replace[output] = result.quads
            origins[output] = RecordOrigin(due.hashes[graph], (), [graph], self.definition.get_rule(), result.said)
        self._commit(replace, origins, due.table, outcome)
        with self._state.writing():
            for graph, result in batch.items():
                keeps = due.parts.get(graph) is not None
                self._state.finish(self._name, graph, due.hashes[graph], result.remembered, keeps=keeps)
            latest = self._store.statistics().generation
            self._state.move(self._name, latest, read_time(self._store, latest))

    def _commit(
        self,
        replace: dict[NamedNode, Sequence[Quad]],
        origins: dict[NamedNode, RecordOrigin],
        table: Table,
        outcome: Outcome,
    ) -> None:
        if self._run is None:
            self._run = self.definition.start(self._derivation.configure(table))
        describe = self._derivation.describe(self._run, replace, origins)
        outcome.add(self._run, self._store.commit(replace, describe))


def commit_derived(store: Store, run: Run, made: Derived) -> Commit:
    """Commit derived graphs with their provenance, and the edges that follow from claims in them."""
    replace = {graph: quads for graph, (quads, _) in made.items()}
    origins = {graph: origin for graph, (_, origin) in made.items()}
    return store.commit(replace, build_load_patch(run, store, replace, origins))


def choose(graphs: Iterable[NamedNode], most: int) -> list[NamedNode]:
    """Choose up to `most` graphs by chance."""
    several = sorted(graphs, key=str)
    return sample(several, min(most, len(several)))


def read_time(store: Store, generation: int) -> str:
    """Read the time of a commit; empty if the store has none of this generation."""
    rows = select(store.query, bind(COMMITTED, prov=PROV_GRAPH, commit=commit_iri(generation)))
    return next((term_text(row["time"]) for row in rows), "")


def _are_many(graphs: Collection[NamedNode] | None, commits: int) -> bool:
    return commits > _FEW or (graphs is not None and len(graphs) > _FEW)


def find_touched(store: Store, since: int, until: int) -> set[NamedNode] | None:
    """Find the graphs that commits after `since` touched; None if that is not known."""
    if until - since > _COMMITS or until < since:
        return None
    commits = [commit_iri(number) for number in range(since + 1, until + 1)]
    if not commits:
        return set()
    found = select(store.query, bind(TOUCHED, prov=PROV_GRAPH, commits=commits)).rows
    if len({commit for commit, _ in found}) < len(commits):
        return None
    return {graph for _, graph in found if isinstance(graph, NamedNode)}


def load_hashes(
    store: Store, reads: Sequence[str], graphs: Collection[NamedNode] | None = None
) -> dict[NamedNode, str]:
    """Load the stored graphs whose names begin as `reads`, or those of them in `graphs`, with their content hashes."""
    if graphs is not None and len(graphs) <= _MOST_NAMED:
        rows = select_each(store.query, HASHES_OF, "graphs", graphs, prov=PROV_GRAPH)
        return {named_node(row["graph"]): term_text(row["hash"]) for row in rows}
    found: dict[NamedNode, str] = {}
    for prefix in reads:
        for row in select(store.query, bind(HASHES, prov=PROV_GRAPH, prefix=Literal(prefix))):
            graph = named_node(row["graph"])
            if graphs is None or graph in graphs:
                found[graph] = term_text(row["hash"])
    return found
