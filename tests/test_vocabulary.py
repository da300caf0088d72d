"""Identifiers are injective, accepted by the store, and percent-encoded as RFC 3986 has it."""

from __future__ import annotations

import inspect
import re
import typing
import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

from kg import vocabulary
from kg.errors import InvalidInputError
from kg.vocabulary import BASE, KG, PREFIXES, Kind, curie, mint, mint_part, parts_of, prefixed_name, segment, slug_of

SEGMENT = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+")
KINDS = [kind for kind in typing.get_args(Kind) if kind != "passage"]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
PARTS = st.lists(WORDS, min_size=1, max_size=3).map(tuple)
LANGUAGES = st.none() | st.sampled_from(["en", "zh-Hant-TW"]) | WORDS


def nfc(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part) for part in parts)


def is_kept(iri: NamedNode) -> bool:
    """Whether the engine takes `iri` in a query, keeps it, and writes and reads it as N-Quads."""
    store, quad = Store(), Quad(iri, KG.p, iri, iri)
    store.update(f"INSERT DATA {{ GRAPH {iri} {{ {iri} {KG.p} {iri} }} }}")
    text = store.dump(format=RdfFormat.N_QUADS)
    return list(store) == [quad] and list(parse(text, RdfFormat.N_QUADS)) == [quad]


@given(st.sampled_from(KINDS), PARTS, PARTS, st.data())
@example("document", ("a/b",), ("a", "b"), None)
@example("document", ("a#lang=en",), ("a",), None)
@example("place", ("a%2Fb",), ("a/b",), None)
@example("code", (".", "x"), ("x",), None)
@example("document", ("..",), (".",), None)
@example("graph", ("x", ".."), ("x", "y", "..", ".."), None)
def test_different_parts_give_different_identifiers(
    kind: Kind, first: tuple[str, ...], second: tuple[str, ...], data: st.DataObject | None
) -> None:
    languages = [None, None]
    if kind == "document" and data is not None:
        languages = [data.draw(LANGUAGES), data.draw(LANGUAGES)]
        assume("" not in languages)
    same = (nfc(first), languages[0] and nfc((languages[0],))) == (nfc(second), languages[1] and nfc((languages[1],)))
    one, other = mint(kind, *first, lang=languages[0]), mint(kind, *second, lang=languages[1])
    assert (one == other) is same
    assert is_kept(one)


@given(WORDS, st.integers(0, 10**9), WORDS, st.integers(0, 10**9), LANGUAGES, LANGUAGES)
def test_different_passages_have_different_identifiers(
    slug: str, index: int, slug2: str, index2: int, lang: str | None, lang2: str | None
) -> None:
    one, other = mint("passage", slug, str(index), lang=lang), mint("passage", slug2, str(index2), lang=lang2)
    same = (nfc((slug, lang or "")), index) == (nfc((slug2, lang2 or "")), index2)
    assert (one == other) is same
    assert is_kept(one)


@given(WORDS)
def test_a_segment_is_nfc_utf_8_percent_encoded_with_upper_case_hex(text: str) -> None:
    encoded = segment(text)
    assert SEGMENT.fullmatch(encoded)
    assert unquote(encoded, errors="strict") == unicodedata.normalize("NFC", text)
    assert segment(unicodedata.normalize("NFD", text)) == encoded


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("A-Za-z0-9._~", "A-Za-z0-9._~"),
        ("a b", "a%20b"),
        ("R1|H#2/3?4%", "R1%7CH%232%2F3%3F4%25"),
        ("é", "%C3%A9"),
        ("e\u0301", "%C3%A9"),
        ("\x00", "%00"),
        ("𝔘", "%F0%9D%94%98"),
    ],
)
def test_segments_by_example(text: str, encoded: str) -> None:
    assert segment(text) == encoded


def test_identifiers_have_the_forms_that_the_ontology_fixes() -> None:
    assert mint("document", "ira_1a2b").value == "cpr://doc/ira_1a2b"
    assert mint("document", "ira_1a2b", lang="en").value == "cpr://doc/ira_1a2b#lang=en"
    assert mint("passage", "ira_1a2b", "3").value == "cpr://doc/ira_1a2b#p=3"
    assert mint("passage", "ira_1a2b", "3", lang="en").value == "cpr://doc/ira_1a2b#p=3&lang=en"
    assert mint("family", "x").value == "cpr://family/x"
    assert mint("concept", "Q42").value == "cpr://concept/Q42"
    assert mint("graph", "src", "climate", "x").value == BASE + "graph/src/climate/x"
    assert mint("code", "blockType", "Text").value == BASE + "vocab/blockType/Text"
    for kind in ("place", "agent", "run", "snapshot", "commit", "rule"):
        assert mint(kind, "x").value == f"{BASE}id/{kind}/x"


