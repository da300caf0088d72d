"""Suggests alternatives for the constants of a query without rows: other values, properties, graphs or directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode
from rapidfuzz import fuzz

from kg.sparql.algebra import Comparison, Element, Node, Query
from kg.sparql.guard import line_and_column
from kg.sparql.lint import Hint
from kg.sparql.schema_index import local_name, split_words
from kg.store.protocol import Rows, Term
from kg.text import MAX_QUOTED_CHARS
from kg.vocabulary import RDF, curie

_VALUES: Final = 500
_SHOWN: Final = 5
_LONG: Final = MAX_QUOTED_CHARS
_ORDER: Final = frozenset({"<", ">", "<=", ">="})


class Suggestions:
    """Finds changes with which the patterns of `core`, given as SPARQL in `bodies`, have solutions."""

    def __init__(
        self,
        rows: Callable[[str, str, str, int], Rows | None],
        exists: Callable[[str], bool | None],
        bodies: Sequence[str],
        core: Sequence[Element],
        query: Query,
    ) -> None:
        self._rows, self._exists, self._bodies, self._core, self._query = rows, exists, bodies, core, query

    def hints(self) -> list[Hint]:
        """Find a hint for each constant with other values, and for each pattern in the wrong direction."""
        if len(self._core) > 3:
            return []
        return [*self._turned(), *self._linked(), *self._constants(), *self._filtered()]

    def _hint(self, code: str, start: int, found: str, message: str, suggestions: Sequence[str]) -> Hint:
        line, column = line_and_column(self._query.text, start)
        return Hint(code, f"line {line}, column {column}: {message}", line, column, found, tuple(suggestions))

    def _turned(self) -> Iterator[Hint]:
        if any(element.kind != "triple" for element in self._core):
            return
        for index, element in enumerate(self._core):
            pattern = element.pattern
            if pattern is None or not pattern.iri or pattern.object.kind == "literal" or pattern.iri == RDF.type.value:
                continue
            subject, _, object_ = element.text.partition(f" {pattern.path} ")
            turned = f"{object_} {pattern.path} {subject}"
            if self._exists(self._with(index, f"{turned} .")):
                yield self._hint(
                    "wrong_direction",
                    pattern.atoms[0].start,
                    element.text,
                    f"the reverse direction has solutions: {turned}",
                    (turned,),
                )

    def _linked(self) -> Iterator[Hint]:
        """Yield the properties that do have the object of a pattern as a value."""
        for index, element in enumerate(self._core):
            pattern = element.pattern
            if pattern is None or not pattern.iri or pattern.iri == RDF.type.value:
                continue
            if pattern.object.kind not in ("iri", "literal"):
                continue
            subject, _, object_ = element.text.partition(f" {pattern.path} ")
            body = self._with(index, f"{subject} ?alternative {object_} .")
            rows = self._rows("SELECT DISTINCT ?alternative", body, f"LIMIT {_SHOWN}", _SHOWN)
            found = [_short(row["alternative"]) for row in rows or () if "alternative" in row]
            if found:
                yield self._hint(
                    "other_property",
                    pattern.atoms[0].start,
                    pattern.path,
                    f"{self._text(pattern.object)} is not a value of {pattern.path} but of {', '.join(found)}",
                    found,
                )

    def _with(self, index: int, body: str) -> str:
        element = self._core[index]
        if element.kind == "triple" and element.node is not None:
            body = f"GRAPH {element.node.text} {{ {body} }}"
        return " ".join([*self._bodies[:index], body, *self._bodies[index + 1 :]])

    def _constants(self) -> Iterator[Hint]:
        for index, element in enumerate(self._core):
            pattern = element.pattern
            if pattern is None:
                continue
            subject, _, object_ = element.text.partition(f" {pattern.path} ")
            if pattern.object.kind in ("iri", "literal") and pattern.iri != RDF.type.value:
                body = self._with(index, f"{subject} {pattern.path} ?alternative .")
                yield from self._other(pattern.object, body, f"{pattern.path} has the values")
            if pattern.subject.kind == "iri":
                body = self._with(index, f"?alternative {pattern.path} {object_} .")
                yield from self._other(pattern.subject, body, f"{pattern.path} has the subjects")
            if pattern.graph is not None and pattern.graph.kind == "iri":
                other = f"GRAPH ?alternative {{ {element.text} . }}"
                body = " ".join([*self._bodies[:index], other, *self._bodies[index + 1 :]])
                yield from self._other(pattern.graph, body, "it is in the graphs", "wrong_graph")

    def _other(self, constant: Node, body: str, what: str, code: str = "no_such_value") -> Iterator[Hint]:
        rows = self._rows("SELECT DISTINCT ?alternative", body, f"LIMIT {_VALUES}", _VALUES)
        if rows is None or not len(rows):
            return
        near = _nearest(constant, [row["alternative"] for row in rows if "alternative" in row])
        text = self._text(constant)
        absent = ""
        if constant.kind == "iri" and code == "no_such_value":
            node = NamedNode(constant.value)
            if self._exists(f"{{ {node} ?p ?o }} UNION {{ ?s ?p {node} }}") is False:
                absent = f"{text} is not in the data; "
        message = f"{absent}instead of {text}, {what}: {', '.join(near)}"
        yield self._hint(code, constant.start, constant.text, message, near)

    def _filtered(self) -> Iterator[Hint]:
        """Yield the values of filtered variables."""
        for index, element in enumerate(self._core):
            if element.kind not in ("filter", "values"):
                continue
            others = " ".join(body for at, body in enumerate(self._bodies) if at != index)
            for comparison in self._query.comparisons:
                start = comparison.constant.start
                if not element.start <= start < element.end or comparison.function not in ("", "LANG", "STR", "YEAR"):
                    continue
                if comparison.variable.kind != "variable" or not others:
                    continue
                name = comparison.variable.text
                asked = f"{comparison.function}({name})" if comparison.function else name
                if comparison.operator in _ORDER:
                    yield from self._span(comparison, asked, others)
                    continue
                rows = self._rows(f"SELECT DISTINCT ({asked} AS ?alternative)", others, f"LIMIT {_VALUES}", _VALUES)
                if rows is None or not len(rows):
                    continue
                near = _nearest(comparison.constant, [row["alternative"] for row in rows if "alternative" in row])
                if near:
                    yield self._hint(
                        "no_such_value",
                        start,
                        comparison.constant.text,
                        f"{asked} has other values: {', '.join(near)}",
                        near,
                    )

    def _span(self, comparison: Comparison, asked: str, others: str) -> Iterator[Hint]:
        rows = self._rows(f"SELECT (MIN({asked}) AS ?least) (MAX({asked}) AS ?most)", others, "", 1)
        for row in rows or ():
            if len(row) == 2:
                least, most = _short(row["least"]), _short(row["most"])
                constant = comparison.constant
                message = f"the values of {asked} are from {least} to {most}"
                yield self._hint("no_such_value", constant.start, constant.text, message, (least, most))

    def _text(self, constant: Node) -> str:
        return constant.text if len(constant.text) <= _LONG else constant.text[: _LONG - 3] + "..."


def _nearest(constant: Node, values: Sequence[Term]) -> list[str]:
    """Find the values most similar to `constant`, as SPARQL, best first."""
    wanted = _phrase(constant.value, iri=constant.kind == "iri")

    def distance(term: Term) -> tuple[float, str]:
        value = term.value if isinstance(term, (NamedNode, Literal)) else str(term)
        phrase = _phrase(value, iri=isinstance(term, NamedNode))
        alike = max(fuzz.ratio(wanted, phrase), 0.9 * fuzz.token_set_ratio(wanted, phrase))
        return -max(alike, fuzz.ratio(constant.value.casefold(), value.casefold())), value

    near = sorted(values, key=distance)[:_SHOWN]
    return [_short(term) for term in near]


def _phrase(value: str, *, iri: bool) -> str:
    return " ".join(split_words(local_name(value) if iri else value)) or value.casefold()


def _short(term: Term) -> str:
    if isinstance(term, NamedNode):
        return curie(term.value)
    text = str(term)
    return text if len(text) <= _LONG else text[: _LONG - 4] + '..."'
