"""A Wikidata MCP server on loopback, with the names, arguments and text answers of the published one, and its faults.

Run alone it serves the entities of a folder or file: ``python -m tests.connectors.wikidata_server PATH``.
"""

from __future__ import annotations

import asyncio
import calendar
import csv
import io
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from fastmcp import FastMCP
from pyoxigraph import Literal, NamedNode, QuerySolutions, Store

from kg.settings import Settings
from loaders.wikibase.entity_rdf import build_quads
from loaders.wikibase.instances import choose_instance

ROOT = Path(__file__).parents[2]
REAL = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "wikibase" / "json"
"""Real entities, where they are present."""
OWN = Path(__file__).parent / "entities.json"
"""A few fictional ones."""

MONTHS = calendar.month_name[1:]
ENTITY = re.compile(r"http://www\.wikidata\.org/entity/([A-Z]\d+)")


def read_entities(path: Path) -> dict[str, dict[str, Any]]:
    """Read the items and properties of a file, or of the files of a folder, by id."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(path.glob("[PQ]*.json")) if path.is_dir() else [path]:
        document = json.loads(file.read_text())
        for entity in document["entities"].values() if "entities" in document else [document]:
            if re.fullmatch(r"[PQ]\d+", entity.get("id", "")) and "missing" not in entity:
                found[entity["id"]] = entity
    return found


class Entities:
    """Entities, and what the server says about them."""

    def __init__(self, entities: Mapping[str, dict[str, Any]]) -> None:
        self.entities = entities
        self.store = Store()
        instance = choose_instance(Settings(_env_file=None), "wikidata")  # type: ignore[call-arg]
        for entity in entities.values():
            made = build_quads(instance, entity)
            for quad in [*made.quads, *(each for shared in made.shared.values() for each in shared)]:
                self.store.add(quad)

    def label(self, entity_id: str) -> str:
        entity = self.entities.get(entity_id, {})
        labels = entity.get("labels") or {}
        return labels.get("en", next(iter(labels.values()), {})).get("value", "") if labels else ""

    def named(self, entity_id: str) -> str:
        return f"{self.label(entity_id)} ({entity_id})"

    def value(self, snak: Mapping[str, Any]) -> str:
        if snak["snaktype"] != "value":
            return "no value" if snak["snaktype"] == "novalue" else "unknown value"
        value = snak["datavalue"]["value"]
        if isinstance(value, str):
            return value
        if "id" in value or "numeric-id" in value:
            return self.named(value.get("id") or f"Q{value['numeric-id']}")
        if "time" in value:
            year, month, day = re.match(r"[+-](\d+)-(\d\d)-(\d\d)", value["time"]).groups()  # type: ignore[union-attr]
            text = str(int(year)) + (" BCE" if value["time"].startswith("-") else "")
            if value["precision"] >= 10:
                text = f"{MONTHS[int(month) - 1]} {text}"
            return f"{int(day)} {text}" if value["precision"] >= 11 else text
        if "amount" in value:
            unit = ENTITY.fullmatch(value["unit"])
            return f"{value['amount'].lstrip('+')} {self.label(unit[1]) if unit else ''}".strip()
        if "text" in value:
            return value["text"]
        return json.dumps(value)

    def statements(self, entity_id: str, property_id: str | None = None) -> Iterator[Mapping[str, Any]]:
        claims = self.entities[entity_id].get("claims") or {}
        for of, statements in claims.items():
            if property_id in (None, of):
                yield from statements

    def line(self, entity_id: str, statement: Mapping[str, Any]) -> str:
        snak = statement["mainsnak"]
        return f"{self.named(entity_id)}: {self.named(snak['property'])}: {self.value(snak)}"

    def search(self, query: str, kind: str) -> str:
        words = set(re.findall(r"\w+", query.casefold()))
        scored = []
        for entity_id, entity in self.entities.items():
            aliases = [each["value"] for group in (entity.get("aliases") or {}).values() for each in group]
            names = [self.label(entity_id), *aliases]
            score = max(len(words & set(re.findall(r"\w+", name.casefold()))) for name in names)
            if entity_id.startswith(kind) and score:
                scored.append((-score, entity_id))
        lines = []
        for _, entity_id in sorted(scored)[:10]:
            descriptions = self.entities[entity_id].get("descriptions") or {}
            description = descriptions.get("en", {}).get("value", "")
            lines.append(f"{entity_id}: {self.label(entity_id)} — {description}")
        return "\n".join(lines)

    def sparql(self, query: str, most: int) -> str:
        try:
            solutions = self.store.query(query, use_default_graph_as_union=True)
        except SyntaxError as error:
            return f"Malformed query: {error}"
        assert isinstance(solutions, QuerySolutions)
        names = [variable.value for variable in solutions.variables]
        rows = []
        for solution in solutions:
            cells = []
            for name in names:
                term = solution[name]
                text = term.value if isinstance(term, NamedNode | Literal) else ("" if term is None else str(term))
                found = ENTITY.fullmatch(text)
                cells.append(found[1] if found else text)
            rows.append(cells)
        if not rows:
            return "SPARQL query returned no data.\nReturn to Step 1 (Discovery), refine the query, and retry."
        out = io.StringIO()
        writer = csv.writer(out, delimiter=";", lineterminator="\n")
        writer.writerow(["", *names])
        for number, cells in enumerate(rows[:most]):
            writer.writerow([number, *cells])
        return out.getvalue()


def build_server(known: Entities, names: str = "new") -> FastMCP:
    """Build the server with the tools of the present version, or of an older one."""
    server: FastMCP = FastMCP("Wikidata MCP")
    new = names == "new"

    def search_items(query: str, lang: str = "en") -> str:
        """Search Wikidata items."""
        return known.search(query, "Q") or "No matching items found. Try another query."

    def search_properties(query: str, lang: str = "en") -> str:
        """Search Wikidata properties."""
        return known.search(query, "P") or "No matching properties found. Try another query."

    def get_statements(entity_id: str, include_external_ids: bool = False, lang: str = "en") -> str:
        """Return the direct statements of an entity."""
        if entity_id not in known.entities:
            return f"Entity {entity_id} not found. Try finding correct IDs with search."
        lines = []
        for each in known.statements(entity_id):
            line = known.line(entity_id, each)
            if not new:
                for snaks in each.get("qualifiers", {}).values():
                    for snak in snaks:
                        line += f" | {known.named(snak['property'])}: {known.value(snak)}"
            if each["rank"] != "deprecated":
                lines.append(line)
        return "\n".join(lines)

    def get_statement_values(entity_id: str, property_id: str, lang: str = "en") -> str:
        """Return all statements of an entity with one property, complete."""
        if entity_id not in known.entities:
            return f"Entity {entity_id} not found. Try finding correct IDs with search."
        said = []
        for each in known.statements(entity_id, property_id):
            lines = [known.line(entity_id, each), f"  Rank: {each['rank']}"]
            if each.get("qualifiers"):
                lines.append("  Qualifier:")
                for snaks in each["qualifiers"].values():
                    lines += [f"    - {known.named(snak['property'])}: {known.value(snak)}" for snak in snaks]
            for number, reference in enumerate(each.get("references", []), 1):
                lines.append(f"  Reference {number}:")
                for snaks in reference["snaks"].values():
                    lines += [f"    - {known.named(snak['property'])}: {known.value(snak)}" for snak in snaks]
            said.append("\n".join(lines) + "\n")
        return "\n".join(said).strip() or f"No statement found for {entity_id} with property {property_id}."

    def execute_sparql(sparql: str, K: int = 10) -> str:  # noqa: N803 -- the name of the published server
        """Execute a query."""
        return known.sparql(sparql, K)

    server.tool(search_items, name="search_items" if new else "vector_search_items")
    server.tool(search_properties, name="search_properties" if new else "vector_search_properties")
    server.tool(get_statements, name="get_statements" if new else "get_entity_claims")
    server.tool(get_statement_values, name="get_statement_values" if new else "get_claim_values")
    if names != "no sparql":
        server.tool(execute_sparql)
    return server


class Faults:
    """An application that answers as `mode` says: ``normal``, or one of the faults."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.mode = "normal"
        self.target = ""
        """Where it redirects to."""
        self.requests: list[Mapping[str, Any]] = []
        """The JSON-RPC messages that arrived."""
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        with suppress(ValueError):
            self.requests.append(json.loads(body))
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        if await self.fail(send, body):
            return
        replayed = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Any:
            return next(replayed, None) or await receive()

        await self.app(scope, again, send)

    async def fail(self, send: Any, body: bytes) -> bool:
        async def answer(status: int, kind: str, text: bytes, **headers: str) -> bool:
            named = [(b"content-type", kind.encode()), *((k.encode(), v.encode()) for k, v in headers.items())]
            await send({"type": "http.response.start", "status": status, "headers": named})
            await send({"type": "http.response.body", "body": text})
            return True

        match self.mode:
            case "slow":
                await asyncio.sleep(0.3)
            case "hang":
                await asyncio.sleep(60)
            case "html":
                return await answer(200, "text/html", b"<html><body>Please log in</body></html>")
            case "busy":
                return await answer(503, "text/plain", b"overloaded")
            case "pause":
                return await answer(429, "text/plain", b"later", **{"retry-after": self.target})
            case "wrong":
                return await answer(200, "application/json", b'{"answer": [1, 2, {"deep": null}]}')
            case "garbage":
                return await answer(200, "application/json", b"\x00\xff{{{")
            case "huge":
                head = [(b"content-type", b"application/json")]
                await send({"type": "http.response.start", "status": 200, "headers": head})
                with suppress(Exception):
                    for _ in range(64):
                        await send({"type": "http.response.body", "body": b" " * (1 << 20), "more_body": True})
                return True
            case "drip":
                head = [(b"content-type", b"application/json")]
                await send({"type": "http.response.start", "status": 200, "headers": head})
                with suppress(Exception):
                    for _ in range(600):
                        await send({"type": "http.response.body", "body": b" ", "more_body": True})
                        await asyncio.sleep(0.05)
                return True
            case "cut":
                head = [(b"content-type", b"application/json"), (b"content-length", b"5000")]
                await send({"type": "http.response.start", "status": 200, "headers": head})
                await send({"type": "http.response.body", "body": b'{"jsonrpc": "2.0", ', "more_body": True})
                raise RuntimeError("cut")
            case "redirect":
                return await answer(307, "text/plain", b"", location=self.target)
        return False


