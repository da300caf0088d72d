"""Parser for responses of the service behind library.municode.com.

A file contains the unchanged responses of the service, under these names:

* ``client``: of ``/Clients/name``: ``ClientID``, ``ClientName``, ``State``
* ``product``: one of the ``codes`` of ``/ClientContent/{client}``
* ``job``: of ``/Jobs/latest/{product}``: ``Id``, ``Name``; a job is one edition of a code
* ``nodes``: of ``/codesToc/children``, all levels, parents first: ``Id``, ``Heading``, ``ParentId``
* ``docs``: the ``Docs`` of ``/CodesContent``: ``Id``, ``Title`` and ``Content``, which is HTML
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kg.errors import RecordError, SourceError
from kg.text import quoted
from loaders.readers.file_text import parse_json
from loaders.readers.headings import SECTION, Heading, parse_heading
from loaders.readers.html_tree import normalize_space, parse_html
from loaders.readers.inline import LeftOut
from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.section_builder import Draft, build_sections, link_parents, prefix_warnings
from loaders.zoning.readers.text_builder import Content, Writer

LEVEL: Final = "level"
"""Kind of a level without a word for it."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse(data: bytes, name: str) -> Code:
    """Parse a file of responses into a code. Raises SourceError for any other file."""
    answers = parse_json(data, name)[0]
    nodes, docs = _get(answers, "nodes"), _get(answers, "docs")
    if not isinstance(nodes, list) or not isinstance(docs, list):
        raise SourceError(f"{name}: Not responses of Municode. Expected the lists 'nodes' and 'docs'.")
    warnings: list[str] = []
    left_out = LeftOut()
    texts: dict[str, tuple[str, Content]] = {}
    for own, doc in _identified(docs, "document", warnings):
        if not isinstance(doc.get("Content"), str):
            continue
        try:
            text = _words(doc, "Title", warnings), parse_content(_words(doc, "Content", warnings), left_out)
        except RecordError as error:
            warnings.append(f"The text of {own} is skipped: {error}")
            continue
        if texts.setdefault(own, text) != text:
            warnings.append(f"Two documents have the Id {own}. The first one is used.")
    warnings += left_out.describe()
    # The parent of a first-level node is the code or the product, neither of which is a node.
    top = {"", *(str(_get(answers, "product", name)) for name in ("productId", "ProductID"))}
    entries: list[tuple[str, str | None, Draft]] = []
    for own, node in _identified(nodes, "node of the table of contents", warnings):
        above, heading = str(node.get("ParentId") or ""), normalize_space(_words(node, "Heading", warnings))
        content = texts[own][1] if own in texts else Content()
        entries.append((own, None if above in top else above, _build_draft(heading, content)))
    listed = {own for own, _, _ in entries}
    for own, (title, content) in texts.items():
        if own not in listed:
            warnings.append(f"{quoted(title)} ({own}) has text, but no node in the table of contents.")
            entries.append((own, None, _build_draft(normalize_space(title), content)))
    sections = build_sections(link_parents(entries, warnings), warnings)
    if not sections:
        warnings.append("No section found.")
    state = _get(answers, "client", "State", "StateAbbreviation")
    return Code(
        _get(answers, "client", "ClientName"),
        state.upper() if isinstance(state, str) else None,
        sections,
        warnings=prefix_warnings(warnings, name),
    )


def _get(value: Any, *path: str) -> Any:
    """Get a value in objects within objects. None where one is absent."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _identified(entries: Sequence[Any], what: str, warnings: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in entries:
        if isinstance(own := _get(entry, "Id"), str | int):
            yield str(own), entry
        else:
            warnings.append(f"A {what} without Id is skipped: {str(entry)[:80]}.")


def _words(entry: Mapping[str, Any], name: str, warnings: list[str]) -> str:
    """A value of the service as text that can be written, without lone surrogates."""
    words, count = _SURROGATE.subn("\ufffd", str(entry.get(name) or ""))
    if count:
        warnings.append(
            f"{name} of {entry['Id']} contains lone surrogates, which are not characters. Each is replaced by U+FFFD."
        )
    return words


def _build_draft(heading: str, content: Content) -> Draft:
    kind = SECTION if content.text else LEVEL
    found = parse_heading(heading) or Heading(kind, "", heading)
    return Draft(found.kind, found.number, found.title, content=content)


def parse_content(html: str, left_out: LeftOut) -> Content:
    """Parse the HTML of one section: its lines, tables, labelled parts and notes. `left_out` counts the rest.

    Raises RecordError for elements that nest too deeply.
    """
    writer = Writer()
    try:
        if (root := parse_html(html, "its HTML", left_out)) is not None:
            writer.write(root)
    except SourceError as error:
        raise RecordError(str(error)) from None
    except RecursionError:
        raise RecordError("The elements of its HTML nest too deeply.") from None
    return writer.body().content()