@pytest.mark.parametrize(
    ("kind", "parts", "lang", "message"),
    [
        ("document", (), None, "document"),
        ("document", ("",), None, "[Ee]mpty part"),
        ("document", ("a", ""), None, "[Ee]mpty part"),
        ("document", ("a",), "", "[Ee]mpty part"),
        ("document", ("\ud800",), None, r"lone surrogate \(U\+D800\)"),
        ("passage", ("a",), None, "slug and a decimal index"),
        ("passage", ("a", "-1"), None, "slug and a decimal index"),
        ("passage", ("a", "07"), None, "07"),
        ("passage", ("a", "٣"), None, "slug and a decimal index"),
        ("passage", ("a", "1", "2"), None, "slug and a decimal index"),
        ("passage", ("a", "1"), "", "[Ee]mpty part"),
        ("place", ("DJI",), "en", "place"),
        ("sandwich", ("a",), None, "'sandwich'.* agent, bill, cession"),
    ],
)
def test_what_is_no_identifier_is_refused(kind: Kind, parts: tuple[str, ...], lang: str | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        mint(kind, *parts, lang=lang)


@given(WORDS, st.none() | st.just("en"))
def test_a_slug_is_found_again(slug: str, lang: str | None) -> None:
    wanted = unicodedata.normalize("NFC", slug)
    assert slug_of(mint("document", slug, lang=lang).value) == wanted
    assert slug_of(mint("passage", slug, "7", lang=lang).value) == wanted
    assert slug_of(mint("family", slug).value) == wanted


def test_a_slug_of_anything_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="is not a document, passage or family IRI"):
        slug_of("https://example.org/x")


def test_every_namespace_has_its_prefix() -> None:
    namespaces = {value.iri for value in vars(vocabulary).values() if isinstance(value, vocabulary.Namespace)}
    assert namespaces == set(PREFIXES.values())
    assert KG.Passage == KG["Passage"] == NamedNode(PREFIXES["kg"] + "Passage")
    with pytest.raises(AttributeError):
        inspect.unwrap(KG.__wrapped__)


def test_people_read_short_names_where_one_exists() -> None:
    assert curie(KG.Passage.value) == "kg:Passage"
    assert curie("cpr://doc/x#p=3") == "<cpr://doc/x#p=3>"
    assert curie(PREFIXES["kg"]) == f"<{PREFIXES['kg']}>"
    assert curie(PREFIXES["kg"] + "a/b") == f"<{PREFIXES['kg']}a/b>"
    assert prefixed_name(KG.Passage.value) == "kg:Passage"
    assert prefixed_name("cpr://doc/x#p=3") is None


def test_the_hash_is_sha_256_over_utf_8() -> None:
    assert vocabulary.sha256("é") == vocabulary.sha256("é".encode())
    assert vocabulary.sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.lists(st.tuples(WORDS, st.sampled_from(["utterance", "vote", "text"]), st.integers(0, 10**6)), min_size=2))
def test_a_numbered_part_has_an_identifier_of_its_own_that_begins_with_that_of_the_whole(
    parts: list[tuple[str, typing.Literal["utterance", "vote", "text"], int]],
) -> None:
    keys = {(unicodedata.normalize("NFC", word), kind, number) for word, kind, number in parts}
    minted = {mint_part(mint("speech", word), kind, number) for word, kind, number in parts}
    assert len(minted) == len(keys)
    assert all(is_kept(iri) for iri in minted)
    assert mint_part(mint("speech", "x"), "vote", 3).value == mint("speech", "x").value + "#vote=3"


def test_parts_of_an_iri_are_those_that_it_was_minted_from() -> None:
    parts = ("notes", "a b", "50 % + ä.md")
    assert parts_of("/".join(map(segment, parts)), "") == parts
    assert parts_of(BASE + "graph/src/" + "/".join(map(segment, parts)), BASE + "graph/src/") == parts
