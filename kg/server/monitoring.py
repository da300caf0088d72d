"""Monitoring: ``GET /metrics`` for Prometheus, ``/health/live`` and ``/health/ready`` for probes, ``POST /admin/state``
for `kg top`.

The metrics are the counters of the process (`kg.observability`) and its state, which is read for each request. Probes
answer with codes of reasons alone, since they are open to everybody.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kg import __version__
from kg.access.audit import AuditLog
from kg.errors import QuadciteError
from kg.integrity.backup_schedule import BackupState
from kg.integrity.replication import ReplicaState
from kg.knowledge_graph import KnowledgeGraph
from kg.observability import REGISTRY, summarize_calls
from kg.search.protocol import IndexStatus
from kg.server.fair_limiter import FairLimiter
from kg.server.mcp import ToolThreads
from kg.server.problem_details import answering
from kg.tools import derivations
from kg.tools.catalog.health import find_problems
from kg.tools.catalog.server_state import list_pools

_NO_STORE: Final = {"Cache-Control": "no-store"}
_COUNT_AGAIN_S: Final = 60.0
"""Minimum seconds between two counts of the due graphs of derivations."""
_TOP_QUERIES: Final = 50


@dataclass
class Monitor:
    """The state of a server. `limiters` are those of its calls, `count_held` counts what clients hold."""

    kg: KnowledgeGraph
    threads: ToolThreads
    limiters: tuple[FairLimiter, ...] = ()
    count_held: Callable[[], Mapping[str, int]] = dict
    audit: AuditLog | None = None
    is_stopping: Callable[[], bool] = lambda: False
    find_policy_problem: Callable[[], str | None] = lambda: None
    """Returns why the policies of before are in force, or None."""
    _due: DueCounts = field(init=False, repr=False)
    _began: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self._due = DueCounts(self.kg)

    def find_reasons(self) -> tuple[list[str], list[str]]:
        """Find why the server is not ready, and its degraded parts, as codes. Blocks for the index for two seconds."""
        missing: list[str] = []
        degraded: list[str] = []
        if self.is_stopping() or self.kg.pool.closed:
            missing.append("stopping")
        try:
            self.kg.store.statistics()
        except QuadciteError:
            missing.append("store")
        index = self.kg.search.status()
        if index.problem is not None:
            missing.append("index")
        if self.audit is not None and self.audit.problem is not None:
            (missing if self.audit.required else degraded).append("audit")
        if self.kg.store.problem is not None:
            degraded.append("writes")
        if self.find_policy_problem() is not None:
            degraded.append("policies")
        if index.embedder_error is not None:
            degraded.append("embeddings")
        if index.incomplete is not None or self.kg.unindexed.is_set():
            degraded.append("index_behind")
        return missing, degraded

    def describe(self) -> dict[str, Any]:
        """Describe the work of the server for `kg top`."""
        counted, index = self.kg.store.statistics(), self.kg.search.status()
        queries: list[dict[str, Any]] = [
            {
                "pool": name,
                "id": query.id,
                "client": query.client,
                "age_s": round(query.age_s, 3),
                "lane": query.lane,
                "state": query.state,
                "sha256": query.sha256,
            }
            for name, pool in list_pools(self.kg).items()
            for query in pool.list_queries()
        ]
        check = self.kg.dataset_check and self.kg.dataset_check()
        return {
            "version": __version__,
            "uptime_s": round(time.monotonic() - self._began, 1),
            "store": {"generation": counted.generation, "quads": counted.quads, "bytes": counted.bytes_on_disk},
            "index": _describe_index(index),
            "requests": summarize_calls(),
            "queries": sorted(queries, key=lambda query: -query["age_s"])[:_TOP_QUERIES],
            "calls": {each.kind: {"running": len(each.running), "waiting": each.waiting} for each in self.limiters},
            "loads": [
                {"source": load.source, "done": load.done, "total": load.total, "doing": load.doing}
                for load in self.kg.loads.list_running()
            ],
            "held": dict(self.count_held()),
            "processes": measure_processes(),
            "problems": find_problems(self.kg, index, check),
        }

    def _describe_copies(self) -> dict[str, tuple[str, float]]:
        """Describe the backups that this server writes, and how a replica follows; nothing where there are none."""
        found: dict[str, tuple[str, float]] = {}
        if self.kg.backup_state is not None:
            backups: BackupState = self.kg.backup_state()
            found["backup_failures"] = ("Backups that failed since the last one.", backups.failures)
            if backups.confirmed is not None:
                age_s = (datetime.now(UTC) - backups.confirmed).total_seconds()
                found["backup_age_seconds"] = ("Time since the newest backup.", max(0.0, age_s))
        if self.kg.replica_state is not None:
            replica: ReplicaState = self.kg.replica_state()
            found["replica_failures"] = ("Failures to follow the primary in a row.", replica.failures)
            found["replica_lag_seconds"] = ("Time for which the primary may have had newer data.", replica.lag_s)
        return found

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read the state as metrics."""
        counted, index = self.kg.store.statistics(), self.kg.search.status()
        quarantine = self.kg.settings.directory.quarantine
        missing, _ = self.find_reasons()
        rejected = sum(1 for _ in quarantine.glob("*.json")) if quarantine.is_dir() else 0
        plain: dict[str, tuple[str, float]] = {
            "store_generation": ("Number of the last commit.", counted.generation),
            "store_quads": ("Quads in the store.", counted.quads),
            "store_graphs": ("Named graphs in the store.", counted.graphs),
            "store_bytes": ("Size of the files of the store.", counted.bytes_on_disk),
            "store_writable": ("Whether commits are accepted.", self.kg.store.problem is None),
            "index_up": ("Whether the search index answers.", index.problem is None),
            "index_behind": ("Whether the search index lacks recent commits.", self.kg.unindexed.is_set()),
            "index_texts": ("Texts in the search index.", index.units),
            "index_graphs": ("Graphs in the search index.", index.graphs),
            "vectors_pending": ("Texts that wait for their vectors.", index.pending_vectors),
            "embedder_up": ("Whether the embedding model works.", index.embedder_error is None),
            "quarantined_records": ("Rejected records in the quarantine.", rejected),
            "loads_running": ("Loads that run or wait.", len(self.kg.loads.list_running())),
            "ready": ("Whether the server is ready (/health/ready).", not missing),
            "audit_up": ("Whether the audit log can be written.", self.audit is None or self.audit.problem is None),
        }
        with suppress(OSError):
            free = shutil.disk_usage(self.kg.settings.data_dir).free
            plain["disk_free_bytes"] = ("Free space on the disk of the data directory.", free)
        plain |= self._describe_copies()
        for name, (text, value) in plain.items():
            yield GaugeMetricFamily(f"quadcite_{name}", text, float(value))
        yield _family("info", "Version of the server.", ("version",), {(__version__,): 1})
        states = {(name, state): 0.0 for name in list_pools(self.kg) for state in ("running", "waiting")}
        for name, pool in list_pools(self.kg).items():
            for query in pool.list_queries():
                states[name, query.state] += 1
        yield _family("queries", "Queries that run or wait.", ("pool", "state"), states)
        running = {(each.kind, "running"): float(len(each.running)) for each in self.limiters}
        waiting = {(each.kind, "waiting"): float(each.waiting) for each in self.limiters}
        yield _family("calls", "Calls that have a place or wait for one.", ("kind", "state"), running | waiting)
        held = {(name,): float(value) for name, value in self.count_held().items()}
        yield _family("held", "Resources that clients hold (`held` of /health).", ("resource",), held)
        due = {(name,): float(number) for name, number in self._due.get(counted.generation).items()}
        yield _family("derivations_due", "Graphs that a derivation has to compute.", ("derivation",), due)


