"""Entities and relations of files: F1 on the golden set and on Re-DocRED, beside spaCy alone, and the speed.

``python -m tests.benchmarks documents [-- --documents N]``. The golden set (`tests.loaders.files.golden_pages`) has 20
pages that the extraction was written on and 10 that it was not. Of Re-DocRED (documents of Wikipedia), which is skipped
where it is absent, the types PER, ORG, LOC and TIME are mapped to person, organization, place and date (with a year),
and the properties of `PROPERTIES` to relations. It labels relations of whole documents, most of which no sentence
states.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from kg import bundle
from loaders.files.extraction.entities import extract_entities, read_entities
from loaders.files.extraction.entity_model import EntityType, Extraction, normalize_name
from loaders.files.extraction.gazetteer import choose_names, count_names
from loaders.files.extraction.language_pipeline import DEFAULT, load_pipeline
from loaders.files.extraction.patterns import has_year
from loaders.files.extraction.plain_text import build_outline
from loaders.files.readers.markdown import read_markdown
from tests.benchmarks.comparison import Comparison
from tests.loaders.files.golden_pages import Page, Score, Triple, get_mentions, read_pages, score_pages

DATA: Final = bundle.folder("fixtures").parent.parent / "shared" / "data" / "nlp" / "redocred_dev.json"
TYPES: Final[Mapping[str, EntityType]] = {
    "PER": "person",
    "ORG": "organization",
    "LOC": "place",
    "TIME": "date",
}
PROPERTIES: Final[Mapping[str, tuple[str, bool]]] = {
    "P131": ("located_in", False),
    "P276": ("located_in", False),
    "P159": ("located_in", False),
    "P17": ("located_in", False),
    "P706": ("located_in", False),
    "P361": ("part_of", False),
    "P527": ("part_of", True),
    "P127": ("owned_by", False),
    "P137": ("owned_by", False),
    "P749": ("owned_by", False),
    "P355": ("owned_by", True),
    "P156": ("precedes", False),
    "P155": ("precedes", True),
}
"""Properties of Wikidata as relations, and whether subject and object change places."""
SPEED: Final = 0.7
"""Least share of the speed of spaCy alone with the same components."""
MIN_FREQ: Final = 3
"""The default of QUADCITE_GAZETTEER_MIN_FREQ."""
ENTITIES: Final = 0.75
RELATIONS: Final = 0.6
_TEXT: Final = 150_000
"""Characters of the project's own documentation by which the speed is measured."""


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="documents")
    parser.add_argument("--documents", type=int, default=100, help="documents of Re-DocRED")
    chosen = parser.parse_args(arguments)
    for name, words in (("developed", "developed on"), ("held_out", "held out")):
        pages = list(read_pages(name))
        gazetteer = choose_names(count_all(pages), MIN_FREQ, 2_000)
        typed, plain, relations = score_pages(pages, [extract(page.text, gazetteer) for page in pages])
        alone, alone_plain = score_alone(pages)
        yield at_least(f"F1 of entities, {len(pages)} pages {words}", typed.f1, alone.f1, ENTITIES)
        yield Comparison(f"F1 of their spans, {words}", round(plain.f1, 3), round(alone_plain.f1, 3), "F1")
        yield at_least(f"F1 of relations, {words}", relations.f1, None, RELATIONS)
        every = choose_names(count_all(pages), 1, 2_000)
        typed = score_pages(pages, [extract(page.text, every) for page in pages])[0]
        yield at_least(f"F1 of entities with {len(every)} names of other pages, {words}", typed.f1, None, ENTITIES)
    yield from measure_speed()
    if DATA.exists():
        yield from score_documents(json.loads(DATA.read_text())[: chosen.documents])


def at_least(name: str, ours: float, other: float | None, target: float) -> Comparison:
    """Build the comparison of an F1 with its target."""
    met = ours >= target
    return Comparison(name, round(ours, 3), None if other is None else round(other, 3), "F1", f">= {target}", met)


def extract(text: str, gazetteer: Sequence[str] = ()) -> Extraction:
    """Extract with the pipeline of the settings."""
    return extract_entities(text, "text/markdown", None, load_pipeline(DEFAULT), gazetteer)


def count_all(pages: Sequence[Page]) -> Counter[str]:
    """Count the names that the pages show, as those of one collection."""
    counts: Counter[str] = Counter()
    for page in pages:
        found = read_markdown(page.text, "page")
        counts += count_names(found.text, found.blocks, found.title)
    return counts


def score_alone(pages: Sequence[Page]) -> tuple[Score, Score]:
    """Score the named entities of spaCy, with the types and the trimming of ours, by span and type and by span."""
    typed, plain = Score(), Score()
    for page in pages:
        own = {(start, end, type_) for start, end, _, type_, _ in read_entities(load_pipeline(DEFAULT)(page.text))}
        typed.add(own, page.mentions)  # type: ignore[arg-type]
        plain.add({spot[:2] for spot in own}, {spot[:2] for spot in page.mentions})
    return typed, plain


