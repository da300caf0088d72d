"""Every error that Quadcite raises on purpose.

The tree (each leaf names the problem for the reader who has to fix it)::

    QuadciteError
    ├── InvalidInputError            invalid argument, query or file
    │   ├── PayloadTooLargeError     more data than one request may send
    │   ├── QuerySyntaxError         not valid SPARQL
    │   └── QueryForbiddenError      SPARQL that this endpoint never runs (SERVICE, LOAD, an update)
    ├── UnauthorizedError            invalid credentials
    ├── ForbiddenError               the caller lacks permission
    │   └── QuotaError               the sender would hold more than the settings allow
    ├── RateLimitedError             the caller has sent too many requests (retryable)
    ├── AuditUnavailableError        the audit log cannot be written, and is required (retryable)
    ├── NotFoundError                unknown identifier
    │   └── GoneError                the snapshot existed but has been superseded
    ├── ConflictError                the change contradicts stored data
    ├── SourceError                  a source file is unreadable or its layout unknown
    ├── RecordError                  one record of a source cannot be converted to RDF
    ├── ShapesViolatedError          the data violates its SHACL shapes
    ├── StoreError                   the data directory is unusable
    │   ├── StoreLockedError         another process holds its lock
    │   ├── StoreVersionError        a newer version of Quadcite wrote it
    │   ├── StoreReadOnlyError       it is not writable
    │   ├── StoreDamagedError        stored data is corrupt
    │   ├── ReplicaError             a replica takes no writes
    │   └── WriteUncertainError      a write is stored, but its sync to the disk failed
    ├── QueryLimitError              a query exceeded a limit and was stopped
    │   ├── QueryTimeoutError
    │   ├── QueryMemoryError
    │   └── QueryBusyError           the queue of queries is full (retryable)
    │       └── ClientBusyError      one client's share of the queue is full (retryable)
    ├── ModelError                   the embedding model is missing, damaged or cannot be downloaded
    ├── IndexUnavailableError        the search index process is down (retryable)
    └── UpstreamError                a remote service failed (retryable)

A message states the problem, its place and what would be valid. ``code`` is stable and meant for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class QuadciteError(Exception):
    """The root. ``code`` identifies the kind for programs; ``retryable`` is true where a retry can succeed."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    http_status: ClassVar[int] = 500


class InvalidInputError(QuadciteError):
    """Invalid argument, query or file. The message names what would be valid."""

    code = "invalid_input"
    http_status = 400


class PayloadTooLargeError(InvalidInputError):
    """The data of a request is larger than a limit. The message names the setting."""

    code = "body_too_large"
    http_status = 413


class QuerySyntaxError(InvalidInputError):
    """The text is not valid SPARQL. The message gives line and column."""

    code = "query_syntax"


class QueryForbiddenError(InvalidInputError):
    """SPARQL that this endpoint never runs: SERVICE, LOAD, or an update where only queries are accepted."""

    code = "query_forbidden"
    http_status = 403


class NotFoundError(QuadciteError):
    """The graph does not contain this identifier."""

    code = "not_found"
    http_status = 404


class GoneError(NotFoundError):
    """The snapshot existed but has been superseded."""

    code = "gone"
    http_status = 410


class UnauthorizedError(QuadciteError):
    """Invalid token."""

    code = "unauthorized"
    http_status = 401


class ForbiddenError(QuadciteError):
    """The caller lacks permission. The message names who has it."""

    code = "forbidden"
    http_status = 403


class QuotaError(ForbiddenError):
    """The sender would hold more quads or graphs than the settings allow. The message names the setting."""

    code = "quota_exceeded"


class RateLimitedError(QuadciteError):
    """The caller has sent more requests than its rate allows. The message names the limit."""

    code = "rate_limited"
    retryable = True
    http_status = 429

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AuditUnavailableError(QuadciteError):
    """The audit log cannot be written, and the settings require it."""

    code = "audit_unavailable"
    retryable = True
    http_status = 503


class ConflictError(QuadciteError):
    """The change contradicts stored data."""

    code = "conflict"
    http_status = 409


class SourceError(QuadciteError):
    """A source is unreadable: missing, truncated or in an unknown layout."""

    code = "source_unreadable"
    http_status = 422


class RecordError(QuadciteError):
    """One record of a source cannot be converted to RDF. The load continues without it."""

    code = "record_rejected"
    http_status = 422


class ShapesViolatedError(QuadciteError):
    """The data violates its SHACL shapes. `violations` or `report` (as triples) contains the validation results."""

    code = "shapes_violated"
    http_status = 422

    def __init__(self, message: str, violations: Sequence[Any] = (), report: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.violations, self.report = tuple(violations), tuple(report)


class StoreError(QuadciteError):
    """The data directory is unusable."""

    code = "store_unavailable"
    http_status = 503


class StoreLockedError(StoreError):
    """Another process has the data directory open for writing. The message names that process."""

    code = "store_locked"
    retryable = True


class StoreVersionError(StoreError):
    """A newer version of Quadcite wrote the data directory."""

    code = "store_version"


class StoreReadOnlyError(StoreError):
    """The data directory is not writable."""

    code = "store_read_only"


class WriteUncertainError(StoreError):
    """The write is in the store, but may not be on the disk yet. The message names its generation."""

    code = "write_uncertain"


class ReplicaError(StoreError):
    """The server is a replica, which takes no writes. The message has the address of its primary."""

    code = "read_only_replica"
    http_status = 403


class StoreDamagedError(StoreError):
    """Stored data is corrupt: length or hash mismatch."""

    code = "store_damaged"
    http_status = 500


class QueryLimitError(QuadciteError):
    """The query exceeded a limit and was stopped."""

    code = "query_limit"
    http_status = 503


class QueryTimeoutError(QueryLimitError):
    """The query exceeded its timeout and was stopped."""

    code = "query_timeout"
    http_status = 504


class QueryMemoryError(QueryLimitError):
    """The query exceeded the memory limit of a worker and was stopped."""

    code = "query_memory"


class QueryBusyError(QueryLimitError):
    """The queue of queries is full."""

    code = "query_busy"
    retryable = True


class ClientBusyError(QueryBusyError):
    """The client has reached its limit of running and queued queries."""

    code = "client_busy"
    http_status = 429


class ModelError(QuadciteError):
    """The embedding model is missing, damaged or cannot be downloaded. The message gives the command to run."""

    code = "model_unavailable"
    http_status = 503


class IndexUnavailableError(QuadciteError):
    """The search index is unavailable. It restarts automatically."""

    code = "index_unavailable"
    retryable = True
    http_status = 503


class UpstreamError(QuadciteError):
    """A remote service failed or returned an invalid response."""

    code = "upstream_unavailable"
    retryable = True
    http_status = 502


def require_known_format(name: str, path: object, found: int, current: int) -> None:
    """Raise StoreVersionError if the format of a part, which is called `name`, is later than that of this version."""
    if found > current:
        raise StoreVersionError(
            f"{name} in {path} has format {found}, written by a newer Quadcite. This version reads formats up to "
            f"{current}. Upgrade Quadcite, or choose another data directory. The file was not changed."
        )
