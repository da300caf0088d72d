"""Tool that runs SPARQL: typed rows within a token budget, the cause of truncation, hints on mistakes, and traces.

A trace is the SPARQL that lists the evidence of a count or an absence in a row of the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final
from typing import Literal as OneOf

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode, RdfFormat, Triple, serialize

from kg.errors import InvalidInputError, QuadciteError, QueryForbiddenError, QueryTimeoutError
from kg.knowledge_graph import CALLER, CANCELLATION, KnowledgeGraph
from kg.queries.pool import parse_result
from kg.queries.text_check import find_form
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, bounded, list_user_graphs
from kg.retrieval.result_cells import Cell, column, longest_cut
from kg.retrieval.results import (
    BYTES_PER_TOKEN,
    FEWEST_TOKENS,
    MOST_TOKENS,
    Layout,
    Lean,
    MaxTokens,
    Result,
    Statement,
    size_of,
)
from kg.sparql.label_service import LABELLING, asks_for_labels
from kg.sparql.lint import Hint
from kg.sparql.measured_schema import Schema
from kg.sparql.parser import parse
from kg.sparql.terms import bind
from kg.sparql.tracing import MOST_CHARACTERS, Absence, Count, Row, find_absences, find_counts
from kg.store.protocol import Result as StoreResult
from kg.store.protocol import Rows
from kg.text import quoted
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.sparql.empty_results import diagnose, find_hints, is_empty
from kg.tools.sparql.local_services import expand_services
from kg.vocabulary import PREFIXES

_MOST_GRAPHS: Final = 10
_ALL: Final = "all graphs"
_EXISTS: Final = "ASK { GRAPH $graph {} }"
REPAIR_WAIT_S: Final = 2.0
"""Seconds that a query with an unknown term waits for the first measurement of the schema."""
QUERY_CHARACTERS: Final = 100_000
MAX_ROWS: Final = 10_000
FRAME_TOKENS: Final = 60
"""Tokens of an answer without its rows, notes and hints."""

TRACED_SHARE: Final = 0.4
"""Maximum share of an answer for traces."""
NOT_FOUND: Final = "not found"
"""The name of the trace of patterns that match nothing."""

Why = OneOf["rows", "tokens", "time"]


class Trace(Lean):
    """The evidence of a count or an absence."""

    of: str = Field(description="Column and aggregate, or the pattern that was not found")
    sparql: str | None = Field(None, description="Lists the counted rows; of an absence: has no rows")
    reason: NoteText | None = Field(None, description="Why there is no such query")


def build_traces(query: str, row: Row) -> list[Trace]:
    """Build the traces of a row of the result of `query`: of its counts, then of the patterns that were not found."""
    if len(query) > MOST_CHARACTERS:
        return []
    counts = [count for count in find_counts(query) if row.get(count.column) is not None]
    return [
        *(_build_trace(f"?{count.column} {count.expression}", count, row) for count in counts),
        *(_build_trace(absence.pattern, absence, row) for absence in find_absences(query)),
    ]


def _build_trace(name: str, traced: Count | Absence, row: Row) -> Trace:
    try:
        return Trace(of=name, sparql=traced.compile(row))
    except InvalidInputError as error:
        return Trace(of=name, reason=str(error))


def find_searched(kg: KnowledgeGraph, query: str, schema: Schema, generation: int) -> dict[str, int] | None:
    """Count the graphs that `query` searched: those that it names (0: unknown), else all with content, by family.

    Returns None if it searched another generation than the newest, or is not understood.
    """
    parsed = parse(query)
    if parsed is None or generation != kg.store.statistics().generation:
        return None
    named = list(dict.fromkeys(node.value for node in parsed.graphs if node.kind == "iri"))
    if named and (parsed.dataset or all(pattern.graph in parsed.graphs for pattern in parsed.patterns)):
        return {name: _exists(kg, name) for name in named[:_MOST_GRAPHS]}
    if schema.generation != generation or not schema.holdings:
        return {_ALL: kg.store.statistics().graphs}
    return {name: family.graphs for name, family in sorted(schema.holdings.items()) if family.graphs}


def _exists(kg: KnowledgeGraph, graph: str) -> int:
    return int(kg.query(bind(_EXISTS, graph=NamedNode(graph)), all_graphs=True).result is True)


class Column(BaseModel):
    """A variable and the type of its cells."""

    name: str
    type: str = Field(description="iri, string, @tag, a datatype, bnode or unbound; term: each cell is a SPARQL term")


class HintLine(Lean):
    """A likely mistake in the query, with suggestions."""

    code: str
    message: NoteText
    suggestions: list[str] | None = None


class SparqlResult(Result):
    """The result of a query: columns and rows, a boolean, or Turtle."""

    layout: ClassVar[Layout] = Layout(paged=("rows",), reads=True)

    form: str
    complete: bool
    truncated_by: Why | None = None
    snapshot: int = Field(description="Generation of the store that was queried; can be passed as snapshot")
    columns: list[Column] | None = None
    rows: list[list[Cell]] | None = Field(None, description="null is unbound")
    boolean: bool | None = None
    turtle: str | None = None
    hints: list[HintLine] | None = None
    empty_because: list[str] | None = Field(None, description="Minimal set of patterns that together match nothing")
    traces: list[Trace] | None = Field(None, description="Evidence of the counts and absences of one row")
    searched: dict[str, int] | None = Field(None, description="Graphs in which nothing was found, by family")


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a query. `why`: what cut it, None if it is complete."""

    result: StoreResult
    generation: int
    why: Why | None


