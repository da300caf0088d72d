"""Texts that take long to read are read elsewhere: with the same outcome, within limits, and nearly free of charge."""

from __future__ import annotations

import threading
import time

import pytest

from kg.errors import (
    InvalidInputError,
    QueryBusyError,
    QueryForbiddenError,
    QuerySyntaxError,
    QueryTimeoutError,
)
from kg.queries import text_check
from kg.sparql import guard, service

PADDING = "# SERVICE FROM\n" * 300
BRACKETS = "SELECT * { " + "( )" * 100_000 + " }"
WORDS = "SELECT * { SERVICE " + "a-" * 60_000 + " }"


@pytest.mark.parametrize(
    ("query", "form", "names_dataset"),
    [
        ("SELECT * { ?s ?p ?o }", "SELECT", False),
        ("ASK FROM <a:b> { ?s ?p ?o }", "ASK", True),
        ("DESCRIBE <a:b>", "DESCRIBE", False),
        ("FORGET * { }", None, False),
    ],
)
def test_a_long_text_is_what_a_short_one_is(query: str, form: str | None, names_dataset: bool) -> None:
    for text in (query, PADDING + query, query + "\n" + PADDING):
        star = guard.Star(text.index("*"), ("s", "p", "o")) if "*" in query and form == "SELECT" else None
        assert text_check.check(text) == text_check.Checked(text, form, names_dataset, star)  # type: ignore[arg-type]
        assert text_check.find_form(text) == form


@pytest.mark.parametrize("query", ["DROP ALL", "SELECT * { SERVICE <a:b> {} }", "ASK { ?s ?p '\ud800' }", "(" * 300])
def test_a_long_text_is_refused_as_a_short_one_is(query: str) -> None:
    for text in (query, query + "\n" + PADDING):
        with pytest.raises((QueryForbiddenError, QuerySyntaxError)) as here:
            guard.check_query(text)
        with pytest.raises(here.type) as there:
            text_check.check(text)
        assert str(there.value) == str(here.value)


def test_clauses_of_a_long_text_are_found_and_one_that_never_ends_is_refused() -> None:
    query = PADDING + "PREFIX e: <e:> SELECT * { SERVICE e:x { ?a ?b ?c } }"
    found, prologue = text_check.find_clauses(query)
    assert (found, prologue) == (service.find_clauses(query), service.parse_prologue(query))
    assert [clause.endpoint for clause in found] == ["e:x"]
    with pytest.raises(InvalidInputError, match="20,000"):
        text_check.find_clauses("SELECT * { SERVICE <a:b> { " + "1 " * 30_000 + "} }")


def test_a_long_text_whose_dataset_stands_early_is_told_at_a_glance() -> None:
    long = "SELECT ?s FROM <a:b> { VALUES ?s { " + "<a:c> " * 1_000 + "} ?s ?p ?o }"
    assert guard.is_cheap_to_check(long)
    assert guard.is_cheap_to_check(long.replace("FROM <a:b> ", ""))
    assert not guard.is_cheap_to_check(long.replace("FROM <a:b> ", "# FROM\n"))
    assert not guard.is_cheap_to_check(long.replace("VALUES", "SERVICE <a:b> {} VALUES"))


def test_what_a_parser_says_of_a_long_text_is_explained() -> None:
    error = text_check.build_syntax_error("SELECT * { ?s foo:bar ?o }\n" + PADDING, "error at 1:15: expected X")
    assert "undeclared prefix foo:" in str(error)


@pytest.mark.measures_time
@pytest.mark.parametrize("text", [BRACKETS, WORDS], ids=["brackets", "words"])
def test_a_hostile_text_costs_this_process_next_to_nothing(text: str) -> None:
    started = time.process_time()
    guard.check_query(text)
    here = time.process_time() - started
    started = time.process_time()
    text_check.check(text)
    assert time.process_time() - started < here / 4


def test_a_text_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_check, "READING_S", 0.2)
    started = time.monotonic()
    with pytest.raises(QueryTimeoutError, match=r"within 0\.2 s"):
        text_check.check(BRACKETS * 4)
    assert time.monotonic() - started < 30


def test_few_are_read_at_once_and_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_check, "READING_S", 0.3)
    errors: list[Exception] = []
    together = threading.Barrier(8)  # or the last might come when the first have left

    def read() -> None:
        together.wait()
        try:
            text_check.check(BRACKETS * 4)
        except (QueryTimeoutError, QueryBusyError) as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 8
    assert {type(error) for error in errors} == {QueryTimeoutError, QueryBusyError}
    monkeypatch.undo()
    assert text_check.check(PADDING + "ASK {}").form == "ASK"


def test_a_reader_stays_for_the_next_text_and_is_replaced_when_it_died() -> None:
    text = PADDING + "ASK {}"
    assert text_check.check(text).form == "ASK"
    [*_, reader] = text_check._IDLE
    assert text_check.check(text).form == "ASK"
    assert text_check._IDLE[-1] is reader
    reader.kill()
    reader.process.wait()
    assert text_check.check(text).form == "ASK"
    assert reader not in text_check._IDLE
    text_check._end_idle()
    assert not text_check._IDLE
    assert reader.process.stdin is not None
    assert reader.process.stdin.closed
