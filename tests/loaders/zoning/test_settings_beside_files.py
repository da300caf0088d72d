"""Settings in a file next to a source fill in what the source does not state; options take precedence over them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from kg import bundle
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import KG, RDF
from loaders import quarantine_retry
from loaders.sources import load
from loaders.zoning.graph import table_mapping
from loaders.zoning.graph.table_mapping import FileSettings
from tests.examples import spread
from tests.loaders.conftest import MemoryIndex

pytestmark = pytest.mark.long

FIXTURES = bundle.folder("fixtures") / "zoning"
PLAIN = "<html><body><h1>Title 1</h1><section id='1_1'><h3>1.1 Name</h3><p>It is the code.</p></section></body></html>"


@pytest.fixture
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """A graph that is not in `tmp_path`, which the tests load; its index is in memory."""
    folder = tmp_path_factory.mktemp("kg")
    settings = Settings(data_dir=folder, _env_file=None)  # type: ignore[call-arg]
    with OxigraphStore(folder) as store:
        yield KnowledgeGraph(settings, store, cast(Any, MemoryIndex()), cast(Any, None))


def municipalities(kg: KnowledgeGraph) -> set[str]:
    return {
        quad.subject.value.rpartition("/")[2]
        for graph in kg.store.graphs()
        for quad in kg.store.graph(graph)
        if quad.predicate == RDF.type and quad.object == KG.Municipality and hasattr(quad.subject, "value")
    }


def test_a_folder_loads_whole_with_nothing_given(kg: KnowledgeGraph) -> None:
    report = load(kg, "zoning", [str(FIXTURES)])
    assert (report.rejections, report.loaded > 80) == ([], True)
    assert municipalities(kg) == {"us-ut-quarry-bend", "us-ct-lower-quill", "us-ct-upper-feign"}


def test_what_lies_beside_a_code_says_where_it_is_of(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(PLAIN)
    (tmp_path / "one.toml").write_text('[jurisdiction]\nname = "Lathe"\nstate = "Ohio"\n')
    (tmp_path / "two.html").write_text(PLAIN)
    (tmp_path / "two.toml").write_text('[jurisdiction]\nname = "Anvil"\n')
    (tmp_path / "jurisdiction.toml").write_text('[jurisdiction]\nname = "Chisel"\nstate = "ME"\n')
    (tmp_path / "three.html").write_text(PLAIN)
    report = load(kg, "zoning", [str(tmp_path / f"{name}.html") for name in ("one", "two", "three")])
    assert report.rejections == []
    assert municipalities(kg) == {"us-oh-lathe", "us-me-anvil", "us-me-chisel"}


def test_what_is_given_goes_before_what_lies_beside_and_not_before_the_source(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    (tmp_path / "one.html").write_text(PLAIN)
    (tmp_path / "one.toml").write_text('[jurisdiction]\nname = "Lathe"\nstate = "OH"\n')
    load(kg, "zoning", [str(tmp_path / "one.html")], state="VT")
    assert municipalities(kg) == {"us-vt-lathe"}
    report = load(kg, "zoning", [str(FIXTURES / "upper_feign.json")], state="VT")
    assert municipalities(kg) == {"us-vt-lathe", "us-ct-upper-feign"}
    [warning] = report.warnings
    assert "us-ct-upper-feign" in warning
    assert "not as us-vt-upper-feign" in warning


def test_a_flag_is_contradicted_only_by_what_the_file_says_of_the_same(kg: KnowledgeGraph, tmp_path: Path) -> None:
    code = {"municipality": "Lathe City", "sections": [{"section_id": "1", "title": "Name", "text": "It is the code."}]}
    (tmp_path / "one.json").write_text(json.dumps(code))
    [warning] = load(kg, "zoning", [str(tmp_path)], municipality="Lathe", state="OH").warnings
    assert "us-oh-lathe-city" in warning
    assert "not as us-oh-lathe." in warning
    assert load(kg, "zoning", [str(tmp_path)], municipality="lathe  city", state="OH").warnings == []


def test_a_mapping_that_is_given_goes_before_the_one_beside(kg: KnowledgeGraph, tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "towns.csv", tmp_path)
    (tmp_path / "towns.toml").write_text('name = "beside"\n[district]\ncode = "Nothing"\n[[use]]\ncolumn = "House"\n')
    report = load(kg, "zoning", [str(tmp_path / "towns.csv")])
    [rejection] = report.rejections
    assert "'beside' does not fit" in rejection.reason
    report = load(kg, "zoning", [str(tmp_path / "towns.csv")], mapping=str(FIXTURES / "towns.toml"))
    assert (report.loaded, report.rejections) == (2, [])


def test_a_row_that_was_kept_out_is_tried_again_by_what_lies_beside_its_table(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    shutil.copy(FIXTURES / "towns.toml", tmp_path)
    lines = (FIXTURES / "towns.csv").read_text(encoding="utf-8").splitlines()
    broken = lines[1].replace(",CT,", ",Nowhere,")
    (tmp_path / "towns.csv").write_text("\n".join([lines[0], broken, lines[2]]) + "\n", encoding="utf-8")
    report = load(kg, "zoning", [str(tmp_path / "towns.csv")])
    assert "'Nowhere'" in report.rejections[0].reason
    done = quarantine_retry.retry(kg, None, correction=None, by="ada", on_progress=None)
    assert done["quarantined"] == 1
    assert "'Nowhere'" in str(done), "it was read by the same mapping"


@pytest.mark.parametrize(
    ("text", "said"),
    spread(
        [
            ("[jurisdiction", "not TOML"),
            ('[jurisdiction]\nstate = "Nowhere"\n', "'Nowhere'"),
            ('[jurisdiction]\nplace = "X"\n', "'place'. Available: name, state"),
            ('[jurisdiction]\ncolumn = "Town"\n', "'column'. Available: name, state."),
            ('[[use]]\ncolumn = "Kiln"\n', "'use'. Available: jurisdiction. Missing [district]"),
            ("[jurisdiction]\nname = 3\n", "name is 3"),
            ('other = "X"\n', "'other'"),
        ],
        3,
    ),
)
def test_a_file_beside_that_is_wrong_keeps_out_its_source_and_no_other(
    kg: KnowledgeGraph, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "one.html").write_text(PLAIN)
    (tmp_path / "one.toml").write_text(text)
    shutil.copy(FIXTURES / "upper_feign.json", tmp_path)
    report = load(kg, "zoning", [str(tmp_path)])
    [rejection] = report.rejections
    assert said in rejection.reason
    assert "one.toml" in rejection.reason
    assert municipalities(kg) == {"us-ct-upper-feign"}


def test_a_long_value_is_cut_in_the_message(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(PLAIN)
    (tmp_path / "one.toml").write_text(
        '[jurisdiction]\nname = "Ash Dale"\nstate = "UT"\n' + '[[district]]\ncode = "R"\n' * 99
    )
    [rejection] = load(kg, "zoning", [str(tmp_path)]).rejections
    assert "district" in rejection.reason
    assert len(rejection.reason) < 300


def test_nothing_beside_says_nothing(tmp_path: Path) -> None:
    assert table_mapping.load_settings(tmp_path / "one.html") == FileSettings()


def test_a_source_that_nobody_places_is_kept_out_and_says_what_to_write(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(PLAIN)
    [rejection] = load(kg, "zoning", [str(tmp_path)]).rejections
    assert 'one.toml next to it: [jurisdiction] name = "...", state = "..."' in rejection.reason


def test_a_municipality_without_a_letter_is_refused(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(PLAIN)
    for name in ("", "--"):
        with pytest.raises(InvalidInputError, match="--municipality"):
            load(kg, "zoning", [str(tmp_path)], municipality=name, state="UT")
