"""`kg quarantine` as a person and as a script use it: in the data directory, and through the server that holds it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pyoxigraph
import pytest

from kg.vocabulary import RDF, SH
from tests.cli.running import KG, answer, run, served
from tests.examples import spread
from tests.folders import copy_folder
from tests.loaders.test_pipeline import rows, write
from tests.loaders.test_quarantine import spoiled

pytestmark = pytest.mark.long

RECORD = {
    "id", "name", "domain", "record", "graph", "reason", "violations", "rejected_at", "run", "agent", "places",
}  # fmt: skip


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data directory in which two records are in quarantine, and the files that they came from."""
    folder = tmp_path_factory.mktemp("quarantine")
    source = folder / "in"
    source.mkdir()
    write(source / "t.jsonl", rows("good", ["one"]), rows("misread", ["two"]))
    write(source / "u.jsonl", rows("orphan", ["three"], family_slug="", family_name=""))
    with spoiled("misread"):
        assert run("load", "climate", source, "--data-dir", folder / "kg-data").exit_code == 3
    return folder


@pytest.fixture
def here(loaded: Path, tmp_path: Path) -> Path:
    """The same, a test's own."""
    return copy_folder(loaded, tmp_path / "here")


@pytest.fixture
def data(here: Path) -> Path:
    return here / "kg-data"


def ids(data: Path) -> dict[str, str]:
    """The id of each record."""
    found = answer("quarantine", "list", "--data-dir", data)
    return {record["record"]: record["id"] for record in found["records"]}


def test_a_list_counts_first_and_says_where_each_record_stands_and_why(data: Path) -> None:
    found = answer("quarantine", "list", "--data-dir", data)
    assert (found["quarantined"], found["shown"], found["damaged"]) == (2, 2, {})
    assert all(set(record) == RECORD for record in found["records"])
    told = run("quarantine", "list", "--data-dir", data).stdout.splitlines()
    assert told[0] == "2 records in quarantine"
    assert told[1].split() == ["id", "record", "graph", "source", "since", "violations", "reason"]
    assert any("misread" in line and "t.jsonl row 2" in line and ids(data)["misread"] in line for line in told)


def test_a_list_can_be_of_one_source_or_file(data: Path) -> None:
    def shown(*options: str) -> list[str]:
        return [record["record"] for record in answer("quarantine", "list", "--data-dir", data, *options)["records"]]

    assert shown("--source", "u.jsonl") == ["orphan"]
    assert len(shown("--domain", "climate")) == 2
    assert shown("--domain", "hansard") == []


def test_an_empty_quarantine_says_so_and_no_data_directory_is_an_error(tmp_path: Path) -> None:
    assert run("quarantine", "list", "--data-dir", tmp_path).exit_code == 1
    source = write(tmp_path / "t.jsonl", rows("good", ["one"]))
    run("load", "climate", source, "--data-dir", tmp_path / "kg-data")
    result = run("quarantine", "list", "--data-dir", tmp_path / "kg-data")
    assert (result.exit_code, result.stdout) == (0, "0 records in quarantine\n")
    assert run("quarantine", "retry", "--all", "--data-dir", tmp_path / "kg-data").exit_code == 0


def test_a_record_is_shown_with_its_rows_its_report_and_what_to_do(data: Path) -> None:
    short = ids(data)["misread"]
    told = run("quarantine", "show", short, "--data-dir", data).stdout
    for part in ("misread", "t.jsonl", "row 2 of", "text: two", "kg:", f"kg quarantine retry {short} --file FILE"):
        assert part in told
    whole = answer("quarantine", "show", short, "--data-dir", data)
    assert whole["rows"][0]["cells"]["text"] == "two"
    assert len(whole["results"]) == whole["violations"] > 0
    assert "cpr://doc/misread" in whole["mapped"]
    turtle = run("quarantine", "show", short, "--format", "ttl", "--data-dir", data).stdout
    report = list(pyoxigraph.parse(turtle, pyoxigraph.RdfFormat.TURTLE))
    assert [each for each in report if each.predicate == RDF.type and each.object == SH.ValidationReport]


def test_the_report_of_a_record_that_no_shape_has_seen_is_an_error_that_says_why(data: Path) -> None:
    result = run("quarantine", "show", ids(data)["orphan"], "--format", "ttl", "--data-dir", data)
    assert result.exit_code == 1
    assert "Missing family" in result.stderr
    assert "Missing family" in run("quarantine", "show", ids(data)["orphan"], "--data-dir", data).stdout


