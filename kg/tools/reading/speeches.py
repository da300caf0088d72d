"""Speeches and sitting days to be read: who said which words, the headings around them, divisions between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import code_of, describe, load_units, origin_of
from kg.retrieval.reader import Reader, iri_of, read_counts
from kg.retrieval.results import Provenance, Statement
from kg.retrieval.speech_records import (
    Span,
    Speech,
    Utterance,
    join_text,
    labels_of,
    load_full_text,
    load_spans,
    load_speech,
    load_speeches,
    load_texts,
    load_utterances,
)
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Term, term_text
from kg.text import quoted
from kg.tools.parliament.speeches import find_neighbours
from kg.tools.parliament.votes import DivisionNames, load_division_names
from kg.tools.reading.documents import PASSAGES, CitedBy, load_cited_by
from kg.tools.reading.marks import Mark, Marks, load_marks
from kg.vocabulary import DCTERMS, KG, SCHEMA, SKOS

GRAPHS_OF: Final = """
SELECT ?graph ?class WHERE { GRAPH ?graph { $iri a ?class } }"""

PARTS_OF_DAY: Final = """
SELECT ?node ?class ?property ?value WHERE {
  VALUES ?class { kg:Debate kg:Speech kg:Division kg:ProceduralText kg:Sitting }
  GRAPH $graph { ?node a ?class . ?node ?property ?value }
  FILTER(?property IN (dcterms:isPartOf, schema:position, dcterms:title, dcterms:date, kg:debateType, kg:venue))
}"""

CHUNKS_OF_DAY: Final = """
SELECT ?speech (COUNT(?unit) AS ?count) WHERE {
  GRAPH $graph { ?unit a kg:SpeechChunk . ?unit dcterms:isPartOf ?speech }
} GROUP BY ?speech"""

SITTING: Final = """
SELECT ?property ?value WHERE {
  GRAPH $graph { $sitting ?property ?value }
  FILTER(?property IN (dcterms:date, kg:chamber, kg:chamberAsRecorded, kg:hansardReference, kg:parliamentNumber,
                       kg:sessionNumber, kg:periodNumber, kg:jurisdiction, kg:proof))
}"""

DAYS: Final = """
SELECT DISTINCT ?sitting ?date WHERE { ?sitting a kg:Sitting . ?sitting kg:chamber $chamber ; dcterms:date ?date }"""

_KINDS: Final = {
    KG.Debate.value: "debate",
    KG.Speech.value: "speech",
    KG.Division.value: "division",
    KG.ProceduralText.value: "text",
}


@dataclass(frozen=True, slots=True)
class Voice:
    """The words `start` to `end` of a speech, and who said them."""

    start: int
    end: int
    kind: str
    """``turn``, ``continuation``, ``interjection`` or ``remark``; empty where the record does not say."""
    name: str | None
    """The person, if not the speaker of the speech."""
    person: str | None = None
    party: str | None = None
    by_form: bool = False
    """Whether only the form of the text names the person."""


@dataclass(frozen=True, slots=True)
class SpeechText:
    """A speech with its words, voices and marks."""

    speech: Speech
    text: str
    voices: Sequence[Voice]
    chunks: Sequence[Span]
    marks: Sequence[Mark]

    @property
    def iri(self) -> str:
        """The IRI of the speech."""
        return self.speech.iri

    @property
    def speaker_iri(self) -> str | None:
        """The IRI of the speaker, if known."""
        return self.speech.one(KG.speaker)

    @property
    def kind(self) -> str | None:
        """Its type: speech, question, answer."""
        code = self.speech.one(KG.speechType)
        return None if code is None else code_of(code)

    @property
    def time(self) -> str | None:
        """The time at which it began, as HH:MM."""
        time = self.speech.one(SCHEMA.startTime)
        return None if time is None else time[:5]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The turn before or after a speech."""

    iri: str
    speaker: str
    title: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading above a speech."""

    iri: str
    title: str


@dataclass(frozen=True, slots=True)
class SpeechPage:
    """A speech with its context."""

    said: SpeechText
    headings: Sequence[Heading]
    sitting: str | None
    before: Neighbour | None
    after: Neighbour | None
    marks: Marks
    cited_by: CitedBy
    provenance: Provenance
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)


def read_speech(kg: KnowledgeGraph, iri: str, citing_page: int = 1) -> SpeechPage:
    """Load a speech by its id or IRI. Raises NotFoundError, and StoreDamagedError if its text was changed."""
    reader = Reader(kg)
    speech = load_speech(reader, iri)
    [said], marks = load_speech_texts(reader, [speech], verify=True)
    before, after = find_neighbours(reader, speech)
    nodes, sitting = load_day_of(reader, speech.graph)
    headings: list[Heading] = []
    above = nodes.get(speech.iri)
    while above is not None and (above := nodes.get(above.parent or "")) is not None:
        headings.insert(0, Heading(above.iri, above.title))
    return SpeechPage(
        said=said,
        headings=headings,
        sitting=sitting,
        before=None if before is None else Neighbour(before.iri, before.speaker, before.title),
        after=None if after is None else Neighbour(after.iri, after.speaker, after.title),
        marks=marks,
        cited_by=load_cited_by(reader, NamedNode(speech.iri), citing_page),
        provenance=origin_of(reader, describe(reader, (), [speech.graph]), speech.graph),
        generation=reader.kg.generation,
        queries=list(reader.ran),
    )


def load_speech_texts(
    reader: Reader, speeches: Sequence[Speech], *, verify: bool = False
) -> tuple[list[SpeechText], Marks]:
    """Load the words, voices and marks of speeches. With `verify`, texts are compared with their recorded hashes."""
    iris = [speech.iri for speech in speeches]
    spans = load_spans(reader, iris)
    utterances = load_utterances(reader, iris)
    texts = load_texts(reader, [span.iri for iri in iris for span in spans[iri]])
    marks = load_marks(reader, texts)
    parties = {each.party for some in utterances.values() for each in some if each.party}
    labels = labels_of(reader, parties)
    found = []
    for speech in speeches:
        own = spans[speech.iri]
        if verify:
            text = load_full_text(reader, speech, own)
        else:
            text = join_text(speech, [(span.start, texts.get(span.iri, "")) for span in own], 0, _length(speech))
        moved = {mark: None for span in own for mark in marks.of(span.iri, span.start)}  # chunks may overlap
        voices = [*_split_voices(speech, utterances[speech.iri], len(text), labels)]
        found.append(SpeechText(speech, text, voices, own, list(moved)))
    return found, marks


def _length(speech: Speech) -> int:
    return int(speech.one(KG.length) or 0)


def _split_voices(
    speech: Speech, utterances: Sequence[Utterance], length: int, labels: Mapping[str, Mapping[NamedNode, str]]
) -> Iterator[Voice]:
    """Yield the voices of a speech in order, so that each character is in one."""
    at = 0
    for each in utterances:
        start, end = max(each.start, at), min(each.end, length)
        if start >= end:
            continue
        if at < start:
            yield Voice(at, start, "", None)
        name = speech.other_voice(each)
        party = labels.get(each.party or "", {}).get(SKOS.prefLabel) if name is not None else None
        yield Voice(start, end, code_of(each.kind), name, each.person, party, each.form is not None)
        at = end
    if at < length:
        yield Voice(at, length, "", None)


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a sitting day."""

    iri: str
    kind: str
    """``debate``, ``speech``, ``division`` or ``text``."""
    parent: str | None
    position: int
    title: str
    venue: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A part of a sitting day in the order of the record, with its depth, its page from 1, and its passages."""

    node: Node
    depth: int
    page: int
    passages: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a sitting day with its words."""

    entry: Entry
    said: SpeechText | None = None
    division: DivisionNames | None = None
    text: str = ""
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True)
class Day:
    """A neighbouring sitting day."""

    iri: str
    date: str


