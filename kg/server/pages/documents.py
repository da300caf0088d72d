"""The page of a climate document or a file: outline, passages with their marks, citations in both directions."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, Final

from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import Response

from kg.errors import NotFoundError
from kg.languages import name_language
from kg.retrieval.citation_formats import count_page
from kg.retrieval.evidence import Unit, load_units
from kg.retrieval.reader import Reader
from kg.server.html import href_of
from kg.server.pages.marked_text import Run, parse_span, split_text
from kg.server.pages.reading import list_cited, list_citing, page_href, reading_page
from kg.server.pages.site import Site, get_number
from kg.store.protocol import Term, term_text
from kg.tools.entities.dereference import short_name
from kg.tools.reading.documents import DocumentPage, Heading, LeftOut, find_page, load_order, read_document
from kg.tools.reading.targets import Target
from kg.vocabulary import DCTERMS, ELI, KG, SCHEMA

_FACTS: Final = (
    (ELI.date_document, "Date"),
    (DCTERMS.date, "Date"),
    (KG.jurisdiction, "Place"),
    (KG.corpusType, "Type"),
    (ELI.is_member_of, "Family"),
    (KG.isLaw, "Law"),
    (SCHEMA.inLanguage, "Language"),
    (KG.path, "Path"),
    (SCHEMA.encodingFormat, "Format"),
    (SCHEMA.numberOfPages, "Pages"),
    (DCTERMS.subject, "Topics"),
    (SCHEMA.keywords, "Topics"),
    (DCTERMS.creator, "By"),
)
"""The facts in the head of a page, in order, with their headings."""
_HEADINGS: Final = frozenset({"title", "sectionheading", "heading"})
_RIGHT_TO_LEFT: Final = frozenset({"Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm"})
_QUIET: Final = frozenset({"pagenumber", "footnote", "pageheader", "pagefooter"})


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage as the template shows it."""

    unit: Unit
    number: int
    runs: list[Run]
    asked: bool
    """Whether it is the passage that the address names."""
    lit: bool
    """Whether words of it are highlighted."""
    style: str
    new_page: int | None
    """The page of the source file, where it differs from that of the passage before."""
    language: str | None
    direction: str
    """``auto``, or that of the language for a text without a letter, which shows none: a number in Arabic."""


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with a page of a document; if the address names a passage, with the page that has it."""
    number, part, highlight = get_number(request, "page"), target.part, target.span
    if part is not None:
        reader = Reader(site.kg)
        unit = load_units(reader, [part]).get(part)
        if unit is None:
            raise NotFoundError(f"<{part}> has no text.")
        number = find_page(load_order(reader, NamedNode(target.iri)), part, unit.position)
        if span := request.query_params.get("span"):
            asked = parse_span(span, len(unit.text))
            highlight = asked.start, asked.end
    document = read_document(site.kg, target.iri, number, get_number(request, "cited"))
    context = {
        "document": document,
        "facts": _list_facts(document),
        "passages": _show_passages(document, part, highlight),
        "outline": [_outline_entry(document, each) for each in document.outline],
        "pages": [(each, page_href(target.iri, page=each)) for each in range(1, document.pages + 1)],
        "cites": list_cited(document.marks.citations),
        "citing": list_citing(document.cited_by),
        "has_contents": bool(document.outline) or document.pages > 1,
        "heading": document.title,
        "name_language": name_language,
    }
    return reading_page(
        request,
        "document.html",
        context,
        iri=target.iri,
        generation=document.generation,
        queries=document.queries,
    )


def _list_facts(document: DocumentPage) -> list[dict[str, Any]]:
    """List the facts of the head, those with one heading together."""
    found: dict[str, list[dict[str, str | None]]] = {}
    for name, heading in _FACTS:
        terms: list[Term] = sorted(document.facts.get(name, ()), key=term_text)
        for term in terms:
            if isinstance(term, NamedNode):
                text, href = document.labels.get(term.value) or short_name(term.value), href_of(term.value)
            else:
                text, href = term_text(term), None
                if name == SCHEMA.inLanguage:
                    text = name_language(text)
            found.setdefault(heading, []).append({"text": text, "href": href})
    return [{"heading": heading, "values": values} for heading, values in found.items()]


def _outline_entry(document: DocumentPage, entry: Heading | LeftOut) -> dict[str, Any]:
    """Build an entry of the outline. Headings that are left out are listed on the page that the entry leads to."""
    heading = entry.first if isinstance(entry, LeftOut) else entry
    here = "" if heading.page == document.page else page_href(document.iri, page=heading.page)
    if not here and document.page != heading.page:
        here = page_href(document.iri)
    return {
        "text": heading.text,
        "href": f"{here}#p-{heading.place + 1}",
        "level": min(heading.level, 4),
        "left_out": entry.count if isinstance(entry, LeftOut) else 0,
    }


def _show_passages(document: DocumentPage, part: str | None, highlight: tuple[int, int] | None) -> list[ShownPassage]:
    places = {iri: place for place, iri in enumerate(document.shown, document.first + 1)}
    own = document.values(SCHEMA.inLanguage)
    language = own[0] if len(own) == 1 else None
    shown = []
    paged = any(unit.page for unit in document.passages)  # a text without pages can have the page 0
    page: int | None = None
    end = 0
    for unit in document.passages:
        asked = unit.iri == part
        lit = parse_span("{}-{}".format(*highlight), len(unit.text)) if asked and highlight else None
        kind = (unit.kind or "").casefold()
        style = "heading" if kind in _HEADINGS else "quiet" if kind in _QUIET else "list" if kind == "list" else ""
        turned = None
        if paged and unit.page is not None and unit.page != page:
            page, turned = unit.page, count_page(unit.iri, unit.page)
        repeated = max(0, end - unit.span[0]) if unit.span and not asked else 0  # chunks of files may overlap
        end = unit.span[1] if unit.span else 0
        runs = split_text(unit.text, document.marks.of(unit.iri), lit, start=repeated)
        number, direction = places.get(unit.iri, 0), find_direction(unit.text, language)
        shown.append(ShownPassage(unit, number, runs, asked, lit is not None, style, turned, language, direction))
    return shown


def find_direction(text: str, language: str | None) -> str:
    """Find the direction of a passage: that of its letters, which browsers find, else that of its language."""
    if language is None or any(unicodedata.bidirectional(character) in ("L", "R", "AL") for character in text):
        return "auto"
    import langcodes  # its tables take time to load, and a start should not

    try:
        script = langcodes.Language.get(language).maximize().script
    except ValueError:  # no tag of BCP 47
        return "auto"
    return "rtl" if script in _RIGHT_TO_LEFT else "auto"
