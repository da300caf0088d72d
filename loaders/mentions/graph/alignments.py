"""Alignments of land uses, topics and definitions with the concepts whose names they have, as claims.

``graph/ext/alignment/{municipality}`` and ``graph/ext/alignment/topics`` have a ``kg:Alignment`` for each: a land use
or a topic is close to a concept (``skos:closeMatch``), a definition defines one (``kg:definesConcept``). The whole name
must be a name of the concept in the language of its place, in singular or plural. A claim by label or alias is
promoted; one by a name that several concepts of a Wikibase have is left to a person (``review_claim``).

Topics are the subjects (``dcterms:subject``) of documents, which are plain words. One that is aligned gets a node,
``vocab/topic/{topic}``, whose ``kg:topicAsRecorded`` are those words.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256 as hash_of
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.provenance.promotion import build_load_patch
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Store, named_node, select
from kg.vocabulary import BASE, EXTRACTED, KG, PROV_GRAPH, RDF, SKOS, XSD, mint, sha256
from loaders.languages.detection import UNDETERMINED
from loaders.languages.jurisdictions import find_language
from loaders.mentions.graph.concept_names import Table
from loaders.mentions.matcher import Match, Matcher, filter_possible

VERSION: Final = "1"
"""A new version aligns everything again."""
CONFIDENCES: Final = {"label": "0.95", "alias": "0.85"}
"""Confidence of an alignment by the preferred or an alternative name of a concept."""
AMBIGUOUS: Final = "0.5"
"""Confidence if several concepts of a Wikibase have the name."""

DEFINITIONS: Final = """
SELECT ?thing ?name ?place ?graph WHERE {
  GRAPH ?graph { ?thing a kg:Definition ; skos:prefLabel ?name ; kg:jurisdiction ?place }
}"""

# Only uses that some rule is about: the claim itself must not keep the graph of a use that is otherwise unused.
LAND_USES: Final = """
SELECT DISTINCT ?thing ?name ?place ?graph WHERE {
  ?rule kg:landUse ?thing . GRAPH ?graph { ?thing a kg:LandUse ; skos:prefLabel ?name ; kg:jurisdiction ?place }
}"""

SUBJECTS: Final = """
SELECT DISTINCT ?name ?place ?graph WHERE {
  { SELECT DISTINCT ?name ?place (MIN(?home) AS ?graph) WHERE {
    GRAPH ?home { ?document dcterms:subject ?name ; kg:jurisdiction ?place }
    FILTER(STRSTARTS(STR(?home), $sources))
  } GROUP BY ?name ?place }
}"""

ALIGNED: Final = """
SELECT ?graph WHERE { GRAPH $prov { ?graph a kg:ExtractedGraph } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

_ALIGNMENTS: Final = f"{EXTRACTED}alignment/"
_PREFIX: Final = Literal(_ALIGNMENTS)
_TOPICS: Final = NamedNode(f"{_ALIGNMENTS}topics")
_THINGS: Final = f"{BASE}id/"
_STATE: Final = "aligned.json"


class Named(NamedTuple):
    """A name that may be that of a concept: of a node, or the words of a topic (`thing` is None)."""

    name: str
    language: str
    place: NamedNode
    graph: NamedNode
    """The graph that states the name."""
    predicate: NamedNode
    thing: NamedNode | None = None


def refresh_alignments(store: Store, table: Table, folder: Path, *, full: bool = False) -> int:
    """Align the land uses, topics and definitions in the store with the concepts of `table`.

    Commits what has changed and returns the number of alignments. `folder` has the state: if neither names nor concepts
    have changed since the last time, nothing is searched, unless `full`.
    """
    several = sorted(set(load_named(store)), key=str) if table.rows else []
    content = "\n".join(map(str, several)).encode(errors="surrogatepass")
    state = {"version": VERSION, "table": table.digest, "names": hash_of(content).hexdigest()}
    path = folder / _STATE
    before = _load_state(path)
    stored = [named_node(row["graph"]) for row in select(store.query, bind(ALIGNED, prov=PROV_GRAPH, prefix=_PREFIX))]
    if not full and state == {key: before.get(key) for key in state} and bool(stored) == bool(before.get("count")):
        return int(before.get("count") or 0)
    made = build_alignments(several, table)
    replace: dict[NamedNode, Sequence[Quad]] = {graph: quads for graph, (quads, _) in made.items()}
    origins = {graph: RecordOrigin("", (), sources) for graph, (_, sources) in made.items()}
    replace |= {graph: () for graph in stored if graph not in made}
    if replace:
        run = Run(Agent("loaders.alignments", VERSION), {"names": table.digest})
        store.commit(replace, build_load_patch(run, store, replace, origins))
    count = sum(quad.predicate == RDF.predicate for quads in replace.values() for quad in quads)
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({**state, "count": count}), encoding="utf-8")
    partial.replace(path)
    return count


