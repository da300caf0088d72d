"""Which graphs a SPARQL Update may write, read off its text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyoxigraph import NamedNode, QuerySolutions, Store

from kg.errors import InvalidInputError, QuerySyntaxError
from kg.sparql.guard import line_and_column
from kg.sparql.lexer import Token, tokens
from kg.sparql.parser import parse
from kg.vocabulary import PREFIXES

_WORDS: Final = frozenset({
    "PREFIX", "BASE", "VERSION", "INSERT", "DELETE", "DATA", "WHERE", "WITH", "USING", "CLEAR", "DROP", "CREATE",
    "COPY", "MOVE", "ADD", "TO", "SILENT", "GRAPH", "NAMED",
})  # fmt: skip


def find_mentioned_graphs(update: str) -> frozenset[NamedNode]:
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


def reject_default_graph_patterns(update: str) -> None:
    """Raise InvalidInputError for a pattern that no data can match: one of the default graph, which is always empty.

    For queries the default graph is the union of all graphs. An update has none (the engine knows no union for it), so
    its patterns stand within GRAPH, or after WITH or USING; that nothing was changed would be a silent surprise.
    """
    prologue = ""
    start = 0  # of the operation at hand
    told = False  # whether the operation says with WITH or USING what it is asked of
    found = list(_significant(update))
    depth = 0
    for at, token in enumerate(found):
        before = found[at - 1].text.upper() if at else ""
        if token.text == "{":
            if depth == 0:
                start = token.start if before == "WHERE" and not told else -1
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth == 0 and start >= 0:
                _refuse_outside_graphs(update, prologue, start, token.end)
        elif depth == 0:
            told = token.text != ";" and (told or before in ("WITH", "USING"))
            if token.kind == "iri" and (before == "BASE" or (at > 1 and found[at - 2].text.upper() == "PREFIX")):
                prologue += f"{'BASE' if before == 'BASE' else f'PREFIX {found[at - 1].text}'} {token.text}\n"


def _refuse_outside_graphs(update: str, prologue: str, start: int, end: int) -> None:
    query = parse(f"{prologue}SELECT * WHERE {update[start:end]}")
    outside = next((pattern for pattern in query.patterns if pattern.graph is None), None) if query else None
    if outside is not None:
        shift = start - len(f"{prologue}SELECT * WHERE ")
        line, column = line_and_column(update, outside.start + shift)
        pattern = update[outside.start + shift : outside.end + shift]
        raise InvalidInputError(
            f"line {line}, column {column}: {pattern!r} stands outside GRAPH, and an update has no union of all "
            "graphs: nothing would match. Put it into GRAPH ?g { ... }, or name the graphs with WITH or USING"
        )


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
