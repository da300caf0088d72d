"""Claims of Wikibase entities: value, rank, qualifiers, references and GUID, from the statements in the store.

`load_entities` is the one place where claims are read. It answers for each id whether the entity is described here,
where its claims come from (``local``: loaded from files; ``remote``: stored from the answer of another server), and
when they were retrieved.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from pydantic import Field
from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.calendar_dates import DAY, PRECISIONS, YEAR, read_time
from kg.retrieval.evidence import Descriptions, describe
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term, batched, preference, term_text
from kg.tools.concepts.statement_properties import direct_start, property_labels, wikibase_of
from kg.tools.wikidata.entity_ids import id_of, show, to_iri
from kg.tools.wikidata.reservations import find_reservation
from kg.vocabulary import GEO, KG, OWL, PROV, RDF, RDFS, SCHEMA, SOURCED, WIKIBASE, XSD

REMOTE_GRAPHS: Final = f"{SOURCED}wikibase-remote/"
"""The graphs of entities that were stored from the answer of another server."""
ENTITIES_AT_ONCE: Final = 50
"""Maximum number of entities whose claims are read in one call."""
_AT_ONCE: Final = 500
_REDIRECTS: Final = 3
_LABELS_AT_ONCE: Final = 200

Origin = Literal["local", "remote"]
Rank = Literal["preferred", "normal", "deprecated"]
ValueType = Literal["entity", "text", "time", "quantity", "coordinates", "link", "somevalue", "novalue"]

RANKS: Final[Mapping[str, Rank]] = {
    WIKIBASE.PreferredRank.value: "preferred",
    WIKIBASE.NormalRank.value: "normal",
    WIKIBASE.DeprecatedRank.value: "deprecated",
}
_UNITLESS: Final = "Q199"
_STATEMENT: Final = re.compile(r"([QqPpMm][0-9]+|[Ll][0-9]+(?:-[FS][0-9]+)?)-(.+)")
_PROP: Final = re.compile(r"(.*/)prop/(statement|qualifier|reference|novalue)/(?:(value)/)?(P[1-9][0-9]*)")

DESCRIBED: Final = """
SELECT ?entity ?property ?value ?graph WHERE {
  VALUES ?entity { $entities } GRAPH ?graph { ?entity ?property ?value }
  FILTER(?property IN (rdf:type, rdfs:label, schema:description, owl:sameAs))
}"""

STATEMENTS: Final = """
SELECT ?entity ?property ?statement ?rank ?graph WHERE {
  VALUES ?entity { $entities }
  GRAPH ?graph { ?entity ?property ?statement . ?statement wikibase:rank ?rank }
  FILTER(CONTAINS(STR(?property), "/prop/P"))
}"""

NODES: Final = """
SELECT ?node ?property ?value WHERE { VALUES ?node { $nodes } ?node ?property ?value }"""

LABELS: Final = """
SELECT ?entity ?label WHERE { VALUES ?entity { $entities } ?entity rdfs:label ?label }"""


class ClaimValue(Lean):
    """The value of a claim, qualifier or reference."""

    type: ValueType = Field(description="somevalue: there is one, unknown; novalue: there is none")
    value: str | None = Field(None, description="Id of an entity, text, time as far as it is known, amount, or link")
    label: str | None = Field(
        None, description="Label of the entity, if it is known; a time in words, with its calendar"
    )
    language: str | None = None
    unit: str | None = Field(None, description="Item of the unit of a quantity; absent without a unit")
    unit_label: str | None = None
    lower: str | None = None
    upper: str | None = None
    precision: str | None = Field(None, description="Precision of a time: day, month, year, decade ...")
    calendar: str | None = Field(None, description="julian, if the time is stated in that calendar, as value has it")


class Snak(Lean):
    """A property with a value: a qualifier, or a part of a reference."""

    property: str
    property_label: str | None = None
    value: ClaimValue


class Reference(Lean):
    """A reference: where the claim comes from, as Wikibase states it."""

    hash: str | None = Field(None, description="Absent in the text of a remote server")
    snaks: list[Snak]


class Claim(Lean):
    """A claim of an entity."""

    stated: ClassVar[frozenset[str]] = frozenset({"guid"})

    qid: str = Field(description="Id of the entity; the IRI for Wikibases other than Wikidata")
    guid: str | None = Field(description="GUID of the claim; null if a remote server does not state which it is")
    property: str
    property_label: str | None = None
    value: ClaimValue
    rank: Rank | None
    best: bool = Field(description="Whether it has the best rank of the claims of its property, and is not deprecated")
    qualifiers: list[Snak] = Field(default_factory=list)
    qualified: list[str] = Field(
        default_factory=list,
        description="Reservations that its qualifiers state: alleged, disputed, circa, true of a part only",
    )
    references: list[Reference] | None = Field(
        default_factory=list, description="Absent in results of verify_fact, whose metadata has them"
    )


@dataclass(slots=True)
class Entity:
    """An entity as the store describes it."""

    iri: str
    asked: str
    """The IRI that was asked for; another one if that was merged into this entity."""
    label: str | None = None
    description: str | None = None
    classes: set[str] = field(default_factory=set)
    """Classes of the Wikibase model: item, property, lexeme."""
    graph: str | None = None
    origin: Origin = "local"
    retrieved: str | None = None
    statements: list[Found] = field(default_factory=list)

    @property
    def redirected(self) -> bool:
        """Whether the id that was asked for was merged into another."""
        return self.iri != self.asked


@dataclass(frozen=True, slots=True)
class Found:
    """A statement, before its value is read."""

    entity: str
    pid: str
    iri: str
    rank: Rank
    best: bool
    graph: str

    @property
    def guid(self) -> str:
        """The GUID, which the IRI contains with a hyphen in place of the dollar sign."""
        name = id_of(self.iri)
        match = _STATEMENT.fullmatch(name)
        return f"{match[1]}${match[2]}" if match else name


def load_entities(reader: Reader, iris: Sequence[str], properties: Collection[str] | None = None) -> dict[str, Entity]:
    """Load the entities among `iris` that are described here, with their statements, by the IRI that was asked for.

    Redirects are followed. `properties` limits the statements to these ids. Statements are in the order of the number
    of the property, the best rank first.
    """
    found: dict[str, Entity] = {}
    targets = {iri: iri for iri in iris}
    for _ in range(_REDIRECTS):
        missing = {target for asked, target in targets.items() if asked not in found}
        described, moved = _describe(reader, missing)
        for asked, target in targets.items():
            if asked not in found and target in described:
                one = described[target]
                found[asked] = Entity(target, asked, one.label, one.description, one.classes, one.graph, one.origin)
        targets = {asked: moved[target] for asked, target in targets.items() if asked not in found and target in moved}
        if not targets:
            break
    _add_statements(reader, found.values(), properties)
    origins = describe(reader, (), {entity.graph for entity in found.values() if entity.graph}, rows=False)
    for entity in found.values():
        entity.retrieved = _find_retrieved(origins, entity.graph)
    return found


def _describe(reader: Reader, iris: Collection[str]) -> tuple[dict[str, Entity], dict[str, str]]:
    """Load labels, descriptions and classes of entities, and the targets of those that were merged."""
    if not iris:
        return {}, {}
    said: dict[str, dict[str, list[RdfLiteral]]] = defaultdict(lambda: defaultdict(list))
    found: dict[str, Entity] = {}
    moved: dict[str, str] = {}
    query = bind(DESCRIBED, entities=[NamedNode(iri) for iri in sorted(iris)])
    for row in reader.rows("the entities", query):
        iri, name, value, graph = iri_of(row["entity"]), iri_of(row["property"]), row["value"], iri_of(row["graph"])
        if name == OWL.sameAs.value:
            if isinstance(value, NamedNode) and wikibase_of(value.value) == wikibase_of(iri):
                moved[iri] = value.value
            continue
        entity = found.setdefault(iri, Entity(iri, iri))
        if isinstance(value, RdfLiteral):
            said[iri][name].append(value)
        elif isinstance(value, NamedNode):
            entity.classes.add(value.value)
        # The graph of the record, not one that is derived from it; a local one before a remote one.
        if graph.startswith(SOURCED) and (entity.graph is None or entity.graph.startswith(REMOTE_GRAPHS)):
            entity.graph = graph
            entity.origin = "remote" if graph.startswith(REMOTE_GRAPHS) else "local"
    for iri, entity in found.items():
        labels, descriptions = said[iri][RDFS.label.value], said[iri][SCHEMA.description.value]
        entity.label = min(labels, key=preference).value if labels else None
        entity.description = min(descriptions, key=preference).value if descriptions else None
    return {iri: entity for iri, entity in found.items() if entity.graph is not None}, moved


def _add_statements(reader: Reader, entities: Iterable[Entity], properties: Collection[str] | None) -> None:
    by_iri: dict[str, list[Entity]] = defaultdict(list)
    for entity in entities:
        by_iri[entity.iri].append(entity)
    if not by_iri:
        return
    rows = reader.rows("their statements", bind(STATEMENTS, entities=[NamedNode(iri) for iri in sorted(by_iri)]))
    groups: dict[tuple[str, str], dict[str, tuple[Rank, str]]] = defaultdict(dict)
    for row in rows:
        rank = RANKS.get(iri_of(row["rank"]))
        pid = id_of(iri_of(row["property"]))
        graph = iri_of(row["graph"])
        if rank is not None and graph.startswith(SOURCED) and (properties is None or pid in properties):
            groups[iri_of(row["entity"]), pid].setdefault(iri_of(row["statement"]), (rank, graph))
    order = {"preferred": 0, "normal": 1, "deprecated": 2}
    for (iri, pid), group in sorted(groups.items(), key=lambda item: (item[0][0], int(item[0][1][1:]))):
        best = "preferred" if any(rank == "preferred" for rank, _ in group.values()) else "normal"
        for statement, (rank, graph) in sorted(group.items(), key=lambda item: (order[item[1][0]], item[0])):
            for entity in by_iri[iri]:
                entity.statements.append(Found(iri, pid, statement, rank, rank == best, graph))


def _find_retrieved(origins: Descriptions, graph: str | None) -> str | None:
    """Find when the record of a graph was read last, as its provenance states it."""
    if graph is None:
        return None
    times = [
        time for snapshot in origins.all(graph, PROV.wasDerivedFrom) for time in origins.all(snapshot, KG.retrievedAt)
    ]
    return max(times, default=None)


def load_claims(reader: Reader, statements: Sequence[Found]) -> list[Claim]:
    """Load the value, qualifiers and references of statements, in their order, with labels as far as known."""
    said = _load_nodes(reader, "values, qualifiers and references", [each.iri for each in statements])
    linked = {
        term.value
        for each in statements
        for name, terms in said[each.iri].items()
        if name == PROV.wasDerivedFrom.value or ((match := _PROP.fullmatch(name)) and match[3])
        for term in terms
        if isinstance(term, NamedNode)
    }
    said |= _load_nodes(reader, "references and units", linked)
    deeper = {
        term.value
        for node in linked
        for name, terms in said[node].items()
        if (match := _PROP.fullmatch(name)) and match[2] == "reference" and match[3]
        for term in terms
        if isinstance(term, NamedNode)
    }
    said |= _load_nodes(reader, "values in references", deeper - said.keys())
    claims = [_to_claim(each, said) for each in statements]
    _add_labels(reader, statements, claims)
    for claim in claims:
        claim.qualified = list_reservations(claim)
    return claims


def list_reservations(claim: Claim) -> list[str]:
    """List the reservations that the qualifiers of a claim state."""
    found = [
        find_reservation(
            snak.property,
            snak.property_label,
            snak.value.value,
            snak.value.label or (snak.value.value if snak.value.type in ("text", "time") else None),
            is_wikidata="://" not in claim.qid,
        )
        for snak in claim.qualifiers
    ]
    return [each for each in dict.fromkeys(found) if each is not None]


Said = Mapping[str, Mapping[str, Sequence[Term]]]


def _load_nodes(reader: Reader, purpose: str, iris: Iterable[str]) -> dict[str, dict[str, list[Term]]]:
    wanted = sorted(set(iris))
    said: dict[str, dict[str, list[Term]]] = {iri: defaultdict(list) for iri in wanted}
    for portion in batched(wanted, _AT_ONCE):
        query = bind(NODES, nodes=[NamedNode(iri) for iri in portion])
        for row in reader.rows(purpose, query):
            values = said[iri_of(row["node"])][iri_of(row["property"])]
            if row["value"] not in values:
                values.append(row["value"])
    return said


def _to_claim(found: Found, said: Said) -> Claim:
    own = said[found.iri]
    main = [value for pid, value in _read_snaks(own, "statement", said) if pid == found.pid]
    qualifiers = [Snak(property=pid, value=value) for pid, value in _read_snaks(own, "qualifier", said)]
    references = []
    for node in sorted(own.get(PROV.wasDerivedFrom.value, ()), key=str):
        if isinstance(node, NamedNode):
            parts = [Snak(property=pid, value=value) for pid, value in _read_snaks(said[node.value], "reference", said)]
            references.append(Reference(hash=id_of(node.value), snaks=parts))
    none = ClaimValue(type="novalue")
    value = main[0] if main else none
    qualifiers = [each for each in qualifiers if not (each.value.type == "novalue" and each.property == found.pid)]
    return Claim(
        qid=show(found.entity),
        guid=found.guid,
        property=found.pid,
        value=value,
        rank=found.rank,
        best=found.best,
        qualifiers=qualifiers,
        references=references,
    )


def _read_snaks(own: Mapping[str, Sequence[Term]], role: str, said: Said) -> list[tuple[str, ClaimValue]]:
    """Read the snaks of a role (statement, qualifier, reference) of a node, in the order of the properties."""
    nodes: dict[str, list[Mapping[str, Sequence[Term]]]] = defaultdict(list)
    values: list[tuple[str, Term]] = []
    for name, terms in own.items():
        match = _PROP.fullmatch(name)
        if match is None or match[2] != role:
            continue
        if match[3]:
            nodes[match[4]] += [
                said[term.value] for term in terms if isinstance(term, NamedNode) and term.value in said
            ]
        else:
            values += [(match[4], term) for term in terms]
    # A snak without a value makes its subject a member of a class of the property.
    for term in own.get(RDF.type.value, ()):
        match = _PROP.fullmatch(term.value) if isinstance(term, NamedNode) else None
        if match and match[2] == "novalue":
            values.append((match[4], term))
    values.sort(key=lambda item: (int(item[0][1:]), str(item[1])))
    found: list[tuple[str, ClaimValue]] = []
    for pid, term in values:
        # Values of different precision or calendar can have the same simple term.
        alike = [each for each in nodes[pid] if any(term in each.get(part.value, ()) for part in _PARTS)]
        found += [(pid, _to_value(term, each)) for each in alike or [{}]]
    return found


_PARTS: Final = (WIKIBASE.timeValue, WIKIBASE.quantityAmount)


def _to_value(term: Term, node: Mapping[str, Sequence[Term]]) -> ClaimValue:
    """Build a value from its simple term and its value node."""

    def part(name: NamedNode) -> str | None:
        return next((term_text(each) for each in node.get(name.value, ())), None)

    if isinstance(term, NamedNode):
        if "/.well-known/genid/" in term.value:
            return ClaimValue(type="somevalue")
        if "/prop/novalue/" in term.value:
            return ClaimValue(type="novalue")
        if wikibase_of(term.value):
            return ClaimValue(type="entity", value=show(term.value))
        return ClaimValue(type="link", value=term.value)
    if not isinstance(term, RdfLiteral):
        return ClaimValue(type="somevalue")
    if term.datatype == XSD.dateTime or WIKIBASE.timeValue.value in node:
        precision = min(int(part(WIKIBASE.timePrecision) or DAY), DAY)
        model = id_of(part(WIKIBASE.timeCalendarModel) or "")
        date = read_time(term.value, precision, model, is_date_time=term.datatype == XSD.dateTime)
        return ClaimValue(
            type="time",
            # The year of a century or longer span is kept as it is written.
            value=term.value if date is None else date.iso if precision >= YEAR else term.value.rsplit("-", 2)[0],
            label=None if date is None else str(date),
            precision=PRECISIONS.get(precision),
            calendar="julian" if date is not None and date.calendar == "julian" else None,
        )
    if term.datatype == XSD.decimal:
        unit = part(WIKIBASE.quantityUnit)
        return ClaimValue(
            type="quantity",
            value=term.value.removeprefix("+"),
            unit=None if unit is None or id_of(unit) == _UNITLESS else show(unit),
            lower=_to_amount(part(WIKIBASE.quantityLowerBound)),
            upper=_to_amount(part(WIKIBASE.quantityUpperBound)),
        )
    if term.datatype == GEO.wktLiteral:
        return ClaimValue(type="coordinates", value=term.value)
    return ClaimValue(type="text", value=term.value, language=term.language)


def _to_amount(text: str | None) -> str | None:
    return None if text is None else text.removeprefix("+")


def _add_labels(reader: Reader, statements: Sequence[Found], claims: Sequence[Claim]) -> None:
    """Add the labels of properties and values, as far as they are known here."""
    bases = {claim.guid: wikibase_of(each.entity) or "" for each, claim in zip(statements, claims, strict=True)}
    predicates: dict[str, set[str]] = defaultdict(set)
    entities: set[str] = set()
    for claim in claims:
        base = bases[claim.guid]
        for property_id, value in _parts_of(claim):
            predicates[direct_start(base) + property_id].add(property_id)
            if value.type == "entity" and value.value:
                entities.add(to_iri(value.value))
            if value.unit:
                entities.add(to_iri(value.unit))
    names = property_labels(reader, predicates)
    labels = load_labels(reader, entities)
    for claim in claims:
        base = bases[claim.guid]
        claim.property_label = names.get(direct_start(base) + claim.property)
        for snak in (*claim.qualifiers, *(part for each in claim.references or () for part in each.snaks)):
            snak.property_label = names.get(direct_start(base) + snak.property)
        for _, value in _parts_of(claim):
            if value.type == "entity" and value.value:
                value.label = labels.get(to_iri(value.value))
            if value.unit:
                value.unit_label = labels.get(to_iri(value.unit))


def _parts_of(claim: Claim) -> Iterable[tuple[str, ClaimValue]]:
    yield claim.property, claim.value
    for snak in claim.qualifiers:
        yield snak.property, snak.value
    for reference in claim.references or ():
        for snak in reference.snaks:
            yield snak.property, snak.value


def load_labels(reader: Reader, iris: Collection[str]) -> dict[str, str]:
    """Load the labels of those entities that have one, English first. Cached until the next commit."""

    def load(missing: list[str]) -> Mapping[str, str]:
        names: dict[str, list[RdfLiteral]] = defaultdict(list)
        for portion in batched(missing, _LABELS_AT_ONCE):
            query = bind(LABELS, entities=[NamedNode(iri) for iri in portion])
            for row in reader.rows("labels of entities", query):
                if isinstance(row["label"], RdfLiteral):
                    names[iri_of(row["entity"])].append(row["label"])
        return {iri: min(names[iri], key=preference).value if iri in names else "" for iri in missing}

    found = reader.kept_by_iri("label of an entity", iris, load)
    return {iri: label for iri, label in found.items() if label}
