"""Parser for responses of the service behind library.municode.com.

A file contains the unchanged responses of the service, under these names:

* ``client``: of ``/Clients/name``: ``ClientID``, ``ClientName``, ``State``
* ``product``: one of the ``codes`` of ``/ClientContent/{client}``
* ``job``: of ``/Jobs/latest/{product}``: ``Id``, ``Name``, ``BannerText``; a job is one edition of a code
* ``nodes``: of ``/codesToc/children``, all levels, parents first: ``Id``, ``Heading``, ``ParentId``
* ``docs``: the ``Docs`` of ``/CodesContent``: ``Id``, ``Title`` and ``Content``, which is HTML
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kg.errors import RecordError, SourceError
from kg.text import quoted
from loaders.readers import html_tree
from loaders.readers.headings import SECTION, parse_heading
from loaders.readers.inline import LeftOut
from loaders.zoning.readers import html_lines
from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.section_builder import Draft, build_sections, is_same_heading, link_parents, prefix_warnings
from loaders.zoning.readers.text_builder import Body, Content

LEVEL: Final = "level"
"""Kind of a level without a word for it."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse(data: bytes, name: str, *, municipality: str | None = None, state: str | None = None) -> Code:
    """Parse a file of responses into a code. Raises SourceError for any other file."""
    try:
        answers = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{name}: Not valid JSON ({error!r:.120}).") from None
    nodes, docs = (answers.get("nodes"), answers.get("docs")) if isinstance(answers, dict) else (None, None)
    if not isinstance(nodes, list) or not isinstance(docs, list):
        raise SourceError(f"{name}: Not responses of Municode. Expected the lists 'nodes' and 'docs'.")
    warnings: list[str] = []
    left_out = LeftOut()
    texts = _texts(docs, name, warnings, left_out)
    warnings += left_out.describe()
    entries = []
    listed = set()
    for node in nodes:
        if not isinstance(node, dict) or not isinstance(node.get("Id"), str | int):
            warnings.append(f"{name}: A node of the table of contents without Id is skipped: {str(node)[:80]}.")
            continue
        own, above = str(node["Id"]), node.get("ParentId")
        listed.add(own)
        heading = _words(node.get("Heading"), own, name, warnings)
        entries.append((own, above, _draft(own, heading, texts.get(own), name, warnings)))
    known = {own for own, _, _ in entries}
    top = {str(_part(answers, "product", "productId", "ProductID"))}
    for own, text in texts.items():
        if own not in listed:
            warnings.append(f"{name}: {quoted(text.title)} ({own}) has text, but no node in the table of contents.")
            entries.append((own, None, _draft(own, text.title, text, name, warnings)))
    # The parent of a first-level node is the code or the product, neither of which is a node.
    roots = [(own, None if _is_top(above, known, top) else str(above), draft) for own, above, draft in entries]
    drafts = link_parents(roots, warnings)
    sections = build_sections(drafts, warnings)
    if not sections:
        warnings.append(f"{name}: No section found.")
    called, abbreviation = _part(answers, "client", "ClientName"), _state(answers)
    updated = _part(answers, "job", "BannerText") or _part(answers, "job", "Name")
    return Code(
        municipality or (called if isinstance(called, str) else None),
        state or abbreviation,
        sections,
        updated if isinstance(updated, str) else None,
        warnings=prefix_warnings(warnings, name),
    )


def _words(value: object, own: str, name: str, warnings: list[str]) -> str:
    """A value of the service as text that can be written, without lone surrogates."""
    said = "" if value is None else str(value)
    words = _SURROGATE.sub("\ufffd", said)
    if words != said:
        warnings.append(
            f"{name}: {own} contains lone surrogates, which are not characters. Each is replaced by U+FFFD."
        )
    return words


def _part(answers: Mapping[str, Any], part: str, *names: str) -> object:
    value = answers.get(part)
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in names if name in value), None)


def _state(answers: Mapping[str, Any]) -> str | None:
    state = _part(answers, "client", "State")
    found = state.get("StateAbbreviation") if isinstance(state, dict) else None
    return found.upper() if isinstance(found, str) else None


def _is_top(above: object, known: set[str], top: set[str]) -> bool:
    return above in (None, "") or (str(above) not in known and (str(above) in top or len(str(above)) == 0))


@dataclass(frozen=True, slots=True)
class _Text:
    title: str
    content: Content


def _texts(docs: Sequence[Any], name: str, warnings: list[str], left_out: LeftOut) -> Mapping[str, _Text]:
    texts: dict[str, _Text] = {}
    for doc in docs:
        if not isinstance(doc, dict) or not isinstance(doc.get("Id"), str | int):
            warnings.append(f"{name}: A document without Id is skipped: {str(doc)[:80]}.")
            continue
        content = doc.get("Content")
        if not isinstance(content, str):
            continue
        own = str(doc["Id"])
        try:
            title = _words(doc.get("Title"), own, name, warnings)
            text = _Text(title, parse_content(_words(content, own, name, warnings), left_out))
        except RecordError as error:
            warnings.append(f"{name}: The text of {own} is skipped: {error}")
            continue
        if own in texts and texts[own] != text:
            warnings.append(f"{name}: Two documents have the Id {own}. The first one is used.")
        texts.setdefault(own, text)
    return texts


def _draft(own: str, heading: str, text: _Text | None, name: str, warnings: list[str]) -> Draft:
    heading = html_tree.normalize_space(heading)
    if text is not None and text.title and not is_same_heading(text.title, heading):
        warnings.append(
            f"{name}: {own} is {quoted(heading)} in the table of contents, but {quoted(text.title)} in the text."
        )
    found = parse_heading(heading)
    content = text.content if text is not None else Content()
    if found is None:
        return Draft(SECTION if content.text else LEVEL, "", heading, content=content)
    return Draft(found.kind, found.number, found.title, content=content)


def parse_content(html: str, left_out: LeftOut) -> Content:
    """Parse the HTML of one section: its lines, tables, labelled parts and notes. `left_out` counts the rest.

    Raises RecordError for elements that nest too deeply.
    """
    try:
        return _content_of(html, left_out)
    except SourceError as error:
        raise RecordError(str(error)) from None
    except RecursionError:
        raise RecordError("The elements of its HTML nest too deeply.") from None


def _content_of(html: str, left_out: LeftOut) -> Content:
    root = html_tree.parse_html(html, "its HTML", left_out)
    if root is None:
        return Content()
    body = Body()
    html_lines.write(root, lambda: body, lambda *_: False)
    return body.content()
