"""Compilation of filters of speeches to SPARQL patterns. Inexact names are resolved first and reported in notes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import chain
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import Names, fold
from kg.iso3166 import load_areas
from kg.retrieval.choices import Choice, interpretation_note, shorten
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.evidence import code_of
from kg.retrieval.filters import BY_STATE, Scope, Terms
from kg.retrieval.hybrid_search import Known
from kg.retrieval.places import load_places
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.retrieval.results import Name
from kg.retrieval.speech_records import is_id_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.tools.parliament.person_names import find_offices, find_parties, find_people
from kg.vocabulary import FOAF, SKOS, XSD, mint
from loaders.hansard.parties import CHAMBERS

SpeakerName = Annotated[str | None, Field(description="Full name, surname, recorded form or id")]
PartyName = Annotated[str | None, Field(description="Name or abbreviation, e.g. Greens, ALP")]
ChamberName = Annotated[str | None, Field(description="Name of a chamber, e.g. Senate")]
DateFrom = Annotated[str | None, Field(description="First day, YYYY-MM-DD")]
DateTo = Annotated[str | None, Field(description="Last day, YYYY-MM-DD")]
Topics = Annotated[list[Name] | None, Field(max_length=50, description="Tags; one is enough")]
StateName = Annotated[str | None, Field(description="State or territory, e.g. VIC")]

FEW_DAYS: Final = 62
"""Maximum length in days of a period that is looked up day by day."""
VERY_FEW_DAYS: Final = 7
"""Maximum length in days of a period whose speeches SPARQL lists faster than it counts all speeches by day."""

AUSTRALIA: Final = "AUS"
_CHAMBER_FORMS: Final = {
    **dict.fromkeys(
        ("house of representatives", "house", "the house", "representatives", "reps", "hor", "au representatives"),
        "au-representatives",
    ),
    **dict.fromkeys(("senate", "the senate", "au senate", "australian senate"), "au-senate"),
}
SPEAKERS: Final = """
SELECT DISTINCT ?speaker ?recorded ?office WHERE {
  { ?said a kg:Speech } UNION { ?chunk kg:otherVoice ?said }
  OPTIONAL { ?said kg:speakerAsRecorded ?recorded } OPTIONAL { ?said kg:speaker ?speaker }
  OPTIONAL { ?said kg:office ?office }
}"""

OFFICES: Final = """
SELECT DISTINCT ?recorded WHERE { ?said kg:office ?office ; kg:speakerAsRecorded ?recorded }"""

PEOPLE: Final = """
SELECT DISTINCT ?person ?property ?name WHERE {
  ?person a foaf:Person ; ?property ?name FILTER(?property IN (foaf:name, skos:altLabel))
}"""

PARTIES: Final = """
SELECT DISTINCT ?party ?recorded WHERE {
  ?document a kg:Speech OPTIONAL { ?document kg:party ?party } OPTIONAL { ?document kg:partyAsRecorded ?recorded }
}"""

PARTY_NAMES: Final = """
SELECT DISTINCT ?party ?property ?name WHERE {
  VALUES ?party { $parties } ?party ?property ?name FILTER(?property IN (skos:prefLabel, skos:altLabel, skos:notation))
}"""

CHAMBER_NAMES: Final = """
SELECT DISTINCT ?chamber ?name WHERE {
  ?chamber a kg:Chamber ; ?property ?name FILTER(?property IN (skos:prefLabel, skos:altLabel, skos:notation))
}"""

TAGS: Final = """
SELECT DISTINCT ?tag WHERE { ?document a kg:Speech ; dcterms:subject ?tag }"""

# One row per group: one row per speech takes three times as long.
ROLL: Final = """
SELECT ?day ?chamber ?party (GROUP_CONCAT(STR(?document)) AS ?speeches) WHERE {
  ?document a kg:Speech
  OPTIONAL { ?document dcterms:date ?day }
  OPTIONAL { ?document kg:chamber ?chamber }
  OPTIONAL { ?document kg:party ?party }
} GROUP BY ?day ?chamber ?party"""

# As ROLL, for the speeches in which another member of the party interjects.
VOICES_ROLL: Final = """
SELECT ?day ?chamber ?party (GROUP_CONCAT(DISTINCT STR(?document)) AS ?speeches) WHERE {
  ?chunk kg:otherVoice ?voice . ?voice kg:party ?party ; dcterms:isPartOf ?document
  OPTIONAL { ?document dcterms:date ?day }
  OPTIONAL { ?document kg:chamber ?chamber }
} GROUP BY ?day ?chamber ?party"""

IS_SPEECH: Final = "?document a kg:Speech ."
# For use after a selective pattern: as a pattern of its own, the engine would read all speeches.
IS_SPEECH_TOO: Final = "FILTER EXISTS { ?document a kg:Speech }"
# Patterns on ?said: a speech, or an utterance of another person in it. A single value is a constant, which takes half
# the time of VALUES.
SPEAKER: Final = "?said kg:speaker $speakers ."
SPEAKER_ANY: Final = "VALUES ?speaker { $speakers } ?said kg:speaker ?speaker ."
SPEAKER_RECORDED: Final = """VALUES ?called { $speakers_recorded } ?said kg:speakerAsRecorded ?called
  FILTER NOT EXISTS { ?said kg:speaker ?person }"""
SPEAKER_OFFICE: Final = "VALUES ?held { $speakers_office } ?said kg:speakerAsRecorded ?held ; kg:office ?office ."
PARTY: Final = "?said kg:party $parties ."
PARTY_ANY: Final = "VALUES ?party { $parties } ?said kg:party ?party ."
PARTY_RECORDED: Final = """VALUES ?partyCalled { $parties_recorded } ?said kg:partyAsRecorded ?partyCalled
  FILTER NOT EXISTS { ?said kg:party ?known }"""
# The node of the speaker of a chunk. A filter tests it for each chunk; a pattern would list all words of a person.
SAID: Final = "OPTIONAL { ?unit kg:otherVoice ?voice } BIND(COALESCE(?voice, ?document) AS ?said)"
SAID_IN_STATE: Final = "FILTER EXISTS { ?said kg:state $states }"
CHAMBER: Final = "?document kg:chamber $chambers ."
STATE: Final = "?document kg:state $states ."
ON_DAYS: Final = "VALUES ?day { $days } ?document dcterms:date ?day ."
FROM: Final = "?document dcterms:date ?day FILTER(?day >= $first)"
TO: Final = "?document dcterms:date ?day FILTER(?day <= $last)"
FROM_TO: Final = "?document dcterms:date ?day FILTER(?day >= $first && ?day <= $last)"
# The same as ON_DAYS for proposals, where VALUES of 40 days takes 130 ms and this 4 ms. A day with a time zone, which
# no value of ON_DAYS equals, is left out here too.
ON_DAYS_OF_PROPOSALS: Final = """?document dcterms:date ?day
  FILTER(?day >= $first && ?day <= $last && STRLEN(STR(?day)) = 10)"""
TAGGED: Final = "VALUES ?tag { $tags } ?document dcterms:subject ?tag ."
# The mentions first, in a SELECT of their own: see tools/concepts/mentions.py.
MENTIONED: Final = """{ SELECT DISTINCT ?document WHERE {
    VALUES ?topic { $topics } ?mentioning kg:mentions ?topic . ?mentioning dcterms:isPartOf ?document
  } } FILTER NOT EXISTS { ?document dcterms:subject ?anyTag }"""


@dataclass(frozen=True, slots=True)
class SpeechFilters:
    """Filters of speeches. A speech must pass all that are given, and have one of the topics."""

    speaker: str | None = None
    party: str | None = None
    chamber: str | None = None
    date_from: str | None = None
    date_to: str | None = None
    topics: Sequence[str] | None = None
    state: str | None = None

    @property
    def none(self) -> bool:
        """Whether no filter is given."""
        return not any((self.speaker, self.party, self.chamber, self.date_from, self.date_to, self.topics, self.state))


@dataclass(frozen=True, slots=True)
class Group:
    """Speeches of one day, chamber and party; None if not recorded, or for a day that is not a plain date."""

    day: date | None
    chamber: str | None
    party: str | None
    speeches: Sequence[str]


def list_known_speeches(reader: Reader, filters: SpeechFilters, scope: Scope) -> tuple[Known | None, Scope]:
    """List the speeches that pass `filters`, and perhaps a few more, with the `scope` in the form for proposals.

    None with other filters than chamber, party and period, for a short period, and for a party without a node: SPARQL
    lists those speeches faster. Also None without a filter, or if no speech passes.
    """
    first, last = day("date_from", filters.date_from), day("date_to", filters.date_to)
    of_parties = scope.terms.get("parties", ())
    short = first is not None and last is not None and (last - first).days < VERY_FEW_DAYS
    if short or filters.none or filters.speaker or filters.topics or filters.state:
        return None, scope
    if filters.party and (len(of_parties) != 1 or "parties_recorded" in scope.terms):
        return None, scope
    chamber = None if filters.chamber is None else find_chamber(reader, filters.chamber).value
    found = _known(reader, first, last, chamber, iri_of(of_parties[0]) if of_parties else None)
    if not found.documents:
        return None, scope
    if "days" in scope.terms:
        days = scope.terms["days"]
        patterns = tuple(ON_DAYS_OF_PROPOSALS if pattern == ON_DAYS else pattern for pattern in scope.on_document)
        scope = replace(scope, on_document=patterns, terms={**scope.terms, "first": days[:1], "last": days[-1:]})
    return found, scope


def _known(
    reader: Reader,
    first: date | None,
    last: date | None,
    chamber: str | None,
    party: str | None,
    *,
    without_party: bool = False,
) -> Known:
    """List the speeches from `first` to `last` (inclusive) in `chamber` by members of `party`, each of them optional.

    With `without_party` only those of no known party.

    A speech with an unusual form of date counts for every day: the caller applies the filters again. Listing thousands
    of speeches takes SPARQL longer than ranking them, so they are counted by group once per generation.
    """
    groups = reader.kept("speeches by day, chamber and party", ROLL, _groups)
    voices = reader.kept("interjections by day, chamber and party", VOICES_ROLL, _groups) if party is not None else []
    chosen = (
        group
        for group in (*groups, *voices)
        if (group.day is None or ((first is None or group.day >= first) and (last is None or group.day <= last)))
        and (chamber is None or group.chamber == chamber)
        and (party is None or group.party == party)
        and not (without_party and group.party is not None)
    )
    speeches = list(dict.fromkeys(chain.from_iterable(group.speeches for group in chosen)))
    return Known(speeches, len(speeches) / max(1, len(speeches), sum(len(group.speeches) for group in groups)))


def _groups(rows: list[dict[str, Term]]) -> list[Group]:
    return [
        Group(_day(row), _text(row, "chamber"), _text(row, "party"), term_text(row["speeches"]).split(" "))
        for row in rows
        if term_text(row["speeches"])  # the single row of an empty GROUP BY has none
    ]


def _text(row: dict[str, Term], name: str) -> str | None:
    return term_text(row[name]) if name in row else None


def _day(row: dict[str, Term]) -> date | None:
    text = _text(row, "day")
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def speech_scope(reader: Reader, filters: SpeechFilters, *, quoted: bool = False) -> tuple[Scope, list[str]]:
    """Compile `filters` to a scope, with notes on how their values were interpreted.

    The scope has the speeches that pass the filters. With `quoted` it has their chunks with words of that
    person, or of a member of that party or state, and also those in the speeches of others.

    Raises InvalidInputError for an invalid date, and NotFoundError with valid or similar values for an unknown
    chamber or state, and for a speaker, party or topic that no speech has.
    """
    patterns: list[str] = []
    lists: list[str] = []
    on_unit: list[str] = []
    terms: dict[str, Sequence[Terms]] = {}
    notes: list[str] = []
    period = _period(filters, terms)
    # The engine evaluates the patterns in this order: the most selective come first.
    if filters.speaker is not None:
        branches = _speaker(reader, clean_text("speaker", filters.speaker, 300), terms, notes)
        if quoted:
            lists.append(_list_documents(branches))
            on_unit.append(_test(branches))
        else:
            patterns.append(_unite(branches, "?document"))
    if filters.topics:
        patterns.append(_topics(reader, filters.topics, terms, notes))
    if "days" in terms:
        patterns.append(period)
    if filters.state is not None:
        terms["states"] = [find_state(reader, filters.state)]
        patterns.append(STATE)
        notes.append(BY_STATE)
        on_unit += [SAID_IN_STATE] if quoted else []
    if filters.party is not None:
        branches = _party(reader, clean_text("party", filters.party, 300), terms, notes)
        if not quoted:
            patterns.append(_unite(branches, "?document"))
        else:
            on_unit.append(_test(branches))
            if not (lists or patterns):  # else fewer speeches pass the other filters, and their chunks are tested
                lists.append(_list_documents(branches))
        if "parties_recorded" not in terms and (note := _without_party(reader, filters)):
            notes.append(note)
    if period and "days" not in terms:
        patterns.append(period)
    if filters.chamber is not None:
        terms["chambers"] = [find_chamber(reader, filters.chamber)]
        patterns.append(CHAMBER)
    if not (patterns or lists):
        patterns.append(IS_SPEECH)
    elif quoted and lists:
        lists.append(IS_SPEECH_TOO)
    else:  # interjections have a party and a state too, and laws mention topics
        patterns.append(IS_SPEECH_TOO)
    return Scope(tuple(patterns), (SAID, *on_unit) if on_unit else (), lists=tuple(lists), terms=terms), notes


def interjection_scope(reader: Reader, filters: SpeechFilters) -> Scope:
    """Compile `filters`, without a state, to a scope of interjections (?said) by a speaker or a party.

    Its `lists` are patterns on ?said, and the others on the speech in which it is.
    """
    speech = replace(filters, speaker=None, party=None, state=None)
    scope, _ = speech_scope(reader, speech)
    terms = dict(scope.terms)
    lists = []
    if filters.speaker is not None:
        lists.append(_unite(_speaker(reader, clean_text("speaker", filters.speaker, 300), terms, []), "?said"))
    if filters.party is not None:
        lists.append(_unite(_party(reader, clean_text("party", filters.party, 300), terms, []), "?said"))
    return replace(scope, on_document=() if speech.none else scope.on_document, lists=tuple(lists), terms=terms)


def _speaker(reader: Reader, text: str, terms: dict[str, Sequence[Terms]], notes: list[str]) -> list[str]:
    """Compile a speaker to alternative patterns on ?said: people, recorded names of nobody known, or an office."""
    held = find_offices(text, offices(reader))
    if held:
        terms["speakers_office"] = [Literal(name) for name in held]
        if text not in held or len(held) > 1:
            notes.append(f"speaker: {quoted(text)} was interpreted as the office {shorten(held)}.")
        return [SPEAKER_OFFICE]
    found = find_people("speaker", text, speakers(reader))
    notes += [note] if (note := interpretation_note("speaker", text, found)) else []
    return _branches(terms, found, "speakers", (SPEAKER, SPEAKER_ANY, SPEAKER_RECORDED))


def _party(reader: Reader, text: str, terms: dict[str, Sequence[Terms]], notes: list[str]) -> list[str]:
    """Compile a party to alternative patterns on ?said."""
    found = find_parties("party", text, parties(reader))
    notes += [note] if (note := interpretation_note("party", text, found)) else []
    return _branches(terms, found, "parties", (PARTY, PARTY_ANY, PARTY_RECORDED))


def _branches(
    terms: dict[str, Sequence[Terms]], found: Sequence[Choice], name: str, patterns: tuple[str, str, str]
) -> list[str]:
    """Choose from `patterns`, which are for one node, for several nodes, and for recorded names; add to `terms`."""
    nodes = [choice.term for choice in found if isinstance(choice.term, NamedNode)]
    names = [choice.term for choice in found if isinstance(choice.term, Literal)]
    one, several, recorded = patterns
    if nodes:
        terms[name] = nodes
    if names:
        terms[f"{name}_recorded"] = names
    known = [one if len(nodes) == 1 else several] if nodes else []
    return [*known, recorded] if names else known


def _unite(branches: Sequence[str], said: str) -> str:
    """Join alternative patterns on ?said to one pattern on another variable."""
    named = [branch.replace("?said", said) for branch in branches]
    return named[0] if len(named) == 1 else " UNION ".join(f"{{ {each} }}" for each in named)


def _list_documents(branches: Sequence[str]) -> str:
    """Compile alternative patterns on ?said to a pattern that lists the speeches of which it is all or a part."""
    own = [f"{{ {branch.replace('?said', '?document')} }}" for branch in branches]
    return " UNION ".join([*own, *(f"{{ {branch} ?said dcterms:isPartOf ?document }}" for branch in branches)])


def _test(branches: Sequence[str]) -> str:
    """Compile alternative patterns on ?said to a filter of it."""
    return f"FILTER({' || '.join(f'EXISTS {{ {branch} }}' for branch in branches)})"


def _period(filters: SpeechFilters, terms: dict[str, Sequence[Terms]]) -> str:
    """Compile the period to a pattern, and add its days to `terms`; empty if no day is given."""
    first, last = day("date_from", filters.date_from), day("date_to", filters.date_to)
    if first is not None and last is not None:
        if first > last:
            raise InvalidInputError(f"date_from ({first}) is after date_to ({last}). Pass the earlier day first.")
        if (last - first).days < FEW_DAYS:
            days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
            terms["days"] = [_date(each) for each in days]
            return ON_DAYS
    if first is not None:
        terms["first"] = [_date(first)]
    if last is not None:
        terms["last"] = [_date(last)]
    return FROM_TO if first and last else FROM if first else TO if last else ""


def _without_party(reader: Reader, filters: SpeechFilters) -> str | None:
    """Report the speeches of the period and chamber that a filter by party leaves out; None without any."""
    first, last = day("date_from", filters.date_from), day("date_to", filters.date_to)
    chamber = None if filters.chamber is None else find_chamber(reader, filters.chamber).value
    known = _known(reader, first, last, chamber, None, without_party=True)
    count = len(known.documents)
    if not count:
        return None
    return f"party: {count:,} speeches of this period and chamber have no known party and are left out."


def _date(on: date) -> Literal:
    return Literal(on.isoformat(), datatype=XSD.date)


def day(argument: str, text: str | None) -> date | None:
    """Parse a day as YYYY-MM-DD. Raises InvalidInputError for any other form."""
    if text is None:
        return None
    wanted = text.strip()
    try:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", wanted, re.ASCII):
            raise ValueError("another form")
        return date.fromisoformat(wanted)
    except ValueError as error:
        raise InvalidInputError(
            f"{argument}: {quoted(text)} is not a day ({error}). Use YYYY-MM-DD, e.g. 2024-10-15."
        ) from None


def find_chamber(reader: Reader, text: str) -> NamedNode:
    """Find the chamber with a name, abbreviation or code. Raises NotFoundError with the chambers for an unknown one."""
    wanted = fold(text[:100])
    loaded = _load_chambers(reader)
    found = [iri for iri, names in loaded.items() if wanted in map(fold, (code_of(iri), *names))]
    if (code := _CHAMBER_FORMS.get(wanted)) is not None:
        australian = mint("chamber", code)
        if not found or australian.value in loaded:  # also by forms that are not among its names
            found = list(dict.fromkeys((*found, australian.value)))
    if len(found) == 1:
        return NamedNode(found[0])
    known = [names[0] if names else code_of(iri) for iri, names in loaded.items() if code_of(iri) not in CHAMBERS]
    problem = "Several chambers have the name" if found else "Unknown chamber"
    available = [code_of(iri) for iri in found] or [*CHAMBERS.values(), *known[:20]]
    raise NotFoundError(f"chamber: {problem} {quoted(text)}. Available: {', '.join(available)}.")


def label_chamber(reader: Reader, iri: str) -> str:
    """Return the longest name of a chamber; its code if it has none, or if another chamber has that name too."""
    code = code_of(iri)
    if code in CHAMBERS:
        return CHAMBERS[code]
    loaded = _load_chambers(reader)
    name = max(loaded.get(iri, ()), key=lambda each: (len(each), each), default=None)
    is_shared = any(name in names for other, names in loaded.items() if other != iri)
    return code if name is None or is_shared else name


def _load_chambers(reader: Reader) -> dict[str, list[str]]:
    """Load the names of the chambers in the store. Cached until the next commit."""
    return reader.kept("chambers", CHAMBER_NAMES, lambda rows: _pairs(rows, "chamber", "name"))


def find_state(reader: Reader, text: str) -> NamedNode:
    """Find the state or territory of Australia with a code or name. Raises NotFoundError with all of them otherwise."""
    places = load_places(reader)
    for form in (text[:100], fold(text[:100]).removeprefix("au ")):
        for place in places.find(form):
            if place.kind == "subdivision" and AUSTRALIA in (outer.code for outer in places.get_chain(place)):
                return NamedNode(place.iri)
    states = [area.short for area in load_areas().values() if area.within == AUSTRALIA]
    raise NotFoundError(f"state: Unknown state {quoted(text)}. Available: {', '.join(states)}.")


def speakers(reader: Reader) -> list[Choice]:
    """Load all speakers with their recorded names. Cached until the next commit."""

    def ordered(rows: list[dict[str, Term]]) -> dict[str, list[str]]:
        aliases = [row for row in rows if iri_of(row["property"]) != FOAF.name.value]
        names = _pairs([row for row in rows if iri_of(row["property"]) == FOAF.name.value], "person", "name")
        for iri, forms in _pairs(aliases, "person", "name").items():
            names[iri] = [*names.get(iri, ()), *forms]
        return names

    people = reader.kept("names of people", PEOPLE, ordered)

    def build(rows: Sequence[dict[str, Term]], people: Mapping[str, Sequence[str]]) -> list[Choice]:
        # The name of an office is not one of the person who holds it.
        named = [row for row in rows if "office" not in row]
        recorded = _pairs([row for row in named if "speaker" in row and "recorded" in row], "speaker", "recorded")
        choices = []
        for iri in sorted({iri_of(row["speaker"]) for row in rows if "speaker" in row}):
            known = [name for name in people.get(iri, ()) if not is_id_of(iri, name)]
            names = tuple(dict.fromkeys((*known, *recorded.get(iri, ()))))
            choices.append(Choice(NamedNode(iri), names[0] if names else code_of(iri), names))
        others = {term_text(row["recorded"]) for row in named if "speaker" not in row and "recorded" in row}
        return choices + [Choice(Literal(name), name, (name,)) for name in sorted(others)]

    return reader.derived("who speaks", build, reader.kept("who speaks", SPEAKERS, list), people)


def offices(reader: Reader) -> list[str]:
    """Load the recorded names of offices under which somebody speaks. Cached until the next commit."""
    return reader.kept("offices", OFFICES, lambda rows: sorted({term_text(row["recorded"]) for row in rows}))


def parties(reader: Reader) -> list[Choice]:
    """Load the parties of speakers with their recorded names. Cached until the next commit."""

    def build(rows: Sequence[dict[str, Term]], named: Sequence[dict[str, Term]]) -> list[Choice]:
        known = _pairs([row for row in rows if "party" in row and "recorded" in row], "party", "recorded")
        names: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for row in named:
            rank = iri_of(row["property"]) != SKOS.prefLabel.value
            names[iri_of(row["party"])].append((rank, term_text(row["name"])))
        choices = []
        for iri in sorted({iri_of(row["party"]) for row in rows if "party" in row}):
            all_names = [name for _, name in sorted(names[iri])] + known.get(iri, [])
            label = all_names[0] if all_names else code_of(iri)
            choices.append(Choice(NamedNode(iri), label, tuple(dict.fromkeys((label, *all_names)))))
        others = {term_text(row["recorded"]) for row in rows if "party" not in row and "recorded" in row}
        return choices + [Choice(Literal(name), name, (name,)) for name in sorted(others)]

    rows = reader.kept("parties of speakers", PARTIES, list)
    nodes = [NamedNode(iri) for iri in sorted({iri_of(row["party"]) for row in rows if "party" in row})]
    named = reader.kept("names of parties", bind(PARTY_NAMES, parties=nodes), list)
    return reader.derived("parties of speakers", build, rows, named)


def tags(reader: Reader) -> list[str]:
    """Load the topic tags in use. Cached until the next commit."""
    return reader.kept(
        "topic tags",
        TAGS,
        lambda rows: sorted({term_text(row["tag"]) for row in rows if isinstance(row["tag"], Literal)}),
    )


def _pairs(rows: Sequence[dict[str, Term]], key: str, value: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[iri_of(row[key])].append(term_text(row[value]))
    return {iri: sorted(set(values)) for iri, values in sorted(found.items())}


def _topics(reader: Reader, wanted: Sequence[str], terms: dict[str, Sequence[Terms]], notes: list[str]) -> str:
    """Compile topics: speeches with one of the tags, or speeches without tags whose text mentions such a concept."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for tag in tags(reader):
        by_name[fold(tag)].append(tag)
    concepts = load_concepts(reader.kg)
    tagged: list[Terms] = []
    meant: dict[str, str] = {}
    unknown: list[str] = []
    for text in wanted:
        name = fold(clean_text("topics", text, 300))
        named = [concept for like, concept in concepts.like(name, 20) if fold(like.name) == name]
        tagged += [Literal(tag) for tag in by_name.get(name, ())]
        meant |= {concept.iri: concept.shown for concept in named}
        if not by_name.get(name) and not named:
            unknown.append(text)
    if unknown:
        near = Names([(number, tag) for number, tag in enumerate(tags(reader))])
        known = [each.name for text in unknown for each in near.nearest(text, 3)] or tags(reader)[:20]
        valid = f"Similar: {', '.join(map(name_or_quote, dict.fromkeys(known)))}." if known else "No speech has a tag."
        message = f"topics: No speech has {' or '.join(quoted(text) for text in unknown)}. {valid}"
        if len(unknown) == len(wanted):
            raise NotFoundError(message)
        notes.append(message)
    patterns = []
    if tagged:
        terms["tags"] = list(dict.fromkeys(tagged))
        patterns.append(TAGGED)
    if meant:
        terms["topics"] = [NamedNode(iri) for iri in meant]
        patterns.append(MENTIONED)
        notes.append(f"topics: Speeches without tags pass if they mention {', '.join(meant.values())}.")
    return patterns[0] if len(patterns) == 1 else "{ " + " } UNION { ".join(patterns) + " }"
