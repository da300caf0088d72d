"""A plain dataset served by the same routes as the knowledge graph: what the endpoint's conformance is tested on.

Its default graph is a graph of its own, not a union; every graph may be written, by everyone who reaches the address;
no shapes gate what is written, and no prefix is declared beforehand.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from starlette.applications import Starlette

from kg.access.actors import ADMIN, READ, SPARQL, WRITE, Actor
from kg.queries.federation import Federation
from kg.queries.pool import QueryPool
from kg.queries.text_check import find_clauses
from kg.server import graph_store, sparql_protocol
from kg.server.endpoint import Endpoint
from kg.settings import Settings
from kg.sparql.service import replace_clauses
from tests.conformance.plain_store import PlainStore

EVERYONE: Final = Actor("everyone", frozenset({READ, SPARQL, WRITE, ADMIN}))


def create_plain_app(store: PlainStore, settings: Settings) -> Starlette:
    """Return the application over `store`: ``/sparql`` for queries and updates, ``/graphs`` for whole graphs."""
    pool = QueryPool(store, settings, prefixes={}, base_iri=store.base_iri)

    endpoint = Endpoint(
        settings=settings,
        pool=pool,
        generation=lambda: store.generation,
        actor=lambda request: EVERYONE,
        graphs=store,
        update=store.update,
        expand=partial(expand, settings),
        union=False,
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with pool:
            yield

    routes = [*sparql_protocol.routes(endpoint), *graph_store.routes(endpoint)]
    return Starlette(routes=routes, lifespan=lifespan)


def expand(settings: Settings, query: str, timeout_s: float | None = None) -> str:
    """Return `query` with its SERVICE clauses answered by the endpoints that the setting ``service_endpoints`` names.

    A query that asks another one is returned as it is, for the guard to refuse.
    """
    left_s = settings.query_timeout_s if timeout_s is None else min(timeout_s, settings.query_timeout_s)
    federation = Federation(settings.service_endpoints, time.monotonic() + left_s)
    found, prologue = find_clauses(query)
    if not all(federation.is_allowed(clause.endpoint) for clause in found):
        return query
    return replace_clauses(query, [(clause, federation.fetch_values(query, clause, prologue)) for clause in found])
