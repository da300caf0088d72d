"""Tool that validates with SHACL: violations by shape and constraint, with examples and their sources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final
from typing import Literal as OneOf

from pydantic import Field
from pyoxigraph import Literal, NamedNode
from rapidfuzz import fuzz, process

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import CALLER, CANCELLATION, KnowledgeGraph
from kg.processes.child import Limits, never
from kg.retrieval.evidence import describe, origin_of
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, bounded, iri_of
from kg.retrieval.results import BYTES_PER_TOKEN, Layout, Lean, MaxTokens, Result, size_of
from kg.shacl.process import PLACES, Document, Job, Outcome, Stored, Suite, validate_isolated
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Rows, term_text
from kg.text import name_or_quote, quoted
from kg.tools.entities.dereference import parse_iri, suggestions
from kg.tools.shacl import source_locations
from kg.vocabulary import DCTERMS, PROV_GRAPH, SCHEMA, SOURCED, SUPERCLASS_GRAPH, curie

UNION: Final = "union"
"""Name of the union of all graphs, as an argument."""
TEXT_CHARACTERS: Final = 500_000
MAX_RESULTS: Final = 1_000
FRAME_TOKENS: Final = 120
"""Tokens of an answer without its findings."""

_NEAR: Final = 20_000
_NEARNESS: Final = 70
_PLACED: Final = 500
_SNAPSHOT_S: Final = 5.0
"""Maximum seconds to take the snapshot that is validated, and to read the verdict."""

EXISTS: Final = "ASK { GRAPH $graph { ?s ?p ?o } }"
GRAPHS: Final = "SELECT DISTINCT ?name WHERE { GRAPH ?name {} } LIMIT $limit"
DOCUMENTS: Final = "SELECT DISTINCT ?name WHERE { ?name kg:slug ?slug } LIMIT $limit"
HOMES: Final = """
SELECT DISTINCT ?graph WHERE {
  GRAPH ?graph { $document rdf:type ?class } FILTER(?graph NOT IN ($prov, $inferred))
} LIMIT 20"""
STANDS: Final = """
SELECT DISTINCT ?node ?graph ?property ?value WHERE {
  VALUES ?node { $nodes }
  GRAPH ?graph { ?node ?property ?value }
  FILTER(?property IN (rdf:type, schema:position, dcterms:isPartOf)) FILTER(?graph != $inferred)
}"""

Why = OneOf["results", "tokens"]
SuiteName = OneOf["record", "dataset"]


class Example(Lean):
    """One result and its source."""

    focus: str
    value: str | None = None
    message: NoteText | None = None
    """Set if it differs from the message of the finding."""
    document: str | None = None
    graph: str | None = None
    source: str | None = None
    row: int | None = None


class Finding(Lean):
    """The results of one constraint of one shape."""

    shape: str | None = None
    severity: str
    constraint: str | None = None
    path: str | None = None
    message: NoteText
    count: int
    examples: list[Example] = Field(default_factory=list)


class ValidationResult(Result):
    """The result of a validation."""

    layout: ClassVar[Layout] = Layout(paged=("findings",), reads=True)

    conforms: bool = Field(description="No result of severity Violation")
    checked: str
    counts: dict[str, int] = Field(description="Results by severity")
    complete: bool = Field(description="Every result is shown")
    truncated_by: Why | None = None
    findings: list[Finding]
    by_pyshacl: dict[str, str] | None = None


def validate(
    kg: KnowledgeGraph,
    graph: Annotated[str | None, Field(max_length=2_000, description="Graph IRI, or union: all graphs")] = None,
    document: Annotated[str | None, Field(max_length=2_000, description="Document IRI")] = None,
    turtle: Annotated[str | None, Field(max_length=TEXT_CHARACTERS, description="Data")] = None,
    shapes: Annotated[str | None, Field(max_length=TEXT_CHARACTERS, description="SHACL in Turtle")] = None,
    suite: SuiteName | None = None,
    max_results: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="Total examples")] = 20,
    max_tokens: MaxTokens = 4_000,
) -> ValidationResult:
    """Validate a graph, a document or pasted Turtle with SHACL.

    Use before writing data. Give one of graph, document, turtle, and optionally shapes or a suite (default: record;
    dataset for union). Returns conforms, counts, findings with examples.
    Example: validate(document="cpr://doc/fictional-transport-decarbonisation-act_de01").
    Next: `fetch` a focus node.
    """
    bounded("max_results", max_results, 1, MAX_RESULTS)
    bounded("max_tokens", max_tokens, 200, 50_000)
    reader = Reader(kg)
    pasted = None if turtle is None else Document(to_utf8("turtle", turtle))
    home, checked = find_target(reader, graph=graph, document=document, pasted=pasted)
    own = None if shapes is None else Document(to_utf8("shapes", shapes), name="shapes")
    with run_validation(
        kg, pasted, home, choose_shapes(own, suite, pasted, home), "summary", checked=checked, examples=max_results
    ) as outcome:
        found = json.loads(outcome.report.read())
        verdict = outcome.verdict
    result = ValidationResult(
        conforms=verdict.conforms,
        checked=checked,
        counts=dict(verdict.counts),
        complete=False,
        findings=[],
        by_pyshacl=dict(verdict.by_pyshacl) or None,
    )
    if not verdict.looked:
        result.notes.append("Nothing was checked: no target of the shapes matches a node of the data.")
    result.notes += verdict.notes
    _fill(reader, result, found["groups"], home if pasted is None else None, pasted is None, max_results, max_tokens)
    total = sum(result.counts.values())
    return reader.finish(result, total=total, completeness="complete" if result.complete else "truncated")


class FinishedValidation:
    """A finished validation, a context manager that closes its report."""

    def __init__(self, verdict: Outcome, generation: int) -> None:
        self.verdict, self.report, self.generation = verdict, verdict.report, generation

    def __enter__(self) -> FinishedValidation:
        return self

    def __exit__(self, *_: object) -> None:
        self.report.close()


def run_validation(
    kg: KnowledgeGraph,
    pasted: Document | None,
    home: NamedNode | None,
    shapes: Document | Suite,
    form: str,
    *,
    checked: str,
    examples: int = 0,
    focus: Sequence[str] = (),
    timeout_s: float | None = None,
    client: str | None = None,
) -> FinishedValidation:
    """Validate pasted data, or else the graph `home` (None: the union of all), within the limits of a query.

    `client` is the client whose share of capacity is used (default: the caller). Raises the errors of
    `validate_isolated` and `Places.take`.
    """
    settings = kg.settings
    allowed_s = min(timeout_s or settings.query_timeout_s, settings.query_timeout_s)
    limits = Limits(
        allowed_s, settings.query_memory_mb << 20, settings.max_result_mb << 20, max_quads=settings.max_graph_quads
    )
    cancellation = CANCELLATION.get()
    # Files in the snapshots folder that a crash leaves are removed at the next start.
    folder = settings.directory.snapshots

    def job(data: Document | Stored) -> Outcome:
        return validate_isolated(
            Job(data, shapes, form, checked, examples, tuple(focus)),
            limits,
            on_cancel=cancellation.on_cancel if cancellation is not None else never,
            folder=folder if folder.is_dir() else None,
            module=source_locations.__name__,
        )

    caller = CALLER.get() if client is None else client
    with PLACES.take(caller, settings.query_timeout_s, allowed_s + _SNAPSHOT_S):
        if pasted is not None:
            return FinishedValidation(job(pasted), kg.generation)
        with kg.reading() as lease, kg.store.snapshot(exactly=lease.get().generation) as snapshot:
            return FinishedValidation(job(Stored(snapshot.path, home and home.value)), snapshot.generation)


def find_target(
    reader: Reader, *, graph: str | None, document: str | None, pasted: Document | None
) -> tuple[NamedNode | None, str]:
    """Find the graph to validate (None: pasted data, or all graphs), and describe the data in a few words.

    Raises InvalidInputError unless exactly one of the three is given, and NotFoundError with similar IRIs for an
    unknown graph or document.
    """
    given = [
        name for name, value in (("graph", graph), ("document", document), ("turtle", pasted)) if value is not None
    ]
    if len(given) != 1:
        raise InvalidInputError(
            f"Give exactly one of graph, document and turtle. Given: {' and '.join(given) or 'none'}."
        )
    if pasted is not None:
        return None, "the given data"
    if graph is not None:
        if graph == UNION:
            return None, "all graphs as one"
        return _require_graph(reader, parse_iri(graph)), f"the graph {graph}"
    assert document is not None  # noqa: S101 -- one of three
    home = _find_home(reader, parse_iri(document))
    return home, f"the document {document} (graph {home.value})"


def choose_shapes(
    own: Document | None, suite: SuiteName | None, pasted: Document | None, home: NamedNode | None
) -> Document | Suite:
    """Choose the shapes: those of the caller, the named suite, or the default suite for the data."""
    if own is not None:
        if suite is not None:
            raise InvalidInputError("Give either shapes or suite, not both.")
        return own
    if pasted is None and home is None and suite is None:
        return "dataset"
    if suite == "dataset":
        return "dataset"
    return "record" if home is not None and not is_user_graph(home) else "open-record"


def to_utf8(name: str, text: str) -> bytes:
    """Encode `text`, the argument `name`. Raises InvalidInputError for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{name} contains a lone surrogate, which is not a character.") from None


