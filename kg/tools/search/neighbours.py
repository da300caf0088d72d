"""The passages before and after others in the same document, for an answer that is cut at the edge of a passage.

The neighbours of a section are the sections before and after it in the code of its municipality.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg.retrieval.evidence import Unit, describe, load_units, origin_of, place_of, speakers_of
from kg.retrieval.excerpts import trim_to_words
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Neighbour
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.vocabulary import iri_prefix
from kg.zoning_summaries import code_tree

MOST: Final = 5
CHARACTERS: Final = 400
"""Maximum characters of a neighbour in a list of results; `fetch` returns whole passages."""
GAP: Final = 20
"""Maximum number of positions without text, such as images, between two neighbours."""

Neighbours = Annotated[int, Field(ge=0, le=MOST, description="Passages before and after each, of the same document")]

# A window of positions: for 20 passages in 20 documents of 3,000, this takes 90-160 ms, and all positions 500 ms.
NEAR: Final = """
SELECT DISTINCT ?unit ?document ?near ?position WHERE {
  VALUES (?unit ?document ?low ?high) { $places }
  ?near dcterms:isPartOf ?document ; schema:position ?position
  FILTER(?position >= ?low && ?position <= ?high && ?near != ?unit)
  FILTER EXISTS { ?near schema:text ?text }
}"""

CODES: Final = """
SELECT DISTINCT ?section ?municipality WHERE {
  VALUES ?section { $sections } ?section kg:jurisdiction ?municipality
}"""

_SECTIONS: Final = iri_prefix("section")


@dataclass(frozen=True, slots=True)
class Adjacent:
    """The IRIs of the neighbours of a passage, in the order of the document."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shown:
    """The neighbours of a passage in an answer, in the order of the document."""

    before: list[Neighbour] = field(default_factory=list)
    after: list[Neighbour] = field(default_factory=list)


def find_neighbours(reader: Reader, units: Iterable[Unit], count: int) -> dict[str, Adjacent]:
    """Find up to `count` passages before and after each of `units`, by IRI. A text in no document has none."""
    if not count:
        return {}
    units = list(units)
    sections = [unit.iri for unit in units if unit.iri.startswith(_SECTIONS)]
    found = _find_sections(reader, sections, count) if sections else {}
    parts = [unit for unit in units if unit.document != unit.iri and not unit.iri.startswith(_SECTIONS)]
    return found | (_find_parts(reader, parts, count) if parts else {})


def _find_parts(reader: Reader, units: Sequence[Unit], count: int) -> dict[str, Adjacent]:
    reach = count + GAP
    places = [
        (NamedNode(unit.iri), NamedNode(unit.document), unit.position - reach, unit.position + reach) for unit in units
    ]
    rows = reader.rows("passages before and after", bind(NEAR, places=places), declared=("near", "document"))
    near: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for row in rows:
        near[iri_of(row["unit"])].add((int(term_text(row["position"])), iri_of(row["near"])))
    found = {}
    for unit in units:
        order = sorted(near[unit.iri])
        before = [iri for place, iri in order if (place, iri) < (unit.position, unit.iri)]
        after = [iri for place, iri in order if (place, iri) > (unit.position, unit.iri)]
        found[unit.iri] = Adjacent(before[-count:], after[:count])
    return found


def _find_sections(reader: Reader, sections: Sequence[str], count: int) -> dict[str, Adjacent]:
    codes: dict[str, list[str]] = defaultdict(list)
    query = bind(CODES, sections=[NamedNode(iri) for iri in sections])
    for row in reader.rows("codes of sections", query):
        codes[iri_of(row["municipality"])].append(iri_of(row["section"]))
    found = {}
    for municipality, members in codes.items():
        tree = code_tree.cached_tree(reader.kg, municipality)
        order = [iri for iri in tree.order if tree.sections[iri].text_sha256 is not None]
        places = {iri: place for place, iri in enumerate(order)}
        for iri in members:
            if (place := places.get(iri)) is not None:
                found[iri] = Adjacent(order[max(0, place - count) : place], order[place + 1 : place + 1 + count])
    return found


def load_neighbours(reader: Reader, units: Collection[Unit], count: int) -> dict[str, Shown]:
    """Load the passages before and after each of `units`, by IRI, each cut at its far end."""
    adjacent = find_neighbours(reader, units, count)
    wanted = sorted({iri for each in adjacent.values() for iri in (*each.before, *each.after)})
    near = load_units(reader, wanted)
    if not near:
        return {}
    descriptions = describe(reader, {unit.cited for unit in near.values()}, {unit.graph for unit in near.values()})
    voices = speakers_of(reader, near.values())

    def show(unit: Unit, start: int, end: int, *, from_end: bool) -> Neighbour | None:
        end = max(start, end)
        low, high = (max(start, end - CHARACTERS), end) if from_end else (start, min(end, start + CHARACTERS))
        first, last = trim_to_words(unit.text, low, high)
        if first >= last:
            return None
        whole = (first, last) == (0, len(unit.text))
        voice = voices.get(unit.iri)
        return Neighbour(
            id=unit.iri,
            text=unit.text[first:last],
            start=None if whole else first,
            length=None if whole else len(unit.text),
            said_by=voice.other if voice is not None else None,
            provenance=origin_of(reader, descriptions, unit.graph, unit.position, *place_of(descriptions, unit)),
        )

    shown: dict[str, Shown] = {}
    for one in units:
        each = adjacent.get(one.iri, Adjacent())
        before = [near[iri] for iri in each.before if iri in near]
        after = [near[iri] for iri in each.after if iri in near]
        ends = _clip_overlaps(one, before, after)
        shown[one.iri] = Shown(
            [found for unit in before if (found := show(unit, 0, ends[unit.iri], from_end=True))],
            [found for unit in after if (found := show(unit, ends[unit.iri], len(unit.text), from_end=False))],
        )
    return shown


def _clip_overlaps(one: Unit, before: Sequence[Unit], after: Sequence[Unit]) -> Mapping[str, int]:
    """Compute where the text of each neighbour ends (before) or starts (after): the chunks of a speech overlap."""
    places = {unit.iri: len(unit.text) for unit in before} | dict.fromkeys((unit.iri for unit in after), 0)
    start, end = one.span or (0, 0)
    for unit in reversed(before):
        if one.span is not None and unit.span is not None:
            places[unit.iri] = min(len(unit.text), max(0, start - unit.span[0]))
            start = min(start, unit.span[0])
    for unit in after:
        if one.span is not None and unit.span is not None:
            places[unit.iri] = min(len(unit.text), max(0, end - unit.span[0]))
            end = max(end, unit.span[1])
    return places
