"""The Service Description: what GET on the endpoint says of it. The manifest only names these tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse

from tests.conformance.endpoint import Served
from tests.conformance.expectations import cases, judge
from tests.conformance.manifest import RDF, Test

SD = "http://www.w3.org/ns/sparql-service-description#"
TYPE = NamedNode(RDF + "type")
SCHEMA: dict[str, tuple[str | None, str | None]] = {
    "endpoint": ("Service", None),
    "feature": ("Service", None),
    "defaultEntailmentRegime": ("Service", None),
    "defaultSupportedEntailmentProfile": ("Service", None),
    "extensionFunction": ("Service", "Function"),
    "extensionAggregate": ("Service", "Aggregate"),
    "languageExtension": ("Service", None),
    "supportedLanguage": ("Service", None),
    "propertyFeature": ("Service", None),
    "defaultDataset": ("Service", "Dataset"),
    "availableGraphs": ("Service", "GraphCollection"),
    "resultFormat": ("Service", None),
    "inputFormat": ("Service", None),
    "defaultGraph": ("Dataset", "Graph"),
    "namedGraph": ("Dataset", "NamedGraph"),
    "name": ("NamedGraph", None),
    "graph": ("NamedGraph", "Graph"),
    "entailmentRegime": ("NamedGraph", None),
    "supportedEntailmentProfile": ("NamedGraph", None),
}
"""Each property of the vocabulary with the class of its subjects and, if that has to be said, of its objects
(https://www.w3.org/TR/sparql11-service-description/#vocab)."""


def described(served: Served) -> list[Quad]:
    response = served.client.get("/sparql", headers={"Accept": "text/turtle"})
    assert response.status_code == 200
    media_type = response.headers["content-type"].partition(";")[0]
    return list(parse(response.content, format=RdfFormat.from_media_type(media_type)))


def returns_rdf(served: Served) -> bool:
    return len(described(served)) > 0


def has_the_endpoint(served: Served) -> bool:
    endpoints = [quad for quad in described(served) if quad.predicate == NamedNode(SD + "endpoint")]
    return [quad.object for quad in endpoints] == [NamedNode(f"{str(served.client.base_url).rstrip('/')}/sparql")]


def conforms_to_the_schema(served: Served) -> bool:
    quads = described(served)
    types = {(quad.subject, quad.object) for quad in quads if quad.predicate == TYPE}
    services = [subject for subject, kind in types if kind == NamedNode(SD + "Service")]
    ours = [quad for quad in quads if quad.predicate.value.startswith(SD)]
    for quad in ours:
        domain, range_ = SCHEMA[quad.predicate.value.removeprefix(SD)]
        if isinstance(quad.object, Literal):
            return False
        if domain is not None and (quad.subject, NamedNode(SD + domain)) not in types:
            return False
        if range_ is not None and (quad.object, NamedNode(SD + range_)) not in types:
            return False
        if range_ is None and isinstance(quad.object, BlankNode):
            return False
    return len(services) > 0 and len(ours) > 0


CHECKS: dict[str, Callable[[Served], bool]] = {
    "returns-rdf": returns_rdf,
    "has-endpoint-triple": has_the_endpoint,
    "conforms-to-schema": conforms_to_the_schema,
}


@pytest.mark.parametrize("test", cases("SPARQL 1.1 (2013) Service Description", "SPARQL 1.1 Service Description"))
def test_the_endpoint_describes_itself(served: Served, test: Test) -> None:
    judge(test, lambda: CHECKS[test.iri.rpartition("#")[2]](served))
