"""What is found is what stands there: whole words, the longest name, nothing that is denied, at exact offsets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loaders.mentions.graph_words import filter_of, may_have
from loaders.mentions.label_variants import Kind, Label, build_patterns, fold_token
from loaders.mentions.matcher import Match, Matcher, filter_possible
from loaders.mentions.tokens import find_compounds, fold, join_compound, tokenize


def label(text: str, kind: Kind = "label", language: str | None = "en", concept: str | None = None) -> Label:
    return Label(concept or text, text, language, kind)


def found(text: str, *names: str | Label, languages: tuple[str, ...] = ("en",)) -> list[str]:
    """What is found of `names` in `text`, as it stands there."""
    matcher = Matcher(name if isinstance(name, Label) else label(name) for name in names)
    return [text[match.start : match.end] for match in matcher.find(text, languages)]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("solar energy", "Solar  energy, SOLAR-ENERGY", ["Solar  energy", "SOLAR-ENERGY"]),
        ("solar energy", "solar\nenergy and solar\u00a0energy.", ["solar\nenergy", "solar\u00a0energy"]),
        ("solar energy", "solar – energy; solar, energy; solar. Energy", []),
        ("ice", "The price of rice, twice on ice.", ["ice"]),
        ("policy", "Policies and the policy's aims; policymaker", ["Policies", "policy"]),
        ("biofuel", "Biofuels, bio-fuel and bio-\nfuels", ["Biofuels", "bio-fuel", "bio-\nfuels"]),
        ("renewable", "re\u00adnewable, renew-\nable, renew- able", ["re\u00adnewable", "renew-\nable", "renew- able"]),
        ("low-carbon", "low carbon, low-\ncarbon, lowcarbon", ["low carbon", "low-\ncarbon", "lowcarbon"]),
        ("wind energy", "wind- and solar energy", []),
        ("flood", "ﬂoods and ＦＬＯＯＤ", ["ﬂoods", "ＦＬＯＯＤ"]),
        ("CO2", "CO₂, CO 2, CO2 and co2", ["CO₂", "CO 2", "CO2"]),
        ("farmers' rights", "farmers’ rights and farmers rights", ["farmers’ rights", "farmers rights"]),
        ("R&D", "R&D, R & D", ["R&D", "R & D"]),
        ("emission", "emissions² of", ["emissions"]),
        ("renewable", "non-renewable and renewable", ["renewable"]),
        ("[a-z]+ power|", "[a-z]+ power| but not wind power", ["[a-z]+ power|"]),
        ("U.S.", "the U.S. and the US, not us", ["U.S.", "US"]),
    ],
)  # fmt: skip
def test_a_name_is_found_in_what_may_stand_for_it(name: str, text: str, expected: list[str]) -> None:
    assert found(text, name) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("GHG", "GHG and GHGs, ghg", ["GHG", "GHGs"]),
        ("WHO", "who asked the WHO?", ["WHO"]),
        ("WHO", "THOSE WHO ARE LIABLE", []),
        ("GHG", "NATIONAL GHG INVENTORY", ["GHG"]),
        ("ACT", "ACT", ["ACT"]),
        ("Paris Agreement", "PARIS AGREEMENT, paris agreement", ["PARIS AGREEMENT", "paris agreement"]),
        ("CLIMATE CHANGE ACT", "the Climate Change Act", ["Climate Change Act"]),
        ("GHG emissions", "GHG Emissions, ghg emissions", ["GHG Emissions"]),
        ("kWh", "5 kWh, 5 kwh", ["kWh"]),
    ],
)
def test_capitals_count_where_a_name_is_known_by_them(name: str, text: str, expected: list[str]) -> None:
    assert found(text, name) == expected


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (("energy", "solar energy", "solar"), "solar energy", ["solar energy"]),
        (("greenhouse gas", "gas trading"), "greenhouse gas trading", ["greenhouse gas"]),
        (("carbon market", "market for credits"), "carbon market for credits", ["market for credits"]),
    ],
)  # fmt: skip
def test_the_longest_name_of_a_concept_wins(names: tuple[str, ...], text: str, expected: list[str]) -> None:
    assert found(text, *(label(name, concept="c") for name in names)) == expected


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (("energy", "solar energy", "solar"), "solar energy", {"solar": True, "solar energy": False, "energy": True}),
        (("gas", "greenhouse gas", "greenhouse gas trading"), "greenhouse gas trading, gas",
         {"greenhouse gas trading": False, "greenhouse gas": True, "gas": False}),
        (("greenhouse gas", "gas trading"), "greenhouse gas trading", {"greenhouse gas": False, "gas trading": False}),
    ],
)  # fmt: skip
def test_names_of_other_concepts_are_found_and_marked_within_a_longer_one(
    names: tuple[str, ...], text: str, expected: dict[str, bool]
) -> None:
    matches = Matcher(label(name) for name in names).find(text, ["en"])
    assert {match.concept: match.within is not None for match in matches} == expected
    for match in matches:
        if match.within is not None:
            assert text[slice(*match.within)] in names
            assert match.within[0] <= match.start < match.end <= match.within[1]


def test_what_is_too_long_to_be_written_so_leaves_the_shorter_name() -> None:
    assert found("solar energyscape", "solar energy", "solar") == ["solar"]


def test_a_negative_name_suppresses_its_own_concept_alone() -> None:
    names = [
        label("plant", concept="factory"),
        label("plant", concept="flora"),
        label("power plant", "negative", concept="flora"),
    ]
    text = "A power plant among plants."
    matches = [(match.concept, text[match.start : match.end]) for match in Matcher(names).find(text, ["en"])]
    assert matches == [("factory", "plant"), ("factory", "plants"), ("flora", "plants")]


def test_a_concept_yields_to_one_that_it_is_not_to_be_confused_with() -> None:
    names = [label("power", concept="energy"), label("political power", concept="politics")]
    matcher = Matcher(names, {"energy": ["politics"]})
    assert [match.concept for match in matcher.find("political power and power", ["en"])] == ["politics", "energy"]


@pytest.mark.parametrize(
    ("kinds", "confusable", "expected"),
    [
        (("label", "label"), {}, ["a", "b"]),
        (("label", "alias"), {}, ["a", "b"]),
        (("label", "label"), {"a": ["b"]}, ["b"]),
        (("label", "label"), {"a": ["b"], "b": ["a"]}, ["a", "b"]),
        (("label", "alias"), {"a": ["b"], "b": ["a"]}, ["a"]),
    ],
)
def test_a_name_of_two_concepts_is_a_mention_of_both_unless_they_are_told_apart(
    kinds: tuple[Kind, Kind], confusable: dict[str, list[str]], expected: list[str]
) -> None:
    matcher = Matcher(
        [label("georgia", kind, concept=name) for name, kind in zip("ab", kinds, strict=True)], confusable
    )
    assert [match.concept for match in matcher.find("in Georgia", ["en"])] == expected


def test_a_concept_is_mentioned_once_by_its_label_though_the_words_are_another_name_too() -> None:
    matcher = Matcher([label("tax", "alias", concept="c"), label("taxes", concept="c")])
    assert matcher.find("taxes", ["en"]) == [Match(0, 5, "c", "label")]


@pytest.mark.parametrize(
    ("tag", "languages", "expected"),
    [
        ("en", ("en-GB",), True),
        ("en-GB", ("en",), True),
        ("fr", ("en",), False),
        ("fr", ("en", "fr"), True),
        ("fr", (), False),
        ("fr", ("und",), False),
        ("mul", (), True),
        (None, ("en",), True),
        ("mul", ("de",), True),
    ],
)
def test_a_name_counts_in_text_of_its_language(tag: str | None, languages: tuple[str, ...], expected: bool) -> None:
    assert bool(found("gaz", label("gaz", language=tag), label("water"), languages=languages)) is expected


def test_inflection_is_that_of_the_language_of_the_text() -> None:
    names = [label("énergie renouvelable", language="fr"), label("energía solar", language="es")]
    assert found("les énergies renouvelables", *names, languages=("fr",)) == ["énergies renouvelables"]
    assert found("energías solares", *names, languages=("es",)) == ["energías solares"]


def test_scripts_without_spaces_need_none() -> None:
    names = [label("再生可能エネルギー", language="ja"), label("水力", language="ja")]
    assert found("水力と再生可能エネルギーの政策", *names, languages=("ja",)) == ["水力", "再生可能エネルギー"]
    assert found("エネルギー", label("エネ", language="ja"), languages=("ja",)) == []


@pytest.mark.long
def test_thirty_thousand_names_are_found_each() -> None:
    names = [label(f"thing{number} alpha") for number in range(30_000)]
    matcher = Matcher(names)
    assert [match.concept for match in matcher.find("Thing29999 alphas, thing0 alpha", ["en"])] == [
        "thing29999 alpha",
        "thing0 alpha",
    ]


def test_what_no_text_is_searched_for_is_told() -> None:
    matcher = Matcher([label("x"), label(".*"), label("the"), label("water")])
    assert [each.text for each, _ in matcher.unfit] == ["x", ".*", "the"]
    assert found("x the .* water", "x", ".*", "the", "water") == ["water"]


NAMES = (
    "solar energy",
    "bio-fuel",
    "CO2",
    "GHG",
    "ﬂood",
    "énergie",
    "re\u00adnew",
    "U.S.",
    "R&D",
    "policy",
    "水力",
    "gas",
)
PIECES = (
    *NAMES,
    "Solar",
    "ENERGIES",
    "-\n",
    "- ",
    "–",
    " ",
    "’s",
    "²",
    "́",
    "co",
    "2",
    "non-",
    "s",
    ".",
    "\u200b",
    "ss",
)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("bio-\nfuels s")
@example("\u200b.U.S.solar energy")
@example("\u200b-\nsolar energy-\n\u200b")
def test_the_words_at_the_offsets_are_a_spelling_of_the_name(text: str) -> None:
    matcher = Matcher(label(name) for name in NAMES)
    for match in matcher.find(text, ["en"]):
        words = text[match.start : match.end]
        readings = [tokenize(words)]
        for start, end in find_compounds(words):
            readings.append(tokenize(words[:start] + join_compound(words[start:end]) + words[end:]))
        spellings = {pattern.words for pattern in build_patterns(match.concept, "en")}
        assert any(tuple(fold_token(token, "en") for token in reading) in spellings for reading in readings)
        assert words == words.strip(" \n\u200b\u00ad")


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_matches_of_one_concept_never_overlap(text: str) -> None:
    spans = sorted(
        (match.start, match.end) for match in Matcher(label(name, concept="c") for name in NAMES).find(text, ["en"])
    )
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.integers(0, len(NAMES)))
def test_more_concepts_never_take_mentions_of_another(text: str, count: int) -> None:
    def places(names: Sequence[str]) -> set[tuple[int, int, str]]:
        return {match[:3] for match in Matcher(label(name) for name in names).find(text, ["en"])}

    few, all_names = NAMES[:count], NAMES
    assert places(few) == {place for place in places(all_names) if place[2] in few}


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.sampled_from(["en", None, "fr"]))
def test_leaving_out_names_that_cannot_stand_in_a_text_loses_nothing(text: str, language: str | None) -> None:
    names = [label(name, language=language) for name in (*NAMES, "person", "people", "foot", "foes", "ox of water")]
    languages = [language] if language else ["en"]
    assert Matcher(filter_possible(names, [text])).find(text, languages) == Matcher(names).find(text, languages)


def test_a_name_whose_modifier_is_in_the_singular_is_not_left_out() -> None:
    names = [label(name) for name in ("emissions reduction", "resources policies", "EVs charging points")]
    text = "Emission reductions, resource policy, an EV charging point."
    assert len(Matcher(names).find(text, ["en"])) == 3
    assert Matcher(filter_possible(names, [text])).find(text, ["en"]) == Matcher(names).find(text, ["en"])


def test_names_that_cannot_stand_in_a_text_are_left_out() -> None:
    words = ["".join(random.Random(number).choices("abcdefghij", k=8)) for number in range(2_000)]
    names = [label(f"{first} {second}") for first, second in pairwise(words)]
    assert len(list(filter_possible(names, [f"about {words[5]} {words[6]}s here"]))) < 10


def test_marks_that_mean_nothing_are_no_part_of_what_is_found() -> None:
    [match] = Matcher([label("flood")]).find("\u200b\u2060flood\u200b plains", ["en"])
    assert (match.start, match.end) == (2, 7)


ARABIC = ("طاقة", "الطاقة المتجددة", "تغير المناخ", "المناخ", "انبعاثات", "غازات دفيئة", "حرية", "سائل", "ريح")
HEBREW = ("אקלים", "שינוי אקלים", "אנרגיה מתחדשת", "פליטות", "גירה")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("والمناخ", ["المناخ"]),
        ("فالمناخ وبالمناخ", ["المناخ", "المناخ"]),
        ("للمناخ وللمناخ", ["مناخ", "مناخ"]),  # the article is one letter of two here
        ("لتغير المناخ وبتغير المناخ", ["تغير المناخ", "تغير المناخ"]),
        ("كالطاقة المتجددة", ["الطاقة المتجددة"]),
        ("للطاقة المتجددة", ["طاقة المتجددة"]),
        ("بالانبعاثات وانبعاثات", ["انبعاثات", "انبعاثات"]),
        ("الغازات الدفيئة وغازات الدفيئة", ["غازات الدفيئة", "غازات الدفيئة"]),
        ("وَالمُنَاخِ والمنـــاخ", ["المُنَاخِ", "المنـــاخ"]),
        ("والم\u200cناخ وال\u00adمناخ \u202bوالمناخ\u202c", ["الم\u200cناخ", "ال\u00adمناخ", "المناخ"]),
        ("إنبعاثات", ["إنبعاثات"]),
        ("بطاقة وسائل بحرية وريح", []),  # a card, means, marine; a short name after a conjunction
        ("بترول الماء", []),
    ],
)
def test_an_arabic_name_is_found_after_clitics_and_its_span_is_without_them(text: str, expected: list[str]) -> None:
    names = [label(name, language="ar") for name in ARABIC]
    longest = [match for match in Matcher(names).find(text, ["ar"]) if match.within is None]
    assert [text[match.start : match.end] for match in longest] == expected
    assert Matcher(filter_possible(names, [text])).find(text, ["ar"]) == Matcher(names).find(text, ["ar"])
    assert all(may_have(filter_of([text]), [list(map(fold, tokenize(match.concept)))]) for match in longest)


FURTHER_ARABIC = (
    "الاقتصاد", "البرلمان", "القاهرة", "الزراعة", "الأردن", "المملكة العربية السعودية", "مجلس النواب", "حقوق الإنسان",
    "التنمية المستدامة", "الأمم المتحدة", "معالجة مياه الصرف الصحي", "تحلية المياه", "كفاءة الطاقة", "وزارة البيئة",
)  # fmt: skip


@pytest.mark.parametrize("name", FURTHER_ARABIC)
def test_an_arabic_name_is_found_after_all_conjunctions_and_prepositions(name: str) -> None:
    for conjunction, preposition in product(("", "و", "ف"), ("", "ب", "ك", "ل")):
        rest = name
        if preposition == "ل" and name.startswith("ال"):
            rest = "ل" + name.removeprefix("ال")  # the article is one letter here
        text = f"ذكر {conjunction}{preposition}{rest} في التقرير"
        [match] = Matcher([label(name, language="ar")]).find(text, ["ar"])
        assert fold(text[match.start : match.end]) in (fold(name), fold(name.removeprefix("ال")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("לאקלים ובאקלים, מהאקלים ושהאקלים", ["אקלים"] * 4),
        ("ולשינוי האקלים", ["שינוי האקלים"]),
        ("האנרגיה המתחדשת באנרגיה מתחדשת", ["אנרגיה המתחדשת", "אנרגיה מתחדשת"]),
        ("הַפְּלִיטוֹת", ["פְּלִיטוֹת"]),
        ("הגירה", []),  # immigration
    ],
)
def test_a_hebrew_name_is_found_after_clitics_and_its_span_is_without_them(text: str, expected: list[str]) -> None:
    names = [label(name, language="he") for name in HEBREW]
    longest = [match for match in Matcher(names).find(text, ["he"]) if match.within is None]
    assert [text[match.start : match.end] for match in longest] == expected


def test_clitics_are_removed_in_texts_of_their_language_alone_and_not_from_a_known_word() -> None:
    assert found("والمناخ", label("المناخ", language="ar"), languages=("fa",)) == []
    names = (label("لمعات ضوء", language="ar"), label("معات", language="ar"), label("كهرباء", language="ar"))
    assert found("لمعات", *names, languages=("ar",)) == []
    assert found("وكهرباء", *names, languages=("ar",)) == ["كهرباء"]
    assert found("والـCO2", label("CO2", language="ar"), languages=("ar",)) == ["CO2"]
    assert found("والـco2", label("CO2", language="ar"), languages=("ar",)) == []


@given(
    st.sampled_from(ARABIC[1:4]),
    st.sampled_from(["", "و", "ف", "ب", "ك", "وب", "فك"]),
    st.lists(st.sampled_from("\u0640\u064e\u0651\u200c\u00ad\u2067"), min_size=60, max_size=60),
)
def test_marks_within_a_name_and_its_clitics_do_not_hide_it(name: str, clitics: str, marks: list[str]) -> None:
    rest = iter(marks)
    marked = "".join(char if char == " " else char + next(rest) for char in name)
    before = "".join(char + next(rest) for char in clitics)
    text = f"قال {before}{marked} هنا"
    [match] = [each for each in Matcher([label(name, language="ar")]).find(text, ["ar"]) if each.within is None]
    assert fold(text[match.start : match.end].replace(" ", "")) == fold(name.replace(" ", ""))
    assert match.start >= text.index(before) + len(clitics)
