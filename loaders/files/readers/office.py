"""Word documents, presentations and workbooks of Office Open XML, read in confined processes: foreign zip and XML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final

from kg.errors import QuadciteError, QueryMemoryError, QueryTimeoutError, SourceError
from kg.processes.child import Limits, run_task
from loaders.files.readers.text_model import FileText, TextWriter

_TIMEOUT_S: Final = 60.0
_MEMORY_BYTES: Final = 1 << 30
_MAX_BYTES: Final = 64 << 20
_OLD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Start of a file of the formats of Office 97, in which Office also writes encrypted files of the newer ones."""
_NO_TITLE: Final = frozenset({"powerpoint presentation"})
"""Titles that programs give to presentations without a title."""


def read_docx(data: bytes, name: str) -> FileText:
    """Read a Word document without its headers and footers. Comments, deleted and hidden text are left out.

    Raises SourceError for a file that is encrypted, damaged, or expands to too much.
    """
    blocks, report = _convert(data, name, "docx")
    return _write(blocks, report, name, 0)


def read_pptx(data: bytes, name: str) -> FileText:
    """Read a presentation: a page for each slide, with its notes. Hidden slides, charts and pictures are left out.

    Raises SourceError for a file that is encrypted, damaged, or expands to too much, and if the library that reads
    presentations is not installed.
    """
    if find_spec("pptx") is None:
        raise SourceError(
            f"{name}: Presentations are read by python-pptx, which is not installed: pip install 'quadcite[office]'"
        )
    blocks, report = _convert(data, name, "pptx")
    return _write(blocks, report, name, report["slides"])


def read_xlsx(data: bytes, name: str) -> FileText:
    """Read a workbook: a heading and tables for each sheet. Formulas have their stored values.

    Hidden sheets, rows and columns are left out. Raises SourceError for a file that is encrypted, damaged, or has too
    many cells.
    """
    blocks, report = _convert(data, name, "xlsx")
    return _write(blocks, report, name, 0)


def _convert(data: bytes, name: str, kind: str) -> tuple[Any, Mapping[str, Any]]:
    """Convert a file in a process of its own; return its content as that writes it, and what it reports."""
    if data.startswith(_OLD):
        raise SourceError(f"{name}: It is encrypted, or has a format of Office 97. Save it as {kind} without password.")
    limits = Limits(timeout_s=_TIMEOUT_S, memory_bytes=_MEMORY_BYTES, max_bytes=_MAX_BYTES)
    settings = {"content": "content", "report": "report"}
    module = f"loaders.files.readers.{kind}_child"  # only the process imports the library
    try:
        with run_task(kind, data, settings, limits, what=f"the document {name}", module=module) as folder:
            content = json.loads((folder / "content").read_text(encoding="utf-8"))
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
    return content, report


def _write(blocks: list[dict[str, Any]], report: Mapping[str, Any], name: str, pages: int) -> FileText:
    """Write the blocks of a presentation or a workbook. Those of presentations state their page."""
    writer = TextWriter()
    starts: list[int] = []
    for block in blocks:
        at = writer.length + (2 if writer.pieces else 0)
        starts += [at] * (block.get("page", 0) - len(starts))
        match block["kind"]:
            case "heading":
                writer.heading(block["level"], block["text"], block["text"])
            case "paragraph":
                writer.add("paragraph", block["text"].split("\n"))
            case "table":
                writer.table(block["rows"])
            case _:
                items = block["items"]
                writer.add(block["kind"], [f"{'   ' * depth}{mark} {text}" for depth, mark, text in items])
    starts += [writer.length] * (pages - len(starts))
    stated = report["title"]
    if stated and stated.casefold() in _NO_TITLE:
        stated = None
    return FileText(
        writer.text(),
        writer.blocks,
        title=next((each.title for each in writer.blocks if each.level == 1), stated),
        language=report["language"],
        tags=report["tags"],
        pages=starts,
        warnings=_name_warnings(report, name),
    )


def _name_warnings(report: Mapping[str, Any], name: str) -> list[str]:
    return [f"{name}: {each}" for each in report["warnings"]]
