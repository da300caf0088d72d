"""Results as the tests expect them, and when two are the same.

SELECT results are equivalent up to the names of blank nodes and, unless the expected one is ordered by the query, the
order of rows; graphs are isomorphic. An engine may keep numbers in their canonical form, so literals of one datatype
are the same where their values are (https://www.w3.org/TR/rdf11-concepts/#section-Datatypes); the tests that are about
the lexical form say so (``mf:NoCanonicalizationOfNumerics``), and fail where it matters.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    Triple,
    parse,
    parse_query_results,
)

from tests.conformance.manifest import FORMATS, RDF

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
XSD = "http://www.w3.org/2001/XMLSchema#"
_WHOLE = frozenset(
    XSD + name
    for name in (
        "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
        "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
    )
)  # fmt: skip
_RESULTS = {
    ".srx": QueryResultsFormat.XML,
    ".srj": QueryResultsFormat.JSON,
    ".tsv": QueryResultsFormat.TSV,
}


@dataclass(frozen=True)
class Table:
    """The result of a SELECT. The order of its columns is nobody's promise, with ``SELECT *``."""

    variables: frozenset[str]
    rows: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class CsvTable:
    """The result of a SELECT as CSV has it: text without kinds or datatypes."""

    variables: frozenset[str]
    rows: Sequence[dict[str, str]]


Outcome = bool | Table | CsvTable | list[Quad]


def expected(path: Path, base: str) -> Outcome:
    """Read the expected result of a query test."""
    if path.suffix == ".csv":
        return parse_csv(path.read_bytes())
    if path.suffix in _RESULTS:
        return parse_results(path.read_bytes(), _RESULTS[path.suffix])
    quads = list(parse(path=path, format=FORMATS[path.suffix], base_iri=base + path.name))
    return _described(quads) or quads


def parse_results(data: bytes, results: QueryResultsFormat) -> bool | Table:
    """Read a result in one of the SPARQL results formats."""
    found = parse_query_results(data, format=results)
    return bool(found) if isinstance(found, QueryBoolean) else table(found)  # type: ignore[arg-type]


def table(solutions: QuerySolutions) -> Table:
    """Return solutions as a table."""
    names = [variable.value for variable in solutions.variables]
    rows = [{name: row[name] for name in names if row[name] is not None} for row in solutions]
    return Table(frozenset(names), rows)


def parse_csv(data: bytes) -> CsvTable:
    """Read a CSV result."""
    head, *rows = csv.reader(io.StringIO(data.decode(), newline=""))
    assert all(len(row) == len(head) for row in rows)
    return CsvTable(frozenset(head), [dict(zip(head, row, strict=True)) for row in rows])


def _described(quads: list[Quad]) -> bool | Table | None:
    """Return the result that RDF describes in the vocabulary for result sets, or None if it does not."""
    values: dict[tuple[Any, str], list[Any]] = {}
    for quad in quads:
        values.setdefault((quad.subject, quad.predicate.value), []).append(quad.object)
    heads = [quad.subject for quad in quads if quad.object == NamedNode(RS + "ResultSet")]
    if not heads:
        return None
    [head] = heads
    if found := values.get((head, RS + "boolean")):
        return found[0].value == "true"
    variables = frozenset(variable.value for variable in values.get((head, RS + "resultVariable"), []))
    rows = []
    for solution in values.get((head, RS + "solution"), []):
        bindings = values.get((solution, RS + "binding"), [])
        rows.append({values[b, RS + "variable"][0].value: values[b, RS + "value"][0] for b in bindings})
    return Table(variables, rows)


def same(actual: Outcome, wanted: Outcome, *, ordered: bool = False, lexical: bool = False) -> bool:
    """Whether two results are equivalent; `lexical`: only with each literal written alike."""
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return actual is wanted
    if isinstance(wanted, Table) and isinstance(actual, Table):
        key = _exact if lexical else canonical
        rows = [[{name: key(term) for name, term in row.items()} for row in t.rows] for t in (actual, wanted)]
        return actual.variables == wanted.variables and _same_rows(rows[0], rows[1], ordered=ordered)
    if isinstance(wanted, CsvTable) and isinstance(actual, CsvTable):
        rows = [[{name: _csv_term(text) for name, text in row.items()} for row in t.rows] for t in (actual, wanted)]
        return actual.variables == wanted.variables and _same_rows(rows[0], rows[1], ordered=ordered)
    return isinstance(wanted, list) and isinstance(actual, list) and same_quads(actual, wanted)


def same_quads(actual: Iterable[Quad], wanted: Iterable[Quad]) -> bool:
    """Whether two datasets are isomorphic."""
    datasets = [Dataset([_canonical_quad(quad) for quad in quads]) for quads in (actual, wanted)]
    for dataset in datasets:
        dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return set(datasets[0]) == set(datasets[1])


