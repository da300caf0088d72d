"""What the command line says, where it says it, and how it ends."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import time
from pathlib import Path
from typing import Annotated

import pytest
import typer

from kg.cli import output
from kg.errors import InvalidInputError, StoreLockedError
from kg.settings import Settings


@output.reported
def locked(as_json: bool = False) -> None:
    raise StoreLockedError("kg-data is in use by process 7")


@output.reported
def missettled(as_json: bool = False) -> None:
    Settings()


@output.reported
def broken(as_json: bool = False) -> None:
    raise KeyError("a bug")


@output.reported
def searching(
    place: Annotated[str | None, typer.Option("--place")] = None,
    min_score: Annotated[float | None, typer.Option("--min-score")] = None,
    trace: Annotated[int | None, typer.Option("--why")] = None,
    paths: list[str] | None = None,
    message: str = "",
) -> None:
    raise InvalidInputError(message)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Nothing found. min_score=0 lists all. max_rows=9 is unknown.", "--min-score 0 lists all. max_rows=9"),
        ("place: Unknown place 'x'.", "--place: Unknown place 'x'."),
        (
            "search: filters.place.0: Too short; min_score: Too low (arguments: query, place)",
            "--place: Too short; --min",
        ),
        ("Widen the filters (place, topic).", "Widen the filters (--place, topic)."),
        ("trace=N gives those of row N.", "--why N gives those of row N."),
        ("Nothing contains 'min_score=0' or ?place=1.", "Nothing contains 'min_score=0' or ?place=1."),
    ],
)
def test_a_message_names_options_instead_of_arguments(
    capsys: pytest.CaptureFixture[str], message: str, said: str
) -> None:
    with pytest.raises(typer.Exit):
        searching(message=message)
    shown = capsys.readouterr().err
    assert said in shown
    assert "(arguments:" not in shown


def test_a_message_has_paths_as_they_were_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for given, absolute, written in (
        (["laws"], f"{here}/laws/a b.csv: row 3 of {here}/laws/c.csv", "laws/a b.csv: row 3 of laws/c.csv"),
        (["./laws/x.csv"], f"'{here}/laws/x.csv'", "'laws/x.csv'"),
        (["../other"], f"{tmp_path}/other/x.csv", "../other/x.csv"),
        (["."], f"{here}/x.csv", "x.csv"),
        ([str(here)], f"{here}/x.csv", f"{here}/x.csv"),
        (["laws"], f"/mnt{here}/laws/x.csv", f"/mnt{here}/laws/x.csv"),
    ):
        with pytest.raises(typer.Exit):
            searching(paths=given, message=absolute)
        assert capsys.readouterr().err == f"kg: {written}\n"


def test_an_error_is_one_message_on_standard_error_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        locked()
    out, err = capsys.readouterr()
    assert (ended.value.exit_code, out, err) == (1, "", "kg: kg-data is in use by process 7\n")


def test_with_json_the_error_is_also_a_document_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        locked(as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "error": {"code": "store_locked", "message": "kg-data is in use by process 7", "retryable": True}
    }


def test_a_wrong_setting_is_usage_and_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUADCITE_PORT", "many")
    with pytest.raises(typer.Exit) as ended:
        missettled()
    assert ended.value.exit_code == 2
    assert "QUADCITE_PORT=many" in capsys.readouterr().err


def test_a_setting_that_is_no_json_is_usage_and_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUADCITE_WIKIBASES", "{'single': 1}")
    with pytest.raises(typer.Exit) as ended:
        missettled()
    assert ended.value.exit_code == 2
    assert '"wikibases"' in capsys.readouterr().err


def test_with_json_a_wrong_setting_is_a_document_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUADCITE_PORT", "many")
    with pytest.raises(typer.Exit) as ended:
        missettled(as_json=True)
    assert ended.value.exit_code == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "invalid_input"
    assert "QUADCITE_PORT=many" in error["message"]


def test_a_log_record_goes_to_standard_error_as_it_is_when_it_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output.Lines()
    elsewhere = io.StringIO()
    with monkeypatch.context() as redirected:  # as a progress bar does, to print above itself
        redirected.setattr("sys.stderr", elsewhere)
        lines.handle(logging.makeLogRecord({"msg": "one layout"}))
    assert elsewhere.getvalue() == "one layout\n"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows"), (1, "1 row"), (2_100, "2,100 rows")])
def test_a_count_has_its_noun_in_the_right_number(number: int, text: str) -> None:
    assert output.counted(number, "row") == text


def test_a_bug_is_not_dressed_as_an_error_of_the_user() -> None:
    with pytest.raises(KeyError):
        broken()


def test_values_become_jsons_own_types() -> None:
    @dataclasses.dataclass
    class Thing:
        where: Path
        names: tuple[str, ...]
        inner: dict[str, object]

    thing = Thing(Path("a/b"), ("x",), {"n": 1.5, "none": None, "yes": True})
    assert output.to_json_types(thing) == {
        "where": "a/b",
        "names": ["x"],
        "inner": {"n": 1.5, "none": None, "yes": True},
    }


def test_things_are_shown_as_aligned_names_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    output.show({"quads": 12345, "data_dir": "kg-data", "problem": None, "ready": True, "kinds": ["a", "b"]})
    assert capsys.readouterr().out.splitlines() == [
        "quads     12,345",
        "data dir  kg-data",
        "problem   -",
        "ready     yes",
        "kinds     a, b",
    ]


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    output.columns(("name", "n"), iter([("long name", "1"), ("x", "22")]))
    assert capsys.readouterr().out == "name       n\nlong name  1\nx          22\n"


def test_a_table_folds_long_cells_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("a", "b"), iter([("x" * 70, "[bold]not markup[/bold]")]), width=60)
    out = capsys.readouterr().out
    assert out.count("x") == 70
    assert "[bold]not markup[/bold]" in out.replace("\n", "").replace(" ", "").replace("notmarkup", "not markup")
    assert max(len(line) for line in out.splitlines()) <= 60


def test_in_a_pipe_progress_is_a_line_each_time_the_count_has_doubled(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("loading") as advance:
        for done in range(0, 5_000, 100):
            advance(done, None, "")
        advance(5_000, 5_000, "committing")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["loading: 1,000", "loading: 2,000", "loading: 4,000"]


def test_on_a_terminal_progress_is_a_bar_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with output.progress("loading") as advance:
        advance(3, 10, "loading")
    out, err = capsys.readouterr()
    assert out == ""
    assert "3/10" in err


def test_a_new_step_in_a_pipe_has_lines_of_its_own_with_rate_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with output.progress("loading") as advance:
        advance(8_000, 8_000, "loading climate")
        for seconds in range(0, 101, 5):
            now[0] = seconds
            advance(20 * seconds, 2_000, "making vectors")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 6
    assert lines[0] == "loading climate: 8,000 of 8,000"
    assert "making vectors: 200 of 2,000 (20/s, 0:01:30 left)" in lines


def test_on_a_terminal_the_clock_of_a_new_step_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.progress import Progress

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    bars: list[Progress] = []
    start = Progress.start
    monkeypatch.setattr(Progress, "start", lambda self: bars.append(self) or start(self))
    with output.progress("loading") as advance:
        advance(10, 10, "loading climate")
        assert bars[0].finished
        advance(3, 10, "making vectors")
        assert not bars[0].finished
        assert bars[0].tasks[0].finished_time is None


@pytest.mark.parametrize(
    ("doing", "follows"),
    [("making vectors", "kg reindex"), ("loading climate", "same command"), ("finding mentions", "kg mentions")],
)
def test_an_interruption_names_what_is_pending(capsys: pytest.CaptureFixture[str], doing: str, follows: str) -> None:
    def work() -> None:
        with output.progress("loading") as advance:
            advance(30, 1_200, doing)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    [line] = capsys.readouterr().err.splitlines()
    assert f"{doing}: 30 of 1,200" in line
    assert follows in line
