"""Records in quarantine: what is kept of each, and how they come out of it."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from pyoxigraph import Quad

from kg.errors import InvalidInputError, NotFoundError, SourceError, StoreError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.provenance.load_records import name_source
from kg.vocabulary import ELI, KG, PROV, PROV_GRAPH, mint
from loaders import pipeline
from loaders.quarantine import Entry, Quarantine, resolve_ids, short_ids
from loaders.quarantine_retry import drop, map_record, retry
from loaders.readers import excerpts
from loaders.readers.locations import file_sha256
from loaders.sources import load
from tests.examples import dear
from tests.loaders.conftest import content, values
from tests.loaders.test_pipeline import rows, write

ROOT = Path(__file__).parent.parent.parent
CLIMATE = ROOT / "fixtures" / "climate"
MALFORMED = ROOT / "fixtures" / "malformed" / "climate"


def held(kg: KnowledgeGraph) -> list[Entry]:
    entries, damaged = Quarantine(kg.settings.directory.quarantine).entries()
    assert damaged == {}
    return entries


def quarantine(kg: KnowledgeGraph) -> Quarantine:
    return Quarantine(kg.settings.directory.quarantine)


@contextmanager
def spoiled(*slugs: str) -> Iterator[None]:
    """For the block, the mapping of these documents breaks their shapes: stands for a loader with a fault."""
    real = pipeline.to_quads

    def quads(document: Any) -> list[Quad]:
        made = real(document)
        if document.key[0] in slugs:
            made.append(Quad(document.iri, KG.blockType, mint("code", "nothing", "such"), made[0].graph_name))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "to_quads", quads)
        yield


@pytest.fixture
def bad(kg: KnowledgeGraph, tmp_path: Path) -> Path:
    """A file whose second record the gate has kept out, by a fault of the loader that is mended since."""
    path = write(tmp_path / "t.jsonl", rows("good", ["one"]), rows("bad", ["two", "", "three"]))
    with spoiled("bad"):
        assert load(kg, "climate", [str(path)]).rejected == 1
    return path


def snapshots(kg: KnowledgeGraph) -> dict[str, dict[str, str]]:
    """What graph/prov says of each snapshot, by its hash."""
    found: dict[str, dict[str, str]] = {}
    for quad in kg.store.graph(PROV_GRAPH):
        if "/snapshot/" in quad.subject.value:  # type: ignore[union-attr]
            name = quad.subject.value.rpartition("sha256-")[2]  # type: ignore[union-attr]
            found.setdefault(name, {})[quad.predicate.value] = quad.object.value  # type: ignore[union-attr]
    return found


def test_a_record_is_kept_with_its_rows_its_report_and_where_it_stands(kg: KnowledgeGraph, bad: Path) -> None:
    [entry] = held(kg)
    [place] = entry.places
    assert (entry.record, entry.violations) == ("bad", len(entry.results))
    assert (place.file, place.sha256, place.rows, place.excerpt_rows) == (str(bad), file_sha256(bad), "2,4", "2-4")
    assert entry.reason.split("; ")[0] in entry.report
    assert "sh:ValidationReport" in (quarantine(kg).report_turtle(entry) or "")
    [file] = quarantine(kg).files(entry)
    shown = dict(excerpts.rows_in(file.path, file.rows or ()))
    assert [shown[row]["text"] for row in (2, 3, 4)] == ["two", "", "three"]  # type: ignore[index]
    assert mint("document", "bad") in {quad.subject for quad in map_record(quarantine(kg), entry)}


@pytest.mark.parametrize("step", ["commit_batch", "refresh_citations"])
def test_a_record_keeps_its_rows_if_the_load_fails(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(pipeline.Loading, step, fail)
    path = write(tmp_path / "t.jsonl", rows("good", ["one"]), rows("bad", ["two"]))
    with spoiled("bad"), pytest.raises(StoreError, match="disk is full"):
        load(kg, "climate", [str(path)])
    path.unlink()
    [entry] = held(kg)
    [file] = quarantine(kg).files(entry)
    assert dict(excerpts.rows_in(file.path, file.rows or ()))[2]["text"] == "two"  # type: ignore[index]


def test_rows_that_cannot_be_read_or_copied_cost_no_other_file_its_rows(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {"a.jsonl": errno.EACCES, "b.jsonl": errno.ENOSPC}
    for number, name in enumerate((*errors, "c.jsonl")):
        write(tmp_path / name, rows(f"bad-{number}", ["two"]))
    real = excerpts._cut

    def cut(path: Path, wanted: Any) -> None:
        if (code := errors.get(path.name)) is not None:
            raise OSError(code, "Cannot", str(path) if code == errno.EACCES else None)
        real(path, wanted)

    monkeypatch.setattr(excerpts, "_cut", cut)
    with spoiled("bad-0", "bad-1", "bad-2"):
        report = load(kg, "climate", [str(tmp_path)])
    causes = [warning for warning in report.warnings if warning.startswith("Cannot copy the rows")]
    assert [("a.jsonl: cannot be read" in each, "Cannot write to" in each) for each in causes] == [
        (True, False),
        (False, True),
    ]
    kept = {entry.record: entry.places[0].excerpt_sha256 is not None for entry in held(kg)}
    assert kept == {"bad-0": False, "bad-1": False, "bad-2": True}


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "pipe"])
def test_a_file_that_is_gone_costs_no_other_file_its_rows(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    is_pipe = ending == "pipe"
    ending = "jsonl" if is_pipe else ending
    lost = tmp_path / f"bad-1.{ending}"
    for number in (1, 2):
        made = write(tmp_path / f"bad-{number}.jsonl", rows(f"bad-{number}", ["two"]))
        if number == 1 and ending != "jsonl":
            table = pa.Table.from_pylist([json.loads(line) for line in made.read_text("utf-8").splitlines()])
            pq.write_table(table, lost) if ending == "parquet" else pacsv.write_csv(table, lost)
            made.unlink()
    keep_rows = Quarantine.keep_rows

    def vanish(self: Quarantine, paths: Any) -> list[str]:
        lost.unlink()
        if is_pipe:
            os.mkfifo(lost)
        return keep_rows(self, paths)

    monkeypatch.setattr(Quarantine, "keep_rows", vanish)
    with spoiled("bad-1", "bad-2"):
        report = load(kg, "climate", [str(tmp_path)])
    assert report.rejected == 2
    assert [lost.name in warning for warning in report.warnings].count(True) == 1
    kept = {entry.record: [place.excerpt_sha256 is not None for place in entry.places] for entry in held(kg)}
    assert kept == {"bad-1": [False], "bad-2": [True]}
    assert not list(quarantine(kg).folder.glob("*.partial"))


def test_once_the_loader_is_mended_a_retry_is_as_good_as_a_load(
    kg: KnowledgeGraph, bad: Path, open_graph: Callable[..., KnowledgeGraph]
) -> None:
    done = retry(kg, None)
    assert (done["loaded"], done["quarantined"], held(kg)) == (1, 0, [])
    assert list(quarantine(kg).folder.iterdir()) == []
    other = open_graph("other")
    load(other, "climate", [str(bad)])
    assert content(kg.store) == content(other.store)
    again = load(kg, "climate", [str(bad)])
    assert (again.loaded, again.skipped) == (0, 2)
    [explanation] = explain_iri(kg.store.query, mint("passage", "bad", "2"))
    [source] = explanation.sources
    assert (source.locations, source.sha256, source.row) == ((name_source(str(bad)),), file_sha256(bad), 4)


def test_what_is_still_wrong_stays_with_a_renewed_report(kg: KnowledgeGraph, bad: Path) -> None:
    [before] = held(kg)
    with spoiled("bad"):
        done = retry(kg, [before.name])
    [after] = held(kg)
    assert done["records"][0]["reason"] == after.reason
    assert (after.name, after.places, after.violations) == (before.name, before.places, before.violations)
    assert after.run != before.run
    assert retry(kg, None)["loaded"] == 1


@pytest.mark.parametrize("gone", [True, False])
def test_a_source_that_has_changed_since_keeps_its_place_in_time(kg: KnowledgeGraph, bad: Path, gone: bool) -> None:
    old = file_sha256(bad)
    if gone:
        bad.unlink()
    else:
        write(bad, rows("good", ["one more"]))
        load(kg, "climate", [str(bad)])
        new = file_sha256(bad)
    assert retry(kg, None)["loaded"] == 1
    said = snapshots(kg)
    assert said[old][KG.location.value] == name_source(str(bad))
    if not gone:
        assert PROV.invalidatedAtTime.value not in said[new]
    [explanation] = explain_iri(kg.store.query, mint("document", "bad"))
    assert [(source.sha256, source.rows) for source in explanation.sources] == [(old, "2,4")]


def test_what_was_read_before_newer_bytes_is_superseded_from_then_on(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("bad", ["one"]))
    with spoiled("bad"):
        load(kg, "climate", [str(path)])
    [entry] = held(kg)
    folder = quarantine(kg).folder
    description = json.loads((folder / f"{entry.name}.json").read_text())
    description["places"][0]["read_at"] = "2020-02-03T04:05:06+00:00"
    (folder / f"{entry.name}.json").write_text(json.dumps(description))
    old = file_sha256(path)
    write(path, rows("good", ["two"]))
    load(kg, "climate", [str(path)])
    newer = snapshots(kg)[file_sha256(path)]
    assert retry(kg, None)["loaded"] == 1
    assert snapshots(kg)[old][KG.retrievedAt.value] == "2020-02-03T04:05:06Z"
    assert snapshots(kg)[old][PROV.invalidatedAtTime.value] == newer[KG.retrievedAt.value]
    assert snapshots(kg)[file_sha256(path)] == newer


def test_a_correction_is_its_own_source_and_says_who_gave_it(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl", rows("other", ["x"]), rows("plan", ["one", "two"], family_slug="", family_name="")
    )
    load(kg, "climate", [str(path)])
    [entry] = held(kg)
    corrected = write(tmp_path / "corrected.jsonl", rows("plan", ["one", "two"], family_slug="f", family_name="F"))
    done = retry(kg, [entry.name], correction=str(corrected), by="Ada")
    assert (done["loaded"], held(kg)) == (1, [])
    [explanation] = explain_iri(kg.store.query, mint("passage", "plan", "1"))
    [source] = explanation.sources
    assert (source.sha256, source.row, source.sent_by) == (file_sha256(corrected), 2, "Ada")
    assert source.locations == (f"{name_source(str(corrected))}, a correction of {name_source(str(path))} rows 2-3",)
    assert file_sha256(path) in explanation.configuration["corrects"]
    assert values(kg.store, mint("document", "plan"), ELI.is_member_of) == {mint("family", "f").value}

    # With the last graph that came from it, its sender goes.
    load(kg, "climate", [str(write(path, rows("plan", ["three"], family_slug="f", family_name="G")))])
    assert "Ada" not in {quad.object.value for quad in kg.store.graph(PROV_GRAPH)}  # type: ignore[union-attr]


def test_a_correction_that_is_wrong_leaves_the_record_as_it_is(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("plan", ["one"], family_slug="", family_name=""), rows("other", ["x"]))
    load(kg, "climate", [str(path)])
    [entry] = held(kg)
    before = content(kg.store)
    wrong = write(tmp_path / "wrong.jsonl", rows("plan", ["one"], page_number="two"))
    done = retry(kg, [entry.name], correction=str(wrong), by="Ada")
    assert "page number" in done["records"][0]["reason"]
    for name, records, message in (
        ("other", [rows("other", ["y"])], "does not correct plan"),
        ("several", [rows("plan", ["a"]), rows("more", ["b"])], "has 2"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            retry(kg, [entry.name], correction=str(write(tmp_path / f"{name}.jsonl", *records)), by="Ada")
    with pytest.raises(SourceError, match="no such file"):
        retry(kg, [entry.name], correction=str(tmp_path / "absent.jsonl"), by="Ada")
    assert held(kg) == [entry]
    assert content(kg.store) == before


def test_a_record_without_a_name_gets_one_by_its_correction_but_not_that_of_another(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    path = write(tmp_path / "t.jsonl", rows("good", ["one"]), rows("", ["two"]))
    load(kg, "climate", [str(path)])
    [entry] = held(kg)
    assert entry.graph is None
    taken = write(tmp_path / "taken.jsonl", rows("good", ["two"]))
    assert "never merged" in retry(kg, [entry.name], correction=str(taken), by="Ada")["records"][0]["reason"]
    free = write(tmp_path / "free.jsonl", rows("free", ["two"]))
    assert retry(kg, [entry.name], correction=str(free), by="Ada")["loaded"] == 1
    assert held(kg) == []


def test_rows_without_a_name_are_settled_when_their_file_is_read_again(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("good", ["one"]), rows("", ["two"]))
    load(kg, "climate", [str(path)])
    load(kg, "climate", [str(write(tmp_path / "u.jsonl", rows("x", ["y"])))])
    assert len(held(kg)) == 1
    load(kg, "climate", [str(write(path, rows("good", ["one"])))])
    assert held(kg) == []


def test_pruning_forgets_the_rejected_that_are_gone_too(kg: KnowledgeGraph, bad: Path) -> None:
    write(bad, rows("good", ["one"]))
    load(kg, "climate", [str(bad)])
    assert len(held(kg)) == 1
    load(kg, "climate", [str(bad)], prune=True)
    assert held(kg) == []


def test_the_laws_that_say_which_family_a_law_is_of_are_kept_with_it(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph]
) -> None:
    child = "fictional-zero-carbon-adaptation-regulations_law9002"
    with spoiled(child):
        load(kg, "climate", [str(CLIMATE / "laws.csv")])
    assert retry(kg, None)["loaded"] == 1
    other = open_graph("other")
    load(other, "climate", [str(CLIMATE / "laws.csv")])
    assert content(kg.store) == content(other.store)
    assert load(kg, "climate", [str(CLIMATE / "laws.csv")]).loaded == 0


@pytest.mark.parametrize("name", ["wrong-types.jsonl", "duplicate-keys.csv", "not-json.jsonl", "ragged.csv"])
def test_a_row_that_cannot_be_read_is_kept_so_that_it_fails_in_the_same_way(kg: KnowledgeGraph, name: str) -> None:
    load(kg, "climate", [str(MALFORMED / name)])
    before = {entry.name: entry.reason for entry in held(kg)}
    assert retry(kg, None)["loaded"] == 0
    assert {entry.name: entry.reason for entry in held(kg)} == before


@pytest.mark.long
def test_a_retry_that_is_killed_after_its_commit_is_ended_by_the_next(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    killed = """
import os, signal, sys
from pathlib import Path
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from loaders.quarantine import Quarantine
from loaders.quarantine_retry import retry
from tests.loaders.conftest import MemoryIndex
data_dir = Path(sys.argv[1])
kg = KnowledgeGraph(Settings(_env_file=None, data_dir=data_dir), OxigraphStore(data_dir), MemoryIndex(), None)
Quarantine.remove = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
retry(kg, None)
"""
    kg = open_graph()
    path = write(tmp_path / "t.jsonl", rows("bad", ["one"]))
    with spoiled("bad"):
        load(kg, "climate", [str(path)])
    kg.store.close()
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path / "data")], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    kg = open_graph()
    assert values(kg.store, mint("document", "bad"), KG.slug) == {"bad"}
    assert len(held(kg)) == 1
    generation = kg.store.statistics().generation
    assert retry(kg, None)["loaded"] == 1
    assert held(kg) == []
    assert kg.store.statistics().generation == generation


def test_what_is_left_of_a_record_that_was_half_removed_is_swept_away(kg: KnowledgeGraph, bad: Path) -> None:
    folder = quarantine(kg).folder
    for name in (
        "climate-" + "0" * 24 + ".ttl",
        "climate-" + "0" * 24 + ".0.csv",
        "climate-" + "1" * 24 + ".json.partial",
    ):
        (folder / name).write_text("left over")
    (folder / "climate-notes.txt").write_text("somebody's own")
    retry(kg, None)
    assert [path.name for path in folder.iterdir()] == ["climate-notes.txt"]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("climate-" + "0" * 24, "not json", "Invalid JSON"),
        ("climate-" + "0" * 24, "{}", "Field required"),
        ("notes", "[1]", "Not the description"),
    ],
)
def test_a_damaged_file_is_named_and_stops_nothing(
    kg: KnowledgeGraph, bad: Path, name: str, text: str, fault: str
) -> None:
    (quarantine(kg).folder / f"{name}.json").write_text(text)
    entries, damaged = quarantine(kg).entries()
    assert len(entries) == 1
    assert fault in damaged[f"{name}.json"]
    done = retry(kg, None)
    assert (done["loaded"], list(done["damaged"])) == (1, [f"{name}.json"])


def test_no_path_in_a_tampered_file_is_followed(kg: KnowledgeGraph, bad: Path, tmp_path: Path) -> None:
    folder = quarantine(kg).folder
    [entry] = held(kg)
    description = folder / f"{entry.name}.json"
    whole = json.loads(description.read_text())
    secret = write(tmp_path / "secret.jsonl", rows("bad", ["secret"]))

    description.write_text(json.dumps(whole | {"graph": mint("graph", "src", "climate", "good").value}))
    assert "does not match" in quarantine(kg).entries()[1][description.name]

    whole["places"][0]["file"] = str(secret)
    description.write_text(json.dumps(whole))
    assert "were changed" not in (reason := retry(kg, None)["records"][0]["reason"] or "")
    assert "secret" not in {quad.object.value for quad in content(kg.store)}, reason  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["changed", "gone", "link"])
def test_kept_rows_that_are_not_what_they_were_are_not_loaded(
    kg: KnowledgeGraph, bad: Path, tmp_path: Path, how: str
) -> None:
    [entry] = held(kg)
    [file] = quarantine(kg).files(entry)
    original = file.path.read_bytes()
    if how == "changed":
        file.path.write_bytes(original.replace(b"three", b"other"))
    else:
        file.path.unlink()
    if how == "link":
        (tmp_path / "copy").write_bytes(original)
        file.path.symlink_to(tmp_path / "copy")
    done = retry(kg, None)
    assert ("were changed" if how == "changed" else "are missing") in done["records"][0]["reason"]
    load(kg, "climate", [str(bad)])
    assert held(kg) == []


def test_a_file_that_cannot_be_read_at_all_is_kept_out_without_rows(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "broken.parquet").write_bytes(b"PAR1")
    write(tmp_path / "in" / "t.jsonl", rows("good", ["one"]))
    load(kg, "climate", [str(tmp_path / "in")])
    [entry] = held(kg)
    assert "no rows were copied" in retry(kg, None)["records"][0]["reason"]
    assert drop(kg, [entry.name])["dropped"] == [{"id": short_ids([entry.name])[entry.name], "record": entry.record}]
    assert held(kg) == []


@pytest.mark.parametrize("ending", ["csv", "jsonl", "xlsx", "parquet"])
def test_an_excerpt_of_any_format_is_read_as_the_rows_were(
    ending: str, tmp_path: Path, open_graph: Callable[..., KnowledgeGraph]
) -> None:
    table = [row for slug in ("a", "bad", "c") for row in rows(slug, [f'{slug} "0",\n', f"{slug}\t1"])]
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(table), path)
    elif ending == "xlsx":
        book = Workbook()
        for cells in [list(table[0]), *(list(row.values()) for row in table)]:
            book.worksheets[0].append(cells)
        book.save(path)
    elif ending == "csv":
        cells = [list(table[0]), *(list(row.values()) for row in table)]
        lines = [",".join('"' + str(cell).replace('"', '""') + '"' for cell in row) for row in cells]
        path.write_text("\n".join(lines) + "\n", newline="")
    else:
        write(path, table)
    kg, other = open_graph(), open_graph("other")
    with spoiled("bad"):
        load(kg, "climate", [str(path)])
    [entry] = held(kg)
    assert entry.places[0].rows == "3-4"
    assert retry(kg, None)["loaded"] == 1
    load(other, "climate", [str(path)])
    assert content(kg.store) == content(other.store)
    assert load(kg, "climate", [str(path)]).skipped == 3


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=2, max_size=4), max_size=8
    ),
    st.data(),
)
@settings(max_examples=dear(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cut_rows_of_jsonl_keep_their_bytes(tmp_path: Path, cells: list[list[str]], data: st.DataObject) -> None:
    lines = [json.dumps({str(place): cell for place, cell in enumerate(row)}).encode() + b"\n" for row in cells]
    path, target = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    path.write_bytes(b"".join(lines))
    numbers = data.draw(st.lists(st.sampled_from(range(1, len(lines) + 1)), unique=True)) if lines else []
    if numbers:
        excerpts.cut(path, {target: numbers})
        assert target.read_bytes() == b"".join(lines[number - 1] for number in numbers)


@given(st.sets(st.text("0123456789abcdef", min_size=24, max_size=24), min_size=1, max_size=30))
def test_every_id_that_is_shown_names_its_record_and_no_other(hashes: set[str]) -> None:
    names = {f"climate-{each}": each for each in sorted(hashes)}
    names[f"hansard-{min(hashes)}"] = "the same file"
    shorts = short_ids(names)
    assert resolve_ids(list(shorts.values()), names) == list(names)
    assert resolve_ids(list(names), names) == list(names)


def test_an_unknown_or_ambiguous_id_is_an_error_that_names_what_is_near() -> None:
    names = {"climate-" + digits.ljust(24, "0"): digits for digits in ("abcd1", "abcd2", "ff00")}
    with pytest.raises(InvalidInputError, match=r"abcd1000 \(abcd1\), abcd2000"):
        resolve_ids(["abcd"], names)
    with pytest.raises(NotFoundError, match="ff000000"):
        resolve_ids(["ff00000f"], names)
    with pytest.raises(NotFoundError, match="is empty"):
        resolve_ids(["ff"], {})
