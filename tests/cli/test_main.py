"""`kg` as a person and as a script use it: what it prints where, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pyoxigraph
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from pyoxigraph import Literal
from typer.testing import CliRunner

from kg import __version__, bundle
from kg.cli.main import app
from kg.cli.results import parse_term
from kg.store.lock import find_holder
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import SH, XSD

CLIMATE = bundle.folder("fixtures") / "climate"
MALFORMED = bundle.folder("fixtures") / "malformed" / "climate"
ROOT = Path(__file__).parent.parent.parent
KG = [sys.executable, "-m", "kg.cli"]
REPORT = {
    "source", "run", "loaded", "skipped", "rejected", "removed", "text_units", "mentions",
    "quads_added", "quads_removed", "older", "ceded", "returned", "pending_vectors", "seconds", "rejections",
}  # fmt: skip


def run(*arguments: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def answer(*arguments: object) -> Any:
    """The JSON document that a command prints with --json, which has to be all that it prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the climate fixtures in it and their vectors, which no test changes."""
    folder = tmp_path_factory.mktemp("cli") / "kg-data"
    result = run("load", "climate", CLIMATE, "--data-dir", folder, "--wait", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert set(report) == REPORT
    assert report["loaded"] > 0
    assert report["rejections"] == []
    return folder


@pytest.fixture
def copy(data: Path, tmp_path: Path) -> Path:
    """A data directory of a test's own."""
    return Path(shutil.copytree(data, tmp_path / "kg-data"))


def test_the_version_is_the_packages() -> None:
    assert run("--version").stdout == f"kg {__version__}\n"


