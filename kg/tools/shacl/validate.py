"""SHACL as a tool: what breaks the shapes, by shape and cause, with examples and where these come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final
from typing import Literal as OneOf

from pydantic import Field
from pyoxigraph import Literal, NamedNode
from rapidfuzz import fuzz, process

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import CALLER, CANCELLATION, KnowledgeGraph
from kg.processes.child import Limits
from kg.retrieval.evidence import describe, origin_of
from kg.retrieval.reader import Reader, bounded, iri_of, text_of
from kg.retrieval.results import Result
from kg.retrieval.token_budget import CHARACTERS_PER_TOKEN, Lean, MaxTokens, clipped
from kg.shacl.process import PLACES, Document, Job, Outcome, Stored, Suite, validate_isolated
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Rows
from kg.tools.entities.dereference import parse_iri, suggestions
from kg.tools.shacl import source_locations
from kg.vocabulary import DCTERMS, PROV_GRAPH, SCHEMA, SOURCED, curie

UNION: Final = "union"
"""As a graph: all graphs as one."""
TEXT_CHARACTERS: Final = 500_000
MAX_RESULTS: Final = 1_000
FRAME_TOKENS: Final = 120
"""What an answer takes beside its findings."""

_NEAR: Final = 20_000
_NEARNESS: Final = 70
_PLACED: Final = 500

EXISTS: Final = "ASK { GRAPH $graph { ?s ?p ?o } }"
GRAPHS: Final = "SELECT DISTINCT ?name WHERE { GRAPH ?name {} } LIMIT $limit"
DOCUMENTS: Final = "SELECT DISTINCT ?name WHERE { ?name kg:slug ?slug } LIMIT $limit"
HOMES: Final = """
SELECT DISTINCT ?graph WHERE { GRAPH ?graph { $document rdf:type ?class } FILTER(?graph != $prov) } LIMIT 20"""
STANDS: Final = """
SELECT DISTINCT ?node ?graph ?property ?value WHERE {
  VALUES ?node { $nodes }
  GRAPH ?graph { ?node ?property ?value }
  FILTER(?property IN (rdf:type, schema:position, dcterms:isPartOf))
}"""

Why = OneOf["results", "tokens"]
SuiteName = OneOf["record", "dataset"]


class Example(Lean):
    """One result, and where it comes from."""

    focus: str
    value: str | None = None
    message: str | None = None
    """Where it differs from that of the finding."""
    document: str | None = None
    graph: str | None = None
    source: str | None = None
    row: int | None = None


class Finding(Lean):
    """What one constraint of one shape found."""

    shape: str | None = None
    severity: str
    constraint: str | None = None
    path: str | None = None
    message: str
    count: int
    examples: list[Example] = Field(default_factory=list)


class ValidationResult(Result):
    """What a validation found."""

    conforms: bool = Field(description="No result of severity Violation")
    checked: str
    counts: dict[str, int] = Field(description="Results by severity")
    complete: bool = Field(description="Every result is shown")
    truncated_by: Why | None = None
    findings: list[Finding]
    by_pyshacl: dict[str, str] | None = None


def validate(
    kg: KnowledgeGraph,
    graph: Annotated[str | None, Field(max_length=2_000, description="Graph IRI, or union: all as one")] = None,
    document: Annotated[str | None, Field(max_length=2_000, description="Document IRI")] = None,
    turtle: Annotated[str | None, Field(max_length=TEXT_CHARACTERS, description="Data")] = None,
    shapes: Annotated[str | None, Field(max_length=TEXT_CHARACTERS, description="SHACL in Turtle")] = None,
    suite: SuiteName | None = None,
    max_results: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="Examples in all")] = 20,
    max_tokens: MaxTokens = 4_000,
) -> ValidationResult:
    """Validate a graph, a document or pasted Turtle with SHACL.

    Use before writing data. Give one of graph, document, turtle; and shapes, or a suite (else record; dataset for
    union). Returns conforms, counts, findings with examples.
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
        reader.generation = max(reader.generation, outcome.generation)
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
        result.notes.append("No target of the shapes finds anything in the data, so nothing was checked.")
    _fill(reader, result, found["groups"], home if pasted is None else None, pasted is None, max_results, max_tokens)
    total = sum(result.counts.values())
    return reader.finish(result, total=total, completeness="complete" if result.complete else "truncated")


class FinishedValidation:
    """A validation that has ended: its report is open for as long as the block of `run_validation`."""

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
    """Validate what was pasted, or else the graph `home` (None: all graphs as one), within the limits of a query.

    `client`: whose turn it is; the caller, if it is not said. Raises what `validate_isolated` and `Places.take` raise.
    """
    settings = kg.settings
    allowed_s = min(timeout_s or settings.query_timeout_s, settings.query_timeout_s)
    limits = Limits(allowed_s, settings.query_memory_mb << 20, settings.max_result_mb << 20)
    cancellation = CANCELLATION.get()
    # What a crash leaves among the snapshots goes at the next start.
    folder = settings.data_dir / "snapshots"

    def job(data: Document | Stored) -> Outcome:
        return validate_isolated(
            Job(data, shapes, form, checked, examples, tuple(focus)),
            limits,
            on_cancel=cancellation.on_cancel if cancellation is not None else lambda stop: None,
            folder=folder if folder.is_dir() else None,
            module=source_locations.__name__,
        )

    with PLACES.take(CALLER.get() if client is None else client, settings.query_timeout_s):
        generation = kg.store.statistics().generation
        if pasted is not None:
            return FinishedValidation(job(pasted), generation)
        with kg.store.snapshot(at_least=generation) as snapshot:
            return FinishedValidation(job(Stored(snapshot.path, home and home.value)), snapshot.generation)


