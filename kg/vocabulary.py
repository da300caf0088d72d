"""Namespaces, prefixes and identifiers. IRIs are only made here.

`mint` is injective per kind: different parts never give the same IRI. Oxigraph accepts every minted IRI, and it
survives an N-Quads round trip. Each part becomes one path segment: NFC, UTF-8, every byte outside RFC 3986's
*unreserved* set percent-encoded with upper-case hex.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import quote, unquote

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.text import quoted

BASE: Final = "https://w3id.org/quadcite/"


class Namespace:
    """A namespace whose attributes are its terms: ``KG.Passage`` is ``<https://w3id.org/quadcite/ns#Passage>``."""

    def __init__(self, iri: str) -> None:
        self.iri: Final = iri
        self._terms: dict[str, NamedNode] = {}

    def __getattr__(self, name: str) -> NamedNode:
        if name.startswith("__"):
            raise AttributeError(name)
        term = self.__dict__[name] = self[name]  # found as an ordinary attribute from now on, without this method
        return term

    def __getitem__(self, name: str) -> NamedNode:
        term = self._terms.get(name)
        if term is None:
            term = self._terms[name] = NamedNode(self.iri + name)
        return term


KG: Final = Namespace(BASE + "ns#")
KGS: Final = Namespace(BASE + "shapes#")
RDF: Final = Namespace("http://www.w3.org/1999/02/22-rdf-syntax-ns#")
RDFS: Final = Namespace("http://www.w3.org/2000/01/rdf-schema#")
OWL: Final = Namespace("http://www.w3.org/2002/07/owl#")
XSD: Final = Namespace("http://www.w3.org/2001/XMLSchema#")
SH: Final = Namespace("http://www.w3.org/ns/shacl#")
SKOS: Final = Namespace("http://www.w3.org/2004/02/skos/core#")
DCTERMS: Final = Namespace("http://purl.org/dc/terms/")
PROV: Final = Namespace("http://www.w3.org/ns/prov#")
OA: Final = Namespace("http://www.w3.org/ns/oa#")
ELI: Final = Namespace("http://data.europa.eu/eli/ontology#")
SCHEMA: Final = Namespace("http://schema.org/")
FOAF: Final = Namespace("http://xmlns.com/foaf/0.1/")
ORG: Final = Namespace("http://www.w3.org/ns/org#")
GEO: Final = Namespace("http://www.opengis.net/ont/geosparql#")
DCAT: Final = Namespace("http://www.w3.org/ns/dcat#")
VOID: Final = Namespace("http://rdfs.org/ns/void#")
SD: Final = Namespace("http://www.w3.org/ns/sparql-service-description#")
WIKIBASE: Final = Namespace("http://wikiba.se/ontology#")
ONTOLEX: Final = Namespace("http://www.w3.org/ns/lemon/ontolex#")
CC: Final = Namespace("http://creativecommons.org/ns#")
CITO: Final = Namespace("http://purl.org/spar/cito/")
QUDT: Final = Namespace("http://qudt.org/schema/qudt/")
UNIT: Final = Namespace("http://qudt.org/vocab/unit/")

_WIKIDATA: Final = "http://www.wikidata.org/"
WD: Final = Namespace(_WIKIDATA + "entity/")
WDS: Final = Namespace(_WIKIDATA + "entity/statement/")
WDV: Final = Namespace(_WIKIDATA + "value/")
WDREF: Final = Namespace(_WIKIDATA + "reference/")
WDT: Final = Namespace(_WIKIDATA + "prop/direct/")
WDTN: Final = Namespace(_WIKIDATA + "prop/direct-normalized/")
WDNO: Final = Namespace(_WIKIDATA + "prop/novalue/")
P: Final = Namespace(_WIKIDATA + "prop/")
PS: Final = Namespace(_WIKIDATA + "prop/statement/")
PSV: Final = Namespace(_WIKIDATA + "prop/statement/value/")
PSN: Final = Namespace(_WIKIDATA + "prop/statement/value-normalized/")
PQ: Final = Namespace(_WIKIDATA + "prop/qualifier/")
PQV: Final = Namespace(_WIKIDATA + "prop/qualifier/value/")
PQN: Final = Namespace(_WIKIDATA + "prop/qualifier/value-normalized/")
PR: Final = Namespace(_WIKIDATA + "prop/reference/")
PRV: Final = Namespace(_WIKIDATA + "prop/reference/value/")
PRN: Final = Namespace(_WIKIDATA + "prop/reference/value-normalized/")

