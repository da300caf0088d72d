"""The tools `list_speakers` (people with parties and counts) and `speech_stats` (counts of speeches by group)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.evidence import code_of
from kg.retrieval.filters import Scope
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import Lean, Limit, Offset, Result, Statement
from kg.retrieval.speech_records import INTERJECTION, is_career, labels_of
from kg.store.protocol import Term, term_text
from kg.tools.parliament.person_names import find_offices, find_people
from kg.tools.parliament.speech_filters import (
    ChamberName,
    DateFrom,
    DateTo,
    PartyName,
    SpeakerName,
    SpeechFilters,
    StateName,
    Topics,
    interjection_scope,
    offices,
    parties,
    speakers,
    speech_scope,
)
from kg.vocabulary import SKOS

NOBODY: Final = "not recorded"

GroupBy = Literal["speaker", "party", "chamber", "year", "month", "topic"]

BY_SPEAKER: Final = """
SELECT ?speaker ?recorded ?party ?partyRecorded ?chamber ?electorate (COUNT(DISTINCT ?document) AS ?speeches)
       (SUM(?words) AS ?said) (MIN(?date) AS ?first) (MAX(?date) AS ?last) WHERE {
  { SELECT DISTINCT ?document WHERE {
  #DOCUMENT
  } }
  ?document dcterms:date ?date ; kg:chamber ?chamber
  OPTIONAL { ?document kg:speakerAsRecorded ?recorded }
  OPTIONAL { ?document kg:wordCount ?words }
  OPTIONAL { ?document kg:speaker ?speaker }
  OPTIONAL { ?document kg:party ?party }
  OPTIONAL { ?document kg:partyAsRecorded ?partyRecorded }
  OPTIONAL { ?document kg:electorate ?electorate }
} GROUP BY ?speaker ?recorded ?party ?partyRecorded ?chamber ?electorate"""

# Patterns that bind ?group. Each speech is in one group, but for topics.
GROUPS: Final[Mapping[GroupBy, str]] = {
    "speaker": """OPTIONAL { ?document kg:speaker ?someone } OPTIONAL { ?document kg:speakerAsRecorded ?name }
  BIND(COALESCE(?someone, ?name) AS ?group)""",
    "party": """OPTIONAL { ?document kg:party ?some } OPTIONAL { ?document kg:partyAsRecorded ?name }
  BIND(COALESCE(?some, ?name) AS ?group)""",
    "chamber": "OPTIONAL { ?document kg:chamber ?group }",
    "year": "OPTIONAL { ?document dcterms:date ?on BIND(SUBSTR(STR(?on), 1, 4) AS ?group) }",
    "month": "OPTIONAL { ?document dcterms:date ?on BIND(SUBSTR(STR(?on), 1, 7) AS ?group) }",
    "topic": """OPTIONAL {
    { ?document dcterms:subject ?group }
    UNION {
      ?unit dcterms:isPartOf ?document . ?unit kg:mentions ?group
      FILTER NOT EXISTS { ?document dcterms:subject ?anyOther }
    }
  }""",
}

COUNTS: Final = """
SELECT ?group (COUNT(?document) AS ?speeches) (COUNT(?counted) AS ?known) (SUM(?said) AS ?words)
       (MIN(?date) AS ?first) (MAX(?date) AS ?last) WHERE {
  { SELECT DISTINCT ?document ?group ?counted ?said ?date WHERE {
    { SELECT DISTINCT ?document WHERE {
  #DOCUMENT
    } }
    #GROUP
    OPTIONAL { ?document dcterms:date ?date }
    OPTIONAL { ?document kg:wordCount ?counted }
    BIND(COALESCE(?counted, 0) AS ?said)
  } }
} GROUP BY ?group"""

BY_PARTY_AND_YEAR: Final = f"""
SELECT ?group ?year (COUNT(?document) AS ?speeches) WHERE {{
  {{ SELECT DISTINCT ?document ?group ?year WHERE {{
    {{ SELECT DISTINCT ?document WHERE {{
  #DOCUMENT
    }} }}
    {GROUPS["party"]}
    {GROUPS["year"].replace("?group", "?year")}
  }} }}
}} GROUP BY ?group ?year"""

INTERJECTIONS: Final = """
SELECT ?group (COUNT(DISTINCT ?utterance) AS ?interjections) WHERE {
  { SELECT DISTINCT ?document WHERE {
  #DOCUMENT
  } }
  ?utterance dcterms:isPartOf ?document . ?utterance kg:utteranceType $interjection
  #GROUP
} GROUP BY ?group"""


# Interjections in speeches of others. ?said is the interjection.
MADE: Final = """
SELECT ?group (COUNT(DISTINCT ?said) AS ?interjections) WHERE {
  #SAID
  ?said kg:utteranceType $interjection ; dcterms:isPartOf ?document .
  #DOCUMENT
  #GROUP
} GROUP BY ?group"""


class Speaker(Lean):
    """A speaker. Without an id: a recorded name or office that is not linked to a person."""

    id: str | None = Field(None, description="IRI of the person")
    name: str
    recorded_names: list[str]
    parties: list[str]
    chambers: list[str]
    electorates: list[str]
    speeches: int
    words: int
    first: str
    last: str


class SpeakerResult(Result):
    """Speakers, most speeches first."""

    speakers: list[Speaker]


class Counted(BaseModel):
    """Counts for one group."""

    key: str | None = Field(description="IRI, tag, year or month; null if not recorded")
    label: str
    speeches: int
    words: int = Field(description="Words of the speeches, including interjections")
    uncounted: int = Field(0, description="Speeches without a word count", exclude_if=lambda value: not value)
    interjections: int = Field(description="Interjections by others in these speeches")
    interjections_made: int = Field(0, description="Interjections by them in speeches of others")
    first: str | None
    last: str | None


class Totals(BaseModel):
    """Counts for all groups together, each speech once."""

    speeches: int
    words: int
    interjections: int
    interjections_made: int = 0


class StatsResult(Result):
    """Counts by group: year and month in chronological order, else most speeches first."""

    group_by: GroupBy
    groups: list[Counted]
    totals: Totals


@dataclass(slots=True)
class _Tally:
    names: set[str] = field(default_factory=set)
    parties: set[str] = field(default_factory=set)
    chambers: set[str] = field(default_factory=set)
    electorates: set[str] = field(default_factory=set)
    speeches: int = 0
    words: int = 0
    days: set[str] = field(default_factory=set)


def list_speakers(
    kg: KnowledgeGraph,
    query: Annotated[str | None, Field(max_length=300, description="Name or part of one; default: all")] = None,
    party: PartyName = None,
    chamber: ChamberName = None,
    date_from: DateFrom = None,
    date_to: DateTo = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> SpeakerResult:
    """List speakers in parliament, with parties, chambers, electorates and counts, most speeches first.

    Use to find the name to filter speeches by. Returns speakers: id, name, recorded_names, parties, chambers,
    electorates, speeches, words, first, last (days).
    Example: list_speakers(party="Greens", limit=10).
    Next: `search_speeches` with speaker, `speech_stats` for more counts.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    scope, notes = speech_scope(reader, SpeechFilters(None, party, chamber, date_from, date_to))
    text = None if query is None else clean_text("query", query, 300)
    held = set(find_offices(text, offices(reader))) if text is not None else set()
    wanted = None if text is None or held else _called(reader, text)
    reader.start_selection()
    tallies: dict[tuple[str | None, str], _Tally] = defaultdict(_Tally)
    labelled: set[str] = set()
    for row in reader.kept("speakers", scope.compile(BY_SPEAKER), list):
        if "chamber" not in row:  # the one row of an empty GROUP BY
            continue
        recorded = term_text(row["recorded"]) if "recorded" in row else NOBODY
        iri = iri_of(row["speaker"]) if "speaker" in row else None
        if (held and recorded not in held) or (wanted is not None and (iri or recorded) not in wanted):
            continue
        tally = tallies[iri, "" if iri else recorded]
        tally.names |= {recorded} - {NOBODY}
        tally.speeches += int(term_text(row["speeches"]))
        tally.words += int(term_text(row["said"])) if "said" in row else 0
        tally.days |= {term_text(row["first"]), term_text(row["last"])}
        party_name = row.get("party") or row.get("partyRecorded")
        if party_name is not None and not is_career(term_text(party_name)):
            tally.parties.add(term_text(party_name))
        tally.chambers.add(iri_of(row["chamber"]))
        if "electorate" in row:
            tally.electorates.add(iri_of(row["electorate"]))
    labels = {choice.term.value: choice.label for choice in speakers(reader)}
    order = sorted(
        tallies.items(),
        key=lambda item: (-item[1].speeches, labels.get(item[0][0] or "", item[0][1]), item[0][0] or ""),
    )
    page = order[offset : offset + limit]
    for _, tally in page:
        labelled |= tally.chambers | tally.electorates | {name for name in tally.parties if "://" in name}
    named = {iri: names.get(SKOS.prefLabel) or code_of(iri) for iri, names in labels_of(reader, labelled).items()}
    if not order:
        notes.append("No speaker passes the filters. Widen them.")
    return reader.finish(
        SpeakerResult(speakers=[_speaker(key, tally, labels, named) for key, tally in page], notes=notes),
        total=len(order),
        next_offset=page_of(order, offset, limit),
    )