def measure_speed() -> Iterator[Comparison]:
    """Compare the speed with that of spaCy alone on the same text without notation, by processor time, in turns."""
    texts = [path.read_text() for path in sorted((Path(__file__).parents[2] / "kg" / "docs").glob("*.md"))]
    texts += [page.text for name in ("developed", "held_out") for page in read_pages(name)]
    chosen: list[str] = []
    for text in sorted(texts, key=len):
        if sum(map(len, chosen)) + len(text) <= _TEXT:
            chosen.append(text)
    pipeline = load_pipeline(DEFAULT)
    size = sum(map(len, chosen)) / 1_000
    ours = alone = 0.0
    extract(chosen[0])
    for text in chosen:
        plain = " ".join(
            each.plain.text for each in build_outline(text, "text/markdown").snippets if each.kind != "cell"
        )
        started = time.process_time()
        list(pipeline.pipe([plain]))
        middle = time.process_time()
        extract(text)
        alone += middle - started
        ours += time.process_time() - middle
    ratio = alone / ours
    yield Comparison("entities and relations", round(size / ours, 1), round(size / alone, 1), "kB/s")
    yield Comparison("their share of the speed", round(ratio, 2), None, "", f">= {SPEED}", ratio >= SPEED)


def score_documents(documents: Sequence[Mapping[str, Any]]) -> Iterator[Comparison]:
    """Score mentions, links within a document, and relations on Re-DocRED."""
    mentions, alone, links, relations = Score(), Score(), Score(), Score()
    for document in documents:
        text, wanted, clusters = read_document(document)
        found = extract(text)
        kinds = set(TYPES.values())
        own = {spot for spot in get_mentions(found) if spot[2] in kinds}
        mentions.add(own, set(wanted))  # type: ignore[arg-type]
        named = read_entities(load_pipeline(DEFAULT)(text))
        alone.add({(start, end, type_) for start, end, _, type_, _ in named if type_ in kinds}, set(wanted))
        keys = {(each.start, each.end): each.key for each in found.mentions}
        both = [spot for spot in wanted if spot[:2] in keys]
        links.add(
            {(one, other) for one, other in combinations(both, 2) if keys[one[:2]] == keys[other[:2]]},
            {(one, other) for one, other in combinations(both, 2) if wanted[one] == wanted[other]},
        )
        relations.add(find_triples(found, clusters), read_triples(document, clusters))  # type: ignore[arg-type]
    name = f"Re-DocRED, {len(documents)} documents"
    yield Comparison(f"{name}: F1 of mentions", round(mentions.f1, 3), round(alone.f1, 3), "F1")
    yield Comparison(f"{name}: F1 of pairs that are the same entity", round(links.f1, 3), None, "F1")
    yield Comparison(f"{name}: precision of relations", round(_precision(relations), 3), None, f"of {relations.found}")
    yield Comparison(f"{name}: recall of relations", round(_recall(relations), 3), None, f"of {relations.wanted}")


def read_document(document: Mapping[str, Any]) -> tuple[str, dict[tuple[int, int, str], int], list[set[str]]]:
    """Read a document: its text, the entity of each mapped mention, and the normalized names of each entity."""
    pieces: list[str] = []
    places: list[list[tuple[int, int]]] = []
    length = 0
    for sentence in document["sents"]:
        places.append([])
        for token in sentence:
            places[-1].append((length, length + len(token)))
            pieces.append(token)
            length += len(token) + 1
    text = " ".join(pieces)
    wanted: dict[tuple[int, int, str], int] = {}
    clusters: list[set[str]] = []
    for number, mentions in enumerate(document["vertexSet"]):
        clusters.append(set())
        for mention in mentions:
            tokens = places[mention["sent_id"]][mention["pos"][0] : mention["pos"][1]]
            start, end = tokens[0][0], tokens[-1][1]
            type_ = TYPES.get(mention["type"])
            clusters[-1].add(normalize_name(text[start:end]))
            if type_ is not None and (type_ != "date" or has_year(text[start:end])):
                wanted[start, end, type_] = number
    return text, wanted, clusters


def read_triples(document: Mapping[str, Any], clusters: Sequence[set[str]]) -> set[Triple]:
    """Read the mapped relations of a document, each by the first name of its entities."""
    triples = set()
    for label in document["labels"]:
        if (mapped := PROPERTIES.get(label["r"])) is not None:
            one, other = (label["t"], label["h"]) if mapped[1] else (label["h"], label["t"])
            triples.add((min(clusters[one]), mapped[0], min(clusters[other])))
    return triples


def find_triples(found: Extraction, clusters: Sequence[set[str]]) -> set[Triple]:
    """Return the mapped relations of an extraction between labelled entities, by the first name of each."""
    names = {name: min(cluster) for cluster in clusters for name in cluster}
    kinds = {relation for relation, _ in PROPERTIES.values()}
    return {
        (names[each.subject[1]], each.relation, names[each.object[1]])
        for each in found.relations
        if each.subject is not None and each.relation in kinds and each.subject[1] in names and each.object[1] in names
    }


def _precision(score: Score) -> float:
    return score.right / score.found if score.found else 0.0


def _recall(score: Score) -> float:
    return score.right / score.wanted if score.wanted else 0.0
