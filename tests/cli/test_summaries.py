"""`kg summaries` builds, counts, goes on after an interrupt, and answers the same through a server."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad
from typer.testing import CliRunner

from kg.cli.main import app
from kg.provenance.load_records import Agent, Run
from kg.settings import Settings
from kg.store.lock import find_address
from kg.vocabulary import KG, RDF, SKOS, mint
from tests.folders import open_graph, without_models
from tests.zoning_summaries.made_up_code import TOWN, Law, enact, large_code, small_code
from tests.zoning_summaries.stand_in import Said, StandIn, summarize

pytestmark = pytest.mark.long

COMMAND = [sys.executable, "-m", "kg.cli"]
HERE = ("Otter Hollow", "UT")


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["summaries", *map(str, arguments)], catch_exceptions=False)


def answer(*arguments: object, code: int = 0) -> Any:
    """The JSON document that a command prints with --json, which has to be all that it prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def found(folder: Path, laws: list[Law]) -> None:
    """Make a data directory with a code in it, and no embedding model."""
    with open_graph(folder) as kg:
        enact(kg.store, laws)  # type: ignore[arg-type]  # what `open` opens
        graph, state = mint("graph", "ref", "municipality", "us-ut-otter-hollow"), mint("place", "US-UT")
        of_state = mint("graph", "ref", "place", "US-UT")
        quads = [
            Quad(NamedNode(TOWN), RDF.type, KG.Municipality, graph),
            Quad(NamedNode(TOWN), SKOS.prefLabel, Literal("Otter Hollow", language="en"), graph),
            Quad(NamedNode(TOWN), KG.within, state, graph),
        ]
        named = [
            Quad(state, SKOS.prefLabel, Literal("Utah", language="en"), of_state),
            Quad(state, SKOS.notation, Literal("US-UT"), of_state),
        ]
        kg.store.commit({graph: quads, of_state: named}, Run(Agent("test", "1")).describe(kg.store, {}))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kg-data"
    found(folder, small_code())
    configure(monkeypatch)
    return folder


def configure(monkeypatch: pytest.MonkeyPatch, **chat: Any) -> None:
    """Let the commands find these settings and no embedding model: a process reads its own only once."""

    def settings_for(folder: Path) -> Settings:
        return without_models(folder, **chat)

    monkeypatch.setattr("kg.cli.connection.settings_for", settings_for)


@pytest.fixture
def endpoint() -> Iterator[StandIn]:
    server = StandIn()
    yield server
    server.close()


def test_a_code_is_built_counted_and_built_again_for_nothing(data: Path) -> None:
    at = ("--data-dir", data)
    [before] = answer("status", *at)["codes"]
    assert (before["municipality"], before["sections"], before["missing"], before["empty"]) == (
        "Otter Hollow, Utah",
        9,
        8,
        1,
    )
    part = answer("build", *HERE, "--root", "7.1", *at)
    assert (part["built"], part["sections"], part["requests"]) == (3, 3, 0)
    whole = answer("build", *HERE, *at)
    assert (whole["built"], whole["current"], whole["mode"]) == (5, 3, "extractive")
    again = answer("build", *HERE, *at)
    assert (again["built"], again["current"], again["run"]) == (0, 8, None)
    assert answer("build", *HERE, "--again", *at)["built"] == 8
    [after] = answer("status", *HERE, *at)["codes"]
    assert (after["current"], after["models"]) == (8, {"extractive/words": 8})
    shown = run("status", *at).stdout.split("\n")
    assert shown[1].split()[:6] == ["Otter", "Hollow,", "Utah", "9", "8", "0"]