def _require_graph(reader: Reader, graph: NamedNode) -> NamedNode:
    found = reader.kg.query(bind(EXISTS, graph=graph), all_graphs=True).result
    if found is not True:
        raise _not_found(reader, "graph", graph.value, GRAPHS)
    return graph


def _find_home(reader: Reader, document: NamedNode) -> NamedNode:
    """Find the graph that describes a document, preferring one written by a loader."""
    query = bind(HOMES, document=document, prov=PROV_GRAPH, inferred=SUPERCLASS_GRAPH)
    rows = reader.rows("graphs of the document", query, all_graphs=True)
    homes = sorted(iri_of(row["graph"]) for row in rows)
    loaded = [home for home in homes if home.startswith(SOURCED)]
    if not homes:
        raise _not_found(reader, "document", document.value, DOCUMENTS)
    if len(homes) > 1 and len(loaded) != 1:
        raise InvalidInputError(f"{document} is in several graphs. Give one as graph: {', '.join(homes[:5])}.")
    return NamedNode((loaded or homes)[0])


def _not_found(reader: Reader, kind: str, iri: str, names: str) -> NotFoundError:
    """Build the error for an unknown IRI, with similar ones."""
    rows = reader.kg.query(bind(names, limit=_NEAR), all_graphs=True).result
    known = [iri_of(row["name"]) for row in rows if "name" in row] if isinstance(rows, Rows) else []
    alike = process.extract(iri, known, scorer=fuzz.ratio, limit=3, score_cutoff=_NEARNESS)
    spelt = [name for name in suggestions(reader.kg, iri) if kind == "document" or name in known]
    near = list(dict.fromkeys([*spelt, *(name for name, _, _ in alike)]))[:5]
    hint = f"Similar: {', '.join(map(name_or_quote, near))}." if near else "`list_resources` lists the loaded sources."
    return NotFoundError(f"{kind}: Unknown {kind} {quoted(iri)}. {hint}")