PREFIXES: Final[dict[str, str]] = {
    "kg": KG.iri,
    "kgs": KGS.iri,
    "rdf": RDF.iri,
    "rdfs": RDFS.iri,
    "owl": OWL.iri,
    "xsd": XSD.iri,
    "sh": SH.iri,
    "skos": SKOS.iri,
    "dcterms": DCTERMS.iri,
    "prov": PROV.iri,
    "oa": OA.iri,
    "eli": ELI.iri,
    "schema": SCHEMA.iri,
    "foaf": FOAF.iri,
    "org": ORG.iri,
    "geo": GEO.iri,
    "dcat": DCAT.iri,
    "void": VOID.iri,
    "sd": SD.iri,
    "wikibase": WIKIBASE.iri,
    "ontolex": ONTOLEX.iri,
    "cc": CC.iri,
    "cito": CITO.iri,
    "qudt": QUDT.iri,
    "unit": UNIT.iri,
    "wd": WD.iri,
    "wds": WDS.iri,
    "wdv": WDV.iri,
    "wdref": WDREF.iri,
    "wdt": WDT.iri,
    "wdtn": WDTN.iri,
    "wdno": WDNO.iri,
    "p": P.iri,
    "ps": PS.iri,
    "psv": PSV.iri,
    "psn": PSN.iri,
    "pq": PQ.iri,
    "pqv": PQV.iri,
    "pqn": PQN.iri,
    "pr": PR.iri,
    "prv": PRV.iri,
    "prn": PRN.iri,
}
"""The prefixes that Quadcite writes and its endpoint predeclares; those of Wikidata are as on its own endpoint."""

PROV_GRAPH: Final = NamedNode(BASE + "graph/prov")
"""The graph with the provenance of every other graph."""
PROVENANCE_PROPERTIES: Final = (
    KG.cededBy, KG.cededTo, KG.configuration, KG.contentSha256, KG.datasetRevision, KG.generation, KG.givenTag,
    KG.graphCount, KG.location, KG.loader, KG.minHash, KG.nameCounts, KG.quadCount, KG.redacted, KG.removedCount,
    KG.retrievedAt, KG.sha256, KG.sourceRows, KG.sourceSha256, KG.threshold, KG.touched, PROV.endedAtTime, PROV.entity,
    PROV.invalidatedAtTime, PROV.qualifiedDerivation, PROV.specializationOf, PROV.startedAtTime, PROV.used,
    PROV.wasAssociatedWith, PROV.wasAttributedTo, PROV.wasDerivedFrom, PROV.wasGeneratedBy, RDF.object, RDF.predicate,
    RDF.subject, RDF.type, RDFS.label, SCHEMA.position, SCHEMA.softwareVersion,
)  # fmt: skip
"""The properties that may be in ``graph/prov``."""
SOURCED: Final = BASE + "graph/src/"
"""IRI prefix of graphs read from sources."""
EXTRACTED: Final = BASE + "graph/ext/"
"""IRI prefix of graphs extracted from texts."""
CITATIONS: Final = EXTRACTED + "citations/"
"""IRI prefix of the graphs of laws that the texts of each record cite, followed by the path of its graph."""
ENTITIES: Final = EXTRACTED + "entities/"
"""IRI prefix of the graphs of entities that the text of each file mentions, followed by the path of its graph."""
DERIVED: Final = BASE + "graph/der/"
"""IRI prefix of graphs derived from other graphs."""
GENERATED: Final = BASE + "graph/gen/"
"""IRI prefix of graphs written by models."""
INFERRED: Final = BASE + "graph/inf/"
"""IRI prefix of graphs that a rule infers from other graphs."""

TBOX_GRAPH: Final = NamedNode(BASE + "graph/tbox")
"""The graph with the ontology and its alignments."""
CODES_GRAPH: Final = NamedNode(BASE + "graph/ref/vocab")
"""The graph with the code lists and the labels of their codes."""
SHAPES_GRAPH: Final = NamedNode(BASE + "graph/shapes")
"""The graph with the shapes."""
CATALOG_GRAPH: Final = NamedNode(BASE + "graph/catalog")
"""The graph with the description of each dataset that was loaded."""
SUPERCLASS_GRAPH: Final = NamedNode(INFERRED + "superclass")
"""The graph with the superclasses of what other graphs give a class (`kg.provenance.superclasses`)."""

ABOUT_GRAPH: Final = NamedNode(INFERRED + "about")
"""The graph with the topics of text units (`kg.provenance.topics`)."""

PROPERTIES_GRAPH: Final = NamedNode(INFERRED + "wikidata-properties")
"""The graph with the names of properties of Wikidata that no source describes (`kg.provenance.property_names`)."""

