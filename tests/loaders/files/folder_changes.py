"""Random changes of a folder of notes, and the part of a graph that a fresh load of the folder has too."""

from __future__ import annotations

import os
import random
import shutil
from io import BytesIO
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from kg.store.protocol import Store
from kg.vocabulary import CATALOG_GRAPH, DERIVED, KG, PROV, PROV_GRAPH, SOURCED, iri_prefix

LONG: Final = "The gulls of Ferrowick sit on the sea wall and wait for the boats that come in with the evening tide. "
MOVED: Final = DERIVED + "moved/"
WORDS: Final = ("gull", "tern", "pump", "wall", "tide", "boat", "rope", "lamp", "gate", "drain")
NAMES: Final = ("Kelp Sorter", "Brine Pump", "Reed Gate", "Foam Lamp")
"""Names that some pages show in headings and bold, and others only have."""
ACTS: Final = {"write": 6, "edit": 4, "rename": 3, "delete": 3, "copy": 2, "folder": 1, "odd": 1}


def graphs_of(store: Store) -> set[Quad]:
    """Return what a fresh load of the folder gives too: all but provenance, the catalog, and the history of moves.

    The catalog has times, and counts content that was at several paths at one of them.
    """
    return {
        quad
        for quad in _load(store)
        if not str(quad.graph_name).startswith(f"<{MOVED}") and quad.graph_name != CATALOG_GRAPH
    }


def sources_of(store: Store) -> set[Quad]:
    """Return the provenance of the graphs of files without runs and times: their hashes and snapshots."""
    wanted = (KG.contentSha256, KG.sourceSha256, PROV.wasDerivedFrom, KG.sha256)
    starts = SOURCED, iri_prefix("snapshot")
    return {
        q
        for q in store.graph(PROV_GRAPH)
        if q.predicate in wanted and isinstance(q.subject, NamedNode) and q.subject.value.startswith(starts)
    }


def _load(store: Store) -> set[Quad]:
    output = BytesIO()
    store.dump(output, RdfFormat.N_QUADS)
    return {quad for quad in parse(output.getvalue(), RdfFormat.N_QUADS) if quad.graph_name != PROV_GRAPH}


def change_at_random(chance: random.Random, folder: Path) -> str:
    """Create, edit, copy, rename or delete a file or a folder, and return which."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    folders = [folder, *sorted(path for path in folder.rglob("*") if path.is_dir())]
    act = chance.choices(list(ACTS), weights=list(ACTS.values()))[0] if files else "write"
    inner = chance.choice(folders)
    target = inner / f"{chance.choice(WORDS)}{chance.randrange(3)}{chance.choice(['.md', '.md', '.txt', '.html'])}"
    if act == "write":
        if len(inner.parts) < len(folder.parts) + 2 and chance.random() < 0.2:
            target = inner / chance.choice(WORDS) / target.name
            target.parent.mkdir(exist_ok=True)
        target.write_text(make_page(chance))
    elif act == "edit":
        path = chance.choice(files)
        path.write_bytes(path.read_bytes() + f"\n\nThe {chance.choice(WORDS)} was mended.".encode())
    elif act == "copy":
        target.write_bytes(chance.choice(files).read_bytes())
    elif act == "rename":
        chance.choice(files).rename(target)
    elif act == "delete":
        chance.choice(files).unlink()
    elif act == "odd":
        write_odd_file(chance, inner)
    elif len(folders) > 1:
        victim = chance.choice(folders[1:])
        if chance.random() < 0.5:
            shutil.rmtree(victim)
        elif not (folder / f"{victim.name}-moved").exists():
            victim.rename(folder / f"{victim.name}-moved")
    return act


def make_page(chance: random.Random) -> str:
    """Make a page of few words: some equal or nearly equal others."""
    parts = [
        f"# {chance.choice(WORDS)}\n\nThe {chance.choice(WORDS)} is at the {chance.choice(WORDS)} and the sea wall."
    ]
    if chance.random() < 0.5:
        name = chance.choice(NAMES)
        parts.append(
            chance.choice(
                [f"## {name}", f"Ask **{name}** about it.", f"| at | what |\n| --- | --- |\n| 9 | {name} is old |"]
            )
        )
    parts += [LONG * chance.choice([1, 8])] * (chance.random() < 0.4)
    if chance.random() < 0.1:  # so many entities that their removal is a commit of its own
        parts.append(" ".join(f"The {chance.choice(NAMES)} is by the {chance.choice(NAMES)}." for _ in range(250)))
    return "\n\n".join(parts)


def write_odd_file(chance: random.Random, folder: Path) -> None:
    """Write a file that cannot be read, or that has an odd name."""
    kind = chance.choice(["empty", "binary", "newline", "bytes", "link", "ignore"])
    if kind == "empty":
        (folder / "empty.md").write_bytes(b"")
    elif kind == "binary":
        (folder / "binary.md").write_bytes(bytes(range(1, 32)) * 300)
    elif kind == "newline":
        (folder / "two\nlines.md").write_text(make_page(chance))
    elif kind == "bytes":
        Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md")).write_text(make_page(chance))
    elif kind == "link" and not os.path.lexists(folder / "link.md"):
        (folder / "link.md").symlink_to("/etc/hostname")
    elif kind == "ignore":
        (folder / ".kgignore").write_text(f"{chance.choice(WORDS)}*\n" * chance.randrange(2))
