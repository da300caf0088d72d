"""Commits readings of sections, with the findings that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Quad

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.findings import commit_reviewed
from kg.provenance.load_records import RecordOrigin, Run, timestamp
from kg.provenance.promotion import build_load_patch
from kg.shacl.shapes import Shapes
from kg.vocabulary import EXTRACTED, KG, PROV, mint
from loaders.zoning.graph.derive import CodesRead, Findings
from loaders.zoning.graph.readings import METHOD, Reading, build_readings, get_reading_graph, load_readings
from loaders.zoning.graph.stored_codes import Codes
from loaders.zoning.readers.code_model import DOMAIN


def commit_readings(
    kg: KnowledgeGraph,
    name: str,
    readings: Mapping[tuple[str, str], Reading | None],
    run: Run,
    exclusive: Callable[[], AbstractContextManager[None]],
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
                kept = several.setdefault(key, list(stored.get(key, ())))
                kept[:] = [each for each in kept if each.reader != reader and each.is_of(sections[key])]
                kept += [] if reading is None else [reading]
        found = _derive(kg, name, several)
        if refused := _find_invalid(found):
            for key in [key for key in several if _extracted(name, key) in refused]:
                failed[key] = f"The reading violates a shape: {refused[_extracted(name, key)]}"
                del several[key]
            found = _derive(kg, name, several)
        replace = {graph: quads for graph, (quads, _) in found.items()}
        origins = {graph: origin for graph, (_, origin) in found.items()}
        now = timestamp(datetime.now(UTC))
        for key, kept in several.items():
            graph = get_reading_graph(name, key)
            replace[graph] = build_readings(name, key, kept)
            if kept:
                said = [(KG.method, Text(METHOD + each.reader)) for each in kept] + [(PROV.generatedAtTime, now)]
                origins[graph] = RecordOrigin("", (), (mint("graph", "src", DOMAIN, name, key),), said=said)
        commit_reviewed(store, replace, build_load_patch(run, store, replace, origins))
    return failed


def _derive(
    kg: KnowledgeGraph, name: str, readings: Mapping[str, Sequence[Reading]]
) -> dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]]:
    return dict(Findings(CodesRead(), Codes(kg.memory)).derive_again(kg.store, name, readings))


def _extracted(name: str, key: str) -> NamedNode:
    return mint("graph", "ext", DOMAIN, name, key)


def _find_invalid(found: Mapping[NamedNode, tuple[Sequence[Quad], RecordOrigin]]) -> Mapping[NamedNode, str]:
    """Find the graphs of findings in which a claim of a reading violates its shape, with the message."""
    invalid: dict[NamedNode, str] = {}
    for graph, (quads, _) in found.items():
        if not graph.value.startswith(EXTRACTED):
            continue
        own: set[object] = {
            quad.subject
            for quad in quads
            if quad.predicate == KG.method and isinstance(quad.object, Text) and quad.object.value.startswith(METHOD)
        }
        own |= {quad.object for quad in quads if quad.subject in own and quad.predicate == KG.quantity}
        for violation in _load_shapes().check([quad for quad in quads if quad.subject in own]) if own else ():
            if violation.blocks:
                invalid[graph] = violation.message
    return invalid


@cache
def _load_shapes() -> Shapes:
    """Load the record shapes of codes, open to the evidence of a fact."""
    return Shapes.load(bundle.folder("shapes") / "record-zoning.ttl", opened=True)
