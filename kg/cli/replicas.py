"""`kg replica`: a server that follows another one by its backups, and only reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kg.cli import output
from kg.cli.backups import check_period
from kg.cli.output import AsJson, DataDir
from kg.settings import settings_for


@output.reported
def replica(
    of: Annotated[
        str | None,
        typer.Option(
            "--of", metavar="URL|FOLDER", help="The primary: a server with --backup-to, or its folder of backups."
        ),
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", metavar="TIME", help="Time between two questions for a new point: 30s, 5m.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to bind.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port. 0: any free port.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Bind any address without accounts: everyone reads.")
    ] = False,
    promote: Annotated[
        bool, typer.Option("--promote", help="Make a replica that is not served a data directory that takes writes.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Serve a copy of another server, which follows it by its backups. Writes are refused with its address.

    The data directory has to be empty, or that of a replica. A URL needs QUADCITE_REPLICA_TOKEN.
    """
    if promote:
        _promote(data_dir, as_json=as_json)
        return
    from kg.server.app import serve

    given: dict[str, str] = {name: value for name, value in (("replica_of", of), ("replica_every", every)) if value}
    check_period(every, "--every")
    chosen = settings_for(data_dir).model_copy(update=given)
    if chosen.replica_of is None:
        raise typer.BadParameter("Name the primary, or set QUADCITE_REPLICA_OF.", param_hint="--of")
    if "://" not in chosen.replica_of:
        chosen = chosen.model_copy(update={"replica_of": str(Path(chosen.replica_of).absolute())})
    serve(
        chosen.data_dir,
        chosen,
        host=host,
        port=port,
        insecure=insecure,
        on_ready=lambda address: output.say(
            f"kg: Serving a replica of {chosen.replica_of} at {address}. Press Ctrl-C to stop."
        ),
    )


def _promote(data_dir: Path | None, *, as_json: bool) -> None:
    from kg.integrity.replication import promote

    done = promote(settings_for(data_dir).data_dir)
    if as_json:
        output.put_json(done)
    else:
        output.put(
            f"{done['data_dir']} takes writes now, from generation {done['generation']} of {done['primary']} on. "
            "Serve it by `kg serve`. If the former primary runs, stop it."
        )
