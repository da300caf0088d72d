"""Asking ``graph/prov``: the rows of a query, and what is said of one subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.sparql.terms import bind
from kg.store.protocol import Query, Term, select
from kg.vocabulary import PROV_GRAPH

DESCRIPTIONS: Final = """
SELECT ?s ?p ?o WHERE { VALUES ?s { $subjects } GRAPH $prov { ?s ?p ?o } }"""


def describe(query: Query, subject: NamedNode) -> defaultdict[NamedNode, list[Term]]:
    """Return what ``graph/prov`` says of `subject`, by predicate."""
    said: defaultdict[NamedNode, list[Term]] = defaultdict(list)
    for row in select(query, bind(DESCRIPTIONS, subjects=[subject], prov=PROV_GRAPH)):
        said[iri_of(row["p"])].append(row["o"])
    return said


def one(said: Mapping[NamedNode, list[Term]], predicate: NamedNode) -> str | None:
    """Return the text of one value of `predicate`, or None where there is none."""
    values = said[predicate]
    return text_of(values[0]) if values else None


def iri_of(term: Term | None) -> NamedNode:
    """Return `term`, which is an IRI, or raise TypeError."""
    if not isinstance(term, NamedNode):
        raise TypeError(f"graph/prov holds {term} where only an IRI can stand")
    return term


def text_of(term: Term | None) -> str:
    """Return the text of `term`, which is a literal or an IRI, or raise TypeError."""
    if not isinstance(term, Literal | NamedNode):
        raise TypeError(f"graph/prov holds {term} where a literal or an IRI stands")
    return term.value
