"""What a cell of an answer shows can be read back as exactly the term that it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from kg.retrieval.result_cells import MIXED, column, longest_cut, named, written
from kg.vocabulary import KG, PREFIXES, XSD

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LITERALS = st.one_of(
    TEXTS.map(Literal),
    st.builds(lambda text, tag: Literal(text, language=tag), TEXTS, st.sampled_from(["en", "pt-BR"])),
    st.integers(-(10**20), 10**20).map(lambda number: Literal(str(number), datatype=XSD.integer)),
    st.sampled_from(["007", "+5", "-0", "1.0", "x"]).map(lambda text: Literal(text, datatype=XSD.integer)),
    st.sampled_from(["true", "1", "no"]).map(lambda text: Literal(text, datatype=XSD.boolean)),
    TEXTS.map(lambda text: Literal(text, datatype=NamedNode("urn:type"))),
)
IRIS = st.sampled_from([KG.iri + "Passage", KG.iri, KG.iri + "a/b", "cpr://doc/x#p=1", "kg:Passage", "urn:x"]).map(
    NamedNode
)
TERMS = st.one_of(LITERALS, IRIS)


def read(text: object) -> object:
    """A term as Turtle reads it: a query would bring numbers into their usual form."""
    prefixes = "".join(f"PREFIX {name}: <{start}>\n" for name, start in PREFIXES.items())
    [quad] = parse(f"{prefixes} <urn:s> <urn:p> {text} .", format=RdfFormat.TURTLE)
    return quad.object


@given(TERMS)
def test_a_written_term_is_read_back_as_it_was(term):
    assert read(written(term)) == term


@given(st.lists(LITERALS, min_size=1, max_size=4))
def test_a_column_loses_nothing(cells):
    kind, shown = column(cells)
    for cell, term in zip(shown, cells, strict=True):
        text = str(cell).lower() if isinstance(cell, bool) else str(cell)
        if kind == MIXED:
            assert read(cell) == term
        elif kind.startswith("@"):
            assert Literal(text, language=kind[1:]) == term
        elif kind == "string":
            assert Literal(text) == term
        else:
            assert read(f"{Literal(text)}^^{kind}") == term


@given(IRIS)
def test_the_name_of_an_iri_has_one_meaning(term):
    name = named(term.value)
    prefix, colon, local = name.partition(":")
    if name.startswith("<"):
        assert name == f"<{term.value}>"
    elif colon and prefix in PREFIXES:
        assert PREFIXES[prefix] + local == term.value
    else:
        assert name == term.value


def test_what_a_column_shares_is_said_once():
    assert column([Literal(1), None, Literal(20)]) == ("xsd:integer", [1, None, 20])
    assert column([KG.Passage, NamedNode("cpr://doc/x")]) == ("iri", ["kg:Passage", "cpr://doc/x"])
    assert column([Literal("a"), Literal("a", language="en")]) == (MIXED, ['"a"', '"a"@en'])
    assert column([None]) == ("unbound", [None])
    assert column([BlankNode("b")]) == ("bnode", ["_:b"])


def test_long_texts_are_cut_and_that_is_told():
    assert longest_cut(["short", 5, None], 10) == (["short", 5, None], False)
    assert longest_cut(["x" * 20], 10) == (["x" * 9 + "…"], True)
