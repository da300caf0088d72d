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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from functools import partial
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
_LINE: Final = re.compile(r"\S(?:.*\S)?")
_LARGEST: Final = 1_000_000_000
_T = TypeVar("_T")
_Statement = TypeVar("_Statement", UsePermission, DimensionalStandard, Definition)


def parse(data: bytes, name: str) -> Code:
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
    entries = [*_each(given, "sections", told, lambda entry: _section(entry, left_out))]
    sections = build_sections(link_parents(entries, told), told)
    told += left_out.describe()
    strings = {key: value for key, value in given.items() if isinstance(value, str) and value.strip()}
    return Code(
        strings.get("municipality"),
        strings.get("state"),
        sections,
        tuple(_each(given, "permissions", told, parse_permission)),
        tuple(_each(given, "standards", told, parse_standard)),
        tuple(_each(given, "definitions", told, parse_definition)),
        prefix_warnings(told, name),
    )


def is_code(given: object) -> bool:
    """Check whether a JSON value is a code in this format."""
    return isinstance(given, dict) and any(isinstance(given.get(each), list) for each in LISTS)


def _each(
    given: Mapping[str, Any], part: str, warnings: list[str], read: Callable[[Mapping[str, Any]], _T]
) -> Iterator[_T]:
    entries = given.get(part)
    if not isinstance(entries, list):
        warnings += [] if entries is None else [f"{quoted(part)} is skipped. It is not a list."]
        return
    for number, entry in enumerate(entries, 1):
        try:
            if not isinstance(entry, dict):
                raise RecordError("It is not an object.")
            yield read(entry)
        except RecordError as error:
            warnings.append(f"Entry {number} of {quoted(part)} is skipped: {error}")


def _words(entry: Mapping[str, Any], name: str) -> str:
    value = _maybe(entry, name)
    if value is None:
        raise RecordError(f"Missing {name}, a string.")
    return value


def _maybe(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if isinstance(value, dict | list):
        raise RecordError(f"{name} is {'a list' if isinstance(value, list) else 'an object'}, not a string.")
    text = text_of_cell(value)
    if text is not None and (found := surrogate_in(text)) is not None:
        raise RecordError(f"{name} contains the lone surrogate {found}, which is not a character.")
    return text if text is not None and text.strip() else None


def parse_statement(kind: type[_Statement], entry: Mapping[str, Any]) -> _Statement:
    """Parse a permission, standard or definition by the fields of its class. Raises RecordError for missing fields."""
    given: dict[str, Any] = {}
    for each in fields(kind):
        if each.name == "conditions":
            conditions = entry.get(each.name)
            listed = conditions if isinstance(conditions, list | tuple) else [conditions]
            told = (_maybe({each.name: one}, each.name) for one in listed)
            given[each.name] = tuple(one for one in told if one is not None)
        elif each.default is MISSING:
            given[each.name] = _words(entry, each.name)
        else:
            given[each.name] = _maybe(entry, each.name) or each.default
    return kind(**given)


parse_permission = partial(parse_statement, UsePermission)
parse_standard = partial(parse_statement, DimensionalStandard)
parse_definition = partial(parse_statement, Definition)


def parse_section(entry: Mapping[str, Any], stored: Mapping[str, Section], warnings: list[str]) -> Section:
    """Parse a section that is sent alone, given the stored sections by key.

    Its parent may be missing so far. Raises RecordError for missing fields, or for a section below itself.
    """
    left_out = LeftOut()
    own, above, draft = _section(entry, left_out)
    warnings += left_out.describe()
    [section] = build_sections([draft], warnings)
    if above is None:
        return section
    if above not in stored:
        same = [key for key, other in stored.items() if other.number == above and key != own]
        above = same[0] if len(same) == 1 else above
    seen: set[str] = set()
    parent: str | None = above
    while parent is not None and parent != own and parent not in seen:
        seen.add(parent)
        parent = stored[parent].parent if parent in stored else None
    if parent == own:
        raise RecordError(f"Section {quoted(own)} would be below itself. Its parent is {quoted(above)}.")
    if above not in stored:
        warnings.append(f"Section {quoted(own)}: Its parent {quoted(above)} does not exist yet.")
    lowest = stored[above].level + 1 if above in stored else 2
    order = section.order
    if entry.get("order") is None:
        siblings = {key: other.order for key, other in stored.items() if other.parent == above}
        order = siblings.get(own, max(siblings.values(), default=-1) + 1)
    return replace(section, parent=above, level=max(lowest, draft.given_level or 0), order=order)


def _section(entry: Mapping[str, Any], left_out: LeftOut) -> tuple[str, str | None, Draft]:
    """Parse a section into its id, the id of its parent, and its draft."""
    own = _words(entry, "section_id").strip()
    title = (_maybe(entry, "title") or "").strip()
    order, level = _whole(entry, "order", 0), entry.get("level")
    if len(own) > LONGEST_KEY:
        raise RecordError(f"'section_id' has {len(own):,} characters. The maximum is {LONGEST_KEY}.")
    word = level.strip().lower() if isinstance(level, str) else ""
    rank = None if word in KINDS else _whole(entry, "level", 1, f", or one of {', '.join(sorted(KINDS))}")
    heading = parse_heading(own) or parse_heading(title)
    kind = word if word in KINDS else heading.kind if heading and not heading.bare else SECTION
    draft = Draft(kind, own, title, base=own, order=order, given_level=rank)
    draft.content = parse_content(_maybe(entry, "raw_content") or "", left_out)
    return own, (_maybe(entry, "parent_id") or "").strip() or None, draft


def _whole(entry: Mapping[str, Any], name: str, least: int, others: str = "") -> int | None:
    value = entry.get(name)
    if value is not None and (type(value) is not int or not least <= value <= _LARGEST):
        raise RecordError(
            f"'{name}' is {quoted(str(value))}. It must be a whole number from {least} to {_LARGEST:,}{others}."
        )
    return value


def parse_content(raw: str, left_out: LeftOut) -> Content:
    """Parse the raw content of a section: HTML into lines, other text unchanged. `left_out` counts the rest.

    Raises RecordError for unreadable HTML.
    """
    if _MARKUP.match(raw):
        return municode.parse_content(raw, left_out)
    text = raw.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not text.strip():
        return Content()
    return Content(text, find_parts([(line.start(), line[0]) for line in _LINE.finditer(text)], len(text)))
