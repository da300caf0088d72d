"""SERVICE clauses asked of the remote endpoints that a setting names, and of no others.

Query workers have no sockets, and Oxigraph's own HTTP client follows redirects to anywhere; so a clause's pattern is
sent from here as a query of its own, and its rows come back as VALUES. What is asked is the address in the setting,
never one built from the query: a clause only chooses among them.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from pydantic import HttpUrl
from pyoxigraph import BlankNode, NamedNode, QueryResultsFormat, QuerySolutions, Triple, parse_query_results

from kg.errors import InvalidInputError, QuadciteError, QueryTimeoutError, UpstreamError
from kg.sparql.guard import position
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
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_GENID: Final = BASE + ".well-known/genid/"
_log = logging.getLogger(__name__)

Address = tuple[str, str, int, str]


def address_of(url: str) -> Address | None:
    """Return scheme, host, port and path of `url`: what two addresses must share to be the same endpoint.

    None for what is no address of an endpoint here: another scheme, user information, a query, a fragment, or any
    character that programs are known to read differently.
    """
    if not url.isascii() or not url.isprintable() or any(character in url for character in " \\@?#"):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0:
        return None
    return parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme], parts.path or "/"


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
        line, column = position(query, clause.start)
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
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise QueryTimeoutError(f"{where}: no time was left to ask it")
        # Neither a proxy nor credentials from the environment, and no redirect: the address is the one in the setting.
        with (
            _Deadline(left_s) as deadline,
            httpx.Client(trust_env=False, follow_redirects=False, timeout=httpx.Timeout(left_s), http2=False) as client,
        ):
            try:
                with client.stream(
                    "POST",
                    url,
                    data={"query": query},
                    headers={"Accept": f"{_JSON}, {_XML};q=0.9", "User-Agent": "quadcite"},
                    extensions={"trace": deadline.watch},
                ) as response:
                    answer = self._read(response, where)
            except (httpx.HTTPError, httpx.StreamError, OSError) as error:
                if not deadline.passed:
                    said = str(error) or type(error).__name__
                    raise UpstreamError(f"{where}: it cannot be asked: {said}") from None
            if deadline.passed:  # then an answer of no declared length only seems to have ended
                raise QueryTimeoutError(f"{where}: it did not answer within the query's deadline")
            return answer

    def _read(self, response: httpx.Response, where: str) -> tuple[str, bytes]:
        if response.is_redirect:
            raise UpstreamError(f"{where}: it redirects elsewhere, which is not followed")
        if response.status_code != httpx.codes.OK:
            raise UpstreamError(f"{where}: it answered with status {response.status_code}")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in _FORMATS:
            raise UpstreamError(f"{where}: it answered with {media_type or 'no media type'}, not with {_JSON}")
        body = bytearray()
        for piece in response.iter_bytes(65_536):
            body += piece
            if len(body) > MAX_BYTES:
                raise InvalidInputError(
                    f"{where}: its answer is larger than {MAX_BYTES // 1024**2} MiB; ask for less in the clause"
                )
        return media_type, bytes(body)


class _Deadline:
    """Ends a connection after some seconds, whatever drips from it: a timeout of HTTP clients starts anew with each
    packet.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Learn of the connection: an httpcore trace (https://www.encode.io/httpcore/extensions/#trace)."""
        if event == "connection.connect_tcp.complete":
            self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._end()

    def _end(self) -> None:
        self.passed = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


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
