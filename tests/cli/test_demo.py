"""`kg demo`: it works, checks its own answers, and fails when one of them is wrong."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kg.cli import demo
from kg.errors import QuadciteError

pytestmark = pytest.mark.long


def test_the_demo_asks_gets_cited_answers_and_cleans_up(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kg.cli", "demo"], capture_output=True, text=True, check=False, timeout=110,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for source in demo.SOURCES:
        assert f"kg load {source} " in done.stdout
    assert f"cpr://doc/{demo.LAW_FOUND}#p=" in done.stdout
    assert re.search(rf"^   {demo.CONCEPT_FOUND} .* \"geothermal heat\" .* \d+-\d+$", done.stdout, re.MULTILINE)
    assert f"id/speech/{demo.SPEECH_FOUND}#char=" in done.stdout
    assert re.search(
        r"^   R-1: conditional.*\n   \| \"Duplex, only on a corner lot\.\"\n   section 17", done.stdout, re.MULTILINE
    )
    assert "SELECT ?country" in done.stdout
    assert len(re.findall(r", row \d+, sha256 [0-9a-f]{64}$", done.stdout, re.MULTILINE)) == 2
    assert len(re.findall(r"sha256 [0-9a-f]{64}$", done.stdout, re.MULTILINE)) >= 7
    assert re.search(r"/graphs/user/demo: 201", done.stdout)
    assert re.search(r"/graphs/src/climate/demo: 403", done.stdout)
    assert "kg why" in done.stdout
    assert "read from" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_answer_whose_file_has_another_hash_fails() -> None:
    demo.check_hash(b"law", hashlib.sha256(b"law").hexdigest())
    with pytest.raises(QuadciteError, match=hashlib.sha256(b"LAW").hexdigest()):
        demo.check_hash(b"LAW", hashlib.sha256(b"law").hexdigest())


def test_an_answer_whose_words_stand_elsewhere_fails() -> None:
    demo.check_quote("sun and sun", 8, 11, "sun")
    with pytest.raises(QuadciteError, match="'son' at 8-11"):
        demo.check_quote("sun and sun", 8, 11, "son")


def test_another_answer_than_the_expected_one_fails() -> None:
    demo.expect("a" in "abc", "a", "abc")
    with pytest.raises(QuadciteError, match=r"d\b.*abc"):
        demo.expect("d" in "abc", "d", "abc")


def test_a_server_that_does_not_start_is_reported_with_its_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with (
        pytest.raises(QuadciteError, match=r"did not start(.|\n)*is a file"),
        demo.server(tmp_path / "file"),
    ):
        pytest.fail("the server cannot have started")
