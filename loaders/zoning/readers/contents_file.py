"""Tables of contents in separate files, and their differences from the code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers import html_tree
from loaders.readers.file_text import parse_json
from loaders.readers.headings import SECTION, parse_heading
from loaders.zoning.readers.section_builder import is_same_heading


@dataclass(frozen=True, slots=True)
class Entry:
    """One section in a table of contents."""

    id: str
    label: str


def parse_contents(data: bytes, name: str) -> Sequence[Entry]:
    """Parse a table of contents in JSON: ``{"sections": [{"id": ..., "label": ...}]}``.

    Raises SourceError for any other content.
    """
    try:
        sections = parse_json(data, name)[0]["sections"]
        return [Entry(str(each["id"]), str(each["label"])) for each in sections]
    except (SourceError, KeyError, TypeError) as error:
        raise SourceError(
            f"{name}: Not a table of contents. Expected 'sections', each with 'id' and 'label' ({error!r:.120})."
        ) from None


def find_contents_link(data: bytes) -> str | None:
    """Find the name of the table of contents that an HTML file links to."""
    for match in re.finditer(rb"<link\s[^>]*>", data[:20_000]):
        link = match[0].decode("ascii", errors="replace")
        href = re.search(r"href\s*=\s*[\"']([^\"']+)", link)
        if href and "application/json" in link and "alternate" in link:
            return href[1]
    return None


def find_differences(contents: Sequence[Entry], sections: Sequence[tuple[str, str, str]], name: str) -> Sequence[str]:
    """Compare a table of contents with the sections of a file (number, title, kind) and describe each difference."""
    listed: dict[str, str] = {}
    warnings = []
    for entry in contents:
        heading = parse_heading(html_tree.normalize_space(entry.label))
        if heading is None:
            warnings.append(f"{name}: {quoted(entry.label)} in the table of contents is not a heading with a number.")
        else:
            listed.setdefault(heading.number, heading.title)
    found = {number: title for number, title, kind in reversed(sections) if kind == SECTION and number}
    every = {number for number, _, _ in sections}
    for number, title in listed.items():
        if number not in every:
            warnings.append(f"{name}: {number} {quoted(title)} is in the table of contents, but not in the text.")
        elif number in found and not is_same_heading(title, found[number]):
            warnings.append(
                f"{name}: {number} is {quoted(title)} in the table of contents, but "
                f"{quoted(found[number])} in the text."
            )
    warnings += [
        f"{name}: {number} {quoted(title)} is in the text, but not in the table of contents."
        for number, title in found.items()
        if number not in listed
    ]
    return warnings
