"""Structure of codes in the forms that towns publish: levels, sections, and parts that are not law."""

from __future__ import annotations

import pytest

from loaders.zoning.readers import html_code, plain_text

PAGE_NUMBER = """ARTICLE IV
A-1 FARM DISTRICT
4.1 Permitted Uses
1. Barns.
ARTICLE IV.I
A-2 ORCHARD DISTRICT
4.1.1 Permitted Uses
1. Orchards.
31 ARTICLE V

M-1 MILL DISTRICT

5.1 Permitted Uses
1. Mills.
"""
WHOLE_NUMBERS = """PART 5 - RESIDENTIAL ZONES
501 Residential One Zone (R-1)
501.1 Permitted Uses
(a) house
501.2 Height
(a) low
502 Highway Zone (C-2)
502.1 Permitted Uses
(a) inn
"""
BACK_MATTER = """ARTICLE 1
TITLE
Section 1.01 Title. This is the ordinance.
Section 1.02 Purpose. It promotes health.
Section 1.03 Uses. Farms are permitted.
INDEX
Barns ........ 12
Farms ........ 5
APPENDIX A
CODE COMPARATIVE TABLE
Ord. No. 12   1.01   3-5-1999
"""
CELLS = """9-2-0200  Allowed uses.
Text.
9-2-0207 Use table.
House
P
§ 9-10-0207-A
Shop
§ 9-10-0207-A
9-2-0304  Floor area.
Text.
"""
CONTENTS = """<h1>Chapter 11: Shops</h1><h2>Sections</h2><ul><li>11.01 Intent</li><li>11.02 Uses</li></ul>
<h2>Cross references</h2><ul><li>Signs - see Chapter 12</li></ul>
<h2>11.01 Intent</h2><p>For trade.</p><h2>11.02 Uses</h2><p>Shops.</p>"""
UNNUMBERED = """<h1>Zoning Bylaw</h1><h2>Contents</h2><p>Village Zone</p><h2>Village Zone (V)</h2>
<h3>Uses</h3><p>Houses.</p><h2>Farm Zone (F)</h2><h3>Uses</h3><p>Barns.</p>"""
LABELS = """<div>Sec. 5-1. - R-1 district.</div><p class="incr0">(a)</p><p class="content1">Uses.</p>
<p class="historynote0">(Ord. No. 2, 5-4-99)</p><div>Sec. 5-2. - Signs.</div><p>One.</p>
<div>Sec. 5-3. - Fees.</div><p>Ten.</p>"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            PAGE_NUMBER,
            [
                ("IV A-1 FARM DISTRICT", 1, ""),
                ("4.1 Permitted Uses", 2, "1. Barns."),
                ("IV.I A-2 ORCHARD DISTRICT", 1, ""),
                ("4.1.1 Permitted Uses", 2, "1. Orchards."),
                ("V M-1 MILL DISTRICT", 1, ""),
                ("5.1 Permitted Uses", 2, "1. Mills."),
            ],
        ),
        (
            WHOLE_NUMBERS,
            [
                ("5 RESIDENTIAL ZONES", 1, ""),
                ("501 Residential One Zone (R-1)", 2, ""),
                ("501.1 Permitted Uses", 3, "(a) house"),
                ("501.2 Height", 3, "(a) low"),
                ("502 Highway Zone (C-2)", 2, ""),
                ("502.1 Permitted Uses", 3, "(a) inn"),
            ],
        ),
        (
            BACK_MATTER,
            [
                ("1 TITLE", 1, ""),
                ("1.01 Title.", 2, "This is the ordinance."),
                ("1.02 Purpose.", 2, "It promotes health."),
                ("1.03 Uses.", 2, "Farms are permitted."),
            ],
        ),
        (
            CELLS,
            [
                ("9-2-0200 Allowed uses.", 1, "Text."),
                ("9-2-0207 Use table.", 1, "House\nP\n§ 9-10-0207-A\nShop\n§ 9-10-0207-A"),
                ("9-2-0304 Floor area.", 1, "Text."),
            ],
        ),
        (
            CONTENTS,
            [("11 Shops", 1, ""), ("11.01 Intent", 2, "For trade."), ("11.02 Uses", 2, "Shops.")],
        ),
        (
            UNNUMBERED,
            [
                (" Zoning Bylaw", 1, ""),
                (" Village Zone (V)", 2, ""),
                (" Uses", 3, "Houses."),
                (" Farm Zone (F)", 2, ""),
                (" Uses", 3, "Barns."),
            ],
        ),
        (LABELS, [("5-1 R-1 district.", 1, "(a) Uses."), ("5-2 Signs.", 1, "One."), ("5-3 Fees.", 1, "Ten.")]),
    ],
)
def test_sections_and_levels(text: str, expected: list[tuple[str, int, str]]) -> None:
    parse = html_code.parse if text.startswith("<") else plain_text.parse
    found = parse(text.encode(), "code").sections
    assert [(f"{each.number} {each.title}", each.level, each.text) for each in found] == expected
