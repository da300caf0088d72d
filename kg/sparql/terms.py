"""Terms as SPARQL text: the only way that data enters a query."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

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
    used: set[str] = set()
    parts: list[str] = []
    for token in tokens(query):
        if token.kind != "variable" or token.text[0] != "$":
            parts.append(token.text)
            continue
        name = token.text[1:]
        if name not in texts:
            given = ", ".join(sorted(texts)) or "nothing"
            raise TypeError(f"the query has ${name}, but no term was given for it (given: {given})")
        used.add(name)
        before = "" if token.start == 0 or query[token.start - 1] in _TOUCHABLE else " "
        after = "" if token.end == len(query) or query[token.end] in _TOUCHABLE else " "
        parts.append(before + texts[name] + after)
    if unused := sorted(texts.keys() - used):
        raise TypeError(f"the query has no ${', $'.join(unused)}")
    return "".join(parts)


def _text(value: Bindable | Sequence[Bindable] | Sequence[Row]) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_row(item) if isinstance(item, tuple) else quote(item) for item in value)
    return quote(value)  # type: ignore[arg-type]  # another kind of sequence is no term either, and is told so


def _row(row: Row) -> str:
    return f"({' '.join('UNDEF' if term is None else quote(term) for term in row)})"
