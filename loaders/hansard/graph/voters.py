"""The voters that divisions name: graphs derived in the commit of the sittings, of a register or of speeches.

A record lists ``Fennimore, TJ``. The voter is the member of that chamber on that day whose surname and given names
agree (`loaders.hansard.person_names`), if exactly one does:

- ``register``: by a register of members (``kg load members``) that covers the day. It covers a day if it has members
  for most of the names of the day's divisions.
- ``speakers``: on other days, by the people who spoke in that chamber at most 12 years before or after.

``whole`` means that all initials agree, ``part`` that one of the names has fewer. Each of the four has a rule and a
confidence, and one graph for a sitting. A name that agrees with several people or with nobody has no voter, nor
have two names of a division that agree with one person. Votes with a voter in their source are left alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select, term_text
from kg.vocabulary import KG, RDF, SOURCED, XSD, mint
from loaders.hansard.graph.speakers import Seen, Speakers
from loaders.hansard.graph.terms import Register, RegisteredTerm
from loaders.hansard.person_names import Agreement, Name, compare, read_full, read_listed
from loaders.model import find_quads

YEARS: Final = 12
"""Years before the first and after the last speech of a person for which the person may vote in that chamber."""
COVERED: Final = 0.8
"""Share of the names of a day's divisions of which a register must have a member, to cover the day."""

_RULES: Final = {
    ("register", Agreement.WHOLE): (
        Rule("voter-register-whole", "1", "the one member in the register on that day with this surname and initials"),
        "0.99",
    ),
    ("register", Agreement.PART): (
        Rule(
            "voter-register-part",
            "1",
            "the one member in the register on that day with this surname and these initials as far as both are known",
        ),
        "0.98",
    ),
    ("speakers", Agreement.WHOLE): (
        Rule("voter-speakers-whole", "1", "the one speaker of that chamber within 12 years with this name"),
        "0.95",
    ),
    ("speakers", Agreement.PART): (
        Rule(
            "voter-speakers-part",
            "1",
            "the one speaker of that chamber within 12 years with this surname and these initials as far as both are "
            "known",
        ),
        "0.9",
    ),
}

SITTINGS: Final = """
SELECT DISTINCT ?graph ?chamber ?date WHERE {
  ?division a kg:Division
  GRAPH ?graph { ?division kg:chamber ?chamber . ?sitting a kg:Sitting ; dcterms:date ?date }
}"""

VOTES: Final = """
SELECT ?graph ?vote ?name ?voter WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?vote kg:voteAsRecorded ?name OPTIONAL { ?vote kg:voter ?voter } }
}"""


class _Vote(NamedTuple):
    """A name in a division."""

    iri: str
    name: str

    @property
    def division(self) -> str:
        return self.iri.partition("#")[0]


