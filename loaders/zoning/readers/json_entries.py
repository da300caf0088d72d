"""Codes in JSON, with the fields that the ingestion tools take.

An object with ``municipality``, ``state`` and one or more of the lists ``sections``, ``permissions``, ``standards``
and ``definitions``, or only the list of sections:

* a section has ``section_id`` and ``title``, and may have ``level`` (a number, or the word for its kind),
  ``raw_content``, ``parent_id`` and ``order``
* a permission has ``district``, ``use`` and ``permission``, and may have ``conditions``, ``review_section`` and
  ``section_ref``
* a standard has ``district``, ``standard_type``, ``value`` and ``unit``, and may have ``section_ref``
* a definition has ``term`` and ``definition_text``, and may have ``section_ref``
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from kg.errors import RecordError, SourceError
from loaders.readers.formats import surrogate_in, text_of_cell
from loaders.zoning.readers import municode
from loaders.zoning.readers.code_model import Code, Definition, DimensionalStandard, Section, UsePermission
from loaders.zoning.readers.headings import KINDS, SECTION, heading_of
from loaders.zoning.readers.html_lines import decoded
from loaders.zoning.readers.outline import outline
from loaders.zoning.readers.section_builder import LONGEST_KEY, Draft, finished, linked, named
from loaders.zoning.readers.text_builder import Content

LISTS: Final = ("sections", "permissions", "standards", "definitions")

_MARKUP: Final = re.compile(
    r"\s*<(?:!doctype|html|body|section|article|div|p|h[1-6]|ul|ol|dl|table|span)\b", re.IGNORECASE
)
_LARGEST: Final = 1_000_000_000
_T = TypeVar("_T")


def parse(data: bytes, name: str, *, municipality: str | None = None, state: str | None = None) -> Code:
    """Return what a JSON file holds of a code. Raises SourceError for a file that is not as above.

    An entry that cannot be used is left out, with a warning that says why.
    """
    text, warnings = decoded(data, name)
    try:
        # NaN is how programs write that there is nothing, and no JSON.
        given = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{name}: is not JSON ({error!r:.120})") from None
    if isinstance(given, list):
        given = {"sections": given}
    if not is_code(given):
        raise SourceError(f"{name}: holds none of the lists {', '.join(LISTS)}")
    told = [*warnings]
    sections = _sections([*_each(given, "sections", name, told, _section)], told)
    said = {key: given.get(key) for key in ("municipality", "state", "updated")}
    strings = {key: value for key, value in said.items() if isinstance(value, str) and value.strip()}
    return Code(
        municipality or strings.get("municipality"),
        state or strings.get("state"),
        sections,
        strings.get("updated"),
        tuple(_each(given, "permissions", name, told, permission_of)),
        tuple(_each(given, "standards", name, told, standard_of)),
        tuple(_each(given, "definitions", name, told, definition_of)),
        named(told, name),
    )


def is_code(given: object) -> bool:
    """Return whether a JSON value is a code of this form."""
    return isinstance(given, dict) and any(isinstance(given.get(each), list) for each in LISTS)


def _each(
    given: Mapping[str, Any], part: str, name: str, warnings: list[str], read: Callable[[Mapping[str, Any]], _T]
) -> Iterator[_T]:
    entries = given.get(part)
    if entries is None:
        return
    if not isinstance(entries, list):
        warnings.append(f"{name}: {part!r} is no list, and is left out")
        return
    for number, entry in enumerate(entries, 1):
        try:
            if not isinstance(entry, dict):
                raise RecordError("it is no object")
            yield read(entry)
        except RecordError as error:
            warnings.append(f"{name}: number {number} of {part!r} is left out: {error}")


def _words(entry: Mapping[str, Any], name: str) -> str:
    value = _maybe(entry, name)
    if value is None:
        raise RecordError(f"it has no {name!r}, which is text")
    return value


def _maybe(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if isinstance(value, dict | list):
        raise RecordError(f"its {name!r} is no text but {'a list' if isinstance(value, list) else 'an object'}")
    text = text_of_cell(value)
    if text is not None and (found := surrogate_in(text)) is not None:
        raise RecordError(f"its {name!r} has the lone surrogate {found}, which is not a character")
    return text if text is not None and text.strip() else None


def permission_of(entry: Mapping[str, Any]) -> UsePermission:
    """Return a use permission. Raises RecordError for one that says too little."""
    conditions = entry.get("conditions")
    listed = conditions if isinstance(conditions, list) else [conditions]
    given = [_maybe({"conditions": each}, "conditions") for each in listed]
    return UsePermission(
        _words(entry, "district"),
        _words(entry, "use"),
        _words(entry, "permission"),
        tuple(each for each in given if each is not None),
        _maybe(entry, "review_section"),
        _maybe(entry, "section_ref"),
    )


def standard_of(entry: Mapping[str, Any]) -> DimensionalStandard:
    """Return a dimensional standard. Raises RecordError for one that says too little."""
    return DimensionalStandard(
        _words(entry, "district"),
        _words(entry, "standard_type"),
        _words(entry, "value"),
        _maybe(entry, "unit") or "",
        _maybe(entry, "section_ref"),
    )


def definition_of(entry: Mapping[str, Any]) -> Definition:
    """Return a definition. Raises RecordError for one that says too little."""
    return Definition(_words(entry, "term"), _words(entry, "definition_text"), _maybe(entry, "section_ref"))


def section_beside(entry: Mapping[str, Any], stored: Mapping[str, Section], warnings: list[str]) -> Section:
    """Return a section that comes alone, as it stands among those that are stored, by key.

    One whose parent is not there yet is part of it all the same. Raises RecordError for one that says too little, or
    is below itself.
    """
    own, above, draft, level = _section(entry)
    draft.given_level = level
    [section] = finished([draft], warnings)
    if above is None:
        return section
    if above not in stored:
        same = [key for key, other in stored.items() if other.number == above and key != own]
        above = same[0] if len(same) == 1 else above
    seen = {own}
    parent: str | None = above
    while parent is not None and parent not in seen:
        seen.add(parent)
        parent = stored[parent].parent if parent in stored else None
    if parent == own or above == own:
        raise RecordError(f"section {own} would be below itself, by its parent {above!r}")
    known, before = stored.get(above), stored.get(own)
    if known is None:
        warnings.append(f"section {own}: its parent {above!r} is not here yet")
    lowest = known.level + 1 if known is not None else 2
    if level is not None and level < lowest:
        warnings.append(f"section {own} has level {level}, and below {above} it is {lowest}")
    order = section.order
    if entry.get("order") is None:
        siblings = [other.order for key, other in stored.items() if other.parent == above and key != own]
        kept = before is not None and before.parent == above
        order = before.order if before is not None and kept else max(siblings, default=-1) + 1
    return replace(section, parent=above, level=max(lowest, level or 0), order=order)


_Entry = tuple[str, str | None, Draft, int | None]


def _section(entry: Mapping[str, Any]) -> _Entry:
    own = _words(entry, "section_id").strip()
    title = (_maybe(entry, "title") or "").strip()
    order, level = entry.get("order"), entry.get("level")
    if len(own) > LONGEST_KEY:
        raise RecordError(f"its 'section_id' has {len(own):,} characters; it has at most {LONGEST_KEY}")
    if order is not None and not _is_whole(order, 0, _LARGEST):
        raise RecordError(f"its 'order' is {str(order)[:40]!r}; an order is a whole number from 0 to {_LARGEST:,}")
    kind = level.strip().lower() if isinstance(level, str) and level.strip().lower() in KINDS else None
    if level is not None and kind is None and not _is_whole(level, 1, _LARGEST):
        raise RecordError(
            f"its 'level' is {str(level)[:40]!r}; a level is a whole number from 1 to {_LARGEST:,}, or one of "
            f"{', '.join(sorted(KINDS))}"
        )
    heading = heading_of(own) or heading_of(title)
    draft = Draft(kind or (heading.kind if heading and not heading.bare else SECTION), own, title, base=own)
    draft.order = order
    draft.content = content_of(_maybe(entry, "raw_content") or "")
    above = _maybe(entry, "parent_id")
    return own, above.strip() if above else None, draft, level if isinstance(level, int) else None


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def content_of(raw: str) -> Content:
    """Return what the raw content of a section holds: HTML as its lines, and other text as it is.

    Raises RecordError for HTML that cannot be read.
    """
    if _MARKUP.match(raw):
        return municode.content_of(raw)
    text = raw.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not text.strip():
        return Content()
    lines = []
    start = 0
    for line in text.split("\n"):
        words = line.strip()
        if words:
            lines.append((start + line.index(words[0]), words))
        start += len(line) + 1
    return Content(text, outline(lines, len(text)))


def _sections(entries: Sequence[_Entry], warnings: list[str]) -> Sequence[Section]:
    drafts = linked([(own, above, draft) for own, above, draft, _ in entries], warnings)
    for _, _, draft, level in entries:
        draft.given_level = level
    return finished(drafts, warnings)
