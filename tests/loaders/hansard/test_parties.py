"""A recorded form of a party, chamber or state means what it meant on its day, and nothing is guessed."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, RdfFormat, parse

from kg import bundle
from kg.vocabulary import KG, RDF, SCHEMA, SKOS, mint
from loaders.hansard.parties import (
    chamber,
    chamber_of_flag,
    describe,
    electorate,
    is_nothing,
    parties,
    party,
    state,
    venue,
)

FILE = bundle.folder("ontology") / "reference" / "australia.ttl"
QUADS = list(parse(path=FILE, format=RdfFormat.TURTLE))
DAYS = st.dates(date(1901, 5, 9), date(2030, 12, 31))


def meaning(form: str, year: int) -> str | None:
    found = party(form, date(year, 6, 1))
    return None if found is None else found.value.rsplit("/", 1)[1]


@pytest.mark.parametrize(
    ("form", "year", "expected"),
    [
        ("ALP", 1901, "labor"),
        ("Labor", 2024, "labor"),
        ("PROT", 1904, "protectionist"),
        ("Protectionist", 1901, "protectionist"),
        ("FT", 1901, "free-trade"),
        ("Anti-Socialist", 1908, "free-trade"),
        ("LP", 1912, "commonwealth-liberal"),
        ("LP", 1950, "liberal"),
        ("LIB", 1980, "liberal"),
        ("NAT", 1920, "nationalist"),
        ("NAT", 1990, "nationals"),
        ("Nats", 2012, "nationals"),
        ("NATS", 2006, "nationals"),
        ("NP", 1998, "nationals"),
        ("NCP", 1978, "nationals"),
        ("NCP/NP", 1980, "nationals"),
        ("NAT", 1935, "nationalist"),
        ("AV", 2025, "australias-voice"),
        ("CP", 1935, "nationals"),
        ("UAP", 1935, "united-australia-1931"),
        ("UAP", 2022, "united-australia-2013"),
        ("United Australia Party", 1940, "united-australia-1931"),
        ("PUP", 2014, "united-australia-2013"),
        ("DLP", 1965, "democratic-labor-1955"),
        ("DLP", 2012, "democratic-labor"),
        ("AD", 1992, "democrats"),
        ("GWA", 1993, "greens-wa"),
        ("AG", 2003, "greens"),
        ("GRN", 2010, "greens"),
        ("CLP", 1998, "country-liberal"),
        ("CLP", 1911, "commonwealth-liberal"),
        ("AUS", 2012, "katters-australian"),
        ("KAP", 2020, "katters-australian"),
        ("Pauline Hanson’s One Nation", 2018, "one-nation"),
        ("NXT", 2016, "centre-alliance"),
        ("CA", 2019, "centre-alliance"),
        ("Ind.", 2012, "independent"),
    ],
)
def test_a_form_means_the_party_of_its_time(form: str, year: int, expected: str) -> None:
    assert meaning(form, year) == expected


@pytest.mark.parametrize(
    ("form", "year"),
    [
        ("NP", 1925),  # before there was a National Party
        ("UAP", 1960),  # after one United Australia Party and before the other
        ("Liberal Party", 1925),
        ("DLP", 1978),  # the year in which one party of the name ended and another began
        ("Whig", 1901),
        ("SPK", 1999),
        ("N/A", 2001),
        ("", 2001),
        (" ", 2001),
        ("ALP LP", 2001),
    ],
)
def test_a_form_that_means_nothing_or_several_parties_is_none(form: str, year: int) -> None:
    assert meaning(form, year) is None


@pytest.mark.parametrize(
    ("year", "expected"),
    [
        (1905, "free-trade"),
        (1910, None),  # a career dates its changes by year alone
        (1912, "free-trade"),
        (1915, "commonwealth-liberal"),
        (1917, None),
        (1920, "nationalist"),
    ],
)
def test_of_a_career_the_part_of_the_day_counts(year: int, expected: str | None) -> None:
    assert meaning("FT; ANTI-SOC from 1910; LP from 1913; NAT from 1917", year) == expected


def test_a_career_that_cannot_be_read_is_none() -> None:
    assert meaning("ALP; NAT after the conscription vote", 1920) is None


@given(st.sampled_from(["ALP", "Ind.", "Katter's Australian Party", "FT; ANTI-SOC from 1906"]), DAYS)
def test_case_spaces_and_punctuation_do_not_count(form: str, day: date) -> None:
    assert party(f"  {form.swapcase()} ", day) == party(form, day)
    assert party(form.replace(".", "").replace("'", ""), day) == party(form, day)


@given(st.text(), DAYS)
def test_any_text_is_a_party_or_none(form: str, day: date) -> None:
    assert party(form, day) in {None, *parties()}
    assert state(form) is None or state(form).value.startswith(mint("place", "AU-").value)  # type: ignore[union-attr]


def test_a_party_under_its_own_label_is_that_party_while_it_sits() -> None:
    for each in parties():
        said = {triple.predicate: triple.object for triple in describe(each)}
        label, since = said[SKOS.prefLabel], said[SCHEMA.foundingDate]
        assert isinstance(label, pyoxigraph.Literal)
        assert isinstance(since, pyoxigraph.Literal)
        plain = re.sub(r" \([0-9]+\)$", "", label.value)
        assert party(plain, date(int(since.value) + 1, 1, 1)) == each, label.value


def test_a_form_means_one_party_at_most_in_each_year_but_those_in_which_one_follows_another() -> None:
    forms = {
        quad.object.value
        for quad in QUADS
        if isinstance(quad.object, pyoxigraph.Literal) and quad.predicate.value.endswith(("Form", "Label", "notation"))
    }
    doubtful = Counter(
        (form, year)
        for form in forms
        for year in range(1901, 2030)
        if meaning(form, year) is None and meaning(form, year - 1) and meaning(form, year + 1)
    )
    assert {year for _, year in doubtful} <= {1978}


def test_a_description_speaks_of_one_thing_in_plain_terms() -> None:
    for each in parties():
        assert {triple.subject for triple in describe(each)} == {each}
        assert (RDF.type, KG.Party) in {(triple.predicate, triple.object) for triple in describe(each)}
    assert describe(NamedNode("urn:x")) == ()


@pytest.mark.parametrize("form", ["REPS", "House of Reps", "House of Representatives", "HOUSE OF REPRESENTATIVES"])
def test_the_house_is_known_by_all_its_forms(form: str) -> None:
    assert chamber(form) == mint("chamber", "au-representatives")
    assert venue(form) is None


@pytest.mark.parametrize("form", ["Main Committee", "Federation Chamber", "MAIN COMM", "The Federation Chamber"])
def test_what_meets_apart_from_the_house_is_a_venue_of_the_house(form: str) -> None:
    assert chamber(form) == mint("chamber", "au-representatives")
    assert venue(form) == mint("chamber", "au-federation-chamber")


@pytest.mark.parametrize("form", ["SENATE", "Senate", "the Senate"])
def test_the_senate_is_known_by_all_its_forms(form: str) -> None:
    assert chamber(form) == mint("chamber", "au-senate")
    assert venue(form) is None


@pytest.mark.parametrize("form", ["House of Lords", "Legislative Council", "", "1", "Senate and House"])
def test_what_is_neither_chamber_is_none(form: str) -> None:
    assert chamber(form) is None


@pytest.mark.parametrize(
    ("flag", "code"),
    [("1", "au-senate"), ("0", "au-representatives"), ("1.0", "au-senate"), (" 0 ", "au-representatives")],
)
def test_a_flag_stands_for_a_chamber(flag: str, code: str) -> None:
    assert chamber_of_flag(flag) == mint("chamber", code)


@pytest.mark.parametrize("flag", ["", "2", "yes", "10"])
def test_a_flag_that_is_none_stands_for_nothing(flag: str) -> None:
    assert chamber_of_flag(flag) is None


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("NSW", "NSW"), ("N.S.W.", "NSW"), ("NEW SOUTH WALES", "NSW"), ("New South Wales", "NSW"),
        ("Vic.", "VIC"), ("VICTORIA", "VIC"), ("Qld", "QLD"), ("Queensland", "QLD"), ("S.A.", "SA"),
        ("SOUTH AUSTRALIA", "SA"), ("Western Australia", "WA"), ("Tas.", "TAS"), ("Tasmania", "TAS"),
        ("NT", "NT"), ("Northern Territory", "NT"), ("A.C.T.", "ACT"), ("Australian Capital Territory", "ACT"),
    ],
)  # fmt: skip
def test_a_state_is_known_by_all_its_forms(form: str, code: str) -> None:
    assert state(form) == mint("place", f"AU-{code}")


@pytest.mark.parametrize("form", ["", "N/A", "Australia", "AUS", "Bavaria", "Melbourne"])
def test_what_is_no_state_is_none(form: str) -> None:
    assert state(form) is None


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("Melbourne", "Melbourne"), ("(Warringah", "Warringah"), ("(Kooyong)", "Kooyong"), ("O'Connor", "O'Connor"),
        ("Eden-Monaro", "Eden-Monaro"), ("Northern Territory", "Northern Territory"), (" New  England—", "New England"),
        ("PO", None), ("N/A", None), ("", None), ("()", None),
    ],
)  # fmt: skip
def test_an_electorate_is_cleared_of_what_is_no_name(form: str, name: str | None) -> None:
    assert electorate(form) == name


def test_what_says_nothing_is_told_from_what_is_unknown() -> None:
    assert is_nothing("N/A")
    assert is_nothing(" ")
    assert not is_nothing("Whig")


def recorded(shared: Path) -> Iterator[tuple[str, str, date]]:
    """What the real files record of parties, states and chambers: the kind, the form and the day."""
    for path in sorted((shared / "data" / "hansard").glob("*.xml")):
        text = path.read_text(encoding="utf-8", errors="replace")
        found = re.search(r"<date>([0-9-]{10})</date>", text)
        day = date.fromisoformat(found[1]) if found else date(int(path.stem), 12, 5)
        for tag, name in (("party", "party"), ("chamber", "chamber"), ("PARTY", "party"), ("CHAMBER", "chamber")):
            for match in re.finditer(rf'<{tag}>([^<]*)</{tag}>|\b{tag} ?= ?"([^"]*)"', text):
                yield name, match[1] or match[2] or "", day
    csv.field_size_limit(10**9)
    for path in sorted((shared / "data" / "hansard" / "csv").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                day = date.fromisoformat(path.stem)
                yield "party", row["party"], day
                yield "state", row["state"], day
                yield "flag", row["senate_flag"], day


def known(kind: str, form: str, day: date) -> bool:
    if kind == "party":
        return party(form, day) is not None
    return {"chamber": chamber, "state": state, "flag": chamber_of_flag}[kind](form) is not None


def test_every_form_in_the_real_files_is_known(shared: Path) -> None:
    found = [each for each in recorded(shared) if not is_nothing(each[1])]
    assert Counter(each for each in found if not known(*each)) == Counter()
