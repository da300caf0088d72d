"""The tool `how_voted`: the votes of a person, or of a party's members, in the divisions on a bill or of a period."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import Names, fold
from kg.knowledge_graph import KnowledgeGraph
from kg.partial_dates import find_period
from kg.retrieval.choices import NEAREST, Choice, interpretation_note, shorten
from kg.retrieval.evidence import code_of, describe, origin_of
from kg.retrieval.notes import Note
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import Lean, Limit, Offset, Provenance, Result
from kg.sparql.terms import bind
from kg.store.protocol import Term, batched, term_text
from kg.text import join_first, name_or_quote, quoted
from kg.tools.parliament.person_names import find_parties, find_people
from kg.tools.parliament.speech_filters import (
    ChamberName,
    DateFrom,
    DateTo,
    PartyName,
    day,
    find_chamber,
)
from kg.vocabulary import BASE, FOAF, PROV_GRAPH, SKOS
from loaders.hansard.parties import CHAMBERS

Side = Literal["aye", "no", "pair", "pairedAye", "pairedNo"]

_PARTIES: Final = Text(f"{BASE}id/party/")
_DERIVED_GRAPHS: Final = f"{BASE}graph/der/"
_Finder = Callable[[str, str, Sequence[Choice]], list[Choice]]
_SEARCHED: Final = 200
"""Maximum divisions that are searched for open names that may be a person."""
_VOTES_KEPT: Final = 500
"""Divisions whose votes are kept, some 40 KB each with 100 names."""
_SHOWN_QUESTION: Final = 400
"""Maximum characters of the question of a division, and of the text before its names."""
REGISTER: Final = "A register of members settles most open names: kg load members FILE."
_INITIALS: Final = re.compile(r"(?<=, )[A-Z]{2,4}\b")

DIVISIONS: Final = """
SELECT ?graph ?division ?parent ?chamber ?date WHERE {
  ?division a kg:Division
  GRAPH ?graph { ?division dcterms:isPartOf ?parent ; kg:chamber ?chamber . ?sitting a kg:Sitting ; dcterms:date ?date }
}"""

BILLS: Final = "SELECT ?debate ?bill ?title WHERE { ?debate kg:concernsBill ?bill . ?bill dcterms:title ?title }"

PEOPLE: Final = """
SELECT DISTINCT ?person ?property ?name WHERE {
  ?person kg:identityStatus ?status
  { ?person ?property ?name FILTER(?property IN (foaf:name, skos:altLabel)) }
  UNION
  { VALUES ?property { dcterms:identifier } ?person ?property ?name
    FILTER NOT EXISTS { ?person foaf:name ?known } FILTER NOT EXISTS { ?person skos:altLabel ?known } }
}"""
"""The names of people, and the identifiers of those whom no list names."""

PARTIES: Final = """
SELECT DISTINCT ?party ?property ?name WHERE {
  ?party a kg:Party ; ?property ?name FILTER(?property IN (skos:prefLabel, skos:altLabel, skos:notation))
}"""

VOTED: Final = "SELECT DISTINCT ?vote WHERE { VALUES ?person { $people } ?vote kg:voter ?person }"

OPEN: Final = """
SELECT DISTINCT ?name WHERE { ?vote kg:voteAsRecorded ?name FILTER NOT EXISTS { ?vote kg:voter ?voter } }"""

VOTED_AS: Final = """
SELECT DISTINCT ?vote WHERE {
  VALUES ?name { $names } ?vote kg:voteAsRecorded ?name FILTER NOT EXISTS { ?vote kg:voter ?voter }
}"""

VOTES: Final = """
SELECT ?division ?vote ?name ?side ?by ?voter WHERE {
  VALUES ?division { $divisions }
  ?vote dcterms:isPartOf ?division ; kg:voteAsRecorded ?name ; kg:voteValue ?side
  OPTIONAL { GRAPH ?by { ?vote kg:voter ?voter } }
}"""

# One row for each division, since most names are of known voters.
OPEN_NAMES: Final = """
SELECT ?division (GROUP_CONCAT(?open; separator="\\u001f") AS ?names) WHERE {
  VALUES ?division { $divisions } ?vote dcterms:isPartOf ?division ; kg:voteAsRecorded ?name
  OPTIONAL { ?vote kg:voter ?voter } BIND(IF(BOUND(?voter), "", STR(?name)) AS ?open)
} GROUP BY ?division"""

SAID: Final = """
SELECT ?thing ?property ?value WHERE {
  VALUES ?thing { $things } ?thing ?property ?value
  FILTER(?property IN (dcterms:title, dcterms:description, kg:question, kg:questionIn, kg:start, kg:end, kg:result,
                       kg:ayeCount, kg:noCount, schema:startTime))
}"""

METHODS: Final = """
SELECT ?by ?method ?confidence WHERE {
  VALUES ?by { $graphs } GRAPH $prov { ?by kg:method ?method ; kg:confidence ?confidence }
}"""

AFFILIATIONS: Final = """
SELECT ?person ?party ?from ?to ?first ?last WHERE {
  VALUES ?person { $people } ?membership org:member ?person ; org:organization ?party
  FILTER(STRSTARTS(STR(?party), $parties))
  OPTIONAL { ?membership schema:startDate ?from } OPTIONAL { ?membership schema:endDate ?to }
  OPTIONAL { ?membership kg:firstSeen ?first } OPTIONAL { ?membership kg:lastSeen ?last }
}"""


class VoteCast(Lean):
    """A vote. Without `derived_by` the source itself names the voter; without `person_id` only the name is known."""

    id: str
    person: str
    person_id: str | None = None
    side: Side
    recorded_name: str = Field(description="The name in the division, verbatim")
    party: str | None = Field(None, description="On that day; derived")
    derived_by: str | None = Field(None, description="Rule that found the voter of the name")
    confidence: float | None = None


class PartySplit(Lean):
    """The derived votes of the members of a party in a division, by side."""

    party: str
    sides: dict[Side, int]


class DivisionVotes(Lean):
    """A division. `question`, `header` and `result` are verbatim; ayes and noes as the record counts them."""

    id: str
    date: str
    time: str | None = Field(None, description="HH:MM")
    chamber: str
    debate: str | None = None
    bills: list[str]
    question: str | None = Field(None, description="Question that was put")
    question_in: str | None = Field(None, description="IRI of the text with it")
    question_start: int | None = Field(None, description="Its offsets in that text, in code points")
    question_end: int | None = None
    header: str | None = Field(None, description="Text before the names")
    result: str | None = None
    ayes: int | None = None
    noes: int | None = None
    votes: list[VoteCast]
    split: list[PartySplit]
    names: int = Field(description="Names that the division lists")
    open_names: int = Field(description="Names without a known voter")
    without_party: int = Field(description="Known voters without a known party on that day")
    provenance: Provenance


class RecordedVote(NamedTuple):
    """A name in a division. `person` is None if its voter is not known."""

    name: str
    side: Side
    person: str | None


@dataclass(frozen=True, slots=True)
class DivisionNames:
    """A division as the record has it: question, header and result verbatim, and the names of each side."""

    iri: str
    time: str | None
    question: str | None
    header: str | None
    result: str | None
    ayes: int | None
    noes: int | None
    votes: Sequence[RecordedVote]

    def of(self, *sides: Side) -> list[RecordedVote]:
        """Get the votes of some sides, by name."""
        return sorted((vote for vote in self.votes if vote.side in sides), key=lambda vote: vote.name.casefold())


class HowVoted(Result):
    """Divisions, oldest first."""

    covered: bool = Field(description="Whether any division in this scope is loaded")
    divisions: list[DivisionVotes]


class _Division(NamedTuple):
    iri: str
    graph: str
    parent: str
    chamber: str
    day: str


class _Vote(NamedTuple):
    iri: str
    name: str
    side: Side
    voter: str | None
    by: str | None


@dataclass(frozen=True, slots=True)
class _OpenNames:
    """The names of a division whose voters are not known, with their numbers, by folded surname."""

    lists_names: bool = False
    by_surname: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def build(cls, names: Mapping[str, int]) -> _OpenNames:
        """Group the names by surname."""
        by_surname: dict[str, dict[str, int]] = defaultdict(dict)
        for name, count in names.items():
            by_surname[fold(name.partition(",")[0])][name] = count
        return cls(True, by_surname)


@dataclass(slots=True)
class _Affiliations:
    """The parties of people by day: those of registers, and those that speeches show."""

    registered: list[tuple[str, str, str]] = field(default_factory=list)
    seen: list[tuple[str, str, str]] = field(default_factory=list)

    def find(self, on: str) -> str | None:
        """Find the one party on a day: of speeches before and after, else of registers, which list a term's last."""
        for known in (self.seen, self.registered):
            if len(found := {party for party, first, last in known if first <= on <= last}) == 1:
                return next(iter(found))
        return None


