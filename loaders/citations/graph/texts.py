"""The citations in the texts of records, as claims in a graph of each record.

The graph ``graph/ext/citations/{domain}/{record}`` is written in the commit of its record, and removed with it. The
subject of a claim is the text unit. Numbered sections and codified law in codes of municipalities are not repeated
here: `loaders.zoning` extracts them with the sections that they resolve to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin
from kg.store.protocol import Store, Term
from kg.vocabulary import CITATIONS, DCTERMS, ELI, KG, SCHEMA, SOURCED, iri_prefix
from loaders.citations import jurisdictions
from loaders.citations.act_titles import UNSURE
from loaders.citations.family_names import FamilyNames
from loaders.citations.graph.claims import Claims, Evidence, build_law, build_law_places
from loaders.citations.law_titles import NO_LAWS, OwnLaws, find_own_laws
from loaders.citations.laws import Context, find_laws
from loaders.model import RecordQuads, SourceDocument, TextUnit, find_quads

_PLACES: Final = iri_prefix("place")
_MUNICIPALITIES: Final = iri_prefix("municipality")
_DATES: Final = (DCTERMS.date, ELI.date_document)


def citation_graph(source: NamedNode) -> NamedNode:
    """Return the name of the graph of the citations in the texts of the graph `source`."""
    return NamedNode(CITATIONS + source.value.removeprefix(SOURCED))


@dataclass(slots=True)
class Record:
    """The text units of a record, and the properties of its documents that citations depend on."""

    texts: dict[NamedNode, str] = field(default_factory=dict)
    parents: dict[NamedNode, NamedNode] = field(default_factory=dict)
    places: dict[NamedNode | None, set[str]] = field(default_factory=lambda: defaultdict(set))
    """IRIs of jurisdictions by document or unit; those of the whole record under None."""
    years: dict[NamedNode | None, set[int]] = field(default_factory=lambda: defaultdict(set))
    families: dict[NamedNode, set[str]] = field(default_factory=lambda: defaultdict(set))
    titles: dict[NamedNode, set[str]] = field(default_factory=lambda: defaultdict(set))
    disputed: set[NamedNode] = field(default_factory=set)
    """The units whose words are in an order that is not sure."""
    documents: dict[NamedNode, NamedNode] = field(default_factory=dict)
    """The results of `document_of` so far, by the parent of the unit."""

    @classmethod
    def of(cls, quads: Iterable[Quad]) -> Record:
        """Collect the texts and properties in the quads of one record."""
        if isinstance(quads, RecordQuads) and quads.document is not None:
            return cls._from_document(quads.document)
        record = cls()
        read = record._readers()
        for subject, predicate, value, _ in find_quads(quads, read.keys()):
            if isinstance(subject, NamedNode):
                read[predicate](subject, value)
        return record

    @classmethod
    def _from_document(cls, document: SourceDocument) -> Record:
        """Collect the texts and properties of a document that is being loaded, without its quads."""
        record = cls()
        read = record._readers()
        for predicate, value in document.properties:
            if (add := read.get(predicate)) is not None:
                add(document.iri, value)
        record._add_units(document.units)
        if document.title:
            record.titles[document.iri].add(document.title)
        return record

    def _readers(self) -> Mapping[NamedNode, Callable[[NamedNode, Term], None]]:
        """Return the method that adds the values of each property."""
        return {
            SCHEMA.text: self._add_text,
            DCTERMS.isPartOf: self._add_parent,
            KG.jurisdiction: self._add_place,
            ELI.is_member_of: self._add_family,
            DCTERMS.title: self._add_title,
            KG.disputedOrder: self._add_disputed,
            **dict.fromkeys(_DATES, self._add_date),
        }

    def _add_units(self, units: Sequence[TextUnit]) -> None:
        for unit in units:
            self.texts[unit.iri] = unit.text
            if unit.parent is not None:
                self.parents[unit.iri] = unit.parent
            for predicate, value in unit.properties:
                if predicate == KG.jurisdiction:
                    self._add_place(unit.iri, value)
                elif predicate == KG.disputedOrder:
                    self._add_disputed(unit.iri, value)

    def _add_text(self, subject: NamedNode, value: Term) -> None:
        self.texts[subject] = value.value if isinstance(value, Literal) else ""

    def _add_parent(self, subject: NamedNode, value: Term) -> None:
        if isinstance(value, NamedNode):
            self.parents[subject] = value

    def _add_place(self, subject: NamedNode, value: Term) -> None:
        if isinstance(value, NamedNode):
            self.places[subject].add(value.value)
            self.places[None].add(value.value)

    def _add_family(self, subject: NamedNode, value: Term) -> None:
        if isinstance(value, NamedNode):
            self.families[subject].add(value.value)

    def _add_title(self, subject: NamedNode, value: Term) -> None:
        if isinstance(value, Literal):
            self.titles[subject].add(value.value)

    def _add_disputed(self, subject: NamedNode, value: Term) -> None:
        if value == Literal(True):
            self.disputed.add(subject)

    def _add_date(self, subject: NamedNode, value: Term) -> None:
        if isinstance(value, Literal) and value.value[:4].isdigit():
            self.years[subject].add(int(value.value[:4]))
            self.years[None].add(int(value.value[:4]))

    def document_of(self, unit: NamedNode) -> NamedNode:
        """Get the nearest node above a unit that has a jurisdiction, else its parent, else the unit."""
        parent = self.parents.get(unit)
        if unit in self.places or parent is None:
            return unit
        found = self.documents.get(parent)
        if found is None:
            found = self.documents[parent] = self._find_document(parent)
        return found

    def _find_document(self, parent: NamedNode) -> NamedNode:
        above, place = [parent], parent
        while (further := self.parents.get(place)) is not None and further not in above:
            above.append(further)
            place = further
        return next((each for each in above if each in self.places), parent)

    def context_of(self, document: NamedNode) -> Context:
        """Build the context of the texts of a document. Without a jurisdiction it has that of the whole record."""
        places = self.places.get(document) or self.places.get(None) or ()
        years = self.years.get(document) or self.years.get(None) or ()
        place = next(iter(places)) if len(places) == 1 else ""
        year = max(years) if years else None
        if place.startswith(_MUNICIPALITIES):
            country = jurisdictions.country_of(place.removeprefix(_MUNICIPALITIES))
            return Context(country, year, only_federal=True)
        key = jurisdictions.key_of(unquote(place.removeprefix(_PLACES))) if place.startswith(_PLACES) else None
        return Context(key, year)

    def find_own_laws(self, document: NamedNode, context: Context) -> OwnLaws:
        """Find the laws that a document is itself, by its titles.

        A speech is not the bill that it is titled after, so only members of policy families count.
        """
        if document not in self.families:
            return NO_LAWS
        return find_own_laws(self.titles.get(document, ()), self.years.get(document, ()), context)


def build_citations(
    source: NamedNode, record: Record, families: FamilyNames
) -> tuple[list[Quad], Mapping[NamedNode, Sequence[Quad]]]:
    """Build the claims about the citations in the texts of a record, and the shared graphs of the laws they cite."""
    graph = citation_graph(source)
    contexts: dict[NamedNode, Context] = {}
    own_laws: dict[NamedNode, OwnLaws] = {}
    claims: list[Quad] = []
    laws: dict[NamedNode, Sequence[Quad]] = {}
    for unit, text in record.texts.items():
        document = record.document_of(unit)
        if document not in contexts:
            contexts[document] = record.context_of(document)
        context, own = contexts[document], NO_LAWS
        found = find_laws(text, context)
        if found:
            if document not in own_laws:
                own_laws[document] = record.find_own_laws(document, context)
            own = own_laws[document]
            found = [each for each in found if not own.has(each)]
        named = families.find(text, context.jurisdiction, record.families.get(document, ()))
        if not found and not named:
            continue
        made = Claims(graph, text, unit)
        is_disputed = unit in record.disputed
        for each in found:
            target = None
            confidence = min(each.confidence, UNSURE) if is_disputed or own.may_have(each) else each.confidence
            if each.law is not None:
                is_sure = each.confidence > UNSURE and not is_disputed
                target, shared, described = build_law(each.law, each.title, is_sure=is_sure)
                if is_sure or shared not in laws:
                    laws[shared] = described
            words = text[each.start : each.end]
            made.add(Evidence(unit, each.start, each.end, words, confidence, each.method), target, words)
        for name in named:
            words = text[name.start : name.end]
            confidence = min(name.confidence, UNSURE) if is_disputed else name.confidence
            evidence = Evidence(unit, name.start, name.end, words, confidence, "title of a policy family")
            made.add(evidence, NamedNode(name.family), words)
        claims += made.quads
    return claims, laws


def derive_citations(store: Store, records: Mapping[NamedNode, Record | None], families: FamilyNames) -> Derived:
    """Build the graphs of citations, and of new laws, that change with these records; None removes those of one."""
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for source, record in records.items():
        graph, origin = citation_graph(source), RecordOrigin("", (), (source,))
        claims, laws = build_citations(source, record, families) if record is not None else ([], {})
        if claims or store.graph(graph):
            made[graph] = claims, origin
        describe_laws(store, made, laws, origin)
    return made


def describe_laws(
    store: Store,
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]],
    laws: Mapping[NamedNode, Sequence[Quad]],
    origin: RecordOrigin,
) -> None:
    """Add the shared graphs of laws that the store does not have to `made`, with those of their places."""
    for law, described in laws.items():
        # A law keeps its first description: titles may differ in capitals. Only its jurisdiction may become known.
        held = made[law][0] if law in made else store.graph(law)
        if not held:
            made[law] = described, origin
        elif known := _find_jurisdiction(described, held):
            made[law] = [*held, *known], origin
        for place, said in build_law_places(described).items():
            if place not in made and not store.graph(place):
                made[place] = said, origin


def _find_jurisdiction(described: Sequence[Quad], held: Sequence[Quad]) -> list[Quad]:
    """Find the jurisdiction of a law in its new description, if the one that is held has none."""
    if any(quad.predicate == KG.jurisdiction for quad in held):
        return []
    return [quad for quad in described if quad.predicate == KG.jurisdiction]
