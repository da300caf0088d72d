"""Titles to show where a source gives none: built from the facts when they are read, in square brackets, never stored.

Library catalogues use the same brackets for words that are not of the source (ISBD).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode

from kg.vocabulary import DCTERMS, ELI, KG, iri_prefix, parts_of

FACTS: Final = (KG.speakerAsRecorded, DCTERMS.date, KG.debateType, ELI.type_subdivision, KG.sectionNumber)
"""The properties that a title is built from."""

_SPEECHES: Final = iri_prefix("speech")
_SITTINGS: Final = iri_prefix("sitting")
_DEBATES: Final = iri_prefix("debate")
_SECTIONS: Final = iri_prefix("section")


Get = Callable[[NamedNode], str | None]


def build_display_title(iri: str, get: Get = lambda _: None) -> str:
    """Build the title to show for a document, debate or section without one: ``[Speech by Mr ABEL, 2024-10-16]``.

    `get` returns the first value of one of `FACTS`. Chamber and date of a sitting or debate are those in its IRI, as is
    the number of a section that records none. Anything else has the last part of its IRI: ``[fictional-act_x1]``.
    """
    return f"[{_describe(iri, get)}]"


def _describe(iri: str, get: Get) -> str:
    if iri.startswith(_SPEECHES):
        speaker, date = get(KG.speakerAsRecorded), get(DCTERMS.date)
        return ", ".join(part for part in (f"Speech by {speaker}" if speaker else "Speech", date) if part)
    if iri.startswith(_SITTINGS):
        return ", ".join(["Sitting", *_split_day(iri, _SITTINGS)])
    if iri.startswith(_DEBATES):
        *day, own = _split_day(iri, _DEBATES)
        return ", ".join([get(KG.debateType) or f"Debate {own}", *day])
    if iri.startswith(_SECTIONS):
        kind, number = get(ELI.type_subdivision), get(KG.sectionNumber)
        if kind and number:
            return f"{_end_of(kind).capitalize()} {number}"
        return number or _end_of(iri).replace("|", ", ")
    return _end_of(iri)


def _split_day(iri: str, root: str) -> list[str]:
    """Split the key of a sitting or debate: chamber, date, and the number of a debate."""
    chamber, *rest = parts_of(iri, root)
    return [chamber.capitalize(), *rest]


def _end_of(iri: str) -> str:
    return unquote(iri.partition("#")[0].rpartition("/")[2]) or iri
