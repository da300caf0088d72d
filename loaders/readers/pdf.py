"""Text of a PDF, read in a confined process of its own: PDFium parses foreign data in C++."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kg.errors import QuadciteError, QueryMemoryError, QueryTimeoutError, SourceError
from kg.processes.child import Limits, run_task
from loaders.readers.inline import LeftOut

_CHILD: Final = "loaders.readers.pdf_child"
"""Only the process imports PDFium."""
_TEXT: Final = "text"
_REPORT: Final = "report"
_LEAST_S: Final = 60.0
_BYTES_PER_S: Final = 20_000
"""Bytes of a file that are read in a second at least. A page of text has about 2,000."""
_MEMORY_BYTES: Final = 768 << 20
_MEMORY_PER_BYTE: Final = 40
_LARGEST_MEMORY: Final = 4 << 30
_MAX_TEXT: Final = 64 << 20
_MOST_NAMED: Final = 10
_END_MARK: Final = b"%%EOF"
_LAST: Final = 1_024
"""Bytes at the end of a file that must have the end mark."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of a PDF: lines as printed, form feeds between pages, tabs between the cells of tables.

    Columns, and the lines of cells, have marks of `page_layout`, which `page_text` takes away.
    """

    text: str
    pages: int
    warnings: Sequence[str] = ()
    disputed: Mapping[int, str] = field(default_factory=dict)
    """Lines, from 1, whose words the file has in another order: within the ``line``, or next to the line before
    (``join``).
    """

    def is_disputed(self, first: int, last: int) -> bool:
        """Whether the order of the words in a paragraph from line `first` to `last` is not that of the file."""
        if not self.disputed:
            return False
        kinds = ((line, self.disputed.get(line)) for line in range(first, last + 1))
        return any(kind == "line" or (kind == "join" and line > first) for line, kind in kinds)


def warn_of_disputed(name: str, pages: Sequence[int]) -> list[str]:
    """Warn of paragraphs whose order is disputed. `pages` are theirs, in order."""
    if not pages:
        return []
    return [
        f"{name}: The order of the words in {len(pages):,} paragraphs is not sure, on the pages "
        f"{_list(sorted(set(pages)))}: the columns that their white space shows are not in the order of the file. "
        "Compare them with the pages before you rely on them."
    ]


def read_pdf(data: bytes, name: str) -> PdfText:
    """Read the text of a PDF. `name` is the name of the file in messages.

    Raises SourceError for a file that is encrypted, damaged, without text, or too large to read.
    """
    limits = Limits(
        timeout_s=_LEAST_S + len(data) / _BYTES_PER_S,
        memory_bytes=min(_LARGEST_MEMORY, _MEMORY_BYTES + _MEMORY_PER_BYTE * len(data)),
        max_bytes=_MAX_TEXT,
    )
    try:
        with run_task(
            "pdf", data, {"text": _TEXT, "report": _REPORT}, limits, what=f"the PDF {name}", module=_CHILD
        ) as folder:
            text = (folder / _TEXT).read_text(encoding="utf-8")
            report = json.loads((folder / _REPORT).read_text())
    except QueryTimeoutError:
        raise SourceError(
            f"{name}: Reading the PDF took more than {limits.timeout_s:,.0f} s. Split the file."
        ) from None
    except QueryMemoryError:
        raise SourceError(
            f"{name}: The process that read the PDF ended: the file is damaged, or needs more than "
            f"{limits.memory_bytes >> 20:,} MiB of memory. Print it to a new PDF, or split it."
        ) from None
    except QuadciteError as error:
        raise SourceError(str(error)) from None
    warnings = _describe(report)
    if _END_MARK not in data[-_LAST:]:
        warnings.append(
            "It has no end mark, so the file is cut or damaged, and earlier versions of its pages may be read. Get the "
            "complete file."
        )
    disputed = {int(line): str(kind) for line, _, kind in report["disputed"]}
    return PdfText(text, report["pages"], [f"{name}: {warning}" for warning in warnings], disputed)


def _describe(report: Mapping[str, Any]) -> list[str]:
    """Describe the pages and characters that were not read."""
    warnings = []
    if report["unreadable"]:
        warnings.append(f"Damaged pages are left out: {_list(report['unreadable'])}.")
    if report["without_text"]:
        warnings.append(
            f"Pages without text: {_list(report['without_text'])}. Run OCR to read the text of their images."
        )
    if report["crowded"]:
        warnings.append(f"Pages with more than 200,000 characters are left out: {_list(report['crowded'])}.")
    if hidden := dict(report["hidden"]):
        warnings.append(
            f"{sum(hidden.values()):,} characters that the pages do not show are left out, on the pages "
            f"{_list(sorted(hidden))}: they are invisible, covered, clipped, or outside of the page."
        )
    if struck := dict(report["struck"]):
        warnings.append(
            f"{sum(struck.values()):,} characters that are struck out are left out, on the pages "
            f"{_list(sorted(struck))}. The file may be an amendment, not the law in force."
        )
    if report["layers"]:
        warnings.append(
            f"The text of these pages is an invisible layer over an image, as OCR writes: {_list(report['layers'])}. "
            "Compare it with the image before you rely on it."
        )
    if report["not_drawn"]:
        warnings.append(
            f"These pages cannot be drawn in time, so text that they do not show is read: {_list(report['not_drawn'])}."
        )
    if rotated := dict(report["rotated"]):
        warnings.append(
            f"{sum(rotated.values()):,} rotated characters are left out, on the pages {_list(sorted(rotated))}. The "
            "headers of a table may be among them."
        )
    warnings += LeftOut(unread=Counter(report["unread"])).describe()
    return warnings


def _list(pages: Sequence[int]) -> str:
    """Format page numbers as runs: 3, 5-9."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1][1:] = [page]
        else:
            runs.append([page])
    words = [f"{run[0]:,}" if len(run) == 1 else f"{run[0]:,}-{run[1]:,}" for run in runs[:_MOST_NAMED]]
    return ", ".join(words) + (f" and {len(runs) - _MOST_NAMED:,} more runs" if len(runs) > _MOST_NAMED else "")
