"""Speeches in tables: what is read, what is made of rows that belong together, and what is refused, and how."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook
from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.provenance.load_records import name_source
from kg.settings import Settings
from kg.vocabulary import DCTERMS, KG, SCHEMA, mint, sha256
from loaders.hansard.loader import FORMATS, Reading
from loaders.hansard.table_columns import iso_day
from loaders.model import Notice, Rejection, SourceGraph
from loaders.quarantine_retry import retry
from loaders.readers.locations import File, find_files
from loaders.sources import load
from tests.loaders.conftest import content, values

HANSARD = Path(__file__).parent.parent.parent.parent / "fixtures" / "hansard"
SPEECH = {
    "speech_id": "fict-1", "title": "Tides", "speaker": "Marigold Quill", "party": "Greens",
    "chamber": "House of Representatives", "electorate": "Lower Tidewater", "state": "VIC", "date": "2024-10-15",
    "hansard_reference": "House Hansard, 15 Oct 2024, p. 12", "topic_tags": "climate,environment",
    "source_url": "https://hansard.example.org/1", "text": "Mr Speaker, the tide is rising. It is 5 p.m.",
}  # fmt: skip
ROW = {
    "name": "Senator QUILL", "order": 1, "speech_no": 1, "page_no": 7, "time_stamp": "", "name_id": "FQ1",
    "state": "Tasmania", "party": "AG", "in_gov": 0, "first_speech": 0, "body": "A word.", "question": 0, "answer": 0,
    "q_in_writing": 0, "div_flag": 0, "gender": "", "unique_id": "", "interject": 0, "senate_flag": 1,
    "date": "2009-03-04",
}  # fmt: skip


def write_csv(path: Path, rows: Sequence[Mapping[str, object]], **options: Any) -> Path:
    with path.open("w", newline="", encoding=options.pop("encoding", "utf-8")) as stream:
        writer = csv.DictWriter(stream, list(rows[0]), **options)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def files(*paths: Path) -> Sequence[File]:
    return find_files([str(path) for path in paths], Settings(_env_file=None), FORMATS).files  # type: ignore[call-arg]


def read(*paths: Path, **options: str) -> list[SourceGraph | Rejection | Notice]:
    return list(Reading.of(options).read(files(*paths)))


def records(*paths: Path, **options: str) -> list[SourceGraph]:
    found = read(*paths, **options)
    assert not [item.reason for item in found if isinstance(item, Rejection)]
    return [item for item in found if isinstance(item, SourceGraph)]


def refusals(*paths: Path, **options: str) -> list[str]:
    return [item.reason for item in read(*paths, **options) if isinstance(item, Rejection)]


def warnings(*paths: Path, **options: str) -> list[str]:
    return [item.text for item in read(*paths, **options) if isinstance(item, Notice) and item.warning]


def said(record: SourceGraph, predicate: NamedNode, subject: NamedNode | None = None) -> set[str]:
    """What a record says of its speech, or of another of its things."""
    about = subject or record.iri
    quads = ((quad.subject, quad.predicate, quad.object) for quad in record.quads)
    return {o.value for s, p, o in quads if (s, p) == (about, predicate) and isinstance(o, NamedNode | Literal)}


def utterances(record: SourceGraph) -> list[tuple[str, str, str | None]]:
    """Kind, words and name of each utterance, in order."""
    text = whole(record)
    found = []
    for subject in dict.fromkeys(quad.subject for quad in record.quads if "#utterance=" in str(quad.subject)):
        assert isinstance(subject, NamedNode)
        [kind], [start], [end] = (said(record, p, subject) for p in (KG.utteranceType, KG.start, KG.end))
        name = next(iter(said(record, KG.speakerAsRecorded, subject)), None)
        found.append((kind.rpartition("/")[2], text[int(start) : int(end)], name))
    return found


def whole(record: SourceGraph) -> str:
    """The text that the chunks give, which has to be that which was hashed."""
    [length] = said(record, KG.length)
    text = [""] * int(length)
    for unit in record.units:
        offsets = dict(unit.properties)
        start, end = int(offsets[KG.start].value), int(offsets[KG.end].value)
        text[start:end] = unit.text
    assert said(record, KG.textSha256) == {sha256("".join(text))}
    return "".join(text)


# One speech a row


def as_parquet(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    source = write_json(path.with_suffix(".rows.json"), list(rows))
    duckdb.execute(f"COPY (SELECT * FROM read_json('{source}')) TO '{path}' (FORMAT parquet)")  # noqa: S608
    return path


def write_xlsx(path: Path, row: Mapping[str, object]) -> Path:
    book = Workbook()
    assert book.active is not None
    for cells in (list(row), list(row.values())):
        book.active.append(cells)
    book.save(path)
    return path


LISTED = {**SPEECH, "topic_tags": ["climate", "environment"]}
FORMS: dict[str, Callable[[Path], Path]] = {
    "csv": lambda folder: write_csv(folder / "s.csv", [SPEECH]),
    "semicolons": lambda folder: write_csv(folder / "s.csv", [SPEECH], delimiter=";"),
    "utf-16": lambda folder: write_csv(folder / "s.csv", [SPEECH], encoding="utf-16"),
    "wrapped": lambda folder: write_json(folder / "s.json", {"speeches": [LISTED]}),
    "list": lambda folder: write_json(folder / "s.json", [LISTED]),
    "jsonl": lambda folder: write_json(folder / "s.jsonl", SPEECH),
    "parquet": lambda folder: as_parquet(folder / "s.parquet", [LISTED]),
    "xlsx": lambda folder: write_xlsx(folder / "s.xlsx", {**SPEECH, "date": datetime(2024, 10, 15)}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_speech_is_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    [record] = records(FORMS[form](tmp_path))
    assert record.iri == mint("speech", "fict-1")
    assert record.key == ("speech", "fict-1")
    assert whole(record) == SPEECH["text"]
    expected = {
        DCTERMS.identifier: {"fict-1"}, DCTERMS.title: {"Tides"}, DCTERMS.date: {"2024-10-15"},
        DCTERMS.subject: {"climate", "environment"}, DCTERMS.source: {SPEECH["source_url"]},
        KG.speakerAsRecorded: {"Marigold Quill"}, KG.party: {mint("party", "greens").value},
        KG.partyAsRecorded: {"Greens"}, KG.chamber: {mint("chamber", "au-representatives").value},
        KG.electorate: {mint("electorate", "au", "lower-tidewater").value}, KG.state: {mint("place", "AU-VIC").value},
        KG.hansardReference: {SPEECH["hansard_reference"]},
        KG.transcriptQuality: set(),
        KG.speechType: {mint("code", "speechType", "speech").value},
        KG.stateAsRecorded: set(), KG.chamberAsRecorded: set(), SCHEMA.position: set(),
    }  # fmt: skip
    assert {predicate: said(record, predicate) for predicate in expected} == expected
    [person] = said(record, KG.speaker)
    assert person.startswith(mint("person", "name-marigold-quill-").value)
    digests = {each(tmp_path).suffix: records(each(tmp_path))[0].source_sha256 for each in FORMS.values()}
    assert set(digests.values()) == {record.source_sha256}


@pytest.mark.parametrize("stated", ["verbatim", " Edited ", "summary"])
def test_quality_of_a_transcript_is_asserted_where_the_source_states_it(stated: str, tmp_path: Path) -> None:
    [record] = records(write_csv(tmp_path / "s.csv", [{**SPEECH, "transcript_quality": stated}]))
    code = mint("code", "transcriptQuality", stated.strip().casefold())
    assert said(record, KG.transcriptQuality) == {code.value}


def test_names_of_columns_may_differ_in_case_and_punctuation(tmp_path: Path) -> None:
    odd = {name.replace("_", ".").title(): value for name, value in SPEECH.items()}
    [record] = records(write_csv(tmp_path / "odd.csv", [odd]))
    assert record.source_sha256 == records(write_csv(tmp_path / "s.csv", [SPEECH]))[0].source_sha256


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": " "}, "row 1 lacks text"),
        ({"speaker": ""}, "row 1 lacks speaker"),
        ({"date": "", "chamber": ""}, "row 1 lacks date, chamber. Give --date and --chamber"),
        ({"date": "15/10/2024"}, "the date '15/10/2024' is not an ISO 8601 date, such as 2024-10-15"),
        ({"date": "2024-10"}, "is not an ISO 8601 date"),
        ({"date": "2024-02-30"}, "is not an ISO 8601 date"),
        ({"date": "20241015"}, "is not an ISO 8601 date"),
        ({"chamber": "Lords"}, "unknown chamber 'Lords'. Available: 'House of Representatives', 'Senate'."),
        ({"chamber": "x" * 10**6}, "(1,000,000 characters)"),
        ({"speaker": "[1, 2]"}, "row 1 has a list or an object in 'speaker'. Text is expected."),
        ({"title": '{"a": []}'}, "row 1 has a list or an object in 'title'"),
        ({"transcript_quality": "rough"}, "unknown transcript quality 'rough'. Available: verbatim, edited, summary"),
    ],
)
def test_a_bad_speech_is_refused_and_the_others_are_read(change: dict[str, str], reason: str, tmp_path: Path) -> None:
    base = {**SPEECH, "transcript_quality": ""}
    path = write_csv(tmp_path / "s.csv", [{**base, **change}, {**base, "speech_id": "fict-2"}])
    found = read(path)
    assert [item.key for item in found if isinstance(item, SourceGraph)] == [("speech", "fict-2")]
    [rejection] = [item for item in found if isinstance(item, Rejection)]
    assert reason in rejection.reason
    assert rejection.record == "fict-1"
    assert rejection.key == ("speech", "fict-1")
    assert rejection.rows == [1]


def test_a_day_that_has_begun_nowhere_is_refused() -> None:
    now = datetime.now(UTC)
    assert iso_day(now.date().isoformat()) == now.date()
    later = (now + timedelta(days=2)).date().isoformat()
    with pytest.raises(RecordError, match=f"the date {later} is in the future"):
        iso_day(later)


@given(st.dates(max_value=date(2024, 1, 1)))
def test_a_day_is_read_as_it_is_written(day: date) -> None:
    assert iso_day(day.isoformat()) == iso_day(f"{day.isoformat()}T14:32:00+10:00") == day


@given(st.text(max_size=12))
def test_what_is_no_date_is_refused_in_words(text: str) -> None:
    with pytest.raises(RecordError, match="date"):
        iso_day(f"on {text}")


def test_options_say_what_a_file_lacks_and_no_more(tmp_path: Path) -> None:
    bare = {name: value for name, value in SPEECH.items() if name not in ("date", "chamber", "speech_id")}
    [record] = records(write_csv(tmp_path / "s.csv", [bare]), chamber="Senate", date="2020-02-03")
    assert said(record, DCTERMS.date) == {"2020-02-03"}
    assert said(record, KG.chamber) == {mint("chamber", "au-senate").value}
    [full] = records(write_csv(tmp_path / "t.csv", [SPEECH]), chamber="Senate", date="2020-02-03")
    assert said(full, DCTERMS.date) == {"2024-10-15"}
    assert said(full, KG.chamber) == {mint("chamber", "au-representatives").value}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"chamber": "Lords"}, "--chamber: unknown chamber 'Lords'. Available: 'House of Representatives', 'Senate'."),
        ({"date": "tomorrow"}, "--date: the date 'tomorrow' is not an ISO 8601 date"),
        ({"date": "2999-01-01"}, "--date: the date 2999-01-01 is in the future"),
    ],
)
def test_an_option_that_says_nothing_is_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Reading.of(options)
    assert reason in str(caught.value)


def test_a_file_name_counts_as_a_date_only_where_it_is_nothing_else(tmp_path: Path) -> None:
    bare = {name: value for name, value in SPEECH.items() if name != "date"}
    dated = write_csv(tmp_path / "2021-05-06.csv", [bare])
    [record] = records(dated)
    assert said(record, DCTERMS.date) == {"2021-05-06"}
    assert any("rows without a date have the date 2021-05-06 of the file name" in each for each in warnings(dated))
    assert "--date" in refusals(write_csv(tmp_path / "hansard-2021-05-06.csv", [bare]))[0]
    assert not any("2021" in each for each in warnings(write_csv(tmp_path / "2021-05-07.csv", [SPEECH])))


def test_what_is_recommended_and_missing_is_a_warning(tmp_path: Path) -> None:
    bare = {name: SPEECH[name] for name in ("text", "speaker", "date", "chamber")}
    [record] = records(path := write_csv(tmp_path / "s.csv", [bare]), jurisdiction="AUS")
    assert said(record, DCTERMS.title) == set()
    assert said(record, KG.hansardReference) == set()
    told = "\n".join(warnings(path, jurisdiction="AUS"))
    assert "no title in 1 of 1 speeches" in told
    assert "no hansard_reference in 1 of 1 speeches" in told


def test_speeches_without_an_id_get_one_from_what_they_are(tmp_path: Path) -> None:
    bare = {name: value for name, value in SPEECH.items() if name != "speech_id"}
    path = write_csv(tmp_path / "s.csv", [bare, {**bare, "text": "Another."}, {**bare, "date": "2024-10-16"}])
    ids = [record.key[1] for record in records(path)]
    assert len(set(ids)) == 3
    assert all(len(each) == 24 for each in ids)
    assert ids[0] == records(write_csv(tmp_path / "again.csv", [{**bare, "title": "Another title"}]))[0].key[1]


def test_a_speech_of_two_hundred_thousand_words_is_read_whole(tmp_path: Path) -> None:
    text = "The tide comes in and the tide goes out again. " * 20_000
    [record] = records(write_json(tmp_path / "s.json", [{**SPEECH, "text": text}]))
    assert len(text.split()) == 200_000
    assert whole(record) == text
    assert len(record.units) > 1_000


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("s.csv", b"speech_id#speaker#text\n1#a#b\n", "missing column 'text' or 'body' and 'speaker' or 'name'"),
        ("s.csv", b"speech_id#speaker#text\n1#a#b\n", "The file has one column"),
        ("s.csv", b"speaker,words\na,b\n", "missing column 'text' or 'body'. Available: 'speaker', 'words'"),
        ("s.csv", b"speaker,text\n\x81\x8d,\x90\n", "not CSV in UTF-8 or Windows-1252"),
        ("s.csv", b"", "the file is empty"),
        ("s.json", b"", "the file is empty"),
        ("s.json", b"{'speeches': []}", "not JSON"),
        ("s.json", b'{"records": []}', "the JSON is an object with 'records'; an array is expected"),
        ("s.json", b'{"speeches": {}}', "the JSON is an object whose 'speeches' is not an array; an array is expected"),
        ("s.json", b'"speech"', "the JSON is no array"),
        ("s.json", b"[]", "contains no object"),
        ("s.json", b'["\xff"]', "not UTF-8"),
        ("s.jsonl", b"no JSON\n", "none of the first lines is a JSON object"),
        ("s.parquet", b"PAR1", "not a complete Parquet file"),
        (
            "s.csv",
            "name,body\nA,b\n".encode("utf-16-le"),
            "NUL characters; valid: UTF-8, or UTF-16 with its byte order",
        ),
        ("s.csv", "name,body\nA,b\n".encode("utf-32-le"), "NUL characters"),
        ("s.csv", b"<!DOCTYPE html>\n<html><body>404</body></html>", "Available: '<!DOCTYPE html>'"),
    ],
)
def test_a_file_that_is_no_table_of_speeches_says_what_was_seen(
    name: str, data: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    found = refusals(tmp_path / name)
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize("said", ["a\nb", "a\x00b", "\u202ea", "a\u2028b", "x" * 501, '{"a": 1}', "[1]"])
def test_an_id_that_nobody_can_write_is_refused_in_few_words(said: str, tmp_path: Path) -> None:
    found = read(write_json(tmp_path / "s.json", [{**SPEECH, "speech_id": said}, SPEECH]))
    assert [item.key for item in found if isinstance(item, SourceGraph)] == [("speech", "fict-1")]
    [rejection] = [item for item in found if isinstance(item, Rejection)]
    assert len(rejection.reason) < 200
    assert rejection.key is None


def test_an_address_that_no_iri_can_be_is_left_out_and_told(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "s.csv", [{**SPEECH, "source_url": "http://["}])
    [record] = records(path)
    assert said(record, DCTERMS.source) == set()
    assert record.warnings == ["speech fict-1: the source 'http://[' is not a web address"]


def test_a_table_without_rows_is_told(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("name,body\n")
    assert any("the file contains no speeches" in each for each in refusals(tmp_path / "s.csv", jurisdiction="AUS"))


ELSEWHERE = {"speech_id": "n1", "date": "2019-03-12", "speaker": "Jo Kelp", "party": "Labour", "chamber": "Senate",
             "electorate": "Perth", "text": "The tide turns."}  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "options", "place"),
    [
        ({}, {}, None),
        ({"state": "NSW"}, {}, None),
        ({"state": "Otago", "hansard_reference": "Hansard, p. 1"}, {}, None),
        ({"country": "Atlantis"}, {"jurisdiction": "AUS"}, "AUS"),
        ({"country": ""}, {}, None),
        ({"iso3country": "NZL"}, {}, "NZL"),
        ({"country": "Ireland"}, {"jurisdiction": "AUS"}, "IRL"),
        ({"jurisdiction": "GB-SCT"}, {}, "GB-SCT"),
        ({"parliament": "NZ-House of Representatives"}, {}, "NZL"),
        ({}, {"jurisdiction": "New Zealand"}, "NZL"),
        ({"country": "NZL", "state": "NSW", "hansard_reference": "Hansard, p. 1"}, {}, "NZL"),
        ({"state": "NSW", "hansard_reference": "Hansard, p. 1"}, {}, "AUS"),
        ({"state": "", "hansard_reference": "Hansard, p. 1"}, {}, "AUS"),
        ({}, {"jurisdiction": "AUS"}, "AUS"),
    ],
)
def test_a_table_names_its_parliament(tmp_path, columns, options, place):
    path = write_csv(tmp_path / "s.csv", [{**ELSEWHERE, **columns}])
    if place is None:
        assert all("option jurisdiction" in reason for reason in refusals(path, **options))
        assert len(refusals(path, **options)) == 1
        return
    [record] = records(path, **options)
    everything = str([*record.quads, *record.shared.values()])
    assert said(record, KG.jurisdiction) == {mint("place", place).value}
    assert said(record, KG.partyAsRecorded) == {"Labour"}
    assert ("/au" in everything or "AUS" in everything or "aph-" in everything) == (place == "AUS")
    assert bool(said(record, KG.party)) == (place == "AUS")


def test_an_identifier_counts_where_the_surname_agrees(tmp_path):
    head = {"name": "Ms QUILL", "body": "Aye.", "name_id": "ZQ1", "senate_flag": "0", "date": "1999-02-03"}
    rows = [{**head, "order": str(number), "speech_no": str(number)} for number in range(1, 4)]
    rows.append({**rows[0], "order": "4", "speech_no": "4", "name": "Mr Kelp"})
    found = records(path := write_csv(tmp_path / "s.csv", rows))
    assert [bool(said(each, KG.speaker)) for each in found] == [True, True, True, False]
    assert said(found[3], KG.speakerAsRecorded) == {"Mr Kelp"}
    assert any("ZQ1 'Mr Kelp' (1)" in each for each in warnings(path))


def test_windows_text_is_read_and_told(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "s.csv", [{**SPEECH, "text": "“Café”"}], encoding="cp1252")
    [record] = records(path)
    assert whole(record) == "“Café”"
    assert any("read as Windows-1252" in each for each in warnings(path))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=2_000).filter(str.strip))
def test_any_text_comes_back_to_the_last_character(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        [record] = records(write_json(Path(folder) / "s.json", [{**SPEECH, "text": text}]))
    assert whole(record) == text


def test_bad_values_in_a_list_are_refused_one_by_one(tmp_path: Path) -> None:
    path = write_json(tmp_path / "s.json", [7, {**SPEECH, "text": 8}, {**SPEECH, "text": "\ud800"}, SPEECH])
    assert len(refusals(path)) == 3
    assert "is not a JSON object" in refusals(path)[0]
    assert "text is expected" in refusals(path)[1]
    assert "U+D800" in refusals(path)[2]


# Rows of one turn


def turns(tmp_path: Path, *rows: dict[str, object]) -> list[SourceGraph]:
    numbered = [{**ROW, "order": number, **row} for number, row in enumerate(rows, 1)]
    return records(write_csv(tmp_path / "rows.csv", numbered))


def test_rows_of_one_number_are_one_turn_with_its_interjections(tmp_path: Path) -> None:
    [record, other] = turns(
        tmp_path,
        {"body": "I begin.", "page_no": "7.0"},
        {"body": "Nonsense!", "name": "Senator FEIGN", "name_id": "FQ2", "interject": 1},
        {"body": "I go on.", "name": "Senator Quill", "page_no": "8.0"},
        {"body": "Order!", "name": "The PRESIDENT", "name_id": "10000"},
        {"body": "I end.", "interject": 1},
        {"body": "Next.", "speech_no": 2, "name": "Senator FEIGN", "name_id": "FQ2"},
    )
    assert whole(record) == "I begin.\nNonsense!\nI go on.\nOrder!\nI end."
    assert utterances(record) == [
        ("turn", "I begin.\n", "Senator QUILL"),
        ("interjection", "Nonsense!\n", "Senator FEIGN"),
        ("continuation", "I go on.\n", "Senator Quill"),
        ("interjection", "Order!\n", "The PRESIDENT"),
        ("continuation", "I end.", "Senator QUILL"),
    ]
    assert [unit.text for unit in record.units] == [text for _, text, _ in utterances(record)]
    assert record.origins[0].rows == [1, 2, 3, 4, 5]
    assert said(record, SCHEMA.position) == {"1"}
    assert said(record, KG.pageNumber) == {"7"}
    assert said(record, KG.speaker) == {mint("person", "aph-FQ1").value}
    assert (whole(other), utterances(other)) == ("Next.", [])


def test_the_chair_is_an_office_and_nobody(tmp_path: Path) -> None:
    [record] = turns(tmp_path, {"name": "The PRESIDENT", "name_id": "10000", "party": "", "state": ""})
    assert said(record, KG.speaker) == set()
    assert said(record, KG.office) == {mint("code", "office", "chair").value}
    assert said(record, KG.speakerAsRecorded) == {"The PRESIDENT"}
    assert not any("person" in graph.value for graph in record.shared)


def test_a_third_person_or_another_kind_begins_a_turn(tmp_path: Path) -> None:
    found = turns(
        tmp_path,
        {"question": 1, "body": "Why?"},
        {"answer": 1, "body": "Because.", "name": "Senator FEIGN", "name_id": "FQ2"},
        {"answer": 1, "q_in_writing": 1, "body": "In writing.", "speech_no": 2},
        {"body": "A new number.", "speech_no": 3},
        {"body": "No number.", "speech_no": ""},
        {"body": "No number either.", "speech_no": ""},
    )
    assert [next(iter(said(each, KG.speechType))).rpartition("/")[2] for each in found] == [
        "question", "answer", "writtenAnswer", "speech", "speech", "speech",
    ]  # fmt: skip


def test_rows_that_nobody_spoke_are_told_and_do_not_end_a_turn(tmp_path: Path) -> None:
    rows: Sequence[dict[str, object]] = [
        {"name": "business start", "body": "", "speech_no": 1, "name_id": ""},
        {"body": "I begin.", "speech_no": 2},
        {"name": "stage direction", "body": "Quorum formed.", "speech_no": "", "name_id": ""},
        {"body": "I go on.", "speech_no": 2},
    ]
    [record] = turns(tmp_path, *rows)
    assert whole(record) == "I begin.\nI go on."
    told = "\n".join(warnings(tmp_path / "rows.csv"))
    assert "rows of procedure ('business start'), not loaded as speeches: 1" in told
    assert "rows of procedure ('stage direction'), not loaded as speeches: 3" in told
    assert "unknown columns, skipped: 'gender', 'unique_id'" in told


def test_a_flag_that_contradicts_the_names_is_not_relied_on(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "s.csv", [{**ROW, "senate_flag": 0}])
    assert "lacks chamber. Give --chamber" in refusals(path)[0]
    assert any("senate_flag is 0" in each for each in warnings(path))
    [record] = records(path, chamber="Senate")
    assert said(record, KG.chamber) == {mint("chamber", "au-senate").value}
    [member] = records(write_csv(tmp_path / "t.csv", [{**ROW, "name": "Ms QUILL", "senate_flag": 0}]))
    assert said(member, KG.chamber) == {mint("chamber", "au-representatives").value}


def test_what_cannot_be_read_of_less_weight_is_left_out_and_told(tmp_path: Path) -> None:
    [record] = records(
        write_csv(tmp_path / "s.csv", [{**ROW, "time_stamp": "noon", "in_gov": "maybe", "party": "XYZ"}])
    )
    assert said(record, KG.inGovernment) == said(record, SCHEMA.startTime) == said(record, KG.party) == set()
    assert said(record, KG.partyAsRecorded) == {"XYZ"}
    told = "\n".join(record.warnings)
    assert "time_stamp 'noon'" in told
    assert "in_gov 'maybe'" in told
    assert "party 'XYZ'" in told


# In the graph


def test_the_same_again_is_passed_over_and_a_change_in_its_place_replaces(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "s.csv", [SPEECH, SPEECH])
    copy = write_json(tmp_path / "copy.json", [SPEECH])
    report = load(kg, "hansard", [str(path), str(copy)])
    assert (report.loaded, report.skipped, report.rejected) == (1, 2, 0)
    assert load(kg, "hansard", [str(copy)]).skipped == 1
    write_csv(path, [{**SPEECH, "text": "Other words."}])
    report = load(kg, "hansard", [str(path)])
    assert (report.loaded, report.rejected) == (1, 0)
    assert values(kg.store, mint("speech", "fict-1"), KG.length) == {"12"}


def test_other_words_under_the_same_id_from_elsewhere_are_rejected_with_both_sources(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "s.csv", [SPEECH])
    other = write_csv(tmp_path / "other.csv", [{**SPEECH, "text": "Other words."}])
    load(kg, "hansard", [str(path)])
    before = content(kg.store)  # type: ignore[arg-type]
    [rejection] = load(kg, "hansard", [str(other)]).rejections
    assert name_source(str(path)) in rejection.reason
    assert rejection.source == str(other)
    assert content(kg.store) == before  # type: ignore[arg-type]
    [rejection] = load(kg, "hansard", [str(path), str(other)]).rejections
    assert str(path) in rejection.reason


@pytest.mark.parametrize("together", [True, False])
def test_a_speech_is_never_in_two_records(together: bool, kg: KnowledgeGraph, tmp_path: Path) -> None:
    """Whoever gives a speech of a table the id of one in an official file is told."""
    day = HANSARD / "house-2024-03-21.xml"
    path = write_csv(tmp_path / "s.csv", [{**SPEECH, "speech_id": "2024-03-21-representatives-1"}])
    if not together:
        load(kg, "hansard", [str(day)])
    [rejection] = load(kg, "hansard", [str(day), str(path)]).rejections
    assert rejection.source == str(path)
    assert name_source(str(day)) in rejection.reason
    assert mint("graph", "src", "hansard", "representatives", "2024-03-21").value in rejection.reason


def test_two_records_of_one_id_in_one_load_are_never_merged(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "s.csv", [SPEECH, {**SPEECH, "text": "Other words."}])
    report = load(kg, "hansard", [str(path)])
    assert (report.loaded, report.rejected) == (1, 1)
    assert f"row 2 of {path}" in report.rejections[0].reason
    assert f"row 1 of {path}" in report.rejections[0].reason


def test_a_chunk_is_explained_by_the_row_that_it_was_read_from(kg: KnowledgeGraph, tmp_path: Path) -> None:
    rows = [{**ROW, "order": 20 + n, "body": f"Words {n}.", "interject": n % 2} for n in range(4)]
    path = write_csv(tmp_path / "s.csv", [{**ROW, "speech_no": 0}, *rows])
    load(kg, "hansard", [str(path)])
    rows = {}
    for quad in content(kg.store):  # type: ignore[arg-type]
        if quad.predicate == SCHEMA.text and isinstance(quad.object, Literal) and quad.object.value.startswith("Words"):
            assert isinstance(quad.subject, NamedNode)
            [explanation] = explain_iri(kg.store.query, quad.subject)
            rows[quad.object.value.strip()] = explanation.sources[0].row
    assert rows == {f"Words {n}.": n + 2 for n in range(4)}


def test_a_rejected_speech_is_kept_and_tried_again_with_its_options(kg: KnowledgeGraph, tmp_path: Path) -> None:
    bare = {name: value for name, value in SPEECH.items() if name not in ("date", "chamber")}
    path = write_json(tmp_path / "s.json", {"speeches": [{**bare, "transcript_quality": "rough"}, 5]})
    report = load(kg, "hansard", [str(path)], chamber="Senate", date="2020-01-02")
    assert report.rejected == 2
    done = retry(kg, None)
    assert [each["outcome"] for each in done["records"]] == ["quarantined", "quarantined"]
    assert any("rough" in each["reason"] for each in done["records"])
    assert not any("lacks" in each["reason"] for each in done["records"])


def real_tables(folder: Path) -> Iterator[Path]:
    yield from sorted((folder / "data" / "hansard" / "csv").iterdir())


def test_the_real_tables_keep_every_word_that_was_spoken(shared: Path) -> None:
    for path in real_tables(shared):
        found = records(path, chamber="Senate")
        rows = duckdb.sql(f"SELECT name, body FROM read_parquet('{path.with_suffix('.parquet')}')").fetchall()  # noqa: S608
        spoken = [body for name, body in rows if name not in ("business start", "stage direction")]
        told = sum(len(utterances(record)) or 1 for record in found)
        assert told == len(spoken)
        if path.suffix == ".parquet":
            assert "\n".join(whole(record) for record in found) == "\n".join(spoken)


def test_a_source_that_cannot_be_opened_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    write_csv(tmp_path / "b.csv", [SPEECH])
    found = read(tmp_path / "a.json", tmp_path / "b.csv")
    assert [type(item).__name__ for item in found if not isinstance(item, Notice)] == ["Rejection", "SourceGraph"]
    with pytest.raises(SourceError):
        files(tmp_path / "none.csv")
