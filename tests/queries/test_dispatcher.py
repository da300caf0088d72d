"""Who has the workers: a fair share for each client, long queries out of the way, the dead replaced."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import threading
import time

import pytest
from pyoxigraph import Literal

from kg.errors import QueryLimitError, QueryMemoryError
from kg.processes.admission import SLICE_S
from kg.processes.child import ChildGoneError
from kg.queries.dispatcher import RunningQuery, Ticket
from kg.queries.pool import Cancellation, QueryPool
from kg.settings import Settings
from tests.queries.test_pool import COUNT, CROSS_JOIN, Snapshots, states
from tests.waiting import until


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    return Snapshots(tmp_path_factory.mktemp("snapshots"))


def stopped(pool: QueryPool, query: str, client: str = "", cancellation: Cancellation | None = None) -> QueryLimitError:
    """Run a query that is stopped; return why."""
    with pytest.raises(QueryLimitError) as raised:
        pool.run(query, client=client, cancellation=cancellation)
    return raised.value


def test_six_runaways_of_one_client_leave_room_for_its_short_queries(
    snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run and wait until they are cancelled: what is answered meanwhile waited for none of them to end."""
    slice_s = 1.0  # longer than a short query may take on a busy machine
    monkeypatch.setattr("kg.queries.dispatcher.SLICE_S", slice_s)
    monkeypatch.setattr("kg.processes.admission.SLICE_S", slice_s)
    settings = Settings(query_workers=2, query_long_workers=2, query_timeout_s=100)
    cancellations = [Cancellation() for _ in range(6)]
    reasons: list[str] = []

    def runaway(pool: QueryPool, number: int) -> None:
        reasons.append(str(stopped(pool, f"{CROSS_JOIN} # {number}", client="one", cancellation=cancellations[number])))

    def seconds(pool: QueryPool, number: int) -> float:
        begun = time.monotonic()
        try:
            found = pool.run(f"SELECT ?s {{ ?s ?p 'value {number}' }}", client="one", at_least=1, timeout_s=60).result
        except QueryLimitError:
            return math.inf
        assert len(found) == 1
        return time.monotonic() - begun

    def count_long(queries: list[RunningQuery]) -> int:
        return sum(query.lane == "long" and query.state == "running" for query in queries)

    with QueryPool(snapshots, settings) as pool:
        assert seconds(pool, 1) < math.inf
        threads = [threading.Thread(target=runaway, args=(pool, number)) for number in range(6)]
        for thread in threads:
            thread.start()
        until(lambda: any(query.lane == "long" for query in pool.list_queries()))
        waits, running_long = [], set()
        for number in range(15):
            waits.append(seconds(pool, number))
            running_long.add(count_long(pool.list_queries()))
        # One that is just queued again as a long one is not listed, and one that begins again does not run yet.
        until(lambda: len(busy := pool.list_queries()) == 6 and count_long(busy) == 1)
        for cancellation in cancellations:
            cancellation.cancel()
        for thread in threads:
            thread.join()
    assert running_long <= {0, 1}
    assert sorted(waits)[len(waits) // 2] < slice_s
    assert len(reasons) == 6
    assert all("cancelled" in reason for reason in reasons)


@pytest.mark.long
def test_a_query_that_had_to_make_room_begins_anew_and_ends_well(snapshots: Snapshots) -> None:
    slow = "SELECT (COUNT(*) AS ?n) { ?a <http://example.org/p> ?b . ?c <http://example.org/next> ?d . "
    slow += "?e <http://example.org/p> ?f FILTER(?a = ?c) }"
    with QueryPool(snapshots, Settings(query_workers=1, query_long_workers=1, query_timeout_s=100)) as pool:
        endless = Cancellation()
        first = threading.Thread(target=stopped, args=(pool, CROSS_JOIN), kwargs={"cancellation": endless})
        first.start()
        until(lambda: [query.lane for query in pool.list_queries()] == ["long"])
        answers: list[object] = []
        second = threading.Thread(target=lambda: answers.append(pool.run(slow).result.rows))
        second.start()
        tickets: list[Ticket] = []
        until(lambda: bool(tickets.extend(t for t in pool.dispatcher._held if t.query == slow) or tickets))
        until(lambda: tickets[0].used_s > SLICE_S)
        assert pool.run("ASK {}").result is True
        assert (tickets[0].lane, tickets[0].running) == ("long", False), "it made room, and waits"
        endless.cancel()
        first.join()
        second.join()
    assert answers == [[(Literal(120 * COUNT),)]]


def test_what_runs_is_listed_and_can_be_stopped_by_its_number(snapshots: Snapshots) -> None:
    with QueryPool(snapshots, Settings(query_workers=1, query_timeout_s=100)) as small:
        errors: list[str] = []
        thread = threading.Thread(target=lambda: errors.append(str(stopped(small, CROSS_JOIN, client="somebody"))))
        thread.start()
        until(lambda: states(small) == ["running"])
        [query] = small.list_queries()
        assert (query.client, query.sha256) == ("somebody", hashlib.sha256(CROSS_JOIN.encode()).hexdigest())
        assert 0 <= query.age_s < 100
        assert small.cancel(query.id)
        thread.join()
        assert errors == ["The query was cancelled."]
        assert not small.cancel(query.id)
        assert small.list_queries() == []


def test_a_query_whose_worker_the_system_kills_is_asked_once_more(snapshots: Snapshots) -> None:
    with QueryPool(snapshots, Settings(query_workers=1, query_timeout_s=100)) as small:
        errors: list[QueryLimitError] = []
        thread = threading.Thread(target=lambda: errors.append(stopped(small, CROSS_JOIN)))
        thread.start()
        killed: set[int] = set()

        def working() -> list[int]:
            found = [t.worker.process.pid for t in small.dispatcher._held if t.worker and t.sent]
            return [pid for pid in found if pid not in killed]

        for _ in range(2):
            until(lambda: bool(working()))
            time.sleep(0.1)  # by then it is within the query
            [pid] = working()
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)
        thread.join()
        assert isinstance(errors[0], QueryMemoryError)
        assert "killed by the system" in str(errors[0])
        assert small.run("ASK {}").result is True


