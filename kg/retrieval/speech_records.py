"""Speeches in the graph: recorded properties with labels, chunks, utterances, and the text joined from its chunks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, NotFoundError, StoreDamagedError
from kg.fuzzy_names import nearest
from kg.retrieval.attribution import other_voice
from kg.retrieval.display_titles import build_display_title
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Rows, Term, batched, preference, term_text
from kg.text import name_or_quote, quoted
from kg.vocabulary import BASE, DCTERMS, DERIVED, FOAF, KG, SCHEMA, SKOS, mint, sha256

# Properties are chosen by FILTER, after the lookup by subject: see kg/retrieval/evidence.py.
RECORDS: Final = """
SELECT DISTINCT ?speech ?graph ?property ?value WHERE {
  VALUES ?speech { $speeches }
  GRAPH ?graph { ?speech ?property ?value }
  FILTER(?property IN (
    dcterms:identifier, dcterms:title, dcterms:date, dcterms:subject, dcterms:source, dcterms:isPartOf,
    kg:speaker, kg:speakerAsRecorded, kg:party, kg:partyAsRecorded, kg:chamber, kg:chamberAsRecorded, kg:venue,
    kg:electorate, kg:electorateAsRecorded, kg:state, kg:stateAsRecorded, kg:hansardReference, kg:debateType,
    kg:speechType, kg:transcriptQuality, kg:role, kg:office, kg:inGovernment, kg:firstSpeech, kg:answers,
    kg:length, kg:textSha256, kg:pageNumber, kg:sourceLines, schema:startTime, schema:position, schema:inLanguage
  ))
}"""

LABELS: Final = """
SELECT DISTINCT ?thing ?graph ?property ?label WHERE {
  VALUES ?thing { $things } GRAPH ?graph { ?thing ?property ?label }
  FILTER(?property IN (foaf:name, skos:prefLabel, skos:notation, dcterms:title, dcterms:identifier))
}"""

# Only the graph of its record types a node as a speech, so text that users write about it elsewhere is excluded.
SPANS: Final = """
SELECT DISTINCT ?speech ?unit ?position ?start ?end WHERE {
  VALUES ?speech { $speeches }
  GRAPH ?graph {
    ?speech a kg:Speech . ?unit dcterms:isPartOf ?speech .
    ?unit schema:position ?position ; kg:start ?start ; kg:end ?end
  }
}"""

TEXTS: Final = """
SELECT DISTINCT ?unit ?text WHERE { VALUES ?unit { $units } ?unit schema:text ?text }"""

# The person and the party may be derived.
UTTERANCES: Final = """
SELECT DISTINCT ?speech ?utterance ?type ?start ?end ?name ?form ?person ?party ?by WHERE {
  VALUES ?speech { $speeches }
  GRAPH ?graph {
    ?speech a kg:Speech . ?utterance dcterms:isPartOf ?speech .
    ?utterance kg:utteranceType ?type ; kg:start ?start ; kg:end ?end
    OPTIONAL { ?utterance kg:speakerAsRecorded ?name } OPTIONAL { ?utterance kg:attributedByForm ?form }
  }
  OPTIONAL { ?utterance kg:speaker ?person }
  OPTIONAL { GRAPH ?by { ?utterance kg:party ?party } }
}"""

IDS: Final = "SELECT DISTINCT ?id WHERE { ?speech a kg:Speech ; dcterms:identifier ?id }"

BY_ID: Final = "SELECT DISTINCT ?speech WHERE { ?speech dcterms:identifier $id ; a kg:Speech }"

IDS_COMPARED: Final = 200_000
NEAR: Final = 5
_CAREER: Final = re.compile(r";[^;]*?\bfrom\s++[0-9]{4}\b", re.IGNORECASE)
_SPEECH_ROOT: Final = f"{BASE}id/speech/"
_UNITS_AT_ONCE: Final = 500
INTERJECTION: Final = mint("code", "utteranceType", "interjection")
"""The type of an interjection."""

Values = Mapping[str, Sequence[Term]]


@dataclass(frozen=True, slots=True)
class Span:
    """A chunk of a speech: the code points from `start` to `end` of its text."""

    iri: str
    position: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words of one person in a speech: the code points from `start` to `end`; `name` as recorded."""

    start: int
    end: int
    kind: str
    """The IRI of its type."""
    name: str | None
    person: str | None
    """The IRI of the person."""
    party: str | None = None
    """The IRI of the person's party, of words that are not the speaker's."""
    has_derived_party: bool = False
    form: str | None = None
    """The form of the text by which the speaker was decided, if no markup names one."""

    @property
    def interjection(self) -> bool:
        """Whether it is an interjection by others."""
        return self.kind == INTERJECTION.value


