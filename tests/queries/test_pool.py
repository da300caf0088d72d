"""Queries run in workers that can be killed: limits hold, answers are exact, nothing is left behind."""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyoxigraph import (
    BaseDirection,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryResultsFormat,
    RdfFormat,
    Store,
    Triple,
    parse,
    parse_query_results,
)

from kg.errors import (
    InvalidInputError,
    QueryBusyError,
    QueryForbiddenError,
    QueryLimitError,
    QueryMemoryError,
    QuerySyntaxError,
    QueryTimeoutError,
)
from kg.queries import dispatcher
from kg.queries import pool as sandbox
from kg.queries.pool import UNLIMITED, Cancellation, QueryPool
from kg.queries.worker import PIECE_BYTES, RowCutter, RowLimitReached, XmlCheck
from kg.settings import Settings
from kg.store.protocol import Rows, Snapshot
from tests.examples import dear
from tests.waiting import HANG_S, LIMITS_S, until

COUNT = 3_000
CROSS_JOIN = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }"
JSON, XML = "application/sparql-results+json", "application/sparql-results+xml"
CSV, TSV = "text/csv", "text/tab-separated-values"


class Snapshots:
    """The smallest store that a pool can stand on: checkpoints of a pyoxigraph store, with their users counted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(str(folder / "store"))
        p, next_ = NamedNode("http://example.org/p"), NamedNode("http://example.org/next")
        nodes = [NamedNode(f"http://example.org/{i}") for i in range(COUNT)]
        self.store.extend(Quad(node, p, Literal(f"value {i}"), p) for i, node in enumerate(nodes))
        self.store.extend(Quad(nodes[i], next_, nodes[(i + 1) % 60], p) for i in range(60))
        self.store.extend(Quad(nodes[i], next_, nodes[(i + 7) % 60], p) for i in range(60))
        self.generation = 0
        self.users: dict[int, int] = {}
        self.commit()

    def commit(self, *quads: Quad) -> None:
        self.store.extend(quads)
        self.generation += 1
        self.store.backup(str(self.folder / str(self.generation)))
        self.users[self.generation] = 0

    def snapshot(self, at_least: int = 0) -> Snapshot:
        generation = self.generation
        self.users[generation] += 1

        def release() -> None:
            self.users[generation] -= 1

        return Snapshot(generation, self.folder / str(generation), release=release)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    return Snapshots(tmp_path_factory.mktemp("snapshots"))


@pytest.fixture(scope="module")
def pool(snapshots: Snapshots) -> Iterator[QueryPool]:
    with QueryPool(snapshots, Settings(query_workers=2, query_timeout_s=100, query_memory_mb=200)) as opened:
        yield opened


def states(pool: QueryPool) -> list[str]:
    return sorted(query.state for query in pool.list_queries())


def processes() -> list[str]:
    """Our children, zombies too."""
    task = Path(f"/proc/{os.getpid()}/task")
    return [child for thread in task.iterdir() for child in (thread / "children").read_text().split()]


def test_each_form_has_its_finished_result(pool: QueryPool) -> None:
    rows = pool.run('SELECT ?s ?none { ?s ?p "value 7" }').result
    assert rows == Rows(("s", "none"), [(NamedNode("http://example.org/7"), None)])
    assert pool.run("ASK { ?s ?p 'value 7' }").result is True
    assert pool.run("ASK { ?s ?p 'no value' }").result is False
    triple = Triple(NamedNode("http://example.org/7"), NamedNode("http://example.org/p"), Literal("value 7"))
    assert pool.run("CONSTRUCT WHERE { ?s ?p 'value 7' }").result == [triple]
    assert pool.run("SELECT * { FILTER(false) }").result == Rows((), [])
    assert pool.run("SELECT * {}").result == Rows((), [()])


STARS = {
    "SELECT * { ?z ?b ?a } LIMIT 1": ("z", "b", "a"),
    "select*{?z ?b ?a}": ("z", "b", "a"),
    "PREFIX ex: <urn:x> SELECT DISTINCT * { ?z ?b $a OPTIONAL { ?z ?b ?c } }": ("z", "b", "a", "c"),
    "# ?a first\nSELECT * { ?z ?b ?c FILTER(?c != '?a') BIND(1 AS ?a) }": ("z", "b", "c", "a"),
    "SELECT * { ?z ?b ?y MINUS { ?a ?b ?z } }": ("z", "b", "y"),
    "SELECT * { { SELECT ?z (COUNT(?a) AS ?n) { ?z ?b ?a } GROUP BY ?z } } ORDER BY ?n": ("z", "n"),
    "SELECT * { ?z ?b ?a } VALUES ?y { 1 }": ("z", "b", "a", "y"),
    "SELECT * { ?z ?b ?a } #" + "-" * 3_000: ("z", "b", "a"),
}


@pytest.mark.parametrize(("query", "columns"), STARS.items())
def test_select_star_has_the_columns_in_the_order_of_the_query(
    pool: QueryPool, query: str, columns: tuple[str, ...]
) -> None:
    found = pool.run(query).result
    assert isinstance(found, Rows)
    assert found.variables == columns
    alphabetical = pool.run(query.replace("*", " " + " ".join(f"?{name}" for name in sorted(columns)) + " ", 1)).result
    assert isinstance(alphabetical, Rows)
    assert len(found)
    assert sorted(sorted(map(str, row.items())) for row in found) == sorted(
        sorted(map(str, row.items())) for row in alphabetical
    )


@pytest.mark.parametrize(
    ("media_type", "head"),
    [
        ("text/csv", b"z,b,a\r\n"),
        ("text/tab-separated-values", b"?z\t?b\t?a\n"),
        ("application/sparql-results+json", b'{"head":{"vars":["z","b","a"]}'),
        ("application/sparql-results+xml", b'<variable name="z"/><variable name="b"/><variable name="a"/>'),
    ],
)
def test_every_format_has_the_columns_in_the_order_of_the_query(pool: QueryPool, media_type: str, head: bytes) -> None:
    with pool.stream("SELECT * { ?z ?b ?a }", media_type=media_type, limit=3) as answer:
        assert head in b"".join(answer)


def test_prefixes_are_declared_and_the_default_graph_is_the_union(pool: QueryPool) -> None:
    assert pool.run("SELECT (kg:Passage AS ?x) {}").result.rows == [
        (NamedNode("https://w3id.org/quadcite/ns#Passage"),)
    ]
    assert pool.run("SELECT ?s { ?s ?p ?o }", limit=UNLIMITED).result.rows


def test_from_narrows_the_default_graph_to_what_it_names(pool: QueryPool) -> None:
    count = "SELECT (COUNT(*) AS ?n) FROM <http://example.org/{}> {{ ?s ?p ?o }}"
    [[none]] = pool.run(count.format("other")).result.rows
    [[some]] = pool.run(count.format("p")).result.rows
    assert (none, some) == (Literal(0), Literal(COUNT + 120))
    assert pool.run("SELECT * FROM NAMED <http://example.org/p> { ?s ?p ?o }").result.rows == []


@pytest.mark.parametrize("character", ["\\u0000", "\\u001F", "\\uFFFE", "\\uFFFF"])
def test_a_result_that_xml_cannot_carry_is_no_broken_xml(pool: QueryPool, character: str) -> None:
    query = f'SELECT ("a{character}\\t\\n\\r" AS ?x) {{}}'
    with (
        pytest.raises(InvalidInputError, match=r"U\+(0000|001F|FFF[EF]), .* JSON"),
        pool.stream(query, media_type=XML) as stream,
    ):
        b"".join(stream)
    with pool.stream(query, media_type=JSON) as stream:
        assert json.loads(b"".join(stream))["results"]["bindings"][0]["x"]["value"][1:] == (
            json.loads(f'"{character}"') + "\t\n\r"
        )


def test_a_character_that_xml_cannot_carry_is_found_across_pieces() -> None:
    check = XmlCheck()
    check(b"<literal>\xef\xbf\xbd \xef")
    check(b"\xbf")
    with pytest.raises(ValueError, match=r"U\+FFFE"):
        check(b"\xbe</literal>")


ATOMS = st.sampled_from(
    [Literal(""), Literal('a\t"\\\n\r\x00\x01\x7f,},{ é😀'), Literal("x", language="en-gb"), Literal(7), Literal(True),
     Literal(1.5), Literal("x", language="ar", direction=BaseDirection.RTL), NamedNode("http://example.org/a,b'"),
     Literal("zz", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))]
)  # fmt: skip
TERMS = ATOMS | st.text(max_size=20).map(Literal)


@hypothesis_settings(max_examples=dear(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TERMS | st.builds(lambda o: Triple(NamedNode("a:b"), NamedNode("a:c"), o), TERMS), max_size=5))
def test_every_term_comes_back_as_oxigraph_has_it(pool: QueryPool, terms: list[Literal]) -> None:
    query = sandbox_query(terms)
    assert [row[0] for row in pool.run(query).result.rows] == [row[0] for row in Store().query(query)]


def sandbox_query(terms: list[Literal]) -> str:
    from kg.sparql.terms import bind

    return bind("SELECT ?x { VALUES ?x { $terms } }", terms=terms)


def test_errors_name_the_problem(pool: QueryPool) -> None:
    with pytest.raises(QuerySyntaxError, match=r"line 2, column"):
        pool.run("SELECT * {\n ?s ?p }")
    with pytest.raises(QueryForbiddenError, match="SERVICE"):
        pool.run("SELECT * { SERVICE <http://127.0.0.1/> {} }")
    with pytest.raises(QueryForbiddenError, match="read-only"):
        pool.run("DROP ALL")
    with pytest.raises(InvalidInputError, match="custom function"):
        pool.run("SELECT (<a:f>(1) AS ?x) {}")
    with pytest.raises(InvalidInputError, match="RDF format"):
        pool.stream("ASK {}", media_type="text/turtle")
    with pytest.raises(InvalidInputError, match="limit"):
        pool.run("ASK {}", limit=0)
    with pytest.raises(InvalidInputError, match="timeout_s"):
        pool.run("ASK {}", timeout_s=0)


HOSTILE = {
    "cross join": CROSS_JOIN,
    "path bomb": "SELECT (COUNT(*) AS ?n) { ?a (<http://example.org/next>*/<http://example.org/next>*)* ?b . "
    "?c (<http://example.org/next>*/<http://example.org/next>*)* ?d . ?e ?f ?g . ?h ?i ?j }",
    "sorted cross join": "SELECT ?a ?c { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f "
    "FILTER(STRLEN(CONCAT(STR(?b), STR(?d))) > 999) } "
    "ORDER BY ?f",
    "regex over a cross join": "ASK { ?a ?p ?b . ?c ?q ?d FILTER(REGEX(CONCAT(STR(?b), STR(?d)), '(x+x+)+y')) }",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_query_is_stopped_at_its_deadline(pool: QueryPool, name: str) -> None:
    started = time.monotonic()
    with pytest.raises(QueryTimeoutError, match=r"deadline of 0.4 s .*QUADCITE_QUERY_TIMEOUT_S"):
        pool.run(HOSTILE[name], timeout_s=0.4)
    assert time.monotonic() - started < HANG_S / 2
    assert pool.run("ASK {}").result is True


def test_a_query_that_takes_too_much_memory_is_stopped(pool: QueryPool) -> None:
    # each row is long, so that memory ends well before the time does
    blow_up = f"SELECT (GROUP_CONCAT(REPLACE(STR(?b), '.', '{'x' * 2000}')) AS ?x) {{ ?a ?p ?b . ?c ?q ?d }}"
    with pytest.raises(QueryMemoryError, match=r"200 MiB .*QUADCITE_QUERY_MEMORY_MB"):
        pool.run(blow_up, timeout_s=UNLIMITED)
    assert pool.run("ASK {}").result is True


@pytest.mark.long
def test_a_finished_result_is_bounded_too(snapshots: Snapshots) -> None:
    with QueryPool(snapshots, Settings(query_workers=1, query_memory_mb=200)) as small:
        wide = f"SELECT ?a (REPLACE(STR(?o), '.', '{'x' * 2000}') AS ?long) {{ ?s ?p ?o . ?a ?b ?c }}"
        with pytest.raises(QueryMemoryError, match="larger than 200 MiB"):
            small.run(wide, timeout_s=UNLIMITED)
        assert small.run("ASK {}").result is True


def test_one_runaway_costs_no_other_query_anything(pool: QueryPool) -> None:
    outcomes: list[object] = []

    def runaway() -> None:
        try:
            outcomes.append(pool.run(CROSS_JOIN, timeout_s=0.3))
        except QueryTimeoutError as error:
            outcomes.append(error)

    def good(number: int) -> None:
        outcomes.append(pool.run(f"SELECT ?s {{ ?s ?p 'value {number}' }}").result.rows)

    runaways = [threading.Thread(target=runaway) for _ in range(2)]
    for thread in runaways:
        thread.start()
    until(lambda: len(pool.list_queries()) == 2 or outcomes)  # or they would wait for a worker behind the others
    threads = [threading.Thread(target=good, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in [*runaways, *threads]:
        thread.join()
    assert sum(isinstance(outcome, QueryTimeoutError) for outcome in outcomes) == 2
    expected = [[(NamedNode(f"http://example.org/{number}"),)] for number in range(40)]
    assert sorted((o for o in outcomes if isinstance(o, list)), key=str) == sorted(expected, key=str)


def test_a_full_queue_refuses_and_says_so(snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "SLICE_S", math.inf)  # so that the long query leaves its place to none
    with QueryPool(snapshots, Settings(query_workers=1, query_queue=1)) as small:
        with small.stream("SELECT * { ?a ?b ?c . ?d ?e ?f }", media_type=CSV, limit=UNLIMITED, timeout_s=UNLIMITED):
            with pytest.raises(QueryBusyError, match="QUADCITE_QUERY_WORKERS"):
                small.run("ASK {}", timeout_s=0.05)
            waiting = threading.Thread(target=lambda: small.run("ASK {}"))
            waiting.start()
            until(lambda: states(small) == ["running", "waiting"])
            with pytest.raises(QueryBusyError, match="QUADCITE_QUERY_QUEUE") as raised:
                small.run("ASK {}")
            assert raised.value.retryable
        waiting.join()


def test_a_query_can_be_cancelled_while_it_runs_and_while_it_waits(snapshots: Snapshots) -> None:
    with QueryPool(snapshots, Settings(query_workers=1, query_timeout_s=100)) as small:
        running, waiting = Cancellation(), Cancellation()
        errors: list[str] = []

        def run(cancellation: Cancellation) -> None:
            with pytest.raises(QueryLimitError) as raised:
                small.run(CROSS_JOIN, cancellation=cancellation)
            errors.append(str(raised.value))

        threads = [threading.Thread(target=run, args=(running,)), threading.Thread(target=run, args=(waiting,))]
        for number, thread in enumerate(threads):
            thread.start()
            until(lambda number=number: states(small) == ["running", "waiting"][: number + 1])
        waiting.cancel()
        threads[1].join()
        running.cancel()
        threads[0].join()
        assert errors == ["The query was cancelled before it started.", "The query was cancelled."]
        running.cancel()  # too late to harm whoever has the worker now
        assert small.run("ASK {}").result is True


def test_a_worker_that_died_idle_is_replaced_unseen(snapshots: Snapshots) -> None:
    with QueryPool(snapshots, Settings(query_workers=2)) as small:
        for worker in list(small.dispatcher._idle):
            os.kill(worker.process.pid, signal.SIGKILL)
        assert small.run("ASK {}").result is True
        assert small.run("ASK {}").result is True


@pytest.mark.parametrize("media_type", [JSON, XML, CSV, TSV])
@pytest.mark.parametrize("limit", [1, 2, 7, 8, 9])
def test_a_limit_gives_that_many_rows_well_formed_and_says_what_it_cut(
    pool: QueryPool, media_type: str, limit: int
) -> None:
    query = 'SELECT ?x ?y { VALUES ?x { "},{" "a\\r\\n\\"b\\"" "</result><result>" "\\\\" UNDEF 6 7 8 } }'
    with pool.stream(query, media_type=media_type, limit=limit) as stream:
        data = b"".join(stream)
    assert stream.truncated is (limit < 8)
    if media_type == CSV:
        whole = Store().query(query).serialize(format=QueryResultsFormat.CSV)
        assert whole.startswith(data)
        assert data.endswith(b"\r\n")
        assert (data == whole) is (limit >= 8)
    else:
        rows = parse_query_results(data, format=QueryResultsFormat.from_media_type(media_type))
        assert [row["x"] for row in rows] == [row["x"] for row in Store().query(query)][:limit]
    assert len(pool.run(query, limit=limit).result) == min(limit, 8)
    assert pool.run(query, limit=limit).truncated is (limit < 8)


@given(st.lists(st.sampled_from(["},{", '"', "\\", "\r\n", "\n", "</result><result>", "x"]), min_size=1).map("".join),
       st.integers(1, 7), st.integers(1, 9), st.sampled_from([JSON, XML, CSV, TSV]), st.booleans())  # fmt: skip
def test_rows_are_counted_however_the_bytes_are_cut(
    text: str, step: int, limit: int, media_type: str, empty: bool
) -> None:
    from kg.sparql.terms import bind

    rows = [(Literal(text + str(i)), Literal(str(i) + text)) for i in range(6)]
    query = bind("SELECT ?a ?b { VALUES (?a ?b) { $rows } }", rows=rows)
    if empty:
        query = query.replace("SELECT ?a ?b", "SELECT ?c ?d")
    results = QueryResultsFormat.from_media_type(media_type)
    whole, expected = (Store().query(query + f" LIMIT {n}").serialize(format=results) for n in (6, limit))
    out: list[bytes] = []
    cutter = RowCutter(media_type, limit, out.append)
    cutter._flush_bytes = 1  # as if each piece were large
    try:
        for start in range(0, len(whole), step):
            cutter.write(whole[start : start + step])
        cutter.finish()
    except RowLimitReached:
        assert limit < 6
    else:
        assert limit >= 6
    assert b"".join(out) == expected


def test_triples_are_limited_in_every_format(pool: QueryPool) -> None:
    for media_type in ("text/turtle", "application/n-triples"):
        stream = pool.stream("CONSTRUCT WHERE { ?s ?p ?o }", media_type=media_type, limit=3)
        lines = [line for line in b"".join(stream).splitlines() if not line.startswith(b"@prefix")]
        assert (len(lines), stream.truncated) == (3, True)
    assert pool.run("CONSTRUCT WHERE { ?s ?p ?o }", limit=3).truncated


PREFIX_DECLARATION = re.compile(rb"@prefix (\w+):|xmlns:(\w+)=")


@pytest.mark.parametrize(
    ("media_type", "used"),
    [
        ("text/turtle", {b"kg", b"dcterms", b"xsd"}),
        ("application/trig", {b"kg", b"dcterms", b"xsd"}),
        # The serializer always declares these two; only properties are written with prefixes.
        ("application/rdf+xml", {b"dcterms", b"rdf", b"its"}),
        ("application/n-triples", set()),
    ],
)
def test_graph_result_declares_only_prefixes_that_it_uses(pool: QueryPool, media_type: str, used: set[bytes]) -> None:
    query = """CONSTRUCT { kg:a dcterms:title "geo:x <foaf:y> \\" prov:z", "skos:q"@en ; dcterms:date ?date }
        WHERE { BIND("2020-01-01"^^xsd:date AS ?date) }"""
    with pool.stream(query, media_type=media_type) as stream:
        body = b"".join(stream)
    assert {first or second for first, second in PREFIX_DECLARATION.findall(body)} == used
    assert len(list(parse(body, RdfFormat.from_media_type(media_type)))) == 3


def test_graph_result_that_uses_a_prefix_late_writes_its_iris_in_full(pool: QueryPool) -> None:
    query = """CONSTRUCT { ?s <http://example.org/q> ?o . } WHERE { { ?s <http://example.org/p> ?o }
        UNION { BIND(kg:late AS ?s) BIND(foaf:name AS ?o) } }"""
    with pool.stream(query, media_type="text/turtle", limit=UNLIMITED) as stream:
        body = b"".join(stream)
    written = [quad.triple for quad in parse(body, RdfFormat.TURTLE)]
    assert len(written) > 1_000
    assert any(triple.subject == NamedNode("https://w3id.org/quadcite/ns#late") for triple in written)
    assert b"@prefix" not in body


def test_first_rows_leave_before_the_last_are_computed_and_closing_stops_the_query(pool: QueryPool) -> None:
    endless = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
    stream = pool.stream(endless, media_type=JSON, limit=UNLIMITED)
    assert len(next(stream)) >= PIECE_BYTES // 2
    pid = stream.conversation.ticket.worker.process.pid
    stream.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert list(stream) == []
    abandoned = pool.stream(endless, media_type=JSON, limit=UNLIMITED)
    pid = abandoned.conversation.ticket.worker.process.pid
    del abandoned
    gc.collect()
    until(lambda: not alive(pid))
    assert pool.run("ASK {}").result is True


def test_a_reader_who_stops_reading_holds_no_worker_past_the_deadline(pool: QueryPool) -> None:
    for limit_s in LIMITS_S:
        with suppress(QueryTimeoutError):  # before its first rows, on a busy machine
            stream = pool.stream("SELECT * { ?a ?b ?c . ?d ?e ?f }", media_type=CSV, limit=UNLIMITED, timeout_s=limit_s)
            next(stream)
            break
    assert stream.conversation.ticket.worker.process.wait(90) == -signal.SIGKILL
    with pytest.raises(QueryTimeoutError):
        list(stream)


def test_queries_see_newer_snapshots_and_old_ones_are_let_go_of(tmp_path: Path) -> None:
    store = Snapshots(tmp_path)
    with QueryPool(store, Settings(query_workers=2)) as small:
        with small.stream("SELECT * { ?s ?p ?o }", media_type=CSV), small.stream("ASK {}", media_type=JSON):
            assert store.users[1] == 2
        store.commit(Quad(NamedNode("a:s"), NamedNode("a:p"), Literal("new")))
        answer = small.run("SELECT ?s { ?s ?p 'new' }", at_least=2)
        assert (answer.generation, len(answer.result)) == (2, 1)
        until(lambda: store.users == {1: 0, 2: 1})
    assert store.users == {1: 0, 2: 0}


def test_closing_leaves_no_process_and_stops_what_runs(snapshots: Snapshots) -> None:
    before = processes()
    pool = QueryPool(snapshots, Settings(query_workers=2, query_timeout_s=100))
    errors: list[QueryLimitError] = []

    def run() -> None:
        with pytest.raises(QueryLimitError) as raised:
            pool.run(CROSS_JOIN)
        errors.append(raised.value)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: states(pool) == ["running", "running", "waiting"])
    pool.close()
    for thread in threads:
        thread.join()
    assert [str(error) for error in errors] == ["The server is stopping."] * 3
    assert processes() == before
    with pytest.raises(QueryLimitError, match="stopping"):
        pool.run("ASK {}")


PARENT = """
import sys, threading
from pathlib import Path
from kg.settings import Settings
from kg.store.protocol import Snapshot
from kg.queries.pool import QueryPool
class One:
    def snapshot(self, at_least=0):
        return Snapshot(1, Path(sys.argv[1]))
pool = QueryPool(One(), Settings(query_workers=2, query_timeout_s=600))
busy = threading.Thread(target=pool.run, args=(sys.argv[2],), daemon=True)
busy.start()
tickets = pool.dispatcher._held
while not tickets or not all(t.sent for t in tickets):
    pass
print(*[w.process.pid for w in pool.dispatcher._idle], *[t.worker.process.pid for t in tickets], flush=True)
busy.join()
"""


def test_no_worker_outlives_a_killed_parent_busy_or_idle(snapshots: Snapshots) -> None:
    folder = snapshots.folder / str(snapshots.generation)
    command = [sys.executable, "-c", PARENT, str(folder), CROSS_JOIN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(sandbox.__file__).parents[2]) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(0.2)  # so that the busy one is within the query
        parent.kill()
    until(lambda: not any(alive(pid) for pid in pids))


def alive(pid: int) -> bool:
    try:
        # Nobody may have reaped it yet: a zombie is dead.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="there is no second wall here"
)
def test_service_past_the_guard_meets_the_second_wall(pool: QueryPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.text_check, "check", lambda query: sandbox.text_check.Checked(query, None, False))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(QueryForbiddenError, match="another server"):
            pool.run(f"SELECT * {{ SERVICE <http://127.0.0.1:{port}/> {{ ?s ?p ?o }} }}")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_named_dataset_takes_the_place_of_from(pool: QueryPool) -> None:
    count = "SELECT (COUNT(*) AS ?n) FROM <http://example.org/other> {{ {} }}"
    graph, other = NamedNode("http://example.org/p"), NamedNode("http://example.org/other")
    everything = Literal(COUNT + 120)
    asked = {
        "as default": (count.format("?s ?p ?o"), {"default_graphs": [graph]}, everything),
        "not as default": (count.format("?s ?p ?o"), {"named_graphs": [graph]}, Literal(0)),
        "as named": (count.format("GRAPH ?g { ?s ?p ?o }"), {"named_graphs": [graph]}, everything),
        "not as named": (count.format("GRAPH ?g { ?s ?p ?o }"), {"default_graphs": [graph, other]}, Literal(0)),
        "no union": ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", {"union": False}, Literal(0)),
    }
    for name, (query, dataset, expected) in asked.items():
        assert pool.run(query, **dataset).result.rows == [(expected,)], name


GRAPHS = ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json", "application/trig",
          "application/n-quads", "text/n3")  # fmt: skip


@pytest.mark.parametrize("media_type", GRAPHS)
def test_a_graph_comes_in_every_format_as_the_default_graph(pool: QueryPool, media_type: str) -> None:
    query = "CONSTRUCT WHERE { ?s <http://example.org/p> ?o }"
    for limit in (5, UNLIMITED):
        with pool.stream(query, media_type=media_type, limit=limit) as stream:
            found = list(parse(b"".join(stream), format=RdfFormat.from_media_type(media_type)))
        assert (len(found), stream.truncated) == ((5, True) if limit == 5 else (COUNT, False))
        assert {quad.graph_name for quad in found} == {DefaultGraph()}


def test_what_a_graph_format_cannot_carry_is_said_with_what_can(pool: QueryPool) -> None:
    about = "CONSTRUCT { ?s <http://example.org/about> <<( ?s ?p ?o )>> } WHERE { ?s ?p 'value 7' ; ?p ?o }"
    with pytest.raises(InvalidInputError, match=r"triple term.*JSON-LD.*Turtle"):
        b"".join(pool.stream(about, media_type="application/ld+json"))
    control = 'CONSTRUCT { ?s ?p "a\\u0001" } WHERE { ?s ?p "value 7" }'
    with pytest.raises(InvalidInputError, match=r"U\+0001"):
        b"".join(pool.stream(control, media_type="application/rdf+xml"))
    assert b"<<(" in b"".join(pool.stream(about, media_type="text/turtle"))


@pytest.mark.parametrize("media_type", [JSON, XML, CSV, TSV, *GRAPHS])
def test_a_result_is_cut_well_formed_after_the_row_that_reaches_the_cap(snapshots: Snapshots, media_type: str) -> None:
    graph = media_type in GRAPHS
    form = "CONSTRUCT { ?s <http://example.org/long> ?o }" if graph else "SELECT ?o"
    query = f"{form} {{ ?s <http://example.org/p> ?v BIND(REPLACE(STR(?v), '.', '{'y' * 90}') AS ?o) }}"
    with (
        QueryPool(snapshots, Settings(query_workers=1, max_result_mb=1)) as small,
        small.stream(query, media_type=media_type) as stream,
    ):
        data = b"".join(stream)
    assert stream.truncated is True
    assert len(data) + PIECE_BYTES >= 1 << 20
    assert len(data) < (1 << 20) + 4 * PIECE_BYTES
    if graph:
        assert list(parse(data, format=RdfFormat.from_media_type(media_type)))
    elif media_type != CSV:
        assert list(parse_query_results(data, format=QueryResultsFormat.from_media_type(media_type)))
