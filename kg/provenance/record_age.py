"""The age of records: whether a record is older than the stored one that it would replace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select
from kg.vocabulary import SCHEMA

# VALUES is inside GRAPH: outside, the engine reads the patterns of all graphs first.
STORED: Final = """
SELECT ?graph ?property ?value WHERE {
  { GRAPH ?graph { VALUES ?graph { $graphs } ?document schema:version ?value } BIND(schema:version AS ?property) }
  UNION
  { GRAPH ?graph { VALUES ?graph { $graphs } ?document schema:dateModified ?value }
    BIND(schema:dateModified AS ?property) }
}"""


@dataclass(frozen=True, slots=True)
class Age:
    """The revision (``schema:version``) and the time of modification (``schema:dateModified``) of a record."""

    revision: int | None = None
    modified: datetime | None = None

    def is_comparable(self, other: Age) -> bool:
        """Return whether both have a revision, or both a time."""
        return None not in (self.revision, other.revision) or None not in (self.modified, other.modified)

    def is_older(self, other: Age) -> bool:
        """Return whether this is older than `other`, by revision, else by time; False if that is unknown."""
        if self.revision is not None and other.revision is not None:
            return self.revision < other.revision
        return self.modified is not None and other.modified is not None and self.modified < other.modified

    def __str__(self) -> str:
        parts = (
            None if self.revision is None else f"revision {self.revision}",
            None if self.modified is None else f"modified {self.modified:%Y-%m-%d}",
        )
        return ", ".join(part for part in parts if part)


def find_age(quads: Iterable[Quad]) -> Age:
    """Find the age of a record: the latest revision and time among its quads."""
    names = (SCHEMA.version, SCHEMA.dateModified)
    return _build_age([(quad.predicate, quad.object) for quad in quads if quad.predicate in names])


def load_ages(store: Store, graphs: Sequence[NamedNode]) -> dict[NamedNode, Age]:
    """Load the ages of the stored records of those of `graphs` that have one."""
    said: dict[NamedNode, list[tuple[object, object]]] = {}
    for row in select(store.query, bind(STORED, graphs=graphs)) if graphs else ():
        said.setdefault(named_node(row["graph"]), []).append((row["property"], row["value"]))
    return {graph: _build_age(values) for graph, values in said.items()}


def _build_age(said: Iterable[tuple[object, object]]) -> Age:
    revisions: list[int] = []
    times: list[datetime] = []
    for name, value in said:
        text = value.value if isinstance(value, Literal) else ""
        if name == SCHEMA.version and text.isascii() and text.isdecimal():
            revisions.append(int(text))
        elif name == SCHEMA.dateModified and (time := _parse_time(text)) is not None:
            times.append(time)
    return Age(max(revisions, default=None), max(times, default=None))


def _parse_time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
