"""Codes of fictional towns in many page layouts: all give their sections, with every word once."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
from lxml import etree

from loaders.readers.headings import parse_heading
from loaders.zoning.readers import html_code, plain_text
from loaders.zoning.readers.code_model import Code

BETWEEN = """<html><body><h1>CHAPTER 10A - ZONING</h1><p>Adopted in spring.</p><h2>ARTICLE I. - GENERAL</h2>
<section><h4>Sec. 10A-1. Purpose.</h4><p>Peace.</p></section>
<section><h4>Sec. 10A-2. Scope.</h4><p>All lots.</p></section>
<h2>ARTICLE IV. - DISTRICTS</h2><p>Loose words.</p><section><h4>Sec. 10A-3(b). Odd number.</h4><p>Odd.</p></section>
<p>Trailing words.</p></body></html>"""

LINES = """<html><body><div class="c"><a id="JD_155"></a>CHAPTER 155: ZONING CODE</div>
<div class="s"><a id="a"></a>§ 155.001  TITLE.</div><div>   This chapter is the Zoning Code of Elmsworth.</div>
<div>(Ord. 12-2001, passed 3-4-2001)</div><div class="s">§ 155.012  PURPOSE.</div><div>   (A)   To keep order.</div>
<div>      (1)   Always.</div><div>   (B)   To plan.</div></body></html>"""

LISTED = """<html><body><h1>Town of Fernhollow Zoning Ordinance</h1><ul><li><a href="#a1">Article I General</a><ul>
<li><a href="#s1">Section 1.1 Title</a></li></ul></li></ul><h2 id="a1">Article I General</h2>
<h3 id="s1">Section 1.1 Title</h3><p>Known as the Ordinance.</p><h2>Article II Districts</h2><h3>Section 2.1 List</h3>
<dl><dt>R-1</dt><dd>Quiet homes</dd></dl></body></html>"""

WRAPPED = """<html><body><h1>TITLE 12 LAND USE</h1><h2><a name="1"></a><strong>12-3-4</strong> <span>Purpose</span></h2>
<p>Order.</p><h2><div>12-3-5:</div><div>Fences</div></h2>
<ol type="A"><li>High<ol><li>tall</li></ol></li><li>Low</li></ol>
<h2>12-3-6<br>Gates</h2><table><tr><th rowspan="2">Zone</th><th colspan="2">Height</th></tr><tr><th>Front</th>
<th>Rear</th></tr><tr><td>R-1</td><td>4</td><td>6</td></tr></table></body></html>"""

BOLD = """<html><body><p><b>CHAPTER 3</b></p><p><b>SIGNS</b></p><p><b>3.04.010 Purpose.</b></p><p>Signs guide.</p>
<p><b>3.04.020 Size.</b> Signs are small.</p><p><b>3.04.030 Light.</b></p><p>None.</p></body></html>"""

COLONS = """<html><body><h1>TITLE 9 ZONING</h1><h2>CHAPTER 1 GENERAL</h2><h3>9-1-1: TITLE:</h3><p>Known.</p>
<h3>9-1-2: PURPOSE:</h3><p>Order.</p><h2>CHAPTER 2 DISTRICTS</h2><h3>9-2-1: LIST:</h3><p>R.</p></body></html>"""

LAID_OUT = """<html><body><h1>Chapter 4 Trees</h1><table><tr><td><nav>Home</nav></td><td>
<section><h2>Sec. 4-1. Oaks</h2><p>Tall.</p><table><tr><td>oak</td><td>9</td></tr></table></section>
<section><h2>Sec. 4-2. Elms</h2><p>Wide.</p></section></td></tr></table></body></html>"""

APART = """<html><body><h2>Chapter 17.04</h2><h2>GENERAL PROVISIONS</h2><h3>17.04.010</h3><h4>Title.</h4><p>Named.</p>
<h3>17.04.020</h3><h4>[Repealed]</h4><h3>§ 17.04.030</h3><h4>History</h4><p>(Ord. 3, 2001)</p></body></html>"""

SPANS = """<html><body><article><header><h2><span>§ 27-101</span><span>Purpose</span></h2></header><p>Aim.</p></article>
<article><header><h2><span>§ 27-102</span> <span>Scope</span></h2></header><p>Lots.</p></article></body></html>"""

WHOLE = """<html><body><h2>SECTION 1 PURPOSE</h2><h3>1.1 Authority</h3><p>State law.</p><h2>SECTION 2 DISTRICTS</h2>
<h3>2.1 Classes</h3><p>R-1.</p><h4>2.1.1 Homes</h4><p>Quiet.</p></body></html>"""

BYLAW = """SECTION 1
PURPOSE

