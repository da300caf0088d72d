"""The citations in the texts of records, as claims in a graph of each record.

The graph ``graph/ext/citations/{domain}/{record}`` is written in the commit of its record, and removed with it. The
subject of a claim is the text unit. Numbered sections and codified law in codes of municipalities are not repeated
here: `loaders.zoning` extracts them with the sections that they resolve to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from loaders.citations.laws import BY_NUMBER, BY_TITLE, Context, LawCitation, find_laws
from loaders.citations.statutes import Law
from loaders.model import SourceDocument, TextUnit, find_quads
from loaders.readers.cells import to_slug

_PLACES: Final = iri_prefix("place")
_MUNICIPALITIES: Final = iri_prefix("municipality")
_ARTICLE: Final = re.compile(r"(?:The |A |An )?(?:Commission |Council )?(?:Implementing |Delegated )?")
_CONTAINED: Final = re.compile(r"\b(?:contain|compris|includ|consist)\w*\b[^()]*$", re.I)
_LISTED: Final = re.compile(r"(?:,|;|\s+and)\s+(?:and\s+)?")
_SHORT_TITLE: Final = re.compile(
    r"(?:The\s+)?(?P<name>.+?\b(?:Act|Ordinance|Regulations))s?(?=\s*(?:$|[(\[,;-]|No\b|Number\b|RA\b|\d))"
)
"""The name of an act in the title of a document, before its number."""
_YEAR: Final = re.compile(r"(?<!\d)(?:1[6-9]|20)\d\d(?!\d)")
_NAME_OF_ACT: Final = re.compile(r"(?P<name>.+?)(?: \(No[^()]*\))? (?P<year>(?:1[6-9]|20)\d\d)\b.*")
_KINDS: Final = re.compile(
    r"(?:The |A |An )?(?P<kind>Royal Decree[- ]Law|Royal Decree|Decree[- ]Law|Law)\b(?!\W*(?:[Nn]|\d))"
)
"""The kind of a law at the beginning of a title that does not have its number."""
_NUMBER_AND_YEAR: Final = re.compile(r"(?<![\d/.-])\d{1,5}/(?:1[89]|20)\d\d(?![\d/])")
_RELATION: Final = re.compile(
    r"\b(?:amend|repeal|replac|revok|transpos|implement|supplement|contain|includ|regulated|pursuant|under|based)", re.I
)
"""Words after which a title names other laws."""
_IN_BRACKETS: Final = re.compile(r"\s*\([^()]*\)\s*$")
_OF_ANOTHER: Final = re.compile(
    r"\W*(?:\([^()]*\)\W*)?(?:[Aa]mendments?|Amending|Consequential|Regulations?|Rules?|Orders?|Bill|Act|Implement\w+"
    r"|Guidelines?|Reviews?|Reports?)\b"
)
"""Words after the name of a law in the title of another document."""
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
    documents: dict[NamedNode, NamedNode] = field(default_factory=dict)
    """The results of `document_of` so far, by the parent of the unit."""

    @classmethod
    def of(cls, quads: Iterable[Quad]) -> Record:
        """Collect the texts and properties in the quads of one record."""
        record = cls()
        read = record._readers()
        for subject, predicate, value, _ in find_quads(quads, read.keys()):
            if isinstance(subject, NamedNode):
                read[predicate](subject, value)
        return record

    @classmethod
    def from_document(cls, document: SourceDocument) -> Record:
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

    def find_own_laws(self, document: NamedNode, context: Context) -> set[Law]:
        """Find the laws that a document of a policy family is itself, by its titles. It does not cite them.

        ``Law 24/2013 on electricity`` and ``Energy labelling (Directive 2010/30/EU)`` are these laws, and a document of
        2015, ``Energy Act``, is the ``Energy Act 2015``; ``Finance Act 1992 (Amendment) Regulations`` are not. A speech
        is not the bill that it is titled after, so only members of families count.
        """
        titles = set(self.titles.get(document, ()) if document in self.families else ())
        if context.year is not None:
            titles |= {f"{_IN_BRACKETS.sub('', title)} {context.year}" for title in titles}
        own: set[Law] = set()
        for title in titles:
            before: LawCitation | None = None
            for each in find_laws(title, context):
                listed = before is not None and _LISTED.fullmatch(title, max(before.end, before.whole), each.start)
                before = each if listed or _is_own(title, each) else None
                if before is not None and each.law is not None:
                    own.add(each.law)
        return own

    def find_own_numbers(self, document: NamedNode) -> set[str]:
        """Find the numbers that the titles of a document of a policy family give it: ``Gas Law no. 123/2012``.

        ``Decree 17/2015 amending Law 8/1997`` is the first only.
        """
        titles = self.titles.get(document, ()) if document in self.families else ()
        found: set[str] = set()
        for title in titles:
            relation = _RELATION.search(title)
            found.update(_NUMBER_AND_YEAR.findall(title, 0, relation.start() if relation else len(title)))
        return found

    def find_doubtful(self, document: NamedNode) -> Doubtful:
        """Find the laws that a document of a policy family may be itself, by its titles: see `Doubtful`."""
        names: dict[str, str] = {}
        kinds: set[str] = set()
        for title in self.titles.get(document, ()) if document in self.families else ():
            line = " ".join(title.split())
            if named := _SHORT_TITLE.match(line):
                names[_to_name(named["name"])] = line
            if kind := _KINDS.match(line):
                kinds.add(to_slug(kind["kind"]))
        return Doubtful(names, kinds, self.years.get(document, set()))


@dataclass(frozen=True, slots=True)
class Doubtful:
    """The laws that a document may be itself, or an earlier one of its name: claims that it cites them are not sure.

    ``Energy Act`` may be the ``Energy Act 2001`` that its text names, and ``Royal Decree on the climate office`` of
    2011 the ``Royal Decree 1886/2011``.
    """

    names: Mapping[str, str]
    """Titles by the names of the acts in them."""
    kinds: Collection[str]
    """Kinds of laws that titles begin with, without their numbers."""
    years: Collection[int]

    def has(self, found: LawCitation) -> bool:
        """Whether the document may be the law that is cited."""
        if found.law is None:
            return False
        if found.method == BY_NUMBER:
            year = found.title.rpartition("/")[2]
            return found.law.scheme in self.kinds and year.isdigit() and int(year) in self.years
        named = _NAME_OF_ACT.fullmatch(found.title)
        title = self.names.get(_to_name(named["name"])) if named else None
        if named is None or title is None:
            return False
        stated = _YEAR.findall(title)
        return not stated or named["year"] in stated


def _to_name(text: str) -> str:
    return to_slug(text.removeprefix("The "))


def _is_own(title: str, law: LawCitation) -> bool:
    """Whether a title names `law` as that of its document: at its beginning, or by a number in brackets."""
    begins = _ARTICLE.fullmatch(title, 0, law.start) is not None
    before = title[: law.start]
    bracketed = law.method != BY_TITLE and (before.endswith("(") or _CONTAINED.search(before) is not None)
    return (begins or bracketed) and _OF_ANOTHER.match(title, max(law.end, law.whole)) is None


def build_citations(
    source: NamedNode, record: Record, families: FamilyNames
) -> tuple[list[Quad], Mapping[NamedNode, Sequence[Quad]]]:
    """Build the claims about the citations in the texts of a record, and the shared graphs of the laws they cite."""
    graph = citation_graph(source)
    contexts: dict[NamedNode, tuple[Context, set[Law], set[str], Doubtful]] = {}
    claims: list[Quad] = []
    laws: dict[NamedNode, Sequence[Quad]] = {}
    for unit, text in record.texts.items():
        document = record.document_of(unit)
        if document not in contexts:
            context = record.context_of(document)
            own, numbers = record.find_own_laws(document, context), record.find_own_numbers(document)
            contexts[document] = context, own, numbers, record.find_doubtful(document)
        context, own, numbers, doubtful = contexts[document]
        found = [
            each
            for each in find_laws(text, context)
            if (each.law is None or each.law not in own)
            and (each.method != BY_NUMBER or each.title.rpartition(" ")[2] not in numbers)
        ]
        named = families.find(text, context.jurisdiction, record.families.get(document, ()))
        if not found and not named:
            continue
        made = Claims(text, unit, graph)
        for each in found:
            target = None
            confidence = min(each.confidence, UNSURE) if doubtful.has(each) else each.confidence
            if each.law is not None:
                is_sure = each.confidence > UNSURE
                target, shared, described = build_law(each.law, each.title, is_sure=is_sure)
                if is_sure or shared not in laws:
                    laws[shared] = described
            words = text[each.start : each.end]
            made.add(Evidence(unit, each.start, each.end, words, confidence, each.method), target, words)
        for name in named:
            words = text[name.start : name.end]
            evidence = Evidence(unit, name.start, name.end, words, name.confidence, "title of a policy family")
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
