"""Terms as people type them, and query results as they read them or pipe them on."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from typing import Final

import pyoxigraph
from pyoxigraph import Literal, NamedNode, RdfFormat

from kg import console
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import Rows, Term
from kg.vocabulary import PREFIXES, curie

ROW_FORMATS: Final = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
}
TRUTH_FORMATS: Final = {name: ROW_FORMATS[name] for name in ("json", "xml")}
TRIPLE_FORMATS: Final = {"ttl": "text/turtle", "nt": "application/n-triples"}

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BY_FORM: Final = {
    "SELECT": ("rows", ROW_FORMATS),
    "ASK": ("true or false", TRUTH_FORMATS),
    "CONSTRUCT": ("triples", TRIPLE_FORMATS),
    "DESCRIBE": ("triples", TRIPLE_FORMATS),
}


def parse_node(text: str) -> NamedNode:
    """Return the IRI that `text` writes: ``<http://...>``, ``http://...`` or, with a known prefix, ``dcterms:title``.

    Raises InvalidInputError for anything else.
    """
    bare = text.strip().removeprefix("<").removesuffix(">")
    prefix, colon, local = bare.partition(":")
    if colon and prefix in PREFIXES and not local.startswith("//"):
        bare = PREFIXES[prefix] + local
    if not _ABSOLUTE.match(bare):
        raise InvalidInputError(
            f"{text!r} is not an IRI; write it in full (cpr://doc/..., https://...) or with a prefix: {', '.join(PREFIXES)}"
        )
    try:
        return NamedNode(bare)
    except ValueError as error:
        raise InvalidInputError(f"{text!r} is not an IRI: {error}") from None


def parse_term(text: str) -> NamedNode | Literal:
    """Return the IRI or literal that `text` writes; a literal as in Turtle: ``"words"@en``, ``3``, ``"x"^^xsd:date``.

    Raises InvalidInputError for anything else.
    """
    stripped = text.strip()
    if not re.match(r"""["'+.\d-]|(true|false)$""", stripped):
        return parse_node(stripped)
    prologue = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
    try:
        (quad,) = pyoxigraph.parse(f"{prologue}<x:s> <x:p> {stripped} .", RdfFormat.TURTLE)
    except (SyntaxError, ValueError):
        raise InvalidInputError(
            f'{text!r} is not a literal; write it as in Turtle: "words", "words"@en, 3, "2021-01-01"^^xsd:date'
        ) from None
    if not isinstance(quad.object, Literal):
        raise InvalidInputError(f"{text!r} is not a literal")
    return quad.object


def write(kg: KnowledgeGraph, query: str, form: str | None) -> None:
    """Run `query` without a cap on rows or time, and write its result to standard output.

    `form` is one of ``json xml csv tsv ttl nt``. Without it: a table on a terminal, in a pipe tab-separated values
    (of triples: N-Triples; of an ASK: ``true`` or ``false``).
    """
