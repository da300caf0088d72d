"""``GET /v1/connectors/service-map``, for agents that plan with remote tools."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kg.connectors.service_map import build_service_map
from kg.errors import ForbiddenError
from kg.knowledge_graph import KnowledgeGraph
from kg.remote.http import is_loopback
from kg.server.auth import parse_host
from kg.server.problem_details import answering


def routes(kg: KnowledgeGraph) -> list[Route]:
    """Build the routes over the connectors of `kg`."""

    async def service_map(request: Request) -> Response:
        if kg.settings.service_map_key is None and not _is_local(request):
            raise ForbiddenError(
                "The service map is unsigned, so it is served to this machine only. Set QUADCITE_SERVICE_MAP_KEY to "
                "sign it."
            )
        headers = {"Cache-Control": f"private, max-age={kg.settings.service_map_ttl_s}"}
        return JSONResponse(build_service_map(kg.connectors.manifest, kg.settings), headers=headers)

    return [
        Route("/v1/connectors/service-map", answering(service_map), methods=["GET"], name="service-map"),
    ]


def _is_local(request: Request) -> bool:
    """Whether a request came to a loopback address, and not through a proxy or tunnel that has another name."""
    host = parse_host(request.headers.get("host", ""))
    served, client = request.scope.get("server"), request.client
    forwarded = any(name in request.headers for name in ("forwarded", "x-forwarded-for", "x-forwarded-host"))
    return (
        not forwarded
        and host is not None
        and is_loopback(host[0])
        and (served is None or is_loopback(str(served[0])))
        and (client is None or is_loopback(client.host))
    )
