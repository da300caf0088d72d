"""Agents that read a code through a client: one quotes honestly, one invents words, one misreads true words.

``python -m tests.tools.zoning.agent_readers DATADIR MUNICIPALITY STATE`` runs them over a code that is loaded.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
from fastmcp import Client
from fastmcp.utilities.tests import ASGIServer
from starlette.requests import Request

from kg.access.actors import EVERYONE, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.server.app import create_app
from kg.server.authentication import Accounts
from kg.settings import Settings

Entry = dict[str, Any]
Task = Mapping[str, Any]

_LEAD: Final = re.compile(r"[^\n.]*\bused by right\b[^\n]*")
_ITEM: Final = re.compile(r"^\(\d+\) (?P<use>[A-Z][\w ,/-]{3,60}?)(?=[.;]|,? as regulated|$)[^\n]*", re.MULTILINE)
_PROHIBITS: Final = re.compile(r"[^\n.]*\bprohibited\b[^\n.]*\.")


def read_honestly(task: Task) -> Iterator[Entry]:
    """Read the items of the list of a section that permits uses by right, each with the words that say so."""
    text = task["text"]
    lead = _LEAD.search(text)
    for item in _ITEM.finditer(text) if lead else ():
        for district in task.get("districts") or ():
            names = re.search(rf"^.*(?<![\w-]){re.escape(district)}(?![\w-]).*$", text, re.MULTILINE)
            quoted = [lead, item, *([names] if names else ())] if lead else []
            yield {
                "district": district,
                "use": item["use"],
                "permission": "used by right",
                "section_ref": task["section_ref"],
                "quotations": list(dict.fromkeys(each[0].strip() for each in quoted)),
            }


def invent(task: Task) -> Iterator[Entry]:
    """Read a use that the section does not have."""
    for entry in read_honestly(task):
        lead, _, *others = entry["quotations"]
        yield {**entry, "use": "Zeppelin hangars", "quotations": [lead, "(1) Zeppelin hangars.", *others]}


def misread(task: Task) -> Iterator[Entry]:
    """Take the words of a sentence that prohibits something else for the level of the uses."""
    if (sentence := _PROHIBITS.search(task["text"])) is not None:
        for entry in read_honestly(task):
            said = [sentence[0].strip(), *entry["quotations"][1:]]
            yield {**entry, "permission": "prohibited", "quotations": said}


@dataclass(frozen=True)
class _Names(Accounts):
    """Takes the bearer of a request for the name of its agent: the server has one token only."""

    async def identify(self, request: Request) -> Actor:
        """The agent that sends a request."""
        name = request.headers.get("authorization", "").removeprefix("Bearer ")
        return Actor(name, EVERYONE.scopes) if name else EVERYONE


@asynccontextmanager
async def connect(kg: KnowledgeGraph) -> AsyncIterator[Callable[[str], Client[Any]]]:
    """Serve a graph without a socket. Yields a function that makes the client of an agent."""
    app = create_app(kg, accounts=_Names())
    async with app.router.lifespan_context(app):
        server = ASGIServer(url="http://127.0.0.1/mcp/zoning", app=app, transport_type="http")
        yield lambda name: server.client(auth=name)


async def fill(client: Client[Any], place: Entry, read: Callable[[Task], Iterator[Entry]]) -> Counter[str]:
    """Read all tasks of a code and send what is read. Returns the number of entries by outcome."""
    outcomes: Counter[str] = Counter()
    offset: int | None = 0
    while offset is not None:
        asked = {**place, "kind": "uses", "limit": 10, "offset": offset, "max_tokens": 50_000}
        found = (await client.call_tool("zoning_reading_tasks", asked)).structured_content or {}
        for task in found["tasks"]:
            if entries := list(read(task)):
                sent = {**place, "permissions": entries[:200]}
                done = (await client.call_tool(found["tool"], sent)).structured_content or {}
                outcomes.update(each["outcome"] for each in done["entries"])
        offset = found.get("next_offset") or (found.get("page") or {}).get("next_offset")
    return outcomes


async def run(folder: Path, place: Entry) -> None:
    """Run the readers over a stored code, and print what became of their readings."""
    with KnowledgeGraph.open(folder, Settings(data_dir=folder)) as kg:
        async with connect(kg) as clients:
            for name, reader in (("eve", invent), ("mal", misread), ("ann", read_honestly), ("bob", read_honestly)):
                async with clients(name) as client:
                    print(name, dict(await fill(client, place, reader)))
                    asked = {**place, "limit": 200, "max_tokens": 50_000}
                    found = (await client.call_tool("kg_query_permissions", asked)).structured_content or {}
                    bases = Counter(each["evidence"]["basis"] for each in found["permissions"])
                    print("  law:", json.dumps(bases), "unconfirmed, at least:", len(found.get("unsure", [])))


if __name__ == "__main__":
    anyio.run(run, Path(sys.argv[1]), {"municipality": sys.argv[2], "state": sys.argv[3]})
