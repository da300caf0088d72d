"""The names of properties of Wikidata that ship: their form, their truth in real data, and their graph."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.errors import ConflictError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.provenance.shipped import NAMES, infer_all_properties
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.property_names import find_property, load_property_labels
from kg.retrieval.reader import Reader
from kg.sparql.terms import bind
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch, select, term_text
from kg.tools.concepts.find import concept_properties
from kg.tools.entities.dereference import dereference, worded_name
from kg.tools.schema.describe_schema import describe_schema
from kg.tools.schema.find_terms import find_terms
from kg.tools.schema.schema_measurement import get_schema
from kg.user_graphs import UserGraphs
from kg.vocabulary import PQ, PROPERTIES_GRAPH, PSV, RDF, RDFS, TBOX_GRAPH, WD, WDNO, WDT, WIKIBASE, P, mint
from kg.wikidata_properties import DATATYPES, FILE, get_links, get_property_type, load_properties
from loaders.sources import load
from tests.folders import open_graph

SHARED = Path(os.environ.get("QUADCITE_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "wikibase"

ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))
NOTES = mint("graph", "user", "notes")


def raw(kg: KnowledgeGraph) -> pyoxigraph.Store:
    assert isinstance(kg.store, OxigraphStore)
    return kg.store._opened()


# -- the table


def test_each_line_is_a_property_and_they_are_sorted() -> None:
    text = (bundle.folder("ontology") / FILE).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert text.endswith("\n")
    assert not [line for line in lines if line.count("\t") != 4]
    numbers = [int(line.partition("\t")[0][1:]) for line in lines]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 500


def test_properties_have_an_id_a_datatype_and_names() -> None:
    for key, each in load_properties().items():
        assert key == each.id
        assert re.fullmatch(r"P[1-9][0-9]*", each.id)
        assert each.datatype in DATATYPES, each
        texts = (each.label, each.description, *each.aliases)
        assert [text for text in texts if not text.isprintable() or text != " ".join(text.split()) or not text] == []
        assert len({each.label, *each.aliases}) == 1 + len(each.aliases), each
        assert len(each.aliases) <= 8, each
        assert max(map(len, (each.label, *each.aliases))) <= 80, each
        assert len(each.description) <= 160, each
        assert not each.description.endswith("."), each


def test_no_two_properties_have_the_same_label_or_description() -> None:
    labels = Counter(each.label.casefold() for each in load_properties().values())
    descriptions = Counter(each.description for each in load_properties().values())
    assert [name for name, number in (labels + descriptions).items() if number > 1] == []


def test_links_and_types_are_those_of_the_vocabulary() -> None:
    assert get_property_type("wikibase-item").value.endswith("#WikibaseItem")
    assert get_property_type("commonsMedia").value.endswith("#CommonsMedia")
    assert "directClaimNormalized" in get_links("quantity")
    assert "directClaimNormalized" not in get_links("string")


def find_snaks(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the snaks anywhere in a JSON value."""
    if isinstance(value, dict):
        if isinstance(value.get("property"), str) and "snaktype" in value:
            yield value
        for each in value.values():
            yield from find_snaks(each)
    elif isinstance(value, list):
        for each in value:
            yield from find_snaks(each)


