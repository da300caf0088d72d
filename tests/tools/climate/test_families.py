"""Families are counted as the filters say; the history of one has its documents oldest first, and its relations."""

from __future__ import annotations

from collections import defaultdict

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import NotFoundError
from kg.store.protocol import Term
from kg.tools.catalog.resources import list_resources
from kg.tools.climate.families import family_overview, policy_lineage, read_families
from kg.vocabulary import DCTERMS, ELI, KG, RDF, mint


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
    assert counts["Policy documents, translations not counted"] == 1


def test_pages_of_families_are_the_whole_by_title(kg):
    whole = family_overview(kg, limit=200).families
    pages = [family for offset in range(0, 5, 2) for family in family_overview(kg, limit=2, offset=offset).families]
    assert pages == whole
    assert [family.family_title for family in whole] == sorted((each.family_title for each in whole), key=str.casefold)
    assert all(family.provenance.sha256 for family in whole)


@pytest.mark.parametrize("name", ["Japan", "japan", "jp", "JPN"])
def test_a_place_is_found_by_its_name_and_its_codes(fixtures, name):
    found = family_overview(fixtures, iso3=[name])
    assert found.families == family_overview(fixtures, place=["JPN"]).families != []
    assert found.notes == []


def test_a_misspelt_name_of_a_place_is_unknown_with_similar_ones(fixtures):
    with pytest.raises(NotFoundError, match=r"place: Unknown place 'Japn'. Similar: 'Japan' \(JPN\)"):
        family_overview(fixtures, place=["Japn"])


def test_documents_come_oldest_first_and_the_undated_last(kg, made):
    found = policy_lineage(kg, "family-1")
    members = {(p.date is None, p.date or "", p.title, p.document) for p in made if p.family == "family-1"}
    assert [(d.date is None, d.date or "", d.title, d.id) for d in found.documents] == sorted(members)
    assert found.doc_count == len(members) == found.meta.total
    assert found.family_title == "Family family-1"
    assert all(document.provenance.sha256 for document in found.documents)
    assert "no amends or repeals" in found.notes[0]


def test_pages_fit_together_and_documents_may_be_left_out(kg):
    whole = policy_lineage(kg, "family-1").documents
    assert policy_lineage(kg, "cpr://family/family-1", limit=2).documents == whole[:2]
    assert policy_lineage(kg, "family-1", limit=2, offset=2).documents == whole[2:4]
    bare = policy_lineage(kg, "family-1", include_docs=False)
    assert (bare.documents, bare.doc_count, bare.next_offset) == ([], len(whole), None)


def test_a_translation_counts_as_its_original(pair, made):
    [document] = policy_lineage(pair, made[0].family).documents
    assert (document.id, document.languages) == ("cpr://doc/two-faced", ["en", "fr"])


def test_relations_are_read_forwards_whichever_way_they_are_said(kg):
    first, second, *_ = (document.id for document in policy_lineage(kg, "family-1").documents)
    elsewhere = "https://law.example/1"
    graph = mint("graph", "cur", "relations")
    kg.store.inner.extend(
        [
            Quad(NamedNode(second), ELI.amends, NamedNode(first), graph),
            Quad(NamedNode(first), ELI.amended_by, NamedNode(second), graph),
            Quad(NamedNode(first), ELI.repeals, NamedNode(elsewhere), graph),
        ]
    )
    kg.store.generation += 1
    found = policy_lineage(kg, "family-1")
    assert {(edge.subject, edge.relation, edge.object) for edge in found.edges} == {
        (second, "amends", first),
        (first, "repeals", elsewhere),
    }
    titles = {document.id: document.title for document in found.documents}
    [amending] = [edge for edge in found.edges if edge.relation == "amends"]
    assert (amending.subject_title, amending.object_title) == (titles[second], titles[first])
    assert found.notes == []


def test_a_family_named_by_a_word_of_its_title_is_not_there_but_near(pair, made):
    graph, family = mint("graph", "ref", "family", "f7"), mint("family", "f7")
    pair.store.inner.extend(
        [
            Quad(family, RDF.type, KG.PolicyFamily, graph),
            Quad(family, DCTERMS.title, Literal("Fictional Quorvex Act"), graph),
        ]
    )
    with pytest.raises(NotFoundError, match=r"Similar: f7\."):
        policy_lineage(pair, "quorvex")


def test_a_family_that_is_not_there_is_an_error_with_those_like_it(kg):
    with pytest.raises(NotFoundError, match="Similar: 'family-"):
        policy_lineage(kg, "family-77")


def test_families_are_sorted_by_the_words_of_their_titles() -> None:
    titles = [" Beech Act", "'Alder' Plan", "cedar Law", "Dogwood Act", "“Birch” Act"]
    rows: list[dict[str, Term]] = [
        {"title": Literal(title), "family": NamedNode(f"cpr://family/{n}"), "sample": Literal(f"cpr://doc/{n}")}
        | {"documents": Literal(1)}
        for n, title in enumerate(titles)
    ]
    assert [title for title, *_ in read_families(rows)] == [titles[n] for n in (1, 0, 4, 2, 3)]
