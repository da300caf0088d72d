"""The two corpora on which ranking and relevance are measured: ObliQA's regulations and CLIMATE-FEVER's sentences.

Both are in the folder of real data next to the project. They are unlike each other on purpose: a change that helps on
one alone misleads. The first run embeds all passages (minutes); the indexes stay in the user's cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from platformdirs import user_cache_path

from kg.search.index_client import EdgeIndex
from kg.search.protocol import GraphUnits, IndexedUnit
from kg.settings import Settings
from kg.vocabulary import sha256

ROOT: Final = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Question:
    """A question in words and the IRIs of the passages that answer it."""

    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus on disk: its passages by graph, and its questions."""

    name: str
    load_passages: Callable[[], Mapping[str, GraphUnits]]
    load_questions: Callable[[], Sequence[Question]]

    @contextmanager
    def open_index(self) -> Iterator[EdgeIndex]:
        """Open the index of all passages, with every vector, and close it."""
        index = EdgeIndex(user_cache_path("quadcite") / "benchmarks" / self.name, Settings())
        try:
            graphs = self.load_passages()
            held = index.state()
            index.replace({graph: new for graph, new in graphs.items() if held.get(graph) != new.content_sha256})
            index.remove(held.keys() - graphs.keys())
            print(f"{self.name}: {index.status().pending_vectors} of {index.status().units} passages to embed")
            index.wait()
            yield index
        finally:
            index.close()


def find_corpora() -> Sequence[Corpus]:
    """Find the corpora whose files are present."""
    folder = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "retrieval"
    obliqa, climate = folder / "obliqa", folder / "climate_fever"
    known = (
        (obliqa, Corpus("obliqa", lambda: _load_regulations(obliqa), lambda: _load_obliqa_questions(obliqa))),
        (climate, Corpus("climate_fever", lambda: _load_sentences(climate), lambda: _load_claims(climate))),
    )
    return [corpus for path, corpus in known if path.is_dir()]


def _load_regulations(folder: Path) -> Mapping[str, GraphUnits]:
    graphs: dict[str, GraphUnits] = {}
    for path in sorted((folder / "StructuredRegulatoryDocuments").glob("*.json")):
        graph = f"urn:obliqa:graph:{path.stem}"
        # a few ids occur twice in a document; the dataset means the first
        units: dict[str, IndexedUnit] = {}
        for passage in json.loads(path.read_text("utf-8")):
            iri = _regulation_iri(passage["DocumentID"], passage["PassageID"])
            if passage["Passage"].strip() and iri not in units:
                units[iri] = IndexedUnit(iri, graph, f"urn:obliqa:{passage['DocumentID']}", passage["Passage"])
        graphs[graph] = GraphUnits(sha256(path.read_bytes()), list(units.values()))
    return graphs


def _load_obliqa_questions(folder: Path) -> Sequence[Question]:
    return [
        Question(
            question["Question"],
            frozenset(_regulation_iri(passage["DocumentID"], passage["PassageID"]) for passage in question["Passages"]),
        )
        for question in json.loads((folder / "ObliQA_dev.json").read_text("utf-8"))
    ]


def _regulation_iri(document: int, passage: str) -> str:
    return f"urn:obliqa:{document}:{quote(passage, safe='')}"


def _load_sentences(folder: Path) -> Mapping[str, GraphUnits]:
    path, graph = folder / "sentences.jsonl", "urn:climate-fever:graph"
    units = [
        IndexedUnit(f"urn:climate-fever:{each['id']}", graph, "urn:climate-fever", each["text"])
        for each in map(json.loads, path.read_text("utf-8").splitlines())
    ]
    return {graph: GraphUnits(sha256(path.read_bytes()), units)}


def _load_claims(folder: Path) -> Sequence[Question]:
    return [
        Question(each["claim"], frozenset(f"urn:climate-fever:{name}" for name in each["relevant"]))
        for each in map(json.loads, (folder / "claims_dev.jsonl").read_text("utf-8").splitlines())
    ]
