"""Terms as people type them, and how results are shown to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from kg.cli.results import parse_node, parse_predicate, parse_term, readable
from kg.errors import InvalidInputError
from kg.vocabulary import DCTERMS, KG, RDF, XSD, curie, mint

WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


@pytest.mark.parametrize(
    ("text", "iri"),
    [
        ("cpr://doc/act_1#p=3", "cpr://doc/act_1#p=3"),
        ("<https://example.org/a b>".replace(" ", "%20"), "https://example.org/a%20b"),
        ("dcterms:title", DCTERMS.title.value),
        ("kg:Passage", KG.Passage.value),
        ("urn:isbn:0", "urn:isbn:0"),
        ("  cpr://doc/x ", "cpr://doc/x"),
    ],
)
def test_an_iri_is_taken_in_full_in_brackets_or_with_a_known_prefix(text: str, iri: str) -> None:
    assert parse_node(text) == NamedNode(iri)


@pytest.mark.parametrize("text", ["", "title", "cpr://doc/a b", "cpr://doc/x#a#b", "/tmp", '"words"', "<>", "3:x"])
def test_what_is_no_iri_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not an IRI"):
        parse_node(text)


@given(WORDS)
def test_every_minted_identifier_can_be_typed(slug: str) -> None:
    node = mint("document", slug or "x")
    assert parse_node(node.value) == node
    assert parse_node(f"<{node.value}>") == node


@given(WORDS, st.sampled_from([None, "en", "pt-BR"]))
def test_every_literal_can_be_typed_as_it_is_written_in_turtle(words: str, language: str | None) -> None:
    literal = Literal(words, language=language) if language else Literal(words)
    typed = parse_term(str(literal))
    assert isinstance(typed, Literal)
    assert typed.value == words
    assert (typed.language or "").lower() == (language or "").lower()


def test_numbers_dates_and_truth_are_literals_and_a_curie_is_an_iri() -> None:
    assert parse_term("3") == Literal("3", datatype=XSD.integer)
    assert parse_term("-2.50") == Literal("-2.50", datatype=XSD.decimal)
    assert parse_term("true") == Literal("true", datatype=XSD.boolean)
    assert parse_term('"2021-01-01"^^xsd:date') == Literal("2021-01-01", datatype=XSD.date)
    assert parse_term("kg:Passage") == KG.Passage


@pytest.mark.parametrize("text", ['"open', "'a' . <x:s> <x:p> 'b'", '"a", "b"', '"a"@', '"a"^^nope:x', "3 4"])
def test_what_is_no_single_literal_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInputError, match="as in Turtle"):
        parse_term(text)


@pytest.mark.parametrize("text", ["Solar Plan", "title", "/tmp", ""])
def test_words_that_lost_their_quotes_to_the_shell_are_told_how_to_keep_them(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_term(text)
    assert f"""'"{text}"'""" in str(refused.value)


def test_the_predicate_a_is_rdf_type() -> None:
    assert parse_predicate("a") == parse_predicate("rdf:type") == RDF.type
    assert parse_predicate("dcterms:title") == DCTERMS.title


def test_a_cell_shortens_iris_and_keeps_languages() -> None:
    assert readable(DCTERMS.title) == "dcterms:title" == curie(DCTERMS.title.value)
    assert readable(NamedNode("cpr://doc/x")) == "cpr://doc/x"
    assert readable(Literal("loi", language="fr")) == "loi @fr"
    assert readable(Literal("3", datatype=XSD.integer)) == "3"
    assert readable(None) == ""
