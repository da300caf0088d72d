"""Proactive negotiation, by RFC 9110, section 12."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.server.negotiation import (
    GRAPH_TYPES,
    RESULT_TYPES,
    SHORTHANDS,
    accepts_gzip,
    media_type_of,
    negotiate,
    shorthand,
)

JSON, XML, CSV, TSV = RESULT_TYPES
TURTLE, N_TRIPLES, RDF_XML, JSON_LD, TRIG, N_QUADS = GRAPH_TYPES


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("*", JSON),
        ("text/*", CSV),
        ("text/csv;q=0.5, text/tab-separated-values", TSV),
        ("*/*;q=0.1, application/sparql-results+xml;q=0.2", XML),
        ("application/*, application/sparql-results+json;q=0", XML),
        ("application/json", JSON),
        ("application/json;q=0, */*", XML),
        ("application/json;q=0, application/sparql-results+json", JSON),
        ("TEXT/CSV ; Q=1", CSV),
        ("text/csv;q=1.000, */*;q=0.999", CSV),
        ("text/csv, */*", CSV),
        ("text/html,application/xhtml+xml,*/*;q=0.8", JSON),
        ("text/csv; charset=utf-8", CSV),
        ("text/csv; charset=iso-8859-1", None),
        ("text/csv; header=absent, text/tab-separated-values;q=0.1", TSV),
        ("text/csv;q=0.1;header=present, text/tab-separated-values;q=0.5", TSV),
        ("text/csv;q=0.9, text/csv;header=present;q=0", None),
        ("text/csv;q=0", None),
        ("*/*;q=0", None),
        ("text/html", None),
        ("text/csv;q=nonsense", None),
        ("text/csv;q=1.5", None),
        ("text/csv;q=nan", None),
        (", ,;q=1, text/csv", CSV),
    ],
)
def test_the_accept_header_decides(accept: str, expected: str | None) -> None:
    assert negotiate(accept, RESULT_TYPES) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("*/*", TURTLE),
        ("text/plain", N_TRIPLES),
        ("application/xml", RDF_XML),
        ("application/json", JSON_LD),
        ("text/n3", TURTLE),
        ('application/ld+json;profile="http://www.w3.org/ns/json-ld#expanded"', JSON_LD),
        ('application/ld+json;profile="a,text/turtle;q=0";q=0.5, text/turtle;q=0.4', JSON_LD),
        ('application/ld+json;profile="a \\" b";q=0.5, text/turtle;q=0.6', TURTLE),
        ("application/n-quads, application/trig;q=0.9", N_QUADS),
        ("application/sparql-results+json", None),
    ],
)
def test_graphs_have_representations_of_their_own(accept: str, expected: str | None) -> None:
    assert negotiate(accept, GRAPH_TYPES) == expected


def test_several_accept_headers_are_one_list() -> None:
    assert negotiate(["text/csv;q=0.5", "application/sparql-results+xml;q=0.6"], RESULT_TYPES) == XML


@given(st.text(st.sampled_from('abt/*;,=q01."\\ -+'), max_size=80))
def test_no_header_is_too_odd(accept: str) -> None:
    assert negotiate(accept, RESULT_TYPES) in (*RESULT_TYPES, None)
    assert accepts_gzip([accept]) in (True, False)


@given(
    weights=st.fixed_dictionaries({media_type: st.integers(0, 1000) for media_type in RESULT_TYPES}),
    order=st.permutations(RESULT_TYPES),
)
def test_the_largest_weight_wins_in_any_order(weights: dict[str, int], order: list[str]) -> None:
    accept = ", ".join(f"{media_type};q={weights[media_type] / 1000:.3f}" for media_type in order)
    best = max(weights.values())
    expected = next((media_type for media_type in RESULT_TYPES if weights[media_type] == best), None) if best else None
    assert negotiate(accept, RESULT_TYPES) == expected


def test_each_shorthand_names_a_type_that_is_offered() -> None:
    assert {name for name in SHORTHANDS if shorthand(name, RESULT_TYPES)} == {"json", "xml", "csv", "tsv"}
    graphs = {shorthand(name, GRAPH_TYPES) for name in SHORTHANDS} - {None}
    assert graphs == set(GRAPH_TYPES)
    for media_type in (*RESULT_TYPES, *GRAPH_TYPES):
        assert shorthand(media_type, (*RESULT_TYPES, *GRAPH_TYPES)) == media_type


def test_clients_spell_shorthands_in_ways_of_their_own() -> None:
    assert shorthand("Turtle", GRAPH_TYPES) == TURTLE
    assert shorthand("rdf xml", GRAPH_TYPES) == RDF_XML  # rdf+xml, its plus decoded as a space
    assert shorthand("application/sparql-results json", RESULT_TYPES) == JSON
    for unknown in ("html", "text/html", ""):
        with pytest.raises(KeyError):
            shorthand(unknown, RESULT_TYPES)


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("x-gzip", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("br", False),
        ("identity", False),
        ("", False),
        ("notgzip", False),
    ],
)
def test_gzip_is_for_those_who_take_it(header: str, taken: bool) -> None:
    assert accepts_gzip([header]) is taken


def test_a_content_type_has_parameters() -> None:
    assert media_type_of('Text/Turtle; Charset="UTF-8" ; version=1.2') == (
        "text/turtle",
        {"charset": "UTF-8", "version": "1.2"},
    )
    assert media_type_of("") == ("", {})
