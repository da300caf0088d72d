"""Parsing of terms typed on the command line, and printing of query and search results."""

from __future__ import annotations

import math
import re
import sys
from contextlib import closing, suppress
from typing import Final

import pyoxigraph
from pyoxigraph import Literal, NamedNode, RdfFormat

from kg.cli import output
from kg.cli.connection import Connection
from kg.errors import InvalidInputError, QuadciteError
from kg.queries.pool import parse_result
from kg.retrieval.results import MOST_TOKENS, SearchResult
from kg.search.protocol import IndexStatus
from kg.sparql.guard import check_query, query_form
from kg.store.protocol import Result, Rows, Term
from kg.text import put_quotations, to_single_line
from kg.vocabulary import PREFIXES, curie

ROW_FORMATS: Final = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
}
TRUTH_FORMATS: Final = {name: ROW_FORMATS[name] for name in ("json", "xml")}
TRIPLE_FORMATS: Final = {"ttl": "text/turtle", "nt": "application/n-triples"}

_NO_ROWS: Final = (b'"bindings":[]}}', b"<results></results></sparql>")
"""The ends of JSON and XML results without rows."""

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BY_KIND: Final = {
    "SELECT": ("rows", ROW_FORMATS),
    "ASK": ("a boolean", TRUTH_FORMATS),
    "CONSTRUCT": ("triples", TRIPLE_FORMATS),
    "DESCRIBE": ("triples", TRIPLE_FORMATS),
}


def parse_node(text: str) -> NamedNode:
    """Parse an IRI: ``<http://...>``, ``http://...`` or, with a known prefix, ``dcterms:title``.

    Raises InvalidInputError for anything else.
    """
    bare = text.strip().removeprefix("<").removesuffix(">")
    prefix, colon, local = bare.partition(":")
    if colon and prefix in PREFIXES and not local.startswith("//"):
        bare = PREFIXES[prefix] + local
    if not _ABSOLUTE.match(bare):
        raise InvalidInputError(
            f"{text!r} is not an IRI. Write it in full (cpr://doc/..., https://...) or with a prefix. Available: "
            + ", ".join(PREFIXES)
        )
    try:
        return NamedNode(bare)
    except ValueError as error:
        raise InvalidInputError(f"{text!r} is not an IRI: {error}.") from None


def parse_predicate(text: str) -> NamedNode:
    """Parse the IRI of a predicate like `parse_node`; ``a`` means rdf:type, as in Turtle and SPARQL."""
    return parse_node("rdf:type" if text.strip() == "a" else text)


def parse_term(text: str) -> NamedNode | Literal:
    """Parse an IRI or a literal as written in Turtle: ``"words"@en``, ``3``, ``"x"^^xsd:date``.

    Raises InvalidInputError for anything else.
    """
    stripped = text.strip()
    if not re.match(r"""["'+.\d-]|(true|false)$""", stripped):
        if not _ABSOLUTE.match(stripped.removeprefix("<")):
            raise InvalidInputError(
                f"{text!r} is not an IRI or a literal. Quote a literal twice, for the shell and for Turtle: "
                f"'\"{stripped}\"'."
            )
        return parse_node(stripped)
    prologue = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
    try:
        (quad,) = pyoxigraph.parse(f"{prologue}<x:s> <x:p> {stripped} .", RdfFormat.TURTLE)
    except (SyntaxError, ValueError):
        raise InvalidInputError(
            f'{text!r} is not a literal. Write it as in Turtle: "words", "words"@en, 3, "2021-01-01"^^xsd:date.'
        ) from None
    if not isinstance(quad.object, Literal):
        raise InvalidInputError(f"{text!r} is not a literal.")
    return quad.object


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def write_result(graph: Connection, query: str, form: str | None, timeout_s: float = math.inf) -> None:
    """Run `query` without a limit on rows, within `timeout_s`, and write its result to standard output.

    `form` is one of ``json xml csv tsv ttl nt``. Without it: a table on a terminal; in a pipe tab-separated values,
    N-Triples for triples, and ``true`` or ``false`` for an ASK. If a SELECT has no rows, likely causes are printed on
    standard error. Raises InvalidInputError for a form that the result does not have.
    """
    kind = query_form(query) or "SELECT"
    if kind not in _BY_KIND:
        check_query(query)
    what, formats = _BY_KIND[kind]
    if form is not None and form not in formats:
        raise InvalidInputError(
            f"{kind} returns {what}, which cannot be written as {form}. Available: {', '.join(formats)}."
        )
    to_terminal = is_terminal()
    if form is None and (kind == "ASK" or (kind == "SELECT" and to_terminal)):
        pieces = list(graph.stream(query, ROW_FORMATS["tsv"], timeout_s))
        result = parse_result("boolean" if kind == "ASK" else "solutions", pieces, truncated=False)
        _show(result)
        if isinstance(result, Rows) and not result:
            _explain(graph, query)
        return
    chosen = form or ("tsv" if kind == "SELECT" else "ttl" if to_terminal else "nt")
    with closing(graph.stream(query, formats[chosen], timeout_s)) as streamed:
        end = b""
        lines = 0
        for piece in streamed:
            sys.stdout.buffer.write(piece)
            end = (end + piece)[-len(_NO_ROWS[1]) :]
            lines += piece.count(b"\n")
    if to_terminal:
        sys.stdout.buffer.write(b"\n")
    if kind == "SELECT" and (end.endswith(_NO_ROWS) or (chosen in ("csv", "tsv") and lines == 1)):
        sys.stdout.flush()
        _explain(graph, query)


