"""The bodies of requests: read up to a bound, and as the JSON object that arguments come in."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from kg.errors import InvalidInputError
from kg.server.problem_details import HttpError


async def read(request: Request, max_bytes: int, setting: str = "QUADCITE_MAX_BODY_BYTES") -> bytes:
    """Return the body of `request`; `setting` is what the bound comes from. Raises HttpError (413) beyond it."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            message = f"the body is larger than {max_bytes} bytes (setting {setting})"
            # The connection stays: closed on a client that still sends, it would reset before the answer is read.
            raise HttpError(413, "body_too_large", message)
    return bytes(body)


def arguments_in(body: bytes) -> dict[str, Any]:
    """Return the arguments in a body, which may be empty. Raises InvalidInputError for what is no JSON object."""
    if not body.strip():
        return {}
    try:
        arguments = json.loads(body)
    except ValueError as error:
        raise InvalidInputError(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise InvalidInputError("the body is nested too deeply") from None
    if not isinstance(arguments, dict):
        kind = "array" if isinstance(arguments, list) else json.dumps(arguments)[:40]
        raise InvalidInputError(f'the body is JSON, but {kind}; it is an object of arguments, as in {{"limit": 5}}')
    return arguments
