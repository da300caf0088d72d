"""Differences between stored and wanted graphs, and the update string that applies them. Nothing here writes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store, parse

from kg.errors import InvalidInputError
from kg.sparql.terms import has_blank
from kg.store.protocol import GraphChange, Patch, Term, batched
from kg.store.statement_files import StatementFile
from kg.text import quoted

Statements = dict[str, Quad]
"""The quads of one graph, each under its N-Quads statement without the graph and the dot."""

_ANY: Final = NamedNode("urn:x")
_MEMO_LENGTH: Final = 64
_PORTION: Final = 2_048
_URI: Final = '"^^<http://www.w3.org/2001/XMLSchema#anyURI>'
_INTEGER: Final = '"^^<http://www.w3.org/2001/XMLSchema#integer>'


def canonicalize(quads: Iterable[Quad]) -> list[Quad]:
    """Return `quads` as the store returns them after a write: literals in canonical form, without duplicates.

    The store keeps ``0.9`` for ``0.90``, ``Z`` for ``+00:00``, ``en-gb`` for ``en-GB`` and an xsd:integer for an
    xsd:byte, so comparisons with stored quads need this form. Raises InvalidInputError for a blank node.
    """
    return list(dict.fromkeys(_canonical_quad(quad) for quad in quads))


def content_sha256(quads: Iterable[Quad]) -> str:
    """Return the SHA-256 over the sorted N-Quads of the canonical `quads`."""
    return _sha256(f"{quad} .\n" for quad in sorted(map(str, canonicalize(quads))))


def _sha256(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    stream = iter(lines)
    while chunk := "".join(islice(stream, 1024)):
        digest.update(chunk.encode())
    return digest.hexdigest()


def canonical_statements(graph: NamedNode, quads: Iterable[Quad]) -> Statements:
    """Return the canonical form of `quads`. Raises InvalidInputError for a blank node or a quad of another graph."""
    ending = f" {graph}"
    cut = -len(ending)
    found: Statements = {}
    for quad in quads:
        line = str(quad)
        statement = line[:cut]
        is_canonical = line.endswith(ending) and _is_canonical(statement)
        if not is_canonical and quad.graph_name != graph:
            raise InvalidInputError(f"A quad for the graph {graph} is in the graph {quad.graph_name}: {quad}")
        canonical = quad if is_canonical else _canonical_quad(quad)
        found[statement if canonical is quad else str(canonical)[:cut]] = canonical
    return found


def _is_canonical(statement: str) -> bool:
    """Whether the text of a statement shows that it is canonical, which takes half as long as reading its terms.

    False decides nothing: then the terms are read. A quad of the default graph has two terms here, and so no object.
    """
    last = statement[-1]
    if statement[0] != "<" or last == '"':
        return statement[0] == "<"  # the object is a plain string
    if statement.endswith(_URI):
        return True
    if last == ">" and '"' not in statement:
        return statement.count(" ") == 2  # three IRIs
    at = statement.find(" ", statement.find(" ") + 1) + 1
    literal = statement[at : at + _MEMO_LENGTH + 1]
    if literal.endswith(_INTEGER) and literal[1] != "0" and literal[1 : -len(_INTEGER)].isdecimal():
        return True  # positions and offsets, which rarely repeat
    return at > 0 and len(literal) <= _MEMO_LENGTH and _is_kept(literal)


@lru_cache(maxsize=65_536)
def _is_kept(literal: str) -> bool:
    """Whether the store keeps a literal as it is, given in N-Triples."""
    quad = next(iter(parse(f"{_ANY} {_ANY} {literal} .", RdfFormat.N_TRIPLES)))
    return not has_blank(quad.object) and str(canonical_term(quad.object)) == literal


def canonical_graphs(graphs: Mapping[NamedNode, Iterable[Quad]]) -> dict[NamedNode, Statements]:
    """Return the `canonical_statements` of each graph."""
    return {graph: canonical_statements(graph, quads) for graph, quads in graphs.items()}


def statements_sha256(graph: NamedNode, held: Statements) -> str:
    """Return the `content_sha256` of quads that are already canonical."""
    return hash_statements(graph, sorted(held))


def hash_statements(graph: NamedNode, statements: Iterable[str]) -> str:
    """Return the `content_sha256` of canonical statements, given in order."""
    # Without the graph they have the same order as with it, since no statement is a prefix of another.
    tail = f" {graph} .\n"
    return _sha256(statement + tail for statement in statements)


@dataclass(frozen=True, slots=True)
class Delta:
    """The difference from one stored graph to the wanted one."""

    graph: NamedNode
    removed: Mapping[str, Quad]
    added: Mapping[str, Quad]
    content_sha256: str | None
    is_repeated: bool = True
    """Whether another content graph may contain some of the added statements."""

    def change(self) -> GraphChange:
        """Return it as a `GraphChange`."""
        return GraphChange(self.graph, _to_set(self.added), _to_set(self.removed), self.content_sha256)


def _to_set(statements: Mapping[str, Quad]) -> AbstractSet[Quad]:
    return statements.as_set() if isinstance(statements, StatementFile) else frozenset(statements.values())


Infer = Callable[[Store, Sequence[Delta], Patch], Sequence[Delta]]
"""Computes the changes of graphs that follow from the differences of a commit, before they are written.

