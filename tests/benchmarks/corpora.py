"""The corpora on which ranking and relevance are measured: ObliQA's regulations, CLIMATE-FEVER's sentences, and XQuAD.

They are in the folder of real data next to the project. The first two are unlike each other on purpose: a change that
helps on one alone misleads. XQuAD has the same paragraphs and questions in five languages; they are in one index with
ObliQA's passages, of which a search takes some by their type. The first run embeds all passages (minutes); the indexes
stay in the user's cache.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from platformdirs import user_cache_path

from kg.search.index_client import EdgeIndex
from kg.search.protocol import GraphUnits, IndexedUnit
from kg.search.vector_cache import FILE
from kg.settings import Settings
from kg.vocabulary import sha256

DATA: Final = Path(os.environ.get("QUADCITE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
"""The folder of real data, next to the project."""
_RETRIEVAL: Final = DATA / "retrieval"
LANGUAGES: Final = ("en", "es", "de", "ru", "zh")
MOST_ENGLISH: Final = 12_000
_FORM: Final = b"2"
"""Another value where units are built in another way, so that an index of earlier ones is replaced."""


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
    like: str | None = None
    """The corpus that has the vectors of many of its passages."""

    @contextmanager
    def open_index(self) -> Iterator[EdgeIndex]:
        """Open the index of all passages, with every vector, and close it."""
        folder = user_cache_path("quadcite") / "benchmarks" / self.name
        if self.like is not None and not folder.exists() and (known := folder.with_name(self.like) / FILE).exists():
            folder.mkdir(parents=True)
            shutil.copyfile(known, folder / FILE)
        index = EdgeIndex(folder, Settings())
        try:
            graphs = self.load_passages()
            held = index.state()
            index.replace({graph: new for graph, new in graphs.items() if held.get(graph) != new.content_sha256})
            index.remove(held.keys() - graphs.keys())
            index.note_missing(0)  # an index of an earlier format was begun again
            print(
                f"{self.name}: {index.status().pending_vectors:,} vectors to add for {index.status().units:,} passages"
            )
            index.wait()
            yield index
        finally:
            index.close()


def find_languages() -> Corpus | None:
    """Find the corpus of XQuAD's passages in several languages and `MOST_ENGLISH` of ObliQA. Its questions are English.

    The type of a passage is its language, or ``obliqa``.
    """
    obliqa, xquad = _RETRIEVAL / "obliqa", _RETRIEVAL / "xquad"
    if not obliqa.is_dir() or not xquad.is_dir():
        return None
    return Corpus("languages", lambda: _load_languages(obliqa, xquad), lambda: load_xquad_questions("en"), "obliqa")


def load_xquad_questions(language: str) -> Sequence[Question]:
    """Load the questions to the odd paragraphs, on which no offset was learned: the answer is an id of a paragraph."""
    return [
        Question(question["question"], frozenset((each["id"],)))
        for each in _read_xquad(_RETRIEVAL / "xquad", language)[1::2]
        for question in each["questions"]
    ]


def _read_xquad(folder: Path, language: str) -> list[dict[str, Any]]:
    return [*map(json.loads, (folder / f"{language}.jsonl").read_text("utf-8").splitlines())]


def _load_languages(obliqa: Path, xquad: Path) -> Mapping[str, GraphUnits]:
    every = [unit for graph in _load_regulations(obliqa).values() for unit in graph.units][:MOST_ENGLISH]
    graphs = {"urn:languages:obliqa": [replace(unit, codes={"type": ["obliqa"]}) for unit in every]}
    for language in LANGUAGES:
        graphs[f"urn:languages:{language}"] = [
            IndexedUnit(
                f"urn:{language}:{each['id']}",
                "",
                "urn:xquad",
                each["text"],
                language=language,
                codes={"type": [language]},
            )
            for each in _read_xquad(xquad, language)
        ]
    return {
        graph: GraphUnits(f"{len(units)} {_FORM!r}", [replace(unit, graph=graph) for unit in units])
        for graph, units in graphs.items()
    }


def find_corpora() -> Sequence[Corpus]:
    """Find the corpora of English passages whose files are present."""
    obliqa, climate = _RETRIEVAL / "obliqa", _RETRIEVAL / "climate_fever"
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
                units[iri] = IndexedUnit(
                    iri, graph, f"urn:obliqa:{passage['DocumentID']}", passage["Passage"], language="en"
                )
        graphs[graph] = GraphUnits(sha256(path.read_bytes() + _FORM), list(units.values()))
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
        IndexedUnit(f"urn:climate-fever:{each['id']}", graph, "urn:climate-fever", each["text"], language="en")
        for each in map(json.loads, path.read_text("utf-8").splitlines())
    ]
    return {graph: GraphUnits(sha256(path.read_bytes() + _FORM), units)}


def _load_claims(folder: Path) -> Sequence[Question]:
    return [
        Question(each["claim"], frozenset(f"urn:climate-fever:{name}" for name in each["relevant"]))
        for each in map(json.loads, (folder / "claims_dev.jsonl").read_text("utf-8").splitlines())
    ]
