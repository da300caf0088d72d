"""A long text has several points in the index: it ranks by the best one, appears once and counts once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from kg.search.parts import split_parts
from kg.search.protocol import GraphUnits, IndexedUnit
from tests.search.conftest import WordIndex, graph_units

Open = Callable[..., WordIndex]

FILLER = "The council may amend any rule of this chapter. "
KENNEL = "A kennel is where dogs or cats are boarded. "
FENCE = "No fence is higher than a person. "


def build_section(*sentences: str) -> str:
    """Build a text of 60,000 characters with some sentences deep in it, far from each other."""
    return "".join(FILLER * 300 + sentence for sentence in sentences) + FILLER * 300


def read_span(index: WordIndex, text: str, query: str, **options: object) -> str:
    [first] = index.rank(query, limit=1, **options).candidates  # type: ignore[arg-type]
    assert first.span is not None
    assert first.span in {(part.start, part.end) for part in split_parts(text)}
    return text[slice(*first.span)]


def test_one_sentence_of_a_long_text_is_found(index: WordIndex) -> None:
    text = build_section(KENNEL, FENCE)
    index.replace(graph_units("a", text, "The council boarded a ship.", prelude="Zoning"))
    for _ in range(2):
        for query, sentence in (("kennel dogs cats boarded", KENNEL), ("council higher fence", FENCE)):
            for units in (None, ["urn:d:a#p=0", "urn:d:a#p=1"]):
                assert sentence in read_span(index, text, query, units=units)
                ranking = index.rank(query, units=units, limit=9, counted=9)
                assert [each.iri for each in ranking.candidates] == ["urn:d:a#p=0", "urn:d:a#p=1"]
                assert (ranking.candidates[0].words, ranking.candidates[1].span) == (1.0, None)
                assert {*ranking.counted} == {"urn:d:a#p=0", "urn:d:a#p=1"}
                assert (ranking.exhaustive, ranking.units) == (True, 2)
        assert "Zoning" not in read_span(index, text, "zoning council rule"), "offsets are those of the text"
        index.wait()  # and the same by words and meaning
    assert (index.status().units, index.count([]).units, index.count_units()) == (2, 2, 2)


def test_required_words_are_in_the_same_text_not_in_the_same_part(index: WordIndex) -> None:
    index.replace(graph_units("a", build_section(KENNEL, FENCE), build_section(KENNEL), build_section(FENCE)))
    for units in (None, [f"urn:d:a#p={number}" for number in range(3)]):
        found = index.rank("council", units=units, must=["kennel", "fence"], limit=9).candidates
        assert [each.iri for each in found] == ["urn:d:a#p=0"]


def test_no_part_of_an_earlier_text_is_left(index: WordIndex, open_index: Open) -> None:
    def put(graph: str, text: str) -> None:
        unit = IndexedUnit("urn:x", graph, "urn:d", text)
        index.replace({graph: GraphUnits(text[-40:], [unit])})

    def count(query: str) -> int:
        return sum(each.bm25 > 0 for each in index.rank(query, limit=9, mode="bm25").candidates)

    put("urn:g:a", build_section(KENNEL, FENCE))
    put("urn:g:a", build_section(KENNEL))
    assert (count("kennel"), count("fence"), index.status().units) == (1, 0, 1)
    put("urn:g:b", KENNEL)  # which has it from now on
    assert (count("kennel"), count("council"), index.status().units) == (1, 0, 1)
    put("urn:g:b", build_section(FENCE))
    index.close()
    index = open_index()
    assert (count("kennel"), count("fence"), index.status().units) == (0, 1, 1)
    index.remove(["urn:g:b"])
    assert (count("council"), index.status().units, index.status().pending_vectors) == (0, 0, 0)


def test_pages_are_exact_where_parts_of_texts_compete(index: WordIndex) -> None:
    chance = random.Random(7)
    words = [f"word{number}" for number in range(40)]
    texts = [" ".join(chance.choices(words, k=chance.choice((20, 900, 2_500)))) for _ in range(150)]
    index.replace(graph_units("a", *texts))
    index.wait()
    for query in ("word1 word2 word3", "word7", "word11 word12"):
        whole = index.rank(query, limit=150).candidates
        assert len({each.iri for each in whole}) == len(whole) == 150
        for limit in (1, 10, 60):
            assert index.rank(query, limit=limit).candidates == whole[:limit]
        listed = index.rank(query, units=[each.iri for each in whole], limit=150).candidates
        # how rare a word is, is measured among the candidates
        assert [replace(each, words=0.0) for each in listed] == [replace(each, words=0.0) for each in whole]