@dataclass(frozen=True, slots=True)
class _Sitting:
    """A sitting with divisions: its graph, and the votes whose source names no voter."""

    graph: NamedNode
    chamber: NamedNode
    day: str
    votes: Sequence[_Vote] = ()

    @property
    def key(self) -> tuple[str, str]:
        return self.chamber.value.rpartition("/")[2], self.day


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A person who may have voted."""

    person: NamedNode
    names: Sequence[str]
    graph: NamedNode
    """The graph that shows it."""


@dataclass(slots=True)
class Voters:
    """The voters of the divisions below ``graph/src/{domain}/``. An instance serves one load."""

    domain: str
    register: Register
    speakers: Speakers
    _sittings: dict[NamedNode, _Sitting] | None = field(default=None, init=False)
    """The stored sittings with divisions, without their votes."""

    def derive(
        self,
        store: Store,
        replace: Mapping[NamedNode, Sequence[Quad]],
        changed_terms: Collection[RegisteredTerm],
    ) -> Derived:
        """Return the graphs of the sittings whose voters change with a commit, each with its sources.

        `changed_terms` are the terms that come, go or change with it.
        """
        given = [_find_votes(graph, replace[graph]) for graph in replace if self._is_sitting(graph)]
        sittings = {each.graph: each for each in given if each is not None}
        gone = {graph for graph in replace if self._is_sitting(graph)} - sittings.keys()
        stored = _load_sittings(store) if self._sittings is None else self._sittings
        self._sittings = {graph: each for graph, each in stored.items() if graph not in gone} | {
            graph: _Sitting(graph, each.chamber, each.day) for graph, each in sittings.items()
        }
        windows = _find_windows(self.speakers)
        again = [
            each
            for graph, each in stored.items()
            if graph not in replace
            and (
                any(term.chamber == each.chamber and term.may_cover(each.day) for term in changed_terms)
                or (
                    any(seen.chamber == each.chamber and seen.first <= each.day <= seen.last for seen in windows)
                    and not any(store.graph(name) for name in _graphs_of(each, "register"))
                )
            )
        ]
        sittings |= _load_votes(store, again)
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
        for graph in gone:
            if graph in stored:
                made |= dict.fromkeys(_graphs_of(stored[graph]), ((), RecordOrigin("", ())))
        if not sittings:
            return made
        for sitting in sittings.values():
            # Who may be a member, so that a name that also agrees with them stays open.
            terms = [
                term for term in self.register.terms if term.chamber == sitting.chamber and term.may_cover(sitting.day)
            ]
            listed = _by_surname(_Candidate(term.person, term.names, term.graph) for term in terms)
            unsure = {term.person for term in terms} - {term.person for term in terms if term.covers(sitting.day)}
            method = "register"
            if not _covers(listed, sitting.votes):
                method, unsure = "speakers", set()
                listed = _by_surname(
                    _Candidate(seen.person, self.speakers.names_of(seen.person), graph)
                    for graph, memberships in self.speakers.seen.items()
                    for seen in map(_widen, memberships)
                    if seen.chamber == sitting.chamber and seen.first <= sitting.day <= seen.last
                )
            made |= _written(sitting, method, _resolve(sitting.votes, listed, unsure))
        return made

    def _is_sitting(self, graph: NamedNode) -> bool:
        return graph.value.startswith(f"{SOURCED}{self.domain}/")


def _find_votes(graph: NamedNode, quads: Sequence[Quad]) -> _Sitting | None:
    """Find the sitting with its votes among the quads of a record; None without a division."""
    divisions = {each.subject for each in find_quads(quads, (RDF.type,)) if each.object == KG.Division}
    if not divisions:
        return None
    chamber = next(each.object for each in find_quads(quads, (KG.chamber,)) if each.subject in divisions)
    known = {each.subject for each in find_quads(quads, (KG.voter,))}
    votes = [
        _Vote(named_node(each.subject).value, term_text(each.object))
        for each in find_quads(quads, (KG.voteAsRecorded,))
        if each.subject not in known
    ]
    return _Sitting(graph, named_node(chamber), graph.value.rpartition("/")[2], votes)


def _load_sittings(store: Store) -> dict[NamedNode, _Sitting]:
    """Load the stored sittings with divisions, without their votes."""
    return {
        named_node(row["graph"]): _Sitting(named_node(row["graph"]), named_node(row["chamber"]), term_text(row["date"]))
        for row in select(store.query_sources, SITTINGS)
    }


def _load_votes(store: Store, sittings: Sequence[_Sitting]) -> dict[NamedNode, _Sitting]:
    """Load the votes of stored sittings."""
    if not sittings:
        return {}
    votes: dict[NamedNode, list[_Vote]] = defaultdict(list)
    for row in select(store.query_sources, bind(VOTES, graphs=[each.graph for each in sittings])):
        if "voter" not in row:
            votes[named_node(row["graph"])].append(_Vote(named_node(row["vote"]).value, term_text(row["name"])))
    return {each.graph: _Sitting(each.graph, each.chamber, each.day, votes[each.graph]) for each in sittings}


def _find_windows(speakers: Speakers) -> list[Seen]:
    """Find the days on which other people, or people of other names, may have voted than before the commit."""
    windows: list[Seen] = []
    for before, after, is_renamed in speakers.changed.values():
        for seen in before | after:
            if is_renamed:
                windows.append(_widen(seen))
            elif (seen in before) != (seen in after):
                windows += _difference(_widen(seen), map(_widen, before if seen in after else after))
    return windows


def _difference(seen: Seen, those: Iterable[Seen]) -> list[Seen]:
    """Return the days of `seen` that none of `those` has for that chamber."""
    other = next((each for each in those if each.chamber == seen.chamber), None)
    if other is None:
        return [seen]
    parts = []
    if seen.first < other.first:
        parts.append(seen._replace(last=min(seen.last, other.first)))
    if seen.last > other.last:
        parts.append(seen._replace(first=max(seen.first, other.last)))
    return parts


def _widen(seen: Seen) -> Seen:
    """Return the days between which a person may vote in the chamber."""
    return seen._replace(first=_shift(seen.first, -YEARS), last=_shift(seen.last, YEARS))


def _shift(day: str, years: int) -> str:
    year = min(date.max.year, max(date.min.year, int(day[:4]) + years))
    return f"{year:04}{day[4:]}"


def _by_surname(candidates: Iterable[_Candidate]) -> Mapping[str, Sequence[_Candidate]]:
    found: dict[str, dict[_Candidate, None]] = defaultdict(dict)
    for candidate in candidates:
        for name in candidate.names:
            for each in read_full(name):
                found[each.surname][candidate] = None
    return {surname: list(each) for surname, each in found.items()}


def _covers(listed: Mapping[str, Sequence[_Candidate]], votes: Sequence[_Vote]) -> bool:
    """Whether a register has members for enough of the names."""
    names = {read_listed(vote.name) for vote in votes}
    known = sum(_find(name, listed)[0] is not Agreement.NONE for name in names)
    return bool(names) and known >= COVERED * len(names)


def _find(name: Name, listed: Mapping[str, Sequence[_Candidate]]) -> tuple[Agreement, Sequence[_Candidate]]:
    """Find the candidates whose names agree best with a listed name."""
    agreed: dict[Agreement, dict[NamedNode, _Candidate]] = defaultdict(dict)
    for candidate in listed.get(name.surname, ()):
        agreed[compare(name, candidate.names)].setdefault(candidate.person, candidate)
    for agreement in (Agreement.WHOLE, Agreement.PART):
        if agreed[agreement]:
            return agreement, list(agreed[agreement].values())
    return Agreement.NONE, ()


def _resolve(
    votes: Sequence[_Vote], listed: Mapping[str, Sequence[_Candidate]], unsure: Collection[NamedNode]
) -> Mapping[Agreement, Sequence[tuple[_Vote, _Candidate]]]:
    """Resolve the votes of a sitting to people, by how far the names agree; not to people who are `unsure`."""
    by_division: dict[str, list[tuple[Agreement, _Vote, _Candidate]]] = defaultdict(list)
    for vote in votes:
        agreement, found = _find(read_listed(vote.name), listed)
        if len(found) == 1:
            by_division[vote.division].append((agreement, vote, found[0]))
    resolved: dict[Agreement, list[tuple[_Vote, _Candidate]]] = defaultdict(list)
    for each in by_division.values():
        votes_of = Counter(candidate.person for _, _, candidate in each)
        for agreement, vote, candidate in each:
            if votes_of[candidate.person] == 1 and candidate.person not in unsure:  # a person votes once in a division
                resolved[agreement].append((vote, candidate))
    return resolved


def _written(
    sitting: _Sitting, method: str, resolved: Mapping[Agreement, Sequence[tuple[_Vote, _Candidate]]]
) -> dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]]:
    """Write the graphs of a sitting: one for each rule, empty where a rule finds nobody."""
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for (by, agreement), (rule, confidence) in _RULES.items():
        graph = _graph_of(sitting, by, agreement)
        found = resolved.get(agreement, ()) if by == method else ()
        quads = [Quad(NamedNode(vote.iri), KG.voter, candidate.person, graph) for vote, candidate in found]
        sources = {candidate.graph.value for _, candidate in found}
        origin = RecordOrigin(
            "",
            (),
            [sitting.graph, *map(NamedNode, sorted(sources))] if quads else (),
            rule,
            [(KG.method, Literal(rule.name)), (KG.confidence, Literal(confidence, datatype=XSD.decimal))],
        )
        made[graph] = quads, origin
    return made


def _graphs_of(sitting: _Sitting, method: str | None = None) -> list[NamedNode]:
    return [_graph_of(sitting, *each) for each in _RULES if method in (None, each[0])]


def _graph_of(sitting: _Sitting, method: str, agreement: Agreement) -> NamedNode:
    return mint("graph", "der", "voter", method, agreement.name.lower(), *sitting.key)
