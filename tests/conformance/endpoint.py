"""How a test is put to the endpoint over HTTP, and how the same is put to the engine alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pyoxigraph
from pyoxigraph import Quad, QueryBoolean, QueryResultsFormat, QuerySolutions, parse

from tests.conformance import results
from tests.conformance.manifest import FORMATS, Data, Test, has_relative_iri, text_of
from tests.conformance.plain_store import PlainStore
from tests.conformance.results import Outcome

ENGINE_ERRORS = (SyntaxError, ValueError, RuntimeError, OSError)
BASE_IRI = "http://www.example/sparql"
"""What the endpoint resolves relative IRIs against."""

ALL_QUADS = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
_ACCEPT = {
    ".srx": "application/sparql-results+xml",
    ".srj": "application/sparql-results+json",
    ".tsv": "text/tab-separated-values",
    ".csv": "text/csv",
    ".ttl": "text/turtle, application/sparql-results+json;q=0.5",
    ".nt": "application/n-triples",
    ".rdf": "application/rdf+xml, application/sparql-results+xml;q=0.5",
}


class NotAnsweredError(Exception):
    """The endpoint, or the engine, refused what it was sent; `code` is the stable name of the error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.is_of_evaluation = message.lower().startswith(
            ("the query cannot be evaluated", "the update cannot be run")
        )
        """Whether what was sent is well formed, and failed over the dataset at hand."""


@dataclass
class Served:
    """The endpoint, and the dataset behind it."""

    store: PlainStore
    client: httpx.Client
    loaded: object = field(default=None)

    def load(self, data: Data, base: str) -> None:
        """Make the dataset what the files hold."""
        if data == self.loaded:
            return
        self.loaded = None
        self.store.replace(dataset(data, base), [graph for graph, _ in data if graph is not None])
        self.loaded = data

    def query(self, text: str, accept: str) -> httpx.Response:
        """Send a query as it is."""
        headers = {"Content-Type": "application/sparql-query", "Accept": accept}
        return self.client.post("/sparql", content=text.encode(), headers=headers)

    def update(self, text: str) -> httpx.Response:
        """Send an update as it is."""
        self.loaded = None
        return self.client.post("/sparql", content=text.encode(), headers={"Content-Type": "application/sparql-update"})

    def quads(self) -> list[Quad]:
        """All that the dataset holds, asked over HTTP; empty graphs leave no trace."""
        response = self.query(ALL_QUADS, "application/sparql-results+json")
        check(response)
        found = results.parse_results(response.content, QueryResultsFormat.JSON)
        assert isinstance(found, results.Table)
        return [Quad(row["s"], row["p"], row["o"], row.get("g")) for row in found.rows]

    def answer(self, test: Test, query: Path, wanted: Path) -> Outcome:
        """Run a query test; raises NotAnsweredError."""
        response = self.query(with_base(query, test.base), _ACCEPT[wanted.suffix])
        check(response)
        return outcome_of(response, test.base)


def check(response: httpx.Response) -> None:
    """Raise NotAnsweredError for any other answer than a success."""
    if not response.is_success:
        raise NotAnsweredError(response.json()["code"], response.json()["message"])


def outcome_of(response: httpx.Response, base: str) -> Outcome:
    """Read an answer by its Content-Type."""
    media_type = response.headers["content-type"].partition(";")[0]
    if media_type == "text/csv":
        return results.parse_csv(response.content)
    if (solutions := QueryResultsFormat.from_media_type(media_type)) is not None:
        return results.parse_results(response.content, solutions)
    graph = pyoxigraph.RdfFormat.from_media_type(media_type)
    return list(parse(response.content, format=graph, base_iri=base))


def with_base(path: Path, base: str) -> str:
    """The text of a query or update; where it has relative IRIs, with the base that its file gives them."""
    text = text_of(path)
    return f"BASE <{base}{path.name}>\n{text}" if has_relative_iri(text) else text


def dataset(data: Data, base: str) -> list[Quad]:
    """The quads of the files of a dataset; those of a file without graphs in the graph that it is listed for."""
    return [
        Quad(quad.subject, quad.predicate, quad.object, graph) if graph else quad
        for graph, path in data
        for quad in parsed(path, base + path.name)
    ]


@lru_cache(maxsize=256)
def parsed(path: Path, iri: str) -> tuple[Quad, ...]:
    """The quads of a file; blank nodes of different files never meet."""
    return tuple(parse(path=path, format=FORMATS[path.suffix], base_iri=iri, rename_blank_nodes=True))


class Engine:
    """The same tests in pyoxigraph alone, with nothing of ours around it."""

    def __init__(self, data: Data, base: str) -> None:
        self.store = pyoxigraph.Store()
        self.store.extend(dataset(data, base))
        for graph, _ in data:
            if graph is not None:
                self.store.add_graph(graph)

    def answer(self, query: str, wanted: Path | None) -> Outcome:
        """Run a query; raises SyntaxError and what else the engine raises."""
        found: Any = self.store.query(query)
        if isinstance(found, QueryBoolean):
            return bool(found)
        if isinstance(found, QuerySolutions):
            if wanted is not None and wanted.suffix == ".csv":
                return results.parse_csv(found.serialize(format=QueryResultsFormat.CSV) or b"")
            return results.table(found)
        return [Quad(triple.subject, triple.predicate, triple.object) for triple in found]

    def update(self, update: str) -> None:
        """Run an update."""
        self.store.update(update, base_iri=BASE_IRI)