class DueCounts:
    """Counts the due graphs of derivations in the background, after commits: a count can take seconds."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg: Final = kg
        self._lock: Final = threading.Lock()
        self._counts: Mapping[str, int] = {}
        self._counted = -1
        self._began = -_COUNT_AGAIN_S

    def get(self, generation: int) -> Mapping[str, int]:
        """Get the last counts, and have them counted again if they are of another generation of the store."""
        now = time.monotonic()
        with self._lock:
            if generation != self._counted and now - self._began >= _COUNT_AGAIN_S:
                self._began = now
                threading.Thread(target=self._count, args=(generation,), name="count-due", daemon=True).start()
            return self._counts

    def _count(self, generation: int) -> None:
        with suppress(QuadciteError):  # the next count tries again
            counts = {name: sum(due.values()) for name, due in derivations.count_due(self._kg).items()}
            with self._lock:
                self._counts, self._counted = counts, generation


def routes(monitor: Monitor) -> list[Route]:
    """Build the routes over the state of a server."""
    state = CollectorRegistry()
    state.register(_StateCollector(monitor))

    def measure() -> bytes:
        return generate_latest(REGISTRY) + generate_latest(state)

    async def metrics(request: Request) -> Response:
        body = await monitor.threads.run(measure, kind="light")
        return Response(body, headers={"Content-Type": CONTENT_TYPE_LATEST, **_NO_STORE})

    async def live(request: Request) -> Response:
        return JSONResponse({"status": "live"}, headers=_NO_STORE)

    async def ready(request: Request) -> Response:
        # With a limiter of its own: a probe must not wait for calls.
        limiter = anyio.CapacityLimiter(1)
        missing, degraded = await anyio.to_thread.run_sync(monitor.find_reasons, limiter=limiter)
        status = "unready" if missing else "degraded" if degraded else "ready"
        document = {"status": status, "missing": missing, "degraded": degraded}
        return JSONResponse(document, 503 if missing else 200, headers=_NO_STORE)

    async def describe(request: Request) -> Response:
        return JSONResponse(await monitor.threads.run(monitor.describe, kind="light"), headers=_NO_STORE)

    return [
        Route("/metrics", answering(metrics), methods=["GET"], name="metrics"),
        Route("/health/live", live, methods=["GET"], name="live"),
        Route("/health/ready", ready, methods=["GET"], name="ready"),
        Route("/admin/state", answering(describe), methods=["POST"], name="admin-state"),
    ]


class _StateCollector(Collector):
    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read the state as metrics."""
        return self._monitor.collect()

    def describe(self) -> list[GaugeMetricFamily]:
        """Describe none, so that registering reads nothing."""
        return []


def _family(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"quadcite_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _describe_index(index: IndexStatus) -> dict[str, Any]:
    return {
        "texts": index.units,
        "vectors_pending": index.pending_vectors,
        "vectors_per_s": index.vectors_per_s and round(index.vectors_per_s, 1),
        "model": index.model,
        "problem": index.problem,
    }


def measure_processes() -> list[dict[str, Any]]:
    """Measure the resident memory of this process and those below it, by name; empty where /proc is absent."""
    page, found, parents = os.sysconf("SC_PAGE_SIZE"), {}, dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            parents[int(folder.name)] = int(stat[1])
            found[int(folder.name)] = {
                "pid": int(folder.name),
                "name": _name_process(words),
                "memory_bytes": int(stat[21]) * page,
            }
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return [found[pid] for pid in sorted(family) if pid in found]


def _name_process(words: list[str]) -> str:
    """Name a process by its module, without options, which may be secret."""
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    return next((word for word in words if word.startswith("kg.")), Path(words[0]).name)
