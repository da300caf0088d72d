"""The manifest of connectors: which remote MCP servers there are, and the tools that each should have.

`QUADCITE_CONNECTORS` is the manifest as JSON, or the path of its file. The keys are those of the service map that
agents read, so a manifest and a map can be compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from kg.errors import InvalidInputError
from kg.remote.http import is_loopback, parse_address
from kg.settings import Settings
from kg.text import to_single_line

MAX_BYTES: Final = 1 << 20
"""Maximum size of a manifest."""
TTL_S: Final = 1_800

_NAME: Final = r"^[a-z0-9._-]+$"
_SCOPE: Final = r"^[a-z0-9._:-]+$"

Name = Annotated[str, StringConstraints(pattern=_NAME, max_length=100)]
ScopeName = Annotated[str, StringConstraints(pattern=_SCOPE, max_length=100)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$")]


def _check_endpoint(url: str) -> str:
    if parse_address(url) is None:
        raise ValueError("expected http or https, host, port and path only, such as https://mcp.example.org/mcp/")
    return url


Endpoint = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_check_endpoint)]


class _Part(BaseModel):
    """A part of the manifest. Unknown keys are refused; none of its types is converted."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, hide_input_in_errors=True
    )


class RemoteTool(_Part):
    """A tool that the server should have, by its canonical name."""

    name: Name
    description: Line | None = None
    tags: Annotated[list[Name], Field(max_length=32)] | None = None
    scopes: Annotated[list[ScopeName], Field(max_length=32)] | None = None


class Auth(_Part):
    """How the server knows its clients: not at all, or by a bearer token, which no answer or log contains."""

    type: Literal["none", "bearer"] = "none"
    token: SecretStr | None = None

    @model_validator(mode="after")
    def _has_token(self) -> Self:
        if (self.token is None) == (self.type == "bearer"):
            raise ValueError("`token` belongs to the type bearer, and only to it")
        return self


class Metadata(_Part):
    """Statements of a connector about its data."""

    brand: Line | None = None
    dump_date: Annotated[date, Field(strict=False)] | None = None


class Connector(_Part):
    """One remote MCP server."""

    id: Name
    version: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._+-]+$", max_length=100)]
    endpoint: Endpoint
    auth: Auth = Auth()
    scopes: Annotated[list[ScopeName], Field(max_length=64)] = []
    ttl_seconds: Annotated[int, Field(ge=1, le=604_800)] = TTL_S
    enabled: bool = True
    metadata: Metadata = Metadata()
    remote_tools: Annotated[list[RemoteTool], Field(max_length=256)] | None = None
    """The tools that it should have; None for an entry that states none."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if doubled := _first_doubled([tool.name for tool in self.remote_tools or ()]):
            raise ValueError(f"the tool {doubled!r} is declared twice")
        scheme, host, *_ = parse_address(self.endpoint) or ("", "")
        if self.auth.token is not None and scheme != "https" and not is_loopback(host):
            raise ValueError("a token is sent by https only, except to loopback")
        return self


class Manifest(_Part):
    """The connectors of an installation."""

    connectors: Annotated[list[Connector], Field(max_length=64)] = []

    @model_validator(mode="after")
    def _has_distinct_ids(self) -> Self:
        if doubled := _first_doubled([connector.id for connector in self.connectors]):
            raise ValueError(f"two connectors have the id {doubled!r}")
        return self


def load_manifest(settings: Settings) -> Manifest:
    """Load the manifest that the settings name. Raises InvalidInputError that names each invalid place."""
    given = settings.connectors.strip()
    if not given:
        return Manifest()
    where, text = ("QUADCITE_CONNECTORS", given) if given[0] in "{[" else (given, _read(Path(given).expanduser()))
    try:
        document = json.loads(text, object_pairs_hook=_to_object)
        return Manifest.model_validate(document)
    except ValidationError as error:
        raise InvalidInputError(f"{where}: {_explain(error)}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{where}: the manifest of connectors is not valid JSON: {error}") from None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            found = stream.read(MAX_BYTES + 1)
        text = found.decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInputError(
            f"QUADCITE_CONNECTORS names {str(path)[:200]!r}, which cannot be read ({reason}). Give the path of a "
            'manifest of connectors, or the manifest itself: {"connectors": [...]}.'
        ) from None
    if len(found) > MAX_BYTES:
        raise InvalidInputError(f"{path}: a manifest of connectors has at most {MAX_BYTES >> 20} MiB.")
    return text


def _to_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object. Of two equal keys JSON readers keep different ones."""
    if doubled := _first_doubled([name for name, _ in pairs]):
        raise ValueError(f"the key {doubled[:100]!r} occurs twice in one object")
    return dict(pairs)


def _first_doubled(names: Sequence[str]) -> str | None:
    return next((name for number, name in enumerate(names) if name in names[:number]), None)


def _explain(error: ValidationError) -> str:
    """Name each invalid place without its value, which may be a secret."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    said = [f"{'.'.join(map(str, problem['loc'])) or 'manifest'}: {_reword(problem)}" for problem in problems[:5]]
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return to_single_line("; ".join(said)[:2_000] + more, 2_100)


def _reword(problem: Any) -> str:
    if problem["type"] == "extra_forbidden":
        return "unknown key"
    if problem["type"] == "missing":
        return "required, but missing"
    return str(problem["msg"]).removeprefix("Value error, ")
