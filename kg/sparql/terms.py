"""Terms as SPARQL text: the only way that data enters a query."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kg.errors import InvalidInputError
from kg.sparql.lexer import tokens
from kg.vocabulary import XSD

Bindable = NamedNode | Literal | Triple | bool | int | float | Decimal
Row = tuple[Bindable | None, ...]

_TOUCHABLE = frozenset(" \t\r\n(){}[],;")


def is_iri(text: str) -> bool:
    """Return whether `text` is an absolute IRI."""
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


def quote(term: Bindable) -> str:
    """Return `term` as SPARQL: one token that the parser reads back as exactly this term.

    Integers and booleans become bare tokens (so they serve after LIMIT too), floats ``xsd:double``, Decimals
    ``xsd:decimal``. Raises InvalidInputError for blank nodes, which in a query are variables, and TypeError for text:
    say ``Literal(text)`` or ``NamedNode(text)``.
    """
    if isinstance(term, bool):
        return "true" if term else "false"
    if isinstance(term, int):
        return str(int(term))
    if isinstance(term, float):
        return str(Literal(float(term)))
    if isinstance(term, Decimal):
        if not term.is_finite():
            raise InvalidInputError(f"xsd:decimal has no {term}; give a finite number, or a float")
        return str(Literal(format(term, "f"), datatype=XSD.decimal))
    if isinstance(term, Triple):
        return f"<<( {_quote(term.subject)} {_quote(term.predicate)} {_quote(term.object)} )>>"
    return _quote(term)


def _quote(term: object) -> str:
    match term:
        case NamedNode() | Literal():
            return str(term)
        case Triple():
            return quote(term)
        case BlankNode():
            raise InvalidInputError(
                f"the blank node {term} cannot be bound: in a query it would match anything; bind an IRI or a literal"
            )
        case str():
            raise TypeError(f"text is no term: say Literal({term!r}) or NamedNode({term!r})")
        case _:
            raise TypeError(f"no SPARQL term can be made of a {type(term).__name__}")


def bind(query: str, /, **terms: Bindable | Sequence[Bindable] | Sequence[Row]) -> str:
    """Return `query` with each ``$name`` replaced by its term; ``?name`` stays a variable.

    ``$name`` inside a string, a comment or an IRI is not touched. A list (or tuple) of terms becomes terms separated by
    spaces, a list of tuples becomes rows in parentheses (None in a row is UNDEF), both for VALUES::

        bind("SELECT ?p { VALUES (?s ?o) { $pairs } ?s ?p ?o } LIMIT $n", pairs=[(iri, Literal("a"))], n=10)

    Every name must occur, and every ``$name`` be given, else TypeError.
    """
    texts = {name: _text(value) for name, value in terms.items()}
    pieces = _pieces(query)
    for _, name, _ in pieces:
        if name and name not in texts:
            given = ", ".join(sorted(texts)) or "nothing"
            raise TypeError(f"the query has ${name}, but no term was given for it (given: {given})")
    if unused := sorted(texts.keys() - {name for _, name, _ in pieces}):
        raise TypeError(f"the query has no ${', $'.join(unused)}")
    return "".join(before + (texts[name] if name else "") + after for before, name, after in pieces)


@lru_cache(maxsize=1024)
def _pieces(query: str) -> Sequence[tuple[str, str, str]]:
    """Return `query` as what stands before each ``$name``, the name, and the space that it needs after it.

    The last piece has no name. The queries that are bound are few and written in code, so each is cut once.
    """
    pieces: list[tuple[str, str, str]] = []
    parts: list[str] = []
    for token in tokens(query):
        if token.kind != "variable" or token.text[0] != "$":
            parts.append(token.text)
            continue
        if token.start and query[token.start - 1] not in _TOUCHABLE:
            parts.append(" ")
        after = "" if token.end == len(query) or query[token.end] in _TOUCHABLE else " "
        pieces.append(("".join(parts), token.text[1:], after))
        parts.clear()
    return (*pieces, ("".join(parts), "", ""))


def _text(value: Bindable | Sequence[Bindable] | Sequence[Row]) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_row(item) if isinstance(item, tuple) else quote(item) for item in value)
    return quote(value)  # type: ignore[arg-type]  # another kind of sequence is no term either, and is told so


def _row(row: Row) -> str:
    return f"({' '.join('UNDEF' if term is None else quote(term) for term in row)})"
