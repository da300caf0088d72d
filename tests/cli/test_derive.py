"""Due derived graphs are listed by the status and computed by ``kg derive``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kg import bundle
from kg.data_directory import DataDirectory
from kg.provenance.load_records import RecordOrigin
from kg.provenance.shipped import infer_graphs
from kg.store.oxigraph import OxigraphStore
from loaders.with_record import LANGUAGES
from tests.cli.running import answer, run


@pytest.mark.long
def test_due_graphs_are_listed_and_derived(tmp_path: Path) -> None:
    data = tmp_path / "kg-data"
    answer("load", "climate", bundle.folder("fixtures") / "climate", "--data-dir", data)
    names = set(answer("derive", "--data-dir", data))
    assert names >= {"citations", "mentions", "alignments", "superclass", "about", "catalog"}
    assert answer("status", "--data-dir", data)["due"] == []
    DataDirectory(data).derivations.unlink()
    lost = answer("status", "--data-dir", data)["due"]
    assert "mentions" in {each.partition(" ")[0] for each in lost if each.endswith(" never derived")}
    assert set(answer("derive", "--data-dir", data)) == names
    assert answer("derive", "mentions", "--full", "--data-dir", data)["mentions"]["run"] is None
    assert run("derive", "speeches", "--data-dir", data).exit_code != 0
    assert answer("doctor", "--data-dir", data)["ok"]
    store = OxigraphStore(data, infer=infer_graphs)
    graph = next(each for each in store.graphs() if each.value.startswith(LANGUAGES.writes))
    origins = {graph: RecordOrigin("", (), [graph], LANGUAGES.get_rule())}
    store.commit({graph: store.graph(graph)[1:]}, LANGUAGES.start({}).describe(store, origins))
    store.close()
    found = json.loads(run("doctor", "--json", "--data-dir", data).stdout)
    assert [(each["kind"], each["where"]) for each in found["problems"]] == [("derived", graph.value)]
    assert answer("doctor", "--repair", "--data-dir", data)["repaired"]
    assert answer("doctor", "--data-dir", data)["ok"]
