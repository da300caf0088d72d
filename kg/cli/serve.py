"""`kg serve`: the server, with the options that override its settings."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from kg.cli import backups, output
from kg.cli.output import DataDir
from kg.errors import InvalidInputError
from kg.settings import settings_for
from kg.text import list_or
from kg.tools.mounts import NAMES

if TYPE_CHECKING:
    Mount: TypeAlias = str
else:  # choices, which a shell completes
    Mount = Literal[tuple(NAMES)]


@output.reported
def serve(
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address to bind. Another than loopback needs accounts."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port. 0: any free port.")
    ] = None,
    transport: Annotated[
        Literal["http", "stdio"],
        typer.Option(
            "--transport",
            metavar="http|stdio",
            help="stdio: MCP on standard input and output, through the running server if there is one.",
        ),
    ] = "http",
    mount: Annotated[
        Mount,
        typer.Option(
            "--mount",
            metavar="NAME",
            help=f"Tools for stdio: {list_or([*NAMES])}.",
        ),
    ] = "core",
    refresh: Annotated[
        Path | None,
        typer.Option("--refresh", metavar="FILE", help="TOML file of sources to load again by schedule."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate with its chain, PEM: serve https.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Private key of the certificate, PEM.")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Bind any address without accounts: everyone reads and writes."),
    ] = False,
    backup_to: Annotated[
        Path | None, typer.Option("--backup-to", metavar="FOLDER", help="Folder to which backups are added.")
    ] = None,
    backup_every: Annotated[
        str | None, typer.Option("--backup-every", metavar="TIME", help="Time between two backups: 15m, 6h, 1d.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=0, help="Keep the newest N backups. 0: keep all.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Serve the graph over MCP (/mcp) and SPARQL (/sparql). State for monitoring is at /health."""
    gc.disable()  # collecting during the imports takes a tenth of the start and finds nothing
    from kg.server.app import serve as run

    gc.freeze()
    gc.enable()
    given = {"backup_to": backup_to, "backup_every": backup_every, "backup_keep": keep}
    chosen = backups.with_options(settings_for(data_dir), given)
    if refresh is not None:
        chosen = chosen.model_copy(update={"schedules": refresh})
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInputError("--tls-cert and --tls-key belong together: give both.")
    if tls_cert is not None:
        chosen = chosen.model_copy(update={"tls_cert": tls_cert, "tls_key": tls_key})
    if not chosen.directory.format.is_file():
        output.say(
            f"kg: No knowledge graph in {chosen.data_dir}. Serving an empty one. "
            "Load data with `kg load climate PATH`: the command uses this server."
        )
    run(
        chosen.data_dir,
        chosen,
        host=host,
        port=port,
        insecure=insecure,
        transport=transport,
        mount=mount,
        on_ready=lambda address: output.say(
            f"kg: Serving MCP at {address}/mcp and SPARQL at {address}/sparql. Press Ctrl-C to stop."
        ),
    )
