"""The service map: its exact form, and its signature by an independent implementation."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import UTC, datetime

import pytest

from kg.connectors.manifest import load_manifest
from kg.connectors.service_map import build_service_map, verify_service_map
from tests.connectors.conftest import entry, settings_of

NOW = datetime(2025, 1, 11, tzinfo=UTC)
ULID_1 = "01JAG0Y4ZP1XK9YZ2FQ0N3WVCH"
KEY = "a test key \u00e9"
LEGACY = {"id": "perplexity", "version": "1", "endpoint": "https://legacy.example.org/mcp", "enabled": False}
WIKIDATA = entry(
    scopes=["wikidata:claims", "wikidata:sparql"],
    metadata={"dumpDate": "2024-09-18"},
    auth={"type": "bearer", "token": "hunter2"},
    remoteTools=[
        {
            "name": "wikidata.vector_search_items",
            "description": "Items \u20ac",
            "tags": ["vector"],
            "scopes": ["facts"],
        },
        {"name": "get_entity_claims"},
        {"name": "other.tool", "tags": ["mine"]},
    ],
)
EXPECTED = {
    "id": ULID_1,
    "brand": "quadcite",
    "generatedAt": "2025-01-11T00:00:00Z",
    "ttlSeconds": 1800,
    "connectors": [
        {
            "id": "wikidata",
            "version": "2024.09.18",
            "endpoint": "https://mcp.example.org/mcp/",
            "auth": {"type": "bearer"},
            "scopes": ["wikidata:claims", "wikidata:sparql"],
            "ttlSeconds": 1800,
            "enabled": True,
            "metadata": {"brand": "quadcite", "dumpDate": "2024-09-18"},
            "remoteTools": [
                {
                    "name": "wikidata.vector_search_items",
                    "description": "Items \u20ac",
                    "tags": ["vector", "wikidata", "items"],
                    "scopes": ["facts", "entities"],
                },
                {"name": "wikidata.get_claims", "tags": ["claims", "wikidata", "provenance"]},
                {"name": "other.tool", "tags": ["mine"]},
            ],
        },
        {
            "id": "perplexity",
            "version": "1",
            "endpoint": "https://legacy.example.org/mcp",
            "auth": {"type": "none"},
            "scopes": [],
            "ttlSeconds": 1800,
            "enabled": False,
            "metadata": {"brand": "quadcite"},
        },
    ],
    "signature": "6316088af3159c03c2842f8959e40ada3d8ebf5ef37f826e67f3e152de278b38",
}


@pytest.fixture
def settings(tmp_path):
    return settings_of(tmp_path, WIKIDATA, LEGACY, service_map_key=KEY)


def build(settings, **more):
    return build_service_map(load_manifest(settings).connectors, settings, now=NOW, map_id=ULID_1, **more)


def hmac_sha256(key: bytes, message: bytes) -> str:
    """HMAC by its definition (RFC 2104), without the module that signs."""
    key = hashlib.sha256(key).digest() if len(key) > 64 else key
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()


def canonical(value: dict) -> bytes:
    """RFC 8785 for a map, whose keys are ASCII and whose numbers are small integers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_the_map_with_a_fixed_clock_and_its_signature(settings):
    assert build(settings) == EXPECTED


def test_an_independent_implementation_verifies_the_signature(settings):
    sent = json.loads(json.dumps(build(settings)))
    signature = sent.pop("signature")
    assert signature == hmac_sha256(KEY.encode(), canonical(sent))


def test_verification_accepts_any_order_of_keys_and_nothing_changed(settings):
    found = build(settings)
    assert verify_service_map(dict(reversed(found.items())), KEY.encode())
    assert not verify_service_map(found, b"another key")
    assert not verify_service_map({**found, "ttlSeconds": 1801}, KEY.encode())
    assert not verify_service_map({**found, "connectors": found["connectors"][:1]}, KEY.encode())
    assert not verify_service_map({**found, "more": 1}, KEY.encode())
    for signature in (None, "", 7, found["signature"].upper(), "\udcff"):
        assert not verify_service_map({**found, "signature": signature}, KEY.encode())
    assert not verify_service_map({**found, "ttlSeconds": float("nan")}, KEY.encode())


def test_without_a_key_there_is_no_signature(tmp_path):
    found = build(settings_of(tmp_path, WIKIDATA))
    assert "signature" not in found
    assert not verify_service_map(found, b"")


def test_the_map_has_no_secret(settings):
    assert "hunter2" not in json.dumps(build(settings))


def test_each_map_has_an_id_of_its_own_that_sorts_by_time(settings):
    connectors = load_manifest(settings).connectors
    first = build_service_map(connectors, settings, now=NOW)
    later = build_service_map(connectors, settings, now=datetime(2025, 1, 12, tzinfo=UTC))
    assert first["id"] < later["id"]
    assert len(first["id"]) == 26


def test_the_brand_is_a_setting(tmp_path):
    own = entry(metadata={"brand": "Theirs"})
    found = build(settings_of(tmp_path, own, LEGACY, brand="Town Hall"))
    assert found["brand"] == "Town Hall"
    assert [each["metadata"]["brand"] for each in found["connectors"]] == ["Theirs", "Town Hall"]


@pytest.mark.measures_processor_time
def test_the_time_of_a_map_grows_with_its_entries_alone(tmp_path):
    def measure(count: int) -> float:
        settings = settings_of(tmp_path, *({**WIKIDATA, "id": f"c{n}"} for n in range(count)), service_map_key=KEY)
        connectors = load_manifest(settings).connectors
        build(settings)
        began = time.thread_time()
        for _ in range(20):
            build_service_map(connectors, settings, now=NOW)
        return time.thread_time() - began

    assert measure(60) < 60 * measure(4)