def _called(reader: Reader, text: str) -> set[str]:
    """Find speakers with the words of `text` in their names: IRIs, or recorded names without one."""
    everyone = speakers(reader)
    parts = text.casefold().split()
    found = [
        choice
        for choice in everyone
        if any(all(part in name.casefold() for part in parts) for name in (choice.label, *choice.names))
    ]
    try:
        found += find_people("query", text, everyone)
    except NotFoundError:
        if not found:
            raise
    return {choice.term.value for choice in found}


def _speaker(
    key: tuple[str | None, str], tally: _Tally, labels: Mapping[str, str], named: Mapping[str, str]
) -> Speaker:
    iri, recorded = key
    return Speaker(
        id=iri,
        name=labels.get(iri, code_of(iri)) if iri else recorded,
        recorded_names=sorted(tally.names),
        parties=sorted({named.get(name, name) for name in tally.parties}),
        chambers=sorted(named[name] for name in tally.chambers),
        electorates=sorted(named[name] for name in tally.electorates),
        speeches=tally.speeches,
        words=tally.words,
        first=min(tally.days),
        last=max(tally.days),
    )


def speech_stats(
    kg: KnowledgeGraph,
    group_by: Annotated[GroupBy, Field(description="Grouping")] = "party",
    speaker: SpeakerName = None,
    party: PartyName = None,
    chamber: ChamberName = None,
    date_from: DateFrom = None,
    date_to: DateTo = None,
    topics: Topics = None,
    state: StateName = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> StatsResult:
    """Count speeches, words and interjections by speaker, party, chamber, year, month or topic.

    Use for counts over time, people, parties or topics. Filters are those of `search_speeches`. Returns groups: key,
    label, speeches, words, interjections (by others), interjections_made, first, last; and totals of all groups, each
    speech once.
    Example: speech_stats(group_by="year", party="Greens", topics=["climate"]).
    Next: `search_speeches` for excerpts.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    filters = SpeechFilters(speaker, party, chamber, date_from, date_to, topics, state)
    scope, notes = speech_scope(reader, filters)
    made = None if state else interjection_scope(reader, filters)
    if made is None:
        notes.append("interjections_made are not counted with a state: the record has no state of who interjects.")
    reader.start_selection()
    groups = _counted(reader, scope, made, group_by)
    whole = groups
    if group_by == "topic":
        whole = _counted(reader, scope, made, None)
        notes.append("A speech with several topics counts in each of them; totals count it once.")
    totals = Totals(
        speeches=sum(each.speeches for each in whole),
        words=sum(each.words for each in whole),
        interjections=sum(each.interjections for each in whole),
        interjections_made=sum(each.interjections_made for each in whole),
    )
    if uncounted := sum(each.uncounted for each in whole):
        notes.append(f"{uncounted} of these speeches have no word count and add nothing to words.")
    if not totals.speeches and not totals.interjections_made:
        notes.append("No speech passes the filters. Widen them.")
    return reader.finish(
        StatsResult(group_by=group_by, groups=groups[offset : offset + limit], totals=totals, notes=notes),
        total=len(groups),
        next_offset=page_of(groups, offset, limit),
    )


@dataclass(frozen=True, slots=True)
class YearlySpeeches:
    """Numbers of speeches by the key of the party, as in `speech_stats`, and year. None: not recorded."""

    speeches: Mapping[tuple[str | None, str | None], int]
    queries: Sequence[Statement]


def count_speeches_by_year(kg: KnowledgeGraph) -> YearlySpeeches:
    """Count the speeches of each party by year."""
    reader = Reader(kg)
    scope, _ = speech_scope(reader, SpeechFilters(None, None, None, None, None))
    reader.start_selection()

    def read(rows: Sequence[Mapping[str, Term]]) -> dict[tuple[str | None, str | None], int]:
        return {
            (_key(row), term_text(row["year"]) if "year" in row else None): int(term_text(row["speeches"]))
            for row in rows
            if term_text(row["speeches"]) != "0"
        }

    found = reader.kept("speeches by party and year", scope.compile(BY_PARTY_AND_YEAR), read)
    return YearlySpeeches(found, reader.ran)


def _counted(reader: Reader, scope: Scope, made: Scope | None, group_by: GroupBy | None) -> list[Counted]:
    """Count by group; without `group_by`, count all speeches as one group."""
    pattern = "" if group_by is None else GROUPS[group_by]
    thrown: dict[str | None, int] = reader.kept(
        "counts of interjections",
        scope.compile(INTERJECTIONS.replace("#GROUP", pattern), interjection=INTERJECTION),
        lambda rows: {_key(row): int(term_text(row["interjections"])) for row in rows},
    )

    called: dict[str | None, int] = {}
    if made is not None:
        of_said = pattern.replace("?document", "?said") if group_by in ("speaker", "party") else pattern
        query = MADE.replace("#SAID", "\n  ".join(made.lists)).replace("#GROUP", of_said)
        called = reader.kept(
            "counts of interjections made",
            made.compile(query, interjection=INTERJECTION),
            lambda rows: {_key(row): int(term_text(row["interjections"])) for row in rows},
        )

    def read(rows: Sequence[Mapping[str, Term]]) -> list[Counted]:
        return [
            Counted(
                key=_key(row),
                label=NOBODY,
                speeches=int(term_text(row["speeches"])),
                words=int(term_text(row["words"])),
                uncounted=int(term_text(row["speeches"])) - int(term_text(row["known"])),
                interjections=0,
                first=term_text(row["first"]) if "first" in row else None,
                last=term_text(row["last"]) if "last" in row else None,
            )
            for row in rows
            if term_text(row["speeches"]) != "0"
        ]

    counted = reader.kept("counts of speeches", scope.compile(COUNTS.replace("#GROUP", pattern)), read)
    silent = called.keys() - {each.key for each in counted}
    counted = [*counted, *(_without_speeches(key) for key in silent if called[key])]
    names = _names(reader, {each.key for each in counted if each.key is not None}, group_by)
    groups = [
        each.model_copy(
            update={
                "label": names.get(each.key or "", each.label),
                "interjections": thrown.get(each.key, 0),
                "interjections_made": called.get(each.key, 0),
            }
        )
        for each in counted
    ]
    if group_by in ("year", "month"):
        return sorted(groups, key=lambda each: each.key or "")
    return sorted(groups, key=lambda each: (-each.speeches, each.label, each.key or ""))


def _without_speeches(key: str | None) -> Counted:
    """Build the group of people who only interject."""
    return Counted(key=key, label=NOBODY, speeches=0, words=0, interjections=0, first=None, last=None)


def _key(row: Mapping[str, Term]) -> str | None:
    return term_text(row["group"]) if "group" in row else None


def _names(reader: Reader, keys: set[str], group_by: GroupBy | None) -> dict[str, str]:
    """Load the labels of groups. A tag, a year or a recorded name is its own label."""
    names = {key: key for key in keys}
    if group_by == "topic":
        concepts = load_concepts(reader.kg)
        return names | {key: label for key in keys if (label := concepts.label_of(key)) is not None}
    if group_by in ("speaker", "party"):
        choices = speakers(reader) if group_by == "speaker" else parties(reader)
        return names | {choice.term.value: choice.label for choice in choices if choice.term.value in keys}
    labels = labels_of(reader, keys) if group_by == "chamber" else {}
    return names | {key: kinds.get(SKOS.prefLabel) or code_of(key) for key, kinds in labels.items()}
