"""Routes for replicas: the points of the server's folder of backups, and their files by hash.

``GET /admin/backups`` lists the points and has the generation of the store, ``GET /admin/backups/{number}`` is a point
as it is in the folder, and ``GET /admin/backups/files/{sha256}`` a file, also a range of its bytes. They need the scope
``admin``: a backup has everything, also what policies hide.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from kg.errors import NotFoundError
from kg.integrity.backup_folder import BackupFolder, encode_point
from kg.integrity.backups import list_backups
from kg.knowledge_graph import KnowledgeGraph
from kg.server import request_bodies
from kg.server.endpoint import Endpoint
from kg.server.mcp import LONG_S
from kg.server.problem_details import answering

_NO_STORE = {"Cache-Control": "no-store"}


def routes(kg: KnowledgeGraph, endpoint: Endpoint) -> list[Route]:
    """Build the routes over the folder of the settings. `endpoint` asks the policies."""

    def find_folder() -> BackupFolder:
        if kg.settings.backup_to is None:
            raise NotFoundError("This server writes no backups. Start it with --backup-to FOLDER (QUADCITE_BACKUP_TO).")
        folder = BackupFolder(kg.settings.backup_to)
        if not folder.exists:
            raise NotFoundError("This server has not written a backup yet. Ask again later.")
        return folder

    def list_points(request: Request) -> Response:
        found = list_backups(find_folder().path)
        return JSONResponse(
            {"generation": kg.store.statistics().generation, "points": found["points"], "problems": found["problems"]},
            headers=_NO_STORE,
        )

    def get_point(request: Request) -> Response:
        point = find_folder().load(request.path_params["number"])
        return Response(encode_point(point), media_type="application/json", headers=_NO_STORE)

    def get_file(request: Request) -> Response:
        path = find_folder().find_content(request.path_params["sha256"])
        return FileResponse(
            path, media_type="application/octet-stream", headers={"Cache-Control": "private, immutable"}
        )

    def build(path: str, name: str, answer: Callable[[Request], Response]) -> Route:
        async def serve(request: Request) -> Response:
            endpoint.permit(endpoint.actor(request), "admin.backups")
            request_bodies.allow_time(request, LONG_S)
            return await anyio.to_thread.run_sync(answer, request)

        serving: Callable[[Request], Awaitable[Response]] = serve
        return Route(path, answering(serving), methods=["GET"], name=name)

    return [
        build("/admin/backups", "backups", list_points),
        build("/admin/backups/{number:int}", "backup", get_point),
        build("/admin/backups/files/{sha256}", "backup-file", get_file),
    ]
