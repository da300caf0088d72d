"""`kg review`, `kg align` and `kg extract`: claims found in texts are reviewed, proposed, and read by a model."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from kg.cli import output, summaries
from kg.cli.connection import connect
from kg.cli.output import AsJson, DataDir
from kg.text import to_single_line


@output.reported
def review(
    claim: Annotated[
        str | None,
        typer.Argument(metavar="CLAIM", help="IRI of the claim, from this list or from the evidence of an answer."),
    ] = None,
    verdict: Annotated[
        Literal["accept", "reject"] | None, typer.Argument(metavar="accept|reject", help="The verdict.")
    ] = None,
    kind: Annotated[
        Literal["use", "standard", "definition", "district", "citation", "alignment"] | None,
        typer.Option("--kind", help="List only claims of this kind."),
    ] = None,
    municipality: Annotated[
        str | None, typer.Option("--municipality", metavar="NAME", help="List only claims about this code.")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="The state of the municipality.")
    ] = None,
    status: Annotated[
        Literal["pending", "accepted", "rejected"], typer.Option("--status", help="Which claims to list.")
    ] = "pending",
    least: Annotated[
        float, typer.Option("--min", metavar="C", min=0, max=1, help="Least confidence of the claims to list.")
    ] = 0.0,
    most: Annotated[
        float, typer.Option("--max", metavar="C", min=0, max=1, help="Most confidence of the claims to list.")
    ] = 1.0,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=200, help="Maximum claims to list.")] = 20,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Claims to skip.")] = 0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Accept or reject a claim found in a text. Without a claim, list the claims, the least sure first.

    Claims are uses, standards, definitions and districts of codes, citations, and alignments. Accepted citations and
    alignments become edges; accepted rules count as reviewed. A rejected claim is withdrawn, also at later loads.
    A rejection is final. An accepted claim can still be rejected.
    """
    if (claim is None) != (verdict is None):
        raise typer.BadParameter("Give a claim and a verdict, or neither to list the claims that wait for a review.")
    if claim is None:
        chosen = {"kind": kind, "municipality": municipality, "state": state, "status": status}
        page = {"min_confidence": least, "max_confidence": most, "limit": limit, "offset": offset}
        with connect(data_dir) as graph, output.progress("listing") as advance:
            listed = graph.call("list_claims", {**chosen, **page, "detail": "full", "max_tokens": 50_000}, advance)
        if as_json:
            output.put_json(listed)
            return
        output.columns(
            ("confidence", "kind", "statement", "words", "claim"),
            (
                [to_single_line(str(each.get(part, ""))) for part in ("confidence", "kind", "statement", "words", "id")]
                for each in listed["claims"]
            ),
        )
        output.say(f"kg: {listed['total']:,} claims are {status}.")
        return
    arguments = {"claim": claim, "verdict": verdict, "by": output.user_name()}
    with connect(data_dir) as graph, output.progress("reviewing") as advance:
        done = graph.call("review", arguments, advance)
    if as_json:
        output.put_json(done)
        return
    if "subject" in done:
        edge = " ".join(f"<{done[part]}>" for part in ("subject", "predicate", "object"))
        output.put(f"{edge} {'is an edge' if done['asserted'] else 'is not an edge'}")
    else:
        output.put(f"{done['statement']}: {'is reported as law' if done['asserted'] else 'is not reported as law'}")
    for note in done.get("notes", ()):
        output.say(f"kg: {output.name_options(note)}")


@output.reported
def align(
    least: Annotated[
        float | None,
        typer.Option(
            "--least", metavar="X", min=0, max=1, help="Least similarity. Default: as measured for the model."
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Propose alignments of land uses, topics and definitions with concepts that have a similar name.

    Proposals never become edges without a review: see kg review. Needs an embedding model.
    """
    with connect(data_dir) as graph, output.progress("comparing names") as advance:
        document = graph.call("align", {"least": least}, advance)
    if as_json:
        output.put_json(document)
        return
    output.show(document)
    output.say("kg: Review the proposals with kg review.")


@output.reported
def extract(
    municipality: Annotated[str, typer.Argument(metavar="MUNICIPALITY", help="Name or key of the municipality.")],
    state: Annotated[str, typer.Argument(metavar="STATE", help="State of the municipality: two letters or the name.")],
    mode: Annotated[
        Literal["chat", "rules"],
        typer.Option(
            "--mode",
            metavar="chat|rules",
            help="chat: ask the model at QUADCITE_CHAT_URL (default). rules: remove the readings of models.",
        ),
    ] = "chat",
    again: Annotated[bool, typer.Option("--again", help="Ask about sections that this model has read, too.")] = False,
    questions: Annotated[
        int, typer.Option("--questions", metavar="N", min=1, max=100_000, help="Maximum questions to the model.")
    ] = 500,
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="N", min=0.01, max=10_000, help="Maximum time, in minutes.")
    ] = 60,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model which uses, standards and definitions the sections of a code state.

    Only claims whose quotations are in the text are kept. They are unconfirmed until a review, or until another reader
    agrees.
    """
    arguments = {
        "municipality": municipality, "state": state, "mode": mode, "again": again, "questions": questions,
        "minutes": minutes,
    }  # fmt: skip
    with connect(data_dir) as graph, output.progress("reading") as advance:
        document = graph.call("extract", arguments, advance)
    if as_json:
        output.put_json(document)
    else:
        output.show(document | {"failed": len(document["failed"])})
        for each in document["failed"][: summaries.SHOWN]:
            output.say(f"Section {each['section_id']} was not read: {each['reason']}")
        if (more := len(document["failed"]) - summaries.SHOWN) > 0:
            output.say(f"And {output.counted(more, 'section')} more. --json lists all.")
        if document["waiting"]:
            output.say("kg: Run the same command again to continue with the waiting sections.")
        if document["claimed"]:
            output.say("kg: The claims are listed as unsure. Review them with kg review.")
    if document["failed"] or document["waiting"]:
        raise typer.Exit(output.SOME_REJECTED)
