"""Stored readings of sections by a chat model: ``graph/gen/zoning-reading/{municipality}/{section}``.

A reading has no effect by itself. `build_rules` combines it with the rules each time that its section is extracted, as
long as the section has the text that was read. It is removed with its section, and when the text changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError
from kg.sparql.terms import bind
from kg.store.protocol import Store, select, term_text
from kg.vocabulary import KG, RDF, mint, sha256
from loaders.zoning.extraction.model_answers import Proposals
from loaders.zoning.graph.stored_sections import key_of
from loaders.zoning.readers.code_model import Section

READINGS: Final = """
SELECT ?section ?method ?prompt ?input ?proposals WHERE {
  ?section kg:jurisdiction $municipality .
  ?reading kg:readingOf ?section ; kg:method ?method ; kg:promptSha256 ?prompt ; kg:inputSha256 ?input ;
    kg:proposals ?proposals
}"""

_FAMILY: Final = "zoning-reading"


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts that a model proposed for a section."""

    method: str
    """``chat/``, the host of the endpoint and the model."""
    prompt_sha256: str
    text_sha256: str
    """Hash of the text that was read."""
    proposals: Proposals

    def is_of(self, section: Section) -> bool:
        """Whether the section still has the text that was read."""
        return self.text_sha256 == sha256(section.text)


def load_readings(store: Store, name: str) -> dict[str, Reading]:
    """Load the readings of a municipality's code by key of the section."""
    found: dict[str, Reading] = {}
    for row in select(store.query_sources, bind(READINGS, municipality=mint("municipality", name))):
        try:
            proposals = Proposals.from_json(term_text(row["proposals"]))
        except InvalidInputError:
            continue  # a newer version wrote it, or it is damaged: the rules alone are valid
        found[key_of(row["section"], name)] = Reading(
            term_text(row["method"]), term_text(row["prompt"]), term_text(row["input"]), proposals
        )
    return found


def get_reading_graph(name: str, key: str) -> NamedNode:
    """Get the graph of the reading of a section."""
    return mint("graph", "gen", _FAMILY, name, key)


def build_reading(name: str, key: str, reading: Reading) -> Sequence[Quad]:
    """Build the quads of a reading."""
    graph, node = get_reading_graph(name, key), mint("reading", name, key)
    said: Mapping[NamedNode, NamedNode | Literal] = {
        RDF.type: KG.Reading,
        KG.readingOf: mint("section", name, key),
        KG.method: Literal(reading.method),
        KG.promptSha256: Literal(reading.prompt_sha256),
        KG.inputSha256: Literal(reading.text_sha256),
        KG.proposals: Literal(reading.proposals.to_json()),
    }
    return [Quad(node, predicate, value, graph) for predicate, value in said.items()]
