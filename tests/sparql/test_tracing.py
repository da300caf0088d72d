"""Queries that list what was counted have as many rows as were counted; those for absences have none."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from kg.errors import InvalidInputError
from kg.sparql.tracing import MOST_TRACED, Count, find_absences, find_counts
from kg.vocabulary import PREFIXES
from tests.examples import dear

NODES = [NamedNode(f"urn:n{number}") for number in range(4)]
LINKS = [NamedNode(f"urn:p{number}") for number in range(3)]
VALUES = [
    Literal(1),
    Literal(2),
    Literal("1"),
    Literal("a", language="en"),
    Literal("$p0 ?x } #\"'\\\n"),
    Literal("2024-02-03", datatype=NamedNode(PREFIXES["xsd"] + "date")),
    Literal(0.5),
]


def ask(store: Store, query: str) -> list[dict[str, object]]:
    found = store.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
    assert isinstance(found, QuerySolutions)
    names = [variable.value for variable in found.variables]
    return [{name: row[name] for name in names} for row in found]


def checked(store: Store, query: str) -> Iterator[tuple[Count, dict[str, object], str | None]]:
    """Run `query` and each listing of its counts; check the number of rows. Yields each count with its listing."""
    for row in ask(store, query):
        for count in find_counts(query):
            cell = row[count.column]
            if cell is None:
                continue
            try:
                listing = count.compile(row)
            except InvalidInputError:
                yield count, row, None
                continue
            listed = ask(store, listing)
            if count.expression.upper().startswith("COUNT"):
                assert isinstance(cell, Literal)
                assert len(listed) == int(cell.value), listing
            yield count, row, listing


quads = st.lists(
    st.builds(
        Quad,
        st.sampled_from(NODES),
        st.sampled_from(LINKS),
        st.sampled_from([*NODES, *VALUES]),
        st.sampled_from([DefaultGraph(), *NODES[:2]]),
    ),
    max_size=25,
)
PATTERNS = [
    "?x <urn:p0> ?y .",
    "?x <urn:p1> ?z .",
    "GRAPH ?g { ?x ?p ?y }",
    "OPTIONAL { ?y <urn:p1> ?z }",
    "OPTIONAL { ?x <urn:p2> ?w } # a comment",
    "{ ?x <urn:p0> ?z } UNION { ?x <urn:p2> ?w }",
    "FILTER(isIRI(?x))",
    "{ SELECT DISTINCT ?x { ?x ?any ?thing } }",
    "{ SELECT ?x (COUNT(?o) AS ?inner) { ?x <urn:p0> ?o } GROUP BY ?x }",
    "VALUES ?y { UNDEF <urn:n0> 1 }",
    "?x <urn:p0>/<urn:p1>* ?v .",
    "MINUS { ?x <urn:p2> <urn:n0> }",
]
KEYS = ["?x", "?y", "?z", "?w", "(isLiteral(?y) AS ?kind)", "(STR(?z) AS ?text)", "(?y)"]
AGGREGATES = [
    "COUNT(*)", "COUNT(?y)", "COUNT(DISTINCT ?y)", "count ( distinct ?x )", "COUNT(?none)", "COUNT(DISTINCT STR(?z))",
    "COUNT(1 + ?y)", "SUM(?y)", "GROUP_CONCAT(STR(?y) ; SEPARATOR = ', ')", "COUNT(?y) * 1",
]  # fmt: skip


@st.composite
def counting_queries(draw: st.DrawFn) -> str:
    body = "\n".join(draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=4, unique=True)))
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique_by=lambda key: key.strip("()").rpartition(" ")[2]))
    names = [key.strip("()").rpartition(" ")[2] for key in keys]
    chosen = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2))
    columns = [*names, *(f"({each} AS ?n{number})" for number, each in enumerate(chosen))]
    query = f"PREFIX n: <urn:n> SELECT {' '.join(columns)} WHERE {{ {body} \n}}"
    query += f" GROUP BY {' '.join(keys)}" if keys else ""
    query += draw(st.sampled_from(["", " HAVING (COUNT(*) > 1)"]))
    return query + draw(st.sampled_from(["", " ORDER BY DESC(?n0)", " LIMIT 2", " OFFSET 1"]))


@hypothesis_settings(max_examples=dear(150))
@given(quads, counting_queries())
def test_listing_of_a_count_has_as_many_rows_as_were_counted(data: list[Quad], query: str) -> None:
    store = Store()
    store.extend(data)
    for count, row, listing in checked(store, query):
        assert listing is not None, (count, row)


@hypothesis_settings(max_examples=dear(100))
@given(
    quads,
    st.lists(st.sampled_from(PATTERNS), max_size=3, unique=True),
    st.sampled_from(
        [
            "{ SELECT ?x (COUNT(DISTINCT ?o) AS ?n) { ?x <urn:p0> ?o } GROUP BY ?x }",
            "OPTIONAL { { SELECT ?x (COUNT(?o) AS ?n) { ?x ?any ?o } GROUP BY ?x HAVING(COUNT(?o) > 1) } }",
            "{ SELECT ?y (COUNT(?x) AS ?n) { ?x <urn:p0> ?o OPTIONAL { ?o <urn:p1> ?y } } GROUP BY ?y }",
            "{ { SELECT (COUNT(*) AS ?n) { ?s ?q ?o } } UNION { SELECT ?x (COUNT(*) AS ?m) {?x ?q ?o} GROUP BY ?x } }",
        ]
    ),
    st.sampled_from(["*", "?x ?y ?n", "?n"]),
)
def test_listing_of_a_count_of_a_sub_select_is_right_or_absent(
    data: list[Quad], around: list[str], counting: str, columns: str
) -> None:
    store = Store()
    store.extend(data)
    for _ in checked(store, f"SELECT {columns} {{ {' '.join(each + chr(10) for each in around)} {counting} }}"):
        pass


def test_count_of_a_sub_select_is_listed_by_the_row_of_the_outer_query() -> None:
    store = Store()
    store.extend(Quad(NODES[0], LINKS[0], value) for value in NODES[:3])
    query = "SELECT ?x ?n { ?x <urn:p0> <urn:n1> { SELECT ?x (COUNT(?y) AS ?n) { ?x <urn:p0> ?y } GROUP BY ?x } }"
    [(_, row, listing)] = checked(store, query)
    assert listing is not None
    assert (row["n"], len(ask(store, listing))) == (Literal(3), 3)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (COUNT(*) AS ?n) { ?x <urn:p0> ?y } GROUP BY ?x",
        "SELECT (COUNT(*) AS ?n) { ?x <urn:p0> ?y } GROUP BY STR(?x)",
        "SELECT (COUNT(DISTINCT *) AS ?n) { ?x <urn:p0> ?y }",
        "SELECT (COUNT(?r) AS ?n) { ?x <urn:p0> ?y BIND(RAND() AS ?r) }",
        "SELECT ?b (COUNT(?x) AS ?n) { ?x <urn:p0> ?y BIND(BNODE(STR(?y)) AS ?b) } GROUP BY ?b",
        "SELECT ?n { { SELECT ?x (COUNT(?y) AS ?n) { ?x <urn:p0> ?y } GROUP BY ?x } }",
        "SELECT ?x ?n { GRAPH ?g { { SELECT ?x (COUNT(?y) AS ?n) { ?x <urn:p0> ?y } GROUP BY ?x } } }",
        "SELECT * { { SELECT ?z (COUNT(?y) AS ?n) { ?x <urn:p0> ?y OPTIONAL { ?y <urn:p0> ?z } } GROUP BY ?z } }",
    ],
)
def test_count_that_cannot_be_listed_has_a_reason_and_no_query(query: str) -> None:
    [count] = find_counts(query)
    with pytest.raises(InvalidInputError) as error:
        count.compile({"b": None, "n": Literal(1)})
    assert str(error.value) in (count.reason, count.row_reason)


def test_row_with_a_blank_node_has_no_listing() -> None:
    store = Store()
    store.add(Quad(NODES[0], LINKS[0], NODES[1]))
    query = "SELECT ?t (COUNT(*) AS ?n) { ?x <urn:p0> ?y BIND(<<( ?x <urn:p0> ?y )>> AS ?t) } GROUP BY ?t"
    [(_, row, listing)] = checked(store, query)
    assert isinstance(row["t"], Triple)
    assert listing is not None


def test_comment_in_a_group_key_is_not_in_the_listing() -> None:
    store = Store()
    store.extend(Quad(node, LINKS[0], NODES[1]) for node in NODES[:3])
    query = "SELECT ?k (COUNT(*) AS ?n) { ?x <urn:p0> ?y } GROUP BY (STR(?y) # the key\n AS ?k)"
    [(_, row, listing)] = checked(store, query)
    assert listing is not None
    assert (row["n"], len(ask(store, listing))) == (Literal(3), 3)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * {{ ?x <urn:p0> ?y {'MINUS{?x ?y ?z}' * 1_200} }}",
        f"SELECT * {{ ?x <urn:p0> ?y {'FILTER NOT EXISTS{?x ?y ?z}' * 650} }}",
        f"SELECT ({'+'.join(['COUNT(-?x)'] * 1_500)} AS ?n) {{ ?x <urn:p0> ?y }}",
    ],
)
def test_first_aggregates_and_absences_of_a_long_query_are_traced_in_time(query: str) -> None:
    row = {"n": Literal(1), "x": NODES[0], "y": NODES[1]}
    start = time.process_time()
    found = [*find_counts(query), *find_absences(query)]
    texts = [each.compile(row) for each in found if each.reason is None]
    assert time.process_time() - start < 5
    assert 0 < len(texts) == MOST_TRACED < len(found)


@pytest.mark.parametrize("text", ["", "ASK { ?s ?p ?o }", "SELECT ?x { ?x a ?y }", "SELECT ((", "DESCRIBE <x:y>"])
def test_query_without_aggregates_has_no_counts(text: str) -> None:
    assert find_counts(text) == []


ABSENCES = [
    "FILTER NOT EXISTS { ?x <urn:p1> ?y }",
    "FILTER (NOT EXISTS { ?x <urn:p1> ?other FILTER(?other != ?y) })",
    "FILTER NOT EXISTS { GRAPH ?g { ?x <urn:p2> ?z } }",
    "MINUS { ?x <urn:p1> ?y }",
    "MINUS { ?x <urn:p1> ?late # a comment\n } OPTIONAL { ?x <urn:p2> ?late }",
    "MINUS { ?u <urn:p1> ?v } ?u <urn:p0> ?v",
]


@hypothesis_settings(max_examples=dear(150))
@given(
    quads,
    st.lists(st.sampled_from(PATTERNS[:11]), min_size=1, max_size=3, unique=True),
    st.sampled_from(ABSENCES),
    st.sampled_from(["*", "DISTINCT ?x", "?y", "?x (COUNT(*) AS ?n)"]),
)
def test_query_of_an_absence_has_no_rows(data: list[Quad], around: list[str], absence: str, columns: str) -> None:
    store = Store()
    store.extend(data)
    query = f"SELECT {columns} {{ {' '.join(each + chr(10) for each in around)} {absence} }}"
    query += " GROUP BY ?x" if "COUNT" in columns else ""
    for row in ask(store, query):
        for found in find_absences(query):
            if found.reason is None:
                assert ask(store, found.compile(row)) == [], found.compile(row)


def test_query_of_an_absence_finds_what_was_excluded() -> None:
    store = Store()
    store.extend([Quad(NODES[0], LINKS[0], NODES[1]), Quad(NODES[2], LINKS[0], NODES[1])])
    query = "SELECT ?x { ?x <urn:p0> ?y FILTER NOT EXISTS { ?x <urn:p1> ?z } }"
    [found] = find_absences(query)
    looked_for = found.compile({"x": NODES[0]})
    assert ask(store, looked_for) == []
    store.add(Quad(NODES[2], LINKS[1], NODES[3]))
    assert ask(store, looked_for) == []
    store.add(Quad(NODES[0], LINKS[1], NODES[3]))
    assert len(ask(store, looked_for.replace(query[query.index("FILTER") : -2], ""))) == 1


@pytest.mark.parametrize(
    "clause",
    [
        "FILTER(?y = 1 || NOT EXISTS { ?x <urn:p1> ?z })",
        "FILTER NOT EXISTS { ?x <urn:p1> ?z OPTIONAL { ?z <urn:p1> ?y } }",
        "MINUS { ?u <urn:p1> ?v }",
        "OPTIONAL { ?x <urn:p1> ?z } MINUS { ?x <urn:p2> ?z }",
    ],
)
def test_absence_that_cannot_be_shown_has_a_reason_and_no_query(clause: str) -> None:
    [found] = find_absences(f"SELECT ?x {{ ?x <urn:p0> ?y {clause} }}")
    assert found.reason
    with pytest.raises(InvalidInputError):
        found.compile({"x": NODES[0]})
