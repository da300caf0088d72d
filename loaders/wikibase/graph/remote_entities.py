"""Entities of Wikidata that another server answered with, stored as records whose graphs and provenance name it.

An entity is fetched with all its statements, or not stored at all: a part of it would answer later questions as if the
rest did not exist. One that is described here already is left as it is, also where an id that is asked for was merged
into it: otherwise a server could add its statements to those of a loaded file. The graph of one is
``graph/src/wikibase-remote/{id}``, whose provenance has the address of the server and the time. It exists until the
entity is loaded from a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pyoxigraph import NamedNode, Quad, RdfFormat, Triple, parse

from kg.derivations.with_record import WithRecord
from kg.errors import ForbiddenError, RecordError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.shacl.report import Violation
from kg.vocabulary import OWL, mint, sha256
from loaders.load_report import LoadReport
from loaders.model import Origin, Rejection, Snapshot, SourceGraph, graph_name
from loaders.pipeline import Loader, Loading
from loaders.readers.locations import Located
from loaders.wikibase import loader, rdf_input
from loaders.wikibase.entity_rdf import Entity
from loaders.wikibase.graph.skos_views import Views
from loaders.wikibase.instances import Instance, choose_instance
from loaders.wikibase.live_endpoint import Fetching, Selecting
from loaders.with_record import VIEWS

DOMAIN: Final = "wikibase-remote"
VERSION: Final = loader.VERSION
"""The records are those of files, in other graphs."""
WIKIDATA: Final = "wikidata"


@dataclass(slots=True)
class Stored:
    """The outcome for each entity that was asked for."""

    stored: list[str] = field(default_factory=list)
    """Ids of the entities that are stored now, with those that they were merged into."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why others are not, by id."""


def store_entities(kg: KnowledgeGraph, endpoint: Selecting, connector: str, ids: Sequence[str], *, most: int) -> Stored:
    """Fetch entities of Wikidata from the SPARQL `endpoint` of a connector, one after the other, and store them.

    At most `most` entities are stored this way. Raises UpstreamError and NotFoundError if the endpoint fails before the
    first of them is there.
    """
    outcome = Stored()
    records: list[SourceGraph] = []
    for entity_id in dict.fromkeys(ids):
        try:
            found = list(_fetch(kg, endpoint, entity_id))
        except (SourceError, RecordError) as error:
            outcome.problems[entity_id] = str(error)
            continue
        if not found:
            outcome.problems[entity_id] = f"{endpoint.url} has no data about it"
        for record in found:
            name = record.key[-1]
            if _is_described(kg, name, remote=name != entity_id):
                outcome.stored.append(name)
            else:
                records.append(record)
    if not records:
        return outcome
    work = _Storing(kg, connector, records)
    room = most - len(work.known.keys() - {graph_name(record) for record in records})
    if room < len(records):
        return Stored([], dict.fromkeys(ids, f"{most:,} entities of other servers are stored, the most that may be"))
    try:
        work.run()
    except ForbiddenError as error:  # loaded from a file, or with the token, since it was looked up
        return Stored(outcome.stored, outcome.problems | dict.fromkeys((each.key[-1] for each in records), str(error)))
    for record in records:
        name = record.key[-1]
        if (reason := work.reasons.get(graph_name(record))) is None:
            outcome.stored.append(name)
        else:
            outcome.problems[name] = reason
    return outcome


def _is_described(kg: KnowledgeGraph, entity_id: str, *, remote: bool) -> bool:
    """Whether a graph of a file describes an entity; with `remote`, also one that another answer was stored as."""
    names = [mint("graph", "src", loader.DOMAIN, WIKIDATA, entity_id)]
    if remote:
        names.append(mint("graph", "src", DOMAIN, entity_id))
    return any(kg.store.graph(name) for name in names)


