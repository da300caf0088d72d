"""What the overviews promise: families counted as the filters say, all values to filter by, and a truthful state."""

from __future__ import annotations

from collections import defaultdict

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.tools.catalog.overview import entity, family_overview, health, list_resources


@pytest.mark.parametrize(
    ("iso3", "language"), [(None, None), (["BRA"], None), (["dji", "ZAF"], ["en"]), (None, ["fr"])]
)
def test_families_are_counted_over_the_documents_that_the_filters_leave(kg, made, iso3, language):
    documents = defaultdict(set)
    for passage in made:
        if (iso3 is None or {code.upper() for code in iso3} & set(passage.places)) and (
            language is None or any(tag.partition("-")[0] in language for tag in passage.languages)
        ):
            documents[passage.family].add(passage.document)
    found = family_overview(kg, iso3=iso3, language=language, limit=200)
    assert {family.id: family.doc_count for family in found.families} == {
        f"cpr://family/{slug}": len(members) for slug, members in documents.items()
    }
    assert all(family.sample_doc.id in documents[family.id.removeprefix("cpr://family/")] for family in found.families)
    assert found.meta.total == len(documents)


def test_a_translation_is_no_further_document(pair):
    [family] = family_overview(pair).families
    assert (family.doc_count, family.sample_doc.id) == (1, "cpr://doc/two-faced")
    [english] = family_overview(pair, language=["en"]).families
    assert (english.doc_count, english.sample_doc.id) == (1, "cpr://doc/two-faced#lang=en")
    counts = {resource.title: resource.count for resource in list_resources(pair).resources}
    assert counts["Policy documents, a translation not counted apart"] == 1


def test_pages_of_families_are_the_whole_by_title(kg):
    whole = family_overview(kg, limit=200).families
    pages = [family for offset in range(0, 5, 2) for family in family_overview(kg, limit=2, offset=offset).families]
    assert pages == whole
    assert [family.family_title for family in whole] == sorted(family.family_title for family in whole)
    assert all(family.provenance.sha256 for family in whole)


def test_the_values_to_filter_by_are_those_in_use(kg, made):
    resources = {resource.title: resource for resource in list_resources(kg).resources}
    assert resources["Filter iso3: values in use"].values == sorted({code for p in made for code in p.places})
    assert resources["Filter language: values in use"].values == sorted({tag for p in made for tag in p.languages})
    assert resources["Policy documents, a translation not counted apart"].count == len(
        {passage.document for passage in made}
    )
    assert resources["made-up.parquet"].values == ["ab" * 32]


def test_resources_come_in_pages(kg):
    whole = list_resources(kg).resources
    first = list_resources(kg, limit=5)
    assert first.next_offset == 5
    assert first.resources + list_resources(kg, offset=5).resources == whole


def test_health_answers_without_a_query_and_names_what_is_wrong(kg):
    assert health(kg).status == "ok"
    kg.search.embedder_error = "the model is absent; run `kg models pull`"
    state = health(kg)
    assert state.status == "degraded"
    assert "kg models pull" in state.problems[0]
    assert (state.generation, state.pending_vectors) == (1, 3)
    assert kg.pool.asked == []


def test_an_entity_is_shown_with_the_graph_of_each_quad(kg, made):
    shown, turtle = entity(kg, made[0].iri)
    assert {quad.graph for quad in shown.quads} == {f"https://w3id.org/quadcite/graph/src/climate/{made[0].slug}"}
    assert f"# graph <{shown.quads[0].graph}>" in turtle
    assert made[0].text in turtle


@pytest.mark.parametrize(("iri", "error"), [("no iri", InvalidInputError), ("urn:nothing:here", NotFoundError)])
def test_what_is_no_entity_is_an_error(kg, iri, error):
    with pytest.raises(error):
        entity(kg, iri)


@pytest.mark.parametrize("name", ["Japan", "japan", "Japn"])
def test_a_place_given_by_its_name_is_answered_with_its_code(fixtures, name):
    found = family_overview(fixtures, iso3=[name])
    assert found.families == []
    assert found.notes == [f"iso3: no document has {name!r}; did you mean JPN?"]