@dataclass(frozen=True, slots=True)
class SittingPage:
    """A page of a sitting day, or of one debate of it."""

    iri: str
    sitting: str
    title: str
    facts: Mapping[NamedNode, Sequence[Term]]
    chamber: str
    date: str
    headings: Sequence[Heading]
    """The headings above, if it is a debate."""
    outline: Sequence[Entry]
    items: Sequence[Item]
    speeches: int
    page: int
    pages: int
    before: Day | None
    after: Day | None
    marks: Marks
    provenance: Provenance
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)


def load_day_of(reader: Reader, graph: str) -> tuple[Mapping[str, Node], str | None]:
    """Load the parts of the sitting day in a graph, and its IRI. Cached until the next commit."""

    def read(rows: list[dict[str, Term]]) -> tuple[Mapping[str, Node], str | None]:
        said: dict[str, dict[str, Term]] = defaultdict(dict)
        kinds: dict[str, str] = {}
        sitting = None
        for row in rows:
            iri, kind = iri_of(row["node"]), iri_of(row["class"])
            if kind == KG.Sitting.value:
                sitting = iri
                continue
            kinds[iri] = _KINDS[kind]
            said[iri][iri_of(row["property"])] = row["value"]
        nodes = {}
        for iri, kind in kinds.items():
            values = said[iri]
            parent, position = values.get(DCTERMS.isPartOf.value), values.get(SCHEMA.position.value)
            title = values.get(DCTERMS.title.value) or values.get(KG.debateType.value)
            venue = values.get(KG.venue.value)
            nodes[iri] = Node(
                iri,
                kind,
                None if parent is None else iri_of(parent),
                int(term_text(position)) if position is not None else 0,
                "" if title is None else term_text(title),
                None if venue is None else iri_of(venue),
            )
        return nodes, sitting

    if is_user_graph(NamedNode(graph)):
        return {}, None
    return reader.kept("parts of the day", bind(PARTS_OF_DAY, graph=NamedNode(graph)), read)


