"""The pages of speeches and of sitting days: who said which words, under the headings of the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kg.errors import NotFoundError
from kg.retrieval.reader import Reader
from kg.retrieval.speech_records import INTERJECTION
from kg.server.pages.marked_text import Run, Span, parse_span, split_text
from kg.server.pages.reading import list_cited, list_citing, page_href, reading_page
from kg.server.pages.site import Site, get_number
from kg.store.protocol import term_text
from kg.tools.parliament.votes import Side
from kg.tools.reading.speeches import Item, SpeechText, Voice, load_entries, read_sitting, read_speech
from kg.tools.reading.targets import Target
from kg.vocabulary import KG

_AYES: Final[tuple[Side, ...]] = ("aye", "pairedAye")
_NOES: Final[tuple[Side, ...]] = ("no", "pairedNo")
_HEADING_LEVELS: Final = 3


@dataclass(frozen=True, slots=True)
class ShownVoice:
    """The words of one voice as the template shows them."""

    voice: Voice
    runs: Sequence[Run]
    asked: bool
    chunk: str | None
    """The first passage in these words."""


def show_speech(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a speech; if the address names a passage of it, that passage is marked."""
    speech = read_speech(site.kg, target.iri, get_number(request, "cited"))
    said = speech.said
    asked, highlight = find_asked(said, target, request.query_params.get("span"))
    context = {
        "speech": speech,
        "said": said,
        "voices": show_voices(said, highlight, asked),
        "words_marked": highlight is not None,
        "heading": said.speech.title,
        "cites": list_cited(speech.marks.citations),
        "citing": list_citing(speech.cited_by),
        "interjections": sum(voice.kind == _INTERJECTION for voice in said.voices),
    }
    return reading_page(
        request, "speech.html", context, iri=said.iri, generation=speech.generation, queries=speech.queries
    )


_INTERJECTION: Final = INTERJECTION.value.rpartition("/")[2]


def find_asked(said: SpeechText, target: Target, span: str | None) -> tuple[Span | None, Span | None]:
    """Find the part of a speech that the address names and the words that it highlights, as offsets in the speech."""
    part = next((Span(chunk.start, chunk.end) for chunk in said.chunks if chunk.iri == target.part), None)
    if span:
        within = part or Span(0, len(said.text))
        found = parse_span(span, within.end - within.start)
        return part, Span(within.start + found.start, within.start + found.end)
    if target.span is not None and part is not None:
        return part, Span(part.start + target.span[0], part.start + target.span[1])
    return part, None


def show_voices(said: SpeechText, highlight: Span | None = None, asked: Span | None = None) -> list[ShownVoice]:
    """Split the words of a speech by voice, without the white space between them."""
    shown = []
    for voice in said.voices:
        start, end = voice.start, voice.end
        text = said.text[start:end]
        if not text.strip():
            continue
        # Without the white space between voices, as far as none of it is highlighted.
        first, last = start + len(text) - len(text.lstrip("\n")), start + len(text.rstrip())
        if highlight is not None and highlight.start < end and start < highlight.end:
            first, last = min(first, max(start, highlight.start)), max(last, min(end, highlight.end))
        start, end = first, last
        runs = split_text(said.text, said.marks, highlight, start=start, end=end)
        chunk = next((each.iri for each in said.chunks if each.start < end and start < each.end), None)
        is_asked = asked is not None and asked.start < end and start < asked.end
        shown.append(ShownVoice(voice, runs, is_asked, chunk))
    return shown


def show_sitting(site: Site, request: Request, target: Target) -> Response:
    """Answer with a page of a sitting day or debate; if the address names a part, with the page that has it."""
    number, iri, part = get_number(request, "page"), target.iri, target.part
    if part is not None:
        iri, number = _find_part(site, target)
    day = read_sitting(site.kg, iri, number)
    heading = day.title or ", ".join(part for part in (day.chamber or "Sitting", day.date) if part)
    least = min((entry.depth for entry in day.outline), default=0)
    context = {
        "day": day,
        "heading": heading,
        "items": [_show_item(item, target, request.query_params.get("span")) for item in day.items],
        "outline": [
            {
                "text": entry.node.title or "Untitled",
                "href": ("" if entry.page == day.page else page_href(iri, page=entry.page))
                + f"#{part_anchor(entry.node.iri)}",
                "level": min(entry.depth - least + 1, 4),
                "here": entry.page == day.page and day.pages > 1,
            }
            for entry in day.outline
        ],
        "pages": [(each, page_href(iri, page=each)) for each in range(1, day.pages + 1)],
        "references": [term_text(term) for term in day.facts.get(KG.hansardReference, ())],
        "cites": list_cited(day.marks.citations),
        "ayes": _AYES,
        "noes": _NOES,
        "has_contents": bool(day.outline) or day.pages > 1,
        "jump": part_anchor(target.part) if target.part is not None and iri != target.part else None,
    }
    return reading_page(request, "sitting.html", context, iri=iri, generation=day.generation, queries=day.queries)


def _find_part(site: Site, target: Target) -> tuple[str, int]:
    """Find the sitting day and its page with a division or a procedural text, whose whole may be a debate."""
    reader = Reader(site.kg)
    _, sitting, _, _ = load_entries(reader, target.iri)
    _, _, _, entries = load_entries(reader, sitting)
    number = next((entry.page for entry in entries if entry.node.iri == target.part), None)
    if number is None:
        raise NotFoundError(f"<{target.part}> is in no debate of <{sitting}>.")
    return sitting, number


def _show_item(item: Item, target: Target, span: str | None) -> dict[str, object]:
    node = item.entry.node
    asked = node.iri == target.part
    lit = parse_span(span, len(item.text)) if asked and span and item.text else None
    return {
        "item": item,
        "node": node,
        "anchor": part_anchor(node.iri),
        "level": min(item.entry.depth + 2, 1 + _HEADING_LEVELS),
        "voices": show_voices(item.said) if item.said is not None else [],
        "runs": split_text(item.text.strip("\n"), item.marks, lit) if item.text else [],
        "asked": asked,
    }


def part_anchor(iri: str) -> str:
    """Build the fragment of a part of a sitting day on its page: its kind and its own key."""
    if "#" in iri:
        return iri.partition("#")[2].replace("=", "-")
    kind, _, key = iri.partition("/id/")[2].partition("/")
    return f"{kind}-{key.rpartition('/')[2]}"
