"""Ontology, code lists and shapes are graphs of the store, written at open, and superclasses answer in plain SPARQL."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph
import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kg import bundle
from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.errors import ConflictError, ForbiddenError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import shipped
from kg.provenance.explanation import explain_iri, explain_triple
from kg.provenance.superclasses import ANCHORS, get_subclasses, infer_all
from kg.retrieval.concept_index import load_concepts
from kg.shacl.data_graph import DataGraph
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import select, term_text
from kg.tools.catalog.resources import list_resources
from kg.tools.schema.find_terms import find_terms
from kg.tools.schema.schema_measurement import measure_schema
from kg.tools.shacl.background_validation import load_dataset_shapes
from kg.user_graphs import UserGraphs
from kg.vocabulary import (
    BASE,
    CODES_GRAPH,
    DCTERMS,
    KG,
    OWL,
    PREFIXES,
    PROV_GRAPH,
    RDF,
    SH,
    SHAPES_GRAPH,
    SHIPPED_GRAPHS,
    SKOS,
    SUPERCLASS_GRAPH,
    TBOX_GRAPH,
    UNCOUNTED_GRAPHS,
    mint,
)
from loaders.sources import load
from tests.conftest import load_once
from tests.examples import spread
from tests.folders import open_graph

ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))
NOTES = mint("graph", "user", "notes")
SHARED = Path(os.environ.get("QUADCITE_SHARED", Path(__file__).parents[2] / "shared"))
LAWS = SHARED / "data" / "climate" / "CPR_huggingface_data_sample.parquet"
PASSAGE = NamedNode("cpr://doc/roteiro-solar-ficticio_br02#p=0")
DOCUMENT = NamedNode("cpr://doc/roteiro-solar-ficticio_br02")
HEAD = "".join(f"@prefix {name}: <{iri}> . " for name, iri in PREFIXES.items())


def triples(text: str) -> list[Triple]:
    return [quad.triple for quad in parse(HEAD + text, format=RdfFormat.TURTLE)]


def count(kg: KnowledgeGraph, pattern: str) -> int:
    [row] = select(kg.store.query, f"SELECT (COUNT(DISTINCT ?x) AS ?n) WHERE {{ {pattern} }}").rows
    return int(term_text(row[0]))


def all_quads(kg: KnowledgeGraph, graph: NamedNode) -> set[Quad]:
    return set(kg.store.graph(graph))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures of all domains in one store."""
    with open_graph(load_once(tmp_path_factory, "fixtures")) as kg:
        fixtures = bundle.folder("fixtures")
        load(kg, "hansard", [str(fixtures / "hansard")])
        load(kg, "zoning", [str(fixtures / "zoning")])
        yield kg


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "data") as each:
        yield each


# -- the shipped graphs


def test_open_writes_every_triple_that_ships_into_one_graph(kg: KnowledgeGraph) -> None:
    assert set(SHIPPED_GRAPHS) <= set(kg.store.graphs())
    held = Counter(quad.triple for graph in SHIPPED_GRAPHS for quad in kg.store.graph(graph))
    assert set(held.values()) == {1}
    for folder in ("ontology", "shapes"):
        for path in bundle.folder(folder).glob("*.ttl"):  # type: ignore[arg-type]
            named = {
                quad.triple
                for quad in parse(path.read_bytes(), format=RdfFormat.TURTLE)
                if BlankNode not in (type(quad.subject), type(quad.object))
            }
            assert named <= held.keys(), path.name
    assert Quad(KG.TextUnit, RDF.type, OWL.Class, TBOX_GRAPH) in all_quads(kg, TBOX_GRAPH)
    assert all(str(quad.subject).startswith(f"<{BASE}vocab/") for quad in kg.store.graph(CODES_GRAPH))
    assert any(quad.object == SH.NodeShape for quad in kg.store.graph(SHAPES_GRAPH))


