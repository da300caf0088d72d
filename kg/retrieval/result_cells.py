"""Terms in the answers of the tools: nothing is lost, and what all cells of a column share is said once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kg.store.protocol import Term
from kg.vocabulary import PREFIXES, XSD, curie, prefixed_name

Cell = str | int | bool | None

MIXED: Final = "term"
"""The type of a column whose cells are of several: each is a whole SPARQL term."""


def named(iri: str) -> str:
    """Return an IRI as a cell of a column of IRIs: a prefixed name, or the bare IRI where no prefix fits.

    The rare IRI that would read as a prefixed name is put in angle brackets.
    """
    return prefixed_name(iri) or (f"<{iri}>" if iri.partition(":")[0] in PREFIXES else iri)


def written(term: Term) -> str:
    """Return a term as SPARQL, as short as it goes: prefixed names, bare integers and booleans, datatypes by prefix."""
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
    """Return what a cell is: ``iri``, ``bnode``, ``string``, ``@tag`` of a text in a language, or its datatype."""
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
    """Return the type of a column and its cells; None is an unbound one.

    In a column of one type a cell is the bare value: a prefixed name or IRI, the text of a literal, and a JSON number
    or boolean where nothing is lost by that. In any other, each cell is a SPARQL term.
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
    """Return an integer or boolean in its usual form as what it is in JSON, any other literal as its text."""
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
    """Return the cells with texts cut to `longest` characters, and whether any was."""
    cut = False
    kept: list[Cell] = []
    for cell in cells:
        if isinstance(cell, str) and len(cell) > longest:
            cell, cut = cell[: longest - 1] + "…", True
        kept.append(cell)
    return kept, cut
