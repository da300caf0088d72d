"""The files that ship inside the wheel: ontology, shapes and fixtures."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).parent


def folder(name: Literal["ontology", "shapes", "fixtures"]) -> Path:
    """Return the folder `name`: inside an installed wheel, or beside the packages in a checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