def test_a_second_open_makes_no_commit(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as first:
        before = first.store.statistics().generation
    with open_graph(tmp_path / "data") as second:
        assert second.store.statistics().generation == before


@pytest.mark.long
def test_an_upgrade_replaces_the_shipped_graphs_and_leaves_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_graph(tmp_path / "data") as kg:
        graphs = {graph: list(kg.store.graph(graph)) for graph in SHIPPED_GRAPHS}
    newer = {graph: list(quads) for graph, quads in graphs.items()}
    version = next(quad for quad in newer[TBOX_GRAPH] if quad.subject == TBOX_GRAPH)
    newer[TBOX_GRAPH].remove(version)
    added = [
        Quad(TBOX_GRAPH, OWL.versionInfo, Literal("9.9.9"), TBOX_GRAPH),
        Quad(KG.Newer, RDF.type, OWL.Class, TBOX_GRAPH),
    ]
    newer[TBOX_GRAPH] += added
    with monkeypatch.context() as patched:
        patched.setattr(shipped, "_version", lambda: Literal("9.9.9"))
        patched.setattr(shipped, "build_shipped_graphs", lambda: newer)
        shipped._content_sha256.cache_clear()
        with open_graph(tmp_path / "data") as kg:
            assert all_quads(kg, TBOX_GRAPH) == set(newer[TBOX_GRAPH])
            assert kg.store.statistics().generation == 2
            runs = {
                quad.object
                for graph in (*SHIPPED_GRAPHS, SUPERCLASS_GRAPH)
                for quad in kg.store.graph(PROV_GRAPH)
                if quad.subject == graph and quad.predicate.value.endswith("wasGeneratedBy")
            }
            assert len(runs) == 1
            assert not load_problems(kg)
    shipped._content_sha256.cache_clear()
    with open_graph(tmp_path / "data") as kg:
        assert all_quads(kg, TBOX_GRAPH) == set(graphs[TBOX_GRAPH])


def load_problems(kg: KnowledgeGraph) -> list[str]:
    store = pyoxigraph.Store()
    store.extend([quad for graph in kg.store.graphs() for quad in kg.store.graph(graph)])
    return [
        f"{each.focus} {each.message}"
        for each in load_dataset_shapes().validate(DataGraph.from_store(store))
        if each.blocks
    ]


def test_a_read_only_open_serves_what_is_there(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:
        expected = all_quads(kg, TBOX_GRAPH)
    store = pyoxigraph.Store.read_only(str(tmp_path / "data" / "store"))
    assert set(store.quads_for_pattern(None, None, None, TBOX_GRAPH)) == expected


@pytest.mark.long
def test_shipped_graphs_and_superclasses_are_not_counted(everything: KnowledgeGraph, kg: KnowledgeGraph) -> None:
    graphs = {graph: everything.store.graph(graph) for graph in everything.store.graphs()}
    content = {graph: quads for graph, quads in graphs.items() if graph not in UNCOUNTED_GRAPHS}
    counted = everything.store.statistics()
    assert counted.graphs == len(content)
    # The record of the commit of the shipped graphs is not counted either; the head of the store is.
    recorded = len(kg.store.graph(PROV_GRAPH)) - 3
    assert sum(map(len, content.values())) == counted.quads + recorded
    schema = measure_schema(everything)
    assert not {"tbox", "shapes", "catalog", "ref/vocab", "inf/superclass"} & schema.graphs.keys()
    assert SH.NodeShape.value not in schema.classes
    assert schema.triples == len({quad.triple for quads in content.values() for quad in quads})
    assert not [iri for iri in load_concepts(everything).by_iri if iri.startswith(BASE)]
    sources = [each.title for each in list_resources(everything, 200).resources if each.kind == "source"]
    assert sources
    assert not {file.name for file in shipped.load_shipped_files()} & set(sources)


def test_an_empty_store_has_no_content(kg: KnowledgeGraph) -> None:
    counted = kg.store.statistics()
    assert (counted.quads, counted.graphs) == (0, 0)
    assert kg.search.status().units == 0


def test_dataset_shapes_hold_with_the_ontology_in_the_store(everything: KnowledgeGraph) -> None:
    assert load_problems(everything) == []


def test_every_code_in_the_data_has_an_english_label(everything: KnowledgeGraph) -> None:
    labels = {
        quad.subject
        for graph in everything.store.graphs()
        for quad in everything.store.graph(graph)
        if quad.predicate == SKOS.prefLabel and isinstance(quad.object, Literal) and quad.object.language == "en"
    }
    codes = {
        quad.object
        for graph in everything.store.graphs()
        if graph not in UNCOUNTED_GRAPHS
        for quad in everything.store.graph(graph)
        if isinstance(quad.object, NamedNode)
        and quad.object.value.startswith(f"{BASE}vocab/")
        and quad.predicate != SKOS.inScheme  # the list itself
    }
    assert len(codes) > 30
    assert codes - labels == set()


def test_users_cannot_write_the_shipped_graphs(kg: KnowledgeGraph) -> None:
    graphs = UserGraphs(kg)
    for graph in (*UNCOUNTED_GRAPHS,):
        with pytest.raises(ForbiddenError):
            graphs.put(graph, triples("<urn:a> dcterms:title 'a' ."), ADA)
        with pytest.raises(ForbiddenError):
            graphs.post(graph, triples("<urn:a> dcterms:title 'a' ."), ADA)
        with pytest.raises(ForbiddenError):
            graphs.update(f"INSERT DATA {{ GRAPH {graph} {{ <urn:a> <urn:b> <urn:c> }} }}", (), (), ADA)
    with pytest.raises(ConflictError):
        graphs.put(NOTES, triples("kg:TextUnit a owl:Class ."), ADA)


def test_why_names_the_file_that_ships_with_its_hash_and_version(kg: KnowledgeGraph) -> None:
    [found] = explain_triple(kg.store.query, KG.TextUnit, RDF.type, OWL.Class)
    core = bundle.folder("ontology") / "core.ttl"
    [source] = found.sources
    assert (found.graph, found.kind, found.agent) == (TBOX_GRAPH.value, "asserted", "quadcite")
    assert (source.locations, source.sha256) == (("ontology/core.ttl",), shipped.sha256(core.read_bytes()))
    assert source.revision == next(
        quad.object.value
        for quad in parse(core.read_bytes(), format=RdfFormat.TURTLE)
        if quad.predicate == OWL.versionInfo
    )


def test_terms_are_found_once(everything: KnowledgeGraph) -> None:
    found = [each.iri for each in find_terms(everything, "by right").terms]
    assert len(found) == len(set(found))


# -- superclasses


@pytest.mark.long
@pytest.mark.parametrize("anchor", ANCHORS, ids=lambda anchor: anchor.value.partition("#")[2])
def test_a_superclass_counts_the_sum_of_its_subclasses(everything: KnowledgeGraph, anchor: NamedNode) -> None:
    below = {name: count(everything, f"?x a {name}") for name in get_subclasses(anchor)}
    assert sum(1 for number in below.values() if number) >= 3
    assert count(everything, f"?x a {anchor}") == sum(below.values())
    use = measure_schema(everything).classes[anchor.value]
    assert use.entities == sum(below.values())
    assert use.properties[RDF.type.value].subjects == use.entities


def test_every_text_unit_of_the_index_is_a_text_unit(everything: KnowledgeGraph) -> None:
    assert count(everything, "?x schema:text ?text") > 100
    assert count(everything, "?x schema:text ?text MINUS { ?x a kg:Summary } MINUS { ?x a kg:TextUnit }") == 0


def test_superclasses_take_less_than_an_eighth_of_the_quads(everything: KnowledgeGraph) -> None:
    inferred = len(everything.store.graph(SUPERCLASS_GRAPH))
    counted = everything.store.statistics().quads
    assert 0 < inferred / counted <= 0.12


@pytest.mark.long
@pytest.mark.parametrize("domain", spread(["climate", "hansard", "wikibase", "zoning"], 1))
def test_superclasses_of_each_domain_alone_take_less_than_an_eighth_of_the_quads(tmp_path: Path, domain: str) -> None:
    with open_graph(tmp_path / "data") as kg:
        load(kg, domain, [str(bundle.folder("fixtures") / domain)], index=False)
        assert share_of_superclasses(kg) <= 0.12


@pytest.mark.skipif(not LAWS.exists(), reason="the shared sample of laws is absent")
def test_superclasses_of_seven_real_laws_take_less_than_an_eighth_of_the_quads(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:
        assert load(kg, "climate", [str(LAWS)], index=False).loaded == 7
        assert 0 < share_of_superclasses(kg) <= 0.12


def share_of_superclasses(kg: KnowledgeGraph) -> float:
    return len(kg.store.graph(SUPERCLASS_GRAPH)) / kg.store.statistics().quads


@pytest.mark.long
def test_superclasses_come_and_go_with_the_record(kg: KnowledgeGraph, tmp_path: Path) -> None:
    laws = tmp_path / "laws.csv"
    laws.write_bytes((bundle.folder("fixtures") / "climate" / "laws.csv").read_bytes())
    load(kg, "climate", [str(laws)])
    generation = kg.store.statistics().generation
    first = all_quads(kg, SUPERCLASS_GRAPH)
    assert first == wanted(kg)
    load(kg, "climate", [str(laws)])
    assert kg.store.statistics().generation == generation
    rows = laws.read_text(encoding="utf-8").splitlines(keepends=True)
    laws.write_text("".join(rows[:3]), encoding="utf-8")
    load(kg, "climate", [str(laws)], prune=True)
    assert all_quads(kg, SUPERCLASS_GRAPH) == wanted(kg)
    assert set() < all_quads(kg, SUPERCLASS_GRAPH) < first


def wanted(kg: KnowledgeGraph) -> set[Quad]:
    assert isinstance(kg.store, OxigraphStore)
    return set(infer_all(kg.store._opened()))


def test_nothing_is_inferred_from_what_people_write(kg: KnowledgeGraph) -> None:
    graphs = UserGraphs(kg)
    graphs.update(f"INSERT DATA {{ GRAPH {NOTES} {{ <urn:unit> a {KG.Passage} }} }}", (), (), ADA)
    assert all_quads(kg, SUPERCLASS_GRAPH) == set()
    load(kg, "climate", [str(bundle.folder("fixtures") / "climate" / "laws.csv")])
    found = all_quads(kg, SUPERCLASS_GRAPH)
    assert found == wanted(kg) != set()
    subject = next(iter(found)).subject
    with pytest.raises(ConflictError):
        graphs.update(f"INSERT DATA {{ GRAPH {NOTES} {{ {subject} a {KG.TextUnit} , {KG.Document} }} }}", (), (), ADA)
    graphs.delete(NOTES, ADA)
    assert all_quads(kg, SUPERCLASS_GRAPH) == found


def test_a_user_cedes_a_superclass_that_follows_from_a_load(kg: KnowledgeGraph) -> None:
    graph, unit = mint("graph", "src", "climate", "x"), NamedNode("cpr://doc/x#p=0")
    UserGraphs(kg).update(f"INSERT DATA {{ GRAPH {NOTES} {{ {unit} a {KG.TextUnit} }} }}", (), (), ADA)
    kg.store.commit({graph: [Quad(unit, RDF.type, KG.Passage, graph)]})
    assert all_quads(kg, SUPERCLASS_GRAPH) == {Quad(unit, RDF.type, KG.TextUnit, SUPERCLASS_GRAPH)}
    assert all_quads(kg, NOTES) == set()


def test_classes_of_a_record_decide_its_superclass(kg: KnowledgeGraph) -> None:
    graph, other = mint("graph", "src", "climate", "x"), mint("graph", "src", "climate", "y")
    unit = NamedNode("cpr://doc/x#p=0")
    superclass = {Quad(unit, RDF.type, KG.TextUnit, SUPERCLASS_GRAPH)}
    kg.store.commit({graph: [Quad(unit, RDF.type, KG.Passage, graph)]})
    kg.store.commit({other: [Quad(unit, RDF.type, KG.SpeechChunk, other)]})
    kg.store.commit({graph: [Quad(unit, DCTERMS.title, Literal("x"), graph)]})
    assert all_quads(kg, SUPERCLASS_GRAPH) == superclass
    kg.store.commit({graph: [Quad(unit, RDF.type, KG.TextUnit, graph)]})  # asserted, so not inferred
    assert all_quads(kg, SUPERCLASS_GRAPH) == set()
    kg.store.commit({graph: ()})
    assert all_quads(kg, SUPERCLASS_GRAPH) == superclass == wanted(kg)
    kg.store.commit({other: ()})
    assert all_quads(kg, SUPERCLASS_GRAPH) == set()


def test_a_store_without_superclasses_gets_them_at_open(tmp_path: Path) -> None:
    graph, unit = mint("graph", "src", "climate", "old"), NamedNode("cpr://doc/old#p=0")
    with OxigraphStore(tmp_path / "data") as store:
        store.commit({graph: [Quad(unit, RDF.type, KG.Passage, graph)]})
    with open_graph(tmp_path / "data") as kg:
        assert all_quads(kg, SUPERCLASS_GRAPH) == {Quad(unit, RDF.type, KG.TextUnit, SUPERCLASS_GRAPH)}


def test_why_leads_from_a_superclass_to_the_file(everything: KnowledgeGraph) -> None:
    [found] = explain_triple(everything.store.query, PASSAGE, RDF.type, KG.TextUnit)
    assert (found.graph, found.kind) == (SUPERCLASS_GRAPH.value, "inferred")
    assert "superclass@1" in found.configuration["rule"]
    assert "kg:Passage" in found.configuration["class"]
    [source, *_] = found.sources
    assert source.row is not None
    assert all(each.graph != SUPERCLASS_GRAPH.value for each in explain_iri(everything.store.query, PASSAGE))
