"""SERVICE kg:search answers from the index, joins like any pattern, and says what is wrong with a clause and where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from kg.errors import InvalidInputError, QueryForbiddenError
from kg.knowledge_graph import KnowledgeGraph
from kg.search.protocol import Candidate, Ranking
from kg.settings import Settings
from kg.sparql.guard import check_query
from kg.store.protocol import Rows
from kg.tools.sparql.local_services import DEFAULT_HITS, blank_services, expand_services
from tests.tools.made_up import Passages, WordIndex

ALL = "SELECT * { SERVICE kg:search { %s } }"


def rows(kg: KnowledgeGraph, query: str) -> list[dict[str, Any]]:
    expanded = expand_services(kg, query)
    check_query(expanded)
    result = kg.pool.run(expanded).result
    assert isinstance(result, Rows)
    return list(result)


def test_hits_come_with_their_score_and_rank_best_first(kg: KnowledgeGraph) -> None:
    found = rows(kg, ALL % '?unit kg:matches "solar tariff" ; kg:score ?score ; kg:rank ?rank ; kg:limit 5')
    expected = [c for c in kg.search.rank("solar tariff", limit=5).candidates if c.score > 0]
    by_rank = sorted(found, key=lambda row: int(row["rank"].value))
    assert [row["unit"].value for row in by_rank] == [candidate.iri for candidate in expected]
    assert [float(row["score"].value) for row in by_rank] == [round(c.score, 6) for c in expected]
    assert {row["score"].datatype.value for row in found} == {"http://www.w3.org/2001/XMLSchema#decimal"}
    assert [int(row["rank"].value) for row in by_rank] == [1, 2, 3, 4, 5]


def test_fifty_hits_are_the_default(kg: KnowledgeGraph) -> None:
    assert len(rows(kg, ALL % '?unit kg:matches "solar"')) == DEFAULT_HITS


def test_a_clause_joins_with_patterns_optionals_and_other_clauses(kg: KnowledgeGraph, made: Passages) -> None:
    found = rows(
        kg,
        """PREFIX s: <http://schema.org/>
        SELECT ?a ?b ?text ?document WHERE {
          SERVICE kg:search { ?a kg:matches "solar" ; kg:limit 20 } # the first }
          ?a dcterms:isPartOf ?document ; s:text ?text .
          ?b dcterms:isPartOf ?document .
          { SELECT ?b { SERVICE kg:search { ?b kg:matches "carbon levy"@en ; kg:limit 20 . } } }
          OPTIONAL { SERVICE kg:search { ?c kg:matches "nothing has this" } }
          FILTER(?a != ?b) }""",
    )
    solar = {c.iri for c in kg.search.rank("solar", limit=20).candidates}
    carbon = {c.iri for c in kg.search.rank("carbon levy", limit=20).candidates}
    of = {passage.iri: passage.document for passage in made}
    expected = {(a, b) for a in solar for b in carbon if of[a] == of[b] and a != b}
    assert {(row["a"].value, row["b"].value) for row in found} == expected
    assert all(row["text"].value for row in found)


@pytest.mark.parametrize("frame", ["SELECT * { ?unit dcterms:isPartOf ?d FILTER EXISTS { %s } }",
                                   "SELECT * { { %s } UNION { VALUES ?unit {} } }",
                                   "SELECT * { GRAPH ?g { ?unit dcterms:isPartOf ?d %s } }",
                                   "SELECT * { ?unit dcterms:isPartOf ?d { SELECT ?unit { %s } } }"])  # fmt: skip
def test_a_clause_may_stand_wherever_a_pattern_may(kg: KnowledgeGraph, frame: str) -> None:
    found = rows(kg, frame % 'SERVICE kg:search { ?unit kg:matches "solar" ; kg:limit 7 }')
    expected = {c.iri for c in kg.search.rank("solar", limit=7).candidates}
    assert {row["unit"].value for row in found} == expected


def test_a_hit_that_the_graph_no_longer_has_does_no_harm(kg: KnowledgeGraph) -> None:
    assert isinstance(kg.search, WordIndex)
    kg.search.units["cpr://doc/gone#p=0"] = ("cpr://doc/gone", "zeppelin zeppelin")
    query = 'SELECT ?unit { SERVICE kg:search { ?unit kg:matches "zeppelin" ; kg:limit 1 } %s }'
    assert len(rows(kg, query % "")) == 1
    assert rows(kg, query % "?unit dcterms:isPartOf ?d") == []


class Modes:
    """An index that ranks one unit, and remembers how it was asked."""

    def __init__(self) -> None:
        self.modes: list[str] = []

    def rank(self, query: str, *, mode: str, **_: object) -> Ranking:
        self.modes.append(mode)
        return Ranking([Candidate("cpr://doc/a#p=1", 0.5, 7.25, 0.125)], exhaustive=True)


@pytest.mark.parametrize(("mode", "score"), [("bm25", 7.25), ("dense", 0.125), ("hybrid", 0.5), ("BM25", 7.25)])
def test_a_mode_ranks_by_its_own_score(kg: KnowledgeGraph, mode: str, score: float) -> None:
    index = kg.search = Modes()  # type: ignore[assignment]
    [row] = rows(kg, ALL % f'?u kg:matches "x" ; kg:mode "{mode}" ; kg:score ?s')
    assert float(row["s"].value) == score
    assert index.modes == [mode.lower()]


class Words:
    """An index that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rank(self, query: str, **_: object) -> Ranking:
        self.asked.append(query)
        return Ranking([], exhaustive=True)