The patch has the changes of ``graph/prov`` in that commit. These graphs are maintained by changes alone: they have no
content hash, and the commit does not report them.
"""


def compare(graph: NamedNode, held: Statements, wanted: Statements) -> Delta | None:
    """Compare two states of a graph; None if they are equal."""
    if not held and not wanted:
        return None
    removed = {line: quad for line, quad in held.items() if line not in wanted}
    added = {line: quad for line, quad in wanted.items() if line not in held} if held else wanted
    if not removed and not added:
        return None
    return Delta(graph, removed, added, statements_sha256(graph, wanted) if wanted else None)


def compare_all(store: Store, wanted: Mapping[NamedNode, Statements]) -> list[Delta]:
    """Compare each stored graph with its wanted state; return the differences."""
    found = (compare(graph, load_statements(store, graph), held) for graph, held in wanted.items())
    return [delta for delta in found if delta is not None]


def load_statements(store: Store, graph: NamedNode) -> Statements:
    """Load the quads of `graph`."""
    if not store.contains_named_graph(graph):  # for a new graph, much faster than the pattern below
        return {}
    return key_by_statement(graph, store.quads_for_pattern(None, None, None, graph))


def key_by_statement(graph: NamedNode, quads: Iterable[Quad]) -> Statements:
    """Return quads of `graph` as they are stored, each under its statement."""
    tail = len(str(graph)) + 1
    return {str(quad)[:-tail]: quad for quad in quads}


def build_update(
    remove: Mapping[NamedNode, Iterable[str]], drop: Iterable[NamedNode], add: Mapping[NamedNode, Iterable[str]]
) -> str:
    """Build the SPARQL Update that removes quads, drops graphs and adds quads; the store runs it as one transaction.

    N-Triples terms are valid in SPARQL with the same escapes, so any text is possible (NUL is ``\\u0000``).
    """
    return "".join(generate_update(remove, drop, add))


def generate_update(
    remove: Mapping[NamedNode, Iterable[str]], drop: Iterable[NamedNode], add: Mapping[NamedNode, Iterable[str]]
) -> Iterator[str]:
    """Yield the parts of the text that `build_update` returns."""
    yield from _build_data("DELETE", remove)
    yield from (f"DROP SILENT GRAPH {graph} ;\n" for graph in drop)
    yield from _build_data("INSERT", add)


def _build_data(word: str, delta: Mapping[NamedNode, Iterable[str]]) -> Iterator[str]:
    if not delta:
        return
    yield f"{word} DATA {{\n"
    for graph, lines in delta.items():
        yield f"GRAPH {graph} {{\n"
        # Joined in portions: the allocator returns large strings to the system, where small ones leave gaps.
        for portion in batched(lines, _PORTION):
            yield " .\n".join(portion)
            yield " .\n"
        yield "}\n"
    yield "} ;\n"


def _canonical_quad(quad: Quad) -> Quad:
    """Return `quad` in canonical form: the same object, unless the store rewrites its literal."""
    subject = quad.subject
    value = quad.object
    if isinstance(value, NamedNode) and isinstance(subject, NamedNode):
        return quad
    if isinstance(subject, BlankNode) or has_blank(value):
        raise InvalidInputError(
            f"Blank nodes cannot be stored: {quoted(quad)}. Replace the blank node by an IRI (skolemize it)."
        )
    canonical = canonical_term(value)
    return quad if canonical is value else Quad(subject, quad.predicate, canonical, quad.graph_name)


_XSD_STRING: Final = NamedNode("http://www.w3.org/2001/XMLSchema#string")


def canonical_term(term: Term) -> Term:
    """Return `term` as the store returns it after a write; the same object if it is unchanged."""
    if isinstance(term, (NamedNode, BlankNode)) or (isinstance(term, Literal) and term.datatype == _XSD_STRING):
        return term
    if isinstance(term, Literal) and (language := term.language) is not None and language == language.lower():
        return term
    if isinstance(term, Literal) and len(term.value) <= _MEMO_LENGTH:
        canonical = _round_trip_short(term)
    else:
        canonical = _round_trip(term)
    return term if canonical == term else canonical


def _round_trip(term: Term) -> Term:
    store = Store()
    store.add(Quad(_ANY, _ANY, term))
    kept: Term = next(store.quads_for_pattern(None, None, None)).object
    return kept


_round_trip_short = lru_cache(maxsize=65_536)(_round_trip)
