"""Scopes of sections: heading paths, heading lines in texts, and labelled parts."""

from __future__ import annotations

import pytest

from loaders.zoning.extraction.districts import District, find_in_section, pick_best
from loaders.zoning.extraction.section_scope import find_code_scopes, get_scope
from loaders.zoning.readers import plain_text
from loaders.zoning.readers.code_model import Section

ARTICLES = """ARTICLE I
DISTRICTS
1.1 Districts
The town is divided into the following districts:
A-1 Farm District
C-5 Planned Commercial District
M-1 Manufacturing District
ARTICLE II
C-5 PLANNED COMMERCIAL DISTRICT
2.1 Permitted Uses
1. Shoe stores.
2.2 Bulk Regulations
A. A maximum height of 40 feet.
{lost}
3.1 Permitted Uses
1. Motor freight terminals.
3.2 Bulk Regulations
A. A maximum height of 35 feet.
ARTICLE IV
A-1 FARM DISTRICT
4.1 Permitted Uses
1. Barns.
ARTICLE V
SIGNS
5.1 Sign sizes
(a) In the C-5 District. A wall sign.
(b) All districts. A name plate.
"""


@pytest.mark.parametrize(
    ("lost", "codes"),
    [
        ("110 ARTICLE III\n\nM-1 MANUFACTURING DISTRICT", ["districts", "M-1"]),
        ("M-1 MANUFACTURING DISTRICT", ["districts", "M-1"]),
        ("M-1 MANUFACTURING DISTRICT\nIt is intended for factories.", ["none"]),
        ("M-7 RAILROAD DISTRICT", ["none"]),
        ("", ["none"]),
    ],
)
def test_lost_headings_end_scopes(lost: str, codes: list[str]) -> None:
    sections = plain_text.parse(ARTICLES.format(lost=lost).encode(), "code.txt").sections
    known = pick_best(found for each in sections for found in find_in_section(each))
    scopes = find_code_scopes(sections, known)
    text = {each.number: each.text for each in sections}

    def at(number: str, words: str) -> list[str]:
        scope = get_scope(scopes[number], text[number].index(words))
        return [scope.kind, *scope.codes]

    assert at("2.1", "Shoe") == at("2.2", "A maximum") == ["districts", "C-5"]
    assert at("3.1", "Motor") == at("3.2", "35 feet") == codes
    assert at("4.1", "Barns") == ["districts", "A-1"]
    assert at("5.1", "A wall") == ["districts", "C-5"]
    assert at("5.1", "A name") == ["all"]
    for key, each in scopes.items():
        ends = [0, *(scope.end for scope in each)]
        assert [scope.start for scope in each] == ends[:-1], key


@pytest.mark.parametrize(
    ("second", "kind"), [("In the M-1 District, mills are.", "none"), ("Each is for one use.", "districts")]
)
def test_the_place_of_one_paragraph_of_several_is_not_that_of_the_section(second: str, kind: str) -> None:
    text = f"In the A-1 District, barns are allowed.\n{second}"
    sections = [Section("1", "1", "Uses", "section", 1, None, 0, text)]
    known = {code: District(code, "", "0", None, None, 0.9, "list") for code in ("A-1", "M-1")}
    (scope, *_) = find_code_scopes(sections, known)["1"]
    assert scope.kind == kind