1.1  Authority
State law.
1.2  Intent
Lots of 1.5 Acres are large.

SECTION 2
DISTRICTS

2.1  Classes
R-1.
"""

LEADERS = """Chapter 1 General ........ 3
Sec. 1-1. Title . . . . . 3
Chapter 1 General
Sec. 1-1. Title
This is the code.
"""

RUN_IN = """CHAPTER 9-1. - PREAMBLE
Sec. 9-1-1. - Preamble.     This article rules the town of Thistledown. (Ord. of 12-5-2000, § 1)
Sec. 9-1-2. - Purpose; scope. (a)  The purpose is order. (b)  The scope is all land: (1)  wet; (2)  dry.
Sec. 9-1-3. Effect.— The chapter takes effect at once.
"""

EXPORTED = """THE CODE OF THISTLEDOWN ____ Published in 1997. Be it ordained:     Section 1. All is adopted. {}
PART I - CHARTER
ARTICLE I. - IN GENERAL
Sec. 1. - Town made.     The town is made.     It shall last. State Law reference— Powers, art. IX.
PART II - CODE
CHAPTER 1 - GENERAL
{}Secs. 1-10—1-30. - Reserved.
""".format(
    "word " * 60,
    "".join(
        f"Sec. 1-{n}. - Rule {n}.     Words. (a)  One; (b)  Two. (Code 1986, § 1-{n}) "
        f"Cross reference— Rules, § 2-{n}.\n"
        for n in range(1, 10)
    ),
)

ARTICLES = """ARTICLE IV
GENERAL PROVISIONS

Section 4.01 Scope
The rules of this Article apply to the lots of the town, as they are said in
Section 4.02 and shown on the map.
Section 4.02 Accessory Buildings
A. They are small.
B. They are few.
Secs. 4.03-4.09. - Reserved.

ARTICLE V
DISTRICTS

