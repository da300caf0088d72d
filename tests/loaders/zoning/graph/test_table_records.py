"""Tables of districts become rules about uses and dimensions, with every cell verbatim."""

from __future__ import annotations

import csv
import json
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import KG, QUDT, SKOS, mint
from loaders.model import Rejection, Snapshot, SourceGraph
from loaders.readers.locations import File
from loaders.sources import load
from loaders.zoning.graph import table_mapping
from loaders.zoning.graph.rule_quads import Rules
from loaders.zoning.graph.table_records import open_table, read_records
from loaders.zoning.loader import Reading
from tests.loaders.conftest import content as content_of

FIXTURES = Path(__file__).parent.parent.parent.parent.parent / "fixtures" / "zoning"
TOWNS, MAPPING = FIXTURES / "towns.csv", FIXTURES / "towns.toml"


def content(kg: KnowledgeGraph) -> set[Quad]:
    """All quads but those of provenance."""
    return content_of(kg.store)  # type: ignore[arg-type]


def stated(kg: KnowledgeGraph) -> dict[tuple[str, str, str], str]:
    """Get every cell of a use or standard, by municipality, district and column."""
    return cells_in(content(kg))


def cells_in(quads: Collection[Quad]) -> dict[tuple[str, str, str], str]:
    notation = {q.subject: q.object.value for q in quads if q.predicate == SKOS.notation}  # type: ignore[union-attr]
    of = {q.subject: q.object for q in quads if q.predicate == KG.jurisdiction}
    district = {q.subject: q.object for q in quads if q.predicate == KG.district}
    column = {q.subject: q.object.value for q in quads if q.predicate == KG.recordedIn}  # type: ignore[union-attr]
    found = {}
    for quad in quads:
        if quad.predicate in (KG.rawLevel, KG.rawValue) and quad.subject in column:
            place = district[quad.subject]
            key = of[place].value.rpartition("/")[2], notation[place], column[quad.subject]  # type: ignore[index, union-attr]
            assert key not in found
            found[key] = quad.object.value  # type: ignore[union-attr]
    return found


def test_every_mapped_cell_is_in_the_graph_as_it_stands(kg: KnowledgeGraph) -> None:
    report = load(kg, "zoning", [str(TOWNS)], mapping=str(MAPPING))
    assert (report.loaded, report.rejections) == (2, [])
    own = table_mapping.load(MAPPING)
    columns = [*(use.column for use in own.uses), *(each.column for each in own.standards)]
    with TOWNS.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    wanted = {
        (f"us-ct-{row['Town'].lower().replace(' ', '-')}", row["District"], column): row[column]
        for row in rows
        for column in columns
        if row[column]
    }
    assert stated(kg) == wanted


def test_a_level_that_is_none_stays_as_recorded_and_a_cell_that_is_no_number_has_no_quantity(
    kg: KnowledgeGraph,
) -> None:
    load(kg, "zoning", [str(TOWNS)], mapping=str(MAPPING))
    quads = content(kg)
    raw = {q.subject: q.object.value for q in quads if q.predicate in (KG.rawLevel, KG.rawValue)}  # type: ignore[union-attr]
    levels = {raw[q.subject] for q in quads if q.predicate == KG.permissionLevel}
    assert levels == {"Allowed", "Special Permit", "Prohibited"}
    quantified = {raw[q.subject] for q in quads if q.predicate == KG.quantity}
    assert not quantified & {"2 (front); 3 (rear)", "2.5 stories"}
    assert "0.92" in quantified
    assert Literal("Owner Must Live There: Yes") in {q.object for q in quads if q.predicate == KG.condition}
    facts = {q.object for q in quads if q.predicate == KG.districtFact}
    assert Literal('Notes: Houses of watchmen only, "as before".') in facts
    units = {q.object for q in quads if q.predicate == QUDT.hasUnit}
    assert NamedNode("http://qudt.org/vocab/unit/AC") in units


