"""The web pages over texts of all four domains, beside the tool that the search page calls.

Made-up laws, speeches, sections and files of equal shares mention made-up concepts. As in the benchmark `search`,
vectors are random. Each page is requested as a browser does, over one kept connection, in turns with the others, each
time with other words or another document, and read to its end, compressed. Arguments: the number of passages (default
100,000).
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from pyoxigraph import Literal, NamedNode, Quad

from kg.search.index_client import EdgeIndex
from kg.vocabulary import DCTERMS, ELI, KG, RDF, RDFS, SCHEMA, SKOS, XSD, mint, mint_span, sha256
from tests.benchmarks.comparison import Comparison, median, p95
from tests.benchmarks.search import REQUESTS, SCRIPT, WARM_UP, cached, country, processor_ms, words

UNITS_EACH = 50
CONCEPTS = 500
MENTIONED = 5
"""One passage in so many mentions a concept."""
SEARCH_LIMIT_MS = 250.0
HOME_LIMIT_MS = 100.0
READER_LIMIT_MS = 150.0
SIZE_LIMIT_KB = 60.0
PARTIES = 6
TOWNS = 40

About = list[tuple[NamedNode, NamedNode | Literal]]


def graphs(passages: int) -> Iterator[tuple[NamedNode, list[Quad]]]:
    """Yield made-up documents of each domain as their graphs, with the places, towns, parties and concepts."""
    vocabulary, weights = words()
    chance = random.Random(12)
    yield from _shared()
    for number in range(max(4, passages // UNITS_EACH)):
        domain = ("climate", "hansard", "zoning", "files")[number % 4]
        graph, document, about, unit_of, kind = _document(domain, number)
        quads = [Quad(document, name, value, graph) for name, value in about]
        derived = mint("graph", "der", "mentions", domain, f"made-{number}")
        mentions: list[Quad] = []
        for position in range(UNITS_EACH):
            text = " ".join(chance.choices(vocabulary, cum_weights=weights, k=40))
            unit = unit_of(position, len(text))
            said: About = [
                (RDF.type, kind),
                (DCTERMS.isPartOf, document),
                (SCHEMA.position, Literal(position)),
                (SCHEMA.text, Literal(text)),
                (KG.textSha256, Literal(sha256(text))),
            ]
            if domain == "zoning":
                said += [(DCTERMS.title, Literal(f"Section {number}.{position}")), *_town(number)]
            quads += [Quad(unit, name, value, graph) for name, value in said]
            if position % MENTIONED == 0:
                concept = mint("concept", f"Q{int(CONCEPTS * chance.random() ** 2) + 1}")
                mentions.append(Quad(unit, KG.mentions, concept, derived))
        yield graph, quads
        yield derived, mentions


def _document(
    domain: str, number: int
) -> tuple[NamedNode, NamedNode, About, Callable[[int, int], NamedNode], NamedNode]:
    """Return the graph, IRI and properties of a document, the maker of its units' IRIs, and their class."""
    day = Literal(f"{1990 + number % 35}-0{number % 9 + 1}-11", datatype=XSD.date)
    graph = mint("graph", "src", domain, f"made-{number}")
    title = (DCTERMS.title, Literal(f"Measure {number} of {country(number)}"))
    if domain == "climate":
        slug = f"made-{number}"
        document = mint("document", slug)
        about: About = [
            (RDF.type, KG.PolicyDocument), title, (KG.slug, Literal(slug)), (ELI.date_document, day),
            (KG.corpusType, mint("code", "corpusType", "Laws and Policies")),
            (KG.jurisdiction, mint("place", country(number))), (SCHEMA.inLanguage, Literal("en")),
        ]  # fmt: skip
        return graph, document, about, lambda position, _: mint("passage", slug, str(position)), KG.Passage
    if domain == "hansard":
        document = mint("speech", f"made-{number}")
        about = [
            (RDF.type, KG.Speech), title, (DCTERMS.date, day),
            (KG.party, mint("code", "party", f"p{number % PARTIES}")),
            (KG.chamber, mint("code", "chamber", "au-senate")), (KG.jurisdiction, mint("place", "AUS")),
            (KG.speakerAsRecorded, Literal(f"Senator {number % 90}")), (SCHEMA.inLanguage, Literal("en-AU")),
        ]  # fmt: skip
        return graph, document, about, lambda at, size: mint_span(document, at * 1_000, at * 1_000 + size), KG.Chunk
    if domain == "zoning":
        document = mint("section", f"us-ut-town{number % TOWNS}", str(number))
        about = [(RDF.type, KG.CodeSection), title, *_town(number)]
        key = f"us-ut-town{number % TOWNS}"
        return graph, document, about, lambda position, _: mint("section", key, f"{number}.{position}"), KG.CodeSection
    document = mint("file", "made", f"note-{number}.md")
    about = [
        (RDF.type, KG.File), title, (KG.collection, Literal("made")), (KG.path, Literal(f"note-{number}.md")),
        (SCHEMA.inLanguage, Literal("en")),
    ]  # fmt: skip
    return graph, document, about, lambda at, size: mint_span(document, at * 1_000, at * 1_000 + size), KG.Chunk


def _town(number: int) -> About:
    return [(KG.jurisdiction, mint("municipality", f"us-ut-town{number % TOWNS}"))]