def _fetch(kg: KnowledgeGraph, endpoint: Selecting, entity_id: str) -> Iterator[SourceGraph]:
    """Fetch one entity, and the one that it was merged into, as records."""
    instance = choose_instance(kg.settings, WIKIDATA)
    fetching = Fetching(endpoint)
    text = "".join(fetching.lines(instance.base, instance, [entity_id]))
    if not text:
        return
    triples = [(quad.subject, quad.predicate, quad.object) for quad in parse(text, RdfFormat.N_TRIPLES, lenient=True)]
    block = rdf_input.build_block([(s, p, o) for s, p, o in triples if not isinstance(s, Triple | None)])
    read_at = datetime.fromisoformat(fetching.oldest())
    wanted = {entity_id}
    found: dict[str, Entity] = {}
    for _, entity in rdf_input.split_entities(block, lambda base: instance):
        if isinstance(entity, RecordError):
            raise entity
        found[entity.id] = entity
        if entity.id == entity_id:
            wanted |= {_id_of_target(instance, quad) or entity_id for quad in entity.quads}
    for name, entity in found.items():
        if name not in wanted:
            raise RecordError(f"the answer about {entity_id} describes {name} too")
        _check_subjects(instance, entity)
        yield _build_record(kg, instance, entity, endpoint.url, read_at)


def _id_of_target(instance: Instance, quad: Quad) -> str | None:
    """Get the id of the entity that a redirect leads to."""
    target = quad.object
    return instance.id_of(target.value) if quad.predicate == OWL.sameAs and isinstance(target, NamedNode) else None


def _check_subjects(instance: Instance, entity: Entity) -> None:
    """Raise RecordError if an answer describes nodes of other entities of the Wikibase, such as their statements."""
    own = entity.id.lower()
    places = tuple(start + instance.base.partition("://")[2] for start in ("http://", "https://"))
    for quad in entity.quads:
        subject = quad.subject.value if isinstance(quad.subject, NamedNode) else ""
        if not subject.startswith(places):
            continue  # a page about the entity
        name = subject.rpartition("/")[2].lower()
        if name != own and not (name.startswith(f"{own}-") and "/entity/statement/" in subject):
            raise RecordError(f"the answer about {entity.id} describes {subject[:200]}, which is not part of it")


def _build_record(kg: KnowledgeGraph, instance: Instance, entity: Entity, url: str, read_at: datetime) -> SourceGraph:
    graph = mint("graph", "src", DOMAIN, entity.id)
    quads = [Quad(quad.subject, quad.predicate, quad.object, graph) for quad in entity.quads]
    # Values and references that are here already belong to entities that were loaded: a server does not change them.
    shared = {name: said for name, said in entity.shared.items() if not kg.store.graph(name)}
    digest = sha256("\n".join(rdf_input.entity_text(entity)))
    origin = Origin(Snapshot(digest, f"{url}#{entity.id}", read_at=read_at))
    return SourceGraph(
        DOMAIN,
        (entity.id,),
        instance.entity(entity.id),
        quads,
        (origin,),
        sha256(f"{instance.fingerprint} {digest}"),
        shared,
        entity.list_warnings(),
    )


class _Storing(Loading):
    """A load of entities that a server answered with. A rejected one is reported to the caller alone."""

    def __init__(self, kg: KnowledgeGraph, connector: str, records: Sequence[SourceGraph]) -> None:
        wikidata = choose_instance(kg.settings, WIKIDATA)
        super().__init__(
            kg,
            Loader(
                DOMAIN,
                VERSION,
                lambda _: iter(()),
                derivations=[WithRecord(Views({WIKIDATA: wikidata}, kg.settings).derive, VIEWS)],
                cites=False,
            ),
            Located((), ()),
            None,
            config={"connector": connector},
        )
        self.records: Final = records
        self.reasons: Final[dict[NamedNode, str]] = {}

    def run(self, prune: bool = False) -> LoadReport:
        """Store the records; a rejected one does not stop the others."""
        with self.indexer:
            for record in self.records:
                self.add(record)
            self.commit()
            self.wait_for_indexing()
        return self.finish()

    def repair_index(self) -> None:
        """Leave gaps of the index to the server's own repair, which can take long."""

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Record the reason of a rejection."""
        self.report.rejections.append(rejection)
        if rejection.key is not None:
            self.reasons[mint("graph", "src", DOMAIN, *rejection.key)] = rejection.reason
