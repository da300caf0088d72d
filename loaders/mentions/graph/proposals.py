"""Proposals of alignments: names that are close in meaning to a name of a concept, for a person to review.

``kg align`` compares the names of land uses, topics and definitions that are the name of no concept with the names of
all concepts, by the vectors of the embedding model of the search index. ``graph/ext/proposal/{municipality}`` and
``graph/ext/proposal/topics`` have a ``kg:Alignment`` for each pair that is close enough, with ``kg:similarity`` and
``kg:model``. Its confidence is below that of promotion for any similarity: only a person can make it an edge.

A claim that a person reviewed stays until its name or its concept is gone. Claims about a name that has become the name
of a concept are removed, since the exact name decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, ModelError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, RecordOrigin, Rule, Run
from kg.provenance.promotion import Verdicts, build_load_patch
from kg.search.index_sync import Progress
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, named_node, select, term_text
from kg.vocabulary import EXTRACTED, KG, RDF, XSD
from loaders.citations.graph.claims import build_alignment
from loaders.mentions.graph import ALIGNMENTS
from loaders.mentions.graph.concept_names import Table
from loaders.mentions.graph.names_to_align import Named, describe_topic, load_named
from loaders.mentions.label_variants import primary_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION: Final = "1"
METHOD: Final = "embedding-similarity"
CONFIDENCE: Final = "0.5"
"""The confidence of every proposal, below that of promotion."""
THRESHOLDS: Final = {"sentence-transformers/all-MiniLM-L6-v2/int8": 0.73}
"""Least similarity of a proposal, by the name of the model with its precision.

