"""Commits readings of sections with the findings that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import permissions
from kg.provenance.findings import commit_reviewed
from kg.provenance.load_records import Derived, RecordOrigin, Run, timestamp
from kg.provenance.promotion import build_load_patch
from kg.shacl.shapes import Shapes
from kg.vocabulary import KG, PROV, mint
from loaders.zoning.graph.derive import CodesRead, Findings
from loaders.zoning.graph.readings import (
    METHOD,
    Reading,
    build_reading,
    get_reading_graph,
    load_readings,
)
from loaders.zoning.graph.stored_codes import Codes
from loaders.zoning.readers.code_model import DOMAIN

Exclusive = Callable[[], AbstractContextManager[None]]
"""Opens a context in which no load runs."""


def commit_readings(
    kg: KnowledgeGraph,
    name: str,
    readings: Mapping[tuple[str, str], Reading | None],
    run: Run,
    exclusive: Exclusive,
) -> dict[str, str]:
    """Commit readings by section and reader, None to remove one, with the findings that follow.

    Returns the sections whose reading violates a shape and is not kept, each with the message. A reading of a text that
    has changed is left out.
    """
    if not readings:
        return {}
    store, failed = kg.store, dict[str, str]()
    with exclusive():
        sections, stored = Codes(kg.memory).load(store, name).sections, load_readings(store, name)
        several: dict[str, list[Reading]] = {}
        for (key, reader), reading in readings.items():
            if key in sections and (reading is None or reading.is_of(sections[key])):
                others = (each for each in several.get(key, stored.get(key, ())) if each.reader != reader)
                several[key] = [*others, *([] if reading is None else [reading])]
        while True:  # without the readings that violate a shape
            found = Findings(CodesRead(), Codes(kg.memory)).derive_again(store, name, several)
            invalid = _find_invalid(found)
            graphs = {key: mint("graph", "ext", DOMAIN, name, key) for key in several}
            refused = {key: invalid[graph] for key, graph in graphs.items() if graph in invalid}
            if not refused:
                break
            failed |= {key: f"The reading violates a shape: {message}" for key, message in refused.items()}
            several = {key: kept for key, kept in several.items() if key not in refused}
        replace = {graph: quads for graph, (quads, _) in found.items()}
        origins = {graph: origin for graph, (_, origin) in found.items()}
        now = timestamp(datetime.now(UTC))
        for key, reader in readings:
            graph = get_reading_graph(name, key, reader)
            kept = [each for each in several.get(key, ()) if each.reader == reader]
            if key in several:
                replace[graph] = [quad for each in kept for quad in build_reading(name, key, each)]
            if kept:
                said = (KG.method, Text(METHOD + reader)), (PROV.generatedAtTime, now)
                section = mint("graph", "src", DOMAIN, name, key)
                origins[graph] = RecordOrigin("", (), (section,), said=said, author=permissions.get_author())
        commit_reviewed(store, replace, build_load_patch(run, store, replace, origins))
    return failed


def _find_invalid(found: Derived) -> Mapping[NamedNode, str]:
    """Find the graphs of findings in which a claim of a reading violates its shape, with the message."""
    invalid: dict[NamedNode, str] = {}
    for graph, (quads, _) in found.items():
        own: set[object] = {
            quad.subject for quad in quads if quad.predicate == KG.method and str(quad.object).startswith(f'"{METHOD}')
        }
        own |= {quad.object for quad in quads if quad.subject in own and quad.predicate == KG.quantity}
        claims = [quad for quad in quads if quad.subject in own]
        for violation in _load_shapes().check(claims) if claims else ():
            if violation.blocks:
                invalid[graph] = violation.message
    return invalid


@cache
def _load_shapes() -> Shapes:
    """Load the record shapes of codes, open to the evidence of a fact."""
    return Shapes.load(bundle.folder("shapes") / "record-zoning.ttl", opened=True)
