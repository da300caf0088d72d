"""`kg clients`: configurations of MCP clients and skill files for coding agents, for this installation."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kg.access.tokens import Tokens
from kg.cli import output
from kg.cli.output import AsJson, DataDir
from kg.errors import InvalidInputError
from kg.remote.http import is_loopback
from kg.settings import read_auth_variables, settings_for
from kg.store.lock import find_address
from kg.text import list_or, quoted
from kg.tools.mounts import NAMES, find_mount

if TYPE_CHECKING:
    from kg.clients.configurations import Installation

SKILLS: Final = "skills"
_ADDRESS: Final = re.compile(r"https?://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_EXAMPLE: Final = "https://kg.example.org"


def _complete(start: str) -> list[str]:
    from kg.clients.configurations import CLIENTS

    return [name for name in (*CLIENTS, SKILLS) if name.startswith(start)]


@output.reported
def clients(
    name: Annotated[
        str | None,
        typer.Argument(autocompletion=_complete, help="The client, or skills. Without it, the clients are listed."),
    ] = None,
    mount: Annotated[
        str, typer.Option("--mount", metavar="NAME", help=f"Tools of the client: {list_or([*NAMES])}.")
    ] = "core",
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Address of the server. Default: that of this installation."),
    ] = None,
    token: Annotated[
        bool | None,
        typer.Option(
            "--token/--no-token",
            help="Whether clients send a token. Default: if the server has tokens or is elsewhere, and has no OAuth.",
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="With skills: write all of them into this folder.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the configuration of an MCP client for this installation, or list the clients.

    `kg clients skills` prints a skill file (SKILL.md) for coding agents: that of --mount, or with --to all of them.
    """
    from kg.clients.configurations import CLIENTS, find_client

    if name is None:
        rows = [(client.name, client.title) for client in CLIENTS.values()]
        rows.append((SKILLS, "Skill files for coding agents"))
        output.columns(("client", "title"), iter(rows))
        return
    if to is not None and name != SKILLS:
        raise InvalidInputError("--to is an option of `kg clients skills`.")
    find_mount(mount)
    here = find_installation(data_dir, mount, url, token)
    if name == SKILLS:
        _show_skills(here, to, as_json=as_json)
        return
    client = find_client(name)
    text = client.build(here)
    if as_json:
        output.put_json({"client": name, "place": client.place, "form": client.form, "configuration": text})
        return
    output.say(f"kg: {client.place}")
    output.put(text)
    if "TOKEN" in text:
        output.say("kg: TOKEN and QUADCITE_TOKEN are a token of the server: `kg token new NAME` makes one.")


def find_installation(data_dir: Path | None, mount: str, url: str | None, token: bool | None) -> Installation:
    """Find the address that clients use: `url`, the public one, the running server's, or that of the settings."""
    from kg.clients.configurations import Installation

    settings = settings_for(data_dir)
    own = str(settings.public_url or find_address(settings.data_dir) or f"http://127.0.0.1:{settings.port}")
    address = (own if url is None else url).rstrip("/")
    if (found := _ADDRESS.fullmatch(address)) is None:
        raise InvalidInputError(f"Invalid address {quoted(address)}. Valid are scheme, host and port: {_EXAMPLE}.")
    oauth = bool(read_auth_variables())
    if token is None:
        has_accounts = Tokens(settings.directory).exist() or not is_loopback(found["host"].strip("[]"))
        token = has_accounts and not oauth
    program = Path(sys.executable).with_name("kg")
    command = [str(program), "serve", "--transport", "stdio", "--data-dir", str(settings.data_dir.absolute())]
    if find_mount(mount) != "/mcp":
        command += ["--mount", mount]
    return Installation(address, mount, token, tuple(command), oauth, settings.token_header)


def _show_skills(here: Installation, to: Path | None, *, as_json: bool) -> None:
    from kg.clients.skills import SKILLS as MOUNTS_WITH_SKILLS
    from kg.clients.skills import build_skill, name_skill

    if to is None:
        if here.mount not in MOUNTS_WITH_SKILLS:
            names = list_or(MOUNTS_WITH_SKILLS)
            raise InvalidInputError(f"Give --mount {names} to print one skill, or --to FOLDER to write all of them.")
        skill = build_skill(here.mount, here)
        if as_json:
            output.put_json({"skill": name_skill(here.mount), "text": skill})
        else:
            output.put(skill.rstrip("\n"))
        return
    written = []
    for mount in MOUNTS_WITH_SKILLS:
        file = to / name_skill(mount) / "SKILL.md"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(build_skill(mount, here), encoding="utf-8")
        except OSError as error:
            raise InvalidInputError(f"Cannot write {file}: {error.strerror}.") from None
        written.append(str(file))
    if as_json:
        output.put_json({"files": written})
    else:
        for path in written:
            output.put(path)
