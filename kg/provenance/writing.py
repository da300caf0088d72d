"""What one write of a person says in ``graph/prov``: who, when, with what payload.

The graph has one generating activity, the last write to it, and is derived from each payload that it holds something
of; a payload (a `kg:Snapshot` of the request's body) says when it came and who sent it::

    <graph/user/x> a kg:UserGraph ; prov:wasGeneratedBy <id/run/...> ; kg:contentSha256 "..." ;
      prov:wasDerivedFrom <id/snapshot/sha256-...>
    <id/run/...> a prov:Activity ; prov:wasAssociatedWith <id/agent/{actor}> ; prov:used <id/snapshot/sha256-...>
    <id/snapshot/sha256-...> kg:sha256 "..." ; kg:location "PUT https://..." ; prov:wasAttributedTo <id/agent/{actor}>

A removal leaves an activity that says which graph it invalidated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.reading import iri_of
from kg.provenance.recording import EXPLAINED_BY, timestamp
from kg.sparql.terms import bind
from kg.store.ownership import CURATED
from kg.store.protocol import GraphChange, Patch, Store, Term, select
from kg.vocabulary import KG, PROV, PROV_GRAPH, RDF, RDFS, mint, sha256

SAID_OF: Final = """
SELECT ?p ?o WHERE { GRAPH $prov { $subject ?p ?o } }"""

_REWRITTEN: Final = frozenset({RDF.type, PROV.wasGeneratedBy, KG.contentSha256})


@dataclass(frozen=True, slots=True)
class Write:
    """One request that changes graphs. `request` names it, such as ``PUT https://w3id.org/quadcite/graph/user/x``."""

    actor: str
    request: str
    payload_sha256: str
    replaces: bool
    """Whether the graphs hold nothing of earlier payloads afterwards."""
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def agent(self) -> NamedNode:
        """Who sent it."""
        return mint("agent", self.actor)

    @property
    def activity(self) -> NamedNode:
        """This one request."""
        key = json.dumps([self.actor, self.request, self.payload_sha256, self.time.isoformat()])
        return mint("run", sha256(key)[:24])

    def describe(self, store: Store) -> Callable[[Sequence[GraphChange]], Patch]:
        """Return what `Store.commit` asks for."""
        return lambda changes: self._patch(store, changes)

    def _patch(self, store: Store, changes: Sequence[GraphChange]) -> Patch:
        remove: set[Quad] = set()
        add = set(self._activity())
        payload = mint("snapshot", f"sha256-{self.payload_sha256}")
        gone = [change.graph for change in changes]
        if any(change.content_sha256 is not None for change in changes):
            known = any(quad.predicate == KG.retrievedAt for quad in _said(store, payload))
            add |= {quad for quad in self._payload(payload) if not (known and quad.predicate == KG.retrievedAt)}
        for change in changes:
            old = _said(store, change.graph)
            if change.content_sha256 is None:
                remove |= old
                add.add(_quad(self.activity, PROV.invalidated, change.graph))
            else:
                remove |= {quad for quad in old if self.replaces or quad.predicate in _REWRITTEN}
                add |= self._graph(change, payload)
            for relation in (PROV.wasGeneratedBy, PROV.wasDerivedFrom):
                for quad in remove & old:
                    if quad.predicate == relation and quad.object != payload:
                        remove |= _unneeded(store, relation, iri_of(quad.object), gone)
        return Patch(frozenset(remove - add), frozenset(add))

    def _activity(self) -> set[Quad]:
        activity, time = self.activity, timestamp(self.time)
        return {
            _quad(activity, RDF.type, PROV.Activity),
            _quad(activity, PROV.startedAtTime, time),
            _quad(activity, PROV.endedAtTime, time),
            _quad(activity, PROV.wasAssociatedWith, self.agent),
            _quad(activity, KG.configuration, Literal(json.dumps({"request": self.request}))),
            _quad(self.agent, RDF.type, PROV.Agent),
            _quad(self.agent, RDFS.label, Literal(self.actor)),
        }

    def _payload(self, payload: NamedNode) -> set[Quad]:
        return {
            _quad(self.activity, PROV.used, payload),
            _quad(payload, RDF.type, KG.Snapshot),
            _quad(payload, KG.sha256, Literal(self.payload_sha256)),
            _quad(payload, KG.location, Literal(self.request)),
            _quad(payload, KG.retrievedAt, timestamp(self.time)),
            _quad(payload, PROV.wasAttributedTo, self.agent),
        }

    def _graph(self, change: GraphChange, payload: NamedNode) -> set[Quad]:
        graph = change.graph
        kind = KG.CuratedGraph if graph.value.startswith(CURATED) else KG.UserGraph
        return {
            _quad(graph, RDF.type, kind),
            _quad(graph, PROV.wasGeneratedBy, self.activity),
            _quad(graph, KG.contentSha256, Literal(change.content_sha256 or "")),
            _quad(graph, PROV.wasDerivedFrom, payload),
        }


def _said(store: Store, subject: NamedNode) -> set[Quad]:
    rows = select(store.query, bind(SAID_OF, subject=subject, prov=PROV_GRAPH))
    return {_quad(subject, iri_of(row["p"]), row["o"]) for row in rows}


def _unneeded(store: Store, relation: NamedNode, node: NamedNode, gone: Sequence[NamedNode]) -> set[Quad]:
    """Return what is said of `node` if it explains none but the graphs `gone`."""
    query = bind(EXPLAINED_BY, relation=relation, node=node, prov=PROV_GRAPH, enough=len(gone) + 1)
    if any(iri_of(row["s"]) not in gone for row in select(store.query, query)):
        return set()
    return _said(store, node)


def _quad(subject: NamedNode, predicate: NamedNode, value: Term) -> Quad:
    return Quad(subject, predicate, value, PROV_GRAPH)
