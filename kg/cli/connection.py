"""Access to a graph for commands: the data directory opened in this process, or the server that holds it.

Both give the same answers. A server holds its data directory while it runs. The lock file contains its address, and the
token file next to it, readable by its own user only, authorizes commands.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from kg import interruption
from kg.errors import QuadciteError, StoreError, StoreLockedError, UpstreamError
from kg.settings import settings_for

if TYPE_CHECKING:
    import httpx

    from kg.data_directory import DataDirectory
    from kg.knowledge_graph import KnowledgeGraph
    from kg.tools.calls import Command

Advance = Callable[[int, int | None, str], None]

_CONNECT_S: Final = 5.0
_POLL_S: Final = 0.1

STARTING_S: Final = 3.0
"""Seconds to wait for a process that holds the data directory to write its address into the lock file."""


class Connection(Protocol):
    """A graph that commands can use."""

    local: bool
    """Whether this process has opened the data directory itself."""

    def call(self, name: str, arguments: Mapping[str, Any], advance: Advance = lambda *_: None) -> dict[str, Any]:
        """Call a tool or command by name and return its document. `advance` receives its progress."""
        ...

    def stream(self, query: str, media_type: str, timeout_s: float = math.inf) -> Generator[bytes]:
        """Yield the result of a query in pieces, without a limit on rows."""
        ...

    def snapshot(self) -> AbstractContextManager[Path]:
        """Make a checkpoint of the store and yield its folder, which exists until the block ends."""
        ...


class LocalConnection:
    """A data directory that this process has opened."""

    local = True

    def __init__(
        self, kg: KnowledgeGraph, get: Callable[[str], Command], expand: Callable[[KnowledgeGraph, str], str]
    ) -> None:
        self._kg: Final = kg
        self._get: Final = get
        self._expand: Final = expand

    def call(self, name: str, arguments: Mapping[str, Any], advance: Advance = lambda *_: None) -> dict[str, Any]:
        """Call it in this process."""
        from kg.cli.output import operator
        from kg.knowledge_graph import PROGRESS
        from kg.server.call_log import CLI, CallLog

        command = self._get(name)
        audit = self._kg.audit if command.logged and command.scope != "read" else None
        token = PROGRESS.set(advance)
        try:
            with CallLog(name, arguments, CLI, audit, operator()):
                return command.content(self._kg, arguments)
        finally:
            PROGRESS.reset(token)

    def stream(self, query: str, media_type: str, timeout_s: float = math.inf) -> Generator[bytes]:
        """Run it in a worker of this process."""
        expanded = self._expand(self._kg, query)
        with self._kg.pool.stream(expanded, media_type=media_type, limit=math.inf, timeout_s=timeout_s) as streamed:
            yield from streamed

    @contextmanager
    def snapshot(self) -> Iterator[Path]:
        """Make it with the open store."""
        store = self._kg.store
        with store.snapshot(store.statistics().generation) as snapshot:
            yield snapshot.path


class ServerConnection:
    """A graph that a server on this machine holds."""

    local = False

    def __init__(self, address: str, token: str | None) -> None:
        import httpx

        self.address: Final = address
        self._client: Final = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
            trust_env=False,
            verify=not address.startswith("https:"),  # it is this machine; the certificate has the public name
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def call(self, name: str, arguments: Mapping[str, Any], advance: Advance = lambda *_: None) -> dict[str, Any]:
        """Call it in the server."""
        with self._post(f"/tools/{name}", arguments) as response:
            for text in response.iter_lines():
                line = json.loads(text)
                if "progress" in line:
                    advance(*line["progress"])
                elif "error" in line:
                    raise _parse_error(line["error"])
                else:
                    result: dict[str, Any] = line["result"]
                    return result
        raise UpstreamError(f"The server at {self.address} ended {name!r} without a result.")

    def stream(self, query: str, media_type: str, timeout_s: float = math.inf) -> Generator[bytes]:
        """Run it in the server."""
        limit = {} if timeout_s == math.inf else {"timeout_s": timeout_s}
        with self._post("/admin/query", {"query": query, "media_type": media_type, **limit}) as response:
            yield from response.iter_bytes()

    def get_state(self) -> dict[str, Any]:
        """Get the state of the server: its requests, queries, queues and memory."""
        with self._post("/admin/state", {}) as response:
            state: dict[str, Any] = json.loads(response.read())
            return state

    @contextmanager
    def snapshot(self) -> Iterator[Path]:
        """Make it in the server, which keeps it while the connection is open."""
        with self._post("/admin/snapshot", {}) as response:
            lines = response.iter_lines()  # kept in a variable, since a deleted iterator closes the connection
            line = json.loads(next(lines, "{}"))
            if "result" not in line:
                raise UpstreamError(f"The server at {self.address} returned no snapshot.")
            yield Path(line["result"]["path"])

    @contextmanager
    def _post(self, path: str, arguments: Mapping[str, Any]) -> Iterator[httpx.Response]:
        import httpx

        headers = {"Accept": "application/x-ndjson, application/problem+json;q=0.5", "Content-Type": "application/json"}
        # Escapes also pass on the bytes of an argument or a file name that are not UTF-8 (lone surrogates).
        content = json.dumps(dict(arguments), ensure_ascii=True)
        try:
            with self._client.stream("POST", path, content=content, headers=headers) as response:
                if response.is_error:
                    response.read()
                    raise _parse_refusal(response)
                yield response
        except httpx.ConnectError as error:
            raise StoreLockedError(
                f"The server at {self.address} holds the data directory and does not respond: {error}."
            ) from None
        except httpx.HTTPError as error:
            raise UpstreamError(
                f"The connection to the server at {self.address} ended before the answer: {error}. Repeat the command. "
                "If the server has stopped, the command runs without it."
            ) from None


def _parse_refusal(response: httpx.Response) -> QuadciteError:
    try:
        return _parse_error(response.json())
    except (ValueError, KeyError, TypeError):
        return UpstreamError(f"The server responded with {response.status_code}: {response.text[:200]}")


def _parse_error(fields: Mapping[str, Any]) -> QuadciteError:
    """Build the exception that the server raised, from its code and message."""

    def subclasses(kind: type[QuadciteError]) -> Iterator[type[QuadciteError]]:
        yield kind
        for narrower in kind.__subclasses__():
            yield from subclasses(narrower)

    kind = next((kind for kind in subclasses(QuadciteError) if kind.code == fields["code"]), QuadciteError)
    return kind(fields["message"])


@contextmanager
def connect(data_dir: Path | None, *, create: bool = False) -> Iterator[Connection]:
    """Connect to the graph in a data directory: through the server that holds it, else by opening it.

    Without `create`, a directory without a graph is an error, so that a mistyped name makes no empty one, and one that
    cannot be written is only read. A directory that is created and gets no graph and no rejected record is removed.
    Raises StoreLockedError if a process that is not a server holds the directory.
    """
    # Imported before the directory is opened: an interrupt during an import can get lost.
    from kg.knowledge_graph import KnowledgeGraph
    from kg.tools.sparql.local_services import expand_services

    settings = settings_for(data_dir)
    folder = settings.data_dir
    is_new = not settings.directory.format.is_file()
    before = {folder, *folder.iterdir()} if is_new and folder.is_dir() else set()
    unused: int | None = None
    if not create and is_new:
        raise no_graph(folder)
    end = time.monotonic() + STARTING_S
    while True:  # a server can start or stop between the two attempts
        served = find_server(folder)
        if served is not None:
            with served:
                yield served
            return
        try:
            kg = KnowledgeGraph.open(folder, settings, reads=not create)
        except StoreLockedError:
            if time.monotonic() >= end:
                raise
            time.sleep(_POLL_S)
            continue
        try:
            with kg:
                try:
                    yield LocalConnection(kg, _get_command, expand_services)
                finally:
                    interruption.disarm()
                    counted = kg.store.statistics()
                    if is_new and not counted.graphs and not any(settings.directory.quarantine.glob("*")):
                        unused = counted.generation
        finally:
            if unused is not None:
                _remove_unused(settings.directory, unused, before)
        return


def _remove_unused(directory: DataDirectory, generation: int, before: Collection[Path]) -> None:
    """Remove a data directory as it was closed at `generation`, except files that existed `before` its creation."""
    from kg.store.lock import DirectoryLock
    from kg.store.write_ahead_log import read_acknowledged

    data_dir = directory.path
    with suppress(StoreError), DirectoryLock(data_dir, bare=True):  # unless another process has it now
        if read_acknowledged(directory.store) != generation:
            return
        for path in sorted(set(data_dir.iterdir()) - set(before)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if data_dir not in before:
            data_dir.rmdir()


def find_graph(data_dir: Path | None) -> DataDirectory:
    """Find a data directory that has a graph, without opening it. Raises StoreError without one."""
    directory = settings_for(data_dir).directory
    if not directory.format.is_file():
        raise no_graph(directory.path)
    return directory


def no_graph(data_dir: Path) -> StoreError:
    """Build the error for a data directory without a graph."""
    if data_dir.is_file():
        return StoreError(f"The data directory {data_dir} is a file. Give a folder.")
    return StoreError(f"No knowledge graph in {data_dir}. Create one with `kg load climate PATH`.")


def _get_command(name: str) -> Command:
    from kg.tools.commands import COMMANDS

    if found := [command for command in COMMANDS if command.name == name]:
        return found[0]
    from kg.tools import registry  # only where a tool is called: importing all tools takes as long as all else

    return registry.get(name)


def find_server(data_dir: Path) -> ServerConnection | None:
    """Connect to the server on this machine that holds `data_dir`; None if there is none."""
    from kg.server.auth import read_token
    from kg.store.lock import find_address

    address = find_address(data_dir)
    return None if address is None else ServerConnection(address, read_token(data_dir))


def resolve_for_server(path: str) -> str:
    """Make a location absolute, for a server with another working directory. `hub` locations are unchanged."""
    endpoint, at, query = path.partition("@")
    if at and (endpoint == "sparql" or endpoint.startswith("sparql:")):
        return f"{endpoint}@{os.path.abspath(query)}"
    return path if path == "hub" or path.startswith(("hub:", "municode:")) else os.path.abspath(path)
