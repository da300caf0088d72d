"""Which graphs a SPARQL Update may write, read off its text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyoxigraph import NamedNode, QuerySolutions, Store

from kg.errors import InvalidInputError, QuerySyntaxError
from kg.sparql.lexer import Token, tokens
from kg.vocabulary import PREFIXES

_WORDS: Final = frozenset({
    "PREFIX", "BASE", "VERSION", "INSERT", "DELETE", "DATA", "WHERE", "WITH", "USING", "CLEAR", "DROP", "CREATE",
    "COPY", "MOVE", "ADD", "TO", "SILENT", "GRAPH", "NAMED",
})  # fmt: skip


def graphs_within_reach(update: str) -> frozenset[NamedNode]:
    """Return every IRI in `update`: the graphs that it writes are among them, if it is well formed.

    Raises InvalidInputError where that does not hold: for CLEAR and DROP of ALL, NAMED or DEFAULT, for operations on
    DEFAULT, and for a variable after GRAPH in what is inserted or deleted.
    """
    prologue = ""
    mentioned: dict[str, set[str]] = {}
    found = list(_significant(update))
    depth = 0
    written = False  # whether the block at hand is a template or data
    for at, token in enumerate(found):
        before = found[at - 1].text.upper() if at else ""
        word = token.text.upper() if token.kind == "word" else ""
        if token.text == "{":
            if depth == 0:
                previous = found[at - 2].text.upper() if at > 1 else ""
                written = before in ("INSERT", "DELETE", "DATA") or (before == "WHERE" and previous == "DELETE")
            depth += 1
        elif token.text == "}":
            depth -= 1
        elif token.kind in ("iri", "name"):
            if depth == 0 and (before == "BASE" or (at > 1 and found[at - 2].text.upper() == "PREFIX")):
                prologue += f"{'BASE' if before == 'BASE' else f'PREFIX {found[at - 1].text}'} {token.text}\n"
            elif not (depth == 0 and before == "PREFIX"):
                mentioned.setdefault(prologue, set()).add(token.text)
        elif depth and written and token.kind == "variable" and "GRAPH" in before:
            raise InvalidInputError(
                f"the update writes to whatever graphs {token.text} stands for (at character {token.start}); "
                "name each graph that it changes by its IRI"
            )
        elif depth == 0 and word and (word not in _WORDS or (word == "NAMED" and before != "USING")):
            raise InvalidInputError(
                f"{token.text} (at character {token.start}) cannot stand here: name each graph that the update changes "
                f"by its IRI, and part keywords by spaces; known are {', '.join(sorted(_WORDS))}"
            )
    return frozenset(graph for scope, texts in mentioned.items() for graph in _resolved(scope, texts))


def reads_any_graph(update: str) -> bool:
    """Return whether `update` may read graphs that it does not mention: it has a variable after GRAPH."""
    before = ""
    for token in _significant(update):
        if token.kind == "variable" and before.endswith("GRAPH"):
            return True
        before = token.text.upper()
    return False


def _significant(update: str) -> Iterator[Token]:
    return (token for token in tokens(update) if token.kind not in ("space", "comment"))


def _resolved(prologue: str, texts: set[str]) -> Iterator[NamedNode]:
    """Yield the IRIs that relative IRIs and prefixed names stand for, as the store itself reads them."""
    try:
        rows = Store().query(f"{prologue}SELECT ?iri {{ VALUES ?iri {{ {' '.join(texts)} }} }}", prefixes=PREFIXES)
    except SyntaxError as error:
        raise QuerySyntaxError(f"not a SPARQL update: one of its IRIs and prefixed names is none: {error}") from None
    if isinstance(rows, QuerySolutions):
        for row in rows:
            if isinstance(iri := row["iri"], NamedNode):
                yield iri
