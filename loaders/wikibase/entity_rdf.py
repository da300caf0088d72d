"""An entity as quads: the published Wikibase RDF model,
https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format.

Parts that need Wikibase's own configuration are left out: normalized values and links of external ids (``wdtn``,
``psn``, ``pqn``, ``prn``), the MathML of formulas (their TeX is kept), page properties, and the labels of entities
that are only referenced.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.text import quoted
from kg.vocabulary import BASE, CC, DCTERMS, ONTOLEX, OWL, PROV, RDF, RDFS, SCHEMA, SKOS, WIKIBASE, XSD, sha256
from kg.wikidata_properties import DATATYPES, OBJECTS, get_links, get_property_type
from loaders.wikibase.instances import Instance
from loaders.wikibase.languages import to_literal
from loaders.wikibase.values import Value, page_name, parse_value

GROUPS: Final = (
    "wikipedia", "wiktionary", "wikibooks", "wikinews", "wikiquote", "wikisource", "wikiversity", "wikivoyage",
)  # fmt: skip
_SINGLE: Final = {
    "commonswiki": ("https://commons.wikimedia.org/", "commons"),
    "specieswiki": ("https://species.wikimedia.org/", "species"),
    "metawiki": ("https://meta.wikimedia.org/", "meta"),
    "mediawikiwiki": ("https://www.mediawiki.org/", "mediawiki"),
    "wikidatawiki": ("https://www.wikidata.org/", "wikidata"),
    "wikimaniawiki": ("https://wikimania.wikimedia.org/", "wikimania"),
    "outreachwiki": ("https://outreach.wikimedia.org/", "outreach"),
    "sourceswiki": ("https://wikisource.org/", "sources"),
    "foundationwiki": ("https://foundation.wikimedia.org/", "foundation"),
    "incubatorwiki": ("https://incubator.wikimedia.org/", "incubator"),
    "wikifunctionswiki": ("https://www.wikifunctions.org/", "wikifunctions"),
}
_HOSTS: Final = {"be-x-old": "be-tarask"}
_SITE: Final = re.compile(rf"([a-z]+(?:_[a-z]+)*?)(wiki|{'|'.join(GROUPS[1:])})")


@dataclass(frozen=True, slots=True)
class Site:
    """A wiki: its address, its group, and its language code in MediaWiki."""

    home: str
    group: str
    language: str


@lru_cache(4096)
def site_of(site_id: str) -> Site | None:
    """Return the site with a global id such as ``enwiki``, or None if it is not in the Wikimedia family."""
    if site_id in _SINGLE:
        return Site(*_SINGLE[site_id], "en")
    match = _SITE.fullmatch(site_id)
    if match is None:
        return None
    language = match[1].replace("_", "-")
    group = "wikipedia" if match[2] == "wiki" else match[2]
    return Site(f"https://{_HOSTS.get(language, language)}.{group}.org/", group, language)


GENID: Final = BASE + ".well-known/genid/"
FORMAT_VERSION: Final = "1.0.0"
"""Version of the RDF mapping; part of the data."""

RANKS: Final = {
    "preferred": WIKIBASE.PreferredRank,
    "normal": WIKIBASE.NormalRank,
    "deprecated": WIKIBASE.DeprecatedRank,
}
_TYPES: Final = {
    "Q": ("item", (WIKIBASE.Item,)),
    "P": ("property", (WIKIBASE.Property,)),
    "L": ("lexeme", (WIKIBASE.Lexeme, ONTOLEX.LexicalEntry)),
    "F": ("form", (WIKIBASE.Form, ONTOLEX.Form)),
    "S": ("sense", (WIKIBASE.Sense, ONTOLEX.LexicalSense)),
    "M": ("mediainfo", (WIKIBASE.Mediainfo, SCHEMA.MediaObject)),
}
_ID: Final = re.compile(r"[QPM][1-9][0-9]*|L[1-9][0-9]*(-[FS][1-9][0-9]*)?")
_PARTS: Final = {"forms": "F", "senses": "S"}
_HASH: Final = re.compile(r"[0-9a-f]{40}")
_GUID: Final = re.compile(r"[A-Za-z][0-9]+(-[FS][0-9]+)?\$[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_PROPERTY: Final = re.compile(r"P[1-9][0-9]*")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)

_TYPE, _RANK, _STATEMENT_CLASS, _BEST = RDF.type, WIKIBASE.rank, WIKIBASE.Statement, WIKIBASE.BestRank
_DERIVED: Final = PROV.wasDerivedFrom

_LABEL: Final = (RDFS.label, SKOS.prefLabel, SCHEMA.name)
_CAPTION: Final = (RDFS.label, SCHEMA.caption)
_STATEMENT, _QUALIFIER, _REFERENCE = ("ps", "psv"), ("pq", "pqv"), ("pr", "prv")


@dataclass(slots=True)
class Entity:
    """An entity as quads: its own graph, and the graphs that it shares with others."""

    id: str
    graph: NamedNode
    quads: list[Quad] = field(default_factory=list)
    shared: dict[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    warnings: Counter[str] = field(default_factory=Counter)

    def say(self, subject: NamedNode, predicate: NamedNode, value: NamedNode | Literal) -> None:
        """Add a quad to the graph of the entity."""
        self.quads.append(Quad(subject, predicate, value, self.graph))

    def list_warnings(self) -> list[str]:
        """Return the warnings, each once."""
        return [f"{self.id}: {text}" + (f" ({n} times)" if n > 1 else "") for text, n in self.warnings.items()]


def kind_of(entity_id: str) -> str:
    """Return the letter for the type of an entity: Q, P, L, F (form), S (sense) or M."""
    return entity_id.rpartition("-")[2][0]


def types_of(entity_id: str) -> tuple[NamedNode, ...]:
    """Return the classes of an entity."""
    return _TYPES[kind_of(entity_id)][1]


def check_id(entity: Mapping[str, Any]) -> str:
    """Return the id of an entity if it agrees with its type. Raises RecordError otherwise."""
    found = entity.get("id") if isinstance(entity, dict) else entity
    if not isinstance(found, str) or not _ID.fullmatch(found):
        instead = "" if found is None else f", but {quoted(found)}"
        raise RecordError(f"missing entity id, such as Q42, P31, L7, L7-F1 or M7{instead}")
    expected, stated = _TYPES[kind_of(found)][0], entity.get("type", None)
    if stated is not None and stated != expected:
        raise RecordError(f"{found} has the type {quoted(stated)}, but its id is of type {quoted(expected)}")
    return found


def build_quads(instance: Instance, entity: Mapping[str, Any]) -> Entity:
    """Build the quads of one entity (for a lexeme: without its forms and senses, which are entities of their own).

    Raises RecordError if the JSON does not have Wikibase's form.
    """
    found = check_id(entity)
    try:
        return _Writer(instance, found, entity).written()
    except RecordError as error:
        raise RecordError(f"{found}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise RecordError(f"{found}: not a Wikibase entity: {_describe(error)}") from error


def _describe(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


class _Writer:
    def __init__(self, instance: Instance, entity_id: str, entity: Mapping[str, Any]) -> None:
        self.instance = instance
        self.entity = entity
        self.out = Entity(entity_id, instance.graph(entity_id))
        self.subject = instance.entity(entity_id)
        self.guids: set[str] = set()
        self.identifiers = 0

    def written(self) -> Entity:
        kind = kind_of(self.out.id)
        for each in _TYPES[kind][1]:
            self.out.say(self.subject, RDF.type, each)
        self.terms()
        if kind == "P":
            self.property()
        elif kind == "L":
            self.lexeme()
        elif kind in "FS":
            self.part(kind)
        if kind != "L" and (unread := [key for key in _PARTS if self.entity.get(key)]):
            self.out.warnings[f"only a lexeme has {' and '.join(unread)}; these are not read"] += 1
        count = 0
        for property_id, group in self.map("claims" if "claims" in self.entity else "statements").items():
            count += len(group)
            self.statements(property_id, group)
        links = self.map("sitelinks")
        for link in links.values():
            self.sitelink(link)
        if kind not in "FS":
            self.document(count, len(links))
        return self.out

    def map(self, key: str, within: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return an object of the entity. PHP writes an empty object as ``[]``; another value is an error."""
        value = (self.entity if within is None else within).get(key)
        if value is None:
            return {}
        if isinstance(value, list) and not value:
            self.out.warnings[f"{quoted(key)} is an empty list where an object is expected"] += 1
            return {}
        if not isinstance(value, dict):
            raise RecordError(f"{quoted(key)} must be an object, not {quoted(value)}")
        return value

    def document(self, statements: int, links: int) -> None:
        document, say, entity = self.instance.document(self.out.id), self.out.say, self.entity
        say(document, RDF.type, SCHEMA.Dataset)
        say(document, SCHEMA.about, self.subject)
        say(document, SCHEMA.softwareVersion, Literal(FORMAT_VERSION))
        if self.instance.license:
            say(document, CC.license, NamedNode(self.instance.license))
        if (revision := entity.get("lastrevid")) is not None:
            say(document, SCHEMA.version, Literal(int(revision)))
        if (modified := entity.get("modified")) is not None:
            if not _TIMESTAMP.fullmatch(modified) or not _is_time(modified):
                raise RecordError(f"`modified` is {quoted(modified)}. Valid: a time such as 2030-01-31T09:00:00Z.")
            say(document, SCHEMA.dateModified, Literal(modified, datatype=XSD.dateTime))
        say(document, WIKIBASE.statements, Literal(statements))
        if kind_of(self.out.id) == "Q":
            say(document, WIKIBASE.sitelinks, Literal(links))
        say(document, WIKIBASE.identifiers, Literal(self.identifiers))

    def text(self, value: Mapping[str, Any]) -> Literal:
        literal, warning = to_literal(value["value"], value["language"])
        if warning:
            self.out.warnings[warning] += 1
        return literal

    def terms(self) -> None:
        say, subject = self.out.say, self.subject
        for label in self.map("labels").values():
            if label.get("value"):
                literal = self.text(label)
                for predicate in _CAPTION if self.out.id[0] == "M" else _LABEL:
                    say(subject, predicate, literal)
        for description in self.map("descriptions").values():
            if description.get("value"):
                say(subject, SCHEMA.description, self.text(description))
        for aliases in self.map("aliases").values():
            for alias in aliases:
                say(subject, SKOS.altLabel, self.text(alias))

    def lexeme(self) -> None:
        say, subject = self.out.say, self.subject
        for lemma in self.map("lemmas").values():
            literal = self.text(lemma)
            say(subject, WIKIBASE.lemma, literal)
            say(subject, RDFS.label, literal)
        for key, predicate in (("language", DCTERMS.language), ("lexicalCategory", WIKIBASE.lexicalCategory)):
            if named := self.entity.get(key):
                say(subject, predicate, self.named(named))
        for key, predicate in (("forms", ONTOLEX.lexicalForm), ("senses", ONTOLEX.sense)):
            for part in self.entity.get(key) or ():
                part_id = check_id(part)
                if not part_id.startswith(f"{self.out.id}-{_PARTS[key]}"):
                    raise RecordError(f"{part_id} is listed in {key}, but its id is of another entity or type")
                say(subject, predicate, self.instance.entity(part_id))

    def part(self, kind: str) -> None:
        say, subject = self.out.say, self.subject
        key, predicate = ("representations", ONTOLEX.representation) if kind == "F" else ("glosses", SKOS.definition)
        for each in self.map(key).values():
            literal = self.text(each)
            say(subject, predicate, literal)
            say(subject, RDFS.label, literal)
        for feature in self.entity.get("grammaticalFeatures") or ():
            say(subject, WIKIBASE.grammaticalFeature, self.named(feature))

    def named(self, entity_id: Any) -> NamedNode:
        """Return the id of an entity that another one refers to."""
        return self.instance.entity(check_id({"id": entity_id}))

    def property(self) -> None:
        say, subject, instance, own = self.out.say, self.subject, self.instance, self.out.id
        datatype = self.entity.get("datatype")
        if not isinstance(datatype, str):
            raise RecordError("missing datatype of a property, such as wikibase-item or string")
        if datatype not in DATATYPES:
            self.out.warnings[f"the datatype {quoted(datatype)} is not known"] += 1
        say(subject, WIKIBASE.propertyType, get_property_type(datatype))
        simple = OWL.ObjectProperty if datatype in OBJECTS else OWL.DatatypeProperty
        kinds = {
            "directClaim": simple, "statementProperty": simple, "qualifier": simple, "reference": simple,
            "directClaimNormalized": OWL.ObjectProperty if datatype == "external-id" else OWL.DatatypeProperty,
            "novalue": OWL.Class,
        }  # fmt: skip
        for link, prefix in get_links(datatype).items():
            predicate = instance.predicate(prefix, own)
            say(subject, WIKIBASE[link], predicate)
            say(predicate, RDF.type, kinds.get(link, OWL.ObjectProperty))
        none, other = instance.predicate("wdno", own), restriction(instance, own)
        say(none, OWL.complementOf, other)
        say(other, RDF.type, OWL.Restriction)
        say(other, OWL.onProperty, instance.predicate("wdt", own))
        say(other, OWL.someValuesFrom, OWL.Thing)

    def statements(self, property_id: str, group: Sequence[Mapping[str, Any]]) -> None:
        ranks = {statement.get("rank", "normal") for statement in group}
        if unknown := ranks - RANKS.keys():
            raise RecordError(f"unknown rank {quoted(unknown.pop())}. Available: {', '.join(RANKS)}.")
        best = "preferred" if "preferred" in ranks else "normal"
        claim = self.instance.predicate("p", _property(property_id))
        for statement in group:
            guid = self.guid(statement)
            node, rank, snak = self.instance.statement(guid), statement.get("rank", "normal"), statement["mainsnak"]
            self.out.say(self.subject, claim, node)
            self.out.say(node, _TYPE, _STATEMENT_CLASS)
            self.out.say(node, _RANK, RANKS[rank])
            if snak["property"] != property_id:
                raise RecordError(f"a statement of {snak['property']} is listed under {property_id}")
            said = self.snak(node, snak, _STATEMENT)
            if rank == best:
                self.out.say(node, _TYPE, _BEST)
                direct = _TYPE if snak["snaktype"] == "novalue" else self.instance.predicate("wdt", property_id)
                self.out.say(self.subject, direct, said)
            if snak.get("datatype") == "external-id":
                self.identifiers += 1
            for qualifiers in self.map("qualifiers", statement).values():
                for qualifier in qualifiers:
                    self.snak(node, qualifier, _QUALIFIER)
            for reference in statement.get("references") or ():
                self.out.say(node, _DERIVED, self.reference(reference))

    def guid(self, statement: Mapping[str, Any]) -> str:
        """Return the id of a statement; derived from its content if it is missing or is that of another statement."""
        stated = statement.get("id")
        if isinstance(stated, str) and _GUID.fullmatch(stated) and stated not in self.guids:
            self.guids.add(stated)
            return stated
        said = repr(sorted((key, repr(value)) for key, value in statement.items() if key != "id"))
        copy = 0
        while (made := f"{self.out.id}${uuid.uuid5(uuid.NAMESPACE_URL, f'{self.subject.value} {said} {copy}')}") in (
            self.guids
        ):
            copy += 1
        self.guids.add(made)
        wrong = "without an id" if stated is None else f"with the id of another, {stated}"
        if stated is not None and stated not in self.guids:
            wrong = f"with the id {quoted(stated)}, which is not a GUID"
        self.out.warnings[f"a statement {wrong}, has an id derived from its content: {made}"] += 1
        return made

    def snak(
        self,
        subject: NamedNode,
        snak: Mapping[str, Any],
        prefixes: tuple[str, str],
        into: list[tuple[NamedNode, NamedNode, NamedNode | Literal]] | None = None,
    ) -> NamedNode | Literal:
        """Add the quads of a snak about `subject` and return its value; for no value, the class of subjects without
        one.
        """
        property_id = _property(snak["property"])
        kind = snak["snaktype"]
        said: NamedNode | Literal
        if kind == "value":
            try:
                value = parse_value(self.instance, snak.get("datatype"), snak["datavalue"])
            except RecordError as error:
                raise RecordError(f"{property_id}: {error}") from None
            predicate, said = self.instance.predicate(prefixes[0], property_id), value.term
            if value.warning:
                self.out.warnings[f"{property_id}: {value.warning}"] += 1
            if value.digest is not None:
                node = self.value_node(value.digest, value)
                deep = self.instance.predicate(prefixes[1], property_id)
                if into is None:
                    self.out.say(subject, deep, node)
                else:
                    into.append((subject, deep, node))
        elif kind == "somevalue":
            predicate, said = self.instance.predicate(prefixes[0], property_id), some_value(subject, property_id)
        elif kind == "novalue":
            predicate, said = RDF.type, self.instance.predicate("wdno", property_id)
        else:
            raise RecordError(f"{property_id}: unknown snak type {quoted(kind)}. Available: value, somevalue, novalue.")
        if into is None:
            self.out.say(subject, predicate, said)
        else:
            into.append((subject, predicate, said))
        return said

    def value_node(self, digest: str, value: Value) -> NamedNode:
        node, graph = self.instance.value(digest), self.instance.shared("value", digest)
        if graph not in self.out.shared:
            self.out.shared[graph] = [Quad(node, predicate, term, graph) for predicate, term in value.node]
        return node

    def reference(self, reference: Mapping[str, Any]) -> NamedNode:
        digest = reference.get("hash")
        if not isinstance(digest, str) or not _HASH.fullmatch(digest):
            digest = sha256(repr(reference["snaks"]))[:40]
        node, graph = self.instance.reference(digest), self.instance.shared("reference", digest)
        if graph not in self.out.shared:
            said: list[tuple[NamedNode, NamedNode, NamedNode | Literal]] = [(node, RDF.type, WIKIBASE.Reference)]
            for snaks in self.map("snaks", reference).values():
                for snak in snaks:
                    self.snak(node, snak, _REFERENCE, said)
            self.out.shared[graph] = [Quad(*each, graph) for each in said]
        return node

    def sitelink(self, link: Mapping[str, Any]) -> None:
        site = site_of(link["site"])
        if site is None and not link.get("url"):
            self.out.warnings[
                f"the address of the site {quoted(link['site'])} is not known; links to it are skipped"
            ] += 1
            return
        address = link.get("url") or f"{site.home if site else ''}wiki/{page_name(link['title'])}"
        article, say = NamedNode(address), self.out.say
        say(article, RDF.type, SCHEMA.Article)
        say(article, SCHEMA.about, self.subject)
        if site is not None:
            literal, _ = to_literal(link["title"], site.language)
            home = NamedNode(site.home)
            say(article, SCHEMA.inLanguage, Literal(literal.language or site.language))
            say(article, SCHEMA.isPartOf, home)
            say(article, SCHEMA.name, literal)
            graph = self.instance.shared("site", site.home)
            self.out.shared.setdefault(graph, [Quad(home, WIKIBASE.wikiGroup, Literal(site.group), graph)])
        for badge in link.get("badges") or ():
            say(article, WIKIBASE.badge, self.named(badge))


@lru_cache(65_536)
def _property(text: str) -> str:
    if not _PROPERTY.fullmatch(text):
        raise RecordError(f"{quoted(text)} is not the id of a property, such as P31")
    return text


def some_value(subject: NamedNode, property_id: str) -> NamedNode:
    """Return the node of an unknown value: Wikibase's blank node, named by its position."""
    return NamedNode(GENID + sha256(f"{subject.value} {property_id}")[:32])


def restriction(instance: Instance, property_id: str) -> NamedNode:
    """Return the class of subjects with a property, and its complement."""
    return some_value(instance.predicate("wdno", property_id), property_id)


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def parts(entity: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the forms and senses of a lexeme, which are entities of their own."""
    for key in _PARTS if kind_of(check_id(entity)) == "L" else ():
        yield from entity.get(key) or ()
