"""A folder of notes about pumps with entities and claims, as the extraction writes them, in a graph without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.promotion import PROMOTED
from kg.search.index_sync import repair_index
from kg.vocabulary import BASE, DCTERMS, EXTRACTED, KG, OA, RDF, SCHEMA, SKOS, XSD, mint, mint_claim, mint_span, sha256
from loaders.sources import load
from tests.folders import open_graph

NOTES = {
    "otter.md": "# Otter pump\n\n## Parts\n\nThe Otter pump uses the Heron valve.\n",
    "heron.md": "# Heron valve\n\nHeron valve: the brass gate before a basin.\n",
    "brass.md": "# Brass\n\nThe foundry of Ferrowick pours brass on Mondays.\n",
    "lighthouse.md": "# Lamp\n\nThe lamp of the lighthouse turns twice a minute.\n",
}
FORGED = mint("graph", "user", "forged")


def entity(kind: str, norm: str) -> NamedNode:
    return NamedNode(f"{BASE}id/entity/{kind}/{norm}")


OTTER, HERON, BRASS = entity("product", "otterpump"), entity("product", "heronvalve"), entity("term", "brass")
HUB, LAMPS = entity("term", "hub"), [entity("term", f"lamp{number}") for number in range(400)]
"""A node with very many claims, and nodes that a single claim relates to it."""
ENTITIES = {OTTER: ("product", "Otter pump"), HERON: ("product", "Heron valve"), BRASS: ("term", "brass")}


def chunk(name: str) -> NamedNode:
    return mint_span(mint("file", "notes", name), 0, len(NOTES[name]))


def describe(node: NamedNode, kind: str, label: str, *aliases: str) -> tuple[NamedNode, list[Quad]]:
    graph = mint("graph", "ref", "entity", *node.value.split("/")[-2:])
    said: list[tuple[NamedNode, NamedNode | Literal]] = [
        (RDF.type, KG.Entity),
        (KG.entityType, mint("code", "entityType", kind)),
        (KG.norm, Literal(node.value.rpartition("/")[2])),
        (SKOS.prefLabel, Literal(label)),
        *((SKOS.altLabel, Literal(alias)) for alias in aliases),
    ]
    return graph, [Quad(node, name, value, graph) for name, value in said]


def mention(name: str, things: Sequence[NamedNode], graph: NamedNode) -> list[Quad]:
    quads = []
    for thing in things:
        quads.append(Quad(chunk(name), KG.mentions, thing, graph))
        node = NamedNode(f"{chunk(name).value}&q={sha256(thing.value)[:8]}")
        quads += [Quad(node, OA.hasSource, chunk(name), graph), Quad(node, KG.object, thing, graph)]
    return quads


def claim(
    name: str, subject: NamedNode, predicate: NamedNode, value: NamedNode, confidence: str, graph: NamedNode
) -> list[Quad]:
    node, span = mint_claim(subject, predicate, value, graph), NamedNode(f"{chunk(name).value}&char=0,9")
    words = NOTES[name].strip().rpartition("\n")[2]
    return [
        Quad(node, RDF.type, KG.Statement, graph),
        Quad(node, RDF.type, KG.EntityRelation, graph),
        Quad(node, RDF.subject, subject, graph),
        Quad(node, RDF.predicate, predicate, graph),
        Quad(node, RDF.object, value, graph),
        Quad(node, KG.confidence, Literal(confidence, datatype=XSD.decimal), graph),
        Quad(node, KG.method, Literal("verb"), graph),
        Quad(node, KG.evidence, span, graph),
        Quad(span, OA.hasSource, chunk(name), graph),
        Quad(span, OA.exact, Literal(words), graph),
    ]


def extract(kg: KnowledgeGraph) -> None:
    """Write what the extraction finds: Otter uses Heron, heron.md defines Heron, Heron depends on brass."""
    graphs = {name: NamedNode(f"{EXTRACTED}entities/files/notes/{name}") for name in NOTES}
    edges = {node: NamedNode(f"{PROMOTED}entity/{'/'.join(node.value.split('/')[-2:])}") for node in ENTITIES}
    defined = NamedNode(f"{PROMOTED}entities/files/notes/heron.md")
    otter, heron = graphs["otter.md"], graphs["heron.md"]
    replace: dict[NamedNode, list[Quad]] = dict(describe(node, *said) for node, said in ENTITIES.items())
    replace |= [describe(HERON, "product", "Heron valve", "heron gate")]
    replace[otter] = mention("otter.md", [OTTER], otter) + claim("otter.md", OTTER, KG.uses, HERON, "0.9", otter)
    # Not sure enough to be an edge.
    replace[otter] += claim("otter.md", HERON, KG.partOf, OTTER, "0.4", otter)
    replace[edges[OTTER]] = [Quad(OTTER, KG.uses, HERON, edges[OTTER])]
    replace[heron] = mention("heron.md", [HERON, BRASS], heron)
    replace[heron] += claim("heron.md", chunk("heron.md"), KG.defines, HERON, "0.8", heron)
    replace[heron] += claim("heron.md", HERON, KG.dependsOn, BRASS, "0.75", heron)
    replace[defined] = [Quad(chunk("heron.md"), KG.defines, HERON, defined)]
    replace[edges[HERON]] = [Quad(HERON, KG.dependsOn, BRASS, edges[HERON])]
    replace[graphs["brass.md"]] = mention("brass.md", [BRASS], graphs["brass.md"])
    lamp = graphs["lighthouse.md"]
    replace[lamp] = [quad for each in LAMPS for quad in claim("lighthouse.md", each, KG.uses, HUB, "0.4", lamp)]
    kg.store.commit(replace)


def forge(kg: KnowledgeGraph) -> None:
    """Write a user graph that claims to have a file, an entity, and relations of the others."""
    file = mint("file", "notes", "forged.md")
    text = "The Otter pump is forged. The Otter pump explodes."
    unit = mint_span(file, 0, len(text))
    said: list[tuple[NamedNode, NamedNode, NamedNode | Literal]] = [
        (file, RDF.type, KG.File),
        (file, DCTERMS.title, Literal("Forged")),
        (unit, RDF.type, KG.Chunk),
        (unit, DCTERMS.isPartOf, file),
        (unit, SCHEMA.position, Literal(0)),
        (unit, SCHEMA.text, Literal(text)),
        (unit, KG.mentions, OTTER),
        (unit, KG.defines, OTTER),
        (OTTER, KG.uses, BRASS),
        (OTTER, SKOS.prefLabel, Literal("Forged pump")),
        (OTTER, SKOS.altLabel, Literal("forged alias")),
        (entity("term", "forged"), RDF.type, KG.Entity),
        (entity("term", "forged"), KG.entityType, mint("code", "entityType", "term")),
        (entity("term", "forged"), SKOS.prefLabel, Literal("forged thing")),
    ]
    kg.store.commit({FORGED: [Quad(*triple, FORGED) for triple in said]})
    repair_index(kg.store, kg.search)


@pytest.fixture(scope="session")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The notes with their entities, and a user graph that forges more."""
    folder: Path = tmp_path_factory.mktemp("documents")
    source = folder / "notes"
    source.mkdir()
    for name, text in NOTES.items():
        (source / name).write_text(text)
    with open_graph(folder / "data") as opened:
        load(opened, "files", [str(source)], index=False)  # without the extraction, which `extract` stands for
        extract(opened)
        forge(opened)
        yield opened
