"""Reviews of findings: the rules and districts that were read from the text of a code.

A finding is a node of ``graph/ext/zoning/...`` with a confidence: a permission, a standard, a definition, or the naming
of a district. It is stated as law unless a person rejected it (``kg:rejects`` in a graph below ``graph/cur/``). The
triples of a rejected finding are removed. They remain as the text of one literal (``kg:withdrawn``), with its
evidence, method and confidence. With a district all findings in it are withdrawn. A finding that a person accepted is
marked (``kg:reviewStatus``).

A review is of a node, whose IRI follows from its graph and content. The IRI of the review follows from the section and
the main properties of the finding. If a later version of the text or of the loader gives another node with the same
section and properties, the review applies to that node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, Literal

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Quad, RdfFormat, Triple, parse

from kg.provenance.load_records import Derived, RecordOrigin
from kg.provenance.promotion import Verdicts, build_reviewed_edges, find_reviews
from kg.sparql.terms import bind
from kg.store.protocol import Commit, GraphChange, Patch, Store, Term, named_node, select
from kg.vocabulary import (
    BASE,
    EXTRACTED,
    KG,
    QUDT,
    RDF,
    SKOS,
    SOURCED,
    get_named_district,
    iri_prefix,
    mint,
    sha256,
)

Verdict = Literal["accepts", "rejects"]
ACCEPTED: Final = Text("accepted")

KINDS: Final[Mapping[NamedNode, str]] = {
    KG.UsePermission: "use",
    KG.DimensionalStandard: "standard",
    KG.Definition: "definition",
    KG.DistrictNaming: "district",
}
"""The classes of findings, with their names in tools."""

PREFIXES: Final = {
    "use": iri_prefix("permission"),
    "standard": iri_prefix("standard"),
    "definition": iri_prefix("definition"),
    "district": iri_prefix("district"),
}
"""IRI prefixes of the findings of each kind."""

FOUND_IN: Final = """
SELECT DISTINCT ?g WHERE {
  VALUES ?claim { $claims } GRAPH ?g { ?claim kg:confidence ?confidence ; kg:method ?method }
  FILTER(STRSTARTS(STR(?g), $prefix))
}"""

IN_DISTRICT: Final = """
SELECT DISTINCT ?g WHERE {
  VALUES ?district { $districts }
  GRAPH ?g { ?finding kg:district|kg:namesDistrict|kg:appliesIn|kg:listsDistrict ?district }
  FILTER(STRSTARTS(STR(?g), $prefix))
}"""

REVIEWED_IN: Final = """
SELECT DISTINCT ?g WHERE {
  { GRAPH ?g { ?finding kg:withdrawn ?words } } UNION { GRAPH ?g { ?finding kg:reviewStatus ?status } }
  FILTER(STRSTARTS(STR(?g), $prefix))
}"""

_KEPT: Final = frozenset({KG.confidence, KG.method, KG.evidence, KG.definedIn})
"""Properties that a rejected finding keeps."""
_SAID: Final[Mapping[str, Sequence[NamedNode]]] = {
    "use": (KG.definedIn, KG.district, KG.landUse, KG.permissionLevel),
    "standard": (
        KG.definedIn, KG.district, KG.standardType, KG.bound, KG.appliesTo, QUDT.numericValue, QUDT.hasUnit,
    ),
    "definition": (KG.definedIn, SKOS.prefLabel, SKOS.definition),
    "district": (KG.namesDistrict,),
}  # fmt: skip
"""Properties that make two findings the same for a rejection. The words of the source count where these have none."""
_WORDS: Final = {"use": (KG.permissionLevel, KG.rawLevel), "standard": (QUDT.numericValue, KG.rawValue)}
_PLACES: Final = (KG.appliesIn, KG.listsDistrict)
"""Properties of scopes and lists that name districts."""
_REFERENCES: Final = BASE + "graph/ref/"
_ENTITIES: Final = BASE + "id/"
_SHARED: Final = (iri_prefix("district"), iri_prefix("landuse"))

FINDINGS: Final = EXTRACTED + "zoning/"
"""IRI prefix of the graphs of findings."""

Describe = Callable[[NamedNode], Iterable[Quad]]
"""Returns the description of a district or a land use, from its shared graph."""


class _StaleReviewsError(Exception):
    """A review was committed after the reviews were applied to the graphs of a commit."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding with the quads about it, and those about its quantity."""

    node: NamedNode
    kind: str
    """``use``, ``standard``, ``definition`` or ``district``."""
    quads: Sequence[Quad]

    def all(self, name: NamedNode) -> list[str]:
        """Get the values of one property, sorted."""
        return sorted(
            quad.object.value
            for quad in self.quads
            if quad.predicate == name and isinstance(quad.object, NamedNode | Text)
        )

    def one(self, name: NamedNode) -> str | None:
        """Get the first value of one property."""
        return next(iter(self.all(name)), None)

    @property
    def graph(self) -> NamedNode:
        """Its graph."""
        return self.quads[0].graph_name  # type: ignore[return-value]

    @property
    def district(self) -> str | None:
        """The district that it is about."""
        return self.one(KG.district) or self.one(KG.namesDistrict)

    def review(self, verdict: Verdict) -> NamedNode:
        """Build the IRI of a review of it. An acceptance is of its conditions too."""
        said = [[name.value, *self.all(name)] for name in _SAID[self.kind]]
        name, words = _WORDS.get(self.kind, (None, None))
        if name is not None and words is not None and not self.all(name):
            said.append([words.value, *self.all(words)])
        if verdict == "accepts":
            said.append([KG.condition.value, *self.all(KG.condition)])
        plain = [[" ".join(value.split()).casefold() for value in part] for part in said]
        return mint("review", sha256(repr((verdict, self.kind, plain)))[:32])


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The quads of a graph of findings after reviews."""

    quads: Sequence[Quad]
    by: frozenset[NamedNode] = frozenset()
    """The reviewed claims that decided about any of them."""
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    """Shared graphs of the districts and uses of findings that are stated again."""


def apply_reviews(quads: Sequence[Quad], verdicts: Verdicts, describe: Describe) -> Reviewed:
    """Apply all reviews to the quads of one graph of findings. The result does not depend on earlier reviews in it."""
    if not verdicts.accepted and not verdicts.rejected and not any(map(_is_reviewed, quads)):
        return Reviewed(quads)
    restored, shared = _restore(quads)
    findings, others = split_findings(restored)
    judge = _Judge(verdicts, {finding.node for finding in findings})
    result, by = list(others), set[NamedNode]()
    for finding in findings:
        if reasons := judge.find(finding, "rejects"):
            result += _withdraw(finding, lambda node: shared.get(get_shared_graph(node)) or describe(node))
        else:
            result += finding.quads
            if reasons := judge.find(finding, "accepts"):
                result.append(Quad(finding.node, KG.reviewStatus, ACCEPTED, finding.graph))
        by |= reasons
    result, reasons = _withdraw_places(
        result, verdicts, lambda node: shared.get(get_shared_graph(node)) or describe(node)
    )
    by |= reasons
    needed = {get_shared_graph(quad.object) for quad in result if isinstance(quad.object, NamedNode)} if shared else ()
    return Reviewed(result, frozenset(by), {graph: about for graph, about in shared.items() if graph in needed})


def split_findings(quads: Iterable[Quad]) -> tuple[list[Finding], list[Quad]]:
    """Split the quads of a graph into its findings, and the other quads: those of spans and citations."""
    by_subject: dict[str, list[Quad]] = defaultdict(list)
    for quad in quads:
        by_subject[quad.subject.value if isinstance(quad.subject, NamedNode) else ""].append(quad)
    findings: list[Finding] = []
    others: list[Quad] = []
    parts: dict[str, list[Quad]] = defaultdict(list)
    for subject, about in by_subject.items():
        whole, mark, _ = subject.partition("#quantity=")
        if mark and whole in by_subject:
            parts[whole] += about
    for subject, about in by_subject.items():
        if "#quantity=" in subject and subject.partition("#quantity=")[0] in parts:
            continue
        types = (q.object for q in about if q.predicate == RDF.type and isinstance(q.object, NamedNode))
        kind = next((KINDS[each] for each in types if each in KINDS), None)
        if kind is None or not any(quad.predicate == KG.confidence for quad in about):
            others += [*about, *parts.get(subject, ())]
        else:
            findings.append(Finding(NamedNode(subject), kind, [*about, *parts.get(subject, ())]))
    return findings, others


def load_finding(quads: Iterable[Quad], node: NamedNode) -> Finding | None:
    """Load the finding `node` from the quads of its graph, as it was before it was rejected. None if there is none."""
    parts = f"{node.value}#quantity="
    own = [quad for quad in quads if quad.subject == node or str(quad.subject).startswith(f"<{parts}")]
    findings, _ = split_findings(_restore(own)[0])
    return next((finding for finding in findings if finding.node == node), None)


def parse_withdrawn(text: str) -> list[Triple]:
    """Parse the triples of a rejected finding."""
    return [quad.triple for quad in parse(text.encode(), RdfFormat.N_TRIPLES)]


def get_shared_graph(node: NamedNode) -> NamedNode:
    """Get the shared graph that describes a district or a land use."""
    return NamedNode(_REFERENCES + node.value.removeprefix(_ENTITIES))


def build_reviewed_graphs(store: Store, changes: Sequence[GraphChange]) -> Derived:
    """Build the graphs that change with the reviews in `changes`: of edges, of findings, of their districts and uses.

    Call it under the write lock.
    """
    added, removed = find_reviews(changes)
    edges = build_reviewed_edges(store, changes)
    claims = added | removed
    if not claims:
        return edges
    queries = [bind(FOUND_IN, claims=sorted(claims, key=str), prefix=Text(FINDINGS))]
    districts = {district for claim in claims if (district := get_named_district(claim)) is not None}
    if districts:
        queries.append(bind(IN_DISTRICT, districts=sorted(districts, key=str), prefix=Text(FINDINGS)))
    if districts or removed:  # these do not name the district or the review any more
        queries.append(bind(REVIEWED_IN, prefix=Text(FINDINGS)))
    graphs = {named_node(row["g"]) for query in queries for row in select(store.query, query)}
    verdicts = Verdicts.load(store.query, changes)
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for graph in sorted(graphs, key=str):
        before = store.graph(graph)
        after = apply_reviews(before, verdicts, lambda node: store.graph(get_shared_graph(node)))
        if set(after.quads) == set(before):
            continue
        made[graph] = after.quads, RecordOrigin("", (), verdicts.on(after.by))
        source = NamedNode(SOURCED + graph.value.removeprefix(EXTRACTED))
        for shared, quads in after.shared.items():
            if not store.count(shared):
                made[shared] = quads, RecordOrigin("", (), (source,))
    return {**edges, **made}


def commit_reviewed(
    store: Store, replace: dict[NamedNode, Sequence[Quad]], describe: Callable[[Sequence[GraphChange]], Patch]
) -> Commit:
    """Commit graphs as `Store.commit` does. Reviews that were committed since `replace` was built apply too."""

    def describe_current(changes: Sequence[GraphChange]) -> Patch:
        if _find_stale(store, replace):
            raise _StaleReviewsError
        return describe(changes)

    while True:
        try:
            return store.commit(replace, describe_current)
        except _StaleReviewsError:
            for graph, found in _find_stale(store, replace).items():
                replace[graph] = found.quads


def _find_stale(store: Store, graphs: Mapping[NamedNode, Sequence[Quad]]) -> dict[NamedNode, Reviewed]:
    """Find the graphs of findings among `graphs` to which not all reviews are applied, with their right content."""
    verdicts, found = Verdicts.load(store.query), dict[NamedNode, Reviewed]()
    if verdicts.accepted or verdicts.rejected:
        for graph, quads in graphs.items():
            if graph.value.startswith(FINDINGS):
                after = apply_reviews(quads, verdicts, lambda node: store.graph(get_shared_graph(node)))
                if set(after.quads) != set(quads):
                    found[graph] = after
    return found


@dataclass(frozen=True, slots=True)
class _Judge:
    """Finds the reviews of findings in one graph."""

    verdicts: Verdicts
    nodes: Set[Term]
    """All findings of the graph: a review of one of these is of no other."""

    def find(self, finding: Finding, verdict: Verdict) -> set[NamedNode]:
        """Find the claims whose review decides so about a finding: itself, its district, or an equal one."""
        said = self.verdicts.rejected if verdict == "rejects" else self.verdicts.accepted
        found = {finding.node} if finding.node in said else set()
        if finding.kind == "district" or verdict == "rejects":
            found |= {claim for claim in self.verdicts.namings.get(finding.district or "", ()) if claim in said}
        if not found:
            others = set(self.verdicts.by_review.get(finding.review(verdict), ()))
            found = {claim for claim in others if isinstance(claim, NamedNode)} if not others & self.nodes else set()
        return found


def _withdraw_places(
    quads: Sequence[Quad], verdicts: Verdicts, describe: Describe
) -> tuple[list[Quad], set[NamedNode]]:
    """Withdraw that texts apply in rejected districts. A list with one of these is not a list of all districts."""
    reasons: dict[Quad, set[NamedNode]] = {}
    for quad in quads:
        if quad.predicate in _PLACES and isinstance(quad.object, NamedNode):
            claims = {each for each in verdicts.namings.get(quad.object.value, ()) if each in verdicts.rejected}
            if claims:
                reasons[quad] = claims
    lists = {quad.subject for quad in reasons if quad.predicate == KG.listsDistrict}
    gone: dict[Term, list[Triple]] = defaultdict(list)
    kept = []
    for quad in quads:
        if quad in reasons and isinstance(quad.object, NamedNode):
            gone[quad.subject] += [
                quad.triple,
                *(each.triple for each in describe(quad.object) if each.subject == quad.object),
            ]
        elif quad.subject in lists and quad.predicate == RDF.type:
            gone[quad.subject].append(quad.triple)
        else:
            kept.append(quad)
    for subject, triples in gone.items():
        lines = "".join(sorted(f"{triple} .\n" for triple in dict.fromkeys(triples)))
        kept.append(Quad(named_node(subject), KG.withdrawn, Text(lines), quads[0].graph_name))
    return kept, {claim for claims in reasons.values() for claim in claims}


def _withdraw(finding: Finding, describe: Describe) -> list[Quad]:
    """Replace the statements of a finding by one literal."""
    kept = [quad for quad in finding.quads if quad.subject == finding.node and quad.predicate in _KEPT]
    gone = [quad.triple for quad in finding.quads if quad not in kept]
    for quad in finding.quads:
        if isinstance(quad.object, NamedNode) and quad.object.value.startswith(_SHARED):
            gone += [each.triple for each in describe(quad.object) if each.subject == quad.object]
    lines = sorted(f"{triple} .\n" for triple in dict.fromkeys(gone))
    return [
        *kept,
        Quad(finding.node, RDF.type, KG.RejectedFinding, finding.graph),
        Quad(finding.node, KG.withdrawn, Text("".join(lines)), finding.graph),
    ]


def _restore(quads: Iterable[Quad]) -> tuple[list[Quad], dict[NamedNode, list[Quad]]]:
    """State rejected findings again, with the shared graphs that they need, and unmark accepted ones."""
    restored: list[Quad] = []
    shared: dict[NamedNode, list[Quad]] = defaultdict(list)
    for quad in quads:
        if quad.predicate == KG.withdrawn:
            for triple in parse_withdrawn(quad.object.value if isinstance(quad.object, Text) else ""):
                subject = triple.subject
                # The naming of a district has the IRI of the district with a fragment.
                if isinstance(subject, NamedNode) and subject.value.startswith(_SHARED) and "#" not in subject.value:
                    graph = get_shared_graph(subject)
                    shared[graph].append(Quad(subject, triple.predicate, triple.object, graph))
                else:
                    restored.append(Quad(subject, triple.predicate, triple.object, quad.graph_name))
        elif quad.object != KG.RejectedFinding and quad.predicate != KG.reviewStatus:
            restored.append(quad)
    return restored, shared


def _is_reviewed(quad: Quad) -> bool:
    return quad.predicate in (KG.reviewStatus, KG.withdrawn)
