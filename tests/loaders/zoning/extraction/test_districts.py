"""Districts in headings and lists."""

from __future__ import annotations

import pytest

from loaders.zoning.extraction.districts import District, find_in_section, find_named, find_whole_list, pick_best
from loaders.zoning.readers import html_code
from loaders.zoning.readers.code_model import Section


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("R-1 single-family residential district.", {"R-1": "single-family residential district"}),
        ("B-2, B-3 BUSINESS DISTRICTS.", {"B-2": "", "B-3": ""}),
        ("Hamlet Shops (HS) and Hamlet Center (HC) Districts.", {"HS": "Hamlet Shops", "HC": "Hamlet Center"}),
        ('LIGHT MILL DISTRICT "LM"', {"LM": "LIGHT MILL DISTRICT"}),
        ("Residential District R-2", {"R-2": "Residential District"}),
        ("R-1, R-2 and R-3 districts; permitted uses.", {"R-1": "", "R-2": "", "R-3": ""}),
        ("Uses permitted in the R-1 district", {"R-1": ""}),
        ("Permitted uses in the Rural Farm (RF) District", {"RF": "Rural Farm"}),
        ("VILLAGE CENTER ZONE.", {"Village Center Zone": "Village Center Zone"}),
        ("LIGHT INDUSTRIAL REGULATIONS", {}),
        ("Zoning districts established", {}),
        ("District boundaries", {}),
        ("Energy policy of the District", {}),
        ("Soil and Water Conservation District", {}),
    ],
)
def test_headings(title: str, expected: dict[str, str]) -> None:
    section = Section("4.1", "4.1", title, "section", 1, None, 0)
    assert {each.code: each.name for each in find_in_section(section)} == expected


ESTABLISHED = """<h1>Chapter 12: Districts</h1><h2>12.01 Districts</h2><p>The following districts are established:</p>
<table><tr><th>Title</th><th></th><th>Symbol</th></tr><tr><td>Park District</td><td></td><td>P</td></tr>
<tr><td>Homes</td><td></td><td></td></tr><tr><td></td><td>One-Family 50</td><td>H1-50</td></tr>
<tr><td></td><td>One-Family 60</td><td>H1-60</td></tr></table><h2>12.02 Map</h2><p>The map is filed.</p>
<h1>Chapter 13: Park District</h1><h2>13.01 Uses</h2><p>Parks.</p>{more}"""


@pytest.mark.parametrize(
    ("more", "codes", "whole"),
    [
        ("", {"P", "H1-50", "H1-60"}, True),
        ("<h1>Chapter 14: Harbor Overlay District</h1>", {"P", "H1-50", "H1-60", "Harbor Overlay District"}, False),
        ("<h1>Chapter 14: X-9 Mill District</h1>", {"P", "H1-50", "H1-60", "X-9"}, False),
        (  # levels in a table of uses
            "<h1>Chapter 14: Uses</h1><p>The following uses are allowed in the zones as shown.</p><table>"
            "<tr><th>Use</th><th>Park</th><th>One-Family 50</th></tr><tr><td>Kiosk</td><td>SP-B</td><td>N</td></tr>"
            "<tr><td>Pavilion</td><td>SP-B</td><td>Y</td></tr><tr><td>Boathouse</td><td>N</td><td>N</td></tr></table>",
            {"P", "H1-50", "H1-60"},
            True,
        ),
    ],
)
def test_a_list_is_whole_if_no_other_place_names_more(more: str, codes: set[str], whole: bool) -> None:
    sections = html_code.parse(ESTABLISHED.format(more=more).encode(), "code.html").sections
    known = pick_best(found for each in sections for found in find_in_section(each))
    assert set(known) == codes
    assert known["H1-50"].group == "Homes"
    listed = find_whole_list(known, {each.key: each for each in sections})
    assert (listed is not None) is whole
    if listed is not None:
        assert sections[1].text[listed.start : listed.end] == "The following districts are established:"


@pytest.mark.parametrize(
    ("words", "codes"),
    [("Office District", ["O"]), ("VC VILLAGE COMMERCIAL DISTRICT", ["VC"]), ("VC Office District", []), ("", [])],
)
def test_a_name_may_follow_its_code(words: str, codes: list[str]) -> None:
    names = {"O": "Office Building", "VC": "Village Commercial District"}
    known = {code: District(code, name, "1", None, None, 0.9, "list") for code, name in names.items()}
    assert find_named(words, known) == codes


def test_a_heading_about_a_matter_in_a_district_is_not_its_name() -> None:
    made = Section("1", "1", "Minimum lot sizes in adjoining R-1 District", "section", 1, None, 0, "")
    assert [(each.code, each.name) for each in find_in_section(made)] == [("R-1", "")]
