"""Client of the service behind library.municode.com. It is called only for a location that asks for it.

``municode:Example City, UT`` is all codes of that client, ``municode:1234, UT`` of the client with that id, and
``municode:Example City, UT@NODE`` only the part below a node of the table of contents. At most two requests are sent
per second. Responses about an edition are cached, since an edition does not change.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
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


def fetch(location: str, settings: Settings, folder: Path) -> Fetched:
    """Fetch the codes of a location into `folder`, one file each, in the format of `loaders.zoning.readers.municode`.

    Either all or nothing is fetched. Raises SourceError for a location without a client, UpstreamError for an
    unexpected response.
    """
    match = _LOCATION.fullmatch(location.removeprefix(SCHEME).removeprefix(":").strip())
    if match is None:
        raise SourceError(
            f"{location}: Missing client or state. Use {SCHEME}:Example City, UT or {SCHEME}:1234, UT@NODE."
        )
    service = Service(str(settings.municode_url).rstrip("/"), settings.answers_dir)
    client = service.client(match["client"], match["state"].upper())
    scope = f"{SCHEME}:{segment(str(client['ClientID']))}/"
    fetched: dict[str, bytes] = {}
    revisions = []
    for product in service.products(client["ClientID"]):
        answers = service.code(client, product, match["node"])
        if answers is None:
            continue
        source = (
            f"{scope}{segment(str(product_id(product)))}{'@' + segment(match['node']) if match['node'] else ''}.json"
        )
        fetched[source] = json.dumps(answers).encode()
        revisions.append(str(answers["job"].get("Name") or answers["job"]["Id"]))
    if not fetched:
        below = f" with a node {quoted(match['node'])}" if match["node"] else ""
        raise SourceError(f"{location}: The client has no code{below}.")
    files = {source: folder / f"{sha256(source)[:32]}.json" for source in fetched}
    for source, data in fetched.items():
        with replace_file(files[source]) as partial:
            partial.write_bytes(data)
    return Fetched(files, scope, "; ".join(revisions), service.warnings)


def _is_within(own: str, node: str | None) -> bool:
    # The id of a node starts with the id of its parent.
    return node is None or own == node or own.startswith(f"{node}_")


def _leads(own: str, node: str | None) -> bool:
    return _is_within(own, node) or (node is not None and node.startswith(f"{own}_"))


def product_id(product: Mapping[str, Any]) -> object:
    """Get the id of a product, which the service spells in two ways."""
    return product.get("productId", product.get("ProductID"))


@dataclass(slots=True)
class Service:
    """The service at `url`. Calls block until their timeout."""

    url: str
    folder: Path | None
    sleep: Callable[[float], None] = time.sleep
    warnings: list[str] = field(default_factory=list)

    def client(self, name: str, state: str) -> Mapping[str, Any]:
        """Get the client with that name or id in a state. Raises SourceError for an unknown client."""
        if name.isascii() and name.isdigit():
            found = self._list("/Clients/stateAbbr", {"stateAbbr": state}, FRESH_S)
            answer: Any = next((each for each in found if str(each.get("ClientID")) == name), None)
        else:
            answer = self._ask("/Clients/name", {"clientName": name, "stateAbbr": state}, FRESH_S)
        if not isinstance(answer, dict) or answer.get("ClientID") is None:
            raise SourceError(f"{self.url}: Unknown client {quoted(name)} in {state}.")
        return answer

    def products(self, client: object) -> Sequence[Mapping[str, Any]]:
        """Get the codes of a client."""
        content = self._ask(f"/ClientContent/{segment(str(client))}", {}, FRESH_S)
        codes = content.get("codes") if isinstance(content, dict) else None
        if not isinstance(codes, list) or not all(isinstance(each, dict) and product_id(each) for each in codes):
            raise UpstreamError(f"{self.url}: The response has no list of codes of client {client}.")
        return codes

    def code(
        self, client: Mapping[str, Any], product: Mapping[str, Any], node: str | None = None
    ) -> Mapping[str, Any] | None:
        """Fetch the latest edition of a code, or the part below one of its nodes. None if it has no such node."""
        number = str(product_id(product))
        job = self._ask(f"/Jobs/latest/{segment(number)}", {}, FRESH_S)
        if not isinstance(job, dict) or job.get("Id") is None:
            raise UpstreamError(f"{self.url}: The response has no edition of code {number}.")
        edition = {"jobId": str(job["Id"]), "productId": number}
        nodes = [*self._nodes(edition, node)]
        if node is None and not nodes:
            # An empty table would look like a code without sections, and all stored sections would be removed.
            raise UpstreamError(f"{self.url}: The response has an empty table of contents of code {number}.")
        if node is not None and not any(_is_within(str(each["Id"]), node) for each in nodes):
            return None
        docs: dict[str, Any] = {}
        for each in nodes:
            if str(each["Id"]) not in docs and _is_within(str(each["Id"]), node):
                # A response contains a whole group of sections, so most nodes need no request of their own.
                docs |= self._docs(edition, str(each["Id"]))
        told = {str(each["Id"]) for each in nodes}
        kept = [doc for own, doc in docs.items() if own in told or node is None]
        return {"client": client, "product": product, "job": job, "nodes": nodes, "docs": kept}

    def _nodes(self, edition: Mapping[str, str], below: str | None) -> Iterator[Mapping[str, Any]]:
        """Fetch the table of contents, parents first. With a node, only its ancestors and descendants."""
        seen: set[str] = set()
        waiting: list[Mapping[str, Any]] = []

        def children(of: str | None) -> list[Mapping[str, Any]]:
            found = self._list("/codesToc/children", {**edition, **({"nodeId": of} if of else {})}, None)
            return [each for each in found if each.get("Id") is not None and _leads(str(each["Id"]), below)]

        waiting = children(None)[::-1]
        while waiting:
            node = waiting.pop()
            own = str(node["Id"])
            if own in seen:
                self.warnings.append(f"{self.url}: Node {own} is below itself or below two others. It is used once.")
                continue
            seen.add(own)
            if len(seen) > MAX_NODES:
                raise UpstreamError(
                    f"{self.url}: The table of contents has more than {MAX_NODES:,} nodes. Name a part of it."
                )
            yield node
            if node.get("HasChildren"):
                waiting += children(own)[::-1]

    def _docs(self, edition: Mapping[str, str], node: str) -> Mapping[str, Any]:
        answer = self._ask("/CodesContent", {**edition, "nodeId": node}, None)
        docs = answer.get("Docs") if isinstance(answer, dict) else None
        if not isinstance(docs, list):
            raise UpstreamError(f"{self.url}: The response has no documents of node {node}.")
        found = {str(each["Id"]): each for each in docs if isinstance(each, dict) and each.get("Id") is not None}
        return {node: {"Id": node}} | found

    def _list(self, path: str, query: Mapping[str, str], fresh_s: float | None) -> list[Mapping[str, Any]]:
        answer = self._ask(path, query, fresh_s)
        if not isinstance(answer, list) or not all(isinstance(each, dict) for each in answer):
            raise UpstreamError(f"{self.url}{path}: The response is not a list of objects.")
        return answer

    def _ask(self, path: str, query: Mapping[str, str], fresh_s: float | None) -> Any:
        """Fetch a response, from the cache if it is at most `fresh_s` old (None: any age)."""
        url = f"{self.url}{path}"
        asked = urlencode(sorted(query.items()))
        answers = None if self.folder is None else ResponseCache(self.folder)
        kept = None if answers is None else answers.get(url, asked)
        if kept is not None and (fresh_s is None or 0 <= time.time() - kept.time < fresh_s):
            with suppress(ValueError, RecursionError):
                return json.loads(kept.body)
        body = self._get(url, asked)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise UpstreamError(f"{url}: The response is not JSON ({error!r:.120}).") from None
        if answers is not None:
            answers.put(url, asked, CachedResponse(body, time.time()))
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
