"""How a command reaches a graph: it opens the data directory, or asks the server that holds it. Same answers.

A server holds its data directory for as long as it runs. The lock file says where it is reached, and the token beside
it, which only its own user can read, opens its commands.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from kg import interruption
from kg.errors import QuadciteError, StoreError, StoreLockedError, UpstreamError

if TYPE_CHECKING:
    import httpx

    from kg.knowledge_graph import KnowledgeGraph
    from kg.settings import Settings
    from kg.store.lock import Holder
    from kg.tools.operations import Operation

Advance = Callable[[int, int | None, str], None]

_CONNECT_S: Final = 5.0
_POLL_S: Final = 0.1

STARTING_S: Final = 3.0
"""Seconds that a process which holds the data directory has to say where it serves, before it counts as none."""


class Access(Protocol):
    """A graph within reach."""

    here: bool
    """Whether this process has the data directory open itself."""

    def run(self, operation: str, arguments: Mapping[str, Any], advance: Advance) -> dict[str, Any]:
        """Run one of `kg.tools.operations` and return its document."""
        ...

    def stream(self, query: str, media_type: str) -> Generator[bytes]:
        """Yield the result of a query as it comes, without a cap on rows or time."""
        ...

    def snapshot(self) -> AbstractContextManager[Path]:
        """Give the folder of a checkpoint of the store as it is; it stays until the block ends."""
        ...


class Opened:
    """A data directory that this process has open."""

    here = True

    def __init__(
        self, kg: KnowledgeGraph, operations: Mapping[str, Operation], expand: Callable[[KnowledgeGraph, str], str]
    ) -> None:
        self._kg: Final = kg
        self._operations: Final = operations
        self._expand: Final = expand

    def run(self, operation: str, arguments: Mapping[str, Any], advance: Advance) -> dict[str, Any]:
        """Run it in this process."""
        if operation == "search":
            # After a crash, or in a restored backup, the index lacks what the store has. A server heals by itself.
            self._operations["reindex"](self._kg, advance, full=False, wait=False)
        return self._operations[operation](self._kg, advance, **arguments)

    def stream(self, query: str, media_type: str) -> Generator[bytes]:
        """Run it in a worker of this process."""
        expanded = self._expand(self._kg, query)
        with self._kg.pool.stream(expanded, media_type=media_type, limit=math.inf, timeout_s=math.inf) as streamed:
            yield from streamed

    @contextmanager
    def snapshot(self) -> Iterator[Path]:
        """Have the open store make it."""
        store = self._kg.store
        with store.snapshot(store.statistics().generation) as snapshot:
            yield snapshot.path


class Served:
    """A graph that a server on this machine holds."""

    here = False

    def __init__(self, address: str, token: str | None) -> None:
        import httpx

        self.address: Final = address
        self._client: Final = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def run(self, operation: str, arguments: Mapping[str, Any], advance: Advance) -> dict[str, Any]:
        """Have the server run it."""
        with self._post(operation, arguments) as answer:
            for line in answer.iter_lines():
                said = json.loads(line)
                if "progress" in said:
                    advance(*said["progress"])
                elif "error" in said:
                    raise _error(said["error"])
                else:
                    result: dict[str, Any] = said["result"]
                    return result
        raise UpstreamError(f"the server at {self.address} ended {operation} without a result")

    def stream(self, query: str, media_type: str) -> Generator[bytes]:
        """Have the server run it."""
        with self._post("query", {"query": query, "media_type": media_type}) as answer:
            yield from answer.iter_bytes()

    @contextmanager
    def snapshot(self) -> Iterator[Path]:
        """Have the server make it, and keep it for as long as the connection lives."""
        with self._post("snapshot", {}) as answer:
            lines = answer.iter_lines()  # an iterator that is let go closes the connection
            said = json.loads(next(lines, "{}"))
            if "error" in said:
                raise _error(said["error"])
            if "result" not in said:
                raise UpstreamError(f"the server at {self.address} gave no snapshot")
            yield Path(said["result"]["path"])

    @contextmanager
    def _post(self, name: str, arguments: Mapping[str, Any]) -> Iterator[httpx.Response]:
        import httpx

        try:
            with self._client.stream("POST", f"/commands/{name}", json=dict(arguments)) as answer:
                if answer.is_error:
                    answer.read()
                    raise _refusal(answer)
                yield answer
        except httpx.ConnectError as error:
            raise StoreLockedError(
                f"the data directory is held by a server at {self.address}, which does not answer: {error}"
            ) from None
        except httpx.HTTPError as error:
            raise UpstreamError(f"the server at {self.address} broke off: {error}") from None


def _refusal(answer: httpx.Response) -> QuadciteError:
    try:
        said = answer.json()
        return _error(said.get("error", said))
    except (ValueError, KeyError, AttributeError):
        return UpstreamError(f"the server answered with {answer.status_code}: {answer.text[:200]}")


def _error(said: Mapping[str, Any]) -> QuadciteError:
    """Return the error that the server reported, as it was raised there."""

    def kinds(kind: type[QuadciteError]) -> Iterator[type[QuadciteError]]:
        yield kind
        for narrower in kind.__subclasses__():
            yield from kinds(narrower)

    kind = next((kind for kind in kinds(QuadciteError) if kind.code == said["code"]), QuadciteError)
    return kind(said["message"])


@contextmanager
def opened(
    settings: Settings,
    *,
    create: bool = False,
    load: Callable[..., Any] | None = None,
    mention: Callable[..., Any] | None = None,
    quarantine: Mapping[str, Callable[..., dict[str, Any]]] | None = None,
) -> Iterator[Access]:
    """Yield the graph in the data directory of `settings`: through the server that holds it, else opened here.

    Without `create` a directory that holds no graph is an error: a mistyped name must not make an empty one. `load`
    is what loads sources where it is opened here, `mention` what finds mentions in them, and `quarantine` what is done
    with the records that were kept out.
    Raises StoreLockedError for a directory that a process which serves nothing holds.
    """
    # All that will be needed, before anything is opened: an interrupt that comes within an import can get lost.
    from kg.knowledge_graph import KnowledgeGraph
    from kg.tools.operations import OPERATIONS
    from kg.tools.sparql.local_services import expand_services

    data_dir = settings.data_dir
    if not create and not (data_dir / "format.json").is_file():
        raise StoreError(f"there is no knowledge graph in {data_dir}; `kg load climate PATH` makes one there")
    end = time.monotonic() + STARTING_S
    while True:
        served = server_of(data_dir)
        if served is not None:
            with served:
                yield served
            return
        try:
            kg = KnowledgeGraph.open(data_dir, settings)
        except StoreLockedError:
            if time.monotonic() >= end:
                raise
            time.sleep(_POLL_S)
            continue
        with kg:
            kg.load = load
            kg.mention = mention
            kg.quarantine = quarantine or {}
            try:
                yield Opened(kg, OPERATIONS, expand_services)
            finally:
                interruption.disarm()
        return


def server_of(data_dir: Path) -> Served | None:
    """Return the server on this machine that holds `data_dir`, or None."""
    from kg.server.auth import read_token
    from kg.store.lock import find_holder

    who: Holder | None = find_holder(data_dir)
    if who is None or who.address is None or who.host != socket.gethostname():
        return None
    return Served(who.address, read_token(data_dir))


def as_seen_by_a_server(path: str) -> str:
    """Return a location as a process with another working folder finds it; `hub` locations stay."""
    endpoint, at, query = path.partition("@")
    if at and (endpoint == "sparql" or endpoint.startswith("sparql:")):
        return f"{endpoint}@{os.path.abspath(query)}"
    return path if path == "hub" or path.startswith(("hub:", "municode:")) else os.path.abspath(path)