Measured on 417 pairs of names that are not equal, judged by one person: the uses and definitions of a real code of 170
sections and the topics of real policies and speeches, with 81 concepts. At 0.73, 10 of 20 proposals are right, and they
are 0.48 of the right pairs; at 0.78 precision is 0.62 and recall 0.24, at 0.64 0.28 and 0.81. Definitions of concepts,
the last words of names and common words were tried too and separate no better.
"""
MOST_CONCEPTS: Final = 3
"""Maximum number of concepts that are proposed for a name, the closest ones."""
MOST_NAMES: Final = 200_000
"""Maximum number of names of concepts. Vectors of so many take an hour on two cores."""

ALIGNED: Final = """
SELECT ?subject ?predicate ?concept WHERE {
  GRAPH ?graph { ?claim a kg:Alignment ; rdf:subject ?subject ; rdf:predicate ?predicate ; rdf:object ?concept }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

PROPOSED: Final = """
SELECT ?claim ?subject ?predicate ?concept ?similarity ?model ?graph WHERE {
  GRAPH ?graph {
    ?claim rdf:subject ?subject ; rdf:predicate ?predicate ; rdf:object ?concept ;
      kg:similarity ?similarity ; kg:model ?model
  }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

_PROPOSALS: Final = f"{EXTRACTED}proposal/"
_LANGUAGE: Final = "en"
"""The language for which the thresholds were measured. Names in other languages are not compared."""
_EMBEDDED: Final = 128
_COMPARED: Final = 256

Subject = tuple[NamedNode, NamedNode]
"""A land use, topic or definition, with the property that would relate it to a concept."""


class Proposal(NamedTuple):
    """A subject that may be close to a concept."""

    subject: Subject
    concept: str
    similarity: str
    model: str


@dataclass(slots=True)
class ProposalReport:
    """The outcome of `propose_alignments`."""

    model: str
    threshold: float
    names: int = 0
    """Names that are the name of no concept."""
    concepts: int = 0
    """Concepts with a name in English or without a language."""
    proposals: int = 0
    """Proposals in the store, with those that a person reviewed."""
    quads_added: int = 0
    quads_removed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Build the object that ``kg align --json`` prints."""
        return asdict(self)


def propose_alignments(
    kg: KnowledgeGraph, *, least: float | None = None, on_progress: Progress | None = None
) -> ProposalReport:
    """Compare the names that are the name of no concept with the concepts, and commit the proposals.

    `least` is the least similarity, by default that measured for the model. Raises ModelError without an embedding
    model, InvalidInputError for a model that was not measured, if `least` is not given, and for too many concepts.
    """
    advance = on_progress or (lambda done, total, doing: None)
    if kg.search.embed(["concept"]) is None:
        problem = kg.search.status().embedder_error or "No embedding model is installed."
        raise ModelError(f"Proposals need an embedding model. {problem}")
    model = kg.search.status().first_model
    threshold = THRESHOLDS.get(model) if least is None else least
    if threshold is None:
        known = ", ".join(THRESHOLDS)
        raise InvalidInputError(f"No threshold was measured for the model {model}. Pass one, or use {known}.")
    report = ProposalReport(model, threshold)
    table = Table.load(kg.store)
    subjects = _group(load_named(kg.store))
    aligned = _load_aligned(kg.store)
    unnamed = {subject: several for subject, several in subjects.items() if subject not in aligned}
    report.names, concepts = len(unnamed), _find_names(table)
    report.concepts = len({concept for concept, _ in concepts})
    if len(concepts) > MOST_NAMES:
        raise InvalidInputError(f"The concepts have {len(concepts):,} names. At most {MOST_NAMES:,} can be compared.")
    found = _compare(kg, unnamed, concepts, table, report, advance) if unnamed and concepts else []
    kept = _find_reviewed(kg.store)
    _write(kg.store, found, kept, subjects, aligned, table, report)
    return report


def refresh_proposals(store: Store, several: Iterable[Named], table: Table, alignments: Iterable[Quad]) -> None:
    """Remove the proposals whose name or concept is gone, and those for names that have become names of concepts.

    `alignments` are the claims by exact names, which may not be in the store yet.
    """
    stored = list(_load_proposals(store))
    if stored:
        reviewed = _find_reviewed(store)
        found = [each for each in stored if each not in reviewed]
        _write(store, found, reviewed, _group(several), _find_aligned(alignments), table, None)


def _find_aligned(alignments: Iterable[Quad]) -> Mapping[Subject, set[str]]:
    """Find the subjects of these claims, with their concepts."""
    claims: dict[Term, dict[NamedNode, Term]] = defaultdict(dict)
    for quad in alignments:
        claims[quad.subject][quad.predicate] = quad.object
    aligned: dict[Subject, set[str]] = defaultdict(set)
    for said in claims.values():
        if RDF.predicate in said:
            subject = named_node(said[RDF.subject]), named_node(said[RDF.predicate])
            aligned[subject].add(named_node(said[RDF.object]).value)
    return aligned


def _load_aligned(store: Store) -> Mapping[Subject, set[str]]:
    """Load the subjects that have the exact name of concepts, with these concepts."""
    aligned: dict[Subject, set[str]] = defaultdict(set)
    for row in select(store.query, bind(ALIGNED, prefix=Literal(ALIGNMENTS.writes))):
        aligned[named_node(row["subject"]), named_node(row["predicate"])].add(named_node(row["concept"]).value)
    return aligned


def _group(several: Iterable[Named]) -> Mapping[Subject, list[Named]]:
    """Group names by subject, in a stable order."""
    subjects: dict[Subject, list[Named]] = defaultdict(list)
    for each in sorted(set(several), key=str):
        if each.plain:
            subjects[each.node, each.predicate].append(each)
    return subjects


def _find_names(table: Table) -> list[tuple[str, str]]:
    """Find the names of concepts to compare: those in English, and those without a language."""
    return sorted(
        {
            (concept, " ".join(text.split()))
            for concept, kind, tag, text in table.rows
            if kind in ("label", "alias") and primary_language(tag) in ("", "mul", _LANGUAGE) and text.strip()
        }
    )


def _compare(
    kg: KnowledgeGraph,
    subjects: Mapping[Subject, Sequence[Named]],
    concepts: Sequence[tuple[str, str]],
    table: Table,
    report: ProposalReport,
    advance: Progress,
) -> list[Proposal]:
    """Find the closest concepts of each subject with a name in English."""
    names = sorted({each.plain for several in subjects.values() for each in several if each.language == _LANGUAGE})
    vectors = _embed(kg, names, 0, len(names) + len(concepts), advance)
    theirs = _embed(kg, [text for _, text in concepts], len(names), len(names) + len(concepts), advance)
    import numpy as np  # not needed by a load

    owners = np.array([concept for concept, _ in concepts])
    not_named = {(concept, text.casefold()) for concept, kind, _, text in table.rows if kind == "negative"}
    close: dict[str, list[tuple[str, float]]] = {}
    for start in range(0, len(names), _COMPARED):
        cosines = vectors[start : start + _COMPARED] @ theirs.T
        for name, row in zip(names[start : start + _COMPARED], cosines, strict=True):
            best: dict[str, float] = {}
            for column in np.flatnonzero(row >= report.threshold):
                concept = str(owners[column])
                if (concept, name.casefold()) not in not_named:
                    best[concept] = max(best.get(concept, 0.0), float(row[column]))
            close[name] = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_CONCEPTS]
    return [
        Proposal(subject, concept, f"{min(similarity, 1.0):.3f}", report.model)
        for subject, several in subjects.items()
        for name in dict.fromkeys(each.plain for each in several if each.language == _LANGUAGE)
        for concept, similarity in close[name]
    ]