def order_day(nodes: Mapping[str, Node], root: str, passages: Mapping[str, int]) -> list[Entry]:
    """Order the parts below `root` as the record has them, on pages of at most `PASSAGES` passages.

    The position of a speech is its number in the day. Texts and divisions have that of the speech before them, and
    debates are numbered among themselves: a debate is placed where its first part is.
    """
    below: dict[str, list[Node]] = defaultdict(list)
    for node in nodes.values():
        if node.parent is not None:
            below[node.parent].append(node)
    keys: dict[str, tuple[int, int, int]] = {}

    def key_of(node: Node, seen: frozenset[str] = frozenset()) -> tuple[int, int, int] | None:
        """Get the place of a node: of a debate that of its first part. None for a debate without parts."""
        if node.iri in keys or node.iri in seen:
            return keys.get(node.iri)
        if node.kind == "debate":
            found = [key for each in below[node.iri] if (key := key_of(each, seen | {node.iri})) is not None]
            if not found:
                return None
            keys[node.iri] = min(found)
        else:
            rank = {"speech": 0, "division": 1, "text": 2}[node.kind]
            number = node.iri.rpartition("=")[2].rpartition("/")[2]
            order = int(number) if number.isascii() and number.isdecimal() else 0
            keys[node.iri] = (node.position, rank > 0, order if rank == 2 else -1)
        return keys[node.iri]

    def sorted_below(iri: str) -> list[Node]:
        debates = sorted((each for each in below[iri] if each.kind == "debate"), key=lambda each: each.position)
        placed: list[tuple[tuple[int, int, int], int, Node]] = []
        last = (0, 0, -1)
        for each in debates:
            last = max(last, key_of(each) or last)  # a debate does not come before an earlier one
            placed.append((last, each.position, each))
        placed += [(key_of(each) or last, -1, each) for each in below[iri] if each.kind != "debate"]
        return [each for _, _, each in sorted(placed, key=lambda item: item[:2])]

    entries: list[Entry] = []
    stack = [(node, 0) for node in reversed(sorted_below(root))]
    seen: set[str] = set()
    page, held = 1, 0
    while stack:
        node, depth = stack.pop()
        if node.iri in seen:
            continue
        seen.add(node.iri)
        weight = 0 if node.kind == "debate" else max(1, passages.get(node.iri, 0))
        if held and held + weight > PASSAGES:
            page, held = page + 1, 0
        held += weight
        entries.append(Entry(node, depth, page, weight))
        stack += [(each, depth + 1) for each in reversed(sorted_below(node.iri))]
    return _keep_headings(entries)


def _keep_headings(entries: Sequence[Entry]) -> list[Entry]:
    """Move headings at the end of a page to the page with their first part."""
    kept = list(entries)
    for place in range(len(kept) - 2, -1, -1):
        above, below = kept[place], kept[place + 1]
        if above.node.kind == "debate" and below.depth > above.depth and below.page > above.page:
            kept[place] = replace(above, page=below.page)
    return kept


