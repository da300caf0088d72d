"""Files that were moved: ``<old file> dcterms:isReplacedBy <new file>``, so that an old reference leads to the new one.

Each such statement is a graph of its own, ``graph/der/moved/{collection}/{old path}``, until a file is at the old path
again, or the one at the new path is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select
from kg.vocabulary import DCTERMS, DERIVED, SOURCED, iri_prefix

RULE: Final = Rule("moved-file", "1", "a file whose content is at another path of its folder")

MOVED: Final = """
SELECT ?old ?new ?graph WHERE {
  GRAPH ?graph { ?old dcterms:isReplacedBy ?new } FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

_SOURCES: Final = SOURCED + "files/"
_MOVED: Final = DERIVED + "moved/"
_FILES: Final = iri_prefix("file")


class Moves:
    """The moves of a load. Without `moved`, it only ends earlier ones."""

    def __init__(self) -> None:
        self.moved: Mapping[NamedNode, NamedNode] = {}
        """The graph of the record at the old path, by that of the record at the new one."""

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Build the graphs of moves that change with a commit that replaces these graphs."""
        changed = [graph for graph in replace if graph.value.startswith(_SOURCES)]
        if not changed:
            return {}
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
        for new, old in self.moved.items():
            if replace.get(new):
                graph = name_moved(old)
                quad = Quad(name_file(old), DCTERMS.isReplacedBy, name_file(new), graph)
                made[graph] = [quad], RecordOrigin("", (), (new,), RULE)
        targets = {
            named_node(row["graph"]): named_node(row["new"])
            for row in select(store.query, bind(MOVED, prefix=Literal(_MOVED)))
        }
        nothing: tuple[Sequence[Quad], RecordOrigin] = (), RecordOrigin("", ())
        ended = {name_moved(graph) for graph in changed if replace[graph]} & targets.keys() - made.keys()
        gone = {name_file(graph) for graph in changed if not replace[graph] and name_moved(graph) not in made}
        while leading := {graph for graph, new in targets.items() if new in gone and graph not in made} - ended:
            ended |= leading
            gone |= {NamedNode(_FILES + graph.value.removeprefix(_MOVED)) for graph in leading}
        return made | dict.fromkeys(ended, nothing)


def name_moved(graph: NamedNode) -> NamedNode:
    """Return the name of the graph of the move of the record in `graph`."""
    return NamedNode(_MOVED + graph.value.removeprefix(_SOURCES))


def name_file(graph: NamedNode) -> NamedNode:
    """Return the IRI of the file whose record is in `graph`."""
    return NamedNode(_FILES + graph.value.removeprefix(_SOURCES))
