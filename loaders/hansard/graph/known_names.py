"""The names under which a store has each identifier of Australia's parliament: in registers and in records."""

from __future__ import annotations

from typing import Final

from pyoxigraph import Literal

from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.terms import bind
from kg.store.protocol import named_node, select, term_text
from kg.vocabulary import BASE
from loaders.hansard.identifiers import Identifiers

_IDENTIFIED: Final = f"{BASE}id/person/aph-"

REGISTERED: Final = """
SELECT DISTINCT ?person ?name WHERE {
  ?term kg:memberAsRecorded ?name ; org:member ?person FILTER(STRSTARTS(STR(?person), $identified))
}"""

RECORDED: Final = """
SELECT ?person ?name (COUNT(?said) AS ?records) WHERE {
  ?said kg:speaker ?person ; kg:speakerAsRecorded ?name FILTER(STRSTARTS(STR(?person), $identified))
} GROUP BY ?person ?name"""


def load_names(kg: KnowledgeGraph, identifiers: Identifiers) -> None:
    """Add the names in the store to `identifiers`."""
    prefix = Literal(_IDENTIFIED)
    for row in select(kg.store.query_sources, bind(REGISTERED, identified=prefix)):
        identifiers.add_registered(named_node(row["person"]).value.removeprefix(_IDENTIFIED), term_text(row["name"]))
    for row in select(kg.store.query_sources, bind(RECORDED, identified=prefix)):
        if "person" in row:  # not the one row about nothing
            name_id = named_node(row["person"]).value.removeprefix(_IDENTIFIED)
            identifiers.add_recorded(name_id, term_text(row["name"]), int(term_text(row["records"])))
