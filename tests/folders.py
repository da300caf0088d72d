"""Data directories of tests: opened, and copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from kg.knowledge_graph import KnowledgeGraph
from kg.search.registry import MINILM
from kg.settings import Settings


def open_graph(data_dir: Path) -> KnowledgeGraph:
    """Open a data directory without a model, with one query worker."""
    return KnowledgeGraph.open(data_dir, without_models(data_dir, query_workers=1))


def without_models(data_dir: Path, **options: Any) -> Settings:
    """Build settings with a model that is not installed alone: the second one of the default is in a package."""
    return Settings(data_dir=data_dir, models_dir=data_dir / "no-models", model=MINILM, _env_file=None, **options)


def copy_folder(source: Path, target: Path) -> Path:
    """Copy a data directory that nobody has open. Its files keep their holes: Qdrant Edge has 300 MB of them."""
    return Path(shutil.copytree(source, target, copy_function=_copy_with_holes))


def _copy_with_holes(source: str, target: str) -> None:
    with open(source, "rb") as old, open(target, "wb") as new:
        size, end = os.fstat(old.fileno()).st_size, 0
        while end < size:
            try:
                start = os.lseek(old.fileno(), end, os.SEEK_DATA)
            except OSError:  # the rest is a hole
                break
            end = os.lseek(old.fileno(), start, os.SEEK_HOLE)
            old.seek(start)
            new.seek(start)
            new.write(old.read(end - start))
        new.truncate(size)
    shutil.copystat(source, target)
