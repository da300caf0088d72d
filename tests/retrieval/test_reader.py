"""What is kept from one answer to the next saves queries, and never outlives a commit."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import GoneError, QueryLimitError
from kg.knowledge_graph import CANCELLATION, KnowledgeGraph, Lease, Memory, read_newest
from kg.queries.pool import Cancellation
from kg.retrieval.attribution import Chunk, load_voices
from kg.retrieval.evidence import load_units
from kg.retrieval.reader import Reader, recording
from kg.retrieval.results import SearchFilters
from kg.search.protocol import Candidate
from kg.sparql.terms import bind
from kg.store.protocol import Patch, Snapshot, Term, term_text
from kg.tools.climate.document_counts import count_documents
from kg.tools.parliament.speech_filters import parties, speakers
from kg.tools.reading.documents import Heading, load_order, read_document
from kg.tools.registry import TOOLS
from kg.tools.search.passages import fetch, search
from kg.tools.zoning.name_lookup import load_places as load_municipalities
from kg.vocabulary import BASE, DCTERMS, FOAF, KG, RDF, SCHEMA, SKOS, mint
from loaders.sources import load
from tests.conftest import load_once, opened, shipped
from tests.waiting import until

COUNTRY = SearchFilters(iso3=["DJI"])


def test_a_call_reads_one_state_whatever_is_committed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load, and a write of a user, between its queries: its answer and what it keeps are those of its generation."""
    code = tmp_path / "code.json"
    code.write_text(Path(shipped("zoning/upper_feign.json")).read_text())
    tool = next(tool for tool in TOOLS if tool.name == "kg_query_permissions")
    user = mint("graph", "user", "a")
    with opened(tmp_path / "data") as kg:
        load(kg, "zoning", [str(code)])
        before, run, text = kg.store.statistics().generation, kg.pool.run, code.read_text()

        def run_after_load(query: str, **options: Any) -> Any:
            if "ns#landUse> ?about" in query and code.read_text() == text:
                code.write_text(text.replace('"Kiln"', '"Forge"', 1))
                assert load(kg, "zoning", [str(code)]).loaded
                kg.store.commit({user: [Quad(user, SKOS.prefLabel, Literal("of a user"), user)]})
            return run(query, **options)

        def ask() -> tuple[set[str], int]:
            result = tool.call(kg, {"municipality": "Upper Feign", "state": "CT"})
            return {each.use for each in result.permissions}, result.meta.snapshot

        with monkeypatch.context() as patch:
            patch.setattr(kg.pool, "run", run_after_load)
            assert ask() == ({"Kiln"}, before)
        assert ask() == ({"Forge", "Kiln"}, kg.store.statistics().generation)


def test_a_state_is_held_as_long_as_a_call_and_no_longer(tmp_path: Path) -> None:
    graph, cancellation = mint("graph", "user", "a"), Cancellation()
    titles = f"SELECT ?title {{ <{graph.value}/document> dcterms:title ?title }}"

    def read(*, all_graphs: bool) -> list[str]:
        return [term_text(row["title"]) for row in Reader(kg).rows("titles", titles, all_graphs=all_graphs)]

    def count_kept() -> int:
        write(kg, mint("graph", "src", "b"), str(time.monotonic()))
        kg.store.snapshot(kg.store.statistics().generation).release()
        return len([*(tmp_path / "data" / "snapshots").iterdir()])

    with opened(tmp_path / "data") as kg:
        write(kg, graph, "of a user")
        token = CANCELLATION.set(cancellation)
        try:
            with kg.reading():
                assert read(all_graphs=True) == ["of a user"]
                kg.store.commit({graph: []})  # statements of users in this state are still not read
                assert (read(all_graphs=True), read(all_graphs=False)) == (["of a user"], [])
                kept = max(count_kept() for _ in range(4))
                with kg.reading():
                    assert read(all_graphs=True) == ["of a user"]
                read_newest()
                assert read(all_graphs=True) == []
                cancellation.cancel()
                with pytest.raises(QueryLimitError):
                    read(all_graphs=True)
                until(lambda: count_kept() < kept)
        finally:
            CANCELLATION.reset(token)
        with pytest.raises(GoneError), kg.reading(1) as lease:
            lease.get()
        with kg.reading(1, or_newest=True) as lease:
            assert lease.get().generation == kg.store.statistics().generation


