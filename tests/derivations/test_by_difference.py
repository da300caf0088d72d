"""Inferred graphs follow every commit, in any order, and are computed as a whole by a new version of their rule."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.by_difference import open_inferred
from kg.derivations.protocol import Outcome
from kg.provenance import shipped
from kg.provenance.load_records import Agent, RecordOrigin, RowsOf, Run, SourceFile
from kg.provenance.shipped import INFERENCES, infer_graphs
from kg.store.oxigraph import OxigraphStore
from kg.tools.derivations import DEFINITIONS
from kg.vocabulary import CATALOG_GRAPH, DERIVED, EXTRACTED, KG, PROPERTIES_GRAPH, RDF, SKOS, mint, sha256

CONCEPTS = [mint("concept", f"Q{number}") for number in range(3)]
UNITS = [NamedNode(f"cpr://doc/x#p={number}") for number in range(3)]
RECORDS = [mint("graph", "src", domain, name) for domain in ("zoning", "wikibase") for name in "ab"]
MENTIONS = [NamedNode(f"{EXTRACTED}mentions/zoning/{name}") for name in "ab"]
VIEW = NamedNode(f"{DERIVED}skos/wikibase/a")
FILES = [SourceFile(sha256(name), f"/data/{name}.csv") for name in "xy"]
TRIPLES = [
    *((unit, RDF.type, kind) for unit, kind in zip(UNITS, (KG.Passage, KG.CodeSection, KG.TextUnit), strict=True)),
    *((unit, KG.mentions, concept) for unit in UNITS[:2] for concept in CONCEPTS[:2]),
    (CONCEPTS[0], SKOS.broader, CONCEPTS[1]),
    (CONCEPTS[1], SKOS.exactMatch, CONCEPTS[2]),
    (CONCEPTS[2], RDF.type, SKOS.Concept),
]
FOLLOWING = [each for graph, each in INFERENCES.items() if graph != PROPERTIES_GRAPH]  # whose files the store has not
GRAPHS = st.dictionaries(
    st.sampled_from([*RECORDS, *MENTIONS, VIEW]), st.lists(st.sampled_from(TRIPLES), max_size=4), max_size=3
)
STEPS = st.lists(st.tuples(GRAPHS, st.sampled_from([FILES[:1], FILES[1:], FILES])), max_size=8)


def commit(
    store: OxigraphStore, graphs: dict[NamedNode, list[tuple[NamedNode, NamedNode, NamedNode]]], files: list[SourceFile]
) -> None:
    """Replace graphs: records by rows of files, mentions by what the record of the same name would give."""
    origins = {
        graph: RecordOrigin("x", [*map(RowsOf, files)]) if graph in RECORDS else RecordOrigin("x", (), [RECORDS[0]])
        for graph in graphs
    }
    run = Run(Agent("loaders.zoning", "1"), sources=files)
    quads = {graph: [Quad(*triple, graph) for triple in triples] for graph, triples in graphs.items()}
    for graph in RECORDS:
        if quads.get(graph):
            quads[graph] = [
                Quad(NamedNode(f"{graph.value}#own"), KG.slug, Literal(files[-1].location), graph),
                *quads[graph],
            ]
    store.commit(quads, run.describe(store, origins))


def find_wrong(store: OxigraphStore) -> set[NamedNode]:
    return {graph for graph, each in INFERENCES.items() if each.compare(store._opened()) is not None}


@pytest.mark.hypothesis
@given(steps=STEPS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_order_of_commits_ends_in_what_the_whole_gives(steps: list) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder, OxigraphStore(Path(folder), infer=infer_graphs) as store:
        for graphs, files in steps:
            commit(store, graphs, files)
            for each in FOLLOWING:
                assert each.compare(store._opened()) is None


def test_a_new_version_of_a_rule_and_lost_quads_are_found_and_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OxigraphStore(tmp_path, infer=infer_graphs) as store:
        several = open_inferred(store)
        assert {each.definition.name for each in several} < DEFINITIONS.keys()
        assert [each.count_due() for each in several] == [Counter({"never derived": 1})] * len(several)
        assert several[-1].derive().graphs == 1
        assert [each.count_due() for each in several] == [Counter()] * len(several)
        commit(store, {RECORDS[0]: TRIPLES[:2], MENTIONS[0]: TRIPLES[4:6]}, FILES[:1])
        for each in several:
            store.infer_again(replace(each.inference, build=lambda _: iter(())).compare)
        lost = find_wrong(store)
        assert len(lost) == len(several)
        generation = store.statistics().generation
        assert [each.derive() for each in several] == [Outcome()] * len(several)
        assert all(each.derive(full=True).added for each in several)
        assert find_wrong(store) == set()
        assert store.statistics().generation == generation + len(several)
        catalog = INFERENCES[CATALOG_GRAPH]
        monkeypatch.setattr(shipped, "build_shipped_graphs", shipped.build_shipped_graphs.__wrapped__)  # not cached
        monkeypatch.setattr(shipped, "_content_sha256", shipped._content_sha256.__wrapped__)
        monkeypatch.setitem(INFERENCES, CATALOG_GRAPH, replace(catalog, rule=replace(catalog.rule, version="next")))
        due = {each.inference.graph: each.count_due() for each in open_inferred(store)}
        assert due == {graph: {"new version": 1} for graph in INFERENCES}
        described = set(store.graph(CATALOG_GRAPH))
        assert open_inferred(store)[0].derive().graphs == 1
        assert {each.inference.graph: each.count_due() for each in open_inferred(store)} == {
            graph: {} for graph in INFERENCES
        }
        assert set(store.graph(CATALOG_GRAPH)) == described
