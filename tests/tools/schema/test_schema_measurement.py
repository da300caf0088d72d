"""A measurement says what the data are made of, counts a triple once, and never makes anyone wait for a newer one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.errors import QueryLimitError, QueryMemoryError, QueryTimeoutError
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import load_declared_terms
from kg.settings import Settings
from kg.sparql.measured_schema import Schema
from kg.tools.schema import schema_measurement
from kg.tools.schema.schema_counts import get_family
from kg.tools.schema.schema_measurement import get_schema, measure_schema, measuring
from kg.vocabulary import BASE, DCTERMS, KG, PROV, PROV_GRAPH, RDF, SCHEMA, XSD, commit_iri, mint
from tests.examples import dear
from tests.tools.made_up import DirectPool, MemoryStore, WordIndex
from tests.waiting import HANG_S, until

LANG = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
GRAPHS = [mint("graph", "src", "made"), mint("graph", "src", "made", "b"), mint("graph", "ref", "x", "y"), PROV_GRAPH]
NODES = [NamedNode(f"http://example.org/{name}") for name in "abcd"]
PROPERTIES = [RDF.type, *(NamedNode(f"http://example.org/p{number}") for number in range(2))]
VALUES = [
    *NODES,
    Literal("x"),
    Literal("x", language="en"),
    Literal("x", language="fr"),
    Literal(3),
    Literal("2020-01-01", datatype=XSD.date),
]
QUADS = st.lists(
    st.builds(
        lambda s, p, o, g: Quad(s, p, o if p != RDF.type or isinstance(o, NamedNode) else NODES[0], g),
        *map(st.sampled_from, (NODES, PROPERTIES, VALUES, GRAPHS)),
    ),
    min_size=1,
    max_size=25,
)


def graph_of(quads: Iterable[Quad], folder=None) -> KnowledgeGraph:
    store = MemoryStore()
    store.inner.extend(quads)
    given = Settings(data_dir=folder or "unused", _env_file=None)
    return KnowledgeGraph(given, store, WordIndex(), DirectPool(store))


@settings(max_examples=dear(150))
@given(QUADS)
def test_it_agrees_with_counting_by_hand(quads: list[Quad]) -> None:
    schema = measure_schema(graph_of(quads))
    quads = list(set(quads))
    triples = {quad.triple for quad in quads}
    kinds: dict[object, set[str]] = {}
    for triple in triples:
        if triple.predicate == RDF.type:
            kinds.setdefault(triple.subject, set()).add(triple.object.value)

    def check(use, having) -> None:
        assert use.triples == len(having)
        assert use.subjects == len({t.subject for t in having})
        literals = [t.object for t in having if isinstance(t.object, Literal)]
        assert use.datatypes == Counter(literal.datatype.value for literal in literals)
        assert use.languages == Counter(literal.language for literal in literals if literal.language)
        nodes = [t.object for t in having if isinstance(t.object, NamedNode)]
        assert use.classes == Counter(kind for node in nodes for kind in kinds.get(node, {""}))
        assert use.example in {str(t.object) for t in having}

    assert schema.triples == len(triples)
    assert set(schema.properties) == {triple.predicate.value for triple in triples}
    for iri, use in schema.properties.items():
        check(use, [t for t in triples if t.predicate.value == iri])
    assert set(schema.classes) == {kind for found in kinds.values() for kind in found}
    for name, of_class in schema.classes.items():
        things = {thing for thing, found in kinds.items() if name in found}
        assert of_class.entities == len(things)
        mine = [t for t in triples if t.subject in things]
        assert set(of_class.properties) == {t.predicate.value for t in mine}
        for iri, use in of_class.properties.items():
            if iri != RDF.type.value:
                check(use, [t for t in mine if t.predicate.value == iri])
    assert schema.graphs == Counter(get_family(quad.graph_name.value) for quad in quads)
    for family, held in schema.holdings.items():
        here = [quad for quad in quads if get_family(quad.graph_name.value) == family]
        assert held.graphs == len({quad.graph_name for quad in here})
        assert held.properties == Counter(quad.predicate.value for quad in here)
        assert schema.families[family] == set(held.properties)


def test_passages_have_what_the_made_up_corpus_gives_them(kg, made):
    schema = measure_schema(kg)
    passages = schema.classes[KG.Passage.value]
    assert passages.entities == len(made)
    assert passages.properties[DCTERMS.isPartOf.value].classes == {KG.PolicyDocument.value: len(made)}
    assert passages.properties[SCHEMA.position.value].datatypes == {XSD.integer.value: len(made)}
    assert schema.generation == 1


def test_graphs_of_provenance_stand_apart(kg):
    schema = measure_schema(kg)
    assert {"prov", "src/climate", "ref/place"} <= set(schema.graphs)
    assert KG.sha256.value in schema.families["prov"]
    assert KG.sha256.value not in schema.families["src/climate"]


class TightPool(DirectPool):
    """Has the memory for queries of a part of the things alone."""

    def run(self, query, **options):
        if "MD5" not in query and "GRAPH ?graph {}" not in query:
            raise QueryMemoryError("too much")
        return super().run(query, **options)


@settings(max_examples=dear(20))
@given(QUADS)
def test_what_takes_too_much_memory_is_counted_in_parts(quads: list[Quad]) -> None:
    whole, tight = graph_of(quads), graph_of(quads)
    tight.pool = TightPool(tight.store)
    expected, schema = measure_schema(whole), measure_schema(tight)

    def counts(schema: Schema) -> object:
        uses = {None: schema.properties} | {name: use.properties for name, use in schema.classes.items()}
        return (
            {(name, iri): replace(use, example=None) for name, found in uses.items() for iri, use in found.items()},
            {name: use.entities for name, use in schema.classes.items()},
            schema.holdings,
        )

    assert counts(schema) == counts(expected)


def test_long_values_are_cut_in_examples():
    text = "long " * 200
    schema = measure_schema(graph_of([Quad(NODES[0], PROPERTIES[1], Literal(text, language="en"), GRAPHS[0])]))
    example = schema.properties[PROPERTIES[1].value].example
    assert example is not None
    assert example.endswith('…"@en')
    assert len(example) < 200


@pytest.mark.parametrize(
    ("graph", "family"),
    [("graph/src/climate/a/b", "src/climate"), ("graph/prov", "prov"), ("graph/ref/place/X", "ref/place")],
)
def test_a_family_is_the_first_two_steps_of_a_graphs_name(graph, family):
    assert get_family(BASE + graph) == family


def test_a_graph_that_is_none_of_ours_is_a_family_of_its_own():
    schema = measure_schema(graph_of([Quad(NODES[0], PROPERTIES[1], NODES[1], NamedNode("urn:x:y"))]))
    assert schema.graphs == {"urn:x:y": 1}


def test_every_declared_term_has_its_label_and_its_part_of_the_model():
    terms = load_declared_terms()
    assert terms[KG.Passage.value].kind == "class"
    assert terms[KG.Passage.value].domain == "climate"
    assert terms[KG.Passage.value].parents == (KG.TextUnit.value,)
    assert terms[KG.slug.value].kind == "property"
    assert terms[KG.slug.value].domain == "core"
    assert terms[BASE + "vocab/blockType/Text"].kind == "individual"
    assert terms[KG.Speech.value].domain == "parliament"
    modules = {file.stem for file in bundle.folder("ontology").glob("*.ttl")}
    assert {term.domain for term in terms.values()} == {name for name in modules if not name.startswith("align-")}


# When it is made, and what is served meanwhile.


def add(kg: KnowledgeGraph) -> None:
    node = NODES[kg.store.statistics().generation % len(NODES)]
    kg.store.update(f"INSERT DATA {{ GRAPH {GRAPHS[0]} {{ {node} a {NODES[0]} }} }}")


def settled(kg: KnowledgeGraph, generation: int) -> Schema:
    """Wait for the measurement of `generation`, as a client that asks again would see it."""
    until(lambda: get_schema(kg).generation >= generation)
    return get_schema(kg)


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(schema_measurement, "REST", 0.0)
    return graph_of([Quad(NODES[0], RDF.type, NODES[1], GRAPHS[0])], tmp_path)


def test_the_first_call_on_a_small_store_has_it_at_once(small):
    assert get_schema(small).generation == 1


def test_nothing_is_asked_again_while_nothing_changes(small):
    first = get_schema(small)
    asked = len(small.pool.asked)
    assert get_schema(small) is first
    assert len(small.pool.asked) == asked


def test_the_last_one_is_served_while_a_newer_one_is_made(small):
    first = get_schema(small)
    add(small)
    small.pool.hold.clear()
    assert get_schema(small) is first
    small.pool.hold.set()
    assert settled(small, 2).triples == 2


def test_the_newest_is_waited_for_if_asked(small):
    get_schema(small)
    add(small)
    assert get_schema(small, newest=True).generation == 2


def test_that_a_store_was_empty_is_not_served_once_it_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(schema_measurement, "REST", 0.0)
    empty = graph_of([], tmp_path)
    assert get_schema(empty).triples == 0
    add(empty)
    assert get_schema(empty).triples == 1


def test_a_large_store_shows_its_terms_until_it_is_measured(small):
    small.pool.hold.clear()
    schema = get_schema(small, wait_s=0.01)
    assert (schema.generation, schema.classes) == (0, {})
    assert schema.terms == load_declared_terms()
    small.pool.hold.set()
    assert settled(small, 1).classes


def test_many_who_ask_at_once_wait_for_one_measurement(small):
    small.pool.hold.clear()
    found: list[Schema] = []
    threads = [threading.Thread(target=lambda: found.append(get_schema(small))) for _ in range(8)]
    for thread in threads:
        thread.start()
    small.pool.hold.set()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len({id(schema) for schema in found}) == 1


def test_a_failure_leaves_the_old_one(small, caplog):
    first = get_schema(small)
    add(small)
    small.pool.failure = QueryTimeoutError("stopped")
    assert get_schema(small) is first
    until(lambda: "Cannot measure generation" in caplog.text)
    assert get_schema(small) is first
    small.pool.failure = None
    add(small)
    assert settled(small, 3).generation == 3


def test_the_end_of_a_command_is_no_failure_to_measure(small, caplog):
    small.pool.failure, small.pool.closed = QueryLimitError("stopped"), True
    get_schema(small)
    assert "Cannot measure" not in caplog.text


def test_a_failure_is_not_for_ever(small, monkeypatch):
    """A worker that was killed by the system leaves no server without a schema until the next commit."""
    monkeypatch.setattr(schema_measurement, "RETRY_S", 0.0)
    monkeypatch.setattr(schema_measurement, "REST", 0.0)
    small.pool.failure = QueryTimeoutError("stopped")
    assert get_schema(small).generation == 0
    small.pool.failure = None
    assert settled(small, 1).generation == 1


def test_measuring_takes_a_tenth_of_the_time_at_most(small, monkeypatch):
    monkeypatch.setattr(schema_measurement, "REST", 1e9)
    first = get_schema(small)
    add(small)
    assert get_schema(small) is first
    asked = len(small.pool.asked)
    assert get_schema(small) is first
    assert len(small.pool.asked) == asked


@pytest.mark.parametrize("recorded", [True, False])
def test_a_restart_has_the_last_one_at_once_if_its_commit_is_recorded(small, tmp_path, recorded):
    ended = Quad(commit_iri(1), PROV.endedAtTime, Literal("2020-01-01T00:00:00Z", datatype=XSD.dateTime), PROV_GRAPH)
    record = [ended] if recorded else []
    small.store.inner.extend(record)
    schema = get_schema(small)
    again = graph_of(record, tmp_path)
    assert (get_schema(again) == schema) == recorded
    assert (again.pool.asked == []) == recorded


def test_stopping_ends_a_measurement(empty, monkeypatch):
    """The thread has ended when the block has, whatever query it was at."""
    begun = threading.Event()

    def hang(query, *, cancellation, **options):
        stopped = threading.Event()
        cancellation.on_cancel(stopped.set)
        begun.set()
        assert stopped.wait(HANG_S)
        raise QueryLimitError("cancelled")

    with monkeypatch.context() as patch:
        patch.setattr(empty.pool, "run", hang)
        with measuring(empty):
            assert begun.wait(HANG_S)
    assert not [each for each in threading.enumerate() if each.name in ("measure", "schema-watch")]
    empty.store.commit({GRAPHS[0]: [Quad(NODES[0], RDF.type, NODES[1], GRAPHS[0])]})
    assert get_schema(empty, HANG_S).generation == 1, "calls can measure afterwards"
