"""The tokens of SPARQL."""

from __future__ import annotations

import contextlib
import re
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from kg.errors import InvalidInputError, QuerySyntaxError
from kg.sparql import lexer
from kg.sparql.guard import check_query, check_update, has_dataset_clause
from kg.sparql.lexer import MAX_AMBIGUOUS, escape_inner_dots, tokens, tokens_of_all_readings
from kg.sparql.service import find_clauses, parse_prologue
from tests.examples import dear

PIECES = st.sampled_from(
    ['"', "'", '"""', "'''", "\\", "#", "\n", "<", ">", "<a:b>", "ex:a", ":", "?x", "$y", "_:b", "1.5e3", "@en-GB",
     "SERVICE", "{", "}", "(", ")", "^^", "a.b", "ex:a\\-b%20c.", "<<(", "é", "\x00", " "]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_the_tokens_are_the_whole_text_in_order(query: str) -> None:
    cut = list(tokens(query))
    assert "".join(token.text for token in cut) == query
    assert [token.start for token in cut] == [sum(len(t.text) for t in cut[:i]) for i in range(len(cut))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?a <?b", ["variable:?a", "punctuation:<", "variable:?b"]),
        ("?a < ?b && ?c > ?d", ["variable:?a", "punctuation:<", "variable:?b", "punctuation:&&", "variable:?c",
                                "punctuation:>", "variable:?d"]),
        ("<http://e/#x> # c", ["iri:<http://e/#x>", "comment:# c"]),
        (r"ex:a\-b%20c.d.", [r"name:ex:a\-b%20c.d", "punctuation:."]),
        (":a : _:b.c", ["name::a", "name::", "blank:_:b.c"]),
        ('"a\\"b"@en-GB', ['string:"a\\"b"', "language:@en-GB"]),
        ('"""a"b""c\n"""^^xsd:x', ['string:"""a"b""c\n"""', "punctuation:^^", "name:xsd:x"]),
        ("''''a'", ["string:''", "string:''", "word:a", "other:'"]),
        ("1.5e3.", ["number:1.5e3", "punctuation:."]),
        ('"a\nb"', ['other:"', "word:a", "word:b", 'other:"']),
        ("_a-b:c d-e:f g-h", ["word:_a", "punctuation:-", "name:b:c", "name:d-e:f", "word:g", "punctuation:-",
                               "word:h"]),
        (f"{'a-' * 99}b:c", [f"name:{'a-' * 99}b:c"]),
        ("a.b.:c", ["word:a", "punctuation:.", "word:b", "punctuation:.", "name::c"]),
        ("<<( ?s a 1 )>>", ["punctuation:<<(", "variable:?s", "word:a", "number:1", "punctuation:)>>"]),
    ],
)  # fmt: skip
def test_tokens_are_cut_by_the_grammar(query: str, expected: list[str]) -> None:
    assert [f"{token.kind}:{token.text}" for token in tokens(query) if token.kind != "space"] == expected


def test_both_readings_of_an_ambiguous_less_than_are_found() -> None:
    found = {(token.kind, token.text) for _, token in tokens_of_all_readings("FILTER(?a <1)#>'\nSERVICE ex:a {}")}
    assert ("iri", "<1)#>") in found
    assert ("word", "SERVICE") in found


HOSTILE = [
    "a-", "a.", "é-", "a:b-", "<a#>", "<a'>", "?x<#'>", "?x<a'>", "'''\\", '"""\\q"""', ":a.", "(", ".", "a", "\\", "<",
    "#\n", "#", '"', "'", "SERVICE ", "SERVICE", "SERVICESILENT ", "SERVICE <", "SERVICE#\n", "trueSERVICE<",
    "?a <SERVICE#>", "SERVICE:x ", "load:x ", ";LOAD", "PREFIX a: <a:> ", "ex:" + "." * 99, "_:" + "a." * 9, "@a-",
    "1.5e", "FROM ", "\u017f", "\\'", '"\\\'',
]  # fmt: skip


def seconds(text: str) -> float:
    """Return the processor time that all who look at a query's text take over `text`."""
    started = time.thread_time()
    for check in (
        lambda query: sum(1 for _ in tokens_of_all_readings(query)),
        check_query,
        check_update,
        has_dataset_clause,
        find_clauses,
        parse_prologue,
    ):
        with contextlib.suppress(InvalidInputError):
            check(text)
    return time.thread_time() - started


LOCAL = st.lists(st.sampled_from(["a", "Z", "7", "_", "-", ":", "%2E", "é", ".", "..", "\\.", "\\/"]), max_size=9)


@given(LOCAL.map("".join), st.sampled_from([" ", ". ", "; ", ", "]))
def test_a_name_with_dots_is_the_iri_that_the_standard_gives(local: str, after: str) -> None:
    local = f"a{local}z"
    expected = "http://e/" + local.replace("\\", "")
    store = Store()
    query = f'PREFIX s: <http://e/> SELECT (STR(s:{local}) AS ?iri) ("s:1.2.3" AS ?text) {{}} # s:1.2.3'
    [row] = store.query(escape_inner_dots(query))
    assert (row["iri"].value, row["text"].value) == (expected, "s:1.2.3")
    store.update(escape_inner_dots(f"PREFIX s: <http://e/> INSERT DATA {{ s:x s:p s:{local}{after.strip(' ;,')} }}"))
    assert [quad.object.value for quad in store] == [expected]


def test_a_text_of_many_readings_is_refused() -> None:
    text = "?a <b#> 'SERVICE'\n"
    assert check_query("ASK { " + text * MAX_AMBIGUOUS + "}") == "ASK"
    with pytest.raises(QuerySyntaxError, match=str(MAX_AMBIGUOUS)):
        check_query("ASK { " + text * (MAX_AMBIGUOUS + 1) + "}")
    check_query("ASK { " + "?a <http://e/#SERVICE> " * (MAX_AMBIGUOUS + 1) + "}")


@pytest.mark.measures_processor_time
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_more_than_linear_time(piece: str) -> None:
    """Four times the text, about four times the time: sixteen times would be a square."""
    size = 8_000 // len(piece)
    small = min(seconds(piece * size + "#\n" * 2_000) for _ in range(2))
    large = min(seconds(piece * 4 * size + "#\n" * 8_000) for _ in range(2))
    assert large < 8 * small + 0.05


@pytest.mark.long
@settings(max_examples=dear(25))  # each compiles a class of the whole of Unicode
@given(st.lists(st.tuples(st.characters(exclude_characters="-"), st.integers(0, 40)), min_size=1, max_size=6))
@example([("\U0010fff0", 40), ("\0", 0)])
def test_a_class_of_characters_is_that_which_names_them(ranges: list[tuple[str, int]]) -> None:
    pairs = [(ord(first), min(ord(first) + more, sys.maxunicode)) for first, more in ranges]
    found = re.compile(lexer._any_of("".join(f"{chr(first)}-{chr(last)}" for first, last in pairs) + "-"))
    near = {at for first, last in pairs for at in (first - 1, first, last, last + 1, ord("-"), 0, sys.maxunicode)}
    for at in near & set(range(sys.maxunicode + 1)):
        held = at == ord("-") or any(first <= at <= last for first, last in pairs)
        assert (found.fullmatch(chr(at)) is not None) == held, hex(at)
