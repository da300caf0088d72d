"""The violations that the last check of the dataset found, by node, and the file that keeps them between starts."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from pyoxigraph import NamedNode, RdfFormat, Store, parse

from kg import __version__, bundle
from kg.data_directory import DataDirectory
from kg.files import write_file
from kg.shacl.incremental import get_generation
from kg.shacl.report import Violation
from kg.store.commits import get_commit_time
from kg.store.protocol import Term
from kg.vocabulary import curie

log = logging.getLogger(__name__)

_REMEMBERED: Final = 10_000
"""Maximum nodes whose first message is kept. The violations of other nodes are only counted."""
_MOST_SAVED: Final = 20_000
"""Maximum nodes with violations in the file. With more, the next start validates everything."""


@dataclass(slots=True)
class Violations:
    """Violations by target node: their number, that of each shape, and the first message."""

    counts: Counter[Term] = field(default_factory=Counter)
    shapes: dict[Term, Counter[str]] = field(default_factory=dict)
    messages: dict[Term, str] = field(default_factory=dict)
    caused: set[Term] = field(default_factory=set)
    """Nodes whose violations a user graph may have caused, among those with a message."""

    def replace(self, nodes: Iterable[Term] | None, found: Iterable[tuple[Term, Violation]]) -> None:
        """Remove the violations of `nodes`, or of all nodes, and add those of `found`."""
        if nodes is None:
            self.counts.clear()
            self.shapes.clear()
            self.messages.clear()
            self.caused.clear()
        for node in nodes or ():
            self.counts.pop(node, None)
            self.shapes.pop(node, None)
            self.messages.pop(node, None)
            self.caused.discard(node)
        for node, violation in found:
            if violation.blocks:
                self.counts[node] += 1
                self.shapes.setdefault(node, Counter())[_name_shape(violation)] += 1
                if len(self.messages) < _REMEMBERED:
                    self.messages.setdefault(node, f"{violation.focus}: {violation.message}")

    def to_rows(self) -> list[tuple[str, dict[str, int], str | None, bool]]:
        """Build a row for each node: N-Triples term, violations by shape, message, whether users may be the cause."""
        return [
            (str(node), dict(self.shapes[node]), self.messages.get(node), node in self.caused) for node in self.counts
        ]

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> Violations:
        """Read the rows of `to_rows`. Raises SyntaxError, ValueError, TypeError or AttributeError."""
        found = cls()
        for text, shapes, message, caused in rows:
            [quad] = parse(f"<urn:s> <urn:p> {text} .", format=RdfFormat.N_TRIPLES)
            found.shapes[quad.object] = Counter({str(name): int(count) for name, count in shapes.items()})
            found.counts[quad.object] = found.shapes[quad.object].total()
            if message is not None:
                found.messages[quad.object] = str(message)
            if caused:
                found.caused.add(quad.object)
        return found


def save_state(file: Path, store: Store, nodes: Violations, graphs: Violations) -> None:
    """Save the violations of a checkpoint, those of nodes and those of user graphs.

    An error is logged: without the file the next start validates everything.
    """
    try:
        if len(nodes.counts) + len(graphs.counts) > _MOST_SAVED:
            file.unlink(missing_ok=True)
            return
        generation = get_generation(store)
        content = {
            "format": DataDirectory.checked.version,
            "suite": _identify_suite(),
            "generation": generation,
            "committed_at": get_commit_time(store, generation),
            "nodes": nodes.to_rows(),
            "graphs": graphs.to_rows(),
        }
        write_file(file, json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    except OSError as error:
        log.warning("Cannot save the result of the check of the dataset in %s: %s", file, error)


def load_state(file: Path, store: Store) -> tuple[int, Violations, Violations] | None:
    """Load the saved violations, with their generation, if that is one of the store and the shapes are the same."""
    try:
        content = json.loads(file.read_text())
        if (content["format"], content["suite"]) != (DataDirectory.checked.version, _identify_suite()):
            return None
        generation, committed_at = int(content["generation"]), content["committed_at"]
        is_known = committed_at is not None and committed_at == get_commit_time(store, generation)
        if not is_known or generation > get_generation(store):
            return None
        return generation, Violations.from_rows(content["nodes"]), Violations.from_rows(content["graphs"])
    except OSError:
        return None
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s is not a valid result of a check, so everything is checked: %s", file, error)
        return None


@cache
def _identify_suite() -> str:
    """Return a hash of the version and of the shapes that ship with it."""
    files = sorted(bundle.folder("shapes").glob("*.ttl"))
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256("".join([__version__, *hashes]).encode()).hexdigest()


def _name_shape(violation: Violation) -> str:
    """Name the shape of a violation; an unnamed one by its component."""
    if isinstance(violation.shape, NamedNode):
        return curie(violation.shape.value)
    return "unnamed shape" if violation.component is None else curie(violation.component.value)
