"""The tool `get_speech`: the full text of a speech, verified by its hash, with its context and record."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, Field
from pyoxigraph import Literal, NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import code_of, describe, origin_of
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.retrieval.results import Layout, Lean, Provenance, Result
from kg.retrieval.speech_records import (
    Speech,
    Utterance,
    join_text,
    load_full_text,
    load_spans,
    load_speech,
    load_speeches,
    load_texts,
    load_utterances,
)
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.text import quoted
from kg.vocabulary import DCTERMS, KG, SCHEMA

CONTEXT_CHARACTERS: Final = 2_000
"""Maximum characters of the utterance before or after. Truncation is reported."""

IN_DEBATE: Final = """
SELECT DISTINCT ?speech ?position WHERE {
  ?speech dcterms:isPartOf $debate . ?speech a kg:Speech ; schema:position ?position
}"""

ON_DAY: Final = """
SELECT DISTINCT ?speech ?position WHERE {
  ?speech dcterms:date $date . ?speech kg:chamber $chamber ; a kg:Speech ; schema:position ?position
}"""

DEBATES: Final = """
SELECT DISTINCT ?debate ?title ?parent WHERE {
  GRAPH $graph {
    $debate dcterms:isPartOf* ?debate . ?debate a kg:Debate
    OPTIONAL { ?debate dcterms:title ?title }
    OPTIONAL { ?debate dcterms:isPartOf ?parent }
  }
}"""

SpeechId = Annotated[str, Field(min_length=1, max_length=2_000, description="From search_speeches")]


class Other(BaseModel):
    """Text in full_text that the speaker did not say."""

    start: int = Field(description="Start in full_text, zero-based")
    end: int = Field(description="End, exclusive")
    said_by: str
    by_form: bool = Field(False, description="Only the form of the text names the speaker", exclude_if=operator.not_)


class Record(Lean):
    """Recorded properties of a speech, other than the fields of its result. Unknown ones are absent."""

    id: str = Field(description="IRI of the speech")
    speaker_id: str | None = Field(None, description="IRI of the person")
    speaker_as_recorded: str
    party_id: str | None = None
    chamber_id: str | None = None
    venue: str | None = Field(None, description="Separate meeting of the chamber, e.g. Federation Chamber")
    debate: str | None = Field(None, description="Headings of the debate, outermost first")
    debate_type: str | None = None
    speech_type: str | None = None
    answers: str | None = Field(None, description="Id of the question that it answers")
    role: str | None = None
    office: str | None = None
    in_government: bool | None = None
    first_speech: bool | None = None
    page: str | None = None
    source_lines: str | None = Field(None, description="First and last line in the source file")
    time: str | None = None
    transcript_quality: str | None = None
    text_sha256: str
    total_chunks: int
    interjections: int
    others: list[Other] = Field(description="Text by others than the speaker")
    before: str | None = Field(None, description="Id of the speech before it in the debate")
    after: str | None = Field(None, description="Id of the speech after it in the debate")


class SpeechDetail(Result):
    """A speech, verbatim. `state` and `party` are empty if not recorded."""

    layout: ClassVar[Layout] = Layout(text="full_text", reads=True)

    shown: ClassVar[frozenset[str]] = frozenset({"electorate", "source_url", "context_before", "context_after"})

    speech_id: str
    title: str
    speaker: str
    party: str
    chamber: str
    electorate: str | None
    state: str
    derived_state: str | None = Field(None, description="Not recorded: by electorate and year, or by a register")
    derived_party: str | None = Field(None, description="Not recorded: by other speeches of the day, or by a register")
    date: str
    hansard_reference: str
    derived_reference: bool = Field(description="Whether it follows from chamber, date and page: the source has none")
    topic_tags: list[str]
    full_text: str
    word_count: int
    source_url: str | None
    context_before: str | None = None
    context_after: str | None = None
    record: Record
    provenance: Provenance


def get_speech(
    kg: KnowledgeGraph,
    speech_id: SpeechId,
    include_context: Annotated[bool, Field(description="Also return the utterances before and after")] = False,
) -> SpeechDetail:
    """Read a whole speech verbatim, verified by its hash, with all its recorded properties.

    Use with a speech_id from `search_speeches`. full_text includes interjections; record.others lists their offsets
    and speakers. Returns title, speaker, party, chamber, electorate, state, date, hansard_reference (cite it),
    topic_tags, full_text, word_count, source_url, context_before, context_after, record, provenance.
    Example: get_speech(speech_id="b6272e0d-afe9-42b1-94dc-071928350acb").
    Next: `list_speakers` for who else spoke.
    """
    reader = Reader(kg)
    speech = load_speech(reader, clean_text("speech_id", speech_id, 2_000))
    spans = load_spans(reader, [speech.iri])[speech.iri]
    text = load_full_text(reader, speech, spans)
    utterances = load_utterances(reader, [speech.iri])[speech.iri]
    notes: list[str] = []
    before = after = None
    neighbours = find_neighbours(reader, speech)
    if include_context:
        before = _context(reader, neighbours[0], notes, last=True)
        after = _context(reader, neighbours[1], notes, last=False)
        if not speech.one(SCHEMA.position):
            notes.append("The source does not record the order of the speeches of this day.")
    descriptions = describe(reader, (), [speech.graph])
    result = SpeechDetail(
        notes=notes,
        speech_id=speech.speech_id,
        title=speech.title,
        speaker=speech.speaker,
        party=speech.party,
        chamber=speech.chamber,
        electorate=speech.electorate,
        state=speech.state,
        derived_state=speech.derived_state,
        derived_party=speech.derived_party,
        date=speech.date,
        hansard_reference=speech.reference,
        derived_reference=speech.has_derived_reference,
        topic_tags=speech.topics,
        full_text=text,
        word_count=len(text.split()),
        source_url=speech.url,
        context_before=before,
        context_after=after,
        record=_record(
            reader,
            speech,
            total_chunks=len(spans),
            interjections=sum(each.interjection for each in utterances),
            others=_others(speech, utterances),
            before=None if neighbours[0] is None else neighbours[0].speech_id,
            after=None if neighbours[1] is None else neighbours[1].speech_id,
        ),
        provenance=origin_of(reader, descriptions, speech.graph),
    )
    return reader.finish(result, total=1)


def find_neighbours(reader: Reader, speech: Speech) -> tuple[Speech | None, Speech | None]:
    """Find the speeches before and after in the debate or, without a debate, on the day."""
    position, debate, chamber = speech.one(SCHEMA.position), speech.one(DCTERMS.isPartOf), speech.one(KG.chamber)
    if position is None:
        return None, None
    if debate is not None:
        query = bind(IN_DEBATE, debate=NamedNode(debate))
    elif chamber is not None:
        days = [term for term in speech.values.get(DCTERMS.date.value, ()) if isinstance(term, Literal)]
        query = bind(ON_DAY, date=days[0], chamber=NamedNode(chamber))
    else:
        return None, None
    order = sorted(
        (int(term_text(row["position"])), iri_of(row["speech"])) for row in reader.rows("speeches around it", query)
    )
    own = (int(position), speech.iri)
    before = max((other for other in order if other < own), default=None)
    after = min((other for other in order if other > own), default=None)
    found = load_speeches(reader, [other[1] for other in (before, after) if other is not None])
    return (found.get(before[1]) if before else None), (found.get(after[1]) if after else None)


def _context(reader: Reader, speech: Speech | None, notes: list[str], *, last: bool) -> str | None:
    """Load the last or the first utterance of a speech, truncated at a word boundary."""
    if speech is None:
        return None
    utterances = load_utterances(reader, [speech.iri])[speech.iri]
    start, end = 0, int(speech.one(KG.length) or 0)
    if utterances:
        start, end = (utterances[-1].start, end) if last else (utterances[0].start, utterances[0].end)
    cut = end - start > CONTEXT_CHARACTERS
    if cut:
        start, end = (end - CONTEXT_CHARACTERS, end) if last else (start, start + CONTEXT_CHARACTERS)
    spans = [span for span in load_spans(reader, [speech.iri])[speech.iri] if span.start < end and span.end > start]
    texts = load_texts(reader, [span.iri for span in spans])
    text = join_text(speech, [(span.start, texts.get(span.iri, "")) for span in spans], start, end)
    if cut:
        text = re.sub(r"^\S*\s+", "", text) if last else re.sub(r"\s+\S*$", "", text)
        side = "before" if last else "after"
        notes.append(
            f"context_{side} is truncated. get_speech(speech_id={quoted(speech.speech_id)}) returns the full text."
        )
    return text.strip("\n") or None


def _others(speech: Speech, utterances: Sequence[Utterance]) -> list[Other]:
    voices = ((each, speech.other_voice(each)) for each in utterances if each.end > each.start)
    return [
        Other(start=each.start, end=each.end, said_by=voice, by_form=each.form is not None)
        for each, voice in voices
        if voice is not None
    ]


def _record(
    reader: Reader,
    speech: Speech,
    *,
    total_chunks: int,
    interjections: int,
    others: list[Other],
    before: str | None,
    after: str | None,
) -> Record:
    answered = speech.one(KG.answers)
    return Record(
        id=speech.iri,
        speaker_id=speech.one(KG.speaker),
        speaker_as_recorded=speech.one(KG.speakerAsRecorded) or "",
        party_id=speech.one(KG.party),
        chamber_id=speech.one(KG.chamber),
        venue=speech.label(KG.venue),
        debate=load_headings(reader, speech.graph, speech.one(DCTERMS.isPartOf)),
        debate_type=speech.one(KG.debateType),
        speech_type=_code(speech.one(KG.speechType)),
        answers=None if answered is None else speech.label(KG.answers, DCTERMS.identifier),
        role=speech.one(KG.role),
        office=_code(speech.one(KG.office)),
        in_government=_flag(speech.one(KG.inGovernment)),
        first_speech=_flag(speech.one(KG.firstSpeech)),
        page=speech.one(KG.pageNumber),
        source_lines=speech.one(KG.sourceLines),
        time=speech.one(SCHEMA.startTime),
        transcript_quality=_code(speech.one(KG.transcriptQuality)),
        text_sha256=speech.one(KG.textSha256) or "",
        total_chunks=total_chunks,
        interjections=interjections,
        others=others,
        before=before,
        after=after,
    )


def load_headings(reader: Reader, graph: str, debate: str | None) -> str | None:
    """Load the headings of a debate, outermost first, in one line."""
    if debate is None:
        return None
    rows = reader.rows("headings of the debate", bind(DEBATES, graph=NamedNode(graph), debate=NamedNode(debate)))
    above = {iri_of(row["debate"]): row for row in rows}
    path: list[str] = []
    at: str | None = debate
    while at is not None and (row := above.pop(at, None)) is not None:
        if "title" in row:
            path.insert(0, term_text(row["title"]))
        at = iri_of(row["parent"]) if "parent" in row else None
    return " / ".join(path) or None


def _code(iri: str | None) -> str | None:
    return None if iri is None else code_of(iri)


def _flag(text: str | None) -> bool | None:
    return None if text is None else text == "true"
