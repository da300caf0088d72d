"""Derivations with the record: graphs computed from memory, in the commit of the graphs that they follow from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode, Quad

from kg.provenance.load_records import Derived
from kg.store.protocol import Store

Graphs = Mapping[NamedNode, Sequence[Quad]]


@dataclass(frozen=True, slots=True)
class WithRecord:
    """A derivation that gets the graphs that a commit replaces, with the outputs of those before it.

    It returns graphs that the commit replaces too. Their content must not depend on the order of commits.
    """

    derive: Callable[[Store, Graphs], Derived]
