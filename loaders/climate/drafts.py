"""Drafts of climate policy documents: their properties, families, places, dates and codes, from their fields."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache, lru_cache
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.text import quoted
from kg.vocabulary import DCTERMS, ELI, KG, PROV, RDF, SCHEMA, SKOS, XSD, mint
from loaders.climate.layouts import Fields
from loaders.model import Origin, Property, SourceDocument, TextUnit
from loaders.readers.cells import parse_items, parse_web_address, present, quote
from loaders.readers.locations import File
from loaders.readers.places import build_place_graphs
from loaders.readers.tables import BodyRow

DOMAIN: Final = "climate"

TOPICS: Final = {
    "sectors": ("sector", KG.sector),
    "responses": ("topic", KG.response),
    "keywords": ("keyword", KG.keyword),
    "instruments": ("instrument", KG.instrument),
    "hazards": ("hazard", KG.hazard),
    "frameworks": ("framework", KG.framework),
}
"""The fields of the topics of a document, each with its name in the field ``metadata`` and its property."""

CORPUS_TYPES: Final = (
    "Executive", "Intl. agreements", "Law", "Laws and Policies", "Legislative", "Litigation", "MCF", "Policy",
    "Reports", "UNFCCC",
)  # fmt: skip
BLOCK_TYPES: Final = (
    "Ambiguous", "Document Header", "Figure", "Google Text Block", "Inferred from gaps", "List", "Table", "TableCell",
    "Text", "Title", "footnote", "pageFooter", "pageHeader", "pageNumber", "sectionHeading", "title",
)  # fmt: skip
"""The codes that the ontology describes. Any other code has a graph, shared by the records that use it."""


def parse_object(text: str) -> dict[str, Any] | None:
    """Parse an object in JSON, or as printed by Python; an array of members with ``name`` and ``value`` as an object.

    None for other text.
    """
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    except RecursionError:
        return None
    if isinstance(found, list) and all(isinstance(each, dict) and "name" in each for each in found):
        members: dict[str, Any] = defaultdict(list)
        for each in found:
            members[str(each["name"]).removeprefix("family.")].append(each.get("value"))
        return members
    return found if isinstance(found, dict) else None


@lru_cache(maxsize=4096)
def parse_place_codes(text: str | None) -> tuple[str, ...]:
    """Parse a list of place codes, or an object with a code as ``iso``. Raises RecordError for other text."""
    if text is not None and text.lstrip().startswith("{"):
        described = parse_object(text)
        if described is None:
            raise RecordError("Invalid geography. Valid: a code, a list of codes, an object with 'iso'.")
        code = described.get("iso")
        return (str(code),) if present(code and str(code)) else ()
    return tuple(dict.fromkeys(code.upper() if len(code) <= 3 else code for code in parse_items(text)))


def parse_date(text: str) -> str | None:
    """Parse an ISO 8601 date or time, or ``DD/MM/YYYY``, into an ISO 8601 date, None for other text."""
    if match := re.match(r"(\d{4})-(\d{2})-(\d{2})(?!\d)", text.strip()):
        year, month, day = match.groups()
    elif match := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text.strip()):
        day, month, year = match.groups()
    else:
        return None
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


class Draft:
    """Builder of a document: its properties, shared graphs, warnings, and the hash of its input."""

    def __init__(self, head: Fields, slug: str, version: str | None) -> None:
        self.head = head
        self.slug = slug
        self.version = version
        self.iri = mint("document", slug, lang=version)
        self.properties: list[Property] = []
        self.shared: dict[NamedNode, Sequence[Quad]] = {}
        self.warnings: list[str] = []
        self.hash = hashlib.sha256()

    def add_to_hash(self, *values: str | int | None) -> None:
        """Add values to the hash, each with its length, so that different sequences have different hashes."""
        parts = [b"-" if value is None else str(value).encode() for value in values]
        self.hash.update(b"".join(b"%d:" % len(part) + part for part in parts) + b"\n")

    def add_property(self, predicate: NamedNode, value: NamedNode | str) -> None:
        """Add a property; a string is a literal."""
        self.properties.append((predicate, Literal(value) if isinstance(value, str) else value))

    def warn(self, text: str) -> None:
        """Add a warning about the document."""
        self.warnings.append(f"{self.slug}: {text}")

    def get_title(self) -> str | None:
        """Get the title; add a warning if there is none."""
        title = present(self.head["title"])
        if title is None:
            self.warn("has no title")
        return title

    def add_family(self, slug: str, title: str | None) -> None:
        """Add the family, with its graph, which its documents share."""
        iri, graph = mint("family", slug), mint("graph", "ref", "family", slug)
        self.add_property(ELI.is_member_of, iri)
        self.shared[graph] = [
            Quad(iri, RDF.type, KG.PolicyFamily, graph),
            *([Quad(iri, DCTERMS.title, Literal(title), graph)] if title else []),
        ]

    def add_places(self) -> tuple[str, ...]:
        """Add the places, and return their codes."""
        name = present(self.head["geography_name"])
        if self.head["geography_name"] is not None and name is None:
            self.warn(f"the name of the geography is missing ({quoted(self.head['geography_name'])})")
        codes = parse_place_codes(self.head["geographies"])
        if not codes:
            self.warn("has no geography")
        for code in codes:
            self.add_property(KG.jurisdiction, mint("place", code))
            self.shared |= build_place_graphs(code, name if len(codes) == 1 else None)
        return codes

    def add_languages(self, codes: Sequence[str]) -> None:
        """Add the languages of the document, by their tags (BCP 47)."""
        for code in dict.fromkeys(codes):
            self.add_property(SCHEMA.inLanguage, code)
        if not codes:
            self.warn("has no language")

    def add_common_properties(self, site: str) -> None:
        """Add the properties of all layouts: slug, identifier, corpus type, date, description, source."""
        self.add_property(KG.slug, self.slug)
        if identifier := present(self.head["document_id"]):
            self.add_property(DCTERMS.identifier, identifier)
        if kind := present(self.head["corpus_type"]):
            concept, shared = _corpus_type(kind)
            self.add_property(KG.corpusType, concept)
            self.shared |= shared
        self._add_dates()
        if description := present(self.head["description"]):
            self.add_property(DCTERMS.description, description)
        if address := present(self.head["source_url"]):
            if found := parse_web_address(address, site):
                self.add_property(DCTERMS.source, NamedNode(found))
            else:
                self.warn(f"the source {quoted(address)} is not a web address")
        self._add_topics()

    def _add_dates(self) -> None:
        """Add the date of the document. Of a law that was changed later, the file has only the year of its passing."""
        day, year = present(self.head["date"]), present(self.head["year_passed"])
        parsed = parse_date(day) if day else None
        if day and parsed is None:
            self.warn(f"the date {quoted(day)} is not a date")
        if year and not re.fullmatch(r"[1-9]\d{3}", year):
            self.warn(f"the year of passing {quoted(year)} is not a year")
            year = None
        if parsed and year and parsed[:4] < year:
            self.warn(f"its date {parsed} is before the year of its passing, {year}")
            year = None
        is_changed = present(self.head["last_change"]) is not None or (parsed and year and parsed[:4] != year)
        if parsed and is_changed:
            self.properties.append((DCTERMS.modified, Literal(parsed, datatype=XSD.date)))
        if parsed and not is_changed:
            self.properties.append((ELI.date_document, Literal(parsed, datatype=XSD.date)))
        elif year:
            self.properties.append((ELI.date_document, Literal(year, datatype=XSD.gYear)))

    def _add_topics(self) -> None:
        """Add the topics that the publisher gives to the document, in its words."""
        stated: dict[str, Any] = {}
        if metadata := present(self.head["metadata"]):
            found = parse_object(metadata)
            if found is None:
                self.warn(f"the metadata {quote(metadata)} are not an object")
            stated = found or {}
        for field, (name, predicate) in TOPICS.items():
            of_object = stated.get(name)
            lists = of_object if isinstance(of_object, list) else [of_object]
            items = [*parse_items(self.head[field], ";"), *(item for item in lists if item is not None)]
            for item in dict.fromkeys(str(item).strip() for item in items):
                if item.startswith(("{", "[")):
                    self.warn(f"the {field} {quote(item)} is not a name")
                elif present(item):
                    self.add_property(predicate, item)

    def build_unit(self, index: int, text: str, kind: str | None, page: int | None, language: str | None) -> TextUnit:
        """Build the text unit of a passage, with its graph of a block type."""
        properties: list[Property] = []
        if kind is not None:
            concept, shared = _block_type(kind)
            properties.append((KG.blockType, concept))
            if shared:
                self.shared |= shared
        if page is not None:
            properties.append(_page(page))
        if self.version is not None:
            properties.append((PROV.wasDerivedFrom, mint("passage", self.slug, str(index))))
        return TextUnit(
            mint("passage", self.slug, str(index), lang=self.version),
            KG.Passage,
            index,
            text,
            self.iri,
            language,
            tuple(properties),
        )

    def build(
        self, title: str | None, units: Sequence[TextUnit], rows: Sequence[BodyRow], context: Sequence[Origin]
    ) -> SourceDocument:
        """Build the document from `rows`. Its families and places follow from `context` too."""
        # The hash is that of the statements, not of the cells: the same document in another layout is unchanged.
        self.add_to_hash(self.slug, self.version, title, *(str(each) for pair in self.properties for each in pair))
        for graph in sorted(self.shared, key=str):
            self.add_to_hash(*map(str, self.shared[graph]))
        return SourceDocument(
            DOMAIN,
            (self.slug,) if self.version is None else (self.slug, self.version),
            self.iri,
            title,
            (KG.PolicyDocument,),
            tuple(self.properties),
            tuple(units),
            build_origins(rows),
            self.hash.hexdigest(),
            self.shared,
            tuple(self.warnings),
            context,
        )


def build_origins(rows: Sequence[BodyRow]) -> tuple[Origin, ...]:
    """Build one origin for each run of rows of the same file, so that their rows are in unit order."""
    origins: list[tuple[File, list[int]]] = []
    for row in rows:
        if not origins or origins[-1][0] is not row.file:
            origins.append((row.file, []))
        origins[-1][1].append(row.row)
    return tuple(Origin(file.snapshot, tuple(numbers)) for file, numbers in origins)


@cache
def _block_type(code: str) -> tuple[NamedNode, Mapping[NamedNode, Sequence[Quad]]]:
    return _code("blockType", code, BLOCK_TYPES)


def _corpus_type(code: str) -> tuple[NamedNode, Mapping[NamedNode, Sequence[Quad]]]:
    known = {name.casefold(): name for name in CORPUS_TYPES}
    return _code("corpusType", known.get(code.casefold(), code), CORPUS_TYPES)


def _code(scheme: str, code: str, known: Sequence[str]) -> tuple[NamedNode, Mapping[NamedNode, Sequence[Quad]]]:
    concept = mint("code", scheme, code)
    if code in known:
        return concept, {}
    graph = mint("graph", "ref", "code", scheme, code)
    return concept, {
        graph: [
            Quad(concept, RDF.type, SKOS.Concept, graph),
            Quad(concept, SKOS.inScheme, mint("code", scheme), graph),
            Quad(concept, SKOS.notation, Literal(code), graph),
            Quad(concept, SKOS.prefLabel, Literal(code, language="en"), graph),
        ]
    }


@cache
def _page(number: int) -> Property:
    return KG.pageNumber, Literal(number)
