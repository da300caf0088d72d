"""Passages of documents that mention the item of a fact with its value."""

from __future__ import annotations

from pathlib import Path

from kg.tools.wikidata.verify import verify_fact
from loaders.sources import load
from tests.conftest import load_once, opened

TIDES = """# Tides

Ilsabet Varrow was born in Marrowick, and walked the shore there every day of her childhood.
"""
PORT = """# Port

Marrowick has a harbour. In 1861 the records of the port begin.
"""


def test_a_verdict_comes_with_texts_that_mention_item_and_value(tmp_path_factory, tmp_path: Path):
    (tmp_path / "tides.md").write_text(TIDES)
    (tmp_path / "port.md").write_text(PORT)
    with opened(load_once(tmp_path_factory, "wikidata")) as kg:
        load(kg, "files", [str(tmp_path)])
        result = verify_fact(kg, "Where was Ilsabet Varrow born?")
        assert result.verdict == "supported"
        assert [("Ilsabet Varrow was born" in each.passage.text) for each in result.passages] == [True]
        labels = {match.label for match in result.passages[0].concept_matches}
        assert labels == {"Ilsabet Varrow", "Marrowick"}
        # The year alone, without the item, is not a mention of the fact.
        dated = verify_fact(kg, "When was Ilsabet Varrow born?")
        assert (dated.verdict, dated.passages) == ("supported", [])
