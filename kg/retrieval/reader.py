"""Reading the graph for one answer: what was asked is kept, so that the answer can show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.retrieval.results import MOST_RESULTS, MOST_SKIPPED, Completeness, Meta, Result, Statement
from kg.store.ownership import is_user_graph
from kg.store.protocol import Rows, Term

R = TypeVar("R", bound=Result)
T = TypeVar("T")

KEPT_ANSWERS: Final = 64
"""Answers to the commonest questions that are kept until the next commit; each holds some thousand rows at most."""


class Reader:
    """The queries of one answer, over snapshots that never go back in time."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg = kg
        self.ran: list[Statement] = []
        self.generation = 0
        self.truncated = False

    def rows(self, purpose: str, query: str) -> list[dict[str, Term]]:
        """Run a SELECT and return its rows; `purpose` says in a few words what it is for."""
        return list(self._selected(purpose, query))

    def tuples(self, purpose: str, query: str) -> Sequence[tuple[Term | None, ...]]:
        """Run a SELECT and return its rows by the place of the variables: for thousands of them."""
        return self._selected(purpose, query).rows

    def _selected(self, purpose: str, query: str) -> Rows:
        answer = self.kg.query(query)
        if not isinstance(answer.result, Rows):
            raise TypeError(f"a tool compiled something that is not a SELECT: {query}")
        self.ran.append(Statement(purpose=purpose, sparql=query.strip()))
        self.generation = max(self.generation, answer.generation)
        self.truncated = self.truncated or answer.truncated
        return answer.result

    def kept(self, purpose: str, query: str, read: Callable[[list[dict[str, Term]]], T]) -> T:
        """Return what `read` makes of the rows of a SELECT, or made of them since the last commit; not to be changed.

        For a question that many requests share, and whose answer is small.
        """
        answers: Memory = self.kg.memory.get("answers") or self.kg.memory.keep("answers", Memory(KEPT_ANSWERS))
        generation = self.kg.store.statistics().generation
        known: tuple[T] | None = answers.get((query, generation))
        if known is not None:
            self.ran.append(Statement(purpose=purpose, sparql=query.strip()))
            self.generation = max(self.generation, generation)
            return known[0]
        before, self.truncated = self.truncated, False
        self.generation, earlier = 0, self.generation
        value = read(self.rows(purpose, query))
        if not self.truncated:
            answers.keep((query, self.generation), (value,))
        self.truncated = self.truncated or before
        self.generation = max(self.generation, earlier)
        return value

    def finish(
        self,
        result: R,
        *,
        total: int | None = None,
        next_offset: int | None = None,
        completeness: Completeness = "complete",
        explain: bool = False,
    ) -> R:
        """Put on `result` what is known about it; the first query that ran is the one that selected it."""
        if self.truncated:
            completeness = "truncated"
            result.notes.append("A row limit of the query engine cut this answer off; narrow the request.")
        result.next_offset = next_offset
        result.explain = list(self.ran) if explain else []
        result.meta = Meta(
            snapshot=self.generation or self.kg.store.statistics().generation,
            completeness=completeness,
            total=total,
            next_offset=next_offset,
            sparql=self.ran[:1],
        )
        return result


def of_sources(about: str, rows: Sequence[dict[str, Term]]) -> list[dict[str, Term]]:
    """Return the rows that say what holds of a thing: what its source says, where one does.

    `about` is the variable of the thing, and ``graph`` that of the graph in which a row was found. What people write of
    a thing (`kg.store.ownership`) counts where no other graph speaks of it, so that nobody puts words into a record.
    """
    known = {row[about] for row in rows if "graph" in row and not is_user_graph(row["graph"])}
    return [row for row in rows if "graph" not in row or row[about] not in known or not is_user_graph(row["graph"])]


def iri_of(term: Term) -> str:
    """Return the IRI of `term`, which is one by the shape of the data."""
    if not isinstance(term, NamedNode):
        raise TypeError(f"expected an IRI, got {term}")
    return term.value


def text_of(term: Term) -> str:
    """Return the words of a literal, or the IRI of a node."""
    if isinstance(term, (Literal, NamedNode)):
        return term.value
    raise TypeError(f"expected a literal or an IRI, got {term}")


def bounded(name: str, value: int, low: int, high: int) -> int:
    """Return `value` if it lies between `low` and `high`, both included; else InvalidInputError."""
    if not low <= value <= high:
        raise InvalidInputError(f"{name} is {value}; it must be from {low} to {high}")
    return value


def bounded_page(limit: int, offset: int) -> None:
    """Raise InvalidInputError for a page of none or too many results, or one too far on."""
    bounded("limit", limit, 1, MOST_RESULTS)
    bounded("offset", offset, 0, MOST_SKIPPED)


def clean_text(name: str, text: str, longest: int) -> str:
    """Return `text` without blank edges if it is text of at most `longest` characters; else InvalidInputError."""
    stripped = text.strip()
    if not stripped:
        raise InvalidInputError(f"{name} is empty; give some words")
    if len(stripped) > longest:
        raise InvalidInputError(f"{name} has {len(stripped):,} characters; at most {longest:,} are taken")
    if any("\ud800" <= character <= "\udfff" for character in stripped):
        raise InvalidInputError(f"{name} holds a lone surrogate, which is not a character")
    return stripped


def page_of(total: Sequence[object], offset: int, limit: int) -> int | None:
    """Return the offset of the page after this one, or None when this is the last."""
    return offset + limit if len(total) > offset + limit else None