@dataclass(frozen=True, slots=True)
class Speech:
    """The recorded properties of a speech. Names are labels of linked nodes, else as recorded."""

    iri: str
    graph: str
    values: Values = field(repr=False)
    labels: Mapping[str, Mapping[NamedNode, str]] = field(repr=False)

    def all(self, name: NamedNode) -> list[str]:
        """Get the values of a property, sorted."""
        return sorted(term_text(term) for term in self.values.get(name.value, ()))

    def one(self, name: NamedNode) -> str | None:
        """Get the first value of a property."""
        return next(iter(self.all(name)), None)

    def label(self, name: NamedNode, *kinds: NamedNode) -> str | None:
        """Get the label of the node that a property links to, by the first of `kinds` that it has; else its code."""
        iri = self.one(name)
        if iri is None:
            return None
        names = self.labels.get(iri, {})
        return next((names[kind] for kind in kinds or (SKOS.prefLabel,) if kind in names), code_of(iri))

    @property
    def speech_id(self) -> str:
        """Its identifier."""
        return self.one(DCTERMS.identifier) or code_of(self.iri)

    @property
    def title(self) -> str:
        """Its title, else one built for display."""
        return self.one(DCTERMS.title) or build_display_title(self.iri, self.one)

    @property
    def speaker(self) -> str:
        """Full name of the speaker if known, else the name as recorded."""
        iri = self.one(KG.speaker) or ""
        name = self.labels.get(iri, {}).get(FOAF.name)
        known = name if name and not is_id_of(iri, name) else None
        return known or self.one(KG.speakerAsRecorded) or name or ""

    @property
    def party(self) -> str:
        """Party as written in the source, else its label; empty if not recorded.

        Of a career (``FT; ANTI-SOC from 1906``) it is the party of that day, or empty if that is uncertain.
        """
        recorded = self.one(KG.partyAsRecorded)
        return (None if recorded and is_career(recorded) else recorded) or self.label(KG.party) or ""

    @property
    def derived_party(self) -> str | None:
        """The label of the party that other speeches of the day or a register show, if none is recorded."""
        node = next(iter(self.values.get(f"{DERIVED}{KG.party.value}", ())), None)
        if node is None or self.party:
            return None
        return self.labels.get(term_text(node), {}).get(SKOS.prefLabel, code_of(term_text(node)))

    @property
    def chamber(self) -> str:
        """The name of the chamber."""
        return self.label(KG.chamber) or self.one(KG.chamberAsRecorded) or ""

    @property
    def electorate(self) -> str | None:
        """Electorate of the speaker."""
        return self.label(KG.electorate) or self.one(KG.electorateAsRecorded)

    @property
    def state(self) -> str:
        """Code of the state or territory (VIC), else as recorded; empty if not recorded."""
        code = self.one(KG.state)
        return code_of(code).rpartition("-")[2] if code else self.one(KG.stateAsRecorded) or ""

    @property
    def derived_state(self) -> str | None:
        """Code of the state that follows from the electorate and the year, if none is recorded."""
        code = next(iter(self.values.get(f"{DERIVED}{KG.state.value}", ())), None)
        return None if code is None or self.state else code_of(term_text(code)).rpartition("-")[2]

    @property
    def date(self) -> str:
        """The day, as YYYY-MM-DD."""
        return self.one(DCTERMS.date) or ""

    @property
    def reference(self) -> str:
        """The citation of the source, else the derived one."""
        derived = self.values.get(f"{DERIVED}{KG.hansardReference.value}", ())
        return self.one(KG.hansardReference) or next(map(term_text, derived), "")

    @property
    def has_derived_reference(self) -> bool:
        """Whether the citation follows from chamber, date and page, since the source has none."""
        return bool(self.reference) and self.one(KG.hansardReference) is None

    @property
    def topics(self) -> list[str]:
        """The topic tags of the source."""
        return [term_text(term) for term in self.values.get(DCTERMS.subject.value, ()) if isinstance(term, Literal)]

    def other_voice(self, utterance: Utterance) -> str | None:
        """Get the name of the person who said `utterance`; None for the speaker of the speech."""
        speaker, recorded = self.one(KG.speaker), self.one(KG.speakerAsRecorded)
        return other_voice(utterance.kind, utterance.name, utterance.person, recorded, speaker)

    @property
    def language(self) -> str | None:
        """The language (BCP 47), as stated, else as derived."""
        derived = self.values.get(f"{DERIVED}{SCHEMA.inLanguage.value}", ())
        return self.one(SCHEMA.inLanguage) or next(map(term_text, derived), None)

    @property
    def url(self) -> str | None:
        """Web address of the speech at the source."""
        return self.one(DCTERMS.source)


