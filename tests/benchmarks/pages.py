"""The web pages over texts of all four domains, beside the tool that the search page calls.

The records are those of `four_domains`. As in the benchmark `search`, vectors are random. Each page is requested as a
browser does, over one kept connection, in turns with the others, each time with other words or another record, and read
to its end, compressed. What is costly only once is measured once, in a server that has just started, and again directly
after a commit that changes nothing on the page: lists and charts of the whole store, a document of 20,000 passages, and
a concept that all passages mention. The server measures its schema in the background after its first start; the pages
in turns are requested after that. Processor time is that of all processes of the server; other load changes it less
than the time that passes. Arguments: the number of passages (default 100,000), the number of requests of each page.
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from pyoxigraph import NamedNode

from kg.search.index_client import EdgeIndex
from kg.vocabulary import mint
from tests.benchmarks import four_domains
from tests.benchmarks.comparison import Comparison, median, p95
from tests.benchmarks.four_domains import CONCEPTS, EVERYWHERE, LONG, LONGEST, PEOPLE, TOWNS, UNITS_EACH
from tests.benchmarks.search import SCRIPT, WARM_UP, cached, country, processor_ms, words

REQUESTS = 50
SEARCH_LIMIT_MS = 250.0
HOME_LIMIT_MS = 100.0
READER_LIMIT_MS = 150.0
SIZE_LIMIT_KB = 60.0

Address = Callable[[int], str]
"""The path of a page, by the number of the request."""


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the graph unless it is there, serve it, request the pages, and compare."""
    passages = int(arguments[0]) if arguments else 100_000
    requests = int(arguments[1]) if len(arguments) > 1 else REQUESTS
    EdgeIndex.command = (*SCRIPT, "index")
    folder = cached(passages, four_domains.graphs, Path(four_domains.__file__))
    with subprocess.Popen([*SCRIPT, "serve", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            client = Client(url, server.pid)
            once = _build_costly(passages)
            client.get("/")  # the index and the model are open then
            first = {name: client.measure(path) for name, path in once.items()}
            again = {name: client.measure(path) for name, path in once.items()}
            client.commit((folder / "token").read_text().strip())
            after = {name: client.measure(path) for name, path in once.items()}
            began = time.perf_counter()
            client.await_schema()
            waited_s = time.perf_counter() - began
            found = measure(client, passages, requests)
        finally:
            server.terminate()
    tool = found.pop("tool")
    yield Comparison("until the schema was measured, in the background: wait", waited_s, None, "s")
    yield Comparison("the tool search, 20 results: p95", p95(tool.waited), None, "ms")
    yield Comparison("the tool search, 20 results: p95 of processor time", p95(tool.worked), None, "ms")
    for (title, limit), each in zip(TITLES.values(), found.values(), strict=True):
        title = title.format(passages=passages)
        yield Comparison(f"{title}: median", median(each.waited), median(tool.waited), "ms")
        yield Comparison.at_most(f"{title}: p95", p95(each.waited), "ms", limit, p95(tool.waited))
        yield Comparison(f"{title}: median of processor time", median(each.worked), median(tool.worked), "ms")
        yield Comparison(f"{title}: p95 of processor time", p95(each.worked), p95(tool.worked), "ms")
        yield Comparison.at_most(f"{title}: largest, with its style, compressed", each.size, "kB", SIZE_LIMIT_KB)
    for views, title in ((first, "first view"), (again, "later view"), (after, "after a commit elsewhere")):
        for name, (_, worked, _) in views.items():
            yield Comparison(f"{name}, {title}: processor time", worked, median(tool.worked), "ms")


TITLES: dict[str, tuple[str, float]] = {
    "search": ("search page of {passages:,} passages, with facets", SEARCH_LIMIT_MS),
    "filtered": ("search page, a domain and a place", SEARCH_LIMIT_MS),
    "domain": ("search page, a domain of a quarter of the passages", SEARCH_LIMIT_MS),
    "concept": ("search page, passages that mention a concept", SEARCH_LIMIT_MS),
    "filters": ("search page, filters alone", SEARCH_LIMIT_MS),
    "home": ("start page", HOME_LIMIT_MS),
    "passage": ("a passage in its document", READER_LIMIT_MS),
    "file": ("a file", READER_LIMIT_MS),
    "speech": ("a speech", READER_LIMIT_MS),
    "sitting": ("a sitting day", READER_LIMIT_MS),
    "section": ("a section of a code", READER_LIMIT_MS),
    "law": ("a policy family", READER_LIMIT_MS),
    "place": ("a place", READER_LIMIT_MS),
    "town": ("a municipality", READER_LIMIT_MS),
    "person": ("a person", READER_LIMIT_MS),
    "subject": ("a concept", READER_LIMIT_MS),
    "long": ("a page of a document of 20,000 passages", READER_LIMIT_MS),
    "workbench": ("the SPARQL workbench", READER_LIMIT_MS),
    "charts": ("charts", READER_LIMIT_MS),
    "status": ("the state of the server", READER_LIMIT_MS),
}
"""The title and the limit of each page, in ms."""


def _build_costly(passages: int) -> dict[str, str]:
    """Build the addresses of the pages that read much of the store when they are first shown."""
    return {
        "the start page": "/",
        "charts": "/charts",
        "the list of people": "/people",
        "the list of concepts": "/concepts",
        f"a document of {_long(passages):,} passages": f"/resolve?iri={quote(mint('document', LONG).value, safe='')}",
        f"a concept with {passages:,} mentions": _page(mint("concept", EVERYWHERE)),
        "passages that mention that concept": "/search?" + urlencode({"concept": EVERYWHERE}),
    }


def _long(passages: int) -> int:
    return min(LONGEST, passages // 5)


def _page(iri: NamedNode) -> str:
    return f"/resolve?iri={quote(iri.value, safe='')}"


def build_addresses(passages: int, requests: int) -> Mapping[str, Address]:
    """Build the addresses of the pages, by the names of `TITLES`."""
    vocabulary, _ = words()
    chance = random.Random(13)
    queries = [" ".join(chance.sample(vocabulary[:2_000], 4)) for _ in range(4 * (WARM_UP + requests))]
    groups = max(1, (passages - _long(passages)) // UNITS_EACH // 4)

    def record(number: int, domain: int) -> int:
        return number * 37 % groups * 4 + domain

    def search(order: int, **filters: str) -> Address:
        return lambda number: "/search?" + urlencode({"q": queries[4 * number + order], **filters})

    def passage(slug: str, position: int) -> str:
        return f"/passage/{quote(mint('passage', slug, str(position)).value, safe='')}?span=0-9"

    def section(number: int) -> NamedNode:
        chapter = record(number, 2)
        return mint("section", f"us-ut-town{chapter // 4 % TOWNS}", f"{chapter}.{number % UNITS_EACH}")

    return {
        "search": search(0),
        "filtered": lambda number: search(1, domain="climate", place=country(number * 4))(number),
        "domain": search(2, domain="parliament"),
        "concept": lambda number: search(3, concept=f"Q{number % CONCEPTS + 1}")(number),
        "filters": lambda number: "/search?" + urlencode({"domain": "parliament", "year": 1990 + number % 35}),
        "home": lambda number: "/",
        "passage": lambda number: passage(f"made-{record(number, 0)}", number % UNITS_EACH),
        "file": lambda number: _page(mint("file", "made", f"note-{record(number, 3)}.md")),
        "speech": lambda number: _page(mint("speech", f"made-{record(number, 1)}-{number % 10}")),
        "sitting": lambda number: _page(mint("sitting", f"made-{record(number, 1)}")),
        "section": lambda number: _page(section(number)),
        "law": lambda number: _page(mint("family", f"made-{record(number, 0) // 12}")),
        "place": lambda number: _page(mint("place", country(record(number, 0)))),
        "town": lambda number: _page(mint("municipality", f"us-ut-town{record(number, 2) // 4 % TOWNS}")),
        "person": lambda number: _page(mint("person", f"p{number % PEOPLE}")),
        "subject": lambda number: _page(mint("concept", f"Q{number * 7 % CONCEPTS + 1}")),
        "long": lambda number: passage(LONG, number * 997 % _long(passages)),
        "workbench": lambda number: "/sparql",
        "charts": lambda number: "/charts",
        "status": lambda number: "/status",
    }


class Measured:
    """Times of requests in ms, and of the processor, and the largest size in kB."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.worked: list[float] = []
        self.size = 0.0

    def sort(self) -> Measured:
        """Leave out the first ones, and sort the others."""
        self.waited, self.worked = sorted(self.waited[WARM_UP:]), sorted(self.worked[WARM_UP:])
        return self


class Client:
    """A browser with one connection, and the processor time of the server `pid`."""

    def __init__(self, url: str, pid: int) -> None:
        self._pid = pid
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._style = len(self.get("/static/style.css"))

    def measure(self, path: str) -> tuple[float, float, float]:
        """Request a page; return the time and the processor time in ms, and its size with its style in kB."""
        before, began = processor_ms(self._pid), time.perf_counter()
        body = self.get(path)
        waited = (time.perf_counter() - began) * 1_000
        return waited, processor_ms(self._pid) - before, (len(body) + self._style) / 1_000

    def search(self, query: str) -> tuple[float, float]:
        """Call the tool; return the time and the processor time in ms."""
        before, began = processor_ms(self._pid), time.perf_counter()
        arguments = json.dumps({"query": query, "limit": 20})
        self._send("POST", "/tools/search", arguments, {"Content-Type": "application/json"})
        return (time.perf_counter() - began) * 1_000, processor_ms(self._pid) - before

    def await_schema(self) -> None:
        """Wait until the schema is measured, which the server does in the background after its first start."""
        while True:
            body = self._send("POST", "/tools/health", "{}", {"Content-Type": "application/json"})
            caches = {each["name"]: each for each in json.loads(body)["caches"]}
            if caches["schema"].get("generation") is not None:
                return
            time.sleep(0.5)

    def commit(self, token: str) -> None:
        """Commit a statement about something of its own, as the holder of the local token."""
        path = "/graphs?graph=" + quote(mint("graph", "user", "benchmark").value, safe="")
        turtle = f'<urn:benchmark> <http://purl.org/dc/terms/title> "{time.time()}" .'
        headers = {"Content-Type": "text/turtle", "Authorization": f"Bearer {token}"}
        self._send("PUT", path, turtle, headers)

    def get(self, path: str) -> bytes:
        """Request a page as a browser does, and return the bytes that came."""
        return self._send("GET", path, None, {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip"})

    def _send(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> bytes:
        self._connection.request(method, path, body, dict(headers))
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            text = gzip.decompress(content) if answer.headers["Content-Encoding"] == "gzip" else content
            raise RuntimeError(f"{path} failed with {answer.status}: {text.decode()[-600:]}")
        return content


def measure(client: Client, passages: int, requests: int) -> dict[str, Measured]:
    """Request the pages in turns, and the tool; return the measurements by name."""
    vocabulary, _ = words()
    chance = random.Random(14)
    addresses = build_addresses(passages, requests)
    found = {name: Measured() for name in (*addresses, "tool")}
    for number in range(WARM_UP + requests):
        for name, address in addresses.items():
            waited, worked, size = client.measure(address(number))
            found[name].waited.append(waited)
            found[name].worked.append(worked)
            found[name].size = max(found[name].size, size)
        waited, worked = client.search(" ".join(chance.sample(vocabulary[:2_000], 4)))
        found["tool"].waited.append(waited)
        found["tool"].worked.append(worked)
    return {name: each.sort() for name, each in found.items()}
