"""The tool `search_speeches`: search by meaning and keywords with filters applied by SPARQL, one result per speech."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, Field

from kg.errors import StoreDamagedError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.asked import Asked
from kg.retrieval.evidence import code_of, describe, load_units, origin_of
from kg.retrieval.excerpts import EXCERPT_CHARACTERS, best_window, trim_to_words, window
from kg.retrieval.filters import Scope
from kg.retrieval.hybrid_search import Found, best_of_each
from kg.retrieval.reader import Reader, bounded, clean_query, clean_words
from kg.retrieval.results import (
    MOST_SKIPPED,
    QUERY_CHARACTERS,
    Judged,
    Lean,
    MinScore,
    Must,
    Neighbour,
    Offset,
    Provenance,
    Query,
    find_places,
)
from kg.retrieval.search_notes import advise, describe_ranking
from kg.retrieval.speech_records import (
    Span,
    Speech,
    Utterance,
    join_text,
    labels_of,
    load_spans,
    load_speeches,
    load_texts,
    load_utterances,
)
from kg.tools.parliament.speech_filters import (
    ChamberName,
    DateFrom,
    DateTo,
    PartyName,
    SpeakerName,
    SpeechFilters,
    StateName,
    Topics,
    list_known_speeches,
    speech_scope,
)
from kg.tools.search.neighbours import Neighbours, Shown, load_neighbours
from kg.vocabulary import FOAF, KG, SKOS

MOST: Final = 50

TopK = Annotated[int, Field(ge=1, le=MOST, description="Speeches to return")]


class SpeechEvidence(Lean):
    """The source of an excerpt."""

    id: str = Field(description="The best matching chunk, an id for `fetch`")
    speech: str = Field(description="IRI of the speech")
    start: int = Field(description="Start of the excerpt in full_text, zero-based")
    end: int = Field(description="End of the excerpt, exclusive")
    source_lines: str | None = Field(None, description="First and last line of the speech in the source file")
    provenance: Provenance


class SpeechSearchResult(BaseModel):
    """A matching speech with an excerpt. `party` is empty if none is recorded."""

    speech_id: str
    speaker: str = Field(description="Who said the words of the excerpt")
    in_speech_of: str | None = Field(
        None, description="Speaker of the speech, if another person", exclude_if=lambda value: value is None
    )
    attributed_by_form: str | None = Field(
        None, description="Form of the text that alone shows who speaks", exclude_if=lambda value: value is None
    )
    party: str = Field(description="Of that person")
    derived_party: str | None = Field(None, description="Not recorded: derived", exclude_if=lambda value: value is None)
    chamber: str
    date: str
    title: str
    language: str | None = Field(
        None, description="Of the excerpt, else of the speech (BCP 47)", exclude_if=lambda value: value is None
    )
    excerpt: str = Field(description="500 characters around the match, verbatim")
    relevance_score: float = Field(ge=0, le=1)
    hansard_reference: str
    derived_reference: bool = Field(description="The source has no reference; it follows from chamber, date, page")
    topic_tags: list[str]
    source_url: str | None
    chunk_index: int
    total_chunks: int
    evidence: SpeechEvidence
    before: list[Neighbour] = Field(default_factory=list, exclude_if=operator.not_)
    after: list[Neighbour] = Field(default_factory=list, exclude_if=operator.not_)


class SpeechSearchResults(Judged):
    """Speeches, best first."""

    results: list[SpeechSearchResult]
    nearest: list[SpeechSearchResult] = Field(
        default_factory=list,
        description="Without results: the nearest speeches, probably not an answer",
        exclude_if=lambda value: not value,
    )


def search_speeches(
    kg: KnowledgeGraph,
    query: Query,
    speaker: SpeakerName = None,
    party: PartyName = None,
    chamber: ChamberName = None,
    date_from: DateFrom = None,
    date_to: DateTo = None,
    topics: Topics = None,
    state: StateName = None,
    top_k: TopK = 10,
    offset: Offset = 0,
    must: Must | None = None,
    min_score: MinScore | None = None,
    neighbours: Neighbours = 0,
) -> SpeechSearchResults:
    """Find parliamentary speeches by meaning and words, best first, each once.

    Use for who said what on a topic. A speech must pass all filters and have one topic; with speaker or party, excerpts
    quote only that person or party, also in speeches of others (in_speech_of). Each result: speech_id, speaker (of the
    excerpt), party, chamber, date, title, excerpt, relevance_score (0 to 1), hansard_reference (cite it), topic_tags,
    source_url, chunk_index, total_chunks, evidence. notes report how an inexact name was interpreted.
    Example: search_speeches(query="rooftop solar", party="Greens", date_from="2024-01-01", top_k=5).
    Next: `get_speech` for the whole speech.
    """
    words = clean_query("query", query, QUERY_CHARACTERS)
    bounded("top_k", top_k, 1, MOST)
    bounded("offset", offset, 0, MOST_SKIPPED)
    reader = Reader(kg)
    filters = SpeechFilters(speaker, party, chamber, date_from, date_to, topics, state)
    narrowed = [name for name, value in asdict(filters).items() if value]
    scope, notes = speech_scope(reader, filters, quoted=True)
    known, scope = list_known_speeches(reader, filters, scope)
    reader.start_selection()
    required = clean_words(must or ())
    asked = Asked(words, required, min_score)
    found = best_of_each(reader, asked, scope, limit=top_k, offset=offset, wide=filters.none, known=known)
    speeches = load_speeches(reader, [unit.document for unit in found.units or found.nearest])
    built = _build_results(reader, found.units or found.nearest, speeches, words, neighbours)
    results, nearest = (built, []) if found.units else ([], built)
    if found.completeness == "truncated":
        notes.append("Too few of the speeches that the index proposed pass the filters. Narrow the query or filters.")
    elif offset and not results:
        notes.append(f"No results from offset {offset} on.")
    elif not results:

        def widen(names: Collection[str]) -> Scope:
            return speech_scope(Reader(kg), replace(filters, **dict.fromkeys(names)), quoted=True)[0]

        notes += advise(kg, asked, found, scope, "speeches", narrowed, widen)
    notes += describe_ranking(found, "chunks", required)
    return reader.finish(
        SpeechSearchResults(
            results=results,
            notes=notes,
            covers=found.relevance.stated,
            uncovered_reason=found.relevance.reason,
            nearest=nearest,
            reranked=found.reranked,
            degraded=found.degraded,
            places=find_places((each.document for each in found.units), (each.evidence.speech for each in results)),
        ),
        total=found.total,
        next_offset=found.next_offset,
        completeness=found.completeness,
    )


def _build_results(
    reader: Reader, units: Sequence[Found], speeches: Mapping[str, Speech], query: str, neighbours: int
) -> list[SpeechSearchResult]:
    """Build the results for the best chunks of speeches, each with an excerpt and as many `neighbours`."""
    excerpts = _excerpts(reader, speeches, {unit.document: unit.iri for unit in units}, query)
    quoted_units = load_units(reader, [each.span.iri for each in excerpts.values()] if neighbours else [])
    around = load_neighbours(reader, quoted_units.values(), neighbours)
    descriptions = describe(reader, (), {speech.graph for speech in speeches.values()})
    results = []
    for unit in units:
        if (speech := speeches.get(unit.document)) is None or (quoted := excerpts.get(unit.document)) is None:
            continue
        span, voice = quoted.span, quoted.voice
        results.append(
            SpeechSearchResult(
                speech_id=speech.speech_id,
                speaker=voice.speaker,
                in_speech_of=voice.in_speech_of,
                attributed_by_form=voice.form,
                party=voice.party,
                derived_party=voice.derived_party,
                chamber=speech.chamber,
                date=speech.date,
                title=speech.title,
                language=(unit.scored and unit.scored.language) or speech.language,
                excerpt=quoted.text,
                relevance_score=min(1.0, max(0.0, unit.score)),
                hansard_reference=speech.reference,
                derived_reference=speech.has_derived_reference,
                topic_tags=speech.topics,
                source_url=speech.url,
                chunk_index=span.position,
                total_chunks=quoted.chunks,
                evidence=SpeechEvidence(
                    id=span.iri,
                    speech=speech.iri,
                    start=quoted.start,
                    end=quoted.end,
                    source_lines=speech.one(KG.sourceLines),
                    provenance=origin_of(reader, descriptions, speech.graph),
                ),
                before=around.get(span.iri, Shown()).before,
                after=around.get(span.iri, Shown()).after,
            )
        )
    return results


class _Voice(NamedTuple):
    """The speaker of the words of an excerpt."""

    speaker: str
    party: str
    derived_party: str | None
    in_speech_of: str | None = None
    form: str | None = None


class _Quoted(NamedTuple):
    """An excerpt: its text, chunk, offsets in the speech, speaker, and the number of chunks of the speech."""

    text: str
    span: Span
    start: int
    end: int
    voice: _Voice
    chunks: int


def _excerpts(
    reader: Reader, speeches: Mapping[str, Speech], best: Mapping[str, str], query: str
) -> dict[str, _Quoted]:
    """Cut an excerpt of each speech. It contains the words of one person only."""
    spans = load_spans(reader, list(speeches))
    utterances = load_utterances(reader, list(speeches))
    chosen = {iri: next((span for span in spans[iri] if span.iri == best[iri]), None) for iri in speeches}
    # With the chunks that an excerpt may reach into, so that one query loads all texts.
    reached = {
        each.iri
        for iri, span in chosen.items()
        if span is not None
        for each in spans[iri]
        if each.start <= span.end + EXCERPT_CHARACTERS and each.end >= span.start - EXCERPT_CHARACTERS
    }
    texts = load_texts(reader, sorted(reached))
    bounds: dict[str, tuple[Span, int, int]] = {}
    said: dict[str, Utterance] = {}
    wanted: set[str] = set()
    for iri, speech in speeches.items():
        span = chosen[iri]
        if span is None:
            continue
        utterance = next((each for each in utterances[iri] if each.start <= span.start and span.end <= each.end), None)
        if utterance is None:
            low, high = 0, _length_of(speech)
        else:
            low, high, said[iri] = utterance.start, utterance.end, utterance
        place = best_window(texts.get(span.iri, ""), query, EXCERPT_CHARACTERS)
        first, last = (span.start + place[0], span.start + place[1]) if place else (span.start, span.end)
        start, end = window(low, high, first, last, EXCERPT_CHARACTERS)
        bounds[iri] = span, start, end
        # One more character on each side shows whether a word is cut.
        wanted.update(each.iri for each in spans[iri] if each.start < end + 1 and each.end > start - 1)
    texts |= load_texts(reader, sorted(wanted - texts.keys()))
    voices = _load_voices(reader, speeches, said)
    found: dict[str, _Quoted] = {}
    for iri, (span, start, end) in bounds.items():
        speech, length = speeches[iri], int(speeches[iri].one(KG.length) or spans[iri][-1].end)
        low, high = max(0, start - 1), min(length, end + 1)
        near = [(each.start, texts.get(each.iri, "")) for each in spans[iri] if each.start < high and each.end > low]
        text = join_text(speech, near, low, high)
        first, last = trim_to_words(text, start - low, end - low)
        found[iri] = _Quoted(text[first:last], span, low + first, low + last, voices[iri], len(spans[iri]))
    return found


def _load_voices(reader: Reader, speeches: Mapping[str, Speech], said: Mapping[str, Utterance]) -> Mapping[str, _Voice]:
    """Load the speaker of the utterance of each speech that is quoted; without utterances, that of the speech."""
    others = {
        iri: (utterance, name)
        for iri, utterance in said.items()
        if (name := speeches[iri].other_voice(utterance)) is not None
    }
    nodes = {node for utterance, _ in others.values() for node in (utterance.person, utterance.party) if node}
    labels = labels_of(reader, nodes)
    voices = {}
    for iri, speech in speeches.items():
        if iri not in others:
            form = said[iri].form if iri in said else None
            voices[iri] = _Voice(speech.speaker, speech.party, speech.derived_party, form=form)
            continue
        utterance, name = others[iri]
        known = labels.get(utterance.person or "", {}).get(FOAF.name)
        party = utterance.party and labels.get(utterance.party, {}).get(SKOS.prefLabel, code_of(utterance.party))
        recorded, derived = (None, party) if utterance.has_derived_party else (party, None)
        voices[iri] = _Voice(known or name, recorded or "", derived, speech.speaker, utterance.form)
    return voices


def _length_of(speech: Speech) -> int:
    length = speech.one(KG.length)
    if length is None:
        raise StoreDamagedError(f"Speech {speech.speech_id} has no recorded length. Load it again.")
    return int(length)