def find_target(
    reader: Reader, *, graph: str | None, document: str | None, pasted: Document | None
) -> tuple[NamedNode | None, str]:
    """Return the graph that is validated (None: what was pasted, or all graphs), and what it is in a few words.

    Raises InvalidInputError unless exactly one of the three is given, and NotFoundError, with IRIs that come near, for
    a graph or a document that is not there.
    """
    given = [
        name for name, value in (("graph", graph), ("document", document), ("turtle", pasted)) if value is not None
    ]
    if len(given) != 1:
        said = f"not {' and '.join(given)}" if given else "and none was"
        raise InvalidInputError(f"exactly one of graph, document and turtle is given, {said}")
    if pasted is not None:
        return None, "the data given"
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
    """Return what the data are validated by: shapes of the caller, the suite named, or the one that fits."""
    if own is not None:
        if suite is not None:
            raise InvalidInputError("give shapes of your own or a suite, not both")
        return own
    if pasted is None and home is None and suite is None:
        return "dataset"
    if suite == "dataset":
        return "dataset"
    return "record" if home is not None and not is_user_graph(home) else "open-record"


def to_utf8(name: str, text: str) -> bytes:
    """Return `text`, which errors call `name`, as bytes. Raises InvalidInputError for half a character."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{name} holds a lone surrogate, which is not a character") from None


def _require_graph(reader: Reader, graph: NamedNode) -> NamedNode:
    found = reader.kg.query(bind(EXISTS, graph=graph)).result
    if found is not True:
        raise _not_found(reader, "graph", graph.value, GRAPHS)
    return graph


def _find_home(reader: Reader, document: NamedNode) -> NamedNode:
    """Return the graph in which a document is described: the one that a loader wrote, where there are several."""
    rows = reader.rows("where it is described", bind(HOMES, document=document, prov=PROV_GRAPH))
    homes = sorted(iri_of(row["graph"]) for row in rows)
    loaded = [home for home in homes if home.startswith(SOURCED)]
    if not homes:
        raise _not_found(reader, "document", document.value, DOCUMENTS)
    if len(homes) > 1 and len(loaded) != 1:
        raise InvalidInputError(f"{document} is described in several graphs; give one as graph: {', '.join(homes[:5])}")
    return NamedNode((loaded or homes)[0])


def _not_found(reader: Reader, kind: str, iri: str, names: str) -> NotFoundError:
    """Return the error about an IRI that nothing is known of, with those that come near."""
    rows = reader.kg.query(bind(names, limit=_NEAR)).result
    known = [iri_of(row["name"]) for row in rows if "name" in row] if isinstance(rows, Rows) else []
    alike = process.extract(iri, known, scorer=fuzz.ratio, limit=3, score_cutoff=_NEARNESS)
    spelt = [name for name in suggestions(reader.kg, iri) if kind == "document" or name in known]
    near = list(dict.fromkeys([*spelt, *(name for name, _, _ in alike)]))[:5]
    hint = f"; near it are {', '.join(near)}" if near else "; `list_resources` tells what there is"
    return NotFoundError(f"there is no {kind} {clipped(iri, 300)}{hint}")


def _fill(
    reader: Reader,
    result: ValidationResult,
    groups: Sequence[Mapping[str, Any]],
    home: NamedNode | None,
    stored: bool,
    max_results: int,
    max_tokens: int,
) -> None:
    """Put as many findings on `result` as the budget allows, then their examples in turns."""
    spare = (max_tokens - FRAME_TOKENS) * CHARACTERS_PER_TOKEN - len(result.model_dump_json(exclude_none=True))
    kept: list[tuple[Finding, Sequence[Mapping[str, Any]]]] = []
    for group in groups:
        finding = _finding(group)
        spare -= len(finding.model_dump_json(exclude_none=True)) + 1
        if spare < 0 and kept:
            result.truncated_by = "tokens"
            break
        kept.append((finding, group["examples"]))
    chosen = _choose_in_turns(kept, max_results)
    places = _load_places(reader, [example["focus"] for _, example in chosen], home) if stored else {}
    shown = 0
    for finding, example in chosen:
        one = Example(**{**example, **places.get(example["focus"], {})})
        spare -= len(one.model_dump_json(exclude_none=True)) + 1
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
    """Return document, graph, source file and row of focus nodes, as far as they are known."""
    nodes = list(dict.fromkeys(node for iri in focus for node in _to_nodes(iri)))[:_PLACED]
    if not nodes:
        return {}
    said: dict[str, dict[str, dict[str, str]]] = {}
    for row in reader.rows("where the nodes stand", bind(STANDS, nodes=nodes)):
        if "graph" in row and (home is None or row["graph"] == home):
            about = said.setdefault(iri_of(row["node"]), {}).setdefault(iri_of(row["graph"]), {})
            if isinstance(row["value"], NamedNode | Literal):
                about[iri_of(row["property"])] = text_of(row["value"])
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
    """Yield the node of an IRI; of a blank node or a literal, nothing."""
    if not text.startswith(("_:", '"', "<<")):
        try:
            yield NamedNode(text)
        except ValueError:
            return
