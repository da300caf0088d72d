"""SPARQL through the tool `wikidata.sparql` of a remote server, whose answers are CSV without the types of terms.

The query is wrapped so that each cell states its term as in Turtle, and the result is that of a SPARQL endpoint
(`kg.remote.sparql.Answer`): what reads endpoints reads connectors too.
"""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg.connectors.client import RemoteAnswer, RemoteServer
from kg.connectors.names import SPARQL
from kg.errors import InvalidInputError, UpstreamError
from kg.remote.sparql import Answer
from kg.text import quoted
from kg.vocabulary import XSD, sha256

MAX_ROWS: Final = 60_001
"""Maximum rows of a result."""
_LARGEST_CELL: Final = 8 << 20

_PROJECTION: Final = re.compile(r"\s*SELECT\s+(?:DISTINCT\s+|REDUCED\s+)?((?:\?\w+\s+)+)WHERE\b", re.IGNORECASE)
_CELL: Final = re.compile(
    r'<(?P<iri>.*)>|_:(?P<blank>.*)|"(?P<text>.*)"(?:@(?P<tag>[^"]*)|\^\^(?P<type>[^"]*))', re.DOTALL
)
_NO_ROWS: Final = "SPARQL query returned no data"

_ENCODED: Final = """\
  BIND(IF(!BOUND(?{name}), "", IF(isIRI(?{name}), CONCAT("<", STR(?{name}), ">"), IF(isBlank(?{name}), "_:",
    CONCAT("\\"", STR(?{name}), "\\"", IF(LANG(?{name}) = "", CONCAT("^^", STR(DATATYPE(?{name}))),
      CONCAT("@", LANG(?{name}))))))) AS ?{name}_term)
"""


@dataclass(frozen=True, slots=True)
class RemoteSparql:
    """The SPARQL tool of a server, as an endpoint."""

    url: str
    ask: Callable[[str, bool], RemoteAnswer]
    """Calls the tool with a query, and whether an old answer is returned if the server fails."""

    @classmethod
    def of(cls, server: RemoteServer) -> RemoteSparql:
        """Return the SPARQL tool of a server."""

        def ask(query: str, stale: bool) -> RemoteAnswer:
            [answer] = server.call(SPARQL, {"query": query, "limit": MAX_ROWS}, stale=stale)
            return answer

        return cls(server.connector.endpoint, ask)

    def select(self, query: str, *, stale: bool = True) -> Answer:
        """Run a SELECT that names its variables, and return its solutions.

        Raises InvalidInputError for another query, NotFoundError if the server has no such tool, and UpstreamError.
        """
        projection = _PROJECTION.match(query)
        if projection is None:
            raise InvalidInputError("A remote query must be a SELECT that names its variables.")
        names = [name.removeprefix("?") for name in projection[1].split()]
        encoded = "".join(_ENCODED.format(name=name) for name in names)
        terms = " ".join(f"?{name}_term" for name in names)
        wrapped = f"SELECT {terms} WHERE {{\n{{ {query} }}\n{encoded}}}"
        answer = self.ask(wrapped, stale)
        rows = parse_csv(answer.text, [f"{name}_term" for name in names])
        bindings = [_to_binding(names, row, number) for number, row in enumerate(rows)]
        return Answer(
            self.url,
            sha256(query),
            names,
            bindings,
            answer.asked_at,
            max(0.0, time.time() - answer.asked_at.timestamp()),
            len(bindings) >= MAX_ROWS,
            answer.problem,
        )


def parse_csv(text: str, names: Sequence[str]) -> list[list[str]]:
    """Parse the CSV that the published server answers with: semicolons, and the number of each row first.

    Raises UpstreamError for any other text, which is the message of an error.
    """
    if text.lstrip().startswith(_NO_ROWS):
        return []
    csv.field_size_limit(_LARGEST_CELL)
    try:
        head, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=";", strict=True) if row] or [
            []
        ]
    except csv.Error as error:
        raise UpstreamError(f"The remote query returned damaged CSV: {error}") from None
    # The server orders the columns as its endpoint does, and leaves out those without values.
    columns = {name: number for number, name in enumerate(head) if name in names}
    if not columns or any(len(row) != len(head) for row in rows):
        raise UpstreamError(f"The remote query returned no rows of {', '.join(names)}: {quoted(text)}")
    return [[row[columns[name]] if name in columns else "" for name in names] for row in rows]


def _to_binding(names: Sequence[str], row: Sequence[str], number: int) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for name, cell in zip(names, row, strict=True):
        if not cell:
            continue
        match = _CELL.fullmatch(cell)
        if match is None:
            raise UpstreamError(f"The remote query returned {cell[:100]!r}, which is not a term.")
        if match["iri"] is not None:
            found[name] = {"type": "uri", "value": match["iri"]}
        elif match["blank"] is not None:
            # Its label is not known. In Wikibase RDF each blank node is the value of one statement.
            found[name] = {"type": "bnode", "value": f"{match['blank']}{number}"}
        elif match["tag"] is not None:
            found[name] = {"type": "literal", "value": match["text"], "xml:lang": match["tag"]}
        elif match["type"] in ("", XSD.string.value):
            found[name] = {"type": "literal", "value": match["text"]}
        else:
            found[name] = {"type": "literal", "value": match["text"], "datatype": match["type"]}
    return found