def is_career(party: str) -> bool:
    """Whether a recorded party is several, with the years of the changes."""
    return _CAREER.search(party) is not None


def load_speeches(reader: Reader, iris: Sequence[str]) -> dict[str, Speech]:
    """Load those of `iris` that are speeches in the graph."""
    if not iris:
        return {}
    said: dict[str, dict[str, list[Term]]] = {}
    graphs: dict[str, str] = {}
    query = bind(RECORDS, speeches=[NamedNode(iri) for iri in iris])
    for row in reader.rows("speeches", query, declared=("speech",)):
        iri, name = iri_of(row["speech"]), iri_of(row["property"])
        if iri_of(row["graph"]).startswith(DERIVED):
            name = f"{DERIVED}{name}"
        said.setdefault(iri, {}).setdefault(name, []).append(row["value"])
        if name == DCTERMS.identifier.value:
            graphs[iri] = iri_of(row["graph"])
    linked: dict[bool, set[str]] = {True: set(), False: set()}
    for iri, graph in graphs.items():
        linked[is_user_graph(NamedNode(graph))].update(
            term.value
            for name, terms in said[iri].items()
            for term in terms
            if isinstance(term, NamedNode) and name != DCTERMS.source.value
        )
    labels = {**labels_of(reader, linked[True], declared=True), **labels_of(reader, linked[False])}
    for values in said.values():
        for terms in values.values():
            terms.sort(key=term_text)
    return {iri: Speech(iri, graph, said[iri], labels) for iri, graph in graphs.items()}


def is_id_of(person: str, name: str) -> bool:
    """Return whether a name is the id of a person, which earlier versions stored where no name was known."""
    return code_of(person) == f"aph-{name}"


def labels_of(reader: Reader, things: Iterable[str], *, declared: bool = False) -> dict[str, Mapping[NamedNode, str]]:
    """Load the labels of nodes by property, English ones first. Cached until the next commit.

    With `declared`, people may have named the nodes that no source describes.
    """

    def load(missing: list[str]) -> Mapping[str, Mapping[NamedNode, str]]:
        found: dict[str, dict[NamedNode, list[Literal]]] = {iri: defaultdict(list) for iri in missing}
        query = bind(LABELS, things=[NamedNode(iri) for iri in missing])
        for row in reader.rows("names", query, declared=("thing",) if declared else ()):
            if isinstance(row["label"], Literal):
                found[iri_of(row["thing"])][NamedNode(iri_of(row["property"]))].append(row["label"])
        return {
            iri: {kind: min(names, key=preference).value for kind, names in kinds.items()}
            for iri, kinds in found.items()
        }

    return reader.kept_by_iri("declared names" if declared else "names", set(things), load)


def load_spans(reader: Reader, speeches: Sequence[str]) -> dict[str, list[Span]]:
    """Load the chunks of speeches, in order."""
    found: dict[str, list[Span]] = {iri: [] for iri in speeches}
    if not speeches:
        return found
    query = bind(SPANS, speeches=[NamedNode(iri) for iri in speeches])
    for row in reader.rows("chunks of speeches", query, declared=("unit", "speech")):
        numbers = (int(term_text(row[name])) for name in ("position", "start", "end"))
        found[iri_of(row["speech"])].append(Span(iri_of(row["unit"]), *numbers))
    for spans in found.values():
        spans.sort(key=lambda span: (span.start, span.end, span.position))
    return found


def load_texts(reader: Reader, units: Sequence[str]) -> dict[str, str]:
    """Load the texts of text units."""
    found: dict[str, str] = {}
    for portion in batched(units, _UNITS_AT_ONCE):
        some = [NamedNode(iri) for iri in portion]
        for row in reader.rows("words of chunks", bind(TEXTS, units=some), declared=("unit",)):
            found[iri_of(row["unit"])] = term_text(row["text"])
    return found


