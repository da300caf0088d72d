"""Folders that are watched, and graphs that are derived from the stored texts of files."""

from typing import Final

from kg.derivations.protocol import Definition
from kg.vocabulary import CITATIONS, DERIVED, EXTRACTED, SOURCED, mint
from kg.vocabulary import ENTITIES as ROOT
from loaders.files.extraction.language_pipeline import describe_pipeline

ENTITIES: Final = Definition(
    "entities",
    "the entities and relations that files name",
    "after the commit",
    "7",
    (f"{SOURCED}files/",),
    f"{ROOT}files/",
    "loaders.files.graph.entities.Entities",
    "ASK { ?file a kg:File }",
    lambda settings: describe_pipeline(settings.spacy_pipeline),
    after=("files",),
    agent="loaders.files.entities",
)
LINKS: Final = Definition(
    "links",
    "the entities, concepts, people, places and laws that an entity may be",
    "after the commit",
    "2",
    (
        SOURCED,
        f"{DERIVED}skos/",
        f"{mint('graph', 'ref').value}/",
        f"{ROOT}files/",
        f"{EXTRACTED}mentions/files/",
        f"{CITATIONS}files/",
    ),
    f"{ROOT}links/",
    "loaders.files.graph.entity_links.Links",
    "ASK { ?entity a kg:Entity }",
    agent="loaders.files.links",
)
