"""The child process of `loaders.files.readers.docx`: a task that converts a Word document to HTML."""

from __future__ import annotations

import gc
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError

import mammoth

from kg.processes import task

_LARGEST: Final = 128 << 20
"""Maximum size of the XML of a document, in bytes."""
_MOST_FILES: Final = 10_000
_STYLES: Final = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"
_DUBLIN: Final = "{http://purl.org/dc/elements/1.1/}"
_CORE: Final = "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}"
_DAMAGED: Final = "It is damaged or not a Word document (docx)."


class _UnreadableError(Exception):
    """The document cannot be read. The message is the cause."""


def work(settings: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Convert the document in `data` into files in the folder of `settings`, and return the reply."""
    try:
        report = _describe(data)
        # The document could bring a map of styles that hides its text.
        done = mammoth.convert_to_html(
            io.BytesIO(data),
            style_map=_STYLES,
            include_embedded_style_map=False,
            external_file_access=False,
            convert_image=lambda image: [],
        )
    except _UnreadableError as error:
        return {"kind": "invalid", "message": str(error)}
    except RecursionError:
        return {"kind": "invalid", "message": "Its elements nest too deeply."}
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 -- mammoth raises errors of any kind for damaged documents
        return {"kind": "invalid", "message": _DAMAGED}
    html = done.value.encode("utf-8", "replace")
    if len(html) > settings["max_bytes"]:
        return {"kind": "size", "message": f"its text has more than {settings['max_bytes'] >> 20} MiB"}
    folder = Path(settings["folder"])
    (folder / settings["html"]).write_bytes(html)
    (folder / settings["report"]).write_text(json.dumps(report), encoding="utf-8")
    return {}


def _describe(data: bytes) -> dict[str, Any]:
    """Check the parts of a document and read what it states about itself. Raises _UnreadableError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            if any(part.flag_bits & 1 for part in parts):
                raise _UnreadableError("It is encrypted. Remove the password first.")
            size = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
            if size > _LARGEST or len(parts) > _MOST_FILES:
                raise _UnreadableError(
                    f"Its XML has {size:,} bytes. At most {_LARGEST:,} are read. Split the document."
                )
            names = {part.filename for part in parts}
            if "word/document.xml" not in names and "[Content_Types].xml" not in names:
                raise _UnreadableError(_DAMAGED)
            core = archive.read("docProps/core.xml") if "docProps/core.xml" in names else b""
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, ValueError, EOFError):
        raise _UnreadableError(_DAMAGED) from None
    try:
        root = ElementTree.fromstring(core) if core else None  # noqa: S314 -- in a confined process
    except (ElementTree.ParseError, ExpatError, ValueError):
        root = None

    def get(name: str) -> str | None:
        text = root.findtext(name) if root is not None else None
        return " ".join(text.split()) or None if text else None

    return {
        "title": get(f"{_DUBLIN}title"),
        "language": get(f"{_DUBLIN}language"),
        "tags": [tag for part in (get(f"{_CORE}keywords") or "").replace(";", ",").split(",") if (tag := part.strip())],
        "warnings": [],
    }


def main() -> None:
    """Run the process."""
    # Passes of the garbage collector over the elements of a long document take as long as reading it.
    gc.set_threshold(100_000, 50, 100)
    task.main(work)
