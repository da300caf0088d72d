"""`kg validate` as a person and as a script use it: what is validated, what comes out, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.cli import connection
from kg.shacl.rdf_files import IN_FOLDERS
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import DCTERMS, mint
from tests.cli.running import KG, run, served
from tests.examples import spread
from tests.folders import copy_folder
from tests.shacl.made_up import record, without
from tests.waiting import until

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent
HEAD = """@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix ex: <http://example.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SHAPES = """ex:Person a sh:NodeShape ; sh:targetClass ex:Person ;
  sh:property [ sh:path ex:name ; sh:minCount 1 ; sh:message "Somebody lacks a name." ] ,
    [ sh:path ex:age ; sh:datatype xsd:integer ; sh:severity sh:Warning ] ,
    [ sh:path ex:note ; sh:maxCount 0 ; sh:severity sh:Info ] .
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write Turtle into a file of the working folder, which has nothing else in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def to(name: str, content: str) -> Path:
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + content)
        return path

    to("shapes.ttl", SHAPES)
    return to


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of four generations: a good record, a bad one, what a person wrote, and the bad one again."""
    folder = tmp_path_factory.mktemp("validated") / "kg-data"
    graph, quads = record("bad")
    curated = mint("graph", "curated", "people")
    ada = NamedNode("http://example.org/ada")
    with OxigraphStore(folder) as store:
        store.commit(dict([record("good")]))
        store.commit({graph: without(quads, DCTERMS.title)})
        kind = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
        store.commit({curated: [Quad(ada, kind, NamedNode("http://example.org/Person"), curated)]})
        altered = [Quad(q.subject, q.predicate, q.object, graph) for q in without(quads, DCTERMS.title)]
        store.commit({graph: [*altered, Quad(altered[0].subject, DCTERMS.alternative, Literal("again"), graph)]})
    return folder


def answer(*arguments: object, exit_code: int, stdin: str | None = None) -> Any:
    result = run("validate", *arguments, "--format", "json", stdin=stdin)
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def refusal(*arguments: object) -> str:
    """What is said on standard error by a validation that was not done, which prints nothing else."""
    result = run("validate", *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return str(result.stderr)


def test_files_and_shapes_are_all_that_is_needed(write: Write) -> None:
    write("data.ttl", "ex:a a ex:Person . ex:b a ex:Person ; ex:name 'B' .")
    before = sorted(Path().iterdir())
    report = answer("data.ttl", "--shapes", "shapes.ttl", exit_code=1)
    assert [each["focus"] for each in report["results"]] == ["<http://example.org/a>"]
    assert report["checked"] == "1 file, 3 triples"
    assert sorted(Path().iterdir()) == before


def test_no_part_of_the_store_or_the_index_is_imported_for_files(write: Write) -> None:
    write("data.ttl", "ex:a a ex:Person .")
    heavy = ("kg.store.oxigraph", "kg.knowledge_graph", "fastmcp", "duckdb", "fastembed", "httpx", "pyshacl")
    script = (
        "import sys\nfrom typer.testing import CliRunner\nfrom kg.cli.main import app\n"
        "result = CliRunner().invoke(app, ['validate', 'data.ttl', '--shapes', 'shapes.ttl'])\n"
        f"print(result.exit_code, [name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 []"


def test_files_are_tried_as_a_source_reads_them_with_what_lies_beside(tmp_path: Path) -> None:
    codes = ROOT / "fixtures" / "zoning"
    assert answer("--source", "zoning", codes, exit_code=0)["checked"].endswith("zoning records")
    bare = shutil.copy(codes / "title_17_zoning.html", tmp_path)
    [found] = answer("--source", "zoning", bare, exit_code=1)["results"]
    assert "title_17_zoning.toml" in found["message"]
    assert "Available: climate" in refusal("--source", "nothing", bare)
    refused = refusal("--source", "zoning")
    assert "--source needs FILE" in refused
    assert "--data-dir" in refused
    assert "--suite cannot be used with --source" in refusal("--source", "zoning", "--suite", "dataset", bare)


@pytest.mark.parametrize(
    ("content", "fail_on", "exit_code"),
    [
        ("ex:a a ex:Person ; ex:name 'A' .", "info", 0),
        ("ex:a a ex:Person ; ex:name 'A' ; ex:note 'N' .", "info", 1),
        ("ex:a a ex:Person ; ex:name 'A' ; ex:note 'N' .", "warning", 0),
        ("ex:a a ex:Person ; ex:name 'A' ; ex:age 'old' .", "warning", 1),
        ("ex:a a ex:Person ; ex:name 'A' ; ex:age 'old' .", "violation", 0),
        ("ex:a a ex:Person .", "violation", 1),
    ],
)
def test_the_least_severity_that_fails_can_be_chosen(write: Write, content: str, fail_on: str, exit_code: int) -> None:
    write("data.ttl", content)
    assert run("validate", "data.ttl", "--shapes", "shapes.ttl", "--fail-on", fail_on).exit_code == exit_code


def test_files_are_one_data_graph_unless_each_is_asked_for(write: Write) -> None:
    write("a.ttl", "ex:a a ex:Person .")
    write("b.ttl", "ex:a ex:name 'A' .")
    assert answer("a.ttl", "b.ttl", "--shapes", "shapes.ttl", exit_code=0)["results"] == []
    [alone] = answer("a.ttl", "b.ttl", "--shapes", "shapes.ttl", "--each", exit_code=1)["results"]
    assert alone["source"] == "a.ttl"


def test_folders_and_patterns_are_taken_and_the_shapes_in_them_left_out(write: Write) -> None:
    write("all/data.ttl", "ex:a a ex:Person ; ex:name 'A' .")
    write("all/shapes.ttl", SHAPES)
    assert answer("all", "--shapes", "all/shapes.ttl", exit_code=0)["checked"] == "1 file, 2 triples"
    assert answer("all/d*.ttl", "--shapes", "all/s*.ttl", exit_code=0)["checked"] == "1 file, 2 triples"


def test_shapes_within_the_data_serve_where_none_are_named(write: Write) -> None:
    write("mixed.ttl", SHAPES + "ex:a a ex:Person .")
    assert [each["focus"] for each in answer("mixed.ttl", exit_code=1)["results"]] == ["<http://example.org/a>"]
    write("others.ttl", "ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:nodeKind sh:IRI .")
    assert answer("mixed.ttl", "--shapes", "others.ttl", exit_code=0)["results"] == []


def test_an_ontology_lends_its_classes_and_is_not_validated(write: Write) -> None:
    write("data.ttl", "ex:s a ex:Student .")
    write("classes.ttl", "ex:Student <http://www.w3.org/2000/01/rdf-schema#subClassOf> ex:Person . ex:p a ex:Person .")
    found = answer("data.ttl", "--shapes", "shapes.ttl", "--ontology", "classes.ttl", exit_code=1)["results"]
    assert [each["focus"] for each in found] == ["<http://example.org/s>"]


def test_standard_input_is_read_in_the_format_that_is_named(write: Write) -> None:
    triples = "<http://example.org/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Person> .\n"
    for form in ("ttl", "nt", "nq"):
        report = answer("-", "--input-format", form, "--shapes", "shapes.ttl", exit_code=1, stdin=triples)
        assert [each["source"] for each in report["results"]] == ["standard input"]
    assert "Standard input (-)" in refusal("-", "--shapes", "-")


def test_blank_nodes_and_bad_lexical_forms_are_reported_as_they_are_written(write: Write) -> None:
    write("data.ttl", "[] a ex:Person ; ex:name 'N' ; ex:age '007'^^xsd:integer , 'seven'^^xsd:integer .")
    [found] = answer("data.ttl", "--shapes", "shapes.ttl", "--fail-on", "warning", exit_code=1)["results"]
    assert found["focus"].startswith("_:")
    assert found["value"] == '"seven"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_what_a_strict_reader_refuses_can_be_taken_as_it_is(write: Write) -> None:
    write("data.ttl", "ex:a a ex:Person ; ex:note 'N'@abcdefghijk .")
    [fault] = answer("data.ttl", "--shapes", "shapes.ttl", exit_code=1)["results"]
    assert fault["focus"] is None
    found = answer("data.ttl", "--shapes", "shapes.ttl", "--lenient", exit_code=1)["results"]
    assert {each["component"].rpartition("#")[2] for each in found} == {
        "MinCountConstraintComponent",
        "MaxCountConstraintComponent",
    }


def test_a_syntax_error_is_a_result_with_its_line_and_hides_nothing(write: Write) -> None:
    write("broken.ttl", "ex:a ex:p .")
    write("data.ttl", "ex:a a ex:Person .")
    log = json.loads(run("validate", "broken.ttl", "data.ttl", "--shapes", "shapes.ttl", "--format", "sarif").stdout)
    places = [each["locations"][0]["physicalLocation"] for each in log["runs"][0]["results"]]
    assert {(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places} == {
        ("broken.ttl", 4),
        ("data.ttl", 4),
    }


BAD_SHAPES = {
    "ex:S a": "line 5, column 1: not Turtle",
    "ex:S a sh:NodeShape ; sh:minCuont 1 .": "<http://example.org/S>, sh:minCuont: unknown SHACL term. Did you mean "
    "sh:minCount?",
    "ex:S a sh:NodeShape ; sh:pattern '[' .": "<http://example.org/S>, sh:pattern: '[' is not a valid",
    "ex:S a sh:NodeShape ; sh:pattern 'a' ; sh:flags 'w' .": "<http://example.org/S>, sh:flags: ",
    "ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:sparql [ sh:select 'SELECT $this { $this no:p ?x }' ] .": (
        "<http://example.org/S>, sh:select: undeclared prefix no:"
    ),
    "ex:a a ex:Person .": "no shape found",
    "": "no shape found",
}


@pytest.mark.parametrize("content", BAD_SHAPES)
def test_bad_shapes_are_refused_with_file_shape_term_and_rule(write: Write, content: str) -> None:
    write("data.ttl", "ex:a a ex:Person .")
    write("bad.ttl", content + "\n")
    said = (
        refusal("data.ttl", "--shapes", "shapes.ttl", "--shapes", "bad.ttl")
        if content and "Person" not in content
        else refusal("data.ttl", "--shapes", "bad.ttl")
    )
    assert said.startswith("kg: bad.ttl"), said
    assert BAD_SHAPES[content] in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["data.ttl", "--shapes", "absent.ttl"], "absent.ttl: cannot be read"),
        (["absent.ttl", "--shapes", "shapes.ttl"], "absent.ttl: cannot be read"),
        (["notes.txt", "--shapes", "shapes.ttl"], "notes.txt: unknown RDF format"),
        (["data.csv", "--shapes", "shapes.ttl"], "data.csv: no such file or folder"),
        (["*.nq", "--shapes", "shapes.ttl"], "no file matches"),
        (["--shapes", "shapes.ttl"], "Nothing to validate"),
        (["data.ttl", "--shapes", "shapes.ttl", "--suite", "record"], "not both"),
        (["data.ttl", "--data-dir", "x"], "--data-dir cannot be used with FILE"),
        (["data.ttl", "--changed-since", "3"], "--changed-since cannot be used with FILE"),
        (["--data-dir", "x", "--each"], "--each cannot be used with a data directory"),
        (["--self", "data.ttl", "--data-dir", "x"], "FILE and --data-dir cannot be used with --self"),
        (["--data-dir", "x"], "No knowledge graph in x"),
        (
            ["data.ttl", "--shapes", "shapes.ttl", "--graph", "http://example.org/g"],
            "Unknown graph <http://example.org/g>",
        ),
        (["data.ttl", "--shapes", "shapes.ttl", "--graph", "no iri"], "is not an IRI"),
        (["data.ttl", "--shapes", "shapes.ttl", "--output", "absent/report"], "Cannot write the report"),
        (["data.ttl", "--suite", "other"], "'record', 'dataset'"),
        (["data.ttl", "--fail-on", "other"], "'violation', 'warning', 'info'"),
        (["-", "--input-format", "csv"], "'ttl'"),
    ],
)
def test_what_cannot_be_done_is_refused_and_says_why(write: Write, arguments: list[str], said: str) -> None:
    write("data.ttl", "ex:a a ex:Person .")
    write("notes.txt", "")
    assert said in refusal(*arguments)


def test_shapes_that_look_at_nothing_and_imports_are_told(write: Write) -> None:
    write("data.ttl", "ex:a a ex:Person .")
    write(
        "no-targets.ttl", "ex:S a sh:NodeShape ; sh:nodeKind sh:IRI . <> <http://www.w3.org/2002/07/owl#imports> ex:o ."
    )
    result = run("validate", "data.ttl", "--shapes", "no-targets.ttl")
    assert result.exit_code == 2
    assert "imports <http://example.org/o>, which is not fetched" in result.stderr


@pytest.mark.parametrize("form", ["text", "json", "ttl", "sarif"])
@pytest.mark.parametrize("more", [(), ("--each",)])
def test_data_that_no_shape_looks_at_do_not_pass_for_sound(write: Write, form: str, more: tuple[str, ...]) -> None:
    write("one.ttl", "ex:a a ex:Persson .")
    write("two.ttl", "ex:b a ex:Persson .")
    arguments = ("validate", "one.ttl", "two.ttl", "--shapes", "shapes.ttl", "--format", form, *more)
    result = run(*arguments)
    assert result.exit_code == 2
    assert "which no shape targets" in result.stdout
    assert "Nothing was checked" in result.stderr
    write("two.ttl", "ex:b a ex:Person ; ex:name 'B' .")
    result = run(*arguments)
    assert "which no shape targets" not in result.stdout + result.stderr


def test_shapes_of_ones_own_that_look_at_nothing_stored_are_told(data_dir: Path, write: Write) -> None:
    write("boats.ttl", "ex:Boat a sh:NodeShape ; sh:targetClass ex:Boat ; sh:nodeKind sh:IRI .")
    result = run("validate", "--shapes", "boats.ttl", "--data-dir", str(data_dir))
    assert result.stdout == "all graphs as one, which no shape targets: conforms (no results)\n"


def test_a_report_in_a_file_is_there_whole_or_not_at_all(write: Write) -> None:
    write("data.ttl", "ex:a a ex:Person .")
    result = run("validate", "data.ttl", "--shapes", "shapes.ttl", "--format", "sarif", "--output", "report.sarif")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "1 violation" in result.stderr
    assert len(json.loads(Path("report.sarif").read_text())["runs"][0]["results"]) == 1
    Path("report.sarif").write_text("before")
    write("bad.ttl", "ex:S a sh:NodeShape ; sh:minCuont 1 .")
    assert "minCuont" in refusal("data.ttl", "--shapes", "bad.ttl", "--output", "report.sarif")
    assert Path("report.sarif").read_text() == "before"
    assert not list(Path().glob("*.partial"))


@pytest.mark.long
@pytest.mark.parametrize("unbuffered", spread(["", "1"], 1))
def test_a_full_disk_is_told_and_a_reader_who_has_gone_is_not(write: Write, unbuffered: str) -> None:
    write("data.ttl", "\n".join(f"ex:p{number} a ex:Person ; ex:name {number} , 'x' ." for number in range(3_000)))
    write(
        "strict.ttl",
        "ex:S a sh:NodeShape ; sh:targetClass ex:Person ; sh:property [ sh:path ex:name ; sh:maxCount 1 ] .",
    )
    command = [*KG, "validate", "data.ttl", "--shapes", "strict.ttl", "--format", "json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
        help_ = subprocess.run([*KG, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr == "kg: Cannot write the report to standard output: No space left on device.\n"
    assert help_.returncode == 2
    assert help_.stderr == "kg: Cannot write to standard output: No space left on device.\n"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.long
def test_an_interrupt_ends_it_and_leaves_nothing(write: Write) -> None:
    os.mkfifo("data.ttl")
    command = [*KG, "validate", "data.ttl", "--shapes", "shapes.ttl", "--output", "report"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process, Path("data.ttl").open("wb") as pipe:
        pipe.write(HEAD.encode())
        pipe.flush()  # it reads, and waits for more
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            # Python notices a signal that came between two reads of the parser at the next signal only.
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert process.poll() == 130
    assert {path.name for path in Path().iterdir()} == {"data.ttl", "shapes.ttl"}


def test_the_records_of_a_store_are_checked_each_by_itself(data_dir: Path) -> None:
    report = answer("--data-dir", data_dir, exit_code=1)
    assert {each["graph"] for each in report["results"]} == {record("bad")[0].value}
    assert report["checked"] == "2 graphs of sources"
    good = answer("--data-dir", data_dir, "--graph", record("good")[0].value, exit_code=0)
    assert good["checked"] == str(record("good")[0])


def test_a_store_can_be_checked_by_the_dataset_shapes_and_by_ones_own(data_dir: Path, write: Write) -> None:
    found = answer("--data-dir", data_dir, "--suite", "dataset", exit_code=1)
    assert found["checked"] == "all graphs as one"
    assert "has content but no generating activity" in " ".join(each["message"] for each in found["results"])
    own = answer("--data-dir", data_dir, "--shapes", "shapes.ttl", exit_code=1)
    assert [each["focus"] for each in own["results"]] == ["<http://example.org/ada>"]
    graph = record("good")[0].value
    assert answer("--data-dir", data_dir, "--shapes", "shapes.ttl", "--graph", graph, exit_code=2)["results"] == []


def test_a_graph_that_is_not_there_is_refused_with_those_like_it(data_dir: Path) -> None:
    graph = record("good")[0]
    said = refusal("--data-dir", data_dir, "--graph", graph.value + "x")
    assert said.startswith(f"kg: Unknown graph <{graph.value}x>. Available: {graph}")


def test_only_what_changed_is_checked_where_that_is_asked_for(data_dir: Path, write: Write) -> None:
    everything = answer("--data-dir", data_dir, exit_code=1)["results"]
    assert answer("--data-dir", data_dir, "--changed-since", 1, exit_code=1)["results"] == everything
    assert answer("--data-dir", data_dir, "--changed-since", 4, exit_code=0)["results"] == []
    changed = answer("--data-dir", data_dir, "--shapes", "shapes.ttl", "--changed-since", 2, exit_code=1)
    assert [each["focus"] for each in changed["results"]] == ["<http://example.org/ada>"]
    assert answer("--data-dir", data_dir, "--shapes", "shapes.ttl", "--changed-since", 4, exit_code=0)["results"] == []
    for suite in ("record", "dataset"):
        assert "generation" in refusal("--data-dir", data_dir, "--suite", suite, "--changed-since", 99)


HOLDS = """
import sys
from pathlib import Path
from kg.cli import connection
with connection.connect(Path(sys.argv[1])) as reached, reached.snapshot() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_a_server_keeps_a_snapshot_for_as_long_as_its_client_lives(
    data_dir: Path, tmp_path: Path, write: Write
) -> None:
    held = copy_folder(data_dir, tmp_path / "kg-data")
    ways = (["--suite", "record"], ["--shapes", "shapes.ttl", "--changed-since", 2])
    here = [_found(answer("--data-dir", held, *way, exit_code=1)) for way in ways]
    client = [sys.executable, "-c", HOLDS, held]
    with (
        served(held),
        subprocess.Popen(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
        connection.connect(held) as reached,
    ):
        assert [_found(answer("--data-dir", held, *way, exit_code=1)) for way in ways] == here
        assert process.stdout is not None
        assert isinstance(reached, connection.ServerConnection)
        folder = Path(process.stdout.readline().strip())
        for number in range(3):
            content = f"<http://example.org/s> <http://example.org/p> {number} ."
            headers = {"Content-Type": "text/turtle"}
            put = httpx.put(f"{reached.address}/graphs/user/a", content=content, headers=headers, trust_env=False)
            assert put.is_success, put.text
            with reached.snapshot() as newer:  # more of them than are kept unused
                assert folder.is_dir()
                assert len(Store.read_only(str(newer))) > 0
        process.kill()
        until(lambda: not folder.exists())


def _found(report: Any) -> Any:
    """What a report says, without the names that shapes without a name get with each reading."""
    return report["checked"], [(each["focus"], each["message"], each["graph"]) for each in report["results"]]


def test_the_hook_for_pre_commit_runs_on_the_files_that_it_names(write: Write) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    write("data.ttl", "ex:a a ex:Person .")
    assert hook["language"] == "python"
    assert all(re.search(hook["files"], f"data{ending}") for ending in IN_FOLDERS)
    command, *options = hook["entry"].split()
    result = run(*options, "--shapes", "shapes.ttl", "data.ttl")
    assert (command, result.exit_code) == ("kg", 1)
    assert "Somebody lacks a name." in result.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "conforms"), spread([("ex:a a ex:Person .", "false"), ("ex:a a ex:Person ; ex:name 'A' .", "true")], 1)
)
def test_the_action_validates_what_its_inputs_name(write: Write, tmp_path: Path, content: str, conforms: str) -> None:
    write("some data.ttl", content)
    done = action(tmp_path, {"files": "some data.ttl\n", "shapes": "shapes.ttl\n"})
    assert done["Validate"].returncode == 0, done["Validate"].stderr
    outputs = dict(line.split("=", 1) for line in (tmp_path / "outputs").read_text().splitlines())
    log = json.loads(Path(outputs["sarif"]).read_text())
    assert outputs["conforms"] == conforms
    assert len(log["runs"][0]["results"]) == (conforms == "false")
    assert done["Report"].returncode == (conforms == "false")
    assert ("Somebody lacks a name." in done["Report"].stdout) == (conforms == "false")