def sparql(
    kg: KnowledgeGraph,
    query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARACTERS, description="SPARQL 1.1 query")],
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 100,
    max_tokens: MaxTokens = 4_000,
    timeout: Annotated[float | None, Field(gt=0, description="Seconds; lowers the server's deadline")] = None,
    snapshot: Annotated[int | None, Field(ge=0, description="Generation to query; the last two are available")] = None,
    trace: Annotated[int, Field(ge=0, description="Row whose counts get the query that lists them; 0: none")] = 1,
) -> SparqlResult:
    """Run a read-only SPARQL query (SELECT, ASK, CONSTRUCT, DESCRIBE) over the whole graph.

    Use for counts, joins and lists that no other tool returns. Common prefixes are predefined. Full-text search:
    SERVICE kg:search { ?unit kg:matches "words" ; kg:score ?score ; kg:limit 50 }. Returns columns with their types,
    rows, complete or truncated_by, traces of counts, and hints on likely mistakes. Count with COUNT(DISTINCT ?x).
    Example: sparql(query="SELECT ?place (COUNT(?d) AS ?n) { ?d kg:slug ?s ; kg:jurisdiction ?place } GROUP BY ?place").
    Next: `describe_schema` or `find_terms` when rows are missing; `fetch` the passages found.
    """
    bounded("max_rows", max_rows, 1, MAX_ROWS)
    bounded("max_tokens", max_tokens, FEWEST_TOKENS, MOST_TOKENS)
    if timeout is not None and not timeout > 0:
        raise InvalidInputError(f"timeout is {timeout}. It must be more than 0 seconds.")
    with kg.reading(snapshot):
        return _answer(kg, query, max_rows, max_tokens, timeout, trace)


def _answer(
    kg: KnowledgeGraph, query: str, max_rows: int, max_tokens: int, timeout: float | None, trace: int
) -> SparqlResult:
    """Run the query, and build its result with hints, traces and causes of emptiness, all on one state."""
    schema = get_schema(kg, 0)  # hints without a measurement are tested on the store
    found_hints = find_hints(kg, query, schema)
    if not schema.generation and any(hint.code.startswith("unknown_") for hint in found_hints):
        # Which term was meant is known by the terms that the data use: worth a short wait.
        schema = get_schema(kg, REPAIR_WAIT_S)
        found_hints = find_hints(kg, query, schema)
    hints = [_line(hint) for hint in found_hints]
    try:
        form, answered = run_query(kg, query, max_rows, timeout)
    except QuadciteError as error:
        raise _with_hints(error, hints) from None
    result = SparqlResult(
        form=form or "SELECT",
        complete=answered.why is None,
        truncated_by=answered.why,
        snapshot=answered.generation,
        hints=hints or None,
    )
    if trace:
        _trace(query, answered.result, trace, max_tokens * BYTES_PER_TOKEN * TRACED_SHARE, result)
    if answered.why is None and is_empty(query, answered.result):
        _explain_emptiness(kg, query, result, schema)
    else:
        _note_user_graphs(kg, query, result)
    spare = (max_tokens - FRAME_TOKENS) * BYTES_PER_TOKEN - size_of(result)
    _fill(result, answered.result, max(spare, 300))
    _say_why(result, max_rows)
    reader = Reader(kg)
    reader.ran.append(Statement(purpose="the query", sparql=query))
    return reader.finish(
        result,
        total=len(answered.result) if isinstance(answered.result, Rows) and answered.why is None else None,
        completeness="complete" if result.complete else "truncated",
    )


