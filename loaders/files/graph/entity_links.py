"""Links of entities: claims that one may be the same as another, or as a concept, a place, a person or a law.

``graph/ext/entities/links/{type}/{norm}`` has the links of an entity, each with its first mention as evidence. A link
is promoted and rejected like any claim, so a merge of two entities can be undone. Candidates share their normalized
name, or all but one letter of it, or most of their words; or the same words mention a concept, cite a law, or are the
name of a place or person. The score is that of `score_link`. All links are computed again after each change of files,
from the mentions alone, so they do not depend on the order of loads. After a load of another domain, only those of the
entities with other candidates outside of the files are. Statements of user graphs are not read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad
from rapidfuzz.distance import Levenshtein
from rapidfuzz.fuzz import ratio

from kg.derivations.engine import Whole
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Derived, RecordOrigin
from kg.sparql.terms import bind
from kg.store.protocol import AT_ONCE, Store, batched, named_node, select, select_each, term_text
from kg.vocabulary import CITATIONS, EXTRACTED, KG, RDF, iri_prefix, mint, mint_claim, mint_span, sha256
from kg.words import stems
from loaders.citations.graph.claims import Evidence, evidence_quads, method_quads
from loaders.files.extraction.entity_model import normalize_name
from loaders.files.graph import ENTITIES, LINKS

THRESHOLD: Final = 0.72
"""Least score of a link that is an edge."""
LISTED: Final = 0.6
"""Least score of a link that is listed for review. It is asserted if a person accepts it."""
_UNSURE: Final = 0.69
"""Most confidence of a link below `THRESHOLD`, which is less than claims need to be promoted."""
SAME_NAME: Final = 0.85
"""Least score of a link between two entities with one name, whose types differ: extraction is less sure of types than
of names (F1 with types 0.80, without 0.96 on the pages held out)."""
LEAST_SHARED: Final = 0.6
"""Least share of words that the names of two candidates have in common."""

_LINKS: Final = LINKS.writes
_FILES: Final = ENTITIES.writes
_INSIDE: Final = (*ENTITIES.reads, _FILES, f"{mint('graph', 'ref', 'entity').value}/", f"{CITATIONS}files/")
"""How the names of the graphs begin whose changes may concern any link."""
_ENTITY: Final = iri_prefix("entity")
_COMMON: Final = 50
"""A word that more names have is not used to find candidates."""
_CONTEXT: Final = 120

MENTIONS: Final = """
SELECT ?entity ?unit ?start ?end WHERE {
  GRAPH ?graph { ?mention kg:object ?entity ; oa:hasSource ?unit ; kg:start ?start ; kg:end ?end ; kg:matchType ?type }
  FILTER(?type != "coreference" && STRSTARTS(STR(?graph), $files))
} ORDER BY ?entity ?unit ?start"""

NAMES: Final = """
SELECT ?thing ?name WHERE { VALUES ?thing { $things } ?thing skos:prefLabel|skos:altLabel|foaf:name ?name }"""

TEXTS: Final = """
SELECT ?unit ?text WHERE { VALUES ?unit { $things } ?unit schema:text ?text }"""

CONCEPTS: Final = """
SELECT DISTINCT ?entity ?thing WHERE {
  GRAPH ?files { ?mention kg:object ?entity ; oa:hasSource ?unit ; kg:start ?start ; kg:end ?end }
  FILTER(STRSTARTS(STR(?files), $files))
  GRAPH ?others { ?other oa:hasSource ?unit ; kg:start ?start ; kg:end ?end ; kg:object ?thing }
  FILTER(STRSTARTS(STR(?others), $concepts))
}"""

LAWS: Final = """
SELECT DISTINCT ?entity ?thing ?confidence WHERE {
  GRAPH ?files { ?mention kg:object ?entity ; oa:hasSource ?unit ; kg:start ?start ; kg:end ?end }
  FILTER(STRSTARTS(STR(?files), $files) && STRSTARTS(STR(?entity), $regulations))
  GRAPH ?cited { ?span oa:hasSource ?unit ; kg:start ?start ; kg:end ?end .
    ?claim kg:evidence ?span ; rdf:predicate eli:cites ; rdf:object ?thing ; kg:confidence ?confidence }
  ?thing a kg:ExternalLaw
}"""

NAMED: Final = """
SELECT DISTINCT ?name ?thing ?kind WHERE {
  VALUES ?name { $names }
  { ?thing skos:prefLabel ?name ; a kg:Place BIND("place" AS ?kind) }
  UNION { ?thing foaf:name ?name ; a foaf:Person BIND("person" AS ?kind) }
}"""

DESCRIBED: Final = """
SELECT DISTINCT ?span WHERE {
  VALUES ?span { $things } GRAPH ?graph { ?span a kg:TextSpan } FILTER(!STRSTARTS(STR(?graph), $links))
}"""

DEFINITIONS: Final = """
SELECT ?thing ?definition WHERE { VALUES ?thing { $things } ?thing skos:definition ?definition }"""

STORED: Final = """
SELECT DISTINCT ?graph WHERE { GRAPH ?graph { ?link a kg:EntityLink } FILTER(STRSTARTS(STR(?graph), $links)) }"""


@dataclass(slots=True)
class Linked:
    """Something that an entity may be the same as, or an entity: its names, its type and a text about it."""

    iri: NamedNode
    type: str
    names: tuple[str, ...]
    context: str = ""
    mentions: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """The first mention of an entity: the characters `start` to `end` of a text unit."""

    unit: NamedNode
    start: int
    end: int


def score_link(cosine: float, string: float, type_: float, context: float, popularity: float) -> float:
    """Return the score of a link from 0 to 1. All arguments are from 0 to 1."""
    return 0.45 * cosine + 0.25 * string + 0.15 * type_ + 0.10 * context + 0.05 * popularity


def compare_types(one: str, other: str) -> float:
    """Return how well two types agree: a term may be anything, and software is often taken for its maker."""
    if one == other or "term" in (one, other):
        return 1.0
    return 0.7 if {one, other} <= {"product", "api", "organization"} else 0.2


def find_candidates(
    entities: Sequence[Linked], wanted: Collection[str] | None = None
) -> Iterator[tuple[Linked, Linked]]:
    """Find the pairs of entities with similar names, each once and in order: those whose first one is `wanted`."""
    first = None if wanted is None else {number for number, each in enumerate(entities) if each.iri.value in wanted}

    def pair(group: Iterable[int]) -> Iterator[tuple[int, int]]:
        listed = list(dict.fromkeys(group))
        if first is None or not first.isdisjoint(listed):
            yield from (each for each in combinations(listed, 2) if first is None or each[0] in first)

    by_norm: dict[str, list[int]] = defaultdict(list)
    by_hole: dict[str, list[int]] = defaultdict(list)
    by_word: dict[str, list[int]] = defaultdict(list)
    words: list[list[frozenset[str]]] = []
    for number, entity in enumerate(entities):
        words.append([frozenset(name.casefold().split()) for name in entity.names])
        for norm in {normalize_name(name) for name in entity.names}:
            by_norm[norm].append(number)
            if len(norm) > _SHORT and not any(map(str.isdigit, norm)):
                for hole in {norm[:at] + norm[at + 1 :] for at in range(len(norm))} | {norm}:
                    by_hole[hole].append(number)
        for word in frozenset().union(*words[-1]):
            by_word[word].append(number)
    pairs: set[tuple[int, int]] = set()
    for group in by_norm.values():
        pairs.update(pair(group))
    for group in by_hole.values():
        pairs.update(each for each in pair(group) if _is_near(entities, *each))
    for group in by_word.values():
        if 1 < len(group) <= _COMMON:
            pairs.update(each for each in pair(group) if _share(words, *each) >= LEAST_SHARED)
    for one, other in sorted(pairs):
        if "date" not in (entities[one].type, entities[other].type) and not _differ_in_numbers(
            entities[one], entities[other]
        ):
            yield entities[one], entities[other]


_SHORT: Final = 4
_SHORTEST_SAME: Final = 3
_DISTINCT: Final = ({"person", "place"}, {"person", "organization"}, {"place", "organization"})
"""Types whose entities often have the same name: a person and a town, a town and its club."""


def _is_near(entities: Sequence[Linked], one: int, other: int) -> bool:
    norms = [{normalize_name(name) for name in entities[number].names} for number in (one, other)]
    return any(Levenshtein.distance(a, b, score_cutoff=1) <= 1 for a in norms[0] for b in norms[1])


def _share(words: Sequence[Sequence[frozenset[str]]], one: int, other: int) -> float:
    return max((len(a & b) / len(a | b) for a in words[one] for b in words[other]), default=0.0)


def _differ_in_numbers(one: Linked, other: Linked) -> bool:
    """Whether the names of two entities have different numbers: ``ISO 9001`` and ``ISO 9002`` are two standards."""
    digits = [{"".join(filter(str.isdigit, name)) for name in each.names} for each in (one, other)]
    return digits[0].isdisjoint(digits[1])


def is_same_name(one: Linked, other: Linked) -> bool:
    """Whether two entities of files have one normalized name, and types that name recognition confuses.

    A name in code is that of another type only if both are spelled the same: the function ``bind`` is not ``BIND``.
    """
    ends = [each.iri.value.removeprefix(_ENTITY).partition("/") for each in (one, other)]
    if not all(each.iri.value.startswith(_ENTITY) for each in (one, other)) or ends[0][2] != ends[1][2]:
        return False
    if "api" in (one.type, other.type) and set(one.names).isdisjoint(other.names):
        return False
    return len(ends[0][2]) >= _SHORTEST_SAME and {one.type, other.type} not in _DISTINCT


def compare_names(one: Linked, other: Linked) -> float:
    """Return the similarity of the most similar names of two entities."""
    return max((ratio(a.casefold(), b.casefold()) / 100 for a in one.names for b in other.names), default=0.0)


class Links(Whole):
    """The derivation of links from the entities of files, and from the names of other domains."""

    config: Mapping[str, str] = {"threshold": str(THRESHOLD)}

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg: Final = kg

    def compute(self, before: bytes | None, touched: Collection[NamedNode]) -> tuple[Derived, bytes]:
        """Compute the links of entities.

        If no file has changed, they are those of the entities with other candidates outside of the files than before.
        """
        kg, store = self.kg, self.kg.store
        if any(graph.value.startswith(_INSIDE) for graph in touched):
            before = None
        known, places = _load_entities(store)
        stored = {named_node(row["graph"]) for row in select(store.query_sources, bind(STORED, links=Literal(_LINKS)))}
        if not known and not stored:
            return {}, b"{}"
        laws, outside = list(_find_laws(store, known)), _find_outside(store, known)
        hashes = _hash_candidates(laws, outside)
        entities = [*known.values()]
        if before is None:
            pairs = [*find_candidates(entities), *outside]
        else:
            earlier = json.loads(before)
            changed = {iri for iri in earlier.keys() | hashes.keys() if earlier.get(iri) != hashes.get(iri)}
            laws = [each for each in laws if each[0].iri.value in changed]
            pairs = [*find_candidates(entities, changed), *(each for each in outside if each[0].iri.value in changed)]
            stored &= {NamedNode(_LINKS + iri.removeprefix(_ENTITY)) for iri in changed}
        found = [*laws, *_score(kg, known, places, pairs)]
        wanted: dict[NamedNode, list[Quad]] = {graph: [] for graph in stored}
        texts = _load_texts(store, {places[one.iri.value].unit for one, _, _, _ in found})
        told: dict[NamedNode, set[NamedNode]] = defaultdict(
            _find_described(store, [places[one.iri.value] for one, _, _, _ in found]).copy
        )
        for one, other, score, method in found:
            graph = NamedNode(_LINKS + one.iri.value.removeprefix(_ENTITY))
            place = places[one.iri.value]
            words = texts[place.unit.value][place.start : place.end]
            evidence = Evidence(place.unit, place.start, place.end, words, round(score, 4), method)
            node = mint_claim(one.iri, KG.sameAsCandidate, other.iri, graph)
            if node in told[graph]:
                continue
            told[graph].add(node)
            quads = wanted.setdefault(graph, [])
            quads += [
                Quad(node, RDF.type, KG.Statement, graph),
                Quad(node, RDF.type, KG.EntityLink, graph),
                Quad(node, RDF.subject, one.iri, graph),
                Quad(node, RDF.predicate, KG.sameAsCandidate, graph),
                Quad(node, RDF.object, other.iri, graph),
                *method_quads(node, evidence, graph),
                *evidence_quads(node, evidence, graph, told[graph]),
            ]
        made = {
            graph: (quads, RecordOrigin("", (), derived_from=_get_sources(graph))) for graph, quads in wanted.items()
        }
        return made, json.dumps(hashes).encode()


def _hash_candidates(
    laws: Iterable[tuple[Linked, Linked, float, str]], outside: Iterable[tuple[Linked, Linked]]
) -> dict[str, str]:
    """Hash the candidates of each entity outside of the files, with their names and definitions."""
    found: dict[str, list[str]] = defaultdict(list)
    for one, law, confidence, _ in laws:
        found[one.iri.value].append(f"{law.iri.value} {confidence}")
    for one, other in outside:
        found[one.iri.value].append(repr((other.iri.value, other.type, other.names, other.context)))
    return {iri: sha256("\n".join(sorted(said))) for iri, said in found.items()}


def _find_described(store: Store, places: Iterable[Place]) -> set[NamedNode]:
    """Find the spans that other claims describe, as that of a citation with the same words."""
    spans = list(dict.fromkeys(mint_span(place.unit, place.start, place.end) for place in places))
    rows = select_each(store.query_sources, DESCRIBED, "things", spans, links=Literal(_LINKS))
    return {named_node(row["span"]) for row in rows}


def _get_sources(graph: NamedNode) -> list[NamedNode]:
    return [NamedNode(graph.value.replace("/graph/ext/entities/links/", "/graph/ref/entity/"))]


def _load_entities(store: Store) -> tuple[dict[str, Linked], dict[str, Place]]:
    """Load the entities that a file mentions, and the first mention of each, by their IRIs in order."""
    known: dict[str, Linked] = {}
    places: dict[str, Place] = {}
    for row in select(store.query_sources, bind(MENTIONS, files=Literal(_FILES))):
        iri = named_node(row["entity"]).value
        if iri in known:
            known[iri].mentions += 1
            continue
        type_ = iri.removeprefix(_ENTITY).partition("/")[0]
        known[iri] = Linked(NamedNode(iri), type_, (), mentions=1)
        places[iri] = Place(named_node(row["unit"]), int(term_text(row["start"])), int(term_text(row["end"])))
    names = _load_names(store, [each.iri for each in known.values()])
    for iri, own in names.items():
        known[iri].names = tuple(sorted(own))
    return dict(sorted(known.items())), places


def _load_names(store: Store, things: Sequence[NamedNode]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in select_each(store.query_sources, NAMES, "things", things):
        found[named_node(row["thing"]).value].add(term_text(row["name"]))
    return found


def _load_texts(store: Store, units: set[NamedNode]) -> dict[str, str]:
    rows = select_each(store.query_sources, TEXTS, "things", sorted(units, key=str))
    return {named_node(row["unit"]).value: term_text(row["text"]) for row in rows}


def _find_laws(store: Store, known: Mapping[str, Linked]) -> Iterator[tuple[Linked, Linked, float, str]]:
    """Find the laws that are cited by the words of a mention."""
    query = bind(LAWS, files=Literal(_FILES), regulations=Literal(f"{_ENTITY}regulation/"))
    for row in sorted(select(store.query_sources, query), key=lambda row: (str(row["entity"]), str(row["thing"]))):
        one = known.get(named_node(row["entity"]).value)
        if one is not None:
            law = Linked(named_node(row["thing"]), "regulation", one.names)
            yield one, law, float(term_text(row["confidence"])), "citation"


def _find_outside(store: Store, known: Mapping[str, Linked]) -> list[tuple[Linked, Linked]]:
    """Find the concepts, places and people that entities may be."""
    pairs: list[tuple[Linked, Linked]] = []
    prefix = Literal(f"{EXTRACTED}mentions/files/")
    things: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in select(store.query_sources, bind(CONCEPTS, files=Literal(_FILES), concepts=prefix)):
        things[named_node(row["thing"]).value].append((named_node(row["entity"]).value, "term"))
    names = {
        (each.type, name): each for each in known.values() if each.type in ("place", "person") for name in each.names
    }
    spelt = sorted({name for _, name in names})
    literals = (each for name in spelt for each in (Literal(name), Literal(name, language="en")))
    for row in select_each(store.query_sources, NAMED, "names", literals):
        one = names.get((term_text(row["kind"]), term_text(row["name"])))
        if one is not None:
            things[named_node(row["thing"]).value].append((one.iri.value, term_text(row["kind"])))
    nodes = [NamedNode(iri) for iri in sorted(things)]
    labels = _load_names(store, nodes)
    defined: dict[str, str] = {}
    for row in select_each(store.query_sources, DEFINITIONS, "things", nodes):
        iri, text = named_node(row["thing"]).value, term_text(row["definition"])
        defined[iri] = min(text, defined.get(iri, text))
    for iri in sorted(things):
        for entity, kind in sorted(things[iri]):
            if entity in known:
                names_of = tuple(sorted(labels.get(iri, ())))
                pairs.append((known[entity], Linked(NamedNode(iri), kind, names_of, defined.get(iri, ""))))
    return pairs


def _score(
    kg: KnowledgeGraph, known: Mapping[str, Linked], places: Mapping[str, Place], pairs: Sequence[tuple[Linked, Linked]]
) -> Iterator[tuple[Linked, Linked, float, str]]:
    """Score candidates, and yield those that are to be listed. Each text is embedded once."""
    compared = {each.iri.value: each for pair in pairs for each in pair}
    own = {iri for iri in compared if iri in places}
    texts = _load_texts(kg.store, {places[iri].unit for iri in own})
    for iri in own:
        place = places[iri]
        text = texts[place.unit.value]
        compared[iri].context = text[max(0, place.start - _CONTEXT) : place.end + _CONTEXT]
    most = max((each.mentions for each in known.values()), default=1)
    described = {iri: f"{min(each.names, default='')}. {each.context}" for iri, each in compared.items()}
    vectors = _embed(kg, sorted(set(described.values())))
    for one, other in pairs:
        cosine = _compare(vectors, described[one.iri.value], described[other.iri.value])
        string = compare_names(one, other)
        shared = _share([[frozenset(stems(each.context))] for each in (one, other)], 0, 1)
        popularity = max(one.mentions, other.mentions) / most
        score = score_link(cosine, string, compare_types(one.type, other.type), shared, popularity)
        if is_same_name(one, other):
            yield one, other, min(max(score, SAME_NAME), 1.0), "same name"
        elif score >= LISTED:
            is_sure = score >= THRESHOLD and not one.type == other.type == "api"
            yield one, other, min(score, 1.0) if is_sure else min(score, _UNSURE), "similar names and contexts"


def _compare(vectors: Mapping[str, Sequence[float]], one: str, other: str) -> float:
    """Return the cosine of two texts; without vectors, that of their words. Negative ones count as 0."""
    if vectors:
        return max(0.0, sum(a * b for a, b in zip(vectors[one], vectors[other], strict=True)))
    mine, theirs = _words_of(one), _words_of(other)
    return len(mine & theirs) / ((len(mine) * len(theirs)) ** 0.5 or 1.0)


@lru_cache(maxsize=4_096)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(stems(text))


def _embed(kg: KnowledgeGraph, texts: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """Compute the vectors of texts; none without an embedding model."""
    rows: dict[str, Sequence[float]] = {}
    for part in batched(texts, AT_ONCE):
        made = kg.search.embed(part)
        if made is None:
            return {}
        rows |= dict(zip(part, made, strict=True))
    return rows
