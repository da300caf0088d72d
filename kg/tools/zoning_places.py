"""Municipalities by name and state, and sections of their codes by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import Field
from pyoxigraph import Literal
from rapidfuzz import fuzz, process

from kg.errors import InvalidInputError, NotFoundError
from kg.store.protocol import Term
from kg.summaries.hierarchy import Hierarchy
from kg.tools.reading import Reader, clean_text, iri_of, text_of
from kg.tools.spelling import folded

NEAR: Final = 5

MUNICIPALITIES: Final = """
SELECT ?municipality ?name ?code ?state WHERE {
  ?municipality a kg:Municipality ; skos:prefLabel ?name
  OPTIONAL { ?municipality kg:within ?within . ?within skos:notation ?code ; skos:prefLabel ?state }
}"""

MunicipalityName = Annotated[str, Field(min_length=1, max_length=200, description="Name, as in Spanish Fork")]
StateName = Annotated[str, Field(min_length=2, max_length=60, description="Two letters, or the name")]
SectionId = Annotated[str, Field(min_length=1, max_length=2_000, description="Number of a section, or its IRI")]


def municipality(reader: Reader, name: str, state: str) -> str:
    """Return the IRI of a municipality. NotFoundError names those that are like it."""
    wanted, within = folded(clean_text("municipality", name, 200)), clean_text("state", state, 60)
    rows = reader.kept("all municipalities", MUNICIPALITIES, lambda found: [_known(row) for row in found])
    for iri, known, codes in rows:
        if folded(known) == wanted and folded(within) in map(folded, codes):
            return iri
    names = {f"{known}, {max(codes, key=len, default='')}".strip(", ") for _, known, codes in rows}
    near = process.extract(f"{name}, {state}", sorted(names), scorer=fuzz.WRatio, limit=NEAR)
    said = "; ".join(each for each, _, _ in near) or "none at all: kg load zoning loads a code"
    raise NotFoundError(f"there is no municipality {name!r} in {state!r}; there are: {said}")


def _known(row: Mapping[str, Term]) -> tuple[str, str, list[str]]:
    codes = [row[name] for name in ("code", "state") if name in row]
    texts = [term.value for term in codes if isinstance(term, Literal)]
    return iri_of(row["municipality"]), text_of(row["name"]), [text.removeprefix("US-") for text in texts]


def section(tree: Hierarchy, section_id: str) -> str:
    """Return the IRI of a section by its number or its IRI. NotFoundError names numbers that are like it."""
    given = clean_text("section_id", section_id, 2_000)
    if given in tree.sections:
        return given
    number = given.lstrip("§ ").strip()
    found = [iri for iri in tree.sections if unquote(iri.rpartition("/")[2]) == given]
    found = found or [iri for iri, each in tree.sections.items() if each.number == number]
    if len(found) > 1:
        raise InvalidInputError(
            f"{len(found)} sections have the number {number}; give one of {', '.join(found[:NEAR])}"
        )
    if found:
        return found[0]
    numbers = [each.number for each in tree.sections.values() if each.number]
    like = process.extract(number, numbers, scorer=fuzz.ratio, limit=NEAR)
    near = ", ".join(dict.fromkeys(each for each, _, _ in like))
    raise NotFoundError(f"this code has no section {given!r}; there are: {near}")
