"""Sections read back from the store. Notes and citations in the markup are not read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.store.protocol import Rows, Store, Term, select, term_text
from kg.vocabulary import mint
from loaders.zoning.readers.code_model import Cell, Section, Subsection, Table

SECTIONS: Final = """
SELECT ?section ?number ?title ?kind ?level ?parent ?position WHERE {
  ?section kg:jurisdiction $municipality ; kg:level ?level ; eli:type_subdivision ?kind ; schema:position ?position
  OPTIONAL { ?section dcterms:title ?title }
  OPTIONAL { ?section kg:sectionNumber ?number }
  OPTIONAL { ?section dcterms:isPartOf ?parent }
}"""

TEXTS: Final = """
SELECT ?section ?text WHERE { ?section kg:jurisdiction $municipality ; schema:text ?text }"""

SUBSECTIONS: Final = """
SELECT ?section ?part ?start ?end ?title WHERE {
  ?section kg:jurisdiction $municipality . ?part dcterms:isPartOf ?section ; a kg:Subsection ; kg:start ?start ;
    kg:end ?end
  OPTIONAL { ?part dcterms:title ?title }
}"""

TABLES: Final = """
SELECT ?section ?part ?start ?end ?rows ?cells ?title WHERE {
  ?section kg:jurisdiction $municipality . ?part dcterms:isPartOf ?section ; a kg:CodeTable ; kg:start ?start ;
    kg:end ?end ; kg:headerRows ?rows ; kg:cells ?cells
  OPTIONAL { ?part dcterms:title ?title }
}"""


def load_sections(store: Store, name: str) -> dict[str, Section]:
    """Load the stored sections of a municipality by key."""

    def rows(query: str) -> Rows:
        return select(store.query_sources, bind(query, municipality=mint("municipality", name)))

    sections = {section.key: section for row in rows(SECTIONS) for section in [_light(row, name)]}
    if not sections:
        return sections
    texts = {key_of(row["section"], name): term_text(row["text"]) for row in rows(TEXTS)}
    subsections: dict[str, list[Subsection]] = defaultdict(list)
    for row in rows(SUBSECTIONS):
        path = tuple(unquote(label) for label in term_text(row["part"]).partition("#subsection=")[2].split("."))
        heading = term_text(row["title"]) if "title" in row else None
        start, end = int(term_text(row["start"])), int(term_text(row["end"]))
        subsections[key_of(row["section"], name)].append(Subsection(path, start, end, heading))
    tables: dict[str, dict[int, Table]] = defaultdict(dict)
    for row in rows(TABLES):
        key = key_of(row["section"], name)
        number = int(term_text(row["part"]).rpartition("=")[2])
        tables[key][number] = _table(texts.get(key, ""), row)
    return {
        key: replace(
            section,
            text=texts.get(key, ""),
            subsections=sorted(subsections[key], key=lambda each: (each.start, -each.end, len(each.path))),
            tables=[table for _, table in sorted(tables[key].items())],
        )
        for key, section in sections.items()
    }


def key_of(section: Term, name: str) -> str:
    """Get the key of a section of the municipality `name` from its IRI."""
    return unquote(section.value.removeprefix(_sections(name))) if isinstance(section, NamedNode) else ""


@lru_cache(maxsize=64)
def _sections(name: str) -> str:
    return mint("section", name).value + "/"


def _light(row: Mapping[str, Term], name: str) -> Section:
    parent = row.get("parent")
    return Section(
        key_of(row["section"], name),
        term_text(row["number"]) if "number" in row else "",
        term_text(row["title"]) if "title" in row else "",
        unquote(term_text(row["kind"]).rpartition("/")[2]),
        int(term_text(row["level"])),
        None if parent is None else key_of(parent, name),
        int(term_text(row["position"])),
    )


def _table(text: str, row: Mapping[str, Term]) -> Table:
    start, end = int(term_text(row["start"])), int(term_text(row["end"]))
    at, rows = start, []
    for given in json.loads(term_text(row["cells"])):
        cells, at = _cells(text, given, at)
        rows.append(cells)
    title = term_text(row["title"]) if "title" in row else None
    return Table(start, end, rows, int(term_text(row["rows"])), title)


def _cells(text: str, given: Sequence[str | dict[str, Any]], at: int) -> tuple[Sequence[Cell], int]:
    """Parse the cells of a row, which is the first matching line from `at`; also return the offset where it ends."""
    told: list[dict[str, Any]] = [each if isinstance(each, dict) else {"text": each} for each in given]
    line = " | ".join(each["text"] for each in told)
    filled = any(each["text"] for each in told)
    place = max(text.find(line, at), at) if filled else at
    cells = []
    start = place
    for each in told:
        end = start + len(each["text"])
        raised = tuple((start + first, start + last) for first, last in each.get("raised", ()))
        header = bool(each.get("header"))
        cells.append(Cell(each["text"], start, end, each.get("colspan", 1), each.get("rowspan", 1), header, raised))
        start = end + 3 if filled else start
    return cells, place + len(line) if filled else at
