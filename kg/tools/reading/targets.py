"""The page that shows an IRI to a reader: its own, or that of the document, speech, day or section around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pyoxigraph import NamedNode

from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.vocabulary import BASE, FOAF, KG, SKOS, WIKIBASE

PageKind = Literal[
    "document", "speech", "sitting", "section", "place", "district", "person", "party", "concept", "family", "law",
    "entity",
]  # fmt: skip

CLASSES: Final = """
SELECT ?class ?whole ?source ?start ?end WHERE {
  { $iri a ?class OPTIONAL { $iri dcterms:isPartOf ?whole } }
  UNION { $iri oa:hasSource ?source ; kg:start ?start ; kg:end ?end }
}"""

_OWN: Final[Mapping[str, PageKind]] = {
    KG.PolicyDocument.value: "document",
    KG.File.value: "document",
    KG.Speech.value: "speech",
    KG.Sitting.value: "sitting",
    KG.Debate.value: "sitting",
    KG.CodeSection.value: "section",
    KG.Municipality.value: "place",
    KG.Place.value: "place",
    KG.ZoningDistrict.value: "district",
    FOAF.Person.value: "person",
    KG.Party.value: "party",
    SKOS.Concept.value: "concept",
    WIKIBASE.Item.value: "concept",
    WIKIBASE.Property.value: "concept",
    KG.PolicyFamily.value: "family",
    KG.ExternalLaw.value: "law",
    KG.Entity.value: "entity",
}
"""The page of each class that has one."""
_PARTS: Final[Mapping[str, PageKind]] = {
    KG.Passage.value: "document",
    KG.Chunk.value: "document",
    KG.SpeechChunk.value: "speech",
    KG.Utterance.value: "speech",
    KG.Division.value: "sitting",
    KG.ProceduralText.value: "sitting",
    KG.Subsection.value: "section",
    KG.CodeTable.value: "section",
}
"""The page of the whole of each class of parts."""
_CODES: Final = BASE + "vocab/"


@dataclass(frozen=True, slots=True)
class Target:
    """The page of an IRI."""

    kind: PageKind
    iri: str
    """The IRI of the entity that the page shows."""
    part: str | None = None
    """The part of it that was asked for."""
    span: tuple[int, int] | None = None
    """The words in the text of `part`, if the IRI is that of a span or mention."""


def find_target(reader: Reader, iri: str) -> Target | None:
    """Find the page of an IRI. None if only a table of its properties can show it.

    What only users describe has no page: there the graph of each statement must be seen.
    """
    rows = reader.rows("its classes", bind(CLASSES, iri=NamedNode(iri)))
    classes = sorted({iri_of(row["class"]) for row in rows if isinstance(row.get("class"), NamedNode)})
    for name in classes:
        if name in _PARTS:
            whole = min((iri_of(row["whole"]) for row in rows if isinstance(row.get("whole"), NamedNode)), default=None)
            if whole is not None:
                return Target(_PARTS[name], whole, iri)
    for row in rows:
        if "source" in row and isinstance(row["source"], NamedNode):
            span = int(term_text(row["start"])), int(term_text(row["end"]))
            found = find_target(reader, row["source"].value) if row["source"].value != iri else None
            return None if found is None else Target(found.kind, found.iri, found.part or found.iri, span)
    if iri.startswith(_CODES):
        return None
    return next((Target(kind, iri) for name, kind in _OWN.items() if name in classes), None)
