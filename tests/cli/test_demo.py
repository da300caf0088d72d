"""`kg demo` is what a stranger runs first: it has to work, to be true, and to fail loudly when it is not."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kg.cli import demo
from kg.errors import QuadciteError

ITEM = {
    "id": "cpr://doc/x#p=0",
    "document": {"geographies": ["KEN"]},
    "provenance": {"sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
}
"""Evidence that cites an empty file."""


def test_the_demo_asks_gets_cited_answers_and_cleans_up(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kg.cli", "demo"], capture_output=True, text=True, check=False, timeout=110,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for question in demo.QUESTIONS:
        assert question.text in done.stdout
        assert f"cpr://doc/{question.expected}#p=" in done.stdout
    assert len(re.findall(r", row \d+, sha256 [0-9a-f]{64}$", done.stdout, re.MULTILINE)) >= len(demo.QUESTIONS)
    for topic in demo.TOPICS:
        assert f"{topic.qid}  " in done.stdout
    assert re.search(r"#p=\d+ .* names it: \"geothermal heat\" at \d+-\d+$", done.stdout, re.MULTILINE)
    assert "geothermal energy  --subconcept of->  renewable energy" in done.stdout
    assert demo.SPEECH.text in done.stdout
    assert f"id/speech/{demo.SPEECH.expected}#char=" in done.stdout
    assert re.search(
        r"^   R-1: conditional.*\n   \| \"Duplex, only on a corner lot\.\"\n   section 17", done.stdout, re.MULTILINE
    )
    assert "   building-height: max 35 FT\n" in done.stdout
    assert "Lower Quill, Connecticut: Overlay: VC; conditional: RA; notPermitted: R-A" in done.stdout
    assert "SELECT ?country" in done.stdout
    assert "kg why" in done.stdout
    assert "read from" in done.stdout
    assert list(tmp_path.iterdir()) == []


def item_of(path: Path, **changes: object) -> dict[str, object]:
    return ITEM | {"provenance": {**ITEM["provenance"], "source": str(path)}} | changes  # type: ignore[dict-item]


def test_an_answer_that_cites_the_file_as_it_is_passes(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    demo.check({"id": ITEM["id"]}, item_of(tmp_path / "empty"), {"iso3": ["KEN"]})


def test_an_answer_whose_file_has_another_hash_fails(tmp_path: Path) -> None:
    (tmp_path / "changed").write_text("changed")
    with pytest.raises(QuadciteError, match="has the hash"):
        demo.check({"id": ITEM["id"]}, item_of(tmp_path / "changed"), {})


def test_an_answer_outside_its_filter_or_to_another_id_fails(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(QuadciteError, match="outside the filter"):
        demo.check({"id": ITEM["id"]}, item_of(tmp_path / "empty"), {"iso3": ["DJI"]})
    with pytest.raises(QuadciteError, match="was asked for"):
        demo.check({"id": "cpr://doc/y#p=0"}, item_of(tmp_path / "empty"), {})


def test_words_that_do_not_stand_where_a_mention_says_fail() -> None:
    match = {"qid": "Q1", "offsets": [[0, 3], [8, 11]], "words": ["sun", "sun"]}
    item = {"id": "x", "passage": {"text": "sun and sun"}, "concept_matches": [match]}
    assert demo.spans(item, "Q1") == ['"sun" at 0-3', '"sun" at 8-11']
    with pytest.raises(QuadciteError, match="does not say where"):
        demo.spans(item, "Q2")
    with pytest.raises(QuadciteError, match="has 'sun' at 8-11, not 'son'"):
        demo.spans(item | {"concept_matches": [match | {"words": ["sun", "son"]}]}, "Q1")


def test_a_speech_with_another_hash_or_an_excerpt_from_elsewhere_fails() -> None:
    words = "Order! Order!"
    speech = {
        "speech_id": "x",
        "full_text": words,
        "record": {"text_sha256": hashlib.sha256(words.encode()).hexdigest()},
    }
    hit = {"excerpt": "Order!", "evidence": {"start": 7, "end": 13}}
    demo.quoted(hit, speech)
    with pytest.raises(QuadciteError, match="has other words at 6-12"):
        demo.quoted(hit | {"evidence": {"start": 6, "end": 12}}, speech)
    with pytest.raises(QuadciteError, match="is recorded of it"):
        demo.quoted(hit, speech | {"full_text": words + "\n"})


def test_a_rule_whose_words_stand_elsewhere_or_whose_file_changed_fails(tmp_path: Path) -> None:
    path = tmp_path / "code"
    path.write_text("Barns are permitted.")
    evidence = {
        "spans": [{"start": 0, "end": 5, "text": "Barns"}],
        "source": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    rule = {"section_ref": "1", "evidence": evidence}
    assert demo.stated(rule, "Barns are permitted.") == "Barns"
    with pytest.raises(QuadciteError, match="has other words at 0-5"):
        demo.stated(rule, "Sheds are permitted.")
    path.write_text("Barns are forbidden.")
    with pytest.raises(QuadciteError, match="has the hash"):
        demo.stated(rule, "Barns are permitted.")


def test_a_server_that_does_not_start_is_reported_with_what_it_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with (
        pytest.raises(QuadciteError, match=r"ended at its start(.|\n)*is a file"),
        demo.server(tmp_path / "file"),
    ):
        pytest.fail("the server cannot be there")
