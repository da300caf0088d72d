"""The laws that policy documents and families are, as claims of each family.

A document or a family whose whole title is that of a law (`loaders.citations.law_titles`), with its year and
jurisdiction, is this law: ``kg:isLaw`` leads from it to the node that all citations of the law share. The nodes are not
the same: a document has a publisher, a language and a date that the law has not, and a family contains amendments too.

``graph/ext/laws/climate/{family}`` has a ``kg:Alignment`` for each law that a text cites: no others have nodes.
The graph is computed again by each commit that changes a record of the family, or in which a text is the first to cite
the law, or the last ceases to. If several families have the title of one law, none of their claims is promoted, and a
person may accept one (``kg review``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, named_node, select, select_each, term_text
from kg.vocabulary import DCTERMS, EXTRACTED, KG, RDF, SOURCED, iri_prefix, mint, slug_of
from loaders.citations import jurisdictions
from loaders.citations.graph.claims import build_alignment, build_law, get_law_graph, mint_law
from loaders.citations.graph.texts import Record, describe_laws
from loaders.citations.law_titles import CONFIDENCES, DATED, TitledLaw, find_titled_law
from loaders.citations.statutes import Law

AMBIGUOUS: Final = "0.5"
"""Confidence if several families have the title of one law."""

FAMILIES_IN: Final = """
SELECT DISTINCT ?family WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?document eli:is_member_of ?family } }"""

MEMBERS: Final = """
SELECT ?family ?graph ?document ?property ?value WHERE {
  VALUES ?family { $families } VALUES ?property { dcterms:title kg:jurisdiction eli:date_document }
  GRAPH ?graph { ?document eli:is_member_of ?family ; ?property ?value }
  FILTER(STRSTARTS(STR(?graph), $sources))
}"""

CITING: Final = """
SELECT DISTINCT ?law ?graph WHERE {
  VALUES ?law { $laws } GRAPH ?graph { ?claim rdf:object ?law ; kg:rawCitation ?words }
}"""

CLAIMS: Final = """
SELECT DISTINCT ?graph WHERE { GRAPH ?graph { ?claim kg:method ?method } FILTER(STRSTARTS(STR(?graph), $laws)) }"""

FAMILY_LAWS: Final = EXTRACTED + "laws/"
"""IRI prefix of the graphs of claims, followed by the domain and the slug of the family."""
_DOMAIN: Final = "climate"
"""The domain that has families."""
_PLACES: Final = iri_prefix("place")
_LAW_GRAPHS: Final = mint("graph", "ref", "law").value + "/"


@dataclass(slots=True)
class _Member:
    """A document of a family."""

    graph: NamedNode
    titles: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    years: set[int] = field(default_factory=set)

    def add(self, predicate: NamedNode, value: Term) -> None:
        """Add a property from the store."""
        if predicate == DCTERMS.title:
            self.titles.add(term_text(value))
        elif predicate == KG.jurisdiction:
            self.places.add(term_text(value))
        elif (text := term_text(value)[:4]).isdigit():
            self.years.add(int(text))

    @property
    def title(self) -> str:
        """Its title in one line; empty if it has none or several."""
        return _to_line(next(iter(self.titles))) if len(self.titles) == 1 else ""

    def find_law(self) -> TitledLaw | None:
        """Find the law that it is."""
        year = next(iter(self.years)) if len(self.years) == 1 else None
        return find_titled_law(self.title, _to_key(self.places), year)


@dataclass(slots=True)
class _Family:
    """A family as it will be after the commit."""

    title: str = ""
    members: dict[NamedNode, _Member] = field(default_factory=dict)

    def find_laws(self, family: NamedNode) -> dict[NamedNode, TitledLaw]:
        """Find the laws that the family and its documents are, by their nodes."""
        found = {each: law for each, member in self.members.items() if (law := member.find_law()) is not None}
        dated: dict[str, set[Law]] = defaultdict(set)
        for each, law in found.items():
            if law.method == DATED:
                dated[self.members[each].title].add(law.law)
        # Documents with one title and different dates: one may be a later version, so no date is that of the law.
        found = {
            each: law for each, law in found.items() if law.method != DATED or len(dated[self.members[each].title]) == 1
        }
        own = self._find_own(found)
        return found if own is None else {family: own, **found}

    def _find_own(self, found: Mapping[NamedNode, TitledLaw]) -> TitledLaw | None:
        """Find the law that the family is: that of the documents with its title, else that of its title alone."""
        same = [each for each, member in self.members.items() if member.title == self.title]
        if same:
            laws = [found[each] for each in same if each in found]
            return laws[0] if len({each.law for each in laws}) == 1 else None
        places = {place for member in self.members.values() for place in member.places}
        return find_titled_law(self.title, _to_key(places), None)


def get_family_graph(family: NamedNode) -> NamedNode:
    """Return the name of the shared graph that describes a family."""
    return mint("graph", "ref", "family", slug_of(family.value))


def get_claims_graph(family: NamedNode) -> NamedNode:
    """Return the name of the graph of the laws that a family and its documents are."""
    return mint("graph", "ext", "laws", _DOMAIN, slug_of(family.value))


class FamilyLaws:
    """The laws that the families of a store are, for one load. `titled` has the families by the laws of their titles,
    cited or not, by the IRIs of both.
    """

    def __init__(self, store: Store, titled: Mapping[str, Collection[str]]) -> None:
        self._store: Final = store
        self._titled: Final[dict[str, set[str]]] = defaultdict(set, {law: set(each) for law, each in titled.items()})

    def get_titled(self) -> Mapping[str, Sequence[str]]:
        """Get the families by the laws of their titles."""
        return {law: sorted(families) for law, families in sorted(self._titled.items()) if families}

    def derive(
        self,
        replace: Mapping[NamedNode, Sequence[Quad]],
        records: Mapping[NamedNode, Record | None],
        derived: Derived,
        families: Iterable[NamedNode] = (),
    ) -> Derived:
        """Build the claims that change with these records or are about `families`, and the graphs of their laws.

        They are added to the graphs `derived` of the commit, with those of laws that texts cite for the first time.
        """
        store = self._store
        first = [
            quad.subject.value
            for graph, (quads, _) in derived.items()
            if graph.value.startswith(_LAW_GRAPHS)
            for quad in quads
            if quad.predicate == KG.lawType and isinstance(quad.subject, NamedNode)
        ]
        changed = {NamedNode(family) for law in first for family in self._titled.get(law, ())}
        written = _collect_families(replace, records)
        changed |= {*families, *self._find_changed(written, records)}
        # The claims of a family refer to its law: its graph exists even if no text cites the law any more.
        uncited = self._find_uncited({**replace, **{graph: quads for graph, (quads, _) in derived.items()}}, changed)
        changed |= {NamedNode(family) for law in uncited for family in self._titled.get(law, ())}
        if not changed:
            return derived
        loaded = _load_families(store, written, records, changed)
        laws = {family: each.find_laws(family) for family, each in loaded.items()}
        self._keep_titled(laws)
        # The other families with the title of one of these laws: their claims become or cease to be ambiguous.
        claimed = {mint_law(each.law) for found in laws.values() for each in found.values()} | {
            quad.object
            for family in changed
            for quad in store.graph(get_claims_graph(family))
            if quad.predicate == RDF.object and isinstance(quad.object, NamedNode)
        }
        others = {NamedNode(family) for law in claimed for family in self._titled.get(law.value, ())} - changed
        if others:
            loaded |= (added := _load_families(store, written, records, others))
            laws |= {family: each.find_laws(family) for family, each in added.items()}
        made = dict(derived)
        for family, found in laws.items():
            known = {
                subject: each
                for subject, each in found.items()
                if mint_law(each.law).value not in uncited
                and ((graph := get_law_graph(each.law)) in derived or store.graph(graph))
            }
            self._make_claims(family, loaded[family], known, made)
        return made

    def remove_others(self, families: Iterable[str]) -> Derived:
        """Build the removal of the claims of all families but these: of those that left the store unseen."""
        kept = {get_claims_graph(NamedNode(family)) for family in families}
        rows = select(self._store.query, bind(CLAIMS, laws=Literal(FAMILY_LAWS)))
        stored = sorted({named_node(row["graph"]) for row in rows} - kept, key=str)
        return {graph: ([], RecordOrigin("", (), [])) for graph in stored}

    def _find_changed(
        self, after: Mapping[NamedNode, _Family], records: Mapping[NamedNode, Record | None]
    ) -> set[NamedNode]:
        """Find the families with records among these that have or had the title of a law. `after` are those written."""
        of_families = [graph for graph, record in records.items() if record is None or record.families]
        if not of_families:
            return set()
        stored = [graph for graph in of_families if self._store.graph(graph)] if self._titled else []
        rows = select(self._store.query, bind(FAMILIES_IN, graphs=stored)) if stored else ()
        before = {named_node(row["family"]) for row in rows}
        titled = {family for families in self._titled.values() for family in families}
        found = {family for family, each in after.items() if each.find_laws(family)}
        return found | {family for family in before | after.keys() if family.value in titled}

    def _find_uncited(self, replace: Mapping[NamedNode, Sequence[Quad]], families: Collection[NamedNode]) -> set[str]:
        """Find the laws in titles that no text cites after a commit.

        Only laws are examined that claims in the replaced graphs, or those of `families`, are about so far.
        """
        if not self._titled:
            return set()
        of_families = [get_claims_graph(family) for family in families]
        replaced = {graph: quads for graph, quads in replace.items() if graph.value.startswith(EXTRACTED)}
        before = self._collect_laws(quad for graph in [*replaced, *of_families] for quad in self._store.graph(graph))
        after = self._collect_laws(quad for quads in replaced.values() for quad in quads) if before else set()
        suspects = sorted(before - after, key=str)
        found = {law.value for law in suspects}
        for row in select_each(self._store.query, CITING, "laws", suspects):
            if named_node(row["graph"]) not in replaced:
                found.discard(named_node(row["law"]).value)
        return found

    def _collect_laws(self, quads: Iterable[Quad]) -> set[NamedNode]:
        """Collect the laws in titles that claims are about."""
        return {
            quad.object
            for quad in quads
            if quad.predicate == RDF.object and isinstance(quad.object, NamedNode) and quad.object.value in self._titled
        }

    def _keep_titled(self, laws: Mapping[NamedNode, Mapping[NamedNode, TitledLaw]]) -> None:
        for families in self._titled.values():
            families.difference_update(family.value for family in laws)
        for family, found in laws.items():
            for each in found.values():
                self._titled[mint_law(each.law).value].add(family.value)

    def _make_claims(
        self,
        family: NamedNode,
        described: _Family,
        found: Mapping[NamedNode, TitledLaw],
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]],
    ) -> None:
        """Add the graph of the claims of a family to `made` if it changes."""
        graph = get_claims_graph(family)
        quads: list[Quad] = []
        for subject, each in found.items():
            law = mint_law(each.law)
            confidence = CONFIDENCES[each.method] if len(self._titled[law.value]) == 1 else AMBIGUOUS
            quads += build_alignment(graph, (subject, KG.isLaw, law), confidence, each.method)[1]
        if set(quads) == set(self._store.graph(graph)):
            return
        sources = {member.graph for each, member in described.members.items() if each in found or family in found}
        shared = [get_family_graph(family)] if family in found else []
        origin = RecordOrigin("", (), [*sorted(sources, key=str), *shared])
        made[graph] = quads, origin
        laws = [build_law(each.law, each.name) for each in found.values()]
        describe_laws(self._store, made, {home: said for _, home, said in laws}, origin)


def _load_families(
    store: Store,
    written: Mapping[NamedNode, _Family],
    records: Mapping[NamedNode, Record | None],
    families: Collection[NamedNode],
) -> dict[NamedNode, _Family]:
    """Load families as they will be after a commit: from the store, except for those `written` by its records."""
    found = {family: written.get(family, _Family()) for family in families}
    listed = sorted(families, key=str)
    for row in select_each(store.query, MEMBERS, "families", listed, sources=Literal(SOURCED)):
        graph, family = named_node(row["graph"]), named_node(row["family"])
        if graph not in records:
            member = found[family].members.setdefault(named_node(row["document"]), _Member(graph))
            member.add(named_node(row["property"]), row["value"])
    for family, each in found.items():
        if not each.title:
            each.title = _find_title(store.graph(get_family_graph(family)))
    return found


def _collect_families(
    replace: Mapping[NamedNode, Sequence[Quad]], records: Mapping[NamedNode, Record | None]
) -> dict[NamedNode, _Family]:
    """Collect the families in a commit, with their documents in it."""
    found: dict[NamedNode, _Family] = defaultdict(_Family)
    for graph, record in records.items():
        for document, families in record.families.items() if record is not None else ():
            if record is None or len(families) != 1:  # a claim is in the graph of one family
                continue
            family = NamedNode(next(iter(families)))
            member = found[family].members[document] = _Member(graph)
            member.titles |= record.titles.get(document, set())
            member.places |= record.places.get(document, set())
            member.years |= record.years.get(document, set())
    for family, each in found.items():
        each.title = _find_title(replace.get(get_family_graph(family), ()))
    return dict(found)


def _find_title(quads: Iterable[Quad]) -> str:
    titles = [
        quad.object.value for quad in quads if quad.predicate == DCTERMS.title and isinstance(quad.object, Literal)
    ]
    return _to_line(titles[0]) if len(titles) == 1 else ""


def _to_key(places: Collection[str]) -> str | None:
    """Get the key of the one jurisdiction among the IRIs of places."""
    place = next(iter(places)) if len(places) == 1 else ""
    return jurisdictions.key_of(unquote(place.removeprefix(_PLACES))) if place.startswith(_PLACES) else None


def _to_line(text: str) -> str:
    return " ".join(text.split())