class WikidataServer:
    """The server in a thread of this process: it can be stopped, and started again at the same port."""

    def __init__(self, entities: Path = OWN, names: str = "new") -> None:
        self.known = Entities(read_entities(entities))
        self._names = names
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp/"
        self.faults = Faults(None)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start, and wait until requests are answered."""
        if self._listening.fileno() == -1:
            self._listening = socket.create_server(("127.0.0.1", self.port))
        app = build_server(self.known, self._names).http_app(path="/mcp/", stateless_http=True, json_response=True)
        self.faults.app = app
        config = uvicorn.Config(self.faults, log_level="critical", lifespan="on", timeout_graceful_shutdown=0)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listening]}, name="wikidata", daemon=True
        )
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop at once, also in the middle of an answer."""
        if self._server is not None and self._thread is not None:
            self._server.force_exit = self._server.should_exit = True
            self._thread.join(10)
            self._server = None
        self._listening.close()

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls of tools that arrived: name and arguments."""
        found = [each for each in self.faults.requests if each.get("method") == "tools/call"]
        return [(each["params"]["name"], each["params"]["arguments"]) for each in found]


@contextmanager
def serving(entities: Path = OWN, names: str = "new") -> Iterator[WikidataServer]:
    """Serve entities until the block ends."""
    server = WikidataServer(entities, names)
    server.start()
    try:
        yield server
    finally:
        server.stop()


if __name__ == "__main__":
    with serving(Path(sys.argv[1]) if len(sys.argv) > 1 else REAL) as running:
        print(running.url, flush=True)
        threading.Event().wait()
