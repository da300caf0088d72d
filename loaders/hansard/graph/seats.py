"""The states and parties of speakers that records lack: graphs derived in the commit of the speeches or a register.

Each sitting day has up to four graphs:

- ``seat``: ``kg:state`` by the electorate that is recorded with the speech, which determines the state on that day
  (`loaders.hansard.electorates`).
- ``seat/register``: ``kg:state`` by the term of the speaker in a register of members.
- ``party/turns``: ``kg:party`` as recorded with other speeches of the speaker in that chamber on that day.
- ``party/register``: ``kg:party`` by the register.

Words of another person in a speech, such as an interjection, have a derived party in the same way.

A speech with a recorded state or party has none of these for it, also where its form is not understood. A speaker who
is recorded on a day for electorates in several states is resolved by the register only: one of them is an error of the
record. Two parties on a day, recorded or registered, determine none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, named_node, select, term_text
from kg.vocabulary import BASE, DCTERMS, KG, SOURCED, XSD, mint
from loaders.hansard.electorates import find_state
from loaders.hansard.graph.terms import Register, RegisteredTerm
from loaders.model import find_quads

SEAT: Final = Rule("seat", "1", "the state of the electorate that a speaker sat for on that day")
SEAT_REGISTER: Final = Rule("seat-register", "1", "the state that a register lists for the speaker on that day")
PARTY_TURNS: Final = Rule("party-turns", "1", "the one party of the speaker's other speeches of that day")
PARTY_REGISTER: Final = Rule("party-register", "1", "the one party that a register lists for the speaker on that day")
_AUSTRALIAN: Final = f"{BASE}id/electorate/au/"
_CONFIDENCE: Final = {SEAT: "0.99", SEAT_REGISTER: "0.99", PARTY_TURNS: "0.99", PARTY_REGISTER: "0.97"}
_FAMILIES: Final = {
    SEAT: ("seat",),
    SEAT_REGISTER: ("seat", "register"),
    PARTY_TURNS: ("party", "turns"),
    PARTY_REGISTER: ("party", "register"),
}
"""The graphs of each rule below ``graph/der/``."""

DAYS: Final = """
SELECT DISTINCT ?date WHERE {
  VALUES ?graph { $graphs } GRAPH ?graph { ?speech kg:speakerAsRecorded ?name ; dcterms:date ?date }
}"""

DAYS_OF: Final = """
SELECT DISTINCT ?person ?date WHERE {
  VALUES ?person { $people } ?said kg:speaker ?person
  { ?said dcterms:date ?date } UNION { ?said dcterms:isPartOf ?speech . ?speech a kg:Speech ; dcterms:date ?date }
}"""

SPEECHES: Final = """
SELECT ?speech ?graph ?property ?value WHERE {
  VALUES ?date { $dates }
  GRAPH ?graph { ?speech dcterms:date ?date ; kg:speakerAsRecorded ?name ; ?property ?value }
  FILTER(?property IN (dcterms:date, kg:chamber, kg:electorate, kg:party, kg:partyAsRecorded, kg:speaker, kg:state,
                       kg:stateAsRecorded))
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

UTTERANCES: Final = """
SELECT ?said ?graph ?property ?value WHERE {
  VALUES ?date { $dates }
  GRAPH ?graph {
    ?speech dcterms:date ?date ; kg:speakerAsRecorded ?name .
    ?said dcterms:isPartOf ?speech ; kg:utteranceType ?type ; ?property ?value
  }
  FILTER(?property IN (kg:party, kg:speaker))
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

_READ: Final = (
    DCTERMS.date,
    KG.chamber,
    KG.electorate,
    KG.party,
    KG.partyAsRecorded,
    KG.speaker,
    KG.state,
    KG.stateAsRecorded,
)


@dataclass(frozen=True, slots=True)
class _Speech:
    """A speech, or words of another person in one, with the recorded properties of the person who speaks."""

    iri: NamedNode
    graph: NamedNode
    said: Mapping[NamedNode, Term] = field(hash=False)
    whole: bool = True
    """Whether it is a speech."""

    def node(self, name: NamedNode) -> NamedNode | None:
        """Return a recorded node, such as the speaker."""
        return named_node(self.said[name]) if name in self.said else None

    def has_any(self, *names: NamedNode) -> bool:
        """Whether the source records any of these."""
        return any(name in self.said for name in names)


_Found = dict[Rule, list[tuple[NamedNode, NamedNode, NamedNode, set[NamedNode]]]]
"""By rule: speech, property, value, and the graphs that show it."""


class Seats:
    """The states and parties of the speakers in the speeches below ``graph/src/{domain}/``."""

    def __init__(self, domain: str, register: Register) -> None:
        self.sources: Final = f"{SOURCED}{domain}/"
        self.register: Final = register

    def derive(
        self,
        store: Store,
        replace: Mapping[NamedNode, Sequence[Quad]],
        changed: Collection[RegisteredTerm] = (),
    ) -> Derived:
        """Return the graphs of the days whose speeches change with a commit, each with its sources.

        `changed` are the terms that come, go or change with it.
        """
        graphs = [graph for graph in replace if graph.value.startswith(self.sources)]
        by_day: dict[str, list[_Speech]] = defaultdict(list)
        for graph in graphs:
            quads = find_quads(replace[graph], _READ)
            _collect(by_day, graph, ((quad.subject, quad.predicate, quad.object) for quad in quads))
        days = {*by_day, *(term_text(row["date"]) for row in select(store.query_sources, bind(DAYS, graphs=graphs)))}
        days |= _find_days(store, changed)
        if not days:
            return {}
        dates = [Literal(day, datatype=XSD.date) for day in sorted(days)]
        others: dict[NamedNode, list[tuple[Term, NamedNode, Term]]] = defaultdict(list)
        for row in select(store.query_sources, bind(SPEECHES, dates=dates, prefix=Literal(self.sources))):
            if (graph := named_node(row["graph"])) not in replace:
                others[graph].append((row["speech"], named_node(row["property"]), row["value"]))
        for row in select(store.query_sources, bind(UTTERANCES, dates=dates, prefix=Literal(self.sources))):
            if (graph := named_node(row["graph"])) in others:
                others[graph].append((row["said"], named_node(row["property"]), row["value"]))
        for graph, said in others.items():
            _collect(by_day, graph, said)
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
        for day in sorted(days):
            made |= _write(day, self._resolve(day, by_day.get(day, ())))
        return made

    def _resolve(self, day: str, speeches: Sequence[_Speech]) -> _Found:
        """Find the states and parties that the speeches of a day lack."""
        states = {
            each: find_state(each.value.removeprefix(_AUSTRALIAN), int(day[:4]))
            for each in _electorates(speeches)
            if each.value.startswith(_AUSTRALIAN)
        }
        seats: dict[NamedNode, set[NamedNode | None]] = defaultdict(set)
        parties: dict[tuple[NamedNode, Term | None], dict[NamedNode, set[NamedNode]]] = defaultdict(dict)
        for speech in speeches:
            person, electorate, party = (speech.node(name) for name in (KG.speaker, KG.electorate, KG.party))
            if person is not None and electorate is not None:
                seats[person].add(states.get(electorate))
            if person is not None and party is not None:
                parties[person, speech.said.get(KG.chamber)].setdefault(party, set()).add(speech.graph)
        found: _Found = {rule: [] for rule in _FAMILIES}
        for speech in sorted(speeches, key=lambda each: each.iri.value):
            person, electorate, chamber = (speech.node(name) for name in (KG.speaker, KG.electorate, KG.chamber))
            terms = self.register.find(person, chamber, day) if person is not None and chamber is not None else ()
            shown = {speech.graph, *(term.graph for term in terms)}
            state = states.get(electorate) if electorate is not None else None
            if speech.whole and not speech.has_any(KG.state, KG.stateAsRecorded):
                registered = {term.state for term in terms if term.state is not None}
                if state is not None and (person is None or len(seats[person]) == 1):
                    found[SEAT].append((speech.iri, KG.state, state, {speech.graph}))
                elif len(registered) == 1:
                    found[SEAT_REGISTER].append((speech.iri, KG.state, registered.pop(), shown))
            if not speech.has_any(KG.party, KG.partyAsRecorded) and person is not None:
                recorded = parties.get((person, speech.said.get(KG.chamber)), {})
                listed = {party for term in terms for party in term.parties}
                if len(recorded) == 1:
                    ((party, graphs),) = recorded.items()
                    found[PARTY_TURNS].append((speech.iri, KG.party, party, {speech.graph, *graphs}))
                elif not recorded and len(listed) == 1 and all(term.parties for term in terms):
                    found[PARTY_REGISTER].append((speech.iri, KG.party, listed.pop(), shown))
        return found


def _electorates(speeches: Iterable[_Speech]) -> set[NamedNode]:
    return {electorate for speech in speeches if (electorate := speech.node(KG.electorate)) is not None}


def _find_days(store: Store, terms: Collection[RegisteredTerm]) -> set[str]:
    """Find the days within `terms` on which their members spoke."""
    if not terms:
        return set()
    by_person: dict[NamedNode, list[RegisteredTerm]] = defaultdict(list)
    for term in terms:
        by_person[term.person].append(term)
    rows = select(store.query_sources, bind(DAYS_OF, people=sorted(by_person, key=str)))
    return {
        day
        for row in rows
        if any(term.covers(day := term_text(row["date"])) for term in by_person[named_node(row["person"])])
    }


def _collect(by_day: dict[str, list[_Speech]], graph: NamedNode, said: Iterable[tuple[Term, NamedNode, Term]]) -> None:
    """Add the speeches of a graph, and what others than the speaker say in them."""
    found: dict[Term, dict[NamedNode, Term]] = defaultdict(dict)
    for subject, name, value in said:
        found[subject][name] = value
    for speech, values in found.items():
        if DCTERMS.date in values and (KG.speaker in values or KG.electorate in values):
            by_day[term_text(values[DCTERMS.date])].append(_Speech(named_node(speech), graph, values))
        elif KG.speaker in values and DCTERMS.date not in values:
            within = found.get(NamedNode(named_node(speech).value.partition("#")[0]), {})
            if DCTERMS.date in within and within.get(KG.speaker) != values[KG.speaker]:
                said_there = {**values, **{name: within[name] for name in (DCTERMS.date, KG.chamber) if name in within}}
                each = _Speech(named_node(speech), graph, said_there, whole=False)
                by_day[term_text(within[DCTERMS.date])].append(each)


def _write(day: str, found: _Found) -> dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]]:
    """Write the graphs of a day: one for each rule, empty where it finds nothing."""
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for rule, family in _FAMILIES.items():
        graph = mint("graph", "der", *family, day)
        quads = [Quad(speech, name, value, graph) for speech, name, value, _ in found[rule]]
        sources = sorted({source for *_, graphs in found[rule] for source in graphs}, key=lambda each: each.value)
        said = [(KG.method, Literal(rule.name)), (KG.confidence, Literal(_CONFIDENCE[rule], datatype=XSD.decimal))]
        made[graph] = quads, RecordOrigin("", (), sources, rule, said)
    return made