Section 5.01 List
R-1 and C-1.
"""

Rows = list[tuple[str, str, str | None, str]]


def rows(code: Code) -> Rows:
    return [(each.key, each.title, each.parent, each.text) for each in code.sections]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            BETWEEN,
            [
                ("chapter 10A", "ZONING", None, "Adopted in spring."),
                ("chapter 10A|article I", "GENERAL", "chapter 10A", ""),
                ("10A-1", "Purpose.", "chapter 10A|article I", "Peace."),
                ("10A-2", "Scope.", "chapter 10A|article I", "All lots."),
                ("chapter 10A|article IV", "DISTRICTS", "chapter 10A", "Loose words.\nTrailing words."),
                ("10A-3(b)", "Odd number.", "chapter 10A|article IV", "Odd."),
            ],
        ),
        (
            LINES,
            [
                ("chapter 155", "ZONING CODE", None, ""),
                ("155.001", "TITLE.", "chapter 155", "This chapter is the Zoning Code of Elmsworth."),
                ("155.012", "PURPOSE.", "chapter 155", "(A) To keep order.\n(1) Always.\n(B) To plan."),
            ],
        ),
        (
            LISTED,
            [
                ("article I", "General", None, ""),
                ("1.1", "Title", "article I", "Known as the Ordinance."),
                ("article II", "Districts", None, ""),
                ("2.1", "List", "article II", "R-1\nQuiet homes"),
            ],
        ),
        (
            WRAPPED,
            [
                ("12", "LAND USE", None, ""),
                ("12-3-4", "Purpose", "12", "Order."),
                ("12-3-5", "Fences", "12", "• High\n◦ tall\n• Low"),
                ("12-3-6", "Gates", "12", "Zone | Height\nFront | Rear\nR-1 | 4 | 6"),
            ],
        ),
        (
            BOLD,
            [
                ("chapter 3", "SIGNS", None, ""),
                ("3.04.010", "Purpose.", "chapter 3", "Signs guide."),
                ("3.04.020", "Size.", "chapter 3", "Signs are small."),
                ("3.04.030", "Light.", "chapter 3", "None."),
            ],
        ),
        (
            COLONS,
            [
                ("9", "ZONING", None, ""),
                ("9|chapter 1", "GENERAL", "9", ""),
                ("9-1-1", "TITLE:", "9|chapter 1", "Known."),
                ("9-1-2", "PURPOSE:", "9|chapter 1", "Order."),
                ("9|chapter 2", "DISTRICTS", "9", ""),
                ("9-2-1", "LIST:", "9|chapter 2", "R."),
            ],
        ),
        (
            LAID_OUT,
            [
                ("chapter 4", "Trees", None, ""),
                ("4-1", "Oaks", "chapter 4", "Tall.\noak | 9"),
                ("4-2", "Elms", "chapter 4", "Wide."),
            ],
        ),
        (
            APART,
            [
                ("17.04", "GENERAL PROVISIONS", None, ""),
                ("17.04.010", "Title.", "17.04", "Named."),
                ("17.04.020", "", "17.04", "[Repealed]"),
                ("17.04.030", "", "17.04", ""),
            ],
        ),
        (SPANS, [("27-101", "Purpose", None, "Aim."), ("27-102", "Scope", None, "Lots.")]),
        (
            WHOLE,
            [
                ("section 1", "PURPOSE", None, ""),
                ("1.1", "Authority", "section 1", "State law."),
                ("section 2", "DISTRICTS", None, ""),
                ("2.1", "Classes", "section 2", "R-1."),
                ("2.1.1", "Homes", "2.1", "Quiet."),
            ],
        ),
    ],
)
def test_a_page_gives_its_sections_however_it_is_laid_out(page: str, expected: Rows) -> None:
    assert rows(html_code.parse(page.encode(), "page.html")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            RUN_IN,
            [
                ("9-1", "PREAMBLE", None, ""),
                ("9-1-1", "Preamble.", "9-1", "This article rules the town of Thistledown."),
                (
                    "9-1-2",
                    "Purpose; scope.",
                    "9-1",
                    "(a) The purpose is order.\n(b) The scope is all land:\n(1) wet;\n(2) dry.",
                ),
                ("9-1-3", "Effect.", "9-1", "The chapter takes effect at once."),
            ],
        ),
        (
            ARTICLES,
            [
                ("article IV", "GENERAL PROVISIONS", None, ""),
                (
                    "4.01",
                    "Scope",
                    "article IV",
                    "The rules of this Article apply to the lots of the town, as they are said in\n"
                    "Section 4.02 and shown on the map.",
                ),
                ("4.02", "Accessory Buildings", "article IV", "A. They are small.\nB. They are few."),
                ("4.03-4.09", "Reserved.", "article IV", ""),
                ("article V", "DISTRICTS", None, ""),
                ("5.01", "List", "article V", "R-1 and C-1."),
            ],
        ),
        (
            BYLAW,
            [
                ("section 1", "PURPOSE", None, ""),
                ("1.1", "Authority", "section 1", "State law."),
                ("1.2", "Intent", "section 1", "Lots of 1.5 Acres are large."),
                ("section 2", "DISTRICTS", None, ""),
                ("2.1", "Classes", "section 2", "R-1."),
            ],
        ),
        (LEADERS, [("chapter 1", "General", None, ""), ("1-1", "Title", "chapter 1", "This is the code.")]),
    ],
)
def test_a_text_gives_its_sections_however_it_is_laid_out(text: str, expected: Rows) -> None:
    assert rows(plain_text.parse(text.encode(), "code.txt")) == expected


@pytest.mark.parametrize("page", [BETWEEN, LINES, WRAPPED, BOLD, COLONS, LAID_OUT])
def test_every_word_of_a_page_is_in_one_place(page: str) -> None:
    code = html_code.parse(page.encode(), "page.html")
    root = etree.fromstring(page, etree.HTMLParser())
    for unseen in list(root.iter("nav")):
        unseen.text = None
    given = Counter(re.findall(r"\w+", " ".join(map(str, root.itertext()))))
    kept: Counter[str] = Counter()
    for each in code.sections:
        notes = " ".join(note.text for note in each.notes)
        kept.update(re.findall(r"\w+", f"{each.number} {each.title} {each.text} {notes}"))
    # Only the word for the kind of a section is missing, which is stored as its kind.
    assert {word.lower() for word in given - kept} <= {"sec", *(each.kind for each in code.sections)}
    assert not kept - given
    assert not code.warnings


TAGS = re.findall(
    r"\w+",
    "p div ul ol li table tr td th section article h2 h3 h4 b span dl dt dd br a blockquote pre caption thead tbody "
    "sup header footer main center font form details summary",
)


def broken_page(chance: Random) -> str:
    """Build a page of words, headings and tags that are opened and closed anywhere."""
    pieces = ["<h1>Title 7 Land</h1>"]
    for number in range(2, chance.randint(5, 60)):
        tag, heading = chance.choice(TAGS), chance.choice(("h2", "h3", "h4"))
        sections = (
            f'<section id="s"><{heading}>Sec. 7-{number}. Name</{heading}>',
            f"<{heading}>Sec. 7-{number}. Name</{heading}>",
            f"<section><{heading}>Chapter {number} Name</{heading}>",
            f"<section><{heading}>Foreword</{heading}>",
            f"<p>§ 7-{number}. Name. ",
            "</section>",
        )
        word = f" wd{number} "
        pieces.append(chance.choice((word, word, f"<{tag}>", f"</{tag}>", sections[number % 6])))
    return "".join(pieces)


def test_no_word_of_a_page_is_lost_or_doubled_however_broken_it_is() -> None:
    for seed in range(250):
        page = broken_page(Random(seed))
        given = Counter(re.findall(r"wd\d+", " ".join(map(str, etree.fromstring(page, etree.HTMLParser()).itertext()))))
        kept: Counter[str] = Counter()
        for each in html_code.parse(page.encode(), "page.html").sections:
            kept.update(re.findall(r"wd\d+", " ".join((each.title, each.text, *(note.text for note in each.notes)))))
            for cell in (cell for table in each.tables for row in table.rows for cell in row):
                assert each.text[cell.start : cell.end] == cell.text, seed
        assert kept == given, seed


def test_words_before_the_first_heading_are_told() -> None:
    [warning] = html_code.parse(LISTED.encode(), "page.html").warnings
    assert warning == (
        "page.html: 3 lines before the first heading are not loaded, starting with 'Town of Fernhollow Zoning "
        "Ordinance'."
    )


def test_a_code_exported_with_a_section_a_line_keeps_charter_and_notes_apart() -> None:
    code = plain_text.parse(EXPORTED.encode(), "code.txt")
    assert [(each.key, each.title, each.text, [note.kind for note in each.notes]) for each in code.sections] == [
        ("part I", "CHARTER", "", []),
        (
            "part I|article I",
            "IN GENERAL",
            "Sec. 1. - Town made.\nThe town is made.\nIt shall last.",
            ["State Law reference"],
        ),
        ("part II", "CODE", "", []),
        ("part II|chapter 1", "GENERAL", "", []),
        *((f"1-{n}", f"Rule {n}.", "Words.\n(a) One;\n(b) Two.", ["History", "Cross reference"]) for n in range(1, 10)),
        ("1-10—1-30", "Reserved.", "", []),
    ]


def test_headings_of_several_sections_that_are_reserved_are_one_section() -> None:
    for line in ("Secs. 2-5—2-20. - Reserved.", "Sections 2-5 through 2-20. Reserved", "§§ 2-5, 2-6  [REPEALED]."):
        heading = parse_heading(line)
        assert heading is not None
        assert heading.number.startswith("2-5")
    assert parse_heading("Sections 2-5 and 2-6. The board decides.") is None


def test_a_sentence_that_is_wrapped_before_a_number_goes_on() -> None:
    code = plain_text.parse(
        b"Sec. 1-1. Aims.\nNo lot may be used, and no barn may stand, other than as is said in\n"
        b"Section 1-2. The board may allow more of them.\nSec. 1-2. Means.\nFew.\nSec. 1-3. Ends.\nNone.\n",
        "code.txt",
    )
    assert [(each.key, each.title) for each in code.sections] == [
        ("1-1", "Aims."),
        ("1-2", "Means."),
        ("1-3", "Ends."),
    ]
