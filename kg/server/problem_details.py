"""Errors as HTTP responses: problem details (RFC 9457) for programs, one line of text for people."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from kg.access.audit import note
from kg.errors import QuadciteError
from kg.server.negotiation import negotiate
from kg.text import quoted

PROBLEM: Final = "application/problem+json"
RETRY_AFTER_S: Final = 1
"""Seconds in the Retry-After header when a queue is full; most queries take less."""

Handler = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)


class HttpError(Exception):
    """An error with an HTTP status of its own (405, 406, 413, 415). `code` is for programs."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status: Final = status
        self.code: Final = code
        self.headers: Final = dict(headers or {})


def method_not_allowed(request: Request, allowed: str) -> HttpError:
    """Build the error for an unsupported method. `allowed` lists the supported ones."""
    message = f"Method {quoted(request.method)} is not supported here. Use {allowed}."
    return HttpError(405, "method_not_allowed", message, {"Allow": allowed})


def answering(handler: Handler) -> Handler:
    """Wrap `handler` so that a QuadciteError or HttpError becomes a response."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return problem(request, HttpError(400, "invalid_input", "The client disconnected too early."))
        except (HttpError, QuadciteError) as error:
            return problem(request, error)

    return answer


def problem(request: Request, error: HttpError | QuadciteError) -> Response:
    """Build the response of `error`: ``application/problem+json``, or ``text/plain`` where Accept prefers that.

    In addition to the members of RFC 9457 it has `code`, which is stable, and `message`, equal to `detail`.
    """
    note(outcome=error.code)
    status, headers = (error.status, error.headers) if isinstance(error, HttpError) else (error.http_status, {})
    headers = {**headers, "Cache-Control": "no-store", "Vary": "Accept", "X-Content-Type-Options": "nosniff"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, QuadciteError) and error.retryable:
        headers["Retry-After"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    message = str(error).encode(errors="replace").decode()  # it may quote a lone surrogate, which has no UTF-8
    if negotiate(request.headers.getlist("accept"), (PROBLEM, "text/plain")) == "text/plain":
        return PlainTextResponse(f"{error.code}: {message}\n", status, headers)
    members = {"title": HTTPStatus(status).phrase, "status": status, "detail": message}
    return JSONResponse({**members, "code": error.code, "message": message}, status, headers, media_type=PROBLEM)


def fault(doing: str) -> str:
    """Log the current exception under a number, and return the message for the client, which names the number."""
    number = uuid.uuid4().hex[:12]
    log.exception("%s failed (error %s)", doing, number)
    return f"Internal error. The log of the server has the details under {number}"


def build_handlers(
    respond: Callable[[Request, HttpError], Response] = problem,
) -> Mapping[Any, Callable[[Request, Exception], Response]]:
    """Build the exception handlers of the application, so that all errors have the form of `respond`."""

    def unrouted(request: Request, error: Exception) -> Response:
        """Answer for an unknown path and for a method that a route does not have."""
        if not isinstance(error, HTTPException):
            raise error
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            return respond(request, method_not_allowed(request, (error.headers or {}).get("Allow", "GET")))
        status = HTTPStatus(error.status_code)
        message = error.detail
        if status == HTTPStatus.NOT_FOUND:
            message = f"Unknown path {quoted(request.url.path)}. The page / lists the paths."
        return respond(request, HttpError(status, status.name.lower(), message, error.headers))

    def unexpected(request: Request, error: Exception) -> Response:
        """Answer for an unexpected exception, which is logged."""
        number = uuid.uuid4().hex[:12]
        log.error("%s %s failed (error %s): %s", request.method, request.url.path[:200], number, type(error).__name__)
        message = f"Internal error. The log of the server has the details under {number}"
        return respond(request, HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", message))

    return {HTTPException: unrouted, Exception: unexpected}