def test_query_that_is_stopped_before_it_is_sent_ends_with_its_reason(snapshots: Snapshots) -> None:
    """Its worker may have released the snapshot by then."""
    with QueryPool(snapshots, Settings(query_workers=1)) as small:
        ticket = Ticket("", "ASK {}")
        assert small.dispatcher.submit(ticket, lambda: None)
        small.dispatcher.prepare(ticket)
        worker = ticket.worker
        assert worker is not None
        small.dispatcher.stop(ticket, "cancelled")
        until(lambda: not worker.snapshots)
        with pytest.raises(ChildGoneError):
            small.dispatcher.send(ticket)
        assert "cancelled" in str(small.dispatcher.recover(ticket))


def test_processes_stay_within_their_number_and_all_are_replaced(snapshots: Snapshots) -> None:
    settings = Settings(query_workers=2, query_long_workers=1, query_timeout_s=0.5)
    with QueryPool(snapshots, settings) as small:
        threads = [threading.Thread(target=stopped, args=(small, f"{CROSS_JOIN} # {n}")) for n in range(8)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            most = max(most, small.dispatcher._processes)
            time.sleep(0.005)
        assert most <= 2 + 2 * 1
        until(lambda: len(small.dispatcher._idle) >= 1)
        assert small.run("ASK {}", timeout_s=60).result is True
        assert small.list_queries() == []


def test_pool_goes_on_after_a_worker_that_cannot_be_started(
    snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    with QueryPool(snapshots, Settings(query_workers=1, query_long_workers=1)) as small:
        dispatcher = small.dispatcher
        with monkeypatch.context() as patch:
            patch.setattr("kg.queries.dispatcher.Worker", fail)
            worker = dispatcher._idle.pop()
            dispatcher._chores.put(lambda: dispatcher._replace(worker))
            until(lambda: "Resource temporarily unavailable" in caplog.text and dispatcher._processes == 0)
        assert small.run("ASK {}").result is True
        assert all(thread.is_alive() for thread in dispatcher._threads)