def _shared() -> Iterator[tuple[NamedNode, list[Quad]]]:
    """Yield the graphs of places, towns, parties and concepts."""
    about: dict[NamedNode, About] = {}
    for code in {country(number) for number in range(2_000)} | {"AUS"}:
        about[mint("place", code)] = [(RDF.type, KG.Place), (SKOS.notation, Literal(code))]
    for number in range(TOWNS):
        about[mint("municipality", f"us-ut-town{number}")] = [
            (RDF.type, KG.Municipality),
            (SKOS.prefLabel, Literal(f"Town {number}")),
            (KG.within, mint("place", "US-UT")),
        ]
    for number in range(PARTIES):
        about[mint("code", "party", f"p{number}")] = [(SKOS.prefLabel, Literal(f"Party {number}"))]
    for number in range(1, CONCEPTS + 1):
        label = Literal(f"concept {number}", language="en")
        about[mint("concept", f"Q{number}")] = [(RDF.type, SKOS.Concept), (SKOS.prefLabel, label), (RDFS.label, label)]
    for node, said in about.items():
        graph = NamedNode(
            node.value.replace("/id/", "/graph/ref/made/").replace("cpr://", mint("graph", "ref").value + "/")
        )
        yield graph, [Quad(node, name, value, graph) for name, value in said]


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the graph unless it is there, serve it, request the pages, and compare."""
    passages = int(arguments[0]) if arguments else 100_000
    EdgeIndex.command = (*SCRIPT, "index")
    folder = cached(passages, graphs, Path(__file__))
    with subprocess.Popen([*SCRIPT, "serve", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            times, worked, sizes = measure(url, server.pid, passages)
        finally:
            server.terminate()
    tool = times["tool"]
    count = f"{passages:,} passages"
    limits = {
        "search": SEARCH_LIMIT_MS,
        "filtered": SEARCH_LIMIT_MS,
        "filters": SEARCH_LIMIT_MS,
        "home": HOME_LIMIT_MS,
        "reader": READER_LIMIT_MS,
    }
    titles = {
        "search": f"search page of {count}, with facets",
        "filtered": "search page, a domain and a place",
        "filters": "search page, filters alone",
        "home": "start page",
        "reader": "a passage in its document",
    }
    yield Comparison("the tool search, 20 results: p95", p95(tool), None, "ms")
    for name, title in titles.items():
        yield Comparison(f"{title}: median", median(times[name]), median(tool), "ms")
        yield Comparison.at_most(f"{title}: p95", p95(times[name]), "ms", limits[name], p95(tool))
        yield Comparison(f"{title}: p95 of processor time", p95(worked[name]), p95(worked["tool"]), "ms")
        yield Comparison.at_most(f"{title}: largest, with its style, compressed", sizes[name], "kB", SIZE_LIMIT_KB)


def measure(
    url: str, pid: int, passages: int
) -> tuple[dict[str, list[float]], dict[str, list[float]], dict[str, float]]:
    """Request the pages in turns. Return sorted times and processor times in ms, and the largest sizes in kB."""
    vocabulary, _ = words()
    chance = random.Random(13)
    documents = max(4, passages // UNITS_EACH)
    queries = [" ".join(chance.sample(vocabulary[:2_000], 4)) for _ in range(3 * (WARM_UP + REQUESTS))]

    def passage(number: int) -> str:
        document = number * 37 % documents // 4 * 4
        return (
            f"/passage/{quote(mint('passage', f'made-{document}', str(number % UNITS_EACH)).value, safe='')}?span=0-9"
        )

    pages: dict[str, Callable[[int], str]] = {
        "search": lambda number: "/search?" + urlencode({"q": queries[3 * number]}),
        "filtered": lambda number: (
            "/search?" + urlencode({"q": queries[3 * number + 1], "domain": "climate", "place": country(number * 4)})
        ),
        "filters": lambda number: "/search?" + urlencode({"domain": "parliament", "year": 1990 + number % 35}),
        "home": lambda number: "/",
        "reader": passage,
    }
    times: dict[str, list[float]] = {kind: [] for kind in (*pages, "tool")}
    worked: dict[str, list[float]] = {kind: [] for kind in (*pages, "tool")}
    sizes: dict[str, float] = dict.fromkeys(pages, 0.0)
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    style = len(_get(connection, "/static/style.css"))
    for number in range(WARM_UP + REQUESTS):
        for kind, address_of in pages.items():
            before, began = processor_ms(pid), time.perf_counter()
            body = _get(connection, address_of(number))
            times[kind].append((time.perf_counter() - began) * 1_000)
            worked[kind].append(processor_ms(pid) - before)
            sizes[kind] = max(sizes[kind], (len(body) + style) / 1_000)
        before, began = processor_ms(pid), time.perf_counter()
        arguments = json.dumps({"query": queries[3 * number + 2], "limit": 20})
        connection.request("POST", "/tools/search", arguments, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"search failed: {content.decode()[:300]}")
        times["tool"].append((time.perf_counter() - began) * 1_000)
        worked["tool"].append(processor_ms(pid) - before)
    connection.close()
    first, second = ({kind: sorted(own[WARM_UP:]) for kind, own in each.items()} for each in (times, worked))
    return first, second, sizes


def _get(connection: http.client.HTTPConnection, path: str) -> bytes:
    """Request a page as a browser does, and return the bytes that came."""
    connection.request("GET", path, headers={"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        text = gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body
        raise RuntimeError(f"{path} failed with {answer.status}: {text.decode()[:600]}")
    return body