@pytest.mark.parametrize(
    "command",
    [
        "load", "search", "query", "status", "validate", "why", "reindex", "serve", "models", "demo", "backup",
        "summaries build", "summaries status",
    ],
)  # fmt: skip
def test_every_command_explains_itself(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Usage: kg {command}" in result.stdout.replace("root ", "kg ")


def test_help_comes_without_the_heavy_parts() -> None:
    heavy = ("pyoxigraph", "fastmcp", "rdflib", "numpy", "duckdb")
    script = f"import sys, kg.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("source", ["parliament", "files"])
def test_a_source_that_cannot_be_loaded_is_usage_and_names_those_that_can(source: str, tmp_path: Path) -> None:
    result = run("load", source, CLIMATE, "--data-dir", tmp_path / "kg-data")
    assert result.exit_code == 2
    assert source in result.stderr
    assert "Available: climate, wikibase, hansard, zoning" in " ".join(result.stderr.split())
    assert not (tmp_path / "kg-data").exists()


@pytest.mark.long
def test_loading_the_same_again_skips_all_and_changes_nothing(copy: Path) -> None:
    before = answer("status", "--data-dir", copy)
    report = answer("load", "climate", CLIMATE, "--data-dir", copy)
    assert (report["loaded"], report["quads_added"], report["quads_removed"]) == (0, 0, 0)
    assert report["skipped"] > 0
    after = answer("status", "--data-dir", copy)
    assert (after["generation"], after["quads"]) == (before["generation"], before["quads"])


@pytest.mark.long
def test_a_load_with_wait_leaves_no_vector_pending_and_says_in_plain_words_what_it_did(tmp_path: Path) -> None:
    result = run("load", "climate", CLIMATE, "--data-dir", tmp_path / "kg-data", "--wait")
    assert result.exit_code == 0
    assert re.search(r"^loaded +13$", result.stdout, re.MULTILINE)
    assert re.search(r"^pending vectors +0$", result.stdout, re.MULTILINE)
    assert answer("status", "--data-dir", tmp_path / "kg-data")["pending_vectors"] == 0


@pytest.mark.long
def test_waiting_without_a_model_keeps_what_was_loaded_says_so_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUADCITE_MODELS_DIR", str(tmp_path / "no models"))
    done = subprocess.run(
        [*KG, "load", "climate", CLIMATE, "--data-dir", tmp_path / "kg-data", "--wait", "--json"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["loaded"] > 0
    assert report["pending_vectors"] > 0
    assert "kg models pull" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_rejected_records_end_a_load_with_3_and_are_named(tmp_path: Path) -> None:
    result = run(
        "load", "climate", MALFORMED / "duplicate-keys.csv", "--data-dir", tmp_path / "kg-data", "--json",
    )  # fmt: skip
    report = json.loads(result.stdout)
    assert result.exit_code == 3
    assert report["rejected"] == len(report["rejections"]) > 0
    assert all(set(rejection) == {"record", "reason"} and all(rejection.values()) for rejection in report["rejections"])
    told = run("load", "climate", MALFORMED / "duplicate-keys.csv", "--data-dir", tmp_path / "kg-data")
    assert told.exit_code == 3
    assert report["rejections"][0]["record"] in told.stderr
    assert answer("status", "--data-dir", tmp_path / "kg-data")["quarantined"] == report["rejected"]


@pytest.mark.long
def test_prune_removes_what_is_gone_from_the_location(tmp_path: Path) -> None:
    source = Path(shutil.copytree(CLIMATE, tmp_path / "in"))
    before = answer("load", "climate", source, "--data-dir", tmp_path / "kg-data")
    (source / "laws.csv").unlink()
    kept = answer("load", "climate", source, "--data-dir", tmp_path / "kg-data")
    pruned = answer("load", "climate", source, "--data-dir", tmp_path / "kg-data", "--prune")
    assert (kept["removed"], pruned["removed"]) == (0, 3)
    assert pruned["quads_removed"] > 0
    assert answer("status", "--data-dir", tmp_path / "kg-data")["text_units"] < before["text_units"]


def test_a_file_that_is_not_there_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    result = run("load", "climate", tmp_path / "absent.parquet", "--data-dir", tmp_path / "kg-data", "--json")
    assert result.exit_code == 1
    assert "absent.parquet" in result.stderr
    assert "absent.parquet" in json.loads(result.stdout)["error"]["message"]


@pytest.mark.parametrize(
    "command", [["status"], ["search", "x"], ["query", "ASK {}"], ["why", "cpr://doc/x"], ["reindex"]]
)
def test_asking_a_folder_that_has_no_graph_makes_none(command: list[str], tmp_path: Path) -> None:
    result = run(*command, "--data-dir", tmp_path / "kg-data")
    assert result.exit_code == 1
    assert "kg load" in result.stderr
    assert not (tmp_path / "kg-data").exists()


@pytest.mark.long
def test_a_search_without_a_model_says_what_it_lacks_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kg-data"
    monkeypatch.setenv("QUADCITE_MODELS_DIR", str(tmp_path / "no models"))
    done = [
        subprocess.run([*KG, *words, "--data-dir", folder], capture_output=True, text=True, check=True, timeout=60)
        for words in (["load", "climate", CLIMATE / "laws.csv"], ["search", "adaptation"])
    ]
    assert "kg reindex" in done[0].stderr
    assert "_law900" in done[1].stdout
    assert re.search(r"^kg: Ranked by keywords only: .*kg models pull", done[1].stderr, re.MULTILINE)


@pytest.mark.long
def test_search_filters_by_country_and_cites(data: Path) -> None:
    found = answer("search", "geothermal", "--iso3", "KEN", "--iso3", "FJI", "--limit", "5", "--data-dir", data)
    named = answer("search", "geothermal", "--place", "Kenya", "--place", "Fiji", "--limit", "5", "--data-dir", data)
    assert named["results"] == found["results"]
    assert 0 < len(found["results"]) <= 5
    for hit in found["results"]:
        assert "_ke01" in hit["id"] or "_fj01" in hit["id"]
        assert hit["provenance"]["row"] >= 1
    told = run("search", "geothermal", "--iso3", "KEN", "--limit", "1", "--data-dir", data)
    first = found["results"][0]
    for part in (first["id"], first["provenance"]["sha256"], f"row {first['provenance']['row']}"):
        assert part in told.stdout


def test_the_answers_in_the_documentation_are_those_of_the_fixtures(data: Path) -> None:
    readme, chapter = ((ROOT / name).read_text() for name in ("README.md", "kg/docs/getting-started.md"))
    (searched,) = re.findall(r'^kg search "(.*)" --limit 1$', chapter, re.MULTILINE)
    (hit,) = answer("search", searched, "--limit", "1", "--data-dir", data)["results"]
    origin = hit["provenance"]
    for page in (readme, chapter):
        for part in (hit["title"], hit["snippet"], hit["id"]):
            assert part in page
        assert f"   {origin['source']}, row {origin['row']}, sha256 {origin['sha256']}" in page
        [score] = re.findall(rf"{re.escape(hit['title'])}  \(score (.*)\)", page)
        assert abs(float(score) - hit["score"]) < 0.01
    (triple,) = re.findall(r"^kg why --triple (.*)$", chapter, re.MULTILINE)
    told = run("why", "--triple", *shlex.split(triple), "--data-dir", data).stdout
    for line in told.splitlines():
        if not line.startswith("  loaded"):
            assert line.partition(", run ")[0] in chapter


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ["qwzx vbnm"],
        ["solar", "--offset", "900"],
        ["solar", "--place", "Atlantis"],
        ["solar", "--iso3", "DJI", "--must", "qwzxvb"],
        ["solar", "--domain", "none"],
        ["solar", "--must", ""],
        ["solar", "--corpus-type", "None"],
    ],
)
def test_messages_of_a_search_name_options_that_exist(words: list[str], data: Path) -> None:
    result = run("search", *words, "--data-dir", data)
    options = set(re.findall(r"--[a-z][a-z0-9-]*", run("search", "--help").stdout))
    assert result.stderr
    assert set(re.findall(r"--[a-z][a-z0-9-]*", result.stderr)) <= options
    assert not re.search(
        r"(?<![-\w])(offset|limit|min_score|max_tokens|must|place|iso3|filters|arguments)[=:)]", result.stderr
    )


@pytest.mark.long
def test_search_pages_do_not_overlap(data: Path) -> None:
    pages = [answer("search", "solar", "--limit", "3", "--offset", offset, "--data-dir", data) for offset in (0, 3)]
    seen = [hit["id"] for page in pages for hit in page["results"]]
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.long
def test_search_filters_by_language_and_corpus_type(data: Path) -> None:
    french = answer("search", "puits de production", "--language", "fr", "--data-dir", data)["results"]
    assert french
    assert all("arrete-fictif" in hit["id"] for hit in french)
    nothing = run("search", "forage", "--corpus-type", "No such type", "--data-dir", data)
    assert "No such type" in nothing.stderr + nothing.stdout


SELECT = "SELECT ?title WHERE { ?d a kg:PolicyDocument ; dcterms:title ?title } ORDER BY ?title"
CONSTRUCT = "CONSTRUCT WHERE { ?d a kg:PolicyDocument ; dcterms:title ?title }"


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
@pytest.mark.parametrize("form", ["csv", "tsv", "json", "xml"])
def test_a_select_without_rows_is_explained_beside_its_result(form: str, data: Path) -> None:
    result = run(
        "query", "SELECT ?d { ?d a kg:PolicyDocument ; dcterms:titel ?t }", "--format", form, "--data-dir", data
    )
    assert result.exit_code == 0
    assert "dcterms:titel" not in result.stdout
    assert "Did you mean dcterms:title?" in result.stderr
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


ENDLESS = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"


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
            until(lambda: (holder := find_holder(copy)) is not None and holder.address is not None)
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
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()  # or leaving this block would wait for ever
    assert process.returncode in (130, -signal.SIGINT)  # a shell says 130 of both
    assert (out, err) == ("", "")
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_load_that_is_told_to_stop_stops_and_cleans_up(number: signal.Signals, tmp_path: Path) -> None:
    row = {
        "document_id": "F.1", "document_slug": "s", "document_name": "N", "geography_iso": "BRA", "family_slug": "f",
        "family_name": "F", "text": "fictional " * 50,
    }  # fmt: skip
    source = tmp_path / "t.jsonl"
    source.write_text("".join(json.dumps({**row, "block_index": i}) + "\n" for i in range(60_000)))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [*KG, "load", "climate", source, "--data-dir", tmp_path / "data"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True, env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:  # fmt: skip
        until(lambda: any(temporary.iterdir()))
        children = processes_of(process.pid)
        os.killpg(process.pid, number)
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (128 + number, "")
    assert list(temporary.iterdir()) == []
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    assert find_holder(tmp_path / "data") is None


def processes_of(parent: int) -> list[int]:
    """The process and its children."""
    return [parent, *map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())]


def until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.02)