def read_documents() -> Iterator[Any]:
    """Read the entities in the shared files."""
    for path in sorted((SHARED / "json").glob("*.json")):
        yield json.loads(path.read_bytes())
    with gzip.open(SHARED / "sample-dump-20150815.json.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("{"):
                yield json.loads(line.rstrip().rstrip(","))


@pytest.mark.skipif(not SHARED.exists(), reason="the shared entities are absent")
def test_datatypes_are_those_of_the_statements_in_real_entities() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for document in read_documents():
        for snak in find_snaks(document):
            used[snak["property"]] |= {snak["datatype"]} if "datatype" in snak else set()
    known = load_properties()
    wrong = {
        name: (known[name].datatype, datatypes)
        for name, datatypes in used.items()
        if name in known and datatypes and datatypes != {known[name].datatype}
    }
    assert wrong == {}
    assert len(used.keys() & known.keys()) / len(used) > 0.9


# -- the graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path_factory.mktemp("properties")) as kg:
        yield kg


def all_triples(kg: KnowledgeGraph) -> Counter[str]:
    """Return the triples about properties of Wikidata, with the number of graphs that have each."""
    return Counter(
        str(quad.triple)
        for name in kg.store.graphs()
        for quad in kg.store.graph(name)
        if str(quad.subject).startswith(f"<{WD.iri}P")
    )


def load_property(kg: KnowledgeGraph, folder: Path, instance: str, name: str, label: str) -> None:
    entity = {
        "id": name, "type": "property", "datatype": "wikibase-item",
        "labels": {"en": {"language": "en", "value": label}, "de": {"language": "de", "value": "Ort der Geburt"}},
        "descriptions": {}, "aliases": {}, "claims": {},
    }  # fmt: skip
    file = folder / f"{name}.json"
    file.write_text(json.dumps(entity), encoding="utf-8")
    assert load(kg, "wikibase", [str(file)], base=instance).loaded == 1


def shipped(kg: KnowledgeGraph, node: NamedNode) -> set[Quad]:
    return {quad for quad in kg.store.graph(PROPERTIES_GRAPH) if quad.subject == node}


def test_plain_sparql_sees_the_names_of_predicates(graph: KnowledgeGraph) -> None:
    query = bind("SELECT ?label { ?p wikibase:directClaim $direct ; rdfs:label ?label }", direct=WDT.P19)
    assert [term_text(row["label"]) for row in select(graph.store.query, query)] == ["place of birth"]
    assert len({quad.subject for quad in graph.store.graph(PROPERTIES_GRAPH)}) == len(load_properties())
    assert graph.store.statistics().quads == 0
    assert load_concepts(graph).by_iri == {}


def test_why_names_the_table_and_the_rule(graph: KnowledgeGraph) -> None:
    [found] = explain_triple(graph.store.query, WD.P19, RDF.type, WIKIBASE.Property)
    assert [source.locations for source in found.sources] == [(f"ontology/{FILE}",)]
    assert found.rule is not None
    assert found.rule.iri == NAMES.iri.value


@pytest.mark.long
def test_a_property_that_a_source_describes_has_its_words_alone_and_gives_them_back(
    tmp_path: Path, graph: KnowledgeGraph
) -> None:
    before = shipped(graph, WD.P19)
    load_property(graph, tmp_path, "wikidata", "P19", "place of birth")
    assert shipped(graph, WD.P19) == set()
    assert set(all_triples(graph).values()) == {1}
    assert set(graph.store.graph(PROPERTIES_GRAPH)) == set(infer_all_properties(raw(graph)))
    source = next(name for name in graph.store.graphs() if name.value.endswith("/P19"))
    graph.store.commit({source: ()}, lambda _: Patch())
    assert shipped(graph, WD.P19) == before
    assert set(graph.store.graph(PROPERTIES_GRAPH)) == set(infer_all_properties(raw(graph)))


def test_the_properties_of_another_wikibase_have_no_names_of_wikidata(tmp_path: Path, graph: KnowledgeGraph) -> None:
    load_property(graph, tmp_path, "https://wikibase.example.org/", "P19", "colour of the roof")
    assert shipped(graph, WD.P19)
    predicate = "https://wikibase.example.org/prop/direct/"
    labels = load_property_labels(Reader(graph), [f"{predicate}P19", f"{predicate}P20", WDT.P20.value])
    assert labels == {f"{predicate}P19": "colour of the roof", WDT.P20.value: "place of death"}


def test_people_add_to_a_property_and_cannot_displace_it(graph: KnowledgeGraph) -> None:
    before = shipped(graph, WD.P20)
    users = UserGraphs(graph)
    users.update(f'INSERT DATA {{ GRAPH {NOTES} {{ {WD.P20} {RDFS.label} "place of crime"@en }} }}', (), (), ADA)
    assert shipped(graph, WD.P20) == before
    assert load_property_labels(Reader(graph), [WDT.P20.value]) == {WDT.P20.value: "place of death"}
    with pytest.raises(ConflictError):
        users.update(f"INSERT DATA {{ GRAPH {NOTES} {{ {WD.P20} a {WIKIBASE.Property} }} }}", (), (), ADA)
    users.delete(NOTES, ADA)


@pytest.mark.long
def test_a_store_of_an_earlier_version_keeps_each_triple_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Quad(WD.P20, RDFS.label, Literal("place of death", language="en"), NOTES)
    with monkeypatch.context() as before:
        before.setattr("kg.wikidata_properties.load_properties", dict)
        with open_graph(tmp_path) as kg:
            assert not kg.store.graph(PROPERTIES_GRAPH)
            UserGraphs(kg).put(NOTES, [written.triple], ADA)
            load_property(kg, tmp_path, "wikidata", "P19", "birth place")
            ontology = [quad for quad in kg.store.graph(TBOX_GRAPH) if quad.subject != TBOX_GRAPH]  # not its version
            kg.store.commit({TBOX_GRAPH: ontology}, lambda _: Patch())
    with open_graph(tmp_path) as kg:
        assert set(all_triples(kg).values()) == {1}
        assert shipped(kg, WD.P19) == set()
        assert len(shipped(kg, WD.P20)) > 10
        UserGraphs(kg).delete(NOTES, ADA)
        assert Quad(WD.P20, RDFS.label, written.object, PROPERTIES_GRAPH) in shipped(kg, WD.P20)


# -- names where statements are shown


@pytest.mark.parametrize(
    ("predicate", "property_"),
    [
        (WDT.P31, WD.P31.value), (P.P31, WD.P31.value), (PQ.P31, WD.P31.value), (PSV.P31, WD.P31.value),
        (WDNO.P31, WD.P31.value), (WD.P31, None), (RDFS.label, None), (NamedNode(WDT.iri + "Q31"), None),
        (NamedNode("http://www.wikidata.org/prop/other/P31"), None),
        (NamedNode("https://wikibase.example.org/a/prop/P2"), "https://wikibase.example.org/a/entity/P2"),
    ],
)  # fmt: skip
def test_the_property_of_a_predicate(predicate: NamedNode, property_: str | None) -> None:
    found = find_property(predicate.value)
    assert (found and found[0]) == property_


def test_a_property_that_a_source_describes_without_a_label_keeps_its_shipped_name(graph: KnowledgeGraph) -> None:
    described = mint("graph", "src", "wikibase", "wikidata", "P40")
    kind = Quad(WD.P40, RDF.type, WIKIBASE.Property, described)
    graph.store.commit({described: [kind]})
    assert not shipped(graph, WD.P40)
    names = load_property_labels(Reader(graph), [WDT.P40.value, P.P40.value])
    assert set(names.values()) == {load_properties()["P40"].label}
    label = Literal("offspring", language="en")
    graph.store.commit({described: [kind, Quad(WD.P40, RDFS.label, label, described)]})
    assert load_property_labels(Reader(graph), [WDT.P40.value]) == {WDT.P40.value: "offspring"}


def test_pages_schema_and_terms_show_labels_and_an_unknown_property_its_id(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with open_graph(tmp_path_factory.mktemp("shown")) as kg:
        snak = {"snaktype": "value", "datatype": "external-id", "datavalue": {"type": "string", "value": "x1"}}
        claims = {
            name: [{"mainsnak": {**snak, "property": name}, "type": "statement", "rank": "normal", "references": [],
                    "id": f"Q77$00000000-0000-0000-0000-00000000000{number}"}]
            for number, name in enumerate(("P214", "P99999999"))
        }  # fmt: skip
        (tmp_path / "Q77.json").write_text(json.dumps({"id": "Q77", "type": "item", "claims": claims}))
        assert load(kg, "wikibase", [str(tmp_path / "Q77.json")], base="wikidata").loaded == 1
        get_schema(kg, 60)
        described = describe_schema(kg, "wdt:P214")
        assert described.label == "VIAF ID"
        assert describe_schema(kg, "viaf id").name == "wdt:P214"
        assert describe_schema(kg, "wdt:P99999999").label == "P99999999"
        terms = find_terms(kg, "virtual international authority file", kind="property").terms
        assert (terms[0].curie, terms[0].label) == ("wdt:P214", "VIAF ID")
        page = dereference(kg, WD.Q77.value)
        assert page.labels[WDT.P214.value] == page.labels[P.P214.value] == "VIAF ID"
        assert WDT.P99999999.value not in page.labels
        assert worded_name(WDT.P99999999.value) == "P99999999"
        used = {each.pid: each.propLabel for each in concept_properties(kg).properties}
        assert used == {"P214": "VIAF ID", "P99999999": None}
