"""Evidence of a row of a query result: the statements that it rests on, with their graphs, and traces of its counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kg.errors import InvalidInputError
from kg.knowledge_graph import CALLER, CANCELLATION, KnowledgeGraph
from kg.sparql.algebra import Node, Pattern, variable_name
from kg.sparql.parser import parse
from kg.sparql.terms import bind
from kg.sparql.tracing import MOST_CHARACTERS, Row, compile_solutions
from kg.store.protocol import Rows, Term
from kg.text import quoted
from kg.tools.sparql.local_services import expand_services
from kg.tools.sparql.query import Trace, build_traces

SOLUTIONS: Final = 5
"""Maximum solutions behind a row whose statements are listed. A row of a group can have millions."""
STATEMENTS: Final = 60
_TIMEOUT_S: Final = 10.0

_GRAPHS: Final = "{ BIND($number AS ?number) GRAPH ?graph { $subject $predicate $object } }"


@dataclass(frozen=True, slots=True)
class StoredStatement:
    """A statement of the store, and the graph that contains it."""

    subject: NamedNode
    predicate: NamedNode
    object: NamedNode | Literal
    graph: str


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """The evidence of a row. `reason`: why statements are missing, or whose they are."""

    statements: Sequence[StoredStatement]
    traces: Sequence[Trace]
    reason: str | None = None


def find_evidence(kg: KnowledgeGraph, query: str, row: Row, snapshot: int | None = None) -> RowEvidence:
    """Find the statements that match the patterns of `query`, a SELECT, in the solutions behind `row`.

    A statement is listed only if the store has it. Property paths other than sequences are left out. `snapshot` is the
    generation that the row was read from; None: the newest. Raises the errors of a query.
    """
    if len(query) > MOST_CHARACTERS:
        return RowEvidence((), (), f"Queries of more than {MOST_CHARACTERS:,} characters are not traced.")
    with kg.reading(snapshot):
        return _find(kg, query, row)


def _find(kg: KnowledgeGraph, query: str, row: Row) -> RowEvidence:
    traces = build_traces(query, row)
    try:
        solutions, more = _load_solutions(kg, query, row)
    except InvalidInputError as error:
        return RowEvidence((), traces, str(error))
    parsed = parse(query)
    patterns = [] if parsed is None else parsed.patterns
    wanted = dict.fromkeys(triple for solution in solutions for triple in _instantiate(patterns, solution))
    statements = list(_load_graphs(kg, list(wanted)[:STATEMENTS]))
    reasons = []
    if not solutions:
        reasons.append("The store has changed since, or the row does not come from the patterns of the query.")
    elif more:
        reasons.append(f"Many solutions are behind this row. These are the statements of the first {SOLUTIONS}.")
    if any(pattern.predicate is None for pattern in patterns):
        reasons.append("Statements along property paths are not listed.")
    if solutions and not statements:
        reasons.append("No statement of the store has the values of this row: they are computed.")
    return RowEvidence(statements, traces, " ".join(reasons) or None)


def _load_solutions(kg: KnowledgeGraph, query: str, row: Row) -> tuple[list[Mapping[str, Term]], bool]:
    text = expand_services(kg, compile_solutions(query, row), _TIMEOUT_S)
    result, truncated = _run(kg, text, SOLUTIONS)
    return [{name: term for name, term in each.items() if term is not None} for each in result], truncated


def _run(kg: KnowledgeGraph, query: str, limit: int) -> tuple[Sequence[Mapping[str, Term]], bool]:
    answer = kg.raw_pool.run(
        query,
        client=CALLER.get(),
        limit=limit,
        timeout_s=min(_TIMEOUT_S, kg.settings.query_timeout_s),
        exactly=kg.state.generation,
        cancellation=CANCELLATION.get(),
    )
    if not isinstance(answer.result, Rows):
        raise TypeError("a SELECT returned no rows")
    return list(answer.result), answer.truncated


def _instantiate(patterns: Sequence[Pattern], solution: Mapping[str, Term]) -> Iterator[Triple]:
    """Yield the triples that the patterns are in a solution, where it binds all their variables."""
    for pattern in patterns:
        if pattern.predicate is None:
            continue
        subject, predicate, value = (
            _get_term(node, solution) for node in (pattern.subject, pattern.predicate, pattern.object)
        )
        if not (isinstance(subject, NamedNode) and isinstance(predicate, NamedNode)):
            continue
        if isinstance(value, NamedNode | Literal):
            yield Triple(subject, predicate, value)


def _get_term(node: Node, solution: Mapping[str, Term]) -> Term | None:
    if node.kind == "iri":
        return NamedNode(node.value)
    if node.kind == "literal":
        if node.language:
            return Literal(node.value, language=node.language)
        return Literal(node.value, datatype=NamedNode(node.datatype)) if node.datatype else Literal(node.value)
    return solution.get(variable_name(node))


def _load_graphs(kg: KnowledgeGraph, triples: Sequence[Triple]) -> Iterator[StoredStatement]:
    if not triples:
        return
    parts = [
        bind(_GRAPHS, number=at, subject=triple.subject, predicate=triple.predicate, object=triple.object)
        for at, triple in enumerate(triples)
        if not isinstance(triple.subject, BlankNode | Triple) and not isinstance(triple.object, BlankNode | Triple)
    ]
    rows, _ = _run(kg, "SELECT ?number ?graph WHERE {\n" + "\nUNION ".join(parts) + "\n}", 2 * STATEMENTS)
    for row in rows:
        number, graph = row["number"], row["graph"]
        if isinstance(number, Literal) and isinstance(graph, NamedNode):
            triple = triples[int(number.value)]
            if isinstance(triple.subject, NamedNode) and isinstance(triple.object, NamedNode | Literal):
                yield StoredStatement(triple.subject, triple.predicate, triple.object, graph.value)


def parse_row(row: object) -> dict[str, Term]:
    """Parse a row in SPARQL JSON. Raises InvalidInputError for anything else.

    Triple terms are taken for blank nodes, since neither can be named by a query.
    """
    if not isinstance(row, dict) or len(row) > 1_000:
        raise InvalidInputError("Invalid row. Send an object of SPARQL JSON: variables with `type` and `value`.")
    found: dict[str, Term] = {}
    for name, term in row.items():
        if not isinstance(term, dict) or "type" not in term:
            raise InvalidInputError(f"Invalid term of {quoted(name)}. It must have `type` and `value`.")
        kind, value = term["type"], term.get("value")
        if kind in ("bnode", "triple"):
            found[name] = BlankNode()  # bound, to what no query can name
            continue
        if not isinstance(value, str):
            raise InvalidInputError(f"Invalid value of {quoted(name)}: not a text.")
        try:
            if kind == "uri":
                found[name] = NamedNode(value)
            elif language := term.get("xml:lang"):
                found[name] = Literal(value, language=str(language))
            elif datatype := term.get("datatype"):
                found[name] = Literal(value, datatype=NamedNode(str(datatype)))
            else:
                found[name] = Literal(value)
        except ValueError as error:
            raise InvalidInputError(f"Invalid term of {quoted(name)}: {error}.") from None
    return found
