"""The state of a server for those who run it: loads, quarantine, checks, index, queries, storage, services."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kg.errors import QuadciteError
from kg.files import measure_disk
from kg.knowledge_graph import KnowledgeGraph
from kg.load_log import LoadState
from kg.queries.dispatcher import RunningQuery
from kg.queries.pool import QueryPool
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.tools.catalog.health import Health, health
from kg.tools.documents.status import Status, status
from kg.vocabulary import PROV_GRAPH

RUNS: Final = 20
RECORDS: Final = 25

PAST_RUNS: Final = """
SELECT ?run ?started ?ended ?agent ?version ?configuration (COUNT(?graph) AS ?graphs) WHERE {
  { SELECT ?run ?started ?ended ?agent ?version ?configuration WHERE { GRAPH $prov {
      ?run a prov:Activity ; prov:startedAtTime ?started ; prov:endedAtTime ?ended ; prov:wasAssociatedWith ?who .
      ?who schema:softwareVersion ?version ; rdfs:label ?agent
      OPTIONAL { ?run kg:configuration ?configuration }
      FILTER EXISTS { ?run prov:used ?source . ?source a kg:Snapshot }
  } } ORDER BY DESC(?ended) LIMIT $most }
  GRAPH $prov { ?graph prov:wasGeneratedBy ?run }
} GROUP BY ?run ?started ?ended ?agent ?version ?configuration ORDER BY DESC(?ended)"""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A load of a source that wrote graphs which the store still has, as ``graph/prov`` describes it."""

    iri: str
    loader: str
    version: str
    began: str
    ended: str
    graphs: int
    configuration: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of the data directory, with the bytes that its files take on the disk, without holes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class ServerState:
    """The work of a server, running and done."""

    health: Health
    files: Status
    running: list[LoadState]
    ended: list[LoadState]
    runs: list[PastRun]
    quarantine: Mapping[str, Any]
    queries: list[tuple[str, RunningQuery]]
    """Running and waiting queries, each with the name of its pool, the oldest first."""
    storage: list[StoredPart]


def describe_server(kg: KnowledgeGraph) -> ServerState:
    """Describe the state of the server that holds `kg`."""
    reader = Reader(kg)
    queries = [(name, query) for name, pool in list_pools(kg).items() for query in pool.list_queries()]
    return ServerState(
        health=health(kg),
        files=status(kg),
        running=kg.loads.list_running(),
        ended=kg.loads.list_ended(),
        runs=[_read_run(row) for row in reader.rows("past loads", bind(PAST_RUNS, prov=PROV_GRAPH, most=RUNS))],
        quarantine=_load_quarantine(kg),
        queries=sorted(queries, key=lambda of: -of[1].age_s),
        storage=list(_measure(kg.settings.data_dir)),
    )


def list_pools(kg: KnowledgeGraph) -> dict[str, QueryPool]:
    """List the query workers of `kg` by the name of those who use them."""
    return {"tools": kg.pool} if kg.raw is None else {"endpoint": kg.raw, "tools": kg.pool}


def _read_run(row: Mapping[str, Term]) -> PastRun:
    given = json.loads(term_text(row["configuration"])) if "configuration" in row else {}
    return PastRun(
        iri_of(row["run"]),
        term_text(row["agent"]),
        term_text(row["version"]),
        term_text(row["started"]),
        term_text(row["ended"]),
        int(term_text(row["graphs"])),
        {name: value for name, value in given.items() if value not in (None, "", False)},
    )


def _load_quarantine(kg: KnowledgeGraph) -> Mapping[str, Any]:
    from loaders.quarantine_retry import list_records

    try:
        return list_records(kg, RECORDS)
    except QuadciteError as error:
        return {"total": 0, "records": [], "damaged": {"quarantine": str(error)}}


def _measure(folder: Path) -> Iterator[StoredPart]:
    """Measure the parts of a data directory on the disk. A file that vanishes meanwhile has no size."""
    for path in sorted(folder.iterdir()):
        if not path.is_symlink() and (size := measure_disk(path)):
            yield StoredPart(path.name + "/" * path.is_dir(), size)
