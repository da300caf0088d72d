"""Wikidata's label service is answered from the labels in the graph, as the query service answers it."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.errors import InvalidInputError
from kg.sparql import label_service
from kg.sparql.guard import check_query
from kg.sparql.service import find_clauses, parse_prologue, replace_clauses
from kg.vocabulary import PREFIXES

WD = "http://www.wikidata.org/"
HERE = "".join(f"PREFIX {prefix}: <{namespace}>\n" for prefix, namespace in PREFIXES.items())


def entity(name: str) -> NamedNode:
    return NamedNode(f"{WD}entity/{name}")


@pytest.fixture(scope="module")
def store() -> Store:
    store = Store()
    kind, label = NamedNode(f"{WD}prop/direct/P31"), NamedNode(PREFIXES["rdfs"] + "label")
    for name, texts in {
        "Q1": {"en": "one", "pt-br": "um"},
        "Q2": {"fr": "deux"},
        "Q3": {},
        "Q9": {"en": "kind"},
    }.items():
        store.extend(Quad(entity(name), label, Literal(text, language=tag)) for tag, text in texts.items())
        if name != "Q9":
            store.add(Quad(entity(name), kind, entity("Q9")))
    store.add(Quad(entity("Q1"), NamedNode(PREFIXES["schema"] + "description"), Literal("first", language="en")))
    store.add(Quad(entity("Q1"), NamedNode(f"{WD}prop/direct/P800"), Literal("a work")))
    return store


def answer(store: Store, query: str) -> list[list[str | None]]:
    """The rows of a query after each label clause of it is answered, by what they hold."""
    query = HERE + query
    results = [
        part
        for each in find_clauses(query)
        for part in label_service.build_replacements(query, each, parse_prologue(query))
    ]
    expanded = replace_clauses(query, results)
    assert expanded.count("\n") == query.count("\n")
    check_query(expanded)
    solutions = store.query(expanded)
    names = [variable.value for variable in solutions.variables]  # type: ignore[union-attr]
    return [[row[name].value if row[name] is not None else None for name in names] for row in solutions]  # type: ignore


ENGLISH = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "en" }'
LANGUAGE = "SERVICE wikibase:label { bd:serviceParam wikibase:language %s . }"


def of(languages: str, pattern: str = "?item wdt:P31 ?kind", select: str = "?itemLabel") -> str:
    return f"SELECT {select} WHERE {{ {pattern} . {LANGUAGE % languages} }} ORDER BY ?item"


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ('"en"', ["one", "Q2", "Q3"]),
        ('"[AUTO_LANGUAGE],en,fr"', ["one", "deux", "Q3"]),
        ("'pt-BR,en'", ["um", "Q2", "Q3"]),
        ('"[AUTO_LANGUAGE]"', ["one", "Q2", "Q3"]),
    ],
)
def test_each_thing_has_its_label_in_the_first_language_that_there_is_else_its_id(store, languages, expected) -> None:
    assert [row[0] for row in answer(store, of(languages))] == expected


def test_descriptions_come_too_and_what_has_none_has_none(store) -> None:
    rows = answer(store, of('"en"', select="?itemLabel ?itemDescription ?kindLabel"))
    assert rows == [["one", "first", "kind"], ["Q2", None, "kind"], ["Q3", None, "kind"]]


def test_where_the_clause_stands_in_its_group_makes_no_difference(store) -> None:
    pattern = "?item wdt:P31 ?kind FILTER(STR(?itemLabel) != 'one') { SELECT * { ?item wdt:P31 wd:Q9 } }"
    last = answer(store, f"SELECT ?itemLabel {{ {pattern} {ENGLISH} }} ORDER BY ?itemLabel")
    first = answer(store, f"SELECT ?itemLabel {{ {ENGLISH}\n {pattern} }} ORDER BY ?itemLabel")
    assert last == first == [["Q2"], ["Q3"]]


def test_a_variable_without_a_value_gets_no_label_and_a_literal_is_its_own(store) -> None:
    rows = answer(store, of('"en"', "?item wdt:P31 ?kind OPTIONAL { ?item wdt:P800 ?work }", "?itemLabel ?workLabel"))
    assert rows == [["one", "a work"], ["Q2", None], ["Q3", None]]


def test_labels_can_be_counted_by(store) -> None:
    counted = f"SELECT ?kindLabel (COUNT(?item) AS ?n) {{ ?item wdt:P31 ?kind . {ENGLISH} }} GROUP BY ?kindLabel"
    assert answer(store, counted) == [["kind", "3"]]


def test_names_that_the_clause_gives_itself_are_taken(store) -> None:
    own = '"fr" . ?item rdfs:label ?name ; schema:description ?x'
    named = LANGUAGE % own
    assert answer(store, f"SELECT ?name {{ ?item wdt:P31 ?k . {named} }} ORDER BY ?name") == [["Q1"], ["Q3"], ["deux"]]


def test_a_label_that_the_query_binds_itself_is_left_alone(store) -> None:
    rows = answer(store, of('"en"', "?item wdt:P31 ?kind ; rdfs:label ?itemLabel"))
    assert sorted(row[0] for row in rows) == ["deux", "one", "um"]


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ("?item skos:altLabel ?names", "Unsupported: .item skos:altLabel .names"),
        ("?item rdfs:label", "Not a triple: .item rdfs:label"),
        ("bd:serviceParam wikibase:language ?any", "Unsupported: bd:serviceParam"),
        (f'bd:serviceParam wikibase:language "{",".join(f"a{chr(97 + n)}" for n in range(26))}"', "More than 20"),
    ],
)
def test_what_the_service_does_not_take_is_refused_with_its_place(store, inside, says) -> None:
    with pytest.raises(InvalidInputError, match=rf"column \d+: .*SERVICE wikibase:label.*{says}"):
        answer(store, f"SELECT ?itemLabel {{ ?item wdt:P31 ?kind SERVICE wikibase:label {{ {inside} }} }}")
