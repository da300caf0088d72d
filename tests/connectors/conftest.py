"""Connectors to a server on loopback, and entries of manifests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg.settings import Settings
from tests.connectors.wikidata_server import WikidataServer, serving

TOOLS = ("wikidata.vector_search_items", "wikidata.vector_search_properties", "wikidata.get_claims", "wikidata.sparql")


def entry(endpoint: str = "https://mcp.example.org/mcp/", **more: Any) -> dict[str, Any]:
    """An entry of a manifest."""
    tools = [{"name": name} for name in TOOLS]
    return {"id": "wikidata", "version": "2024.09.18", "endpoint": endpoint, "remoteTools": tools, **more}


def settings_of(folder: Path, *entries: Any, **more: Any) -> Settings:
    """Settings with connectors."""
    given = {"connectors": json.dumps({"connectors": list(entries)}), "answers_dir": folder / "answers", **more}
    return Settings(_env_file=None, **given)  # type: ignore[call-arg]


@pytest.fixture(scope="module")
def upstream() -> Iterator[WikidataServer]:
    with serving() as server:
        yield server


@pytest.fixture
def server(upstream: WikidataServer) -> WikidataServer:
    """The server, without faults, and without the requests of earlier tests."""
    upstream.faults.mode = "normal"
    upstream.faults.requests.clear()
    upstream.faults.headers.clear()
    return upstream