def test_a_search_reports_that_the_index_is_newer_than_its_state(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passage that is in the index already and not in the state is no hit."""
    with opened(load_once(tmp_path_factory, "climate")) as kg:
        graph, unit, rank = mint("graph", "user", "late"), NamedNode("urn:late:1"), kg.search.rank
        kiln = Candidate(unit.value, 1.0, 9.0, None, words=1.0)

        def rank_after_commit(query: str, **options: Any) -> Any:
            about = (DCTERMS.isPartOf, graph), (SCHEMA.text, Literal("solar")), (SCHEMA.position, Literal(1))
            kg.store.commit({graph: [Quad(unit, *each, graph) for each in about]})
            found = rank(query, **options)
            return dataclasses.replace(found, candidates=[kiln, *found.candidates])

        monkeypatch.setattr("kg.retrieval.hybrid_search.NARROW", 1)
        monkeypatch.setattr(kg.search, "rank", rank_after_commit)
        with kg.reading():
            found = search(kg, "solar")
        assert unit.value not in {hit.id for hit in found.results}
        assert found.results
        assert found.meta.completeness == "approximate"
        lag = {note for note in found.notes if "newest" in note}
        assert lag
        monkeypatch.undo()
        assert lag.isdisjoint(search(kg, "solar").notes)


def test_a_call_ends_at_once_while_its_state_waits_for_a_commit() -> None:
    """The event loop ends calls, so it must not wait for what their threads wait for."""
    asked, committed, released = Event(), Event(), list[int]()

    def take() -> Snapshot:
        asked.set()
        assert committed.wait(10)
        return Snapshot(1, Path(), release=lambda: released.append(1))

    lease = Lease(take)
    with ThreadPoolExecutor(2) as threads:
        taking = threads.submit(lease.get)
        try:
            assert asked.wait(10)
            threads.submit(lease.end).result(timeout=5)
        finally:
            committed.set()
        with pytest.raises(QueryLimitError):
            taking.result()
    assert released == [1]


def test_a_second_search_asks_for_nothing_but_their_order(kg: KnowledgeGraph) -> None:
    first = search(kg, "solar", COUNTRY, limit=200)
    kg.pool.asked.clear()
    with recording() as ran:
        second = search(kg, "solar", COUNTRY, limit=200)
    assert second.results == first.results
    assert second.meta == first.meta
    purposes = [statement.purpose for statement in ran]
    assert purposes == ["passages that the filters leave", "order of equal scores", "passages"]
    assert len(kg.pool.asked) == 1
    hits = [hit.id for hit in first.results][:20]
    fetched = fetch(kg, ids=hits, limit=20)
    assert [each.id for each in fetched.evidence] == hits
    assert "passages" in {statement.purpose for statement in fetched.meta.sparql}
    assert not any("schema:text" in query for query in kg.pool.asked)


def test_a_commit_is_seen_by_the_next_search(kg: KnowledgeGraph) -> None:
    before = search(kg, "solar", COUNTRY, limit=200)
    named = before.results[0]
    document = named.id.partition("#")[0]
    kg.store.update(
        f"DELETE {{ GRAPH ?g {{ <{document}> dcterms:title ?t }} }}"
        f' INSERT {{ GRAPH ?g {{ <{document}> dcterms:title "New" }} }}'
        f" WHERE {{ GRAPH ?g {{ <{document}> dcterms:title ?t }} }}"
    )
    assert {hit.title for hit in search(kg, "solar", COUNTRY, limit=200).results if hit.id == named.id} == {"New"}
    kg.store.update(f"DELETE WHERE {{ GRAPH ?g {{ <{document}> kg:jurisdiction ?place }} }}")
    after = search(kg, "solar", COUNTRY, limit=200)
    assert {hit.id for hit in after.results} == {
        hit.id for hit in before.results if hit.id.partition("#")[0] != document
    }
    assert after.meta.snapshot == before.meta.snapshot + 2


def test_the_order_of_a_document_outlives_commits_elsewhere_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, graph, other = mint("document", "kept"), mint("graph", "src", "kept"), mint("graph", "src", "elsewhere")
    with opened(tmp_path / "data") as kg:
        read_rows = Reader.rows
        asked: list[str] = []

        def count_rows(reader: Reader, purpose: str, query: str, **more: Any) -> list[dict[str, Term]]:
            asked.append(purpose)
            return read_rows(reader, purpose, query, **more)

        monkeypatch.setattr(Reader, "rows", count_rows)

        def add(number: int, into: NamedNode) -> None:
            unit = mint("passage", "kept", str(number))
            about = ((DCTERMS.isPartOf, document), (SCHEMA.position, Literal(number)))
            kg.store.extend(into, [Quad(unit, name, value, into) for name, value in about])

        def read() -> tuple[list[int], int]:
            reader = Reader(kg)
            asked.clear()
            order = load_order(reader, document)
            assert [each.purpose for each in reader.ran] == ["order of the passages"]
            return [position for position, _ in order], len(asked)

        def change(number: int) -> None:
            kg.store.commit({other: [Quad(other, DCTERMS.title, Literal(str(number)), other)]})

        add(0, graph)
        assert read() == ([0], 1)
        assert read() == ([0], 0)
        change(0)
        assert read() == ([0], 0)
        add(1, graph)
        assert read() == ([0, 1], 1)
        add(2, other)  # a graph that had nothing of it
        assert read() == ([0, 1, 2], 1)
        change(1)
        assert read() == ([0, 1], 1)
        for number in range(3):
            change(number)
        assert read() == ([0, 1], 0)
        add(3, mint("graph", "user", "someone"))
        assert read()[0] == [0, 1]
        kg.store.commit({graph: []})
        assert read() == ([], 1)


def test_headings_are_not_kept_by_an_order_that_a_commit_has_changed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, graph = mint("document", "kept"), mint("graph", "src", "kept")
    unit = mint("passage", "kept", "9")
    with opened(tmp_path / "data") as kg:

        def write(before: int) -> None:
            quads = [
                *(
                    (document, name, value)
                    for name, value in ((RDF.type, KG.PolicyDocument), (KG.slug, Literal("kept")))
                ),
                *(
                    (unit, name, value)
                    for name, value in ((SCHEMA.text, Literal("Kilns")), (SCHEMA.position, Literal(9)))
                ),
                (unit, KG.blockType, mint("code", "blockType", "title")),
                *((each, DCTERMS.isPartOf, document) for each in (unit, *others(before))),
                *((each, SCHEMA.position, Literal(number)) for number, each in enumerate(others(before))),
                *((each, SCHEMA.text, Literal("text")) for each in others(before)),
            ]
            kg.store.commit({graph: [Quad(*each, graph) for each in quads]})

        def others(before: int) -> list[NamedNode]:
            return [mint("passage", "kept", str(number)) for number in range(before)]

        def find_places() -> list[int]:
            return [each.place for each in read_document(kg, document.value).outline if isinstance(each, Heading)]

        def load_units_late(reader: Reader, iris: Any) -> dict[str, Any]:
            write(5)
            return load_units(reader, iris)

        write(2)
        with monkeypatch.context() as patch:
            patch.setattr("kg.tools.reading.documents.load_units", load_units_late)
            assert find_places() == [2]
        assert find_places() == [5]


def test_the_voice_of_a_chunk_is_kept_by_its_offsets(parliament: KnowledgeGraph) -> None:
    query = """SELECT DISTINCT ?speech ?start ?end WHERE {
      ?speech a kg:Speech . ?utterance dcterms:isPartOf ?speech ; kg:utteranceType ?type ; kg:start ?start ; kg:end ?end
    } ORDER BY ?speech ?start"""
    rows = Reader(parliament).rows("utterances", query)
    by_speech = {speech: [row for row in rows if row["speech"] == speech] for speech in {row["speech"] for row in rows}}
    [speech, said] = max(by_speech.items(), key=lambda each: len(each[1]))
    spans = [(int(term_text(row["start"])), int(term_text(row["end"]))) for row in said]
    found = [
        load_voices(Reader(parliament), [Chunk("urn:chunk", term_text(speech), *span)])["urn:chunk"].utterance
        for span in (*spans, *spans)
    ]
    assert len(set(found)) == len(spans) > 1
    assert found[: len(spans)] == found[len(spans) :]


@pytest.mark.long
def test_malformed_units_that_people_write_leave_other_results_as_they_are(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    graph = mint("graph", "user", "minutes").value
    with opened(load_once(tmp_path_factory, "fixtures")) as kg:
        before = [hit.id for hit in search(kg, "geothermal heat").results]
        kg.store.update(
            f"""INSERT DATA {{ GRAPH <{graph}> {{
              <urn:minutes> dcterms:title "Minutes" .
              <urn:minutes:1> dcterms:isPartOf <urn:minutes> ; schema:position "first" ; schema:text "geothermal" .
              <urn:minutes:2> dcterms:isPartOf "minutes" ; schema:position 2 ; schema:text "geothermal" .
              <urn:minutes:3> dcterms:isPartOf "minutes", <urn:minutes> ; schema:position 3 ; schema:text "heat" .
            }} }}"""
        )
        assert [hit.id for hit in search(kg, "geothermal heat").results] == before
        assert [each.id for each in fetch(kg, id="urn:minutes").evidence] == ["urn:minutes:3"]


def test_one_query_finds_the_rows_of_all_graphs(kg: KnowledgeGraph, made) -> None:
    ids = list({passage.document: passage.iri for passage in made}.values())
    with recording() as ran:
        fetched = fetch(kg, ids=ids)
    assert len(ids) > 10
    assert all(evidence.provenance.row is not None for evidence in fetched.evidence)
    assert [statement.purpose for statement in ran].count("order of passages") == 1


def test_work_in_a_thread_adds_its_queries_and_raises_its_error(kg: KnowledgeGraph) -> None:
    reader = Reader(kg)

    def ask(other: Reader) -> int:
        assert other is not reader
        return len(other.rows("anything", "SELECT ?s WHERE { ?s a <http://example.org/nothing> }"))

    wait = reader.start("asking", ask)
    failing = reader.start("failing", lambda other: 1 // 0)
    assert wait() == 0
    assert [each.purpose for each in reader.ran] == ["anything"]
    with pytest.raises(ZeroDivisionError):
        failing()


def test_what_a_row_limit_cut_off_is_not_kept(kg: KnowledgeGraph, monkeypatch) -> None:
    query = "SELECT ?document WHERE { ?document a kg:PolicyDocument }"
    run = kg.pool.run

    def cut(*given, **named):
        answer = run(*given, **named)
        return type(answer)(answer.result, answer.generation, True)

    with monkeypatch.context() as patch:
        patch.setattr(kg.pool, "run", cut)
        reader = Reader(kg)
        reader.kept("documents", query, len)
        assert reader.truncated
    whole = Reader(kg)
    whole.kept("documents", query, len)
    assert not whole.truncated
    assert len(kg.pool.asked) == 2


def test_values_by_iri_are_cached_until_the_next_commit(kg: KnowledgeGraph) -> None:
    loaded: list[list[str]] = []

    def load(missing: list[str]) -> dict[str, str]:
        loaded.append(missing)
        return {iri: iri.upper() for iri in missing}

    assert Reader(kg).kept_by_iri("made up", ["urn:b", "urn:a"], load) == {"urn:a": "URN:A", "urn:b": "URN:B"}
    assert Reader(kg).kept_by_iri("made up", ["urn:b", "urn:c"], load) == {"urn:b": "URN:B", "urn:c": "URN:C"}
    assert loaded == [["urn:a", "urn:b"], ["urn:c"]]
    kg.store.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 1 } }")
    Reader(kg).kept_by_iri("made up", ["urn:a"], load)
    assert loaded[2:] == [["urn:a"]]


def test_values_by_iri_of_a_cut_result_or_an_unknown_generation_are_not_cached(kg: KnowledgeGraph) -> None:
    loaded: list[str] = []

    def load(missing: list[str]) -> dict[str, str]:
        loaded.extend(missing)
        if missing == ["urn:late"]:
            kg.store.update(f"INSERT DATA {{ GRAPH <urn:g> {{ <urn:a> <urn:p> {len(loaded)} }} }}")
        cut.truncated = missing == ["urn:cut"]
        return dict.fromkeys(missing, "value")

    for iri in ("urn:cut", "urn:cut", "urn:late", "urn:late", "urn:whole", "urn:whole"):
        cut = Reader(kg)
        assert cut.kept_by_iri("made up", [iri], load) == {iri: "value"}
    assert loaded == ["urn:cut", "urn:cut", "urn:late", "urn:late", "urn:whole"]


def test_cached_values_are_evicted_by_their_total_weight() -> None:
    memory = Memory(10)
    for key, weight in (("a", 4), ("b", 4)):
        memory.keep(key, key.upper(), weight)
    assert memory.get("a") == "A"
    memory.keep("c", "C", 4)  # b is the least recently used
    assert [memory.get(key) for key in "abc"] == ["A", None, "C"]
    memory.keep("a", "less", 1)
    memory.keep("d", "D", 5)
    assert [memory.get(key) for key in "acd"] == ["less", "C", "D"]
    assert memory.keep("all", "heavy", 11) == "heavy"
    assert [memory.get(key) for key in ("a", "c", "d", "all")] == ["less", "C", "D", None]
    memory.drop("d")
    memory.drop("unknown")
    memory.keep("e", "E", 5)
    assert [memory.get(key) for key in "acde"] == ["less", "C", None, "E"]


def test_results_are_kept_by_their_rows_and_large_ones_do_not_evict_small_ones(kg: KnowledgeGraph, monkeypatch) -> None:
    monkeypatch.setattr("kg.retrieval.reader.KEPT_ROWS", 20)
    monkeypatch.setattr("kg.retrieval.reader.KEPT_SMALL", 100)
    monkeypatch.setattr("kg.retrieval.reader.LEAST_ROWS", 40)
    monkeypatch.setattr("kg.retrieval.reader.SMALL", 3)
    monkeypatch.setattr(kg, "memory", Memory())

    def ask(*limits: int) -> int:
        kg.pool.asked.clear()
        for most in limits:
            query = f"SELECT ?unit WHERE {{ ?unit dcterms:isPartOf ?document }} LIMIT {most}"
            assert Reader(kg).kept("passages", query, len) == most
        return len(kg.pool.asked)

    monkeypatch.setattr("kg.retrieval.reader.KEPT_ROWS", 100)
    assert ask(1, 2, 3, 2, 3, 1) == 4  # two of them at a time
    assert ask(4, 5, 6, 5, 6, 4) == 4
    assert ask(3, 1) == 0


TITLES = "SELECT ?document ?title WHERE { ?document a kg:File ; dcterms:title ?title }"


def titles_of(kg: KnowledgeGraph, *, declared: bool = False) -> tuple[list[str], bool]:
    """The titles of files, and whether they were cached."""
    loaded = []

    def read(rows: list[dict[str, Term]]) -> list[str]:
        loaded.append(rows)
        return sorted(term_text(row["title"]) for row in rows)

    reader = Reader(kg)
    found = reader.kept("titles", TITLES, read, declared=("document",) if declared else ())
    assert reader.ran[0].purpose == "titles"
    return found, not loaded


def write(kg: KnowledgeGraph, graph: NamedNode, *values: str, kind: NamedNode = KG.File) -> None:
    document = NamedNode(f"{graph.value}/document")
    about = [Quad(document, DCTERMS.title, Literal(value), graph) for value in values]
    kg.store.commit({graph: [Quad(document, RDF.type, kind, graph), *about] if values else []})


def test_a_cached_result_outlives_the_commits_that_do_not_change_it_and_no_other(tmp_path: Path) -> None:
    graph, other, user = mint("graph", "src", "a"), mint("graph", "src", "b"), mint("graph", "user", "a")
    with opened(tmp_path / "data") as kg:
        write(kg, graph, "one")
        assert titles_of(kg) == (["one"], False)
        assert titles_of(kg) == (["one"], True)
        kg.store.commit({other: [Quad(other, KG.keyword, Literal("k"), other)]})
        assert titles_of(kg) == (["one"], True)
        kg.store.commit({other: [Quad(other, RDF.type, KG.Speech, other)]})
        assert titles_of(kg) == (["one"], True)
        write(kg, user, "of a user")
        assert titles_of(kg) == (["one"], True)
        write(kg, other, "two")
        assert titles_of(kg) == (["one", "two"], False)
        write(kg, other, "two", kind=KG.Speech)
        assert titles_of(kg) == (["one"], False)
        kg.store.update(f'INSERT DATA {{ GRAPH <{graph.value}> {{ <{graph.value}/document> dcterms:title "three" }} }}')
        assert titles_of(kg) == (["one", "three"], False)
        write(kg, graph)
        assert titles_of(kg) == ([], False)


def test_a_result_that_becomes_large_or_small_is_kept_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg.retrieval.reader.SMALL", 1)
    graph = mint("graph", "src", "a")
    with opened(tmp_path / "data") as kg:
        for titles in (["one"], ["one", "two"], ["three"], ["one", "two"]):
            write(kg, graph, *titles)
            assert titles_of(kg) == (titles, False)
            assert titles_of(kg) == (titles, True)


def test_a_cached_result_with_declared_nodes_follows_user_graphs(tmp_path: Path) -> None:
    graph, user, other = mint("graph", "src", "a"), mint("graph", "user", "a"), mint("graph", "user", "b")
    document = NamedNode(f"{user.value}/document")
    with opened(tmp_path / "data") as kg:
        write(kg, graph, "one")
        assert titles_of(kg, declared=True) == (["one"], False)
        kg.store.commit({other: [Quad(other, KG.keyword, Literal("k"), other)]})
        assert titles_of(kg, declared=True) == (["one"], True)
        # A title of a user that is in no row.
        write(kg, other, "speech", kind=KG.Speech)
        assert titles_of(kg, declared=True) == (["one"], False)
        kg.store.commit({mint("graph", "src", "b"): [Quad(graph, KG.keyword, Literal("k"), mint("graph", "src", "b"))]})
        assert titles_of(kg, declared=True) == (["one"], True)
        write(kg, user, "of a user")
        assert titles_of(kg, declared=True) == (["of a user", "one"], False)
        assert titles_of(kg, declared=True)[1]
        assert titles_of(kg) == (["one"], False)
        # A source describes it now, in words that the query does not read.
        kg.store.extend(graph, [Quad(document, KG.keyword, Literal("k"), graph)])
        assert titles_of(kg, declared=True) == (["one"], False)
        kg.store.commit({user: []})
        assert titles_of(kg, declared=True) == (["one"], False)


def test_what_an_invalidated_graph_states_is_not_declared(tmp_path: Path) -> None:
    graph, user, other = mint("graph", "ext", "a"), mint("graph", "user", "a"), mint("graph", "src", "b")
    with opened(tmp_path / "data") as kg:
        write(kg, graph, "old")
        quad = Quad(other, KG.keyword, Literal("k"), other)
        kg.store.commit({other: [quad]}, lambda changes: Patch(invalidated=[graph]))
        assert kg.store.find_invalidated_graphs() == [graph]
        assert titles_of(kg, declared=True) == ([], False)
        write(kg, user, "of a user")
        assert titles_of(kg, declared=True) == (["of a user"], False)
        assert titles_of(kg) == ([], False)


def test_a_result_is_not_cached_if_a_commit_changed_it_meanwhile(tmp_path: Path) -> None:
    graph = mint("graph", "src", "a")
    with opened(tmp_path / "data") as kg:
        write(kg, graph, "one")

        def read(rows: list[dict[str, Term]]) -> int:
            write(kg, graph, "one", "two")
            return len(rows)

        assert Reader(kg).kept("titles", TITLES, read) == 1
        assert titles_of(kg) == (["one", "two"], False)


def test_values_by_iri_with_a_query_outlive_the_commits_that_do_not_change_them(tmp_path: Path) -> None:
    graph, other = mint("graph", "src", "a"), mint("graph", "src", "b")
    template = "SELECT ?title WHERE { VALUES ?document { $documents } ?document dcterms:title ?title }"
    iri = f"{graph.value}/document"
    with opened(tmp_path / "data") as kg:
        loaded: list[str] = []

        def load(missing: list[str]) -> dict[str, list[str]]:
            loaded.extend(missing)
            rows = reader.rows("titles", bind(template, documents=[NamedNode(each) for each in missing]))
            return {each: [term_text(row["title"]) for row in rows] for each in missing}

        def get() -> tuple[list[str], int]:
            loaded.clear()
            return reader.kept_by_iri("titles", [iri], load, query=template)[iri], len(loaded)

        for words, cached in (("one", False), ("one", True), ("two", False)):
            write(kg, graph, words)
            reader = Reader(kg)
            assert get() == ([words], not cached)
            kg.store.commit({other: [Quad(other, KG.keyword, Literal(words), other)]})
            reader = Reader(kg)
            assert get() == ([words], 0)
        write(kg, graph)
        reader = Reader(kg)
        assert get() == ([], 1)


def test_values_that_several_queries_make_follow_each_of_them(tmp_path: Path) -> None:
    """What is built out of a cached result and another one is built again after either has changed."""
    source, names = mint("graph", "src", "a"), mint("graph", "ref", "a")
    person, party, town, state = (NamedNode(f"{BASE}id/{name}") for name in (
        "person/p", "party/p", "municipality/us-ut-town", "place/US-UT",
    ))  # fmt: skip
    speech, document = mint("speech", "a"), mint("document", "a")
    with opened(tmp_path / "data") as kg:

        def say(*said: tuple[NamedNode, NamedNode, NamedNode | Literal]) -> None:
            kg.store.commit({names: [Quad(*each, names) for each in said]})

        def read() -> tuple[list[str], list[str], list[str], list[str | None]]:
            reader = Reader(kg)
            return (
                [each.label for each in speakers(reader)],
                [each.label for each in parties(reader)],
                [each.state for each in load_municipalities(reader)],
                [each.place for each in count_documents(kg).by_place],
            )

        about = (
            (speech, RDF.type, KG.Speech), (speech, KG.speaker, person), (speech, KG.speakerAsRecorded, Literal("R")),
            (speech, KG.party, party), (town, RDF.type, KG.Municipality), (town, SKOS.prefLabel, Literal("Town")),
            (document, RDF.type, KG.PolicyDocument), (document, KG.jurisdiction, town),
            (document, KG.slug, Literal("a")),
        )  # fmt: skip
        kg.store.commit({source: [Quad(*each, source) for each in about]})
        assert read() == (["R"], ["p"], [""], ["Town"])
        person_named = (person, RDF.type, FOAF.Person), (person, FOAF.name, Literal("N"))
        say(*person_named)
        assert read()[0] == ["N"]
        say(*person_named, (party, SKOS.prefLabel, Literal("P")))
        assert read()[:2] == (["N"], ["P"])
        say((town, KG.within, state))
        assert read() == (["R"], ["p"], ["Utah"], ["Town"])
        say((town, SKOS.altLabel, Literal("A")), (state, RDF.type, KG.Place), (state, SKOS.prefLabel, Literal("Z")))
        assert read()[2:] == ([""], ["Town"])


def test_headings_follow_the_order_of_the_passages(tmp_path: Path) -> None:
    document, graph = mint("document", "a"), mint("graph", "src", "climate", "a")
    with opened(tmp_path / "data") as kg:

        def write_positions(*numbers: int) -> list[str]:
            quads = [
                Quad(document, RDF.type, KG.PolicyDocument, graph),
                Quad(document, DCTERMS.title, Literal("T"), graph),
            ]
            for number, position in enumerate(numbers):
                unit = mint("passage", "a", str(number))
                about: tuple[tuple[NamedNode, NamedNode | Literal], ...] = (
                    (RDF.type, KG.Passage), (DCTERMS.isPartOf, document), (SCHEMA.position, Literal(position)),
                    (SCHEMA.text, Literal(f"Heading {number}")),
                    (KG.blockType, mint("code", "blockType", "sectionHeading")),
                )  # fmt: skip
                quads += [Quad(unit, name, value, graph) for name, value in about]
            kg.store.commit({graph: quads})
            return [each.text for each in read_document(kg, document.value).outline]

        first = write_positions(0, 1)
        assert first == ["Heading 0", "Heading 1"]
        assert write_positions(1, 0) == [*reversed(first)]
