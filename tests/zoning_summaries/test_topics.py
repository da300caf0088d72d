"""Questions to a real code lead to the sections that answer them at least as often as plain search does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg.zoning_summaries import code_tree
from kg.zoning_summaries.build import build
from loaders.sources import load
from tests.folders import open_graph
from tests.zoning_summaries.topics import ask, municipality_in, topics


@pytest.mark.long
def test_by_words_alone_a_descent_finds_what_plain_search_finds(shared: Path, tmp_path: Path) -> None:
    # With the embedding model this is measured by `python -m tests.benchmarks summaries`: vectors take a minute.
    source = shared / "data" / "zoning" / "spanish-fork"
    if not source.is_dir():
        pytest.skip("needs the code of Spanish Fork")
    with open_graph(tmp_path / "data") as kg:
        load(kg, "zoning", [str(source)], municipality="Spanish Fork", state="UT")
        place = municipality_in(kg)
        report = build(kg, place)
        assert (report.failed, report.waiting) == ({}, 0)
        keys = {iri.rpartition("/")[2] for iri in code_tree.cached_tree(kg, place).sections}
        assert all(topic.sections <= keys for topic in topics())
        asked = ask(kg, place, topics())
    mine, plain = sum(each.found for each in asked), sum(each.found_plainly for each in asked)
    # Pairs of words, by which plain search ranks too, gain it one question at rank 5. In a descent they gain none.
    assert mine >= plain - 1, [each.topic.asked for each in asked if each.found_plainly and not each.found]
    assert plain >= 8
