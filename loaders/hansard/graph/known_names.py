"""The names under which a store has each identifier of Australia's parliament: in registers and in records.

A load may bring names that show that stored records have the identifier of somebody else. Their files are read again,
so that the result does not depend on the order of loads.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import load_records
from kg.provenance.source_paths import SourcePaths
from kg.sparql.terms import bind
from kg.store.protocol import named_node, select, term_text
from kg.vocabulary import BASE, PROV_GRAPH, SOURCED
from loaders.hansard.identifiers import Identifiers
from loaders.hansard.sitting_model import Talker
from loaders.load_report import LoadReport

LoadAgain = Callable[[KnowledgeGraph, Sequence[str], Mapping[str, str], Identifiers], LoadReport]
"""Loads files with options and the known names."""

_IDENTIFIED: Final = f"{BASE}id/person/aph-"

REGISTERED: Final = """
SELECT DISTINCT ?person ?name WHERE {
  ?term kg:memberAsRecorded ?name ; org:member ?person FILTER(STRSTARTS(STR(?person), $identified))
}"""

RECORDED: Final = """
SELECT ?person ?name (COUNT(?said) AS ?records) WHERE {
  ?said kg:speaker ?person ; kg:speakerAsRecorded ?name FILTER(STRSTARTS(STR(?person), $identified))
} GROUP BY ?person ?name"""

RECORDS: Final = """
SELECT DISTINCT ?graph ?person ?name WHERE {
  VALUES ?person { $people } GRAPH ?graph { ?said kg:speaker ?person ; kg:speakerAsRecorded ?name }
  FILTER(STRSTARTS(STR(?graph), $sources))
}"""

CONFIGURATIONS: Final = """
SELECT ?graph ?configuration WHERE {
  VALUES ?graph { $graphs } GRAPH $prov { ?graph prov:wasGeneratedBy ?run . ?run kg:configuration ?configuration }
}"""


def load_names(kg: KnowledgeGraph, identifiers: Identifiers) -> None:
    """Add the names in the store to `identifiers`."""
    prefix = Literal(_IDENTIFIED)
    for row in select(kg.store.query_sources, bind(REGISTERED, identified=prefix)):
        identifiers.add_registered(named_node(row["person"]).value.removeprefix(_IDENTIFIED), term_text(row["name"]))
    for row in select(kg.store.query_sources, bind(RECORDED, identified=prefix)):
        if "person" in row:  # not the one row about nothing
            name_id = named_node(row["person"]).value.removeprefix(_IDENTIFIED)
            identifiers.add_recorded(name_id, term_text(row["name"]), int(term_text(row["records"])))


def load_contradicted(kg: KnowledgeGraph, report: LoadReport, options: Iterable[str], load_again: LoadAgain) -> None:
    """Read the files again whose stored records have an identifier that is no longer known under the recorded name.

    `options` are the names of those of loads. The outcome is added to `report`, with a warning for files that are gone.
    """
    identifiers = Identifiers()
    load_names(kg, identifiers)
    identifiers.is_complete = True
    graphs = _find_contradicted(kg, identifiers)
    if not graphs:
        return
    configurations = {
        named_node(row["graph"]): json.loads(term_text(row["configuration"]))
        for row in select(kg.store.query, bind(CONFIGURATIONS, graphs=graphs, prov=PROV_GRAPH))
    }
    paths, gone = SourcePaths(kg.settings.data_dir), set[str]()
    files: dict[tuple[tuple[str, str], ...], set[str]] = defaultdict(set)
    for graph, sources in load_records.load_sources(kg.store, graphs).items():
        given = {name: value for name, value in configurations.get(graph, {}).items() if name in options}
        for source, name in sources.items():
            path = paths.get(source)
            if path is not None and os.path.isfile(path):
                files[tuple(sorted(given.items()))].add(path)
            else:
                gone.add(name)
    for given_options, own in sorted(files.items()):
        try:
            done = load_again(kg, sorted(own), dict(given_options), identifiers)
        except QuadciteError as error:
            report.warnings.append(f"Files with contradicted identifiers cannot be read again: {error}")
            continue
        report.loaded += done.loaded
        report.quads_added += done.quads_added
        report.quads_removed += done.quads_removed
        report.rejections += done.rejections
        report.warnings += done.warnings
    if gone:
        report.warnings.append(
            f"Records of {', '.join(sorted(gone)[:5])} have an identifier that is no longer known under the recorded "
            "name, and are linked to its person. Load these files again."
        )


def _find_contradicted(kg: KnowledgeGraph, identifiers: Identifiers) -> list[NamedNode]:
    """Find the graphs of records with an identifier that is not of the recorded name."""
    wrong: set[tuple[NamedNode, str]] = set()
    for row in select(kg.store.query_sources, bind(RECORDED, identified=Literal(_IDENTIFIED))):
        if "person" in row:
            person, name = named_node(row["person"]), term_text(row["name"])
            if not identifiers.is_of(Talker(name, None, person.value.removeprefix(_IDENTIFIED))):
                wrong.add((person, name))
    if not wrong:
        return []
    people = sorted({person for person, _ in wrong}, key=str)
    rows = select(kg.store.query_sources, bind(RECORDS, people=people, sources=Literal(SOURCED)))
    found = {named_node(row["graph"]) for row in rows if (row["person"], term_text(row["name"])) in wrong}
    return sorted(found, key=str)
