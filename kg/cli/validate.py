"""`kg validate`: validation of RDF files, of source data, of a data directory, or of the files that ship with kg."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg import interruption
from kg.cli import output as console
from kg.cli.connection import connect
from kg.settings import settings_for

if TYPE_CHECKING:
    from pyoxigraph import NamedNode, Store

    from kg.shacl.rdf_files import Document
    from kg.shacl.report import Location, Violation
    from kg.shacl.shapes import Shapes

Form = Literal["text", "json", "ttl", "sarif"]
InputFormat = Literal["ttl", "trig", "nt", "nq", "n3", "jsonld", "rdf"]
Suite = Literal["record", "dataset"]
Level = Literal["violation", "warning", "info"]

FAILING: Final[Mapping[Level, frozenset[str] | None]] = {
    "violation": frozenset({"Violation"}),
    "warning": frozenset({"Violation", "Warning"}),
    "info": None,
}
"""The severities that make the command fail, by the least of them; None for all, including custom ones."""


_OWN_SHAPES: Final = " These are Quadcite's own shapes. Use --shapes for others."


@dataclass(frozen=True, slots=True)
class Check:
    """A validation: its results as they are found, and the other parts of its report."""

    results: Iterable[Violation]
    checked: str
    by_pyshacl: Mapping[str, str] = field(default_factory=dict)
    locate: Callable[[Violation], Location | None] | None = None
    unchecked: Callable[[], str] = lambda: ""
    """Why nothing was checked, or an empty text; called if there are no results."""


@console.report_errors(console.USAGE)
def validate(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="RDF files, folders, glob patterns, - for standard input, or data of a source. Default: --self.",
        ),
    ] = None,
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shapes",
            metavar="FILE",
            help="Shapes in any RDF format; repeatable. Default: the shapes in FILE, else Quadcite's own.",
        ),
    ] = None,
    suite: Annotated[
        Suite | None,
        typer.Option(
            "--suite",
            metavar="record|dataset",
            help="Quadcite's shapes: for single records, closed (default), or for a whole dataset, open.",
        ),
    ] = None,
    ontology: Annotated[
        list[str] | None,
        typer.Option(
            "--ontology",
            metavar="FILE",
            help="RDF with the classes that the data uses; not validated itself; repeatable.",
        ),
    ] = None,
    graph: Annotated[str | None, typer.Option("--graph", metavar="IRI", help="Validate only this named graph.")] = None,
    changed_since: Annotated[
        int | None,
        typer.Option(
            "--changed-since", metavar="GENERATION", help="Validate only nodes that later commits can have affected."
        ),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Validate each file by itself instead of all files as one data graph.")
    ] = False,
    input_format: Annotated[
        InputFormat,
        typer.Option("--input-format", metavar="ttl|trig|nt|nq|n3|jsonld|rdf", help="Format of standard input."),
    ] = "ttl",
    lenient: Annotated[bool, typer.Option("--lenient", help="Accept invalid IRIs and language tags in FILE.")] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="SOURCE",
            help="Parse FILE as `kg load SOURCE` does: climate (default if FILE is not RDF), hansard, zoning, ...",
        ),
    ] = None,
    form: Annotated[Form, typer.Option("--format", metavar="text|json|ttl|sarif", help="Form of the report.")] = "text",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the report to this file, completely or not at all."),
    ] = None,
    fail_on: Annotated[
        Level,
        typer.Option(
            "--fail-on", metavar="violation|warning|info", help="The least severe result that causes exit code 1."
        ),
    ] = "violation",
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="DIR", help="Validate this data directory. A server may be running on it."),
    ] = None,
    bundled: Annotated[
        bool, typer.Option("--self", help="Validate the ontology, shapes, fixtures and sample data that ship with kg.")
    ] = False,
) -> None:
    """Check data against shapes (SHACL). Exit code 0: conforms, 1: results at or above --fail-on, 2: not validated."""
    of_files = {"--ontology": ontology or None, "--each": each or None, "--lenient": lenient or None}
    of_store = {"--data-dir": data_dir, "--changed-since": changed_since}
    of_suite = {"--shapes": shapes or None, "--suite": suite, "--graph": graph}
    if shapes and suite:
        raise typer.BadParameter("Use either --shapes (your own shapes) or --suite (Quadcite's shapes), not both.")
    if bundled:
        _exclude({"FILE": files or None, "--source": source, **of_suite, **of_files, **of_store}, "with --self")
        opened = _open_bundle()
    elif files:
        _exclude(of_store, "with FILE")
        if source is not None:
            _exclude({**of_suite, **of_files}, "with --source")
        opened = _open_files(files, shapes or [], suite, ontology or [], graph, each, input_format, lenient, source)
    elif suite or graph is not None or any(value is not None for value in of_store.values()):
        _exclude(of_files, "with a data directory")
        opened = _open_store(data_dir, shapes or [], suite, graph, changed_since)
    elif shapes or ontology or each or lenient or source is not None:
        how = "--source needs FILE" if source is not None else "Name files"
        raise typer.BadParameter(f"Nothing to validate. {how}, or use --data-dir DIR for stored data.")
    else:
        opened = _open_bundle()
    with opened as check:
        with _open_destination(output) as stream:
            counts = _write(check, form, stream)
        reason = "" if counts else check.unchecked()
    if output is not None:
        from kg.shacl.report_summary import format_verdict

        console.say(f"kg: {format_verdict(check.checked, counts)}. The report is in {output}.")
    if reason:
        console.say(f"kg: Nothing was checked: {reason}")
        raise typer.Exit(console.USAGE)
    failing = FAILING[fail_on]
    if any(number and (failing is None or severity in failing) for severity, number in counts.items()):
        raise typer.Exit(console.FAILURE)


def _exclude(options: Mapping[str, object], where: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise typer.BadParameter(f"{' and '.join(given)} cannot be used {where}.")


@contextmanager
def _open_bundle() -> Iterator[Check]:
    """Validate the ontology, shapes, fixtures and sample data that ship with kg."""
    from kg import bundle
    from kg.shacl.self_check import check_bundle
    from loaders.load_options import EARLIER_NAMES, SOURCES

    checked, faults = check_bundle()
    check = Check(faults, checked)
    for source in (*SOURCES, *EARLIER_NAMES):
        if (folder := bundle.folder("fixtures") / source).is_dir():  # sources with two names have one folder
            check = _join_checks(check, _try_load([str(folder)], source))
    yield check


def _join_checks(one: Check, other: Check) -> Check:
    def results() -> Iterator[Violation]:
        yield from one.results
        yield from other.results

    return replace(
        one,
        results=results(),
        checked=f"{one.checked}; {other.checked}",
        unchecked=lambda: one.unchecked() or other.unchecked(),
    )


@contextmanager
def _open_files(
    names: Sequence[str],
    shapes: Sequence[str],
    suite: Suite | None,
    ontology: Sequence[str],
    graph: str | None,
    each: bool,
    input_format: InputFormat,
    lenient: bool,
    source: str | None,
) -> Iterator[Check]:
    """Validate RDF files, and other files (with `source` all of them) by a trial load."""
    from kg.shacl.documents import DataDocuments, has_shapes
    from kg.shacl.line_numbers import LineLocator
    from kg.shacl.rdf_files import STDIN, expand_paths, open_document
    from kg.shacl.shapes import has_targets

    def documents(found: Sequence[str], *, lenient: bool = False) -> list[Document]:
        return [
            open_document(name, stdin=sys.stdin.buffer, stdin_format=input_format, lenient=lenient) for name in found
        ]

    if [*names, *shapes, *ontology].count(STDIN) > 1:
        raise typer.BadParameter("Standard input (-) can be used only once.")
    own = _parse_shapes(documents(expand_paths(shapes))) if shapes else None
    rdf, tables = (expand_paths(names, leave_out=shapes), []) if own else _separate_files(names, source)
    trial = _try_load(tables, source or "climate") if tables else None
    if not rdf:
        if trial is not None:
            yield trial
        return
    named = documents(rdf, lenient=lenient)
    if own is None and suite is None and (within := [one for one in named if has_shapes(one)]):
        own = _parse_shapes(within)
    ontology_quads = [quad for one in documents(expand_paths(ontology)) for quad in one.parse_all()]
    places: dict[Violation, Location] = {}
    lines = LineLocator()
    used = own or _load_suite(suite)
    only = _parse_graph_name(graph) if graph is not None else None
    parts = [[one] for one in named] if each else [named]
    graphs: Iterable[DataDocuments] = (DataDocuments(part, places, ontology_quads, only) for part in parts)
    checked = console.counted(len(named), "file") + (", each by itself" if each and len(named) > 1 else "")
    looked = False

    def results(graphs: Iterable[DataDocuments]) -> Iterator[Violation]:
        nonlocal looked
        for part in graphs:
            yield from part.results(used)
            looked = looked or has_targets(used, part.data)

    if len(parts) == 1:
        [whole] = graphs
        checked += f", {console.counted(whole.triples, 'triple')}"
        graphs = [whole]
    check = Check(
        results(graphs),
        checked,
        used.describe_uncompiled(),
        lambda result: places.get(result) or lines.locate(result),
        lambda: "" if looked else _explain_unchecked(used, "" if own else _OWN_SHAPES),
    )
    yield check if trial is None else _join_checks(check, trial)


def _explain_unchecked(shapes: Shapes, more: str = "") -> str:
    """Explain why no node was checked by `shapes`."""
    if not shapes.roots:
        return "no shape has a target. Add sh:targetClass or another target to one."
    if all(shapes.shapes[node].deactivated for node in shapes.roots):
        return "all shapes with targets are deactivated."
    return f"the data contains no targets of the shapes.{more}"


def _parse_shapes(documents: Sequence[Document]) -> Shapes:
    from kg.shacl.documents import ShapesDocuments

    graph = ShapesDocuments.parse(documents)
    for iri, name in graph.imports.items():
        console.say(f"kg: {name} imports {iri}, which is not fetched. Pass the imported file with --shapes.")
    shapes = graph.shapes()
    for note in shapes.notes:
        console.say(f"kg: {note}")
    return shapes


def _load_suite(suite: Suite | None) -> Shapes:
    from kg.shacl.shapes import Shapes

    return Shapes.load_dataset() if suite == "dataset" else Shapes.load()


def _parse_graph_name(text: str) -> NamedNode:
    from kg.cli.results import parse_node

    return parse_node(text)


def _separate_files(places: Iterable[str], source: str | None = None) -> tuple[list[str], list[str]]:
    """Separate RDF files from files for a loader; a folder may contain both. With `source`, all are for its loader."""
    if source is not None:
        return [], list(places)
    from kg.shacl.rdf_files import FORMATS, IN_FOLDERS, STDIN, expand_paths
    from loaders.file_formats import TABLES

    rdf: list[str] = []
    tables: list[str] = []
    for place in places:
        path = Path(place)
        if not path.is_dir():
            is_table = place != STDIN and path.suffix.lower() in set(TABLES) - set(FORMATS)
            (tables if is_table else rdf).append(place)
            continue
        endings = {file.suffix.lower() for file in path.rglob("*") if file.is_file()}
        if not endings.isdisjoint(IN_FOLDERS):
            rdf.append(place)
        if not endings.isdisjoint(TABLES):
            tables.append(place)
        elif endings.isdisjoint(IN_FOLDERS):
            known = ", ".join((*IN_FOLDERS, *TABLES))
            raise typer.BadParameter(f"{place}: no supported file in this folder. Supported extensions: {known}.")
    return expand_paths(rdf), tables


def _try_load(places: Sequence[str], source: str) -> Check:
    """Load data of a source into a temporary store and report the rejected records."""
    from kg.knowledge_graph import KnowledgeGraph
    from kg.shacl.report import Violation
    from loaders import sources

    with (
        interruption.temporary_folder() as folder,
        KnowledgeGraph.open(folder, settings_for(folder)) as kg,
    ):
        report = sources.load(kg, source, list(places), index=False)
    found = [Violation(None, f"{each.record}: {each.reason}", source=each.source) for each in report.rejections]
    number = report.loaded + report.rejected
    reason = "" if number else f"no {source} record was found."
    return Check(found, console.counted(number, f"{source} record"), unchecked=lambda: reason)


@contextmanager
def _open_store(
    data_dir: Path | None, shapes: Sequence[str], suite: Suite | None, graph: str | None, since: int | None
) -> Iterator[Check]:
    """Validate a checkpoint of a data directory in this process, even while a server uses the directory."""
    from pyoxigraph import Store

    from kg.provenance.source_paths import SourcePaths
    from kg.shacl.rdf_files import expand_paths, open_document
    from kg.tools.shacl.source_locations import Locator

    settings = settings_for(data_dir)
    own = _parse_shapes([open_document(name) for name in expand_paths(shapes)]) if shapes else None
    with connect(data_dir) as reached, reached.snapshot() as folder:
        store = Store.read_only(str(folder))
        name = _find_graph(store, graph) if graph is not None else None
        if own is None and suite != "dataset":
            check = _check_records(store, name, since)
        else:
            check = _check_stored(store, own or _load_suite(suite), name, since)
        locate = Locator(store, SourcePaths(settings.data_dir).get).locate
        yield replace(check, results=_wrap_store_errors(check.results, folder), locate=locate)


def _wrap_store_errors(results: Iterable[Violation], folder: Path) -> Iterator[Violation]:
    from kg.errors import StoreError

    try:
        yield from results
    except OSError as error:
        raise StoreError(f"Cannot read the snapshot in {folder}: {error}") from error


def _find_graph(store: Store, graph: str) -> NamedNode:
    from pyoxigraph import NamedNode

    from kg.shacl.documents import missing_graph_error

    name = _parse_graph_name(graph)
    if not store.contains_named_graph(name):
        raise missing_graph_error(name, {each for each in store.named_graphs() if isinstance(each, NamedNode)})
    return name


def _check_records(store: Store, graph: NamedNode | None, since: int | None) -> Check:
    """Check each graph of records by itself, as the gate of a load does."""
    from kg.shacl.gate import RecordGate, check_record_graphs, find_record_graphs
    from kg.shacl.incremental import load_touched_graphs

    gate = RecordGate()
    if graph is None:
        names = find_record_graphs(store, since)
        checked = console.counted(len(names), "graph") + " of sources"
    else:
        names = [graph] if since is None or graph in load_touched_graphs(store, since) else []
        checked = str(graph)
    if since is not None:
        checked = f"{checked}, {'' if names else 'not '}changed since generation {since}"
    is_empty = since is None and not names
    return Check(
        check_record_graphs(store, names, gate),
        checked,
        gate.shapes.describe_uncompiled(),
        unchecked=lambda: "the data directory has no records of sources." if is_empty else "",
    )


def _check_stored(store: Store, shapes: Shapes, graph: NamedNode | None, since: int | None) -> Check:
    """Check one graph, or all graphs as one."""
    from kg.shacl.data_graph import DataGraph
    from kg.shacl.incremental import find_affected, load_change
    from kg.shacl.shapes import has_targets

    data = DataGraph.from_store(store, graph)
    checked = "all graphs as one" if graph is None else str(graph)
    whole = Check(
        shapes.results(data),
        checked,
        shapes.describe_uncompiled(),
        unchecked=lambda: "" if has_targets(shapes, data) else _explain_unchecked(shapes),
    )
    if since is None:
        return whole
    concerned = find_affected(shapes, data, load_change(store, since))
    if concerned.nodes is None:
        console.say(f"kg: Everything is validated: {concerned.why}.")
        return whole
    nodes = console.counted(len(concerned.nodes), "node")
    checked = f"{checked}, {nodes} affected by changes since generation {since}"
    return replace(whole, results=shapes.results(data, focus=concerned.nodes), checked=checked)


@contextmanager
def _open_destination(output: Path | None) -> Iterator[IO[bytes]]:
    """Open the destination of the report: standard output, or a file that appears once complete."""
    from kg.errors import InvalidInputError

    special = output is None or (output.exists() and not output.is_file())  # such as a device, which cannot be replaced
    partial = None if output is None or special else output.with_name(f".{output.name}.{os.getpid()}.partial")
    try:
        if output is None:
            yield sys.stdout.buffer
            sys.stdout.flush()
            return
        with (partial or output).open("wb") as stream:
            yield stream
        if partial is not None:
            partial.replace(output)
    except BrokenPipeError:  # the reader closed the pipe
        raise
    except OSError as error:
        where = "standard output" if output is None else str(output)
        raise InvalidInputError(f"Cannot write the report to {where}: {error.strerror or error}.") from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _write(check: Check, form: Form, output: IO[bytes]) -> Counter[str]:
    from kg.shacl.report_writers import write_report

    return write_report(
        check.results,
        form,
        output,
        checked=check.checked,
        by_pyshacl=check.by_pyshacl,
        locate=check.locate,
        looked=lambda: not check.unchecked(),
    )
