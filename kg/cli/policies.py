"""`kg policy`: check, test and explain the policies of a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kg.cli import output
from kg.cli.output import AsJson
from kg.errors import InvalidInputError
from kg.settings import settings
from kg.text import quoted

app = typer.Typer(help="Check, test and explain policies, which decide who may do what.", no_args_is_help=True)

Folder = Annotated[
    Path | None,
    typer.Option("--policies", metavar="DIR", help="Folder of policies. Default: QUADCITE_POLICIES, else none."),
]


def _get_folder(given: Path | None) -> Path | None:
    return settings().policies if given is None else given


@app.command("check", epilog=output.examples("kg policy check --policies policies"))
@output.reported
def check(folder: Folder = None, as_json: AsJson = False) -> None:
    """Validate all policies against the schema. Names the file and the problem of each invalid one."""
    from kg.tools.decisions import build_policies

    policies = build_policies(_get_folder(folder)).current
    if as_json:
        output.put_json({"valid": True, "version": policies.version, "policies": list(policies.ids.values())})
        return
    output.put(
        f"{len(policies.ids)} policies are valid, version {policies.version}: {', '.join(policies.ids.values())}."
    )


@app.command("schema", epilog=output.examples("kg policy schema > policies/quadcite.cedarschema"))
@output.reported
def schema() -> None:
    """Print the schema: the entities, and each action with its arguments. For editors of Cedar."""
    from kg.tools.decisions import build_policies

    output.put(build_policies(None).schema_text)


@app.command("test", epilog=output.examples("kg policy test cases.toml --policies policies"))
@output.reported
def decide_cases(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Cases: principal, action, arguments and decision, TOML.")
    ],
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Decide the cases in a file, and report those that are decided otherwise than expected."""
    from kg.tools.decisions import build_policies
    from kg.tools.policy_cases import load_cases, run_cases

    outcomes = run_cases(build_policies(_get_folder(folder)), load_cases(file))
    failed = [each for each in outcomes if each.problem is not None]
    if as_json:
        shown = [
            {"number": number, **each.decision.record(), "problem": each.problem}
            for number, each in enumerate(outcomes, 1)
        ]
        output.put_json({"cases": shown, "failed": len(failed)})
    else:
        for number, each in enumerate(outcomes, 1):
            if each.problem is not None:
                output.put(f"Case {number}, {each.case.principal} {each.case.action}: {each.problem}.")
        output.put(f"{len(outcomes) - len(failed)} of {len(outcomes)} cases are decided as expected.")
    if failed:
        raise typer.Exit(output.FAILURE)


@app.command(
    "explain",
    epilog=output.examples(
        "kg policy explain anna search query=solar limit=100 --group press", "kg policy explain anna sparql.query"
    ),
)
@output.reported
def explain(
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="The name of the sender.")],
    action: Annotated[str, typer.Argument(metavar="ACTION", help="A tool, or another action of `kg policy schema`.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Arguments of the call. Values are JSON or text.")
    ] = None,
    folder: Folder = None,
    scopes: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="SCOPE", help="A scope of the sender. Default: those without accounts."),
    ] = None,
    groups: Annotated[list[str] | None, typer.Option("--group", metavar="GROUP", help="A group of the sender.")] = None,
    claims: Annotated[
        list[str] | None, typer.Option("--claim", metavar="NAME=VALUE", help="A claim of the sender's token.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide one request. Shows the policies that decide it, errors, and the arguments as policies see them."""
    from kg.tools.decisions import build_policies
    from kg.tools.policy_cases import Principal
    from kg.tools.policy_cases import explain as decide

    sender = Principal(groups=frozenset(groups or ()), claims=_read_pairs(claims))
    if scopes:
        sender = sender.model_copy(update={"scopes": frozenset(scopes)})
    found = decide(build_policies(_get_folder(folder)), sender.to_actor(principal), action, _read_pairs(arguments))
    document = {**found.decision.record(), "arguments": dict(found.arguments), "denial": found.denial}
    if as_json:
        output.put_json(document)
    else:
        output.show(document)


def _read_pairs(given: list[str] | None) -> dict[str, Any]:
    """Read NAME=VALUE pairs. A value that is not JSON is a text."""
    found: dict[str, Any] = {}
    for pair in given or ():
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InvalidInputError(f"Invalid argument {quoted(pair)}. Valid: NAME=VALUE.")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found
