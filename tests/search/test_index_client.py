"""The embedded index, in its real process, over a deterministic embedder."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from kg.errors import IndexUnavailableError, InvalidInputError, ModelError
from kg.processes import rpc
from kg.processes.child import ChildGoneError
from kg.search import index_client, shard
from kg.search.index_client import EdgeIndex
from kg.search.protocol import GraphUnits, IndexedUnit, IndexStatus, Ranking
from kg.search.shard import optimize_folder
from kg.search.shards import Shards
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from kg.settings import Settings
from tests.examples import spread
from tests.search.conftest import WordIndex, graph_units
from tests.search.word_embedder import WordEmbedder
from tests.waiting import find_children, is_alive, until

Open = Callable[..., WordIndex]


def iris(ranking: Ranking) -> list[str]:
    return [candidate.iri for candidate in ranking.candidates]


def kill(index: EdgeIndex) -> None:
    """kill -9 the process behind `index`."""
    connection = index._connection
    assert connection is not None
    os.kill(connection.child.process.pid, signal.SIGKILL)


def pending(index: EdgeIndex) -> int:
    return index.status().pending_vectors


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WordIndex]:
    folder = tmp_path_factory.mktemp("running")
    index = WordIndex(folder / "index", Settings(_env_file=None, model="words/32", models_dir=folder / "models"))
    yield index
    index.close()


class Answers:
    """Tests of what the process answers, not of how it starts and ends: one runs for all, emptied before each."""

    @pytest.fixture
    def index(self, running: WordIndex) -> WordIndex:
        running.remove(running.state())
        assert running.status().units == 0
        return running


class TestReplace(Answers):
    def test_units_are_searchable_by_text_on_return(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "geothermal wells of the rift valley", "solar roofs"))
        best = index.rank("geothermal well", limit=1).candidates[0]
        assert best.iri == "urn:d:a#p=0"
        assert best.bm25 > 0

    def test_the_prelude_is_searched_too(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "Article 1", prelude="Geothermal Act"))
        assert index.rank("geothermal", limit=1).candidates[0].bm25 > 0

    def test_a_graph_holds_exactly_the_units_given_last(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "first", "second", "third"))
        index.replace(graph_units("a", "first", "changed", version="2"))
        assert index.status().units == 2
        assert index.state() == {"urn:g:a": "2"}
        assert index.rank("second third", limit=9, units=["urn:d:a#p=1"]).candidates[0].bm25 == 0
        assert index.rank("changed", limit=1, units=["urn:d:a#p=1"]).candidates[0].bm25 > 0

    def test_units_are_counted_again_after_a_write_and_a_restart(
        self, index: WordIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []
        ask = index.status
        monkeypatch.setattr(index, "status", lambda: asked.append(1) or ask())
        index.replace(graph_units("a", "first", "second"))
        assert [index.count_units(), index.count_units()] == [2, 2]
        assert len(asked) == 1
        index.remove(["urn:g:a"])
        assert [index.count_units(), index.count_units()] == [0, 0]
        kill(index)
        until(lambda: index.status().problem is None)
        asked.clear()
        assert index.count_units() == 0
        assert len(asked) == 1

    def test_a_graph_without_units_is_known_by_its_hash(self, index: WordIndex) -> None:
        index.replace(graph_units("empty"))
        assert index.state() == {"urn:g:empty": "1"}

    def test_remove_forgets_the_graph_and_only_it(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "wind") | graph_units("b", "wind"))
        index.remove(["urn:g:a", "urn:g:unknown"])
        assert index.state() == {"urn:g:b": "1"}
        assert iris(index.rank("wind", limit=9)) == ["urn:d:b#p=0"]

    def test_a_unit_that_moves_to_another_graph_is_not_lost(self, index: WordIndex) -> None:
        unit = IndexedUnit("urn:u", "urn:g:a", "urn:d", "wandering text")
        moved = IndexedUnit("urn:u", "urn:g:b", "urn:d", "wandering text")
        index.replace({"urn:g:a": GraphUnits("1", [unit])})
        index.replace({"urn:g:b": GraphUnits("1", [moved]), "urn:g:a": GraphUnits("2", [])})
        assert iris(index.rank("wandering", limit=9)) == ["urn:u"]

    def test_many_units_and_many_graphs_arrive_whole(self, index: WordIndex) -> None:
        many = graph_units("large", *(f"clause {i}" for i in range(1_234)))
        for i in range(450):
            many |= graph_units(f"small{i}", f"note {i}")
        index.replace(many)
        status = index.status()
        assert (status.units, status.graphs) == (1_684, 451)
        assert index.rank("1233", limit=1).candidates[0].iri == "urn:d:large#p=1233"

    def test_a_unit_of_another_graph_is_refused(self, index: WordIndex) -> None:
        (content,) = graph_units("a", "text").values()
        with pytest.raises(InvalidInputError, match="urn:g:a"):
            index.replace({"urn:g:b": content})

    def test_a_lone_surrogate_is_refused_and_the_process_lives_on(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "text"))
        with pytest.raises(InvalidInputError, match="surrogate"):
            index.rank("\ud800", limit=1)
        with pytest.raises(InvalidInputError, match="surrogate"):
            index.replace(graph_units("b", "\udfff"))
        assert index.state() == {"urn:g:a": "1"}


class TestRank(Answers):
    def test_words_match_by_their_stem_and_without_accents(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "The regulation of emissions", "Énergies renouvelables", "Klimaschutzgesetze"))
        for query, expected in [
            ("regulations", 0),
            ("emission", 0),
            ("energie renouvelable", 1),
            ("klimaschutzgesetz", 2),
        ]:
            best = index.rank(query, limit=1).candidates[0]
            assert (best.iri, best.bm25 > 0) == (f"urn:d:a#p={expected}", True), query

    def test_rank_must_keeps_only_units_with_all_required_words(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "solar tariffs of the council", "solar roofs", "the council meets", "wind"))
        index.wait()
        every = [f"urn:d:a#p={i}" for i in range(4)]
        for units in (None, every):
            assert iris(index.rank("solar", units=units, limit=9, must=["tariff"])) == ["urn:d:a#p=0"]
            assert set(iris(index.rank("wind", units=units, limit=9, must=["solar"]))) == {every[0], every[1]}
            assert iris(index.rank("solar", units=units, limit=9, must=["solar", "councils"])) == ["urn:d:a#p=0"]
            assert iris(index.rank("solar", units=units, limit=9, must=["geothermal"])) == []

    def test_rank_prefers_units_with_the_words_next_to_each_other(self, index: WordIndex) -> None:
        apart = "tariff rules and council notes on solar roof tiles and feed"
        together = "notes on council tiles and roof rules and solar feed tariff"
        index.replace(graph_units("a", apart, together))
        index.wait()
        first, second = index.rank("solar feed tariff", limit=2, mode="hybrid").candidates
        assert (first.iri, first.pairs, second.pairs) == ("urn:d:a#p=1", 1.0, 0.0)

    def test_rank_states_the_model_and_the_words_of_each_candidate(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "solar feed tariff", "solar roofs", "rain"))
        index.wait()
        ranking = index.rank("solar tariff", limit=3)
        assert (ranking.model, ranking.pending) == ("words/32", 0)
        shares = {candidate.iri: candidate.words for candidate in ranking.candidates}
        assert shares["urn:d:a#p=0"] == 1
        assert 0 < shares["urn:d:a#p=1"] < 0.5
        assert shares["urn:d:a#p=2"] == 0

    def test_names_are_searched_by_words_and_not_embedded(self, index: WordIndex) -> None:
        unit = IndexedUnit("urn:u", "urn:g:a", "urn:d", "I rise on boats.", "Migration Bill", "en", True, "Ada Quill")
        plain = replace(unit, iri="urn:v", names="")
        index.replace({"urn:g:a": GraphUnits("1", [unit, plain])})
        index.wait()
        found = {c.iri: c for c in index.rank("quill", limit=9).candidates}
        assert found["urn:u"].bm25 > 0 == found["urn:v"].bm25
        assert found["urn:u"].cosine == found["urn:v"].cosine
        assert found["urn:u"].language == "en"

    def test_a_mode_ranks_by_words_or_by_meaning_alone(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "wind wind wind", "wind and sun", "rain"))
        index.wait()
        given = [f"urn:d:a#p={number}" for number in range(3)]
        for units in (None, given):
            words = index.rank("wind", limit=9, units=units, mode="bm25").candidates
            assert all(candidate.cosine is None for candidate in words)
            found = [candidate.bm25 for candidate in words if candidate.bm25 > 0]
            assert found == sorted(found, reverse=True)
            assert len(found) == 2
            meaning = index.rank("wind", limit=9, units=units, mode="dense").candidates
            assert len(meaning) == 3
            assert all(candidate.bm25 == 0 for candidate in meaning)
            cosines = [candidate.cosine or 0.0 for candidate in meaning]
            assert cosines == sorted(cosines, reverse=True)

    def test_scripts_without_spaces_match_within_a_sentence(self, index: WordIndex) -> None:
        texts = {
            "国家气候变化适应政策": "适应政策",
            "กฎหมายว่าด้วยการเปลี่ยนแปลง": "เปลี่ยนแปลง",
            "地熱エネルギーの開発": "エネルギー",
        }
        index.replace(graph_units("a", *texts))
        for number, query in enumerate(texts.values()):
            best = index.rank(query, limit=1).candidates[0]
            assert (best.iri, best.bm25 > 0) == (f"urn:d:a#p={number}", True)

    def test_every_given_unit_is_scored_also_one_that_the_index_lacks(self, index: WordIndex) -> None:
        index.replace(graph_units("a", *(f"clause {i}" for i in range(5_000))))
        wanted = [f"urn:d:a#p={i}" for i in range(5_000)] + ["urn:nowhere"]
        ranking = index.rank("clause 77", units=wanted, limit=6_000)
        assert ranking.exhaustive
        assert ranking.candidates[0].iri == "urn:d:a#p=77"
        assert sorted(iris(ranking)) == sorted(wanted)
        last = next(candidate for candidate in ranking.candidates if candidate.iri == "urn:nowhere")
        assert (last.score, last.bm25, last.cosine) == (0, 0, None)

    def test_the_score_of_a_unit_is_the_same_whichever_way_it_was_asked_for(self, index: WordIndex) -> None:
        index.replace(graph_units("a", *(f"energy clause {i} of {i % 7}" for i in range(700))))
        index.wait()
        proposed = index.rank("energy clause 5", limit=20).candidates
        listed = index.rank("energy clause 5", units=[c.iri for c in proposed], limit=20).candidates
        # how rare a word is, is measured among the candidates; it is no part of the score
        assert [replace(c, words=0.0) for c in listed] == [replace(c, words=0.0) for c in proposed]

    def test_parents_limit_the_proposals(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "wind farm") | graph_units("b", "wind turbine") | graph_units("c", "wind"))
        index.wait()
        parents = ["urn:d:a", "urn:d:b", *(f"urn:d:absent{i}" for i in range(20_000))]
        ranking = index.rank("wind", parents=parents, limit=9)
        assert set(iris(ranking)) == {"urn:d:a#p=0", "urn:d:b#p=0"}
        assert ranking.exhaustive
        assert index.rank("wind", parents=[], limit=9) == Ranking((), exhaustive=True)
        assert index.rank("wind", units=[], limit=9) == Ranking((), exhaustive=True)

    def test_a_short_page_is_the_beginning_of_a_long_one(self, index: WordIndex) -> None:
        texts = [f"{'energy ' * (i % 9)} {'policy ' * (i % 4)} article {i % 97} section {i % 13}" for i in range(3_000)]
        index.replace(graph_units("a", *texts))
        index.wait()
        for query in ("energy policy", "article 5 section 3", "policy"):
            long = index.rank(query, limit=400)
            assert not long.exhaustive
            for limit in (1, 10, 50, 200):
                assert index.rank(query, limit=limit).candidates == long.candidates[:limit], (query, limit)

    def test_proposals_are_the_best_of_all_units(self, index: WordIndex) -> None:
        texts = [f"{'energy ' * (i % 9)} article {i % 97} section {i % 13}" for i in range(2_000)]
        index.replace(graph_units("a", *texts))
        index.wait()
        everything = index.rank("energy section 3", units=[f"urn:d:a#p={i}" for i in range(2_000)], limit=25)
        assert index.rank("energy section 3", limit=25).candidates == everything.candidates

    def test_any_text_is_a_query(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "some text", "other text"))
        index.wait()
        for query in ("", " \n", "the of and", "a" * 10_000, "word " * 2_000, "🌍", "\"'`\\", "\0"):
            assert len(index.rank(query, limit=9).candidates) in (0, 2), query[:20]
            assert len(index.rank(query, units=["urn:d:a#p=0"], limit=9).candidates) == 1, query[:20]

    def test_limits_below_one_and_two_scopes_are_refused(self, index: WordIndex) -> None:
        with pytest.raises(InvalidInputError, match="limit"):
            index.rank("x", limit=0)
        with pytest.raises(InvalidInputError, match="not both"):
            index.rank("x", units=[], parents=[], limit=1)


class TestVectors:
    def test_pending_vectors_are_made_behind_the_load_with_progress(self, index: WordIndex) -> None:
        index.replace(graph_units("a", *(f"clause {i}" for i in range(300))))
        seen: list[IndexStatus] = []
        index.wait(seen.append)
        assert seen[-1] == IndexStatus(300, 0, 1, "words/32")
        assert index.rank("clause", limit=1).candidates[0].cosine is not None

    def test_identical_texts_are_embedded_once_across_graphs_and_time(self, index: WordIndex, words: Settings) -> None:
        index.replace(graph_units("a", "same", "same", "own") | graph_units("b", "same"))
        index.wait()
        index.replace(graph_units("c", "same", "fresh"))
        index.replace(graph_units("a", "own", "same", version="2", prelude="New title"))
        index.wait()
        computed = Counter((words.models_dir / "journal").read_text("utf-8").splitlines())
        assert computed == {"'same'": 1, "'own'": 1, "'fresh'": 1}

    def test_a_piece_in_context_means_what_it_stands_under_too(self, index: WordIndex, words: Settings) -> None:
        units = [
            IndexedUnit(f"urn:d:{number}#p", "urn:g", f"urn:d:{number}", "it is too dear", prelude, None, in_context)
            for number, (prelude, in_context) in enumerate(
                [("Geothermal", True), ("Geothermal", False), ("Fish", True)]
            )
        ]
        index.replace({"urn:g": GraphUnits("1", units)})
        index.wait()
        cosines = {
            each.iri: each.cosine for each in index.rank("geothermal", units=[u.iri for u in units], limit=3).candidates
        }
        assert cosines["urn:d:0#p"] > cosines["urn:d:1#p"] == pytest.approx(cosines["urn:d:2#p"], abs=0.2)
        computed = Counter((words.models_dir / "journal").read_text("utf-8").splitlines())
        texts = ("Geothermal\nit is too dear", "it is too dear", "Fish\nit is too dear")
        assert computed == {repr(text): 1 for text in texts}

    def test_the_best_window_of_a_long_text_counts(self, index: WordIndex) -> None:
        filler = "lorem ipsum dolor sit amet consectetur adipiscing elit " * 20
        index.replace(graph_units("a", filler + "geothermal wells", "geothermal lorem ipsum dolor sit amet elit wells"))
        index.wait()
        whole = index.rank("geothermal wells", units=["urn:d:a#p=0", "urn:d:a#p=1"], limit=2)
        cosines = {candidate.iri: candidate.cosine for candidate in whole.candidates}
        assert cosines["urn:d:a#p=0"] == pytest.approx(1, abs=0.01)
        assert cosines["urn:d:a#p=1"] < cosines["urn:d:a#p=0"]

    def test_without_the_model_words_are_searched_and_wait_says_what_to_do(
        self, open_index: Open, words: Settings
    ) -> None:
        index = open_index(words.model_copy(update={"model": "absent"}))
        index.replace(graph_units("a", "geothermal", "solar"))
        assert iris(index.rank("geothermal", limit=9)) == ["urn:d:a#p=0"]
        with pytest.raises(ModelError, match="kg models pull"):
            index.wait()
        status = index.status()
        assert (status.units, status.pending_vectors, status.model) == (2, 2, "absent")
        assert "kg models pull" in (status.embedder_error or "")

    def test_vectors_are_filled_in_by_whoever_opens_the_index_with_a_model(
        self, open_index: Open, words: Settings
    ) -> None:
        first = open_index(words.model_copy(update={"model": "absent"}))
        first.replace(graph_units("a", "geothermal"))
        first.close()
        second = open_index()
        second.wait()
        assert second.rank("geothermal", limit=1).candidates[0].cosine is not None

    def test_another_model_makes_new_vectors_and_leaves_the_text_index(self, open_index: Open, words: Settings) -> None:
        first = open_index()
        first.replace(graph_units("a", "geothermal", "solar"))
        first.wait()
        first.close()
        second = open_index(words.model_copy(update={"model": "words/64"}))
        second.wait()
        assert second.status() == IndexStatus(2, 0, 1, "words/64")
        assert second.state() == {"urn:g:a": "1"}
        assert (words.models_dir / "journal").read_text("utf-8").count("'solar'") == 2


@pytest.mark.long
class TestProcess:
    def test_after_kill_9_the_next_call_works_and_nothing_acknowledged_is_lost(self, index: WordIndex) -> None:
        for version in range(3):
            index.replace(graph_units("a", *(f"clause {version} {i}" for i in range(250)), version=str(version)))
            index.replace(graph_units(f"b{version}", "note"))
            kill(index)
            assert index.state()["urn:g:a"] == str(version)
            assert index.rank(f"{version}", limit=1).candidates[0].bm25 > 0
        assert index.status().units == 253
        index.wait()

    def test_waiting_for_vectors_outlasts_a_restart(self, index: WordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(index_client.TIMEOUT_S, "status", 0.01)  # less than a start takes
        monkeypatch.setattr(index_client, "_FIRST_STATUS_S", 0.01)
        pending = []

        def kill_once(status: IndexStatus) -> None:
            pending.append(status.pending_vectors)
            if len(pending) == 1:
                kill(index)

        index.replace(graph_units("a", *(f"clause {number}" for number in range(4_000))))
        first = index._connection
        index.wait(kill_once)
        assert pending[-1] == 0 < pending[0]
        assert first is not None
        assert "killed" in str(first.ended)

    @pytest.mark.long
    def test_a_replacement_that_is_killed_half_way_is_done_again(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "old"))
        killer = threading.Timer(0.05, kill, [index])
        killer.start()
        index.replace(graph_units("a", *(f"clause {i} with some more words" for i in range(9_000)), version="2"))
        killer.join()
        assert index.state() == {"urn:g:a": "2"}
        assert index.status().units == 9_000

    def test_a_replacement_that_nobody_finishes_shows_as_different(self, open_index: Open) -> None:
        index = open_index()
        index.replace(graph_units("a", "old") | graph_units("b", "kept"))
        index._connect().call("begin", graphs=["urn:g:a"])
        index._connect().call("put", units=[["urn:d:a#p=0", "urn:g:a", "urn:d:a", "new", "", None]])
        kill(index)
        assert index.state() == {"urn:g:b": "1"}
        index.replace(graph_units("a", "healed", version="2"))
        assert index.state() == {"urn:g:a": "2", "urn:g:b": "1"}
        assert index.status().units == 2

    def test_it_dies_with_its_parent(self, tmp_path: Path) -> None:
        program = (
            "import sys; from pathlib import Path; from kg.settings import Settings\n"
            "from tests.search.conftest import WordIndex, graph_units\n"
            "index = WordIndex(Path(sys.argv[1]), Settings(_env_file=None, model='absent'))\n"
            "index.replace(graph_units('a', 'text')); print(index._connection.child.process.pid, flush=True); input()"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with parent:
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            parent.kill()
        until(lambda: not is_alive(child))

    def test_it_outlives_the_thread_that_needed_it_first(self, index: WordIndex) -> None:
        starter = threading.Thread(target=index.replace, args=[graph_units("a", "text")])
        starter.start()
        starter.join()
        connection = index._connection
        time.sleep(0.1)
        assert index.state() == {"urn:g:a": "1"}
        assert index._connection is connection

    @pytest.mark.long
    def test_a_second_opener_is_told_who_has_the_index(self, open_index: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        first = open_index()
        first.replace(graph_units("a", "text"))
        assert first._connection is not None
        with pytest.raises(IndexUnavailableError, match=f"pid {first._connection.child.process.pid}"):
            open_index().state()
        assert first.state() == {"urn:g:a": "1"}

    @pytest.mark.long
    def test_a_process_that_keeps_dying_is_reported(self, index: WordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QUADCITE_TEST_DIE", "1")
        with pytest.raises(IndexUnavailableError, match="4 times"):
            index.state()

    @pytest.fixture
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(index_client.TIMEOUT_S, "status", 0.5)
        monkeypatch.setitem(index_client.TIMEOUT_S, "rank", 1.0)
        monkeypatch.setattr(rpc, "SILENT_S", 2.0)
        monkeypatch.setattr(rpc, "_PING_S", 0.5)

    @pytest.mark.long
    def test_calls_to_a_stopped_process_end_in_time_and_it_is_restarted(
        self, index: WordIndex, impatient: None
    ) -> None:
        index.replace(graph_units("a", "solar tariff", "wind"))
        assert iris(index.rank("solar", limit=1)) == ["urn:d:a#p=0"]
        assert index.status().problem is None
        assert index._connection is not None
        first = index._connection.child.process.pid
        os.kill(first, signal.SIGSTOP)
        begun = time.monotonic()
        status = index.status()
        assert status.problem is not None
        assert (status.units, status.graphs) == (2, 1)
        with pytest.raises(IndexUnavailableError):
            index.rank("solar", limit=1)
        assert time.monotonic() - begun < 30
        until(lambda: index.status().problem is None)
        assert index._connection.child.process.pid != first
        assert iris(index.rank("solar", limit=1)) == ["urn:d:a#p=0"]

    def test_a_process_that_answers_other_calls_is_busy_and_has_no_problem(
        self, index: WordIndex, impatient: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index.replace(graph_units("a", "solar tariff"))
        assert index.status().units == 1
        connection = index._connection
        assert connection is not None
        send = connection.child.send
        monkeypatch.setattr(
            connection.child, "send", lambda kind, data, *rest: b'"status"' in data or send(kind, data, *rest)
        )
        searching = threading.Thread(target=lambda: (time.sleep(0.1), index.rank("solar", limit=1)))
        searching.start()
        status = index.status()
        assert (status.units, status.problem) == (1, None)
        searching.join()
        assert not connection._late

    @pytest.mark.long
    def test_a_write_to_a_stopped_process_is_done_by_the_next(self, index: WordIndex, impatient: None) -> None:
        index.replace(graph_units("a", "old"))
        assert index._connection is not None
        os.kill(index._connection.child.process.pid, signal.SIGSTOP)
        long = "clause on energy and water " * 2_000
        index.replace(graph_units("a", *(f"{long} {number}" for number in range(50)), version="2"))
        assert index.state() == {"urn:g:a": "2"}
        assert index.status().units == 50

    @pytest.mark.long
    def test_a_process_that_works_longer_than_the_limit_of_silence_is_not_killed(
        self, index: WordIndex, impatient: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # `wait` waits for the embedder, and in this time only pings are answered
        monkeypatch.setenv("QUADCITE_TEST_OPENING_S", "4")
        index.replace(graph_units("a", "text"))
        assert index._connection is not None
        first = index._connection.child.process.pid
        index.wait()
        assert index._connection.child.process.pid == first
        assert iris(index.rank("text", limit=1)) == ["urn:d:a#p=0"]

    @pytest.mark.long
    def test_a_process_that_works_without_answering_is_not_killed(
        self, index: WordIndex, impatient: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("QUADCITE_TEST_BUSY_S", "4")  # in which no ping is answered
        index.replace({})
        index.state()
        assert index._connection is not None
        first = index._connection.child.process.pid
        begun = time.monotonic()
        while index.status().problem is None and time.monotonic() - begun < 5:
            time.sleep(0.05)
        index.wait()
        assert time.monotonic() - begun > rpc.SILENT_S
        assert index._connection.child.process.pid == first

    @pytest.mark.long
    def test_a_process_whose_idle_threads_wake_up_is_killed(
        self, index: WordIndex, monkeypatch: pytest.MonkeyPatch, impatient: None
    ) -> None:
        index.status()
        connection = index._connection
        assert connection is not None
        woken = itertools.count()
        monkeypatch.setattr(connection.child, "get_processor_s", lambda: 100 + next(woken) / 1_000_000)
        monkeypatch.setattr(rpc, "BUSY_S", 1_000.0)
        os.kill(connection.child.process.pid, signal.SIGSTOP)
        index.status()
        assert connection.child.process.wait(60) != 0

    @pytest.mark.long
    def test_a_search_leaves_out_the_shards_of_a_stopped_process_and_says_so(
        self, open_index: Open, tmp_path: Path, words: Settings
    ) -> None:
        made = UnitIndex(Shards(tmp_path / "index", most_texts=2), VectorCache(tmp_path), lambda query, number: None)
        for name in ("a", "b"):
            [(graph, content)] = graph_units(name, "solar tariff", f"wind {name}").items()
            made.begin([graph])
            made.put(content.units)
            made.finish({graph: content.content_sha256})
        made.shards.close()
        index = open_index(words.model_copy(update={"index_processes": 2}))
        index.wait()
        whole = index.rank("solar", limit=5)
        assert {*iris(whole)} >= {"urn:d:a#p=0", "urn:d:b#p=0"}
        assert (whole.exhaustive, whole.incomplete) == (True, None)
        assert index._connection is not None
        [pid] = find_children(index._connection.child.process.pid)
        os.kill(pid, signal.SIGSTOP)
        part = index.rank("solar tariff", limit=5)
        assert {iri.partition("#")[0] for iri in iris(part)} == {"urn:d:a"}
        assert part.incomplete is not None
        assert not part.exhaustive
        until(lambda: not is_alive(pid))
        until(lambda: index.rank("solar tariff", limit=5).incomplete is None)
        assert {*iris(index.rank("solar", limit=5))} == {*iris(whole)}

    @pytest.mark.long
    def test_an_index_that_cannot_be_opened_has_a_status_with_the_problem(self, open_index: Open) -> None:
        first = open_index()
        first.replace(graph_units("a", "text"))
        assert open_index().status().problem is not None

    @pytest.mark.parametrize("link", ["index", "index/entities", "index/shard-1", "index/entities/shard-1"])
    def test_a_folder_that_is_a_link_is_refused_and_what_it_leads_to_is_kept(
        self, index: WordIndex, tmp_path: Path, link: str
    ) -> None:
        victim = tmp_path / "victim"
        (victim / "shard-9").mkdir(parents=True)
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(victim)
        with pytest.raises(IndexUnavailableError, match="link"):
            index.state()
        assert (victim / "shard-9").is_dir()

    def test_a_closed_index_says_so(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "text"))
        index.close()
        index.close()
        with pytest.raises(IndexUnavailableError, match="closed"):
            index.state()

    @pytest.mark.parametrize("damage", spread(["record", "segments", "config", "version"], 2))
    def test_a_damaged_folder_is_begun_anew_for_the_store_to_fill(
        self, open_index: Open, tmp_path: Path, damage: str
    ) -> None:
        first = open_index()
        first.replace(graph_units("a", "text"))
        first.close()
        folder = tmp_path / "index" / "shard-1"
        if damage == "record":
            (folder / "index.json").write_text("{", "utf-8")
        elif damage == "version":
            (folder / "index.json").write_text('{"version": 99, "shard": "edge-1", "space": null}', "utf-8")
        elif damage == "config":
            (folder / "edge-1" / "edge_config.json").write_bytes(b"\0\xff")
        else:
            for path in (folder / "edge-1" / "segments").rglob("*"):
                if path.is_file():
                    path.write_bytes(os.urandom(64))
        second = open_index()
        assert second.state() == {}
        second.replace(graph_units("a", "text"))
        assert iris(second.rank("text", limit=1)) == ["urn:d:a#p=0"]

    def test_vectors_survive_a_new_index_and_a_copy(self, open_index: Open, words: Settings, tmp_path: Path) -> None:
        first = open_index()
        first.replace(graph_units("a", "solar levy", "wind levy"))
        first.wait()
        first.copy(tmp_path / "copy")
        first.close()
        journal = (words.models_dir / "journal").read_text("utf-8")
        for shard_folder in (tmp_path / "index").glob("shard-*"):
            shutil.rmtree(shard_folder)
        second = open_index()
        copied = WordIndex(tmp_path / "copy", words)
        for index in (second, copied):
            index.replace(graph_units("b", "wind levy", "solar levy"))
            index.wait()
            assert index.rank("solar levy", limit=1, mode="dense").candidates[0].iri in {"urn:d:b#p=1", "urn:d:a#p=0"}
        copied.close()
        assert (words.models_dir / "journal").read_text("utf-8") == journal, "no text was embedded again"

    def test_compaction_drops_the_vectors_of_texts_that_are_gone(self, open_index: Open, tmp_path: Path) -> None:
        first = open_index()
        first.replace(graph_units("a", "solar levy") | graph_units("b", "wind levy"))
        first.wait()
        first.remove(["urn:g:a"])
        first.close()
        folder = tmp_path / "index"
        assert VectorCache(folder).count("words/32") == 2
        subprocess.run([*WordIndex.command, "compact", str(folder)], check=True)
        assert VectorCache(folder).count("words/32") == 1
        second = open_index()
        second.wait()
        assert iris(second.rank("wind levy", limit=5)) == ["urn:d:b#p=0"]

    def test_answers_are_approximate_until_a_lost_shard_is_there_again(self, open_index: Open, tmp_path: Path) -> None:
        first = open_index()
        first.replace(graph_units("a", "text"))
        assert first.rank("text", limit=1).incomplete is None
        first.close()
        shutil.rmtree(tmp_path / "index" / "shard-1")
        second = open_index()
        second.replace(graph_units("a", "text"))
        lost = second.rank("text", limit=5)
        assert (lost.exhaustive, "1 shard" in str(lost.incomplete)) == (False, True)
        assert second.status().incomplete == lost.incomplete
        second.note_missing(7)
        assert "7 graphs" in str(second.rank("text", limit=5).incomplete)
        second.note_missing(0)
        assert second.rank("text", limit=5).incomplete is None

    def test_the_caller_never_stalls_while_the_index_works(self, index: WordIndex) -> None:
        gaps: list[float] = []
        done = threading.Event()

        def heart() -> None:
            last = time.process_time()
            while not done.wait(0.002):
                now = time.process_time()
                gaps.append(now - last)
                last = now

        graphs: dict[str, GraphUnits] = {}
        for i in range(100):
            graphs |= graph_units(f"g{i}", *(f"clause {i} {j} about energy and water rights" for j in range(100)))
        index.state()
        beating = threading.Thread(target=heart)
        beating.start()
        index.replace(graphs)
        index.wait()
        done.set()
        beating.join()
        assert max(gaps) < 0.1, "processor time of this process in which no other thread ran"

    @pytest.mark.long
    def test_searches_run_beside_a_large_replacement(self, index: WordIndex) -> None:
        index.replace(graph_units("a", "geothermal"))
        index.wait()
        large = graph_units("b", *(f"clause {i} about energy and water rights" for i in range(20_000)))
        loading = threading.Thread(target=index.replace, args=[large])
        started = time.perf_counter()
        loading.start()
        times = []
        while loading.is_alive():
            begun = time.perf_counter()
            assert index.rank("geothermal", limit=1).candidates[0].iri == "urn:d:a#p=0"
            times.append(time.perf_counter() - begun)
        loading.join()
        assert len(times) >= 5
        assert sorted(times)[len(times) // 2] < (time.perf_counter() - started) / 5


@pytest.mark.long
class TestOptimizing:
    """The shard itself, in this process: what happens behind the index when it has grown."""

    def make(self, folder: Path, count: int) -> tuple[UnitIndex, WordEmbedder]:
        embedder = WordEmbedder("words/16", 16)
        units = UnitIndex(
            Shards(folder, exact_vectors=300),
            VectorCache(folder),
            lambda text, number: embedder.embed_query(text).tolist(),
        )
        units.use_model(0, embedder.name, embedder.dimensions, None)
        self.put(units, embedder, "a", *(f"energy clause {i} of {i % 7}" for i in range(count)))
        return units, embedder

    def put(self, units: UnitIndex, embedder: WordEmbedder, name: str, *texts: str) -> None:
        for graph, content in graph_units(name, *texts).items():
            units.begin([graph])
            units.put(content.units)
            units.finish({graph: content.content_sha256})
        while waiting := units.pending("dense", 500):
            rows = embedder.embed_documents([text for _, text in waiting.values()])
            units.set_vectors(
                "dense",
                {id_: (waiting[id_][0], vector.astype(np.float16)) for id_, vector in zip(waiting, rows, strict=True)},
            )

    def test_the_optimized_copy_answers_the_same_and_has_what_was_written_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard, "_MIN_GROWING", 1_000)
        units, embedder = self.make(tmp_path, 1_000)
        before = units.rank("energy clause 12", None, None, 10)
        assert units.shards.find_grown() == "shard-1"

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
            self.put(units, embedder, "late", "geothermal surprise")
            optimize_folder(Path(command[-2]), command[-1])
            return subprocess.CompletedProcess(command, 0)

        monkeypatch.setattr(shard.subprocess, "run", run)
        assert units.shards.optimize("shard-1")
        assert units.shards.find_grown() is None
        assert units.rank("geothermal surprise", None, None, 1).candidates[0].iri == "urn:d:late#p=0"
        self.put(units, embedder, "late")
        units.shards.close()
        again = UnitIndex(
            Shards(tmp_path), VectorCache(tmp_path), lambda text, number: embedder.embed_query(text).tolist()
        )
        assert again.state() == {"urn:g:a": "1", "urn:g:late": "1"}
        after = again.rank("energy clause 12", None, None, 10)
        assert after.candidates == before.candidates
        assert [path.name for path in tmp_path.glob("shard-1/edge-*")] == ["edge-2"]
        again.shards.close()

    def test_a_failed_optimization_leaves_the_shard_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        units, _ = self.make(tmp_path, 400)
        failed = subprocess.CompletedProcess([], 137)
        monkeypatch.setattr(shard.subprocess, "run", lambda *_, **__: failed)
        assert not units.shards.optimize("shard-1")
        assert [path.name for path in tmp_path.glob("shard-1/edge-*")] == ["edge-1"]
        assert units.rank("energy clause 12", None, None, 1).candidates[0].iri == "urn:d:a#p=12"
        units.shards.close()

    def test_words_without_vectors_are_moved_out_of_memory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard, "_MIN_GROWING", 300)
        units = UnitIndex(Shards(tmp_path), VectorCache(tmp_path), lambda query, number: None)
        content = graph_units("a", *(f"energy clause {i} of {i % 7}" for i in range(400)))
        for graph, given in content.items():
            units.begin([graph])
            units.put([*given.units, *(replace(unit, iri=f"{unit.iri}-de", language="de") for unit in given.units)])
            units.finish({graph: "1"})
        questions = ("energy clause 12", "clause 300")
        before = [units.rank(question, None, None, 10) for question in questions]
        assert units.shards.find_grown() == "shard-1"
        assert units.shards.optimize("shard-1")
        assert units.shards.find_grown() is None
        assert [units.rank(question, None, None, 10) for question in questions] == before
        units.shards.close()

    def test_a_shard_that_is_being_written_is_optimized_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard, "_MIN_GROWING_AT_REST", 100)
        units, _ = self.make(tmp_path, 200)
        assert units.shards.find_grown() is None
        monkeypatch.setattr(shard, "REST_S", 0.0)
        assert units.shards.find_grown() == "shard-1"
        units.shards.close()

    def test_the_optimizing_process_does_it(self, tmp_path: Path) -> None:
        units, _ = self.make(tmp_path, 400)
        assert units.shards.optimize("shard-1")
        assert units.rank("energy clause 12", None, None, 1).candidates[0].iri == "urn:d:a#p=12"
        units.shards.close()


def test_neighbouring_batches_cover_all_units(index: WordIndex) -> None:
    """The sizes at which a message, an update or a page of the index is just full."""
    for count in (199, 200, 201, 1_000, 2_001):
        index.replace(graph_units("edge", *(f"clause {i}" for i in range(count)), version=str(count)))
        assert index.status().units == count


class SlowConnection:
    """Notes the requests that are sent and answered; `fails` is the number of the request that gets an error."""

    def __init__(self, fails: int | None = None) -> None:
        self.fails = fails
        self.sent: list[str] = []
        self.open: list[int] = []
        self.most = 0

    def begin(self, operation: str, **_: object) -> int:
        self.sent.append(operation)
        self.open.append(len(self.sent))
        self.most = max(self.most, len(self.open))
        return len(self.sent)

    def wait(self, call: int) -> None:
        self.open.remove(call)
        if call == self.fails:
            raise ChildGoneError

    def call(self, operation: str, **arguments: object) -> None:
        self.wait(self.begin(operation, **arguments))


class TestMessagesOfAReplacement:
    UNITS: ClassVar = [IndexedUnit(f"urn:u{number}", "urn:g", "urn:d", "text") for number in range(1_000)]

    def test_some_are_sent_ahead_and_all_are_answered_before_the_end(self) -> None:
        connection = SlowConnection()
        index_client._replace(connection, {"urn:g": GraphUnits("hash", self.UNITS)})  # type: ignore[arg-type]
        assert connection.sent == ["begin", *["put"] * 5, "finish"]
        assert connection.most == 1 + index_client._MESSAGES_AHEAD
        assert not connection.open

    def test_an_error_ends_it_and_leaves_no_request_without_an_answer(self) -> None:
        connection = SlowConnection(fails=2)
        with pytest.raises(ChildGoneError):
            index_client._replace(connection, {"urn:g": GraphUnits("hash", self.UNITS)})  # type: ignore[arg-type]
        assert connection.sent == ["begin", *["put"] * (1 + index_client._MESSAGES_AHEAD)]
        assert not connection.open