def load_named(store: Store) -> Iterator[Named]:
    """Load the names of land uses, definitions and topics, with their languages."""
    for query, predicate in ((LAND_USES, SKOS.closeMatch), (DEFINITIONS, KG.definesConcept)):
        for row in select(store.query, bind(query)):
            yield from _named(row, predicate)
    for row in select(store.query, bind(SUBJECTS, sources=Literal(f"{BASE}graph/src/"))):
        yield from _named(row, SKOS.closeMatch)


def _named(row: Mapping[str, object], predicate: NamedNode) -> Iterator[Named]:
    name, place, graph, thing = row.get("name"), row.get("place"), row.get("graph"), row.get("thing")
    if not isinstance(name, Literal) or not isinstance(place, NamedNode) or not isinstance(graph, NamedNode):
        return
    if is_user_graph(graph) or (thing is not None and not isinstance(thing, NamedNode)):
        return
    language = name.language or find_language(place) or UNDETERMINED
    yield Named(name.value, language, place, graph, predicate, thing)


def build_alignments(
    several: Iterable[Named], table: Table
) -> Mapping[NamedNode, tuple[Sequence[Quad], Sequence[NamedNode]]]:
    """Build the graphs of alignments, each with the graphs that it was derived from."""
    named = [(each, plain) for each in several if (plain := " ".join(each.name.replace("_", " ").split()))]
    matcher = Matcher(filter_possible(table.labels(), {plain for _, plain in named}), table.confusable())
    quads: dict[NamedNode, dict[Quad, None]] = defaultdict(dict)
    sources: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    for each, plain in named:
        whole = [match for match in matcher.find(plain, [each.language]) if match[:2] == (0, len(plain))]
        graph = _TOPICS if each.thing is None else NamedNode(_ALIGNMENTS + each.place.value.removeprefix(_THINGS))
        for match in whole:
            quads[graph].update(dict.fromkeys(_to_quads(each, plain, match, whole, graph)))
            sources[graph].add(each.graph)
    return {graph: (list(found), sorted(sources[graph], key=str)) for graph, found in quads.items()}


def _to_quads(each: Named, plain: str, match: Match, whole: Sequence[Match], graph: NamedNode) -> Iterator[Quad]:
    """Yield the claim that a name is that of a concept, and the node of its topic."""
    thing, concept = each.thing, NamedNode(match.concept)
    if thing is None:
        thing = mint("code", "topic", plain.casefold())
        yield Quad(thing, RDF.type, SKOS.Concept, graph)
        yield Quad(thing, SKOS.inScheme, mint("code", "topic"), graph)
        language = None if each.language == UNDETERMINED else each.language
        yield Quad(thing, SKOS.prefLabel, Literal(plain.casefold(), language=language), graph)
        yield Quad(thing, KG.topicAsRecorded, Literal(each.name), graph)
    base = match.concept.rpartition("/")[0]
    alike = sum(other.concept.rpartition("/")[0] == base for other in whole)
    confidence = CONFIDENCES[match.kind] if alike == 1 else AMBIGUOUS
    claim = mint("statement", sha256(f"{thing} {each.predicate} {concept} {graph} .\n")[:32])
    yield Quad(claim, RDF.type, KG.Alignment, graph)
    yield Quad(claim, RDF.subject, thing, graph)
    yield Quad(claim, RDF.predicate, each.predicate, graph)
    yield Quad(claim, RDF.object, concept, graph)
    yield Quad(claim, KG.confidence, Literal(confidence, datatype=XSD.decimal), graph)
    yield Quad(claim, KG.method, Literal(f"{match.kind}-equality"), graph)


def _load_state(path: Path) -> dict[str, Any]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}
