"""Consequences of a difference between stored and wanted graphs: the whole commit that it takes, before it is written.

A shared graph that nothing refers to any more is removed, a graph that a person wrote cedes triples that a source
asserts, inferred graphs follow, and the record of the commit and the head of the store are added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pyoxigraph import NamedNode, Store

from kg.store import difference, ownership
from kg.store.commits import Head, PreparedCommit, build_commit_record, reduce_patch
from kg.store.difference import Delta, Infer
from kg.store.ownership import HiddenGraphs, find_orphans, load_provenance
from kg.store.protocol import GraphChange, Patch
from kg.vocabulary import PROV_GRAPH, UNCOUNTED_GRAPHS


def prepare_commit(
    store: Store,
    old: Head,
    hidden_graphs: HiddenGraphs,
    deltas: list[Delta],
    kept: Collection[NamedNode],
    describe: Callable[[Sequence[GraphChange]], Patch] | None,
    infer: Infer | None,
) -> PreparedCommit:
    """Determine the commit that `deltas` take after the head `old`. The graphs in `kept` are never orphans.

    `describe` returns the accompanying changes of ``graph/prov`` and of derived graphs, `infer` those of inferred
    graphs. Nothing is written, but `deltas` is extended.
    """
    changes = [delta.change() for delta in deltas]
    orphans = _remove_orphans(store, deltas, changes, kept)
    described = describe(tuple(changes)) if describe else Patch()
    derived = difference.canonical_graphs(described.graphs)
    following = difference.compare_all(store, derived)
    following += hidden_graphs.find_restored(derived, following)
    deltas += following
    ownership.reject_copies(store, deltas)
    searched = len(changes)
    changes += [delta.change() for delta in following]
    if any(delta.removed for delta in following):
        # What only a removed derived graph still referred to.
        orphans += _remove_orphans(store, deltas, changes, [*kept, *orphans], searched)
    # The graphs that follow are written with the others, but are not reported, counted or described.
    consequences = [*infer(store, deltas, described)] if infer is not None else []
    returns = hidden_graphs.find_returns(store, [*deltas, *consequences])
    ceded = hidden_graphs.cessions(store, [*deltas, *consequences], returns)
    patch = ownership.add_cessions(store, described, ceded, returns, old.generation + 1)
    invalidated = hidden_graphs.find_invalidated(store, described.invalidated, deltas)
    patch = Patch(
        patch.remove | load_provenance(store, orphans) | invalidated.remove,
        patch.add | invalidated.add,
    )
    deltas += [cession.delta for cession in ceded]
    changes += [cession.delta.change() for cession in ceded]
    patched = reduce_patch(store, patch)
    touched = [*(delta.graph for delta in deltas), *sorted(invalidated.graphs, key=str)] or [PROV_GRAPH]
    gone = (statement for delta in deltas for statement in delta.removed)
    record = build_commit_record(old.generation + 1, touched, gone, patched)
    emptied = frozenset(delta.graph for delta in deltas if delta.content_sha256 is None)
    head = _count(store, old, deltas, added=len(patched.added) + len(record), removed=len(patched.removed))
    written = [*deltas, *consequences]
    out: dict[NamedNode, Collection[str]] = {
        delta.graph: delta.removed.keys() for delta in written if delta.removed and delta.graph not in emptied
    }
    into: dict[NamedNode, Collection[str]] = {delta.graph: delta.added.keys() for delta in written if delta.added}
    before = difference.canonical_statements(PROV_GRAPH, old.as_quads() if old.generation else ())
    after = difference.canonical_statements(PROV_GRAPH, [*record, *head.as_quads()])
    out[PROV_GRAPH], into[PROV_GRAPH] = [*patched.removed, *before], [*patched.added, *after]
    restored = hidden_graphs.invalidated.keys() & {delta.graph for delta in deltas} - emptied
    return PreparedCommit(head, deltas, tuple(changes), out, emptied, into, invalidated.graphs, restored)


def _remove_orphans(
    store: Store, deltas: list[Delta], changes: list[GraphChange], kept: Collection[NamedNode], since: int = 0
) -> list[NamedNode]:
    """Add the removal of the graphs that `changes` orphan to `deltas` and `changes`; return these graphs.

    `since` as in `find_orphans`.
    """
    orphans = find_orphans(store, changes, kept, since)
    for graph in orphans:
        deltas.append(Delta(graph, difference.load_statements(store, graph), {}, None))
        changes.append(deltas[-1].change())
    return orphans


def _count(store: Store, old: Head, deltas: Sequence[Delta], *, added: int, removed: int) -> Head:
    """Count the head after `old`. `added` and `removed` are the quads of ``graph/prov`` that accompany `deltas`.

    The graphs that describe content or follow from it are not counted, nor is a commit that changes only these.
    """
    counted = [delta for delta in deltas if delta.graph not in UNCOUNTED_GRAPHS]
    if deltas and not counted:
        return Head(old.generation + 1, old.quads, old.graphs)
    added += sum(len(delta.added) for delta in counted) + len(old.as_quads())
    removed += sum(len(delta.removed) for delta in counted) + (len(old.as_quads()) if old.has_counted else 0)
    created = [delta for delta in counted if not store.contains_named_graph(delta.graph)]
    emptied = [delta for delta in counted if delta.content_sha256 is None]
    # graph/prov counts as well, from the first commit of content.
    first = not old.graphs or not store.contains_named_graph(PROV_GRAPH)
    return Head(
        old.generation + 1,
        old.quads + added - removed,
        old.graphs + len(created) - len(emptied) + first,
    )
