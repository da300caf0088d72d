"""The child process that converts a Word document to HTML, by mammoth."""

from __future__ import annotations

import io
from typing import Any, Final

import mammoth

from loaders.files.readers import office_package

_STYLES: Final = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def convert(data: bytes) -> tuple[str, dict[str, Any]]:
    """Convert a document to HTML."""
    # The document could bring a map of styles that hides its text.
    done = mammoth.convert_to_html(
        io.BytesIO(data),
        style_map=_STYLES,
        include_embedded_style_map=False,
        external_file_access=False,
        convert_image=lambda image: [],
    )
    return done.value, {}


def main() -> None:
    """Run the process."""
    office_package.run(convert, "word/document.xml", "a Word document (docx)")
