"""Whatever term is bound, the parser reads back exactly that term, and nothing else of the query changes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store, Triple

from kg.errors import InvalidInputError
from kg.sparql.terms import bind, quote
from kg.vocabulary import XSD

# Oxigraph computes with numbers and dates it knows (it reads "01" as 1), so those are tested apart, in canonical form.
HOSTILE = st.sampled_from(
    [
        '"',
        "'",
        "\\",
        '"""',
        "'''",
        '" } ; DROP ALL #',
        "\n",
        "\r",
        "\t",
        "\x00",
        "$o",
        "?o",
        "<a:b>",
        "#",
        "{",
        "\\u0022",
    ]
)
TEXTS = st.lists(HOSTILE | st.text(max_size=8), max_size=6).map("".join)
IRIS = TEXTS.map(lambda text: "http://example.org/" + "".join(c for c in text if c not in '<>"{}|^`\\%' and c > " "))
LANGUAGES = st.sampled_from(["en", "en-gb", "zh-hant-tw", "de-1996", "x-klingon", "sl-rozaj-biske"])


def _named(iri: str) -> NamedNode | None:
    try:
        return NamedNode(iri)
    except ValueError:
        return None  # not an IRI at all: such a term cannot exist


NAMED = IRIS.map(_named).filter(bool)
LITERALS = TEXTS.map(Literal) | st.builds(lambda text, language: Literal(text, language=language), TEXTS, LANGUAGES)
TYPED = st.builds(lambda text, datatype: Literal(text, datatype=datatype), TEXTS, NAMED)
TERMS = NAMED | LITERALS | TYPED
TRIPLES = st.builds(Triple, NAMED, NAMED, TERMS)


def read_back(query: str) -> list[tuple[object, ...]]:
    solutions = Store().query(query)
    assert isinstance(solutions, QuerySolutions)
    return [tuple(solution) for solution in solutions]


@given(TERMS | TRIPLES)
def test_every_term_is_read_back_as_itself(term: NamedNode | Literal | Triple) -> None:
    assert read_back(bind("SELECT ?x { VALUES ?x { $term } }", term=term)) == [(term,)]


@given(st.lists(st.tuples(TERMS, st.none() | TERMS), max_size=5))
def test_rows_are_read_back_in_order(rows: list[tuple[Literal, Literal | None]]) -> None:
    assert read_back(bind("SELECT ?x ?y { VALUES (?x ?y) { $rows } }", rows=rows)) == rows


@given(TERMS, TERMS)
def test_a_bound_text_is_never_bound_into_again(first: Literal, second: Literal) -> None:
    query = "SELECT ?x ?y { VALUES (?x ?y) { ($a $b) } }"
    assert read_back(bind(query, a=first, b=second)) == [(first, second)]


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1), st.booleans(), st.floats(allow_nan=False))
def test_numbers_and_booleans_keep_value_and_datatype(number: int, flag: bool, measure: float) -> None:
    ((x, y, z),) = read_back(bind("SELECT ?x ?y ?z { VALUES (?x ?y ?z) {($x $y $z)} }", x=number, y=flag, z=measure))
    assert x == Literal(number)
    assert y == Literal(flag)
    assert z.datatype == XSD.double
    assert float(z.value) == measure


def test_a_decimal_is_a_decimal_and_finite() -> None:
    assert read_back(bind("SELECT ($x AS ?x) {}", x=Decimal("1E+2")))[0][0] == Literal("100", datatype=XSD.decimal)
    with pytest.raises(InvalidInputError, match="NaN"):
        quote(Decimal("NaN"))


def test_only_names_in_code_are_replaced() -> None:
    query = """SELECT * { ?n <http://example.org/$n> "$n", '''a "$n" ''', "\\"$n" } # $n\nLIMIT $n"""
    assert bind(query, n=5) == query.removesuffix("$n") + "5"


def test_a_term_never_merges_with_its_neighbours() -> None:
    assert read_back(bind("SELECT ?x { VALUES ?x {1 2} FILTER(?x=$n||?x<$n) }", n=1)) == [(Literal(1),)]
    assert read_back(bind("SELECT ?x { VALUES ?x {$a$b} }", a=1, b=2)) == [(Literal(1),), (Literal(2),)]
    assert read_back(bind("SELECT ((3-$n) AS ?x) {}", n=-1)) == [(Literal(4),)]


def test_an_empty_list_gives_no_rows() -> None:
    assert read_back(bind("SELECT ?x { VALUES ?x { $none } }", none=[])) == []


def test_missing_and_unused_names_are_errors() -> None:
    with pytest.raises(TypeError, match=r"no term for \$b"):
        bind("SELECT * { $a $b ?c }", a=NamedNode("a:b"))
    with pytest.raises(TypeError, match=r"does not contain \$b"):
        bind("SELECT * { $a ?b ?c }", a=NamedNode("a:b"), b=1)


@pytest.mark.parametrize("value", ["text", b"bytes", ["text"], [("text",)], {"a": 1}, None, object()])
def test_what_is_no_term_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"term"):
        bind("SELECT * { ?s ?p $o }", o=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("term", [BlankNode("b"), Triple(BlankNode("b"), NamedNode("a:p"), Literal("o"))])
def test_blank_nodes_are_refused_since_they_match_anything(term: BlankNode | Triple) -> None:
    with pytest.raises(InvalidInputError, match="blank node"):
        quote(term)