def test_a_change_of_one_town_is_a_change_of_its_graph_alone(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "towns.csv"
    path.write_text(TOWNS.read_text())
    load(kg, "zoning", [str(path)], mapping=str(MAPPING))
    path.write_text(TOWNS.read_text().replace("2.5 stories", "36"))
    report = load(kg, "zoning", [str(path)], mapping=str(MAPPING))
    assert (report.loaded, report.skipped) == (1, 1)
    assert "36" in stated(kg).values()
    assert "2.5 stories" not in stated(kg).values()


def test_bad_rows_are_left_out_and_told_and_the_rest_is_loaded(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "towns.csv"
    text = TOWNS.read_text()
    head = text.splitlines()[0]
    extra = [
        "Lower Quill,CT,RA,Again,,,Allowed,,,,,,,",
        ",CT,X,,,,,,,,,,,",
        "Lower Quill,CT,,,,,,,,,,,,",
        "A,Utopia,X,,,,,,,,,,,",
    ]
    path.write_text("\n".join([head, *text.splitlines()[1:], *extra, "short,row"]) + "\n")
    report = load(kg, "zoning", [str(path)], mapping=str(MAPPING))
    reasons = " ".join(rejection.reason for rejection in report.rejections)
    assert report.loaded == 2
    assert len(report.rejections) == 5
    for words in (
        "in row 1,",
        "--municipality",
        "'District' is empty",
        "'Utopia'",
        "cells",
    ):
        assert words in reasons


def test_rejected_rows_are_kept_as_they_are(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "towns.csv"
    path.write_text(TOWNS.read_text() + "Nowhere,Utopia,X,,,,,,,,,,,\n")
    report = load(kg, "zoning", [str(path)], mapping=str(MAPPING))
    assert len(report.rejections) == 1
    kept = [each.read_text() for each in kg.settings.directory.quarantine.rglob("*.csv")]
    assert len(kept) == 1
    assert "Utopia" in kept[0]
    keyed = tmp_path / "lots.json"
    keyed.write_text(json.dumps({"": {"MinimumLotSizeInSqft": 5000}, "R1": {"MinimumLotSizeInSqft": 5000}}))
    report = load(kg, "zoning", [str(keyed)])
    assert (report.loaded, len(report.rejections)) == (1, 1)
    assert any("lots.json" in warning for warning in report.warnings)


def test_a_table_that_no_mapping_fits_says_which_there_are(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    [rejection] = load(kg, "zoning", [str(path)]).rejections
    assert "columns 'a', 'b'" in rejection.reason
    assert "--mapping FILE" in rejection.reason
    [rejection] = load(kg, "zoning", [str(path)], mapping=str(MAPPING)).rejections
    assert "'Town', 'State', 'District'" in rejection.reason


def test_an_object_of_objects_has_its_keys_in_a_column(tmp_path: Path) -> None:
    path = tmp_path / "lots.json"
    path.write_text(json.dumps({"R1": {"MinimumLotSizeInSqft": 5000, "MinimumLotWidthInFt": None}}))
    table = open_table(path)
    columns = [table_mapping.KEYS, "MinimumLotSizeInSqft", "MinimumLotWidthInFt"]
    assert table.columns == columns
    assert [row.cells for row in table.rows(columns, "")] == [["R1", "5000", None]]
    fitting = table_mapping.find_bundled(table.columns)
    assert fitting is not None
    assert fitting.name == "detroit"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = ", "TOML"),
        ("[district]\n", "Missing code"),
        ('[district]\ncode = "D"\n', r"\[\[use\]\]"),
        ('[district]\ncode = "D"\n[levels]\nP = "maybe"\n[[use]]\ncolumn = "U"\n', "'maybe'.*byRight"),
        ('[district]\ncode = "D"\n[[standard]]\ncolumn = "S"\ntype = "Lot Area"\n', "'Lot Area'"),
        ('[district]\ncode = "D"\n[[standard]]\ncolumn = "S"\ntype = "x"\nunit = "furlong"\n', "'furlong'.*FT"),
        ('[district]\ncode = "D"\n[[standard]]\ncolumn = "S"\ntype = "x"\nbound = "least"\n', "'least'"),
        ('[district]\ncode = "D"\n[[use]]\ncolumn = "U"\nlevel = 1\n', "Unknown 'level'"),
        ('name = "a b"\n[district]\ncode = "D"\n[[use]]\ncolumn = "U"\n', "'a b'"),
        ('[jurisdiction]\nstate = "ZZ"\n[district]\ncode = "D"\n[[use]]\ncolumn = "U"\n', "'ZZ'"),
    ],
)
def test_a_mapping_that_says_too_little_or_what_means_nothing_is_refused(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "mapping.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=reason):
        table_mapping.load(path)


def test_the_shipped_mappings_can_be_read() -> None:
    assert [each.name for each in table_mapping.load_bundled()] == ["connecticut", "detroit"]


@pytest.mark.long
def test_all_rows_of_connecticut_are_there_with_every_cell(shared: Path) -> None:
    path = shared / "data" / "zoning" / "ct_town_data_2022.csv"
    quads: set[Quad] = set()
    for item in Reading().read([File(path, Snapshot("0" * 64, str(path)), named=True)]):
        assert not isinstance(item, Rejection)
        if isinstance(item, SourceGraph):
            quads.update(item.quads, *item.shared.values())
    own = next(each for each in table_mapping.load_bundled() if each.name == "connecticut")
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = [{(key or "").strip(): cell for key, cell in row.items()} for row in csv.DictReader(stream)]
    columns = [*(use.column for use in own.uses), *(each.column for each in own.standards)]
    wanted = Counter(
        (row["AbbreviatedDistrict"], column, row[column])
        for row in rows
        for column in columns
        if row.get(column, "").strip()
    )
    assert len(rows) == 2_432
    found = Counter((district, column, raw) for (_, district, column), raw in cells_in(quads).items())
    assert found == wanted


def test_the_lots_of_detroit_are_read(kg: KnowledgeGraph, shared: Path) -> None:
    path = shared / "data" / "zoning" / "zoning_districts_to_lot_size_restrictions.json"
    report = load(kg, "zoning", [str(path)])
    assert (report.loaded, report.rejections) == (1, [])
    given = json.loads(path.read_text())
    wanted = {
        ("us-mi-detroit", district, column): str(value)
        for district, cells in given.items()
        for column, value in cells.items()
        if value is not None
    }
    assert stated(kg) == wanted
    assert mint("district", "us-mi-detroit", "R1") in {q.subject for q in content(kg)}


def long_table(path: Path, towns: int, *, apart: bool) -> tuple[File, table_mapping.TableMapping]:
    """Write a table of towns of 20 districts each, the rows of a town adjacent or, with `apart`, as far apart as
    possible."""
    rows = [(town, district) for town in range(towns) for district in range(20)]
    rows.sort(key=lambda row: row[1] if apart else 0)
    lines = [f"Town {town},CT,R-{district},Allowed,{district}" for town, district in rows]
    path.write_text("\n".join(["Town,State,District,House,Min. Lot (acres)", *lines]) + "\n")
    return File(path, Snapshot("0" * 64, str(path)), named=True), table_mapping.load(MAPPING)


def records(given: tuple[File, table_mapping.TableMapping]) -> Iterator[SourceGraph]:
    return (item for item in read_records(*given, None, None) if isinstance(item, SourceGraph))


def test_rows_of_a_town_that_stand_apart_make_the_same_record(tmp_path: Path) -> None:
    together, apart = (
        {each.key: set(each.quads) for each in records(long_table(tmp_path / "t.csv", 5, apart=apart))}
        for apart in (False, True)
    )
    assert len(together) == 5
    assert together == apart
    for each in records(long_table(tmp_path / "t.csv", 5, apart=True)):
        [origin] = each.origins
        assert list(origin.rows) == sorted(origin.rows)
        assert len(origin.rows) == 20


def test_no_more_than_the_records_at_hand_are_held_however_long_the_table(tmp_path: Path) -> None:
    def held(towns: int) -> int:
        """Measure the maximum number of records held at once."""
        made: list[weakref.ref[Rules]] = []
        most = 0

        class Counted(Rules):
            """Rules whose live instances are counted."""

            __slots__ = ("__weakref__",)

            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                made.append(weakref.ref(self))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("loaders.zoning.graph.table_records.Rules", Counted)
            for _ in records(long_table(tmp_path / "t.csv", towns, apart=True)):
                most = max(most, sum(each() is not None for each in made))
        return most

    assert held(40) == held(5) <= 2


def test_the_work_of_a_load_grows_with_its_rows_alone(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaders.batches.BATCH_QUADS", 2_000)

    def asked(towns: int) -> Counter[str]:
        """Count the queries of a load, and the rows that they return."""
        kg = open_graph(f"data{towns}")
        counted: Counter[str] = Counter()

        class Counting:
            def __getattr__(self, name: str) -> Any:
                found = getattr(kg.store, name)

                def call(*given: Any, **named: Any) -> Any:
                    answer = found(*given, **named)
                    counted[f"calls of {name}"] += 1
                    counted[f"answers of {name}"] += len(getattr(answer, "rows", answer if name == "graph" else ()))
                    return answer

                return call if callable(found) else found

        file, own = long_table(tmp_path / f"{towns}.csv", towns, apart=True)
        counting = replace(kg, store=cast(Any, Counting()))
        report = load(counting, "zoning", [str(file.path)], mapping=str(MAPPING))
        assert (report.loaded, report.rejections, own.name) == (towns, [], "towns")
        return counted

    few, many = asked(8), asked(24)
    assert few["calls of commit"] > 1
    for name, times in many.items():
        assert times <= 3.3 * few[name] + 4, f"{name}: {few[name]} for 8 towns and {times} for 24"
