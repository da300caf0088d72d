"""The health is reported without a query."""

from __future__ import annotations

import socket
import threading
import time

import httpx
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.remote.http import Deadline, DeadlinePassedError, send_request
from kg.remote.outcomes import record_outcome
from kg.tools.catalog.health import health
from kg.vocabulary import CATALOG_GRAPH, DCAT, DCTERMS


def test_health_answers_without_a_query_and_names_what_is_wrong(kg):
    assert health(kg).status == "ok"
    kg.search.embedder_error = "the model is absent; run `kg models pull`"
    state = health(kg)
    assert state.status == "degraded"
    assert "kg models pull" in state.problems[0]
    assert (state.generation, state.pending_vectors) == (1, 3)
    assert kg.pool.asked == []
    assert state.datasets == []
    dataset = NamedNode("urn:dataset")
    said = ((DCTERMS.title, "hub:fictional/set/part-1.parquet"), (DCAT.version, "abc123"))
    kg.store.inner.extend(Quad(dataset, each, Literal(text), CATALOG_GRAPH) for each, text in said)
    assert [(each.name, each.revision) for each in health(kg).datasets] == [("fictional/set", "abc123")]


@pytest.fixture
def refusing():
    """A socket that has a port and does not listen: every connection is refused, and no other process gets the port."""
    with socket.socket() as taken:
        yield taken


def test_health_reports_the_last_outcome_of_each_service_and_the_age_of_caches(kg, tmp_path, refusing):
    refusing.bind(("127.0.0.1", 0))
    port = refusing.getsockname()[1]
    chat = f"http://user:pw@127.0.0.1:{port}/v1"
    (tmp_path / "answer").write_text("{}")
    kg.settings = kg.settings.model_copy(update={"chat_url": chat, "answers_dir": tmp_path})
    services = {service.name: service for service in health(kg).services}
    assert services["chat"].state == "unknown"
    assert "pw" not in services["chat"].url
    with pytest.raises(httpx.ConnectError):
        send_request(f"http://127.0.0.1:{port}/v1/chat", None, "application/json", 20.0, 1_000)
    failed = next(service for service in health(kg).services if service.name == "chat")
    assert (failed.state, failed.problem is not None) == ("failed", True)
    assert failed.age_s is not None
    record_outcome(chat, None)
    assert next(service for service in health(kg).services if service.name == "chat").state == "ok"
    caches = {cache.name: cache for cache in health(kg).caches}
    assert set(caches) == {"concepts", "schema", "responses"}
    assert (caches["responses"].entries, caches["responses"].newest_age_s is not None) == (1, True)
    assert kg.pool.asked == []


def test_a_request_that_this_process_ends_says_nothing_about_its_service(kg):
    running: set[Deadline] = set()

    def end() -> None:
        while not running:
            time.sleep(0.01)
        for deadline in [*running]:
            deadline.end()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        kg.settings = kg.settings.model_copy(update={"chat_url": url})
        ending = threading.Thread(target=end)
        ending.start()
        with pytest.raises(DeadlinePassedError):
            send_request(url, None, "application/json", 90.0, 1_000, running=running)
        ending.join()
        assert next(service for service in health(kg).services if service.name == "chat").state == "unknown"
        with pytest.raises(DeadlinePassedError):
            send_request(url, None, "application/json", 0.2, 1_000)
        assert next(service for service in health(kg).services if service.name == "chat").state == "failed"
