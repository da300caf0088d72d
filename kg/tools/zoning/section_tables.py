"""Loads the tables in the text of a section as cells for HTML pages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from pyoxigraph import NamedNode

from kg.retrieval.reader import Reader
from kg.sparql.terms import bind
from kg.store.protocol import term_text

TABLES: Final = """
SELECT DISTINCT ?section ?table ?start ?end ?cells ?rows WHERE {
  VALUES ?section { $section }
  ?table dcterms:isPartOf ?section ; kg:cells ?cells ; kg:start ?start ; kg:end ?end
  OPTIONAL { ?table kg:headerRows ?rows }
} ORDER BY ?start DESC(?end)"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    words: list[tuple[str, bool]]
    """Its text in pieces, each with whether it is superscript (a footnote mark)."""
    header: bool
    colspan: int
    rowspan: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the text of a section, at characters `start` to `end`."""

    start: int
    end: int
    rows: list[list[Cell]]


def load_section_tables(reader: Reader, section: NamedNode) -> list[Table]:
    """Load the tables in the text of `section`, in their order. Nested tables are skipped."""
    tables: list[Table] = []
    for row in reader.rows("tables of the section", bind(TABLES, section=section), declared=("section", "table")):
        start, end = int(term_text(row["start"])), int(term_text(row["end"]))
        if tables and start < tables[-1].end:
            continue
        headed = int(term_text(row["rows"])) if "rows" in row else 0
        cells = json.loads(term_text(row["cells"]))
        tables.append(Table(start, end, [[_to_cell(of, n < headed) for of in line] for n, line in enumerate(cells)]))
    return tables


def _to_cell(cell: str | dict[str, Any], headed: bool) -> Cell:
    if isinstance(cell, str):
        return Cell([(cell, False)], headed, 1, 1)
    text, words, done = cell.get("text", ""), [], 0
    for start, end in cell.get("raised", ()):
        words += [(text[done:start], False), (text[start:end], True)]
        done = end
    words.append((text[done:], False))
    kept = [piece for piece in words if piece[0]]
    return Cell(kept, cell.get("header", headed), cell.get("colspan", 1), cell.get("rowspan", 1))
