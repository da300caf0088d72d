"""Clauses of sentences, and the lines that a line is below. The texts are our own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.zoning.extraction.clauses import parse_clauses, split_statements
from loaders.zoning.extraction.outline import Outline
from tests.examples import dear

WORDS = ["inns", "are", "if", "they", "that", ",", "and", ";", "not", "may", "except", "shall", "5", "feet", ":"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Inns are permitted.", [("Inns", "main", "permitted", False)]),
        ("No inn shall be kept.", [("No inn", "main", "kept", True)]),
        ("Barns shall not be permitted.", [("Barns", "main", "permitted", True)]),
        ("Bars are conditionally permitted.", [("Bars", "main", "permitted", False)]),
        (
            "Inns are permitted if they front on a road, and kennels, stables and barns are prohibited.",
            [("Inns", "main", "permitted", False), ("kennels, stables and barns", "main", "prohibited", False)],
        ),
        (
            "Houses that are empty shall be 20 feet from a road.",
            [("", "relative", "are", False), ("Houses that are empty", "main", "be", False)],
        ),
        ("Schools, but not colleges, may be approved.", [("Schools", "main", "approved", False)]),
        ("The board may, after a hearing, allow inns.", [("The board", "main", "allow", False)]),
        ("Except where it is steep, a lot shall be 9 feet deep.", [("where it", "exception", "is", False)]),
    ],
)
def test_each_verb_has_a_clause_with_its_subject(text: str, expected: list[tuple[str, str, str, bool]]) -> None:
    found = [(each.subject, each.role, each.done, each.negated) for each in parse_clauses(text, 0, len(text))]
    assert found[: len(expected)] == expected


def test_a_statement_has_the_clauses_that_depend_on_it() -> None:
    text = "Inns are permitted, if they are small, and kennels are prohibited; they are noisy."
    said = [text[each[0].start : each[-1].end] for each in split_statements(text, 0, len(text))]
    assert said == ["Inns are permitted, if they are small", "kennels are prohibited", "they are noisy."]


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
@settings(max_examples=dear(150))
def test_clauses_follow_one_another_within_their_sentence(text: str) -> None:
    at = 0
    for each in parse_clauses(text, 0, len(text)):
        assert at <= each.start <= each.verb <= each.after <= len(text)
        assert each.start <= each.end <= len(text)
        at = each.start


def test_a_line_is_below_the_nearest_one_with_another_style_of_label() -> None:
    outline = Outline[str]()
    above = []
    for label in ("(a)", "(1)", "(2)", "i.", "(b)", "(c)"):
        outline.enter(label)
        above.append([each.label for each in outline.frames])
        outline.push(label, label)
    assert above == [[], ["(a)"], ["(a)"], ["(a)", "(2)"], [], []]
    assert outline.is_parent("(c)", "(1)")
    assert not outline.is_parent("(c)", "(d)")
    assert outline.find(lambda value: value or None) == "(c)"
