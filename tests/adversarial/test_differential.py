"""What the server answers over HTTP, in any format, is what pyoxigraph by itself finds over the same quads."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import httpx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, QueryResultsFormat, QuerySolutions, RdfFormat, Store, parse, parse_query_results

from tests.adversarial.corpus import EXAMPLE
from tests.adversarial.running import running
from tests.examples import dear

pytestmark = pytest.mark.long

RESULTS = ("application/sparql-results+json", "application/sparql-results+xml", "text/tab-separated-values", "text/csv")
GRAPHS = ("text/turtle", "application/n-triples", "application/rdf+xml", "application/trig", "application/ld+json")
SEPARATORS = r"},{\n\"</result><result>"

nodes = st.integers(0, 30).map("e:{}".format)
variables = st.sampled_from(["?a", "?b", "?c"])
paths = st.sampled_from(["e:p0", "e:p1", "e:text", "?p", "e:p0/e:p1", "^e:p1", "(e:p0|e:p1)", "!e:text"])
seeds = st.builds(
    "{{ VALUES ?a {{ {} {} UNDEF }} ?a e:p0 ?b FILTER(?b IN ({}, e:3, e:4)) }}".format, nodes, nodes, nodes
)
filters = st.sampled_from(
    ["STRLEN(STR(?a)) > 20", "isIRI(?c)", "BOUND(?c)", 'REGEX(STR(?b), "5$")', "?a IN (e:1, e:2)"]
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{} ?a {} ?c .".format, inner, paths),
        st.builds("{} OPTIONAL {{ ?b {} {} }}".format, inner, paths, variables),
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        st.builds("{} MINUS {}".format, inner, seeds),
        st.builds("{} FILTER({})".format, inner, filters),
        st.builds("{{ SELECT ?a (COUNT(*) AS ?n) {{ {} }} GROUP BY ?a }}".format, inner),
        st.builds("GRAPH ?g {{ {} }}".format, inner),
    )


patterns = st.recursive(seeds, _larger, max_leaves=4)
forms = st.sampled_from(
    ["SELECT *", "SELECT DISTINCT ?a ?c", "SELECT (MIN(?a) AS ?m) (COUNT(?c) AS ?k)", "TEXT", "ASK", "CONSTRUCT"]
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Store]]:
    folder = tmp_path_factory.mktemp("differential")
    with running(folder, query_timeout_s="20", max_rows="1000000") as server, server.client() as client:
        rows = _ask(client, "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }", RESULTS[2])
        store = Store()
        solutions = parse_query_results(rows, format=QueryResultsFormat.TSV)
        store.extend(Quad(*row) for row in solutions)  # type: ignore[union-attr]
        yield client, store


def _ask(client: httpx.Client, query: str, media_type: str) -> bytes:
    headers = {"Content-Type": "application/sparql-query", "Accept": media_type}
    response = client.post("/sparql", content=query, headers=headers)
    assert response.status_code == 200, f"{query}: {response.text}"
    assert response.headers.get("Quadcite-Truncated", "false") == "false"
    return response.content


def _rows(solutions: object) -> tuple[list[str], Counter[tuple[str, ...]]]:
    """The variables and rows, with the columns sorted: of SELECT *, the engine has another order than the query."""
    assert isinstance(solutions, QuerySolutions)
    names = [str(name) for name in solutions.variables]
    order = sorted(range(len(names)), key=names.__getitem__)
    rows = Counter(tuple(str(row[column]) for column in order) for row in solutions)
    return [names[column] for column in order], rows


def _lines(text: bytes) -> tuple[list[str], Counter[tuple[str, ...]]]:
    """The header and lines of CSV, with the columns sorted as in `_rows`."""
    header, *lines = csv.reader(io.StringIO(text.decode(), newline=""))
    order = sorted(range(len(header)), key=header.__getitem__)
    rows = Counter(tuple(line[column] for column in order if column < len(line)) for line in lines)
    return [header[column] for column in order], rows


MOST_ROWS = 5_000
"""Larger results are cross products: they take seconds each, and show nothing that smaller ones do not."""


@settings(max_examples=dear(75), suppress_health_check=list(HealthCheck))
@given(form=forms, pattern=patterns, results=st.sampled_from(RESULTS), graphs=st.sampled_from(GRAPHS))
def test_answers_are_those_of_the_engine(
    served: tuple[httpx.Client, Store], form: str, pattern: str, results: str, graphs: str
) -> None:
    client, store = served
    solutions = store.query(f"PREFIX e: <{EXAMPLE}> SELECT * WHERE {{ {pattern} }}", use_default_graph_as_union=True)
    assume(sum(1 for _ in islice(solutions, MOST_ROWS + 1)) <= MOST_ROWS)  # type: ignore[arg-type]
    head, tail = form, ""
    if form == "TEXT":
        head, tail = "SELECT *", f'BIND(CONCAT(STR(?a), "{SEPARATORS}", STR(?b)) AS ?z)'
    if form == "CONSTRUCT":
        head = f'CONSTRUCT {{ ?a e:x ?c . ?a e:y "{SEPARATORS}" }}'
    query = f"PREFIX e: <{EXAMPLE}> {head} WHERE {{ {pattern} {tail} }}"
    expected = store.query(query, use_default_graph_as_union=True)
    if form == "CONSTRUCT":
        found = parse(_ask(client, query, graphs), format=RdfFormat.from_media_type(graphs))
        assert {quad.triple for quad in found} == set(expected)  # type: ignore[arg-type]
    elif form == "ASK":
        answer = parse_query_results(_ask(client, query, RESULTS[0]), format=QueryResultsFormat.JSON)
        assert bool(answer) == bool(expected)
    elif results == "text/csv":
        assert isinstance(expected, QuerySolutions)
        assert _lines(_ask(client, query, results)) == _lines(expected.serialize(format=QueryResultsFormat.CSV) or b"")
    else:
        answer = parse_query_results(
            _ask(client, query, results),
            format=QueryResultsFormat.from_media_type(results),
        )
        assert _rows(answer) == _rows(expected)
