"""`search_speeches` over made-up speeches under three filters at once, and how well real questions are answered.

The vectors of the made-up speeches are random, made in no time, as in `search`: what is measured is everything but the
embedding of the query. No two requests have the same filters, so nothing is found in memory but names. Arguments: the
number of chunks (default 50,000), or ``languages`` for the queries in German and Galician alone.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_client import EdgeIndex
from kg.search.index_sync import repair_index
from kg.search.protocol import GraphUnits, IndexedUnit, Mode
from kg.search.shards import Shards
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from kg.settings import Settings
from kg.store.protocol import Rows, term_text
from kg.vocabulary import DCTERMS, FOAF, KG, RDF, SCHEMA, SKOS, XSD, mint, mint_part, mint_span, sha256
from loaders.hansard.parties import CHAMBERS
from loaders.sources import load
from tests.benchmarks.comparison import Comparison, median, p95
from tests.benchmarks.search import REQUESTS, SCRIPT, WARM_UP, Call, cached, plainly, words
from tests.tools.parliament.speech_queries import GOLDEN, Asked, by_index, by_tool, measured, queries

SPEECHES_A_DAY = 120
CHUNKS_A_SPEECH = 6
CHUNK_WORDS = 120
SPEAKERS = 300
PARTIES = ("labor", "liberal", "nationals", "greens", "independent", "one-nation")
STATES = ("NSW", "VIC", "QLD", "SA", "WA", "TAS", "NT", "ACT")
TAGS = tuple(f"topic_{number}" for number in range(40))
FIRST_DAY = date(2010, 2, 2)
LIMIT_MS = 60.0
LOST = 0.01
SHARED = Path(os.environ.get("QUADCITE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
WITH_A_MODEL = EdgeIndex.command

NAMED = """
SELECT DISTINCT ?speech (KEY AS ?key) WHERE {
  ?speech a kg:Speech ; dcterms:title ?title ; dcterms:identifier ?id
}"""

IDENTIFIED = "SELECT DISTINCT ?speech ?key WHERE { ?speech a kg:Speech ; dcterms:identifier ?key }"

Said = list[tuple[NamedNode, NamedNode | Literal]]


def speaker(number: int) -> tuple[NamedNode, str, str, str, str]:
    """Return a made-up person: node, name, party, state and chamber."""
    name = f"{'ABCDEFGHIJ'[number % 10]}{'aeiou'[number % 5]}r{number}, Jo, MP"
    chamber = "au-senate" if number % 3 == 0 else "au-representatives"
    return mint("person", f"aph-{number}"), name, PARTIES[number % 7 % 6], STATES[number % 8], chamber


def sitting(number: int) -> tuple[date, str]:
    """Return the day and the chamber of a sitting."""
    return FIRST_DAY + timedelta(days=number // 2 * 3), list(CHAMBERS)[number % 2]


def graphs(chunks: int) -> Iterator[tuple[NamedNode, list[Quad]]]:
    """Yield made-up sitting days as their graphs, and the graphs of people, parties and chambers."""
    vocabulary, weights = words()
    chance = random.Random(2)
    for number in range(SPEAKERS):
        node, name, *_ = speaker(number)
        graph = mint("graph", "ref", "person", f"aph-{number}")
        yield graph, [Quad(node, RDF.type, FOAF.Person, graph), Quad(node, FOAF.name, Literal(name), graph)]
    for kind, codes in (("party", PARTIES), ("chamber", tuple(CHAMBERS))):
        for code in codes:
            graph, label = mint("graph", "ref", kind, code), Literal(CHAMBERS.get(code, code), language="en")
            yield graph, [Quad(mint(kind, code), SKOS.prefLabel, label, graph)]  # type: ignore[arg-type]
    for number in range(max(1, chunks // (SPEECHES_A_DAY * CHUNKS_A_SPEECH))):
        on, chamber = sitting(number)
        graph, quads = mint("graph", "src", "hansard", chamber, on.isoformat()), []
        of_chamber = [each for each in range(SPEAKERS) if speaker(each)[4] == chamber]
        for ordinal in range(SPEECHES_A_DAY):
            text = " ".join(chance.choices(vocabulary, cum_weights=weights, k=CHUNKS_A_SPEECH * CHUNK_WORDS))
            by = speaker(chance.choice(of_chamber[: 1 + chance.randrange(len(of_chamber))]))
            tags = chance.sample(TAGS, 2) if ordinal % 2 else []
            subject = mint("speech", f"{on}-{chamber}-{ordinal}")
            quads += _speech(subject, graph, on, ordinal, by, tags, text)
        yield graph, quads


def _speech(
    iri: NamedNode, graph: NamedNode, on: date, ordinal: int, by: tuple[NamedNode, str, str, str, str],
    tags: Sequence[str], text: str,
) -> list[Quad]:  # fmt: skip
    person, name, party, state, chamber = by
    said: Said = [
        (RDF.type, KG.Speech),
        (DCTERMS.identifier, Literal(iri.value.rpartition("/")[2])),
        (DCTERMS.title, Literal(f"Business {ordinal}")),
        (DCTERMS.date, Literal(on.isoformat(), datatype=XSD.date)),
        (SCHEMA.position, Literal(ordinal)),
        (KG.speaker, person),
        (KG.speakerAsRecorded, Literal(name)),
        (KG.party, mint("party", party)),
        (KG.partyAsRecorded, Literal(party)),
        (KG.chamber, mint("chamber", chamber)),
        (KG.state, mint("place", f"AU-{state}")),
        (KG.hansardReference, Literal(f"Hansard, {on}, p. {ordinal}")),
        (KG.length, Literal(len(text))),
        (KG.textSha256, Literal(sha256(text))),
        *((DCTERMS.subject, Literal(tag)) for tag in tags),
    ]
    quads = [Quad(iri, name, value, graph) for name, value in said]
    utterance = mint_part(iri, "utterance", 0)
    about: Said = [
        (RDF.type, KG.Utterance),
        (DCTERMS.isPartOf, iri),
        (KG.utteranceType, mint("code", "utteranceType", "turn")),
        (KG.start, Literal(0)),
        (KG.end, Literal(len(text))),
    ]
    quads += [Quad(utterance, name, value, graph) for name, value in about]
    size = -(-len(text) // CHUNKS_A_SPEECH)
    for position in range(CHUNKS_A_SPEECH):
        start, end = max(0, position * size - 100), min(len(text), (position + 1) * size)
        chunk: Said = [
            (RDF.type, KG.SpeechChunk),
            (DCTERMS.isPartOf, iri),
            (SCHEMA.position, Literal(position)),
            (SCHEMA.text, Literal(text[start:end])),
            (KG.textSha256, Literal(sha256(text[start:end]))),
            (KG.start, Literal(start)),
            (KG.end, Literal(end)),
        ]
        quads += [Quad(mint_span(iri, start, end), name, value, graph) for name, value in chunk]
    return quads


def requests(chunks: int) -> dict[str, Callable[[int], Call]]:
    """Return makers of tool calls, by what they measure; the same number gives the same call."""
    vocabulary, _ = words()
    chance = random.Random(3)
    asked = [" ".join(chance.sample(vocabulary[:2_000], 4)) for _ in range(WARM_UP + REQUESTS)]
    days = max(1, chunks // (SPEECHES_A_DAY * CHUNKS_A_SPEECH))

    def period() -> dict[str, str]:
        first, last = sorted(sitting(chance.randrange(days))[0] for _ in range(2))
        return {"date_from": first.isoformat(), "date_to": (last + timedelta(days=chance.randrange(400))).isoformat()}

    def filters() -> dict[str, Any]:
        kind = chance.randrange(3)
        if kind == 0:
            return {"party": chance.choice(PARTIES), "chamber": chance.choice(list(CHAMBERS.values())), **period()}
        if kind == 1:
            return {"topics": chance.sample(TAGS, 3), "state": chance.choice(STATES), **period()}
        _, name, _, _, chamber = speaker(chance.randrange(SPEAKERS // 3))
        return {"speaker": name, "chamber": CHAMBERS[chamber], **period()}

    three = [filters() for _ in asked]
    wide = [{"chamber": chance.choice(list(CHAMBERS.values())), **period()} for _ in asked]

    def search(filtered: Sequence[dict[str, Any]] | None) -> Callable[[int], Call]:
        return lambda number: ("search_speeches", {"query": asked[number], **(filtered[number] if filtered else {})})

    return {"none": search(None), "three": search(three), "wide": search(wide)}


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the graph unless it is there, serve it, ask, and compare; then measure how well questions are answered."""
    if arguments[:1] == ["languages"]:
        yield from other_languages()
        return
    chunks = int(arguments[0]) if arguments else 50_000
    EdgeIndex.command = (*SCRIPT, "index")
    folder = cached(chunks, graphs, Path(__file__))
    calls = requests(chunks)
    with subprocess.Popen([*SCRIPT, "serve", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            times = {name: plainly(url, call, "/mcp/parliament") for name, call in calls.items()}
        finally:
            server.terminate()
    title = f"search_speeches, {chunks:,} chunks"
    beside = times["none"]
    yield Comparison(f"{title}, three filters, beside none: median", median(times["three"]), median(beside), "ms")
    limit = LIMIT_MS
    yield Comparison.at_most(f"{title}, three filters, beside none: p95", p95(times["three"]), "ms", limit, p95(beside))
    yield Comparison.at_most(f"{title}, a chamber and a period: p95", p95(times["wide"]), "ms", limit, p95(beside))
    EdgeIndex.command = WITH_A_MODEL
    yield from quality("golden queries", str(bundle.folder("fixtures") / "hansard"), GOLDEN, "?title")
    real = SHARED / "hansard" / "1998.xml"
    if real.is_file():
        asked = Path(__file__).with_name("speeches.toml")
        yield from quality("queries about a real day", str(real), asked, "?id")
    yield from other_languages()


def other_languages() -> Iterator[Comparison]:
    """Yield how well queries about German and Galician speeches are answered, beside BM25 with other stemmers or none.

    They are asked in the language of the speeches and in English. The speeches are those of both corpora together, so
    each query searches texts of two languages.
    """
    folders = [SHARED / "parlamint" / name for name in ("at", "es-ga")]
    if not all(folder.is_dir() for folder in folders):
        print("languages are not measured: the corpora are not there")
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "data"
        with KnowledgeGraph.open(folder, Settings(data_dir=folder, _env_file=None)) as kg:
            load(kg, "parliament", [*map(str, folders)])
            kg.search.wait()
            rows = kg.query(IDENTIFIED).result
            assert isinstance(rows, Rows)
            keys = {term_text(row["speech"]): term_text(row["key"]) for row in rows}
            units = _Units()
            repair_index(kg.store, units)  # type: ignore[arg-type]
            own = {unit.iri: unit.language for unit in units.found}
            others: dict[str, Mapping[str, str | None]] = {
                "BM25 without stemming": dict.fromkeys(own, "gl"),
                "BM25 stemmed as English": dict.fromkeys(own),
                "BM25": own,
            }
            ways = {name: _by_words(Path(place) / name, units.found, tags, keys) for name, tags in others.items()}
            groups = [
                (f"{name}{note}", queries(Path(__file__).with_name(f"speeches_{language}.toml"), wording))
                for language, name in (("de", "German"), ("gl", "Galician"))
                for wording, note in (("text", ""), ("english", " asked in English"))
            ]
            for name, asked in groups:
                tool = measured(asked, by_tool(kg, keys))
                lost = tool.unanswered
                yield Comparison(f"{name} ({len(asked)}): without results", lost, None, "", f"<= {LOST}", lost <= LOST)
                for way, search in ways.items():
                    other = measured(asked, search)
                    yield Comparison(f"{name}, beside {way}: recall at 10", tool.recall, other.recall, "")
                    yield Comparison(f"{name}, beside {way}: mean reciprocal rank", tool.mrr, other.mrr, "")


class _Units:
    """An index that only keeps the units that it is given."""

    def note_missing(self, graphs: int) -> None:
        pass

    def __init__(self) -> None:
        self.found: list[IndexedUnit] = []
        self._state: dict[str, str] = {}

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        self.found += [unit for content in graphs.values() for unit in content.units]
        self._state |= {graph: content.content_sha256 for graph, content in graphs.items()}

    def remove(self, graphs: object) -> None: ...

    def state(self) -> Mapping[str, str]:
        return self._state


def _by_words(
    folder: Path, units: Sequence[IndexedUnit], languages: Mapping[str, str | None], keys: Mapping[str, str]
) -> Callable[[Asked], Sequence[str]]:
    """Index `units` in `folder` as texts in these languages, by IRI; return the search by words."""
    index = UnitIndex(Shards(folder), VectorCache(folder), lambda query, number: None)
    index.begin(["urn:all"])
    index.put([replace(unit, graph="urn:all", language=languages[unit.iri]) for unit in units])
    index.finish({"urn:all": ""})

    def search(query: Asked) -> Sequence[str]:
        found = index.rank(query.text, None, None, 500, "bm25").candidates
        speeches = (each.iri.partition("#")[0] for each in found if each.bm25 > 0)
        return list(dict.fromkeys(keys[iri] for iri in speeches if iri in keys))

    return search


def quality(name: str, location: str, asked: Path, key: str) -> Iterator[Comparison]:
    """Yield how well queries about the speeches at `location` are answered, beside words alone and meaning alone.

    `key`, ?title or ?id, is what the queries know a speech by.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "data"
        with KnowledgeGraph.open(folder, Settings(data_dir=folder, _env_file=None)) as kg:
            load(kg, "hansard", [location])
            kg.search.wait()
            rows = kg.query(NAMED.replace("KEY", key)).result
            assert isinstance(rows, Rows)
            keys = {term_text(row["speech"]): term_text(row["key"]) for row in rows}
            golden = queries(asked)
            tool = measured(golden, by_tool(kg, keys))
            alone: tuple[tuple[str, Mode], ...] = (("words", "bm25"), ("meaning", "dense"))
            for word, mode in alone:
                other = measured(golden, by_index(kg, mode, keys))
                yield Comparison(f"{name}, beside {word} alone: recall at 10", tool.recall, other.recall, "")
                yield Comparison(f"{name}, beside {word} alone: mean reciprocal rank", tool.mrr, other.mrr, "")
            yield Comparison.at_least(f"{name}: recall at 10", tool.recall, 0.9, "", 1.0)