LITERALS = [
    ('"rooftop solar"', "rooftop solar"),
    ("'rooftop solar'@en-GB", "rooftop solar"),
    ('"""rooftop\n"solar" }"""', 'rooftop\n"solar" }'),
    ("'''it''s'''", "it''s"),
    (r'"a\tb\"c\\d\u00e9\U0001F31E"', 'a\tb"c\\dé🌞'),
    ('"x"^^xsd:string', "x"),
    ('"x"^^<http://www.w3.org/2001/XMLSchema#string>', "x"),
]


@pytest.mark.parametrize(("literal", "words"), LITERALS)
def test_words_may_be_any_string_of_sparql(kg: KnowledgeGraph, literal: str, words: str) -> None:
    index = kg.search = Words()  # type: ignore[assignment]
    assert rows(kg, ALL % f"?unit kg:matches {literal} ; kg:score ?score") == []
    assert index.asked == [words]


@given(st.text(min_size=1).filter(str.strip))
def test_every_text_that_is_quoted_is_searched_as_it_is(words: str) -> None:
    index = Words()
    kg = KnowledgeGraph(Settings(_env_file=None), None, index, None)  # type: ignore[arg-type,call-arg]
    expand_services(kg, ALL % f"?unit kg:matches {Literal(words)}")
    assert index.asked == [words]


SPELLINGS = [
    'SELECT*{SERVICE kg:search{?u kg:matches"x"}}',
    'SELECT * { SERVICE <https://w3id.org/quadcite/ns#search> { ?u <https://w3id.org/quadcite/ns#matches> "x" . } }',
    'PREFIX q: <https://w3id.org/quadcite/ns#> SELECT * { service silent q:search { $u q:matches "x" ; ; } }',
    'SELECT * { SERVICE kg:search { # "y" }\n ?u kg:matches # c\n "x" . ?u kg:limit 3 . } }',
    'SELECT * { SERVICE kg:search { ?u kg:limit 3 ; kg:matches "x" ; kg:score ?s ; kg:score ?t } }',
]


