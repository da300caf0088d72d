"""Terms as SPARQL text. `bind` is the only way to insert data into a query."""

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
    """Return `term` as SPARQL text that parses to exactly this term.

    Integers and booleans become bare tokens (so they are valid after LIMIT too), floats ``xsd:double``, Decimals
    ``xsd:decimal``. Raises InvalidInputError for blank nodes, which are variables in a query, and TypeError for str:
    use ``Literal(text)`` or ``NamedNode(text)``.
    """
    if isinstance(term, bool):
        return "true" if term else "false"
    if isinstance(term, int):
        return str(int(term))
    if isinstance(term, float):
        return str(Literal(float(term)))
    if isinstance(term, Decimal):
        if not term.is_finite():
            raise InvalidInputError(f"Invalid xsd:decimal {term}. Use a finite number, or a float.")
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
                f"Unsupported blank node {term}: in a query it would match anything. Bind an IRI or a literal."
            )
        case str():
            raise TypeError(f"a str is not a term: use Literal({term!r}) or NamedNode({term!r})")
        case _:
            raise TypeError(f"a {type(term).__name__} is not a SPARQL term")


def bind(query: str, /, **terms: Bindable | Sequence[Bindable] | Sequence[Row]) -> str:
    """Replace each ``$name`` in `query` by its term; ``?name`` stays a variable.

    ``$name`` in a string, a comment or an IRI is not replaced. A list (or tuple) of terms becomes terms separated by
    spaces, a list of tuples becomes rows in parentheses (None in a row is UNDEF), both for VALUES::

        bind("SELECT ?p { VALUES (?s ?o) { $pairs } ?s ?p ?o } LIMIT $n", pairs=[(iri, Literal("a"))], n=10)

    Raises TypeError for a ``$name`` without a term, and for a term without a ``$name``.
    """
    texts = {name: _text(value) for name, value in terms.items()}
    pieces = _pieces(query)
    for _, name, _ in pieces:
        if name and name not in texts:
            given = ", ".join(sorted(texts)) or "nothing"
            raise TypeError(f"no term for ${name} of the query (given: {given})")
    if unused := sorted(texts.keys() - {name for _, name, _ in pieces}):
        raise TypeError(f"the query does not contain ${', $'.join(unused)}")
    return "".join(before + (texts[name] if name else "") + after for before, name, after in pieces)


@lru_cache(maxsize=1024)
def _pieces(query: str) -> Sequence[tuple[str, str, str]]:
    """Split `query` into triples: the text before each ``$name``, the name, and a space if one is needed after it.

    The last piece has no name. Queries with ``$name`` are constants in code, so the cache contains them all.
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
    return quote(value)  # type: ignore[arg-type]  # quote raises TypeError for any other sequence


def _row(row: Row) -> str:
    return f"({' '.join('UNDEF' if term is None else quote(term) for term in row)})"


def has_blank(term: object) -> bool:
    """Return whether a term is a blank node, or a triple that contains one."""
    if isinstance(term, Triple):
        return has_blank(term.subject) or has_blank(term.object)
    return isinstance(term, BlankNode)
