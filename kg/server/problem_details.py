"""Errors as HTTP answers: problem details (RFC 9457) for programs, one line of text for people."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from kg.errors import QuadciteError
from kg.server.negotiation import negotiate

PROBLEM: Final = "application/problem+json"
RETRY_AFTER_S: Final = 1
"""Seconds after which trying again is worth it when a queue was full: queries are answered in less, as a rule."""

Handler = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)


class HttpError(Exception):
    """A request that HTTP itself has a status for (405, 406, 413, 415); `code` names it for machines."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status: Final = status
        self.code: Final = code
        self.headers: Final = dict(headers or {})


def method_not_allowed(request: Request, allowed: str) -> HttpError:
    """Return the error for a method that a resource does not have; `allowed` lists those that it has."""
    message = f"{request.method[:20]} is not answered here; use {allowed}"
    return HttpError(405, "method_not_allowed", message, {"Allow": allowed})


def answering(handler: Handler) -> Handler:
    """Return `handler` with each error that it raises on purpose turned into an answer."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return problem(request, HttpError(400, "invalid_input", "the client went away before its request was read"))
        except (HttpError, QuadciteError) as error:
            return problem(request, error)

    return answer


def problem(request: Request, error: HttpError | QuadciteError) -> Response:
    """Return `error` as ``application/problem+json``, or as ``text/plain`` where Accept prefers that.

    Besides the members of RFC 9457 it has `code`, which is stable, and `message`, the same as `detail`.
    """
    status, headers = (error.status, error.headers) if isinstance(error, HttpError) else (error.http_status, {})
    headers = {**headers, "Cache-Control": "no-store", "Vary": "Accept", "X-Content-Type-Options": "nosniff"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, QuadciteError) and error.retryable:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    message = str(error).encode(errors="replace").decode()  # it may quote a lone surrogate, which has no UTF-8
    if negotiate(request.headers.getlist("accept"), (PROBLEM, "text/plain")) == "text/plain":
        return PlainTextResponse(f"{error.code}: {message}\n", status, headers)
    members = {"title": HTTPStatus(status).phrase, "status": status, "detail": message}
    return JSONResponse({**members, "code": error.code, "message": message}, status, headers, media_type=PROBLEM)


def fault(doing: str) -> str:
    """Log the exception at hand, a fault of our own, under a number; return what its victim is told."""
    number = uuid.uuid4().hex[:12]
    log.exception("%s failed (error %s)", doing, number)
    return f"something went wrong inside; the server's log names it as {number}"


def _unrouted(request: Request, error: Exception) -> Response:
    """Answer for a path that leads nowhere, and for a method that a route does not have."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return problem(request, method_not_allowed(request, (error.headers or {}).get("Allow", "GET")))
    status = HTTPStatus(error.status_code)
    message = error.detail
    if status == HTTPStatus.NOT_FOUND:
        message = f"nothing is at {request.url.path[:200]!r}; / says what there is"
    return problem(request, HttpError(status, status.name.lower(), message, error.headers))


def _unexpected(request: Request, error: Exception) -> Response:
    """Answer for a fault of our own, which the log tells of."""
    number = uuid.uuid4().hex[:12]
    log.error("%s %s failed (error %s): %s", request.method, request.url.path[:200], number, type(error).__name__)
    message = f"something went wrong inside; the server's log names it as {number}"
    return problem(request, HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", message))


HANDLERS: Final[Mapping[Any, Callable[[Request, Exception], Response]]] = {
    HTTPException: _unrouted,
    Exception: _unexpected,
}
"""The exception handlers of the application: what no route answers has the same form as every other error."""
