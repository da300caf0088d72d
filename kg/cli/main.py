"""The command line `kg`: its commands, except the groups that have modules of their own.

Heavy imports are inside the commands, so that `kg --help` starts fast.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from kg import __version__, interruption
from kg.cli import (
    audit,
    backups,
    claims,
    clients,
    derivations,
    docs,
    loads,
    models,
    output,
    policies,
    quarantine,
    replicas,
    serve,
    summaries,
    tokens,
    top,
    upgrades,
    validate,
)
from kg.cli.connection import connect, resolve_for_server
from kg.cli.output import AsJson, DataDir
from kg.errors import IndexUnavailableError
from kg.settings import settings_for
from kg.text import list_first, list_or, to_single_line
from loaders.load_options import EARLIER_NAMES, OPTIONS, SOURCES

if TYPE_CHECKING:
    Source: TypeAlias = str
else:  # choices, which a shell completes
    Source = Literal[(*SOURCES, *EARLIER_NAMES)]

app = typer.Typer(
    name="kg",
    help="One knowledge graph of civic text, where every answer cites the words, file and run behind it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(loads.app, name="loads")
app.add_typer(backups.app, name="backup")
app.add_typer(models.app, name="models")
app.add_typer(policies.app, name="policy")
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(summaries.app, name="summaries")
app.command(
    epilog=output.examples(
        "kg clients claude-code --mount parliament",
        "kg clients vscode --url https://kg.example.org > .vscode/mcp.json",
        "kg clients skills --to .claude/skills",
    )
)(clients.clients)
app.add_typer(tokens.app, name="token")
app.command("docs", epilog=output.examples("kg docs climate"))(docs.docs)
app.command("deploy", epilog=output.examples("kg deploy nginx > quadcite.conf"))(docs.deploy)


class Domain(StrEnum):
    """The domains of texts (`kg.retrieval.results.Domain`)."""

    climate = "climate"
    parliament = "parliament"
    zoning = "zoning"
    files = "files"


class Format(StrEnum):
    """The output formats of `kg query`, by file extension."""

    json = "json"
    csv = "csv"
    tsv = "tsv"
    xml = "xml"
    ttl = "ttl"
    nt = "nt"


def _version(wanted: bool) -> None:
    if wanted:
        output.put(f"kg {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    logging.basicConfig(handlers=[output.Lines()], level=logging.WARNING, format="kg: %(message)s")
    logging.getLogger("loaders").setLevel(logging.INFO)


@app.command(
    epilog=output.examples(
        "kg load climate fixtures/climate --wait",
        'kg load zoning code.html --municipality "Quarry Bend" --state UT',
        "kg load files notes --collection handbook",
    )
)
@output.with_options(OPTIONS)
@output.reported
def load(
    source: Annotated[
        Source,
        typer.Argument(
            metavar="SOURCE",
            help=f"{list_or(SOURCES)}.",
        ),
    ],
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Files, globs or folders. `hub`: the dataset on the model hub. "
            "`sparql:URL@FILE`: the results of a query. `municode:CITY, STATE`: a code.",
        ),
    ],
    data_dir: DataDir = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until every passage has its embedding.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove stored records of this source that are no longer at the location.")
    ] = False,
    replace_newer: Annotated[
        bool,
        typer.Option(
            "--replace-newer", help="Replace stored records that are newer, by revision or date. Default: skip them."
        ),
    ] = False,
    queue: Annotated[
        bool,
        typer.Option("--queue", help="Add the load to the queue of the server, and print its number."),
    ] = False,
    as_json: AsJson = False,
    **options: str | None,
) -> None:
    """Load a source. Records are validated, committed and indexed; unchanged records are skipped."""
    from loaders.pipeline import SHOWN_WARNINGS

    with connect(data_dir, create=True) as graph, output.progress(f"loading {source}") as advance:
        places = paths if graph.local else [resolve_for_server(path) for path in paths]
        asked = {"source": source, "paths": places, "prune": prune, "wait": wait, "replace_newer": replace_newer}
        given = {name: value for name, value in options.items() if value is not None}
        if "mapping" in given and not graph.local:
            given["mapping"] = resolve_for_server(given["mapping"])
        if queue:
            queued = {name: asked[name] for name in ("source", "prune")}
            [load] = graph.call("submit_load", queued | {"locations": places, "options": given})["loads"]
            if as_json:
                output.put_json(load)
            else:
                loads.show(load)
            return
        done = graph.call("load", asked | {"options": given}, advance)
        if not graph.local:  # the log lines of the load went to the log of the server
            for message in [*done["layouts"], *list_first(done["warnings"], SHOWN_WARNINGS, "warnings")]:
                output.say(f"kg: {to_single_line(message)}")
    _show_load(done, as_json, local=graph.local)


def _show_load(done: Mapping[str, Any], as_json: bool, *, local: bool) -> None:
    """Print the report of a load, and exit with the code for its outcome unless all records were loaded."""
    report, failure = done["report"], done["failure"]
    for each in (*report["rejections"], *report["older"]):
        each.update({name: output.write_paths(text) for name, text in each.items()})
    if as_json:
        output.put_json(report)
    else:
        counts = {
            "older": len(report["older"]),
            "unread": sum(report["unread"].values()),
            "ceded": sum(report["ceded"].values()),
            "returned": sum(report["returned"].values()),
            "redacted": sum(sum(kinds.values()) for kinds in report["redacted"].values()),
        }
        shown = {name: counts.get(name, value) for name, value in report.items() if name != "rejections"}
        output.show({name: value for name, value in shown.items() if value or name not in counts})
        for each in report["rejections"]:
            output.say(
                to_single_line(
                    f"rejected {each['record']}: {each['reason'].removeprefix(each['record'] + ': ')}", 4_000
                )
            )
        if report["pending_vectors"] and not failure:
            output.say(
                "kg: Keyword search is ready. Semantic search follows once embeddings are built"
                + (" by kg serve or kg reindex." if local else " by the server.")
            )
    if failure:
        output.say(f"kg: {failure}")
        raise typer.Exit(output.FAILURE)
    if report["rejected"]:
        raise typer.Exit(output.SOME_REJECTED)


@app.command(epilog=output.examples("kg watch notes --collection handbook"))
@output.reported
def watch(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of notes, pages and specifications.")],
    collection: Annotated[
        str | None,
        typer.Option("--collection", metavar="NAME", help="Collection of the files. Default: the name of the folder."),
    ] = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Load the files of a folder, and again when they change, until Ctrl-C. Deleted files are removed.

    A running server does the work. To let it watch by itself: QUADCITE_WATCH_FOLDERS.
    """
    from kg.cli.watching import show_changes

    show_changes(partial(connect, data_dir, create=True), folder, collection, as_json=as_json)