SHIPPED_GRAPHS: Final = (TBOX_GRAPH, CODES_GRAPH, SHAPES_GRAPH, PROPERTIES_GRAPH)
"""The graphs with the files that ship with Quadcite."""
UNCOUNTED_GRAPHS: Final = frozenset({*SHIPPED_GRAPHS, CATALOG_GRAPH, SUPERCLASS_GRAPH, ABOUT_GRAPH})
"""The graphs that describe content or follow from it. Counts of content leave them out."""
UNCOUNTED_TERMS: Final = frozenset(
    {
        KG.about, KG.loader, DCAT.Dataset, DCAT.version, DCTERMS.issued, DCTERMS.modified, DCTERMS.title, DCTERMS.type,
        PROV.wasDerivedFrom, PROV.wasGeneratedBy, VOID.Dataset, VOID.documents, VOID.subset, VOID.triples,
    }
)  # fmt: skip
"""The classes and properties in the catalog and in the graph of topics."""

Kind = Literal[
    "document", "passage", "family", "concept",
    "place", "agent", "run", "source", "dataset", "snapshot", "derivation", "commit", "cession", "rule", "review",
    "graph", "code",
    "speech", "sitting", "debate", "division", "bill", "person", "party", "chamber", "organization", "electorate",
    "membership",
    "municipality", "section", "district", "landuse", "permission", "standard", "definition", "law", "statement",
    "summary", "reading",
    "file", "entity",
]  # fmt: skip

_NAMING: Final = "#named-in="
_INDEX: Final = re.compile("0|[1-9][0-9]*")
_ROOTS: Final[dict[str, str]] = {
    "document": "cpr://doc/",
    "family": "cpr://family/",
    "concept": "cpr://concept/",
    "place": BASE + "id/place/",
    "agent": BASE + "id/agent/",
    "run": BASE + "id/run/",
    "source": BASE + "id/source/",
    "dataset": BASE + "id/dataset/",
    "snapshot": BASE + "id/snapshot/",
    "derivation": BASE + "id/derivation/",
    "commit": BASE + "id/commit/",
    "cession": BASE + "id/cession/",
    "rule": BASE + "id/rule/",
    "review": BASE + "id/review/",
    "graph": BASE + "graph/",
    "code": BASE + "vocab/",
    "speech": BASE + "id/speech/",
    "sitting": BASE + "id/sitting/",
    "debate": BASE + "id/debate/",
    "division": BASE + "id/division/",
    "bill": BASE + "id/bill/",
    "person": BASE + "id/person/",
    "party": BASE + "id/party/",
    "chamber": BASE + "id/chamber/",
    "organization": BASE + "id/organization/",
    "electorate": BASE + "id/electorate/",
    "membership": BASE + "id/membership/",
    "municipality": BASE + "id/municipality/",
    "section": BASE + "id/section/",
    "district": BASE + "id/district/",
    "landuse": BASE + "id/landuse/",
    "permission": BASE + "id/permission/",
    "standard": BASE + "id/standard/",
    "definition": BASE + "id/definition/",
    "law": BASE + "id/law/",
    "statement": BASE + "id/st/",
    "summary": BASE + "id/summary/",
    "reading": BASE + "id/reading/",
    "file": BASE + "id/file/",
    "entity": BASE + "id/entity/",
}


@lru_cache(maxsize=8_192)
def segment(text: str) -> str:
    """Return `text` as one path segment: NFC, then percent-encoded (RFC 3986, section 2).

    Raises InvalidInputError for empty text and for lone surrogates, which have no UTF-8 encoding.
    """
    if not text:
        raise InvalidInputError("Empty part of an identifier. Every part needs at least one character.")
    try:
        return quote(unicodedata.normalize("NFC", text), safe="")
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"Invalid identifier part {quoted(text)}: lone surrogate (U+{ord(text[error.start]):04X})."
        ) from None


def mint(kind: Kind, *parts: str, lang: str | None = None) -> NamedNode:
    """Return the IRI of an entity.

    ``mint("document", slug)``, ``mint("passage", slug, index)``, ``mint("family", slug)``, ``mint("place", code)``,
    ``mint("graph", "src", "climate", slug)``, ``mint("code", scheme, code)`` and so on. `lang` (BCP 47) marks the
    translated copy of a document (``#lang=en``) or passage (``&lang=en``), the only kinds with languages.
    """
    if not parts:
        raise InvalidInputError(f"An identifier of kind {kind!r} needs at least one part.")
    if lang is not None and kind not in ("document", "passage"):
        raise InvalidInputError(f"Invalid language for the kind {kind!r}. Only documents and passages have one.")
    if kind == "passage":
        if len(parts) != 2 or not _INDEX.fullmatch(parts[1]):
            raise InvalidInputError(
                f"Invalid passage {quoted(parts)}. Expected a slug and a decimal index without leading zeros."
            )
        version = "" if lang is None else f"&lang={segment(lang)}"
        return NamedNode(f"cpr://doc/{segment(parts[0])}#p={parts[1]}{version}")
    version = "" if lang is None else f"#lang={segment(lang)}"
    return NamedNode(iri_prefix(kind) + "/".join(segment(part) for part in parts) + version)


