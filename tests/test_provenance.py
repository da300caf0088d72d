"""graph/prov says of every graph where it came from, no more than that, and `why` reads it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, NotFoundError
from kg.provenance.explanation import explain_iri, explain_triple
from kg.provenance.load_records import (
    Agent,
    RecordOrigin,
    RowsOf,
    Run,
    SourceFile,
    find_row,
    format_rows,
    load_versions,
    parse_rows,
)
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Commit, Result, Rows
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, RDF, SCHEMA, mint, sha256

AGENT = Agent("fictional loader", "1.0")
FILE = SourceFile(sha256("first bytes"), "data/fiction.parquet", revision="abc123")
NEWER = SourceFile(sha256("other bytes"), "data/fiction.parquet")
OTHER = SourceFile(sha256("another file"), "data/second.parquet")


class Clock:
    """Every look at it finds it a second later."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OxigraphStore]:
    with OxigraphStore(tmp_path / "data") as store:
        yield store


@pytest.fixture
def clock() -> Clock:
    return Clock()


def graph_of(slug: str) -> NamedNode:
    return mint("graph", "src", "climate", slug)


def record(slug: str, passages: int = 2, title: str = "A fictional act") -> list[Quad]:
    graph, document = graph_of(slug), mint("document", slug)
    quads = [Quad(document, DCTERMS.title, Literal(title), graph)]
    for index in range(passages):
        passage = mint("passage", slug, str(10 * index))
        quads.append(Quad(passage, DCTERMS.isPartOf, document, graph))
        quads.append(Quad(passage, SCHEMA.position, Literal(10 * index), graph))
    return quads


def origin(file: SourceFile, rows: Sequence[int] = (), source: str = "source") -> RecordOrigin:
    return RecordOrigin(sha256(source), [RowsOf(file, rows)])


def load(store: OxigraphStore, run: Run, slug: str, file: SourceFile, *, title: str = "A fictional act") -> Commit:
    origins = {graph_of(slug): origin(file, (7, 8), title)}
    return store.commit({graph_of(slug): record(slug, title=title)}, run.describe(store, origins))


def provenance(store: OxigraphStore) -> set[tuple[object, object, object]]:
    """What graph/prov says beside the store's own records of commits."""
    commits = mint("commit", "0").value.removesuffix("0")
    return {
        (quad.subject, quad.predicate, quad.object)
        for quad in store.graph(PROV_GRAPH)
        if not (isinstance(quad.subject, NamedNode) and quad.subject.value.startswith(commits))
    }


def test_a_commit_says_of_its_graph_kind_run_snapshot_hashes_and_rows(store: OxigraphStore, clock: Clock) -> None:
    run = Run(AGENT, {"language": "en"}, [FILE], clock)
    commit = load(store, run, "act", FILE)
    graph = graph_of("act")
    assert {(p, o) for s, p, o in provenance(store) if s == graph} == {
        (RDF.type, KG.AssertedGraph),
        (PROV.wasGeneratedBy, run.iri),
        (PROV.wasDerivedFrom, FILE.iri),
        (KG.contentSha256, Literal(commit.changes[0].content_sha256 or "")),
        (KG.sourceSha256, Literal(sha256("A fictional act"))),
        (KG.sourceRows, Literal("7-8")),
    }


def test_a_row_that_several_units_share_is_told_once(store: OxigraphStore, clock: Clock) -> None:
    run = Run(AGENT, clock=clock)
    store.commit({graph_of("act"): record("act")}, run.describe(store, {graph_of("act"): origin(FILE, (5, 5))}))
    [whole] = explain_iri(store.query, mint("document", "act"))
    [unit] = explain_iri(store.query, mint("passage", "act", "10"))
    assert (whole.sources[0].rows, unit.sources[0].row) == ("5", 5)


def test_a_load_that_commits_nothing_records_nothing(store: OxigraphStore, clock: Clock) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    before = provenance(store)
    assert load(store, Run(AGENT, clock=clock), "act", FILE).changes == ()
    assert provenance(store) == before


def test_each_commit_moves_the_end_of_its_run(store: OxigraphStore, clock: Clock) -> None:
    run = Run(AGENT, clock=clock)
    load(store, run, "act", FILE)
    [first] = [o for s, p, o in provenance(store) if (s, p) == (run.iri, PROV.endedAtTime)]
    load(store, run, "bill", FILE)
    [second] = [o for s, p, o in provenance(store) if (s, p) == (run.iri, PROV.endedAtTime)]
    assert str(first) < str(second)


def test_runs_over_the_same_input_at_different_times_are_different_runs(clock: Clock) -> None:
    assert Run(AGENT, {}, [FILE], clock).iri != Run(AGENT, {}, [FILE], clock).iri


def test_replacing_a_graph_leaves_nothing_of_what_explained_it_before(
    store: OxigraphStore, tmp_path: Path, clock: Clock
) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    run = Run(Agent("fictional loader", "2.0"), clock=clock)
    load(store, run, "act", NEWER, title="A fictional act, amended")
    subjects = {s for s, _, _ in provenance(store)}
    assert subjects == {graph_of("act"), run.iri, run.agent.iri, NEWER.iri}
    assert FILE.iri not in {o for _, _, o in provenance(store)}