def test_what_is_stale_is_named_and_what_is_gone_is_removed(data: Path, tmp_path: Path) -> None:
    at = ("--data-dir", data)
    answer("build", *HERE, *at)
    found(data, [Law("7.2.1.2", "Hens", "Nine hens may be kept.", "7.2.1", 1), Law("7.1.2", "", None)])
    status = answer("status", *at)
    assert status["orphans"] == ["7.1.2"]
    assert status["codes"][0]["stale_sections"] == ["7", "7.1", "7.2", "7.2.1", "7.2.1.2"]
    said = run("status", *at)
    assert "stale in Otter Hollow, Utah: 7, 7.1, 7.2, 7.2.1, 7.2.1.2" in said.stdout
    assert "kg: 1 section" in said.stderr
    built = answer("build", *HERE, *at)
    assert (built["built"], built["removed"]) == (5, 1)
    assert answer("status", *at)["orphans"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("build", "Otter Hill", "UT"), 1, "Available: 'Otter Hollow, Utah'"),
        (("build", *HERE, "--root", "99"), 1, "'99'"),
        (("build", *HERE, "--mode", "chat"), 2, "QUADCITE_CHAT_URL"),
        (("build", *HERE, "--mode", "agent"), 2, "agent"),
        (("status", "Otter Hollow"), 2, "a municipality with its state"),
    ],
)
def test_what_cannot_be_done_is_told(data: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    result = run(*arguments, "--data-dir", data)
    assert result.exit_code == code
    assert said in result.stderr


@pytest.mark.long
def test_an_endpoints_cost_and_what_it_did_not_do_are_told(
    data: Path, endpoint: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_hens(body: dict[str, Any]) -> Said:
        return Said({"error": "no"}, 400) if "Roosters" in body["messages"][1]["content"] else summarize(body)

    picky = StandIn(answer=refuse_hens)
    configure(monkeypatch, chat_url=picky.url, chat_model="small", chat_token="sk-very-secret")
    result = run("build", *HERE, "--mode", "chat", "--data-dir", data, "--json")
    picky.close()
    done = json.loads(result.stdout)
    assert result.exit_code == 3
    assert (done["built"], done["waiting"], done["requests"], done["prompt_tokens"]) == (4, 3, 4, 400)
    assert [each["section_id"] for each in done["failed"]] == ["7.2.1.2"]
    assert "sk-very-secret" not in result.output
    configure(monkeypatch, chat_url=endpoint.url, chat_model="small")
    rest = answer("build", *HERE, "--mode", "chat", "--data-dir", data)
    assert (rest["built"], rest["current"], rest["requests"], rest["completion_tokens"]) == (4, 4, 4, 80)


@pytest.mark.long
def test_an_interrupted_build_stops_at_once_and_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "kg-data"
    found(folder, large_code(1, 2, 10))
    reached, ended, numbers = threading.Event(), threading.Event(), itertools.count(1)

    def answer_some(body: dict[str, Any]) -> Said:
        if next(numbers) > 8:
            reached.set()
            ended.wait(90)
        return summarize(body)

    slow = StandIn(answer=answer_some)
    environment = {
        "PATH": "/usr/bin:/bin", "QUADCITE_CHAT_URL": slow.url, "QUADCITE_CHAT_MODEL": "small",
        "QUADCITE_MODELS_DIR": str(tmp_path / "none"), "QUADCITE_CHAT_CONCURRENCY": "2",
    }  # fmt: skip
    build = [*COMMAND, "summaries", "build", *HERE, "--mode", "chat", "--data-dir", str(folder), "--json"]
    with subprocess.Popen(build, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as child:
        assert reached.wait(60)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    ended.set()
    assert child.returncode != 0
    done = subprocess.run(build, capture_output=True, text=True, env=environment, check=True, timeout=60)
    slow.close()
    report = json.loads(done.stdout)
    assert report["current"] >= 7
    assert report["built"] + report["current"] == 23


@pytest.mark.exhaustive
def test_a_build_goes_through_the_server_that_holds_the_data(data: Path) -> None:
    serve = [*COMMAND, "serve", "--port", "0", "--data-dir", str(data)]
    with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        while find_address(data) is None:
            assert server.stderr.readline()
        try:
            built = answer("build", *HERE, "--data-dir", data)
            assert (built["built"], built["current"]) == (8, 0)
            assert answer("status", "--data-dir", data)["codes"][0]["current"] == 8
            missing = run("build", "Otter Hill", "UT", "--data-dir", data)
            assert (missing.exit_code, "Available: 'Otter Hollow, Utah'" in missing.stderr) == (1, True)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
