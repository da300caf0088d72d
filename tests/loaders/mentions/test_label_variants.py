"""A name stands in text in its other number and other spellings too, and some names are not searched for."""

from __future__ import annotations

import pytest

from loaders.mentions.label_variants import build_patterns, is_acronym, is_pronounceable, primary_language, unfit_reason


def spelled(label: str, language: str) -> set[str]:
    return {" ".join(pattern.words) for pattern in build_patterns(label, language)}


@pytest.mark.parametrize(
    ("label", "language", "expected"),
    [
        ("policy", "en", {"policy", "policies"}),
        ("policies", "en", {"policies", "policy", "policie"}),
        ("gas", "en", {"gas", "gases"}),
        ("gases", "en", {"gases", "gas", "gase", "gasis"}),
        ("emissions", "en", {"emissions", "emission"}),
        ("news", "en", {"news"}),
        ("economics", "en", {"economics"}),
        ("analysis", "en", {"analysis", "analyses"}),
        ("city council", "en", {"city council", "city councils"}),
        ("énergie renouvelable", "fr", {"énergie renouvelable", "énergies renouvelables"}),
        ("emisión", "es", {"emisión", "emisiones"}),
        ("emissões", "pt", {"emissões", "emissão", "emissõe"}),
        ("Wärmepumpe", "de", {"wärmepumpe"}),
        ("bio-fuel", "en", {"bio fuel", "bio fuels", "biofuel", "biofuels"}),
        ("R&D", "en", {"r and d"}),
    ],
)
def test_the_spellings_of_a_name(label: str, language: str, expected: set[str]) -> None:
    assert spelled(label, language) == expected


def test_each_noun_phrase_has_its_own_number() -> None:
    assert spelled("source of energy", "en") >= {"source of energy", "sources of energy", "sources of energies"}


def test_plurals_before_a_noun_may_stand_in_the_singular() -> None:
    assert spelled("emissions reduction", "en") == {
        "emissions reduction", "emission reduction", "emissions reductions", "emission reductions",
    }  # fmt: skip
    assert "greenhouse gas emissions target" in spelled("greenhouse gases emissions target", "en")
    assert spelled("customs office", "en") == {"customs office", "customs offices"}
    assert {pattern.words: pattern.exact for pattern in build_patterns("EVs charging", "en")}[("ev", "charging")] == (
        "EV",
        None,
    )


def test_an_acronym_may_be_written_apart_from_its_digits_and_in_the_plural() -> None:
    found = {pattern.words: pattern.exact for pattern in build_patterns("CO2", "en")}
    assert found == {("co2",): ("CO2",), ("co", "2"): ("CO", None)}
    found = {pattern.words: pattern.exact for pattern in build_patterns("NDC", "en")}
    assert found == {("ndc",): ("NDC",), ("ndcs",): ("NDCs",)}


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("x", "one character"),
        ("水", "one character"),
        ("", "no letter"),
        (".*", "no letter"),
        ("2030", "no letter"),
        ("of the", "stop words"),
        ("As", "stop words"),
        ("oz", "word of two letters"),
        ("to", "stop words"),
        ("word " * 30, "more than"),
        ("สภาพภูมิอากาศ" * 6, "more than"),
    ],
)
def test_names_that_say_nothing_are_not_searched_for(label: str, reason: str) -> None:
    assert reason in (unfit_reason(label, "en") or "")


@pytest.mark.parametrize(
    "label", ["solar", "GHG", "WHO", "EU", "水力", "[a-z]+ energy", "A1 area", "การเปลี่ยนแปลงสภาพภูมิอากาศ"]
)
def test_names_that_say_something_are_searched_for(label: str) -> None:
    assert unfit_reason(label, "en") is None


@pytest.mark.parametrize("word", ["GHG", "NDCs", "CO2", "kWh", "tCO2e", "EU", "UNFCCC", "NOx"])
def test_what_is_known_by_its_capitals(word: str) -> None:
    assert is_acronym(word)


@pytest.mark.parametrize("word", ["Energy", "solar", "HYDROPOWER", "2030", "água"])
def test_what_is_not(word: str) -> None:
    assert not is_acronym(word)


@pytest.mark.parametrize(("word", "expected"), [("WHO", True), ("ACT", True), ("GHG", False), ("CO2", False)])
def test_what_in_capitals_may_be_a_word(word: str, expected: bool) -> None:
    assert is_pronounceable([word]) is expected


@pytest.mark.parametrize(
    ("tag", "expected"), [("en-GB", "en"), ("PT", "pt"), ("mul", ""), (None, ""), ("zh_TW", "zh"), ("nb", "no")]
)
def test_languages_are_compared_by_their_primary_tag(tag: str | None, expected: str) -> None:
    assert primary_language(tag) == expected
