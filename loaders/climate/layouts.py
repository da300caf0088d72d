"""The column layouts in which climate documents are published, and how a file's layout is recognised."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg.errors import SourceError
from loaders.readers.tables import Columns

HEAD: Final = (
    "slug",
    "document_id",
    "title",
    "description",
    "family_slug",
    "family_title",
    "family_id",
    "geographies",
    "geography_name",
    "languages",
    "translated",
    "corpus_type",
    "date",
    "source_url",
)
"""What a layout may say of a document."""

BODY: Final = ("index", "text", "page", "type", "language")
"""What a layout may say of a passage."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A set of columns that go together. `required` is what a file needs to be of this layout."""

    name: str
    required: Sequence[str]
    head: Mapping[str, Sequence[str]]
    body: Mapping[str, Sequence[str]]
    key: str = "slug"

    @property
    def columns(self) -> Columns:
        """The same for the reader of tables."""
        return Columns(self.key, "translated", "text", self.head, self.body)


PUBLISHED: Final = Layout(
    "published",
    (
        "document_id",
        "document_metadata.slug",
        "document_metadata.document_title",
        "text_block.index",
        "text_block.text",
    ),
    {
        "slug": ("document_metadata.slug",),
        "document_id": ("document_id",),
        "title": ("document_metadata.document_title",),
        "description": ("document_metadata.description",),
        "family_slug": ("document_metadata.family_slug",),
        "family_title": ("document_metadata.family_title",),
        "family_id": ("document_metadata.family_import_id",),
        "geographies": ("document_metadata.geographies", "document_metadata.geography"),
        "languages": ("document_metadata.languages",),
        "corpus_type": ("document_metadata.corpus_type_name", "document_metadata.category"),
        "date": ("document_metadata.publication_ts",),
        "source_url": ("document_metadata.source_url",),
    },
    {
        "index": ("text_block.index",),
        "text": ("text_block.text",),
        "page": ("text_block.page_number",),
        "type": ("text_block.type",),
        "language": ("text_block.language",),
    },
)
"""The published dataset: ``document_metadata.*`` and ``text_block.*``."""

FLAT: Final = Layout(
    "flat",
    (
        "document_id",
        "document_metadata.slug",
        "document_metadata.family_slug",
        "document_metadata.geography",
        "translated",
        "block_index",
        "text",
    ),
    {
        "slug": ("document_metadata.slug", "document_slug"),
        "document_id": ("document_id",),
        "title": ("document_name", "document_metadata.name"),
        "description": ("document_metadata.description", "document_description"),
        "family_slug": ("document_metadata.family_slug",),
        "family_title": ("document_metadata.family_title", "document_metadata.name"),
        "family_id": ("document_metadata.family_import_id",),
        "geographies": ("document_metadata.geographies", "document_metadata.geography"),
        "languages": ("languages", "document_metadata.languages"),
        "translated": ("translated",),
        "corpus_type": ("document_metadata.corpus_type_name", "document_metadata.category"),
        "date": ("document_metadata.publication_ts", "document_metadata.date"),
        "source_url": ("document_metadata.source_url", "document_source_url"),
    },
    {
        "index": ("block_index",),
        "text": ("text",),
        "page": ("page_number",),
        "type": ("type",),
        "language": ("language",),
    },
)
"""Flat passages under ``document_metadata.*``; translations stand beside their originals, under the same slug."""

SAMPLE: Final = Layout(
    "sample",
    ("document_id", "document_slug", "document_name", "geography_iso", "family_slug", "block_index", "text"),
    {
        "slug": ("document_slug",),
        "document_id": ("document_id",),
        "title": ("document_name",),
        "description": ("document_description",),
        "family_slug": ("family_slug",),
        "family_title": ("family_name",),
        "family_id": ("family_id",),
        "geographies": ("geography_iso",),
        "geography_name": ("geography",),
        "languages": ("languages",),
        "translated": ("translated",),
        "corpus_type": ("corpus_type_name", "category"),
        "date": ("publication_ts",),
        "source_url": ("document_source_url",),
    },
    {
        "index": ("block_index",),
        "text": ("text",),
        "page": ("page_number",),
        "type": ("type",),
        "language": ("language",),
    },
)
"""The dataset's public sample: ``document_*``, ``family_*`` and ``geography_iso``; one text a slug."""

LAWS: Final = Layout(
    "laws",
    ("id", "title", "slug", "description", "geography", "legislation_type", "date"),
    {
        "slug": ("slug",),
        "document_id": ("id",),
        "title": ("title",),
        "family_id": ("parent_id",),
        "geographies": ("geography",),
        "geography_name": ("country_name",),
        "corpus_type": ("legislation_type_humanize", "legislation_type"),
        "date": ("date", "date_passed"),
        "source_url": ("link",),
    },
    {"text": ("description",)},
    key="document_id",
)
"""One law a row, its description in HTML."""

LAYOUTS: Final = (PUBLISHED, FLAT, SAMPLE, LAWS)


def detect(path: Path, columns: Collection[str]) -> Layout:
    """Return the layout of a file with these columns. Raises SourceError, naming what is missing for the nearest."""
    for layout in LAYOUTS:
        if all(name in columns for name in layout.required):
            return layout
    nearest = max(LAYOUTS, key=lambda layout: sum(name in columns for name in layout.required) / len(layout.required))
    missing = [name for name in nearest.required if name not in columns]
    known = "; ".join(f"{layout.name} ({', '.join(layout.required)})" for layout in LAYOUTS)
    raise SourceError(
        f"{path}: its columns are of no known layout; the nearest, {nearest.name!r}, lacks {', '.join(missing)}. "
        f"Known layouts and the columns that they need: {known}"
    )
