"""A query is told what is wrong with it and what would be right; a right query is told nothing."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.sparql.lint import check
from kg.sparql.measured_schema import Schema
from kg.sparql.prefixes import nearest_namespace, nearest_prefix
from kg.tools.claims.review import list_claims, review_claim
from kg.tools.schema.schema_measurement import measure_schema
from kg.tools.zoning.summaries import kg_build_summaries, kg_rebuild_summary
from kg.vocabulary import BASE, PREFIXES
from loaders.sources import load
from tests.benchmarks.repair import Mistakes, names_repair
from tests.conftest import load_once
from tests.folders import open_graph

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def schema(fixtures: KnowledgeGraph) -> Schema:
    return measure_schema(fixtures)


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    """The schema of a graph with records of every source: what queries that ship are about."""
    folder = load_once(tmp_path_factory, "joined")
    with open_graph(folder) as kg:
        load(kg, "members", [str(ROOT / "fixtures" / "members")])
        bend = {"municipality": "Quarry Bend", "state": "UT"}
        [first] = kg_build_summaries(kg, **bend, mode="agent", limit=1).pending
        kg_rebuild_summary(kg, **bend, section_id=first.section_id, summary="It says what the others mean.")
        token = SENDER.set(Actor("ada", frozenset({WRITE, CURATE, ADMIN})))
        for verdict, claim in zip(("accept", "reject"), list_claims(kg, kind="use", limit=2).claims, strict=True):
            review_claim(kg, claim.id, verdict)
        SENDER.reset(token)
        return measure_schema(kg)


def test_properties_of_provenance_that_few_commits_write_are_known(schema: Schema) -> None:
    assert [code for code, _ in said("SELECT * { GRAPH ?g { ?s prov:invalidatedAtTime ?t } }", schema)] == [
        "unused_property"
    ]


def said(query: str, schema: Schema) -> list[tuple[str, str]]:
    return [(hint.code, hint.suggestions[0] if hint.suggestions else "") for hint in check(query, schema)]


@pytest.mark.parametrize(
    ("body", "code", "repair"),
    [
        ("?d a kg:policydocument", "unknown_class", "kg:PolicyDocument"),
        ("?d a kg:Passages", "unknown_class", "kg:Passage"),
        ("?d a schema:Passage", "unknown_class", "kg:Passage"),
        ("?d a kg:slug", "unknown_class", ""),
        ("?d a kg:CuratedGraph", "unused_class", "kg:ExtractedGraph"),
        ("?d skos:title ?t", "unknown_property", "dcterms:title"),
        ("?d dcterms:titel ?t", "unknown_property", "dcterms:title"),
        ("?d kg:page_number ?t", "unknown_property", "kg:pageNumber"),
        ("OPTIONAL { ?d dcterms:titel ?t }", "unknown_property", "dcterms:title"),
        ("?d (dcterms:titel|kg:slug)+ ?t", "unknown_property", "dcterms:title"),
        ("?d <https://schema.org/text> ?t", "unknown_property", "schema:text"),
        ("?d scema:text ?t", "undeclared_prefix", "schema:text"),
        ("?d dct:title ?t", "undeclared_prefix", "dcterms:title"),
        ("?d a kg:PolicyDocument ; schema:text ?t", "property_not_of_class", "^dcterms:isPartOf/schema:text"),
        ("?p a kg:Passage ; kg:jurisdiction ?j", "property_not_of_class", "dcterms:isPartOf/kg:jurisdiction"),
        ("?p schema:text ?t ; kg:jurisdiction ?j", "property_not_of_class", "dcterms:isPartOf/kg:jurisdiction"),
        ("?p a kg:Passage ; kg:slug ?s ; kg:jurisdiction ?j", "wrong_class", "kg:PolicyDocument"),
        ("?d dcterms:isPartOf ?p . ?p a kg:Passage", "wrong_direction", "?p dcterms:isPartOf ?d"),
        ("?j kg:jurisdiction ?d . ?d kg:slug ?s ; dcterms:source ?x", "wrong_direction", "?d kg:jurisdiction ?j"),
        ("?d a kg:PolicyDocument . ?t dcterms:title ?d", "wrong_direction", "?d dcterms:title ?t"),
        ("?p a kg:Place . ?d eli:is_member_of ?p", "wrong_range", "kg:jurisdiction"),
        ('?p kg:pageNumber "3"', "wrong_datatype", "3"),
        ('?d eli:date_document "2031-03-14"', "wrong_datatype", '"2031-03-14"^^xsd:date'),
        ('?d eli:date_document ?x FILTER(?x > "2031-03-14")', "wrong_datatype", '"2031-03-14"^^xsd:date'),
        ("?d eli:date_document ?x FILTER(?x = 2031)", "wrong_datatype", "FILTER(YEAR(?x) = 2031)"),
        ('?d eli:date_document ?x FILTER("2031" <= ?x)', "wrong_datatype", "FILTER(YEAR(?x) >= 2031)"),
        ('?d eli:date_document "2031"', "wrong_datatype", "FILTER(YEAR(?date) = 2031)"),
        ('?d schema:inLanguage "en"@en', "wrong_language", '"en"'),
        ('?p skos:prefLabel "Japan"', "wrong_language", '"Japan"@en'),
        ('?p skos:prefLabel ?l FILTER(?l = "Japan")', "wrong_language", '"Japan"@en'),
        ('?p skos:prefLabel ?l FILTER(LANG(?l) = "fr")', "wrong_language", 'LANG(?l) = "en"'),
        ('?d dcterms:title ?l FILTER(LANG(?l) = "en")', "wrong_language", 'FILTER(LANG(?l) = "")'),
        ('?d kg:jurisdiction "DJI"', "literal_for_iri", f"<{BASE}id/place/DJI>"),
        ('?d kg:jurisdiction ?j VALUES ?j { "DJI" }', "literal_for_iri", f"<{BASE}id/place/DJI>"),
        ('?p kg:blockType "inferred from gaps"', "literal_for_iri", f"<{BASE}vocab/blockType/Inferred%20from%20gaps>"),
        (f"?d schema:inLanguage <{BASE}vocab/language/fr>", "iri_for_literal", '"fr"'),
        (f"?p kg:blockType <{BASE}vocab/blockType/SectionHeadings>", "unknown_individual",
         f"<{BASE}vocab/blockType/sectionHeading>"),
        (f"GRAPH <{BASE}graph/prov> {{ ?d kg:slug ?s }}", "wrong_graph", f"<{BASE}graph/src/climate/...>"),
        (f"GRAPH <{BASE}graph/climate> {{ ?d kg:slug ?s }}", "unknown_graph", f"<{BASE}graph/src/climate/...>"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_with_its_repair(body: str, code: str, repair: str, schema: Schema) -> None:
    assert said(f"SELECT * WHERE {{ {body} }}", schema) == [(code, repair)]


def test_of_two_patterns_that_contradict_each_other_either_may_be_wrong(schema: Schema) -> None:
    turned, other = check("SELECT * { ?d kg:jurisdiction ?c . ?c dcterms:title ?t }", schema)
    assert (turned.code, turned.suggestions[0]) == ("wrong_direction", "?c kg:jurisdiction ?d")
    assert other.code == "property_not_of_class"
    assert "skos:prefLabel" in other.suggestions


def test_a_class_that_is_not_known_is_told_by_the_properties_asked_for(schema: Schema) -> None:
    (hint,) = check("SELECT * { ?x a kg:Nation ; skos:notation ?n }", schema)
    assert (hint.code, hint.suggestions[0]) == ("unknown_class", "kg:Place")


@pytest.mark.parametrize(
    "wrong", ["https://schema.org/", "http://schema.org", "http://www.schema.org/", "http://shema.org/"]
)
def test_a_namespace_that_is_nearly_right_is_corrected(wrong: str, schema: Schema) -> None:
    query = f"PREFIX schema: <{wrong}>\nSELECT * {{ ?p schema:text ?t ; schema:position ?n }}"
    assert said(query, schema) == [("misspelt_namespace", "PREFIX schema: <http://schema.org/>")]


def test_a_hint_says_where(schema: Schema) -> None:
    (hint,) = check("SELECT *\nWHERE {\n  ?d dcterms:titel ?t\n}", schema)
    assert (hint.line, hint.column, hint.found) == (3, 6, "dcterms:titel")
    assert hint.message.startswith("line 3, column 6: unknown property dcterms:titel. Did you mean dcterms:title")


@pytest.mark.parametrize(
    "body",
    [
        "?d a kg:PolicyDocument ; dcterms:title ?t . ?p dcterms:isPartOf ?d ; schema:text ?x",
        "?d a kg:PolicyDocument OPTIONAL { ?d schema:text ?t }",
        "{ ?x schema:text ?t } UNION { ?x kg:jurisdiction ?j }",
        "?x a kg:Passage FILTER NOT EXISTS { ?x kg:jurisdiction ?j }",
        "?u a kg:TextUnit ; schema:text ?t ; dcterms:isPartOf ?d . ?d a kg:Document",
        "?u a kg:TextUnit ; dcterms:isPartOf/kg:jurisdiction ?j",
        "?x a ?class ; ?p ?o",
        "?d eli:date_document ?x FILTER(YEAR(?x) >= 2031)",
        '?p skos:prefLabel ?l FILTER(LANGMATCHES(LANG(?l), "EN"))',
        '?p skos:prefLabel ?l FILTER(STR(?l) = "Japan")',
        "?p kg:pageNumber ?n FILTER(?n > 1.5)",
        '?d schema:inLanguage ?l FILTER(?l IN ("en", "fr"))',
        "?x prov:wasDerivedFrom ?y",
        "?x prov:wasDerivedFrom/kg:sha256 ?h",
        f"GRAPH <{BASE}graph/src/climate/some> {{ ?d kg:slug ?s }}",
        "GRAPH ?g { ?d kg:slug ?s }",
    ],
)
def test_a_right_query_has_no_hints(body: str, schema: Schema) -> None:
    assert check(f"SELECT * WHERE {{ {body} }}", schema) == []


def shipped() -> list[tuple[str, str]]:
    """Return the queries in the tools and the README, with what is bound later left as variables."""
    found = []
    for file in sorted((ROOT / "kg" / "tools").rglob("*.py")):
        for match in re.finditer(r'"""(\s*(?:SELECT|ASK|CONSTRUCT)\b.*?)"""', file.read_text(), re.DOTALL):
            query = match[1].replace("#GROUP", "?document dcterms:date ?group")  # one of the patterns put there
            found.append((f"{file.stem}:{match.start()}", query))
    for file in (ROOT / "README.md", *sorted((ROOT / "kg" / "docs").glob("*.md"))):
        for match in re.finditer(r"```sparql\n(.*?)```", file.read_text(), re.DOTALL):
            found.append((f"{file.stem}:{match.start()}", match[1]))
    for file in sorted((ROOT / "ontology").rglob("*.rq")):
        found.append((file.stem, file.read_text()))
    return found


@pytest.mark.parametrize("query", [text for _, text in shipped()], ids=[name for name, _ in shipped()])
def test_no_query_that_ships_has_a_hint(query: str, all_kinds: Schema) -> None:
    assert check(query, all_kinds) == []


SEED = 421


def test_most_mistakes_are_told_the_right_repair_and_right_queries_nothing(schema: Schema) -> None:
    cases = list(Mistakes(schema, SEED).cases(10))
    assert len(cases) >= 120
    assert len({case.kind for case in cases}) == 15
    assert sum(names_repair(case, schema) for case in cases) >= 0.9 * len(cases)
    assert [str(case.right) for case in cases if check(str(case.right), schema)] == []


@pytest.mark.parametrize(
    "body",
    [
        " ".join(f"?a dcterms:title ?b{number} ." for number in range(3_000)),
        " ".join(f"?a{number} dcterms:isPartOf ?a{number + 1} ." for number in range(2_500)),
        " ".join(f"?a{number} kg:titel{number} ?b ." for number in range(2_000)),
        " ".join(f"?a dcterms:title ?b{number} ." for number in range(90)),
        "?a kg:pageNumber ?b VALUES ?b { " + " ".join(f'"{number}"' for number in range(9_000)) + " }",
    ],
)
def test_a_large_query_takes_no_longer_than_its_parser(body: str, schema: Schema) -> None:
    start = time.thread_time()
    check(f"SELECT * WHERE {{ {body} }}", schema)
    assert time.thread_time() - start < 10


def test_what_cannot_be_read_has_no_hints(schema: Schema) -> None:
    assert check("this is not SPARQL", schema) == []
    assert check("", schema) == []


def test_an_unmeasured_store_has_no_hints_but_on_names(schema: Schema) -> None:
    bare = Schema(0, 0, {}, {}, schema.terms)
    assert check("SELECT * { ?d foo:bar ?x }", bare) != []


@pytest.mark.parametrize(
    ("wrong", "right"), [("scema", "schema"), ("dct", "dcterms"), ("SKOS", "skos"), ("zzzz", None)]
)
def test_the_nearest_prefix(wrong: str, right: str | None) -> None:
    assert nearest_prefix(wrong) == right


def test_a_known_namespace_is_no_slip() -> None:
    assert [iri for iri in PREFIXES.values() if nearest_namespace(iri)] == []
    assert nearest_namespace("https://example.org/something/else#") is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?d { ?doc a kg:PolicyDocument }", [("unbound_variable", "?doc")]),
        ("SELECT ?doc { ?doc a kg:PolicyDocument }", []),
        ("SELECT (1 AS ?one) { ?doc a kg:PolicyDocument }", []),
        ("SELECT ?y (COUNT(*) AS ?n) { ?d eli:date_document ?t } GROUP BY (YEAR(?t) AS ?y)", []),
        ("SELECT ?v { ?d a kg:PolicyDocument } VALUES ?v { 1 }", []),
        ('SELECT ?score { SERVICE kg:search { ?p kg:matches "x" ; kg:score ?score } }', []),
        ("SELECT ?d ?dLabel { ?d a kg:PolicyDocument SERVICE wikibase:label { bd:serviceParam ?p ?o } }", []),
        ("SELECT ?d ?dLabel { ?d a kg:PolicyDocument }", [("unbound_variable", "?d")]),
        ("SELECT ?g { GRAPH ?g { ?d a kg:PolicyDocument } }", []),
        ("SELECT ?n { { SELECT (COUNT(?d) AS ?n) { ?d a kg:PolicyDocument } } }", []),
        ("SELECT ?t { OPTIONAL { ?d dcterms:title ?t } }", []),
    ],
)
def test_a_variable_that_nothing_binds_is_named(query: str, expected: list[tuple[str, str]], schema: Schema) -> None:
    assert said(query, schema) == expected


def test_searching_outside_its_clause_is_shown_the_clause(schema: Schema) -> None:
    (hint,) = check('SELECT ?p { ?p kg:matches "heat" }', schema)
    assert hint.suggestions == ('SERVICE kg:search { ?unit kg:matches "words" ; kg:score ?score }',)


@pytest.mark.parametrize(
    ("body", "early"),
    [
        ("?d a kg:PolicyDocument OPTIONAL { ?d eli:date_document ?t } ?d kg:jurisdiction ?c", True),
        ("?d a kg:PolicyDocument OPTIONAL { ?d dcterms:title ?t } FILTER(BOUND(?t)) ?d kg:jurisdiction ?c", True),
        ("{ ?d a kg:PolicyDocument OPTIONAL { ?d eli:date_document ?t } ?d kg:jurisdiction ?c }", True),
        ("?d a kg:PolicyDocument ; kg:jurisdiction ?c OPTIONAL { ?d eli:date_document ?t }", False),
        ("?d a kg:PolicyDocument OPTIONAL { ?d kg:jurisdiction ?c } ?c skos:notation ?n", False),
        ("OPTIONAL { ?d eli:date_document ?t } ?d kg:jurisdiction ?c", False),
        ("?d a kg:PolicyDocument OPTIONAL { ?d eli:date_document ?t } FILTER(?d != ?t)", False),
    ],
)
def test_an_optional_that_holds_up_the_rest_is_named(body: str, early: bool, schema: Schema) -> None:
    codes = [hint.code for hint in check(f"SELECT * {{ {body} }}", schema)]
    assert codes == (["early_optional"] if early else [])
