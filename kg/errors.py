"""Every error that Quadcite raises on purpose.

The tree (each leaf names the problem of whoever has to act on it)::

    QuadciteError
    ├── InvalidInputError            the caller's argument, query or file cannot be used
    │   ├── QuerySyntaxError         not SPARQL
    │   └── QueryForbiddenError      SPARQL that this endpoint never runs (SERVICE, LOAD, an update)
    ├── UnauthorizedError            the credentials given are not valid
    ├── ForbiddenError               whoever asks may not do this
    ├── NotFoundError                no such thing in the graph
    │   └── GoneError                there was one, and it is no longer kept
    ├── ConflictError                it contradicts what the graph holds already
    ├── SourceError                  a source file cannot be read, or has no layout we know
    ├── RecordError                  one record of a source cannot become a graph
    ├── ShapesViolatedError          the data break their SHACL shapes
    ├── StoreError                   the data directory cannot be used as asked
    │   ├── StoreLockedError         another process holds it
    │   ├── StoreVersionError        a newer version wrote it
    │   ├── StoreReadOnlyError       it cannot be written to
    │   └── StoreDamagedError        what it holds is not what was written
    ├── QueryLimitError              a query hit a limit and was stopped
    │   ├── QueryTimeoutError
    │   ├── QueryMemoryError
    │   └── QueryBusyError           too many queries wait already (retryable)
    │       └── ClientBusyError      too many of one client's (retryable)
    ├── ModelError                   the embedding model is absent, damaged or cannot be fetched
    ├── IndexUnavailableError        the search index process is not there (retryable)
    └── UpstreamError                a remote service did not answer as agreed (retryable)

An error's text says what is wrong, where, and what would be valid. ``code`` is stable and meant for machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class QuadciteError(Exception):
    """The root. ``code`` names the kind for machines, ``retryable`` says whether trying again can help."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    http_status: ClassVar[int] = 500


class InvalidInputError(QuadciteError):
    """An argument, query or file that cannot be used; the message names what would be valid."""

    code = "invalid_input"
    http_status = 400


class QuerySyntaxError(InvalidInputError):
    """The text is not SPARQL; the message gives line and column."""

    code = "query_syntax"


class QueryForbiddenError(InvalidInputError):
    """SPARQL that is never run here: SERVICE, LOAD, or an update where only queries are taken."""

    code = "query_forbidden"
    http_status = 403


class NotFoundError(QuadciteError):
    """Nothing in the graph has this identifier."""

    code = "not_found"
    http_status = 404


class GoneError(NotFoundError):
    """There was such a thing, and it is no longer kept: a snapshot that newer ones have replaced."""

    code = "gone"
    http_status = 410


class UnauthorizedError(QuadciteError):
    """The token given is not the one that this server takes."""

    code = "unauthorized"
    http_status = 401


class ForbiddenError(QuadciteError):
    """Whoever asks may not do this; the message says who may."""

    code = "forbidden"
    http_status = 403


class ConflictError(QuadciteError):
    """The change contradicts what the graph holds already."""

    code = "conflict"
    http_status = 409


class SourceError(QuadciteError):
    """A source cannot be read at all: absent, truncated, or of no known layout."""

    code = "source_unreadable"
    http_status = 422


class RecordError(QuadciteError):
    """One record of a source cannot become a graph; the load goes on without it."""

    code = "record_rejected"
    http_status = 422


class ShapesViolatedError(QuadciteError):
    """The data break their shapes; `violations` are the results of the validation."""

    code = "shapes_violated"
    http_status = 422

    def __init__(self, message: str, violations: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)


class StoreError(QuadciteError):
    """The data directory cannot be used as asked."""

    code = "store_unavailable"
    http_status = 503


class StoreLockedError(StoreError):
    """Another process has the data directory open for writing; the message names it."""

    code = "store_locked"
    retryable = True


class StoreVersionError(StoreError):
    """A newer version of Quadcite wrote the data directory."""

    code = "store_version"


class StoreReadOnlyError(StoreError):
    """The data directory cannot be written to."""

    code = "store_read_only"


class StoreDamagedError(StoreError):
    """What is stored is not what was written: a text does not have the length or the hash that it was stored with."""

    code = "store_damaged"
    http_status = 500


class QueryLimitError(QuadciteError):
    """A query hit a limit and was stopped."""

    code = "query_limit"
    http_status = 503


class QueryTimeoutError(QueryLimitError):
    """The query ran past its deadline and was stopped."""

    code = "query_timeout"
    http_status = 504


class QueryMemoryError(QueryLimitError):
    """The query needed more memory than a worker has and was stopped."""

    code = "query_memory"


class QueryBusyError(QueryLimitError):
    """Too many queries are waiting already."""

    code = "query_busy"
    retryable = True


class ClientBusyError(QueryBusyError):
    """One client has as many queries running and waiting as one may have."""

    code = "client_busy"
    http_status = 429


class ModelError(QuadciteError):
    """The embedding model is absent, damaged or cannot be fetched; the message gives the command to run."""

    code = "model_unavailable"
    http_status = 503


class IndexUnavailableError(QuadciteError):
    """The search index process is not there; it is restarted by itself."""

    code = "index_unavailable"
    retryable = True
    http_status = 503


class UpstreamError(QuadciteError):
    """A remote service did not answer as agreed."""

    code = "upstream_unavailable"
    retryable = True
    http_status = 502