def test_status_counts_what_was_loaded(data: Path) -> None:
    status = answer("status", "--data-dir", data)
    assert status["text_units"] == 103
    assert status["indexed_text_units"] == 103
    assert status["indexed_graphs"] == 13
    assert status["quads"] > 1_000
    assert re.search(r"^text units +103$", run("status", "--data-dir", data).stdout, re.MULTILINE)


def test_why_goes_back_to_file_row_and_hash(data: Path) -> None:
    passage = answer("search", "cyclone", "--limit", "1", "--data-dir", data)["results"][0]
    (explanation,) = answer("why", passage["id"], "--data-dir", data)["explanations"]
    (source,) = explanation["sources"]
    assert source["sha256"] == passage["provenance"]["sha256"]
    assert source["row"] == passage["provenance"]["row"]
    told = run("why", passage["id"], "--data-dir", data).stdout
    assert "land-and-transport.jsonl" in told
    assert source["sha256"] in told


def test_why_takes_a_single_triple(data: Path) -> None:
    document = "cpr://doc/fictional-night-train-agreement_eu01"
    triple = (document, "dcterms:title", '"Fictional Night Train Agreement"')
    assert "land-and-transport.jsonl" in run("why", "--triple", *triple, "--data-dir", data).stdout
    wrong = run("why", "--triple", document, "dcterms:title", '"Another"', "--data-dir", data)
    assert wrong.exit_code == 1
    assert "Fictional Night Train Agreement" in wrong.stderr


