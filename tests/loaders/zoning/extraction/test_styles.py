"""Extraction from codes in the styles of many towns: all of their rules are found, and no others."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from loaders.zoning.extraction.citation_resolution import Index, resolve_words
from loaders.zoning.extraction.measures import Standard
from loaders.zoning.extraction.permission_levels import UsePermission
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers.code_model import Cell, Section, Table
from tests.loaders.zoning.extraction.district_search import find_districts

TOWNS = tomllib.loads((Path(__file__).parent.parent / "zoning_styles.toml").read_text(encoding="utf-8"))["town"]
COLUMNS = re.compile(r"(\d)>")


def section(entry: Mapping[str, Any], order: int) -> Section:
    """Build the section that an entry describes."""
    text = ""
    tables: list[Table] = []
    for part in re.split(r"(\{\d\})", entry["text"].strip("\n")):
        if not re.fullmatch(r"\{\d\}", part):
            text += part
            continue
        given, start = entry["tables"][int(part[1:-1])], len(text)
        rows: list[list[Cell]] = []
        for row in given["rows"]:
            text += "\n" if rows else ""
            rows.append([])
            for place, words in enumerate(row):
                text += " | " if place else ""
                spans = COLUMNS.match(words)
                plain, _, raised = words[spans.end() if spans else 0 :].partition("^")
                at = len(text)
                text += plain + (f" {raised}" if raised else "")
                marks = ((at + len(plain) + 1, len(text)),) if raised else ()
                rows[-1].append(Cell(text[at:], at, len(text), int(spans[1]) if spans else 1, superscripts=marks))
        tables.append(Table(start, len(text), rows, given["header"]))
    key, kind = entry["key"], entry.get("kind", "section")
    return Section(key, key, entry["title"], kind, 1, entry.get("parent"), order, text, (), tables)


class Town:
    """The rules found in a town's code."""

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        sections = [section(entry, order) for order, entry in enumerate(entries)]
        known, index = find_districts(sections), Index(sections)
        by_key = {each.key: each for each in sections}
        self.uses: list[str] = []
        self.standards: list[str] = []
        self.conditions: set[str] = set()
        for each in sections:
            above = [by_key[key] for key in index.above(each.key)[1:]]
            for use in find_permissions(each, known, above):
                if use.method != "closed list":
                    self._use(use, index, each)
            for standard in find_standards(each, known, above):
                if standard.type is None:
                    continue
                self._standard(standard, each)

    def _use(self, use: UsePermission, index: Index, where: Section) -> None:
        assert where.text[use.start : use.end]
        review = resolve_words(use.review, index, where.key) if use.review else None
        self.uses.append(line(use.district, use.use, use.level, review, " ".join(use.conditions)))

    def _standard(self, each: Standard, where: Section) -> None:
        assert where.text[each.start : each.end] == each.raw
        self.conditions.update(each.conditions)
        told = each.raw if each.value is None else format(each.value, "f")
        self.standards.append(line(" ".join(each.districts), each.type, each.bound, told, each.unit, each.applies_to))


def line(*fields: str | None) -> str:
    return re.sub(r"( /)+$", "", " / ".join(field or "" for field in fields).replace("  ", " ").strip()).strip()


LEAST = {"uses": 0.7, "standards": 0.5}
"""Minimum share of the rules that are found. Those in sentences are quoted, and no facts."""


def expect(town: Mapping[str, Any], kind: str) -> list[str]:
    return [line(*fact.split(" / ")) for fact in town.get("facts", {}).get(kind, ())]


@pytest.mark.parametrize("town", TOWNS, ids=lambda town: town["name"].split(",")[0])
def test_no_other_rules_of_a_town_are_found(town: Mapping[str, Any]) -> None:
    found = Town(town["section"])
    assert set(found.uses) <= set(expect(town, "uses"))
    assert set(found.standards) <= set(expect(town, "standards"))


@pytest.mark.parametrize("kind", LEAST)
def test_the_rules_in_lists_and_tables_are_found(kind: str) -> None:
    expected = found = 0
    for town in TOWNS:
        given = expect(town, kind)
        expected += len(given)
        found += len(set(given) & set(getattr(Town(town["section"]), kind)))
    assert found >= LEAST[kind] * expected
