"""Validation in a process of its own: what foreign data and shapes cost whoever sends them, and nobody else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kg.errors import (
    ClientBusyError,
    InvalidInputError,
    QueryBusyError,
    QueryLimitError,
    QueryMemoryError,
    QueryTimeoutError,
)
from kg.processes.child import Limits
from kg.queries.pool import Cancellation
from kg.shacl.process import Document, Job, Outcome, Places, validate_isolated

P = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <http://example.org/> . "
BOATS = "".join(f"<http://example.org/{n}> a <http://example.org/Boat> ; <urn:p> {n} .\n" for n in range(500))
JOIN = """:S sh:targetClass :Boat ; sh:sparql [ sh:select '''SELECT $this {
  $this ?p ?o . ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STRLEN(CONCAT(STR(?a), STR(?d), STR(?g))) = 9) }''' ] ."""


def job(shapes: str, data: str = BOATS, form: str = "summary") -> Job:
    return Job(Document(data.encode()), Document((P + shapes).encode(), name="shapes"), form, "boats")


def run(shapes: str, data: str = BOATS, limits: Limits = Limits(), form: str = "summary") -> Outcome:  # noqa: B008
    return validate_isolated(job(shapes, data, form), limits)


@pytest.mark.parametrize(
    ("shapes", "rule"),
    [
        (":S sh:targetClass :Boat ; sh:property [ sh:path " + "( :p " * 20_000 + ")" * 20_000 + " ] .", "too deeply"),
        (":S sh:targetClass :Boat ; " + "sh:not [ " * 5_000 + "sh:class :C " + "]" * 5_000 + " .", "too deeply"),
        (":S sh:targetClass :Boat ; sh:sparql [ sh:select 'SELECT $this { $this a ?x' ] .", "sh:select"),
        (":S sh:targetClass :Boat ; sh:sparql [ sh:select 'SELECT $this { $this :p ?x }' ] .", "sh:select"),
        (":S sh:targetClass :Boat ; sh:property [ sh:path :p ; sh:pattern '(' ] .", "sh:pattern"),
        (":S sh:targetClass :Boat ; sh:nonsense 1 .", "sh:nonsense"),
        (":S sh:targetClass :Boat ; ", "not Turtle: line 1"),
    ],
)
def test_ill_formed_shapes_are_refused_by_rule(shapes: str, rule: str) -> None:
    with pytest.raises(InvalidInputError, match=rule) as caught:
        run(shapes)
    assert len(str(caught.value)) < 2_000


@pytest.mark.measures_time
@pytest.mark.parametrize(
    ("shapes", "data"),
    [
        (JOIN, BOATS),
        (
            ":S sh:targetClass :Boat ; sh:property [ sh:path :p ; sh:pattern '^(?=a)(a+)+$' ] .",
            f"@prefix : <http://example.org/> . :a a :Boat ; :p '{'a' * 40}!' .",
        ),
    ],
    ids=["join", "pattern"],
)
def test_what_runs_away_is_stopped_at_the_deadline(shapes: str, data: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(QueryTimeoutError, match=r"1\.5 s"):
        run(shapes, data, Limits(1.5))
    assert time.perf_counter() - begun < 60


@pytest.mark.long
def test_what_needs_too_much_memory_ends_with_its_process() -> None:
    inner = "SELECT DISTINCT $this ?x ?y ?z { $this a ?t . ?x ?k ?a . ?y ?l ?b . ?z ?m ?c }"
    query = f"SELECT $this {{ $this ?p ?o {{ {inner} }} }}"
    with pytest.raises(QueryMemoryError, match="150 MiB"):
        run(f":S sh:targetClass :Boat ; sh:sparql [ sh:select '{query}' ] .", limits=Limits(20, 150 << 20))


def test_a_report_has_a_largest_size() -> None:
    with pytest.raises(QueryLimitError, match="20000 bytes"):
        run(":S sh:targetClass :Boat ; sh:nodeKind sh:Literal .", limits=Limits(max_bytes=20_000), form="json")


def test_a_summary_stays_small_and_counts_all() -> None:
    outcome = run(":S sh:targetClass :Boat ; sh:nodeKind sh:Literal .", limits=Limits(max_bytes=20_000))
    [group] = json.loads(outcome.report.read())["groups"]
    assert (group["count"], len(group["examples"]), outcome.counts) == (500, 3, {"Violation": 500})
    assert not outcome.conforms


@pytest.mark.parametrize(
    ("shapes", "looked"),
    [
        (":S sh:targetClass :Boat ; sh:nodeKind sh:IRI .", True),
        (":S sh:targetClass :Car ; sh:nodeKind sh:IRI .", False),
        (":S sh:targetSubjectsOf <urn:p> ; sh:nodeKind sh:IRI .", True),
        (":S sh:targetObjectsOf <urn:q> ; sh:nodeKind sh:IRI .", False),
        (":Boat a sh:NodeShape, <http://www.w3.org/2000/01/rdf-schema#Class> ; sh:nodeKind sh:IRI .", True),
        (":Boat a sh:NodeShape, <http://www.w3.org/2002/07/owl#Class> ; sh:nodeKind sh:IRI .", True),
        (":S sh:targetClass :Boat ; sh:deactivated true ; sh:nodeKind sh:Literal .", False),
    ],
)
def test_it_says_whether_anything_was_looked_at(shapes: str, looked: bool) -> None:
    outcome = run(shapes, form="text")
    assert (outcome.conforms, outcome.looked) == (True, looked)
    assert (b"which no shape targets" in outcome.report.read()) is not looked


def test_shapes_that_no_query_can_do_run_in_the_same_process() -> None:
    outcome = run(":S sh:targetClass :Boat ; sh:property [ sh:path <urn:p> ; sh:pattern '^(?!7)' ] .")
    assert (outcome.counts, list(outcome.by_pyshacl)) == ({"Violation": 11}, ["http://example.org/S"])


def test_who_goes_away_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    cancellation, begun = Cancellation(), threading.Event()

    def on_cancel(stop: Callable[[], object]) -> Callable[[], object]:
        begun.set()
        return cancellation.on_cancel(stop)

    def leave() -> None:
        begun.wait(60)
        cancellation.cancel()

    leaving = threading.Thread(target=leave)
    leaving.start()
    with pytest.raises(QueryLimitError, match="cancelled"):
        validate_isolated(job(JOIN), Limits(90), on_cancel=on_cancel, folder=tmp_path)
    leaving.join()
    assert list(tmp_path.iterdir()) == []
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    assert not children.exists() or all("child.py" not in command(pid) for pid in children.read_text().split())


def command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_client_has_one_place_and_a_short_queue() -> None:
    places = Places(at_once=2, per_client=1, waiting=1, queue=1)
    with places.take("one", 1):
        with pytest.raises(QueryBusyError, match=r"0\.01"), places.take("one", 0.01):
            pass
        entered, leave = threading.Event(), threading.Event()

        def wait() -> None:
            with places.take("one", 60):
                leave.wait(60)

        waiting = threading.Thread(target=wait)
        waiting.start()
        while not len(places._queue):
            time.sleep(0.001)
        with pytest.raises(ClientBusyError), places.take("one", 1):
            pass
        with places.take("other", 1), pytest.raises(QueryBusyError), places.take("third", 1):
            entered.set()
        leave.set()
    waiting.join()
    assert (len(places._queue), places._queue.running) == (0, 0)
