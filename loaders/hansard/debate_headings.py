"""Headings of debates, sub-debates, question blocks and petitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml.etree import _Element

from loaders.hansard.paragraphs import get_paragraphs, to_line
from loaders.hansard.sitting_model import Debate, Talker
from loaders.hansard.turn_builder import talk_of
from loaders.readers.cells import parse_digits

_BILL: Final = re.compile(r"\bbill\b", re.IGNORECASE)


@dataclass(slots=True)
class Heading:
    """Title, kind, page, bills and petitioners, as recorded."""

    titles: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    bills: list[tuple[str, str | None]] = field(default_factory=list)
    presenters: list[Talker] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Words of the heading that are none of these."""

    @property
    def title(self) -> str:
        """All titles in one line; empty if there is none."""
        return "; ".join(self.titles)

    def debate(self, path: tuple[int, ...], venue: str | None) -> Debate:
        """Return the debate of this heading."""
        kind, page, signatures = (self.fields.get(name) for name in ("type", "page.no", "no.signed"))
        numbers = {title: number for title, number in reversed(self.bills) if number}
        bills = list(dict.fromkeys(title for title, _ in self.bills))
        return Debate(
            path,
            self.title or None,
            kind,
            page if page != "0" else None,
            bills,
            [numbers.get(title) for title in bills],
            venue,
            self.presenters,
            parse_digits(signatures),
        )


def info_of(element: _Element) -> _Element | None:
    """Return the child with title, page and kind (``debateinfo``, ``petitioninfo``), or None."""
    return next((child for child in element if child.tag.endswith("info")), None)


def parse_heading(element: _Element, senate: bool) -> Heading:
    """Parse the heading of a debate. ``senate``: seats are those of a State."""
    heading = Heading()
    info = info_of(element)
    for part in () if info is None else info:
        tag = part.tag
        if tag == "title":
            heading.titles += (title for title in get_paragraphs(part) if title not in heading.titles)
        elif tag == "subtitle":
            heading.titles[-1:] = [" ".join([*heading.titles[-1:], to_line(part)]).strip()]
        elif tag == "cognate":
            heading.notes += (text for child in part if child.tag != "cognateinfo" for text in get_paragraphs(child))
        elif (value := to_line(part)) and heading.fields.setdefault(tag, value) != value:
            heading.notes.append(value)
    heading.bills += _bills(element, info, heading)
    heading.presenters += (
        talk.talker
        for block in element.iterchildren("presenter", "presenter.block")
        for presenter in block.iter("presenter")
        for talker in [*presenter.iter("talker")] or [presenter]
        if (talk := talk_of(talker, senate))
    )
    return heading


def _bills(element: _Element, info: _Element | None, heading: Heading) -> Iterator[tuple[str, str | None]]:
    """Yield title and number of the bills debated: by the title, cognate bills, and linked bills (2.2)."""
    if heading.fields.get("type", "").casefold().startswith("bill"):
        number = heading.fields.get("id.no")
        for title in heading.titles:
            if _BILL.search(title):
                yield title, number
                number = None
    cognates = () if info is None else (each for cognate in info.iterchildren("cognate") for each in cognate)
    for cognate in cognates:
        titles = [to_line(title) for title in cognate.iterchildren("title")]
        numbers = [to_line(number) for number in cognate.iterchildren("id.no")]
        for title in filter(None, titles):
            yield title, (numbers or [""])[0] or None
    for text in element.iterchildren("debate.text", "subdebate.text"):
        for link in text.iter("a"):
            if link.get("type") == "Bill" and (title := to_line(link)):
                yield title, link.get("href")
