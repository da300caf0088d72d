"""The graphs that a SPARQL Update may write, determined from its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyoxigraph import NamedNode, QuerySolutions, Store

from kg.errors import InvalidInputError, QuerySyntaxError
from kg.sparql.guard import line_and_column
from kg.sparql.lexer import significant_tokens
from kg.sparql.parser import parse
from kg.vocabulary import PREFIXES

_WORDS: Final = frozenset({
    "PREFIX", "BASE", "VERSION", "INSERT", "DELETE", "DATA", "WHERE", "WITH", "USING", "CLEAR", "DROP", "CREATE",
    "COPY", "MOVE", "ADD", "TO", "SILENT", "GRAPH", "NAMED",
})  # fmt: skip


def find_mentioned_graphs(update: str) -> frozenset[NamedNode]:
    """Return every IRI in `update`, a superset of the graphs that it writes if it is well-formed.

    Raises InvalidInputError if it may write other graphs: for CLEAR and DROP of ALL, NAMED or DEFAULT, for operations
    on DEFAULT, and for a variable after GRAPH in a template.
    """
    prologue = ""
    mentioned: dict[str, set[str]] = {}
    found = list(significant_tokens(update))
    depth = 0
    written = False  # whether the current block is a template or data
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
                f"Unsupported variable graph {token.text} (at character {token.start}). "
                "Write the IRI of each graph that the update changes."
            )
        elif depth == 0 and word and (word not in _WORDS or (word == "NAMED" and before != "USING")):
            raise InvalidInputError(
                f"Unsupported {token.text} (at character {token.start}). Write the IRI of each graph that the update "
                f"changes, and separate keywords by spaces. Supported: {', '.join(sorted(_WORDS))}."
            )
    return frozenset(graph for scope, texts in mentioned.items() for graph in _resolve(scope, texts))


def reads_any_graph(update: str) -> bool:
    """Return whether `update` has a variable after GRAPH, so that it may read graphs that it does not mention."""
    before = ""
    for token in significant_tokens(update):
        if token.kind == "variable" and before.endswith("GRAPH"):
            return True
        before = token.text.upper()
    return False


def reject_default_graph_patterns(update: str) -> None:
    """Raise InvalidInputError for a pattern of the default graph, which is always empty, so nothing would match.

    For queries the default graph is the union of all graphs. The engine offers no such union for updates, so their
    patterns have to be in GRAPH, or after WITH or USING. Without this check, the update would silently change nothing.
    """
    prologue = ""
    start = 0  # of the current operation
    has_dataset = False  # whether the operation has WITH or USING
    found = list(significant_tokens(update))
    depth = 0
    for at, token in enumerate(found):
        before = found[at - 1].text.upper() if at else ""
        if token.text == "{":
            if depth == 0:
                start = token.start if before == "WHERE" and not has_dataset else -1
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth == 0 and start >= 0:
                _reject_outside_graphs(update, prologue, start, token.end)
        elif depth == 0:
            has_dataset = token.text != ";" and (has_dataset or before in ("WITH", "USING"))
            if token.kind == "iri" and (before == "BASE" or (at > 1 and found[at - 2].text.upper() == "PREFIX")):
                prologue += f"{'BASE' if before == 'BASE' else f'PREFIX {found[at - 1].text}'} {token.text}\n"


def _reject_outside_graphs(update: str, prologue: str, start: int, end: int) -> None:
    query = parse(f"{prologue}SELECT * WHERE {update[start:end]}")
    outside = next((pattern for pattern in query.patterns if pattern.graph is None), None) if query else None
    if outside is not None:
        shift = start - len(f"{prologue}SELECT * WHERE ")
        line, column = line_and_column(update, outside.start + shift)
        pattern = update[outside.start + shift : outside.end + shift]
        raise InvalidInputError(
            f"Line {line}, column {column}: {pattern!r} is outside GRAPH. It would match nothing: an update has no "
            "union of all graphs. Put it into GRAPH ?g { ... }, or specify the graphs with WITH or USING."
        )


def _resolve(prologue: str, texts: set[str]) -> Iterator[NamedNode]:
    """Yield the absolute IRIs of relative IRIs and prefixed names, resolved by the engine."""
    try:
        rows = Store().query(f"{prologue}SELECT ?iri {{ VALUES ?iri {{ {' '.join(texts)} }} }}", prefixes=PREFIXES)
    except SyntaxError as error:
        raise QuerySyntaxError(f"Invalid SPARQL update: an IRI or prefixed name is invalid: {error}") from None
    if isinstance(rows, QuerySolutions):
        for row in rows:
            if isinstance(iri := row["iri"], NamedNode):
                yield iri
