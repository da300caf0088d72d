"""All graphs derived in a commit of speeches, sittings or a register of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyoxigraph import NamedNode, Quad

from kg.provenance.load_records import Derived
from kg.store.protocol import Store
from loaders.hansard.graph.corpus_lists import is_of_corpus
from loaders.hansard.graph.memberships import Memberships
from loaders.hansard.graph.references import References
from loaders.hansard.graph.seats import Seats
from loaders.hansard.graph.speakers import Speakers
from loaders.hansard.graph.terms import Register
from loaders.hansard.graph.voters import Voters


class Derivations:
    """The graphs derived from the records below ``graph/src/{domain}/`` and from registers. For one load."""

    def __init__(self, domain: str) -> None:
        self.register = Register()
        self.memberships = Memberships(domain)
        self.seats = Seats(domain, self.register)
        self.references = References(domain)
        self.speakers = Speakers()
        self.voters = Voters(domain, self.register, self.speakers)

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Return the graphs that change with a commit, each with its sources."""
        # A corpus lists its people with their dates: who speaks there need not be a member.
        replace = {graph: quads for graph, quads in replace.items() if not is_of_corpus(graph)}
        changed = self.register.update(store, replace)
        memberships = self.memberships.derive(store, replace)
        self.speakers.update(store, replace, memberships)
        return {
            **memberships,
            **self.seats.derive(store, replace, changed),
            **self.references.derive(store, replace),
            **self.voters.derive(store, replace, changed),
        }
