"""Parser for codes in JSON, with the fields of the ingestion tools.

An object with ``municipality``, ``state`` and at least one of the lists ``sections``, ``permissions``, ``standards``
and ``definitions``, or only the list of sections:

* a section has ``section_id`` and ``title``, optionally ``level`` (a number, or the word for its kind),
  ``raw_content``, ``parent_id`` and ``order``
* a permission has ``district``, ``use`` and ``permission``, optionally ``conditions``, ``review_section`` and
  ``section_ref``
* a standard has ``district``, ``standard_type``, ``value`` and ``unit``, optionally ``section_ref``
* a definition has ``term`` and ``definition_text``, optionally ``section_ref``
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from kg.errors import RecordError, SourceError
from kg.text import quoted
from loaders.readers.file_text import parse_json
from loaders.readers.formats import surrogate_in, text_of_cell
from loaders.readers.headings import KINDS, SECTION, parse_heading
from loaders.readers.inline import LeftOut
from loaders.zoning.readers import municode
from loaders.zoning.readers.code_model import Code, Definition, DimensionalStandard, Section, UsePermission
from loaders.zoning.readers.outline import find_parts
from loaders.zoning.readers.section_builder import LONGEST_KEY, Draft, build_sections, link_parents, prefix_warnings
from loaders.zoning.readers.text_builder import Content

LISTS: Final = ("sections", "permissions", "standards", "definitions")

_MARKUP: Final = re.compile(
    r"\s*<(?:!doctype|html|body|section|article|div|p|h[1-6]|ul|ol|dl|table|span)\b", re.IGNORECASE
)
_LARGEST: Final = 1_000_000_000
_T = TypeVar("_T")


def parse(data: bytes, name: str, *, municipality: str | None = None, state: str | None = None) -> Code:
    """Parse a JSON file into a code. Raises SourceError for a file without these lists.

    An invalid entry is skipped, with a warning.
    """
    given, warnings = parse_json(data, name)
    if isinstance(given, list):
        given = {"sections": given}
    if not is_code(given):
        raise SourceError(f"{name}: None of the lists {', '.join(LISTS)} found.")
    told = [*warnings]
    left_out = LeftOut()
    sections = _sections([*_each(given, "sections", name, told, lambda entry: _section(entry, left_out))], told)
    told += left_out.describe()
    said = {key: given.get(key) for key in ("municipality", "state", "updated")}
    strings = {key: value for key, value in said.items() if isinstance(value, str) and value.strip()}
    return Code(
        municipality or strings.get("municipality"),
        state or strings.get("state"),
        sections,
        strings.get("updated"),
        tuple(_each(given, "permissions", name, told, parse_permission)),
        tuple(_each(given, "standards", name, told, parse_standard)),
        tuple(_each(given, "definitions", name, told, parse_definition)),
        prefix_warnings(told, name),
    )


def is_code(given: object) -> bool:
    """Check whether a JSON value is a code in this format."""
    return isinstance(given, dict) and any(isinstance(given.get(each), list) for each in LISTS)


def _each(
    given: Mapping[str, Any], part: str, name: str, warnings: list[str], read: Callable[[Mapping[str, Any]], _T]
) -> Iterator[_T]:
    entries = given.get(part)
    if entries is None:
        return
    if not isinstance(entries, list):
        warnings.append(f"{name}: {quoted(part)} is skipped. It is not a list.")
        return
    for number, entry in enumerate(entries, 1):
        try:
            if not isinstance(entry, dict):
                raise RecordError("It is not an object.")
            yield read(entry)
        except RecordError as error:
            warnings.append(f"{name}: Entry {number} of {quoted(part)} is skipped: {error}")


def _words(entry: Mapping[str, Any], name: str) -> str:
    value = _maybe(entry, name)
    if value is None:
        raise RecordError(f"Missing {quoted(name)}, a string.")
    return value


def _maybe(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if isinstance(value, dict | list):
        raise RecordError(f"{quoted(name)} is {'a list' if isinstance(value, list) else 'an object'}, not a string.")
    text = text_of_cell(value)
    if text is not None and (found := surrogate_in(text)) is not None:
        raise RecordError(f"{quoted(name)} contains the lone surrogate {found}, which is not a character.")
    return text if text is not None and text.strip() else None


def parse_permission(entry: Mapping[str, Any]) -> UsePermission:
    """Parse a use permission. Raises RecordError for missing fields."""
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


def parse_standard(entry: Mapping[str, Any]) -> DimensionalStandard:
    """Parse a dimensional standard. Raises RecordError for missing fields."""
    return DimensionalStandard(
        _words(entry, "district"),
        _words(entry, "standard_type"),
        _words(entry, "value"),
        _maybe(entry, "unit") or "",
        _maybe(entry, "section_ref"),
    )


def parse_definition(entry: Mapping[str, Any]) -> Definition:
    """Parse a definition. Raises RecordError for missing fields."""
    return Definition(_words(entry, "term"), _words(entry, "definition_text"), _maybe(entry, "section_ref"))


def parse_section(entry: Mapping[str, Any], stored: Mapping[str, Section], warnings: list[str]) -> Section:
    """Parse a section that is sent alone, given the stored sections by key.

    Its parent may be missing so far. Raises RecordError for missing fields, or for a section below itself.
    """
    left_out = LeftOut()
    own, above, draft, level = _section(entry, left_out)
    warnings += left_out.describe()
    draft.given_level = level
    [section] = build_sections([draft], warnings)
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
        raise RecordError(f"Section {quoted(own)} would be below itself. Its parent is {quoted(above)}.")
    known, before = stored.get(above), stored.get(own)
    if known is None:
        warnings.append(f"Section {quoted(own)}: Its parent {quoted(above)} does not exist yet.")
    lowest = known.level + 1 if known is not None else 2
    if level is not None and level < lowest:
        warnings.append(f"Section {quoted(own)} has level {level}. Below {quoted(above)} it is {lowest}.")
    order = section.order
    if entry.get("order") is None:
        siblings = [other.order for key, other in stored.items() if other.parent == above and key != own]
        kept = before is not None and before.parent == above
        order = before.order if before is not None and kept else max(siblings, default=-1) + 1
    return replace(section, parent=above, level=max(lowest, level or 0), order=order)


_Entry = tuple[str, str | None, Draft, int | None]


def _section(entry: Mapping[str, Any], left_out: LeftOut) -> _Entry:
    own = _words(entry, "section_id").strip()
    title = (_maybe(entry, "title") or "").strip()
    order, level = entry.get("order"), entry.get("level")
    if len(own) > LONGEST_KEY:
        raise RecordError(f"'section_id' has {len(own):,} characters. The maximum is {LONGEST_KEY}.")
    if order is not None and not _is_whole(order, 0, _LARGEST):
        raise RecordError(f"'order' is {quoted(str(order))}. It must be a whole number from 0 to {_LARGEST:,}.")
    kind = level.strip().lower() if isinstance(level, str) and level.strip().lower() in KINDS else None
    if level is not None and kind is None and not _is_whole(level, 1, _LARGEST):
        raise RecordError(
            f"'level' is {quoted(str(level))}. It must be a whole number from 1 to {_LARGEST:,}, or one of "
            f"{', '.join(sorted(KINDS))}"
        )
    heading = parse_heading(own) or parse_heading(title)
    draft = Draft(kind or (heading.kind if heading and not heading.bare else SECTION), own, title, base=own)
    draft.order = order
    draft.content = parse_content(_maybe(entry, "raw_content") or "", left_out)
    above = _maybe(entry, "parent_id")
    return own, above.strip() if above else None, draft, level if isinstance(level, int) else None


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def parse_content(raw: str, left_out: LeftOut) -> Content:
    """Parse the raw content of a section: HTML into lines, other text unchanged. `left_out` counts the rest.

    Raises RecordError for unreadable HTML.
    """
    if _MARKUP.match(raw):
        return municode.parse_content(raw, left_out)
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
    return Content(text, find_parts(lines, len(text)))


def _sections(entries: Sequence[_Entry], warnings: list[str]) -> Sequence[Section]:
    drafts = link_parents([(own, above, draft) for own, above, draft, _ in entries], warnings)
    for _, _, draft, level in entries:
        draft.given_level = level
    return build_sections(drafts, warnings)