@app.command(
    epilog=output.examples(
        'kg search "solar panels on the roof of every public school" --limit 1',
        'kg search "speed of trains" --domain parliament --language en --json',
    )
)
@output.reported
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The query, in plain words.")],
    iso3: Annotated[
        list[str] | None, typer.Option("--iso3", metavar="CODE", help="Country code, e.g. BRA. Repeatable.")
    ] = None,
    place: Annotated[
        list[str] | None,
        typer.Option("--place", metavar="PLACE", help="Country, state or town: USA, US-UT, Utah. Repeatable."),
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", metavar="TAG", help="Language tag, e.g. en. Repeatable.")
    ] = None,
    corpus_type: Annotated[
        list[str] | None,
        typer.Option("--corpus-type", metavar="TYPE", help="Document type, e.g. Policy. Repeatable."),
    ] = None,
    domain: Annotated[
        list[Domain] | None,
        typer.Option("--domain", metavar="NAME", help="climate, parliament, zoning or files. Repeatable."),
    ] = None,
    must: Annotated[
        list[str] | None,
        typer.Option("--must", metavar="WORDS", help="Words that each result contains, in any form. Repeatable."),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option("--min-score", metavar="X", min=0, max=1, help="Least score. 0 lists irrelevant results too."),
    ] = None,
    neighbours: Annotated[
        int, typer.Option("--neighbours", metavar="N", min=0, max=5, help="Passages before and after each result.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=200, help="Maximum results.")] = 10,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Results to skip.")] = 0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Search passages by keywords and meaning. Best first, each with its id, source file, row and hash.

    They are of climate laws and policies, speeches in parliament, municipal codes, and files.
    """
    from kg.cli import results
    from kg.retrieval.results import MOST_TOKENS, SearchResult
    from kg.search.protocol import IndexStatus

    filters = {
        "iso3": iso3 or [],
        "place": place or [],
        "domain": [each.value for each in domain or ()],
        "language": language or [],
        "corpus_type": corpus_type or [],
    }
    with connect(data_dir) as graph, output.progress("indexing") as advance:
        if graph.local:
            # After a crash, or in a restored backup, the index differs from the store. A server repairs it by itself.
            with suppress(IndexUnavailableError):  # a note of the answer reports it
                graph.call("reindex", {"wait": False}, advance)
        arguments = {"query": text, "filters": filters, "limit": limit, "offset": offset, "detail": "full"}
        arguments |= {"must": must, "min_score": min_score, "neighbours": neighbours, "max_tokens": MOST_TOKENS}
        found = SearchResult.model_validate(graph.call("search", arguments, advance))
        index = IndexStatus(**graph.call("index_status", {}))
        is_empty = not found.results and not graph.call("store_status", {})["graphs"]
    if as_json:
        found.notes = [output.name_options(note) for note in found.notes]
        output.put_json(found)
    else:
        results.show_found(found, index, first=offset + 1)
    if is_empty:
        raise typer.Exit(output.FAILURE)


@app.command(
    epilog=output.examples(
        'kg query "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g"',
        "kg query -f counts.rq --format csv --why 1",
    )
)
@output.reported
def query(
    sparql: Annotated[
        str | None, typer.Argument(metavar="SPARQL", help="The query. -: read it from standard input.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Read the query from a file. -: standard input."),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="json|csv|tsv|xml|ttl|nt",
            help="Output format. Default: a table on a terminal, else tsv (nt for triples).",
        ),
    ] = None,
    trace: Annotated[
        int | None,
        typer.Option(
            "--why", metavar="ROW", min=1, max=10_000, help="Also print the queries that list the counts of this row."
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0,
            help="Stop the query after this time. 0: never. Default: QUADCITE_QUERY_TIMEOUT_S.",
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run a SPARQL query (SELECT, ASK, CONSTRUCT, DESCRIBE). Rows are not limited."""
    from kg.cli import results

    limit_s = settings_for(data_dir).query_timeout_s if timeout is None else timeout or math.inf

    text = _query_text(sparql, file)
    with connect(data_dir) as graph:
        results.write_result(graph, text, form.value if form else None, limit_s)
        if trace is not None:
            results.show_traces(graph, text, trace)


