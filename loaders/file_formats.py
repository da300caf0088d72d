"""The ends of the names of the files that are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TABLES: Final = (".parquet", ".csv", ".jsonl", ".ndjson", ".xlsx")
MARKUP: Final = (".xml", ".sgml", ".sgm")

SPEECHES: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": (".parquet",),
    "csv": (".csv",),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "xlsx": (".xlsx",),
    "xml": MARKUP,
}
"""Those of speeches and sittings, by format."""

DOCUMENTS: Final[Mapping[str, str]] = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdx": "text/mdx",
    ".rst": "text/x-rst",
    ".ipynb": "application/x-ipynb+json",
    ".txt": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
"""Those of the files of a team, with their media types."""
