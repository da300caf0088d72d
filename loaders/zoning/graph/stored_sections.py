"""Sections read back from the store. Notes and citations in the markup are not read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, select, term_text
from kg.vocabulary import mint
from loaders.zoning.readers.code_model import Cell, Section, Subsection, Table

SECTIONS: Final = """
SELECT ?section ?number ?title ?kind ?level ?parent ?position ?text WHERE {
  ?section kg:jurisdiction $municipality ; kg:level ?level ; eli:type_subdivision ?kind ; schema:position ?position
  OPTIONAL { ?section dcterms:title ?title }
  OPTIONAL { ?section kg:sectionNumber ?number }
  OPTIONAL { ?section dcterms:isPartOf ?parent }
  OPTIONAL { ?section schema:text ?text }
}"""

PARTS: Final = """
SELECT ?section ?part ?start ?end ?title ?rows ?cells WHERE {
  ?section kg:jurisdiction $municipality . ?part dcterms:isPartOf ?section ; a ?kind ; kg:start ?start ; kg:end ?end
  VALUES ?kind { kg:Subsection kg:CodeTable }
  OPTIONAL { ?part dcterms:title ?title }
  OPTIONAL { ?part kg:headerRows ?rows ; kg:cells ?cells }
}"""


def load_sections(store: Store, name: str) -> dict[str, Section]:
    """Load the stored sections of a municipality by key."""

    def rows(query: str) -> Iterator[tuple[str, Mapping[str, str]]]:
        for row in select(store.query_sources, bind(query, municipality=mint("municipality", name))):
            yield key_of(row["section"], name), {each: term_text(term) for each, term in row.items()}

    texts: dict[str, Mapping[str, str]] = dict(rows(SECTIONS))
    subsections: dict[str, list[Subsection]] = defaultdict(list)
    tables: dict[str, dict[int, Table]] = defaultdict(dict)
    for key, row in rows(PARTS) if texts else ():
        start, end, title = int(row["start"]), int(row["end"]), row.get("title")
        if "cells" in row:
            read = _read_rows(texts.get(key, {}).get("text", ""), row["cells"], start)
            tables[key][int(row["part"].rpartition("=")[2])] = Table(start, end, read, int(row["rows"]), title)
        else:
            path = tuple(unquote(label) for label in row["part"].partition("#subsection=")[2].split("."))
            subsections[key].append(Subsection(path, start, end, title))
    return {
        key: Section(
            key,
            row.get("number", ""),
            row.get("title", ""),
            unquote(row["kind"].rpartition("/")[2]),
            int(row["level"]),
            key_of(NamedNode(row["parent"]), name) if "parent" in row else None,
            int(row["position"]),
            row.get("text", ""),
            sorted(subsections[key], key=lambda each: (each.start, -each.end, len(each.path))),
            [table for _, table in sorted(tables[key].items())],
        )
        for key, row in texts.items()
    }


def key_of(section: Term, name: str) -> str:
    """Get the key of a section of the municipality `name` from its IRI."""
    return unquote(section.value.removeprefix(_sections(name))) if isinstance(section, NamedNode) else ""


@lru_cache(maxsize=64)
def _sections(name: str) -> str:
    return mint("section", name).value + "/"


def _read_rows(text: str, given: str, start: int) -> Sequence[Sequence[Cell]]:
    """Parse the rows of a table that begins at an offset of the section's text."""
    rows = []
    for row in json.loads(given):
        cells, start = _cells(text, row, start)
        rows.append(cells)
    return rows


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
