"""The tool `verify_fact`: answers a question, or checks a statement, with claims that it proves by SPARQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field
from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.connectors.names import GET_CLAIMS, SEARCH_ITEMS, SPARQL
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.observability import observe_step
from kg.retrieval.evidence import build_evidence, load_units
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, bounded, clean_text, iri_of
from kg.retrieval.results import Evidence, Layout, Lean, Result
from kg.sparql.terms import Bindable, bind
from kg.text import quoted
from kg.tools.wikidata.claims import Claim, Entity, Origin, Reference, load_claims, load_entities
from kg.tools.wikidata.entity_ids import show, to_iri
from kg.tools.wikidata.facts import NEAREST, Judge, Judgement, Verdict, build_proof, prove
from kg.tools.wikidata.names import ItemNames, PropertyNames, load_item_names, load_property_names
from kg.tools.wikidata.questions import (
    FindProperties,
    How,
    Reading,
    Understood,
    find_reviewed,
    merge_names,
    read_question,
)
from kg.tools.wikidata.remote import Remote, to_claims
from kg.tools.wikidata.search import FoundEntity, find_items, find_meant_properties
from kg.vocabulary import WD

QUESTION_CHARACTERS: Final = 500
TOP_N: Final = 5
"""Maximum number of items whose claims are read."""
_PROVED: Final = 5
"""Maximum number of claims of one verdict."""
_PASSAGES: Final = 3
_PASSAGES_READ: Final = 50
_VALUES: Final = 20
"""Maximum number of claims of remote items whose values are named."""
_SUBJECTS: Final = 2
"""Maximum number of names that servers of connectors are asked for."""

TOGETHER: Final = """
SELECT DISTINCT ?unit WHERE { ?unit kg:mentions $subject . ?unit kg:mentions $object } LIMIT $most"""

WITH_WORDS: Final = """
SELECT DISTINCT ?unit WHERE {
  ?unit kg:mentions $subject . ?unit schema:text ?text FILTER(REGEX(?text, $words, "i"))
} LIMIT $most"""

Question = Annotated[
    str,
    Field(
        min_length=1,
        max_length=QUESTION_CHARACTERS,
        description="One question or statement in English, naming the item: Where was X born? X was founded in 1214.",
    ),
]


class WikidataProvenance(Lean):
    """Where a claim is stated, and the query that shows it."""

    stated: ClassVar[frozenset[str]] = frozenset({"claimGuid"})

    qid: str
    claimGuid: str | None = Field(  # noqa: N815 -- the contract's name
        description="GUID of the claim; null if a remote server does not state which it is"
    )
    sparql: str | None = Field(None, description="Absent if the claim is not stored")
    rank: str | None
    references: list[Reference]
    source: Origin
    retrieved: str | None = None


class FactMetadata(Lean):
    """The metadata of a result."""

    wikidata: WikidataProvenance


class FactClaim(Lean):
    """A claim with its provenance."""

    item: str | None = Field(None, description="Label of the item")
    property: str
    property_label: str | None = None
    claim: Claim
    proved: bool = Field(description="Whether the query was run and found the claim")
    metadata: FactMetadata


class ReadQuestion(Lean):
    """How the question was read."""

    item: str = Field(description="QID")
    item_words: str = Field(description="The words of the question that name it")
    property: str
    property_words: str | None = None
    how: How = Field(description="form: a reviewed form of questions; name: of the property; meaning: similar words")
    value: str | None = Field(None, description="The value that is claimed; absent in a question")
    date: str | None = Field(None, description="The time that is asked for")


class FactResult(Result):
    """The verdict with its claims, the claims nearest to it, and passages of documents."""

    layout: ClassVar[Layout] = Layout(paged=("results", "nearest", "items", "passages"))

    verdict: Verdict
    reason: NoteText
    read: ReadQuestion | None = None
    results: list[FactClaim] = Field(default_factory=list, description="Claims that answer, support or contradict it")
    nearest: list[FactClaim] = Field(default_factory=list, description="Without these, the claims nearest to it")
    items: list[FoundEntity] = Field(description="Items that can be meant, the best first")
    passages: list[Evidence] = Field(
        default_factory=list, description="Texts that mention the item and the value together"
    )
    degraded: Literal["local"] | None = Field(None, description="local: a remote source did not answer")


@dataclass(slots=True)
class _Judged:
    """The verdict on one reading of one item."""

    reading: Reading
    entity: Entity
    property: str
    judgement: Judgement


@dataclass(slots=True)
class Check:
    """One check of a question, with the names to read it by."""

    kg: KnowledgeGraph
    reader: Reader
    question: str
    items: ItemNames
    properties: PropertyNames
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, kg: KnowledgeGraph, question: str) -> Check:
        """Prepare a check. Raises InvalidInputError for an empty or too long question."""
        reader = Reader(kg)
        text = " ".join(clean_text("question", question, QUESTION_CHARACTERS).split())
        return cls(kg, reader, text, load_item_names(kg), load_property_names(reader))

    def read(self, *, by_meaning: bool) -> Understood:
        """Read the question; a name that is misspelt once is corrected, with a note."""
        find = self._find_properties(by_meaning)
        understood = read_question(self.question, self.items.is_name, find)
        if understood.readings or understood.problem:
            return understood
        for words in understood.subjects:
            found = self.items.find_misspelt(words)
            if found is None:
                continue
            corrected = self.question.replace(words, found[1])
            again = read_question(corrected, self.items.is_name, find)
            if again.readings:
                self.notes.append(f"{quoted(words)} is not a name here. It was read as {quoted(found[1])}.")
                return again
        return understood

    def read_as(self, words: str) -> Understood:
        """Read the question as one about an item that `words` of it name, and that is not here."""
        return read_question(self.question, lambda name: name == fold(words), self._find_properties(False))

    def _find_properties(self, by_meaning: bool) -> FindProperties:
        def find(name: str) -> tuple[Sequence[tuple[str, ...]], How]:
            if found := merge_names(find_reviewed(name), self.properties.find(name)):
                return found, "name"
            if by_meaning:
                return [(pid,) for pid in find_meant_properties(self.kg, self.properties, name, self.notes)], "meaning"
            return (), "name"

        return find


def verify_fact(
    kg: KnowledgeGraph,
    question: Question,
    top_n: Annotated[int, Field(ge=1, le=TOP_N, description="Items whose claims are read")] = TOP_N,
) -> FactResult:
    """Answer a question or check a statement with claims of Wikidata, or say that they do not decide it.

    Use before stating a fact. Returns verdict: supported, qualified (stated with a reservation: alleged, circa,
    disputed), contradicted, not found; reason; read (how the question was read); results{claim, proved,
    metadata.wikidata{qid, claimGuid, sparql, rank, references, source, retrieved}}; nearest (claims that do not decide
    it); items; passages that mention item and value together.
    Example: verify_fact(question="Where was Ilsabet Varrow born?").
    Next: cite the claimGuid; `wikidata.get_claims` for other claims of the item; `fetch` with the id of a passage.
    """
    bounded("top_n", top_n, 1, TOP_N)
    check = Check.of(kg, question)
    understood = check.read(by_meaning=True)
    remote = Remote(kg)
    with observe_step(SEARCH_ITEMS):
        texts = [] if understood.readings else _ask_servers(check, remote, understood.subjects)
        if texts is None:
            check = Check.of(kg, question)
            understood = check.read(by_meaning=True)
        candidates = _list_candidates(check, understood, top_n)
    with observe_step(GET_CLAIMS):
        if remote.is_enabled and _store_values(check, remote, understood, candidates):
            check = Check.of(kg, question)
        judged, reason = _judge_all(check, understood, candidates)
    result = FactResult(verdict="not found", reason=reason, items=[], notes=check.notes)
    if judged is not None:
        _fill(check, result, judged)
    elif texts:
        result.reason = "A remote server states claims of it. They are not stored, so none of them is proved."
        result.nearest = texts[:NEAREST]
    result.items = _list_items(check, understood, candidates, top_n)
    result.notes += remote.notes
    if remote.has_failed:
        result.degraded = "local"
    return check.reader.finish(result, completeness="complete" if judged is not None else "approximate")


def _ask_servers(check: Check, remote: Remote, subjects: Sequence[str]) -> list[FactClaim] | None:
    """Ask the servers of connectors for an item that no name here is of. None if one is stored now.

    Else the claims that a server states of it in a text, of the properties that the question can mean.
    """
    for words in subjects[:_SUBJECTS]:
        found = remote.find(words)
        if remote.store([WD.iri + each.id for each in found]):
            return None
        for entity in found:
            if fold(entity.label) != fold(words):
                continue
            wanted = {pid for reading in check.read_as(words).readings[:1] for pid in reading.properties}
            claims = remote.read(WD.iri + entity.id, wanted) if wanted else None
            if claims is not None:
                stated = Entity(WD.iri + entity.id, WD.iri + entity.id, entity.label, origin="remote")
                stated.retrieved = claims.retrieved
                return [_shown(stated, claim, proved=False) for claim in to_claims(claims)]
    return []


def _store_values(check: Check, remote: Remote, understood: Understood, candidates: Mapping[str, None]) -> list[str]:
    """Store the values of claims of remote items that are items without a name here, so that they can be compared."""
    wanted = {pid for reading in understood.readings for pid in reading.properties}
    entities = load_entities(check.reader, list(candidates), wanted)
    statements = [each for entity in entities.values() if entity.origin == "remote" for each in entity.statements]
    claims = load_claims(check.reader, [each for each in statements if each.best][:_VALUES])
    values = [claim.value for claim in claims if claim.value.type == "entity" and claim.value.label is None]
    return remote.store(dict.fromkeys(to_iri(value.value) for value in values if value.value))


def _list_candidates(check: Check, understood: Understood, top_n: int) -> dict[str, None]:
    """List the items that readings name, the best reading first."""
    found: dict[str, None] = {}
    for reading in understood.readings:
        found |= dict.fromkeys(check.items.find(reading.subject))
    return dict.fromkeys(list(found)[:top_n])


def _judge_all(check: Check, understood: Understood, candidates: Mapping[str, None]) -> tuple[_Judged | None, str]:
    """Judge the readings, the best first, until one has claims. Returns it, else the reason why there is none."""
    if not understood.readings:
        return None, understood.problem or _explain_unread(check, understood)
    wanted = {pid for reading in understood.readings for pid in reading.properties}
    entities = load_entities(check.reader, list(candidates), wanted)
    judge = Judge(check.reader, check.items, present=understood.present)
    first: _Judged | None = None
    undecided: _Judged | None = None
    for number, reading in enumerate(understood.readings):
        named = [entities[iri] for iri in check.items.find(reading.subject) if iri in entities]
        having = [entity for entity in named if any(each.pid in reading.properties for each in entity.statements)]
        if len(having) > 1:
            several = ", ".join(
                f"{show(entity.iri)} ({quoted(entity.description or entity.label)})" for entity in having
            )
            return (
                None,
                f"{quoted(reading.subject)} is the name of several items with such claims: {several}. Name one.",
            )
        if reading.value is None and having and (others := _find_rivals(understood.readings[number:], having[0])):
            several = ", ".join(sorted(others))
            return None, f"{quoted(reading.phrase)} is a name of several properties with claims: {several}. Name one."
        for entity in having or named[:1]:
            found = _judge_one(check.reader, judge, reading, entity)
            if found.judgement.verdict != "not found":
                return found, found.judgement.reason
            if undecided is None and found.judgement.nearest:
                undecided = found
            first = first or found
    decided = undecided or first
    return decided, decided.judgement.reason if decided is not None else _explain_unread(check, understood)


def _find_rivals(readings: Sequence[Reading], entity: Entity) -> set[str]:
    """Find the properties with claims that the same words name as those of the first reading; none if it is alone."""
    first = readings[0]
    if first.how == "form":
        return set()
    stated = {each.pid for each in entity.statements}
    named = [
        each for each in readings if (each.subject, each.phrase, each.date) == (first.subject, first.phrase, first.date)
    ]
    found = [next(pid for pid in each.properties if pid in stated) for each in named if stated & set(each.properties)]
    return set(found) if len(set(found)) > 1 else set()


def _judge_one(reader: Reader, judge: Judge, reading: Reading, entity: Entity) -> _Judged:
    """Judge the properties of a reading in turn. In a question the first with claims answers."""
    result: _Judged | None = None
    for pid in reading.properties:
        statements = [each for each in entity.statements if each.pid == pid]
        if not statements:
            continue
        judgement = judge.judge(reading, load_claims(reader, statements))
        found = _Judged(reading, entity, pid, judgement)
        if judgement.verdict in ("supported", "qualified") or (reading.value is None and judgement.nearest):
            return found
        if result is None or judgement.verdict == "contradicted":
            result = found
    if result is not None:
        return result
    name = quoted(entity.label or show(entity.iri))
    missing = f"No claim of {name} ({show(entity.iri)}) states it ({', '.join(reading.properties)})."
    return _Judged(reading, entity, reading.properties[0], Judgement("not found", missing))


def _explain_unread(check: Check, understood: Understood) -> str:
    if understood.subjects and not understood.readings:
        names = ", ".join(map(quoted, understood.subjects[:2]))
        return f"No item here is called {names}. Load it with kg load wikibase, or use its label."
    if understood.phrases:
        names = ", ".join(map(quoted, understood.phrases[:2]))
        return f"{names} is not known as a property. `wikidata.vector_search_properties` finds properties by meaning."
    return (
        "The question is not covered: it has no form that is known. Ask for one property of one item, as in "
        "Where was X born? The population of X in 2011. X was founded in 1214."
    )


def _fill(check: Check, result: FactResult, judged: _Judged) -> None:
    """Add the claims of a verdict. A verdict whose claims are not proved is not one."""
    judgement, reading = judged.judgement, judged.reading
    chosen = judgement.chosen[:_PROVED]
    proved: list[Claim] = []
    if chosen:
        with observe_step(SPARQL):
            proved = prove(check.reader, [*chosen, *judgement.within])
    kept = [claim for claim in chosen if claim in proved]
    verdict = judgement.verdict
    if verdict != "not found" and (not kept or any(claim not in proved for claim in judgement.within)):
        verdict = "not found"
        result.reason = "The claims that state it were changed in the meantime. Ask again."
    result.verdict = verdict
    if len(judgement.chosen) > _PROVED:
        result.notes.append(f"{len(judgement.chosen)} claims answer it; the first {_PROVED} are shown.")
    result.read = ReadQuestion(
        item=show(judged.entity.iri),
        item_words=reading.subject,
        property=judged.property,
        property_words=reading.phrase,
        how=reading.how,
        value=reading.value,
        date=str(reading.date) if reading.date is not None else None,
    )
    if judged.entity.redirected:
        result.notes.append(f"{show(judged.entity.asked)} was merged into {show(judged.entity.iri)}.")
    shown = [*kept, *judgement.within] if verdict != "not found" else []
    result.results = _describe(check.reader, judged.entity, shown, proved=True)
    if verdict == "not found":
        result.nearest = _describe(check.reader, judged.entity, judgement.nearest[:NEAREST], proved=False)
    if kept and verdict != "not found":
        result.passages = _load_passages(check.reader, judged.entity.iri, kept)


def _describe(reader: Reader, entity: Entity, claims: Sequence[Claim], *, proved: bool) -> list[FactClaim]:
    """Describe claims of an item, and of the places that its values lie in, each with the origin of its own item."""
    others = sorted({to_iri(claim.qid) for claim in claims} - {entity.iri})
    entities = {each.iri: each for each in load_entities(reader, others, set()).values()} if others else {}
    return [_shown(entities.get(to_iri(claim.qid), entity), claim, proved=proved) for claim in claims]


def _shown(entity: Entity, claim: Claim, *, proved: bool) -> FactClaim:
    """Describe a claim of an item. One that no graph states has no proof."""
    return FactClaim(
        item=entity.label,
        property=claim.property,
        property_label=claim.property_label,
        claim=claim.model_copy(update={"references": None}),
        proved=proved,
        metadata=FactMetadata(
            wikidata=WikidataProvenance(
                qid=claim.qid,
                claimGuid=claim.guid,
                sparql=build_proof(claim) if entity.graph is not None else None,
                rank=claim.rank,
                references=claim.references or [],
                source=entity.origin,
                retrieved=entity.retrieved,
            )
        ),
    )


def _load_passages(reader: Reader, subject: str, claims: Sequence[Claim]) -> list[Evidence]:
    """Load passages that mention the item with the value of a claim: by name for an item, else by its words."""
    found: dict[str, None] = {}
    mentioned = {subject}
    for claim in claims:
        value = claim.value
        if value.value is None:
            continue
        common: dict[str, Bindable] = {"subject": NamedNode(subject), "most": _PASSAGES_READ}
        if value.type == "entity":
            iri = to_iri(value.value)
            mentioned.add(iri)
            query = bind(TOGETHER, **common, object=NamedNode(iri))
        elif (words := _to_pattern(claim)) is not None:
            query = bind(WITH_WORDS, **common, words=RdfLiteral(words))
        else:
            continue
        found |= dict.fromkeys(iri_of(row["unit"]) for row in reader.rows("texts that mention both", query))
    units = load_units(reader, sorted(found)[:_PASSAGES_READ])
    first = sorted(units.values(), key=lambda unit: (len(unit.text), unit.iri))[:_PASSAGES]
    return build_evidence(reader, first, mentioned=mentioned)


def _to_pattern(claim: Claim) -> str | None:
    """Build the pattern of a year or number in a text."""
    value = claim.value.value or ""
    if claim.value.type == "time":
        year = value.split("-")[0].lstrip("0") if claim.value.precision in ("day", "month", "year") else ""
        return rf"(^|[^0-9]){year}([^0-9]|$)" if year.isdecimal() else None
    if claim.value.type == "quantity" and value.isdecimal():
        grouped = f"{int(value):,}".replace(",", "[, .]?")
        return rf"(^|[^0-9]){grouped}([^0-9]|$)"
    return None


def _list_items(check: Check, understood: Understood, candidates: Mapping[str, None], top_n: int) -> list[FoundEntity]:
    """List the items that the question names, then those that its words resemble."""
    found = {each.qid: each for each in find_items(check.reader, check.question, limit=top_n)}
    named = load_entities(check.reader, [iri for iri in candidates if show(iri) not in found], set())
    first = [
        found.get(show(iri))
        or FoundEntity(qid=show(iri), label=named[iri].label, description=named[iri].description, named=True)
        for iri in candidates
        if show(iri) in found or iri in named
    ]
    for each in first:
        each.named = True
    rest = [each for each in found.values() if each not in first]
    return [*first, *rest][:top_n]
