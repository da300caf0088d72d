"""Extraction measured against facts of a land use code read by hand, and against the markup of the D.C. Code."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from loaders.citations.relationships import find_relationships
from loaders.citations.section_citations import THIS, Citation, find_citations
from loaders.zoning.extraction.citation_resolution import Index, resolve
from loaders.zoning.extraction.definitions import find_definitions
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers import input_files
from loaders.zoning.readers.code_model import Section
from tests.loaders.zoning.extraction.district_search import find_districts

GOLDEN = tomllib.loads((Path(__file__).parent.parent / "zoning_golden.toml").read_text())
LEAST = {"use": 0.4, "standard": 0.2, "definition": 0.85, "reference": 0.85}
"""Minimum share of the facts of each kind that extraction has to find. Uses and standards in sentences are quoted."""


@dataclass(frozen=True)
class Town:
    sections: Mapping[str, Section]
    known: Mapping[str, District]
    index: Index

    def above(self, section: Section) -> Sequence[Section]:
        keys = self.index.above(section.key)[1:]
        return [self.sections[key] for key in keys]


@pytest.fixture(scope="module")
def town(shared: Path) -> Town:
    folder = shared / "data" / "zoning" / "spanish-fork"
    found = input_files.find_codes(sorted(path for path in folder.iterdir() if path.is_file()))
    sections = [section for each in found.inputs for section in each.read().sections]
    return Town({section.key: section for section in sections}, find_districts(sections), Index(sections))


def test_the_golden_file_has_enough_facts() -> None:
    assert sum(len(facts) for facts in GOLDEN.values()) >= 60
    assert set(GOLDEN) == {"use", "standard", "definition", "reference"}


def has_use(town: Town, fact: Mapping[str, Any]) -> bool:
    section = town.sections[fact["section"]]
    above = town.above(section)
    return any(
        (each.district, each.use.casefold(), each.level) == (fact["district"], fact["use"].casefold(), fact["level"])
        and fact.get("condition", "") in " ".join(each.conditions)
        for each in find_permissions(section, town.known, above)
    )


def has_standard(town: Town, fact: Mapping[str, Any]) -> bool:
    section = town.sections[fact["section"]]
    above = town.above(section)
    value = Decimal(fact["value"]) if "value" in fact else None
    return any(
        (each.type, each.bound, each.value, each.unit) == (fact["type"], fact["bound"], value, fact.get("unit"))
        and ("district" not in fact or fact["district"] in each.districts)
        and fact.get("raw", each.raw) == each.raw
        and fact.get("applies_to", "") in (each.applies_to or "")
        for each in find_standards(section, town.known, above)
    )


def has_definition(town: Town, fact: Mapping[str, Any]) -> bool:
    words = fact["begins"].casefold()
    return any(
        each.term == fact["term"] and words in each.text[: len(words) + 12].casefold()
        for each in find_definitions(town.sections[fact["section"]])
    )


def has_reference(town: Town, fact: Mapping[str, Any]) -> bool:
    section = town.sections[fact["section"]]
    for each in find_relationships(section.text, find_citations(section.text, "UT")):
        cited = {each.citation.key, resolve(each.citation, town.index, section.key)}
        cited |= {number for _, number in each.citation.levels[-1:]}
        if fact["cites"] in cited and fact.get("property", each.property) == each.property:
            return True
    return False


@pytest.mark.parametrize(
    ("kind", "has"),
    [("use", has_use), ("standard", has_standard), ("definition", has_definition), ("reference", has_reference)],
)
def test_facts_read_by_hand_are_found(town: Town, kind: str, has: Any) -> None:
    facts = GOLDEN[kind]
    missed = [fact for fact in facts if not has(town, fact)]
    print(f"{kind}: {len(facts) - len(missed)} of {len(facts)}; missed: {missed}")
    assert len(facts) - len(missed) >= LEAST[kind] * len(facts)


Target = tuple[str, ...]


def target_of(path: str) -> Target:
    """Parse a target in the markup: ``§8-231.01|(a)`` is that section, ``8|2A|I`` are those levels."""
    return ("§", path[1:].split("|")[0]) if path.startswith("§") else tuple(path.split("|"))


def targets(text: str, key: str, index: Index) -> Iterator[tuple[Citation, Target]]:
    """Yield our citations that the markup also marks, with targets: sections and levels of the D.C. Code, and D.C.
    laws.

    After a section, the markup does not mark further subsections: ``§ 8-807(b) and (c)``. It rarely marks ``this
    chapter``, so those are skipped.
    """
    found: list[Citation] = []
    for each in find_citations(text, "DC"):
        if found and (each.raw, each.levels) == (found[-1].raw, found[-1].levels) and text[each.start] == "(":
            found[-1] = replace(found[-1], end=each.end)
        else:
            found.append(each)
    for each in found:
        if each.form == "dc law" and each.law is not None:
            yield each, ("law", each.law.citation)
        elif each.law is not None and each.law.citation.startswith("D.C. Official Code § "):
            yield each, ("§", each.law.citation.removeprefix("D.C. Official Code § "))
        elif each.internal and each.form != "this" and each.levels[-1] != ("section", THIS):
            yield each, ("§", each.levels[-1][1]) if each.levels[-1][0] == "section" else levels(each, key, index)


def levels(citation: Citation, key: str, index: Index) -> Target:
    found: list[str] = []
    if citation.levels[0][0] != "title" and (resolved := resolve(citation, index, key)):
        return tuple(resolved.split("|"))
    for kind, number in citation.levels:
        if number == THIS:
            found = next((above.split("|") for above in index.above(key) if index.sections[above].kind == kind), [])
        else:
            found.append(number)
    return tuple(found)


def test_citations_agree_with_the_markup_of_the_dc_code(shared: Path) -> None:
    folder = shared / "data" / "zoning" / "dc-code"
    found = input_files.find_codes(sorted(path for path in folder.rglob("*.xml")))
    sections = [section for each in found.inputs for section in each.read().sections]
    index = Index(sections, codes=["D.C. Official Code"])
    marked = hit = made = right = 0
    misses: dict[str, list[str]] = defaultdict(list)
    for section in sections:
        ours = list(targets(section.text, section.key, index))
        gold = [
            (each, target_of(each.path) if each.path else ("law", each.document or "")) for each in section.citations
        ]
        agree = set[int]()
        for each, target in gold:
            # For "subchapter IX-A of Chapter 2 of Title 2" the markup gives Chapter 2 of Title 2.
            same = (place for place, (_, theirs) in enumerate(ours) if theirs[: len(target)] == target)
            match = next((place for place in same if place not in agree), None)
            if match is None:
                misses[target[0]].append(f"{section.key}: {each}")
            else:
                agree.add(match)
                hit += 1
        marked, made, right = marked + len(gold), made + len(ours), right + len(agree)
    precision, recall = right / made, hit / marked
    print(f"{marked} marked, {made} found: precision {precision:.4f}, recall {recall:.4f}; missed: {dict(misses)}")
    assert marked > 1_000
    assert precision >= 0.95
    assert recall >= 0.90
