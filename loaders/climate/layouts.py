"""The column layouts of published climate documents, and the detection of the layout of a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers.tables import Columns

HEAD: Final = (
    "slug", "document_id", "title", "description", "family_slug", "family_title", "family_id", "geographies",
    "geography_name", "languages", "translated", "corpus_type", "date", "year_passed", "last_change", "source_url",
    "sectors", "responses", "keywords", "instruments", "hazards", "frameworks", "metadata",
)  # fmt: skip
"""The fields of a document. ``metadata`` is an object with the lists of topics by name."""

BODY: Final = ("index", "text", "page", "type", "language")
"""The fields of a passage."""


def _topics(prefix: str) -> Mapping[str, Sequence[str]]:
    """Build the columns of the topics that a publisher gives to a document."""
    names = {
        "sectors": ("sectors",),
        "responses": ("responses", "topics"),
        "keywords": ("keywords",),
        "instruments": ("instruments",),
        "hazards": ("natural_hazards", "hazards"),
        "frameworks": ("frameworks",),
        "metadata": ("metadata",),
    }
    return {field: tuple(prefix + name for name in columns) for field, columns in names.items()}


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of each field. A file has this layout if it has all `required` columns."""

    name: str
    required: Sequence[str]
    head: Mapping[str, Sequence[str]]
    body: Mapping[str, Sequence[str]]
    key: str = "slug"

    @property
    def columns(self) -> Columns:
        """The layout as columns for `loaders.readers.tables`."""
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
        **_topics("document_metadata."),
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
        **_topics("document_metadata."),
    },
    {
        "index": ("block_index",),
        "text": ("text",),
        "page": ("page_number",),
        "type": ("type",),
        "language": ("language",),
    },
)
"""Flat passages with ``document_metadata.*``. Translations have the slug of their original."""

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
        **_topics(""),
    },
    FLAT.body,
)
"""The public sample of the dataset: ``document_*``, ``family_*`` and ``geography_iso``, one document per slug."""

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
        "date": ("date",),
        "year_passed": ("date_passed",),
        "last_change": ("last_change",),
        "source_url": ("link",),
        **_topics(""),
    },
    {"text": ("description",)},
    key="document_id",
)
"""One law per row, with its description in HTML."""

LAYOUTS: Final = (PUBLISHED, FLAT, SAMPLE, LAWS)


def detect(path: Path, columns: Collection[str]) -> Layout:
    """Detect the layout of a file by its columns. Raises SourceError with the columns that the closest layout lacks."""
    for layout in LAYOUTS:
        if all(name in columns for name in layout.required):
            return layout
    nearest = max(LAYOUTS, key=lambda layout: sum(name in columns for name in layout.required) / len(layout.required))
    missing = [name for name in nearest.required if name not in columns]
    known = "; ".join(f"{layout.name} ({', '.join(layout.required)})" for layout in LAYOUTS)
    raise SourceError(
        f"{path}: Unknown layout. Missing columns for the closest layout, {quoted(nearest.name)}: "
        f"{', '.join(missing)}. "
        f"Available layouts and their required columns: {known}."
    )
