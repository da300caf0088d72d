"""Stored files as later loads need them: their signatures, the tags that loads gave them, and the files left out.

Signatures and tags are in ``graph/prov``, as properties of the graph of each file. The files that a load leaves out as
near-duplicates have no graph. They are in ``files/left_out.json`` of the data directory, and are loaded once their
original is gone or has another text (`load_freed`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pyoxigraph import Literal

from kg.errors import QuadciteError
from kg.files import write_file
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select, select_each, term_text
from kg.vocabulary import KG, PROV_GRAPH, mint, parts_of
from loaders.files.loader import DOMAIN, GRAPHS, LeftOut, Reading, StoredFile
from loaders.load_report import LoadReport

STORED: Final = """
SELECT ?graph ?property ?value WHERE {
  GRAPH $prov { VALUES ?property { kg:minHash kg:givenTag } ?graph ?property ?value }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

SIGNATURES: Final = """
SELECT ?graph ?value WHERE { VALUES ?graph { $graphs } GRAPH $prov { ?graph kg:minHash ?value } }"""


LoadAgain = Callable[..., LoadReport]
"""`load_again`, perhaps in another process."""


def load_stored(store: Store) -> dict[str, StoredFile]:
    """Load the signatures and tags of all stored files, by collection and path."""
    signatures: dict[str, str] = {}
    tags: dict[str, list[str]] = {}
    for row in select(store.query, bind(STORED, prov=PROV_GRAPH, prefix=Literal(GRAPHS))):
        name = "/".join(parts_of(named_node(row["graph"]).value, GRAPHS))
        if row["property"] == KG.minHash:
            signatures[name] = term_text(row["value"])
        else:
            tags.setdefault(name, []).append(term_text(row["value"]))
    return {
        name: StoredFile(signatures.get(name), tags=tuple(sorted(tags.get(name, ()))))
        for name in signatures.keys() | tags.keys()
    }


def load_signatures(store: Store, names: Iterable[str]) -> dict[str, str]:
    """Load the signatures of some stored files, by collection and path."""
    graphs = [mint("graph", "src", DOMAIN, *name.split("/")) for name in sorted(set(names))]
    return {
        "/".join(parts_of(named_node(row["graph"]).value, GRAPHS)): term_text(row["value"])
        for row in select_each(store.query, SIGNATURES, "graphs", graphs, prov=PROV_GRAPH)
    }


@dataclass(slots=True)
class _Kept:
    """A file that was left out, with the signature that its original had."""

    file: LeftOut
    signature: str | None


class LeftOutFiles:
    """The files that loads have left out, by collection and path."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self.kept: dict[str, _Kept] = {}
        if self._path.exists():
            held = json.loads(self._path.read_text())
            self.kept = {name: _Kept(LeftOut(**each["file"]), each["signature"]) for name, each in held.items()}

    def note(self, read: Mapping[str, LeftOut | None], signatures: Mapping[str, str]) -> None:
        """Note the files that a load read, with the stored signatures of their originals."""
        before = dict(self.kept)
        for name, file in read.items():
            self.kept.pop(name, None)
            if file is not None:
                self.kept[name] = _Kept(file, signatures.get(file.original))
        if self.kept != before:
            self._save()

    def forget(self, names: Iterable[str]) -> None:
        """Forget files."""
        if known := [name for name in names if name in self.kept]:
            for name in known:
                del self.kept[name]
            self._save()

    def list_originals(self) -> set[str]:
        """Return the originals of the files."""
        return {each.file.original for each in self.kept.values()}

    def take_freed(self, signatures: Mapping[str, str]) -> dict[str, LeftOut]:
        """Remove and return the files whose original is gone or has another text."""
        freed = {
            name: each.file
            for name, each in self.kept.items()
            if (now := signatures.get(each.file.original)) is None or now != each.signature
        }
        for name in freed:
            del self.kept[name]
        if freed:
            self._save()
        return freed

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_file(self._path, json.dumps({name: asdict(each) for name, each in self.kept.items()}))


def prepare(kg: KnowledgeGraph, reading: Reading) -> None:
    """Read the signatures and tags of stored files for a load."""
    reading.stored.clear()
    reading.stored.update(load_stored(kg.store))
    reading.left_out.clear()


def note_and_load_freed(kg: KnowledgeGraph, reading: Reading, report: LoadReport, load_again: LoadAgain) -> None:
    """Note the files that a load has left out, and load those of earlier loads whose original is gone."""
    files = LeftOutFiles(kg.settings.directory.left_out_files)
    originals = {each.original for each in reading.left_out.values() if each is not None}
    signatures = load_signatures(kg.store, originals | files.list_originals())
    files.note(reading.left_out, signatures)
    for done in _load_by_folder(kg, load_again, files.take_freed(signatures)):
        report.loaded += done.loaded
        report.text_units += done.text_units
        report.quads_added += done.quads_added
        report.quads_removed += done.quads_removed
        report.rejections += done.rejections
        report.warnings += done.warnings


def load_freed(kg: KnowledgeGraph, load_again: LoadAgain, watched: Iterable[str] = ()) -> list[LoadReport]:
    """Load the files that earlier loads left out and whose original is gone or has another text.

    One that is loaded may be the original of another: its own load goes on with that. Files of the collections
    `watched` are left to the watcher of these.
    """
    files = LeftOutFiles(kg.settings.directory.left_out_files)
    return _load_by_folder(kg, load_again, files.take_freed(load_signatures(kg.store, files.list_originals())), watched)


def _load_by_folder(
    kg: KnowledgeGraph, load_again: LoadAgain, freed: Mapping[str, LeftOut], watched: Iterable[str] = ()
) -> list[LoadReport]:
    by_folder: dict[tuple[str, str], list[str]] = {}
    for name, file in freed.items():
        collection = name.partition("/")[0]
        if os.path.lexists(file.path) and collection not in watched:
            by_folder.setdefault((collection, file.root), []).append(file.path)
    return [_load(kg, load_again, collection, root, paths) for (collection, root), paths in by_folder.items()]


def _load(kg: KnowledgeGraph, load_again: LoadAgain, collection: str, root: str, paths: list[str]) -> LoadReport:
    try:
        done = load_again(kg, "files", sorted(paths), collection=collection, root=root)
    except (QuadciteError, OSError) as error:
        return LoadReport("files", warnings=[f"{root}: Files without original cannot be loaded: {error}"])
    if done.loaded:
        names = ", ".join(sorted(os.path.relpath(path, root) for path in paths)[:5])
        done.warnings.insert(0, f"Loaded from {collection}, since the files that they nearly equal are gone: {names}.")
    return done
