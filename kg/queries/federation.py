"""SERVICE clauses sent to the remote endpoints that a setting names, and to no others.

Query workers have no sockets, and Oxigraph's own HTTP client follows redirects to anywhere; so a clause's pattern is
sent from here as a query of its own, and its rows return as VALUES. The address is always the one in the setting, never
one built from the query: a clause only chooses among them.
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
from kg.remote.http import DeadlinePassedError, TooLargeError, parse_address, send_request
from kg.sparql.guard import line_and_column
from kg.sparql.service import Clause, Prologue
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.text import quoted
from kg.vocabulary import BASE, PREFIXES

MAX_ROWS: Final = 10_000
"""Maximum rows of one clause."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Maximum bytes of one answer, decoded."""
EMPTY: Final = "{}"
"""The single empty solution by which SILENT replaces a failure."""
_JSON: Final = "application/sparql-results+json"
_XML: Final = "application/sparql-results+xml"
_FORMATS: Final = {_JSON: QueryResultsFormat.JSON, _XML: QueryResultsFormat.XML}
_GENID: Final = BASE + ".well-known/genid/"
_log = logging.getLogger(__name__)


class Federation:
    """The remote endpoints that one query may use, until `deadline` (of the monotonic clock). Calls block."""

    def __init__(self, endpoints: Sequence[HttpUrl], deadline: float) -> None:
        self.endpoints: Final = tuple(str(endpoint) for endpoint in endpoints)
        self._by_address = {parse_address(endpoint): endpoint for endpoint in self.endpoints}
        self._deadline = deadline

    def is_allowed(self, endpoint: str | None) -> bool:
        """Return whether the setting names `endpoint`."""
        return endpoint is not None and self._url(endpoint) is not None

    def fetch_values(self, query: str, clause: Clause, prologue: Prologue) -> str:
        """Send `clause` to its endpoint and return its rows as a VALUES block.

        Blank nodes of the answer become IRIs: no node here can be the same, but rows of one answer that share one still
        do. Raises UpstreamError for an endpoint that fails (with SILENT: one empty solution instead), InvalidInputError
        for too many rows or bytes, QueryTimeoutError when no time is left.
        """
        url = None if clause.endpoint is None else self._url(clause.endpoint)
        assert url is not None  # noqa: S101 -- `is_allowed` comes first
        line, column = line_and_column(query, clause.start)
        where = f"SERVICE <{url}> at line {line}, column {column}"
        names = {token.text[1:] for token in clause.tokens if token.kind == "variable"}
        try:
            return self._fetch_rows(url, _build_remote_query(clause, prologue), names, where)
        except UpstreamError as error:
            if not clause.silent:
                raise
            _log.warning("%s", error)
            return EMPTY

    def _url(self, endpoint: str) -> str | None:
        address = parse_address(endpoint)
        return None if address is None else self._by_address.get(address)

    def _fetch_rows(self, url: str, query: str, names: set[str], where: str) -> str:
        media_type, body = self._fetch(url, query, where)
        try:
            result = parse_query_results(body, format=_FORMATS[media_type])
            if not isinstance(result, QuerySolutions):
                raise UpstreamError(f"{where}: The endpoint answered a SELECT with a boolean.")
            variables = [variable.value for variable in result.variables]
            if strange := sorted(set(variables) - names):
                raise UpstreamError(f"{where}: The answer contains {quoted(strange[0])}, which is not in the clause.")
            nodes = _GENID + hashlib.sha256(body).hexdigest()[:32] + "/"
            rows: list[tuple[Term | None, ...]] = []
            for solution in result:
                if len(rows) == MAX_ROWS:
                    raise InvalidInputError(
                        f"{where}: The pattern has more than {MAX_ROWS} solutions at the endpoint. A clause is sent "
                        "alone, without the rest of the query. Put the patterns that restrict it inside the clause, or "
                        "a sub-SELECT with a LIMIT."
                    )
                rows.append(tuple(None if term is None else _to_named(term, nodes) for term in solution))
            head = " ".join(f"?{name}" for name in variables)
            if not variables:
                return f"VALUES () {{ {'() ' * len(rows)}}}"
            return bind(f"VALUES ({head}) {{ $rows }}", rows=rows)  # type: ignore[arg-type]  # no blank node remains
        except (SyntaxError, ValueError) as error:
            if isinstance(error, QuadciteError):
                raise
            raise UpstreamError(f"{where}: The answer is not {media_type}: {error}") from None

    def _fetch(self, url: str, query: str, where: str) -> tuple[str, bytes]:
        """Send a query and return the media type and the body of the answer."""
        import httpx  # slow to import, and few queries need it

        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise QueryTimeoutError(f"{where}: No time was left for the request.")
        try:
            reply = send_request(url, {"query": query}, f"{_JSON}, {_XML};q=0.9", left_s, MAX_BYTES)
        except DeadlinePassedError:
            raise QueryTimeoutError(f"{where}: No answer before the query's deadline.") from None
        except TooLargeError:
            raise InvalidInputError(
                f"{where}: The answer is larger than {MAX_BYTES // 1024**2} MiB. Restrict the clause."
            ) from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise UpstreamError(f"{where}: The request failed: {str(error) or type(error).__name__}") from None
        if httpx.codes.is_redirect(reply.status):
            raise UpstreamError(f"{where}: The endpoint redirects. Redirects are not followed.")
        if reply.status != httpx.codes.OK:
            raise UpstreamError(f"{where}: The endpoint returned status {reply.status}.")
        if reply.media_type not in _FORMATS:
            raise UpstreamError(f"{where}: The answer is {reply.media_type or 'without a media type'}, not {_JSON}.")
        return reply.media_type, reply.body


def _build_remote_query(clause: Clause, prologue: Prologue) -> str:
    """Build a query of the clause's pattern, with the query's declarations and those of our prefixes that it uses."""
    used = {token.text.partition(":")[0] for token in clause.tokens if token.kind == "name"}
    ours = "".join(f"PREFIX {name}: <{PREFIXES[name]}>\n" for name in sorted(used & PREFIXES.keys()))
    # A comment may end the prologue or the pattern, so each has lines of its own.
    return f"{ours}{prologue.text}\nSELECT * WHERE {{\n{clause.inner}\n}} LIMIT {MAX_ROWS + 1}"


def _to_named(term: Term, nodes: str) -> Term:
    if isinstance(term, BlankNode):
        return NamedNode(nodes + term.value)
    if isinstance(term, Triple):
        parts: Iterator[Any] = (_to_named(part, nodes) for part in (term.subject, term.predicate, term.object))
        return Triple(*parts)
    return term
