"""A record that is older than the stored one is skipped and reported; one that shrinks is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.record_age import Age, find_age
from kg.store.protocol import Rows, term_text
from loaders.sources import load

pytestmark = pytest.mark.long


def write(path: Path, label: str, aliases: int = 0, **said: Any) -> str:
    """Write a fictional item, and another that never changes."""
    names = [{"language": "en", "value": f"alias {number}"} for number in range(aliases)]
    item = {
        "type": "item",
        "id": "Q9000001",
        "labels": {"en": {"language": "en", "value": label}},
        "aliases": {"en": names} if names else {},
        "claims": {},
        **said,
    }
    other = {"type": "item", "id": "Q9000002", "labels": {"en": {"language": "en", "value": f"other {label}"}}}
    path.write_text(json.dumps([item, other]), encoding="utf-8")
    return str(path)


def labels(kg: KnowledgeGraph) -> set[str]:
    rows = kg.store.query("SELECT DISTINCT ?label { ?item a wikibase:Item ; rdfs:label ?label }")
    assert isinstance(rows, Rows)
    return {term_text(row["label"]) for row in rows}


NEW = {"lastrevid": 12, "modified": "2030-02-01T00:00:00Z"}


@pytest.mark.parametrize(
    "old",
    [
        {"lastrevid": 11, "modified": "2030-01-01T00:00:00Z"},
        {"lastrevid": 11},
        {"modified": "2030-01-31T23:59:59Z"},
        {"lastrevid": 11, "modified": "2031-01-01T00:00:00Z"},
    ],
)
def test_older_record_is_skipped_reported_and_loaded_on_request(
    kg: KnowledgeGraph, tmp_path: Path, old: dict[str, Any]
) -> None:
    path = tmp_path / "items.json"
    load(kg, "wikibase", [write(path, "new", **NEW)], base="wikidata")
    write(path, "old", **old)
    report = load(kg, "wikibase", [str(path)], base="wikidata")
    assert labels(kg) == {"new", "other old"}, "the load goes on with the other records"
    assert (report.loaded, report.skipped, report.rejected) == (1, 1, 0)
    [older] = report.to_dict()["older"]
    assert "Q9000001" in older["record"]
    assert any("Q9000001" in warning for warning in report.warnings)
    again = load(kg, "wikibase", [str(path)], base="wikidata", prune=True)
    assert (len(again.older), again.removed) == (1, 0)
    forced = load(kg, "wikibase", [str(path)], base="wikidata", replace_newer=True)
    assert (forced.older, labels(kg)) == ([], {"old", "other old"})


@pytest.mark.parametrize("new", [NEW, {"lastrevid": 13}, {"modified": "2030-02-02T00:00:00Z"}, {}])
def test_record_that_is_not_older_replaces_the_stored_one(
    kg: KnowledgeGraph, tmp_path: Path, new: dict[str, Any]
) -> None:
    path = tmp_path / "items.json"
    load(kg, "wikibase", [write(path, "first", **NEW)], base="wikidata")
    report = load(kg, "wikibase", [write(path, "second", **new)], base="wikidata")
    assert (report.older, labels(kg)) == ([], {"second", "other second"})


@pytest.mark.parametrize(("said", "warned"), [({}, True), ({"lastrevid": 13}, False)])
def test_record_that_loses_more_than_half_is_reported_unless_it_is_newer(
    kg: KnowledgeGraph, tmp_path: Path, said: dict[str, Any], warned: bool
) -> None:
    path = tmp_path / "items.json"
    load(kg, "wikibase", [write(path, "first", aliases=60, **NEW)], base="wikidata")
    report = load(kg, "wikibase", [write(path, "second", **said)], base="wikidata")
    assert any("Q9000001" in warning for warning in report.warnings) is warned
    assert not any("Q9000002" in warning for warning in report.warnings)


def test_revision_counts_before_the_time_of_modification() -> None:
    assert find_age([]) == Age()
    assert Age(1).is_older(Age(2))
    assert not Age(2).is_older(Age(2))
    assert not Age(1).is_older(Age())
    assert not Age().is_comparable(Age(1))