def test_why_of_nothing_is_usage_and_of_something_unknown_a_failure(data: Path) -> None:
    assert run("why", "--data-dir", data).exit_code == 2
    assert run("why", "cpr://doc/x", "--triple", "a", "b", "c", "--data-dir", data).exit_code == 2
    unknown = run("why", "cpr://doc/unknown", "--data-dir", data, "--json")
    assert unknown.exit_code == 1
    assert json.loads(unknown.stdout)["error"]["code"] == "not_found"


@pytest.mark.long
def test_a_search_finds_what_the_index_has_lost(copy: Path) -> None:
    asked = ("search", "night train", "--limit", "1", "--data-dir", copy)
    found = answer(*asked)["results"]
    assert found
    shutil.rmtree(copy / "index")
    assert [hit["id"] for hit in answer(*asked)["results"]] == [hit["id"] for hit in found]


@pytest.mark.long
def test_reindex_rebuilds_an_index_that_is_lost(copy: Path) -> None:
    shutil.rmtree(copy / "index")
    document = answer("reindex", "--data-dir", copy)
    assert document == {"reindexed_graphs": 13, "removed_graphs": 0, "text_units": 103, "pending_vectors": 0}
    assert answer("reindex", "--data-dir", copy)["reindexed_graphs"] == 0
    assert answer("reindex", "--full", "--data-dir", copy)["reindexed_graphs"] == 13


