"""Request bodies: reading up to a limit, and parsing JSON arguments."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from kg.errors import InvalidInputError
from kg.server.problem_details import HttpError


async def read(request: Request, max_bytes: int, setting: str = "QUADCITE_MAX_BODY_BYTES") -> bytes:
    """Read the body of `request`. Raises HttpError (413) over `max_bytes`, the value of `setting`."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            message = f"The body is larger than {max_bytes} bytes (setting {setting})."
            # The connection stays open: closing it while the client sends would reset it before the response is read.
            raise HttpError(413, "body_too_large", message)
    return bytes(body)


def parse_arguments(body: bytes) -> dict[str, Any]:
    """Parse the arguments in a body, which may be empty. Raises InvalidInputError unless it is a JSON object."""
    if not body.strip():
        return {}
    try:
        arguments = json.loads(body)
    except ValueError as error:
        raise InvalidInputError(f"The body is not JSON: {error}.") from None
    except RecursionError:
        raise InvalidInputError("The JSON of the body is nested too deeply.") from None
    if not isinstance(arguments, dict):
        kind = "an array" if isinstance(arguments, list) else json.dumps(arguments)[:40]
        raise InvalidInputError(f'The body must be a JSON object of arguments, as in {{"limit": 5}}, not {kind}.')
    return arguments
