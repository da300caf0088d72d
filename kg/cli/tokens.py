"""``kg token``: make, list and revoke the tokens of clients."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kg.cli import output
from kg.cli.output import AsJson, DataDir
from kg.settings import settings_for

if TYPE_CHECKING:
    from kg.access.tokens import Token

app = typer.Typer(
    help="Make, list and revoke the tokens of clients. Once there is one, servers refuse requests without one.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the client: recorded with all that it writes.")]


@app.command("new", epilog=output.examples("kg token new NAME --scopes read,search,sparql --expires 90d"))
@output.reported
def new(
    name: Name,
    scopes: Annotated[
        str, typer.Option("--scopes", metavar="LIST", help="read, search, sparql, write, curate, admin; with commas.")
    ] = "read,search,sparql",
    groups: Annotated[
        str, typer.Option("--groups", metavar="LIST", help="Groups of the client, for policies; with commas.")
    ] = "",
    expires: Annotated[
        str, typer.Option("--expires", metavar="AGE", help="When the token expires: 12h, 90d, 1y, or never.")
    ] = "90d",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print its secret, once: only a hash is stored. A running server accepts it at once."""
    from kg.access.audit import recording
    from kg.access.tokens import Tokens, parse_expiry

    until = parse_expiry(expires, datetime.now(UTC))
    settings, given = settings_for(data_dir), {"name": name, "scopes": scopes, "groups": groups, "expires": expires}
    with recording(settings, "kg token new", output.operator(), given):
        secret = Tokens(settings.directory).create(name, _split(scopes), _split(groups), until)
    if as_json:
        output.put_json({"name": name, "token": secret, "expires": until and until.isoformat(timespec="seconds")})
        return
    output.put(secret)
    output.say("kg: This is the only time that the token is shown. Send it as `Authorization: Bearer TOKEN`.")


@app.command("list")
@output.reported
def list_all(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the tokens, also revoked and expired ones, without their secrets."""
    from kg.access.tokens import Tokens

    tokens = Tokens(settings_for(data_dir).directory).list()
    if as_json:
        output.put_json([_describe(token) for token in tokens])
        return
    for token in tokens:
        shown = _describe(token)
        groups = f"  groups {','.join(token.groups)}" if token.groups else ""
        output.put(
            f"{token.name}  {token.state}  {','.join(token.scopes)}{groups}  made {shown['created']}  "
            f"expires {shown['expires'] or 'never'}  last used {shown['used'] or 'never'}"
        )
    if not tokens:
        output.say("kg: No token was made. `kg token new NAME` makes one.")


@app.command("revoke")
@output.reported
def revoke(name: Name, data_dir: DataDir = None) -> None:
    """Revoke the token of a client. A running server refuses it from the next request on."""
    from kg.access.audit import recording
    from kg.access.tokens import Tokens

    settings = settings_for(data_dir)
    with recording(settings, "kg token revoke", output.operator(), {"name": name}):
        Tokens(settings.directory).revoke(name)
    output.say(f"kg: Revoked the token of {name}.")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _describe(token: Token) -> dict[str, object]:
    times = {name: getattr(token, name) for name in ("created", "expires", "used", "revoked")}
    return {
        "name": token.name,
        "state": token.state,
        "scopes": list(token.scopes),
        "groups": list(token.groups),
        **{name: time and time.isoformat(timespec="seconds") for name, time in times.items()},
    }
