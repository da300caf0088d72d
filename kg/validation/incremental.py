"""Which focus nodes a change can affect, so that only these need to be validated anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pyoxigraph import NamedNode, Quad, Store

from kg.errors import InvalidInputError
from kg.store.protocol import GraphChange, Term
from kg.validation.data import Data
from kg.validation.model import ShapeNode
from kg.validation.shapes import Shapes


@dataclass(frozen=True, slots=True)
class Change:
    """What may have changed in the data: each quad that was added or removed, as far as they are known.

    `lost`: nodes that were subject or object of quads that were removed, where the quads themselves are not known.
    `unknown`: why it cannot be said what has changed; empty, if it can.
    """

    quads: Collection[Quad] = ()
    lost: frozenset[Term] = frozenset()
    unknown: str = ""

    @classmethod
    def of(cls, changes: Iterable[GraphChange]) -> Change:
        """Return what commits did to graphs."""
        return cls([quad for change in changes for quad in (*change.added, *change.removed)])


@dataclass(frozen=True, slots=True)
class Affected:
    """The focus nodes whose results may differ: those of other nodes are what they were.

    `nodes`: for `Shapes.results`; None for all of them, and `why` says why so. `whole`: the shapes all of whose targets
    are among `nodes`, each with what in it could not be analysed.
    """

    nodes: frozenset[Term] | None
    why: str = ""
    whole: Mapping[ShapeNode, str] = field(default_factory=dict)


def changed_since(store: Store, generation: int) -> Change:
    """Return what the commits after `generation` may have changed, by what the store keeps of them.

    Raises InvalidInputError for a generation that does not exist.
    """
    if generation < 0:
        raise InvalidInputError(f"a generation is a number from 0, not {generation}")
    return Change(unknown="it is not recorded what was removed")


def affected(suite: Shapes, data: Data, change: Change) -> Affected:
    """Return the focus nodes of `suite` whose results `change` may have altered; `data` are those after it."""
    return Affected(None, change.unknown or f"{suite} over {data}")