def _explain(graph: Connection, query: str) -> None:
    with suppress(QuadciteError):  # the result is complete without its explanation
        result = graph.call("sparql", {"query": query, "max_rows": 1})
        for line in (*result.get("notes", ()), *(hint["message"] for hint in result.get("hints") or ())):
            output.say(f"kg: {output.name_options(put_quotations(line, result.get('names', ())))}")


def show_traces(graph: Connection, query: str, row: int) -> None:
    """Print the queries behind the counts and absences of a row of the result of `query` on standard error."""
    asked = {"query": query, "max_rows": row, "trace": row, "max_tokens": MOST_TOKENS}
    result = graph.call("sparql", asked)
    if searched := result.get("searched"):
        output.say("searched: " + ", ".join(f"{name} ({count})" for name, count in searched.items()))
    for trace in result.get("traces") or ():
        for line in (trace["of"] + ":", *(trace.get("sparql") or trace["reason"]).splitlines(), ""):
            output.say(line)
    if len(result.get("rows") or ()) < row and result.get("form") == "SELECT" and result.get("complete"):
        output.say(f"kg: The result has no row {row}. It has {len(result['rows'])}.")
    elif not result.get("traces"):
        output.say(f"kg: Row {row} has no counts, and no pattern that was not found.")


def show_found(found: SearchResult, index: IndexStatus, *, first: int = 1) -> None:
    """Write search results, numbered from `first`, and report if they are not ranked by meaning."""
    for number, hit in enumerate(found.results or found.nearest, start=first):
        if number == first and not found.results:
            output.put("Nearest, probably not an answer:")
        place = hit.provenance
        row = f", row {place.row}" if place.row is not None else ""
        answers = "" if hit.answers is None else f", answers {hit.answers:.2f}"
        output.put(f"{number}. {hit.title}  (score {hit.score:.3f}{answers})")
        for near in hit.before:
            output.put(f"   before: {to_single_line(near.text)}")
        output.put(f"   {hit.snippet}")
        for near in hit.after:
            output.put(f"   after: {to_single_line(near.text)}")
        output.put(f"   {hit.id}")
        output.put(f"   {place.source or place.graph}{row}, sha256 {place.sha256 or 'not recorded'}")
    if not found.results:
        output.say("No results.")
    if found.covers is not None:
        output.say(f"Probability that the texts treat this subject: {found.covers:.2f}.")
    elif found.uncovered_reason:
        output.say(f"Whether the texts treat this subject is not known. {found.uncovered_reason}")
    for note in found.notes:
        output.say(output.name_options(put_quotations(note, found.names)))
    if index.embedder_error is not None:
        output.say(f"kg: Ranked by keywords only: {index.embedder_error}")
    elif index.pending_vectors:
        vectors = output.counted(index.vectors + index.pending_vectors, "embedding")
        output.say(f"kg: {index.pending_vectors:,} of {vectors} are not there yet. Build them with kg reindex.")


def _show(result: Result) -> None:
    if isinstance(result, Rows):
        output.table(result.variables, ([readable(term) for term in row] for row in result.rows))
        output.say(output.counted(len(result), "row"))
    else:
        output.put("true" if result else "false")


def readable(term: Term | None) -> str:
    """Format a term as text: IRIs with their prefix, literals with their language."""
    match term:
        case None:
            return ""
        case NamedNode(value=iri):
            return curie(iri).removeprefix("<").removesuffix(">")
        case Literal(value=value, language=str(language)):
            return f"{value} @{language}"
        case Literal(value=value):
            return value
        case _:
            return str(term)
