"""`kg` as a person and as a script use it: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pyoxigraph
import pytest
import typer
from pyoxigraph import Literal
from typer.testing import CliRunner

from kg import __version__
from kg.cli import main as cli
from kg.cli.main import app
from kg.retrieval.results import Domain
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import SH, XSD
from loaders.load_options import SOURCES
from loaders.sources import LOADERS
from tests.adversarial.small_disk import mount_small_disk
from tests.cli.running import CLIMATE, KG, MALFORMED, ROOT, answer, run
from tests.examples import spread
from tests.folders import copy_folder


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
    result, short = (run(*command.split(), option) for option in ("--help", "-h"))
    assert result.exit_code == 0
    assert f"Usage: kg {command}" in result.stdout.replace("root ", "kg ")
    assert short.stdout == result.stdout


def test_help_comes_without_the_heavy_parts() -> None:
    heavy = ("pyoxigraph", "fastmcp", "rdflib", "numpy", "duckdb")
    script = f"import sys, kg.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command", [["status"], ["search", "x"], ["query", "ASK {}"], ["why", "cpr://doc/x"], ["reindex"]]
)
def test_asking_a_folder_that_has_no_graph_makes_none(command: list[str], tmp_path: Path) -> None:
    result = run(*command, "--data-dir", tmp_path / "kg-data")
    assert result.exit_code == 1
    assert "kg load" in result.stderr
    assert not (tmp_path / "kg-data").exists()


@pytest.mark.parametrize("before", [None, [], [".keep"]])
def test_a_load_that_fails_leaves_what_was_there_before(before: list[str] | None, tmp_path: Path) -> None:
    data = tmp_path / "kg-data"
    if before is not None:
        data.mkdir()
        for name in before:
            (data / name).touch()
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    assert run("load", "climate", tmp_path / "wrong.csv", "--data-dir", data).exit_code == 1
    assert (sorted(path.name for path in data.iterdir()) if data.exists() else None) == before


def test_a_search_of_an_empty_graph_fails_and_says_how_to_load(tmp_path: Path) -> None:
    OxigraphStore(tmp_path).close()
    result = run("search", "solar", "--data-dir", tmp_path)
    assert result.exit_code == 1
    assert "kg load" in result.stderr


@pytest.mark.long
def test_commands_that_read_open_a_directory_that_cannot_be_written(data: Path, tmp_path: Path) -> None:
    with mount_small_disk(tmp_path / "disk", 200) as disk:
        if disk is None:
            pytest.skip("no right to mount a file system")
        folder = copy_folder(data, disk.folder / "kg-data")
        disk.remount("ro")
        assert run("query", "ASK { GRAPH ?g { ?s ?p ?o } }", "--data-dir", folder).stdout == "true\n"
        assert "cpr://doc/" in run("search", "geothermal levy", "--data-dir", folder).stdout
        assert run("status", "--data-dir", folder).exit_code == 0
        assert run("load", "climate", CLIMATE, "--data-dir", folder).exit_code == 1
        disk.remount("rw")


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
    (searched,) = {
        words for page in (readme, chapter) for words in re.findall(r'^kg search "(.*)" --limit 1$', page, re.M)
    }
    found = answer("search", searched, "--limit", "1", "--data-dir", data)
    (hit,) = found["results"]
    origin = hit["provenance"]
    for page in (readme, chapter):
        for part in (hit["title"], hit["snippet"], hit["id"]):
            assert part in page
        assert f"   {origin['source']}, row {origin['row']}, sha256 {origin['sha256']}" in page
        assert f"Probability that the texts treat this subject: {found['covers']:.2f}." in page
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
    spread(
        [
            ["qwzx vbnm"],
            ["solar", "--offset", "900"],
            ["solar", "--place", "Atlantis"],
            ["solar", "--iso3", "DJI", "--must", "qwzxvb"],
            ["solar", "--domain", "none"],
            ["solar", "--must", ""],
            ["solar", "--corpus-type", "None"],
        ],
        3,
    ),
)
def test_messages_of_a_search_name_options_that_exist(words: list[str], data: Path) -> None:
    result = run("search", *words, "--data-dir", data)
    options = set(re.findall(r"--[a-z][a-z0-9-]*", run("search", "--help").stdout))
    assert result.stderr
    assert set(re.findall(r"--[a-z][a-z0-9-]*", result.stderr)) <= options
    assert not re.search(
        r"(?<![-\w])(offset|limit|min_score|max_tokens|must|place|iso3|filters|arguments)[=:)]", result.stderr
    )


@pytest.mark.exhaustive
def test_search_pages_do_not_overlap(data: Path) -> None:
    pages = [answer("search", "solar", "--limit", "3", "--offset", offset, "--data-dir", data) for offset in (0, 3)]
    seen = [hit["id"] for page in pages for hit in page["results"]]
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.exhaustive
def test_search_filters_by_language_and_corpus_type(data: Path) -> None:
    french = answer("search", "puits de production", "--language", "fr", "--data-dir", data)["results"]
    assert french
    assert all("arrete-fictif" in hit["id"] for hit in french)
    nothing = run("search", "forage", "--corpus-type", "No such type", "--data-dir", data)
    assert "No such type" in nothing.stderr + nothing.stdout


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


@pytest.mark.exhaustive
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
def test_a_restored_backup_has_the_same_quads(data: Path, tmp_path: Path) -> None:
    folder, target = tmp_path / "deep" / "backups", tmp_path / "restored"
    assert run("backup", "create", folder, "--quick", "--data-dir", data).exit_code == 0
    again = answer("backup", "create", folder, "--quick", "--data-dir", data)
    listed = answer("backup", "list", folder)["points"]
    assert [point["number"] for point in listed] == [*range(again["number"], 0, -1)]
    assert run("restore", folder, "--point", 1, "--data-dir", target).exit_code == 0
    everything = "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } }"
    was, now = (
        sorted(run("query", everything, "--data-dir", folder, "--format", "csv").stdout.splitlines())
        for folder in (data, target)
    )
    assert was == now
    fresh = answer("status", "--data-dir", target)
    assert (fresh["text_units"], fresh["indexed_text_units"]) == (103, 103)
    assert answer("reindex", "--data-dir", target)["text_units"] == 103
    for wrong in (("backup", "create", target), ("backup", "create"), ("restore", folder, "--point", 99)):
        refused = run(*wrong, "--data-dir", data)
        assert refused.exit_code in (1, 2)
        assert "restored" in refused.stderr or "FOLDER" in refused.stderr or "99" in refused.stderr


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


def test_models_are_listed_with_their_state() -> None:
    listed = run("models", "list")
    assert re.search(r"^sentence-transformers/all-MiniLM-L6-v2 .* installed, selected$", listed.stdout, re.MULTILINE)
    selected = [model for model in answer("models", "list")["models"] if model["selected"]]
    assert [(model["dimensions"], len(model["languages"])) for model in selected] == [(384, 1), (512, 15)]


def test_the_models_verify_and_are_not_pulled_twice() -> None:
    assert answer("models", "verify")["ok"] is True
    assert [Path(pulled["path"]).is_dir() for pulled in answer("models", "pull")["models"]] == [True, True]


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


def test_the_values_that_commands_list_are_those_of_the_program() -> None:
    assert set(SOURCES) == set(LOADERS)
    assert set(cli.Domain) == set(get_args(Domain))


def test_each_example_in_the_help_of_a_command_is_a_valid_call() -> None:
    group = typer.main.get_command(app)
    examples = [line.strip() for each in group.commands.values() for line in (each.epilog or "").splitlines()]  # type: ignore[attr-defined]
    calls = [shlex.split(line.partition(" > ")[0])[1:] for line in examples if line.startswith("kg ")]
    assert {"load", "search", "query", "validate", "why", "serve"} <= {name for name, *_ in calls}
    for name, *words in calls:
        command = group.commands[name]  # type: ignore[attr-defined]
        assert command.make_context(name, list(words), parent=group.make_context("kg", [name])).params


def test_a_shell_completes_commands_options_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    values = ("kg docs getting-st", "getting-started"), ("kg load parl", "parliament")
    options = ("kg search x --domain zon", "zoning"), ("kg serve --mount doc", "documents")
    for words, expected in (
        ("kg loa", "load"), ("kg load --pru", "--prune"), ("kg quarantine li", "list"), *values, *options,
    ):  # fmt: skip
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