def test_the_action_ends_at_once_where_nothing_can_be_validated(write: Write, tmp_path: Path) -> None:
    done = action(tmp_path, {"files": "absent.ttl", "shapes": "shapes.ttl", "fail-on": "warning"})
    assert done["Validate"].returncode == 2
    assert "absent.ttl: cannot be read" in done["Validate"].stderr


def action(folder: Path, inputs: dict[str, str]) -> dict[str, subprocess.CompletedProcess[str]]:
    """Run the steps of the action that are scripts as the host does, but for the one that installs; by their names."""
    action = yaml.safe_load((ROOT / ".github/actions/validate/action.yml").read_text())
    given = {name: inputs.get(name, about.get("default")) for name, about in action["inputs"].items()}
    assert None not in given.values()
    assert set(inputs) <= set(given)
    scripts = folder / "bin"
    scripts.mkdir()
    (scripts / "kg").write_text(f'#!/bin/sh\nexec {sys.executable} -m kg.cli "$@"\n')
    (scripts / "kg").chmod(0o755)
    environment = {"RUNNER_TEMP": str(folder), "GITHUB_OUTPUT": str(folder / "outputs"), "PYTHONPATH": str(ROOT)}
    done = {}
    for step in action["runs"]["steps"]:
        if step.get("name") not in ("Validate", "Report"):
            continue
        values = {name: given[value.split("inputs.")[1].split(" ")[0]] for name, value in step.get("env", {}).items()}
        done[step["name"]] = subprocess.run(
            [shutil.which("bash") or "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={"PATH": f"{scripts}:{os.environ['PATH']}", **environment, **values},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return done
