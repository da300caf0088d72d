"""`kg query`: formats, sources of the query, time limits and interruption."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pyoxigraph
import pytest

from kg.cli.results import parse_term
from kg.store.lock import find_address
from tests.cli.running import KG, processes_of, run
from tests.examples import spread
from tests.waiting import until

SELECT = "SELECT ?title WHERE { ?d a kg:PolicyDocument ; dcterms:title ?title } ORDER BY ?title"
CONSTRUCT = "CONSTRUCT WHERE { ?d a kg:PolicyDocument ; dcterms:title ?title }"
ENDLESS = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"


def test_each_format_of_a_select_has_the_same_rows(data: Path) -> None:
    def out(form: str) -> str:
        result = run("query", SELECT, "--format", form, "--data-dir", data)
        assert result.exit_code == 0, result.stderr
        return str(result.stdout)

    rows = [binding["title"]["value"] for binding in json.loads(out("json"))["results"]["bindings"]]
    assert len(rows) == 13
    assert [row[0] for row in csv.reader(io.StringIO(out("csv")))] == ["title", *rows]
    assert [parse_term(line).value for line in out("tsv").splitlines()[1:]] == rows
    assert re.findall(r"<literal[^>]*>(.*?)</literal>", out("xml").replace("&apos;", "'")) == rows


def test_each_format_of_a_construct_has_the_same_triples(data: Path) -> None:
    parsed = [
        set(pyoxigraph.parse(run("query", CONSTRUCT, "--format", form, "--data-dir", data).stdout, format=format_))
        for form, format_ in (("ttl", pyoxigraph.RdfFormat.TURTLE), ("nt", pyoxigraph.RdfFormat.N_TRIPLES))
    ]
    assert parsed[0] == parsed[1]
    assert len(parsed[0]) == 26


@pytest.mark.long
@pytest.mark.parametrize("form", spread(["csv", "tsv", "xml", "json"], 2))
def test_a_select_without_rows_is_explained_beside_its_result(form: str, data: Path) -> None:
    result = run(
        "query", "SELECT ?d { ?d a kg:PolicyDocument ; dcterms:titel ?t }", "--format", form, "--data-dir", data
    )
    assert result.exit_code == 0
    assert "dcterms:titel" not in result.stdout
    assert "Did you mean 'dcterms:title'?" in result.stderr
    result = run("query", "SELECT ?d { ?d a kg:PolicyDocument }", "--format", form, "--data-dir", data)
    assert result.stderr == ""


def test_query_why_prints_the_query_that_lists_the_count_of_a_row(data: Path) -> None:
    counted = "SELECT ?c (COUNT(DISTINCT ?d) AS ?n) { ?d a kg:PolicyDocument, ?c } GROUP BY ?c ORDER BY ?c"
    result = run("query", counted, "--why", "1", "--data-dir", data)
    assert result.exit_code == 0
    title, *lines = result.stderr.splitlines()
    assert "COUNT(DISTINCT ?d)" in title
    count = int(result.stdout.splitlines()[1].split("\t")[1])
    listing = "\n".join(line for line in lines if not line.startswith("kg:"))
    listed = run("query", listing, "--data-dir", data).stdout
    assert len(listed.splitlines()) == count + 1
    assert "no counts" in run("query", "SELECT ?d { ?d a ?c } LIMIT 1", "--why", "1", "--data-dir", data).stderr
    missing = run("query", "SELECT ?d { ?d a ?c } LIMIT 2", "--why", "5", "--data-dir", data).stderr
    assert "no row 5" in missing


def test_in_a_pipe_the_default_is_plain(data: Path) -> None:
    assert run("query", SELECT, "--data-dir", data).stdout.startswith("?title\n")
    assert run("query", "ASK { ?s a kg:Passage }", "--data-dir", data).stdout == "true\n"
    assert run("query", "ASK { ?s a kg:Nothing }", "--data-dir", data).stdout == "false\n"
    assert run("query", CONSTRUCT, "--data-dir", data).stdout.count(" .\n") == 26


def test_on_a_terminal_the_default_is_a_table_and_turtle(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg.cli.results.is_terminal", lambda: True)
    shown = run("query", SELECT, "--data-dir", data)
    assert "Fictional Night Train Agreement" in shown.stdout
    assert "13 rows" in shown.stderr
    assert run("query", CONSTRUCT, "--data-dir", data).stdout.endswith(" .\n\n")


@pytest.mark.long
def test_rows_are_not_capped(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADCITE_MAX_ROWS", "5")
    query = "SELECT * WHERE { ?s ?p ?o }"
    done = subprocess.run([*KG, "query", query, "--data-dir", copy], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) - 1 > 1_000


def test_a_query_comes_from_a_file_or_from_standard_input(data: Path, tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text("ASK { ?s a kg:Passage }")
    assert run("query", "-f", tmp_path / "q.rq", "--data-dir", data).stdout == "true\n"
    assert run("query", "-", "--data-dir", data, stdin="ASK { ?s a kg:Passage }").stdout == "true\n"
    assert run("query", "-f", "-", "--data-dir", data, stdin="ASK { ?s a kg:Passage }").stdout == "true\n"


@pytest.mark.parametrize("arguments", [[], ["ASK {}", "-f", "x.rq"], ["-f", "absent.rq"]])
def test_no_query_two_queries_or_an_absent_file_are_usage(arguments: list[str], data: Path) -> None:
    assert run("query", *arguments, "--data-dir", data).exit_code == 2


@pytest.mark.parametrize(
    ("query", "form", "said"),
    [
        ("SELECT ?s WHERE {", "json", "line 1"),
        ("SELECT * WHERE { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }", "json", "SERVICE"),
        ("INSERT DATA { <x:s> <x:p> 1 }", "json", "read-only"),
        (SELECT, "ttl", "json"),
        (CONSTRUCT, "csv", "ttl, nt"),
        ("ASK {}", "tsv", "json, xml"),
    ],
)
def test_a_query_that_cannot_run_says_why(query: str, form: str, said: str, data: Path) -> None:
    result = run("query", query, "--format", form, "--data-dir", data)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.long
def test_a_closed_pipe_ends_a_query_without_a_word(data: Path) -> None:
    command = shlex.join([*KG, "query", "SELECT * WHERE { ?a ?b ?c . ?d ?e ?f }", "--data-dir", str(data)])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} | head -1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_a_query_stops_at_its_timeout(data: Path) -> None:
    result = run("query", ENDLESS, "--timeout", "0.3", "--data-dir", data)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "0.3 s" in result.stderr
    assert run("query", "ASK {}", "--timeout", "0", "--data-dir", data).stdout == "true\n"
    assert run("query", "ASK {}", "--timeout", "-1", "--data-dir", data).exit_code == 2


@pytest.mark.long
@pytest.mark.parametrize("served", [False, True], ids=["alone", "next to a server"])
def test_a_query_stops_at_the_timeout_of_the_settings(copy: Path, served: bool) -> None:
    environment = {**os.environ, "QUADCITE_QUERY_TIMEOUT_S": "0.3"}
    with ExitStack() as stack:
        if served:
            server = stack.enter_context(subprocess.Popen([*KG, "serve", "--port", "0", "--data-dir", copy]))
            stack.callback(server.terminate)
            until(lambda: find_address(copy) is not None)
        done = subprocess.run(
            [*KG, "query", ENDLESS, "--data-dir", copy], capture_output=True, text=True, env=environment, timeout=60
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert "0.3 s" in done.stderr


@pytest.mark.long
def test_ctrl_c_stops_a_query_at_once_and_leaves_nothing_behind(copy: Path) -> None:
    with subprocess.Popen(
        [*KG, "query", ENDLESS, "--timeout", "0", "--data-dir", copy], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        until(lambda: len(processes_of(process.pid)) > 1)
        children = processes_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()  # or leaving this block would wait for ever
    assert process.returncode in (130, -signal.SIGINT)  # a shell says 130 of both
    assert (out, err) == ("", "")
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