def iri_prefix(kind: Kind) -> str:
    """Return the common prefix of the IRIs of a kind; passages have none."""
    root = _ROOTS.get(kind)
    if root is None:
        raise InvalidInputError(
            f"Unknown kind of identifier {kind!r}. Available: {', '.join(sorted({*_ROOTS, 'passage'}))}."
        )
    return root


def commit_iri(generation: int) -> NamedNode:
    """Return the IRI of the commit with this generation."""
    return mint("commit", str(generation))


def mint_span(unit: NamedNode, start: int, end: int) -> NamedNode:
    """Return the IRI of the characters `start` to `end` (exclusive) of a text unit (RFC 5147)."""
    return NamedNode(f"{unit.value}{'&' if '#' in unit.value else '#'}char={start},{end}")


def mint_claim(subject: NamedNode, predicate: NamedNode, value: NamedNode | Text, graph: NamedNode) -> NamedNode:
    """Return the IRI of the claim in `graph` that `subject` has this property."""
    return mint("statement", sha256(f"{subject} {predicate} {value} {graph} .\n")[:32])


def mint_naming(district: NamedNode, section: str) -> NamedNode:
    """Return the IRI of the claim that the section with the key `section` names `district`."""
    return NamedNode(f"{district.value}{_NAMING}{segment(section)}")


def get_named_district(naming: NamedNode) -> NamedNode | None:
    """Return the district that a claim names. None for an IRI of another form."""
    district, mark, _ = naming.value.partition(_NAMING)
    return NamedNode(district) if mark and district.startswith(iri_prefix("district")) else None


def mint_part(
    whole: NamedNode,
    kind: Literal["utterance", "vote", "text", "table", "note", "quantity", "scope", "district-list"],
    number: int,
) -> NamedNode:
    """Return the IRI of a numbered part of a record (zero-based): an utterance of a speech, a vote of a division,
    a procedural text of a sitting, a table, note, scope or list of districts of a section, the quantity of a standard.
    """
    return NamedNode(f"{whole.value}#{kind}={number}")


def mint_subsection(section: NamedNode, labels: Iterable[str]) -> NamedNode:
    """Return the IRI of a subsection by its labels from the outermost: (a)(1)(A) is ``#subsection=a.1.A``."""
    return NamedNode(f"{section.value}#subsection={'.'.join(segment(label) for label in labels)}")


def mint_mention(unit: NamedNode, start: int, end: int, thing: NamedNode) -> NamedNode:
    """Return the IRI of the mention of `thing` at these characters: the IRI of the span with the key of `thing`.

    The key of a climate concept is its QID. Any other key is the whole IRI, since entities of other Wikibases may have
    the same QID.
    """
    root = _ROOTS["concept"]
    own = thing.value.removeprefix(root) if thing.value.startswith(root) else ""
    key = own if own and not set(own) & set("/?#&") else quote(thing.value, safe="")
    return NamedNode(f"{mint_span(unit, start, end).value}&q={key}")


def parts_of(iri: str, root: str) -> tuple[str, ...]:
    """Return the parts that an IRI below `root` was minted from."""
    return tuple(map(unquote, iri.removeprefix(root).split("/")))


def slug_of(iri: str) -> str:
    """Return the slug that a ``cpr://doc/`` or ``cpr://family/`` IRI was minted from."""
    for root in ("cpr://doc/", "cpr://family/"):
        if iri.startswith(root):
            return unquote(iri[len(root) :].partition("#")[0])
    raise InvalidInputError(
        f"{quoted(iri)} is not a document, passage or family IRI (cpr://doc/..., cpr://family/...)."
    )


def prefixed_name(iri: str) -> str | None:
    """Return `iri` as a prefixed name, such as ``kg:Passage``, or None if no prefix of `PREFIXES` fits."""
    for prefix, namespace in PREFIXES.items():
        local = iri.removeprefix(namespace)
        if local != iri and local.replace("_", "").replace("-", "").isalnum():
            return f"{prefix}:{local}"
    return None


def curie(iri: str) -> str:
    """Return `iri` as a prefixed name, or in angle brackets if no prefix fits. Output for people, not for parsers."""
    return prefixed_name(iri) or f"<{iri}>"


def sha256(data: str | bytes) -> str:
    """Return the SHA-256 of `data` (text as UTF-8) as 64 lower-case hex digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
