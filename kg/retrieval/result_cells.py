"""Lossless, short forms of RDF terms in tabular results. The common type of a column is stated once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kg.store.protocol import Term
from kg.vocabulary import PREFIXES, XSD, curie, prefixed_name

Cell = str | int | bool | None

MIXED: Final = "term"
"""The type of a column with cells of several types: each cell is a whole SPARQL term."""


def named(iri: str) -> str:
    """Format an IRI as a cell of a column of IRIs: a prefixed name, or the bare IRI if no prefix fits.

    The rare IRI that would parse as a prefixed name is put in angle brackets.
    """
    return prefixed_name(iri) or (f"<{iri}>" if iri.partition(":")[0] in PREFIXES else iri)


def written(term: Term) -> str:
    """Format a term in SPARQL, with prefixed names, bare integers and booleans, and datatypes by prefix."""
    if isinstance(term, NamedNode):
        return curie(term.value)
    if isinstance(term, Triple):
        return f"<<( {written(term.subject)} {written(term.predicate)} {written(term.object)} )>>"
    if isinstance(term, Literal) and term.language is None and term.datatype != XSD.string:
        if isinstance(_bare(term), int):
            return term.value
        return f"{Literal(term.value)}^^{curie(term.datatype.value)}"
    return str(term)


def type_of(term: Term) -> str:
    """Get the type of a cell: ``iri``, ``bnode``, ``string``, ``@tag`` for a text in a language, or the datatype."""
    if isinstance(term, NamedNode):
        return "iri"
    if isinstance(term, BlankNode):
        return "bnode"
    if isinstance(term, Literal):
        if term.language is not None:
            return f"@{term.language}" + (f"--{term.direction}" if _direction(term) else "")
        return "string" if term.datatype == XSD.string else curie(term.datatype.value)
    return MIXED


def column(cells: Sequence[Term | None]) -> tuple[str, list[Cell]]:
    """Format a column: its type and its cells; None is an unbound cell.

    In a column of one type a cell is the bare value: a prefixed name or IRI, the text of a literal, or a JSON number
    or boolean if that is lossless. In any other column, each cell is a SPARQL term.
    """
    types = {type_of(cell) for cell in cells if cell is not None}
    if len(types) != 1 or MIXED in types:
        return (MIXED if types else "unbound"), [None if cell is None else written(cell) for cell in cells]
    return types.pop(), [_plain(cell) for cell in cells]


def _plain(cell: Term | None) -> Cell:
    if isinstance(cell, NamedNode):
        return named(cell.value)
    if isinstance(cell, Literal):
        return _bare(cell)
    return None if cell is None else str(cell)


def _bare(literal: Literal) -> str | int | bool:
    """Convert an integer or boolean in canonical form to JSON, any other literal to its text."""
    text = literal.value
    if literal.datatype == XSD.boolean and text in ("true", "false"):
        return text == "true"
    if (
        literal.datatype == XSD.integer
        and len(text) < 16
        and text.removeprefix("-").isdigit()
        and text == str(int(text))
    ):
        return int(text)
    return text


def _direction(literal: Literal) -> str | None:
    return getattr(literal, "direction", None)


def longest_cut(cells: Iterable[Cell], longest: int) -> tuple[list[Cell], bool]:
    """Truncate texts in cells to `longest` characters, and report whether any was truncated."""
    cut = False
    kept: list[Cell] = []
    for cell in cells:
        if isinstance(cell, str) and len(cell) > longest:
            cell, cut = cell[: longest - 1] + "…", True
        kept.append(cell)
    return kept, cut
