"""Types and directions of citations by the words around them. The texts are our own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.citations.relationships import find_relationships
from loaders.citations.section_citations import find_citations
from tests.examples import dear


def of(text: str) -> tuple[str, str]:
    found = find_relationships(text, find_citations(text))[-1]
    return found.type, found.property


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("“Shed” has the meaning, as defined in § 3-1.", ("defines", "usesDefinitionIn")),
        ("Sheds are subject to the limitations of § 3-1.", ("constrains", "subjectTo")),
        ("A shed must comply with § 3-1.", ("requires", "mustComplyWith")),
        ("Except as otherwise provided in § 3-1, sheds are allowed.", ("excepts", "exceptAsProvidedIn")),
        ("Notwithstanding the provisions of § 3-1, sheds are allowed.", ("excepts", "notwithstanding")),
        ("This section supersedes § 3-1.", ("supersedes", "supersedes")),
        ("This chapter is adopted pursuant to § 3-1.", ("authorizes", "authorizedBy")),
        ("These regulations are promulgated under § 3-1.", ("authorizes", "authorizedBy")),
        ("By virtue of § 3-1, the town meeting enacts this bylaw.", ("authorizes", "authorizedBy")),
        ("The board acts pursuant to § 3-1.", ("references", "references")),
        ("A permit issued under this chapter and created under the authority of § 3-1.", ("references", "references")),
        ("A person licensed under § 3-1 is a trapper.", ("references", "references")),
        ("The fee shall be as determined under § 3-1.", ("delegates", "defersTo")),
        ("These rules are in addition to § 3-1.", ("supplements", "supplements")),
        ("The map in § 3-1 is hereby incorporated by reference.", ("incorporates", "incorporates")),
        ("Sheds (see § 3-1) are small.", ("references", "references")),
        ("Sheds and § 3-1.", ("unknown", "cites")),
        ("§ 3-1 shall apply.", ("requires", "mustComplyWith")),
        ("In a conflict between § 3-1 and a table, the table shall control.", ("unknown", "cites")),
    ],
)
def test_each_type_has_its_words_and_the_citing_direction(text: str, expected: tuple[str, str]) -> None:
    assert of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "This chapter is superseded by § 3-1.",
        "A shed is not subject to § 3-1.",
        "In this chapter § 3-1 shall not apply.",
        "This chapter is supplemented by § 3-1.",
        "This chapter does not modify, limit, or supersede § 3-1.",
        "The board acts pursuant to its bylaws and may make rules to implement § 3-1.",
        "Nothing herein requires compliance with § 3-1 by a farmer.",
        "Nothing in this title requires a farmer to comply with § 3-1.",
        "Nothing in this title exempts a sign from § 3-1.",
        "A shed is not required to comply with § 3-1.",
        "The owner need not meet the requirements of § 3-1.",
        "The requirements of § 3-1 do not apply to farms.",
        "Sheds are not permitted by § 3-1.",
        "A variance from the requirements of § 3-1 may be granted.",
        "It may be built without complying with § 3-1.",
    ],
)
def test_what_runs_the_other_way_or_is_denied_only_refers(text: str) -> None:
    last = find_relationships(text, [each for each in find_citations(text) if each.form == "section"])[0]
    assert last.property == "cites"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No shed shall be built except in conformity with § 3-1.", "mustComplyWith"),
        ("A permit shall not be issued unless the shed complies with § 3-1.", "mustComplyWith"),
        ("The height shall not exceed that required by § 3-1.", "mustComplyWith"),
        ("Nothing in this title requires a permit, except as provided in § 3-1.", "exceptAsProvidedIn"),
        ("No shed shall be a dwelling except as § 3-1 allows.", "exceptAsProvidedIn"),
        ("No shed shall be moved except as the board may allow under § 3-1.", "exceptAsProvidedIn"),
    ],
)
def test_a_negation_before_an_exception_denies_nothing(text: str, expected: str) -> None:
    assert of(text)[1] == expected


def test_members_of_a_list_share_the_words_before_it() -> None:
    text = "Sheds are subject to §§ 3-1, 3-2 and 3-3."
    assert {each.property for each in find_relationships(text, find_citations(text))} == {"subjectTo"}


def test_the_context_is_the_sentence_and_no_abbreviation_ends_it() -> None:
    text = "First one.\nSee Sec. 3-1 and 42 U.S.C. § 1983 as amended. Then another one.\nLast."
    found = find_relationships(text, find_citations(text))
    assert {each.context for each in found} == {"See Sec. 3-1 and 42 U.S.C. § 1983 as amended."}
    assert all(text[each.start : each.end] == each.context for each in found)


def test_words_of_another_sentence_do_not_count() -> None:
    assert of("Sheds are subject to review. Barns and § 3-1 differ.") == ("unknown", "cites")


WORDS = st.sampled_from(
    [
        "subject to ",
        "except ",
        "as provided in ",
        "§ 3-1",
        ". ",
        "\n",
        "; ",
        "The ",
        "U.S.C. ",
        "“",
        "notwithstanding ",
        "é",
        "(a) ",
        "of ",
    ]
)


@given(st.lists(WORDS, max_size=40).map("".join))
@settings(max_examples=dear(100))
def test_every_citation_has_one_relationship_in_a_sentence_that_holds_it(text: str) -> None:
    found = find_citations(text)
    related = find_relationships(text, found)
    assert [each.citation for each in related] == list(found)
    for each in related:
        assert text[each.start : each.end] == each.context
        assert each.start <= each.citation.start
        assert each.citation.end <= each.end
        assert 0 < each.confidence <= 1