def run_query(kg: KnowledgeGraph, query: str, max_rows: int, timeout: float | None) -> tuple[str | None, Answered]:
    """Run the query on the state that the call reads. At the deadline, the rows received so far are returned."""
    deadline = min(kg.settings.query_timeout_s, timeout or kg.settings.query_timeout_s)
    expanded = expand_services(kg, query, deadline)
    form = find_form(expanded)
    graph = form in ("CONSTRUCT", "DESCRIBE")
    stream = kg.raw_pool.stream(
        expanded,
        client=CALLER.get(),
        media_type="application/n-triples" if graph else "text/tab-separated-values",
        limit=min(max_rows, kg.settings.max_rows),
        timeout_s=deadline,
        exactly=kg.state.generation,
        cancellation=CANCELLATION.get(),
    )
    pieces: list[bytes] = []
    why: Why | None = None
    try:
        with stream:
            pieces.extend(stream)
        why = "rows" if stream.truncated else None
    except QueryTimeoutError:
        # Every line but the last is complete: line breaks in literals are escaped.
        whole = b"".join(pieces).rpartition(b"\n")[0]
        if not whole or (not graph and b"\n" not in whole):
            raise
        pieces, why = [whole, b"\n"], "time"
    return form, Answered(parse_result(stream.kind, pieces, truncated=why is not None), stream.generation, why)


def _with_hints(error: QuadciteError, hints: Sequence[HintLine]) -> QuadciteError:
    """Add the hints on likely mistakes to the message of `error`."""
    said = str(error)
    if isinstance(error, QueryForbiddenError):  # a refused clause may have declared the prefix or bound the variable
        hints = [hint for hint in hints if hint.code not in ("undeclared_prefix", "unbound_variable")]
    for hint in hints:
        at, _, problem = hint.message.partition(": ")
        # The parser reports the same for a prefix, with less help.
        said = f"Invalid SPARQL: {hint.message}" if said.startswith(f"Invalid SPARQL: {at}: ") and problem else said
    more = [hint.message for hint in hints if hint.message not in said]
    return type(error)(" ".join([said, *more])) if more or said != str(error) else error


def _trace(query: str, answer: StoreResult, number: int, most: float, result: SparqlResult) -> None:
    """Add to `result` the traces of row `number` that fit in `most` bytes."""
    row: Row = {}
    if isinstance(answer, Rows):
        if number > len(answer.rows):
            return
        row = dict(zip(answer.variables, answer.rows[number - 1], strict=True))
    elif answer is not True:
        return
    traces = build_traces(query, row)
    kept = []
    for each in traces:
        most -= size_of(each)
        if most < 0:
            break
        kept.append(each)
    if len(kept) < len(traces):
        result.notes.append(f"{len(kept)} of {len(traces)} traces fit in max_tokens.")
    elif kept and isinstance(answer, Rows) and len(answer.rows) > 1:
        result.notes.append(f"traces are those of row {number}. trace=N gives those of row N.")
    result.traces = kept or None


def _explain_emptiness(kg: KnowledgeGraph, query: str, result: SparqlResult, schema: Schema) -> None:
    """Add to `result` the searched graphs, the part of the query without solutions, and suggestions."""
    result.searched = find_searched(kg, query, schema, result.snapshot)
    diagnosis = diagnose(kg, query)
    if diagnosis is None:
        return
    result.empty_because = list(diagnosis.patterns)
    looked_for = [Trace(of=NOT_FOUND, sparql=text) for text in diagnosis.looked_for]
    result.traces = [*(result.traces or []), *looked_for] or None
    note = diagnosis.message
    for hint in diagnosis.hints:  # they are in `hints` already
        note = note.replace(hint.message, "").replace(" .", "").strip()
    result.notes.append(note)
    known = {hint.message for hint in result.hints or []}
    more = [line for line in map(_line, diagnosis.hints) if line.message not in known]
    result.hints = [*(result.hints or []), *more] or None