def load_utterances(reader: Reader, speeches: Sequence[str]) -> dict[str, list[Utterance]]:
    """Load the utterances of speeches, in order. A speech from a table has none."""
    found: dict[str, dict[str, Utterance]] = {iri: {} for iri in speeches}
    if not speeches:
        return {}
    query = bind(UTTERANCES, speeches=[NamedNode(iri) for iri in speeches])
    for row in reader.rows("who said what in speeches", query, declared=("speech",)):
        name, form = (term_text(row[key]) if key in row else None for key in ("name", "form"))
        start, end = int(term_text(row["start"])), int(term_text(row["end"]))
        person, party, by = (iri_of(row[key]) if key in row else None for key in ("person", "party", "by"))
        derived = by is not None and by.startswith(DERIVED)
        utterance = Utterance(start, end, iri_of(row["type"]), name, person, party, derived, form)
        found[iri_of(row["speech"])].setdefault(iri_of(row["utterance"]), utterance)
    return {iri: sorted(each.values(), key=lambda each: (each.start, each.end)) for iri, each in found.items()}


def join_text(speech: Speech, pieces: Iterable[tuple[int, str]], start: int, end: int) -> str:
    """Join the text of a speech from `start` to `end` (code points) from chunks, given with their offsets.

    Raises StoreDamagedError if there is a gap, or if overlapping chunks differ.
    """
    parts: list[str] = []
    at = start
    last = (0, "")
    for begin, text in sorted(pieces):
        if begin + len(text) <= start or begin >= end:
            continue
        if begin > at:
            break
        known = last[1][begin - last[0] :][: len(text)]
        if known and not text.startswith(known):
            raise StoreDamagedError(
                f"Speech {speech.speech_id}: overlapping chunks differ from character {begin}. Load it again."
            )
        last = begin, text
        if taken := text[at - begin : end - begin]:
            parts.append(taken)
            at += len(taken)
    if at < end:
        raise StoreDamagedError(f"Speech {speech.speech_id}: no chunk has the characters {at} to {end}. Load it again.")
    return "".join(parts)


def load_speech(reader: Reader, text: str) -> Speech:
    """Load a speech by its id, its IRI, or the IRI of a part of it.

    Raises NotFoundError with similar ids.
    """
    whole = text.strip("<>").partition("#")[0] if text.strip("<>").startswith(_SPEECH_ROOT) else None
    try:
        node = mint("speech", text) if whole is None else NamedNode(whole)
    except (InvalidInputError, ValueError) as error:
        raise InvalidInputError(f"speech_id: {quoted(text)} is not a valid id: {error}.") from None
    found = load_speeches(reader, [node.value])
    if not found:
        # The id in a source can differ from the one in the IRI.
        rows = reader.rows("speech by its id", bind(BY_ID, id=Literal(text)), declared=("speech",))
        found = load_speeches(reader, [iri_of(row["speech"]) for row in rows])
    if not found:
        wanted = text if whole is None else unquote(whole.removeprefix(_SPEECH_ROOT))
        raise NotFoundError(f"speech_id: Unknown speech {quoted(wanted)}. {suggest_speeches(reader, wanted)}")
    return next(iter(found.values()))


def load_full_text(reader: Reader, speech: Speech, spans: list[Span]) -> str:
    """Load the text of a speech. Raises StoreDamagedError if its length or hash differs from the recorded one."""
    texts = load_texts(reader, [span.iri for span in spans])
    length, digest = speech.one(KG.length), speech.one(KG.textSha256)
    if length is None or digest is None:
        raise StoreDamagedError(f"Speech {speech.speech_id} has no recorded length or hash. Load it again.")
    text = join_text(speech, [(span.start, texts.get(span.iri, "")) for span in spans], 0, int(length))
    if sha256(text) != digest:
        raise StoreDamagedError(
            f"Speech {speech.speech_id} was modified: its text has the SHA-256 {sha256(text)} instead of {digest}. "
            "Load it again."
        )
    return text


def is_speech(iri: str) -> bool:
    """Whether an IRI belongs to a speech or to a part of one."""
    return iri.startswith(_SPEECH_ROOT)


def load_speech_text(reader: Reader, iri: str) -> str:
    """Load the text of the speech with this IRI. Raises as `load_speech` and `load_full_text` do."""
    speech = load_speech(reader, iri)
    return load_full_text(reader, speech, load_spans(reader, [speech.iri])[speech.iri])


def suggest_speeches(reader: Reader, wanted: str) -> str:
    """Suggest ids of speeches for an unknown one, in one or two sentences."""
    answer = reader.kg.query(IDS, limit=IDS_COMPARED)
    ids = [term_text(row["id"]) for row in answer.result] if isinstance(answer.result, Rows) else []
    if not ids:
        return "No speeches are loaded."
    near = nearest(wanted, sorted(ids), NEAR)
    return f"Similar: {', '.join(map(name_or_quote, near))}. search_speeches returns valid ids."