def test_a_snapshot_that_still_explains_a_graph_is_kept_and_marked_as_superseded(
    store: OxigraphStore, clock: Clock
) -> None:
    first = Run(AGENT, clock=clock)
    load(store, first, "act", FILE)
    load(store, first, "bill", FILE)
    load(store, Run(AGENT, clock=clock), "act", NEWER, title="amended")
    superseded = {s for s, p, _ in provenance(store) if p == PROV.invalidatedAtTime}
    assert superseded == {FILE.iri}
    [explanation] = explain_iri(store.query, mint("document", "bill"))
    assert explanation.sources[0].superseded_at is not None


def test_bytes_that_come_back_are_current_again(store: OxigraphStore, clock: Clock) -> None:
    first = Run(AGENT, clock=clock)
    load(store, first, "act", FILE)
    load(store, first, "bill", FILE)
    load(store, Run(AGENT, clock=clock), "act", NEWER, title="amended")
    load(store, Run(AGENT, clock=clock), "act", FILE, title="back again")
    assert FILE.iri not in {s for s, p, _ in provenance(store) if p == PROV.invalidatedAtTime}


def test_an_agent_stays_while_another_run_of_it_explains_something(store: OxigraphStore, clock: Clock) -> None:
    first, second = Run(AGENT, clock=clock), Run(AGENT, clock=clock)
    load(store, first, "act", FILE)
    load(store, second, "bill", OTHER)
    store.commit({graph_of("act"): []}, Run(Agent("remover", "1"), clock=clock).describe(store, {}))
    subjects = {s for s, _, _ in provenance(store)}
    assert subjects == {graph_of("bill"), second.iri, AGENT.iri, OTHER.iri}


def test_removing_the_last_graph_leaves_no_provenance(store: OxigraphStore, clock: Clock) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    store.commit({graph_of("act"): []}, Run(AGENT, clock=clock).describe(store, {}))
    assert provenance(store) == set()


def test_a_run_that_replaces_its_own_graph_stays(store: OxigraphStore, clock: Clock) -> None:
    run = Run(AGENT, clock=clock)
    load(store, run, "act", FILE)
    load(store, run, "act", FILE, title="a later row of the same file")
    assert {s for s, p, _ in provenance(store) if p == RDF.type} == {graph_of("act"), run.iri, AGENT.iri, FILE.iri}


def test_a_record_that_spans_files_keeps_the_rows_of_each_in_order(store: OxigraphStore, clock: Clock) -> None:
    parts = [RowsOf(FILE, (3,)), RowsOf(OTHER, (5, 9))]
    origins = {graph_of("act"): RecordOrigin(sha256("x"), parts)}
    store.commit({graph_of("act"): record("act", 3)}, Run(AGENT, clock=clock).describe(store, origins))
    found = [
        (source.sha256, source.row)
        for index in ("0", "10", "20")
        for explanation in explain_iri(store.query, mint("passage", "act", index))
        for source in explanation.sources
    ]
    assert found == [(FILE.sha256, 3), (OTHER.sha256, 5), (OTHER.sha256, 9)]
    store.commit({graph_of("act"): []}, Run(AGENT, clock=clock).describe(store, {}))
    assert provenance(store) == set()


def test_a_shared_graph_without_an_origin_is_described_by_its_run(store: OxigraphStore, clock: Clock) -> None:
    family = mint("graph", "ref", "family", "acts")
    quads = [Quad(mint("family", "acts"), DCTERMS.title, Literal("Acts"), family)]
    run = Run(AGENT, clock=clock)
    store.commit({family: quads}, run.describe(store, {}))
    [explanation] = explain_iri(store.query, mint("family", "acts"))
    assert (explanation.run, explanation.sources, explanation.source_sha256) == (run.iri.value, (), None)


def test_current_gives_source_hash_and_version_of_one_domain(store: OxigraphStore, clock: Clock) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    hansard = mint("graph", "src", "hansard", "act")
    quads = [Quad(mint("document", "x"), DCTERMS.title, Literal("x"), hansard)]
    store.commit({hansard: quads}, Run(AGENT, clock=clock).describe(store, {hansard: origin(OTHER)}))
    assert load_versions(store, "climate") == {graph_of("act"): (sha256("A fictional act"), "1.0")}


def test_why_names_the_row_of_a_passage_and_all_rows_of_its_document(store: OxigraphStore, clock: Clock) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    [passage] = explain_iri(store.query, mint("passage", "act", "10"))
    [document] = explain_iri(store.query, mint("document", "act"))
    assert (passage.sources[0].row, document.sources[0].row, document.sources[0].rows) == (8, None, "7-8")