def _canonical_quad(quad: Quad) -> Quad:
    return Quad(quad.subject, quad.predicate, _canonical_term(quad.object), quad.graph_name)


def _canonical_term(term: Any) -> Any:
    """The literal that stands for all of its value."""
    if isinstance(term, Triple):
        return Triple(term.subject, term.predicate, _canonical_term(term.object))
    if not isinstance(term, Literal) or term.language is not None:
        return term
    _, value, datatype = canonical(term)[:3]
    return term if isinstance(value, str) else Literal(repr(value), datatype=NamedNode(datatype))


def canonical(term: Any) -> Any:
    """What is equal for terms that are the same; a blank node stays as it is."""
    if isinstance(term, Triple):
        return ("triple", canonical(term.subject), canonical(term.predicate), canonical(term.object))
    if not isinstance(term, Literal):
        return term
    language = None if term.language is None else term.language.lower()
    return ("literal", _value(term), term.datatype.value, language, str(term.direction))


def _exact(term: Any) -> Any:
    if isinstance(term, Triple):
        return ("triple", _exact(term.subject), _exact(term.predicate), _exact(term.object))
    if not isinstance(term, Literal):
        return term
    return ("literal", term.value, term.datatype.value, term.language, str(term.direction))


def _value(literal: Literal) -> Any:
    datatype, text = literal.datatype.value, literal.value
    try:
        if datatype in _WHOLE:
            return int(text)
        if datatype == XSD + "decimal":
            return Decimal(text).normalize() + 0
        if datatype in (XSD + "double", XSD + "float"):
            number = float(text.replace("INF", "inf"))
            # The tests give what was summed or divided to as many digits as their authors' engines did.
            return "NaN" if math.isnan(number) else float(f"{number:.6g}")
        if datatype == XSD + "boolean":
            return text in ("true", "1")
    except (ValueError, InvalidOperation):
        return text
    if datatype == XSD + "dateTime":
        return re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", text).replace(".Z", "Z").replace("+00:00", "Z")
    return text


def _csv_term(text: str) -> Any:
    """A field of CSV, in which nothing but its form tells a blank node and a number."""
    if text.startswith("_:"):
        return BlankNode(text[2:])
    return text


def _same_rows(actual: list[dict[Any, Any]], wanted: list[dict[Any, Any]], *, ordered: bool) -> bool:
    """Whether blank nodes can be mapped one to one so that the rows are the same."""
    if len(actual) != len(wanted):
        return False
    if ordered:
        return _match(list(zip(actual, wanted, strict=True)), [], {}, {})
    if Counter(map(_shape, actual)) != Counter(map(_shape, wanted)):
        return False
    plain = [row for row in wanted if not _has_blank(row)]
    rest = [row for row in wanted if _has_blank(row)]
    return len(plain) == sum(not _has_blank(row) for row in actual) and _match(
        [], [rest, [row for row in actual if _has_blank(row)]], {}, {}
    )


def _match(pairs: list[Any], open_rows: list[Any], there: dict[Any, Any], back: dict[Any, Any]) -> bool:
    """Extend the mapping `there` (and its inverse) over the pairs, and over the rows that are still to be paired."""
    for left, right in pairs:
        if not _unify(left, right, there, back):
            return False
    if not open_rows or not open_rows[0]:
        return True
    [first, *others], candidates = open_rows
    for at, candidate in enumerate(candidates):
        mapped, inverse = dict(there), dict(back)
        if _unify(candidate, first, mapped, inverse):
            remaining = candidates[:at] + candidates[at + 1 :]
            if _match([], [others, remaining], mapped, inverse):
                return True
    return False


def _unify(left: Any, right: Any, there: dict[Any, Any], back: dict[Any, Any]) -> bool:
    if isinstance(left, BlankNode) and isinstance(right, BlankNode):
        return there.setdefault(left, right) == right and back.setdefault(right, left) == left
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_unify(left[name], right[name], there, back) for name in left)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(_unify(a, b, there, back) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def _shape(value: Any) -> Any:
    """`value` with one mark in place of each blank node."""
    if isinstance(value, BlankNode):
        return "_:"
    if isinstance(value, dict):
        return frozenset((name, _shape(item)) for name, item in value.items())
    return tuple(map(_shape, value)) if isinstance(value, tuple) else value


def _has_blank(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_blank, value.values()))
    return any(map(_has_blank, value)) if isinstance(value, tuple) else isinstance(value, BlankNode)


__all__ = ["RDF", "CsvTable", "Outcome", "Table", "canonical", "expected", "parse_csv", "parse_results", "same"]
