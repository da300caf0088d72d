"""Whatever two sources say of the same thing, in either order, the store conforms to the dataset shapes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyoxigraph
import pytest

from kg.access.actors import HOLDER
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.queries.pool import QueryPool
from kg.shacl.data_graph import DataGraph
from kg.store.oxigraph import OxigraphStore
from kg.tools.registry import TOOLS
from kg.tools.shacl.background_validation import load_dataset_shapes
from loaders.sources import load
from tests.examples import spread
from tests.folders import copy_folder, without_models
from tests.tools.made_up import WordIndex

FIXTURES: Final = Path(__file__).parent.parent.parent / "fixtures"

CODE: Final = """CHAPTER 4. ZONING

Section 4.1 Districts established.

The town is divided into these districts: R-40 Residence District; VC Village Center District.

Section 4.2 Residence districts.

The following uses are permitted in the R-40 district:
A. Single-family dwelling.
B. Duplex.

Section 4.3 Works. Permitted uses.

The following uses are permitted in the I district, subject to section 4.2 and to 42 U.S.C. § 7401:
A. Foundry.
B. KILN.

The minimum lot area in the I district is 20,000 square feet.
"""
NOTES: Final = """# Notes on Upper Feign

Tobias Fennimore spoke of the Fictional Rooftop Energy Act 2023. See 42 U.S.C. § 7401 and the Paris Agreement.
Renewable energy (RE) is energy from sources that do not run out. A kiln needs an accessory dwelling unit.
"""
MEMBERS: Final = """person_id,name,other_names,chamber,seat,state,party,from,to
FZ1,Tobias Edwin Fennimore,Tobias Fennimore,Senate,,VIC,GRN,2019-05-18,
QX7,Marigold Quill,Senator Isolde Farrow,Senate,,NSW,LP,2013-09-07,2021-02-23
"""
SPEECHES: Final = """speech_id,title,speaker,party,chamber,electorate,state,date,text
0b7c1f52-9a3e-4d06-8f21-5c6e7d8a9b02,Kilns,Tobias Fennimore,ALP,Senate,,VIC,2024-03-21,"Kilns and the Paris Agreement."
0b7c1f52-9a3e-4d06-8f21-5c6e7d8a9b03,Kilns,Marigold Quill,Liberal,House,Pencarrow,WA,2024-03-21,"No. 42 U.S.C. § 7401."
"""
FEIGN: Final = {"municipality": "Upper Feign", "state": "CT"}
PERMISSIONS: Final = [
    {"district": "I", "use": "foundry", "permission": "conditional", "section_ref": "4.3"},
    {"district": "R-40", "use": "kiln", "permission": "prohibited"},
]
STANDARDS: Final = [{"district": "VC", "standard_type": "maximum height", "value": 30, "unit": "feet"}]
DEFINITIONS: Final = [{"term": "kiln", "definition_text": "An oven.", "section_ref": "4.2"}]
SECTION: Final = {"section_id": "4.2", "title": "Works", "level": 2, "raw_content":
                  "Uses permitted in the I district:\nA. Smithy.\nB. foundry.\nSee section 4.3."}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A source: files of its own, those of a fixture, or a call of a tool."""

    loader: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the loader or arguments of the tool; FOLDER is that of the files."""
    fixtures: Sequence[str] = ()
    files: dict[str, str] = field(default_factory=dict)
    tool: str = ""

    def write(self, folder: Path) -> None:
        """Write the files, which then can be changed."""
        folder.mkdir()
        for name in self.fixtures:
            copy = shutil.copytree if (FIXTURES / name).is_dir() else shutil.copyfile
            copy(FIXTURES / name, folder / Path(name).name)
        for name, text in self.files.items():
            (folder / name).write_text(text)

    def load(self, kg: KnowledgeGraph, folder: Path, *, prune: bool = False) -> None:
        """Load the files or call the tool."""
        options = json.loads(json.dumps(self.options).replace("FOLDER", str(folder)))
        if self.tool:
            [tool] = [each for each in TOOLS if each.name == self.tool]
            tool.call(kg, options)
        else:
            load(kg, self.loader, [str(folder)], prune=prune, **options)


TOWNS: Final = ["zoning/towns.csv", "zoning/towns.toml"]
SOURCES: Final = {
    "code": Source("zoning", FEIGN, files={"code.txt": CODE}),
    "climate": Source("climate", fixtures=["climate"]),
    "joined climate": Source("climate", fixtures=["joined/climate"]),
    "hansard": Source("hansard", fixtures=["hansard"]),
    "joined hansard": Source("hansard", fixtures=["joined/hansard"]),
    "speeches": Source("hansard", files={"speeches.csv": SPEECHES}),
    "fixture of members": Source("members", fixtures=["members"]),
    "members": Source("members", files={"members.csv": MEMBERS}),
    "parlamint": Source("parliament", fixtures=["parlamint"]),
    "title": Source("zoning", {"state": "UT"}, fixtures=["zoning/title_17_zoning.html"]),
    "json": Source("zoning", fixtures=["zoning/upper_feign.json"]),
    "joined zoning": Source("zoning", fixtures=["joined/zoning"]),
    "files": Source("files", fixtures=["files/handbook"]),
    "notes": Source("files", files={"notes.md": NOTES}),
    "concepts": Source("wikibase", {"base": "climate"}, fixtures=["wikibase/concepts.json"]),
    "wikidata": Source("wikibase", fixtures=["wikidata/entities.json"]),
    "permissions": Source(tool="kg_ingest_use_permissions", options={**FEIGN, "permissions": PERMISSIONS}),
    "standards": Source(tool="kg_ingest_dimensional_standards", options={**FEIGN, "standards": STANDARDS}),
    "definitions": Source(tool="kg_ingest_definitions", options={**FEIGN, "definitions": DEFINITIONS}),
    "section": Source(tool="kg_ingest_code_section", options={**FEIGN, **SECTION}),
    "sent speeches": Source(tool="ingest_speech", options={"file_path": "FOLDER/speeches.csv", "format": "csv"},
                            files={"speeches.csv": SPEECHES}),
    "sent notes": Source(tool="ingest_docs", options={"paths": ["FOLDER"]}, files={"notes.md": NOTES}),
    "towns": Source("zoning", {"mapping": "FOLDER/towns.toml"}, TOWNS),
}  # fmt: skip


@contextmanager
def opened(data_dir: Path, folder: Path) -> Iterator[KnowledgeGraph]:
    settings = without_models(data_dir, query_workers=1, ingest_folders=[folder])
    sender = SENDER.set(HOLDER)
    store = OxigraphStore(data_dir)
    try:
        with KnowledgeGraph(settings, store, WordIndex(), QueryPool(store, settings)) as kg:
            yield kg
    finally:
        SENDER.reset(sender)


def violations(kg: KnowledgeGraph) -> list[str]:
    with kg.store.snapshot(kg.store.statistics().generation) as snapshot:
        data = DataGraph.from_store(pyoxigraph.Store.read_only(str(snapshot.path)))
        return sorted(f"{each.focus}: {each.message}" for each in load_dataset_shapes().results(data) if each.blocks)


def change(folder: Path) -> None:
    """Shorten the files: the last third of the lines of a text or table, all of one of several files."""
    several = sorted(path for path in folder.rglob("*.*") if path.suffix != ".toml" and path.name != "README.md")
    for path in several[1:]:
        path.unlink()
    if several and several[0].suffix in (".csv", ".txt", ".md", ".html"):
        lines = several[0].read_text().splitlines(keepends=True)
        several[0].write_text("".join(lines[: -(len(lines) // 3)]))


def find_violations_of_pair(start: Path, folders: Path, one: str, other: str) -> list[str]:
    """Load `other`, `one` changed, and `other` changed into a copy of the store with `one`; find violations of each."""
    first, second = SOURCES[one], SOURCES[other]
    data, own = start.with_name("data"), start.with_name("files")
    copy_folder(start, data)
    for name in {one, other}:
        copy_folder(folders / name, own / name)
    found: list[str] = []
    with opened(data, own) as kg:
        for name, source, changed in ((other, second, False), (one, first, True), (other, second, True)):
            if changed:
                change(own / name)
            source.load(kg, own / name, prune=changed)
            found += [f"{one}, {other}: {each}" for each in violations(kg)]
    shutil.rmtree(data)
    shutil.rmtree(own)
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for name, source in SOURCES.items():
        source.write(folder / name)
    return folder


def load_first(start: Path, folders: Path, one: str) -> None:
    with opened(start, folders) as kg:
        SOURCES[one].load(kg, folders / one)
        assert violations(kg) == []


@pytest.mark.parametrize(("one", "other"), [("code", "towns"), ("code", "permissions")])
def test_a_table_by_which_a_text_says_more_leaves_shared_records_valid(
    tmp_path: Path, folders: Path, one: str, other: str
) -> None:
    load_first(tmp_path / "start", folders, one)
    assert find_violations_of_pair(tmp_path / "start", folders, one, other) == []


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("one", spread(list(SOURCES), 2))
def test_every_pair_of_sources_in_every_order_leaves_the_store_valid(tmp_path: Path, folders: Path, one: str) -> None:
    load_first(tmp_path / "start", folders, one)
    assert [
        each for other in SOURCES for each in find_violations_of_pair(tmp_path / "start", folders, one, other)
    ] == []
