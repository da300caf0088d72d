"""What shapes may not hold, whoever wrote them: code, and queries that ask another server.

Nobody who validates expects that shapes reach out, and pySHACL, which runs what does not compile to queries, would do
as it is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg.errors import InvalidInputError, QueryForbiddenError
from kg.sparql.guard import check_query
from kg.sparql.terms import is_iri
from kg.vocabulary import SH, curie

_QUERIES: Final = frozenset({SH.select, SH.ask, SH.construct, SH.update})
_PREFIX: Final = re.compile(r"(?:[^\W\d_](?:[\w.-]*[\w-])?)?")
_JAVASCRIPT: Final = SH.iri + "js"


def refuse(triples: Iterable[Quad | Triple]) -> None:
    """Raise for a shapes graph that is not to be run.

    QueryForbiddenError for a query that asks another server, or a prefix that may hide one; QuerySyntaxError for a
    query nested too deeply for its parser; InvalidInputError for JavaScript.
    """
    for triple in triples:
        predicate = triple.predicate
        if not predicate.value.startswith(SH.iri):
            continue
        value = triple.object.value if isinstance(triple.object, Literal | NamedNode) else ""
        if predicate in _QUERIES:
            try:
                check_query(value)
            except InvalidInputError as error:
                raise type(error)(f"the shapes cannot be used: {curie(predicate.value)}: {error}") from None
        elif predicate == SH.prefix and not _PREFIX.fullmatch(value):
            raise QueryForbiddenError(f"the shapes cannot be used: sh:prefix: {value[:80]!r} is no prefix")
        elif predicate == SH.namespace and not is_iri(value):
            raise QueryForbiddenError(f"the shapes cannot be used: sh:namespace: {value[:80]!r} is no IRI")
        elif predicate.value.startswith(_JAVASCRIPT):
            raise InvalidInputError(
                f"the shapes cannot be used: {curie(predicate.value)}: JavaScript is not run; say it in SPARQL"
            )