@pytest.mark.long
@pytest.mark.parametrize("holder", spread(["server", "here", "stdio"], 1))
def test_it_goes_round_wherever_the_data_directory_is_held(here: Path, data: Path, holder: str) -> None:
    known = ids(data)
    options = ("--transport", "stdio") if holder == "stdio" else ()
    corrected = write(here / "corrected.jsonl", rows("orphan", ["three"]))
    with nullcontext() if holder == "here" else served(data, *options):
        assert answer("status", "--data-dir", data)["quarantined"] == 2
        some = run("quarantine", "retry", "--all", "--data-dir", data, "--json")
        assert some.exit_code == 3, some.output
        said = json.loads(some.stdout)
        assert {each["record"]: each["outcome"] for each in said["records"]} == {
            "misread": "loaded",
            "orphan": "quarantined",
        }
        assert answer("status", "--data-dir", data)["quarantined"] == 1
        with_file = run("quarantine", "retry", known["orphan"], "--file", corrected, "--data-dir", data)
        assert with_file.exit_code == 0, with_file.output
        [why] = answer("why", "cpr://doc/orphan", "--data-dir", data)["explanations"]
        assert "a correction of" in why["sources"][0]["locations"][0]
        assert why["sources"][0]["sent_by"]
        status = answer("status", "--data-dir", data)
        assert (status["quarantined"], status["text_units"], status["indexed_text_units"]) == (0, 3, 3)


@pytest.mark.long
def test_dropping_says_what_went_and_the_next_load_finds_it_again(here: Path, data: Path) -> None:
    short = ids(data)["orphan"]
    result = run("quarantine", "drop", short, "--yes", "--data-dir", data)
    assert (result.exit_code, result.stdout) == (0, f"1 record dropped\n{short}  orphan\n")
    assert list(ids(data)) == ["misread"]
    assert not list((data / "quarantine").glob(f"climate-{short}*"))
    assert run("load", "climate", here / "in", "--data-dir", data).exit_code == 3
    assert list(ids(data)) == ["orphan"]
    assert answer("quarantine", "drop", "--all", "--yes", "--data-dir", data)["dropped"] == [
        {"id": short, "record": "orphan"}
    ]
    assert answer("status", "--data-dir", data)["quarantined"] == 0


def test_without_a_terminal_nothing_is_dropped_unasked(data: Path) -> None:
    result = run("quarantine", "drop", "--all", "--data-dir", data)
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert len(ids(data)) == 2


@pytest.mark.parametrize(("said", "left"), [("n", 2), ("y", 0)])
def test_on_a_terminal_a_person_is_asked(data: Path, said: str, left: int) -> None:
    ours, theirs = pty.openpty()
    command = [*KG, "quarantine", "drop", "--all", "--data-dir", str(data)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, f"{said}\n".encode())
        told = b""
        try:
            while piece := os.read(ours, 4096):
                told += piece
        except OSError:  # how Linux says that the other end has closed
            pass
        os.close(ours)
    assert process.returncode == 0
    assert b"2 records?" in told
    assert b"orphan" in told
    assert len(ids(data)) == left


@pytest.mark.parametrize("command", ["show", "retry", "drop"])
def test_an_unknown_id_is_an_error_that_names_what_is_near(data: Path, command: str) -> None:
    more = ["--yes"] if command == "drop" else []
    result = run("quarantine", command, "orphan", *more, "--data-dir", data, "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "not_found"
    assert ids(data)["orphan"] in error["message"]


@pytest.mark.parametrize("arguments", [["retry"], ["drop", "--yes"], ["retry", "abcd", "--all"]])
def test_either_ids_or_all_have_to_be_given(data: Path, arguments: list[str]) -> None:
    assert run("quarantine", *arguments, "--data-dir", data).exit_code == 2


def test_a_damaged_file_is_named_and_left_out_and_can_be_dropped(data: Path) -> None:
    damaged = data / "quarantine" / f"climate-{'0' * 24}.json"
    damaged.write_text("{")
    assert list(answer("quarantine", "list", "--data-dir", data)["damaged"]) == [damaged.name]
    assert damaged.name in run("quarantine", "list", "--data-dir", data).stderr
    assert run("quarantine", "drop", "00000000", "--yes", "--data-dir", data).exit_code == 0
    assert not damaged.exists()


@pytest.mark.exhaustive
def test_a_load_while_records_are_retried_waits_and_both_come_to_their_end(here: Path, data: Path) -> None:
    write(here / "in" / "more.jsonl", *(rows(f"more{number}", ["x"]) for number in range(5)))
    with served(data):
        commands = (["quarantine", "retry", "--all"], ["load", "climate", here / "in"])
        running = [
            subprocess.Popen(
                [*KG, *map(str, each), "--data-dir", data], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            for each in commands
        ]
        ends = [(process.communicate()[1], process.returncode) for process in running]
    assert [code for _, code in ends] == [3, 3], ends
    assert list(ids(data)) == ["orphan"]
    assert answer("status", "--data-dir", data)["quarantined"] == 1
