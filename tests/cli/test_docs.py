"""`kg docs`."""

from __future__ import annotations

from typer.testing import CliRunner

from kg import bundle
from kg.cli.main import app


def test_the_chapters_are_listed() -> None:
    done = CliRunner().invoke(app, ["docs"])
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == list(bundle.CHAPTERS)


def test_a_chapter_is_printed_verbatim() -> None:
    done = CliRunner().invoke(app, ["docs", "architecture"])
    assert (done.exit_code, done.stdout) == (0, bundle.chapter("architecture"))


def test_an_unknown_topic_is_answered_with_the_topics() -> None:
    done = CliRunner().invoke(app, ["docs", "../errors"])
    assert done.exit_code == 2
    assert "getting-started" in done.stderr