def _note_user_graphs(kg: KnowledgeGraph, query: str, result: SparqlResult) -> None:
    """Note that the result may contain statements of users, where the query does not show the graph of a statement."""
    parsed = parse(query) if kg.state.visibility.find_graphs(None) else None
    if parsed is None:
        return
    union = [pattern for pattern in parsed.patterns if pattern.graph is None]
    names = [atom.value if atom.kind == "iri" else None for pattern in union for atom in pattern.atoms]
    known = {name for name in names if name is not None}
    if asks_for_labels(query):
        known |= LABELLING
    if listed := list_user_graphs(kg, known if None not in names else None):
        result.notes.append(
            f"The result can include statements of users, not of sources, from {listed}. GRAPH ?graph {{ ... }} "
            "gives the graph of a statement."
        )


def _line(hint: Hint) -> HintLine:
    terms = [re.escape(term) for term in sorted(hint.suggestions, key=len, reverse=True)]  # they can be of the data
    message = re.sub("|".join(terms), lambda found: quoted(found[0]), hint.message) if terms else hint.message
    return HintLine(code=hint.code, message=message, suggestions=list(hint.suggestions) or None)


def _fill(result: SparqlResult, answer: StoreResult, most: int) -> None:
    """Copy as much of `answer` into `result` as fits in `most` bytes of JSON."""
    if isinstance(answer, bool):
        result.boolean = answer
    elif isinstance(answer, Rows):
        _fill_rows(result, answer, most)
    else:
        _fill_graph(result, answer, most)


def _fill_rows(result: SparqlResult, answer: Rows, most: int) -> None:
    columns = [column([row[number] for row in answer.rows]) for number in range(len(answer.variables))]
    result.columns = [Column(name=name, type=kind) for name, (kind, _) in zip(answer.variables, columns, strict=True)]
    rows: list[list[Cell]] = [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]
    left = most - sum(len(name) + 30 for name in answer.variables)
    kept: list[list[Cell]] = []
    for row in rows or [[] for _ in answer.rows]:
        left -= size_of(row) + 1
        if left < 0:
            break
        kept.append(row)
    if not kept and rows:
        longest = max(40, (most - 100) // max(1, len(columns)))
        row, cut = longest_cut(rows[0], longest)
        kept = [row]
        if cut:
            result.notes.append(f"Texts are truncated to {longest} characters, with an ellipsis, to fit max_tokens.")
            _cut_by_tokens(result)
    if len(kept) < len(rows):
        _cut_by_tokens(result)
    result.rows = kept


def _fill_graph(result: SparqlResult, triples: list[Triple], most: int) -> None:
    shown = triples
    text = _turtle(shown)
    while (size := size_of(text)) > most and len(shown) > 1:
        shown = shown[: max(1, min(len(shown) - 1, int(len(shown) * most / size * 0.95)))]
        text = _turtle(shown)
    if len(shown) < len(triples):
        _cut_by_tokens(result)
    result.turtle = text


def _turtle(triples: Sequence[Triple]) -> str:
    used = " ".join(map(str, triples))
    prefixes = {name: start for name, start in PREFIXES.items() if f"<{start}" in used}
    return (serialize(triples, format=RdfFormat.TURTLE, prefixes=prefixes) or b"").decode()


def _cut_by_tokens(result: SparqlResult) -> None:
    result.complete = False
    result.truncated_by = "tokens"


def _say_why(result: SparqlResult, max_rows: int) -> None:
    """Note how to get the rest of a truncated result."""
    shown = len(result.rows) if result.rows is not None else None
    rows = f"{shown} rows are shown" if shown is not None else "Not all triples are shown"
    match result.truncated_by:
        case "rows":
            result.notes.append(
                f"{rows} of more (max_rows={max_rows}). Count them with COUNT(DISTINCT ...), raise "
                "max_rows, or page with ORDER BY, LIMIT and OFFSET."
            )
        case "tokens":
            result.notes.append(
                f"{rows}. More did not fit in max_tokens. Select fewer variables, shorten texts with SUBSTR, raise "
                "max_tokens, or page with ORDER BY, LIMIT and OFFSET."
            )
        case "time":
            result.notes.append(
                f"{rows}: those found before the deadline, in arbitrary order. More may exist. Restrict the query."
            )
