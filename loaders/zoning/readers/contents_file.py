"""Tables of contents that stand in a file of their own, and where they and a code disagree."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kg.errors import SourceError
from loaders.zoning.readers import html_lines
from loaders.zoning.readers.headings import SECTION, heading_of
from loaders.zoning.readers.section_builder import same


@dataclass(frozen=True, slots=True)
class Entry:
    """What a table of contents says of one section."""

    id: str
    label: str


def contents_of(data: bytes, name: str) -> Sequence[Entry]:
    """Return the entries of a table of contents in JSON: ``{"sections": [{"id": ..., "label": ...}]}``.

    Raises SourceError for what is none.
    """
    try:
        sections = json.loads(html_lines.decoded(data, name)[0])["sections"]
        return [Entry(str(each["id"]), str(each["label"])) for each in sections]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceError(
            f"{name}: not a table of contents, which has 'sections', each with 'id' and 'label' ({error!r:.120})"
        ) from None


def contents_link(data: bytes) -> str | None:
    """Return the name of the table of contents that an HTML file says it has."""
    for match in re.finditer(rb"<link\s[^>]*>", data[:20_000]):
        link = match[0].decode("ascii", errors="replace")
        href = re.search(r"href\s*=\s*[\"']([^\"']+)", link)
        if href and "application/json" in link and "alternate" in link:
            return href[1]
    return None


def differences(contents: Sequence[Entry], sections: Sequence[tuple[str, str, str]], name: str) -> Sequence[str]:
    """Return where a table of contents and the sections of a file (number, title, kind) disagree, in words."""
    listed: dict[str, str] = {}
    warnings = []
    for entry in contents:
        heading = heading_of(html_lines.shown(entry.label))
        if heading is None:
            warnings.append(f"{name}: the table of contents has {entry.label!r}, which is no heading with a number")
        else:
            listed.setdefault(heading.number, heading.title)
    found = {number: title for number, title, kind in reversed(sections) if kind == SECTION and number}
    every = {number for number, _, _ in sections}
    for number, title in listed.items():
        if number not in every:
            warnings.append(f"{name}: the table of contents has {number} {title!r}, and the text has no such section")
        elif number in found and not same(title, found[number]):
            warnings.append(f"{name}: {number} is {title!r} in the table of contents, {found[number]!r} in the text")
    warnings += [
        f"{name}: the text has {number} {title!r}, and the table of contents has not"
        for number, title in found.items()
        if number not in listed
    ]
    return warnings
