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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final, NamedTuple
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, named_node, select, term_text
from kg.vocabulary import BASE, FOAF, KG, ORG, RDF, SKOS, SOURCED, XSD, mint
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

SPEAKERS: Final = """
SELECT ?graph ?person ?chamber ?first ?last WHERE {
  ?membership kg:firstSeen ?first
  GRAPH ?graph { ?membership org:member ?person ; org:organization ?chamber ; kg:lastSeen ?last }
  FILTER(STRSTARTS(STR(?chamber), $chambers))
}"""

NAMES: Final = """
SELECT DISTINCT ?person ?name WHERE { VALUES ?person { $persons } ?person foaf:name|skos:altLabel ?name }"""

_CHAMBERS: Final = f"{BASE}id/chamber/"


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


class _Seen(NamedTuple):
    """The days between which a person may have voted in a chamber, as speeches show."""

    person: NamedNode
    chamber: NamedNode
    first: str
    last: str
    graph: NamedNode


@dataclass(slots=True)
class Voters:
    """The voters of the divisions below ``graph/src/{domain}/``. An instance serves one load."""

    domain: str
    register: Register
    _sittings: dict[NamedNode, _Sitting] | None = field(default=None, init=False)
    """The stored sittings with divisions, without their votes."""

    def derive(
        self,
        store: Store,
        replace: Mapping[NamedNode, Sequence[Quad]],
        memberships: Derived,
        changed_terms: Collection[RegisteredTerm],
    ) -> Derived:
        """Return the graphs of the sittings whose voters change with a commit, each with its sources.

        `memberships` and `changed_terms` are the derived memberships and the terms that change in the same commit.
        """
        given = [_find_votes(graph, replace[graph]) for graph in replace if self._is_sitting(graph)]
        sittings = {each.graph: each for each in given if each is not None}
        gone = {graph for graph in replace if self._is_sitting(graph)} - sittings.keys()
        stored = _load_sittings(store) if self._sittings is None else self._sittings
        self._sittings = {graph: each for graph, each in stored.items() if graph not in gone} | {
            graph: _Sitting(graph, each.chamber, each.day) for graph, each in sittings.items()
        }
        windows = _find_changed(store, replace, memberships)
        again = [
            each
            for graph, each in stored.items()
            if graph not in replace
            and (
                any(term.chamber == each.chamber and term.covers(each.day) for term in changed_terms)
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
        speakers: list[_Seen] | None = None
        names: dict[NamedNode, Sequence[str]] = {}
        for sitting in sittings.values():
            listed = _by_surname(
                _Candidate(term.person, term.names, term.graph)
                for term in self.register.terms
                if term.chamber == sitting.chamber and term.covers(sitting.day)
            )
            method = "register"
            if not _covers(listed, sitting.votes):
                method = "speakers"
                if speakers is None:
                    speakers = _load_speakers(store, memberships)
                    names = _load_names(store, replace, {seen.person for seen in speakers})
                listed = _by_surname(
                    _Candidate(seen.person, tuple(names.get(seen.person, ())), seen.graph)
                    for seen in speakers
                    if seen.chamber == sitting.chamber and seen.first <= sitting.day <= seen.last
                )
            made |= _written(sitting, method, _resolve(sitting.votes, listed))
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


def _find_changed(store: Store, replace: Mapping[NamedNode, Sequence[Quad]], memberships: Derived) -> Sequence[_Seen]:
    """Find the days on which other people, or people of other names, may have voted than before the commit."""
    changed: list[_Seen] = []
    renamed = {mint("graph", "der", "membership", _key(graph)) for graph in replace if _is_person(graph)}
    for graph in {*memberships, *renamed}:
        before = set(_seen_in(graph, store.graph(graph)))
        after = set(_seen_in(graph, memberships[graph][0])) if graph in memberships else before
        for seen in before | after:
            if graph in renamed:
                changed.append(seen)
            elif (seen in before) != (seen in after):
                changed += _difference(seen, before if seen in after else after)
    return changed


def _key(graph: NamedNode) -> str:
    return unquote(graph.value.rpartition("/")[2])


def _difference(seen: _Seen, those: set[_Seen]) -> list[_Seen]:
    """Return the days of `seen` that none of `those` has for that chamber."""
    others = [each for each in those if each.chamber == seen.chamber]
    if not others:
        return [seen]
    other = others[0]
    parts = []
    if seen.first < other.first:
        parts.append(seen._replace(last=min(seen.last, other.first)))
    if seen.last > other.last:
        parts.append(seen._replace(first=max(seen.first, other.last)))
    return parts


def _is_person(graph: NamedNode) -> bool:
    return graph.value.startswith(f"{BASE}graph/ref/person/")


def _seen_in(graph: NamedNode, quads: Iterable[Quad]) -> Iterator[_Seen]:
    """Yield the memberships of chambers in a derived graph, by its quads."""
    nodes: dict[Term, dict[NamedNode, Term]] = defaultdict(dict)
    for quad in quads:
        nodes[quad.subject][quad.predicate] = quad.object
    for said in nodes.values():
        if (organization := named_node(said[ORG.organization])).value.startswith(_CHAMBERS):
            first, last = term_text(said[KG.firstSeen]), term_text(said[KG.lastSeen])
            yield _widen(named_node(said[ORG.member]), organization, first, last, graph)


def _widen(person: NamedNode, chamber: NamedNode, first: str, last: str, graph: NamedNode) -> _Seen:
    return _Seen(person, chamber, _shift(first, -YEARS), _shift(last, YEARS), graph)


def _shift(day: str, years: int) -> str:
    year = min(date.max.year, max(date.min.year, int(day[:4]) + years))
    return f"{year:04}{day[4:]}"


def _load_speakers(store: Store, memberships: Derived) -> list[_Seen]:
    """Load the people who spoke, with the memberships that change."""
    found = [seen for graph, (quads, _) in memberships.items() for seen in _seen_in(graph, quads)]
    for row in select(store.query_sources, bind(SPEAKERS, chambers=Literal(_CHAMBERS))):
        if (graph := named_node(row["graph"])) not in memberships:
            first, last = term_text(row["first"]), term_text(row["last"])
            found.append(_widen(named_node(row["person"]), named_node(row["chamber"]), first, last, graph))
    return found


def _load_names(
    store: Store, replace: Mapping[NamedNode, Sequence[Quad]], persons: Collection[NamedNode]
) -> dict[NamedNode, Sequence[str]]:
    """Load the names of people, as after the commit."""
    names: dict[NamedNode, list[str]] = defaultdict(list)
    replaced = {quad.subject for graph in replace if _is_person(graph) for quad in replace[graph]}
    for row in select(store.query_sources, bind(NAMES, persons=[each for each in persons if each not in replaced])):
        names[named_node(row["person"])].append(term_text(row["name"]))
    for graph in replace:
        for quad in replace[graph] if _is_person(graph) else ():
            if quad.predicate in (FOAF.name, SKOS.altLabel) and isinstance(quad.subject, NamedNode):
                names[quad.subject].append(quad.object.value)  # type: ignore[union-attr]  # a literal
    return dict(names)


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
    votes: Sequence[_Vote], listed: Mapping[str, Sequence[_Candidate]]
) -> Mapping[Agreement, Sequence[tuple[_Vote, _Candidate]]]:
    """Resolve the votes of a sitting to people, by how far the names agree."""
    by_division: dict[str, list[tuple[Agreement, _Vote, _Candidate]]] = defaultdict(list)
    for vote in votes:
        agreement, found = _find(read_listed(vote.name), listed)
        if len(found) == 1:
            by_division[vote.division].append((agreement, vote, found[0]))
    resolved: dict[Agreement, list[tuple[_Vote, _Candidate]]] = defaultdict(list)
    for each in by_division.values():
        votes_of = Counter(candidate.person for _, _, candidate in each)
        for agreement, vote, candidate in each:
            if votes_of[candidate.person] == 1:  # a person votes once in a division
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
