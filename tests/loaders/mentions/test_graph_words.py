"""What is said to stand in no text of a graph does not; what is remembered of its words outlives a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from loaders.mentions.graph.concept_names import find_needles
from loaders.mentions.graph_words import Vocabularies
from loaders.mentions.label_variants import Label
from loaders.mentions.matcher import Matcher

GRAPHS = [NamedNode(f"urn:graph:{number}") for number in range(3)]
NAMES = ("solar panels", "bio-fuel", "R&D", "CO2", "policies", "énergie", "水力", "emissions trading", "U.S.A.")
TEXTS = st.lists(st.sampled_from((*NAMES, "policy", "emission", "solar", "panel", " ", "-\n", "&", ".")), max_size=8)


def filled(folder: Path, texts: dict[NamedNode, str], digest: str = "d") -> None:
    with Vocabularies(folder, "1") as vocabularies:
        for graph, text in texts.items():
            vocabularies.add(graph, digest, [text])


def lacking(folder: Path, words: set[str], digest: str = "d", version: str = "1") -> set[NamedNode]:
    with Vocabularies(folder, version) as vocabularies:
        return vocabularies.lacking([[word] for word in words], dict.fromkeys(GRAPHS, digest))


@settings(suppress_health_check=list(HealthCheck))
@given(TEXTS.map("".join), st.sampled_from(NAMES))
def test_where_a_name_is_found_its_words_are_not_lacking(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str
) -> None:
    folder = tmp_path_factory.mktemp("words")
    filled(folder, {GRAPHS[0]: text})
    if Matcher([Label("c", name, "en", "label")]).find(text, ["en"]):
        assert not lacking(folder, find_needles([(name, "en")], ["en"]))


def test_what_a_graph_lacks_is_known_of_most_words(tmp_path: Path) -> None:
    filled(tmp_path, {GRAPHS[0]: " ".join(f"word{number}" for number in range(5_000)), GRAPHS[1]: ""})
    assert lacking(tmp_path, {"word7"}) == {GRAPHS[1]}
    assert sum(GRAPHS[0] in lacking(tmp_path, {f"other{number}"}) for number in range(100)) >= 97


def test_only_the_content_that_was_read_counts(tmp_path: Path) -> None:
    filled(tmp_path, {GRAPHS[0]: "solar"})
    assert lacking(tmp_path, {"wind"}) == {GRAPHS[0]}
    assert lacking(tmp_path, {"wind"}, digest="other") == set()
    assert lacking(tmp_path, {"wind"}, version="2") == set()
    filled(tmp_path, {GRAPHS[0]: "wind"}, digest="other")
    assert lacking(tmp_path, {"wind"}, digest="other") == set()
    filled(tmp_path, {GRAPHS[0]: "wind"})
    assert lacking(tmp_path, {"wind"}) == set()


def test_a_record_that_was_not_written_whole_is_dropped_with_all_after_it(tmp_path: Path) -> None:
    filled(tmp_path, dict.fromkeys(GRAPHS, "solar"))
    whole = (tmp_path / "words.log").read_bytes()
    for end in (0, 3, len(whole) // 2, len(whole) - 1):
        (tmp_path / "words.log").write_bytes(whole[:end])
        assert len(lacking(tmp_path, {"wind"})) == (end > len(whole) // 3) + (end > 2 * len(whole) // 3)
        filled(tmp_path, {GRAPHS[2]: "wind and solar"})
        assert GRAPHS[2] not in lacking(tmp_path, {"wind"})
        assert GRAPHS[2] in lacking(tmp_path, {"hydrogen"})
    (tmp_path / "words.log").write_bytes(whole[:-1] + b"?")
    assert lacking(tmp_path, {"wind"}) == set(GRAPHS[:2])


def test_what_is_of_no_use_goes(tmp_path: Path) -> None:
    for number in range(5):
        filled(tmp_path, dict.fromkeys(GRAPHS, f"text {number}"), digest=str(number))
    before = (tmp_path / "words.log").stat().st_size
    with Vocabularies(tmp_path, "1") as vocabularies:
        vocabularies.add(GRAPHS[2], "5", ["text"])
        vocabularies.tidy({GRAPHS[0]: "4", GRAPHS[2]: "5"})
    assert (tmp_path / "words.log").stat().st_size < before / 3
    with Vocabularies(tmp_path, "1") as vocabularies:
        assert vocabularies.lacking([["wind"]], {GRAPHS[0]: "4", GRAPHS[1]: "4", GRAPHS[2]: "5"}) == {
            GRAPHS[0],
            GRAPHS[2],
        }


def test_begun_anew_nothing_is_known(tmp_path: Path) -> None:
    filled(tmp_path, dict.fromkeys(GRAPHS, "solar"))
    with Vocabularies(tmp_path, "1", reset=True) as vocabularies:
        assert vocabularies.lacking([["wind"]], dict.fromkeys(GRAPHS, "d")) == set()
        vocabularies.add(GRAPHS[0], "d", ["solar"])
    assert lacking(tmp_path, {"wind"}) == {GRAPHS[0]}
