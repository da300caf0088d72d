"""Laws that texts cite: each kind, ugly texts, and texts that cite none. The laws are real, the texts our own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.citations.act_titles import UNSURE
from loaders.citations.laws import Context, find_laws
from tests.examples import dear

AUSTRALIA = Context("aus", 2020)


def keys(text: str, context: Context = AUSTRALIA) -> list[str]:
    """The laws that `text` cites surely, as jurisdiction, scheme and key."""
    return [
        f"{each.law.jurisdiction}/{each.law.scheme}/{each.law.citation}"
        for each in find_laws(text, context)
        if each.law is not None and each.confidence > UNSURE
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("under the Clean Energy Act 2011.", ["aus/act/clean-energy-act-2011"]),
        ("Senator DOE (Tasmania) (16:05): I praise the Clean Energy Act 2011.", ["aus/act/clean-energy-act-2011"]),
        (
            "the Carbon Credits (Carbon Farming Initiative) Act 2011",
            ["aus/act/carbon-credits-carbon-farming-initiative-act-2011"],
        ),
        ("Climate Change Act 2008 (UK)", ["gbr/act/climate-change-act-2008"]),
        ("Climate Change Act 2017 (Vic)", ["au-vic/act/climate-change-act-2017"]),
        ("New Zealand's Climate Change Response Act 2002", ["nzl/act/climate-change-response-act-2002"]),
        ("the Climate Change Act 2008 of the United Kingdom", ["gbr/act/climate-change-act-2008"]),
        ("ss 4 and 5(1) of the Racial Discrimination Act 1975 (Cth)", ["aus/act/racial-discrimination-act-1975"]),
        ("Customs Act 1901 and the Excise Act 1901", ["aus/act/customs-act-1901", "aus/act/excise-act-1901"]),
        ("Appropriation Bill (No. 1) 2011-2012", ["aus/bill/appropriation-bill-no-1-2011"]),
        ("the Plant Breeder’s Rights Act 1994", ["aus/act/plant-breeder-s-rights-act-1994"]),
        ("the Government's Clean Energy Act 2011", ["aus/act/clean-energy-act-2011"]),
        ("the Clean Energy Bill 2013 [No. 2]", ["aus/bill/clean-energy-bill-2013-no-2"]),
        ("Energy Conservation Act, 2001", ["aus/act/energy-conservation-act-2001"]),
        ("Water Act (2011) and", ["aus/act/water-act-2011"]),
        (
            "National Environmental Management Act, 1998 (Act No. 107 of 1998)",
            ["aus/act/national-environmental-management-act-1998"],
        ),
        (
            "National Environmental Management Act, No. 107 of 1998",
            ["aus/act/national-environmental-management-act-1998"],
        ),
        (
            "the Protection of the Sea (Prevention of Pollution from Ships) Act 1983",
            ["aus/act/protection-of-the-sea-prevention-of-pollution-from-ships-act-1983"],
        ),
        ("Income Tax Assessment Act 1936-1972", ["aus/act/income-tax-assessment-act-1936"]),
        ("Directive 2009/28/EC", ["eu/directive/2009-28"]),
        ("Richtlinie 2009/28/EG", ["eu/directive/2009-28"]),
        ("Directives 2009/28/EC and 2009/29/EC", ["eu/directive/2009-28", "eu/directive/2009-29"]),
        ("Regulation (EU) 2018/1999", ["eu/regulation/2018-1999"]),
        ("Regulation (EC) No 1221/2009", ["eu/regulation/2009-1221"]),
        (
            "Regulations (EU) No 1093/2010, (EU) No 1094/2010 and (EU) No 1095/2010",
            [f"eu/regulation/2010-{number}" for number in (1093, 1094, 1095)],
        ),
        ("Act 36 of 2014 and Directive 2018/410", []),
        ("amended by Act No. 36 of 2014", ["aus/act/36-2014"]),
        ("article 6 of the Paris Agreement", ["int/treaty/paris-agreement"]),
        (
            "the Kyoto Protocol to the United Nations Framework Convention\non Climate Change",
            ["int/treaty/kyoto-protocol", "int/treaty/unfccc"],
        ),
        ("42 U.S.C. 1983, 40 CFR 52.21", ["us/usc/42 U.S.C. § 1983", "us/cfr/40 C.F.R. § 52.21"]),
        ("Public Law 94-580", ["us/public-law/Pub. L. 94-580"]),
    ],
)
def test_citation_of_each_kind_is_found(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ley 1715 de 2014", "col/law/1715-2014"),
        ("Law 1715 of 2014", "col/law/1715-2014"),
        ("Lei nº 12.187, de 29 de dezembro de 2009", "col/law/12187-2009"),
        ("Loi n° 2015-992 du 17 août 2015", "col/law/992-2015"),
        ("Law No. 27/2007", "col/law/27-2007"),
        ("Real Decreto 661/2007", "col/royal-decree/661-2007"),
        ("Law No. 12.187 of December 29, 2009", "col/law/12187-2009"),
        ("Law No. 6,514, of July 22, 2008", "col/law/6514-2008"),
        ("Law 12.187/09, Law 11/06 and the Complementary Law 95 of 1998", "col/law/12187-2009"),
        ("Law 1218/88", "col/law/1218-1988"),
        ("Law 1218/18", "col/law/1218-2018"),
    ],
)
def test_numbered_law_has_one_key_in_all_languages(text: str, expected: str) -> None:
    assert keys(text, Context("col", 2012)) == [expected]


def test_directive_without_community_is_european_in_texts_of_the_union_alone() -> None:
    assert keys("Directive 2018/410", Context("eu", 2012)) == ["eu/directive/2018-410"]
    assert keys("Directive 2018/410", Context("col", 2012)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the Clean En-\nergy Act 2011", "Clean En-\nergy Act 2011"),
        ("the Clean\nEnergy Act\n2011 says", "Clean\nEnergy Act\n2011"),
        ("THE CLEAN ENERGY ACT 2011", "CLEAN ENERGY ACT 2011"),
        ("We passed the Clean Energy Act 2011.", "Clean Energy Act 2011"),
        ("(within the meaning of the Clean Energy Act 2011); or", "Clean Energy Act 2011"),
        ("the “Clean Energy Act 2011”", "Clean Energy Act 2011"),
        ("Under section 3 of the Clean Energy Act, 2011", "section 3 of the Clean Energy Act, 2011"),
    ],
)
def test_broken_and_capital_words_cite_the_same_act(text: str, words: str) -> None:
    [found] = find_laws(text, AUSTRALIA)
    assert text[found.start : found.end] == words
    assert keys(text) == ["aus/act/clean-energy-act-2011"]


@pytest.mark.parametrize(
    "text",
    [
        "we must act 2011 times",
        "Act 2011",
        "Part 3 of the Act 2011",
        "in the ACT 2011 was a dry year",
        "in NSW, VIC and the ACT 2011 was dry",
        "the Act and the Bill",
        "the Principal Act 1999",
        "the Clean Energy Act",
        "a directive 12/2008 of the ministry",
        "Regulation 1221/2009",
        "State Law No. 13798 of 2009",
        "an agreement made in Paris in 2015",
        "the convention on names",
    ],
)
def test_words_that_cite_no_law_give_no_sure_citation(text: str) -> None:
    assert keys(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "In the United Kingdom they have the Climate Change Act 2008.",
        "the Victorian Climate Change Act 2017",
        "Trading with the Enemy Act 1939",
        "It was Keating's Native Title Act 1993",
        "Decree 895 of 2008",
        "the Clean Energy Act 2031",
        "amended by the Oil Reserves Act 2007 (Biofuel Rate) Order 2012",
    ],
)
def test_act_of_uncertain_jurisdiction_or_title_is_below_promotion(text: str) -> None:
    assert find_laws(text, AUSTRALIA)
    assert keys(text) == []


def test_act_without_a_jurisdiction_has_no_law() -> None:
    [found] = find_laws("the Climate Change Act 2008", Context())
    assert found.law is None
    assert found.confidence <= UNSURE


def test_acts_of_different_countries_are_different_laws() -> None:
    text = "the Climate Change Act 2008"
    assert keys(text, Context("gbr")) != keys(text, Context("ken"))
    assert keys(text, Context("gbr")) == keys(f"{text} (UK)", Context("ken"))


def test_codes_of_states_are_cited_in_texts_of_their_country_only() -> None:
    text = "under M.G.L. c. 21N, § 3, 765 ILCS 5/1 and Cal. Health and Safety Code § 38500"
    assert keys(text, Context("us", 2020)) == [
        "us-ma/code/Massachusetts General Laws Chapter 21N, Section 3",
        "us-il/code/765 ILCS 5/1",
        "us-ca/code/California Health and Safety Code § 38500",
    ]
    assert keys(text) == []


def test_treaty_is_not_cited_before_it_was_made() -> None:
    assert keys("the Paris Agreement on Viet Nam", Context("aus", 1973)) == []


def test_name_defined_in_the_text_cites_its_law() -> None:
    text = (
        "The Clean Rivers Act 2011 (the Act) binds all. Section 5 of the Act does not. Nor does the Clean Rivers Act."
    )
    found = [text[each.start : each.end] for each in find_laws(text, AUSTRALIA)]
    assert found == ["Clean Rivers Act 2011", "Section 5 of the Act", "Clean Rivers Act"]
    assert set(keys(text)) == {"aus/act/clean-rivers-act-2011"}


def test_act_in_a_city_code_is_sure_only_if_it_is_federal() -> None:
    city = Context("us", only_federal=True)
    assert keys("under the Clear Streams Act of 1974", city) == []
    for text in (
        "under the federal Clear Streams Act of 1974",
        "the Clear Streams Act of 1974 (Public Law 93-999)",
        "the Clear Streams Act of 1974, 42 U.S.C. 9999",
    ):
        assert keys(text, city) == ["us/act/clear-streams-act-1974"]


_PIECES = st.sampled_from(
    [
        "the ", "Clean ", "Energy ", "Act ", "ACT ", "2011", " of ", "(UK)", "Bill ", "\n", "-\n", ", ", ". ", "(", ")",
        "Directive ", "2009/28/EC", " and ", "Paris Agreement", "section 5 ", "Law No. ", "5 of 2010", "“", "é", "𝒜",
        "42 U.S.C. ", "1983", " (the Act)", "the Act", "Regulations ",
    ]
)  # fmt: skip


@settings(max_examples=dear(300))
@given(st.lists(_PIECES, max_size=30).map("".join))
def test_offsets_are_ordered_and_inside_the_text(text: str) -> None:
    found = find_laws(text, AUSTRALIA)
    edge = 0
    for each in found:
        assert edge <= each.start < each.end <= len(text)
        words = text[each.start : each.end]
        assert words == words.strip()
        assert 0 < each.confidence <= 1
        edge = each.end


def test_this_act_is_the_one_named_last() -> None:
    text = "The Clean Rivers Act 2011 (the Act) is old. So is the Dams Act 1962. This Act bans dams. The Act does not."
    assert keys(text) == ["aus/act/clean-rivers-act-2011", "aus/act/dams-act-1962", "aus/act/clean-rivers-act-2011"]