@pytest.mark.long
def test_a_backup_is_a_data_directory_with_the_same_quads(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "backup"
    assert run("backup", target, "--data-dir", data).exit_code == 0
    everything = "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } }"
    was, now = (
        sorted(run("query", everything, "--data-dir", folder, "--format", "csv").stdout.splitlines())
        for folder in (data, target)
    )
    assert was == now
    fresh = answer("status", "--data-dir", target)
    assert (fresh["text_units"], fresh["indexed_text_units"]) == (103, 103)
    assert answer("reindex", "--data-dir", target)["text_units"] == 103
    again = run("backup", target, "--data-dir", data)
    assert again.exit_code == 2
    assert str(target) in again.stderr
    assert not list(target.parent.glob("*.partial"))


def test_validate_reports_in_three_forms(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ttl"
    bad.write_text("@prefix kg: <https://w3id.org/quadcite/ns#> . <cpr://doc/x#p=0> a kg:Passage .")
    results = {form: run("validate", bad, "--format", form) for form in ("text", "json", "ttl")}
    assert {result.exit_code for result in results.values()} == {1}
    assert "does not conform" in results["text"].stdout
    assert json.loads(results["json"].stdout)["conforms"] is False
    report = list(pyoxigraph.parse(results["ttl"].stdout, format=pyoxigraph.RdfFormat.TURTLE))
    assert any(
        quad.predicate == SH.conforms and quad.object == Literal("false", datatype=XSD.boolean) for quad in report
    )


def test_validate_writes_sarif_for_code_hosts(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ttl"
    bad.write_text("<cpr://doc/x> a <https://w3id.org/quadcite/ns#PolicyDocument> .")
    result = run("validate", bad, "--format", "sarif")
    [log] = json.loads(result.stdout)["runs"]
    assert result.exit_code == 1
    assert log["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("/bad.ttl")


@pytest.mark.long
def test_validate_tries_data_without_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("validate", CLIMATE).exit_code == 0
    bad = run("validate", MALFORMED / "duplicate-keys.csv")
    assert bad.exit_code == 1
    assert "duplicate-keys.csv" in bad.stdout
    assert list(tmp_path.iterdir()) == []


def test_validate_checks_a_data_directory(data: Path) -> None:
    result = run("validate", "--data-dir", data)
    assert result.exit_code == 0
    assert "graphs" in result.stdout


def test_validate_of_a_folder_with_nothing_in_it_is_usage(tmp_path: Path) -> None:
    assert run("validate", tmp_path).exit_code == 2


@pytest.mark.long
def test_a_directory_in_use_is_said_to_be_and_by_whom(copy: Path) -> None:
    with OxigraphStore(copy):
        result = run("status", "--data-dir", copy, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "store_locked"
    assert str(os.getpid()) in result.stderr


@contextmanager
def served(data_dir: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A server of `data_dir` in a process of its own, which has to end well on SIGTERM and to print nothing."""
    with subprocess.Popen(
        [*KG, "serve", "--port", "0", "--data-dir", data_dir, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            until(lambda: bool(find_holder(data_dir)) and bool(find_holder(data_dir).address), 60)  # type: ignore[union-attr]
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=30)
    assert process.returncode in (0, 128 + signal.SIGTERM)
    assert out == ""


@pytest.mark.long
def test_every_command_answers_the_same_while_a_server_holds_the_data(copy: Path, tmp_path: Path) -> None:
    commands = [
        ["search", "geothermal", "--iso3", "DJI", "--limit", "3", "--json"],
        ["query", "SELECT DISTINCT ?type { ?thing a ?type } ORDER BY ?type", "--format", "csv"],
        ["query", "ASK { ?x a kg:Passage }"],
        ["query", "CONSTRUCT { ?x a kg:Passage } WHERE { ?x a kg:Passage }", "--format", "nt"],
        ["why", "cpr://doc/fictional-night-train-agreement_eu01", "--json"],
        ["why", "--triple", "cpr://doc/fictional-night-train-agreement_eu01", "a", "kg:PolicyDocument"],
        ["validate", "--format", "json"],
    ]
    answer("reindex", "--data-dir", copy)  # or the order of what search finds would change while vectors come
    here = [run(*command, "--data-dir", copy) for command in commands]
    status = answer("status", "--data-dir", copy)
    with served(copy):
        there = [run(*command, "--data-dir", copy) for command in commands]
        assert [result.exit_code for result in there] == [0] * len(commands), [result.stderr for result in there]
        assert [sorted(result.stdout.splitlines()) for result in there] == [
            sorted(result.stdout.splitlines()) for result in here
        ]
        moving = {"bytes_on_disk", "pending_vectors", "model"}  # the model is named by its precision once it is open
        counted = answer("status", "--data-dir", copy)
        assert {name: counted[name] for name in counted if name not in moving} == {
            name: status[name] for name in status if name not in moving
        }
        assert answer("reindex", "--data-dir", copy)["pending_vectors"] == 0
        assert run("backup", tmp_path / "backup", "--data-dir", copy).exit_code == 0
    assert answer("status", "--data-dir", tmp_path / "backup")["quads"] == status["quads"]


@pytest.mark.long
def test_a_load_goes_through_the_server_from_any_folder_and_reports_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = tmp_path / "kg-data"
    monkeypatch.chdir(CLIMATE.parent)
    with served(data_dir):
        report = answer("load", "climate", "climate", "--data-dir", data_dir, "--wait")
        assert (set(report), report["loaded"], report["pending_vectors"]) == (REPORT, 13, 0)
        again = answer("load", "climate", "climate", "--data-dir", data_dir)
        assert (again["loaded"], again["skipped"], again["quads_added"]) == (0, 13, 0)
        bad = run("load", "climate", MALFORMED, "--data-dir", data_dir)
        assert bad.exit_code == 3
        assert "rejected" in bad.stderr
        gone = run("load", "climate", tmp_path / "absent.csv", "--data-dir", data_dir, "--json")
        assert (gone.exit_code, json.loads(gone.stdout)["error"]["code"]) == (1, "source_unreadable")
    assert answer("load", "climate", "climate", "--data-dir", data_dir)["skipped"] == 13


@pytest.mark.long
@pytest.mark.parametrize("is_served", [False, True])
def test_a_load_names_files_as_they_were_written(
    is_served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in" / "laws"
    shutil.copytree(CLIMATE, folder)
    shutil.copytree(MALFORMED, folder / "bad")
    monkeypatch.chdir(tmp_path / "in")
    data_dir = tmp_path / "kg-data"
    with served(data_dir) if is_served else nullcontext():
        results = [run("load", "climate", "laws", "--data-dir", data_dir, *how) for how in ((), ("--json",))]
        results.append(run("load", "climate", "laws/bad/absent.csv", "--data-dir", data_dir))
        results.append(run("quarantine", "list", "--data-dir", data_dir))
        monkeypatch.chdir(tmp_path)
        results.append(run("quarantine", "list", "--json", "--data-dir", data_dir))
    assert [result.exit_code for result in results] == [3, 3, 1, 0, 0]
    assert "laws/bad/" in results[0].stderr
    for result in results:
        assert str(folder) not in result.stdout + result.stderr


@pytest.mark.long
def test_errors_of_a_served_graph_are_those_of_an_open_one(copy: Path) -> None:
    commands = [
        ["query", "SELECT ?x { ?x a", "--format", "csv"],
        ["query", "SELECT ?x { SERVICE <http://127.0.0.1:1/> { ?x ?y ?z } }", "--format", "csv"],
        ["why", "cpr://doc/there-is-no-such-thing", "--json"],
    ]
    here = [run(*command, "--data-dir", copy) for command in commands]
    with served(copy):
        there = [run(*command, "--data-dir", copy) for command in commands]
    assert [(result.exit_code, result.stderr, result.stdout) for result in there] == [
        (result.exit_code, result.stderr, result.stdout) for result in here
    ]
    assert [result.exit_code for result in here] == [2, 2, 1]


@pytest.mark.long
def test_the_commands_take_the_token_that_only_its_user_can_read(copy: Path) -> None:
    with served(copy):
        assert stat.S_IMODE((copy / "token").stat().st_mode) == 0o600
        secret = (copy / "token").read_text()
        (copy / "token").unlink()
        result = run("status", "--data-dir", copy, "--json")
        assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "forbidden")
        (copy / "token").write_text("a guess")
        result = run("status", "--data-dir", copy, "--json")
        assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "unauthorized")
        (copy / "token").write_text(secret)
    assert not (copy / "token").exists()


@pytest.mark.long
def test_two_stdio_servers_and_a_command_share_one_data_directory(copy: Path) -> None:
    command = [*KG, "serve", "--transport", "stdio", "--data-dir", str(copy)]

    async def ask() -> list[Any]:
        first = Client(StdioTransport(command[0], command[1:]))
        second = Client(StdioTransport(command[0], command[1:]))
        async with first:
            names = {tool.name for tool in await first.list_tools()}
            async with second:
                assert {tool.name for tool in await second.list_tools()} == names
                assert first.instructions is not None
                assert second.instructions == first.instructions  # the second forwards to the first
                arguments = {"query": "geothermal", "limit": 2}
                found = [await client.call_tool("search", arguments) for client in (first, second)]
                counted = await anyio.to_thread.run_sync(lambda: answer("status", "--data-dir", copy))
                assert counted["quads"] > 0
        return [(each.structured_content, each.meta) for each in found]

    first, second = anyio.run(ask)
    assert first[1].pop("request_id") != second[1].pop("request_id")
    assert first == second
    assert len(first[0]["results"]) == 2
    assert first[1]["snapshot"] > 0


def test_serve_refuses_an_address_that_others_reach(copy: Path) -> None:
    result = run("serve", "--host", "0.0.0.0", "--port", "0", "--data-dir", copy)  # noqa: S104
    assert result.exit_code == 2
    assert "authentication" in result.stderr


def test_models_are_listed_with_their_state() -> None:
    listed = run("models", "list")
    assert re.search(r"^sentence-transformers/all-MiniLM-L6-v2 .* installed, selected$", listed.stdout, re.MULTILINE)
    (selected,) = [model for model in answer("models", "list")["models"] if model["selected"]]
    assert selected["dimensions"] == 384


def test_the_model_verifies_and_is_not_pulled_twice() -> None:
    assert answer("models", "verify")["ok"] is True
    assert Path(answer("models", "pull")["path"]).is_dir()


@pytest.mark.long
def test_a_model_that_is_absent_or_unknown_is_a_failure_with_the_way_out(tmp_path: Path) -> None:
    def models(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {f"QUADCITE_{name}": value for name, value in settings.items()}
        return subprocess.run([*KG, "models", *arguments], capture_output=True, text=True, check=False, env=env)

    absent = models("verify", MODELS_DIR=str(tmp_path))
    assert absent.returncode == 1
    assert "kg models pull" in absent.stderr
    unknown = models("pull", MODEL="no/such-model", MODELS_DIR=str(tmp_path))
    assert unknown.returncode == 1
    assert "no/such-model" in unknown.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_dot_env_file_is_read_and_an_option_wins_over_it(data: Path, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"QUADCITE_DATA_DIR={data}\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QUADCITE_DATA")}

    def status(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*KG, "status", "--json", *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=clean | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    assert json.loads(status().stdout)["data_dir"] == str(data)
    assert status("--data-dir", "elsewhere").returncode == 1


def test_a_setting_that_cannot_be_used_is_usage(tmp_path: Path) -> None:
    done = subprocess.run(
        [*KG, "status"], capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"QUADCITE_PORT": "many", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "QUADCITE_PORT=many" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_shell_completes_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for words, expected in (("kg loa", "load"), ("kg load --pru", "--prune"), ("kg quarantine li", "list")):
        asked = {"_KG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        found = CliRunner().invoke(app, [], env=asked, prog_name="kg")
        assert expected in found.stdout.split()


def test_an_error_of_another_file_is_not_reported_as_one_of_standard_output() -> None:
    code = (
        "from pathlib import Path; from kg.cli import main; "
        "main.app = lambda prog_name: Path('missing.ttl').read_bytes(); main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "missing.ttl" in done.stderr
    assert "standard output" not in done.stderr