def _embed(kg: KnowledgeGraph, texts: Sequence[str], done: int, total: int, advance: Progress) -> NDArray[np.float32]:
    """Compute a unit vector of each text, in lower case: the capitals of a source have no meaning."""
    rows: list[Sequence[float]] = []
    for start in range(0, len(texts), _EMBEDDED):
        advance(done + start, total, "comparing names")
        made = kg.search.embed([text.casefold() for text in texts[start : start + _EMBEDDED]])
        if made is None:
            raise ModelError(f"The embedding model failed: {kg.search.status().embedder_error or 'no vectors'}.")
        rows += made
    import numpy as np

    return np.array(rows, dtype=np.float32).reshape(len(texts), -1)


def _find_reviewed(store: Store) -> set[Proposal]:
    """Find the stored proposals that a person accepted or rejected."""
    verdicts = Verdicts.load(store.query)
    reviewed = verdicts.accepted.keys() | verdicts.rejected.keys()
    return set(_load_proposals(store, reviewed)) if reviewed else set()


def _load_proposals(store: Store, among: Collection[Term] | None = None) -> Iterator[Proposal]:
    """Load the stored proposals; with `among`, those whose claims are in it."""
    for row in select(store.query, bind(PROPOSED, prefix=Literal(_PROPOSALS))):
        if among is None or row["claim"] in among:
            subject = named_node(row["subject"]), named_node(row["predicate"])
            concept, similarity = named_node(row["concept"]).value, term_text(row["similarity"])
            yield Proposal(subject, concept, similarity, term_text(row["model"]))


def _write(
    store: Store,
    found: Iterable[Proposal],
    reviewed: Collection[Proposal],
    subjects: Mapping[Subject, Sequence[Named]],
    aligned: Mapping[Subject, Collection[str]],
    table: Table,
    report: ProposalReport | None,
) -> None:
    """Commit the valid ones of these proposals in place of the stored ones; the last score of a pair counts."""
    live = {concept for concept, *_ in table.rows}
    valid: dict[tuple[Subject, str], Proposal] = {}
    for each in (*(each for each in found if each.subject not in aligned), *sorted(reviewed, key=str)):
        if each.subject in subjects and each.concept in live and each.concept not in aligned.get(each.subject, ()):
            valid[each.subject, each.concept] = each
    stored = select(store.query, bind(PROPOSED, prefix=Literal(_PROPOSALS)))
    replace: dict[NamedNode, list[Quad]] = {named_node(row["graph"]): [] for row in stored}
    sources: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    for each in valid.values():
        graph = NamedNode(_PROPOSALS + subjects[each.subject][0].unit)
        node, predicate = each.subject
        claim, quads = build_alignment(graph, (node, predicate, NamedNode(each.concept)), CONFIDENCE, METHOD)
        quads = [
            *quads,
            Quad(claim, KG.similarity, Literal(each.similarity, datatype=XSD.decimal), graph),
            Quad(claim, KG.model, Literal(each.model), graph),
        ]
        for named in subjects[each.subject]:
            sources[graph].add(named.graph)
            if each.subject not in aligned:  # else the graph of exact names describes it
                quads += describe_topic(named, graph)
        replace.setdefault(graph, []).extend(quads)
    if replace:
        rule = Rule("propose-alignment", VERSION, "a name close in meaning to that of a concept, left to a person")
        config = {} if report is None else {"model": report.model, "threshold": f"{report.threshold:g}"}
        run = Run(Agent("loaders.proposals", VERSION), config)
        origins = {graph: RecordOrigin("", (), sorted(of, key=str), rule) for graph, of in sources.items()}
        contents = {graph: list(dict.fromkeys(quads)) for graph, quads in replace.items()}
        commit = store.commit(contents, build_load_patch(run, store, contents, origins))
        if report is not None:
            report.quads_added, report.quads_removed = commit.added, commit.removed
    if report is not None:
        report.proposals = len(valid)
