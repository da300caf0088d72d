"""SERVICE clauses asked of the remote endpoints that a setting names, and of no others.

Query workers have no sockets, and Oxigraph's own HTTP client follows redirects to anywhere; so a clause's pattern is
sent from here as a query of its own, and its rows come back as VALUES. What is asked is the address in the setting,
never one built from the query: a clause only chooses among them.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic import HttpUrl
from pyoxigraph import BlankNode, NamedNode, QueryResultsFormat, QuerySolutions, Triple, parse_query_results

from kg.errors import InvalidInputError, QuadciteError, QueryTimeoutError, UpstreamError
from kg.remote.http import DeadlinePassedError, TooLargeError, address_of, exchange
from kg.sparql.guard import line_and_column
from kg.sparql.service import Clause, Prologue
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.vocabulary import BASE, PREFIXES

MAX_ROWS: Final = 10_000
"""Rows that one clause may bring in."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one answer, decoded."""
EMPTY: Final = "{}"
"""The one empty solution that SILENT puts in the place of a failure."""
_JSON: Final = "application/sparql-results+json"
_XML: Final = "application/sparql-results+xml"
_FORMATS: Final = {_JSON: QueryResultsFormat.JSON, _XML: QueryResultsFormat.XML}
_GENID: Final = BASE + ".well-known/genid/"
_log = logging.getLogger(__name__)


class Federation:
    """The remote endpoints that one query may ask, until `deadline` (of the monotonic clock). Calls block."""

    def __init__(self, endpoints: Sequence[HttpUrl], deadline: float) -> None:
        self.endpoints: Final = tuple(str(endpoint) for endpoint in endpoints)
        self._by_address = {address_of(endpoint): endpoint for endpoint in self.endpoints}
        self._deadline = deadline

    def allows(self, endpoint: str | None) -> bool:
        """Return whether `endpoint` is one of those that the setting names."""
        return endpoint is not None and self._url(endpoint) is not None

    def ask(self, query: str, clause: Clause, prologue: Prologue) -> str:
        """Return the rows of `clause`, asked of its endpoint, as a VALUES block.

        A blank node of the answer becomes an IRI of its own: nothing here can be the same node, but rows of one answer
        that share it still do. Raises UpstreamError for an endpoint that fails (after SILENT: the one empty solution),
        InvalidInputError for more rows or bytes than are taken in, QueryTimeoutError when no time is left.
        """
        url = None if clause.endpoint is None else self._url(clause.endpoint)
        assert url is not None  # noqa: S101 -- `allows` comes first
        line, column = line_and_column(query, clause.start)
        where = f"SERVICE <{url}> at line {line}, column {column}"
        names = {token.text[1:] for token in clause.tokens if token.kind == "variable"}
        try:
            return self._rows(url, _remote_query(clause, prologue), names, where)
        except UpstreamError as error:
            if not clause.silent:
                raise
            _log.warning("%s", error)
            return EMPTY

    def _url(self, endpoint: str) -> str | None:
        address = address_of(endpoint)
        return None if address is None else self._by_address.get(address)

    def _rows(self, url: str, query: str, names: set[str], where: str) -> str:
        media_type, body = self._fetch(url, query, where)
        try:
            result = parse_query_results(body, format=_FORMATS[media_type])
            if not isinstance(result, QuerySolutions):
                raise UpstreamError(f"{where}: it answered a SELECT with a boolean")
            variables = [variable.value for variable in result.variables]
            if strange := sorted(set(variables) - names):
                raise UpstreamError(f"{where}: its answer has ?{strange[0][:40]}, which the clause does not")
            nodes = _GENID + hashlib.sha256(body).hexdigest()[:32] + "/"
            rows: list[tuple[Term | None, ...]] = []
            for solution in result:
                if len(rows) == MAX_ROWS:
                    raise InvalidInputError(
                        f"{where}: its pattern has more than {MAX_ROWS} solutions there. A clause is asked on its own, "
                        "without what the rest of the query knows: put the patterns that narrow it inside the clause, "
                        "or a sub-SELECT with a LIMIT"
                    )
                rows.append(tuple(None if term is None else _named(term, nodes) for term in solution))
            head = " ".join(f"?{name}" for name in variables)
            if not variables:
                return f"VALUES () {{ {'() ' * len(rows)}}}"
            return bind(f"VALUES ({head}) {{ $rows }}", rows=rows)  # type: ignore[arg-type]  # no blank node is left
        except (SyntaxError, ValueError) as error:
            if isinstance(error, QuadciteError):
                raise
            raise UpstreamError(f"{where}: its answer is not {media_type}: {error}") from None

    def _fetch(self, url: str, query: str, where: str) -> tuple[str, bytes]:
        """Return the media type and the body of the answer."""
        import httpx  # which takes long, and few queries ask elsewhere

        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise QueryTimeoutError(f"{where}: no time was left to ask it")
        try:
            reply = exchange(url, {"query": query}, f"{_JSON}, {_XML};q=0.9", left_s, MAX_BYTES)
        except DeadlinePassedError:
            raise QueryTimeoutError(f"{where}: it did not answer within the query's deadline") from None
        except TooLargeError:
            raise InvalidInputError(
                f"{where}: its answer is larger than {MAX_BYTES // 1024**2} MiB; ask for less in the clause"
            ) from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise UpstreamError(f"{where}: it cannot be asked: {str(error) or type(error).__name__}") from None
        if httpx.codes.is_redirect(reply.status):
            raise UpstreamError(f"{where}: it redirects elsewhere, which is not followed")
        if reply.status != httpx.codes.OK:
            raise UpstreamError(f"{where}: it answered with status {reply.status}")
        if reply.media_type not in _FORMATS:
            raise UpstreamError(f"{where}: it answered with {reply.media_type or 'no media type'}, not with {_JSON}")
        return reply.media_type, reply.body


def _remote_query(clause: Clause, prologue: Prologue) -> str:
    """Return the clause's pattern as a query of its own, with the query's declarations and those of ours it uses."""
    used = {token.text.partition(":")[0] for token in clause.tokens if token.kind == "name"}
    ours = "".join(f"PREFIX {name}: <{PREFIXES[name]}>\n" for name in sorted(used & PREFIXES.keys()))
    # A comment may end the prologue or the pattern, so each stands on lines of its own.
    return f"{ours}{prologue.text}\nSELECT * WHERE {{\n{clause.inner}\n}} LIMIT {MAX_ROWS + 1}"


def _named(term: Term, nodes: str) -> Term:
    if isinstance(term, BlankNode):
        return NamedNode(nodes + term.value)
    if isinstance(term, Triple):
        parts: Iterator[Any] = (_named(part, nodes) for part in (term.subject, term.predicate, term.object))
        return Triple(*parts)
    return term