@pytest.mark.parametrize("query", SPELLINGS)
def test_a_clause_may_be_written_as_sparql_may(kg: KnowledgeGraph, query: str) -> None:
    index = kg.search = Words()  # type: ignore[assignment]
    assert rows(kg, query) == []
    assert index.asked == ["x"]


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ("", "column 33: kg:matches .* missing"),
        ("?unit kg:score ?s", "kg:matches .* missing"),
        ("?unit kg:matches ?words", "column 49: kg:matches takes a constant, not ?words: the search runs before"),
        ("?unit kg:matches <a:b>", "kg:matches takes a string, not <a:b>"),
        ('?unit kg:matches "1"^^xsd:integer', "plain string"),
        ('?unit kg:matches "a" , "b"', "column 53: .* instead of ,"),
        ('?unit kg:matches "a" ; kg:matches "b"', "kg:matches is given twice"),
        ('?unit kg:match "a"', "property kg:match .*Did you mean kg:matches"),
        ('?unit rdfs:label "a"', "property rdfs:label .* kg:matches, kg:score"),
        ('?unit a kg:Passage ; kg:matches "a"', "property a of"),
        ('<a:b> kg:matches "a"', "<a:b> is not a variable"),
        ('?a kg:matches "a" . ?b kg:score ?s', "second subject next to ?a"),
        ('?unit kg:matches "a" ; kg:score 1', "kg:score takes a variable.*FILTER"),
        ('?unit kg:matches "a" ; kg:limit 0', "from 1 to 1000, not 0"),
        ('?unit kg:matches "a" ; kg:limit 1001', "from 1 to 1000"),
        ('?unit kg:matches "a" ; kg:limit 1.5', "from 1 to 1000"),
        ('?unit kg:matches "a" ; kg:limit ?n', "kg:limit takes a constant"),
        ('?unit kg:matches "a" ; kg:mode "fast"', 'kg:mode is one of "bm25", "dense", "hybrid", not "fast"'),
        ('?unit kg:matches "a" ; kg:score ?unit', "different variables"),
        ("?unit", "a property is missing"),
        ("?unit kg:matches", "kg:matches has no value"),
        ('?unit kg:matches "a" FILTER(?unit > 1)', "instead of FILTER"),
    ],
)
def test_an_error_says_where_and_what_would_do(kg: KnowledgeGraph, inner: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message.replace("?", r"\?")) as raised:
        expand_services(kg, ALL % inner)
    assert 'SERVICE kg:search { ?unit kg:matches "words"' in str(raised.value)
    assert "line 1" in str(raised.value)


def test_a_query_without_clauses_is_left_as_it_is(kg: KnowledgeGraph) -> None:
    query = "SELECT ?service { ?s ?p 'SERVICE kg:search {}' } # SERVICE kg:search {}"
    assert expand_services(kg, query) is query


def test_other_endpoints_are_refused_with_the_name_of_the_setting(kg: KnowledgeGraph) -> None:
    for clause in ("SERVICE <http://127.0.0.1/x> {}", "SERVICE SILENT ?where {}"):
        with pytest.raises(QueryForbiddenError, match=r"line 1, column 12.*Available: kg:search.*SERVICE_ENDPOINTS"):
            expand_services(kg, f"SELECT * {{ {clause} }}")


def test_nothing_is_searched_when_any_clause_is_wrong(kg: KnowledgeGraph) -> None:
    index = kg.search = Words()  # type: ignore[assignment]
    with pytest.raises(InvalidInputError):
        expand_services(
            kg, 'SELECT * { SERVICE kg:search { ?u kg:matches "x" } SERVICE kg:search { ?u kg:matches ?x } }'
        )
    assert index.asked == []


def test_the_label_service_is_answered_beside_a_search_and_its_mistakes_come_first(kg: KnowledgeGraph) -> None:
    search = 'SERVICE kg:search { ?unit kg:matches "solar" ; kg:limit 3 }'
    label = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "en" }'
    found = rows(kg, f"SELECT ?unit ?unitLabel WHERE {{ {label} {search} }}")
    assert [row["unitLabel"].value for row in found] == [row["unit"].value for row in found] != []
    with pytest.raises(InvalidInputError, match="wikibase:label"):
        blank_services(kg, f"SELECT ?unit WHERE {{ {search} {label.replace('wikibase:language', 'wikibase:label')} }}")