def how_voted(
    kg: KnowledgeGraph,
    person: Annotated[str | None, Field(max_length=300, description="Name or IRI")] = None,
    party: PartyName = None,
    bill: Annotated[str | None, Field(max_length=500, description="Words of its title")] = None,
    division: Annotated[str | None, Field(max_length=300, description="IRI")] = None,
    chamber: ChamberName = None,
    date_from: DateFrom = None,
    date_to: DateTo = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> HowVoted:
    """Report how a person or party voted in divisions (votes by name), in debates on a bill or in a period.

    Use without person for the split of each party. Returns divisions: question (as put), time, result, votes, split,
    open_names (names without a known voter). Voters are mostly derived from names: derived_by, confidence. A division
    may be on an amendment or on procedure: read question and debate. Next: `search_speeches` of that day.
    Example: how_voted(bill="Tides Bill").
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    notes: list[str] = []
    everything = reader.kept("divisions", DIVISIONS, _divisions)
    bills = reader.kept("bills of debates", BILLS, _bills)
    scope = _in_scope(reader, everything, bills, bill, division, chamber, (date_from, date_to), notes)
    people, recorded = _find_voters(reader, person, notes) if person else ({}, set[str]())
    parties = _find(reader, "party", party, PARTIES, find_parties, notes) if party else {}
    reader.start_selection()
    covered = bool(scope)
    if not covered:
        notes.append(_not_covered(everything))
    if (people or recorded) and scope:
        query = bind(VOTED, people=[NamedNode(iri) for iri in people])
        if recorded:
            query = bind(VOTED_AS, names=[Text(name) for name in sorted(recorded)])
        named = {iri_of(row["vote"]).partition("#")[0] for row in reader.rows("votes", query)}
        others = [each for each in scope if each.iri not in named]
        notes += _report_others(reader, others, len(scope), people) if people else []
        scope = [each for each in scope if each.iri in named]
    page = scope[offset : offset + limit]
    votes = _load_votes(reader, [each.iri for each in page])
    shown = _build(reader, page, votes, bills, people, parties, recorded)
    if unknown := sum(each.open_names for each in shown):
        listed = sum(each.names for each in shown)
        notes.append(f"The voters of {unknown} of {listed} names in these divisions are not known. {REGISTER}")
    if unnamed := sum(not each.names for each in shown):
        message = f"{unnamed} of these divisions list no names: the source has them as an image, or not at all."
        notes.append(Note(message))
    if any(vote.by and vote.by.startswith(_DERIVED_GRAPHS) for each in votes.values() for vote in each):
        message = "Voters with derived_by are derived from the recorded name; the source does not identify them."
        notes.append(Note(message))
    return reader.finish(
        HowVoted(covered=covered, divisions=shown, notes=notes),
        total=len(scope),
        next_offset=page_of(scope, offset, limit),
    )


def _divisions(rows: list[dict[str, Term]]) -> list[_Division]:
    found = [
        _Division(
            iri_of(row["division"]),
            iri_of(row["graph"]),
            iri_of(row["parent"]),
            iri_of(row["chamber"]),
            term_text(row["date"]),
        )
        for row in rows
    ]
    return sorted(set(found), key=lambda each: (each.day, each.chamber, _number(each.iri)))


def _number(iri: str) -> int:
    return int(iri.rpartition("/")[2])


def _bills(rows: list[dict[str, Term]]) -> dict[str, dict[str, str]]:
    """By debate: the titles of its bills, by IRI."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        found[iri_of(row["debate"])][iri_of(row["bill"])] = term_text(row["title"])
    return found


def _bills_of(division: _Division, bills: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The bills of the innermost debate around a division that has any. The IRI of a debate has its path: ``3.1``."""
    root, _, path = division.parent.rpartition("/")
    while path:
        if found := bills.get(f"{root}/{path}"):
            return found
        path = path.rpartition(".")[0]
    return {}


def _in_scope(
    reader: Reader,
    everything: Sequence[_Division],
    bills: Mapping[str, Mapping[str, str]],
    bill: str | None,
    division: str | None,
    chamber: str | None,
    period: tuple[str | None, str | None],
    notes: list[str],
) -> list[_Division]:
    """Select divisions. Raises NotFoundError with similar values for an unknown bill, division or chamber."""
    first, last = day("date_from", period[0]), day("date_to", period[1])
    place = None if chamber is None else find_chamber(reader, chamber).value
    wanted = None if bill is None else _find_bills(clean_text("bill", bill, 500), bills, notes)
    iri = None if division is None else clean_text("division", division, 300).strip("<>")
    if iri is not None and iri not in {each.iri for each in everything}:
        hint = "how_voted(date_from, date_to) lists those that are."
        raise NotFoundError(f"division: Not covered: no division {quoted(iri)} is loaded. {hint}")
    return [
        each
        for each in everything
        if (iri is None or each.iri == iri)
        and (place is None or each.chamber == place)
        and (first is None or each.day >= first.isoformat())
        and (last is None or each.day <= last.isoformat())
        and (wanted is None or not wanted.isdisjoint(_bills_of(each, bills)))
    ]


def _find_bills(text: str, bills: Mapping[str, Mapping[str, str]], notes: list[str]) -> set[str]:
    """Find the bills with all words of `text` in their titles; an equal title alone if there is one."""
    titles = {iri: title for each in bills.values() for iri, title in each.items()}
    wanted = fold(text)
    found = {iri for iri, title in titles.items() if fold(title) == wanted or iri == text.strip("<>")}
    found = found or {iri for iri, title in titles.items() if set(wanted.split()) <= set(fold(title).split())}
    if not found:
        near = [each.name for each in Names(list(enumerate(titles.values()))).nearest(text, NEAREST)]
        similar = f" Similar: {'; '.join(map(quoted, near))}." if near else ""
        raise NotFoundError(f"bill: Not covered: no debate that is loaded is on a bill {quoted(text)}.{similar}")
    names = sorted({titles[iri] for iri in found})
    if names != [text]:
        notes.append(f"bill: {quoted(text)} was interpreted as {shorten(names)}.")
    return found


def _find(
    reader: Reader,
    argument: str,
    text: str,
    query: str,
    find: _Finder,
    notes: list[str],
) -> dict[str, str]:
    """Find people or parties by name: their labels, by IRI. Raises NotFoundError with similar names."""
    text = clean_text(argument, text, 300)
    found = find(argument, text, reader.kept(f"names for {argument}", query, _choices))
    notes += [note] if (note := interpretation_note(argument, text, found)) else []
    return {choice.term.value: choice.label for choice in found}


def _find_voters(reader: Reader, text: str, notes: list[str]) -> tuple[dict[str, str], set[str]]:
    """Find a person: labels by IRI; else, of one who is not known, the names in divisions that can be the person's.

    Raises NotFoundError with similar names.
    """
    try:
        return _find(reader, "person", text, PEOPLE, find_people, notes), set()
    except NotFoundError as error:
        names = [term_text(row["name"]) for row in reader.kept("names of unknown voters", OPEN, list) if "name" in row]
        choices = [Choice(Text(name), name, (name, _spread_initials(name))) for name in sorted(names)]
        try:
            found = find_people("person", text, choices) if choices else []
        except NotFoundError:
            found = []
        if not found:
            raise NotFoundError(f"{error} Nor has a division such a name. {REGISTER}") from error
        notes.append(
            f"person: {quoted(text)} was interpreted as {shorten([each.label for each in found])}: names in divisions "
            f"of which no person is known. {REGISTER}"
        )
        return {}, {each.label for each in found}


def _spread_initials(name: str) -> str:
    """Write the initials of a listed name apart: ``Fennimore, T J`` for ``Fennimore, TJ``."""
    return _INITIALS.sub(lambda found: " ".join(found[0]), name)


def _choices(rows: list[dict[str, Term]]) -> list[Choice]:
    main = {FOAF.name.value, SKOS.prefLabel.value}
    names: dict[str, list[tuple[bool, str]]] = defaultdict(list)
    for row in rows:
        thing = next(row[name] for name in ("person", "party") if name in row)
        names[iri_of(thing)].append((iri_of(row["property"]) not in main, term_text(row["name"])))
    choices = []
    for iri, forms in sorted(names.items()):
        ordered = tuple(dict.fromkeys(name for _, name in sorted(forms)))
        choices.append(Choice(NamedNode(iri), ordered[0], ordered))
    return choices


def _report_others(
    reader: Reader, others: Sequence[_Division], considered: int, people: Mapping[str, str]
) -> list[str]:
    """Report the divisions, of all `considered`, in which no name is known to be the person, and the open names that
    may be, of the latest of these divisions."""
    if not others:
        return []
    latest = _load_open_names(reader, [each.iri for each in others[-_SEARCHED:]])
    unnamed = sum(not each.lists_names for each in latest.values())
    surnames = {fold(_surname(label)) for label in people.values()}
    alike: Counter[str] = Counter()
    for each in latest.values():
        for surname in surnames:
            alike.update(each.by_surname.get(surname, {}))
    number = len(others)
    if number < considered:
        note = f"Of the {considered} divisions considered, {number} have no vote that is known to be of this person."
    elif considered == 1:
        note = "The division considered has no vote that is known to be of this person."
    else:
        note = f"None of the {considered} divisions considered has a vote that is known to be of this person."
    if len(latest) < number:
        note += f" The latest {len(latest)} of these were searched for voters who are not identified."
    if unnamed:
        note += f" {unnamed} of {'those searched' if len(latest) < number else 'these'} list no names of voters."
    if alike:
        names = join_first([f"{name_or_quote(name)} ({count})" for name, count in alike.most_common()], NEAREST)
        return [f"{note} Voters with this surname who are not identified, and may be this person: {names}. {REGISTER}"]
    return [f"{note} No voter with this surname is left unidentified there."] if unnamed < len(latest) else [note]


def _load_open_names(reader: Reader, divisions: Sequence[str]) -> dict[str, _OpenNames]:
    """Load the names without a known voter in divisions. Cached until a commit changes votes."""

    def load(missing: list[str]) -> dict[str, _OpenNames]:
        found: dict[str, _OpenNames] = {iri: _OpenNames() for iri in missing}
        query = bind(OPEN_NAMES, divisions=[NamedNode(iri) for iri in missing])
        for row in reader.rows("names left open", query) if missing else ():
            if "division" in row:  # not the one row about nothing
                names = Counter(name for name in term_text(row["names"]).split("\x1f") if name)
                found[iri_of(row["division"])] = _OpenNames.build(names)
        return found

    return reader.kept_by_iri("names left open", divisions, load, query=OPEN_NAMES)


def _surname(label: str) -> str:
    return label.partition(",")[0] if "," in label else label.split()[-1]


def _load_votes(reader: Reader, divisions: Sequence[str]) -> Mapping[str, Sequence[_Vote]]:
    """Load the votes of divisions. The last ones are cached until a commit changes votes."""

    def load(missing: list[str]) -> dict[str, list[_Vote]]:
        votes: dict[str, dict[str, _Vote]] = {iri: {} for iri in missing}
        for portion in batched(missing, 200):
            part = [NamedNode(iri) for iri in portion]
            for row in reader.rows("names of divisions", bind(VOTES, divisions=part)):
                voter = iri_of(row["voter"]) if "voter" in row else None
                by = iri_of(row["by"]) if "by" in row else None
                vote = _Vote(iri_of(row["vote"]), term_text(row["name"]), _side(row["side"]), voter, by)
                votes[iri_of(row["division"])].setdefault(vote.iri, vote)
        return {iri: list(each.values()) for iri, each in votes.items()}

    return reader.kept_by_iri("votes", divisions, load, most=_VOTES_KEPT, query=VOTES)


def load_division_names(reader: Reader, divisions: Sequence[str]) -> dict[str, DivisionNames]:
    """Load the names, questions and results of divisions, by IRI."""
    if not divisions:
        return {}
    votes = _load_votes(reader, divisions)
    said = _load_said(reader, divisions)
    found = {}
    for iri in divisions:
        own = said.get(iri, {})
        ayes, noes = (int(own[name]) if name in own else None for name in ("ayeCount", "noCount"))
        names = [RecordedVote(vote.name, vote.side, vote.voter) for vote in votes[iri]]
        found[iri] = DivisionNames(
            iri, _time_of(own), own.get("question"), own.get("description"), own.get("result"), ayes, noes, names
        )
    return found


def _time_of(said: Mapping[str, str]) -> str | None:
    return said["startTime"][:5] if "startTime" in said else None


def _side(term: Term) -> Side:
    return code_of(iri_of(term))  # type: ignore[return-value]  # the shapes allow no other code


def _build(
    reader: Reader,
    page: Sequence[_Division],
    votes: Mapping[str, Sequence[_Vote]],
    bills: Mapping[str, Mapping[str, str]],
    people: Mapping[str, str],
    parties: Mapping[str, str],
    recorded: Collection[str],
) -> list[DivisionVotes]:
    """Build the result for the divisions of a page."""
    said = _load_said(reader, [*(each.iri for each in page), *(each.parent for each in page)])
    voters = {vote.voter for each in votes.values() for vote in each if vote.voter is not None}
    affiliations = _load_affiliations(reader, voters)
    methods = _load_methods(reader, {vote.by for each in votes.values() for vote in each if vote.by})
    labels = {choice.term.value: choice.label for choice in reader.kept("names for party", PARTIES, _choices)}
    names = {choice.term.value: choice.label for choice in reader.kept("names for person", PEOPLE, _choices)}
    descriptions = describe(reader, (), {each.graph for each in page})
    shown = []
    for each in page:
        known = [
            (vote, affiliations[vote.voter].find(each.day) if vote.voter in affiliations else None)
            for vote in votes[each.iri]
            if vote.voter is not None
        ]
        split: dict[str, Counter[Side]] = defaultdict(Counter)
        for vote, party in known:
            if party is not None and (not parties or party in parties):
                split[party][vote.side] += 1
        cast = [*known, *((vote, None) for vote in votes[each.iri] if vote.voter is None and vote.name in recorded)]
        listed = [
            VoteCast(
                id=vote.iri,
                person=vote.name if vote.voter is None else names.get(vote.voter, code_of(vote.voter)),
                person_id=vote.voter,
                side=vote.side,
                recorded_name=vote.name,
                party=None if party is None else labels.get(party, code_of(party)),
                derived_by=methods[vote.by][0] if vote.by in methods else None,
                confidence=methods[vote.by][1] if vote.by in methods else None,
            )
            for vote, party in cast
            if (
                vote.voter is None or vote.voter in people if people or recorded else bool(parties) and party in parties
            )
        ]
        own, debate = said.get(each.iri, {}), said.get(each.parent, {})
        question, header = own.get("question"), own.get("description")
        shown.append(
            DivisionVotes(
                id=each.iri,
                date=each.day,
                chamber=CHAMBERS.get(code_of(each.chamber), code_of(each.chamber)),
                debate=debate.get("title"),
                bills=sorted(set(_bills_of(each, bills).values())),
                time=_time_of(own),
                question=question[:_SHOWN_QUESTION] if question else None,
                question_in=own.get("questionIn"),
                question_start=int(own["start"]) if "start" in own else None,
                question_end=int(own["end"]) if "end" in own else None,
                header=header[:_SHOWN_QUESTION] if header else None,
                result=own.get("result"),
                ayes=int(own["ayeCount"]) if "ayeCount" in own else None,
                noes=int(own["noCount"]) if "noCount" in own else None,
                votes=listed,
                split=[]
                if people or recorded
                else [
                    PartySplit(party=labels.get(party, code_of(party)), sides=dict(counts))
                    for party, counts in sorted(split.items(), key=lambda item: (-item[1].total(), item[0]))
                ],
                names=len(votes[each.iri]),
                open_names=len(votes[each.iri]) - len(known),
                without_party=sum(party is None for _, party in known),
                provenance=origin_of(reader, descriptions, each.graph),
            )
        )
    return shown


def _load_said(reader: Reader, things: Iterable[str]) -> dict[str, dict[str, str]]:
    """Load the recorded properties of divisions and debates, by the name of the property."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in reader.rows("divisions and debates", bind(SAID, things=[NamedNode(iri) for iri in set(things)])):
        name = iri_of(row["property"]).rpartition("/")[2].rpartition("#")[2]
        found[iri_of(row["thing"])].setdefault(name, term_text(row["value"]))
    return found


def _load_affiliations(reader: Reader, people: Collection[str]) -> dict[str, _Affiliations]:
    """Load the parties of people with their days."""
    found: dict[str, _Affiliations] = defaultdict(_Affiliations)
    query = bind(AFFILIATIONS, people=[NamedNode(iri) for iri in sorted(people)], parties=_PARTIES)
    for row in reader.rows("parties of voters", query):
        known, party = found[iri_of(row["person"])], iri_of(row["party"])
        if "from" in row:
            period = find_period(term_text(row["from"]), term_text(row["to"]) if "to" in row else None)
            known.registered.append((party, period.first, period.last))
        elif "first" in row and "last" in row:
            known.seen.append((party, term_text(row["first"]), term_text(row["last"])))
    return found


def _load_methods(reader: Reader, graphs: Collection[str]) -> dict[str | None, tuple[str, float]]:
    """Load the rule and the confidence of derived graphs."""
    nodes = [NamedNode(iri) for iri in sorted(graphs) if iri.startswith(_DERIVED_GRAPHS)]
    rows = reader.rows("rules", bind(METHODS, graphs=nodes, prov=PROV_GRAPH))
    return {iri_of(row["by"]): (term_text(row["method"]), float(term_text(row["confidence"]))) for row in rows}


def _not_covered(everything: Sequence[_Division]) -> str:
    if not everything:
        return "Not covered: no division is loaded."
    days = [each.day for each in everything]
    return f"Not covered: none of the loaded divisions ({len(days):,}, {min(days)} to {max(days)}) is in this scope."
