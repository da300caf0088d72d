"""An update of the measured counts gives what measuring everything gives, whatever the commits were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.errors import ConflictError, StoreError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.provenance.shipped import INFERENCES, infer_graphs, write_shipped_graphs
from kg.queries.pool import QueryPool
from kg.settings import Settings
from kg.shacl.incremental import get_generation
from kg.sparql.measured_schema import Schema
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch, select
from kg.tools.schema import schema_counts
from kg.tools.schema.describe_schema import describe_schema
from kg.tools.schema.schema_counts import Counts, to_example, to_text, update_counts
from kg.tools.schema.schema_measurement import SchemaCounts, get_schema, measure_counts, measuring, updating
from kg.vocabulary import BASE, KG, PROV_GRAPH, RDF, SUPERCLASS_GRAPH, XSD, mint, sha256
from loaders.sources import load
from tests.examples import dear
from tests.folders import open_graph
from tests.tools.made_up import DirectPool, MemoryStore, WordIndex
from tests.waiting import until

GRAPHS = [
    mint("graph", "src", "made", "a"),
    mint("graph", "src", "made", "b"),
    mint("graph", "ref", "place", "x"),
    NamedNode(BASE + "graph/user/one"),
]
NODES = [NamedNode(f"http://example.org/{name}") for name in "abcde"]
KINDS = [KG.Passage, KG.PolicyDocument, *(NamedNode(f"http://example.org/Kind{number}") for number in range(2))]
PROPERTIES = [NamedNode(f"http://example.org/p{number}") for number in range(3)]
VALUES = [
    *NODES,
    Literal("x"),
    Literal("x", language="en"),
    Literal("long " * 50, language="fr"),
    Literal(3),
    Literal("2020-01-01", datatype=XSD.date),
]
TYPES = st.tuples(st.sampled_from(NODES), st.just(RDF.type), st.sampled_from(KINDS))
OTHERS = st.tuples(*map(st.sampled_from, (NODES, PROPERTIES, VALUES)))
STEPS = st.lists(
    st.dictionaries(st.sampled_from(GRAPHS), st.lists(TYPES | OTHERS, max_size=6), min_size=1, max_size=2),
    min_size=2,
    max_size=4,
)


@contextmanager
def opened(folder: Path) -> Iterator[OxigraphStore]:
    store = OxigraphStore(folder, infer=infer_graphs)
    try:
        write_shipped_graphs(store)
        yield store
    finally:
        store.close()


def write(store: OxigraphStore, step: dict[NamedNode, list[tuple]]) -> None:
    run = Run(Agent("loaders.test", "1"))
    origins = {graph: RecordOrigin(sha256(graph.value), ()) for graph in step}
    quads = {graph: [Quad(*each, graph) for each in triples] for graph, triples in step.items()}
    with suppress(ConflictError):  # a user graph may not repeat what a source says
        store.commit(quads, run.describe(store, origins))


def forget(store: OxigraphStore) -> None:
    """Remove a property from the provenance of all graphs, which changes no graph of content."""
    hashes = select(store.query, f"SELECT ?g ?hash {{ GRAPH {PROV_GRAPH} {{ ?g {KG.sourceSha256} ?hash }} }}")
    gone = frozenset(Quad(row["g"], KG.sourceSha256, row["hash"], PROV_GRAPH) for row in hashes)  # type: ignore[arg-type]
    store.commit_provenance(Patch(remove=gone))


def measure(store: pyoxigraph.Store) -> Counts:
    memory = MemoryStore()
    memory.inner, memory.generation = store, get_generation(store)
    given = Settings(data_dir=Path("unused"), _env_file=None)
    return measure_counts(KnowledgeGraph(given, memory, WordIndex(), DirectPool(memory)))


def comparable(schema: Schema) -> object:
    """All counts, without the examples, and without the classes of the values of rdf:type of the instances of a class,
    for which the measurement takes that classes have no class."""
    uses = {None: schema.properties} | {name: use.properties for name, use in schema.classes.items()}
    return (
        {
            (name, iri): replace(use, example=None, classes={} if name and iri == RDF.type.value else use.classes)
            for name, found in uses.items()
            for iri, use in found.items()
        },
        {name: (use.entities, use.inferred) for name, use in schema.classes.items()},
        schema.holdings,
        schema.triples,
        schema.graphs,
        schema.families,
    )


def check_examples(counts: Counts, store: pyoxigraph.Store) -> None:
    """Assert that each example of content is one."""
    for iri, use in counts.properties.items():
        found = {to_example(quad.object) for quad in store.quads_for_pattern(None, NamedNode(iri), None)}
        assert use.example in found
    for kind, of in counts.classes.items():
        things = {quad.subject for quad in store.quads_for_pattern(None, RDF.type, NamedNode(kind))}
        assert of.example in {to_text(thing) for thing in things}
        for iri, use in of.properties.items():
            if iri != RDF.type.value:
                quads = (quad for thing in things for quad in store.quads_for_pattern(thing, NamedNode(iri), None))
                assert use.example in {to_example(quad.object) for quad in quads}


@settings(max_examples=dear(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_an_update_gives_what_measuring_everything_gives(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[NamedNode, list[tuple]]]
) -> None:
    folder = tmp_path_factory.mktemp("counts")
    with opened(folder) as store:
        write(store, steps[0])
        before = store.snapshot(store.statistics().generation)
        counts = measure(pyoxigraph.Store.read_only(str(before.path)))
        for step in steps[1:]:
            write(store, step)
            if len(step) > 1:
                forget(store)
            after = store.snapshot(store.statistics().generation)
            stores = [pyoxigraph.Store.read_only(str(each.path)) for each in (before, after)]
            updated = update_counts(counts, *stores, "now")
            expected = measure(stores[1])
            assert updated is not None
            assert comparable(updated.build_schema()) == comparable(expected.build_schema())
            check_examples(updated, stores[1])
            assert Counts.from_json(json.loads(json.dumps(asdict(updated)))) == updated
            before, counts = after, updated


def test_a_large_change_is_no_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        write(store, {GRAPHS[0]: [(NODES[0], PROPERTIES[0], NODES[1])]})
        before = store.snapshot(store.statistics().generation)
        write(store, {GRAPHS[0]: [(NODES[0], PROPERTIES[0], value) for value in VALUES]})
        after = store.snapshot(store.statistics().generation)
        stores = [pyoxigraph.Store.read_only(str(each.path)) for each in (before, after)]
        counts = measure(stores[0])
        assert update_counts(counts, *stores, "now") is not None
        monkeypatch.setattr(schema_counts, "MAX_QUADS", 20)
        assert update_counts(counts, *stores, "now") is None


def test_superclasses_that_are_inferred_again_are_measured_again(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        write(store, {GRAPHS[0]: [(NODES[0], RDF.type, KG.Passage)]})
        before = store.snapshot(store.statistics().generation)
        nothing = replace(INFERENCES[SUPERCLASS_GRAPH], build=lambda _: iter(()))
        assert store.infer_again(nothing.compare) == (0, 1)
        after = store.snapshot(store.statistics().generation)
        stores = [pyoxigraph.Store.read_only(str(each.path)) for each in (before, after)]
        assert update_counts(measure(stores[0]), *stores, "now") is None


def test_counts_that_do_not_fit_are_not_updated(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        write(store, {GRAPHS[0]: [(NODES[0], PROPERTIES[0], NODES[1])]})
        before = store.snapshot(store.statistics().generation)
        write(store, {GRAPHS[0]: []})
        after = store.snapshot(store.statistics().generation)
        stores = [pyoxigraph.Store.read_only(str(each.path)) for each in (before, after)]
        counts = replace(measure(stores[0]), properties={})
        assert update_counts(counts, *stores, "now") is None


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path) as kg:
        yield kg


@pytest.mark.long
def test_a_server_keeps_the_counts_in_line_by_updates(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def record(counts: Counts, *stores: pyoxigraph.Store | str) -> Counts | None:
        measured.append(counts.generation)
        return update_counts(counts, *stores)  # type: ignore[arg-type]

    monkeypatch.setattr("kg.tools.schema.schema_measurement.update_counts", record)
    monkeypatch.setattr("kg.tools.schema.schema_measurement.REST", 0.0)

    def follow() -> None:
        generation = kg.store.statistics().generation
        until(lambda: get_schema(kg, 0).generation == generation)
        assert comparable(get_schema(kg)) == comparable(measure_counts(kg).build_schema())

    with measuring(kg, look_s=0.05):
        follow()
        for number in range(3):
            write(kg.store, {GRAPHS[number]: [(NODES[number], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
            follow()
    assert len(measured) >= 3
    with measuring(kg, look_s=0.05):  # as after a restart
        write(kg.store, {GRAPHS[0]: []})  # type: ignore[arg-type]
        follow()
    assert len(measured) >= 4


@pytest.mark.long
@pytest.mark.parametrize("is_large", [False, True])
def test_no_checkpoint_is_held_that_serves_nobody(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    write(kg.store, {GRAPHS[0]: [(NODES[0], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
    first = kg.store.statistics().generation
    with measuring(kg, look_s=0.05):
        until(lambda: (kept := kg.memory.get("measurements")) is not None and kept._base is not None)
        if is_large:  # more changes than an update counts, so that it is postponed
            monkeypatch.setattr(schema_counts, "MAX_QUADS", 0)
            write(kg.store, {GRAPHS[1]: [(NODES[1], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
            until(lambda: kg.memory.get("measurements")._base is None)  # type: ignore[union-attr]
    for number in range(3):
        write(kg.store, {GRAPHS[2]: [(NODES[number], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
        kg.store.snapshot(kg.store.statistics().generation).release()
    kg.pool.close_snapshots_before(kg.store.statistics().generation)  # that of the worker which measured
    until(lambda: not (kg.settings.directory.snapshots / str(first)).exists())


@pytest.mark.long
def test_workers_of_the_queries_of_callers_close_states_that_nobody_reads(kg: KnowledgeGraph) -> None:
    write(kg.store, {GRAPHS[0]: [(NODES[0], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
    with QueryPool(kg.store, kg.settings) as kg.raw:
        read = kg.query("ASK {}", raw=True).generation
        with measuring(kg, look_s=0.05):
            for number in range(3):
                write(kg.store, {GRAPHS[2]: [(NODES[number], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
                kg.store.snapshot(kg.store.statistics().generation).release()
            until(lambda: not (kg.settings.directory.snapshots / str(read)).exists())
    kg.raw = None


@pytest.mark.long
def test_a_load_without_a_server_updates_the_saved_counts(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_saved() -> tuple[int, bool]:
        found = SchemaCounts(kg).load()
        assert found is not None
        saved = found[1]
        kept = kg.memory.get("measurements")
        assert kept is not None
        assert not kept.is_kept_up
        return saved.generation, comparable(saved.build_schema()) == comparable(measure_counts(kg).build_schema())

    get_schema(kg)
    for number in range(2):
        kg.memory.drop("measurements")  # as in another process
        with updating(kg):
            write(kg.store, {GRAPHS[number]: [(NODES[number], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
        assert read_saved() == (kg.store.statistics().generation, True)
    measured, _ = read_saved()
    monkeypatch.setattr(schema_counts, "MAX_QUADS", 0)
    with updating(kg):
        write(kg.store, {GRAPHS[0]: []})  # type: ignore[arg-type]
    assert read_saved() == (measured, False)
    monkeypatch.undo()
    with updating(kg):  # of which the saved counts are older
        write(kg.store, {GRAPHS[1]: []})  # type: ignore[arg-type]
    assert read_saved() == (measured, False)
    with measuring(kg), updating(kg):
        until(lambda: get_schema(kg, 0).generation == kg.store.statistics().generation)
        assert kg.memory.get("measurements").is_kept_up  # type: ignore[union-attr]


def test_updates_do_not_wait_for_the_rest_after_a_measurement(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kg.tools.schema.schema_measurement.REST", 1e6)
    with measuring(kg, look_s=0.05):
        until(lambda: get_schema(kg, 0).generation == kg.store.statistics().generation)
        write(kg.store, {GRAPHS[0]: [(NODES[0], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
        until(lambda: get_schema(kg, 0).generation == kg.store.statistics().generation)
        monkeypatch.setattr(schema_counts, "MAX_QUADS", 0)
        kg.memory.get("measurements")._next = 0.0  # type: ignore[union-attr]
        kept = get_schema(kg, 0)
        write(kg.store, {GRAPHS[1]: [(NODES[1], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
        until(lambda: kg.memory.get("measurements")._next > 1e5)  # type: ignore[union-attr]
        assert get_schema(kg, 0) is kept  # a large change waits


def test_a_server_starts_without_a_checkpoint(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = get_schema(kg)
    kg.memory.drop("measurements")

    def fail(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(OxigraphStore, "snapshot", fail)
    with measuring(kg):
        assert get_schema(kg) == schema


@pytest.mark.long
def test_an_update_after_loads_of_all_domains_gives_what_measuring_everything_gives(kg: KnowledgeGraph) -> None:
    before = kg.store.snapshot(kg.store.statistics().generation)
    counts = measure_counts(kg, before)
    for domain, path in (
        ("climate", "climate"),
        ("wikibase", "wikibase/concepts.json"),
        ("hansard", "hansard"),
        ("zoning", "zoning/upper_feign.json"),
        ("climate", "joined/climate"),
    ):
        load(kg, domain, [str(bundle.folder("fixtures") / path)])
        after = kg.store.snapshot(kg.store.statistics().generation)
        stores = [pyoxigraph.Store.read_only(str(each.path)) for each in (before, after)]
        updated, expected = update_counts(counts, *stores, "now"), measure_counts(kg, after)
        assert updated is not None
        assert comparable(updated.build_schema()) == comparable(expected.build_schema())
        check_examples(updated, stores[1])
        before, counts = after, updated


def test_counts_that_are_not_there_or_older_are_named_so(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    write(kg.store, {GRAPHS[0]: [(NODES[0], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
    with monkeypatch.context() as patch:
        patch.setattr("kg.tools.schema.schema_measurement._Measurements._begin", lambda *_: None)
        unmeasured = describe_schema(kg)
    assert unmeasured.triples is None
    assert any("measured for the first time" in note for note in unmeasured.notes)
    kg.memory.drop("measurements")
    kg.memory.drop("terms")
    measured = get_schema(kg).generation
    assert describe_schema(kg).notes == [note for note in describe_schema(kg).notes if "generation" not in note]
    monkeypatch.setattr("kg.tools.schema.schema_measurement._Measurements._begin", lambda *_: None)
    write(kg.store, {GRAPHS[1]: [(NODES[1], RDF.type, KG.Passage)]})  # type: ignore[arg-type]
    assert any(f"are those of generation {measured}" in note for note in describe_schema(kg).notes)
