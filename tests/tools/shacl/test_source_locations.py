"""A result about the store stands at the file and row that its node was read from, as `kg why` says too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.settings import Settings
from kg.shacl.report import Location, Violation
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Term
from kg.tools.shacl.source_locations import Locator
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, RDF, SCHEMA, SKOS, mint
from loaders import sources

CLIMATE = Path(__file__).parent.parent.parent.parent / "fixtures" / "climate"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OxigraphStore]:
    folder = tmp_path_factory.mktemp("data")
    settings = Settings(_env_file=None, data_dir=folder)  # type: ignore[call-arg]
    with OxigraphStore(folder) as store:
        kg = KnowledgeGraph(settings, store, cast(Any, None), cast(Any, None))
        sources.load(kg, "climate", [str(CLIMATE)], index=False)
        yield store


@pytest.fixture(scope="module")
def copy(loaded: OxigraphStore) -> Store:
    held = Store()
    for graph in loaded.graphs():
        held.extend(loaded.graph(graph))
    return held


def located(store: Store, focus: Term | None, **about: Any) -> Location | None:
    return Locator(store).locate(Violation(focus, "Odd.", **about))


def test_each_text_unit_is_found_at_the_row_that_why_names(loaded: OxigraphStore, copy: Store) -> None:
    locator = Locator(copy)
    units = {quad.subject for quad in copy.quads_for_pattern(None, SCHEMA.position, None, None)}
    units = {unit for unit in units if isinstance(unit, NamedNode) and unit.value.startswith("cpr://doc/")}
    assert len(units) > 50
    for unit in units:
        [explanation] = explain_iri(loaded.query, unit)
        [source] = explanation.sources
        assert source.row is not None
        assert locator.locate(Violation(unit, "Odd.")) == Location(source.locations[0], row=source.row)


def test_each_document_is_found_at_a_file_that_why_names(loaded: OxigraphStore, copy: Store) -> None:
    documents = {quad.subject for quad in copy.quads_for_pattern(None, RDF.type, KG.PolicyDocument, None)}
    assert documents
    for document in documents:
        assert isinstance(document, NamedNode)
        place = located(copy, document)
        found = explain_iri(loaded.query, document)  # by its record, and by its language if that is derived
        assert place is not None
        assert place.document in {
            location for each in found for source in each.sources for location in source.locations
        }


def made(*quads: tuple[Any, ...]) -> Store:
    store = Store()
    store.extend(Quad(*quad) for quad in quads)
    return store


A, B = mint("graph", "src", "climate", "a"), mint("graph", "src", "climate", "b")
ONE, TWO = mint("snapshot", "sha256-1"), mint("snapshot", "sha256-2")
FILES = [
    (A, PROV.wasDerivedFrom, ONE, PROV_GRAPH),
    (B, PROV.wasDerivedFrom, TWO, PROV_GRAPH),
    (ONE, KG.location, Literal("one.csv"), PROV_GRAPH),
    (TWO, KG.location, Literal("two.csv"), PROV_GRAPH),
]
NODE, OTHER = NamedNode("urn:node"), NamedNode("urn:other")


def test_of_several_graphs_the_one_that_holds_the_triple_is_meant() -> None:
    store = made(
        *FILES,
        (NODE, SKOS.prefLabel, Literal("first"), A),
        (NODE, SKOS.prefLabel, Literal("second"), B),
        (OTHER, SKOS.related, NamedNode("urn:named"), B),
    )
    assert located(store, NODE) == Location("one.csv")
    assert located(store, NODE, path=SKOS.prefLabel, value=Literal("second")) == Location("two.csv")
    assert located(store, NODE, path=SKOS.altLabel, value=Literal("none")) == Location("one.csv")
    assert located(store, NODE, graph=B) == Location("two.csv")
    assert located(store, NamedNode("urn:named")) == Location("two.csv")
    assert located(store, Literal("first")) == Location("one.csv")


def test_rows_across_files_follow_the_order_of_units() -> None:
    derivations = [mint("derivation", str(number)) for number in range(2)]
    units = [NamedNode(f"urn:unit:{at}") for at in range(3)]
    store = made(
        *FILES,
        (A, PROV.wasDerivedFrom, TWO, PROV_GRAPH),
        *((A, PROV.qualifiedDerivation, each, PROV_GRAPH) for each in derivations),
        *((each, SCHEMA.position, Literal(at), PROV_GRAPH) for at, each in enumerate(derivations)),
        (derivations[0], PROV.entity, TWO, PROV_GRAPH),
        (derivations[0], KG.sourceRows, Literal("5,2"), PROV_GRAPH),
        (derivations[1], PROV.entity, ONE, PROV_GRAPH),
        (derivations[1], KG.sourceRows, Literal("9"), PROV_GRAPH),
        *((unit, SCHEMA.position, Literal(at * 10), A) for at, unit in enumerate(units)),
    )
    assert [located(store, unit) for unit in units] == [
        Location("two.csv", row=5),
        Location("two.csv", row=2),
        Location("one.csv", row=9),
    ]


def test_a_record_of_one_row_is_at_that_row_and_one_of_several_is_in_the_file() -> None:
    said = (NODE, DCTERMS.title, Literal("A title"), A)
    assert located(made(*FILES, said, (A, KG.sourceRows, Literal("7"), PROV_GRAPH)), NODE) == Location("one.csv", row=7)
    assert located(made(*FILES, said, (A, KG.sourceRows, Literal("7-9"), PROV_GRAPH)), NODE) == Location("one.csv")


def test_a_graph_made_of_graphs_leads_to_their_file_even_where_they_are_made_of_each_other() -> None:
    derived = mint("graph", "der", "authority")
    said = (NODE, DCTERMS.title, Literal("A title"), derived)
    assert located(made(*FILES, said, (derived, PROV.wasDerivedFrom, B, PROV_GRAPH)), NODE) == Location("two.csv")
    endless = made(said, (derived, PROV.wasDerivedFrom, derived, PROV_GRAPH))
    assert located(endless, NODE) is None


def test_what_a_request_wrote_and_what_nothing_describes_has_no_file() -> None:
    request = (
        (TWO, PROV.wasAttributedTo, mint("agent", "somebody"), PROV_GRAPH),
        (NODE, DCTERMS.title, Literal("A title"), B),
    )
    assert located(made(*FILES, *request), NODE) is None
    assert located(made(*FILES), NamedNode("urn:unknown")) is None
    assert located(made(*FILES), BlankNode("b")) is None
    assert located(made(*FILES), None) is None
