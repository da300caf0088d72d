"""A title is the name of a law only as a whole, with its year or number, and in its own jurisdiction."""

from __future__ import annotations

import pytest

from loaders.citations.law_titles import DATED, STATED, find_own_laws, find_titled_law
from loaders.citations.laws import Context


@pytest.mark.parametrize(
    ("title", "place", "law"),
    [
        ("Fernbrook Tides Act 2008", "gbr", ("gbr", "act", "fernbrook-tides-act-2008")),
        ("The Fernbrook Tides Act, 2008 (c. 27)", "gbr", ("gbr", "act", "fernbrook-tides-act-2008")),
        ("Fernbrook Tides Act (No. 12 of 2008)", "ken", ("ken", "act", "fernbrook-tides-act-2008")),
        ("Fernbrook Tides Act 2008 (Act 12 of 2008)", "ken", ("ken", "act", "fernbrook-tides-act-2008")),
        ("Fernbrook Tides Act 2008 (FTA)", "gbr", ("gbr", "act", "fernbrook-tides-act-2008")),
        ("Fernbrook Tides (Amendment) Act 2010", "gbr", ("gbr", "act", "fernbrook-tides-amendment-act-2010")),
        ("Fernbrook Tides Act 2008 (Vic)", "aus", ("au-vic", "act", "fernbrook-tides-act-2008")),
        ("Fernbrook Tides Regulations 2008", "gbr", ("gbr", "regulations", "fernbrook-tides-regulations-2008")),
        ("Law 24/2013 on tides", "rou", ("rou", "law", "24-2013")),
        ("Law No. 24 of 2013 amending Law 8/1997", "rou", ("rou", "law", "24-2013")),
        ("Ley 24 de 2013", "col", ("col", "law", "24-2013")),
        ("Directive 2010/30/EU on labels of tides", "eu", ("eu", "directive", "2010-30")),
        ("Labels (Directive 2010/30/EU on labels of tides)", "eu", ("eu", "directive", "2010-30")),
    ],
)
def test_whole_title_is_a_law(title: str, place: str, law: tuple[str, str, str]) -> None:
    found = find_titled_law(title, place, None)
    assert found is not None
    assert ((found.law.jurisdiction, found.law.scheme, found.law.citation), found.method) == (law, STATED)
    assert found.law in find_own_laws([title], (), Context(place)).laws


@pytest.mark.parametrize(
    ("title", "place"),
    [
        ("Fernbrook Tides Act 2008 (Amendment) Order 2011", "gbr"),
        ("Fernbrook Tides Act 2008 (2050 Target Amendment) Order 2019", "gbr"),
        ("Amendments to the Fernbrook Tides Act 2008", "gbr"),
        ("Draft Fernbrook Tides Act 2008", "gbr"),
        ("Fernbrook Tides Act 2008 (exposure draft)", "gbr"),
        ("Fernbrook Tides Act 2008 (Repeal)", "gbr"),
        ("Fernbrook Tides Bill 2008", "gbr"),
        ("Regulations under the Fernbrook Tides Act 2008", "gbr"),
        ("Fernbrook Tides Act 2008: explanatory notes", "gbr"),
        ("Report on the Fernbrook Tides Act 2008", "gbr"),
        ("Fernbrook Tides Act 2008 and Tides Regulations 2009", "gbr"),
        ("New Zealand Fernbrook Tides Act 2008 review", "nzl"),
        ("Fernbrook Tides Act 2008 (Canada)", "gbr"),
        ("Rules under Law 24/2013", "rou"),
        ("Tides (Law 24/2013)", "rou"),
        ("Law 24/2013 and its implementing regulations", "rou"),
        ("Law 24/2013: explanatory memorandum", "rou"),
        ("Directive 2010/30/EU on labels", "deu"),
        ("Labels (Directives 2010/30/EU and 2015/15/EU on labels)", "eu"),
        ("Labels (transposing Directive 2010/30/EU)", "eu"),
        ("Decree 17/2015 on tides", "rou"),
        ("Fernbrook Tides Act", "gbr"),
        ("Fernbrook Tides Act 2008", None),
        ("National Plan on Tides 2008", "gbr"),
        ("", "gbr"),
    ],
)
def test_other_titles_are_no_law(title: str, place: str | None) -> None:
    assert find_titled_law(title, place, None) is None


def test_title_without_a_year_is_the_act_of_the_year_of_its_document() -> None:
    found = find_titled_law("Fernbrook Tides Act", "gbr", 2008)
    assert found is not None
    assert (found.law.citation, found.method) == ("fernbrook-tides-act-2008", DATED)
    assert find_titled_law("Fernbrook Tides Act Review", "gbr", 2008) is None
    assert find_titled_law("Plan for a Tides Act", "gbr", 2008) is None


def test_act_that_is_younger_than_its_document_is_another() -> None:
    assert find_titled_law("Fernbrook Tides Act 2008", "gbr", 2001) is None