def read_sitting(kg: KnowledgeGraph, iri: str, page: int = 1) -> SittingPage:
    """Load a page of a sitting day, or of one of its debates. Raises NotFoundError for others."""
    reader = Reader(kg)
    graph, sitting, nodes, entries = load_entries(reader, iri)
    pages = entries[-1].page if entries else 1
    if not 1 <= page <= pages:
        raise NotFoundError(f"Page {page} does not exist. {quoted(iri)} has the pages 1 to {pages}.")
    facts: dict[NamedNode, list[Term]] = {}
    query = bind(SITTING, graph=NamedNode(graph), sitting=NamedNode(sitting))
    for row in reader.rows("properties of the day", query):
        facts.setdefault(NamedNode(iri_of(row["property"])), []).append(row["value"])
    shown = [entry for entry in entries if entry.page == page]
    items, marks = _load_items(reader, shown)
    chamber = facts.get(KG.chamber, [None])[0]
    names = labels_of(reader, [chamber.value]) if isinstance(chamber, NamedNode) else {}
    date = min((term_text(term) for term in facts.get(DCTERMS.date, ())), default="")
    headings: list[Heading] = []
    above = nodes.get(iri)
    while above is not None and (above := nodes.get(above.parent or "")) is not None:
        headings.insert(0, Heading(above.iri, above.title))
    before, after = _find_days(reader, chamber, sitting, date)
    return SittingPage(
        iri=iri,
        sitting=sitting,
        title=nodes[iri].title if iri in nodes else "",
        facts=facts,
        chamber=names.get(chamber.value, {}).get(SKOS.prefLabel, "") if isinstance(chamber, NamedNode) else "",
        date=date,
        headings=headings,
        outline=[entry for entry in entries if entry.node.kind == "debate"],
        items=items,
        speeches=sum(entry.node.kind == "speech" for entry in entries),
        page=page,
        pages=pages,
        before=before,
        after=after,
        marks=marks,
        provenance=origin_of(reader, describe(reader, (), [graph]), graph),
        generation=reader.kg.generation,
        queries=list(reader.ran),
    )


def load_entries(reader: Reader, iri: str) -> tuple[str, str, Mapping[str, Node], list[Entry]]:
    """Load the graph, the sitting day, its parts, and those below a sitting or debate in order."""
    rows = reader.rows("its graph", bind(GRAPHS_OF, iri=NamedNode(iri)))
    graphs = sorted(iri_of(row["graph"]) for row in rows if iri_of(row["class"]) in (KG.Sitting.value, KG.Debate.value))
    if not graphs:
        raise NotFoundError(f"{quoted(iri)} is not a sitting day or debate.")
    nodes, sitting = load_day_of(reader, graphs[0])
    query = bind(CHUNKS_OF_DAY, graph=NamedNode(graphs[0]))
    chunks = reader.kept("passages of its speeches", query, partial(read_counts, "speech", "count"))
    return graphs[0], sitting or iri, nodes, order_day(nodes, iri, chunks)


def _load_items(reader: Reader, entries: Sequence[Entry]) -> tuple[list[Item], Marks]:
    speeches = load_speeches(reader, [entry.node.iri for entry in entries if entry.node.kind == "speech"])
    texts, marks = load_speech_texts(reader, [*speeches.values()])
    said = {each.iri: each for each in texts}
    units = load_units(reader, [entry.node.iri for entry in entries if entry.node.kind == "text"])
    other = load_marks(reader, {iri: unit.text for iri, unit in units.items()})
    divisions = load_division_names(reader, [entry.node.iri for entry in entries if entry.node.kind == "division"])
    items = []
    for entry in entries:
        iri = entry.node.iri
        unit = units.get(iri)
        items.append(Item(entry, said.get(iri), divisions.get(iri), "" if unit is None else unit.text, other.of(iri)))
    return items, marks


def _find_days(reader: Reader, chamber: Term | None, sitting: str, date: str) -> tuple[Day | None, Day | None]:
    """Find the loaded sitting days of the chamber before and after one."""
    if not isinstance(chamber, NamedNode):
        return None, None

    def read(rows: list[dict[str, Term]]) -> list[tuple[str, str]]:
        return sorted({(term_text(row["date"]), iri_of(row["sitting"])) for row in rows})

    days = reader.kept("sitting days of the chamber", bind(DAYS, chamber=chamber), read)
    before = max((day for day in days if day < (date, sitting)), default=None)
    after = min((day for day in days if day > (date, sitting)), default=None)
    return (Day(before[1], before[0]) if before else None), (Day(after[1], after[0]) if after else None)
