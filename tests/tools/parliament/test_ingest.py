"""What `ingest_speech` promises: files of allowed folders alone, counts that are true, vectors stored on return."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Triple

from kg import bundle
from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.errors import ForbiddenError, InvalidInputError, NotFoundError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import SearchFilters
from kg.search.index_client import EdgeIndex
from kg.settings import Settings
from kg.tools.answers import content_of
from kg.tools.calls import SHARED
from kg.tools.parliament.ingest import MOST_BYTES, allowed, ingest_speech
from kg.tools.parliament.search import search_speeches
from kg.tools.parliament.speeches import get_speech
from kg.tools.registry import TOOLS
from kg.tools.search.passages import fetch, search
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, FOAF, KG, SCHEMA, mint, mint_part, mint_span, sha256
from tests.examples import spread
from tests.search import word_embedder

pytestmark = pytest.mark.long

SOMEBODY = Actor("somebody", frozenset({WRITE, CURATE, ADMIN}))

FIXTURES = bundle.folder("fixtures") / "hansard"
INGEST = next(tool for tool in TOOLS if tool.name == "ingest_speech")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "allowed"
    shutil.copytree(FIXTURES, inside)
    (tmp_path / "secret.json").write_text('{"speeches": []}')
    return inside


@pytest.fixture
def kg(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeGraph]:
    monkeypatch.setattr(EdgeIndex, "command", (sys.executable, word_embedder.__file__))
    settings = Settings(  # type: ignore[call-arg]
        data_dir=tmp_path / "data", models_dir=tmp_path / "models", model="words/32", query_workers=1,
        ingest_folders=(folder,), _env_file=None,
    )  # fmt: skip
    with KnowledgeGraph.open(tmp_path / "data", settings) as opened:
        yield opened


def test_a_file_is_taken_in_and_found_by_meaning_once_the_call_returns(kg, folder):
    speeches = json.loads((folder / "speeches.json").read_text())["speeches"]
    result = ingest_speech(kg, str(folder / "speeches.json"))
    assert (result.speeches_processed, result.duplicates_skipped, result.errors) == (len(speeches), 0, [])
    assert result.chunks_created == result.vectors_stored >= len(speeches)
    assert result.processing_time_seconds > 0
    assert set(content_of(result)) >= {
        "speeches_processed", "chunks_created", "vectors_stored", "duplicates_skipped", "errors",
        "processing_time_seconds",
    }  # fmt: skip
    assert [name for name in INGEST.arguments.model_fields if name not in SHARED] == [
        "file_path",
        "format",
        "jurisdiction",
    ]
    one = speeches[0]
    assert get_speech(kg, one["speech_id"]).full_text == one["text"]
    found = search_speeches(kg, one["title"])
    assert found.meta.completeness == "complete"
    assert not found.notes


def test_a_table_that_names_no_parliament_is_of_the_one_that_the_call_names(kg, folder):
    (folder / "orua.csv").write_text(
        "speech_id,speaker,party,chamber,date,text\n"
        "1,Hana Orsolya,Labour,House of Orua,2021-05-04,The harbour levy is too high for small boats.\n"
    )
    (refused,) = ingest_speech(kg, "orua.csv", "csv").errors
    assert "option jurisdiction" in refused
    assert ingest_speech(kg, "orua.csv", "csv", "NZL").speeches_processed == 1
    speech = search_speeches(kg, "harbour levy").results[0]
    assert "Australia" not in str(content_of(get_speech(kg, speech.speech_id)))
    with pytest.raises(InvalidInputError):
        ingest_speech(kg, "orua.csv", "csv", "Atlantis")


def test_the_same_again_is_skipped(kg, folder):
    first = ingest_speech(kg, "speeches.csv", "csv")
    again = ingest_speech(kg, "speeches.csv", "csv")
    assert again.duplicates_skipped == again.speeches_processed == first.speeches_processed > 0
    assert (again.chunks_created, again.vectors_stored, again.errors) == (0, 0, [])


@pytest.mark.parametrize("name", [path.name for path in sorted(FIXTURES.glob("*-*-*-*.*ml"))])
def test_a_day_counts_its_speeches(kg, folder, name):
    first = ingest_speech(kg, name, "xml")
    again = ingest_speech(kg, name, "xml")
    assert first.speeches_processed > 1
    assert first.chunks_created == first.vectors_stored >= first.speeches_processed - 1
    assert again.duplicates_skipped == again.speeches_processed == first.speeches_processed


def test_all_that_is_said_on_a_day_is_found_by_its_language(kg, folder):
    ingest_speech(kg, str(folder / "house-2024-03-21.xml"), "xml")
    everything = {hit.id for hit in search(kg, "the House took tide mills", limit=50).results}
    english = {
        hit.id for hit in search(kg, "the House took tide mills", SearchFilters(language=["en"]), limit=50).results
    }
    assert english == everything
    assert any("/id/sitting/" in found for found in english)
    assert any("/id/speech/" in found for found in english)
    with pytest.raises(NotFoundError, match="fr"):  # no text is in it
        search(kg, "tide mills", SearchFilters(language=["fr"]))


def test_the_words_of_a_day_are_traced_to_their_lines(kg, folder):
    ingest_speech(kg, str(folder / "house-2024-03-21.xml"), "xml")
    lines = (folder / "house-2024-03-21.xml").read_text().splitlines()
    for hit in search(kg, "took the chair great-grandparents ground flour tide mills", limit=20).results:
        (evidence,) = fetch(kg, ids=[hit.id]).evidence
        assert evidence.provenance == hit.provenance
        first, _, last = evidence.provenance.lines.partition("-")
        there = "".join(lines[int(first) - 1 : int(last or first)])
        assert evidence.passage.text.strip("—\n").split("\n")[0][:20] in re.sub("<[^>]*>", "", there)


def written(*triples: tuple[NamedNode, NamedNode, NamedNode | Literal]) -> list[Triple]:
    return [Triple(*triple) for triple in triples]


@pytest.mark.parametrize("first", [True, False], ids=["before the load", "after it"])
def test_what_people_write_changes_no_word_of_a_speech(kg, folder, first):
    speech, chunk = mint("speech", "2024-03-21-representatives-1"), mint("graph", "user", "chunk")
    day = [str(folder / "house-2024-03-21.xml"), "xml"]
    if not first:
        ingest_speech(kg, *day)
    UserGraphs(kg).put(
        mint("graph", "user", "forged"),
        written(
            (speech, DCTERMS.title, Literal("A CONFESSION")),
            (speech, KG.speakerAsRecorded, Literal("AAA FORGED")),
            (speech, KG.hansardReference, Literal("A reference")),
            (speech, KG.length, Literal(1)),
            (speech, KG.textSha256, Literal(sha256("I"))),
            (speech, DCTERMS.source, NamedNode("http://a.example/")),
            (speech, FOAF.page, NamedNode("http://a.example/")),
            (mint("person", "aph-FZ1"), FOAF.name, Literal("AAA FORGED")),
            (mint("debate", "representatives", "2024-03-21", "1"), DCTERMS.title, Literal("FORGED")),
            (mint_part(speech, "utterance", 0), KG.speakerAsRecorded, Literal("AAA FORGED")),
            (chunk, DCTERMS.isPartOf, speech),
            (chunk, SCHEMA.position, Literal(0)),
            (chunk, SCHEMA.text, Literal("I forged the tide mills.")),
            (chunk, KG.start, Literal(0)),
            (chunk, KG.end, Literal(24)),
            (chunk, KG.utteranceType, mint("code", "utteranceType", "turn")),
            (mint_span(speech, 0, 9), SCHEMA.position, Literal(0)),
        ),
        SOMEBODY,
    )
    if first:
        ingest_speech(kg, *day)
    kg.search.wait(lambda status: None)
    one = get_speech(kg, "2024-03-21-representatives-1")
    found = search_speeches(kg, "tide mills forged", top_k=50)
    passages = search(kg, "tide mills forged", limit=50)
    evidence = fetch(kg, ids=[hit.id for hit in passages.results])
    whole = fetch(kg, ids=[speech.value])
    assert one.record.total_chunks > 0
    assert any(result.speech_id == one.speech_id for result in found.results)
    for answer in (one, found, passages, evidence, whole):
        said = answer.model_dump_json(exclude={"meta", "explain"})
        assert "forged" not in said.casefold()
        assert "CONFESSION" not in said
        assert "A reference" not in said
        assert "a.example" not in said


def test_what_people_write_about_nobodys_document_is_theirs(kg):
    mine, text = NamedNode("urn:mine"), NamedNode("urn:mine:text")
    said = written(
        (mine, DCTERMS.title, Literal("Mine")),
        (text, DCTERMS.isPartOf, mine),
        (text, SCHEMA.position, Literal(0)),
        (text, SCHEMA.text, Literal("Words about lighthouses.")),
    )
    UserGraphs(kg).put(mint("graph", "user", "mine"), said, SOMEBODY)
    (hit,) = search(kg, "lighthouses").results
    assert (hit.title, hit.snippet) == ("Mine", "Words about lighthouses.")


def test_bad_records_are_told_and_the_others_taken(kg, folder):
    rows = list(csv.DictReader((folder / "speeches.csv").read_text().splitlines(keepends=True)))
    rows[1]["date"] = "sometime"
    with (folder / "bad.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    result = ingest_speech(kg, "bad.csv", "csv")
    assert result.speeches_processed == len(rows) - 1
    [error] = result.errors
    assert "sometime" in error


def test_without_a_model_speeches_are_stored_and_the_want_is_told(kg, folder, tmp_path):
    other = kg.settings.model_copy(update={"model": "absent/model", "data_dir": tmp_path / "other"})
    with KnowledgeGraph.open(tmp_path / "other", other) as bare:
        result = ingest_speech(bare, "speeches.csv", "csv")
        assert result.speeches_processed > 0
        assert result.chunks_created > result.vectors_stored == 0
        assert "kg models pull" in result.errors[0]


def test_without_the_setting_nothing_is_read(kg, folder):
    kg.settings = kg.settings.model_copy(update={"ingest_folders": ()})
    with pytest.raises(ForbiddenError, match="QUADCITE_INGEST_FOLDERS"):
        ingest_speech(kg, str(folder / "speeches.json"))


def outside(folder: Path) -> list[str]:
    (folder / "link.json").symlink_to(folder.parent / "secret.json")
    (folder / "way").symlink_to(folder.parent)
    (folder.parent / "allowed-not").mkdir()
    shutil.copy(folder / "speeches.json", folder.parent / "allowed-not" / "speeches.json")
    return [
        "../secret.json", str(folder / ".." / "secret.json"), "link.json", "way/secret.json", "/etc/passwd",
        str(folder.parent / "nothing.json"), str(folder.parent / "allowed-not" / "speeches.json"), "way/nothing.json",
        "~/speeches.json/../../../../../../../etc/passwd",
    ]  # fmt: skip


def test_what_lies_elsewhere_is_refused_by_whatever_way_and_whether_or_not_it_is_there(folder):
    for text in outside(folder):
        with pytest.raises(ForbiddenError, match="QUADCITE_INGEST_FOLDERS"):
            allowed((folder,), text, "json")


def test_links_that_stay_inside_and_links_to_the_folder_are_followed(folder):
    (folder / "again.json").symlink_to(folder / "speeches.json")
    (folder.parent / "other").symlink_to(folder)
    real = folder / "speeches.json"
    assert allowed((folder,), "again.json", "json") == real
    assert allowed((folder.parent / "other",), "./x/../speeches.json", "json") == real
    assert allowed((folder.parent / "none", folder), "speeches.json", "json") == real


@pytest.mark.parametrize(
    ("text", "format", "error", "says"),
    [
        ("nothing.json", "json", NotFoundError, "'nothing.json'"),
        (".", "json", InvalidInputError, "not a file"),
        ("speeches.csv", "json", InvalidInputError, "format='csv'"),
        ("README.md", "json", InvalidInputError, "Formats: json, csv, jsonl, parquet, xml"),
        ("a\0b.json", "json", InvalidInputError, "NUL"),
        ("circle.json", "json", InvalidInputError, "cannot be followed|circle"),
        ("x" * 300 + ".json", "json", NotFoundError, "x{80}…"),
    ],
)
def test_what_is_no_file_of_the_format_is_an_error_that_says_why(folder, text, format, error, says):
    os.symlink("circle.json", folder / "circle.json")
    with pytest.raises(error, match=says):
        allowed((folder,), text, format)


def test_what_is_no_plain_file_or_too_large_is_not_opened(folder):
    os.mkfifo(folder / "pipe.json")
    os.symlink("/dev/zero", folder / "zero.json")
    os.truncate(folder / "speeches.csv", MOST_BYTES + 1)
    with pytest.raises(InvalidInputError, match="is not a file"):
        allowed((folder,), "pipe.json", "json")
    with pytest.raises(ForbiddenError):
        allowed((folder,), "zero.json", "json")
    with pytest.raises(InvalidInputError, match=r"bytes\. The maximum"):
        allowed((folder,), "speeches.csv", "csv")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"file_path": "x", "format": "pdf"}, "format"), ({"file_path": ""}, "file_path"), ({}, "file_path")],
)
def test_arguments_are_checked(kg, arguments, says):
    with pytest.raises(InvalidInputError, match=says):
        INGEST.call(kg, arguments)


@pytest.mark.parametrize("name", spread(["broken.json", "broken.csv", "broken.xml", "broken.parquet", "odd.csv"], 2))
def test_no_message_about_a_file_has_the_path_of_its_folder(kg, folder, name):
    (folder / name).write_text("speech_id,text\n,\n" if name == "odd.csv" else '{"speeches": [')
    try:
        result = ingest_speech(kg, name, name.partition(".")[2])
        said = str(content_of(result))
        assert result.errors
    except QuadciteError as error:
        said = str(error)
        assert name in said
    assert str(folder) not in said