def _query_text(sparql: str | None, file: str | None) -> str:
    if (sparql is None) == (file is None):
        raise typer.BadParameter("Give one query: as the argument, with -f FILE, or - for standard input.")
    if "-" in (sparql, file):
        return sys.stdin.read()
    if file is None:
        return sparql or ""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or error
        raise typer.BadParameter(f"Cannot read {file}: {cause}.", param_hint="-f") from None


@app.command()
@output.reported
def status(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show counts of the data directory and the state of its search index."""
    with connect(data_dir) as graph, output.progress("counting") as advance:
        document = graph.call("store_status", {}, advance)
    output.answer(document, as_json)


app.command(epilog=output.examples("kg validate data.ttl --shapes shapes.ttl", "kg validate"))(validate.validate)


@app.command(
    epilog=output.examples(
        "kg why 'cpr://doc/fictional-solar-tariff-act_ke02#p=3'",
        "kg why --triple cpr://doc/x dcterms:title '\"A title\"'",
    )
)
@output.reported
def why(
    iri: Annotated[
        str | None, typer.Argument(metavar="IRI", help="IRI of a passage, document, graph or any other entity.")
    ] = None,
    triple: Annotated[
        tuple[str, str, str] | None,
        typer.Option("--triple", metavar="S P O", help="One triple, e.g. cpr://doc/x dcterms:title '\"A title\"'."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the provenance of an entity or a triple. Graph, run that wrote it, source file with its hash, row."""
    from kg.cli.results import parse_node, parse_predicate, parse_term

    if (iri is None) == (triple is None):
        raise typer.BadParameter("Give either an IRI or --triple S P O.")
    if triple:
        terms = parse_node(triple[0]), parse_predicate(triple[1]), parse_term(triple[2])
        arguments: dict[str, object] = {"triple": [str(term) for term in terms]}
    else:
        arguments = {"iri": parse_node(iri or "").value}
    with connect(data_dir) as graph, output.progress("querying") as advance:
        found = graph.call("why", arguments, advance)
    if as_json:
        output.put_json({"explanations": found["explanations"]})
    else:
        output.put(found["text"])


app.command(epilog=output.examples('kg review --kind use --municipality "Quarry Bend"', "kg review CLAIM accept"))(
    claims.review
)
app.command()(claims.align)
app.command()(claims.extract)


@app.command()
@output.reported
def reindex(
    data_dir: DataDir = None,
    full: Annotated[bool, typer.Option("--full", help="Rebuild the whole index, not only changed graphs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Update the search index from the store. Then build missing embeddings."""
    with connect(data_dir) as graph, output.progress("indexing") as advance:
        document = graph.call("reindex", {"full": full}, advance)
    output.answer(document, as_json)


app.command("mentions")(derivations.find_mentions)
app.command(epilog=output.examples("kg derive", "kg derive entities --full"))(derivations.derive)
app.command(epilog=output.examples("kg restore /mnt/backups --point 12 --data-dir restored"))(backups.restore)
app.command()(backups.doctor)
app.command()(backups.compact)
app.command(epilog=output.examples("kg top", "kg top --once --json"))(top.top)
app.command(epilog=output.examples("kg audit --since 2h --outcome forbidden", "kg audit verify"))(audit.audit)


app.command(epilog=output.examples("kg serve --port 8080", "kg serve --transport stdio --mount zoning"))(serve.serve)
app.command(
    epilog=output.examples("kg replica --of https://kg.example.org", "kg replica --of /mnt/backups --port 8001")
)(replicas.replica)


app.command(epilog=output.examples("kg upgrade --dry-run", "kg upgrade --backup-to /mnt/backups"))(upgrades.upgrade)


@app.command()
@output.reported
def demo() -> None:
    """Run an end-to-end demo with sample data. Load, serve, ask over MCP and SPARQL, print cited answers, stop."""
    from kg.cli import demo as play

    play.run()


def main() -> None:
    """Run the command line and exit: 0 success, 1 failure, 2 usage error, 3 some records rejected."""
    interruption.install_handlers()
    try:
        app(prog_name="kg")
    except OSError as error:  # commands report their own errors: this one is from writing the help
        if error.filename is None:
            output.exit_unwritable(error)
        output.say(f"kg: {error.filename}: {error.strerror}.")  # a failed write to standard output names no file
        raise SystemExit(1) from error
    finally:
        interruption.disarm()
        output.close_output()


if __name__ == "__main__":
    main()
