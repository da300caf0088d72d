"""Client of the service behind library.municode.com. It is called only for a location that asks for it.

``municode:Example City, UT`` is all codes of that client, and
``municode:Example City, UT@NODE`` only the part below a node of the table of contents. At most two requests are sent
per second. Responses about an edition are cached, since an edition does not change.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from kg.errors import SourceError, UpstreamError
from kg.remote.http import Reply, TooLargeError, parse_address, request_with_retry, send_request
from kg.remote.response_cache import CachedResponse, ResponseCache
from kg.remote.sparql import get_limiter
from kg.settings import Settings
from kg.text import quoted
from kg.vocabulary import segment, sha256
from loaders.readers.locations import Fetched, replace_file

SCHEME: Final = "municode"
TIMEOUT_S: Final = 60.0
"""Timeout of one request. A chapter is one response."""
PATIENCE_S: Final = 300.0
"""Timeout of one call with its waits and retries."""
MAX_BYTES: Final = 64 << 20
"""Maximum size of a response."""
MAX_NODES: Final = 100_000
FRESH_S: Final = 3_600.0
"""Maximum age of a cached response that may change, such as the latest edition."""

_LOCATION: Final = re.compile(r"(?P<client>[^,@]*[^,@\s])\s*+,\s*+(?P<state>[A-Za-z]{2})\s*+(?:@(?P<node>\S+))?")
_T = TypeVar("_T")
_Object = Mapping[str, Any]


def fetch(location: str, settings: Settings, folder: Path) -> Fetched:
    """Fetch the codes of a location into `folder`, one file each, in the format of `loaders.zoning.readers.municode`.

    Either all or nothing is fetched. Raises SourceError for a location without a client, UpstreamError for an
    unexpected response.
    """
    match = _LOCATION.fullmatch(location.removeprefix(SCHEME).removeprefix(":").strip())
    if match is None:
        raise SourceError(
            f"{location}: Missing client or state. Use {SCHEME}:Example City, UT or {SCHEME}:Example City, UT@NODE."
        )
    service, node = Service(str(settings.municode_url).rstrip("/"), settings.answers_dir), match["node"]
    client = service.client(match["client"], match["state"].upper())
    scope = f"{SCHEME}:{segment(str(client['ClientID']))}/"
    below = f"@{segment(node)}" if node else ""
    fetched: dict[str, bytes] = {}
    revisions = []
    for number, product in service.products(client["ClientID"]).items():
        if (answers := service.code(client, number, product, node)) is not None:
            fetched[f"{scope}{segment(number)}{below}.json"] = json.dumps(answers).encode()
            revisions.append(str(answers["job"].get("Name") or answers["job"]["Id"]))
    if not fetched:
        raise SourceError(f"{location}: The client has no code{f' with a node {quoted(node)}' if node else ''}.")
    files = {source: folder / f"{sha256(source)[:32]}.json" for source in fetched}
    for source, data in fetched.items():
        with replace_file(files[source]) as partial:
            partial.write_bytes(data)
    return Fetched(files, scope, "; ".join(revisions), service.warnings)


def _is_within(own: str, node: str | None) -> bool:
    # The id of a node starts with the id of its parent.
    return node is None or f"{own}_".startswith(f"{node}_")


@dataclass(slots=True)
class Service:
    """The service at `url`. Calls block until their timeout, and raise UpstreamError for an unexpected response."""

    url: str
    folder: Path
    sleep: Callable[[float], None] = time.sleep
    warnings: list[str] = field(default_factory=list)

    def client(self, name: str, state: str) -> _Object:
        """Get the client with that name in a state. Raises SourceError for an unknown client."""
        query = {"clientName": name, "stateAbbr": state}
        client: _Object | None = self._ask("/Clients/name", query, FRESH_S, lambda answer: answer)
        if not isinstance(client, dict) or client.get("ClientID") is None:
            raise SourceError(f"{self.url}: Unknown client {quoted(name)} in {state}.")
        return client

    def products(self, client: object) -> Mapping[str, _Object]:
        """Get the codes of a client by their ids, which the service spells in two ways."""
        return self._ask(
            f"/ClientContent/{segment(str(client))}",
            {},
            FRESH_S,
            lambda answer: {str(each.get("productId") or each["ProductID"]): each for each in answer["codes"]},
        )

    def code(self, client: _Object, number: str, product: _Object, node: str | None = None) -> _Object | None:
        """Fetch the latest edition of a code, or the part below one of its nodes. None if it has no such node."""
        edition, job = self._ask(f"/Jobs/latest/{segment(number)}", {}, FRESH_S, lambda job: (str(job["Id"]), job))
        query = {"jobId": edition, "productId": number}
        nodes = dict(self._nodes(query, node))
        if node is None and not nodes:
            # An empty table would look like a code without sections, and all stored sections would be removed.
            raise UpstreamError(f"{self.url}: The response has an empty table of contents of code {number}.")
        wanted = [own for own in nodes if _is_within(own, node)]
        if not wanted:
            return None
        docs: dict[str, Any] = {}
        for own in wanted:
            if own not in docs:
                # A response contains a whole group of sections, so most nodes need no request of their own.
                docs[own] = {"Id": own}
                docs |= self._ask(
                    "/CodesContent",
                    {**query, "nodeId": own},
                    None,
                    lambda answer: {str(doc["Id"]): doc for doc in answer["Docs"]},
                )
        kept = [doc for own, doc in docs.items() if own in nodes or node is None]
        return {"client": client, "product": product, "job": job, "nodes": [*nodes.values()], "docs": kept}

    def _nodes(self, query: Mapping[str, str], below: str | None) -> Iterator[tuple[str, _Object]]:
        """Fetch the table of contents, parents first. With a node, only its ancestors and descendants."""

        def children(parent: Mapping[str, str]) -> list[tuple[str, _Object]]:
            found: list[tuple[str, _Object]] = self._ask(
                "/codesToc/children", {**query, **parent}, None, lambda nodes: [(str(n["Id"]), n) for n in nodes]
            )
            led = [each for each in found if _is_within(each[0], below) or _is_within(below or "", each[0])]
            return led[::-1]

        seen: set[str] = set()
        waiting = children({})
        while waiting:
            own, node = waiting.pop()
            if own in seen:
                self.warnings.append(f"{self.url}: Node {own} is below itself or below two others. It is used once.")
                continue
            seen.add(own)
            if len(seen) > MAX_NODES:
                raise UpstreamError(
                    f"{self.url}: The table of contents has more than {MAX_NODES:,} nodes. Name a part of it."
                )
            yield own, node
            if node.get("HasChildren"):
                waiting += children({"nodeId": own})

    def _ask(self, path: str, query: Mapping[str, str], fresh_s: float | None, read: Callable[[Any], _T]) -> _T:
        """Fetch a response, from the cache if it is at most `fresh_s` old (None: any age), and read it."""
        url, asked, cache = f"{self.url}{path}", urlencode(sorted(query.items())), ResponseCache(self.folder)
        kept = cache.get(url, asked)
        if kept is None or (fresh_s is not None and not 0 <= time.time() - kept.time < fresh_s):
            kept = None
        body = self._get(url, asked) if kept is None else kept.body
        try:
            value = read(json.loads(body))
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            raise UpstreamError(f"{url}: The response is not JSON of the expected form ({error!r:.120}).") from None
        if kept is None:
            cache.put(url, asked, CachedResponse(body, time.time()))
        return value

    def _get(self, url: str, asked: str) -> bytes:
        address = parse_address(url)
        if address is None:
            raise SourceError(f"{url}: Invalid address of the service. Use http or https, host, port and path only.")
        limiter = get_limiter(address[1], address[2])
        deadline = time.monotonic() + PATIENCE_S

        def send() -> Reply:
            wait = limiter.reserve(deadline)
            if wait is None:
                raise UpstreamError(f"{url}: No free slot for the request within {PATIENCE_S:.0f} s.")
            if wait > 0:
                self.sleep(wait)
            try:
                return send_request(f"{url}?{asked}" if asked else url, None, "application/json", TIMEOUT_S, MAX_BYTES)
            except TooLargeError:
                raise UpstreamError(f"{url}: The response is larger than {MAX_BYTES / 1024**2:.0f} MiB.") from None

        return request_with_retry(send, url, sleep=self.sleep, deadline=deadline).body
