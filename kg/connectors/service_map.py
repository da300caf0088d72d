"""The service map: the connectors and their tools, signed, for agents that plan with them.

The signature is the HMAC-SHA256, in hex, of the canonical JSON (RFC 8785) of the map without `signature`. Who has the
key verifies it with `verify_service_map`, or with any implementation of the two standards.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import rfc8785
from ulid import ULID

from kg.connectors.manifest import Connector, RemoteTool
from kg.connectors.names import TOOLS, to_canonical
from kg.settings import Settings

SIGNATURE: Final = "signature"


def build_service_map(
    connectors: Sequence[Connector], settings: Settings, *, now: datetime | None = None, map_id: str | None = None
) -> dict[str, Any]:
    """Build the map of all connectors, signed if the settings have a key. `now` and `map_id` are for tests.

    It has no secret: `auth` states the type alone.
    """
    at = (now or datetime.now(UTC)).astimezone(UTC)
    found: dict[str, Any] = {
        "id": map_id or str(ULID.from_datetime(at)),
        "brand": settings.brand,
        "generatedAt": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "ttlSeconds": settings.service_map_ttl_s,
        "connectors": [_build_entry(connector, settings.brand) for connector in connectors],
    }
    if settings.service_map_key is not None:
        found[SIGNATURE] = sign_service_map(found, settings.service_map_key.get_secret_value().encode())
    return found


def sign_service_map(service_map: Mapping[str, Any], key: bytes) -> str:
    """Compute the signature of a map, with or without one."""
    signed = {name: value for name, value in service_map.items() if name != SIGNATURE}
    return hmac.new(key, rfc8785.dumps(signed), hashlib.sha256).hexdigest()


def verify_service_map(service_map: Mapping[str, Any], key: bytes) -> bool:
    """Return whether a map has the signature of `key`. Whether it is recent is for the caller to check: `generatedAt`
    and `ttlSeconds` are signed.
    """
    given = service_map.get(SIGNATURE)
    try:
        computed = sign_service_map(service_map, key)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeError):
        return False
    return isinstance(given, str) and hmac.compare_digest(given.encode(errors="replace"), computed.encode())


def _build_entry(connector: Connector, brand: str) -> dict[str, Any]:
    metadata = {"brand": connector.metadata.brand or brand}
    if connector.metadata.dump_date is not None:
        metadata["dumpDate"] = connector.metadata.dump_date.isoformat()
    entry: dict[str, Any] = {
        "id": connector.id,
        "version": connector.version,
        "endpoint": connector.endpoint,
        "auth": {"type": connector.auth.type},
        "scopes": list(connector.scopes),
        "ttlSeconds": connector.ttl_seconds,
        "enabled": connector.enabled,
        "metadata": metadata,
    }
    if connector.remote_tools is not None:
        entry["remoteTools"] = [_build_tool(tool) for tool in connector.remote_tools]
    return entry


def _build_tool(tool: RemoteTool) -> dict[str, Any]:
    """Build the entry of a tool. A known one has its canonical name, and its own tags and scopes before others."""
    name = to_canonical(tool.name)
    known = TOOLS.get(name)
    tags = [*dict.fromkeys([*(known.tags if known else ()), *(tool.tags or ())])]
    scopes = [*dict.fromkeys([*(known.scopes if known else ()), *(tool.scopes or ())])]
    entry: dict[str, Any] = {"name": name}
    if tool.description is not None:
        entry["description"] = tool.description
    if tags:
        entry["tags"] = tags
    if scopes:
        entry["scopes"] = scopes
    return entry