def _fill(
    reader: Reader,
    result: ValidationResult,
    groups: Sequence[Mapping[str, Any]],
    home: NamedNode | None,
    stored: bool,
    max_results: int,
    max_tokens: int,
) -> None:
    """Add as many findings to `result` as the budget allows, then their examples, one of each finding in turn."""
    spare = (max_tokens - FRAME_TOKENS) * BYTES_PER_TOKEN - size_of(result)
    kept: list[tuple[Finding, Sequence[Mapping[str, Any]]]] = []
    for group in groups:
        finding = _finding(group)
        spare -= size_of(finding) + 1
        if spare < 0 and kept:
            result.truncated_by = "tokens"
            break
        kept.append((finding, group["examples"]))
    chosen = _choose_in_turns(kept, max_results)
    places = _load_places(reader, [example["focus"] for _, example in chosen], home) if stored else {}
    shown = 0
    for finding, example in chosen:
        one = Example(**{**example, **places.get(example["focus"], {})})
        spare -= size_of(one) + 1
        if spare < 0 and shown:
            result.truncated_by = "tokens"
            break
        finding.examples.append(one)
        shown += 1
    result.findings = [finding for finding, _ in kept]
    result.complete = shown == sum(result.counts.values())
    if result.complete:
        result.truncated_by = None
    elif result.truncated_by is None:
        result.truncated_by = "results"


def _finding(group: Mapping[str, Any]) -> Finding:
    shape, component = group["shape"], group["component"]
    return Finding(
        shape=None if shape is None or shape.startswith("_:") else curie(shape).strip("<>"),
        severity=group["severity"],
        constraint=component and curie(component).removeprefix("sh:").removesuffix("ConstraintComponent"),
        path=group["path"],
        message=group["message"],
        count=group["count"],
    )


def _choose_in_turns(
    kept: Sequence[tuple[Finding, Sequence[Mapping[str, Any]]]], most: int
) -> list[tuple[Finding, Mapping[str, Any]]]:
    longest = max((len(examples) for _, examples in kept), default=0)
    in_turns = (
        (finding, examples[turn]) for turn in range(longest) for finding, examples in kept if turn < len(examples)
    )
    return [one for one, _ in zip(in_turns, range(most), strict=False)]


def _load_places(reader: Reader, focus: Iterable[str], home: NamedNode | None) -> dict[str, dict[str, Any]]:
    """Load document, graph, source file and row of focus nodes, as far as they are known."""
    nodes = list(dict.fromkeys(node for iri in focus for node in _to_nodes(iri)))[:_PLACED]
    if not nodes:
        return {}
    said: dict[str, dict[str, dict[str, str]]] = {}
    query = bind(STANDS, nodes=nodes, inferred=SUPERCLASS_GRAPH)
    for row in reader.rows("graphs of the nodes", query, all_graphs=True):
        if "graph" in row and (home is None or row["graph"] == home):
            about = said.setdefault(iri_of(row["node"]), {}).setdefault(iri_of(row["graph"]), {})
            if isinstance(row["value"], NamedNode | Literal):
                about[iri_of(row["property"])] = term_text(row["value"])
    graphs = {graph for about in said.values() for graph in about} | ({home.value} if home is not None else set())
    descriptions = describe(reader, (), graphs)
    found = {}
    for node in nodes:
        homes = said.get(node.value) or ({home.value: {}} if home is not None else {})
        for graph, about in sorted(homes.items())[:1]:
            position = about.get(SCHEMA.position.value, "")
            origin = origin_of(reader, descriptions, graph, int(position) if position.isdecimal() else None)
            found[node.value] = {
                "document": about.get(DCTERMS.isPartOf.value),
                "graph": None if home is not None else graph,
                "source": origin.source,
                "row": origin.row,
            }
    return found


def _to_nodes(text: str) -> Iterator[NamedNode]:
    """Yield the node of an IRI. Blank nodes and literals are skipped."""
    if not text.startswith(("_:", '"', "<<")):
        try:
            yield NamedNode(text)
        except ValueError:
            return
