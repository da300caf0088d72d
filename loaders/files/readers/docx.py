"""Word documents (docx), converted to HTML by mammoth in a confined process: they are foreign zip and XML."""

from __future__ import annotations

import json
from typing import Final

from kg.errors import QuadciteError, QueryMemoryError, QueryTimeoutError, SourceError
from kg.processes.child import Limits, run_task
from loaders.files.readers.html_page import read_html
from loaders.files.readers.text_model import FileText

_CHILD: Final = "loaders.files.readers.docx_child"
"""Only the process imports mammoth."""
_TIMEOUT_S: Final = 60.0
_MEMORY_BYTES: Final = 1 << 30
_MAX_BYTES: Final = 64 << 20
_OLD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Start of a file of the format before docx, in which Word also writes encrypted documents."""


def read_docx(data: bytes, name: str) -> FileText:
    """Read a Word document without its headers and footers. Comments and deleted text are left out.

    Raises SourceError for a file that is encrypted, damaged, or expands to too much.
    """
    if data.startswith(_OLD):
        raise SourceError(f"{name}: It is encrypted, or has the format of Word 97. Save it as docx without a password.")
    limits = Limits(timeout_s=_TIMEOUT_S, memory_bytes=_MEMORY_BYTES, max_bytes=_MAX_BYTES)
    try:
        with run_task(
            "docx", data, {"html": "html", "report": "report"}, limits, what=f"the document {name}", module=_CHILD
        ) as folder:
            html = (folder / "html").read_text(encoding="utf-8")
            report = json.loads((folder / "report").read_text(encoding="utf-8"))
    except QueryTimeoutError:
        raise SourceError(f"{name}: Reading it took more than {_TIMEOUT_S:,.0f} s. Split the document.") from None
    except QueryMemoryError:
        raise SourceError(
            f"{name}: The process that read it ended: the file is damaged, or needs more than "
            f"{_MEMORY_BYTES >> 20:,} MiB of memory. Split the document."
        ) from None
    except QuadciteError as error:
        raise SourceError(str(error)) from None
    found = read_html(html, name, whole=True)
    return FileText(
        found.text,
        found.blocks,
        title=found.title or report["title"],
        language=report["language"],
        tags=report["tags"],
        warnings=[*(f"{name}: {each}" for each in report["warnings"]), *found.warnings],
    )