def test_why_tells_a_stranger_what_loader_file_revision_and_hash(store: OxigraphStore, clock: Clock) -> None:
    run = Run(AGENT, {"language": "en"}, clock=clock)
    load(store, run, "act", FILE)
    [explanation] = explain_iri(store.query, mint("passage", "act", "0"))
    text = str(explanation)
    for part in (
        "<cpr://doc/act#p=0>",
        "graph/src/climate/act (asserted, 2 quads)",
        "fictional loader 1.0",
        "language=en",
        "data/fiction.parquet",
        "row       7",
        FILE.sha256,
        "abc123",
    ):
        assert part in text
    assert explanation.to_dict()["sources"][0]["revision"] == "abc123"


def test_why_of_a_triple_explains_the_graph_that_holds_it(store: OxigraphStore, clock: Clock) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    [explanation] = explain_triple(store.query, mint("document", "act"), DCTERMS.title, Literal("A fictional act"))
    assert (explanation.graph, explanation.quads) == (graph_of("act").value, 1)


def test_why_of_a_graph_explains_that_graph(store: OxigraphStore, clock: Clock) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    [explanation] = explain_iri(store.query, graph_of("act"))
    assert (explanation.graph, explanation.quads, explanation.kind) == (graph_of("act").value, 5, "asserted")


def test_why_of_a_run_says_that_the_store_wrote_it(store: OxigraphStore, clock: Clock) -> None:
    run = Run(AGENT, clock=clock)
    load(store, run, "act", FILE)
    [explanation] = explain_iri(store.query, run.iri)
    assert (explanation.kind, "the store" in str(explanation)) == ("provenance", True)


def test_why_of_a_graph_that_nothing_describes_says_so(store: OxigraphStore) -> None:
    store.commit({graph_of("act"): record("act")})
    [explanation] = explain_iri(store.query, mint("document", "act"))
    assert (explanation.kind, "does not describe" in str(explanation)) == ("undescribed", True)


@pytest.mark.parametrize(
    ("iri", "hint"),
    [
        (mint("passage", "act", "99"), "0 to 10"),
        (mint("passage", "nothing", "0"), "cpr://doc/{slug}#p={index}"),
        (KG.AssertedGraph, "refers to it by rdf:type"),
    ],
)
def test_why_of_an_unknown_iri_leads_to_a_known_one(
    store: OxigraphStore, clock: Clock, iri: NamedNode, hint: str
) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    with pytest.raises(NotFoundError, match="as a subject") as error:
        explain_iri(store.query, iri)
    assert hint in str(error.value)


@pytest.mark.parametrize(
    ("predicate", "hint"), [(DCTERMS.title, '"A fictional act"'), (DCTERMS.source, "has no dcterms:source")]
)
def test_why_of_an_unknown_triple_names_the_values_that_exist(
    store: OxigraphStore, clock: Clock, predicate: NamedNode, hint: str
) -> None:
    load(store, Run(AGENT, clock=clock), "act", FILE)
    with pytest.raises(NotFoundError) as error:
        explain_triple(store.query, mint("document", "act"), predicate, Literal("Another title"))
    assert hint in str(error.value)


def test_a_query_function_that_gives_no_rows_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="bool"):
        explain_iri(lambda _: True, mint("document", "act"))


def test_a_store_that_gives_a_literal_for_a_graph_is_reported() -> None:
    rows = Rows(("at", "graph", "quads"), [(Literal(0), Literal("x"), Literal(1))])
    with pytest.raises(TypeError, match="expected an IRI"):
        explain_iri(lambda _: rows, mint("document", "act"))


@given(st.lists(st.integers(1, 10**9), max_size=50))
def test_row_numbers_survive_being_written_as_runs(rows: list[int]) -> None:
    assert parse_rows(format_rows(rows)) == rows


@given(st.integers(1, 10**6), st.integers(1, 2000))
def test_consecutive_rows_take_one_run(first: int, count: int) -> None:
    assert format_rows(range(first, first + count)).count("-") == (count > 1)


@given(st.lists(st.lists(st.integers(1, 100), max_size=4), max_size=4), st.integers(0, 20))
def test_the_rows_of_a_record_are_those_of_its_files_one_after_another(parts: list[list[int]], rank: int) -> None:
    together = [(number, row) for number, rows in enumerate(parts) for row in rows]
    assert find_row(rank, parts) == (together[rank] if rank < len(together) else None)


def test_rows_count_from_one() -> None:
    with pytest.raises(InvalidInputError, match="1-based"):
        format_rows([0])


def test_inputs_of_a_computed_graph_are_described_together(store: OxigraphStore, clock: Clock) -> None:
    run = Run(AGENT, clock=clock)
    inputs = [graph_of(f"act-{number}") for number in range(150)]
    graph = mint("graph", "der", "summary")
    origins = {graph: RecordOrigin("", (), inputs)}
    store.commit({graph: [Quad(KG.s, KG.p, Literal("x"), graph)]}, run.describe(store, origins))
    asked: list[str] = []

    def query(text: str) -> Result:
        asked.append(text)
        return store.query(text)

    [explanation] = explain_iri(query, KG.s)
    assert len(explanation.sources) == len(inputs)
    assert len(asked) == len(set(asked)) < len(inputs)
